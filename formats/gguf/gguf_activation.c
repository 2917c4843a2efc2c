/*
 * gguf_activation.c - what some families say of their activation in GGUF: a
 * word; or the numbers of xIELU, lists under keys.
 *
 * These numbers are tensors here, as in the files of the models' makers: each
 * points at its item in the list.
 */
#include "config.h"

#include "formats/gguf/gguf_special.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_front.h"
#include "formats/gguf/gguf_reader.h"

/* ---- A word ---- */

/* Its words; others llama.cpp takes for SiLU. */
static const struct {
    const char *word;
    enum lmq_activation activation;
} activations[] = {
    {"relu2", LMQ_ACTIVATION_RELU2},
    {"relu", LMQ_ACTIVATION_RELU},
    {"silu", LMQ_ACTIVATION_SILU},
};

#define N_ACTIVATIONS (sizeof(activations) / sizeof(activations[0]))

/* SiLU is what no word means. */
enum lmq_status
lmq_gguf_read_activation(struct lmq_gguf_reader *r)
{
    const unsigned char *text = NULL;
    size_t n = 0;

    if (!r->family->gguf.says_activation)
        return LMQ_OK;
    enum lmq_status status = lmq_gguf_get_text(
        r->meta, lmq_gguf_key_of(r, LMQ_GGUF_ACTIVATION), &text, &n, r->err);
    if (status != LMQ_OK || text == NULL)
        return status;
    for (size_t i = 0; i < N_ACTIVATIONS; i++)
        if (strlen(activations[i].word) == n &&
            memcmp(activations[i].word, text, n) == 0) {
            r->h->activation = activations[i].activation;
            return LMQ_OK;
        }
    char shown[96], word[64];
    snprintf(word, sizeof(word), "%.*s", (int)lmq_size_min(n, 63),
             (const char *)text);
    lmq_printable(shown, sizeof(shown), word);
    lmq_hparams_refuse(r->h, "activation '%s'", shown);
    return LMQ_OK;
}

/* SiLU is said by no word: the one for it means something else there. */
void
lmq_gguf_write_activation(struct lmq_gguf_builder *builder,
                          const struct lmq_hparams *h)
{
    for (size_t i = 0; i < N_ACTIVATIONS; i++)
        if (activations[i].activation == h->activation &&
            h->activation != LMQ_ACTIVATION_SILU)
            lmq_gguf_put_text(builder, "." LMQ_GGUF_ACTIVATION,
                              activations[i].word,
                              strlen(activations[i].word));
}

/* ---- xIELU ---- */

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
