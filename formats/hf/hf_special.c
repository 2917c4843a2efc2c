/*
 * hf_special.c - what a family of config.json does that neither its row in
 * families.c nor a list of keys can say.
 */
#include "config.h"

#include "formats/hf/hf_special.h"

#include <math.h>
#include <string.h>

#include "base/report.h"
#include "formats/hf/hf_reader.h"

/* ---- Layers that differ ---- */

/* The first layers see everything. */
void
lmq_hf_windows_qwen(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t n_full =
        lmq_hf_count(config, config->json, "max_window_layers", 28);

    if (lmq_hf_switch(config, config->json, "use_sliding_window", false))
        h->sliding_window = lmq_hf_is_null(config->json, "sliding_window")
                                ? 0
                                : lmq_hf_period(config, "sliding_window", 4096);
    for (uint32_t i = 0; i < n_full && i < lmq_hf_layers(config); i++)
        lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

void
lmq_hf_write_qwen(const struct lmq_hparams *h, json_t **config)
{
    lmq_hf_put_switch(config, "use_sliding_window", h->sliding_window > 0);
    if (h->sliding_window > 0) {
        lmq_hf_put_count(config, "sliding_window", h->sliding_window);
        lmq_hf_put_count(config, "max_window_layers", 0);
    } else {
        lmq_hf_put_null(config, "sliding_window");
    }
}

/* Which layers they were in has changed from version to version. */
void
lmq_hf_windows_qwen_experts(struct lmq_hf_config *config)
{
    if (lmq_hf_switch(config, config->json, "use_sliding_window", false))
        lmq_hparams_refuse(config->hparams, "'use_sliding_window' in a model "
                                            "of this kind");
}

/* These classes of the library run with a window or not at all, be there layers
 * that have it or not. */
static void
check_window(struct lmq_hf_config *config)
{
    if (config->hparams->sliding_window == 0)
        lmq_hf_fail(config, "'sliding_window' in the configuration is 0, "
                            "null or not there");
}

void
lmq_hf_windows_by_period(struct lmq_hf_config *config)
{
    check_window(config);
    lmq_hf_leave_windows(config, config->family->window_period);
}

void
lmq_hf_windows_gemma3(struct lmq_hf_config *config)
{
    check_window(config);
    lmq_hf_leave_windows(config, lmq_hf_period(config, "sliding_window_pattern",
                                      config->family->window_period));
}

/* Some layers are NoPE; only these may have a window. */
void
lmq_hf_windows_smollm3(struct lmq_hf_config *config)
{
    static const char key[] = "no_rope_layers";
    struct lmq_hparams *h = config->hparams;
    const json_t *has_rope = lmq_hf_list(config, config->json, key);
    uint32_t period = lmq_hf_period(config, "no_rope_layer_interval", 4);

    if (lmq_hf_switch(config, config->json, "use_sliding_window", false) &&
        lmq_hf_has(config->json, "sliding_window"))
        h->sliding_window = lmq_hf_period(config, "sliding_window", 0);
    if (has_rope != NULL && json_array_size(has_rope) < h->n_layers)
        lmq_hf_expect_layers(config, key, json_array_size(has_rope));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        bool is_rope =
            has_rope == NULL
                ? (i + 1) % period != 0
                : lmq_hf_number(config, json_array_get(has_rope, i), key) != 0;
        lmq_hf_mark(config, i, is_rope ? LMQ_LAYER_FULL : LMQ_LAYER_NOPE);
    }
}

void
lmq_hf_write_smollm3(const struct lmq_hparams *h, json_t **config)
{
    json_t *has_rope = json_array();

    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_append(&has_rope,
                   json_integer(!lmq_layer_is(h, i, LMQ_LAYER_NOPE)));
    lmq_put(config, "no_rope_layers", has_rope);
    lmq_hf_write_qwen(h, config);
}

/* ---- Experts ---- */

void
lmq_hf_finish_mixtral(struct lmq_hf_config *config)
{
    config->hparams->router_renormalises = true;
}

/* Twice the noise by which training made its choices. */
void
lmq_hf_finish_phimoe(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->router = LMQ_ROUTER_NEAR;
    h->router_reach =
        2 * lmq_hf_real(config, config->json, "router_jitter_noise", 0.01);
    if (h->rope_scaling != LMQ_ROPE_PLAIN &&
        h->rope_scaling != LMQ_ROPE_LONGROPE)
        lmq_hparams_refuse(h, "rotary scaling other than 'longrope'");
}

