/*
 * test_pickle.c - what torch.save's files are made of: pickles and zip
 * archives, good and bad.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/torch/pickle.h"
#include "formats/torch/zip.h"
#include "tests/build/build_torch.h"
#include "tests/build/suite.h"

/* ---- Pickles ---- */

/* Without the 0 that ends a literal. */
#define PARSE(text, pickle) parse(text, sizeof(text) - 1, pickle)

static const struct lmq_pickle_value *
parse(const char *text, size_t n, struct lmq_pickle **pickle)
{
    struct lmq_error err;

    ck_assert_msg(lmq_pickle_parse((const unsigned char *)text, n, pickle,
                                   &err) == LMQ_OK,
                  "%s", err.message);
    return lmq_pickle_root(*pickle);
}

#define P2 "\x80\x02"

static const struct {
    const char *text;
    size_t n;
    int64_t value;
} integers[] = {
#define I(text, value) {P2 text ".", sizeof(P2 text "."), value}
    I("K\xff", 255),
    I("M\xff\xff", 65535),
    I("J\xff\xff\xff\xff", -1),
    I("J\xff\xff\xff\x7f", INT32_MAX),
    I("\x8a\0", 0),
    I("\x8a\1\x80", -128),
    I("\x8a\2\x80\0", 128),
    I("\x8a\x8\0\0\0\0\0\0\0\x80", INT64_MIN),
    I("\x8b\1\0\0\0\5", 5),
};

START_TEST(integers_are_read)
{
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        struct lmq_pickle *pickle;
        const struct lmq_pickle_value *value =
            parse(integers[i].text, integers[i].n - 1, &pickle);
        ck_assert(lmq_pickle_is(value, LMQ_PICKLE_INT));
        ck_assert_int_eq(value->is.integer, integers[i].value);
        lmq_pickle_free(pickle);
    }
}
END_TEST

START_TEST(other_values_are_read)
{
    struct lmq_pickle *pickle;
    const struct lmq_pickle_value *value =
        PARSE(P2 "G\x3f\xf8\0\0\0\0\0\0.", &pickle);

    ck_assert(lmq_pickle_is(value, LMQ_PICKLE_REAL));
    ck_assert_double_eq(value->is.real, 1.5);
    lmq_pickle_free(pickle);
    value = PARSE(P2 "\x8a\x09\0\0\0\0\0\0\0\0\1.", &pickle);
    ck_assert(lmq_pickle_is(value, LMQ_PICKLE_BIG));
    lmq_pickle_free(pickle);
    value = PARSE("\x80\x04\x95\5\0\0\0\0\0\0\0\x8c\2hi.", &pickle);
    ck_assert(lmq_pickle_says(value, "hi"));
    ck_assert(!lmq_pickle_says(value, "h"));
    lmq_pickle_free(pickle);
}
END_TEST

/* ((1, 2), [3], {"a": True}), with the memo of either protocol. */
START_TEST(containers_keep_their_items)
{
    for (int i = 0; i < 2; i++) {
        struct lmq_pickle *pickle;
        const struct lmq_pickle_value *v =
            i == 0 ? PARSE(P2 "(K\1K\2\x86q\0]q\1K\3a}q\2X\1\0\0\0aq\3"
                              "\x88st.",
                           &pickle)
                   : PARSE("\x80\x04(K\1K\2\x86\x94]\x94(K\3e}\x94(\x8c\1"
                           "a\x94\x88ut\x94.",
                           &pickle);
        ck_assert_uint_eq(v->n_items, 3);
        const struct lmq_pickle_value *inner = lmq_pickle_item(pickle, v, 0);
        ck_assert_int_eq(lmq_pickle_item(pickle, inner, 1)->is.integer, 2);
        inner = lmq_pickle_item(pickle, v, 1);
        ck_assert(lmq_pickle_is(inner, LMQ_PICKLE_LIST));
        ck_assert_int_eq(lmq_pickle_item(pickle, inner, 0)->is.integer, 3);
        inner = lmq_pickle_item(pickle, v, 2);
        ck_assert_int_eq(lmq_pickle_get(pickle, inner, "a")->is.integer, 1);
        ck_assert_ptr_null(lmq_pickle_get(pickle, inner, "b"));
        ck_assert_ptr_null(lmq_pickle_item(pickle, v, 3));
        lmq_pickle_free(pickle);
    }
}
END_TEST

