/*
 * model.h - the weights of a model, ready to be multiplied.
 *
 * Made from a checkpoint of any format: a container's tiles and a float
 * checkpoint's rows are used where they lie in the mapped file; only what the
 * kernels cannot take as it is (other arrangements and types) is copied.
 * Read-only once open, so any number of sessions and threads share it.
 */
#ifndef LMQ_RUNTIME_MODEL_H
#define LMQ_RUNTIME_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/name_table.h"
#include "formats/checkpoint/checkpoint.h"
#include "runtime/emulate.h"
#include "runtime/kernels/kernels.h"

/* A weight matrix in one of the two forms that there are kernels for. */
struct lmq_matrix {
    bool is_int8;
    struct lmq_tiles tiles; /* int8; of a matrix in several files, what stands
                               in the first */
    struct lmq_tiles *further; /* and in the others, row after row */
    size_t n_further;
    struct lmq_rows rows;   /* floats */
    struct lmq_rounding rounding; /* of them, of a model that emulates; its
                                     block is tiles.group, too */
    size_t n_rows, n_cols;
    float *bias; /* (n_rows), or NULL */
    const struct lmq_tensor *tensor; /* where it comes from */
    bool is_copied;      /* the kernels cannot take it as it lies in the file */
    bool is_verified;    /* its checksums were compared */
    void *owned;         /* the copy, while it is there */
    void *owned_scales;
};

/* What a norm multiplies with and adds, where there is something. */
struct lmq_gain {
    float *weight, *bias;
};

/* A feed-forward network; no `gate` where the model is not gated. */
struct lmq_ffn {
    struct lmq_matrix gate, up, down;
};

/* Value heads of a selective recurrence, each of one number, are taken by
 * pieces that share a key: states, and how they decay, lie piece behind piece,
 * each (key dim, size). */
struct lmq_state_piece {
    size_t first, size; /* value heads */
    size_t key_head;
};

#define LMQ_STATE_PIECE ((size_t)64)

/* Number i of them; false behind the last. */
static inline bool
lmq_state_piece_at(const struct lmq_hparams *h, size_t i,
                   struct lmq_state_piece *piece)
{
    size_t n = h->n_delta_value_heads / h->n_delta_key_heads; /* of a key */
    size_t n_pieces = (n + LMQ_STATE_PIECE - 1) / LMQ_STATE_PIECE;
    size_t at = i % n_pieces * LMQ_STATE_PIECE;

    piece->key_head = i / n_pieces;
    piece->first = piece->key_head * n + at;
    piece->size = n - at < LMQ_STATE_PIECE ? n - at : LMQ_STATE_PIECE;
    return piece->key_head < h->n_delta_key_heads;
}

/* Of what a norm gives, if there is one: (norm_gate_rank, dim), (dim,
 * norm_gate_rank). */
struct lmq_norm_gate {
    struct lmq_matrix a, b;
};

/* What says of all streams how a block reads them, writes to them and mixes
 * them, with `mixes` numbers for that: (mixes, n_streams * dim), (mixes), one
 * for each of these purposes. */
struct lmq_hyper {
    float *fn, *base, *scale;
};

/* What makes a gate for each number of all streams, that a block reads, and
 * says how it writes to them: (stream_rank, n_streams * dim), (n_streams * dim,
 * stream_rank), (n_streams, n_streams * dim). */
struct lmq_gated {
    struct lmq_matrix down, up;
    float *write; /* NULL where nothing is written */
};

/* What streams are given of the last tokens (stream/sequences.c). */
struct lmq_grams {
    struct lmq_matrix table;      /* (rows, gram_dim) */
    struct lmq_matrix key, value; /* (n_streams * dim, all rows of a token),
                                     (dim, the same) */
    struct lmq_gain key_norm, query_norm, conv_norm; /* (n_streams * dim) */
    float *conv;                  /* (n_streams * dim, gram_conv_width) */
};

/* What makes pools (pooling.c). */
struct lmq_pool {
    struct lmq_matrix kv, gate; /* (width, dim) */
    float *bias;                /* (positions of a pool, width) */
    struct lmq_gain norm;       /* (width of a key) */
};

