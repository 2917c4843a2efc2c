/*
 * names.c - canonical names, which are those of GGUF, and what stored names
 * mean by them or by other conventions (name_conventions.c).
 */
#include "config.h"

#include "formats/model/names.h"

#include <stdio.h>
#include <string.h>

#include "formats/model/hparams.h"
#include "formats/model/name_conventions.h"

/* Where a role stands: tensors go by layer, block, item, order. So those of
 * one expert stand together. */
struct role_info {
    const char *name; /* without ".weight" */
    bool is_per_layer;
    enum { NO_ITEMS, EXPERTS, HEADS, PERHAPS_HEADS, STREAMS, PARTS } items;
    int block, order;
};

static const struct role_info roles[LMQ_ROLE_STORED_COUNT] = {
    [LMQ_ROLE_OTHER] = {"", false, NO_ITEMS, 0, 0},
    [LMQ_ROLE_EMBEDDING] = {"token_embd", false, NO_ITEMS, 0, 0},
    [LMQ_ROLE_POSITIONS] = {"position_embd", false, NO_ITEMS, 0, 1},
    [LMQ_ROLE_EMBEDDING_NORM] = {"token_embd_norm", false, NO_ITEMS, 0, 2},
    [LMQ_ROLE_INPUTS] = {"per_layer_token_embd", false, NO_ITEMS, 0, 3},
    [LMQ_ROLE_INPUTS_PROJ] = {"per_layer_model_proj", false, NO_ITEMS, 0, 4},
    [LMQ_ROLE_INPUTS_NORM] = {"per_layer_proj_norm", false, NO_ITEMS, 0, 5},
    [LMQ_ROLE_STREAMS_IN] = {"altup_proj", false, STREAMS, 0, 6},
    [LMQ_ROLE_STREAM_ROUTER] = {"altup_router", true, NO_ITEMS, 0, 33},
    [LMQ_ROLE_STREAM_ROUTER_NORM] = {"altup_router_norm", true, NO_ITEMS, 0,
                                     34},
    [LMQ_ROLE_STREAM_PREDICT] = {"altup_predict_coef", true, NO_ITEMS, 0, 35},
    [LMQ_ROLE_BYPASS_A] = {"laurel_l", true, NO_ITEMS, 0, 36},
    [LMQ_ROLE_BYPASS_B] = {"laurel_r", true, NO_ITEMS, 0, 37},
    [LMQ_ROLE_BYPASS_NORM] = {"laurel_post_norm", true, NO_ITEMS, 0, 38},
    [LMQ_ROLE_ATTN_NORM] = {"attn_norm", true, NO_ITEMS, 0, 0},
    [LMQ_ROLE_ATTN_NORM_A] = {"attn_norm_a", true, NO_ITEMS, 0, 39},
    [LMQ_ROLE_ATTN_NORM_B] = {"attn_norm_b", true, NO_ITEMS, 0, 40},
    [LMQ_ROLE_HYPER_ATTN] = {"hc_attn_fn", true, NO_ITEMS, 0, 41},
    [LMQ_ROLE_HYPER_ATTN_BASE] = {"hc_attn_base", true, NO_ITEMS, 0, 42},
    [LMQ_ROLE_HYPER_ATTN_SCALE] = {"hc_attn_scale", true, NO_ITEMS, 0, 43},
    [LMQ_ROLE_GATED_ATTN_DOWN] = {"hc_attn_down", true, NO_ITEMS, 0, 54},
    [LMQ_ROLE_GATED_ATTN_UP] = {"hc_attn_up", true, NO_ITEMS, 0, 55},
    [LMQ_ROLE_GATED_ATTN_WRITE] = {"hc_attn_inject", true, NO_ITEMS, 0, 56},
    [LMQ_ROLE_GRAM_TABLE] = {"ple_embd", true, NO_ITEMS, 0, 57},
    [LMQ_ROLE_GRAM_SHARD] = {"ple_embd_part", true, PARTS, 0, 57},
    [LMQ_ROLE_GRAM_KEY] = {"ple_key", true, NO_ITEMS, 0, 58},
    [LMQ_ROLE_GRAM_VALUE] = {"ple_value", true, NO_ITEMS, 0, 59},
    [LMQ_ROLE_GRAM_KEY_NORM] = {"ple_norm_key", true, NO_ITEMS, 0, 60},
    [LMQ_ROLE_GRAM_QUERY_NORM] = {"ple_norm_query", true, NO_ITEMS, 0, 61},
    [LMQ_ROLE_GRAM_CONV_NORM] = {"ple_norm_conv", true, NO_ITEMS, 0, 62},
    [LMQ_ROLE_GRAM_CONV] = {"ple_conv1d", true, NO_ITEMS, 0, 63},
    [LMQ_ROLE_ATTN_Q] = {"attn_q", true, NO_ITEMS, 0, 1},
    [LMQ_ROLE_ATTN_QKV] = {"attn_qkv", true, NO_ITEMS, 0, 1},
    [LMQ_ROLE_ATTN_Q_A] = {"attn_q_a", true, NO_ITEMS, 0, 2},
    [LMQ_ROLE_ATTN_Q_A_NORM] = {"attn_q_a_norm", true, NO_ITEMS, 0, 3},
    [LMQ_ROLE_ATTN_Q_B] = {"attn_q_b", true, NO_ITEMS, 0, 4},
    [LMQ_ROLE_ATTN_KV_A] = {"attn_kv_a_mqa", true, NO_ITEMS, 0, 5},
    [LMQ_ROLE_ATTN_KV_A_NORM] = {"attn_kv_a_norm", true, NO_ITEMS, 0, 6},
    [LMQ_ROLE_ATTN_KV_B] = {"attn_kv_b", true, NO_ITEMS, 0, 7},
    [LMQ_ROLE_ATTN_K] = {"attn_k", true, NO_ITEMS, 0, 8},
    [LMQ_ROLE_ATTN_V] = {"attn_v", true, NO_ITEMS, 0, 9},
    [LMQ_ROLE_ATTN_Q_NORM] = {"attn_q_norm", true, PERHAPS_HEADS, 0, 10},
    [LMQ_ROLE_ATTN_K_NORM] = {"attn_k_norm", true, PERHAPS_HEADS, 0, 11},
    [LMQ_ROLE_ATTN_SINKS] = {"attn_sinks", true, NO_ITEMS, 0, 12},
    [LMQ_ROLE_ATTN_GATE] = {"attn_gate", true, NO_ITEMS, 0, 13},
    [LMQ_ROLE_ATTN_GATE_A] = {"attn_gate_a", true, NO_ITEMS, 0, 31},
    [LMQ_ROLE_DELTA_QKVZ] = {"ssm_in", true, NO_ITEMS, 0, 14},
    [LMQ_ROLE_DELTA_ALPHA] = {"ssm_alpha", true, NO_ITEMS, 0, 15},
    [LMQ_ROLE_DELTA_ALPHA_A] = {"ssm_alpha_a", true, NO_ITEMS, 0, 27},
    [LMQ_ROLE_DELTA_BETA] = {"ssm_beta", true, NO_ITEMS, 0, 16},
    [LMQ_ROLE_DELTA_BA] = {"ssm_ba", true, NO_ITEMS, 0, 17},
    [LMQ_ROLE_DELTA_DECAY] = {"ssm_a", true, NO_ITEMS, 0, 18},
    [LMQ_ROLE_DELTA_CONV] = {"ssm_conv1d", true, NO_ITEMS, 0, 19},
    [LMQ_ROLE_DELTA_CONV_Q] = {"ssm_conv1d_q", true, NO_ITEMS, 0, 19},
    [LMQ_ROLE_DELTA_CONV_K] = {"ssm_conv1d_k", true, NO_ITEMS, 0, 19},
    [LMQ_ROLE_DELTA_CONV_V] = {"ssm_conv1d_v", true, NO_ITEMS, 0, 19},
    [LMQ_ROLE_DELTA_NORM] = {"ssm_norm", true, NO_ITEMS, 0, 20},
    [LMQ_ROLE_STATE_SKIP] = {"ssm_d", true, NO_ITEMS, 0, 21},
    [LMQ_ROLE_STATE_Q] = {"ssm_q", true, NO_ITEMS, 0, 22},
    [LMQ_ROLE_STATE_K] = {"ssm_k", true, NO_ITEMS, 0, 23},
    [LMQ_ROLE_STATE_V] = {"ssm_v", true, NO_ITEMS, 0, 24},
    [LMQ_ROLE_STATE_GATE] = {"ssm_gate", true, NO_ITEMS, 0, 25},
    [LMQ_ROLE_STATE_OUT] = {"ssm_output", true, NO_ITEMS, 0, 26},
    [LMQ_ROLE_DELTA_ALPHA_NORM] = {"ssm_alpha_norm", true, NO_ITEMS, 0, 28},
    [LMQ_ROLE_DELTA_K_NORM] = {"ssm_k_norm", true, NO_ITEMS, 0, 29},
    [LMQ_ROLE_DELTA_Q_NORM] = {"ssm_q_norm", true, NO_ITEMS, 0, 30},
    [LMQ_ROLE_ATTN_K_B] = {"attn_k_b", true, HEADS, 1, 0},
    [LMQ_ROLE_ATTN_V_B] = {"attn_v_b", true, HEADS, 1, 1},
    [LMQ_ROLE_ATTN_SUB_NORM] = {"attn_sub_norm", true, NO_ITEMS, 0, 32},
    [LMQ_ROLE_POOL_KV] = {"attn_compressor_kv", true, NO_ITEMS, 0, 44},
    [LMQ_ROLE_POOL_GATE] = {"attn_compressor_gate", true, NO_ITEMS, 0, 45},
    [LMQ_ROLE_POOL_BIAS] = {"attn_compressor_ape", true, NO_ITEMS, 0, 46},
    [LMQ_ROLE_POOL_NORM] = {"attn_compressor_norm", true, NO_ITEMS, 0, 47},
    [LMQ_ROLE_INDEX_Q] = {"indexer.attn_q_b", true, NO_ITEMS, 0, 48},
    [LMQ_ROLE_INDEX_WEIGHTS] = {"indexer.proj", true, NO_ITEMS, 0, 49},
    [LMQ_ROLE_INDEX_KV] = {"indexer_compressor_kv", true, NO_ITEMS, 0, 50},
    [LMQ_ROLE_INDEX_GATE] = {"indexer_compressor_gate", true, NO_ITEMS, 0,
                             51},
    [LMQ_ROLE_INDEX_BIAS] = {"indexer_compressor_ape", true, NO_ITEMS, 0, 52},
    [LMQ_ROLE_INDEX_NORM] = {"indexer_compressor_norm", true, NO_ITEMS, 0,
                             53},
    [LMQ_ROLE_ATTN_GROWTH] = {"attn_growth", true, NO_ITEMS, 0, 54},
    [LMQ_ROLE_INDEX_K] = {"indexer.attn_k", true, NO_ITEMS, 0, 55},
    [LMQ_ROLE_INDEX_K_NORM] = {"indexer.k_norm", true, NO_ITEMS, 0, 56},
    [LMQ_ROLE_ATTN_OUT_A] = {"attn_output_a", true, PARTS, 1, 2},
    [LMQ_ROLE_ATTN_OUT] = {"attn_output", true, NO_ITEMS, 2, 0},
    [LMQ_ROLE_ATTN_POST_NORM] = {"post_attention_norm", true, NO_ITEMS, 2, 1},
    [LMQ_ROLE_FFN_NORM] = {"ffn_norm", true, NO_ITEMS, 2, 2},
    [LMQ_ROLE_FFN_NORM_A] = {"ffn_norm_a", true, NO_ITEMS, 2, 5},
    [LMQ_ROLE_FFN_NORM_B] = {"ffn_norm_b", true, NO_ITEMS, 2, 6},
    [LMQ_ROLE_HYPER_FFN] = {"hc_ffn_fn", true, NO_ITEMS, 2, 7},
    [LMQ_ROLE_HYPER_FFN_BASE] = {"hc_ffn_base", true, NO_ITEMS, 2, 8},
    [LMQ_ROLE_HYPER_FFN_SCALE] = {"hc_ffn_scale", true, NO_ITEMS, 2, 9},
    [LMQ_ROLE_GATED_FFN_DOWN] = {"hc_ffn_down", true, NO_ITEMS, 2, 11},
    [LMQ_ROLE_GATED_FFN_UP] = {"hc_ffn_up", true, NO_ITEMS, 2, 12},
    [LMQ_ROLE_GATED_FFN_WRITE] = {"hc_ffn_inject", true, NO_ITEMS, 2, 13},
    [LMQ_ROLE_ROUTER] = {"ffn_gate_inp", true, NO_ITEMS, 2, 3},
    [LMQ_ROLE_ROUTER_CORRECTION] = {"exp_probs_b", true, NO_ITEMS, 2, 4},
    [LMQ_ROLE_TOKEN_EXPERTS] = {"ffn_gate_tid2eid", true, NO_ITEMS, 2, 10},
    [LMQ_ROLE_FFN_GATE] = {"ffn_gate", true, EXPERTS, 3, 0},
    [LMQ_ROLE_FFN_UP] = {"ffn_up", true, EXPERTS, 3, 1},
    [LMQ_ROLE_FFN_DOWN] = {"ffn_down", true, EXPERTS, 3, 2},
    [LMQ_ROLE_FFN_GATE_UP] = {"ffn_gate_up", true, NO_ITEMS, 3, 3},
    [LMQ_ROLE_EXPERTS_GATE] = {"ffn_gate_exps", true, NO_ITEMS, 3, 4},
    [LMQ_ROLE_EXPERTS_UP] = {"ffn_up_exps", true, NO_ITEMS, 3, 5},
    [LMQ_ROLE_EXPERTS_DOWN] = {"ffn_down_exps", true, NO_ITEMS, 3, 6},
    [LMQ_ROLE_EXPERTS_GATE_UP] = {"ffn_gate_up_exps", true, NO_ITEMS, 3, 7},
    [LMQ_ROLE_SHARED_SWITCH] = {"ffn_gate_inp_shexp", true, NO_ITEMS, 4, 0},
    [LMQ_ROLE_SHARED_GATE] = {"ffn_gate_shexp", true, NO_ITEMS, 4, 1},
    [LMQ_ROLE_SHARED_UP] = {"ffn_up_shexp", true, NO_ITEMS, 4, 2},
    [LMQ_ROLE_SHARED_DOWN] = {"ffn_down_shexp", true, NO_ITEMS, 4, 3},
    [LMQ_ROLE_SHARED_GATE_UP] = {"ffn_gate_up_shexp", true, NO_ITEMS, 4, 4},
    [LMQ_ROLE_ROUTER_NORM] = {"ffn_gate_inp_norm", true, NO_ITEMS, 4, 5},
    [LMQ_ROLE_EXPERTS_NORM] = {"pre_ffw_norm_2", true, NO_ITEMS, 4, 6},
    [LMQ_ROLE_EXPERTS_SCALE] = {"ffn_down_exps_scale", true, NO_ITEMS, 4, 7},
    [LMQ_ROLE_SHARED_POST_NORM] = {"post_ffw_norm_1", true, NO_ITEMS, 4, 8},
    [LMQ_ROLE_EXPERTS_POST_NORM] = {"post_ffw_norm_2", true, NO_ITEMS, 4, 9},
    [LMQ_ROLE_ACT_POSITIVE] = {"ffn_act_positive", true, NO_ITEMS, 4, 10},
    [LMQ_ROLE_ACT_NEGATIVE] = {"ffn_act_negative", true, NO_ITEMS, 4, 11},
    [LMQ_ROLE_ACT_SLOPE] = {"ffn_act_slope", true, NO_ITEMS, 4, 12},
    [LMQ_ROLE_ACT_BOUND] = {"ffn_act_bound", true, NO_ITEMS, 4, 13},
    [LMQ_ROLE_FFN_SUB_NORM] = {"ffn_sub_norm", true, NO_ITEMS, 4, 14},
    [LMQ_ROLE_FFN_POST_NORM] = {"post_ffw_norm", true, NO_ITEMS, 5, 0},
    [LMQ_ROLE_STREAM_CORRECT] = {"altup_correct_coef", true, NO_ITEMS, 5, 5},
    [LMQ_ROLE_STREAM_SCALE] = {"altup_correct_scale", true, NO_ITEMS, 5, 6},
    [LMQ_ROLE_INPUT_GATE] = {"inp_gate", true, NO_ITEMS, 5, 1},
    [LMQ_ROLE_INPUT_PROJ] = {"proj", true, NO_ITEMS, 5, 2},
    [LMQ_ROLE_INPUT_NORM] = {"post_norm", true, NO_ITEMS, 5, 3},
    [LMQ_ROLE_LAYER_SCALE] = {"layer_output_scale", true, NO_ITEMS, 5, 4},
    [LMQ_ROLE_STREAMS_OUT] = {"altup_unembd_proj", false, STREAMS, 0, 0},
    [LMQ_ROLE_HYPER_OUT] = {"output_hc_fn", false, NO_ITEMS, 0, 1},
    [LMQ_ROLE_HYPER_OUT_BASE] = {"output_hc_base", false, NO_ITEMS, 0, 2},
    [LMQ_ROLE_HYPER_OUT_SCALE] = {"output_hc_scale", false, NO_ITEMS, 0, 3},
    [LMQ_ROLE_GATED_OUT_DOWN] = {"output_hc_down", false, NO_ITEMS, 0, 4},
    [LMQ_ROLE_GATED_OUT_UP] = {"output_hc_up", false, NO_ITEMS, 0, 5},
    [LMQ_ROLE_OUTPUT_NORM] = {"output_norm", false, NO_ITEMS, 1, 0},
    [LMQ_ROLE_HEAD] = {"output", false, NO_ITEMS, 1, 1},
};

