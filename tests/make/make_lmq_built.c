/*
 * make_lmq_built.c - containers that no conversion makes: other writers may,
 * later versions will, and strangers do.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_lmq.h"
#include "tests/make/make_files.h"
#include "tests/make/make_lmq.h"

#define NOWHERE .layer = -1, .item = -1
#define COUNT(list) (uint32_t)(sizeof(list) / sizeof((list)[0]))

static const char no_model[] = "{\"architecture\":\"\"}";

static struct built_lmq
file_of(const struct built_tensor *tensors, uint32_t n)
{
    return (struct built_lmq){.log2 = 6,
                              .record_size = 256,
                              .tensors = tensors,
                              .n_tensors = n,
                              .metadata = no_model};
}

static void
emit_built(const char *name, const struct built_lmq *file, const char *rule,
           const char *sentence)
{
    struct bytes bytes = {0};

    put_lmq(&bytes, file);
    emit_lmq(name, &bytes, rule, sentence);
}

/* ---- Tensors ---- */

/* Four elements of each type: 1, 0, another, and a larger one; of f32 also
 * the smallest, of others what they have. */
static void
make_types(void)
{
    static const unsigned char f32[] = "\0\0\x80\x3f\0\0\0\x80\1\0\0\0\0\0\x40";
    static const unsigned char f16[] = "\0\x3c\1\0\xff\x7b\0\xbc";
    static const unsigned char bf16[] = "\x80\x3f\1\0\0\xc0\x20\x41";
    static const unsigned char f64[] =
        "\0\0\0\0\0\0\xf0\x3f\x9a\x99\x99\x99\x99\x99\xb9\x3f"
        "\1\0\0\x10\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0";
    static const unsigned char e4m3[] = "\x38\1\x7e\xb8";
    static const unsigned char e5m2[] = "\x3c\1\x7b\xbc";
    static const unsigned char i8[] = "\1\0\x80\x7f";
    static const unsigned char u8[] = "\1\0\x80\xff";
    static const unsigned char i16[] = "\1\0\0\x80\xff\x7f\xff\xff";
    static const unsigned char i32[] =
        "\1\0\0\0\0\0\0\x80\1\0\0\1\xff\xff\xff";
    static const unsigned char i64[] =
        "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80"
        "\1\0\0\0\0\0\x40\0\xff\xff\xff\xff\xff\xff\xff";
    static const unsigned char flags[] = "\1\0\0\1";
    static const struct {
        const unsigned char *bytes;
        size_t size;
    } types[] = {{f32, 4},  {f16, 2}, {bf16, 2}, {f64, 8}, {e4m3, 1},
                 {e5m2, 1}, {i8, 1},  {u8, 1},   {i16, 2}, {i16, 2},
                 {i32, 4},  {i32, 4}, {i64, 8},  {i64, 8}, {flags, 1}};
    struct built_tensor tensors[COUNT(types)];
    static char names[COUNT(types)][16];

    for (uint32_t i = 0; i < COUNT(types); i++) {
        snprintf(names[i], sizeof(names[i]), "type.%u", i);
        tensors[i] = (struct built_tensor){
            .name = names[i], NOWHERE, .type = (unsigned char)i, .n_dims = 1,
            .dims = {4}, .values = types[i].bytes,
            .values_size = 4 * types[i].size};
    }
    struct built_lmq file = file_of(tensors, COUNT(types));
    emit_built("good-types.lmq", &file, NULL, "all types of elements.");
}

/* Integers and scales that are all legal, of rows or tiles. */
static unsigned char integers[1024], f16_scales[128], f32_scales[256];

static void
fill(bool is_tiles)
{
    for (size_t i = 0; i < sizeof(integers); i++)
        integers[i] =
            (unsigned char)((i * 37 % 255) + (is_tiles ? 1 : 129));
    for (size_t i = 0; i < sizeof(f16_scales); i += 2) {
        f16_scales[i] = (unsigned char)(i * 7);
        f16_scales[i + 1] = (unsigned char)(0x20 + i % 16);
    }
    for (size_t i = 0; i < sizeof(f32_scales); i += 4) {
        f32_scales[i] = (unsigned char)i;
        f32_scales[i + 3] = (unsigned char)(0x38 + i % 4);
    }
}

