"""lmq_forward.py - the models in .lmq files: rules M5 to M12 and the forward pass.

Written from lmq(5) and lmq-model(5) alone by somebody who had not seen the
program; see reader.py.
"""

import math

import numpy as np

from lmq_container import HUGE, KEYS, ROLES, NotUnderstood, canonical, need


class Description:
    """The object 'model' with its defaults, and rules M5 to M12."""

    def __init__(self, container):
        self.tensors = container.tensors
        model = self.model = container.model
        if model is None:
            raise NotUnderstood('model', 'no description')
        self.strange = []                       # words that are not known
        for key, (kind, limit, default, _) in KEYS.items():
            value = model.get(key, 'none' if key == 'rope_scaling' else default)
            if kind == 'word' and value not in limit.split():
                self.strange.append(key)
                value = 'none' if key == 'rope_scaling' else default
            setattr(self, key, value)
        self.h, self.k = self.head_dim, self.kv_lora_rank
        for key in 'value_dim', 'rotary_dim', 'full_head_dim':      # M5
            if getattr(self, key) == self.h:
                setattr(self, key, 0)
        if self.full_kv_heads == self.n_kv_heads:
            self.full_kv_heads = 0
        self.v = self.value_dim or self.h
        self.t = (self.rotary_dim or self.h) if self.positions == 'rotary' else 0
        if self.positions != 'rotary' or self.full_rotary_dim == self.t:
            self.full_rotary_dim = 0
        self.full, self.still, self.dense, self.delta = (
            set(self.full_layers), set(self.still_layers), set(self.dense_layers),
            set(self.delta_layers))
        self.bare, self.feeding = set(self.bare_layers), set(self.feed_layers)
        self.alone = self.delta - set(self.beside_layers)
        self.attention = set(range(self.n_layers)) - self.alone - self.feeding
        if self.positions != 'rotary':
            self.still = set()
        if not self.attention - self.full:      # section 12
            self.full, self.sliding_window, self.rope_local_theta = set(), 0, 0
        if not (self.kv_lora_rank and self.q_lora_rank):
            self.raw_latents = False
        self.hyper = self.n_streams > 0 and self.stream_kind != 'guessed'
        self.gating = self.n_streams > 0 and self.stream_kind == 'gated'
        self.guessed = self.n_streams if not self.hyper else 0
        self.gram_factors = [a * 2**32 + b for a, b in zip(
            self.gram_factors[::2], self.gram_factors[1::2])]
        self.gram_width = max(self.gram_size - 1, 0) * self.gram_heads * self.gram_dim
        if not self.hyper or self.gating:
            self.stream_rounds, self.stream_mean = 0, False
        self.overlaps = set(self.overlap_layers) & self.attention   # section 15
        self.pooling = set(self.pool_layers) & self.attention
        self.choosing = set(self.index_layers) & self.attention
        if not self.overlaps | self.choosing:
            self.index_topk = 0
        if not self.attention:
            self.turned_values, self.n_out_groups = False, 0
        self.latent_queries = self.q_lora_rank > 0 and (
            self.kv_lora_rank > 0 or self.turned_values)
        self.has_state = self.recurrence != 'convolution'   # a recurrent layer
        self.selective = self.recurrence == 'selective'
        self.lru = self.recurrence == 'lru'
        self.has_keys = self.has_state and not self.lru
        self.bare_states |= self.lru
        if self.recurrence != 'delta':
            self.gate_rank, self.key_decays = 0, False
            self.sigmoid_gates &= self.recurrence == 'lightning'
            self.step_rank *= self.selective
        for key in ('norm_eps embedding_scale residual_scale logit_scale logit_softcap '
                    'attn_scale full_attn_scale attn_softcap qkv_clip router_scale score_growth '
                    'shared_scale latent_eps activation_slope glu_limit '
                    'glu_offset act_limit expert_act_limit router_reach router_softcap '
                    'value_scale state_eps post_norm_eps index_eps beta_scale decay_floor '
                    'attn_keep delta_keep '
                    'feed_keep attn_add delta_add feed_add stream_gain stream_floor').split():
            setattr(self, key, float(np.float32(getattr(self, key))))

    def place(self, layer):
        return 'after' if layer in self.after_layers else self.norm_place

    def pool(self, layer):
        return self.overlap_size if layer in self.overlaps else \
            self.pool_size if layer in self.pooling else 0

    def has_index(self, layer):
        return layer in self.overlaps and self.index_topk > 0

    def chooser(self, layer):
        """Whose choice of positions it sees; -1: all."""
        return max([i for i in self.choosing if i <= layer] or [-1])

    def has_table(self, layer):
        return layer in self.token_layers and self.has_experts(layer)

    def windowed(self, layer):
        return self.sliding_window > 0 and layer not in self.full

    # Section 12: layers of two kinds.

    def is_full(self, layer):
        return self.sliding_window > 0 and layer in self.full

    def sees_all(self, layer):
        return layer in self.full and max(self.sliding_window, self.attention_chunk) > 0

    def head(self, layer):
        return self.full_head_dim if self.is_full(layer) and self.full_head_dim \
            else self.h

    def latents(self, layer):
        return self.full_kv_lora_rank if self.is_full(layer) and \
            self.full_kv_lora_rank else self.k

    def value(self, layer):
        if self.k:
            return self.full_value_dim if self.is_full(layer) and \
                self.full_value_dim else self.v
        return self.full_head_dim if self.is_full(layer) and self.full_head_dim \
            else self.v

    def turning(self, layer):
        if self.k:
            return self.t
        if self.positions == 'rotary' and self.is_full(layer) and self.full_head_dim:
            return self.full_head_dim
        if self.is_full(layer) and self.full_rotary_dim:
            return self.full_rotary_dim
        return self.t

    def latent_turning(self, layer):
        return 0 if self.still_whole and layer in self.still else self.t

    def heads(self, layer):
        return self.layer_heads[layer] if self.layer_heads else self.n_heads

    def kv_heads(self, layer):
        if self.layer_kv_heads:
            return self.layer_kv_heads[layer]
        return self.full_kv_heads if self.is_full(layer) and self.full_kv_heads \
            else self.n_kv_heads

    def borrows(self, layer):
        return layer >= self.n_layers - self.n_borrowing

    def lender(self, layer):
        lenders = [i for i in range(self.n_layers - self.n_borrowing)
                   if self.sees_all(i) == self.sees_all(layer)]
        return lenders[-1] if lenders else None

    def keys_are_values(self, layer):
        return self.is_full(layer) and self.full_keys_are_values

    def has_experts(self, layer):
        return self.n_experts > 0 and layer not in self.dense | self.bare

    def norms_mixture(self, layer):
        return self.mixture_norm and self.has_experts(layer)

    def check(self):
        """Raises unless the model can be computed."""
        self.check_numbers()
        self.list_tensors()
        by_key = {(t.record.role, t.record.part, t.record.layer, t.record.item): t
                  for t in self.tensors.values()}
        for (role, _, layer, _), t in by_key.items():
            need(role not in ROLES or layer < self.n_layers, 'M6', f'layer of {t.name!r}')
        for key, shape in self.shapes.items():
            if key in by_key:
                need(by_key[key].dims == shape, 'M6',
                     f'{by_key[key].name!r} is {by_key[key].dims}, not {shape}')

        def understood(condition, rule, text):
            if not condition:
                raise NotUnderstood(rule, text)
        for key in self.requires or ():
            understood(key in KEYS, 'M8', f'requires {key!r}')
        understood('rope_scaling' in self.model, 'M9', 'no rope_scaling')
        understood(not self.strange, 'M9', f'words of {self.strange}')
        understood(not self.unsupported, 'M10', self.unsupported)
        for t in self.tensors.values():
            key = t.record.role, t.record.part, t.record.layer, t.record.item
            understood(key in self.shapes, 'M11', f'no use for {t.name!r}')
            understood(not t.unknown(), 'M12', f'{t.name!r}: unknown {t.unknown()}')
        for key in self.required:
            need(key in by_key, 'M7', f'lacks {canonical(*key)!r}')
        for keys in self.all_or_none.values():
            there = [key in by_key for key in keys]
            need(all(there) or not any(there), 'M7',
                 f'only some of {canonical(*keys[0])!r}')
        for i in filter(self.has_table, range(self.n_layers)):
            rows = by_key[102, 0, i, -1].floats()
            need(all(len(set(row)) == len(row) and set(row) <= set(range(self.n_experts))
                     for row in rows.tolist()), 'M5', 'experts of a token')
        self.by_key = by_key

    def check_numbers(self):
        def m5(condition, text):
            need(condition, 'M5', text)
        t, kinds = self.t, self.sliding_window > 0
        m5(not self.context_end or self.context <= self.context_end, 'context_end')
        full = self.full_head_dim if kinds else 0
        if self.attention:
            self.check_heads(m5, t, kinds, full)
        kv_uneven, q_uneven = (len(set(map(count, self.attention))) > 1
                               for count in (self.kv_heads, self.heads))
        m5(len(set(map(self.heads, self.attention))) < 2
           or not self.positions.startswith('alibi'), 'uneven ALiBi')
        special = self.n_borrowing or kv_uneven or kinds and (
            self.full_kv_heads or self.full_rotary_dim or self.full_keys_are_values)
        m5(not special or not self.k, 'kinds of layers and latents')
        m5(not special and not q_uneven and not full or self.qk_norm != 'heads',
           'kinds of layers')
        m5(not self.value_dim or not self.n_borrowing
           and not (kinds and self.full_keys_are_values), 'values of another size')
        m5(self.n_borrowing < self.n_layers, 'n_borrowing')
        m5(not self.n_borrowing or not self.delta | self.feeding and None not in map(
            self.lender, range(self.n_layers - self.n_borrowing, self.n_layers)),
           'a borrower without a lender')
        m5(all(self.kv_heads(i) == self.kv_heads(self.lender(i))
               for i in range(self.n_layers - self.n_borrowing, self.n_layers)),
           'a borrower of other heads')
        m5(self.n_layers * self.layer_input_dim <= HUGE, 'layer_input_dim')
        m5(self.n_streams != 1 and self.n_streams * self.dim <= HUGE, 'n_streams')
        m5(not self.hyper or self.residual == 'sequential' and not (
            self.delta - self.alone or self.layer_input_dim or self.residual_rank
            or self.layer_scale or self.expert_norms and self.n_experts)
           and 'after' not in map(self.place, range(self.n_layers)), 'stream_kind')
        m5(not self.gating or self.stream_rank >= 1, 'stream_rank')
        n, places = len(set(self.gram_layers)), (self.gram_size - 1) * self.gram_heads
        m5(not n or self.hyper and not self.n_borrowing and self.gram_size >= 2 and self.gram_heads and self.gram_dim
           and self.gram_conv_width and self.gram_stop < self.vocab_size
           and places <= 512 and self.gram_width <= HUGE
           and len(self.gram_factors) == n * self.gram_size
           and len(self.gram_rows) == n * places
           and all(1 <= f and f * self.vocab_size < 2**63 for f in self.gram_factors)
           and all(1 <= r < 2**31 for r in self.gram_rows), 'gram_layers')
        m5(not self.residual_rank or self.residual == 'sequential' and not self.feeding
           and not self.delta - self.alone
           and 'after' not in map(self.place, range(self.n_layers)), 'residual_rank')
        m5(self.n_loops < 2 or not self.delta and not self.n_borrowing
           and not self.layer_input_dim and not self.n_streams, 'n_loops')
        m5(not self.norm_gate_rank or self.residual == 'sequential'
           and 'after' not in map(self.place, range(self.n_layers)), 'norm_gate_rank')
        used = [(self.attention, 'attn'), (self.alone, 'delta'),
                (set(range(self.n_layers)) - self.bare, 'feed')]
        odd = self.normed_residual or any(
            getattr(self, name + end) != 1 for where, name in used if where
            for end in ('_keep', '_add'))
        m5(not odd or self.residual == 'sequential' and not self.delta - self.alone
           and not self.n_streams and not self.residual_rank
           and not self.norm_gate_rank
           and not (self.normed_residual
                    and 'after' in map(self.place, range(self.n_layers))),
           'what blocks add to')
        m5(not self.raw_latents or 2 * self.q_lora_rank <= HUGE, 'raw_latents')
        self.check_shared(m5)
        m5(not self.expert_norms or not self.n_experts
           or self.residual == 'sequential', 'expert_norms')
        if self.n_experts and self.bare != set(range(self.n_layers)):
            m5(not self.router_early or not self.expert_norms and not self.n_streams,
               'router_early')
            m5(1 <= self.n_experts_used <= self.n_experts and self.expert_dim >= 1,
               'experts')
            groups, used = self.n_expert_groups, self.n_expert_groups_used
            if groups > 1 and groups != used:
                m5(self.n_experts % groups == 0 and 1 <= used <= groups
                   and used * (self.n_experts // groups) >= self.n_experts_used, 'groups')

        if self.delta:
            keys, values = self.n_delta_key_heads, self.n_delta_value_heads
            c, d = self.delta_key_dim, self.delta_value_dim
            lightning = self.recurrence == 'lightning'
            m5(min(values, d, self.conv_width or lightning) >= 1, 'recurrence')
            m5(not lightning or self.decay_first
               >= self.decay_step * (self.n_layers - 1), 'decay_first')
            if self.has_keys:
                m5(min(keys, c) >= 1 and values % keys == 0, 'heads of a recurrence')
            else:
                keys = c = 0
            m5(not self.selective or self.step_rank >= 1 and d == 1, 'step_rank')
            m5(max(values * c * d, 2 * keys * c + values * d) <= HUGE, 'wide recurrence')
        m5(not self.delta - self.alone or self.has_keys and not self.selective
           and not self.n_borrowing and not self.k
           and {self.place(i) for i in self.delta - self.alone} == {'before'}
           and self.residual == 'sequential', 'attention beside a recurrence')
        m5(not self.feeding & self.delta, 'a recurrent layer that only feeds')
        m5(not self.bare | self.feeding or self.residual == 'sequential', 'halves')

    def check_shared(self, m5):
        """What section 15 and tables of experts need."""
        m5(self.qk_norm != 'bare_queries' or self.turned_values, 'bare_queries')
        m5(self.qk_norm != 'turning' or self.k, 'turning')
        m5(not self.turned_values or self.qk_norm in ('none', 'head', 'bare_queries')
           and not (self.k or self.value_dim or self.full_head_dim or self.full_rotary_dim
                    or self.n_borrowing or self.full_keys_are_values or self.value_norm
                    or self.qk_norm_late or self.qkv_clip or self.delta), 'turned_values')
        m5(not self.n_out_groups or self.out_rank >= 1 and not self.delta
           and self.n_out_groups * self.out_rank <= HUGE
           and all(self.heads(i) * self.v % self.n_out_groups == 0
                   for i in self.attention), 'n_out_groups')
        m5(not self.overlaps & self.pooling, 'pools of two kinds')
        for i in self.overlaps | self.pooling:
            m5(self.pool(i) >= 1 and self.turned_values and self.kv_heads(i) == 1
               and not self.attention_chunk and not self.positions.startswith('alibi')
               and self.n_loops < 2 and 2 * self.h <= HUGE, 'pools')
        m5(not self.index_topk or min(self.n_index_heads, self.q_lora_rank) >= 1
           and max(1, self.t) <= self.index_dim <= HUGE // 2
           and self.n_index_heads * self.index_dim <= HUGE, 'index_topk')
        for i in self.attention:
            m5(self.chooser(i) < 0 or self.index_topk and self.k and self.q_lora_rank
               and not self.windowed(i)
               and (not self.attention_chunk or i in self.full), 'index_layers')
        m5(not any(map(self.has_table, range(self.n_layers)))
           or self.router != 'near' and not self.expert_norms
           and self.n_expert_groups in (0, 1, self.n_expert_groups_used), 'token_layers')

    def check_heads(self, m5, t, kinds, full):
        h, far = self.h, full if full and self.positions == 'rotary' and not self.k else t
        part = self.full_rotary_dim if kinds else 0
        far, most = part or far, max(map(self.heads, self.attention))
        m5(all(self.heads(i) % self.kv_heads(i) == 0 for i in self.attention), 'heads')
        m5(not part or part % 2 == 0 and part <= h and not full
           and self.rope_local_theta > 0, 'full_rotary_dim')
        m5(t % 2 == 0 and t <= h, 'dimensions that turn')
        wide, rank = max(h, full), max(self.k, self.k and kinds and self.full_kv_lora_rank)
        m5(max(most * h, most * self.v, rank + wide, self.k and kinds
               and most * self.full_value_dim) <= HUGE, 'too wide')
        m5(not self.k or t < h and (not full or t < full),
           'latent attention of which all dimensions turn')
        m5(self.positions != 'rotary' or 1 <= self.rope_theta <= 1e15, 'rope_theta')
        m5(self.rope_scaling in ('none', 'factors') or 1e-6 <= self.rope_factor <= 1e6,
           'rope_factor')
        m5(self.rope_local_theta == 0 or not any(map(self.windowed, self.attention))
           or 1 <= self.rope_local_theta <= 1e15, 'rope_local_theta')
        m5(self.rope_scaling != 'llama3' or self.rope_low_factor <= self.rope_high_factor,
           'llama3 with its bands the wrong way round')
        m5(self.rope_scaling != 'yarn' or 0 < self.rope_beta_slow <= self.rope_beta_fast,
           'yarn')
        for name, scalings in (('rope_short', ('longrope', 'factors')),
                               ('rope_long', ('longrope',))):
            factors = getattr(self, name)
            m5(self.rope_scaling not in scalings
               or len(factors) == far // 2 and all(1e-6 <= f <= 1.1e30 for f in factors),
               name)
        m5(not full or (most * full <= HUGE and self.k) or (
                        full % 2 == 0 and most * full <= HUGE
                        and not self.value_dim
                        and (self.positions != 'rotary'
                             or not self.rotary_dim and self.rope_local_theta > 0)),
           'full_head_dim')

    def own_grams(self, layer):
        """A layer's own gram_factors and gram_rows (section 16)."""
        i = sorted(set(self.gram_layers) | {layer}).index(layer)
        n = max(self.gram_size - 1, 0) * self.gram_heads
        return (self.gram_factors[i * self.gram_size:(i + 1) * self.gram_size],
                self.gram_rows[i * n:(i + 1) * n])

    def shape(self, role, layer):
        heads, kv, whole = self.heads(layer), self.kv_heads(layer), self.qk_norm == 'whole'
        h, v = self.head(layer), self.value(layer)
        hidden = self.hidden_dim
        if self.has_experts(layer):
            hidden = self.expert_dim
        elif self.layer_hidden_dims:
            hidden = self.layer_hidden_dims[layer]
        elif self.borrows(layer) and self.borrowing_hidden_dim:
            hidden = self.borrowing_hidden_dim
        sizes = {'one': 1, 'SxS': self.n_streams ** 2, 'SxD': self.n_streams * self.dim,
                 'mixes': self.n_streams * (2 + self.n_streams * (self.stream_rounds > 0)),
                 'mix_kinds': 2 + (self.stream_rounds > 0),
                 'input_rows': self.layer_input_vocab or self.vocab_size, 'heads': heads, 'heads*h': heads * h, 'heads*v': heads * v,
                 'gate': heads if self.attn_gate_by_head else heads * v,
                 'kv*h': kv * h, 'kv*v': kv * v, 'inputs': self.n_layers *
                 self.layer_input_dim, 'k': self.latents(layer),
                 'k+t': self.latents(layer) + self.latent_turning(layer),
                 'h-t': h - self.latent_turning(layer), 'v': v, 'hidden': hidden,
                 'q_norm': heads * h if whole else h,
                 'k_norm': kv * h if whole else self.latent_turning(layer)
                 if self.qk_norm == 'turning' else h}
        sizes.update({'read': self.dim * (self.n_streams if self.gating else 1),
                      'grams': sum(self.own_grams(layer)[1]) if layer >= 0 else 0})
        groups = self.n_out_groups
        sizes.update({'part': heads * v // max(groups, 1), 'h': self.h,
                      'mixed': groups * self.out_rank if groups else heads * v,
                      'pool': self.pool(layer), 'indexed': 2 * self.index_dim,
                      'pooled': self.h * (1 + (layer in self.overlaps)),
                      'index_queries': self.n_index_heads * self.index_dim})
        keys = self.n_delta_key_heads * self.delta_key_dim
        values = self.n_delta_value_heads * self.delta_value_dim
        alone = layer in self.alone
        sizes['channels'] = values if self.selective or not self.has_keys else (
            2 * keys + values)
        sizes['decays'] = self.n_delta_value_heads * (
            self.delta_key_dim if self.selective else 1)
        sizes['seen'] = values if self.selective and alone else self.dim
        sizes['steps'] = self.step_rank or self.dim
        sizes['alphas'] = self.n_delta_value_heads * (
            self.delta_key_dim if self.key_decays else 1)
        sizes.update({'betas': self.n_delta_value_heads, 'written': self.dim})
        if self.lru:
            sizes.update({'alphas': values, 'steps': self.delta_value_dim,
                          'betas': values, 'written': self.delta_value_dim,
                          'decays': values})
        sizes['latents'] = self.gate_rank or self.dim
        sizes['q_latents'] = self.q_lora_rank * (1 + self.raw_latents)
        sizes['gated'] = sizes['latents'] if alone else (
            sizes['q_latents'] if self.raw_latents else self.dim)
        sizes['ssm_norm'] = self.delta_value_dim if self.recurrence == 'delta' else values
        if not self.has_state:
            keys = values
        sizes.update({'state_keys': keys, 'state_values': values})
        if alone:
            sizes.update({'heads*h': keys, 'kv*h': keys, 'kv*v': values,
                          'heads*v': values, 'mixed': values, 'gate': values})
        return tuple(sizes[s] if s in sizes else getattr(self, s)
                     for s in ROLES[role][1].split())

    def list_tensors(self):
        """Section 4: shapes of what may be there, what must, groups of all or none."""
        self.shapes, self.required, self.all_or_none = {}, [], {}
        normed = not self.norm.endswith('_plain')
        may_have_bias = {2, 5, 6, 7, 8, 10, 11, 12, 19, 21, 22, 23, 25, 27, 28, 32, 33, 103, 120}
        if self.norm == 'layer':
            may_have_bias |= {3, 4, 9, 14, 15, 16, 17, 38, 66, 67}
        if self.recurrence == 'state_space' or self.selective or self.lru:
            may_have_bias.add(36)
        if self.lru and self.delta:
            may_have_bias.add(34)

        def add(role, layer=-1, items=(-1,), must=True):
            shape = self.shape(role, layer)
            without = layer in self.alone and role in (5, 6, 7, 8, 32)
            if self.lru and self.delta:
                without = role in (7, 32) and layer not in self.alone
            for item in items:
                key = role, int(role == 20), layer, item
                self.shapes[key] = shape
                if must:
                    self.required.append(key)
                elif role != 2:
                    self.all_or_none.setdefault((role, 0), []).append(key)
                if role in may_have_bias and not without:
                    key = role, 1, layer, item
                    if role in (33, 103, 120):
                        self.required.append(key)
                    self.shapes[key] = shape[:1]
                    self.all_or_none.setdefault((role, 1), []).append(key)

        add(1)
        if self.positions == 'learned':
            add(13)
        if normed and self.embedding_norm and not self.bare_embedding_norm:
            add(38)
        if self.layer_input_dim:
            add(39)
            add(40)
            if normed:
                add(41)
        for role in (68, 69) if self.guessed else ():
            add(role, items=range(self.n_streams - 1))
        for role in (110, 111) if self.gating else (
                (88, 89, 90) if self.hyper and not self.stream_mean else ()):
            add(role)
        if normed:
            add(3)
        add(2, must=False)
        kv_heads = range(self.n_kv_heads)
        for i in range(self.n_layers):
            heads = range(self.heads(i))
            mixes, feeds = i not in self.feeding, i not in self.bare
            attends = mixes and i not in self.alone
            roles = [8] if mixes else []
            if normed and self.place(i) != 'after':
                roles += [4] if mixes else []
                roles += [9] if feeds and self.residual != 'parallel_one_norm' else []
            if normed and self.place(i) != 'before':
                roles += ([16] if mixes else []) + ([17] if feeds else [])
            elif normed and self.norms_mixture(i):
                roles += [17]
            if normed and self.sub_norms:
                roles += [66] if attends else []
                roles += [67] if feeds and not self.has_experts(i) else []
            if i in self.delta:
                lightning = self.recurrence == 'lightning'
                roles += [] if lightning else [36]
                roles += ([7] if self.lru else [5, 6, 7] if i in self.alone else [56, 57, 58, 60])
                if self.has_state:
                    if not lightning:
                        roles += [33, 35, 34 if self.recurrence == 'delta' or self.lru
                                  else 55]
                    roles += [32 if i in self.alone else 59]
                    roles += [] if self.bare_states else [37]
                    roles += [61] if self.step_rank else []
                    if self.selective and self.step_norms and self.step_norm_weights:
                        roles += [62, 63, 64]
                    roles += [65] if self.gate_rank else []
            if attends:
                roles += [25, 26, 27] if self.latent_queries else [5]
                if self.k:
                    roles += [28, 29]
                elif not self.borrows(i):
                    roles += [6] if self.keys_are_values(i) or self.turned_values else [6, 7]
                roles += [103] if self.head_growth else []
                roles += [18] if self.sinks and i not in self.sinkless_layers else []
                roles += [32] if self.attn_gate else []
                if self.n_out_groups:
                    add(91, i, range(self.n_out_groups))
                if self.pool(i):
                    roles += [92, 93, 94] + [95] * normed
                if self.has_index(i):
                    roles += [96, 97, 98, 99, 100] + [101] * normed
                if i in self.choosing:
                    roles += [96, 97, 119, 120]
            roles += [51, 52, 53, 54] if self.activation == 'xielu' else []
            roles += [45] if self.layer_scale else []
            if self.layer_input_dim:
                roles += [42, 43, 44] if normed else [42, 43]
            if i in self.gram_layers:
                roles += [112, 113, 114, 118] + [115, 116, 117] * normed
            if self.gating:
                roles += ([104, 105, 106] if mixes else []) + (
                    [107, 108, 109] if feeds else [])
            elif self.hyper:
                roles += ([82, 83, 84] if mixes else []) + (
                    [85, 86, 87] if feeds else [])
            if self.guessed:
                roles += [70, 72, 73] + ([71] if normed else [])
                roles += [74] if self.layer_input_dim else []
            if self.residual_rank and mixes:
                roles += [75, 76] + ([77] if normed else [])
            if self.expert_norms and self.has_experts(i):
                roles += [49] + ([46, 47, 48] if normed else [])
                roles += [50] if normed and self.shared_dim else []
            if self.norm_gate_rank:
                roles += [78, 79] if mixes else []
                roles += [80, 81] if self.has_experts(i) else []
            if self.has_experts(i):
                roles += [19] + ([102] if self.has_table(i) else
                                 [20] if self.router_corrects else [])
                if self.shared_dim:
                    roles += [21, 22, 23] if self.gated else [22, 23]
                    add(24, i, must=False)
            for role in roles:
                add(role, i)
            if self.k and attends:
                add(30, i, heads)
                add(31, i, heads)
            if normed and self.qk_norm not in ('none', 'bare', 'bare_all') \
                    and attends:
                each = self.qk_norm == 'heads'
                if self.qk_norm not in ('bare_queries', 'turning'):
                    add(14, i, heads if each else (-1,))
                if not self.borrows(i) and (self.qk_norm != 'turning'
                                            or self.latent_turning(i)):
                    add(15, i, kv_heads if each else (-1,))
            for role in (10, 11, 12)[not self.gated:] if feeds else ():
                add(role, i, range(self.n_experts) if self.has_experts(i) else (-1,))


# ---- Forward pass ----

def bf16(x):
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, 8)), exponent - 8)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


