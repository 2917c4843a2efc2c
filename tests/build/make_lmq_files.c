/*
 * make_lmq_files.c - the containers of the corpus, most of them patched.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lmquant.h"
#include "tests/build/make_files.h"

static struct bytes
converted(const char *from, const char *name,
          const struct lmq_convert_options *options)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    struct bytes bytes = {0};
    char buffer[4096];
    size_t n;

    unlink(in(name));
    if (lmq_checkpoint_open(in(from), NULL, &checkpoint, &err) != LMQ_OK ||
        lmq_convert(checkpoint, in(name), options, NULL, NULL, &err) !=
            LMQ_OK)
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

/* What an offset of a patch is relative to. */
enum base {
    FILE_START,
    RECORD,
    ALIAS_RECORD,
    TABLE,
    DIRECTORY,
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
    const char *sentence;
} patches[] = {
    {"bad-magic-seven-bits", FILE_START, 0, 1, 0x09, false,
     "the high bit of the magic number is lost."},
    {"bad-magic-crlf", FILE_START, 4, 1, '\n', false,
     "line ends of the magic number are converted."},
    {"bad-superblock-checksum", FILE_START, 40, 1, 0xff, false,
     "a damaged superblock."},
    {"unsupported-future-major", FILE_START, 12, 2, 9, true,
     "format version 9."},
    {"unsupported-feature", FILE_START, 16, 8, 2, true,
     "an incompatible feature flag."},
    {"good-compatible-feature", FILE_START, 24, 8, 1, true,
     "a compatible feature flag that is not known."},
    {"unsupported-big-endian", FILE_START, 8, 4, 0x04030201, true,
     "written in big-endian order."},
    {"bad-byte-order", FILE_START, 8, 4, 0x03040102, true,
     "a byte-order mark that is none."},
    {"bad-file-size", FILE_START, 32, 8, 1 << 20, true,
     "a size that the file does not have [1]."},
    {"bad-table-offset", FILE_START, 40, 8, UINT64_MAX - 63, true,
     "a section table at the end of 64 bits [3]."},
    {"bad-no-sections", FILE_START, 48, 4, 0, true, "no sections."},
    {"bad-many-sections", FILE_START, 48, 4, UINT32_MAX, true,
     "four billion sections [9]."},
    {"bad-superblock-reserved", FILE_START, 84, 1, 1, true,
     "a reserved byte that is not zero."},
    {"bad-alignment-small", FILE_START, 56, 1, 5, true,
     "tensors at multiples of 32 [8]."},
    {"bad-alignment-huge", FILE_START, 56, 1, 255, true,
     "tensors at multiples of 2^255 [8]."},
    {"bad-alignment-other", FILE_START, 56, 1, 12, true,
     "tensors that are not at multiples of 4096 [8]."},
    {"unsupported-prerelease", FILE_START, 56, 1, 0, true,
     "what was written before the format was settled."},
    {"bad-member-of-none", FILE_START, 60, 4, 1, true,
     "the first member of no set."},
    {"bad-set-without-id", FILE_START, 60, 8, 0x100000001, true,
     "the only member of a set without a name."},
    {"bad-section-zero", TABLE, 0, 4, 0, true, "a section of type 0."},
    {"bad-private-section", TABLE, 0, 4, 0x80000000, true,
     "a private section without a domain name."},
    {"bad-section-offset", TABLE, 8, 8, UINT64_MAX - 63, true,
     "a section at the end of 64 bits [3]."},
    {"bad-section-unaligned", TABLE, 8, 8, 129, true,
     "a section that is not aligned [8]."},
    {"bad-section-huge", TABLE, 16, 8, (uint64_t)1 << 62, true,
     "a section larger than the file [1]."},
    {"bad-section-bomb", TABLE, 4, 4, 1, true,
     "a section that claims to be deflated and is not."},
    {"bad-section-type", TABLE, 0, 4, 2, true,
     "two directories and no metadata."},
    {"unsupported-section-flag", TABLE, 4, 4, 0x10, true,
     "a flag of a section that is not known."},
    {"bad-section-name", TABLE, 40, 1, 0x1b, true,
     "a terminal escape in the name of a section [20]."},
    {"bad-directory-count", DIRECTORY, 0, 4, UINT32_MAX, true,
     "four billion tensors [2]."},
    {"bad-directory-record-size", DIRECTORY, 4, 4, 0, true,
     "records of zero bytes."},
    {"bad-directory-names", DIRECTORY, 8, 8, UINT64_MAX, true,
     "a table of names that wraps [3]."},
    {"bad-record-name", RECORD, 0, 4, UINT32_MAX, true,
     "a name far behind the table of names [6]."},
    {"bad-record-name-length", RECORD, 4, 4, 0, true,
     "a name of zero bytes."},
    {"later-encoding", RECORD, 11, 1, 77, true,
     "an encoding that is not known [7]."},
    {"later-layout", RECORD, 21, 1, 9, true,
     "a layout that is not known [7]."},
    {"good-later-source-type", RECORD, 196, 1, 200, true,
     "made from a type of numbers that is not known [7]."},
    {"later-bits", RECORD, 197, 1, 4, true, "integers of 4 bits."},
    {"later-zero-points", RECORD, 198, 1, 1, true, "zero points."},
    {"later-scales-of-scales", RECORD, 199, 1, 0x80, true,
     "a private kind of scales of scales."},
    {"bad-record-layer", RECORD, 12, 4, 0x80000000, true,
     "a layer of -2147483648 [12]."},
    {"bad-record-group-zero", RECORD, 24, 4, 0, true,
     "a group size of 0 [15]."},
    {"bad-record-group-odd", RECORD, 24, 4, 63, true,
     "a group size that is no power of two [8]."},
    {"bad-record-multiplier-nan", RECORD, 28, 4, 0x7fc00000, true,
     "a multiplier that is NaN [13]."},
    {"bad-record-multiplier-negative", RECORD, 28, 4, 0xbf800000, true,
     "a negative multiplier [13]."},
    {"bad-record-dim-zero", RECORD, 32, 8, 0, true, "a dimension of 0 [4]."},
    {"bad-record-dims-wrap", RECORD, 32, 8, (uint64_t)1 << 62, true,
     "a product of dimensions that wraps [4]."},
    {"bad-record-extra-dim", RECORD, 48, 8, 1, true,
     "a dimension more than there are [5]."},
    {"bad-record-offset", RECORD, 96, 8, UINT64_MAX - 63, true,
     "values at the end of 64 bits [6]."},
    {"bad-record-overlap", RECORD, 96, 8, 128, true,
     "two tensors share bytes [6]."},
    {"bad-record-size", RECORD, 104, 8, 1, true,
     "fewer values than the shape needs [5]."},
    {"bad-record-alias", RECORD, 192, 4, 0, true,
     "an alias that has values of its own."},
    {"bad-record-rows", RECORD, 184, 8, 1, true,
     "one row of two, in no set [4]."},
    {"bad-record-zeros", RECORD, 128, 8, 128, true,
     "a place for zero points, of which there are none."},
    {"bad-record-checksum-of-nothing", RECORD, 172, 4, 1, true,
     "a checksum of no bytes that is not 0."},
    {"bad-record-minus-zero", ALIAS_RECORD, 28, 4, 0x80000000, true,
     "a multiplier of -0.0 where there is none."},
    {"bad-record-reserved", RECORD, 254, 1, 1, true,
     "a reserved byte that is not zero."},
    {"bad-statistics-minus-zero", STATISTICS, 8 + 24, 4, 0x80000000, true,
     "a largest magnitude of -0.0 [13]."},
    {"bad-statistics-count", STATISTICS, 0, 4, 7, true,
     "statistics of seven tensors, of three [5]."},
    {"bad-metadata-json", METADATA, 0, 1, 'x', true,
     "metadata that are no JSON [21]."},
    {"bad-metadata-checksum", METADATA, 5, 1, '!', false,
     "damaged metadata."},
    {"bad-trailer", FILE_END, 32, 1, 'x', false, "a damaged trailer."},
    {"bad-flipped-value", FILE_START, 130, 1, 0x55, false,
     "a damaged tensor, which only verify reads."},
};

