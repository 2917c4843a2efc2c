/*
 * page_several.c - what a page says about several models together: the table,
 * the divergence against the bytes, the differences.
 */
#include "config.h"

#include "validate/page/page.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

static const char *
last_name(const struct lmq_report *model)
{
    const char *path = string(model, "protocol.model.path");
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* The number of a model and the last name in its path, which is all of it if
 * another model ends alike: what is long makes a table hard to read. The whole
 * path stands above what is said of the model by itself. */
static void
put_name(struct lmq_buffer *page, const struct lmq_report *models, size_t at)
{
    const struct lmq_report *model = lmq_report_item(models, at);
    const char *name = last_name(model);

    for (size_t i = 0; i < lmq_report_length(models); i++)
        if (i != at &&
            strcmp(last_name(lmq_report_item(models, i)), name) == 0)
            name = string(model, "protocol.model.path");
    put(page, "%zu&ensp;", at + 1);
    lmq_page_text(page, name);
}

/* ---- The table ---- */

static bool
is_on_front(const struct lmq_report *r, size_t model)
{
    const struct lmq_report *front = lmq_report_at(r, "front");

    for (size_t i = 0; i < lmq_report_length(front); i++)
        if (number(lmq_report_item(front, i), "") == (double)model)
            return true;
    return false;
}

static void
put_model_row(struct lmq_buffer *page, const struct lmq_report *r, size_t i)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    const struct lmq_report *m = lmq_report_item(models, i);
    const char *result = string(m, "verdict.result");
    char error[NUMBER_SIZE], ratio[NUMBER_SIZE];

    put(page, "<tr><td>%s<td class=text>",
        is_on_front(r, i) ? "<span class=front title='on the front'>&#9679;"
                            "</span>"
                          : "");
    put_name(page, models, i);
    put(page,
        "<td class=%s>%s<td>%.3f<td>%.2f<td>%s<td>%.2e "
        "<span class=soft>&plusmn;&nbsp;%s</span><td>%.2e<td>%.2f<td>%.2f"
        "</tr>",
        strcmp(result, "PASS") == 0 ? "good" : "bad", result,
        number(m, "protocol.model.bits_per_weight"),
        1e-6 * number(m, "protocol.model.bytes"),
        figure_text("%.5f", number(m, "ppl_ratio"), ratio),
        number(m, "kld.mean"),
        figure_text("%.0e", larger_error(m, "kld.stderr"), error),
        number(m, "kld.p99"),
        100 * number(m, "top1_agreement"), 100 * number(m, "flips.rate"));
}

static void
put_table(struct lmq_buffer *page, const struct lmq_report *r)
{
    put(page, "<div class=wide><table><tr><th><th class=text>model<th>verdict"
              "<th>bits per<br>weight<th>MB<th>perplexity<br>ratio<th>KL "
              "divergence,<br>mean<th>99&nbsp;%%<th>top&nbsp;1,<br>%%<th>"
              "flips,<br>%%</tr>");
    for (size_t i = 0; i < lmq_report_length(lmq_report_at(r, "models")); i++)
        put_model_row(page, r, i);
    put(page, "</table></div><p class=soft><span class=front>&#9679;</span> "
              "on the front: none of the others is smaller and nearer to the "
              "reference. Top&nbsp;1: the likeliest token is the same. Flips: "
              "it is the one that follows for one of the two only.</p>");
}

/* ---- The scatter ---- */

struct frame {
    double low, high;   /* of the logarithm of the divergence */
    double most;        /* bytes on the right */
};

/* Whole powers of ten around all that is not 0. */
static struct frame
find_frame(const struct lmq_report *models)
{
    struct frame frame = {.low = 0, .high = -300};
    bool has_any = false;

    for (size_t i = 0; i < lmq_report_length(models); i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        double kld = number(m, "kld.mean");
        frame.most = fmax(frame.most, number(m, "protocol.model.bytes"));
        if (!(kld > 0))
            continue;
        frame.low = has_any ? fmin(frame.low, log10(kld)) : log10(kld);
        frame.high = fmax(frame.high, log10(kld));
        has_any = true;
    }
    frame.low = floor(frame.low);
    frame.high = ceil(frame.high);
    if (!(frame.high > frame.low))
        frame.high = frame.low + 1;
    frame.most *= 1.05;
    return frame;
}

