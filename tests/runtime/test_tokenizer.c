/*
 * test_tokenizer.c - tokenizers of every kind, small ones made here and, where
 * they are at hand, real ones with known results.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "formats/gguf/gguf_meta.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/build/suite.h"

/* ---- Small vocabularies ---- */

/* Ids 0..2 are <unk>, <s>, </s>, then 256 bytes, then these. */
#define MARK "\xe2\x96\x81"
#define FIRST 259

static const struct {
    const char *text;
    float score;
} pieces[] = { { MARK, -10 },    { "a", -11 },       { "b", -12 },
               { "ab", -1 },     { MARK "ab", -2 },  { "c", -13 },
               { MARK "c", -3 }, { "\xc3\xa4", -14 } };

#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))
#define N_IDS (FIRST + N_PIECES)

static void
put(struct lmq_buffer *b, const void *bytes, size_t n)
{
    ck_assert_int_eq(lmq_buffer_append(b, bytes, n), 0);
}

static void
put_text(struct lmq_buffer *b, const char *text)
{
    put(b, text, strlen(text));
}

static void
put_u32(struct lmq_buffer *b, uint32_t value)
{
    unsigned char p[4];

    lmq_store_u32le(p, value);
    put(b, p, sizeof(p));
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
    put(b, p, sizeof(p));
}

/* The text of an id; name holds that of a byte. */
static const char *
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

static struct lmq_buffer
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
        put_text(&b, text);
    }
    return b;
}

/* extra: bytes of more fields, such as a normalizer. */
static struct lmq_buffer
spm_file(const char *extra, size_t n_extra)
{
    struct lmq_buffer b = { 0 };
    char name[8];

    for (size_t id = 0; id < N_IDS; id++) {
        const char *text = piece_text(id, name);
        unsigned char head[4] = { 0x0a, (unsigned char)(strlen(text) + 9),
                                  0x0a, (unsigned char)strlen(text) };
        unsigned char type[2] = { 0x18, (unsigned char)piece_type(id) };
        put(&b, head, sizeof(head));
        put_text(&b, text);
        put(&b, "\x15", 1);
        put_f32(&b, piece_score(id));
        put(&b, type, sizeof(type));
    }
    put(&b, extra, n_extra);
    return b;
}

/* BPE with byte fallback; the identity, a prefix, extra spaces kept. */
#define SPM_BPE "\x12\x05\x18\x02\x98\x02\x01"
#define SPM_PLAIN "\x1a\x04\x18\x01\x20\x00"

static struct lmq_buffer
default_spm_file(void)
{
    return spm_file(SPM_BPE SPM_PLAIN,
                    sizeof(SPM_BPE) - 1 + sizeof(SPM_PLAIN) - 1);
}

static void
put_gguf_text(struct lmq_buffer *b, const char *text)
{
    put_u64(b, strlen(text));
    put_text(b, text);
}

static void
put_gguf_array(struct lmq_buffer *b, const char *key, uint32_t type, size_t n)
{
    put_gguf_text(b, key);
    put_u32(b, LMQ_GGUF_ARRAY);
    put_u32(b, type);
    put_u64(b, n);
}

static struct lmq_buffer
gguf_file(const char *model, const char *pre)
{
    struct lmq_buffer b = { 0 };
    char name[8];

    put_text(&b, "GGUF");
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

/* A tokenizer.json around this model and these steps; NULL is null. */
static struct lmq_buffer
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
        put_text(&b, parts[i] == NULL ? "null" : parts[i]);
    put_text(&b, "}");
    return b;
}

#define WORDS                                                                 \
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,"       \
    "\"a\":1,\"b\":2,\"ab\":3,\"1\":4,\"2\":5,\"12\":6,\".\":7,\" \":8},"     \
    "\"merges\":[\"a b\",[\"1\",\"2\"]]}"

/* ---- Opening and comparing ---- */

static struct lmq_tokenizer *
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

static void
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

/* The ids, separated by spaces. */
static const char *
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

