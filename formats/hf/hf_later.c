/*
 * hf_later.c - what the families of 2024 and later do in config.json beside
 * their rows: Llama 4, GLM 4.5, MiniMax M2, Ministral 3, Hunyuan, ERNIE 4.5,
 * Nemotron, Command A, EXAONE 4, Granite's experts, dots.llm1, CWM, Solar. The
 * latest are in hf_latest.c.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- Layers that differ ---- */

/* Layers that see everything do not turn, where others have windows. */
void
lmq_hf_finish_still_full(struct lmq_hf_config *config)
{
    const struct lmq_hparams *h = config->hparams;

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (h->sliding_window > 0 && lmq_layer_is(h, i, LMQ_LAYER_FULL))
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
}

/* ---- Experts ---- */

/* A number, or a list that has it for each layer. */
static uint32_t
read_count_of_layers(struct lmq_hf_config *config, const char *key,
                     uint32_t absent)
{
    const json_t *list = json_object_get(config->json, key), *item;
    int64_t first = absent;
    size_t i;

    if (!json_is_array(list))
        return lmq_hf_count(config, config->json, key, absent);
    json_array_foreach(list, i, item) {
        int64_t number = lmq_hf_number(config, item, key);
        if (i == 0)
            first = number;
        if (number != first)
            lmq_hparams_refuse(config->hparams,
                               "layers that differ in '%s'", key);
    }
    if (first >= 0 && first <= UINT32_MAX)
        return (uint32_t)first;
    lmq_hf_fail(config, "'%s' in the configuration is no list of whole "
                        "numbers from 0",
                key);
    return absent;
}

/* ---- Llama 4 ---- */

/* A number of tokens, or whether: the library asks for no more. */
static bool
is_tuned(const json_t *json)
{
    const json_t *tuning = json_object_get(json, "attn_temperature_tuning");

    if (json_is_integer(tuning))
        return json_integer_value(tuning) != 0;
    return !json_is_false(tuning) && !json_is_null(tuning);
}

void
lmq_hf_begin_llama4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (!lmq_hf_switch(config, config->json, "use_qk_norm", true))
        h->qk_norm = LMQ_QK_NORM_NONE;
    h->qk_norm_late = true;
    h->router = LMQ_ROUTER_SIGMOID;
    h->router_scales_input = true;
    h->score_growth_shift = 1;
    h->score_growth_still = true;
    if (!is_tuned(config->json))
        h->score_growth = 0;
}

/* What does not turn sees everything. */
void
lmq_hf_windows_llama4(struct lmq_hf_config *config)
{
    static const char key[] = "no_rope_layers";
    struct lmq_hparams *h = config->hparams;
    const json_t *turns = lmq_hf_list(config, config->json, key);
    uint32_t period = lmq_hf_period(config, "no_rope_layer_interval", 4);
    size_t n = json_array_size(turns);

    if (n > 0 && n < h->n_layers)
        lmq_hf_expect_layers(config, key, n);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (n == 0 ? (i + 1) % period == 0
                   : lmq_hf_number(config, json_array_get(turns, i), key) == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE | LMQ_LAYER_FULL);
}

void
lmq_hf_finish_llama4(struct lmq_hf_config *config)
{
    static const char key[] = "moe_layers";
    struct lmq_hparams *h = config->hparams;
    const json_t *sparse = lmq_hf_list(config, config->json, key), *layer;
    uint32_t period = lmq_hf_period(config, "interleave_moe_layer_step", 1);
    size_t i;

    h->shared_dim = h->expert_dim;
    lmq_hf_mark_dense(config, 0,
                      sparse == NULL ? period : LMQ_MAX_LAYERS + 1);
    json_array_foreach(sparse, i, layer)
        lmq_hf_unmark(config, lmq_hf_number(config, layer, key),
                      LMQ_LAYER_DENSE);
}

/* ---- GLM 4.5, dots.llm1, MiniMax M2 ---- */

void
lmq_hf_finish_glm4moe(struct lmq_hf_config *config)
{
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 1);
    lmq_hf_share_experts(config, "n_shared_experts", 1);
    lmq_hf_route_by_sigmoid(config->hparams);
    lmq_hf_read_further(config, "num_nextn_predict_layers");
    lmq_hf_read_further(config, "num_mtp_layers");
}

