/*
 * test_export_gguf.c - checkpoints as GGUF: every family there and back, what
 * is kept bit by bit, what is refused.
 *
 * The first two tests run once for each row of the table of families.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/gguf/gguf_meta.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"

/* Numbers of a description are float32 in a GGUF; a logit is about 2.5. */
#define LOGIT_BOUND 2e-4

/* ---- Helpers ---- */

static enum lmq_status
export_as(const char *from, const char *to,
          const struct lmq_export_options *options,
          struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    struct lmq_export_options all = {.to = "gguf"};

    if (options != NULL)
        all = *options;
    all.to = "gguf";
    enum lmq_status status =
        lmq_export(checkpoint, to, &all, NULL, report, err);
    lmq_checkpoint_close(checkpoint);
    return status;
}

static struct lmq_report *
export_gguf(const char *from, const char *to,
            const struct lmq_export_options *options)
{
    struct lmq_report *report;
    struct lmq_error err = {0};

    ck_assert_msg(export_as(from, to, options, &report, &err) == LMQ_OK, "%s",
                  err.message);
    return report;
}

static float *
logits_in(const char *activations, const char *path, size_t context,
          size_t *n)
{
    const struct lmq_session_options options = {
        .context = context, .activations = activations, .all_logits = 1};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_error err = {0};
    int32_t tokens[8];

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK,
                  "%s: %s", path, err.message);
    ck_assert_msg(lmq_session_new(model, &options, &session, &err) == LMQ_OK,
                  "%s", err.message);
    size_t vocabulary = lmq_model_vocabulary(model);
    for (size_t i = 0; i < 8; i++)
        tokens[i] = (int32_t)((7919 * i * i + 13 * i + 3) % vocabulary);
    ck_assert_int_eq(lmq_session_eval(session, tokens, 8, &err), LMQ_OK);
    *n = 8 * vocabulary;
    float *logits = malloc(*n * sizeof(*logits));
    ck_assert_ptr_nonnull(logits);
    for (size_t i = 0; i < 8; i++)
        memcpy(logits + i * vocabulary, lmq_session_logits(session, i),
               vocabulary * sizeof(*logits));
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return logits;
}

static float *
logits_of(const char *path, size_t context, size_t *n)
{
    return logits_in("f32", path, context, n);
}

static double
largest_difference(const char *path_a, const char *path_b, size_t context)
{
    size_t n_a, n_b;
    float *a = logits_of(path_a, context, &n_a);
    float *b = logits_of(path_b, context, &n_b);
    double most = 0;

    ck_assert_uint_eq(n_a, n_b);
    for (size_t i = 0; i < n_a; i++)
        most = larger(most, fabs((double)a[i] - (double)b[i]));
    free(a);
    free(b);
    return most;
}

/* ---- Families ---- */

static void
set_number(const char *folder, const char *key, double value)
{
    char path[4096];
    size_t n;

    snprintf(path, sizeof(path), "%s/config.json", folder);
    char *text = (char *)read_file(path, &n);
    text = realloc(text, n + 1);
    ck_assert_ptr_nonnull(text);
    text[n] = '\0';
    char *at = strstr(text, key);
    if (at != NULL) {
        at += strlen(key);
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        fprintf(file, "%.*s%g%s", (int)(at - text), text, value,
                at + strspn(at, "0123456789.e-"));
        ck_assert_int_eq(fclose(file), 0);
    }
    free(text);
}

/* Gemma's scores are scaled as all of its real models have it, which is what
 * GGUF takes for granted; and all norms have one epsilon. */
static void
write_family(const struct family_model *model, const char *folder)
{
    family_write(model, folder);
    set_number(folder, "\"query_pre_attn_scalar\": ",
               (double)model->oracle.shape.head_dim);
    set_number(folder, "\"mixer_rms_eps\": ", 1e-5);
}

