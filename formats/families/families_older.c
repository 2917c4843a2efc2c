/*
 * families_older.c - GPT-2 and what came of it; families.c says what holds for
 * all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/gguf/gguf_special.h"
#include "formats/hf/hf_special.h"

/* ---- Lists of keys of config.json ---- */

/* The library knows each size by two names. */
static const struct lmq_hf_key gpt2_keys[] = {
    KEY("n_embd", dim, 0),
    KEY("hidden_size", dim, ALIAS),
    KEY("n_layer", n_layers, 0),
    KEY("num_hidden_layers", n_layers, ALIAS),
    KEY("n_head", n_heads, 0),
    KEY("num_attention_heads", n_heads, ALIAS),
    KEY("n_positions", context, KEEP),
    KEY("max_position_embeddings", context, ALIAS),
    KEY("n_inner", hidden_dim, 0),
    KEY("vocab_size", vocab_size, 0),
    END,
};

static const struct lmq_hf_key codeshell_keys[] = {
    KEY("num_query_groups", n_kv_heads, 1),
    END,
};

static const struct lmq_hf_only codeshell_only[] = {
    WORD("position_embedding_type", "rope"),
    NUMBER("group_query_attention", 1),
    END_ONLY,
};

static const struct lmq_hf_only jais_only[] = {
    {"alibi_scaling", NULL, (double)NAN},
    NUMBER("scale_attn_by_inverse_layer_idx", 0),
    END_ONLY,
};

static const struct lmq_hf_key starcoder2_keys[] = {
    KEY_OR_NULL("sliding_window", sliding_window, 0),
    END,
};

static const struct lmq_hf_key gptj_keys[] = {
    KEY_OR_NULL("rotary_dim", rotary_dim, 64),
    END,
};

static const struct lmq_hf_key gptneo_keys[] = {
    KEY("hidden_size", dim, 0),
    KEY("num_layers", n_layers, 0),
    KEY("num_hidden_layers", n_layers, ALIAS),
    KEY("num_heads", n_heads, 0),
    KEY("num_attention_heads", n_heads, ALIAS),
    KEY("max_position_embeddings", context, KEEP),
    KEY("intermediate_size", hidden_dim, 0),
    KEY("vocab_size", vocab_size, 0),
    KEY("window_size", sliding_window, 256),
    END,
};

static const struct lmq_hf_key bloom_keys[] = {
    KEY("hidden_size", dim, 0),
    KEY("n_embed", dim, ALIAS),
    KEY("n_layer", n_layers, 0),
    KEY("num_hidden_layers", n_layers, ALIAS),
    KEY("n_head", n_heads, 0),
    KEY("num_attention_heads", n_heads, ALIAS),
    KEY("seq_length", context, KEEP),
    KEY("vocab_size", vocab_size, 0),
    END,
};

static const struct lmq_hf_key mpt_keys[] = {
    KEY("d_model", dim, 0),
    KEY("hidden_size", dim, ALIAS),
    KEY("n_layers", n_layers, 0),
    KEY("num_hidden_layers", n_layers, ALIAS),
    KEY("n_heads", n_heads, 0),
    KEY("num_attention_heads", n_heads, ALIAS),
    KEY("max_seq_len", context, KEEP),
    KEY("vocab_size", vocab_size, 0),
    END,
};

static const struct lmq_hf_key opt_keys[] = {
    KEY("hidden_size", dim, 0),
    KEY("ffn_dim", hidden_dim, 0),
    KEY("num_hidden_layers", n_layers, 0),
    KEY("num_attention_heads", n_heads, 0),
    KEY("vocab_size", vocab_size, 0),
    KEY("max_position_embeddings", context, KEEP),
    END,
};

static const struct lmq_hf_key falcon_keys[] = {
    KEY("hidden_size", dim, 0),
    KEY("n_embed", dim, ALIAS),
    KEY("num_hidden_layers", n_layers, 0),
    KEY("n_layer", n_layers, ALIAS),
    KEY("num_attention_heads", n_heads, 0),
    KEY("n_head", n_heads, ALIAS),
    KEY_OR_NULL("n_head_kv", n_kv_heads, 0),
    KEY("num_kv_heads", n_kv_heads, ALIAS),
    KEY("ffn_hidden_size", hidden_dim, 0),
    KEY("vocab_size", vocab_size, 0),
    KEY("max_position_embeddings", context, KEEP),
    END,
};

/* ---- The table ---- */

