/*
 * pack_schemes.c - how others pack integers and scales.
 *
 * All three schemes keep unsigned integers of 8 bits, four in a word, the
 * first one lowest; ours are these less 128. What differs is the order, and
 * how the 128 is said:
 *
 *   compressed-tensors  rows of words, rows of scales; symmetric
 *   mlx                 the same; a bias for each group: -128 * scale. MLX
 *                       rounds the product and then the sum, so that of
 *                       fewer bits 8, 16 or 32 are taken off: less to round
 *   gptq                words run down the inputs, an output in each column;
 *                       zero points, one less than they mean; the group that
 *                       each input belongs to
 */
#include "config.h"

#include "convert/export/hf/pack_schemes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/q8_rows.h"

#define BITS 8
#define ZERO 128

/* ---- Bytes ---- */

static size_t
groups_of(const struct lmq_pack_block *block)
{
    return lmq_groups_per_row((size_t)block->target->tensor->n_cols,
                              block->target->model->group_size);
}

/* n bytes, `at` bytes behind the beginning of the piece. */
static enum lmq_status
put(const struct lmq_pack_block *block, uint64_t at, const void *bytes,
    size_t n, struct lmq_error *err)
{
    return lmq_output_write(
        block->target->pieces[block->piece].output,
        block->target->pieces[block->piece].offset + at, bytes, n, err);
}

static enum lmq_status
write_codes(struct lmq_pack_block *block, int zero, struct lmq_error *err)
{
    size_t n_cols = (size_t)block->target->tensor->n_cols;

    for (size_t i = 0; i < block->n * n_cols; i++)
        block->bytes[i] = (unsigned char)(block->q[i] + zero);
    return put(block, block->row * n_cols, block->bytes, block->n * n_cols,
               err);
}

static enum lmq_status
write_words(struct lmq_pack_block *block, struct lmq_error *err)
{
    return write_codes(block, ZERO, err);
}

/* Scales, each times `factor`, as the model wants them. */
static enum lmq_status
encode_scale(const struct lmq_pack_block *block, size_t i, float factor,
             unsigned char *bytes, struct lmq_error *err)
{
    float x = block->scales[i] * factor, back = x;
    enum lmq_dtype dtype = block->target->model->scales;
    bool is_half = dtype == LMQ_DTYPE_F16;

    if (dtype == LMQ_DTYPE_F32) {
        lmq_store_f32le(bytes, x);
    } else {
        uint16_t bits = is_half ? lmq_f32_to_f16(x) : lmq_f32_to_bf16(x);
        lmq_store_u16le(bytes, bits);
        back = is_half ? lmq_f16_to_f32(bits) : lmq_bf16_to_f32(bits);
    }
    if (!isfinite(back)) {
        lmq_fail(err, LMQ_ERR_NONFINITE, 0,
                 "tensor '%s': the scale %g of row %" PRIu64
                 " is more than %s can hold",
                 block->target->tensor->name, (double)block->scales[i],
                 block->row + i / groups_of(block), lmq_dtype_name(dtype));
        return LMQ_ERR_NONFINITE;
    }
    if (back < x || back > x)
        *block->is_exact = false;
    return LMQ_OK;
}

static enum lmq_status
write_scale_rows(struct lmq_pack_block *block, float factor,
                 struct lmq_error *err)
{
    size_t width = lmq_dtype_size(block->target->model->scales);
    size_t n_groups = groups_of(block), n = block->n * n_groups;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        status = encode_scale(block, i, factor, block->bytes + i * width, err);
    return status == LMQ_OK ? put(block, block->row * n_groups * width,
                                  block->bytes, n * width, err)
                            : status;
}

static enum lmq_status
write_scales(struct lmq_pack_block *block, struct lmq_error *err)
{
    return write_scale_rows(block, 1, err);
}

/* What MLX takes off the integers of this matrix. */
static int
mlx_zero(const struct lmq_pack_block *block)
{
    const struct lmq_packed_target *target = block->target;

    return lmq_q8_is_stored(target->tensor, target->model->group_size)
               ? 1 << (target->tensor->quant.bits - 1)
               : ZERO;
}

static enum lmq_status
write_mlx_words(struct lmq_pack_block *block, struct lmq_error *err)
{
    return write_codes(block, mlx_zero(block), err);
}

