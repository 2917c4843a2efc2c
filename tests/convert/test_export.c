/*
 * test_export.c - exports: they are the same model, whole or not there, and
 * what a format cannot say is refused.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/runtime/small_vocab.h"

static const struct lmq_export_options llama2c = {.to = "llama2c"};

static const struct lmq_export_options safetensors = {.to = "safetensors"};

/* ---- llama2.c ---- */

START_TEST(llama2c_gets_the_very_values_of_a_container)
{
    static const struct lmq_convert_options conversions[] = {
        {.group_size = 32},
        {.group_size = 32, .layout = "rows"},
        {.group_size = 64, .scales = "f32", .method = "absmax"},
        {.group_size = 256, .layout = "rows", .scales = "f32"},
        {.tie = "never"},
    };
    /* 32 divides 64 and 96, 8 divides 24 and 40. */
    const struct build_sizes *sizes[] = {&even, &build_small};

    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < sizeof(conversions) / sizeof(*conversions);
             i++) {
            struct build_sizes untied = *sizes[s];
            untied.is_tied = i % 2 == 0;
            struct build_model *model = build_model(&untied, 3 + i);
            save_folder(model, in_folder("model"), BUILD_F32);
            lmq_report_free(convert(in_folder("model"), in_folder("m.lmq"),
                                    &conversions[i]));
            struct lmq_report *report = export_to(
                in_folder("m.lmq"), in_folder("m.bin"), &llama2c);
            ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 1);
            ck_assert_double_eq(lmq_report_number(report, "group_size"),
                                s == 0 ? 32 : 8);
            assert_identical(in_folder("m.lmq"), in_folder("m.bin"));
            lmq_report_free(report);
            build_free(model);
            unlink(in_folder("m.lmq"));
            unlink(in_folder("m.bin"));
        }
}
END_TEST

START_TEST(llama2c_from_floats_is_quantized)
{
    struct build_model *model = build_model(&even, 5);

    save_folder(model, in_folder("model"), BUILD_BF16);
    struct lmq_report *report =
        export_to(in_folder("model"), in_folder("m.bin"), &llama2c);
    ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 0);
    ck_assert_ptr_nonnull(
        strstr(lmq_report_string(report, "notes.1"), "were quantized"));
    lmq_report_free(report);
    report = diff(in_folder("model"), in_folder("m.bin"), 1);
    ck_assert_double_gt(lmq_report_number(report, "snr_db"), 40);
    lmq_report_free(report);
    build_free(model);
}
END_TEST

/* runq would run it all the same, and talk nonsense. */
START_TEST(llama2c_refuses_what_runq_does_not_compute)
{
    static const struct {
        struct lmq_open_options open;
        const char *text;
    } wrong[] = {
        {{.rope_theta = 500000}, "'rope_theta' is 500000.0"},
        {{.norm_eps = 1e-6}, "'norm_eps'"},
    };
    struct build_model *model = build_model(&even, 5);
    const uint64_t width[] = {64};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(lmq_checkpoint_open(in_folder("model"),
                                             &wrong[i].open, &checkpoint,
                                             &err),
                         LMQ_OK);
        assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                              LMQ_ERR_UNSUPPORTED, wrong[i].text);
        lmq_checkpoint_close(checkpoint);
    }
    checkpoint = open_checkpoint(in_folder("model"));
    checkpoint->hparams.sliding_window = 32;
    assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                          LMQ_ERR_UNSUPPORTED, "'sliding_window' is 32");
    checkpoint->hparams.sliding_window = 0;
    checkpoint->hparams.rotary_dim = 8;
    assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                          LMQ_ERR_UNSUPPORTED, "'rotary_dim' is 8");
    lmq_checkpoint_close(checkpoint);
    build_add(model, "model.layers.0.self_attn.q_proj.bias", width, 1);
    build_add(model, "model.layers.1.self_attn.q_proj.bias", width, 1);
    save_folder(model, in_folder("model"), BUILD_F32);
    checkpoint = open_checkpoint(in_folder("model"));
    assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                          LMQ_ERR_UNSUPPORTED, "blk.0.attn_q.bias");
    assert_export_refuses(checkpoint, in_folder("m.bin"),
                          &(struct lmq_export_options){.to = "llama2c",
                                                       .type = "f16"},
                          LMQ_ERR_ARG, "no type");
    assert_export_refuses(checkpoint, in_folder("m.bin"),
                          &(struct lmq_export_options){.to = "llama2c",
                                                       .shard_size = 9},
                          LMQ_ERR_ARG, "one file");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(rows_of_odd_length_are_refused)
{
    struct build_sizes odd = build_small;

    odd.hidden = 42;
    struct build_model *model = build_model(&odd, 5);
    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                          LMQ_ERR_UNSUPPORTED, "24 and 42");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(nothing_that_is_not_finite_is_exported)
{
    static const char *const names[] = {"layers.1.mlp.up_proj.weight",
                                        "model.norm.weight"};

    for (size_t i = 0; i < 2; i++) {
        struct build_model *model = build_model(&even, 5);
        /* This one carries into the sign when it is rounded. */
        const uint32_t bits = 0xffffffff;
        memcpy(&build_find(model, names[i])->x[7], &bits, sizeof(bits));
        save_folder(model, in_folder("model"), BUILD_F32);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("model"));
        assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                              LMQ_ERR_NONFINITE, "NaN");
        assert_export_refuses(
            checkpoint, in_folder("out"),
            &(struct lmq_export_options){.to = "safetensors"},
            LMQ_ERR_NONFINITE, "NaN or infinity at element 7");
        assert_export_refuses(
            checkpoint, in_folder("out"),
            &(struct lmq_export_options){.to = "safetensors",
                                         .type = "bf16"},
            LMQ_ERR_NONFINITE, "NaN or infinity at element 7");
        lmq_checkpoint_close(checkpoint);
        build_free(model);
    }
}
END_TEST

