/*
 * recipe.h - what shall become of each matrix: lmquant-recipe(5).
 *
 * Rules in their order, from a file and from the command line. Each key of a
 * matrix has what the last rule says that matches it and has the key; what no
 * rule says is as the recipe's default, that is as the options.
 */
#ifndef LMQ_CONVERT_RECIPE_H
#define LMQ_CONVERT_RECIPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/checkpoint.h"
#include "formats/lmq/lmq_describe.h"

/* No file may keep us busy for long. */
#define LMQ_RECIPE_BYTES ((size_t)4 << 20)
#define LMQ_RECIPE_RULES ((size_t)1 << 14)
#define LMQ_RECIPE_PATTERNS ((size_t)1 << 16)
#define LMQ_RECIPE_PATTERN 1024 /* bytes */
#define LMQ_RECIPE_RANGES 1024  /* of a rule */

/* Which keys a rule has. */
enum {
    LMQ_WISH_ENCODING = 1,
    LMQ_WISH_GROUP = 2,
    LMQ_WISH_SCALES = 4,
    LMQ_WISH_METHOD = 8,
    LMQ_WISH_ROTATE = 16
};

/* What is asked for. */
struct lmq_wish {
    unsigned asked; /* the keys that somebody has said */
    bool keeps;     /* as the source has it, whatever `stored` is */
    enum lmq_stored stored;
    struct lmq_quant quant;
};

/* Numbers of layers or of experts. Negative ones count from the end: the last
 * is -1. */
struct lmq_recipe_range {
    int32_t first, last;
};

struct lmq_recipe_ranges {
    struct lmq_recipe_range *ranges;
    size_t n, capacity; /* none: whatever it is in */
};

struct lmq_pattern {
    char *text;
    bool is_used; /* it has matched something */
};

struct lmq_rule {
    struct lmq_pattern *patterns; /* one of them is enough */
    size_t n_patterns, capacity;
    struct lmq_recipe_ranges layers, experts;
    bool is_optional; /* it need not match anything */
    struct lmq_wish wish;
    size_t line;       /* in the file; 0: it is from the command line */
    const char *given; /* there: all of it, which the caller owns */
};

/* All zero: no rules. */
struct lmq_recipe {
    struct lmq_wish basis; /* what no rule says */
    struct lmq_rule *rules;
    size_t n_rules, capacity, n_patterns;
    const char *path; /* of the file, which the caller owns; or NULL */
    char *text;       /* of it */
};

void lmq_recipe_free(struct lmq_recipe *recipe);

/* One more rule, all zero. */
enum lmq_status lmq_recipe_add_rule(struct lmq_recipe *recipe,
                                    struct lmq_rule **rule,
                                    struct lmq_error *err);

/* ---- recipe_words.c ---- */

/* Or another character that YAML has not, or that ends a line or turns text
 * around: no word of a recipe has one. */
bool lmq_recipe_has_control(const char *text, size_t n);

/* These say what is wrong with a word, not where it stands: LMQ_ERR_FORMAT. */
enum lmq_status lmq_rule_add_pattern(struct lmq_recipe *recipe,
                                     struct lmq_rule *rule, const char *text,
                                     struct lmq_error *err);
/* "0-3,30-", "first 2", "last 1". */
enum lmq_status lmq_recipe_ranges_parse(struct lmq_recipe_ranges *ranges,
                                        const char *text, int32_t most,
                                        struct lmq_error *err);
/* What is read again as the same; released with free(). */
char *lmq_recipe_ranges_text(const struct lmq_recipe_ranges *ranges);

/* One of "encoding", "group", "scales", "method", "rotate"; false *is_known:
 * another key. */
enum lmq_status lmq_wish_parse(struct lmq_wish *wish, const char *key,
                               const char *value, bool *is_known,
                               struct lmq_error *err);
/* Whether the keys mean something beside its encoding: those of a default may
 * be for rules. */
enum lmq_status lmq_wish_check(const struct lmq_wish *wish, bool is_default,
                               struct lmq_error *err);
/* "keep", or what the type is called. */
const char *lmq_wish_encoding(const struct lmq_wish *wish);

/* "PATTERN=TYPE[,group=N][,scales=TYPE][,method=NAME]", which must stay. */
enum lmq_status lmq_recipe_add_words(struct lmq_recipe *recipe,
                                     const char *text, struct lmq_error *err);

/* ---- recipe_file.c ---- */

/* Adds what a file says: its default to the basis, its rules to the rules. */
enum lmq_status lmq_recipe_read(struct lmq_recipe *recipe, const char *path,
                                struct lmq_error *err);
/* The same of bytes in memory. */
enum lmq_status lmq_recipe_parse(struct lmq_recipe *recipe,
                                 const unsigned char *bytes, size_t n,
                                 struct lmq_error *err);

/* ---- recipe.c ---- */

/* What the recipe wants of a matrix of a model with so many layers, and so many
 * experts in one. Of what is never quantized (`is_small`) rules say which float
 * it is, and no more. */
void lmq_recipe_choose(struct lmq_recipe *recipe,
                       const struct lmq_tensor *tensor, bool is_small,
                       int32_t n_layers, int32_t n_experts,
                       struct lmq_wish *wish);

/* Each pattern has matched a matrix, unless its rule is optional. Call when
 * all have been asked for. */
enum lmq_status lmq_recipe_check_used(const struct lmq_recipe *recipe,
                                      struct lmq_error *err);

/* ---- recipe_json.c ---- */

/* Whether group, scales and method of the default say all. */
bool lmq_recipe_is_plain(const struct lmq_recipe *recipe);

/* The recipe as lmquant-recipe(5) has it, of which the same is read; NULL
 * without memory. */
json_t *lmq_recipe_to_json(const struct lmq_recipe *recipe);

#endif
