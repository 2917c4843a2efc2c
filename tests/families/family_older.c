/*
 * family_older.c - families of 2021 to 2023: StarCoder 2, GPT-J, MPT, BLOOM,
 * OPT, InternLM 2, Baichuan, OLMoE.
 */
#include "config.h"

#include "tests/families/family.h"

#define LAYER(part) offsetof(struct oracle_layer, part)
#define MODEL(part) offsetof(struct oracle_model, part)
#define MLP(part) offsetof(struct oracle_mlp, part)

#define TOKEN_KEYS                                                            \
    "'vocab_size': $vocab, 'bos_token_id': 1, 'eos_token_id': 2, "            \
    "'initializer_range': 0.02, 'use_cache': true, "

#define SIZE_KEYS                                                             \
    "'hidden_size': $dim, 'num_hidden_layers': $layers, "                     \
    "'num_attention_heads': $heads, " TOKEN_KEYS

#define PLAIN_BITS (HAS_ATTN_NORM | HAS_FFN_NORM)
#define BIASED_BITS                                                           \
    (PLAIN_BITS | HAS_NORM_BIAS | HAS_QKV_BIAS | HAS_OUT_BIAS | HAS_MLP_BIAS)

#define ALIBI .positions = ORACLE_ALIBI

/* ---- Names ---- */

static const struct stored starcoder2_mlp[] = {
    {AS_LINEAR, "model.layers.#.mlp.c_fc", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored gptj_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored jais_layer[] = {
    {AS_LINEAR, "transformer.h.#.mlp.c_fc2", LAYER(mlp.gate)},
    {AS_END, NULL, 0},
};

static const struct stored jais_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_STRAY, "transformer.relative_pe.slopes", 0},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

/* What is tied was saved by the head's name. */
static const struct stored codeshell_frame[] = {
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_EMBEDDING, "lm_head", MODEL(embedding)},
    {AS_END, NULL, 0},
};

