/*
 * test_convert.c - converting: what is chosen, what is written, that nothing
 * else is left.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "convert/plan.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

static struct build_model *
tied(bool is_tied)
{
    struct build_sizes sizes = build_small;

    sizes.is_tied = is_tied;
    return build_model(&sizes, 11);
}

/* Converting fails with this status, speaks of `text`, leaves no file. */
static void
assert_convert_refuses(const char *from,
                       const struct lmq_convert_options *options,
                       enum lmq_status status, const char *text)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    struct lmq_report *report;
    struct lmq_error err;
    size_t before = files_in_folder();

    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("refused.lmq"),
                                 options, NULL, &report, &err),
                     (int)status);
    ck_assert_ptr_null(report);
    ck_assert_msg(strstr(err.message, text) != NULL,
                  "'%s' does not speak of '%s'", err.message, text);
    ck_assert_uint_eq(files_in_folder(), before);
    lmq_checkpoint_close(checkpoint);
}

/* ---- Settings ---- */

START_TEST(options_are_understood_or_refused)
{
    struct lmq_convert_settings settings = {0};
    struct lmq_error err;
    static const struct lmq_convert_options wrong[] = {
        {.group_size = 16}, {.group_size = 48},      {.group_size = 512},
        {.scales = "f64"},  {.method = "best"},      {.tie = ""},
        {.layout = "ROWS"}, {.on_nonfinite = "one"}, {.threads = -1},
    };

    ck_assert_int_eq(lmq_convert_settings_parse(
                         &(struct lmq_convert_options){0}, &settings, &err),
                     LMQ_OK);
    ck_assert_uint_eq(settings.quant.group_size, 64);
    ck_assert_int_eq(settings.quant.scales, LMQ_SCALES_F16);
    ck_assert_int_eq(settings.quant.method, LMQ_METHOD_SEARCH);
    ck_assert(settings.ties && !settings.zeroes && !settings.is_compressed);
    const struct lmq_convert_options all = {
        .group_size = 256, .scales = "f32", .method = "absmax",
        .tie = "never", .on_nonfinite = "zero", .layout = "tiles",
        .is_compressed = 1};
    ck_assert_int_eq(lmq_convert_settings_parse(&all, &settings, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_convert_check(&all, &err), LMQ_OK);
    ck_assert_uint_eq(settings.quant.group_size, 256);
    ck_assert_int_eq(settings.quant.scales, LMQ_SCALES_F32);
    ck_assert_int_eq(settings.quant.method, LMQ_METHOD_ABSMAX);
    ck_assert_int_eq(settings.layout, LMQ_LAYOUT_TILES);
    ck_assert(!settings.ties && settings.zeroes && settings.is_compressed);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(
            lmq_convert_settings_parse(&wrong[i], &settings, &err),
            LMQ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(err.message, "expected"));
        ck_assert_int_eq(lmq_convert_check(&wrong[i], &err), LMQ_ERR_ARG);
    }
}
END_TEST

/* ---- Tied heads ---- */

static void
assert_tie(struct lmq_report *report, const char *rule)
{
    ck_assert_str_eq(lmq_report_string(report, "tie.rule"), rule);
    ck_assert(lmq_report_number(report, "tie.tied") == (*rule != '\0'));
    lmq_report_free(report);
}

/* All of them, until the next call. */
static const char *
note(const struct lmq_report *report)
{
    static char text[4096];
    const struct lmq_report *notes = lmq_report_at(report, "notes");
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < lmq_report_length(notes); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n",
                                 lmq_report_string(lmq_report_item(notes, i),
                                                   ""));
    return text;
}

START_TEST(a_tie_is_found_by_configuration)
{
    struct build_model *model = tied(true);

    save_folder(model, in_folder("model"), BUILD_F32);
    assert_tie(convert(in_folder("model"), in_folder("a.lmq"), NULL),
               "configuration");
    build_free(model);
}
END_TEST

START_TEST(a_tie_is_found_by_absence)
{
    struct build_model *model = tied(true);

    model->sizes.is_tied = false; /* says config.json */
    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), NULL);
    ck_assert_ptr_nonnull(strstr(note(report), "there is none"));
    assert_tie(report, "absence");
    build_free(model);
}
END_TEST

