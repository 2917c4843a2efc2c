/*
 * model.c - finds the place in the model for each tensor of a checkpoint.
 */
#include "config.h"

#include "runtime/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary.h"
#include "base/error.h"
#include "base/mem.h"
#include "formats/packed/packed.h"
#include "runtime/pools/table.h"

/* ---- Loading ---- */

/* n zeros that the model frees; NULL without memory. */
static float *
new_vector(struct lmq_model *model, size_t n)
{
    if (lmq_mem_grow(&model->vectors, &model->vectors_capacity,
                     model->n_vectors + 1, sizeof(*model->vectors)) != 0)
        return NULL;
    float *vector = lmq_mem_aligned(n, sizeof(*vector));
    if (vector != NULL)
        model->vectors[model->n_vectors++] = vector;
    return vector;
}

static enum lmq_status
read_vector(struct lmq_model *model, const struct lmq_tensor *tensor,
            float *vector, struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    enum lmq_status status =
        lmq_tensor_verify(model->checkpoint, tensor, err);

    if (status == LMQ_OK)
        status = lmq_checkpoint_read(model->checkpoint, tensor, 0,
                                     (size_t)tensor->n_elements, vector,
                                     &scratch, err);

    lmq_scratch_free(&scratch);
    return status;
}

static enum lmq_status
load_vector(struct lmq_model *model, const struct lmq_tensor *tensor,
            float **vector, struct lmq_error *err)
{
    float *copy = new_vector(model, (size_t)tensor->n_elements);

    if (copy == NULL)
        return lmq_fail_nomem(err);
    *vector = copy;
    return read_vector(model, tensor, copy, err);
}

/* Of A = (value heads, key dim) -exp(A), in the order of the states. */
static enum lmq_status
load_rates(struct lmq_model *model, const struct lmq_tensor *tensor,
           float **rates, struct lmq_error *err)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t keys = h->delta_key_dim, n = (size_t)tensor->n_elements;
    enum lmq_status status = load_vector(model, tensor, rates, err);
    float *a = lmq_mem_aligned(n, sizeof(*a));
    struct lmq_state_piece piece;

    if (status == LMQ_OK && a == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK) {
        memcpy(a, *rates, n * sizeof(*a));
        lmq_kernels_c.exp(a, n);
        lmq_kernels_c.scale(a, n, -1);
        for (size_t i = 0; lmq_state_piece_at(h, i, &piece); i++) {
            float *to = *rates + piece.first * keys;
            for (size_t key = 0; key < keys; key++)
                for (size_t j = 0; j < piece.size; j++)
                    *to++ = a[(piece.first + j) * keys + key];
        }
    }
    lmq_mem_free(a);
    return status;
}

/* -8 softplus(A) of each value. */
static enum lmq_status
load_value_rates(struct lmq_model *model, const struct lmq_tensor *tensor,
                 float **rates, struct lmq_error *err)
{
    enum lmq_status status = load_vector(model, tensor, rates, err);

    for (float *a = *rates;
         status == LMQ_OK && a < *rates + tensor->n_elements; a++)
        *a = isfinite(*a) ? (float)(-8 * lmq_softplus((double)*a)) : NAN;
    return status;
}

/* One head's part of a vector for all of them. */
static enum lmq_status
load_head_part(struct lmq_model *model, const struct lmq_tensor *tensor,
               float **vector, struct lmq_error *err)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t n = h->head_dim, item = (size_t)tensor->place.item;
    size_t n_heads = tensor->place.role == LMQ_ROLE_ATTN_Q_NORM
                         ? h->n_heads
                         : h->n_kv_heads;

    if (item >= n_heads || tensor->n_elements != n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s' belongs to none of %zu heads of %zu",
                        tensor->stored_name, n_heads, n);
    if (*vector == NULL)
        *vector = new_vector(model, n_heads * n);
    if (*vector == NULL)
        return lmq_fail_nomem(err);
    return read_vector(model, tensor, *vector + item * n, err);
}

/* Also for what is in no layer (-1). */
static struct lmq_layer *
layer_of(struct lmq_model *model, int32_t layer)
{
    return &model->layers[layer < 0 ? model->hparams.n_layers
                                    : (uint32_t)layer];
}

static enum lmq_status
open_matrix(struct lmq_model *model, const struct lmq_tensor *tensor,
            struct lmq_matrix *matrix, struct lmq_error *err)
{
    int32_t layer = tensor->place.layer;
    enum lmq_status status = lmq_matrix_open(model, tensor, matrix, err);

    if (status != LMQ_OK)
        return status;
    struct lmq_layer *owner = layer_of(model, layer);
    if (lmq_mem_grow(&owner->matrices, &owner->matrices_capacity,
                     owner->n_matrices + 1, sizeof(struct lmq_matrix *)) != 0) {
        lmq_matrix_drop(matrix);
        return lmq_fail_nomem(err);
    }
    owner->matrices[owner->n_matrices++] = matrix;
    return LMQ_OK;
}

