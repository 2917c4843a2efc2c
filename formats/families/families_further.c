/*
 * families_further.c - families that differ from a Llama in one thing that few
 * others have; families.c says what holds for all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"
#include "formats/hf/more/hf_further.h"
#include "formats/hf/more/hf_mistral_large.h"

/* ---- Lists of keys of config.json ---- */

static const struct lmq_hf_key axk1_keys[] = {
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 1536),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    KEY("n_routed_experts", n_experts, 192),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY_OR_NULL("n_group", n_expert_groups, 8),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 4),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

static const struct lmq_hf_key axk2_keys[] = {
    KEY("q_lora_rank", q_lora_rank, 384),
    KEY("kv_lora_rank", kv_lora_rank, 128),
    KEY("qk_rope_head_dim", rotary_dim, 32),
    KEY("v_head_dim", value_dim, 64),
    KEY("n_routed_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 512),
    KEY_OR_NULL("n_group", n_expert_groups, 0),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 0),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    KEY("gated_norm_rank", norm_gate_rank, 16),
    KEY("index_n_heads", n_index_heads, 16),
    KEY("index_head_dim", index_dim, 128),
    END,
};

static const struct lmq_hf_key mistral_large4_keys[] = {
    SIZES(6144, 24576, 72, 64, 204800),
    KEY("max_position_embeddings", context, KEEP),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    KEY("n_routed_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("moe_intermediate_size", expert_dim, 6144),
    KEY("n_group", n_expert_groups, 1),
    KEY("topk_group", n_expert_groups_used, 1),
    KEY("routed_scaling_factor", router_scale, 1),
    KEY("final_logit_softcapping", logit_softcap, 30),
    END,
};

static const struct lmq_hf_only mistral_large4_only[] = {
    {"q_lora_rank", NULL, (double)NAN},
    NUMBER("attention_bias", 0),
    END_ONLY,
};

static const struct lmq_hf_key smallthinker_keys[] = {
    KEY("hidden_size", dim, 0),
    KEY("num_hidden_layers", n_layers, 0),
    KEY("num_attention_heads", n_heads, 0),
    KEY("num_key_value_heads", n_kv_heads, KEEP),
    KEY("vocab_size", vocab_size, 0),
    KEY("max_position_embeddings", context, KEEP),
    KEY("moe_num_primary_experts", n_experts, 32),
    KEY("moe_num_active_primary_experts", n_experts_used, 4),
    KEY("moe_ffn_hidden_size", expert_dim, 768),
    KEY("sliding_window_size", sliding_window, 4096),
    END,
};

/* What only its first files speak of. */
static const struct lmq_hf_only smallthinker_only[] = {
    NUMBER("moe_enable_early_router", 1),
    NUMBER("moe_enable_secondary_experts", 0),
    NUMBER("moe_shared_primary_experts", 0),
    NUMBER("use_qk_norm", 0),
    END_ONLY,
};

static const struct lmq_hf_key dots3_keys[] = {
    SIZES(5120, 13824, 46, 128, 152064),
    KEY("max_position_embeddings", context, KEEP),
    KEY("n_routed_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 1536),
    KEY("n_group", n_expert_groups, 1),
    KEY("topk_group", n_expert_groups_used, 1),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 1),
    KEY("sliding_window", sliding_window, KEEP),
    END,
};

static const struct lmq_hf_only dots3_only[] = {
    WORD("topk_method", "noaux_tc"),
    WORD("scoring_func", "sigmoid"),
    WORD("attention_gate_type", "headwise"),
    WORD("swa_attention_gate_type", "headwise"),
    WORD("normalization", "RMSNorm"),
    WORD("final_norm", "RMSNorm"),
    {"rope_scaling", NULL, (double)NAN},
    NUMBER("attention_bias", 0),
    NUMBER("apply_mla_qkv_lora_rescale", 1),
    NUMBER("k_rope_only_layernorm", 1),
    NUMBER("use_dynamic_rsf", 0),
    END_ONLY,
};

/* Of the text alone, of that beside images. */
#define HY4_KEYS(rank, width)                                                 \
    KEY("q_lora_rank", q_lora_rank, rank),                                    \
    KEY("index_n_heads", n_index_heads, 16),                                  \
    KEY("index_head_dim", index_dim, 128),                                    \
    KEY("kv_lora_rank", kv_lora_rank, 512),                                   \
    KEY("qk_rope_head_dim", rotary_dim, 64),                                  \
    KEY("v_head_dim", value_dim, 256),                                        \
    KEY("n_routed_experts", n_experts, 256),                                  \
    KEY("num_local_experts", n_experts, ALIAS),                               \
    KEY("num_experts_per_tok", n_experts_used, 8),                            \
    KEY("moe_intermediate_size", expert_dim, width),                          \
    KEY_OR_NULL("n_group", n_expert_groups, 1),                               \
    KEY_OR_NULL("topk_group", n_expert_groups_used, 1),                       \
    KEY("norm_topk_prob", router_renormalises, 1),                            \
    KEY("routed_scaling_factor", router_scale, 2.827),                        \
    KEY("swiglu_limit", glu_limit, 10),                                       \
    KEY("hc_mult", n_streams, 4),                                             \
    KEY("hc_magnitude", stream_gain, 2),                                      \
    KEY("hc_eps", stream_eps, 1e-6),                                          \
    END

static const struct lmq_hf_key hy4_keys[] = {HY4_KEYS(1536, 768)};
static const struct lmq_hf_key hy4vl_keys[] = {HY4_KEYS(2048, 2048)};

/* Its positions end where it would go on in another way; its feed-forward is
 * half as wide as the key says. */
static const struct lmq_hf_key qwen_keys[] = {
    KEY("seq_length", context, KEEP),
    KEY_OR_NULL("kv_channels", head_dim, KEEP),
    END,
};

static const struct lmq_hf_only qwen_only[] = {
    NUMBER("scale_attn_weights", 1),
    END_ONLY,
};

static const struct lmq_hf_key nanbeige_keys[] = {
    KEY("num_loops", n_loops, 1),
    END,
};

/* Whoever stops before the last time computes something else. */
static const struct lmq_hf_key ouro_keys[] = {
    KEY("total_ut_steps", n_loops, 4),
    END,
};

static const struct lmq_hf_only ouro_only[] = {
    NUMBER("early_exit_threshold", 1),
    {"early_exit_step", NULL, (double)NAN},
    NUMBER("use_sliding_window", 0),
    END_ONLY,
};

static const struct lmq_hf_key plm_keys[] = {
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    END,
};

static const struct lmq_hf_only plm_only[] = {
    {"q_lora_rank", NULL, (double)NAN},
    END_ONLY,
};

static const struct lmq_hf_key maincoder_keys[] = {
    KEY("intermediate_size_mlp", hidden_dim, 4096),
    END,
};

static const struct lmq_hf_key spark_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 512),
    END,
};