void
lmq_hf_finish_gptoss(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->has_sinks = true;
    h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
    h->glu_offset = 1;
}

/* Experts in every `decoder_sparse_step`th layer, but for some. */
void
lmq_hf_finish_qwen_experts(struct lmq_hf_config *config)
{
    static const char key[] = "mlp_only_layers";
    const json_t *dense = lmq_hf_list(config, config->json, key);
    uint32_t period = lmq_hf_period(config, "decoder_sparse_step", 1);

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if ((i + 1) % period != 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
    for (size_t i = 0; i < json_array_size(dense); i++) {
        int64_t layer = lmq_hf_number(config, json_array_get(dense, i), key);
        lmq_hf_mark(config, layer, LMQ_LAYER_DENSE);
    }
}

void
lmq_hf_write_dense_layers(const struct lmq_hparams *h, json_t **config)
{
    json_t *dense = json_array();

    for (uint32_t i = 0; i < h->n_layers; i++)
        if (!lmq_layer_has_experts(h, i))
            lmq_append(&dense, json_integer(i));
    lmq_put(config, "mlp_only_layers", dense);
    lmq_hf_put_count(config, "decoder_sparse_step", 1);
}

void
lmq_hf_write_qwen_experts(const struct lmq_hparams *h, json_t **config)
{
    lmq_hf_write_dense_layers(h, config);
    lmq_hf_write_qwen(h, config);
}

/* ---- Gemma ---- */

/* Its first configurations say "gelu" and mean the other one, as newer versions
 * of the library know. "hidden_activation" is not looked at. */
void
lmq_hf_finish_gemma(struct lmq_hf_config *config)
{
    if (strcmp(lmq_hf_text(config, config->json, "hidden_act", ""), "gelu") ==
        0)
        config->hparams->activation = LMQ_ACTIVATION_GELU_TANH;
    config->hparams->embedding_scale = sqrt((double)config->hparams->dim);
}

/* Here it is "hidden_activation" that counts. */
static void
check_old_activation(struct lmq_hf_config *config)
{
    const char *old = lmq_hf_text(config, config->json, "hidden_act", "gelu");

    if (!lmq_hf_has(config->json, "hidden_activation") &&
        strcmp(old, "gelu") != 0 && strcmp(old, "gelu_pytorch_tanh") != 0)
        lmq_hparams_refuse(config->hparams, "the activation '%.60s'", old);
}

void
lmq_hf_finish_later_gemma(struct lmq_hf_config *config)
{
    static const char key[] = "query_pre_attn_scalar";
    double scalar = lmq_hf_real(config, config->json, key, 256);

    check_old_activation(config);
    config->hparams->embedding_scale = sqrt((double)config->hparams->dim);
    if (!(scalar > 0))
        lmq_hf_fail(config, "'%s' in the configuration is %g", key, scalar);
    config->hparams->attn_scale = 1 / sqrt(scalar);
}

void
lmq_hf_write_later_gemma(const struct lmq_hparams *h, json_t **config)
{
    static const char key[] = "query_pre_attn_scalar";
    double scalar = h->attn_scale > 0 ? 1 / (h->attn_scale * h->attn_scale)
                                      : h->head_dim;

    /* Its class takes no 256.0 for 256. */
    if (fabs(scalar - round(scalar)) < 1e-9 * scalar)
        lmq_put(config, key, json_integer((json_int_t)round(scalar)));
    else
        lmq_hf_put_real(config, key, scalar);
}

/* ---- GPT-2 and what came of it ---- */

void
lmq_hf_begin_gpt2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->hidden_dim == 0)
        h->hidden_dim = lmq_hf_width(config, h->dim, 4);
    if (!lmq_hf_switch(config, config->json, "scale_attn_weights", true))
        h->attn_scale = 1;
}

/* One head of keys and values, or as many as of queries, each beside its
 * own. */
void
lmq_hf_begin_starcoder(struct lmq_hf_config *config)
{
    lmq_hf_begin_gpt2(config);
    if (lmq_hf_switch(config, config->json, "multi_query", true))
        config->hparams->n_kv_heads = 1;
    else
        config->source->qkv_order = LMQ_QKV_BY_HEAD;
}

