/*
 * indexer.c - which pools or positions a token sees, where it does not see all.
 *
 *   q = rope(W_q norm(W_q_a xn))                (n, index heads, index_dim)
 *   weights = W_weights xn                      (n, index heads)
 *   worth of pool w = sum over heads of
 *                     weight * max(q . index pool w, 0)
 *   the index_topk best of those that are complete are seen
 *
 * Of positions, in latent attention, likewise, but each has a key of its own:
 *
 *   k = rope(norm(W_k xn))                      (n, index_dim)
 *
 * and the first dimensions turn, not the last.
 *
 * Of two that are worth the same the earlier is better.
 */
#include "config.h"

#include "runtime/pools/indexer.h"

#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "formats/model/pools.h"
#include "runtime/pools/pooling.h"

size_t
lmq_index_stride(const struct lmq_member *member)
{
    return lmq_choice_bytes(member->h, member->work->context);
}

/* ---- What they are worth ---- */

/* worths[0, n) += of some heads of token t. */
static void
add_worths(const struct lmq_member *member, size_t t, size_t head,
           size_t n_heads, size_t n)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_work *work = member->work;
    struct lmq_thread_work *own = member->own;
    size_t dim = h->index_dim;
    const struct lmq_rows rows = {.data = lmq_member_kv(member, t)->index,
                                  .type = LMQ_ROW_F32,
                                  .n_cols = dim,
                                  .stride = dim * sizeof(float)};
    const float *q = work->index_q + (t * h->n_index_heads + head) * dim;
    const float *weights =
        work->index_weights + t * h->n_index_heads + head;

    for (size_t at = 0; at < n; at += LMQ_ATTENTION_BLOCK) {
        size_t size = lmq_size_min(LMQ_ATTENTION_BLOCK, n - at);
        struct lmq_rows block = rows;
        block.data = (const float *)rows.data + at * dim;
        member->kernels->rows_product(&block, 0, size, q, dim, n_heads,
                                      own->scores, LMQ_ATTENTION_BLOCK,
                                      own->scratch);
        for (size_t i = 0; i < n_heads; i++) {
            const float *scores = own->scores + i * LMQ_ATTENTION_BLOCK;
            for (size_t w = 0; w < size; w++)
                own->worths[at + w] +=
                    weights[i] * (scores[w] > 0 ? scores[w] : 0);
        }
    }
}

/* ---- The best ---- */

/* Numbers in the order of what they are worth. */
static uint32_t
rank_of(float worth)
{
    uint32_t bits = lmq_f32_bits(worth);

    return bits >> 31 != 0 ? ~bits : bits | 0x80000000;
}

static size_t
count_from(const float *worths, size_t n, uint32_t rank)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += rank_of(worths[i]) >= rank;
    return count;
}

static void
mark(unsigned char *chosen, size_t i)
{
    chosen[i / 8] |= (unsigned char)(1 << i % 8);
}

/* The `most` best of n, of which there are more: all that are better than the
 * last of these, and of those that are worth the same the first. */
static void
mark_best(const float *worths, size_t n, size_t most, unsigned char *chosen)
{
    uint32_t last = 0;

    for (int bit = 31; bit >= 0; bit--) /* the greatest that so many reach */
        if (count_from(worths, n, last | (uint32_t)1 << bit) >= most)
            last |= (uint32_t)1 << bit;
    for (size_t i = 0; i < n; i++)
        if (rank_of(worths[i]) > last) {
            mark(chosen, i);
            most--;
        }
    for (size_t i = 0; i < n && most > 0; i++)
        if (rank_of(worths[i]) == last) {
            mark(chosen, i);
            most--;
        }
}

static void
choose(const struct lmq_member *member, size_t t)
{
    const struct lmq_hparams *h = member->h;
    struct lmq_thread_work *own = member->own;
    size_t position = member->position + lmq_member_step(member, t);
    size_t pool = lmq_layer_pool(h, member->index);
    size_t n = (position + 1) / (pool > 0 ? pool : 1);
    unsigned char *chosen =
        member->work->chosen + t * lmq_index_stride(member);

    memset(chosen, 0, n / 8 + 1);
    if (n <= h->index_topk) {
        memset(chosen, 0xff, n / 8);
        for (size_t i = n - n % 8; i < n; i++)
            mark(chosen, i);
        return;
    }
    memset(own->worths, 0, n * sizeof(*own->worths));
    for (size_t head = 0; head < h->n_index_heads;
         head += LMQ_ATTENTION_STRIP)
        add_worths(member, t, head,
                   lmq_size_min(LMQ_ATTENTION_STRIP, h->n_index_heads - head),
                   n);
    mark_best(own->worths, n, h->index_topk, chosen);
}

/* x = rope(x), one head at the position of token t. */
static void
turn(const struct lmq_member *member, size_t t, size_t position, float *x)
{
    const struct lmq_angles *angles = lmq_member_angles(member);

    if (!lmq_layer_chooses(member->h, member->index))
        lmq_pool_turn(member, position, x, member->h->index_dim);
    else if (angles != NULL)
        lmq_member_rope(member, angles, t, x);
}

void
lmq_index_choose(const struct lmq_member *member, struct lmq_operand *q_a)
{
    const struct lmq_hparams *h = member->h;
    struct lmq_work *work = member->work;
    size_t heads = h->n_index_heads, from, to;

    lmq_multiply(member, &member->layer->attention.index_q, q_a,
                 work->index_q);
    lmq_barrier(member); /* tokens are cut otherwise, and see new pools */
    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        size_t position = member->position + lmq_member_step(member, t);
        for (size_t i = 0; i < heads; i++)
            turn(member, t, position,
                 work->index_q + (t * heads + i) * h->index_dim);
        choose(member, t);
    }
}

/* ---- Of positions ---- */

bool
lmq_index_is_needed(const struct lmq_member *member)
{
    return member->position + lmq_member_length(member) >
           member->h->index_topk;
}

void
lmq_index_multiply(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;

    lmq_multiply(member, &part->index_k, xn, member->work->index_kv);
    lmq_multiply(member, &part->index_weights, xn,
                 member->work->index_weights);
}

void
lmq_index_remember(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_gain *gain = &member->layer->attention.index_k_norm;
    double eps = h->index_eps > 0 ? h->index_eps : h->norm_eps;
    size_t dim = h->index_dim, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        size_t position = member->position + lmq_member_step(member, t);
        float *key = lmq_member_kv(member, t)->index + position * dim;
        member->kernels->layernorm(member->work->index_kv + t * dim,
                                   gain->weight, gain->bias, dim, (float)eps,
                                   key);
        turn(member, t, position, key);
    }
}

void
lmq_index_keep_last(const struct lmq_hparams *h, struct lmq_work *work,
                    size_t n, size_t n_last)
{
    size_t choice = lmq_choice_bytes(h, work->context);

    if (lmq_shares_choices(h))
        memmove(work->chosen, work->chosen + (n - n_last) * choice,
                n_last * choice);
}
