/*
 * families_recurrent.c - the families of which some layers remember a state in
 * place of keys and values; families.c says what holds for all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/checkpoint/joined.h"
#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"
#include "formats/hf/more/hf_further.h"

/* ---- Lists of keys of config.json ---- */

static const struct lmq_hf_key delta_keys[] = {
    KEY("linear_num_key_heads", n_delta_key_heads, 16),
    KEY("linear_num_value_heads", n_delta_value_heads, 32),
    KEY("linear_key_head_dim", delta_key_dim, 128),
    KEY("linear_value_head_dim", delta_value_dim, 128),
    KEY("linear_conv_kernel_dim", conv_width, 4),
    END,
};

/* Its other sizes follow from those of attention. */
static const struct lmq_hf_key olmo_hybrid_keys[] = {
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

static const struct lmq_hf_key qwen4_keys[] = {
    KEY("num_experts", n_experts, 512),
    KEY("num_experts_per_tok", n_experts_used, 10),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY("shared_expert_intermediate_size", shared_dim, 512),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("hc_count", n_streams, 4),
    KEY("hc_lowrank", stream_rank, 320),
    END,
};

/* The state space of Mamba 2, as Bamba and Granite 4 call its parts. */
static const struct lmq_hf_key bamba_keys[] = {
    KEY("mamba_n_heads", n_delta_value_heads, 128),
    KEY("mamba_n_groups", n_delta_key_heads, 1),
    KEY("mamba_d_state", delta_key_dim, 256),
    KEY("mamba_d_conv", conv_width, 4),
    END,
};

static const struct lmq_hf_key falconh1_keys[] = {
    KEY("embedding_multiplier", embedding_scale, 1),
    KEY("lm_head_multiplier", logit_scale, 1),
    END,
};

/* A multiplier would not be one of a bias. */
static const struct lmq_hf_only falconh1_only[] = {
    NUMBER("attention_bias", 0),
    NUMBER("mlp_bias", 0),
    NUMBER("mamba_proj_bias", 0),
    NUMBER("projectors_bias", 0),
    END_ONLY,
};

static const struct lmq_hf_key granite4_keys[] = {
    KEY("intermediate_size", expert_dim, 0),
    KEY_OR_NULL("num_local_experts", n_experts, 8),
    KEY_OR_NULL("num_experts_per_tok", n_experts_used, 2),
    KEY("shared_intermediate_size", shared_dim, 1024),
    END,
};

static const struct lmq_hf_key nemotron_keys[] = {
    KEY("mamba_num_heads", n_delta_value_heads, 128),
    KEY("mamba_head_dim", delta_value_dim, 64),
    KEY("n_groups", n_delta_key_heads, 8),
    KEY("ssm_state_size", delta_key_dim, 128),
    KEY("conv_kernel", conv_width, 4),
    END,
};

static const struct lmq_hf_key nemotron_experts[] = {
    KEY("n_routed_experts", n_experts, 8),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 2),
    KEY("moe_intermediate_size", expert_dim, 7688),
    KEY("moe_shared_expert_intermediate_size", shared_dim, 7688),
    KEY("n_group", n_expert_groups, 1),
    KEY("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 1),
    END,
};

static const struct lmq_hf_key mamba2_keys[] = {
    KEY("hidden_size", dim, 4096),
    KEY("num_hidden_layers", n_layers, 64),
    KEY("vocab_size", vocab_size, 32768),
    KEY("num_heads", n_delta_value_heads, 128),
    KEY("n_groups", n_delta_key_heads, 8),
    KEY("state_size", delta_key_dim, 128),
    KEY("conv_kernel", conv_width, 4),
    END,
};

static const struct lmq_hf_key mamba_keys[] = {
    KEY("hidden_size", dim, 768),
    KEY("num_hidden_layers", n_layers, 32),
    KEY("vocab_size", vocab_size, 50280),
    KEY("state_size", delta_key_dim, 16),
    KEY("conv_kernel", conv_width, 4),
    END,
};

static const struct lmq_hf_key jamba_keys[] = {
    KEY("intermediate_size", expert_dim, 0),
    KEY("num_experts", n_experts, 16),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 2),
    KEY("mamba_d_state", delta_key_dim, 16),
    KEY("mamba_d_conv", conv_width, 4),
    END,
};