/* Exports it; false if that is refused, as it must be. */
static bool
export_family(const struct family *family, const char *from,
              const struct lmq_export_options *options)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    const char *reason = family_without_gguf(family,
                                             checkpoint->hparams.architecture);
    struct lmq_report *report;
    struct lmq_error err = {0};
    enum lmq_status status =
        export_as(from, in_folder("f.gguf"), options, &report, &err);

    lmq_checkpoint_close(checkpoint);
    if (reason != NULL) {
        ck_assert_msg(status == LMQ_ERR_UNSUPPORTED &&
                          strstr(err.message, reason) != NULL,
                      "%s: %s", family->name, err.message);
        ck_assert_int_ne(access(in_folder("f.gguf"), F_OK), 0);
        return false;
    }
    ck_assert_msg(status == LMQ_OK, "%s: %s", family->name, err.message);
    lmq_report_free(report);
    return true;
}

/* Blocks are groups of a container as they are, also where they are stacked,
 * fused or in pairs; what is no multiple of 32 wide has none. */
static void
assert_blocks_come_back(const char *layout)
{
    const struct lmq_convert_options options = {.group_size = 32,
                                                .layout = layout};
    struct lmq_report *report =
        convert(in_folder("f.gguf"), in_folder("back.lmq"), &options);
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");
    bool are_all = true;

    ck_assert(lmq_report_number(report, "totals.as_stored") > 0);
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        bool is_taken = lmq_report_number(tensor, "as_stored") == 1;
        if (strcmp(lmq_report_string(tensor, "stored_type"), "q8") != 0)
            continue;
        ck_assert(is_taken == (strcmp(lmq_report_string(tensor, "source_type"),
                                      "q8_0") == 0));
        are_all &= is_taken;
    }
    lmq_report_free(report);
    if (are_all)
        assert_identical(in_folder("f.gguf"), in_folder("back.lmq"));
}

/* All the same, but for the last bit of what decays: GGUF has the exponential
 * of what we have; and but for what is multiplied there. */
static void
assert_kept_weights(const char *a, const char *b, const struct family *of)
{
    bool has_scales =
        of->shape.scores_by_width || strcmp(of->name, "falcon-h1") == 0;
    size_t n_made = of->shape.norms_all_bare ? 2 * of->shape.layers : 0;
    struct lmq_report *report = diff(a, b, 1);
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");

    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        const char *name = lmq_report_string(tensor, "name");
        double most = strstr(name, ".ssm_a.") != NULL ? 2e-7 : 0;
        if (has_scales && (strncmp(name, "token_embd.", 11) == 0 ||
                           strncmp(name, "output", 6) == 0))
            continue;
        ck_assert_msg(lmq_report_number(tensor, "max_error") <= most,
                      "%s is not kept", name);
    }
    ck_assert(lmq_report_number(report, "missing") <= (double)n_made);
    lmq_report_free(report);
}

/* Both are read, but llama.cpp looks for one of them. */
static void
assert_names_of_convolutions(const struct lmq_checkpoint *checkpoint)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    const char *name = lmq_is_convolution(h) ? ".shortconv.conv."
                       : h->has_key_decays ? ".ssm_conv1d_q." : ".ssm_conv1d.";

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->place.role == LMQ_ROLE_DELTA_CONV &&
            tensor->place.part == LMQ_PART_WEIGHT)
            ck_assert_msg(strstr(tensor->stored_name, name) != NULL, "%s",
                          tensor->stored_name);
    }
}

START_TEST(every_family_comes_back)
{
    const struct family *family = family_at((size_t)_i);
    struct family_model *model = family_make(family, 1, 0, 1);
    const struct lmq_export_options options = {.type = "f32"};

    write_family(model, in_folder("family"));
    if (export_family(family, in_folder("family"), &options)) {
        double most = largest_difference(in_folder("family"),
                                         in_folder("f.gguf"), family->context);
        ck_assert_msg(most <= LOGIT_BOUND, "%s: a logit moved by %g",
                      family->name, most);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("f.gguf"));
        ck_assert(checkpoint->notes.n == 0 || family->shape.streams > 0);
        assert_names_of_convolutions(checkpoint);
        lmq_checkpoint_close(checkpoint);
    }
    family_free(model);
}
END_TEST

