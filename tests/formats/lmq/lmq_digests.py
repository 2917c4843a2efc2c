"""lmq_digests.py - the digests of containers, as "Digests" of lmq(5) has them,
for read_lmq.py.
"""
import struct

try:
    import hashlib
except ImportError:  # then they stay unchecked
    hashlib = None

PLAIN, ALIAS = 0, 2
FILE, DIGESTS = 3, 5


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(value)) + value


def chunk_rows(r, log2):
    return max(16, (1 << log2) // r.columns // 16 * 16)


def n_chunks(r, log2):
    return -(-r.stored_rows // chunk_rows(r, log2))


def leaves(r):
    """Of a record that is no alias, in their order."""
    columns = r.columns
    if r.encoding == PLAIN:
        values = r.frame.extent(*r.values)
        size = len(values) // (r.stored_rows * columns)
    else:
        q, scales = r.frame.groups(r)
        size, values = 1, struct.pack("<%db" % len(q), *q)
        code, width = (("e", 2), ("f", 4))[r.scale_type]
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


def content(whole, found):
    parts = [b"lmq content 1\n", struct.pack("<I", len(whole.records))]
    for r in sorted(whole.records, key=lambda r: r.name.encode()):
        own = r.frame.records[r.alias] if r.encoding == ALIAS else r
        bits = 0 if own.encoding == PLAIN else own.bits
        parts += [text(r.name), struct.pack(
            "<8BIf", own.encoding, own.kind, own.scale_type, bits, 0, 0,
            len(own.dims), 0, own.group, own.multiplier),
            struct.pack("<%dQ" % len(own.dims), *own.dims),
            sha(*(leaf for p in whole.pieces[own.name] for leaf in found[p]))]
    parts.append(value(whole.metadata.get("model")))
    first = whole.members[0]
    files = sorted((s[6], first.content(s)) for s in first.sections
                   if s[0] == FILE)
    parts.append(struct.pack("<I", len(files)))
    for name, data in files:
        parts += [text(name), struct.pack("<Q", len(data)), sha(data)]
    return sha(*parts)


def root(c):
    head, table = bytearray(c.data[:128]), bytearray(c.table)
    head[52:56] = head[124:128] = bytes(4)
    stored = []
    for i, s in enumerate(c.sections):
        if s[0] == DIGESTS:
            table[96 * i + 32:96 * i + 36] = bytes(4)
        else:
            stored.append(sha(c.data[s[2]:s[2] + s[3]]))
    return sha(b"lmq root 1\n", head, table, *stored,
               c.digests[:16], bytes(32), c.digests[48:])


def chunks(c, found):
    log2, out = struct.unpack_from("<I", c.digests, 4)[0], b""
    for r in c.records:
        step = chunk_rows(r, log2) // 16
        if r.columns > 8192:
            step = step * 16 * -(-r.columns // 8192)
        all_of = found.get(r, ())
        out += b"".join(sha(*all_of[i:i + step])
                        for i in range(0, len(all_of), step))
    return out


def check(whole, need):
    """Of a whole, whose digests, roots and then the content, are returned."""
    records = [r for m in whole.members for r in m.records]
    found = {r: list(leaves(r)) for r in records
             if r.encoding != ALIAS and not r.unknown}
    has_unknown = any(r.unknown for r in records)
    own = None if has_unknown else content(whole, found)
    members = [m for m in whole.members if m.digests]
    for m in members:
        need(has_unknown or m.digests[80:] == chunks(m, found), "chunks")
        need(has_unknown or m.digests[48:80] == own, "content")
        need(m.digests[16:48] == root(m), "root")
    return [m.digests[16:48] for m in members] + ([own] if own else [])
