/*
 * make_packed_files.c - folders of FP8, and of weights that others pack.
 */
#include "config.h"

#include <stdio.h>

#include "tests/make/make_files.h"

#define FP8(quantization)                                                     \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"fp8\"" quantization "}}"

#define GPTQ(bits) GPTQ_GROUP(bits, "8")
#define GPTQ_GROUP(bits, group)                                               \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"gptq\",\"bits\":" bits ",\"group_size\":" group "}}"
#define GPTQ_HEADER                                                           \
    "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(                       \
        "m.scales", "F16", "[1,8]", "[32,48]") "," E(                         \
        "m.qzeros", "I32", "[1,1]", "[48,52]")

#define AWQ(version)                                                          \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"awq\",\"version\":\"" version "\"}}"
#define AWQ_HEADER                                                            \
    "{" E("m.qweight", "I32", "[4,1]", "[0,16]") "," E(                       \
        "m.scales", "F16", "[1,8]", "[16,32]") "," E(                         \
        "m.qzeros", "I32", "[1,1]", "[32,36]") "," E("m.bias", "F32", "[3]",  \
                                                     "[36,48]")

#define COMPRESSED(format)                                                    \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\"}}"
#define CONFIG(quantization)                                                  \
    "{\"architectures\":[\"X\"],\"quantization_config\":" quantization "}"
#define COMPRESSED_WITH(more)                                                 \
    CONFIG("{\"quant_method\":\"compressed-tensors\",\"format\":"             \
           "\"pack-quantized\"," more "}")
#define NVFP4 CONFIG("{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}")
/* 56 x 56, which "88" says too. */
#define WORDS                                                                 \
    "{" E("m.weight_shape", "U8", "[2]", "[0,2]") "," E(                      \
        "m.weight_packed", "I32", "[56,7]", "[2,1570]")

#define TORCHAO(mapping)                                                      \
    CONFIG("{\"quant_method\":\"torchao\",\"quant_type\":{\"default\":{"       \
           "\"_type\":\"IntxWeightOnlyConfig\",\"_data\":{"                   \
           "\"mapping_type\":{\"_data\":\"" mapping "\"}}}}}")
#define TORCHAO_HEADER                                                        \
    "{" E("m._weight_qdata", "I8", "[1,64]", "[0,64]") "," E(                 \
        "m._weight_scale", "BF16", "[1,2]", "[64,68]") "," E(                 \
        "m._weight_zero_point", "I8", "[1,2]", "[68,70]") "," E(              \
        "b", "F32", "[3]", "[70,82]")

#define MLX(group, bits, mode)                                                \
    "{\"quantization\":{\"group_size\":" group ",\"bits\":" bits              \
    ",\"mode\":\"" mode "\"}}"
#define MLX_HEADER                                                            \
    "{" E("m.weight", "U32", "[1,1]", "[0,4]") "," E(                         \
        "m.scales", "F16", "[1,1]", "[4,6]") "," E(                           \
        "m.biases", "F16", "[1,1]", "[6,8]") "}"

