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
#include "formats/checkpoint/apart.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/checkpoint/fused.h"
#include "formats/grams/tables.h"

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
    return lmq_tensor_is_transposed(checkpoint, tensor) ? tensor->dims[1]
                                                        : tensor->dims[0];
}

/* ---- What is fused ---- */

/* The parts together are all rows. */
static enum lmq_status
split_rows(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *whole,
           const struct lmq_fused_rows *parts, size_t n_parts,
           struct lmq_error *err)
{
    uint64_t found = whole->n_dims > 2 ? 0 : fused_rows(checkpoint, whole);
    uint64_t wanted = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_parts; i++)
        wanted += parts[i].n;
    if (found != wanted)
        return fail_size(whole, found, wanted, err);
    for (size_t i = 0; i < n_parts && status == LMQ_OK; i++) {
        const struct lmq_fused_rows *rows = &parts[i];
        uint64_t dims[2] = {rows->n, whole->dims[1]};
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, rows->role, -1, &part, err);
        if (status == LMQ_OK && rows->stride == 0) {
            status = lmq_tensor_take_rows(checkpoint, part, rows->first,
                                          rows->n, err);
        } else if (status == LMQ_OK) {
            part->view.first = rows->first;
            part->view.unit = rows->unit;
            part->view.stride = rows->stride;
            lmq_tensor_set_dims(part, dims, whole->n_dims);
        }
    }
    return status;
}

/* What fused.c has a table of. *is_fused stays as it is if this layer has
 * nothing of the kind. */
static enum lmq_status
split_attention(struct lmq_checkpoint *checkpoint,
                const struct lmq_tensor *whole, bool *is_fused,
                struct lmq_error *err)
{
    struct lmq_fused_rows parts[LMQ_MOST_FUSED];
    uint64_t n_rows = 0;
    /* Time steps have one of their own: refused, as it is. */
    bool is_second_bias = whole->place.role == LMQ_ROLE_DELTA_QKVZ &&
                          whole->place.part == LMQ_PART_BIAS;
    size_t n = whole->place.layer < 0 || is_second_bias
                   ? 0
                   : lmq_fused_rows(&checkpoint->hparams,
                                    (size_t)whole->place.layer,
                                    whole->place.role,
                                    checkpoint->source.qkv_order, parts);

    for (size_t i = 0; i < n; i++)
        n_rows += parts[i].n;
    /* Queries may come without their gates. */
    if (n == 0 || ((whole->place.role == LMQ_ROLE_ATTN_Q ||
                    whole->place.role == LMQ_ROLE_ATTN_Q_B) &&
                   fused_rows(checkpoint, whole) != n_rows))
        return LMQ_OK;
    *is_fused = true;
    return split_rows(checkpoint, whole, parts, n, err);
}

/* What belongs to none has the sizes of the first; it is refused later. */
static size_t
layer_of(const struct lmq_tensor *tensor)
{
    return tensor->place.layer < 0 ? 0 : (size_t)tensor->place.layer;
}

/* The gate comes first in all families that fuse them so. */
static enum lmq_status
split_gate_up(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *whole, enum lmq_role gate,
              enum lmq_role up, uint64_t hidden, struct lmq_error *err)
{
    const struct lmq_fused_rows parts[] = {
        {gate, hidden, 0, 0, 0},
        {up, hidden, hidden, 0, 0},
    };

    return split_rows(checkpoint, whole, parts, 2, err);
}

/* Whether the matrices of a fused tensor have inputs as rows: false if nothing
 * tells, as of squares. Nobody turns a gate that stands alone. */
static bool
tells_turn(const struct lmq_checkpoint *checkpoint,
           const struct lmq_tensor *whole, bool *is_turned)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    uint64_t rows = h->expert_dim, cols = h->dim;

    *is_turned = false;
    if (whole->place.part != LMQ_PART_WEIGHT || whole->n_dims != 3 ||
        (whole->packing != NULL && whole->packing->is_upright))
        return false;
    switch ((int)whole->place.role) {
    case LMQ_ROLE_EXPERTS_GATE:
        return true;
    case LMQ_ROLE_EXPERTS_GATE_UP:
        rows *= 2;
        break;
    case LMQ_ROLE_EXPERTS_DOWN:
        rows = h->dim;
        cols = h->expert_dim;
        break;
    default:
        return false;
    }
    *is_turned = whole->dims[1] == cols && whole->dims[2] == rows;
    return rows != cols &&
           (*is_turned || (whole->dims[1] == rows && whole->dims[2] == cols));
}

