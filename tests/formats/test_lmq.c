/*
 * test_lmq.c - the container: structures and their bytes, whole files, what
 * is skipped and what is refused.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/output.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

/* ---- Files to begin with ---- */

/* The small model with a tokenizer, converted; the bytes are freed with
 * free(). */
static unsigned char *
small_lmq(const struct lmq_convert_options *options, size_t *n)
{
    struct build_model *model = build_model(&build_small, 7);

    save_folder(model, in_folder("model"), BUILD_F32);
    write_file(in_folder("model/tokenizer.json"),
               "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
               54);
    build_free(model);
    lmq_report_free(
        convert(in_folder("model"), in_folder("model.lmq"), options));
    return read_file(in_folder("model.lmq"), n);
}

static const char *
save_lmq(const unsigned char *bytes, size_t n)
{
    const char *path = in_folder("changed.lmq");

    write_file(path, bytes, n);
    return path;
}

static void
assert_verify_refuses(const char *path, enum lmq_status status,
                      const char *text)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_verify(path, 2, NULL, &report, &err), (int)status);
    ck_assert_msg(strstr(err.message, text) != NULL,
                  "'%s' does not speak of '%s'", err.message, text);
    lmq_report_free(report);
}

/* The record with that name, in the bytes of a file. */
static unsigned char *
find_record(unsigned char *bytes, size_t n, const char *name)
{
    unsigned char *directory =
        bytes + find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY);
    uint32_t count = lmq_load_u32le(directory);
    unsigned char *names =
        directory + LMQ_DIRECTORY_HEADER + (size_t)count * LMQ_RECORD_SIZE;

    for (uint32_t i = 0; i < count; i++) {
        unsigned char *record =
            directory + LMQ_DIRECTORY_HEADER + (size_t)i * LMQ_RECORD_SIZE;
        if (lmq_load_u32le(record + 4) == strlen(name) &&
            memcmp(names + lmq_load_u32le(record), name, strlen(name)) == 0)
            return record;
    }
    ck_abort_msg("no record %s", name);
    return NULL;
}

/* ---- Structures ---- */

