#!/usr/bin/env python3
"""read_lmq.py - a reader of .lmq containers, written from lmq(5) alone.

It shares no code with lmquant. Checks what "Reading" asks for, also what a
reader SHOULD check; --verify adds "Verifying", with digests if hashlib is
there. --expect compares elements and
logits (lmq_model.py) with those of a file of tests/files/lmq. For small files:
reads all.
"""
import argparse
import json
import math
import re
import struct
import zlib
from pathlib import Path

import lmq_digests
import lmq_model

F32, BF16, E4M3, E5M2 = 0, 2, 4, 5
SIZES = (4, 2, 2, 8, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1)
CODES = "fefd.ebBhHiIqQB"  # of struct, for the bytes that to_f32() makes
ROLES = ("- token_embd output output_norm attn_norm attn_q attn_k attn_v "
         "attn_output ffn_norm ffn_gate ffn_up ffn_down position_embd "
         "attn_q_norm attn_k_norm post_attention_norm post_ffw_norm "
         "attn_sinks ffn_gate_inp exp_probs_b ffn_gate_shexp ffn_up_shexp "
         "ffn_down_shexp ffn_gate_inp_shexp attn_q_a attn_q_a_norm attn_q_b "
         "attn_kv_a_mqa attn_kv_a_norm attn_k_b attn_v_b attn_gate ssm_alpha "
         "ssm_beta ssm_a ssm_conv1d ssm_norm token_embd_norm "
         "per_layer_token_embd per_layer_model_proj per_layer_proj_norm "
         "inp_gate proj post_norm layer_output_scale ffn_gate_inp_norm "
         "pre_ffw_norm_2 post_ffw_norm_2 ffn_down_exps_scale post_ffw_norm_1 "
         "ffn_act_positive ffn_act_negative ffn_act_slope "
         "ffn_act_bound ssm_d ssm_q ssm_k ssm_v ssm_gate ssm_output "
         "ssm_alpha_a ssm_alpha_norm ssm_k_norm ssm_q_norm "
         "attn_gate_a attn_sub_norm ffn_sub_norm altup_proj altup_unembd_proj altup_router "
         "altup_router_norm altup_predict_coef altup_correct_coef "
         "altup_correct_scale laurel_l laurel_r laurel_post_norm "
         "attn_norm_a attn_norm_b ffn_norm_a ffn_norm_b hc_attn_fn "
         "hc_attn_base hc_attn_scale hc_ffn_fn hc_ffn_base hc_ffn_scale "
         "output_hc_fn output_hc_base output_hc_scale attn_output_a "
         "attn_compressor_kv attn_compressor_gate attn_compressor_ape "
         "attn_compressor_norm indexer.attn_q_b indexer.proj "
         "indexer_compressor_kv indexer_compressor_gate "
         "indexer_compressor_ape indexer_compressor_norm "
         "ffn_gate_tid2eid attn_growth hc_attn_down hc_attn_up hc_attn_inject hc_ffn_down "
         "hc_ffn_up hc_ffn_inject output_hc_down output_hc_up ple_embd "
         "ple_key ple_value ple_norm_key ple_norm_query ple_norm_conv "
         "ple_conv1d indexer.attn_k indexer.k_norm").split()
ALONE, STREAMS = (1, 2, 3, 13, 38, 39, 40, 41, 88, 89, 90, 110, 111), (68, 69)
OUTSIDE = ALONE + STREAMS
WITH_ITEMS = (10, 11, 12, 14, 15, 30, 31, 91)
NUMBER = r"(0|[1-9]\d*)"
CANONICAL = re.compile(
    r"(%s|(%s)\.%s|blk\.%s\.(%s|(%s)\.%s))\.(weight|bias)" % (
        "|".join(ROLES[i] for i in ALONE),
        "|".join(ROLES[i] for i in STREAMS), NUMBER, NUMBER,
        "|".join(map(re.escape, ROLES[4:13] + ROLES[14:38] + ROLES[42:68] +
                     ROLES[70:88] + ROLES[91:110] + ROLES[112:])),
        "|".join(ROLES[i] for i in WITH_ITEMS), NUMBER))