/* Of groups and shapes that a conversion of a small model does not have. */
static void
make_groups(void)
{
    const struct built_tensor tensors[] = {
        {.name = "g32", NOWHERE, .encoding = 1, .n_dims = 2, .dims = {3, 70},
         .group = 32, .multiplier = 1, .values = integers,
         .values_size = 3 * 70, .scales = f16_scales, .scales_size = 3 * 3 * 2},
        {.name = "cube", NOWHERE, .encoding = 1, .n_dims = 3,
         .dims = {2, 2, 65}, .group = 64, .multiplier = 0x1p-40f,
         .values = integers, .values_size = 4 * 65, .scales = f16_scales,
         .scales_size = 4 * 2 * 2},
        {.name = "vector", NOWHERE, .encoding = 1, .n_dims = 1, .dims = {129},
         .group = 128, .multiplier = 0x1p20f, .values = integers,
         .values_size = 129, .scales = f16_scales, .scales_size = 2 * 2},
        {.name = "f32", NOWHERE, .encoding = 1, .scale_type = 1, .n_dims = 2,
         .dims = {2, 300}, .group = 256, .multiplier = 1, .values = integers,
         .values_size = 600, .scales = f32_scales, .scales_size = 2 * 2 * 4},
        {.name = "number", NOWHERE, .encoding = 1, .group = 32,
         .multiplier = 1, .values = integers, .values_size = 1,
         .scales = f16_scales, .scales_size = 2},
        {.name = "plain number", NOWHERE, .values = f32_scales,
         .values_size = 4},
        {.name = "eight", NOWHERE, .n_dims = 8,
         .dims = {1, 1, 2, 1, 1, 1, 1, 3}, .values = f32_scales,
         .values_size = 24},
    };
    struct built_lmq file = file_of(tensors, COUNT(tensors));

    fill(false);
    emit_built("good-groups.lmq", &file, NULL,
               "groups of 32 to 256, ragged; any number of dimensions.");
    file.log2 = 8;
    emit_built("good-alignment.lmq", &file, NULL,
               "the same at multiples of 256.");
    file.log2 = 6;
    file.record_size = 272;
    emit_built("good-later-records.lmq", &file, NULL,
               "the same with records of 272 bytes.");
}

/* Whole groups are, and the rest of a row is not; or all of it, as it can. */
static void
make_rotated(void)
{
    const struct built_tensor tensors[] = {
        {.name = "rotated", NOWHERE, .encoding = 3, .n_dims = 2,
         .dims = {3, 150}, .group = 64, .multiplier = 1, .values = integers,
         .values_size = 450, .scales = f16_scales, .scales_size = 3 * 3 * 2},
        {.name = "wide", NOWHERE, .encoding = 3, .scale_type = 1, .n_dims = 2,
         .dims = {2, 300}, .group = 256, .multiplier = 1, .values = integers,
         .values_size = 600, .scales = f32_scales, .scales_size = 2 * 2 * 4},
        {.name = "short", NOWHERE, .encoding = 3, .n_dims = 1, .dims = {63},
         .group = 64, .multiplier = 1, .values = integers, .values_size = 63,
         .scales = f16_scales, .scales_size = 2},
    };
    const struct built_tensor all[] = {
        {.name = "rotated", NOWHERE, .encoding = 4, .n_dims = 2,
         .dims = {3, 150}, .group = 64, .multiplier = 1, .values = integers,
         .values_size = 450, .scales = f16_scales, .scales_size = 3 * 3 * 2},
        {.name = "wide", NOWHERE, .encoding = 4, .scale_type = 1, .n_dims = 2,
         .dims = {2, 300}, .group = 128, .multiplier = 1, .values = integers,
         .values_size = 600, .scales = f32_scales, .scales_size = 2 * 3 * 4},
        {.name = "narrow", NOWHERE, .encoding = 4, .n_dims = 2,
         .dims = {3, 96}, .group = 32, .multiplier = 1, .values = integers,
         .values_size = 288, .scales = f16_scales, .scales_size = 3 * 3 * 2},
        {.name = "short", NOWHERE, .encoding = 4, .n_dims = 1, .dims = {3},
         .group = 256, .multiplier = 1, .values = integers, .values_size = 3,
         .scales = f16_scales, .scales_size = 2},
    };
    struct built_tensor other = {
        .name = "other", NOWHERE, .encoding = 3, .n_dims = 2, .dims = {3, 70},
        .group = 32, .multiplier = 1, .values = integers,
        .values_size = 3 * 70, .scales = f16_scales, .scales_size = 3 * 3 * 2};
    struct built_lmq file = file_of(tensors, COUNT(tensors));

    fill(false);
    emit_built("good-rotated.lmq", &file, NULL, "groups that are rotated.");
    file = file_of(all, COUNT(all));
    emit_built("good-rotated-all.lmq", &file, NULL,
               "groups of which all is rotated.");
    file = file_of(&other, 1);
    emit_built("bad-record-rotated.lmq", &file, "R30",
               "a rotated group of 32.");
    other.encoding = 4;
    other.dims[1] = 64;
    other.group = 64;
    other.values_size = 3 * 64;
    other.scales_size = 3 * 2;
    emit_built("bad-record-rotated-all.lmq", &file, "R30",
               "whole groups of 64 with the other number.");
}

