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

#include "formats/checkpoint.h"
#include "runtime/kernels.h"

/* A weight matrix in one of the two forms that there are kernels for. */
struct lmq_matrix {
    bool is_int8;
    struct lmq_tiles tiles; /* int8 */
    struct lmq_rows rows;   /* floats */
    size_t n_rows, n_cols;
    const float *bias; /* (n_rows), or NULL */
    const struct lmq_tensor *tensor; /* where it comes from */
    bool is_copied;      /* the kernels cannot take it as it lies in the file */
    void *owned;         /* the copy, while it is there */
    void *owned_scales;
};

struct lmq_layer {
    const float *attn_norm, *ffn_norm; /* (dim) */
    struct lmq_matrix q, k, v, out;
    struct lmq_matrix gate, up, down;
};

struct lmq_model {
    struct lmq_checkpoint *checkpoint; /* borrowed */
    struct lmq_hparams hparams;
    struct lmq_matrix embedding;
    struct lmq_matrix head; /* the embedding's memory if tied */
    const float *output_norm;
    struct lmq_layer *layers; /* (n_layers) */
    double *rope_frequencies; /* (head_dim / 2) */
    size_t n_copied_bytes;    /* what could not be used in place */
    bool is_lazy;             /* layers are copied when they are asked for */
    bool is_int8;             /* some matrix is */
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
enum lmq_status lmq_model_load_layer(struct lmq_model *model, size_t layer,
                                     struct lmq_error *err);
void lmq_model_drop_layer(struct lmq_model *model, size_t layer);

/* Bytes of the matrices of one layer, as the kernels read them. */
uint64_t lmq_model_layer_bytes(const struct lmq_model *model, size_t layer);

/* The seven matrices of a layer, for those who treat them alike. */
#define LMQ_LAYER_MATRICES 7
void lmq_layer_matrices(struct lmq_layer *layer,
                        struct lmq_matrix *matrices[LMQ_LAYER_MATRICES]);

uint64_t lmq_matrix_bytes(const struct lmq_matrix *matrix);

/* One row of a matrix as floats, without the bias. */
void lmq_matrix_row(const struct lmq_matrix *matrix, size_t row, float *out);

#endif