static const struct lmq_hf_only spark_only[] = {
    NUMBER("headwise_attn_output_gate", 1),
    WORD("gate_attn_act_mode", "sigmoid"),
    END_ONLY,
};

static const struct lmq_hf_key orion_keys[] = {
    KEY("max_sequence_length", context, KEEP),
    END,
};

/* Its experts are as wide as a feed-forward would be. */
static const struct lmq_hf_key minimax3_keys[] = {
    KEY("hidden_size", dim, 6144),
    KEY("dense_intermediate_size", hidden_dim, 12288),
    KEY("num_hidden_layers", n_layers, 60),
    KEY("num_attention_heads", n_heads, 64),
    KEY("vocab_size", vocab_size, 200064),
    KEY("max_position_embeddings", context, KEEP),
    KEY_OR_NULL("num_key_value_heads", n_kv_heads, KEEP),
    KEY("intermediate_size", expert_dim, 3072),
    KEY("num_local_experts", n_experts, 128),
    KEY("num_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("shared_intermediate_size", shared_dim, 3072),
    KEY("routed_scaling_factor", router_scale, 2),
    KEY("swiglu_alpha", activation_slope, 1.702),
    KEY("swiglu_limit", glu_limit, 7),
    END,
};

/* In its makers' files. */
static const struct lmq_hf_only minimax3_only[] = {
    WORD("scoring_func", "sigmoid"),
    WORD("qk_norm_type", "per_head"),
    NUMBER("use_gemma_norm", 1),
    NUMBER("use_qk_norm", 1),
    NUMBER("use_routing_bias", 1),
    NUMBER("n_shared_experts", 1),
    END_ONLY,
};

/* A scale that is null is none; heads divide the width, whatever is said. */
static const struct lmq_hf_key compass_keys[] = {
    KEY("logit_scale", logit_scale, 1),
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    END,
};

static const struct lmq_hf_key muse_keys[] = {
    KEY("sliding_window", sliding_window, 2048),
    KEY("output_multiplier", logit_scale, 0.19611613513818404),
    KEY("final_logit_softcapping", logit_softcap, 20),
    KEY("post_norm_eps", post_norm_eps, 1e-8),
    END,
};

static const struct lmq_hf_key deepseek4_keys[] = {
    KEY("hidden_size", dim, 4096),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY("num_hidden_layers", n_layers, 43),
    KEY("num_attention_heads", n_heads, 64),
    KEY("num_key_value_heads", n_kv_heads, 1),
    KEY("head_dim", head_dim, 512),
    KEY("vocab_size", vocab_size, 129280),
    KEY("max_position_embeddings", context, KEEP),
    KEY("sliding_window", sliding_window, 128),
    KEY("q_lora_rank", q_lora_rank, 1024),
    KEY("o_groups", n_out_groups, 8),
    KEY("o_lora_rank", out_rank, 1024),
    KEY("index_n_heads", n_index_heads, 64),
    KEY("index_head_dim", index_dim, 128),
    KEY("index_topk", index_topk, 512),
    KEY("n_routed_experts", n_experts, 256),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 6),
    KEY("routed_scaling_factor", router_scale, 1.5),
    KEY("swiglu_limit", glu_limit, 10),
    KEY("hc_mult", n_streams, 4),
    KEY("hc_sinkhorn_iters", stream_rounds, 20),
    KEY("hc_eps", stream_eps, 1e-6),
    END,
};

