/*
 * work.h - the memory of the forward pass, and the threads that share it.
 */
#ifndef LMQ_RUNTIME_WORK_H
#define LMQ_RUNTIME_WORK_H

#include "base/threads/team.h"
#include "runtime/model.h"
#include "runtime/reading.h"
#include "runtime/rope.h"

/* Attention: positions in a block, queries that meet it one after the other,
 * and so many of them together. */
#define LMQ_ATTENTION_BLOCK 128
#define LMQ_ATTENTION_QUERIES 256
#define LMQ_ATTENTION_STRIP 64

/* What one thread works with. */
struct lmq_thread_work {
    float *queries;  /* (LMQ_ATTENTION_QUERIES, width of a key) */
    float *out;      /* (LMQ_ATTENTION_QUERIES, width of a value) */
    float *scores;   /* (LMQ_ATTENTION_STRIP, LMQ_ATTENTION_BLOCK) */
    float *keys, *values; /* (LMQ_ATTENTION_BLOCK, width of a key, a value): of
                             the cache, as floats; keys perhaps turned */
    float *widened;  /* (LMQ_TILE_ROWS, widest matrix and a group): rows as
                        floats */
    float *selection; /* (2, experts): of experts and of their groups */
    unsigned char *states; /* (2, experts) */
    /* Of pools: weights of the positions that one is made of, one of them, and
     * the angles that it turns by; what all are worth to a token. */
    float *pool_weights, *pool, *pool_cosines, *pool_sines, *worths;
    void *scratch;   /* of the kernels */
};

/* Cosines and sines of a batch's positions. */
struct lmq_angles {
    double *frequencies;    /* (rotary_dim / 2) */
    float *cosines, *sines; /* (batch, rotary_dim / 2) */
};

/* Which experts a batch's tokens go to. An expert's rows stand together, in
 * the order of the tokens. */
struct lmq_routing {
    float *logits;     /* (batch, n_experts) */
    uint32_t *experts; /* (batch, n_experts_used), ascending */
    float *weights;    /* (batch, n_experts_used) */
    uint32_t *rows;    /* (batch, n_experts_used) */
    uint32_t *first;   /* (n_experts + 1): each one's first row */
    uint32_t *tokens;  /* (batch * n_experts_used): each row's */
    size_t capacity;   /* rows that are worked on at a time */
    float *input, *output; /* (capacity, dim) */
    float *switches;   /* (batch) */
};

struct lmq_witness; /* product.h */

/* What the forward pass works with: buffers for `batch` tokens. Those that
 * the model has no use for are empty. */
