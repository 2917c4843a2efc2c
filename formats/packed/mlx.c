/*
 * mlx.c - what mlx-lm writes: codes along rows, with scales of groups.
 *
 *     NAME.weight (..., out, in * bits / 32)  32-bit words, codes one after the
 *                                             other from the lowest bit up
 *     NAME.scales (..., out, groups)
 *     NAME.biases (the same)                  mode "affine" only
 *     NAME.global_scale (experts)             mode "nvfp4", if any
 *
 * affine: code * scale + bias. mx.dequantize() rounds the product and the sum
 * to the type of the scales, and so do we; MLX's kernels for one vector on GPUs
 * compute with both in float32. mxfp4 and mxfp8: E2M1 or E4M3 times a power of
 * two (of the scale 255, which is infinity to MLX, we make NaN); nvfp4: E2M1
 * times E4M3. These are exact. A global scale, divided by 2688, is multiplied
 * with the scales of its expert first, which rounds.
 *
 * Group, bits and mode stand in config.json, under "quantization" for all
 * layers and under "quantization"."NAME" for one that is different.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/packed/schemes.h"

#define ENDING ".weight"
/* The largest of E2M1 times that of E4M3, which a global scale is for. */
#define GAIN_DIVISOR 2688.0f

/* The only bits and group of a mode; 0: there are several. */
static const struct mode {
    const char *name;
    unsigned bits, group;
} modes[] = {
    {"affine", 0, 0},
    {"mxfp4", 4, 32},
    {"mxfp8", 8, 32},
    {"nvfp4", 4, 16},
};

#define N_MODES (sizeof(modes) / sizeof(modes[0]))

struct mlx {
    struct lmq_tensor *codes, *scales, *biases, *gains;
    const struct mode *mode;
    unsigned bits, group;
    uint64_t cols;
};

/* ---- What the configuration says ---- */

/* Of this layer, or of all; NULL if this one is said to be plain. */
static const json_t *
find_settings(const struct lmq_packer *packer, const struct lmq_tensor *tensor)
{
    char name[LMQ_MAX_TENSOR_NAME];

    snprintf(name, sizeof(name), "%.*s",
             (int)(strlen(tensor->stored_name) - strlen(ENDING)),
             tensor->stored_name);
    const json_t *own = json_object_get(packer->config, name);
    return json_is_false(own)    ? NULL
           : json_is_object(own) ? own
                                 : packer->config;
}

/* The mode that is said; if that is none of this tensor's, the one that it
 * must be, as mlx-lm does it. */
static const struct mode *
find_mode(struct lmq_packer *packer, const struct mlx *m,
          const json_t *settings)
{
    const char *name = json_string_value(json_object_get(settings, "mode"));
    const struct mode *mode = name == NULL ? &modes[0] : NULL;

    for (size_t i = 0; i < N_MODES && mode == NULL; i++)
        if (strcmp(modes[i].name, name) == 0)
            mode = &modes[i];
    if (mode == NULL)
        lmq_packer_refuse(packer, "mode %.24s", name);
    if (mode == NULL || (mode == &modes[0]) == (m->biases != NULL))
        return mode;
    for (size_t i = 1; i < N_MODES && m->scales->dtype == LMQ_DTYPE_U8; i++)
        if (m->codes->n_cols * 32 ==
            m->scales->n_cols * modes[i].group * modes[i].bits)
            return &modes[i];
    return &modes[0];
}

/* Words for so many codes in as many groups as there are scales. */
static bool
fits(const struct mlx *m, int64_t bits, int64_t group)
{
    bool is_known = bits >= 1 && bits <= 8 && bits != 7 &&
                    (group == 32 || group == 64 || group == 128 ||
                     (m->mode->group != 0 && group == m->mode->group));

    return is_known && m->codes->n_cols * 32 % (uint64_t)bits == 0 &&
           m->codes->n_cols * 32 / (uint64_t)bits ==
               m->scales->n_cols * (uint64_t)group;
}

