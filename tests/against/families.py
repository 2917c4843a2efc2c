#!/usr/bin/env python3
"""Every family as transformers saves it: logits there and here.

    families.py [--llama PYTHON] [--keep FOLDER] BUILD [NAME...]

A small model of random weights for each row of the table, saved by the library
itself (names, config.json and files are its own): with float32 in one file,
with bfloat16 in several, and, where there are experts, as the library has them
in memory. Weights are bfloat16 numbers, so all of these are one model. Its
logits, computed by the library in float64, are compared with ours: of all
tokens at once and of one after the other. Windows are shorter than the text.
Then the container in int8 (how often the most likely token stays), and the
checkpoint as GGUF and read again; with --llama also by llama.cpp, which
llama_logits.py asks with that Python: all tokens at once and seven at a time.
"""
import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from transformers import (AutoConfig, AutoModelForCausalLM,
                          AutoModelForImageTextToText)

from against import logits

N_TOKENS = 160
WINDOW = 24
LIMIT = 1e-5
# GPT-NeoX, Falcon and MPT have another GELU there; GPT-OSS a rounded ramp; and
# Gemma 3n's deviation is that of a sample.
LLAMA_LIMIT = 2e-3
OTHER_IN_LLAMA = ("GPT-OSS", "Falcon Mamba (tied, other epsilon)",
                  "Gemma 3n (E2B's sizes)", "BitNet b1.58")
OTHER_IN_GGUF = ("Falcon Mamba (tied, other epsilon)",)
GGUF_LIMIT = 5e-5  # with latents: it has one epsilon for all norms

SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=4,
             num_attention_heads=4, num_key_value_heads=2, vocab_size=128,
             max_position_embeddings=256, bos_token_id=1, eos_token_id=2,
             pad_token_id=None)
NO_GROUPS = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
EXPERTS = dict(num_experts=6, num_experts_per_tok=2,
               moe_intermediate_size=48)
LATENT = dict(SIZES, num_key_value_heads=4, kv_lora_rank=24,
              qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=20,
              moe_intermediate_size=48, first_k_dense_replace=1,
              n_routed_experts=8, num_experts_per_tok=3)

LING3 = dict({k: v for k, v in LATENT.items() if k != "n_routed_experts"},
             num_local_experts=8, head_dim=12, layer_group_size=4,
             short_conv_kernel_size=3)

HY4 = dict({k: v for k, v in LATENT.items() if k != "first_k_dense_replace"},
           q_lora_rank=16, index_topk=40, index_head_dim=16, index_n_heads=16,
           indexer_types=["full", "full", "shared", "shared"])
MINIMAX1 = dict(SIZES, num_local_experts=6, num_experts_per_tok=2,
                block_size=32)

GLM5NEXT = dict({k: v for k, v in LATENT.items() if k not in
                 ("first_k_dense_replace", "qk_rope_head_dim")},
                q_lora_rank=16, index_topk=192, index_head_dim=16,
                index_n_heads=2, linear_num_heads=4, linear_head_dim=12,
                mlp_layer_types=["dense"] + ["sparse"] * 3)
GLM5VISION = dict(hidden_size=32, intermediate_size=48, num_heads=2, depth=1,
                  out_hidden_size=64, projection_intermediate_size=48)

MIMO2 = dict(SIZES, num_attention_heads=8, head_dim=24, v_head_dim=20,
             sliding_window=WINDOW, n_routed_experts=8,
             num_experts_per_tok=3, moe_intermediate_size=48)

MINIMAX3 = dict(SIZES, head_dim=24, dense_intermediate_size=80,
                shared_intermediate_size=96, num_local_experts=6,
                num_experts_per_tok=2, rotary_dim=12, rope_parameters=dict(
                    rope_type="default", rope_theta=5e6,
                    partial_rotary_factor=0.5), index_n_heads=2,
                index_head_dim=24, index_block_size=16, index_topk_blocks=10,
                layer_types=["full_attention"] + ["minimax_m3_sparse"] * 3,
                mlp_layer_types=["dense"] + ["sparse"] * 3)

# Few heads of the index would be all 0 for some pools: which is unspecified.
DEEPSEEK4 = dict(
    {k: v for k, v in SIZES.items() if k != "intermediate_size"},
    num_hidden_layers=5, num_key_value_heads=1, head_dim=24, q_lora_rank=32,
    partial_rotary_factor=8 / 24, sliding_window=WINDOW, o_groups=2,
    o_lora_rank=12, index_n_heads=16, index_head_dim=16, index_topk=5,
    compress_rates={"compressed_sparse_attention": 4,
                    "heavily_compressed_attention": 16},
    layer_types=["sliding_attention", "compressed_sparse_attention",
                 "heavily_compressed_attention",
                 "compressed_sparse_attention", "sliding_attention"],
    mlp_layer_types=["hash_moe"] * 2 + ["moe"] * 3, swiglu_limit=1.5,
    moe_intermediate_size=48, n_routed_experts=8, num_experts_per_tok=3,
    n_shared_experts=1, num_nextn_predict_layers=0)
DEEPSEEK4_BY_128 = dict(DEEPSEEK4, index_head_dim=64, compress_rates={
    "compressed_sparse_attention": 4, "heavily_compressed_attention": 128})

LAGUNA = dict(SIZES, **EXPERTS, head_dim=16, num_key_value_heads=2,
              shared_expert_intermediate_size=40, sliding_window=WINDOW)


def rope(kind, **more):
    return {"rope_type": kind, "rope_theta": 10000.0, **more}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=64)
LONG = dict(original_max_position_embeddings=64, rope_parameters=rope(
    "longrope", short_factor=[1 + i / 8 for i in range(8)],
    long_factor=[2 + i / 2 for i in range(8)]))

GPTOSS = dict(SIZES, head_dim=24, sliding_window=WINDOW,
              num_local_experts=6, num_experts_per_tok=2)
GPTOSS_ROPE = dict(rope("yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0,
                        original_max_position_embeddings=64),
                   rope_theta=150000.0)
MINISTRAL_ROPE = dict(rope(
    "yarn", factor=16.0, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
    mscale_all_dim=1.0, original_max_position_embeddings=32,
    llama_4_scaling_beta=0.1), rope_theta=1000000.0)
GEMMA4 = dict(SIZES, head_dim=24, global_head_dim=32, sliding_window=WINDOW,
              num_hidden_layers=8, vocab_size_per_layer_input=128,
              final_logit_softcapping=30.0,
              layer_types=["sliding_attention", "sliding_attention",
                           "sliding_attention", "full_attention"] * 2)
GEMMA3N = dict(SIZES, head_dim=24, sliding_window=WINDOW, num_hidden_layers=8,
               intermediate_size=[96] * 8, num_kv_shared_layers=4,
               hidden_size_per_layer_input=16, vocab_size_per_layer_input=120,
               laurel_rank=12, altup_num_inputs=3,
               activation_sparsity_pattern=[0.9] * 3 + [0.0] * 5,
               layer_types=["sliding_attention", "sliding_attention",
                            "sliding_attention", "full_attention"] * 2)
MUSE = dict(text_config=dict(SIZES, num_hidden_layers=6, head_dim=24,
    sliding_window=WINDOW, rope_parameters=dict(rope_type="default",
    rope_theta=10000.0)), out_hidden_size=128, projector_hidden_size=32,
    vision_config=dict(hidden_size=32, intermediate_size=32,
    num_hidden_layers=1, num_attention_heads=2, patch_size=14))
# What sees images is as small as it may be.
SEES = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
            num_attention_heads=2, image_size=28, patch_size=14)
SEES_QWEN = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2,
                 patch_size=14, out_hidden_size=64)
SECTIONS = {"rope_type": "default", "rope_theta": 1000000.0,
            "mrope_section": [2, 3, 3]}
DELTA = dict(SIZES, head_dim=24, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_key_head_dim=24,
             linear_value_head_dim=24)
DELTA_SECTIONS = {"rope_type": "default", "rope_theta": 10000000.0,
                  "partial_rotary_factor": 0.5, "mrope_section": [2, 2, 2],
                  "mrope_interleaved": True}
MAMBA = dict(hidden_size=64, num_hidden_layers=3, vocab_size=128,
             bos_token_id=1, eos_token_id=2, pad_token_id=None)
JAMBA = dict(SIZES, num_experts=6, num_experts_per_tok=2,
             attn_layer_period=4, attn_layer_offset=1, num_hidden_layers=6)
KIMI = dict(SIZES, num_key_value_heads=4, num_hidden_layers=6,
            kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8,
            v_head_dim=20, linear_num_heads=4, linear_head_dim=20,
            num_local_experts=8, num_experts_per_tok=3,
            moe_intermediate_size=48)
SHARED = dict(EXPERTS, shared_expert_intermediate_size=80)

