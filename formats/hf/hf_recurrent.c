/*
 * hf_recurrent.c - what config.json says of layers that remember a state: the
 * gated delta rule (Qwen 3 Next, 3.5), the state space of Mamba 2 (Granite 4,
 * Bamba, Nemotron-H, Mamba 2 itself), short convolutions (LFM 2 and 3).
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* The activation is that of the convolution, too. */
static void
expect_silu(struct lmq_hparams *h)
{
    if (h->activation != LMQ_ACTIVATION_SILU)
        lmq_hparams_refuse(h, "a convolution with another activation than "
                              "SiLU");
}

static void
mark_all(struct lmq_hf_config *config, unsigned kinds)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        lmq_hf_mark(config, i, (enum lmq_layer_kind)kinds);
}

/* All layers are recurrent but the listed ones, which have attention. */
static void
mark_unlisted(struct lmq_hf_config *config, const char *key)
{
    const json_t *list = lmq_hf_list(config, config->json, key), *layer;
    size_t i;

    mark_all(config, LMQ_LAYER_DELTA);
    json_array_foreach(list, i, layer)
        lmq_hf_unmark(config, lmq_hf_number(config, layer, key),
                      LMQ_LAYER_DELTA);
}

/* ---- The gated delta rule ---- */

/* Where "layer_types" does not say it, every so many-th layer has attention. */
void
lmq_hf_windows_delta(struct lmq_hf_config *config)
{
    uint32_t period = lmq_hf_period(config, "full_attention_interval", 4);

    if (lmq_hf_has(config->json, "layer_types"))
        return;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if ((i + 1) % period != 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

void
lmq_hf_finish_qwen3next(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->has_attn_gate = true;
    expect_silu(h);
    if (h->n_experts == 0)
        return;
    if (h->hidden_dim == 0) /* all layers have experts */
        h->hidden_dim = h->expert_dim;
    lmq_hf_finish_qwen_experts(config);
}

void
lmq_hf_finish_qwen35(struct lmq_hf_config *config)
{
    config->hparams->router_renormalises = true;
    lmq_hf_finish_qwen3next(config);
}

/* ---- The state space of Mamba 2 ---- */

/* As hf_config.c quotes it, or as newer versions of the library write it. */
static bool
is_endless(const json_t *limit)
{
    const json_t *named =
        json_is_object(limit) ? json_object_get(limit, "__float__") : limit;
    const char *name = json_string_value(named);

    return name != NULL ? strcmp(name, "Infinity") == 0
                        : json_number_value(limit) >= 1e9;
}

/* Steps are whatever softplus gives. */
static void
expect_free_steps(struct lmq_hf_config *config)
{
    static const char key[] = "time_step_limit";
    const json_t *limits = lmq_hf_list(config, config->json, key);
    const json_t *first = json_array_get(limits, 0);

    if (limits == NULL)
        return;
    if (json_array_size(limits) != 2 || !json_is_number(first) ||
        json_number_value(first) > 0 ||
        !is_endless(json_array_get(limits, 1)))
        lmq_hparams_refuse(config->hparams, "'%s' that limits steps", key);
}

static void
begin_state_space(struct lmq_hf_config *config)
{
    config->hparams->recurrence = LMQ_RECURRENCE_STATE_SPACE;
    expect_free_steps(config);
}

/* The heads share a width that is so many times the model's. */
static void
share_width(struct lmq_hf_config *config, const char *expand_key,
            const char *head_key)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t n_heads = h->n_delta_value_heads;
    double width = floor(lmq_hf_real(config, config->json, expand_key, 2) *
                         (double)h->dim);
    const json_t *head = json_object_get(config->json, head_key);

    if (n_heads == 0 || !(width > 0) || width > LMQ_MAX_WIDTH ||
        (uint32_t)width % n_heads != 0) {
        lmq_hf_fail(config, "%u heads of a state space cannot share a width "
                            "of %g",
                    n_heads, width);
        return;
    }
    h->delta_value_dim = (uint32_t)width / n_heads;
    if (head != NULL && !json_is_null(head) &&
        (json_string_value(head) == NULL ||
         strcmp(json_string_value(head), "auto") != 0) &&
        json_integer_value(head) != h->delta_value_dim)
        lmq_hf_fail(config, "'%s' in the configuration is not the %u that "
                            "'%s' makes",
                    head_key, h->delta_value_dim, expand_key);
}

void
lmq_hf_begin_bamba(struct lmq_hf_config *config)
{
    begin_state_space(config);
    share_width(config, "mamba_expand", "mamba_d_head");
}

void
lmq_hf_windows_bamba(struct lmq_hf_config *config)
{
    if (!lmq_hf_has(config->json, "layer_types"))
        mark_unlisted(config, "attn_layer_indices");
}

/* For those of which nothing else is left to say. */
void
lmq_hf_finish_silu(struct lmq_hf_config *config)
{
    expect_silu(config->hparams);
}

/* ---- Falcon-H1 ---- */

/* All layers have both. */
void
lmq_hf_begin_falcon_hybrid(struct lmq_hf_config *config)
{
    static const char key[] = "mamba_d_ssm";
    struct lmq_hparams *h = config->hparams;
    uint32_t n_heads = h->n_delta_value_heads;
    uint32_t width = lmq_hf_count(config, config->json, key, 1024);

    begin_state_space(config);
    mark_all(config, LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE);
    if (lmq_hf_is_null(config->json, key))
        share_width(config, "mamba_expand", "mamba_d_head");
    else if (n_heads == 0 || width == 0 || width % n_heads != 0)
        lmq_hf_fail(config, "%u heads of a state space cannot share a width "
                            "of %u",
                    n_heads, width);
    else
        h->delta_value_dim = width / n_heads;
    h->has_bare_states =
        !lmq_hf_switch(config, config->json, "mamba_rms_norm", false);
    if (!h->has_bare_states &&
        lmq_hf_switch(config, config->json, "mamba_norm_before_gate", true))
        lmq_hparams_refuse(h, "'mamba_norm_before_gate' true");
}

/* Two of them are a float, too. */
static double
multiplier_of(struct lmq_hf_config *config, const char *key,
              const json_t *value)
{
    if (!json_is_number(value))
        lmq_hf_fail(config, "'%s' in the configuration holds something that "
                            "is no number", key);
    else if (!(json_number_value(value) > 1e-15 &&
               json_number_value(value) < 1e15))
        lmq_hf_fail(config, "'%s' in the configuration holds %g, expected "
                            "1e-15 to 1e15", key, json_number_value(value));
    return json_number_value(value);
}

/* 1 where it is null or not there. */
static double
multiplier(struct lmq_hf_config *config, const char *key)
{
    return lmq_hf_has(config->json, key)
               ? multiplier_of(config, key,
                               json_object_get(config->json, key))
               : 1;
}

/* The same of number i of a list of n. */
static double
multiplier_in(struct lmq_hf_config *config, const char *key, size_t i,
              size_t n)
{
    const json_t *list = lmq_hf_list(config, config->json, key);

    if (list == NULL)
        return 1;
    if (json_array_size(list) != n)
        lmq_hf_fail(config, "'%s' in the configuration has %zu numbers, "
                            "expected %zu", key, json_array_size(list), n);
    return multiplier_of(config, key, json_array_get(list, i));
}

/* What it multiplies with belongs to the matrices. */
void
lmq_hf_finish_falcon_hybrid(struct lmq_hf_config *config)
{
    static const char inner[] = "ssm_multipliers";
    static const enum lmq_role roles[] = {
        LMQ_ROLE_STATE_GATE, LMQ_ROLE_STATE_V, LMQ_ROLE_STATE_K,
        LMQ_ROLE_STATE_Q, LMQ_ROLE_DELTA_ALPHA};
    float *times = config->source->times;
    double in = multiplier(config, "attention_in_multiplier");
    double state_in = multiplier(config, "ssm_in_multiplier");

    times[LMQ_ROLE_ATTN_Q] = times[LMQ_ROLE_ATTN_V] = (float)in;
    times[LMQ_ROLE_ATTN_K] =
        (float)(in * multiplier(config, "key_multiplier"));
    times[LMQ_ROLE_ATTN_OUT] =
        (float)multiplier(config, "attention_out_multiplier");
    for (size_t i = 0; i < 5; i++)
        times[roles[i]] =
            (float)(state_in * multiplier_in(config, inner, i, 5));
    times[LMQ_ROLE_STATE_OUT] =
        (float)multiplier(config, "ssm_out_multiplier");
    times[LMQ_ROLE_FFN_GATE] =
        (float)multiplier_in(config, "mlp_multipliers", 0, 2);
    times[LMQ_ROLE_FFN_DOWN] =
        (float)multiplier_in(config, "mlp_multipliers", 1, 2);
    for (size_t i = 0; i < LMQ_ROLE_COUNT; i++)
        if (!(times[i] < 1 || times[i] > 1))
            times[i] = 0;
    expect_silu(config->hparams);
}

/* ---- Granite 4 ---- */

/* What its experts would share is the feed-forward where there are none. */
void
lmq_hf_begin_granite_hybrid(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    begin_state_space(config);
    if (h->n_experts > 0)
        return;
    h->hidden_dim = h->shared_dim;
    h->shared_dim = h->expert_dim = h->n_experts_used = 0;
}

/* All layers have Mamba if nothing is said. */
void
lmq_hf_windows_granite_hybrid(struct lmq_hf_config *config)
{
    if (!lmq_hf_has(config->json, "layer_types"))
        mark_all(config, LMQ_LAYER_DELTA);
}

/* Nothing turns if nothing is said. Without Mamba it is one of the older ones,
 * whose names other programs know. */
void
lmq_hf_finish_granite_hybrid(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const char *positions = lmq_hf_text(config, config->json,
                                        "position_embedding_type", "nope");
    bool has_states = false;

    lmq_hf_finish_granite(config);
    if (h->n_experts > 0)
        h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
    if (strcmp(positions, "rope") != 0)
        mark_all(config, LMQ_LAYER_NOPE);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        has_states |= lmq_layer_is(h, i, LMQ_LAYER_DELTA);
    if (has_states) {
        share_width(config, "mamba_expand", "mamba_d_head");
        expect_silu(h);
    } else {
        snprintf(h->architecture, sizeof(h->architecture), "%s",
                 h->n_experts > 0 ? "granitemoe" : "granite");
    }
}

/* ---- Nemotron-H ---- */

/* A letter or a word for each layer, which has one part. */
static void
mark_part(struct lmq_hf_config *config, int64_t layer, const char *word,
          size_t n)
{
    static const struct {
        const char *word;
        unsigned kinds;
    } parts[] = {
        {"M", LMQ_LAYER_DELTA | LMQ_LAYER_BARE},
        {"mamba", LMQ_LAYER_DELTA | LMQ_LAYER_BARE},
        {"linear_attention", LMQ_LAYER_DELTA | LMQ_LAYER_BARE},
        {"*", LMQ_LAYER_BARE},
        {"attention", LMQ_LAYER_BARE},
        {"full_attention", LMQ_LAYER_BARE},
        {"-", LMQ_LAYER_FEED | LMQ_LAYER_DENSE},
        {"mlp", LMQ_LAYER_FEED | LMQ_LAYER_DENSE},
        {"E", LMQ_LAYER_FEED},
        {"moe", LMQ_LAYER_FEED},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strlen(parts[i].word) == n &&
            memcmp(parts[i].word, word, n) == 0) {
            lmq_hf_mark(config, layer, (enum lmq_layer_kind)parts[i].kinds);
            return;
        }
    config->is_beyond = true;
    lmq_hparams_refuse(config->hparams, "a layer of the kind '%.*s'",
                       n > 40 ? 40 : (int)n, word);
}

static bool
has_layers_with_experts(const struct lmq_hparams *h)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_experts(h, i))
            return true;
    return false;
}