/* In any order, any number of times. */
static const char *const prefixes[] = {
    "module.",         "_orig_mod.", "model.",      "transformer.",
    "language_model.", "gpt_neox.",  "text_model.",  "decoder.",
    "backbone.",
};

/* What old checkpoints carry and everybody computes, by the end of the name;
 * what belongs to other senses than text, by its beginning. */
static const char computed[] = "it can be computed";
static const char other_senses[] = "it is no part of the language model";
static const char further_tokens[] =
    "it serves to predict several tokens at a time";

static const struct {
    bool is_start;
    const char *text;
    const char *reason;
} ignorable[] = {
    {false, "rotary_emb.inv_freq", computed},
    {false, "rope.freqs", computed},
    {false, "attention.mask", computed},
    {false, ".attn.bias", computed},
    {false, ".attention.bias", computed},
    {false, "masked_bias", computed},
    {false, ".attn.causal_mask", computed},
    {false, "relative_pe.slopes", computed},
    {false, "self_attn.slope_rate", computed},
    {false, "self_attn.query_decay", computed},
    {false, "self_attn.key_decay", computed},
    {false, "self_attn.diagonal_decay", computed},
    {false, "freqs_cos", computed},
    {false, "freqs_sin", computed},
    {false, ".exp_probs_b_vl.bias", other_senses},
    {false, ".ffn.gate.bias_vl", other_senses},
    {true, "v_head.", "it judges texts, for training"},
    {true, "early_exit_gate.", "it says where to stop, and nobody does"},
    {true, "vision_tower.", other_senses},
    {true, "vision_encoder.", other_senses},
    {true, "vision_language_adapter.", other_senses},
    {true, "pre_mm_projector_norm.", other_senses},
    {true, "patch_merger.", other_senses},
    {true, "vision_adapter.", other_senses},
    {true, "vision_projection.", other_senses},
    {true, "vision_model.", other_senses},
    {true, "vit.", other_senses},
    {true, "visual.", other_senses},
    {true, "mm_projector.", other_senses},
    {true, "connector.", other_senses},
    {true, "image_newline", other_senses},
    {true, "mtp_", further_tokens},
    {true, "mtp.", further_tokens},
    {true, "multi_modal_projector.", other_senses},
    {true, "patch_merge_mlp.", other_senses},
    {true, "vit_large_projector.", other_senses},
    {true, "audio_tower.", other_senses},
    {true, "audio_encoder.", other_senses},
    {true, "audio_adapter.", other_senses},
    {true, "vision_embedder.", other_senses},
    {true, "embed_vision.", other_senses},
    {true, "embed_audio.", other_senses},
    {true, "vision_tokenizer.", other_senses},
    {true, "audio_tokenizer.", other_senses},
};

