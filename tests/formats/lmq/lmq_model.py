"""lmq_model.py - descriptions of models and their forward pass, written from
lmq-model(5) alone, in doubles. For small models: plain loops. The types,
ranges and defaults of keys are those of the schema of the metadata.
"""
import json
import math
from pathlib import Path

SCHEMA = json.loads((Path(__file__).resolve().parents[3] /
                     "man/lmq-metadata.schema.json").read_text())
KEYS = SCHEMA["properties"]["model"]["properties"]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "number": (int, float)}
WIDTH = 1 << 24
EXPERT_NORMS = ("ffn_gate_inp_norm", "pre_ffw_norm_2", "post_ffw_norm_1",
                "post_ffw_norm_2")
XIELU = ("ffn_act_positive", "ffn_act_negative", "ffn_act_slope",
         "ffn_act_bound")


def need(condition, message, *values):
    if not condition:
        raise ValueError(message % values)


def check_types(value, schema, name):
    """M1 to M3, and the types of all other metadata: keys that are not known
    may be anything, words anything too."""
    kind = TYPES[schema["type"]]
    need(isinstance(value, kind) and (kind is bool or value is not True and
                                      value is not False), "%s", name)
    if kind in (int, (int, float)):
        need(schema.get("minimum", 0) <= value <=
             schema.get("maximum", math.inf), "%s is out of range", name)
    if kind is list:
        need(len(value) <= schema.get("maxItems", math.inf), "%s", name)
        for item in value:
            check_types(item, schema["items"], name)
    for key in schema.get("required", ()) if name == "model" else ():
        need(key in value, "the model has no %s", key)
    for key, inner in schema.get("properties", {}).items():
        if key in value:
            check_types(value[key], inner, key)


def check_keys(model):
    """M3 and M4, as far as the schema cannot say them."""
    for key in (key for key in KEYS if key.endswith("_layers") and
                key != "n_layers"):
        need(all(i < model["n_layers"] for i in model.get(key, ())), "%s", key)
    for key in "layer_heads", "layer_kv_heads", "layer_hidden_dims":
        need(len(model.get(key, ())) in (0, model["n_layers"]), "%s", key)
    short, long = model.get("rope_short"), model.get("rope_long")
    need(long is None or len(long) == len(short or ()), "rope_long")
    for key in model.get("requires", ()):
        need(key in model, "the model requires %s", key)


class NotComputed(Exception):
    """One of M8 to M12 does not hold."""


