/*
 * test_gguf_meta.c - the metadata part of GGUF, sound and hostile.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/gguf/gguf_meta.h"
#include "runtime/tokenizer/text/chars.h"
#include "tests/build/suite.h"

/* ---- Writing files ---- */

static void
put(struct lmq_buffer *b, const void *bytes, size_t n)
{
    ck_assert_int_eq(lmq_buffer_append(b, bytes, n), 0);
}

static void
put_u32(struct lmq_buffer *b, uint32_t value)
{
    ck_assert_int_eq(lmq_buffer_append_u32le(b, value), 0);
}

static void
put_u64(struct lmq_buffer *b, uint64_t value)
{
    ck_assert_int_eq(lmq_buffer_append_u64le(b, value), 0);
}

static void
put_text(struct lmq_buffer *b, const char *text)
{
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static void
put_header(struct lmq_buffer *b, uint32_t version, uint64_t n_tensors,
           uint64_t n_values)
{
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_values);
}

static void
put_key(struct lmq_buffer *b, const char *key, enum lmq_gguf_type type)
{
    put_text(b, key);
    put_u32(b, type);
}

static void
put_array(struct lmq_buffer *b, const char *key, enum lmq_gguf_type type,
          uint64_t count)
{
    put_key(b, key, LMQ_GGUF_ARRAY);
    put_u32(b, type);
    put_u64(b, count);
}

/* Two tokens, an alignment, a name and a number. */
static struct lmq_buffer
sound_file(void)
{
    struct lmq_buffer b = { 0 };

    put_header(&b, 3, 7, 5);
    put_key(&b, "general.architecture", LMQ_GGUF_STRING);
    put_text(&b, "llama");
    put_array(&b, "tokenizer.ggml.tokens", LMQ_GGUF_STRING, 2);
    put_text(&b, "one");
    put_text(&b, "");
    put_key(&b, "general.alignment", LMQ_GGUF_U32);
    put_u32(&b, 64);
    put_array(&b, "tokenizer.ggml.token_type", LMQ_GGUF_I32, 2);
    put_u32(&b, 1);
    put_u32(&b, UINT32_MAX);
    put_key(&b, "llama.epsilon", LMQ_GGUF_F32);
    put_u32(&b, 0x3f000000);
    return b;
}

/* Opens, expects this status, and closes. */
static void
expect(struct lmq_buffer *b, enum lmq_status expected)
{
    struct lmq_gguf_meta *meta;
    struct lmq_error err = { 0 };
    /* A copy of exactly the size, so that sanitizers see what goes beyond. */
    unsigned char *copy = malloc(b->n + 1);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, b->bytes, b->n);
    ck_assert_msg(lmq_gguf_meta_open(copy, b->n, &meta, NULL, &err) ==
                      expected,
                  "%s", err.message);
    ck_assert_ptr_eq(expected == LMQ_OK ? NULL : meta, NULL);
    lmq_gguf_meta_close(meta);
    free(copy);
    lmq_buffer_free(b);
}

/* ---- Sound ---- */

