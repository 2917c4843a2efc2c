/*
 * fp8.c - FP8 matrices and the scales beside them.
 *
 * NAME.weight_scale or NAME.weight_scale_inv (the inverse of what it was
 * divided by): one number for the matrix, one for each row, or one for each
 * block. The value of an element is the product either way, in float32; what
 * transformers and others compute with is that product, rounded to the type
 * of the model.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/packed/schemes.h"

/* What DeepSeek V3 and those after it have, where config.json does not say. */
#define USUAL_BLOCK 128

static bool
is_fp8(const struct lmq_tensor *tensor)
{
    return tensor->dtype == LMQ_DTYPE_F8_E4M3 ||
           tensor->dtype == LMQ_DTYPE_F8_E5M2;
}

/* ---- The shape of the scales ---- */

/* Of blocks; 0, 0 if config.json does not say. */
static enum lmq_status
read_block_size(const struct lmq_packer *packer, uint64_t block[2],
                struct lmq_error *err)
{
    const json_t *size = json_object_get(packer->config, "weight_block_size");

    block[0] = block[1] = 0;
    if (size == NULL || json_is_null(size))
        return LMQ_OK;
    for (size_t i = 0; i < 2; i++) {
        json_int_t n = json_integer_value(json_array_get(size, i));
        if (json_array_size(size) != 2 || n < 1 || n > LMQ_MAX_WIDTH)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "weight_block_size in config.json is no pair of "
                            "sizes from 1 to %d",
                            LMQ_MAX_WIDTH);
        block[i] = (uint64_t)n;
    }
    return LMQ_OK;
}

static bool
fits_blocks(const struct lmq_tensor *tensor, const struct lmq_tensor *scale,
            const uint64_t block[2])
{
    return tensor->n_dims == 2 && scale->n_dims == 2 &&
           scale->dims[0] == lmq_u64_ceil_div(tensor->dims[0], block[0]) &&
           scale->dims[1] == lmq_u64_ceil_div(tensor->dims[1], block[1]);
}

/* Sets the size of the blocks. One number first: it fits everything else. */
static bool
understand_shape(struct lmq_packer *packer, const struct lmq_tensor *tensor,
                 const struct lmq_tensor *scale, const uint64_t said[2],
                 struct lmq_affine *affine)
{
    const uint64_t usual[2] = {USUAL_BLOCK, USUAL_BLOCK};
    const uint64_t *block = said[0] > 0 ? said : usual;

    affine->block_rows = affine->block_cols = LMQ_BLOCK_ALL;
    affine->n_groups = 1;
    if (scale->n_elements == 1) {
        lmq_packer_found(packer, "tensors of FP8 with a scale for each");
    } else if (tensor->n_dims == 2 && scale->n_elements == tensor->dims[0] &&
               scale->dims[0] == tensor->dims[0] &&
               (said[0] == 0 || !fits_blocks(tensor, scale, said))) {
        affine->block_rows = 1;
        affine->scales.n_words = 1;
        lmq_packer_found(packer, "tensors of FP8 with a scale for each row");
    } else if (fits_blocks(tensor, scale, block)) {
        affine->block_rows = block[0];
        affine->block_cols = block[1];
        affine->n_groups = scale->dims[1];
        lmq_packer_found(packer,
                         "tensors of FP8 with block scales %" PRIu64
                         " x %" PRIu64,
                         block[0], block[1]);
    } else {
        return false;
    }
    return true;
}

static enum lmq_status
fail_shape(const struct lmq_tensor *tensor, const struct lmq_tensor *scale,
           struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "the %" PRIu64 " scales '%s' fit neither the rows nor the "
             "blocks of '%s'",
             scale->n_elements, scale->stored_name, tensor->stored_name);
    lmq_hint(err, "weight_block_size in config.json gives the size of "
                  "blocks; without it they are %d x %d",
             USUAL_BLOCK, USUAL_BLOCK);
    return LMQ_ERR_FORMAT;
}

/* A tensor of other than two dimensions has one scale for all. */
static enum lmq_status
attach(struct lmq_packer *packer, struct lmq_tensor *tensor,
       struct lmq_tensor *scale, struct lmq_error *err)
{
    uint64_t said[2];
    enum lmq_status status = lmq_packer_check_floats(scale, err);

    if (status == LMQ_OK)
        status = read_block_size(packer, said, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_affine *affine =
        lmq_affine_new(lmq_dtype_name(tensor->dtype));
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->codes = lmq_packer_grid(tensor);
    affine->scales = lmq_packer_grid(scale);
    if (!understand_shape(packer, tensor, scale, said, affine)) {
        free(affine);
        return fail_shape(tensor, scale, err);
    }
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
    lmq_hint(err, "the download may be incomplete");
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

    if (scale != NULL && inverse != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' has two scales, '%s' and '%s'",
                        tensor->stored_name, scale->stored_name,
                        inverse->stored_name);
    if (scale != NULL || inverse != NULL)
        return attach(packer, tensor, scale != NULL ? scale : inverse, err);
    if (packer->method != NULL && tensor->n_dims >= 2)
        return fail_missing(tensor, err);
    lmq_packer_found(packer,
                     "tensors of FP8 without scales, plain numbers");
    return LMQ_OK;
}