# Of the end of sequences, 561, there are two among the tokens that are computed
# with.
QWEN4 = dict(DELTA, **SHARED, hc_lowrank=12,
             ple_layer_ids=[2], ple_embed_dim=32, ngram_size=3,
             heads_per_ngram=2, ngram_vocab_size_base=50,
             make_ngram_vocab_size_divisible_by=8, split_ngram_parts=8,
             indexer_n_heads=2, indexer_kv_heads=1, indexer_head_dim=16,
             indexer_budget=192, indexer_compress_ratio=16,
             rope_parameters=DELTA_SECTIONS)
QWEN4["vocab_size"] = 1200

# What a row is called in the list, the library's type, its configuration. The
# name without its comment is that of README.
TABLE = [
    ("Llama", "llama", SIZES),
    ("Llama (tied, biases)", "llama", dict(
        SIZES, tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
        head_dim=24)),
    ("Llama (llama3)", "llama", dict(SIZES, rope_parameters=LLAMA3)),
    ("Llama (linear)", "llama",
     dict(SIZES, rope_parameters=rope("linear", factor=4.0))),
    ("Llama (dynamic)", "llama",
     dict(SIZES, rope_parameters=rope("dynamic", factor=4.0),
          max_position_embeddings=64)),
    ("Llama (yarn)", "llama", dict(SIZES, rope_parameters=YARN)),
    ("Mistral", "mistral", dict(SIZES, sliding_window=WINDOW)),
    ("Mistral (no window)", "mistral", dict(SIZES, sliding_window=None)),
    ("Mixtral", "mixtral", dict(SIZES, num_local_experts=6,
                                num_experts_per_tok=2)),
    ("Mixtral (window)", "mixtral", dict(
        SIZES, num_local_experts=5, num_experts_per_tok=3,
        sliding_window=WINDOW)),
    ("Phi 3.5 MoE", "phimoe", dict(
        SIZES, num_local_experts=6, router_jitter_noise=0.1,
        attention_bias=True, lm_head_bias=True)),
    # The class of 5.24 keeps the short factors behind the original context.
    ("Phi 3.5 MoE (longrope, window)", "phimoe", dict(
        SIZES, num_local_experts=5, router_jitter_noise=0.25, head_dim=16,
        sliding_window=WINDOW, original_max_position_embeddings=192,
        rope_parameters=dict(rope(
            "longrope", short_factor=[1 + i / 8 for i in range(8)],
            long_factor=[2 + i / 2 for i in range(8)],
            original_max_position_embeddings=192, short_mscale=1.2431,
            long_mscale=1.2431)))),
    ("Qwen 2", "qwen2", dict(SIZES)),
    ("Qwen 2 (window, tied)", "qwen2", dict(
        SIZES, use_sliding_window=True, sliding_window=WINDOW,
        max_window_layers=2, tie_word_embeddings=True)),
    ("Qwen 2 MoE", "qwen2_moe", dict(
        SIZES, **EXPERTS, shared_expert_intermediate_size=80)),
    ("Qwen 2 MoE (dense layers)", "qwen2_moe", dict(
        SIZES, **EXPERTS, shared_expert_intermediate_size=80,
        norm_topk_prob=True, mlp_only_layers=[2])),
    ("Qwen 3", "qwen3", dict(SIZES, head_dim=24)),
    ("Qwen 3 MoE", "qwen3_moe", dict(SIZES, **EXPERTS, head_dim=24,
                                     norm_topk_prob=True)),
    ("Qwen 3 MoE (dense layers)", "qwen3_moe", dict(
        SIZES, **EXPERTS, head_dim=24, decoder_sparse_step=2)),
    ("OLMoE", "olmoe", dict(SIZES, num_experts=6, num_experts_per_tok=2,
                            num_key_value_heads=4)),
    ("Gemma", "gemma", dict(SIZES, head_dim=24)),
    ("Gemma 2", "gemma2", dict(SIZES, head_dim=24, sliding_window=WINDOW,
                               query_pre_attn_scalar=24)),
    ("Gemma 2 (27B's scale)", "gemma2", dict(
        SIZES, head_dim=24, sliding_window=WINDOW,
        query_pre_attn_scalar=16)),
    ("Gemma 3", "gemma3_text", dict(
        SIZES, head_dim=24, sliding_window=WINDOW, num_hidden_layers=7,
        query_pre_attn_scalar=24)),
    ("Gemma 3 (linear)", "gemma3_text", dict(
        SIZES, head_dim=24, sliding_window=WINDOW, num_hidden_layers=7,
        query_pre_attn_scalar=24, rope_parameters={
            "sliding_attention": rope("default"),
            "full_attention": dict(rope("linear", factor=8.0),
                                   rope_theta=1e6)})),
    ("Gemma 3 (with images)", "gemma3", dict(
        text_config=dict(SIZES, head_dim=24, sliding_window=WINDOW),
        vision_config=dict(hidden_size=32, intermediate_size=32,
                           num_hidden_layers=1, num_attention_heads=2,
                           image_size=28, patch_size=14),
        mm_tokens_per_image=4)),
    ("Gemma 3n", "gemma3n_text", dict(GEMMA3N)),
    # llama.cpp knows these sizes alone.
    ("Gemma 3n (E2B's sizes)", "gemma3n_text", dict(
        GEMMA3N, num_hidden_layers=25, num_kv_shared_layers=5,
        hidden_size_per_layer_input=256, laurel_rank=64, altup_num_inputs=4,
        vocab_size_per_layer_input=128, activation_sparsity_pattern=None,
        intermediate_size=2048, layer_types=None)),
    ("Gemma 3n (two streams, nothing shared)", "gemma3n_text", dict(
        GEMMA3N, num_kv_shared_layers=0, altup_num_inputs=2,
        vocab_size_per_layer_input=160, attention_bias=True,
        activation_sparsity_pattern=None,
        layer_types=["sliding_attention"] * 8)),
    ("Gemma 4 (E2B)", "gemma4_text", dict(
        GEMMA4, hidden_size_per_layer_input=16, num_kv_shared_layers=4,
        use_double_wide_mlp=True)),
    ("Gemma 4 (E4B)", "gemma4_text", dict(
        GEMMA4, hidden_size_per_layer_input=24, num_kv_shared_layers=4)),
    ("Gemma 4 (31B)", "gemma4_text", dict(
        GEMMA4, hidden_size_per_layer_input=0, attention_k_eq_v=True,
        num_key_value_heads=4, num_global_key_value_heads=1)),
    ("Gemma 4 (26B-A4B)", "gemma4_text", dict(
        GEMMA4, hidden_size_per_layer_input=0, attention_k_eq_v=True,
        num_global_key_value_heads=1, enable_moe_block=True, num_experts=8,
        top_k_experts=3, moe_intermediate_size=40)),
    ("Gemma 4 (with images)", "gemma4", dict(
        text_config=dict(GEMMA4, hidden_size_per_layer_input=16,
                         num_kv_shared_layers=4, pad_token_id=0),
        vision_config=dict(hidden_size=32, intermediate_size=32,
                           num_hidden_layers=1, num_attention_heads=2,
                           num_key_value_heads=2, head_dim=16,
                           position_embedding_size=16),
        audio_config=None)),
    ("Gemma 4 (12B)", "gemma4_unified", dict(
        text_config=dict(GEMMA4, attention_k_eq_v=True, pad_token_id=0,
                         num_global_key_value_heads=1),
        audio_config=None, vision_config=None)),
    ("Phi 1, 1.5, 2", "phi", dict(NO_GROUPS)),
    ("Phi 1, 1.5, 2 (norms of queries)", "phi",
     dict(SIZES, qk_layernorm=True, partial_rotary_factor=0.25)),
    ("Phi 3, 3.5, 4", "phi3", dict(SIZES)),
    ("Phi 3, 3.5, 4 (window)", "phi3", dict(SIZES, sliding_window=WINDOW)),
    ("Phi 3, 3.5, 4 (longrope)", "phi3", dict(SIZES, **LONG)),
    ("GPT-2", "gpt2", dict(
        n_embd=64, n_layer=4, n_head=4, n_positions=256, vocab_size=128,
        bos_token_id=1, eos_token_id=2)),
    ("GPT-NeoX, Pythia", "gpt_neox", dict(NO_GROUPS)),
    ("GPT-NeoX, Pythia (sequential)", "gpt_neox", dict(
        NO_GROUPS, use_parallel_residual=False)),
    ("Falcon (7B)", "falcon", dict(
        NO_GROUPS, multi_query=True, parallel_attn=True, bias=False,
        alibi=False)),
    ("Falcon (40B)", "falcon", dict(
        NO_GROUPS, new_decoder_architecture=True, num_kv_heads=2,
        bias=False, alibi=False)),
    ("Falcon (11B)", "falcon", dict(
        NO_GROUPS, new_decoder_architecture=True, num_kv_heads=2,
        num_ln_in_parallel_attn=1, bias=False, alibi=False)),
    ("Falcon (RW)", "falcon", dict(
        NO_GROUPS, multi_query=False, parallel_attn=False, bias=True,
        alibi=True)),
    ("StableLM", "stablelm", dict(SIZES)),
    ("StableLM (12B)", "stablelm", dict(
        SIZES, use_parallel_residual=True, qk_layernorm=True,
        use_qkv_bias=True)),
    ("OLMo", "olmo", dict(SIZES, clip_qkv=1.5)),
    ("OLMo 2", "olmo2", dict(SIZES)),
    ("OLMo 3", "olmo3", dict(SIZES, sliding_window=WINDOW)),
    ("OLMo 3 (yarn)", "olmo3", dict(
        SIZES, sliding_window=WINDOW,
        rope_parameters=dict(YARN, rope_theta=500000.0))),
    ("Granite", "granite", dict(
        SIZES, embedding_multiplier=6.0, residual_multiplier=0.3,
        attention_multiplier=0.1, logits_scaling=3.0)),
    ("Cohere", "cohere", dict(SIZES)),
    ("Cohere (norms of queries)", "cohere",
     dict(SIZES, use_qk_norm=True, logit_scale=0.5)),
    ("Cohere (norms of queries, 64 layers)", "cohere",
     dict(SIZES, use_qk_norm=True, logit_scale=0.5, num_hidden_layers=64)),
    ("DeepSeek 2", "deepseek_v2", dict(
        LATENT, q_lora_rank=None, n_shared_experts=2)),
    ("DeepSeek 2 (26 layers)", "deepseek_v2", dict(
        LATENT, q_lora_rank=None, n_shared_experts=2, num_hidden_layers=26)),
    ("DeepSeek 2 (groups)", "deepseek_v2", dict(
        LATENT, q_lora_rank=32, n_shared_experts=1, n_group=4, topk_group=2,
        topk_method="group_limited_greedy", routed_scaling_factor=1.5)),
    ("DeepSeek 3", "deepseek_v3", dict(
        LATENT, q_lora_rank=32, n_shared_experts=1, n_group=4,
        topk_group=2)),
    ("DeepSeek 3 (yarn)", "deepseek_v3", dict(
        LATENT, q_lora_rank=32, n_shared_experts=1, n_group=4, topk_group=2,
        rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=1.0))),
    ("SmolLM 3", "smollm3", dict(SIZES)),
    ("SmolLM 3 (window)", "smollm3", dict(
        SIZES, use_sliding_window=True, sliding_window=WINDOW)),
    ("StarCoder 2", "starcoder2", dict(SIZES)),
    ("StarCoder 2 (window)", "starcoder2", dict(
        SIZES, sliding_window=WINDOW, use_bias=False,
        tie_word_embeddings=False)),
    ("GPT-J", "gptj", dict(
        n_embd=64, n_layer=4, n_head=4, n_positions=256, vocab_size=128,
        rotary_dim=12, bos_token_id=1, eos_token_id=2)),
    ("CodeGen", "codegen", dict(
        n_embd=64, n_layer=4, n_head=4, n_positions=256, vocab_size=128,
        rotary_dim=12, bos_token_id=1, eos_token_id=2)),
    ("CodeGen (6 heads)", "codegen", dict(
        n_embd=72, n_layer=3, n_head=6, n_positions=256, vocab_size=128,
        rotary_dim=8, bos_token_id=1, eos_token_id=2)),
    ("Persimmon", "persimmon", dict(NO_GROUPS, rope_parameters=dict(
        rope("default"), rope_theta=25000.0, partial_rotary_factor=0.5))),
    ("Persimmon (no norms of queries)", "persimmon", dict(
        NO_GROUPS, qk_layernorm=False)),
    ("DBRX", "dbrx", dict(
        d_model=64, n_layers=3, n_heads=4, max_seq_len=256, vocab_size=128,
        attn_config=dict(clip_qkv=1.5, kv_n_heads=2, rope_theta=10000.0),
        ffn_config=dict(
            ffn_hidden_size=48, moe_num_experts=6, moe_top_k=2))),
    ("DBRX (as they are, square)", "dbrx", dict(
        d_model=48, n_layers=3, n_heads=4, max_seq_len=256, vocab_size=128,
        attn_config=dict(clip_qkv=8.0, kv_n_heads=1, rope_theta=10000.0),
        ffn_config=dict(
            ffn_hidden_size=48, moe_num_experts=5, moe_top_k=3,
            moe_normalize_expert_weights=None))),
    ("MPT", "mpt", dict(
        d_model=64, n_layers=4, n_heads=4, max_seq_len=256,
        vocab_size=128)),
    ("MPT (clip_qkv, 6 heads)", "mpt", dict(
        d_model=96, n_layers=4, n_heads=6, max_seq_len=256, vocab_size=128,
        attn_config=dict(clip_qkv=1.5))),
    ("BLOOM", "bloom", dict(
        hidden_size=64, n_layer=4, n_head=4, vocab_size=128)),
    ("BLOOM (6 heads)", "bloom", dict(
        hidden_size=96, n_layer=4, n_head=6, vocab_size=128)),
    ("OPT", "opt", dict(
        NO_GROUPS, ffn_dim=96, word_embed_proj_dim=64)),
    ("OPT (no biases)", "opt", dict(
        NO_GROUPS, ffn_dim=96, word_embed_proj_dim=64, enable_bias=False,
        layer_norm_elementwise_affine=False)),
    ("GPT-OSS", "gpt_oss", dict(GPTOSS, rope_parameters=dict(GPTOSS_ROPE,
        truncate=False))),
    ("GPT-OSS (a rounded ramp)", "gpt_oss", dict(GPTOSS,
        rope_parameters=GPTOSS_ROPE)),
    ("Llama 4", "llama4_text", dict(SIZES, num_hidden_layers=5, head_dim=24,
        intermediate_size_mlp=80, num_local_experts=6,
        attention_chunk_size=WINDOW, floor_scale=32, attn_scale=0.3,
        interleave_moe_layer_step=1)),
    ("Llama 4 (interleaved)", "llama4_text", dict(SIZES,
        num_hidden_layers=5, head_dim=24, intermediate_size_mlp=80,
        num_local_experts=6, num_experts_per_tok=2,
        attention_chunk_size=WINDOW,
        floor_scale=32, attn_scale=0.3, interleave_moe_layer_step=2,
        use_qk_norm=False, rope_parameters=LLAMA3)),
    ("GLM 4.5", "glm4_moe", dict(SIZES, head_dim=24,
        moe_intermediate_size=48, n_routed_experts=8, num_experts_per_tok=3,
        n_shared_experts=1, use_qk_norm=True, attention_bias=True,
        routed_scaling_factor=1.5, num_nextn_predict_layers=0)),
    ("GLM 4.5 (groups)", "glm4_moe", dict(SIZES, head_dim=24,
        moe_intermediate_size=48, n_routed_experts=8, num_experts_per_tok=3,
        n_shared_experts=1, n_group=4, topk_group=2,
        num_nextn_predict_layers=0)),
    ("MiniMax M2", "minimax_m2", dict(SIZES, head_dim=24,
        num_local_experts=6, num_experts_per_tok=2, rotary_dim=12)),
    ("Kimi K2", "deepseek_v3", dict(LATENT, q_lora_rank=32,
        n_shared_experts=1, n_group=1, topk_group=1)),
    ("Ministral 3", "ministral3", dict(SIZES, head_dim=24,
        rope_parameters=MINISTRAL_ROPE)),
    ("Ministral 8B", "ministral", dict(SIZES, head_dim=24,
        sliding_window=WINDOW, layer_types=["full_attention"] +
        ["sliding_attention"] * 3)),
    ("Mistral Small 4", "mistral4", dict(
        LATENT, q_lora_rank=32, n_shared_experts=1, norm_topk_prob=True,
        rope_parameters=dict(MINISTRAL_ROPE, mscale=1.0, mscale_all_dim=1.0))),
    ("Mistral Small 4 (groups)", "mistral4", dict(
        LATENT, q_lora_rank=None, n_shared_experts=2, n_group=4, topk_group=2,
        norm_topk_prob=True, routed_scaling_factor=2.5,
        rope_parameters=dict(MINISTRAL_ROPE, mscale=1.0, mscale_all_dim=1.0))),
    ("Mistral Large 4 (text)", "mistral_large4", dict(text_config=dict(
        LATENT, n_shared_experts=1, n_group=4, topk_group=2, index_topk=192,
        index_head_dim=16, index_n_heads=2, rope_parameters=dict(
            YARN, attention_factor=1.0)), vision_config=dict(
        SEES, model_type="pixtral", head_dim=16), image_token_index=5)),
    ("dots3 note (text)", "dots3_note", dict(
        text_config=dict({k: v for k, v in LATENT.items()
                          if k != "num_hidden_layers"},
            num_hidden_layers=6, q_lora_rank=16, head_dim=24,
            swa_num_attention_heads=6, swa_num_key_value_heads=6,
            swa_q_lora_rank=16, swa_kv_lora_rank=32, swa_head_dim=28,
            swa_qk_nope_head_dim=20, swa_v_head_dim=12,
            sliding_window_size=WINDOW, index_topk=192, index_head_dim=16,
            index_n_heads=2, moe_shared_expert_intermediate_size=40,
            rope_theta=80000.0, swa_rope_theta=5000.0),
        vision_config=dict(hidden_size=32, intermediate_size=32,
            num_hidden_layers=1, num_attention_heads=2, adapter_in_dim=32,
            adapter_out_dim=64, pyramid_num_routed=[-1]),
        audio_config=dict(hidden_size=32, intermediate_size=32,
            num_hidden_layers=1, num_attention_heads=2, feature_size=16,
            adapter_input_size=32, adapter_out_dim=64,
            downsample_hidden_size=16))),
    ("Seed-OSS", "seed_oss", dict(SIZES, head_dim=24)),
    ("Seed-OSS (biases)", "seed_oss", dict(SIZES, head_dim=24,
        attention_bias=True, attention_out_bias=True, mlp_bias=True,
        residual_dropout=0.0, attention_dropout=0.0)),
    ("Phi-4-mini", "phi3", dict(SIZES, partial_rotary_factor=0.75,
        tie_word_embeddings=True, original_max_position_embeddings=64,
        rope_parameters=dict(rope("longrope", short_factor=[1 + i / 8 for i in
        range(6)], long_factor=[2 + i / 2 for i in range(6)],
        partial_rotary_factor=0.75)))),
    ("InternLM 3", "internlm3", dict(SIZES, head_dim=24)),
    ("InternLM 3 (biases)", "internlm3", dict(SIZES, head_dim=24,
        qkv_bias=True, bias=True)),
    ("Hunyuan", "hunyuan_v1_dense", dict(SIZES, head_dim=24)),
    ("Hunyuan (alpha)", "hunyuan_v1_dense", dict(SIZES, head_dim=24,
        rope_parameters=dict(rope("dynamic", alpha=50.0, factor=1.0)))),
    ("Hunyuan MoE", "hunyuan_v1_moe", dict(SIZES, head_dim=24,
        num_experts=6, moe_topk=2)),
    ("ERNIE 4.5", "ernie4_5", dict(SIZES, head_dim=24)),
    ("ERNIE 4.5 (biases)", "ernie4_5", dict(SIZES, head_dim=24,
        use_bias=True)),
    ("ERNIE 4.5 MoE", "ernie4_5_moe", dict(SIZES, moe_intermediate_size=48,
        moe_num_experts=6, moe_k=2, moe_num_shared_experts=2)),
    ("Nemotron", "nemotron", dict(SIZES)),
    ("Nemotron (other heads)", "nemotron", dict(SIZES, head_dim=24)),
    ("Command A (Cohere 2)", "cohere2", dict(SIZES, sliding_window=WINDOW)),
    ("Muse Glimmer (text)", "muse_glimmer", MUSE),
    ("Muse Glimmer (text, other layers)", "muse_glimmer", dict(MUSE,
        text_config=dict(MUSE["text_config"], post_norm_eps=0.01,
        layer_rope_theta=[1e4, 0, 0, 1e4, 1e4, 1e4]))),
    ("text of Cohere Compass", "cohere_compass", dict(text_config=dict(SIZES,
        logit_scale=0.25, sliding_window=WINDOW, layer_types=[
        "sliding_attention", "full_attention"] * 2, rope_parameters=dict(
        full_attention=None, sliding_attention=dict(SECTIONS))),
        vision_config=dict(SEES_QWEN, deepstack_visual_indexes=[0]))),
    ("Cohere Compass", "cohere_compass_text", dict(SIZES,
        sliding_window=WINDOW, layer_types=["full_attention",
        "sliding_attention"] * 2, rope_parameters=dict(full_attention=dict(
        SECTIONS), sliding_attention=dict(SECTIONS, rope_theta=3e4)))),
    ("EXAONE 4", "exaone4", dict(SIZES, head_dim=16,
        sliding_window=WINDOW)),
    ("EXAONE 4 (64 layers)", "exaone4", dict(SIZES, head_dim=16,
        sliding_window=WINDOW, num_hidden_layers=64)),
    ("EXAONE 4 (no window)", "exaone4", dict(SIZES, head_dim=16,
        sliding_window=None, layer_types=["full_attention"]*4)),
    ("Granite with experts", "granitemoe", dict(SIZES, num_local_experts=6,
        num_experts_per_tok=2, embedding_multiplier=6.0,
        residual_multiplier=0.3, attention_multiplier=0.1,
        logits_scaling=3.0)),
    ("Granite with experts (shared)", "granitemoeshared", dict(SIZES,
        num_local_experts=6, num_experts_per_tok=2,
        shared_intermediate_size=48,
        embedding_multiplier=6.0, residual_multiplier=0.3,
        attention_multiplier=0.1, logits_scaling=3.0)),
    ("dots1", "dots1", dict(SIZES, num_key_value_heads=4, head_dim=24, moe_intermediate_size=48,
        n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1,
        n_group=1, topk_group=1, first_k_dense_replace=1)),
    ("GLM 4", "glm4", dict(SIZES, head_dim=24)),
    ("GLM 4 (first)", "glm", dict(SIZES, head_dim=16)),
    ("GLM 4 (first, other heads)", "glm", dict(SIZES, head_dim=24)),
    ("Arcee", "arcee", dict(SIZES, head_dim=24)),
    ("GLM 4.7 Flash", "glm4_moe_lite", {k: v for k, v in LATENT.items()
        if k != "first_k_dense_replace"}),
    ("DeepSeek V3.2", "deepseek_v32", dict({k: v for k, v in LATENT.items()
        if k != "first_k_dense_replace"}, q_lora_rank=16, n_group=4,
        topk_group=2, first_k_dense_replace=1, index_topk=40,
        index_head_dim=64, index_n_heads=16)),
    ("DeepSeek V3.2 (yarn)", "deepseek_v32", dict(LATENT, q_lora_rank=16,
        n_group=1, topk_group=1, index_topk=33, index_head_dim=64,
        index_n_heads=16, rope_parameters=dict(YARN, mscale=1.0,
                                              mscale_all_dim=1.0))),
    ("DeepSeek V4", "deepseek_v4", DEEPSEEK4),
    ("DeepSeek V4 (yarn)", "deepseek_v4", dict(DEEPSEEK4,
        rope_parameters=YARN)),
    # As GGUF can say it.
    ("DeepSeek V4 (pools of 128)", "deepseek_v4", DEEPSEEK4_BY_128),
    ("DeepSeek V4 (pools of 128, yarn)", "deepseek_v4", dict(DEEPSEEK4_BY_128,
        rope_parameters=YARN)),
    ("GLM 5", "glm_moe_dsa", dict(LATENT, q_lora_rank=16, index_topk=40,
        index_head_dim=64, index_n_heads=16,
        indexer_types=["full", "full", "shared", "shared"])),
    ("Youtu", "youtu", {k: v for k, v in dict(LATENT, q_lora_rank=16).items()
        if "expert" not in k and not k.startswith(("moe", "first"))}),
    ("Solar Open", "solar_open", dict({k: v for k, v in SIZES.items()
        if k != "intermediate_size"}, head_dim=24, n_routed_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=48)),
    ("K-EXAONE", "exaone_moe", dict(SIZES, **EXPERTS, head_dim=24,
        sliding_window=WINDOW)),
    ("CWM", "cwm", dict(SIZES, head_dim=24, sliding_window=WINDOW,
        rope_parameters=LLAMA3)),
    ("Helium", "helium", dict(SIZES, head_dim=16)),
    ("VaultGemma", "vaultgemma", dict(SIZES, head_dim=24,
        sliding_window=WINDOW, query_pre_attn_scalar=20)),
    ("Jais 2", "jais2", dict(SIZES, head_dim=24)),
    ("Granite 4", "granitemoehybrid", dict(SIZES, num_local_experts=0,
        shared_intermediate_size=80, layer_types=["full_attention"] * 4,
        position_embedding_type="rope", embedding_multiplier=3.0,
        logits_scaling=4.0, residual_multiplier=0.3,
        attention_multiplier=0.1, mamba_n_heads=4)),
    ("Granite 4 (experts)", "granitemoehybrid", dict(SIZES,
        num_local_experts=4, shared_intermediate_size=80,
        layer_types=["full_attention"] * 4, attention_multiplier=0.1,
        mamba_n_heads=4)),
    ("Granite 4 (experts, turning)", "granitemoehybrid", dict(SIZES,
        num_local_experts=4, shared_intermediate_size=80,
        position_embedding_type="rope", layer_types=["full_attention"] * 4,
        attention_multiplier=0.1, mamba_n_heads=4)),
    ("StarCoder", "gpt_bigcode", dict(n_embd=64, n_layer=3, n_head=4,
        n_positions=256, vocab_size=128)),
    ("StarCoder (all heads)", "gpt_bigcode", dict(n_embd=64, n_layer=3,
        n_head=4, n_positions=256, vocab_size=128, multi_query=False)),
    ("Trinity", "afmoe", dict(SIZES, **EXPERTS, head_dim=24,
        num_dense_layers=1, num_shared_experts=1, mup_enabled=True,
        route_scale=2.5, sliding_window=WINDOW)),
    ("Trinity (other layers)", "afmoe", dict(SIZES, **EXPERTS, head_dim=24,
        num_dense_layers=2, num_shared_experts=2, mup_enabled=False,
        sliding_window=WINDOW, layer_types=["full_attention",
        "sliding_attention", "full_attention", "sliding_attention"])),
    ("Hunyuan 3", "hy_v3", dict(SIZES, **EXPERTS, head_dim=24)),
    ("Hunyuan 3 (other layers)", "hy_v3", dict(SIZES, **EXPERTS,
        head_dim=16, num_shared_experts=2, router_scaling_factor=1.5,
        mlp_layer_types=["sparse", "dense", "dense", "sparse"])),
    ("Mellum 2", "mellum", dict(SIZES, **EXPERTS, head_dim=24,
        sliding_window=WINDOW, layer_types=["sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention"],
        rope_parameters={"full_attention": YARN, "sliding_attention":
                         rope("default")})),
    ("Mellum 2 (two bases)", "mellum", dict(SIZES, **EXPERTS, head_dim=16,
        sliding_window=WINDOW, layer_types=["full_attention",
        "sliding_attention", "sliding_attention", "full_attention"],
        mlp_layer_types=["dense", "sparse", "sparse", "dense"])),
    ("Mellum 2 (no window)", "mellum", dict(SIZES, **EXPERTS, head_dim=16,
        norm_topk_prob=False)),
    ("Kolibri 1", "kolibri1", dict({k: v for k, v in SIZES.items()
        if k != "intermediate_size"}, head_dim=24, num_local_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=48,
        shared_expert_intermediate_size=40, sliding_window=WINDOW)),
    ("Kolibri 1 (shares)", "kolibri1", dict({k: v for k, v in SIZES.items()
        if k != "intermediate_size"}, head_dim=16, num_local_experts=6,
        num_experts_per_tok=3, moe_intermediate_size=48,
        shared_expert_intermediate_size=24, norm_topk_prob=True,
        sliding_window=WINDOW, layer_types=["full_attention",
        "sliding_attention", "sliding_attention", "full_attention"])),
    ("Flint", "flint", dict(SIZES, **EXPERTS, head_dim=24,
        shared_expert_intermediate_size=40, sliding_window=WINDOW)),
    ("Flint (other layers)", "flint", dict(SIZES, **EXPERTS, head_dim=16,
        shared_expert_intermediate_size=24, mlp_only_layers=[2],
        attention_bias=True, norm_topk_prob=False, sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention",
                     "sliding_attention", "sliding_attention"])),
    ("FlexOlmo", "flex_olmo", dict(NO_GROUPS, num_experts=5,
        num_experts_per_tok=3)),
    ("FlexOlmo (renormalised)", "flex_olmo", dict(SIZES, num_experts=5,
        num_experts_per_tok=2, norm_topk_prob=True)),
    ("HyperCLOVA X", "hyperclovax", dict(SIZES, embedding_multiplier=6.0,
        logits_scaling=0.25, residual_multiplier=0.5,
        attention_multiplier=0.1)),
    ("HyperCLOVA X (plain)", "hyperclovax", dict(SIZES, head_dim=24,
        use_post_norm=False, attention_bias=True, mlp_bias=True)),
    ("MiniCPM 3", "minicpm3", dict({k: v for k, v in LATENT.items()
        if "expert" not in k and not k.startswith(("moe", "first", "v_"))},
        q_lora_rank=16)),
    ("MiniCPM 3 (longrope)", "minicpm3", dict({k: v for k, v in LATENT.items()
        if "expert" not in k and not k.startswith(("moe", "first"))},
        q_lora_rank=None, scale_emb=3, scale_depth=0.7, dim_model_base=32,
        original_max_position_embeddings=64, rope_parameters=rope(
            "longrope", short_factor=[1 + i / 8 for i in range(4)],
            long_factor=[2 + i / 2 for i in range(4)]))),
    ("Command A with experts", "cohere2_moe", dict(SIZES, head_dim=16,
        num_experts=6, num_experts_per_tok=2, sliding_window=WINDOW)),
    ("Command A with experts (dense layers)", "cohere2_moe", dict(SIZES,
        head_dim=16, num_experts=6, num_experts_per_tok=3,
        sliding_window=WINDOW, expert_selection_fn="sigmoid",
        num_shared_experts=2,
        first_k_dense_replace=1, prefix_dense_intermediate_size=80,
        sliding_window_pattern=2, rms_norm_eps=1e-5)),
    ("Granite with windows", "granite_swa", dict(SIZES,
        sliding_window=WINDOW, embedding_multiplier=3.0, logits_scaling=4.0,
        residual_multiplier=0.3, attention_multiplier=0.1)),
    ("IQuest Coder", "iquestcoder", dict(SIZES, head_dim=24)),
    ("Sarvam", "sarvam_moe", dict(SIZES, head_dim=24, n_routed_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=48,
        first_k_dense_replace=1)),
    ("Sarvam (latent)", "sarvam_mla", dict(LATENT)),
    ("MiMo V2 Flash", "mimo_v2_flash", dict(MIMO2, num_hidden_layers=7)),
    ("MiMo V2 Flash (unscaled, groups)", "mimo_v2_flash", dict(MIMO2,
        attention_value_scale=None, sliding_window=WINDOW - 1, head_dim=20,
        n_group=4, topk_group=2, routed_scaling_factor=2.5,
        layer_types=["sliding_attention", "full_attention"] * 2,
        mlp_layer_types=["sparse"] * 3 + ["dense"], rope_parameters={
            "full_attention": dict(rope("default"),
                                   partial_rotary_factor=0.5),
            "sliding_attention": dict(rope("default"), rope_theta=500000.0,
                                      partial_rotary_factor=0.5)})),
    ("Laguna", "laguna", dict(LAGUNA, num_hidden_layers=5, gating="per-head",
        num_attention_heads_per_layer=[4, 8, 6, 8, 4],
        layer_types=["full_attention"] + ["sliding_attention"] * 3 +
        ["full_attention"], moe_routed_scaling_factor=2.5,
        rope_parameters={
            "full_attention": dict(YARN, rope_theta=500000.0, factor=32.0,
                                   partial_rotary_factor=0.5,
                                   attention_factor=1.0),
            "sliding_attention": dict(rope("default"),
                                      partial_rotary_factor=1.0)})),
    ("Laguna (other parts)", "laguna", dict(LAGUNA, gating=True,
        num_attention_heads_per_layer=[2, 6, 4, 8],
        layer_types=["full_attention", "sliding_attention"] * 2,
        mlp_layer_types=["dense"] * 2 + ["sparse"] * 2,
        rope_parameters={
            "full_attention": dict(rope("default"), rope_theta=500000.0,
                                   partial_rotary_factor=1.0),
            "sliding_attention": dict(rope("default"), rope_theta=20000.0,
                                      partial_rotary_factor=0.5)})),
    ("Laguna (all full)", "laguna", dict(LAGUNA, gating="per-element",
        rope_parameters={
            "full_attention": dict(YARN, rope_theta=500000.0,
                                   partial_rotary_factor=0.5)})),
    ("Laguna (capped)", "laguna", dict(LAGUNA,
        moe_router_logit_softcapping=2.0, num_attention_heads=6)),
    # As its makers say it.
    ("MiMo V2 Flash (theirs)", "mimo_v2_flash", dict(MIMO2,
        num_hidden_layers=6, hybrid_layer_pattern=[0, 1, 1, 1, 1, 0],
        moe_layer_freq=[0, 1, 1, 1, 1, 1], layernorm_epsilon=1e-5,
        partial_rotary_factor=0.334, rope_theta=5000000,
        swa_rope_theta=10000, swa_head_dim=24, swa_v_head_dim=20,
        swa_num_attention_heads=8, swa_num_key_value_heads=4,
        routed_scaling_factor=None, n_shared_experts=None,
        scoring_func="sigmoid", topk_method="noaux_tc",
        add_full_attention_sink_bias=False,
        add_swa_attention_sink_bias=True, sliding_window=WINDOW,
        sliding_window_size=WINDOW)),
    ("Granite with windows (two bases)", "granite_swa", dict(SIZES,
        sliding_window=WINDOW, attention_multiplier=0.25,
        layer_types=["sliding_attention", "full_attention"] * 2,
        layer_rope_theta=[10000, 500000, 0, 500000])),
    ("Granite with windows and experts", "granitemoe_swa", dict(SIZES,
        num_local_experts=6, num_experts_per_tok=2, sliding_window=WINDOW,
        shared_intermediate_size=48, attention_multiplier=0.25,
        layer_rope_theta=[0, 10000, 10000, 10000])),
    ("LFM 3", "lfm3", dict(SIZES, head_dim=16, num_hidden_layers=8,
        sliding_window=WINDOW)),
    ("LFM 3 (bare)", "lfm3", dict(SIZES, head_dim=24, sliding_window=WINDOW,
        use_sandwich_norm=False, use_attention_gate=False, conv_L_cache=3,
        layer_types=["sliding_attention", "conv", "full_attention",
                     "conv"])),
    ("GPT-Neo", "gpt_neo", dict(hidden_size=64, num_layers=4, num_heads=4,
        max_position_embeddings=256, vocab_size=128, window_size=WINDOW,
        attention_types=[[["global", "local"], 2]])),
    ("GPT-Neo (other layers)", "gpt_neo", dict(hidden_size=64, num_layers=4,
        num_heads=2, max_position_embeddings=256, vocab_size=128,
        window_size=WINDOW, intermediate_size=96,
        attention_types=[[["local"], 1], [["global", "local", "local"], 1]])),
    ("Falcon-H1", "falcon_h1", dict(SIZES, head_dim=16, mamba_d_ssm=96,
        mamba_n_heads=6, mamba_n_groups=1, mamba_d_state=16,
        embedding_multiplier=3.5, lm_head_multiplier=0.4, key_multiplier=0.5,
        attention_in_multiplier=0.8, attention_out_multiplier=0.7,
        ssm_in_multiplier=1.2, ssm_out_multiplier=0.3,
        mlp_multipliers=[0.9, 0.6],
        ssm_multipliers=[0.7, 0.8, 0.9, 1.1, 1.3])),
    ("Falcon-H1 (norms of states)", "falcon_h1", dict(SIZES, mamba_d_ssm=None,
        mamba_n_heads=8, mamba_n_groups=2, mamba_d_state=12,
        mamba_rms_norm=True, mamba_norm_before_gate=False,
        tie_word_embeddings=True, rope_parameters=dict(
        rope_type="default", rope_theta=1e11))),
    ("OLMo Hybrid", "olmo_hybrid", dict(SIZES, rms_norm_eps=1e-3,
        rope_parameters=dict(rope_type="default", rope_theta=None))),
    ("OLMo Hybrid (turning, other heads)", "olmo_hybrid", dict(SIZES,
        layer_types=["full_attention", "linear_attention",
                     "linear_attention", "full_attention"],
        linear_num_key_heads=2, linear_num_value_heads=6,
        linear_key_head_dim=20, linear_value_head_dim=14,
        linear_conv_kernel_dim=3, linear_allow_neg_eigval=False,
        attention_bias=True, tie_word_embeddings=True,
        rope_parameters=rope("default"))),
    ("OLMo Hybrid (yarn, three layers)", "olmo_hybrid", dict(SIZES,
        num_hidden_layers=3, rope_parameters=rope("yarn", factor=4.0,
        original_max_position_embeddings=32))),
    ("Mamba", "mamba", dict(MAMBA)),
    ("Mamba (no biases, own head)", "mamba", dict(MAMBA, expand=1,
        state_size=7, conv_kernel=3, time_step_rank=5, use_conv_bias=False,
        tie_word_embeddings=False)),
    ("Falcon Mamba", "falcon_mamba", dict(MAMBA, mixer_rms_eps=1e-5,
        tie_word_embeddings=False)),
    ("Falcon Mamba (tied, other epsilon)", "falcon_mamba", dict(MAMBA,
        state_size=24, time_step_rank=10, mixer_rms_eps=1e-3)),
    ("Jamba", "jamba", dict(JAMBA)),
    ("Jamba (dense, tied)", "jamba", dict(JAMBA, num_experts=1,
        num_experts_per_tok=1, num_key_value_heads=4, mamba_d_conv=3,
        mamba_dt_rank=6, tie_word_embeddings=True)),
    ("Jamba (heads of any width, experts everywhere)", "jamba", dict(JAMBA,
        head_dim=24, mamba_expand=3, mamba_d_state=7, rms_norm_eps=1e-4,
        attn_layer_period=2, attn_layer_offset=0, expert_layer_period=1,
        expert_layer_offset=0)),
    ("A.X K1", "axk1", dict({k: v for k, v in LATENT.items() if k !=
        "first_k_dense_replace"}, q_lora_rank=32, n_group=4, topk_group=2,
        mlp_layer_types=["dense"] + ["sparse"] * 3)),
    ("A.X K1 (yarn, two dense)", "axk1", dict(LATENT, q_lora_rank=16,
        n_group=1, topk_group=1, first_k_dense_replace=2,
        norm_topk_prob=False, rope_parameters=dict(YARN, mscale=1.0,
        mscale_all_dim=1.0))),
    ("Ling 3", "bailing_hybrid", dict(LING3, q_lora_rank=20, n_group=2,
        topk_group=1)),
    ("Ling 3 (any decay, groups of 2)", "bailing_hybrid", dict(LING3,
        kda_safe_gate=False, layer_group_size=2, n_group=1, topk_group=1,
        rms_norm_eps=1e-4, norm_topk_prob=False)),
    ("A.X K2", "axk2", dict(LATENT, q_lora_rank=32, n_group=4, topk_group=2,
        gated_norm_rank=12, index_topk=40, index_head_dim=16,
        index_n_heads=16)),
    ("A.X K2 (yarn, no groups)", "axk2", dict(LATENT, q_lora_rank=16,
        gated_norm_rank=8, rms_norm_eps=1e-4, first_k_dense_replace=2,
        index_topk=70, index_head_dim=16, index_n_heads=16, rope_parameters=dict(YARN,
            mscale=1.0, mscale_all_dim=1.0))),
    ("HY V4", "hy_v4", HY4),
    ("HY V4 (two streams, other epsilons)", "hy_v4", dict(HY4, hc_mult=2,
        hc_magnitude=1.5, hc_eps=1e-3, rms_norm_eps=1e-4, swiglu_limit=0.7,
        n_group=4, topk_group=2, mlp_layer_types=["sparse"] * 4,
        rope_parameters=dict(rope_type="default", rope_theta=5e5))),
    ("text of HY V4 VL", "hy_v4_vl", dict(text_config=dict(HY4,
        rope_parameters=dict(rope_type="default", rope_theta=1e4,
                             mrope_section=[2, 1, 1])),
        vision_config=dict(hidden_size=32, intermediate_size=48,
            num_attention_heads=2, num_hidden_layers=1, out_hidden_size=64,
            max_image_size=64))),
    ("text of GLM 5 next", "glm5_next", dict(text_config=GLM5NEXT,
        vision_config=GLM5VISION)),
    ("text of GLM 5 next (groups, no bound)", "glm5_next", dict(
        text_config=dict(GLM5NEXT, index_kpool=12, linear_lower_bound=None,
            hc_eps=1e-3, swiglu_limit=0.7, hc_sinkhorn_iters=3, n_group=4,
            topk_group=2, rms_norm_eps=1e-4), vision_config=GLM5VISION)),
    ("text of GLM 5 next (other pools, no bound)", "glm5_next", dict(
        text_config=dict(GLM5NEXT, index_topk=180, index_kpool=12,
            linear_lower_bound=None, hc_mult=3, linear_num_heads=3,
            hc_eps=1e-3, swiglu_limit=0.7, hc_sinkhorn_iters=3,
            rms_norm_eps=1e-4, n_group=4, topk_group=2,
            layer_types=["indexed_attention", "linear_attention"] * 2,
            mlp_layer_types=["sparse"] * 4), vision_config=GLM5VISION)),
    ("RecurrentGemma", "recurrent_gemma", dict(SIZES, num_hidden_layers=5,
        num_key_value_heads=1, attention_window_size=WINDOW,
        logits_soft_cap=5.0)),
    ("RecurrentGemma (wider, attention first)", "recurrent_gemma", dict(SIZES,
        lru_width=96, conv1d_width=3, attention_window_size=WINDOW,
        block_types=["attention", "recurrent"], partial_rotary_factor=1.0,
        hidden_activation="gelu", tie_word_embeddings=False)),
    ("MiniMax 01", "minimax", dict(MINIMAX1, rms_norm_eps=1e-6,
        **dict.fromkeys(("full_attn_alpha_factor", "linear_attn_alpha_factor",
                         "mlp_alpha_factor"), 2.5))),
    ("MiniMax 01 (two scales each)", "minimax", dict(MINIMAX1, head_dim=12,
        layer_types=["linear_attention"] * 2 + ["full_attention"] +
        ["linear_attention"], full_attn_alpha_factor=1.5,
        full_attn_beta_factor=0.75, linear_attn_alpha_factor=2,
        linear_attn_beta_factor=1.25, mlp_alpha_factor=1.75,
        mlp_beta_factor=0.5)),
    ("MiniMax M3", "minimax_m3_vl_text", MINIMAX3),
    ("text of MiniMax M3", "minimax_m3_vl", dict(text_config=dict(MINIMAX3,
        shared_intermediate_size=40, swiglu_alpha=1.4, swiglu_limit=1.5,
        rotary_dim=24,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
        vision_config=dict(SEES, model_type="minimax_m3_vl_vision"),
        projector_hidden_size=32)),
    ("BitNet b1.58", "bitnet", dict(SIZES, num_key_value_heads=2,
        tie_word_embeddings=True)),
    ("BitNet b1.58 (SiLU)", "bitnet", dict(SIZES, hidden_act="silu",
        tie_word_embeddings=True)),
    ("BitNet b1.58 (biases)", "bitnet", dict(SIZES, num_key_value_heads=4,
        attention_bias=True)),
    ("nanochat", "nanochat", dict(SIZES)),
    ("nanochat (tied, no cap)", "nanochat", dict(SIZES, head_dim=24,
        final_logit_softcapping=None, tie_word_embeddings=True,
        hidden_act="gelu_new")),
    ("Apertus", "apertus", dict(SIZES, rope_parameters=dict(
        LLAMA3, rope_theta=12000000.0))),
    ("Apertus 1.5 (text)", "apertus1p5_text", dict(SIZES,
        output_vocab_size=80, rope_parameters=dict(
        LLAMA3, rope_theta=12000000.0))),
    ("text of Mistral 3 (Mistral)", "mistral3", dict(text_config=dict(SIZES,
        model_type="mistral", head_dim=24, sliding_window=None),
        vision_config=dict(SEES, model_type="pixtral", head_dim=16),
        image_token_index=5)),
    ("text of Mistral 3 (Ministral 3)", "mistral3",
        dict(text_config=dict(SIZES, model_type="ministral3", head_dim=24,
        rope_parameters=MINISTRAL_ROPE), vision_config=dict(SEES,
        model_type="pixtral", head_dim=16), image_token_index=5)),
    ("text of Mistral 3 (Mistral Small 4)", "mistral3",
        dict(text_config=dict(LATENT, model_type="mistral4", q_lora_rank=32,
        n_shared_experts=1, norm_topk_prob=True, rope_parameters=dict(
        MINISTRAL_ROPE, mscale=1.0, mscale_all_dim=1.0)),
        vision_config=dict(SEES, model_type="pixtral", head_dim=16),
        image_token_index=5)),
    ("text of Llama 4", "llama4", dict(text_config=dict(SIZES,
        num_hidden_layers=5, head_dim=24, intermediate_size_mlp=80,
        num_local_experts=6, attention_chunk_size=WINDOW, floor_scale=32,
        attn_scale=0.3), vision_config=dict(hidden_size=32,
        intermediate_size=128, num_hidden_layers=1, num_attention_heads=2,
        image_size=28, patch_size=14, vision_output_dim=32,
        projector_input_dim=32, projector_output_dim=32))),
    ("Qwen 3 Next", "qwen3_next", dict(
        DELTA, **SHARED, norm_topk_prob=True, num_hidden_layers=5)),
    ("Qwen 3 Next (dense layers)", "qwen3_next", dict(
        DELTA, **SHARED, mlp_only_layers=[1], linear_num_value_heads=6,
        linear_value_head_dim=20)),
    ("Qwen 3.5", "qwen3_5_text", dict(
        DELTA, rope_parameters=DELTA_SECTIONS)),
    ("Qwen 3.5 (tied, long values)", "qwen3_5_text", dict(
        DELTA, rope_parameters=DELTA_SECTIONS, tie_word_embeddings=True,
        linear_num_value_heads=2, linear_value_head_dim=36)),
    ("Qwen 3.5 MoE", "qwen3_5_moe_text", dict(
        DELTA, **SHARED, rope_parameters=DELTA_SECTIONS)),
    ("text of Qwen 3.5", "qwen3_5", dict(text_config=dict(
        DELTA, rope_parameters=DELTA_SECTIONS),
        vision_config=SEES_QWEN)),
    ("text of Qwen 3.5 MoE", "qwen3_5_moe", dict(text_config=dict(
        DELTA, **SHARED, rope_parameters=DELTA_SECTIONS),
        vision_config=SEES_QWEN)),
    ("Qwen 4", "qwen4_exp_text", QWEN4),
    ("Qwen 4 (two layers of sequences, sigmoids)", "qwen4_exp_text", dict(
        QWEN4, hc_count=3, ple_layer_ids=[1, 3], ngram_size=4, seed=7,
        ple_embed_dim=36, ple_conv_kernel_size=3, split_ngram_parts=3,
        eos_token_id=[561, 2], output_gate_type="sigmoid", hc_lowrank=7,
        norm_topk_prob=False, layer_types=["linear_attention",
        "full_attention", "linear_attention", "linear_attention"])),
    ("Qwen 4 (no sequences)", "qwen4_exp_text", dict(QWEN4,
        ple_layer_ids=[], tie_word_embeddings=True)),
    ("text of Qwen 4", "qwen4_exp", dict(text_config=QWEN4,
        vision_config=SEES_QWEN)),
    ("Kimi Linear", "kimi_linear", dict(KIMI, rms_norm_eps=1e-6)),
    ("Kimi Linear (other epsilon)", "kimi_linear", dict(KIMI)),
    ("Kimi Linear (groups, latent queries)", "kimi_linear", dict(
        KIMI, linear_attn_config=dict(num_heads=4, head_dim=28,
        short_conv_kernel_size=3, full_attn_layers=[1, 5],
        kda_layers=[2, 3, 4, 6]), q_lora_rank=20, first_k_dense_replace=2,
        n_group=4, topk_group=2, norm_topk_prob=False, n_shared_experts=2)),
    ("text of Qwen 2 VL", "qwen2_vl", dict(text_config=dict(SIZES,
        rope_parameters=SECTIONS), vision_config=dict(depth=1, embed_dim=32,
        hidden_size=64, num_heads=2, patch_size=14))),
    ("text of Qwen 2.5 VL", "qwen2_5_vl", dict(text_config=dict(SIZES,
        rope_parameters=SECTIONS), vision_config=dict(SEES_QWEN,
        fullatt_block_indexes=[0]))),
    ("text of Qwen 3 VL", "qwen3_vl", dict(text_config=dict(SIZES,
        head_dim=24, rope_parameters=dict(SECTIONS, mrope_section=[4,4,4])),
        vision_config=dict(SEES_QWEN, deepstack_visual_indexes=[0]))),
    ("text of Qwen 3 VL MoE", "qwen3_vl_moe", dict(text_config=dict(SIZES,
        **EXPERTS, head_dim=24, rope_parameters=dict(SECTIONS,
        mrope_section=[4,4,4])), vision_config=dict(SEES_QWEN,
        deepstack_visual_indexes=[0]))),
    ("text of LLaVA", "llava", dict(text_config=dict(SIZES,
        model_type="llama"), vision_config=dict(SEES,
        model_type="clip_vision_model"), image_token_index=5)),
    ("text of LLaVA Next", "llava_next", dict(text_config=dict(SIZES,
        model_type="mistral", sliding_window=None), vision_config=dict(SEES,
        model_type="clip_vision_model"), image_token_index=5)),
    ("text of LLaVA OneVision", "llava_onevision", dict(text_config=dict(SIZES,
        model_type="qwen2"), vision_config=dict(SEES,
        model_type="siglip_vision_model"), image_token_index=5,
        video_token_index=6)),
    ("text of InternVL", "internvl", dict(text_config=dict(SIZES,
        model_type="qwen2"), vision_config=dict(SEES,
        model_type="internvl_vision"), image_token_id=5)),
    ("text of SmolVLM", "smolvlm", dict(text_config=dict(SIZES,
        model_type="llama"), vision_config=dict(SEES))),
]


