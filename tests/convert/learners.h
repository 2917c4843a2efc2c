/*
 * learners.h - a small model of any family, with a tokenizer, and a text to
 * learn from.
 */
#ifndef LMQ_TESTS_CONVERT_LEARNERS_H
#define LMQ_TESTS_CONVERT_LEARNERS_H

#include "lmquant.h"
#include "tests/families/family.h"

/* "text.txt" in the test's folder, of n bytes. */
const char *some_text(size_t n);

/* "family" in the test's folder, and "tokenizer.bin". */
void save_learner(const struct family *family);

/* ---- Learning ---- */

/* 4 bits and small windows, by some of this text; by what the model writes. */
struct lmq_convert_options by_text(const char *const *text);
struct lmq_convert_options by_own_text(void);

enum lmq_status try_convert(const char *from, const char *tokenizer,
                            const char *to,
                            const struct lmq_convert_options *options,
                            struct lmq_report **report, struct lmq_error *err);
/* Stopped when the progress is told the *left-th time. */
enum lmq_status try_to_stop(const char *from, const char *tokenizer,
                            const char *to,
                            const struct lmq_convert_options *options,
                            int *left, struct lmq_report **report,
                            struct lmq_error *err);
/* Stopped again and again, each time after `step` calls more, until it comes
 * to its end; returns how often it was stopped. */
int calibrate_by_and_by(const char *from, const char *tokenizer,
                        const char *to, struct lmq_convert_options options,
                        int step, struct lmq_report **report);
/* The bundled model. */
struct lmq_report *calibrate(const char *to,
                             const struct lmq_convert_options *options);

/* ---- What must be ---- */

/* All that reports say of tensors, and their notes. */
void assert_same_findings(const struct lmq_report *a,
                          const struct lmq_report *b);
/* The family that was saved learns the same from one thread and from three. */
void assert_learns_alike(const struct family *family,
                         struct lmq_convert_options options);
/* So the bundled model is not calibrated. */
void assert_not_calibrated(const struct lmq_convert_options *options,
                           enum lmq_status expected, const char *words);

#endif