static const char *
skip_prefixes(const char *name)
{
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) == 0)
            return skip_prefixes(name + n);
    }
    return name;
}

/* Digits without leading zeros, below `end`. */
static const char *
parse_number(const char *text, int32_t end, int32_t *number)
{
    int32_t value = 0;
    const char *p = text;

    while (*p >= '0' && *p <= '9') {
        if ((p > text && value == 0) || value >= end)
            return NULL;
        value = value * 10 + (*p++ - '0');
    }
    if (p == text || value >= end)
        return NULL;
    *number = value;
    return p;
}

/* The part of the name behind the pattern, NULL if it does not match. */
static const char *
match(const char *pattern, const char *name, struct lmq_place *place)
{
    place->layer = place->item = -1;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '#')
            name = parse_number(name, LMQ_MAX_LAYERS, &place->layer);
        else if (*pattern == '@')
            name = parse_number(name, LMQ_MAX_ITEMS, &place->item);
        else if (*pattern == '!' || *pattern == '=')
            return *name != '\0'    ? NULL
                   : *pattern == '!' ? ".bias"
                                     : ".weight";
        else if (*name++ != *pattern)
            return NULL;
        if (name == NULL)
            return NULL;
    }
    return name;
}

static bool
parse_part(const char *suffix, enum lmq_part *part)
{
    *part = strcmp(suffix, ".bias") == 0 ? LMQ_PART_BIAS : LMQ_PART_WEIGHT;
    return *part == LMQ_PART_BIAS || strcmp(suffix, ".weight") == 0;
}

