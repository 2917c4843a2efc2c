"""lmq_container.py - the container of .lmq files: rules R1 to R51 and V1 to V5.

Written from lmq(5) and lmq-model(5) alone by somebody who had not seen the
program; see reader.py.
"""

import hashlib
import json
import math
import mmap
import os
import re
import struct
import zlib

import numpy as np

METADATA, DIRECTORY, FILE, STATISTICS, DIGESTS = range(1, 6)
DEFLATED, REQUIRED = 1, 2
PLAIN, Q8, ALIAS, ROTATED_WHOLE, ROTATED_ALL = range(5)
NONE32 = 0xffffffff
MAX_ELEMENTS = (2**63 - 1) // 8
ELEMENT_SIZES = (4, 2, 2, 8, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1)
ELEMENT_DTYPES = ('<f4', '<f2', '<u2', '<f8', 'u1', 'u1', 'i1', 'u1', '<i2', '<u2',
                  '<i4', '<u4', '<i8', '<u8', 'u1')
ELEMENT_BF16, ELEMENT_E4M3, ELEMENT_E5M2 = 2, 4, 5

# Roles: name, shape (section 10 of lmq(5)); '*' has an item always, '?' may.
ROLES = {
    1: ('token_embd', 'vocab_size dim'), 13: ('position_embd', 'context dim'),
    38: ('token_embd_norm', 'dim'), 39: ('per_layer_token_embd', 'input_rows inputs'),
    40: ('per_layer_model_proj', 'inputs dim'),
    41: ('per_layer_proj_norm', 'layer_input_dim'),
    4: ('blk.attn_norm', 'read'), 5: ('blk.attn_q', 'heads*h seen'),
    25: ('blk.attn_q_a', 'q_lora_rank dim'), 26: ('blk.attn_q_a_norm', 'q_lora_rank'),
    27: ('blk.attn_q_b', 'heads*h q_latents'), 28: ('blk.attn_kv_a_mqa', 'k+t dim'),
    29: ('blk.attn_kv_a_norm', 'k'), 6: ('blk.attn_k', 'kv*h seen'),
    7: ('blk.attn_v', 'kv*v dim'), 14: ('blk.attn_q_norm?', 'q_norm'),
    15: ('blk.attn_k_norm?', 'k_norm'), 18: ('blk.attn_sinks', 'heads'),
    30: ('blk.attn_k_b*', 'k h-t'), 31: ('blk.attn_v_b*', 'v k'),
    32: ('blk.attn_gate', 'gate gated'),
    33: ('blk.ssm_alpha', 'alphas steps'),
    34: ('blk.ssm_beta', 'betas written'),
    35: ('blk.ssm_a', 'decays'),
    36: ('blk.ssm_conv1d', 'channels conv_width'), 37: ('blk.ssm_norm', 'ssm_norm'),
    55: ('blk.ssm_d', 'n_delta_value_heads'),
    56: ('blk.ssm_q', 'state_keys dim'), 57: ('blk.ssm_k', 'state_keys dim'),
    58: ('blk.ssm_v', 'state_values dim'), 59: ('blk.ssm_gate', 'state_values latents'),
    60: ('blk.ssm_output', 'dim state_values'),
    61: ('blk.ssm_alpha_a', 'step_rank seen'),
    62: ('blk.ssm_alpha_norm', 'step_rank'),
    63: ('blk.ssm_k_norm', 'delta_key_dim'), 64: ('blk.ssm_q_norm', 'delta_key_dim'),
    65: ('blk.attn_gate_a', 'gate_rank dim'),
    66: ('blk.attn_sub_norm', 'heads*v'), 67: ('blk.ffn_sub_norm', 'hidden'),
    8: ('blk.attn_output', 'dim mixed'), 16: ('blk.post_attention_norm', 'dim'),
    9: ('blk.ffn_norm', 'read'), 19: ('blk.ffn_gate_inp', 'n_experts dim'),
    20: ('blk.exp_probs_b', 'n_experts'), 10: ('blk.ffn_gate?', 'hidden dim'),
    11: ('blk.ffn_up?', 'hidden dim'), 12: ('blk.ffn_down?', 'dim hidden'),
    24: ('blk.ffn_gate_inp_shexp', 'dim'), 21: ('blk.ffn_gate_shexp', 'shared_dim dim'),
    22: ('blk.ffn_up_shexp', 'shared_dim dim'),
    23: ('blk.ffn_down_shexp', 'dim shared_dim'),
    46: ('blk.ffn_gate_inp_norm', 'dim'), 47: ('blk.pre_ffw_norm_2', 'dim'),
    49: ('blk.ffn_down_exps_scale', 'n_experts'),
    50: ('blk.post_ffw_norm_1', 'dim'), 48: ('blk.post_ffw_norm_2', 'dim'),
    51: ('blk.ffn_act_positive', 'one'), 52: ('blk.ffn_act_negative', 'one'),
    53: ('blk.ffn_act_slope', 'one'), 54: ('blk.ffn_act_bound', 'one'),
    17: ('blk.post_ffw_norm', 'dim'), 42: ('blk.inp_gate', 'layer_input_dim dim'),
    43: ('blk.proj', 'dim layer_input_dim'), 44: ('blk.post_norm', 'dim'),
    45: ('blk.layer_output_scale', 'one'),
    68: ('altup_proj*', 'dim dim'), 69: ('altup_unembd_proj*', 'dim dim'),
    70: ('blk.altup_router', 'n_streams dim'), 71: ('blk.altup_router_norm', 'dim'),
    72: ('blk.altup_predict_coef', 'SxS n_streams'),
    73: ('blk.altup_correct_coef', 'n_streams n_streams'),
    74: ('blk.altup_correct_scale', 'dim'),
    75: ('blk.laurel_l', 'residual_rank dim'), 76: ('blk.laurel_r', 'dim residual_rank'),
    77: ('blk.laurel_post_norm', 'dim'),
    78: ('blk.attn_norm_a', 'norm_gate_rank dim'),
    79: ('blk.attn_norm_b', 'dim norm_gate_rank'),
    80: ('blk.ffn_norm_a', 'norm_gate_rank dim'),
    81: ('blk.ffn_norm_b', 'dim norm_gate_rank'),
    82: ('blk.hc_attn_fn', 'mixes SxD'), 83: ('blk.hc_attn_base', 'mixes'),
    84: ('blk.hc_attn_scale', 'mix_kinds'),
    85: ('blk.hc_ffn_fn', 'mixes SxD'), 86: ('blk.hc_ffn_base', 'mixes'),
    87: ('blk.hc_ffn_scale', 'mix_kinds'),
    88: ('output_hc_fn', 'n_streams SxD'), 89: ('output_hc_base', 'n_streams'),
    90: ('output_hc_scale', 'one'),
    91: ('blk.attn_output_a*', 'out_rank part'),
    92: ('blk.attn_compressor_kv', 'pooled dim'),
    93: ('blk.attn_compressor_gate', 'pooled dim'),
    94: ('blk.attn_compressor_ape', 'pool pooled'),
    95: ('blk.attn_compressor_norm', 'h'),
    96: ('blk.indexer.attn_q_b', 'index_queries q_lora_rank'),
    97: ('blk.indexer.proj', 'n_index_heads dim'),
    98: ('blk.indexer_compressor_kv', 'indexed dim'),
    99: ('blk.indexer_compressor_gate', 'indexed dim'),
    100: ('blk.indexer_compressor_ape', 'pool indexed'),
    101: ('blk.indexer_compressor_norm', 'index_dim'),
    102: ('blk.ffn_gate_tid2eid', 'vocab_size n_experts_used'),
    103: ('blk.attn_growth', 'heads'),
    104: ('blk.hc_attn_down', 'stream_rank SxD'), 105: ('blk.hc_attn_up', 'SxD stream_rank'),
    106: ('blk.hc_attn_inject', 'n_streams SxD'),
    107: ('blk.hc_ffn_down', 'stream_rank SxD'), 108: ('blk.hc_ffn_up', 'SxD stream_rank'),
    109: ('blk.hc_ffn_inject', 'n_streams SxD'),
    110: ('output_hc_down', 'stream_rank SxD'), 111: ('output_hc_up', 'SxD stream_rank'),
    112: ('blk.ple_embd', 'grams gram_dim'), 113: ('blk.ple_key', 'SxD gram_width'),
    114: ('blk.ple_value', 'dim gram_width'), 115: ('blk.ple_norm_key', 'SxD'),
    116: ('blk.ple_norm_query', 'SxD'), 117: ('blk.ple_norm_conv', 'SxD'),
    118: ('blk.ple_conv1d', 'SxD gram_conv_width'), 
    119: ('blk.indexer.attn_k', 'index_dim dim'),
    120: ('blk.indexer.k_norm', 'index_dim'), 3: ('output_norm', 'read'),
    2: ('output', 'vocab_size dim')}

