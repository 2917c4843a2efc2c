/*
 * families.c - the table of families.
 *
 * In config.json a family is what each model class of Hugging Face's library
 * computes, in GGUF what llama.cpp does; but where a model's makers use the
 * exact GELU, so do we, though ggml approximates it by tanh. A file of either
 * says less than it seems: much is implied by the family's name, and stands
 * here.
 */
#include "config.h"

#include "formats/families/families.h"

#include <string.h>

#include "formats/families/family_words.h"
#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"

/* ---- Lists of keys of config.json ---- */

static const struct lmq_hf_key llama_keys[] = {
    SIZES(4096, 11008, 32, 32, 32000),
    END,
};

static const struct lmq_hf_key voxtral_keys[] = {
    SIZES(3072, 8192, 30, 32, 131072),
    END,
};

static const struct lmq_hf_key qwen2_keys[] = {
    SIZES(4096, 22016, 32, 32, 151936),
    END,
};

static const struct lmq_hf_key qwen2vl_keys[] = {
    SIZES(8192, 29568, 80, 64, 152064),
    END,
};

static const struct lmq_hf_key mistral_keys[] = {
    SIZES(4096, 14336, 32, 32, 32000),
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

/* The width of dense layers, which there may be none of. */
static const struct lmq_hf_key qwen2moe_keys[] = {
    KEY("intermediate_size", hidden_dim, 5632),
    KEY("num_experts", n_experts, 60),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("moe_intermediate_size", expert_dim, 1408),
    KEY("shared_expert_intermediate_size", shared_dim, 5632),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

/* Versions differ in what they call the number of experts. */
static const struct lmq_hf_key qwen3moe_keys[] = {
    KEY("intermediate_size", hidden_dim, 6144),
    KEY("num_experts", n_experts, 128),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("moe_intermediate_size", expert_dim, 768),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

static const struct lmq_hf_key qwen3vlmoe_keys[] = {
    SIZES(2048, 5632, 24, 16, 151936),
    KEY("num_experts", n_experts, 60),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 4),
    KEY("moe_intermediate_size", expert_dim, 1408),
    END,
};

static const struct lmq_hf_key gemma2_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    KEY_OR_NULL("attn_logit_softcapping", attn_softcap, 50),
    KEY_OR_NULL("final_logit_softcapping", logit_softcap, 30),
    END,
};

static const struct lmq_hf_key gemma3_keys[] = {
    SIZES(2304, 9216, 26, 8, 262208),
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    /* "attn_logit_softcapping" is kept by its class and used by nobody. */
    KEY_OR_NULL("final_logit_softcapping", logit_softcap, 0),
    END,
};

static const struct lmq_hf_key phi3_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    END,
};

static const struct lmq_hf_key olmoe_keys[] = {
    KEY("intermediate_size", expert_dim, 0),
    KEY("num_experts", n_experts, 64),
    KEY("num_local_experts", n_experts, ALIAS),
    KEY("num_experts_per_tok", n_experts_used, 8),
    KEY("norm_topk_prob", router_renormalises, 0),
    END,
};

static const struct lmq_hf_key olmo3_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("sliding_window", sliding_window, 4096),
    END,
};

static const struct lmq_hf_key baichuan_keys[] = {
    KEY("model_max_length", context, ALIAS),
    END,
};

static const struct lmq_hf_key olmo_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY_OR_NULL("clip_qkv", qkv_clip, 0),
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

