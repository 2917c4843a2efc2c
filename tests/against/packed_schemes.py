"""Small random Llamas, packed by the scheme's own library, against what the
library makes of them.

usage: packed_schemes.py [--keep FOLDER] BUILD [SCHEME...]
       packed_schemes.py --fixtures FOLDER

Of each scheme a checkpoint is written with the tensors that the library made,
and one with the matrices that the library decodes in float32; `lmquant diff`
must find no element that differs. The matrices that the library decodes in its
own type must be those, rounded to it. The logits of the packed checkpoint are
compared with those of transformers for the decoded one, in float32 both. Apart
from that is told how far from them the packed model is that the library itself
computes, with its modules and in its own type.

--fixtures writes one small matrix of some schemes, as tests/data/packed has
them, and prints the CRC-32 of what the library decodes, as
tests/formats/packed/test_packed_fixtures.c has it.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import zlib

# Libraries that compile what they multiply with take minutes for each shape.
os.environ["TORCHDYNAMO_DISABLE"] = "1"

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from against import logits
from packed_makers import SCHEMES

IDS = [1, 5, 60, 33, 2, 7, 7, 50]
NEAR = 1e-5  # of a logit, relative to the largest one
SIZES = {  # hidden, intermediate, heads, key heads
    "even": (128, 384, 4, 2),
    "odd": (96, 200, 6, 2),
}
LAYERS, VOCAB = 2, 61


def llama(size):
    """Names and weights of a random Llama, its config.json."""
    hidden, inter, heads, kv = SIZES[size]
    torch.manual_seed(1)
    dim = hidden // heads
    shapes = {"self_attn.q_proj": (hidden, hidden),
              "self_attn.k_proj": (kv * dim, hidden),
              "self_attn.v_proj": (kv * dim, hidden),
              "self_attn.o_proj": (hidden, hidden),
              "mlp.gate_proj": (inter, hidden),
              "mlp.up_proj": (inter, hidden),
              "mlp.down_proj": (hidden, inter)}
    linear = {f"model.layers.{i}.{name}": torch.randn(shape) * 0.05
              for i in range(LAYERS) for name, shape in shapes.items()}
    other = {"model.embed_tokens.weight": torch.randn(VOCAB, hidden),
             "lm_head.weight": torch.randn(VOCAB, hidden) * 0.1,
             "model.norm.weight": torch.rand(hidden) + 0.5}
    for i in range(LAYERS):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            other[f"model.layers.{i}.{norm}.weight"] = torch.rand(hidden) + 0.5
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
              "hidden_size": hidden, "intermediate_size": inter,
              "num_hidden_layers": LAYERS, "num_attention_heads": heads,
              "num_key_value_heads": kv, "vocab_size": VOCAB,
              "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": False, "torch_dtype": "float32"}
    return linear, other, config


def save(folder, tensors, config):
    os.makedirs(folder, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()},
              os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 4):
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def transformers_logits(model):
    with torch.no_grad():
        return model.eval()(torch.tensor([IDS])).logits[0].float().numpy()


def packed_by_library(folders, modules, dtype):
    """The logits of the packed model as its library runs it; or why not."""
    if None in modules.values():
        try:
            return transformers_logits(AutoModelForCausalLM.from_pretrained(
                folders["packed"], dtype=dtype)), ""
        except (ImportError, RuntimeError) as reason:
            return None, f"not loaded: {str(reason).splitlines()[0][:48]}"
    model = AutoModelForCausalLM.from_pretrained(folders["wide"], dtype=dtype)
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, module)
    return transformers_logits(model), ""


def compare(build, name, folder):
    """A row of the table, and whether it is as it should be."""
    size, scheme = SCHEMES[name]
    make, quantization = scheme()
    linear, other, config = llama(size)
    packed, wide, modules, rounded = dict(other), dict(other), {}, 0
    for module, weight in linear.items():
        parts, exact, own, modules[module] = make(weight)
        packed.update({f"{module}.{k}": v for k, v in parts.items()})
        wide[f"{module}.weight"] = exact
        rounded += int((exact.to(own.dtype) != own).sum())
    paths = {kind: os.path.join(folder, kind) for kind in ("packed", "wide")}
    save(paths["packed"], packed,
         {**config, "quantization_config": quantization})
    save(paths["wide"], wide, config)
    diff = json.loads(run(build + "/lmquant", "diff", "--json",
                          *paths.values()))
    missing = diff["missing"] + len(diff["other_shapes"])
    theirs = transformers_logits(AutoModelForCausalLM.from_pretrained(
        paths["wide"], dtype=torch.float32))
    drift = np.abs(logits(build, paths["packed"], IDS) - theirs).max()
    own_logits, reason = packed_by_library(paths, modules, own.dtype)
    if own_logits is not None:
        reason = (f"{np.abs(own_logits - theirs).max():.1e}, "
                  f"{str(own.dtype).removeprefix('torch.')}")
    is_good = (diff["max_error"] == 0 and missing == 0 and rounded == 0 and
               drift <= NEAR * np.abs(theirs).max())
    return (f"| {name} | {diff['compared']} | {diff['max_error']:g} | "
            f"{rounded} | {drift:.1e} | {reason} |"), is_good


FIXTURES = {
    "gptq-3": ("gptq 3 bits, v1", 64, 128),
    "gptq-4-act": ("gptq 4 bits, v2, act-order", 40, 64),
    "gptq-8": ("gptq 8 bits, v2, symmetric", 24, 128),
    "awq": ("awq", 32, 64),
    "auto-round": ("auto-round, as GPTQ v1", 32, 64),
    "pack-quantized": ("pack-quantized 4, groups, asymmetric", 20, 64),
    "int-quantized": ("int-quantized, channel", 20, 60),
    "float-quantized": ("float-quantized, groups", 20, 64),
    "mxfp4-packed": ("mxfp4-pack-quantized", 20, 64),
    "nvfp4": ("nvfp4-pack-quantized", 20, 64),
    "modelopt-nvfp4": ("modelopt NVFP4", 20, 64),
    "modelopt-mxfp4": ("modelopt MXFP4", 20, 64),
    "hqq-3": ("hqq 3 bits, axis 0", 24, 40),
    "hqq-4": ("hqq 4 bits, axis 1", 24, 40),
}


def write_fixtures(folder):
    for name, (scheme, rows, cols) in FIXTURES.items():
        torch.manual_seed(7)
        make, quantization = SCHEMES[scheme][1]()
        parts, wide, _, _ = make(torch.randn(rows, cols) * 0.05)
        save(os.path.join(folder, name),
             {f"a.{k}": v for k, v in parts.items()},
             {"quantization_config": quantization})
        crc = zlib.crc32(wide.contiguous().numpy().astype("<f4").tobytes())
        print(f'    {{"{name}", {rows}, {cols}, 0x{crc:08x}}},')


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--keep")
    parser.add_argument("--fixtures")
    parser.add_argument("build", nargs="?")
    parser.add_argument("schemes", nargs="*")
    options = parser.parse_args()
    if options.fixtures:
        return write_fixtures(options.fixtures)
    failed = 0
    build = os.path.abspath(options.build)  # libraries change the folder
    print("| scheme | tensors | largest difference | rounded otherwise | "
          "of a logit | of the library's own |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in SCHEMES:
        if options.schemes and not any(s in name for s in options.schemes):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if options.keep:
                folder = os.path.join(options.keep, name.replace(" ", "-"))
            try:
                row, is_good = compare(build, name, folder)
            except ImportError as reason:
                print(f"| {name} | skipped: {reason} | | | | |")
                continue
            except Exception as reason:
                failed += 1
                print(f"| {name} | FAILED: {type(reason).__name__} {reason} "
                      "| | | | |")
                continue
        failed += not is_good
        print(row, flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
