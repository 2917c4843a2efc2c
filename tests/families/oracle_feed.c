/*
 * oracle_feed.c - feed-forward networks and mixtures of experts.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* w: the two that are positive once log(1 + exp) is taken, beta, eps. */
static double
xielu(const float *w, double x)
{
    double beta = (double)w[2];
    double p = log1p(exp((double)w[0])), n = beta + log1p(exp((double)w[1]));

    return x > 0 ? p * x * x + beta * x
                 : (expm1(fmin(x, (double)w[3])) - x) * n + beta * x;
}

/* What is less than so many deviations above the mean of a row becomes 0, the
 * rest what it is more. */
static void
cut_rows(double *x, size_t n, size_t width, double deviations)
{
    for (size_t t = 0; t < n; t++) {
        double *row = x + t * width, sum = 0, squares = 0;
        for (size_t i = 0; i < width; i++) {
            sum += row[i];
            squares += row[i] * row[i];
        }
        double mean = sum / (double)width;
        double level = mean + deviations * sqrt(squares / (double)width -
                                                mean * mean);
        for (size_t i = 0; i < width; i++)
            row[i] = fmax(row[i] - level, 0);
    }
}

/* `most`: of what is activated, and of up; 0: none. */
static double *
run_mlp(const struct oracle_shape *s, const struct oracle_mlp *w,
        const double *x, size_t n, bool is_cut, double limit, double most)
{
    double *up = oracle_apply(&w->up, x, n);

    if (w->gate.w != NULL) {
        double *gate = oracle_apply(&w->gate, x, n);
        if (is_cut)
            cut_rows(gate, n, w->up.rows, s->cut);
        for (size_t i = 0; i < n * w->up.rows; i++) {
            if (limit > 0) {
                gate[i] = fmin(gate[i], limit);
                up[i] = fmin(fmax(up[i], -limit), limit);
            }
            double active = s->activation(gate[i]);
            if (most > 0) {
                active = fmin(active, most);
                up[i] = fmin(fmax(up[i], -most), most);
            }
            up[i] = (up[i] + s->up_plus) * active;
        }
        free(gate);
    } else {
        for (size_t i = 0; i < n * w->up.rows; i++)
            up[i] = w->xielu != NULL ? xielu(w->xielu, up[i])
                                     : s->activation(up[i]);
    }
    oracle_norm_rows(s, &w->sub_norm, up, n, w->up.rows, w->up.rows);
    double *out = oracle_apply(&w->down, up, n);
    free(up);
    return out;
}

static size_t
index_of(const struct oracle *o, const struct oracle_layer *w)
{
    return (size_t)(w - o->model->layers);
}

/* Of what is no expert. */
static double
up_limit_of(const struct oracle_shape *s)
{
    return s->limits_experts ? 0 : s->up_limit;
}

static double
limit_of(const struct oracle *o, const struct oracle_layer *w)
{
    return oracle_pattern(o->s->limited, index_of(o, w)) ? o->s->act_limit : 0;
}

static double
experts_limit_of(const struct oracle *o, const struct oracle_layer *w)
{
    return oracle_pattern(o->s->limited_experts, index_of(o, w))
               ? o->s->expert_act_limit
               : 0;
}

double *
oracle_feed(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_layer *w = &o->model->layers[layer];

    return run_mlp(o->s, &w->mlp, x, o->n,
                   oracle_pattern(o->s->cutting, layer), up_limit_of(o->s),
                   limit_of(o, w));
}

/* The place of the largest; its number is then out of the game. */
static size_t
take_largest(double *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    x[best] = -(double)INFINITY;
    return best;
}

/* Experts of groups that are not among the best become impossible. */
static void
choose_groups(const struct oracle_shape *s, double *worth)
{
    size_t size = s->n_experts / s->n_groups;
    double *groups = oracle_doubles(s->n_groups),
           *copy = oracle_doubles(s->n_experts);
    double *chosen = oracle_doubles(s->n_groups);

    memcpy(copy, worth, s->n_experts * sizeof(*copy));
    for (size_t g = 0; g < s->n_groups; g++)
        for (size_t i = 0; i < s->group_best; i++) {
            double *group = copy + g * size;
            double before[64];
            memcpy(before, group, size * sizeof(*before));
            groups[g] += before[take_largest(group, size)];
        }
    for (size_t i = 0; i < s->n_groups_used; i++)
        chosen[take_largest(groups, s->n_groups)] = 1;
    for (size_t e = 0; e < s->n_experts; e++)
        if (chosen[e / size] < 1)
            worth[e] = -(double)INFINITY;
    free(groups);
    free(copy);
    free(chosen);
}

/* The best expert by logits, which become impossible; its weight is its share
 * of those within reach. */
static void
weigh_best(const struct oracle_shape *s, double *logits, double *weights)
{
    size_t n = s->n_experts, best = 0;
    double sum = 0, most;

    for (size_t e = 1; e < n; e++)
        if (logits[e] > logits[best])
            best = e;
    most = logits[best];
    for (size_t e = 0; e < n; e++)
        if (isfinite(logits[e]) &&
            (most - logits[e]) / fmax(fabs(logits[e]), most) <= s->reach)
            sum += exp(logits[e]);
    weights[best] = exp(most) / sum;
    logits[best] = -(double)INFINITY;
}

