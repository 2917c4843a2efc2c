/*
 * recurrent.c - layers that remember a state: the gated delta rule, as in Qwen
 * 3 Next and 3.5; the state space of Mamba 2, of Mamba 1; lightning attention,
 * as in MiniMax 01; the recurrence of RecurrentGemma, which has no keys; and
 * short convolutions, as in LFM 2, which need no more than convolve.c.
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
 *       d = scale sigmoid(b) (v - k S)
 *       S = S + k d
 *       o = q S
 *   attention = rmsnorm(o) * silu(z)        (n, value heads, value dim)
 *   where keys decay each for itself, row i of S is multiplied by
 *   exp(-exp(A) step[i]); gates may be sigmoids; z and a may be made by two
 *   matrices: z = W_gate (W_gate_a xn), a = W_alpha (W_alpha_a xn)
 *
 *   the state space
 *       S = decay S + k (step v)
 *       o = q S + D v
 *   attention = rmsnorm(o * silu(z))        over the heads that share a key
 *
 *   of which a selective one makes q, k and a = W_alpha (W_alpha_a v) of v,
 *   which alone goes through the convolution; and each key has a decay of its
 *   own: row i of S is multiplied by exp(-exp(A[i]) step)
 *
 *   lightning attention, without a convolution: q, k, v = silu(q, k, v)
 *       S = exp(-rate) S + k v              a rate of the layer and the head
 *       o = q S
 *   attention = rmsnorm(o) * sigmoid(z)     over all heads; or silu(z)
 *
 *   no keys, and of each value a state S: v = conv(v), without silu
 *       r = sigmoid(W_keep v), w = sigmoid(W_write v)     each head by itself
 *       S = left S + sqrt(1 - left^2) w v                 left = exp(-rate r)
 *   attention = S * act(z)
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
#include "runtime/layer/feed.h"
#include "runtime/layer/norm.h"

/* What is added to the square of a length, so that none is 0. */
#define LENGTH_EPS 1e-6f

/* Of the norms of what states give. */
static float
state_eps(const struct lmq_hparams *h)
{
    return (float)(h->state_eps > 0 ? h->state_eps : h->norm_eps);
}

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

/* So little counts as nothing: products with it would be subnormal numbers, for
 * which processors take a hundred times as long. */
#define LEAST_LEFT 0x1p-64f

/* A sigmoid of more is 1, or next to nothing. */
#define MOST_RATE 80.0f

/* What each token leaves of a lightning state. */
static float
fixed_decay(const struct lmq_member *member, size_t head)
{
    double left = lmq_exp(-lmq_decay_rate(member->h, member->index, head));

    return left < (double)LEAST_LEFT ? 0 : (float)left;
}

/* What a time step leaves of the state. */
static float
decay_of(float decay, float step)
{
    if (!isfinite(step) || !isfinite(decay))
        return NAN; /* which is noticed */
    double rate = lmq_exp((double)decay);
    double left = step > 0 ? lmq_exp(-rate * (double)step) : 1;

    return left < (double)LEAST_LEFT ? 0 : (float)left;
}

/* The same of all keys of a value head. */
static void
set_key_decays(const struct lmq_member *member, float decay, float *steps)
{
    size_t n = member->h->delta_key_dim;
    float rate = isfinite(decay) ? (float)lmq_exp((double)decay) : NAN;

    for (size_t i = 0; i < n; i++)
        steps[i] = !isfinite(steps[i]) ? NAN
                   : steps[i] > 0      ? -rate * steps[i]
                                       : 0;
    member->kernels->exp(steps, n);
    for (size_t i = 0; i < n; i++)
        if (steps[i] < LEAST_LEFT)
            steps[i] = 0;
}

/* exp(-floor sigmoid(exp(A) a)): of all that share A. */
static void
set_decays_above(const struct lmq_member *member, float decay, float *a,
                 size_t n)
{
    const struct lmq_kernels *kernels = member->kernels;
    float rate = isfinite(decay) ? (float)lmq_exp((double)decay) : NAN;

    for (size_t i = 0; i < n; i++) {
        float x = rate * a[i]; /* which may be too large */
        a[i] = !isfinite(a[i]) || isnan(rate) ? NAN
               : a[i] == 0                     ? 0
               : x > MOST_RATE                 ? MOST_RATE
               : x < -MOST_RATE                ? -MOST_RATE
                                               : x;
    }
    kernels->sigmoid(a, n);
    kernels->scale(a, n, -(float)member->h->decay_floor);
    kernels->exp(a, n);
    for (size_t i = 0; i < n; i++)
        if (a[i] < LEAST_LEFT)
            a[i] = 0;
}

