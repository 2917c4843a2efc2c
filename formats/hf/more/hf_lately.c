/*
 * hf_lately.c - what families that came last do in config.json beside their
 * rows: SmallThinker, dots3.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"
#include "formats/hf/more/hf_further.h"

/* ---- SmallThinker ---- */

/* Its experts are as wide as a feed-forward would be. */
void
lmq_hf_begin_smallthinker(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->hidden_dim = h->expert_dim;
    h->router_is_early = h->router_renormalises = true;
    h->router = lmq_hf_switch(config, config->json,
                              "moe_primary_router_apply_softmax", false)
                    ? LMQ_ROUTER_SOFTMAX
                    : LMQ_ROUTER_SIGMOID;
}

/* Lists of 0 and 1: which layers have a window, and which of them turn. */
void
lmq_hf_windows_smallthinker(struct lmq_hf_config *config)
{
    if (!lmq_hf_mark_by_list(config, "sliding_window_layout", LMQ_LAYER_FULL))
        config->hparams->sliding_window = 0;
    lmq_hf_mark_by_list(config, "rope_layout", LMQ_LAYER_NOPE);
}

/* ---- dots3 ---- */

/* Latent attention of a kind of layers. */
struct latents {
    uint32_t n_heads, q_rank, kv_rank, nope, rotary, value;
};

/* Which layers see everything; if they only see what is chosen, as long as that
 * is all. Files of the makers call both the same and say it in another key. */
static void
mark_kinds(struct lmq_hf_config *config)
{
    const json_t *list = lmq_hf_list(config, config->json, "layer_types");
    bool has_own = lmq_hf_has(config->json, "per_layer_config");
    bool chooses = lmq_hf_switch(config, config->json, "use_dsa", true);
    bool slides =
        lmq_hf_switch(config, config->json, "use_sliding_window", true);
    uint32_t n = lmq_hf_count(config, config->json, "index_topk", 2048);
    bool has_index = false;

    has_own &= !lmq_hf_has(config->json, "use_dsa");
    if (list != NULL)
        lmq_hf_expect_layers(config, "layer_types", json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const char *type = json_string_value(json_array_get(list, i));
        bool is_full = type == NULL
                           ? !slides || i < 2 || i % 4 == 1
                           : strcmp(type, "sliding_attention") != 0;
        bool is_named = type != NULL && strcmp(type, "full_attention") == 0;
        if (list != NULL && is_full && !is_named &&
            (type == NULL || strcmp(type, "indexed_attention") != 0))
            lmq_hparams_refuse(config->hparams, "'%.60s' in 'layer_types'",
                               type == NULL ? "(none)" : type);
        if (is_full)
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
        has_index |= is_full && (has_own ? !is_named : chooses);
    }
    if (has_index && n == 0)
        lmq_hf_fail(config, "'index_topk' in the configuration is 0");
    config->source->n_chosen = has_index ? n : 0;
}

static struct latents
full_latents(struct lmq_hf_config *config)
{
    const json_t *json = config->json;

    return (struct latents){
        .n_heads = config->hparams->n_heads,
        .q_rank = lmq_hf_count(config, json, "q_lora_rank", 1024),
        .kv_rank = lmq_hf_count(config, json, "kv_lora_rank", 512),
        .nope = lmq_hf_count(config, json, "qk_nope_head_dim", 128),
        .rotary = lmq_hf_count(config, json, "qk_rope_head_dim", 64),
        .value = lmq_hf_count(config, json, "v_head_dim", 128),
    };
}

/* What the library says of a layer that differs from the others. */
static struct latents
latents_of(struct lmq_hf_config *config, const json_t *said,
           const struct latents *others)
{
    return (struct latents){
        .n_heads = lmq_hf_count(config, said, "num_attention_heads",
                                others->n_heads),
        .q_rank = lmq_hf_count(config, said, "q_lora_rank", others->q_rank),
        .kv_rank =
            lmq_hf_count(config, said, "kv_lora_rank", others->kv_rank),
        .nope = lmq_hf_count(config, said, "qk_nope_head_dim", others->nope),
        .rotary =
            lmq_hf_count(config, said, "qk_rope_head_dim", others->rotary),
        .value = lmq_hf_count(config, said, "v_head_dim", others->value),
    };
}

/* Of layers with a window: in keys of their own, or for each layer. */
static struct latents
window_latents(struct lmq_hf_config *config, const struct latents *full)
{
    static const char key[] = "per_layer_config";
    const json_t *json = config->json;
    const json_t *each = lmq_hf_object(config, json, key);
    struct latents latents = *full, other;
    bool is_known = false;

    if (each == NULL) {
        uint32_t head = lmq_hf_count(config, json, "swa_head_dim", 256);
        uint32_t nope =
            lmq_hf_count(config, json, "swa_qk_nope_head_dim", 192);
        return (struct latents){
            lmq_hf_count(config, json, "swa_num_attention_heads", 64),
            lmq_hf_count(config, json, "swa_q_lora_rank", 1024),
            lmq_hf_count(config, json, "swa_kv_lora_rank", 1024),
            nope,
            lmq_hf_count(config, json, "swa_qk_rope_head_dim",
                         head > nope ? head - nope : 0),
            lmq_hf_count(config, json, "swa_v_head_dim", 128)};
    }
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        other = latents_of(config, lmq_hf_object(config, each, name), full);
        bool is_full = lmq_layer_is(config->hparams, i, LMQ_LAYER_FULL);
        if (memcmp(&other, is_full   ? full
                           : is_known ? &latents
                                      : &other,
                   sizeof(other)) != 0)
            lmq_hparams_refuse(config->hparams,
                               "layers of one kind that differ in '%s'", key);
        if (!is_full)
            latents = other;
        is_known |= !is_full;
    }
    return latents;
}