static void
route_by_near(const struct oracle_shape *s, const double *logits,
              double *weights)
{
    double *left = oracle_doubles(s->n_experts);

    memcpy(left, logits, s->n_experts * sizeof(*left));
    for (size_t e = 0; e < s->n_experts; e++)
        weights[e] = 0;
    for (size_t i = 0; i < s->n_used; i++)
        weigh_best(s, left, weights);
    free(left);
}

/* Weights of all experts from the router's logits: 0 for those not chosen. */
static void
route(const struct oracle_shape *s, const struct oracle_layer *w,
      const double *logits, const float *given, double *weights)
{
    size_t n = s->n_experts;
    double *scores = oracle_doubles(n), *worth = oracle_doubles(n), sum = 0,
           chosen = 0;

    for (size_t e = 0; e < n; e++)
        sum += scores[e] = exp(logits[e]);
    for (size_t e = 0; e < n; e++) {
        scores[e] = s->router == ORACLE_SIGMOID ||
                            s->router == ORACLE_SIGMOID_CHOSEN
                        ? oracle_sigmoid(logits[e])
                        : scores[e] / sum;
        if (s->router == ORACLE_ROOT_SOFTPLUS)
            scores[e] = sqrt(log1p(exp(logits[e])));
        worth[e] =
            (s->router == ORACLE_SIGMOID_CHOSEN ? logits[e] : scores[e]) +
            (w->correction == NULL ? 0 : (double)w->correction[e]);
        weights[e] = 0;
    }
    if (s->n_groups > 0)
        choose_groups(s, worth);
    for (size_t i = 0; i < s->n_used; i++) {
        size_t e = given != NULL ? (size_t)given[i] : take_largest(worth, n);
        chosen += weights[e] = scores[e];
    }
    for (size_t e = 0; e < n; e++) {
        /* Softmax over the chosen is that over all, shared out anew. */
        if (s->renormalises || s->router == ORACLE_SOFTMAX_CHOSEN)
            weights[e] /= chosen;
        weights[e] *= oracle_or_one(s->router_scale);
    }
    free(scores);
    free(worth);
}

static void
cap_logits(const struct oracle_shape *s, double *logits, size_t n)
{
    for (size_t i = 0; i < n && s->router_cap > 0; i++)
        logits[i] = s->router_cap * tanh(logits[i] / s->router_cap);
}

static void
add_weighted(double *to, const double *from, size_t n, double weight)
{
    for (size_t i = 0; i < n; i++)
        to[i] += weight * from[i];
}

double *
oracle_experts(const struct oracle *o, const struct oracle_layer *w,
               const double *x, const double *routed)
{
    const struct oracle_shape *s = o->s;
    double *logits = oracle_apply(&w->router, routed, o->n);
    double *out = oracle_doubles(o->n * s->dim),
           *weights = oracle_doubles(s->n_experts);

    cap_logits(s, logits, o->n * s->n_experts);
    for (size_t t = 0; t < o->n; t++) {
        const double *in = x + t * s->dim;
        double *to = out + t * s->dim, share = 1;
        if (s->router == ORACLE_NEAR)
            route_by_near(s, logits + t * s->n_experts, weights);
        else
            route(s, w, logits + t * s->n_experts,
                  w->table.w == NULL
                      ? NULL
                      : w->table.w + (size_t)o->tokens[t] * s->n_used,
                  weights);
        for (size_t e = 0; e < s->n_experts && w->experts_scale != NULL; e++)
            weights[e] *= (double)w->experts_scale[e];
        for (size_t e = 0; e < s->n_experts; e++) {
            if (weights[e] == 0)
                continue;
            double *input = oracle_doubles(s->dim);
            add_weighted(input, in, s->dim, s->weighs_input ? weights[e] : 1);
            double *y = run_mlp(s, &w->experts[e], input, 1, false,
                                s->up_limit,
                                experts_limit_of(o, w));
            add_weighted(to, y, s->dim, s->weighs_input ? 1 : weights[e]);
            free(input);
            free(y);
        }
        if (w->shared_switch.w != NULL) {
            double *y = oracle_apply(&w->shared_switch, in, 1);
            share = oracle_sigmoid(y[0]);
            free(y);
        }
        if (w->shared.up.w != NULL) {
            double *y = run_mlp(s, &w->shared, in, 1, false,
                                up_limit_of(s), limit_of(o, w));
            add_weighted(to, y, s->dim,
                         share * oracle_or_one(s->shared_scale));
            free(y);
        }
    }
    free(logits);
    free(weights);
    return out;
}

double *
oracle_mlp_and_experts(const struct oracle *o, const struct oracle_layer *w,
                       const double *in)
{
    size_t dim = o->s->dim;
    double *out = run_mlp(o->s, &w->mlp, in, o->n, false,
                          up_limit_of(o->s), limit_of(o, w));
    double *routed = oracle_normed(o, &w->router_norm, o->x);
    double *seen = oracle_normed(o, &w->experts_norm, o->x);

    oracle_norm_rows(o->s, &w->mlp_post_norm, out, o->n, dim, dim);
    for (size_t i = 0; i < o->n * dim; i++)
        routed[i] /= sqrt((double)dim);
    double *sum = oracle_experts(o, w, seen, routed);
    oracle_norm_rows(o->s, &w->experts_post_norm, sum, o->n, dim, dim);
    for (size_t i = 0; i < o->n * dim; i++)
        out[i] += sum[i];
    free(routed);
    free(seen);
    free(sum);
    return out;
}