static enum lmq_status
load_tensor(struct lmq_model *model, const struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    const struct lmq_place *place = &tensor->place;
    enum lmq_slot_kind kind = lmq_slot_kind(tensor->place.role);
    void *slot = kind == LMQ_SLOT_NONE ? NULL : lmq_slot_find(model, place);
    bool is_bias = place->part == LMQ_PART_BIAS;

    if (slot == NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "there is no use for the tensor '%s' in this model",
                        tensor->stored_name);
    if (lmq_tensor_is_head(tensor) && lmq_checkpoint_is_tied(model->checkpoint))
        return LMQ_OK;
    bool is_decay = place->role == LMQ_ROLE_DELTA_DECAY;
    if (is_decay && lmq_is_selective(&model->hparams))
        return load_rates(model, tensor, slot, err);
    if (is_decay && lmq_is_lru(&model->hparams))
        return load_value_rates(model, tensor, slot, err);
    if (kind == LMQ_SLOT_VECTOR) {
        enum lmq_status status = load_vector(model, tensor, slot, err);
        return status != LMQ_OK || place->role != LMQ_ROLE_TOKEN_EXPERTS
                   ? status
                   : lmq_table_check(&model->hparams, tensor, 0,
                                     *(float **)slot,
                                     (size_t)tensor->n_elements, err);
    }
    if (kind == LMQ_SLOT_GAIN ||
        lmq_is_gate_of_values(&model->hparams, place->role)) {
        struct lmq_gain *gain = slot;
        float **vector = is_bias ? &gain->bias : &gain->weight;
        return place->item < 0 ? load_vector(model, tensor, vector, err)
                               : load_head_part(model, tensor, vector, err);
    }
    struct lmq_matrix *matrix = slot;
    return is_bias ? load_vector(model, tensor, &matrix->bias, err)
                   : open_matrix(model, tensor, matrix, err);
}

static bool
is_vector(const struct lmq_tensor *tensor)
{
    enum lmq_slot_kind kind = lmq_slot_kind(tensor->place.role);

    return kind == LMQ_SLOT_GAIN || kind == LMQ_SLOT_VECTOR ||
           tensor->place.part == LMQ_PART_BIAS;
}

static enum lmq_status
load_tensors(struct lmq_model *model, bool are_vectors, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = model->checkpoint;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        if (is_vector(&checkpoint->tensors[i]) == are_vectors)
            status = load_tensor(model, &checkpoint->tensors[i], err);
    return status;
}

static void
tie_head(struct lmq_model *model)
{
    float *bias = model->head.bias;

    if (model->head.tensor != NULL)
        return;
    model->head = model->embedding;
    model->head.bias = bias;
}

/* ---- One layer at a time ---- */

enum lmq_status
lmq_model_load_layer(struct lmq_model *model, size_t layer,
                     struct lmq_error *err)
{
    const struct lmq_layer *l = &model->layers[layer];
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < l->n_matrices && status == LMQ_OK; i++)
        status = lmq_matrix_load(model, l->matrices[i], err);
    return status;
}

void
lmq_model_drop_layer(struct lmq_model *model, size_t layer)
{
    const struct lmq_layer *l = &model->layers[layer];

    for (size_t i = 0; i < l->n_matrices; i++) {
        if (l->matrices[i]->is_copied)
            lmq_matrix_drop(l->matrices[i]);
        lmq_matrix_forget(model, l->matrices[i]);
    }
}

/* In the order of the file, which is the fastest. */
static void
expect_layer(const struct lmq_model *model, size_t layer,
             struct lmq_expected *expected)
{
    const struct lmq_layer *l = &model->layers[layer];

    for (size_t i = 0; i < l->n_matrices; i++)
        if (lmq_matrix_share(model, l->matrices[i]) >= 1)
            lmq_matrix_expect(model, l->matrices[i], expected);
}

void
lmq_model_expect_layer(const struct lmq_model *model, size_t layer)
{
    struct lmq_expected expected = {0};

    expect_layer(model, layer, &expected);
    lmq_expected_read(&expected);
}

/* What each token needs. */
static void
expect_all(const struct lmq_model *model)
{
    struct lmq_expected expected = {0};

    if (model->head.tensor == NULL) /* tied */
        lmq_matrix_expect(model, &model->embedding, &expected);
    for (uint32_t i = 0; i < lmq_guessed_streams(&model->hparams); i++)
        lmq_matrix_expect(model, &model->streams_in[i], &expected);
    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        expect_layer(model, i, &expected);
    for (uint32_t i = 0; i < lmq_guessed_streams(&model->hparams); i++)
        lmq_matrix_expect(model, &model->streams_out[i], &expected);
    if (lmq_has_gated_streams(&model->hparams)) {
        lmq_matrix_expect(model, &model->gated.down, &expected);
        lmq_matrix_expect(model, &model->gated.up, &expected);
    }
    lmq_matrix_expect(model, &model->head, &expected);
    lmq_expected_read(&expected);
}

