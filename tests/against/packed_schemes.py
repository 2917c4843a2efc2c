"""Small random Llamas, packed by the scheme's own library, against what the
library makes of them.

usage: packed_schemes.py [--keep FOLDER] LMQUANT [SCHEME...]
       packed_schemes.py --fixtures FOLDER

Of each scheme a checkpoint is written with the tensors that the library made,
and one with the matrices that the library decodes in float32; `lmquant diff`
must find no element that differs. The matrices that the library decodes in its
own type must be those, rounded to it.

--fixtures writes one small matrix of some schemes, as tests/data/packed has
them, and prints the CRC-32 of what the library decodes, as
tests/formats/test_packed_fixtures.c has it.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import zlib

import torch
from safetensors.torch import save_file

SIZES = {  # hidden, intermediate, heads, key heads
    "even": (128, 384, 4, 2),
    "odd": (96, 200, 6, 2),
}
LAYERS, VOCAB = 2, 61


def llama(size):
    """Names and weights of a random Llama, its config.json."""
    hidden, inter, heads, kv = SIZES[size]
    torch.manual_seed(1)
    dim = hidden // heads
    shapes = {"self_attn.q_proj": (hidden, hidden),
              "self_attn.k_proj": (kv * dim, hidden),
              "self_attn.v_proj": (kv * dim, hidden),
              "self_attn.o_proj": (hidden, hidden),
              "mlp.gate_proj": (inter, hidden),
              "mlp.up_proj": (inter, hidden),
              "mlp.down_proj": (hidden, inter)}
    linear = {f"model.layers.{i}.{name}": torch.randn(shape) * 0.05
              for i in range(LAYERS) for name, shape in shapes.items()}
    other = {"model.embed_tokens.weight": torch.randn(VOCAB, hidden),
             "lm_head.weight": torch.randn(VOCAB, hidden) * 0.1,
             "model.norm.weight": torch.rand(hidden) + 0.5}
    for i in range(LAYERS):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            other[f"model.layers.{i}.{norm}.weight"] = torch.rand(hidden) + 0.5
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
              "hidden_size": hidden, "intermediate_size": inter,
              "num_hidden_layers": LAYERS, "num_attention_heads": heads,
              "num_key_value_heads": kv, "vocab_size": VOCAB,
              "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": False, "torch_dtype": "float32"}
    return linear, other, config


def rtn(weight, bits, group, sym):
    """Scales, zero points (rows, groups) by rounding to nearest."""
    rows, cols = weight.shape
    n = -(-cols // group)
    padded = torch.nn.functional.pad(weight, (0, n * group - cols))
    parts = padded.reshape(rows, n, group)
    top = 2 ** bits - 1
    if sym:
        scale = parts.abs().amax(2) * 2 / top
        return scale.clamp(min=1e-5), torch.full((rows, n), 2 ** (bits - 1))
    low, high = parts.amin(2).clamp(max=0), parts.amax(2).clamp(min=0)
    scale = ((high - low) / top).clamp(min=1e-5)
    return scale, (-low / scale).round()


# Each maker takes a weight (out, in) and returns the tensors, what the library
# decodes in float32, and what it decodes in its own type.


def gptq(bits, group, version, act=False, sym=False):
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.utils import model as utils

    def make(weight):
        rows, cols = weight.shape
        size = cols if group < 0 else group
        scale, zero = rtn(weight, bits, size, sym)
        scale = scale.half().float()
        members = torch.arange(cols) // size
        if act:
            members = members[torch.randperm(cols)]
        linear = torch.nn.Linear(cols, rows, bias=False)
        linear.weight.data = weight
        module = TorchLinear(bits=bits, group_size=group, sym=sym,
                             desc_act=act, in_features=cols, out_features=rows,
                             bias=False)
        module.pack_original(linear, scale, zero.float(),
                             members.to(torch.int32))
        module.post_init()
        own = module.dequantize_weight().T
        module.scales = module.scales.float()
        wide = module.dequantize_weight().T
        module.scales = module.scales.half()
        if version == 1:
            utils.convert_gptq_v2_to_v1_format_module(
                module, type("C", (), {"bits": bits,
                                       "pack_dtype": torch.int32}))
        return ({k: getattr(module, k) for k in
                 ("qweight", "qzeros", "scales", "g_idx")}, wide, own)

    return make, {"quant_method": "gptq", "bits": bits, "group_size": group,
                  "desc_act": act, "sym": sym,
                  "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}


def awq(group):
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm

    def make(weight):
        rows, cols = weight.shape
        scale, zero = rtn(weight, 4, group, False)
        linear = torch.nn.Linear(cols, rows, bias=False)
        linear.weight.data = weight
        module = WQLinear_GEMM.from_linear(
            linear, 4, group, scales=scale.T.contiguous(),
            zeros=zero.T.contiguous())
        decode = [dequantize_gemm(module.qweight, module.qzeros, s, 4, group).T
                  for s in (module.scales.float(), module.scales)]
        return ({k: getattr(module, k) for k in
                 ("qweight", "qzeros", "scales")}, *decode)

    return make, {"quant_method": "awq", "bits": 4, "group_size": group,
                  "version": "gemm", "zero_point": True}


def autoround(bits, group, packing):
    from auto_round_extension.torch.qlinear_torch_zp import \
        QuantLinear as Less
    from auto_round_extension.torch.qlinear_torch import QuantLinear as Same

    def make(weight):
        rows, cols = weight.shape
        scale, zero = rtn(weight, bits, group, False)
        zero = zero.clamp(1, 2 ** bits - 1)
        linear = torch.nn.Linear(cols, rows, bias=False)
        linear.weight.data = weight
        kind = Less if packing == "auto_round:auto_gptq" else Same
        module = kind(bits, group, cols, rows, False)
        module.device = "cpu"  # which one of the two forgets
        module.pack(linear, scale, zero, None, "cpu")
        own = module.half()(torch.eye(cols).half()).T
        wide = module.float()
        module.scales = module.scales.float()
        wide = module(torch.eye(cols)).T
        return ({"qweight": module.qweight, "qzeros": module.qzeros,
                 "scales": module.scales.half()}, wide, own)

    return make, {"quant_method": "auto-round", "bits": bits,
                  "group_size": group, "packing_format": packing}


def compressed(form, **weights):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.compressors.nvfp4.helpers import \
        unpack_fp4_from_uint8
    from compressed_tensors.quantization import (QuantizationArgs,
                                                 QuantizationScheme)
    from compressed_tensors.quantization.utils import (calculate_qparams,
                                                       generate_gparam)
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    dtype = weights.pop("dtype", torch.bfloat16)
    args = QuantizationArgs(**weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    library = BaseCompressor.get_value_from_registry(form)

    def parameters(weight):
        rows, cols = weight.shape
        strategy = getattr(args.strategy, "value", args.strategy)
        if strategy == "tensor":
            low, high = weight.min().reshape(1), weight.max().reshape(1)
        elif strategy == "channel":
            low, high = weight.amin(1, True), weight.amax(1, True)
        elif strategy == "block":
            r, c = args.block_structure
            pad = (0, -cols % c, 0, -rows % r)
            parts = torch.nn.functional.pad(weight, pad)
            parts = parts.reshape(-(-rows // r), r, -(-cols // c), c)
            low, high = parts.amin((1, 3)), parts.amax((1, 3))
        else:
            parts = weight.reshape(rows, -1, args.group_size)
            low, high = parts.amin(2), parts.amax(2)
        if strategy != "tensor_group":
            return (*calculate_qparams(low, high, args), None)
        gain = generate_gparam(weight.min(), weight.max())
        return (*calculate_qparams(low, high, args, global_scale=gain), gain)

    def make(weight):
        weight = weight.to(dtype)
        scale, zero, gain = parameters(weight)
        state = {"weight": weight, "weight_scale": scale,
                 "weight_zero_point": zero}
        if gain is not None:
            state["weight_global_scale"] = gain.reshape(1)
        packed = library.compress(state, scheme)
        own = library.decompress(packed, scheme)["weight"]
        wide = own.float()
        if packed["weight_scale"].is_floating_point() and gain is None:
            state = dict(packed)
            state["weight_scale"] = state["weight_scale"].float()
            wide = library.decompress(state, scheme)["weight"].float()
        if gain is not None:
            wide = dequantize(
                unpack_fp4_from_uint8(packed["weight_packed"], *weight.shape,
                                      dtype=torch.float32),
                scale=packed["weight_scale"].float(), args=args,
                global_scale=packed["weight_global_scale"],
                dtype=torch.float32)
        return packed, wide, own

    group = {"targets": ["Linear"],
             "weights": json.loads(args.model_dump_json())}
    return make, {"quant_method": "compressed-tensors", "format": form,
                  "config_groups": {"group_0": group}, "ignore": ["lm_head"],
                  "quantization_status": "compressed"}


def hqq(bits, group, axis, dtype=torch.float16):
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

    def make(weight):
        rows, cols = weight.shape
        linear = torch.nn.Linear(cols, rows, bias=False)
        linear.weight.data = weight
        module = HQQLinear(linear, BaseQuantizeConfig(
            nbits=bits, group_size=group, axis=axis), compute_dtype=dtype,
            device="cpu", del_orig=False)
        state = module.state_dict()
        state = {k: v.contiguous() for k, v in state.items() if v is not None}
        own = module.dequantize().detach()
        # Differences are rounded, products are not yet.
        meta = module.meta
        codes = module.unpack(dtype=dtype)
        if bits == 3:
            codes = codes[:meta["scale"].numel() if axis else group]
        wide = ((codes - meta["zero"]).float() *
                meta["scale"].float()).reshape(meta["shape"])
        return state, wide.detach(), own

    return make, {"quant_method": "hqq", "quant_config": {}}


def fp8(kind, dtype=torch.float8_e4m3fn, blocks=(128, 128)):
    def make(weight):
        rows, cols = weight.shape
        r, c = {"block": blocks, "row": (1, cols),
                "tensor": (rows, cols)}[kind]
        pad = torch.nn.functional.pad(weight, (0, -cols % c, 0, -rows % r))
        parts = pad.reshape(-(-rows // r), r, -(-cols // c), c)
        top = torch.finfo(dtype).max
        scale = parts.abs().amax((1, 3)) / top
        wide = scale.repeat_interleave(r, 0).repeat_interleave(c, 1)
        wide = wide[:rows, :cols]
        codes = (weight / wide).to(dtype)
        value = codes.float() * wide
        name = "weight_scale" if kind == "row" else "weight_scale_inv"
        scale = scale.reshape(()) if kind == "tensor" else scale
        return {"weight": codes, name: scale}, value, value.bfloat16()

    config = {"quant_method": "fbgemm_fp8" if kind == "row" else "fp8"}
    if kind == "block":
        config["weight_block_size"] = list(blocks)
    return make, config


INT4 = {"num_bits": 4, "type": "int"}
INT8 = {"num_bits": 8, "type": "int"}
FP8 = {"num_bits": 8, "type": "float"}

SCHEMES = {
    "gptq 2 bits, v1": ("even", lambda: gptq(2, 64, 1)),
    "gptq 3 bits, v1": ("even", lambda: gptq(3, 128, 1)),
    "gptq 3 bits, v2": ("even", lambda: gptq(3, 32, 2)),
    "gptq 4 bits, v1": ("even", lambda: gptq(4, 32, 1)),
    "gptq 4 bits, v1, symmetric": ("even", lambda: gptq(4, 128, 1, sym=True)),
    "gptq 4 bits, v2, act-order": ("even", lambda: gptq(4, 32, 2, act=True)),
    "gptq 4 bits, v1, one group, odd": ("odd", lambda: gptq(4, -1, 1)),
    "gptq 4 bits, v1, odd": ("odd", lambda: gptq(4, 32, 1)),
    "gptq 8 bits, v1": ("odd", lambda: gptq(8, 64, 1)),
    "gptq 8 bits, v2, symmetric": ("even", lambda: gptq(8, 64, 2, sym=True)),
    "awq": ("even", lambda: awq(32)),
    "awq, groups of 8": ("even", lambda: awq(8)),
    "auto-round, as GPTQ v1": (
        "even", lambda: autoround(4, 32, "auto_round:auto_gptq")),
    "auto-round, as GPTQ v2": ("even", lambda: autoround(4, 32, "auto_round")),
    "pack-quantized 4, channel, odd": ("odd", lambda: compressed(
        "pack-quantized", **INT4, strategy="channel")),
    "pack-quantized 4, groups, asymmetric": ("even", lambda: compressed(
        "pack-quantized", **INT4, strategy="group", group_size=32,
        symmetric=False)),
    "pack-quantized 8, groups, f16": ("even", lambda: compressed(
        "pack-quantized", **INT8, strategy="group", group_size=64,
        dtype=torch.float16)),
    "pack-quantized 8, groups of 8, asymmetric, odd": (
        "odd", lambda: compressed(
            "pack-quantized", **INT8, strategy="group", group_size=8,
            symmetric=False)),
    "pack-quantized 3, channel, odd": ("odd", lambda: compressed(
        "pack-quantized", num_bits=3, type="int", strategy="channel")),
    "int-quantized, channel": ("odd", lambda: compressed(
        "int-quantized", **INT8, strategy="channel")),
    "int-quantized, tensor, asymmetric": ("odd", lambda: compressed(
        "int-quantized", **INT8, strategy="tensor", symmetric=False)),
    "naive-quantized, blocks 24 x 40": ("odd", lambda: compressed(
        "naive-quantized", **INT8, strategy="block",
        block_structure=[24, 40])),
    "float-quantized, tensor": ("odd", lambda: compressed(
        "float-quantized", **FP8, strategy="tensor")),
    "float-quantized, channel": ("odd", lambda: compressed(
        "float-quantized", **FP8, strategy="channel")),
    "float-quantized, groups": ("even", lambda: compressed(
        "float-quantized", **FP8, strategy="group", group_size=32)),
    "float-quantized, blocks 128 x 128": ("even", lambda: compressed(
        "float-quantized", **FP8, strategy="block",
        block_structure=[128, 128])),
    "mxfp4-pack-quantized": ("even", lambda: compressed(
        "mxfp4-pack-quantized", num_bits=4, type="float", strategy="group",
        group_size=32, scale_dtype="torch.uint8")),
    "mxfp8-quantized": ("even", lambda: compressed(
        "mxfp8-quantized", **FP8, strategy="group", group_size=32,
        scale_dtype="torch.uint8")),
    "nvfp4-pack-quantized": ("even", lambda: compressed(
        "nvfp4-pack-quantized", num_bits=4, type="float",
        strategy="tensor_group", group_size=16,
        scale_dtype="torch.float8_e4m3fn")),
    **{f"hqq {bits} bits, axis {axis}": (
        "odd", lambda bits=bits, axis=axis: hqq(bits, 24, axis))
       for bits in (8, 4, 3, 2, 1) for axis in (0, 1)},
    "hqq 4 bits, bfloat16": ("odd", lambda: hqq(4, 24, 1, torch.bfloat16)),
    "fp8, blocks": ("odd", lambda: fp8("block", blocks=(40, 64))),
    "fp8, blocks 128 x 128": ("even", lambda: fp8("block")),
    "fp8 e5m2, tensor": ("odd", lambda: fp8("tensor", torch.float8_e5m2)),
    "fbgemm_fp8": ("odd", lambda: fp8("row")),
}


def save(folder, tensors, config):
    os.makedirs(folder, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()},
              os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 4):
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def compare(lmquant, name, folder):
    size, scheme = SCHEMES[name]
    make, quantization = scheme()
    linear, other, config = llama(size)
    packed, wide, rounded = dict(other), dict(other), 0
    for module, weight in linear.items():
        parts, exact, own = make(weight)
        packed.update({f"{module}.{k}": v for k, v in parts.items()})
        wide[f"{module}.weight"] = exact
        rounded += int((exact.to(own.dtype) != own).sum())
    paths = [os.path.join(folder, kind) for kind in ("packed", "wide")]
    save(paths[0], packed, {**config, "quantization_config": quantization})
    save(paths[1], wide, config)
    diff = json.loads(run(lmquant, "diff", "--json", *paths))
    missing = diff["missing"] + len(diff["other_shapes"])
    return diff["compared"], diff["max_error"], missing, rounded


FIXTURES = {
    "gptq-3": ("gptq 3 bits, v1", 64, 128),
    "gptq-4-act": ("gptq 4 bits, v2, act-order", 40, 64),
    "gptq-8": ("gptq 8 bits, v2, symmetric", 24, 128),
    "awq": ("awq", 32, 64),
    "auto-round": ("auto-round, as GPTQ v1", 32, 64),
    "pack-quantized": ("pack-quantized 4, groups, asymmetric", 20, 64),
    "int-quantized": ("int-quantized, channel", 20, 60),
    "float-quantized": ("float-quantized, groups", 20, 64),
    "mxfp4-packed": ("mxfp4-pack-quantized", 20, 64),
    "nvfp4": ("nvfp4-pack-quantized", 20, 64),
    "hqq-3": ("hqq 3 bits, axis 0", 24, 40),
    "hqq-4": ("hqq 4 bits, axis 1", 24, 40),
}


def write_fixtures(folder):
    for name, (scheme, rows, cols) in FIXTURES.items():
        torch.manual_seed(7)
        make, quantization = SCHEMES[scheme][1]()
        parts, wide, _ = make(torch.randn(rows, cols) * 0.05)
        save(os.path.join(folder, name),
             {f"a.{k}": v for k, v in parts.items()},
             {"quantization_config": quantization})
        crc = zlib.crc32(wide.contiguous().numpy().astype("<f4").tobytes())
        print(f'    {{"{name}", {rows}, {cols}, 0x{crc:08x}}},')


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--keep")
    parser.add_argument("--fixtures")
    parser.add_argument("lmquant", nargs="?")
    parser.add_argument("schemes", nargs="*")
    options = parser.parse_args()
    if options.fixtures:
        return write_fixtures(options.fixtures)
    failed = 0
    lmquant = os.path.abspath(options.lmquant)  # libraries change the folder
    print("| scheme | tensors | largest difference | rounded otherwise |")
    print("| --- | --- | --- | --- |")
    for name in SCHEMES:
        if options.schemes and not any(s in name for s in options.schemes):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if options.keep:
                folder = os.path.join(options.keep, name.replace(" ", "-"))
            try:
                n, error, missing, rounded = compare(lmquant, name, folder)
            except ImportError as reason:
                print(f"| {name} | skipped: {reason} | | |")
                continue
            except Exception as reason:
                failed += 1
                print(f"| {name} | FAILED: {type(reason).__name__} {reason} | | |")
                continue
        failed += error != 0 or missing != 0 or rounded != 0
        print(f"| {name} | {n} | {error:g} | {rounded} |", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