/* "blk.3.ffn_up.weight", "blk.3.ffn_up.7.weight". */
static bool
parse_canonical(const char *stored, struct lmq_place *place)
{
    for (int role = 1; role < LMQ_ROLE_STORED_COUNT; role++) {
        const struct role_info *info = &roles[role];
        const char *rest = stored;
        place->layer = place->item = -1;
        if (info->is_per_layer)
            rest = match("blk.#.", stored, place);
        size_t n = strlen(info->name);
        if (rest == NULL || strncmp(rest, info->name, n) != 0)
            continue;
        rest += n;
        if (info->items != NO_ITEMS && rest[0] == '.' && rest[1] >= '0' &&
            rest[1] <= '9')
            rest = parse_number(rest + 1, LMQ_MAX_ITEMS, &place->item);
        if (rest != NULL && parse_part(rest, &place->part)) {
            place->role = (enum lmq_role)role;
            return true;
        }
    }
    return false;
}

bool
lmq_name_parse(const char *stored, struct lmq_place *place)
{
    const char *name = skip_prefixes(stored);

    for (size_t i = 0; i < lmq_n_conventions; i++) {
        const char *rest = match(lmq_conventions[i].pattern, name, place);
        if (rest != NULL && parse_part(rest, &place->part)) {
            place->role = lmq_conventions[i].role;
            return true;
        }
    }
    if (parse_canonical(stored, place))
        return true;
    *place = (struct lmq_place){LMQ_ROLE_OTHER, LMQ_PART_WEIGHT, -1, -1};
    return false;
}