# ---- Models ----

def randomise(model, seed):
    """Constants are norms and biases; the rest are matrices, whose inputs are
    the last dimension, but in GPT-2's own kind of layer."""
    random = torch.Generator().manual_seed(seed)
    tables = {id(m.weight): 1.0 for m in model.modules()
              if isinstance(m, torch.nn.Embedding)}
    head = model.get_output_embeddings()
    if head is not None and id(head.weight) in tables:
        tables[id(head.weight)] = 2.5 / head.weight.shape[-1] ** 0.5
    turned = {id(m.weight) for m in model.modules()
              if type(m).__name__ == "Conv1D"}
    # Gemma 3n and 4 have no other scale of scores.
    scales_by_norms = model.config.model_type.startswith(("gemma3n", "gemma4"))
    named = list(model.named_parameters())
    named += [(n, b) for n, b in model.named_buffers()
              if n.endswith(("correction_bias", "layer_scalar", "act_fn.beta"))]
    with torch.no_grad():
        for name, p in named:
            x = torch.randn(p.shape, generator=random)
            if id(p) in tables:
                x *= tables[id(p)]
            elif p.numel() == 1 or torch.all(p == p.flatten()[0]):
                x = x * 0.2 + p.flatten()[0]
            elif p.ndim > 1:
                gain = 2 if re.search("q_|query", name) else 1
                if name.endswith("modality_router.weight"):
                    gain = p.shape[-1]  # by which its input is divided
                if name.endswith("_coefs.weight"):
                    gain = 0.05  # or each layer makes errors larger
                x *= gain / p.shape[0 if id(p) in turned else -1] ** 0.5
            if scales_by_norms and name.endswith("q_norm.weight"):
                x /= p.shape[0] ** 0.5
            if head is not None and p is head.weight and id(p) not in tables:
                x *= 2.5
            p.copy_(x.bfloat16().float())
        for name, table in model.named_buffers():
            if name.endswith("tid2eid"):  # another row for each token
                n = model.config.n_routed_experts
                for row in table:
                    row.copy_(torch.randperm(n, generator=random)
                              [:row.shape[0]])


