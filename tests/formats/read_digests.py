#!/usr/bin/env python3
"""read_digests.py - computes the digests of a .lmq container, as "Digests" of
lmq(5) has them, with the reader of that page and hashlib.

Prints the root, if the file has digests, and the content; what the file says
must be the same.
"""
import hashlib
import json
import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import read_lmq
from read_lmq import ALIAS, FILE, METADATA, PLAIN, SIZES, need

DIGESTS = 5


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(value)) + value


def leaves(c, r):
    """Of a record that is no alias, in their order."""
    columns = r.columns
    if r.encoding == PLAIN:
        size, values = SIZES[r.kind], c.extent(*r.values)
    else:
        q, scales = c.groups(r)
        size, values = 1, struct.pack("<%db" % len(q), *q)
        code = ("e", "f")[r.scale_type]
        width = (2, 4)[r.scale_type]
        scales = struct.pack("<%d%s" % (len(scales), code), *scales)
    down, across = (16, columns) if columns <= 8192 else (1, 8192)
    for row in range(0, r.stored_rows, down):
        rows = min(down, r.stored_rows - row)
        for column in range(0, columns, across):
            n = min(across, columns - column)
            at = (row * columns + column) * size
            leaf = [values[at:at + rows * n * size]]
            if r.encoding != PLAIN:
                at = (row * r.n_groups + column // r.group) * width
                groups = -(-n // r.group)
                leaf.append(scales[at:at + rows * groups * width])
            yield sha(*leaf)


def value(v):
    if isinstance(v, dict):
        keys = sorted(v, key=str.encode)
        return b"{" + struct.pack("<I", len(v)) + b"".join(
            text(key) + value(v[key]) for key in keys)
    if isinstance(v, list):
        return b"[" + struct.pack("<I", len(v)) + b"".join(map(value, v))
    if isinstance(v, str):
        return b"s" + text(v)
    if v is None or isinstance(v, bool):
        return {None: b"z", True: b"t", False: b"f"}[v]
    return b"n" + struct.pack("<d", v)


def content(c, tensors):
    parts = [b"lmq content 1\n", struct.pack("<I", len(c.records))]
    for r in sorted(c.records, key=lambda r: r.name.encode()):
        own = c.records[r.alias] if r.encoding == ALIAS else r
        q8 = own.encoding != PLAIN
        parts += [text(r.name), struct.pack(
            "<8BIf", own.encoding, own.kind, own.scale_type, 8 if q8 else 0,
            0, 0, len(own.dims), 0, own.group, own.multiplier),
            struct.pack("<%dQ" % len(own.dims), *own.dims), tensors[own.name]]
    metadata = json.loads(c.content(c.only(METADATA)))
    parts.append(value(metadata.get("model")))
    files = sorted((s[6], c.content(s)) for s in c.sections if s[0] == FILE)
    parts.append(struct.pack("<I", len(files)))
    for name, data in files:
        parts += [text(name), struct.pack("<Q", len(data)), sha(data)]
    return sha(*parts)


def root(c, section):
    head, table = bytearray(c.data[:128]), bytearray(c.table)
    head[52:56] = head[124:128] = bytes(4)
    stored = []
    for i, s in enumerate(c.sections):
        if s[0] == DIGESTS:
            table[96 * i + 32:96 * i + 36] = bytes(4)
        else:
            stored.append(sha(c.data[s[2]:s[2] + s[3]]))
    return sha(b"lmq root 1\n", head, table, *stored,
               section[:16], bytes(32), section[48:])


def main():
    c = read_lmq.Container(Path(sys.argv[1]))
    found = {r.name: list(leaves(c, r)) for r in c.records
             if r.encoding != ALIAS}
    tensors = {name: sha(*all_of) for name, all_of in found.items()}
    own = content(c, tensors)
    if any(s[0] == DIGESTS for s in c.sections):
        section = c.content(c.only(DIGESTS))
        version, log2, n = struct.unpack_from("<IIQ", section)
        need(version == 1 and 20 <= log2 <= 26, "version or chunks")
        chunks = []
        for r in c.records:
            if r.encoding == ALIAS:
                continue
            rows = max(16, (1 << log2) // r.columns // 16 * 16)
            step = rows // 16
            if r.columns > 8192:
                step = rows * -(-r.columns // 8192)
            all_of = found[r.name]
            chunks += [sha(*all_of[i:i + step])
                       for i in range(0, len(all_of), step)]
        need(n == len(chunks) and section[80:] == b"".join(chunks), "chunks")
        need(section[48:80] == own, "content")
        need(section[16:48] == root(c, section), "root")
        print("sha256:" + section[16:48].hex())
    print("sha256:" + own.hex())


main()
