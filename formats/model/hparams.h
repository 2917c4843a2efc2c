/*
 * hparams.h - the description of a decoder-only model, in one form for all
 * formats.
 *
 * A reader fills in what its file says and the defaults that its format
 * implies; the runtime is one skeleton that does what stands here and knows
 * no families. What a file asks for and this program does not understand goes
 * to `unsupported`: such a model can be converted and inspected, not run.
 *
 * The description of a plain Llama is what lmq_hparams_init() sets, but for
 * the sizes. lmq-model(5) says what each key means.
 */
#ifndef LMQ_FORMATS_MODEL_HPARAMS_H
#define LMQ_FORMATS_MODEL_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/model/hparams_kinds.h"
#include "lmquant.h"

#define LMQ_MAX_EOS 8

/* Caps on numbers from files: far above any model, far below overflow. */
#define LMQ_MAX_LAYERS 4096
#define LMQ_MAX_HEADS 65536
#define LMQ_MAX_EXPERTS 4096
#define LMQ_MAX_WIDTH (1 << 24)
#define LMQ_MAX_CONTEXT (1 << 28)
#define LMQ_MAX_ROPE_FACTORS 512
#define LMQ_MAX_CONV 16
#define LMQ_MAX_STREAMS 8
#define LMQ_MAX_LOOPS 64
#define LMQ_MAX_ROUNDS 1024
#define LMQ_MAX_POOL 4096
#define LMQ_MAX_GRAM 8
#define LMQ_MAX_GRAM_NUMBERS 512

enum lmq_tie { LMQ_TIE_UNSET, LMQ_TIE_NO, LMQ_TIE_YES };

struct lmq_hparams {
    char architecture[64];   /* "llama", "mistral", ... or "" */
    char unsupported[160];   /* why it cannot run, or "" */

    uint32_t n_layers;
    uint32_t dim;
    uint32_t vocab_size;
    uint32_t context;        /* positions it was trained for */
    uint32_t context_end;    /* behind so many another computation begins; 0:
                                it never does */
    uint32_t layers[LMQ_MAX_LAYERS]; /* bits of lmq_layer_kind */
    /* Of each layer, in place of n_heads and the like; 0: these. */
    uint32_t layer_heads[LMQ_MAX_LAYERS];
    uint32_t layer_kv_heads[LMQ_MAX_LAYERS];
    uint32_t layer_hidden_dims[LMQ_MAX_LAYERS];

    /* Blocks */
    enum lmq_norm norm;
    double norm_eps;
    enum lmq_norm_place norm_place;
    enum lmq_residual residual;
    double embedding_scale;  /* of the embedding; 1 */
    bool has_embedding_norm; /* of what enters the first layer */
    bool has_bare_embedding_norm; /* which has no weights */
    double post_norm_eps;    /* of the norms behind blocks; 0: norm_eps */
    bool has_sub_norms;      /* of what the last matrix of a block looks at:
                                that of attention, that of one feed-forward */
    double residual_scale;   /* of what is added to the residual stream; 1 */
    bool has_normed_residual; /* blocks add to what they are given, normed */
    /* Of that, and of what attention, a recurrence, a feed-forward adds to it;
     * 1. */
    double attn_keep, delta_keep, feed_keep;
    double attn_add, delta_add, feed_add;
    double logit_scale;      /* of the logits; 1 */
    double logit_softcap;    /* cap * tanh(x / cap); 0: none */

