/*
 * make_lmq_files.c - the containers of tests/files/lmq: what conversions make,
 * what other writers may make (make_lmq_built.c), and what breaks one rule of
 * lmq(5) each.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "formats/checkpoint/checkpoint.h"
#include "lmquant.h"
#include "tests/build/expect_lmq.h"
#include "tests/make/make_files.h"
#include "tests/make/make_lmq.h"

static FILE *readme;

/* ---- The table ---- */

/* What lmquant says of the file, or nothing: without what the library for JSON
 * adds, of whatever version it is. */
static const char *
refusal_of(const char *name)
{
    static struct lmq_error err;
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report = NULL;
    struct lmq_model *model;
    char path[256];

    snprintf(path, sizeof(path), "lmq/%s", name);
    err = (struct lmq_error){0};
    if (lmq_checkpoint_open(in(path), NULL, &checkpoint, &err) != LMQ_OK)
        return err.message;
    bool runs = !checkpoint->has_model ||
                lmq_model_open(checkpoint, &model, &err) == LMQ_OK;
    if (checkpoint->has_model && runs)
        lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    if (runs && lmq_verify(in(path), NULL, NULL, &report, &err) != LMQ_OK) {
        const char *problem =
            lmq_report_string(report, "problems.0.message");
        if (problem != NULL)
            snprintf(err.message, sizeof(err.message), "verify: %s", problem);
    }
    lmq_report_free(report);
    return err.message;
}

static const char *
refusal(const char *name)
{
    static const char no_json[] = "is no valid JSON";
    const char *message = refusal_of(name);

    return strncmp(message, no_json, sizeof(no_json) - 1) == 0 ? no_json
                                                               : message;
}

void
describe_lmq(const char *name, const char *rule, const char *sentence)
{
    char path[256], text[256];

    snprintf(path, sizeof(path), "lmq/%s", name);
    snprintf(text, sizeof(text), "lmq/%.*s.txt", (int)strlen(name) - 4, name);
    if (strncmp(name, "good-", 5) == 0 || strncmp(name, "later-", 6) == 0)
        expect_lmq(in(path), in(text));
    fprintf(readme, "| `%s` | %s | %s | %s |\n", name,
            rule == NULL ? "" : rule, sentence, refusal(name));
}

void
emit_lmq(const char *name, struct bytes *bytes, const char *rule,
         const char *sentence)
{
    char path[256];

    snprintf(path, sizeof(path), "lmq/%s", name);
    emit(path, bytes, NULL);
    describe_lmq(name, rule, sentence);
}

struct bytes
converted(const char *from, const char *name,
          const struct lmq_convert_options *options)
{
    struct lmq_convert_options own = {0};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    struct bytes bytes = {0};
    char buffer[4096];
    size_t n;

    if (options != NULL)
        own = *options;
    if (own.group_size == 0)
        own.group_size = 64; /* whatever takes fewer bytes */
    unlink(in(name));
    if (lmq_checkpoint_open(in(from), NULL, &checkpoint, &err) != LMQ_OK ||
        lmq_convert(checkpoint, in(name), &own, NULL, NULL, &err) != LMQ_OK)
        fail(name, err.message);
    lmq_checkpoint_close(checkpoint);
    FILE *file = fopen(in(name), "rb");
    if (file == NULL)
        fail(name, strerror(errno));
    while ((n = fread(buffer, 1, sizeof(buffer), file)) > 0)
        put(&bytes, buffer, n);
    fclose(file);
    return bytes;
}

/* ---- Patches ---- */

/* What an offset of a patch is relative to. */
enum base {
    FILE_START,
    RECORD,
    ALIAS_RECORD,
    TABLE,
    DIRECTORY,
    DIRECTORY_ENTRY,
    METADATA,
    STATISTICS,
    FILE_END
};

