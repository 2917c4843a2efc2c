/*
 * mendable.h - what a matrix can make up for of what earlier layers missed.
 */
#ifndef LMQ_CONVERT_CALIBRATE_MENDABLE_H
#define LMQ_CONVERT_CALIBRATE_MENDABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/model/hparams.h"
#include "formats/model/names.h"

/* How many numbers, and whether they are those that its products are added to,
 * or those of its n_cols that it is multiplied with; 0: nothing that is
 * known. */
size_t lmq_mendable(const struct lmq_hparams *h,
                    const struct lmq_place *place, size_t n_cols,
                    bool *is_output);

#endif
