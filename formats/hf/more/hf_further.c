/*
 * hf_further.c - what the families of families_further.c do in config.json
 * beside their rows: BitNet, A.X K1, Maincoder, Spark, Nanbeige, Ouro,
 * the text of Apertus 1.5, HY V4, the first Qwen, MiniMax M3, Cohere Compass,
 * Muse Glimmer.
 */
#include "config.h"

#include "formats/hf/more/hf_further.h"

#include <math.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- BitNet ---- */

void
lmq_hf_begin_bitnet(struct lmq_hf_config *config)
{
    config->hparams->has_sub_norms = true;
}

/* ---- A.X K1 ---- */

void
lmq_hf_finish_axk1(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 1);
    config->hparams->has_mixture_norm = true;
}

/* ---- Maincoder ---- */

void
lmq_hf_begin_maincoder(struct lmq_hf_config *config)
{
    config->hparams->qk_norm_late = true;
}

/* ---- Spark ---- */

void
lmq_hf_windows_spark(struct lmq_hf_config *config)
{
    lmq_hf_leave_windows(config, config->family->window_period);
}

void
lmq_hf_finish_spark(struct lmq_hf_config *config)
{
    config->hparams->has_attn_gate = config->hparams->has_head_gate = true;
}

/* ---- Nanbeige, Ouro ---- */

void
lmq_hf_finish_nanbeige(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->n_loops < 2)
        h->n_loops = 0;
    h->has_loop_norm =
        h->n_loops > 0 &&
        !lmq_hf_switch(config, config->json, "skip_loop_final_norm", false);
}

/* ---- Apertus 1.5 ---- */

/* Tokens from there on are of images and sounds, and no text has them; the head
 * may lack them. Then they are no part of the vocabulary here. */
void
lmq_hf_finish_apertus_text(struct lmq_hf_config *config)
{
    static const char key[] = "output_vocab_size";
    struct lmq_hparams *h = config->hparams;
    uint32_t n = lmq_hf_count(config, config->json, key, h->vocab_size);

    if (n < 1 || n > h->vocab_size) {
        lmq_hf_fail(config,
                    "'%s' in the configuration is %u, expected 1 to %u", key,
                    n, h->vocab_size);
        return;
    }
    if (n == h->vocab_size)
        return;
    if (lmq_hf_switch(config, config->json, "tie_word_embeddings", false))
        lmq_hparams_refuse(h, "'%s' %u of a head that is the embedding", key,
                           n);
    config->source->n_input_tokens = h->vocab_size;
    h->vocab_size = n;
}

/* ---- HY V4 ---- */

/* Up to as many positions as sparse attention sees. Blocks write to streams at
 * least what they read of each at least. */
void
lmq_hf_begin_hy4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_begin_glm5(config);
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_floor = h->stream_eps;
    h->has_attn_gate = h->has_sinks = true;
    h->glu_limits_experts = true;
    if (h->q_lora_rank == 0)
        lmq_hf_fail(config, "'q_lora_rank' in the configuration is 0");
}

/* Beside images norms of latents have the epsilon of all others. */
void
lmq_hf_begin_hy4vl(struct lmq_hf_config *config)
{
    lmq_hf_begin_hy4(config);
    config->hparams->latent_eps = 0;
}

void
lmq_hf_finish_hy4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_finish_sigmoid(config, 1);
    lmq_hf_finish_index(config, 4);
    h->index_eps = 0;
    if (!(h->glu_limit > 0))
        lmq_hparams_refuse(h, "'swiglu_limit' %g", h->glu_limit);
    if (h->n_streams < 2) {
        lmq_hparams_refuse(h, "'hc_mult' %u", h->n_streams);
        h->n_streams = 0;
    }
}

/* ---- The first Qwen ---- */

/* Behind as many tokens as it was trained with its queries grow, and it turns
 * by another base; up to there neither says anything. */
void
lmq_hf_finish_qwen(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->hidden_dim % 2 != 0)
        lmq_hf_fail(config,
                    "'intermediate_size' in the configuration is %u, expected "
                    "an even number: twice the width of a feed-forward",
                    h->hidden_dim);
    h->hidden_dim /= 2;
    if (lmq_hf_switch(config, config->json, "use_dynamic_ntk", true) ||
        lmq_hf_switch(config, config->json, "use_logn_attn", true))
        h->context_end = h->context;
}

/* ---- MiniMax M3 ---- */

/* Some layers give keys a value besides, by what chooses among them. */
static void
expect_bare_index(struct lmq_hf_config *config, const json_t *sparse)
{
    static const char key[] = "sparse_disable_index_value";
    const json_t *list = lmq_hf_list(config, sparse, key);
    const json_t *chosen = json_object_get(sparse, "sparse_attention_freq");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (lmq_hf_number(config, json_array_get(list, i), key) == 0 &&
            json_integer_value(json_array_get(chosen, i)) != 0)
            lmq_hparams_refuse(config->hparams, "a 0 in '%s'", key);
}

