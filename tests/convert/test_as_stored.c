/*
 * test_as_stored.c - integers and scales that are as asked for, or of which
 * nothing is asked for, come through a conversion bit by bit; what a container
 * forbids does not.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"

static const char *const layouts[] = {"rows", "tiles"};
static const char *const scales[] = {"f16", "f32"};

/* Integers, then scales, of all rows. */
static unsigned char *
integers_of(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            size_t *size)
{
    struct lmq_scratch scratch = {0};
    struct lmq_error err = {0};
    size_t n_rows = (size_t)tensor->n_rows, n_cols = (size_t)tensor->n_cols;
    size_t n = n_rows * n_cols;
    size_t n_groups =
        n_rows * lmq_groups_per_row(n_cols, tensor->quant.group_size);

    *size = n + n_groups * lmq_scale_size(tensor->quant.scales);
    unsigned char *bytes = malloc(*size);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_msg(lmq_checkpoint_read_integers(
                      checkpoint, tensor, 0, n_rows, (int8_t *)bytes,
                      bytes + n, &scratch, &err) == LMQ_OK,
                  "%s", err.message);
    lmq_scratch_free(&scratch);
    return bytes;
}

/* Every matrix of integers in `from` has the same in `to`; how many. */
static size_t
assert_same_integers(const char *from, const char *to)
{
    struct lmq_checkpoint *a = open_checkpoint(from);
    struct lmq_checkpoint *b = open_checkpoint(to);
    size_t n = 0;

    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct lmq_tensor *x = &a->tensors[i];
        const struct lmq_tensor *y = lmq_checkpoint_find_name(b, x->name);
        size_t n_x, n_y;
        if (x->quant.group_size == 0)
            continue;
        REQUIRE(y != NULL &&
                    y->quant.group_size == x->quant.group_size &&
                    y->quant.multiplier == x->quant.multiplier,
                "%s: other groups", x->name);
        unsigned char *p = integers_of(a, x, &n_x);
        unsigned char *q = integers_of(b, y, &n_y);
        REQUIRE(n_x == n_y && memcmp(p, q, n_x) == 0, "%s differs", x->name);
        free(p);
        free(q);
        n++;
    }
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return n;
}

static bool
has_note(const struct lmq_report *report, const char *text)
{
    const struct lmq_report *notes = lmq_report_at(report, "notes");
    bool is_said = false;

    for (size_t i = 0; i < lmq_report_length(notes); i++)
        is_said |= strstr(lmq_report_string(lmq_report_item(notes, i), ""),
                          text) != NULL;
    return is_said;
}

/* The same bytes in the same places; what was lost before does not count. */
static void
assert_same_extents(const char *from, const char *to)
{
    struct lmq_checkpoint *a = open_checkpoint(from);
    struct lmq_checkpoint *b = open_checkpoint(to);
    const struct lmq_container *x = lmq_checkpoint_container(a);
    const struct lmq_container *y = lmq_checkpoint_container(b);

    ck_assert_uint_eq(x->n_records, y->n_records);
    for (size_t i = 0; i < x->n_records; i++) {
        ck_assert_str_eq(x->records[i].name, y->records[i].name);
        ck_assert_mem_eq(x->records[i].extents, y->records[i].extents,
                         sizeof(x->records[i].extents));
    }
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    ck_assert_uint_gt(assert_same_integers(from, to), 0);
}

static void
assert_taken(const struct lmq_report *report, double n)
{
    ck_assert(lmq_report_number(report, "totals.as_stored") == n);
    ck_assert(lmq_report_number(report, "totals.quantized") == n);
    ck_assert(lmq_report_number(report, "totals.rms_error") == 0);
    ck_assert(has_note(report, "stay as they are"));
    ck_assert(!has_note(report, "adds error"));
    char taken[64];
    snprintf(taken, sizeof(taken),
             "%.0f of %.0f matrices are quantized already: their", n, n);
    ck_assert(has_note(report, taken));
}

/* ---- Containers ---- */

