/*
 * page_plan.c - a plan as one self-contained HTML page: the curve of divergence
 * against size, and what becomes of each matrix.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/c_locale.h"
#include "validate/page/page.h"

struct field {
    double least_x, most_x, least_y, most_y; /* y: logarithms */
};

/* A divergence of 0 has no place on a logarithmic axis. */
static double
height(double kld)
{
    return log10(fmax(kld, 1e-12));
}

static void
widen(struct field *field, const struct lmq_report *list)
{
    for (size_t i = 0; i < lmq_report_length(list); i++) {
        const struct lmq_report *point = lmq_report_item(list, i);
        double kld = number(point, "kld"), bytes = number(point, "bytes");
        if (!(kld > 0))
            continue;
        field->least_x = fmin(field->least_x, bytes);
        field->most_x = fmax(field->most_x, bytes);
        field->least_y = fmin(field->least_y, height(kld));
        field->most_y = fmax(field->most_y, height(kld));
    }
}

static void
put_place(struct lmq_buffer *page, const struct field *field,
          const struct lmq_report *point, const char *format)
{
    double wide = fmax(log(field->most_x / field->least_x), 1e-3);
    double high = fmax(field->most_y - field->least_y, 1e-3);
    double x = log(number(point, "bytes") / field->least_x) / wide;
    double y = (field->most_y - height(number(point, "kld"))) / high;

    put(page, format, PLOT_WIDTH * x, PLOT_HEIGHT * fmin(fmax(y, 0), 1));
}

/* Each says its encoding to whoever points at it. */
static void
put_dots(struct lmq_buffer *page, const struct field *field,
         const struct lmq_report *uniform)
{
    for (size_t i = 0; i < lmq_report_length(uniform); i++) {
        const struct lmq_report *point = lmq_report_item(uniform, i);
        if (!(number(point, "kld") > 0))
            continue;
        put_place(page, field, point,
                  "<path class='dot off' d='M%.1f %.1fh0'><title>");
        put(page, "%s</title></path>", string(point, "name"));
    }
}

static void
put_curve(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *front = lmq_report_at(r, "front");
    const struct lmq_report *uniform = lmq_report_at(r, "uniform");
    const struct lmq_report *plan = lmq_report_at(r, "prediction");
    struct field field = {INFINITY, 0, INFINITY, -INFINITY};
    char top[32], bottom[32];

    widen(&field, front);
    widen(&field, uniform);
    if (!(field.most_x > 0))
        return;
    snprintf(top, sizeof(top), "%.1e", pow(10, field.most_y));
    snprintf(bottom, sizeof(bottom), "%.1e", pow(10, field.least_y));
    put(page, "<h2>Divergence against size</h2><div class=tall>");
    lmq_page_open_chart(page, "Divergence against size",
                        "The front of plans, and all matrices alike.", top,
                        bottom);
    put(page, "<polyline class=line points='");
    for (size_t i = 0; i < lmq_report_length(front); i++)
        if (number(lmq_report_item(front, i), "kld") > 0)
            put_place(page, &field, lmq_report_item(front, i), "%.1f,%.1f ");
    put(page, "' />");
    put_dots(page, &field, uniform);
    if (number(plan, "kld") > 0) {
        put_place(page, &field, plan, "<path class=mark d='M%.1f %.1fV");
        put(page, "%g' /><path class=dot d='", PLOT_HEIGHT);
        put_place(page, &field, plan, "M%.1f %.1fh0' />");
    }
    put(page,
        "</svg></div><div class=x><span>%.3g MB</span><span>%.3g "
        "MB</span></div><div class=name>bytes of the container</div></div>"
        "<figcaption>The line: what plans of any size are estimated to have. "
        "Grey: all matrices in one encoding, measured. The point over a line: "
        "this plan, measured. Both axes are logarithmic.</figcaption></figure>"
        "</div>",
        1e-6 * field.least_x, 1e-6 * field.most_x);
}

static void
put_points(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *uniform = lmq_report_at(r, "uniform");

    put(page, "<h2>All matrices in one encoding</h2><div class=wide><table>"
              "<tr><th class=text>encoding<th>bytes<th>bits per "
              "weight<th>divergence</tr>");
    for (size_t i = 0; i < lmq_report_length(uniform); i++) {
        const struct lmq_report *point = lmq_report_item(uniform, i);
        put(page, "<tr><td class=text>%s<td>%.0f<td>%.3f<td>%.3e</tr>",
            string(point, "name"), number(point, "bytes"),
            number(point, "bits_per_weight"), number(point, "kld"));
    }
    put(page, "</table></div>");
}

static void
put_tensors(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *tensors = lmq_report_at(r, "tensors");

    put(page, "<h2>What becomes of each matrix</h2><div class=wide><table>"
              "<tr><th class=text>matrix<th class=text>encoding<th>bits per "
              "weight<th>divergence alone in %s, or as named<th>in the plan, "
              "estimated</tr>",
        string(r, "probe"));
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        put(page, "<tr><td class='text whole'><code>");
        lmq_page_text(page, string(tensor, "name"));
        put(page, "</code><td class=text>%s", string(tensor, "encoding"));
        if (number(tensor, "group") > 0)
            put(page, "/%.0f%s", number(tensor, "group"),
                number(tensor, "rotated") > 0 ? " rotated" : "");
        put(page, "<td>%.2f<td>%.3e", number(tensor, "bits_per_weight"),
            number(tensor, "kld_alone"));
        if (strcmp(string(tensor, "probe"), string(r, "probe")) != 0)
            put(page, " (%s)", string(tensor, "probe"));
        put(page, "<td>%.3e</tr>", number(tensor, "kld"));
    }
    put(page, "</table></div>");
}

enum lmq_status
lmq_plan_html(const struct lmq_report *r, char **text, struct lmq_error *err)
{
    struct lmq_buffer page = {0};
    const struct lmq_report *p = lmq_report_at(r, "prediction");

    *text = NULL;
    if (p == NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "is no report of lmq_plan_recipe()");
    locale_t former = lmq_c_locale_enter();
    lmq_page_begin(&page, string(r, "input"));
    put(&page, "<h1>A plan for <code>");
    lmq_page_text(&page, string(r, "input"));
    put(&page,
        "</code></h1><p>%.0f bytes, %.3f bits per weight, divergence %.3e "
        "(%.2e to %.2e), measured over %.0f tokens.</p>",
        number(p, "bytes"), number(p, "bits_per_weight"), number(p, "kld"),
        number(p, "low"), number(p, "high"), number(r, "scored"));
    lmq_page_notes(&page, r);
    put_curve(&page, r);
    put_points(&page, r);
    put_tensors(&page, r);
    put(&page, "<h2>The recipe</h2>");
    lmq_page_lines(&page, string(r, "recipe"));
    put(&page, "</html>\n");
    lmq_c_locale_leave(former);
    *text = lmq_buffer_text(&page);
    return *text == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_plan_write_html(const struct lmq_report *report, const char *path,
                    int replaces, struct lmq_error *err)
{
    char *text;
    enum lmq_status status = lmq_plan_html(report, &text, err);

    return status == LMQ_OK ? lmq_page_write(text, path, replaces, err)
                            : status;
}
