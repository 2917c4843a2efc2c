/*
 * test_base.c - sizes, bytes, memory, errors.
 */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/exact_sum.h"
#include "base/mem.h"
#include "base/notes.h"
#include "base/size.h"
#include "base/text/buffer.h"
#include "base/text/utf8.h"
#include "base/threads/cpu.h"
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

/* zlib's, wherever they stand and however they are cut. */
START_TEST(checksums_are_those_of_zlib)
{
    unsigned char bytes[3000];
    uint32_t state = 1;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
    for (size_t n = 0; n < sizeof(bytes) - 3; n++) {
        const unsigned char *p = bytes + n % 3;
        uint32_t whole = lmq_crc32(0, p, n);
        ck_assert_uint_eq(whole, (uint32_t)crc32(0, p, (uInt)n));
        ck_assert_uint_eq(lmq_crc32(lmq_crc32(0, p, n / 3), p + n / 3,
                                    n - n / 3),
                          whole);
    }
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

/* A large one has pages of its own, and goes on growing. */
START_TEST(what_is_reserved_is_there_and_grows)
{
    static const size_t sizes[] = {0, 10, ((size_t)1 << 20) + 3};

    for (size_t i = 0; i < 3; i++) {
        uint32_t *array = NULL;
        size_t capacity = 0, n = sizes[i];
        ck_assert_int_eq(
            lmq_mem_reserve(&array, &capacity, n, sizeof(*array)), 0);
        ck_assert_uint_ge(capacity, n);
        for (size_t j = 0; j < n; j++)
            array[j] = (uint32_t)j;
        n = capacity + 1;
        ck_assert_int_eq(lmq_mem_grow(&array, &capacity, n, sizeof(*array)),
                         0);
        for (size_t j = 0; j < sizes[i]; j++)
            ck_assert_uint_eq(array[j], j);
        array[n - 1] = 1;
        free(array);
    }
    uint32_t *none = NULL;
    size_t capacity = 0;
    ck_assert_int_eq(
        lmq_mem_reserve(&none, &capacity, SIZE_MAX / 2, sizeof(*none)), -1);
    ck_assert_int_eq(lmq_mem_reserve(&none, &capacity, SIZE_MAX / 8, 4), -1);
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(capacity, 0);
}
END_TEST

/* ---- Errors ---- */

START_TEST(hostile_text_becomes_harmless)
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
        /* From right to left; the end of a line. */
        {"a\xe2\x80\xae" "b", "a\\xe2\\x80\\xae" "b"},
        {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
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
    char deep[400];
    memset(deep, 'd', sizeof(deep));
    strcpy(deep + sizeof(deep) - 6, "/name");
    lmq_fail(&err, LMQ_ERR_FORMAT, 42, "x");
    lmq_error_in(&err, deep);
    ck_assert_ptr_nonnull(strstr(err.path, "d...d"));
    ck_assert_ptr_nonnull(strstr(err.path, "d/name"));
    static const char *const parts[][3] = {
        {NULL, "a/model", "a/model"},
        {"x.json", "a/model", "a/model: x.json"},
        {"x.json", "a/x.json", "a/x.json"},
        {"x.json", "x.json", "x.json"},
        {"x\x1b.json", "a/x\x1b.json", "a/x\\x1b.json"},
        {"b/x.json", "a/model", "b/x.json"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        lmq_fail(&err, LMQ_ERR_FORMAT, 42, "x");
        if (parts[i][0] != NULL)
            lmq_error_in(&err, parts[i][0]);
        lmq_error_around(&err, parts[i][1]);
        ck_assert_str_eq(err.path, parts[i][2]);
    }
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

/* ---- Sums ---- */

/* What a sum is when nothing is lost: these cancel but for the last. */
START_TEST(a_sum_loses_nothing_whatever_the_order)
{
    static const double terms[] = {
        0x1p1000,   1,     -0x1p-1074, 0x1.fffffffffffffp1023, 3e-310, -1,
        -0x1p1000, 1e300, -3e-310,    -0x1.fffffffffffffp1023, -1e300,
    };
    enum { N = sizeof(terms) / sizeof(terms[0]) };
    struct random random = {5};

    for (int round = 0; round < 200; round++) {
        struct lmq_exact_sum sum = {0}, halves[2] = {{{0}, 0, 0}};
        double left[N];
        memcpy(left, terms, sizeof(left));
        for (size_t n = N; n > 0; n--) {
            size_t i = random_below(&random, n);
            lmq_exact_add(&sum, left[i]);
            lmq_exact_add(&halves[random_below(&random, 2)], left[i]);
            left[i] = left[n - 1];
        }
        lmq_exact_merge(&halves[0], &halves[1]);
        ck_assert(lmq_exact_round(&sum) == -0x1p-1074);
        ck_assert(lmq_exact_round(&halves[0]) == -0x1p-1074);
    }
}
END_TEST

START_TEST(a_sum_goes_through_a_text)
{
    static const char *const bad[] = {
        "", "-", "@0", "1", "1@", "1@67", "1@-1", "1@999", "x@0", "1G@3",
        "1@66", "80000000@66",
        "1@ 1", "111111111@66", "-@4", "A@1", "1@1@1", "NaN", "+1@0", "00"};
    struct random random = {9};
    char text[LMQ_EXACT_TEXT], again[LMQ_EXACT_TEXT];
    struct lmq_exact_sum sum = {0}, read;

    for (int round = 0; round < 2000; round++) {
        double x = ldexp((double)random_below(&random, 1u << 30) - (1 << 29),
                         (int)random_below(&random, 2000) - 1050);
        if (round % 17 == 0)
            sum = (struct lmq_exact_sum){0};
        lmq_exact_print(&sum, text);
        ck_assert(lmq_exact_parse(text, &read));
        lmq_exact_print(&read, again);
        ck_assert_str_eq(text, again);
        lmq_exact_add(&sum, x);
        lmq_exact_add(&read, x);
        ck_assert(lmq_exact_round(&sum) == lmq_exact_round(&read));
    }
    sum = (struct lmq_exact_sum){0};
    lmq_exact_print(&sum, text);
    ck_assert_str_eq(text, "0");
    lmq_exact_add(&sum, -0x1p-1074);
    lmq_exact_print(&sum, text);
    ck_assert_str_eq(text, "-1@0");
    lmq_exact_add(&sum, (double)INFINITY);
    lmq_exact_print(&sum, text);
    ck_assert_str_eq(text, "inf");
    ck_assert(lmq_exact_parse(text, &read));
    ck_assert(isinf(lmq_exact_round(&read)));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!lmq_exact_parse(bad[i], &read), "'%s'", bad[i]);
}
END_TEST

START_TEST(a_sum_is_rounded_once)
{
    struct lmq_exact_sum sum = {0};

    ck_assert(lmq_exact_round(&sum) == 0);
    for (int i = 0; i < 3; i++)
        lmq_exact_add(&sum, 0.1);
    ck_assert(lmq_exact_round(&sum) == 0x1.3333333333334p-2);
    /* Halfway between 1 and the next: to even; a hair more: up. */
    sum = (struct lmq_exact_sum){0};
    lmq_exact_add(&sum, 1);
    lmq_exact_add(&sum, 0x1p-53);
    ck_assert(lmq_exact_round(&sum) == 1);
    lmq_exact_add(&sum, 0x1p-1074);
    ck_assert(lmq_exact_round(&sum) == 1 + 0x1p-52);
    lmq_exact_add(&sum, -0x1p-1074);
    lmq_exact_add(&sum, 0x1p-52);
    ck_assert(lmq_exact_round(&sum) == 1 + 0x1p-51);
    for (int i = 0; i < 4; i++)
        lmq_exact_add(&sum, 0x1.fffffffffffffp1023);
    ck_assert(isinf(lmq_exact_round(&sum)));
    lmq_exact_add(&sum, (double)-INFINITY);
    ck_assert(lmq_exact_round(&sum) < 0);
}
END_TEST

/* The program around the library may have called setlocale(). */
START_TEST(numbers_in_texts_have_a_point_everywhere)
{
    struct lmq_notes notes = {0};
    struct lmq_buffer buffer = {0};
    struct lmq_error err;

    if (!choose_decimal_comma())
        return;
    lmq_fail(&err, LMQ_ERR_ARG, 0, "%g is too much", 1.5);
    lmq_hint(&err, "below %.1f", 1.25);
    lmq_notes_add(&notes, "%g of them", 0.5);
    ck_assert_int_eq(lmq_buffer_print(&buffer, "%g", 2.5), 0);
    setlocale(LC_ALL, "C");
    ck_assert_str_eq(err.message, "1.5 is too much");
    ck_assert_str_eq(err.hint, "below 1.2");
    ck_assert_str_eq(notes.texts[0], "0.5 of them");
    char *text = lmq_buffer_text(&buffer);
    ck_assert_str_eq(text, "2.5");
    free(text);
    lmq_notes_free(&notes);
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

/* Linux gives tile registers to no process that could not save them. */
START_TEST(a_small_stack_for_signals_is_respected)
{
    static char memory[8192];
    const stack_t small = {.ss_sp = memory, .ss_size = sizeof(memory)};
    const char *forks = getenv("CK_FORK");
    stack_t before;

    if (forks != NULL && strcmp(forks, "no") == 0)
        return; /* another test may have asked before */
    ck_assert_int_eq(sigaltstack(&small, &before), 0);
    ck_assert(lmq_cpu() != LMQ_CPU_AMX);
    ck_assert(!lmq_cpu_has(LMQ_CPU_AMX));
    ck_assert(lmq_cpu_has(lmq_cpu()));
    /* Perhaps a sanitizer's. */
    ck_assert_int_eq(sigaltstack(&before, NULL), 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        sizes_that_wrap_are_refused,
        numbers_come_back_from_their_bytes,
        checksums_are_those_of_zlib,
        utf8_is_told_from_what_only_looks_like_it,
        every_character_comes_back_from_its_bytes,
        a_buffer_grows_and_says_what_it_holds,
        what_does_not_fit_into_a_buffer_stays_known,
        numbers_are_aligned_and_zero,
        growing_keeps_what_is_there_and_refuses_to_wrap,
        what_is_reserved_is_there_and_grows,
        hostile_text_becomes_harmless,
        printable_text_is_cut_between_characters,
        an_error_says_what_and_where_once,
        a_long_name_does_not_push_the_numbers_out_of_a_message,
        a_sum_loses_nothing_whatever_the_order,
        a_sum_goes_through_a_text, a_sum_is_rounded_once,
        numbers_in_texts_have_a_point_everywhere,
        the_instruction_set_is_one_that_the_machine_has,
        a_small_stack_for_signals_is_respected,
    };

    return RUN_SUITE("base", tests);
}
