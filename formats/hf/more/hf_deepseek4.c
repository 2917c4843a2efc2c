/*
 * hf_deepseek4.c - what DeepSeek V4 does in config.json beside its row.
 *
 * Kinds of layers, of feed-forwards, and how each kind turns have words of
 * their own; the makers' files say the same by numbers and otherwise called.
 */
#include "config.h"

#include "formats/hf/more/hf_further.h"

#include <string.h>

#include "formats/hf/hf_reader.h"

/* What the class has where nothing is said. */
#define OVERLAP 4
#define POOL 128

/* ---- Kinds of layers ---- */

static const char overlap_word[] = "compressed_sparse_attention";
static const char pool_word[] = "heavily_compressed_attention";

static void
mark_by_word(struct lmq_hf_config *config, uint32_t layer, const char *word)
{
    if (word != NULL && strcmp(word, overlap_word) == 0)
        lmq_hf_mark(config, layer, LMQ_LAYER_OVERLAP);
    else if (word != NULL && strcmp(word, pool_word) == 0)
        lmq_hf_mark(config, layer, LMQ_LAYER_POOL);
    else if (word == NULL || strcmp(word, "sliding_attention") != 0)
        lmq_hparams_refuse(config->hparams, "'%.60s' in 'layer_types'",
                           word == NULL ? "(none)" : word);
}

/* Of each layer, and perhaps of more behind them, how many tokens make one. */
static void
mark_by_ratio(struct lmq_hf_config *config, uint32_t layer,
              const json_t *ratio)
{
    static const char key[] = "compress_ratios";
    int64_t n = lmq_hf_number(config, ratio, key);

    if (n == OVERLAP)
        lmq_hf_mark(config, layer, LMQ_LAYER_OVERLAP);
    else if (n == POOL)
        lmq_hf_mark(config, layer, LMQ_LAYER_POOL);
    else if (n != 0)
        lmq_hparams_refuse(config->hparams, "a %lld in '%s'", (long long)n,
                           key);
}

static void
mark_layers(struct lmq_hf_config *config)
{
    const json_t *types = lmq_hf_list(config, config->json, "layer_types");
    const json_t *ratios =
        lmq_hf_list(config, config->json, "compress_ratios");
    const json_t *list = types != NULL ? types : ratios;
    uint32_t n = lmq_hf_layers(config);

    if (list != NULL && json_array_size(list) < n)
        lmq_hf_expect_layers(config,
                             types != NULL ? "layer_types" : "compress_ratios",
                             json_array_size(list));
    for (uint32_t i = 0; i < n && config->status == LMQ_OK; i++)
        if (types != NULL)
            mark_by_word(config, i, json_string_value(json_array_get(list, i)));
        else if (ratios != NULL)
            mark_by_ratio(config, i, json_array_get(list, i));
        else
            lmq_hf_mark(config, i, i < 2 || i % 2 == 0 ? LMQ_LAYER_POOL
                                                       : LMQ_LAYER_OVERLAP);
}

static void
read_sizes(struct lmq_hf_config *config)
{
    const json_t *rates = lmq_hf_object(config, config->json, "compress_rates");
    struct lmq_hparams *h = config->hparams;

    h->overlap_size = lmq_hf_count(
        config, config->json, "compress_rate_csa",
        rates == NULL ? OVERLAP : lmq_hf_count(config, rates, overlap_word, 0));
    h->pool_size = lmq_hf_count(
        config, config->json, "compress_rate_hca",
        rates == NULL ? POOL : lmq_hf_count(config, rates, pool_word, 0));
}

/* The first layers know the experts of a token beforehand. */
static void
mark_tables(struct lmq_hf_config *config)
{
    static const char key[] = "mlp_layer_types";
    const json_t *types = lmq_hf_list(config, config->json, key);
    uint32_t n = lmq_hf_count(config, config->json, "num_hash_layers", 3);

    if (types != NULL && json_array_size(types) < lmq_hf_layers(config))
        lmq_hf_expect_layers(config, key, json_array_size(types));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (types == NULL ? i < n
                          : type != NULL && strcmp(type, "hash_moe") == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_TOKENS);
        else if (types != NULL && (type == NULL || strcmp(type, "moe") != 0))
            lmq_hparams_refuse(config->hparams, "'%.60s' in '%s'",
                               type == NULL ? "(none)" : type, key);
    }
}

/* ---- Positions ---- */

/* Of a head, how much turns. */
static double
part_of(struct lmq_hf_config *config, const json_t *object, double beside)
{
    return lmq_hf_real(config, object, "partial_rotary_factor", beside);
}