/* Rows are multiples of 32 here, and so all is kept. */
START_TEST(every_family_keeps_its_int8_values)
{
    const struct family *family = family_at((size_t)_i);
    struct family_model *model = family_make(family, 8, 64, 1);
    struct lmq_convert_options options = {
        .layout = _i % 2 ? "rows" : "tiles", .method = "absmax"};

    write_family(model, in_folder("family"));
    lmq_report_free(
        convert(in_folder("family"), in_folder("f.lmq"), &options));
    if (export_family(family, in_folder("f.lmq"), NULL)) {
        double most = largest_difference(in_folder("f.lmq"),
                                         in_folder("f.gguf"), family->context);
        assert_kept_weights(in_folder("f.lmq"), in_folder("f.gguf"), family);
        ck_assert_msg(most <= LOGIT_BOUND, "%s: a logit moved by %g",
                      family->name, most);
        assert_blocks_come_back(_i % 2 ? "tiles" : "rows");
    }
    family_free(model);
}
END_TEST

/* llama.cpp has the value heads in another order, which are columns of one
 * matrix of each layer: 128 wide here, so groups of 256 would be cut. */
START_TEST(groups_that_would_be_cut_are_floats)
{
    struct family_model *model =
        family_make(family_find("qwen35-images"), 8, 64, 1);
    const struct lmq_convert_options groups = {.group_size = 256};

    family_write(model, in_folder("family"));
    lmq_report_free(
        convert(in_folder("family"), in_folder("a.lmq"), &groups));
    struct lmq_report *report =
        export_gguf(in_folder("a.lmq"), in_folder("a.gguf"), NULL);
    ck_assert_ptr_nonnull(strstr(lmq_report_string(report, "notes.0"),
                                 "3 quantized matrices become floats"));
    ck_assert_ptr_nonnull(strstr(lmq_report_string(report, "notes.1"),
                                 "the last bit of these floats"));
    ck_assert(lmq_report_number(report, "is_lossless") == 0);
    lmq_report_free(report);
    assert_kept_weights(in_folder("a.lmq"), in_folder("a.gguf"), model->family);
    /* What is in the other order already stays in it. */
    lmq_report_free(
        export_gguf(in_folder("a.gguf"), in_folder("b.gguf"), NULL));
    assert_identical(in_folder("a.gguf"), in_folder("b.gguf"));
    family_free(model);
}
END_TEST

/* A tensor that the model does not have is looked at as it is stored, however
 * long it is. */
START_TEST(only_what_fits_is_in_another_order)
{
    static const char norm[] = "blk.0.attn_norm.weight";
    static const char bias[] = "blk.0.attn_output.bias";
    const struct lmq_export_options options = {.type = "f32"};
    struct family_model *model =
        family_make(family_find("qwen35-images"), 1, 0, 1);
    struct lmq_scratch scratch = {0};
    float values[2][48];
    size_t n;

    family_write(model, in_folder("family"));
    lmq_report_free(
        export_gguf(in_folder("family"), in_folder("a.gguf"), &options));
    for (int i = 0; i < 2; i++) {
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, i == 0 ? norm : bias);
        struct lmq_error err;
        ck_assert_ptr_nonnull(tensor);
        ck_assert_uint_eq(tensor->n_elements, 48);
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, 0, 48,
                                             values[i], &scratch, &err),
                         LMQ_OK);
        lmq_checkpoint_close(checkpoint);
        unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
        for (size_t at = 0; i == 0 && at + sizeof(norm) < n; at++)
            if (memcmp(bytes + at, norm, sizeof(norm) - 1) == 0)
                memcpy(bytes + at, bias, sizeof(norm) - 1);
        write_file(in_folder("a.gguf"), bytes, n);
        free(bytes);
    }
    ck_assert_mem_eq(values[0], values[1], sizeof(values[0]));
    lmq_scratch_free(&scratch);
    family_free(model);
}
END_TEST

