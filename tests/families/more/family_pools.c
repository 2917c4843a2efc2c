/*
 * family_pools.c - families whose values are the keys, and that see what is far
 * in pools of these.
 */
#include "config.h"

#include "tests/families/family.h"

/* As the makers call tensors. */
static const struct stored frame[] = {
    {AS_EMBEDDING, "embed", MODEL(embedding)},
    {AS_NORM, "norm", MODEL(norm)},
    {AS_LINEAR, "head", MODEL(head)},
    {AS_WEIGHT, "hc_head_fn=", MODEL(hyper.fn)},
    {AS_VECTOR, "hc_head_base", MODEL(hyper.base)},
    {AS_VECTOR, "hc_head_scale", MODEL(hyper.scale)},
    {AS_STRAY, "mtp.0.enorm.weight", 0},
    {AS_STRAY, "layers.0.ffn.gate.bias", 0},
    {AS_END, NULL, 0},
};

static const struct stored layer[] = {
    {AS_NORM, "layers.#.attn_norm", LAYER(attn_norm)},
    {AS_NORM, "layers.#.ffn_norm", LAYER(ffn_norm)},
    {AS_WEIGHT, "layers.#.hc_attn_fn=", LAYER(attn_hyper.fn)},
    {AS_VECTOR, "layers.#.hc_attn_base", LAYER(attn_hyper.base)},
    {AS_VECTOR, "layers.#.hc_attn_scale", LAYER(attn_hyper.scale)},
    {AS_WEIGHT, "layers.#.hc_ffn_fn=", LAYER(ffn_hyper.fn)},
    {AS_VECTOR, "layers.#.hc_ffn_base", LAYER(ffn_hyper.base)},
    {AS_VECTOR, "layers.#.hc_ffn_scale", LAYER(ffn_hyper.scale)},
    {AS_END, NULL, 0},
};

#define ATTN "layers.#.attn."
static const struct stored attention[] = {
    {AS_SINKS, ATTN "attn_sink", 0},
    {AS_LINEAR, ATTN "wq_a", LAYER(q_a)},
    {AS_NORM, ATTN "q_norm", LAYER(q_a_norm)},
    {AS_LINEAR, ATTN "wq_b", LAYER(q_b)},
    {AS_LINEAR, ATTN "wkv", LAYER(k)},
    {AS_NORM, ATTN "kv_norm", LAYER(k_norm)},
    {AS_LINEAR, ATTN "wo_a", LAYER(out_a)},
    {AS_LINEAR, ATTN "wo_b", LAYER(o)},
    {AS_LINEAR, ATTN "compressor.wkv", LAYER(pool.kv)},
    {AS_LINEAR, ATTN "compressor.wgate", LAYER(pool.gate)},
    {AS_WEIGHT, ATTN "compressor.ape=", LAYER(pool.bias)},
    {AS_NORM, ATTN "compressor.norm", LAYER(pool.norm)},
    {AS_LINEAR, ATTN "indexer.wq_b", LAYER(index_q)},
    {AS_LINEAR, ATTN "indexer.weights_proj", LAYER(index_weights)},
    {AS_LINEAR, ATTN "indexer.compressor.wkv", LAYER(index_pool.kv)},
    {AS_LINEAR, ATTN "indexer.compressor.wgate", LAYER(index_pool.gate)},
    {AS_WEIGHT, ATTN "indexer.compressor.ape=", LAYER(index_pool.bias)},
    {AS_NORM, ATTN "indexer.compressor.norm", LAYER(index_pool.norm)},
    {AS_END, NULL, 0},
};

#define FFN "layers.#.ffn."
static const struct stored experts[] = {
    {AS_LINEAR, FFN "gate", LAYER(router)},
    {AS_CORRECTION, FFN "gate.bias", 0},
    {AS_WEIGHT, FFN "gate.tid2eid=", LAYER(table)},
    {AS_EXPERTS, FFN "experts.@.w1", MLP(gate)},
    {AS_EXPERTS, FFN "experts.@.w2", MLP(down)},
    {AS_EXPERTS, FFN "experts.@.w3", MLP(up)},
    {AS_LINEAR, FFN "shared_experts.w1", LAYER(shared.gate)},
    {AS_LINEAR, FFN "shared_experts.w2", LAYER(shared.down)},
    {AS_LINEAR, FFN "shared_experts.w3", LAYER(shared.up)},
    {AS_END, NULL, 0},
};

