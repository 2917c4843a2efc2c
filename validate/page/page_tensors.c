/*
 * page_tensors.c - what each tensor costs, as a map of layers and roles, and
 * what would cure it.
 */
#include "config.h"

#include "validate/page/page.h"

#include <math.h>
#include <string.h>

/* More roles than any family has in its layers. */
#define ROLES_MOST 24

struct map {
    const struct lmq_report *tensors;
    const char *roles[ROLES_MOST]; /* in the order of the report */
    size_t n_roles;
    double n_layers, most; /* the largest share */
};

static void
measure(struct map *map)
{
    for (size_t i = 0; i < lmq_report_length(map->tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(map->tensors, i);
        const char *role = string(tensor, "role");
        double layer = number(tensor, "layer");
        size_t known = 0;
        map->most = fmax(map->most, number(tensor, "share"));
        if (!(layer >= 0))
            continue;
        map->n_layers = fmax(map->n_layers, layer + 1);
        while (known < map->n_roles && strcmp(map->roles[known], role) != 0)
            known++;
        if (known == map->n_roles && known < ROLES_MOST)
            map->roles[map->n_roles++] = role;
    }
}

/* A role of a layer may be there twice: experts and a network beside them. */
static void
put_cell(struct lmq_buffer *page, const struct map *map, double layer,
         const char *role)
{
    double share = 0;
    int n = 0;
    char text[NUMBER_SIZE];

    for (size_t i = 0; i < lmq_report_length(map->tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(map->tensors, i);
        if (number(tensor, "layer") == layer &&
            strcmp(string(tensor, "role"), role) == 0) {
            share += number(tensor, "share");
            n++;
        }
    }
    if (n == 0) {
        put(page, "<td>");
        return;
    }
    put(page,
        "<td style='background:color-mix(in srgb,var(--b) %.0f%%,"
        "transparent)'>%s",
        80 * fmin(fmax(share / fmax(map->most, 1e-30), 0), 1),
        figure_text(fabs(share) < 0.1 ? "%.2g" : "%.0f", 100 * share, text));
}

static void
put_map(struct lmq_buffer *page, const struct map *map)
{
    put(page, "<figure><div class=wide><table><tr><th class=text>layer");
    for (size_t i = 0; i < map->n_roles; i++) {
        put(page, "<th>");
        lmq_page_text(page, map->roles[i]);
    }
    put(page, "</tr>");
    for (double layer = 0; layer < map->n_layers; layer++) {
        put(page, "<tr><td class=text>%.0f", layer);
        for (size_t i = 0; i < map->n_roles; i++)
            put_cell(page, map, layer, map->roles[i]);
        put(page, "</tr>");
    }
    put(page, "</table></div><figcaption>How many percent of the divergence go "
              "away when the matrices of a role in a layer are as in the "
              "reference. Errors are not independent: shares need not add up, "
              "and may be below 0.</figcaption></figure>");
}

static void
put_cure(struct lmq_buffer *page, const struct lmq_report *cure)
{
    if (lmq_report_length(cure) == 0)
        return;
    put(page, "<p class=soft>What would cure it, measured together:</p><table>"
              "<tr><th class=text>options of convert<th>divergence removed<th>"
              "bits more per weight</tr>");
    for (size_t i = 0; i < lmq_report_length(cure); i++) {
        const struct lmq_report *step = lmq_report_item(cure, i);
        put(page, "<tr><td class=text><code>");
        lmq_page_text(page, string(step, "options"));
        put(page, "</code><td>%.1f %%<td>%.3f</tr>",
            percent(step, "share"), number(step, "bits_added"));
    }
    put(page, "</table>");
}

void
lmq_page_tensors(struct lmq_buffer *page, const struct lmq_report *attribution)
{
    struct map map = {.tensors = lmq_report_at(attribution, "tensors")};

    if (lmq_report_length(map.tensors) == 0)
        return;
    measure(&map);
    put(page, "<p class=soft>Tensors:</p>");
    lmq_page_shares(page, map.tensors);
    put_map(page, &map);
    put_cure(page, lmq_report_at(attribution, "cure"));
}
