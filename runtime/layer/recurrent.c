/*
 * recurrent.c - layers that remember a state: the gated delta rule, as in Qwen
 * 3 Next and 3.5; the state space of Mamba 2; and short convolutions, as in
 * LFM 2, which need no more than convolve.c.
 *
 *   q = W_q xn, k = W_k xn, v = W_v xn      (n, key or value heads, dim)
 *   z = W_gate xn, a = W_alpha xn
 *   q, k, v = silu(conv(q, k, v))           each channel over some tokens
 *   and for each value head, token after token, of the state S (key dim,
 *   value dim), with step = softplus(a), decay = exp(-exp(A) step):
 *
 *   the delta rule, with b = W_beta xn, q = q / |q| / sqrt(key dim),
 *   k = k / |k|
 *       S = decay S
 *       d = sigmoid(b) (v - k S)
 *       S = S + k d
 *       o = q S
 *   attention = rmsnorm(o) * silu(z)        (n, value heads, value dim)
 *
 *   the state space
 *       S = decay S + k (step v)
 *       o = q S + D v
 *   attention = rmsnorm(o * silu(z))        over the heads that share a key
 *
 * Without norms of states attention is what stands there in brackets. Beside
 * attention the matrices have names of their own.
 *
 * A token needs what the one before it left, so tokens go one after the other,
 * and heads are what is shared out: the sums of a token have one order, however
 * a sequence is cut. Their order is the rows' of S.
 */
#include "config.h"

#include "runtime/layer/recurrent.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/size.h"
#include "runtime/layer/convolve.h"

/* What is added to the square of a length, so that none is 0. */
#define LENGTH_EPS 1e-6f

/* ---- Queries, keys, time steps ---- */

/* x *= scale / |x|. */
static void
set_length(const struct lmq_member *member, float *x, size_t n, float scale)
{
    float square = member->kernels->dot(x, x, n);

    member->kernels->scale(x, n, scale / sqrtf(square + LENGTH_EPS));
}

/* q = q / |q| / sqrt(key dim), k = k / |k|. */
static void
set_lengths(const struct lmq_member *member)
{
    size_t dim = member->h->delta_key_dim, from, to;
    float scale = 1 / sqrtf((float)dim);

    lmq_member_share(member, member->n * member->h->n_delta_key_heads, &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        set_length(member, member->work->q + i * dim, dim, scale);
        set_length(member, member->work->k + i * dim, dim, 1);
    }
}

/* What a time step leaves of the state. So little counts as nothing: products
 * with it would be subnormal numbers, for which processors take a hundred times
 * as long. */
static float
decay_of(double decay, double step)
{
    double left = step > 0 ? lmq_exp(-lmq_exp(decay) * step) : 1;

    return left < 0x1p-64 ? 0 : (float)left;
}

/* a = exp(-exp(A) step), step = softplus(a + bias): what a token leaves of the
 * state. b = sigmoid(b), or the step: how much it writes. */
static void
set_steps(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t n_heads = member->h->n_delta_value_heads, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *a = member->work->delta_alpha + t * n_heads;
        float *b = member->work->delta_beta + t * n_heads;
        if (!lmq_is_state_space(member->h))
            member->kernels->sigmoid(b, n_heads);
        for (size_t i = 0; i < n_heads; i++) {
            float x = a[i] + part->delta_alpha.bias[i];
            float decay = part->delta_decay[i];
            double step = isfinite(x) ? lmq_softplus((double)x) : 0;
            if (lmq_is_state_space(member->h))
                b[i] = (float)step;
            a[i] = isfinite(x) && isfinite(decay)
                       ? decay_of((double)decay, step)
                       : NAN; /* which is noticed */
        }
    }
}

/* ---- The state ---- */

/* A token of a value head: what it has, and the state that it finds. */
struct token {
    const float *q, *k;  /* (key dim) */
    float *v, *z, *o;    /* (value dim) */
    float decay, beta;
    size_t head;
    float *s;            /* (key dim, value dim) */
};

/* o = q S, after S took it in. */
static void
delta_step(const struct lmq_member *member, const struct token *token)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t keys = member->h->delta_key_dim;
    size_t values = member->h->delta_value_dim;
    float *o = token->o, *v = token->v;

    kernels->recur(token->s, keys, values, token->decay, NULL, NULL, token->k,
                   o);                /* S *= decay; o = k S */
    kernels->axpy(v, o, values, -1);  /* d = v - o */
    kernels->scale(v, values, token->beta);
    kernels->recur(token->s, keys, values, 1, token->k, v, token->q,
                   o);                /* S += k d; o = q S */
    if (!member->h->has_bare_states)
        kernels->rmsnorm(o, member->layer->attention.delta_norm.weight, values,
                         (float)member->h->norm_eps, o);
    kernels->silu(token->z, values);
    kernels->mul(o, token->z, values); /* o = norm(o) silu(z) */
}

