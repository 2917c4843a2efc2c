/*
 * test_base.c - sizes, bytes, memory, errors, files.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/output.h"
#include "base/size.h"
#include "base/utf8.h"
#include "tests/build/suite.h"

/* ---- Sizes and bytes ---- */

START_TEST(sizes_that_wrap_are_refused)
{
    uint64_t u;
    size_t s;

    ck_assert(lmq_u64_mul(UINT64_MAX, 1, &u) && u == UINT64_MAX);
    ck_assert(!lmq_u64_mul((uint64_t)1 << 32, (uint64_t)1 << 32, &u));
    ck_assert(!lmq_u64_mul(UINT64_MAX, 2, &u));
    ck_assert(lmq_u64_mul(0, UINT64_MAX, &u) && u == 0);
    ck_assert(lmq_u64_add(UINT64_MAX, 0, &u) && u == UINT64_MAX);
    ck_assert(!lmq_u64_add(UINT64_MAX, 1, &u));
    ck_assert(!lmq_size_mul(SIZE_MAX, 2, &s));
    ck_assert(!lmq_size_add(SIZE_MAX, 1, &s));
    ck_assert(lmq_u64_align(0, 64, &u) && u == 0);
    ck_assert(lmq_u64_align(1, 64, &u) && u == 64);
    ck_assert(lmq_u64_align(64, 64, &u) && u == 64);
    ck_assert(lmq_u64_align(UINT64_MAX - 63, 64, &u) &&
              u == UINT64_MAX - 63);
    ck_assert(!lmq_u64_align(UINT64_MAX - 62, 64, &u));
    ck_assert_uint_eq(lmq_u64_ceil_div(0, 64), 0);
    ck_assert_uint_eq(lmq_u64_ceil_div(65, 64), 2);
    ck_assert_uint_eq(lmq_u64_ceil_div(UINT64_MAX, 1), UINT64_MAX);
}
END_TEST

START_TEST(numbers_come_back_from_their_bytes)
{
    unsigned char p[9] = {0};

    lmq_store_u64le(p + 1, 0x0123456789abcdefu);
    ck_assert_mem_eq(p + 1, "\xef\xcd\xab\x89\x67\x45\x23\x01", 8);
    ck_assert_uint_eq(lmq_load_u64le(p + 1), 0x0123456789abcdefu);
    ck_assert_uint_eq(lmq_load_u32le(p + 1), 0x89abcdefu);
    ck_assert_uint_eq(lmq_load_u16le(p + 1), 0xcdefu);
    lmq_store_u16le(p, 0x8001);
    ck_assert_mem_eq(p, "\x01\x80", 2);
    lmq_store_f32le(p + 1, -1.5f);
    ck_assert_mem_eq(p + 1, "\x00\x00\xc0\xbf", 4);
    ck_assert(lmq_load_f32le(p + 1) == -1.5f);
    lmq_store_u32le(p, 0x80000000u);
    ck_assert_int_eq(lmq_load_i32le(p), INT32_MIN);
}
END_TEST

START_TEST(utf8_is_told_from_what_only_looks_like_it)
{
    static const struct {
        const char *text;
        size_t n, length;
    } cases[] = {
        {"a", 1, 1},
        {"\0", 1, 1},
        {"\xc3\xa9", 2, 2},
        {"\xe2\x82\xac", 3, 3},
        {"\xf0\x9f\x98\x80", 4, 4},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"", 0, 0},
        {"\xc3", 1, 0},                 /* cut off */
        {"\xe2\x82", 2, 0},
        {"\xf0\x9f\x98", 3, 0},
        {"\x80", 1, 0},                 /* continues nothing */
        {"\xc3(", 2, 0},
        {"\xc0\x80", 2, 0},             /* overlong */
        {"\xc1\xbf", 2, 0},
        {"\xe0\x9f\xbf", 3, 0},
        {"\xf0\x8f\xbf\xbf", 4, 0},
        {"\xed\xa0\x80", 3, 0},         /* a surrogate */
        {"\xf4\x90\x80\x80", 4, 0},     /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, 0},
        {"\xff", 1, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_uint_eq(lmq_utf8_length(
                              (const unsigned char *)cases[i].text,
                              cases[i].n),
                          cases[i].length);
}
END_TEST

