/*
 * hf_families.c - what each model class of Hugging Face's library computes,
 * and what its keys are called.
 *
 * A family is a row of the table at the end: what is the same in all its
 * models stands there, what a key says in a list of keys, and a small function
 * in hf_special.c does what neither can.
 */
#include "config.h"

#include "formats/hf_families.h"

#include <string.h>

#include "formats/hparams_fields.h"

#define KEEP LMQ_HF_KEEP
#define KEY(name, field, absent) {name, LMQ_FIELD(field), absent, false}
#define KEY_OR_NULL(name, field, absent) {name, LMQ_FIELD(field), absent, true}
#define END {NULL, 0, 0, false}

/* ---- Lists of keys ---- */

static const struct lmq_hf_key sizes[] = {
    KEY("hidden_size", dim, 0),
    KEY("intermediate_size", hidden_dim, 0),
    KEY("num_hidden_layers", n_layers, 0),
    KEY("num_attention_heads", n_heads, 0),
    KEY("vocab_size", vocab_size, 0),
    KEY("max_position_embeddings", context, KEEP),
    KEY_OR_NULL("num_key_value_heads", n_kv_heads, KEEP),
    END,
};

static const struct lmq_hf_key head_dim[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    END,
};

static const struct lmq_hf_key mistral_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    END,
};

/* Its feed-forwards are its experts. */
static const struct lmq_hf_key mixtral_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    KEY("intermediate_size", expert_dim, 0),
    KEY("num_local_experts", n_experts, 8),
    KEY("num_experts_per_tok", n_experts_used, 2),
    END,
};

static const struct lmq_hf_key qwen2moe_keys[] = {
    KEY("num_experts", n_experts, 60),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("moe_intermediate_size", expert_dim, 1408),
    KEY("shared_expert_intermediate_size", shared_dim, 5632),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

/* Versions differ in what they call the number of experts. */
static const struct lmq_hf_key qwen3moe_keys[] = {
    KEY("num_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, KEEP),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 768),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

static const struct lmq_hf_key gemma2_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    KEY_OR_NULL("attn_logit_softcapping", attn_softcap, 50),
    KEY_OR_NULL("final_logit_softcapping", logit_softcap, 30),
    END,
};

/* Published configurations that hold a vision model too leave out what equals
 * the class's defaults. */
static const struct lmq_hf_key gemma3_keys[] = {
    KEY("hidden_size", dim, 2304),
    KEY("intermediate_size", hidden_dim, 9216),
    KEY("num_hidden_layers", n_layers, 26),
    KEY("num_attention_heads", n_heads, 8),
    KEY("vocab_size", vocab_size, 262208),
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    KEY_OR_NULL("attn_logit_softcapping", attn_softcap, 0),
    KEY_OR_NULL("final_logit_softcapping", logit_softcap, 0),
    END,
};

static const struct lmq_hf_key phi3_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    END,
};

/* The library knows each size by two names. */
static const struct lmq_hf_key gpt2_keys[] = {
    KEY("n_embd", dim, 0),
    KEY("hidden_size", dim, KEEP),
    KEY("n_layer", n_layers, 0),
    KEY("num_hidden_layers", n_layers, KEEP),
    KEY("n_head", n_heads, 0),
    KEY("num_attention_heads", n_heads, KEEP),
    KEY("n_positions", context, KEEP),
    KEY("max_position_embeddings", context, KEEP),
    KEY("n_inner", hidden_dim, 0),
    KEY("vocab_size", vocab_size, 0),
    END,
};

static const struct lmq_hf_key falcon_keys[] = {
    KEY("hidden_size", dim, 0),
    KEY("n_embed", dim, KEEP),
    KEY("num_hidden_layers", n_layers, 0),
    KEY("n_layer", n_layers, KEEP),
    KEY("num_attention_heads", n_heads, 0),
    KEY("n_head", n_heads, KEEP),
    KEY_OR_NULL("n_head_kv", n_kv_heads, 0),
    KEY("num_kv_heads", n_kv_heads, KEEP),
    KEY("ffn_hidden_size", hidden_dim, 0),
    KEY("vocab_size", vocab_size, 0),
    KEY("max_position_embeddings", context, KEEP),
    END,
};

static const struct lmq_hf_key olmo_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("clip_qkv", qkv_clip, 0),
    END,
};