START_TEST(a_list_may_contain_itself)
{
    struct lmq_pickle *pickle;
    const struct lmq_pickle_value *v =
        PARSE(P2 "]q\0h\0h\0h\0\x87q\1ah\1a.", &pickle);

    ck_assert_uint_eq(v->n_items, 2);
    const struct lmq_pickle_value *tuple = lmq_pickle_item(pickle, v, 1);
    ck_assert_ptr_eq(lmq_pickle_item(pickle, tuple, 2), v);
    lmq_pickle_free(pickle);
}
END_TEST

START_TEST(calls_become_values)
{
    struct lmq_pickle *pickle;
    const struct lmq_pickle_value *v =
        PARSE(P2 "ccollections\nOrderedDict\n)Rq\0X\1\0\0\0a"
                 "ctorch\nSize\n)\x85Rs}b.",
              &pickle);

    ck_assert(lmq_pickle_is(v, LMQ_PICKLE_DICT));
    v = lmq_pickle_get(pickle, v, "a");
    ck_assert(lmq_pickle_is(v, LMQ_PICKLE_OBJECT));
    ck_assert_str_eq(lmq_pickle_global(v)->name, "Size");
    ck_assert_uint_eq(lmq_pickle_arguments(pickle, v)->n_items, 1);
    lmq_pickle_free(pickle);
}
END_TEST

static const struct {
    const char *text;
    size_t n;
    enum lmq_status status;
    const char *says;
} wrong_pickles[] = {
#define W(text, status, says) {text, sizeof(text) - 1, status, says}
#define BAD LMQ_ERR_FORMAT
#define NOT LMQ_ERR_UNSUPPORTED
    W("", BAD, "is no pickle"),
    W(".", BAD, "is no pickle"),
    W("(lp0\n.", BAD, "is no pickle"),
    W(P2, BAD, "without STOP"),
    W(P2 ".", BAD, "leaves values"),
    W(P2 "NN.", BAD, "leaves values"),
    W(P2 "N(.", BAD, "leaves values"),
    W(P2 "N.N", BAD, "is not the end"),
    W("\x80\x01N.", NOT, "protocol 1"),
    W("\x80\x06N.", NOT, "protocol 6"),
    W(P2 "N0.", NOT, "opcode 0x30"),
    W(P2 "N2.", NOT, "opcode 0x32"),
    W(P2 "I1\n.", NOT, "opcode 0x49"),
    W(P2 "Pid\n.", NOT, "opcode 0x50"),
    W(P2 "(cos\nsystem\nX\2\0\0\0lsR.", NOT, "'os.system'"),
    W(P2 "(X\2\0\0\0lsios\nsystem\n.", NOT, "opcode 0x69"),
    W("\x80\x04\x8c\2os\x8c\6system\x93)R.", NOT, "'os.system'"),
    W("\x80\x04\x8c\x08" "builtins\x8c\4eval\x93)R.", NOT, "'builtins.eval'"),
    W(P2 "c__builtin__\neval\n.", NOT, "'__builtin__.eval'"),
    W(P2 "ccollections\n", BAD, "goes beyond the end"),
    W(P2 "ccollections", BAD, "goes beyond the end"),
    W("\x80\x04K\1\x8c\1a\x93.", BAD, "no two texts"),
    W(P2 "N)R.", BAD, "calls what is no global"),
    W(P2 "ctorch\nSize\nNR.", BAD, "has no arguments"),
    W(P2 ")R.", BAD, "calls what is no global"),
    W(P2 "R.", BAD, "has no arguments"),
    W(P2 "NNb.", BAD, "has no object"),
    W(P2 "Nb.", BAD, "too few values"),
    W(P2 "NQ.", BAD, "has no tuple"),
    W(P2 "K", BAD, "goes beyond the end"),
    W(P2 "J\1\2\3", BAD, "goes beyond the end"),
    W(P2 "X\xff\xff\xff\xff" "a.", BAD, "goes beyond the end"),
    W("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff" "a.", BAD,
     "goes beyond the end"),
    W("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", BAD,
     "goes beyond the end"),
    W(P2 "\x8b\xff\xff\xff\xff.", BAD, "goes beyond the end"),
    W(P2 "X\2\0\0\0\xc3(.", BAD, "no UTF-8"),
    W(P2 "t.", BAD, "no mark"),
    W(P2 "\x86.", BAD, "too few values"),
    W(P2 "N(\x85.", BAD, "too few values"),
    W(P2 "]e.", BAD, "no mark"),
    W(P2 "a.", BAD, "too few values"),
    W(P2 "NNa.", BAD, "no list"),
    W(P2 "]NNs.", BAD, "no dictionary"),
    W(P2 "}(Nu.", BAD, "a key without a value"),
    W(P2 "](N)s.", BAD, "too few values"),
    W(P2 "h\0.", BAD, "never put"),
    W(P2 "Nq\1h\0.", BAD, "never put"),
    W(P2 "q\0.", BAD, "no value"),
    W(P2 "Nr\xff\xff\xff\xff.", BAD, "too large a number"),
    W(P2 "Nj\xff\xff\xff\xff.", BAD, "never put"),
};

