/*
 * export_hf.c - descriptions -> config.json, places -> names.
 *
 * The inverse of hf_config.c and names.c for the families that share Llama's
 * names. It need not be trusted: what it makes is read back and compared.
 */
#include "config.h"

#include "convert/export_hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "formats/hf_config.h"

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* ---- Families ---- */

/* Which matrices have biases: the class says, or a key does. */
enum biases { NO_BIAS, QKV_ALWAYS, QKV_BY_KEY, QKVO_BY_KEY };

/* What families have beyond Llama's keys. */
enum extra {
    WINDOW = 1,        /* sliding_window */
    LAYER_TYPES = 2,
    SWITCHED_WINDOW = 4, /* use_sliding_window */
    GEMMA = 8,         /* softcaps and query_pre_attn_scalar */
    LOCAL_THETA = 16,
    STILL_LAYERS = 32, /* no_rope_layers */
    MULTIPLIERS = 64,
    CLIP = 128,
    PARTIAL = 256,
    QWEN_EXPERTS = 512,
    MIXTRAL_EXPERTS = 1024,
    MLP_BIAS = 2048,
};

struct lmq_hf_export {
    const char *name; /* hparams.architecture */
    const char *class_name, *type;
    const char *eps_key;        /* NULL: none */
    const char *activation_key;
    enum biases biases;
    const char *bias_key;
    unsigned extras;
};

static const struct lmq_hf_export families[] = {
    {"llama", "LlamaForCausalLM", "llama", "rms_norm_eps", "hidden_act",
     QKVO_BY_KEY, "attention_bias", MLP_BIAS},
    {"mistral", "MistralForCausalLM", "mistral", "rms_norm_eps", "hidden_act",
     NO_BIAS, NULL, WINDOW},
    {"mixtral", "MixtralForCausalLM", "mixtral", "rms_norm_eps", "hidden_act",
     NO_BIAS, NULL, WINDOW | MIXTRAL_EXPERTS},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", "rms_norm_eps", "hidden_act",
     QKV_ALWAYS, NULL, WINDOW | SWITCHED_WINDOW | LAYER_TYPES},
    {"qwen2moe", "Qwen2MoeForCausalLM", "qwen2_moe", "rms_norm_eps",
     "hidden_act", QKV_ALWAYS, NULL,
     WINDOW | SWITCHED_WINDOW | QWEN_EXPERTS},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", "rms_norm_eps", "hidden_act",
     QKVO_BY_KEY, "attention_bias", WINDOW | SWITCHED_WINDOW | LAYER_TYPES},
    {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe", "rms_norm_eps",
     "hidden_act", QKVO_BY_KEY, "attention_bias",
     WINDOW | SWITCHED_WINDOW | QWEN_EXPERTS},
    {"gemma", "GemmaForCausalLM", "gemma", "rms_norm_eps",
     "hidden_activation", QKVO_BY_KEY, "attention_bias", 0},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", "rms_norm_eps",
     "hidden_activation", QKVO_BY_KEY, "attention_bias",
     WINDOW | LAYER_TYPES | GEMMA},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", "rms_norm_eps",
     "hidden_activation", QKVO_BY_KEY, "attention_bias",
     WINDOW | LAYER_TYPES | GEMMA | LOCAL_THETA},
    {"granite", "GraniteForCausalLM", "granite", "rms_norm_eps", "hidden_act",
     QKVO_BY_KEY, "attention_bias", MULTIPLIERS | MLP_BIAS},
    {"olmo", "OlmoForCausalLM", "olmo", NULL, "hidden_act", QKVO_BY_KEY,
     "attention_bias", CLIP},
    {"olmo2", "Olmo2ForCausalLM", "olmo2", "rms_norm_eps", "hidden_act",
     QKVO_BY_KEY, "attention_bias", 0},
    {"smollm3", "SmolLM3ForCausalLM", "smollm3", "rms_norm_eps", "hidden_act",
     QKVO_BY_KEY, "attention_bias",
     WINDOW | SWITCHED_WINDOW | LAYER_TYPES | STILL_LAYERS | MLP_BIAS},
    {"stablelm", "StableLmForCausalLM", "stablelm", "layer_norm_eps",
     "hidden_act", QKV_BY_KEY, "use_qkv_bias", PARTIAL},
};