/* What a layer's attention consists of. What its model does not have is all
 * zero: which that is follows from the description. */
struct lmq_attention_part {
    struct lmq_gain norm, post_norm; /* (dim) */
    struct lmq_norm_gate norm_gate;
    struct lmq_hyper hyper;
    struct lmq_gated gated;
    struct lmq_grams grams;
    struct lmq_matrix q, k, v, out;
    struct lmq_gain q_norm, k_norm;
    struct lmq_gain sub_norm;        /* (n_heads * value dim) */
    float *sinks;                    /* (n_heads) */
    struct lmq_gain growth;          /* (n_heads): of scores by the position */
    /* Latent attention: q_a and q_b, or q; kv_a; a k_b and v_b per head. */
    struct lmq_matrix q_a, q_b, kv_a;
    struct lmq_gain q_a_norm, kv_a_norm;
    struct lmq_matrix *k_b, *v_b;    /* (n_heads) */
    /* What heads give is multiplied by it, if there is one. */
    struct lmq_matrix gate, gate_a; /* of a recurrence perhaps by gate_a */
    /* Of parts of what heads give, before out. */
    struct lmq_matrix *out_a;        /* (n_out_groups) */
    struct lmq_pool pool;
    /* What chooses among pools: has some of its own. */
    struct lmq_pool index_pool;
    struct lmq_matrix index_q;       /* (heads * dim, q_lora_rank) */
    struct lmq_matrix index_weights; /* (heads, dim) */
    /* What chooses among positions has these two, and */
    struct lmq_matrix index_k;       /* (dim of the index, dim) */
    struct lmq_gain index_k_norm;
    /* Recurrent layers: q, k, v, gate, out, and */
    struct lmq_matrix delta_alpha, delta_beta; /* (steps, dim), (value heads,
                                        dim) */
    struct lmq_matrix delta_alpha_a; /* (step_rank, dim), or of a selective one
                                        (step_rank, value heads), if there is
                                        one: then delta_alpha looks at what it
                                        gives */
    struct lmq_gain delta_alpha_norm; /* (step_rank) */
    struct lmq_gain delta_k_norm, delta_q_norm; /* (key dim) */
    float *delta_decay;              /* (value heads); of a selective one
                                        -exp(A), as states lie */
    struct lmq_gain delta_conv;      /* (channels, conv_width); (channels) */
    struct lmq_gain keep_gate, write_gate; /* of values of a head without keys:
                                        (values, value dim); (values) */
    struct lmq_gain delta_norm;      /* (value dim), or of all value heads */
    float *state_skip;               /* (value heads) */
    /* What goes past attention. */
    struct lmq_matrix bypass_a, bypass_b; /* (residual_rank, dim), (dim,
                                             residual_rank) */
    struct lmq_gain bypass_norm;     /* (dim) */
    /* In place of q, k, v, gate, out where attention stands beside it. */
    struct lmq_matrix state_q, state_k, state_v, state_gate, state_out;
};

/* And its feed-forward: one network, or experts. */
struct lmq_feed_part {
    struct lmq_gain norm, post_norm; /* (dim) */
    struct lmq_norm_gate norm_gate;
    struct lmq_hyper hyper;
    struct lmq_gated gated;
    struct lmq_gain sub_norm;        /* of what dense.down looks at */
    struct lmq_ffn dense;
    struct lmq_ffn *experts;         /* (n_experts) */
    struct lmq_matrix router;        /* (n_experts, dim) */
    float *correction;               /* (n_experts) */
    float *token_experts;            /* (vocabulary, n_experts_used), whole
                                        numbers, or NULL */
    struct lmq_ffn shared;
    struct lmq_matrix shared_switch; /* (1, dim) */
    /* Norms of their own: of what the router, of what experts look at; behind
     * experts, behind the shared one; and a number for each expert. */
    struct lmq_gain router_norm, experts_norm, experts_post_norm;
    struct lmq_gain shared_post_norm; /* (dim) */
    float *experts_scale;            /* (n_experts) */
    /* What the layer does with its input, and the stream's scale behind it. */
    struct lmq_matrix input_gate;    /* (layer_input_dim, dim) */
    struct lmq_matrix input_proj;    /* (dim, layer_input_dim) */
    struct lmq_gain input_norm;      /* (dim) */
    float *scale;                    /* (1) */
    /* Streams: what says how they change each other, and the change before and
     * behind the layer; what of the first meets the input. */
    struct lmq_gain stream_norm;     /* (dim) */
    float *stream_router;            /* (n_streams, dim) */
    float *stream_predict;           /* (n_streams, n_streams, n_streams) */
    float *stream_correct;           /* (n_streams, n_streams) */
    float *stream_scale;             /* (dim) */
    /* Of xIELU: log(exp(a) - 1) of both its a, its slope, its bound. */
    float *act_positive, *act_negative, *act_slope, *act_bound; /* (1) */
};

