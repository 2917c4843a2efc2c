/*
 * page.h - the parts of a validation report's page.
 */
#ifndef LMQ_VALIDATE_PAGE_H
#define LMQ_VALIDATE_PAGE_H

#include <stddef.h>

#include "base/buffer.h"
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

/* ---- page_charts.c ---- */

/* Text from elsewhere: nothing in it is markup. */
void lmq_page_text(struct lmq_buffer *page, const char *text);

/* Divergence on a logarithmic axis, with the percentiles as lines. */
void lmq_page_histogram(struct lmq_buffer *page, const struct lmq_report *r);

/* A line through values from 0 on. */
void lmq_page_line_chart(struct lmq_buffer *page, const char *id,
                         const char *title, const char *description,
                         const struct lmq_report *list, const char *key,
                         const char *axis, const char *first,
                         const char *last, const char *caption);

/* Bars: the first of a long list, which is sorted; the rest on request. */
void lmq_page_shares(struct lmq_buffer *page, const struct lmq_report *list);
void lmq_page_bar_row(struct lmq_buffer *page, const char *label, double part);

/* ---- page_model.c ---- */

/* All sections on one judged model. */
void lmq_page_model(struct lmq_buffer *page, const struct lmq_report *r);

#endif