static const struct lmq_hf_export *
find_family(const struct lmq_checkpoint *checkpoint)
{
    for (size_t i = 0; i < COUNT_OF(families); i++)
        if (checkpoint->has_model &&
            checkpoint->hparams.unsupported[0] == '\0' &&
            strcmp(families[i].name, checkpoint->hparams.architecture) == 0)
            return &families[i];
    return NULL;
}

/* ---- Names ---- */

/* '#' stands for the layer, '@' for the expert or head. */
static const struct {
    enum lmq_role role;
    const char *pattern;
} names[] = {
    {LMQ_ROLE_EMBEDDING, "model.embed_tokens"},
    {LMQ_ROLE_OUTPUT_NORM, "model.norm"},
    {LMQ_ROLE_HEAD, "lm_head"},
    {LMQ_ROLE_ATTN_NORM, "model.layers.#.input_layernorm"},
    {LMQ_ROLE_ATTN_Q, "model.layers.#.self_attn.q_proj"},
    {LMQ_ROLE_ATTN_K, "model.layers.#.self_attn.k_proj"},
    {LMQ_ROLE_ATTN_V, "model.layers.#.self_attn.v_proj"},
    {LMQ_ROLE_ATTN_OUT, "model.layers.#.self_attn.o_proj"},
    {LMQ_ROLE_ATTN_Q_NORM, "model.layers.#.self_attn.q_norm"},
    {LMQ_ROLE_ATTN_K_NORM, "model.layers.#.self_attn.k_norm"},
    {LMQ_ROLE_ATTN_POST_NORM, "model.layers.#.post_attention_layernorm"},
    {LMQ_ROLE_FFN_NORM, "model.layers.#.post_attention_layernorm"},
    {LMQ_ROLE_FFN_POST_NORM, "model.layers.#.post_feedforward_layernorm"},
    {LMQ_ROLE_FFN_GATE, "model.layers.#.mlp.gate_proj"},
    {LMQ_ROLE_FFN_UP, "model.layers.#.mlp.up_proj"},
    {LMQ_ROLE_FFN_DOWN, "model.layers.#.mlp.down_proj"},
    {LMQ_ROLE_ROUTER, "model.layers.#.mlp.gate"},
    {LMQ_ROLE_SHARED_SWITCH, "model.layers.#.mlp.shared_expert_gate"},
    {LMQ_ROLE_SHARED_GATE, "model.layers.#.mlp.shared_expert.gate_proj"},
    {LMQ_ROLE_SHARED_UP, "model.layers.#.mlp.shared_expert.up_proj"},
    {LMQ_ROLE_SHARED_DOWN, "model.layers.#.mlp.shared_expert.down_proj"},
};

/* Of those that belong to an expert or a head. */
static const struct {
    enum lmq_role role;
    const char *usual, *mixtral;
} item_names[] = {
    {LMQ_ROLE_FFN_GATE, "model.layers.#.mlp.experts.@.gate_proj",
     "model.layers.#.block_sparse_moe.experts.@.w1"},
    {LMQ_ROLE_FFN_UP, "model.layers.#.mlp.experts.@.up_proj",
     "model.layers.#.block_sparse_moe.experts.@.w3"},
    {LMQ_ROLE_FFN_DOWN, "model.layers.#.mlp.experts.@.down_proj",
     "model.layers.#.block_sparse_moe.experts.@.w2"},
    {LMQ_ROLE_ATTN_Q_NORM, "model.layers.#.self_attn.q_layernorm.norms.@",
     NULL},
    {LMQ_ROLE_ATTN_K_NORM, "model.layers.#.self_attn.k_layernorm.norms.@",
     NULL},
};

static const char *
pattern_of(const struct lmq_hf_export *family, const struct lmq_hparams *h,
           const struct lmq_place *place)
{
    bool is_mixtral = (family->extras & MIXTRAL_EXPERTS) != 0;

    if (place->item >= 0) {
        for (size_t i = 0; i < COUNT_OF(item_names); i++)
            if (item_names[i].role == place->role)
                return is_mixtral ? item_names[i].mixtral
                                  : item_names[i].usual;
        return NULL;
    }
    /* Where a norm follows attention, the name is that one's. */
    if (place->role == LMQ_ROLE_FFN_NORM && h->norm_place != LMQ_NORMS_BEFORE)
        return "model.layers.#.pre_feedforward_layernorm";
    if (place->role == LMQ_ROLE_ROUTER && is_mixtral)
        return "model.layers.#.block_sparse_moe.gate";
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].role == place->role)
            return names[i].pattern;
    return NULL;
}