/* ---- Memory ---- */

START_TEST(every_character_comes_back_from_its_bytes)
{
    unsigned char p[4];

    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code <= 0xdfff)
            continue;
        size_t n = lmq_utf8_encode(code, p);
        ck_assert_uint_eq(lmq_utf8_length(p, n), n);
        ck_assert_uint_eq(lmq_utf8_decode(p, n), code);
        ck_assert_uint_eq(lmq_utf8_length(p, n - 1), 0);
    }
    ck_assert_uint_eq(
        lmq_utf8_valid((const unsigned char *)"a\xc3\xa4\x80\x62", 5), 3);
    ck_assert_uint_eq(
        lmq_utf8_invalid((const unsigned char *)"\x80\x80\x62", 3), 2);
}
END_TEST

START_TEST(a_buffer_grows_and_says_what_it_holds)
{
    struct lmq_buffer buffer = {0};

    ck_assert_int_eq(lmq_buffer_append(&buffer, NULL, 0), 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(lmq_buffer_print(&buffer, "%03d,", i), 0);
    ck_assert_uint_eq(buffer.n, 4000);
    ck_assert_mem_eq(buffer.bytes + 3996, "999,", 4);
    buffer.n = 0;
    lmq_buffer_append_u32le(&buffer, 0x04030201);
    lmq_buffer_append_u64le(&buffer, 5);
    lmq_buffer_append_f32le(&buffer, 1);
    lmq_buffer_append_char(&buffer, 0x20ac);
    ck_assert_uint_eq(buffer.n, 19);
    ck_assert_mem_eq(buffer.bytes,
                     "\1\2\3\4\5\0\0\0\0\0\0\0\0\0\x80\x3f\xe2\x82\xac", 19);
    buffer.n = 3;
    char *text = lmq_buffer_text(&buffer);
    ck_assert_str_eq(text, "\1\2\3");
    ck_assert_ptr_null(buffer.bytes);
    free(text);
    text = lmq_buffer_text(&buffer);
    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

START_TEST(what_does_not_fit_into_a_buffer_stays_known)
{
    struct lmq_buffer buffer = {.most = 10};

    ck_assert_int_eq(lmq_buffer_append(&buffer, "12345678", 8), 0);
    ck_assert(!buffer.has_failed);
    ck_assert_int_eq(lmq_buffer_append(&buffer, "901", 3), -1);
    ck_assert(buffer.has_failed && buffer.is_full);
    ck_assert_uint_eq(buffer.n, 8);
    ck_assert_int_eq(lmq_buffer_append(&buffer, "9", 1), 0);
    ck_assert(buffer.has_failed);
    ck_assert_ptr_null(lmq_buffer_text(&buffer));
    lmq_buffer_append(&buffer, "1", 1);
    ck_assert_ptr_null(lmq_buffer_room(&buffer, SIZE_MAX));
    ck_assert(buffer.has_failed && !buffer.is_full);
    lmq_buffer_free(&buffer);
}
END_TEST

START_TEST(numbers_are_aligned_and_zero)
{
    for (size_t n = 0; n < 300; n += 37) {
        unsigned char *p = lmq_mem_aligned(n, 3);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % LMQ_MEM_ALIGN, 0);
        for (size_t i = 0; i < 3 * n; i++)
            ck_assert_uint_eq(p[i], 0);
        lmq_mem_free(p);
    }
    ck_assert_ptr_null(lmq_mem_aligned(SIZE_MAX / 2, 4));
    ck_assert_ptr_null(lmq_mem_aligned(SIZE_MAX, 1));
}
END_TEST

START_TEST(growing_keeps_what_is_there_and_refuses_to_wrap)
{
    uint32_t *array = NULL;
    size_t capacity = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(
            lmq_mem_grow(&array, &capacity, i + 1, sizeof(*array)), 0);
        ck_assert_uint_gt(capacity, i);
        array[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(array[i], i);
    size_t before = capacity;
    uint32_t *same = array;
    ck_assert_int_eq(
        lmq_mem_grow(&array, &capacity, SIZE_MAX / 2, sizeof(*array)), -1);
    ck_assert_uint_eq(capacity, before);
    ck_assert_ptr_eq(array, same);
    free(array);
    char *text = lmq_mem_text("abc", 2);
    ck_assert_str_eq(text, "ab");
    free(text);
    ck_assert_ptr_null(lmq_mem_text("", SIZE_MAX));
}
END_TEST

/* ---- Errors ---- */

START_TEST(text_of_strangers_becomes_harmless)
{
    static const struct {
        const char *text, *plain;
    } cases[] = {
        {"wq.3", "wq.3"},
        {"gr\xc3\xb6\xc3\x9f" "e", "gr\xc3\xb6\xc3\x9f" "e"},
        {"\x1b[31mred", "\\x1b[31mred"},
        {"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b" "31m", "\\xc2\\x9b" "31m"}, /* CSI as one character */
        {"\xff\xfe", "\\xff\\xfe"},
    };
    char plain[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lmq_printable(plain, sizeof(plain), cases[i].text);
        ck_assert_str_eq(plain, cases[i].plain);
    }
}
END_TEST

START_TEST(printable_text_is_cut_between_characters)
{
    char plain[8];

    memset(plain, 'x', sizeof(plain));
    lmq_printable(plain, 5, "abcdefgh");
    ck_assert_str_eq(plain, "abcd");
    lmq_printable(plain, 5, "abc\xc3\xa9");
    ck_assert_str_eq(plain, "abc");
    lmq_printable(plain, 5, "a\x1b");
    ck_assert_str_eq(plain, "a");
    lmq_printable(plain, 1, "a");
    ck_assert_str_eq(plain, "");
}
END_TEST

START_TEST(an_error_says_what_and_where_once)
{
    struct lmq_error err;

    ck_assert_int_eq(
        lmq_fail(&err, LMQ_ERR_FORMAT, 42, "tensor '%s'", "a\x1b" "b"),
        LMQ_ERR_FORMAT);
    ck_assert_int_eq(err.status, LMQ_ERR_FORMAT);
    ck_assert_uint_eq(err.offset, 42);
    ck_assert_str_eq(err.message, "tensor 'a\\x1bb'");
    ck_assert_str_eq(err.path, "");
    lmq_error_in(&err, "first");
    lmq_error_in(&err, "second");
    ck_assert_str_eq(err.path, "first");
    lmq_hint(&err, "try %d", 1);
    ck_assert_str_eq(err.hint, "try 1");
    errno = ENOSPC;
    ck_assert_int_eq(lmq_fail_errno(&err, "cannot write"), LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "No space left"));
    ck_assert_str_eq(err.hint, "");
    errno = ENOMEM;
    ck_assert_int_eq(lmq_fail_errno(&err, "x"), LMQ_ERR_NOMEM);
    ck_assert_int_eq(lmq_fail(NULL, LMQ_ERR_IO, 0, "x"), LMQ_ERR_IO);
    lmq_hint(NULL, "x");
    lmq_error_in(NULL, "x");
}
END_TEST

/* A name of a file may be as long as the message. */
START_TEST(a_long_name_does_not_push_the_numbers_out_of_a_message)
{
    struct lmq_error err;
    char name[1025];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    lmq_fail(&err, LMQ_ERR_FORMAT, 0, "tensor '%s': NaN at element %d", name,
             91);
    ck_assert_uint_lt(strlen(err.message), sizeof(err.message));
    ck_assert_msg(strstr(err.message, "NaN at element 91") != NULL,
                  "the end is lost: ...%s",
                  err.message + strlen(err.message) - 20);
}
END_TEST

/* ---- Reading ---- */

static struct lmq_input *
open_input(const char *path)
{
    struct lmq_input *input;
    struct lmq_error err;

    ck_assert_msg(lmq_input_open(path, &input, &err) == LMQ_OK, "%s",
                  err.message);
    return input;
}

START_TEST(reads_are_exact_or_refused)
{
    const char *path = in_folder("ten");
    unsigned char buffer[16];
    struct lmq_error err;

    write_file(path, "0123456789", 10);
    struct lmq_input *input = open_input(path);
    ck_assert_uint_eq(lmq_input_size(input), 10);
    ck_assert_str_eq(lmq_input_path(input), path);
    ck_assert_int_eq(lmq_input_read(input, 3, buffer, 7, &err), LMQ_OK);
    ck_assert_mem_eq(buffer, "3456789", 7);
    ck_assert_int_eq(lmq_input_read(input, 10, buffer, 0, &err), LMQ_OK);
    ck_assert_int_eq(lmq_input_read(input, 3, buffer, 8, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_str_eq(err.message, "ends at byte 10, but 8 bytes are expected "
                                  "at offset 3");
    ck_assert_str_eq(err.path, path);
    ck_assert_int_eq(lmq_input_read(input, 11, buffer, 0, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_input_read(input, UINT64_MAX, buffer, 2, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_input_read(input, 1, buffer, SIZE_MAX, &err),
                     LMQ_ERR_FORMAT);
    lmq_input_close(input);
}
END_TEST

START_TEST(a_file_that_shrinks_is_an_error_and_no_crash)
{
    const char *path = in_folder("shrinks");
    unsigned char buffer[100];
    struct lmq_error err;

    memset(buffer, 'x', sizeof(buffer));
    write_file(path, buffer, sizeof(buffer));
    struct lmq_input *input = open_input(path);
    ck_assert_int_eq(truncate(path, 50), 0);
    ck_assert_int_eq(lmq_input_read(input, 0, buffer, 50, &err), LMQ_OK);
    ck_assert_int_eq(lmq_input_read(input, 0, buffer, 100, &err), LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "became shorter"));
    lmq_input_close(input);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
    const char *fifo = in_folder("fifo");
    struct lmq_input *input;
    struct lmq_error err;

    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(lmq_input_open(fifo, &input, &err), LMQ_ERR_IO);
    ck_assert_str_eq(err.message, "is not a regular file");
    ck_assert_ptr_null(input);
    ck_assert_int_eq(lmq_input_open("/dev/zero", &input, &err), LMQ_ERR_IO);
    ck_assert_int_eq(lmq_input_open(in_folder("none"), &input, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "No such file"));
    lmq_input_close(NULL);
}
END_TEST

START_TEST(a_small_file_is_loaded_whole_and_a_large_one_refused)
{
    const char *path = in_folder("small");
    unsigned char *bytes;
    size_t n;
    struct lmq_error err;

    write_file(path, "abc", 3);
    ck_assert_int_eq(lmq_file_load(path, 3, &bytes, &n, &err), LMQ_OK);
    ck_assert_uint_eq(n, 3);
    ck_assert_mem_eq(bytes, "abc", 4);
    free(bytes);
    ck_assert_int_eq(lmq_file_load(path, 2, &bytes, &n, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_null(bytes);
    write_file(path, "", 0);
    ck_assert_int_eq(lmq_file_load(path, 2, &bytes, &n, &err), LMQ_OK);
    ck_assert_uint_eq(n, 0);
    free(bytes);
}
END_TEST

/* ---- Digests ---- */

static uint32_t
digest(struct lmq_input *input)
{
    uint32_t crc;
    struct lmq_error err;

    ck_assert_msg(lmq_input_digest(input, &crc, &err) == LMQ_OK, "%s",
                  err.message);
    return crc;
}

START_TEST(the_digest_is_that_of_the_file_whatever_was_read)
{
    enum { SIZE = 3000000 };
    struct random random = {random_seed()};
    const char *path = in_folder("digest");
    unsigned char *bytes = malloc(SIZE), *buffer = malloc(SIZE);
    struct lmq_error err;

    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)random_u64(&random);
    write_file(path, bytes, SIZE);
    uint32_t wanted = (uint32_t)crc32(0, bytes, SIZE);
    struct lmq_input *input = open_input(path);
    ck_assert_uint_eq(digest(input), wanted);
    lmq_input_keep_digests(input);
    ck_assert_uint_eq(digest(input), wanted);
    for (int i = 0; i < 50; i++) { /* gaps, overlaps, repetitions, nothing */
        size_t at = random_below(&random, SIZE);
        size_t n = random_below(&random, SIZE - at) >>
                   random_below(&random, 20);
        ck_assert_int_eq(lmq_input_read(input, at, buffer, n, &err), LMQ_OK);
        ck_assert_uint_eq(digest(input), wanted);
    }
    ck_assert_int_eq(lmq_input_read(input, 0, buffer, SIZE, &err), LMQ_OK);
    ck_assert_uint_eq(digest(input), wanted);
    lmq_input_close(input);
    write_file(path, "", 0);
    input = open_input(path);
    ck_assert_uint_eq(digest(input), 0);
    lmq_input_close(input);
    free(bytes);
    free(buffer);
}
END_TEST

/* ---- Files of more than 32 bits ---- */

START_TEST(a_file_of_5_gigabytes_is_read_and_perhaps_mapped)
{
    const uint64_t end = UINT64_C(5) << 30;
    const char *path = in_folder("large");
    const unsigned char *map;
    unsigned char last[4];
    struct lmq_error err;

    write_file(path, "", 0);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "last", 4, (off_t)(end - 4)), 4); /* a hole */
    close(fd);
    struct lmq_input *input = open_input(path);
    ck_assert_uint_eq(lmq_input_size(input), end);
    ck_assert_int_eq(lmq_input_read(input, end - 4, last, 4, &err), LMQ_OK);
    ck_assert_mem_eq(last, "last", 4);
    enum lmq_status status = lmq_input_map(input, &map, &err);
    if (sizeof(void *) < 8) {
        ck_assert_int_eq(status, LMQ_ERR_IO);
        ck_assert_ptr_nonnull(
            strstr(err.message, "is 5368709120 bytes, more than a program of "
                                "32 bits can map"));
    } else {
        ck_assert_int_eq(status, LMQ_OK);
        ck_assert_mem_eq(map + (size_t)(end - 4), "last", 4);
    }
    lmq_input_close(input);
    remove(path);
}
END_TEST

/* ---- Writing ---- */

static struct lmq_output *
create(const char *path, uint64_t size, bool replace)
{
    struct lmq_output *output;
    struct lmq_error err;

    ck_assert_msg(lmq_output_create(path, size, replace, NULL, &output, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    return output;
}

static void
assert_contents(const char *path, const char *text)
{
    size_t n;
    unsigned char *bytes = read_file(path, &n);

    ck_assert_uint_eq(n, strlen(text));
    ck_assert_mem_eq(bytes, text, n);
    free(bytes);
}

START_TEST(an_output_appears_at_commit_and_not_before)
{
    const char *path = in_folder("new");
    struct lmq_error err;
    struct lmq_output *output = create(path, 6, false);

    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(lmq_output_write(output, 3, "def", 3, &err), LMQ_OK);
    ck_assert_int_eq(lmq_output_write(output, 0, "abc", 3, &err), LMQ_OK);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    assert_contents(path, "abcdef");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(an_aborted_output_leaves_nothing)
{
    struct lmq_error err;
    struct lmq_output *output = create(in_folder("new"), 0, true);

    ck_assert_int_eq(lmq_output_write(output, 0, "abc", 3, &err), LMQ_OK);
    lmq_output_abort(output);
    ck_assert_uint_eq(files_in_folder(), 0);
    lmq_output_abort(NULL);
}
END_TEST

START_TEST(an_existing_output_is_kept_unless_it_is_to_be_replaced)
{
    const char *path = in_folder("old");
    struct lmq_output *output;
    struct lmq_error err;

    write_file(path, "old", 3);
    ck_assert_int_eq(lmq_output_create(path, 0, false, NULL, &output, &err),
                     LMQ_ERR_IO);
    ck_assert_str_eq(err.message, "exists already");
    ck_assert_str_ne(err.hint, "");
    assert_contents(path, "old");

    output = create(path, 3, true);
    ck_assert_int_eq(lmq_output_write(output, 0, "new", 3, &err), LMQ_OK);
    assert_contents(path, "old");
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    assert_contents(path, "new");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(a_file_that_appears_during_the_work_is_kept)
{
    const char *path = in_folder("race");
    struct lmq_error err;
    struct lmq_output *output = create(path, 3, false);

    ck_assert_int_eq(lmq_output_write(output, 0, "new", 3, &err), LMQ_OK);
    write_file(path, "other", 5);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_ERR_IO);
    assert_contents(path, "other");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(a_symbolic_link_stays_one_and_its_target_is_replaced)
{
    const char *target = in_folder("target"), *link = in_folder("link");
    struct stat info;
    struct lmq_error err;

    write_file(target, "old", 3);
    ck_assert_int_eq(symlink(target, link), 0);
    struct lmq_output *output = create(link, 3, true);
    ck_assert_int_eq(lmq_output_write(output, 0, "new", 3, &err), LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    assert_contents(target, "new");
}
END_TEST

START_TEST(an_output_follows_the_umask)
{
    const char *path = in_folder("mode");
    struct stat info;
    struct lmq_error err;

    umask(027);
    struct lmq_output *output = create(path, 0, false);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
}
END_TEST

START_TEST(what_is_replaced_gives_its_mode)
{
    const char *path = in_folder("mode");
    struct stat info;
    struct lmq_error err;

    write_file(path, "old", 3);
    ck_assert_int_eq(chmod(path, 0604), 0);
    struct lmq_output *output = create(path, 0, true);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0604);
    ck_assert_int_eq(info.st_size, 0);
}
END_TEST

START_TEST(what_is_read_is_never_replaced)
{
    const char *source = in_folder("source"), *link = in_folder("link");
    struct lmq_originals originals = {0}, more = {0};
    struct lmq_output *output;
    struct lmq_error err;

    write_file(source, "old", 3);
    ck_assert_int_eq(symlink("source", link), 0);
    ck_assert_int_eq(lmq_originals_add(&more, link, true, &err), LMQ_OK);
    ck_assert_int_eq(lmq_originals_add(&more, in_folder("no"), false, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_originals_add_all(&originals, &more, &err), LMQ_OK);
    ck_assert_uint_eq(originals.n, 1);
    ck_assert_int_eq(lmq_output_create(source, 0, true, &originals, &output,
                                       &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "destroy its source"));
    ck_assert_int_eq(lmq_output_remove(link, &originals, &output, &err),
                     LMQ_ERR_ARG);
    ck_assert_int_eq(lmq_output_check(in_folder("new"), true, &originals,
                                      &err),
                     LMQ_OK);
    lmq_originals_free(&originals);
    lmq_originals_free(&more);
    ck_assert_uint_eq(files_in_folder(), 2);
}
END_TEST

START_TEST(what_was_read_must_stay_as_it_was)
{
    const char *part = in_folder("part"), *source = in_folder("source");
    struct lmq_originals originals = {0};
    struct lmq_error err;

    write_file(part, "old", 3);
    write_file(source, "old", 3);
    ck_assert_int_eq(lmq_originals_add(&originals, part, false, &err), LMQ_OK);
    ck_assert_int_eq(lmq_originals_add(&originals, source, true, &err), LMQ_OK);
    ck_assert_int_eq(
        lmq_originals_add(&originals, in_folder("no"), true, &err),
        LMQ_ERR_IO);
    write_file(part, "newer", 5);
    ck_assert_int_eq(lmq_originals_unchanged(&originals, &err), LMQ_OK);
    write_file(source, "newer", 5);
    ck_assert_int_eq(lmq_originals_unchanged(&originals, &err), LMQ_ERR_IO);
    ck_assert_str_eq(err.path, source);
    lmq_originals_free(&originals);
    /* Read after all, under whatever name. */
    ck_assert_int_eq(lmq_originals_add(&originals, part, false, &err), LMQ_OK);
    ck_assert_int_eq(lmq_originals_add(&originals, part, true, &err), LMQ_OK);
    ck_assert_uint_eq(originals.n, 1);
    write_file(part, "old", 3);
    ck_assert_int_eq(lmq_originals_unchanged(&originals, &err), LMQ_ERR_IO);
    lmq_originals_free(&originals);
}
END_TEST

/* Removes "gone", replaces "old", makes "new" and "last". */
static void
make_set(struct lmq_output *set[4])
{
    struct lmq_error err;

    write_file(in_folder("gone"), "gone", 4);
    write_file(in_folder("old"), "old", 3);
    ck_assert_int_eq(lmq_output_remove(in_folder("gone"), NULL, &set[0], &err),
                     LMQ_OK);
    set[1] = create(in_folder("old"), 1, true);
    set[2] = create(in_folder("new"), 1, true);
    set[3] = create(in_folder("last"), 1, false);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(lmq_output_write(set[i], 0, "x", 1, &err), LMQ_OK);
}

START_TEST(a_set_of_outputs_is_there_whole)
{
    struct lmq_output *set[4];
    struct lmq_error err;

    make_set(set);
    ck_assert_uint_eq(files_in_folder(), 2);
    ck_assert_int_eq(lmq_output_commit_all(set, 4, &err), LMQ_OK);
    assert_contents(in_folder("old"), "x");
    assert_contents(in_folder("new"), "x");
    assert_contents(in_folder("last"), "x");
    ck_assert_uint_eq(files_in_folder(), 3);
}
END_TEST

START_TEST(or_all_is_as_it_was_before)
{
    struct lmq_output *set[4];
    struct lmq_error err;

    /* A link to nothing is no file, but stands in the way of the last. */
    make_set(set);
    ck_assert_int_eq(symlink("nothing", in_folder("last")), 0);
    ck_assert_int_eq(lmq_output_commit_all(set, 4, &err), LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.path, "last"));
    assert_contents(in_folder("gone"), "gone");
    assert_contents(in_folder("old"), "old");
    ck_assert_uint_eq(files_in_folder(), 3);
}
END_TEST

START_TEST(an_output_that_cannot_be_is_refused_at_once)
{
    const char *folder = in_folder("folder");
    struct lmq_output *output;
    struct lmq_error err;

    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(lmq_output_create(folder, 0, true, NULL, &output, &err),
                     LMQ_ERR_IO);
    ck_assert_str_eq(err.message, "is a folder, expected a file");
    ck_assert_int_eq(lmq_output_create(in_folder("no/where"), 0, true, NULL,
                                       &output, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_null(output);
    /* More than any disk has. */
    ck_assert_int_eq(lmq_output_create(in_folder("huge"), (uint64_t)1 << 60,
                                       false, NULL, &output, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "needs 1152921504606846976"));
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

/* ---- The machine ---- */

START_TEST(the_instruction_set_is_one_that_the_machine_has)
{
    ck_assert(lmq_cpu_has(LMQ_CPU_C));
    ck_assert(lmq_cpu_has(lmq_cpu()));
    ck_assert_str_eq(lmq_cpu_name(lmq_cpu()), lmq_instruction_set());
    ck_assert_str_eq(lmq_version(), PACKAGE_VERSION);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        sizes_that_wrap_are_refused,
        numbers_come_back_from_their_bytes,
        utf8_is_told_from_what_only_looks_like_it,
        every_character_comes_back_from_its_bytes,
        a_buffer_grows_and_says_what_it_holds,
        what_does_not_fit_into_a_buffer_stays_known,
        numbers_are_aligned_and_zero,
        growing_keeps_what_is_there_and_refuses_to_wrap,
        text_of_strangers_becomes_harmless,
        printable_text_is_cut_between_characters,
        an_error_says_what_and_where_once,
        a_long_name_does_not_push_the_numbers_out_of_a_message,
        reads_are_exact_or_refused,
        a_file_that_shrinks_is_an_error_and_no_crash,
        only_regular_files_are_opened,
        a_small_file_is_loaded_whole_and_a_large_one_refused,
        the_digest_is_that_of_the_file_whatever_was_read,
        a_file_of_5_gigabytes_is_read_and_perhaps_mapped,
        an_output_appears_at_commit_and_not_before,
        an_aborted_output_leaves_nothing,
        an_existing_output_is_kept_unless_it_is_to_be_replaced,
        a_file_that_appears_during_the_work_is_kept,
        a_symbolic_link_stays_one_and_its_target_is_replaced,
        an_output_follows_the_umask,
        what_is_replaced_gives_its_mode,
        what_is_read_is_never_replaced,
        what_was_read_must_stay_as_it_was,
        a_set_of_outputs_is_there_whole,
        or_all_is_as_it_was_before,
        an_output_that_cannot_be_is_refused_at_once,
        the_instruction_set_is_one_that_the_machine_has,
    };

    return RUN_SUITE("base", tests);
}