const char *
lmq_name_why_ignored(const char *stored)
{
    const char *name = skip_prefixes(stored);
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(ignorable) / sizeof(ignorable[0]); i++) {
        const char *text = ignorable[i].text;
        size_t n = strlen(text);
        if (length >= n &&
            memcmp(name + (ignorable[i].is_start ? 0 : length - n), text, n) ==
                0)
            return ignorable[i].reason;
    }
    return NULL;
}

int32_t
lmq_name_layer(const char *stored)
{
    const char *name = skip_prefixes(stored);
    struct lmq_place place;

    return match("layers.#.", name, &place) == NULL &&
                   match("blk.#.", name, &place) == NULL
               ? -1
               : place.layer;
}

const char *
lmq_role_name(enum lmq_role role)
{
    return roles[role].name;
}

enum lmq_role
lmq_role_beside(enum lmq_role role)
{
    switch ((int)role) {
    case LMQ_ROLE_ATTN_Q:
        return LMQ_ROLE_STATE_Q;
    case LMQ_ROLE_ATTN_K:
        return LMQ_ROLE_STATE_K;
    case LMQ_ROLE_ATTN_V:
        return LMQ_ROLE_STATE_V;
    case LMQ_ROLE_ATTN_GATE:
        return LMQ_ROLE_STATE_GATE;
    case LMQ_ROLE_ATTN_OUT:
        return LMQ_ROLE_STATE_OUT;
    default:
        return role;
    }
}

