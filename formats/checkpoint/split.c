/*
 * split.c - what a source fuses, transposes or interleaves becomes views.
 *
 * Nothing is read here: a part of a fused tensor is a tensor of its own that
 * knows where its rows stand. What the source does is in checkpoint->source.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/checkpoint/checkpoint.h"
#include "quantize/blocks.h"

/* ---- Parts ---- */

/* A tensor like `whole`, which is a copy: adding may move the others. */
static enum lmq_status
add_part(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *whole,
         enum lmq_role role, int32_t item, struct lmq_tensor **part,
         struct lmq_error *err)
{
    enum lmq_status status = lmq_checkpoint_add_tensor(
        checkpoint, whole->stored_name, part, err);

    if (status != LMQ_OK)
        return status;
    char *stored_name = (*part)->stored_name;
    **part = *whole;
    (*part)->stored_name = stored_name;
    (*part)->name = (*part)->alias_of = NULL;
    (*part)->place.role = role;
    (*part)->place.item = item;
    return LMQ_OK;
}

/* Elements [first, first + n) become the whole of it, in another shape. */
static enum lmq_status
take_elements(struct lmq_tensor *tensor, uint64_t first, const uint64_t *dims,
              size_t n_dims, struct lmq_error *err)
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

/* Whether its inputs are rows. */
static bool
is_transposed(const struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor)
{
    return checkpoint->source.is_transposed && tensor->n_dims == 2 &&
           (tensor->packing == NULL || !tensor->packing->is_upright);
}

/* Rows [first, first + n) of a fused matrix, or elements of its bias. */
static enum lmq_status
take_rows(const struct lmq_checkpoint *checkpoint, struct lmq_tensor *tensor,
          uint64_t first, uint64_t n, struct lmq_error *err)
{
    bool is_matrix = tensor->n_dims == 2;
    uint64_t dims[2] = {n, tensor->dims[1]};

    if (is_transposed(checkpoint, tensor)) {
        dims[0] = tensor->dims[0];
        dims[1] = n;
        if (tensor->view.pitch == 0)
            tensor->view.pitch = tensor->n_cols;
        tensor->view.first = first;
        lmq_tensor_set_dims(tensor, dims, 2);
        return LMQ_OK;
    }
    return take_elements(tensor, first * (is_matrix ? tensor->n_cols : 1),
                         dims, is_matrix ? 2 : 1, err);
}

static enum lmq_status
fail_size(const struct lmq_tensor *tensor, uint64_t found, uint64_t wanted,
          struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                    "tensor '%s' has %" PRIu64 " rows of all kinds, but the "
                    "configuration makes %" PRIu64,
                    tensor->stored_name, found, wanted);
}

/* The rows that a fused tensor has, as the model counts them. */
static uint64_t
fused_rows(const struct lmq_checkpoint *checkpoint,
           const struct lmq_tensor *tensor)
{
    return is_transposed(checkpoint, tensor) ? tensor->dims[1]
                                             : tensor->dims[0];
}

/* ---- What is fused ---- */

static enum lmq_status
split_qkv(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *whole,
          struct lmq_error *err)
{
    static const enum lmq_role roles[] = {LMQ_ROLE_ATTN_Q, LMQ_ROLE_ATTN_K,
                                          LMQ_ROLE_ATTN_V};
    const struct lmq_hparams *h = &checkpoint->hparams;
    const uint64_t per_head[] = {
        (uint64_t)h->n_heads / h->n_kv_heads * h->head_dim, h->head_dim,
        lmq_hparams_value_dim(h)};
    uint64_t stride = per_head[0] + per_head[1] + per_head[2], first = 0;
    uint64_t rows = fused_rows(checkpoint, whole);
    bool by_head = checkpoint->source.is_qkv_by_head;
    enum lmq_status status = LMQ_OK;