void
lmq_hf_begin_gptneox(struct lmq_hf_config *config)
{
    if (!lmq_hf_switch(config, config->json, "use_parallel_residual", true))
        config->hparams->residual = LMQ_RESIDUAL_SEQUENTIAL;
}

void
lmq_hf_begin_stablelm(struct lmq_hf_config *config)
{
    if (lmq_hf_switch(config, config->json, "use_parallel_residual", false))
        config->hparams->residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM;
}

void
lmq_hf_write_stablelm(const struct lmq_hparams *h, json_t **config)
{
    lmq_hf_put_switch(config, "use_parallel_residual",
                      h->residual != LMQ_RESIDUAL_SEQUENTIAL);
}

/* Of Falcon there are three: the first decoder in parallel, with one head of
 * keys (7B) or without all that (RW), and a new one (40B, 180B, 11B). */
void
lmq_hf_begin_falcon(struct lmq_hf_config *config)
{
    const json_t *json = config->json;
    struct lmq_hparams *h = config->hparams;
    /* The first files of 40B know no such key. */
    bool is_first_40b = strcmp(lmq_hf_text(config, json, "model_type", ""),
                               "RefinedWeb") == 0;
    bool is_new = lmq_hf_switch(config, json, "new_decoder_architecture",
                                is_first_40b);
    bool is_parallel = lmq_hf_switch(config, json, "parallel_attn", true);
    bool has_one_kv = lmq_hf_switch(config, json, "multi_query", true);
    uint32_t n_norms = lmq_hf_count(config, json, "num_ln_in_parallel_attn",
                                    is_new ? 2 : 1);

    if (h->hidden_dim == 0)
        h->hidden_dim = lmq_hf_width(config, h->dim, 4);
    if (!is_new && has_one_kv)
        h->n_kv_heads = 1;
    if (lmq_hf_switch(config, json, "alibi", false))
        h->positions = LMQ_POSITIONS_ALIBI_SCALED;
    if (is_new && !is_parallel)
        lmq_hparams_refuse(h, "'parallel_attn' with "
                              "'new_decoder_architecture'");
    if (is_parallel && n_norms != 1 && !(is_new && n_norms == 2))
        lmq_hparams_refuse(h, "'num_ln_in_parallel_attn' %u", n_norms);
    if (!is_parallel)
        h->residual = LMQ_RESIDUAL_SEQUENTIAL;
    else if (n_norms == 1)
        h->residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM;
    else
        h->residual = LMQ_RESIDUAL_PARALLEL;
}

/* ---- Granite ---- */

void
lmq_hf_finish_granite(struct lmq_hf_config *config)
{
    double divisor = lmq_hf_real(config, config->json, "logits_scaling", 1);

    if (!(divisor > 0))
        lmq_hf_fail(config, "'logits_scaling' in the configuration is %g",
                    divisor);
    config->hparams->logit_scale = 1 / divisor;
    if (!(config->hparams->attn_scale > 0))
        lmq_hf_fail(config, "'attention_multiplier' in the configuration is "
                            "%g",
                    config->hparams->attn_scale);
}

void
lmq_hf_write_granite(const struct lmq_hparams *h, json_t **config)
{
    lmq_hf_put_real(config, "logits_scaling", 1 / h->logit_scale);
}

/* ---- DeepSeek ---- */

/* To some classes a head is what turns, to others all of it; a part that makes
 * other dimensions turn than "qk_rope_head_dim" makes no model to either. */
static void
expect_whole_part(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    double part = lmq_hf_rotary_part(config, 1);

    if ((part < 1 || part > 1) &&
        fabs(part * h->head_dim - h->rotary_dim) > 0.001)
        lmq_hparams_refuse(h, "'partial_rotary_factor' %g", part);
}

/* All heads share one latent vector; what a head makes of it has as many heads
 * as there are queries. */
static void
begin_latent_heads(struct lmq_hf_config *config, uint32_t usual)
{
    struct lmq_hparams *h = config->hparams;
    uint64_t nope =
        lmq_hf_count(config, config->json, "qk_nope_head_dim", usual);

    h->head_dim = lmq_hf_width(config, nope + h->rotary_dim, 1);
    h->n_kv_heads = h->n_heads;
    if (h->norm_eps < 1e-6 || h->norm_eps > 1e-6)
        h->latent_eps = 1e-6; /* whatever the file says */
    if (nope == 0 || h->rotary_dim == 0 || h->value_dim == 0 ||
        h->kv_lora_rank == 0)
        lmq_hf_fail(config, "'qk_nope_head_dim', 'qk_rope_head_dim', "
                            "'v_head_dim' or 'kv_lora_rank' in the "
                            "configuration is 0");
}

