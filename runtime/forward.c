/*
 * forward.c - the forward pass of a decoder-only model, from top to bottom.
 *
 *   embed -> layers x (norm, attention, add, norm, feed-forward, add)
 *         -> norm -> head
 *
 * All threads walk through the same lines; each takes its share of every
 * step, and a barrier stands where a step needs what others have done. The
 * arithmetic is the kernels' and its order does not depend on the shares.
 */
#include "config.h"

#include "runtime/forward.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "base/threads.h"
#include "runtime/attention.h"
#include "runtime/rope.h"

/* One thread among those that walk together. */
struct walker {
    const struct lmq_kernels *kernels;
    struct lmq_thread_work *own;
    size_t number, n_walkers;
};

#define BARRIER _Pragma("omp barrier")

/* Elementwise work is shared in pieces of this many numbers. */
#define SHARE ((size_t)512)

static struct walker
make_walker(const struct lmq_work *work)
{
    size_t number = (size_t)lmq_thread_number();

    return (struct walker){.kernels = lmq_kernels(),
                           .own = &work->threads[number],
                           .number = number,
                           .n_walkers = (size_t)lmq_thread_count()};
}

/* This thread's part of n things. */
static void
share(const struct walker *walker, size_t n, size_t *from, size_t *to)
{
    *from = n * walker->number / walker->n_walkers;
    *to = n * (walker->number + 1) / walker->n_walkers;
}

/* ---- Products ---- */

/* What is multiplied: n tokens of n_cols numbers. */
struct operand {
    const float *x;
    size_t n, n_cols;
    size_t packed_group; /* of the form in work->packed; 0: none yet */
};

static struct lmq_batch
batch_of(const struct lmq_work *work, const struct operand *operand,
         size_t group)
{
    return (struct lmq_batch){
        .n_tokens = operand->n,
        .n_cols = operand->n_cols,
        .group = group,
        .bits = work->activations == LMQ_ACTIVATIONS_Q16 ? LMQ_BITS_16
                                                         : LMQ_BITS_8,
        .data = work->packed,
    };
}

/* Weights widened, 16 rows at a time: the product without rounding the
 * activations. Slow; for measuring where errors come from. */
static void
multiply_widened(const struct walker *walker, const struct lmq_matrix *matrix,
                 const struct operand *operand, float *out)
{
    size_t n_tiles = lmq_tiles_count(matrix->n_rows), from, to;

    share(walker, n_tiles, &from, &to);
    for (size_t tile = from; tile < to; tile++) {
        size_t first = tile * LMQ_TILE_ROWS;
        size_t n_rows = lmq_size_min(LMQ_TILE_ROWS, matrix->n_rows - first);
        struct lmq_rows rows = {.data = walker->own->widened,
                                .type = LMQ_ROW_F32,
                                .n_cols = matrix->n_cols,
                                .stride = matrix->n_cols * sizeof(float)};
        for (size_t i = 0; i < n_rows; i++)
            lmq_tiles_row(&matrix->tiles, first + i,
                          walker->own->widened + i * matrix->n_cols);
        walker->kernels->rows_product(&rows, 0, n_rows, operand->x,
                                      operand->n_cols, operand->n, out + first,
                                      matrix->n_rows, walker->own->scratch);
    }
}

/* out (n, n_rows) = x times the matrix, without the bias. The operand is
 * quantized when the first int8 matrix asks for it, and shared by the
 * others. */
static void
multiply(const struct walker *walker, const struct lmq_work *work,
         const struct lmq_matrix *matrix, struct operand *operand, float *out)
{
    size_t from, to;

    if (!matrix->is_int8) {
        share(walker, matrix->n_rows, &from, &to);
        walker->kernels->rows_product(&matrix->rows, from, to, operand->x,
                                      operand->n_cols, operand->n, out,
                                      matrix->n_rows, walker->own->scratch);
        return;
    }
    if (work->activations == LMQ_ACTIVATIONS_F32) {
        multiply_widened(walker, matrix, operand, out);
        return;
    }
    struct lmq_batch batch = batch_of(work, operand, matrix->tiles.group);
    if (operand->packed_group != matrix->tiles.group) {
        BARRIER /* nobody reads the old form any more */
        walker->kernels->batch_pack(&batch, operand->x, operand->n_cols,
                                    walker->number, walker->n_walkers);
        operand->packed_group = matrix->tiles.group;
        BARRIER
    }
    share(walker, lmq_tiles_count(matrix->n_rows), &from, &to);
    walker->kernels->product(&matrix->tiles, from, to, &batch, out,
                             matrix->n_rows);
}

/* ---- Steps between the products ---- */

/* x += add (unless NULL); norm = RMSNorm(x). */
static void
add_and_norm(const struct walker *walker, const struct lmq_model *model,
             struct lmq_work *work, const float *add, const float *add_bias,
             const float *weight, size_t n)
{
    size_t dim = model->hparams.dim, from, to;

    share(walker, n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *x = work->x + t * dim;
        if (add != NULL)
            walker->kernels->add(x, add + t * dim, dim);
        if (add_bias != NULL)
            walker->kernels->add(x, add_bias, dim);
        if (weight != NULL)
            walker->kernels->rmsnorm(x, weight, dim,
                                     (float)model->hparams.norm_eps,
                                     work->norm + t * dim);
    }
}