START_TEST(a_superblock_comes_back)
{
    struct lmq_superblock sb = {.major = LMQ_MAJOR,
                                .minor = LMQ_MINOR,
                                .compatible = 6,
                                .file_size = 128 + 192 + LMQ_TRAILER_SIZE,
                                .table_offset = 128,
                                .n_sections = 2,
                                .alignment = 4096,
                                .member = 2,
                                .n_members = 3,
                                .set_id = "fifteen letters",
                                .table_crc = 0x12345678};
    struct lmq_superblock back;
    unsigned char bytes[LMQ_SUPERBLOCK_SIZE];
    struct lmq_error err;

    lmq_superblock_store(&sb, bytes);
    ck_assert_mem_eq(bytes, "\x89LMQ\r\n\x1a\n", 8);
    ck_assert_int_eq(lmq_superblock_load(bytes, 368, &back, &err), LMQ_OK);
    ck_assert_uint_eq(back.minor, LMQ_MINOR);
    ck_assert_uint_eq(back.compatible, 6);
    ck_assert_uint_eq(back.table_offset, 128);
    ck_assert_uint_eq(back.n_sections, 2);
    ck_assert_uint_eq(back.table_crc, 0x12345678);
    ck_assert_uint_eq(back.alignment, 4096);
    ck_assert_uint_eq(back.member, 2);
    ck_assert_uint_eq(back.n_members, 3);
    ck_assert_mem_eq(back.set_id, sb.set_id, LMQ_SET_ID);
    ck_assert_uint_eq(back.own_crc, sb.own_crc);
    ck_assert_int_eq(lmq_superblock_load(bytes, 367, &back, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "truncated"));
    ck_assert_int_eq(lmq_superblock_load(bytes, 369, &back, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "appended"));
    for (int bit = 0; bit < 8 * LMQ_SUPERBLOCK_SIZE; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_int_ne(lmq_superblock_load(bytes, 368, &back, &err),
                         LMQ_OK);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

START_TEST(a_section_comes_back)
{
    struct lmq_section section = {.type = LMQ_SECTION_FILE,
                                  .flags = LMQ_SECTION_DEFLATED,
                                  .stored = {128, 100, 7},
                                  .size = 1000,
                                  .name = "tokenizer.json"};
    struct lmq_section back;
    unsigned char bytes[LMQ_SECTION_SIZE];
    const struct lmq_superblock frame = {.file_size = 1000};
    struct lmq_error err;

    lmq_section_store(&section, bytes);
    ck_assert_int_eq(lmq_section_load(bytes, 0, &frame, &back, &err), LMQ_OK);
    ck_assert_uint_eq(back.type, section.type);
    ck_assert_uint_eq(back.flags, section.flags);
    ck_assert_uint_eq(back.stored.offset, 128);
    ck_assert_uint_eq(back.stored.size, 100);
    ck_assert_uint_eq(back.stored.crc, 7);
    ck_assert_uint_eq(back.size, 1000);
    ck_assert_str_eq(back.name, section.name);
}
END_TEST

START_TEST(sections_that_lie_or_hide_are_refused)
{
    static const struct {
        uint64_t offset, stored, size;
        uint32_t flags;
    } wrong[] = {
        {127, 8, 8, 0},                        /* not aligned */
        {64, 8, 8, 0},                         /* in the superblock */
        {1024, 8, 8, 0},                       /* beyond the file */
        {128, 873, 873, 0},                    /* beyond its end */
        {128, UINT64_MAX, UINT64_MAX, 0},
        {UINT64_MAX - 63, 64, 64, 0},
        {128, 8, 9, 0},                        /* not deflated, two sizes */
        {128, 8, (1 << 20) + 64 * 9, 1},       /* more than a text grows */
        {128, 8, UINT64_MAX, 1},
        {128, 800, (uint64_t)1 << 40, 1},
    };
    struct lmq_section back;
    unsigned char bytes[LMQ_SECTION_SIZE];
    const struct lmq_superblock frame = {.file_size = 1000};
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct lmq_section section = {
            .type = LMQ_SECTION_FILE,
            .flags = wrong[i].flags,
            .stored = {wrong[i].offset, wrong[i].stored, 0},
            .size = wrong[i].size,
            .name = "x"};
        lmq_section_store(&section, bytes);
        ck_assert_int_eq(lmq_section_load(bytes, 0, &frame, &back, &err),
                         LMQ_ERR_FORMAT);
    }
    struct lmq_section section = {.type = LMQ_SECTION_FILE,
                                  .stored = {128, 8, 0},
                                  .size = 8,
                                  .name = "a/b"};
    lmq_section_store(&section, bytes);
    ck_assert_int_eq(lmq_section_load(bytes, 0, &frame, &back, &err),
                     LMQ_ERR_FORMAT);
    memcpy(bytes + 40, "a\x1b", 2);
    ck_assert_int_eq(lmq_section_load(bytes, 0, &frame, &back, &err),
                     LMQ_ERR_FORMAT);
    memcpy(bytes + 40, "a\0c", 3);
    ck_assert_int_eq(lmq_section_load(bytes, 0, &frame, &back, &err),
                     LMQ_ERR_FORMAT);
}
END_TEST

/* ---- Whole files ---- */

START_TEST(what_is_written_is_read)
{
    static const char *const layouts[] = {"rows", "tiles"};
    struct build_model *model = build_model(&build_small, 7);
    size_t n;

    for (int i = 0; i < 4; i++) {
        struct lmq_convert_options options = {
            .layout = layouts[i % 2], .is_compressed = i / 2, .replaces = 1};
        unsigned char *bytes = small_lmq(&options, &n);
        assert_intact(in_folder("model.lmq"));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("model.lmq"));
        ck_assert(checkpoint->has_model);
        ck_assert_uint_eq(checkpoint->hparams.dim, 24);
        ck_assert_uint_eq(checkpoint->hparams.context, 64);
        ck_assert_int_eq(checkpoint->hparams.tie, LMQ_TIE_YES);
        ck_assert_int_eq(checkpoint->hparams.bos, 1);
        ck_assert_uint_eq(checkpoint->n_tensors, model->n_tensors + 1);
        ck_assert_uint_eq(checkpoint->n_blobs, 1);
        ck_assert_str_eq(checkpoint->blobs[0].name, "tokenizer.json");
        ck_assert_uint_eq(checkpoint->blobs[0].size, 54);
        ck_assert_mem_eq(checkpoint->blobs[0].bytes, "{\"a\":\"aaaa", 10);
        const struct lmq_tensor *head =
            lmq_checkpoint_find_name(checkpoint, "output.weight");
        ck_assert_str_eq(head->alias_of, "token_embd.weight");
        size_t n_a, n_b;
        float *a = read_tensor(checkpoint, "output.weight", &n_a);
        float *b = read_tensor(checkpoint, "token_embd.weight", &n_b);
        ck_assert_uint_eq(n_a, n_b);
        ck_assert_mem_eq(a, b, n_a * sizeof(*a));
        free(a);
        free(b);
        lmq_checkpoint_close(checkpoint);
        free(bytes);
    }
    build_free(model);
}
END_TEST

START_TEST(a_future_major_version_needs_a_newer_reader)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    lmq_store_u16le(bytes + 12, LMQ_MAJOR + 1);
    lmq_store_u16le(bytes + 14, 3);
    reseal_lmq(bytes, n);
    char text[64];
    snprintf(text, sizeof(text),
             "needs a reader of format version %d.3, this one reads %d.x",
             LMQ_MAJOR + 1, LMQ_MAJOR);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED, text);
    assert_verify_refuses(in_folder("changed.lmq"), LMQ_ERR_UNSUPPORTED,
                          text);
    free(bytes);
}
END_TEST

START_TEST(flags_for_what_is_incompatible_are_refused_others_not)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    lmq_store_u64le(bytes + 24, (uint64_t)1 << 63); /* compatible */
    reseal_lmq(bytes, n);
    assert_intact(save_lmq(bytes, n));
    lmq_checkpoint_close(open_checkpoint(in_folder("changed.lmq")));
    lmq_store_u64le(bytes + 16, (uint64_t)1 << 40);
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED, "needs version");
    free(bytes);
}
END_TEST

