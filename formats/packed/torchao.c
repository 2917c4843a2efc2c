/*
 * torchao.c - what torchao writes as safetensors. There a weight is an object
 * of several tensors; NAME.weight becomes
 *
 *     NAME._weight_qdata       (..., out, in)  a code each, I8 or FP8
 *     NAME._weight_scale       (..., blocks of rows, blocks of columns)
 *     NAME._weight_zero_point  the same; not of FP8
 *
 * These are its classes Int8Tensor, IntxUnpackedToInt8Tensor, whose codes have
 * 1 to 8 bits, and Float8Tensor. An element is (code - zero point) * scale; the
 * library rounds that to the type of the model. Of its other classes Int4Tensor
 * has two codes in a byte, and zero points that are floats; the rest have codes
 * in the order of some processor's registers.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/packed/scale_shape.h"
#include "formats/packed/schemes.h"

#define CODES "_qdata"

struct parts {
    struct lmq_tensor *codes, *scales, *zeros;
    struct lmq_tensor *activations[2]; /* of inputs: not needed */
    const char *own;                   /* "._weight_qdata" */
    char whole[LMQ_MAX_TENSOR_NAME];   /* ".weight" */
};

/* ---- Names ---- */

/* "._weight" and "_qdata"; false if it is not called like that. */
static bool
take_name_apart(struct parts *p)
{
    size_t n_codes = strlen(CODES);

    p->own = strrchr(p->codes->stored_name, '.');
    if (p->own == NULL || p->own[1] != '_' ||
        strlen(p->own) <= n_codes + 2)
        return false;
    snprintf(p->whole, sizeof(p->whole), ".%.*s",
             (int)(strlen(p->own) - n_codes - 2), p->own + 2);
    return true;
}

static struct lmq_tensor *
find(const struct lmq_packer *packer, const struct parts *p, const char *part)
{
    return lmq_packer_sibling(packer, p->codes, CODES, part);
}

/* ---- One matrix ---- */

/* By what it is made of, be there scales or not: others have them otherwise. */
static bool
has_readable_codes(struct lmq_packer *packer, const struct parts *p)
{
    enum lmq_dtype type = p->codes->dtype;
    bool is_float = type == LMQ_DTYPE_F8_E4M3 || type == LMQ_DTYPE_F8_E5M2;

    if (!is_float && type != LMQ_DTYPE_I8)
        lmq_packer_refuse(packer, "codes of type %s", lmq_dtype_name(type));
    else if (find(packer, p, "_act_pre_scale") != NULL)
        lmq_packer_refuse(packer, "behind scaled activations");
    else if (is_float && p->zeros != NULL)
        lmq_packer_refuse(packer, "zero points of FP8");
    else if (p->zeros != NULL && lmq_dtype_is_float(p->zeros->dtype))
        lmq_packer_refuse(packer, "zero points of type %s",
                          lmq_dtype_name(p->zeros->dtype));
    return packer->refused[0] == '\0';
}

/* Scales of a byte are those of its classes for MX, which may stand in the
 * order of a processor's registers. */
static bool
has_readable_scales(struct lmq_packer *packer, const struct parts *p)
{
    if (lmq_dtype_size(p->scales->dtype) == 1)
        lmq_packer_refuse(packer, "scales of type %s",
                          lmq_dtype_name(p->scales->dtype));
    return packer->refused[0] == '\0';
}

static enum lmq_status
attach_zeros(const struct lmq_packer *packer, struct lmq_affine *affine,
             const struct parts *p, struct lmq_error *err)
{
    const struct lmq_tensor *zeros = p->zeros, *scales = p->scales;

    if (zeros == NULL)
        return LMQ_OK;
    affine->zeros = lmq_packer_grid(zeros);
    affine->zeros.n_words = affine->scales.n_words;
    affine->has_zeros = true;
    if (zeros->n_dims == scales->n_dims &&
        memcmp(zeros->dims, scales->dims, sizeof(zeros->dims)) == 0) {
        enum lmq_status status =
            lmq_packer_check_type(zeros, LMQ_DTYPE_I8, err);
        return status == LMQ_OK
                   ? lmq_affine_centre(packer, affine, zeros->n_rows,
                                       zeros->n_cols, err)
                   : status;
    }
    return lmq_fail(err, LMQ_ERR_FORMAT, zeros->offset,
                    "'%s' has another shape than '%s'", zeros->stored_name,
                    scales->stored_name);
}

static enum lmq_status
join(struct lmq_packer *packer, const struct parts *p, struct lmq_error *err)
{
    struct lmq_tensor *const parts[] = {p->scales, p->zeros,
                                        p->activations[0], p->activations[1]};
    struct lmq_tensor *codes = p->codes;
    bool is_int = codes->dtype == LMQ_DTYPE_I8;
    struct lmq_affine *affine =
        lmq_affine_new(is_int ? "int8" : lmq_dtype_name(codes->dtype));
    char text[64];

    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->codes = lmq_packer_grid(codes);
    enum lmq_status status =
        lmq_scale_shape_set(packer, affine, codes->stored_name, codes->dims,
                            codes->n_dims, p->scales, err);
    if (status == LMQ_OK)
        status = attach_zeros(packer, affine, p, err);
    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    lmq_packer_found(packer, "matrices of torchao, %s, %s",
                     affine->packing.name,
                     lmq_scale_shape_text(affine, text, sizeof(text)));
    return lmq_affine_join(packer, codes, p->own, p->whole, affine,
                           codes->dims, codes->n_dims, parts, 4, err);
}

enum lmq_status
lmq_torchao_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                 struct lmq_error *err)
{
    struct parts p = {.codes = tensor};

    if (!take_name_apart(&p))
        return LMQ_OK;
    p.zeros = find(packer, &p, "_zero_point");
    if (!has_readable_codes(packer, &p))
        return LMQ_OK;
    enum lmq_status status =
        lmq_packer_need(packer, tensor, CODES, "_scale", &p.scales, err);
    if (status != LMQ_OK)
        return status;
    p.activations[0] = find(packer, &p, "_act_quant_scale");
    p.activations[1] = find(packer, &p, "_act_quant_zero_point");
    if (!has_readable_scales(packer, &p))
        return LMQ_OK;
    status = lmq_packer_check_floats(p.scales, err);
    return status == LMQ_OK ? join(packer, &p, err) : status;
}
