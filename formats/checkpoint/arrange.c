/*
 * arrange.c - what a source transposes, turns or writes in other numbers.
 *
 * GPT-2 keeps matrices as (inputs, outputs); GGUF keeps pairs of RoPE side by
 * side for some families; Gemma stores norms less one.
 */
#include "config.h"

#include <inttypes.h>

#include "base/error.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/checkpoint/fused.h"
#include "formats/model/pools.h"
#include "quantize/blocks.h"

/* ---- Parts ---- */

enum lmq_status
lmq_tensor_take_elements(struct lmq_tensor *tensor, uint64_t first,
                         const uint64_t *dims, size_t n_dims,
                         struct lmq_error *err)
{
    uint64_t per_step = 1, step_bytes = lmq_dtype_size(tensor->dtype);

    lmq_tensor_set_dims(tensor, dims, n_dims);
    if (tensor->encoding != NULL && tensor->blocks == NULL) {
        tensor->view.first += first / (n_dims == 1 ? 1 : tensor->n_cols);
        tensor->size_bytes = (uint64_t)((double)tensor->n_elements *
                                        tensor->bits_per_element / 8);
        return LMQ_OK;
    }
    if (tensor->blocks != NULL) {
        per_step = tensor->blocks->n;
        step_bytes = tensor->blocks->size;
    }
    if (first % per_step != 0 || tensor->n_elements % per_step != 0)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "tensor '%s' cannot be taken apart: blocks of %" PRIu64
                        " elements cross its parts",
                        tensor->stored_name, per_step);
    tensor->offset += first / per_step * step_bytes;
    tensor->size_bytes = tensor->n_elements / per_step * step_bytes;
    tensor->view.origin += first;
    return LMQ_OK;
}

bool
lmq_tensor_is_transposed(const struct lmq_checkpoint *checkpoint,
                         const struct lmq_tensor *tensor)
{
    return checkpoint->source.is_transposed && tensor->n_dims == 2 &&
           (tensor->packing == NULL || !tensor->packing->is_upright);
}

enum lmq_status
lmq_tensor_take_rows(const struct lmq_checkpoint *checkpoint,
                     struct lmq_tensor *tensor, uint64_t first, uint64_t n,
                     struct lmq_error *err)
{
    bool is_matrix = tensor->n_dims == 2;
    uint64_t dims[2] = {n, tensor->dims[1]};

    if (lmq_tensor_is_transposed(checkpoint, tensor)) {
        dims[0] = tensor->dims[0];
        dims[1] = n;
        if (tensor->view.pitch == 0)
            tensor->view.pitch = tensor->n_cols;
        tensor->view.first = first;
        lmq_tensor_set_dims(tensor, dims, 2);
        return LMQ_OK;
    }
    return lmq_tensor_take_elements(
        tensor, first * (is_matrix ? tensor->n_cols : 1), dims,
        is_matrix ? 2 : 1, err);
}

/* ---- Whole tensors ---- */

/* Not those of latents: they are stored as they are. */
static bool
is_norm(enum lmq_role role)
{
    return role == LMQ_ROLE_EMBEDDING_NORM || role == LMQ_ROLE_OUTPUT_NORM ||
           role == LMQ_ROLE_ATTN_NORM ||
           role == LMQ_ROLE_FFN_NORM || role == LMQ_ROLE_ATTN_POST_NORM ||
           role == LMQ_ROLE_FFN_POST_NORM || role == LMQ_ROLE_ATTN_Q_NORM ||
           role == LMQ_ROLE_ATTN_K_NORM || role == LMQ_ROLE_GRAM_KEY_NORM ||
           role == LMQ_ROLE_GRAM_QUERY_NORM || role == LMQ_ROLE_GRAM_CONV_NORM;
}

/* The stored row length stays as the pitch; dims become ours. */
static void
transpose(struct lmq_tensor *tensor)
{
    const uint64_t dims[2] = {tensor->dims[1], tensor->dims[0]};

    if (tensor->view.pitch == 0)
        tensor->view.pitch = tensor->n_cols;
    lmq_tensor_set_dims(tensor, dims, 2);
}

/* llama.cpp tiles the value heads of Qwen 3.5, and has what decays itself. What
 * has another size than the description says is refused later, by it, and may
 * be looked at before that. */
static void
arrange_delta(const struct lmq_checkpoint *checkpoint,
              struct lmq_tensor *tensor)
{
    const struct lmq_source *source = &checkpoint->source;
    struct lmq_shuffle rows, columns;
    uint64_t n_rows = tensor->n_dims == 1 ? tensor->n_elements
                                          : tensor->n_rows;

    if (source->has_tiled_values) {
        lmq_tiled_values(&checkpoint->hparams, &tensor->place, &rows,
                         &columns);
        if (lmq_shuffle_fits(&rows, n_rows))
            tensor->view.rows = rows;
        if (tensor->n_dims == 2 && lmq_shuffle_fits(&columns, tensor->n_cols))
            tensor->view.columns = columns;
    }
    if (source->has_decay_itself &&
        tensor->place.role == LMQ_ROLE_DELTA_DECAY)
        tensor->view.map =
            source->has_decay_above ? LMQ_MAP_LOG : LMQ_MAP_LOG_OF_MINUS;
}

/* What llama.cpp keeps in rows: a number for each head, or a norm for each
 * group of them. And decays of keys, a row for each head; or a number for each
 * head in dimensions that others broadcast. */
