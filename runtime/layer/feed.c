/*
 * feed.c - one feed-forward network.
 *
 *   gate = W_gate xn, up = W_up xn        (n, hidden_dim)
 *   hidden = act(gate) * up               (n, hidden_dim)
 *   out = W_down hidden                   (n, dim)
 *
 * A sparse layer goes on with what of gate stands out:
 *   level = mean(gate) + sparse_cut * deviation(gate)        (n)
 *   gate = max(gate - level, 0)
 *
 * A limited layer has
 *   hidden = min(act(gate), limit) * clamp(up, limit)
 *
 * Without a gate, hidden = act(up). `hidden` takes the place of gate or up. In
 * some models gate and up are limited, and up has something added to it; in
 * some hidden is normed.
 */
#include "config.h"

#include "runtime/layer/feed.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "runtime/layer/norm.h"

/* x = x * sigmoid(slope * x), n numbers of a piece. */
static void
silu(const struct lmq_member *member, float *x, size_t n)
{
    const struct lmq_kernels *kernels = member->kernels;
    float part[LMQ_ROW_PIECE];

    if (member->h->activation_slope == 1) {
        kernels->silu(x, n);
        return;
    }
    memcpy(part, x, n * sizeof(*x));
    kernels->scale(part, n, (float)member->h->activation_slope);
    kernels->sigmoid(part, n);
    kernels->mul(x, part, n);
}

static void
square(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= x[i];
}

/* exp(x) - 1 - x for x <= 0, given exp(x): its series where the difference of
 * these numbers has few digits left. */
static float
curve_of(float x, float exp_x)
{
    float series = 1 + x / 9;

    for (int k = 8; k >= 3; k--)
        series = 1 + x / (float)k * series;
    return x > -0.5f ? x * x * 0.5f * series : exp_x - 1 - x;
}

static float
parameter(const float *stored)
{
    double x = (double)stored[0];

    return isfinite(x) ? (float)lmq_softplus(x) : NAN; /* which is noticed */
}

/* x = slope x + (x > 0 ? p x^2 : n (exp(min(x, bound)) - 1 - x)), with p and n
 * of the layer; n grows by the slope. */
static void
xielu(const struct lmq_member *member, float *x, size_t n)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    float slope = feed->act_slope[0], bound = feed->act_bound[0];
    float positive = parameter(feed->act_positive);
    float negative = slope + parameter(feed->act_negative);
    float low[LMQ_ROW_PIECE], exps[LMQ_ROW_PIECE];

    for (size_t i = 0; i < n; i++)
        low[i] = exps[i] = x[i] < bound ? x[i] : bound;
    member->kernels->exp(exps, n);
    for (size_t i = 0; i < n; i++) {
        float more = x[i] > 0 ? positive * x[i] * x[i]
                              : negative * (curve_of(low[i], exps[i]) +
                                            (low[i] - x[i]));
        x[i] = slope * x[i] + more;
    }
}

void
lmq_activate(const struct lmq_member *member, float *x, size_t n)
{
    const struct lmq_kernels *kernels = member->kernels;
    void (*const activations[LMQ_ACTIVATION_COUNT])(float *x, size_t n) = {
        [LMQ_ACTIVATION_GELU] = kernels->gelu_erf,
        [LMQ_ACTIVATION_GELU_TANH] = kernels->gelu_tanh,
        [LMQ_ACTIVATION_RELU] = kernels->relu,
        [LMQ_ACTIVATION_SIGMOID] = kernels->sigmoid,
        [LMQ_ACTIVATION_RELU2] = kernels->relu,
    };

    if (member->h->activation == LMQ_ACTIVATION_SILU)
        silu(member, x, n);
    else if (member->h->activation == LMQ_ACTIVATION_XIELU)
        xielu(member, x, n);
    else
        activations[member->h->activation](x, n);
    if (member->h->activation == LMQ_ACTIVATION_RELU2)
        square(x, n);
}

/* x = min(x, most); what is no number stays so. */
static void
cap(float *x, size_t n, float most)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > most ? most : x[i];
}

/* gate = min(gate, limit), up = clamp(up, limit) + offset */
static void
limit(const struct lmq_member *member, const struct lmq_limits *limits,
      float *gate, float *up, size_t n)
{
    const float offset = (float)member->h->glu_offset;

    if (limits->gate > 0) {
        member->kernels->clamp(up, n, limits->gate);
        cap(gate, n, limits->gate);
    }
    if (limits->act > 0)
        member->kernels->clamp(up, n, limits->act);
    for (size_t i = 0; i < n && offset != 0; i++)
        up[i] += offset;
}