/* Writes the container again with one more section of type 99. */
static unsigned char *
with_unknown_section(size_t *n)
{
    static const unsigned char extra[200] = "something of a later version";
    struct lmq_record *records;
    size_t n_old, n_records, at, size;
    unsigned char *old = small_lmq(NULL, &n_old);
    struct lmq_layout_plan plan = {.alignment = LMQ_ALIGN};
    struct lmq_superblock superblock;
    struct lmq_output *output;
    struct lmq_error err;

    at = find_lmq_section(old, n_old, LMQ_SECTION_DIRECTORY);
    size = (size_t)lmq_load_u64le(
        old + find_lmq_entry(old, n_old, LMQ_SECTION_DIRECTORY) + 16);
    ck_assert_int_eq(lmq_superblock_load(old, n_old, &superblock, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_directory_load(old + at, size, &superblock, &records,
                                        &n_records, &err),
                     LMQ_OK);
    size_t meta = find_lmq_section(old, n_old, LMQ_SECTION_METADATA);
    const struct lmq_content contents[] = {
        {.type = LMQ_SECTION_METADATA, .name = "", .bytes = old + meta,
         .size = (size_t)lmq_load_u64le(
             old + find_lmq_entry(old, n_old, LMQ_SECTION_METADATA) + 16)},
        {.type = (enum lmq_section_type)99, .name = "later", .bytes = extra,
         .size = sizeof(extra)},
    };
    ck_assert_int_eq(lmq_write_plan(records, n_records, contents, 2, &plan,
                                    &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_create(in_folder("changed.lmq"),
                                       plan.file_size, true, NULL, &output,
                                       &err),
                     LMQ_OK);
    /* The tensors keep their places: they come first. */
    ck_assert_int_eq(lmq_output_write(output, 128, old + 128,
                                      (size_t)plan.contents_offset - 128,
                                      &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_write_frame(output, &plan, records, n_records,
                                     contents, 2, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    lmq_records_free(records, n_records);
    free(old);
    return read_file(in_folder("changed.lmq"), n);
}

/* The same container with its tensors at multiples of `alignment`. */
static void
write_aligned(const unsigned char *old, size_t n_old, uint64_t alignment)
{
    struct lmq_layout_plan plan = {.alignment = alignment};
    struct lmq_superblock superblock;
    struct lmq_record *records, *before;
    struct lmq_output *output;
    struct lmq_error err;
    size_t n, meta = find_lmq_section(old, n_old, LMQ_SECTION_METADATA);
    size_t at = find_lmq_section(old, n_old, LMQ_SECTION_DIRECTORY);
    size_t size = (size_t)lmq_load_u64le(
        old + find_lmq_entry(old, n_old, LMQ_SECTION_DIRECTORY) + 16);
    const struct lmq_content content = {
        .type = LMQ_SECTION_METADATA, .name = "", .bytes = old + meta,
        .size = (size_t)lmq_load_u64le(
            old + find_lmq_entry(old, n_old, LMQ_SECTION_METADATA) + 16)};

    ck_assert_int_eq(lmq_superblock_load(old, n_old, &superblock, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_directory_load(old + at, size, &superblock, &records,
                                        &n, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_directory_load(old + at, size, &superblock, &before,
                                        &n, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_write_plan(records, n, &content, 1, &plan, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_create(in_folder("changed.lmq"),
                                       plan.file_size, true, NULL, &output,
                                       &err),
                     LMQ_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < LMQ_N_EXTENTS; j++) {
            const struct lmq_extent *extent = &records[i].extents[j];
            ck_assert_uint_eq(extent->offset % alignment, 0);
            ck_assert_int_eq(
                lmq_output_write(output, extent->offset,
                                 old + before[i].extents[j].offset,
                                 (size_t)extent->size, &err),
                LMQ_OK);
        }
    ck_assert_int_eq(lmq_write_frame(output, &plan, records, n, &content, 1,
                                     &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    lmq_records_free(records, n);
    lmq_records_free(before, n);
}

START_TEST(tensors_stand_at_multiples_of_the_alignment)
{
    static const uint64_t alignments[] = {64, 4096, 1 << 21};
    size_t n, n_new, count, n_before;
    unsigned char *old = small_lmq(NULL, &n);
    struct lmq_checkpoint *checkpoint = open_checkpoint(save_lmq(old, n));
    float *x = read_tensor(checkpoint, "blk.0.ffn_down.weight", &n_before);

    lmq_checkpoint_close(checkpoint);
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
        write_aligned(old, n, alignments[i]);
        assert_intact(in_folder("changed.lmq"));
        checkpoint = open_checkpoint(in_folder("changed.lmq"));
        float *y = read_tensor(checkpoint, "blk.0.ffn_down.weight", &count);
        ck_assert_uint_eq(count, n_before);
        ck_assert_mem_eq(x, y, count * sizeof(float));
        free(y);
        lmq_checkpoint_close(checkpoint);
        /* The field is more than a promise. */
        unsigned char *bytes = read_file(in_folder("changed.lmq"), &n_new);
        bytes[56]++;
        reseal_lmq(bytes, n_new);
        if (alignments[i] < 1 << 21)
            assert_refused(save_lmq(bytes, n_new), LMQ_ERR_FORMAT,
                           "is not aligned");
        free(bytes);
    }
    free(x);
    free(old);
}
END_TEST

START_TEST(an_unknown_section_is_skipped_unless_it_is_required)
{
    size_t n;
    unsigned char *bytes = with_unknown_section(&n);

    assert_intact(in_folder("changed.lmq"));
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("changed.lmq"));
    ck_assert_uint_eq(checkpoint->n_blobs, 0);
    ck_assert_uint_eq(lmq_checkpoint_container(checkpoint)->n_sections, 4);
    lmq_checkpoint_close(checkpoint);

    unsigned char *entry = bytes + find_lmq_entry(bytes, n, 99);
    lmq_store_u32le(entry + 4, LMQ_SECTION_REQUIRED);
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED,
                   "a section of type 99");
    lmq_store_u32le(entry + 4, 0x80); /* an unknown flag */
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED,
                   "a section of type 99");
    free(bytes);
}
END_TEST

START_TEST(mangled_transfers_are_recognised)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    bytes[0] &= 0x7f; /* seven bits */
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT,
                   "the magic number is damaged");
    bytes[0] |= 0x80;
    memmove(bytes + 4, bytes + 5, n - 5); /* CR LF became LF */
    assert_refused(save_lmq(bytes, n - 1), LMQ_ERR_FORMAT,
                   "the magic number is damaged");
    free(bytes);
    bytes = small_lmq(&(struct lmq_convert_options){.replaces = 1}, &n);
    lmq_store_u32le(bytes + 8, 0x04030201);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED, "big-endian");
    free(bytes);
}
END_TEST

/* Numbers in a record that are wrong, sealed so that only the check of the
 * number itself can find them. */
START_TEST(records_that_make_no_sense_are_refused)
{
    static const struct {
        size_t at;
        int size;
        uint64_t value;
        enum lmq_status status;
    } wrong[] = {
        {0, 4, UINT32_MAX, LMQ_ERR_FORMAT},        /* the name's place */
        {4, 4, 0, LMQ_ERR_FORMAT},                 /* its length */
        {4, 4, 1025, LMQ_ERR_FORMAT},
        {4, 4, UINT32_MAX, LMQ_ERR_FORMAT},
        {11, 1, 0, LMQ_ERR_FORMAT},                /* plain, but the sizes */
        {11, 1, 2, LMQ_ERR_FORMAT},                /* alias of nothing */
        {12, 4, 0x80000000, LMQ_ERR_FORMAT},       /* layer */
        {12, 4, 0x7fffffff, LMQ_ERR_FORMAT},
        {12, 4, 1, LMQ_ERR_FORMAT},                /* a second blk.1 */
        {16, 4, 0x80000000, LMQ_ERR_FORMAT},       /* expert */
        {21, 1, LMQ_LAYOUT_ROWS, LMQ_ERR_FORMAT}, /* other sizes */
        {22, 1, LMQ_SCALES_F32, LMQ_ERR_FORMAT},
        {20, 1, 1, LMQ_ERR_FORMAT},                /* q8 has no type */
        {23, 1, 9, LMQ_ERR_FORMAT},                /* dimensions */
        {23, 1, 3, LMQ_ERR_FORMAT},
        {23, 1, 0, LMQ_ERR_FORMAT},
        {24, 4, 0, LMQ_ERR_FORMAT},                /* group size */
        {24, 4, 1, LMQ_ERR_FORMAT},
        {24, 4, 63, LMQ_ERR_FORMAT},
        {24, 4, 512, LMQ_ERR_FORMAT},
        {24, 4, 0x80000000, LMQ_ERR_FORMAT},
        {28, 4, 0, LMQ_ERR_FORMAT},                /* multiplier */
        {28, 4, 0x7fc00000, LMQ_ERR_FORMAT},       /* NaN */
        {28, 4, 0x7f800000, LMQ_ERR_FORMAT},       /* infinity */
        {28, 4, 0xbf800000, LMQ_ERR_FORMAT},       /* -1 */
        {28, 4, 0x3fc00000, LMQ_ERR_FORMAT},       /* 1.5 */
        {28, 4, 1, LMQ_ERR_FORMAT},                /* subnormal */
        {32, 8, 0, LMQ_ERR_FORMAT},                /* a dimension */
        {32, 8, UINT64_MAX, LMQ_ERR_FORMAT},
        {32, 8, (uint64_t)1 << 60, LMQ_ERR_FORMAT},
        {40, 8, (uint64_t)1 << 63, LMQ_ERR_FORMAT},
        {48, 8, 1, LMQ_ERR_FORMAT},                /* one too many */
        {96, 8, 0, LMQ_ERR_FORMAT},                /* where the values are */
        {96, 8, 129, LMQ_ERR_FORMAT},
        {96, 8, 1 << 30, LMQ_ERR_FORMAT},
        {96, 8, UINT64_MAX - 63, LMQ_ERR_FORMAT},
        {104, 8, 1, LMQ_ERR_FORMAT},               /* how many */
        {104, 8, UINT64_MAX, LMQ_ERR_FORMAT},
        {112, 8, 128, LMQ_ERR_FORMAT},             /* scales: an overlap */
        {120, 8, 0, LMQ_ERR_FORMAT},
        {128, 8, 128, LMQ_ERR_FORMAT},             /* zero points */
        {136, 8, 64, LMQ_ERR_FORMAT},
        {144, 8, 128, LMQ_ERR_FORMAT},             /* scales of scales */
        {168, 4, 1, LMQ_ERR_FORMAT},               /* their checksums */
        {172, 4, 1, LMQ_ERR_FORMAT},
        {176, 8, 16, LMQ_ERR_FORMAT},              /* rows, in no set */
        {184, 8, 0, LMQ_ERR_FORMAT},
        {184, 8, 16, LMQ_ERR_FORMAT},
        {184, 8, UINT64_MAX, LMQ_ERR_FORMAT},
        {192, 4, 0, LMQ_ERR_FORMAT},               /* alias, yet q8 */
        {200, 1, 1, LMQ_ERR_FORMAT},               /* reserved */
        {255, 1, 0x80, LMQ_ERR_FORMAT},
    };
    size_t n;
    unsigned char *good = small_lmq(NULL, &n), *bytes = malloc(n);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err;
        memcpy(bytes, good, n);
        unsigned char *p =
            find_record(bytes, n, "blk.0.ffn_down.weight") + wrong[i].at;
        for (int b = 0; b < wrong[i].size; b++)
            p[b] = (unsigned char)(wrong[i].value >> 8 * b);
        reseal_lmq(bytes, n);
        enum lmq_status status = lmq_checkpoint_open(
            save_lmq(bytes, n), NULL, &checkpoint, &err);
        lmq_checkpoint_close(checkpoint);
        ck_assert_msg(status == wrong[i].status,
                      "%llx at byte %zu: status %d (%s)",
                      (unsigned long long)wrong[i].value, wrong[i].at,
                      (int)status, status == LMQ_OK ? "" : err.message);
    }
    free(bytes);
    free(good);
}
END_TEST

/* What a later version may say of a tensor: the others are as readable as
 * before, this one is listed, its checksum holds, and nothing computes with
 * it. */
START_TEST(an_unknown_kind_hides_one_tensor)
{
    static const struct {
        size_t at;
        unsigned char value;
        const char *unknown;
    } later[] = {
        {10, 2, "part 2"},
        {11, 3, "encoding 3"},
        {11, 0x80, "encoding 128"},
        {20, LMQ_DTYPE_COUNT, "type 15"},
        {21, LMQ_LAYOUT_COUNT, "layout 2"},
        {22, LMQ_SCALES_COUNT, "type of scales 2"},
        {197, 4, "4 bits"},
        {197, 0, "0 bits"},
        {198, 1, "zero points 1"},
        {199, 1, "scales of scales 1"},
    };
    const struct lmq_inspect_options all = {.has_tensors = 1};
    size_t n;
    unsigned char *good = small_lmq(NULL, &n), *bytes = malloc(n);

    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        struct lmq_report *report;
        struct lmq_error err;
        size_t count;
        float x;
        memcpy(bytes, good, n);
        find_record(bytes, n, "blk.0.ffn_down.weight")[later[i].at] =
            later[i].value;
        reseal_lmq(bytes, n);
        const char *path = save_lmq(bytes, n);
        assert_intact(path);
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        free(read_tensor(checkpoint, "blk.0.ffn_up.weight", &count));
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "blk.0.ffn_down.weight");
        struct lmq_scratch scratch = {0};
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, 0, 1, &x,
                                             &scratch, &err),
                         LMQ_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.message, later[i].unknown));
        lmq_scratch_free(&scratch);
        ck_assert_int_eq(lmq_inspect(checkpoint, &all, &report, &err), LMQ_OK);
        lmq_report_free(report);
        struct lmq_model *model;
        ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err),
                         LMQ_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(err.message, "down") != NULL, "%s",
                      err.message);
        lmq_checkpoint_close(checkpoint);
    }
    free(bytes);
    free(good);
}
END_TEST