bool
lmq_role_is_of_index(enum lmq_role role)
{
    return role == LMQ_ROLE_INDEX_Q || role == LMQ_ROLE_INDEX_K ||
           role == LMQ_ROLE_INDEX_K_NORM;
}

bool
lmq_role_is_small(enum lmq_role role)
{
    return role == LMQ_ROLE_ROUTER || role == LMQ_ROLE_POSITIONS ||
           role == LMQ_ROLE_DELTA_ALPHA || role == LMQ_ROLE_DELTA_ALPHA_A ||
           role == LMQ_ROLE_DELTA_BETA || role == LMQ_ROLE_DELTA_CONV ||
           role == LMQ_ROLE_STREAM_ROUTER ||
           role == LMQ_ROLE_STREAM_PREDICT ||
           role == LMQ_ROLE_STREAM_CORRECT || role == LMQ_ROLE_HYPER_ATTN ||
           role == LMQ_ROLE_HYPER_FFN || role == LMQ_ROLE_HYPER_OUT ||
           role == LMQ_ROLE_GATED_ATTN_WRITE ||
           role == LMQ_ROLE_GATED_FFN_WRITE || role == LMQ_ROLE_GRAM_CONV ||
           role == LMQ_ROLE_POOL_BIAS || role == LMQ_ROLE_INDEX_BIAS ||
           role == LMQ_ROLE_INDEX_WEIGHTS || role == LMQ_ROLE_TOKEN_EXPERTS;
}

