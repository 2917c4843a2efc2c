/*
 * test_lmq.c - the container: structures and their bytes, metadata, whole
 * files.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/files/output.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/formats/lmq/containers.h"

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
        /* Offsets count from the beginning of the file. */
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err;
        ck_assert_int_eq(lmq_checkpoint_open(in_folder("changed.lmq"), NULL,
                                             &checkpoint, &err),
                         LMQ_ERR_FORMAT);
        ck_assert_uint_ge(err.offset, at);
        ck_assert_uint_le(err.offset, at + wrong[i].at);
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

int
main(void)
{
    const TTest *const tests[] = {
        a_superblock_comes_back,
        a_section_comes_back,
        sections_that_lie_or_hide_are_refused,
        metadata_are_i_json_of_the_right_types,
        what_is_written_is_read,
        tensors_stand_at_multiples_of_the_alignment,
        statistics_are_numbers_of_every_tensor,
    };

    return RUN_SUITE("lmq", tests);
}