/* A role of a later version: a tensor without a role, whatever it has as layer
 * and item. */
START_TEST(an_unknown_role_is_none)
{
    size_t n, count;
    unsigned char *bytes = small_lmq(NULL, &n);
    unsigned char *record = find_record(bytes, n, "blk.0.ffn_down.weight");
    unsigned char *name = bytes +
                          find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY);

    name += LMQ_DIRECTORY_HEADER +
            (size_t)lmq_load_u32le(name) * LMQ_RECORD_SIZE +
            lmq_load_u32le(record);
    memcpy(name, "blk.0.ffn_tune", strlen("blk.0.ffn_tune"));
    lmq_store_u16le(record + 8, 999);
    lmq_store_u32le(record + 16, 65535);
    reseal_lmq(bytes, n);
    const char *path = save_lmq(bytes, n);
    assert_intact(path);
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, "blk.0.ffn_tune.weight");
    ck_assert_int_eq(tensor->place.role, LMQ_ROLE_OTHER);
    ck_assert_int_eq(tensor->place.layer, -1);
    ck_assert_int_eq(tensor->place.item, -1);
    free(read_tensor(checkpoint, "blk.0.ffn_tune.weight", &count));
    lmq_checkpoint_close(checkpoint);
    lmq_store_u32le(record + 16, 65536);
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "out of range");
    free(bytes);
}
END_TEST

