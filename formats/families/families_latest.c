/*
 * families_latest.c - the families that came last, most of them of 2026;
 * families.c says what holds for all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"

/* ---- Lists of keys of config.json ---- */

static const struct lmq_hf_key glm4lite_keys[] = {
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 768),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 256),
    KEY("n_routed_experts", n_experts, 64),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("moe_intermediate_size", expert_dim, 1536),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 1.8),
    END,
};

static const struct lmq_hf_key deepseek32_keys[] = {
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 1536),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    KEY("n_routed_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY_OR_NULL("n_group", n_expert_groups, 8),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 4),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    KEY("index_n_heads", n_index_heads, 64),
    KEY("index_head_dim", index_dim, 128),
    END,
};

static const struct lmq_hf_key glm5_keys[] = {
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 2048),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 256),
    KEY("n_routed_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    KEY("index_n_heads", n_index_heads, 32),
    KEY("index_head_dim", index_dim, 128),
    END,
};

static const struct lmq_hf_key solar_keys[] = {
    KEY("n_routed_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 1280),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 1),
    END,
};

static const struct lmq_hf_key exaonemoe_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    KEY("num_experts", n_experts, 64),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 1024),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

static const struct lmq_hf_key cwm_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 8192),
    END,
};

static const struct lmq_hf_key afmoe_keys[] = {
    KEY("num_experts", n_experts, 64),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 6),
    KEY("moe_intermediate_size", expert_dim, 1408),
    KEY("route_scale", router_scale, 1),
    KEY_OR_NULL("sliding_window", sliding_window, 1024),
    END,
};

static const struct lmq_hf_only afmoe_only[] = {
    WORD("score_func", "sigmoid"),
    NUMBER("route_norm", 1),
    END_ONLY,
};

static const struct lmq_hf_key hyv3_keys[] = {
    KEY("num_experts", n_experts, 192),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 1536),
    KEY("router_scaling_factor", router_scale, 2.826),
    END,
};

/* In its makers' files. */
static const struct lmq_hf_only hyv3_only[] = {
    NUMBER("qk_norm", 1),
    NUMBER("route_norm", 1),
    NUMBER("moe_router_use_sigmoid", 1),
    NUMBER("moe_router_enable_expert_bias", 1),
    END_ONLY,
};

static const struct lmq_hf_key mellum_keys[] = {
    KEY("intermediate_size", hidden_dim, 7168),
    KEY_OR_NULL("sliding_window", sliding_window, 1024),
    KEY("num_experts", n_experts, 64),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 896),
    KEY("norm_topk_prob", router_renormalises, 1),
    END,
};

static const struct lmq_hf_key flint_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 513),
    KEY("num_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 6),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY("shared_expert_intermediate_size", shared_dim, 1024),
    KEY("norm_topk_prob", router_renormalises, 1),
    END,
};

static const struct lmq_hf_key flexolmo_keys[] = {
    KEY("intermediate_size", expert_dim, 11008),
    KEY("num_experts", n_experts, 7),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 5),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

/* Of Granite's scales two mean something else. */
static const struct lmq_hf_key hyperclovax_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY("embedding_multiplier", embedding_scale, 1),
    KEY("residual_multiplier", residual_scale, 1),
    KEY_OR_NULL("attention_multiplier", attn_scale, 0),
    KEY("logits_scaling", logit_scale, 1),
    END,
};

static const struct lmq_hf_key minicpm_keys[] = {
    KEY("scale_emb", embedding_scale, 1),
    END,
};

static const struct lmq_hf_key minicpm3_keys[] = {
    KEY("scale_emb", embedding_scale, 12),
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 768),
    KEY("kv_lora_rank", kv_lora_rank, 256),
    KEY("qk_rope_head_dim", rotary_dim, 32),
    KEY_OR_NULL("v_head_dim", value_dim, 0),
    END,
};

static const struct lmq_hf_key exaone_keys[] = {
    KEY("num_layers", n_layers, KEEP),
    END,
};

/* The library has other names for what its makers' files say. */
static const struct lmq_hf_only exaone_only[] = {
    WORD("hidden_act", "silu"),
    END_ONLY,
};