class Model:
    def __init__(self, container):
        self.c = container
        given = container.metadata["model"]
        self.h = h = {k: s.get("default") for k, s in KEYS.items()}
        h.update({k: v for k, v in given.items() if k in KEYS})
        self.why = self.find_unknown(given)
        for key, schema in KEYS.items():
            if "enum" in schema and h[key] not in schema["enum"]:
                h[key] = schema.get("default", "none")
        self.rotary = 0
        if h["positions"] == "rotary":
            self.rotary = h["rotary_dim"] or h["head_dim"]
        self.value_dim = h["value_dim"] or h["head_dim"]
        for key in "value_dim", "rotary_dim", "full_head_dim":  # M5
            if h[key] == h["head_dim"]:
                h[key] = 0
        if h["full_kv_heads"] == h["n_kv_heads"]:
            h["full_kv_heads"] = 0
        if self.rotary in (0, h["full_rotary_dim"]):
            h["full_rotary_dim"] = 0
        self.forget_unused()
        self.check_sizes()
        self.cache = {}
        self.find_tensors()

    def find_unknown(self, given):  # M8 to M10
        for key in given.get("requires", ()):
            if key not in KEYS:
                return "requires " + key
        for key, schema in KEYS.items():
            if "enum" in schema and given.get(key, schema.get("default")) \
                    not in schema["enum"]:
                return "%s is %s" % (key, given.get(key))
        return given.get("unsupported")

    def attends(self, layer):
        return self.mixes(layer) and not self.is_alone(layer)

    def is_alone(self, layer):
        return layer in self.h["delta_layers"] and \
            layer not in self.h["beside_layers"]

    def forget_unused(self):  # sections 6 and 12
        h = self.h
        if h["positions"] != "rotary":
            h["still_layers"] = []
        if not any(self.attends(i) and i not in h["full_layers"]
                   for i in range(h["n_layers"])):
            h["full_layers"] = []
            h["sliding_window"] = h["rope_local_theta"] = 0
        if not h["kv_lora_rank"] or not h["q_lora_rank"]:
            h["raw_latents"] = False
        self.hyper = h["n_streams"] if h["stream_kind"] != "guessed" else 0
        self.gates = h["stream_kind"] == "gated" and self.hyper > 0
        self.guessed = h["n_streams"] - self.hyper
        if not self.hyper or self.gates:
            h["stream_rounds"], h["stream_mean"] = 0, False
        pairs = h["gram_factors"]
        self.factors = [a * 2 ** 32 + b
                        for a, b in zip(pairs[::2], pairs[1::2])]
        for key in "pool_layers", "overlap_layers", "index_layers":
            h[key] = [i for i in h[key] if self.attends(i)]
        h["index_topk"] *= h["overlap_layers"] + h["index_layers"] != []
        if not any(self.attends(i) for i in range(h["n_layers"])):
            h["turned_values"], h["n_out_groups"] = False, 0
        self.latent_queries = h["q_lora_rank"] > 0 and bool(
            h["kv_lora_rank"] or h["turned_values"])

    # Section 16

    def grams(self, layer):
        """The layer's own factors and rows."""
        h = self.h
        i = sum(other < layer for other in {*h["gram_layers"]})
        n, places = h["gram_size"], self.places()
        return (self.factors[i * n:i * n + n],
                h["gram_rows"][i * places:i * places + places])

    def places(self):
        return max(self.h["gram_size"] - 1, 0) * self.h["gram_heads"]

    def check_grams(self):
        h, n = self.h, len({*self.h["gram_layers"]})
        if not n:
            return
        need(self.hyper and not h["n_borrowing"] and h["gram_size"] >= 2 and h["gram_heads"] and
             h["gram_dim"] and h["gram_conv_width"] and
             h["gram_stop"] < h["vocab_size"] and self.places() <= 512 and
             self.places() * h["gram_dim"] <= WIDTH, "gram_layers")
        need(len(self.factors) == n * h["gram_size"] and
             len(h["gram_rows"]) == n * self.places(), "how many")
        need(all(0 < f and f * h["vocab_size"] < 2 ** 63
                 for f in self.factors), "gram_factors")
        need(all(0 < r < 2 ** 31 for r in h["gram_rows"]), "gram_rows")

    # Section 15

    def pool(self, layer):
        h = self.h
        return h["overlap_size"] if layer in h["overlap_layers"] else \
            h["pool_size"] if layer in h["pool_layers"] else 0

    def has_index(self, layer):
        return layer in self.h["overlap_layers"] and self.h["index_topk"] > 0

    def chooser(self, layer):
        """Whose choice of positions the layer sees; None: all."""
        return max((i for i in self.h["index_layers"] if i <= layer),
                   default=None) if self.attends(layer) else None

    def has_table(self, layer):
        return layer in self.h["token_layers"] and self.has_experts(layer)

    def check_shared(self):
        h, layers = self.h, range(self.h["n_layers"])
        need(h["qk_norm"] != "bare_queries" or h["turned_values"],
             "bare_queries")
        need(h["qk_norm"] != "turning" or h["kv_lora_rank"], "turning")
        need(not h["turned_values"] or not (
            h["kv_lora_rank"] or h["value_dim"] or h["full_head_dim"] or
            h["full_rotary_dim"] or h["n_borrowing"] or
            h["full_keys_are_values"] or h["value_norm"] or
            h["qk_norm_late"] or h["qkv_clip"] or h["delta_layers"]) and
             h["qk_norm"] in ("none", "head", "bare_queries"),
             "turned_values")
        groups, rank = h["n_out_groups"], h["out_rank"]
        need(not groups or rank > 0 and groups * rank <= WIDTH and
             not h["delta_layers"] and all(
                 self.heads(i) * self.value_dim % groups == 0
                 for i in layers if self.attends(i)), "n_out_groups")
        for i in {*h["pool_layers"], *h["overlap_layers"]}:
            need((i in h["pool_layers"]) != (i in h["overlap_layers"]) and
                 self.pool(i) > 0 and h["turned_values"] and
                 self.kv_heads(i) == 1 and not h["attention_chunk"] and
                 not h["positions"].startswith("alibi") and
                 h["n_loops"] < 2 and 2 * h["head_dim"] <= WIDTH, "pools")
        n, dim = h["n_index_heads"], h["index_dim"]
        for i in layers:
            need(self.chooser(i) is None or h["index_topk"] > 0 and
                 h["kv_lora_rank"] and h["q_lora_rank"] and
                 not self.window(i) and
                 (not h["attention_chunk"] or i in h["full_layers"]),
                 "index_layers")
        need(not (h["index_layers"] or any(map(self.has_index, layers))) or
             n > 0 and h["q_lora_rank"] > 0 and
             0 < dim <= WIDTH // 2 and dim >= self.rotary and
             n * dim <= WIDTH, "the index")
        grouped = h["n_expert_groups"] > 1 and \
            h["n_expert_groups"] != h["n_expert_groups_used"]
        need(not any(map(self.has_table, layers)) or
             h["router"] != "near" and not grouped and
             not h["expert_norms"], "token_layers")

    def norm_place(self, layer):
        return "after" if layer in self.h["after_layers"] else \
            self.h["norm_place"]

    def norms_mixture(self, layer):
        return self.h["mixture_norm"] and self.has_experts(layer)

    def window(self, layer):
        return 0 if layer in self.h["full_layers"] else \
            self.h["sliding_window"]

    # Layers of two kinds, section 12

    def is_full(self, layer):
        return self.h["sliding_window"] > 0 and layer in self.h["full_layers"]

    def sees_all(self, layer):
        return layer in self.h["full_layers"] and bool(
            self.h["sliding_window"] or self.h["attention_chunk"])

    def of_kind(self, layer, key, otherwise):
        return self.h[key] if self.is_full(layer) and self.h[key] else \
            otherwise

    def head_dim(self, layer):
        return self.of_kind(layer, "full_head_dim", self.h["head_dim"])

    def rank(self, layer):
        k = self.h["kv_lora_rank"]
        return self.of_kind(layer, "full_kv_lora_rank", k) if k else 0

    def heads(self, layer):
        return (self.h["layer_heads"] or
                [self.h["n_heads"]] * self.h["n_layers"])[layer]

    def kv_heads(self, layer):
        if self.h["layer_kv_heads"]:
            return self.h["layer_kv_heads"][layer]
        return self.of_kind(layer, "full_kv_heads", self.h["n_kv_heads"])

    def turning(self, layer):
        if self.h["kv_lora_rank"]:
            return self.rotary
        return self.h["positions"] == "rotary" and self.of_kind(
            layer, "full_rotary_dim",
            self.of_kind(layer, "full_head_dim", self.rotary))

    def latent_turning(self, layer):
        return 0 if self.h["still_whole"] and \
            layer in self.h["still_layers"] else self.rotary

    def borrows(self, layer):
        return layer >= self.h["n_layers"] - self.h["n_borrowing"]

    def lender(self, layer):
        return max((i for i in range(self.h["n_layers"] -
                                     self.h["n_borrowing"])
                    if self.sees_all(i) == self.sees_all(layer)), default=None)

    def has_experts(self, layer):
        return self.h["n_experts"] > 0 and self.feeds(layer) and \
            layer not in self.h["dense_layers"]

    def mixes(self, layer):
        return layer not in self.h["feed_layers"]

    def feeds(self, layer):
        return layer not in self.h["bare_layers"]

    def is_lru(self):
        return self.h["recurrence"] == "lru" and bool(self.h["delta_layers"])

    def has_state(self, layer):
        return layer in self.h["delta_layers"] and \
            self.h["recurrence"] != "convolution"

    def check_heads(self):
        h, t, scaling = self.h, self.rotary, self.h["rope_scaling"]
        far = t
        if h["sliding_window"] and h["positions"] == "rotary":
            far = h["full_rotary_dim"] or h["full_head_dim"] or t
        if h["kv_lora_rank"]:
            far = t
        attending = [i for i in range(h["n_layers"]) if self.attends(i)]
        most = max(map(self.heads, attending))
        for i in attending:
            need(self.heads(i) % self.kv_heads(i) == 0, "heads")
        need(t % 2 == 0 and t <= h["head_dim"], "dimensions that turn")
        need(most * h["head_dim"] <= WIDTH and
             most * self.value_dim <= WIDTH and
             h["kv_lora_rank"] + h["head_dim"] <= WIDTH, "too wide")
        full = {key: h["full_" + key] if h["sliding_window"] else 0
                for key in ("head_dim", "value_dim", "kv_lora_rank")}
        need(h["kv_lora_rank"] == 0 or t < h["head_dim"] and
             (not full["head_dim"] or t < full["head_dim"]) and
             max(h["kv_lora_rank"], full["kv_lora_rank"]) +
             max(h["head_dim"], full["head_dim"]) <= WIDTH and
             most * full["value_dim"] <= WIDTH, "latents")
        need(h["positions"] != "rotary" or 1 <= h["rope_theta"] <= 1e15,
             "rope_theta")
        need(scaling in ("none", "factors") or
             1e-6 <= h["rope_factor"] <= 1e6, "rope_factor")
        local = h["rope_local_theta"]
        need(local == 0 or 1 <= local <= 1e15 or
             not any(self.window(i) for i in range(h["n_layers"])
                     if self.attends(i)),
             "local theta")
        need(scaling != "llama3" or
             h["rope_low_factor"] <= h["rope_high_factor"], "bands")
        need(scaling != "yarn" or
             0 < h["rope_beta_slow"] <= h["rope_beta_fast"], "betas")
        for key, kinds in (("rope_short", ("longrope", "factors")),
                           ("rope_long", ("longrope",))):
            need(scaling not in kinds or len(h[key]) == far // 2 and
                 all(1e-6 <= x <= 1.1e30 for x in h[key]), "%s", key)

    def check_sizes(self):  # M5
        h, layers = self.h, range(self.h["n_layers"])
        need(not h["context_end"] or h["context"] <= h["context_end"],
             "context_end")
        if any(self.attends(i) for i in layers):
            self.check_heads()
        self.check_kinds()
        self.check_shared()
        n, used = h["n_experts"], h["n_experts_used"]
        groups, best = h["n_expert_groups"], h["n_expert_groups_used"]
        if not any(self.feeds(i) for i in layers):
            n = 0
        need(n == 0 or 1 <= used <= n and h["expert_dim"] > 0, "experts")
        need(n == 0 or not h["router_early"] or
             not h["expert_norms"] and not h["n_streams"], "router_early")
        need(n == 0 or groups <= 1 or groups == best or
             n % groups == 0 and 1 <= best <= groups and
             best * n // groups >= used, "groups of experts")
        halves = {*h["bare_layers"], *h["feed_layers"]}
        need(not halves or h["residual"] == "sequential", "halves of layers")
        need(not {*h["feed_layers"]} & {*h["delta_layers"]},
             "a recurrent layer that only feeds")
        need(not {*h["delta_layers"]} & {*h["beside_layers"]} or
             h["recurrence"] not in ("convolution", "selective", "lru") and
             not h["n_borrowing"] and
             not h["kv_lora_rank"] and
             all(self.norm_place(i) == "before" for i in
                 {*h["delta_layers"]} & {*h["beside_layers"]}) and
             h["residual"] == "sequential", "attention beside a recurrence")
        if h["delta_layers"]:
            keys, values = h["n_delta_key_heads"], h["n_delta_value_heads"]
            c, d = h["delta_key_dim"], h["delta_value_dim"]
            if h["recurrence"] in ("convolution", "lru"):
                keys = c = 0
            else:
                need(min(keys, c) > 0 and values % keys == 0, "key heads")
            need(h["recurrence"] != "selective" or h["step_rank"] > 0 and d == 1,
                 "step_rank")
            lightning = h["recurrence"] == "lightning"
            need(not lightning or h["decay_first"] >=
                 h["decay_step"] * (h["n_layers"] - 1), "decay_first")
            need(min(values, d, 1 if lightning else h["conv_width"]) > 0 and
                 values * c * d <= WIDTH and
                 2 * keys * c + values * d <= WIDTH, "recurrence")

    def check_kinds(self):
        h = self.h
        full, heads = (h[key] if h["sliding_window"] else 0
                       for key in ("full_head_dim", "full_kv_heads"))
        attending = [i for i in range(h["n_layers"]) if self.attends(i)]
        most = max(map(self.heads, attending), default=1)
        uneven = len(set(map(self.kv_heads, attending))) > 1
        other_heads = len(set(map(self.heads, attending))) > 1
        part = h["full_rotary_dim"] if h["sliding_window"] else 0
        need(not part or not attending or part % 2 == 0 and
             part <= h["head_dim"] and not full and
             h["rope_local_theta"] > 0, "full_rotary_dim")
        need(len(set(map(self.heads, attending))) < 2 or
             not h["positions"].startswith("alibi"), "ALiBi")
        special = heads or part or uneven or h["n_borrowing"] or \
            h["full_keys_are_values"] and h["sliding_window"]
        if not any(self.attends(i) for i in range(h["n_layers"])):
            full = heads = 0
        need(not full or most * full <= WIDTH, "full_head_dim")
        need(not full or h["kv_lora_rank"] or full % 2 == 0 and
             not h["value_dim"] and
             (h["positions"] != "rotary" or
              not h["rotary_dim"] and h["rope_local_theta"] > 0),
             "full_head_dim")
        need(not special or not h["kv_lora_rank"], "kinds of latents")
        need(not special and not full and not other_heads or
             h["qk_norm"] != "heads", "kinds of layers")
        need(not h["value_dim"] or not h["n_borrowing"] and not (
            h["full_keys_are_values"] and h["sliding_window"]),
             "values of another size")
        need(h["n_borrowing"] < h["n_layers"], "n_borrowing")
        if h["n_borrowing"]:
            need(not h["delta_layers"] and not h["feed_layers"] and
                 None not in map(self.lender, range(
                     h["n_layers"] - h["n_borrowing"], h["n_layers"])),
                 "lenders")
            for i in range(h["n_layers"] - h["n_borrowing"], h["n_layers"]):
                need(self.kv_heads(i) == self.kv_heads(self.lender(i)),
                     "lenders with other heads")
        need(h["n_layers"] * h["layer_input_dim"] <= WIDTH, "layer_input_dim")
        need(h["n_streams"] != 1 and h["n_streams"] * h["dim"] <= WIDTH,
             "n_streams")
        need(not self.hyper or h["residual"] == "sequential" and not (
            h["layer_input_dim"] or h["residual_rank"] or h["layer_scale"] or
            h["expert_norms"] and h["n_experts"] or
            {*h["delta_layers"]} & {*h["beside_layers"]}) and
             all(self.norm_place(i) != "after" for i in
                 range(h["n_layers"])), "stream_kind")
        need(not self.gates or h["stream_rank"], "stream_rank")
        self.check_grams()
        need(not h["residual_rank"] or h["residual"] == "sequential" and
             not h["feed_layers"] and
             not {*h["delta_layers"]} & {*h["beside_layers"]} and
             all(self.norm_place(i) != "after" for i in
                 range(h["n_layers"])), "residual_rank")
        need(h["n_loops"] < 2 or not h["delta_layers"] and not
             h["n_borrowing"] and not h["layer_input_dim"] and not
             h["n_streams"], "n_loops")
        need(not h["norm_gate_rank"] or h["residual"] == "sequential" and
             all(self.norm_place(i) != "after" for i in
                 range(h["n_layers"])), "norm_gate_rank")
        kinds = {"attn": any(map(self.attends, range(h["n_layers"]))),
                 "delta": any(map(self.is_alone, range(h["n_layers"]))),
                 "feed": any(map(self.feeds, range(h["n_layers"])))}
        if h["normed_residual"] or any(
                h[kind + end] != 1 for kind in kinds if kinds[kind]
                for end in ("_keep", "_add")):
            need(h["residual"] == "sequential" and
                 not {*h["delta_layers"]} & {*h["beside_layers"]} and
                 not h["n_streams"] and not h["residual_rank"] and
                 not h["norm_gate_rank"], "what blocks add to")
            need(not h["normed_residual"] or
                 all(self.norm_place(i) != "after" for i in
                     range(h["n_layers"])), "normed_residual")
        need(not h["raw_latents"] or 2 * h["q_lora_rank"] <= WIDTH,
             "raw_latents")
        need(not h["expert_norms"] or not h["n_experts"] or
             h["residual"] == "sequential", "expert_norms")

    # Tensors, section 4

    def wanted(self):
        """(name, shape, may lack, may have a bias) of all tensors."""
        h, v = self.h, self.value_dim
        dim, norms = h["dim"], not h["norm"].endswith("_plain")
        bias = h["norm"] == "layer"
        yield "token_embd", (h["vocab_size"], dim), False, False
        if h["positions"] == "learned":
            yield "position_embd", (h["context"], dim), False, False
        if norms and h["embedding_norm"] and not h["bare_embedding_norm"]:
            yield "token_embd_norm", (dim,), False, bias
        if h["layer_input_dim"]:
            inputs = h["n_layers"] * h["layer_input_dim"]
            rows = h["layer_input_vocab"] or h["vocab_size"]
            yield "per_layer_token_embd", (rows, inputs), False, 0
            yield "per_layer_model_proj", (inputs, dim), False, False
        if h["layer_input_dim"] and norms:
            yield ("per_layer_proj_norm", (h["layer_input_dim"],), False,
                   False)
        if self.gates:
            s, r = h["n_streams"], h["stream_rank"]
            yield "output_hc_down", (r, s * dim), False, False
            yield "output_hc_up", (s * dim, r), False, False
        elif self.hyper and not h["stream_mean"]:
            s = h["n_streams"]
            yield "output_hc_fn", (s, s * dim), False, False
            yield "output_hc_base", (s,), False, False
            yield "output_hc_scale", (1,), False, False
        for j in range(max(self.guessed, 1) - 1):
            yield "altup_proj.%d" % j, (dim, dim), False, False
            yield "altup_unembd_proj.%d" % j, (dim, dim), False, False
        if norms:
            yield "output_norm", (self.read(),), False, bias
        yield "output", (h["vocab_size"], dim), True, True
        for layer in range(h["n_layers"]):
            for name, shape, lacks, has_bias in self.wanted_of(layer, norms,
                                                               bias, v):
                yield "blk.%d.%s" % (layer, name), shape, lacks, has_bias

    def wanted_of(self, layer, norms, bias, v):
        h, dim = self.h, self.h["dim"]
        size, kv = self.head_dim(layer), self.kv_heads(layer)
        v = self.of_kind(layer, "full_value_dim" if h["kv_lora_rank"] else
                         "full_head_dim", v)
        heads = self.heads(layer)
        q, borrows = heads * size, self.borrows(layer)
        k, rank = self.rank(layer), h["q_lora_rank"]
        attends = self.attends(layer)
        for first, last, there in (
                ("attn_norm", "post_attention_norm", self.mixes(layer)),
                ("ffn_norm", "post_ffw_norm", self.feeds(layer))):
            if norms and there and self.norm_place(layer) != "after" and (
                    first, h["residual"]) != ("ffn_norm", "parallel_one_norm"):
                yield first, (self.read(),), False, bias
            if norms and there and (
                    self.norm_place(layer) != "before" or
                    last == "post_ffw_norm" and self.norms_mixture(layer)):
                yield last, (dim,), False, bias
        for name, there in (("attn_norm", self.mixes(layer)),
                            ("ffn_norm", self.has_experts(layer))):
            if there and h["norm_gate_rank"]:
                yield name + "_a", (h["norm_gate_rank"], dim), False, False
                yield name + "_b", (dim, h["norm_gate_rank"]), False, False
        if layer in h["delta_layers"]:
            yield from self.recurrent(layer, dim)
        if not attends:
            pass
        elif self.latent_queries:
            yield "attn_q_a", (rank, dim), False, True
            yield "attn_q_a_norm", (rank,), False, False
            yield "attn_q_b", (q, self.seen_latents()), False, True
        else:
            yield "attn_q", (q, dim), False, True
        if not attends:
            pass
        elif k:
            yield ("attn_kv_a_mqa", (k + self.latent_turning(layer), dim),
                   False, True)
            yield "attn_kv_a_norm", (k,), False, False
            for i in range(heads):
                yield ("attn_k_b.%d" % i,
                       (k, size - self.latent_turning(layer)),
                       False, False)
                yield "attn_v_b.%d" % i, (v, k), False, False
        elif not borrows:
            yield "attn_k", (kv * size, dim), False, True
            if not h["turned_values"] and not (
                    h["full_keys_are_values"] and self.is_full(layer)):
                yield "attn_v", (kv * v, dim), False, not self.is_lru()
        if norms and h["qk_norm"] not in (
                "none", "bare", "bare_all") and attends:
            for name, n in ("attn_q_norm", heads), ("attn_k_norm", kv):
                if name == "attn_k_norm" and borrows or \
                        name == "attn_q_norm" and \
                        h["qk_norm"] in ("bare_queries", "turning"):
                    continue
                if h["qk_norm"] == "turning":
                    if self.latent_turning(layer):
                        yield name, (self.latent_turning(layer),), False, bias
                    continue
                if h["qk_norm"] == "heads":
                    for i in range(n):
                        yield ("%s.%d" % (name, i), (h["head_dim"],), False,
                               bias)
                else:
                    whole = n if h["qk_norm"] == "whole" else 1
                    yield name, (whole * size,), False, bias
        if h["head_growth"] and attends:
            yield "attn_growth", (heads,), False, True
        if h["sinks"] and attends and layer not in h["sinkless_layers"]:
            yield "attn_sinks", (heads,), False, False
        if h["attn_gate"] and attends:
            own = 1 if h["attn_gate_by_head"] else v
            seen = self.seen_latents() if h["raw_latents"] else dim
            yield "attn_gate", (heads * own, seen), False, not self.is_lru()
        if attends and norms and h["sub_norms"]:
            yield "attn_sub_norm", (heads * v,), False, bias
        groups, width = h["n_out_groups"], heads * v
        for i in range(groups if attends else 0):
            yield ("attn_output_a.%d" % i, (h["out_rank"], width // groups),
                   False, False)
        if attends:
            yield ("attn_output",
                   (dim, groups * h["out_rank"] if groups else width), False,
                   True)
        if attends and self.pool(layer):
            yield from self.pooled("attn_compressor", layer, h["head_dim"],
                                   layer in h["overlap_layers"])
        n, own = h["n_index_heads"], h["index_dim"]
        if self.has_index(layer) or layer in h["index_layers"]:
            yield "indexer.attn_q_b", (n * own, rank), False, False
            yield "indexer.proj", (n, dim), False, False
        if layer in h["index_layers"]:
            yield "indexer.attn_k", (own, dim), False, False
            yield "indexer.k_norm", (own,), False, True
        if self.has_index(layer):
            yield from self.pooled("indexer_compressor", layer, own, True)
        for name in XIELU if h["activation"] == "xielu" else ():
            yield name, (1,), False, False
        d = h["layer_input_dim"]
        if d:
            yield "inp_gate", (d, dim), False, False
            yield "proj", (dim, d), False, False
        if d and norms:
            yield "post_norm", (dim,), False, False
        if h["layer_scale"]:
            yield "layer_output_scale", (1,), False, False
        s, rank = self.hyper, h["stream_rank"]
        for name, there in (("hc_attn", self.mixes(layer)),
                            ("hc_ffn", self.feeds(layer))):
            if self.gates and there:
                yield name + "_down", (rank, s * dim), False, False
                yield name + "_up", (s * dim, rank), False, False
                yield name + "_inject", (s, s * dim), False, False
        if layer in h["gram_layers"]:
            wide = self.places() * h["gram_dim"]
            yield "ple_embd", (sum(self.grams(layer)[1]),
                               h["gram_dim"]), False, False
            yield "ple_key", (s * dim, wide), False, False
            yield "ple_value", (dim, wide), False, False
            yield "ple_conv1d", (s * dim, h["gram_conv_width"]), False, False
            for name in ("key", "query", "conv") if norms else ():
                yield "ple_norm_" + name, (s * dim,), False, False
        s, rank = self.guessed, h["residual_rank"]
        n, kinds = 0 if self.gates else self.hyper, 3 if h["stream_rounds"] else 2
        mixes = n * (2 + n) if kinds == 3 else 2 * n
        for name, there in (("hc_attn", self.mixes(layer)),
                            ("hc_ffn", self.feeds(layer))):
            if n and there:
                yield name + "_fn", (mixes, n * dim), False, False
                yield name + "_base", (mixes,), False, False
                yield name + "_scale", (kinds,), False, False
        if s:
            yield "altup_router", (s, dim), False, False
            yield "altup_predict_coef", (s * s, s), False, False
            yield "altup_correct_coef", (s, s), False, False
        if s and norms:
            yield "altup_router_norm", (dim,), False, False
        if s and d:
            yield "altup_correct_scale", (dim,), False, False
        if rank and self.mixes(layer):
            yield "laurel_l", (rank, dim), False, False
            yield "laurel_r", (dim, rank), False, False
        if rank and self.mixes(layer) and norms:
            yield "laurel_post_norm", (dim,), False, False
        if not self.feeds(layer):
            return
        if not self.has_experts(layer):
            hidden = borrows and h["borrowing_hidden_dim"] or h["hidden_dim"]
            if h["layer_hidden_dims"]:
                hidden = h["layer_hidden_dims"][layer]
            yield from self.network("ffn_%s", hidden)
            if norms and h["sub_norms"]:
                yield "ffn_sub_norm", (hidden,), False, bias
            return
        if h["expert_norms"]:
            yield "ffn_down_exps_scale", (h["n_experts"],), False, False
        for name in EXPERT_NORMS if h["expert_norms"] and norms else ():
            if name != "post_ffw_norm_1" or h["shared_dim"]:
                yield name, (dim,), False, False
        yield "ffn_gate_inp", (h["n_experts"], dim), False, True
        if self.has_table(layer):
            yield ("ffn_gate_tid2eid", (h["vocab_size"],
                                        h["n_experts_used"]), False, False)
        for e in range(h["n_experts"]):
            yield from self.network("ffn_%%s.%d" % e, h["expert_dim"])
        if h["shared_dim"]:
            yield from self.network("ffn_%s_shexp", h["shared_dim"])
            yield "ffn_gate_inp_shexp", (dim,), True, False

    def pooled(self, name, layer, width, overlaps):
        dim, out = self.h["dim"], (2 if overlaps else 1) * width
        yield name + "_kv", (out, dim), False, False
        yield name + "_gate", (out, dim), False, False
        yield name + "_ape", (self.pool(layer), out), False, False
        if not self.h["norm"].endswith("_plain"):
            yield name + "_norm", (width,), False, False

    def seen_latents(self):
        return (2 if self.h["raw_latents"] else 1) * self.h["q_lora_rank"]

    def recurrent_names(self, layer):
        return ["attn_" + name for name in "q k v gate output".split()] if \
            self.is_alone(layer) else [
                "ssm_" + name for name in "q k v gate output".split()]

    def without_keys_names(self, values):
        dim, d = self.h["dim"], self.h["delta_value_dim"]
        yield "attn_v", (values, dim), False, True
        yield "attn_gate", (values, dim), False, True
        yield "ssm_alpha", (values, d), False, True
        yield "ssm_beta", (values, d), False, True
        yield "ssm_a", (values,), False, False
        yield ("ssm_conv1d", (values, self.h["conv_width"]), False, True)
        yield "attn_output", (dim, values), False, True

    def recurrent(self, layer, dim):
        h, heads = self.h, self.h["n_delta_value_heads"]
        values = channels = keys = heads * h["delta_value_dim"]
        selective = h["recurrence"] == "selective"
        space = selective or h["recurrence"] == "state_space"
        seen, steps, decays, alphas, latents = dim, dim, heads, heads, dim
        lightning = h["recurrence"] == "lightning"
        own = self.recurrent_names(layer)
        if h["recurrence"] == "lru":
            yield from self.without_keys_names(values)
            return
        if selective:
            seen, steps = values, h["step_rank"]
            decays = heads * h["delta_key_dim"]
            yield "ssm_alpha_a", (steps, seen), False, False
            if h["step_norms"] and h["step_norm_weights"]:
                yield "ssm_alpha_norm", (steps,), False, False
                for name in ("ssm_k_norm", "ssm_q_norm"):
                    yield name, (h["delta_key_dim"],), False, False
        if h["recurrence"] == "delta":
            alphas = heads * (h["delta_key_dim"] if h["key_decays"] else 1)
            if h["step_rank"]:
                steps = h["step_rank"]
                yield "ssm_alpha_a", (steps, dim), False, False
            if h["gate_rank"]:
                latents = h["gate_rank"]
                yield "attn_gate_a", (latents, dim), False, False
        if self.has_state(layer):
            keys = h["n_delta_key_heads"] * h["delta_key_dim"]
            channels = values if selective else 2 * keys + values
            yield own[3], (values, latents), False, False
            if not h["bare_states"]:
                yield ("ssm_norm", (h["delta_value_dim"] if
                                    h["recurrence"] == "delta" else
                                    values,), False, False)
        if self.has_state(layer) and not lightning:
            yield "ssm_alpha", (alphas, steps), False, True
            yield "ssm_a", (decays,), False, False
            yield ("ssm_d", (heads,), False, False) if space else \
                ("ssm_beta", (heads, dim), False, False)
        yield own[0], (keys, seen), False, False
        yield own[1], (keys, seen), False, False
        yield own[2], (values, dim), False, False
        if not lightning:
            yield "ssm_conv1d", (channels, h["conv_width"]), False, space
        yield own[4], (dim, values), False, False

    def network(self, name, width):
        dim = self.h["dim"]
        if self.h["gated"]:
            yield name % "gate", (width, dim), False, True
        yield name % "up", (width, dim), False, True
        yield name % "down", (dim, width), False, True

    def find_tensors(self):  # M6, M7, M11
        shapes, all_or_none, must = {}, {}, []
        for name, shape, lacks, has_bias in self.wanted():
            role = ".".join(p for p in name.split(".") if not p.isdigit())
            shapes[name + ".weight"] = shape
            if lacks:
                all_or_none.setdefault(role, []).append(name + ".weight")
            else:
                must.append(name + ".weight")
            if has_bias:
                shapes[name + ".bias"] = shape[:1]
                all_or_none.setdefault(role + ".bias",
                                       []).append(name + ".bias")
        for layer in range(self.h["n_layers"]):
            if self.has_experts(layer) and self.h["router_corrects"] and \
                    not self.has_table(layer):
                name = "blk.%d.exp_probs_b.bias" % layer
                shapes[name] = (self.h["n_experts"],)
                must.append(name)
            if self.has_state(layer) and self.h["recurrence"] != "lightning":
                must.append("blk.%d.ssm_alpha.bias" % layer)
            if self.h["head_growth"] and self.attends(layer):
                must.append("blk.%d.attn_growth.bias" % layer)
            if layer in self.h["index_layers"]:
                must.append("blk.%d.indexer.k_norm.bias" % layer)
        for r in self.c.records:
            need(r.layer < self.h["n_layers"] or not 0 < r.role < 121,
                 "%s: layer", r.name)
            if r.role == 0 or r.role > 120 or r.name not in shapes:
                self.why = self.why or "has the tensor " + r.name
            else:
                need(tuple(r.dims) == shapes[r.name], "%s: shape", r.name)
        if self.why:
            return
        for name in must:
            need(name in self.c.by_name, "lacks %s", name)
        for layer in filter(self.has_table, range(self.h["n_layers"])):
            for row in self.matrix("blk.%d.ffn_gate_tid2eid.weight" % layer):
                need(len(set(row)) == len(row) and all(
                    a in range(self.h["n_experts"]) for a in row),
                     "experts of a token")
        for names in all_or_none.values():
            n = sum(name in self.c.by_name for name in names)
            need(n in (0, len(names)), "lacks some of %s", names[0])

    def matrix(self, name):
        """Rows of a tensor, or None."""
        if name not in self.cache:
            r = self.c.by_name.get(name)
            values = None
            if r is not None:
                flat = self.c.read(r)
                n = r.dims[-1]
                values = [flat[i:i + n] for i in range(0, len(flat), n)]
            self.cache[name] = values
        return self.cache[name]

    def vector(self, name):
        rows = self.matrix(name)
        return rows and rows[0]

    # The forward pass, section 5

    def product(self, name, x):
        bias = self.vector(name + ".bias")
        y = [sum(a * b for a, b in zip(row, x))
             for row in self.matrix(name + ".weight")]
        return [a + b for a, b in zip(y, bias)] if bias else y

    def norm(self, name, x, kind=None, bare=False):
        kind, eps = kind or self.h["norm"], self.h["norm_eps"]
        if name.endswith(("q_a_norm", "kv_a_norm", "ssm_alpha_norm",
                          "ssm_k_norm", "ssm_q_norm")):
            eps = self.h["latent_eps"] or eps
        if name.endswith(("post_attention_norm", "post_ffw_norm")):
            eps = self.h["post_norm_eps"] or eps
        if name.endswith("indexer.k_norm"):
            eps = self.h["index_eps"] or eps
        if name.endswith("ssm_norm"):
            eps = self.h["state_eps"] or eps
        mean = 0 if kind.startswith("rms") else sum(x) / len(x)
        x = [a - mean for a in x]
        scale = 1 / math.sqrt(sum(a * a for a in x) / len(x) + eps)
        x = [a * scale for a in x]
        if kind.endswith("_plain") or bare:
            return x
        x = [a * b for a, b in zip(x, self.vector(name + ".weight"))]
        bias = self.vector(name + ".bias")
        return [a + b for a, b in zip(x, bias)] if bias else x

    def act(self, x, name):
        kind = self.h["activation"]
        if kind == "xielu":
            at = name[:name.index("ffn_")]
            p, n, b, e = (self.vector(at + k + ".weight")[0] for k in XIELU)
            p, n = math.log1p(math.exp(p)), b + math.log1p(math.exp(n))
            return b * x + (p * x * x if x > 0 else
                            n * (math.expm1(min(x, e)) - x))
        if kind == "relu":
            return max(x, 0.0)
        if kind == "relu2":
            return max(x, 0.0) ** 2
        if kind == "silu":
            return sigmoid(x * self.h["activation_slope"]) * x
        if kind == "gelu":
            return x / 2 * (1 + math.erf(x / math.sqrt(2)))
        if kind == "gelu_tanh":
            return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) *
                                          (x + 0.044715 * x ** 3)))
        return sigmoid(x)

    def logits(self, tokens):
        """After the last token."""
        if self.why:
            raise NotComputed(self.why)
        h, n = self.h, len(tokens)
        self.tokens = tokens
        xs = []
        for p, token in enumerate(tokens):
            x = [a * h["embedding_scale"]
                 for a in self.matrix("token_embd.weight")[token]]
            if h["positions"] == "learned":
                x = add(x, self.matrix("position_embd.weight")[p])
            if h["embedding_norm"]:
                x = self.norm("token_embd_norm", x,
                              bare=h["bare_embedding_norm"])
            xs.append(x)
        self.lent, inputs = {}, [self.inputs(x, t)
                                 for x, t in zip(xs, tokens)]
        if self.gates:
            return self.head(self.all_hyper(xs, n))
        if self.hyper:
            return self.head(self.norm("output_norm", self.all_hyper(xs, n)))
        streams = [self.spread(x) for x in xs]  # of each token, x the first
        for step in range(max(h["n_loops"], 1) * h["n_layers"]):
            layer = step % h["n_layers"]
            if step and not layer and h["loop_norm"]:
                streams = [[self.norm("output_norm", s[0])] for s in streams]
            streams = [self.predict(layer, s) for s in streams]
            xs = self.layer(layer, [s[0] for s in streams], n)
            streams = [self.finish(layer, self.correct(layer, s, x), i)
                       for s, x, i in zip(streams, xs, inputs)]
        return self.head(self.norm("output_norm", self.gather(streams[-1])))

    def head(self, y):
        h = self.h
        head = "output" if self.matrix("output.weight") else "token_embd"
        out = [sum(a * b for a, b in zip(row, y))
               for row in self.matrix(head + ".weight")]
        out = add(out, self.vector("output.bias") or [0] * len(out))
        return [cap(a * h["logit_scale"], h["logit_softcap"]) for a in out]

    # Several streams, section 14

    def asked(self, name, streams, n_rows):
        f = [a for s in streams for a in s]
        size = math.sqrt(sum(a * a for a in f) / len(f) + self.h["norm_eps"])
        rows, base = self.matrix(name + "_fn.weight"), self.vector(
            name + "_base.weight")
        scale, s = self.vector(name + "_scale.weight"), len(streams)
        return [sum(a * b for a, b in zip(rows[i], f)) / size *
                scale[min(i // s, 2)] + base[i] for i in range(n_rows)]

    def all_hyper(self, xs, n):
        h, s = self.h, self.hyper
        streams = [[x] * s for x in xs]
        for layer in range(h["n_layers"]):
            at = "blk.%d." % layer
            if layer in h["gram_layers"]:
                streams = self.add_grams(layer, at, streams)
            for first, there in ((True, self.mixes(layer)),
                                 (False, self.feeds(layer))):
                if there:
                    streams = self.block(layer, at, first, streams, n)
        if self.gates:
            return self.open_gates("output_norm", "output_hc",
                                   streams[-1])[0]
        if h["stream_mean"]:
            read = [1 / s] * s
        else:
            read = [sigmoid(a) + h["stream_eps"]
                    for a in self.asked("output_hc", streams[-1], s)]
        return weighted(read, streams[-1])

    def block(self, layer, at, first, streams, n):
        h, s = self.h, self.hyper
        name = at + ("attn_norm" if first else "ffn_norm")
        rows = s * (2 + s) if h["stream_rounds"] else 2 * s
        asks = at + ("hc_attn" if first else "hc_ffn")
        if self.gates:
            u, asked = zip(*[self.open_gates(name, asks, x)
                             for x in streams])
        else:
            asked = [self.asked(asks, x, rows) for x in streams]
            u = [self.norm(name, weighted([sigmoid(a) + h["stream_eps"]
                                           for a in m[:s]], x))
                 for m, x in zip(asked, streams)]
        if first or self.has_experts(layer):
            u = [self.gated(name, x) for x in u]
        y = self.mixture(layer, at, u, n) if first else [
            self.fed(layer, at, x, x, p) for p, x in enumerate(u)]
        if self.norm_place(layer) != "before" or \
                not first and self.norms_mixture(layer):
            name = "post_attention_norm" if first else "post_ffw_norm"
            y = [self.norm(at + name, x) for x in y]
        return [self.changed(m, x, a) for m, x, a in zip(asked, streams, y)]

    def read(self):
        return self.h["dim"] * (self.hyper if self.gates else 1)

    def norm_streams(self, name, streams):
        """One behind the other, each with its part of weight and bias."""
        plain = [self.norm(name, x, self.h["norm"].replace("_plain", "") +
                           "_plain") for x in streams]
        n = [a for x in plain for a in x]
        if not self.h["norm"].endswith("_plain"):
            n = [a * b for a, b in zip(n, self.vector(name + ".weight"))]
            n = add(n, self.vector(name + ".bias") or [0] * len(n))
        return n

    def open_gates(self, name, asks, streams):
        s, dim = self.hyper, self.h["dim"]
        n = self.norm_streams(name, streams)
        r = [a / s for a in self.product(asks + "_down", n)]
        g = self.product(asks + "_up", [a * sigmoid(a) for a in r])
        u = [sum(sigmoid(g[j * dim + i]) * n[j * dim + i]
                 for j in range(s)) / s for i in range(dim)]
        write = [] if name == "output_norm" else [
            a / s for a in self.product(asks + "_inject", n)]
        return u, [0] * s + write

    def looked_up(self, layer, at, p):
        h = self.h
        factors, rows = self.grams(layer)
        stop, e = h["gram_stop"], []
        t = [self.tokens[p]]
        for k in range(1, h["gram_size"]):
            t.append(stop if k > p or stop in self.tokens[p - k:p]
                     else self.tokens[p - k])
        for i, r in enumerate(rows):
            mixed = 0
            for k in range(i // h["gram_heads"] + 2):
                mixed ^= t[k] * factors[k]
            e += self.matrix(at + "ple_embd.weight")[sum(rows[:i]) +
                                                     mixed % r]
        return e

    def add_grams(self, layer, at, streams):
        h, dim, s = self.h, self.h["dim"], self.hyper
        ys, cs, out = [], [], []
        for p, x in enumerate(streams):
            e = self.looked_up(layer, at, p)
            k = self.norm_streams(at + "ple_norm_key", cut(
                self.product(at + "ple_key", e), s))
            q = self.norm_streams(at + "ple_norm_query", x)
            v, y = self.product(at + "ple_value", e), []
            for j in range(0, s * dim, dim):
                z = sum(a * b for a, b in zip(k[j:j + dim], q[j:j + dim]))
                z /= math.sqrt(dim)
                z = math.copysign(math.sqrt(max(abs(z), 1e-6)), z) \
                    if z else 0.0
                y.append([sigmoid(z) * a for a in v])
            ys.append([a for row in y for a in row])
            cs.append(self.norm_streams(at + "ple_norm_conv", y))
        w = self.matrix(at + "ple_conv1d.weight")
        for p, x in enumerate(streams):
            sums = [0.0] * (s * dim)
            for i in range(h["gram_conv_width"]):
                q = p - (h["gram_conv_width"] - 1 - i) * h["gram_size"]
                if q >= 0:
                    sums = [a + row[i] * b
                            for a, row, b in zip(sums, w, cs[q])]
            new = [a + y + c * sigmoid(c) for a, y, c in
                   zip([a for row in x for a in row], ys[p], sums)]
            out.append(cut(new, s))
        return out

    def changed(self, m, streams, y):
        h, s, out = self.h, self.hyper, streams
        if h["stream_rounds"]:
            e = h["stream_eps"]
            mix = [[a + e for a in softmax(row)]
                   for row in cut(m[2 * s:], s)]
            for i in range(2 * h["stream_rounds"] - 1):
                mix = list(zip(*mix))  # by columns, by rows, by columns
                mix = [[a / (sum(row) + e) for a in row] for row in mix]
            out = [weighted(column, streams) for column in mix]
        return [[a + h["residual_scale"] * (
            h["stream_gain"] * sigmoid(w) + h["stream_floor"]) * b
            for a, b in zip(x, y)] for x, w in zip(out, m[s:2 * s])]

    def spread(self, x):
        return [x] + [as_large(self.product("altup_proj.%d" % j, x), x)
                      for j in range(max(self.guessed, 1) - 1)]

    def said(self, at, x):
        u = [a / len(x) for a in self.norm(at + "altup_router_norm", x)]
        return [math.tanh(a) for a in self.product(at + "altup_router", u)]

    def predict(self, layer, streams):
        at, n = "blk.%d." % layer, self.guessed
        if not n:
            return streams
        c = cut(self.product(at + "altup_predict_coef",
                             self.said(at, streams[0])), n)
        return [[sum((w * a for w, a in zip(row, each)), own) for own, each
                 in zip(stream, zip(*streams))]
                for row, stream in zip(c, streams)]

    def correct(self, layer, streams, x):
        at = "blk.%d." % layer
        if not self.guessed:
            return [x]
        c = self.product(at + "altup_correct_coef", self.said(at, x))
        return [[a + (1 + w) * (new - old) for a, new, old in
                 zip(stream, x, streams[0])] for w, stream in zip(c, streams)]

    def gather(self, streams):
        x = streams[0]
        seen = [x] + [as_large(self.product("altup_unembd_proj.%d" % j, s), x)
                      for j, s in enumerate(streams[1:])]
        return [sum(each) / len(seen) for each in zip(*seen)]

    def inputs(self, x, token):  # section 13
        if token >= (self.h["layer_input_vocab"] or math.inf):
            token = 0
        h, d = self.h, self.h["layer_input_dim"]
        if not d:
            return None
        r = cut(self.matrix("per_layer_token_embd.weight")[token],
                h["n_layers"])
        p = [a / math.sqrt(h["dim"])
             for a in self.product("per_layer_model_proj", x)]
        p = [self.norm("per_layer_proj_norm", a)
             for a in cut(p, h["n_layers"])]
        return [[(a + math.sqrt(d) * b) / math.sqrt(2)
                 for a, b in zip(*both)] for both in zip(p, r)]

    def finish(self, layer, streams, inputs):
        at, x = "blk.%d." % layer, streams[0]
        if inputs and len(streams) > 1:
            x = [a * b for a, b in
                 zip(x, self.vector(at + "altup_correct_scale.weight"))]
        if inputs:
            y = [self.act(a, at + "ffn_%s") * b for a, b in
                 zip(self.product(at + "inp_gate", x), inputs[layer])]
            y = self.norm(at + "post_norm", self.product(at + "proj", y))
            streams = streams[:1] + [add(s, y) for s in streams[1:]] \
                if len(streams) > 1 else [add(x, y)]
        if self.h["layer_scale"]:
            streams[0] = [a * self.vector(at + "layer_output_scale.weight")[0]
                          for a in streams[0]]
        return streams

    def mixed(self, layer, at, xs, n):
        h, after = self.h, self.norm_place(layer) == "after"
        u = [x if after else self.norm(at + "attn_norm", x) for x in xs]
        u = [self.gated(at + "attn_norm", x) for x in u]
        a = self.mixture(layer, at, u, n)
        if self.norm_place(layer) != "before":
            a = [self.norm(at + "post_attention_norm", x) for x in a]
        kind = "delta" if self.is_alone(layer) else "attn"
        out = [self.added(kind, *each) for each in zip(xs, u, a)]
        if h["residual_rank"]:
            past = [self.norm(at + "laurel_post_norm", self.product(
                at + "laurel_r", self.product(at + "laurel_l", v)))
                for v in u]
            out = [[a / math.sqrt(2) for a in add(x, add(v, y))]
                   for x, v, y in zip(out, u, past)]
        return out, u

    def added(self, kind, x, u, y):
        h = self.h
        scale = h["residual_scale"] * h[kind + "_add"]
        return [h[kind + "_keep"] * a + scale * b
                for a, b in zip(u if h["normed_residual"] else x, y)]

    def layer(self, layer, xs, n):
        h, at, before, u = self.h, "blk.%d." % layer, xs, None
        place = self.norm_place(layer)
        if self.mixes(layer):
            xs, u = self.mixed(layer, at, xs, n)
        if not self.feeds(layer):
            return xs
        if h["residual"] != "parallel_one_norm":
            base = xs if h["residual"] == "sequential" else before
            u = [x if place == "after" else self.norm(at + "ffn_norm", x)
                 for x in base]
        out = []
        if self.has_experts(layer):
            u = [self.gated(at + "ffn_norm", x) for x in u]
        for p, (x, v) in enumerate(zip(xs, u)):
            f = self.fed(layer, at, v, x, p, before[p])
            if place != "before" or self.norms_mixture(layer):
                f = self.norm(at + "post_ffw_norm", f)
            out.append(self.added("feed", x, v, f))
        return out

    def fed(self, layer, at, v, x, p, first=None):
        h, given = self.h, None
        if self.has_table(layer):
            given = self.matrix(at + "ffn_gate_tid2eid.weight")[self.tokens[p]]
        return self.experts(at, v, x, given, first) if self.has_experts(layer) else \
            self.feed(at + "ffn_%s", v, h["sub_norms"] and
                      at + "ffn_sub_norm", layer in h["sparse_layers"],
                      self.act_limit(at, "act_limit", "limited_layers"))

    def act_limit(self, at, key, layers):  # at: blk.3.
        return self.h[key] if int(at.split(".")[1]) in self.h[layers] else 0

    def feed(self, name, u, norm=None, is_sparse=False, act_limit=0):
        up = self.product(name % "up", u)
        if self.h["gated"]:
            gate = self.product(name % "gate", u)
            if is_sparse:
                mean = sum(gate) / len(gate)
                level = mean + self.h["sparse_cut"] * math.sqrt(
                    sum((a - mean) ** 2 for a in gate) / len(gate))
                gate = [max(a - level, 0.0) for a in gate]
            is_expert = name[-1].isdigit()  # ffn_%s.4
            most = math.inf if self.h["glu_limit_of_experts"] and \
                not is_expert else self.h["glu_limit"] or math.inf
            gate = [min(a, most) for a in gate]
            up = [min(max(a, -most), most) for a in up]
            gate, most = [self.act(g, name) for g in gate], act_limit or math.inf
            up = [min(g, most) * (min(max(a, -most), most) +
                                  self.h["glu_offset"])
                  for g, a in zip(gate, up)]
        else:
            up = [self.act(a, name) for a in up]
        return self.product(name % "down", self.norm(norm, up) if norm else up)

    def turn_and_norm(self, layer, name, heads, p, n):
        turned = [self.turn(layer, a, 0, p, n) for a in heads]
        if self.h["qk_norm_late"] and self.h["qk_norm"] != "whole":
            return self.qk_norm(layer, name, turned)
        return [self.turn(layer, a, 0, p, n)
                for a in self.qk_norm(layer, name, heads)]

    def qk_norm(self, layer, name, heads):
        kind = self.h["qk_norm"]
        if kind == "bare_all" or \
                kind == "bare" and layer not in self.h["still_layers"]:
            return [self.norm(name, x, bare=True) for x in heads]
        if kind == "head":
            return [self.norm(name, x) for x in heads]
        if kind == "heads":
            return [self.norm("%s.%d" % (name, i), x)
                    for i, x in enumerate(heads)]
        if kind == "whole":
            return cut(self.norm(name, sum(heads, [])), len(heads))
        return heads

    # Recurrences, section 11

    def convolved(self, at, m, p):  # all channels of position p
        conv = self.matrix(at + "ssm_conv1d.weight")
        first = p - self.h["conv_width"] + 1
        return [sum(a * m[first + j][i] for j, a in enumerate(row)
                    if first + j >= 0) for i, row in enumerate(conv)]

    def short_convolution(self, at, u):
        q, k, v = ([self.product(at + name, x) for x in u]
                   for name in ("attn_q", "attn_k", "attn_v"))
        m = [[a * b for a, b in zip(*both)] for both in zip(k, v)]
        return [self.product(at + "attn_output", [
            a * b for a, b in zip(query, self.convolved(at, m, p))])
            for p, query in enumerate(q)]

    def without_keys(self, at, u):
        heads = self.h["n_delta_value_heads"]
        m, out = [self.product(at + "attn_v", x) for x in u], []
        bias = self.vector(at + "ssm_conv1d.bias")
        rates = [8 * math.log1p(math.exp(a))
                 for a in self.vector(at + "ssm_a.weight")]
        s = [0.0] * len(rates)
        for p, x in enumerate(u):
            v = self.convolved(at, m, p)
            v = add(v, bias) if bias else v
            gates = []
            for name in "ssm_alpha", "ssm_beta":
                rows = cut(self.matrix(at + name + ".weight"), heads)
                z = [sum(a * b for a, b in zip(row, y))
                     for block, y in zip(rows, cut(v, heads)) for row in block]
                shift = self.vector(at + name + ".bias")
                gates.append([sigmoid(a) for a in (add(z, shift) if shift
                                                   else z)])
            left = [math.exp(-a * b) for a, b in zip(rates, gates[0])]
            s = [l * a + (math.sqrt(1 - l * l) if p else 1) * w * b
                 for l, a, w, b in zip(left, s, gates[1], v)]
            g = [self.act(a, at + "ffn_%s")
                 for a in self.product(at + "attn_gate", x)]
            out.append(self.product(at + "attn_output",
                                    [a * b for a, b in zip(s, g)]))
        return out

    def lightning(self, layer, at, u, own):
        h, keys = self.h, self.h["n_delta_key_heads"]
        heads, c, d = (h[key] for key in ("n_delta_value_heads",
                                          "delta_key_dim", "delta_value_dim"))
        s = [[[0.0] * d for _ in range(c)] for _ in range(heads)]
        out = []
        for x in u:
            q, k, v = (cut([a * sigmoid(a) for a in
                            self.product(at + name, x)], n)
                       for name, n in zip(own, (keys, keys, heads)))
            g, mixed = self.product(at + own[3], x), []
            for i in range(heads):
                t = (h["decay_first"] - layer * h["decay_step"]) * \
                    2 ** (-8 * (i + 1) / heads)
                j = i * keys // heads
                s[i] = [[math.exp(-t) * a + k[j][r] * b
                         for a, b in zip(s[i][r], v[i])] for r in range(c)]
                mixed += [sum(a * b for a, b in zip(q[j], column))
                          for column in zip(*s[i])]
            if not h["bare_states"]:
                mixed = self.norm(at + "ssm_norm", mixed, "rms")
            mixed = [a * sigmoid(b) * (1 if h["sigmoid_gates"] else b)
                     for a, b in zip(mixed, g)]
            out.append(self.product(at + own[4], mixed))
        return out

    def recur(self, layer, at, u, own):
        if self.h["recurrence"] == "lru":
            return self.without_keys(at, u)
        if self.h["recurrence"] == "lightning":
            return self.lightning(layer, at, u, own)
        h, selective = self.h, self.h["recurrence"] == "selective"
        space = selective or h["recurrence"] == "state_space"
        keys, heads = h["n_delta_key_heads"], h["n_delta_value_heads"]
        c, d = h["delta_key_dim"], h["delta_value_dim"]
        names = own[2:3] if selective else own[2::-1] if space else own[:3]
        m = [sum((self.product(at + name, x) for name in names), [])
             for x in u]
        bias = self.vector(at + "ssm_conv1d.bias")
        decay = self.vector(at + "ssm_a.weight")
        s = [[[0.0] * d for _ in range(c)] for _ in range(heads)]
        out = []
        for p, token in enumerate(u):
            x = self.convolved(at, m, p)
            x = [a * sigmoid(a) for a in (add(x, bias) if bias else x)]
            if selective:
                v, skip = cut(x, heads), self.vector(at + "ssm_d.weight")
                k, q = (cut(self.product(at + name, x), keys)
                        for name in own[1::-1])
                token_steps = self.product(at + "ssm_alpha_a", x)
                if h["step_norms"]:
                    bare = not h["step_norm_weights"]
                    token_steps = self.norm(at + "ssm_alpha_norm",
                                            token_steps, "rms", bare)
                    k, q = ([self.norm(at + name, y, "rms", bare)
                             for y in part] for name, part in
                            (("ssm_k_norm", k), ("ssm_q_norm", q)))
            elif space:
                v, k, q = (cut(part, n) for part, n in (
                    (x[:heads * d], heads), (x[heads * d:-keys * c], keys),
                    (x[-keys * c:], keys)))
                skip = self.vector(at + "ssm_d.weight")
            else:
                q, k = ([[a / math.sqrt(sum(b * b for b in y) + 1e-6)
                          for a in y] for y in cut(part, keys)]
                        for part in (x[:keys * c], x[keys * c:2 * keys * c]))
                q = [[a / math.sqrt(c) for a in y] for y in q]
                v = cut(x[2 * keys * c:], heads)
                beta = self.product(at + "ssm_beta", token)
            latents = token
            if not space:
                token_steps = self.product(at + "ssm_alpha_a", token) if \
                    h["step_rank"] else token
                if h["gate_rank"]:
                    latents = self.product(at + "attn_gate_a", token)
            gate = cut(self.product(at + own[3], latents), heads)
            alpha = self.product(at + "ssm_alpha",
                                 token_steps if selective or not space
                                 else token)
            mixed = []
            for i in range(heads):
                key, query = k[i * keys // heads], q[i * keys // heads]
                rows = alpha[i * c:i * c + c] if h["key_decays"] and \
                    not space else [alpha[i]] * c
                ts = [math.log(1 + math.exp(a)) for a in rows]
                t = ts[0]
                own_decays = decay[i * c:i * c + c] if selective else \
                    [decay[i]] * c
                kept = [math.exp(-math.exp(left) * step)
                        for left, step in zip(own_decays, ts)]
                if h["decay_floor"] and not space:
                    kept = [math.exp(-h["decay_floor"] *
                                     sigmoid(math.exp(left) * a))
                            for left, a in zip(own_decays, rows)]
                s[i] = [[left * a for a in row]
                        for left, row in zip(kept, s[i])]
                e = [t * a for a in v[i]] if space else [
                    h["beta_scale"] * sigmoid(beta[i]) *
                    (v[i][j] - sum(key[r] * s[i][r][j] for r in range(c)))
                    for j in range(d)]
                s[i] = [[a + key[r] * b for a, b in zip(s[i][r], e)]
                        for r in range(c)]
                o = [sum(query[r] * s[i][r][j] for r in range(c))
                     for j in range(d)]
                if space:
                    o = add(o, [skip[i] * a for a in v[i]])
                elif not h["bare_states"]:
                    o = self.norm(at + "ssm_norm", o, "rms")
                plain = h["sigmoid_gates"] and not space
                mixed += [a * (1 if plain else g) * sigmoid(g)
                          for a, g in zip(o, gate[i])]
            if space and not h["bare_states"]:
                mixed = sum((self.norm(at + "ssm_norm", part, "rms", bare=True)
                             for part in cut(mixed, keys)), [])
                mixed = [a * b for a, b in zip(
                    mixed, self.vector(at + "ssm_norm.weight"))]
            out.append(self.product(at + own[4], mixed))
        return out

    def clipped(self, name, x):
        clip = self.h["qkv_clip"] or math.inf
        return [min(max(a, -clip), clip) for a in self.product(name, x)]

    def add_pair(self, layer, at, x, p, n, keys, values):
        h, heads = self.h, self.kv_heads(layer)
        k = v = self.clipped(at + "attn_k", x)
        if not (h["full_keys_are_values"] and self.is_full(layer)):
            v = self.clipped(at + "attn_v", x)
        keys.append(self.turn_and_norm(layer, at + "attn_k_norm",
                                       cut(k, heads), p, n))
        values.append([self.norm("", y, bare=True) if h["value_norm"] else y
                       for y in cut(v, heads)])

    def mixture(self, layer, at, u, n):
        both = [self.attention(layer, at, u, n)] if self.attends(layer) else []
        if layer in self.h["delta_layers"]:
            both.append(self.recur(layer, at, u, self.recurrent_names(layer))
                        if self.has_state(layer) else
                        self.short_convolution(at, u))
        return [[sum(a) for a in zip(*x)] for x in zip(*both)]

    def attention(self, layer, at, u, n):
        h = self.h
        pools, seen = [], [[]] * n
        if self.chooser(layer) is None:
            self.chosen = [range(n)] * n
        if h["kv_lora_rank"]:
            queries, keys, values = self.latents(layer, at, u, n)
            if layer in h["index_layers"]:
                self.chosen = self.choose(layer, at, u, n)
        elif h["turned_values"]:
            queries, keys = self.shared(layer, at, u, n)
            values = keys
            if self.pool(layer):
                pools = self.pools(layer, at + "attn_compressor", u, n)
                seen = self.seen_pools(layer, at, u, n, len(pools))
        else:
            queries, keys, values = [], [], []
            for p, x in enumerate(u):
                q = self.clipped(at + "attn_q", x)
                queries.append(self.turn_and_norm(
                    layer, at + "attn_q_norm", cut(q, self.heads(layer)), p, n))
                if not self.borrows(layer):
                    self.add_pair(layer, at, x, p, n, keys, values)
            if self.borrows(layer):
                keys, values = self.lent[self.lender(layer)]
            self.lent[layer] = keys, values
        out = []
        for p in range(n):
            mixed = []
            for i in range(self.heads(layer)):
                group = i * len(keys[0]) // self.heads(layer)
                w = self.mix(layer, at, i, p, queries[p][i],
                             [k[group] for k in keys],
                             [v[group] for v in values],
                             [pools[j] for j in seen[p]])
                if h["kv_lora_rank"]:
                    w = self.product("%sattn_v_b.%d" % (at, i), w)
                if h["turned_values"]:
                    w = self.turn(layer, w, len(w) - self.rotary, p, n, -1)
                mixed += w
            if h["attn_gate"]:
                gate = self.product(
                    at + "attn_gate", self.query_latents(at, u[p])
                    if h["raw_latents"] else u[p])
                own = len(mixed) // len(gate)
                opens = softplus if h["attn_gate_softplus"] else sigmoid
                mixed = [a * opens(gate[i // own])
                         for i, a in enumerate(mixed)]
            if h["sub_norms"]:
                mixed = self.norm(at + "attn_sub_norm", mixed)
            if h["n_out_groups"]:
                mixed = sum((self.product("%sattn_output_a.%d" % (at, i), part)
                             for i, part in
                             enumerate(cut(mixed, h["n_out_groups"]))), [])
            out.append(self.product(at + "attn_output", mixed))
        return out

    def shared(self, layer, at, u, n):  # section 15
        h, queries, keys = self.h, [], []
        kind, first = h["qk_norm"], h["head_dim"] - self.rotary
        for p, x in enumerate(u):
            q = self.product(at + "attn_q_b", self.query_latents(at, x)) if \
                self.latent_queries else self.product(at + "attn_q", x)
            both = [cut(q, self.heads(layer)),
                    cut(self.product(at + "attn_k", x), self.kv_heads(layer))]
            for name, part, to in zip(("attn_q_norm", "attn_k_norm"), both,
                                      (queries, keys)):
                if kind == "bare_queries" and name == "attn_q_norm":
                    part = [self.norm("", y, "rms_plain") for y in part]
                elif kind != "none":
                    part = [self.norm(at + name, y) for y in part]
                to.append([self.turn(layer, y, first, p, n) for y in part])
        return queries, keys

    def pools(self, layer, name, u, n):
        size, overlaps = self.pool(layer), layer in self.h["overlap_layers"]
        c = [self.product(name + "_kv", x) for x in u]
        z = [self.product(name + "_gate", x) for x in u]
        ape, out = self.matrix(name + "_ape.weight"), []
        width = len(c[0]) // 2 if overlaps else len(c[0])
        for w in range(n // size):
            of = [(w * size + j, j, overlaps * width) for j in range(size)]
            if overlaps and w:
                of = [(i - size, j, 0) for i, j, _ in of] + of
            pool = []
            for d in range(width):
                s = softmax([z[i][d + to] + ape[j][d + to] for i, j, to in of])
                pool.append(sum(a * c[i][d + to]
                                for a, (i, _, to) in zip(s, of)))
            pool = self.norm(name + "_norm", pool)
            out.append(self.turn(layer, pool, width - self.rotary, w * size,
                                 n))
        return out

    def seen_pools(self, layer, at, u, n, n_pools):
        h, size, seen = self.h, self.pool(layer), []
        most = h["index_topk"] if self.has_index(layer) else n_pools
        index = self.pools(layer, at + "indexer_compressor", u, n) if \
            self.has_index(layer) else []
        for p, x in enumerate(u):
            these = list(range((p + 1) // size))
            if len(these) > most:
                heads = [self.turn(layer, q, len(q) - self.rotary, p, n)
                         for q in cut(self.product(
                             at + "indexer.attn_q_b",
                             self.query_latents(at, x)), h["n_index_heads"])]
                weights = self.product(at + "indexer.proj", x)
                worth = [sum(w * max(0.0, sum(a * b for a, b in zip(q, y)))
                             for w, q in zip(weights, heads)) for y in index]
                these.sort(key=lambda w: (-worth[w], w))
            seen.append(these[:most])
        return seen

    def mix(self, layer, at, i, p, query, keys, values, pools):
        h, window = self.h, self.window(layer)
        scale = self.of_kind(layer, "full_attn_scale", 0) or \
            h["attn_scale"] or 1 / math.sqrt(h["head_dim"])
        first = max(0, p - window + 1) if window else 0
        if h["attention_chunk"] and layer not in h["full_layers"]:
            first = max(first, p - p % h["attention_chunk"])
        growth = 1
        if h["score_growth_period"] and (layer in h["still_layers"] or
                                         not h["score_growth_still"]):
            growth += h["score_growth"] * math.log(
                1 + (p + h["score_growth_shift"]) // h["score_growth_period"])
        if h["head_growth"]:
            growth *= self.vector(at + "attn_growth.weight")[i] * \
                math.log(1 + p) + self.vector(at + "attn_growth.bias")[i]
        scores = []
        visible = [j for j in range(first, p + 1) if j in self.chosen[p]]
        for j in visible:
            s = sum(a * b for a, b in zip(query, keys[j])) * scale * growth
            s = cap(s, h["attn_softcap"])
            if h["positions"].startswith("alibi"):
                slope = alibi_slope(i, h["n_heads"])
                if h["positions"] == "alibi_scaled":
                    s -= scale * (coarse(slope, p) - coarse(slope, j))
                else:
                    s -= slope * (p - j)
            scores.append(s)
        for pool in pools:
            s = sum(a * b for a, b in zip(query, pool)) * scale * growth
            scores.append(cap(s, h["attn_softcap"]))
        values = [values[j] for j in visible] + pools
        if h["sinks"] and layer not in h["sinkless_layers"]:
            scores.append(self.vector(at + "attn_sinks.weight")[i])
        weights = softmax(scores)
        return [h["value_scale"] * sum(
            w * value[d] for w, value in zip(weights, values))
            for d in range(len(values[0]))]

    def gated(self, name, u):
        if not self.h["norm_gate_rank"]:
            return u
        z = [a * sigmoid(a) for a in self.product(name + "_a", u)]
        return [a * sigmoid(b) for a, b in
                zip(u, self.product(name + "_b", z))]

    def query_latents(self, at, x):
        raw = self.product(at + "attn_q_a", x)
        q = self.norm(at + "attn_q_a_norm", raw, "rms")
        return q + raw if self.h["raw_latents"] else q

    def choose(self, layer, at, u, n):
        h = self.h
        t, most, chosen = self.latent_turning(layer), h["index_topk"], []

        def turn(x, p):
            return self.turn(layer, x[:t], 0, p, n) + x[t:]
        y = [turn(self.norm(at + "indexer.k_norm",
                            self.product(at + "indexer.attn_k", x), "layer"),
                  p) for p, x in enumerate(u)]
        for p, x in enumerate(u):
            these = list(range(p + 1))
            q = [turn(a, p) for a in cut(
                self.product(at + "indexer.attn_q_b",
                             self.query_latents(at, x)[:h["q_lora_rank"]]),
                h["n_index_heads"])]
            weights = self.product(at + "indexer.proj", x)
            worth = [sum(w * max(0.0, sum(a * b for a, b in zip(i, y[j])))
                         for w, i in zip(weights, q)) for j in these]
            these.sort(key=lambda j: (-worth[j], j))
            chosen.append(set(these[:most]))
        return chosen

    def latents(self, layer, at, u, n):  # section 8
        h, k = self.h, self.rank(layer)
        still = self.head_dim(layer) - self.latent_turning(layer)
        queries, keys, values = [], [], []
        for p, x in enumerate(u):
            m = self.product(at + "attn_kv_a_mqa", x)
            c = self.norm(at + "attn_kv_a_norm", m[:k], "rms")
            r = m[k:]
            if h["qk_norm"] == "turning" and r:
                r = self.norm(at + "attn_k_norm", r)
            keys.append([c + self.turn(layer, r, 0, p, n)])
            values.append([c])
            if h["q_lora_rank"]:
                q = self.product(at + "attn_q_b", self.query_latents(at, x))
            else:
                q = self.product(at + "attn_q", x)
            queries.append(
                [self.product("%sattn_k_b.%d" % (at, i), a[:still]) +
                 self.turn(layer, a[still:], 0, p, n)
                 for i, a in enumerate(cut(q, self.heads(layer)))])
        return queries, keys, values

    def by_near(self, z, chosen):
        left, weights = set(range(len(z))), {}
        for c in sorted(chosen, key=lambda e: (-z[e], e)):
            near = [e for e in left if e == c or z[c] - z[e] <=
                    self.h["router_reach"] * max(abs(z[e]), z[c])]
            weights[c] = 1 / sum(math.exp(z[e] - z[c]) for e in near)
            left.remove(c)
        return [weights[c] for c in chosen]

    def experts(self, at, u, x, given, first):  # section 9
        h, n, shared = self.h, self.h["n_experts"], u
        if h["expert_norms"]:
            u = [a / math.sqrt(h["dim"])
                 for a in self.norm(at + "ffn_gate_inp_norm", x)]
        z = [cap(a, h["router_softcap"])
             for a in self.product(at + "ffn_gate_inp",
                                   first if h["router_early"] else u)]
        if h["expert_norms"]:
            u = self.norm(at + "pre_ffw_norm_2", x)
        scores = {"softmax": softmax, "softmax_chosen": list, "near": list,
                  "sigmoid_chosen": list,
                  "root_softplus": lambda z: [math.sqrt(softplus(a))
                                              for a in z],
                  "sigmoid": lambda z: list(map(sigmoid, z))}[h["router"]](z)
        worth = list(scores)
        if h["router_corrects"] and not given:
            worth = add(worth, self.vector(at + "exp_probs_b.bias"))
        groups, used = h["n_expert_groups"], h["n_expert_groups_used"]
        allowed = range(n)
        if groups > 1 and groups != used:
            size = n // groups
            most = 2 if h["expert_group_worth"] == "best_two" else 1
            of = [sum(sorted(worth[g * size:(g + 1) * size])[-most:])
                  for g in range(groups)]
            chosen = sorted(range(groups), key=lambda g: (-of[g], g))[:used]
            allowed = [e for e in range(n) if e // size in chosen]
        best = sorted(allowed, key=lambda e: (-worth[e], e))
        best = sorted(map(int, given) if given else
                      best[:h["n_experts_used"]])
        weights = [scores[e] for e in best]
        if h["router"] == "softmax_chosen":
            weights = softmax(weights)
        if h["router"] == "sigmoid_chosen":
            weights = [sigmoid(w) for w in weights]
        if h["router"] == "near":
            weights = self.by_near(z, best)
        total = sum(weights)
        if h["router_renormalises"] and total > 0:
            weights = [w / total for w in weights]
        f = [0.0] * h["dim"]
        for e, w in zip(best, weights):
            w *= h["router_scale"]
            if h["expert_norms"]:
                w *= self.vector(at + "ffn_down_exps_scale.weight")[e]
            scales = h["router_scales_input"]
            y = self.feed("%sffn_%%s.%d" % (at, e),
                          [w * a for a in u] if scales else u,
                          act_limit=self.act_limit(at, "expert_act_limit",
                                                   "limited_expert_layers"))
            f = add(f, y if scales else [w * a for a in y])
        if h["expert_norms"]:
            f = self.norm(at + "post_ffw_norm_2", f)
        if h["shared_dim"]:
            switch = self.vector(at + "ffn_gate_inp_shexp.weight")
            y = 1.0 if switch is None else \
                sigmoid(sum(a * b for a, b in zip(switch, shared)))
            out = self.feed(at + "ffn_%s_shexp", shared, act_limit=self.act_limit(
                at, "act_limit", "limited_layers"))
            if h["expert_norms"]:
                out = self.norm(at + "post_ffw_norm_1", out)
            f = add(f, [h["shared_scale"] * y * a for a in out])
        return f

    # Positions, section 6

    def turn(self, layer, x, first, p, n, way=1):
        t, h = self.turning(layer), self.h
        if t == 0 or layer in h["still_layers"]:
            return x
        local = h["rope_local_theta"] > 0 and self.window(layer) > 0 and \
            not self.pool(layer)
        g = 1 if local else h["rope_attention_factor"]
        x = list(x)
        for i in range(t // 2):
            f = self.frequency(i, p, n, local, t)
            z = way * p * min(f, 1e6)
            a, b = x[first + i], x[first + i + t // 2]
            x[first + i] = g * (a * math.cos(z) - b * math.sin(z))
            x[first + i + t // 2] = g * (b * math.cos(z) + a * math.sin(z))
        return x

    def frequency(self, i, p, n, local, t):
        h, kind = self.h, self.h["rope_scaling"]
        base, s = h["rope_theta"], h["rope_factor"]
        length = h["rope_context"] or h["context"]
        if local:
            return h["rope_local_theta"] ** (-2 * i / t)
        if kind == "ntk" and t > 2:
            base *= s ** (t / (t - 2))
        if kind == "dynamic" and t > 2:
            m = max(length, p + 1)
            base *= (s * m / length - (s - 1)) ** (t / (t - 2))
        f = base ** (-2 * i / t)
        if kind == "linear":
            return f / s
        if kind == "llama3":
            low, high = h["rope_low_factor"], h["rope_high_factor"]
            b = length * f / (2 * math.pi) - low
            b = min(max(b / (high - low), 0), 1) if low < high else b >= 0
            return (1 - b) * f / s + b * f
        if kind == "yarn" and base > 1:
            def c(r):
                wave = length / (2 * math.pi * max(r, 1e-9))
                return t * math.log(wave) / (2 * math.log(base))
            a, e = c(h["rope_beta_fast"]), c(h["rope_beta_slow"])
            if not h["rope_ramp_exact"]:
                a, e = math.floor(a), math.ceil(e)
            a, e = max(a, 0), min(e, t - 1)
            b = min(max((i - a) / (0.001 if e == a else e - a), 0), 1)
            return b * f / s + (1 - b) * f
        if kind == "longrope":
            return f / h["rope_long" if n > length else "rope_short"][i]
        return f / h["rope_short"][i] if kind == "factors" else f


def as_large(y, x):
    """y, made as large as x."""
    size = max(sum(a * a for a in y) / len(y), 1e-5)
    factor = math.sqrt(sum(a * a for a in x) / len(x) / size)
    return [a * factor for a in y]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x):
    return math.log1p(math.exp(x))


def softmax(z):
    most = max(z)
    z = [math.exp(a - most) for a in z]
    return [a / sum(z) for a in z]


def cap(x, most):
    return most * math.tanh(x / most) if most > 0 else x


def weighted(weights, vectors):
    return [sum(w * a for w, a in zip(weights, each))
            for each in zip(*vectors)]


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def cut(x, n):
    width = len(x) // n
    return [x[i * width:(i + 1) * width] for i in range(n)]


def to_bf16(value):
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(fraction, 8)), exponent - 8)


def coarse(slope, position):
    return to_bf16(to_bf16(slope) * to_bf16(position))


def alibi_slope(i, n_heads):
    n = 1 << (n_heads.bit_length() - 1)
    return 2 ** (-8 * (i + 1) / n) if i < n else \
        2 ** (-4 * (2 * (i - n) + 1) / n)
