/*
 * test_packed_refused.c - what other tools pack is refused by name.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/build/stored.h"

#define CONFIG STORED_CONFIG

#define TENSOR(name, dtype, n, from, to)                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" n                     \
    "],\"data_offsets\":[" from "," to "]}"

static const char plain_tensor[] =
    "{" TENSOR("m.weight", "F32", "2", "0", "8") "}";

static const struct {
    const char *name, *header, *config;
} packed[] = {
    {"AWQ (bits 8)", "{" TENSOR("m.qweight", "I32", "1", "0", "4") "," TENSOR(
                         "m.qzeros", "I32", "1", "4", "8") "}",
     CONFIG("\"quant_method\": \"awq\", \"bits\": 8")},
    {"bitsandbytes",
     "{" TENSOR("m.weight", "U8", "4", "0", "4") "," TENSOR(
         "m.weight.absmax", "U8", "4", "4", "8") "}",
     NULL},
    {"compressed-tensors (format marlin-24)",
     "{" TENSOR("m.weight_packed", "I32", "2", "0", "8") "}",
     CONFIG("\"quant_method\": \"compressed-tensors\", "
            "\"format\": \"marlin-24\"")},
    {"compressed-tensors (sparsity sparse-24-bitmask)",
     "{" TENSOR("m.weight", "I8", "2,2", "0", "4") "," TENSOR(
         "m.weight_scale", "BF16", "2", "4", "8") "}",
     CONFIG("\"quant_method\": \"compressed-tensors\", "
            "\"sparsity_config\": {\"format\": \"sparse-24-bitmask\"}")},
    {"Quark",
     "{" TENSOR("m.weight", "I8", "2,2", "0", "4") "," TENSOR(
         "m.weight_scale", "BF16", "2", "4", "8") "}",
     CONFIG("\"quant_method\": \"quark\"")},
    {"ModelOpt (behind scaled activations)",
     "{" TENSOR("m.weight", "I8", "1,2", "0", "2") "," TENSOR(
         "m.weight_scale", "F32", "1", "2", "6") "," TENSOR(
         "m.pre_quant_scale", "BF16", "1", "6", "8") "}",
     CONFIG("\"quant_method\": \"modelopt\"")},
    {"AWQ (behind scaled activations)",
     "{" TENSOR("m.act.scales", "F32", "2", "0", "8") "}",
     CONFIG("\"quant_method\": \"awq\"")},
    {"AQLM", "{" TENSOR("m.codebooks", "F16", "4", "0", "8") "}", NULL},
    {"EETQ", "{" TENSOR("m.weight_scales", "F16", "4", "0", "8") "}", NULL},
    {"Quanto",
     "{" TENSOR("m.weight._data._data", "U8", "2,2", "0", "4") "," TENSOR(
         "m.weight._shift", "BF16", "2", "4", "8") "}",
     NULL},
    {"torchao (codes of type u8)",
     "{" TENSOR("m._weight_qdata", "U8", "2,2", "0", "4") "," TENSOR(
         "m._weight_scale", "F32", "1", "4", "8") "}",
     CONFIG("\"quant_method\": \"torchao\"")},
    {"torchao (codes of type u8)",
     "{" TENSOR("m._gate_up_proj_qdata", "U8", "2,2", "0", "4") ","
         TENSOR("m._gate_up_proj_scale", "F32", "1", "4", "8") "}",
     CONFIG("\"quant_method\": \"torchao\"")},
    {"Quanto",
     "{" TENSOR("m.weight._data", "F8_E4M3", "2,2", "0", "4") "," TENSOR(
         "m.weight._scale", "F32", "1", "4", "8") "}",
     CONFIG("\"quant_method\": \"quanto\"")},
    {"compressed-tensors (sparse, with bit masks)",
     "{" TENSOR("m.compressed", "F32", "1", "0", "4") "," TENSOR(
         "m.bitmask", "U8", "4,1", "4", "8") "}",
     CONFIG("\"quant_method\": \"compressed-tensors\", "
            "\"format\": \"dense\"")},
    {"compressed-tensors (sparse, with bit masks)",
     "{" TENSOR("m.compressed", "F8_E4M3", "2,2", "0", "4") "," TENSOR(
         "m.bitmask", "U8", "4,1", "4", "8") "}",
     CONFIG("\"quant_method\": \"compressed-tensors\", "
            "\"format\": \"float-quantized\"")},
    {"FourOverSix",
     "{" TENSOR("m.quantized_weight_values", "U8", "2,2", "0", "4") ","
         TENSOR("m.quantized_weight_scale_factors", "F8_E4M3", "4", "4",
                "8") "}",
     NULL},
    {"FourOverSix",
     "{" TENSOR("m.quantized_weight_values", "U8", "2,2", "0", "4") ","
         TENSOR("m.quantized_weight_scale_factors", "F8_E4M3", "4", "4",
                "8") "}",
     CONFIG("\"quant_method\": \"fouroversix\"")},
    {"HQQ (scales along both axes, as SINQ has them)",
     "{" TENSOR("m.W_q", "U8", "4", "0", "4") "," TENSOR(
         "m.meta.scale2", "F16", "2", "4", "8") "}",
     NULL},
    {"integers or FP4 with scales",
     "{" TENSOR("m.weight", "I8", "2,3", "0", "6") "," TENSOR(
         "m.scale", "F8_E8M0", "2", "6", "8") "}",
     CONFIG("\"quant_method\": \"fp8\"")},
    {"integers or FP4 with scales",
     "{" TENSOR("m.weight", "I8", "2,2", "0", "4") "," TENSOR(
         "m.weight_scale_inv", "F32", "1", "4", "8") "}",
     NULL},
    {"NVFP4 (fused experts)",
     "{" TENSOR("m_weight_scale_2", "F32", "2", "0", "8") "}", NULL},
    {"AutoRound ('.hadamard_matrix' turns activations)",
     "{" TENSOR("m.hadamard_matrix", "F32", "1,2", "0", "8") "}", NULL},
    {"AutoRound ('.spinquant_r4_size' turns activations)",
     "{" TENSOR("m.spinquant_r4_size", "I64", "", "0", "8") "}",
     CONFIG("\"quant_method\": \"auto-round\"")},
    {"compressed-tensors ('.hadamard_matrix' turns activations)",
     "{" TENSOR("m.hadamard_matrix", "F32", "1,2", "0", "8") "}",
     CONFIG("\"quant_method\": \"compressed-tensors\"")},
    {"Quark ('.input_rotation' turns activations)",
     "{" TENSOR("m.input_rotation", "I8", "2,4", "0", "8") "}",
     CONFIG("\"quant_method\": \"quark\"")},
    {"AutoRound ('rotation_config' turns activations)", plain_tensor,
     CONFIG("\"quant_method\": \"auto-round\", "
            "\"rotation_config\": {\"algorithm\": \"hadamard\"}")},
    /* By the configuration alone. */
    {"GPTQ (no tensor has a name that it gives)", plain_tensor,
     CONFIG("\"quant_method\": \"gptq\"")},
    {"newest", plain_tensor,
     CONFIG("\"quant_method\": \"newest\", \"bits\": 4.5")},
    {"newest", "{" TENSOR("m.factors", "F8_E4M3", "8", "0", "8") "}",
     CONFIG("\"quant_method\": \"newest\"")},
    {"MLX", plain_tensor,
     "{\"quantization\": {\"group_size\": 64, \"bits\": 4}}"},
    {"a method that config.json does not name", plain_tensor,
     CONFIG("\"load_in_4bit\": true")},
};