/* There in another layout, and back in the first one. */
static void
assert_comes_back(const char *first, struct lmq_convert_options *options)
{
    const char *own = options->layout;
    const char *other = own == layouts[0] ? layouts[1] : layouts[0];

    options->replaces = 1;
    options->layout = other;
    struct lmq_report *report =
        convert(first, in_folder("other.lmq"), options);
    assert_taken(report, lmq_report_number(report, "totals.quantized"));
    lmq_report_free(report);
    assert_intact(in_folder("other.lmq"));
    ck_assert_uint_gt(assert_same_integers(first, in_folder("other.lmq")), 0);
    options->layout = own;
    lmq_report_free(
        convert(in_folder("other.lmq"), in_folder("back.lmq"), options));
    assert_intact(in_folder("back.lmq"));
    assert_identical(first, in_folder("back.lmq"));
    assert_same_extents(first, in_folder("back.lmq"));
}

START_TEST(containers_of_all_groups_scales_and_layouts_come_back)
{
    struct build_model *model = build_model(&build_small, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    for (unsigned i = 0; i < 16; i++) {
        struct lmq_convert_options options = {.group_size = 32u << i % 4,
                                              .scales = scales[i / 4 % 2],
                                              .layout = layouts[i / 8],
                                              .method = "absmax",
                                              .replaces = 1};
        lmq_report_free(
            convert(in_folder("model"), in_folder("a.lmq"), &options));
        options.method = "search"; /* there is nothing to search */
        assert_comes_back(in_folder("a.lmq"), &options);
    }
    build_free(model);
}
END_TEST

/* Rows beside which a piece of the conversion (2^17) is short. */
START_TEST(wide_and_narrow_matrices_come_back)
{
    static const size_t shapes[][2] = {
        {1, 1},    {1, 300000}, {3, 140001}, {17, 8193},
        {9000, 1}, {2, 131072}, {257, 511},  {33, 64},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct build_model model = {0};
        struct build_tensor *tensor = build_add(
            &model, "m", (uint64_t[]){shapes[i][0], shapes[i][1]}, 2);
        struct lmq_convert_options options = {.layout = layouts[i % 2],
                                              .threads = 1 + (int)i % 3,
                                              .replaces = 1};
        for (size_t j = 0; j < tensor->n_elements; j++)
            tensor->x[j] = (float)random_normal(&random);
        save_safetensors(&model, in_folder("m.safetensors"));
        lmq_report_free(convert(in_folder("m.safetensors"),
                                in_folder("a.lmq"), &options));
        assert_comes_back(in_folder("a.lmq"), &options);
        free(tensor->x);
        free(model.tensors);
    }
}
END_TEST

/* Rows of 40 in tiles: half as much again, at least. Smaller groups are no help
 * where there are none, nor where groups stay as they are. */
START_TEST(what_fills_groups_up_is_told_with_what_helps)
{
    static const struct {
        const char *from, *said;
        struct lmq_convert_options options;
    } cases[] = {
        {"m.safetensors", "(60 % more): .layout=rows is", {0}},
        {"m.safetensors", "(220 % more): .group_size=32 or .layout=rows is",
         {.group_size = 128}},
        {"a.lmq", "(220 % more): .layout=rows is", {.group_size = 128}},
    };
    const struct lmq_convert_options rows = {.group_size = 128,
                                             .layout = "rows"};
    struct build_model model = {0};
    struct build_tensor *tensor =
        build_add(&model, "m", (uint64_t[]){3200, 40}, 2);

    tensor->x[0] = 1;
    save_safetensors(&model, in_folder("m.safetensors"));
    lmq_report_free(
        convert(in_folder("m.safetensors"), in_folder("a.lmq"), &rows));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_convert_options options = cases[i].options;
        options.is_dry_run = 1;
        struct lmq_report *report = convert(
            in_folder(cases[i].from), in_folder("none.lmq"), &options);
        ck_assert_msg(has_note(report, cases[i].said), "%s", cases[i].said);
        lmq_report_free(report);
    }
    free(tensor->x);
    free(model.tensors);
}
END_TEST

START_TEST(rows_beyond_all_measure_are_quantized_again)
{
    struct build_model model = {0};
    struct build_tensor *tensor =
        build_add(&model, "m", (uint64_t[]){1, (1 << 20) + 1}, 2);
    const struct lmq_convert_options options = {.layout = "rows"};

    tensor->x[0] = 1;
    save_safetensors(&model, in_folder("m.safetensors"));
    lmq_report_free(
        convert(in_folder("m.safetensors"), in_folder("a.lmq"), &options));
    struct lmq_report *report =
        convert(in_folder("a.lmq"), in_folder("b.lmq"), &options);
    ck_assert(lmq_report_number(report, "totals.as_stored") == 0);
    ck_assert(has_note(report, "adds error"));
    lmq_report_free(report);
    assert_intact(in_folder("b.lmq"));
    free(tensor->x);
    free(model.tensors);
}
END_TEST

