/*
 * test_resume.c - conversions that are stopped and gone on with.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/files/file.h"
#include "base/sha256.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/build/suite.h"
#include "tests/convert/sets.h"

/* With `stops` 0 to the end. */
static enum lmq_status
resume(const char *output, struct lmq_convert_options options, int stops,
       struct lmq_error *err)
{
    const struct lmq_progress progress = {.report = stop_when_due,
                                          .context = &stops};
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));

    if (options.group_size == 0)
        options.group_size = 64; /* as convert_one() */
    options.resumes = 1;
    options.forces_tokenizer = 1;
    enum lmq_status status = lmq_convert(checkpoint, in_folder(output),
                                         &options, &progress, NULL, err);
    lmq_checkpoint_close(checkpoint);
    return status;
}

static void
assert_same(const char *name_a, const char *name_b)
{
    size_t n_a, n_b;
    unsigned char *a = read_file(in_folder(name_a), &n_a);
    unsigned char *b = read_file(in_folder(name_b), &n_b);

    ck_assert_msg(n_a == n_b && memcmp(a, b, n_a) == 0, "%s is not %s",
                  name_b, name_a);
    free(a);
    free(b);
}

/* "one.lmq" as it is without a stop, and "is.lmq" that was stopped just
 * before it got its name. */
static void
begin(const struct lmq_convert_options *options)
{
    struct lmq_error err;
    int stops = 1;

    unlink(in_folder("one.lmq"));
    convert_one(options);
    /* The last call is the one before the commit. */
    while (resume("is.lmq", *options, stops, &err) == LMQ_ERR_CANCELLED &&
           access(in_folder("is.lmq"), F_OK) != 0) {
        ck_assert_int_eq(access(in_folder("is.lmq.journal"), F_OK), 0);
        stops++;
    }
    ck_assert_int_gt(stops, 1);
    assert_same("one.lmq", "is.lmq");
    unlink(in_folder("is.lmq"));
    ck_assert_int_eq(resume("is.lmq", *options, stops - 1, &err),
                     LMQ_ERR_CANCELLED);
}

START_TEST(what_is_stopped_anywhere_is_gone_on_with)
{
    static const struct lmq_convert_options options[] = {
        {.threads = 1},
        {.threads = 3, .layout = "rows", .group_size = 32},
        {.has_digests = 1, .threads = 2},
    };
    struct lmq_error err;

    save_model(1);
    for (size_t i = 0; i < 3; i++) {
        if (options[i].has_digests && lmq_sha256_need(&err) != LMQ_OK)
            continue;
        begin(&options[i]);
        /* Nothing is done again, so it ends before the third call. */
        ck_assert_int_eq(resume("is.lmq", options[i], 3, &err), LMQ_OK);
        assert_same("one.lmq", "is.lmq");
        ck_assert_int_ne(access(in_folder("is.lmq.part"), F_OK), 0);
        ck_assert_int_ne(access(in_folder("is.lmq.journal"), F_OK), 0);
        unlink(in_folder("is.lmq"));
        unlink(in_folder("one.lmq"));
    }
}
END_TEST

