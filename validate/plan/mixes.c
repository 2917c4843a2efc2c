/*
 * mixes.c - lets mixes walk in lock-step, as many at a time as memory has room
 * for.
 *
 * Matrices that are no model's are made when a side comes to their layer, and
 * gone behind it; those of no layer stay for the walk.
 */
#include "config.h"

#include "validate/plan/mixes.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

/* Mixes that walk at a time. */
#define MIXES_MOST 64

const struct lmq_encoding_choice lmq_as_reference = {.is_taken = true};

struct variants {
    struct made {
        const struct lmq_tensor *tensor;
        const struct lmq_encoding_choice *choice;
        struct lmq_matrix matrix;
    } *list;
    size_t n, capacity;
};

/* Some of the mixes on their way. */
struct walk {
    const struct lmq_mixing *mixing;
    const struct lmq_mix *mixes; /* of the sides from n_first on */
    size_t n_first;              /* sides before them */
    struct lmq_workers workers;
    struct variants ends, layer, *into;
    struct lmq_swaps swaps;
    size_t side;
    enum lmq_status status; /* of what cannot tell its own */
    struct lmq_error *err;
};

/* ---- Other matrices ---- */

static const struct lmq_encoding_choice *
find_choice(const struct walk *walk, const struct lmq_place *place)
{
    const struct lmq_units *units = walk->mixing->units;
    const struct lmq_mix *mix = &walk->mixes[walk->side - walk->n_first];

    for (size_t i = 0; i < units->n; i++)
        if (mix->choices[i] != NULL && lmq_unit_has(&units->units[i], place))
            return mix->choices[i];
    return NULL;
}

/* Mixes share what stays for the walk, and a tied head the embedding's. */
static const struct lmq_matrix *
make_variant(struct walk *walk, const struct lmq_tensor *tensor,
             const struct lmq_encoding_choice *choice)
{
    struct variants *into = walk->into;

    for (size_t i = 0; i < into->n; i++)
        if (into->list[i].tensor == tensor && into->list[i].choice == choice)
            return &into->list[i].matrix;
    if (lmq_mem_grow(&into->list, &into->capacity, into->n + 1,
                     sizeof(*into->list)) != 0) {
        walk->status = lmq_fail_nomem(walk->err);
        return NULL;
    }
    struct made *made = &into->list[into->n];
    *made = (struct made){.tensor = tensor, .choice = choice};
    walk->status = lmq_variant_make(walk->mixing->job->reference_file, tensor,
                                    choice, &walk->workers, &made->matrix,
                                    walk->err);
    into->n += walk->status == LMQ_OK;
    return walk->status == LMQ_OK ? &made->matrix : NULL;
}

/* For lmq_substitute. */
static const struct lmq_matrix *
substitute(void *context, const struct lmq_place *place)
{
    struct walk *walk = context;
    struct lmq_model *reference = walk->mixing->job->models[0];
    const struct lmq_encoding_choice *choice =
        walk->status == LMQ_OK ? find_choice(walk, place) : NULL;
    const struct lmq_matrix *own =
        choice == NULL ? NULL : lmq_matrix_at(reference, place);

    if (own == NULL || choice == &lmq_as_reference)
        return own;
    return make_variant(walk, own->tensor, choice);
}

static void
drop(struct variants *variants)
{
    while (variants->n > 0)
        lmq_matrix_drop(&variants->list[--variants->n].matrix);
}

/* ---- For struct lmq_owner ---- */

static void
change_ends(void *context, size_t side, struct lmq_model *view)
{
    struct walk *walk = context;

    if (side < walk->n_first)
        return;
    walk->side = side;
    walk->into = &walk->ends;
    lmq_swap_ends(view, substitute, walk);
}

static enum lmq_status
enter(void *context, size_t side, size_t layer, struct lmq_model *model,
      struct lmq_error *err)
{
    struct walk *walk = context;

    if (side < walk->n_first || walk->status != LMQ_OK)
        return walk->status;
    walk->side = side;
    walk->into = &walk->layer;
    enum lmq_status status = lmq_swaps_layer(&walk->swaps, model, layer,
                                             substitute, walk, err);
    return status == LMQ_OK ? walk->status : status;
}

static void
leave(void *context, size_t side)
{
    struct walk *walk = context;

    (void)side;
    lmq_swaps_undo(&walk->swaps);
    drop(&walk->layer);
}

