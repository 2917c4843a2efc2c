/*
 * hf_latest.c - what the families that came last do in config.json beside
 * their rows: Trinity, Hunyuan 3, Mellum, HyperCLOVA X, MiniCPM, Command A with
 * experts, Granite with windows, Ling, Sarvam, MiMo V2.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- Trinity, Hunyuan 3, Mellum ---- */

void
lmq_hf_windows_afmoe(struct lmq_hf_config *config)
{
    lmq_hf_leave_windows(config,
                         lmq_hf_period(config, "global_attn_every_n_layers",
                                       config->family->window_period));
}

/* Layers that see everything do not turn, be there windows or not. */
static void
mark_still_full(struct lmq_hf_config *config)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (lmq_layer_is(config->hparams, i, LMQ_LAYER_FULL))
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
}

void
lmq_hf_finish_afmoe(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    mark_still_full(config);
    lmq_hf_mark_first_dense(config, "num_dense_layers", 1);
    lmq_hf_share_experts(config, "num_shared_experts", 2);
    lmq_hf_route_by_sigmoid(h);
    h->router_renormalises = true;
    h->has_attn_gate = true;
    if (lmq_hf_switch(config, config->json, "mup_enabled", false))
        h->embedding_scale = sqrt((double)h->dim);
}

void
lmq_hf_finish_hyv3(struct lmq_hf_config *config)
{
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 1);
    lmq_hf_share_experts(config, "num_shared_experts", 1);
    lmq_hf_route_by_sigmoid(config->hparams);
    config->hparams->router_renormalises = true;
    lmq_hf_read_further(config, "num_nextn_predict_layers");
}

/* If "layer_types" says nothing else, all layers see everything; and all have
 * experts. */
void
lmq_hf_windows_mellum(struct lmq_hf_config *config)
{
    lmq_hf_leave_windows(config, 1);
}

void
lmq_hf_finish_mellum(struct lmq_hf_config *config)
{
    lmq_hf_mark_dense(config, 0, 1);
}

/* ---- Flint ---- */

