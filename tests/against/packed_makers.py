"""Matrices as libraries pack them: each scheme by the scheme's own library."""
import copy
import json

import torch


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
# decodes in float32, what it decodes in its own type, and the library's module
# that multiplies by it; None where transformers makes that of a checkpoint.


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
        stored = copy.deepcopy(module)
        if version == 1:
            utils.convert_gptq_v2_to_v1_format_module(
                stored, type("C", (), {"bits": bits,
                                       "pack_dtype": torch.int32}))
        return ({k: getattr(stored, k) for k in
                 ("qweight", "qzeros", "scales", "g_idx")}, wide, own, module)

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
                 ("qweight", "qzeros", "scales")}, *decode, module)

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
        floats = copy.deepcopy(module).float()
        floats.scales = floats.scales.float()
        wide = floats(torch.eye(cols)).T
        return ({"qweight": module.qweight, "qzeros": module.qzeros,
                 "scales": module.scales.half()}, wide, own, module)

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
        return packed, wide, own, None

    group = {"targets": ["Linear"], "format": form,
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
        return state, wide.detach(), own, module

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
        return {"weight": codes, name: scale}, value, value, None

    config = {"quant_method": "fbgemm_fp8" if kind == "row" else "fp8"}
    if kind == "block":
        config["weight_block_size"] = list(blocks)
    return make, config


def modelopt(algo):
    """Weights of ModelOpt with the scales that it exports beside them."""
    from modelopt.torch.quantization import qtensor

    def make(weight):
        weight = weight.bfloat16()
        rows, cols = weight.shape
        if algo == "NVFP4":
            q, scale, double = qtensor.NVFP4QTensor.quantize(weight, 16)
            how = {"scale": scale, "double_scale": double,
                   "block_sizes": {-1: 16}}
            parts = {"weight_scale": scale, "weight_scale_2": double}
        elif algo == "MXFP4":
            q, scale = qtensor.MXFP4QTensor.quantize(weight, 32)
            how = {"scale": scale, "block_sizes": {-1: 32}}
            parts = {"weight_scale": scale.reshape(rows, cols // 32)}
        elif algo == "MXFP8":
            q, scale = qtensor.MXFP8QTensor.quantize(weight)
            how = {"scale": scale, "block_sizes": {-1: 32}}
            parts = {"weight_scale": scale}
        else:
            q, scale = qtensor.FP8QTensor.quantize(
                weight, None, axis=0 if algo == "FP8_PER_CHANNEL" else None)
            how = {"scale": scale, "block_sizes": None}
            parts = {"weight_scale": scale.float().reshape(
                (rows,) if algo == "FP8_PER_CHANNEL" else ())}
        parts["weight"] = q._quantized_data
        parts["input_scale"] = torch.tensor(0.25)
        wide = q.dequantize(torch.float32, **how).float()
        if algo == "NVFP4":  # its -0 has lost its sign
            codes = torch.stack((parts["weight"] & 15, parts["weight"] >> 4),
                                -1).reshape(weight.shape)
            wide = torch.where(codes == 8, -wide, wide)
        return parts, wide, q.dequantize(torch.bfloat16, **how), None

    return make, {"quant_method": "modelopt", "quant_algo": algo}


def torchao(kind, dtype=torch.bfloat16, **options):
    """A weight as torchao takes its tensors apart to save them."""
    import torchao.quantization as library
    from torchao.core.config import config_to_dict
    from torchao.prototype.safetensors import safetensors_support

    config = getattr(library, kind)(version=2, **options)

    def make(weight):
        module = torch.nn.Linear(*reversed(weight.shape), False, dtype=dtype)
        module.weight = torch.nn.Parameter(weight.to(dtype))
        library.quantize_(module, config)
        own = module.weight.data
        parts, _ = safetensors_support.flatten_tensor_state_dict({"a.w": own})
        parts = {k.removeprefix("a._w_"): v for k, v in parts.items()}
        scale = parts["scale"].float()
        zero = parts.get("zero_point", torch.zeros(1)).float()
        group = -(-weight.shape[1] // scale.shape[-1])
        if scale.numel() > 1:
            scale = scale.repeat_interleave(group, 1)[:, :weight.shape[1]]
        if zero.numel() > 1:
            zero = zero.repeat_interleave(group, 1)[:, :weight.shape[1]]
        value = (parts["qdata"].float() - zero) * scale
        return ({f"_weight_{k}": v for k, v in parts.items()}, value,
                own.dequantize(), module)

    return make, {"quant_method": "torchao",
                  "quant_type": {"default": config_to_dict(config)}}


def per_group(size):
    from torchao.quantization import PerGroup
    return PerGroup(size)


def asymmetric(kind, key, **options):
    from torchao.quantization import MappingType
    return torchao(kind, **{key: MappingType.ASYMMETRIC}, **options)


def bitnet(linear_class, mode, dtype=torch.bfloat16):
    """As transformers packs ternary weights, or as it makes them of others."""
    from transformers.integrations.bitnet import WeightQuant, pack_weights

    def make(weight):
        weight = weight.to(dtype)
        own = WeightQuant.apply(weight)
        if mode == "online":
            return {"weight": weight}, own.float(), own, None
        scale = weight.float().abs().mean().to(dtype).reshape(1)
        if linear_class == "bitlinear":
            scale = 1 / scale
        ones = own.sign().float()
        wide = ones / scale.float() if linear_class == "bitlinear" \
            else ones * scale.float()
        return ({"weight": pack_weights(ones.clone()), "weight_scale": scale},
                wide, wide.to(dtype), None)

    return make, {"quant_method": "bitnet", "linear_class": linear_class,
                  "quantization_mode": mode}


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
    "bitnet, bitlinear": ("odd", lambda: bitnet("bitlinear", "offline")),
    "bitnet, autobitlinear": ("odd", lambda: bitnet(
        "autobitlinear", "offline")),
    "bitnet, online": ("odd", lambda: bitnet("autobitlinear", "online")),
    "bitnet, online, f16": ("even", lambda: bitnet(
        "autobitlinear", "online", torch.float16)),
    "fp8, blocks": ("odd", lambda: fp8("block", blocks=(40, 64))),
    "fp8, blocks 128 x 128": ("even", lambda: fp8("block")),
    "fp8 e5m2, tensor": ("odd", lambda: fp8("tensor", torch.float8_e5m2)),
    "fbgemm_fp8": ("odd", lambda: fp8("row")),
    **{f"modelopt {algo}": ("even", lambda algo=algo: modelopt(algo))
       for algo in ("NVFP4", "MXFP4", "MXFP8", "FP8", "FP8_PER_CHANNEL")},
    "torchao Int8WeightOnly, rows": (
        "odd", lambda: torchao("Int8WeightOnlyConfig")),
    "torchao Int8WeightOnly, groups": (
        "even", lambda: torchao("Int8WeightOnlyConfig",
                                granularity=per_group(32))),
    "torchao IntxWeightOnly, 4 bits, groups": (
        "odd", lambda: torchao("IntxWeightOnlyConfig", torch.float16,
                               weight_dtype=torch.int4,
                               granularity=per_group(8))),
    "torchao IntxWeightOnly, 3 bits, asymmetric": (
        "even", lambda: asymmetric(
            "IntxWeightOnlyConfig", "mapping_type",
            weight_dtype=torch.int3, granularity=per_group(32))),
    "torchao Int8DynamicActivationIntxWeight, 4 bits, asymmetric": (
        "even", lambda: asymmetric(
            "Int8DynamicActivationIntxWeightConfig", "weight_mapping_type",
            weight_dtype=torch.int4, weight_granularity=per_group(64))),
    "torchao Float8WeightOnly": (
        "odd", lambda: torchao("Float8WeightOnlyConfig")),
}
