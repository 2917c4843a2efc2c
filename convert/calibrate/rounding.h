/*
 * rounding.h - what becomes of one matrix of a layer.
 */
#ifndef LMQ_CONVERT_CALIBRATE_ROUNDING_H
#define LMQ_CONVERT_CALIBRATE_ROUNDING_H

#include "convert/calibrate/items.h"
#include "convert/piece.h"

/* Fills in what the plan knows of it as calibrated. The Hessian is factored for
 * gptq, weighed for search; NULL: without one. */
enum lmq_status lmq_cal_quantize(struct lmq_cal_layer *layer,
                                 const struct lmq_cal_item *item,
                                 const struct lmq_hessian *hessian,
                                 struct lmq_error *err);

/* From here on the layer computes with what will be written. */
enum lmq_status lmq_cal_use(const struct lmq_cal_layer *layer,
                            const struct lmq_cal_item *item,
                            struct lmq_error *err);

/* Whether all matrices of the layer are written already; and from here on the
 * layer computes with what was. */
enum lmq_status lmq_cal_is_written(const struct lmq_cal_layer *layer,
                                   bool *is_written, struct lmq_error *err);
enum lmq_status lmq_cal_use_written(const struct lmq_cal_layer *layer,
                                    const struct lmq_cal_item *item,
                                    const struct lmq_conversion *work,
                                    struct lmq_error *err);

#endif
