/*
 * forward.c - the forward pass of a decoder-only model, from top to bottom.
 *
 *   embed -> layers x (norm, attention, add, norm, feed-forward, add)
 *         -> norm -> head
 *
 * All threads walk through the same lines; each takes its share of every
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
attention_input(const struct lmq_walker *walker)
{
    return walker->h->norm_place == LMQ_NORMS_AFTER ? walker->work->x
                                                    : walker->work->norm;
}

static float *
feed_input(const struct lmq_walker *walker)
{
    return has_two_inputs(walker->h) ? walker->work->feed_norm
                                     : attention_input(walker);
}

/* A block's input for token t: the norm of the stream, or the stream. */
static void
make_input(const struct lmq_walker *walker, const struct lmq_gain *gain,
           size_t t, float *input)
{
    size_t dim = walker->h->dim;
    const float *x = walker->work->x + t * dim;

    if (walker->h->norm_place != LMQ_NORMS_AFTER)
        lmq_norm(walker->h, gain, x, dim, input + t * dim);
    else if (input != walker->work->x)
        memcpy(input + t * dim, x, dim * sizeof(*x));
}

/* The stream takes up what a block has given for token t. */
static void
take_up(const struct lmq_walker *walker, const float *bias,
        const struct lmq_gain *post_norm, size_t t)
{
    const struct lmq_kernels *kernels = walker->kernels;
    size_t dim = walker->h->dim;
    float scale = (float)walker->h->residual_scale;
    float *x = walker->work->x + t * dim, *out = walker->work->out + t * dim;

    if (walker->h->norm_place != LMQ_NORMS_BEFORE) {
        if (bias != NULL)
            kernels->add(out, bias, dim);
        lmq_norm(walker->h, post_norm, out, dim, out);
        bias = NULL;
    }
    kernels->axpy(x, out, dim, scale);
    if (bias != NULL)
        kernels->axpy(x, bias, dim, scale);
}

static void
begin_layer(const struct lmq_walker *walker)
{
    const struct lmq_layer *layer = walker->layer;
    size_t from, to;

    lmq_walker_share(walker, walker->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        make_input(walker, &layer->attention.norm, t, attention_input(walker));
        if (has_two_inputs(walker->h))
            make_input(walker, &layer->feed.norm, t, feed_input(walker));
    }
}

static void
end_attention(const struct lmq_walker *walker)
{
    const struct lmq_layer *layer = walker->layer;
    size_t from, to;

    lmq_walker_share(walker, walker->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        take_up(walker, layer->attention.out.bias,
                &layer->attention.post_norm, t);
        if (!is_parallel(walker->h))
            make_input(walker, &layer->feed.norm, t, feed_input(walker));
    }
}

static void
end_feed(const struct lmq_walker *walker)
{
    const struct lmq_feed_part *feed = &walker->layer->feed;
    size_t from, to;

    lmq_walker_share(walker, walker->n, &from, &to);
    for (size_t t = from; t < to; t++)
        take_up(walker, feed->dense.down.bias, &feed->post_norm, t);
}

/* ---- The blocks ---- */

/* work->out, without the bias. */
static void
attention(const struct lmq_walker *walker)
{
    const struct lmq_matrix *out = &walker->layer->attention.out;
    struct lmq_operand x =
        lmq_operand_of(walker, attention_input(walker), walker->h->dim);
    struct lmq_operand mixed =
        lmq_operand_of(walker, walker->work->attention, out->n_cols);

    if (walker->h->kv_lora_rank > 0)
        lmq_latent_attention(walker, &x);
    else
        lmq_heads_attention(walker, &x);
    lmq_barrier(walker);
    lmq_multiply(walker, out, &mixed, walker->work->out);
}

/* work->out, of a single network without the bias. */
static void
feed_forward(const struct lmq_walker *walker)
{
    struct lmq_operand x =
        lmq_operand_of(walker, feed_input(walker), walker->h->dim);

    if (lmq_layer_has_experts(walker->h, walker->index))
        lmq_experts(walker, x.x, walker->work->out);
    else
        lmq_ffn(walker, &walker->layer->feed.dense, &x, walker->work->out);
}

