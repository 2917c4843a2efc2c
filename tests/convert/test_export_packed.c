/*
 * test_export_packed.c - exports of integers and scales for other programs,
 * taken apart here by what their formats say.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/bytes.h"
#include "quantize/dtype.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"

/* Sizes that all of them can have, and a vocabulary that GPTQ could not. */
static const struct build_sizes sizes = {
    .dim = 128, .hidden = 192, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 68, .context = 64,
};

/* ---- A file of safetensors, taken apart ---- */

struct file {
    unsigned char *bytes;
    size_t n;
    json_t *header;
    const unsigned char *data;
};

static struct file
open_file(const char *path)
{
    struct file file = {0};

    file.bytes = read_file(path, &file.n);
    ck_assert_uint_gt(file.n, 8);
    size_t length = (size_t)lmq_load_u64le(file.bytes);
    ck_assert_uint_lt(length, file.n);
    file.header = json_loadb((const char *)file.bytes + 8, length, 0, NULL);
    ck_assert_ptr_nonnull(file.header);
    file.data = file.bytes + 8 + length;
    return file;
}

static void
close_file(struct file *file)
{
    json_decref(file->header);
    free(file->bytes);
}

/* Its bytes, if type and shape are these; a second dimension of 0: it has
 * one. */
static const unsigned char *
piece(const struct file *file, const char *stem, const char *suffix,
      const char *type, size_t rows, size_t cols)
{
    char name[160];

    snprintf(name, sizeof(name), "%s%s", stem, suffix);
    const json_t *json = json_object_get(file->header, name);
    ck_assert_msg(json != NULL, "no tensor '%s'", name);
    const json_t *shape = json_object_get(json, "shape");
    const json_t *offsets = json_object_get(json, "data_offsets");
    ck_assert_str_eq(json_string_value(json_object_get(json, "dtype")), type);
    ck_assert_uint_eq(json_array_size(shape), cols == 0 ? 1 : 2);
    ck_assert_int_eq(json_integer_value(json_array_get(shape, 0)),
                     (json_int_t)rows);
    if (cols > 0)
        ck_assert_int_eq(json_integer_value(json_array_get(shape, 1)),
                         (json_int_t)cols);
    return file->data + json_integer_value(json_array_get(offsets, 0));
}

static bool
has_piece(const struct file *file, const char *stem, const char *suffix)
{
    char name[160];

    snprintf(name, sizeof(name), "%s%s", stem, suffix);
    return json_object_get(file->header, name) != NULL;
}

/* ---- What the three formats mean ---- */

struct matrix {
    const struct file *file;
    const char *stem; /* "model.layers.0.mlp.up_proj." */
    size_t rows, cols, group;
};

static uint32_t
byte_of_word(const unsigned char *word, size_t i)
{
    return lmq_load_u32le(word) >> 8 * i & 0xff;
}

static float
value_of_compressed(const struct matrix *m, size_t row, size_t col)
{
    const unsigned char *words = piece(m->file, m->stem, "weight_packed",
                                       "I32", m->rows, m->cols / 4);
    const unsigned char *scales = piece(m->file, m->stem, "weight_scale",
                                        "F32", m->rows, m->cols / m->group);
    const unsigned char *shape =
        piece(m->file, m->stem, "weight_shape", "I64", 2, 0);

    ck_assert_uint_eq(lmq_load_u64le(shape), m->rows);
    ck_assert_uint_eq(lmq_load_u64le(shape + 8), m->cols);
    uint32_t q = byte_of_word(words + (row * m->cols + col) / 4 * 4, col % 4);
    float scale = lmq_load_f32le(
        scales + 4 * (row * (m->cols / m->group) + col / m->group));
    return (float)((int)q - 128) * scale;
}