/* Weights that are too small or too large for f16 scales alone. */
START_TEST(a_multiplier_is_kept)
{
    static const float sizes[] = {1e-6f, 1e-30f, 1e18f};

    for (size_t i = 0; i < 3; i++) {
        struct build_model *model = build_model(&build_small, 6);
        struct build_tensor *gate =
            build_find(model, "layers.0.mlp.gate_proj.weight");
        struct lmq_convert_options options = {.layout = layouts[1],
                                              .replaces = 1};
        for (size_t j = 0; j < gate->n_elements; j++)
            gate->x[j] *= sizes[i];
        save_folder(model, in_folder("model"), BUILD_F32);
        lmq_report_free(
            convert(in_folder("model"), in_folder("a.lmq"), &options));
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.lmq"));
        ck_assert(lmq_checkpoint_find_name(checkpoint, "blk.0.ffn_gate.weight")
                      ->quant.multiplier != 1);
        lmq_checkpoint_close(checkpoint);
        assert_comes_back(in_folder("a.lmq"), &options);
        build_free(model);
    }
}
END_TEST

START_TEST(a_tied_head_is_an_alias_again_or_has_the_same_integers)
{
    struct build_sizes sizes = build_small;
    struct lmq_convert_options never = {.tie = "never"};

    sizes.is_tied = true;
    struct build_model *model = build_model(&sizes, 7);
    save_folder(model, in_folder("model"), BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), NULL));
    struct lmq_report *report =
        convert(in_folder("a.lmq"), in_folder("b.lmq"), NULL);
    ck_assert(lmq_report_number(report, "totals.aliases") == 1);
    lmq_report_free(report);
    assert_same_extents(in_folder("a.lmq"), in_folder("b.lmq"));
    report = convert(in_folder("a.lmq"), in_folder("c.lmq"), &never);
    ck_assert(lmq_report_number(report, "totals.aliases") == 0);
    assert_taken(report, lmq_report_number(report, "totals.quantized"));
    lmq_report_free(report);
    assert_same_integers(in_folder("a.lmq"), in_folder("c.lmq"));
    /* And the other way: both are equal, and one again. */
    report = convert(in_folder("c.lmq"), in_folder("d.lmq"), NULL);
    ck_assert_str_eq(lmq_report_string(report, "tie.rule"), "contents");
    lmq_report_free(report);
    assert_same_extents(in_folder("a.lmq"), in_folder("d.lmq"));
    build_free(model);
}
END_TEST

START_TEST(other_groups_or_scales_are_quantized_again)
{
    static const struct lmq_convert_options others[] = {
        {.group_size = 128, .replaces = 1}, {.scales = "f32", .replaces = 1}};
    struct build_model *model = build_model(&build_small, 8);

    save_folder(model, in_folder("model"), BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), NULL));
    for (int i = 0; i < 2; i++) {
        struct lmq_report *report =
            convert(in_folder("a.lmq"), in_folder("b.lmq"), &others[i]);
        ck_assert(lmq_report_number(report, "totals.as_stored") == 0);
        ck_assert(has_note(report, "adds error"));
        lmq_report_free(report);
    }
    build_free(model);
}
END_TEST

/* ---- Files of others ---- */

/* A container with groups of 32, and the same as another format. */
static void
export_even(const char *to, const struct lmq_convert_options *options)
{
    const struct lmq_export_options export = {.to = to, .replaces = 1};
    struct build_model *model = build_model(&even, 9);

    save_folder(model, in_folder("even"), BUILD_F32);
    lmq_report_free(convert(in_folder("even"), in_folder("a.lmq"), options));
    lmq_report_free(export_to(in_folder("a.lmq"), in_folder(to), &export));
    build_free(model);
}

/* Rows of queries and keys stand in pairs there. */
START_TEST(blocks_of_gguf_come_back)
{
    for (int i = 0; i < 4; i++) {
        const struct lmq_convert_options options = {
            .group_size = 32, .layout = layouts[i % 2], .replaces = 1,
            .threads = 1 + i / 2};
        export_even("gguf", &options);
        struct lmq_report *report =
            convert(in_folder("gguf"), in_folder("b.lmq"), &options);
        assert_taken(report, lmq_report_number(report, "totals.quantized"));
        lmq_report_free(report);
        assert_intact(in_folder("b.lmq"));
        assert_same_extents(in_folder("a.lmq"), in_folder("b.lmq"));
    }
}
END_TEST