/* As the library has the model in memory. */
static const struct stored library_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_WEIGHT, "model.hc_head.hc_fn=", MODEL(hyper.fn)},
    {AS_VECTOR, "model.hc_head.hc_base", MODEL(hyper.base)},
    {AS_VECTOR, "model.hc_head.hc_scale", MODEL(hyper.scale)},
    {AS_END, NULL, 0},
};

#define BLOCK "model.layers.#."
static const struct stored library_layer[] = {
    {AS_WEIGHT, BLOCK "attn_hc.fn=", LAYER(attn_hyper.fn)},
    {AS_VECTOR, BLOCK "attn_hc.base", LAYER(attn_hyper.base)},
    {AS_VECTOR, BLOCK "attn_hc.scale", LAYER(attn_hyper.scale)},
    {AS_WEIGHT, BLOCK "ffn_hc.fn=", LAYER(ffn_hyper.fn)},
    {AS_VECTOR, BLOCK "ffn_hc.base", LAYER(ffn_hyper.base)},
    {AS_VECTOR, BLOCK "ffn_hc.scale", LAYER(ffn_hyper.scale)},
    {AS_LINEAR, BLOCK "mlp.gate", LAYER(router)},
    {AS_CORRECTION, BLOCK "mlp.gate.e_score_correction_bias", 0},
    {AS_WEIGHT, BLOCK "mlp.gate.tid2eid=", LAYER(table)},
    {AS_EXPERTS_GATE_UP, BLOCK "mlp.experts.gate_up_proj", MLP(gate)},
    {AS_EXPERTS_FUSED, BLOCK "mlp.experts.down_proj", MLP(down)},
    {AS_LINEAR, BLOCK "mlp.shared_experts.gate_proj", LAYER(shared.gate)},
    {AS_LINEAR, BLOCK "mlp.shared_experts.down_proj", LAYER(shared.down)},
    {AS_LINEAR, BLOCK "mlp.shared_experts.up_proj", LAYER(shared.up)},
    {AS_END, NULL, 0},
};

#define SELF BLOCK "self_attn."
#define POOL SELF "compressor."
#define INDEX POOL "indexer."
static const struct stored library_attention[] = {
    {AS_SINKS, SELF "sinks", 0},
    {AS_LINEAR, SELF "q_a_proj", LAYER(q_a)},
    {AS_NORM, SELF "q_a_norm", LAYER(q_a_norm)},
    {AS_LINEAR, SELF "q_b_proj", LAYER(q_b)},
    {AS_LINEAR, SELF "kv_proj", LAYER(k)},
    {AS_NORM, SELF "kv_norm", LAYER(k_norm)},
    {AS_LINEAR, SELF "o_a_proj", LAYER(out_a)},
    {AS_LINEAR, SELF "o_b_proj", LAYER(o)},
    {AS_LINEAR, POOL "kv_proj", LAYER(pool.kv)},
    {AS_LINEAR, POOL "gate_proj", LAYER(pool.gate)},
    {AS_WEIGHT, POOL "position_bias=", LAYER(pool.bias)},
    {AS_NORM, POOL "kv_norm", LAYER(pool.norm)},
    {AS_LINEAR, INDEX "q_b_proj", LAYER(index_q)},
    {AS_LINEAR, INDEX "scorer.weights_proj", LAYER(index_weights)},
    {AS_LINEAR, INDEX "kv_proj", LAYER(index_pool.kv)},
    {AS_LINEAR, INDEX "gate_proj", LAYER(index_pool.gate)},
    {AS_WEIGHT, INDEX "position_bias=", LAYER(index_pool.bias)},
    {AS_NORM, INDEX "kv_norm", LAYER(index_pool.norm)},
    {AS_END, NULL, 0},
};

#define KEYS                                                                  \
    "{'architectures': ['DeepseekV4ForCausalLM'], 'bos_token_id': 1, "        \
    "'eos_token_id': 2, 'hc_eps': 0.001, 'hc_mult': $streams, "               \
    "'head_dim': $head_dim, 'hidden_act': 'silu', 'hidden_size': $dim, "      \
    "'index_head_dim': $index_dim, 'index_n_heads': $index_heads, "           \
    "'index_topk': $index_topk, 'max_position_embeddings': $positions, "      \
    "'model_type': 'deepseek_v4', 'moe_intermediate_size': $expert_dim, "     \
    "'n_routed_experts': $experts, 'n_shared_experts': 1, "                   \
    "'norm_topk_prob': true, 'num_attention_heads': $heads, "                 \
    "'num_experts_per_tok': $used, 'num_hidden_layers': $layers, "            \
    "'num_key_value_heads': 1, 'o_groups': $out_groups, "                     \
    "'o_lora_rank': $out_rank, 'q_lora_rank': $q_rank, "                      \
    "'rms_norm_eps': 1e-06, 'sliding_window': $window, "                      \
    "'tie_word_embeddings': false, 'vocab_size': $vocab, "