static double
x_of(const struct frame *frame, const struct lmq_report *model)
{
    double bytes = number(model, "protocol.model.bytes");

    return frame->most > 0 ? bytes / frame->most : 0;
}

/* From above; no divergence is at the bottom. */
static double
y_of(const struct frame *frame, const struct lmq_report *model)
{
    double kld = number(model, "kld.mean");
    double part = kld > 0 ? (log10(kld) - frame->low) /
                                (frame->high - frame->low)
                          : 0;

    return 1 - fmin(fmax(part, 0), 1);
}

static void
put_front_line(struct lmq_buffer *page, const struct lmq_report *r,
               const struct frame *frame)
{
    const struct lmq_report *front = lmq_report_at(r, "front");
    const struct lmq_report *models = lmq_report_at(r, "models");

    put(page, "<path class=front d='");
    for (size_t i = 0; i < lmq_report_length(front); i++) {
        size_t at = (size_t)number(lmq_report_item(front, i), "");
        const struct lmq_report *m = lmq_report_item(models, at);
        double x = PLOT_WIDTH * x_of(frame, m);
        double y = PLOT_HEIGHT * y_of(frame, m);
        if (i == 0)
            put(page, "M%.1f 0V%.1f", x, y);
        else
            put(page, "H%.1fV%.1f", x, y);
    }
    put(page, "H%g' />", PLOT_WIDTH);
}

/* The room that a number needs, in parts of a narrow page's chart. */
#define TAG_WIDTH 0.08
#define TAG_HEIGHT 0.046

struct tag {
    double x, y;
};

static bool
is_free(const struct tag *tags, size_t n, double x, double y)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(tags[i].x - x) < TAG_WIDTH &&
            fabs(tags[i].y - y) < TAG_HEIGHT * 0.99)
            return false;
    return y >= 0 && y <= 1;
}

/* A number is at its point, or in the nearest room above or below it. */
static struct tag
find_room(const struct tag *tags, size_t n, double x, double y)
{
    for (size_t i = 1; i <= 2 * n + 1; i++) {
        double at = y + TAG_HEIGHT * (double)(i / 2) * (i % 2 != 0 ? 1 : -1);
        if (is_free(tags, n, x, at))
            return (struct tag){x, at};
    }
    return (struct tag){x, y};
}

/* Points, and above the drawing their numbers. */
static void
put_places(struct lmq_buffer *page, const struct lmq_report *r,
           const struct frame *frame)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    size_t n = lmq_report_length(models);
    struct tag *tags = calloc(n + 1, sizeof(*tags));

    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        put(page, "<path class='dot%s' d='M%.1f %.1fh0' />",
            is_on_front(r, i) ? "" : " off", PLOT_WIDTH * x_of(frame, m),
            PLOT_HEIGHT * y_of(frame, m));
    }
    put(page, "</svg>");
    for (size_t i = 0; i < n && tags != NULL; i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        tags[i] = find_room(tags, i, x_of(frame, m), y_of(frame, m));
        put(page, "<span class=tag style='left:%.2f%%;top:%.2f%%'>%zu</span>",
            100 * tags[i].x, 100 * tags[i].y, i + 1);
    }
    if (tags == NULL)
        page->has_failed = true;
    free(tags);
}

