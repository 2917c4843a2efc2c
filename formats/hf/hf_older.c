/*
 * hf_older.c - what the families of 2021 to 2023 do in config.json beside
 * their rows: GPT-J, CodeGen, GPT-Neo, BLOOM, OPT, MPT, DBRX, Baichuan, OLMoE.
 */
#include "config.h"

#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* Refuses a switch that says anything else than what we do. */
static void
expect_switch(struct lmq_hf_config *config, const json_t *object,
              const char *key, bool wanted)
{
    if (lmq_hf_switch(config, object, key, wanted) != wanted)
        lmq_hparams_refuse(config->hparams, "'%s'", key);
}

/* Queries and keys are limited after their norms, ours before. */
void
lmq_hf_finish_olmoe(struct lmq_hf_config *config)
{
    if (lmq_hf_has(config->json, "clip_qkv"))
        lmq_hparams_refuse(config->hparams,
                           "'clip_qkv' in a model of this kind");
}

void
lmq_hf_begin_gptj(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->hidden_dim == 0)
        h->hidden_dim = lmq_hf_width(config, h->dim, 4);
    if (h->rotary_dim == 0)
        lmq_hparams_refuse(h, "'rotary_dim' null");
}

/* What was trained on four machines is cut in four. CodeGen 2 calls itself the
 * same; some of it was trained on eight, and its code comes with it. */
void
lmq_hf_begin_codegen(struct lmq_hf_config *config)
{
    uint32_t dim = config->hparams->dim;

    lmq_hf_begin_gptj(config);
    if (lmq_hf_has(config->json, "head_dim") ||
        lmq_hf_has(config->json, "auto_map"))
        lmq_hparams_refuse(config->hparams,
                           "CodeGen 2, whose queries, keys and values are in "
                           "another order");
    if (dim % 4 != 0)
        lmq_hf_fail(config, "a width of %u is no multiple of 4", dim);
}

/* Its class knows no base and no scaling; GPTQModel writes "rope_parameters" of
 * the usual ones, as into all that it saves. */
void
lmq_hf_finish_gptj(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->rope_theta = config->family->hf.theta;
    if (h->rope_scaling != LMQ_ROPE_PLAIN)
        lmq_hparams_refuse(h, "rotary scaling in a model of this kind");
}

/* Scores are not scaled. */
void
lmq_hf_begin_gptneo(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->hidden_dim == 0)
        h->hidden_dim = lmq_hf_width(config, h->dim, 4);
    h->attn_scale = 1;
}

/* Marks the layers from *at on: `n` times these words. */
static void
mark_turns(struct lmq_hf_config *config, const char *key, const json_t *words,
           int64_t n, uint32_t *at)
{
    const json_t *word;
    size_t i;

    for (; n > 0 && *at < lmq_hf_layers(config); n--) {
        json_array_foreach(words, i, word) {
            const char *text = json_string_value(word);
            if (text != NULL && strcmp(text, "global") == 0)
                lmq_hf_mark(config, (int64_t)*at, LMQ_LAYER_FULL);
            else if (text == NULL || strcmp(text, "local") != 0)
                lmq_hparams_refuse(config->hparams, "'%.60s' in '%s'",
                                   text == NULL ? "(none)" : text, key);
            ++*at;
        }
        if (json_array_size(words) == 0)
            return;
    }
}

/* Without a word on it they take turns. */
void
lmq_hf_windows_gptneo(struct lmq_hf_config *config)
{
    static const char key[] = "attention_types";
    static const char layers_key[] = "attention_layers";
    const json_t *types = lmq_hf_list(config, config->json, key), *turns;
    const json_t *layers = lmq_hf_list(config, config->json, layers_key);
    uint32_t n = 0;
    size_t i;

    if (config->hparams->sliding_window == 0)
        lmq_hf_fail(config, "'window_size' in the configuration is 0");
    if (layers == NULL && types == NULL) {
        for (uint32_t j = 0; j < lmq_hf_layers(config); j += 2)
            lmq_hf_mark(config, j, LMQ_LAYER_FULL);
        return;
    }
    if (layers != NULL) /* the other list made longer */
        mark_turns(config, layers_key, layers, 1, &n);
    else /* [["global", "local"], 12] is so many of both */
        json_array_foreach(types, i, turns)
            mark_turns(config, key, json_array_get(turns, 0),
                       lmq_hf_number(config, json_array_get(turns, 1), key),
                       &n);
    lmq_hf_expect_layers(config, layers != NULL ? layers_key : key, n);
}

/* What is about attention stands in an object of its own. */
void
lmq_hf_begin_mpt(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const json_t *attention =
        lmq_hf_object(config, config->json, "attn_config");
    const char *type = lmq_hf_text(config, attention, "attn_type",
                                   "multihead_attention");
    uint32_t ratio = lmq_hf_count(config, config->json, "expansion_ratio", 4);

    h->hidden_dim = lmq_hf_width(config, h->dim, ratio);
    h->qkv_clip = lmq_hf_real(config, attention, "clip_qkv", 0);
    h->attn_scale = lmq_hf_real(config, attention, "softmax_scale", 0);
    if (strcmp(type, "multihead_attention") != 0)
        lmq_hparams_refuse(h, "'attn_type' '%.60s'", type);
    if (lmq_hf_count(config, attention, "alibi_bias_max", 8) != 8)
        lmq_hparams_refuse(h, "another 'alibi_bias_max' than 8");
    expect_switch(config, attention, "alibi", true);
    expect_switch(config, attention, "prefix_lm", false);
    expect_switch(config, attention, "qk_ln", false);
    if (lmq_hf_has(config->json, "logit_scale"))
        lmq_hparams_refuse(h, "'logit_scale' in a model of this kind");
}

