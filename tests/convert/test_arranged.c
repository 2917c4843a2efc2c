/*
 * test_arranged.c - what files have in other pieces, or in another order; and
 * what GGUF has in the blocks that a checkpoint has.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/build/build_gguf.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"

/* Convolutions stand apart in the file, and are one tensor of ours. */
START_TEST(what_is_not_finite_is_named_as_it_stands)
{
    struct family_model *model =
        family_make(family_find("kimi-linear"), 1, 0, 1);
    const struct lmq_convert_options options = {.threads = 1};
    struct lmq_report *report;
    struct lmq_error err;

    /* Row 7 of values, behind 80 rows of queries and as many of keys. */
    model->oracle.layers[0].delta.conv[167 * 4 + 2] = NAN;
    family_write(model, in_folder("apart"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("apart"));
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("apart.lmq"), &options,
                                 NULL, &report, &err),
                     LMQ_ERR_NONFINITE);
    ck_assert_ptr_nonnull(
        strstr(err.message, "'model.layers.0.self_attn.v_conv1d.weight': NaN "
                            "or infinity at element 30 (row 7, column 2)"));
    lmq_checkpoint_close(checkpoint);
    family_free(model);
}
END_TEST

/* llama.cpp computes with nothing else, in one or in three. */
START_TEST(convolutions_of_a_gguf_stay_float)
{
    static const char *const names[] = {"kimi-linear", "mamba"};
    const struct lmq_export_options options = {.to = "gguf", .type = "f16"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct family_model *model =
            family_make(family_find(names[i]), 1, 0, 1);
        family_write(model, in_folder("floats"));
        lmq_report_free(
            export_to(in_folder("floats"), in_folder("a.gguf"), &options));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        const struct lmq_tensor *tensor = lmq_checkpoint_find_name(
            checkpoint, "blk.0.ssm_conv1d.weight");
        ck_assert_int_eq(tensor->dtype, LMQ_DTYPE_F32);
        lmq_checkpoint_close(checkpoint);
        family_free(model);
        unlink(in_folder("a.gguf"));
    }
}
END_TEST

/* ---- Whole numbers without scales ---- */

/* The numbers of a tensor become whole ones, as integers or as floats, which
 * have as many bytes. */
static void
make_whole(const char *path, const char *name, bool is_float)
{
    size_t n, from, to;
    unsigned char *bytes = read_file(path, &n);
    char *entry = strstr((char *)bytes + 8, name);

    ck_assert_ptr_nonnull(entry);
    char *type = strstr(entry, "\"F32\"");
    char *offsets = strstr(entry, "\"data_offsets\":[");
    ck_assert(type != NULL && offsets != NULL);
    ck_assert_int_eq(
        sscanf(offsets, "\"data_offsets\":[%zu,%zu]", &from, &to), 2);
    if (!is_float)
        type[1] = 'I';
    unsigned char *data = bytes + 8 + lmq_load_u64le(bytes);
    for (size_t i = from; i < to; i += 4) {
        int whole = (int)(i / 4 % 23) - 11;
        lmq_store_u32le(data + i, is_float ? lmq_f32_bits((float)whole)
                                           : (uint32_t)whole);
    }
    write_file(path, bytes, n);
    free(bytes);
}

/* Queries, keys and values are one there, with inputs as rows. */
START_TEST(whole_numbers_in_another_order_become_floats)
{
    static const char *const folders[] = {"whole", "floats"};
    static const char name[] = "\"transformer.h.0.attn.c_attn.weight\"";
    const char *const rules[] = {"*=f32"};
    const struct lmq_convert_options as_floats = {.rules = rules,
                                                  .n_rules = 1};
    const struct lmq_export_options options = {.to = "safetensors"};
    struct family_model *model = family_make(family_find("gpt2"), 1, 0, 1);

    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s/model.safetensors", folders[i]);
        family_write(model, in_folder(folders[i]));
        make_whole(in_folder(path), name, i == 1);
    }
    family_free(model);
    lmq_report_free(
        convert(in_folder("whole"), in_folder("whole.lmq"), &as_floats));
    assert_equal_weights(in_folder("floats"), in_folder("whole.lmq"));
    lmq_report_free(
        export_to(in_folder("whole"), in_folder("exported"), &options));
    assert_equal_weights(in_folder("floats"), in_folder("exported"));
}
END_TEST

/* Each block at a scale of its own, some larger than its numbers need. */
START_TEST(floats_of_four_bits_keep_their_blocks)
{
    static const char gate[] = "blk.0.ffn_gate.weight";
    const struct lmq_export_options to = {.to = "gguf"};
    struct build_model *model = build_model(&even, 9);
    struct gguf gguf = {0};
    size_t at = 0;

    while (strstr(model->tensors[at].name, "gate_proj") == NULL)
        at++;
    size_t n = model->tensors[at].n_elements / 32 * 17;
    unsigned char *blocks = malloc(n);
    ck_assert_ptr_nonnull(blocks);
    for (size_t i = 0; i < n; i++)
        blocks[i] = (unsigned char)(i % 17 == 0   ? 90 + i * 7 % 60
                                    : i % 34 < 17 ? i * 37
                                                  : i & 0x11);
    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, at);
    gguf_tensor(&gguf, gate, model->tensors[at].dims, 2, 39, blocks, n);
    gguf_llama_tensors(&gguf, model, at + 1, model->n_tensors - at - 1);
    save_gguf(&gguf, in_folder("fp4.gguf"));
    free(blocks);
    build_free(model);
    struct lmq_report *report =
        export_to(in_folder("fp4.gguf"), in_folder("again.gguf"), &to);
    ck_assert(lmq_report_number(report, "is_lossless") == 1);
    lmq_report_free(report);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("again.gguf"));
    ck_assert_str_eq(lmq_checkpoint_find_name(checkpoint, gate)->encoding,
                     "mxfp4");
    lmq_checkpoint_close(checkpoint);
    assert_equal_weights(in_folder("fp4.gguf"), in_folder("again.gguf"));
}
END_TEST