static const struct {
    const char *name;
    enum base base;
    size_t at;
    int size;
    uint64_t value;
    bool is_sealed; /* checksums are put right */
    const char *rule; /* of lmq(5) that it breaks; NULL: none */
    const char *sentence;
} patches[] = {
    {"bad-magic-seven-bits", FILE_START, 0, 1, 0x09, false, "R2",
     "the high bit of the magic number is lost."},
    {"bad-magic-crlf", FILE_START, 4, 1, '\n', false, "R2",
     "line ends of the magic number are converted."},
    {"bad-superblock-checksum", FILE_START, 40, 1, 0xff, false, "R4",
     "a damaged superblock."},
    {"unsupported-future-major", FILE_START, 12, 2, 9, true, "R5",
     "format version 9."},
    {"unsupported-feature", FILE_START, 16, 8, 2, true, "R6",
     "an incompatible feature flag."},
    {"good-compatible-feature", FILE_START, 24, 8, 1, true, NULL,
     "a compatible feature flag that is not known."},
    {"unsupported-big-endian", FILE_START, 8, 4, 0x04030201, true, "R3",
     "written in big-endian order."},
    {"bad-byte-order", FILE_START, 8, 4, 0x03040102, true, "R3",
     "a byte-order mark that is none."},
    {"bad-file-size", FILE_START, 32, 8, 1 << 20, true, "R8",
     "a size that the file does not have."},
    {"bad-table-offset", FILE_START, 40, 8, UINT64_MAX - 63, true, "R9",
     "a section table at the end of 64 bits."},
    {"bad-no-sections", FILE_START, 48, 4, 0, true, "R9", "no sections."},
    {"bad-many-sections", FILE_START, 48, 4, UINT32_MAX, true, "R9",
     "four billion sections."},
    {"bad-superblock-reserved", FILE_START, 84, 1, 1, true, "R12",
     "a reserved byte that is not zero."},
    {"bad-alignment-small", FILE_START, 56, 1, 5, true, "R10",
     "tensors at multiples of 32."},
    {"bad-alignment-huge", FILE_START, 56, 1, 255, true, "R10",
     "tensors at multiples of 2^255."},
    {"bad-alignment-other", FILE_START, 56, 1, 12, true, "R33",
     "tensors that are not at multiples of 4096."},
    {"unsupported-prerelease", FILE_START, 56, 1, 0, true, "R7",
     "what was written before the format was settled."},
    {"bad-member-of-none", FILE_START, 60, 4, 1, true, "R11",
     "the first member of no set."},
    {"bad-set-without-id", FILE_START, 60, 8, 0x100000001, true, "R11",
     "the only member of a set without a name."},
    {"bad-section-zero", TABLE, 0, 4, 0, true, "R14", "a section of type 0."},
    {"bad-private-section", TABLE, 0, 4, 0x80000000, true, "R19",
     "a private section without a domain name."},
    {"bad-section-offset", TABLE, 8, 8, UINT64_MAX - 63, true, "R16",
     "a section at the end of 64 bits."},
    {"bad-section-unaligned", TABLE, 8, 8, 129, true, "R16",
     "a section that is not aligned."},
    {"bad-section-huge", TABLE, 16, 8, (uint64_t)1 << 62, true, "R16",
     "a section larger than the file."},
    {"bad-section-bomb", TABLE, 4, 4, 1, true, "R17",
     "metadata that are deflated, and are not."},
    {"bad-section-type", TABLE, 0, 4, 2, true, "R22",
     "two directories and no metadata."},
    {"unsupported-section-flag", TABLE, 4, 4, 0x10, true, "R15",
     "a flag of a section that is not known."},
    {"bad-section-name", TABLE, 40, 1, 0x1b, true, "R19",
     "a terminal escape in the name of a section."},
    {"bad-directory-count", DIRECTORY, 0, 4, UINT32_MAX, true, "R23",
     "four billion tensors."},
    {"bad-directory-record-size", DIRECTORY, 4, 4, 0, true, "R23",
     "records of zero bytes."},
    {"bad-directory-names", DIRECTORY, 8, 8, UINT64_MAX, true, "R23",
     "a table of names that wraps."},
    {"bad-record-name", RECORD, 0, 4, UINT32_MAX, true, "R24",
     "a name far behind the table of names."},
    {"bad-record-name-length", RECORD, 4, 4, 0, true, "R24",
     "a name of zero bytes."},
    {"later-encoding", RECORD, 11, 1, 77, true, NULL,
     "an encoding that is not known."},
    {"later-layout", RECORD, 21, 1, 9, true, NULL,
     "a layout that is not known."},
    {"good-later-source-type", RECORD, 196, 1, 200, true, NULL,
     "made from a type of numbers that is not known."},
    {"later-bits", RECORD, 197, 1, 4, true, NULL, "integers of 4 bits."},
    {"later-zero-points", RECORD, 198, 1, 1, true, NULL, "zero points."},
    {"later-scales-of-scales", RECORD, 199, 1, 0x80, true, NULL,
     "a private kind of scales of scales."},
    {"bad-record-layer", RECORD, 12, 4, 0x80000000, true, "R27",
     "a layer of -2147483648."},
    {"bad-record-group-zero", RECORD, 24, 4, 0, true, "R30",
     "a group size of 0."},
    {"bad-record-group-odd", RECORD, 24, 4, 63, true, "R30",
     "a group size that is no power of two."},
    {"bad-record-multiplier-nan", RECORD, 28, 4, 0x7fc00000, true, "R30",
     "a multiplier that is NaN."},
    {"bad-record-multiplier-negative", RECORD, 28, 4, 0xbf800000, true, "R30",
     "a negative multiplier."},
    {"bad-record-dim-zero", RECORD, 32, 8, 0, true, "R25", "a dimension of 0."},
    {"bad-record-dims-wrap", RECORD, 32, 8, (uint64_t)1 << 62, true, "R26",
     "a product of dimensions that wraps."},
    {"bad-record-extra-dim", RECORD, 48, 8, 1, true, "R25",
     "a dimension more than there are."},
    {"bad-record-offset", RECORD, 96, 8, UINT64_MAX - 63, true, "R33",
     "values at the end of 64 bits."},
    {"bad-record-overlap", RECORD, 96, 8, 128, true, "R37",
     "two tensors share bytes."},
    {"bad-record-size", RECORD, 104, 8, 1, true, "R32",
     "fewer values than the shape needs."},
    {"bad-record-alias", RECORD, 192, 4, 0, true, "R35",
     "an alias that has values of its own."},
    {"bad-record-rows", RECORD, 184, 8, 1, true, "R31",
     "one row of two, in no set."},
    {"bad-record-zeros", RECORD, 128, 8, 128, true, "R33",
     "a place for zero points, of which there are none."},
    {"bad-record-checksum-of-nothing", RECORD, 172, 4, 1, true, "R33",
     "a checksum of no bytes that is not 0."},
    {"bad-record-minus-zero", ALIAS_RECORD, 28, 4, 0x80000000, true, "R30",
     "a multiplier of -0.0 where there is none."},
    {"bad-record-reserved", RECORD, 254, 1, 1, true, "R34",
     "a reserved byte that is not zero."},
    {"bad-statistics-minus-zero", STATISTICS, 8 + 24, 4, 0x80000000, true,
     "R42", "a largest magnitude of -0.0."},
    {"bad-statistics-count", STATISTICS, 0, 4, 7, true, "R41",
     "statistics of seven tensors, of three."},
    {"bad-metadata-json", METADATA, 0, 1, 'x', true, "R39",
     "metadata that are no JSON."},
    {"bad-metadata-checksum", METADATA, 5, 1, '!', false, "R38",
     "damaged metadata."},
    {"bad-trailer", FILE_END, 32, 1, 'x', false, "R20", "a damaged trailer."},
    {"bad-flipped-value", FILE_START, 130, 1, 0x55, false, "V1",
     "a damaged tensor, which only verify reads."},
    {"good-later-minor", FILE_START, 14, 2, 7, true, NULL,
     "version 1.7, which adds what may be ignored."},
    {"later-part", RECORD, 10, 1, 2, true, NULL, "a part that is not known."},
    {"later-scale-type", RECORD, 22, 1, 0x90, true, NULL,
     "a private type of scales."},
    {"unsupported-section", TABLE, 0, 8, 0x200000009, true, "R15",
     "a section that is required and not known."},
    {"bad-section-size", TABLE, 24, 8, 5, true, "R18",
     "another size than is stored, and not deflated."},
    {"bad-section-reserved", TABLE, 36, 1, 1, true, "R19",
     "a reserved byte that is not zero."},
    {"bad-no-metadata", TABLE, 0, 4, 9, true, "R38",
     "metadata of a type that is not known."},
    {"bad-no-directory", DIRECTORY_ENTRY, 0, 4, 9, true, "R22",
     "a directory of a type that is not known."},
    {"bad-record-name-of-another", RECORD, 12, 4, 1, true, "R28",
     "layer 1 in the record of layer 0."},
    {"bad-record-no-layer", RECORD, 12, 4, UINT32_MAX, true, "R28",
     "a query matrix of no layer."},
    {"bad-record-item", RECORD, 16, 4, 2, true, "R28",
     "an item of a role that has none."},
    {"bad-record-item-huge", RECORD, 16, 4, 65536, true, "R27",
     "item 65536."},
    {"bad-record-no-role", RECORD, 8, 2, 0, true, "R29",
     "a layer, but no role."},
    {"bad-record-alias-of-itself", ALIAS_RECORD, 192, 4, 2, true, "R35",
     "an alias of itself."},
    {"bad-record-alias-of-nothing", ALIAS_RECORD, 192, 4, 3, true, "R35",
     "an alias of a record that is not there."},
    {"bad-record-element-type", RECORD, 20, 1, 1, true, "R34",
     "an element type of integers in groups."},
    {"bad-padding", FILE_START, 135, 1, 1, false, "V2",
     "padding that is not zero, which only verify reads."},
};