def make(kind, config):
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **config)
    if config is not config.get_text_config():
        model = AutoModelForImageTextToText.from_config(config)
    elif kind == "mistral4":  # the library does not look for it
        model = transformers.Mistral4ForCausalLM._from_config(config)
    else:
        model = AutoModelForCausalLM.from_config(config)
    model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    randomise(model, 1)
    return model.float().eval()


@contextlib.contextmanager
def exactly():
    """The library computes norms, softmax and the whole of the delta rule in
    float32, whatever the type of a model; here that means float64."""
    names = ("float32", "float")
    kept = [getattr(torch, name) for name in names]
    single = torch.Tensor.float
    for name in names:
        setattr(torch, name, torch.float64)
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = single
        for name, value in zip(names, kept):
            setattr(torch, name, value)


def reference(model, ids):
    """In float64; config.json says float32 again afterwards.

    After each token it is what the text has that ends there. So with longrope
    the first logits are those of a short text, and where turning goes by the
    length of the text, tokens go one by one, as when text is generated."""
    text = model.config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or {}
    kind = rope.get("rope_type")
    model.double()
    with torch.no_grad(), exactly():
        if kind == "dynamic":
            cache = transformers.DynamicCache(config=text)
            out = torch.cat([
                model(torch.tensor([[i]]), past_key_values=cache).logits[0]
                for i in ids])
        else:
            out = model(torch.tensor([ids]), use_cache=False).logits[0]
        if kind == "longrope":
            n = rope["original_max_position_embeddings"]
            out[:n] = model(torch.tensor([ids[:n]]), use_cache=False).logits[0]
    model.float()
    return out.numpy()


