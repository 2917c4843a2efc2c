/*
 * units.c - finds what is decided about as one, and lets models compute with
 * something else in its place.
 */
#include "config.h"

#include "validate/plan/units.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

/* ---- Finding ---- */

static bool
is_decided(const struct lmq_tensor *tensor)
{
    return tensor->n_dims == 2 && tensor->place.part == LMQ_PART_WEIGHT &&
           tensor->place.role != LMQ_ROLE_OTHER &&
           lmq_dtype_is_float(tensor->dtype) &&
           !lmq_role_is_small(tensor->place.role);
}

bool
lmq_unit_has(const struct lmq_unit *unit, const struct lmq_place *place)
{
    enum lmq_role role = unit->is_tied && place->role == LMQ_ROLE_HEAD
                             ? LMQ_ROLE_EMBEDDING
                             : place->role;

    return unit->role == role && unit->layer == place->layer &&
           unit->has_items == (place->item >= 0);
}

static void
name_unit(struct lmq_unit *unit)
{
    const char *role = lmq_role_name(unit->role);

    const char *items = unit->has_items ? ".*" : "";

    if (unit->layer < 0)
        snprintf(unit->name, sizeof(unit->name), "%s%s", role, items);
    else
        snprintf(unit->name, sizeof(unit->name), "blk.%d.%s%s",
                 (int)unit->layer, role, items);
}

static enum lmq_status
add_tensor(struct lmq_units *units, const struct lmq_tensor *tensor,
           bool is_tied, struct lmq_error *err)
{
    const struct lmq_place *place = &tensor->place;
    struct lmq_unit *unit;

    /* The tensors of a layer stand together, but not those of a role. */
    for (size_t i = units->n; i-- > 0;)
        if (lmq_unit_has(&units->units[i], place)) {
            bool is_again = units->units[i].is_tied &&
                            place->role == LMQ_ROLE_HEAD;
            units->units[i].n_weights += is_again ? 0 : tensor->n_elements;
            units->n_weights += is_again ? 0 : tensor->n_elements;
            return LMQ_OK;
        }
    if (lmq_mem_grow(&units->units, &units->capacity, units->n + 1,
                     sizeof(*units->units)) != 0)
        return lmq_fail_nomem(err);
    unit = &units->units[units->n++];
    *unit = (struct lmq_unit){
        .role = place->role,
        .layer = place->layer,
        .has_items = place->item >= 0,
        .is_tied = is_tied && place->role == LMQ_ROLE_EMBEDDING,
        .n_weights = tensor->n_elements,
    };
    units->n_weights += tensor->n_elements;
    name_unit(unit);
    return LMQ_OK;
}

static int
compare_units(const void *a, const void *b)
{
    const struct lmq_unit *x = a, *y = b;
    struct lmq_place at_x = {x->role, LMQ_PART_WEIGHT, x->layer,
                             x->has_items ? 0 : -1};
    struct lmq_place at_y = {y->role, LMQ_PART_WEIGHT, y->layer,
                             y->has_items ? 0 : -1};

    return lmq_place_compare(&at_x, &at_y);
}

enum lmq_status
lmq_units_find(const struct lmq_checkpoint *checkpoint, bool is_tied,
               struct lmq_units *units, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    *units = (struct lmq_units){0};
    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        if (is_decided(&checkpoint->tensors[i]) &&
            checkpoint->tensors[i].place.role != LMQ_ROLE_HEAD)
            status = add_tensor(units, &checkpoint->tensors[i], is_tied, err);
    /* Behind the embedding, which may be the same. */
    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        if (is_decided(&checkpoint->tensors[i]) &&
            checkpoint->tensors[i].place.role == LMQ_ROLE_HEAD)
            status = add_tensor(units, &checkpoint->tensors[i], is_tied, err);
    if (units->n > 0)
        qsort(units->units, units->n, sizeof(*units->units), compare_units);
    return status;
}

void
lmq_units_free(struct lmq_units *units)
{
    free(units->units);
    *units = (struct lmq_units){0};
}

size_t
lmq_unit_first_layer(const struct lmq_unit *unit, size_t n_layers)
{
    if (unit->layer >= 0)
        return (size_t)unit->layer;
    return unit->role == LMQ_ROLE_HEAD || unit->role == LMQ_ROLE_STREAMS_OUT
               ? n_layers
               : 0;
}

/* ---- Swaps ---- */

