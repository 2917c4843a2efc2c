/*
 * json_cost.h - what a JSON text would take as a tree, told before it is one.
 *
 * A tree of three-byte values is a hundred times its text. Texts of models,
 * tokenizers and headers stay below what is given here.
 */
#ifndef LMQ_BASE_JSON_COST_H
#define LMQ_BASE_JSON_COST_H

#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/* A tree may take so much, so many times its text, and never more. The texts
 * of a vocabulary with pairs in brackets take 45 times. */
#define LMQ_JSON_FREE ((uint64_t)4 << 20)
#define LMQ_JSON_GROWTH 48
#define LMQ_JSON_MOST ((uint64_t)1 << 30)

/* Fails if that is more than is given. The text may be no JSON. */
enum lmq_status lmq_json_afford(const unsigned char *json, size_t n,
                                struct lmq_error *err);

/* The first byte from `at` on that is no white space, or n. */
size_t lmq_json_skip_space(const char *json, size_t n, size_t at);

/* The first byte, from `at` on, of a member within an object's braces; *end is
 * the comma or brace behind it, or n. Only brackets and texts are looked at:
 * what is between must still be parsed. */
size_t lmq_json_member(const char *json, size_t n, size_t at, size_t *end);

#endif