static const struct stored gptj_layer[] = {
    {AS_NORM, "transformer.h.#.ln_1", LAYER(attn_norm)},
    {AS_MASK, "transformer.h.#.attn.bias", 0},
    {AS_LINEAR, "transformer.h.#.attn.q_proj", LAYER(q)},
    {AS_LINEAR, "transformer.h.#.attn.k_proj", LAYER(k)},
    {AS_LINEAR, "transformer.h.#.attn.v_proj", LAYER(v)},
    {AS_LINEAR, "transformer.h.#.attn.out_proj", LAYER(o)},
    {AS_LINEAR, "transformer.h.#.mlp.fc_in", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.fc_out", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored codegen_layer[] = {
    {AS_NORM, "transformer.h.#.ln_1", LAYER(attn_norm)},
    {AS_MASK, "transformer.h.#.attn.causal_mask", 0},
    {AS_QKV_BY_QUARTER, "transformer.h.#.attn.qkv_proj", 0},
    {AS_LINEAR, "transformer.h.#.attn.out_proj", LAYER(o)},
    {AS_LINEAR, "transformer.h.#.mlp.fc_in", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.fc_out", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored persimmon_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.final_layernorm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored persimmon_layer[] = {
    {AS_QKV_BY_HEAD, "model.layers.#.self_attn.query_key_value", 0},
    {AS_NORM, "model.layers.#.self_attn.q_layernorm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.self_attn.k_layernorm", LAYER(k_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.dense", LAYER(o)},
    {AS_LINEAR, "model.layers.#.mlp.dense_h_to_4h", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.mlp.dense_4h_to_h", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored mpt_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_NORM, "transformer.norm_f", MODEL(norm)},
    {AS_END, NULL, 0},
};

static const struct stored mpt_layer[] = {
    {AS_NORM, "transformer.blocks.#.norm_1", LAYER(attn_norm)},
    {AS_QKV, "transformer.blocks.#.attn.Wqkv", 0},
    {AS_LINEAR, "transformer.blocks.#.attn.out_proj", LAYER(o)},
    {AS_NORM, "transformer.blocks.#.norm_2", LAYER(ffn_norm)},
    {AS_LINEAR, "transformer.blocks.#.ffn.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.blocks.#.ffn.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored bloom_frame[] = {
    {AS_EMBEDDING, "transformer.word_embeddings", MODEL(embedding)},
    {AS_NORM, "transformer.word_embeddings_layernorm", MODEL(embedding_norm)},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored opt_frame[] = {
    {AS_EMBEDDING, "model.decoder.embed_tokens", MODEL(embedding)},
    {AS_LATE_TABLE, "model.decoder.embed_positions", MODEL(table)},
    {AS_NORM, "model.decoder.final_layer_norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored opt_layer[] = {
    {AS_NORM, "model.decoder.layers.#.self_attn_layer_norm",
     LAYER(attn_norm)},
    {AS_LINEAR, "model.decoder.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.decoder.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.decoder.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.decoder.layers.#.self_attn.out_proj", LAYER(o)},
    {AS_NORM, "model.decoder.layers.#.final_layer_norm", LAYER(ffn_norm)},
    {AS_LINEAR, "model.decoder.layers.#.fc1", LAYER(mlp.up)},
    {AS_LINEAR, "model.decoder.layers.#.fc2", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored internlm2_frame[] = {
    {AS_EMBEDDING, "model.tok_embeddings", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "output", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored internlm2_layer[] = {
    {AS_NORM, "model.layers.#.attention_norm", LAYER(attn_norm)},
    {AS_QKV_BY_HEAD, "model.layers.#.attention.wqkv", 0},
    {AS_LINEAR, "model.layers.#.attention.wo", LAYER(o)},
    {AS_NORM, "model.layers.#.ffn_norm", LAYER(ffn_norm)},
    {AS_LINEAR, "model.layers.#.feed_forward.w1", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.w2", LAYER(mlp.down)},
    {AS_LINEAR, "model.layers.#.feed_forward.w3", LAYER(mlp.up)},
    {AS_END, NULL, 0},
};

static const struct stored baichuan_layer[] = {
    {AS_QKV, "model.layers.#.self_attn.W_pack", 0},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_END, NULL, 0},
};

static const struct stored dbrx_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_NORM, "transformer.norm_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored dbrx_layer[] = {
    {AS_NORM, "transformer.blocks.#.norm_attn_norm.norm_1", LAYER(attn_norm)},
    {AS_QKV, "transformer.blocks.#.norm_attn_norm.attn.Wqkv", 0},
    {AS_LINEAR, "transformer.blocks.#.norm_attn_norm.attn.out_proj",
     LAYER(o)},
    {AS_NORM, "transformer.blocks.#.norm_attn_norm.norm_2", LAYER(ffn_norm)},
    {AS_LINEAR, "transformer.blocks.#.ffn.router.layer", LAYER(router)},
    {AS_EXPERTS_BELOW, "transformer.blocks.#.ffn.experts.mlp.w1",
     MLP(gate)},
    {AS_EXPERTS_BELOW, "transformer.blocks.#.ffn.experts.mlp.v1", MLP(up)},
    {AS_EXPERTS_TURNED, "transformer.blocks.#.ffn.experts.mlp.w2",
     MLP(down)},
    {AS_END, NULL, 0},
};

/* ---- Families ---- */

#define DBRX_KEYS                                                             \
    "{'architectures': ['DbrxForCausalLM'], 'd_model': $dim, "                \
    "'emb_pdrop': 0.0, 'ffn_config': {'ffn_hidden_size': $expert_dim, "       \
    "'moe_jitter_eps': 0.01, 'moe_loss_weight': 0.05, "                       \
    "'moe_num_experts': $experts, 'moe_top_k': $used}, "                      \
    "'max_seq_len': $positions, 'model_type': 'dbrx', 'n_heads': $heads, "    \
    "'n_layers': $layers, 'resid_pdrop': 0.0, 'tie_word_embeddings': "        \
    "false, 'vocab_size': $vocab, "

#define DBRX_SHAPE                                                            \
    .dim = 60, .layers = 3, .heads = 6, .kv_heads = 2, .head_dim = 10,        \
    .vocab = 61, .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,      \
    .activation = oracle_silu, .clip = 1.25, .theta = 500000,                 \
    .sparse = "1", .n_experts = 5, .n_used = 2, .renormalises = true

#define STARCODER2_KEYS                                                       \
    "{'architectures': ['Starcoder2ForCausalLM'], "                           \
    "'attention_dropout': 0.1, 'hidden_act': 'gelu_pytorch_tanh', "           \
    "'intermediate_size': $hidden, "                                          \
    "'max_position_embeddings': $positions, 'mlp_type': 'default', "          \
    "'model_type': 'starcoder2', 'norm_epsilon': 1e-05, "                     \
    "'norm_type': 'layer_norm', 'num_key_value_heads': $kv_heads, "           \
    "'rope_theta': 100000, " SIZE_KEYS "'use_bias': true"

#define STARCODER2_SHAPE                                                      \
    .dim = 56, .hidden = 92, .layers = 3, .heads = 4, .kv_heads = 2,          \
    .head_dim = 14, .vocab = 61, .max_positions = 64, .eps = 1e-5,            \
    .norm = ORACLE_LAYER, .activation = oracle_gelu_tanh, .theta = 100000

#define MPT_KEYS                                                              \
    "{'architectures': ['MPTForCausalLM'], 'attn_config': {'alibi': true, "   \
    "'alibi_bias_max': 8, 'attn_impl': 'torch', 'attn_pdrop': 0, "            \
    "'attn_type': 'multihead_attention', "                                    \
    "'attn_uses_sequence_id': false, 'prefix_lm': false, 'qk_ln': false, "

#define MPT_MORE_KEYS                                                         \
    "}, 'd_model': $dim, 'emb_pdrop': 0, 'embedding_fraction': 1.0, "         \
    "'expansion_ratio': 4, 'init_device': 'cpu', 'learned_pos_emb': true, "   \
    "'logit_scale': null, 'max_seq_len': $positions, 'model_type': 'mpt', "   \
    "'n_heads': $heads, 'n_layers': $layers, 'no_bias': true, "               \
    "'norm_type': 'low_precision_layernorm', 'resid_pdrop': 0, "              \
    "'use_cache': false, 'verbose': 0, 'vocab_size': $vocab}"

#define MPT_SHAPE                                                             \
    .layers = 3, .vocab = 61, .max_positions = 64, .eps = 1e-5,               \
    .norm = ORACLE_LAYER, .activation = oracle_gelu, ALIBI

#define BAICHUAN_KEYS                                                         \
    "'auto_map': {'AutoModelForCausalLM': "                                   \
    "'modeling_baichuan.BaichuanForCausalLM'}, 'hidden_act': 'silu', "        \
    "'intermediate_size': $hidden, 'model_type': 'baichuan', "                \
    "'pad_token_id': 0, 'rms_norm_eps': 1e-06, " SIZE_KEYS                    \
    "'tie_word_embeddings': false"

/* As many layers as llama.cpp knows them by. */
#define BAICHUAN_SHAPE                                                        \
    .dim = 24, .hidden = 36, .head_dim = 8, .heads = 3, .kv_heads = 3,        \
    .vocab = 61, .max_positions = 64, .eps = 1e-6,                            \
    .activation = oracle_silu

const struct family older_families[] = {
    {
        .name = "starcoder2",
        .config = STARCODER2_KEYS "}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, starcoder2_mlp},
        .bits = BIASED_BITS,
        .shape = {STARCODER2_SHAPE},
    },
    {
        .name = "starcoder2-window",
        .config = STARCODER2_KEYS ", 'sliding_window': $window, "
                                  "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, starcoder2_mlp},
        .bits = BIASED_BITS | HAS_HEAD,
        .shape = {STARCODER2_SHAPE, .window = 9, .sliding = "1"},
    },
    {
        .name = "codeshell",
        .config =
            "{'activation_function': 'gelu_pytorch_tanh', "
            "'architectures': ['CodeShellForCausalLM'], "
            "'attention_softmax_in_fp32': true, 'attn_pdrop': 0.1, "
            "'embd_pdrop': 0.1, 'group_query_attention': true, "
            "'layer_norm_epsilon': 1e-05, 'model_type': 'kclgpt', "
            "'n_embd': $dim, 'n_head': $heads, 'n_inner': $hidden, "
            "'n_layer': $layers, 'n_positions': $positions, "
            "'num_query_groups': $kv_heads, 'position_embedding_type': "
            "'rope', 'resid_pdrop': 0.1, 'rope_scaling': null, "
            "'scale_attention_softmax_in_fp32': true, "
            "'scale_attn_weights': true, " TOKEN_KEYS
            "'torch_dtype': 'bfloat16'}",
        .frame = codeshell_frame,
        .layers = {gpt2_layer},
        .bits = BIASED_BITS,
        .shape = {.dim = 60, .hidden = 4 * 60, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu_tanh, .theta = 10000},
    },
    {
        .name = "jais",
        .config =
            "{'activation_function': 'swiglu', 'alibi_scaling': null, "
            "'architectures': ['JAISLMHeadModel'], 'attn_pdrop': 0.0, "
            "'embd_pdrop': 0.0, 'layer_norm_epsilon': 1e-05, "
            "'model_type': 'jais', 'mup_embeddings_scale': 3.5, "
            "'mup_output_alpha': 2.25, 'mup_scale_qk_dot_by_d': true, "
            "'mup_width_scale': 0.125, 'n_embd': $dim, 'n_head': $heads, "
            "'n_inner': $hidden, 'n_layer': $layers, 'n_positions': "
            "$positions, 'position_embedding_type': 'alibi', "
            "'reorder_and_upcast_attn': false, 'resid_pdrop': 0.0, "
            "'scale_attn_by_inverse_layer_idx': false, "
            "'scale_attn_weights': true, " TOKEN_KEYS
            "'torch_dtype': 'float32'}",
        .frame = jais_frame,
        .layers = {gpt2_layer, jais_layer},
        .bits = BIASED_BITS | HAS_GATE | HAS_HEAD_COPY | COLUMNS_ARE_OUTPUTS,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 6, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, ALIBI, .scores_by_width = true,
                  .embedding_scale = 3.5, .logit_scale = 0.28125},
    },
    {
        .name = "gptj",
        .config =
            "{'activation_function': 'gelu_new', "
            "'architectures': ['GPTJForCausalLM'], 'attn_pdrop': 0.0, "
            "'embd_pdrop': 0.0, 'gradient_checkpointing': false, "
            "'layer_norm_epsilon': 1e-05, 'model_type': 'gptj', "
            "'n_embd': $dim, 'n_head': $heads, 'n_inner': null, "
            "'n_layer': $layers, 'n_positions': $positions, "
            "'resid_pdrop': 0.0, 'rotary': true, 'rotary_dim': $rotary_dim, "
            "'scale_attn_weights': true, " TOKEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = gptj_frame,
        .layers = {gptj_layer},
        .bits = HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_MLP_BIAS | HAS_HEAD |
                HAS_HEAD_BIAS,
        .shape = {.dim = 64, .hidden = 4 * 64, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu_tanh, .is_parallel = true,
                  .rotary_dim = 10, .is_interleaved = true, .theta = 10000},
    },
    {
        /* A quarter is no whole number of heads. */
        .name = "codegen",
        .config =
            "{'activation_function': 'gelu_new', "
            "'architectures': ['CodeGenForCausalLM'], 'attn_pdrop': 0.0, "
            "'embd_pdrop': 0.0, 'gradient_checkpointing': false, "
            "'layer_norm_epsilon': 1e-05, 'model_type': 'codegen', "
            "'n_ctx': $positions, 'n_embd': $dim, 'n_head': $heads, "
            "'n_inner': null, 'n_layer': $layers, 'n_positions': $positions, "
            "'resid_pdrop': 0.0, 'rotary_dim': $rotary_dim, "
            "'scale_attn_weights': true, " TOKEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = gptj_frame,
        .layers = {codegen_layer},
        .bits = HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_MLP_BIAS | HAS_HEAD |
                HAS_HEAD_BIAS,
        .shape = {.dim = 60, .hidden = 4 * 60, .layers = 3, .heads = 5,
                  .kv_heads = 5, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu_tanh, .is_parallel = true,
                  .rotary_dim = 8, .is_interleaved = true, .theta = 10000},
    },
    {
        .name = "persimmon",
        .config =
            "{'architectures': ['PersimmonForCausalLM'], "
            "'attention_dropout': 0.0, 'hidden_act': 'relu2', "
            "'hidden_dropout': 0.0, 'intermediate_size': $hidden, "
            "'layer_norm_eps': 1e-05, "
            "'max_position_embeddings': $positions, "
            "'model_type': 'persimmon', 'partial_rotary_factor': 0.5, "
            "'qk_layernorm': true, 'rope_scaling': null, "
            "'rope_theta': 25000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = persimmon_frame,
        .layers = {hf_norms, persimmon_layer},
        .bits = BIASED_BITS | HAS_HEAD | HAS_QK_NORM,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 5,
                  .kv_heads = 5, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_relu2, .rotary_dim = 6,
                  .theta = 25000},
    },
    {
        .name = "dbrx",
        .config = DBRX_KEYS "'attn_config': {'clip_qkv': 1.25, 'kv_n_heads': "
                            "$kv_heads, 'rope_theta': 500000}}",
        .frame = dbrx_frame,
        .layers = {dbrx_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {DBRX_SHAPE, .expert_dim = 36},
    },
    {
        /* Nothing but the rule says which of its matrices are turned. */
        .name = "dbrx-square",
        .config = DBRX_KEYS "'attn_config': {'clip_qkv': 1.25, 'kv_n_heads': "
                            "$kv_heads}, 'rope_parameters': {'rope_theta': "
                            "500000.0, 'rope_type': 'default'}}",
        .frame = dbrx_frame,
        .layers = {dbrx_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {DBRX_SHAPE, .expert_dim = 60},
    },
    {
        .name = "mpt",
        .config = MPT_KEYS "'clip_qkv': null, 'softmax_scale': null"
                           MPT_MORE_KEYS,
        .frame = mpt_frame,
        .layers = {mpt_layer},
        .bits = PLAIN_BITS,
        .shape = {MPT_SHAPE, .dim = 56, .hidden = 4 * 56, .heads = 4,
                  .kv_heads = 4, .head_dim = 14},
    },
    {
        /* Heads that are no power of two. */
        .name = "mpt-clipped",
        .config = MPT_KEYS "'clip_qkv': 1.25, 'softmax_scale': null"
                           MPT_MORE_KEYS,
        .frame = mpt_frame,
        .layers = {mpt_layer},
        .bits = PLAIN_BITS,
        .shape = {MPT_SHAPE, .dim = 60, .hidden = 4 * 60, .heads = 6,
                  .kv_heads = 6, .head_dim = 10, .clip = 1.25},
    },
    {
        .name = "bloom",
        .config =
            "{'apply_residual_connection_post_layernorm': false, "
            "'architectures': ['BloomForCausalLM'], "
            "'attention_dropout': 0.0, 'attention_softmax_in_fp32': true, "
            "'bias_dropout_fusion': true, 'hidden_dropout': 0.0, "
            "'layer_norm_epsilon': 1e-05, 'masked_softmax_fusion': true, "
            "'model_type': 'bloom', 'n_embed': $dim, 'n_inner': null, "
            "'n_layer': $layers, 'num_attention_heads': $heads, "
            "'offset_alibi': 100, 'pretraining_tp': 2, "
            "'seq_length': $positions, 'slow_but_exact': false, "
            "'unk_token_id': 0, " TOKEN_KEYS
            "'skip_bias_add': true, 'skip_bias_add_qkv': false}",
        .frame = bloom_frame,
        .layers = {falcon_one_norm, falcon_layer},
        .bits = BIASED_BITS | HAS_EMBEDDING_NORM | HAS_HEAD_COPY,
        .shape = {.dim = 60, .hidden = 4 * 60, .layers = 3, .heads = 6,
                  .kv_heads = 6, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu_tanh, ALIBI},
    },
    {
        .name = "opt",
        .config =
            "{'_remove_final_layer_norm': false, "
            "'activation_function': 'relu', 'architectures': "
            "['OPTForCausalLM'], 'attention_dropout': 0.0, "
            "'do_layer_norm_before': true, 'dropout': 0.1, "
            "'ffn_dim': $hidden, 'init_std': 0.02, 'layerdrop': 0.0, "
            "'max_position_embeddings': $positions, 'model_type': 'opt', "
            "'pad_token_id': 1, 'prefix': '</s>', " SIZE_KEYS
            "'word_embed_proj_dim': $dim}",
        .frame = opt_frame,
        .layers = {opt_layer},
        .bits = BIASED_BITS | HAS_HEAD_COPY,
        .shape = {.dim = 52, .hidden = 92, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 13, .vocab = 61,
                  .max_positions = 48, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_relu,
                  .positions = ORACLE_LEARNED},
    },
    {
        .name = "internlm2",
        .config =
            "{'architectures': ['InternLM2ForCausalLM'], 'auto_map': "
            "{'AutoModelForCausalLM': "
            "'modeling_internlm2.InternLM2ForCausalLM'}, "
            "'attn_implementation': 'eager', 'bias': false, "
            "'hidden_act': 'silu', 'intermediate_size': $hidden, "
            "'max_position_embeddings': $positions, "
            "'model_type': 'internlm2', 'num_key_value_heads': $kv_heads, "
            "'pad_token_id': 2, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': {'factor': 2.0, 'type': 'linear'}, "
            "'rope_theta': 1000000, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = internlm2_frame,
        .layers = {internlm2_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .rope = ORACLE_ROPE_LINEAR, .factor = 2},
    },
    {
        .name = "baichuan-7b",
        .config = "{'architectures': ['BaiChuanForCausalLM'], "
                  "'max_position_embeddings': $positions, " BAICHUAN_KEYS "}",
        .frame = hf_frame,
        .layers = {hf_norms, baichuan_layer, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {BAICHUAN_SHAPE, .layers = 32, .theta = 10000},
    },
    {
        .name = "baichuan2-13b",
        .config = "{'architectures': ['BaichuanForCausalLM'], "
                  "'model_max_length': $positions, " BAICHUAN_KEYS
                  ", 'z_loss_weight': 0}",
        .frame = hf_frame,
        .layers = {hf_norms, baichuan_layer, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_UNIT_HEAD,
        .shape = {BAICHUAN_SHAPE, .layers = 40, ALIBI},
    },
    {
        .name = "olmoe",
        .config =
            "{'architectures': ['OlmoeForCausalLM'], "
            "'attention_bias': false, 'clip_qkv': null, "
            "'hidden_act': 'silu', 'intermediate_size': $expert_dim, "
            "'max_position_embeddings': $positions, 'model_type': 'olmoe', "
            "'norm_topk_prob': false, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_key_value_heads': $kv_heads, "
            "'output_router_logits': false, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM_WHOLE,
        .shape = {.dim = 60, .hidden = 36, .layers = 3, .heads = 6,
                  .kv_heads = 6, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000, .sparse = "1",
                  .n_experts = 6, .n_used = 3, .expert_dim = 36},
    },
    {.name = NULL},
};