/* Whatever of the journal has come to the disk, down to half a line. */
START_TEST(any_beginning_of_a_journal_will_do)
{
    struct lmq_convert_options options = {.threads = 1};
    size_t n_part, n_journal;
    struct lmq_error err = {0};

    save_model(1);
    begin(&options);
    unsigned char *part = read_file(in_folder("is.lmq.part"), &n_part);
    unsigned char *journal =
        read_file(in_folder("is.lmq.journal"), &n_journal);
    const char *header = memchr(journal, '\n', n_journal); /* behind it */
    ck_assert_ptr_nonnull(header);
    header = memchr(header + 1, '\n', n_journal - 100);
    ck_assert_ptr_nonnull(header);
    for (size_t n = 0; n <= n_journal; n += n < 40 ? 7 : 211) {
        write_file(in_folder("is.lmq.part"), part, n_part);
        if (journal + n <= (const unsigned char *)header) {
            /* Nothing is begun before the header is on the disk. */
            write_file(in_folder("is.lmq.journal"), journal, n);
            ck_assert_int_eq(resume("is.lmq", options, 0, &err), LMQ_ERR_IO);
            ck_assert_ptr_nonnull(strstr(err.message, "no journal tells"));
            unlink(in_folder("is.lmq.part"));
        }
        write_file(in_folder("is.lmq.journal"), journal, n);
        ck_assert_msg(resume("is.lmq", options, 0, &err) == LMQ_OK,
                      "%zu bytes: %s", n, err.message);
        assert_same("one.lmq", "is.lmq");
        unlink(in_folder("is.lmq"));
    }
    free(part);
    free(journal);
}
END_TEST

/* Nothing of it was said to be on the disk, so it is looked at. */
START_TEST(what_did_not_come_to_the_disk_is_done_again)
{
    struct lmq_convert_options options = {.threads = 1};
    size_t n;
    struct lmq_error err;

    save_model(1);
    begin(&options);
    unsigned char *part = read_file(in_folder("is.lmq.part"), &n);
    memset(part + n / 3, 0, n / 3);
    write_file(in_folder("is.lmq.part"), part, n);
    ck_assert_int_eq(resume("is.lmq", options, 0, &err), LMQ_OK);
    assert_same("one.lmq", "is.lmq");
    unlink(in_folder("is.lmq"));
    /* Nor is one of another length believed, or none. */
    begin(&options);
    write_file(in_folder("is.lmq.part"), part, n / 2);
    ck_assert_int_eq(resume("is.lmq", options, 0, &err), LMQ_OK);
    assert_same("one.lmq", "is.lmq");
    unlink(in_folder("is.lmq"));
    begin(&options);
    unlink(in_folder("is.lmq.part"));
    ck_assert_int_eq(resume("is.lmq", options, 0, &err), LMQ_OK);
    assert_same("one.lmq", "is.lmq");
    free(part);
}
END_TEST

static void
assert_other(struct lmq_convert_options options, const char *text)
{
    struct lmq_error err = {0};

    ck_assert_int_eq(resume("is.lmq", options, 0, &err), LMQ_ERR_ARG);
    ck_assert_msg(strstr(err.message, text) != NULL, "%s, expected %s",
                  err.message, text);
    ck_assert_ptr_nonnull(strstr(err.path, "is.lmq.journal"));
}

START_TEST(another_conversion_is_refused)
{
    static const char version[] = "\"version\":\"" PACKAGE_VERSION "\"";
    struct lmq_convert_options options = {.threads = 1};
    size_t n;

    save_model(1);
    begin(&options);
    assert_other((struct lmq_convert_options){.group_size = 32},
                 ".group_size is 64 there, 32 here");
    assert_other((struct lmq_convert_options){.method = "absmax"},
                 ".method is \"search\" there");
    assert_other((struct lmq_convert_options){.tie = "never"}, ".tie is");
    assert_other((struct lmq_convert_options){.is_compressed = 1},
                 ".is_compressed is false there");
    save_model(2);
    assert_other(options, "the source is {\"name\":\"model.safetensors\"");
    save_model(1);
    /* By another version: the line with its checksum made anew. */
    char *text = (char *)read_file(in_folder("is.lmq.journal"), &n);
    char *line = memchr(text, '\n', n);
    ck_assert_ptr_nonnull(line);
    line++;
    char *end = memchr(line, '\n', n - (size_t)(line - text));
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    char *at = strstr(line, version);
    ck_assert_ptr_nonnull(at);
    at[sizeof(version) - 3] ^= 1;
    char crc[10];
    snprintf(crc, sizeof(crc), "%08x ",
             (unsigned)lmq_crc32(0, line + 9, strlen(line + 9)));
    memcpy(line, crc, 9);
    *end = '\n';
    write_file(in_folder("is.lmq.journal"), text, n);
    assert_other(options, "version is");
    free(text);
}
END_TEST

