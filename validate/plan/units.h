/*
 * units.h - what is decided about as one: a matrix of a model, or those that
 * experts or heads of a layer have in the same role.
 */
#ifndef LMQ_VALIDATE_UNITS_H
#define LMQ_VALIDATE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/model.h"

struct lmq_unit {
    char name[64]; /* a pattern of lmquant-recipe(5): "blk.2.ffn_down",
                      "blk.2.ffn_down.*" of experts */
    enum lmq_role role;
    int32_t layer;  /* -1: none */
    bool has_items; /* several, one per expert or head */
    bool is_tied;   /* the embedding, and the head that is the same */
    uint64_t n_weights;
};

struct lmq_units {
    struct lmq_unit *units; /* in the order of a container */
    size_t n, capacity;
    uint64_t n_weights; /* of all of them */
};

/* All matrices of a model but those that are never integers. `is_tied`: the
 * head is the embedding in one of the models that are looked at. */
enum lmq_status lmq_units_find(const struct lmq_checkpoint *checkpoint,
                               bool is_tied, struct lmq_units *units,
                               struct lmq_error *err);
void lmq_units_free(struct lmq_units *units);

bool lmq_unit_has(const struct lmq_unit *unit, const struct lmq_place *place);

/* The first layer that it changes: that of the embedding is 0, that of a head
 * the number of layers. */
size_t lmq_unit_first_layer(const struct lmq_unit *unit, size_t n_layers);

/* ---- In a model ---- */

/* Matrices of a model that are others for a while; they keep their biases. */
struct lmq_swaps {
    struct lmq_swap {
        struct lmq_matrix *at;
        struct lmq_matrix was;
    } *swaps;
    size_t n, capacity;
};

/* What a swap puts in place of a matrix: NULL leaves it. */
typedef const struct lmq_matrix *
lmq_substitute(void *context, const struct lmq_place *place);

/* In the matrices of a layer, the first time or after lmq_swaps_undo(). */
enum lmq_status lmq_swaps_layer(struct lmq_swaps *swaps,
                                struct lmq_model *model, size_t layer,
                                lmq_substitute *substitute, void *context,
                                struct lmq_error *err);
void lmq_swaps_undo(struct lmq_swaps *swaps);
void lmq_swaps_free(struct lmq_swaps *swaps);

/* In those that belong to no layer, for good. */
void lmq_swap_ends(struct lmq_model *view, lmq_substitute *substitute,
                   void *context);

/* The matrix of a model at a place; NULL if it has none. */
const struct lmq_matrix *lmq_matrix_at(struct lmq_model *model,
                                       const struct lmq_place *place);

#endif