    /* Attention. With kv_lora_rank (latent attention, "MLA") a head has
     * head_dim - rotary_dim NoPE dimensions before the rotary ones, and
     * the cache holds kv_lora_rank + rotary_dim numbers for all heads. */
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t value_dim;      /* of a head's values; 0: head_dim */
    /* In layers that see everything, where the others have windows; 0: the same
     * as there. */
    uint32_t full_head_dim, full_kv_heads;
    uint32_t full_rotary_dim; /* likewise; 0: as many dimensions as there */
    uint32_t full_value_dim; /* likewise, of latent attention, */
    uint32_t full_kv_lora_rank; /* and its latents */
    double full_attn_scale;  /* likewise, of scores; 0: attn_scale */
    bool full_keys_are_values; /* there, before norms and positions */
    bool has_value_norm;     /* without weights, of each head's values */
    uint32_t n_borrowing;    /* so many last layers have no keys and values:
                                lmq_layer_kv_source() */
    uint32_t q_lora_rank;    /* queries by two matrices; 0: by one */
    uint32_t kv_lora_rank;   /* 0: no latent attention */
    double latent_eps;       /* of the norms of latents, of time steps; 0:
                                norm_eps */
    uint32_t sliding_window; /* 0: none */
    uint32_t attention_chunk; /* layers that are not full see only positions
                                of the same chunk of so many; 0: none */
    double attn_scale;       /* of the scores; 0: 1 / sqrt(head_dim) */
    double attn_softcap;     /* of the scores; 0: none */
    double qkv_clip;         /* limits queries, keys, values; 0: none */
    double value_scale;      /* of the results of heads; 1 */
    enum lmq_qk_norm qk_norm;
    bool qk_norm_late;       /* after RoPE, not before it */
    double score_growth;     /* scores * (1 + growth ln(1 + floor((position +
                                shift) / period))); 0: they stay */
    uint32_t score_growth_period, score_growth_shift;
    bool score_growth_still; /* only in NoPE layers */
    bool has_head_growth;    /* scores * (a number of their head ln(1 +
                                position) + another) */
    bool has_sinks;          /* a logit for nothing in each head's softmax */
    bool has_attn_gate;      /* heads' results times the sigmoid of a gate */
    bool has_head_gate;      /* which is one number for each head */
    bool has_softplus_gate;  /* and no sigmoid, but a softplus */
    bool has_raw_latents;    /* queries, and gates of heads, are made of their
                                latents twice: normed, and as they were */
    bool has_turned_values;  /* values are the keys, once normed and turned, and
                                what heads give turns back; of a head the last
                                dimensions turn */
    uint32_t n_out_groups;   /* parts of heads' results, each with a matrix */
    uint32_t out_rank;       /* of it; 0 parts: the results are used whole */
    /* Pools (pools.h): a key that stands for so many positions. */
    uint32_t pool_size, overlap_size;
    uint32_t index_topk;     /* so many that overlap are seen, or of latent
                                attention positions; 0: all */
    uint32_t n_index_heads, index_dim; /* of what chooses them */
    double index_eps;        /* of the norm of its keys; 0: norm_eps */

    /* Recurrent layers ("linear attention"): instead of keys and values a
     * layer remembers a matrix (key dim, value dim) for each value head, and
     * what went into its convolution last. */
    enum lmq_recurrence recurrence;
    uint32_t n_delta_key_heads; /* queries have as many */
    uint32_t n_delta_value_heads; /* 0: no layer has it */
    uint32_t delta_key_dim, delta_value_dim; /* of a head */
    uint32_t conv_width;     /* tokens that its convolution sees */
    bool has_bare_states;    /* what a state gives has no norm */
    double state_eps;        /* of this norm; 0: norm_eps */
    double beta_scale;       /* of how much the delta rule writes; 1 */
    double decay_floor;      /* of the logarithm of what it leaves: that is no
                                less than -this; 0: any */
    double decay_first, decay_step; /* of a lightning one: how fast states decay
                                in layer 0, how much slower in each further
                                one; 1, 0 */
    uint32_t step_rank;      /* time steps by two matrices; 0: by one */
    uint32_t gate_rank;      /* likewise the gates of a delta rule */
    bool has_key_decays;     /* of a delta rule each key of a value head has a
                                time step of its own */
    bool has_sigmoid_gates;  /* of a delta rule, a lightning one; else SiLU */
    bool has_step_norms;     /* of what stands between these two, of keys, of
                                queries */
    bool has_step_norm_weights;

    /* Positions */
    enum lmq_positions positions;
    uint32_t rotary_dim;     /* the first dimensions of a head; 0: all */
    bool has_whole_still;    /* latent attention of NoPE layers has none of
                                these: the others are as many more */
    double rope_theta;
    double rope_local_theta; /* layers with a window: this base, unscaled; 0:
                                like the others */
    enum lmq_rope_scaling rope_scaling;
    double rope_factor, rope_low_factor, rope_high_factor;
    double rope_beta_fast, rope_beta_slow; /* YaRN: 32, 1 */
    bool rope_ramp_exact;    /* its ramp begins and ends between two pairs */
    double rope_attention_factor; /* of cosines and sines; 1 */
    uint32_t rope_context;   /* context before scaling */
    uint32_t n_rope_factors; /* rotary dimensions / 2, where there are any */
    double rope_short[LMQ_MAX_ROPE_FACTORS]; /* divide the frequencies */
    double rope_long[LMQ_MAX_ROPE_FACTORS];

