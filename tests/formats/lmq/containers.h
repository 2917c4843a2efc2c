/*
 * containers.h - what the suites of containers share: good ones to begin
 * with, and where in their bytes something stands.
 */
#ifndef LMQ_TESTS_FORMATS_CONTAINERS_H
#define LMQ_TESTS_FORMATS_CONTAINERS_H

#include <stddef.h>

#include "lmquant.h"

/* The small model with a tokenizer, converted; the bytes are freed with
 * free(). */
unsigned char *small_lmq(const struct lmq_convert_options *options, size_t *n);

/* The path of a file that has these bytes, "changed.lmq" in the test's folder;
 * the next one replaces it. */
const char *save_lmq(const unsigned char *bytes, size_t n);

/* lmq_verify() fails with this status and a message that has `text`. */
void assert_verify_refuses(const char *path, enum lmq_status status,
                           const char *text);

/* The record with that name, in the bytes of a file. */
unsigned char *find_record(unsigned char *bytes, size_t n, const char *name);

/* Writes the container again with one more section of type 99. */
unsigned char *with_unknown_section(size_t *n);

#endif