#define ENCODES(t, text, flags, expected)                                     \
    ck_assert_str_eq(encoded(t, text, sizeof(text) - 1, flags), expected)

static bool
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

/* ---- SentencePiece and its likes ---- */

START_TEST(the_same_vocabulary_has_one_digest_and_one_result)
{
    static const char text[] = "ab ab  c\xc3\xa4\n\xff";
    struct lmq_tokenizer *bin = open_buffer(llama2c_file());
    struct lmq_tokenizer *model = open_buffer(default_spm_file());
    struct lmq_tokenizer *gguf = open_buffer(gguf_file("llama", "default"));

    ENCODES(model, text, LMQ_ENCODE_BOS, "1 263 263 259 265 266 13 258");
    ENCODES(bin, text, LMQ_ENCODE_BOS, "1 263 263 259 265 266 13 258");
    ENCODES(gguf, text, LMQ_ENCODE_BOS, "1 263 263 259 265 266 13 258");
    ck_assert_uint_eq(lmq_tokenizer_digest(bin), lmq_tokenizer_digest(model));
    ck_assert_uint_eq(lmq_tokenizer_digest(bin), lmq_tokenizer_digest(gguf));
    ck_assert(round_trips(bin, text, sizeof(text)));
    ck_assert(round_trips(model, text, sizeof(text)));
    ck_assert(round_trips(gguf, text, sizeof(text)));
    lmq_tokenizer_close(bin);
    lmq_tokenizer_close(model);
    lmq_tokenizer_close(gguf);
}
END_TEST

