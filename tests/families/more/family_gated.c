/*
 * family_gated.c - families whose streams have a gate for each number.
 */
#include "config.h"

#include "tests/families/family.h"

static const struct stored frame[] = {
    {AS_STRAY, "model.visual.merger.norm.weight", 0},
    {AS_STRAY, "mtp.fc.weight", 0},
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_NORM, "model.hyper_connection_mixer.hc_norm", MODEL(norm)},
    {AS_WEIGHT, "model.hyper_connection_mixer.input_mix_weight_down",
     MODEL(gated.down)},
    {AS_WEIGHT, "model.hyper_connection_mixer.input_mix_weight_up",
     MODEL(gated.up)},
    {AS_END, NULL, 0},
};

#define ATTN "model.layers.#.attn_hyper_connection."
#define FFN "model.layers.#.mlp_hyper_connection."
#define PLE "model.layers.#.ple."
static const struct stored layer[] = {
    {AS_NORM, ATTN "hc_norm", LAYER(attn_norm)},
    {AS_LINEAR, ATTN "input_mix_weight_down", LAYER(attn_gated.down)},
    {AS_LINEAR, ATTN "input_mix_weight_up", LAYER(attn_gated.up)},
    {AS_LINEAR, ATTN "block_inject_weight", LAYER(attn_gated.write)},
    {AS_NORM, FFN "hc_norm", LAYER(ffn_norm)},
    {AS_LINEAR, FFN "input_mix_weight_down", LAYER(ffn_gated.down)},
    {AS_LINEAR, FFN "input_mix_weight_up", LAYER(ffn_gated.up)},
    {AS_LINEAR, FFN "block_inject_weight", LAYER(ffn_gated.write)},
    {AS_LINEAR, PLE "key_proj", LAYER(grams.key)},
    {AS_LINEAR, PLE "value_proj", LAYER(grams.value)},
    {AS_NORM, PLE "norm_key", LAYER(grams.key_norm)},
    {AS_NORM, PLE "norm_query", LAYER(grams.query_norm)},
    {AS_NORM, PLE "norm_conv", LAYER(grams.conv_norm)},
    {AS_DEEP, PLE "conv1d", LAYER(grams.conv)},
    {AS_SHARDS, PLE "ple_embedding.ngram_embedding.shard_@",
     LAYER(grams.table)},
    {AS_END, NULL, 0},
};

/* A token that ends sequences is in the text that families are tested with. */
const struct family gated_families[] = {
    {
        .name = "qwen4",
        .config =
            "{'architectures': ['Qwen4ExpForCausalLM'], 'attention_bias': "
            "false, 'bos_token_id': null, 'eos_token_id': [$gram_stop, 2], "
            "'hc_count': $streams, 'hc_lowrank': $gate_streams, 'head_dim': "
            "$head_dim, 'heads_per_ngram': $gram_heads, 'hidden_act': "
            "'silu', 'hidden_size': $dim, 'indexer_budget': 60, "
            "'indexer_compress_ratio': 4, 'indexer_head_dim': 16, "
            "'indexer_kv_heads': 1, 'indexer_n_heads': 2, 'layer_types': "
            "['linear_attention', 'full_attention', 'linear_attention'], "
            "'linear_conv_kernel_dim': $conv_width, 'linear_key_head_dim': "
            "$delta_key_dim, 'linear_num_key_heads': $delta_keys, "
            "'linear_num_value_heads': $delta_values, "
            "'linear_value_head_dim': $delta_value_dim, "
            "'make_ngram_vocab_size_divisible_by': 8, "
            "'max_position_embeddings': 63, 'model_type': 'qwen4_exp_text', "
            "'moe_intermediate_size': $expert_dim, 'ngram_size': $gram_size, "
            "'ngram_vocab_size_base': $gram_base, 'norm_topk_prob': true, "
            "'num_attention_heads': $heads, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, 'output_gate_type': "
            "'sigmoid', 'ple_conv_kernel_size': $gram_conv, "
            "'ple_embed_dim': $gram_width, 'ple_layer_ids': [1, 3], "
            "'rms_norm_eps': 1e-06, 'rope_parameters': {'mrope_interleaved': "
            "true, 'mrope_section': [2, 1, 1], 'partial_rotary_factor': 0.5, "
            "'rope_theta': 10000000, 'rope_type': 'default'}, 'seed': "
            "$gram_seed, 'shared_expert_intermediate_size': $shared_dim, "
            "'split_ngram_parts': 7, 'tie_word_embeddings': false, "
            "'vocab_size': $vocab}",
        .frame = frame,
        .layers = {qwen35_attention, delta_layer, qwen_experts, layer},
        .bits = LLAMA_BITS | HAS_QK_NORM | HAS_OUTPUT_GATE | NORMS_LESS_ONE |
                HAS_HEAD | HAS_SWITCH,
        .shape = {.vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 1e7, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .rotary_dim = 8,
                  .conv_width = 4, .dim = 44, .layers = 3, .delta = "101",
                  .delta_keys = 2, .delta_values = 4, .delta_key_dim = 20,
                  .delta_value_dim = 24, .sigmoid_gates = true, .sparse = "1",
                  .n_experts = 5, .n_used = 2, .expert_dim = 36,
                  .shared_dim = 44, .renormalises = true, .streams = 3,
                  .hyper = true, .hyper_gain = 2, .gate_streams = 10,
                  .grams = "101", .gram_size = 3, .gram_heads = 2,
                  .gram_dim = 9, .gram_conv = 3, .gram_stop = 37,
                  .gram_seed = 1234, .gram_base = 30},
    },
    {.name = NULL},
};