void
make_lmq(void)
{
    const struct lmq_convert_options options = {.group_size = 32,
                                                .layout = "rows"};
    const struct lmq_convert_options rows = {.layout = "rows"};
    const struct lmq_convert_options tiles = {.group_size = 32,
                                              .layout = "tiles",
                                              .scales = "f32"};
    const struct lmq_convert_options compressed = {.is_compressed = 1,
                                                   .layout = "rows"};
    struct bytes bytes = converted("good-folder", "good-rows.lmq", &options);
    char name[128];

    bytes_free(&bytes);
    describe("good-rows.lmq", "a container with a tokenizer and an alias.");
    bytes = converted("good-folder", "good-tiles.lmq", &tiles);
    describe("good-tiles.lmq", "values in tiles, scales in float32.");
    bytes_free(&bytes);
    bytes = converted("good-unknown-architecture", "good-no-model.lmq", &rows);
    describe("good-no-model.lmq", "tensors of an unknown architecture.");
    bytes_free(&bytes);
    bytes = converted("good-folder", "good-compressed.lmq", &compressed);
    describe("good-compressed.lmq", "a deflated tokenizer, if that is less.");
    /* The size of the first embedded file. */
    unsigned char *entry =
        bytes.at + find_lmq_entry(bytes.at, bytes.n, 3);
    entry[24 + 3] = 8;
    reseal_lmq(bytes.at, bytes.n);
    emit("bad-section-inflation.lmq", &bytes,
         "a deflated file that would inflate to 128 MiB [9].");

    put_safetensors_raw(&bytes,
                        "{" E("embed_tokens.weight", "F32", "[1,1]", "[0,4]") "}",
                        NULL, 0);
    put_f32(&bytes, 3);
    save(&bytes, in("scalar.safetensors"));
    bytes_free(&bytes);
    bytes = converted("scalar.safetensors", "scalar.lmq", &rows);
    unlink(in("scalar.safetensors"));
    unlink(in("scalar.lmq"));
    /* No dimensions instead of one by one: the bytes are the same. */
    unsigned char *record =
        bytes.at + find_lmq_section(bytes.at, bytes.n, 2) + 16;
    record[23] = 0;
    memset(record + 32, 0, 16);
    reseal_lmq(bytes.at, bytes.n);
    emit("good-q8-scalar.lmq", &bytes, "one number in q8, no dimensions.");

    /* What is patched has three tensors: embedding, query, and a head that is
     * the embedding again. */
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
    struct bytes good = converted("good-three-tensors.safetensors",
                                  "good-three-tensors.lmq", &rows);
    describe("good-three-tensors.lmq",
             "the same as a container, with an alias.");

    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        put(&bytes, good.at, good.n);
        size_t directory = find_lmq_section(bytes.at, bytes.n, 2);
        const size_t bases[] = {
            [FILE_START] = 0,
            [RECORD] = directory + 16 + 256, /* the second */
            [ALIAS_RECORD] = directory + 16 + 2 * 256,
            [TABLE] = find_lmq_entry(bytes.at, bytes.n, 1),
            [DIRECTORY] = directory,
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
        emit(name, &bytes, patches[i].sentence);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {
            "bad-truncated.lmq", "bad-appended.lmq", "bad-superblock-only.lmq"};
        static const char *const sentences[] = {
            "the last byte is missing.", "one byte too many.",
            "a superblock and nothing else."};
        put(&bytes, good.at, i == 0 ? good.n - 1 : i == 1 ? good.n : 128);
        if (i == 1)
            put(&bytes, "", 1);
        emit(names[i], &bytes, sentences[i]);
    }
    bytes_free(&good);
}
