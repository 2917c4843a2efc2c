#!/usr/bin/env python3
"""read_lmq.py - a reader of .lmq containers, written from lmq(5) alone.

It shares no code with lmquant. Checks what "Reading" asks for, also what a
reader SHOULD check; --verify adds "Verifying". For small files: reads all.
"""
import argparse
import json
import math
import re
import struct
import zlib
from pathlib import Path

F32, BF16, E4M3, E5M2 = 0, 2, 4, 5
SIZES = (4, 2, 2, 8, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1)
CODES = "fefd.ebBhHiIqQB"  # of struct, for the bytes that to_f32() makes
ROLES = ("- token_embd output output_norm attn_norm attn_q attn_k attn_v "
         "attn_output ffn_norm ffn_gate ffn_up ffn_down position_embd "
         "attn_q_norm attn_k_norm post_attention_norm post_ffw_norm "
         "attn_sinks ffn_gate_inp exp_probs_b ffn_gate_shexp ffn_up_shexp "
         "ffn_down_shexp ffn_gate_inp_shexp attn_q_a attn_q_a_norm attn_q_b "
         "attn_kv_a_mqa attn_kv_a_norm attn_k_b attn_v_b").split()
OUTSIDE, WITH_ITEMS = (1, 2, 3, 13), (10, 11, 12, 14, 15, 30, 31)
NUMBER = r"(0|[1-9]\d*)"
CANONICAL = re.compile(
    r"(%s|blk\.%s\.(%s|(%s)\.%s))\.(weight|bias)" % (
        "|".join(ROLES[i] for i in OUTSIDE), NUMBER,
        "|".join(ROLES[4:13] + ROLES[14:]),
        "|".join(ROLES[i] for i in WITH_ITEMS), NUMBER))
PLAIN, Q8, ALIAS = range(3)
METADATA, DIRECTORY, FILE = 1, 2, 3
DEFLATED, REQUIRED, TILES, VARIANT = 1, 2, 1, 1
W = 1 << 24
COUNTS = {"n_layers": 4096, "n_heads": 65536, "n_kv_heads": 65536, "dim": W,
          "hidden_dim": W, "head_dim": W, "vocab_size": W, "context": W << 4,
          "sliding_window": W << 4, "rope_context": W << 4}
NEWER = dict(n_experts=4096, n_experts_used=4096, n_expert_groups=4096,
             n_expert_groups_used=4096, value_dim=W, rotary_dim=W,
             q_lora_rank=W, kv_lora_rank=W, expert_dim=W, shared_dim=W)
REALS = "norm_eps rope_theta rope_factor rope_low_factor rope_high_factor"


def need(condition, message, *values):
    if not condition:
        raise ValueError(message % values)


