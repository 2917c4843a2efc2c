#!/usr/bin/env python3
"""A llama2.c model whose feed-forward is as wide as blocks of 32 want it.

What is put behind its channels is zero, so no logit changes; but Q8_0, which
leaves rows of other widths in half precision, has 8 bits for all of them:

    padded.py stories260K.bin padded.bin
"""
import argparse
import sys

import numpy as np

BLOCK = 64  # whole groups of the default, too


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="version 0, as llama2.c's first export")
    parser.add_argument("out")
    arguments = parser.parse_args()
    with open(arguments.model, "rb") as file:
        head = np.fromfile(file, "<i4", 7)
        rest = np.fromfile(file, "<f4")
    dim, hidden, layers, heads, kv_heads, vocab, _ = (int(x) for x in head)
    if hidden % BLOCK == 0 or vocab < 0 or dim % heads != 0:
        sys.exit(f"{arguments.model}: rows of {hidden}, nothing to do, or not "
                 "version 0 with a tied head")
    wide = (hidden + BLOCK - 1) // BLOCK * BLOCK
    kv_dim = dim // heads * kv_heads
    # The embedding; then of all layers a norm, Q, K, V, output, a norm
    at = vocab * dim + layers * (dim + 2 * dim * dim + 2 * kv_dim * dim + dim)
    parts = [rest[:at]]
    for shape, axis in [((layers, hidden, dim), 1),   # gate
                        ((layers, dim, hidden), 2),   # down
                        ((layers, hidden, dim), 1)]:  # up
        size = layers * hidden * dim
        pad = [(0, 0)] * 3
        pad[axis] = (0, wide - hidden)
        parts.append(np.pad(rest[at:at + size].reshape(shape), pad).ravel())
        at += size
    parts.append(rest[at:])  # the last norm, and rotations
    head[1] = wide
    with open(arguments.out, "wb") as file:
        head.tofile(file)
        for part in parts:
            part.astype("<f4").tofile(file)


if __name__ == "__main__":
    main()