static bool
has_dense_feed(const struct lmq_hparams *h)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_feed(h, i) && !lmq_layer_has_experts(h, i))
            return true;
    return false;
}

/* The class lengthens shorter steps to this, under either name. What it usually
 * is, changes next to nothing. */
static void
expect_short_steps(struct lmq_hf_config *config)
{
    static const char *const keys[] = {"time_step_min", "mamba_dt_min"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        double least = lmq_hf_real(config, config->json, keys[i], 0);
        if (least > 0.001)
            lmq_hparams_refuse(config->hparams, "'%s' %g", keys[i], least);
    }
}

/* The number of layers that the configuration names counts for nothing beside
 * the list. */
void
lmq_hf_begin_nemotron_hybrid(struct lmq_hf_config *config)
{
    static const char list_key[] = "layers_block_type";
    static const char word_key[] = "hybrid_override_pattern";
    struct lmq_hparams *h = config->hparams;
    const json_t *list = lmq_hf_list(config, config->json, list_key);
    const char *pattern = lmq_hf_text(config, config->json, word_key, NULL);
    size_t n = pattern == NULL ? 0 : strlen(pattern);

    begin_state_space(config);
    expect_short_steps(config);
    if (list != NULL)
        n = json_array_size(list);
    if (n == 0 || n > LMQ_MAX_LAYERS) {
        lmq_hf_fail(config, "'%s' or '%s' in the configuration names %zu "
                            "layers",
                    list_key, word_key, n);
        return;
    }
    h->n_layers = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (list == NULL)
            mark_part(config, (int64_t)i, pattern + i, 1);
        else
            mark_part(config, (int64_t)i, word == NULL ? "" : word,
                      word == NULL ? 0 : strlen(word));
    }
    if (!has_layers_with_experts(h))
        h->n_experts = 0;
}