/* o = q S + D v, after S took it in. Value heads share keys, so each has its
 * time step with its values. */
static void
state_space_step(const struct lmq_member *member, const struct token *token)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t keys = member->h->delta_key_dim;
    size_t values = member->h->delta_value_dim;
    float *o = token->o;

    memcpy(o, token->v, values * sizeof(*o));
    kernels->scale(o, values, token->beta); /* o = step v */
    kernels->recur(token->s, keys, values, token->decay, token->k, o,
                   token->q, o); /* S = decay S + k o; o = q S */
    kernels->axpy(o, token->v, values,
                  member->layer->attention.state_skip[token->head]);
    kernels->silu(token->z, values);
    kernels->mul(o, token->z, values); /* o = (o + D v) silu(z) */
}

/* All tokens of one value head in one of the sequences. */
static void
walk_head(const struct lmq_member *member, size_t head, size_t sequence)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_work *work = member->work;
    size_t n_heads = h->n_delta_value_heads, values = h->delta_value_dim;
    size_t keys = h->delta_key_dim;
    size_t key_head = head / (n_heads / h->n_delta_key_heads);
    size_t length = lmq_member_length(member), first = sequence * length;
    float *s = member->kv[sequence].state + head * keys * values;
    struct token token = {.head = head, .s = s};

    if (member->position == 0)
        memset(s, 0, keys * values * sizeof(float));
    for (size_t t = first; t < first + length; t++) {
        size_t key = (t * h->n_delta_key_heads + key_head) * keys;
        size_t i = t * n_heads + head;
        token.q = work->q + key;
        token.k = work->k + key;
        token.v = work->v + i * values;
        token.z = work->attn_gate + i * values;
        token.o = work->attention + i * values;
        token.decay = work->delta_alpha[i];
        token.beta = work->delta_beta[i];
        if (lmq_is_state_space(member->h))
            state_space_step(member, &token);
        else
            delta_step(member, &token);
    }
}

/* attention = rmsnorm(attention), of the heads that share a key. */
static void
norm_shared(const struct lmq_member *member)
{
    const float *weight = member->layer->attention.delta_norm.weight;
    size_t n_norms = member->h->n_delta_key_heads, from, to;
    size_t span = lmq_delta_norm_span(member->h);

    lmq_member_share(member, member->n * n_norms, &from, &to);
    for (size_t i = from; i < to; i++) {
        float *o = member->work->attention + i * span;
        member->kernels->rmsnorm(o, weight + i % n_norms * span, span,
                                 (float)member->h->norm_eps, o);
    }
}

/* ---- All of it ---- */

static void
walk(const struct lmq_member *member)
{
    lmq_convolve_heads(member); /* q, k, v = silu(conv(q, k, v)) */
    set_steps(member);          /* a = decay, b = beta */
    lmq_barrier(member); /* a head reads all channels of a key */
    if (!lmq_is_state_space(member->h)) {
        set_lengths(member); /* q /= |q|, k /= |k| */
        lmq_barrier(member); /* a value head reads that of its keys */
    }
    for (size_t head = member->number; head < member->h->n_delta_value_heads;
         head += member->n_members)
        for (size_t i = 0; i < member->work->n_sequences; i++)
            walk_head(member, head, i);
    if (lmq_is_state_space(member->h) && !member->h->has_bare_states) {
        lmq_barrier(member); /* heads are normed together */
        norm_shared(member);
    }
}

void
lmq_recurrent_attention(const struct lmq_member *member,
                        struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;
    bool is_alone = lmq_layer_only_recurs(member->h, member->index);

    lmq_multiply(member, is_alone ? &part->q : &part->state_q, xn, work->q);
    lmq_multiply(member, is_alone ? &part->k : &part->state_k, xn, work->k);
    lmq_multiply(member, is_alone ? &part->v : &part->state_v, xn, work->v);
    if (part->delta_alpha.tensor != NULL)
        lmq_multiply(member, &part->delta_alpha, xn, work->delta_alpha);
    if (part->delta_beta.tensor != NULL)
        lmq_multiply(member, &part->delta_beta, xn, work->delta_beta);
    lmq_barrier(member); /* channels and tokens are cut otherwise */
    if (lmq_is_convolution(member->h))
        lmq_convolve_products(member); /* heads = q conv(k v) */
    else
        walk(member);
}