struct lmq_layer {
    struct lmq_attention_part attention;
    struct lmq_feed_part feed;
    struct lmq_matrix **matrices;    /* all of them, for those who treat them
                                        alike */
    size_t n_matrices, matrices_capacity;
};

/* How the activations enter an int8 product. */
enum lmq_activations {
    LMQ_ACTIVATIONS_Q8,  /* int8 in the weights' groups */
    LMQ_ACTIVATIONS_Q16, /* 16 bits: two int8 halves */
    LMQ_ACTIVATIONS_F32  /* not at all: the weights are widened instead */
};

extern const struct lmq_name lmq_activations_names[];

struct lmq_model {
    struct lmq_checkpoint *checkpoint; /* borrowed */
    struct lmq_hparams hparams;
    struct lmq_matrix embedding;
    struct lmq_matrix positions; /* learned ones: (positions, dim) */
    struct lmq_matrix head; /* the embedding's memory if tied */
    struct lmq_gain embedding_norm;
    struct lmq_matrix inputs; /* of layers: (vocabulary, n_layers *
                                 layer_input_dim) */
    struct lmq_matrix inputs_proj;
    struct lmq_gain inputs_norm;
    /* Of each stream but the first: (dim, dim). */
    struct lmq_matrix streams_in[LMQ_MAX_STREAMS - 1];
    struct lmq_matrix streams_out[LMQ_MAX_STREAMS - 1];
    struct lmq_hyper hyper; /* how the head reads streams: (n_streams, ...) */
    struct lmq_gated gated; /* likewise */
    struct lmq_gain output_norm;
    struct lmq_layer *layers; /* (n_layers + 1): the last has the matrices of
                                 none, and nothing else */
    size_t n_copied_bytes;    /* what could not be used in place */
    bool is_lazy;             /* layers are copied when they are asked for */
    bool is_resident;         /* all layers and the head are read when it is
                                 opened, if the file is used where it lies */
    bool reads_ahead;         /* what a batch may have to wait for is read from
                                 the disk before it is used */
    bool is_int8;             /* some matrix is, or is rounded */
    enum lmq_emulation emulation;
    const char *activations;  /* "q8", "q16", "f32": what the container
                                 recommends */
    float **vectors;          /* owned norms and biases */
    size_t n_vectors, vectors_capacity;
};

/*
 * The same as lmq_model_open(), but matrices that have to be copied are not:
 * lmq_model_load_layer() does that for one layer, and lmq_model_drop_layer()
 * gives its memory back, that of the mapped file too. So a model may be larger
 * than memory. The embedding and the head are always there.
 */
enum lmq_status lmq_model_open_lazily(struct lmq_checkpoint *checkpoint,
                                      struct lmq_model **model,
                                      struct lmq_error *err);
/* The same, rounded as another program rounds: weights when they are loaded,
 * activations when they are multiplied, unless they stay f32. */
enum lmq_status lmq_model_open_emulated(struct lmq_checkpoint *checkpoint,
                                        enum lmq_emulation emulation,
                                        struct lmq_model **model,
                                        struct lmq_error *err);
enum lmq_status lmq_model_load_layer(struct lmq_model *model, size_t layer,
                                     struct lmq_error *err);
