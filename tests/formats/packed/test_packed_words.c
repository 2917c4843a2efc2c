/*
 * test_packed_words.c - codes in 32-bit words: GPTQ, AWQ.
 *
 * Matrices of random codes, zero points and scales are packed here bit by bit,
 * by what the formats say; what comes back is (code - zero point) * scale.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/tiles.h"
#include "tests/build/stored.h"

/* ---- A matrix ---- */

enum { MAX_ROWS = 96, MAX_COLS = 320, MAX_GROUPS = 32 };

struct matrix {
    size_t rows, cols, n_groups;
    unsigned bits;
    uint32_t codes[MAX_ROWS * MAX_COLS];
    uint32_t zeros[MAX_ROWS * MAX_GROUPS]; /* (rows, n_groups) */
    float scales[MAX_ROWS * MAX_GROUPS];
    uint32_t group[MAX_COLS]; /* of each column */
    float values[MAX_ROWS * MAX_COLS];
};

static struct matrix m; /* too large for a stack */

static void
make_matrix(size_t rows, size_t cols, unsigned bits, size_t group,
            struct random *random)
{
    m.rows = rows;
    m.cols = cols;
    m.bits = bits;
    m.n_groups = (cols + group - 1) / group;
    for (size_t i = 0; i < rows * cols; i++)
        m.codes[i] = (uint32_t)random_below(random, (size_t)1 << bits);
    for (size_t i = 0; i < rows * m.n_groups; i++) {
        m.zeros[i] = (uint32_t)random_below(random, (size_t)1 << bits);
        m.scales[i] = lmq_f16_to_f32(
            lmq_f32_to_f16((float)random_normal(random) * 0.02f));
    }
    for (size_t i = 0; i < cols; i++)
        m.group[i] = (uint32_t)(i / group);
}

static void
shuffle_groups(struct random *random)
{
    for (size_t i = m.cols - 1; i > 0; i--) {
        size_t j = random_below(random, i + 1);
        uint32_t group = m.group[i];
        m.group[i] = m.group[j];
        m.group[j] = group;
    }
}

static const float *
values(void)
{
    for (size_t r = 0; r < m.rows; r++)
        for (size_t c = 0; c < m.cols; c++) {
            size_t block = r * m.n_groups + m.group[c];
            m.values[r * m.cols + c] =
                (float)((int)m.codes[r * m.cols + c] - (int)m.zeros[block]) *
                m.scales[block];
        }
    return m.values;
}

/* Puts number i of a run of `bits` into words that are `step` apart. */
static void
set_bits(uint32_t *words, size_t step, size_t i, unsigned bits, uint32_t value)
{
    for (unsigned b = 0; b < bits; b++) {
        size_t bit = i * bits + b;
        words[bit / 32 * step] |= (value >> b & 1) << bit % 32;
    }
}

static const char *
shape(size_t rows, size_t cols)
{
    static char texts[4][48];
    static int next;
    char *text = texts[next++ % 4];

    if (rows == 0)
        snprintf(text, sizeof(texts[0]), "[%zu]", cols);
    else
        snprintf(text, sizeof(texts[0]), "[%zu,%zu]", rows, cols);
    return text;
}

/* ---- GPTQ ---- */

static uint32_t *
new_words(size_t n)
{
    uint32_t *words = calloc(n, sizeof(*words));

    ck_assert_ptr_nonnull(words);
    return words;
}

static void
put_gptq_codes(struct stored *stored)
{
    size_t n = (m.cols * m.bits + 31) / 32;
    uint32_t *words = new_words(n * m.rows);

    for (size_t r = 0; r < m.rows; r++)
        for (size_t c = 0; c < m.cols; c++)
            set_bits(words + r, m.rows, c, m.bits, m.codes[r * m.cols + c]);
    stored_words(stored, "a.qweight", shape(n, m.rows), words, n * m.rows);
    free(words);
}

/* Version 1 takes one off each: of 3 bits by itself, of others in all fields
 * of a word at once. */
static void
put_gptq_zeros(struct stored *stored, int version)
{
    size_t n = (m.rows * m.bits + 31) / 32;
    uint32_t *words = new_words(n * m.n_groups), mask = (1u << m.bits) - 1;
    uint32_t ones = m.bits == 2   ? 0x55555555
                    : m.bits == 4 ? 0x11111111
                                  : 0x01010101;
    uint32_t less = version == 1 && m.bits == 3;

    for (size_t g = 0; g < m.n_groups; g++)
        for (size_t r = 0; r < m.rows; r++)
            set_bits(words + g * n, 1, r, m.bits,
                     (m.zeros[r * m.n_groups + g] - less) & mask);
    for (size_t i = 0; i < n * m.n_groups && version == 1 && m.bits != 3; i++)
        words[i] -= ones;
    stored_words(stored, "a.qzeros", shape(m.n_groups, n), words,
                 n * m.n_groups);
    free(words);
}

