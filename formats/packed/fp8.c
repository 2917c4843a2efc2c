/*
 * fp8.c - FP8 matrices and the scales beside them.
 *
 * NAME.weight_scale or NAME.weight_scale_inv (the inverse of what it was
 * divided by): one number for the matrix, one for each row, or one for each
 * block. The value of an element is the product either way. Scales of
 * activations are of no use here.
 */
#include "config.h"

#include "formats/packed/fp8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* What DeepSeek V3 and those after it have, where config.json does not say. */
#define USUAL_BLOCK 128

/* Of what a running model measures: not of weights. */
static const char *const ignored[] = {
    ".input_scale", ".output_scale", ".act_scale", ".activation_scale",
    ".k_scale",     ".v_scale",      ".q_scale",   ".kv_scale",
    ".prob_scale",  ".input_scale_ub",
};

/* What was found, for the notes. */
struct findings {
    size_t n_whole, n_by_row, n_by_block, n_bare, n_ignored;
    uint64_t block_rows, block_cols;
};

struct work {
    struct lmq_checkpoint *checkpoint;
    const struct lmq_name_list *list;
    bool *is_dropped;
    uint64_t block_rows, block_cols; /* 0: config.json does not say */
    bool is_announced;
    struct findings findings;
};

static bool
is_fp8(const struct lmq_tensor *tensor)
{
    return tensor->dtype == LMQ_DTYPE_F8_E4M3 ||
           tensor->dtype == LMQ_DTYPE_F8_E5M2;
}

static bool
is_ignored(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        size_t n = strlen(ignored[i]);
        if (length > n && strcmp(name + length - n, ignored[i]) == 0)
            return true;
    }
    return false;
}

/* ---- The shape of the scales ---- */

static bool
fits_blocks(const struct lmq_tensor *tensor, const struct lmq_tensor *scale,
            uint64_t rows, uint64_t cols)
{
    return tensor->n_dims == 2 && scale->n_dims == 2 && rows > 0 && cols > 0 &&
           scale->dims[0] == lmq_u64_ceil_div(tensor->dims[0], rows) &&
           scale->dims[1] == lmq_u64_ceil_div(tensor->dims[1], cols);
}

/* Sets the size of the blocks. One number first: it fits everything else. */
static bool
understand_shape(struct work *work, const struct lmq_tensor *tensor,
                 const struct lmq_tensor *scale,
                 struct lmq_block_scales *blocks)
{
    struct findings *findings = &work->findings;
    uint64_t rows = work->block_rows, cols = work->block_cols;

    if (rows == 0)
        rows = cols = USUAL_BLOCK;
    if (scale->n_elements == 1) {
        blocks->block_rows = blocks->block_cols = UINT64_MAX;
        findings->n_whole++;
    } else if (work->block_rows > 0 &&
               fits_blocks(tensor, scale, rows, cols)) {
        blocks->block_rows = rows;
        blocks->block_cols = cols;
    } else if (tensor->n_dims == 2 && scale->n_elements == tensor->dims[0] &&
               scale->dims[0] == tensor->dims[0]) {
        blocks->block_rows = 1;
        blocks->block_cols = UINT64_MAX;
        findings->n_by_row++;
    } else if (fits_blocks(tensor, scale, rows, cols)) {
        blocks->block_rows = rows;
        blocks->block_cols = cols;
    } else {
        return false;
    }
    blocks->n_cols = 1;
    if (blocks->block_cols != UINT64_MAX) {
        blocks->n_cols = scale->dims[1];
        findings->block_rows = rows;
        findings->block_cols = cols;
        findings->n_by_block++;
    }
    return true;
}

static enum lmq_status
attach(struct work *work, struct lmq_tensor *tensor,
       const struct lmq_tensor *scale, struct lmq_error *err)
{
    struct lmq_block_scales blocks = {
        .offset = scale->offset, .file = scale->file, .dtype = scale->dtype};

    if (!lmq_dtype_is_float(scale->dtype) || is_fp8(scale))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the scales '%s' are of type %s", scale->stored_name,
                        lmq_dtype_name(scale->dtype));
    if (scale->view.pitch != 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "the scales '%s' are stored transposed", scale->stored_name);
        lmq_hint(err, "save them again with .contiguous()");
        return LMQ_ERR_UNSUPPORTED;
    }
    if (!understand_shape(work, tensor, scale, &blocks)) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the %" PRIu64 " scales '%s' fit neither the rows nor the "
                 "blocks of '%s'",
                 scale->n_elements, scale->stored_name, tensor->stored_name);
        lmq_hint(err, "weight_block_size in config.json gives the size of "
                      "blocks; without it they are %d x %d",
                 USUAL_BLOCK, USUAL_BLOCK);
        return LMQ_ERR_FORMAT;
    }
    tensor->scales = blocks;
    work->is_dropped[scale - work->checkpoint->tensors] = true;
    return LMQ_OK;
}

