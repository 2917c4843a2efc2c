#!/usr/bin/env python3
"""Small random Llamas packed by bitsandbytes: weights and logits.

    bnb_models.py BUILD
    bnb_models.py --fixture FOLDER

--fixture writes tests/data/packed/bnb and prints the table of
tests/formats/packed/test_packed_library.c. Weights are compared with those of
dequantize_4bit() and int8_vectorwise_dequant(), logits with those of the
dequantized model in float32. (Where a row is no multiple of a block the
kernel of bitsandbytes for CPUs is wrong: --fixture takes its plain PyTorch.)
"""
import argparse
import json
import os
import sys
import tempfile

import bitsandbytes as bnb
import bitsandbytes.functional as F
import numpy as np
import torch
from bitsandbytes.backends.default import ops
from safetensors.torch import save_file
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

from against import differ, digest, logits, weights

SIZES = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
             max_position_embeddings=64)
IDS = [1, 5, 90, 33, 2, 7, 7, 60]

CASES = [(f"{kind}{', nested' if nested else ''}, {name}",
          dict(load_in_4bit=True, bnb_4bit_quant_type=kind,
               bnb_4bit_use_double_quant=nested), dtype)
         for kind in ("nf4", "fp4") for nested in (False, True)
         for name, dtype in (("f32", torch.float32), ("f16", torch.float16),
                             ("bf16", torch.bfloat16))]
CASES += [("8 bits", dict(load_in_8bit=True), torch.float16)]


def dequantized(model):
    found = {}
    for name, x in model.state_dict().items():
        if not name.endswith((".weight", ".bias")):
            continue
        module = model.get_submodule(name.rpartition(".")[0])
        if isinstance(module, bnb.nn.Linear4bit) and name.endswith("weight"):
            x = F.dequantize_4bit(module.weight.data,
                                  module.weight.quant_state)
        elif isinstance(module, bnb.nn.Linear8bitLt) and x.dtype == torch.int8:
            x = F.int8_vectorwise_dequant(module.weight.data,
                                          module.weight.SCB)
        found[name] = x.float()
    return found


def compare(build, folder):
    model = LlamaForCausalLM.from_pretrained(folder, device_map="cpu")
    theirs = dequantized(model)
    ours = weights(build, folder)
    wrong = sum(differ(ours[k], v.numpy()) for k, v in theirs.items())
    floats = LlamaForCausalLM(LlamaConfig(tie_word_embeddings=False, **SIZES))
    floats.load_state_dict(theirs)
    ids = torch.tensor([IDS])
    with torch.no_grad():
        a = floats(ids).logits[0].numpy()
        packed = model(ids).logits[0].float().numpy()
    b = logits(build, folder, IDS)
    return wrong, np.abs(a - b).max(), np.abs(packed - b).max()


def fixture(folder):
    torch.manual_seed(1)
    found = {}
    for kind in ("nf4", "fp4"):
        for nested in (False, True):
            for shape, block, dtype in (((4, 64), 64, torch.bfloat16),
                                        ((5, 51), 64, torch.float16),
                                        ((3, 2, 96), 128, torch.float32)):
                name = f"{kind}_{len(shape)}_{shape[-1]}{'_n' * nested}"
                w = (torch.randn(shape) * 0.05).to(dtype)
                q, state = F.quantize_4bit(w, blocksize=block,
                                           compress_statistics=nested,
                                           quant_type=kind)
                found[name + ".weight"] = q
                for k, v in state.as_dict(packed=True).items():
                    found[f"{name}.weight.{k}"] = v
                absmax = state.absmax if not nested else state.offset + \
                    F.dequantize_blockwise(state.absmax, state.state2)
                out = ops._dequantize_4bit_compute(
                    q.reshape(-1), absmax, state.code, block, shape, dtype)
                crc = digest(out.float().numpy())
                print(f'    {{"bnb", "{name}.weight", {crc}}},')
    w = torch.randn(7, 40).half()
    found["int8.weight"], found["int8.SCB"], _ = F.int8_vectorwise_quant(w)
    found["int8.weight_format"] = torch.tensor(0, dtype=torch.uint8)
    out = F.int8_vectorwise_dequant(found["int8.weight"], found["int8.SCB"])
    print(f'    {{"bnb", "int8.weight", {digest(out.numpy())}}},')
    os.makedirs(folder, exist_ok=True)
    save_file(found, folder + "/model.safetensors")
    with open(folder + "/config.json", "w") as f:
        json.dump({"architectures": ["X"], "quantization_config":
                   {"quant_method": "bitsandbytes"}}, f)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixture")
    parser.add_argument("build", nargs="?")
    args = parser.parse_args()
    if args.fixture:
        return fixture(args.fixture)
    bad = 0
    print("| packed as | weights that differ | largest difference of a logit |"
          " from the packed model |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        config = LlamaConfig(tie_word_embeddings=False, **SIZES)
        LlamaForCausalLM(config).save_pretrained(f"{folder}/base")
        for i, (name, options, dtype) in enumerate(CASES):
            LlamaForCausalLM.from_pretrained(
                f"{folder}/base", dtype=dtype, device_map="cpu",
                quantization_config=BitsAndBytesConfig(**options)
            ).save_pretrained(f"{folder}/case{i}")
            wrong, most, theirs = compare(args.build, f"{folder}/case{i}")
            print(f"| {name} | {wrong} | {most:.1e} | {theirs:.1e} |",
                  flush=True)
            bad += wrong
    return int(bad != 0)


sys.exit(main())