START_TEST(a_tie_is_found_by_contents)
{
    struct build_model *model = build_model( /* more than is read at once */
        &(struct build_sizes){24, 40, 2, 4, 2, 11000, 64, false}, 5);
    struct build_tensor *head = build_find(model, "lm_head.weight");

    memcpy(head->x, build_find(model, "embed_tokens.weight")->x,
           head->n_elements * sizeof(float));
    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), NULL);
    ck_assert_ptr_nonnull(strstr(note(report), "stored once"));
    assert_tie(report, "contents");
    model->sizes.is_tied = true;
    save_folder(model, in_folder("model"), BUILD_F32);
    assert_tie(convert(in_folder("model"), in_folder("b.lmq"), NULL),
               "contents");
    /* One bit, at the end. */
    head->x[head->n_elements - 1] =
        nextafterf(head->x[head->n_elements - 1], 1);
    model->sizes.is_tied = false;
    save_folder(model, in_folder("model"), BUILD_F32);
    assert_tie(convert(in_folder("model"), in_folder("c.lmq"), NULL), "");
    build_free(model);
}
END_TEST

START_TEST(a_configuration_that_contradicts_the_bytes_is_an_error)
{
    struct build_model *model = tied(false);

    model->sizes.is_tied = true;
    save_folder(model, in_folder("model"), BUILD_F32);
    assert_convert_refuses(in_folder("model"), NULL, LMQ_ERR_FORMAT,
                           "'lm_head.weight' is there and differs");
    build_free(model);
}
END_TEST

START_TEST(an_untied_head_stays_and_tie_never_writes_one)
{
    struct build_model *model = tied(false);
    struct lmq_convert_options never = {.tie = "never"};

    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), NULL);
    ck_assert(lmq_report_number(report, "totals.aliases") == 0);
    assert_tie(report, "");
    build_free(model);

    model = tied(true);
    save_folder(model, in_folder("tied"), BUILD_F32);
    report = convert(in_folder("tied"), in_folder("b.lmq"), &never);
    ck_assert(lmq_report_number(report, "totals.aliases") == 0);
    lmq_report_free(report);
    assert_intact(in_folder("b.lmq"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("b.lmq"));
    size_t n, m;
    float *head = read_tensor(checkpoint, "output.weight", &n);
    float *embedding = read_tensor(checkpoint, "token_embd.weight", &m);
    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(head, embedding, n * sizeof(float));
    ck_assert_ptr_null(
        lmq_checkpoint_find_name(checkpoint, "output.weight")->alias_of);
    free(head);
    free(embedding);
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

/* ---- What is quantized, what is kept ---- */

#define ENTRY(name, dtype, shape, range)                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                  \
    ",\"data_offsets\":" range "}"

START_TEST(whole_numbers_and_other_shapes_are_kept)
{
    static const char header[] =
        "{" ENTRY("i64", "I64", "[2]", "[0,16]") "," ENTRY(
            "u8", "U8", "[2,3]", "[16,22]") "," ENTRY(
            "cube", "F16", "[2,2,2]", "[22,38]") "," ENTRY(
            "matrix", "F32", "[2,3]", "[38,62]") "," ENTRY(
            "scalar", "F32", "[]", "[62,66]") "," ENTRY(
            "flags", "BOOL", "[2]", "[66,68]") "}";
    struct bytes data = {0}, file = {0};
    size_t n;

    put_u64(&data, (uint64_t)1 << 60 | 1);
    put_u64(&data, UINT64_MAX);
    put(&data, "\x00\x01\x7f\x80\xfe\xff", 6);
    for (int i = 0; i < 8; i++)
        put_u16(&data, (uint16_t)(0x3c00 + i));
    for (int i = 0; i < 6; i++)
        put_f32(&data, (float)i - 2.5f);
    put_f32(&data, 0.1f);
    put(&data, "\x00\x01", 2);
    put_safetensors_raw(&file, header, data.at, data.n);
    save(&file, in_folder("a.safetensors"));
    struct lmq_report *report =
        convert(in_folder("a.safetensors"), in_folder("a.lmq"), NULL);
    ck_assert(lmq_report_number(report, "totals.quantized") == 1);
    ck_assert(lmq_report_number(report, "totals.kept") == 5);
    lmq_report_free(report);
    assert_intact(in_folder("a.lmq"));

    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.lmq"));
    unsigned char raw[16];
    struct lmq_error err;
    ck_assert_int_eq(
        lmq_checkpoint_read_raw(checkpoint,
                                lmq_checkpoint_find_name(checkpoint, "i64"),
                                0, 2, raw, &err),
        LMQ_OK);
    ck_assert_mem_eq(raw, data.at, 16);
    const struct lmq_tensor *cube =
        lmq_checkpoint_find_name(checkpoint, "cube");
    ck_assert_int_eq(cube->dtype, LMQ_DTYPE_F32);
    ck_assert_uint_eq(cube->n_dims, 3);
    float *x = read_tensor(checkpoint, "cube", &n);
    for (int i = 0; i < 8; i++)
        ck_assert(x[i] == 1 + (float)i / 1024);
    free(x);
    x = read_tensor(checkpoint, "scalar", &n);
    ck_assert_uint_eq(n, 1);
    ck_assert(x[0] == 0.1f);
    free(x);
    ck_assert_str_eq(
        lmq_checkpoint_find_name(checkpoint, "matrix")->encoding, "q8");
    ck_assert_int_eq(lmq_checkpoint_find_name(checkpoint, "u8")->dtype,
                     LMQ_DTYPE_U8);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&data);
    bytes_free(&file);
}
END_TEST

