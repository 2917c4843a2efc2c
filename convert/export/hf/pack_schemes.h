/*
 * pack_schemes.h - what a scheme says of itself, and how it writes.
 */
#ifndef LMQ_CONVERT_EXPORT_HF_PACK_SCHEMES_H
#define LMQ_CONVERT_EXPORT_HF_PACK_SCHEMES_H

#include <jansson.h>

#include "base/files/output.h"
#include "formats/checkpoint/checkpoint.h"

#define LMQ_MAX_PIECES 4

struct lmq_pack_scheme;

/* The scheme that `to` means ("compressed-tensors", "mlx", "gptq"); NULL: it
 * means none, and elements are written as floats. */
const struct lmq_pack_scheme *lmq_pack_scheme_find(const char *to);

/* How a checkpoint is packed: one group size for all of its matrices, the
 * largest that leaves every stored integer as it is. */
struct lmq_packed_model {
    const struct lmq_pack_scheme *packing;
    const struct lmq_checkpoint *checkpoint;
    bool has_integers;    /* only what is quantized already is packed */
    unsigned group_size;
    enum lmq_dtype scales;
};

struct lmq_packed_target {
    const struct lmq_packed_model *model;
    struct lmq_checkpoint *checkpoint;
    const struct lmq_tensor *tensor;
    struct {
        struct lmq_output *output;
        uint64_t offset;
    } pieces[LMQ_MAX_PIECES];
};

/* Elements of a block of rows: several megabytes for a thread, so that
 * columns of long matrices are still written in runs of some size. */
#define LMQ_PACK_BLOCK ((size_t)1 << 22)

/* Some rows of a matrix, and where their bytes are made. */
struct lmq_pack_block {
    const struct lmq_packed_target *target;
    unsigned piece;
    uint64_t row;
    size_t n;
    const int8_t *q;
    const float *scales;
    unsigned char *bytes;
    bool *is_exact;
};

/* What a dimension of a piece is, of a matrix of rows, columns and groups in
 * each row. */
enum lmq_pack_dim {
    LMQ_PACK_NONE,
    LMQ_PACK_ROWS,
    LMQ_PACK_ROWS_BY_4, /* four to a word */
    LMQ_PACK_COLS,
    LMQ_PACK_COLS_BY_4,
    LMQ_PACK_GROUPS,
    LMQ_PACK_TWO
};

struct lmq_pack_piece {
    const char *suffix;
    enum lmq_dtype dtype; /* COUNT: that of the scales */
    enum lmq_pack_dim dims[2];
    enum lmq_status (*write)(struct lmq_pack_block *block,
                             struct lmq_error *err);
};

struct lmq_pack_scheme {
    const char *name;
    bool has_tables;   /* the embedding and the head are packed too */
    bool needs_all;    /* every matrix of a layer must be packed */
    bool has_halves;   /* scales are float16 whatever the rest is */
    bool has_delta;    /* its readers know layers with the delta rule */
    bool has_stacks;   /* all experts of a layer are one tensor */
    unsigned most_group;
    unsigned unit;     /* rows and columns come in multiples of it */
    unsigned n_pieces;
    struct lmq_pack_piece pieces[LMQ_MAX_PIECES];
    void (*configure)(const struct lmq_packed_model *model,
                      const json_t *ignored, json_t **config);
};

#endif