static void
put_scatter(struct lmq_buffer *page, const struct lmq_report *r)
{
    struct frame frame = find_frame(lmq_report_at(r, "models"));
    char top[32], bottom[32];

    snprintf(top, sizeof(top), "1e%d", (int)frame.high);
    snprintf(bottom, sizeof(bottom), "1e%d", (int)frame.low);
    put(page, "<h2>Divergence against bytes</h2><div class=tall>");
    lmq_page_open_chart(page, "Mean KL divergence against bytes",
                        "A point for each model: bytes to the right, mean "
                        "divergence upwards on a logarithmic axis. A line "
                        "leads along those that no other one beats.",
                        top, bottom);
    for (double p = frame.low + 1; p < frame.high; p++)
        put(page, "<path class=axis d='M0 %.1fH%g' />",
            PLOT_HEIGHT * (frame.high - p) / (frame.high - frame.low),
            PLOT_WIDTH);
    put_front_line(page, r, &frame);
    put_places(page, r, &frame);
    put(page, "</div><div class=x><span>0</span><span>%.2f MB</span></div>"
              "<div class=name>bytes of the files</div></div><figcaption>Mean "
              "KL divergence in nats, on a logarithmic axis; none at all is "
              "at the bottom. Numbers are those of the table; the "
              "line is the front: nothing is below it to its left."
              "</figcaption></figure></div>",
        1e-6 * frame.most);
}

/* ---- Differences ---- */

/* The second less the first, or the other way round. */
static void
put_difference(struct lmq_buffer *page, const struct lmq_report *r,
               const struct lmq_report *pair, bool is_reversed)
{
    double sign = is_reversed ? -1 : 1;
    double difference = sign * number(pair, "kld.difference");
    double error = larger_error(pair, "kld.stderr");
    bool is_known = fabs(difference) > 2 * error;
    const struct lmq_report *models = lmq_report_at(r, "models");
    char kld_error[NUMBER_SIZE], nll_error[NUMBER_SIZE];
    double first = number(pair, is_reversed ? "second" : "first");
    double second = number(pair, is_reversed ? "first" : "second");

    put(page, "<tr><td class=text>");
    put_name(page, models, (size_t)second);
    put(page, "<td class=text>");
    put_name(page, models, (size_t)first);
    put(page, "<td>%+.3e<td>%s<td>%+.6f<td>%s<td>%+.3f<td>%s</tr>",
        difference, figure_text("%.1e", error, kld_error),
        sign * number(pair, "delta_nll.difference"),
        figure_text("%.1e", larger_error(pair, "delta_nll.stderr"),
                    nll_error),
        sign * 100 * number(pair, "top1_agreement.difference"),
        is_known ? difference > 0 ? "farther" : "nearer" : "not told apart");
}

static void
open_differences(struct lmq_buffer *page)
{
    put(page, "<div class=wide><table><tr><th class=text>this one<th "
              "class=text>less that one<th>KL divergence<th>&plusmn;<th>nats "
              "per<br>token<th>&plusmn;<th>top&nbsp;1,<br>%%<th>it is</tr>");
}

/* Each after the one that is next nearer to the reference. */
static void
put_steps(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *pairs = lmq_report_at(r, "differences");
    const struct lmq_report *ranking = lmq_report_at(r, "ranking");

    for (size_t i = 1; i < lmq_report_length(ranking); i++) {
        double near = number(lmq_report_item(ranking, i - 1), "");
        double far = number(lmq_report_item(ranking, i), "");
        for (size_t j = 0; j < lmq_report_length(pairs); j++) {
            const struct lmq_report *pair = lmq_report_item(pairs, j);
            if (number(pair, "first") == fmin(near, far) &&
                number(pair, "second") == fmax(near, far))
                put_difference(page, r, pair, far < near);
        }
    }
}

static void
put_differences(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *pairs = lmq_report_at(r, "differences");
    size_t n = lmq_report_length(pairs);

    put(page, "<h2>Between them</h2>");
    open_differences(page);
    put_steps(page, r);
    put(page, "</table></div><p class=soft>From the nearest on, each less the "
              "one before it. Paired: both saw the same places, so what is "
              "hard for both cancels. A difference is known when it is more "
              "than twice its standard error, the larger of the one by token "
              "and the one by document.</p>");
    if (n < 2)
        return;
    put(page, "<details><summary>all %zu pairs</summary>", n);
    open_differences(page);
    for (size_t i = 0; i < n; i++)
        put_difference(page, r, lmq_report_item(pairs, i), false);
    put(page, "</table></div></details>");
}

void
lmq_page_several(struct lmq_buffer *page, const struct lmq_report *r)
{
    put_table(page, r);
    put_scatter(page, r);
    put_differences(page, r);
}
