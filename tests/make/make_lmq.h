/*
 * make_lmq.h - what the makers of containers share.
 */
#ifndef LMQ_TESTS_BUILD_MAKE_LMQ_H
#define LMQ_TESTS_BUILD_MAKE_LMQ_H

#include "lmquant.h"
#include "tests/build/build_checkpoint.h"

/* The row of lmq/NAME in the table of lmq/README.md; of good files also what
 * is expected of them. The rule is the one that it breaks, or NULL. */
void describe_lmq(const char *name, const char *rule, const char *sentence);

/* Writes lmq/NAME, describes it, frees the bytes. */
void emit_lmq(const char *name, struct bytes *bytes, const char *rule,
              const char *sentence);

/* A checkpoint of the corpus as a container, whose bytes are returned. */
struct bytes converted(const char *from, const char *name,
                       const struct lmq_convert_options *options);

/* make_lmq_models.c: small models with everything that descriptions say. */
void make_lmq_models(void);
/* make_lmq_built.c: what no conversion makes. */
void make_lmq_built(void);

#endif