START_TEST(values_are_found_by_type)
{
    struct lmq_buffer b = sound_file();
    struct lmq_gguf_meta *meta;
    const struct lmq_gguf_value *array;
    const unsigned char *text = NULL;
    size_t n = 0;
    uint64_t number = 5;
    double real = 0;

    ck_assert_int_eq(lmq_gguf_meta_open(b.bytes, b.n, &meta, NULL, NULL),
                     LMQ_OK);
    ck_assert_uint_eq(meta->version, 3);
    ck_assert_uint_eq(meta->n_tensors, 7);
    ck_assert_uint_eq(meta->tensors_at, b.n);
    ck_assert_uint_eq(meta->alignment, 64);
    ck_assert_int_eq(lmq_gguf_get_text(meta, "general.architecture", &text,
                                       &n, NULL),
                     LMQ_OK);
    ck_assert_mem_eq(text, "llama", 5);
    ck_assert_int_eq(lmq_gguf_get_uint(meta, "absent", 9, &number, NULL),
                     LMQ_OK);
    ck_assert_uint_eq(number, 5);
    ck_assert_int_eq(lmq_gguf_get_number(meta, "llama.epsilon", &real, NULL),
                     LMQ_OK);
    ck_assert(real == 0.5);
    ck_assert_int_eq(lmq_gguf_get_array(meta, "tokenizer.ggml.token_type",
                                        LMQ_GGUF_I32, &array, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_gguf_item_int(array, 1), -1);
    lmq_gguf_meta_close(meta);
    lmq_buffer_free(&b);
}
END_TEST

START_TEST(values_of_another_kind_are_errors)
{
    struct lmq_buffer b = sound_file();
    struct lmq_gguf_meta *meta;
    const struct lmq_gguf_value *array;
    const unsigned char *text;
    size_t n;
    uint64_t number;
    double real;
    bool truth;

    ck_assert_int_eq(lmq_gguf_meta_open(b.bytes, b.n, &meta, NULL, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_gguf_get_uint(meta, "general.architecture", 9,
                                       &number, NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_gguf_get_uint(meta, "general.alignment", 63, &number,
                                       NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_gguf_get_text(meta, "llama.epsilon", &text, &n,
                                       NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_gguf_get_bool(meta, "general.alignment", &truth,
                                       NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_gguf_get_number(meta, "general.alignment", &real,
                                         NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_gguf_get_array(meta, "tokenizer.ggml.tokens",
                                        LMQ_GGUF_F32, &array, NULL),
                     LMQ_ERR_FORMAT);
    lmq_gguf_meta_close(meta);
    lmq_buffer_free(&b);
}
END_TEST

START_TEST(strings_of_an_array_come_in_order)
{
    struct lmq_buffer b = sound_file();
    struct lmq_gguf_meta *meta;
    const unsigned char *text;
    size_t n;

    ck_assert_int_eq(lmq_gguf_meta_open(b.bytes, b.n, &meta, NULL, NULL),
                     LMQ_OK);
    struct lmq_gguf_strings strings =
        lmq_gguf_strings(lmq_gguf_find(meta, "tokenizer.ggml.tokens"));
    ck_assert(lmq_gguf_next_string(&strings, &text, &n));
    ck_assert_uint_eq(n, 3);
    ck_assert(lmq_gguf_next_string(&strings, &text, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert(!lmq_gguf_next_string(&strings, &text, &n));
    lmq_gguf_meta_close(meta);
    lmq_buffer_free(&b);
}
END_TEST

START_TEST(written_vocab_has_the_tokenizer_and_no_tensors)
{
    struct lmq_buffer b = sound_file();
    struct lmq_gguf_meta *meta, *vocab;
    unsigned char *bytes;
    size_t n;

    ck_assert_int_eq(lmq_gguf_meta_open(b.bytes, b.n, &meta, NULL, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_gguf_write_vocab(meta, &bytes, &n, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_gguf_meta_open(bytes, n, &vocab, NULL, NULL), LMQ_OK);
    ck_assert_uint_eq(vocab->n_values, 3);
    ck_assert_uint_eq(vocab->n_tensors, 0);
    ck_assert_ptr_nonnull(lmq_gguf_find(vocab, "general.architecture"));
    ck_assert_ptr_nonnull(lmq_gguf_find(vocab, "tokenizer.ggml.tokens"));
    ck_assert_ptr_null(lmq_gguf_find(vocab, "llama.epsilon"));
    const struct lmq_gguf_value *a =
        lmq_gguf_find(meta, "tokenizer.ggml.tokens");
    const struct lmq_gguf_value *c =
        lmq_gguf_find(vocab, "tokenizer.ggml.tokens");
    ck_assert_uint_eq(a->raw_size, c->raw_size);
    ck_assert_mem_eq(a->raw, c->raw, a->raw_size);
    lmq_gguf_meta_close(vocab);
    lmq_gguf_meta_close(meta);
    free(bytes);
    lmq_buffer_free(&b);
}
END_TEST

/* ---- Hostile ---- */

START_TEST(every_truncation_is_short_and_refused)
{
    struct lmq_buffer b = sound_file();

    for (size_t n = 0; n < b.n; n++) {
        struct lmq_gguf_meta *meta;
        bool is_short = false;
        unsigned char *copy = malloc(n + 1);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, b.bytes, n);
        ck_assert_int_eq(lmq_gguf_meta_open(copy, n, &meta, &is_short, NULL),
                         LMQ_ERR_FORMAT);
        ck_assert(n < 4 || is_short);
        free(copy);
    }
    lmq_buffer_free(&b);
}
END_TEST

START_TEST(other_versions_and_byte_orders_are_refused)
{
    static const uint32_t versions[] = { 0, 1, 4, 0x03000000, 0x02000000 };

    for (size_t i = 0; i < 5; i++) {
        struct lmq_buffer b = { 0 };
        put_header(&b, versions[i], 0, 0);
        expect(&b, LMQ_ERR_UNSUPPORTED);
    }
    struct lmq_buffer b = { 0 };
    put_header(&b, 2, 0, 0);
    expect(&b, LMQ_OK);
}
END_TEST

START_TEST(lengths_beyond_the_file_are_refused)
{
    static const uint64_t lengths[] = { 100, INT64_MAX, UINT64_MAX,
                                        UINT64_MAX - 7 };

    for (size_t i = 0; i < 4; i++) {
        struct lmq_buffer key = { 0 }, text = { 0 }, array = { 0 };
        put_header(&key, 3, 0, 1);
        put_u64(&key, lengths[i]);
        put(&key, "abcdefghijklmnop", 16);
        expect(&key, LMQ_ERR_FORMAT);
        put_header(&text, 3, 0, 1);
        put_key(&text, "k", LMQ_GGUF_STRING);
        put_u64(&text, lengths[i]);
        expect(&text, LMQ_ERR_FORMAT);
        put_header(&array, 3, 0, 1);
        put_array(&array, "k", LMQ_GGUF_F64, lengths[i]);
        put_u64(&array, 0);
        expect(&array, LMQ_ERR_FORMAT);
    }
}
END_TEST

START_TEST(counts_that_lie_are_refused)
{
    struct lmq_buffer keys = { 0 }, some = { 0 }, strings = { 0 };

    put_header(&keys, 3, 0, UINT64_MAX);
    expect(&keys, LMQ_ERR_FORMAT);
    put_header(&some, 3, 0, 60000);
    expect(&some, LMQ_ERR_FORMAT);
    put_header(&strings, 3, 0, 1);
    put_array(&strings, "k", LMQ_GGUF_STRING, UINT64_MAX / 8);
    put_text(&strings, "x");
    expect(&strings, LMQ_ERR_FORMAT);
}
END_TEST

START_TEST(unknown_types_and_bad_booleans_are_refused)
{
    struct lmq_buffer type = { 0 }, item = { 0 }, truth = { 0 };

    put_header(&type, 3, 0, 1);
    put_key(&type, "k", LMQ_GGUF_TYPE_COUNT);
    put_u64(&type, 0);
    expect(&type, LMQ_ERR_FORMAT);
    put_header(&item, 3, 0, 1);
    put_array(&item, "k", (enum lmq_gguf_type)77, 0);
    expect(&item, LMQ_ERR_FORMAT);
    put_header(&truth, 3, 0, 1);
    put_key(&truth, "k", LMQ_GGUF_BOOL);
    put(&truth, "\2", 1);
    expect(&truth, LMQ_ERR_FORMAT);
}
END_TEST

START_TEST(arrays_nest_only_so_deep)
{
    for (int depth = 1; depth <= LMQ_GGUF_MAX_NESTING + 1; depth++) {
        struct lmq_buffer b = { 0 };
        put_header(&b, 3, 0, 1);
        put_key(&b, "k", LMQ_GGUF_ARRAY);
        for (int i = 1; i < depth; i++) {
            put_u32(&b, LMQ_GGUF_ARRAY);
            put_u64(&b, 1);
        }
        put_u32(&b, LMQ_GGUF_U8);
        put_u64(&b, 0);
        expect(&b, depth <= LMQ_GGUF_MAX_NESTING ? LMQ_OK
                                                 : LMQ_ERR_UNSUPPORTED);
    }
}
END_TEST

START_TEST(a_key_stands_once)
{
    struct lmq_buffer b = { 0 };

    put_header(&b, 3, 0, 3);
    for (int i = 0; i < 3; i++) {
        put_key(&b, i == 1 ? "other" : "again", LMQ_GGUF_U8);
        put(&b, "\1", 1);
    }
    expect(&b, LMQ_ERR_FORMAT);
}
END_TEST

START_TEST(alignment_is_a_small_power_of_two)
{
    static const uint32_t values[] = { 0, 1, 3, 32, 65536, 131072 };
    static const enum lmq_status expected[] = {
        LMQ_ERR_FORMAT, LMQ_OK, LMQ_ERR_FORMAT,
        LMQ_OK,         LMQ_OK, LMQ_ERR_FORMAT
    };

    for (size_t i = 0; i < 6; i++) {
        struct lmq_buffer b = { 0 };
        put_header(&b, 3, 0, 1);
        put_key(&b, "general.alignment", LMQ_GGUF_U32);
        put_u32(&b, values[i]);
        expect(&b, expected[i]);
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {
        values_are_found_by_type,
        values_of_another_kind_are_errors,
        strings_of_an_array_come_in_order,
        written_vocab_has_the_tokenizer_and_no_tensors,
        every_truncation_is_short_and_refused,
        other_versions_and_byte_orders_are_refused,
        lengths_beyond_the_file_are_refused,
        counts_that_lie_are_refused,
        unknown_types_and_bad_booleans_are_refused,
        arrays_nest_only_so_deep,
        a_key_stands_once,
        alignment_is_a_small_power_of_two,
    };

    return RUN_SUITE("gguf_meta", tests);
}
