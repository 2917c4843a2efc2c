/*
 * families_uneven.c - the families whose layers differ in numbers of heads or
 * in the widths of feed-forwards; families.c says what holds for all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"

/* ---- Lists of keys of config.json ---- */

static const struct lmq_hf_key laguna_keys[] = {
    KEY("num_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY("shared_expert_intermediate_size", shared_dim, 512),
    KEY("moe_routed_scaling_factor", router_scale, 1),
    KEY("moe_router_logit_softcapping", router_softcap, 0),
    KEY_OR_NULL("sliding_window", sliding_window, 512),
    END,
};

static const struct lmq_hf_only laguna_only[] = {
    NUMBER("moe_apply_router_weight_on_input", 0),
    END_ONLY,
};

/* The usual key for it counts where it is there. */
static const struct lmq_hf_key step35_context[] = {
    KEY("max_seq_len", context, KEEP),
    END,
};

static const struct lmq_hf_key step35_keys[] = {
    KEY("num_attention_groups", n_kv_heads, KEEP),
    KEY("moe_num_experts", n_experts, 288),
    KEY("moe_top_k", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 1280),
    KEY("share_expert_dim", shared_dim, 1280),
    KEY("moe_router_scaling_factor", router_scale, 1),
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    END,
};

static const struct lmq_hf_only step35_only[] = {
    WORD("att_impl_type", "GQA"),
    WORD("moe_router_activation", "sigmoid"),
    NUMBER("use_moe", 1),
    NUMBER("use_moe_router_bias", 1),
    NUMBER("norm_expert_weight", 1),
    NUMBER("moe_every_n_layer", 1),
    NUMBER("zero_centered", 1),
    NUMBER("sink", 0),
    END_ONLY,
};

static const struct lmq_hf_key maple_keys[] = {
    KEY("num_experts", n_experts, 0),
    KEY("num_experts_per_tok", n_experts_used, 0),
    KEY("moe_intermediate_size", expert_dim, 0),
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    END,
};

static const struct lmq_hf_only maple_only[] = {
    NUMBER("num_shared_experts", 0),
    NUMBER("norm_topk_prob", 1),
    END_ONLY,
};

static const struct lmq_hf_key openelm_keys[] = {
    KEY("model_dim", dim, 2048),
    KEY("num_transformer_layers", n_layers, 12),
    KEY("head_dim", head_dim, 128),
    KEY("vocab_size", vocab_size, 32000),
    KEY("max_context_length", context, 2048),
    END,
};

static const struct lmq_hf_only openelm_only[] = {
    WORD("normalization_layer_name", "rms_norm"),
    NUMBER("ffn_with_glu", 1),
    NUMBER("share_input_output_layers", 1),
    END_ONLY,
};

/* ---- Rows ---- */

const struct lmq_family lmq_uneven_families[] = {
    {.name = "laguna", .qk_norm = LMQ_QK_NORM_HEAD, .window_period = 4,
     .hf = {.classes = {{"LagunaForCausalLM", "laguna", NULL, false}},
            RMS_EPS(1e-6), .context = 131072, .n_kv_heads = 8,
            .head_dim = 128, .theta = 500000, .partial = 1,
            .has_parts = true, .local_theta = 500000, .turns_unsaid = true,
            .has_layer_types = true,
            .keys = {sizes, head_dim, laguna_keys}, .only = laguna_only,
            .windows = lmq_hf_windows_mellum,
            .finish = lmq_hf_finish_laguna, BIASES},
     .gguf = {.name = "laguna",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS |
                      LMQ_GGUF_LOCAL | LMQ_GGUF_SHARED_DIM,
              .counts_by_layer = true, .has_local_part = true,
              .has_full_first = true, .begin = lmq_gguf_begin_sigmoid,
              .finish = lmq_gguf_finish_laguna}},
    {.name = "step35", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Step3p5ForCausalLM", "step3p5", NULL, false},
                        TEXT_OF("Step3p7ForConditionalGeneration", "step3p7")},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-5), .context = 262144, .n_kv_heads = 8,
            .head_dim = 128, .theta = 10000, .theta_key = "", .partial = 1,
            .has_layer_types = true,
            .keys = {step35_context, sizes, head_dim, step35_keys},
            .only = step35_only,
            .begin = lmq_hf_begin_step35, .windows = lmq_hf_windows_mellum,
            .finish = lmq_hf_finish_step35,
            .biases = {.qkv = {"attention_bias", false}}},
     .gguf = {.name = "step35",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS |
                      LMQ_GGUF_LOCAL | LMQ_GGUF_SHARED_DIM |
                      LMQ_GGUF_FURTHER | LMQ_GGUF_LIMITS,
              .counts_by_layer = true, .has_local_part = true,
              .halves_part = true, .begin = lmq_gguf_begin_sigmoid,
              .finish = lmq_gguf_finish_step35,
              .head = LMQ_GGUF_HEAD_MUST}},
    /* Layers that see everything do not turn. */
    {.name = "maple", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"MapleForCausalLM", "maple", NULL, false}},
            RMS_EPS(1e-6), .context = 32768, .theta = 10000,
            .theta_differs = true, .partial = 1, .has_layer_types = true,
            .keys = {sizes, head_dim, maple_keys}, .only = maple_only,
            .windows = lmq_hf_windows_mellum, .finish = lmq_hf_finish_maple},
     .gguf = {.name = "maple",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS | LMQ_GGUF_LIMITS,
              .limits_gates = true, .begin = lmq_gguf_begin_mixture,
              .finish = lmq_gguf_finish_still_full,
              .head = LMQ_GGUF_HEAD_MUST}},
    /* Llama-Nemotron, whose layers a search has chosen, and DeciLM. */
    {.name = "deci",
     .hf = {.classes = {{"DeciLMForCausalLM", "nemotron-nas", NULL, false},
                        {NULL, "deci", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim}, .begin = lmq_hf_begin_deci,
            MLP_BIASES},
     .gguf = {.name = "deci", .keys = LLAMA_KEYS, .has_rotary_pairs = true,
              .counts_by_layer = true, .has_voids = true,
              .may_biases = LMQ_GGUF_BIAS_OUT | LMQ_GGUF_BIAS_FFN |
                            LMQ_GGUF_BIAS_QKV}},
    {.name = "openelm", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"OpenELMForCausalLM", "openelm", NULL, false}},
            .eps = 1e-6, .activation_key = "activation_fn_name",
            .qk_norm_key = "normalize_qk_projections", .has_tied_head = true,
            .theta = 10000, .theta_key = "rope_freq_constant",
            .keys = {openelm_keys}, .only = openelm_only,
            .begin = lmq_hf_begin_openelm},
     .gguf = {.name = "openelm", .keys = LLAMA_KEYS, .fuses_qkv = true,
              .counts_by_layer = true, .head = LMQ_GGUF_HEAD_NEVER}},
};

const size_t lmq_n_uneven_families =
    sizeof(lmq_uneven_families) / sizeof(lmq_uneven_families[0]);