/* a = exp(-exp(A) step), step = softplus(a + bias), or with a floor
 * exp(-floor sigmoid(exp(A) (a + bias))): what a token leaves of the state; or
 * of a selective one the step itself. b = scale sigmoid(b), or the step: how
 * much it writes. */
static void
set_steps(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_kernels *kernels = member->kernels;
    size_t n_heads = member->h->n_delta_value_heads, from, to;
    size_t n_steps = lmq_delta_steps(member->h), n_keys = n_steps / n_heads;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *a = member->work->delta_alpha + t * n_steps;
        float *b = member->work->delta_beta + t * n_heads;
        kernels->add(a, part->delta_alpha.bias, n_steps);
        if (!(member->h->decay_floor > 0))
            kernels->softplus(a, n_steps);
        if (lmq_is_selective(member->h))
            continue;
        if (lmq_is_state_space(member->h)) {
            memcpy(b, a, n_heads * sizeof(*b));
        } else {
            kernels->sigmoid(b, n_heads);
            kernels->scale(b, n_heads, (float)member->h->beta_scale);
        }
        for (size_t i = 0; i < n_heads; i++)
            if (member->h->decay_floor > 0)
                set_decays_above(member, part->delta_decay[i], a + i * n_keys,
                                 n_keys);
            else if (member->h->has_key_decays)
                set_key_decays(member, part->delta_decay[i], a + i * n_keys);
            else
                a[i] = decay_of(part->delta_decay[i], a[i]);
    }
}

/* ---- The state ---- */

/* A token of a value head: what it has, and the state that it finds. */
struct token {
    const float *q, *k;  /* (key dim) */
    float *v, *z, *o;    /* (value dim) */
    const float *decay;  /* one, or (key dim) */
    float beta;
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
    const float whole = 1;
    float *o = token->o, *v = token->v;

    kernels->recur(token->s, keys, values, token->decay,
                   member->h->has_key_decays, NULL, NULL, token->k,
                   o);                /* S *= decay; o = k S */
    kernels->axpy(v, o, values, -1);  /* d = v - o */
    kernels->scale(v, values, token->beta);
    kernels->recur(token->s, keys, values, &whole, false, token->k, v,
                   token->q, o);      /* S += k d; o = q S */
    if (!member->h->has_bare_states)
        kernels->rmsnorm(o, member->layer->attention.delta_norm.weight, values,
                         state_eps(member->h), o);
    if (member->h->has_sigmoid_gates)
        kernels->sigmoid(token->z, values);
    else
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
    kernels->recur(token->s, keys, values, token->decay, false, token->k, o,
                   token->q, o); /* S = decay S + k o; o = q S */
    kernels->axpy(o, token->v, values,
                  member->layer->attention.state_skip[token->head]);
    kernels->silu(token->z, values);
    kernels->mul(o, token->z, values); /* o = (o + D v) silu(z) */
}

/* o = q S, after S took it in. */
static void
lightning_step(const struct lmq_member *member, const struct token *token)
{
    member->kernels->recur(token->s, member->h->delta_key_dim,
                           member->h->delta_value_dim, token->decay, false,
                           token->k, token->v, token->q,
                           token->o); /* S = decay S + k v; o = q S */
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
    size_t n_decays = lmq_delta_steps(h) / n_heads;
    float *s = member->kv[sequence].state + head * keys * values;
    bool is_lightning = lmq_is_lightning(h);
    float fixed = is_lightning ? fixed_decay(member, head) : 0;
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
        token.decay = is_lightning ? &fixed : work->delta_alpha + i * n_decays;
        token.beta = is_lightning ? 1 : work->delta_beta[i];
        if (is_lightning)
            lightning_step(member, &token);
        else if (lmq_is_state_space(member->h))
            state_space_step(member, &token);
        else
            delta_step(member, &token);
    }
}