    /* Feed-forward */
    uint32_t hidden_dim;
    uint32_t borrowing_hidden_dim; /* of layers that borrow keys and values; 0:
                                      the same */
    enum lmq_activation activation;
    double activation_slope; /* SiLU: x * sigmoid(slope x); 1 */
    bool is_gated;           /* act(gate x) * (up x), else act(up x) */
    double glu_limit;        /* gate x is at most that, up x no further from 0;
                                0: neither is limited */
    bool glu_limits_experts; /* it is of experts alone, but the shared ones */
    double glu_offset;       /* of up x; 0 */
    double act_limit, expert_act_limit; /* in limited layers act(gate x) is at
                                most that, and up x no further from 0 */
    double sparse_cut;       /* sparse layers: of gate x what is so many
                                deviations above the mean goes on, less that */

    /* Experts */
    uint32_t n_experts;      /* 0: none */
    uint32_t n_experts_used; /* per token */
    uint32_t expert_dim;     /* hidden dimensions of each */
    uint32_t shared_dim;     /* hidden dimensions of the shared ones; 0: none */
    enum lmq_router router;
    bool router_renormalises; /* the chosen weights sum to 1 */
    bool router_corrects;    /* a bias that counts for choosing only */
    double router_scale;     /* of the weights; 1 */
    double router_softcap;   /* of its logits: cap * tanh(x / cap); 0: none */
    double router_reach;     /* how near LMQ_ROUTER_NEAR takes to be near */
    double shared_scale;     /* of what shared experts add; 1 */
    bool router_scales_input; /* weights are of what experts are given */
    bool router_is_early;    /* it looks at what enters the layer */
    uint32_t n_expert_groups; /* 0: no choice of groups */
    uint32_t n_expert_groups_used;
    enum lmq_group_score expert_group_score;
    bool has_mixture_norm;   /* a norm behind what layers with experts give,
                                where the other norms stand before */
    bool has_expert_norms;   /* router, experts and the shared one have norms of
                                their own, and experts are scaled */

    /* Layers */
    uint32_t layer_input_dim; /* what each layer is given of each token; 0:
                                 nothing */
    uint32_t layer_input_vocab; /* tokens that have such; others have that of
                                   token 0; 0: all */
    uint32_t n_streams;      /* residual ones, side by side; 0: one */
    enum lmq_stream_kind stream_kind;
    uint32_t stream_rounds;  /* hyper: of what makes rows and columns of what
                                mixes them sum to 1; 0: they do not mix */
    double stream_eps;       /* added to what reads, mixes and divides */
    double stream_gain;      /* of what blocks write to each; 1 */
    double stream_floor;     /* added to that */
    bool has_stream_mean;    /* the head reads their mean */
    uint32_t stream_rank;    /* gated: of two matrices that make the gates */
    /* Sequences of tokens (grams.h), in some layers: of so many tokens at most,
     * so many rows of a table for each length, of so many numbers; positions
     * that a convolution of what comes of them sees; the token before which
     * all is forgotten; what tokens are multiplied with, of each place in each
     * such layer; and rows that there are, of each length and number of it. */
    uint32_t gram_size, gram_heads, gram_dim, gram_conv_width, gram_stop;
    uint32_t n_gram_factors, n_gram_rows;
    uint64_t gram_factors[LMQ_MAX_GRAM_NUMBERS];
    uint64_t gram_rows[LMQ_MAX_GRAM_NUMBERS];
    uint32_t norm_gate_rank; /* of two matrices that make gates of what norms
                                before attention and experts give; 0: none */
    uint32_t residual_rank;  /* of what goes past attention by two matrices; 0:
                                nothing does */
    uint32_t n_loops;        /* through all layers; 0: once */
    bool has_loop_norm;      /* the last norm behind each of them */
    bool has_layer_scale;    /* the stream times a number behind each layer */

    enum lmq_tie tie;        /* what the configuration says */
    int32_t bos;             /* -1: none */
    int32_t eos[LMQ_MAX_EOS];
    uint32_t n_eos;
};