void
make_packed(void)
{
    static const struct {
        const char *name, *header, *config;
        size_t n;
        const char *sentence;
    } packed[] = {
        {"good-fp8-blocks",
         "{" E("w.weight_scale_inv", "F32", "[2,2]", "[0,16]") "," E(
             "w.weight", "F8_E4M3", "[3,5]", "[16,31]") "}",
         FP8(",\"weight_block_size\":[2,3]"), 31,
         "FP8 with scales for blocks that the matrix is no multiple of."},
        {"bad-fp8-no-scale",
         "{" E("w.weight", "F8_E4M3", "[3,5]", "[0,15]") "}", FP8(""), 15,
         "FP8 whose scale is announced and missing."},
        {"bad-fp8-scales",
         "{" E("w.weight_scale_inv", "F32", "[2,3]", "[0,24]") "," E(
             "w.weight", "F8_E4M3", "[3,5]", "[24,39]") "}",
         FP8(",\"weight_block_size\":[2,3]"), 39,
         "FP8 with scales that do not fit its blocks [5]."},
        {"bad-fp8-no-block",
         "{" E("w.weight_scale_inv", "F32", "[2,2]", "[0,16]") "," E(
             "w.weight", "F8_E4M3", "[3,5]", "[16,31]") "}",
         FP8(",\"weight_block_size\":[0,0]"), 31,
         "FP8 in blocks of nothing [15]."},
        {"good-packed-gptq", GPTQ_HEADER "}", GPTQ("4"), 52,
         "GPTQ, 8 x 8 codes of 4 bits."},
        {"bad-packed-gptq-zeros",
         "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(
             "m.scales", "F16", "[1,8]", "[32,48]") "}",
         GPTQ("4"), 48, "GPTQ without zero points."},
        {"bad-packed-gptq-shape",
         "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(
             "m.scales", "F16", "[1,7]", "[32,46]") "," E(
             "m.qzeros", "I32", "[1,1]", "[46,50]") "}",
         GPTQ("4"), 50, "GPTQ with scales for 7 of 8 outputs [5]."},
        {"bad-packed-gptq-bits", GPTQ_HEADER "}", GPTQ("8"), 52,
         "GPTQ with words for 4 bits that says 8 [5]."},
        {"bad-packed-gptq-group",
         GPTQ_HEADER "," E("m.g_idx", "I32", "[8]", "[52,84]") "}",
         GPTQ("4"), 84, "GPTQ with columns of a group that is not there [6]."},
        {"good-packed-awq", AWQ_HEADER "}", AWQ("gemm"), 48,
         "AWQ, 8 x 4 codes."},
        {"bad-packed-awq-shape",
         "{" E("m.qweight", "I32", "[4,1]", "[0,16]") "," E(
             "m.scales", "F16", "[2,8]", "[16,48]") "," E(
             "m.qzeros", "I32", "[1,1]", "[48,52]") "}",
         AWQ("gemm"), 52, "AWQ with zero points for one of two groups [5]."},
        {"unsupported-packed-awq", AWQ_HEADER "}", AWQ("gemv"), 48,
         "weights packed by AWQ in its gemv version."},
        {"good-packed-words",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED("pack-quantized"), 1794,
         "words of compressed-tensors, 56 x 56 codes of 4 bits."},
        {"bad-packed-words-groups",
         WORDS "," E("m.weight_scale", "F16", "[56,3]", "[1570,1906]") "}",
         COMPRESSED("pack-quantized"), 1906,
         "compressed-tensors with scales for 3 groups of 56 columns [5]."},
        {"good-packed-int8",
         "{" E("m.weight", "I8", "[2,4]", "[0,8]") "," E(
             "m.weight_scale", "F16", "[2,1]", "[8,12]") "," E(
             "m.weight_zero_point", "I8", "[2,1]", "[12,14]") "}",
         COMPRESSED("int-quantized"), 14,
         "bytes of compressed-tensors with zero points."},
        {"good-packed-nvfp4",
         "{" E("m.weight_packed", "U8", "[2,8]", "[0,16]") "," E(
             "m.weight_scale", "F8_E4M3", "[2,1]", "[16,18]") "," E(
             "m.weight_global_scale", "F32", "[1]", "[18,22]") "}",
         COMPRESSED("nvfp4-pack-quantized"), 22,
         "NVFP4 of compressed-tensors."},
        {"good-packed-torchao", TORCHAO_HEADER "}", TORCHAO("SYMMETRIC"), 82,
         "bytes of torchao, two groups of 32."},
        {"bad-packed-torchao-zeros",
         "{" E("m._weight_qdata", "I8", "[1,64]", "[0,64]") "," E(
             "m._weight_scale", "BF16", "[1,2]", "[64,68]") "," E(
             "m._weight_zero_point", "I8", "[1,1]", "[68,69]") "}",
         TORCHAO("ASYMMETRIC"), 69,
         "torchao with zero points for one of two groups [5]."},
        {"unsupported-packed-hqq",
         "{" E("m.W_q", "U8", "[4,8]", "[0,32]") "," E(
             "m.scale", "F16", "[4]", "[32,40]") "," E(
             "m.zero", "F16", "[4]", "[40,48]") "," E(
             "m.nbits", "U8", "[]", "[48,49]") "," E(
             "m.axis", "U8", "[]", "[49,50]") "," E(
             "m.packing", "U8", "[7]", "[50,57]") "," E(
             "m.shape", "U8", "[2]", "[57,59]") "}",
         "{}", 59, "HQQ with 56 bits."},
        {"unsupported-packed-hqq-scales",
         "{" E("m.W_q", "U8", "[4,8]", "[0,32]") "," E(
             "m.zero_q", "U8", "[4]", "[32,36]") "," E(
             "m.scale_q", "U8", "[4]", "[36,40]") "}",
         "{}", 40, "HQQ whose scales are packed too."},
        {"unsupported-packed-sparse",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED("marlin-24"), 1794,
         "compressed-tensors in a format that is not read."},
        {"unsupported-packed-gptq", GPTQ_HEADER "}", GPTQ("5"), 52,
         "weights packed by GPTQ with 5 bits."},
        {"good-packed-bnb",
         "{" E("m.weight", "I8", "[2,4]", "[0,8]") "," E(
             "m.SCB", "F32", "[2]", "[8,16]") "}",
         "{}", 16, "bitsandbytes, 2 x 4 codes of 8 bits."},
        {"bad-packed-bnb-rows",
         "{" E("m.weight", "I8", "[2,4]", "[0,8]") "," E(
             "m.SCB", "F32", "[3]", "[8,20]") "}",
         "{}", 20, "bitsandbytes with scales for three of two rows [5]."},
        {"bad-packed-bnb-state",
         "{" E("m.weight", "U8", "[8,1]", "[0,8]") "," E(
             "m.weight.absmax", "F32", "[1]", "[8,12]") "," E(
             "m.weight.quant_map", "F32", "[16]", "[12,76]") "," E(
             "m.weight.quant_state.bitsandbytes__nf4", "U8", "[4]",
             "[76,80]") "}",
         "{}", 80, "bitsandbytes whose description is a number [21]."},
        {"good-packed-mxfp4",
         "{" E("m_blocks", "U8", "[1,2,1,16]", "[0,32]") "," E(
             "m_scales", "U8", "[1,2,1]", "[32,34]") "}",
         "{}", 34, "MXFP4, two rows of 32."},
        {"bad-packed-mxfp4-scales",
         "{" E("m_blocks", "U8", "[1,2,1,16]", "[0,32]") "," E(
             "m_scales", "U8", "[1,2,2]", "[32,36]") "}",
         "{}", 36, "MXFP4 with twice as many scales as blocks [5]."},
        {"good-packed-mlx", MLX_HEADER, MLX("32", "1", "affine"), 8,
         "MLX, a row of 32 codes of one bit."},
        {"bad-packed-mlx-bits", MLX_HEADER, MLX("32", "4", "affine"), 8,
         "MLX with a word for 32 codes that says 4 bits [5]."},
        {"bad-packed-mlx-group", MLX_HEADER, MLX("0", "1", "affine"), 8,
         "MLX in groups of nothing [15]."},
        {"bad-packed-gptq-bits-text", GPTQ_HEADER "}", GPTQ("\"4\""), 52,
         "GPTQ whose bits are a text [7]."},
        {"unsupported-packed-gptq-no-bits", GPTQ_HEADER "}", GPTQ("0"), 52,
         "GPTQ with 0 bits [15]."},
        {"unsupported-packed-gptq-33-bits", GPTQ_HEADER "}", GPTQ("33"), 52,
         "GPTQ with more bits than a word [12]."},
        {"bad-packed-gptq-group-zero", GPTQ_HEADER "}", GPTQ_GROUP("4", "0"),
         52, "GPTQ in groups of nothing [15]."},
        {"bad-packed-gptq-group-negative", GPTQ_HEADER "}",
         GPTQ_GROUP("4", "-7"), 52, "GPTQ in groups of -7 [12]."},
        {"bad-packed-gptq-group-huge", GPTQ_HEADER "}",
         GPTQ_GROUP("4", "4611686018427387904"), 52,
         "GPTQ in groups of 2^62 [2]."},
        {"bad-packed-gptq-type",
         "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(
             "m.scales", "I32", "[1,8]", "[32,64]") "," E(
             "m.qzeros", "I32", "[1,1]", "[64,68]") "}",
         GPTQ("4"), 68, "GPTQ whose scales are integers [7]."},
        {"bad-packed-gptq-empty",
         "{" E("m.qweight", "I32", "[0,1099511627776]", "[0,0]") "," E(
             "m.scales", "F16", "[1,8]", "[0,16]") "," E(
             "m.qzeros", "I32", "[1,1]", "[16,20]") "}",
         GPTQ("4"), 20, "GPTQ with 0 rows of 2^40 words [4]."},
        {"bad-packed-awq-zeros",
         "{" E("m.qweight", "I32", "[4,1]", "[0,16]") "," E(
             "m.scales", "F16", "[1,8]", "[16,32]") "}",
         AWQ("gemm"), 32, "AWQ without zero points."},
        {"bad-packed-method",
         GPTQ_HEADER "}", CONFIG("{\"quant_method\":7}"), 52,
         "a method that is a number [7]."},
        {"bad-packed-config", GPTQ_HEADER "}", CONFIG("[1]"), 52,
         "a quantization that is a list [7]."},
        {"bad-packed-two-configs", GPTQ_HEADER "}",
         "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,"
         "\"group_size\":8},\"quantization\":{\"group_size\":64,"
         "\"bits\":4}}", 52,
         "two quantizations that differ."},
        {"bad-packed-words-ignored",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED_WITH("\"ignore\":[\"lm_head\",\"m\"]"), 1794,
         "a matrix that is packed, and said to be left as it was."},
        {"bad-packed-words-ignore",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED_WITH("\"ignore\":{\"m\":1}"), 1794,
         "what is left as it was is no list [7]."},
        {"bad-packed-words-config",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED_WITH("\"config_groups\":{\"a\":3}"), 1794,
         "a group of compressed-tensors that is a number [7]."},
        {"bad-packed-words-bits",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED_WITH("\"config_groups\":{\"a\":{\"weights\":{"
                         "\"num_bits\":33}}}"), 1794,
         "compressed-tensors with 33 bits [12]."},
        {"bad-packed-words-zeros",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED_WITH("\"config_groups\":{\"a\":{\"weights\":{"
                         "\"num_bits\":4,\"symmetric\":false}}}"), 1794,
         "compressed-tensors without the zero points that it announces."},
        {"bad-packed-mlx-plain", MLX_HEADER,
         "{\"quantization\":{\"group_size\":32,\"bits\":1,\"m\":false}}", 8,
         "MLX with a layer that is said to be plain."},
        {"bad-packed-mlx-huge",
         "{" E("m.weight", "U32", "[0,576460752303423488]", "[0,0]") "," E(
             "m.scales", "F16", "[0,36028797018963968]", "[0,0]") "," E(
             "m.biases", "F16", "[0,36028797018963968]", "[0,0]") "}",
         MLX("64", "8", "affine"), 0, "MLX with 0 rows of 2^59 words [2]."},
        {"bad-packed-mlx-biases",
         "{" E("m.weight", "U32", "[1,1]", "[0,4]") "," E(
             "m.scales", "F16", "[1,1]", "[4,6]") "}",
         MLX("32", "1", "affine"), 6, "MLX without biases."},
        {"good-packed-modelopt",
         "{" E("m.weight", "U8", "[2,8]", "[0,16]") "," E(
             "m.weight_scale", "F8_E4M3", "[2,1]", "[16,18]") "," E(
             "m.weight_scale_2", "F32", "[]", "[18,22]") "," E(
             "m.input_scale", "F32", "[]", "[22,26]") "}",
         NVFP4, 26, "NVFP4 of ModelOpt."},
        {"bad-packed-modelopt-second",
         "{" E("m.weight", "U8", "[2,8]", "[0,16]") "," E(
             "m.weight_scale", "F8_E4M3", "[2,1]", "[16,18]") "}",
         NVFP4, 18, "NVFP4 of ModelOpt without its second scale."},
        {"bad-packed-modelopt-scales",
         "{" E("m.weight", "U8", "[2,8]", "[0,16]") "," E(
             "m.weight_scale", "F8_E4M3", "[2,2]", "[16,20]") "," E(
             "m.weight_scale_2", "F32", "[]", "[20,24]") "}",
         NVFP4, 24, "NVFP4 with two scales for 16 codes [5]."},
        {"bad-packed-modelopt-codes",
         "{" E("m.weight_scale", "F8_E4M3", "[2,1]", "[0,2]") "," E(
             "m.weight_scale_2", "F32", "[]", "[2,6]") "}",
         NVFP4, 6, "NVFP4 of ModelOpt without its codes."},
        {"unsupported-packed-modelopt",
         "{" E("m.weight", "U8", "[2,8]", "[0,16]") "," E(
             "m.weight_scale", "F8_E4M3", "[2,1]", "[16,18]") "," E(
             "m.weight_scale_2", "F32", "[]", "[18,22]") "," E(
             "m.pre_quant_scale", "F32", "[16]", "[22,86]") "}",
         NVFP4, 86, "NVFP4 behind activations that are scaled."},
        {"unsupported-packed-experts",
         "{" E("e_proj", "U8", "[2,4,8]", "[0,64]") "," E(
             "e_proj_weight_scale", "F8_E4M3", "[2,4,1]", "[64,72]") "," E(
             "e_proj_weight_scale_2", "F32", "[2]", "[72,80]") "}",
         NVFP4, 80, "NVFP4 of experts in one tensor."},
        {"good-fp8-exponents",
         "{" E("m.weight", "F8_E4M3", "[2,32]", "[0,64]") "," E(
             "m.weight_scale", "F8_E8M0", "[2,1]", "[64,66]") "}",
         "{}", 66, "FP8 with powers of two as scales."},
        {"unsupported-packed-mlx", MLX_HEADER, MLX("32", "1", "int5"), 8,
         "weights packed by MLX in a mode that is not known."},
    };

    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
        struct bytes bytes = {0};
        char path[128];
        make_folder(packed[i].name, packed[i].sentence);
        put_safetensors_raw(&bytes, packed[i].header, NULL, 0);
        for (size_t j = 0; j < packed[i].n; j++)
            put(&bytes, "8", 1); /* 1 in FP8, 0.5 in F16, 8 and 3 in 4 bits */
        snprintf(path, sizeof(path), "%s/model.safetensors", packed[i].name);
        emit(path, &bytes, NULL);
        save_in(packed[i].name, "config.json", packed[i].config);
    }
}
