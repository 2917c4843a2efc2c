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
    void *owned;       /* copies, if there had to be any */
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
    bool is_int8;             /* some matrix is */
    float **vectors;          /* owned norms and biases */
    size_t n_vectors, vectors_capacity;
};

/* One row of a matrix as floats, without the bias. */
void lmq_matrix_row(const struct lmq_matrix *matrix, size_t row, float *out);

#endif