START_TEST(wrong_pickles_are_refused)
{
    for (size_t i = 0; i < sizeof(wrong_pickles) / sizeof(wrong_pickles[0]);
         i++) {
        struct lmq_pickle *pickle;
        struct lmq_error err;
        enum lmq_status status = lmq_pickle_parse(
            (const unsigned char *)wrong_pickles[i].text, wrong_pickles[i].n,
            &pickle, &err);
        ck_assert_msg(status == wrong_pickles[i].status &&
                          strstr(err.message, wrong_pickles[i].says) != NULL,
                      "pickle %zu: %d, '%s', expected '%s'", i, (int)status,
                      err.message, wrong_pickles[i].says);
        ck_assert_ptr_null(pickle);
    }
}
END_TEST

/* The same opcode `n` times between a beginning and an end. */
static enum lmq_status
parse_many(const char *front, const char *what, size_t n, const char *back,
           struct lmq_error *err)
{
    struct bytes bytes = {0};
    struct lmq_pickle *pickle;

    put(&bytes, P2, 2);
    put_text(&bytes, front);
    for (size_t i = 0; i < n; i++)
        put_text(&bytes, what);
    put_text(&bytes, back);
    enum lmq_status status = lmq_pickle_parse(bytes.at, bytes.n, &pickle, err);
    lmq_pickle_free(pickle);
    bytes_free(&bytes);
    return status;
}

START_TEST(depth_and_number_have_limits)
{
    struct lmq_error err;

    ck_assert_int_eq(parse_many("(", "N", 100000, "t.", &err), LMQ_OK);
    ck_assert_int_eq(parse_many("", "(", 100000, "", &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "nested deeper than 256"));
    /* A tuple in a tuple in a ... needs no mark, and nobody walks down. */
    ck_assert_int_eq(parse_many(")", "\x85", 1000000, ".", &err), LMQ_OK);
    ck_assert_int_eq(parse_many("(", "N", (1 << 22) + 1, "t.", &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "more than 4194304 values"));
}
END_TEST

/* ---- Zip archives ---- */

/* Two members, one of them deflated. */
static void
put_archive(struct bytes *bytes, bool is_large)
{
    struct build_zip zip = {.is_large = is_large, .is_aligned = true};

    zip_add(&zip, "one", "111", 3);
    zip_add_deflated(&zip, "two", "2222222222222222222222222222222222", 34);
    zip_end(&zip, bytes);
}

static enum lmq_status
open_zip(const struct bytes *bytes, struct lmq_input **input,
         struct lmq_zip **zip, struct lmq_error *err)
{
    const char *path = in_folder("some.zip");

    save(bytes, path);
    ck_assert_int_eq(lmq_input_open(path, input, err), LMQ_OK);
    return lmq_zip_open(*input, zip, err);
}

START_TEST(members_are_found_and_inflated)
{
    for (int is_large = 0; is_large < 2; is_large++) {
        struct bytes bytes = {0};
        struct lmq_input *input;
        struct lmq_zip *zip;
        struct lmq_error err;
        unsigned char *text;
        put_archive(&bytes, is_large == 1);
        ck_assert_msg(open_zip(&bytes, &input, &zip, &err) == LMQ_OK, "%s",
                      err.message);
        ck_assert_uint_eq(zip->n_members, 2);
        const struct lmq_zip_member *one = lmq_zip_find(zip, "one");
        const struct lmq_zip_member *two = lmq_zip_find(zip, "two");
        ck_assert(one != NULL && two != NULL && two->is_deflated);
        ck_assert_uint_eq(one->offset % 64, 0);
        ck_assert_ptr_null(lmq_zip_find(zip, "three"));
        ck_assert_int_eq(lmq_zip_load(zip, one, 3, &text, &err), LMQ_OK);
        ck_assert_str_eq((char *)text, "111");
        free(text);
        ck_assert_int_eq(lmq_zip_load(zip, two, 100, &text, &err), LMQ_OK);
        ck_assert_uint_eq(strlen((char *)text), 34);
        free(text);
        ck_assert_int_eq(lmq_zip_load(zip, two, 33, &text, &err),
                         LMQ_ERR_UNSUPPORTED);
        ck_assert_ptr_null(text);
        lmq_zip_close(zip);
        lmq_input_close(input);
        bytes_free(&bytes);
    }
}
END_TEST

