/*
 * oracle.h - the forward pass once more, as plainly as possible.
 *
 * Doubles, no cache, no batches, no threads, the C library's functions: slow
 * and obvious. It shares nothing with the runtime: the description of a model
 * is its own, and the weights are what a test made, by pointers. What the
 * families do is from their public definitions (the model classes of Hugging
 * Face, the papers).
 */
#ifndef LMQ_TESTS_FAMILIES_ORACLE_H
#define LMQ_TESTS_FAMILIES_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/checkpoint.h"

/* ---- Weights ---- */

/* y = W x + b; rows are outputs. w is NULL where there is no such matrix, b
 * where it has no bias. */
struct oracle_linear {
    float *w, *b;
    size_t rows, cols;
};

/* Of vectors of many parts (heads), each `span` elements; weights repeat after
 * n. span 0: there is no such norm. w NULL: it has no weights. */
struct oracle_norm {
    float *w, *b;
    size_t span, n;
};

struct oracle_mlp {
    struct oracle_linear gate, up, down; /* gate.w NULL: not gated */
    struct oracle_norm sub_norm; /* of what goes through down */
    float *xielu; /* its four numbers, or NULL: another activation */
};

/* A recurrence in place of attention. alpha.b is there always, where there is
 * alpha. */
struct oracle_delta {
    struct oracle_linear q, k, v, gate, alpha, beta, out;
    struct oracle_linear alpha_a; /* alpha is of what this gives; of a selective
                                one it, q and k are of values */
    struct oracle_norm alpha_norm, k_norm, q_norm; /* of a selective one */
    struct oracle_linear gate_a; /* the gate is of what this gives */
    float *decay;            /* (value heads): the logarithm; of a selective
                                one (value heads, key dim); without keys
                                (value heads, value dim) */
    float *conv;             /* (channels, conv_width): queries, keys, values;
                                of a state space the other way round, of a
                                selective one values */
    float *conv_bias;        /* (channels), or NULL */
    struct oracle_norm norm; /* of a value head, of those of a key head, or of
                                all */
    float *skip;             /* (value heads), of a state space */
};

/* Of hyper-connections: what asks all streams, and what is done with the
 * answers; norms in shape only. fn.w NULL: there are none. */
struct oracle_hyper {
    struct oracle_linear fn;
    struct oracle_norm base, scale;
};

/* Of streams with gates: the two matrices that make these, and what says how
 * much is written. */
struct oracle_gated {
    struct oracle_linear down, up, write;
};

/* Of what streams are given of the last tokens. */
struct oracle_grams {
    struct oracle_linear table, key, value, conv;
    struct oracle_norm key_norm, query_norm, conv_norm;
};

/* What positions give to pools: their numbers, by which weights, what these
 * have by their place in a window. */
struct oracle_pool {
    struct oracle_linear kv, gate, bias;
    struct oracle_norm norm;
};

struct oracle_layer {
    struct oracle_hyper attn_hyper, ffn_hyper;
    struct oracle_gated attn_gated, ffn_gated;
    struct oracle_grams grams;
    struct oracle_norm attn_norm, attn_post_norm, ffn_norm, ffn_post_norm;
    /* Two that make the gate of what a norm gives; w NULL: it has none. */
    struct oracle_linear attn_norm_a, attn_norm_b, ffn_norm_a, ffn_norm_b;

    struct oracle_linear q, k, v, o;
    struct oracle_norm q_norm, k_norm;
    struct oracle_norm sub_norm; /* of what goes through o */
    float *sinks; /* a logit for each head, or NULL */
    /* Scores * (growth of their head * log(1 + position) + base of it); norms
     * in shape only, w NULL: they stay. */
    struct oracle_norm growth, growth_base;
    struct oracle_linear gate; /* of heads, or of what each of them gives;
                                  w NULL: none */
    struct oracle_delta delta; /* q.w NULL: attention */

    /* Latent attention: q is q_b(q_a), k and v come from kv_b(kv_a). */
    struct oracle_linear q_a, q_b, kv_a, kv_b;
    struct oracle_norm q_a_norm, kv_a_norm;

    /* Keys that are values: q is q_b(q_a), and o is of out_a, whose rows are
     * those of each part of what heads give. */
    struct oracle_linear out_a;
    struct oracle_pool pool, index_pool;
    struct oracle_linear index_q, index_weights; /* w NULL: all are seen */
    /* What chooses positions has these two, and */
    struct oracle_linear index_k;
    struct oracle_norm index_norm; /* with a bias, whatever the others are */
    struct oracle_linear table; /* (vocab, n_used): a token's experts; w NULL:
                                   the router chooses */