/* Of an architecture that is not known they are tensors like any other. */
START_TEST(matrices_of_heads_without_a_head_have_no_role)
{
    static const char *const names[] = {"blk.0.attn_v_b.weight",
                                        "blk.1.attn_k_b.weight"};
    struct build_model model = {0};

    for (size_t i = 0; i < 2; i++)
        build_add(&model, names[i], (uint64_t[]){3, 64}, 2);
    save_safetensors(&model, in_folder("m.safetensors"));
    lmq_report_free(
        convert(in_folder("m.safetensors"), in_folder("m.lmq"), NULL));
    assert_intact(in_folder("m.lmq"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("m.lmq"));
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(
            lmq_checkpoint_find_name(checkpoint, names[i])->place.role,
            LMQ_ROLE_OTHER);
    lmq_checkpoint_close(checkpoint);
    for (size_t i = 0; i < model.n_tensors; i++)
        free(model.tensors[i].x);
    free(model.tensors);
}
END_TEST

/* One matrix, [rows][cols], and its conversion read back against the rows
 * quantized one by one. */
static void
assert_matrix_converts(size_t rows, size_t cols,
                       const struct lmq_convert_options *options,
                       struct random *random)
{
    struct build_model model = {0};
    struct build_tensor *tensor =
        build_add(&model, "m", (uint64_t[]){rows, cols}, 2);
    struct lmq_convert_settings settings = {0};
    struct lmq_error err;
    size_t n;

    for (size_t i = 0; i < tensor->n_elements; i++)
        tensor->x[i] = (float)((double)random_below(random, 65536) - 32768) *
                       0x1p-20f;
    save_safetensors(&model, in_folder("m.safetensors"));
    struct lmq_report *report =
        convert(in_folder("m.safetensors"), in_folder("m.lmq"), options);
    lmq_convert_settings_parse(options, &settings, &err);
    unsigned group = settings.quant.group_size;
    struct lmq_quant_stats stats = {0};
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("m.lmq"));
    settings.quant.multiplier =
        lmq_checkpoint_container(checkpoint)->records[0].quant.multiplier;
    int8_t *q = malloc(cols);
    float *scales = malloc((cols / group + 1) * sizeof(*scales));
    float *back = read_tensor(checkpoint, "m", &n);
    for (size_t row = 0; row < rows; row++) {
        struct lmq_quant_stats one = {0};
        lmq_quantize_row(&settings.quant, tensor->x + row * cols, cols, q,
                         scales, &one);
        lmq_quant_stats_merge(&stats, &one, row * cols,
                              row * lmq_groups_per_row(cols, group));
        for (size_t i = 0; i < cols; i++)
            REQUIRE(back[row * cols + i] == (float)q[i] * scales[i / group],
                    "%zu x %zu, row %zu, column %zu", rows, cols, row, i);
    }
    ck_assert(lmq_report_number(report, "tensors.0.max_abs") ==
              (double)stats.max_abs);
    ck_assert(lmq_report_number(report, "tensors.0.worst_group") ==
              (double)stats.worst_group);
    double snr = lmq_quant_snr_db(stats.sum_sq, stats.err_sq);
    if (isfinite(snr))
        ck_assert_double_eq_tol(
            lmq_report_number(report, "tensors.0.snr_db"), snr, 1e-9);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    assert_intact(in_folder("m.lmq"));
    free(back);
    free(q);
    free(scales);
    free(tensor->x);
    free(model.tensors);
}