void
lmq_hf_windows_dots1(struct lmq_hf_config *config)
{
    uint32_t n_full =
        lmq_hf_count(config, config->json, "max_window_layers", 62);

    for (uint32_t i = 0; i < n_full && i < lmq_hf_layers(config); i++)
        lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

void
lmq_hf_finish_dots1(struct lmq_hf_config *config)
{
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 0);
    lmq_hf_share_experts(config, "n_shared_experts", 0);
    /* So its makers' files say what is the sigmoid with a correction. */
    if (strcmp(lmq_hf_text(config, config->json, "scoring_func", "noaux_tc"),
               "noaux_tc") != 0)
        lmq_hf_expect_word(config, "scoring_func", "sigmoid");
    lmq_hf_route_by_sigmoid(config->hparams);
}

/* The library makes the part of "rotary_dim", and takes one that is said
 * instead. */
static void
check_rotary_dim(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    double part = lmq_hf_rotary_part(config, 0);

    if (!lmq_hf_has(config->json, "rotary_dim") || !(part > 0))
        return;
    if (h->rope_scaling == LMQ_ROPE_FACTORS ||
        fabs(part * h->head_dim - h->rotary_dim) > 0.001)
        lmq_hparams_refuse(h, "a 'rotary_dim' of %u beside a "
                              "'partial_rotary_factor' of %g",
                           h->rotary_dim, part);
}

void
lmq_hf_finish_minimax(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    check_rotary_dim(config);
    lmq_hf_route_by_sigmoid(h);
    h->router_renormalises = true;
}

/* Whatever "norm_topk_prob" says, which its class does not look at. */
void
lmq_hf_finish_qwen3vl_experts(struct lmq_hf_config *config)
{
    lmq_hf_finish_qwen_experts(config);
    config->hparams->router_renormalises = true;
}

/* ---- Ministral 3 ---- */

void
lmq_hf_finish_ministral3(struct lmq_hf_config *config)
{
    static const char key[] = "llama_4_scaling_beta";
    const json_t *rope = lmq_hf_rope_object(config);
    struct lmq_hparams *h = config->hparams;

    h->score_growth = lmq_hf_real(config, rope, key, 0);
    h->score_growth_period = lmq_hf_count(
        config, rope, "original_max_position_embeddings", h->context);
}

/* DeepSeek's layers, a softmax that chooses, and scores that grow. */
void
lmq_hf_finish_mistral4(struct lmq_hf_config *config)
{
    if (!lmq_hf_switch(config, config->json, "rope_interleave", true))
        config->source->has_rotary_pairs = false;
    lmq_hf_finish_latent(config, 0, 1);
    config->hparams->expert_group_score = LMQ_GROUP_SCORE_BEST_TWO;
    lmq_hf_finish_ministral3(config);
}

/* ---- Hunyuan ---- */

void
lmq_hf_begin_hunyuan(struct lmq_hf_config *config)
{
    config->hparams->qk_norm_late = true;
    if (!lmq_hf_switch(config, config->json, "use_qk_norm", true))
        config->hparams->qk_norm = LMQ_QK_NORM_NONE;
}

/* Its experts and what they share are as wide as its feed-forwards would be,
 * for each layer; older files name these widths. The library has other names
 * for the numbers of experts, which count more. */
void
lmq_hf_begin_hunyuan_experts(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t n_shared;

    lmq_hf_begin_hunyuan(config);
    h->n_experts = read_count_of_layers(config, "num_experts", 1);
    h->n_experts =
        read_count_of_layers(config, "num_local_experts", h->n_experts);
    h->n_experts_used = read_count_of_layers(config, "moe_topk", 1);
    h->n_experts_used = read_count_of_layers(config, "num_experts_per_tok",
                                             h->n_experts_used);
    h->expert_dim =
        read_count_of_layers(config, "moe_intermediate_size", h->hidden_dim);
    n_shared = read_count_of_layers(config, "num_shared_expert", 1);
    h->shared_dim = lmq_hf_width(config, h->hidden_dim, n_shared);
    h->router_renormalises = true;
}

/* ---- ERNIE 4.5 ---- */

void
lmq_hf_finish_ernie_experts(struct lmq_hf_config *config)
{
    const json_t *json = config->json, *end = json_object_get(
        json, "moe_layer_end_index");
    struct lmq_hparams *h = config->hparams;
    int64_t last = json_is_integer(end) ? json_integer_value(end) : -1;
    double least = lmq_hf_real(config, json, "moe_norm_min", 0);

    /* Probabilities are divided by their sum, or by this where that is less. */
    if (least > 1e-9)
        lmq_hparams_refuse(h, "'moe_norm_min' %g", least);
    lmq_hf_mark_dense(config,
                      lmq_hf_count(config, json, "moe_layer_start_index", 1),
                      lmq_hf_period(config, "moe_layer_interval", 1));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (last >= 0 && i > last)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
    lmq_hf_share_experts(config, "moe_num_shared_experts", 2);
    h->router_renormalises = h->router_corrects = true;
}