static float
value_of_mlx(const struct matrix *m, size_t row, size_t col)
{
    size_t n_groups = m->cols / m->group;
    const unsigned char *words =
        piece(m->file, m->stem, "weight", "U32", m->rows, m->cols / 4);
    const unsigned char *scales =
        piece(m->file, m->stem, "scales", "F32", m->rows, n_groups);
    const unsigned char *biases =
        piece(m->file, m->stem, "biases", "F32", m->rows, n_groups);
    size_t at = 4 * (row * n_groups + col / m->group);

    uint32_t q = byte_of_word(words + (row * m->cols + col) / 4 * 4, col % 4);
    return (float)((double)q * (double)lmq_load_f32le(scales + at) +
                   (double)lmq_load_f32le(biases + at));
}

static float
value_of_gptq(const struct matrix *m, size_t row, size_t col)
{
    size_t n_groups = m->cols / m->group;
    const unsigned char *words =
        piece(m->file, m->stem, "qweight", "I32", m->cols / 4, m->rows);
    const unsigned char *zeros =
        piece(m->file, m->stem, "qzeros", "I32", n_groups, m->rows / 4);
    const unsigned char *scales =
        piece(m->file, m->stem, "scales", "F16", n_groups, m->rows);
    const unsigned char *inputs =
        piece(m->file, m->stem, "g_idx", "I32", m->cols, 0);
    size_t group = lmq_load_u32le(inputs + 4 * col);

    ck_assert_uint_lt(group, n_groups);
    uint32_t q =
        byte_of_word(words + 4 * (col / 4 * m->rows + row), col % 4);
    uint32_t zero =
        byte_of_word(zeros + (group * m->rows + row) / 4 * 4, row % 4);
    float scale =
        lmq_f16_to_f32(lmq_load_u16le(scales + 2 * (group * m->rows + row)));
    return (float)((int)q - (int)zero - 1) * scale;
}

/* ---- Tests ---- */

static const struct scheme {
    const char *to, *first; /* and the suffix that only a packed matrix has */
    float (*value)(const struct matrix *m, size_t row, size_t col);
} schemes[] = {
    {"compressed-tensors", "weight_packed", value_of_compressed},
    {"mlx", "scales", value_of_mlx},
    {"gptq", "qweight", value_of_gptq},
};

#define N_SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

/* Every element of every packed matrix; how many matrices there are. */
static size_t
compare_matrices(const struct scheme *scheme, const struct file *file,
                 const char *container, size_t group)
{
    struct lmq_checkpoint *own = open_checkpoint(container);
    struct lmq_checkpoint *named = open_checkpoint(in_folder("model"));
    size_t n_packed = 0;

    for (size_t i = 0; i < named->n_tensors; i++) {
        const char *name = named->tensors[i].stored_name;
        struct matrix m = {.file = file, .group = group};
        char stem[160];
        snprintf(stem, sizeof(stem), "%.*s",
                 (int)(strrchr(name, '.') + 1 - name), name);
        if (!has_piece(file, stem, scheme->first))
            continue;
        size_t n;
        float *x = read_tensor(own, named->tensors[i].name, &n);
        m.stem = stem;
        m.rows = (size_t)named->tensors[i].n_rows;
        m.cols = (size_t)named->tensors[i].n_cols;
        for (size_t k = 0; k < n; k += 7) {
            float value = scheme->value(&m, k / m.cols, k % m.cols);
            REQUIRE(memcmp(&value, &x[k], sizeof(value)) == 0 ||
                        (value == 0 && x[k] == 0),
                    "%s: element %zu of %s is %g, not %g", scheme->to, k,
                    name, (double)value, (double)x[k]);
        }
        free(x);
        n_packed++;
    }
    lmq_checkpoint_close(own);
    lmq_checkpoint_close(named);
    return n_packed;
}