/* ---- The tokenizer beside llama2.c's file ---- */

static void
export_with_tokenizer(const char *tokenizer, const char *to,
                      struct lmq_report **report)
{
    const struct lmq_open_options open = {.tokenizer = tokenizer};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    ck_assert_int_eq(lmq_checkpoint_open(in_folder("model"), &open,
                                         &checkpoint, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_export(checkpoint, to, &llama2c, NULL, report, &err),
                     LMQ_OK);
    lmq_checkpoint_close(checkpoint);
}

START_TEST(the_tokenizer_comes_along_and_replaces_none)
{
    const char *fable = source_path("data/fable/tokenizer.bin");
    struct build_sizes sizes = even;
    struct lmq_report *report;
    size_t n, m;

    sizes.vocab = 512;
    struct build_model *model = build_model(&sizes, 5);
    save_folder(model, in_folder("model"), BUILD_F32);
    export_with_tokenizer(fable, in_folder("a.bin"), &report);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "files")), 2);
    free(read_file(in_folder("a.bin"), &n));
    unsigned char *made = read_file(in_folder("tokenizer.bin"), &m);
    ck_assert(lmq_report_number(report, "output_bytes") == (double)(n + m));
    lmq_report_free(report);
    unsigned char *wanted =
        read_file(source_path("data/fable/tokenizer.bin"), &n);
    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(made, wanted, n);
    free(made);
    /* Again: it is there. Then another one is. */
    export_with_tokenizer(fable, in_folder("b.bin"), &report);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "files")), 1);
    lmq_report_free(report);
    wanted[m - 1] ^= 1;
    for (int i = 0; i < 2; i++) {
        write_file(in_folder("tokenizer.bin"), wanted, i == 0 ? 4 : m);
        export_with_tokenizer(fable, in_folder(i == 0 ? "c.bin" : "e.bin"),
                              &report);
        ck_assert_ptr_nonnull(
            strstr(lmq_report_string(report, "notes.0"), "another one"));
        lmq_report_free(report);
        free(read_file(in_folder("tokenizer.bin"), &n));
        ck_assert_uint_eq(n, i == 0 ? 4 : m);
    }
    free(wanted);
    /* Of a model without a tokenizer nobody knows. */
    struct lmq_checkpoint *bare = open_checkpoint(in_folder("model"));
    struct lmq_error err;
    ck_assert_int_eq(
        lmq_export(bare, in_folder("d.bin"), &llama2c, NULL, &report, &err),
        LMQ_OK);
    ck_assert_ptr_nonnull(
        strstr(lmq_report_string(report, "notes.0"), "not there"));
    ck_assert_ptr_nonnull(
        strstr(lmq_report_string(report, "notes.1"), "not known"));
    lmq_report_free(report);
    lmq_checkpoint_close(bare);
    build_free(model);
}
END_TEST