    struct oracle_mlp mlp; /* up.w NULL: experts alone */
    struct oracle_linear router;
    float *correction; /* of the router's choice, or NULL */
    struct oracle_mlp *experts;
    struct oracle_mlp shared;
    struct oracle_linear shared_switch;
    /* Experts beside `mlp`, each with norms; and of the router. */
    struct oracle_norm router_norm, experts_norm, experts_post_norm;
    struct oracle_norm mlp_post_norm;
    float *experts_scale;

    /* What the layer makes of its own input; of the stream at last. */
    struct oracle_linear input_gate, input_out; /* w NULL: nothing */
    struct oracle_norm input_norm;
    float *scale; /* one number, or NULL */

    /* Of several streams: what the first one is asked, by which all change
     * before and behind the layer; what of the first meets the input. */
    struct oracle_norm stream_norm, stream_scale; /* a norm in shape only */
    struct oracle_linear stream_router, stream_predict, stream_correct;

    /* Past attention: what two matrices make of its input. */
    struct oracle_linear bypass_a, bypass_b; /* w NULL: nothing */
    struct oracle_norm bypass_norm;
};

/* ---- Description ---- */

/* Norms without weights have w NULL. */
enum oracle_norm_kind { ORACLE_RMS, ORACLE_LAYER };

/* In parallel: attention and feed-forward see the same stream; without a norm
 * of its own the latter takes what the former gets. */
enum oracle_positions {
    ORACLE_ROTARY,
    ORACLE_LEARNED,
    ORACLE_ALIBI,        /* score * scale - slope * distance */
    ORACLE_ALIBI_SCALED, /* (score - slope * distance) * scale */
    ORACLE_NO_POSITIONS
};

enum oracle_rope {
    ORACLE_ROPE_PLAIN,
    ORACLE_ROPE_LINEAR,
    ORACLE_ROPE_LLAMA3,
    ORACLE_ROPE_NTK,
    ORACLE_ROPE_DYNAMIC,
    ORACLE_ROPE_YARN,
    ORACLE_ROPE_LONG /* the long or the short factors */
};

enum oracle_recurrence {
    ORACLE_DELTA_RULE,
    ORACLE_STATE_SPACE, /* Mamba 2 */
    ORACLE_CONVOLUTION, /* of keys times values */
    ORACLE_SELECTIVE,   /* Mamba 1 */
    ORACLE_LIGHTNING,   /* MiniMax 01 */
    ORACLE_LRU          /* RecurrentGemma */
};

enum oracle_router {
    ORACLE_SOFTMAX,
    ORACLE_SOFTMAX_CHOSEN, /* choose by logits, softmax over these */
    ORACLE_SIGMOID,
    ORACLE_SIGMOID_CHOSEN, /* choose by logits, sigmoid of these */
    ORACLE_NEAR,
    ORACLE_ROOT_SOFTPLUS
};

#define ORACLE_MAX_PAIRS 64

struct oracle_shape {
    size_t grown;            /* widths are so many times those of the table */
    /* Of each layer, in place of `heads` and the like; NULL: these. Widths are
     * those of the table. */
    const size_t *layer_heads, *layer_kv_heads, *layer_hidden;
    size_t dim, hidden, layers, heads, kv_heads, head_dim, vocab;
    size_t other_vocab;   /* rows of the embedding behind that, of no text */
    size_t max_positions; /* that the configuration speaks of */
    double eps;
    enum oracle_norm_kind norm;
    bool is_parallel;
    double (*activation)(double);
    double up_limit, up_plus; /* the gate's limit is an upper one only */
    bool limits_experts;     /* it is of experts alone, but the shared ones */
    /* Of what is activated, which is not more, and of up in both directions: of
     * what is no expert, and of experts, in layers with '1'; NULL: in none. */
    double act_limit, expert_act_limit;
    const char *limited, *limited_experts;
    double embedding_scale, residual_scale, logit_scale; /* 0: 1 */
    bool adds_to_normed;     /* blocks add to what they were given */
    /* Of that, and of what attention, a recurrence, a feed-forward gives; 0:
     * 1. */
    double keeps[3], adds[3];
    double logit_cap;

