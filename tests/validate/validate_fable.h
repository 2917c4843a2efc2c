/*
 * validate_fable.h - what the suites of validate share.
 */
#ifndef LMQ_TESTS_VALIDATE_VALIDATE_FABLE_H
#define LMQ_TESTS_VALIDATE_VALIDATE_FABLE_H

#include <stddef.h>

#include "lmquant.h"

#define CONTEXT 96

const char *fable(const char *name);

struct lmq_checkpoint *open_with_tokenizer(const char *path);

enum lmq_status try_validate(const char *reference, const char *judged,
                             const struct lmq_validate_options *options,
                             const struct lmq_progress *progress,
                             struct lmq_report **report, int *is_partial,
                             struct lmq_error *err);

struct lmq_report *validate(const char *reference, const char *judged,
                            const struct lmq_validate_options *options);

const char *quantize(const char *from, const char *name);

/* One text and the window of these tests. */
struct lmq_validate_options usual_options(const char *const *texts);

char *first_lines(const char *name, size_t n);

const char *short_text(const char *name, size_t n);

#endif
