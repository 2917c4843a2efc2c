/*
 * report.h - builds the trees behind struct lmq_report.
 *
 * A report is a JSON value in memory: everything that is shown (text, JSON,
 * YAML, gates) reads the same tree, so the views cannot disagree.
 */
#ifndef LMQ_BASE_REPORT_H
#define LMQ_BASE_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "lmquant.h"

/* The report owns the value from here on. */
static inline struct lmq_report *
lmq_report_from(json_t *value)
{
    return (struct lmq_report *)value;
}

/* A number; null if it is not finite, as JSON wants it. */
json_t *lmq_json_number(double value);
json_t *lmq_json_size(uint64_t value);

/* Text from a file: what is no UTF-8 or no printable character is escaped. */
json_t *lmq_json_text(const char *text);

#endif