static bool
make_name(const struct lmq_hf_export *family, const struct lmq_hparams *h,
          const struct lmq_place *place, char *name, size_t size)
{
    const char *pattern = pattern_of(family, h, place);
    size_t n = 0;

    if (pattern == NULL)
        return false;
    for (; *pattern != '\0' && n + 1 < size; pattern++) {
        int used = *pattern == '#' || *pattern == '@'
                       ? snprintf(name + n, size - n, "%d",
                                  (int)(*pattern == '#' ? place->layer
                                                        : place->item))
                       : snprintf(name + n, size - n, "%c", *pattern);
        n += used > 0 ? (size_t)used : 0;
    }
    snprintf(name + n, size - n, "%s",
             place->part == LMQ_PART_BIAS ? ".bias" : ".weight");
    return true;
}

void
lmq_hf_words_name(const struct lmq_hf_words *words,
                  const struct lmq_checkpoint *checkpoint,
                  const struct lmq_tensor *tensor, char *name, size_t size)
{
    if (words->family == NULL ||
        !make_name(words->family, &checkpoint->hparams, &tensor->place, name,
                   size))
        snprintf(name, size, "%s", tensor->name);
}

/* Every name must be known to be that of its tensor. Which of two norms the
 * one behind attention is depends on the family. */
static bool
names_are_understood(const struct lmq_hf_export *family,
                     const struct lmq_checkpoint *checkpoint)
{
    char name[128];
    struct lmq_place back;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_place *place = &checkpoint->tensors[i].place;
        if (!make_name(family, &checkpoint->hparams, place, name,
                       sizeof(name)) ||
            !lmq_name_parse(name, &back) || back.part != place->part ||
            back.layer != place->layer || back.item != place->item)
            return false;
        if (back.role != place->role &&
            !(back.role == LMQ_ROLE_FFN_NORM &&
              place->role == LMQ_ROLE_ATTN_POST_NORM))
            return false;
    }
    return true;
}

bool
lmq_hf_words_subtract(const struct lmq_hf_words *words,
                      const struct lmq_tensor *tensor)
{
    static const enum lmq_role roles[] = {
        LMQ_ROLE_OUTPUT_NORM,   LMQ_ROLE_ATTN_NORM,
        LMQ_ROLE_FFN_NORM,      LMQ_ROLE_ATTN_POST_NORM,
        LMQ_ROLE_FFN_POST_NORM, LMQ_ROLE_ATTN_Q_NORM,
        LMQ_ROLE_ATTN_K_NORM,
    };

    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (words->norms_less_one && tensor->place.role == roles[i] &&
            tensor->place.part == LMQ_PART_WEIGHT)
            return true;
    return false;
}

/* ---- config.json ---- */

static void
set_count(json_t **config, const char *key, uint64_t value)
{
    lmq_put(config, key, json_integer((json_int_t)value));
}

/* A whole number where it is one but for rounding: 1 / (1 / sqrt(144))^2. */
static void
set_real(json_t **config, const char *key, double value)
{
    double whole = round(value);

    lmq_put(
        config, key,
        lmq_json_number(fabs(value - whole) < 1e-9 * whole ? whole : value));
}

static void
set_window(const struct lmq_hf_export *family, const struct lmq_hparams *h,
           json_t **config)
{
    json_t *types = json_array();

    if (h->sliding_window > 0)
        set_count(config, "sliding_window", h->sliding_window);
    else
        lmq_put(config, "sliding_window", json_null());
    if (family->extras & SWITCHED_WINDOW)
        lmq_put(config, "use_sliding_window",
                json_boolean(h->sliding_window > 0));
    if ((family->extras & SWITCHED_WINDOW) && h->sliding_window > 0)
        set_count(config, "max_window_layers", 0);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_append(&types,
                   json_string(lmq_layer_window(h, i) > 0
                                   ? "sliding_attention"
                                   : "full_attention"));
    if (family->extras & LAYER_TYPES)
        lmq_put(config, "layer_types", json_incref(types));
    json_decref(types);
}