static bool
has_bytes(const unsigned char *all, size_t n_all, const unsigned char *bytes,
          size_t n)
{
    for (size_t i = 0; i + n <= n_all; i++)
        if (memcmp(all + i, bytes, n) == 0)
            return true;
    return false;
}

/* DeepSeek V4's makers have rows and columns as llama.cpp has them. */
START_TEST(columns_of_heads_that_turn_back_are_in_pairs_again)
{
    static const char *const names[] = {
        "blk.0.attn_k.weight", "blk.0.attn_output_a.1.weight",
        "blk.1.attn_compressor_ape.weight",
        "blk.1.indexer_compressor_ape.weight",
    };
    struct family_model *model =
        family_make(family_find("deepseek4"), 1, 0, 1);
    const struct lmq_export_options to = {.to = "gguf", .type = "f32"};
    size_t n_from, n_to;

    family_write(model, in_folder("v4"));
    lmq_report_free(export_to(in_folder("v4"), in_folder("v4.gguf"), &to));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("v4"));
    unsigned char *from =
        (unsigned char *)read_file(in_folder("v4/model.safetensors"), &n_from);
    unsigned char *file =
        (unsigned char *)read_file(in_folder("v4.gguf"), &n_to);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, names[i]);
        ck_assert_msg(tensor != NULL, "%s", names[i]);
        ck_assert_int_eq(tensor->dtype, LMQ_DTYPE_F32);
        size_t row = 4 * (size_t)tensor->n_cols;
        size_t at = (size_t)tensor->offset + row * (size_t)tensor->view.first;
        ck_assert_uint_le(at + row, n_from);
        ck_assert_msg(has_bytes(file, n_to, from + at, row), "%s", names[i]);
    }
    lmq_checkpoint_close(checkpoint);
    checkpoint = open_checkpoint(in_folder("v4.gguf"));
    const struct lmq_tensor *table =
        lmq_checkpoint_find_name(checkpoint, "blk.1.ffn_gate_tid2eid.weight");
    ck_assert_ptr_nonnull(table);
    ck_assert_int_eq(table->dtype, LMQ_DTYPE_I32);
    ck_assert_str_eq(
        lmq_checkpoint_find_name(checkpoint, names[0])->stored_name,
        "blk.0.attn_kv.weight");
    lmq_checkpoint_close(checkpoint);
    free(from);
    free(file);
    family_free(model);
}
END_TEST

/* Of DeepSeek V3.2 without its indexer tensors only so many positions are
 * seen; with them it goes on, and is another GGUF than if layers share what
 * some choose. */
START_TEST(without_an_index_the_context_ends)
{
    static const struct {
        const char *choosers, *gguf; /* NULL: no layer has an index */
        const char *config;          /* begins like that, or as it is */
    } cases[] = {
        {NULL, "deepseek2", NULL},
        {"1111", "deepseek32", NULL},
        {"1101", "glm-dsa",
         "{'architectures': ['GlmMoeDsaForCausalLM'], 'model_type': "
         "'glm_moe_dsa', 'index_topk_pattern': 'FFSF', "},
    };
    const struct lmq_export_options to = {.to = "gguf", .type = "f32"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct family family = *family_find("deepseek32");
        const uint32_t top = (uint32_t)family.shape.index_topk;
        const uint32_t end = cases[i].choosers == NULL ? top : 0;
        char config[4096];
        snprintf(config, sizeof(config), "%s%s",
                 cases[i].config == NULL ? "" : cases[i].config,
                 strstr(family.config, "'attention_bias'"));
        if (cases[i].config != NULL)
            family.config = config;
        family.shape.choosers = cases[i].choosers;
        struct family_model *model = family_make(&family, 1, 0, 1);
        family_write(model, in_folder("v32"));
        family_free(model);
        lmq_report_free(
            export_to(in_folder("v32"), in_folder("v32.gguf"), &to));
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("v32"));
        const struct lmq_hparams *h = &checkpoint->hparams;
        ck_assert_str_eq(h->unsupported, "");
        ck_assert_uint_eq(h->context_end, end);
        ck_assert_uint_eq(h->index_topk, end > 0 ? 0 : top);
        ck_assert_int_eq(lmq_layer_is(h, 2, LMQ_LAYER_INDEX),
                         end == 0 && cases[i].choosers[2] == '1');
        lmq_checkpoint_close(checkpoint);
        size_t n;
        unsigned char *file =
            (unsigned char *)read_file(in_folder("v32.gguf"), &n);
        ck_assert_msg(has_bytes(file, n,
                                (const unsigned char *)cases[i].gguf,
                                strlen(cases[i].gguf)),
                      "%s", cases[i].gguf);
        free(file);
        unlink(in_folder("v32.gguf"));
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {
        what_is_not_finite_is_named_as_it_stands,
        convolutions_of_a_gguf_stay_float,
        whole_numbers_in_another_order_become_floats,
        floats_of_four_bits_keep_their_blocks,
        columns_of_heads_that_turn_back_are_in_pairs_again,
        without_an_index_the_context_ends,
    };

    return RUN_SUITE("arranged", tests);
}