static void
begin_latent(struct lmq_hf_config *config, uint32_t usual)
{
    begin_latent_heads(config, usual);
    expect_whole_part(config);
}

/* One whose classes do not look at how large a part turns. */
void
lmq_hf_begin_any_part(struct lmq_hf_config *config)
{
    begin_latent_heads(config, 128);
}

void
lmq_hf_begin_deepseek(struct lmq_hf_config *config)
{
    begin_latent(config, 128);
}

void
lmq_hf_begin_mistral4(struct lmq_hf_config *config)
{
    begin_latent(config, 64);
}

void
lmq_hf_begin_glm4lite(struct lmq_hf_config *config)
{
    begin_latent(config, 192);
}

void
lmq_hf_begin_minicpm3(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->value_dim == 0 && h->n_heads > 0)
        h->value_dim = h->dim / h->n_heads;
    begin_latent(config, 64);
}

static void
read_deepseek_layers(struct lmq_hf_config *config, uint32_t n_dense)
{
    uint32_t first = lmq_hf_count(config, config->json,
                                  "first_k_dense_replace", n_dense);
    uint32_t period = lmq_hf_period(config, "moe_layer_freq", 1);

    if (config->hparams->n_experts == 0 || lmq_hf_mark_listed_dense(config))
        return;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (i < first || i % period != 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
}

void
lmq_hf_finish_latent(struct lmq_hf_config *config, uint32_t n_dense,
                     uint32_t n_shared)
{
    struct lmq_hparams *h = config->hparams;
    double scale = lmq_hf_yarn_score_scale(config);

    read_deepseek_layers(config, n_dense);
    lmq_hf_share_experts(config, "n_shared_experts", n_shared);
    if (scale < 1 || scale > 1)
        h->attn_scale = scale / sqrt(h->head_dim);
    lmq_hf_read_further(config, "num_nextn_predict_layers");
}

/* The first one, which has attention like a Llama's. */
void
lmq_hf_finish_deepseek(struct lmq_hf_config *config)
{
    read_deepseek_layers(config, 0);
    lmq_hf_share_experts(config, "n_shared_experts", 0);
}

void
lmq_hf_finish_deepseek2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const char *method =
        lmq_hf_text(config, config->json, "topk_method", "greedy");

    /* So the class's own default is spelled. */
    bool is_greedy =
        strcmp(method, "greedy") == 0 || strcmp(method, "gready") == 0;
    if (is_greedy)
        h->n_expert_groups = h->n_expert_groups_used = 0;
    else if (strcmp(method, "group_limited_greedy") != 0)
        lmq_hparams_refuse(h, "'topk_method' '%.60s'", method);
    if (h->router_renormalises)
        /* The makers' code then does not scale; the library's scales and
         * does not renormalise. */
        lmq_hparams_refuse(h, "'norm_topk_prob' in a model of this kind");
    lmq_hf_finish_latent(config, 0, 2);
}

void
lmq_hf_finish_sigmoid(struct lmq_hf_config *config, uint32_t n_dense)
{
    struct lmq_hparams *h = config->hparams;

    if (config->source->n_chosen == 0 && /* those always do */
        !lmq_hf_switch(config, config->json, "rope_interleave", true))
        config->source->has_rotary_pairs = false;
    lmq_hf_finish_latent(config, n_dense, 1);
    if (h->n_experts == 0)
        return;
    lmq_hf_route_by_sigmoid(h);
}

void
lmq_hf_finish_deepseek3(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 3);
}

/* Sparse attention sees so many positions, those that an indexer chooses. */
static void
begin_chosen(struct lmq_hf_config *config)
{
    static const char key[] = "index_topk";
    uint32_t n = lmq_hf_count(config, config->json, key, 2048);

    if (n == 0)
        lmq_hf_fail(config, "'%s' in the configuration is 0", key);
    config->source->n_chosen = n;
}

