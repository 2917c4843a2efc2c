/*
 * heads.c - attention by queries, keys and values of each head.
 *
 *   q = W_q xn, k = W_k xn, v = W_v xn     (n, heads, head_dim or value_dim)
 *   q = rope(norm(q)), k = rope(norm(k)), or norm(rope(q)), norm(rope(k))
 *   k and v of the batch go into the cache (kv heads, context, dim)
 *   attention = softmax(q k^T * scale) v   (n, heads, value_dim)
 *
 * The norms of q and k stand there only in some models: of each head by
 * itself, or of all heads of a token as one row; of values by themselves and
 * without weights. A layer may have no keys and values of its own: then the
 * cache is that of another, where those of the batch already are.
 */
#include "config.h"

#include "runtime/layer/heads.h"

#include "runtime/layer/attention.h"
#include "runtime/layer/norm.h"

/* ---- Heads ---- */

/* What a token has of each head, in the order of its heads. */
enum part {
    QUERY,
    KEY,
    VALUE
};

struct head {
    enum part part;
    const struct lmq_matrix *matrix; /* W_q, W_k or W_v */
    const struct lmq_gain *norm;     /* NULL for values */
    float *x;                        /* (dim) */
    size_t number, dim;
};

/* Values may be what keys are made of, before norms and positions. */
static const struct lmq_matrix *
value_matrix(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;

    return lmq_layer_keys_are_values(member->h, member->index) ? &part->k
                                                               : &part->v;
}

/* Number i among a token's heads: queries, then keys, then values. */
static struct head
find_head(const struct lmq_member *member, size_t t, size_t i)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;
    size_t n = lmq_layer_heads(h, member->index);
    size_t n_kv = lmq_layer_kv_heads(h, member->index);
    size_t dim = lmq_layer_head_dim(h, member->index);
    size_t value_dim = lmq_layer_value_dim(h, member->index);

    if (i < n)
        return (struct head){QUERY, &part->q, &part->q_norm,
                             work->q + (t * n + i) * dim, i, dim};
    i -= n;
    if (i < n_kv)
        return (struct head){KEY, &part->k, &part->k_norm,
                             work->k + (t * n_kv + i) * dim, i, dim};
    i -= n_kv;
    return (struct head){VALUE, value_matrix(member), NULL,
                         work->v + (t * n_kv + i) * value_dim, i, value_dim};
}

/* x = clamp(x + bias): n numbers of a product, from row `first` on. */
static void
finish_product(const struct lmq_member *member,
               const struct lmq_matrix *matrix, size_t first, float *x,
               size_t n)
{
    if (matrix->bias != NULL)
        member->kernels->add(x, matrix->bias + first, n);
    if (member->h->qkv_clip > 0)
        member->kernels->clamp(x, n, (float)member->h->qkv_clip);
}

/* q = norm(q), k = norm(k), each over all heads of a token: two rows a token,
 * or one where either is not there, so that is the work to share. */
static void
norm_whole(const struct lmq_member *member, enum part first_part)
{
    size_t first_row = first_part == KEY;
    size_t n_rows =
        (lmq_layer_borrows(member->h, member->index) ? 1 : 2) - first_row;
    size_t n_heads = lmq_layer_heads(member->h, member->index), from, to;

    lmq_member_share(member, member->n * n_rows, &from, &to);
    for (size_t i = from; i < to; i++) {
        struct head first =
            find_head(member, i / n_rows,
                      first_row + i % n_rows == 0 ? 0 : n_heads);
        size_t n = first.matrix->n_rows;
        finish_product(member, first.matrix, 0, first.x, n);
        lmq_norm(member->h, first.norm, first.x, n, first.x);
    }
}

/* x = norm(x) of one head; the weights are the layer's, or the head's own, or
 * there are none. */
static void
norm_head(const struct lmq_member *member, const struct head *head)
{
    bool is_own = member->h->qk_norm == LMQ_QK_NORM_HEADS;
    struct lmq_gain gain =
        lmq_gain_from(head->norm, is_own ? head->number * head->dim : 0);

    lmq_norm(member->h, &gain, head->x, head->dim, head->x);
}