static bool
is_flat(const struct lmq_hparams *h, const struct lmq_tensor *tensor)
{
    enum lmq_role role = tensor->place.role;

    if (role == LMQ_ROLE_DELTA_DECAY && lmq_is_selective(h))
        return tensor->n_dims == 2 && tensor->dims[1] == h->delta_key_dim;
    if (role == LMQ_ROLE_DELTA_DECAY)
        return tensor->n_dims > 1;
    return tensor->n_dims == 2 &&
           (role == LMQ_ROLE_STATE_SKIP || role == LMQ_ROLE_DELTA_NORM);
}

/* Gates of each head, (heads, inputs, outputs), one below the other and turned;
 * and their biases, (heads, outputs). */
static void
arrange_blocks(const struct lmq_hparams *h, struct lmq_tensor *tensor)
{
    enum lmq_role role = tensor->place.role;
    uint64_t width = h->delta_value_dim;
    const uint64_t dims[2] = {lmq_delta_value_width(h), width};

    if (!lmq_is_lru(h) ||
        (role != LMQ_ROLE_DELTA_ALPHA && role != LMQ_ROLE_DELTA_BETA))
        return;
    if (tensor->place.part == LMQ_PART_BIAS && tensor->n_dims == 2)
        lmq_tensor_set_dims(tensor, &tensor->n_elements, 1);
    if (tensor->n_dims != 3 || tensor->packing != NULL ||
        tensor->dims[0] != h->n_delta_value_heads ||
        tensor->dims[1] != width || tensor->dims[2] != width)
        return;
    tensor->view.pitch = tensor->view.unit = width;
    tensor->view.stride = width * width;
    lmq_tensor_set_dims(tensor, dims, 2);
}

/* Pairs of rows, and of columns: what has another size than the description
 * says is refused later. */
static void
arrange_pairs(const struct lmq_checkpoint *checkpoint,
              struct lmq_tensor *tensor)
{
    struct lmq_view *view = &tensor->view;
    struct lmq_rope_rows columns =
        lmq_rope_columns(&checkpoint->hparams, &tensor->place);

    view->pairs = lmq_rope_rows(&checkpoint->hparams, &tensor->place);
    view->pairs.turns_back = checkpoint->source.turns_back;
    if (columns.n == 0 || tensor->n_dims != 2 ||
        tensor->n_cols % columns.head_dim != 0)
        return;
    view->column_pairs = columns;
    view->column_pairs.turns_back = checkpoint->source.turns_back;
}

enum lmq_status
lmq_tensor_arrange(const struct lmq_checkpoint *checkpoint,
                   struct lmq_tensor *tensor, struct lmq_error *err)
{
    const struct lmq_source *source = &checkpoint->source;
    uint32_t n_idle = source->n_idle_positions;

    if ((tensor->place.role == LMQ_ROLE_SHARED_SWITCH ||
         tensor->place.role == LMQ_ROLE_ROUTER_CORRECTION) &&
        tensor->n_dims == 2 && tensor->dims[0] == 1)
        lmq_tensor_set_dims(tensor, tensor->dims + 1, 1);
    if (is_flat(&checkpoint->hparams, tensor))
        lmq_tensor_set_dims(tensor, &tensor->n_elements, 1);
    if (lmq_role_is_convolution(tensor->place.role) && tensor->n_dims == 4 &&
        tensor->dims[0] == 1) /* llama.cpp's converter */
        lmq_tensor_set_dims(tensor, tensor->dims + 1, 3);
    if (lmq_role_is_convolution(tensor->place.role) && tensor->n_dims == 3 &&
        (tensor->dims[1] == 1 || tensor->dims[2] == 1)) {
        const uint64_t dims[2] = {tensor->dims[0],
                                  tensor->dims[1] * tensor->dims[2]};
        lmq_tensor_set_dims(tensor, dims, 2);
    }
    if (lmq_tensor_is_transposed(checkpoint, tensor) &&
        lmq_role_is_per_layer(tensor->place.role))
        transpose(tensor);
    arrange_blocks(&checkpoint->hparams, tensor);
    arrange_delta(checkpoint, tensor);
    if (lmq_role_is_of_index(tensor->place.role) &&
        lmq_chooses(&checkpoint->hparams))
        tensor->view.pairs = lmq_rope_index_rows(
            &checkpoint->hparams, &tensor->place,
            source->has_index_halves || !source->has_rotary_pairs,
            source->has_last_index);
    else if (source->has_rotary_pairs || source->turns_back)
        arrange_pairs(checkpoint, tensor);
    if (source->norms_less_one && is_norm(tensor->place.role) &&
        !(source->has_whole_last_norm &&
          tensor->place.role == LMQ_ROLE_OUTPUT_NORM) &&
        tensor->place.part == LMQ_PART_WEIGHT)
        tensor->view.plus = 1;
    if (source->has_unit_head && tensor->place.role == LMQ_ROLE_HEAD &&
        tensor->n_dims == 2)
        tensor->view.has_unit_rows = true;
    lmq_tensor_scale(tensor, source, &checkpoint->hparams);
    if (tensor->place.role == LMQ_ROLE_EMBEDDING && tensor->n_dims == 2 &&
        tensor->dims[0] > checkpoint->hparams.vocab_size &&
        tensor->dims[0] == source->n_input_tokens)
        return lmq_tensor_take_rows(checkpoint, tensor, 0,
                                    checkpoint->hparams.vocab_size, err);
    if (tensor->place.role == LMQ_ROLE_POSITIONS && tensor->n_dims == 2 &&
        tensor->dims[0] > n_idle && n_idle > 0)
        return lmq_tensor_take_rows(checkpoint, tensor, n_idle,
                                    tensor->dims[0] - n_idle, err);
    return LMQ_OK;
}
