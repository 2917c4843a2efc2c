/*
 * forward.c - the forward pass of a decoder-only model, from top to bottom.
 *
 *   x = embed(tokens)                                        (n, dim)
 *   and streams beside it, in some models: streams.c (with hyper-connections
 *   a block's x is a sum of all, and what is added goes to all)
 *   for each layer:
 *       xn = norm(x)                                         (n, dim)
 *       x += attention(xn): heads.c, latent.c, shared.c,     (n, dim),
 *            recurrent.c, or two of them
 *       xn = norm(x)                                         (n, dim)
 *       x += feed_forward(xn): feed.c, or experts.c          (n, dim)
 *       x += of its own input, x *= scale: inputs.c          (n, dim)
 *   logits = head norm(x)                                    (n, vocab)
 *
 * Of tokens whose logits nobody wants, the last layer needs keys and values
 * only.
 *
 * n tokens go through together. All members of the team go through the same
 * lines; each takes its share of every step, and a barrier stands where a
 * step needs what others have done. The arithmetic is the kernels' and its
 * order does not depend on the shares.
 *
 * The model's description says where the norms stand, whether both blocks look
 * at the same x, and which layers have one of them only; the formulas are of
 * the usual case.
 */
#include "config.h"

#include "runtime/forward.h"

#include <string.h>
#include <sys/resource.h>

#include "base/bytes.h"
#include "formats/grams/grams.h"
#include "runtime/layer/experts.h"
#include "runtime/layer/feed.h"
#include "runtime/layer/gating.h"
#include "runtime/layer/heads.h"
#include "runtime/pools/heads_out.h"
#include "runtime/pools/indexer.h"
#include "runtime/layer/inputs.h"
#include "runtime/layer/latent.h"
#include "runtime/layer/norm.h"
#include "runtime/layer/recurrent.h"
#include "runtime/pools/shared.h"
#include "runtime/layer/streams.h"
#include "runtime/product.h"
#include "runtime/stream/gated.h"
#include "runtime/stream/sequences.h"
#include "runtime/stream/sum.h"

/* ---- The residual stream ---- */

static bool
is_parallel(const struct lmq_hparams *h)
{
    return h->residual != LMQ_RESIDUAL_SEQUENTIAL;
}

static enum lmq_norm_place
norm_place(const struct lmq_member *member)
{
    return lmq_layer_norm_place(member->h, member->index);
}

/* Whether both blocks' inputs are made before attention, and differ: x itself
 * will have changed when the feed-forward looks at it. */
static bool
has_two_inputs(const struct lmq_member *member)
{
    return member->h->residual == LMQ_RESIDUAL_PARALLEL ||
           (is_parallel(member->h) && norm_place(member) == LMQ_NORMS_AFTER);
}

/* The inputs of attention and of the feed-forward, (n, dim): xn, or x itself
 * where norms stand after the blocks. */
static float *
attention_input(const struct lmq_member *member)
{
    return norm_place(member) == LMQ_NORMS_AFTER ? member->work->x
                                                 : member->work->xn;
}

static float *
feed_input(const struct lmq_member *member)
{
    return has_two_inputs(member) ? member->work->feed_xn
                                  : attention_input(member);
}

/* What attention or a recurrence gives is added to. */
static struct lmq_sum
sum_of_mixing(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const float *in = attention_input(member);

    return lmq_layer_only_recurs(h, member->index)
               ? (struct lmq_sum){in, h->delta_keep, h->delta_add}
               : (struct lmq_sum){in, h->attn_keep, h->attn_add};
}

/* xn = norm(x) of token t; xn = x for norms after the blocks. */
static void
norm_token(const struct lmq_member *member, const struct lmq_gain *gain,
           const struct lmq_hyper *hyper, size_t t, float *input)
{
    size_t dim = member->h->dim;
    const float *x = member->work->x + t * dim; /* (dim) */
    float *xn = input + t * dim;                /* (dim) */

    if (hyper->fn != NULL) {
        lmq_hyper_read(member, hyper, t, xn); /* xn = sum of all streams */
        x = xn;
    }
    if (norm_place(member) != LMQ_NORMS_AFTER)
        lmq_norm(member->h, gain, x, dim, xn); /* xn = norm(x) */
    else if (input != member->work->x)
        memcpy(xn, x, dim * sizeof(*x)); /* xn = x */
}