void
lmq_name_canonical(const struct lmq_place *place, char *name, size_t size)
{
    const char *part = place->part == LMQ_PART_BIAS ? "bias" : "weight";
    const char *role = roles[place->role].name;

    size_t n = 0;

    if (roles[place->role].is_per_layer)
        n = (size_t)snprintf(name, size, "blk.%d.", (int)place->layer);
    if (n < size && place->item >= 0)
        snprintf(name + n, size - n, "%s.%d.%s", role, (int)place->item, part);
    else if (n < size)
        snprintf(name + n, size - n, "%s.%s", role, part);
}

/* Whether the pattern is of such a part: one at whose end the whole name of a
 * bias or of a weight stands is of no other. */
static bool
is_of_part(const char *pattern, enum lmq_part part)
{
    char last = pattern[strlen(pattern) - 1];

    return last == '!'   ? part == LMQ_PART_BIAS
           : last == '=' ? part == LMQ_PART_WEIGHT
                         : true;
}

static const char *
find_name(unsigned names, enum lmq_role role, const struct lmq_place *place)
{
    for (size_t i = 0; i < lmq_n_conventions; i++) {
        const char *pattern = lmq_conventions[i].pattern;
        bool has_item = strchr(pattern, '@') != NULL;
        if (lmq_conventions[i].role == role && has_item == (place->item >= 0) &&
            (lmq_conventions[i].written & names) != 0 &&
            is_of_part(pattern, place->part))
            return pattern;
    }
    return NULL;
}

/* Where a norm follows attention, it has the name that elsewhere is that of the
 * one before the feed-forward. */
