/*
 * suite.h - what the Check suites share: a main, a folder of their own for
 * each test, random numbers whose seed is printed.
 */
#ifndef LMQ_TESTS_BUILD_SUITE_H
#define LMQ_TESTS_BUILD_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/checkpoint.h"
#include "lmquant.h"

/* Runs the tests, each in its own process and folder; returns main's exit
 * code. */
int run_suite(const char *name, const TTest *const *tests, size_t n);

/* The same, each test once for every number (_i) of [first, end). */
int run_suite_over(const char *name, const TTest *const *tests, size_t n,
                   size_t first, size_t end);

#define RUN_SUITE(name, tests)                                                \
    run_suite(name, (const TTest *const *)(tests),                            \
              sizeof(tests) / sizeof((tests)[0]))

#define RUN_SUITE_OVER(name, tests, first, end)                               \
    run_suite_over(name, (const TTest *const *)(tests),                       \
                   sizeof(tests) / sizeof((tests)[0]), first, end)

/* ck_assert_msg() for loops: Check's own makes a system call each time. */
#define REQUIRE(condition, ...)                                               \
    do {                                                                      \
        if (!(condition))                                                     \
            ck_abort_msg(__VA_ARGS__);                                        \
    } while (0)

/* fmax() without what makes gcc 12 for ARM fail in loops, at -O3. */
static inline double
larger(double a, double b)
{
    return b > a ? b : a;
}

/* For struct lmq_progress: says stop at the call with the number that `left`,
 * an int, has; 0: never. */
int stop_when_due(void *left, const char *stage, uint64_t done,
                  uint64_t total);

/* A locale of the machine that writes 0,5, until setlocale(LC_ALL, "C"); false,
 * and says so, if there is none. */
bool choose_decimal_comma(void);

/* A path in the test's folder, which is removed after it. A few may be alive
 * at a time. */
const char *in_folder(const char *name);

/* Everything in the test's folder; 0: empty. */
size_t files_in_folder(void);

void write_file(const char *path, const void *bytes, size_t n);
/* Freed with free(); fails the test if the file cannot be read. */
unsigned char *read_file(const char *path, size_t *n);
void assert_same_files(const char *a, const char *b);

/* A file of the distribution, "files/good-plain.safetensors". */
const char *source_path(const char *name);

/* ---- Checkpoints ---- */

/* Opens it, or fails the test with the library's own message. */
struct lmq_checkpoint *open_checkpoint(const char *path);

/* Opening fails with this status, and the message or its path has `text`. */
void assert_refused(const char *path, enum lmq_status status,
                    const char *text);

/* All elements of the tensor with that name; freed with free(). */
float *read_tensor(struct lmq_checkpoint *checkpoint, const char *name,
                   size_t *n);

/* lmq_convert(), or the test fails. options may be NULL. The report, which is
 * returned, is freed with lmq_report_free(). */
struct lmq_report *convert(const char *from, const char *to,
                           const struct lmq_convert_options *options);

/* lmq_diff(), or the test fails. */
struct lmq_report *diff(const char *path_a, const char *path_b, int threads);

/* lmq_verify() finds nothing wrong. */
void assert_intact(const char *path);

/* Two containers have the same tensors, byte for byte and in the same place. */
void assert_same_tensors(const char *path_a, const char *path_b);

/* ---- Random numbers ---- */

/* LMQUANT_SEED, or 1: who runs the tests twice gets the same answer. Printed
 * so that a failure can be repeated; `make check-long` takes other seeds. */
uint64_t random_seed(void);

struct random {
    uint64_t state;
};

uint64_t random_u64(struct random *random);
/* Of the half-open range from 0 to `n`. */
size_t random_below(struct random *random, size_t n);
/* Normal, mean 0 and deviation 1. */
double random_normal(struct random *random);

#endif