START_TEST(a_comment_is_allowed_and_nothing_behind_it)
{
    struct bytes bytes = {0};
    struct lmq_input *input;
    struct lmq_zip *zip;
    struct lmq_error err;

    put_archive(&bytes, false);
    bytes.at[bytes.n - 2] = 5;
    put_text(&bytes, "hello");
    ck_assert_int_eq(open_zip(&bytes, &input, &zip, &err), LMQ_OK);
    lmq_zip_close(zip);
    lmq_input_close(input);
    put_text(&bytes, "!");
    ck_assert_int_eq(open_zip(&bytes, &input, &zip, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "without an end"));
    lmq_input_close(input);
    bytes_free(&bytes);
}
END_TEST

/* From what a patch counts. */
enum base { FIRST, LOCAL_2, CENTRAL, CENTRAL_2, END, END64 };

static const struct {
    bool is_large;
    enum base base;
    size_t at;
    int size;
    uint64_t value;
    enum lmq_status status;
    const char *says;
} patches[] = {
    {false, FIRST, 0, 1, 'Q', BAD, "contradicts"},
    {false, FIRST, 6, 2, 1, BAD, "contradicts"},
    {false, FIRST, 8, 2, 8, BAD, "contradicts"},
    {false, FIRST, 14, 4, 1, BAD, "contradicts"},
    {false, FIRST, 18, 4, 2, BAD, "contradicts"},
    {false, FIRST, 22, 4, 4, BAD, "contradicts"},
    {false, FIRST, 26, 2, 4, BAD, "contradicts"},
    {false, FIRST, 28, 2, 0xffff, BAD, "contradicts"},
    {false, FIRST, 30, 1, 'x', BAD, "contradicts"},
    {false, CENTRAL, 0, 1, 'Q', BAD, "is damaged at its byte 0"},
    {false, CENTRAL, 8, 2, 1, NOT, "is encrypted"},
    {false, CENTRAL, 8, 2, 0x2000, NOT, "is encrypted"},
    {false, CENTRAL, 10, 2, 14, NOT, "by method 14"},
    {false, CENTRAL, 20, 4, 4, BAD, "cannot make 3 bytes of 4"},
    {false, CENTRAL, 24, 4, 4, BAD, "cannot make 4 bytes of 3"},
    {false, CENTRAL_2, 24, 4, 100000, BAD, "cannot make 100000"},
    {false, CENTRAL_2, 20, 4, 4000, BAD, "reaches into the central"},
    {false, CENTRAL_2, 20, 4, 0xfffffffe, BAD, "reaches into the central"},
    {false, CENTRAL, 28, 2, 0, BAD, "no proper name"},
    {false, CENTRAL, 28, 2, 0xffff, BAD, "ends within an entry"},
    {false, CENTRAL, 46, 1, 0, BAD, "no proper name"},
    {false, CENTRAL, 42, 4, 1, BAD, "contradicts"},
    {false, CENTRAL, 42, 4, 0xfffffffe, BAD, "reaches into the central"},
    {false, END, 4, 2, 1, NOT, "several parts"},
    {false, END, 8, 2, 1, NOT, "several parts"},
    {false, END, 10, 2, 3, NOT, "several parts"},
    {false, END, 8, 4, 0x00030003, BAD, "cannot have 3 members"},
    {false, END, 8, 4, 0x00010001, BAD, "goes on behind"},
    {false, END, 8, 4, 0xfffefffe, BAD, "cannot have 65534 members"},
    {false, END, 12, 4, 0xfffffff0, BAD, "does not end where it should"},
    {false, END, 12, 4, 1, BAD, "does not end where it should"},
    {false, END, 16, 4, 0, BAD, "does not end where it should"},
    {false, END, 20, 2, 1, BAD, "without an end"},
    {true, END, 10, 2, 5, NOT, "several parts"},
    {true, END, 8, 4, 0x00050005, BAD, "contradict each other"},
    {true, END, 16, 4, 7, BAD, "contradict each other"},
    {true, END64, 0, 1, 'Q', BAD, "no 64-bit end"},
    {true, END64, 4, 8, 45, BAD, "no 64-bit end"},
    {true, END64, 24, 8, 3, NOT, "several parts"},
    {true, END64, 32, 8, 3, NOT, "several parts"},
    {true, END64, 40, 8, UINT64_MAX, BAD, "does not end where it should"},
    {true, END64, 48, 8, UINT64_MAX, BAD, "does not end where it should"},
    {true, END64, 56 + 8, 8, UINT64_MAX, BAD, "where it cannot be"},
    {true, END64, 56 + 16, 4, 2, NOT, "several parts"},
    {true, CENTRAL, 49, 2, 2, BAD, "reaches into the central"},
    {true, CENTRAL, 51, 2, 7, BAD, "damaged extra field"},
    {true, CENTRAL, 51, 2, 99, BAD, "damaged extra field"},
    {true, CENTRAL, 53, 8, UINT64_MAX, BAD, "reaches into the central"},
};