/* Where the library saves a family otherwise than its makers do, the tensors
 * tell; of squares the others do, and only if none does there is nothing but
 * the rule. */
static void
adopt_turn(struct lmq_checkpoint *checkpoint)
{
    bool is_turned;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (tells_turn(checkpoint, &checkpoint->tensors[i], &is_turned)) {
            checkpoint->source.has_turned_experts = is_turned;
            return;
        }
}

/* (channels, steps, 1), as mlx-lm has it; others (channels, 1, steps). */
static bool
is_turned_convolution(const struct lmq_tensor *tensor)
{
    return lmq_role_is_convolution(tensor->place.role) && tensor->n_dims == 3 &&
           tensor->dims[1] > 1 && tensor->dims[2] == 1;
}

/* mlx-lm turns convolutions and, where it does, adds the one to norms. Where
 * attention stands beside a state space (Falcon-H1) it also multiplies weights
 * with what the configuration says, but only some. */
static enum lmq_status
adopt_convolutions(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (!is_turned_convolution(tensor))
            continue;
        checkpoint->source.norms_less_one = false;
        if (!lmq_layer_is(&checkpoint->hparams, 0, LMQ_LAYER_BESIDE))
            return LMQ_OK;
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, tensor->offset,
                 "'%s' stands as mlx-lm writes it, which also multiplies "
                 "some weights of this family and not others",
                 tensor->stored_name);
        lmq_hint(err, "convert the checkpoint that it was made from");
        return LMQ_ERR_UNSUPPORTED;
    }
    return LMQ_OK;
}

/* Matrix number i of n that one expert's part of a fused tensor consists of:
 * (rows, columns), or perhaps (columns, rows); of biases (rows). */
static enum lmq_status
take_matrix(const struct lmq_checkpoint *checkpoint,
            struct lmq_tensor *tensor, bool is_turned, uint64_t i, uint64_t n,
            struct lmq_error *err)
{
    uint64_t rows = tensor->dims[is_turned ? 1 : 0] / n;
    uint64_t dims[2] = {rows, tensor->dims[is_turned ? 0 : 1]};
    bool is_by_row = checkpoint->source.is_gate_up_by_row && n > 1;

    if (tensor->dims[is_turned ? 1 : 0] % n != 0)
        return fail_size(tensor, tensor->dims[is_turned ? 1 : 0],
                         n * checkpoint->hparams.expert_dim, err);
    if (is_turned && tensor->packing != NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "tensor '%s' cannot be taken apart: it is packed, and "
                        "its matrices are transposed",
                        tensor->stored_name);
    if (!is_turned && !is_by_row)
        return lmq_tensor_take_elements(
            tensor, i * rows * (tensor->n_dims == 2 ? dims[1] : 1), dims,
            tensor->n_dims, err);
    if (is_turned)
        tensor->view.pitch = tensor->n_cols;
    tensor->view.first += is_by_row ? i : i * rows;
    if (is_by_row) {
        tensor->view.unit = 1;
        tensor->view.stride = n;
    }
    lmq_tensor_set_dims(tensor, dims, tensor->n_dims);
    return LMQ_OK;
}

/* (experts, rows, columns): of each expert a matrix, or `n_roles` of them; or
 * their biases. */
static enum lmq_status
split_experts(struct lmq_checkpoint *checkpoint, struct lmq_tensor *whole,
              const enum lmq_role *roles, size_t n_roles,
              struct lmq_error *err)
{
    /* One below the other, all as wide as the model: the last of each has
     * inputs as rows then. */
    const bool is_below =
        checkpoint->source.has_experts_below && whole->n_dims == 2;
    const uint64_t dims[3] = {checkpoint->hparams.n_experts,
                              checkpoint->hparams.expert_dim, whole->dims[1]};
    uint32_t n_dims = whole->place.part == LMQ_PART_BIAS ? 2 : 3;
    uint32_t n = checkpoint->hparams.n_experts;
    enum lmq_status status = LMQ_OK;

