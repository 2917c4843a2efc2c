#!/usr/bin/env python3
"""What the libraries of other formats make of lmquant's exports.

usage: exports.py LMQUANT CONTAINER.lmq [TEXT]

Exports the container as float32 safetensors (the reference) and as
compressed-tensors, mlx and gptq; loads each with its own library, and prints
the largest difference of a weight and, relative to the largest logit, of a
logit (gptq computes in float16, so weights are rounded to it). Needs torch and
transformers, and for each row its library; a row whose library is missing says
so.
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
IDS = [1, 5, 17, 200, 31, 7, 64, 90, 11, 3, 250, 42, 8, 199, 23, 77] * 4


def export(lmquant, container, to, folder):
    path = os.path.join(folder, to)
    subprocess.run([lmquant, "export", "-q", "-f", container, path, "--to",
                    to], check=True, capture_output=True, text=True)
    return path


def reference(path):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor([IDS])).logits[0].double().numpy()
    weights = {name: value.numpy() for name, value in
               model.state_dict().items()}
    return weights, logits


def compressed_tensors(path):
    import compressed_tensors  # noqa: F401
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils.quantization_config import CompressedTensorsConfig

    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32,
        quantization_config=CompressedTensorsConfig(dequantize=True))
    with torch.no_grad():
        logits = model(torch.tensor([IDS])).logits[0].double().numpy()
    return {name: value.float().numpy() for name, value in
            model.state_dict().items()}, logits


def mlx(path):
    import mlx.core as mx
    import numpy as np
    from pathlib import Path
    from mlx_lm.utils import load_model

    model, config = load_model(Path(path))
    logits = np.array(model(mx.array([IDS]))[0].astype(mx.float32),
                      dtype=np.float64)
    stored = mx.load(os.path.join(path, "model.safetensors"))
    group = config["quantization"]["group_size"]
    weights = {}
    for name, value in stored.items():
        stem = name.removesuffix(".weight")
        if stem + ".scales" in stored and name.endswith(".weight"):
            value = mx.dequantize(value, stored[stem + ".scales"],
                                  stored[stem + ".biases"], group, 8)
        if not name.endswith((".scales", ".biases")):
            weights[name] = np.array(value.astype(mx.float32))
    return weights, logits


def gptq(path):
    import torch
    from gptqmodel import BACKEND, GPTQModel
    from tokenizers import Tokenizer, models

    # It insists on a tokenizer, which the weights do not depend on.
    name = os.path.join(path, "tokenizer.json")
    if not os.path.exists(name):
        Tokenizer(models.WordLevel({"<unk>": 0}, "<unk>")).save(name)
    model = GPTQModel.load(path, device="cpu", backend=BACKEND.TORCH,
                           dtype=torch.float16)  # it computes in no other
    with torch.no_grad():
        logits = model.model(torch.tensor([IDS])).logits[0].double().numpy()
    weights = {}
    for name, module in model.model.named_modules():
        if hasattr(module, "dequantize_weight"):
            weights[name + ".weight"] = \
                module.dequantize_weight().T.numpy()
    return weights, logits


LIBRARIES = {"compressed-tensors": compressed_tensors, "mlx": mlx,
             "gptq": gptq}


def differences(ours, theirs):
    """How many weights have names of ours; the largest difference."""
    worst = [abs(ours[name].astype(value.dtype) - value).max()
             for name, value in theirs.items() if name in ours]
    return len(worst), max(worst, default=float("nan"))


def main():
    lmquant, container = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        weights, logits = reference(
            export(lmquant, container, "safetensors", folder))
        print(f"{'format':20} {'weights':>8} {'difference':>11} "
              f"{'of logits':>10}  top-1")
        for to, load in LIBRARIES.items():
            path = export(lmquant, container, to, folder)
            try:
                theirs, out = load(path)
            except ImportError as error:
                print(f"{to:20} skipped: {error}")
                continue
            n, worst = differences(weights, theirs)
            drift = abs(out - logits).max() / abs(logits).max()
            same = (out.argmax(-1) == logits.argmax(-1)).mean()
            print(f"{to:20} {n:8} {worst:11.2g} {drift:10.2g}  "
                  f"{100 * same:.0f} %", flush=True)


if __name__ == "__main__":
    main()
