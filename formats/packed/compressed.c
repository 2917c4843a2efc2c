/*
 * compressed.c - what compressed-tensors writes (llm-compressor, vLLM).
 *
 *     NAME.weight_packed  (out, in * bits / 32)  pack-quantized: words
 *     NAME.weight_shape   (2)                    out and in
 *     NAME.weight         (out, in)              int-, naive-quantized: int8
 *     NAME.weight_scale, NAME.weight_zero_point, NAME.weight_g_idx
 *
 * The shape of the scales tells whether they are for all (strategy "tensor"),
 * for rows ("channel"), for groups of columns or for blocks. What is not in
 * this form, because `ignore` or no target named it, has nothing beside it
 * and is a tensor like all others. Floats of 8 bits are fp8.c's, of 4 fp4.c's.
 *
 * The library computes (code - zero point) * scale in the type of the scale;
 * all but the product is exact there.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "base/text/ends.h"
#include "formats/packed/scale_shape.h"
#include "formats/packed/schemes.h"

#define PACKED ".weight_packed"
#define PLAIN ".weight"

struct parts {
    struct lmq_tensor *codes;
    struct lmq_tensor *scales, *zeros, *shape, *members;
    uint64_t rows, cols;
    unsigned bits;
};

/* ---- The configuration ---- */

static const json_t *
weights_of(const json_t *group)
{
    return json_object_get(group, "weights");
}

/* Bits that some group has and that fill so many words for so many numbers;
 * 0: none, or more than one. Without a configuration it is 4 or 8. */
static unsigned
find_bits(const struct lmq_packer *packer, uint64_t n, uint64_t n_words)
{
    const json_t *groups = json_object_get(packer->config, "config_groups");
    unsigned fits = 0;

    for (unsigned bits = 1; bits <= 8; bits++) {
        bool is_said = groups == NULL && (bits == 4 || bits == 8);
        const char *name;
        json_t *group;
        json_object_foreach((json_t *)(uintptr_t)groups, name, group)
            is_said |= json_integer_value(json_object_get(
                           weights_of(group), "num_bits")) == bits;
        if (is_said && lmq_u64_ceil_div(n * bits, 32) == n_words)
            fits = fits == 0 ? bits : 9;
    }
    return fits == 9 ? 0 : fits;
}

/* Whether all groups have zero points. */
static bool
is_asymmetric(const struct lmq_packer *packer)
{
    const json_t *groups = json_object_get(packer->config, "config_groups");
    bool is_so = json_object_size(groups) > 0;
    const char *name;
    json_t *group;

    json_object_foreach((json_t *)(uintptr_t)groups, name, group)
        is_so &= json_is_false(
            json_object_get(weights_of(group), "symmetric"));
    return is_so;
}

static bool
is_supported(struct lmq_packer *packer)
{
    static const char *const formats[] = {
        "",
        "pack-quantized",
        "int-quantized",
        "naive-quantized",
        "float-quantized",
        "mixed-precision",
        "mxfp4-pack-quantized",
        "nvfp4-pack-quantized",
    };
    const char *format = lmq_packer_text(packer, "format");
    const json_t *sparsity = json_object_get(packer->config,
                                             "sparsity_config");
    const char *sparse =
        json_string_value(json_object_get(sparsity, "format"));
    bool is_known = false;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        is_known |= strcmp(format, formats[i]) == 0;
    if (!is_known)
        lmq_packer_refuse(packer, "format %.40s", format);
    else if (sparse != NULL && strcmp(sparse, "dense") != 0)
        lmq_packer_refuse(packer, "sparsity %.40s", sparse);
    return packer->refused[0] == '\0';
}

/* ---- Shapes ---- */

static enum lmq_status
find_parts(const struct lmq_packer *packer, const char *ending,
           struct lmq_tensor *tensor, struct parts *p, struct lmq_error *err)
{
    const struct {
        const char *ending;
        struct lmq_tensor **part;
    } parts[] = {
        {".weight_zero_point", &p->zeros},
        {".weight_shape", &p->shape},
        {".weight_g_idx", &p->members},
    };

