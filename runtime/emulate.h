/*
 * emulate.h - what another program would compute with: weights and activations
 * rounded as it rounds them, then multiplied in float32.
 */
#ifndef LMQ_RUNTIME_EMULATE_H
#define LMQ_RUNTIME_EMULATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text/name_table.h"
#include "formats/checkpoint/checkpoint.h"

enum lmq_emulation {
    LMQ_EMULATE_NONE,
    LMQ_EMULATE_Q8_0, /* llama.cpp's, all matrices alike (--pure) */
    LMQ_EMULATE_Q5_0,
    LMQ_EMULATE_Q5_1,
    LMQ_EMULATE_Q4_0,
    LMQ_EMULATE_Q4_1,
    LMQ_EMULATE_RUNQ  /* llama2.c's */
};

extern const struct lmq_name lmq_emulation_names[];

/* Rounds n numbers of a row, a block or what is left for the last one. */
typedef void lmq_round(float *x, size_t n);

/* What is done to a matrix, and to what it is multiplied with. */
struct lmq_rounding {
    size_t block;       /* 0: nothing. Who has another operand has another
                           block, too */
    size_t block_bytes; /* of the weights, as they would be stored */
    lmq_round *weights, *operand;
};

/* Of a matrix of the model. LMQ_ERR_UNSUPPORTED if the other program could
 * not have it. */
enum lmq_status lmq_emulation_find(enum lmq_emulation emulation,
                                   const struct lmq_hparams *hparams,
                                   const struct lmq_tensor *tensor,
                                   struct lmq_rounding *rounding,
                                   struct lmq_error *err);

/* What it multiplies with, as "q8/32". */
const char *lmq_emulation_activations(enum lmq_emulation emulation,
                                      const struct lmq_hparams *hparams);

/* n_rows rows, in place. */
void lmq_round_rows(lmq_round *round, size_t block, float *x, size_t n_rows,
                    size_t n_cols);

#endif
