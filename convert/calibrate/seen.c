/*
 * seen.c - rows of many products, one after the other.
 */
#include "config.h"

#include "convert/calibrate/seen.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"

/* Each token goes to some of the experts only. */
static bool
is_of_expert(const struct lmq_cal_input *input)
{
    return input->number >= 0 && (input->role == LMQ_ROLE_FFN_UP ||
                                  input->role == LMQ_ROLE_FFN_DOWN);
}

static bool
are_alike(const struct lmq_cal_input *a, const struct lmq_cal_input *b)
{
    return a->role == b->role && a->n_cols == b->n_cols &&
           a->rotated == b->rotated &&
           is_of_expert(a) == is_of_expert(b);
}

/* Floats that a token leaves at most in input `i` and all before it that are of
 * its kind: what is new with it. */
static size_t
count_floats(const struct lmq_cal_layer *layer, size_t i)
{
    const struct lmq_cal_input *input = &layer->inputs[i];
    size_t n_before = 0;

    if (!is_of_expert(input))
        return input->n_cols;
    for (size_t j = 0; j < i; j++)
        n_before += are_alike(input, &layer->inputs[j]);
    return n_before < layer->calibrator->model->hparams.n_experts_used
               ? input->n_cols
               : 0;
}

static size_t
count_all_floats(const struct lmq_cal_layer *layer)
{
    size_t n = 0;

    for (size_t i = 0; i < layer->n_inputs; i++)
        n += count_floats(layer, i);
    return n;
}

double
lmq_seen_bytes(const struct lmq_cal_layer *layer, size_t window)
{
    return (double)window *
           ((double)count_all_floats(layer) * sizeof(float) +
            (double)layer->n_inputs * sizeof(struct lmq_seen_run));
}

enum lmq_status
lmq_seen_init(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
              size_t window, size_t n_members, struct lmq_error *err)
{
    *seen = (struct lmq_seen){.n_members = n_members};
    if (!lmq_size_mul(count_all_floats(layer), window, &seen->x_room) ||
        !lmq_size_mul(layer->n_inputs, window, &seen->runs_room))
        return lmq_fail_nomem(err);
    seen->x = lmq_mem_aligned(seen->x_room + 1, sizeof(float));
    seen->runs = calloc(seen->runs_room + 1, sizeof(*seen->runs));
    seen->cursors = calloc(n_members, sizeof(*seen->cursors));
    return seen->x != NULL && seen->runs != NULL && seen->cursors != NULL
               ? LMQ_OK
               : lmq_fail_nomem(err);
}

void
lmq_seen_free(struct lmq_seen *seen)
{
    lmq_mem_free(seen->x);
    free(seen->runs);
    free(seen->cursors);
    *seen = (struct lmq_seen){0};
}

void
lmq_seen_clear(struct lmq_seen *seen)
{
    memset(seen->cursors, 0, seen->n_members * sizeof(*seen->cursors));
}

void
lmq_seen_add(struct lmq_seen *seen, const struct lmq_member *member,
             size_t input, const struct lmq_operand *operand)
{
    struct lmq_seen_cursor *cursor = &seen->cursors[member->number];
    size_t n_cols = operand->n_cols, from, to;

    if (operand->n == 0)
        return;
    assert(cursor->n_runs < seen->runs_room &&
           cursor->used + operand->n * n_cols <= seen->x_room);
    if (member->number == 0)
        seen->runs[cursor->n_runs] =
            (struct lmq_seen_run){input, operand->n, cursor->used};
    lmq_member_share(member, operand->n, &from, &to);
    for (size_t i = from; i < to; i++)
        memcpy(seen->x + cursor->used + i * n_cols,
               operand->x + i * operand->stride, n_cols * sizeof(float));
    cursor->used += operand->n * n_cols;
    cursor->n_runs++;
}

enum lmq_status
lmq_seen_share(struct lmq_seen *seen, const struct lmq_peers *peers,
               unsigned from, struct lmq_error *err)
{
    struct lmq_seen_cursor *cursor = &seen->cursors[0];
    enum lmq_status status =
        lmq_peers_share(peers, from, cursor, sizeof(*cursor), err);

    if (status == LMQ_OK)
        status = lmq_peers_share(peers, from, seen->runs,
                                 cursor->n_runs * sizeof(*seen->runs), err);
    return status == LMQ_OK
               ? lmq_peers_share(peers, from, seen->x,
                                 cursor->used * sizeof(*seen->x), err)
               : status;
}