static void
put_gptq_scales(struct stored *stored, enum build_type type)
{
    float turned[MAX_ROWS * MAX_GROUPS];

    for (size_t r = 0; r < m.rows; r++)
        for (size_t g = 0; g < m.n_groups; g++)
            turned[g * m.rows + r] = m.scales[r * m.n_groups + g];
    stored_floats(stored, "a.scales", type, shape(m.n_groups, m.rows), turned,
                  m.rows * m.n_groups);
}

static const char *
save_gptq(int version, bool has_members, const char *config)
{
    struct stored stored = {0};

    put_gptq_codes(&stored);
    put_gptq_zeros(&stored, version);
    put_gptq_scales(&stored, BUILD_F16);
    if (has_members)
        stored_words(&stored, "a.g_idx", shape(0, m.cols), m.group, m.cols);
    stored_entry(&stored, "a.bias", "F32", "[2]", 8);
    put_zeros(&stored.data, 8);
    return stored_save(&stored, config);
}

/* Integers and scales say the same as the floats. */
static void
assert_integers(struct lmq_checkpoint *checkpoint, const char *name)
{
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);
    const struct lmq_quant *quant = &tensor->quant;
    size_t groups = lmq_groups_per_row(m.cols, quant->group_size);
    size_t size = lmq_scale_size(quant->scales);
    int8_t *q = malloc(m.rows * m.cols);
    unsigned char *stored = malloc(m.rows * groups * size);
    float *scales = malloc(m.rows * groups * sizeof(*scales));
    struct lmq_scratch scratch = {0};
    struct lmq_error err;

    ck_assert_int_eq(lmq_checkpoint_read_integers(checkpoint, tensor, 0,
                                                  m.rows, q, stored, &scratch,
                                                  &err),
                     LMQ_OK);
    lmq_scales_load(quant->scales, quant->multiplier, stored, m.rows * groups,
                    scales);
    for (size_t i = 0; i < m.rows * m.cols; i++) {
        size_t r = i / m.cols, c = i % m.cols;
        float scale = scales[r * groups + c / quant->group_size];
        float x = (float)q[i] * scale;
        REQUIRE(x <= m.values[i] && x >= m.values[i], "element %zu: %g", i,
                (double)x);
        REQUIRE(q[i] >= -(1 << (quant->bits - 1)) &&
                    q[i] <= lmq_q_most(quant->bits),
                "element %zu: %d", i, q[i]);
        REQUIRE(scale > 0 || scale < 0 || (q[i] == 0 && !signbit(scale)),
                "element %zu: %d beside no scale", i, q[i]);
    }
    lmq_scratch_free(&scratch);
    free(q);
    free(stored);
    free(scales);
}

