/*
 * fp8.c - FP8 matrices and the scales beside them.
 *
 * NAME.weight_scale or NAME.weight_scale_inv (the inverse of what it was
 * divided by): floats, or the exponents of powers of two (MXFP8). The value of
 * an element is the product either way, in float32; what transformers and
 * others compute with is that product, rounded to the type of the model. Of
 * some families it calls the scale NAME.scale.
 *
 * GPTQModel's weight_scale_inv is what it was multiplied with, and config.json
 * says so: weight_scale_semantics is inverse.
 *
 * transformers has the experts of a layer in two tensors, takes them apart when
 * it saves them, and leaves their scales as they are:
 *
 *     experts.E.gate_proj.weight, up_proj.weight, down_proj.weight
 *     experts.gate_up_proj_scale_inv  (experts, rows of blocks, columns); the
 *                                     gate's rows first
 *     experts.down_proj_scale_inv     the same
 */
#include "config.h"

#include <ctype.h>
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

/* A scale for each column, where shapes may say that it is for a row. */
static bool
is_by_column(const json_t *step)
{
    const char *scheme = json_string_value(json_object_get(step, "qscheme"));
    int64_t axis = lmq_packer_number(step, "ch_axis", 0);

    return scheme != NULL && strcmp(scheme, "per_channel") == 0 &&
           (axis == 1 || axis == -1);
}

static bool
is_supported(struct lmq_packer *packer, bool *is_inverse)
{
    const char *meaning = lmq_packer_text(packer, "weight_scale_semantics");

    *is_inverse = strcmp(meaning, "inverse") == 0;
    if (*meaning != '\0' && !*is_inverse)
        lmq_packer_refuse(packer, "weight_scale_semantics %.24s", meaning);
    else if (lmq_packer_has_step(packer, is_by_column))
        lmq_packer_refuse(packer, "scales of columns, ch_axis 1");
    return packer->refused[0] == '\0';
}

/* ---- Experts ---- */

static const struct shared {
    const char *ending, *scales;
    unsigned place, n; /* which of so many matrices */
} shared[] = {
    {".gate_proj.weight", "gate_up_proj_scale_inv", 0, 2},
    {".up_proj.weight", "gate_up_proj_scale_inv", 1, 2},
    {".down_proj.weight", "down_proj_scale_inv", 0, 1},
    {".w1.weight", "gate_up_proj_scale_inv", 0, 2},
    {".w3.weight", "gate_up_proj_scale_inv", 1, 2},
    {".w2.weight", "down_proj_scale_inv", 0, 1},
};

/* The scales of all experts; NULL if there are none. */
static struct lmq_tensor *
find_shared(const struct lmq_packer *packer, const struct lmq_tensor *tensor,
            const struct shared **kind, uint64_t *expert)
{
    const char *name = tensor->stored_name;

    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        if (!lmq_ends_with(name, shared[i].ending))
            continue;
        size_t at = strlen(name) - strlen(shared[i].ending);
        while (at > 0 && isdigit((unsigned char)name[at - 1]))
            at--;
        *kind = &shared[i];
        *expert = strtoull(name + at, NULL, 10);
        return lmq_name_list_find(packer->checkpoint, &packer->list, name, at,
                                  shared[i].scales);
    }
    return NULL;
}

/* Those of one matrix are some of them, one after the other. */
static enum lmq_status
set_shared(const struct lmq_packer *packer, struct lmq_affine *affine,
           const struct lmq_tensor *tensor, const struct lmq_tensor *scale,
           const struct shared *kind, uint64_t expert, struct lmq_error *err)
{
    struct lmq_tensor own = *scale;

    if (scale->view.pitch != 0 || scale->encoding != NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, scale->offset,
                        "'%s' is stored transposed or in several files",
                        scale->stored_name);
    if (tensor->n_dims != 2 || scale->n_dims != 3 ||
        expert >= scale->dims[0] ||
        !lmq_tensor_set_dims(&own, scale->dims + 1, 2))
        return lmq_fail(err, LMQ_ERR_FORMAT, scale->offset,
                        "'%s' has no scales for '%s'", scale->stored_name,
                        tensor->stored_name);
    const uint64_t dims[] = {tensor->dims[0] * kind->n, tensor->dims[1]};
    enum lmq_status status = lmq_scale_shape_set(
        packer, affine, tensor->stored_name, dims, 2, &own, err);
    if (status != LMQ_OK)
        return status;
    /* One row of blocks is for all matrices. */
    uint64_t n = own.dims[0], first = 0;
    if (n > 1 && tensor->dims[0] % affine->block_rows != 0 && kind->n > 1)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, scale->offset,
                        "a block of '%s' is for two matrices",
                        scale->stored_name);
    if (n > 1)
        first = kind->place * tensor->dims[0] / affine->block_rows;
    affine->scales.offset += (expert * n + first) * own.dims[1] *
                             lmq_dtype_size(own.dtype);
    return LMQ_OK;
}

/* ---- One tensor ---- */

/* `kind`: whose scales are those of all experts; else NULL. */
static enum lmq_status
attach(struct lmq_packer *packer, struct lmq_tensor *tensor,
       struct lmq_tensor *scale, bool is_inverse, const struct shared *kind,
       uint64_t expert, struct lmq_error *err)
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
    status = kind != NULL ? set_shared(packer, affine, tensor, scale, kind,
                                       expert, err)
                          : lmq_scale_shape_set(
                                packer, affine, tensor->stored_name,
                                tensor->dims, tensor->n_dims, scale, err);
    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    lmq_packer_found(packer, "tensors of FP8 with %s",
                     lmq_scale_shape_text(affine, text, sizeof(text)));
    if (kind != NULL)
        packer->fates[scale - packer->checkpoint->tensors].is_part = true;
    return lmq_affine_join(packer, tensor, "", "", affine, tensor->dims,
                           tensor->n_dims, &scale, kind == NULL, err);
}

static enum lmq_status
fail_missing(const struct lmq_tensor *tensor, struct lmq_error *err)
{
    const char *name = tensor->stored_name;

    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "tensor '%s' is FP8, but its scale '%s_scale' or "
             "'%s_scale_inv' is missing",
             name, name, name);
    lmq_hint(err, "the download may be incomplete; or the scales have other "
                  "names, which are not read");
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
    const struct shared *kind = NULL;
    uint64_t expert = 0;
    bool is_inverse;

    if (scale != NULL && inverse != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' has two scales, '%s' and '%s'",
                        tensor->stored_name, scale->stored_name,
                        inverse->stored_name);
    if (scale == NULL)
        scale = inverse;
    if (scale == NULL && packer->method != NULL &&
        strcmp(packer->method, "fp8") == 0 &&
        lmq_ends_with(tensor->stored_name, ".weight"))
        scale = lmq_packer_sibling(packer, tensor, ".weight", ".scale");
    if (scale == NULL)
        scale = find_shared(packer, tensor, &kind, &expert);
    if (scale != NULL)
        return is_supported(packer, &is_inverse)
                   ? attach(packer, tensor, scale, is_inverse, kind, expert,
                            err)
                   : LMQ_OK;
    if (packer->method != NULL && tensor->n_dims >= 2)
        return fail_missing(tensor, err);
    if (packer->method == NULL || packer->may_be_plain)
        lmq_packer_found(packer,
                         "tensors of FP8 without scales, plain numbers");
    return LMQ_OK;
}