static size_t
find(const struct bytes *bytes, uint32_t signature, size_t from)
{
    unsigned char wanted[4] = {
        (unsigned char)signature, (unsigned char)(signature >> 8),
        (unsigned char)(signature >> 16), (unsigned char)(signature >> 24)};

    while (from + 4 <= bytes->n && memcmp(bytes->at + from, wanted, 4) != 0)
        from++;
    return from;
}

START_TEST(damaged_archives_are_refused)
{
    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        struct bytes bytes = {0};
        struct lmq_input *input;
        struct lmq_zip *zip;
        struct lmq_error err;
        put_archive(&bytes, patches[i].is_large);
        size_t central = find(&bytes, 0x02014b50, 0);
        const size_t bases[] = {
            [FIRST] = 0,
            [LOCAL_2] = find(&bytes, 0x04034b50, 1),
            [CENTRAL] = central,
            [CENTRAL_2] = find(&bytes, 0x02014b50, central + 1),
            [END] = bytes.n - 22,
            [END64] = find(&bytes, 0x06064b50, 0),
        };
        unsigned char *p = bytes.at + bases[patches[i].base] + patches[i].at;
        for (int j = 0; j < patches[i].size; j++)
            p[j] = (unsigned char)(patches[i].value >> 8 * j);
        enum lmq_status status = open_zip(&bytes, &input, &zip, &err);
        ck_assert_msg(status == patches[i].status &&
                          strstr(err.message, patches[i].says) != NULL,
                      "patch %zu: %d, '%s', expected '%s'", i, (int)status,
                      status == LMQ_OK ? "" : err.message, patches[i].says);
        ck_assert_ptr_null(zip);
        lmq_input_close(input);
        bytes_free(&bytes);
    }
}
END_TEST

START_TEST(members_neither_overlap_nor_repeat)
{
    struct bytes bytes = {0};
    struct build_zip archive = {0};
    struct lmq_input *input;
    struct lmq_zip *zip;
    struct lmq_error err;

    zip_add(&archive, "one", "1", 1);
    zip_add(&archive, "one", "1", 1);
    zip_end(&archive, &bytes);
    ck_assert_int_eq(open_zip(&bytes, &input, &zip, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "two members 'one'"));
    lmq_input_close(input);
    /* Both entries name the first member. */
    size_t central = find(&bytes, 0x02014b50, 0);
    size_t second = find(&bytes, 0x02014b50, central + 1);
    memset(bytes.at + second + 42, 0, 4);
    ck_assert_int_eq(open_zip(&bytes, &input, &zip, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "overlap"));
    lmq_input_close(input);
    bytes_free(&bytes);
}
END_TEST

START_TEST(contents_have_checksums)
{
    struct bytes bytes = {0};
    struct lmq_input *input;
    struct lmq_zip *zip;
    struct lmq_error err;
    unsigned char *text;

    put_archive(&bytes, false);
    bytes.at[64] = '2';
    ck_assert_int_eq(open_zip(&bytes, &input, &zip, &err), LMQ_OK);
    ck_assert_int_eq(lmq_zip_load(zip, lmq_zip_find(zip, "one"), 9, &text,
                                  &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "checksum"));
    ck_assert_ptr_null(text);
    uint64_t at = lmq_zip_find(zip, "two")->offset;
    lmq_zip_close(zip);
    lmq_input_close(input);
    bytes.at[at] ^= 0xff;
    ck_assert_int_eq(open_zip(&bytes, &input, &zip, &err), LMQ_OK);
    ck_assert_int_eq(lmq_zip_load(zip, lmq_zip_find(zip, "two"), 99, &text,
                                  &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "does not inflate"));
    lmq_zip_close(zip);
    lmq_input_close(input);
    bytes_free(&bytes);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        integers_are_read,
        other_values_are_read,
        containers_keep_their_items,
        a_list_may_contain_itself,
        calls_become_values,
        wrong_pickles_are_refused,
        depth_and_number_have_limits,
        members_are_found_and_inflated,
        a_comment_is_allowed_and_nothing_behind_it,
        damaged_archives_are_refused,
        members_neither_overlap_nor_repeat,
        contents_have_checksums,
    };

    return RUN_SUITE("pickle", tests);
}