/* xn = what the first block, or the second, reads of streams with gates. */
static void
read_gated(const struct lmq_member *member, bool is_first)
{
    const struct lmq_layer *layer = member->layer;

    if (is_first)
        lmq_gated_read(member, &layer->attention.gated,
                       &layer->attention.norm, attention_input(member));
    else
        lmq_gated_read(member, &layer->feed.gated, &layer->feed.norm,
                       feed_input(member));
}

/* xn = norm(x), for both blocks if they are parallel; of a layer of one block,
 * for that. With several streams x is what they predict. */
static void
make_inputs(const struct lmq_member *member)
{
    const struct lmq_layer *layer = member->layer;
    const struct lmq_hyper *attention = &layer->attention.hyper;
    const struct lmq_hyper *feed = &layer->feed.hyper;
    bool mixes = lmq_layer_mixes(member->h, member->index);
    size_t from, to;

    if (lmq_has_gated_streams(member->h)) {
        read_gated(member, mixes);
        return;
    }
    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        if (lmq_guessed_streams(member->h) > 0)
            lmq_streams_predict(member, t);
        if (!mixes) {
            norm_token(member, &layer->feed.norm, feed, t, feed_input(member));
            continue;
        }
        norm_token(member, &layer->attention.norm, attention, t,
                   attention_input(member));
        if (has_two_inputs(member))
            norm_token(member, &layer->feed.norm, feed, t, feed_input(member));
    }
}

/* xn *= gate(xn), where norms have gates: what attention is given. */
static void
gate_attention_input(const struct lmq_member *member)
{
    if (member->h->norm_gate_rank == 0)
        return;
    lmq_gate_input(member, &member->layer->attention.norm_gate,
                   attention_input(member));
    lmq_barrier(member); /* all read all of xn */
}

/* What experts are given; one feed-forward is given xn as it is. */
static void
gate_experts_input(const struct lmq_member *member)
{
    if (member->h->norm_gate_rank == 0 ||
        !lmq_layer_has_experts(member->h, member->index))
        return;
    lmq_gate_input(member, &member->layer->feed.norm_gate, feed_input(member));
    lmq_barrier(member); /* all read all of xn */
}

/* x += out of attention, where something else is added, too. */
static void
add_out(const struct lmq_member *member)
{
    const struct lmq_sum sum = sum_of_mixing(member);
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        lmq_sum_token(member, &sum, member->layer->attention.out.bias, false,
                      NULL, t);
}

/* x += out; xn = norm(x), where a feed-forward follows. All are a token's own,
 * so one pass does. */
static void
add_attention(const struct lmq_member *member)
{
    const struct lmq_layer *layer = member->layer;
    bool is_beside = lmq_layer_is(member->h, member->index, LMQ_LAYER_BESIDE);
    bool is_normed = norm_place(member) != LMQ_NORMS_BEFORE;
    bool is_followed = !is_parallel(member->h) &&
                       lmq_layer_has_feed(member->h, member->index);
    bool has_gates = lmq_has_gated_streams(member->h);
    const struct lmq_sum sum = sum_of_mixing(member);
    size_t dim = member->h->dim, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        lmq_sum_token(member, &sum,
                      is_beside ? NULL : layer->attention.out.bias, is_normed,
                      &layer->attention.post_norm, t);
        if (member->h->residual_rank > 0)
            lmq_bypass_add(member, attention_input(member) + t * dim, t);
        if (is_followed && !has_gates)
            norm_token(member, &layer->feed.norm, &layer->feed.hyper, t,
                       feed_input(member));
    }
    if (is_followed && has_gates)
        read_gated(member, false);
}

/* x += out. */
static void
add_feed_forward(const struct lmq_member *member)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    const struct lmq_sum sum = {feed_input(member), member->h->feed_keep,
                            member->h->feed_add};
    bool is_normed = lmq_layer_has_feed_post_norm(member->h, member->index);
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        lmq_sum_token(member, &sum, feed->dense.down.bias, is_normed,
                      &feed->post_norm, t);
}

/* ---- The blocks ---- */

