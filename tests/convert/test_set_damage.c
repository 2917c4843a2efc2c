/*
 * test_set_damage.c - sets of which members are missing, others, or damaged.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "formats/lmq/lmq_set.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/build/suite.h"
#include "tests/convert/sets.h"

/* ---- Members that are not there, or not the right ones ---- */

static void
copy(const char *from, const char *to)
{
    size_t n;
    unsigned char *bytes = read_file(from, &n);

    write_file(to, bytes, n);
    free(bytes);
}

static void
assert_damaged(const char *path, const char *text)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_verify(path, NULL, NULL, &report, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(report);
    const struct lmq_report *problem =
        lmq_report_item(lmq_report_at(report, "problems"), 0);
    ck_assert_msg(
        strstr(lmq_report_string(problem, "file"), text) != NULL ||
            strstr(lmq_report_string(problem, "message"), text) != NULL,
        "%s: %s, expected %s", lmq_report_string(problem, "file"),
        lmq_report_string(problem, "message"), text);
    lmq_report_free(report);
}

/* The open one's report is the path's; and nobody takes what has come to stand
 * there meanwhile for what is open. */
START_TEST(an_open_checkpoint_is_verified_like_its_path)
{
    struct lmq_report *by_path, *report;
    struct lmq_error err;
    char *a, *b;

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    const char *path = member_path(1, n);
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    ck_assert_int_eq(lmq_verify(path, NULL, NULL, &by_path, &err), LMQ_OK);
    ck_assert_int_eq(
        lmq_verify_checkpoint(checkpoint, NULL, NULL, &report, &err), LMQ_OK);
    ck_assert_int_eq((int)lmq_report_number(report, "files"), (int)n);
    lmq_report_text(by_path, LMQ_REPORT_JSON, &a, &err);
    lmq_report_text(report, LMQ_REPORT_JSON, &b, &err);
    ck_assert_str_eq(a, b);
    lmq_text_free(a);
    lmq_text_free(b);
    lmq_report_free(report);
    lmq_report_free(by_path);
    copy(member_path(1, n), in_folder("copy"));
    rename(in_folder("copy"), member_path(1, n));
    ck_assert_int_eq(
        lmq_verify_checkpoint(checkpoint, NULL, NULL, &report, &err),
        LMQ_ERR_IO);
    ck_assert_ptr_null(report);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(missing_members_are_named)
{
    save_model(1);
    mkdir(in_folder("d"), 0777);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    ck_assert_uint_ge(n, 4);
    for (size_t i = 1; i <= n; i++) {
        char name[64];
        snprintf(name, sizeof(name), "d/set-%05zu-of-%05zu.lmq", i, n);
        rename(member_path(i, n), in_folder(name));
    }
    assert_intact(in_folder("d"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("d"));
    ck_assert_uint_eq(checkpoint->n_files, n);
    lmq_checkpoint_close(checkpoint);
    for (size_t i = 1; i <= n; i++) {
        char name[64], *base = name + 2;
        struct lmq_report *report;
        struct lmq_error err;
        snprintf(name, sizeof(name), "d/set-%05zu-of-%05zu.lmq", i, n);
        ck_assert_int_eq(lmq_verify_file(in_folder(name), NULL, NULL, &report,
                                         &err),
                         LMQ_OK);
        lmq_report_free(report);
        rename(in_folder(name), in_folder("away"));
        assert_refused(in_folder("d"), LMQ_ERR_FORMAT, base);
        assert_damaged(in_folder("d"), base);
        rename(in_folder("away"), in_folder(name));
    }
    assert_intact(in_folder("d"));
}
END_TEST

START_TEST(members_in_wrong_places_are_named)
{
    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    copy(member_path(2, n), in_folder("two"));
    copy(member_path(3, n), in_folder("three"));
    copy(in_folder("two"), in_folder("renamed.lmq"));
    assert_refused(in_folder("renamed.lmq"), LMQ_ERR_FORMAT,
                   "is member 2 of a set");
    /* The same twice; swapped; one of another count; a whole model. */
    copy(in_folder("two"), member_path(3, n));
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "is member 2 of a set");
    assert_damaged(member_path(1, n), "is member 2 of a set");
    copy(in_folder("three"), member_path(2, n));
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "is member 3 of a set");
    copy(in_folder("two"), member_path(2, n));
    copy(in_folder("three"), member_path(3, n));
    assert_intact(member_path(1, n));
    copy(member_path(1, n), member_path(1, n + 1));
    assert_refused(member_path(1, n + 1), LMQ_ERR_FORMAT,
                   "its name is that of another one");
    convert_one(&(struct lmq_convert_options){.size = 0});
    copy(in_folder("one.lmq"), member_path(2, n));
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "is a whole model");
    assert_damaged(member_path(1, n), "is a whole model");
}
END_TEST

