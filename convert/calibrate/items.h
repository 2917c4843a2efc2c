/*
 * items.h - the matrices of a layer that become integers, and which of them
 * share what they are multiplied with.
 */
#ifndef LMQ_CONVERT_CALIBRATE_ITEMS_H
#define LMQ_CONVERT_CALIBRATE_ITEMS_H

#include "convert/calibrate/calibrator.h"

/* A matrix of the layer that becomes integers. */
struct lmq_cal_item {
    size_t record;
    struct lmq_matrix *matrix;
    size_t input; /* number of its Hessian; SIZE_MAX: it wants none */
};

struct lmq_cal_input {
    enum lmq_role role;
    int32_t number; /* of the expert or the head */
    size_t n_cols;
    size_t rotated; /* groups in which it is; 0: it is not */
    const struct lmq_matrix *leader; /* of those that have it, the first */
    struct lmq_hessian hessian;
    struct lmq_mend mend;   /* n_rows and is_output at all times */
    bool is_watched;        /* in this go */
};

struct lmq_cal_layer {
    struct lmq_calibrator *calibrator;
    struct lmq_plan *plan;
    size_t index; /* of the layer; behind the last one is the head */
    struct lmq_cal_item *items;
    size_t n_items;
    struct lmq_cal_input *inputs;
    size_t n_inputs;
};

static inline bool
lmq_cal_is_head(const struct lmq_cal_layer *layer)
{
    return layer->index == layer->calibrator->model->hparams.n_layers;
}

/* What the head becomes, of a tied one the embedding; SIZE_MAX: nothing that is
 * learnt. plan->calibrator->takes are known. */
size_t lmq_cal_head(const struct lmq_plan *plan);

/* Fills in items and inputs of a layer that is loaded, or of the head. To be
 * freed even if it fails. */
enum lmq_status lmq_cal_list(struct lmq_cal_layer *layer,
                             struct lmq_error *err);
void lmq_cal_free(struct lmq_cal_layer *layer);

/* What an input has added up. */
void lmq_cal_forget(struct lmq_cal_input *input);

#endif