void
lmq_hf_finish_nemotron_hybrid(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const char *act =
        lmq_hf_text(config, config->json, "mamba_hidden_act", "silu");

    if (strcmp(act, "silu") != 0)
        lmq_hparams_refuse(h, "'mamba_hidden_act' '%.60s'", act);
    if (h->n_experts == 0)
        return;
    snprintf(h->architecture, sizeof(h->architecture), "nemotron_h_moe");
    if (!has_dense_feed(h))
        h->hidden_dim = h->expert_dim;
    if (lmq_hf_has(config->json, "moe_latent_size")) {
        config->is_beyond = true;
        lmq_hparams_refuse(h, "experts of a latent vector "
                              "('moe_latent_size')");
    }
    lmq_hf_route_by_sigmoid(h);
}

/* ---- Mamba 2 ---- */

/* No attention, no feed-forward, and no positions that would end. */
void
lmq_hf_begin_mamba2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    begin_state_space(config);
    share_width(config, "expand", "head_dim");
    h->n_heads = h->head_dim = 1; /* of no attention */
}

void
lmq_hf_windows_mamba2(struct lmq_hf_config *config)
{
    mark_all(config, LMQ_LAYER_DELTA | LMQ_LAYER_BARE);
}

/* ---- LFM 2 ---- */