/* A line with its checksum; how much that is. */
static size_t
put_line(char *to, const char *line, size_t n)
{
    sprintf(to, "%08x ", (unsigned)lmq_crc32(0, line, n));
    memcpy(to + 9, line, n);
    to[9 + n] = '\n';
    return n + 10;
}

/* Of each line behind the header the first such words become others. */
static char *
with_other_words(const char *text, size_t n, const char *from, const char *to,
                 size_t *n_out)
{
    char *out = malloc(2 * n + 1000), line[20000];
    size_t at = 0, done = 0;

    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; at < n; i++) {
        const char *feed = memchr(text + at, '\n', n - at);
        size_t length = (size_t)(feed - text) - at;
        REQUIRE(feed != NULL && length < 10000, "line %zu", i);
        snprintf(line, sizeof(line), "%.*s", (int)length, text + at);
        char *found = i < 2 ? NULL : strstr(line, from);
        at += length + 1;
        if (found == NULL) {
            done += (size_t)sprintf(out + done, "%s\n", line);
            continue;
        }
        char rest[20000];
        strcpy(rest, found + strlen(from));
        sprintf(found, "%s%s", to, rest);
        done += put_line(out + done, line + 9, strlen(line + 9));
    }
    *n_out = done;
    return out;
}

/* Whatever it says, it is the same file or an error. */
START_TEST(a_journal_is_not_believed_too_much)
{
    static const char *const words[][2] = {
        {"\"takes\":false", "\"takes\":true"},
        {"\"parts\":[", "\"parts\":[],\"other\":["},
        {"\"part\":", "\"part\":9999999999"},
        {"\"record\":", "\"record\":-"},
        {"\"record\":", "\"record\":99999999"},
        {"\"crcs\":[", "\"crcs\":[1,"},
        {"\"ranges\":[[", "\"ranges\":[[99,"},
        {"\"multiplier\":", "\"multiplier\":[],\"m\":"},
        {"\"multiplier\":", "\"multiplier\":1065353217,\"m\":"},
        {"{", "[{"},
    };
    static const char with_nul[] = "{}\0abc";
    struct lmq_convert_options options = {.threads = 1};
    size_t n_part, n, n_new;
    struct lmq_error err = {0};

    save_model(1);
    begin(&options);
    unsigned char *part = read_file(in_folder("is.lmq.part"), &n_part);
    char *journal = (char *)read_file(in_folder("is.lmq.journal"), &n);
    for (size_t i = 0; i <= sizeof(words) / sizeof(words[0]); i++) {
        bool is_last = i == sizeof(words) / sizeof(words[0]);
        char *text = is_last ? malloc(n + 100)
                             : with_other_words(journal, n, words[i][0],
                                                words[i][1], &n_new);
        if (is_last) {
            memcpy(text, journal, n);
            n_new = n + put_line(text + n, with_nul, sizeof(with_nul) - 1);
        }
        write_file(in_folder("is.lmq.part"), part, n_part);
        write_file(in_folder("is.lmq.journal"), text, n_new);
        if (resume("is.lmq", options, 0, &err) == LMQ_OK) {
            assert_same("one.lmq", "is.lmq");
            unlink(in_folder("is.lmq"));
        } else {
            ck_assert_msg(err.status == LMQ_ERR_FORMAT, "%zu: %s", i,
                          err.message);
        }
        unlink(in_folder("is.lmq.journal"));
        free(text);
    }
    free(part);
    free(journal);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        what_is_stopped_anywhere_is_gone_on_with,
        any_beginning_of_a_journal_will_do,
        what_did_not_come_to_the_disk_is_done_again,
        another_conversion_is_refused,
        a_journal_is_not_believed_too_much,
    };

    return RUN_SUITE("resume", tests);
}
