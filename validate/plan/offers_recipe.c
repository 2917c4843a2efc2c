/*
 * offers_recipe.c - a choice as a recipe: lmquant-recipe(5).
 *
 * A rule for each role and encoding, with the layers that have it; what is of
 * experts stands behind what is not, since a role's name is that of both.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/text/buffer.h"
#include "validate/plan/offers.h"

struct writing {
    const struct lmq_offers *offers;
    const struct lmq_units *units;
    const size_t *chosen;
    struct lmq_buffer text;
};

static bool
is_same_rule(const struct writing *writing, size_t a, size_t b)
{
    const struct lmq_unit *x = &writing->units->units[a];
    const struct lmq_unit *y = &writing->units->units[b];

    return x->role == y->role && x->has_items == y->has_items &&
           writing->chosen[a] == writing->chosen[b];
}

/* "0, 2-5", from this unit's layer on; the units are in the order of theirs. */
static void
put_layers(struct writing *writing, size_t first)
{
    int32_t begin = -1, end = -2;
    bool is_next = false;

    lmq_buffer_print(&writing->text, "  layers: ");
    for (size_t i = first; i <= writing->units->n; i++) {
        bool is_last = i == writing->units->n;
        int32_t layer = is_last ? -1 : writing->units->units[i].layer;
        if (!is_last && !is_same_rule(writing, first, i))
            continue;
        if (!is_last && layer == end + 1) {
            end = layer;
            continue;
        }
        if (begin >= 0)
            lmq_buffer_print(&writing->text, is_next ? ", %d" : "%d",
                             (int)begin);
        if (begin >= 0 && end > begin)
            lmq_buffer_print(&writing->text, "-%d", (int)end);
        is_next |= begin >= 0;
        begin = end = layer;
    }
    lmq_buffer_print(&writing->text, "\n");
}

static void
put_rule(struct writing *writing, size_t index)
{
    const struct lmq_unit *unit = &writing->units->units[index];
    const struct lmq_offer *offer =
        writing->offers->list[writing->chosen[index]];
    const char *role = lmq_role_name(unit->role);

    if (unit->is_tied)
        lmq_buffer_print(&writing->text, "- match: [%s, %s]\n", role,
                         lmq_role_name(LMQ_ROLE_HEAD));
    else
        lmq_buffer_print(&writing->text, "- match: %s\n", role);
    if (unit->layer >= 0)
        put_layers(writing, index);
    if (unit->has_items && lmq_role_is_of_experts(unit->role))
        lmq_buffer_print(&writing->text, "  experts: 0-\n");
    lmq_buffer_print(&writing->text, "  encoding: %s\n", offer->encoding);
    if (offer->group > 0)
        lmq_buffer_print(&writing->text, "  group: %u\n", offer->group);
    if (offer->rotates)
        lmq_buffer_print(&writing->text, "  rotate: yes\n");
}

char *
lmq_offers_recipe(const struct lmq_offers *offers,
                  const struct lmq_units *units, const size_t *chosen,
                  const char *remarks)
{
    struct writing writing = {.offers = offers, .units = units,
                              .chosen = chosen};

    lmq_buffer_print(&writing.text, "%sversion: 1\nrules:\n", remarks);
    for (int items = 0; items < 2; items++)
        for (size_t i = 0; i < units->n; i++) {
            bool is_known = false;
            for (size_t j = 0; j < i && !is_known; j++)
                is_known = is_same_rule(&writing, i, j);
            if (!is_known && units->units[i].has_items == (items > 0))
                put_rule(&writing, i);
        }
    return lmq_buffer_text(&writing.text);
}
