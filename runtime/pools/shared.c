/*
 * shared.c - attention whose values are the keys, once normed and turned.
 *
 *   q = W_q_b norm(W_q_a xn), or W_q xn    (n, heads, head_dim)
 *   k = W_k xn                             (n, kv heads, head_dim)
 *   q = rope(norm(q)), k = rope(norm(k))
 *   k goes into the cache, and into pools: pooling.c
 *   heads = softmax(q [k, pools]^T * scale) [k, pools]
 *   attention = rope back(heads)           (n, heads, head_dim)
 *
 * Of a head the last dimensions turn. What heads give turns back by the
 * position of the query, so that what a key gives it depends on how far away
 * it is.
 */
#include "config.h"

#include "runtime/pools/shared.h"

#include "formats/model/pools.h"
#include "runtime/layer/attention.h"
#include "runtime/pools/indexer.h"
#include "runtime/layer/latent.h"
#include "runtime/layer/norm.h"
#include "runtime/pools/pooling.h"

/* x = rope(norm(x + bias)) of one head of token t. */
static void
finish_head(const struct lmq_member *member, const struct lmq_matrix *matrix,
            bool is_query, size_t t, size_t head, float *x)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_hparams *h = member->h;
    const struct lmq_angles *angles = lmq_member_angles(member);
    size_t dim = h->head_dim;

    if (matrix->bias != NULL)
        member->kernels->add(x, matrix->bias + head * dim, dim);
    if (h->qk_norm == LMQ_QK_NORM_BARE_QUERIES && is_query)
        member->kernels->rmsnorm(x, NULL, dim, (float)h->norm_eps, x);
    else if (h->qk_norm != LMQ_QK_NORM_NONE)
        lmq_norm(h, is_query ? &part->q_norm : &part->k_norm, x, dim, x);
    if (angles != NULL)
        lmq_member_rope(member, angles, t,
                        x + dim - lmq_hparams_rotary_dim(h));
}

/* The cache += k. */
static void
finish_keys(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t n_kv = lmq_layer_kv_heads(member->h, member->index), from, to;

    lmq_member_share(member, member->n * n_kv, &from, &to);
    for (size_t i = from; i < to; i++) {
        float *k = member->work->k + i * member->h->head_dim;
        finish_head(member, &part->k, false, i / n_kv, i % n_kv, k);
        lmq_member_store_key(member, i % n_kv, i / n_kv, k);
    }
}

static void
finish_queries(const struct lmq_member *member,
               const struct lmq_matrix *matrix)
{
    size_t n = lmq_layer_heads(member->h, member->index), from, to;

    lmq_member_share(member, member->n * n, &from, &to);
    for (size_t i = from; i < to; i++)
        finish_head(member, matrix, true, i / n, i % n,
                    member->work->q + i * member->h->head_dim);
}

/* Of what heads give, the pairs (a, b) become
 * (a cos + b sin, b cos - a sin). */
static void
turn_back(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_angles *angles = lmq_member_angles(member);
    size_t n_heads = lmq_layer_heads(h, member->index);
    size_t half = lmq_hparams_rotary_dim(h) / 2, from, to;

    lmq_member_share(member, angles == NULL ? 0 : member->n * n_heads, &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        size_t at = lmq_member_step(member, i / n_heads) * half;
        float *x = member->work->attention + (i + 1) * h->head_dim - 2 * half;
        for (size_t j = 0; j < half; j++) {
            float cosine = angles->cosines[at + j];
            float sine = angles->sines[at + j];
            float a = x[j], b = x[j + half];
            x[j] = a * cosine + b * sine;
            x[j + half] = b * cosine - a * sine;
        }
    }
}

void
lmq_shared_remember(const struct lmq_member *member, struct lmq_operand *xn)
{
    lmq_multiply(member, &member->layer->attention.k, xn, member->work->k);
    lmq_barrier(member); /* norms read whole rows */
    finish_keys(member); /* cache += k */
}

void
lmq_shared_attention(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    struct lmq_work *work = member->work;
    bool has_latents = lmq_has_query_latents(h);
    bool has_pools = lmq_layer_pool(h, member->index) > 0;
    const struct lmq_matrix *w_q = has_latents ? &part->q_b : &part->q;
    struct lmq_operand q_a = /* (n, q_lora_rank) */
        lmq_operand_of(member, work->q_a, lmq_query_latents(h));
    struct lmq_heads heads = lmq_heads_of(member);

    heads.queries = work->q;
    heads.out = work->attention;
    lmq_multiply(member, &part->k, xn, work->k); /* (n, kv, head_dim) */
    lmq_multiply(member, has_latents ? &part->q_a : &part->q, xn,
                 has_latents ? work->q_a : work->q);
    if (has_pools)
        lmq_pools_multiply(member, xn); /* what pools are made of */
    lmq_barrier(member); /* norms read whole rows */
    if (has_latents)
        lmq_latent_queries(member); /* q_a = norm(q_a) */
    finish_keys(member); /* cache += k */
    if (has_pools)
        lmq_pools_make(member); /* cache += pools */
    if (has_latents) {
        lmq_barrier(member); /* all read all of q_a */
        lmq_multiply(member, w_q, &q_a, work->q);
    }
    if (lmq_layer_has_index(h, member->index)) {
        lmq_index_choose(member, &q_a);
        heads.chosen = work->chosen;
        heads.chosen_stride = lmq_index_stride(member);
    }
    lmq_barrier(member); /* heads are not cut as products are */
    finish_queries(member, w_q); /* q = rope(norm(q)) */
    lmq_barrier(member); /* all read the new keys, and queries */
    lmq_attention(member, &heads); /* heads = softmax(q k^T) k */
    lmq_barrier(member); /* heads are cut otherwise */
    turn_back(member);
}
