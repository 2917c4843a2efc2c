/*
 * small_vocab.c - one small vocabulary in the files of several formats.
 */
#include "config.h"

#include "tests/runtime/small_vocab.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/gguf/gguf_meta.h"
#include "tests/build/suite.h"

/* ---- Small vocabularies ---- */

static const struct {
    const char *text;
    float score;
} pieces[] = { { MARK, -10 },    { "a", -11 },       { "b", -12 },
               { "ab", -1 },     { MARK "ab", -2 },  { "c", -13 },
               { MARK "c", -3 }, { "\xc3\xa4", -14 } };

_Static_assert(sizeof(pieces) / sizeof(pieces[0]) == N_PIECES,
               "small_vocab.h says how many there are");

void
add_bytes(struct lmq_buffer *b, const void *bytes, size_t n)
{
    ck_assert_int_eq(lmq_buffer_append(b, bytes, n), 0);
}

void
add_text(struct lmq_buffer *b, const char *text)
{
    add_bytes(b, text, strlen(text));
}

static void
put_u32(struct lmq_buffer *b, uint32_t value)
{
    unsigned char p[4];

    lmq_store_u32le(p, value);
    add_bytes(b, p, sizeof(p));
}

static void
put_u64(struct lmq_buffer *b, uint64_t value)
{
    put_u32(b, (uint32_t)value);
    put_u32(b, (uint32_t)(value >> 32));
}

static void
put_f32(struct lmq_buffer *b, float value)
{
    unsigned char p[4];

    lmq_store_f32le(p, value);
    add_bytes(b, p, sizeof(p));
}

const char *
piece_text(size_t id, char name[8])
{
    static const char *const special[] = { "<unk>", "<s>", "</s>" };

    if (id < 3)
        return special[id];
    if (id >= FIRST)
        return pieces[id - FIRST].text;
    snprintf(name, 8, "<0x%02X>", (unsigned)(id - 3) & 0xff);
    return name;
}

static float
piece_score(size_t id)
{
    return id < FIRST ? 0 : pieces[id - FIRST].score;
}

static int
piece_type(size_t id)
{
    return id == 0 ? 2 : id < 3 ? 3 : id < FIRST ? 6 : 1;
}

struct lmq_buffer
llama2c_file(void)
{
    struct lmq_buffer b = { 0 };
    char name[8], plain[16];

    put_u32(&b, 8);
    for (size_t id = 0; id < N_IDS; id++) {
        const char *text = piece_text(id, name);
        if (strncmp(text, MARK, 3) == 0) {
            snprintf(plain, sizeof(plain), " %s", text + 3);
            text = plain;
        } else if (id == 1 || id == 2) {
            snprintf(plain, sizeof(plain), "\n%s\n", text);
            text = plain;
        }
        put_f32(&b, piece_score(id));
        put_u32(&b, (uint32_t)strlen(text));
        add_text(&b, text);
    }
    return b;
}

struct lmq_buffer
spm_file(const char *extra, size_t n_extra)
{
    struct lmq_buffer b = { 0 };
    char name[8];

    for (size_t id = 0; id < N_IDS; id++) {
        const char *text = piece_text(id, name);
        unsigned char head[4] = { 0x0a, (unsigned char)(strlen(text) + 9),
                                  0x0a, (unsigned char)strlen(text) };
        unsigned char type[2] = { 0x18, (unsigned char)piece_type(id) };
        add_bytes(&b, head, sizeof(head));
        add_text(&b, text);
        add_bytes(&b, "\x15", 1);
        put_f32(&b, piece_score(id));
        add_bytes(&b, type, sizeof(type));
    }
    add_bytes(&b, extra, n_extra);
    return b;
}

struct lmq_buffer
default_spm_file(void)
{
    return spm_file(SPM_BPE SPM_PLAIN,
                    sizeof(SPM_BPE) - 1 + sizeof(SPM_PLAIN) - 1);
}

static void
put_gguf_text(struct lmq_buffer *b, const char *text)
{
    put_u64(b, strlen(text));
    add_text(b, text);
}

static void
put_gguf_array(struct lmq_buffer *b, const char *key, uint32_t type, size_t n)
{
    put_gguf_text(b, key);
    put_u32(b, LMQ_GGUF_ARRAY);
    put_u32(b, type);
    put_u64(b, n);
}

struct lmq_buffer
gguf_file(const char *model, const char *pre)
{
    struct lmq_buffer b = { 0 };
    char name[8];

    add_text(&b, "GGUF");
    put_u32(&b, 3);
    put_u64(&b, 0);
    put_u64(&b, 5);
    put_gguf_text(&b, "tokenizer.ggml.model");
    put_u32(&b, LMQ_GGUF_STRING);
    put_gguf_text(&b, model);
    put_gguf_text(&b, "tokenizer.ggml.pre");
    put_u32(&b, LMQ_GGUF_STRING);
    put_gguf_text(&b, pre);
    put_gguf_array(&b, "tokenizer.ggml.tokens", LMQ_GGUF_STRING, N_IDS);
    for (size_t id = 0; id < N_IDS; id++)
        put_gguf_text(&b, piece_text(id, name));
    put_gguf_array(&b, "tokenizer.ggml.scores", LMQ_GGUF_F32, N_IDS);
    for (size_t id = 0; id < N_IDS; id++)
        put_f32(&b, piece_score(id));
    put_gguf_array(&b, "tokenizer.ggml.token_type", LMQ_GGUF_I32, N_IDS);
    for (size_t id = 0; id < N_IDS; id++)
        put_u32(&b, (uint32_t)piece_type(id));
    return b;
}