static enum lmq_status
find_layout(struct mlx *m, const json_t *settings, struct lmq_error *err)
{
    int64_t bits = m->mode->bits, group = m->mode->group;

    if (bits == 0) {
        bits = lmq_packer_number(settings, "bits", 4);
        group = lmq_packer_number(settings, "group_size", 64);
    }
    if (!fits(m, bits, group) ||
        m->scales->n_cols * (uint64_t)group > LMQ_MAX_WIDTH) {
        lmq_fail(err, LMQ_ERR_FORMAT, m->scales->offset,
                 "'%s' has %" PRIu64 " words for each row and '%s' %" PRIu64
                 " scales, which is not %" PRId64
                 " bits in groups of %" PRId64,
                 m->codes->stored_name, m->codes->n_cols,
                 m->scales->stored_name, m->scales->n_cols, bits, group);
        lmq_hint(err, "\"quantization\" in config.json gives bits and "
                      "group_size, for all layers or for one by its name");
        return LMQ_ERR_FORMAT;
    }
    m->bits = (unsigned)bits;
    m->group = (unsigned)group;
    m->cols = m->scales->n_cols * (uint64_t)group;
    return LMQ_OK;
}

/* ---- Shapes ---- */

/* As many rows, in the same dimensions. */
static enum lmq_status
check_rows(const struct mlx *m, const struct lmq_tensor *part,
           struct lmq_error *err)
{
    bool is_same = part->n_dims == m->codes->n_dims && part->n_dims >= 2 &&
                   part->n_cols == m->scales->n_cols;

    for (uint32_t i = 0; is_same && i + 1 < part->n_dims; i++)
        is_same = part->dims[i] == m->codes->dims[i];
    if (is_same)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                    "'%s' is %" PRIu64 " x %" PRIu64 " in %u dimensions, but "
                    "'%s' has %" PRIu64 " rows in %u and '%s' %" PRIu64
                    " columns",
                    part->stored_name, part->n_rows, part->n_cols,
                    part->n_dims, m->codes->stored_name, m->codes->n_rows,
                    m->codes->n_dims, m->scales->stored_name,
                    m->scales->n_cols);
}

static enum lmq_status
fail_type(const struct lmq_tensor *part, const char *wanted,
          struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                    "'%s' is of type %s, expected %s", part->stored_name,
                    lmq_dtype_name(part->dtype), wanted);
}

static enum lmq_status
check_types(const struct mlx *m, struct lmq_error *err)
{
    if (m->mode->group != 0)
        return m->scales->dtype == LMQ_DTYPE_U8
                   ? LMQ_OK
                   : fail_type(m->scales, "u8", err);
    if (m->biases == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, m->scales->offset,
                        "'%s' has no biases beside it",
                        m->scales->stored_name);
    enum lmq_status status = lmq_packer_check_floats(m->scales, err);
    if (status == LMQ_OK && (m->scales->dtype != m->biases->dtype ||
                             m->scales->dtype == LMQ_DTYPE_F64))
        return fail_type(m->biases, "the same as scales, f32, f16 or bf16",
                         err);
    return status;
}

/* One for all, or for each matrix of several. */
static enum lmq_status
check_gains(const struct mlx *m, struct lmq_error *err)
{
    uint64_t n = m->codes->n_dims == 3 ? m->codes->dims[0] : 1;

    if (strcmp(m->mode->name, "nvfp4") != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, m->gains->offset,
                        "'%s' stands beside scales of mode %s, expected nvfp4",
                        m->gains->stored_name, m->mode->name);
    if (m->gains->dtype != LMQ_DTYPE_F32)
        return fail_type(m->gains, "f32", err);
    if (m->gains->n_elements == n && n > 0 && m->gains->n_dims <= 1)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, m->gains->offset,
                    "'%s' has %" PRIu64 " elements in %u dimensions, expected "
                    "%" PRIu64 " in one",
                    m->gains->stored_name, m->gains->n_elements,
                    m->gains->n_dims, n);
}