/* ---- Members that contradict each other ---- */

/* The record of a tensor in a member's bytes; NULL if it is not there. */
static unsigned char *
find_record(unsigned char *bytes, size_t n, const char *name)
{
    unsigned char *directory = bytes + find_lmq_section(bytes, n, 2);
    uint32_t count = lmq_load_u32le(directory);
    const unsigned char *names = directory + 16 + 256 * (size_t)count;

    for (uint32_t i = 0; i < count; i++) {
        unsigned char *record = directory + 16 + 256 * (size_t)i;
        if (lmq_load_u32le(record + 4) == strlen(name) &&
            memcmp(names + lmq_load_u32le(record), name, strlen(name)) == 0)
            return record;
    }
    return NULL;
}

/* Puts a number into the record of the embedding in a member. */
static void
patch_record(size_t number, size_t n_members, size_t at, int size,
             uint64_t value)
{
    size_t n;
    unsigned char *bytes = read_file(member_path(number, n_members), &n);
    unsigned char *record = find_record(bytes, n, "token_embd.weight");

    ck_assert_ptr_nonnull(record);
    for (int i = 0; i < size; i++)
        record[at + (size_t)i] = (unsigned char)(value >> 8 * i);
    reseal_lmq(bytes, n);
    write_file(member_path(number, n_members), bytes, n);
    free(bytes);
}

START_TEST(pieces_that_do_not_fit_are_refused)
{
    static const struct {
        size_t at;
        int size;
        uint64_t value;
        const char *text;
    } wrong[] = {
        {176, 8, 0, "stand twice"},       /* over the first */
        {176, 8, 32, "stands in no"},     /* a gap before it */
        {32, 8, 72, "is another one"},    /* more rows */
        {196, 1, 1, "is another one"},    /* another source */
        {28, 4, 0x40000000, "is another one"}, /* a factor of 2 */
        {11, 1, 3, "is another one"},     /* rotated */
    };

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 4500});
    copy(member_path(2, n), in_folder("two"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        patch_record(2, n, wrong[i].at, wrong[i].size, wrong[i].value);
        assert_refused(member_path(2, n), LMQ_ERR_FORMAT, wrong[i].text);
        assert_damaged(member_path(1, n), wrong[i].text);
        ck_assert(!read_all(member_path(1, n)));
        copy(in_folder("two"), member_path(2, n));
    }
    assert_intact(member_path(1, n));
}
END_TEST

/* A kind that is not known hides the tensor, and nothing else. */
START_TEST(an_unknown_kind_may_be_cut)
{
    struct lmq_checkpoint *checkpoint;

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 4500});
    struct lmq_checkpoint *set = open_checkpoint(member_path(1, n));
    const struct lmq_whole *whole = lmq_set_whole_of(
        set, lmq_checkpoint_find_name(set, "token_embd.weight"));
    size_t first = whole->pieces[0].member, n_pieces = whole->n_pieces;
    lmq_checkpoint_close(set);
    ck_assert_uint_gt(n_pieces, 1);
    for (size_t i = 0; i < n_pieces; i++)
        patch_record(first + 1 + i, n, 21, 1, 7);
    checkpoint = open_checkpoint(member_path(1, n));
    ck_assert_str_eq(
        lmq_checkpoint_find_name(checkpoint, "token_embd.weight")->unknown,
        "layout 7");
    lmq_checkpoint_close(checkpoint);
    ck_assert(inspect_all(member_path(1, n)));
    assert_intact(member_path(1, n));
}
END_TEST