/* What the chosen weights are divided by: their sum, or nothing. */
static bool
read_normalising(struct lmq_hf_config *config, const json_t *feed)
{
    static const char key[] = "moe_normalize_expert_weights";
    double power = lmq_hf_real(config, feed, key, 1);

    if (lmq_hf_is_null(feed, key))
        return false;
    if (power < 1 || power > 1)
        lmq_hparams_refuse(config->hparams, "'%s' %g", key, power);
    return true;
}

void
lmq_hf_begin_dbrx(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const json_t *attention =
        lmq_hf_object(config, config->json, "attn_config");
    const json_t *feed = lmq_hf_object(config, config->json, "ffn_config");
    const json_t *activation = lmq_hf_object(config, feed, "ffn_act_fn");
    const char *name = lmq_hf_text(config, activation, "name", "silu");

    h->n_kv_heads = lmq_hf_count(config, attention, "kv_n_heads", 1);
    h->qkv_clip = lmq_hf_real(config, attention, "clip_qkv", 0);
    h->hidden_dim = h->expert_dim =
        lmq_hf_count(config, feed, "ffn_hidden_size", 3584);
    h->n_experts = lmq_hf_count(config, feed, "moe_num_experts", 4);
    h->n_experts_used = lmq_hf_count(config, feed, "moe_top_k", 1);
    h->router_renormalises = read_normalising(config, feed);
    if (strcmp(name, "silu") != 0)
        lmq_hparams_refuse(h, "'ffn_act_fn' '%.60s'", name);
    if (lmq_hf_has(attention, "clip_qkv") && !(h->qkv_clip > 0))
        lmq_hparams_refuse(h, "'clip_qkv' %g", h->qkv_clip);
}

/* The makers' files have the base beside the heads. Newer versions of the
 * library take another one, which older ones do not look at. */
void
lmq_hf_finish_dbrx(struct lmq_hf_config *config)
{
    static const char key[] = "rope_theta";
    struct lmq_hparams *h = config->hparams;
    const json_t *attention =
        lmq_hf_object(config, config->json, "attn_config");
    double base = lmq_hf_real(config, attention, key, h->rope_theta);
    bool is_other = base < h->rope_theta || base > h->rope_theta;

    lmq_hf_finish_unscaled(config);
    if (is_other && (lmq_hf_has(config->json, "rope_parameters") ||
                     lmq_hf_has(config->json, key)))
        lmq_hparams_refuse(h, "a '%s' of %g beside one of %g", key,
                           h->rope_theta, base);
    h->rope_theta = base;
}

/* The first files call three of the keys otherwise. */
void
lmq_hf_begin_jais(struct lmq_hf_config *config)
{
    static const char positions[] = "position_embedding_type";
    static const char act[] = "activation_function";
    const json_t *json = config->json;
    struct lmq_hparams *h = config->hparams;
    const char *word = lmq_hf_text(config, json, positions, "learned");

    lmq_hf_begin_gpt2(config);
    if (strcmp(word, "alibi") != 0)
        lmq_hparams_refuse(h, "'%s' '%.60s'", positions, word);
    word = lmq_hf_text(config, json, act, "gelu");
    if (strcmp(word, "swiglu") != 0)
        lmq_hparams_refuse(h, "'%s' '%.60s'", act, word);
    h->embedding_scale = lmq_hf_real(
        config, json, "embeddings_scale",
        lmq_hf_real(config, json, "mup_embeddings_scale", 1));
    h->logit_scale = lmq_hf_real(
        config, json, "width_scale",
        lmq_hf_real(config, json, "mup_output_alpha", 1) *
            lmq_hf_real(config, json, "mup_width_scale", 1));
}

void
lmq_hf_finish_jais(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    bool by_width = lmq_hf_switch(
        config, config->json, "scale_qk_dot_by_d",
        lmq_hf_switch(config, config->json, "mup_scale_qk_dot_by_d", true));

    if (by_width && !(h->attn_scale > 0) && h->head_dim > 0)
        h->attn_scale = 1.0 / h->head_dim;
}

void
lmq_hf_begin_bloom(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->hidden_dim = lmq_hf_width(config, h->dim, 4);
    h->has_embedding_norm = true;
}

/* OPT 350M is not like the others: norms of the residual stream itself, behind
 * its halves, and an embedding of another width than the layers. */
void
lmq_hf_begin_opt(struct lmq_hf_config *config)
{
    const json_t *json = config->json;
    struct lmq_hparams *h = config->hparams;

    if (lmq_hf_count(config, json, "word_embed_proj_dim", h->dim) != h->dim)
        lmq_hparams_refuse(h, "'word_embed_proj_dim' other than "
                              "'hidden_size'");
    expect_switch(config, json, "do_layer_norm_before", true);
    expect_switch(config, json, "_remove_final_layer_norm", false);
    if (!lmq_hf_switch(config, json, "layer_norm_elementwise_affine", true))
        h->norm = LMQ_NORM_LAYER_PLAIN;
}

/* The 13B models have another class of the same name, which knows no
 * "max_position_embeddings": ALiBi. The second generation's heads have rows of
 * length 1; what tells it are the vocabulary and a key for its training. */
void
lmq_hf_begin_baichuan(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (!lmq_hf_has(config->json, "max_position_embeddings"))
        h->positions = LMQ_POSITIONS_ALIBI;
    config->source->has_unit_head =
        h->vocab_size == 125696 || lmq_hf_has(config->json, "z_loss_weight");
}
