/*
 * exports.h - what the suites of exports share.
 */
#ifndef LMQ_TESTS_CONVERT_EXPORTS_H
#define LMQ_TESTS_CONVERT_EXPORTS_H

#include <stdbool.h>

#include "formats/checkpoint/checkpoint.h"
#include "lmquant.h"
#include "tests/build/build_checkpoint.h"

/* Rows that 32 divides, and a vocabulary that no tile does. */
extern const struct build_sizes even;

struct lmq_report *export_to(const char *from, const char *to,
                             const struct lmq_export_options *options);

void assert_export_refuses(struct lmq_checkpoint *checkpoint, const char *to,
                           const struct lmq_export_options *options,
                           enum lmq_status status, const char *text);

void assert_identical(const char *path_a, const char *path_b);

/* Where the export has no words for the description. */
void assert_equal_weights(const char *path_a, const char *path_b);

bool exists(const char *path);

#endif