static const char *
find_pattern(enum lmq_names names, const struct lmq_place *place,
             bool has_post_norms)
{
    enum lmq_role role = place->role == LMQ_ROLE_ATTN_POST_NORM
                             ? LMQ_ROLE_FFN_NORM
                             : place->role;
    const char *pattern = NULL;

    if (place->role == LMQ_ROLE_FFN_NORM && has_post_norms)
        return "layers.#.pre_feedforward_layernorm";
    if (names == LMQ_NAMES_DELTA || names == LMQ_NAMES_APERTUS)
        pattern = find_name(names == LMQ_NAMES_DELTA ? LMQ_WRITTEN_DELTA
                                                     : LMQ_WRITTEN_APERTUS,
                            role, place);
    return pattern != NULL
               ? pattern
               : find_name(names == LMQ_NAMES_MIXTRAL ? LMQ_WRITTEN_MIXTRAL
                                                      : LMQ_WRITTEN_LLAMA,
                           role, place);
}

bool
lmq_name_hf(enum lmq_names names, const struct lmq_place *place,
            bool has_post_norms, char *name, size_t size)
{
    const char *p = find_pattern(names, place, has_post_norms);
    const char *prefix = place->role == LMQ_ROLE_HEAD ? "" : "model.";
    int n = snprintf(name, size, "%s", prefix);

    if (p == NULL)
        return false;
    for (; *p != '\0' && (size_t)n < size; p++)
        if (*p == '#' || *p == '@')
            n += snprintf(name + n, size - (size_t)n, "%d",
                          (int)(*p == '#' ? place->layer : place->item));
        else if (*p == '!' || *p == '=')
            return true; /* the whole name */
        else
            n += snprintf(name + n, size - (size_t)n, "%c", *p);
    if ((size_t)n < size)
        snprintf(name + n, size - (size_t)n, "%s",
                 place->part == LMQ_PART_BIAS ? ".bias" : ".weight");
    return true;
}

bool
lmq_role_is_per_layer(enum lmq_role role)
{
    return roles[role].is_per_layer;
}

bool
lmq_role_has_items(enum lmq_role role)
{
    return roles[role].items != NO_ITEMS;
}

bool
lmq_role_is_of_experts(enum lmq_role role)
{
    return roles[role].items == EXPERTS;
}

bool
lmq_role_is_convolution(enum lmq_role role)
{
    return role == LMQ_ROLE_DELTA_CONV || role == LMQ_ROLE_DELTA_CONV_Q ||
           role == LMQ_ROLE_DELTA_CONV_K || role == LMQ_ROLE_DELTA_CONV_V;
}

bool
lmq_role_is_of_heads(enum lmq_role role)
{
    return roles[role].items == HEADS;
}

bool
lmq_role_wants_item(enum lmq_role role)
{
    return roles[role].items == HEADS || roles[role].items == STREAMS ||
           roles[role].items == PARTS;
}

bool
lmq_role_is_of_parts(enum lmq_role role)
{
    return roles[role].items == PARTS;
}

bool
lmq_role_is_of_streams(enum lmq_role role)
{
    return roles[role].items == STREAMS;
}

/* Embedding, then the layers, then what follows them, then the unknown. */
static int
stage(const struct lmq_place *place)
{
    if (place->role == LMQ_ROLE_OTHER)
        return 3;
    if (place->role == LMQ_ROLE_EMBEDDING ||
        place->role == LMQ_ROLE_POSITIONS ||
        place->role == LMQ_ROLE_EMBEDDING_NORM ||
        place->role == LMQ_ROLE_INPUTS ||
        place->role == LMQ_ROLE_INPUTS_PROJ ||
        place->role == LMQ_ROLE_INPUTS_NORM ||
        place->role == LMQ_ROLE_STREAMS_IN)
        return 0;
    return roles[place->role].is_per_layer ? 1 : 2;
}

int
lmq_place_compare(const struct lmq_place *a, const struct lmq_place *b)
{
    const struct role_info *x = &roles[a->role], *y = &roles[b->role];
    int order = stage(a) - stage(b);

    if (order == 0)
        order = (a->layer > b->layer) - (a->layer < b->layer);
    if (order == 0)
        order = x->block - y->block;
    if (order == 0)
        order = (a->item > b->item) - (a->item < b->item);
    if (order == 0)
        order = x->order - y->order;
    if (order == 0) /* parts of what is fused, and all of it */
        order = (int)a->role - (int)b->role;
    if (order == 0)
        order = (int)a->part - (int)b->part;
    return order;
}