static const struct lmq_hf_key deepseek_keys[] = {
    KEY_OR_NULL("n_routed_experts", n_experts, 0),
    KEY_OR_NULL("num_experts_per_tok", n_experts_used, 0),
    KEY("moe_intermediate_size", expert_dim, 1407),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

static const struct lmq_hf_only deepseek_only[] = {
    WORD("scoring_func", "softmax"),
    WORD("topk_method", "greedy"),
    NUMBER("routed_scaling_factor", 1),
    END_ONLY,
};

/* Its experts are as wide as a feed-forward would be. */
static const struct lmq_hf_key cohere2moe_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    KEY("intermediate_size", expert_dim, 22528),
    KEY("prefix_dense_intermediate_size", hidden_dim, KEEP),
    KEY("num_experts", n_experts, 8),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 2),
    END,
};

static const struct lmq_hf_key granite_window_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 128),
    END,
};

static const struct lmq_hf_key granite_window_experts[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 128),
    KEY("intermediate_size", expert_dim, 11008),
    KEY("num_local_experts", n_experts, 8),
    KEY("num_experts_per_tok", n_experts_used, 2),
    KEY("shared_intermediate_size", shared_dim, 0),
    END,
};

static const struct lmq_hf_key nanochat_keys[] = {
    KEY_OR_NULL("final_logit_softcapping", logit_softcap, 15),
    END,
};

static const struct lmq_hf_key ling_keys[] = {
    KEY_OR_NULL("num_experts", n_experts, 0),
    KEY_OR_NULL("num_experts_per_tok", n_experts_used, 0),
    KEY("moe_intermediate_size", expert_dim, 0),
    KEY("norm_topk_prob", router_renormalises, 1),
    END,
};

static const struct lmq_hf_only ling_only[] = {
    NUMBER("norm_head", 0),
    NUMBER("norm_softmax", 0),
    NUMBER("multi_gate", 0),
    WORD("score_function", "softmax"),
    NUMBER("routed_scaling_factor", 1),
    NUMBER("n_group", 1),
    END_ONLY,
};

static const struct lmq_hf_key ling2_keys[] = {
    KEY("num_experts", n_experts, 256),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY_OR_NULL("n_group", n_expert_groups, 8),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 4),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

static const struct lmq_hf_only ling2_only[] = {
    NUMBER("norm_head", 0),
    NUMBER("norm_softmax", 0),
    NUMBER("multi_gate", 0),
    NUMBER("use_sliding_window", 0),
    WORD("score_function", "sigmoid"),
    NUMBER("norm_topk_prob", 1),
    NUMBER("moe_router_enable_expert_bias", 1),
    END_ONLY,
};