/* out (n, dim) = W_out attention(xn), without the bias. */
static void
attention(const struct lmq_member *member)
{
    const struct lmq_matrix *w_gate = &member->layer->attention.gate;
    struct lmq_operand xn = /* (n, dim) */
        lmq_operand_of(member, attention_input(member), member->h->dim);

    if (w_gate->tensor != NULL && !member->h->has_raw_latents)
        lmq_multiply(member, w_gate, &xn, member->work->attn_gate);
    if (member->h->kv_lora_rank > 0)
        lmq_latent_attention(member, &xn); /* heads = softmax(q k) v */
    else if (member->h->has_turned_values)
        lmq_shared_attention(member, &xn); /* heads = softmax(q k) k */
    else
        lmq_heads_attention(member, &xn); /* heads = softmax(q k) v */
    lmq_heads_out(member); /* out = W_out heads */
}

/* out (n, dim) = W_out recurrence(xn). */
static void
recurrence(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    bool is_alone = lmq_layer_only_recurs(member->h, member->index);
    const struct lmq_matrix *w_out = is_alone ? &part->out : &part->state_out;
    struct lmq_operand xn = /* (n, dim) */
        lmq_operand_of(member, attention_input(member), member->h->dim);
    struct lmq_operand heads = /* (n, value heads * value dim) */
        lmq_operand_of(member, member->work->attention, w_out->n_cols);

    lmq_recurrent_attention(member, &xn); /* heads = q S, gated */
    lmq_barrier(member); /* a row of W_out reads all heads */
    lmq_multiply(member, w_out, &heads, member->work->out);
}

/* out = attention(xn), or recurrence(xn), or what the latter adds to x, to
 * which the former has been added. */
static void
mix(const struct lmq_member *member)
{
    if (lmq_layer_has_attention(member->h, member->index))
        attention(member);
    if (lmq_layer_is(member->h, member->index, LMQ_LAYER_BESIDE)) {
        lmq_barrier(member); /* a token's out are rows of many */
        add_out(member);     /* x += out */
        lmq_barrier(member); /* others make out anew */
    }
    if (lmq_layer_is(member->h, member->index, LMQ_LAYER_DELTA))
        recurrence(member);
}

/* out (n, dim) = feed(xn): W_down (act(W_gate xn) * (W_up xn)) of one network,
 * without the bias; or the weighted sum of each token's experts. */
static void
feed_forward(const struct lmq_member *member)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    const struct lmq_gain *sub_norm =
        member->h->has_sub_norms ? &feed->sub_norm : NULL;
    struct lmq_operand xn = /* (n, dim) */
        lmq_operand_of(member, feed_input(member), member->h->dim);

    if (lmq_layer_has_experts(member->h, member->index))
        lmq_experts(member, xn.x, member->work->out);
    else
        lmq_ffn(member, &feed->dense, sub_norm, &xn, member->work->out);
}

/* All streams, as the blocks have changed x. */
static void
correct_streams(const struct lmq_member *member)
{
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        lmq_streams_correct(member, t);
}

/* x *= scale, of the tokens whose x this member has made. */
static void
scale_stream(const struct lmq_member *member)
{
    size_t dim = member->h->dim, from, to;

    lmq_member_share(member, member->n, &from, &to);
    member->kernels->scale(member->work->x + from * dim, (to - from) * dim,
                           member->layer->feed.scale[0]);
}

/* ---- The skeleton ---- */

/* Tokens and their embeddings, of which inputs of layers and streams are
 * made. */
struct embedded {
    const struct lmq_model *model;
    struct lmq_work *work;
    const int32_t *tokens; /* (n) */
    const float *x;        /* (n, dim) */
    float *inputs;         /* (n, n_layers, layer_input_dim) */
    float *streams;        /* (n, n_streams - 1, dim) */
    size_t n;
};

static void
embedded_part(void *context, size_t number, size_t n_members)
{
    const struct embedded *e = context;
    struct lmq_member member =
        lmq_member_make(e->model, e->work, e->n, 0, number, n_members);

    if (member.h->layer_input_dim > 0)
        lmq_inputs_make(&member, e->tokens, e->x, e->inputs);
    member.is_fine = true; /* all layers hear of what is missed here */
    if (member.h->n_streams > 0)
        lmq_streams_spread(&member, e->x, e->streams);
}