static void
assert_packed(const char *name, const char *path)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_report *report;
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_str_eq(checkpoint->packed, name);
    ck_assert_int_eq(lmq_inspect(checkpoint, NULL, &report, &err), LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "packed"), name);
    lmq_report_free(report);
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("out.lmq"), NULL, NULL,
                                 NULL, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, name));
    ck_assert_str_ne(err.hint, "");
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, name));
    ck_assert_int_eq(
        lmq_diff(checkpoint, checkpoint, NULL, NULL, &report, &err),
        LMQ_ERR_UNSUPPORTED);
    lmq_checkpoint_close(checkpoint);
}

START_TEST(packed_weights_are_refused_by_name_and_inspected)
{
    mkdir(in_folder("model"), 0777);
    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
        struct bytes bytes = {0};
        put_safetensors_raw(&bytes, packed[i].header, "\0\0\0\0\0\0\0\0", 8);
        save(&bytes, in_folder("model/model.safetensors"));
        bytes_free(&bytes);
        remove(in_folder("model/config.json"));
        if (packed[i].config != NULL)
            write_file(in_folder("model/config.json"), packed[i].config,
                       strlen(packed[i].config));
        assert_packed(packed[i].name, in_folder("model"));
    }
}
END_TEST

/* compressed-tensors may hold weights that are not packed at all. */
START_TEST(what_is_not_packed_is_not_refused)
{
    static const char *const configs[] = {
        "{}",
        CONFIG(""),
        CONFIG("\"quant_method\": \"compressed-tensors\""),
        "{\"quantization_config\": null}",
        "{\"quantization_config\": {\"quant_method\": \"fp8\"}}",
        "{\"compression_config\": {\"quant_method\": \"sparseml\"}}",
    };

    mkdir(in_folder("model"), 0777);
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct bytes bytes = {0};
        put_safetensors_raw(&bytes, plain_tensor, "\0\0\0\0\0\0\0\0", 8);
        save(&bytes, in_folder("model/model.safetensors"));
        bytes_free(&bytes);
        write_file(in_folder("model/config.json"), configs[i],
                   strlen(configs[i]));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("model"));
        ck_assert_str_eq(checkpoint->packed, "");
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        packed_weights_are_refused_by_name_and_inspected,
        what_is_not_packed_is_not_refused,
    };

    return RUN_SUITE("packed", tests);
}