/* The first two layers see everything, then each fourth, and the last. */
void
lmq_hf_windows_flint(struct lmq_hf_config *config)
{
    const uint32_t n = lmq_hf_layers(config);

    for (uint32_t i = 0; i < n; i++)
        if (i < 2 || i % config->family->window_period == 1 || i + 1 == n)
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

void
lmq_hf_finish_flint(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_finish_qwen_experts(config);
    if (!lmq_hf_has(config->json, "mlp_only_layers"))
        for (uint32_t i = 0; i < 2 && i < lmq_hf_layers(config); i++)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
    mark_still_full(config);
    h->router = LMQ_ROUTER_SIGMOID;
    h->has_sinks = true;
}

/* ---- EXAONE 3 ---- */

/* The library has another name for what its makers' files say, and means
 * something else where nothing is said. */
void
lmq_hf_begin_exaone(struct lmq_hf_config *config)
{
    if (lmq_hf_has(config->json, "rms_norm_eps"))
        config->hparams->norm_eps =
            lmq_hf_real(config, config->json, "rms_norm_eps", 0);
    else if (!lmq_hf_has(config->json, "layer_norm_epsilon"))
        config->source->unsaid_eps = "layer_norm_epsilon";
}

/* ---- nanochat ---- */

void
lmq_hf_begin_nanochat(struct lmq_hf_config *config)
{
    config->hparams->has_embedding_norm = true;
    config->hparams->qk_norm_late = true;
}

/* ---- HyperCLOVA X, MiniCPM ---- */

void
lmq_hf_begin_hyperclovax(struct lmq_hf_config *config)
{
    if (!lmq_hf_switch(config, config->json, "use_post_norm", true))
        config->hparams->norm_place = LMQ_NORMS_BEFORE;
}

/* What was found with a small model holds for a large one: what layers add is
 * scaled by their number, logits by the width that they were found with. */
static void
scale_by_size(struct lmq_hf_config *config, double depth, double base)
{
    static const char depth_key[] = "scale_depth";
    static const char base_key[] = "dim_model_base";
    struct lmq_hparams *h = config->hparams;

    if (!lmq_hf_is_null(config->json, depth_key))
        h->residual_scale =
            lmq_hf_real(config, config->json, depth_key, depth) /
            sqrt((double)h->n_layers);
    if (!lmq_hf_is_null(config->json, base_key))
        h->logit_scale =
            lmq_hf_real(config, config->json, base_key, base) / h->dim;
    if (!(h->logit_scale > 0))
        lmq_hf_fail(config, "'%s' in the configuration is no width", base_key);
}

void
lmq_hf_finish_minicpm(struct lmq_hf_config *config)
{
    scale_by_size(config, 1, 1);
    if (lmq_hf_has(config->json, "sparse_config"))
        lmq_hparams_refuse(config->hparams, "sparse attention "
                                            "('sparse_config')");
}

void
lmq_hf_finish_minicpm3(struct lmq_hf_config *config)
{
    double scale = lmq_hf_yarn_score_scale(config);

    scale_by_size(config, 1.4, 256);
    /* The model's own code does not scale scores by it, the library does. */
    if (scale < 1 || scale > 1)
        lmq_hparams_refuse(config->hparams, "'mscale_all_dim' with latents of "
                                            "this kind");
}

/* ---- Command A with experts ---- */

/* Its first layers may be dense, and have turns of windows of their own. */
static uint32_t
n_dense(struct lmq_hf_config *config)
{
    return lmq_hf_count(config, config->json, "first_k_dense_replace", 0);
}

void
lmq_hf_begin_cohere2_experts(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (!lmq_hf_has(config->json, "rms_norm_eps"))
        return;
    h->norm = LMQ_NORM_RMS;
    h->norm_eps = lmq_hf_real(config, config->json, "rms_norm_eps", 0);
}

void
lmq_hf_windows_cohere2_experts(struct lmq_hf_config *config)
{
    uint32_t n_first = n_dense(config);
    uint32_t first = lmq_hf_period(config,
                                   "prefix_dense_sliding_window_pattern", 1);
    uint32_t period = lmq_hf_period(config, "sliding_window_pattern",
                                    config->family->window_period);

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (i < n_first ? (i + 1) % first == 0
                        : (i - n_first + 1) % period == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

/* The sum of what experts and shared ones give, or the mean. */
static void
combine(struct lmq_hf_config *config)
{
    static const char key[] = "shared_expert_combination_strategy";
    const char *way = lmq_hf_text(config, config->json, key, "average");
    struct lmq_hparams *h = config->hparams;

    if (h->shared_dim == 0 || strcmp(way, "sum") == 0)
        return;
    h->router_scale = h->shared_scale = 0.5;
    lmq_hf_expect_word(config, key, "average");
}

/* Layers that see everything do not turn, but for dense ones if all do. */
void
lmq_hf_finish_cohere2_experts(struct lmq_hf_config *config)
{
    static const char key[] = "expert_selection_fn";
    const char *choice = lmq_hf_text(config, config->json, key, "softmax");
    struct lmq_hparams *h = config->hparams;
    bool may_turn = lmq_hf_count(config, config->json,
                                 "prefix_dense_sliding_window_pattern",
                                 1) == 1;

    lmq_hf_mark_dense(config, n_dense(config), 1);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if ((h->sliding_window == 0 || lmq_layer_is(h, i, LMQ_LAYER_FULL)) &&
            !(may_turn && lmq_layer_is(h, i, LMQ_LAYER_DENSE)))
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
    lmq_hf_share_experts(config, "num_shared_experts", 0);
    combine(config);
    h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
    if (strcmp(choice, "sigmoid") == 0) {
        h->router = LMQ_ROUTER_SIGMOID;
        h->router_renormalises =
            lmq_hf_switch(config, config->json, "norm_topk_prob", true);
    } else if (strcmp(choice, "softmax") != 0) {
        lmq_hparams_refuse(h, "'%s' '%.60s'", key, choice);
    }
}

/* ---- Granite with windows ---- */

/* One base for layers with a window and one for the others; 0: these do not
 * turn. */
static void
read_bases(struct lmq_hf_config *config)
{
    static const char key[] = "layer_rope_theta";
    const json_t *list = lmq_hf_list(config, config->json, key);
    struct lmq_hparams *h = config->hparams;
    double bases[2] = {0, 0}; /* where all is seen, where not */

    if (list == NULL)
        return;
    lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const json_t *item = json_array_get(list, i);
        double base = json_number_value(item);
        double *own = &bases[!lmq_layer_is(h, i, LMQ_LAYER_FULL)];
        if (!json_is_number(item) || base < 0)
            lmq_hf_fail(config, "'%s' in the configuration is no list of "
                                "numbers from 0",
                        key);
        else if (!(base > 0))
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
        else if (*own > 0 && (base < *own || base > *own))
            lmq_hparams_refuse(h, "layers of one kind that differ in '%s'",
                               key);
        else
            *own = base;
    }
    if (bases[0] > 0 || bases[1] > 0)
        h->rope_theta = bases[0] > 0 ? bases[0] : bases[1];
    if (!(bases[0] > 0) || !(bases[1] > 0) ||
        !(bases[0] < bases[1] || bases[0] > bases[1]))
        return;
    h->rope_local_theta = bases[1];
    if (h->rope_scaling != LMQ_ROPE_PLAIN)
        lmq_hparams_refuse(h, "two bases in '%s' beside a scaling", key);
}

void
lmq_hf_finish_granite_windows(struct lmq_hf_config *config)
{
    lmq_hf_finish_granite(config);
    read_bases(config);
    config->hparams->has_sinks = true;
    if (config->hparams->n_experts > 0)
        config->hparams->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
}

/* ---- Ling ---- */

void
lmq_hf_finish_ling(struct lmq_hf_config *config)
{
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 0);
    lmq_hf_share_experts(config, "num_shared_experts", 0);
}

void
lmq_hf_finish_ling2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 1);
    lmq_hf_share_experts(config, "num_shared_experts", 1);
    lmq_hf_route_by_sigmoid(h);
    h->router_renormalises = true;
    lmq_hf_read_further(config, "num_nextn_predict_layers");
}

