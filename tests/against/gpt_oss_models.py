#!/usr/bin/env python3
"""GPT-OSS with its experts in MXFP4, as it is published: logits here and there.

    gpt_oss_models.py BUILD

A small model of random weights whose experts are random blocks; transformers
computes with what its own convert_moe_packed_tensors() makes of them, in
float64, and we with the folder in which the blocks themselves stand.
"""
import json
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from against import logits
from families import (GPTOSS, GPTOSS_ROPE, LIMIT, N_TOKENS, distance, lmquant,
                      make, reference)


def pack(model, seed):
    """Random blocks for the experts; the model gets what they mean."""
    random = torch.Generator().manual_seed(seed)
    packed = {}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not name.endswith(("gate_up_proj", "down_proj")):
                continue
            experts, cols, rows = p.shape
            shape = experts, rows, cols // 32
            blocks = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8,
                                   generator=random)
            scales = torch.randint(122, 125, shape, dtype=torch.uint8,
                                   generator=random)
            p.copy_(convert_moe_packed_tensors(blocks, scales,
                                               dtype=torch.float32))
            packed[name + "_blocks"], packed[name + "_scales"] = blocks, scales
    return packed


def save(model, packed, folder):
    model.save_pretrained(folder)
    tensors = load_file(folder + "/model.safetensors")
    for name in packed:
        tensors.pop(name.rsplit("_", 1)[0], None)
    save_file({**tensors, **packed}, folder + "/model.safetensors",
              {"format": "pt"})
    with open(folder + "/config.json") as f:
        config = json.load(f)
    config["quantization_config"] = {"quant_method": "mxfp4"}
    with open(folder + "/config.json", "w") as f:
        json.dump(config, f)


def main():
    build = sys.argv[1]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = make("gpt_oss", dict(GPTOSS, rope_parameters=dict(
        GPTOSS_ROPE, truncate=False)))
    packed = pack(model, 3)
    ids = np.random.default_rng(7).integers(3, 128, N_TOKENS).tolist()
    truth = reference(model, ids)
    with tempfile.TemporaryDirectory() as folder:
        save(model, packed, folder)
        far = [distance(truth, logits(build, folder, ids, batch=batch))
               for batch in (0, 1)]
        lmquant(build, "convert", "-q", folder, folder + "/m.lmq")
        int8 = logits(build, folder + "/m.lmq", ids, activations="auto")
    top1 = (int8.argmax(1) == truth.argmax(1)).mean()
    print(f"at once {far[0]:.1e}, one by one {far[1]:.1e}, "
          f"top 1 in int8 {100 * top1:.1f} %")
    return max(far) > LIMIT


if __name__ == "__main__":
    sys.exit(main())
