/*
 * test_lmq_hostile.c - containers whose numbers lie although their checksums
 * hold, and containers that are damaged.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/files/file.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/formats/lmq/containers.h"

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

/* Of other groups all is rotated, by another encoding. */
START_TEST(groups_of_32_are_not_rotated_as_a_whole)
{
    const struct lmq_convert_options options = {.size = sizeof(options),
                                                .group_size = 32};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    size_t n;
    unsigned char *bytes = small_lmq(&options, &n);
    unsigned char *encoding =
        find_record(bytes, n, "blk.0.ffn_down.weight") + 11;

    *encoding = 4;
    reseal_lmq(bytes, n);
    ck_assert_int_eq(
        lmq_checkpoint_open(save_lmq(bytes, n), NULL, &checkpoint, &err),
        LMQ_OK);
    lmq_checkpoint_close(checkpoint);
    *encoding = 3;
    reseal_lmq(bytes, n);
    ck_assert_int_eq(
        lmq_checkpoint_open(save_lmq(bytes, n), NULL, &checkpoint, &err),
        LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "group size"));
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

/* Nobody needs what is in it, but a container with it is not intact. */
START_TEST(an_unknown_section_that_does_not_inflate_is_damage)
{
    struct lmq_report *report;
    struct lmq_error err;
    size_t n;
    unsigned char *bytes = with_unknown_section(&n);
    unsigned char *entry = bytes + find_lmq_entry(bytes, n, 99);

    lmq_store_u32le(entry + 4, LMQ_SECTION_DEFLATED);
    reseal_lmq(bytes, n);
    const char *path = save_lmq(bytes, n);
    lmq_checkpoint_close(open_checkpoint(path));
    ck_assert_int_eq(lmq_verify(path, NULL, NULL, &report, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(
        lmq_report_string(
            lmq_report_item(lmq_report_at(report, "problems"), 0), "message"),
        "does not inflate"));
    lmq_report_free(report);
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
    ck_assert_int_eq(lmq_verify(save_lmq(bytes, n), NULL, NULL, &report, &err),
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

START_TEST(hostile_metadata_are_checked_and_made_harmless)
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
        {"{\"quantization\":{\"rotate\":false}}", LMQ_OK},
        {"{\"quantization\":{\"rotate\":null}}", LMQ_ERR_FORMAT},
        {"{\"quantization\":{\"rotate\":1}}", LMQ_ERR_FORMAT},
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
        mangled_transfers_are_recognised,
        records_that_make_no_sense_are_refused,
        groups_of_32_are_not_rotated_as_a_whole,
        aliases_have_one_step_and_one_shape,
        bytes_that_belong_to_nothing_are_refused,
        an_unknown_section_that_does_not_inflate_is_damage,
        nothing_hides_behind_the_section_table,
        verify_names_each_damaged_part,
        illegal_values_and_scales_are_found,
        hostile_metadata_are_checked_and_made_harmless,
    };

    return RUN_SUITE("lmq_hostile", tests);
}