START_TEST(gptq_gives_what_was_packed)
{
    static const struct {
        size_t rows, cols, group;
        unsigned bits;
        int version;
        bool has_members, is_shuffled;
        unsigned quant; /* the integers' groups; 0: there are none */
    } cases[] = {
        {32, 64, 32, 4, 1, false, false, 32},
        {32, 64, 32, 4, 2, false, false, 32},
        {32, 320, 128, 4, 1, true, false, 128}, /* a short last group */
        {96, 128, 128, 4, 2, true, false, 128},
        {40, 64, 32, 4, 1, true, true, 0},
        {32, 64, 32, 3, 1, true, false, 32},
        {64, 96, 96, 3, 2, false, false, 32}, /* one group for a row */
        {32, 77, 77, 4, 2, true, false, 256}, /* no multiple */
        {96, 320, 64, 3, 1, true, true, 0},
        {48, 64, 16, 2, 1, true, false, 0}, /* groups that kernels lack */
        {32, 320, 64, 2, 2, true, true, 0},
        {36, 64, 64, 8, 1, true, false, 0}, /* differences of 9 bits */
        {32, 72, 24, 8, 2, true, true, 0},
        {35, 77, 11, 4, 1, true, false, 0}, /* nothing is a multiple */
        {35, 77, 32, 3, 1, true, false, 32},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[256];
        make_matrix(cases[i].rows, cases[i].cols, cases[i].bits,
                    cases[i].group, &random);
        if (cases[i].is_shuffled)
            shuffle_groups(&random);
        snprintf(config, sizeof(config),
                 STORED_CONFIG("\"quant_method\": \"gptq\", \"bits\": %u, "
                               "\"group_size\": %d, "
                               "\"checkpoint_format\": \"%s\""),
                 m.bits,
                 cases[i].group == m.cols ? -1 : (int)cases[i].group,
                 cases[i].version == 1 ? "gptq" : "gptq_v2");
        struct lmq_checkpoint *checkpoint = open_checkpoint(
            save_gptq(cases[i].version, cases[i].has_members, config));
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "a.weight");
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        ck_assert_str_eq(checkpoint->packed, "");
        ck_assert_uint_eq(tensor->quant.group_size, cases[i].quant);
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        if (tensor->quant.group_size != 0)
            assert_integers(checkpoint, "a.weight");
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* Without config.json the tensors tell, but for the version. */
START_TEST(gptq_is_known_by_its_tensors)
{
    struct random random = {random_seed()};

    for (unsigned bits = 2; bits <= 8; bits += bits < 4 ? 1 : 4)
        for (int has_members = 0; has_members < 2; has_members++) {
            make_matrix(64, 128, bits, 32, &random);
            struct lmq_checkpoint *checkpoint =
                open_checkpoint(save_gptq(1, has_members, NULL));
            assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                            &random);
            lmq_checkpoint_close(checkpoint);
        }
}
END_TEST

/* The version is only in the configuration: of a part of the model, or in a
 * file of its own, which says nothing of weights that are packed no more. */
START_TEST(gptq_may_be_described_elsewhere)
{
    static const char said[] =
        "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, "
        "\"checkpoint_format\": \"gptq_v2\"}";
    struct random random = {random_seed()};
    char config[256];

    snprintf(config, sizeof(config),
             "{\"text_config\": {\"quantization_config\": %s}}", said);
    for (int i = 0; i < 4; i++) {
        const char *const configs[] = {
            config, "{}", NULL,
            "{\"quantization_config\": {}, \"text_config\": {}}"};
        make_matrix(32, 64, 4, 32, &random);
        const char *path = save_gptq(2, false, configs[i]);
        if (i > 0)
            write_file(in_folder("model/quantize_config.json"), said,
                       strlen(said));
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        lmq_checkpoint_close(checkpoint);
    }
    write_file(in_folder("model/quantize_config.json"), "[]", 2);
    assert_refused(save_gptq(2, false, "{}"), LMQ_ERR_FORMAT,
                   "is no object");
    struct stored plain = {0};
    stored_floats(&plain, "a.weight", BUILD_F32, "[32,2]", values(), 64);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(&plain, "{}"));
    ck_assert_str_eq(checkpoint->packed, "");
    lmq_checkpoint_close(checkpoint);
    remove(in_folder("model/quantize_config.json"));
}
END_TEST

/* GPTQModel names the layers that differ under "dynamic", AutoRound under
 * "extra_config". */