START_TEST(what_does_not_decay_is_refused)
{
    static const unsigned char numbers[][4] = {
        {0, 0, 0, 0x3f}, {0}, {0, 0, 0, 0xbf}}; /* 0.5, 0, -0.5 */
    const struct lmq_export_options options = {.type = "f32"};
    struct family_model *model = family_make(family_find("mamba2"), 1, 0, 1);
    size_t n;

    family_write(model, in_folder("family"));
    lmq_report_free(
        export_gguf(in_folder("family"), in_folder("a.gguf"), &options));
    for (size_t i = 0; i < 3; i++) {
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        const struct lmq_tensor *decay = lmq_checkpoint_find_name(
            checkpoint, "blk.0.ssm_a.weight");
        unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
        struct lmq_scratch scratch = {0};
        struct lmq_error err;
        float value;
        ck_assert_ptr_nonnull(decay);
        memcpy(bytes + decay->offset + 4, numbers[i], 4);
        write_file(in_folder("b.gguf"), bytes, n);
        free(bytes);
        lmq_checkpoint_close(checkpoint);
        checkpoint = open_checkpoint(in_folder("b.gguf"));
        decay = lmq_checkpoint_find_name(checkpoint, "blk.0.ssm_a.weight");
        enum lmq_status status = lmq_checkpoint_read(
            checkpoint, decay, 1, 1, &value, &scratch, &err);
        ck_assert_int_eq(status, i < 2 ? LMQ_ERR_FORMAT : LMQ_OK);
        if (i < 2)
            ck_assert_ptr_nonnull(
                strstr(err.message, "at element 1, expected less than 0"));
        lmq_scratch_free(&scratch);
        lmq_checkpoint_close(checkpoint);
    }
    family_free(model);
}
END_TEST

START_TEST(a_description_without_words_is_refused)
{
    struct family_model *model = family_make(family_find("gemma2"), 1, 0, 1);
    struct lmq_report *report;
    struct lmq_error err;

    family_write(model, in_folder("family"));
    ck_assert_int_eq(export_as(in_folder("family"), in_folder("a.gguf"), NULL,
                               &report, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "attn_scale"));
    ck_assert_int_ne(access(in_folder("a.gguf"), F_OK), 0);
    family_free(model);
}
END_TEST

/* llama.cpp loads no model of latents without these, has it experts or not. */
START_TEST(a_model_of_latents_says_that_it_has_no_experts)
{
    static const struct {
        const char *key;
        uint64_t number;
    } wanted[] = {
        {"deepseek2.leading_dense_block_count", 4},
        {"deepseek2.expert_feed_forward_length", 92},
        {"deepseek2.expert_shared_count", 0},
    };
    struct family_model *model = family_make(family_find("youtu"), 1, 0, 1);
    struct lmq_gguf_meta *meta;
    size_t n;

    family_write(model, in_folder("family"));
    lmq_report_free(
        export_gguf(in_folder("family"), in_folder("a.gguf"), NULL));
    unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
    ck_assert_int_eq(lmq_gguf_meta_open(bytes, n, &meta, NULL, NULL), LMQ_OK);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        uint64_t number = 99;
        ck_assert_int_eq(lmq_gguf_get_uint(meta, wanted[i].key, UINT32_MAX,
                                           &number, NULL),
                         LMQ_OK);
        ck_assert_uint_eq(number, wanted[i].number);
    }
    lmq_gguf_meta_close(meta);
    free(bytes);
    family_free(model);
}
END_TEST

/* ---- The bundled model ---- */

static const char *
fable(void)
{
    return source_path("data/fable");
}

START_TEST(int8_groups_become_blocks_as_they_are)
{
    static const char *const layouts[] = {"rows", "tiles"};

    for (int i = 0; i < 2; i++) {
        struct lmq_convert_options options = {.layout = layouts[i],
                                              .replaces = 1};
        struct lmq_export_options again = {.replaces = 1};
        lmq_report_free(convert(fable(), in_folder("a.lmq"), &options));
        struct lmq_report *report =
            export_gguf(in_folder("a.lmq"), in_folder("a.gguf"), &again);
        ck_assert(lmq_report_number(report, "is_lossless") == 1);
        ck_assert_str_eq(lmq_report_string(report, "type"), "q8_0");
        ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "rounded")),
                          0);
        lmq_report_free(report);
        ck_assert(largest_difference(in_folder("a.lmq"), in_folder("a.gguf"),
                                     0) <= 0);
    }
}
END_TEST