/* A SentencePiece model whose normalizer has these fields. */
static void
save_model(const char *path, const void *fields, size_t n)
{
    const unsigned char head[] = {0x1a, (unsigned char)(0x80 | (n & 0x7f)),
                                  (unsigned char)(n >> 7)};
    struct lmq_buffer extra = {0};

    add_bytes(&extra, SPM_BPE, sizeof(SPM_BPE) - 1);
    add_bytes(&extra, head, sizeof(head));
    add_bytes(&extra, fields, n);
    struct lmq_buffer file = spm_file((const char *)extra.bytes, extra.n);
    write_file(path, file.bytes, file.n);
    lmq_buffer_free(&file);
    lmq_buffer_free(&extra);
}

START_TEST(what_the_tokenizer_loses_is_told)
{
    /* Prefix, extra spaces, and a charsmap of so many bytes. */
    unsigned char mapped[7 + N_CHARSMAP] = {0x18, 1, 0x20, 0, 0x12,
                                            0x80 | (N_CHARSMAP & 0x7f),
                                            N_CHARSMAP >> 7};
    unsigned char both[7 + N_CHARSMAP];
    const struct {
        const void *fields;
        size_t n;
        const char *notes[2];
    } models[] = {
        {"\x18\1\x20\0", 4, {NULL}},
        {"\x18\0\x20\0", 4, {"beginnings of texts become"}},
        {"\x18\1\x20\1", 4, {"white space in a row"}},
        {mapped, sizeof(mapped), {"characters that it normalizes become"}},
        {both, sizeof(both), {"white space in a row", "it normalizes"}},
    };
    struct build_sizes sizes = even;

    write_charsmap(mapped + 7);
    memcpy(both, mapped, sizeof(both));
    both[3] = 1;
    sizes.vocab = N_IDS;
    struct build_model *model = build_model(&sizes, 5);
    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const char *told[2] = {NULL};
        struct lmq_report *report;
        size_t n = 0;
        save_model(in_folder("t.model"), models[i].fields, models[i].n);
        export_with_tokenizer(in_folder("t.model"), in_folder("t.bin"),
                              &report);
        const struct lmq_report *notes = lmq_report_at(report, "notes");
        for (size_t k = 0; k < lmq_report_length(notes); k++) {
            char path[32];
            snprintf(path, sizeof(path), "notes.%zu", k);
            const char *note = lmq_report_string(report, path);
            if (strstr(note, "cannot say") != NULL && n < 2)
                told[n++] = note;
        }
        for (size_t k = 0; k < 2; k++)
            ck_assert_msg(models[i].notes[k] == NULL
                              ? told[k] == NULL
                              : told[k] != NULL &&
                                    strstr(told[k], models[i].notes[k]) != NULL,
                          "model %zu: '%s'", i, told[k] ? told[k] : "");
        lmq_report_free(report);
        unlink(in_folder("t.bin"));
        unlink(in_folder("tokenizer.bin"));
    }
    build_free(model);
}
END_TEST

/* ---- What is not exported ---- */

