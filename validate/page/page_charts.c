/*
 * page_charts.c - text and charts of a page.
 *
 * Charts are SVG, each with a title and a description for those who do not see
 * it; all colours come from the page's style.
 */
#include "config.h"

#include "validate/page/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"

/* ---- Text ---- */

/* Returns its bytes. What is no character, or would not be seen, is shown. */
static size_t
put_char(struct lmq_buffer *page, const unsigned char *p, size_t left)
{
    size_t n = lmq_utf8_length(p, left);

    if (n > 0 && lmq_utf8_is_shown(lmq_utf8_decode(p, n))) {
        put(page, "%.*s", (int)n, (const char *)p);
        return n;
    }
    put(page, "\\x%02x", *p);
    return 1;
}

static void
put_text(struct lmq_buffer *page, const char *text, const char *line_end)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n;

    for (size_t left = strlen(text); left > 0; p += n, left -= n) {
        n = 1;
        switch (*p) {
        case '&':
            put(page, "&amp;");
            break;
        case '<':
            put(page, "&lt;");
            break;
        case '>':
            put(page, "&gt;");
            break;
        case '"':
            put(page, "&quot;");
            break;
        case '\n':
            put(page, "%s", line_end);
            break;
        default:
            n = put_char(page, p, left);
        }
    }
}

void
lmq_page_text(struct lmq_buffer *page, const char *text)
{
    put_text(page, text, "\xe2\x8f\x8e"); /* a return symbol */
}

void
lmq_page_lines(struct lmq_buffer *page, const char *text)
{
    put(page, "<pre>");
    put_text(page, text, "\n");
    put(page, "</pre>");
}

/* ---- Charts ---- */

void
lmq_page_open_chart(struct lmq_buffer *page, const char *title,
                    const char *description, const char *top,
                    const char *bottom)
{
    put(page,
        "<figure><div class=plot><div class=y><span>%s</span><span>%s</span>"
        "</div><div class=field><svg viewBox='0 -4 %g %g' "
        "preserveAspectRatio=none role=img aria-label='%s'><title>%s</title>"
        "<desc>%s</desc><path class=axis d='M0 %gH%g' />",
        top, bottom, PLOT_WIDTH, PLOT_HEIGHT + 8, title, title,
        description, PLOT_HEIGHT, PLOT_WIDTH);
}

static double
plot_y(double part)
{
    return PLOT_HEIGHT - part * PLOT_HEIGHT;
}

/* The percentiles by number: lines may be too near for letters. */
static void
put_marks(struct lmq_buffer *page, const struct lmq_report *r, double from,
          double to)
{
    static const char *const paths[] = {"kld.median", "kld.p90", "kld.p99",
                                        "kld.max"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        double value = number(r, paths[i]);
        if (!(value > 0))
            continue;
        double part =
            fmin(fmax((log10(value) - from) / (to - from), 0), 1);
        put(page, "<path class=mark d='M%.1f 0V%g' />", part * PLOT_WIDTH,
            PLOT_HEIGHT);
    }
}

void
lmq_page_histogram(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *counts =
        lmq_report_at(r, "kld.histogram.counts");
    double from = number(r, "kld.histogram.log10_from");
    double to = number(r, "kld.histogram.log10_to"), most = 1;
    size_t n = lmq_report_length(counts);
    char text[64];

    for (size_t i = 0; i < n; i++)
        most = fmax(most, number(lmq_report_item(counts, i), ""));
    put(page, "<h2>Divergence, position by position</h2>");
    snprintf(text, sizeof(text), "%.0f", most);
    lmq_page_open_chart(page, "Histogram of the KL divergence",
                        "How many positions have which divergence, on a "
                        "logarithmic axis; lines mark percentiles.",
                        text, "0");
    for (size_t i = 0; i < n; i++) {
        double part = number(lmq_report_item(counts, i), "") / most;
        double width = PLOT_WIDTH / (double)n;
        put(page, "<rect class=bar x=%.1f y=%.1f width=%.1f height=%.1f />",
            width * (double)i, plot_y(part), width - 1.5,
            part * PLOT_HEIGHT);
    }
    put_marks(page, r, from, to);
    put(page, "</svg></div><div class='x ticks'>");
    for (double p = from; p <= to; p += 2)
        put(page, "<span style='left:%.2f%%'>1e%.0f</span>",
            100 * (p - from) / (to - from), p);
    put(page, "</div><div class=name>KL divergence, nats</div></div>"
              "<figcaption><span class=key>Lines</span>, from the left: "
              "50&nbsp;%% (%.2e), 90&nbsp;%% (%.2e), 99&nbsp;%% (%.2e), the "
              "largest (%.2e). Each scored position counts once. The mean is "
              "ruled by the few on the right; the median is what a typical "
              "token sees.</figcaption></figure>",
        number(r, "kld.median"), number(r, "kld.p90"), number(r, "kld.p99"),
        number(r, "kld.max"));
}