START_TEST(matrices_of_any_shape_convert_row_by_row)
{
    /* Rows longer than a piece (2^17), one column, one row, many rows. */
    static const size_t shapes[][2] = {
        {1, 1},    {1, 300000}, {3, 140001}, {17, 8193}, {20000, 1},
        {40, 100}, {2, 131072}, {257, 511},  {33, 64},   {70000, 3},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int variant = 0; variant < 4; variant++) {
            const struct lmq_convert_options options = {
                .layout = variant % 2 == 0 ? "rows" : "tiles",
                .scales = variant / 2 == 0 ? "f16" : "f32",
                .group_size = 32u << (i + (size_t)variant) % 4,
                .replaces = 1,
                .threads = 1 + variant,
            };
            assert_matrix_converts(shapes[i][0], shapes[i][1], &options,
                                   &random);
        }
}
END_TEST

START_TEST(the_two_layouts_hold_the_same_numbers)
{
    struct build_model *model = tied(true);
    struct lmq_convert_options tiles = {.layout = "tiles"};

    save_folder(model, in_folder("model"), BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), NULL));
    lmq_report_free(convert(in_folder("model"), in_folder("b.lmq"), &tiles));
    struct lmq_report *report =
        diff(in_folder("a.lmq"), in_folder("b.lmq"), 2);
    ck_assert(lmq_report_number(report, "identical") == 1);
    lmq_report_free(report);
    build_free(model);
}
END_TEST

START_TEST(the_number_of_threads_changes_nothing)
{
    struct build_sizes sizes = {.dim = 192, .hidden = 500, .layers = 3,
                                .heads = 6, .kv_heads = 2, .vocab = 3001,
                                .context = 64, .is_tied = true};
    struct build_model *model = build_model(&sizes, 3);
    static const char *const layouts[] = {"rows", "tiles"};

    save_folder(model, in_folder("model"), BUILD_BF16);
    for (int l = 0; l < 2; l++)
        for (int threads = 1; threads <= 5; threads++) {
            struct lmq_convert_options options = {
                .layout = layouts[l], .threads = threads, .replaces = 1};
            const char *path = in_folder(threads == 1 ? "one" : "more");
            lmq_report_free(convert(in_folder("model"), path, &options));
            assert_same_files(in_folder("one"), path);
        }
    build_free(model);
}
END_TEST

/* ---- Sizes and digests ---- */

START_TEST(a_dry_run_tells_the_exact_size_and_writes_nothing)
{
    struct build_model *model = tied(true);
    char tokenizer[1000];

    save_folder(model, in_folder("model"), BUILD_F32);
    memset(tokenizer, 'a', sizeof(tokenizer));
    write_file(in_folder("model/tokenizer.json"), tokenizer,
               sizeof(tokenizer));
    for (int i = 0; i < 8; i++) {
        struct lmq_convert_options options = {
            .is_compressed = i % 2,
            .layout = i / 2 % 2 ? "tiles" : "rows",
            .scales = i / 4 ? "f32" : "f16",
            .is_dry_run = 1};
        struct lmq_report *report =
            convert(in_folder("model"), in_folder("a.lmq"), &options);
        ck_assert_int_ne(access(in_folder("a.lmq"), F_OK), 0);
        double planned = lmq_report_number(report, "totals.output_bytes");
        lmq_report_free(report);
        options.is_dry_run = 0;
        report = convert(in_folder("model"), in_folder("a.lmq"), &options);
        ck_assert(planned ==
                  lmq_report_number(report, "totals.output_bytes"));
        lmq_report_free(report);
        size_t n;
        free(read_file(in_folder("a.lmq"), &n));
        ck_assert(planned == (double)n);
        unlink(in_folder("a.lmq"));
    }
    build_free(model);
}
END_TEST

