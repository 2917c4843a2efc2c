/*
 * test_digests.c - SHA-256 of a container: what changes it and what does not.
 *
 * That the digests are those of lmq(5) is the business of lmq_digests.py, which
 * computes them from the page.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/sha256.h"
#include "formats/lmq/lmq_digests.h"
#include "formats/verify/verify_digests.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

/* Short and long rows, ragged ones, more than a piece, more than a chunk. */
static const struct {
    const char *name;
    uint64_t dims[2];
    uint32_t n_dims;
} shapes[] = {
    {"narrow.weight", {1100, 1}, 2},  {"ragged.weight", {37, 130}, 2},
    {"even.weight", {16, 8192}, 2},   {"wide.weight", {35, 8193}, 2},
    {"wider.weight", {18, 20000}, 2}, {"long.weight", {1, 140000}, 2},
    {"chunks.weight", {1100, 4096}, 2}, {"norm", {9000}, 1},
    {"tiny.weight", {3, 5}, 2},
};

/* A folder with a model, a tokenizer and tensors of many shapes; its tiny
 * scales ask for a multiplier. */
static const char *
save_model(bool has_shapes)
{
    struct build_model *model = build_model(&build_small, 7);
    struct random random = {11};

    if (has_shapes)
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            struct build_tensor *tensor = build_add(
                model, shapes[i].name, shapes[i].dims, shapes[i].n_dims);
            for (size_t j = 0; j < tensor->n_elements; j++)
                tensor->x[j] =
                    (float)((int)(random_u64(&random) % 2001) - 1000) *
                    (i == 1 ? 1e-9f : 1e-3f);
        }
    save_folder(model, in_folder("model"), BUILD_F32);
    if (has_shapes) /* nothing that a Llama has */
        write_file(in_folder("model/config.json"),
                   "{\"model_type\":\"unheard-of\"}", 27);
    write_file(in_folder("model/tokenizer.json"),
               "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
               54);
    build_free(model);
    return in_folder("model");
}

static const struct lmq_convert_options with_digests = {.has_digests = 1};

/* The report of verifying, which must say `status`. */
static struct lmq_report *
verify(const char *path, const char *against, enum lmq_status status)
{
    const struct lmq_verify_options options = {.threads = 2,
                                               .against = against};
    struct lmq_report *report;
    struct lmq_error err = {0};

    enum lmq_status found = lmq_verify(path, &options, NULL, &report, &err);
    ck_assert_msg(found == status, "status %d, expected %d: %s", (int)found,
                  (int)status, err.message);
    return report;
}

static char *
digest_of(const char *path, const char *which)
{
    struct lmq_report *report = verify(path, NULL, LMQ_OK);
    char *digest = strdup(lmq_report_string(report, which));

    ck_assert_uint_eq(strlen(digest), LMQ_DIGEST_TEXT - 1);
    ck_assert(lmq_report_number(report, "digests.checked") > 0);
    lmq_report_free(report);
    return digest;
}

static void
converted(const char *name, const struct lmq_convert_options *options)
{
    lmq_report_free(
        convert(in_folder("model"), in_folder(name), options));
}

/* ---- What they say ---- */

START_TEST(the_content_is_the_same_however_it_is_stored)
{
    struct lmq_convert_options options = with_digests;

    save_model(_i == 1);
    options.layout = "tiles";
    converted("a.lmq", &options);
    options.layout = "rows";
    options.is_compressed = 1;
    options.tie = "never";
    converted("b.lmq", &options);
    options.layout = "rows";
    lmq_report_free(
        convert(in_folder("a.lmq"), in_folder("again.lmq"), &options));
    options.group_size = 32;
    converted("c.lmq", &options);
    char *a = digest_of(in_folder("a.lmq"), "digests.content");
    char *b = digest_of(in_folder("b.lmq"), "digests.content");
    char *c = digest_of(in_folder("c.lmq"), "digests.content");
    char *root_a = digest_of(in_folder("a.lmq"), "digests.root");
    char *root_b = digest_of(in_folder("b.lmq"), "digests.root");
    char *again = digest_of(in_folder("again.lmq"), "digests.content");
    ck_assert_str_eq(a, b);
    ck_assert_str_eq(a, again);
    ck_assert_str_ne(a, c);
    free(again);
    ck_assert_str_ne(root_a, root_b);
    free(a);
    free(b);
    free(c);
    free(root_a);
    free(root_b);
}
END_TEST