enum lmq_status
lmq_swaps_layer(struct lmq_swaps *swaps, struct lmq_model *model,
                size_t layer, lmq_substitute *substitute, void *context,
                struct lmq_error *err)
{
    const struct lmq_layer *l = &model->layers[layer];

    swaps->n = 0;
    for (size_t i = 0; i < l->n_matrices; i++) {
        const struct lmq_matrix *with =
            substitute(context, &l->matrices[i]->tensor->place);
        if (with == NULL)
            continue;
        if (lmq_mem_grow(&swaps->swaps, &swaps->capacity, swaps->n + 1,
                         sizeof(*swaps->swaps)) != 0)
            return lmq_fail_nomem(err);
        swaps->swaps[swaps->n++] =
            (struct lmq_swap){l->matrices[i], *l->matrices[i]};
        float *bias = l->matrices[i]->bias;
        *l->matrices[i] = *with;
        l->matrices[i]->bias = bias;
    }
    return LMQ_OK;
}

void
lmq_swaps_undo(struct lmq_swaps *swaps)
{
    while (swaps->n > 0) {
        swaps->n--;
        *swaps->swaps[swaps->n].at = swaps->swaps[swaps->n].was;
    }
}

void
lmq_swaps_free(struct lmq_swaps *swaps)
{
    free(swaps->swaps);
    *swaps = (struct lmq_swaps){0};
}

/* Roles of no layer, and where their matrices are. */
static const struct {
    enum lmq_role role;
    size_t offset;
} ends[] = {
    {LMQ_ROLE_EMBEDDING, offsetof(struct lmq_model, embedding)},
    {LMQ_ROLE_HEAD, offsetof(struct lmq_model, head)},
    {LMQ_ROLE_INPUTS, offsetof(struct lmq_model, inputs)},
    {LMQ_ROLE_INPUTS_PROJ, offsetof(struct lmq_model, inputs_proj)},
    {LMQ_ROLE_STREAMS_IN, offsetof(struct lmq_model, streams_in)},
    {LMQ_ROLE_STREAMS_OUT, offsetof(struct lmq_model, streams_out)},
    {LMQ_ROLE_GATED_OUT_DOWN, offsetof(struct lmq_model, gated.down)},
    {LMQ_ROLE_GATED_OUT_UP, offsetof(struct lmq_model, gated.up)},
};

#define N_ENDS (sizeof(ends) / sizeof(ends[0]))

/* The first of as many as count_ends() says. */
static struct lmq_matrix *
end_of(struct lmq_model *model, size_t index)
{
    return (struct lmq_matrix *)(void *)((char *)model + ends[index].offset);
}

static size_t
count_ends(const struct lmq_model *model, size_t index)
{
    return lmq_role_is_of_streams(ends[index].role)
               ? lmq_guessed_streams(&model->hparams)
               : 1;
}

static void
swap_end(struct lmq_matrix *matrix, const struct lmq_place *place,
         lmq_substitute *substitute, void *context)
{
    const struct lmq_matrix *with =
        matrix->tensor == NULL ? NULL : substitute(context, place);
    float *bias = matrix->bias;

    if (with == NULL)
        return;
    *matrix = *with;
    matrix->bias = bias;
}

void
lmq_swap_ends(struct lmq_model *view, lmq_substitute *substitute,
              void *context)
{
    for (size_t i = 0; i < N_ENDS; i++)
        for (size_t item = 0; item < count_ends(view, i); item++) {
            bool has_items = lmq_role_is_of_streams(ends[i].role);
            const struct lmq_place place = {ends[i].role, LMQ_PART_WEIGHT, -1,
                                            has_items ? (int32_t)item : -1};
            swap_end(end_of(view, i) + item, &place, substitute, context);
        }
}

const struct lmq_matrix *
lmq_matrix_at(struct lmq_model *model, const struct lmq_place *place)
{
    size_t item = place->item < 0 ? 0 : (size_t)place->item;

    for (size_t i = 0; place->layer < 0 && i < N_ENDS; i++)
        if (ends[i].role == place->role && item < count_ends(model, i)) {
            const struct lmq_matrix *end = end_of(model, i) + item;
            return end->tensor == NULL ? NULL : end;
        }
    if (place->layer < 0)
        return NULL;
    const struct lmq_layer *layer = &model->layers[place->layer];
    for (size_t i = 0; i < layer->n_matrices; i++)
        if (lmq_place_compare(&layer->matrices[i]->tensor->place, place) == 0)
            return layer->matrices[i];
    return NULL;
}