static void
set_rope(const struct lmq_hparams *h, json_t **config)
{
    static const char *const kinds[LMQ_ROPE_SCALING_COUNT] = {
        [LMQ_ROPE_LINEAR] = "linear",
        [LMQ_ROPE_LLAMA3] = "llama3",
        [LMQ_ROPE_DYNAMIC] = "dynamic",
        [LMQ_ROPE_YARN] = "yarn",
    };
    json_t *scaling = json_object();

    set_real(config, "rope_theta", h->rope_theta);
    bool is_scaled =
        h->rope_scaling != LMQ_ROPE_PLAIN && kinds[h->rope_scaling] != NULL;
    if (is_scaled) {
        lmq_put(&scaling, "rope_type", json_string(kinds[h->rope_scaling]));
        set_real(&scaling, "factor", h->rope_factor);
        if (h->rope_context > 0)
            set_count(&scaling, "original_max_position_embeddings",
                      h->rope_context);
    }
    if (h->rope_scaling == LMQ_ROPE_LLAMA3) {
        set_real(&scaling, "low_freq_factor", h->rope_low_factor);
        set_real(&scaling, "high_freq_factor", h->rope_high_factor);
    }
    if (h->rope_scaling == LMQ_ROPE_YARN) {
        set_real(&scaling, "beta_fast", h->rope_beta_fast);
        set_real(&scaling, "beta_slow", h->rope_beta_slow);
        set_real(&scaling, "attention_factor", h->rope_attention_factor);
    }
    lmq_put(config, "rope_scaling",
            is_scaled ? json_incref(scaling) : json_null());
    json_decref(scaling);
}

static void
set_experts(const struct lmq_hf_export *family, const struct lmq_hparams *h,
            json_t **config)
{
    json_t *dense = json_array();

    set_count(config, "num_experts_per_tok", h->n_experts_used);
    if (family->extras & MIXTRAL_EXPERTS) {
        set_count(config, "num_local_experts", h->n_experts);
        set_count(config, "intermediate_size", h->expert_dim);
        json_decref(dense);
        return;
    }
    set_count(config, "num_experts", h->n_experts);
    set_count(config, "moe_intermediate_size", h->expert_dim);
    if (h->shared_dim > 0)
        set_count(config, "shared_expert_intermediate_size", h->shared_dim);
    lmq_put(config, "norm_topk_prob", json_boolean(h->router_renormalises));
    set_count(config, "decoder_sparse_step", 1);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (!lmq_layer_has_experts(h, i))
            lmq_append(&dense, json_integer(i));
    lmq_put(config, "mlp_only_layers", dense);
}

static void
set_extras(const struct lmq_hf_export *family, const struct lmq_hparams *h,
           json_t **config)
{
    unsigned extras = family->extras;

    if (extras & WINDOW)
        set_window(family, h, config);
    if (extras & GEMMA) {
        double scale = h->attn_scale > 0 ? h->attn_scale
                                         : 1 / sqrt((double)h->head_dim);
        set_real(config, "query_pre_attn_scalar", 1 / (scale * scale));
        lmq_put(config, "attn_logit_softcapping",
                h->attn_softcap > 0
                    ? lmq_json_number(h->attn_softcap)
                    : json_null());
        lmq_put(config, "final_logit_softcapping",
                h->logit_softcap > 0
                    ? lmq_json_number(h->logit_softcap)
                    : json_null());
    }
    if ((extras & LOCAL_THETA) && h->rope_local_theta > 0)
        set_real(config, "rope_local_base_freq", h->rope_local_theta);
    if (extras & STILL_LAYERS) {
        json_t *turning = json_array();
        for (uint32_t i = 0; i < h->n_layers; i++)
            lmq_append(&turning,
                       json_integer(!lmq_layer_is(h, i, LMQ_LAYER_STILL)));
        lmq_put(config, "no_rope_layers", turning);
    }
    if (extras & MULTIPLIERS) {
        set_real(config, "embedding_multiplier", h->embedding_scale);
        set_real(config, "residual_multiplier", h->residual_scale);
        set_real(config, "logits_scaling", 1 / h->logit_scale);
        set_real(config, "attention_multiplier",
                 h->attn_scale > 0 ? h->attn_scale
                                   : 1 / sqrt((double)h->head_dim));
    }
    if (extras & CLIP)
        lmq_put(config, "clip_qkv",
                h->qkv_clip > 0 ? lmq_json_number(h->qkv_clip) : json_null());
    if (extras & PARTIAL) {
        set_real(config, "partial_rotary_factor",
                 (double)lmq_hparams_rotary_dim(h) / (double)h->head_dim);
        lmq_put(config, "qk_layernorm",
                json_boolean(h->qk_norm != LMQ_QK_NORM_NONE));
        lmq_put(config, "use_parallel_residual",
                json_boolean(h->residual != LMQ_RESIDUAL_SEQUENTIAL));
    }
    if (extras & (QWEN_EXPERTS | MIXTRAL_EXPERTS))
        set_experts(family, h, config);
}