/* What a later version announces may stand in bytes that are reserved now. */
START_TEST(reserved_bytes_can_be_announced)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    bytes[84] = 1;
    find_record(bytes, n, "blk.0.ffn_down.weight")[255] = 2;
    bytes[find_lmq_entry(bytes, n, LMQ_SECTION_METADATA) + 36] = 3;
    bytes[n - 12] = 4;
    bytes[find_lmq_section(bytes, n, LMQ_SECTION_STATISTICS) + 8 + 47] = 5;
    bytes[31] = 0x80;
    reseal_lmq(bytes, n);
    assert_intact(save_lmq(bytes, n));
    bytes[31] = 0;
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "reserved");
    free(bytes);
}
END_TEST

START_TEST(statistics_are_numbers_of_every_tensor)
{
    static const struct {
        size_t at;
        uint32_t value;
    } wrong[] = {
        {0, 7},                     /* of as many tensors */
        {4, 47}, {4, 5000},         /* bytes each */
        {8 + 4, 0x7ff80000},        /* a sum is NaN */
        {8 + 12, 0x80000000},       /* -0 */
        {8 + 24, 0x7fc00000},       /* NaN */
        {8 + 28, 0xbf800000},       /* -1 */
        {8 + 44, 1},                /* reserved */
    };
    size_t n;
    unsigned char *good = small_lmq(NULL, &n), *bytes = malloc(n);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(bytes, good, n);
        size_t at = find_lmq_section(bytes, n, LMQ_SECTION_STATISTICS);
        lmq_store_u32le(bytes + at + wrong[i].at, wrong[i].value);
        reseal_lmq(bytes, n);
        assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "the statistics");
    }
    /* Without them the file is as good. */
    memcpy(bytes, good, n);
    lmq_store_u32le(
        bytes + find_lmq_entry(bytes, n, LMQ_SECTION_STATISTICS), 99);
    reseal_lmq(bytes, n);
    assert_intact(save_lmq(bytes, n));
    lmq_checkpoint_close(open_checkpoint(in_folder("changed.lmq")));
    free(bytes);
    free(good);
}
END_TEST

