/*
 * families_recurrent.c - the families of which some layers remember a state in
 * place of keys and values; families.c says what holds for all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/checkpoint/joined.h"
#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"

/* ---- Lists of keys of config.json ---- */

static const struct lmq_hf_key delta_keys[] = {
    KEY("linear_num_key_heads", n_delta_key_heads, 16),
    KEY("linear_num_value_heads", n_delta_value_heads, 32),
    KEY("linear_key_head_dim", delta_key_dim, 128),
    KEY("linear_value_head_dim", delta_value_dim, 128),
    KEY("linear_conv_kernel_dim", conv_width, 4),
    END,
};

static const struct lmq_hf_key qwen3next_keys[] = {
    KEY("num_experts", n_experts, 512),
    KEY("num_experts_per_tok", n_experts_used, 10),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY("shared_expert_intermediate_size", shared_dim, 512),
    KEY("norm_topk_prob", router_renormalises, 1),
    END,
};

static const struct lmq_hf_key qwen35moe_keys[] = {
    KEY("num_experts", n_experts, 256),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY("shared_expert_intermediate_size", shared_dim, 512),
    END,
};

/* ---- The table ---- */

const struct lmq_family lmq_recurrent_families[] = {
    {.name = "qwen3next", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Qwen3NextForCausalLM", "qwen3_next", NULL, false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 2,
            .head_dim = 256, .theta = 10000, .partial = 0.25,
            .has_layer_types = true,
            .keys = {sizes, head_dim, delta_keys, qwen3next_keys},
            .windows = lmq_hf_windows_delta,
            .finish = lmq_hf_finish_qwen3next,
            .names = LMQ_NAMES_DELTA, BIASES,
            .joins = LMQ_JOINS_QKVZ | LMQ_JOINS_BA | LMQ_JOINS_Q_GATE,
            .write = lmq_hf_write_dense_layers},
     .gguf = {.name = "qwen3next",
              .keys = DELTA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM,
              .joins = LMQ_JOINS_QKV | LMQ_JOINS_BA | LMQ_JOINS_Q_GATE,
              .has_post_norm_name = true, .begin = lmq_gguf_begin_delta,
              .finish = lmq_gguf_finish_qwen3next}},
    {.name = "qwen35", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Qwen3_5ForCausalLM", "qwen3_5_text", NULL, false},
                        {"Qwen3_5ForConditionalGeneration", "qwen3_5",
                         "text_config", false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 4,
            .head_dim = 256, .theta = 10000, .partial = 0.25,
            .has_sections = true,
            .has_layer_types = true, .keys = {sizes, head_dim, delta_keys},
            .windows = lmq_hf_windows_delta, .finish = lmq_hf_finish_qwen35,
            .names = LMQ_NAMES_DELTA, BIASES,
            .joins = LMQ_JOINS_QKV | LMQ_JOINS_Q_GATE},
     .gguf = {.name = "qwen35", .keys = DELTA_KEYS | LMQ_GGUF_SECTIONS,
              .joins = LMQ_JOINS_QKV | LMQ_JOINS_Q_GATE,
              .has_tiled_values = true, .has_post_norm_name = true,
              .begin = lmq_gguf_begin_delta,
              .finish = lmq_gguf_finish_delta}},
    {.name = "qwen35moe", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text",
                         NULL, false},
                        {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe",
                         "text_config", false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 2,
            .head_dim = 256, .theta = 10000, .partial = 0.25,
            .has_sections = true,
            .has_layer_types = true,
            .keys = {sizes, head_dim, delta_keys, qwen35moe_keys},
            .windows = lmq_hf_windows_delta, .finish = lmq_hf_finish_qwen35,
            .names = LMQ_NAMES_DELTA, BIASES,
            .joins = LMQ_JOINS_QKV | LMQ_JOINS_Q_GATE},
     .gguf = {.name = "qwen35moe",
              .keys = DELTA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_SECTIONS,
              .joins = LMQ_JOINS_QKV | LMQ_JOINS_Q_GATE,
              .has_tiled_values = true, .has_post_norm_name = true,
              .begin = lmq_gguf_begin_delta,
              .finish = lmq_gguf_finish_delta}},
};

const size_t lmq_n_recurrent_families =
    sizeof(lmq_recurrent_families) / sizeof(lmq_recurrent_families[0]);
