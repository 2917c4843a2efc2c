#!/usr/bin/env python3
"""MXFP4 as GPT-OSS has it, against transformers.

    mxfp4_blocks.py BUILD
    mxfp4_blocks.py --fixture FOLDER

Random blocks with all scales but 255. --fixture writes
tests/data/packed/mxfp4 and prints the row of
tests/formats/packed/test_packed_library.c.
"""
import argparse
import json
import os
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from against import differ, digest, weights

NAME = "model.layers.0.mlp.experts.gate_up_proj"


def make(folder, shape, lowest, highest):
    torch.manual_seed(1)
    blocks = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8)
    scales = torch.randint(lowest, highest, shape, dtype=torch.uint8)
    os.makedirs(folder, exist_ok=True)
    save_file({NAME + "_blocks": blocks, NAME + "_scales": scales},
              folder + "/model.safetensors")
    with open(folder + "/config.json", "w") as f:
        json.dump({"architectures": ["X"], "quantization_config":
                   {"quant_method": "mxfp4"}}, f)
        f.write("\n")
    # transformers turns rows to columns
    out = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    return out.transpose(1, 2).contiguous().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixture")
    parser.add_argument("build", nargs="?")
    args = parser.parse_args()
    if args.fixture:
        crc = digest(make(args.fixture, (2, 3, 4), 100, 140))
        print(f'    {{"mxfp4", "{NAME}", {crc}}},')
        return 0
    with tempfile.TemporaryDirectory() as folder:
        theirs = make(folder, (8, 500, 30), 0, 253) # none that is infinite
        wrong = differ(weights(args.build, folder)[NAME], theirs)
    print(f"{theirs.size} elements, {wrong} differ")
    return int(wrong != 0)


sys.exit(main())