/* Replaces a text of the metadata by one of the same length. */
static void
patch_metadata(size_t number, size_t n_members, const char *from,
               const char *to)
{
    size_t n;
    unsigned char *bytes = read_file(member_path(number, n_members), &n);
    unsigned char *at = bytes + find_lmq_section(bytes, n, 1);

    while (memcmp(at, from, strlen(from)) != 0)
        REQUIRE(++at < bytes + n - strlen(from), "no %s", from);
    memcpy(at, to, strlen(to));
    reseal_lmq(bytes, n);
    write_file(member_path(number, n_members), bytes, n);
    free(bytes);
}

START_TEST(what_is_said_of_the_set_must_be_so)
{
    static const struct {
        size_t member;
        const char *from, *to, *text;
    } wrong[] = {
        {2, "\"member\":2", "\"member\":3", "'set' of the metadata"},
        {2, "\"set\":", "\"sat\":", "'set' of the metadata"},
        {1, "\"tensors\":2", "\"tensors\":3", "but its member 1 says"},
        {3, "\"tensors\":2", "\"tensors\":3", "but its member 3 says"},
        {2, "\"provenance\":", "\"model\":     ", "may have"},
    };

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        copy(member_path(wrong[i].member, n), in_folder("kept"));
        patch_metadata(wrong[i].member, n, wrong[i].from, wrong[i].to);
        assert_refused(member_path(1, n), LMQ_ERR_FORMAT, wrong[i].text);
        ck_assert(!read_all(member_path(n, n)));
        copy(in_folder("kept"), member_path(wrong[i].member, n));
    }
    assert_intact(member_path(n, n));
}
END_TEST

/* A small file that claims to be one of very many: nobody looks for all of
 * them, and nothing is allocated for them. */
