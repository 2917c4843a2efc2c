/*
 * gguf_xielu.c - the numbers of xIELU, which GGUF keeps as lists under keys.
 *
 * They are tensors here, as in the files of the models' makers: each points at
 * its item in the list.
 */
#include "config.h"

#include "formats/gguf/gguf_special.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_front.h"

static const struct {
    const char *key;
    enum lmq_role role;
} lists[LMQ_GGUF_XIELU_LISTS] = {
    {"xielu.alpha_p", LMQ_ROLE_ACT_POSITIVE},
    {"xielu.alpha_n", LMQ_ROLE_ACT_NEGATIVE},
    {"xielu.beta", LMQ_ROLE_ACT_SLOPE},
    {"xielu.eps", LMQ_ROLE_ACT_BOUND},
};

enum lmq_role
lmq_gguf_xielu_role(size_t list)
{
    return lists[list].role;
}

/* One number may stand for all layers. */
static enum lmq_status
add_list(struct lmq_checkpoint *checkpoint, const struct lmq_gguf_front *front,
         size_t list, struct lmq_error *err)
{
    const uint64_t one = 1;
    const struct lmq_gguf_value *value =
        lmq_gguf_find(front->meta, lists[list].key);
    bool is_list = value != NULL && value->type == LMQ_GGUF_ARRAY;
    enum lmq_gguf_type type = is_list         ? value->item_type
                              : value != NULL ? value->type
                                              : LMQ_GGUF_TYPE_COUNT;
    uint32_t n_layers = checkpoint->hparams.n_layers;
    enum lmq_status status = LMQ_OK;
    char name[64];

    if (type != LMQ_GGUF_F32 || (is_list && value->count < n_layers))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no float32 for each of %" PRIu32
                        " layers",
                        lists[list].key, n_layers);
    for (uint32_t i = 0; i < n_layers && status == LMQ_OK; i++) {
        struct lmq_tensor *tensor;
        const struct lmq_place place = {lists[list].role, LMQ_PART_WEIGHT,
                                        (int32_t)i, -1};
        lmq_name_canonical(&place, name, sizeof(name));
        status = lmq_checkpoint_add_tensor(checkpoint, name, &tensor, err);
        if (status != LMQ_OK)
            break;
        lmq_tensor_set_dims(tensor, &one, 1);
        tensor->place = place;
        tensor->dtype = LMQ_DTYPE_F32;
        tensor->offset = (uint64_t)(value->data - front->bytes) +
                         (is_list ? 4 * (uint64_t)i : 0);
        tensor->size_bytes = 4;
    }
    return status;
}

enum lmq_status
lmq_gguf_add_xielu(struct lmq_checkpoint *checkpoint,
                   const struct lmq_gguf_front *front, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (checkpoint->hparams.activation != LMQ_ACTIVATION_XIELU)
        return LMQ_OK;
    for (size_t i = 0; i < LMQ_GGUF_XIELU_LISTS && status == LMQ_OK; i++)
        status = add_list(checkpoint, front, i, err);
    return status;
}

void
lmq_gguf_write_xielu(struct lmq_gguf_builder *builder, size_t list,
                     const float *values, uint32_t n_layers)
{
    lmq_gguf_put_array(builder, lists[list].key, LMQ_GGUF_F32, n_layers);
    for (uint32_t i = 0; i < n_layers; i++)
        lmq_gguf_add_f32(builder, (double)values[i]);
}