def up(n, unit):
    return -(-n // unit) * unit


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def to_f32(kind, p):
    if kind == E4M3:  # read as f16 it is 2^-8 of itself; 480 is NaN
        p = b"".join(struct.pack("<H", (c & 128) << 8 | (c & 127) << 7)
                     for c in p)
        return [math.nan if abs(x) == 1.875 else 256 * x
                for x, in struct.iter_unpack("<e", p)]
    if kind in (BF16, E5M2):  # upper halves: zeros below
        n = SIZES[kind]
        p = b"".join(bytes(n) + p[i:i + n] for i in range(0, len(p), n))
    return [f32(x) for x, in struct.iter_unpack("<" + CODES[kind], p)]


class Record:  # one tensor of the directory
    def __init__(self, p, names, next_name):
        (at, length, role, part, self.encoding, layer, item, self.kind,
         self.layout, self.scale_type, n_dims, self.group, self.multiplier
         ) = struct.unpack_from("<IIHBBiiBBBBIf", p)
        dims = struct.unpack_from("<8Q", p, 32)
        (v_at, v_size, s_at, s_size, v_crc, s_crc, self.alias, source,
         *measures) = struct.unpack_from("<4Q4IffddQf", p, 96)
        self.values, self.scales = (v_at, v_size, v_crc), (s_at, s_size, s_crc)
        need(1 <= length <= 1024 and at == next_name and
             at + length <= len(names), "a tensor's name is out of place")
        self.name = names[at:at + length].decode("utf-8")
        self.need(part < 2 and self.encoding < 3 and self.layout < 2 and
                  self.scale_type < 2 and n_dims <= 8 and self.kind < 15 and
                  source < 15, "a kind that this reader does not know")
        self.need("\0" not in self.name and not any(p[180:192]), "zeros")
        self.need(all(dims[:n_dims]) and not any(dims[n_dims:]), "dimensions")
        self.dims = dims[:n_dims]
        self.columns = self.dims[-1] if self.dims else 1
        self.rows = math.prod(self.dims[:-1])
        self.need(self.rows * self.columns <= (2**63 - 1) // 8, "too large")
        self.need(all(x >= 0 for x in measures), "statistics")
        self.need((v_size, s_size) == self.sizes(), "sizes")
        self.need((self.alias != 0xFFFFFFFF) == (self.encoding == ALIAS) and
                  (self.encoding != ALIAS or not any(self.values)), "alias")
        self.need(-1 <= layer < 4096 and -1 <= item < 65536, "layer or item")
        if 0 < role < len(ROLES):
            outside = role in OUTSIDE
            self.need((layer == -1) == outside, "layer")
            self.need(item == -1 or role in WITH_ITEMS, "item")
            name = "" if outside else "blk.%d." % layer
            name += ROLES[role] + (".%d" % item if item >= 0 else "")
            name += (".weight", ".bias")[part]
            self.need(self.name == name, "should be called " + name)
        elif role == 0:
            self.need(layer == item == -1, "a layer without a role")
            self.need(not CANONICAL.fullmatch(self.name), "should have a role")

    def need(self, condition, message):
        need(condition, "tensor '%s': %s", self.name, message)

    def sizes(self):  # of values and scales, from the other fields
        if self.encoding != Q8:
            self.need(not any((self.group, self.multiplier, self.layout,
                               self.scale_type, *self.scales)) and
                      self.kind * self.encoding == 0, "unused fields")
            n = self.rows * self.columns * SIZES[self.kind]
            return (n if self.encoding == PLAIN else 0), 0
        mantissa, exponent = math.frexp(self.multiplier)
        self.need(self.group in (32, 64, 128, 256) and self.kind == 0 and
                  mantissa == 0.5 and abs(exponent - 1) <=
                  (126, 0)[self.scale_type], "group size or multiplier")
        self.n_groups = up(self.columns, self.group) // self.group
        rows, columns = self.rows, self.columns
        if self.layout == TILES:
            rows, columns = up(rows, 16), self.n_groups * self.group
        return rows * columns, rows * self.n_groups * (2, 4)[self.scale_type]


class Container:
    def __init__(self, path):
        self.data = path.read_bytes()
        self.read_superblock()
        self.read_table()
        self.read_directory(self.content(self.only(DIRECTORY)))
        self.check_tiling()
        self.read_metadata(self.content(self.only(METADATA)))
        names = [s[6] for s in self.sections if s[0] == FILE]
        need(len(names) == len({*names} - {b"", b".", b".."}), "file names")

    def check_place(self, at, size):
        need(at % 64 == 0 and 128 <= at <= len(self.data) - size, "place")

    def read_superblock(self):
        d = self.data
        need(len(d) >= 128 and d[:8] == b"\x89LMQ\r\n\x1a\n", "magic")
        need(d[8:12] == b"\4\3\2\1", "byte order")
        (major, minor, incompatible, _, size, self.table_at, n, table_crc, own
         ) = struct.unpack_from("<HHQQQQII68xI", d, 12)
        need(zlib.crc32(d[:124]) == own, "checksum of the superblock")
        need(major == 1 and incompatible in (0, VARIANT),
             "needs version %d.%d, flags %#x", major, minor, incompatible)
        need(size == len(d), "is %d bytes, expected %d", len(d), size)
        self.check_place(self.table_at, 96 * n)
        need(1 <= n <= 1024 and self.table_at + 96 * n + 32 == size, "table")
        need(not any(d[56:124]), "reserved bytes of the superblock")
        self.table = self.extent(self.table_at, 96 * n, table_crc)
        t = d[size - 32:]
        need(t[:8] == b"LMQEND\r\n" and not any(t[20:28]) and
             struct.unpack_from("<QI8xI", t, 8) ==
             (size, own, zlib.crc32(t[:28])), "the trailer is damaged")

    def read_table(self):
        self.sections = []
        for s in struct.iter_unpack("<IIQQQI4s56s", self.table):
            kind, flags, at, stored, size, crc, reserved, name = s
            need(flags < 4 and (kind in (1, 2, 3) or not flags & REQUIRED),
                 "needs section type %d, flags %#x", kind, flags)
            self.check_place(at, stored)
            need(max(stored, size) <= 1 << 28 and
                 (size // 1032 <= stored if flags & DEFLATED else
                  size == stored), "sizes of a section")
            name = name.rstrip(b"\0")
            need(not any(reserved) and all(0x20 < c < 0x7F and c != 0x2F
                                           for c in name), "section's name")
            self.sections.append((kind, flags, at, stored, size, crc, name))

    def only(self, kind):
        found = [s for s in self.sections if s[0] == kind]
        need(len(found) == 1, "%d sections of type %d", len(found), kind)
        return found[0]

    def extent(self, at, size, crc):
        found = self.data[at:at + size]
        need(zlib.crc32(found) == crc, "checksum of %d bytes at %d", size, at)
        return found

    def content(self, section):
        kind, flags, at, stored, size, crc, _ = section
        found = self.extent(at, stored, crc)
        if flags & DEFLATED:
            stream = zlib.decompressobj()
            found = stream.decompress(found, size + 1)
            need(stream.eof and not stream.unused_data and len(found) == size,
                 "section type %d does not inflate to its size", kind)
        return found

    def read_directory(self, d):
        n, size, names_size = struct.unpack_from("<IIQ", d)
        names_at, end, self.records = 16 + n * size, 0, []
        need(n <= 1 << 20 and 192 <= size <= 4096 and
             names_at + names_size == len(d), "header of the directory")
        for at in range(16, names_at, size):
            self.records.append(Record(d[at:at + size], d[names_at:], end))
            end += len(self.records[-1].name.encode())
            for place in (self.records[-1].values, self.records[-1].scales):
                if place[1] > 0:
                    self.check_place(*place[:2])
        need(end == names_size, "names are left over")
        for r in self.records:
            target = self.records[r.alias] if r.alias < n else r
            r.need(r.encoding != ALIAS or target.encoding != ALIAS and
                   target.dims == r.dims, "no alias of a stored tensor")
        self.by_name = {r.name: r for r in self.records}
        need(len(self.by_name) == n, "two tensors have the same name")

    def check_tiling(self):
        extents = [(0, 128), (self.table_at, len(self.table))]
        extents += [s[2:4] for s in self.sections]
        extents += [e[:2] for r in self.records for e in (r.values, r.scales)]
        self.paddings, end = [], 0
        for at, size in sorted(e for e in extents if e[1] > 0):
            need(at == up(end, 64), "an overlap or a gap at %d", at)
            self.paddings.append((end, at))
            end = at + size
        need(end + 32 == len(self.data), "something is behind the table")

    def read_metadata(self, text):
        metadata = json.loads(text.decode("utf-8"), object_pairs_hook=lambda p:
                              need(len(dict(p)) == len(p), "a key twice")
                              or dict(p))
        need(isinstance(metadata, dict), "the metadata are no object")
        model = metadata.get("model")
        for key, most in COUNTS.items() if model is not None else ():
            least = 0 if key in ("sliding_window", "rope_context") else 1
            need(type(model.get(key)) is int and least <= model[key] <= most,
                 "the model's %s", key)
        for key, most in NEWER.items() if model is not None else ():
            need(type(model.get(key, 0)) is int and
                 0 <= model.get(key, 0) <= most, "the model's %s", key)
        for key in REALS.split() if model is not None else ():
            least, most = (1, 1e15) if key == "rope_theta" else (0, 1e30)
            need(type(model.get(key)) in (int, float) and
                 least <= model[key] <= most, "the model's %s", key)

    def groups(self, r):  # integers and scales, row after row
        values, scales = self.extent(*r.values), self.extent(*r.scales)
        code = ("<e", "<f")[r.scale_type]
        scales = [s for s, in struct.iter_unpack(code, scales)]
        r.need(all(math.isfinite(s) and str(s)[0] != "-" for s in scales),
               "an illegal scale")
        r.need((0 if r.layout == TILES else 0x80) not in values, "holds -128")
        if r.layout != TILES:
            return [c - 256 if c > 127 else c for c in values], scales
        n, width, q, s = r.n_groups, r.n_groups * r.group, [], []
        for row in range(up(r.rows, 16)):
            tile, i = row // 16 * 16, row % 16
            line = [values[tile * width + c // 4 * 64 + i * 4 + c % 4] - 128
                    for c in range(width)]
            line_scales = [scales[tile * n + g * 16 + i] for g in range(n)]
            if row < r.rows:
                q.extend(line[:r.columns])
                s.extend(line_scales)
                line, line_scales = line[r.columns:], []
            r.need(not any(line + line_scales), "padding of its tiles")
        return q, s

    def read(self, r):  # elements as f32, row after row
        r = self.records[r.alias] if r.encoding == ALIAS else r
        if r.encoding == PLAIN:
            return to_f32(r.kind, self.extent(*r.values))
        q, scales = self.groups(r)
        factors, out = [f32(s * r.multiplier) for s in scales], []
        for i, number in enumerate(q):
            row, column = divmod(i, r.columns)
            factor = factors[row * r.n_groups + column // r.group]
            r.need(factor > 0 or number == 0, "a group without scale")
            out.append(f32(number * factor))
        return out

    def to_safetensors(self, path):
        header, data = {}, b""
        for r in self.records:
            values = self.read(r)
            header[r.name] = {"dtype": "F32", "shape": r.dims, "data_offsets":
                              (len(data), len(data) + 4 * len(values))}
            data += struct.pack("<%df" % len(values), *values)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def check(c):  # what "Verifying" adds to "Reading"
    need(not any(any(c.data[a:b]) for a, b in c.paddings), "padding")
    list(map(c.content, c.sections))
    list(map(c.read, c.records))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--dump", metavar="TENSOR")
    parser.add_argument("--compare-raw", nargs=2, metavar=("TENSOR", "FILE"))
    parser.add_argument("--to-safetensors", metavar="FILE", type=Path)
    args = parser.parse_args()
    try:
        container = Container(args.file)
        if args.verify:
            check(container)
    except (ValueError, OverflowError, struct.error, zlib.error) as error:
        raise SystemExit("%s: %s" % (args.file, error))
    for r in container.records if args.list else ():
        print(r.name, *r.dims, ("plain", "q8", "alias")[r.encoding])
    for x in container.read(container.by_name[args.dump]) if args.dump else ():
        print("%.9g" % x)
    if args.compare_raw:
        values = container.read(container.by_name[args.compare_raw[0]])
        raw = to_f32(F32, Path(args.compare_raw[1]).read_bytes())
        need(len(values) == len(raw), "%d and %d", len(values), len(raw))
        print("%.9g" % max(abs(a - b) for a, b in zip(values, raw)))
    if args.to_safetensors:
        container.to_safetensors(args.to_safetensors)


if __name__ == "__main__":
    main()
