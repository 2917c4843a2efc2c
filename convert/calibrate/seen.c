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
        return input->n_cols + input->mend.n_rows;
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

static size_t
count_drifting(const struct lmq_cal_layer *layer, size_t end)
{
    size_t n = 0;

    for (size_t i = 0; i < end; i++)
        n += layer->inputs[i].mend.n_rows;
    return n;
}

double
lmq_seen_bytes(const struct lmq_cal_layer *layer, size_t window)
{
    size_t n_floats =
        count_all_floats(layer) + count_drifting(layer, layer->n_inputs);

    return (double)window *
           ((double)n_floats * sizeof(float) +
            (double)layer->n_inputs * sizeof(struct lmq_seen_run));
}

enum lmq_status
lmq_seen_init(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
              size_t window, size_t n_members, struct lmq_error *err)
{
    size_t n_exact;

    *seen = (struct lmq_seen){.n_members = n_members,
                              .n_inputs = layer->n_inputs,
                              .window = window};
    if (!lmq_size_mul(count_all_floats(layer), window, &seen->x_room) ||
        !lmq_size_mul(count_drifting(layer, layer->n_inputs), window,
                      &n_exact) ||
        !lmq_size_mul(layer->n_inputs, window, &seen->runs_room))
        return lmq_fail_nomem(err);
    seen->exact = lmq_mem_aligned(n_exact + 1, sizeof(float));
    seen->exact_at = calloc(n_members * layer->n_inputs + 1, sizeof(size_t));
    seen->x = lmq_mem_aligned(seen->x_room + 1, sizeof(float));
    seen->runs = calloc(seen->runs_room + 1, sizeof(*seen->runs));
    seen->cursors = calloc(n_members, sizeof(*seen->cursors));
    return seen->x != NULL && seen->runs != NULL && seen->cursors != NULL &&
                   seen->exact != NULL && seen->exact_at != NULL
               ? LMQ_OK
               : lmq_fail_nomem(err);
}

void
lmq_seen_free(struct lmq_seen *seen)
{
    lmq_mem_free(seen->x);
    lmq_mem_free(seen->exact);
    free(seen->exact_at);
    free(seen->runs);
    free(seen->cursors);
    *seen = (struct lmq_seen){0};
}

void
lmq_seen_clear(struct lmq_seen *seen)
{
    memset(seen->cursors, 0, seen->n_members * sizeof(*seen->cursors));
    memset(seen->exact_at, 0,
           seen->n_members * seen->n_inputs * sizeof(*seen->exact_at));
}

/* Rows, `stride` apart. */
struct rows {
    const float *x;
    size_t stride;
};

/* Rows of what drifts, as they are for this operand. */
static struct rows
drifting_rows(const struct lmq_mend *mend, const struct lmq_member *member,
              const struct lmq_operand *operand)
{
    return mend->is_output
               ? (struct rows){member->work->x, mend->n_rows}
               : (struct rows){operand->x, operand->stride};
}

/* Where the operand's exact rows are. */
static float *
take_exact(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
           const struct lmq_member *member, size_t input, size_t n_tokens)
{
    size_t *at = &seen->exact_at[member->number * seen->n_inputs + input];
    size_t first = *at;

    *at += n_tokens;
    assert(*at <= seen->window);
    return seen->exact + seen->window * count_drifting(layer, input) +
           first * layer->inputs[input].mend.n_rows;
}

void
lmq_seen_expect(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
                const struct lmq_member *member, size_t input,
                const struct lmq_operand *operand)
{
    const struct lmq_mend *mend = &layer->inputs[input].mend;
    struct rows rows = drifting_rows(mend, member, operand);
    size_t n = mend->n_rows, from, to;

    if (n == 0)
        return;
    float *exact = take_exact(seen, layer, member, input, operand->n);
    lmq_member_share(member, operand->n, &from, &to);
    for (size_t i = from; i < to; i++)
        memcpy(exact + i * n, rows.x + i * rows.stride, n * sizeof(*exact));
}

/* This member's share of what the rows have drifted by. */
static void
add_drift(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
          const struct lmq_member *member, size_t input,
          const struct lmq_operand *operand, float *to)
{
    const struct lmq_mend *mend = &layer->inputs[input].mend;
    struct rows rows = drifting_rows(mend, member, operand);
    const float *exact = take_exact(seen, layer, member, input, operand->n);
    size_t n = mend->n_rows, first, end;

    lmq_member_share(member, operand->n, &first, &end);
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < n; j++)
            to[i * n + j] = exact[i * n + j] - rows.x[i * rows.stride + j];
}

void
lmq_seen_add(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
             const struct lmq_member *member, size_t input,
             const struct lmq_operand *operand)
{
    struct lmq_seen_cursor *cursor = &seen->cursors[member->number];
    size_t n_drifting = layer->inputs[input].mend.n_rows;
    size_t n_cols = operand->n_cols, from, to;

    if (operand->n == 0)
        return;
    assert(cursor->n_runs < seen->runs_room &&
           cursor->used + operand->n * (n_cols + n_drifting) <=
               seen->x_room);
    if (member->number == 0)
        seen->runs[cursor->n_runs] =
            (struct lmq_seen_run){input, operand->n, cursor->used};
    lmq_member_share(member, operand->n, &from, &to);
    for (size_t i = from; i < to; i++)
        memcpy(seen->x + cursor->used + i * n_cols,
               operand->x + i * operand->stride, n_cols * sizeof(float));
    cursor->used += operand->n * n_cols;
    if (n_drifting > 0)
        add_drift(seen, layer, member, input, operand,
                  seen->x + cursor->used);
    cursor->used += operand->n * n_drifting;
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
