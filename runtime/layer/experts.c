/*
 * experts.c - mixtures of experts.
 *
 *   experts, weights = route(W_router xn)          (n, n_experts_used)
 *   rows: for each token one row per chosen expert (n * n_experts_used, dim)
 *   hidden = act(W_gate[e] row) * (W_up[e] row)    (rows, expert_dim)
 *   y = W_down[e] hidden                           (rows, dim)
 *   out = sum of weight * y over a token's rows    (n, dim), or the sum of y,
 *                                                  if rows are weight * xn
 *   out += sigmoid(w_switch xn) * shared(xn)       (n, dim)
 *
 * The rows of a batch are put together by expert, so that each expert's
 * weights are read once. Several experts go through each step at a time, with
 * one barrier for all of them: with a single token, that is what keeps every
 * thread busy. What a token gets does not depend on the others: its rows are
 * its own, and it adds them up in the order of the experts.
 */
#include "config.h"

#include "runtime/layer/experts.h"

#include <math.h>
#include <string.h>

#include "runtime/layer/feed.h"
#include "runtime/layer/norm.h"
#include "runtime/product.h"
#include "runtime/layer/router.h"

/* ---- Routing ---- */

/* experts, weights (n, n_experts_used) from the logits (n, n_experts). */
static void
choose_experts(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_feed_part *feed = &member->layer->feed;
    struct lmq_routing *r = &member->work->routing;
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        struct lmq_choice choice = {
            .scores = r->logits + t * h->n_experts,
            .correction = h->router_corrects ? feed->correction : NULL,
            .given = feed->token_experts == NULL
                         ? NULL
                         : feed->token_experts +
                               (size_t)member->work->tokens[t] *
                                   h->n_experts_used,
            .selection = member->own->selection,
            .states = member->own->states,
        };
        if (feed->router.bias != NULL)
            member->kernels->add(choice.scores, feed->router.bias,
                                 h->n_experts);
        uint32_t *experts = r->experts + t * h->n_experts_used;
        float *weights = r->weights + t * h->n_experts_used;
        lmq_router_choose(h, &choice, experts, weights);
        for (size_t i = 0; i < h->n_experts_used && h->has_expert_norms; i++)
            weights[i] *= feed->experts_scale[experts[i]];
    }
}

/* Gives every chosen expert of every token its row: a counting sort. */
static void
assign_rows(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    struct lmq_routing *r = &member->work->routing;
    size_t n = member->n * h->n_experts_used;
    uint32_t *end = r->first + 1; /* of each expert's rows, in the end */

    memset(r->first, 0, ((size_t)h->n_experts + 1) * sizeof(*r->first));
    for (size_t i = 0; i < n; i++)
        end[r->experts[i]]++;
    for (size_t e = 0; e < h->n_experts; e++)
        end[e] += r->first[e];
    /* Backwards, each row taken from the end: so the ends become firsts. */
    for (size_t i = n; i-- > 0;) {
        r->rows[i] = --end[r->experts[i]];
        r->tokens[r->rows[i]] = (uint32_t)(i / h->n_experts_used);
    }
    memmove(r->first, end, h->n_experts * sizeof(*r->first));
    r->first[h->n_experts] = (uint32_t)n;
}

/* Which experts each token goes to, and which rows that makes. */
static void
route(const struct lmq_member *member, const float *x)
{
    struct lmq_operand xn = /* (n, dim) */
        lmq_operand_of(member, x, member->h->dim);

    if (!member->h->router_is_early) /* or lmq_experts_look() did it */
        lmq_multiply(member, &member->layer->feed.router, &xn,
                     member->work->routing.logits); /* (n, n_experts) */
    lmq_barrier(member); /* a choice reads the logits of all experts */
    choose_experts(member);
    lmq_barrier(member); /* all tokens' choices are read by one */
    if (member->number == 0)
        assign_rows(member);
    lmq_barrier(member); /* all read the rows */
}

/* ---- Waves: as many experts as there is room for ---- */

/* Experts [first, end) and their rows. */
struct wave {
    size_t first, end;
    size_t row, n_rows;
};

/* An expert has no more rows than the batch has tokens: there is room. */
static bool
next_wave(const struct lmq_member *member, struct wave *wave)
{
    const struct lmq_routing *r = &member->work->routing;
    size_t n = member->h->n_experts;

    wave->first = wave->end;
    wave->row = r->first[wave->first];
    while (wave->end < n &&
           r->first[wave->end + 1] - wave->row <= r->capacity)
        wave->end++;
    wave->n_rows = r->first[wave->end] - wave->row;
    return wave->first < n;
}