START_TEST(groups_of_llama2c_come_back)
{
    const struct lmq_convert_options options = {.group_size = 32,
                                                .scales = "f32"};

    export_even("llama2c", &options);
    struct lmq_report *report =
        convert(in_folder("llama2c"), in_folder("b.lmq"), &options);
    assert_taken(report, lmq_report_number(report, "totals.quantized"));
    lmq_report_free(report);
    assert_intact(in_folder("b.lmq"));
    assert_same_integers(in_folder("a.lmq"), in_folder("b.lmq"));
}
END_TEST

/* A block of a tensor of Q8_0 becomes: a scale, and of its integers the
 * first. */
static void
write_block(const char *from, const char *to, const char *name, size_t block,
            uint16_t scale, int8_t first)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);
    size_t n;
    unsigned char *bytes = read_file(from, &n);

    ck_assert_ptr_nonnull(tensor);
    lmq_store_u16le(bytes + tensor->offset + 34 * block, scale);
    bytes[tensor->offset + 34 * block + 2] = (unsigned char)first;
    write_file(to, bytes, n);
    lmq_checkpoint_close(checkpoint);
    free(bytes);
}

static const char gate[] = "blk.0.ffn_gate.weight";

static void
assert_again(const struct lmq_report *report)
{
    ck_assert(lmq_report_number(report, "totals.as_stored") + 1 ==
              lmq_report_number(report, "totals.quantized"));
    ck_assert(has_note(report, "quantized again"));
    char taken[64];
    snprintf(taken, sizeof(taken),
             "%.0f of %.0f matrices are quantized already: their",
             lmq_report_number(report, "totals.as_stored"),
             lmq_report_number(report, "totals.quantized"));
    ck_assert(has_note(report, taken));
}

START_TEST(what_a_container_forbids_is_quantized_again)
{
    static const struct {
        uint16_t scale;
        int8_t first;
    } blocks[] = {
        {0x2000, -128}, /* the one integer too many */
        {0xa000, -128}, /* a negative scale that cannot be turned */
    };
    const struct lmq_convert_options options = {
        .group_size = 32, .method = "absmax", .replaces = 1};
    size_t n_a, n_b;

    export_even("gguf", &options);
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        write_block(in_folder("gguf"), in_folder("odd"), gate, 0,
                    blocks[i].scale, blocks[i].first);
        struct lmq_report *report =
            convert(in_folder("odd"), in_folder("b.lmq"), &options);
        assert_again(report);
        lmq_report_free(report);
        assert_intact(in_folder("b.lmq"));
        struct lmq_checkpoint *a = open_checkpoint(in_folder("odd"));
        struct lmq_checkpoint *b = open_checkpoint(in_folder("b.lmq"));
        float *x = read_tensor(a, gate, &n_a), *y = read_tensor(b, gate, &n_b);
        float most = 0, bound = 0;
        for (size_t j = 0; j < 32; j++) {
            most = fmaxf(most, fabsf(x[j]));
            bound = fmaxf(bound, fabsf(x[j] - y[j]));
        }
        ck_assert(bound <= most / 127);
        free(x);
        free(y);
        lmq_checkpoint_close(a);
        lmq_checkpoint_close(b);
    }
}
END_TEST

START_TEST(beside_a_scale_of_zero_all_are_zeros)
{
    static const uint16_t none[] = {0, 0x8000};
    const struct lmq_convert_options options = {.replaces = 1};
    size_t n;

    export_even("gguf", &(struct lmq_convert_options){.group_size = 32});
    for (int i = 0; i < 2; i++) {
        write_block(in_folder("gguf"), in_folder("odd"), gate, 0, none[i],
                    5);
        struct lmq_report *report =
            convert(in_folder("odd"), in_folder("b.lmq"), &options);
        assert_taken(report, lmq_report_number(report, "totals.quantized"));
        lmq_report_free(report);
        assert_intact(in_folder("b.lmq"));
        struct lmq_checkpoint *b = open_checkpoint(in_folder("b.lmq"));
        float *x = read_tensor(b, gate, &n);
        for (size_t j = 0; j < 32; j++)
            ck_assert(x[j] == 0 && !signbit(x[j]));
        free(x);
        lmq_checkpoint_close(b);
    }
}
END_TEST