static void
read_part(struct lmq_hf_config *config, const json_t *far, const json_t *near)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t n = lmq_hf_count(config, config->json, "qk_rope_head_dim", 64);
    double usual = lmq_hf_has(config->json, "qk_rope_head_dim")
                       ? (double)n / h->head_dim
                       : 64.0 / 512;
    double part = part_of(config, config->json, usual);
    double inside = part_of(config, far, part);

    if (inside < part_of(config, near, part) ||
        inside > part_of(config, near, part))
        lmq_hparams_refuse(h, "'partial_rotary_factor' of some layers alone");
    h->rotary_dim = inside > 0 && inside <= 1
                        ? (uint32_t)((double)h->head_dim * inside)
                        : 0;
    if (h->rotary_dim == 0)
        lmq_hf_fail(config, "'partial_rotary_factor' in the configuration is "
                            "%g: nothing turns",
                    inside);
}

/* Layers without pools turn by a base of their own, unscaled. YaRN's gain is
 * not that of the others, if it is not said. */
static void
read_turning(struct lmq_hf_config *config)
{
    const json_t *rope = lmq_hf_rope_object(config);
    const json_t *near = lmq_hf_object(config, rope, "main");
    const json_t *far = lmq_hf_object(config, rope, "compress");
    struct lmq_hparams *h = config->hparams;
    bool is_nested = near != NULL && far != NULL;

    if (!is_nested && (near != NULL || far != NULL))
        lmq_hparams_refuse(h, "rotary positions of some layers alone");
    if (!is_nested)
        far = rope;
    h->rope_local_theta =
        lmq_hf_real(config, config->json, "rope_theta", 10000);
    h->rope_theta =
        lmq_hf_real(config, config->json, "compress_rope_theta", 160000);
    if (is_nested) {
        h->rope_local_theta =
            lmq_hf_real(config, near, "rope_theta", h->rope_local_theta);
        h->rope_theta = lmq_hf_real(config, far, "rope_theta", h->rope_theta);
        if (strcmp(lmq_hf_text(config, near, "rope_type", "default"),
                   "default") != 0)
            lmq_hparams_refuse(h, "rotary scaling of layers without pools");
    }
    read_part(config, far, near);
    lmq_hf_read_scaling(config, far);
    if (h->rope_scaling != LMQ_ROPE_PLAIN && h->rope_scaling != LMQ_ROPE_YARN)
        lmq_hparams_refuse(h, "rotary scaling other than 'yarn'");
    if (h->rope_scaling == LMQ_ROPE_YARN &&
        !lmq_hf_has(far, "attention_factor"))
        h->rope_attention_factor = 1;
}

/* ---- The whole ---- */

void
lmq_hf_begin_deepseek4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->has_turned_values = h->has_sinks = true;
    h->hidden_dim = h->expert_dim;
    h->router = LMQ_ROUTER_ROOT_SOFTPLUS;
    h->router_corrects = h->router_renormalises = true;
    lmq_hf_read_further(config, "num_nextn_predict_layers");
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_gain = 2;
    if (h->n_streams < 2 || h->stream_rounds == 0)
        lmq_hparams_refuse(h, "'hc_mult' %u with 'hc_sinkhorn_iters' %u",
                           h->n_streams, h->stream_rounds);
    if (h->n_kv_heads != 1)
        lmq_hparams_refuse(h, "'num_key_value_heads' %u", h->n_kv_heads);
    if (!(h->glu_limit > 0))
        lmq_hparams_refuse(h, "'swiglu_limit' %g", h->glu_limit);
    if (h->index_topk == 0)
        lmq_hparams_refuse(h, "'index_topk' 0");
    /* Pairs of heads that are cut could not be put in order. */
    if (h->n_out_groups > 0 && h->n_heads % h->n_out_groups != 0)
        lmq_hparams_refuse(h, "'o_groups' %u for %u heads", h->n_out_groups,
                           h->n_heads);
    if (h->n_out_groups == 0 || h->q_lora_rank == 0)
        lmq_hf_fail(config, "'o_groups' or 'q_lora_rank' in the configuration "
                            "is 0");
}

void
lmq_hf_windows_deepseek4(struct lmq_hf_config *config)
{
    mark_layers(config);
    read_sizes(config);
    mark_tables(config);
    read_turning(config);
}

void
lmq_hf_finish_deepseek4(struct lmq_hf_config *config)
{
    lmq_hf_share_experts(config, "n_shared_experts", 1);
}