HUGE, LONG = 16777216, 268435456
ALWAYS = object()
# Keys of 'model' (section 1 of lmq-model(5)): type, greatest number or words,
# default, least.
KEYS = {}
for _type, _limit, _default, _least, _names in (
        ('text', None, None, None, 'architecture unsupported'),
        ('count', 4096, ALWAYS, 1, 'n_layers'),
        ('count', HUGE, ALWAYS, 1, 'dim hidden_dim head_dim vocab_size'),
        ('count', 65536, ALWAYS, 1, 'n_heads n_kv_heads'),
        ('count', LONG, ALWAYS, 1, 'context'),
        ('count', LONG, ALWAYS, 0, 'sliding_window rope_context'),
        ('number', 1e30, ALWAYS, 0,
         'norm_eps rope_theta rope_factor rope_low_factor rope_high_factor'),
        ('word', 'none linear llama3 ntk dynamic yarn longrope factors', ALWAYS, None,
         'rope_scaling'),
        ('token', 2**31 - 1, None, 0, 'bos'),
        ('tokens', 2**31 - 1, None, 0, 'eos'),
        ('count', HUGE, 0, 0,
         'value_dim q_lora_rank kv_lora_rank rotary_dim expert_dim shared_dim'),
        ('count', 4096, 0, 0,
         'n_experts n_experts_used n_expert_groups n_expert_groups_used'),
        ('count', LONG, 0, 0, 'context_end attention_chunk score_growth_period score_growth_shift'),
        ('count', 65536, 0, 0, 'n_delta_key_heads n_delta_value_heads'),
        ('count', HUGE, 0, 0, 'delta_key_dim delta_value_dim step_rank gate_rank'),
        ('count', 16, 0, 0, 'conv_width'),
        ('count', HUGE, 0, 0, 'full_head_dim full_rotary_dim full_value_dim '
         'full_kv_lora_rank borrowing_hidden_dim '
         'layer_input_dim layer_input_vocab residual_rank norm_gate_rank '
         'out_rank index_dim'),
        ('count', 65536, 0, 0, 'n_out_groups n_index_heads'),
        ('count', 4096, 0, 0, 'pool_size overlap_size'), ('count', LONG, 0, 0, 'index_topk'),
        ('count', HUGE, 0, 0, 'stream_rank gram_dim gram_stop'),
        ('count', 8, 0, 0, 'gram_size'), ('count', 512, 0, 0, 'gram_heads'),
        ('count', 16, 0, 0, 'gram_conv_width'),
        ('count', 8, 0, 0, 'n_streams'), ('count', 1024, 0, 0, 'stream_rounds'), ('count', 64, 0, 0, 'n_loops'),
        ('count', 65536, 0, 0, 'full_kv_heads'), ('count', 4096, 0, 0, 'n_borrowing'),
        ('number', 1e30, 0, 0,
         'rope_local_theta logit_softcap attn_scale full_attn_scale attn_softcap qkv_clip '
         'score_growth glu_limit glu_offset sparse_cut act_limit '
         'expert_act_limit latent_eps router_reach '
         'router_softcap state_eps post_norm_eps decay_floor decay_step '
         'index_eps stream_eps stream_floor'),
        ('number', 1e30, 32, 0, 'rope_beta_fast'),
        ('number', 1e30, 1, 0, 'rope_beta_slow rope_attention_factor embedding_scale '
         'residual_scale logit_scale router_scale shared_scale '
         'activation_slope value_scale beta_scale attn_keep delta_keep feed_keep '
         'attn_add delta_add feed_add decay_first stream_gain'),
        ('switch', None, True, None, 'gated'),
        ('switch', None, False, None,
         'embedding_norm bare_embedding_norm '
         'sinks attn_gate attn_gate_by_head attn_gate_softplus raw_latents turned_values '
         'router_renormalises router_corrects '
         'qk_norm_late score_growth_still head_growth still_whole rope_ramp_exact router_scales_input router_early '
         'expert_norms full_keys_are_values value_norm layer_scale bare_states '
         'step_norms step_norm_weights key_decays sigmoid_gates '
         'sub_norms mixture_norm loop_norm stream_mean glu_limit_of_experts normed_residual'),
        ('word', 'guessed hyper gated', 'guessed', None, 'stream_kind'),
        ('word', 'rms layer layer_plain rms_plain', 'rms', None, 'norm'),
        ('word', 'before after around', 'before', None, 'norm_place'),
        ('word', 'sequential parallel parallel_one_norm', 'sequential', None, 'residual'),
        ('word', 'none head heads whole bare bare_all bare_queries turning', 'none', None,
         'qk_norm'),
        ('word', 'rotary learned alibi alibi_scaled none', 'rotary', None, 'positions'),
        ('word', 'silu gelu gelu_tanh relu sigmoid relu2 xielu', 'silu', None, 'activation'),
        ('word', 'softmax softmax_chosen sigmoid near sigmoid_chosen root_softplus', 'softmax', None, 'router'),
        ('word', 'best best_two', 'best', None, 'expert_group_worth'),
        ('word', 'delta state_space convolution selective lightning lru', 'delta', None,
         'recurrence'),
        ('layers', None, (), 0,
         'full_layers still_layers dense_layers delta_layers bare_layers feed_layers '
         'beside_layers sinkless_layers after_layers sparse_layers limited_layers '
         'limited_expert_layers pool_layers overlap_layers token_layers '
         'gram_layers index_layers'),
        ('counts', 65536, (), 1, 'layer_heads layer_kv_heads'),
        ('counts', HUGE, (), 1, 'layer_hidden_dims'),
        ('factors', 512, (), None, 'rope_short rope_long'),
        ('integers', 2**32 - 1, (), 0, 'gram_rows'), ('pairs', 2**32 - 1, (), 0, 'gram_factors'),
        ('keys', None, None, None, 'requires')):
    for _name in _names.split():
        KEYS[_name] = (_type, _limit, _default, _least)