    size_t value_dim;        /* 0: head_dim */
    size_t q_rank, kv_rank;  /* latent attention */
    double latent_eps;       /* of its norms; 0: eps */
    double score_scale;      /* 0: 1 / sqrt(head_dim) */
    double score_factor;     /* times this; 0: 1 */
    bool scores_by_width;    /* by 1 / head_dim, however wide it grows */
    double score_cap;
    double clip;             /* of queries, keys and values */
    double value_scale;      /* of what heads give; 0: 1 */
    bool softplus_gates;     /* else sigmoid */
    bool gates_heads;        /* one number is the gate of a head */
    bool keeps_latents;      /* what queries and gates are made of has latents
                                as they were behind the normed ones */
    size_t norm_rank;        /* of gates of norms; 0: there are none */
    bool norms_turned;       /* queries and keys are normed after turning */
    bool norms_bare;         /* without weights, in layers that turn */
    bool norms_all_bare;     /* in the others, too */
    bool norms_embedding;    /* without weights */
    double post_eps;         /* behind blocks; 0: eps */
    double growth;           /* scores * (1 + growth * log(1 + floor((position
                                + shift) / period))), */
    size_t growth_period, growth_shift;
    const char *growing;     /* in layers with '1'; NULL: in all */
    size_t chunk;            /* `sliding` layers see only their own chunk */
    size_t window;           /* in layers of which `sliding` says '1' */
    bool shares_keys;        /* values are keys, once turned */
    size_t out_groups, out_rank;
    const char *pools;       /* layers with pools: '1', or '2' where they
                                overlap; NULL: none */
    size_t pool_size, overlap_size;
    size_t index_heads, index_dim, index_topk; /* of those that overlap */
    const char *choosers;    /* layers that choose so many positions, which
                                those behind see, too; NULL: none */
    double index_eps;        /* of the norm of keys; 0: eps */
    bool index_halves;       /* there no pairs turn */
    bool index_last;         /* there the last dimensions of a head do */
    const char *tables;      /* layers with a table of experts; NULL: none */

    /* Patterns: a character for each layer, repeated. */
    const char *sliding;     /* NULL: no layer has the window */
    const char *turning;     /* NULL: queries and keys turn in all layers */
    const char *sparse;      /* layers with experts; NULL: none */
    const char *sunk;        /* layers that may have sinks; NULL: all */
    const char *delta;       /* recurrent layers; NULL: none */
    enum oracle_recurrence recurrence;
    bool has_conv_bias;
    bool is_beside;          /* attention beside the recurrence */
    bool bare_states;        /* what states give is not normed */
    double state_eps;        /* of this norm; 0: eps */
    double beta_scale;       /* of how much the delta rule writes; 0: 1 */
    size_t again;            /* so often, once all layers are through */
    bool norms_again;        /* and each time by the last norm */
    const char *after;       /* layers whose norms follow what they do, of a
                                family that has both kinds; NULL: all alike */
    const char *halves;      /* 'm': a layer that only mixes tokens, 'f': that
                                is a feed-forward alone, '-': that does
                                nothing; NULL: all are both */
    size_t delta_keys, delta_values; /* heads */
    size_t delta_key_dim, delta_value_dim, conv_width;
    size_t step_rank, gate_rank; /* rows of alpha_a, of gate_a */
    bool key_decays;         /* of a delta rule: alpha has a row for each key of
                                a value head */
    double decay_floor;      /* likewise: of the logarithm of what is left; 0:
                                there is none */
    bool sigmoid_gates;      /* likewise, and no SiLU */
    double step_eps;         /* of its norm, of keys', of queries'; 0: there
                                are none */
    bool step_weights;       /* which have weights */

    /* In layers without the window; 0: as in the others. */
    size_t full_head_dim, full_kv_heads, full_rotary_dim;
    size_t full_value_dim, full_kv_rank; /* of latent attention */
    bool scores_by_kind;     /* by 1 / sqrt(head_dim) of the layer */
    bool scales_latents;     /* what is normed of them by sqrt(dim / rank) */
    bool norms_turning;      /* of latent attention what turns of keys, before
                                it does */
    double full_part;        /* of their pairs, that turns; 0: all */
    bool full_keys_are_values;
    bool norms_values;       /* each head, without weights */
    bool norms_inside;       /* what o and what down go over */
    bool norms_mixtures;     /* what experts add, and nothing else */
    size_t n_borrowing;      /* last layers that take keys and values of the
                                last one before that is like them */
    size_t borrowing_hidden; /* 0: hidden */
    size_t input_dim;        /* of the input of each layer; 0: none */
    size_t input_vocab;      /* tokens that have one of their own; the others
                                have that of token 0 */
    size_t streams;          /* 0: one */
    bool hyper;              /* blocks read a sum of all streams */
    size_t hyper_rounds;     /* which are mixed by a matrix whose rows and
                                columns sum to 1 after so many; 0: they stay */
    double hyper_eps, hyper_gain, hyper_floor;
    bool hyper_mean;         /* what the head looks at */
    size_t gate_streams;     /* blocks read a gated mean of all streams: so many
                                rows between two matrices; 0: they do not */
    const char *grams;       /* layers whose streams are given something of the
                                last tokens; NULL: none */
    size_t gram_size, gram_heads, gram_dim, gram_conv, gram_stop;
    size_t gram_seed, gram_base;
    size_t bypass_rank;      /* 0: nothing goes past attention */
    const char *cutting;     /* layers whose gates count from so many deviations
                                above their mean on, less that */
    double cut;