static size_t
rows_of(const struct lmq_member *member, size_t expert)
{
    const uint32_t *first = member->work->routing.first;

    return first[expert + 1] - first[expert];
}

/* An expert's rows of a buffer of the wave. `slot` counts rows of the
 * quantized forms. */
static struct lmq_operand
operand_of(const struct lmq_member *member, const struct wave *wave,
           size_t expert, const float *x, size_t n_cols, size_t slot)
{
    size_t row = member->work->routing.first[expert] - wave->row;

    return (struct lmq_operand){
        .x = x + row * n_cols,
        .n = rows_of(member, expert),
        .n_cols = n_cols,
        .stride = n_cols,
        .packed = member->work->packed +
                  (slot + row) * lmq_packed_bytes(n_cols),
    };
}

/* The quantized form that `up` takes: the gate's, if their groups agree. */
static size_t
up_slot(const struct lmq_member *member, const struct lmq_ffn *expert)
{
    bool is_shared = expert->gate.is_int8 &&
                     expert->gate.tiles.group == expert->up.tiles.group &&
                     expert->gate.tiles.rotation ==
                         expert->up.tiles.rotation;

    return is_shared ? 0 : member->work->routing.capacity;
}

/* The weight of a row's expert for its token. */
static float
weight_of(const struct lmq_member *member, size_t row)
{
    const struct lmq_routing *r = &member->work->routing;
    size_t i = r->tokens[row] * (size_t)member->h->n_experts_used;

    while (r->rows[i] != row)
        i++;
    return r->weights[i];
}

/* Each row of the wave is its token's xn: (wave->n_rows, dim); perhaps times
 * the expert's weight. */
static void
gather(const struct lmq_member *member, const struct wave *wave,
       const float *x)
{
    struct lmq_routing *r = &member->work->routing;
    size_t dim = member->h->dim, from, to;

    lmq_member_share(member, wave->n_rows, &from, &to);
    for (size_t i = from; i < to; i++) {
        float *row = r->input + i * dim;
        memcpy(row, x + r->tokens[wave->row + i] * dim, dim * sizeof(*x));
        if (member->h->router_scales_input)
            member->kernels->scale(row, dim,
                                   weight_of(member, wave->row + i));
    }
}

/* Quantizes the rows for W_gate and W_up, all experts before one barrier. */
static void
pack_inputs(const struct lmq_member *member, const struct wave *wave)
{
    const float *input = member->work->routing.input;
    size_t dim = member->h->dim;

    for (size_t e = wave->first; e < wave->end; e++) {
        const struct lmq_ffn *expert = &member->layer->feed.experts[e];
        if (rows_of(member, e) == 0)
            continue;
        struct lmq_operand x = operand_of(member, wave, e, input, dim, 0);
        if (member->h->is_gated && lmq_product_packs(member, &expert->gate))
            lmq_operand_pack(member, &expert->gate, &x, e);
        size_t slot = up_slot(member, expert);
        x = operand_of(member, wave, e, input, dim, slot);
        if (slot != 0 && lmq_product_packs(member, &expert->up))
            lmq_operand_pack(member, &expert->up, &x, e);
    }
}

/* gate = W_gate[e] row, up = W_up[e] row: (wave->n_rows, expert_dim). */
static void
multiply_inputs(const struct lmq_member *member, const struct wave *wave)
{
    const struct lmq_work *work = member->work;
    const float *input = work->routing.input;
    size_t dim = member->h->dim, width = member->h->expert_dim, total = 0;
    const struct lmq_ffn *experts = member->layer->feed.experts;
    bool is_gated = member->h->is_gated;

    for (size_t e = wave->first; e < wave->end; e++)
        if (rows_of(member, e) > 0)
            total += (is_gated ? 2 : 1) *
                     lmq_product_cost(&experts[e].up, rows_of(member, e));
    struct lmq_share share = lmq_share_begin(member, total);
    for (size_t e = wave->first; e < wave->end; e++) {
        size_t row = work->routing.first[e] - wave->row;
        if (rows_of(member, e) == 0)
            continue;
        struct lmq_operand x = operand_of(member, wave, e, input, dim, 0);
        if (is_gated)
            lmq_share_product(member, &share, &experts[e].gate, &x,
                              work->gate + row * width, width);
        x = operand_of(member, wave, e, input, dim,
                       up_slot(member, &experts[e]));
        lmq_share_product(member, &share, &experts[e].up, &x,
                          work->up + row * width, width);
    }
}