/* An empty description: zeros, bos -1, the defaults of the Llama family. */
void lmq_hparams_init(struct lmq_hparams *hparams);

/* One way of saying each thing: what is given but has no effect, or is what
 * the default means, becomes the default. */
void lmq_hparams_settle(struct lmq_hparams *hparams);

/* Notes why the model cannot be run; the first reason stays. */
void lmq_hparams_refuse(struct lmq_hparams *hparams, const char *format, ...)
    LMQ_PRINTF(2, 3);

/* With their defaults filled in; 0 rotary dimensions without RoPE. Layers with
 * other heads: below. */
uint32_t lmq_hparams_rotary_dim(const struct lmq_hparams *hparams);
uint32_t lmq_hparams_value_dim(const struct lmq_hparams *hparams);
/* Of layers that see everything. */
uint32_t lmq_hparams_far_rotary_dim(const struct lmq_hparams *hparams);
/* Of the scores q k. */
float lmq_hparams_attn_scale(const struct lmq_hparams *hparams);
float lmq_layer_attn_scale(const struct lmq_hparams *hparams, size_t layer);

static inline bool
lmq_layer_is(const struct lmq_hparams *hparams, size_t layer,
             enum lmq_layer_kind kind)
{
    return (hparams->layers[layer] & (unsigned)kind) != 0;
}

static inline bool
lmq_is_selective(const struct lmq_hparams *hparams)
{
    return hparams->recurrence == LMQ_RECURRENCE_SELECTIVE;
}

/* Of either generation. */
static inline bool
lmq_is_state_space(const struct lmq_hparams *hparams)
{
    return hparams->recurrence == LMQ_RECURRENCE_STATE_SPACE ||
           lmq_is_selective(hparams);
}

static inline bool
lmq_is_convolution(const struct lmq_hparams *hparams)
{
    return hparams->recurrence == LMQ_RECURRENCE_CONVOLUTION;
}

static inline bool
lmq_is_lightning(const struct lmq_hparams *hparams)
{
    return hparams->recurrence == LMQ_RECURRENCE_LIGHTNING;
}

static inline bool
lmq_is_lru(const struct lmq_hparams *hparams)
{
    return hparams->recurrence == LMQ_RECURRENCE_LRU;
}

/* Widths of all heads together. */
static inline size_t
lmq_delta_value_width(const struct lmq_hparams *hparams)
{
    return (size_t)hparams->n_delta_value_heads * hparams->delta_value_dim;
}

static inline size_t
lmq_delta_key_width(const struct lmq_hparams *hparams)
{
    return lmq_is_convolution(hparams)
               ? lmq_delta_value_width(hparams)
               : (size_t)hparams->n_delta_key_heads * hparams->delta_key_dim;
}

/* What the convolution goes over: queries, keys and values; values alone; or
 * products of keys and values. */
size_t lmq_delta_channels(const struct lmq_hparams *hparams);

/* Time steps of a token: for each value head, each of its keys, or of its
 * values. */
size_t lmq_delta_steps(const struct lmq_hparams *hparams);

/* Numbers that say how a layer's states decay: likewise. */
size_t lmq_delta_decays(const struct lmq_hparams *hparams);

/* Whose numbers a layer norms together: a value head's, those that share a key,
 * or all. */
size_t lmq_delta_norm_span(const struct lmq_hparams *hparams);

/* How fast a lightning state decays: it is multiplied by exp(-this). */
double lmq_decay_rate(const struct lmq_hparams *hparams, size_t layer,
                      size_t head);
/* As in MiniMax 01: evenly slower up to the last layer, which hardly decays. */
void lmq_decays_by_layer(struct lmq_hparams *hparams);

/* What queries are made of, where they are made by two matrices. */
static inline uint32_t
lmq_query_latents(const struct lmq_hparams *hparams)
{
    return (hparams->has_raw_latents ? 2 : 1) * hparams->q_lora_rank;
}

/* Streams beside the first, where these guess; 0: they do not. */
uint32_t lmq_guessed_streams(const struct lmq_hparams *hparams);
/* Whether blocks read a sum of all and write to all; whether each number has a
 * gate then. */
bool lmq_has_hyper_streams(const struct lmq_hparams *hparams);
bool lmq_has_gated_streams(const struct lmq_hparams *hparams);
/* Numbers by which a block reads, writes and mixes streams. */
uint32_t lmq_hyper_mixes(const struct lmq_hparams *hparams);
/* Whether blocks add to the stream as it is. */
bool lmq_adds_plainly(const struct lmq_hparams *hparams);

