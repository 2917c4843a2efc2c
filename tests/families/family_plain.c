/*
 * family_plain.c - variants that no family has, described in lmquant's own
 * words.
 */
#include "config.h"

#include "tests/families/family.h"

#define SIZE_KEYS                                                             \
    "{'lmquant': {'architecture': 'variant', 'n_layers': $layers, "           \
    "'dim': $dim, 'hidden_dim': $hidden, 'n_heads': $heads, "                 \
    "'n_kv_heads': $kv_heads, 'head_dim': $head_dim, "                        \
    "'vocab_size': $vocab, 'context': $positions, "                           \
    "'sliding_window': $window, 'rope_context': $original, "                  \
    "'rope_low_factor': 0, 'rope_high_factor': 0, 'bos': 1, 'eos': [2], "

/* What has to be said, where nothing turns or nothing is scaled. */
#define PLAIN_ROPE                                                            \
    "'rope_theta': 10000, 'rope_factor': 1, 'rope_scaling': 'none', "

#define PLAIN_LISTS                                                           \
    .frame = plain_frame,                                                     \
    .layers = {plain_norms, plain_attention, plain_qk_norms, plain_mlp,       \
               plain_experts}

static const struct stored hyper_frame[] = {
    {AS_EMBEDDING, "token_embd", MODEL(embedding)},
    {AS_NORM, "output_norm", MODEL(norm)},
    {AS_LINEAR, "output", MODEL(head)},
    {AS_WEIGHT, "output_hc_fn", MODEL(hyper.fn)},
    {AS_VECTOR, "output_hc_base.weight", MODEL(hyper.base)},
    {AS_VECTOR, "output_hc_scale.weight", MODEL(hyper.scale)},
    {AS_END, NULL, 0},
};

static const struct stored hyper_layer[] = {
    {AS_WEIGHT, "blk.#.hc_attn_fn", LAYER(attn_hyper.fn)},
    {AS_VECTOR, "blk.#.hc_attn_base.weight", LAYER(attn_hyper.base)},
    {AS_VECTOR, "blk.#.hc_attn_scale.weight", LAYER(attn_hyper.scale)},
    {AS_WEIGHT, "blk.#.hc_ffn_fn", LAYER(ffn_hyper.fn)},
    {AS_VECTOR, "blk.#.hc_ffn_base.weight", LAYER(ffn_hyper.base)},
    {AS_VECTOR, "blk.#.hc_ffn_scale.weight", LAYER(ffn_hyper.scale)},
    {AS_END, NULL, 0},
};