/* A tile with all of its rows and columns. */
static void
make_tile(void)
{
    const struct built_tensor tensors[] = {
        {.name = "tile", NOWHERE, .encoding = 1, .layout = 1, .n_dims = 2,
         .dims = {16, 64}, .group = 32, .multiplier = 0.5f,
         .values = integers, .values_size = 1024, .scales = f16_scales,
         .scales_size = 2 * 16 * 2}};
    struct built_lmq file = file_of(tensors, COUNT(tensors));

    fill(true);
    emit_built("good-whole-tile.lmq", &file, NULL,
               "a tile of 16 rows and two groups, without padding.");
}

static const unsigned char two[8] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};

static const struct built_tensor alias_first[] = {
    {.name = "an alias", NOWHERE, .encoding = 2, .n_dims = 1, .dims = {2},
     .alias = 1},
    {.name = "its tensor", NOWHERE, .n_dims = 1, .dims = {2}, .values = two,
     .values_size = 8}};

static void
make_places(void)
{
    const struct built_tensor role[] = {
        {.name = "a later role", .role = 177, .layer = 3, .item = 12,
         .n_dims = 1, .dims = {2}, .values = two, .values_size = 8}};
    struct built_lmq file = file_of(alias_first, COUNT(alias_first));

    emit_built("good-alias-first.lmq", &file, NULL,
               "an alias before its tensor, both without a role.");
    file = file_of(role, COUNT(role));
    emit_built("good-later-role.lmq", &file, NULL,
               "a role that is not known, with layer and item.");
    file = file_of(NULL, 0);
    emit_built("good-no-tensors.lmq", &file, NULL, "no tensors.");
}

/* ---- Tensors that are wrong ---- */

static void
make_bad_tensors(void)
{
    const struct built_tensor vector = {
        .name = "v", NOWHERE, .n_dims = 1, .dims = {2}, .values = two,
        .values_size = 8};
    struct built_tensor tensors[2] = {vector, vector};
    struct built_lmq file = file_of(tensors, 2);

    emit_built("bad-name-twice.lmq", &file, "R36", "two tensors of a name.");
    file.n_tensors = 1;
    tensors[0].name = "\xff";
    emit_built("bad-name-utf8.lmq", &file, "R24", "a name that is no UTF-8.");
    tensors[0] = vector;
    tensors[0].name = "blk.0.attn_k_b.weight";
    tensors[0].role = 30;
    tensors[0].layer = 0;
    emit_built("bad-head-without-item.lmq", &file, "R28",
               "a matrix of a head (role 30) without its number.");
    tensors[0] = alias_first[0];
    tensors[1] = alias_first[0];
    tensors[1].name = "the other";
    tensors[0].alias = 1;
    tensors[1].alias = 0;
    file.n_tensors = 2;
    emit_built("bad-alias-circle.lmq", &file, "R35",
               "two aliases of each other.");
    tensors[1] = vector;
    tensors[0].dims[0] = 1;
    emit_built("bad-alias-shape.lmq", &file, "R35",
               "an alias of another shape.");
}

/* What only verify reads. */
static void
make_bad_integers(void)
{
    struct built_tensor tensors[] = {
        {.name = "q", NOWHERE, .encoding = 1, .n_dims = 2, .dims = {2, 32},
         .group = 32, .multiplier = 1, .values = integers, .values_size = 64,
         .scales = f16_scales, .scales_size = 4}};
    struct built_lmq file = file_of(tensors, 1);

    fill(false);
    integers[5] = 0x80;
    emit_built("bad-value.lmq", &file, "V3", "the value -128.");
    fill(false);
    f16_scales[3] = 0x80;
    f16_scales[2] = 0;
    emit_built("bad-scale.lmq", &file, "V4", "a scale of -0.0.");
}