static enum lmq_status
load_metadata(const char *text)
{
    json_t *metadata = NULL;
    struct lmq_error err;
    enum lmq_status status = lmq_metadata_load(
        (const unsigned char *)text, strlen(text), &metadata, &err);

    json_decref(metadata);
    return status;
}

START_TEST(metadata_are_i_json_of_the_right_types)
{
    static const char *const right[] = {
        "{}",
        "{\"org.example.x\":[1.5,null,\"\\ud83d\\ude00\"]}",
        "{\"later\":9007199254740992,\"less\":-9007199254740992}",
        "{\"provenance\":{\"stored_names\":[\"a\"],\"tool\":\"x\"}}",
    };
    static const char *const wrong[] = {
        "",
        "[]",
        "7",
        "{\"a\":1,\"a\":1}",
        "{\"a\":\"\\ud83d\"}",
        "{\"a\":9007199254740993}",
        "{\"a\":[{\"b\":-9007199254740993}]}",
        "{\"a\":1e400}",
        "{\"model\":[]}",
        "{\"model\":null}",
        "{\"tie_rule\":0}",
        "{\"provenance\":\"here\"}",
        "{\"provenance\":{\"stored_names\":{}}}",
        "{\"recommended\":{\"activations\":16}}",
        "{\"quantization\":{\"group_size\":\"32\"}}",
        "{} {}",
    };
    char deep[100] = "{\"a\":";
    size_t start = strlen(deep);

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        ck_assert_msg(load_metadata(right[i]) == LMQ_OK, "%s", right[i]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(load_metadata(wrong[i]) == LMQ_ERR_FORMAT, "%s",
                      wrong[i]);
    for (size_t depth = 31; depth <= 32; depth++) {
        memset(deep + start, '[', depth);
        memset(deep + start + depth, ']', depth);
        strcpy(deep + start + 2 * depth, "}");
        ck_assert_int_eq(load_metadata(deep),
                         depth == 31 ? LMQ_OK : LMQ_ERR_FORMAT);
    }
}
END_TEST

START_TEST(a_member_of_a_set_is_whole_but_no_model)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    lmq_store_u32le(bytes + 60, 2);
    lmq_store_u32le(bytes + 64, 3);
    bytes[68] = 1;
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED,
                   "is member 2 of a set of 3 files");
    assert_intact(in_folder("changed.lmq"));
    lmq_store_u32le(bytes + 60, 4);
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "member 4 of a set");
    free(bytes);
}
END_TEST