enum lmq_status
lmq_model_verify(struct lmq_model *model, int32_t layer, struct lmq_error *err)
{
    const struct lmq_layer *l = layer_of(model, layer);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < l->n_matrices && status == LMQ_OK; i++)
        status = lmq_matrix_verify(model, l->matrices[i], err);
    return status;
}

uint64_t
lmq_model_layer_bytes(const struct lmq_model *model, size_t layer)
{
    const struct lmq_layer *l = &model->layers[layer];
    uint64_t n = 0;

    for (size_t i = 0; i < l->n_matrices; i++)
        n += lmq_matrix_bytes(l->matrices[i]);
    return n;
}

/* ---- Opening ---- */

const struct lmq_name lmq_activations_names[] = {
    {"q8", LMQ_ACTIVATIONS_Q8},
    {"q16", LMQ_ACTIVATIONS_Q16},
    {"f32", LMQ_ACTIVATIONS_F32},
    {NULL, 0},
};

/* A recommendation that is not understood is none. */
static const char *
recommended_activations(const struct lmq_checkpoint *checkpoint)
{
    json_t *statements = lmq_checkpoint_statements(checkpoint);
    const char *text = json_string_value(json_object_get(
        json_object_get(statements, "recommended"), "activations"));
    const struct lmq_name *known = lmq_names_find(lmq_activations_names, text);

    json_decref(statements);
    return known == NULL ? "q16" : known->name;
}

static enum lmq_status
refuse(const struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;

    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "cannot be run: %s is not understood",
             h->unsupported[0] == '\0' ? "the model" : h->unsupported);
    lmq_error_in(err, checkpoint->path);
    return LMQ_ERR_UNSUPPORTED;
}

/* What no reader brings together, and the forward pass does not know. */
static enum lmq_status
check_combination(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->kv_lora_rank > 0 &&
        ((h->qk_norm != LMQ_QK_NORM_NONE &&
          h->qk_norm != LMQ_QK_NORM_TURNING) ||
         h->has_value_norm ||
         h->qkv_clip > 0))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "cannot be run: latent attention with norms or limits "
                        "of queries, keys and values is not understood");
    return LMQ_OK;
}

/* Room for what layers have many of. */
static bool
make_layers(struct lmq_model *model)
{
    const struct lmq_hparams *h = &model->hparams;

    model->layers = calloc((size_t)h->n_layers + 1, sizeof(*model->layers));
    for (uint32_t i = 0; model->layers != NULL && i < h->n_layers; i++) {
        struct lmq_attention_part *attention = &model->layers[i].attention;
        struct lmq_feed_part *feed = &model->layers[i].feed;
        if (h->kv_lora_rank > 0 && lmq_layer_has_keys(h, i)) {
            size_t n_heads = lmq_layer_heads(h, i);
            attention->k_b = calloc(n_heads, sizeof(*attention->k_b));
            attention->v_b = calloc(n_heads, sizeof(*attention->v_b));
            if (attention->k_b == NULL || attention->v_b == NULL)
                return false;
        }
        if (h->n_out_groups > 0 && lmq_layer_has_attention(h, i)) {
            attention->out_a =
                calloc(h->n_out_groups, sizeof(*attention->out_a));
            if (attention->out_a == NULL)
                return false;
        }
        if (lmq_layer_has_experts(h, i)) {
            feed->experts = calloc(h->n_experts, sizeof(*feed->experts));
            if (feed->experts == NULL)
                return false;
        }
    }
    return model->layers != NULL;
}

/* ---- Copies ---- */

/* Memory that the system does not have is given all the same, and taken back
 * by killing somebody: so it is asked before. */
static enum lmq_status
check_memory(const struct lmq_model *model, struct lmq_error *err)
{
    double copies = 0;
    double memory = lmq_mem_limit();

    for (uint32_t i = 0; i <= model->hparams.n_layers; i++)
        for (size_t j = 0; j < model->layers[i].n_matrices; j++)
            if (model->layers[i].matrices[j]->is_copied)
                copies +=
                    (double)lmq_matrix_bytes(model->layers[i].matrices[j]);
    if (copies <= memory)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_NOMEM, 0,
             "its weights cannot be used as they are stored, and %.1f GB for "
             "a copy are more than the %.1f GB that there are",
             1e-9 * copies, 1e-9 * memory);
    lmq_hint(err, "convert it; a .lmq is used where it lies in the file");
    return LMQ_ERR_NOMEM;
}