/* Of a set of which nobody knows how many there are. */
static const char *
member_path(int number)
{
    char name[32];

    for (int n = 2; n < 10; n++) {
        snprintf(name, sizeof(name), "m-%05d-of-%05d.lmq", number, n);
        if (access(in_folder(name), F_OK) == 0)
            return in_folder(name);
    }
    ck_abort_msg("no set");
    return NULL;
}

START_TEST(a_set_has_the_content_of_the_one_file)
{
    struct lmq_convert_options options = with_digests;

    save_model(true);
    converted("one.lmq", &options);
    char *one = digest_of(in_folder("one.lmq"), "digests.content");
    options.shard_size = 3000000; /* cuts the largest tensor */
    converted("m.lmq", &options);
    struct lmq_report *report = verify(member_path(1), NULL, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.content"), one);
    ck_assert(lmq_report_number(report, "digests.checked") > 0);
    ck_assert(lmq_report_number(report, "digests.content_checked") > 0);
    char *root = strdup(lmq_report_string(report, "digests.root"));
    lmq_report_free(report);
    report = verify(member_path(2), root, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.matches"), "root");
    lmq_report_free(report);
    report = verify(member_path(2), one, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.matches"), "content");
    lmq_report_free(report);
    free(root);
    free(one);
}
END_TEST

static void
seal_extent(unsigned char *bytes, size_t n, size_t index)
{
    unsigned char *record = bytes +
                            find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY) +
                            LMQ_DIRECTORY_HEADER + index * LMQ_RECORD_SIZE;

    for (size_t i = 0; i < 2; i++) {
        size_t at = (size_t)lmq_load_u64le(record + 96 + 16 * i);
        size_t size = (size_t)lmq_load_u64le(record + 104 + 16 * i);
        lmq_store_u32le(record + 160 + 4 * i, lmq_crc32(0, bytes + at, size));
    }
}

/* One element, and all checksums put right. */
static void
change_member(int number)
{
    size_t n;
    const char *path = member_path(number);
    unsigned char *bytes = read_file(path, &n);
    unsigned char *record = bytes +
                            find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY) +
                            LMQ_DIRECTORY_HEADER;
    unsigned char *value = bytes + lmq_load_u64le(record + 96);

    *value = *value == 1 ? 2 : 1;
    seal_extent(bytes, n, 0);
    reseal_lmq(bytes, n);
    write_file(path, bytes, n);
    free(bytes);
}

START_TEST(the_content_of_a_set_without_digests_is_computed)
{
    struct lmq_convert_options options = {.layout = "tiles"};

    save_model(_i == 1);
    converted("one.lmq", &with_digests);
    char *one = digest_of(in_folder("one.lmq"), "digests.content");
    options.shard_size = _i == 1 ? 3000000 : 9000;
    converted("m.lmq", &options);
    struct lmq_report *report = verify(member_path(1), one, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.matches"), "content");
    ck_assert_int_eq(lmq_report_kind(report, "digests.root"), LMQ_KIND_NULL);
    lmq_report_free(report);
    change_member(2);
    report = verify(member_path(1), NULL, LMQ_OK);
    ck_assert_int_eq(lmq_report_kind(report, "digests"), LMQ_KIND_NULL);
    lmq_report_free(report);
    lmq_report_free(verify(member_path(1), one, LMQ_ERR_FORMAT));
    lmq_report_free(verify(member_path(2), one, LMQ_ERR_FORMAT));
    free(one);
}
END_TEST

/* Whoever changes digests computes the root anew. */
static void
put_root_right(const char *path, unsigned char *bytes, size_t n)
{
    unsigned char *digests =
        bytes + find_lmq_section(bytes, n, LMQ_SECTION_DIGESTS);
    struct lmq_container container = {0};
    struct lmq_input *input;

    reseal_lmq(bytes, n);
    write_file(path, bytes, n);
    ck_assert_int_eq(lmq_input_open(path, &input, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_container_load(input, &container, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_verify_root(input, &container,
                                     digests + LMQ_DIGESTS_ROOT, NULL),
                     LMQ_OK);
    lmq_container_free(&container);
    lmq_input_close(input);
    reseal_lmq(bytes, n);
    write_file(path, bytes, n);
}

/* Each file is as it says, but not the whole. */
START_TEST(another_content_of_a_set_is_found)
{
    struct lmq_convert_options options = with_digests;
    size_t n;

    options.shard_size = 9000;
    save_model(false);
    converted("m.lmq", &options);
    const char *path = member_path(2);
    unsigned char *bytes = read_file(path, &n);
    bytes[find_lmq_section(bytes, n, LMQ_SECTION_DIGESTS) + 48] ^= 1;
    put_root_right(path, bytes, n);
    free(bytes);
    struct lmq_report *report = verify(member_path(1), NULL, LMQ_ERR_FORMAT);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "problems")), 1);
    ck_assert_str_eq(lmq_report_string(report, "problems.0.message"),
                     "the digest of the content does not match");
    ck_assert_str_eq(lmq_report_string(report, "problems.0.file"),
                     strrchr(path, '/') + 1);
    lmq_report_free(report);
}
END_TEST

START_TEST(threads_do_not_change_a_byte)
{
    struct lmq_convert_options options = with_digests;
    size_t n, n_other;

    save_model(true);
    for (int i = 0; i < 2; i++) {
        options.layout = i == 0 ? "rows" : "tiles";
        options.replaces = 1;
        options.threads = 1;
        converted("one.lmq", &options);
        options.threads = 5;
        converted("five.lmq", &options);
        unsigned char *one = read_file(in_folder("one.lmq"), &n);
        unsigned char *five = read_file(in_folder("five.lmq"), &n_other);
        ck_assert_uint_eq(n, n_other);
        ck_assert(memcmp(one, five, n) == 0);
        free(one);
        free(five);
    }
}
END_TEST

START_TEST(without_digests_the_tensors_are_the_same)
{
    save_model(true);
    converted("with.lmq", &with_digests);
    converted("without.lmq", NULL);
    assert_same_tensors(in_folder("with.lmq"), in_folder("without.lmq"));
}
END_TEST

START_TEST(the_content_of_a_container_without_digests_is_computed)
{
    save_model(true);
    converted("with.lmq", &with_digests);
    converted("without.lmq", NULL);
    char *content = digest_of(in_folder("with.lmq"), "digests.content");
    char *root = digest_of(in_folder("with.lmq"), "digests.root");
    struct lmq_report *report =
        verify(in_folder("without.lmq"), content, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.matches"), "content");
    ck_assert_str_eq(lmq_report_string(report, "digests.content"), content);
    lmq_report_free(report);
    lmq_report_free(verify(in_folder("without.lmq"), root, LMQ_ERR_FORMAT));
    report = verify(in_folder("without.lmq"), NULL, LMQ_OK);
    ck_assert_int_eq(lmq_report_kind(report, "digests"), LMQ_KIND_NULL);
    lmq_report_free(report);
    free(content);
    free(root);
}
END_TEST

START_TEST(another_container_is_not_what_was_asked_for)
{
    save_model(false);
    converted("a.lmq", &with_digests);
    char *root = digest_of(in_folder("a.lmq"), "digests.root");
    char *content = digest_of(in_folder("a.lmq"), "digests.content");
    struct lmq_report *report = verify(in_folder("a.lmq"), root, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.matches"), "root");
    lmq_report_free(report);
    for (char *p = content + 7; *p != '\0'; p++)
        *p = *p >= 'a' ? (char)(*p - 'a' + 'A') : *p;
    report = verify(in_folder("a.lmq"), content + 7, LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "digests.matches"), "content");
    lmq_report_free(report);
    root[20] = root[20] == '0' ? '1' : '0';
    report = verify(in_folder("a.lmq"), root, LMQ_ERR_FORMAT);
    ck_assert(lmq_report_number(report, "intact") > 0);
    ck_assert_int_eq(lmq_report_kind(report, "digests.matches"),
                     LMQ_KIND_NULL);
    lmq_report_free(report);
    root[20] = 'g';
    verify(in_folder("a.lmq"), root, LMQ_ERR_ARG);
    verify(in_folder("a.lmq"), "sha256:", LMQ_ERR_ARG);
    free(root);
    free(content);
}
END_TEST

/* ---- What they find ---- */

/* Whoever changes bytes on purpose puts the checksums right. */
static void
assert_found(unsigned char *bytes, size_t n, const char *what)
{
    reseal_lmq(bytes, n);
    write_file(in_folder("changed.lmq"), bytes, n);
    struct lmq_report *report =
        verify(in_folder("changed.lmq"), NULL, LMQ_ERR_FORMAT);
    const char *message = lmq_report_string(report, "problems.0.message");
    ck_assert_msg(strstr(message, what) != NULL, "'%s', expected '%s'",
                  message, what);
    lmq_report_free(report);
}

START_TEST(what_checksums_cannot_find_is_found)
{
    struct lmq_convert_options options = with_digests;
    size_t n;

    options.layout = _i == 0 ? "rows" : "tiles";
    save_model(false);
    converted("model.lmq", &options);
    unsigned char *bytes = read_file(in_folder("model.lmq"), &n);
    unsigned char *digests =
        bytes + find_lmq_section(bytes, n, LMQ_SECTION_DIGESTS);
    unsigned char *directory =
        bytes + find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY) + 16;
    size_t values = (size_t)lmq_load_u64le(directory + 96);
    unsigned char was = bytes[values], root[LMQ_SHA256_SIZE];

    bytes[values] = was == 1 ? 2 : 1;
    seal_extent(bytes, n, 0);
    assert_found(bytes, n, "SHA-256 of the tensor");
    bytes[values] = was;
    seal_extent(bytes, n, 0);
    digests[16] ^= 1;
    assert_found(bytes, n, "root");
    digests[16] ^= 1;
    memcpy(root, digests + LMQ_DIGESTS_ROOT, sizeof(root));
    digests[48] ^= 1;
    put_root_right(in_folder("changed.lmq"), bytes, n);
    assert_found(bytes, n, "content");
    digests[48] ^= 1;
    memcpy(digests + LMQ_DIGESTS_ROOT, root, sizeof(root));
    digests[80] ^= 1;
    assert_found(bytes, n, "SHA-256 of the tensor");
    digests[80] ^= 1;
    /* Statistics are no content, but of the file. */
    bytes[find_lmq_section(bytes, n, LMQ_SECTION_STATISTICS) + 8] ^= 1;
    assert_found(bytes, n, "root");
    free(bytes);
}
END_TEST

/* No digest covers it, so it must be what it must be, with digests or not: the
 * last row, the columns behind the last one of the first row, the last
 * scale. */
START_TEST(padding_of_tiles_is_checked)
{
    save_model(false); /* the vocabulary: 33 rows of 24 */
    for (int i = 0; i < 6; i++) {
        const struct lmq_convert_options options = {.has_digests = i < 3,
                                                    .replaces = 1};
        size_t n, extent = i % 3 == 2;
        converted("model.lmq", &options);
        unsigned char *bytes = read_file(in_folder("model.lmq"), &n);
        unsigned char *directory =
            bytes + find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY) + 16;
        size_t at = (size_t)lmq_load_u64le(directory + 96 + 16 * extent);
        size_t size = (size_t)lmq_load_u64le(directory + 104 + 16 * extent);
        unsigned char *byte =
            &bytes[i % 3 == 1 ? at + lmq_tile_index(0, 24) : at + size - 1];

        ck_assert_uint_eq(*byte, extent == 0 ? 128 : 0);
        *byte = extent == 0 ? 129 : 1;
        seal_extent(bytes, n, 0);
        assert_found(bytes, n, "padding of its tiles");
        free(bytes);
    }
}
END_TEST

