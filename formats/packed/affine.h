/*
 * affine.h - matrices of codes with scales and zero points: what nearly
 * everybody packs.
 *
 * An element is (code - zero point) * scale, computed in float32: the
 * difference is exact, the product is rounded once. Or it is code * scale +
 * bias, where each step may be rounded to a smaller type. Scales and zero
 * points are for blocks of the matrix, or for columns that belong together
 * wherever they stand.
 */
#ifndef LMQ_FORMATS_PACKED_AFFINE_H
#define LMQ_FORMATS_PACKED_AFFINE_H

#include "formats/packed/packer.h"

/* A block that has no end. */
#define LMQ_BLOCK_ALL UINT64_MAX

struct lmq_affine {
    struct lmq_packing packing; /* first: what others know of it */
    struct lmq_grid codes;
    struct lmq_grid scales;  /* (rows of blocks, groups) */
    struct lmq_grid zeros;   /* the same, if has_zeros */
    struct lmq_grid members; /* (1, columns): the group of each, if
                                has_members */
    bool has_zeros, has_members;
    bool adds_zeros;        /* they are biases, added to code * scale */
    enum lmq_dtype rounding; /* each step is rounded to: F32, F16 or BF16; the
                                last two only with biases */
    uint64_t block_rows, block_cols;
    uint64_t n_groups; /* in a row */
    bool is_inverse;           /* codes are divided by their scales: multiplied
                                  by 1 / scale, a last bit may differ */
    float divisor, multiplier; /* of all scales; 0: there is none */
    struct lmq_grid gains;     /* (1, matrices): by gains[i] / gain_divisor the
                                  scales of matrix i are multiplied */
    float gain_divisor;        /* 0: there are no gains */
    uint64_t gain_rows;        /* of a matrix */
    float factor;      /* of all products, then; of integers, of the scales: a
                          last bit may differ. 0: there is none */
};

/* From malloc, all zero but for the methods and what tensors of its kind are
 * called; NULL without memory. */
struct lmq_affine *lmq_affine_new(const char *name);

/* Reads all zero points, of bytes at most; where each is the one in the middle
 * of its bits, or of whole bytes 0, codes become integers with signs. */
enum lmq_status lmq_affine_centre(const struct lmq_packer *packer,
                                  struct lmq_affine *affine, uint64_t n_rows,
                                  uint64_t n_cols, struct lmq_error *err);

/* lmq_packer_join(). The tensor has a `quant` if codes less zero points fit
 * into 8 bits, and groups are runs of 32, 64, 128 or 256 columns. */
enum lmq_status
lmq_affine_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                const char *ending, const char *new_ending,
                struct lmq_affine *affine, const uint64_t *dims, size_t n_dims,
                struct lmq_tensor *const *parts, size_t n_parts,
                struct lmq_error *err);

#endif