/* With the same groups they are multiplied by the same kernels. */
START_TEST(exported_integers_give_the_same_bits)
{
    static const char *const activations[] = {"q8", "q16", "f32"};
    static const char *const formats[] = {"gguf", "llama2c"};

    const struct build_sizes sizes = {64, 96, 2, 4, 2, 64, 32, true};
    struct build_model *model = build_model(&sizes, 7);

    save_folder(model, in_folder("even"), BUILD_F32);
    build_free(model);
    for (int i = 0; i < 6; i++) {
        const struct lmq_convert_options options = {
            .group_size = 32,
            .layout = i % 2 == 0 ? "rows" : "tiles",
            .replaces = 1};
        const struct lmq_export_options to = {.to = formats[i % 2],
                                              .replaces = 1};
        struct lmq_error err;
        size_t n_a, n_b;
        lmq_report_free(
            convert(in_folder("even"), in_folder("a.lmq"), &options));
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.lmq"));
        ck_assert_msg(lmq_export(checkpoint, in_folder("a.bin"), &to, NULL,
                                 NULL, &err) == LMQ_OK,
                      "%s", err.message);
        lmq_checkpoint_close(checkpoint);
        float *a = logits_in(activations[i / 2], in_folder("a.lmq"), 0, &n_a);
        float *b = logits_in(activations[i / 2], in_folder("a.bin"), 0, &n_b);
        ck_assert_uint_eq(n_a, n_b);
        REQUIRE(memcmp(a, b, n_a * sizeof(*a)) == 0, "%s, %s", formats[i % 2],
                activations[i / 2]);
        free(a);
        free(b);
    }
}
END_TEST

/* -128: floats say it, kernels for integers do not. The sign of a scale is
 * given to its integers, unless they have a -128. */
START_TEST(integers_that_no_kernel_takes_are_floats)
{
    const struct lmq_export_options to_q8 = {.type = "q8_0"};
    const struct lmq_export_options to_f32 = {.type = "f32", .replaces = 1};

    lmq_report_free(export_gguf(fable(), in_folder("a.gguf"), &to_q8));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.gguf"));
    uint64_t at = lmq_checkpoint_find(checkpoint, LMQ_ROLE_ATTN_V,
                                      LMQ_PART_WEIGHT, 0)
                      ->offset;
    lmq_checkpoint_close(checkpoint);
    for (int i = 1; i < 4; i++) {
        struct lmq_model *model;
        struct lmq_error err;
        size_t n;
        unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
        if ((i & 1) != 0)
            bytes[at + 2] = 0x80;
        if ((i & 2) != 0)
            bytes[at + 1] ^= 0x80;
        write_file(in_folder("b.gguf"), bytes, n);
        free(bytes);
        lmq_report_free(
            export_gguf(in_folder("b.gguf"), in_folder("c.gguf"), &to_f32));
        double most =
            largest_difference(in_folder("b.gguf"), in_folder("c.gguf"), 0);
        ck_assert_msg(most <= LOGIT_BOUND, "a logit moved by %g", most);
        checkpoint = open_checkpoint(in_folder("b.gguf"));
        ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err), LMQ_OK);
        ck_assert_uint_eq(checkpoint->notes.n, i & 1);
        if (checkpoint->notes.n > 0)
            ck_assert_ptr_nonnull(strstr(checkpoint->notes.texts[0], "-128"));
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(what_half_precision_cannot_say_is_rounded_and_told)
{
    struct lmq_convert_options options = {.scales = "f32"};

    lmq_report_free(convert(fable(), in_folder("a.lmq"), &options));
    struct lmq_report *report =
        export_gguf(in_folder("a.lmq"), in_folder("a.gguf"), NULL);
    ck_assert(lmq_report_number(report, "is_lossless") == 0);
    size_t n = lmq_report_length(lmq_report_at(report, "rounded"));
    ck_assert_uint_gt(n, 0); /* but no norm */
    ck_assert(lmq_report_number(report, "tensors") > (double)n);
    ck_assert_str_eq(lmq_report_string(report, "rounded.0.type"), "q8_0");
    ck_assert(lmq_report_number(report, "rounded.0.snr_db") > 45);
    ck_assert(lmq_report_number(report, "rounded.0.rms_error") > 0);
    lmq_report_free(report);
}
END_TEST