static const struct lmq_hf_key sarvam_keys[] = {
    KEY("n_routed_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 6),
    KEY("moe_intermediate_size", expert_dim, 1024),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

static const struct lmq_hf_key sarvam_latent_keys[] = {
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 0),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    KEY("n_routed_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

/* As its makers' files have them, where they count. */
static const struct lmq_hf_only sarvam_only[] = {
    WORD("score_function", "sigmoid"),
    NUMBER("moe_router_enable_expert_bias", 1),
    END_ONLY,
};

static const struct lmq_hf_key mimo2_keys[] = {
    KEY("v_head_dim", value_dim, 128),
    KEY("attention_value_scale", value_scale, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 129),
    KEY("n_routed_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY_OR_NULL("n_group", n_expert_groups, 1),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 1),
    END,
};

/* In its makers' files. */
static const struct lmq_hf_only mimo2_only[] = {
    WORD("topk_method", "noaux_tc"),
    WORD("scoring_func", "sigmoid"),
    WORD("attention_projection_layout", "split"),
    NUMBER("n_shared_experts", 0),
    NUMBER("add_full_attention_sink_bias", 0),
    NUMBER("add_swa_attention_sink_bias", 1),
    END_ONLY,
};

static const struct lmq_hf_only iquest_only[] = {
    {"clip_qkv", NULL, (double)NAN},
    NUMBER("use_sliding_window", 0),
    END_ONLY,
};

static const struct lmq_hf_key phimoe_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    KEY("intermediate_size", expert_dim, 6400),
    KEY("num_local_experts", n_experts, 16),
    KEY("num_experts_per_tok", n_experts_used, 2),
    END,
};

static const struct lmq_hf_only phimoe_only[] = {
    NUMBER("num_experts_per_tok", 2), /* the class takes two, come what may */
    END_ONLY,
};

/* ---- The table ---- */

#define SPARSE_KEYS                                                           \
    (LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM | LMQ_GGUF_ROUTER |  \
     LMQ_GGUF_LATENT | LMQ_GGUF_FURTHER | LMQ_GGUF_INDEXER |                 \
     LMQ_GGUF_CHOICES)

#define GRANITE_KEYS                                                          \
    (LLAMA_KEYS | LMQ_GGUF_SCALES | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS |        \
     LMQ_GGUF_EXPERTS)

const struct lmq_family lmq_latest_families[] = {
    /* GLM 4.7 Flash. */
    {.name = "deepseek2",
     .hf = {.classes = {{"Glm4MoeLiteForCausalLM", "glm4_moe_lite",
                         NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-5), .context = 202752, .theta = 10000,
            .keys = {sizes, glm4lite_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_glm4lite,
            .finish = lmq_hf_finish_glm4lite, BIASES}},
    /* DeepSeek V3.2 and GLM 5: sparse attention. */
    {.name = "deepseek2",
     .hf = {.classes = {{"DeepseekV32ForCausalLM", "deepseek_v32", NULL,
                         false}},
            .source = {.has_rotary_pairs = true,
                       .has_index_halves = true},
            RMS_EPS(1e-6), .context = 163840, .theta = 10000,
            .keys = {sizes, deepseek32_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_deepseek32,
            .finish = lmq_hf_finish_deepseek32, BIASES},
     .gguf = {.name = "deepseek32", .keys = SPARSE_KEYS,
              .has_rotary_pairs = true, .has_index_halves = true,
              .begin = lmq_gguf_begin_sigmoid}},
    {.name = "deepseek2",
     .hf = {.classes = {{"GlmMoeDsaForCausalLM", "glm_moe_dsa", NULL,
                         false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-5), .context = 202752, .theta = 10000,
            .keys = {sizes, glm5_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_glm5,
            .finish = lmq_hf_finish_glm5, BIASES},
     .gguf = {.name = "glm-dsa", .keys = SPARSE_KEYS | LMQ_GGUF_CHOOSERS,
              .has_rotary_pairs = true, .begin = lmq_gguf_begin_sigmoid}},
    {.name = "solar_open",
     .hf = {.classes = {{"SolarOpenForCausalLM", "solar_open", NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8,
            .head_dim = 128, .theta = 1e6, .partial = 1,
            .keys = {sizes, head_dim, solar_keys},
            .begin = lmq_hf_begin_all_experts,
            .finish = lmq_hf_finish_solar,
            .biases = {.qkv = {"attention_bias", false}}},
     .gguf = {.name = "glm4moe"}},
    {.name = "exaone-moe", .qk_norm = LMQ_QK_NORM_HEAD, .window_period = 4,
     .hf = {.classes = {{"ExaoneMoeForCausalLM", "exaone_moe", NULL, false},
                        {"ExaoneMoEForCausalLM", NULL, NULL, false}},
            RMS_EPS(1e-5), .context = 2048, .n_kv_heads = 32,
            .theta = 10000, .has_layer_types = true,
            .keys = {sizes, head_dim, exaonemoe_keys},
            .windows = lmq_hf_windows_exaone4,
            .finish = lmq_hf_finish_exaone_experts},
     .gguf = {.name = "exaone-moe",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS |
                      LMQ_GGUF_FURTHER | LMQ_GGUF_SHARED_DIM,
              .begin = lmq_gguf_begin_sigmoid,
              .finish = lmq_gguf_finish_still_full,
              .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "cwm",
     .hf = {.classes = {{"CwmForCausalLM", "cwm", NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8,
            .head_dim = 128, .theta = 1e6, .has_layer_types = true,
            .turns_unsaid = true, .keys = {sizes, head_dim, cwm_keys},
            .windows = lmq_hf_windows_first_of_four,
            .names = LMQ_NAMES_LLAMA},
     .gguf = {.name = "llama"}},
    {.name = "helium",
     .hf = {.classes = {{"HeliumForCausalLM", "helium", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-8), .context = 4096, .n_kv_heads = 20,
            .head_dim = 128, .theta = 100000, .keys = {sizes, head_dim},
            .biases = {.qkv = {"attention_bias", false},
                       .mlp = {"mlp_bias", false}}},
     .gguf = {.name = "llama"}},
    {.name = "jais2", .norm = LMQ_NORM_LAYER,
     .activation = LMQ_ACTIVATION_RELU2, .is_plain = true,
     .hf = {.classes = {{"Jais2ForCausalLM", "jais2", NULL, false}},
            LAYER_EPS(1e-5), .context = 8192, .theta = 10000,
            .keys = {sizes, head_dim},
            .biases = {.qkv = {"attention_bias", true},
                       .out = {"attention_bias", true},
                       .mlp = {"mlp_bias", true}}},
     .gguf = {.name = "jais2", .keys = GPT_KEYS,
              .may_biases = LMQ_GGUF_BIAS_QKV,
              .must_biases = LMQ_GGUF_BIAS_NORM | LMQ_GGUF_BIAS_OUT |
                             LMQ_GGUF_BIAS_FFN}},
    /* Trinity. */
    {.name = "afmoe", .norm_place = LMQ_NORMS_AROUND,
     .qk_norm = LMQ_QK_NORM_HEAD, .window_period = 4,
     .hf = {.classes = {{"AfmoeForCausalLM", "afmoe", NULL, false}},
            RMS_EPS(1e-5), .context = 16384, .head_dim = 128,
            .theta = 10000, .has_layer_types = true,
            .keys = {sizes, head_dim, afmoe_keys}, .only = afmoe_only,
            .windows = lmq_hf_windows_afmoe, .finish = lmq_hf_finish_afmoe,
            BIASES},
     .gguf = {.name = "afmoe",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW,
              .begin = lmq_gguf_begin_sigmoid,
              .finish = lmq_gguf_finish_afmoe}},
    {.name = "hy_v3", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"HYV3ForCausalLM", "hy_v3", NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8,
            .head_dim = 128, .theta = 11158840,
            .keys = {sizes, head_dim, hyv3_keys}, .only = hyv3_only,
            .finish = lmq_hf_finish_hyv3, MLP_BIASES},
     .gguf = {.name = "hy_v3",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_FURTHER |
                      LMQ_GGUF_SHARED_DIM,
              .has_bare_correction = true,
              .begin = lmq_gguf_begin_sigmoid}},
    /* In GGUF layers with a window turn by the same base, unscaled. */
    {.name = "mellum", .qk_norm = LMQ_QK_NORM_HEAD, .window_period = 4,
     .hf = {.classes = {{"MellumForCausalLM", "mellum", NULL, false}},
            RMS_EPS(1e-6), .context = 131072, .n_kv_heads = 4,
            .head_dim = 128, .theta = 500000, .local_theta = 10000,
            .has_layer_types = true,
            .keys = {sizes, head_dim, mellum_keys}, .only = no_scaling,
            .windows = lmq_hf_windows_mellum,
            .finish = lmq_hf_finish_mellum, BIASES},
     .gguf = {.name = "mellum",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_WINDOW,
              .begin = lmq_gguf_begin_mixture,
              .finish = lmq_gguf_finish_olmo2, .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "flint", .qk_norm = LMQ_QK_NORM_HEAD, .window_period = 4,
     .hf = {.classes = {{"FlintForCausalLM", "flint", NULL, false}},
            RMS_EPS(1e-6), .context = 262144, .n_kv_heads = 4,
            .head_dim = 128, .theta = 10000, .has_layer_types = true,
            .keys = {sizes, head_dim, flint_keys},
            .windows = lmq_hf_windows_flint, .finish = lmq_hf_finish_flint,
            BIASES}},
    {.name = "flex_olmo", .norm_place = LMQ_NORMS_AFTER,
     .qk_norm = LMQ_QK_NORM_WHOLE,
     .hf = {.classes = {{"FlexOlmoForCausalLM", "flex_olmo", NULL, false}},
            RMS_EPS(1e-6), .context = 4096, .theta = 500000,
            .keys = {sizes, flexolmo_keys}, BIASES}},
    {.name = "hyperclovax", .norm_place = LMQ_NORMS_AROUND,
     .hf = {.classes = {{"HyperCLOVAXForCausalLM", "hyperclovax", NULL,
                         false}},
            .source = {.has_apart_norms = true},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, hyperclovax_keys},
            .begin = lmq_hf_begin_hyperclovax, MLP_BIASES}},
    {.name = "minicpm",
     .hf = {.classes = {{"MiniCPMForCausalLM", "minicpm", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .has_inner_context = true, .has_tied_head = true,
            .keys = {sizes, minicpm_keys},
            .finish = lmq_hf_finish_minicpm},
     .gguf = {.name = "minicpm", .keys = LLAMA_KEYS | LMQ_GGUF_SCALES,
              .has_rotary_pairs = true, .begin = lmq_gguf_begin_minicpm,
              .finish = lmq_gguf_finish_minicpm,
              .may_biases = LLAMA_BIASES}},
    {.name = "minicpm3",
     .hf = {.classes = {{"MiniCPM3ForCausalLM", "minicpm3", NULL, false}},
            RMS_EPS(1e-5), .context = 32768, .theta = 10000,
            .has_inner_context = true, .has_tied_head = true,
            .keys = {sizes, minicpm3_keys},
            .begin = lmq_hf_begin_minicpm3,
            .finish = lmq_hf_finish_minicpm3}},
    /* In GGUF its scales are those of the one that there is, and keys and
     * values of one matrix, as we do not write them. */
    {.name = "minicpm3",
     .gguf = {.name = "minicpm3", .keys = LLAMA_KEYS | LMQ_GGUF_LATENT,
              .finish = lmq_gguf_finish_minicpm3}},
    {.name = "cohere2_moe", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM, .window_period = 4,
     .hf = {.classes = {{"Cohere2MoeForCausalLM", "cohere2_moe", NULL,
                         false}},
            .source = {.has_rotary_pairs = true},
            LAYER_EPS(1e-5), .context = 8192, .head_dim = 128,
            .theta = 10000, .has_tied_head = true, .has_layer_types = true,
            .keys = {sizes, cohere_keys, cohere2moe_keys}, .only = no_scaling,
            .begin = lmq_hf_begin_cohere2_experts,
            .windows = lmq_hf_windows_cohere2_experts,
            .finish = lmq_hf_finish_cohere2_experts, BIASES},
     .gguf = {.name = "cohere2moe", .has_full_first = true,
              .norm_by_eps = true,
              .keys = LMQ_GGUF_TWO_EPS | LMQ_GGUF_ROPE | LMQ_GGUF_LOGIT |
                      LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS | LMQ_GGUF_EXPERTS |
                      LMQ_GGUF_EXPERT_DIM | LMQ_GGUF_ROUTER |
                      LMQ_GGUF_FURTHER | LMQ_GGUF_SHARED_DIM,
              .has_rotary_pairs = true, .begin = lmq_gguf_begin_sigmoid,
              .finish = lmq_gguf_finish_cohere2_experts}},
    {.name = "granite_swa",
     .hf = {.classes = {{"GraniteSWAForCausalLM", "granite_swa", NULL,
                         false}},
            RMS_EPS(1e-5), .context = 8192, .n_kv_heads = 4,
            .theta = 10000, .has_tied_head = true, .has_layer_types = true,
            .keys = {sizes, granite_keys, granite_window_keys},
            .windows = lmq_hf_windows_first_of_four,
            .finish = lmq_hf_finish_granite_windows, MLP_BIASES},
     .gguf = {.name = "granite_swa", .keys = GRANITE_KEYS,
              .has_rotary_pairs = true, .fuses_shared = true,
              .has_turns = true, .begin = lmq_gguf_begin_granite_windows,
              .may_biases = LLAMA_BIASES}},
    {.name = "granitemoe_swa",
     .hf = {.classes = {{"GraniteMoeSWAForCausalLM", "granitemoe_swa", NULL,
                         false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .has_layer_types = true,
            .keys = {sizes, granite_keys, granite_window_experts},
            .windows = lmq_hf_windows_first_of_four,
            .finish = lmq_hf_finish_granite_windows, BIASES},
     .gguf = {.name = "granite_swa"}}, /* as the row above */
    /* Ling and Ring. */
    {.name = "bailingmoe",
     .hf = {.classes = {{"BailingMoeForCausalLM", "bailing_moe", NULL,
                         false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim, ling_keys}, .only = ling_only,
            .finish = lmq_hf_finish_ling},
     .gguf = {.name = "bailingmoe",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER,
              .has_rotary_pairs = true, .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "bailingmoe2", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"BailingMoeV2ForCausalLM", "bailing_moe_v2", NULL,
                         false}},
            RMS_EPS(1e-6), .context = 32768, .theta = 600000, .partial = 0.5,
            .qk_norm_key = "use_qk_norm",
            .keys = {sizes, head_dim, ling2_keys}, .only = ling2_only,
            .finish = lmq_hf_finish_ling2},
     .gguf = {.name = "bailingmoe2",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_FURTHER,
              .fuses_qkv = true, .begin = lmq_gguf_begin_sigmoid,
              .head = LMQ_GGUF_HEAD_MUST}},
    /* Sarvam 30B, stored as Ling is, and 105B. */
    {.name = "glm4moe", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"SarvamMoEForCausalLM", "sarvam_moe", NULL, false}},
            RMS_EPS(1e-6), .context = 131072, .n_kv_heads = 4,
            .head_dim = 64, .theta = 8e6, .partial = 1,
            .qk_norm_key = "use_qk_norm", .has_qk_norm_unsaid = true,
            .keys = {sizes, head_dim, sarvam_keys}, .only = sarvam_only,
            .finish = lmq_hf_finish_sarvam,
            .biases = {.qkv = {"use_qkv_bias", false}}}},
    {.name = "deepseek2",
     .hf = {.classes = {{"SarvamMLAForCausalLM", "sarvam_mla", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 4096, .theta = 10000,
            .keys = {sizes, sarvam_latent_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_deepseek,
            .finish = lmq_hf_finish_sarvam_latent, BIASES}},
    /* MiMo V2 Flash. */
    {.name = "mimo2", .window_period = 6,
     .hf = {.classes = {{"MiMoV2FlashForCausalLM", "mimo_v2_flash", NULL,
                         false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 4,
            .head_dim = 192, .theta = 5e6, .partial = 0.334,
            .local_theta = 10000, .local_key = "swa_rope_theta",
            .has_layer_types = true, .keys = {sizes, head_dim, mimo2_keys},
            .only = mimo2_only, .begin = lmq_hf_begin_mimo2,
            .windows = lmq_hf_windows_mimo2,
            .finish = lmq_hf_finish_mimo2,
            .biases = {.qkv = {"attention_bias", false}}},
     .gguf = {.name = "mimo2",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS |
                      LMQ_GGUF_LOCAL | LMQ_GGUF_FURTHER | LMQ_GGUF_KEY_KINDS,
              .begin = lmq_gguf_begin_mimo2,
              .finish = lmq_gguf_finish_mimo2, .head = LMQ_GGUF_HEAD_MUST}},
    /* Phi 3.5 MoE. */
    {.name = "phimoe", .norm = LMQ_NORM_LAYER,
     .hf = {.classes = {{"PhimoeForCausalLM", "phimoe", NULL, false},
                        {"PhiMoEForCausalLM", NULL, NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8, .theta = 1e6,
            .has_mscales = true, .keys = {sizes, phimoe_keys},
            .only = phimoe_only, .finish = lmq_hf_finish_phimoe,
            .biases = {.qkv = {"attention_bias", false},
                       .out = {"attention_bias", false},
                       .head = {"lm_head_bias", false}}}},
    /* Its positions turn the other way. */
    {.name = "nanochat", .norm = LMQ_NORM_RMS_PLAIN,
     .qk_norm = LMQ_QK_NORM_BARE, .activation = LMQ_ACTIVATION_RELU2,
     .is_plain = true,
     .hf = {.classes = {{"NanoChatForCausalLM", "nanochat", NULL, false}},
            .source = {.turns_back = true},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim, nanochat_keys},
            .begin = lmq_hf_begin_nanochat, BIASES}},
    /* Llamas by other names. */
    {.name = "llama",
     .hf = {.classes = {{"AquilaForCausalLM", "aquila", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim}}},
    {.name = "llama",
     .hf = {.classes = {{"IQuestCoderForCausalLM", "iquestcoder", NULL,
                         false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8,
            .head_dim = 128, .theta = 10000, .keys = {sizes, head_dim},
            .only = iquest_only, MLP_BIASES}},
    /* Its third generation, 3.5 and Deep. */
    {.name = "exaone",
     .hf = {.classes = {{"ExaoneForCausalLM", "exaone", NULL, false}},
            GPT_EPS(1e-6), .context = 2048, .theta = 10000,
            .theta_differs = true, .activation_key = "activation_function",
            .keys = {sizes, head_dim, exaone_keys}, .only = exaone_only,
            .begin = lmq_hf_begin_exaone},
     .gguf = {.name = "exaone",
              .keys = LMQ_GGUF_TWO_EPS | LMQ_GGUF_ROPE}},
    /* The first one with experts. */
    {.name = "deepseek",
     .hf = {.classes = {{"DeepseekForCausalLM", "deepseek", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, deepseek_keys}, .only = deepseek_only,
            .finish = lmq_hf_finish_deepseek},
     .gguf = {.name = "deepseek",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER,
              .has_rotary_pairs = true,
              .finish = lmq_gguf_finish_deepseek}},
};

const size_t lmq_n_latest_families =
    sizeof(lmq_latest_families) / sizeof(lmq_latest_families[0]);