#define SHAPE                                                                 \
    .dim = 48, .heads = 4, .kv_heads = 1, .head_dim = 14, .rotary_dim = 6,    \
    .q_rank = 22, .shares_keys = true, .out_groups = 2, .out_rank = 10,       \
    .index_heads = 5, .index_dim = 10, .vocab = 61, .max_positions = 64,      \
    .eps = 1e-6, .activation = oracle_silu, .up_limit = 1.5,                  \
    .is_interleaved = true, .sliding = "1", .n_experts = 6, .n_used = 3,      \
    .expert_dim = 36, .shared_dim = 36, .router = ORACLE_ROOT_SOFTPLUS,       \
    .renormalises = true, .hyper = true, .hyper_eps = 0.001,                  \
    .hyper_gain = 2, .sparse = "1"

/* What chooses positions: of DeepSeek V3.2 and those after it. */
const struct stored indexer[] = {
    {AS_LINEAR, "model.layers.#.self_attn.indexer.wq_b", LAYER(index_q)},
    {AS_LINEAR, "model.layers.#.self_attn.indexer.wk", LAYER(index_k)},
    {AS_NORM, "model.layers.#.self_attn.indexer.k_norm", LAYER(index_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.indexer.weights_proj",
     LAYER(index_weights)},
    {AS_END, NULL, 0},
};

const struct family pools_families[] = {
    {
        /* As its makers say it; a layer more in the list for more tokens. */
        .name = "deepseek4",
        .config = KEYS
            "'compress_ratios': [0, 4, 4, 0], 'compress_rope_theta': 160000, "
            "'hc_sinkhorn_iters': 20, 'num_hash_layers': 2, "
            "'num_nextn_predict_layers': 1, "
            "'qk_rope_head_dim': $rotary_dim, "
            "'rope_scaling': {'beta_fast': 32, 'beta_slow': 1, "
            "'factor': 16, 'original_max_position_embeddings': $original, "
            "'type': 'yarn'}, 'rope_theta': 10000, "
            "'routed_scaling_factor': 1.5, 'scoring_func': 'sqrtsoftplus', "
            "'swiglu_limit': 1.5, 'topk_method': 'noaux_tc'}",
        .frame = frame,
        .layers = {layer, attention, experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {SHAPE, .layers = 3, .pools = "022", .overlap_size = 4,
                  .index_topk = 4, .window = 9, .theta = 160000,
                  .window_theta = 10000, .rope = ORACLE_ROPE_YARN,
                  .factor = 16, .low = 1, .high = 32, .original = 16,
                  .tables = "110", .router_scale = 1.5, .streams = 3,
                  .hyper_rounds = 20},
    },
    {
        /* As the library says it, with pools that do not overlap, too. */
        .name = "deepseek4-library",
        .config = KEYS
            "'compress_rates': {'compressed_sparse_attention': "
            "$overlap_size, 'heavily_compressed_attention': $pool_size}, "
            "'hc_sinkhorn_iters': 3, 'layer_types': "
            "['heavily_compressed_attention', "
            "'compressed_sparse_attention', 'sliding_attention'], "
            "'mlp_layer_types': ['moe', 'hash_moe', 'moe'], "
            "'partial_rotary_factor': 0.42857142857142855, "
            "'rope_parameters': {'compress': {'partial_rotary_factor': "
            "0.42857142857142855, 'rope_theta': 20000.0, 'rope_type': "
            "'default'}, 'main': {'partial_rotary_factor': "
            "0.42857142857142855, 'rope_theta': 500.0, 'rope_type': "
            "'default'}}, 'routed_scaling_factor': 2.5, "
            "'scoring_func': 'sqrtsoftplus', 'swiglu_limit': 1.5}",
        .frame = library_frame,
        .layers = {hf_norms, library_layer, library_attention},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {SHAPE, .layers = 3, .pools = "120", .pool_size = 9,
                  .overlap_size = 3, .index_topk = 5, .window = 12,
                  .theta = 20000, .window_theta = 500, .tables = "010",
                  .router_scale = 2.5, .streams = 2, .hyper_rounds = 3},
    },
    {.name = NULL},
};