START_TEST(every_integer_and_scale_arrives)
{
    static const unsigned groups[] = {32, 64};
    static const size_t n_matrices[N_SCHEMES] = {14, 16, 14};
    struct build_model *model = build_model(&sizes, 5);
    const char *from = in_folder("m.lmq");
    const struct scheme *scheme = &schemes[_i % (int)N_SCHEMES];
    char name[64];

    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t g = 0; g < 2; g++) {
        const struct lmq_export_options options = {.to = scheme->to};
        lmq_report_free(convert(in_folder("model"), from,
                                &(struct lmq_convert_options){
                                    .group_size = groups[g],
                                    .layout = g == 0 ? "rows" : "tiles"}));
        snprintf(name, sizeof(name), "out-%u", groups[g]);
        struct lmq_report *report =
            export_to(from, in_folder(name), &options);
        ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 1);
        ck_assert_double_eq(lmq_report_number(report, "group_size"),
                            groups[g]);
        ck_assert_str_eq(lmq_report_string(report, "type"), "i8");
        lmq_report_free(report);
        assert_identical(from, in_folder(name)); /* as it is read here */
        snprintf(name, sizeof(name), "out-%u/model.safetensors", groups[g]);
        struct file file = open_file(in_folder(name));
        ck_assert_uint_eq(compare_matrices(scheme, &file, from, groups[g]),
                          n_matrices[_i % (int)N_SCHEMES]);
        close_file(&file);
        remove(from);
    }
    build_free(model);
}
END_TEST

static json_t *
load_config(const char *path)
{
    json_t *json = json_load_file(path, 0, NULL);

    ck_assert_ptr_nonnull(json);
    return json;
}

/* What is not packed is named, also the head that is the embedding. */
START_TEST(the_configuration_says_what_is_packed)
{
    struct build_sizes tied = sizes;

    for (int is_tied = 0; is_tied < 2; is_tied++) {
        tied.is_tied = is_tied != 0;
        struct build_model *model = build_model(&tied, 5);
        save_folder(model, in_folder("model"), BUILD_F32);
        lmq_report_free(export_to(
            in_folder("model"), in_folder("out"),
            &(struct lmq_export_options){.to = "compressed-tensors",
                                         .replaces = 1}));
        json_t *config = load_config(in_folder("out/config.json"));
        const json_t *quantization =
            json_object_get(config, "quantization_config");
        const json_t *ignore = json_object_get(quantization, "ignore");
        ck_assert_str_eq(
            json_string_value(json_object_get(quantization, "format")),
            "pack-quantized");
        ck_assert_uint_eq(json_array_size(ignore), 1);
        ck_assert_str_eq(json_string_value(json_array_get(ignore, 0)),
                         "lm_head");
        json_decref(config);
        build_free(model);
    }
}
END_TEST

START_TEST(floats_are_quantized_and_that_is_said)
{
    struct build_model *model = build_model(&sizes, 5);
    char out[64];

    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t i = 0; i < N_SCHEMES; i++) {
        snprintf(out, sizeof(out), "out-%zu", i);
        struct lmq_report *report =
            export_to(in_folder("model"), in_folder(out),
                      &(struct lmq_export_options){.to = schemes[i].to});
        ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 0);
        ck_assert_double_eq(lmq_report_number(report, "group_size"), 64);
        lmq_report_free(report);
    }
    build_free(model);
}
END_TEST

/* A float32 scale is more than GPTQ has, and than --type may leave. MLX rounds
 * products, too; so it is said if and only if a weight is another. */