# Keys of the metadata (section 16 of lmq(5)): S string, I integer, A strings, O object.
ABOUT = {**dict.fromkeys('name author organization version basename finetune size_label '
                         'quantized_by description license license_name license_link url '
                         'repo_url doi'.split(), 'S'),
         **dict.fromkeys('base_model tags languages datasets'.split(), 'A')}
TOP = {'model': {}, 'about': ABOUT, 'architecture': 'S', 'unsupported': 'S',
       'tie_rule': 'S',
       'quantization': {'method': 'S', 'scales': 'S', 'layout': 'S', 'on_nonfinite': 'S',
                        'group_size': 'I'},
       'recommended': {'activations': 'S'},
       'provenance': {'tool': 'S', 'format': 'S', 'stored_names': 'A',
                      'sources': [{'name': 'S', 'size': 'I', 'crc32': 'S'}]},
       'set': {'id': 'S', 'member': 'I', 'members': 'I', 'tensors': 'I'}}


class Refused(Exception):
    """The file breaks a rule of the pages."""

    def __init__(self, rule, text):
        super().__init__(f'{rule}: {text}')
        self.rule = rule


class NotUnderstood(Refused):
    """The file is good, but this cannot be read (kind) or computed (M8 to M12)."""


def need(condition, rule, text):
    if not condition:
        raise Refused(rule, text)


