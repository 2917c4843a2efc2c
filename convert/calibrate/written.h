/*
 * written.h - reads back what a conversion has written of a matrix.
 */
#ifndef LMQ_CONVERT_CALIBRATE_WRITTEN_H
#define LMQ_CONVERT_CALIBRATE_WRITTEN_H

#include "convert/piece.h"

/* The rows of a part that is done, (n_rows, n_cols) integers and their scales
 * as they are stored. */
enum lmq_status lmq_written_read(const struct lmq_conversion *work,
                                 const struct lmq_plan_part *part, int8_t *q,
                                 unsigned char *scales,
                                 struct lmq_error *err);

#endif