struct lmq_work {
    size_t batch;
    size_t n_sequences;   /* given, 1 at first: a batch is as many tokens of
                             each, those of one after those of another */
    struct lmq_team *team;
    int n_threads;        /* its members at most */
    bool takes_all;       /* all work on any step: the caller chose them */
    double layer_weights; /* multiplied per token and layer, on average */
    enum lmq_activations activations;
    struct lmq_reading reading; /* of a single token */
    long n_disk_waits; /* of the program, when this batch began */
    bool waits_for_disk; /* weights may have to be read from it */
    size_t context;   /* positions that an lmq_kv has room for */
    const int32_t *tokens; /* (batch): given; for tables by tokens */
    float *x;         /* (batch, dim): the residual stream */
    float *xn;        /* (batch, dim): norm(x), a block's input */
    float *feed_xn;   /* (batch, dim): the feed-forward's, where blocks are
                         parallel */
    float *q;         /* (batch, heads * head_dim) */
    float *k, *v;     /* (batch, cached heads * width of a key, a value) */
    float *attention; /* (batch, heads * value_dim): softmax(q k) v */
    float *attn_gate; /* the same size: what that is multiplied by */
    float *delta_alpha, *delta_beta; /* (batch, steps), (.., value heads) */
    float *step_latents; /* (batch, step_rank) */
    float *gate_latents; /* (batch, gate_rank) */
    float *out;       /* (batch, dim): a block's output */
    float *inputs;    /* (batch, n_layers, layer_input_dim): what layers are
                         given of the tokens themselves */
    float *input_rows, *input_products; /* the same size: made of these */
    float *streams;   /* (batch, n_streams - 1, dim): those beside x */
    float *hyper;     /* (batch, mixes): how a block reads, writes, mixes */
    float *gated_xn, *gated_gates; /* (batch, n_streams, dim): all streams,
                                      normed; what they are multiplied by */
    float *gated_latents; /* (batch, stream_rank) */
    float *gram_rows, *gram_values; /* (batch, gram width), (batch, dim) */
    float *gram_keys, *gram_conv; /* (batch, n_streams, dim) */
    float *predicted; /* (batch, dim): x as it was before a layer's blocks */
    float *bypass;    /* (batch, dim): what goes past attention */
    float *bypass_latents; /* (batch, residual_rank) */
    float *norm_gate; /* (batch, dim): what a block's input is multiplied by */
    float *norm_latents; /* (batch, norm_gate_rank) */
    float *levels;    /* (batch): of sparse feed-forwards */
    float *router_xn, *experts_xn; /* (batch, dim): norm(x), where they have
                                      norms of their own */
    float *gate, *up; /* (batch, hidden_dim), or of experts' rows */
    float *q_a;       /* (batch, q_lora_rank) */
    float *q_pair;    /* (batch, 2 * q_lora_rank): normed, and as they were */
    float *q_latent;  /* (batch, heads, width of a key) */
    float *out_latent; /* (batch, heads, kv_lora_rank) */
    float *out_a;     /* (batch, n_out_groups * out_rank) */
    float *pool_kv, *pool_gate; /* (batch, widest that layers pool) */
    float *index_kv, *index_gate; /* (batch, 2 * index_dim), or keys */
    float *index_q, *index_weights; /* (batch, index heads * dim, heads) */
    unsigned char *chosen; /* (batch, lmq_choice_bytes()): what a token sees */
    float *slopes;    /* (heads), of ALiBi */
    struct lmq_angles angles[LMQ_ROPE_KINDS];
    size_t angles_at, n_angles; /* the positions that they are of */
    size_t length;    /* given: tokens of the sequence that is evaluated */
    bool is_long;     /* what that meant for the angles (lmq_rope_is_long) */
    struct lmq_hparams positions_of; /* a copy: what angles and slopes are of */
    struct lmq_routing routing;
    unsigned char *packed;  /* quantized activations */
    const struct lmq_witness *witness; /* of products; or NULL */
    struct lmq_thread_work *threads; /* (n_threads) */
    void **owned;           /* the memory of all that */
    size_t n_owned, owned_capacity;
};

/* Whether there can be work of that size: the model may not have positions for
 * such a context. */
enum lmq_status lmq_work_check(const struct lmq_model *model, size_t batch,
                               size_t context, struct lmq_error *err);

/* Shared with the validator, which brings its own keys and values. Checks the
 * sizes, too. */
enum lmq_status lmq_work_init(struct lmq_work *work,
                              const struct lmq_model *model, size_t batch,
                              size_t context,
                              enum lmq_activations activations, int threads,
                              struct lmq_error *err);
void lmq_work_free(struct lmq_work *work);

/* RoPE angles of n positions from `position` on, unless they are there. */
void lmq_work_set_positions(struct lmq_work *work,
                            const struct lmq_hparams *hparams, size_t n,
                            size_t position);

/* How many members of the team should multiply n tokens with so many weights:
 * with too little work for each, barriers take longer than sharing saves. */
size_t lmq_work_members(const struct lmq_work *work, double weights, size_t n);

/* About how many bytes lmq_work_init() would allocate. */
double lmq_work_bytes(const struct lmq_model *model, size_t batch,
                      size_t context, int threads);

/* Of what layers are given of a token itself. */
static inline size_t
lmq_inputs_width(const struct lmq_hparams *hparams)
{
    return (size_t)hparams->n_layers * hparams->layer_input_dim;
}

/* Of the streams beside the first. */
static inline size_t
lmq_streams_width(const struct lmq_hparams *hparams)
{
    return hparams->n_streams == 0
               ? 0
               : (hparams->n_streams - 1) * (size_t)hparams->dim;
}

/* Bytes that are enough for one quantized row of an operand in any groups, and
 * keep the next one aligned: the smallest have the most scales, the largest the
 * most padding. Rounded ones are floats. */
static inline size_t
lmq_packed_bytes(size_t n_cols)
{
    size_t packed = lmq_batch_bytes(1, n_cols + LMQ_GROUP_MAX, LMQ_GROUP_MIN);
    size_t floats = (n_cols + 15) / 16 * 64;

    return ((floats > packed ? floats : packed) + 63) / 64 * 64;
}

#endif
