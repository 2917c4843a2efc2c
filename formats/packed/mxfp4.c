/*
 * mxfp4.c - MXFP4 as GPT-OSS has it.
 *
 *     NAME_blocks (..., out, groups, 16)  bytes of two codes, the lower one
 *                                         first: 32 elements
 *     NAME_scales (..., out, groups)      powers of two
 *
 * become NAME (..., out, 32 * groups), E2M1 times the power of two. It is what
 * transformers makes of them, exactly, but with rows as outputs, where it turns
 * them to columns; and of the scale 255, which should be none, we make NaN.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/packed/schemes.h"

#define ENDING "_blocks"
#define GROUP 32
#define GROUP_BYTES 16

static enum lmq_status
check_parts(const struct lmq_tensor *blocks, const struct lmq_tensor *scales,
            struct lmq_error *err)
{
    bool is_right = blocks->dtype == LMQ_DTYPE_U8 &&
                    scales->dtype == LMQ_DTYPE_U8 && blocks->n_dims >= 3 &&
                    blocks->n_cols == GROUP_BYTES &&
                    scales->n_dims + 1 == blocks->n_dims &&
                    scales->n_cols <= LMQ_MAX_WIDTH / GROUP;

    for (uint32_t i = 0; is_right && i < scales->n_dims; i++)
        is_right = scales->dims[i] == blocks->dims[i];
    if (is_right)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, blocks->offset,
                    "'%s' (%s) has %" PRIu64 " rows of %" PRIu64 " bytes and "
                    "'%s' (%s) %" PRIu64 " scales, expected u8, 16 bytes for "
                    "each scale",
                    blocks->stored_name, lmq_dtype_name(blocks->dtype),
                    blocks->n_rows, blocks->n_cols, scales->stored_name,
                    lmq_dtype_name(scales->dtype), scales->n_elements);
}

enum lmq_status
lmq_mxfp4_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
               struct lmq_error *err)
{
    struct lmq_tensor *scales;
    uint64_t dims[LMQ_MAX_DIMS];
    enum lmq_status status =
        lmq_packer_need(packer, tensor, ENDING, "_scales", &scales, err);

    if (status == LMQ_OK)
        status = check_parts(tensor, scales, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_affine *affine = lmq_affine_new("mxfp4");
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->packing.is_upright = true;
    affine->codes = lmq_packer_grid(tensor);
    affine->codes.n_words = scales->n_cols * GROUP_BYTES;
    affine->codes.bits = 4;
    affine->codes.levels = lmq_e2m1_values;
    affine->scales = lmq_packer_grid(scales);
    affine->scales.is_exponent = true;
    affine->block_rows = 1;
    affine->block_cols = GROUP;
    affine->n_groups = scales->n_cols;
    memcpy(dims, scales->dims, sizeof(dims));
    dims[scales->n_dims - 1] *= GROUP;
    lmq_packer_found(packer, "matrices of MXFP4");
    return lmq_affine_join(packer, tensor, ENDING, "", affine, dims,
                           scales->n_dims, &scales, 1, err);
}