const struct lmq_family lmq_older_families[] = {
    {.name = "gpt2", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_LEARNED,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"GPT2LMHeadModel", "gpt2", NULL, false}},
            .source = {.is_transposed = true},
            GPT_EPS(1e-5), .context = 1024,
            .activation_key = "activation_function", .has_tied_head = true,
            .keys = {gpt2_keys}, .begin = lmq_hf_begin_gpt2},
     .gguf = {.name = "gpt2", .keys = LMQ_GGUF_LAYER, .fuses_qkv = true,
              .head = LMQ_GGUF_HEAD_MUST, .must_biases = GPT_BIASES}},
    {.name = "starcoder", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_LEARNED,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"GPTBigCodeForCausalLM", "gpt_bigcode", NULL,
                         false}},
            GPT_EPS(1e-5), .context = 1024,
            .activation_key = "activation_function", .has_tied_head = true,
            .keys = {gpt2_keys}, .begin = lmq_hf_begin_starcoder},
     .gguf = {.name = "starcoder", .keys = LMQ_GGUF_LAYER, .fuses_qkv = true,
              .must_biases = GPT_BIASES}},
    {.name = "codeshell", .norm = LMQ_NORM_LAYER,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"CodeShellForCausalLM", "codeshell", NULL, false},
                        {NULL, "kclgpt", NULL, false}},
            GPT_EPS(1e-5), .context = 8192, .theta = 10000,
            .activation_key = "activation_function", .has_tied_head = true,
            .keys = {gpt2_keys, codeshell_keys}, .only = codeshell_only,
            .begin = lmq_hf_begin_gpt2},
     .gguf = {.name = "codeshell", .keys = GPT_KEYS, .fuses_qkv = true,
              .head = LMQ_GGUF_HEAD_MUST, .must_biases = GPT_BIASES}},
    /* The first generation; its logits are scaled by its head. */
    {.name = "jais", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_ALIBI,
     .hf = {.classes = {{"JAISLMHeadModel", "jais", NULL, false}},
            .source = {.is_transposed = true},
            GPT_EPS(1e-5), .context = 1024, .activation_key = "",
            .has_tied_head = true, .keys = {gpt2_keys}, .only = jais_only,
            .begin = lmq_hf_begin_jais, .finish = lmq_hf_finish_jais},
     .gguf = {.name = "jais", .keys = LMQ_GGUF_LAYER | LMQ_GGUF_ALIBI,
              .fuses_qkv = true, .folds_scales = true,
              .finish = lmq_gguf_finish_jais, .head = LMQ_GGUF_HEAD_MUST,
              .must_biases = GPT_BIASES}},
    {.name = "starcoder2", .norm = LMQ_NORM_LAYER,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"Starcoder2ForCausalLM", "starcoder2", NULL, false}},
            .eps_key = "norm_epsilon", .eps = 1e-5, .context = 4096,
            .n_kv_heads = 2, .theta = 10000, .has_tied_head = true,
            .keys = {sizes, starcoder2_keys}, ALL_BIASES("use_bias", true)},
     .gguf = {.name = "starcoder2", .keys = GPT_KEYS,
              .may_biases = LMQ_GGUF_BIAS_QKV,
              .must_biases = LMQ_GGUF_BIAS_NORM | LMQ_GGUF_BIAS_OUT |
                             LMQ_GGUF_BIAS_FFN}},
    {.name = "gptj", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"GPTJForCausalLM", "gptj", NULL, false}},
            .source = {.has_rotary_pairs = true},
            GPT_EPS(1e-5), .context = 2048, .theta = 10000,
            .activation_key = "activation_function",
            .keys = {gpt2_keys, gptj_keys}, .begin = lmq_hf_begin_gptj,
            .finish = lmq_hf_finish_gptj}},
    {.name = "codegen", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"CodeGenForCausalLM", "codegen", NULL, false}},
            .source = {.has_rotary_pairs = true,
                       .qkv_order = LMQ_QKV_BY_QUARTER},
            GPT_EPS(1e-5), .context = 2048, .theta = 10000,
            .activation_key = "activation_function",
            .keys = {gpt2_keys, gptj_keys}, .begin = lmq_hf_begin_codegen,
            .finish = lmq_hf_finish_gptj}},
    {.name = "gptneo", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_LEARNED,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"GPTNeoForCausalLM", "gpt_neo", NULL, false}},
            GPT_EPS(1e-5), .context = 2048,
            .activation_key = "activation_function", .has_tied_head = true,
            .keys = {gptneo_keys}, .begin = lmq_hf_begin_gptneo,
            .windows = lmq_hf_windows_gptneo}},
    {.name = "mpt", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_ALIBI, .activation = LMQ_ACTIVATION_GELU,
     .is_plain = true,
     .hf = {.classes = {{"MptForCausalLM", "mpt", NULL, false},
                        {"MPTForCausalLM", NULL, NULL, false}},
            GPT_EPS(1e-5), .context = 2048, .activation_key = "",
            .has_tied_head = true, .keys = {mpt_keys},
            .begin = lmq_hf_begin_mpt},
     .gguf = {.name = "mpt",
              .keys = LMQ_GGUF_LAYER | LMQ_GGUF_CLIP | LMQ_GGUF_ALIBI,
              .fuses_qkv = true, .may_biases = GPT_BIASES}},
    {.name = "dbrx", .norm = LMQ_NORM_LAYER,
     .hf = {.classes = {{"DbrxForCausalLM", "dbrx", NULL, false},
                        {"DBRXForCausalLM", NULL, NULL, false}},
            .source = {.has_experts_below = true},
            .eps = 1e-5, .context = 2048, .theta = 10000,
            .activation_key = "", .keys = {mpt_keys},
            .begin = lmq_hf_begin_dbrx, .finish = lmq_hf_finish_dbrx},
     .gguf = {.name = "dbrx",
              .keys = GPT_KEYS | LMQ_GGUF_CLIP | LMQ_GGUF_EXPERTS,
              .fuses_qkv = true, .begin = lmq_gguf_begin_mixture,
              .head = LMQ_GGUF_HEAD_MUST}},
    {.name = "bloom", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_ALIBI,
     .activation = LMQ_ACTIVATION_GELU_TANH, .is_plain = true,
     .hf = {.classes = {{"BloomForCausalLM", "bloom", NULL, false}},
            .source = {.qkv_order = LMQ_QKV_BY_HEAD},
            GPT_EPS(1e-5), .context = 2048, .activation_key = "",
            .has_tied_head = true, .keys = {bloom_keys},
            .begin = lmq_hf_begin_bloom},
     .gguf = {.name = "bloom", .keys = LMQ_GGUF_LAYER, .fuses_qkv = true,
              .finish = lmq_gguf_finish_bloom, .must_biases = GPT_BIASES}},
    {.name = "opt", .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_LEARNED, .activation = LMQ_ACTIVATION_RELU,
     .is_plain = true,
     .hf = {.classes = {{"OPTForCausalLM", "opt", NULL, false}},
            .source = {.n_idle_positions = 2},
            .eps = 1e-5, .context = 2048,
            .activation_key = "activation_function", .has_tied_head = true,
            .keys = {opt_keys}, .begin = lmq_hf_begin_opt,
            ALL_BIASES("enable_bias", true)}},
    {.name = "gptneox", .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL, .activation = LMQ_ACTIVATION_GELU,
     .is_plain = true,
     .hf = {.classes = {{"GPTNeoXForCausalLM", "gpt_neox", NULL, false}},
            .source = {.qkv_order = LMQ_QKV_BY_HEAD},
            LAYER_EPS(1e-5), .context = 2048, .theta = 10000,
            .theta_key = "rotary_emb_base", .partial = 0.25,
            .partial_key = "rotary_pct", .keys = {sizes},
            .begin = lmq_hf_begin_gptneox,
            .biases = {.qkv = {"attention_bias", true},
                       .out = {"attention_bias", true}}},
     .gguf = {.name = "gptneox", .keys = GPT_KEYS, .says_residual = true,
              .fuses_qkv = true, .head = LMQ_GGUF_HEAD_MUST,
              .must_biases = GPT_BIASES}},
    /* Versions of the class differ in its base. */
    {.name = "persimmon", .norm = LMQ_NORM_LAYER,
     .qk_norm = LMQ_QK_NORM_HEAD, .activation = LMQ_ACTIVATION_RELU2,
     .is_plain = true,
     .hf = {.classes = {{"PersimmonForCausalLM", "persimmon", NULL, false}},
            .source = {.qkv_order = LMQ_QKV_BY_HEAD},
            LAYER_EPS(1e-5), .context = 16384, .theta = 10000,
            .theta_differs = true, .partial = 0.5,
            .qk_norm_key = "qk_layernorm", .has_qk_norm_unsaid = true,
            .keys = {sizes}, ALL_BIASES(LMQ_HF_ALWAYS, true)}},
    {.name = "falcon", .norm = LMQ_NORM_LAYER,
     .activation = LMQ_ACTIVATION_GELU, .is_plain = true,
     .hf = {.classes = {{"FalconForCausalLM", "falcon", NULL, false},
                        {"RWForCausalLM", "RefinedWeb", NULL, false},
                        {NULL, "RefinedWebModel", NULL, false}},
            .source = {.qkv_order = LMQ_QKV_BY_HEAD},
            GPT_EPS(1e-5), .context = 2048, .theta = 10000,
            .activation_key = "activation", .has_tied_head = true,
            .keys = {falcon_keys}, .begin = lmq_hf_begin_falcon,
            ALL_BIASES("bias", false)},
     .gguf = {.name = "falcon", .keys = GPT_KEYS, .fuses_qkv = true,
              .finish = lmq_gguf_finish_falcon,
              .must_biases = LMQ_GGUF_BIAS_NORM}},
};

const size_t lmq_n_older_families =
    sizeof(lmq_older_families) / sizeof(lmq_older_families[0]);