PLAIN, Q8, ALIAS, ROTATED_WHOLE, ROTATED_ALL, UNKNOWN = range(6)
INTEGERS = Q8, ROTATED_WHOLE, ROTATED_ALL
METADATA, DIRECTORY, FILE, STATISTICS, DIGESTS = 1, 2, 3, 4, 5
DEFLATED, REQUIRED, TILES = 1, 2, 1
# Kinds of a record: where each stands, and how many there are.
KINDS = ((10, 2, "part"), (11, 5, "encoding"), (20, 15, "type"),
         (21, 2, "layout"), (22, 2, "type of scales"),
         (198, 1, "zero points"), (199, 1, "scales of scales"))


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


def check_i_json(value, depth):
    brackets = isinstance(value, (dict, list))
    need(depth <= 32 or not brackets, "the metadata are nested too deeply")
    if isinstance(value, int):
        need(abs(value) <= 1 << 53, "an integer beyond 2^53")
    if isinstance(value, float):
        need(math.isfinite(value), "a number beyond f64")
    if isinstance(value, str):
        value.encode("utf-8")  # not half of a surrogate pair
        need("\0" not in value, "a zero byte in a text")
    if isinstance(value, dict):
        check_i_json(list(value), 0)
        value = list(value.values())
    for part in value if brackets else ():
        check_i_json(part, depth + 1)