/* What is all there is is all there is to say. */
static void
set_latents(struct lmq_hf_config *config, const struct latents *full,
            const struct latents *near)
{
    struct lmq_hparams *h = config->hparams;
    double dim = h->dim;

    if (near->q_rank != full->q_rank || near->rotary != full->rotary)
        lmq_hparams_refuse(h, "layers that differ in 'q_lora_rank' or "
                              "'qk_rope_head_dim'");
    if (near->q_rank == 0 || near->kv_rank == 0 || near->nope == 0 ||
        near->rotary == 0 || near->value == 0 || near->n_heads == 0 ||
        full->kv_rank == 0 || full->nope == 0 || full->value == 0) {
        lmq_hf_fail(config, "a size of latent attention in the configuration "
                            "is 0");
        return;
    }
    h->n_heads = near->n_heads;
    h->n_kv_heads = 1;
    h->q_lora_rank = near->q_rank;
    h->kv_lora_rank = near->kv_rank;
    h->full_kv_lora_rank = full->kv_rank;
    h->rotary_dim = near->rotary;
    h->head_dim = lmq_hf_width(config, (uint64_t)near->nope + near->rotary, 1);
    h->full_head_dim =
        lmq_hf_width(config, (uint64_t)full->nope + full->rotary, 1);
    h->value_dim = near->value;
    h->full_value_dim = full->value;
    h->full_attn_scale =
        h->full_head_dim == h->head_dim ? 0 : 1 / sqrt(h->full_head_dim);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        h->layer_heads[i] = lmq_layer_is(h, i, LMQ_LAYER_FULL)
                                ? full->n_heads
                                : near->n_heads;
    config->source->times[LMQ_ROLE_ATTN_Q_A_NORM] =
        (float)sqrt(dim / near->q_rank);
    config->source->times[LMQ_ROLE_ATTN_KV_A_NORM] =
        (float)sqrt(dim / near->kv_rank);
    config->source->full_latent_times = (float)sqrt(dim / full->kv_rank);
}

/* Bases by kinds of layers, in the library's form or in the makers'. */
static void
read_bases(struct lmq_hf_config *config, bool has_window)
{
    static const char *const kinds[] = {"indexed_attention", "full_attention",
                                        "sliding_attention"};
    const json_t *rope =
        lmq_hf_object(config, config->json, "rope_parameters");
    struct lmq_hparams *h = config->hparams;
    double far = lmq_hf_real(config, config->json, "rope_theta", 8e7);
    double near = lmq_hf_real(config, config->json, "swa_rope_theta", 5e4);
    bool has_kinds = false;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const json_t *kind = lmq_hf_object(config, rope, kinds[i]);
        const char *type =
            lmq_hf_text(config, kind, "rope_type", "default");
        double *base = i == 2 ? &near : &far;
        if (kind == NULL)
            continue;
        has_kinds = true;
        *base = lmq_hf_real(config, kind, "rope_theta", *base);
        if (strcmp(type, "default") != 0)
            lmq_hparams_refuse(h, "rotary scaling '%.60s'", type);
    }
    if (rope != NULL && !has_kinds)
        lmq_hparams_refuse(h, "'rope_parameters' without kinds of layers");
    h->rope_theta = far;
    h->rope_local_theta = has_window ? near : 0;
}

void
lmq_hf_begin_dots3(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    bool has_window = false;

    mark_kinds(config);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        has_window |= !lmq_layer_is(h, i, LMQ_LAYER_FULL);
    struct latents full = full_latents(config);
    struct latents near = has_window ? window_latents(config, &full) : full;
    set_latents(config, &full, &near);
    read_bases(config, has_window);
    if (!lmq_hf_has(config->json, "sliding_window"))
        h->sliding_window =
            lmq_hf_count(config, config->json, "sliding_window_size", 512);
    h->qk_norm = LMQ_QK_NORM_TURNING;
    h->has_attn_gate = h->has_head_gate = true;
}

/* Shared experts are as wide as their own key says. */
void
lmq_hf_finish_dots3(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t width = lmq_hf_count(
        config, config->json, "moe_shared_expert_intermediate_size",
        lmq_hf_count(config, config->json, "shared_experts_intermediate_size",
                     1536));
    uint32_t n =
        lmq_hf_count(config, config->json, "n_shared_experts", 1);

    lmq_hf_finish_sigmoid(config, 1);
    if (h->n_experts > 0)
        h->shared_dim = lmq_hf_width(config, width, n);
    if (config->source->n_further_layers == 0)
        config->source->n_further_layers = 1; /* which no key speaks of */
    if (config->source->n_chosen > 0)
        lmq_hf_finish_chosen(config);
}
