"""What the scripts of this folder share: what lmquant makes of a checkpoint."""
import json
import os
import struct
import subprocess
import tempfile
import zlib

import numpy as np

PLAIN = {"F32": np.float32, "F16": np.float16, "U8": np.uint8, "I8": np.int8,
         "I32": np.int32, "U32": np.uint32, "I64": np.int64}


def tensors(path):
    """Of one safetensors file of plain types."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = f.read()
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            found[name] = np.frombuffer(
                data[start:end], PLAIN[entry["dtype"]]).reshape(entry["shape"])
    return found


def weights(build, checkpoint):
    """All tensors as float32, by the names of Hugging Face."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        run = subprocess.run([build + "/lmquant", "export", "-q", "--to",
                              "safetensors", checkpoint, out],
                             capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)
        return tensors(os.path.join(out, "model.safetensors"))


def logits(build, checkpoint, ids, batch=0, activations="f32"):
    """After each of the ids; `batch` at a time, 0: all at once."""
    run = subprocess.run([build + "/tests/build/eval_logits", "-b",
                          str(batch or len(ids)), "-a", activations,
                          checkpoint, *map(str, ids)], capture_output=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.decode())
    return np.frombuffer(run.stdout, np.float32).reshape(len(ids), -1)


def digest(x):
    """CRC-32 of float32, NaNs as one, as the suites in C make it."""
    x = np.ravel(np.asarray(x, np.float32))
    bits = np.where(np.isnan(x), np.uint32(0x7fc00000), x.view(np.uint32))
    return f"0x{zlib.crc32(bits.astype('<u4').tobytes()):08x}"


def differ(ours, theirs):
    """How many elements have other bits; NaNs are equal, and zeros."""
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.shape == b.shape, (a.shape, b.shape)
    return int(np.count_nonzero((a != b) & ~(np.isnan(a) & np.isnan(b))))