START_TEST(scales_that_are_not_finite_are_refused_or_zeros)
{
    static const uint16_t odd[] = {0x7c00, 0x7e00, 0xfc00};
    struct lmq_convert_options options = {.group_size = 32, .replaces = 1};

    export_even("gguf", &options);
    for (int i = 0; i < 3; i++) {
        struct lmq_error err;
        write_block(in_folder("gguf"), in_folder("odd"), gate, 0, odd[i],
                    5);
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("odd"));
        ck_assert_int_eq(lmq_convert(checkpoint, in_folder("no.lmq"), &options,
                                     NULL, NULL, &err),
                         LMQ_ERR_NONFINITE);
        ck_assert_ptr_nonnull(strstr(err.message, "ffn_gate"));
        ck_assert(!exists(in_folder("no.lmq")));
        lmq_checkpoint_close(checkpoint);
        options.on_nonfinite = "zero";
        struct lmq_report *report =
            convert(in_folder("odd"), in_folder("b.lmq"), &options);
        assert_taken(report, lmq_report_number(report, "totals.quantized"));
        ck_assert(lmq_report_number(report, "totals.zeroed_elements") == 32);
        lmq_report_free(report);
        assert_intact(in_folder("b.lmq"));
        options.on_nonfinite = NULL;
    }
}
END_TEST

