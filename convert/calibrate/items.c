/*
 * items.c - lists what is to be calibrated of a layer.
 */
#include "config.h"

#include "convert/calibrate/items.h"

#include <stdlib.h>

#include "base/error.h"
#include "convert/calibrate/calibrator.h"
#include "convert/calibrate/mendable.h"

/* Matrices of one kind have one input. */
static enum lmq_role
input_of(const struct lmq_hparams *h, const struct lmq_place *place)
{
    bool is_recurrent = place->layer >= 0 &&
                        lmq_layer_only_recurs(h, (size_t)place->layer);

    switch (place->role) {
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_K:
        return is_recurrent && lmq_is_selective(h) ? LMQ_ROLE_DELTA_ALPHA_A
                                                   : LMQ_ROLE_ATTN_Q;
    case LMQ_ROLE_ATTN_GATE:
        if (!is_recurrent && h->has_raw_latents)
            return LMQ_ROLE_ATTN_Q_B;
        return is_recurrent && h->gate_rank > 0 ? LMQ_ROLE_ATTN_GATE
                                                : LMQ_ROLE_ATTN_Q;
    case LMQ_ROLE_STATE_GATE:
        return h->gate_rank > 0 ? LMQ_ROLE_STATE_GATE : LMQ_ROLE_ATTN_Q;
    case LMQ_ROLE_ATTN_V:
    case LMQ_ROLE_ATTN_GATE_A:
    case LMQ_ROLE_ATTN_Q_A:
    case LMQ_ROLE_ATTN_KV_A:
    case LMQ_ROLE_POOL_KV:
    case LMQ_ROLE_POOL_GATE:
    case LMQ_ROLE_INDEX_K:
    case LMQ_ROLE_INDEX_KV:
    case LMQ_ROLE_INDEX_GATE:
    case LMQ_ROLE_STATE_Q:
    case LMQ_ROLE_STATE_K:
    case LMQ_ROLE_STATE_V:
    case LMQ_ROLE_BYPASS_A:
        return LMQ_ROLE_ATTN_Q;
    case LMQ_ROLE_INDEX_Q:
        return LMQ_ROLE_ATTN_Q_B;
    case LMQ_ROLE_GRAM_KEY:
    case LMQ_ROLE_GRAM_VALUE:
        return LMQ_ROLE_GRAM_KEY;
    case LMQ_ROLE_FFN_GATE:
    case LMQ_ROLE_FFN_UP:
        return LMQ_ROLE_FFN_UP;
    case LMQ_ROLE_SHARED_GATE:
    case LMQ_ROLE_SHARED_UP:
    case LMQ_ROLE_SHARED_SWITCH:
        return LMQ_ROLE_SHARED_UP;
    default:
        return place->role;
    }
}

static size_t
find_input(struct lmq_cal_layer *layer, const struct lmq_matrix *matrix,
           size_t record)
{
    const struct lmq_place *place = &matrix->tensor->place;
    const struct lmq_quant *quant = &layer->plan->records[record].quant;
    size_t rotated =
        quant->rotation == LMQ_ROTATION_NONE ? 0 : quant->group_size;
    enum lmq_role role =
        input_of(&layer->calibrator->model->hparams, place);
    size_t i = 0;

    while (i < layer->n_inputs && (layer->inputs[i].role != role ||
                                   layer->inputs[i].number != place->item ||
                                   layer->inputs[i].rotated != rotated ||
                                   layer->inputs[i].n_cols != matrix->n_cols))
        i++;
    if (i == layer->n_inputs)
        layer->inputs[layer->n_inputs++] = (struct lmq_cal_input){
            .role = role, .number = place->item, .n_cols = matrix->n_cols,
            .rotated = rotated, .leader = matrix};
    struct lmq_cal_input *input = &layer->inputs[i];
    if (layer->calibrator->mend > 0 && quant->method == LMQ_METHOD_GPTQ)
        input->mend.n_rows =
            lmq_mendable(&layer->calibrator->model->hparams, place,
                             matrix->n_cols, &input->mend.is_output);
    return i;
}

/* The record of a matrix; n_records if there is none. */
static size_t
find_record(const struct lmq_plan *plan, const struct lmq_matrix *matrix)
{
    size_t i = 0;

    while (i < plan->n_records && plan->sources[i] != matrix->tensor)
        i++;
    return i;
}

/* What turns out not to be taken stays what it was here: else it would depend
 * on when that turned out. */
static bool
is_quantized(const struct lmq_plan *plan, size_t record)
{
    return plan->records[record].encoding == LMQ_ENCODING_Q8 &&
           !plan->calibrator->takes[record];
}

static bool
is_calibrated(const struct lmq_plan *plan, size_t record)
{
    return is_quantized(plan, record) &&
           plan->records[record].place.role != LMQ_ROLE_GRAM_TABLE &&
           plan->records[record].quant.method != LMQ_METHOD_ABSMAX;
}

static enum lmq_status
list_matrices(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    const struct lmq_plan *plan = layer->plan;
    const struct lmq_layer *own =
        &layer->calibrator->model->layers[layer->index];

    layer->items = calloc(own->n_matrices + 1, sizeof(*layer->items));
    layer->inputs = calloc(own->n_matrices + 1, sizeof(*layer->inputs));
    if (layer->items == NULL || layer->inputs == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < own->n_matrices; i++) {
        struct lmq_matrix *matrix = own->matrices[i];
        size_t record = find_record(plan, matrix);
        if (record == plan->n_records || !is_quantized(plan, record))
            continue;
        layer->items[layer->n_items++] = (struct lmq_cal_item){
            record, matrix,
            is_calibrated(plan, record) ? find_input(layer, matrix, record)
                                        : SIZE_MAX};
    }
    return LMQ_OK;
}

static size_t
record_of_head(const struct lmq_plan *plan)
{
    for (size_t i = 0; i < plan->n_records; i++) {
        const struct lmq_record *record = &plan->records[i];
        if (record->place.role == LMQ_ROLE_HEAD &&
            record->place.part == LMQ_PART_WEIGHT)
            return record->encoding == LMQ_ENCODING_ALIAS ? record->alias : i;
    }
    return plan->n_records;
}

size_t
lmq_cal_head(const struct lmq_plan *plan)
{
    size_t record = record_of_head(plan);

    return record < plan->n_records && is_calibrated(plan, record) ? record
                                                                   : SIZE_MAX;
}

static enum lmq_status
list_head(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    struct lmq_matrix *head = &layer->calibrator->model->head;
    size_t record = lmq_cal_head(layer->plan);

    layer->items = calloc(1, sizeof(*layer->items));
    layer->inputs = calloc(1, sizeof(*layer->inputs));
    if (layer->items == NULL || layer->inputs == NULL)
        return lmq_fail_nomem(err);
    if (record != SIZE_MAX)
        layer->items[layer->n_items++] = (struct lmq_cal_item){
            record, head, find_input(layer, head, record)};
    return LMQ_OK;
}

enum lmq_status
lmq_cal_list(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    return lmq_cal_is_head(layer) ? list_head(layer, err)
                                  : list_matrices(layer, err);
}

void
lmq_cal_forget(struct lmq_cal_input *input)
{
    lmq_hessian_free(&input->hessian);
    lmq_mend_free(&input->mend);
}

void
lmq_cal_free(struct lmq_cal_layer *layer)
{
    for (size_t i = 0; i < layer->n_inputs && layer->inputs != NULL; i++)
        lmq_cal_forget(&layer->inputs[i]);
    free(layer->inputs);
    free(layer->items);
}
