/*
 * fp8.c - FP8 matrices and the scales beside them.
 *
 * NAME.weight_scale or NAME.weight_scale_inv (the inverse of what it was
 * divided by): floats, or the exponents of powers of two (MXFP8). The value of
 * an element is the product either way, in float32; what transformers and
 * others compute with is that product, rounded to the type of the model.
 *
 * GPTQModel's weight_scale_inv is what it was multiplied with, and config.json
 * says so: weight_scale_semantics is inverse.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/ends.h"
#include "formats/packed/scale_shape.h"
#include "formats/packed/schemes.h"

/* Scales of others may be of that type. */
static bool
is_fp8(const struct lmq_tensor *tensor)
{
    return (tensor->dtype == LMQ_DTYPE_F8_E4M3 ||
            tensor->dtype == LMQ_DTYPE_F8_E5M2) &&
           !lmq_ends_with(tensor->stored_name, "_scale");
}

static bool
is_supported(struct lmq_packer *packer, bool *is_inverse)
{
    const char *meaning = lmq_packer_text(packer, "weight_scale_semantics");

    *is_inverse = strcmp(meaning, "inverse") == 0;
    if (*meaning != '\0' && !*is_inverse)
        lmq_packer_refuse(packer, "weight_scale_semantics %.24s", meaning);
    return packer->refused[0] == '\0';
}

static enum lmq_status
attach(struct lmq_packer *packer, struct lmq_tensor *tensor,
       struct lmq_tensor *scale, bool is_inverse, struct lmq_error *err)
{
    char text[64];
    bool is_power = scale->dtype == LMQ_DTYPE_U8 ||
                    scale->dtype == LMQ_DTYPE_F8_E8M0;
    enum lmq_status status =
        is_power ? LMQ_OK : lmq_packer_check_floats(scale, err);

    if (status != LMQ_OK)
        return status;
    struct lmq_affine *affine =
        lmq_affine_new(lmq_dtype_name(tensor->dtype));
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->codes = lmq_packer_grid(tensor);
    affine->is_inverse = is_inverse;
    status = lmq_scale_shape_set(packer, affine, tensor->stored_name,
                                 tensor->dims, tensor->n_dims, scale, err);
    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    lmq_packer_found(packer, "tensors of FP8 with %s",
                     lmq_scale_shape_text(affine, text, sizeof(text)));
    return lmq_affine_join(packer, tensor, "", "", affine, tensor->dims,
                           tensor->n_dims, &scale, 1, err);
}

/* ---- One tensor ---- */

static enum lmq_status
fail_missing(const struct lmq_tensor *tensor, struct lmq_error *err)
{
    const char *name = tensor->stored_name;

    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "tensor '%s' is FP8, but its scale '%s_scale' or "
             "'%s_scale_inv' is missing",
             name, name, name);
    lmq_hint(err, "the download may be incomplete; or the scales have other "
                  "names, as those of fused experts, which are not read");
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_fp8_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    if (!is_fp8(tensor))
        return LMQ_OK;
    struct lmq_tensor *scale =
        lmq_packer_sibling(packer, tensor, "", "_scale");
    struct lmq_tensor *inverse =
        lmq_packer_sibling(packer, tensor, "", "_scale_inv");
    bool is_inverse;

    if (scale != NULL && inverse != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' has two scales, '%s' and '%s'",
                        tensor->stored_name, scale->stored_name,
                        inverse->stored_name);
    if (scale != NULL || inverse != NULL)
        return is_supported(packer, &is_inverse)
                   ? attach(packer, tensor, scale != NULL ? scale : inverse,
                            is_inverse, err)
                   : LMQ_OK;
    if (packer->method == NULL)
        lmq_packer_found(packer,
                         "tensors of FP8 without scales, plain numbers");
    else if (tensor->n_dims >= 2)
        return fail_missing(tensor, err);
    return LMQ_OK;
}
