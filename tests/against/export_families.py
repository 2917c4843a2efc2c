#!/usr/bin/env python3
"""Exports of small random models of many families, in their libraries.

usage: export_families.py BUILD [--keep FOLDER] [FAMILY...]

transformers makes and saves each model; it is converted in groups of 32, 64
and 128, and exported as float32 safetensors (the reference) and as
compressed-tensors, mlx and gptq. Told are the largest difference of a weight
and, relative to the largest logit, of a logit, or why there is none: what
lmquant refuses, and what a library does not load. The column `here` is how far
this engine's own logits are from transformers' for the reference: they agree
only if config.json says windows, norms and positions as they are.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # minutes for nothing

import numpy as np
import torch
import transformers

import exports
from against import logits

BASE = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, vocab_size=256,
            max_position_embeddings=256, tie_word_embeddings=False,
            bos_token_id=1, eos_token_id=2, pad_token_id=0)
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=128)
WINDOW = dict(sliding_window=16)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0,
              low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0,
            original_max_position_embeddings=64)
DELTA = dict(num_hidden_layers=4, head_dim=32, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_key_head_dim=32,
             linear_value_head_dim=32, full_attention_interval=2)

# Name -> class of the configuration, its values, options of convert.
FAMILIES = {
    "llama": ("Llama", {}, []),
    "llama, groups of 32": ("Llama", {}, ["--group-size", "32"]),
    "llama, groups of 128": ("Llama", {}, ["--group-size", "128"]),
    "llama, scales of float32": ("Llama", {}, ["--scales", "f32"]),
    "llama, tied": ("Llama", dict(tie_word_embeddings=True), []),
    "llama, rows of 96 and 200": (
        "Llama", dict(hidden_size=96, intermediate_size=200), []),
    "llama, rows of 96 and 200, groups of 32": (
        "Llama", dict(hidden_size=96, intermediate_size=200),
        ["--group-size", "32"]),
    "llama, biases": ("Llama", dict(attention_bias=True, mlp_bias=True), []),
    "llama, positions of Llama 3": (
        "Llama", dict(rope_parameters=LLAMA3), []),
    "llama, positions of YaRN": ("Llama", dict(rope_parameters=YARN), []),
    "mistral, window": ("Mistral", WINDOW, []),
    "qwen2": ("Qwen2", {}, []),
    "qwen3": ("Qwen3", dict(head_dim=32), []),
    "gemma2": ("Gemma2", dict(head_dim=32, query_pre_attn_scalar=32,
                              tie_word_embeddings=True, **WINDOW), []),
    "gemma3": ("Gemma3Text", dict(
        head_dim=32, query_pre_attn_scalar=32, tie_word_embeddings=True,
        num_hidden_layers=6, layer_types=["sliding_attention"] * 5 +
        ["full_attention"], **WINDOW), []),
    "phi3": ("Phi3", {}, []),
    "mixtral": ("Mixtral", dict(num_local_experts=4, num_experts_per_tok=2),
                []),
    "qwen2-moe": ("Qwen2Moe", dict(
        num_experts=4, shared_expert_intermediate_size=128, **EXPERTS), []),
    "qwen3-moe": ("Qwen3Moe", dict(num_experts=4, head_dim=32, **EXPERTS),
                  []),
    "qwen3-next": ("Qwen3Next", dict(
        num_experts=4, shared_expert_intermediate_size=128, **EXPERTS,
        **DELTA), []),
    "qwen3.5": ("Qwen3_5Text", DELTA, []),
    "qwen3.5, wide values": ("Qwen3_5Text", dict(
        DELTA, linear_value_head_dim=64), []),
    "qwen3.5-moe": ("Qwen3_5MoeText", dict(
        num_experts=4, shared_expert_intermediate_size=128, **EXPERTS,
        **DELTA), []),
}


def make(name, folder):
    kind, values, _ = FAMILIES[name]
    torch.manual_seed(1)
    config = getattr(transformers, kind + "Config")(**{**BASE, **values})
    model = transformers.AutoModelForCausalLM.from_config(config)
    for key, value in model.named_parameters():
        if key.endswith("bias") or "norm" in key:  # that they count
            value.data += torch.randn_like(value) * 0.1
        elif value.ndim > 1:
            value.data *= 4
    model.float().save_pretrained(folder)


def first_line(text):
    lines = [line for line in str(text).splitlines() if line.strip()]
    return lines[0][:110] if lines else "?"


def compare(build, name, folder):
    source, container = folder + "/source", folder + "/q.lmq"
    if not os.path.exists(source):
        make(name, source)
    lmquant = build + "/lmquant"
    subprocess.run([lmquant, "convert", "-q", "-f", *FAMILIES[name][2],
                    source, container], check=True)
    plain = exports.export(lmquant, container, "safetensors", folder)
    weights, theirs = exports.reference(plain)
    most = np.abs(theirs).max()
    here = np.abs(logits(build, container, exports.IDS) - theirs).max() / most
    for to, load in exports.LIBRARIES.items():
        row = f"| {name} | {to} | {here:.1e} |"
        try:
            path = exports.export(lmquant, container, to, folder)
        except subprocess.CalledProcessError as error:
            print(f"{row} | refused: {first_line(error.stderr)} |", flush=True)
            continue
        try:
            found, out = load(path)
        except Exception as error:
            print(f"{row} | not loaded: {type(error).__name__} "
                  f"{first_line(error)} |", flush=True)
            continue
        n, worst = exports.differences(weights, found)
        print(f"{row} {worst:.2g} of {n} | "
              f"{np.abs(out - theirs).max() / most:.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--keep")
    parser.add_argument("build")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| model | exported as | here | weights | of logits |")
    print("| --- | --- | --- | --- | --- |")
    for name in FAMILIES:
        if options.families and not any(x in name for x in options.families):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if options.keep:
                folder = os.path.join(options.keep, name.replace(" ", "-"))
                os.makedirs(folder, exist_ok=True)
            try:
                compare(os.path.abspath(options.build), name, folder)
            except Exception as error:
                print(f"| {name} | FAILED | {type(error).__name__} "
                      f"{first_line(getattr(error, 'stderr', 0) or error)} "
                      "| | |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