/* ---- One tensor ---- */

static enum lmq_status
find_scale(struct work *work, struct lmq_tensor *tensor, struct lmq_error *err)
{
    static const char *const endings[] = {"_scale_inv", "_scale"};
    const char *name = tensor->stored_name;
    const struct lmq_tensor *found = NULL;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        const struct lmq_tensor *scale =
            lmq_name_list_find(work->checkpoint, work->list, name,
                               strlen(name), endings[i]);
        if (scale != NULL && found != NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "'%s' has two scales, '%s' and '%s'", name,
                            found->stored_name, scale->stored_name);
        if (scale != NULL)
            found = scale;
    }
    if (found != NULL)
        return attach(work, tensor, found, err);
    if (work->is_announced && tensor->n_dims >= 2) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "tensor '%s' is FP8, but its scale '%s_scale' or "
                 "'%s_scale_inv' is missing",
                 name, name, name);
        lmq_hint(err, "the download may be incomplete");
        return LMQ_ERR_FORMAT;
    }
    work->findings.n_bare++;
    return LMQ_OK;
}

/* ---- All of them ---- */

static enum lmq_status
read_block_size(struct work *work, const json_t *quantization,
                struct lmq_error *err)
{
    const json_t *size = json_object_get(quantization, "weight_block_size");
    json_int_t rows = json_integer_value(json_array_get(size, 0));
    json_int_t cols = json_integer_value(json_array_get(size, 1));

    if (size == NULL || json_is_null(size))
        return LMQ_OK;
    if (json_array_size(size) != 2 || rows < 1 || cols < 1 ||
        rows > LMQ_MAX_WIDTH || cols > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "weight_block_size in config.json is no pair of sizes "
                        "from 1 to %d",
                        LMQ_MAX_WIDTH);
    work->block_rows = (uint64_t)rows;
    work->block_cols = (uint64_t)cols;
    return LMQ_OK;
}

static void
drop_scales(struct work *work)
{
    struct lmq_checkpoint *checkpoint = work->checkpoint;
    size_t kept = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        bool is_useless =
            !work->is_dropped[i] && is_ignored(tensor->stored_name);
        work->findings.n_ignored += is_useless;
        if (work->is_dropped[i] || is_useless)
            lmq_tensor_free(tensor);
        else
            checkpoint->tensors[kept++] = *tensor;
    }
    checkpoint->n_tensors = kept;
}

static void
add_notes(struct lmq_checkpoint *checkpoint, const struct findings *f)
{
    if (f->n_whole > 0)
        lmq_checkpoint_note(checkpoint,
                            "tensors of FP8 with a scale for each: %zu",
                            f->n_whole);
    if (f->n_by_row > 0)
        lmq_checkpoint_note(checkpoint,
                            "tensors of FP8 with a scale for each row: %zu",
                            f->n_by_row);
    if (f->n_by_block > 0)
        lmq_checkpoint_note(checkpoint,
                            "tensors of FP8 with block scales %" PRIu64
                            " x %" PRIu64 ": %zu",
                            f->block_rows, f->block_cols, f->n_by_block);
    if (f->n_bare > 0)
        lmq_checkpoint_note(checkpoint,
                            "tensors of FP8 without scales, plain numbers: "
                            "%zu",
                            f->n_bare);
    if (f->n_ignored > 0)
        lmq_checkpoint_note(checkpoint,
                            "scales of activations that are left out: %zu",
                            f->n_ignored);
}

enum lmq_status
lmq_fp8_attach_scales(struct lmq_checkpoint *checkpoint,
                      const struct lmq_name_list *list,
                      const json_t *quantization, struct lmq_error *err)
{
    struct work work = {
        .checkpoint = checkpoint,
        .list = list,
        .is_announced = json_object_get(quantization, "quant_method") != NULL,
    };
    enum lmq_status status = read_block_size(&work, quantization, err);
    bool has_any = false;

    for (size_t i = 0; i < checkpoint->n_tensors && !has_any; i++)
        has_any = is_fp8(&checkpoint->tensors[i]);
    if (status != LMQ_OK || !has_any)
        return status;
    work.is_dropped = calloc(checkpoint->n_tensors, sizeof(bool));
    if (work.is_dropped == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        if (is_fp8(&checkpoint->tensors[i]))
            status = find_scale(&work, &checkpoint->tensors[i], err);
    if (status == LMQ_OK) {
        drop_scales(&work);
        add_notes(checkpoint, &work.findings);
    }
    free(work.is_dropped);
    return status;
}