    if (rows != stride * h->n_kv_heads)
        return fail_size(whole, rows, stride * h->n_kv_heads, err);
    for (size_t i = 0; i < 3 && status == LMQ_OK; i++) {
        uint64_t n = per_head[i] * h->n_kv_heads;
        uint64_t dims[2] = {n, whole->dims[1]};
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, roles[i], -1, &part, err);
        if (status == LMQ_OK && !by_head) {
            status = take_rows(checkpoint, part, first, n, err);
        } else if (status == LMQ_OK) {
            part->view.first = first / h->n_kv_heads;
            part->view.unit = per_head[i];
            part->view.stride = stride;
            lmq_tensor_set_dims(part, dims, whole->n_dims);
        }
        first += n;
    }
    return status;
}

static enum lmq_status
split_gate_up(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *whole, struct lmq_error *err)
{
    uint64_t rows = fused_rows(checkpoint, whole);
    uint64_t hidden = checkpoint->hparams.hidden_dim;
    struct lmq_tensor *part;

    if (rows != 2 * hidden)
        return fail_size(whole, rows, 2 * hidden, err);
    enum lmq_status status =
        add_part(checkpoint, whole, LMQ_ROLE_FFN_GATE, -1, &part, err);
    if (status == LMQ_OK)
        status = take_rows(checkpoint, part, 0, hidden, err);
    if (status == LMQ_OK)
        status = add_part(checkpoint, whole, LMQ_ROLE_FFN_UP, -1, &part, err);
    if (status == LMQ_OK)
        status = take_rows(checkpoint, part, hidden, hidden, err);
    return status;
}

/* (experts, rows, columns): a matrix each. */
static enum lmq_status
split_experts(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *whole, enum lmq_role role,
              struct lmq_error *err)
{
    uint32_t n = checkpoint->hparams.n_experts;
    enum lmq_status status = LMQ_OK;

    if (whole->n_dims != 3 || whole->dims[0] != n)
        return fail_size(whole, whole->dims[0], n, err);
    for (uint32_t i = 0; i < n && status == LMQ_OK; i++) {
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, role, (int32_t)i, &part, err);
        if (status == LMQ_OK)
            status = take_elements(part, i * whole->dims[1] * whole->dims[2],
                                   whole->dims + 1, 2, err);
    }
    return status;
}

/* Latent attention: for each head the rows that make keys of latents, which
 * we turn around, so that they make queries on latents; then its values. */
static enum lmq_status
split_kv_b(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *whole,
           struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    uint64_t nope = h->head_dim - lmq_hparams_rotary_dim(h);
    uint64_t values = lmq_hparams_value_dim(h), rank = h->kv_lora_rank;
    const uint64_t key_dims[2] = {rank, nope}, value_dims[2] = {values, rank};
    enum lmq_status status = LMQ_OK;

    if (whole->n_dims != 2 || whole->dims[0] != h->n_heads * (nope + values) ||
        whole->dims[1] != rank)
        return fail_size(whole, whole->dims[0], h->n_heads * (nope + values),
                         err);
    for (uint32_t i = 0; i < h->n_heads && status == LMQ_OK; i++) {
        uint64_t first = i * (nope + values);
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, LMQ_ROLE_ATTN_K_B, (int32_t)i,
                          &part, err);
        if (status == LMQ_OK)
            status = take_rows(checkpoint, part, first, nope, err);
        if (status == LMQ_OK) {
            part->view.first *= rank; /* the rows are columns from now on */
            part->view.pitch = rank;
            lmq_tensor_set_dims(part, key_dims, 2);
            status = add_part(checkpoint, whole, LMQ_ROLE_ATTN_V_B, (int32_t)i,
                              &part, err);
        }
        if (status == LMQ_OK)
            status = take_elements(part, (first + nope) * rank, value_dims, 2,
                                   err);
    }
    return status;
}

/* (heads, rows, columns), as newer files have them. */
static enum lmq_status
split_heads(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *whole,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 0; i < whole->dims[0] && status == LMQ_OK; i++) {
        uint64_t n = whole->n_elements / whole->dims[0];
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, whole->place.role, (int32_t)i,
                          &part, err);
        if (status == LMQ_OK)
            status = take_elements(part, i * n, whole->dims + 1,
                                   whole->n_dims - 1, err);
    }
    return status;
}