/* All tokens of some value heads in one of the sequences, of which each key
 * decays for itself: o = (q S + D v) silu(z), after S took it in. */
static void
walk_piece(const struct lmq_member *member,
           const struct lmq_state_piece *piece, size_t sequence)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_work *work = member->work;
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t keys = h->delta_key_dim, at = piece->first * keys;
    size_t length = lmq_member_length(member), begin = sequence * length;
    float *s = member->kv[sequence].state + at;

    if (member->position == 0)
        memset(s, 0, keys * piece->size * sizeof(*s));
    for (size_t t = begin; t < begin + length; t++) {
        size_t i = t * h->n_delta_value_heads + piece->first;
        size_t key = (t * h->n_delta_key_heads + piece->key_head) * keys;
        float *o = work->attention + i, *z = work->attn_gate + i;
        const struct lmq_selection given = {
            .rates = part->delta_decay + at,
            .k = work->k + key,
            .q = work->q + key,
            .v = work->v + i,
            .steps = work->delta_alpha + i,
            .skip = part->state_skip + piece->first,
        };
        member->kernels->select(s, keys, piece->size, &given, o);
        member->kernels->silu(z, piece->size);
        member->kernels->mul(o, z, piece->size);
    }
}

/* attention = rmsnorm(attention), of the heads that share a key; or of all. */
static void
norm_shared(const struct lmq_member *member)
{
    const float *weight = member->layer->attention.delta_norm.weight;
    size_t span = lmq_delta_norm_span(member->h), from, to;
    size_t n_norms = lmq_delta_value_width(member->h) / span;

    lmq_member_share(member, member->n * n_norms, &from, &to);
    for (size_t i = from; i < to; i++) {
        float *o = member->work->attention + i * span;
        member->kernels->rmsnorm(o, weight + i % n_norms * span, span,
                                 state_eps(member->h), o);
    }
}

/* ---- Lightning attention ---- */

/* q, k, v = silu(q, k, v): each token's own. */
static void
activate_heads(const struct lmq_member *member)
{
    const struct lmq_work *work = member->work;
    size_t keys = lmq_delta_key_width(member->h), from, to;
    size_t values = lmq_delta_value_width(member->h);

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        member->kernels->silu(work->q + t * keys, keys);
        member->kernels->silu(work->k + t * keys, keys);
        member->kernels->silu(work->v + t * values, values);
    }
}

/* attention = norm(attention) * sigmoid(z), or silu(z). */
static void
norm_and_gate(const struct lmq_member *member)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t width = lmq_delta_value_width(member->h), from, to;

    if (!member->h->has_bare_states)
        norm_shared(member);
    lmq_barrier(member); /* tokens are cut otherwise than heads */
    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *z = member->work->attn_gate + t * width;
        if (member->h->has_sigmoid_gates)
            kernels->sigmoid(z, width);
        else
            kernels->silu(z, width);
        kernels->mul(member->work->attention + t * width, z, width);
    }
}

/* ---- Without keys ---- */

/* out = sigmoid(W_head x), of the values of one head. */
static void
gate_values(const struct lmq_member *member, const struct lmq_gain *gate,
            size_t head, const float *x, float *out)
{
    size_t dim = member->h->delta_value_dim, first = head * dim;

    for (size_t i = 0; i < dim; i++)
        out[i] = member->kernels->dot(gate->weight + (first + i) * dim, x, dim);
    if (gate->bias != NULL)
        member->kernels->add(out, gate->bias + first, dim);
    member->kernels->sigmoid(out, dim);
}

/* S = left S + sqrt(1 - left^2) w x, with left = exp(rate r), and o = S; the
 * first token of all is added as it is. In doubles, as hardly anything is
 * added where hardly anything decays. */
static void
values_step(const struct lmq_member *member, size_t head, bool is_first,
            const float *r, const float *w, const float *x, float *s, float *o)
{
    size_t dim = member->h->delta_value_dim;
    const float *rates = member->layer->attention.delta_decay + head * dim;

    for (size_t i = 0; i < dim; i++) {
        double rate = (double)rates[i] * (double)r[i];
        double left = isfinite(rate) ? lmq_exp(rate) : (double)NAN;
        double added = is_first ? 1 : sqrt(1 - left * left);
        if (left < (double)LEAST_LEFT)
            left = 0;
        float kept = (float)left * s[i];
        s[i] = kept + (float)added * (w[i] * x[i]);
        o[i] = s[i];
    }
}