    enum oracle_positions positions;
    size_t rotary_dim;       /* 0: head_dim; the first ones of a head, in
                                latent attention the last */
    bool heads_grow;         /* scores of each head by the position */
    bool still_whole;        /* latent attention that does not turn has none of
                                these dimensions */
    bool learns_turning;     /* frequencies * exp(of each pair), scaled */
    bool is_interleaved;     /* pairs (0, 1), (2, 3), else (i, i + half) */
    bool turns_back;         /* by the negative angle */
    double theta;
    double window_theta;     /* in layers with the window, unscaled; 0: none */
    enum oracle_rope rope;
    double factor, low, high; /* low and high: beta_slow, beta_fast of YaRN */
    bool is_ramp_exact;      /* of YaRN */
    size_t original;         /* context before scaling */
    double rope_scale;       /* of cosines and sines; 0: 1 */
    double short_factors[ORACLE_MAX_PAIRS], long_factors[ORACLE_MAX_PAIRS];

    size_t n_experts, n_used, expert_dim, shared_dim;
    enum oracle_router router;
    bool renormalises;
    double router_scale, shared_scale; /* 0: 1 */
    double router_cap;       /* of its logits: cap * tanh(x / cap) */
    double reach;            /* of ORACLE_NEAR */
    bool weighs_input;       /* of an expert, not its output */
    bool routes_early;       /* by what enters the layer */
    size_t n_groups, n_groups_used, group_best; /* a group counts its so many
                                                   best experts */
};

struct oracle_model {
    struct oracle_shape shape;
    float *embedding; /* (vocab, dim) */
    struct oracle_norm embedding_norm; /* of what enters the first layer */
    float *inputs;    /* (vocab, layers, input_dim), or NULL */
    struct oracle_linear inputs_proj; /* of the embedding: the same width */
    struct oracle_norm inputs_norm;
    struct oracle_linear streams_in[3], streams_out[3]; /* but the first */
    struct oracle_hyper hyper; /* of what the head looks at */
    struct oracle_gated gated; /* likewise */
    float *table;     /* (max_positions, dim): learned positions, or NULL */
    struct oracle_norm turning; /* (pairs) in shape only; w NULL: nothing */
    struct oracle_layer *layers;
    struct oracle_norm norm;
    struct oracle_linear head; /* w may be the embedding */
};

double oracle_silu(double x);
double oracle_gelu(double x);
double oracle_gelu_tanh(double x);
double oracle_relu(double x);
double oracle_relu2(double x);
double oracle_silu_steep(double x); /* x * sigmoid(1.702 * x) */
double oracle_sigmoid(double x);

/* Whether the pattern has a '1' for the layer. */
bool oracle_pattern(const char *pattern, size_t layer);

/* Which halves the layer has. */
bool oracle_mixes(const struct oracle_shape *s, size_t layer);
bool oracle_feeds(const struct oracle_shape *s, size_t layer);

/* What the convolution of a recurrent layer goes over. */
size_t oracle_channels(const struct oracle_shape *s);

/* Rows of a table that a head of number `which` of the layers with tables looks
 * at. */
size_t oracle_gram_rows(const struct oracle_shape *s, size_t which,
                        size_t head);

/* Positions of a pool of the layer; 0: it has none. */
size_t oracle_pool_size(const struct oracle_shape *s, size_t layer);

/* Whether the layer sees everything, and so may have other heads. */
bool oracle_is_full(const struct oracle_shape *s, size_t layer);
size_t oracle_head_dim(const struct oracle_shape *s, size_t layer);
size_t oracle_heads(const struct oracle_shape *s, size_t layer);
size_t oracle_hidden(const struct oracle_shape *s, size_t layer);
size_t oracle_rotary_dim(const struct oracle_shape *s, size_t layer);
/* Of latent attention. */
size_t oracle_latent_turning(const struct oracle_shape *s, size_t layer);
size_t oracle_kv_rank(const struct oracle_shape *s, size_t layer);
/* Of what a head gives. */
size_t oracle_value_dim(const struct oracle_shape *s, size_t layer);
size_t oracle_kv_heads(const struct oracle_shape *s, size_t layer);
bool oracle_borrows(const struct oracle_shape *s, size_t layer);

/* The logits (n, vocabulary) after each of n tokens; freed with free(). Where
 * longrope turns a long sequence by other factors, those after the first
 * tokens are still of the short sequence that ends there. */
double *oracle_run(const struct oracle_model *model, const int32_t *tokens,
                   size_t n);

/* The same of a plain Llama (or Mistral) in a checkpoint. */
double *oracle_logits(struct lmq_checkpoint *checkpoint, const int32_t *tokens,
                      size_t n);

/* The largest difference, relative to the largest logit. */
double oracle_distance(const double *truth, const float *logits, size_t n);

#endif