/* ---- One matrix ---- */

static void
describe(const struct mlx *m, struct lmq_affine *affine)
{
    affine->packing.is_upright = true;
    affine->codes = lmq_packer_grid(m->codes);
    affine->codes.bits = m->bits;
    affine->scales = lmq_packer_grid(m->scales);
    affine->block_rows = 1;
    affine->block_cols = m->group;
    affine->n_groups = m->scales->n_cols;
    if (m->biases != NULL) {
        affine->zeros = lmq_packer_grid(m->biases);
        affine->has_zeros = affine->adds_zeros = true;
        affine->rounding = m->scales->dtype;
        return;
    }
    if (m->bits == 4) {
        affine->codes.levels = lmq_e2m1_values;
    } else {
        affine->codes.bits = 0;
        affine->codes.dtype = LMQ_DTYPE_F8_E4M3;
        affine->codes.n_words = m->cols;
    }
    if (m->group == 16)
        affine->scales.dtype = LMQ_DTYPE_F8_E4M3;
    else
        affine->scales.is_exponent = true;
    if (m->gains != NULL) {
        affine->gains = lmq_packer_grid(m->gains);
        affine->gain_divisor = GAIN_DIVISOR;
        affine->gain_rows = m->codes->n_rows / m->gains->n_elements;
    }
}

static enum lmq_status
join(struct lmq_packer *packer, const struct mlx *m, struct lmq_error *err)
{
    struct lmq_tensor *const parts[] = {
        m->scales, m->biases != NULL ? m->biases : m->gains};
    uint64_t dims[LMQ_MAX_DIMS];
    char name[16];

    memcpy(dims, m->codes->dims, sizeof(dims));
    dims[m->codes->n_dims - 1] = m->cols;
    if (m->biases != NULL)
        snprintf(name, sizeof(name), "mlx%u", m->bits);
    else
        snprintf(name, sizeof(name), "%s", m->mode->name);
    struct lmq_affine *affine = lmq_affine_new(name);
    if (affine == NULL)
        return lmq_fail_nomem(err);
    describe(m, affine);
    lmq_packer_found(packer, "matrices of MLX, %s, %u bits, groups of %u",
                     m->mode->name, m->bits, m->group);
    return lmq_affine_join(packer, m->codes, ENDING, ENDING, affine, dims,
                           m->codes->n_dims, parts, 2, err);
}

/* Asked about scales, which GPTQ and others have too; but not beside words
 * that are called a weight. */
enum lmq_status
lmq_mlx_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    struct mlx m = {
        .codes = lmq_packer_sibling(packer, tensor, ".scales", ENDING),
        .biases = lmq_packer_sibling(packer, tensor, ".scales", ".biases"),
        .gains =
            lmq_packer_sibling(packer, tensor, ".scales", ".global_scale"),
        .scales = tensor,
    };

    if (m.codes == NULL || m.codes->dtype != LMQ_DTYPE_U32)
        return LMQ_OK;
    const json_t *settings = find_settings(packer, m.codes);
    if (settings == NULL && packer->config != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, m.codes->offset,
                        "'%s' is packed, but \"quantization\" in config.json "
                        "says that it is not",
                        m.codes->stored_name);
    m.mode = find_mode(packer, &m, settings);
    if (packer->refused[0] != '\0')
        return LMQ_OK;
    enum lmq_status status = check_types(&m, err);
    if (status == LMQ_OK)
        status = check_rows(&m, m.scales, err);
    if (status == LMQ_OK && m.biases != NULL)
        status = check_rows(&m, m.biases, err);
    if (status == LMQ_OK)
        status = find_layout(&m, settings, err);
    if (status == LMQ_OK && m.gains != NULL)
        status = check_gains(&m, err);
    return status == LMQ_OK ? join(packer, &m, err) : status;
}