const struct family plain_families[] = {
    {
        /* ALiBi on a number of heads that is no power of two. */
        .name = "relu-alibi",
        .config = SIZE_KEYS PLAIN_ROPE "'norm_eps': 1e-05, "
                                       "'positions': 'alibi', "
                                       "'activation': 'relu', "
                                       "'gated': false}}",
        PLAIN_LISTS,
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 100, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_relu, .positions = ORACLE_ALIBI},
    },
    {
        .name = "reglu-sinks-window",
        .config = SIZE_KEYS PLAIN_ROPE "'norm_eps': 3e-05, 'sinks': true, "
                                       "'full_layers': [1], "
                                       "'activation': 'relu'}}",
        PLAIN_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_SINKS | HAS_QKV_BIAS |
                HAS_OUT_BIAS,
        .shape = {.dim = 56, .hidden = 92, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 3e-5,
                  .activation = oracle_relu, .theta = 10000, .window = 7,
                  .sliding = "101"},
    },
    {
        .name = "glu-parallel-around",
        .config = SIZE_KEYS PLAIN_ROPE "'norm_eps': 1e-05, "
                                       "'norm_place': 'around', "
                                       "'residual': 'parallel', "
                                       "'qk_norm': 'whole', "
                                       "'norm': 'layer', "
                                       "'activation': 'sigmoid'}}",
        PLAIN_LISTS,
        .bits = LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_NORM_BIAS | HAS_QK_NORM_WHOLE,
        .shape = {.dim = 60, .hidden = 76, .layers = 3, .heads = 5,
                  .kv_heads = 5, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_sigmoid, .is_parallel = true,
                  .theta = 10000},
    },
    {
        .name = "geglu-learned-capped",
        .config = SIZE_KEYS PLAIN_ROPE "'norm_eps': 1e-05, "
                                       "'positions': 'learned', "
                                       "'norm': 'layer_plain', "
                                       "'activation': 'gelu', "
                                       "'logit_softcap': 6, "
                                       "'attn_softcap': 2.5, "
                                       "'attn_scale': 0.35, "
                                       "'qkv_clip': 1.2, "
                                       "'embedding_scale': 3, "
                                       "'residual_scale': 0.5}}",
        PLAIN_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_PLAIN_NORMS | HAS_MLP_BIAS,
        .shape = {.dim = 60, .hidden = 76, .layers = 3, .heads = 5,
                  .kv_heads = 1, .head_dim = 12, .vocab = 61,
                  .max_positions = 40, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .positions = ORACLE_LEARNED,
                  .logit_cap = 6, .score_cap = 2.5, .score_scale = 0.35,
                  .clip = 1.2, .embedding_scale = 3, .residual_scale = 0.5},
    },
    {
        .name = "no-positions",
        .config = SIZE_KEYS PLAIN_ROPE "'norm_eps': 1e-05, "
                                       "'positions': 'none', "
                                       "'qk_norm': 'heads', "
                                       "'residual': 'parallel_one_norm'}}",
        .frame = plain_frame,
        .layers = {plain_norms, plain_attention, plain_head_norms,
                   plain_mlp},
        .bits = HAS_GATE | HAS_ATTN_NORM | HAS_QK_NORM_HEADS,
        .shape = {.dim = 60, .hidden = 76, .layers = 3, .heads = 5,
                  .kv_heads = 5, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .is_parallel = true,
                  .positions = ORACLE_NO_POSITIONS},
    },
    {
        .name = "ntk-partly-still",
        .config = SIZE_KEYS
            "'norm_eps': 1e-05, 'rope_theta': 10000, 'rope_factor': 4, "
            "'rope_scaling': 'ntk', 'rotary_dim': $rotary_dim, "
            "'still_layers': [1]}}",
        PLAIN_LISTS,
        .bits = LLAMA_BITS,
        .shape = {.dim = 60, .hidden = 76, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000,
                  .rotary_dim = 6, .rope = ORACLE_ROPE_NTK, .factor = 4,
                  .turning = "101"},
    },
    {
        /* As GPT-OSS chooses its experts. */
        .name = "experts-softmax-chosen",
        .config = SIZE_KEYS PLAIN_ROPE
            "'norm_eps': 1e-05, 'sinks': true, 'n_experts': $experts, "
            "'n_experts_used': $used, 'expert_dim': $expert_dim, "
            "'router': 'softmax_chosen'}}",
        PLAIN_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_SINKS | HAS_ROUTER_BIAS |
                HAS_MLP_BIAS,
        .shape = {.dim = 56, .hidden = 44, .layers = 3, .heads = 4,
                  .kv_heads = 1, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000,
                  .sparse = "1", .n_experts = 5, .n_used = 2,
                  .expert_dim = 44, .router = ORACLE_SOFTMAX_CHOSEN},
    },
    {
        /* Half of GPT-OSS, half of Llama 4. */
        .name = "chunks-late-norms",
        .config = SIZE_KEYS
            "'norm_eps': 3e-05, 'sinks': true, 'rope_theta': 10000, "
            "'rope_factor': 4, 'rope_scaling': 'yarn', "
            "'rope_ramp_exact': true, "
            "'attention_chunk': 7, 'full_layers': [1], 'still_layers': [1], "
            "'qk_norm': 'bare', 'qk_norm_late': true, 'score_growth': 0.5, "
            "'score_growth_period': 5, 'score_growth_shift': 1, "
            "'score_growth_still': true, 'activation_slope': 1.702, "
            "'glu_limit': 0.7, 'glu_offset': 1, 'n_experts': $experts, "
            "'n_experts_used': $used, 'expert_dim': $expert_dim, "
            "'shared_dim': $shared_dim, 'router': 'sigmoid', "
            "'router_scales_input': true}}",
        PLAIN_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_SINKS | HAS_MLP_BIAS,
        .shape = {.dim = 56, .hidden = 44, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 3e-5,
                  .activation = oracle_silu_steep, .up_limit = 0.7,
                  .up_plus = 1, .theta = 10000, .rope = ORACLE_ROPE_YARN,
                  .factor = 4, .low = 1, .high = 32, .original = 16,
                  .is_ramp_exact = true, .norms_turned = true,
                  .norms_bare = true, .growth = 0.5, .growth_period = 5,
                  .growth_shift = 1, .growing = "010", .chunk = 7,
                  .sliding = "101", .turning = "101", .sparse = "1",
                  .n_experts = 5, .n_used = 2, .expert_dim = 44,
                  .shared_dim = 36, .router = ORACLE_SIGMOID,
                  .weighs_input = true},
    },
    {
        .name = "relu2-growth",
        .config = SIZE_KEYS PLAIN_ROPE
            "'norm_eps': 1e-05, 'gated': false, 'activation': 'relu2', "
            "'qk_norm': 'head', 'qk_norm_late': true, "
            "'score_growth': 0.25, 'score_growth_period': 3}}",
        PLAIN_LISTS,
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD | HAS_QK_NORM,
        .shape = {.dim = 60, .hidden = 76, .layers = 3, .heads = 5,
                  .kv_heads = 1, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_relu2, .theta = 10000,
                  .norms_turned = true, .growth = 0.25, .growth_period = 3},
    },
    {
        /* Experts without a gate, in one layer; a shared one. */
        .name = "experts-sigmoid-shared",
        .config = SIZE_KEYS PLAIN_ROPE
            "'norm_eps': 1e-05, 'n_experts': $experts, "
            "'n_experts_used': $used, 'expert_dim': $expert_dim, "
            "'shared_dim': $shared_dim, 'router': 'sigmoid', "
            "'router_corrects': true, 'router_scale': 1.25, "
            "'activation': 'gelu_tanh', 'gated': false, "
            "'dense_layers': [0, 2]}}",
        PLAIN_LISTS,
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD | HAS_CORRECTION |
                HAS_SWITCH,
        .shape = {.dim = 56, .hidden = 68, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_gelu_tanh, .theta = 10000,
                  .sparse = "010", .n_experts = 5, .n_used = 2,
                  .expert_dim = 44, .shared_dim = 36,
                  .router = ORACLE_SIGMOID, .router_scale = 1.25},
    },
    {
        .name = "fixed-factors",
        .config = SIZE_KEYS
            "'norm_eps': 1e-05, 'rope_theta': 10000, 'rope_factor': 1, "
            "'rope_scaling': 'factors', 'rope_short': [$short], "
            "'rope_long': [$long], 'rope_attention_factor': 1.1, "
            "'norm_place': 'after'}}",
        PLAIN_LISTS,
        .bits = HAS_GATE | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 76, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000,
                  .rope = ORACLE_ROPE_LONG, .rope_scale = 1.1},
    },
    {
        /* Norms around, experts, and three streams that mix. */
        .name = "hyper",
        .config = SIZE_KEYS PLAIN_ROPE
            "'norm_eps': 1e-05, 'norm_place': 'around', "
            "'n_experts': $experts, 'n_experts_used': $used, "
            "'expert_dim': $expert_dim, 'dense_layers': [0, 2], "
            "'residual_scale': 0.5, 'n_streams': $streams, "
            "'stream_kind': 'hyper', 'stream_rounds': 4, "
            "'stream_eps': 0.001, 'stream_gain': 2, "
            "'stream_floor': 0.01}}",
        .frame = hyper_frame,
        .layers = {plain_norms, plain_attention, plain_mlp, plain_experts,
                   hyper_layer},
        .bits = LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_HEAD | HAS_OUT_BIAS,
        .shape = {.dim = 56, .hidden = 68, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000,
                  .sparse = "010", .n_experts = 5, .n_used = 2,
                  .expert_dim = 44, .router = ORACLE_SOFTMAX,
                  .residual_scale = 0.5, .streams = 3, .hyper = true,
                  .hyper_rounds = 4, .hyper_eps = 0.001, .hyper_gain = 2,
                  .hyper_floor = 0.01},
    },
    {.name = NULL},
};
