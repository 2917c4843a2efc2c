#!/usr/bin/env python3
"""Blocks of GGUF: random ones, decoded here, by the gguf package and by ggml.

    gguf_blocks.py [--ggml LIBGGML_BASE.so] [--blocks N] BUILD
    gguf_blocks.py --fixture BUILD

BUILD is where lmquant was built; needs `make check TESTS=` there once. Random
bytes have scales that are NaN or infinite, too. NaNs count as equal; all else
must be equal to the last bit. --fixture prints the table of
tests/quantize/test_blocks.c.
"""
import argparse
import ctypes
import subprocess
import sys
import zlib

import numpy as np
from gguf import GGMLQuantizationType, quants

PIECE = 10000  # blocks at a time


def types(build):
    lines = subprocess.run([build + "/tests/build/decode_blocks", "--list"],
                           capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        name, number, n, size = line.split()
        yield name, int(number), int(n), int(size)


def ours(build, name, blocks):
    out = subprocess.run([build + "/tests/build/decode_blocks", name],
                         input=blocks.tobytes(), capture_output=True,
                         check=True).stdout
    return np.frombuffer(out, dtype=np.float32)


def package(number, blocks):
    """None for what the package lists, but does not decode."""
    try:
        with np.errstate(all="ignore"):
            return quants.dequantize(blocks, GGMLQuantizationType(number))
    except (NotImplementedError, ValueError):
        return None


def ggml(library, name, n, blocks):
    name = name[:-1] + name[-1].upper() if name.endswith("_k") else name
    function = getattr(library, "dequantize_row_" + name)
    out = np.empty(len(blocks) * n, dtype=np.float32)
    function(blocks.ctypes.data_as(ctypes.c_void_p),
             out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(out)))
    return out


def bits(x):
    """With one NaN."""
    x = np.ravel(x).astype(np.float32)
    return np.where(np.isnan(x), np.uint32(0x7fc00000), x.view(np.uint32))


def compare(a, b):
    if b is None:
        return "-"
    return np.count_nonzero(bits(a) != bits(b))


def run(args):
    library = ctypes.CDLL(args.ggml) if args.ggml else None
    random = np.random.default_rng(1)
    wrong = 0
    print("| type | blocks | not finite | differ from gguf | from ggml |")
    print("| --- | --- | --- | --- | --- |")
    for name, number, n, size in types(args.build):
        strange, counts = 0, [0, 0]
        for start in range(0, args.blocks, PIECE):
            m = min(PIECE, args.blocks - start)
            blocks = random.integers(0, 256, (m, size), dtype=np.uint8)
            x = ours(args.build, name, blocks)
            assert len(x) == m * n
            strange += np.count_nonzero(~np.isfinite(x))
            others = (package(number, blocks),
                      ggml(library, name, n, blocks) if library else None)
            for i, other in enumerate(others):
                d = compare(x, other)
                counts[i] = d if d == "-" else counts[i] + d
        print(f"| {name} | {args.blocks} | {strange} | {counts[0]} |"
              f" {counts[1]} |", flush=True)
        wrong += sum(c for c in counts if c != "-")
    return int(wrong != 0)


def fixture(args):
    """Bytes of a linear congruence; CRC-32 of the floats, NaNs as one."""
    for name, number, n, size in types(args.build):
        state, data = number, bytearray()
        for _ in range(256 * size):
            state = (state * 1664525 + 1013904223) & 0xffffffff
            data.append(state >> 24)
        blocks = np.frombuffer(bytes(data), dtype=np.uint8).reshape(-1, size)
        x = package(number, blocks)
        if x is None:
            print(f"        /* not of the package: {name} */")
            x = ours(args.build, name, blocks)
        crc = zlib.crc32(bits(x).astype("<u4").tobytes())
        print(f'        {{"{name}", 0x{crc:08x}}},')
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ggml")
    parser.add_argument("--blocks", type=int, default=200000)
    parser.add_argument("--fixture", action="store_true")
    parser.add_argument("build")
    args = parser.parse_args()
    return fixture(args) if args.fixture else run(args)


sys.exit(main())
