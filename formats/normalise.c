/*
 * normalise.c - what a reader found becomes the one form.
 *
 * Names and order are canonical, what nobody needs is left out, and a model
 * has every tensor that its description asks for, in the right shape.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint.h"

static int
compare_tensors(const void *a, const void *b)
{
    const struct lmq_tensor *x = a, *y = b;
    int order = lmq_place_compare(&x->place, &y->place);

    return order != 0 ? order : strcmp(x->name, y->name);
}

static enum lmq_status
name_tensor(struct lmq_tensor *tensor, struct lmq_error *err)
{
    char name[64];

    if (tensor->name != NULL) /* the format knows it */
        return LMQ_OK;
    if (tensor->place.role == LMQ_ROLE_OTHER)
        lmq_name_parse(tensor->stored_name, &tensor->place);
    if (tensor->place.role == LMQ_ROLE_OTHER) {
        tensor->name = strdup(tensor->stored_name);
    } else {
        lmq_name_canonical(&tensor->place, name, sizeof(name));
        tensor->name = strdup(name);
    }
    return tensor->name == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* Leaves out what nobody needs, with a note. */
static void
drop_ignorable(struct lmq_checkpoint *checkpoint)
{
    size_t kept = 0, dropped = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->n_elements == 0 ||
            lmq_name_is_ignorable(tensor->stored_name)) {
            if (dropped++ == 0)
                lmq_checkpoint_note(checkpoint,
                                    "tensor '%s' is left out: %s",
                                    tensor->stored_name,
                                    tensor->n_elements == 0
                                        ? "it is empty"
                                        : "it can be computed");
            lmq_tensor_free(tensor);
        } else {
            checkpoint->tensors[kept++] = *tensor;
        }
    }
    if (dropped > 1)
        lmq_checkpoint_note(checkpoint, "%zu more like it are left out",
                            dropped - 1);
    checkpoint->n_tensors = kept;
}

/* What each role's shape must be, from the hyper-parameters. */
static void
expected_shape(const struct lmq_hparams *h, enum lmq_role role,
               enum lmq_part part, uint64_t dims[2], uint32_t *n_dims)
{
    uint64_t q = (uint64_t)h->n_heads * h->head_dim;
    uint64_t kv = (uint64_t)h->n_kv_heads * h->head_dim;
    const uint64_t shapes[LMQ_ROLE_COUNT][2] = {
        [LMQ_ROLE_EMBEDDING] = {h->vocab_size, h->dim},
        [LMQ_ROLE_HEAD] = {h->vocab_size, h->dim},
        [LMQ_ROLE_OUTPUT_NORM] = {h->dim, 0},
        [LMQ_ROLE_ATTN_NORM] = {h->dim, 0},
        [LMQ_ROLE_ATTN_Q] = {q, h->dim},
        [LMQ_ROLE_ATTN_K] = {kv, h->dim},
        [LMQ_ROLE_ATTN_V] = {kv, h->dim},
        [LMQ_ROLE_ATTN_OUT] = {h->dim, q},
        [LMQ_ROLE_FFN_NORM] = {h->dim, 0},
        [LMQ_ROLE_FFN_GATE] = {h->hidden_dim, h->dim},
        [LMQ_ROLE_FFN_UP] = {h->hidden_dim, h->dim},
        [LMQ_ROLE_FFN_DOWN] = {h->dim, h->hidden_dim},
    };

    dims[0] = shapes[role][0];
    dims[1] = shapes[role][1];
    *n_dims = part == LMQ_PART_BIAS || dims[1] == 0 ? 1 : 2;
}

static void
describe_shape(const uint64_t *dims, uint32_t n_dims, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < n_dims && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%" PRIu64,
                         i == 0 ? "" : " x ", dims[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

static enum lmq_status
check_shape(const struct lmq_hparams *hparams, const struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    uint64_t dims[2];
    uint32_t n_dims;
    char found[128], wanted[64];

    expected_shape(hparams, tensor->place.role, tensor->place.part, dims,
                   &n_dims);
    if (tensor->n_dims == n_dims && tensor->dims[0] == dims[0] &&
        (n_dims == 1 || tensor->dims[1] == dims[1]))
        return LMQ_OK;
    describe_shape(tensor->dims, tensor->n_dims, found, sizeof(found));
    describe_shape(dims, n_dims, wanted, sizeof(wanted));
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "tensor '%s' is %s, but the configuration says %s",
             tensor->stored_name, found, wanted);
    return LMQ_ERR_FORMAT;
}

/* Every tensor that a model of this description has, except a head. */
static enum lmq_status
check_complete(const struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    char name[64];

    for (int role = 1; role < LMQ_ROLE_COUNT; role++) {
        bool is_per_layer = lmq_role_is_per_layer((enum lmq_role)role);
        int32_t last =
            is_per_layer ? (int32_t)checkpoint->hparams.n_layers - 1 : -1;
        if (role == LMQ_ROLE_HEAD)
            continue;
        for (int32_t layer = is_per_layer ? 0 : -1; layer <= last; layer++) {
            struct lmq_place place = {(enum lmq_role)role, LMQ_PART_WEIGHT,
                                      layer};
            if (lmq_checkpoint_find(checkpoint, place.role, place.part,
                                    layer) != NULL)
                continue;
            lmq_name_canonical(&place, name, sizeof(name));
            lmq_fail(err, LMQ_ERR_FORMAT, 0, "lacks the tensor %s%s", name,
                     is_per_layer ? " (layers count from 0)" : "");
            lmq_hint(err, "the file may be incomplete, or its configuration "
                          "may belong to another model");
            return LMQ_ERR_FORMAT;
        }
    }
    return LMQ_OK;
}

static enum lmq_status
check_model(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    enum lmq_status status = lmq_hparams_check(&checkpoint->hparams, err);

    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->place.role == LMQ_ROLE_OTHER)
            lmq_hparams_refuse(&checkpoint->hparams,
                               "the tensor '%.100s'", tensor->stored_name);
        else if (tensor->place.layer >=
                 (int32_t)checkpoint->hparams.n_layers)
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "tensor '%s' belongs to layer %d, but the "
                              "configuration says %u layers",
                              tensor->stored_name, (int)tensor->place.layer,
                              checkpoint->hparams.n_layers);
        else
            status = check_shape(&checkpoint->hparams, tensor, err);
    }
    return status == LMQ_OK ? check_complete(checkpoint, err) : status;
}

enum lmq_status
lmq_checkpoint_normalise(struct lmq_checkpoint *checkpoint,
                         struct lmq_error *err)
{
    drop_ignorable(checkpoint);
    if (checkpoint->n_tensors == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "holds no tensors");
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->encoding == NULL)
            tensor->bits_per_element = 8.0 * (double)lmq_dtype_size(
                                                 tensor->dtype);
        enum lmq_status status = name_tensor(tensor, err);
        if (status != LMQ_OK)
            return status;
    }
    qsort(checkpoint->tensors, checkpoint->n_tensors,
          sizeof(*checkpoint->tensors), compare_tensors);
    for (size_t i = 1; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (strcmp(tensor->name, tensor[-1].name) == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensors '%s' and '%s' are the same (%s)",
                            tensor[-1].stored_name, tensor->stored_name,
                            tensor->name);
    }
    return checkpoint->has_model ? check_model(checkpoint, err) : LMQ_OK;
}