static void
set_ids(const struct lmq_hparams *h, json_t **config)
{
    json_t *eos = json_array();

    lmq_put(config, "bos_token_id",
            h->bos >= 0 ? json_integer(h->bos) : json_null());
    for (uint32_t i = 0; i < h->n_eos; i++)
        lmq_append(&eos, json_integer(h->eos[i]));
    if (h->n_eos == 0)
        lmq_put(config, "eos_token_id", json_null());
    else
        lmq_put(config, "eos_token_id",
                json_incref(h->n_eos == 1 ? json_array_get(eos, 0) : eos));
    json_decref(eos);
}

static size_t
count_biases(const struct lmq_checkpoint *checkpoint, enum lmq_role role)
{
    size_t n = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        n += checkpoint->tensors[i].place.role == role &&
             checkpoint->tensors[i].place.part == LMQ_PART_BIAS;
    return n;
}

/* The keys for biases. False if their class would expect others. */
static bool
set_biases(const struct lmq_hf_export *family,
           const struct lmq_checkpoint *checkpoint, json_t **config)
{
    static const enum lmq_role roles[] = {
        LMQ_ROLE_ATTN_Q,   LMQ_ROLE_ATTN_K,  LMQ_ROLE_ATTN_V,
        LMQ_ROLE_ATTN_OUT, LMQ_ROLE_FFN_GATE, LMQ_ROLE_FFN_UP,
        LMQ_ROLE_FFN_DOWN};
    size_t n_layers = checkpoint->hparams.n_layers;
    bool has[COUNT_OF(roles)];

    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        size_t n = count_biases(checkpoint, roles[i]);
        has[i] = n > 0;
        if (n != 0 && n != n_layers)
            return false;
    }
    bool is_key_needed =
        family->biases == QKV_BY_KEY || family->biases == QKVO_BY_KEY;
    bool wants_qkv =
        family->biases == QKV_ALWAYS || (is_key_needed && has[0]);
    bool wants_out = family->biases == QKVO_BY_KEY && has[0];
    bool wants_mlp = (family->extras & MLP_BIAS) != 0 && has[4];
    if (is_key_needed)
        lmq_put(config, family->bias_key, json_boolean(has[0]));
    if (family->extras & MLP_BIAS)
        lmq_put(config, "mlp_bias", json_boolean(has[4]));
    return has[0] == wants_qkv && has[1] == wants_qkv &&
           has[2] == wants_qkv && has[3] == wants_out &&
           has[4] == wants_mlp && has[5] == wants_mlp && has[6] == wants_mlp;
}