/* One key more than the header says until now. */
static void
count_gguf_key(struct lmq_buffer *b)
{
    lmq_store_u64le(b->bytes + 16, lmq_load_u64le(b->bytes + 16) + 1);
}

void
add_gguf_texts(struct lmq_buffer *b, const char *key, const char *const *texts,
               size_t n)
{
    put_gguf_array(b, key, LMQ_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        put_gguf_text(b, texts[i]);
    count_gguf_key(b);
}

void
add_gguf_u32(struct lmq_buffer *b, const char *key, uint32_t value)
{
    put_gguf_text(b, key);
    put_u32(b, LMQ_GGUF_U32);
    put_u32(b, value);
    count_gguf_key(b);
}

void
add_gguf_bytes(struct lmq_buffer *b, const char *key, const void *bytes,
               size_t n)
{
    put_gguf_array(b, key, LMQ_GGUF_U8, n);
    add_bytes(b, bytes, n);
    count_gguf_key(b);
}

struct lmq_buffer
merged_gguf_file(void)
{
    static const char *const merges[] = { "a b", MARK " ab", MARK " c" };
    struct lmq_buffer b = gguf_file("gemma4", "default");

    add_gguf_texts(&b, "tokenizer.ggml.merges", merges,
                   sizeof(merges) / sizeof(merges[0]));
    return b;
}

struct lmq_buffer
hf_file(const char *model, const char *normalizer, const char *pre_tokenizer,
        const char *decoder, const char *added)
{
    struct lmq_buffer b = { 0 };
    const char *const parts[] = { "{\"normalizer\":", normalizer,
                                  ",\"pre_tokenizer\":", pre_tokenizer,
                                  ",\"decoder\":", decoder,
                                  ",\"added_tokens\":", added,
                                  ",\"model\":", model };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        add_text(&b, parts[i] == NULL ? "null" : parts[i]);
    add_text(&b, "}");
    return b;
}

static void
put_base64(struct lmq_buffer *b, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                 "qrstuvwxyz0123456789+/";
    unsigned bits = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0) |
                    (n > 2 ? p[2] : 0);
    char text[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
                     n > 1 ? digits[bits >> 6 & 63] : '=',
                     n > 2 ? digits[bits & 63] : '=' };

    add_bytes(b, text, sizeof(text));
}

struct lmq_buffer
tiktoken_file(unsigned n_ranks)
{
    struct lmq_buffer b = { 0 };
    char number[16];

    for (unsigned rank = 0; rank < n_ranks; rank++) {
        unsigned pair = rank - 256;
        unsigned char p[3] = { (unsigned char)(pair >> 8),
                               (unsigned char)pair,
                               (unsigned char)(pair >> 16) };
        if (rank < 256)
            p[0] = (unsigned char)rank;
        put_base64(&b, p, rank < 256 ? 1 : p[2] == 0 ? 2 : 3);
        snprintf(number, sizeof(number), " %u\n", rank);
        add_text(&b, number);
    }
    return b;
}

void
write_charsmap(unsigned char map[N_CHARSMAP])
{
    const uint32_t has_leaf = 1u << 8;

    memset(map, 0, N_CHARSMAP);
    lmq_store_u32le(map, 4 * N_UNITS);
    lmq_store_u32le(map + 4 + 4 * 'A',
                    'A' | has_leaf | (uint32_t)('A' ^ 1) << 10);
    lmq_store_u32le(map + 4 + 4 * 1, 0x80000000u);
    memcpy(map + 4 + 4 * N_UNITS, "ab", 2);
}

/* ---- Opening and comparing ---- */

struct lmq_tokenizer *
open_buffer(struct lmq_buffer b)
{
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };
    struct lmq_blob blob = { "tokenizer", b.bytes, b.n };

    ck_assert_msg(lmq_tokenizer_open(&blob, 1, &t, &err) == LMQ_OK, "%s",
                  err.message);
    lmq_buffer_free(&b);
    return t;
}

void
expect_refusal(struct lmq_buffer b, enum lmq_status expected,
               const char *words)
{
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };
    struct lmq_blob blob = { "tokenizer", b.bytes, b.n };

    ck_assert_int_eq(lmq_tokenizer_open(&blob, 1, &t, &err), expected);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
    lmq_buffer_free(&b);
}

const char *
encoded(const struct lmq_tokenizer *t, const char *text, size_t n,
        unsigned flags)
{
    static char line[4096];
    struct lmq_ids ids = { 0 };
    struct lmq_error err = { 0 };
    size_t used = 0;

    ck_assert_msg(lmq_tokenizer_encode(t, text, n, flags, &ids, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    line[0] = '\0';
    for (size_t i = 0; i < ids.n && used < sizeof(line) - 16; i++)
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%d",
                                 i == 0 ? "" : " ", ids.ids[i]);
    lmq_ids_clear(&ids);
    return line;
}

bool
round_trips(const struct lmq_tokenizer *t, const void *text, size_t n)
{
    struct lmq_ids ids = { 0 };
    struct lmq_buffer out = { 0 };

    ck_assert_int_eq(lmq_tokenizer_encode(t, text, n, 0, &ids, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_tokenizer_decode(t, ids.ids, ids.n, 0, &out, NULL),
                     LMQ_OK);
    bool is_same = out.n == n && (n == 0 || memcmp(out.bytes, text, n) == 0);
    lmq_ids_clear(&ids);
    lmq_buffer_free(&out);
    return is_same;
}