/* ---- Nemotron, DBRX ---- */

/* Older versions of the library look for no scaling. */
void
lmq_hf_finish_unscaled(struct lmq_hf_config *config)
{
    if (config->hparams->rope_scaling != LMQ_ROPE_PLAIN)
        lmq_hparams_refuse(config->hparams,
                           "rotary scaling in a model of this kind, which "
                           "versions of the library take differently");
}

/* ---- Command A, EXAONE 4 ---- */

void
lmq_hf_windows_cohere2(struct lmq_hf_config *config)
{
    lmq_hf_leave_windows(config, lmq_hf_period(config, "sliding_window_pattern",
                                      config->family->window_period));
}

/* A period, or a word like "LLLG". */
void
lmq_hf_windows_exaone4(struct lmq_hf_config *config)
{
    static const char key[] = "sliding_window_pattern";
    const char *word = json_string_value(json_object_get(config->json, key));
    uint32_t n_layers = config->hparams->n_layers;
    size_t n = word == NULL ? 0 : strlen(word);

    if (config->hparams->sliding_window == 0)
        return;
    if (word == NULL)
        lmq_hf_leave_windows(config, lmq_hf_period(config, key,
                                          config->family->window_period));
    else if (n == 0 || strspn(word, "LG") != n)
        lmq_hf_fail(config, "'%s' in the configuration is '%.60s'", key, word);
    for (uint32_t i = 0; i < n_layers && n > 0; i++)
        if (word[i % n] == 'G' || i + 1 == n_layers)
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

/* Its makers' own files say it of each layer. */
void
lmq_hf_finish_exaone_experts(struct lmq_hf_config *config)
{
    static const char key[] = "is_moe_layer";
    const json_t *sparse = lmq_hf_list(config, config->json, key), *layer;
    size_t i;

    lmq_hf_finish_still_full(config);
    if (sparse == NULL)
        lmq_hf_mark_first_dense(config, "first_k_dense_replace", 1);
    else
        lmq_hf_expect_layers(config, key, json_array_size(sparse));
    json_array_foreach(sparse, i, layer) {
        if (!json_is_boolean(layer))
            lmq_hf_fail(config,
                        "'%s' in the configuration is no list of true and "
                        "false",
                        key);
        if (config->hparams->n_experts > 0 && !json_is_true(layer))
            lmq_hf_mark(config, (int64_t)i, LMQ_LAYER_DENSE);
    }
    lmq_hf_share_experts(config, "num_shared_experts", 1);
    lmq_hf_route_by_sigmoid(config->hparams);
}

/* ---- Kolibri ---- */

void
lmq_hf_finish_kolibri(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_finish_still_full(config);
    h->router = LMQ_ROUTER_SIGMOID_CHOSEN;
    h->router_corrects = true;
}

/* ---- CWM, Granite with windows ---- */

/* The first of each four layers sees everything, if "layer_types" says nothing
 * else. */
void
lmq_hf_windows_first_of_four(struct lmq_hf_config *config)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i += 4)
        lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

/* ---- Solar Open ---- */

/* All layers have experts, and nothing else has a width. */
void
lmq_hf_begin_all_experts(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->hidden_dim == 0)
        h->hidden_dim = h->expert_dim;
}

void
lmq_hf_finish_solar(struct lmq_hf_config *config)
{
    lmq_hf_share_experts(config, "n_shared_experts", 1);
    lmq_hf_route_by_sigmoid(config->hparams);
}

/* ---- Granite's experts ---- */

/* Older versions of the library turn nothing if the key is there and says
 * something else; newer ones do not look at it. */
void
lmq_hf_finish_granite_experts(struct lmq_hf_config *config)
{
    static const char key[] = "position_embedding_type";

    if (lmq_hf_is_null(config->json, key) ||
        strcmp(lmq_hf_text(config, config->json, key, "rope"), "rope") != 0)
        lmq_hparams_refuse(config->hparams,
                           "a '%s' that is not 'rope', which versions of the "
                           "library take differently",
                           key);
    lmq_hf_finish_granite(config);
    config->hparams->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
}