START_TEST(a_prerelease_is_told_apart)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    bytes[56] = 0;
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_UNSUPPORTED,
                   "before the format was settled");
    bytes[56] = 5;
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "alignment is 2^5");
    bytes[56] = 22;
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "alignment is 2^22");
    free(bytes);
}
END_TEST

START_TEST(aliases_have_one_step_and_one_shape)
{
    size_t n;
    unsigned char *good = small_lmq(NULL, &n), *bytes = malloc(n);
    uint32_t count = lmq_load_u32le(
        good + find_lmq_section(good, n, LMQ_SECTION_DIRECTORY));
    /* itself (the last), out of range, another shape */
    const uint32_t wrong[] = {count - 1, count, UINT32_MAX, 1};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(bytes, good, n);
        lmq_store_u32le(find_record(bytes, n, "output.weight") + 192,
                        wrong[i]);
        reseal_lmq(bytes, n);
        assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "is an alias of");
    }
    free(bytes);
    free(good);
}
END_TEST

START_TEST(bytes_that_belong_to_nothing_are_refused)
{
    size_t n;
    unsigned char *bytes = with_unknown_section(&n);
    unsigned char *entry = bytes + find_lmq_entry(bytes, n, 99);

    lmq_store_u64le(entry + 16, 100); /* the other hundred are hidden */
    lmq_store_u64le(entry + 24, 100);
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT, "(a gap)");
    free(bytes);
}
END_TEST

START_TEST(nothing_hides_behind_the_section_table)
{
    size_t n;
    unsigned char *bytes = with_unknown_section(&n);
    unsigned char *longer = calloc(1, n + 2 * LMQ_SECTION_SIZE);
    size_t table = (size_t)lmq_load_u64le(bytes + 40);

    /* More entries, the last of which has the trailer itself as content. */
    size_t n_sections = lmq_load_u32le(bytes + 48);
    size_t end = table + (n_sections + 2) * LMQ_SECTION_SIZE;
    ck_assert_uint_eq(end % LMQ_ALIGN, 0);
    memcpy(longer, bytes, n - LMQ_TRAILER_SIZE);
    memcpy(longer + end, bytes + n - LMQ_TRAILER_SIZE, LMQ_TRAILER_SIZE);
    unsigned char *entry = longer + table + n_sections * LMQ_SECTION_SIZE;
    lmq_store_u32le(entry, 97); /* empty */
    lmq_store_u64le(entry + 8, LMQ_SUPERBLOCK_SIZE);
    entry += LMQ_SECTION_SIZE;
    lmq_store_u32le(entry, 98);
    lmq_store_u64le(entry + 8, end);
    lmq_store_u64le(entry + 16, 16);
    lmq_store_u64le(entry + 24, 16);
    n += 2 * LMQ_SECTION_SIZE;
    lmq_store_u32le(longer + 48, (uint32_t)n_sections + 2);
    lmq_store_u64le(longer + 32, n);
    reseal_lmq(longer, n);
    assert_refused(save_lmq(longer, n), LMQ_ERR_FORMAT,
                   "behind the section table");
    free(bytes);
    free(longer);
}
END_TEST

/* ---- Verifying ---- */

START_TEST(verify_names_each_damaged_part)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);
    struct lmq_report *report;
    struct lmq_error err;

    size_t values = (size_t)lmq_load_u64le(
        find_record(bytes, n, "blk.1.attn_q.weight") + 96);
    size_t scales = (size_t)lmq_load_u64le(
        find_record(bytes, n, "blk.1.ffn_up.weight") + 112);
    size_t norm = (size_t)lmq_load_u64le(
        find_record(bytes, n, "output_norm.weight") + 96);
    bytes[values] ^= 1;
    bytes[scales] ^= 1;
    bytes[norm] ^= 1;
    bytes[norm + 24 * 4] ^= 1; /* padding */
    bytes[find_lmq_section(bytes, n, LMQ_SECTION_FILE)] ^= 1;
    ck_assert_int_eq(lmq_verify(save_lmq(bytes, n), 2, NULL, &report, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_str_eq(err.message, "is damaged in 5 places");
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "problems")),
                      5);
    ck_assert_str_eq(lmq_report_string(report, "problems.0.section"), "file");
    ck_assert_str_eq(lmq_report_string(report, "problems.0.name"),
                     "tokenizer.json");
    ck_assert_str_eq(lmq_report_string(report, "problems.1.name"),
                     "blk.1.attn_q.weight");
    ck_assert_str_eq(lmq_report_string(report, "problems.1.section"),
                     "values");
    ck_assert_str_eq(lmq_report_string(report, "problems.2.section"),
                     "scales");
    ck_assert_str_eq(lmq_report_string(report, "problems.3.section"),
                     "tensor");
    ck_assert_str_eq(lmq_report_string(report, "problems.4.section"),
                     "padding");
    ck_assert(lmq_report_number(report, "intact") == 0);
    lmq_report_free(report);
    free(bytes);
}
END_TEST

