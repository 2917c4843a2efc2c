/*
 * export_gguf_types.c - as what a GGUF holds each tensor.
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/text/name_table.h"
#include "convert/export/export_gguf.h"
#include "convert/q8_rows.h"
#include "formats/checkpoint/fused.h"
#include "quantize/blocks.h"

const struct lmq_gguf_stored_type
    lmq_gguf_stored_types[LMQ_GGUF_STORED_COUNT] = {
        [LMQ_GGUF_STORED_F32] = {"f32", 0, 0, 1, 4},
        [LMQ_GGUF_STORED_F16] = {"f16", 1, 1, 1, 2},
        [LMQ_GGUF_STORED_BF16] = {"bf16", 30, 32, 1, 2},
        [LMQ_GGUF_STORED_Q8_0] = {"q8_0", 8, 7, 32, 34},
        [LMQ_GGUF_STORED_Q4_0] = {"q4_0", 2, 2, 32, 18},
        [LMQ_GGUF_STORED_Q5_0] = {"q5_0", 6, 8, 32, 22},
        [LMQ_GGUF_STORED_MXFP4] = {"mxfp4", 39, 38, 32, 17},
        [LMQ_GGUF_STORED_I32] = {"i32", 26, 0, 1, 4},
};

bool
lmq_gguf_stays_float(const struct lmq_gguf_target *target)
{
    if (target->n_dims == 1 || target->n_sources == 0)
        return true;
    enum lmq_role role = target->sources[0]->place.role;
    if (role == LMQ_ROLE_POOL_BIAS || role == LMQ_ROLE_INDEX_BIAS)
        return true;
    if (target->sources[0]->place.part != LMQ_PART_WEIGHT) /* of experts */
        return true;
    return role == LMQ_ROLE_ROUTER || role == LMQ_ROLE_POSITIONS ||
           role == LMQ_ROLE_STREAM_ROUTER ||
           role == LMQ_ROLE_STREAM_PREDICT ||
           role == LMQ_ROLE_STREAM_CORRECT || role == LMQ_ROLE_HYPER_ATTN ||
           role == LMQ_ROLE_HYPER_FFN || role == LMQ_ROLE_HYPER_OUT ||
           lmq_role_is_convolution(role) || role == LMQ_ROLE_DELTA_DECAY ||
           role == LMQ_ROLE_STATE_SKIP || role == LMQ_ROLE_DELTA_NORM ||
           role == LMQ_ROLE_ATTN_Q_NORM || role == LMQ_ROLE_ATTN_K_NORM;
}

/* Whether half precision, without a multiplier, says all scales. */
static bool
has_half_scales(const struct lmq_tensor *tensor)
{
    const struct lmq_quant *quant = &tensor->quant;

    if (tensor->joined == NULL)
        return quant->scales == LMQ_SCALES_F16 && quant->multiplier >= 1 &&
               quant->multiplier <= 1;
    for (size_t i = 0; i < tensor->joined->n; i++)
        if (!has_half_scales(tensor->joined->parts[i]))
            return false;
    return true;
}

/* What has the integers as they are; the values of 6 bits are among those of
 * 8. */
static enum lmq_gguf_stored
block_type(const struct lmq_tensor *tensor)
{
    if (tensor->blocks != NULL || !has_half_scales(tensor))
        return LMQ_GGUF_STORED_Q8_0;
    return tensor->quant.bits == 4   ? LMQ_GGUF_STORED_Q4_0
           : tensor->quant.bits == 5 ? LMQ_GGUF_STORED_Q5_0
                                     : LMQ_GGUF_STORED_Q8_0;
}

/* Its blocks are in the order of the file, whatever its rows are in. */
static bool
is_mxfp4(const struct lmq_tensor *tensor)
{
    const struct lmq_view *view = &tensor->view;

    return tensor->encoding != NULL && strcmp(tensor->encoding, "mxfp4") == 0 &&
           tensor->joined == NULL && view->pitch == 0 &&
           view->columns.inner == 0 && view->column_pairs.n == 0 &&
           view->map == LMQ_MAP_NONE && !view->has_unit_rows &&
           !(view->times > 0) && !(view->plus > 0);
}

/* The type that keeps every bit, but for FP8 with scales: bfloat16 rounds it,
 * and is what its models are passed on in. */
static enum lmq_gguf_stored
own_type(const struct lmq_tensor *tensor)
{
    bool fits = tensor->n_cols % 32 == 0;

    if (fits && is_mxfp4(tensor))
        return LMQ_GGUF_STORED_MXFP4;
    if (tensor->blocks != NULL || lmq_q8_is_stored(tensor, 32))
        return fits ? block_type(tensor) : LMQ_GGUF_STORED_F32;
    if (tensor->dtype == LMQ_DTYPE_F16)
        return LMQ_GGUF_STORED_F16;
    if (tensor->dtype == LMQ_DTYPE_BF16 ||
        tensor->dtype == LMQ_DTYPE_F8_E4M3 ||
        tensor->dtype == LMQ_DTYPE_F8_E5M2)
        return LMQ_GGUF_STORED_BF16;
    return LMQ_GGUF_STORED_F32;
}

/* Its numbers name experts. */
static bool
is_table(const struct lmq_gguf_target *target)
{
    return target->n_sources > 0 &&
           target->sources[0]->place.role == LMQ_ROLE_TOKEN_EXPERTS;
}

enum lmq_gguf_stored
lmq_gguf_choose_type(const struct lmq_gguf_target *target,
                     const enum lmq_gguf_stored *wanted)
{
    if (is_table(target))
        return LMQ_GGUF_STORED_I32;
    if (lmq_gguf_stays_float(target))
        return LMQ_GGUF_STORED_F32;
    if (wanted != NULL && *wanted == LMQ_GGUF_STORED_Q8_0 &&
        target->n_cols % 32 != 0)
        return LMQ_GGUF_STORED_F16;
    if (wanted != NULL)
        return *wanted;
    enum lmq_gguf_stored type = own_type(target->sources[0]);
    for (size_t i = 1; i < target->n_sources; i++) {
        enum lmq_gguf_stored other = own_type(target->sources[i]);
        if (other == type)
            continue;
        if (lmq_gguf_stored_types[other].n != LMQ_GGUF_BLOCK ||
            lmq_gguf_stored_types[type].n != LMQ_GGUF_BLOCK ||
            other == LMQ_GGUF_STORED_MXFP4 || type == LMQ_GGUF_STORED_MXFP4)
            return LMQ_GGUF_STORED_F32;
        type = LMQ_GGUF_STORED_Q8_0; /* has the values of both */
    }
    return type;
}

enum lmq_status
lmq_gguf_parse_type(const char *name, enum lmq_gguf_stored *type,
                    struct lmq_error *err)
{
    static const struct lmq_name names[] = {
        {"f32", LMQ_GGUF_STORED_F32},   {"f16", LMQ_GGUF_STORED_F16},
        {"bf16", LMQ_GGUF_STORED_BF16}, {"q8_0", LMQ_GGUF_STORED_Q8_0},
        {NULL, 0},
    };
    int value = LMQ_GGUF_STORED_F32;
    enum lmq_status status = lmq_names_parse(names, "type", name, &value, err);

    *type = (enum lmq_gguf_stored)value;
    return status;
}