/* Whether blocks of positions are chosen in any layer. */
static bool
is_sparse(struct lmq_hf_config *config, const json_t *sparse)
{
    static const char key[] = "sparse_attention_freq";
    const json_t *types = lmq_hf_list(config, config->json, "layer_types");
    const json_t *list = lmq_hf_list(config, sparse, key);

    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (type != NULL && strcmp(type, "minimax_m3_sparse") == 0)
            return true;
    }
    if (types != NULL)
        return false;
    if (list != NULL)
        lmq_hf_expect_layers(config, key, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (lmq_hf_number(config, json_array_get(list, i), key) != 0)
            return true;
    return false;
}

/* Of blocks of positions some are chosen; as long as there are no more, all of
 * them. The makers' files say it in an object of its own. */
void
lmq_hf_begin_minimax3(struct lmq_hf_config *config)
{
    const json_t *sparse =
        lmq_hf_object(config, config->json, "sparse_attention_config");
    uint32_t n = lmq_hf_count(
        config, sparse, "sparse_topk_blocks",
        lmq_hf_count(config, config->json, "index_topk_blocks", 16));
    uint32_t size = lmq_hf_count(
        config, sparse, "sparse_block_size",
        lmq_hf_count(config, config->json, "index_block_size", 128));

    expect_bare_index(config, sparse);
    if (!is_sparse(config, sparse))
        return;
    if (n == 0 || size == 0)
        lmq_hf_fail(config,
                    "sparse attention of %u blocks of %u tokens in the "
                    "configuration",
                    n, size);
    config->source->n_chosen = lmq_hf_width(config, n, size);
}

void
lmq_hf_finish_minimax3(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    double turning = lmq_hf_rotary_part(config, 1) * h->head_dim;
    uint32_t n = lmq_hf_count(config, config->json, "rotary_dim", 0);

    /* The library turns the part, others as many. */
    if (lmq_hf_has(config->json, "rotary_dim") && fabs(turning - n) > 0.001)
        lmq_hparams_refuse(h, "a 'rotary_dim' of %u where %g of a head turn",
                           n, turning);
    if (!(h->glu_limit > 0))
        lmq_hparams_refuse(h, "'swiglu_limit' %g", h->glu_limit);
    h->glu_offset = 1;
    if (!lmq_hf_mark_listed_dense(config))
        lmq_hf_mark_by_list(config, "moe_layer_freq", LMQ_LAYER_DENSE);
    lmq_hf_route_by_sigmoid(h);
    h->router_renormalises = true;
    if (config->source->n_chosen > 0)
        lmq_hf_finish_chosen(config);
}

/* ---- Cohere Compass ---- */

/* How a kind of layers turns: null, not at all. */
static bool
is_still_kind(struct lmq_hf_config *config, const char *kind)
{
    const json_t *rope =
        lmq_hf_object(config, config->json, "rope_parameters");
    const json_t *how = json_object_get(rope, kind);

    if (how == NULL)
        lmq_hparams_refuse(config->hparams,
                           "'rope_parameters' without '%s'", kind);
    return json_is_null(how);
}

/* If only layers with a window turn, theirs is the one base. */
void
lmq_hf_finish_compass(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    bool turns_far = false;

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        bool has_window = lmq_layer_window(h, i) > 0;
        if (is_still_kind(config, has_window ? "sliding_attention"
                                             : "full_attention"))
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
        else
            turns_far |= !has_window;
    }
    if (!turns_far && h->rope_local_theta > 0) {
        h->rope_theta = h->rope_local_theta;
        h->rope_local_theta = 0;
    }
}

/* ---- Muse Glimmer ---- */

/* Where no list says otherwise, each fourth layer, counted from the last one,
 * sees everything and stands still. */
static bool
is_fourth(const struct lmq_hparams *h, uint32_t layer)
{
    return (h->n_layers - 1 - layer) % 4 == 0;
}

void
lmq_hf_windows_muse(struct lmq_hf_config *config)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (is_fourth(config->hparams, i))
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

/* A base of 0 means that the layer stands still; else its class looks at the
 * one base of all layers. */
static void
read_bases(struct lmq_hf_config *config)
{
    static const char key[] = "layer_rope_theta";
    const json_t *list = lmq_hf_list(config, config->json, key);
    struct lmq_hparams *h = config->hparams;

    if (list != NULL)
        lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const json_t *said = json_array_get(list, i);
        double base = list != NULL      ? json_number_value(said)
                      : is_fourth(h, i) ? 0
                                        : h->rope_theta;
        if (list != NULL && !json_is_number(said))
            lmq_hf_fail(config, "'%s' in the configuration is no list of "
                                "numbers",
                        key);
        else if (!(base < 0) && !(base > 0))
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
        else if (base < h->rope_theta || base > h->rope_theta)
            lmq_hparams_refuse(h, "a base of %g in '%s' beside one of %g",
                               base, key, h->rope_theta);
    }
}

void
lmq_hf_finish_muse(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    double factor =
        lmq_hf_real(config, config->json, "qk_scale_factor", 3.87);

    read_bases(config);
    if (!(factor > 0))
        lmq_hparams_refuse(h, "'qk_scale_factor' %g", factor);
    if (!(h->post_norm_eps > 0)) /* which stands for norm_eps */
        lmq_hparams_refuse(h, "a 'post_norm_eps' of %g", h->post_norm_eps);
    if (h->head_dim > 0)
        h->attn_scale = factor / sqrt(h->head_dim);
    h->has_attn_gate = true;
    h->has_embedding_norm = h->has_bare_embedding_norm = true;
}