/* There may be more tokens than a batch has. */
static void
follow_embeddings(const struct lmq_model *model, struct lmq_work *work,
                  const int32_t *tokens, size_t n)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t inputs = lmq_inputs_width(h), streams = lmq_streams_width(h);
    double weights = (double)(inputs + streams) * (double)h->dim;

    for (size_t at = 0; at < n; at += work->batch) {
        struct embedded e = {
            .model = model, .work = work, .tokens = tokens + at,
            .x = work->x + at * h->dim,
            .inputs = work->inputs + at * inputs,
            .streams = work->streams + at * streams,
            .n = n - at < work->batch ? n - at : work->batch};
        lmq_team_run(work->team, lmq_work_members(work, weights, e.n),
                     embedded_part, &e);
    }
}

/* If the batch before had to wait for the disk, or there was none, this one may
 * have to. */
static void
look_at_disk(const struct lmq_model *model, struct lmq_work *work)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    work->waits_for_disk =
        model->reads_ahead && usage.ru_majflt != work->n_disk_waits;
    work->n_disk_waits = usage.ru_majflt;
}

void
lmq_forward_embed(const struct lmq_model *model, struct lmq_work *work,
                  const int32_t *tokens, size_t n, size_t position)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    const struct lmq_hparams *h = &model->hparams;
    float *learned = work->xn; /* (dim): nobody needs xn yet */

    look_at_disk(model, work);
    work->tokens = tokens;
    for (size_t t = 0; t < n; t++) {
        float *x = work->x + t * h->dim; /* (dim) */
        lmq_matrix_row(&model->embedding, (size_t)tokens[t], x);
        if (h->embedding_scale != 1) /* x *= scale */
            kernels->scale(x, h->dim, (float)h->embedding_scale);
        if (h->positions == LMQ_POSITIONS_LEARNED) {
            lmq_matrix_row(&model->positions,
                           position + t % (n / work->n_sequences), learned);
            kernels->add(x, learned, h->dim); /* x += learned */
        }
        if (h->has_embedding_norm)
            lmq_norm(h, &model->embedding_norm, x, h->dim, x); /* x = norm(x) */
    }
    if (h->layer_input_dim > 0 || h->n_streams > 0)
        follow_embeddings(model, work, tokens, n);
}

/* What the members of a team are given, for a layer or for the head. */
struct job {
    const struct lmq_model *model;
    struct lmq_work *work;
    size_t n, position;
    size_t index;      /* of the layer */
    struct lmq_kv *kv; /* of the layer: (sequences) */
    float *logits;     /* (n, vocab) */
};

static struct lmq_member
layer_member(const struct job *job, size_t number, size_t n_members)
{
    struct lmq_member member =
        lmq_member_make(job->model, job->work, job->n, job->position,
                        number, n_members);

    member.layer = &job->model->layers[job->index];
    member.index = job->index;
    member.is_fine = lmq_layer_is_late(member.h, job->index);
    member.kv = job->kv;
    return member;
}

static void
layer_part(void *context, size_t number, size_t n_members)
{
    struct lmq_member member = layer_member(context, number, n_members);
    bool is_fine = member.is_fine;
    bool mixes = lmq_layer_mixes(member.h, member.index);
    bool has_feed = lmq_layer_has_feed(member.h, member.index);

    if (lmq_layer_has_grams(member.h, member.index))
        lmq_grams_add(&member); /* streams += of the last tokens */
    make_inputs(&member); /* xn = norm(x) */
    lmq_barrier(&member); /* all read all of xn */
    lmq_experts_look(&member); /* logits = W_router x, of early routers */
    if (mixes) {
        member.is_fine |= member.index == 0;
        gate_attention_input(&member); /* xn *= of what two matrices make */
        if (member.h->residual_rank > 0) {
            lmq_bypass_make(&member, attention_input(&member));
            lmq_barrier(&member); /* xn is quantized again */
        }
        mix(&member); /* out = attention(xn) */
        member.is_fine = is_fine;
        lmq_barrier(&member); /* its norm reads whole rows of out */
        add_attention(&member); /* x += out; xn = norm(x) */
    }
    if (mixes && has_feed)
        lmq_barrier(&member); /* all read all of xn, and overwrite out */
    if (has_feed) {
        gate_experts_input(&member); /* xn *= of what two matrices make */
        feed_forward(&member); /* out = feed_forward(xn) */
        lmq_barrier(&member); /* it reads whole rows of out */
        add_feed_forward(&member); /* x += out */
    }
    if (lmq_guessed_streams(member.h) > 0)
        correct_streams(&member); /* streams += of what x has become */
    if (member.h->layer_input_dim > 0) {
        lmq_barrier(&member); /* all read all of x */
        lmq_inputs_add(&member); /* x += of its input */
    }
    if (member.h->has_layer_scale)
        scale_stream(&member); /* x *= scale */
}