START_TEST(other_formats_are_not_known)
{
    struct build_model *model = build_model(&build_small, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    assert_export_refuses(checkpoint, in_folder("x"),
                          &(struct lmq_export_options){.to = "onnx"},
                          LMQ_ERR_ARG, ".to is 'onnx', expected 'gguf'");
    assert_export_refuses(checkpoint, in_folder("x"),
                          &(struct lmq_export_options){0}, LMQ_ERR_ARG,
                          "no format");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(a_damaged_container_is_not_exported)
{
    struct build_model *model = build_model(&build_small, 5);
    size_t n;

    save_folder(model, in_folder("model"), BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("m.lmq"), NULL));
    unsigned char *bytes = read_file(in_folder("m.lmq"), &n);
    bytes[1000] ^= 1; /* a weight */
    write_file(in_folder("m.lmq"), bytes, n);
    free(bytes);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("m.lmq"));
    assert_export_refuses(checkpoint, in_folder("m.bin"), &llama2c,
                          LMQ_ERR_FORMAT, "damaged");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

/* ---- The same model? ---- */

static double
drift(const char *reference, const char *judged)
{
    const char *texts[] = {source_path("data/fable/held-out-b.txt")};
    const struct lmq_validate_options options = {
        .texts = texts, .n_texts = 1, .max_tokens = 600,
        .session = &(struct lmq_session_options){.context = 128,
                                                 .activations = "f32"}};
    const struct lmq_open_options open = {
        .tokenizer = source_path("data/fable/tokenizer.bin")};
    struct lmq_checkpoint *a, *b;
    struct lmq_report *report;
    struct lmq_error err = {0};
    int is_partial;

    ck_assert_int_eq(lmq_checkpoint_open(reference, &open, &a, &err), LMQ_OK);
    ck_assert_int_eq(lmq_checkpoint_open(judged, &open, &b, &err), LMQ_OK);
    ck_assert_msg(lmq_validate(a, b, &options, NULL, &report, &is_partial,
                               &err) == LMQ_OK,
                  "%s", err.message);
    double kld = lmq_report_number(report, "kld.max");
    ck_assert_double_gt(lmq_report_number(report, "scored"), 100);
    lmq_report_free(report);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return kld;
}

START_TEST(exports_of_a_trained_model_do_not_drift)
{
    const char *lmq = in_folder("fable.lmq");

    lmq_report_free(convert(source_path("data/fable"), lmq, NULL));
    struct lmq_report *report =
        export_to(lmq, in_folder("fable.bin"), &llama2c);
    for (size_t i = 0; i < 9; i++) {
        char key[16];
        snprintf(key, sizeof(key), "notes.%zu", i);
        const char *note = lmq_report_string(report, key);
        ck_assert(note == NULL || strstr(note, "begins every text") == NULL);
    }
    lmq_report_free(report);
    lmq_report_free(export_to(lmq, in_folder("fable"), &safetensors));
    ck_assert_double_eq(drift(lmq, in_folder("fable.bin")), 0);
    ck_assert_double_eq(drift(lmq, in_folder("fable")), 0);
    assert_identical(lmq, in_folder("fable"));
    ck_assert(exists(in_folder("fable/tokenizer.json")));
}
END_TEST

/* ---- Containers again ---- */

/* Another group and method adds a little error, another layout adds none. */
START_TEST(a_container_becomes_another_with_a_warning)
{
    const struct lmq_convert_options finer = {.group_size = 32,
                                              .scales = "f32"};
    const char *first = in_folder("first.lmq");
    const char *second = in_folder("second.lmq");
    const char *third = in_folder("third.lmq");

    lmq_report_free(convert(source_path("data/fable"), first, NULL));
    struct lmq_report *report = convert(first, second, &finer);
    ck_assert_ptr_nonnull(strstr(lmq_report_string(report, "notes.0"),
                                 "quantized already"));
    ck_assert_str_eq(lmq_report_string(report, "format"), "lmq");
    lmq_report_free(report);
    assert_intact(second);
    double kld = drift(first, second);
    ck_assert_double_gt(kld, 0);
    ck_assert_double_lt(kld, 0.1);
    report = diff(first, second, 1);
    ck_assert_double_gt(lmq_report_number(report, "snr_db"), 40);
    lmq_report_free(report);
    lmq_report_free(convert(source_path("data/fable"), first,
                            &(struct lmq_convert_options){
                                .method = "absmax", .scales = "f32",
                                .replaces = 1}));
    lmq_report_free(convert(first, third,
                            &(struct lmq_convert_options){
                                .method = "absmax", .scales = "f32",
                                .layout = "rows"}));
    report = diff(first, third, 1);
    ck_assert(lmq_report_number(report, "identical") == 1);
    lmq_report_free(report);
}
END_TEST

/* llama.cpp adds those of experts to floats without a look at their type.
 * Weights that are alike stay what they are, and who has no tokenizer says
 * so. */
START_TEST(biases_of_a_gguf_are_float32)
{
    static const char none[] = "\x08\0\0\0\0\0\0\0no_vocab";
    const struct lmq_export_options half = {.to = "gguf", .type = "f16"};
    const struct lmq_export_options same = {.to = "gguf"};
    struct family_model *model = family_make(family_find("gpt-oss"), 1, 100, 1);
    size_t n_biases = 0, n_weights = 0, n;

    family_write(model, in_folder("family"));
    family_free(model);
    lmq_report_free(export_to(in_folder("family"), in_folder("b.gguf"), &half));
    lmq_report_free(export_to(in_folder("b.gguf"), in_folder("a.gguf"), &same));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.gguf"));
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        bool is_bias = tensor->place.part == LMQ_PART_BIAS;
        if (!is_bias && tensor->place.role != LMQ_ROLE_FFN_GATE)
            continue;
        REQUIRE(tensor->dtype == (is_bias ? LMQ_DTYPE_F32 : LMQ_DTYPE_F16),
                "%s", tensor->name);
        n_biases += tensor->place.role == LMQ_ROLE_FFN_GATE && is_bias;
        n_weights += !is_bias;
    }
    ck_assert_uint_gt(n_biases, 0);
    ck_assert_uint_gt(n_weights, 0);
    lmq_checkpoint_close(checkpoint);
    unsigned char *bytes = read_file(in_folder("b.gguf"), &n);
    ck_assert_ptr_nonnull(memmem(bytes, n, none, sizeof(none) - 1));
    free(bytes);
}
END_TEST

