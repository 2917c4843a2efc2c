/*
 * latent.c - attention by latents, as in DeepSeek V2 and V3.
 *
 * The cache holds one row for all heads: a latent, from which keys and values
 * would be made, and the RoPE part of a key. They are not made: a query goes
 * through its head's half of the key matrix instead and meets the latents,
 * and what is mixed of the latents goes through the head's value matrix.
 * That is how it is done with many tokens too, so that a token's result does
 * not depend on how many there are.
 */
#include "config.h"

#include "runtime/latent.h"

#include <string.h>

#include "runtime/attention.h"
#include "runtime/norm.h"

/* A head's NoPE dimensions, which stand before its RoPE dimensions. */
static size_t
nope_dim(const struct lmq_hparams *h)
{
    return h->head_dim - lmq_hparams_rotary_dim(h);
}

/* ---- One small matrix per head ---- */

/* Head i's operand: its part of rows that hold all heads. */
static struct lmq_operand
head_operand(const struct lmq_member *member, size_t i, const float *x,
             size_t x_width, size_t n_cols)
{
    struct lmq_operand operand = lmq_operand_of(member, x, n_cols);

    operand.x += i * x_width;
    operand.stride = member->h->n_heads * x_width;
    operand.packed += i * member->n * lmq_packed_bytes(n_cols);
    return operand;
}

/* out (n, n_heads, out_width) = each head's matrix times its part of
 * x (n, n_heads, x_width). */
static void
multiply_heads(const struct lmq_member *member,
               const struct lmq_matrix *matrices, const float *x,
               size_t x_width, float *out, size_t out_width)
{
    size_t n_heads = member->h->n_heads, total = 0;

    lmq_barrier(member); /* nobody reads what was quantized before */
    for (size_t i = 0; i < n_heads; i++) {
        const struct lmq_matrix *matrix = &matrices[i];
        struct lmq_operand operand =
            head_operand(member, i, x, x_width, matrix->n_cols);
        if (lmq_product_packs(member, matrix))
            lmq_operand_pack(member, matrix, &operand, i);
        total += lmq_product_cost(matrix, member->n);
    }
    lmq_barrier(member);
    struct lmq_share share = lmq_share_begin(member, total);
    for (size_t i = 0; i < n_heads; i++) {
        struct lmq_operand operand =
            head_operand(member, i, x, x_width, matrices[i].n_cols);
        lmq_share_product(member, &share, &matrices[i], &operand,
                          out + i * out_width, n_heads * out_width);
    }
}

/* ---- Into the cache ---- */

static void
add_bias(const struct lmq_member *member, const struct lmq_matrix *matrix,
         float *x)
{
    if (matrix->bias != NULL)
        member->kernels->add(x, matrix->bias, matrix->n_rows);
}

/* The latents of queries, and the rows of the cache. */
static void
finish_latents(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_angles *angles = lmq_member_angles(member);
    size_t width = lmq_key_width(h), from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *key = member->work->k + t * width;
        float *q = member->work->q_a + t * h->q_lora_rank;
        if (h->q_lora_rank > 0) {
            add_bias(member, &part->q_a, q);
            lmq_norm_latents(h, &part->q_a_norm, q, h->q_lora_rank);
        }
        add_bias(member, &part->kv_a, key);
        lmq_norm_latents(h, &part->kv_a_norm, key, h->kv_lora_rank);
        if (angles != NULL)
            lmq_member_rope(member, angles, t, key + h->kv_lora_rank);
        lmq_member_store(member, member->kv->keys, 0, t, key, width);
    }
}

/* The RoPE part of each query goes behind where its NoPE part will meet the
 * latents: that is how the rows of the cache are laid out. */
static void
finish_queries(const struct lmq_member *member,
               const struct lmq_matrix *matrix)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_angles *angles = lmq_member_angles(member);
    size_t nope = nope_dim(h), rope = lmq_hparams_rotary_dim(h);
    size_t from, to;

    lmq_member_share(member, member->n * h->n_heads, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t head = i % h->n_heads;
        float *q = member->work->q + i * h->head_dim;
        float *latent = member->work->q_latent + i * lmq_key_width(h);
        if (matrix->bias != NULL)
            member->kernels->add(q, matrix->bias + head * h->head_dim,
                                 h->head_dim);
        if (angles != NULL)
            lmq_member_rope(member, angles, i / h->n_heads, q + nope);
        memcpy(latent + h->kv_lora_rank, q + nope, rope * sizeof(*q));
    }
}

/* ---- All together ---- */

void
lmq_latent_attention(const struct lmq_member *member, struct lmq_operand *x)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_attention_part *part = &member->layer->attention;
    struct lmq_work *work = member->work;
    struct lmq_operand q_latent =
        lmq_operand_of(member, work->q_a, h->q_lora_rank);
    bool is_direct = h->q_lora_rank == 0;
    struct lmq_heads heads = lmq_heads_of(member);

    heads.queries = work->q_latent;
    heads.out = work->out_latent;
    heads.keys = (struct lmq_rows){
        .data = member->kv->keys,
        .type = member->kv->type,
        .n_cols = lmq_key_width(h),
        .stride = lmq_row_bytes(member->kv->type, lmq_key_width(h)),
    };
    heads.values = heads.keys;
    heads.values.n_cols = lmq_value_width(h);

    lmq_multiply(member, &part->kv_a, x, work->k);
    lmq_multiply(member, is_direct ? &part->q : &part->q_a, x,
                 is_direct ? work->q : work->q_a);
    lmq_barrier(member);
    finish_latents(member);
    lmq_barrier(member);
    if (!is_direct) {
        lmq_multiply(member, &part->q_b, &q_latent, work->q);
        lmq_barrier(member);
    }
    finish_queries(member, is_direct ? &part->q : &part->q_b);
    multiply_heads(member, part->k_b, work->q, h->head_dim, work->q_latent,
                   lmq_key_width(h));
    lmq_barrier(member);
    lmq_attention(member, &heads);
    multiply_heads(member, part->v_b, work->out_latent, lmq_value_width(h),
                   work->attention, lmq_hparams_value_dim(h));
}
