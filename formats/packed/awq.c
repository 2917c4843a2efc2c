/*
 * awq.c - AWQ in its "gemm" version: codes of 4 bits, as AutoAWQ, GPTQModel
 * and AutoRound write them.
 *
 *     NAME.qweight (in, out / 8)      32-bit words
 *     NAME.qzeros  (groups, out / 8)  the same
 *     NAME.scales  (groups, out)
 *
 * In a word the even outputs of eight come first, then the odd ones. The
 * weight is (code - zero point) * scale; AutoAWQ rounds the product to the
 * type of the scales, half precision.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "formats/packed/schemes.h"

#define ENDING ".qweight"

static const uint8_t places[8] = {0, 4, 1, 5, 2, 6, 3, 7};

static bool
is_supported(struct lmq_packer *packer)
{
    static const char *const versions[] = {"version", "checkpoint_format",
                                           "format"};
    int64_t bits = lmq_packer_number(packer->config, "bits", 4);

    const char *order = lmq_packer_text(packer, "pack_method"); /* Quark's */

    bits = lmq_packer_number(packer->config, "w_bit", bits);
    if (*order != '\0' && strcmp(order, "reorder") != 0)
        lmq_packer_refuse(packer, "pack_method %.24s", order);
    else if (*order != '\0' &&
             json_is_false(json_object_get(packer->config, "zero_point")))
        lmq_packer_refuse(packer, "codes with signs, zero_point false");
    if (bits != 4)
        lmq_packer_refuse(packer, "bits %" PRId64, bits);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        const char *version = lmq_packer_text(packer, versions[i]);
        if (*version != '\0' && strcasecmp(version, "gemm") != 0)
            lmq_packer_refuse(packer, "version %.24s", version);
    }
    return packer->refused[0] == '\0';
}

static enum lmq_status
check_group(const struct lmq_packer *packer, const struct lmq_tensor *codes,
            const struct lmq_tensor *scales, struct lmq_error *err)
{
    uint64_t cols = codes->dims[0], n_groups = scales->n_rows;
    int64_t said = lmq_packer_number(packer->config, "group_size", 0);

    said = lmq_packer_number(packer->config, "q_group_size", said);
    uint64_t group = said > 0 ? (uint64_t)said : cols;
    if (n_groups > 0 && cols % n_groups == 0 &&
        ((said <= 0 && said != -1) || group == cols / n_groups ||
         lmq_packer_own_group(packer, cols, n_groups) == cols / n_groups))
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, scales->offset,
                    "'%s' has scales for %" PRIu64 " groups, but %" PRIu64
                    " columns in groups of %" PRId64 " are not that many",
                    scales->stored_name, n_groups, cols, said);
}

static enum lmq_status
check_shapes(const struct lmq_packer *packer, const struct lmq_tensor *codes,
             const struct lmq_tensor *scales, const struct lmq_tensor *zeros,
             struct lmq_error *err)
{
    enum lmq_status status = lmq_packer_check_words(codes, err);

    if (status == LMQ_OK)
        status = lmq_packer_check_words(zeros, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_floats(scales, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(scales, scales->n_rows,
                                        8 * codes->n_cols, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(codes, codes->n_rows,
                                        scales->n_cols / 8, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(zeros, scales->n_rows,
                                        codes->n_cols, err);
    return status == LMQ_OK ? check_group(packer, codes, scales, err)
                            : status;
}

static struct lmq_grid
words_of(const struct lmq_tensor *part)
{
    struct lmq_grid grid = lmq_packer_grid(part);

    grid.bits = 4;
    grid.is_turned = true;
    grid.order = places;
    return grid;
}

enum lmq_status
lmq_awq_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    struct lmq_tensor *parts[2];
    enum lmq_status status;

    if (!is_supported(packer))
        return LMQ_OK;
    status = lmq_packer_need(packer, tensor, ENDING, ".scales", &parts[0],
                             err);
    if (status == LMQ_OK)
        status = lmq_packer_need(packer, tensor, ENDING, ".qzeros", &parts[1],
                                 err);
    if (status == LMQ_OK)
        status = check_shapes(packer, tensor, parts[0], parts[1], err);
    if (status != LMQ_OK)
        return status;
    const uint64_t dims[2] = {parts[0]->n_cols, tensor->n_rows};
    struct lmq_affine *affine = lmq_affine_new("awq4");
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->packing.is_upright = true;
    affine->codes = words_of(tensor);
    affine->zeros = words_of(parts[1]);
    affine->has_zeros = true;
    affine->scales = lmq_packer_grid(parts[0]);
    affine->scales.is_turned = true;
    affine->block_rows = 1;
    affine->n_groups = parts[0]->n_rows;
    affine->block_cols = dims[1] / affine->n_groups;
    status = lmq_affine_centre(packer, affine, dims[0],
                               affine->n_groups, err);
    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    lmq_packer_found(packer,
                     "matrices of AWQ, 4 bits, groups of %" PRIu64,
                     affine->block_cols);
    return lmq_affine_join(packer, tensor, ENDING, ".weight", affine, dims, 2,
                           parts, 2, err);
}