/* ---- The skeleton ---- */

void
lmq_forward_embed(const struct lmq_model *model, struct lmq_work *work,
                  const int32_t *tokens, size_t n, size_t position)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    const struct lmq_hparams *h = &model->hparams;
    float *learned = work->norm; /* is free */

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
struct walk {
    const struct lmq_model *model;
    struct lmq_work *work;
    size_t n, position;
    size_t index;      /* of the layer */
    struct lmq_kv *kv; /* its */
    float *x, *logits; /* of the head */
};

static void
walk_layer(void *context, size_t number, size_t n_walkers)
{
    const struct walk *walk = context;
    struct lmq_walker walker =
        lmq_walker_make(walk->model, walk->work, walk->n, walk->position,
                        number, n_walkers);

    walker.layer = &walk->model->layers[walk->index];
    walker.index = walk->index;
    walker.kv = walk->kv;
    begin_layer(&walker);
    lmq_barrier(&walker);
    attention(&walker);
    lmq_barrier(&walker);
    end_attention(&walker);
    lmq_barrier(&walker);
    feed_forward(&walker);
    lmq_barrier(&walker);
    end_feed(&walker);
}

void
lmq_forward_layer(const struct lmq_model *model, size_t index,
                  struct lmq_kv *kv, struct lmq_work *work, size_t n,
                  size_t position)
{
    struct walk walk = {.model = model, .work = work, .n = n,
                        .position = position, .index = index, .kv = kv};

    lmq_work_turn_to(work, &model->hparams, n, position);
    lmq_team_run(work->team, lmq_work_members(work, work->layer_weights, n),
                 walk_layer, &walk);
}

/* What the head gave becomes logits. */
static void
finish_logits(const struct lmq_walker *walker, float *logits)
{
    const struct lmq_hparams *h = walker->h;
    const float *bias = walker->model->head.bias;
    size_t width = h->vocab_size, from, to;

    lmq_walker_share(walker, walker->n * lmq_pieces_per_row(width), &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_piece piece = lmq_piece_at(i, width);
        float *x = logits + piece.row * width + piece.column;
        if (bias != NULL)
            walker->kernels->add(x, bias + piece.column, piece.size);
        if (h->logit_scale != 1)
            walker->kernels->scale(x, piece.size, (float)h->logit_scale);
        if (h->logit_softcap > 0)
            walker->kernels->softcap(x, piece.size, (float)h->logit_softcap);
    }
}

static void
walk_head(void *context, size_t number, size_t n_walkers)
{
    const struct walk *walk = context;
    const struct lmq_model *model = walk->model;
    const struct lmq_hparams *h = &model->hparams;
    struct lmq_walker walker = lmq_walker_make(model, walk->work, walk->n, 0,
                                               number, n_walkers);
    float *norm = walk->work->norm;
    struct lmq_operand last = lmq_operand_of(&walker, norm, h->dim);
    bool is_finished = model->head.bias == NULL && h->logit_scale == 1 &&
                       h->logit_softcap == 0;
    size_t from, to;

    lmq_walker_share(&walker, walk->n, &from, &to);
    for (size_t t = from; t < to; t++)
        lmq_norm(h, &model->output_norm, walk->x + t * h->dim, h->dim,
                 norm + t * h->dim);
    lmq_barrier(&walker);
    lmq_multiply(&walker, &model->head, &last, walk->logits);
    if (!is_finished) {
        lmq_barrier(&walker);
        finish_logits(&walker, walk->logits);
    }
}

void
lmq_forward_head(const struct lmq_model *model, struct lmq_work *work,
                 size_t n, size_t n_last, float *logits)
{
    struct walk walk = {.model = model, .work = work, .n = n_last,
                        .x = work->x + (n - n_last) * model->hparams.dim,
                        .logits = logits};
    double weights = (double)model->head.n_rows * (double)model->head.n_cols;

    lmq_team_run(work->team, lmq_work_members(work, weights, n_last),
                 walk_head, &walk);
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