static void
make_patched(const struct bytes *good)
{
    struct bytes bytes = {0};
    char name[128];

    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        put(&bytes, good->at, good->n);
        size_t directory = find_lmq_section(bytes.at, bytes.n, 2);
        const size_t bases[] = {
            [FILE_START] = 0,
            [RECORD] = directory + 16 + 256, /* the second */
            [ALIAS_RECORD] = directory + 16 + 2 * 256,
            [TABLE] = find_lmq_entry(bytes.at, bytes.n, 1),
            [DIRECTORY] = directory,
            [DIRECTORY_ENTRY] = find_lmq_entry(bytes.at, bytes.n, 2),
            [METADATA] = find_lmq_section(bytes.at, bytes.n, 1),
            [STATISTICS] = find_lmq_section(bytes.at, bytes.n, 4),
            [FILE_END] = bytes.n - 2 * patches[i].at,
        };
        unsigned char *p = bytes.at + bases[patches[i].base] + patches[i].at;
        for (int j = 0; j < patches[i].size; j++)
            p[j] = (unsigned char)(patches[i].value >> 8 * j);
        if (patches[i].is_sealed)
            reseal_lmq(bytes.at, bytes.n);
        snprintf(name, sizeof(name), "%s.lmq", patches[i].name);
        emit_lmq(name, &bytes, patches[i].rule, patches[i].sentence);
    }
}