/* ---- Sarvam ---- */

/* The library calls them otherwise than the makers' files. */
static const char *
shared_key(const struct lmq_hf_config *config)
{
    static const char theirs[] = "num_shared_experts";

    return lmq_hf_has(config->json, theirs) ? theirs : "n_shared_experts";
}

void
lmq_hf_finish_sarvam(struct lmq_hf_config *config)
{
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 1);
    lmq_hf_share_experts(config, shared_key(config), 1);
    lmq_hf_route_by_sigmoid(config->hparams);
    lmq_hf_read_further(config, "num_nextn_predict_layers");
    lmq_hf_read_further(config, "num_mtp_layers");
}

void
lmq_hf_finish_sarvam_latent(struct lmq_hf_config *config)
{
    lmq_hf_finish_glm4lite(config);
    lmq_hf_share_experts(config, shared_key(config), 1);
    lmq_hf_read_further(config, "num_mtp_layers");
}

/* ---- MiMo V2 ---- */

/* Not said, the scale is 0.707 to the library, and 1 to others. */
void
lmq_hf_begin_mimo2(struct lmq_hf_config *config)
{
    static const char scale[] = "attention_value_scale";
    struct lmq_hparams *h = config->hparams;

    h->norm_eps = lmq_hf_real(config, config->json, "layernorm_epsilon",
                              h->norm_eps);
    if (json_object_get(config->json, scale) == NULL)
        lmq_hparams_refuse(h, "a model of this kind without '%s'", scale);
}

/* The makers' files say beside it how many tokens before its own a token sees;
 * the library adds that one, llama.cpp's converter does not. */
void
lmq_hf_windows_mimo2(struct lmq_hf_config *config)
{
    static const char before[] = "sliding_window_size";

    if (lmq_hf_has(config->json, before))
        config->hparams->sliding_window = lmq_hf_width(
            config, (uint64_t)lmq_hf_count(config, config->json, before, 0) + 1,
            1);
    if (lmq_hf_mark_by_list(config, "hybrid_layer_pattern", LMQ_LAYER_FULL))
        return;
    lmq_hf_mark(config, 0, LMQ_LAYER_FULL);
    lmq_hf_leave_windows(config, config->family->window_period);
}

/* What the makers' files say twice. */
static void
expect_same(struct lmq_hf_config *config, const char *key, uint32_t value)
{
    if (lmq_hf_count(config, config->json, key, value) != value)
        lmq_hparams_refuse(config->hparams, "'%s' other than %u", key, value);
}

/* Layers with a window have sinks, and key heads of their own. */
void
lmq_hf_finish_mimo2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t n_near = lmq_hf_count(config, config->json,
                                   "swa_num_key_value_heads",
                                   lmq_hf_width(config, h->n_kv_heads, 2));
    bool has_window = false;

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (lmq_layer_window(h, i) > 0)
            has_window = true;
        else
            lmq_hf_mark(config, i, LMQ_LAYER_SINKLESS);
    h->has_sinks = has_window;
    if (has_window) {
        h->full_kv_heads = h->n_kv_heads;
        h->n_kv_heads = n_near;
    }
    expect_same(config, "swa_head_dim", h->head_dim);
    expect_same(config, "swa_v_head_dim", h->value_dim);
    expect_same(config, "swa_num_attention_heads", h->n_heads);
    if (lmq_hf_has(config->json, "mlp_layer_types") ||
        !lmq_hf_mark_by_list(config, "moe_layer_freq", LMQ_LAYER_DENSE))
        lmq_hf_mark_dense(config, 1, 1);
    lmq_hf_route_by_sigmoid(h);
}
