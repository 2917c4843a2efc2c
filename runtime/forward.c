/*
 * forward.c - the forward pass of a decoder-only model, from top to bottom.
 *
 *   embed -> layers x (norm, attention, add, norm, feed-forward, add)
 *         -> norm -> head
 *
 * All threads go through the same lines; each takes its share of every
 * step, and a barrier stands where a step needs what others have done. The
 * arithmetic is the kernels' and its order does not depend on the shares.
 *
 * What a model does differently stands in its description, and is a small
 * function here or beside: heads.c, latent.c, attention.c, feed.c, experts.c,
 * router.c, norm.c, rope.c.
 */
#include "config.h"

#include "runtime/forward.h"

#include <string.h>

#include "runtime/experts.h"
#include "runtime/feed.h"
#include "runtime/heads.h"
#include "runtime/latent.h"
#include "runtime/norm.h"

/* ---- Between the blocks ---- */

static bool
is_parallel(const struct lmq_hparams *h)
{
    return h->residual != LMQ_RESIDUAL_SEQUENTIAL;
}

/* Whether both blocks' inputs are made before attention, and differ: the
 * stream itself will have changed when the feed-forward looks at it. */
static bool
has_two_inputs(const struct lmq_hparams *h)
{
    return h->residual == LMQ_RESIDUAL_PARALLEL ||
           (is_parallel(h) && h->norm_place == LMQ_NORMS_AFTER);
}

/* Where the inputs of attention and of the feed-forward stand. */
static float *
attention_input(const struct lmq_member *member)
{
    return member->h->norm_place == LMQ_NORMS_AFTER ? member->work->x
                                                    : member->work->xn;
}

static float *
feed_input(const struct lmq_member *member)
{
    return has_two_inputs(member->h) ? member->work->feed_xn
                                     : attention_input(member);
}

/* A block's input for token t: the norm of the stream, or the stream. */
static void
make_input(const struct lmq_member *member, const struct lmq_gain *gain,
           size_t t, float *input)
{
    size_t dim = member->h->dim;
    const float *x = member->work->x + t * dim;

    if (member->h->norm_place != LMQ_NORMS_AFTER)
        lmq_norm(member->h, gain, x, dim, input + t * dim);
    else if (input != member->work->x)
        memcpy(input + t * dim, x, dim * sizeof(*x));
}

/* The stream takes up what a block has given for token t. */
static void
take_up(const struct lmq_member *member, const float *bias,
        const struct lmq_gain *post_norm, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim;
    float scale = (float)member->h->residual_scale;
    float *x = member->work->x + t * dim, *out = member->work->out + t * dim;

    if (member->h->norm_place != LMQ_NORMS_BEFORE) {
        if (bias != NULL)
            kernels->add(out, bias, dim);
        lmq_norm(member->h, post_norm, out, dim, out);
        bias = NULL;
    }
    kernels->axpy(x, out, dim, scale);
    if (bias != NULL)
        kernels->axpy(x, bias, dim, scale);
}

static void
begin_layer(const struct lmq_member *member)
{
    const struct lmq_layer *layer = member->layer;
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        make_input(member, &layer->attention.norm, t, attention_input(member));
        if (has_two_inputs(member->h))
            make_input(member, &layer->feed.norm, t, feed_input(member));
    }
}

static void
end_attention(const struct lmq_member *member)
{
    const struct lmq_layer *layer = member->layer;
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        take_up(member, layer->attention.out.bias,
                &layer->attention.post_norm, t);
        if (!is_parallel(member->h))
            make_input(member, &layer->feed.norm, t, feed_input(member));
    }
}

static void
end_feed(const struct lmq_member *member)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        take_up(member, feed->dense.down.bias, &feed->post_norm, t);
}

/* ---- The blocks ---- */

/* work->out, without the bias. */
static void
attention(const struct lmq_member *member)
{
    const struct lmq_matrix *out = &member->layer->attention.out;
    struct lmq_operand x =
        lmq_operand_of(member, attention_input(member), member->h->dim);
    struct lmq_operand mixed =
        lmq_operand_of(member, member->work->attention, out->n_cols);

    if (member->h->kv_lora_rank > 0)
        lmq_latent_attention(member, &x);
    else
        lmq_heads_attention(member, &x);
    lmq_barrier(member);
    lmq_multiply(member, out, &mixed, member->work->out);
}

/* work->out, of a single network without the bias. */
static void
feed_forward(const struct lmq_member *member)
{
    struct lmq_operand x =
        lmq_operand_of(member, feed_input(member), member->h->dim);

    if (lmq_layer_has_experts(member->h, member->index))
        lmq_experts(member, x.x, member->work->out);
    else
        lmq_ffn(member, &member->layer->feed.dense, &x, member->work->out);
}