/* ---- Digests ---- */

static const struct {
    const char *name;
    size_t at;
    uint32_t value;
    int size;
    const char *rule, *sentence;
} digest_patches[] = {
    {"bad-digests-version.lmq", 0, 2, 4, "R46", "digests of version 2."},
    {"bad-digests-chunk.lmq", 4, 63, 4, "R46",
     "digests of chunks of 2^63 elements."},
    {"bad-digests-count.lmq", 15, 0x10, 1, "R46",
     "more digests than there can be."},
    {"bad-digests-root.lmq", 16, 0x5a, 1, "V5",
     "another root than the file has."},
    {"bad-digests-content.lmq", 48, 0x5a, 1, "V5",
     "another content than it holds."},
    {"bad-digests-of-tensor.lmq", 80, 0x5a, 1, "V5",
     "another digest of a tensor."},
};

/* Without a library for SHA-256 those that are there stay. */
static void
make_digests(void)
{
    const struct lmq_convert_options options = {
        .size = sizeof(options), .layout = "rows", .has_digests = 1};
    struct bytes bytes = {0};

    if (!lmq_sha256_is_there())
        return;
    struct bytes good =
        converted("good-folder", "lmq/good-digests.lmq", &options);
    describe_lmq("good-digests.lmq", NULL, "a container with digests.");
    for (size_t i = 0; i < sizeof(digest_patches) / sizeof(digest_patches[0]);
         i++) {
        put(&bytes, good.at, good.n);
        unsigned char *p = bytes.at + find_lmq_section(bytes.at, bytes.n, 5) +
                           digest_patches[i].at;
        for (int j = 0; j < digest_patches[i].size; j++)
            p[j] = (unsigned char)(digest_patches[i].value >> 8 * j);
        reseal_lmq(bytes.at, bytes.n);
        emit_lmq(digest_patches[i].name, &bytes, digest_patches[i].rule,
                 digest_patches[i].sentence);
    }
    bytes_free(&good);
}

