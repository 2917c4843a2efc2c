/*
 * heads_out.c - from what heads give to what attention gives.
 *
 *   heads *= open(gate), heads = norm(heads)   in some models
 *   parts = W_a[part] heads[part]              (n, n_out_groups, out_rank)
 *   out = W_out heads, or W_out parts          (n, dim)
 */
#include "config.h"

#include "runtime/pools/heads_out.h"

#include "formats/model/pools.h"
#include "runtime/layer/gating.h"
#include "runtime/layer/norm.h"
#include "runtime/pools/row_parts.h"

/* heads = norm(heads), all of a token as one row. */
static void
norm_heads(const struct lmq_member *member, size_t width)
{
    const struct lmq_gain *gain = &member->layer->attention.sub_norm;
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *heads = member->work->attention + t * width;
        lmq_norm(member->h, gain, heads, width, heads);
    }
}

void
lmq_heads_out(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_hparams *h = member->h;
    struct lmq_work *work = member->work;
    size_t width = (size_t)lmq_layer_heads(h, member->index) *
                   lmq_layer_value_dim(h, member->index);
    bool has_parts = h->n_out_groups > 0;
    struct lmq_operand heads = /* (n, n_heads * value_dim), or parts */
        lmq_operand_of(member, has_parts ? work->out_a : work->attention,
                       part->out.n_cols);

    lmq_barrier(member); /* a row of W_out reads all heads */
    if (part->gate.tensor != NULL) {
        lmq_gate_heads(member, &part->gate); /* heads *= open(gate) */
        lmq_barrier(member); /* pieces are cut otherwise than rows */
    }
    if (h->has_sub_norms) {
        norm_heads(member, width); /* heads = norm(heads) */
        lmq_barrier(member); /* a row of W_out reads all heads */
    }
    if (has_parts) { /* parts = W_a heads */
        lmq_multiply_parts(member, part->out_a, h->n_out_groups,
                           work->attention, width / h->n_out_groups,
                           work->out_a, h->out_rank);
        lmq_barrier(member); /* a row of W_out reads all parts */
    }
    lmq_multiply(member, &part->out, &heads, work->out);
}