/* What its remarks say of llama.cpp; NULL for nothing. */
static const char *
find_remark(const struct lmq_report *report)
{
    char key[32];
    const char *note;

    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "notes.%d", i);
        note = lmq_report_string(report, key);
        if (note == NULL || strncmp(note, "llama.cpp ", 10) == 0)
            return note;
    }
    return NULL;
}

static void
edit_config(const char *folder, const char *from, const char *to)
{
    char path[4096];
    size_t n;

    snprintf(path, sizeof(path), "%s/config.json", folder);
    char *text = (char *)read_file(path, &n);
    text = realloc(text, n + 1);
    ck_assert_ptr_nonnull(text);
    text[n] = '\0';
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    const char *rest = text;
    for (const char *at; (at = strstr(rest, from)) != NULL;
         rest = at + strlen(from))
        fprintf(file, "%.*s%s", (int)(at - rest), rest, to);
    fputs(rest, file);
    ck_assert_int_eq(fclose(file), 0);
    free(text);
}

static void
write_scaled(const char *name, const char *scaling, const char *folder)
{
    struct family_model *model = family_make(family_find(name), 1, 0, 1);
    char words[512];

    family_write(model, folder);
    family_free(model);
    snprintf(words, sizeof(words), "\"rope_scaling\": {%s}",
             scaling == NULL ? "" : scaling);
    if (scaling != NULL)
        edit_config(folder, "\"rope_scaling\": null", words);
}

#define LLAMA3                                                                \
    "\"rope_type\": \"llama3\", \"factor\": 4, \"low_freq_factor\": 1, "      \
    "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 16"
#define YARN_BY(factor)                                                       \
    "\"rope_type\": \"yarn\", \"factor\": " factor                            \
    ", \"original_max_position_embeddings\": 16"
#define YARN YARN_BY("4")

START_TEST(what_llama_cpp_takes_for_granted_is_told)
{
    static const struct {
        const char *family, *scaling, *words;
    } cases[] = {
        {"phi3", NULL, "leaves out the window of 'phi3': beyond 10 tokens"},
        {"cohere-plus", NULL, "does not load this 'command-r': it has norms"},
        {"deepseek2-lite", NULL,
         "does not load this 'deepseek2': it has queries"},
        {"gpt-oss", NULL, "rounds where the ramp of YaRN begins"},
        {"exaone4", NULL, "as wide as the model together, 60, not 84"},
        {"jamba-library", NULL, "as wide as the model together, 48, not 64"},
        {"falcon-mamba", NULL, NULL},
        {"qwen3", NULL, NULL},
        {"nemotron", NULL, NULL},
        {"llama2", LLAMA3, NULL},
        {"qwen3", LLAMA3, "does not load this 'qwen3': it knows no factors"},
        {"falcon-h1", LLAMA3, "it leaves out the factors of frequencies"},
        {"qwen3", YARN, NULL},
        {"qwen3", YARN ", \"beta_fast\": 16", "takes 32 and 1 for where"},
        {"qwen3", YARN ", \"beta_slow\": 2", "takes 32 and 1 for where"},
        {"qwen3", YARN_BY("1") ", \"beta_slow\": 2", NULL},
    };
    const struct lmq_export_options all = {.to = "gguf", .replaces = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_scaled(cases[i].family, cases[i].scaling, in_folder("source"));
        struct lmq_report *report =
            export_to(in_folder("source"), in_folder("a.gguf"), &all);
        const char *remark = find_remark(report);
        if (cases[i].words == NULL)
            ck_assert_msg(remark == NULL, "%zu: %s", i, remark);
        else
            ck_assert_msg(remark != NULL &&
                              strstr(remark, cases[i].words) != NULL,
                          "%zu: %s", i, remark == NULL ? "nothing" : remark);
        lmq_report_free(report);
    }
}
END_TEST