/* Values and scales that no quantizer writes, with the right checksums. */
START_TEST(illegal_values_and_scales_are_found)
{
    static const char *const layouts[] = {"rows", "tiles"};
    static const uint16_t scales[] = {0x8000, 0xbc00, 0x7c00, 0x7e00, 0xffff};
    size_t n;

    for (int i = 0; i < 2; i++) {
        struct lmq_convert_options options = {.layout = layouts[i],
                                              .replaces = 1};
        unsigned char *bytes = small_lmq(&options, &n);
        unsigned char *record = find_record(bytes, n, "blk.1.attn_q.weight");
        unsigned char *values = bytes + lmq_load_u64le(record + 96);
        unsigned char *first = bytes + lmq_load_u64le(record + 112);
        unsigned char before = values[5];
        values[5] = i == 0 ? 0x80 : 0;
        lmq_store_u32le(
            record + 160,
            lmq_crc32(0, values, (size_t)lmq_load_u64le(record + 104)));
        reseal_lmq(bytes, n);
        assert_verify_refuses(save_lmq(bytes, n), LMQ_ERR_FORMAT,
                              "in 1 place");
        values[5] = before;
        lmq_store_u32le(
            record + 160,
            lmq_crc32(0, values, (size_t)lmq_load_u64le(record + 104)));
        for (size_t j = 0; j < sizeof(scales) / sizeof(scales[0]); j++) {
            lmq_store_u16le(first, scales[j]);
            lmq_store_u32le(
                record + 164,
                lmq_crc32(0, first, (size_t)lmq_load_u64le(record + 120)));
            reseal_lmq(bytes, n);
            assert_verify_refuses(save_lmq(bytes, n), LMQ_ERR_FORMAT,
                                  "in 1 place");
        }
        free(bytes);
    }
}
END_TEST

START_TEST(metadata_of_strangers_are_checked_and_made_harmless)
{
    static const struct {
        const char *text;
        enum lmq_status status;
    } cases[] = {
        {"{}", LMQ_OK},
        {"[]", LMQ_ERR_FORMAT},
        {"", LMQ_ERR_FORMAT},
        {"{\"a\":1,\"a\":2}", LMQ_ERR_FORMAT},
        {"{\"model\":{}}", LMQ_ERR_FORMAT},
        {"{\"model\":7}", LMQ_ERR_FORMAT},
        {"{\"provenance\":{\"tool\":\"\\u001b[31m\"}}", LMQ_OK},
        {"{\"quantization\":[]}", LMQ_ERR_FORMAT},
    };
    size_t n;
    unsigned char *good = small_lmq(NULL, &n), *bytes = malloc(n);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_checkpoint *checkpoint;
        struct lmq_report *report;
        struct lmq_inspect_options options = {.has_tensors = 1};
        struct lmq_error err;
        memcpy(bytes, good, n);
        unsigned char *entry =
            bytes + find_lmq_entry(bytes, n, LMQ_SECTION_METADATA);
        unsigned char *text = bytes + lmq_load_u64le(entry + 8);
        memset(text, ' ', (size_t)lmq_load_u64le(entry + 16));
        memcpy(text, cases[i].text, strlen(cases[i].text));
        reseal_lmq(bytes, n);
        ck_assert_int_eq(lmq_checkpoint_open(save_lmq(bytes, n), NULL,
                                             &checkpoint, &err),
                         (int)cases[i].status);
        if (cases[i].status != LMQ_OK)
            continue;
        ck_assert_int_eq(lmq_inspect(checkpoint, &options, &report, &err),
                         LMQ_OK);
        ck_assert_ptr_null(
            strchr(lmq_report_string(report, "provenance.tool"), '\x1b'));
        lmq_report_free(report);
        lmq_checkpoint_close(checkpoint);
    }
    free(bytes);
    free(good);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_superblock_comes_back,
        a_section_comes_back,
        sections_that_lie_or_hide_are_refused,
        what_is_written_is_read,
        a_future_major_version_needs_a_newer_reader,
        flags_for_what_is_incompatible_are_refused_others_not,
        tensors_stand_at_multiples_of_the_alignment,
        an_unknown_section_is_skipped_unless_it_is_required,
        mangled_transfers_are_recognised,
        records_that_make_no_sense_are_refused,
        an_unknown_kind_hides_one_tensor,
        an_unknown_role_is_none,
        reserved_bytes_can_be_announced,
        statistics_are_numbers_of_every_tensor,
        metadata_are_i_json_of_the_right_types,
        a_member_of_a_set_is_whole_but_no_model,
        a_prerelease_is_told_apart,
        aliases_have_one_step_and_one_shape,
        bytes_that_belong_to_nothing_are_refused,
        nothing_hides_behind_the_section_table,
        verify_names_each_damaged_part,
        illegal_values_and_scales_are_found,
        metadata_of_strangers_are_checked_and_made_harmless,
    };

    return RUN_SUITE("lmq", tests);
}
