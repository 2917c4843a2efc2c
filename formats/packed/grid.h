/*
 * grid.h - a stored matrix of small numbers: codes, zero points, scales.
 *
 * A file has words in lines. A word is a number, or numbers of a few bits
 * stand in a run of words, each where the one before it ends, from the lowest
 * bit up; a run goes along a line, or down the words of one place of all
 * lines. Lines are rows of the matrix, or its columns.
 */
#ifndef LMQ_FORMATS_PACKED_GRID_H
#define LMQ_FORMATS_PACKED_GRID_H

#include "formats/checkpoint/checkpoint.h"

struct lmq_grid {
    uint32_t file;
    uint64_t offset;
    uint64_t n_words;      /* of a line */
    enum lmq_dtype dtype;  /* of a word; I32, U32 or U8 if it is packed */
    unsigned bits;         /* of a number, at most 8; 0: a word is one */
    bool is_stacked;       /* runs go down the lines */
    bool is_turned;        /* lines are columns of the matrix */
    const uint8_t *order;  /* where in a word of 32 bits number i stands; NULL:
                              in its place */
    uint32_t word_plus;    /* to be added to a word before it is taken apart,
                              and to a number after that: both wrap */
    uint32_t number_plus;
    const float *levels;   /* what the codes of so many bits mean; NULL: */
    bool is_exponent;      /* the power of two that they are (E8M0) or */
    int32_t minus;         /* the number less this one */
};

/* The bytes that lmq_grid_read() needs to have at `raw`; false: too many. */
bool lmq_grid_raw_size(const struct lmq_grid *grid,
                       const struct lmq_area *area, size_t *size);

/* The numbers of an area, row after row; `values` NULL: only the bytes of its
 * words. */
enum lmq_status lmq_grid_read(struct lmq_checkpoint *checkpoint,
                              const struct lmq_grid *grid,
                              const struct lmq_area *area, unsigned char *raw,
                              float *values, struct lmq_error *err);

#endif
