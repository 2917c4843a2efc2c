/*
 * oracle_parts.h - what the parts of the model in doubles share.
 */
#ifndef LMQ_TESTS_FAMILIES_ORACLE_PARTS_H
#define LMQ_TESTS_FAMILIES_ORACLE_PARTS_H

#include "tests/families/oracle.h"

/* A sequence on its way. */
struct oracle {
    const struct oracle_model *model;
    const struct oracle_shape *s;
    size_t n;  /* tokens */
    const int32_t *tokens;
    double *x; /* (n, dim): the residual stream */
    double **keys, **values; /* of each layer, for those that borrow */
    double *inputs; /* (n, layers, input_dim) */
    double *beside; /* (streams - 1, n, dim) */
    double *chosen; /* (n, n): 1 for positions that the last choice has */
};

/* Zeros; there is always memory. */
double *oracle_doubles(size_t n);

/* A factor that is 0 was not given. */
double oracle_or_one(double factor);

/* y (n, rows) of x (n, cols) */
double *oracle_apply(const struct oracle_linear *l, const double *x, size_t n);

/* Vectors of `width` elements, every `stride` elements one, n of them. */
void oracle_norm_rows(const struct oracle_shape *s,
                      const struct oracle_norm *w, double *x, size_t n,
                      size_t width, size_t stride);

/* A copy of x (n, dim), normalised. */
double *oracle_normed(const struct oracle *o, const struct oracle_norm *w,
                      const double *x);

/* ---- Positions ---- */

/* Whether longrope's factors are those of long sequences; without an original
 * context there are only the short ones. */
bool oracle_is_long(const struct oracle_shape *s, size_t n);

/* Heads of `width` elements, n_heads of them for each token; the rotary ones
 * begin at `first`. */
void oracle_rotate(const struct oracle *o, size_t layer, double *x,
                   size_t n_heads, size_t width, size_t first);

/* The rotary dimensions of one vector turn forth (1) or back (-1). */
void oracle_turn(const struct oracle *o, size_t layer, double *x,
                 size_t position, int way);

/* What the scores of a token have grown to. */
double oracle_growth(const struct oracle_shape *s, size_t layer, size_t t);

double oracle_alibi_slope(size_t head, size_t n_heads);

/* ---- Attention and feed-forward ---- */

/* Attention, or what stands in its place. */
double *oracle_mix(const struct oracle *o, size_t layer, const double *x);

/* o->chosen of a layer that chooses (oracle_pools.c); from the latents of its
 * queries, normed, `stride` apart. */
void oracle_choose(const struct oracle *o, size_t layer, const double *x,
                   const double *latents, size_t stride);

/* That whose values are keys (oracle_pools.c). */
double *oracle_shared(const struct oracle *o, size_t layer, const double *x);

/* Streams with gates, and what they are given (oracle_gated.c). */
void oracle_gated_block(struct oracle *o, size_t layer, bool mixes);
void oracle_gated_gather(struct oracle *o);
void oracle_add_grams(struct oracle *o, size_t layer);

/* Of a layer without experts, whose gates may be cut. */
double *oracle_feed(const struct oracle *o, size_t layer, const double *x);

/* One token at a time. The router may look at something else. */
double *oracle_experts(const struct oracle *o, const struct oracle_layer *w,
                       const double *x, const double *routed);

/* A network and, beside it, experts, which look at the stream themselves. */
double *oracle_mlp_and_experts(const struct oracle *o,
                               const struct oracle_layer *w, const double *in);

#endif
