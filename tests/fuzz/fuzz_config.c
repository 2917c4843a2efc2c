/*
 * fuzz_config.c - any bytes as a config.json, as the model of a container, and
 * as a choice of keys and values that mean something.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/model/hparams_check.h"
#include "formats/model/hparams_json.h"
#include "tests/fuzz/fuzz.h"

static const char *const model_types[] = {
    "llama",      "mistral",     "mixtral",  "qwen2",      "qwen2_moe",
    "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text",
    "qwen3",      "qwen3_moe",   "gemma",    "gemma2",     "gemma3_text",
    "gemma3",     "gemma4",      "gemma4_text",
    "gemma4_unified", "gemma3n", "gemma3n_text",
    "phi",         "phi3",     "gpt2",       "gpt_neox",
    "falcon",     "RefinedWeb",  "stablelm", "olmo",       "olmo2",
    "granite",    "cohere",      "smollm3",  "deepseek_v2", "deepseek_v3",
    "olmo3",      "gpt_oss",     "llama4",   "llama4_text", "glm4_moe",
    "dots1",      "minimax_m2",  "kimi_k2",  "ministral3", "seed_oss",
    "internlm3",  "hunyuan_v1_dense", "hunyuan_v1_moe", "ernie4_5",
    "ernie4_5_moe", "nemotron",  "cohere2",  "exaone4",    "granitemoe",
    "arcee",      "apertus",     "mistral3", "qwen2_vl",   "qwen3_vl",
    "qwen3_vl_moe", "llava",     "glm",         "glm4",
    "olmoe",      "starcoder2",  "gptj",     "mpt",        "opt",
    "internlm2",  "bloom",       "baichuan", "mistral4", "ministral",
    "glm4_moe_lite", "youtu",    "solar_open", "exaone_moe", "cwm",
    "granitemoehybrid", "helium", "vaultgemma", "jais2", "gpt_bigcode",
    "afmoe", "hy_v3", "mellum", "flex_olmo", "hyperclovax", "minicpm",
    "minicpm3", "exaone", "deepseek", "gpt_neo",
    "deepseek_v32", "glm_moe_dsa", "cohere2_moe", "granite_swa",
    "granitemoe_swa", "bailing_moe", "bailing_moe_v2", "xverse", "mimo",
    "lfm3", "nanochat", "falcon_h1",   "phimoe",
    "codegen", "persimmon", "dbrx", "sarvam_moe", "sarvam_mla", "iquestcoder",
    "mimo_v2_flash", "flint", "kolibri1", "laguna",
    "openelm", "nemotron-nas",
    "bamba",      "nemotron_h",  "mamba2",   "lfm2",       "lfm2_moe",
    "mamba",      "falcon_mamba", "jamba",    "olmo_hybrid", "kimi_linear",
    "bitnet", "axk1", "AXK1", "axk2", "qwen", "orion", "codeshell",
    "jais", "bailing_hybrid", "hy_v4", "hy_v4_vl",
    "glm5_next", "glm5_next_text",
    "PanguEmbedded", "maincoder", "spark2_5", "plm", "nanbeige", "ouro",
    "apertus1p5", "apertus1p5_text", "minimax_m3_vl_text",
    "step3p5", "minimax", "minimax_text_01", "recurrent_gemma",
    "qwen4_exp", "qwen4_exp_text",
    "cohere_compass_text", "muse_glimmer_text", "maple", "deepseek_v4",
    "mistral_large4", "mistral_large4_text", "smallthinker",
    "dots3_note", "dots3_note_text",
};

static const char *const keys[] = {
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "head_dim",
    "max_position_embeddings",
    "rope_scaling",
    "rope_parameters",
    "rope_theta",
    "partial_rotary_factor",
    "rotary_pct",
    "original_max_position_embeddings",
    "rms_norm_eps",
    "hidden_act",
    "hidden_activation",
    "layer_types",
    "sliding_window",
    "sliding_window_pattern",
    "use_sliding_window",
    "max_window_layers",
    "tie_word_embeddings",
    "num_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "n_shared_experts",
    "n_group",
    "topk_group",
    "topk_method",
    "decoder_sparse_step",
    "mlp_only_layers",
    "first_k_dense_replace",
    "moe_layer_freq",
    "norm_topk_prob",
    "d_model",
    "n_heads",
    "attn_config",
    "ffn_dim",
    "rotary_dim",
    "model_max_length",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "index_skip_topk_offset",
    "index_topk",
    "index_topk_blocks",
    "index_topk_freq",
    "index_topk_pattern",
    "indexer_types",
    "attention_other_setting",
    "moe_layers_enum",
    "partial_rotary_factors",
    "swiglu_limits",
    "sparse_attention_config",
    "dense_intermediate_size",
    "scale_depth",
    "dim_model_base",
    "attention_types",
    "v_head_dim",
    "no_rope_layers",
    "no_rope_layer_interval",
    "logits_scaling",
    "attention_multiplier",
    "query_pre_attn_scalar",
    "new_decoder_architecture",
    "multi_query",
    "parallel_attn",
    "alibi",
    "num_ln_in_parallel_attn",
    "n_embd",
    "n_head",
    "n_layer",
    "n_inner",
    "n_positions",
    "eos_token_id",
    "text_config",
    "is_causal",
    "num_kv_shared_layers",
    "hidden_size_per_layer_input",
    "vocab_size_per_layer_input",
    "altup_num_inputs",
    "laurel_rank",
    "activation_sparsity_pattern",
    "global_head_dim",
    "num_global_key_value_heads",
    "attention_k_eq_v",
    "use_double_wide_mlp",
    "enable_moe_block",
    "top_k_experts",
    "per_layer_config",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "attention_chunk_size",
    "layer_rope_theta",
    "mamba_d_ssm",
    "mamba_n_heads",
    "mamba_rms_norm",
    "mamba_expand",
    "mamba_dt_rank",
    "attn_layer_period",
    "attn_layer_offset",
    "expert_layer_period",
    "expert_layer_offset",
    "mlp_multipliers",
    "ssm_multipliers",
    "key_multiplier",
    "global_attn_every_n_layers",
    "num_dense_layers",
    "num_shared_experts",
    "prefix_dense_sliding_window_pattern",
    "shared_expert_combination_strategy",
    "expert_selection_fn",
    "scoring_func",
    "use_post_norm",
    "mup_enabled",
    "window_size",
    "moe_num_experts",
    "num_nextn_predict_layers",
    "mlp_layer_types",
    "use_qk_norm",
    "qk_layernorm",
    "linear_attn_config",
    "linear_num_heads",
    "linear_head_dim",
    "linear_allow_neg_eigval",
    "mixer_rms_eps",
    "time_step_rank",
    "expand",
};

static const char *const values[] = {
    "0",
    "1",
    "2",
    "4",
    "8",
    "16",
    "64",
    "4096",
    "4097",
    "16777216",
    "4294967295",
    "4294967296",
    "-1",
    "0.5",
    "1e-300",
    "1e300",
    "true",
    "false",
    "null",
    "\"gelu\"",
    "\"xielu\"",
    "\"sigmoid\"",
    "\"softmax\"",
    "\"sum\"",
    "\"greedy\"",
    "\"group_limited_greedy\"",
    "[]",
    "[0,1]",
    "[1,1,1,0]",
    "[0,10000,500000,10000]",
    "[[[\"global\",\"local\"],2]]",
    "[\"full_attention\",\"sliding_attention\"]",
    "{}",
    "{\"type\":\"linear\",\"factor\":2}",
    "{\"type\":\"dynamic\",\"factor\":0}",
    "{\"type\":\"yarn\",\"factor\":40,\"mscale\":0.7,\"mscale_all_dim\":0.7}",
    "{\"type\":\"yarn\",\"original_max_position_embeddings\":1}",
    "{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
    "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}",
    "{\"type\":\"longrope\",\"short_factor\":[1,2],\"long_factor\":[3,4],"
    "\"original_max_position_embeddings\":1}",
    "{\"type\":\"su\",\"short_factor\":[],\"long_factor\":[1]}",
    "{\"full_attention\":{\"rope_type\":\"yarn\",\"factor\":-1},"
    "\"sliding_attention\":{\"rope_theta\":5}}",
    "{\"hidden_size\":64,\"num_hidden_layers\":2,\"sliding_window\":4}",
    "{\"0\":{\"head_dim\":8},\"3\":{\"head_dim\":24}}",
    "[\"linear_attention\",\"full_attention\",\"full_attention\","
    "\"sliding_attention\"]",
    "\"auto\"",
    "{\"full_attn_layers\":[1,4],\"kda_layers\":[2,3],\"head_dim\":8}",
    "{\"full_attn_layers\":[0,4],\"kda_layers\":[2,3],\"num_heads\":0}",
    "{\"full_attn_layers\":[],\"kda_layers\":[1,2,3,5]}",
    "{\"rope_theta\":null}",
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* What was read can be stored and read again. */
static void
read_back(const struct lmq_hparams *hparams)
{
    struct lmq_hparams back;
    struct lmq_error err;
    json_t *json = lmq_hparams_to_json(hparams);

    if (lmq_hparams_from_json(json, &back, &err) != LMQ_OK ||
        lmq_hparams_check(&back, &err) != LMQ_OK)
        abort();
    json_t *again = lmq_hparams_to_json(&back);
    if (!json_equal(json, again))
        abort();
    json_decref(json);
    json_decref(again);
}