/* What recurs is what llama.cpp looks for in a hybrid. */
START_TEST(hybrids_of_attention_alone_are_told)
{
    static const char *const names[] = {"lfm2", "lfm2-experts", "qwen35",
                                        "qwen35moe", "qwen3next-sparse"};
    const struct lmq_export_options all = {.to = "gguf", .replaces = 1};
    const char *folder = in_folder("source");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct family family = *family_find(names[i]);
        family.shape.delta = "0";
        struct family_model *model = family_make(&family, 1, 0, 1);
        family_write(model, folder);
        family_free(model);
        edit_config(folder, "\"conv\"", "\"full_attention\"");
        edit_config(folder, "linear_attention", "full_attention");
        edit_config(folder, "attn_idxs\": [2]", "attn_idxs\": [0, 1, 2, 3]");
        struct lmq_report *report =
            export_to(folder, in_folder("a.gguf"), &all);
        const char *remark = find_remark(report);
        ck_assert_msg(remark != NULL &&
                          strstr(remark, "wants a convolution") != NULL,
                      "%s: %s", names[i], remark == NULL ? "nothing" : remark);
        lmq_report_free(report);
    }
}
END_TEST

/* One of the second generation may have any width. */
START_TEST(a_mamba_of_another_width_is_told)
{
    static const char *const cases[][2] = {{"mamba", "model, 96, not 48"},
                                           {"jamba", "model, 112, not 56"}};
    const struct lmq_export_options all = {.to = "gguf", .replaces = 1};
    const char *folder = in_folder("source");

    for (size_t i = 0; i < 2; i++) {
        struct family family = *family_find(cases[i][0]);
        family.shape.delta_values = family.shape.dim;
        struct family_model *model = family_make(&family, 1, 0, 1);
        family_write(model, folder);
        family_free(model);
        edit_config(folder, "expand\": 2", "expand\": 1");
        struct lmq_report *report =
            export_to(folder, in_folder("a.gguf"), &all);
        const char *remark = find_remark(report);
        ck_assert_ptr_nonnull(remark);
        ck_assert_ptr_nonnull(strstr(remark, cases[i][1]));
        lmq_report_free(report);
    }
}
END_TEST

START_TEST(a_mimo_with_other_weights_of_experts_is_told)
{
    const struct lmq_export_options all = {.to = "gguf", .replaces = 1};
    const char *folder = in_folder("source");

    for (int is_scaled = 0; is_scaled < 2; is_scaled++) {
        write_scaled("mimo2", NULL, folder);
        if (is_scaled)
            edit_config(folder, "\"routed_scaling_factor\": null",
                        "\"routed_scaling_factor\": 2.5");
        struct lmq_report *report =
            export_to(folder, in_folder("a.gguf"), &all);
        const char *remark = find_remark(report);
        ck_assert((remark != NULL) == (is_scaled == 1));
        ck_assert(remark == NULL || strstr(remark, "sum to 1") != NULL);
        lmq_report_free(report);
    }
}
END_TEST

/* It adds theirs in each layer that has experts. */
START_TEST(experts_without_shared_ones_are_told)
{
    const struct lmq_export_options all = {.to = "gguf", .replaces = 1};
    const char *folder = in_folder("source");
    struct family family = *family_find("solar-open");

    family.shape.shared_dim = 0;
    struct family_model *model = family_make(&family, 1, 0, 1);
    family_write(model, folder);
    family_free(model);
    edit_config(folder, "\"n_shared_experts\": 1", "\"n_shared_experts\": 0");
    struct lmq_report *report = export_to(folder, in_folder("a.gguf"), &all);
    const char *remark = find_remark(report);
    ck_assert_msg(remark != NULL &&
                      strstr(remark, "computes shared experts") != NULL,
                  "%s", remark == NULL ? "nothing" : remark);
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        llama2c_gets_the_very_values_of_a_container,
        llama2c_from_floats_is_quantized,
        llama2c_refuses_what_runq_does_not_compute,
        rows_of_odd_length_are_refused,
        nothing_that_is_not_finite_is_exported,
        the_tokenizer_comes_along_and_replaces_none,
        what_the_tokenizer_loses_is_told,
        other_formats_are_not_known,
        a_damaged_container_is_not_exported,
        exports_of_a_trained_model_do_not_drift,
        a_container_becomes_another_with_a_warning,
        biases_of_a_gguf_are_float32,
        what_llama_cpp_takes_for_granted_is_told,
        hybrids_of_attention_alone_are_told,
        a_mamba_of_another_width_is_told,
        a_mimo_with_other_weights_of_experts_is_told,
        experts_without_shared_ones_are_told,
    };

    return RUN_SUITE("export", tests);
}