    p->codes = tensor;
    p->rows = tensor->n_rows;
    p->cols = tensor->n_cols;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        *parts[i].part =
            lmq_packer_sibling(packer, tensor, ending, parts[i].ending);
    if (tensor->n_dims != 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "'%s' has %u dimensions, expected 2",
                        tensor->stored_name, tensor->n_dims);
    return lmq_packer_need(packer, tensor, ending, ".weight_scale",
                           &p->scales, err);
}

/* What the words stand for. */
static enum lmq_status
read_shape(const struct lmq_packer *packer, struct parts *p,
           struct lmq_error *err)
{
    float shape[2];
    enum lmq_status status;

    if (p->shape == NULL)
        return lmq_packer_need(packer, p->codes, PACKED, ".weight_shape",
                               &p->shape, err);
    status = lmq_packer_check_shape(p->shape, 0, 2, err);
    if (status == LMQ_OK)
        status = lmq_packer_read(packer, p->shape, shape, 2, err);
    if (status != LMQ_OK)
        return status;
    if (!(shape[0] >= 1 && shape[0] <= LMQ_MAX_WIDTH && shape[1] >= 1 &&
          shape[1] <= LMQ_MAX_WIDTH) || (uint64_t)shape[0] != p->rows)
        return lmq_fail(err, LMQ_ERR_FORMAT, p->shape->offset,
                        "'%s' says %.0f x %.0f, but '%s' has %" PRIu64 " rows",
                        p->shape->stored_name, (double)shape[0],
                        (double)shape[1], p->codes->stored_name, p->rows);
    p->cols = (uint64_t)shape[1];
    p->bits = find_bits(packer, p->cols, p->codes->n_cols);
    if (p->bits != 0)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, p->codes->offset,
                    "'%s' has %" PRIu64 " words for %" PRIu64 " codes of a "
                    "row, which is not what config.json says of bits",
                    p->codes->stored_name, p->codes->n_cols, p->cols);
}

static enum lmq_status
set_scales(const struct lmq_packer *packer, struct lmq_affine *affine,
           const struct parts *p, struct lmq_error *err)
{
    const uint64_t dims[2] = {p->rows, p->cols};

    return lmq_scale_shape_set(packer, affine, p->codes->stored_name, dims, 2,
                               p->scales, err);
}

/* ---- Zero points and groups ---- */

/* Beside packed codes they are packed, down the lines; older ones are not. */
static enum lmq_status
attach_zeros(const struct lmq_packer *packer, struct lmq_affine *affine,
             struct parts *p, struct lmq_error *err)
{
    enum lmq_status status;

    /* The library left out those that were all 0, until 0.9: one may be. */
    if (p->zeros == NULL && is_asymmetric(packer) &&
        p->scales->n_elements > 1) {
        const char *ending = p->bits != 0 ? PACKED : PLAIN;
        return lmq_packer_need(packer, p->codes, ending, ".weight_zero_point",
                               &p->zeros, err);
    }
    if (p->zeros == NULL)
        return LMQ_OK;
    affine->zeros = lmq_packer_grid(p->zeros);
    affine->has_zeros = true;
    if (p->bits == 0 || p->zeros->dtype == LMQ_DTYPE_I8) {
        status = lmq_packer_check_type(p->zeros, LMQ_DTYPE_I8, err);
        if (status == LMQ_OK && p->zeros->n_elements != p->scales->n_elements)
            status = lmq_packer_check_shape(p->zeros, p->scales->n_rows,
                                            p->scales->n_cols, err);
        affine->zeros.n_words = affine->scales.n_words;
        return status;
    }
    affine->zeros.bits = p->bits;
    affine->zeros.is_stacked = true;
    affine->zeros.minus = 1 << (p->bits - 1);
    status = lmq_packer_check_words(p->zeros, err);
    return status == LMQ_OK
               ? lmq_packer_check_shape(
                     p->zeros, lmq_u64_ceil_div(p->rows * p->bits, 32),
                     p->scales->n_cols, err)
               : status;
}

