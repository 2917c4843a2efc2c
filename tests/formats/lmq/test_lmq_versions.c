/*
 * test_lmq_versions.c - what another version of the format may say in a
 * container: it is skipped, hides what needs it, or asks for a newer reader.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/formats/lmq/containers.h"

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
        {11, 5, "encoding 5"},
        {11, 0x80, "encoding 128"},
        {20, LMQ_DTYPE_BOOL + 1, "type 15"},
        {21, LMQ_LAYOUT_COUNT, "layout 2"},
        {22, LMQ_SCALES_COUNT, "type of scales 2"},
        {197, 3, "3 bits"},
        {197, 7, "7 bits"},
        {197, 9, "9 bits"},
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

START_TEST(a_member_says_twice_of_which_set_it_is)
{
    size_t n;
    unsigned char *bytes = small_lmq(NULL, &n);

    lmq_store_u32le(bytes + 60, 1);
    lmq_store_u32le(bytes + 64, 3);
    bytes[68] = 1;
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT,
                   "'set' of the metadata is not what the superblock says");
    lmq_store_u32le(bytes + 60, 2);
    reseal_lmq(bytes, n);
    assert_refused(save_lmq(bytes, n), LMQ_ERR_FORMAT,
                   "which only the first may have");
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

int
main(void)
{
    const TTest *const tests[] = {
        a_future_major_version_needs_a_newer_reader,
        flags_for_what_is_incompatible_are_refused_others_not,
        an_unknown_section_is_skipped_unless_it_is_required,
        an_unknown_kind_hides_one_tensor,
        an_unknown_role_is_none,
        reserved_bytes_can_be_announced,
        a_member_says_twice_of_which_set_it_is,
        a_prerelease_is_told_apart,
    };

    return RUN_SUITE("lmq_versions", tests);
}