/* The most that any layer has. */
uint32_t lmq_most_heads(const struct lmq_hparams *hparams);
uint32_t lmq_most_hidden_dims(const struct lmq_hparams *hparams);

/* Where positions end, UINT32_MAX where they do not; and why, as the beginning
 * of a sentence: so many positions. */
uint32_t lmq_hparams_end(const struct lmq_hparams *hparams);
const char *lmq_hparams_why_end(const struct lmq_hparams *hparams);

/* The two parts of a layer; most have both. The first mixes tokens: by
 * attention, or by a recurrence. */
static inline bool
lmq_layer_mixes(const struct lmq_hparams *hparams, size_t layer)
{
    return !lmq_layer_is(hparams, layer, LMQ_LAYER_FEED);
}

/* By a recurrence alone: then its matrices have the roles of attention's. */
static inline bool
lmq_layer_only_recurs(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_DELTA) &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_BESIDE);
}

static inline bool
lmq_layer_has_attention(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_mixes(hparams, layer) &&
           !lmq_layer_only_recurs(hparams, layer);
}

static inline bool
lmq_layer_has_feed(const struct lmq_hparams *hparams, size_t layer)
{
    return !lmq_layer_is(hparams, layer, LMQ_LAYER_BARE);
}

static inline bool
lmq_layer_has_experts(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->n_experts > 0 && lmq_layer_has_feed(hparams, layer) &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_DENSE);
}

static inline bool
lmq_layer_has_sinks(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->has_sinks &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_SINKLESS);
}

/* Tokens of which layers are given something. */
static inline uint32_t
lmq_layer_input_rows(const struct lmq_hparams *hparams)
{
    return hparams->layer_input_vocab > 0 ? hparams->layer_input_vocab
                                          : hparams->vocab_size;
}

/* Whether its feed-forward goes on with what stands out of its gate. */
static inline bool
lmq_layer_is_sparse(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_SPARSE) &&
           hparams->is_gated && lmq_layer_has_feed(hparams, layer) &&
           !lmq_layer_has_experts(hparams, layer);
}

/* What act(gate x) is at most, of the feed-forward of a layer without experts
 * and of shared ones, or of experts; 0: it is not limited. */
static inline double
lmq_layer_act_limit(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_LIMITED) &&
                   hparams->is_gated && lmq_layer_has_feed(hparams, layer) &&
                   (!lmq_layer_has_experts(hparams, layer) ||
                    hparams->shared_dim > 0)
               ? hparams->act_limit
               : 0;
}

static inline double
lmq_layer_expert_act_limit(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_LIMITED_EXPERTS) &&
                   hparams->is_gated && lmq_layer_has_experts(hparams, layer)
               ? hparams->expert_act_limit
               : 0;
}

/* Where the layer's norms stand. */
static inline enum lmq_norm_place
lmq_layer_norm_place(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_AFTER) ? LMQ_NORMS_AFTER
                                                         : hparams->norm_place;
}

/* Whether what the layer's feed-forward gives is normed. */
static inline bool
lmq_layer_has_feed_post_norm(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_norm_place(hparams, layer) != LMQ_NORMS_BEFORE ||
           (hparams->has_mixture_norm &&
            lmq_layer_has_experts(hparams, layer));
}

/* Whether norms have weights. */
static inline bool
lmq_norms_weigh(const struct lmq_hparams *hparams)
{
    return hparams->norm != LMQ_NORM_LAYER_PLAIN &&
           hparams->norm != LMQ_NORM_RMS_PLAIN;
}

/* Whether norms of queries and keys do, if others do. */
static inline bool
lmq_weighs_qk_norms(const struct lmq_hparams *hparams)
{
    return hparams->qk_norm != LMQ_QK_NORM_NONE &&
           hparams->qk_norm != LMQ_QK_NORM_BARE &&
           hparams->qk_norm != LMQ_QK_NORM_BARE_ALL;
}

/* Whether those of queries are among them. */
static inline bool
lmq_weighs_query_norms(const struct lmq_hparams *hparams)
{
    return lmq_weighs_qk_norms(hparams) &&
           hparams->qk_norm != LMQ_QK_NORM_BARE_QUERIES &&
           hparams->qk_norm != LMQ_QK_NORM_TURNING;
}