/* Queries turn in place; keys turn and go, with the values, into the cache. */
static void
turn_and_store(const struct walker *walker, const struct lmq_model *model,
               const struct lmq_layer *layer, struct lmq_kv *kv,
               struct lmq_work *work, size_t n, size_t position)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t dim = h->head_dim, n_items = h->n_heads + 2 * h->n_kv_heads;
    size_t row = lmq_row_bytes(work->kv_type, dim), from, to;

    share(walker, n * n_items, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t t = i / n_items, head = i % n_items;
        const float *cosines = work->cosines + t * dim / 2;
        const float *sines = work->sines + t * dim / 2;
        const struct lmq_matrix *matrix = &layer->q;
        float *x = work->q + t * layer->q.n_rows + head * dim;
        unsigned char *store = NULL;
        if (head >= h->n_heads + h->n_kv_heads) {
            head -= h->n_heads + h->n_kv_heads;
            matrix = &layer->v;
            x = work->v + t * layer->v.n_rows + head * dim;
            store = kv->values;
        } else if (head >= h->n_heads) {
            head -= h->n_heads;
            matrix = &layer->k;
            x = work->k + t * layer->k.n_rows + head * dim;
            store = kv->keys;
        }
        if (matrix->bias != NULL)
            walker->kernels->add(x, matrix->bias + head * dim, dim);
        if (matrix != &layer->v)
            walker->kernels->rope(x, cosines, sines, dim / 2);
        if (store != NULL)
            walker->kernels->row_narrow(
                x, dim, work->kv_type,
                store + (head * work->context + position + t) * row);
    }
}

/* gate = silu(gate) * up. */
static void
gate(const struct walker *walker, const struct lmq_model *model,
     const struct lmq_layer *layer, struct lmq_work *work, size_t n)
{
    size_t dim = model->hparams.hidden_dim, from, to;
    size_t per_token = (dim + SHARE - 1) / SHARE;

    share(walker, n * per_token, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t column = i % per_token * SHARE;
        size_t size = lmq_size_min(SHARE, dim - column);
        float *g = work->gate + i / per_token * dim + column;
        float *u = work->up + i / per_token * dim + column;
        if (layer->gate.bias != NULL)
            walker->kernels->add(g, layer->gate.bias + column, size);
        if (layer->up.bias != NULL)
            walker->kernels->add(u, layer->up.bias + column, size);
        walker->kernels->silu(g, size);
        walker->kernels->mul(g, u, size);
    }
}

/* ---- The skeleton ---- */

void
lmq_forward_embed(const struct lmq_model *model, struct lmq_work *work,
                  const int32_t *tokens, size_t n, size_t position)
{
    size_t half = model->hparams.head_dim / 2;

    for (size_t t = 0; t < n; t++) {
        lmq_matrix_row(&model->embedding, (size_t)tokens[t],
                       work->x + t * model->hparams.dim);
        lmq_rope_angles(model->rope_frequencies, half,
                        (uint32_t)(position + t), work->cosines + t * half,
                        work->sines + t * half);
    }
}

void
lmq_forward_layer(const struct lmq_model *model, size_t index,
                  struct lmq_kv *kv, struct lmq_work *work, size_t n,
                  size_t position)
{
    const struct lmq_layer *layer = &model->layers[index];

#pragma omp parallel num_threads(work->n_threads)
    {
        struct walker walker = make_walker(work);
        struct operand x = {work->norm, n, model->hparams.dim, 0};
        struct operand mixed = {work->attention, n, layer->out.n_cols, 0};
        struct operand hidden = {work->gate, n, model->hparams.hidden_dim, 0};

        add_and_norm(&walker, model, work, NULL, NULL, layer->attn_norm, n);
        BARRIER
        multiply(&walker, work, &layer->q, &x, work->q);
        multiply(&walker, work, &layer->k, &x, work->k);
        multiply(&walker, work, &layer->v, &x, work->v);
        BARRIER
        turn_and_store(&walker, model, layer, kv, work, n, position);
        BARRIER
        lmq_attention(model, kv, work, walker.own, n, position, walker.number,
                      walker.n_walkers);
        BARRIER
        multiply(&walker, work, &layer->out, &mixed, work->out);
        BARRIER
        add_and_norm(&walker, model, work, work->out, layer->out.bias,
                     layer->ffn_norm, n);
        BARRIER
        x.packed_group = 0;
        multiply(&walker, work, &layer->gate, &x, work->gate);
        multiply(&walker, work, &layer->up, &x, work->up);
        BARRIER
        gate(&walker, model, layer, work, n);
        BARRIER
        multiply(&walker, work, &layer->down, &hidden, work->out);
        BARRIER
        add_and_norm(&walker, model, work, work->out, layer->down.bias, NULL,
                     n);
    }
}

void
lmq_forward_head(const struct lmq_model *model, struct lmq_work *work,
                 size_t n, size_t n_last, float *logits)
{
    size_t dim = model->hparams.dim, skipped = n - n_last;

#pragma omp parallel num_threads(work->n_threads)
    {
        struct walker walker = make_walker(work);
        struct operand x = {work->norm + skipped * dim, n_last, dim, 0};

        add_and_norm(&walker, model, work, NULL, NULL, model->output_norm, n);
        BARRIER
        multiply(&walker, work, &model->head, &x, logits);
    }
}