def number(bits, values, tile, column, i):  # of a tile, from byte i of lines
    if bits == 8:
        return values[tile + column // 4 * 64 + i] - 128
    block, step = tile * bits // 8 + column // 32 * 64 * bits, column % 32 // 4
    at = step * (bits - 4)  # of what is above the lower four bits
    u = values[block + step // 2 * 64 + i] >> step % 2 * 4 & 15
    if bits > 4:
        u |= (values[block + (4 + at // 8) * 64 + i] >> at % 8 &
              (1 << bits - 4) - 1) << 4
    return u - (1 << bits - 1)


def turn(x):  # a group times the Hadamard matrix, by its root
    h = len(x) // 2
    while h:
        for i in range(len(x)):
            if not i & h:
                x[i], x[i + h] = f32(x[i] + x[i + h]), f32(x[i] - x[i + h])
        h //= 2
    return [f32(a / len(x) ** 0.5) for a in x]


class Record:  # one tensor of the directory
    def __init__(self, p, names, next_name, frame):
        (at, length, role, part, self.encoding, layer, item, self.kind,
         self.layout, self.scale_type, n_dims, self.group, self.multiplier
         ) = struct.unpack_from("<IIHBBiiBBBBIf", p)
        dims = struct.unpack_from("<8Q", p, 32)
        places = struct.unpack_from("<8Q", p, 96)
        self.extents = list(zip(places[::2], places[1::2],
                                struct.unpack_from("<4I", p, 160)))
        self.values, self.scales = self.extents[:2]
        first, n_stored, self.alias = struct.unpack_from("<QQI", p, 176)
        need(1 <= length <= 1024 and at == next_name and
             at + length <= len(names), "a tensor's name is out of place")
        self.name = names[at:at + length].decode("utf-8")
        self.need("\0" not in self.name and n_dims <= 8, "name or dimensions")
        self.need(all(dims[:n_dims]) and not any(dims[n_dims:]), "dimensions")
        self.dims = dims[:n_dims]
        self.columns = self.dims[-1] if self.dims else 1
        self.rows = math.prod(self.dims[:-1])
        self.need(self.rows * self.columns <= (2**63 - 1) // 8, "too large")
        self.unknown = next(("%s %d" % (what, p[i]) for i, n, what in KINDS
                             if p[i] >= n), None)
        self.bits = p[197]
        self.turns = self.encoding
        if self.encoding in INTEGERS and (
                self.bits not in (4, 5, 6, 8) or
                self.bits < 8 and self.layout != TILES):
            self.unknown = self.unknown or "%d bits" % self.bits
        self.role, self.layer = role, layer
        self.check_place(role, part, layer, item)
        if self.unknown:
            self.encoding, self.alias = UNKNOWN, 0xFFFFFFFF
        self.first, self.stored_rows, self.frame = first, n_stored, frame
        self.kinds = (role, part, self.encoding, layer, item, self.kind,
                      self.layout, self.scale_type, self.bits, self.group,
                      self.multiplier, self.dims, self.unknown, p[196])
        self.check_rows(first, frame)
        for extent in self.extents:
            self.need(extent[1] > 0 or not any(extent), "no extent")
            if extent[1] > 0:
                frame.check_place(*extent[:2], frame.alignment)
        if self.unknown:
            return
        self.need([e[1] for e in self.extents] == self.sizes(p), "sizes")
        self.need(frame.has_news or not any(p[200:256]), "zeros")
        self.need((self.alias != 0xFFFFFFFF) == (self.encoding == ALIAS),
                  "alias")

    def check_place(self, role, part, layer, item):
        self.need(-1 <= layer < 4096 and -1 <= item < 65536, "layer or item")
        if 0 < role < len(ROLES) and part < 2:
            outside = role in OUTSIDE
            self.need((layer == -1) == outside, "layer")
            self.need(item == -1 or role in WITH_ITEMS + STREAMS, "item")
            self.need(item >= 0 or role not in (30, 31, 91) + STREAMS, "no item")
            name = "" if outside else "blk.%d." % layer
            name += ROLES[role] + (".%d" % item if item >= 0 else "")
            name += (".weight", ".bias")[part]
            self.need(self.name == name, "should be called " + name)
        elif role == 0:
            self.need(layer == item == -1, "a layer without a role")
            self.need(not CANONICAL.fullmatch(self.name), "should have a role")

    def check_rows(self, first, frame):
        n, end = self.stored_rows, first + self.stored_rows
        if self.encoding == ALIAS:
            self.need(first == n == 0, "rows of an alias")
        elif frame.n_members == 0:
            self.need(first == 0 and n == self.rows, "rows")
        else:
            self.need(n > 0 and end <= self.rows and first % 16 == 0 and
                      (end % 16 == 0 or end == self.rows), "rows of a member")

    def need(self, condition, message):
        need(condition, "tensor '%s': %s", self.name, message)

    def sizes(self, p):  # of the extents, from the other fields
        if self.encoding not in INTEGERS:
            self.need(not any(p[21:23] + p[24:32] + p[197:198]) and
                      self.kind * self.encoding == 0, "unused fields")
            n = self.stored_rows * self.columns * SIZES[self.kind]
            return [n if self.encoding == PLAIN else 0, 0, 0, 0]
        mantissa, exponent = math.frexp(self.multiplier)
        is_whole = self.group in (64, 256) and self.columns % self.group == 0
        self.need(self.group in ((32, 64, 128, 256) if self.turns !=
                                 ROTATED_WHOLE else (64, 256)) and
                  not (is_whole and self.turns == ROTATED_ALL) and
                  self.kind == 0 and
                  mantissa == 0.5 and abs(exponent - 1) <=
                  (126, 0)[self.scale_type], "group size or multiplier")
        self.n_groups = up(self.columns, self.group) // self.group
        rows, columns = self.stored_rows, self.columns
        if self.layout == TILES:
            rows, columns = up(rows, 16), self.n_groups * self.group
        return [rows * columns * self.bits // 8, rows * self.n_groups *
                (2, 4)[self.scale_type], 0, 0]


class Container:
    def __init__(self, path):
        self.data = path.read_bytes()
        self.read_superblock()
        self.read_table()
        self.read_directory(self.content(self.only(DIRECTORY)))
        self.check_tiling()
        self.read_statistics()
        self.read_digests()
        self.read_metadata(self.content(self.only(METADATA)))
        names = [s[6] for s in self.sections if s[0] == FILE]
        need(len(names) == len({*names} - {b"", b".", b".."}), "file names")

    def check_place(self, at, size, alignment=64):
        need(at % alignment == 0 and 128 <= at <= len(self.data) - size,
             "place")

    def read_superblock(self):
        d = self.data
        need(len(d) >= 128 and d[:8] == b"\x89LMQ\r\n\x1a\n", "magic")
        need(d[8:12] == b"\4\3\2\1", "byte order")
        (major, minor, incompatible, compatible, size, self.table_at, n,
         table_crc, align, *zeros, self.member, self.n_members, self.set_id,
         own) = struct.unpack_from("<HHQQQQIIB3BII16s40xI", d, 12)
        need(zlib.crc32(d[:124]) == own, "checksum of the superblock")
        need(major == 1 and incompatible == 0,
             "needs version %d.%d, flags %#x", major, minor, incompatible)
        need(align != 0, "was written before the format was settled")
        self.has_news = compatible != 0  # reserved bytes may mean something
        need(size == len(d), "is %d bytes, expected %d", len(d), size)
        self.check_place(self.table_at, 96 * n)
        need(1 <= n <= 1024 and self.table_at + 96 * n + 48 == size, "table")
        need(6 <= align <= 21, "alignment 2^%d", align)
        self.alignment = 1 << align
        need(1 <= self.member <= self.n_members <= 99999 and any(self.set_id)
             if self.n_members else self.member == 0 and
             not any(self.set_id), "set")
        need(self.has_news or not any(zeros) and not any(d[84:124]),
             "reserved bytes of the superblock")
        self.table = self.extent(self.table_at, 96 * n, table_crc)
        t = d[size - 48:]
        need(t[:8] == b"LMQEND\r\n" and
             (self.has_news or not any(t[36:44])) and t[8:32] == d[32:56] and
             struct.unpack_from("<I8xI", t, 32) == (own, zlib.crc32(t[:44])),
             "the trailer is damaged")

    def read_table(self):
        self.sections = []
        for s in struct.iter_unpack("<IIQQQI4s56s", self.table):
            kind, flags, at, stored, size, crc, reserved, name = s
            need(kind > 0 and flags < 4 and
                 (kind <= DIGESTS or not flags & REQUIRED),
                 "needs section type %d, flags %#x", kind, flags)
            self.check_place(at, stored)
            need(max(stored, size) <= 1 << 28 and
                 (size <= (1 << 20) + 64 * stored if flags & DEFLATED else
                  size == stored), "sizes of a section")
            need(not flags & DEFLATED or kind == FILE or kind > DIGESTS,
                 "section type %d is deflated", kind)
            name = name.rstrip(b"\0")
            need((self.has_news or not any(reserved)) and
                 all(0x20 < c < 0x7F and c != 0x2F for c in name) and
                 (kind < 1 << 31 or b"." in name), "section's name")
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
        need(n <= 1 << 20 and 256 <= size <= 4096 and
             names_at + names_size == len(d), "header of the directory")
        for at in range(16, names_at, size):
            self.records.append(Record(d[at:at + size], d[names_at:], end,
                                       self))
            end += len(self.records[-1].name.encode())
        need(end == names_size, "names are left over")
        for r in self.records:
            target = self.records[r.alias] if r.alias < n else r
            r.need(r.encoding != ALIAS or target.encoding != ALIAS and
                   target.dims == r.dims, "no alias of a stored tensor")
        self.by_name = {r.name: r for r in self.records}
        need(len(self.by_name) == n, "two tensors have the same name")

    def check_tiling(self):
        extents = [(0, 128, 64), (self.table_at, len(self.table), 64)]
        extents += [(*s[2:4], 64) for s in self.sections]
        extents += [(*e[:2], self.alignment) for r in self.records
                    for e in r.extents]
        self.paddings, end = [], 0
        for at, size, alignment in sorted(e for e in extents if e[1] > 0):
            need(at == up(end, alignment), "an overlap or a gap at %d", at)
            self.paddings.append((end, at))
            end = at + size
        need(end + 48 == len(self.data), "something is behind the table")

    def read_statistics(self):
        if all(s[0] != STATISTICS for s in self.sections):
            return
        d = self.content(self.only(STATISTICS))
        n, size = struct.unpack_from("<II", d)
        need(n == len(self.records) and 48 <= size <= 4096 and
             len(d) == 8 + n * size, "header of the statistics")
        for at in range(8, len(d), size):
            a, b, _, *small = struct.unpack_from("<ddQfff", d, at)
            need(all(x >= 0 and math.copysign(1, x) > 0
                     for x in (a, b, *small)), "statistics")
            need(self.has_news or not any(d[at + 36:at + 48]), "statistics")

    def read_digests(self):
        self.digests = None
        if all(s[0] != DIGESTS for s in self.sections):
            return
        self.digests = d = self.content(self.only(DIGESTS))
        version, log2, n = struct.unpack_from("<IIQ", d)
        need(version == 1 and 20 <= log2 <= 26 and len(d) == 80 + 32 * n and
             n == sum(lmq_digests.n_chunks(r, log2) for r in self.records),
             "header of the digests")

    def read_metadata(self, text):
        metadata = json.loads(text.decode("utf-8"), object_pairs_hook=lambda p:
                              need(len(dict(p)) == len(p), "a key twice")
                              or dict(p))
        need(isinstance(metadata, dict), "the metadata are no object")
        check_i_json(metadata, 1)
        lmq_model.check_types(metadata, lmq_model.SCHEMA, "metadata")
        self.metadata = metadata
        said, wanted = metadata.get("set"), dict(
            id=self.set_id.hex(), member=self.member, members=self.n_members)
        need(said is None if self.n_members == 0 else said is not None and
             {k: said.get(k) for k in wanted} == wanted and
             said.get("tensors", -1) >= 0, "the object set")
        need(self.member <= 1 or "model" not in metadata and
             all(s[0] != FILE for s in self.sections), "not the first member")
        if "model" in metadata:
            lmq_model.check_keys(metadata["model"])

    def groups(self, r):  # integers and scales, row after row
        values, scales = self.extent(*r.values), self.extent(*r.scales)
        code = ("<e", "<f")[r.scale_type]
        scales = [s for s, in struct.iter_unpack(code, scales)]
        r.need(all(math.isfinite(s) and str(s) != "-0.0" and
                   (s >= 0 or r.bits < 8) for s in scales),
               "an illegal scale")
        r.need(r.bits < 8 or (0 if r.layout == TILES else 0x80) not in values,
               "holds -128")
        if r.layout != TILES:
            return [c - 256 if c > 127 else c for c in values], scales
        n, width, q, s = r.n_groups, r.n_groups * r.group, [], []
        for row in range(up(r.stored_rows, 16)):
            tile, i = row // 16 * 16, row % 16
            line = [number(r.bits, values, tile * width, c, i * 4 + c % 4)
                    for c in range(width)]
            line_scales = [scales[tile * n + g * 16 + i] for g in range(n)]
            if row < r.stored_rows:
                q.extend(line[:r.columns])
                s.extend(line_scales)
                line, line_scales = line[r.columns:], []
            r.need(not any(line + line_scales), "padding of its tiles")
        return q, s

    def read(self, r):  # elements that stand here as f32, row after row
        r.need(not r.unknown, "has %s" % r.unknown)
        if r.encoding == PLAIN:
            return to_f32(r.kind, self.extent(*r.values))
        q, scales = self.groups(r)
        factors, out = [f32(s * r.multiplier) for s in scales], []
        for i, number in enumerate(q):
            row, column = divmod(i, r.columns)
            factor = factors[row * r.n_groups + column // r.group]
            r.need(factor != 0 or number == 0, "a group without scale")
            out.append(f32(number * factor) + 0.0)
        for row in range(0, 0 if r.turns == Q8 else len(out), r.columns):
            for i in range(0, r.columns, r.group):
                end = row + min(i + r.group, r.columns)
                turn_group(out, row + i, end, r.turns == ROTATED_WHOLE, r.group)
        return out


def turn_group(out, at, end, is_whole, group):
    for size in (256, 64, 16, 4):
        while end - at >= size and (not is_whole or end - at == group):
            out[at:at + size] = turn(out[at:at + size])
            at += size


class Whole:  # what makes one model: a container, or the members of a set
    def __init__(self, path):
        first = Container(path)
        self.members, self.pieces = [first], {}
        if first.n_members:
            self.open_members(path, first)
        for r in (r for m in self.members for r in m.records):
            self.pieces.setdefault(r.name, []).append(r)
        for pieces in self.pieces.values():
            pieces.sort(key=lambda r: r.first)
            at = 0
            for r in pieces:
                r.need(r.kinds == pieces[0].kinds, "differs in two members")
                r.need(r.first == at and (at == 0 or r.stored_rows > 0),
                       "a gap, or rows that stand twice")
                at += r.stored_rows
            r.need(r.encoding == ALIAS and len(pieces) == 1 or at == r.rows,
                   "rows that stand in no member")
        for m in self.members if first.n_members else ():
            need(m.metadata["set"]["tensors"] == len(self.pieces),
                 "member %d says %d tensors", m.member,
                 m.metadata["set"]["tensors"])
        self.records = [pieces[0] for pieces in self.pieces.values()]
        self.by_name = {r.name: r for r in self.records}
        self.metadata, self.model = self.members[0].metadata, None
        if "model" in self.metadata:
            self.model = lmq_model.Model(self)

    def open_members(self, path, first):
        name = re.fullmatch(r"(.*)-(\d{5})-of-(\d{5})\.lmq", path.name)
        n = first.n_members
        need(name and int(name[2]) == first.member and int(name[3]) == n,
             "the name is not that of member %d of %d", first.member, n)
        paths = [path.with_name("%s-%05d-of-%05d.lmq" % (name[1], i + 1, n))
                 for i in range(n)]
        for p in paths:
            need(p.exists(), "%s is missing", p.name)
        self.members = [Container(p) for p in paths]
        for i, m in enumerate(self.members):
            need((m.member, m.n_members, m.set_id) == (i + 1, n, first.set_id),
                 "%s is member %d of %d of set %s", paths[i].name, m.member,
                 m.n_members, m.set_id.hex())

    def read(self, r):  # all rows, whichever record of it is given
        if r.encoding == ALIAS:
            r = r.frame.records[r.alias]
        return [x for p in self.pieces[r.name] for x in p.frame.read(p)]

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
    for r in c.records:
        if r.unknown:  # it can be no more than whole
            [c.extent(*e) for e in r.extents]
        elif r.encoding != ALIAS:
            c.read(r)


def expect(c, lines):
    tokens, logits, names = [], [], []
    for line in lines:
        name, *words = line.split(" ")
        if name == "tokens":
            tokens = list(map(int, words))
        elif name == "logits":
            logits.append(list(map(float, words)))
        elif words == ["unreadable"]:
            names.append(name)
            need(c.by_name[name].unknown, "%s can be read", name)
        else:  # a name may have blanks
            name, dims, crc = line.rsplit(" ", 2)
            r = c.by_name[name]
            names.append(name)
            need(dims == ("x".join(map(str, r.dims)) or "-"), "%s", dims)
            x = c.read(r)
            found = zlib.crc32(struct.pack("<%df" % len(x), *x))
            need("%08x" % found == crc, "%s: %08x, not %s", name, found, crc)
    need(sorted(names) == sorted(c.by_name), "other tensors")
    need(c.model is None or bool(logits) == (not c.model.why),
         "is computed or not: %s", c.model and c.model.why)
    for i, row in enumerate(logits):
        found = c.model.logits(tokens[:i + 1])
        most = max(map(abs, row))
        far = max(abs(a - b) for a, b in zip(found, row)) / most
        need(len(row) == len(found) and far < 1e-4,
             "the logits after token %d are %g off", i, far)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--digests", action="store_true",
                        help="print the roots and the content")
    parser.add_argument("--expect", metavar="FILE", type=Path)
    parser.add_argument("--dump", metavar="TENSOR")
    parser.add_argument("--compare-raw", nargs=2, metavar=("TENSOR", "FILE"))
    parser.add_argument("--to-safetensors", metavar="FILE", type=Path)
    args = parser.parse_args()
    try:
        whole = Whole(args.file)
        for member in whole.members if args.verify else ():
            check(member)
        has_digests = any(m.digests for m in whole.members)
        if lmq_digests.hashlib and (args.digests or
                                    args.verify and has_digests):
            found = lmq_digests.check(whole, need)
            for digest in found if args.digests else ():
                print("sha256:" + digest.hex())
        if args.expect:
            expect(whole, args.expect.read_text().splitlines())
    except (ValueError, OverflowError, struct.error, zlib.error) as error:
        raise SystemExit("%s: %s" % (args.file, error))
    for r in whole.records if args.list else ():
        print(r.name, *r.dims,
              r.unknown or ("plain", "q8", "alias", "q8 turned")[r.encoding])
    for x in whole.read(whole.by_name[args.dump]) if args.dump else ():
        print("%.9g" % x)
    if args.compare_raw:
        values = whole.read(whole.by_name[args.compare_raw[0]])
        raw = to_f32(F32, Path(args.compare_raw[1]).read_bytes())
        need(len(values) == len(raw), "%d and %d", len(values), len(raw))
        print("%.9g" % max(abs(a - b) for a, b in zip(values, raw)))
    if args.to_safetensors:
        whole.to_safetensors(args.to_safetensors)


if __name__ == "__main__":
    main()