/* First taken, then quantized, then with a multiplier: zeros count once. */
START_TEST(a_tensor_may_be_done_three_times)
{
    const struct lmq_convert_options options = {
        .group_size = 32, .on_nonfinite = "zero", .replaces = 1};
    struct build_model *model = build_model(&even, 9);
    struct build_tensor *small =
        build_find(model, "layers.0.mlp.gate_proj.weight");

    for (size_t i = 0; i < small->n_elements; i++)
        small->x[i] *= 1e-4f;
    save_folder(model, in_folder("even"), BUILD_F32);
    build_free(model);
    const struct lmq_export_options export = {.to = "gguf", .type = "q8_0"};
    lmq_report_free(export_to(in_folder("even"), in_folder("gguf"), &export));
    write_block(in_folder("gguf"), in_folder("nan"), gate, 0, 0x7e00, 5);
    write_block(in_folder("nan"), in_folder("odd"), gate, 1, 0x200, -128);
    struct lmq_report *report =
        convert(in_folder("odd"), in_folder("b.lmq"), &options);
    assert_again(report);
    ck_assert(lmq_report_number(report, "totals.zeroed_elements") == 32);
    lmq_report_free(report);
    assert_intact(in_folder("b.lmq"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("b.lmq"));
    ck_assert(lmq_checkpoint_find_name(checkpoint, gate)->quant.multiplier !=
              1);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* Also those whose group has one number more on the side above 0. */
START_TEST(narrow_integers_become_narrow_blocks)
{
    static const struct {
        const char *encoding, *scales, *type;
        unsigned group;
    } cases[] = {
        {"q4", "f16", "q4_0", 32},  {"q4", "f16", "q4_0", 64},
        {"q5", "f16", "q5_0", 128}, {"q6", "f16", "q8_0", 32},
        {"q4", "f32", "q8_0", 32},
    };
    const struct lmq_export_options to = {.to = "gguf", .replaces = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_exact = strcmp(cases[i].scales, "f16") == 0;
        struct lmq_convert_options options = {.encoding = cases[i].encoding,
                                              .scales = cases[i].scales,
                                              .group_size = cases[i].group,
                                              .replaces = 1};
        lmq_report_free(convert(source_path("data/fable"),
                                in_folder("a.lmq"), &options));
        struct lmq_report *report =
            export_to(in_folder("a.lmq"), in_folder("a.gguf"), &to);
        ck_assert(lmq_report_number(report, "is_lossless") == is_exact);
        ck_assert_str_eq(lmq_report_string(report, "type"), cases[i].type);
        lmq_report_free(report);
        if (is_exact)
            assert_equal_weights(in_folder("a.lmq"), in_folder("a.gguf"));
    }
}
END_TEST

/* Nothing is asked for, and nothing can be learnt. */
START_TEST(what_stays_is_told_as_it_is)
{
    const char *const rules[] = {"token_embd=q4", "output=q4"};
    const struct lmq_convert_options first = {.encoding = "q4",
                                              .group_size = 128,
                                              .scales = "f32",
                                              .rotates = 1,
                                              .rules = rules,
                                              .n_rules = 2};
    const char *text = source_path("data/fable/held-out-a.txt");
    const struct lmq_convert_options learning = {.calibration = &text,
                                                 .n_calibration = 1};
    struct lmq_report *report;
    struct lmq_error err;

    lmq_report_free(
        convert(source_path("data/fable"), in_folder("a.lmq"), &first));
    report = convert(in_folder("a.lmq"), in_folder("b.lmq"), NULL);
    assert_taken(report, lmq_report_number(report, "totals.quantized"));
    ck_assert_str_eq(lmq_report_string(report, "encoding"), "q4");
    ck_assert(lmq_report_number(report, "group_size") == 128);
    ck_assert_str_eq(lmq_report_string(report, "scales"), "f32");
    ck_assert(lmq_report_number(report, "rotate") == 1);
    lmq_report_free(report);
    struct lmq_checkpoint *b = open_checkpoint(in_folder("b.lmq"));
    json_t *said = lmq_checkpoint_statements(b);
    json_t *quantization = json_object_get(said, "quantization");
    ck_assert_str_eq(
        json_string_value(json_object_get(quantization, "scales")), "f32");
    ck_assert(json_is_true(json_object_get(quantization, "rotate")));
    json_decref(said);
    ck_assert_int_eq(lmq_convert(b, in_folder("c.lmq"), &learning, NULL,
                                 &report, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.hint, "stays as it is"));
    lmq_checkpoint_close(b);
}
END_TEST

/* Where nothing is asked for; in rows they are the same numbers. */
START_TEST(narrow_blocks_become_narrow_integers)
{
    static const char *const encodings[] = {"q4", "q5"};
    const struct lmq_export_options to = {.to = "gguf", .replaces = 1};

    for (size_t i = 0; i < 4; i++) {
        bool is_rows = i % 2 != 0;
        struct lmq_convert_options options = {.encoding = encodings[i / 2],
                                              .group_size = 32,
                                              .replaces = 1};
        const struct lmq_convert_options own = {
            .layout = layouts[i % 2 == 0], .method = "absmax", .replaces = 1};
        lmq_report_free(convert(source_path("data/fable"),
                                in_folder("a.lmq"), &options));
        lmq_report_free(
            export_to(in_folder("a.lmq"), in_folder("a.gguf"), &to));
        struct lmq_report *report =
            convert(in_folder("a.gguf"), in_folder("b.lmq"), &own);
        double n = lmq_report_number(report, "totals.as_stored");
        lmq_report_free(report);
        assert_intact(in_folder("b.lmq"));
        struct lmq_checkpoint *a = open_checkpoint(in_folder("a.gguf"));
        struct lmq_checkpoint *b = open_checkpoint(in_folder("b.lmq"));
        size_t n_narrow = 0;
        for (size_t j = 0; j < a->n_tensors; j++) {
            const struct lmq_tensor *x = &a->tensors[j];
            const struct lmq_tensor *y = lmq_checkpoint_find_name(b, x->name);
            if (x->quant.group_size == 0)
                continue;
            n_narrow += x->quant.bits < 6;
            ck_assert_uint_eq(y->quant.bits, is_rows ? 8 : x->quant.bits);
            ck_assert_uint_eq(y->quant.group_size, 32);
            n--;
        }
        lmq_checkpoint_close(a);
        lmq_checkpoint_close(b);
        ck_assert(n == 0);
        ck_assert_uint_gt(n_narrow, 20);
        if (!is_rows)
            assert_same_integers(in_folder("a.gguf"), in_folder("b.lmq"));
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        containers_of_all_groups_scales_and_layouts_come_back,
        wide_and_narrow_matrices_come_back,
        what_fills_groups_up_is_told_with_what_helps,
        rows_beyond_all_measure_are_quantized_again,
        a_multiplier_is_kept,
        a_tied_head_is_an_alias_again_or_has_the_same_integers,
        other_groups_or_scales_are_quantized_again,
        blocks_of_gguf_come_back,
        groups_of_llama2c_come_back,
        what_a_container_forbids_is_quantized_again,
        beside_a_scale_of_zero_all_are_zeros,
        scales_that_are_not_finite_are_refused_or_zeros,
        a_tensor_may_be_done_three_times,
        narrow_integers_become_narrow_blocks,
        narrow_blocks_become_narrow_integers,
        what_stays_is_told_as_it_is,
    };

    return RUN_SUITE("as stored", tests);
}