START_TEST(gptq_of_other_bits_than_the_rest_is_announced)
{
    static const char *const keys[] = {"dynamic", "extra_config", "other"};
    struct random random = {random_seed()};
    char config[256];

    /* Groups of a layer's own are those that the file names, not what divides
     * the columns, nor what is usual. */
    for (size_t group = 64; group <= 80; group += 16) {
        make_matrix(64, 160, 8, group, &random);
        snprintf(config, sizeof(config),
                 "{\"quantization_config\": {\"quant_method\": \"gptq\", "
                 "\"bits\": 8, \"group_size\": 32, \"extra_config\": "
                 "{\"a\": {\"group_size\": %zu}}}}",
                 group);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(save_gptq(1, false, config));
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        lmq_checkpoint_close(checkpoint);
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        make_matrix(64, 128, 8, 64, &random);
        snprintf(config, sizeof(config),
                 "{\"quantization_config\": {\"quant_method\": \"gptq\", "
                 "\"bits\": 4, \"group_size\": 32, \"%s\": {\"a\": "
                 "{\"bits\": 8, \"group_size\": 64}}}}",
                 keys[i]);
        const char *path = save_gptq(1, false, config);
        if (i == 2) {
            assert_refused(path, LMQ_ERR_FORMAT, "which is not 4 bits");
            continue;
        }
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* Of the fewest bits that have them, be the scale of a group none or less. */
START_TEST(gptq_is_of_integers_with_as_many_bits_as_they_need)
{
    static const struct {
        unsigned bits, centred, other; /* 0: there are none */
    } cases[] = {{2, 4, 4}, {3, 4, 4}, {4, 4, 5}, {8, 8, 0}};
    struct random random = {random_seed()};

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_centred = i % 2 == 0;
        unsigned bits = cases[i / 2].bits;
        unsigned width = is_centred ? cases[i / 2].centred
                                    : cases[i / 2].other;
        char config[256];
        make_matrix(64, 256, bits, 128, &random);
        for (size_t j = 0; j < m.rows * m.n_groups; j++)
            m.zeros[j] = 1u << (bits - 1);
        m.zeros[m.rows * m.n_groups - 1] -= !is_centred;
        m.scales[0] = -0.0f;
        m.scales[1] = -0.5f;
        snprintf(config, sizeof(config),
                 STORED_CONFIG("\"quant_method\": \"gptq\", \"bits\": %u, "
                               "\"group_size\": 128, "
                               "\"checkpoint_format\": \"gptq_v2\""),
                 bits);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(save_gptq(2, true, config));
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "a.weight");
        ck_assert_uint_eq(tensor->quant.group_size, width == 0 ? 0 : 128);
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        ck_assert_uint_eq(tensor->quant.bits, width);
        if (width != 0)
            assert_integers(checkpoint, "a.weight");
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

#define GPTQ(more) STORED_CONFIG("\"quant_method\": \"gptq\", " more)

/* It can be looked at, not converted. */
static void
assert_packed_by(const char *name, const char *path)
{
    struct lmq_error err;
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);

    ck_assert_str_eq(checkpoint->packed, name);
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("out.lmq"), NULL, NULL,
                                 NULL, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, name));
    ck_assert_str_ne(err.hint, "");
    lmq_checkpoint_close(checkpoint);
}

START_TEST(gptq_of_other_kinds_is_refused_by_name)
{
    static const struct {
        const char *config, *name;
    } cases[] = {
        {GPTQ("\"bits\": 5"), "GPTQ (bits 5)"},
        {GPTQ("\"bits\": 4, \"checkpoint_format\": \"marlin\""),
         "GPTQ (format marlin)"},
        {GPTQ("\"bits\": 4, \"is_marlin_format\": true"),
         "GPTQ (format marlin)"},
        {GPTQ("\"bits\": 4, \"pack_dtype\": \"int16\""),
         "GPTQ (pack_dtype int16)"},
        {STORED_CONFIG("\"quant_method\": \"newest\""), "newest"},
    };
    struct random random = {random_seed()};

    make_matrix(32, 64, 4, 32, &random);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_packed_by(cases[i].name, save_gptq(1, true, cases[i].config));
}
END_TEST

/* ---- AWQ ---- */

/* (n, rows) numbers, eight in a word: the even ones, then the odd ones. */
static void
put_awq_words(struct stored *stored, const char *name, const uint32_t *numbers,
              size_t n)
{
    static const size_t order[] = {0, 2, 4, 6, 1, 3, 5, 7};
    uint32_t *words = new_words(n * m.rows / 8);

    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < m.rows; r++)
            words[i * m.rows / 8 + r / 8] |=
                numbers[(r / 8 * 8 + order[r % 8]) * n + i] << r % 8 * 4;
    stored_words(stored, name, shape(n, m.rows / 8), words, n * m.rows / 8);
    free(words);
}

static const char *
save_awq(const char *config)
{
    struct stored stored = {0};

    put_awq_words(&stored, "a.qweight", m.codes, m.cols);
    put_awq_words(&stored, "a.qzeros", m.zeros, m.n_groups);
    put_gptq_scales(&stored, BUILD_F16);
    return stored_save(&stored, config);
}

#define AWQ(more) STORED_CONFIG("\"quant_method\": \"awq\", " more)