START_TEST(special_tokens_count_only_when_asked)
{
    struct lmq_tokenizer *t = open_buffer(default_spm_file());

    ENCODES(t, "ab</s>ab", LMQ_ENCODE_SPECIAL, "263 2 263");
    ENCODES(t, "</s>", 0, "259 63 50 118 65");
    ENCODES(t, "<0x41>", LMQ_ENCODE_SPECIAL, "259 63 51 123 55 52 65");
    ck_assert_int_eq(lmq_tokenizer_bos(t), 1);
    ck_assert(lmq_tokenizer_is_eos(t, 2));
    ck_assert_uint_eq(lmq_tokenizer_default_flags(t), LMQ_ENCODE_BOS);
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(extra_spaces_go_where_the_model_says_so)
{
    /* The defaults of the normalizer: a prefix, extra spaces removed. */
    struct lmq_tokenizer *t =
        open_buffer(spm_file(SPM_BPE, sizeof(SPM_BPE) - 1));

    ENCODES(t, "  ab   ab  ", 0, "263 263");
    ENCODES(t, "   ", 0, "");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(the_surface_of_the_unknown_token_keeps_its_spaces)
{
    /* No byte fallback, so a letter that is no piece is unknown. */
    struct lmq_tokenizer *t = open_buffer(spm_file("\x12\x02\x18\x02", 4));
    static const int32_t ids[] = { 0, 263 };
    struct lmq_buffer out = { 0 };

    ENCODES(t, "xyz ab", 0, "259 0 263");
    ck_assert_int_eq(lmq_tokenizer_decode(t, ids, 2, 0, &out, NULL), LMQ_OK);
    ck_assert_uint_eq(out.n, 8);
    ck_assert_mem_eq(out.bytes, " \xe2\x81\x87  ab", 8);
    lmq_buffer_free(&out);
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(unigram_takes_the_best_path)
{
    /* "▁ab" (-2) against "▁" "ab" (-11); "abc" is "▁ab" "c". */
    struct lmq_tokenizer *t = open_buffer(
        spm_file("\x12\x05\x18\x01\x98\x02\x01" SPM_PLAIN,
                 sizeof(SPM_BPE) - 1 + sizeof(SPM_PLAIN) - 1));

    ENCODES(t, "abc ba", 0, "263 264 259 261 260");
    ENCODES(t, "a\xe2\x82\xac", 0, "259 260 229 133 175");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(unused_pieces_are_taken_apart_again)
{
    struct lmq_buffer b = gguf_file("llama", "default");
    /* The types are the last column: "▁ab" becomes unused. */
    lmq_store_u32le(b.bytes + b.n - 4 * (N_PIECES - 4), 5);
    struct lmq_tokenizer *t = open_buffer(b);

    ENCODES(t, "ab", 0, "259 262");
    lmq_tokenizer_close(t);
}
END_TEST

/* ---- tiktoken ---- */

/* As many ranks as GPT-2 has: the bytes, then pairs of bytes in order. */
#define N_RANKS 50256

static void
put_base64(struct lmq_buffer *b, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                 "qrstuvwxyz0123456789+/";
    unsigned bits = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0);
    char text[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
                     n > 1 ? digits[bits >> 6 & 63] : '=', '=' };

    put(b, text, sizeof(text));
}

static struct lmq_buffer
tiktoken_file(unsigned n_ranks)
{
    struct lmq_buffer b = { 0 };
    char number[16];

    for (unsigned rank = 0; rank < n_ranks; rank++) {
        unsigned pair = rank - 256;
        unsigned char p[2] = { (unsigned char)(pair >> 8),
                               (unsigned char)pair };
        if (rank < 256)
            p[0] = (unsigned char)rank;
        put_base64(&b, p, rank < 256 ? 1 : 2);
        snprintf(number, sizeof(number), " %u\n", rank);
        put_text(&b, number);
    }
    return b;
}

START_TEST(tiktoken_ranks_are_known_by_their_number)
{
    struct lmq_tokenizer *t = open_buffer(tiktoken_file(N_RANKS));

    /* "ab", "c" and " a": 256 + 0x6162, 0x63, 256 + 0x2061. */
    ENCODES(t, "abc a", 0, "25186 99 8545");
    ENCODES(t, "<|endoftext|>", LMQ_ENCODE_SPECIAL, "50256");
    ck_assert(lmq_tokenizer_is_eos(t, 50256));
    ck_assert(round_trips(t, "\xff\0\xc3z", 4));
    lmq_tokenizer_close(t);
    expect_refusal(tiktoken_file(300), LMQ_ERR_UNSUPPORTED, "300 ranks");
}
END_TEST

/* ---- Hugging Face ---- */

START_TEST(hf_llama_agrees_with_sentencepiece)
{
    struct lmq_buffer model = { 0 };
    char name[8], item[64];

    put_text(&model, "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":"
                     "true,\"byte_fallback\":true,\"vocab\":{");
    for (size_t id = 0; id < N_IDS; id++) {
        snprintf(item, sizeof(item), "%s\"%s\":%zu", id == 0 ? "" : ",",
                 piece_text(id, name), id);
        put_text(&model, item);
    }
    put_text(&model, "},\"merges\":[\"a b\",\"" MARK " ab\",\"" MARK
                     " c\"]}");
    put(&model, "", 1);
    struct lmq_buffer file = hf_file(
        (const char *)model.bytes,
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
        "\"prepend\":\"" MARK "\"},{\"type\":\"Replace\",\"pattern\":"
        "{\"String\":\" \"},\"content\":\"" MARK "\"}]}",
        NULL,
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
        "\"pattern\":{\"String\":\"" MARK "\"},\"content\":\" \"},{\"type\":"
        "\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\","
        "\"content\":\" \",\"start\":1,\"stop\":0}]}",
        "[{\"id\":2,\"content\":\"</s>\",\"special\":true,\"normalized\":"
        "false,\"rstrip\":true}]");
    struct lmq_tokenizer *t = open_buffer(file);

    ENCODES(t, "ab ab  c\xc3\xa4\n", 0, "263 263 259 265 266 13");
    ENCODES(t, "ab</s>  ab", LMQ_ENCODE_SPECIAL, "263 2 263");
    ck_assert(round_trips(t, " ab\xff\n", 6));
    lmq_tokenizer_close(t);
    lmq_buffer_free(&model);
}
END_TEST

START_TEST(split_behaviors_are_those_of_hugging_face)
{
    static const char dots[] =
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\".\":1,\"a.\":2,\"..\":3,"
        "\".a\":4},\"merges\":[\". .\",\"a .\",\". a\"]}";
    static const struct {
        const char *name, *expected;
    } behaviors[] = { { "Removed", "0 0" },
                      { "Isolated", "0 1 1 0" },
                      { "MergedWithPrevious", "2 1 0" },
                      { "MergedWithNext", "0 1 4" },
                      { "Contiguous", "0 3 0" } };

    for (size_t i = 0; i < 5; i++) {
        char split[200];
        snprintf(split, sizeof(split),
                 "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\.\"},"
                 "\"behavior\":\"%s\",\"invert\":false}", behaviors[i].name);
        struct lmq_tokenizer *t =
            open_buffer(hf_file(dots, NULL, split, NULL, "[]"));
        ENCODES(t, "a..a", 0, behaviors[i].expected);
        lmq_tokenizer_close(t);
    }
}
END_TEST

START_TEST(metaspace_prepends_where_its_scheme_says)
{
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"" MARK "a\":0,\"a\":1,\"" MARK
        "\":2,\"<s>\":3},\"merges\":[\"" MARK " a\"]}";
    static const struct {
        const char *scheme, *expected, *decoded;
    } schemes[] = { { "always", "0 0 3 0", "a a a" },
                    { "first", "0 0 3 1", "a aa" },
                    { "never", "1 0 3 1", "a aa" } };

    for (size_t i = 0; i < 3; i++) {
        char step[200];
        struct lmq_ids ids = { 0 };
        struct lmq_buffer out = { 0 };
        snprintf(step, sizeof(step),
                 "{\"type\":\"Metaspace\",\"replacement\":\"" MARK
                 "\",\"prepend_scheme\":\"%s\"}", schemes[i].scheme);
        struct lmq_tokenizer *t = open_buffer(
            hf_file(model, NULL, step, step,
                    "[{\"id\":3,\"content\":\"<s>\",\"special\":true}]"));
        ENCODES(t, "a a<s>a", LMQ_ENCODE_SPECIAL, schemes[i].expected);
        ck_assert_int_eq(lmq_tokenizer_encode(t, "a a<s>a", 7,
                                              LMQ_ENCODE_SPECIAL, &ids, NULL),
                         LMQ_OK);
        ck_assert_int_eq(lmq_tokenizer_decode(t, ids.ids, ids.n, 0, &out,
                                              NULL),
                         LMQ_OK);
        ck_assert_uint_eq(out.n, strlen(schemes[i].decoded));
        ck_assert_mem_eq(out.bytes, schemes[i].decoded, out.n);
        lmq_ids_clear(&ids);
        lmq_buffer_free(&out);
        lmq_tokenizer_close(t);
    }
}
END_TEST

START_TEST(byte_level_covers_every_byte)
{
    /* U+0120 is the space, U+010A the line feed, U+00FF itself. */
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"\u0120\":0,\"a\":1,\"\u0120a\":2,"
        "\"\u010a\":3,\"\u00ff\":4},\"merges\":[\"\u0120 a\"]}";
    struct lmq_tokenizer *t = open_buffer(
        hf_file(model, NULL,
                "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
                "{\"type\":\"ByteLevel\"}", "[]"));

    ENCODES(t, "a a\n\xff", 0, "2 2 3 4");
    ENCODES(t, " a", 0, "2");
    ck_assert(round_trips(t, " a\n\xff", 4));
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(digits_stand_alone_or_together)
{
    struct lmq_tokenizer *alone = open_buffer(hf_file(
        WORDS, NULL, "{\"type\":\"Digits\",\"individual_digits\":true}", NULL,
        "[]"));
    struct lmq_tokenizer *together =
        open_buffer(hf_file(WORDS, NULL, "{\"type\":\"Digits\"}", NULL, "[]"));

    ENCODES(alone, "ab12", 0, "3 4 5");
    ENCODES(together, "ab12", 0, "3 6");
    lmq_tokenizer_close(alone);
    lmq_tokenizer_close(together);
}
END_TEST

START_TEST(normalizers_change_the_text_in_order)
{
    struct lmq_tokenizer *t = open_buffer(hf_file(
        WORDS,
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\""
        ":\"Lowercase\"},{\"type\":\"Strip\",\"strip_left\":true,"
        "\"strip_right\":true},{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
        "\" +\"},\"content\":\".\"}]}",
        NULL, NULL, "[]"));

    /* Fullwidth A, B and circled 1. */
    ENCODES(t, "  \xef\xbc\xa1\xef\xbc\xa2  \xe2\x91\xa0 ", 0, "3 7 4");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(added_tokens_look_at_what_stands_beside_them)
{
    struct lmq_tokenizer *t = open_buffer(hf_file(
        WORDS, NULL, NULL, NULL,
        "[{\"id\":9,\"content\":\"bb\",\"single_word\":true},"
        "{\"id\":10,\"content\":\"..\",\"lstrip\":true},"
        "{\"id\":11,\"content\":\"...\",\"special\":true}]"));

    ENCODES(t, "a bb a", 0, "1 8 9 8 1");
    ENCODES(t, "abba", 0, "3 2 1");
    ENCODES(t, "a  ..a", 0, "1 10 1");
    ENCODES(t, "a...a", LMQ_ENCODE_SPECIAL, "1 11 1");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(configuration_names_begin_and_end)
{
    static const char config[] =
        "{\"bos_token\":\"ab\",\"eos_token\":{\"content\":\"b\"},"
        "\"add_bos_token\":true,\"chat_template\":\"{{ boom }}\"}";
    static const char generation[] = "{\"eos_token_id\":[1,2]}";
    struct lmq_buffer file = hf_file(WORDS, NULL, NULL, NULL, "[]");
    struct lmq_blob blobs[] = {
        { "x/generation_config.json", (const unsigned char *)generation,
          sizeof(generation) - 1 },
        { "x/tokenizer_config.json", (const unsigned char *)config,
          sizeof(config) - 1 },
        { "x/tokenizer.json", file.bytes, file.n },
    };
    struct lmq_tokenizer *t;
    size_t n;

    ck_assert_int_eq(lmq_tokenizer_open(blobs, 3, &t, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_tokenizer_bos(t), 3);
    const int32_t *eos = lmq_tokenizer_eos(t, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(eos[0], 2);
    ENCODES(t, "a", LMQ_ENCODE_BOS | LMQ_ENCODE_EOS, "3 1 2");
    lmq_tokenizer_close(t);
    blobs[0].bytes = (const unsigned char *)"{\"eos_token_id\":99999}";
    blobs[0].size = 22;
    ck_assert_int_eq(lmq_tokenizer_open(blobs, 3, &t, NULL), LMQ_ERR_FORMAT);
    lmq_buffer_free(&file);
}
END_TEST

START_TEST(what_is_not_understood_is_refused_by_name)
{
    static const char vocab[] = ",\"vocab\":{\"a\":0},\"merges\":[]}";
    char model[200];

    snprintf(model, sizeof(model), "{\"type\":\"WordPiece\"%s", vocab);
    expect_refusal(hf_file(model, NULL, NULL, NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "WordPiece");
    snprintf(model, sizeof(model),
             "{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\"%s", vocab);
    expect_refusal(hf_file(model, NULL, NULL, NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "end_of_word_suffix");
    expect_refusal(hf_file(WORDS, "{\"type\":\"Odd\"}", NULL, NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "Odd");
    expect_refusal(hf_file(WORDS, NULL, "{\"type\":\"UnicodeScripts\"}", NULL,
                           "[]"),
                   LMQ_ERR_UNSUPPORTED, "UnicodeScripts");
    expect_refusal(hf_file(WORDS, NULL, NULL, "{\"type\":\"CTC\"}", "[]"),
                   LMQ_ERR_UNSUPPORTED, "CTC");
    expect_refusal(hf_file(WORDS, NULL,
                           "{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                           "\"[a&&b]\"},\"behavior\":\"Isolated\"}",
                           NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "an intersection");
    expect_refusal(gguf_file("gpt2", "of-tomorrow"), LMQ_ERR_UNSUPPORTED,
                   "of-tomorrow");
    expect_refusal(gguf_file("rwkv", "default"), LMQ_ERR_UNSUPPORTED, "rwkv");
    expect_refusal(spm_file("\x12\x02\x18\x04", 4), LMQ_ERR_UNSUPPORTED,
                   "CHAR");
}
END_TEST

/* ---- Hostile ---- */

START_TEST(every_truncation_is_refused_or_smaller)
{
    struct lmq_buffer files[] = { llama2c_file(), default_spm_file(),
                                  gguf_file("llama", "default"),
                                  hf_file(WORDS, NULL, NULL, NULL, "[]") };

    for (size_t f = 0; f < 4; f++) {
        for (size_t n = 0; n < files[f].n; n++) {
            struct lmq_tokenizer *t;
            unsigned char *copy = malloc(n + 1);
            ck_assert_ptr_nonnull(copy);
            memcpy(copy, files[f].bytes, n);
            struct lmq_blob blob = { "tokenizer", copy, n };
            if (lmq_tokenizer_open(&blob, 1, &t, NULL) == LMQ_OK)
                ck_assert_uint_le(lmq_tokenizer_size(t), N_IDS);
            lmq_tokenizer_close(t);
            free(copy);
        }
        lmq_buffer_free(&files[f]);
    }
}
END_TEST

START_TEST(ids_out_of_range_and_odd_pieces_are_refused)
{
    struct lmq_buffer b = llama2c_file();
    struct lmq_tokenizer *t = open_buffer(default_spm_file());
    struct lmq_decoder decoder;
    struct lmq_buffer out = { 0 };

    lmq_decoder_begin(&decoder, t, 0);
    ck_assert_int_eq(lmq_decoder_next(&decoder, -1, &out, NULL), LMQ_ERR_ARG);
    ck_assert_int_eq(lmq_decoder_next(&decoder, (int32_t)N_IDS, &out, NULL),
                     LMQ_ERR_ARG);
    ck_assert_uint_eq(lmq_tokenizer_piece(t, (int32_t)N_IDS).n, 0);
    lmq_tokenizer_close(t);
    /* <0x00> becomes <0x-1>: 4 + three pieces of 8 + 5, 5 and 6 bytes, + 8. */
    memcpy(b.bytes + 4 + 3 * 8 + 5 + 5 + 6 + 8, "<0x-1>", 6);
    expect_refusal(b, LMQ_ERR_UNSUPPORTED, "<0x00>");
    expect_refusal(hf_file("{\"type\":\"BPE\",\"vocab\":{\"a\":4000000000},"
                           "\"merges\":[]}",
                           NULL, NULL, NULL, "[]"),
                   LMQ_ERR_FORMAT, "out of range");
    expect_refusal(hf_file("{\"type\":\"BPE\",\"vocab\":{\"a\":4000000},"
                           "\"merges\":[]}",
                           NULL, NULL, NULL, "[]"),
                   LMQ_ERR_FORMAT, "have ids up to");
}
END_TEST

START_TEST(a_pattern_that_explodes_is_an_error)
{
    struct lmq_tokenizer *t = open_buffer(
        hf_file(WORDS, NULL,
                "{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                "\"(?:a+)+[cd]\"},"
                "\"behavior\":\"Isolated\"}",
                NULL, "[]"));
    struct lmq_ids ids = { 0 };
    struct lmq_error err = { 0 };
    char text[61];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 'b';
    ck_assert_int_eq(lmq_tokenizer_encode(t, text, sizeof(text), 0, &ids,
                                          &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "too many steps") != NULL, "%s",
                  err.message);
    ck_assert_uint_eq(ids.n, 0);
    lmq_ids_clear(&ids);
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(any_bytes_survive)
{
    struct lmq_tokenizer *t = open_buffer(default_spm_file());
    struct random random = { random_seed() };
    unsigned char text[300];

    for (int round = 0; round < 500; round++) {
        size_t n = (size_t)random_below(&random, sizeof(text));
        for (size_t i = 0; i < n; i++)
            text[i] = (unsigned char)random_u64(&random);
        ck_assert(round_trips(t, text, n));
    }
    lmq_tokenizer_close(t);
}
END_TEST

/* ---- Streams ---- */

START_TEST(a_stream_gives_whole_characters)
{
    struct lmq_tokenizer *t = open_buffer(default_spm_file());
    /* "▁ab", the three bytes of U+20AC, a byte that begins nothing. */
    static const int32_t ids[] = { 263, 229, 133, 175, 258 };
    static const size_t sizes[] = { 2, 2, 2, 5, 8 };
    struct lmq_decoder decoder;
    struct lmq_buffer out = { 0 };

    lmq_decoder_begin(&decoder, t, LMQ_DECODE_UTF8);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(lmq_decoder_next(&decoder, ids[i], &out, NULL),
                         LMQ_OK);
        ck_assert_uint_eq(out.n, sizes[i]);
    }
    ck_assert_int_eq(lmq_decoder_next(&decoder, 229, &out, NULL), LMQ_OK);
    ck_assert_uint_eq(out.n, 8);
    ck_assert_int_eq(lmq_decoder_end(&decoder, &out, NULL), LMQ_OK);
    ck_assert_mem_eq(out.bytes, "ab\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd", 11);
    lmq_buffer_free(&out);
    lmq_tokenizer_close(t);
}
END_TEST

/* ---- Real vocabularies ---- */

/* A file of the collection that is not part of the distribution; NULL where
 * it is not at hand. */
static unsigned char *
real_file(const char *name, size_t *n)
{
    char path[4096];
    const char *folder = getenv("LMQUANT_DATA"), *srcdir = getenv("srcdir");
    unsigned char *bytes;

    if (folder != NULL)
        snprintf(path, sizeof(path), "%s/%s", folder, name);
    else
        snprintf(path, sizeof(path), "%s/../shared/data/%s",
                 srcdir == NULL ? "." : srcdir, name);
    if (lmq_file_load(path, (size_t)1 << 30, &bytes, n, NULL) != LMQ_OK) {
        printf("skipped: there is no %s\n", path);
        return NULL;
    }
    return bytes;
}

static struct lmq_tokenizer *
open_real(const char *name)
{
    struct lmq_buffer b = { 0 };

    b.bytes = real_file(name, &b.n);
    return b.bytes == NULL ? NULL : open_buffer(b);
}

/* Texts between lines of "__ggml_vocab_test__", their ids a line each. */
static void
check_vectors(const struct lmq_tokenizer *t, const char *texts,
              const char *lines)
{
    static const char line[] = "\n__ggml_vocab_test__\n";
    size_t n_texts = 0;

    for (const char *end; (end = strstr(texts, line)) != NULL;
         texts = end + sizeof(line) - 1) {
        size_t n = strcspn(lines, "\n");
        const char *ids = encoded(t, texts, (size_t)(end - texts), 0);
        while (n > 0 && *lines == ' ') {
            lines++;
            n--;
        }
        ck_assert_msg(strlen(ids) == n && strncmp(ids, lines, n) == 0,
                      "text %zu: %s, expected %.*s", n_texts, ids, (int)n,
                      lines);
        ck_assert(round_trips(t, texts, (size_t)(end - texts)));
        lines += n + 1;
        n_texts++;
    }
    ck_assert_uint_gt(n_texts, 40);
}

static void
check_file(const char *tokenizer, const char *vectors)
{
    char name[200];
    size_t n;
    struct lmq_tokenizer *t = open_real(tokenizer);

    if (t == NULL)
        return;
    snprintf(name, sizeof(name), "tokenizers/vectors/%s.inp", vectors);
    unsigned char *texts = real_file(name, &n);
    snprintf(name, sizeof(name), "tokenizers/vectors/%s.out", vectors);
    unsigned char *ids = real_file(name, &n);
    if (texts != NULL && ids != NULL)
        check_vectors(t, (const char *)texts, (const char *)ids);
    free(texts);
    free(ids);
    lmq_tokenizer_close(t);
}

START_TEST(known_vectors_come_out)
{
    static const char spm[] = "ggml-vocab-llama-spm.gguf";
    static const char gpt2[] = "ggml-vocab-gpt-2.gguf";
    static const char coder[] = "ggml-vocab-starcoder.gguf";

    check_file("tokenizers/vectors/ggml-vocab-llama-spm.gguf", spm);
    check_file("tokenizers/llama2/tokenizer.model", spm);
    check_file("tokenizers/llama2/tokenizer.bin", spm);
    check_file("tokenizers/vectors/ggml-vocab-gpt-2.gguf", gpt2);
    check_file("tokenizers/gpt2/tokenizer.json", gpt2);
    check_file("tokenizers/vectors/ggml-vocab-starcoder.gguf", coder);
}
END_TEST

/* The same ids for a long text from two files of one vocabulary. */
static void
check_pair(const char *a, const char *b, const char *text)
{
    struct lmq_tokenizer *ta = open_real(a), *tb = open_real(b);
    struct lmq_ids ia = { 0 }, ib = { 0 };
    size_t n;
    unsigned char *bytes = real_file(text, &n);

    if (ta != NULL && tb != NULL && bytes != NULL) {
        ck_assert_uint_eq(lmq_tokenizer_digest(ta), lmq_tokenizer_digest(tb));
        ck_assert_int_eq(lmq_tokenizer_encode(ta, (const char *)bytes, n, 0,
                                              &ia, NULL),
                         LMQ_OK);
        ck_assert_int_eq(lmq_tokenizer_encode(tb, (const char *)bytes, n, 0,
                                              &ib, NULL),
                         LMQ_OK);
        ck_assert_uint_eq(ia.n, ib.n);
        ck_assert_mem_eq(ia.ids, ib.ids, ia.n * sizeof(ia.ids[0]));
        ck_assert(round_trips(ta, bytes, n));
    }
    lmq_ids_clear(&ia);
    lmq_ids_clear(&ib);
    free(bytes);
    lmq_tokenizer_close(ta);
    lmq_tokenizer_close(tb);
}

START_TEST(files_of_one_vocabulary_agree_on_long_texts)
{
    static const char *const texts[] = { "text/tinyshakespeare.txt",
                                         "text/tinystories.txt" };

    for (size_t i = 0; i < 2; i++) {
        check_pair("tokenizers/gpt2/tokenizer.json",
                   "tokenizers/vectors/ggml-vocab-gpt-2.gguf", texts[i]);
        check_pair("tokenizers/llama2/tokenizer.bin",
                   "tokenizers/llama2/tokenizer.model", texts[i]);
        check_pair("tokenizers/llama2/tokenizer.model",
                   "tokenizers/vectors/ggml-vocab-llama-spm.gguf", texts[i]);
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {
        the_same_vocabulary_has_one_digest_and_one_result,
        special_tokens_count_only_when_asked,
        extra_spaces_go_where_the_model_says_so,
        the_surface_of_the_unknown_token_keeps_its_spaces,
        unigram_takes_the_best_path,
        unused_pieces_are_taken_apart_again,
        tiktoken_ranks_are_known_by_their_number,
        hf_llama_agrees_with_sentencepiece,
        split_behaviors_are_those_of_hugging_face,
        metaspace_prepends_where_its_scheme_says,
        byte_level_covers_every_byte,
        digits_stand_alone_or_together,
        normalizers_change_the_text_in_order,
        added_tokens_look_at_what_stands_beside_them,
        configuration_names_begin_and_end,
        what_is_not_understood_is_refused_by_name,
        every_truncation_is_refused_or_smaller,
        ids_out_of_range_and_odd_pieces_are_refused,
        a_pattern_that_explodes_is_an_error,
        any_bytes_survive,
        a_stream_gives_whole_characters,
        known_vectors_come_out,
        files_of_one_vocabulary_agree_on_long_texts,
    };

    return RUN_SUITE("tokenizer", tests);
}