def save(model, folder):
    """All the forms, by name."""
    forms = {"f32": dict(), "bf16": dict(max_shard_size="60KB")}
    if any(p.ndim == 3 and "expert" in n for n, p in
           model.named_parameters()):
        forms["fused"] = dict(save_original_format=False)
    for name, options in forms.items():
        model.to(torch.bfloat16 if name == "bf16" else torch.float32)
        model.save_pretrained(f"{folder}/{name}", **options)
        model.float()
    return list(forms)


# ---- Ours ----

def lmquant(build, *arguments):
    run = subprocess.run([build + "/lmquant", *arguments],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.splitlines()[0].split(": ", 2)[2])


def context_of(build, path):
    run = subprocess.run([build + "/lmquant", "inspect", "--json", path],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["model"]["context"]


def by_llama(python, model, ids, batch=0):
    """llama.cpp's logits; why there are none is the exception."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "llama_logits.py")
    run = subprocess.run([python, script, "--batch", str(batch), model,
                          model + ".logits"], input=" ".join(map(str, ids)),
                         capture_output=True, text=True)
    if run.returncode != 0:
        why = [line for line in run.stderr.splitlines()
               if "GGML_ASSERT" in line or "not " in line]
        raise RuntimeError(why[-1] if why else
                           f"the program ended with {run.returncode}")
    return np.fromfile(model + ".logits", "<f4").reshape(len(ids), -1)


def alike_in_llama(config, n):
    """Which tokens it computes like the library: it has no windows of Phi 3,
    and with longrope takes the long factors where there is room for long
    texts, as there is here."""
    if config.model_type != "phi3":
        return slice(0, n)
    if config.rope_parameters["rope_type"] == "longrope":
        return slice(config.original_max_position_embeddings, n)
    return slice(0, min(n, config.sliding_window or n))


def distance(truth, ours):
    return float(np.abs(truth - ours).max() / np.abs(truth).max())


def compare(build, python, folder, name, kind, config):
    """A row: relative differences, top 1."""
    model = make(kind, config)
    ids = np.random.default_rng(7).integers(
        3, model.get_output_embeddings().weight.shape[0], N_TOKENS).tolist()
    truth = reference(model, ids)
    row = {"family": name, "forms": save(model, folder), "spread":
           float(truth.std())}
    most = step = 0.0
    for form in row["forms"]:
        at = f"{folder}/{form}"
        most = max(most, distance(truth, logits(build, at, ids)))
        step = max(step, distance(truth, logits(build, at, ids, batch=1)))
    row["prefill"], row["steps"] = most, step
    f32 = f"{folder}/f32"
    lmquant(build, "convert", "-q", f32, f"{folder}/m.lmq")
    int8 = logits(build, f"{folder}/m.lmq", ids, activations="auto")
    row["top1"] = float((int8.argmax(1) == truth.argmax(1)).mean())
    try:
        lmquant(build, "export", "-q", "--to", "gguf", f32,
                f"{folder}/m.gguf")
        # Where GGUF has no word for a window, the context is one.
        n = context_of(build, f"{folder}/m.gguf")
        row["gguf"] = distance(truth[:n], logits(
            build, f"{folder}/m.gguf", ids[:n]))
    except RuntimeError as problem:
        row["gguf"] = str(problem)
        return row
    if python is not None:
        try:
            part = alike_in_llama(model.config, n)
            row["llama"] = max(distance(truth[part], by_llama(
                python, f"{folder}/m.gguf", ids[:n], batch)[part])
                for batch in (0, 7))
        except RuntimeError as problem:
            row["llama"] = str(problem)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--llama", help="a Python with llama-cpp-python")
    parser.add_argument("--keep", help="a folder for the checkpoints")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    n_failed, reasons = 0, []
    print("| family | forms | prefill | token by token | GGUF, again | "
          "llama.cpp | top 1 in int8 |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for i, (name, kind, config) in enumerate(TABLE):
        if options.names and not any(n in name for n in options.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if options.keep:
                folder = os.path.join(options.keep, f"{i:02}-{kind}")
            try:
                row = compare(options.build, options.llama, folder, name, kind, config)
            except Exception as problem:
                print(f"| {name} | FAILED: {type(problem).__name__}: "
                      f"{problem} |", flush=True)
                n_failed += 1
                continue
        gguf = row["gguf"]
        if isinstance(gguf, str):
            reasons.append(f"no GGUF of {name}: {gguf}")
            gguf = "–"
        else:
            n_failed += name not in OTHER_IN_GGUF and gguf > (
                GGUF_LIMIT if "kv_lora_rank" in config else LIMIT)
            gguf = f"{gguf:.1e}"
        n_failed += max(row["prefill"], row["steps"]) > LIMIT
        llama = row.get("llama", "–")
        if isinstance(llama, float):
            n_failed += llama > LLAMA_LIMIT and name not in OTHER_IN_LLAMA
            llama = f"{llama:.1e}"
        elif llama != "–":
            reasons.append(f"llama.cpp, {name}: {llama}")
            llama = "no"
        print(f"| {name} | {', '.join(row['forms'])} | {row['prefill']:.1e} "
              f"| {row['steps']:.1e} | {gguf} | {llama} | {100 * row['top1']:.1f} % |",
              flush=True)
    print(f"\ntransformers {transformers.__version__}, torch "
          f"{torch.__version__}: {n_failed} above {LIMIT:g} or failed")
    for reason in reasons:
        print(reason)
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