START_TEST(the_metadata_hold_the_digests_of_the_sources)
{
    struct build_model *model = tied(true);
    struct bytes v0 = {0};
    char wanted[16];
    struct lmq_report *report;
    struct lmq_inspect_options options = {0};
    struct lmq_error err;

    put_llama2c(&v0, model, 0); /* with tables that nobody reads */
    save(&v0, in_folder("v0.bin"));
    lmq_report_free(convert(in_folder("v0.bin"), in_folder("a.lmq"), NULL));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.lmq"));
    ck_assert_int_eq(lmq_inspect(checkpoint, &options, &report, &err),
                     LMQ_OK);
    snprintf(wanted, sizeof(wanted), "%08lx",
             crc32(0, v0.at, (uInt)v0.n) & 0xffffffff);
    ck_assert_str_eq(lmq_report_string(report, "provenance.sources.0.crc32"),
                     wanted);
    ck_assert_str_eq(lmq_report_string(report, "provenance.sources.0.name"),
                     "v0.bin");
    ck_assert(lmq_report_number(report, "provenance.sources.0.size") ==
              (double)v0.n);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&v0);
    build_free(model);
}
END_TEST

/* ---- What is not finite, or hardly ---- */

START_TEST(what_is_not_finite_is_refused_by_name_and_index)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct build_model *model = tied(true);
    struct build_tensor *down =
        build_find(model, "layers.1.mlp.down_proj.weight");
    struct build_tensor *norm = build_find(model, "model.norm.weight");

    for (int i = 0; i < 3; i++) {
        down->x[91] = bad[i];
        save_folder(model, in_folder("model"), BUILD_F32);
        assert_convert_refuses(
            in_folder("model"), NULL, LMQ_ERR_NONFINITE,
            "tensor 'model.layers.1.mlp.down_proj.weight': NaN or infinity "
            "at element 91 (row 2, column 11)");
    }
    down->x[91] = 0;
    norm->x[23] = NAN;
    save_folder(model, in_folder("model"), BUILD_F32);
    assert_convert_refuses(in_folder("model"), NULL, LMQ_ERR_NONFINITE,
                           "'model.norm.weight': NaN or infinity at element "
                           "23");
    build_free(model);
}
END_TEST

START_TEST(zero_can_take_the_place_of_what_is_not_finite)
{
    struct build_model *model = tied(true), *clean = tied(true);
    struct lmq_convert_options options = {.on_nonfinite = "zero"};
    static const char *const names[] = {"layers.1.mlp.down_proj.weight",
                                        "model.norm.weight"};

    for (int i = 0; i < 2; i++) {
        build_find(model, names[i])->x[3] = NAN;
        build_find(model, names[i])->x[9] = -INFINITY;
        build_find(clean, names[i])->x[3] = 0;
        build_find(clean, names[i])->x[9] = 0;
    }
    save_folder(model, in_folder("model"), BUILD_F32);
    save_folder(clean, in_folder("clean"), BUILD_F32);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), &options);
    ck_assert(lmq_report_number(report, "totals.zeroed_elements") == 4);
    lmq_report_free(report);
    lmq_report_free(
        convert(in_folder("clean"), in_folder("b.lmq"), &options));
    assert_same_tensors(in_folder("a.lmq"), in_folder("b.lmq"));
    build_free(model);
    build_free(clean);
}
END_TEST

/* Whatever is written can be read: also at the ends of float's range. */
START_TEST(tiny_and_huge_weights_make_a_file_that_can_be_read)
{
    static const float sizes[] = {1e-6f, 1e-12f, 1e-30f, 1e-36f, 1e-40f,
                                  1e-45f, 1e6f,  1e18f,  1e25f,  1e38f};
    static const char *const scales[] = {"f16", "f32"};

    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct build_model *model = tied(true);
        struct lmq_convert_options options = {.replaces = 1,
                                              .scales = scales[i % 2]};
        struct build_tensor *gate =
            build_find(model, "layers.0.mlp.gate_proj.weight");
        float size = sizes[i / 2];
        for (size_t j = 0; j < gate->n_elements; j++)
            gate->x[j] *= size;
        save_folder(model, in_folder("model"), BUILD_F32);
        struct lmq_report *report =
            convert(in_folder("model"), in_folder("a.lmq"), &options);
        assert_intact(in_folder("a.lmq"));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.lmq"));
        size_t n;
        double err_sq = 0, sum_sq = 0;
        float *x = read_tensor(checkpoint, "blk.0.ffn_gate.weight", &n);
        for (size_t j = 0; j < n; j++) {
            double wanted = (double)gate->x[j];
            err_sq += (wanted - (double)x[j]) * (wanted - (double)x[j]);
            sum_sq += wanted * wanted;
        }
        if (size >= 1e-30f) /* below, floats themselves have fewer bits */
            ck_assert_msg(10 * log10(sum_sq / err_sq) > 40, "%g: %.1f dB",
                          (double)size, 10 * log10(sum_sq / err_sq));
        free(x);
        lmq_checkpoint_close(checkpoint);
        lmq_report_free(report);
        build_free(model);
    }
}
END_TEST