/* ---- For people ---- */

/* The first place in the metadata where `from` stands; as long as `to`. */
static void
patch_text(struct bytes *bytes, const char *from, const char *to)
{
    size_t n = strlen(from), at = find_lmq_section(bytes->at, bytes->n, 1);

    while (memcmp(bytes->at + at, from, n) != 0)
        at++;
    memcpy(bytes->at + at, to, n);
    reseal_lmq(bytes->at, bytes->n);
}

static void
make_about(const struct bytes *good)
{
    struct bytes bytes = {0};

    put(&bytes, good->at, good->n);
    patch_text(&bytes, "\"tie_rule\":", "\"about\"   :");
    emit("bad-about-text.lmq", &bytes, "`about` is a text, no object [21].");
    put(&bytes, good->at, good->n);
    patch_text(&bytes, "\"provenance\":", "\"about\"     :");
    patch_text(&bytes, "\"sources\":", "\"license\":");
    emit("bad-about-license.lmq", &bytes, "a licence that is a list [21].");
}

/* ---- Sizes ---- */

/* `other` is a container of another size. */
static void
make_cut(const struct bytes *good, const struct bytes *other)
{
    struct bytes bytes = {0};

    emit_lmq("bad-empty.lmq", &bytes, "R1", "zero bytes.");
    put(&bytes, good->at, 127);
    emit_lmq("bad-superblock-cut.lmq", &bytes, "R1",
             "all of a superblock but a byte.");
    put(&bytes, good->at, 128);
    emit_lmq("bad-superblock-only.lmq", &bytes, "R8",
             "a superblock and nothing else.");
    put(&bytes, good->at, good->n - 1);
    emit_lmq("bad-truncated.lmq", &bytes, "R8", "the last byte is missing.");
    put(&bytes, good->at, good->n);
    put(&bytes, "", 1);
    emit_lmq("bad-appended.lmq", &bytes, "R8", "one byte too many.");
    put(&bytes, good->at, good->n - 48);
    put(&bytes, other->at + other->n - 48, 48);
    emit_lmq("bad-trailer-of-another.lmq", &bytes, "R21",
             "the end of another file.");
}

/* ---- What conversions make ---- */

static struct bytes
make_converted(void)
{
    static const struct {
        const char *from, *name;
        struct lmq_convert_options options;
        const char *sentence;
    } list[] = {
        {"good-folder", "good-tiles.lmq",
         {.group_size = 32, .layout = "tiles", .scales = "f32"},
         "values in tiles, scales in float32."},
        {"good-folder", "good-tiles-f16.lmq",
         {.group_size = 256, .layout = "tiles"},
         "values in tiles, groups of 256."},
        {"good-unknown-architecture", "good-no-model.lmq", {.layout = "rows"},
         "tensors of an unknown architecture."},
        {"good-folder", "good-compressed.lmq",
         {.is_compressed = 1, .layout = "rows"},
         "a deflated tokenizer, if that is less."},
        {"good-folder", "good-rows.lmq", {.group_size = 32, .layout = "rows"},
         "values in rows, a tokenizer and an alias."},
    };
    struct bytes bytes = {0};
    char path[256];

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        bytes_free(&bytes);
        snprintf(path, sizeof(path), "lmq/%s", list[i].name);
        bytes = converted(list[i].from, path, &list[i].options);
        describe_lmq(list[i].name, NULL, list[i].sentence);
    }
    return bytes; /* of the last */
}