void
lmq_forward_layer(const struct lmq_model *model, size_t index,
                  struct lmq_kv *kv, struct lmq_work *work, size_t n,
                  size_t position)
{
    struct job job = {.model = model, .work = work, .n = n,
                        .position = position, .index = index, .kv = kv};

    if (work->waits_for_disk)
        lmq_model_expect_layer(model, index);
    lmq_work_set_positions(work, &model->hparams, n / work->n_sequences,
                           position);
    lmq_team_run(work->team, lmq_work_members(work, work->layer_weights, n),
                 layer_part, &job);
}

static void
memory_part(void *context, size_t number, size_t n_members)
{
    struct lmq_member member = layer_member(context, number, n_members);
    struct lmq_operand xn = /* (n, dim) */
        lmq_operand_of(&member, attention_input(&member), member.h->dim);

    make_inputs(&member); /* xn = norm(x) */
    lmq_barrier(&member); /* all read all of xn */
    gate_attention_input(&member); /* xn *= of what two matrices make */
    if (member.h->kv_lora_rank > 0)
        lmq_latent_remember(&member, &xn); /* cache += [c, k_rope] */
    else if (member.h->has_turned_values)
        lmq_shared_remember(&member, &xn); /* cache += k */
    else
        lmq_heads_remember(&member, &xn); /* cache += k, v */
}

/* What later tokens see of these in the layer: no more. */
static void
remember(const struct lmq_model *model, size_t index, struct lmq_kv *kv,
         struct lmq_work *work, size_t n, size_t position)
{
    struct job job = {.model = model, .work = work, .n = n,
                        .position = position, .index = index, .kv = kv};
    const struct lmq_attention_part *part = &model->layers[index].attention;
    const struct lmq_matrix *matrices[] = {
        &part->norm_gate.a, &part->norm_gate.b, &part->gated.down,
        &part->gated.up, &part->k, &part->v, &part->kv_a,
        &part->index_k, &part->index_weights};
    struct lmq_expected expected = {0};
    double weights = 0;

    for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        weights += (double)matrices[i]->n_rows * (double)matrices[i]->n_cols;
        if (work->waits_for_disk)
            lmq_matrix_expect(model, matrices[i], &expected);
    }
    lmq_expected_read(&expected);
    lmq_work_set_positions(work, &model->hparams, n, position);
    lmq_team_run(work->team, lmq_work_members(work, weights, n), memory_part,
                 &job);
}

/* The last n_last of n tokens become the first. */
static void
keep_last(const struct lmq_hparams *h, struct lmq_work *work, size_t n,
          size_t n_last)
{
    size_t width = lmq_inputs_width(h), streams = lmq_streams_width(h);

    if (n == n_last)
        return;
    work->tokens += n - n_last;
    if (streams > 0)
        memmove(work->streams, work->streams + (n - n_last) * streams,
                n_last * streams * sizeof(*work->streams));
    memmove(work->x, work->x + (n - n_last) * h->dim,
            n_last * h->dim * sizeof(*work->x));
    if (width > 0)
        memmove(work->inputs, work->inputs + (n - n_last) * width,
                n_last * width * sizeof(*work->inputs));
    lmq_index_keep_last(h, work, n, n_last);
}

bool
lmq_forward_layers(const struct lmq_model *model, struct lmq_kv *kv,
                   struct lmq_work *work, size_t n, size_t n_last,
                   size_t position)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t n_first = n - n_last, i = 0;

    for (size_t loop = 1; loop < lmq_loops(h); loop++, kv += h->n_layers) {
        for (size_t l = 0; l < h->n_layers; l++)
            lmq_forward_layer(model, l, lmq_kv_of(h, kv, l), work, n,
                              position);
        lmq_norm_again(model, work->x, n); /* x = norm(x), or x */
    }
    for (; i < h->n_layers && !lmq_layer_is_late(h, i); i++)
        lmq_forward_layer(model, i, lmq_kv_of(h, kv, i), work, n, position);
    bool is_finite = lmq_is_finite(work->x, n * h->dim);
    if (n_first > 0 && i < h->n_layers && lmq_layer_has_keys(h, i))
        remember(model, i, lmq_kv_of(h, kv, i), work, n_first, position);
    keep_last(h, work, n, n_last);
    for (; i < h->n_layers && n_last > 0; i++)
        lmq_forward_layer(model, i, lmq_kv_of(h, kv, i), work, n_last,
                          position + n_first);
    return is_finite && lmq_is_finite(work->x, n_last * h->dim) &&
           lmq_is_finite(work->streams, n_last * lmq_streams_width(h));
}

