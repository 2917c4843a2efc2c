/*
 * gguf_scales.c - scales that stand beside matrices.
 *
 *     NAME.weight, NAME.scale (1)        of NVFP4 (what ModelOpt calls the
 *                                        second scale), of ternary models
 *     NAME.input_scale                   of activations
 *
 * llama.cpp multiplies what the matrix makes with the scale; here the elements
 * of the matrix are multiplied, which differs by roundings. A scale of each
 * expert is left where it is, where nobody understands it.
 */
#include "config.h"

#include "formats/gguf/gguf_scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/ends.h"
#include "formats/checkpoint/name_list.h"

static enum lmq_status
scale_weight(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *scale,
             struct lmq_tensor *weight, struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    enum lmq_status status =
        lmq_checkpoint_read(checkpoint, scale, 0, 1, &weight->view.times,
                            &scratch, err);

    lmq_scratch_free(&scratch);
    if (status == LMQ_OK &&
        !(weight->view.times > 0 && isfinite(weight->view.times)))
        return lmq_fail(err, LMQ_ERR_FORMAT, scale->offset,
                        "tensor '%s' is %g, expected a number above 0",
                        scale->stored_name, (double)weight->view.times);
    return status;
}

/* A tensor that becomes part of another, or of nothing. */
static enum lmq_status
take(struct lmq_checkpoint *checkpoint, const struct lmq_name_list *list,
     struct lmq_tensor *tensor, size_t *n_scaled, size_t *n_left_out,
     bool *is_taken, struct lmq_error *err)
{
    static const char weight_scale[] = ".scale", input[] = ".input_scale";
    const char *name = tensor->stored_name;
    bool is_input = lmq_ends_with(name, input);

    *is_taken = false;
    if (!is_input && !lmq_ends_with(name, weight_scale))
        return LMQ_OK;
    struct lmq_tensor *weight = lmq_name_list_find(
        checkpoint, list, name,
        strlen(name) - strlen(is_input ? input : weight_scale), ".weight");
    if (weight == NULL || weight->n_dims < 2 ||
        (!is_input && tensor->n_elements != 1))
        return LMQ_OK;
    *is_taken = true;
    *n_left_out += is_input;
    *n_scaled += !is_input;
    return is_input ? LMQ_OK : scale_weight(checkpoint, tensor, weight, err);
}

enum lmq_status
lmq_gguf_take_scales(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    size_t kept = 0, n_scaled = 0, n_left_out = 0, n = checkpoint->n_tensors;
    struct lmq_name_list list = {0};
    enum lmq_status status = lmq_name_list_make(checkpoint, &list, err);
    bool *are_taken = calloc(n + 1, sizeof(*are_taken));

    if (are_taken == NULL && status == LMQ_OK)
        status = lmq_fail_nomem(err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        status = take(checkpoint, &list, &checkpoint->tensors[i], &n_scaled,
                      &n_left_out, &are_taken[i], err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        if (are_taken[i])
            lmq_tensor_free(&checkpoint->tensors[i]);
        else
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
    if (status == LMQ_OK)
        checkpoint->n_tensors = kept;
    if (n_scaled > 0)
        lmq_checkpoint_note(checkpoint, "matrices with a scale beside them: "
                                        "%zu",
                            n_scaled);
    if (n_left_out > 0)
        lmq_checkpoint_note(checkpoint,
                            "scales of activations that are left out: %zu",
                            n_left_out);
    free(are_taken);
    lmq_name_list_free(&list);
    return status;
}