erf = np.vectorize(math.erf, otypes=[float])
ACTIVATIONS = {
    'gelu': lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    'gelu_tanh': lambda x: x / 2 * (1 + np.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    'relu': lambda x: np.maximum(x, 0), 'sigmoid': sigmoid,
    'relu2': lambda x: np.maximum(x, 0)**2}


class Computation:
    """The forward pass of section 5, of all positions at once, in doubles."""

    def __init__(self, container):
        self.d = Description(container)
        self.d.check()
        self.cache = {}

    def tensor(self, role, layer=-1, item=-1, part=0):
        """As doubles; None if it is not there."""
        key = role, part, layer, item
        if key not in self.cache:
            t = self.d.by_key.get(key)
            self.cache[key] = None if t is None else t.floats().astype(float)
        return self.cache[key]

    def product(self, x, role, layer=-1, item=-1):
        y, b = x @ self.tensor(role, layer, item).T, self.tensor(role, layer, item, 1)
        return y if b is None else y + b

    def norm(self, x, role, layer=-1, item=-1, kind=None, bare=False):
        kind = kind or self.d.norm
        eps = {16: self.d.post_norm_eps, 17: self.d.post_norm_eps,
               26: self.d.latent_eps, 29: self.d.latent_eps,
               37: self.d.state_eps, 62: self.d.latent_eps,
               63: self.d.latent_eps, 64: self.d.latent_eps,
               120: self.d.index_eps}.get(role, 0)
        if not kind.startswith('rms'):
            x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True)
                        + (eps or self.d.norm_eps))
        if kind.endswith('_plain') or bare:
            return x
        x, b = x * self.tensor(role, layer, item), self.tensor(role, layer, item, 1)
        return x if b is None else x + b

    def frequencies(self, layer, position, long):
        """Section 6: f(i) for i below t/2, and g."""
        d, t = self.d, self.d.turning(layer)
        i = np.arange(t // 2)
        if d.windowed(layer) and d.rope_local_theta > 0 and not d.pool(layer):
            return np.minimum(float(d.rope_local_theta) ** (-2 * i / t), 1e6), 1
        kind, base, s, length = (d.rope_scaling, float(d.rope_theta), d.rope_factor,
                                 d.rope_context or d.context)
        if kind == 'ntk' and t > 2:
            base *= s ** (t / (t - 2))
        if kind == 'dynamic' and t > 2:
            base *= (s * max(length, position + 1) / length - (s - 1)) ** (t / (t - 2))
        f = base ** (-2 * i / t)
        if kind == 'linear':
            f = f / s
        elif kind == 'llama3':
            b = length * f / (2 * math.pi) - d.rope_low_factor
            band = d.rope_high_factor - d.rope_low_factor
            b = np.clip(b / band, 0, 1) if band else np.where(b >= 0, 1, 0)
            f = (1 - b) * f / s + b * f
        elif kind == 'yarn' and base != 1:
            def c(r):
                turns = length / (2 * math.pi * max(r, 1e-9))
                return t * math.log(turns) / (2 * math.log(base))
            a, e = c(d.rope_beta_fast), c(d.rope_beta_slow)
            if not d.rope_ramp_exact:
                a, e = math.floor(a), math.ceil(e)
            a, e = max(a, 0), min(e, t - 1)
            b = np.clip((i - a) / ((e - a) or 0.001), 0, 1)
            f = b * f / s + (1 - b) * f
        elif kind in ('longrope', 'factors'):
            f = f / np.array(d.rope_long if long else d.rope_short, float)
        return np.minimum(f, 1e6), d.rope_attention_factor

    def turn(self, x, layer, long, way=1, step=1):
        """x: positions, heads, t numbers that turn; every step-th position."""
        d, half = self.d, x.shape[-1] // 2
        if not half or layer in d.still:
            return x
        y = np.empty_like(x)
        for p in range(len(x)):
            f, g = self.frequencies(layer, p * step, long)
            z = way * p * step * f
            cos, sin = g * np.cos(z), g * np.sin(z)
            a, b = x[p, :, :half], x[p, :, half:]
            y[p, :, :half], y[p, :, half:] = a * cos - b * sin, b * cos + a * sin
        return y

    def slope(self, head):
        d = self.d
        n = 1 << d.n_heads.bit_length() - 1
        power = -8 * (head + 1) / n if head < n else -4 * (2 * (head - n) + 1) / n
        return 2 ** power

    def scale(self, layer):
        if self.d.is_full(layer) and self.d.full_attn_scale:
            return self.d.full_attn_scale
        return self.d.attn_scale or 1 / math.sqrt(self.d.head_dim)

    def weights(self, s, head, layer, seen=None):
        """Of the scores q . k of a head: what each position takes of the others,
        and of pools behind them, where `seen` is true."""
        d, n = self.d, len(s)
        s = s * self.scale(layer)
        if d.score_growth > 0 and d.score_growth_period and (
                layer in d.still or not d.score_growth_still):
            steps = (np.arange(n) + d.score_growth_shift) // d.score_growth_period
            s = s * (1 + d.score_growth * np.log(1 + steps))[:, None]
        if d.head_growth:
            w, b = (self.tensor(103, layer, part=part)[head] for part in (0, 1))
            s = s * (w * np.log(1 + np.arange(n)) + b)[:, None]
        if d.attn_softcap > 0:
            s = d.attn_softcap * np.tanh(s / d.attn_softcap)
        s, pools = s[:, :n], s[:, n:]
        away = np.arange(n)[:, None] - np.arange(n)
        if d.positions == 'alibi':
            s = s - self.slope(head) * away
        if d.positions == 'alibi_scaled':
            place = bf16(bf16(self.slope(head)) * bf16(np.arange(n)))
            s = s - self.scale(layer) * (place[:, None] - place)
        hidden = away < 0
        if d.chooser(layer) >= 0:
            hidden |= ~self.chosen
        if d.windowed(layer):
            hidden |= away >= d.sliding_window
        if d.attention_chunk and layer not in d.full:
            chunk = np.arange(n) // d.attention_chunk
            hidden |= chunk[:, None] != chunk
        s = np.where(hidden, -np.inf, s)
        if seen is not None:
            s = np.concatenate([s, np.where(seen, pools, -np.inf)], axis=1)
        if d.sinks and layer not in d.sinkless_layers:
            sink = np.full((n, 1), self.tensor(18, layer)[head])
            return softmax(np.concatenate([s, sink], axis=1))[:, :-1]
        return softmax(s)

    def attention(self, u, layer, long, beside=False):
        d, n = self.d, len(u)
        if layer in d.alone:
            return self.recur(u, layer, 5, 6, 7, 32, 8)
        if layer in d.delta and not beside:
            return self.attention(u, layer, long, True) + self.recur(
                u, layer, 56, 57, 58, 59, 60)
        if d.k:
            return self.latent_attention(u, layer, long)
        if d.turned_values:
            return self.shared_attention(u, layer, long)
        h, t, kv_heads = d.head(layer), d.turning(layer), d.kv_heads(layer)

        def make(role):
            x = self.product(u, role, layer)
            return np.clip(x, -d.qkv_clip, d.qkv_clip) if d.qkv_clip > 0 else x
        def turn(x):
            return np.concatenate([self.turn(x[..., :t], layer, long), x[..., t:]],
                                  axis=-1)

        def finish(x, role, heads):
            if d.qk_norm == 'whole':
                x = self.norm(x, role, layer)
            x = x.reshape(n, heads, h)
            if d.qk_norm_late:
                return self.qk_norm(turn(x), role, layer, heads)
            return turn(self.qk_norm(x, role, layer, heads))
        heads = d.heads(layer)
        q = finish(make(5), 14, heads)
        if d.borrows(layer):
            k, v = self.lent[d.lender(layer)]
        else:
            k = make(6)
            v = k if d.keys_are_values(layer) else make(7)
            k = finish(k, 15, kv_heads)
            v = v.reshape(n, kv_heads, d.value(layer))
            if d.value_norm:
                v = self.norm(v, None, bare=True)
            self.lent[layer] = k, v
        results = []
        for i in range(heads):
            j = i * kv_heads // heads
            results.append(self.weights(q[:, i] @ k[:, j].T, i, layer) @ v[:, j])
        return self.output(results, u, layer)

    def output(self, results, u, layer):
        results = self.d.value_scale * np.concatenate(results, axis=1)
        if self.d.attn_gate:
            gate = self.product(self.latents(u, layer) if self.d.raw_latents else u,
                                32, layer)
            gate = (np.log1p(np.exp(gate)) if self.d.attn_gate_softplus
                    else sigmoid(gate))
            results = results * np.repeat(
                gate, results.shape[1] // gate.shape[1], axis=1)
        if self.d.sub_norms:
            results = self.norm(results, 66, layer)
        if self.d.n_out_groups:
            parts = np.split(results, self.d.n_out_groups, axis=1)
            results = np.concatenate([self.product(part, 91, layer, i)
                                      for i, part in enumerate(parts)], axis=1)
        return self.product(results, 8, layer)

    def lightning(self, u, layer, *roles):
        d, n, heads = self.d, len(u), self.d.n_delta_value_heads
        q, k, v = (z * sigmoid(z) for z in (self.product(u, role, layer)
                                            for role in roles[:3]))
        keys, c, results = d.n_delta_key_heads, d.delta_key_dim, []
        far = np.arange(n)[:, None] - np.arange(n)
        for i in range(heads):
            j = i * keys // heads
            t = (d.decay_first - layer * d.decay_step) * 2 ** (-8 * (i + 1) / heads)
            scores = q[:, j * c:(j + 1) * c] @ k[:, j * c:(j + 1) * c].T
            scores = np.where(far >= 0, scores * np.exp(-t * np.maximum(far, 0)), 0)
            results.append(scores @ v.reshape(n, heads, -1)[:, i])
        o, g = np.concatenate(results, axis=1), self.product(u, roles[3], layer)
        if not d.bare_states:
            o = self.norm(o, 37, layer, kind='rms')
        o = o * sigmoid(g) * (1 if d.sigmoid_gates else g)
        return self.product(o, roles[4], layer)

    def without_keys(self, u, layer):
        d, n, heads = self.d, len(u), self.d.n_delta_value_heads
        w, bias = self.tensor(36, layer), self.tensor(36, layer, part=1)
        m = self.product(u, 7, layer)
        before = np.concatenate([np.zeros((d.conv_width - 1, m.shape[1])), m])
        v = sum(w[:, j] * before[j:j + n] for j in range(d.conv_width))
        v = v + (0 if bias is None else bias)
        blocks = v.reshape(n, heads, 1, -1)

        def gate(role):
            rows = self.tensor(role, layer).reshape(heads, d.delta_value_dim, -1)
            bias = self.tensor(role, layer, part=1)
            z = (rows * blocks).sum(axis=-1).reshape(n, -1)
            return sigmoid(z + (0 if bias is None else bias))
        left = np.exp(-8 * np.log1p(np.exp(self.tensor(35, layer))) * gate(33))
        added = gate(34) * v
        added[1:] *= np.sqrt(1 - left[1:] ** 2)
        s, results = np.zeros(v.shape[1]), []
        for p in range(n):
            s = left[p] * s + added[p]
            results.append(s)
        z = self.act(self.product(u, 32, layer), layer)
        return self.product(np.stack(results) * z, 8, layer)

    def turn_last(self, x, layer, long, way=1, step=1):
        o = x.shape[-1] - self.d.t
        return np.concatenate(
            [x[..., :o], self.turn(x[..., o:], layer, long, way, step)], axis=-1)

    def shared_attention(self, u, layer, long):
        """Section 15."""
        d, n = self.d, len(u)
        q = self.product(self.latents(u, layer), 27, layer) if d.latent_queries else \
            self.product(u, 5, layer)
        q = q.reshape(n, -1, d.h)
        k = self.product(u, 6, layer).reshape(n, -1, d.h)
        if d.qk_norm != 'none':
            q = self.norm(q, 14, layer) if d.qk_norm == 'head' else self.norm(
                q, None, kind='rms', bare=True)
            k = self.norm(k, 15, layer)
        q, k = (self.turn_last(x, layer, long) for x in (q, k))
        seen, results = None, []
        if d.pool(layer):
            pools = self.pools(u, layer, long, 92)
            seen = self.seen_pools(u, layer, long, len(pools))
            k = np.concatenate([k, pools[:, None]])
        for i in range(q.shape[1]):
            values = k[:, i * k.shape[1] // q.shape[1]]
            w = self.weights(q[:, i] @ values.T, i, layer, seen) @ values
            results.append(self.turn_last(w[:, None], layer, long, -1)[:, 0])
        return self.output(results, u, layer)

    def pools(self, u, layer, long, first):
        d, m, ape = self.d, self.d.pool(layer), self.tensor(first + 2, layer)
        c, z = (self.product(u, first + i, layer) for i in range(2))
        count, made = len(u) // m, []
        half = c.shape[1] // 2 if layer in d.overlaps else 0
        for w in range(count):
            own = slice(w * m, w * m + m)
            logits, values = z[own, half:] + ape[:, half:], c[own, half:]
            if half and w:
                past = slice(w * m - m, w * m)
                logits = np.concatenate([z[past, :half] + ape[:, :half], logits])
                values = np.concatenate([c[past, :half], values])
            made.append((softmax(logits.T).T * values).sum(0))
        made = np.array(made).reshape(count, c.shape[1] - half)
        return self.turn_last(self.norm(made, first + 3, layer)[:, None], layer, long,
                              step=m)[:, 0]

    def seen_pools(self, u, layer, long, count):
        d, m, n = self.d, self.d.pool(layer), len(u)
        complete = np.arange(count) < ((np.arange(n) + 1) // m)[:, None]
        if not d.has_index(layer) or count <= d.index_topk:
            return complete
        y = self.pools(u, layer, long, 98)
        q = self.product(self.latents(u, layer), 96, layer).reshape(
            n, d.n_index_heads, d.index_dim)
        q = self.turn_last(q, layer, long)
        worth = (self.product(u, 97, layer)[:, :, None] * np.maximum(q @ y.T, 0)).sum(1)
        worth = np.where(complete, worth, -np.inf)
        seen = np.zeros_like(complete)
        for p in range(n):
            best = np.argsort(-worth[p], kind='stable')[:d.index_topk]
            seen[p, best] = True
        return seen & complete

    def recur(self, u, layer, *roles):
        """Section 11."""
        if self.d.lru:
            return self.without_keys(u, layer)
        if self.d.recurrence == 'lightning':
            return self.lightning(u, layer, *roles)
        d, n, w = self.d, len(u), self.tensor(36, layer)
        v = self.product(u, roles[2], layer)
        if not d.selective:
            q, k = (self.product(u, role, layer) for role in roles[:2])

        def convolve(m):
            before = np.concatenate([np.zeros((d.conv_width - 1, m.shape[1])), m])
            return sum(w[:, j] * before[j:j + n] for j in range(d.conv_width))
        if not d.has_state:
            return self.product(q * convolve(k * v), roles[4], layer)
        delta, bias = d.recurrence == 'delta', self.tensor(36, layer, part=1)
        parts = (v,) if d.selective else (q, k, v) if delta else (v, k, q)
        m = convolve(np.concatenate(parts, axis=1)) + (0 if bias is None else bias)
        m = m * sigmoid(m)
        if d.selective:
            v = m
            q, k = (self.product(m, role, layer) for role in roles[:2])
            seen = self.product(m, 61, layer)
        else:
            m = np.split(m, np.cumsum([x.shape[1] for x in parts])[:2], axis=1)
            (q, k, v), seen = m if delta else m[::-1], u
        keys, heads, c = d.n_delta_key_heads, d.n_delta_value_heads, d.delta_key_dim
        q, k, v = q.reshape(n, keys, c), k.reshape(n, keys, c), v.reshape(n, heads, -1)
        if d.selective and d.step_norms:
            q, k, seen = (self.norm(x, role, layer, kind='rms',
                                    bare=not d.step_norm_weights)
                          for x, role in ((q, 64), (k, 63), (seen, 62)))
        if delta:
            q, k = (x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6)
                    for x in (q, k))
            q = q / math.sqrt(c)
            b = d.beta_scale * sigmoid(self.product(u, 34, layer))
        if delta and d.step_rank:
            seen = self.product(u, 61, layer)
        g = self.product(self.product(u, 65, layer) if d.gate_rank else u,
                         roles[3], layer)
        g = (sigmoid(g) * (1 if d.sigmoid_gates else g)).reshape(n, heads, -1)
        a = self.product(seen, 33, layer)
        t = np.log1p(np.exp(a))
        rates = np.exp(self.tensor(35, layer)).reshape(heads, -1)
        decay, o = np.exp(-rates * t.reshape(n, heads, -1)), np.empty_like(v)
        if delta and d.decay_floor > 0:
            decay = np.exp(-d.decay_floor * sigmoid(rates * a.reshape(n, heads, -1)))
        for i in range(heads):
            j, s = i * keys // heads, np.zeros((c, d.delta_value_dim))
            for p in range(n):
                s = decay[p, i][:, None] * s
                e = b[p, i] * (v[p, i] - k[p, j] @ s) if delta else t[p, i] * v[p, i]
                s = s + np.outer(k[p, j], e)
                o[p, i] = q[p, j] @ s
        if delta:
            o = o if d.bare_states else self.norm(o, 37, layer, kind='rms')
            o = o * g
        else:
            o = (o + self.tensor(55, layer)[:, None] * v) * g
        if not delta and not d.bare_states:
            o = self.norm(o.reshape(n, keys, -1), 37, kind='rms', bare=True)
            o = o.reshape(n, -1) * self.tensor(37, layer)
        return self.product(o.reshape(n, -1), roles[4], layer)

    def qk_norm(self, x, role, layer, heads):
        kind = self.d.qk_norm
        if kind == 'head':
            x = self.norm(x, role, layer)
        elif kind == 'bare_all' or \
                kind == 'bare' and layer not in self.d.still:
            x = self.norm(x, role, layer, bare=True)
        elif kind == 'heads':
            x = np.stack([self.norm(x[:, i], role, layer, i) for i in range(heads)],
                         axis=1)
        return x

    def latents(self, u, layer):
        raw = self.product(u, 25, layer)
        a = self.norm(raw, 26, layer, kind='rms')
        return np.concatenate([a, raw], axis=1) if self.d.raw_latents else a

    def gated(self, u, layer, a, b):
        if not self.d.norm_gate_rank:
            return u
        z = self.product(u, a, layer)
        return u * sigmoid(self.product(z * sigmoid(z), b, layer))

    def latent_attention(self, u, layer, long):
        """Section 8."""
        d, n = self.d, len(u)
        o, k = d.head(layer) - d.latent_turning(layer), d.latents(layer)
        m = self.product(u, 28, layer)
        c, r = self.norm(m[:, :k], 29, layer, kind='rms'), m[:, k:]
        if d.qk_norm == 'turning' and r.shape[1]:
            r = self.norm(r, 15, layer)
        r = self.turn(r[:, None], layer, long)[:, 0]
        if d.q_lora_rank:
            q = self.product(self.latents(u, layer), 27, layer)
        else:
            q = self.product(u, 5, layer)
        q = q.reshape(n, d.heads(layer), d.head(layer))
        turned = self.turn(q[..., o:], layer, long)
        if layer in d.choosing:
            self.chosen = self.choose_positions(u, layer, long)
        results = []
        for i in range(d.heads(layer)):
            a = self.product(q[:, i, :o], 30, layer, i)
            w = self.weights(a @ c.T + turned[:, i] @ r.T, i, layer) @ c
            results.append(self.product(w, 31, layer, i))
        return self.output(results, u, layer)

    def choose_positions(self, u, layer, long):
        """The positions that each sees, of which there are at most index_topk."""
        d, n, t = self.d, len(u), self.d.latent_turning(layer)

        def turn(x):
            return np.concatenate([self.turn(x[..., :t], layer, long), x[..., t:]], axis=-1)
        y = turn(self.norm(self.product(u, 119, layer), 120, layer,
                           kind='layer')[:, None])[:, 0]
        q = turn(self.product(self.latents(u, layer)[:, :d.q_lora_rank], 96, layer)
                 .reshape(n, d.n_index_heads, d.index_dim))
        worth = (self.product(u, 97, layer)[:, :, None] * np.maximum(q @ y.T, 0)).sum(1)
        chosen = np.zeros((n, n), bool)
        for p in range(n):
            chosen[p, np.argsort(-worth[p, :p + 1], kind='stable')[:d.index_topk]] = True
        return chosen

    def hidden(self, u, layer, gate, up, item):
        d = self.d
        h = self.product(u, up, layer, item)
        if not d.gated:
            return self.act(h, layer)
        g = self.product(u, gate, layer, item)
        if layer in d.sparse_layers and gate == 10 and not d.has_experts(layer):
            mean = g.mean(-1, keepdims=True)
            deviation = np.sqrt(((g - mean) ** 2).mean(-1, keepdims=True))
            g = np.maximum(g - mean - d.sparse_cut * deviation, 0)
        if d.glu_limit > 0 and (not d.glu_limit_of_experts or (gate, item >= 0) == (10, True)):
            g, h = np.minimum(g, d.glu_limit), np.clip(h, -d.glu_limit, d.glu_limit)
        g = self.act(g, layer)
        if item >= 0:
            m = d.expert_act_limit if layer in d.limited_expert_layers else 0
        else:
            m = d.act_limit if layer in d.limited_layers else 0
        if m > 0:
            g, h = np.minimum(g, m), np.clip(h, -m, m)
        return g * (h + d.glu_offset)

    def feed(self, u, layer, gate, up, down, item=-1):
        return self.product(self.hidden(u, layer, gate, up, item), down, layer, item)

    def act(self, x, layer):
        if self.d.activation == 'xielu':
            p, n, b, e = (self.tensor(role, layer)[0] for role in (51, 52, 53, 54))
            p, n = np.log1p(np.exp(p)), b + np.log1p(np.exp(n))
            return b * x + np.where(x > 0, p * x * x,
                                    n * (np.expm1(np.minimum(x, e)) - x))
        if self.d.activation == 'silu':
            return x * sigmoid(self.d.activation_slope * x)
        return ACTIVATIONS[self.d.activation](x)

    def near_weights(self, z, chosen):
        weights, left = np.zeros(len(chosen)), np.full(len(z), True)
        for i in sorted(range(len(chosen)), key=lambda i: (-z[chosen[i]], chosen[i])):
            c = chosen[i]
            near = left & (z[c] - z <= self.d.router_reach * np.maximum(abs(z), z[c]))
            near[c], left[c] = True, False
            weights[i] = 1 / np.exp(z[near] - z[c]).sum()
        return weights

    def feed_forward(self, u, x, layer, first=None):
        d, shared = self.d, u
        if not d.has_experts(layer):
            h = self.hidden(u, layer, 10, 11, -1)
            return self.product(self.norm(h, 67, layer) if d.sub_norms else h, 12,
                                layer)
        z = self.product(self.norm(x, 46, layer) / math.sqrt(d.dim)
                         if d.expert_norms else first if d.router_early else u,
                         19, layer)
        if d.router_softcap > 0:
            z = d.router_softcap * np.tanh(z / d.router_softcap)
        if d.expert_norms:
            u = self.norm(x, 47, layer)
        scores = {'softmax': softmax, 'sigmoid': sigmoid,
                  'softmax_chosen': lambda z: z, 'near': lambda z: z,
                  'sigmoid_chosen': lambda z: z,
                  'root_softplus': lambda z: np.sqrt(np.log1p(np.exp(z)))}[d.router](z)
        f = np.zeros_like(u)
        for p in range(len(u)):
            if d.has_table(layer):
                chosen = self.tensor(102, layer)[self.tokens[p]].astype(int)
            else:
                chosen = self.choose(scores[p], layer)
            w = scores[p][chosen]
            if d.router == 'softmax_chosen':
                w = softmax(w)
            if d.router == 'sigmoid_chosen':
                w = sigmoid(w)
            if d.router == 'near':
                w = self.near_weights(z[p], chosen)
            if d.router_renormalises and w.sum() > 0:
                w = w / w.sum()
            w = w * d.router_scale
            if d.expert_norms:
                w = w * self.tensor(49, layer)[chosen]
            for e, weight in zip(chosen, w):
                if d.router_scales_input:
                    f[p] += self.feed(weight * u[p], layer, 10, 11, 12, e)
                else:
                    f[p] += weight * self.feed(u[p], layer, 10, 11, 12, e)
        if d.expert_norms:
            f = self.norm(f, 48, layer)
        if d.shared_dim:
            y = self.feed(shared, layer, 21, 22, 23)
            if d.expert_norms:
                y = self.norm(y, 50, layer)
            switch = self.tensor(24, layer)
            y = d.shared_scale * y
            f = f + (y if switch is None else sigmoid(shared @ switch)[:, None] * y)
        return f

    def choose(self, scores, layer):
        """Indices of the experts that a token takes (section 9, step 3)."""
        d = self.d
        if d.router_corrects:
            scores = scores + self.tensor(20, layer, part=1)

        def best(numbers, n):
            return sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))[:n]
        allowed = range(d.n_experts)
        if d.n_expert_groups > 1 and d.n_expert_groups_used != d.n_expert_groups:
            size = d.n_experts // d.n_expert_groups
            groups = scores.reshape(d.n_expert_groups, size)
            n = 2 if d.expert_group_worth == 'best_two' else 1
            worth = [sum(sorted(g)[-n:]) for g in groups]
            groups = set(best(worth, d.n_expert_groups_used))
            allowed = [e for e in allowed if e // size in groups]
        return [allowed[i] for i in best(scores[list(allowed)], d.n_experts_used)]

    def inputs(self, x, tokens):
        """Section 13: (positions, layers, layer_input_dim)."""
        d = self.d
        if not d.layer_input_dim:
            return None
        shape = len(tokens), d.n_layers, d.layer_input_dim
        p = self.norm((self.product(x, 40) / math.sqrt(d.dim)).reshape(shape), 41)
        rows = np.where(tokens < (d.layer_input_vocab or d.vocab_size), tokens, 0)
        r = math.sqrt(d.layer_input_dim) * self.tensor(39)[rows].reshape(shape)
        return (p + r) / math.sqrt(2)

    # Section 14: several streams.

    @staticmethod
    def as_large(y, x):
        size = np.maximum((y * y).mean(-1, keepdims=True), 1e-5)
        return y * np.sqrt((x * x).mean(-1, keepdims=True) / size)

    def said(self, x, layer, role):
        m = np.tanh(self.product(self.norm(x, 71, layer) / self.d.dim, 70, layer))
        return self.product(m, role, layer)

    def spread(self, x):
        return [x] + [self.as_large(x @ self.tensor(68, item=j).T, x)
                      for j in range(self.d.n_streams - 1)]

    def predict(self, streams, layer):
        n = len(streams)
        c = self.said(streams[0], layer, 72).reshape(-1, n, n)
        return [s + sum(c[:, j, i, None] * old for i, old in enumerate(streams))
                for j, s in enumerate(streams)]

    def correct(self, x, streams, layer):
        c, p = self.said(x, layer, 73), streams[0]
        return [s + (1 + c[:, j, None]) * (x - p) for j, s in enumerate(streams)]

    def gather(self, streams):
        x = streams[0]
        return sum((self.as_large(s @ self.tensor(69, item=j).T, x)
                    for j, s in enumerate(streams[1:])), x) / len(streams)

    # The same, with hyper-connections: streams are (positions, S, dim).

    def ask(self, streams, first, layer):
        d, n = self.d, self.d.n_streams
        f = streams.reshape(len(streams), -1)
        m = f @ self.tensor(first, layer).reshape(-1, n * d.dim).T
        m = m / np.sqrt((f * f).mean(-1, keepdims=True) + d.norm_eps)
        scale = np.repeat(self.tensor(first + 2, layer).reshape(-1),
                          [n, n, n * n][:1 if first == 88 else 2 + (d.stream_rounds > 0)])
        m = m * scale + self.tensor(first + 1, layer).reshape(-1)
        return sigmoid(m[:, :n]) + d.stream_eps, m[:, n:]

    def change(self, streams, m, y):
        d, n = self.d, self.d.n_streams
        write = d.stream_gain * sigmoid(m[:, :n]) + d.stream_floor
        if d.stream_rounds:
            mix = softmax(m[:, n:].reshape(-1, n, n)) + d.stream_eps
            mix = mix / (mix.sum(1, keepdims=True) + d.stream_eps)
            for _ in range(d.stream_rounds - 1):
                for axis in 2, 1:
                    mix = mix / (mix.sum(axis, keepdims=True) + d.stream_eps)
            streams = np.einsum('tjk,tjd->tkd', mix, streams)
        return streams + d.residual_scale * write[:, :, None] * y[:, None]

    def normed_streams(self, streams, role, layer):
        """Each by its part of a norm's weight and bias."""
        d, kind = self.d, self.d.norm
        x = streams
        if not kind.startswith('rms'):
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + d.norm_eps)
        if kind.endswith('_plain'):
            return x
        shape = d.n_streams, d.dim
        x, b = x * self.tensor(role, layer).reshape(shape), self.tensor(role, layer, -1, 1)
        return x if b is None else x + b.reshape(shape)

    def read_gated(self, streams, norm, down, layer):
        """What is read, and what inject says."""
        d, s = self.d, self.d.n_streams
        n = self.normed_streams(streams, norm, layer)
        f = n.reshape(len(n), -1)
        r = self.product(f, down, layer) / s
        g = self.product(r * sigmoid(r), down + 1, layer).reshape(n.shape)
        m = None if down == 110 else self.product(f, down + 2, layer) / s
        return (sigmoid(g) * n).sum(1) / s, m

    def add_grams(self, streams, layer):
        d = self.d
        factors, rows = d.own_grams(layer)
        table, e = self.tensor(112, layer).reshape(-1, d.gram_dim), []
        for p in range(len(self.tokens)):
            t = [int(self.tokens[p])]
            for k in range(1, d.gram_size):
                before = [int(a) for a in self.tokens[max(p - k, 0):p]]
                t.append(d.gram_stop if k > p or d.gram_stop in before else before[0])
            found = []
            for h in range(len(rows)):
                x = 0
                for k in range(h // d.gram_heads + 2):
                    x ^= t[k] * factors[k]
                found.append(table[sum(rows[:h]) + x % rows[h]])
            e.append(np.concatenate(found))
        e = np.array(e)
        k = self.product(e, 113, layer).reshape(streams.shape)
        z = (self.normed_streams(k, 115, layer)
             * self.normed_streams(streams, 116, layer)).sum(-1, keepdims=True)
        z = z / np.sqrt(d.dim)
        z = np.sign(z) * np.sqrt(np.maximum(np.abs(z), 1e-6))
        y = sigmoid(z) * self.product(e, 114, layer)[:, None]
        c, w = self.normed_streams(y, 117, layer), d.gram_conv_width
        weights = self.tensor(118, layer).reshape(d.n_streams, d.dim, w)
        total = np.zeros_like(c)
        for i in range(w):
            back = (w - 1 - i) * d.gram_size
            total[back:] += weights[:, :, i] * c[:max(len(c) - back, 0)]
        return streams + y + total * sigmoid(total)

    def run_hyper(self, x, long):
        d = self.d
        streams = np.repeat(x[:, None], d.n_streams, axis=1)
        for i in range(d.n_layers):
            if i in d.gram_layers:
                streams = self.add_grams(streams, i)
            for role, skipped in (82, d.feeding), (85, d.bare):
                if i in skipped:
                    continue
                first = role == 82
                if d.gating:
                    u, m = self.read_gated(streams, 4 if first else 9, role + 22, i)
                    x = u
                else:
                    read, m = self.ask(streams, role, i)
                    x = (read[:, :, None] * streams).sum(1)
                    u = self.norm(x, 4 if first else 9, i)
                if first or d.has_experts(i):
                    u = self.gated(u, i, 78 if first else 80, 79 if first else 81)
                y = self.attention(u, i, long) if first else self.feed_forward(u, x, i)
                if d.place(i) != 'before' or not first and d.norms_mixture(i):
                    y = self.norm(y, 16 if first else 17, i)
                streams = self.change(streams, m, y)
        if d.gating:
            return self.read_gated(streams, 3, 110, -1)[0]
        if d.stream_mean:
            return streams.mean(1)
        return (self.ask(streams, 88, -1)[0][:, :, None] * streams).sum(1)
    def added(self, x, u, y, lacks, kind):
        d = self.d
        if lacks:
            return x
        base = u if d.normed_residual else x
        return getattr(d, kind + '_keep') * base + (
            d.residual_scale * getattr(d, kind + '_add') * y)

    def run(self, tokens, long):
        d = self.d
        self.tokens = tokens
        x = d.embedding_scale * self.tensor(1)[tokens]
        if d.positions == 'learned':
            x = x + self.tensor(13)[:len(tokens)]
        if d.embedding_norm:
            x = self.norm(x, 38, bare=d.bare_embedding_norm)
        self.lent, inputs, self.passed = {}, self.inputs(x, tokens), False
        if d.hyper:
            x = self.run_hyper(x, long)
        streams = self.spread(x) if d.guessed else [x]
        for i in list(range(0 if d.hyper else d.n_layers)) * max(d.n_loops, 1):
            if i == 0 and d.loop_norm and self.passed:
                x = self.norm(x, 3)
            self.passed = True
            if d.guessed:
                streams = self.predict(streams, i)
                x = streams[0]

            def before(x, role):
                return x if d.place(i) == 'after' else self.norm(x, role, i)

            def after(x, role):
                if d.place(i) == 'before' and not (role == 17 and d.norms_mixture(i)):
                    return x
                return self.norm(x, role, i)
            a, f, u, first = 0, 0, None, x
            if i not in d.feeding:
                u = self.gated(before(x, 4), i, 78, 79)
                a = after(self.attention(u, i, long), 16)
            if d.residual == 'sequential':
                kind = 'delta' if i in d.alone else 'attn'
                x = self.added(x, u, a, i in d.feeding, kind)
            if d.residual_rank:
                past = self.product(self.product(u, 75, i), 76, i)
                x = (x + u + self.norm(past, 77, i)) / math.sqrt(2)
            if i not in d.bare:
                if d.residual != 'parallel_one_norm':
                    u = before(x, 9)
                if d.has_experts(i):
                    u = self.gated(u, i, 80, 81)
                f = after(self.feed_forward(u, x, i, first), 17)
            x = self.added(x, u, f, i in d.bare, 'feed')
            if d.residual != 'sequential':
                x = x + d.residual_scale * a
            if d.guessed:
                streams = self.correct(x, streams, i)
                x = streams[0]
            if d.layer_input_dim:
                seen = x * self.tensor(74, i) if d.guessed else x
                y = self.act(self.product(seen, 42, i), i) * inputs[:, i]
                y = self.norm(self.product(y, 43, i), 44, i)
                streams[1:] = [s + y for s in streams[1:]]
                x = x if d.guessed else x + y
            if d.layer_scale:
                x = x * self.tensor(45, i)[0]
            streams[0] = x
        y = x if d.gating else self.norm(self.gather(streams) if d.guessed else x, 3)
        if self.tensor(2) is not None:
            y = self.product(y, 2)
        else:
            bias = self.tensor(2, part=1)
            y = y @ self.tensor(1).T + (0 if bias is None else bias)
        y = y * d.logit_scale
        cap = d.logit_softcap
        return cap * np.tanh(y / cap) if cap > 0 else y

    def logits(self, tokens):
        """An array: of each position the logits after its token."""
        d, n = self.d, len(tokens)
        if not all(0 <= t < d.vocab_size for t in tokens) or (
                d.positions == 'learned' and n > d.context):
            raise ValueError('tokens or positions that the model does not have')
        tokens = np.array(tokens, int)
        limit = d.rope_context or d.context
        if d.rope_scaling != 'longrope' or n <= limit:
            return self.run(tokens, False)
        return np.concatenate([self.run(tokens[:limit], False),
                               self.run(tokens, True)[limit:]])


def logits(container, tokens):
    return Computation(container).logits(tokens)