START_TEST(awq_gives_what_was_packed)
{
    static const struct {
        const char *config;
        size_t rows, cols, group;
        unsigned quant;
    } cases[] = {
        {AWQ("\"bits\": 4, \"group_size\": 32, \"version\": \"gemm\""), 40,
         96, 32, 32},
        {AWQ("\"w_bit\": 4, \"q_group_size\": 64, \"version\": \"GEMM\""),
         96, 320, 64, 64},
        {AWQ("\"bits\": 4, \"group_size\": -1"), 8, 77, 77, 256},
        {STORED_CONFIG("\"quant_method\": \"auto-round\", "
                       "\"packing_format\": \"auto_round:auto_awq\""),
         64, 128, 128, 128},
        {AWQ("\"group_size\": 32, \"extra_config\": "
             "{\"a\": {\"group_size\": 64}}"),
         64, 128, 64, 64},
        {NULL, 48, 60, 20, 0},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_matrix(cases[i].rows, cases[i].cols, 4, cases[i].group, &random);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(save_awq(cases[i].config));
        ck_assert_uint_eq(checkpoint->n_tensors, 1);
        ck_assert_uint_eq(checkpoint->tensors[0].quant.group_size,
                          cases[i].quant);
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        if (cases[i].quant != 0)
            assert_integers(checkpoint, "a.weight");
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(awq_of_other_kinds_is_refused)
{
    struct random random = {random_seed()};

    make_matrix(32, 64, 4, 32, &random);
    assert_packed_by("AWQ (bits 3)", save_awq(AWQ("\"bits\": 3")));
    assert_packed_by("AWQ (version gemv_fast)",
                     save_awq(AWQ("\"version\": \"gemv_fast\"")));
    /* Quark's. */
    assert_packed_by("AWQ (pack_method order)",
                     save_awq(AWQ("\"pack_method\": \"order\"")));
    assert_packed_by("AWQ (codes with signs, zero_point false)",
                     save_awq(AWQ("\"pack_method\": \"reorder\", "
                                  "\"zero_point\": false")));
    assert_refused(save_awq(AWQ("\"group_size\": 64")), LMQ_ERR_FORMAT,
                   "in groups of 64");
    assert_refused(save_awq(GPTQ("\"bits\": 4")), LMQ_ERR_FORMAT,
                   "expected 64 x 32");
    assert_refused(save_gptq(1, false, AWQ("\"bits\": 4")), LMQ_ERR_FORMAT,
                   "expected 2 x 256");
}
END_TEST

/* AutoRound says in words of its own which version it is. */
START_TEST(autoround_is_gptq_of_one_version_or_the_other)
{
    static const struct {
        const char *config;
        int version;
    } cases[] = {
        {STORED_CONFIG("\"quant_method\": \"auto-round\", \"bits\": 4, "
                       "\"packing_format\": \"auto_round:auto_gptq\""),
         1},
        {STORED_CONFIG("\"quant_method\": \"auto-round\", \"bits\": 4, "
                       "\"packing_format\": \"auto_round:gptqmodel\""),
         2},
        {STORED_CONFIG("\"quant_method\": \"auto-round\", \"bits\": 4, "
                       "\"packing_format\": \"auto_round\""),
         2},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_matrix(32, 64, 4, 32, &random);
        struct lmq_checkpoint *checkpoint = open_checkpoint(
            save_gptq(cases[i].version, false, cases[i].config));
        assert_elements(checkpoint, "a.weight", values(), m.rows * m.cols,
                        &random);
        lmq_checkpoint_close(checkpoint);
    }
    assert_packed_by("AutoRound (format auto_round:fake)",
                     save_gptq(1, false,
                               STORED_CONFIG("\"quant_method\": "
                                             "\"auto-round\", "
                                             "\"packing_format\": "
                                             "\"auto_round:fake\"")));
}
END_TEST

/* ---- Files that are wrong ---- */

struct part {
    const char *name, *dtype, *shape;
    size_t n_bytes;
};

/* Each is 40 x 64 with 4 bits in groups of 32, but for one part. */
static const struct part right[] = {
    {"a.qweight", "I32", "[8,40]", 1280},
    {"a.qzeros", "I32", "[2,5]", 40},
    {"a.scales", "F16", "[2,40]", 160},
    {"a.g_idx", "I32", "[64]", 256},
};

static const struct {
    struct part part; /* in place of the one with its name */
    const char *config;
    enum lmq_status status;
    const char *text;
} wrong[] = {
    {{"a.scales", NULL, NULL, 0}, NULL, LMQ_ERR_FORMAT, "'a.scales' is miss"},
    {{"a.qzeros", NULL, NULL, 0}, NULL, LMQ_ERR_FORMAT, "'a.qzeros' is miss"},
    {{"a.qweight", "I32", "[8,32]", 1024}, NULL, LMQ_ERR_FORMAT,
     "expected 8 x 40"},
    {{"a.qweight", "I32", "[320]", 1280}, NULL, LMQ_ERR_FORMAT, "no matrices"},
    {{"a.qweight", "I32", "[7,40]", 1120}, NULL, LMQ_ERR_FORMAT,
     "7 words for 64 codes of 4 bits"},
    {{"a.qweight", "I64", "[8,40]", 2560}, NULL, LMQ_ERR_UNSUPPORTED,
     "of type i64"},
    {{"a.qzeros", "I32", "[2,4]", 32}, NULL, LMQ_ERR_FORMAT,
     "8 words for 64 codes of 3 bits"},
    {{"a.qzeros", "I32", "[2,6]", 48}, NULL, LMQ_ERR_FORMAT,
     "6 words for 40 zero points"},
    {{"a.qzeros", "I32", "[3,5]", 60}, NULL, LMQ_ERR_FORMAT,
     "expected 2 x 5"},
    {{"a.qzeros", "F32", "[2,5]", 40}, NULL, LMQ_ERR_UNSUPPORTED,
     "of type f32"},
    {{"a.scales", "F16", "[3,40]", 240}, NULL, LMQ_ERR_FORMAT,
     "expected 3 x 5"},
    {{"a.scales", "F16", "[2,40,1]", 160}, NULL, LMQ_ERR_FORMAT, "'a."},
    {{"a.scales", "I16", "[2,40]", 160}, NULL, LMQ_ERR_UNSUPPORTED,
     "expected floats"},
    {{"a.g_idx", "I32", "[65]", 260}, NULL, LMQ_ERR_FORMAT,
     "8 words for 65 codes"},
    {{"a.g_idx", "I32", "[64,1]", 256}, NULL, LMQ_ERR_FORMAT,
     "expected 64 in one"},
    {{"a.g_idx", "F32", "[64]", 256}, NULL, LMQ_ERR_UNSUPPORTED,
     "of type f32"},
    {{"", NULL, NULL, 0}, GPTQ("\"bits\": 8"), LMQ_ERR_FORMAT,
     "not 8 bits for each"},
    {{"", NULL, NULL, 0}, GPTQ("\"bits\": 4, \"group_size\": 48"),
     LMQ_OK, ""}, /* 48 and 16 */
    {{"", NULL, NULL, 0}, GPTQ("\"bits\": 4, \"group_size\": 16"),
     LMQ_ERR_FORMAT, "in groups of 16"},
    {{"", NULL, NULL, 0}, GPTQ("\"bits\": 4, \"group_size\": -1"),
     LMQ_ERR_FORMAT, "in groups of -1"},
    {{"a.weight", "F32", "[1]", 4}, NULL, LMQ_ERR_FORMAT,
     "there is 'a.qweight', and 'a.weight' too"},
};

static void
put_part(struct stored *stored, const struct part *part)
{
    if (part->dtype == NULL)
        return;
    stored_entry(stored, part->name, part->dtype, part->shape, part->n_bytes);
    put_zeros(&stored->data, part->n_bytes);
}

START_TEST(gptq_of_wrong_shapes_is_refused)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct part *other = &wrong[i].part;
        struct stored stored = {0};
        bool is_used = *other->name == '\0';
        for (size_t j = 0; j < sizeof(right) / sizeof(right[0]); j++) {
            bool is_it = strcmp(right[j].name, other->name) == 0;
            put_part(&stored, is_it ? other : &right[j]);
            is_used |= is_it;
        }
        if (!is_used)
            put_part(&stored, other);
        const char *path = stored_save(&stored, wrong[i].config);
        if (wrong[i].status == LMQ_OK)
            lmq_checkpoint_close(open_checkpoint(path));
        else
            assert_refused(path, wrong[i].status, wrong[i].text);
    }
}
END_TEST

START_TEST(groups_that_are_not_there_are_refused)
{
    struct random random = {random_seed()};
    static const uint32_t bad[] = {2, 0xffffffff, 0x7fffffff, 1u << 24};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        make_matrix(32, 64, 4, 32, &random);
        m.group[63] = bad[i];
        assert_refused(save_gptq(1, true, NULL), LMQ_ERR_FORMAT,
                       "column 63 belongs to group");
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        gptq_gives_what_was_packed,
        gptq_is_known_by_its_tensors,
        gptq_may_be_described_elsewhere,
        gptq_of_other_bits_than_the_rest_is_announced,
        gptq_is_of_integers_with_as_many_bits_as_they_need,
        gptq_of_other_kinds_is_refused_by_name,
        gptq_of_wrong_shapes_is_refused,
        awq_gives_what_was_packed,
        awq_of_other_kinds_is_refused,
        autoround_is_gptq_of_one_version_or_the_other,
        groups_that_are_not_there_are_refused,
    };

    return RUN_SUITE("packed_words", tests);
}