static void
read_config(const uint8_t *bytes, size_t n)
{
    struct lmq_hparams hparams;
    struct lmq_source source;
    struct lmq_error err;
    bool is_known;

    lmq_hparams_init(&hparams);
    if (lmq_config_parse(bytes, n, &hparams, &source, &is_known, &err) ==
            LMQ_OK &&
        is_known && lmq_hparams_check(&hparams, &err) == LMQ_OK)
        read_back(&hparams);
}

/* The first byte chooses the family, each two after it a key and its value.
 * Sizes that fit are there to begin with. */
static void
read_chosen(const uint8_t *bytes, size_t n)
{
    json_t *config = json_loads(
        "{\"hidden_size\":64,\"intermediate_size\":96,\"vocab_size\":100,"
        "\"num_hidden_layers\":4,\"num_attention_heads\":4,"
        "\"num_key_value_heads\":4,\"n_embd\":64,\"n_layer\":4,\"n_head\":4,"
        "\"num_experts_per_tok\":2,\"text_config\":{}}",
        0, NULL);
    size_t type = n == 0 ? 0 : bytes[0] % COUNT_OF(model_types);

    json_object_set_new(config, "model_type", json_string(model_types[type]));
    for (size_t i = 1; i + 1 < n && i < 64; i += 2)
        json_object_set_new(config, keys[bytes[i] % COUNT_OF(keys)],
                            json_loads(values[bytes[i + 1] % COUNT_OF(values)],
                                       JSON_DECODE_ANY, NULL));
    char *text = json_dumps(config, 0);
    if (text != NULL)
        read_config((const uint8_t *)text, strlen(text));
    free(text);
    json_decref(config);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct lmq_hparams hparams;
    struct lmq_error err;
    json_t *json;

    read_config(bytes, n);
    read_chosen(bytes, n);
    if (lmq_json_parse(bytes, n, &json, &err) == LMQ_OK) {
        lmq_hparams_from_json(json, &hparams, &err);
        json_decref(json);
    }
    return 0;
}