START_TEST(rounded_scales_are_said)
{
    struct build_model *model = build_model(&sizes, 5);
    static const struct {
        const char *scales, *encoding, *to, *type;
        double is_lossless;
    } rows[] = {{"f32", "q8", "gptq", NULL, 0},
                {"f32", "q8", "compressed-tensors", NULL, 1},
                {"f32", "q8", "compressed-tensors", "f16", 0},
                {"f32", "q8", "mlx", NULL, 0},
                {"f32", "q4", "mlx", NULL, 0},
                {"f16", "q8", "mlx", NULL, 1},
                {"f16", "q4", "mlx", NULL, 1},
                {"f16", "q5", "mlx", NULL, 1},
                {"f16", "q6", "mlx", NULL, 1},
                {"f16", "q8", "mlx", "f16", 0},
                {"f16", "q4", "mlx", "f16", 0},
                {"f16", "q8", "mlx", "bf16", 0}};

    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct lmq_convert_options options = {
            .scales = rows[i].scales, .encoding = rows[i].encoding,
            .group_size = 32, .replaces = 1};
        const struct lmq_export_options to = {
            .to = rows[i].to, .type = rows[i].type, .replaces = 1};
        lmq_report_free(
            convert(in_folder("model"), in_folder("m.lmq"), &options));
        struct lmq_report *report =
            export_to(in_folder("m.lmq"), in_folder("out"), &to);
        ck_assert_double_eq(lmq_report_number(report, "is_lossless"),
                            rows[i].is_lossless);
        lmq_report_free(report);
        if (rows[i].is_lossless > 0)
            assert_equal_weights(in_folder("m.lmq"), in_folder("out"));
    }
    build_free(model);
}
END_TEST

/* The pieces of a matrix may stand in different shards. */
START_TEST(shards_hold_the_pieces)
{
    struct build_model *model = build_model(&sizes, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t i = 0; i < N_SCHEMES; i++) {
        const struct lmq_export_options options = {
            .to = schemes[i].to, .shard_size = 20000, .replaces = 1};
        lmq_report_free(
            export_to(in_folder("model"), in_folder("out"), &options));
        json_t *index =
            load_config(in_folder("out/model.safetensors.index.json"));
        const json_t *map = json_object_get(index, "weight_map");
        ck_assert_uint_gt(json_object_size(map), 40);
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)map, key, value) {
            char name[96];
            snprintf(name, sizeof(name), "out/%s", json_string_value(value));
            struct file file = open_file(in_folder(name));
            ck_assert_ptr_nonnull(json_object_get(file.header, key));
            close_file(&file);
        }
        json_decref(index);
    }
    build_free(model);
}
END_TEST