/* The size of the first embedded file. */
static void
make_inflation(void)
{
    const struct lmq_convert_options options = {.is_compressed = 1,
                                                .layout = "rows"};
    struct bytes bytes = converted("good-folder", "x.lmq", &options);
    unsigned char *entry = bytes.at + find_lmq_entry(bytes.at, bytes.n, 3);

    unlink(in("x.lmq"));
    entry[24 + 3] = 8;
    reseal_lmq(bytes.at, bytes.n);
    emit_lmq("bad-section-inflation.lmq", &bytes, "R18",
             "a deflated file that would inflate to 128 MiB.");
}

/* What is patched has three tensors: embedding, query, and a head that is the
 * embedding again. */
static struct bytes
make_three(void)
{
    const struct lmq_convert_options rows = {.layout = "rows"};
    struct bytes bytes = {0};

    put_safetensors_raw(
        &bytes,
        "{" E("embed_tokens.weight", "F32", "[2,3]", "[0,24]") "," E(
            "layers.0.self_attn.q_proj.weight", "F32", "[2,3]", "[24,48]")
        "," E("lm_head.weight", "F32", "[2,3]", "[48,72]") "}",
        NULL, 0);
    for (int i = 0; i < 18; i++)
        put_f32(&bytes, i / 6 == 1 ? (float)i : (float)(i % 6) - 2.5f);
    emit("good-three-tensors.safetensors", &bytes,
         "an embedding, a query matrix, and the embedding again as head.");
    bytes = converted("good-three-tensors.safetensors",
                      "lmq/good-three-tensors.lmq", &rows);
    describe_lmq("good-three-tensors.lmq", NULL,
                 "three tensors, one of them an alias; no model.");
    return bytes;
}

void
make_lmq(void)
{
    if (mkdir(in("lmq"), 0777) != 0 && errno != EEXIST)
        fail(in("lmq"), strerror(errno));
    describe("lmq", "containers, with a table of their own.");
    readme = fopen(in("lmq/README.md"), "w");
    if (readme == NULL)
        fail("lmq/README.md", strerror(errno));
    fputs(
        "# Containers, good and bad\n\n"
        "For whoever writes a reader from lmq(5) and lmq-model(5). good-* are\n"
        "read; NAME.txt beside them has a line for each tensor: its name, "
        "its\ndimensions (- for none) and the CRC-32 of all its elements as "
        "little-endian f32,\nrow after row. If it can be computed, a line "
        "with tokens follows, and one with\nthe logits after each: they are "
        "of activations in f32, and a reader's should be\nwithin 1e-4 of "
        "the largest of the line. later-* have tensors of kinds that are\n"
        "not known: the others are read, and the lines of these are their "
        "names and\n\"unreadable\". bad-* and unsupported-* break the rule "
        "in the second column and no\nearlier one (R, V: lmq(5); M: "
        "lmq-model(5)); those of V are refused by verify\nalone. good-* "
        "with a rule are read, but not computed with.\n\nThe last column is "
        "what lmquant says. Made as ../README.md says.\n\n"
        "| file | rule | what it is | lmquant |\n| --- | --- | --- | --- |\n",
        readme);
    struct bytes rows = make_converted(), three = make_three();
    make_lmq_models();
    make_lmq_built();
    make_patched(&three);
    make_cut(&three, &rows);
    make_inflation();
    make_digests();
    make_about(&three);
    bytes_free(&rows);
    bytes_free(&three);
    if (fclose(readme) != 0)
        fail("lmq/README.md", strerror(errno));
}