/* Sets *is_fused if the tensor was one, whose parts stand at the end now. */
static enum lmq_status
split_tensor(struct lmq_checkpoint *checkpoint, size_t index, bool *is_fused,
             struct lmq_error *err)
{
    const struct lmq_tensor whole = checkpoint->tensors[index];
    const struct lmq_hparams *h = &checkpoint->hparams;

    *is_fused = true;
    switch ((int)whole.place.role) {
    case LMQ_ROLE_ATTN_QKV:
        return split_qkv(checkpoint, &whole, err);
    case LMQ_ROLE_FFN_GATE_UP:
        return split_gate_up(checkpoint, &whole, err);
    case LMQ_ROLE_EXPERTS_GATE:
        return split_experts(checkpoint, &whole, LMQ_ROLE_FFN_GATE, err);
    case LMQ_ROLE_EXPERTS_UP:
        return split_experts(checkpoint, &whole, LMQ_ROLE_FFN_UP, err);
    case LMQ_ROLE_EXPERTS_DOWN:
        return split_experts(checkpoint, &whole, LMQ_ROLE_FFN_DOWN, err);
    case LMQ_ROLE_ATTN_KV_B:
        return split_kv_b(checkpoint, &whole, err);
    case LMQ_ROLE_ATTN_K_B:
    case LMQ_ROLE_ATTN_V_B:
        if (whole.n_dims == 3 && whole.dims[0] == h->n_heads)
            return split_heads(checkpoint, &whole, err);
        break;
    case LMQ_ROLE_ATTN_Q_NORM:
    case LMQ_ROLE_ATTN_K_NORM:
        if (h->qk_norm == LMQ_QK_NORM_HEADS && whole.n_dims == 2 &&
            whole.dims[0] <= h->n_heads)
            return split_heads(checkpoint, &whole, err);
        break;
    default:
        break;
    }
    *is_fused = false;
    return LMQ_OK;
}

/* ---- What is arranged differently ---- */

static bool
is_norm(enum lmq_role role)
{
    return role == LMQ_ROLE_OUTPUT_NORM || role == LMQ_ROLE_ATTN_NORM ||
           role == LMQ_ROLE_FFN_NORM || role == LMQ_ROLE_ATTN_POST_NORM ||
           role == LMQ_ROLE_FFN_POST_NORM || role == LMQ_ROLE_ATTN_Q_NORM ||
           role == LMQ_ROLE_ATTN_K_NORM;
}

static void
transpose(struct lmq_tensor *tensor)
{
    const uint64_t dims[2] = {tensor->dims[1], tensor->dims[0]};

    if (tensor->view.pitch == 0)
        tensor->view.pitch = tensor->n_cols;
    lmq_tensor_set_dims(tensor, dims, 2);
}

static void
arrange(const struct lmq_checkpoint *checkpoint, struct lmq_tensor *tensor)
{
    const struct lmq_source *source = &checkpoint->source;

    if (tensor->place.role == LMQ_ROLE_SHARED_SWITCH && tensor->n_dims == 2 &&
        tensor->dims[0] == 1)
        lmq_tensor_set_dims(tensor, tensor->dims + 1, 1);
    if (is_transposed(checkpoint, tensor) &&
        lmq_role_is_per_layer(tensor->place.role))
        transpose(tensor);
    if (source->has_rotary_pairs)
        tensor->view.pairs =
            lmq_rope_rows(&checkpoint->hparams, tensor->place.role);
    if (source->norms_less_one && is_norm(tensor->place.role) &&
        tensor->place.part == LMQ_PART_WEIGHT)
        tensor->view.plus = 1;
}

enum lmq_status
lmq_checkpoint_split(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    size_t n = checkpoint->n_tensors, kept = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        bool is_fused;
        status = split_tensor(checkpoint, i, &is_fused, err);
        if (is_fused && status == LMQ_OK) {
            lmq_tensor_free(&checkpoint->tensors[i]);
            checkpoint->tensors[i] = (struct lmq_tensor){0};
        }
    }
    if (status != LMQ_OK)
        return status;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].stored_name != NULL) {
            checkpoint->tensors[kept] = checkpoint->tensors[i];
            arrange(checkpoint, &checkpoint->tensors[kept++]);
        }
    checkpoint->n_tensors = kept;
    return LMQ_OK;
}