/* hidden = act(gate) * up: (wave->n_rows, expert_dim). A thread's pieces
 * ascend, so the expert of a row is found by going on from the last one. */
static void
activate(const struct lmq_member *member, const struct wave *wave)
{
    const struct lmq_work *work = member->work;
    size_t width = member->h->expert_dim, e = wave->first, from, to;
    const struct lmq_limits limits = {
        (float)member->h->glu_limit,
        (float)lmq_layer_expert_act_limit(member->h, member->index)};

    lmq_member_share(member, wave->n_rows * lmq_row_pieces(width), &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, width);
        size_t at = piece.row * width + piece.column;
        while (work->routing.first[e + 1] - wave->row <= piece.row)
            e++;
        lmq_ffn_activate(member, &member->layer->feed.experts[e],
                         &limits, work->gate + at, work->up + at, piece.column,
                         piece.size);
    }
}

/* Quantizes `hidden` for W_down. */
static void
pack_hidden(const struct lmq_member *member, const struct wave *wave)
{
    for (size_t e = wave->first; e < wave->end; e++) {
        const struct lmq_matrix *down =
            &member->layer->feed.experts[e].down;
        if (rows_of(member, e) == 0 || !lmq_product_packs(member, down))
            continue;
        struct lmq_operand hidden =
            operand_of(member, wave, e, lmq_ffn_hidden(member),
                       member->h->expert_dim, 0);
        lmq_operand_pack(member, down, &hidden, e);
    }
}

/* y = W_down[e] hidden: (wave->n_rows, dim). */
static void
multiply_hidden(const struct lmq_member *member, const struct wave *wave)
{
    const struct lmq_ffn *experts = member->layer->feed.experts;
    struct lmq_routing *r = &member->work->routing;
    size_t dim = member->h->dim, total = 0;

    for (size_t e = wave->first; e < wave->end; e++)
        if (rows_of(member, e) > 0)
            total += lmq_product_cost(&experts[e].down, rows_of(member, e));
    struct lmq_share share = lmq_share_begin(member, total);
    for (size_t e = wave->first; e < wave->end; e++) {
        if (rows_of(member, e) == 0)
            continue;
        struct lmq_operand hidden =
            operand_of(member, wave, e, lmq_ffn_hidden(member),
                       member->h->expert_dim, 0);
        lmq_share_product(member, &share, &experts[e].down, &hidden,
                          r->output + (r->first[e] - wave->row) * dim, dim);
    }
}

/* out (n, dim) += weight * (y + bias) for the rows of a token that are in the
 * wave. Waves and rows ascend by expert: so the order of a token's sum is the
 * order of its experts, however the waves are cut. */
static void
combine(const struct lmq_member *member, const struct wave *wave, float *out)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_routing *r = &member->work->routing;
    size_t dim = member->h->dim, used = member->h->n_experts_used, from, to;
    bool is_scaled = member->h->router_scales_input;

    lmq_member_share(member, member->n * lmq_row_pieces(dim), &from, &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, dim);
        float *sum = out + piece.row * dim + piece.column;
        if (wave->first == 0)
            memset(sum, 0, piece.size * sizeof(*sum));
        for (size_t j = piece.row * used; j < (piece.row + 1) * used; j++) {
            const float *bias =
                member->layer->feed.experts[r->experts[j]].down.bias;
            if (r->rows[j] - wave->row >= wave->n_rows)
                continue; /* before it or behind it */
            float *y = r->output + (r->rows[j] - wave->row) * dim +
                       piece.column;
            if (bias != NULL)
                kernels->add(y, bias + piece.column, piece.size);
            kernels->axpy(sum, y, piece.size, /* += w y */
                          is_scaled ? 1 : r->weights[j]);
        }
    }
}

/* ---- Norms of their own ---- */

/* What the router and what experts look at, (n, dim): the stream itself by
 * their norms, and the router's as if it had length 1. */
static void
make_inputs(const struct lmq_member *member)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    const struct lmq_work *work = member->work;
    size_t dim = member->h->dim, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        const float *x = work->x + t * dim;
        float *router = work->router_xn + t * dim;
        lmq_norm(member->h, &feed->router_norm, x, dim, router);
        member->kernels->scale(router, dim, 1 / sqrtf((float)dim));
        lmq_norm(member->h, &feed->experts_norm, x, dim,
                 work->experts_xn + t * dim);
    }
    lmq_barrier(member); /* all read all of both */
}