/* Whether MLX, which rounds twice, makes the same weights of one group. */
static bool
is_exact_in_mlx(enum lmq_dtype dtype, const int8_t *q, size_t n, int zero,
                float scale)
{
    const float stored = lmq_dtype_round(dtype, scale);
    const float bias = lmq_dtype_round(dtype, (float)-zero * scale);
    bool is_exact = true;

    for (size_t i = 0; i < n && is_exact; i++) {
        float product = (float)(q[i] + zero) * stored;
        if (dtype != LMQ_DTYPE_F32)
            product = lmq_dtype_round(dtype, product);
        float sum = product + bias;
        if (dtype != LMQ_DTYPE_F32)
            sum = lmq_dtype_round(dtype, sum);
        float x = (float)q[i] * scale;
        is_exact = sum >= x && sum <= x;
    }
    return is_exact;
}

static enum lmq_status
write_biases(struct lmq_pack_block *block, struct lmq_error *err)
{
    const size_t group = block->target->model->group_size;
    const int zero = mlx_zero(block);

    for (size_t i = 0; i < block->n * groups_of(block) && *block->is_exact;
         i++)
        *block->is_exact =
            is_exact_in_mlx(block->target->model->scales,
                            block->q + i * group, group, zero,
                            block->scales[i]);
    return write_scale_rows(block, (float)-zero, err);
}

/* What follows from the shape alone comes with the first rows. */
static enum lmq_status
write_shape(struct lmq_pack_block *block, struct lmq_error *err)
{
    unsigned char bytes[16];

    if (block->row > 0)
        return LMQ_OK;
    lmq_store_u64le(bytes, block->target->tensor->n_rows);
    lmq_store_u64le(bytes + 8, block->target->tensor->n_cols);
    return put(block, 0, bytes, sizeof(bytes), err);
}

/* Four inputs of an output are a word; a row of words has all outputs. */
static enum lmq_status
write_columns(struct lmq_pack_block *block, struct lmq_error *err)
{
    uint64_t n_rows = block->target->tensor->n_rows;
    size_t n_cols = (size_t)block->target->tensor->n_cols;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_cols / 4 && status == LMQ_OK; i++) {
        for (size_t row = 0; row < block->n; row++)
            for (size_t k = 0; k < 4; k++)
                block->bytes[4 * row + k] =
                    (unsigned char)(block->q[row * n_cols + 4 * i + k] + ZERO);
        status = put(block, (i * n_rows + block->row) * 4, block->bytes,
                     4 * block->n, err);
    }
    return status;
}

static enum lmq_status
write_scale_columns(struct lmq_pack_block *block, struct lmq_error *err)
{
    uint64_t n_rows = block->target->tensor->n_rows;
    size_t width = lmq_dtype_size(block->target->model->scales);
    size_t n_groups = groups_of(block);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_groups && status == LMQ_OK; i++) {
        for (size_t row = 0; row < block->n && status == LMQ_OK; row++)
            status = encode_scale(block, row * n_groups + i, 1,
                                  block->bytes + row * width, err);
        if (status == LMQ_OK)
            status = put(block, (i * n_rows + block->row) * width,
                         block->bytes, block->n * width, err);
    }
    return status;
}

/* The zero point is 128, stored less one. */
static enum lmq_status
write_zeros(struct lmq_pack_block *block, struct lmq_error *err)
{
    uint64_t left = groups_of(block) * block->target->tensor->n_rows, at = 0;
    enum lmq_status status = LMQ_OK;

    if (block->row > 0)
        return LMQ_OK;
    size_t most = (size_t)lmq_u64_min(left, LMQ_PACK_BLOCK);
    memset(block->bytes, ZERO - 1, most);
    while (left > 0 && status == LMQ_OK) {
        size_t n = (size_t)lmq_u64_min(left, most);
        status = put(block, at, block->bytes, n, err);
        at += n;
        left -= n;
    }
    return status;
}

static enum lmq_status
write_inputs(struct lmq_pack_block *block, struct lmq_error *err)
{
    size_t n_cols = (size_t)block->target->tensor->n_cols;

    if (block->row > 0)
        return LMQ_OK;
    for (size_t i = 0; i < n_cols; i++)
        lmq_store_u32le(block->bytes + 4 * i,
                        (uint32_t)(i / block->target->model->group_size));
    return put(block, 0, block->bytes, 4 * n_cols, err);
}