/* ---- Interruption, replacement ---- */

static int
stop_at_once(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage;
    ++*(int *)context;
    ck_assert_uint_le(done, total);
    return 1;
}

static int
refuse(void *context, const struct lmq_report *report)
{
    (void)context;
    return report != NULL;
}

START_TEST(a_cancelled_conversion_leaves_nothing)
{
    struct build_model *model = tied(true);
    int calls = 0;
    struct lmq_progress progress = {.report = stop_at_once, .context = &calls};
    struct lmq_report *report;
    struct lmq_error err;

    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("a.lmq"), NULL,
                                 &progress, &report, &err),
                     LMQ_ERR_CANCELLED);
    ck_assert_int_eq(calls, 1);
    progress = (struct lmq_progress){.approve = refuse};
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("a.lmq"), NULL,
                                 &progress, NULL, &err), LMQ_ERR_CANCELLED);
    ck_assert_uint_eq(files_in_folder(), 1);
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(an_existing_output_is_kept_unless_it_may_be_replaced)
{
    struct build_model *model = tied(true);
    struct lmq_convert_options force = {.replaces = 1};

    save_folder(model, in_folder("model"), BUILD_F32);
    write_file(in_folder("refused.lmq"), "old", 3);
    assert_convert_refuses(in_folder("model"), NULL, LMQ_ERR_IO,
                           "exists already");
    size_t n;
    unsigned char *bytes = read_file(in_folder("refused.lmq"), &n);
    ck_assert_uint_eq(n, 3);
    free(bytes);
    lmq_report_free(
        convert(in_folder("model"), in_folder("refused.lmq"), &force));
    assert_intact(in_folder("refused.lmq"));
    build_free(model);
}
END_TEST

START_TEST(a_container_is_not_converted_onto_itself)
{
    struct build_model *model = tied(true);
    struct lmq_convert_options force = {.replaces = 1, .layout = "tiles"};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    save_folder(model, in_folder("model"), BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), NULL));
    ck_assert_int_eq(
        lmq_checkpoint_open(in_folder("a.lmq"), NULL, &checkpoint, &err),
        LMQ_OK);
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("a.lmq"), &force, NULL,
                                 NULL, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "would destroy its source"));
    lmq_checkpoint_close(checkpoint);
    struct lmq_report *report =
        convert(in_folder("a.lmq"), in_folder("b.lmq"), &force);
    ck_assert_ptr_nonnull(strstr(note(report), "stay as they are"));
    lmq_report_free(report);
    assert_intact(in_folder("a.lmq"));
    assert_intact(in_folder("b.lmq"));
    build_free(model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        options_are_understood_or_refused,
        a_tie_is_found_by_configuration,
        a_tie_is_found_by_absence,
        a_tie_is_found_by_contents,
        a_configuration_that_contradicts_the_bytes_is_an_error,
        an_untied_head_stays_and_tie_never_writes_one,
        whole_numbers_and_other_shapes_are_kept,
        matrices_of_any_shape_convert_row_by_row,
        the_two_layouts_hold_the_same_numbers,
        the_number_of_threads_changes_nothing,
        a_dry_run_tells_the_exact_size_and_writes_nothing,
        the_metadata_hold_the_digests_of_the_sources,
        what_is_not_finite_is_refused_by_name_and_index,
        zero_can_take_the_place_of_what_is_not_finite,
        tiny_and_huge_weights_make_a_file_that_can_be_read,
        a_cancelled_conversion_leaves_nothing,
        an_existing_output_is_kept_unless_it_may_be_replaced,
        a_container_is_not_converted_onto_itself,
        matrices_of_heads_without_a_head_have_no_role,
    };

    return RUN_SUITE("convert", tests);
}
