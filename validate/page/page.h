/*
 * page.h - the parts of a validation report's page.
 */
#ifndef LMQ_VALIDATE_PAGE_H
#define LMQ_VALIDATE_PAGE_H

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/text/buffer.h"
#include "lmquant.h"

#define put lmq_buffer_print /* what failed shows at the end */

static inline double
number(const struct lmq_report *node, const char *path)
{
    return lmq_report_number(node, path);
}

static inline const char *
string(const struct lmq_report *node, const char *path)
{
    return lmq_report_string(node, path);
}

static inline const char *
plural(double n)
{
    return n == 1 ? "" : "s";
}

/* Of a share, for "%.1f": never "-0.0". */
static inline double
percent(const struct lmq_report *node, const char *share)
{
    double percent = 100 * number(node, share);

    return fabs(percent) < 0.05 ? 0 : percent;
}

/* The larger of a standard error and the one by document, if that is known. */
static inline double
larger_error(const struct lmq_report *node, const char *name)
{
    char by_document[64];

    snprintf(by_document, sizeof(by_document), "%s_by_document", name);
    return fmax(number(node, name), number(node, by_document));
}

#define NUMBER_SIZE 32

/* "?" where there is none: an error that a single token leaves unknown, or what
 * is too large to be a number. */
static inline const char *
figure_text(const char *format, double value, char text[NUMBER_SIZE])
{
    if (isnan(value))
        format = "?";
    snprintf(text, NUMBER_SIZE, format, value);
    return text;
}

/* ---- report_html.c ---- */

/* Remarks of a report, if it has any. */
void lmq_page_notes(struct lmq_buffer *page, const struct lmq_report *r);

/* All before the heading. */
void lmq_page_begin(struct lmq_buffer *page, const char *title);

/* Writes a page, which is released in any case. */
enum lmq_status lmq_page_write(char *text, const char *path, int replaces,
                               struct lmq_error *err);

/* ---- page_charts.c ---- */

/* Text from elsewhere: nothing in it is markup. */
void lmq_page_text(struct lmq_buffer *page, const char *text);
/* The same with its lines. */
void lmq_page_lines(struct lmq_buffer *page, const char *text);

/* The units of a drawing, which is stretched to the room that it gets; so
 * strokes keep their width, and all letters stand beside it or above it. */
#define PLOT_WIDTH 1000.0
#define PLOT_HEIGHT 200.0

/* Up to and into its <svg>, in a <div class=field>: the caller closes both,
 * names the axis, and ends the plot and the figure. */
void lmq_page_open_chart(struct lmq_buffer *page, const char *title,
                         const char *description, const char *top,
                         const char *bottom);

/* Divergence on a logarithmic axis, with the percentiles as lines. */
void lmq_page_histogram(struct lmq_buffer *page, const struct lmq_report *r);

/* A line through values from 0 on. */
void lmq_page_line_chart(struct lmq_buffer *page, const char *title,
                         const char *description,
                         const struct lmq_report *list, const char *key,
                         const char *axis, const char *first,
                         const char *last, const char *caption);

/* Bars: the first of a long list, which is sorted; the rest on request. */
void lmq_page_shares(struct lmq_buffer *page, const struct lmq_report *list);
void lmq_page_bar_row(struct lmq_buffer *page, const char *label, double part);

/* ---- page_model.c ---- */

/* "PASS", "FAIL: the gate". */
void lmq_page_verdict(struct lmq_buffer *page, const struct lmq_report *r);
/* All sections on one judged model. */
void lmq_page_model(struct lmq_buffer *page, const struct lmq_report *r);

/* ---- page_tensors.c ---- */

/* The part of an attribution to each tensor, if there is one. */
void lmq_page_tensors(struct lmq_buffer *page,
                      const struct lmq_report *attribution);

/* ---- page_several.c ---- */

/* What stands before the sections on each of several. */
void lmq_page_several(struct lmq_buffer *page, const struct lmq_report *r);

#endif