START_TEST(what_a_scheme_cannot_have_is_refused)
{
    struct build_model *model = build_model(&build_small, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    for (size_t i = 0; i < N_SCHEMES; i++)
        assert_export_refuses(
            checkpoint, in_folder("out"),
            &(struct lmq_export_options){.to = schemes[i].to},
            LMQ_ERR_UNSUPPORTED,
            strcmp(schemes[i].to, "gptq") == 0 ? "cannot have"
                                               : "no matrix");
    ck_assert(!exists(in_folder("out")));
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

/* Whether an export to safetensors has the words of Hugging Face, without
 * which nobody could read these formats. */
static bool
has_words(const char *from)
{
    const struct lmq_export_options options = {.to = "safetensors",
                                               .replaces = 1};

    lmq_report_free(export_to(from, in_folder("out"), &options));
    json_t *config = load_config(in_folder("out/config.json"));
    bool has = json_object_get(config, "architectures") != NULL;
    json_decref(config);
    return has;
}

static void
assert_no_words(const struct lmq_export_options *options, const char *text)
{
    struct lmq_checkpoint *own = open_checkpoint(in_folder("model.lmq"));

    assert_export_refuses(own, in_folder("out"), options, LMQ_ERR_UNSUPPORTED,
                          text);
    lmq_checkpoint_close(own);
}

static bool
is_ignored(const json_t *ignore, const char *module)
{
    for (size_t i = 0; i < json_array_size(ignore); i++)
        if (strcmp(json_string_value(json_array_get(ignore, i)), module) == 0)
            return true;
    return false;
}

/* No linear module: its rows are looked up. */
static bool
is_table(const char *module)
{
    return strstr(module, "embed") != NULL || strstr(module, "wte") != NULL ||
           strstr(module, "wpe") != NULL;
}

/* A reader makes packed modules of all linear ones that are not named. */
static void
assert_plain_matrices_are_named(const char *folder)
{
    char path[512];
    const char *key;
    json_t *entry;

    snprintf(path, sizeof(path), "%s/config.json", folder);
    json_t *config = load_config(path);
    const json_t *ignore = json_object_get(
        json_object_get(config, "quantization_config"), "ignore");
    snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    struct file file = open_file(path);
    json_object_foreach(file.header, key, entry) {
        char module[256];
        int n = (int)strlen(key) - (int)strlen(".weight");
        if (json_array_size(json_object_get(entry, "shape")) != 2 || n <= 0 ||
            strcmp(key + n, ".weight") != 0)
            continue;
        snprintf(module, sizeof(module), "%.*s", n, key);
        ck_assert_msg(is_ignored(ignore, module) || is_table(module),
                      "%s is plain, and not named", module);
    }
    close_file(&file);
    json_decref(config);
}

/* Widths that no group of 64 fills, experts, biases, norms of all kinds. */
START_TEST(every_family_keeps_its_int8_values)
{
    const struct family *family = family_at((size_t)_i);
    struct family_model *model = family_make(family, 8, 64, 1);
    const struct lmq_convert_options options = {
        .group_size = _i % 2 ? 32 : 64, .method = "absmax", .replaces = 1};

    family_write(model, in_folder("model"));
    lmq_report_free(
        convert(in_folder("model"), in_folder("model.lmq"), &options));
    bool has = has_words(in_folder("model.lmq"));
    assert_equal_weights(in_folder("model.lmq"), in_folder("out"));
    for (size_t i = 0; i < N_SCHEMES; i++) {
        const struct lmq_export_options to = {.to = schemes[i].to,
                                              .replaces = 1};
        if (strcmp(schemes[i].to, "gptq") == 0) /* wants other widths */
            continue;
        if (has && family->shape.delta != NULL &&
            strcmp(schemes[i].to, "mlx") == 0) {
            assert_no_words(&to, "recurrent layers");
        } else if (has) {
            lmq_report_free(
                export_to(in_folder("model.lmq"), in_folder("out"), &to));
            assert_equal_weights(in_folder("model.lmq"), in_folder("out"));
            if (strcmp(schemes[i].to, "compressed-tensors") == 0)
                assert_plain_matrices_are_named(in_folder("out"));
        } else {
            assert_no_words(&to, "is not written in Hugging Face's words");
        }
    }
    family_free(model);
}
END_TEST

static const unsigned char *
find_bytes(const struct file *file, const json_t *entry, size_t *n)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    json_int_t first = json_integer_value(json_array_get(offsets, 0));

    *n = (size_t)(json_integer_value(json_array_get(offsets, 1)) - first);
    return file->data + first;
}

/* What was taken apart for the forward pass is together again, by key heads or
 * part after part, with the names that the library saves. */
START_TEST(the_delta_rule_is_stored_as_the_library_does)
{
    static const char *const names[] = {"qwen3next", "qwen3next-sparse",
                                        "qwen35", "qwen35moe"};
    const struct lmq_export_options options = {.to = "safetensors"};
    struct family_model *model = family_make(family_find(names[_i]), 1, 0, 1);
    const char *key;
    json_t *entry;
    size_t n_a, n_b;

    family_write(model, in_folder("model"));
    lmq_report_free(
        export_to(in_folder("model"), in_folder("out"), &options));
    assert_identical(in_folder("model"), in_folder("out"));
    struct file a = open_file(in_folder("model/model.safetensors"));
    struct file b = open_file(in_folder("out/model.safetensors"));
    json_object_del(a.header, "__metadata__");
    json_object_del(b.header, "__metadata__");
    ck_assert_uint_eq(json_object_size(a.header), json_object_size(b.header));
    json_object_foreach(a.header, key, entry) {
        const json_t *other = json_object_get(b.header, key);
        ck_assert_msg(json_equal(json_object_get(entry, "shape"),
                                 json_object_get(other, "shape")),
                      "%s", key);
        const unsigned char *x = find_bytes(&a, entry, &n_a);
        const unsigned char *y = find_bytes(&b, other, &n_b);
        ck_assert_uint_eq(n_a, n_b);
        if (strstr(key, "attn.") != NULL && strstr(key, "_norm.") == NULL)
            ck_assert_msg(memcmp(x, y, n_a) == 0, "%s", key);
    }
    close_file(&a);
    close_file(&b);
    family_free(model);
}
END_TEST

static void
assert_shape(const struct file *file, const char *name, size_t n,
             const size_t *dims)
{
    const json_t *shape =
        json_object_get(json_object_get(file->header, name), "shape");

    ck_assert_msg(shape != NULL, "no tensor '%s'", name);
    ck_assert_uint_eq(json_array_size(shape), n);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(json_integer_value(json_array_get(shape, i)),
                         (json_int_t)dims[i]);
}

/* Experts: a tensor of three dimensions in mlx, each by itself in the others;
 * what weighs a shared one is a matrix of one row in all. */
START_TEST(experts_stand_as_each_format_has_them)
{
    static const char recipe[] = "version: 1\nrules:\n"
                                 "- match: blk.1.ffn_up.2.weight\n"
                                 "  encoding: f16\n";
    const struct family *family = family_find("qwen2moe");
    struct family_model *model = family_make(family, 8, 64, 1);
    const struct lmq_convert_options options = {.group_size = 32};
    const size_t rows = 8 * family->shape.expert_dim;
    const size_t cols = 8 * family->shape.dim;
    const size_t experts = family->shape.n_experts;

    family_write(model, in_folder("model"));
    lmq_report_free(
        convert(in_folder("model"), in_folder("model.lmq"), &options));
    for (size_t i = 0; i < 2; i++) {
        const struct lmq_export_options to = {.to = schemes[i].to,
                                              .replaces = 1};
        lmq_report_free(
            export_to(in_folder("model.lmq"), in_folder("out"), &to));
        struct file file = open_file(in_folder("out/model.safetensors"));
        assert_shape(&file, "model.layers.1.mlp.shared_expert_gate.weight", 2,
                     (size_t[]){1, cols});
        if (i == 0) {
            assert_shape(
                &file, "model.layers.1.mlp.experts.2.up_proj.weight_packed",
                2, (size_t[]){rows, cols / 4});
        } else {
            assert_shape(&file, "model.layers.1.mlp.switch_mlp.up_proj.weight",
                         3, (size_t[]){experts, rows, cols / 4});
            assert_shape(&file, "model.layers.1.mlp.switch_mlp.up_proj.scales",
                         3, (size_t[]){experts, rows, cols / 32});
        }
        close_file(&file);
    }
    family_free(model);
    /* In one tensor all are packed, or none. */
    const struct lmq_convert_options mixed = {
        .group_size = 32, .recipe = in_folder("recipe.yaml"), .replaces = 1};
    write_file(mixed.recipe, recipe, strlen(recipe));
    lmq_report_free(
        convert(in_folder("model"), in_folder("model.lmq"), &mixed));
    assert_no_words(&(struct lmq_export_options){.to = schemes[1].to,
                                                 .replaces = 1},
                    "it can pack only one of 'blk.1.ffn_up.0.weight' and "
                    "'blk.1.ffn_up.2.weight'");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        experts_stand_as_each_format_has_them,
        the_configuration_says_what_is_packed,
        floats_are_quantized_and_that_is_said,
        rounded_scales_are_said,
        shards_hold_the_pieces,
        what_a_scheme_cannot_have_is_refused,
    };
    const TTest *const each[] = {every_integer_and_scale_arrives};
    const TTest *const families[] = {every_family_keeps_its_int8_values};
    const TTest *const delta[] = {the_delta_rule_is_stored_as_the_library_does};
    int failed = RUN_SUITE("packed exports", tests);
    size_t n = 0;

    while (family_at(n) != NULL)
        n++;
    failed = RUN_SUITE_OVER("delta rule", delta, 0, 4) || failed;
    failed = RUN_SUITE_OVER("packed families", families, 0, n) || failed;
    return RUN_SUITE_OVER("packed exports, each", each, 0, N_SCHEMES) ||
           failed;
}