/* All tokens of one head in one of the sequences. */
static void
walk_values(const struct lmq_member *member, size_t head, size_t sequence)
{
    const struct lmq_work *work = member->work;
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t dim = member->h->delta_value_dim;
    size_t width = lmq_delta_value_width(member->h);
    size_t length = lmq_member_length(member), begin = sequence * length;
    float *s = member->kv[sequence].state + head * dim;

    if (member->position == 0)
        memset(s, 0, dim * sizeof(*s));
    for (size_t t = begin; t < begin + length; t++) {
        size_t at = t * width + head * dim;
        const float *x = work->v + at;
        float *r = work->delta_alpha + at, *w = work->delta_beta + at;
        float *o = work->attention + at, *z = work->attn_gate + at;
        gate_values(member, &part->keep_gate, head, x, r);
        gate_values(member, &part->write_gate, head, x, w);
        values_step(member, head, member->position == 0 && t == begin, r, w, x,
                    s, o);
        if (part->gate.bias != NULL)
            member->kernels->add(z, part->gate.bias + head * dim, dim);
        for (size_t i = 0; i < dim; i += LMQ_ROW_PIECE)
            lmq_activate(member, z + i, lmq_size_min(LMQ_ROW_PIECE, dim - i));
        member->kernels->mul(o, z, dim); /* o = S act(z) */
    }
}

static void
convolve_and_walk_values(const struct lmq_member *member,
                         struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t width = lmq_delta_value_width(member->h), from, to;

    lmq_multiply(member, &part->v, xn, member->work->v);
    lmq_multiply(member, &part->gate, xn, member->work->attn_gate);
    lmq_barrier(member); /* tokens are cut otherwise */
    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to && part->v.bias != NULL; t++)
        member->kernels->add(member->work->v + t * width, part->v.bias, width);
    lmq_barrier(member);        /* channels are cut otherwise */
    lmq_convolve_heads(member); /* v = conv(v) */
    lmq_barrier(member);        /* a head reads all its values */
    for (size_t i = member->number; i < member->h->n_delta_value_heads;
         i += member->n_members)
        for (size_t j = 0; j < member->work->n_sequences; j++)
            walk_values(member, i, j);
}

/* ---- All of it ---- */

static void
walk_heads(const struct lmq_member *member)
{
    size_t n_heads = member->h->n_delta_value_heads;
    struct lmq_state_piece piece;

    if (lmq_is_selective(member->h))
        for (size_t i = member->number;
             lmq_state_piece_at(member->h, i, &piece); i += member->n_members)
            for (size_t j = 0; j < member->work->n_sequences; j++)
                walk_piece(member, &piece, j);
    else
        for (size_t i = member->number; i < n_heads; i += member->n_members)
            for (size_t j = 0; j < member->work->n_sequences; j++)
                walk_head(member, i, j);
}

static void
walk_lightning(const struct lmq_member *member)
{
    activate_heads(member);
    lmq_barrier(member); /* a head reads its part of all tokens */
    walk_heads(member);
    lmq_barrier(member); /* all heads are normed together */
    norm_and_gate(member);
}

static void
walk(const struct lmq_member *member)
{
    set_steps(member);   /* a = decay, b = beta */
    lmq_barrier(member); /* a head reads all channels of a key */
    if (!lmq_is_state_space(member->h)) {
        set_lengths(member); /* q /= |q|, k /= |k| */
        lmq_barrier(member); /* a value head reads that of its keys */
    }
    walk_heads(member);
    if (lmq_is_state_space(member->h) && !member->h->has_bare_states) {
        lmq_barrier(member); /* heads are normed together */
        norm_shared(member);
    }
}

