#!/usr/bin/env python3
"""Families as mlx-lm saves them: our logits of its folder and of the original.

    mlx_families.py [--keep FOLDER] BUILD [NAME...]

The small checkpoints of tests/make/make_family, read and saved by mlx-lm, which
has other names for some tensors, stacks and takes apart others, and turns
convolutions. Not one bit of the logits may differ. What mlx-lm does not load is
left out; most of that it has never heard of.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import mlx.core as mx
import numpy as np
from mlx_lm import utils

from against import logits

IDS = [int(x) for x in np.random.RandomState(0).randint(3, 60, 30)]
# What mlx-lm wants to be told, where others know it.
WANTED = {"use_conv_bias": True, "attention_bias": False, "rope_theta": 1e4,
          "time_step_rank": 4, "mlp_only_layers": [],
          "tie_word_embeddings": False, "intermediate_size": 96,
          "first_k_dense_replace": 0}


def tell(name, path):
    with open(path) as f:
        config = json.load(f)
    for part in (config, config.get("text_config")):
        if not isinstance(part, dict):
            continue
        for key, value in WANTED.items():
            part.setdefault(key, value)
        if "block_ff_dim" in part:
            part.setdefault("block_dim", part["hidden_size"])
        if name.startswith("granite4") and "layer_types" in part:
            part["layer_types"] = ["mamba" if kind == "mamba" else "attention"
                                   for kind in part["layer_types"]]
    with open(path, "w") as f:
        json.dump(config, f)


def compare(build, folder, name):
    """None: mlx-lm does not load it."""
    ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "mlx")
    subprocess.run([build + "/tests/make/make_family", name, ours], check=True)
    tell(name, ours + "/config.json")
    try:
        model, config = utils.load_model(pathlib.Path(ours), strict=True)
        model.set_dtype(mx.float32)
        utils.save_model(theirs, model)
        utils.save_config(dict(config), theirs + "/config.json")
    except (Exception, SystemExit):
        return None
    return np.array_equal(logits(build, ours, IDS), logits(build, theirs, IDS))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", help="a folder for the checkpoints")
    options = parser.parse_args()
    names = options.names or subprocess.run(
        [options.build + "/tests/make/make_family", "--list"], check=True,
        capture_output=True, text=True).stdout.split()
    n_same, left_out, wrong = 0, [], []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            if options.keep:
                folder = os.path.join(options.keep, name)
                os.makedirs(folder)
            try:
                is_same = compare(options.build, folder, name)
            except RuntimeError as problem:
                is_same = False
                print(f"{name}: {problem}")
        if is_same is None:
            left_out.append(name)
        elif is_same:
            n_same += 1
        else:
            wrong.append(name)
    print(f"{n_same} alike bit for bit; not loaded by mlx-lm: "
          f"{' '.join(left_out) or 'none'}; other: {' '.join(wrong) or 'none'}")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