/* ---- Sections ---- */

/* "abc", stored as it is: zlib's header, a block, Adler-32. */
static const char deflated[] =
    "\x78\1\1\3\0\xfc\xff" "abc\2\x4d\1\x27";

static void
make_sections(void)
{
    static const char long_name[] =
        "fifty-six-characters-in-the-name-of-an-embedded-file.txt";
    const struct built_section sections[] = {
        {7, 0, "", "a later section", 15, 0},
        {7, 1, "deflated", deflated, sizeof(deflated) - 1, 3},
        {0x80000001, 0, "org.example.thing", "a private section", 17, 0},
        {0x80000001, 0, "org.example.nothing", "", 0, 0},
        {3, 0, long_name, "text\n", 5, 0},
        {3, 1, "deflated.txt", deflated, sizeof(deflated) - 1, 3}};
    struct built_lmq file = file_of(alias_first, COUNT(alias_first));

    file.sections = sections;
    file.n_sections = COUNT(sections);
    emit_built("good-sections.lmq", &file, NULL,
               "sections of a later version and of private types; files.");
    const struct built_section twice[] = {{3, 0, "a.txt", "1", 1, 0},
                                          {3, 0, "a.txt", "2", 1, 0}};
    file.sections = twice;
    file.n_sections = 2;
    emit_built("bad-file-twice.lmq", &file, "R45", "two files of one name.");
    const struct built_section parent = {3, 0, "..", "1", 1, 0};
    file.sections = &parent;
    file.n_sections = 1;
    emit_built("bad-file-name.lmq", &file, "R19", "a file called \"..\".");
    const struct built_section short_by_one = {
        3, 1, "a.txt", deflated, sizeof(deflated) - 1, 4};
    file.sections = &short_by_one;
    emit_built("bad-file-inflation.lmq", &file, "R45",
               "a file that inflates to three bytes, not four.");
    const struct built_section statistics[] = {
        {4, 0, "", "\0\0\0\0\x30\0\0\0", 8, 0},
        {4, 0, "", "\0\0\0\0\x30\0\0\0", 8, 0}};
    file = file_of(NULL, 0);
    file.sections = statistics;
    file.n_sections = 2;
    emit_built("bad-statistics-twice.lmq", &file, "R41",
               "two sections of statistics.");
}

/* ---- Metadata ---- */

/* A description without tensors: what is wrong with its keys shows first. */
#define MODEL(counts, heads, reals, scaling, more)                            \
    "{\"model\":{" counts ",\"hidden_dim\":4," heads                           \
    ",\"vocab_size\":5,\"context\":8,\"sliding_window\":0,"                   \
    "\"rope_context\":0," reals ",\"rope_theta\":10000," scaling more "}}"
#define COUNTS "\"n_layers\":1,\"dim\":4"
#define HEADS "\"n_heads\":2,\"n_kv_heads\":1,\"head_dim\":2"
#define REALS "\"norm_eps\":1e-05"
#define SCALED(word, factor, low, high)                                       \
    "\"rope_factor\":" factor ",\"rope_low_factor\":" low                     \
    ",\"rope_high_factor\":" high ",\"rope_scaling\":\"" word "\""
#define SCALING SCALED("none", "1", "0", "0")

/* 4 heads of values on 3 of keys. */
#define STATES                                                                \
    "\"n_delta_key_heads\":3,\"n_delta_value_heads\":4,"                      \
    "\"delta_key_dim\":2,\"delta_value_dim\":2,\"conv_width\":2,"
#define STATE_KEYS                                                            \
    "\"n_delta_key_heads\",\"n_delta_value_heads\",\"delta_key_dim\","        \
    "\"delta_value_dim\",\"conv_width\"]"