/* The latents of time steps, keys and queries by their root mean squares. */
static void
norm_made(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_work *work = member->work;
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t n_keys = h->n_delta_key_heads, key = h->delta_key_dim, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        lmq_norm_latents(h, &part->delta_alpha_norm,
                         work->step_latents + t * h->step_rank, h->step_rank);
    lmq_member_share(member, member->n * n_keys, &from, &to);
    for (size_t i = from; i < to; i++) {
        lmq_norm_latents(h, &part->delta_k_norm, work->k + i * key, key);
        lmq_norm_latents(h, &part->delta_q_norm, work->q + i * key, key);
    }
}

/* Keys, queries and time steps of the values behind the convolution. */
static void
make_of_values(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;
    struct lmq_operand v = /* (n, value heads * value dim) */
        lmq_operand_of(member, work->v, lmq_delta_value_width(member->h));
    struct lmq_operand latents = /* (n, step_rank) */
        lmq_operand_of(member, work->step_latents, member->h->step_rank);

    lmq_multiply(member, &part->delta_alpha_a, &v, work->step_latents);
    lmq_multiply(member, &part->k, &v, work->k);
    lmq_multiply(member, &part->q, &v, work->q);
    lmq_barrier(member); /* norms and products read whole rows */
    if (member->h->has_step_norms) {
        norm_made(member);
        lmq_barrier(member); /* all read all latents */
    }
    lmq_multiply(member, &part->delta_alpha, &latents, work->delta_alpha);
    lmq_barrier(member); /* heads and tokens are cut otherwise */
}

/* Queries, keys, values, gates and time steps of the layer's input; gates and
 * time steps perhaps of latents. */
static void
make_of_input(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;
    bool is_alone = lmq_layer_only_recurs(member->h, member->index);
    bool has_latents = false;
    const struct {
        const struct lmq_matrix *first, *last; /* or last alone, or neither */
        float *latents, *out;
    } made[] = {
        {&part->gate_a, is_alone ? &part->gate : &part->state_gate,
         work->gate_latents, work->attn_gate},
        {&part->delta_alpha_a, &part->delta_alpha, work->step_latents,
         work->delta_alpha},
    };

    lmq_multiply(member, is_alone ? &part->q : &part->state_q, xn, work->q);
    lmq_multiply(member, is_alone ? &part->k : &part->state_k, xn, work->k);
    lmq_multiply(member, is_alone ? &part->v : &part->state_v, xn, work->v);
    if (part->delta_beta.tensor != NULL)
        lmq_multiply(member, &part->delta_beta, xn, work->delta_beta);
    for (size_t i = 0; i < 2; i++)
        if (made[i].first->tensor != NULL)
            lmq_multiply(member, made[i].first, xn, made[i].latents);
        else if (made[i].last->tensor != NULL)
            lmq_multiply(member, made[i].last, xn, made[i].out);
    lmq_barrier(member); /* channels and tokens are cut otherwise */
    for (size_t i = 0; i < 2; i++) {
        struct lmq_operand latents = lmq_operand_of(member, made[i].latents,
                                                    made[i].first->n_rows);
        if (made[i].first->tensor == NULL)
            continue;
        lmq_multiply(member, made[i].last, &latents, made[i].out);
        has_latents = true;
    }
    if (has_latents)
        lmq_barrier(member); /* likewise */
}

/* Of a selective state space. */
static void
select_and_walk(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;

    lmq_multiply(member, &part->v, xn, member->work->v);
    lmq_multiply(member, &part->gate, xn, member->work->attn_gate);
    lmq_barrier(member);        /* channels are cut otherwise */
    lmq_convolve_heads(member); /* v = silu(conv(v)) */
    lmq_barrier(member);        /* all read all of v */
    make_of_values(member);     /* k, q, a */
    walk(member);
}

void
lmq_recurrent_attention(const struct lmq_member *member,
                        struct lmq_operand *xn)
{
    if (lmq_is_selective(member->h)) {
        select_and_walk(member, xn);
        return;
    }
    if (lmq_is_lru(member->h)) {
        convolve_and_walk_values(member, xn);
        return;
    }
    make_of_input(member, xn); /* q, k, v, z, a, b */
    if (lmq_is_convolution(member->h)) {
        lmq_convolve_products(member); /* heads = q conv(k v) */
        return;
    }
    if (lmq_is_lightning(member->h)) {
        walk_lightning(member);
        return;
    }
    lmq_convolve_heads(member); /* q, k, v = silu(conv(q, k, v)) */
    walk(member);
}