/* ---- Without a library ---- */

START_TEST(without_a_library_only_digests_are_missing)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    save_model(false);
    checkpoint = open_checkpoint(in_folder("model"));
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("a.lmq"),
                                 &with_digests, NULL, NULL, &err),
                     LMQ_ERR_IO);
    ck_assert(strstr(err.hint, "nettle") != NULL);
    lmq_checkpoint_close(checkpoint);
    converted("b.lmq", NULL);
    assert_intact(in_folder("b.lmq"));
    verify(in_folder("b.lmq"),
           "0000000000000000000000000000000000000000000000000000000000000000",
           LMQ_ERR_IO);
    struct lmq_report *report =
        verify(source_path("files/lmq/good-digests.lmq"), NULL, LMQ_OK);
    ck_assert(lmq_report_number(report, "digests.checked") < 1);
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const alone[] = {without_a_library_only_digests_are_missing};
    const TTest *const twice[] = {
        the_content_is_the_same_however_it_is_stored,
        the_content_of_a_set_without_digests_is_computed,
        what_checksums_cannot_find_is_found,
    };
    const TTest *const tests[] = {
        a_set_has_the_content_of_the_one_file,
        another_content_of_a_set_is_found,
        threads_do_not_change_a_byte,
        without_digests_the_tensors_are_the_same,
        the_content_of_a_container_without_digests_is_computed,
        another_container_is_not_what_was_asked_for,
        padding_of_tiles_is_checked,
    };

    if (!lmq_sha256_is_there())
        return RUN_SUITE("digests", alone);
    int code = RUN_SUITE("digests", tests);
    return RUN_SUITE_OVER("digests", twice, 0, 2) != 0 ? 1 : code;
}