static const struct lmq_hf_only by_softmax[] = {
    WORD("scoring_func", "softmax"),
    END_ONLY,
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

/* GPT-2 and its like are in families_older.c, those of 2024 and later in
 * families_later.c and families_latest.c, those that remember states in
 * families_recurrent.c, those that are Llamas but for one thing in
 * families_further.c. */
static const struct lmq_family families[] = {
    {.name = "llama",
     .hf = {.classes = {{"LlamaForCausalLM", "llama", NULL, false},
                        {"LLaMAForCausalLM", NULL, NULL, false},
                        TEXT_OF("LlavaForConditionalGeneration", "llava"),
                        TEXT_OF("LlavaNextForConditionalGeneration",
                                "llava_next"),
                        TEXT_OF("VipLlavaForConditionalGeneration",
                                "vipllava"),
                        TEXT_OF("Idefics3ForConditionalGeneration",
                                "idefics3"),
                        TEXT_OF("SmolVLMForConditionalGeneration",
                                "smolvlm")},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim, llama_keys},
            .names = LMQ_NAMES_LLAMA, MLP_BIASES},
     .gguf = {.name = "llama", .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS,
              .has_rotary_pairs = true, .begin = lmq_gguf_begin_mixture,
              .may_biases = LLAMA_BIASES}},
    /* What its text leaves out is as in its own first one. */
    {.name = "llama",
     .hf = {.classes = {TEXT_OF("VoxtralForConditionalGeneration",
                                "voxtral"),
                        {NULL, "llama", NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8,
            .head_dim = 128, .theta = 1e8,
            .keys = {sizes, head_dim, voxtral_keys}, MLP_BIASES}},
    {.name = "mistral",
     .hf = {.classes = {{"MistralForCausalLM", "mistral", NULL, false},
                        TEXT_OF("Mistral3ForConditionalGeneration",
                                "mistral3")},
            RMS_EPS(1e-6), .context = 131072, .n_kv_heads = 8,
            .theta = 10000, .keys = {sizes, mistral_keys},
            .names = LMQ_NAMES_LLAMA},
     .gguf = {.name = "llama"}},
    {.name = "mixtral",
     .hf = {.classes = {{"MixtralForCausalLM", "mixtral", NULL, false}},
            RMS_EPS(1e-5), .context = 131072, .n_kv_heads = 8, .theta = 1e6,
            .keys = {sizes, mixtral_keys}, .finish = lmq_hf_finish_mixtral,
            .names = LMQ_NAMES_MIXTRAL},
     .gguf = {.name = "llama"}},
    {.name = "qwen2",
     .hf = {.classes = {{"Qwen2ForCausalLM", "qwen2", NULL, false},
                        {"MiMoForCausalLM", "mimo", NULL, false},
                        TEXT_OF("InternVLForConditionalGeneration",
                                "internvl"),
                        TEXT_OF("LlavaOnevisionForConditionalGeneration",
                                "llava_onevision")},
            .has_sections = true,
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 32,
            .theta = 10000, .has_layer_types = true,
            .keys = {sizes, head_dim, qwen2_keys},
            .windows = lmq_hf_windows_qwen,
            .names = LMQ_NAMES_LLAMA,
            .biases = {.qkv = {LMQ_HF_ALWAYS, true}},
            .write = lmq_hf_write_qwen},
     .gguf = {.name = "qwen2", .keys = LLAMA_KEYS,
              .must_biases = LMQ_GGUF_BIAS_QKV}},
    {.name = "qwen2moe",
     .hf = {.classes = {{"Qwen2MoeForCausalLM", "qwen2_moe", NULL, false}},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 16,
            .theta = 10000, .keys = {sizes, head_dim, qwen2moe_keys},
            .windows = lmq_hf_windows_qwen_experts,
            .finish = lmq_hf_finish_qwen_experts,
            .names = LMQ_NAMES_LLAMA, .biases = {.qkv = {"qkv_bias", true}},
            .write = lmq_hf_write_qwen_experts},
     .gguf = {.name = "qwen2moe",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM,
              .head = LMQ_GGUF_HEAD_MUST, .must_biases = LMQ_GGUF_BIAS_QKV}},
    {.name = "qwen3", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Qwen3ForCausalLM", "qwen3", NULL, false}},
            .has_sections = true,
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 32,
            .head_dim = 128, .theta = 10000, .has_layer_types = true,
            .keys = {sizes, head_dim, qwen2_keys},
            .windows = lmq_hf_windows_qwen,
            .names = LMQ_NAMES_LLAMA, BIASES, .write = lmq_hf_write_qwen},
     .gguf = {.name = "qwen3", .keys = LLAMA_KEYS}},
    {.name = "qwen3moe", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{"Qwen3MoeForCausalLM", "qwen3_moe", NULL, false}},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 4, .theta = 10000,
            .keys = {sizes, head_dim, qwen3moe_keys},
            .windows = lmq_hf_windows_qwen_experts,
            .finish = lmq_hf_finish_qwen_experts,
            .names = LMQ_NAMES_LLAMA, BIASES,
            .write = lmq_hf_write_qwen_experts},
     .gguf = {.name = "qwen3moe",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM,
              .begin = lmq_gguf_begin_mixture}},
    {.name = "qwen3moe", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{NULL, "qwen3_vl_moe_text", NULL, false},
                        TEXT_OF("Qwen3VLMoeForConditionalGeneration",
                                "qwen3_vl_moe")},
            .source = {.has_turned_experts = true},
            RMS_EPS(1e-6), .context = 128000, .n_kv_heads = 16,
            .theta = 500000, .theta_differs = true, .has_sections = true,
            .keys = {sizes, head_dim, qwen3vlmoe_keys},
            .windows = lmq_hf_windows_qwen_experts,
            .finish = lmq_hf_finish_qwen3vl_experts}},
    {.name = "qwen2",
     .hf = {.classes = {{NULL, "qwen2_vl_text", NULL, false},
                        {NULL, "qwen2_5_vl_text", NULL, false},
                        TEXT_OF_OR_FLAT("Qwen2VLForConditionalGeneration",
                                        "qwen2_vl"),
                        TEXT_OF_OR_FLAT("Qwen2_5_VLForConditionalGeneration",
                                        "qwen2_5_vl")},
            .has_sections = true,
            RMS_EPS(1e-5), .context = 32768, .n_kv_heads = 8, .theta = 1e6,
            .has_layer_types = true,
            .keys = {sizes, head_dim, qwen2vl_keys},
            .windows = lmq_hf_windows_qwen}},
    {.name = "qwen3", .qk_norm = LMQ_QK_NORM_HEAD,
     .hf = {.classes = {{NULL, "qwen3_vl_text", NULL, false},
                        TEXT_OF("Qwen3VLForConditionalGeneration",
                                "qwen3_vl")},
            .has_sections = true,
            RMS_EPS(1e-6), .context = 128000, .n_kv_heads = 32,
            .head_dim = 128, .theta = 500000, .theta_differs = true,
            .has_layer_types = true, .keys = {sizes, head_dim, qwen2_keys},
            .windows = lmq_hf_windows_qwen, BIASES}},
    /* The text of models that see images, as llama.cpp keeps it. */
    {.name = "qwen2",
     .gguf = {.name = "qwen2vl", .keys = LLAMA_KEYS | LMQ_GGUF_SECTIONS,
              .must_biases = LMQ_GGUF_BIAS_QKV}},
    {.name = "qwen3", .qk_norm = LMQ_QK_NORM_HEAD,
     .gguf = {.name = "qwen3vl", .keys = LLAMA_KEYS | LMQ_GGUF_SECTIONS}},
    {.name = "qwen3moe", .qk_norm = LMQ_QK_NORM_HEAD,
     .gguf = {.name = "qwen3vlmoe",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_SECTIONS,
              .begin = lmq_gguf_begin_mixture}},
    {.name = "gemma", .activation = LMQ_ACTIVATION_GELU_TANH,
     .hf = {.classes = {{"GemmaForCausalLM", "gemma", NULL, false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 8192, .n_kv_heads = 16,
            .head_dim = 256, .theta = 10000, .has_tied_head = true,
            .keys = {sizes, head_dim}, .finish = lmq_hf_finish_gemma,
            .names = LMQ_NAMES_LLAMA, BIASES},
     .gguf = {.name = "gemma", .keys = LLAMA_KEYS,
              .finish = lmq_gguf_finish_gemma,
              .head = LMQ_GGUF_HEAD_NEVER}},
    {.name = "gemma2", .norm_place = LMQ_NORMS_AROUND,
     .activation = LMQ_ACTIVATION_GELU_TANH, .window_period = 2,
     .hf = {.classes = {{"Gemma2ForCausalLM", "gemma2", NULL, false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 8192, .n_kv_heads = 4, .head_dim = 256,
            .theta = 10000, GELU_KEY, .has_tied_head = true,
            .has_layer_types = true, .keys = {sizes, head_dim, gemma2_keys},
            .windows = lmq_hf_windows_by_period,
            .finish = lmq_hf_finish_later_gemma,
            .names = LMQ_NAMES_LLAMA, BIASES,
            .write = lmq_hf_write_later_gemma},
     .gguf = {.name = "gemma2",
              .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_CAPS,
              .begin = lmq_gguf_begin_gemma2,
              .finish = lmq_gguf_finish_gemma2,
              .head = LMQ_GGUF_HEAD_NEVER}},
    {.name = "vaultgemma", .activation = LMQ_ACTIVATION_GELU_TANH,
     .window_period = 2,
     .hf = {.classes = {{"VaultGemmaForCausalLM", "vaultgemma", NULL, false}},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 8192, .n_kv_heads = 4, .head_dim = 256,
            .theta = 10000, GELU_KEY, .has_tied_head = true,
            .has_layer_types = true,
            .keys = {sizes, head_dim, gemma2_keys},
            .windows = lmq_hf_windows_by_period,
            .finish = lmq_hf_finish_later_gemma}},
    {.name = "gemma3", .norm_place = LMQ_NORMS_AROUND,
     .qk_norm = LMQ_QK_NORM_HEAD, .activation = LMQ_ACTIVATION_GELU_TANH,
     .window_period = 6,
     .hf = {.classes = {{"Gemma3ForCausalLM", "gemma3_text", NULL, false},
                        TEXT_OF("Gemma3ForConditionalGeneration",
                                "gemma3")},
            .source = {.norms_less_one = true},
            RMS_EPS(1e-6), .context = 131072, .n_kv_heads = 4,
            .head_dim = 256, .theta = 1e6, .local_theta = 10000,
            .local_key = "rope_local_base_freq", GELU_KEY,
            .has_tied_head = true, .has_layer_types = true,
            .keys = {sizes, head_dim, gemma3_keys},
            .windows = lmq_hf_windows_gemma3,
            .finish = lmq_hf_finish_later_gemma,
            .names = LMQ_NAMES_LLAMA, BIASES,
            .write = lmq_hf_write_later_gemma},
     .gguf = {.name = "gemma3",
              .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_LOCAL |
                      LMQ_GGUF_CAPS,
              .begin = lmq_gguf_begin_gemma3,
              .finish = lmq_gguf_finish_gemma3}},
    {.name = "phi2", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM, .qk_norm = LMQ_QK_NORM_HEAD,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"PhiForCausalLM", "phi", NULL, false}},
            LAYER_EPS(1e-5), .context = 2048, .theta = 10000, .partial = 0.5,
            .qk_norm_key = "qk_layernorm", .keys = {sizes, head_dim}},
     .gguf = {.name = "phi2", .keys = GPT_KEYS, .fuses_qkv = true,
              .lacks_qk_norm = true, .head = LMQ_GGUF_HEAD_MUST,
              .must_biases = GPT_BIASES | LMQ_GGUF_BIAS_HEAD}},
    {.name = "phi3",
     .hf = {.classes = {{"Phi3ForCausalLM", "phi3", NULL, false}},
            RMS_EPS(1e-5), .context = 4096, .original_context = 4096,
            .theta = 10000, .partial = 1, .keys = {sizes, phi3_keys}},
     .gguf = {.name = "phi3", .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW,
              .fuses_qkv = true, .fuses_gate_up = true,
              .finish = lmq_gguf_finish_phi3, .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "internlm2",
     .hf = {.classes = {{"InternLM2ForCausalLM", "internlm2", NULL, false}},
            .source = {.qkv_order = LMQ_QKV_BY_HEAD},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000, .keys = {sizes}},
     .gguf = {.name = "internlm2", .keys = LLAMA_KEYS,
              .has_rotary_pairs = true, .head = LMQ_GGUF_HEAD_MUST,
              .may_biases = LMQ_GGUF_BIAS_QKV}},
    {.name = "baichuan",
     .hf = {.classes = {{"BaichuanForCausalLM", "baichuan", NULL, false},
                        {"BaiChuanForCausalLM", NULL, NULL, false}},
            RMS_EPS(1e-6), .context = 4096, .theta = 10000,
            .keys = {sizes, baichuan_keys}, .begin = lmq_hf_begin_baichuan},
     .gguf = {.name = "baichuan", .keys = LLAMA_KEYS,
              .has_rotary_pairs = true, .finish = lmq_gguf_finish_baichuan,
              .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "stablelm", .norm = LMQ_NORM_LAYER, .qk_norm = LMQ_QK_NORM_HEADS,
     .hf = {.classes = {{"StableLmForCausalLM", "stablelm", NULL, false}},
            LAYER_EPS(1e-5), .context = 4096, .n_kv_heads = 32,
            .theta = 10000, .partial = 0.25, .qk_norm_key = "qk_layernorm",
            .keys = {sizes}, .begin = lmq_hf_begin_stablelm,
            .names = LMQ_NAMES_LLAMA,
            .biases = {.qkv = {"use_qkv_bias", false}},
            .write = lmq_hf_write_stablelm},
     .gguf = {.name = "stablelm", .keys = GPT_KEYS,
              .finish = lmq_gguf_finish_stablelm, .head = LMQ_GGUF_HEAD_MUST,
              .may_biases = LMQ_GGUF_BIAS_QKV,
              .must_biases = LMQ_GGUF_BIAS_NORM}},
    {.name = "olmo", .norm = LMQ_NORM_LAYER_PLAIN,
     .hf = {.classes = {{"OlmoForCausalLM", "olmo", NULL, false}},
            .eps = 1e-5, .context = 2048, .theta = 10000,
            .keys = {sizes, olmo_keys}, .names = LMQ_NAMES_LLAMA, BIASES},
     .gguf = {.name = "olmo", .keys = GPT_KEYS | LMQ_GGUF_CLIP,
              .has_rotary_pairs = true}},
    {.name = "olmo2", .norm_place = LMQ_NORMS_AFTER,
     .qk_norm = LMQ_QK_NORM_WHOLE, .window_period = 4,
     .hf = {.classes = {{"Olmo2ForCausalLM", "olmo2", NULL, false}},
            RMS_EPS(1e-5), .context = 2048, .theta = 10000,
            .keys = {sizes, head_dim}, .names = LMQ_NAMES_LLAMA, BIASES},
     .gguf = {.name = "olmo2",
              .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_LOCAL,
              .finish = lmq_gguf_finish_olmo2,
              .head = LMQ_GGUF_HEAD_MUST}},
    /* Only layers without a window scale what they turn by. */
    {.name = "olmo3", .norm_place = LMQ_NORMS_AFTER,
     .qk_norm = LMQ_QK_NORM_WHOLE, .window_period = 4,
     .hf = {.classes = {{"Olmo3ForCausalLM", "olmo3", NULL, false}},
            RMS_EPS(1e-5), .context = 2048, .theta = 500000,
            .theta_differs = true, .local_theta = 500000,
            .has_layer_types = true, .keys = {sizes, olmo3_keys},
            .windows = lmq_hf_windows_by_period,
            .names = LMQ_NAMES_LLAMA, BIASES},
     .gguf = {.name = "olmo2"}},
    {.name = "olmoe", .qk_norm = LMQ_QK_NORM_WHOLE,
     .hf = {.classes = {{"OlmoeForCausalLM", "olmoe", NULL, false}},
            RMS_EPS(1e-5), .context = 4096, .theta = 10000,
            .keys = {sizes, olmoe_keys}, .finish = lmq_hf_finish_olmoe,
            .names = LMQ_NAMES_LLAMA, BIASES},
     .gguf = {.name = "olmoe", .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS,
              .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "granite",
     .hf = {.classes = {{"GraniteForCausalLM", "granite", NULL, false}},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, llama_keys, granite_keys},
            .finish = lmq_hf_finish_granite,
            .names = LMQ_NAMES_LLAMA, MLP_BIASES,
            .write = lmq_hf_write_granite},
     .gguf = {.name = "granite", .keys = LLAMA_KEYS | LMQ_GGUF_SCALES,
              .may_stand_still = true,
              .has_rotary_pairs = true, .may_biases = LLAMA_BIASES}},
    {.name = "cohere", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     .qk_norm = LMQ_QK_NORM_HEADS,
     .hf = {.classes = {{"CohereForCausalLM", "cohere", NULL, false}},
            .source = {.has_rotary_pairs = true},
            LAYER_EPS(1e-5), .context = 8192, .theta = 500000,
            .theta_differs = true, .has_tied_head = true,
            .qk_norm_key = "use_qk_norm",
            .keys = {sizes, cohere_keys}, BIASES},
     .gguf = {.name = "command-r", .keys = GPT_KEYS | LMQ_GGUF_LOGIT,
              .has_rotary_pairs = true, .head = LMQ_GGUF_HEAD_NEVER}},
    {.name = "deepseek2",
     .hf = {.classes = {{"DeepseekV2ForCausalLM", "deepseek_v2", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 2048, .theta = 10000,
            .keys = {sizes, latent_keys, deepseek2_keys},
            .only = by_softmax,
            .begin = lmq_hf_begin_deepseek,
            .finish = lmq_hf_finish_deepseek2, BIASES},
     .gguf = {.name = "deepseek2",
              .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
                      LMQ_GGUF_ROUTER | LMQ_GGUF_LATENT,
              .has_rotary_pairs = true, .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "deepseek2",
     .hf = {.classes = {{"DeepseekV3ForCausalLM", "deepseek_v3", NULL, false},
                        {NULL, "kimi_k2", NULL, false},
                        TEXT_OF("KimiK25ForConditionalGeneration",
                                "kimi_k25"),
                        TEXT_OF("Kimi_K25ForConditionalGeneration", NULL)},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 4096, .theta = 10000,
            .keys = {sizes, latent_keys, deepseek3_keys},
            .only = by_sigmoid,
            .begin = lmq_hf_begin_deepseek,
            .finish = lmq_hf_finish_deepseek3, BIASES}},
    {.name = "youtu",
     .hf = {.classes = {{"YoutuForCausalLM", "youtu", NULL, false}},
            .source = {.has_rotary_pairs = true},
            RMS_EPS(1e-6), .context = 131072, .theta = 10000,
            .has_tied_head = true, .keys = {sizes, latent_keys},
            .only = by_sigmoid,
            .begin = lmq_hf_begin_deepseek,
            .finish = lmq_hf_finish_deepseek3, BIASES},
     .gguf = {.name = "deepseek2"}},
    {.name = "smollm3",
     .hf = {.classes = {{"SmolLM3ForCausalLM", "smollm3", NULL, false}},
            RMS_EPS(1e-6), .context = 32768, .n_kv_heads = 4, .theta = 2e6,
            .has_tied_head = true, .has_layer_types = true,
            .keys = {sizes, head_dim}, .windows = lmq_hf_windows_smollm3,
            .names = LMQ_NAMES_LLAMA, MLP_BIASES,
            .write = lmq_hf_write_smollm3},
     .gguf = {.name = "smollm3", .keys = LLAMA_KEYS,
              .has_rotary_pairs = true, .finish = lmq_gguf_finish_smollm3}},
};

static const size_t n_families = sizeof(families) / sizeof(families[0]);

static const struct {
    const struct lmq_family *rows;
    const size_t *n;
} tables[] = {
    {families, &n_families},
    {lmq_older_families, &lmq_n_older_families},
    {lmq_later_families, &lmq_n_later_families},
    {lmq_latest_families, &lmq_n_latest_families},
    {lmq_recurrent_families, &lmq_n_recurrent_families},
    {lmq_further_families, &lmq_n_further_families},
    {lmq_uneven_families, &lmq_n_uneven_families},
};

/* ---- Finding a row ---- */

static bool
is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Number i of all tables; NULL past the last one. */
static const struct lmq_family *
family_at(size_t i)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        if (i < *tables[t].n)
            return &tables[t].rows[i];
        i -= *tables[t].n;
    }
    return NULL;
}

/* Of several senses, whose text is of whatever family they say. */
static const struct lmq_hf_class of_any_family[] = {
    TEXT_OF("AyaVisionForConditionalGeneration", "aya_vision"),
    TEXT_OF("Cohere2VisionForConditionalGeneration", "cohere2_vision"),
    TEXT_OF("GotOcr2ForConditionalGeneration", "got_ocr2"),
    TEXT_OF("Idefics2ForConditionalGeneration", "idefics2"),
    TEXT_OF("Lfm2VlForConditionalGeneration", "lfm2_vl"),
    TEXT_OF("Lfm3VlForConditionalGeneration", "lfm3_vl"),
    TEXT_OF("LlavaNextVideoForConditionalGeneration", "llava_next_video"),
    TEXT_OF("Qwen2AudioForConditionalGeneration", "qwen2_audio"),
    TEXT_OF("Qwen3ASRForConditionalGeneration", "qwen3_asr"),
};

static bool
is_class(const struct lmq_hf_class *class, const char *class_name,
         const char *model_type)
{
    return class_name != NULL ? is_same(class_name, class->name)
                              : is_same(model_type, class->type);
}

const struct lmq_family *
lmq_family_of_class(const char *class_name, const char *model_type,
                    const struct lmq_hf_class **class)
{
    const struct lmq_family *family;

    for (size_t i = 0;
         (family = family_at(i / LMQ_HF_MOST_CLASSES)) != NULL; i++) {
        *class = &family->hf.classes[i % LMQ_HF_MOST_CLASSES];
        if (is_class(*class, class_name, model_type))
            return family;
    }
    *class = NULL;
    for (size_t i = 0; i < sizeof(of_any_family) / sizeof(*of_any_family); i++)
        if (is_class(&of_any_family[i], class_name, model_type))
            *class = &of_any_family[i];
    return NULL;
}

const struct lmq_family *
lmq_family_of_text(const struct lmq_family *family, const char *type)
{
    const struct lmq_hf_class *class;

    for (size_t i = 0; family != NULL && i < LMQ_HF_MOST_CLASSES; i++) {
        class = &family->hf.classes[i];
        if (class->nested == NULL && is_same(type, class->type))
            return family;
    }
    family = lmq_family_of_class(NULL, type, &class);
    return family != NULL && class->nested == NULL ? family : NULL;
}

const struct lmq_family *
lmq_family_of_gguf(const char *name, size_t size)
{
    const struct lmq_family *family;

    for (size_t i = 0; (family = family_at(i)) != NULL; i++)
        if (family->gguf.name != NULL && strlen(family->gguf.name) == size &&
            memcmp(family->gguf.name, name, size) == 0)
            return family;
    return NULL;
}

const struct lmq_family *
lmq_family_find(const char *architecture)
{
    const struct lmq_family *family;

    for (size_t i = 0; (family = family_at(i)) != NULL; i++)
        if (is_same(architecture, family->name))
            return family;
    return NULL;
}

const struct lmq_hf_bias *
lmq_family_bias(const struct lmq_family *family, enum lmq_role role)
{
    static const struct lmq_hf_bias none = {NULL, false};
    const struct lmq_hf_biases *keys = &family->hf.biases;

    switch ((int)role) {
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_K:
    case LMQ_ROLE_ATTN_V:
    case LMQ_ROLE_ATTN_Q_A:
    case LMQ_ROLE_ATTN_KV_A:
        return &keys->qkv;
    case LMQ_ROLE_ATTN_OUT:
        return &keys->out;
    case LMQ_ROLE_FFN_GATE:
    case LMQ_ROLE_FFN_UP:
    case LMQ_ROLE_FFN_DOWN:
        return &keys->mlp;
    case LMQ_ROLE_HEAD:
        return &keys->head;
    }
    return &none;
}