/* Whether all layers will be read for each token, and stay in memory. */
static bool
is_resident(const struct lmq_model *model)
{
    const struct lmq_checkpoint *checkpoint = model->checkpoint;
    double size = 0;

    for (size_t i = 0; i < checkpoint->n_files; i++)
        size += (double)lmq_input_size(checkpoint->files[i]);
    return !model->is_lazy && model->hparams.n_experts == 0 &&
           size <= lmq_mem_available();
}

/* Whether what is read before it is used is still there then: the largest of
 * the layers and of the head is small beside memory. */
static bool
has_room_ahead(const struct lmq_model *model)
{
    double most = (double)lmq_matrix_bytes(&model->head);

    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        const struct lmq_layer *layer = &model->layers[i];
        double size = 0;
        for (size_t j = 0; j < layer->n_matrices; j++)
            if (lmq_matrix_share(model, layer->matrices[j]) >= 1)
                size += (double)lmq_matrix_bytes(layer->matrices[j]);
        most = fmax(most, size);
    }
    return 4 * most <= lmq_mem_limit();
}

/* What has to be copied is; of layers only if they stay. */
static enum lmq_status
load_copies(struct lmq_model *model, struct lmq_error *err)
{
    enum lmq_status status =
        model->is_lazy ? LMQ_OK : check_memory(model, err);

    if (status == LMQ_OK)
        status = lmq_model_load_layer(model, model->hparams.n_layers, err);
    for (uint32_t i = 0; i < model->hparams.n_layers && status == LMQ_OK; i++)
        if (!model->is_lazy)
            status = lmq_model_load_layer(model, i, err);
    return status;
}

static enum lmq_status
open_model(struct lmq_checkpoint *checkpoint, bool is_lazy,
           enum lmq_emulation emulation, struct lmq_model **out,
           struct lmq_error *err)
{
    *out = NULL;
    if (lmq_checkpoint_need_weights(checkpoint, err) != LMQ_OK)
        return LMQ_ERR_UNSUPPORTED;
    if (!checkpoint->has_model || checkpoint->hparams.unsupported[0] != '\0')
        return refuse(checkpoint, err);
    struct lmq_model *model = calloc(1, sizeof(*model));
    if (model == NULL)
        return lmq_fail_nomem(err);
    model->checkpoint = checkpoint;
    model->is_lazy = is_lazy;
    model->emulation = emulation;
    model->is_int8 = emulation != LMQ_EMULATE_NONE;
    model->activations = recommended_activations(checkpoint);
    model->hparams = checkpoint->hparams;
    model->is_resident = is_resident(model);
    enum lmq_status status = check_combination(&model->hparams, err);
    if (status == LMQ_OK && !make_layers(model))
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = load_tensors(model, false, err);
    if (status == LMQ_OK && model->is_resident)
        expect_all(model);
    if (status == LMQ_OK) /* before, they would leave small pages around them */
        status = load_tensors(model, true, err);
    if (status == LMQ_OK)
        status = load_copies(model, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, checkpoint->path);
        lmq_model_close(model);
        return status;
    }
    tie_head(model);
    model->reads_ahead = has_room_ahead(model);
    *out = model;
    return LMQ_OK;
}

enum lmq_status
lmq_model_open(struct lmq_checkpoint *checkpoint, struct lmq_model **model,
               struct lmq_error *err)
{
    return open_model(checkpoint, false, LMQ_EMULATE_NONE, model, err);
}

enum lmq_status
lmq_model_open_lazily(struct lmq_checkpoint *checkpoint,
                      struct lmq_model **model, struct lmq_error *err)
{
    return open_model(checkpoint, true, LMQ_EMULATE_NONE, model, err);
}

enum lmq_status
lmq_model_open_emulated(struct lmq_checkpoint *checkpoint,
                        enum lmq_emulation emulation,
                        struct lmq_model **model, struct lmq_error *err)
{
    return open_model(checkpoint, true, emulation, model, err);
}

void
lmq_model_close(struct lmq_model *model)
{
    if (model == NULL)
        return;
    for (uint32_t i = 0; model->layers && i <= model->hparams.n_layers; i++) {
        struct lmq_layer *layer = &model->layers[i];
        for (size_t j = 0; j < layer->n_matrices; j++)
            lmq_matrix_drop(layer->matrices[j]);
        free((void *)layer->matrices);
        free(layer->attention.k_b);
        free(layer->attention.v_b);
        free(layer->attention.out_a);
        free(layer->feed.experts);
    }
    for (size_t i = 0; i < model->n_vectors; i++)
        lmq_mem_free(model->vectors[i]);
    free(model->vectors);
    free(model->layers);
    free(model);
}

size_t
lmq_model_vocabulary(const struct lmq_model *model)
{
    return model->hparams.vocab_size;
}

size_t
lmq_model_context(const struct lmq_model *model)
{
    return model->hparams.context;
}