static const struct lmq_hf_key granite_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY("embedding_multiplier", embedding_scale, 1),
    KEY("residual_multiplier", residual_scale, 1),
    KEY("attention_multiplier", attn_scale, 1),
    END,
};

static const struct lmq_hf_key cohere_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY("logit_scale", logit_scale, 0.0625),
    END,
};

static const struct lmq_hf_key latent_keys[] = {
    KEY_OR_NULL("q_lora_rank", q_lora_rank, 1536),
    KEY("kv_lora_rank", kv_lora_rank, 512),
    KEY("qk_rope_head_dim", rotary_dim, 64),
    KEY("v_head_dim", value_dim, 128),
    END,
};

static const struct lmq_hf_key deepseek2_keys[] = {
    KEY_OR_NULL("n_routed_experts", n_experts, 64),
    KEY_OR_NULL("num_experts_per_tok", n_experts_used, 0),
    KEY("moe_intermediate_size", expert_dim, 1407),
    KEY_OR_NULL("n_group", n_expert_groups, 0),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 0),
    KEY("norm_topk_prob", router_renormalises, 0),
    KEY("routed_scaling_factor", router_scale, 1),
    END,
};

static const struct lmq_hf_key deepseek3_keys[] = {
    KEY_OR_NULL("n_routed_experts", n_experts, 256),
    KEY_OR_NULL("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 2048),
    KEY_OR_NULL("n_group", n_expert_groups, 8),
    KEY_OR_NULL("topk_group", n_expert_groups_used, 4),
    KEY("norm_topk_prob", router_renormalises, 1),
    KEY("routed_scaling_factor", router_scale, 2.5),
    END,
};

/* ---- The table ---- */

#define RMS_EPS(value) .eps_key = "rms_norm_eps", .eps = (value)
#define LAYER_EPS(value) .eps_key = "layer_norm_eps", .eps = (value)
#define GPT_EPS(value) .eps_key = "layer_norm_epsilon", .eps = (value)

static const struct lmq_hf_family families[] = {
    {.name = "llama",
     .classes = {"LlamaForCausalLM"}, .types = {"llama"},
     RMS_EPS(1e-6), .context = 2048, .theta = 10000,
     .keys = {sizes, head_dim}},
    {.name = "mistral",
     .classes = {"MistralForCausalLM"}, .types = {"mistral"},
     RMS_EPS(1e-6), .context = 131072, .n_kv_heads = 8, .theta = 10000,
     .keys = {sizes, mistral_keys}},
    {.name = "mixtral",
     .classes = {"MixtralForCausalLM"}, .types = {"mixtral"},
     RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8, .theta = 1e6,
     .keys = {sizes, mixtral_keys}, .finish = lmq_hf_finish_mixtral},
    {.name = "qwen2",
     .classes = {"Qwen2ForCausalLM"}, .types = {"qwen2"},
     RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 32, .theta = 10000,
     .has_layer_types = true,
     .keys = {sizes, head_dim}, .windows = lmq_hf_windows_qwen},
    {.name = "qwen2moe",
     .classes = {"Qwen2MoeForCausalLM"}, .types = {"qwen2_moe"},
     RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 16, .theta = 10000,
     .keys = {sizes, head_dim, qwen2moe_keys},
     .windows = lmq_hf_windows_qwen_experts,
     .finish = lmq_hf_finish_qwen_experts},
    {.name = "qwen3",
     .classes = {"Qwen3ForCausalLM"}, .types = {"qwen3"},
     RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 32, .head_dim = 128,
     .theta = 10000, .qk_norm = LMQ_QK_NORM_HEAD, .has_layer_types = true,
     .keys = {sizes, head_dim}, .windows = lmq_hf_windows_qwen},
    {.name = "qwen3moe",
     .classes = {"Qwen3MoeForCausalLM"}, .types = {"qwen3_moe"},
     RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 4, .theta = 10000,
     .qk_norm = LMQ_QK_NORM_HEAD,
     .keys = {sizes, head_dim, qwen3moe_keys},
     .windows = lmq_hf_windows_qwen_experts,
     .finish = lmq_hf_finish_qwen_experts},
    {.name = "gemma",
     .classes = {"GemmaForCausalLM"}, .types = {"gemma"},
     RMS_EPS(1e-6), .context = 8192, .n_kv_heads = 16, .head_dim = 256,
     .theta = 10000, .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh", .has_tied_head = true,
     .source = {.norms_less_one = true},
     .keys = {sizes, head_dim}, .finish = lmq_hf_finish_gemma},
    {.name = "gemma2",
     .classes = {"Gemma2ForCausalLM"}, .types = {"gemma2"},
     .norm_place = LMQ_NORMS_AROUND,
     RMS_EPS(1e-6), .context = 8192, .n_kv_heads = 4, .head_dim = 256,
     .theta = 10000, .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh", .has_tied_head = true,
     .has_layer_types = true, .source = {.norms_less_one = true},
     .keys = {sizes, head_dim, gemma2_keys},
     .windows = lmq_hf_windows_gemma2, .finish = lmq_hf_finish_later_gemma},
#define GEMMA3                                                                \
    .name = "gemma3", .norm_place = LMQ_NORMS_AROUND, RMS_EPS(1e-6),          \
    .context = 131072, .n_kv_heads = 4, .head_dim = 256, .theta = 1e6,        \
    .local_theta = 10000, .qk_norm = LMQ_QK_NORM_HEAD,                        \
    .activation_key = "hidden_activation",                                    \
    .activation = "gelu_pytorch_tanh", .has_tied_head = true,                 \
    .has_layer_types = true, .source = {.norms_less_one = true},              \
    .keys = {sizes, head_dim, gemma3_keys},                                   \
    .windows = lmq_hf_windows_gemma3, .finish = lmq_hf_finish_later_gemma
    {GEMMA3, .classes = {"Gemma3ForCausalLM"}, .types = {"gemma3_text"}},
    {GEMMA3, .classes = {"Gemma3ForConditionalGeneration"},
     .types = {"gemma3"}, .nested = "text_config"},
    {.name = "phi2",
     .classes = {"PhiForCausalLM"}, .types = {"phi"},
     .norm = LMQ_NORM_LAYER, .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     LAYER_EPS(1e-5), .context = 2048, .theta = 10000, .partial = 0.5,
     .activation = "gelu_new", .is_plain = true,
     .keys = {sizes, head_dim}, .begin = lmq_hf_begin_phi2},
    {.name = "phi3",
     .classes = {"Phi3ForCausalLM"}, .types = {"phi3"},
     RMS_EPS(1e-5), .context = 4096, .original_context = 4096,
     .theta = 10000, .partial = 1,
     .keys = {sizes, phi3_keys}},
    {.name = "gpt2",
     .classes = {"GPT2LMHeadModel"}, .types = {"gpt2"},
     .norm = LMQ_NORM_LAYER, .positions = LMQ_POSITIONS_LEARNED,
     GPT_EPS(1e-5), .context = 1024, .is_plain = true,
     .activation_key = "activation_function", .activation = "gelu_new",
     .has_tied_head = true, .source = {.is_transposed = true},
     .keys = {gpt2_keys}, .begin = lmq_hf_begin_gpt2},
    {.name = "gptneox",
     .classes = {"GPTNeoXForCausalLM"}, .types = {"gpt_neox"},
     .norm = LMQ_NORM_LAYER, .residual = LMQ_RESIDUAL_PARALLEL,
     LAYER_EPS(1e-5), .context = 2048, .is_plain = true,
     .theta = 10000, .theta_key = "rotary_emb_base",
     .partial = 0.25, .partial_key = "rotary_pct", .activation = "gelu",
     .source = {.is_qkv_by_head = true},
     .keys = {sizes}, .begin = lmq_hf_begin_gptneox},
    {.name = "falcon",
     .classes = {"FalconForCausalLM", "RWForCausalLM"},
     .types = {"falcon", "RefinedWeb", "RefinedWebModel"},
     .norm = LMQ_NORM_LAYER, GPT_EPS(1e-5), .context = 2048, .theta = 10000,
     .activation_key = "activation", .activation = "gelu", .is_plain = true,
     .has_tied_head = true, .source = {.is_qkv_by_head = true},
     .keys = {falcon_keys}, .begin = lmq_hf_begin_falcon},
    {.name = "stablelm",
     .classes = {"StableLmForCausalLM"}, .types = {"stablelm"},
     .norm = LMQ_NORM_LAYER, LAYER_EPS(1e-5), .context = 4096,
     .n_kv_heads = 32, .theta = 10000, .partial = 0.25,
     .keys = {sizes}, .begin = lmq_hf_begin_stablelm},
    {.name = "olmo",
     .classes = {"OlmoForCausalLM"}, .types = {"olmo"},
     .norm = LMQ_NORM_LAYER_PLAIN, .eps = 1e-5, .context = 2048,
     .theta = 10000,
     .keys = {sizes, olmo_keys}},
    {.name = "olmo2",
     .classes = {"Olmo2ForCausalLM"}, .types = {"olmo2"},
     .norm_place = LMQ_NORMS_AFTER, .qk_norm = LMQ_QK_NORM_WHOLE,
     RMS_EPS(1e-5), .context = 2048, .theta = 10000,
     .keys = {sizes, head_dim}},
    {.name = "granite",
     .classes = {"GraniteForCausalLM"}, .types = {"granite"},
     RMS_EPS(1e-6), .context = 2048, .theta = 10000,
     .keys = {sizes, granite_keys}, .finish = lmq_hf_finish_granite},
    {.name = "cohere",
     .classes = {"CohereForCausalLM"}, .types = {"cohere"},
     .norm = LMQ_NORM_LAYER, .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     LAYER_EPS(1e-5), .context = 8192, .theta = 500000,
     .has_tied_head = true, .source = {.has_rotary_pairs = true},
     .keys = {sizes, cohere_keys}, .begin = lmq_hf_begin_cohere},
    {.name = "deepseek2",
     .classes = {"DeepseekV2ForCausalLM"}, .types = {"deepseek_v2"},
     RMS_EPS(1e-6), .context = 2048, .theta = 10000,
     .source = {.has_rotary_pairs = true},
     .keys = {sizes, latent_keys, deepseek2_keys},
     .begin = lmq_hf_begin_deepseek, .finish = lmq_hf_finish_deepseek2},
    {.name = "deepseek2",
     .classes = {"DeepseekV3ForCausalLM"}, .types = {"deepseek_v3"},
     RMS_EPS(1e-6), .context = 4096, .theta = 10000,
     .source = {.has_rotary_pairs = true},
     .keys = {sizes, latent_keys, deepseek3_keys},
     .begin = lmq_hf_begin_deepseek, .finish = lmq_hf_finish_deepseek3},
    {.name = "smollm3",
     .classes = {"SmolLM3ForCausalLM"}, .types = {"smollm3"},
     RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 4, .theta = 2e6,
     .has_tied_head = true, .has_layer_types = true,
     .keys = {sizes, head_dim}, .windows = lmq_hf_windows_smollm3},
};

static bool
is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] != NULL && strcmp(name, names[i]) == 0)
            return true;
    return false;
}

const struct lmq_hf_family *
lmq_hf_family(const char *class_name, const char *model_type)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        const struct lmq_hf_family *family = &families[i];
        if (class_name != NULL ? is_among(class_name, family->classes, 2)
                               : model_type != NULL &&
                                     is_among(model_type, family->types, 3))
            return family;
    }
    return NULL;
}