static json_t *
make_config(const struct lmq_hf_export *family,
            const struct lmq_checkpoint *checkpoint)
{
    static const char *const activations[LMQ_ACTIVATION_COUNT] = {
        [LMQ_ACTIVATION_SILU] = "silu",
        [LMQ_ACTIVATION_GELU] = "gelu",
        [LMQ_ACTIVATION_GELU_TANH] = "gelu_pytorch_tanh",
        [LMQ_ACTIVATION_RELU] = "relu",
        [LMQ_ACTIVATION_SIGMOID] = "sigmoid",
    };
    const struct lmq_hparams *h = &checkpoint->hparams;
    json_t *config = json_object();

    lmq_put(&config, "architectures", json_pack("[s]", family->class_name));
    lmq_put(&config, "model_type", json_string(family->type));
    set_count(&config, "hidden_size", h->dim);
    set_count(&config, "intermediate_size", h->hidden_dim);
    set_count(&config, "num_hidden_layers", h->n_layers);
    set_count(&config, "num_attention_heads", h->n_heads);
    set_count(&config, "num_key_value_heads", h->n_kv_heads);
    set_count(&config, "head_dim", h->head_dim);
    set_count(&config, "vocab_size", h->vocab_size);
    set_count(&config, "max_position_embeddings", h->context);
    if (family->eps_key != NULL)
        lmq_put(&config, family->eps_key, lmq_json_number(h->norm_eps));
    lmq_put(&config, family->activation_key,
            json_string(activations[h->activation]));
    lmq_put(&config, "tie_word_embeddings",
            json_boolean(lmq_checkpoint_is_tied(checkpoint)));
    set_ids(h, &config);
    set_rope(h, &config);
    set_extras(family, h, &config);
    return config;
}

/* Whether the configuration says what the checkpoint is, no more and no less;
 * *source is what it says of the arrangement. */
static enum lmq_status
read_back(const struct lmq_checkpoint *checkpoint, const json_t *config,
          struct lmq_source *source, bool *is_same, struct lmq_error *err)
{
    struct lmq_hparams back;
    bool is_known = false;
    char *text = lmq_json_dump(config, JSON_REAL_PRECISION(17));

    *source = (struct lmq_source){0};
    *is_same = false;
    lmq_hparams_init(&back);
    if (text == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_config_parse((const unsigned char *)text, strlen(text), &back,
                         source, &is_known, err);
    free(text);
    if (status != LMQ_OK || !is_known)
        return lmq_status_is_of_system(status) ? status : LMQ_OK;
    json_t *a = lmq_hparams_to_json(&checkpoint->hparams, NULL);
    json_t *b = lmq_hparams_to_json(&back, NULL);
    if (a == NULL || b == NULL)
        status = lmq_fail_nomem(err);
    *is_same = json_equal(a, b) != 0 && !source->has_rotary_pairs &&
               !source->is_transposed;
    json_decref(a);
    json_decref(b);
    return status;
}

/* ---- The words ---- */

/* What only lmquant understands. */
static json_t *
make_own_config(const struct lmq_checkpoint *checkpoint)
{
    json_t *config = json_object();

    lmq_put(&config, "lmquant",
            lmq_hparams_to_json(&checkpoint->hparams, NULL));
    return config;
}

enum lmq_status
lmq_hf_words_find(struct lmq_checkpoint *checkpoint, const char *type,
                  struct lmq_hf_words *words, struct lmq_error *err)
{
    const struct lmq_hf_export *family = find_family(checkpoint);
    struct lmq_source source = {0};

    *words = (struct lmq_hf_words){0};
    if (!checkpoint->has_model) {
        lmq_checkpoint_note(checkpoint, "there is no model, so no config.json "
                                        "is written: tensors only");
        return LMQ_OK;
    }
    if (family != NULL && names_are_understood(family, checkpoint)) {
        json_t *config = make_config(family, checkpoint);
        bool is_same = false;
        enum lmq_status status = LMQ_OK;
        if (set_biases(family, checkpoint, &config))
            status = read_back(checkpoint, config, &source, &is_same, err);
        if (status != LMQ_OK) {
            json_decref(config);
            return status;
        }
        if (is_same) {
            words->family = family;
            words->config = config;
            words->norms_less_one = source.norms_less_one;
        } else {
            json_decref(config);
        }
    }
    if (words->config == NULL) {
        words->config = make_own_config(checkpoint);
        lmq_checkpoint_note(checkpoint,
                            "'%s' is not written in Hugging Face's words: "
                            "names and config.json are lmquant's own, which "
                            "other programs do not understand",
                            checkpoint->hparams.architecture);
    }
    lmq_put(&words->config, "torch_dtype", json_string(type));
    return words->config == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

void
lmq_hf_words_free(struct lmq_hf_words *words)
{
    json_decref(words->config);
    *words = (struct lmq_hf_words){0};
}