    if (is_below && whole->dims[0] != dims[0] * dims[1])
        return fail_size(whole, whole->dims[0], dims[0] * dims[1], err);
    if (is_below)
        lmq_tensor_set_dims(whole, dims, 3);
    if (whole->n_dims != n_dims)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s' of all experts has %" PRIu32
                        " dimensions, expected %" PRIu32,
                        whole->stored_name, whole->n_dims, n_dims);
    if (whole->dims[0] != n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s' is of %" PRIu64 " experts, but the "
                        "configuration says %" PRIu32,
                        whole->stored_name, whole->dims[0], n);
    const uint64_t size = whole->n_elements / n;
    const bool may_turn = n_dims == 3 && (whole->packing == NULL ||
                                          !whole->packing->is_upright);
    bool is_turned;
    if (is_below)
        is_turned = may_turn && roles[0] == LMQ_ROLE_FFN_DOWN;
    else if (!tells_turn(checkpoint, whole, &is_turned))
        is_turned = may_turn && checkpoint->source.has_turned_experts;
    for (size_t i = 0; i < n * n_roles && status == LMQ_OK; i++) {
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, roles[i % n_roles],
                          (int32_t)(i / n_roles), &part, err);
        if (status == LMQ_OK)
            status = lmq_tensor_take_elements(part, i / n_roles * size,
                                              whole->dims + 1, n_dims - 1,
                                              err);
        if (status == LMQ_OK)
            status = take_matrix(checkpoint, part, is_turned, i % n_roles,
                                 n_roles, err);
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
    size_t layer = whole->place.layer < 0 ? 0 : (size_t)whole->place.layer;
    uint64_t nope =
        lmq_layer_head_dim(h, layer) - lmq_layer_rotary_dim(h, layer);
    uint64_t values = lmq_layer_value_dim(h, layer);
    uint64_t rank = lmq_layer_latents(h, layer);
    uint32_t n_heads = lmq_layer_heads(h, layer);
    const uint64_t key_dims[2] = {rank, nope}, value_dims[2] = {values, rank};
    enum lmq_status status = LMQ_OK;

    if (whole->n_dims != 2 || whole->dims[0] != n_heads * (nope + values) ||
        whole->dims[1] != rank)
        return fail_size(whole, whole->dims[0], n_heads * (nope + values),
                         err);
    for (uint32_t i = 0; i < n_heads && status == LMQ_OK; i++) {
        uint64_t first = i * (nope + values);
        struct lmq_tensor *part;
        status = add_part(checkpoint, whole, LMQ_ROLE_ATTN_K_B, (int32_t)i,
                          &part, err);
        if (status == LMQ_OK)
            status = lmq_tensor_take_rows(checkpoint, part, first, nope, err);
        if (status == LMQ_OK) {
            part->view.first *= rank; /* the rows are columns from now on */
            part->view.pitch = rank;
            lmq_tensor_set_dims(part, key_dims, 2);
            status = add_part(checkpoint, whole, LMQ_ROLE_ATTN_V_B, (int32_t)i,
                              &part, err);
        }
        if (status == LMQ_OK)
            status = lmq_tensor_take_elements(part, (first + nope) * rank,
                                              value_dims, 2, err);
    }
    return status;
}

/* (heads, rows, columns), as newer files have them; or (streams, ...). */
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
            status = lmq_tensor_take_elements(part, i * n, whole->dims + 1,
                                              whole->n_dims - 1, err);
    }
    return status;
}