START_TEST(claims_of_many_members_cost_nothing)
{
    static const char metadata[] =
        "{\"set\":{\"id\":\"01000000000000000000000000000000\","
        "\"member\":1,\"members\":99999,\"tensors\":1}}";
    const struct lmq_content content = {
        .type = LMQ_SECTION_METADATA,
        .name = "",
        .bytes = (const unsigned char *)metadata,
        .size = sizeof(metadata) - 1,
    };
    struct lmq_layout_plan plan = {.alignment = 64, .member = 1,
                                   .n_members = 99999, .set_id = {1}};
    const char *path = member_path(1, 99999);
    struct lmq_output *output;
    struct lmq_error err;

    ck_assert_int_eq(lmq_write_plan(NULL, 0, &content, 1, &plan, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_create(path, plan.file_size, false, NULL,
                                       &output, &err),
                     LMQ_OK);
    ck_assert_int_eq(
        lmq_write_frame(output, &plan, NULL, 0, &content, 1, &err), LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    assert_refused(path, LMQ_ERR_FORMAT,
                   "lacks set-00002-of-99999.lmq, set-00003-of-99999.lmq, "
                   "set-00004-of-99999.lmq, set-00005-of-99999.lmq, perhaps "
                   "more");
    assert_damaged(path, "set-00002-of-99999.lmq");
}
END_TEST

/* ---- Damage ---- */

/* Two members, as small as they can be. */
static size_t
tiny_set(void)
{
    struct build_model model = {0};
    struct lmq_convert_options options = {.layout = "rows",
                                          .group_size = 32,
                                          .shard_size = 2300,
                                          .threads = 1};

    build_add(&model, "embed_tokens.weight", (uint64_t[]){33, 2}, 2);
    build_add(&model, "norm.weight", (uint64_t[]){2}, 1);
    build_add(&model, "lm_head.weight", (uint64_t[]){33, 2}, 2);
    for (size_t i = 0; i < model.n_tensors; i++)
        for (size_t j = 0; j < model.tensors[i].n_elements; j++)
            model.tensors[i].x[j] = (float)(j % 7) - 2.7f;
    mkdir(in_folder("model"), 0777);
    save_safetensors(&model, in_folder("model/model.safetensors"));
    for (size_t i = 0; i < model.n_tensors; i++)
        free(model.tensors[i].x);
    free(model.tensors);
    return convert_set(&options);
}

START_TEST(every_flipped_bit_of_a_set_is_noticed)
{
    const struct lmq_verify_options alone = {.threads = 1};
    size_t n_members = tiny_set();

    ck_assert_uint_eq(n_members, 2);
    assert_intact(member_path(1, 2));
    for (size_t i = 1; i <= n_members; i++) {
        size_t n;
        unsigned char *bytes = read_file(member_path(i, n_members), &n);
        FILE *file = fopen(member_path(i, n_members), "r+b");
        ck_assert_ptr_nonnull(file);
        setbuf(file, NULL);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            struct lmq_error err = {0};
            fseek(file, (long)(bit / 8), SEEK_SET);
            fputc(bytes[bit / 8] ^ 1 << bit % 8, file);
            enum lmq_status status =
                lmq_verify(member_path(1, 2), &alone, NULL, NULL, &err);
            REQUIRE(status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED,
                    "member %zu, bit %zu of byte %zu: status %d", i, bit % 8,
                    bit / 8, (int)status);
            if (bit % 5 == 0)
                read_all(member_path(2, 2));
            fseek(file, (long)(bit / 8), SEEK_SET);
            fputc(bytes[bit / 8], file);
        }
        fclose(file);
        free(bytes);
    }
    assert_intact(member_path(1, 2));
}
END_TEST

/* With all checksums put right. */
START_TEST(flipped_bits_of_a_set_under_right_checksums_do_no_harm)
{
    size_t n_members = tiny_set(), n;
    unsigned char *good = read_file(member_path(2, n_members), &n);
    unsigned char *bytes = malloc(n);

    for (size_t at = 8; at < n; at++) {
        if (at == 128)
            at = find_lmq_section(good, n, 4);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bytes, good, n);
            bytes[at] ^= (unsigned char)(1u << bit);
            reseal_lmq(bytes, n);
            write_file(member_path(2, n_members), bytes, n);
            read_all(member_path(1, n_members));
        }
    }
    free(bytes);
    free(good);
}
END_TEST

START_TEST(every_truncation_of_a_member_is_refused)
{
    size_t n_members = tiny_set();

    for (size_t i = 1; i <= n_members; i++) {
        size_t n;
        unsigned char *bytes = read_file(member_path(i, n_members), &n);
        for (size_t size = 0; size < n; size++) {
            write_file(member_path(i, n_members), bytes, size);
            REQUIRE(!read_all(member_path(3 - i, n_members)),
                    "opened with %zu bytes of member %zu", size, i);
        }
        write_file(member_path(i, n_members), bytes, n);
        free(bytes);
    }
    assert_intact(member_path(1, n_members));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        an_open_checkpoint_is_verified_like_its_path,
        missing_members_are_named,
        members_in_wrong_places_are_named,
        pieces_that_do_not_fit_are_refused,
        an_unknown_kind_may_be_cut,
        what_is_said_of_the_set_must_be_so,
        claims_of_many_members_cost_nothing,
        every_flipped_bit_of_a_set_is_noticed,
        flipped_bits_of_a_set_under_right_checksums_do_no_harm,
        every_truncation_of_a_member_is_refused,
    };

    return RUN_SUITE("set damage", tests);
}