/* ---- The skeleton ---- */

void
lmq_forward_embed(const struct lmq_model *model, struct lmq_work *work,
                  const int32_t *tokens, size_t n, size_t position)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    const struct lmq_hparams *h = &model->hparams;
    float *learned = work->xn; /* is free */

    for (size_t t = 0; t < n; t++) {
        float *x = work->x + t * h->dim;
        lmq_matrix_row(&model->embedding, (size_t)tokens[t], x);
        if (h->embedding_scale != 1)
            kernels->scale(x, h->dim, (float)h->embedding_scale);
        if (h->positions == LMQ_POSITIONS_LEARNED) {
            lmq_matrix_row(&model->positions, position + t, learned);
            kernels->add(x, learned, h->dim);
        }
    }
}

/* What the members of a team are given. */
struct job {
    const struct lmq_model *model;
    struct lmq_work *work;
    size_t n, position;
    size_t index;      /* of the layer */
    struct lmq_kv *kv; /* its */
    float *x, *logits; /* of the head */
};

static void
layer_part(void *context, size_t number, size_t n_members)
{
    const struct job *job = context;
    struct lmq_member member =
        lmq_member_make(job->model, job->work, job->n, job->position,
                        number, n_members);

    member.layer = &job->model->layers[job->index];
    member.index = job->index;
    member.kv = job->kv;
    begin_layer(&member);
    lmq_barrier(&member);
    attention(&member);
    lmq_barrier(&member);
    end_attention(&member);
    lmq_barrier(&member);
    feed_forward(&member);
    lmq_barrier(&member);
    end_feed(&member);
}

void
lmq_forward_layer(const struct lmq_model *model, size_t index,
                  struct lmq_kv *kv, struct lmq_work *work, size_t n,
                  size_t position)
{
    struct job job = {.model = model, .work = work, .n = n,
                        .position = position, .index = index, .kv = kv};

    lmq_work_set_positions(work, &model->hparams, n, position);
    lmq_team_run(work->team, lmq_work_members(work, work->layer_weights, n),
                 layer_part, &job);
}

/* What the head gave becomes logits. */
static void
finish_logits(const struct lmq_member *member, float *logits)
{
    const struct lmq_hparams *h = member->h;
    const float *bias = member->model->head.bias;
    size_t width = h->vocab_size, from, to;

    lmq_member_share(member, member->n * lmq_pieces_per_row(width), &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_piece piece = lmq_piece_at(i, width);
        float *x = logits + piece.row * width + piece.column;
        if (bias != NULL)
            member->kernels->add(x, bias + piece.column, piece.size);
        if (h->logit_scale != 1)
            member->kernels->scale(x, piece.size, (float)h->logit_scale);
        if (h->logit_softcap > 0)
            member->kernels->softcap(x, piece.size, (float)h->logit_softcap);
    }
}

static void
head_part(void *context, size_t number, size_t n_members)
{
    const struct job *job = context;
    const struct lmq_model *model = job->model;
    const struct lmq_hparams *h = &model->hparams;
    struct lmq_member member = lmq_member_make(model, job->work, job->n, 0,
                                               number, n_members);
    float *norm = job->work->xn;
    struct lmq_operand last = lmq_operand_of(&member, norm, h->dim);
    bool is_finished = model->head.bias == NULL && h->logit_scale == 1 &&
                       h->logit_softcap == 0;
    size_t from, to;

    lmq_member_share(&member, job->n, &from, &to);
    for (size_t t = from; t < to; t++)
        lmq_norm(h, &model->output_norm, job->x + t * h->dim, h->dim,
                 norm + t * h->dim);
    lmq_barrier(&member);
    lmq_multiply(&member, &model->head, &last, job->logits);
    if (!is_finished) {
        lmq_barrier(&member);
        finish_logits(&member, job->logits);
    }
}

void
lmq_forward_head(const struct lmq_model *model, struct lmq_work *work,
                 size_t n, size_t n_last, float *logits)
{
    struct job job = {.model = model, .work = work, .n = n_last,
                        .x = work->x + (n - n_last) * model->hparams.dim,
                        .logits = logits};
    double weights = (double)model->head.n_rows * (double)model->head.n_cols;

    lmq_team_run(work->team, lmq_work_members(work, weights, n_last),
                 head_part, &job);
}

bool
lmq_is_finite(const float *x, size_t n)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000;
}