void lmq_model_drop_layer(struct lmq_model *model, size_t layer);

/* What all tokens of a batch are multiplied with will be read from the file. */
void lmq_model_expect_layer(const struct lmq_model *model, size_t layer);

/* Compares the checksums of a layer's matrices, of those in no layer (-1). */
enum lmq_status lmq_model_verify(struct lmq_model *model, int32_t layer,
                                 struct lmq_error *err);

/* Bytes of the matrices of one layer, as the kernels read them. */
uint64_t lmq_model_layer_bytes(const struct lmq_model *model, size_t layer);

/* ---- Where the tensor of each role goes: load/slots.c ---- */

enum lmq_slot_kind {
    LMQ_SLOT_NONE,
    LMQ_SLOT_MATRIX,
    LMQ_SLOT_GAIN,
    LMQ_SLOT_VECTOR
};

enum lmq_slot_kind lmq_slot_kind(enum lmq_role role);

/* Small matrices of heads, which are floats as gains are. */
bool lmq_is_gate_of_values(const struct lmq_hparams *h, enum lmq_role role);

/* What the tensor at that place fills in, or NULL. */
void *lmq_slot_find(struct lmq_model *model, const struct lmq_place *place);

/* ---- Matrices ---- */

/* Uses the tensor where it lies, if the kernels can take it as it is. */
enum lmq_status lmq_matrix_open(struct lmq_model *model,
                                const struct lmq_tensor *tensor,
                                struct lmq_matrix *matrix,
                                struct lmq_error *err);

/* Compares its checksums, if the file has any and that was not done yet. What
 * is copied is verified by lmq_matrix_load(). */
enum lmq_status lmq_matrix_verify(struct lmq_model *model,
                                  struct lmq_matrix *matrix,
                                  struct lmq_error *err);

/* Makes the copy that the matrix needs, if it needs one and has none. */
enum lmq_status lmq_matrix_load(struct lmq_model *model,
                                struct lmq_matrix *matrix,
                                struct lmq_error *err);
void lmq_matrix_drop(struct lmq_matrix *matrix);

/* From then on it is these integers and stored scales, row after row, of which
 * a copy is made; until the layer is dropped. */
enum lmq_status lmq_matrix_replace(struct lmq_matrix *matrix,
                                   const struct lmq_quant *quant,
                                   const int8_t *q,
                                   const unsigned char *stored_scales,
                                   struct lmq_error *err);

/* What is mapped of it will be read soon. Neighbours are gathered in *expected,
 * zeroed at first, and read together when something elsewhere is expected, or
 * at last by lmq_expected_read(). */
struct lmq_expected {
    struct lmq_input *file; /* or NULL */
    uint64_t from, to;
};
void lmq_matrix_expect(const struct lmq_model *model,
                       const struct lmq_matrix *matrix,
                       struct lmq_expected *expected);
void lmq_expected_read(struct lmq_expected *expected);
/* Both of one matrix. */
void lmq_matrix_await(const struct lmq_model *model,
                      const struct lmq_matrix *matrix);

/* What is mapped of it need not stay in memory. */
void lmq_matrix_forget(const struct lmq_model *model,
                       const struct lmq_matrix *matrix);

uint64_t lmq_matrix_bytes(const struct lmq_matrix *matrix);

/* What a weight costs that n tokens are multiplied with, in multiplications:
 * reading it takes about as long as four of them. */
static inline size_t
lmq_weight_cost(size_t n)
{
    return n + 4;
}

/* The share of the tokens that go through a matrix of a layer: all, or what an
 * expert gets on average; of a table, of its rows that a token looks at. */
double lmq_matrix_share(const struct lmq_model *model,
                        const struct lmq_matrix *matrix);

/* One row of a matrix as floats, without the bias. */
void lmq_matrix_row(const struct lmq_matrix *matrix, size_t row, float *out);

/* The tiles of an int8 matrix that begin at its tile `*first` or before it:
 * that is set to where they begin. */
const struct lmq_tiles *lmq_matrix_tiles(const struct lmq_matrix *matrix,
                                         size_t *first);

#endif