void
lmq_ffn_activate(const struct lmq_member *member, const struct lmq_ffn *ffn,
                 const struct lmq_limits *limits, float *gate, float *up,
                 size_t column, size_t size)
{
    const struct lmq_kernels *kernels = member->kernels;

    if (ffn->up.bias != NULL)
        kernels->add(up, ffn->up.bias + column, size); /* up += bias */
    if (!member->h->is_gated) {
        lmq_activate(member, up, size); /* up = act(up) */
        return;
    }
    if (ffn->gate.bias != NULL)
        kernels->add(gate, ffn->gate.bias + column, size); /* gate += bias */
    limit(member, limits, gate, up, size);
    lmq_activate(member, gate, size); /* gate = act(gate) */
    if (limits->act > 0)
        cap(gate, size, limits->act);
    kernels->mul(gate, up, size); /* gate *= up */
}

float *
lmq_ffn_hidden(const struct lmq_member *member)
{
    return member->h->is_gated ? member->work->gate : member->work->up;
}

/* hidden = norm(hidden), row by row. */
static void
norm_hidden(const struct lmq_member *member, const struct lmq_gain *gain,
            size_t width)
{
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *hidden = lmq_ffn_hidden(member) + t * width;
        lmq_norm(member->h, gain, hidden, width, hidden);
    }
}

/* ---- What stands out ---- */

#define LANES ((size_t)8)

/* The sum of (x - shift)^power, with power 1 or 2. */
static double
sum_of(const float *x, size_t n, double shift, int power)
{
    double sums[LANES] = {0}, sum = 0;

    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES && j < n - i; j++) {
            double d = (double)x[i + j] - shift;
            sums[j] += power == 1 ? d : d * d;
        }
    for (size_t j = 0; j < LANES; j++)
        sum += sums[j];
    return sum;
}

/* The levels of this member's share of the tokens, whose gate gets its bias. */
static void
make_levels(const struct lmq_member *member, const struct lmq_matrix *w_gate)
{
    size_t width = w_gate->n_rows, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *gate = member->work->gate + t * width;
        if (w_gate->bias != NULL)
            member->kernels->add(gate, w_gate->bias, width);
        double mean = sum_of(gate, width, 0, 1) / (double)width;
        double squares = sum_of(gate, width, mean, 2) / (double)width;
        member->work->levels[t] =
            (float)(mean + member->h->sparse_cut * sqrt(squares));
    }
}

/* gate = max(gate - level, 0); what is no number stays so. */
static void
cut(float *gate, float level, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float above = gate[i] - level;
        gate[i] = above < 0 ? 0 : above;
    }
}

void
lmq_ffn(const struct lmq_member *member, const struct lmq_ffn *ffn,
        const struct lmq_gain *sub_norm, struct lmq_operand *xn, float *out)
{
    struct lmq_work *work = member->work;
    size_t width = ffn->up.n_rows, from, to;
    bool is_sparse = lmq_layer_is_sparse(member->h, member->index);
    const struct lmq_limits limits = {
        member->h->glu_limits_experts ? 0 : (float)member->h->glu_limit,
        (float)lmq_layer_act_limit(member->h, member->index)};
    struct lmq_ffn unbiased = *ffn; /* whose gate has had its bias */
    struct lmq_operand hidden = /* (n, width) */
        lmq_operand_of(member, lmq_ffn_hidden(member), width);

    if (member->h->is_gated)
        lmq_multiply(member, &ffn->gate, xn, work->gate); /* (n, width) */
    lmq_multiply(member, &ffn->up, xn, work->up);         /* (n, width) */
    lmq_barrier(member); /* pieces are cut otherwise than products */
    if (is_sparse) {
        make_levels(member, &ffn->gate);
        unbiased.gate.bias = NULL;
        lmq_barrier(member); /* pieces change what levels are of */
    }
    lmq_member_share(member, member->n * lmq_row_pieces(width), &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, width);
        size_t at = piece.row * width + piece.column;
        if (is_sparse)
            cut(work->gate + at, work->levels[piece.row], piece.size);
        lmq_ffn_activate(member, &unbiased, &limits, work->gate + at,
                         work->up + at, piece.column, piece.size);
    }
    lmq_barrier(member); /* a row of W_down, or a norm, reads all of hidden */
    if (sub_norm != NULL) {
        norm_hidden(member, sub_norm, width); /* hidden = norm(hidden) */
        lmq_barrier(member); /* a row of W_down reads all of it */
    }
    lmq_multiply(member, &ffn->down, &hidden, out); /* (n, dim) */
}