START_TEST(types_can_be_asked_for)
{
    static const struct {
        const char *name;
        bool is_lossless;
        double bits;
    } types[] = {
        {"f32", true, 32}, {"f16", false, 16}, {"bf16", false, 16},
        {"q8_0", false, 8.5},
    };
    struct lmq_report *report;
    struct lmq_error err;
    const struct lmq_export_options wrong = {.type = "q3_k"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const struct lmq_export_options options = {.type = types[i].name,
                                                   .replaces = 1};
        report = export_gguf(fable(), in_folder("a.gguf"), &options);
        ck_assert_str_eq(lmq_report_string(report, "type"), types[i].name);
        ck_assert_str_eq(lmq_report_string(report, "files.0.name"), "a.gguf");
        ck_assert(lmq_report_number(report, "is_lossless") ==
                  (types[i].is_lossless ? 1 : 0));
        lmq_report_free(report);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        ck_assert(lmq_checkpoint_find(checkpoint, LMQ_ROLE_ATTN_Q,
                                      LMQ_PART_WEIGHT, 0)
                      ->bits_per_element == types[i].bits);
        ck_assert(lmq_checkpoint_find(checkpoint, LMQ_ROLE_ATTN_NORM,
                                      LMQ_PART_WEIGHT, 0)
                      ->dtype == LMQ_DTYPE_F32);
        lmq_checkpoint_close(checkpoint);
    }
    ck_assert_int_eq(
        export_as(fable(), in_folder("b.gguf"), &wrong, &report, &err),
        LMQ_ERR_ARG);
}
END_TEST

START_TEST(the_number_of_threads_changes_nothing)
{
    size_t n_a, n_b;

    for (int threads = 1; threads <= 3; threads++) {
        const struct lmq_export_options options = {
            .type = "q8_0", .threads = threads, .replaces = 1};
        lmq_report_free(export_gguf(
            fable(), in_folder(threads == 1 ? "one" : "more"), &options));
        unsigned char *a = read_file(in_folder("one"), &n_a);
        unsigned char *b =
            read_file(in_folder(threads == 1 ? "one" : "more"), &n_b);
        ck_assert_uint_eq(n_a, n_b);
        ck_assert_mem_eq(a, b, n_a);
        free(a);
        free(b);
    }
}
END_TEST

START_TEST(an_existing_file_is_left_alone)
{
    struct lmq_report *report;
    struct lmq_error err;

    write_file(in_folder("a.gguf"), "mine", 4);
    ck_assert_int_ne(
        export_as(fable(), in_folder("a.gguf"), NULL, &report, &err), LMQ_OK);
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

int
main(void)
{
    const TTest *const each[] = {
        every_family_comes_back,
        every_family_keeps_its_int8_values,
    };
    const TTest *const tests[] = {
        groups_that_would_be_cut_are_floats,
        only_what_fits_is_in_another_order,
        what_does_not_decay_is_refused,
        a_description_without_words_is_refused,
        a_model_of_latents_says_that_it_has_no_experts,
        int8_groups_become_blocks_as_they_are,
        exported_integers_give_the_same_bits,
        integers_that_no_kernel_takes_are_floats,
        what_half_precision_cannot_say_is_rounded_and_told,
        types_can_be_asked_for,
        the_number_of_threads_changes_nothing,
        an_existing_file_is_left_alone,
    };
    size_t n = 0;

    while (family_at(n) != NULL)
        n++;
    int failed = RUN_SUITE_OVER("GGUF families", each, 0, n);
    return RUN_SUITE("GGUF export", tests) | failed;
}