/* logits = softcap(scale * (logits + bias)), in pieces of rows: with a single
 * token there is only one row for the whole team. */
static void
finish_logits(const struct lmq_member *member, float *logits)
{
    const struct lmq_hparams *h = member->h;
    const float *bias = member->model->head.bias;
    size_t width = h->vocab_size, from, to;

    lmq_member_share(member, member->n * lmq_row_pieces(width), &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, width);
        float *y = logits + piece.row * width + piece.column;
        if (bias != NULL) /* y += bias */
            member->kernels->add(y, bias + piece.column, piece.size);
        if (h->logit_scale != 1) /* y *= scale */
            member->kernels->scale(y, piece.size, (float)h->logit_scale);
        if (h->logit_softcap > 0) /* y = cap * tanh(y / cap) */
            member->kernels->softcap(y, piece.size, (float)h->logit_softcap);
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
    float *xn = job->work->xn; /* (n, dim) */
    const float *x = job->work->x; /* (n, dim) */
    struct lmq_operand last = lmq_operand_of(&member, xn, h->dim);
    bool is_finished = model->head.bias == NULL && h->logit_scale == 1 &&
                       h->logit_softcap == 0;
    size_t from, to;

    member.is_fine = true;
    if (h->n_streams > 0)
        x = xn;
    if (lmq_guessed_streams(h) > 0)
        lmq_streams_gather(&member, xn); /* x = mean of all streams */
    lmq_member_share(&member, job->n, &from, &to);
    if (lmq_has_gated_streams(h)) {
        lmq_gated_read(&member, &model->gated, &model->output_norm, xn);
        from = to; /* it is normed */
    }
    for (size_t t = from; t < to && lmq_has_hyper_streams(h); t++)
        lmq_hyper_gather(&member, t, xn + t * h->dim); /* x = sum of all */
    for (size_t t = from; t < to; t++)
        lmq_norm(h, &model->output_norm, x + t * h->dim, h->dim,
                 xn + t * h->dim); /* xn = norm(x) */
    lmq_barrier(&member); /* all read all of xn */
    lmq_multiply(&member, &model->head, &last, job->logits); /* head xn */
    if (!is_finished) {
        lmq_barrier(&member); /* pieces are cut otherwise than products */
        finish_logits(&member, job->logits);
    }
}

void
lmq_forward_head(const struct lmq_model *model, struct lmq_work *work,
                 size_t n, float *logits)
{
    struct job job = {.model = model, .work = work, .n = n,
                        .logits = logits};
    double weights = (double)model->head.n_rows * (double)model->head.n_cols;

    for (uint32_t i = 0;
         work->waits_for_disk && i < lmq_guessed_streams(&model->hparams); i++)
        lmq_matrix_await(model, &model->streams_out[i]);
    if (work->waits_for_disk)
        lmq_matrix_await(model, &model->head);
    lmq_team_run(work->team, lmq_work_members(work, weights, n), head_part,
                 &job);
}

/* By bits: one more than the largest exponent carries into the sign. That is
 * easily vectorized, and no flag for faster floats can take the test away. */
bool
lmq_is_finite(const float *x, size_t n)
{
    uint32_t carried[16] = {0}, any = 0;
    size_t i = 0;

    for (; n - i >= 16; i += 16)
        for (size_t j = 0; j < 16; j++)
            carried[j] |= (lmq_f32_bits(x[i + j]) & 0x7fffffff) + 0x00800000;
    for (; i < n; i++)
        any |= (lmq_f32_bits(x[i]) & 0x7fffffff) + 0x00800000;
    for (size_t j = 0; j < 16; j++)
        any |= carried[j];
    return any >> 31 == 0;
}