static const struct {
    const char *name, *text, *rule, *sentence;
} texts[] = {
    {"good-metadata.lmq",
     "{\"later\":null,\"org.example.key\":{\"a\":[1,2.5,true]},"
     "\"tie_rule\":\"\",\"provenance\":{\"tool\":\"another\","
     "\"org.example.date\":0},\"number\":9007199254740992}",
     NULL, "keys that are not known, and private ones."},
    {"bad-metadata-array.lmq", "[]", "R39", "metadata that are no object."},
    {"bad-metadata-twice.lmq", "{\"tie_rule\":\"\",\"tie_rule\":\"\"}", "R39",
     "a key twice."},
    {"bad-metadata-inner-twice.lmq", "{\"x\":[{\"y\":1,\"y\":1}]}", "R39",
     "a key twice, further in."},
    {"bad-metadata-surrogate.lmq", "{\"x\":\"\\ud800\"}", "R39",
     "half of a surrogate pair."},
    {"bad-metadata-utf8.lmq", "{\"x\":\"\xff\"}", "R39",
     "a byte that is no UTF-8."},
    {"bad-metadata-integer.lmq", "{\"x\":9007199254740993}", "R39",
     "an integer beyond 2^53."},
    {"bad-metadata-more.lmq", "{}{}", "R39", "two documents."},
    {"bad-metadata-deep.lmq",
     "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]}",
     "R39", "33 brackets within each other."},
    {"bad-metadata-type.lmq", "{\"tie_rule\":0}", "R40",
     "a rule that is a number."},
    {"bad-metadata-inner-type.lmq", "{\"quantization\":{\"group_size\":64.0}}",
     "R40", "a group size that is no integer."},
    {"bad-metadata-source.lmq", "{\"provenance\":{\"sources\":[\"a\"]}}",
     "R40", "a source that is no object."},
    {"bad-metadata-source-size.lmq",
     "{\"provenance\":{\"sources\":[{\"size\":\"1\"}]}}", "R40",
     "a source whose size is a text."},
    {"bad-metadata-stored-name.lmq",
     "{\"provenance\":{\"stored_names\":[1]}}", "R40",
     "a name that is a number."},
    {"bad-metadata-zero.lmq", "{\"x\":\"\\u0000\"}", "R39",
     "a zero byte in a text."},
    {"bad-metadata-number.lmq", "{\"x\":1e999}", "R39",
     "a number beyond the range of f64."},
    {"bad-metadata-nan.lmq", "{\"x\":NaN}", "R39",
     "a number that is none."},
    {"bad-metadata-mark.lmq", "\xef\xbb\xbf{}", "R39",
     "a byte-order mark."},
    {"bad-metadata-model.lmq", "{\"model\":[]}", "R40",
     "a model that is no object."},
    {"bad-model-fraction.lmq",
     MODEL("\"n_layers\":1,\"dim\":4.0", HEADS, REALS, SCALING, ""), "M2",
     "a dim of 4.0."},
    {"bad-model-text.lmq",
     MODEL(COUNTS, HEADS, "\"norm_eps\":\"1\"", SCALING, ""), "M2",
     "a number as text."},
    {"bad-model-word.lmq", MODEL(COUNTS, HEADS, REALS,
           "\"rope_factor\":1,\"rope_low_factor\":0,"
           "\"rope_high_factor\":0,\"rope_scaling\":0", ""),
     "M2", "a number for a word."},
    {"bad-model-switch-type.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING, ",\"gated\":1"), "M2",
     "1 for true."},
    {"bad-model-negative.lmq",
     MODEL("\"n_layers\":1,\"dim\":-4", HEADS, REALS, SCALING, ""), "M3",
     "a dim below 0."},
    {"bad-model-huge.lmq",
     MODEL("\"n_layers\":4097,\"dim\":4", HEADS, REALS, SCALING, ""), "M3",
     "4097 layers."},
    {"bad-model-negative-real.lmq",
     MODEL(COUNTS, HEADS, "\"norm_eps\":-1e-05", SCALING, ""), "M3",
     "a norm_eps below 0."},
    {"bad-model-nine-ends.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING, ",\"eos\":[1,1,1,1,1,1,1,1,1]"),
     "M3",
     "nine tokens that end a text."},
    {"bad-model-token.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING, ",\"bos\":true"), "M2",
     "a token that is none."},
    {"bad-model-zero.lmq",
     MODEL("\"n_layers\":0,\"dim\":4", HEADS, REALS, SCALING, ""), "M3",
     "no layers."},
    {"bad-model-eos.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING, ",\"eos\":[-1,1]"), "M3",
     "a token below 0."},
    {"bad-model-heads.lmq",
     MODEL(COUNTS, "\"n_heads\":3,\"n_kv_heads\":2,\"head_dim\":2",
           REALS, SCALING, ""), "M5", "3 heads on 2."},
    {"bad-model-odd.lmq",
     MODEL(COUNTS, "\"n_heads\":2,\"n_kv_heads\":1,\"head_dim\":3",
           REALS, SCALING, ""), "M5", "an odd number of dimensions that turn."},
    {"bad-model-turning.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"rotary_dim\":4,\"requires\":[\"rotary_dim\"]"), "M5",
     "4 of 2 dimensions that turn."},
    {"bad-model-wide.lmq",
     MODEL(COUNTS, "\"n_heads\":256,\"n_kv_heads\":1,\"head_dim\":65538",
           REALS, SCALING, ""), "M5", "heads that are too wide together."},
    {"bad-model-bands.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALED("llama3", "8", "4", "3"), ""), "M5",
     "llama3 without a band."},
    {"bad-model-factor.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALED("linear", "0", "0", "0"), ""), "M5",
     "frequencies divided by 0."},
    {"bad-model-betas.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALED("yarn", "4", "0", "0"),
           ",\"rope_beta_slow\":33,\"requires\":[\"rope_beta_slow\"]"), "M5",
     "yarn without an order."},
    {"bad-model-factors.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALED("longrope", "1", "0", "0"),
           ",\"rope_short\":[1],\"rope_long\":[0],"
           "\"requires\":[\"rope_short\",\"rope_long\"]"), "M5",
     "a factor of 0."},
    {"bad-model-no-factors.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALED("factors", "1", "0", "0"), ""), "M5",
     "factors, of which there are none."},
    {"bad-model-fewer-factors.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALED("longrope", "1", "0", "0"),
           ",\"rope_short\":[1],\"rope_long\":[1,1],"
           "\"requires\":[\"rope_short\",\"rope_long\"]"), "M3",
     "fewer short factors than long ones."},
    {"bad-model-latents.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"kv_lora_rank\":4,\"requires\":[\"kv_lora_rank\"]"), "M5",
     "latent attention of which all dimensions turn."},
    {"bad-model-experts.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"n_experts\":6,\"n_experts_used\":7,\"expert_dim\":4,"
           "\"requires\":[\"n_experts\",\"n_experts_used\","
           "\"expert_dim\"]"), "M5", "7 of 6 experts."},
    {"bad-model-groups.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"n_experts\":6,\"n_experts_used\":2,\"expert_dim\":4,"
           "\"n_expert_groups\":4,\"n_expert_groups_used\":2,"
           "\"requires\":[\"n_experts\",\"n_experts_used\","
           "\"expert_dim\",\"n_expert_groups\","
           "\"n_expert_groups_used\"]"), "M5", "6 experts in 4 groups."},
    {"bad-model-half-recurrent.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"delta_layers\":[0],\"feed_layers\":[0]," STATES
           "\"requires\":[\"delta_layers\",\"feed_layers\"," STATE_KEYS),
     "M5", "a recurrent layer that is a feed-forward alone."},
    {"bad-model-key-heads.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"delta_layers\":[0]," STATES
           "\"requires\":[\"delta_layers\"," STATE_KEYS), "M5",
     "4 value heads on 3 of keys."},
    {"bad-model-convolution.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"delta_layers\":[0],\"recurrence\":\"convolution\","
           "\"n_delta_value_heads\":1,\"delta_value_dim\":4,"
           "\"requires\":[\"delta_layers\",\"recurrence\","
           "\"n_delta_value_heads\",\"delta_value_dim\"]"), "M5",
     "a convolution of no tokens."},
    {"bad-model-state.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"delta_layers\":[0],\"n_delta_key_heads\":1,"
           "\"n_delta_value_heads\":4097,\"delta_key_dim\":4096,"
           "\"delta_value_dim\":1,\"conv_width\":2,"
           "\"requires\":[\"delta_layers\"," STATE_KEYS), "M5",
     "a state of 16781312 numbers."},
    {"bad-model-half-parallel.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING,
           ",\"bare_layers\":[0],\"residual\":\"parallel\","
           "\"requires\":[\"bare_layers\",\"residual\"]"), "M5",
     "one part, beside another."},
    {"bad-model-requires-type.lmq",
     MODEL(COUNTS, HEADS, REALS, SCALING, ",\"requires\":[1]"), "R44",
     "it requires a number."},
};

void
make_lmq_built(void)
{
    make_types();
    make_groups();
    make_rotated();
    make_tile();
    make_places();
    make_sections();
    make_bad_tensors();
    make_bad_integers();
    for (uint32_t i = 0; i < COUNT(texts); i++) {
        struct built_lmq file = file_of(alias_first, COUNT(alias_first));
        file.metadata = texts[i].text;
        emit_built(texts[i].name, &file, texts[i].rule, texts[i].sentence);
    }
}