/* ---- The walk ---- */

static size_t
first_layer(const struct walk *walk, const struct lmq_mix *mix)
{
    const struct lmq_units *units = walk->mixing->units;
    size_t n_layers = walk->mixing->job->models[0]->hparams.n_layers;
    size_t first = n_layers;

    for (size_t i = 0; i < units->n; i++)
        if (mix->choices[i] != NULL)
            first = lmq_size_min(
                first, lmq_unit_first_layer(&units->units[i], n_layers));
    return first;
}

static enum lmq_status
walk_some(struct walk *walk, struct lmq_side *sides, size_t n,
          struct lmq_drift *drifts, struct lmq_error *err)
{
    const struct lmq_mixing *mixing = walk->mixing;
    const struct lmq_owner owner = {walk, change_ends, enter, leave};
    bool is_own = mixing->base.model > 0;

    walk->n_first = 1 + (size_t)is_own;
    walk->err = err;
    sides[0] = lmq_side_reference();
    if (is_own)
        sides[1] = mixing->base;
    for (size_t i = 0; i < n; i++) {
        struct lmq_side *side = &sides[walk->n_first + i];
        *side = mixing->base;
        side->joins = first_layer(walk, &walk->mixes[i]);
        side->base = is_own;
        if (walk->mixes[i].kv_type != NULL) {
            side->kv_type = *walk->mixes[i].kv_type;
            side->joins = 0;
        }
    }
    mixing->job->owner = &owner;
    enum lmq_status status = lmq_job_gather(
        mixing->job, sides, walk->n_first + n, 0, mixing->n_windows,
        mixing->stage, drifts, NULL, err);
    mixing->job->owner = NULL;
    drop(&walk->ends);
    return status == LMQ_OK ? walk->status : status;
}

/* How many mixes there is memory for, half of it, beside what they start
 * from. */
static size_t
count_fitting(const struct lmq_mixing *mixing)
{
    const struct lmq_job *job = mixing->job;
    struct lmq_lockstep lockstep = {.models = job->models,
                                    .n_models = job->n_candidates + 1,
                                    .corpus = &job->corpus,
                                    .n_windows = mixing->n_windows,
                                    .memory = job->memory,
                                    .threads = job->session.threads,
                                    .has_integers = true};
    size_t n = lmq_size_min(MIXES_MOST, mixing->n_mixes);

    for (; n > 1; n = (n + 1) / 2) {
        lockstep.n_sides = n + 2;
        if (lmq_lockstep_batch(&lockstep, NULL) > 0)
            break;
    }
    return n;
}

static enum lmq_status
walk_all(struct walk *walk, struct lmq_side *sides, struct lmq_drift *found,
         size_t at_once, struct lmq_drift *drifts, struct lmq_error *err)
{
    const struct lmq_mixing *mixing = walk->mixing;
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0; at < mixing->n_mixes && status == LMQ_OK;
         at += at_once) {
        size_t n = lmq_size_min(at_once, mixing->n_mixes - at);
        walk->mixes = mixing->mixes + at;
        for (size_t i = 0; i < at_once + 2; i++)
            found[i] = (struct lmq_drift){0};
        status = walk_some(walk, sides, n, found, err);
        for (size_t i = 0; i < walk->n_first; i++)
            lmq_drift_free(&found[i]);
        for (size_t i = 0; i < n; i++)
            drifts[at + i] = found[walk->n_first + i];
    }
    return status;
}

enum lmq_status
lmq_mixes_measure(const struct lmq_mixing *mixing, struct lmq_drift *drifts,
                  struct lmq_error *err)
{
    struct walk walk = {.mixing = mixing};
    size_t at_once = count_fitting(mixing);
    struct lmq_side *sides = calloc(at_once + 2, sizeof(*sides));
    struct lmq_drift *found = calloc(at_once + 2, sizeof(*found));
    enum lmq_status status =
        sides == NULL || found == NULL
            ? lmq_fail_nomem(err)
            : lmq_variant_workers(&walk.workers, mixing->job->session.threads,
                                  err);

    if (status == LMQ_OK)
        status = walk_all(&walk, sides, found, at_once, drifts, err);
    lmq_workers_close(&walk.workers);
    lmq_swaps_free(&walk.swaps);
    free(walk.ends.list);
    free(walk.layer.list);
    free(found);
    free(sides);
    return status;
}