/* Two thirds of what is said, times a number, as so many whole units. */
static uint32_t
adjusted_width(struct lmq_hf_config *config, uint32_t width)
{
    const json_t *json = config->json;
    uint32_t unit = lmq_hf_period(config, "block_multiple_of", 256);
    double factor = lmq_hf_real(config, json, "block_ffn_dim_multiplier", 1);
    uint64_t two_thirds = 2 * (uint64_t)width / 3;

    if (lmq_hf_is_null(json, "block_ffn_dim_multiplier"))
        return (uint32_t)two_thirds;
    double wide = floor(factor * (double)two_thirds);
    if (!(wide >= 1) || wide > LMQ_MAX_WIDTH) {
        lmq_hf_fail(config, "'block_ffn_dim_multiplier' makes a width of %g",
                    wide);
        return width;
    }
    return lmq_hf_width(config, ((uint64_t)wide + unit - 1) / unit, unit);
}

void
lmq_hf_begin_lfm2_experts(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->recurrence = LMQ_RECURRENCE_CONVOLUTION;
    h->n_delta_value_heads = 1;
    h->delta_value_dim = h->dim;
}

void
lmq_hf_begin_lfm2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_begin_lfm2_experts(config);
    if (lmq_hf_switch(config, config->json, "block_auto_adjust_ff_dim", true))
        h->hidden_dim = adjusted_width(config, h->hidden_dim);
}

/* Without either list all layers have attention. */
void
lmq_hf_windows_lfm2(struct lmq_hf_config *config)
{
    static const char key[] = "full_attn_idxs";

    if (!lmq_hf_has(config->json, "layer_types") &&
        lmq_hf_has(config->json, key))
        mark_unlisted(config, key);
}

void
lmq_hf_finish_lfm2_experts(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t n_dense =
        lmq_hf_count(config, config->json, "num_dense_layers", 2);

    for (uint32_t i = 0; i < n_dense && i < lmq_hf_layers(config); i++)
        lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
    h->router = LMQ_ROUTER_SIGMOID;
    h->router_corrects =
        lmq_hf_switch(config, config->json, "use_expert_bias", true);
}

/* ---- LFM 3 ---- */

void
lmq_hf_begin_lfm3(struct lmq_hf_config *config)
{
    lmq_hf_begin_lfm2_experts(config);
    if (lmq_hf_has(config->json, "rms_norm_eps")) /* the same */
        config->hparams->norm_eps =
            lmq_hf_real(config, config->json, "rms_norm_eps", 0);
    if (!lmq_hf_switch(config, config->json, "use_sandwich_norm", true))
        config->hparams->norm_place = LMQ_NORMS_BEFORE;
    config->hparams->has_attn_gate = config->hparams->has_head_gate =
        lmq_hf_switch(config, config->json, "use_attention_gate", true);
}

/* Of each four layers the third sees everything, the first but for layer 0 has
 * a window, if nothing else is said. */
void
lmq_hf_windows_lfm3(struct lmq_hf_config *config)
{
    if (lmq_hf_has(config->json, "layer_types"))
        return;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (i % 4 == 2)
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
        else if (i % 4 != 0 || i == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

/* Half of a head turns in layers that see everything, if nothing else is
 * said. */
void
lmq_hf_finish_lfm3(struct lmq_hf_config *config)
{
    if (!lmq_hf_has(config->json, "rope_parameters"))
        lmq_hf_turn_part(config, 0.5, 1);
}