/* ---- What config.json says ---- */

static void
configure_compressed(const struct lmq_packed_model *model,
                     const json_t *ignored, json_t **config)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:O,"
        " s:{s:{s:[s], s:n, s:n,"
        " s:{s:i, s:s, s:b, s:s, s:i, s:b}}}}",
        "quant_method", "compressed-tensors", "format", "pack-quantized",
        "quantization_status", "compressed", "ignore", ignored,
        "config_groups", "group_0", "targets", "Linear", "input_activations",
        "output_activations", "weights", "num_bits", BITS, "type", "int",
        "symmetric", 1, "strategy", "group", "group_size",
        (int)model->group_size, "dynamic", 0);

    lmq_put(config, "quantization_config", json);
}

static void
configure_mlx(const struct lmq_packed_model *model, const json_t *ignored,
              json_t **config)
{
    (void)ignored; /* whose scales are missing, is not packed */
    for (size_t i = 0; i < 2; i++)
        lmq_put(config, i == 0 ? "quantization" : "quantization_config",
                json_pack("{s:i, s:i, s:s}", "group_size",
                          (int)model->group_size, "bits", BITS, "mode",
                          "affine"));
}

static void
configure_gptq(const struct lmq_packed_model *model, const json_t *ignored,
               json_t **config)
{
    (void)ignored; /* never in a layer: needs_all */
    lmq_put(config, "quantization_config",
            json_pack("{s:s, s:s, s:i, s:i, s:b, s:b, s:b}", "quant_method",
                      "gptq", "checkpoint_format", "gptq", "bits", BITS,
                      "group_size", (int)model->group_size, "sym", 1,
                      "desc_act", 0, "lm_head", 0));
}

/* ---- The schemes ---- */

static const struct lmq_pack_scheme packings[] = {
    {.name = "compressed-tensors",
     .has_delta = true,
     .most_group = LMQ_GROUP_MAX,
     .unit = 4,
     .n_pieces = 3,
     .pieces =
         {{"weight_packed", LMQ_DTYPE_I32, {LMQ_PACK_ROWS, LMQ_PACK_COLS_BY_4},
           write_words},
          {"weight_scale", LMQ_DTYPE_COUNT, {LMQ_PACK_ROWS, LMQ_PACK_GROUPS},
           write_scales},
          {"weight_shape", LMQ_DTYPE_I64, {LMQ_PACK_TWO}, write_shape}},
     .configure = configure_compressed},
    {.name = "mlx",
     .has_tables = true,
     .has_stacks = true,
     .most_group = 128,
     .unit = 4,
     .n_pieces = 3,
     .pieces =
         {{"weight", LMQ_DTYPE_U32, {LMQ_PACK_ROWS, LMQ_PACK_COLS_BY_4},
           write_mlx_words},
          {"scales", LMQ_DTYPE_COUNT, {LMQ_PACK_ROWS, LMQ_PACK_GROUPS},
           write_scales},
          {"biases", LMQ_DTYPE_COUNT, {LMQ_PACK_ROWS, LMQ_PACK_GROUPS},
           write_biases}},
     .configure = configure_mlx},
    {.name = "gptq",
     .needs_all = true,
     .has_halves = true,
     .most_group = LMQ_GROUP_MAX,
     .unit = 32,
     .n_pieces = 4,
     .pieces =
         {{"qweight", LMQ_DTYPE_I32, {LMQ_PACK_COLS_BY_4, LMQ_PACK_ROWS},
           write_columns},
          {"scales", LMQ_DTYPE_COUNT, {LMQ_PACK_GROUPS, LMQ_PACK_ROWS},
           write_scale_columns},
          {"qzeros", LMQ_DTYPE_I32, {LMQ_PACK_GROUPS, LMQ_PACK_ROWS_BY_4},
           write_zeros},
          {"g_idx", LMQ_DTYPE_I32, {LMQ_PACK_COLS}, write_inputs}},
     .configure = configure_gptq},
};

const struct lmq_pack_scheme *
lmq_pack_scheme_find(const char *to)
{
    for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
        if (strcmp(packings[i].name, to) == 0)
            return &packings[i];
    return NULL;
}