static void
put_points(struct lmq_buffer *page, const struct lmq_report *list,
           const char *key, double most)
{
    size_t n = lmq_report_length(list);

    put(page, "<polyline class=line points='");
    for (int dots = 0; dots < 2; dots++) {
        for (size_t i = 0; i < n && (dots == 0 || n <= 64); i++) {
            double value = number(lmq_report_item(list, i), key);
            double x = PLOT_WIDTH * (n < 2 ? 0.5 : (double)i / (double)(n - 1));
            double y = plot_y(most > 0 ? value / most : 0);
            if (value == value)
                put(page, dots ? "M%.1f %.1fh0" : "%.1f,%.1f ", x, y);
        }
        put(page, dots ? "' />" : "' /><path class=dot d='");
    }
}

void
lmq_page_line_chart(struct lmq_buffer *page, const char *title,
                    const char *description, const struct lmq_report *list,
                    const char *key, const char *axis, const char *first,
                    const char *last, const char *caption)
{
    double most = 0;
    char text[64];

    for (size_t i = 0; i < lmq_report_length(list); i++) {
        double value = number(lmq_report_item(list, i), key);
        most = value > most ? value : most;
    }
    put(page, "<h2>%s</h2>", title);
    snprintf(text, sizeof(text), "%.3g", most);
    lmq_page_open_chart(page, title, description, text, "0");
    put_points(page, list, key, most);
    put(page, "</svg></div><div class=x><span>");
    lmq_page_text(page, first);
    put(page, "</span><span>");
    lmq_page_text(page, last);
    put(page, "</span></div><div class=name>%s</div></div><figcaption>%s"
              "</figcaption></figure>",
        axis, caption);
}

/* Horizontal bars, in parts of the widest. */
static void
put_bars(struct lmq_buffer *page, const struct lmq_report *list, size_t from,
         size_t to)
{
    double most = 1e-30;

    for (size_t i = 0; i < lmq_report_length(list); i++)
        most = fmax(most, number(lmq_report_item(list, i), "share"));
    put(page, "<table class=bars>");
    for (size_t i = from; i < to; i++) {
        const struct lmq_report *row = lmq_report_item(list, i);
        double share = number(row, "share");
        put(page, "<tr><td><code>");
        lmq_page_text(page, string(row, "name"));
        put(page,
            "</code><td><svg class=strip viewBox='0 0 300 12' "
            "aria-hidden=true preserveAspectRatio=none><rect class=bar "
            "width=%.1f height=12 /></svg><td>%.4g %%</tr>",
            300 * fmin(fmax(share / most, 0), 1), 100 * share);
    }
    put(page, "</table>");
}

#define ROWS_AT_ONCE 12

/* The first of a long list, which is sorted; the rest on request. */
void
lmq_page_shares(struct lmq_buffer *page, const struct lmq_report *list)
{
    size_t n = lmq_report_length(list);
    size_t first = n <= ROWS_AT_ONCE + 2 ? n : ROWS_AT_ONCE;

    put_bars(page, list, 0, first);
    if (first == n)
        return;
    put(page, "<details><summary>%zu more</summary>", n - first);
    put_bars(page, list, first, n);
    put(page, "</details>");
}

void
lmq_page_bar_row(struct lmq_buffer *page, const char *label, double part)
{
    put(page,
        "<tr><td>%s<td><svg class=strip viewBox='0 0 300 12' "
        "aria-hidden=true preserveAspectRatio=none><rect "
        "class=bar width=%.1f height=12 /></svg><td>%.3f %%</tr>",
        label, 300 * fmin(fmax(part, 0), 1), 100 * part);
}
