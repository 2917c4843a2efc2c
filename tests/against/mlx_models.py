#!/usr/bin/env python3
"""Small random Llamas packed by mlx-lm: weights and logits here and there.

    mlx_models.py [--keep FOLDER] BUILD
    mlx_models.py --fixture FOLDER

--fixture writes tests/data/packed/mlx and prints the table of
tests/formats/packed/test_packed_library.c.

Weights are compared with mx.dequantize(), which rounds the product and the
sum to the type of the scales; for the modes without biases it is asked for
float32. Logits with the dequantized weights in float32, by MLX.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import torch
from mlx.utils import tree_flatten
from mlx_lm import utils
from transformers import (LlamaConfig, LlamaForCausalLM, MixtralConfig,
                          MixtralForCausalLM)

from against import differ, digest, logits, weights

SIZES = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
             max_position_embeddings=64)
IDS = [1, 5, 90, 33, 2, 7, 7, 60]


def half_of_them(path, module):
    """Three kinds in one model: others, none, what is usual."""
    if path.endswith("q_proj"):
        return {"group_size": 32, "bits": 8, "mode": "affine"}
    if path.endswith("v_proj"):
        return {"group_size": 32, "bits": 8, "mode": "mxfp8"}
    return not path.endswith("down_proj")


CASES = [(f"affine {bits} bits, {group}, {name}", dict(group_size=group,
          bits=bits), dtype)
         for bits in (1, 2, 3, 4, 5, 6, 8) for group in (32, 64, 128)
         for name, dtype in (("f32", mx.float32), ("f16", mx.float16),
                             ("bf16", mx.bfloat16))]
CASES += [(mode, dict(group_size=None, bits=None, mode=mode), mx.bfloat16)
          for mode in ("mxfp4", "mxfp8", "nvfp4")]
CASES += [("layers of their own", dict(group_size=64, bits=4,
           quant_predicate=half_of_them), mx.bfloat16),
          ("4 bits, 64, experts", dict(group_size=64, bits=4), mx.float16)]


def base(folder):
    torch.manual_seed(0)
    for name, tied in (("llama", False), ("tied", True)):
        config = LlamaConfig(tie_word_embeddings=tied, **SIZES)
        LlamaForCausalLM(config).save_pretrained(f"{folder}/{name}")
    config = MixtralConfig(num_local_experts=4, num_experts_per_tok=2,
                           sliding_window=None, **SIZES)
    MixtralForCausalLM(config).save_pretrained(f"{folder}/mixtral")


def pack(folder, out, options, dtype):
    model, config = utils.load_model(pathlib.Path(folder))
    model.set_dtype(dtype)
    model, config = utils.quantize_model(model, config, **options)
    utils.save_model(out, model)
    utils.save_config(config, os.path.join(out, "config.json"))


def dequantized(model):
    """Name -> float32, and the model with these weights."""
    values = dict(tree_flatten(model.parameters()))
    found = {}
    for path, module in model.named_modules():
        if not hasattr(module, "scales"):
            continue
        biases = values.pop(path + ".biases", None)
        del values[path + ".scales"]
        w = mx.dequantize(values.pop(path + ".weight"), module.scales, biases,
                          group_size=module.group_size, bits=module.bits,
                          mode=module.mode,
                          dtype=None if biases is not None else mx.float32)
        found[path + ".weight"] = w
    found.update(values)
    return {k: v.astype(mx.float32) for k, v in found.items()}


def experts_apart(tensors):
    """As Hugging Face has them, and lmquant writes them."""
    apart = {}
    for name, x in tensors.items():
        stem, _, rest = name.partition(".switch_mlp.")
        part = {"gate_proj.weight": "w1", "up_proj.weight": "w3",
                "down_proj.weight": "w2"}.get(rest)
        if part is None:
            apart[name] = x
        else:
            apart.update({f"{stem}.experts.{i}.{part}.weight": x[i]
                          for i in range(len(x))})
    return apart


def compare(build, folder):
    model, config = utils.load_model(pathlib.Path(folder))
    theirs = dequantized(model)
    ours = weights(build, folder)
    wrong = sum(differ(ours[k], np.array(v))
                for k, v in experts_apart(theirs).items())
    plain = dict(config)
    plain.pop("quantization"), plain.pop("quantization_config")
    classes = utils._get_classes(plain)
    floats = classes[0](classes[1].from_dict(plain))
    floats.load_weights(list(theirs.items()))
    a = np.array(floats(mx.array([IDS]))[0].astype(mx.float32))
    b = logits(build, folder, IDS)
    packed = np.array(model(mx.array([IDS]))[0].astype(mx.float32))
    return wrong, np.abs(a - b).max(), np.abs(packed - b).max()


def fixture(folder):
    """Matrices of 4 x 128 of all kinds, three of them stacked."""
    mx.random.seed(1)
    found, settings = {}, {"group_size": 64, "bits": 4, "mode": "affine"}
    kinds = [(f"affine{bits}_{group}", bits, group, "affine", dtype)
             for bits in (1, 2, 3, 4, 5, 6, 8)
             for group, dtype in ((32, mx.float32), (64, mx.bfloat16),
                                  (128, mx.float16))]
    kinds += [("mxfp4", 4, 32, "mxfp4", mx.bfloat16),
              ("mxfp8", 8, 32, "mxfp8", mx.bfloat16),
              ("nvfp4", 4, 16, "nvfp4", mx.bfloat16)]
    for name, bits, group, mode, dtype in kinds:
        shape = (3, 2, 128) if name == "affine4_64" else (4, 128)
        w = (mx.random.normal(shape) * 0.05).astype(dtype)
        packed = mx.quantize(w, group_size=group, bits=bits, mode=mode)
        found.update({f"{name}.{ending}": part for ending, part
                      in zip(("weight", "scales", "biases"), packed)})
        if (bits, group, mode) != (4, 64, "affine"):
            settings[name] = {"group_size": group, "bits": bits, "mode": mode}
        out = mx.dequantize(*packed, group_size=group, bits=bits, mode=mode,
                            dtype=None if mode == "affine" else mx.float32)
        crc = digest(np.array(out.astype(mx.float32)))
        print(f'    {{"mlx", "{name}.weight", {crc}}},')
    os.makedirs(folder, exist_ok=True)
    mx.save_safetensors(folder + "/model.safetensors", found)
    with open(folder + "/config.json", "w") as f:
        json.dump({"architectures": ["X"], "quantization": settings}, f,
                  indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep")
    parser.add_argument("--fixture")
    parser.add_argument("build", nargs="?")
    args = parser.parse_args()
    if args.fixture:
        return fixture(args.fixture)
    bad = 0
    print("| packed as | weights that differ | largest difference of a logit |"
          " from quantized_matmul |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        base(folder)
        for i, (name, options, dtype) in enumerate(CASES):
            out = f"{args.keep or folder}/case{i}"
            source = "mixtral" if name.endswith("experts") else (
                "tied" if i % 4 == 0 else "llama")
            pack(f"{folder}/{source}", out, options, dtype)
            try:
                wrong, most, theirs = compare(args.build, out)
                print(f"| {name} | {wrong} | {most:.1e} | {theirs:.1e} |",
                      flush=True)
            except RuntimeError as error:
                wrong = 1
                print(f"| {name} | {error} | |", flush=True)
            bad += wrong != 0
    return int(bad != 0)


sys.exit(main())