/* ---- Layers with other sizes ---- */

/* Whether the layer is one that sees everything and has heads of its own. */
static inline bool
lmq_layer_has_full_heads(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->full_head_dim > 0 &&
           lmq_layer_is(hparams, layer, LMQ_LAYER_FULL);
}

static inline uint32_t
lmq_layer_head_dim(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_has_full_heads(hparams, layer) ? hparams->full_head_dim
                                                    : hparams->head_dim;
}

/* The latents of all its keys; 0: it has none. */
static inline uint32_t
lmq_layer_latents(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->full_kv_lora_rank > 0 &&
                   lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
               ? hparams->full_kv_lora_rank
               : hparams->kv_lora_rank;
}

static inline uint32_t
lmq_layer_value_dim(const struct lmq_hparams *hparams, size_t layer)
{
    if (hparams->kv_lora_rank > 0)
        return hparams->full_value_dim > 0 &&
                       lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
                   ? hparams->full_value_dim
                   : lmq_hparams_value_dim(hparams);
    return lmq_layer_has_full_heads(hparams, layer)
               ? hparams->full_head_dim
               : lmq_hparams_value_dim(hparams);
}

static inline uint32_t
lmq_layer_rotary_dim(const struct lmq_hparams *hparams, size_t layer)
{
    if (hparams->has_whole_still && hparams->kv_lora_rank > 0 &&
        lmq_layer_is(hparams, layer, LMQ_LAYER_NOPE))
        return 0;
    return lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
               ? lmq_hparams_far_rotary_dim(hparams)
               : lmq_hparams_rotary_dim(hparams);
}

static inline uint32_t
lmq_layer_heads(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->layer_heads[layer] > 0 ? hparams->layer_heads[layer]
                                           : hparams->n_heads;
}

static inline uint32_t
lmq_layer_kv_heads(const struct lmq_hparams *hparams, size_t layer)
{
    if (hparams->layer_kv_heads[layer] > 0)
        return hparams->layer_kv_heads[layer];
    return hparams->full_kv_heads > 0 &&
                   lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
               ? hparams->full_kv_heads
               : hparams->n_kv_heads;
}

/* Whether values are what keys are made of. */
static inline bool
lmq_layer_keys_are_values(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->full_keys_are_values &&
           lmq_layer_is(hparams, layer, LMQ_LAYER_FULL);
}

/* Whether the layer has no keys and values but those of another one. */
static inline bool
lmq_layer_borrows(const struct lmq_hparams *hparams, size_t layer)
{
    return layer + hparams->n_borrowing >= hparams->n_layers;
}

/* Whether the layer makes keys and values. */
static inline bool
lmq_layer_has_keys(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_has_attention(hparams, layer) &&
           !lmq_layer_borrows(hparams, layer);
}

/* How often tokens go through all layers, each time with other keys and
 * values. */
static inline size_t
lmq_loops(const struct lmq_hparams *hparams)
{
    return hparams->n_loops > 1 ? hparams->n_loops : 1;
}

/* Whether no later layer makes keys, values or a state: then of a text only
 * the tokens whose logits are wanted need to go through, but for the keys and
 * values of the others. (A whole layer makes a state, or pools.) */
bool lmq_layer_is_late(const struct lmq_hparams *hparams, size_t layer);

static inline uint32_t
lmq_layer_hidden_dim(const struct lmq_hparams *hparams, size_t layer)
{
    if (hparams->layer_hidden_dims[layer] > 0)
        return hparams->layer_hidden_dims[layer];
    return hparams->borrowing_hidden_dim > 0 &&
                   lmq_layer_borrows(hparams, layer)
               ? hparams->borrowing_hidden_dim
               : hparams->hidden_dim;
}

/* The layer whose keys and values it looks at: itself, or the last one that has
 * some and sees as far. */
size_t lmq_layer_kv_source(const struct lmq_hparams *hparams, size_t layer);

/* Positions of a chunk of the layer; 0: it has none. */
static inline uint32_t
lmq_layer_chunk(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
               ? 0
               : hparams->attention_chunk;
}

/* Positions that a query of the layer sees; 0: all. */
static inline uint32_t
lmq_layer_window(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
               ? 0
               : hparams->sliding_window;
}

#endif