/* Columns of a group need not stand together ("actorder"). The library begins
 * with -1 everywhere and leaves it so where the order is the usual one. */
static enum lmq_status
attach_members(const struct lmq_packer *packer, struct lmq_affine *affine,
               struct parts *p, struct lmq_error *err)
{
    enum lmq_status status;
    bool is_sorted;

    if (p->members == NULL)
        return LMQ_OK;
    status = lmq_packer_check_words(p->members, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(p->members, 0, p->cols, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_members(packer, p->members, affine->n_groups,
                                          affine->block_cols, true, &is_sorted,
                                          err);
    if (status == LMQ_OK && !is_sorted) {
        affine->members = lmq_packer_grid(p->members);
        affine->has_members = true;
    }
    return status;
}

/* ---- One matrix ---- */

/* Takes over the result of all that was attached. */
static enum lmq_status
finish(struct lmq_packer *packer, const char *ending, struct parts *p,
       struct lmq_affine *affine, enum lmq_status status,
       struct lmq_error *err)
{
    struct lmq_tensor *const parts[] = {p->scales, p->zeros, p->shape,
                                        p->members};
    const uint64_t dims[2] = {p->rows, p->cols};
    char text[64];

    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    /* ModelOpt's bytes are the same. */
    lmq_packer_found(packer, "matrices of %s%s, %s",
                     strcmp(ending, PLAIN) == 0 ? "" : "compressed-tensors, ",
                     affine->packing.name,
                     lmq_scale_shape_text(affine, text, sizeof(text)));
    return lmq_affine_join(packer, p->codes, ending, PLAIN, affine, dims, 2,
                           parts, 4, err);
}

static enum lmq_status
join_words(struct lmq_packer *packer, struct parts *p, struct lmq_error *err)
{
    char name[16];
    enum lmq_status status = read_shape(packer, p, err);

    if (status == LMQ_OK)
        status = lmq_packer_check_floats(p->scales, err);
    if (status != LMQ_OK)
        return status;
    snprintf(name, sizeof(name), "int%u", p->bits);
    struct lmq_affine *affine = lmq_affine_new(name);
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->codes = lmq_packer_grid(p->codes);
    affine->codes.bits = p->bits;
    affine->codes.minus = 1 << (p->bits - 1);
    status = set_scales(packer, affine, p, err);
    if (status == LMQ_OK)
        status = attach_zeros(packer, affine, p, err);
    if (status == LMQ_OK)
        status = attach_members(packer, affine, p, err);
    return finish(packer, PACKED, p, affine, status, err);
}

enum lmq_status
lmq_compressed_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                    struct lmq_error *err)
{
    struct parts p = {0};
    enum lmq_status status;

    if (!is_supported(packer))
        return LMQ_OK;
    if (tensor->dtype == LMQ_DTYPE_U8)
        return lmq_fp4_join(packer, tensor, err);
    status = find_parts(packer, PACKED, tensor, &p, err);
    if (status != LMQ_OK)
        return status;
    return tensor->dtype == LMQ_DTYPE_I32 ? join_words(packer, &p, err)
                                          : lmq_packer_check_words(tensor, err);
}

enum lmq_status
lmq_int8_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
              struct lmq_error *err)
{
    struct parts p = {0};
    enum lmq_status status;

    if (tensor->dtype != LMQ_DTYPE_I8 ||
        !lmq_ends_with(tensor->stored_name, PLAIN) ||
        lmq_packer_sibling(packer, tensor, PLAIN, ".weight_scale") == NULL ||
        (packer->method != NULL && !is_supported(packer)))
        return LMQ_OK;
    status = find_parts(packer, PLAIN, tensor, &p, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_floats(p.scales, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_affine *affine = lmq_affine_new("int8");
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->codes = lmq_packer_grid(tensor);
    status = set_scales(packer, affine, &p, err);
    if (status == LMQ_OK)
        status = attach_zeros(packer, affine, &p, err);
    return finish(packer, PLAIN, &p, affine, status, err);
}