/* Parts of what heads give, one below the other; or (parts, rows, columns). */
static enum lmq_status
split_parts(struct lmq_checkpoint *checkpoint, struct lmq_tensor *whole,
            struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    const uint64_t dims[3] = {h->n_out_groups, h->out_rank, whole->n_cols};
    uint64_t n_rows = dims[0] * dims[1];

    if (whole->n_dims == 2 && whole->dims[0] == n_rows)
        lmq_tensor_set_dims(whole, dims, 3);
    if (whole->n_dims != 3 || whole->dims[0] != dims[0])
        return fail_size(whole, whole->n_rows, n_rows, err);
    return split_heads(checkpoint, whole, err);
}

/* Sets *is_fused if the tensor was one, whose parts stand at the end now. */
static enum lmq_status
split_tensor(struct lmq_checkpoint *checkpoint, size_t index, bool *is_fused,
             struct lmq_error *err)
{
    struct lmq_tensor whole = checkpoint->tensors[index];
    const struct lmq_hparams *h = &checkpoint->hparams;
    size_t layer = whole.place.layer < 0 ? 0 : (size_t)whole.place.layer;
    /* Of one expert, in this order. */
    static const enum lmq_role matrices[] = {
        LMQ_ROLE_FFN_GATE, LMQ_ROLE_FFN_UP, LMQ_ROLE_FFN_DOWN};

    *is_fused = false;
    switch ((int)whole.place.role) {
    case LMQ_ROLE_ATTN_QKV:
    case LMQ_ROLE_DELTA_QKVZ:
    case LMQ_ROLE_DELTA_BA:
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_Q_B:
        return split_attention(checkpoint, &whole, is_fused, err);
    default:
        break;
    }
    *is_fused = true;
    switch ((int)whole.place.role) {
    case LMQ_ROLE_FFN_GATE_UP:
        return split_gate_up(checkpoint, &whole, LMQ_ROLE_FFN_GATE,
                             LMQ_ROLE_FFN_UP,
                             lmq_layer_hidden_dim(h, layer_of(&whole)), err);
    case LMQ_ROLE_SHARED_GATE_UP:
        return split_gate_up(checkpoint, &whole, LMQ_ROLE_SHARED_GATE,
                             LMQ_ROLE_SHARED_UP, h->shared_dim, err);
    case LMQ_ROLE_EXPERTS_GATE:
        return split_experts(checkpoint, &whole, matrices, 1, err);
    case LMQ_ROLE_EXPERTS_GATE_UP:
        return split_experts(checkpoint, &whole, matrices, 2, err);
    case LMQ_ROLE_EXPERTS_UP:
        return split_experts(checkpoint, &whole, matrices + 1, 1, err);
    case LMQ_ROLE_EXPERTS_DOWN:
        return split_experts(checkpoint, &whole, matrices + 2, 1, err);
    case LMQ_ROLE_ATTN_KV_B:
        return split_kv_b(checkpoint, &whole, err);
    case LMQ_ROLE_ATTN_K_B:
    case LMQ_ROLE_ATTN_V_B:
        if (whole.n_dims == 3 && whole.dims[0] == lmq_layer_heads(h, layer))
            return split_heads(checkpoint, &whole, err);
        break;
    case LMQ_ROLE_ATTN_OUT_A:
        if (whole.place.item < 0 && h->n_out_groups > 0)
            return split_parts(checkpoint, &whole, err);
        break;
    case LMQ_ROLE_STREAMS_IN:
    case LMQ_ROLE_STREAMS_OUT:
        if (whole.n_dims == 3 && whole.dims[0] + 1 == h->n_streams)
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

/* Parts are added at the end, so that indices stay right meanwhile; what was
 * fused is taken out at last. */
enum lmq_status
lmq_checkpoint_split(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    size_t n = checkpoint->n_tensors, kept = 0;
    enum lmq_status status = adopt_convolutions(checkpoint, err);

    adopt_turn(checkpoint);
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
        if (checkpoint->tensors[i].stored_name != NULL)
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
    checkpoint->n_tensors = kept;
    for (size_t i = 0; i < kept && status == LMQ_OK; i++)
        status = lmq_tensor_arrange(checkpoint, &checkpoint->tensors[i], err);
    if (status == LMQ_OK)
        status = lmq_tables_join(checkpoint, err);
    return status == LMQ_OK ? lmq_checkpoint_join(checkpoint, err) : status;
}
