/*
 * latent.c - attention by latents ("MLA"), as in DeepSeek V2 and V3.
 *
 *   c = norm(W_kv_a xn), k_rope = rope(W_kv_a xn)  (n, kv_lora_rank), (n, rope)
 *   q = W_q_b norm(W_q_a xn), or W_q xn            (n, n_heads, nope + rope)
 *       or W_q_b [norm(W_q_a xn), W_q_a xn], of which the gate of heads is, too
 *   q_latent = [W_k_b[head] q_nope, rope(q_rope)]  (n, n_heads, key width)
 *   out_latent = softmax(q_latent [c, k_rope]^T) c (n, n_heads, kv_lora_rank)
 *   attention = W_v_b[head] out_latent             (n, n_heads, value_dim)
 *
 * Where only chosen positions are seen (pools/indexer.c), the index looks at xn
 * and norm(W_q_a xn), too.
 *
 * The cache holds one row [c, k_rope] for all heads. Keys W_k_b^T c and values
 * W_v_b c are never made: their matrices go to the query and to the output
 * instead, which is the same sum in another order. With many tokens it would
 * be cheaper to make them; but then a token's result would depend on how many
 * there are.
 */
#include "config.h"

#include "runtime/layer/latent.h"

#include <string.h>

#include "runtime/layer/attention.h"
#include "runtime/layer/norm.h"
#include "runtime/pools/indexer.h"
#include "runtime/pools/row_parts.h"

/* A head's NoPE dimensions, which stand before its RoPE dimensions. */
static size_t
nope_dim(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_head_dim(h, layer) - lmq_layer_rotary_dim(h, layer);
}

/* ---- Queries and the cache ---- */

/* x += bias, a whole row. */
static void
add_bias(const struct lmq_member *member, const struct lmq_matrix *matrix,
         float *x)
{
    if (matrix->bias != NULL)
        member->kernels->add(x, matrix->bias, matrix->n_rows);
}

/* The cache += [norm(c + bias), rope(k_rope)], or rope(norm(k_rope)), which
 * comes as one row [c, k_rope] out of W_kv_a. */
static void
finish_latents(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_angles *angles = lmq_member_angles(member);
    size_t width = lmq_key_width(h, member->index), from, to;
    size_t rank = lmq_layer_latents(h, member->index);
    bool has_norm = h->qk_norm == LMQ_QK_NORM_TURNING && rank < width;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *key = member->work->k + t * width; /* [c, k_rope] */
        add_bias(member, &part->kv_a, key);
        lmq_norm_latents(h, &part->kv_a_norm, key, rank);
        if (has_norm)
            lmq_norm(h, &part->k_norm, key + rank, width - rank, key + rank);
        if (angles != NULL)
            lmq_member_rope(member, angles, t, key + rank);
        lmq_member_store_key(member, 0, t, key);
    }
}

void
lmq_latent_queries(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t width = h->q_lora_rank, from, to;

    lmq_member_share(member, width > 0 ? member->n : 0, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *q = member->work->q_a + t * width;
        float *pair =
            h->has_raw_latents ? member->work->q_pair + t * 2 * width : NULL;
        add_bias(member, &part->q_a, q);
        if (pair != NULL)
            memcpy(pair + width, q, width * sizeof(*q));
        lmq_norm_latents(h, &part->q_a_norm, q, width);
        if (pair != NULL)
            memcpy(pair, q, width * sizeof(*q));
    }
}

/* q += bias, q_latent[kv_lora_rank:] = rope(q_rope): the order of the cache's
 * rows, so that one product of scores takes both parts. */
static void
finish_queries(const struct lmq_member *member,
               const struct lmq_matrix *matrix)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_angles *angles = lmq_member_angles(member);
    size_t nope = nope_dim(h, member->index);
    size_t rope = lmq_layer_rotary_dim(h, member->index);
    size_t rank = lmq_layer_latents(h, member->index);
    size_t n_heads = lmq_layer_heads(h, member->index), dim = nope + rope;
    size_t from, to;

    lmq_member_share(member, member->n * n_heads, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t head = i % n_heads;
        float *q = member->work->q + i * dim; /* [nope, rope] */
        float *latent =
            member->work->q_latent + i * lmq_key_width(h, member->index);
        if (matrix->bias != NULL)
            member->kernels->add(q, matrix->bias + head * dim, dim);
        if (angles != NULL)
            lmq_member_rope(member, angles, i / n_heads, q + nope);
        memcpy(latent + rank, q + nope, rope * sizeof(*q));
    }
}