/* Versions differ in what they do with a window. */
static const struct lmq_hf_only jamba_only[] = {
    {"sliding_window", NULL, (double)NAN},
    NUMBER("mamba_inner_layernorms", 1),
    END_ONLY,
};

/* Some by two names: those of its makers, those of other families. */
static const struct lmq_hf_key kimi_keys[] = {
    KEY("model_max_length", context, ALIAS),
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 0),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    KEY("routed_scaling_factor", router_scale, 2.446),
    END,
};

static const struct lmq_hf_key kimi_experts[] = {
    KEY("num_local_experts", n_experts, 256),
    KEY("num_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("num_experts_per_token", n_experts_used, ALIAS),
    KEY("moe_intermediate_size", expert_dim, 1024),
    KEY("n_group", n_expert_groups, 1),
    KEY("num_expert_group", n_expert_groups, ALIAS),
    KEY("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("moe_renormalize", router_renormalises, ALIAS),
    END,
};

static const struct lmq_hf_only kimi_only[] = {
    WORD("moe_router_activation_func", "sigmoid"),
    NUMBER("moe_layer_freq", 1),
    NUMBER("mla_use_nope", 1),
    END_ONLY,
};

static const struct lmq_hf_key ling3_keys[] = {
    KEY("model_max_length", context, ALIAS),
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 0),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    KEY("num_experts", n_experts, 512),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("num_experts_per_token", n_experts_used, ALIAS),
    KEY("moe_intermediate_size", expert_dim, 768),
    KEY("n_group", n_expert_groups, 8),
    KEY("num_expert_group", n_expert_groups, ALIAS),
    KEY("topk_group", n_expert_groups_used, 4),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("moe_renormalize", router_renormalises, ALIAS),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

static const struct lmq_hf_only ling3_only[] = {
    WORD("score_function", "sigmoid"),
    NUMBER("no_kda_lora", 1),
    WORD("gated_attention_proj_granularity_type", "head_wise"),
    END_ONLY,
};

static const struct lmq_hf_key glm5next_keys[] = {
    KEY("q_lora_rank", q_lora_rank, 1536),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("v_head_dim", value_dim, 256),
    KEY("n_routed_experts", n_experts, 288),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY("n_group", n_expert_groups, 1),
    KEY("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    KEY("swiglu_limit", glu_limit, 10),
    KEY("hc_mult", n_streams, 4),
    KEY("hc_eps", stream_eps, 1e-6),
    KEY("hc_sinkhorn_iters", stream_rounds, 20),
    END,
};

static const struct lmq_hf_only glm5next_only[] = {
    WORD("scoring_func", "sigmoid"),
    NUMBER("index_kpool_always_select_tail", 1),
    NUMBER("qk_rope_head_dim", 0),
    END_ONLY,
};

static const struct lmq_hf_key recurrent_gemma_keys[] = {
    SIZES(2560, 7680, 26, 10, 256000),
    KEY_OR_NULL("num_key_value_heads", n_kv_heads, KEEP),
    KEY("attention_window_size", sliding_window, 2048),
    KEY("conv1d_width", conv_width, 4),
    KEY("logits_soft_cap", logit_softcap, 30),
    END,
};

/* Values of attention have none, those of recurrent layers have. */
static const struct lmq_hf_only recurrent_gemma_only[] = {
    NUMBER("attention_bias", 0),
    {"rope_scaling", NULL, (double)NAN},
    END_ONLY,
};

/* As the library calls them, and its makers. */
static const struct lmq_hf_key lightning_keys[] = {
    KEY("full_attn_alpha_factor", attn_keep, 1),
    KEY("layernorm_full_attention_alpha", attn_keep, ALIAS),
    KEY("full_attn_beta_factor", attn_add, 1),
    KEY("layernorm_full_attention_beta", attn_add, ALIAS),
    KEY("linear_attn_alpha_factor", delta_keep, 1),
    KEY("layernorm_linear_attention_alpha", delta_keep, ALIAS),
    KEY("linear_attn_beta_factor", delta_add, 1),
    KEY("layernorm_linear_attention_beta", delta_add, ALIAS),
    KEY("mlp_alpha_factor", feed_keep, 1),
    KEY("layernorm_mlp_alpha", feed_keep, ALIAS),
    KEY("mlp_beta_factor", feed_add, 1),
    KEY("layernorm_mlp_beta", feed_add, ALIAS),
    END,
};

static const struct lmq_hf_key lightning_experts[] = {
    KEY("intermediate_size", expert_dim, 0),
    KEY("num_local_experts", n_experts, 8),
    KEY("num_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 2),
    END,
};

/* In its layers with attention, of whichever kind it may be. */
static const struct lmq_hf_only lightning_only[] = {
    {"sliding_window", NULL, (double)NAN},
    NUMBER("shared_intermediate_size", 0),
    NUMBER("postnorm", 1),
    END_ONLY,
};

static const struct lmq_hf_key lfm2_keys[] = {
    KEY("block_ff_dim", hidden_dim, ALIAS),
    KEY("conv_L_cache", conv_width, 3),
    END,
};

static const struct lmq_hf_key lfm3_keys[] = {
    KEY("conv_L_cache", conv_width, 7),
    KEY_OR_NULL("sliding_window", sliding_window, 256),
    END,
};

static const struct lmq_hf_key lfm2_experts[] = {
    KEY("num_experts", n_experts, 32),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("moe_intermediate_size", expert_dim, 1792),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 1),
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
              .begin = lmq_gguf_begin_delta}},
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
              .begin = lmq_gguf_begin_delta}},
    {.name = "qwen4exp", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Qwen4ExpForCausalLM", "qwen4_exp_text", NULL,
                         false},
                        {"Qwen4ExpForConditionalGeneration", "qwen4_exp",
                         "text_config", false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 2,
            .head_dim = 256, .theta = 10000, .partial = 1,
            .has_sections = true, .has_layer_types = true,
            .keys = {sizes, head_dim, delta_keys, qwen4_keys},
            .begin = lmq_hf_begin_qwen4, .windows = lmq_hf_windows_delta,
            .finish = lmq_hf_finish_qwen4, BIASES},
     .gguf = {.name = "qwen4exp", .keys = LLAMA_KEYS,
              .why_not = "its tables for sequences of tokens, and what its "
                         "sparse attention chooses by, are known of folders "
                         "alone"}},
    {.name = "olmo_hybrid", .qk_norm = LMQ_QK_NORM_WHOLE,
     .hf = {.classes = {{"OlmoHybridForCausalLM", "olmo_hybrid", NULL, false}},
            RMS_EPS(1e-6), .context = 65536, .theta = 10000,
            .theta_differs = true, .has_layer_types = true,
            .keys = {sizes, head_dim, olmo_hybrid_keys},
            .begin = lmq_hf_begin_olmo_hybrid,
            .windows = lmq_hf_windows_olmo_hybrid,
            .finish = lmq_hf_finish_olmo_hybrid, BIASES}},
    /* Granite 4; without Mamba it is one of the older ones. */
    {.name = "granitehybrid",
     .hf = {.classes = {{"GraniteMoeHybridForCausalLM", "granitemoehybrid",
                         NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .has_layer_types = true,
            .keys = {sizes, granite_keys, granite4_keys, bamba_keys},
            .begin = lmq_hf_begin_granite_hybrid,
            .windows = lmq_hf_windows_granite_hybrid,
            .finish = lmq_hf_finish_granite_hybrid, BIASES},
     .gguf = {.name = "granitehybrid",
              .keys = LLAMA_KEYS | LMQ_GGUF_SCALES | LMQ_GGUF_EXPERTS |
                      LMQ_GGUF_STATES,
              .may_stand_still = true,
              .has_rotary_pairs = true, .joins = LMQ_JOINS_QKVZ,
              .begin = lmq_gguf_begin_granite_experts,
              .may_biases = LLAMA_BIASES | LMQ_GGUF_BIAS_CONV}},
    {.name = "bamba",
     .hf = {.classes = {{"BambaForCausalLM", "bamba", NULL, false}},
            RMS_EPS(1e-5), .context = 262144, .n_kv_heads = 8,
            .theta = 10000, .partial = 0.5, .has_layer_types = true,
            .keys = {sizes, bamba_keys}, .begin = lmq_hf_begin_bamba,
            .windows = lmq_hf_windows_bamba, .finish = lmq_hf_finish_silu,
            MLP_BIASES},
     .gguf = {.name = "granitehybrid"}},
    {.name = "falcon_h1",
     .hf = {.classes = {{"FalconH1ForCausalLM", "falcon_h1", NULL, false}},
            RMS_EPS(1e-5), .context = 8192, .n_kv_heads = 8, .theta = 10000,
            .theta_differs = true,
            .keys = {sizes, head_dim, bamba_keys, falconh1_keys},
            .only = falconh1_only, .begin = lmq_hf_begin_falcon_hybrid,
            .finish = lmq_hf_finish_falcon_hybrid, MLP_BIASES},
     .gguf = {.name = "falcon-h1", .keys = LLAMA_KEYS | LMQ_GGUF_STATES,
              .has_both = true, .has_bare_feed_norm = true,
              .folds_scales = true, .joins = LMQ_JOINS_QKVZ,
              .may_biases = LLAMA_BIASES | LMQ_GGUF_BIAS_CONV}},
    {.name = "nemotron_h", .positions = LMQ_POSITIONS_NONE,
     .activation = LMQ_ACTIVATION_RELU2, .is_plain = true,
     .hf = {.classes = {{"NemotronHForCausalLM", "nemotron_h", NULL, false}},
            GPT_EPS(1e-5), .activation_key = "mlp_hidden_act",
            .context = 4096, .n_kv_heads = 8, .head_dim = 128,
            .keys = {sizes, head_dim, nemotron_keys, nemotron_experts},
            .begin = lmq_hf_begin_nemotron_hybrid,
            .finish = lmq_hf_finish_nemotron_hybrid},
     .gguf = {.name = "nemotron_h",
              .keys = LMQ_GGUF_TWO_EPS | LMQ_GGUF_STATES | LMQ_GGUF_HALVES,
              .joins = LMQ_JOINS_QKVZ,
              .may_biases = LLAMA_BIASES | LMQ_GGUF_BIAS_CONV}},
    /* The same with experts, in GGUF. */
    {.name = "nemotron_h_moe", .positions = LMQ_POSITIONS_NONE,
     .activation = LMQ_ACTIVATION_RELU2, .is_plain = true,
     .gguf = {.name = "nemotron_h_moe",
              .keys = LMQ_GGUF_TWO_EPS | LMQ_GGUF_STATES | LMQ_GGUF_HALVES |
                      LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_FURTHER |
                      LMQ_GGUF_SHARED_DIM,
              .joins = LMQ_JOINS_QKVZ, .begin = lmq_gguf_begin_sigmoid,
              .may_biases = LMQ_GGUF_BIAS_CONV}},
    {.name = "mamba2", .positions = LMQ_POSITIONS_NONE,
     .hf = {.classes = {{"Mamba2ForCausalLM", "mamba2", NULL, false}},
            GPT_EPS(1e-5), .context = 1048576, .keys = {mamba2_keys},
            .begin = lmq_hf_begin_mamba2, .windows = lmq_hf_windows_mamba2,
            .finish = lmq_hf_finish_silu},
     .gguf = {.name = "mamba2",
              .keys = LMQ_GGUF_RMS | LMQ_GGUF_STATES | LMQ_GGUF_HALVES,
              .joins = LMQ_JOINS_QKVZ, .must_biases = LMQ_GGUF_BIAS_CONV}},
    {.name = "mamba", .positions = LMQ_POSITIONS_NONE,
     .hf = {.classes = {{"MambaForCausalLM", "mamba", NULL, false}},
            GPT_EPS(1e-5), .has_tied_head = true, .context = 1048576,
            .keys = {mamba_keys}, .begin = lmq_hf_begin_mamba,
            .windows = lmq_hf_windows_mamba2,
            .finish = lmq_hf_finish_silu},
     .gguf = {.name = "mamba",
              .keys = LMQ_GGUF_RMS | LMQ_GGUF_SELECTIVE | LMQ_GGUF_HALVES,
              .joins = LMQ_JOINS_QKVZ | LMQ_JOINS_BA,
              .must_biases = LMQ_GGUF_BIAS_CONV}},
    {.name = "falcon_mamba", .positions = LMQ_POSITIONS_NONE,
     .hf = {.classes = {{"FalconMambaForCausalLM", "falcon_mamba", NULL,
                         false}},
            GPT_EPS(1e-5), .has_tied_head = true, .context = 1048576,
            .keys = {mamba_keys}, .begin = lmq_hf_begin_falcon_mamba,
            .windows = lmq_hf_windows_mamba2,
            .finish = lmq_hf_finish_silu},
     .gguf = {.name = "mamba"}},
    {.name = "jamba", .positions = LMQ_POSITIONS_NONE,
     .hf = {.classes = {{"JambaForCausalLM", "jamba", NULL, false}},
            RMS_EPS(1e-6), .context = 262144, .n_kv_heads = 8,
            .keys = {sizes, head_dim, jamba_keys}, .only = jamba_only,
            .begin = lmq_hf_begin_jamba, .windows = lmq_hf_windows_jamba,
            .finish = lmq_hf_finish_silu},
     .gguf = {.name = "jamba",
              .keys = LMQ_GGUF_RMS | LMQ_GGUF_SELECTIVE | LMQ_GGUF_EXPERTS,
              .joins = LMQ_JOINS_QKVZ | LMQ_JOINS_BA,
              .must_biases = LMQ_GGUF_BIAS_CONV,
              .finish = lmq_gguf_finish_jamba}},
    {.name = "kimi_linear", .positions = LMQ_POSITIONS_NONE,
     .hf = {.classes = {{"KimiLinearForCausalLM", "kimi_linear", NULL,
                         false}},
            RMS_EPS(1e-5), .context = 1048576, .has_layer_types = true,
            .keys = {sizes, kimi_keys, kimi_experts}, .only = kimi_only,
            .begin = lmq_hf_begin_kimi, .windows = lmq_hf_windows_kimi,
            .finish = lmq_hf_finish_kimi, BIASES},
     .gguf = {.name = "kimi-linear",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_LATENT |
                      LMQ_GGUF_KEY_DECAYS,
              .joins = LMQ_JOINS_NO_CONV, .head = LMQ_GGUF_HEAD_MUST,
              .begin = lmq_gguf_begin_kimi,
              .finish = lmq_gguf_finish_kimi}},
    {.name = "bailingmoe3",
     .hf = {.classes = {{"BailingHybridForCausalLM", "bailing_hybrid", NULL,
                         false},
                        {"BailingMoeV3ForCausalLM", NULL, NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 262144, .theta = 6e6,
            .has_layer_types = true, .keys = {sizes, ling3_keys},
            .only = ling3_only, .begin = lmq_hf_begin_ling3,
            .windows = lmq_hf_windows_ling3, .finish = lmq_hf_finish_ling3,
            BIASES},
     .gguf = {.name = "bailingmoe3",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_SHARED_DIM | LMQ_GGUF_ROUTER |
                      LMQ_GGUF_LATENT | LMQ_GGUF_KEY_DECAYS |
                      LMQ_GGUF_DECAY_FLOOR | LMQ_GGUF_FURTHER,
              .has_rotary_pairs = true, .joins = LMQ_JOINS_NO_CONV,
              .begin = lmq_gguf_begin_ling3}},
    {.name = "glm5_next", .positions = LMQ_POSITIONS_NONE,
     .hf = {.classes = {TEXT_OF_OR_FLAT("Glm5NextForConditionalGeneration",
                                        "glm5_next"),
                        {NULL, "glm5_next_text", NULL, false}},
            .source = {.may_lack_correction = true},
            RMS_EPS(1e-5), .context = 1048576, .has_layer_types = true,
            .keys = {sizes, glm5next_keys}, .only = glm5next_only,
            .begin = lmq_hf_begin_glm5next,
            .windows = lmq_hf_windows_glm5next,
            .finish = lmq_hf_finish_glm5next, BIASES},
     .gguf = {.name = "glm5-next",
              .keys = LMQ_GGUF_RMS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_LATENT |
                      LMQ_GGUF_KEY_DECAYS | LMQ_GGUF_FURTHER |
                      LMQ_GGUF_INDEXER | LMQ_GGUF_GROUPS | LMQ_GGUF_HYPER |
                      LMQ_GGUF_LIMITS,
              .limits_gates = true, .limits_all_gates = true,
              .joins = LMQ_JOINS_NO_CONV, .head = LMQ_GGUF_HEAD_MUST,
              .begin = lmq_gguf_begin_glm5next,
              .finish = lmq_gguf_finish_glm5next}},
    {.name = "recurrent_gemma", .activation = LMQ_ACTIVATION_GELU_TANH,
     .hf = {.classes = {{"RecurrentGemmaForCausalLM", "recurrent_gemma", NULL,
                         false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), GELU_KEY, .has_tied_head = true, .context = 8192,
            .theta = 10000, .partial = 0.5, .keys = {recurrent_gemma_keys},
            .only = recurrent_gemma_only,
            .begin = lmq_hf_begin_recurrent_gemma,
            .windows = lmq_hf_windows_recurrent_gemma}},
    {.name = "minimax-01",
     .hf = {.classes = {{"MiniMaxForCausalLM", "minimax", NULL, false},
                        {"MiniMaxText01ForCausalLM", "minimax_text_01", NULL,
                         false},
                        {"MiniMaxM1ForCausalLM", "minimax_m1", NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8,
            .theta = 1e6, .has_layer_types = true,
            .keys = {sizes, head_dim, lightning_keys, lightning_experts},
            .only = lightning_only, .begin = lmq_hf_begin_lightning,
            .windows = lmq_hf_windows_lightning,
            .finish = lmq_hf_finish_lightning},
     .gguf = {.name = "minimax-01",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_LIGHTNING,
              .joins = LMQ_JOINS_QKV, .begin = lmq_gguf_begin_lightning,
              .finish = lmq_gguf_finish_lightning}},
    {.name = "lfm2", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Lfm2ForCausalLM", "lfm2", NULL, false}},
            .eps_key = "norm_eps", .eps = 1e-5, .has_tied_head = true,
            .context = 128000, .n_kv_heads = 8, .theta = 1e6,
            .has_layer_types = true, .activation_key = "",
            .keys = {sizes, lfm2_keys},
            .begin = lmq_hf_begin_lfm2, .windows = lmq_hf_windows_lfm2},
     .gguf = {.name = "lfm2", .keys = LLAMA_KEYS | LMQ_GGUF_SHORT,
              .joins = LMQ_JOINS_QKVZ, .has_late_norm_name = true}},
    {.name = "lfm3", .qk_norm = LMQ_QK_NORM_HEAD,
     .norm_place = LMQ_NORMS_AROUND,
     .hf = {.classes = {{"Lfm3ForCausalLM", "lfm3", NULL, false}},
            .eps_key = "norm_eps", .eps = 1e-5, .has_tied_head = true,
            .context = 128000, .n_kv_heads = 4, .head_dim = 128,
            .theta = 1e6, .local_theta = 10000, .has_layer_types = true,
            .activation_key = "", .only = no_scaling,
            .keys = {sizes, head_dim, lfm3_keys}, .begin = lmq_hf_begin_lfm3,
            .windows = lmq_hf_windows_lfm3, .finish = lmq_hf_finish_lfm3}},
    {.name = "lfm2moe", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Lfm2MoeForCausalLM", "lfm2_moe", NULL, false}},
            .eps_key = "norm_eps", .eps = 1e-5, .has_tied_head = true,
            .context = 128000, .n_kv_heads = 8, .theta = 1e6,
            .has_layer_types = true, .activation_key = "",
            .keys = {sizes, lfm2_keys, lfm2_experts},
            .begin = lmq_hf_begin_lfm2_experts,
            .windows = lmq_hf_windows_lfm2,
            .finish = lmq_hf_finish_lfm2_experts},
     .gguf = {.name = "lfm2moe",
              .keys = LLAMA_KEYS | LMQ_GGUF_SHORT | LMQ_GGUF_EXPERTS |
                      LMQ_GGUF_EXPERT_DIM | LMQ_GGUF_ROUTER,
              .joins = LMQ_JOINS_QKVZ, .has_late_norm_name = true,
              .begin = lmq_gguf_begin_sigmoid_mixture}},
};

const size_t lmq_n_recurrent_families =
    sizeof(lmq_recurrent_families) / sizeof(lmq_recurrent_families[0]);