def up(n, multiple):
    return -(-n // multiple) * multiple


def is_integer(x):
    return isinstance(x, int) and not isinstance(x, bool)


def is_number(x):
    return isinstance(x, float) or is_integer(x)


# ---- Metadata ----

def parse_json(data):
    """Section 16 and R39: I-JSON, an object, at most 32 levels deep."""
    def bad(text):
        raise Refused('R39', text)

    def integer(text):
        if len(text) > 20 or abs(int(text)) > 2**53:
            bad('an integer beyond 2^53')
        return int(text)

    def real(text):
        value = float(text)
        return value if math.isfinite(value) else bad('a number beyond f64')

    def check(text):
        if re.search('[\0\ud800-\udfff]', text):
            bad('U+0000 or half of a surrogate pair')

    def pairs(items):
        for key, _ in items:
            check(key)
        result = dict(items)
        return result if len(result) == len(items) else bad('a key twice')

    def walk(value):
        if isinstance(value, str):
            check(value)
        elif isinstance(value, (list, dict)):
            for v in value.values() if isinstance(value, dict) else value:
                walk(v)

    need(len(data) <= 2**26, 'R39', 'metadata too large')
    depth = 0
    for c in re.sub(rb'[^][{}]', b'',
                    re.sub(rb'"(?:[^"\\]|\\.)*"', b'', data, flags=re.S)):
        depth += 1 if c in b'[{' else -1
        need(depth <= 32, 'R39', 'nested too deeply')
    try:
        value = json.loads(data.decode('utf-8'), parse_int=integer, parse_float=real,
                           parse_constant=bad, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as e:
        bad(str(e))
    walk(value)
    need(isinstance(value, dict), 'R39', 'no object')
    return value


def check_types(value, what, where='metadata'):
    """R40: value has the type that a table like TOP says."""
    if isinstance(what, dict):
        good = isinstance(value, dict)
        for key in what if good else ():
            if key in value:
                check_types(value[key], what[key], key)
        if good and what is ABOUT:
            for key in ABOUT.keys() & value.keys():
                texts = value[key] if ABOUT[key] == 'A' else [value[key]]
                good = good and len(texts) <= 256 and all(
                    len(t.encode()) <= 4096 for t in texts)
    elif isinstance(what, list):
        good = isinstance(value, list)
        for v in value if good else ():
            check_types(v, what[0], where)
    elif what == 'A':
        good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    else:
        good = isinstance(value, str) if what == 'S' else is_integer(value)
    need(good, 'R40', f'{where!r} has another type or is too long')


def check_description(model):
    """R43 and R44: M1 to M4 of lmq-model(5)."""
    types = {'text': lambda v: isinstance(v, str), 'word': lambda v: isinstance(v, str),
             'count': is_integer, 'token': is_integer, 'number': is_number,
             'switch': lambda v: isinstance(v, bool)}
    items = {'tokens': is_integer, 'layers': is_integer, 'counts': is_integer,
             'factors': is_number, 'integers': is_integer, 'pairs': is_integer}
    for key, (_, _, default, _) in KEYS.items():
        need(default is not ALWAYS or key in model or key == 'rope_scaling', 'M1',
             f'no {key}')
    for key in KEYS.keys() & model.keys():
        kind, value = KEYS[key][0], model[key]
        if kind in types:
            need(types[kind](value), 'M2', f'{key} is no {kind}')
        else:
            need(isinstance(value, list), 'M2', f'{key} is no array')
            need(kind not in items or all(map(items[kind], value)), 'M2',
                 f'{key}: no {kind}')
    for key in KEYS.keys() & model.keys():
        kind, most, _, least = KEYS[key]
        values = model[key] if isinstance(model[key], list) else [model[key]]
        if kind == 'layers':
            most = model['n_layers'] - 1
        if kind in ('count', 'number', 'token', 'tokens', 'layers', 'counts',
                    'integers', 'pairs'):
            need(all(least <= v <= most for v in values), 'M3', f'{key} is out of range')
        if kind in ('integers', 'pairs'):
            need(len(values) <= 512 * (1 + (kind == 'pairs'))
                 and (kind == 'integers' or len(values) % 2 == 0), 'M3', f'{key}: how many')
        if kind == 'counts':
            need(len(values) in (0, model['n_layers']), 'M3', f'{key} of other layers')
    need(len(model.get('eos', ())) <= 8, 'M3', 'more than 8 eos')
    short, long = model.get('rope_short', ()), model.get('rope_long', ())
    need(len(short) <= 512 and len(long) == len(short), 'M3',
         'rope_short and rope_long')
    for key in model.get('requires', ()):
        need(isinstance(key, str) and key in model, 'R44', f'requires {key!r}')


# ---- Container ----

class Section:
    FORMAT = struct.Struct('<IIQQQI4s56s')

    def __init__(self, data, lenient, file_size):
        (self.type, self.flags, self.offset, self.stored_size, self.size, self.crc,
         reserved, name) = self.FORMAT.unpack(data)
        known = 1 <= self.type <= DIGESTS
        self.name = name.rstrip(b'\0')
        need(self.type, 'R14', 'a section of type 0')
        need(not self.flags & ~3 and (known or not self.flags & REQUIRED), 'R15',
             f'section of type {self.type} with flags {self.flags:#x}')
        need(self.offset % 64 == 0 and self.offset >= 128
             and self.offset + self.stored_size <= file_size
             and max(self.stored_size, self.size) <= 2**28, 'R16', 'place of a section')
        deflated = self.flags & DEFLATED
        need(not deflated or self.type == FILE or not known, 'R17', 'deflated')
        need(self.size <= 2**20 + 64 * self.stored_size if deflated
             else self.size == self.stored_size, 'R18', 'size of a section')
        need((lenient or not any(reserved))
             and all(0x21 <= c <= 0x7e and c != 0x2f for c in self.name)
             and not (self.type == FILE and self.name in (b'', b'.', b'..'))
             and not (self.type >= 0x80000000 and b'.' not in self.name),
             'R19', 'name or reserved bytes of a section')

    def content(self, stored, rule):
        """What is stored, its checksum checked, and inflated."""
        need(zlib.crc32(stored) == self.crc, rule, f'checksum of section {self.name!r}')
        if not self.flags & DEFLATED:
            return bytes(stored)
        inflater = zlib.decompressobj()
        try:
            content = inflater.decompress(stored, self.size + 1)
        except zlib.error as e:
            raise Refused(rule, f'section {self.name!r}: {e}') from e
        need(inflater.eof and not inflater.unused_data and len(content) == self.size,
             rule,
             f'section {self.name!r} inflates to another size')
        return content


class Record:
    """A record of the directory; R24 to R34."""
    FORMAT = struct.Struct('<IIHBBiiBBBBIf8Q8Q4IQQIBBBB56s')

    def __init__(self, data, names, file):
        f = self.FORMAT.unpack(data)
        (self.name_offset, self.name_length, self.role, self.part, self.encoding,
         self.layer,
         self.item, self.element_type, self.layout, self.scale_type, self.n_dims,
         self.group_size, self.multiplier) = f[:13]
        dims, places, self.crcs = f[13:21], f[21:29], f[29:33]
        (self.first_row, self.n_rows, self.alias, self.source_type, self.bits,
         self.zero_type,
         self.super_type, reserved) = f[33:]
        self.extents = list(zip(places[::2], places[1::2]))
        raw_multiplier, = struct.unpack_from('<I', data, 28)

        need(1 <= self.name_length <= 1024
             and self.name_offset + self.name_length <= len(names), 'R24',
             'place of a name')
        self.raw_name = names[self.name_offset:self.name_offset + self.name_length]
        try:
            self.name = self.raw_name.decode('utf-8')
        except UnicodeDecodeError:
            raise Refused('R24', 'a name is no UTF-8') from None
        need('\0' not in self.name, 'R24', 'a zero in a name')

        def check(condition, rule, text):
            need(condition, rule, f'tensor {self.name!r}: {text}')
        n = self.n_dims
        check(n <= 8 and all(dims[:n]) and not any(dims[n:]), 'R25', 'dimensions')
        self.dims = dims[:n]
        check(math.prod(self.dims) <= MAX_ELEMENTS, 'R26', 'too many elements')
        self.columns = self.dims[-1] if n else 1
        rows = self.rows = math.prod(self.dims[:-1])
        check(-1 <= self.layer <= 4095 and -1 <= self.item <= 65535, 'R27',
              'layer or item')
        self.unknown = self.unknown_kind()
        self.is_alias = self.encoding == ALIAS and not self.unknown
        if self.role in ROLES and self.part <= 1:
            check(self.name == canonical(self.role, self.part, self.layer, self.item)
                  and (self.layer >= 0) == (
                      self.role not in (1, 2, 3, 13, 38, 39, 40, 41, 68, 69, 88, 89, 90, 110,
                                    111))
                  and (self.item == -1
                       if self.role not in (10, 11, 12, 14, 15, 30, 31, 68, 69, 91)
                       else self.item >= 0 or self.role not in (30, 31, 68, 69, 91)),
                  'R28', f'no such tensor of role {self.role}')
        check(self.role or self.layer == self.item == -1, 'R29',
              'role 0 with layer or item')

        q8, known = self.is_q, not self.unknown
        if known and q8:
            exponent, rest = raw_multiplier >> 23, raw_multiplier & 0x7fffff
            check(self.group_size in (32, 64, 128, 256) and rest == 0
                  and 1 <= exponent <= 253
                  and (self.scale_type == 0 or exponent == 127)
                  and self.has_its_rotation(), 'R30', 'group or multiplier')
        elif known:
            check(not (self.group_size or raw_multiplier or self.bits), 'R30',
                  'group or bits')
        if self.is_alias or not file.member:
            check((self.first_row, self.n_rows) == (0, 0 if self.is_alias else rows),
                  'R31',
                  'rows')
        else:
            end = self.first_row + self.n_rows
            check(self.n_rows >= 1 and end <= rows
                  and all(x % 16 == 0 or x == rows for x in (self.first_row, end)),
                  'R31', 'rows')
        if known:
            sizes = [0, 0, 0, 0]
            if self.encoding == PLAIN:
                sizes[0] = self.n_rows * self.columns * ELEMENT_SIZES[self.element_type]
            elif q8:
                tiles, groups = self.layout == 1, self.groups()
                stored = up(self.n_rows, 16) if tiles else self.n_rows
                sizes[0] = stored * (groups * self.group_size // 8 * self.bits if tiles
                                     else self.columns)
                sizes[1] = stored * groups * self.scale_size()
            check([e[1] for e in self.extents] == sizes, 'R32', 'sizes')
        for (offset, size), crc in zip(self.extents, self.crcs):
            check(offset % (1 << file.alignment) == 0 and offset >= 128
                  and offset + size <= file.file_size if size else offset == crc == 0,
                  'R33', 'place of an extent')
        if known:
            check((self.encoding == PLAIN or self.element_type == 0)
                  and (q8 or self.layout == self.scale_type == 0)
                  and (file.lenient or not any(reserved)), 'R34',
                  'a field that means nothing')

    def unknown_kind(self):
        for name, most in (('part', 1), ('encoding', 4), ('element_type', 14),
                           ('layout', 1),
                           ('scale_type', 1), ('zero_type', 0), ('super_type', 0)):
            if getattr(self, name) > most:
                return f'{name} {getattr(self, name)}'
        if self.is_q and (self.bits not in (4, 5, 6, 8)
                          or self.bits < 8 and self.layout == 0):
            return f'bits {self.bits}'
        return None

    @property
    def is_q(self):
        return self.encoding in (Q8, ROTATED_WHOLE, ROTATED_ALL)

    def has_its_rotation(self):
        if self.encoding == ROTATED_WHOLE:
            return self.group_size in (64, 256)
        return self.encoding == Q8 or self.group_size in (32, 128) or (
            self.columns % self.group_size != 0)

    def groups(self):
        return -(-self.columns // self.group_size)

    def scale_size(self):
        return 4 if self.scale_type else 2

    def elements(self, data):
        """Plain: an array of n_rows by columns of the stored type."""
        return np.frombuffer(data, ELEMENT_DTYPES[self.element_type]).reshape(
            self.n_rows, self.columns)

    def integers_and_scales(self, values, scales, padding=False):
        """Q8: integers by rows and columns, scales by rows and groups (V3 to V5)."""
        groups, rows = self.groups(), self.n_rows
        s = np.frombuffer(scales, '<f4' if self.scale_type else '<f2')
        if self.layout == 0:
            return (np.frombuffer(values, 'i1').reshape(rows, self.columns),
                    s.reshape(rows, groups))
        q = (np.frombuffer(values, 'u1') ^ 0x80).view('i1')
        if self.bits < 8:
            q = self.narrow(np.frombuffer(values, 'u1'))
        q = q.reshape(-1, groups * self.group_size // 4, 16, 4).transpose(0, 2, 1, 3)
        q = q.reshape(-1, groups * self.group_size)
        s = s.reshape(-1, groups, 16).transpose(0, 2, 1).reshape(-1, groups)
        if padding:
            need(not (q[rows:].any() or q[:, self.columns:].any()
                      or s[rows:].tobytes().strip(b'\0')), 'V5',
                 f'tensor {self.name!r}: padding of tiles')
        return q[:rows, :self.columns], s[:rows]

    def narrow(self, values):
        """Tiles of fewer than 8 bits, as the integers of tiles of 8."""
        lines = values.reshape(-1, self.bits, 1, 64)
        u = np.concatenate((lines[:, :4] & 15, lines[:, :4] >> 4), axis=2)
        u = u.reshape(-1, 8, 64)
        wide = self.bits - 4
        if wide:
            shifts = np.arange(0, 8, wide, dtype='u1').reshape(1, 1, -1, 1)
            above = lines[:, 4:] >> shifts & (1 << wide) - 1
            u = u | above.reshape(-1, 8, 64) << 4
        return u.astype('i1').reshape(-1) - np.int8(1 << self.bits - 1)

    def floats(self, values, scales):
        """The rows that stand in the file as float32 (sections 9 and 11)."""
        if self.encoding == PLAIN:
            x = self.elements(values)
            if self.element_type == ELEMENT_BF16:
                return (x.astype('<u4') << 16).view('<f4')
            if self.element_type == ELEMENT_E4M3:
                return E4M3[x]
            if self.element_type == ELEMENT_E5M2:
                x = (x.astype('<u2') << 8).view('<f2')
            with np.errstate(over='ignore'):
                return x.astype('<f4')
        q, s = self.integers_and_scales(values, scales)
        s = s.astype('<f4') * np.float32(self.multiplier)
        x = q.astype('<f4') * np.repeat(s, self.group_size, axis=1)[:, :self.columns]
        if self.bits < 8:  # no -0
            x = x + np.float32(0)
        return x if self.encoding == Q8 else self.rotated(x)

    def rotated(self, x):
        """Groups times Hadamard matrices, by their roots (section 11)."""
        y = x.copy()
        for start in range(0, self.columns, self.group_size):
            end = min(start + self.group_size, self.columns)
            if self.encoding == ROTATED_WHOLE:
                if end - start == self.group_size:
                    y[:, start:end] = hadamard(x[:, start:end])
                continue
            for size in (256, 64, 16, 4):
                while end - start >= size:
                    y[:, start:start + size] = hadamard(x[:, start:start + size])
                    start += size
        return y


def hadamard(x):
    """Each row, whose length is a power of 4."""
    size = x.shape[1]
    h = size // 2
    while h >= 1:
        x = x.reshape(-1, size // (2 * h), 2, h)
        a, b = x[:, :, 0], x[:, :, 1]
        x = np.stack((a + b, a - b), axis=2).reshape(-1, size)
        h //= 2
    return x * np.float32(size ** -0.5)


def e4m3(byte):
    exponent, mantissa = byte >> 3 & 15, byte & 7
    if byte & 0x7f == 0x7f:
        value = math.nan
    elif exponent:
        value = math.ldexp(8 + mantissa, exponent - 10)
    else:
        value = math.ldexp(mantissa, -9)
    return math.copysign(value, -1 if byte & 0x80 else 1)


E4M3 = np.array([e4m3(b) for b in range(256)], '<f4')


def canonical(role, part, layer, item):
    name = ROLES[role][0].rstrip('*?')
    if name.startswith('blk.'):
        name = f'blk.{layer}.{name[4:]}'
    return name + (f'.{item}' if item >= 0 else '') + ('.bias' if part else '.weight')


def looks_canonical(name):
    """Whether a role has this name (which a tensor of role 0 must not have)."""
    n = r'(0|[1-9]\d*)'
    for pattern, _ in ROLES.values():
        item = {'*': rf'\.{n}', '?': rf'(\.{n})?'}.get(pattern[-1], '')
        base = re.escape(pattern.rstrip('*?')).replace(r'blk\.', rf'blk\.{n}\.')
        if re.fullmatch(rf'{base}{item}\.(weight|bias)', name, re.A):
            return True
    return False


class File:
    """One container; opening it makes the checks R1 to R48."""
    SUPERBLOCK = struct.Struct('<8sIHHQQQQIIB3sII16s40sI')
    TRAILER = struct.Struct('<8sQQIII8sI')

    def __init__(self, path):
        self.path = path
        self.warnings = []
        with open(path, 'rb') as f:
            empty = os.fstat(f.fileno()).st_size == 0
            self.data = b'' if empty else mmap.mmap(f.fileno(), 0,
                                                    access=mmap.ACCESS_READ)
        self.view = memoryview(self.data)
        self.read_superblock()
        self.read_table()
        self.read_directory()
        self.read_metadata()
        self.read_statistics()
        self.read_files()
        self.read_digests()
        self.check_set()

    def read_superblock(self):
        view = self.view
        need(len(view) >= 128, 'R1', 'shorter than a superblock')
        (magic, order, major, minor, incompatible, compatible, self.file_size,
         self.table_offset, self.n_sections, self.table_crc, self.alignment, reserved,
         self.member, self.n_members, self.set_id, reserved_2, self.superblock_crc
         ) = self.SUPERBLOCK.unpack(view[:128])
        need(magic == b'\x89LMQ\r\n\x1a\n', 'R2', 'magic')
        need(order == 0x01020304, 'R3', 'written in the wrong byte order'
             if order == 0x04030201 else 'byte order')
        need(zlib.crc32(view[:124]) == self.superblock_crc, 'R4', 'superblock is damaged')
        need(major == 1, 'R5', f'needs version {major}.{minor}')
        need(not incompatible, 'R6', f'incompatible flags {incompatible:#x}')
        self.lenient = compatible != 0          # reserved bytes may have a meaning
        need(self.alignment, 'R7', 'written before the format was settled')
        need(self.file_size == len(view), 'R8',
             f'{len(view)} bytes, {self.file_size} expected')
        need(1 <= self.n_sections <= 1024 and self.table_offset % 64 == 0
             and self.table_offset >= 128
             and self.table_offset + 96 * self.n_sections + 48 == self.file_size,
             'R9', 'place of the section table')
        need(6 <= self.alignment <= 21, 'R10', f'alignment 2^{self.alignment}')
        need((self.member, self.n_members, self.set_id) == (0, 0, bytes(16))
             or 1 <= self.member <= self.n_members <= 99999 and any(self.set_id),
             'R11', f'member {self.member} of {self.n_members}')
        need(self.lenient or not any(reserved + reserved_2), 'R12', 'reserved bytes')

    def read_table(self):
        end = self.file_size - 48
        table = self.view[self.table_offset:end]
        need(zlib.crc32(table) == self.table_crc, 'R13', 'section table is damaged')
        self.sections = [Section(table[i:i + 96], self.lenient, self.file_size)
                         for i in range(0, len(table), 96)]
        magic, *same, reserved, crc = self.TRAILER.unpack(self.view[end:])
        need(magic == b'LMQEND\r\n' and zlib.crc32(self.view[end:end + 44]) == crc
             and (self.lenient or not any(reserved)), 'R20', 'trailer is damaged')
        need(same == [self.file_size, self.table_offset, self.n_sections, self.table_crc,
                      self.superblock_crc], 'R21', 'trailer of another file')

    def stored(self, section):
        return self.view[section.offset:section.offset + section.stored_size]

    def one(self, kind, rule, must):
        """The content of the only section of a type; None if it may lack and does."""
        found = [s for s in self.sections if s.type == kind]
        need(len(found) == 1 or not found and not must, rule,
             f'{len(found)} sections of type {kind}')
        return found[0].content(self.stored(found[0]), rule) if found else None

    def read_directory(self):
        content = self.one(DIRECTORY, 'R22', True)
        need(len(content) >= 16, 'R23', 'directory too short')
        n, size, names_size = struct.unpack_from('<IIQ', content)
        need(n <= 2**20 and 256 <= size <= 4096
             and 16 + n * size + names_size == len(content),
             'R23', f'directory of {n} records of {size} bytes')
        names = content[16 + n * size:]
        self.records = [Record(content[16 + i * size:16 + i * size + 256], names, self)
                        for i in range(n)]
        place = 0
        for r in self.records:
            if r.name_offset != place:
                self.warnings.append(f'the name {r.name!r} is not in its order')
            place = r.name_offset + r.name_length
            if r.role == 0 and looks_canonical(r.name):
                self.warnings.append(f'{r.name!r} has no role')
            if r.unknown:
                continue
            need((r.alias != NONE32) == r.is_alias, 'R35', f'{r.name!r}: alias')
            if r.is_alias:
                need(r.alias < n and not self.records[r.alias].is_alias
                     and self.records[r.alias].dims == r.dims, 'R35',
                     f'{r.name!r}: alias')
        if place != names_size and n:
            self.warnings.append('there is something behind the names')
        need(len({r.name for r in self.records}) == n, 'R36', 'two tensors of one name')
        self.check_tiling()

    def extents(self):
        """(offset, size, alignment) of everything, sorted; R37."""
        found = [(0, 128, 1), (self.table_offset, 96 * self.n_sections, 64)]
        found += [(s.offset, s.stored_size, 64) for s in self.sections if s.stored_size]
        found += [(offset, size, 1 << self.alignment)
                  for r in self.records for offset, size in r.extents if size]
        return sorted(found)

    def check_tiling(self):
        end = 0
        for offset, size, alignment in self.extents():
            need(offset == up(end, alignment), 'R37', f'{offset} begins not at {end}')
            end = offset + size
        need(end == self.file_size - 48, 'R37', 'the table is not the last')

    def read_metadata(self):
        self.metadata = parse_json(self.one(METADATA, 'R38', True))
        check_types(self.metadata, TOP)
        self.model = self.metadata.get('model')
        if self.model is not None:
            check_description(self.model)

    def read_statistics(self):
        content = self.one(STATISTICS, 'R41', False)
        self.statistics = None
        if content is None:
            return
        need(len(content) >= 8, 'R41', 'statistics too short')
        n, size = struct.unpack_from('<II', content)
        need(48 <= size <= 4096 and n == len(self.records)
             and len(content) == 8 + n * size,
             'R41', f'statistics of {n} records')
        self.statistics = []
        for at in range(8, len(content), size):
            *f, reserved = struct.unpack_from('<ddQfff12s', content, at)
            need(all(x >= 0 and math.copysign(1, x) == 1 for x in f)
                 and (self.lenient or not any(reserved)), 'R42', 'statistics')
            self.statistics.append(f)

    def read_files(self):
        self.files = {}
        for s in self.sections:
            if s.type == FILE:
                name = s.name.decode('ascii')
                need(name not in self.files, 'R45', f'two files {name!r}')
                self.files[name] = s.content(self.stored(s), 'R45')

    def read_digests(self):
        self.digests = self.one(DIGESTS, 'R46', False)
        if self.digests is None:
            return
        need(len(self.digests) >= 80, 'R46', 'digests too short')
        version, self.chunk_log2, n = struct.unpack_from('<IIQ', self.digests)
        need(version == 1 and 20 <= self.chunk_log2 <= 26, 'R46',
             'version of the digests')
        need(n == sum(-(-r.n_rows // chunk_rows(r, self.chunk_log2))
                      for r in self.records)
             and len(self.digests) == 80 + 32 * n, 'R46', 'number of digests')

    def check_set(self):
        what = self.metadata.get('set')
        need((what is not None) == (self.member > 0), 'R47', "the object 'set'")
        if self.member:
            need(what.get('id') == self.set_id.hex() and what.get('member') == self.member
                 and what.get('members') == self.n_members
                 and what.get('tensors', -1) >= 0,
                 'R47', "the object 'set'")
            need(self.member == 1 or self.model is None and not self.files, 'R48',
                 'a model or files in another than the first member')

    def bytes_of(self, record):
        return [self.view[offset:offset + size] for offset, size in record.extents]

    def verify(self):
        """V1 to V5, but for the content of digests, which Container has."""
        for s in self.sections:
            s.content(self.stored(s), 'V1')
        end = 0
        for offset, size, _ in self.extents():
            need(not any(self.view[end:offset]), 'V2', f'padding before {offset}')
            end = offset + size
        for r in self.records:
            extents = self.bytes_of(r)
            need([zlib.crc32(e) for e in extents] == list(r.crcs), 'V1',
                 f'{r.name!r} is damaged')
            if r.unknown or not r.is_q:
                continue
            values, scales = (np.frombuffer(e, 'u1') for e in extents[:2])
            need(r.bits < 8 or (values != (0 if r.layout else 0x80)).all(), 'V3',
                 f'{r.name!r} has -128')
            bits = scales.view('<u4' if r.scale_type else '<u2')
            infinity, minus = ((0x7f800000, 1 << 31) if r.scale_type
                               else (0x7c00, 1 << 15))
            below = (r.bits < 8) & (bits > minus) & (bits < minus + infinity)
            need((below | (bits < infinity)).all(), 'V4',
                 f'{r.name!r} has a scale that is negative or not finite')
            if self.digests:
                r.integers_and_scales(*extents[:2], padding=True)
        if self.digests:
            self.check_root()

    def leaves(self, record):
        """Digests of the leaves of the rows that stand here (section 19)."""
        columns, rows = record.columns, record.n_rows
        extents = self.bytes_of(record)
        height, width = (16, columns) if columns <= 8192 else (1, 8192)
        if record.encoding == PLAIN:
            parts = [(record.elements(extents[0]), 1)]
        else:
            q, s = record.integers_and_scales(*extents[:2])
            parts = [(q, 1), (s, record.group_size)]
        for row in range(0, rows, height):
            for column in range(0, columns, width):
                yield sha(*(a[row:row + height,
                              column // g:-(-(column + width) // g)].tobytes()
                            for a, g in parts))

    def check_root(self):
        at = 80
        for r in self.records:
            b, across = chunk_rows(r, self.chunk_log2), -(-r.columns // 8192)
            leaves = [] if r.unknown or r.is_alias else list(self.leaves(r))
            for row in range(0, r.n_rows, b):
                per = b * across if across > 1 else b // 16
                first = row // b * per
                need(r.unknown
                     or self.digests[at:at + 32] == sha(*leaves[first:first + per]),
                     'V5', f'a chunk of {r.name!r}')
                at += 32
        superblock, table = bytearray(self.view[:128]), bytearray(
            self.view[self.table_offset:self.file_size - 48])
        superblock[52:56] = superblock[124:128] = bytes(4)
        contents = []
        for i, s in enumerate(self.sections):
            if s.type == DIGESTS:
                table[96 * i + 32:96 * i + 36] = bytes(4)
            else:
                contents.append(sha(self.stored(s)))
        root = sha(b'lmq root 1\n', superblock, table, *contents, self.digests[:16],
                   bytes(32),
                   self.digests[48:])
        need(root == self.digests[16:48], 'V5', 'the root')


def sha(*parts):
    h = hashlib.sha256()
    for p in parts:
        h.update(p)
    return h.digest()


def chunk_rows(record, log2):
    return max(16, 16 * (2**log2 // record.columns // 16))


# ---- Whole models ----

class Tensor:
    """A tensor of a Container: its record, and the files that have rows of it."""

    def __init__(self, container, record):
        self.container, self.record, self.parts = container, record, []
        self.name, self.dims = record.name, record.dims

    def target(self):
        """What an alias names, or itself."""
        file, record = self.parts[0]
        if not record.is_alias:
            return self
        return self.container.tensors[file.records[record.alias].name]

    def unknown(self):
        return self.target().record.unknown

    def floats(self):
        """All elements as float32, in the shape of dims."""
        tensor = self.target()
        if tensor.record.unknown:
            raise NotUnderstood('kind',
                                f'{self.name!r} has an unknown {tensor.record.unknown}')
        rows = []
        for file, r in tensor.parts:
            values, scales = file.bytes_of(r)[:2]
            need((zlib.crc32(values), zlib.crc32(scales)) == tuple(r.crcs[:2]), 'V1',
                 f'{r.name!r} is damaged')
            rows.append(r.floats(values, scales))
        return np.concatenate(rows).reshape(self.dims)


class Container:
    """A file, or all members of the set that it is a member of (R49 to R51)."""

    def __init__(self, path, alone=False):
        first = File(path)
        self.files = [first] if alone or not first.member else self.open_set(first)
        self.model = None if first.member and alone else self.files[0].model
        self.tensors = {}
        for file in self.files:
            for r in file.records:
                self.tensors.setdefault(r.name, Tensor(self, r)).parts.append((file, r))
        if len(self.files) > 1 or first.member and not alone:
            self.check_whole()

    @staticmethod
    def open_set(first):
        folder, base = os.path.split(first.path)
        match = re.fullmatch(r'(.+)-(\d{5})-of-(\d{5})\.lmq', base, re.A | re.S)
        need(match and int(match[3]) == first.n_members and int(match[2]) == first.member,
             'R49', f'{base!r} is not the name of this member')
        files = []
        for i in range(1, first.n_members + 1):
            path = os.path.join(folder, f'{match[1]}-{i:05}-of-{first.n_members:05}.lmq')
            need(os.path.exists(path), 'R49', f'{path!r} is not there')
            f = first if i == first.member else File(path)
            need((f.member, f.n_members, f.set_id) == (i, first.n_members, first.set_id),
                 'R49', f'{path!r} is no member of this set')
            files.append(f)
        return files

    def check_whole(self):
        fields = ('role part encoding layer item element_type layout scale_type '
                  'dims group_size multiplier source_type bits zero_type '
                  'super_type').split()
        for t in self.tensors.values():
            t.parts.sort(key=lambda p: p[1].first_row)
            need(not t.record.is_alias or len(t.parts) == 1, 'R50',
                 f'two aliases {t.name!r}')
            end = 0
            for _, r in t.parts:
                need(all(getattr(r, f) == getattr(t.record, f) for f in fields), 'R50',
                     f'the records of {t.name!r} differ')
                need(r.first_row == end, 'R50', f'rows of {t.name!r}')
                end += r.n_rows
            need(end == (0 if t.record.is_alias else t.record.rows), 'R50',
                 f'rows of {t.name!r}')
        for f in self.files:
            need(f.metadata['set']['tensors'] == len(self.tensors), 'R51',
                 f'{len(self.tensors)} tensors')

    def verify(self):
        for f in self.files:
            f.verify()
        alone = self.files[0].member and len(self.files) < self.files[0].n_members
        if any(f.digests for f in self.files) and not alone and not any(
                t.unknown() for t in self.tensors.values()):
            content = self.content()
            for f in self.files:
                need(not f.digests or f.digests[48:80] == content, 'V5', 'the content')

    def content(self):
        """The digest of what the container holds (section 19)."""
        def text(b):
            return struct.pack('<I', len(b)) + b

        def value(v):
            if isinstance(v, dict):
                items = sorted((k.encode(), x) for k, x in v.items())
                return b'{' + struct.pack('<I', len(v)) + b''.join(
                    text(k) + value(x) for k, x in items)
            if isinstance(v, list):
                return b'[' + struct.pack('<I', len(v)) + b''.join(map(value, v))
            if isinstance(v, str):
                return b's' + text(v.encode())
            if is_number(v):
                return b'n' + struct.pack('<d', v)
            return {True: b't', False: b'f', None: b'z'}[v]

        h = hashlib.sha256(b'lmq content 1\n' + struct.pack('<I', len(self.tensors)))
        for t in sorted(self.tensors.values(), key=lambda t: t.record.raw_name):
            r = t.target().record
            h.update(text(t.record.raw_name) + struct.pack(
                f'<8BIf{r.n_dims}Q', r.encoding, r.element_type, r.scale_type, r.bits,
                r.zero_type, r.super_type, r.n_dims, 0, r.group_size, r.multiplier,
                *r.dims))
            h.update(sha(*(leaf for f, p in t.target().parts for leaf in f.leaves(p))))
        h.update(value(self.model))
        files = self.files[0].files
        h.update(struct.pack('<I', len(files)))
        for name in sorted(files):
            h.update(text(name.encode()) + struct.pack('<Q', len(files[name]))
                     + sha(files[name]))
        return h.digest()


def open_model(path, alone=False):
    return Container(path, alone)