/* ---- Attention ---- */

void
lmq_latent_remember(const struct lmq_member *member, struct lmq_operand *xn)
{
    bool chooses = lmq_layer_chooses(member->h, member->index);

    lmq_multiply(member, &member->layer->attention.kv_a, xn,
                 member->work->k); /* [c, k_rope] */
    if (chooses)
        lmq_index_multiply(member, xn);
    lmq_barrier(member); /* norms read whole rows */
    finish_latents(member); /* cache += [c, k_rope] */
    if (chooses)
        lmq_index_remember(member); /* cache += keys of the index */
}

/* What the layer chooses, or an earlier one has: where all is seen nobody looks
 * at that, but who wants to see what matrices are multiplied with. */
static void
choose(const struct lmq_member *member, struct lmq_heads *heads)
{
    const struct lmq_hparams *h = member->h;
    struct lmq_work *work = member->work;
    struct lmq_operand latents = /* (n, q_lora_rank), normed */
        lmq_operand_of(member, work->q_a, h->q_lora_rank);
    bool is_needed = lmq_index_is_needed(member);

    if (lmq_layer_chooses(h, member->index) &&
        (is_needed || work->witness != NULL))
        lmq_index_choose(member, &latents);
    if (!is_needed || lmq_layer_chooser(h, member->index) == SIZE_MAX)
        return;
    heads->chosen = work->chosen;
    heads->chosen_stride = lmq_index_stride(member);
}

void
lmq_latent_attention(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    struct lmq_work *work = member->work;
    struct lmq_operand q_a = /* (n, q_lora_rank), or twice as many */
        lmq_operand_of(member, h->has_raw_latents ? work->q_pair : work->q_a,
                       lmq_query_latents(h));
    bool is_direct = h->q_lora_rank == 0;
    bool chooses = lmq_layer_chooses(h, member->index);
    struct lmq_heads heads = lmq_heads_of(member);
    size_t n_heads = lmq_layer_heads(h, member->index);

    heads.queries = work->q_latent;
    heads.out = work->out_latent;

    lmq_multiply(member, &part->kv_a, xn, work->k); /* [c, k_rope] */
    lmq_multiply(member, is_direct ? &part->q : &part->q_a, xn,
                 is_direct ? work->q : work->q_a); /* q, or q_a */
    if (chooses)
        lmq_index_multiply(member, xn); /* keys of the index, weights */
    lmq_barrier(member); /* norms read whole rows */
    lmq_latent_queries(member); /* q_a = norm(q_a) */
    finish_latents(member); /* cache += [c, k_rope] */
    if (chooses)
        lmq_index_remember(member); /* cache += keys of the index */
    lmq_barrier(member); /* all read all of q_a, later the cache */
    if (!is_direct) {
        lmq_multiply(member, &part->q_b, &q_a, work->q); /* q = W_q_b q_a */
        if (h->has_raw_latents && part->gate.tensor != NULL)
            lmq_multiply(member, &part->gate, &q_a, work->attn_gate);
        lmq_barrier(member); /* heads are not cut as products are */
    }
    choose(member, &heads);
    finish_queries(member, is_direct ? &part->q : &part->q_b);
    /* q_latent[:kv_lora_rank] = W_k_b q_nope */
    lmq_multiply_parts(member, part->k_b, n_heads, work->q,
                       lmq_layer_head_dim(h, member->index), work->q_latent,
                       lmq_key_width(h, member->index));
    lmq_barrier(member); /* a head reads all of its q_latent */
    lmq_attention(member, &heads); /* out_latent = softmax(q_latent K^T) c */
    /* attention = W_v_b out_latent */
    lmq_multiply_parts(member, part->v_b, n_heads, work->out_latent,
                       lmq_value_width(h, member->index), work->attention,
                       lmq_layer_value_dim(h, member->index));
}