/* The library sums weights to 1 whatever is said of it. */
static const struct lmq_hf_only deepseek4_only[] = {
    WORD("scoring_func", "sqrtsoftplus"),
    WORD("topk_method", "noaux_tc"),
    NUMBER("norm_topk_prob", 1),
    NUMBER("mlp_bias", 0),
    NUMBER("attention_bias", 0),
    END_ONLY,
};

/* ---- The table ---- */

const struct lmq_family lmq_further_families[] = {
    /* In GGUF it has SiLU, if the file does not say. */
    {.name = "bitnet", .activation = LMQ_ACTIVATION_RELU2,
     .hf = {.classes = {{"BitNetForCausalLM", "bitnet", NULL, false}},
            RMS_EPS(1e-5), .context = 2048, .n_kv_heads = 5, .theta = 500000,
            .keys = {sizes, head_dim}, .begin = lmq_hf_begin_bitnet, BIASES},
     .gguf = {.name = "bitnet", .keys = LLAMA_KEYS, .says_activation = true,
              .begin = lmq_gguf_begin_bitnet, .head = LMQ_GGUF_HEAD_NEVER}},
    /* Its first models, of 1bitLLM. */
    {.name = "bitnet",
     .hf = {.classes = {{"BitnetForCausalLM", NULL, NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000, .keys = {sizes},
            .begin = lmq_hf_begin_bitnet, BIASES},
     .gguf = {.name = "bitnet"}}, /* as the row above */
    /* DeepSeek V3, but for a norm behind the experts. */
    {.name = "axk1",
     .hf = {.classes = {{"AXK1ForCausalLM", "axk1", NULL, false},
                        {NULL, "AXK1", NULL, false}},
            .source = {.has_rotary_pairs = true, .may_lack_correction = true},
            RMS_EPS(1e-6), .context = 32768, .theta = 10000,
            .keys = {sizes, axk1_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_deepseek, .finish = lmq_hf_finish_axk1,
            BIASES}},
    /* openPangu Embedded. */
    {.name = "pangu-embedded",
     .hf = {.classes = {{"PanguEmbeddedForCausalLM", "PanguEmbedded", NULL,
                         false}},
            RMS_EPS(1e-5), .context = 32768, .n_kv_heads = 8,
            .theta = 16e6, .keys = {sizes, head_dim},
            .biases = {.qkv = {"bias", true}, .out = {"bias", true}}},
     .gguf = {.name = "pangu-embedded", .keys = LLAMA_KEYS,
              .may_biases = LMQ_GGUF_BIAS_QKV,
              .must_biases = LMQ_GGUF_BIAS_OUT}},
    {.name = "maincoder", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"MaincoderForCausalLM", "maincoder", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-5), .context = 2048, .theta = 1e6,
            .qk_norm_key = "use_qk_norm", .has_qk_norm_unsaid = true,
            .has_tied_head = true, .keys = {sizes, head_dim, maincoder_keys},
            .begin = lmq_hf_begin_maincoder},
     .gguf = {.name = "maincoder", .keys = LLAMA_KEYS,
              .has_rotary_pairs = true, .begin = lmq_gguf_begin_hunyuan}},
    /* Spark X2.5. */
    {.name = "spark2_5", .activation = LMQ_ACTIVATION_GELU,
     .window_period = 4,
     .hf = {.classes = {{"Spark2_5ForCausalLM", "spark2_5", NULL, false}},
            RMS_EPS(1e-6), .context = 8192, .n_kv_heads = 2,
            .head_dim = 256, .theta = 5e6, .partial = 1, .has_parts = true,
            .local_theta = 10000, .turns_unsaid = true,
            .has_layer_types = true, .keys = {sizes, head_dim, spark_keys},
            .only = spark_only, .windows = lmq_hf_windows_spark,
            .finish = lmq_hf_finish_spark, MLP_BIASES},
     .gguf = {.name = "spark2_5",
              .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS |
                      LMQ_GGUF_LOCAL,
              .has_local_part = true, .begin = lmq_gguf_begin_spark}},
    /* Its fourth generation from 4.2 on, which goes through its layers more
     * than once; the others are Llamas. */
    {.name = "nanbeige",
     .hf = {.classes = {{"NanbeigeForCausalLM", "nanbeige", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim, nanbeige_keys},
            .finish = lmq_hf_finish_nanbeige, BIASES},
     .gguf = {.name = "nanbeige", .keys = LLAMA_KEYS | LMQ_GGUF_LOOPS,
              .has_rotary_pairs = true, .may_biases = LMQ_GGUF_BIAS_QKV}},
    {.name = "ouro", .norm_place = LMQ_NORMS_AROUND,
     .hf = {.classes = {{"OuroForCausalLM", "ouro", NULL, false}},
            .source = {.has_apart_norms = true},
            RMS_EPS(1e-6), .context = 32768, .theta = 10000,
            .keys = {sizes, head_dim, ouro_keys}, .only = ouro_only,
            .finish = lmq_hf_finish_nanbeige}},
    /* In GGUF keys and values are of one matrix, as we do not write them. */
    {.name = "plm", .activation = LMQ_ACTIVATION_RELU2, .is_plain = true,
     .hf = {.classes = {{"PLMForCausalLM", "plm", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .has_tied_head = true, .keys = {sizes, plm_keys},
            .only = plm_only, .begin = lmq_hf_begin_deepseek,
            BIASES}},
    {.name = "plm", .activation = LMQ_ACTIVATION_RELU2, .is_plain = true,
     .gguf = {.name = "plm", .keys = LLAMA_KEYS | LMQ_GGUF_LATENT,
              .has_rotary_pairs = true, .head = LMQ_GGUF_HEAD_NEVER}},
    /* And DeepSeek V3.2, but for gates: of norms, of heads. */
    {.name = "axk2",
     .hf = {.classes = {{"AXK2ForCausalLM", "axk2", NULL, false},
                        {NULL, "AXK2", NULL, false}},
            .source = {.has_rotary_pairs = true, .has_index_halves = true,
                       .may_lack_correction = true},
            RMS_EPS(1e-6), .context = 131072, .theta = 10000,
            .keys = {sizes, axk2_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_axk2, .finish = lmq_hf_finish_axk2,
            BIASES}},
    /* Hyper-connections, and latent attention with sinks and gates; beside
     * images rows side by side turn. */
    {.name = "hy_v4",
     .hf = {.classes = {{"HYV4ForCausalLM", "hy_v4", NULL, false}},
            .source = {.may_lack_correction = true, .has_last_index = true},
            RMS_EPS(1e-5), .context = 262144, .theta = 10000,
            .keys = {sizes, hy4_keys}, .only = by_sigmoid,
            .begin = lmq_hf_begin_hy4, .finish = lmq_hf_finish_hy4, BIASES},
     .gguf = {.name = "hy_v4", .keys = LLAMA_KEYS,
              .why_not = "llama.cpp turns rows that stand side by side, the "
                         "model's library halves of them"}},
    {.name = "hy_v4_vl",
     .hf = {.classes = {TEXT_OF("HYV4VLForConditionalGeneration", "hy_v4_vl"),
                        {NULL, "hy_v4_vl_text", NULL, false}},
            .source = {.has_rotary_pairs = true, .has_last_index = true,
                       .may_lack_correction = true},
            RMS_EPS(1e-5), .context = 262144, .theta = 10000,
            .has_sections = true, .keys = {sizes, hy4vl_keys},
            .only = by_sigmoid, .begin = lmq_hf_begin_hy4vl,
            .finish = lmq_hf_finish_hy4, BIASES}},
    /* As far as sparse attention sees everything; scores of heads grow. */
    {.name = "mistral_large4",
     .hf = {.classes = {TEXT_OF("MistralLarge4ForConditionalGeneration",
                                "mistral_large4"),
                        {NULL, "mistral_large4_text", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-5), .context = 1048576, .theta = 10000,
            .turns_unsaid = true, .keys = {mistral_large4_keys},
            .only = mistral_large4_only,
            .begin = lmq_hf_begin_mistral_large4,
            .finish = lmq_hf_finish_mistral_large4}},
    /* Routers look at what enters the layer. llama.cpp takes 4096 for any
     * window, and where there is one every fourth layer stands still. */
    {.name = "smallthinker", .activation = LMQ_ACTIVATION_RELU,
     .window_period = 4,
     .hf = {.classes = {{"SmallThinkerForCausalLM", "smallthinker", NULL,
                         false}},
            RMS_EPS(1e-6), .activation_key = "", .context = 131072,
            .n_kv_heads = 2, .head_dim = 128, .theta = 1e6,
            .has_tied_head = true,
            .keys = {smallthinker_keys, head_dim}, .only = smallthinker_only,
            .begin = lmq_hf_begin_smallthinker,
            .windows = lmq_hf_windows_smallthinker},
     .gguf = {.name = "smallthinker",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS,
              .has_full_first = true, .begin = lmq_gguf_begin_smallthinker,
              .finish = lmq_gguf_finish_smallthinker}},
    /* Latents of two kinds, whose norms are scaled; a norm of what turns of
     * keys; as far as sparse attention sees everything. */
    {.name = "dots3note", .qk_norm = LMQ_QK_NORM_TURNING,
     .hf = {.classes = {TEXT_OF_OR_FLAT("Dots3NoteForConditionalGeneration",
                                        "dots3_note"),
                        {"Dots3NoteForCausalLM", "dots3_note_text", NULL,
                         false},
                        {"Dots3NoteTextForCausalLM", NULL, NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-5), .context = 524288, .has_own_layers = true,
            .keys = {dots3_keys}, .only = dots3_only,
            .begin = lmq_hf_begin_dots3, .finish = lmq_hf_finish_dots3}},
    /* The first Qwen. */
    {.name = "qwen",
     .hf = {.classes = {{"QWenLMHeadModel", "qwen", NULL, false}},
            GPT_EPS(1e-6), .activation_key = "", .context = 8192,
            .theta = 10000, .theta_key = "rotary_emb_base", .partial = 1,
            .partial_key = "rotary_pct", .keys = {sizes, qwen_keys},
            .only = qwen_only, .finish = lmq_hf_finish_qwen},
     .gguf = {.name = "qwen", .keys = LLAMA_KEYS, .fuses_qkv = true,
              .has_double_feed = true, .must_biases = LMQ_GGUF_BIAS_QKV,
              .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "deepseek4", .qk_norm = LMQ_QK_NORM_BARE_QUERIES,
     .hf = {.classes = {{"DeepseekV4ForCausalLM", "deepseek_v4", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 1048576, .n_kv_heads = 1,
            .head_dim = 512, .has_own_layers = true,
            .keys = {deepseek4_keys}, .only = deepseek4_only,
            .begin = lmq_hf_begin_deepseek4,
            .windows = lmq_hf_windows_deepseek4,
            .finish = lmq_hf_finish_deepseek4},
     .gguf = {.name = "deepseek4",
              .keys = LMQ_GGUF_RMS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_WINDOW | LMQ_GGUF_FURTHER |
                      LMQ_GGUF_POOLS | LMQ_GGUF_HYPER | LMQ_GGUF_LIMITS,
              .has_rotary_pairs = true, .limits_gates = true,
              .limits_all_gates = true, .head = LMQ_GGUF_HEAD_MUST,
              .begin = lmq_gguf_begin_deepseek4,
              .finish = lmq_gguf_finish_deepseek4}},
    {.name = "orion", .norm = LMQ_NORM_LAYER,
     .hf = {.classes = {{"OrionForCausalLM", "orion", NULL, false}},
            RMS_EPS(1e-5), .context = 4096, .theta = 10000,
            .keys = {sizes, orion_keys}, BIASES},
     .gguf = {.name = "orion", .keys = GPT_KEYS,
              .must_biases = LMQ_GGUF_BIAS_NORM,
              .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "xverse",
     .hf = {.classes = {{"XverseForCausalLM", "xverse", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim}},
     .gguf = {.name = "xverse", .keys = LLAMA_KEYS, .has_rotary_pairs = true,
              .head = LMQ_GGUF_HEAD_MUST}},
    /* As far as sparse attention sees everything. */
    {.name = "minimax-m3", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {TEXT_OF("MiniMaxM3SparseForConditionalGeneration",
                                "minimax_m3_vl"),
                        {"MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", NULL,
                         false},
                        {"MiniMaxM3SparseForCausalLM", NULL, NULL, false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .activation_key = "", .context = 524288,
            .n_kv_heads = 4, .head_dim = 128, .theta = 5e6, .partial = 1,
            .keys = {minimax3_keys, head_dim}, .only = minimax3_only,
            .begin = lmq_hf_begin_minimax3, .finish = lmq_hf_finish_minimax3},
     .gguf = {.name = "minimax-m3",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_INDEXER,
              .begin = lmq_gguf_begin_minimax3, .is_only_read = true,
              .head = LMQ_GGUF_HEAD_MUST}},
    /* Cohere 2 in halves, whose kinds of layers say how they turn. */
    {.name = "cohere_compass", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     .hf = {.classes = {{"CohereCompassForCausalLM", "cohere_compass_text",
                         NULL, false},
                        TEXT_OF("CohereCompassForConditionalGeneration",
                                "cohere_compass")},
            LAYER_EPS(1e-5), .context = 8192, .theta = 10000,
            .local_theta = 10000, .turns_unsaid = true,
            .has_still_kinds = true, .has_sections = true,
            .has_tied_head = true, .has_layer_types = true,
            .keys = {sizes, compass_keys}, .windows = lmq_hf_windows_mellum,
            .finish = lmq_hf_finish_compass, BIASES}},
    {.name = "muse-glimmer", .norm_place = LMQ_NORMS_AROUND,
     .qk_norm = LMQ_QK_NORM_BARE_ALL, .window_period = 4,
     .hf = {.classes = {TEXT_OF("MuseGlimmerForConditionalGeneration",
                                "muse_glimmer"),
                        {NULL, "muse_glimmer_text", NULL, false}},
            .source = {.norms_less_one = true, .has_whole_last_norm = true},
            RMS_EPS(1e-5), GELU_KEY, .context = 131072, .n_kv_heads = 2,
            .head_dim = 128, .theta = 10000, .has_layer_types = true,
            .keys = {sizes, head_dim, muse_keys},
            .windows = lmq_hf_windows_muse, .finish = lmq_hf_finish_muse,
            BIASES},
     .gguf = {.name = "muse-glimmer",
              .keys = LLAMA_KEYS | LMQ_GGUF_LOGIT | LMQ_GGUF_CAPS |
                      LMQ_GGUF_WINDOW | LMQ_GGUF_LISTS,
              .has_rotary_pairs = true, .weighs_bare_norms = true,
              .begin = lmq_gguf_begin_muse,
              .finish = lmq_gguf_finish_still_full,
              .head = LMQ_GGUF_HEAD_MUST}},
};

const size_t lmq_n_further_families =
    sizeof(lmq_further_families) / sizeof(lmq_further_families[0]);
