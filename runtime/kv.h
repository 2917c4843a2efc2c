/*
 * kv.h - what a layer remembers: keys and values, or a state.
 */
#ifndef LMQ_RUNTIME_KV_H
#define LMQ_RUNTIME_KV_H

#include "base/text/name_table.h"
#include "formats/model/pools.h"
#include "runtime/model.h"

/* How keys and values are kept. Keys of Q8 are turned (quantize/rotate.h), for
 * some of their numbers stand out, and so are queries that meet them. */
enum lmq_kv_type {
    LMQ_KV_F32,
    LMQ_KV_F16,
    LMQ_KV_F16_Q8, /* keys F16, values Q8; of latents, which are both, F16 */
    LMQ_KV_Q8
};

#define LMQ_KV_TYPES 4

extern const struct lmq_name lmq_kv_names[];

enum lmq_row_type lmq_kv_keys(enum lmq_kv_type type);
enum lmq_row_type lmq_kv_values(enum lmq_kv_type type);

/* NULL: the default. */
enum lmq_status lmq_kv_parse(const char *text, enum lmq_kv_type *type,
                             struct lmq_error *err);

/* What one layer remembers of a sequence.
 *
 * Keys and values: [cached head][position][width]. With
 * latent attention there is one head, and its values are the first columns of
 * its keys. Writers and readers go by `type`, the one that the memory was
 * allocated for: a row of narrower numbers may take more bytes, as Q8 pads.
 *
 * Where values are the keys there are only these. Pools stand for positions,
 * one behind the other; of the last positions there is what pools are made of.
 *
 * Of a recurrent layer: a state that each token changes (a short convolution
 * has none), and what went into its convolution last. So they are those behind
 * the last token, and can only go on; at position 0 they begin anew. */
struct lmq_kv {
    enum lmq_kv_type type;
    unsigned char *keys, *values;
    float *state; /* (value heads, key dim, value dim) */
    float *tail;  /* (conv_width - 1, channels) */
    unsigned char *pools; /* (context / positions of a pool, width of a key) */
    float *index; /* (the same, or context, index_dim): those of what chooses,
                     or its keys */
    float *recent; /* (lmq_recent(), lmq_recent_width()) */
    /* Of a layer that is given something of the last tokens, position p at p %
     * the number of rows: (lmq_gram_reach(), n_streams * dim), (gram_size). */
    float *gram_conv;
    int32_t *gram_tokens;
};

/* A layer that may be any: room for all kinds that there are. */
#define LMQ_ANY_LAYER SIZE_MAX

/* Heads of keys in a layer's cache, and the widths of a key and of a value
 * there: with latent attention the value is the latent. */
static inline size_t
lmq_cached_heads(const struct lmq_hparams *h, size_t layer)
{
    return h->kv_lora_rank > 0 ? 1 : lmq_layer_kv_heads(h, layer);
}

static inline size_t
lmq_key_width(const struct lmq_hparams *h, size_t layer)
{
    return h->kv_lora_rank > 0
               ? (size_t)lmq_layer_latents(h, layer) +
                     lmq_layer_rotary_dim(h, layer)
               : lmq_layer_head_dim(h, layer);
}

static inline size_t
lmq_value_width(const struct lmq_hparams *h, size_t layer)
{
    return h->kv_lora_rank > 0 ? lmq_layer_latents(h, layer)
                               : lmq_layer_value_dim(h, layer);
}

/* Whether values are columns of the cached keys. */
static inline bool
lmq_values_are_keys(const struct lmq_hparams *h)
{
    return h->kv_lora_rank > 0 || h->has_turned_values;
}

/* Positions that the next pool may be made of: position p is number p % n. */
static inline size_t
lmq_recent(const struct lmq_hparams *h, size_t layer)
{
    return (lmq_layer_overlaps(h, layer) ? 2 : 1) *
           (size_t)lmq_layer_pool(h, layer);
}

/* What there is of each: what is pooled, and by what weights; then the same of
 * what chooses. */
static inline size_t
lmq_recent_width(const struct lmq_hparams *h, size_t layer)
{
    return 2 * (lmq_pool_width(h, layer) +
                (lmq_layer_has_index(h, layer) ? lmq_index_width(h) : 0));
}

/* What the layer looks at, among those of all layers: its own, or another's. */
static inline struct lmq_kv *
lmq_kv_of(const struct lmq_hparams *h, struct lmq_kv *kv, size_t layer)
{
    return &kv[lmq_layer_kv_source(h, layer)];
}

/* Room for `context` positions of one layer, none where it borrows another's;
 * false without memory. */
bool lmq_kv_init(struct lmq_kv *kv, const struct lmq_model *model,
                 size_t layer, enum lmq_kv_type type, size_t context);
void lmq_kv_free(struct lmq_kv *kv);
double lmq_kv_bytes(const struct lmq_model *model, size_t layer,
                    enum lmq_kv_type type, size_t context);

/* Who takes many windows through one layer after the other keeps no more of a
 * window than what later layers borrow: of one that sees everything, and of
 * one that does not. */
#define LMQ_KV_LENDERS 2

/* Nothing where no layer of a kind lends; to be freed one by one, even if it
 * fails. */
bool lmq_kv_init_lent(struct lmq_kv lent[LMQ_KV_LENDERS],
                      const struct lmq_model *model, enum lmq_kv_type type,
                      size_t context);
double lmq_kv_lent_bytes(const struct lmq_model *model, enum lmq_kv_type type,
                         size_t context);
/* What the layer looks at among these; NULL: it neither lends nor borrows. */
struct lmq_kv *lmq_kv_lent(const struct lmq_hparams *hparams,
                           struct lmq_kv lent[LMQ_KV_LENDERS], size_t layer);

#endif