void
lmq_hf_choose_groups(struct lmq_hf_config *config, const char *key,
                     uint32_t usual, const char *size_key,
                     uint32_t usual_size)
{
    uint32_t size = lmq_hf_count(config, config->json, size_key, usual_size);
    uint32_t n = lmq_hf_count(config, config->json, key, usual);

    if (size == 0 || n == 0 || n % size != 0 || size > LMQ_MAX_CONTEXT ||
        n > LMQ_MAX_CONTEXT - size)
        lmq_hf_fail(config, "'%s' in the configuration is %u, expected a "
                            "multiple of '%s', %u",
                    key, n, size_key, size);
    else
        config->source->n_chosen = n + size - 1;
}

void
lmq_hf_finish_chosen(struct lmq_hf_config *config)
{
    uint32_t n = config->source->n_chosen;

    config->hparams->context_end = n;
    if (config->hparams->context > n)
        config->hparams->context = n;
}

void
lmq_hf_begin_chosen(struct lmq_hf_config *config, uint32_t usual)
{
    begin_latent(config, usual);
    begin_chosen(config);
}

void
lmq_hf_begin_deepseek32(struct lmq_hf_config *config)
{
    lmq_hf_begin_chosen(config, 128);
}

/* What the description says of it: keys have a norm of its own. */
static void
describe_index(struct lmq_hf_config *config)
{
    config->hparams->index_topk = config->source->n_chosen;
    config->hparams->index_eps = 1e-6;
}

static void
mark_all(struct lmq_hf_config *config)
{
    describe_index(config);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        lmq_hf_mark(config, i, LMQ_LAYER_INDEX);
}

/* "full" or "F" of a layer that chooses, "shared" or "S" of one behind. */
static bool
is_chooser(struct lmq_hf_config *config, const char *key, const char *word)
{
    bool is_full = word != NULL &&
                   (strcmp(word, "full") == 0 || strcmp(word, "F") == 0);

    if (!is_full && (word == NULL || (strcmp(word, "shared") != 0 &&
                                      strcmp(word, "S") != 0)))
        lmq_hparams_refuse(config->hparams, "'%.60s' in '%s'",
                           word == NULL ? "(none)" : word, key);
    return is_full;
}

void
lmq_hf_finish_index(struct lmq_hf_config *config, uint32_t period)
{
    static const char types[] = "indexer_types", freq[] = "index_topk_freq";
    static const char pattern[] = "index_topk_pattern";
    const char *key = lmq_hf_has(config->json, types) ? types : pattern;
    const char *letters =
        json_string_value(json_object_get(config->json, key));
    const json_t *said =
        letters == NULL ? lmq_hf_list(config, config->json, key) : NULL;
    uint32_t first = lmq_hf_count(config, config->json,
                                  "index_skip_topk_offset", 2);
    size_t n = letters == NULL ? json_array_size(said) : strlen(letters);

    describe_index(config);
    period = lmq_hf_count(config, config->json, freq, period);
    if (n > 0)
        lmq_hf_expect_layers(config, key, n);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        char letter[2] = {letters == NULL || i >= n ? '\0' : letters[i]};
        uint32_t behind = i + 1 > first ? i + 1 - first : 0;
        bool is_full =
            letters != NULL ? is_chooser(config, key, letter)
            : n > 0 ? is_chooser(config, key,
                                 json_string_value(json_array_get(said, i)))
                    : period == 0 || behind % period == 0;
        if (is_full)
            lmq_hf_mark(config, i, LMQ_LAYER_INDEX);
        else if (i == 0)
            lmq_hparams_refuse(config->hparams,
                               "layer 0 that shares what an earlier one "
                               "chooses");
    }
}

void
lmq_hf_finish_deepseek32(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 3);
    mark_all(config);
}

void
lmq_hf_finish_glm5(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 3);
    lmq_hf_finish_index(config, 1);
}

/* Its queries and the gates of its heads are made of latents, of which they see
 * the norm and what went into it. */
void
lmq_hf_begin_axk2(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    begin_latent(config, 64);
    begin_chosen(config);
    h->has_attn_gate = h->has_raw_latents = true;
    if (h->q_lora_rank == 0 || h->norm_gate_rank == 0)
        lmq_hf_fail(config, "'q_lora_rank' or 'gated_norm_rank' in the "
                            "configuration is 0");
}

void
lmq_hf_finish_axk2(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 1);
    mark_all(config);
}

void
lmq_hf_begin_glm5(struct lmq_hf_config *config)
{
    lmq_hf_begin_chosen(config, 192);
}

void
lmq_hf_finish_glm4lite(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 1);
}
