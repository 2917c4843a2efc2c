/*
 * test_settled.c - words of a description that have no use are as they usually
 * are, whatever they said.
 */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "formats/model/hparams.h"
#include "tests/build/suite.h"
#include "tests/families/variants.h"

static void
of_no_streams(struct lmq_hparams *h)
{
    h->stream_eps = h->stream_gain = h->stream_floor = 3;
}

static void
of_no_embedding_norm(struct lmq_hparams *h)
{
    h->has_bare_embedding_norm = true;
}

static void
norms_without_weights(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_RMS_PLAIN;
    h->has_embedding_norm = true;
}

static void
of_no_recurrence(struct lmq_hparams *h)
{
    h->delta_keep = h->delta_add = h->decay_first = h->decay_step = 3;
}

/* What stands beside attention is added with it. */
static void
recurrences_beside(struct lmq_hparams *h)
{
    for (size_t i = 0; i < h->n_layers; i++)
        h->layers[i] = LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE;
}

static void
of_none_alone(struct lmq_hparams *h)
{
    h->delta_keep = h->delta_add = 3;
}

static void
feeds_alone(struct lmq_hparams *h)
{
    for (size_t i = 0; i < h->n_layers; i++)
        h->layers[i] = LMQ_LAYER_FEED;
}

static void
of_no_attention(struct lmq_hparams *h)
{
    h->attn_keep = h->attn_add = 3;
    h->has_turned_values = true;
    h->n_out_groups = 2;
    h->out_rank = 3;
    for (size_t i = 0; i < h->n_layers; i++)
        h->layers[i] |= LMQ_LAYER_POOL | LMQ_LAYER_OVERLAP | LMQ_LAYER_TOKENS;
    h->pool_size = h->overlap_size = h->index_topk = 3;
}

static void
attention_alone(struct lmq_hparams *h)
{
    for (size_t i = 0; i < h->n_layers; i++)
        h->layers[i] = LMQ_LAYER_BARE;
}

static void
experts_elsewhere(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_BARE;
    h->n_experts = 4;
    h->n_experts_used = h->expert_dim = 2;
}

static void
of_no_feed(struct lmq_hparams *h)
{
    h->feed_keep = h->feed_add = 3;
}

static void
of_no_feed_here(struct lmq_hparams *h)
{
    h->layers[0] |= LMQ_LAYER_DENSE;
}

static void
of_no_pools(struct lmq_hparams *h)
{
    h->pool_size = h->overlap_size = h->index_topk = 3;
    h->n_index_heads = h->index_dim = h->out_rank = 3;
}

static void
pools_that_overlap(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_OVERLAP;
    h->overlap_size = 3;
}

static void
of_no_index(struct lmq_hparams *h)
{
    h->n_index_heads = h->index_dim = h->pool_size = 3;
}

static void
of_no_limit(struct lmq_hparams *h)
{
    h->glu_limits_experts = true;
}

static void
of_no_experts(struct lmq_hparams *h)
{
    h->glu_limits_experts = true;
    h->glu_limit = 3;
}

static void
convolutions(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_DELTA;
    h->recurrence = LMQ_RECURRENCE_CONVOLUTION;
    h->n_delta_value_heads = h->delta_value_dim = h->conv_width = 3;
}

static void
of_no_keys(struct lmq_hparams *h)
{
    h->state_eps = 3;
    h->n_delta_key_heads = h->delta_key_dim = 3;
    h->has_bare_states = h->has_sigmoid_gates = true;
}

START_TEST(what_has_no_use_is_not_said)
{
    static const struct {
        void (*have)(struct lmq_hparams *), (*say)(struct lmq_hparams *);
    } rows[] = {
        {NULL, of_no_streams},
        {NULL, of_no_embedding_norm},
        {norms_without_weights, of_no_embedding_norm},
        {NULL, of_no_recurrence},
        {recurrences_beside, of_none_alone},
        {feeds_alone, of_no_attention},
        {attention_alone, of_no_feed},
        {experts_elsewhere, of_no_feed_here},
        {NULL, of_no_pools},
        {pools_that_overlap, of_no_index},
        {NULL, of_no_limit},
        {NULL, of_no_experts},
        {convolutions, of_no_keys},
    };
    static struct lmq_hparams usual, h;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        variant_base(&usual);
        if (rows[i].have != NULL)
            rows[i].have(&usual);
        lmq_hparams_settle(&usual);
        memcpy(&h, &usual, sizeof(h));
        rows[i].say(&h);
        ck_assert(memcmp(&h, &usual, sizeof(h)) != 0);
        lmq_hparams_settle(&h);
        ck_assert_msg(memcmp(&h, &usual, sizeof(h)) == 0, "row %zu", i);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {what_has_no_use_is_not_said};

    return RUN_SUITE("settled descriptions", tests);
}
