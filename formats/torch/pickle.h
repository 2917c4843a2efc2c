/*
 * pickle.h - the values that a Python pickle describes, without Python.
 *
 * A pickle is a program for a little machine that can call anything. Here it
 * is parsed: opcodes and globals are those of closed lists, and what would be
 * a call becomes a value that says what was to be called with which
 * arguments. Nothing is ever called.
 */
#ifndef LMQ_FORMATS_TORCH_PICKLE_H
#define LMQ_FORMATS_TORCH_PICKLE_H

#include <stddef.h>

#include "formats/torch/pickle_value.h"
#include "lmquant.h"

/* The bytes must outlive the result, which is freed with lmq_pickle_free(). A
 * value may contain itself: walks must be bounded. Offsets of errors count
 * from the first byte. */
enum lmq_status lmq_pickle_parse(const unsigned char *bytes, size_t n,
                                 struct lmq_pickle **out,
                                 struct lmq_error *err);
void lmq_pickle_free(struct lmq_pickle *pickle);

#endif