/* Whether the layer has norms of single heads. */
static bool
has_head_norms(const struct lmq_member *member)
{
    switch (member->h->qk_norm) {
    case LMQ_QK_NORM_HEAD:
    case LMQ_QK_NORM_HEADS:
    case LMQ_QK_NORM_BARE_ALL:
        return true;
    case LMQ_QK_NORM_BARE:
        return !lmq_layer_is(member->h, member->index, LMQ_LAYER_NOPE);
    default: /* norm_whole() did it, or there is none */
        return false;
    }
}

/* q = rope(norm(q)), k = rope(norm(k)); k and v go into the cache. Heads of
 * queries, keys and values are shared out alike. */
static void
rope_and_store(const struct lmq_member *member, enum part first_part)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_angles *angles = lmq_member_angles(member);
    const struct lmq_gain none = {0};
    bool is_whole = h->qk_norm == LMQ_QK_NORM_WHOLE;
    bool is_late = h->qk_norm_late, has_norms = has_head_norms(member);
    size_t n_kv = lmq_layer_borrows(h, member->index)
                      ? 0
                      : lmq_layer_kv_heads(h, member->index);
    size_t n_queries = lmq_layer_heads(h, member->index);
    size_t first_head = first_part == KEY ? n_queries : 0;
    size_t n_heads = n_queries + 2 * n_kv - first_head, from, to;

    lmq_member_share(member, member->n * n_heads, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t t = i / n_heads;
        struct head head = find_head(member, t, first_head + i % n_heads);
        bool is_value = head.part == VALUE;
        if (is_value || !is_whole)
            finish_product(member, head.matrix, head.number * head.dim,
                           head.x, head.dim);
        if (!is_value && has_norms && !is_late)
            norm_head(member, &head);
        if (is_value && h->has_value_norm)
            lmq_norm(h, &none, head.x, head.dim, head.x);
        if (!is_value && angles != NULL)
            lmq_member_rope(member, angles, t, head.x);
        if (!is_value && has_norms && is_late)
            norm_head(member, &head);
        if (head.part == KEY)
            lmq_member_store_key(member, head.number, t, head.x);
        if (head.part == VALUE)
            lmq_member_store_value(member, head.number, t, head.x);
    }
}

/* q = rope(norm(q)) and the cache += k, v of what the matrices gave. */
static void
finish_heads(const struct lmq_member *member, enum part first_part)
{
    lmq_barrier(member); /* heads and norms are not cut as products are */
    if (member->h->qk_norm == LMQ_QK_NORM_WHOLE) {
        norm_whole(member, first_part); /* q = norm(q), k = norm(k) */
        lmq_barrier(member); /* heads are cut otherwise */
    }
    rope_and_store(member, first_part); /* q = rope(q), cache += k, v */
}

/* k = W_k xn, v = W_v xn. */
static void
multiply_keys(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_work *work = member->work;

    lmq_multiply(member, &member->layer->attention.k, xn,
                 work->k); /* (n, kv, head_dim) */
    lmq_multiply(member, value_matrix(member), xn,
                 work->v); /* (n, kv, value_dim) */
}

/* ---- Attention ---- */

void
lmq_heads_remember(const struct lmq_member *member, struct lmq_operand *xn)
{
    multiply_keys(member, xn);
    finish_heads(member, KEY); /* cache += k, v */
}

void
lmq_heads_attention(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;
    struct lmq_heads heads = lmq_heads_of(member);

    heads.queries = work->q;
    heads.out = work->attention;
    lmq_multiply(member, &part->q, xn, work->q); /* (n, n_heads, head_dim) */
    if (!lmq_layer_borrows(member->h, member->index))
        multiply_keys(member, xn);
    finish_heads(member, QUERY); /* q = rope(q); cache += k, v */
    lmq_barrier(member); /* all read the new keys and values */
    lmq_attention(member, &heads); /* attention = softmax(q k^T) v */
}