/* x (n, dim) = norm(x + bias). */
static void
norm_rows(const struct lmq_member *member, const float *bias,
          const struct lmq_gain *gain, float *x)
{
    size_t dim = member->h->dim, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        if (bias != NULL)
            member->kernels->add(x + t * dim, bias, dim);
        lmq_norm(member->h, gain, x + t * dim, dim, x + t * dim);
    }
}

/* ---- Shared experts ---- */

/* How much of the shared experts a token takes: shared_scale, or that times
 * sigmoid(w_switch xn). Qwen calls it shared_expert_gate. */
static float
switch_of(const struct lmq_member *member, size_t t)
{
    const struct lmq_matrix *matrix = &member->layer->feed.shared_switch;
    float scale = (float)member->h->shared_scale;
    float x = member->work->routing.switches[t];

    if (matrix->tensor == NULL)
        return scale;
    if (matrix->bias != NULL)
        x += matrix->bias[0];
    member->kernels->sigmoid(&x, 1);
    return scale * x;
}

/* out += switch * (shared(xn) + bias), or switch * norm(shared(xn) + bias). */
static void
add_shared(const struct lmq_member *member, const float *x, float *out)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    struct lmq_routing *r = &member->work->routing;
    size_t dim = member->h->dim, from, to;
    struct lmq_operand xn = lmq_operand_of(member, x, dim);
    const float *bias = feed->shared.down.bias;

    if (feed->shared_switch.tensor != NULL)
        lmq_multiply(member, &feed->shared_switch, &xn, r->switches);
    lmq_ffn(member, &feed->shared, NULL, &xn, r->output); /* (n, dim) */
    lmq_barrier(member); /* pieces are cut otherwise than products */
    if (member->h->has_expert_norms) {
        norm_rows(member, bias, &feed->shared_post_norm, r->output);
        lmq_barrier(member); /* and otherwise than rows */
        bias = NULL;
    }
    lmq_member_share(member, member->n * lmq_row_pieces(dim), &from, &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, dim);
        float *y = r->output + piece.row * dim + piece.column;
        if (bias != NULL)
            member->kernels->add(y, bias + piece.column, piece.size);
        member->kernels->axpy(out + piece.row * dim + piece.column, y,
                              piece.size, switch_of(member, piece.row));
    }
}

/* ---- A layer's experts ---- */

void
lmq_experts_look(const struct lmq_member *member)
{
    struct lmq_operand x = /* (n, dim) */
        lmq_operand_of(member, member->work->x, member->h->dim);

    if (!member->h->router_is_early ||
        !lmq_layer_has_experts(member->h, member->index))
        return;
    lmq_multiply(member, &member->layer->feed.router, &x,
                 member->work->routing.logits); /* (n, n_experts) */
    lmq_barrier(member); /* what is quantized next takes its place */
}

void
lmq_experts(const struct lmq_member *member, const float *x, float *out)
{
    bool has_norms = member->h->has_expert_norms;
    const float *input = has_norms ? member->work->experts_xn : x;
    struct wave wave = {0};

    if (has_norms)
        make_inputs(member); /* norms of x for both */
    route(member, has_norms ? member->work->router_xn : x);
    while (next_wave(member, &wave)) {
        gather(member, &wave, input); /* rows of it */
        lmq_barrier(member); /* packing shares rows out otherwise */
        pack_inputs(member, &wave);
        lmq_barrier(member); /* all read the packed rows */
        multiply_inputs(member, &wave); /* gate, up = W row */
        lmq_barrier(member); /* pieces are cut otherwise than products */
        activate(member, &wave); /* hidden = act(gate) * up */
        lmq_barrier(member); /* packing reads whole rows */
        pack_hidden(member, &wave);
        lmq_barrier(member); /* all read the packed rows */
        multiply_hidden(member, &wave); /* y = W_down hidden */
        lmq_barrier(member); /* a sum reads the rows of all its experts */
        combine(member, &wave, out); /* out += weight * y */
    }
    if (has_norms) {
        lmq_barrier(member); /* a norm reads whole rows */
        norm_rows(member, NULL, &member->layer->feed.experts_post_norm, out);
    }
    if (member->h->shared_dim > 0) {
        lmq_barrier(member); /* the rows are overwritten */
        add_shared(member, x, out);
    }
}
