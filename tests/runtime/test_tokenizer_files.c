/*
 * test_tokenizer_files.c - what SentencePiece's models, GGUF's vocabularies,
 * tiktoken's ranks and Mistral's may say, and what of it is refused.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "convert/export/export_gguf_vocab.h"
#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"

/* ---- SentencePiece ---- */

/* A model of Unigram with byte fallback, and with this normalizer. */
static struct lmq_buffer
spm_with(const void *spec, size_t n)
{
    struct lmq_buffer extra = { 0 };
    unsigned char head[3] = { 0x1a, (unsigned char)(0x80 | (n & 0x7f)),
                              (unsigned char)(n >> 7) };

    add_text(&extra, "\x12\x05\x18\x01\x98\x02\x01");
    add_bytes(&extra, head, sizeof(head));
    add_bytes(&extra, spec, n);
    struct lmq_buffer file = spm_file((const char *)extra.bytes, extra.n);
    lmq_buffer_free(&extra);
    return file;
}

START_TEST(a_model_of_sentencepiece_brings_its_charsmap)
{
    /* No prefix; field 2, of so many bytes, is the charsmap. */
    unsigned char spec[7 + N_CHARSMAP] = { 0x18, 0, 0x20, 0, 0x12,
                                           0x80 | (N_CHARSMAP & 0x7f),
                                           N_CHARSMAP >> 7 };

    write_charsmap(spec + 7);
    struct lmq_tokenizer *t = open_buffer(spm_with(spec, sizeof(spec)));
    ENCODES(t, "Ac", 0, "262 264");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(spaces_may_stay_what_they_are)
{
    /* escape_whitespaces, field 5, is false: no piece has a space, so it is
     * its byte. */
    static const unsigned char spec[] = { 0x18, 0, 0x20, 0, 0x28, 0 };
    struct lmq_tokenizer *t = open_buffer(spm_with(spec, sizeof(spec)));

    ENCODES(t, "ab c", 0, "262 35 264");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_trainer_names_the_control_pieces)
{
    /* Fields 44, 46 and 47: what unknown letters look like, <s> as the end
     * and </s> as the begin. */
    static const char trainer[] = "\x12\x13\x18\x02\xe2\x02\x01?\xf2\x02\x04"
                                  "</s>\xfa\x02\x03<s>";
    static const int32_t unknown = 0;
    struct lmq_tokenizer *t =
        open_buffer(spm_file(trainer, sizeof(trainer) - 1));
    struct lmq_buffer out = { 0 };

    ck_assert_int_eq(lmq_tokenizer_bos(t), 2);
    ck_assert(lmq_tokenizer_is_eos(t, 1));
    ck_assert_int_eq(lmq_tokenizer_decode(t, &unknown, 1, 0, &out, NULL),
                     LMQ_OK);
    ck_assert_uint_eq(out.n, 1);
    ck_assert_int_eq(out.bytes[0], '?');
    lmq_buffer_free(&out);
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_user_piece_is_kept_from_the_charsmap)
{
    struct lmq_buffer b;
    unsigned char spec[7 + N_CHARSMAP] = { 0x18, 0, 0x20, 0, 0x12,
                                           0x80 | (N_CHARSMAP & 0x7f),
                                           N_CHARSMAP >> 7 };

    write_charsmap(spec + 7);
    b = spm_with(spec, sizeof(spec));
    /* Piece 267, of the type 4. */
    add_text(&b, "\x0a\x06\x0a\x02" "cA\x18\x04");
    struct lmq_tokenizer *t = open_buffer(b);
    ENCODES(t, "cAAcb", 0, "267 262 264 261");
    lmq_tokenizer_close(t);
}
END_TEST

/* 0.1 for each byte but one: -3 and 0.5 together are more than -2.75. */
START_TEST(a_user_piece_of_unigram_is_worth_its_bytes)
{
    static const unsigned char spec[] = { 0x18, 0, 0x20, 0 };
    static const char pieces[] =
        "\x0a\x08\x0a\x01x\x15\0\0\x40\xc0"
        "\x0a\x0a\x0a\x06\u00e9\u00e9\u00e9\x18\x04"
        "\x0a\x0e\x0a\x07x\u00e9\u00e9\u00e9\x15\0\0\x30\xc0";
    struct lmq_buffer b = spm_with(spec, sizeof(spec));

    add_bytes(&b, pieces, sizeof(pieces) - 1);
    struct lmq_tokenizer *t = open_buffer(b);
    ENCODES(t, "x\u00e9\u00e9\u00e9", 0, "267 268");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(models_of_sentencepiece_are_refused)
{
    static const struct {
        const char *extra;
        size_t n;
        enum lmq_status status;
        const char *words;
    } cases[] = {
        { "\x12\x02\x18\x03", 4, LMQ_ERR_UNSUPPORTED, "WORD" },
        { "\x12\x02\x18\x09", 4, LMQ_ERR_FORMAT, "model type 9 is none" },
        { "\x12\x05\x18\x01\xc0\x01\x01", 7, LMQ_ERR_UNSUPPORTED,
          "treat_whitespace_as_suffix" },
        { "\x2a\x03\x12\x01x", 5, LMQ_ERR_UNSUPPORTED, "a denormalizer" },
        { "\x2a\x01\x12", 3, LMQ_ERR_FORMAT, "denormalizer_spec" },
        { "\x0a\x02\x0a\x00", 4, LMQ_ERR_FORMAT, "is empty" },
        { "\x0a\x05\x0a\x01x\x18\x09", 7, LMQ_ERR_FORMAT, "is damaged" },
        { "\x0a\x05\x0a\x01x\x18\x06", 7, LMQ_ERR_FORMAT, "not like <0x41>" },
        { "\x0a\x0a\x0a\x06<0x41>\x18\x06", 12, LMQ_ERR_FORMAT, "tokens" },
        { "\x0a\x03\x0a\x01" "a", 5, LMQ_ERR_FORMAT, "the text of another" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refusal(spm_file(cases[i].extra, cases[i].n), cases[i].status,
                       cases[i].words);
    /* Eight bytes of a double that nobody asked for change nothing. */
    struct lmq_tokenizer *t = open_buffer(spm_file(
        SPM_BPE SPM_PLAIN "\x22\x09\x09" "12345678",
        sizeof(SPM_BPE) - 1 + sizeof(SPM_PLAIN) - 1 + 11));
    ENCODES(t, "ab", 0, "263");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_model_without_an_unknown_piece_is_refused)
{
    struct lmq_buffer file = default_spm_file();

    /* The type of the first piece, behind its text and its score. */
    ck_assert_int_eq(file.bytes[15], 2);
    file.bytes[15] = 1;
    expect_refusal(file, LMQ_ERR_FORMAT, "no piece is the unknown one");
}
END_TEST

/* Two more files have what transformers added: one with flags, one with
 * names. */
START_TEST(tokens_are_added_behind_the_last_one)
{
    static const char *const configs[] = {
        "{\"added_tokens_decoder\":{\"1\":{\"content\":\"<s>\"},"
        "\"270\":{\"content\":\"<x>\",\"special\":true},"
        "\"269\":{\"content\":\"<pad>\",\"lstrip\":true}},"
        "\"bos_token\":\"<x>\"}",
        "{\"bos_token\":\"<x>\"}",
        "{\"bos_token\":\"<unk>\"}",
        "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<x>\"}}}",
        "{\"added_tokens_decoder\":{\"4000000000\":{\"content\":\"<x>\"}}}",
    };
    static const char list[] = "{\"<x>\":270,\"<pad>\":269,\"a\":3}";
    struct lmq_buffer file = default_spm_file();
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };

    for (size_t i = 0; i < 5; i++) {
        const struct lmq_blob blobs[] = {
            { "x/tokenizer.model", file.bytes, file.n },
            { "x/tokenizer_config.json", (const unsigned char *)configs[i],
              strlen(configs[i]) },
            { "x/added_tokens.json", (const unsigned char *)list,
              sizeof(list) - 1 },
        };
        enum lmq_status status = lmq_tokenizer_open(blobs, 3, &t, &err);
        if (i >= 3) {
            ck_assert_int_eq(status, LMQ_ERR_FORMAT);
            ck_assert_ptr_nonnull(strstr(err.message, "token"));
            continue;
        }
        ck_assert_msg(status == LMQ_OK, "%s", err.message);
        ck_assert_uint_eq(lmq_tokenizer_size(t), 271);
        ck_assert_int_eq(lmq_tokenizer_bos(t), i == 2 ? 0 : 270);
        ENCODES(t, "a<x>", LMQ_ENCODE_SPECIAL, "259 260 270");
        /* Without flags none is special. */
        if (i > 0)
            ENCODES(t, "a<x>", 0, "259 260 270");
        ENCODES(t, "a <pad>", 0, i == 0 ? "259 260 269" : "259 260 259 269");
        lmq_tokenizer_close(t);
        /* Of a model with rows for one of them. */
        ck_assert_int_eq(lmq_tokenizer_open_for(blobs, 1, 270, &t, &err),
                         LMQ_OK);
        const size_t n_own = lmq_tokenizer_size(t);
        lmq_tokenizer_close(t);
        const struct lmq_blob some[] = {blobs[0], blobs[2]};
        ck_assert_int_eq(lmq_tokenizer_open_for(some, 2, 270, &t, &err),
                         LMQ_OK);
        ck_assert_uint_eq(lmq_tokenizer_size(t), 270);
        lmq_tokenizer_close(t);
        ck_assert_int_eq(lmq_tokenizer_open_for(some, 2, n_own, &t, &err),
                         LMQ_OK);
        ck_assert_uint_eq(lmq_tokenizer_size(t), n_own);
        lmq_tokenizer_close(t);
    }
    lmq_buffer_free(&file);
}
END_TEST

/* So many that the texts of the model itself move. */
START_TEST(many_tokens_are_added_to_unigram)
{
    static const unsigned char spec[] = { 0x18, 0, 0x20, 0 };
    struct lmq_buffer file = spm_with(spec, sizeof(spec)), list = { 0 };
    char item[64];
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };

    add_text(&file, "\x0a\x06\x0a\x02" "<c\x18\x04");
    for (int id = N_IDS + 1; id < 4000; id++) {
        snprintf(item, sizeof(item), "%c\"added %d\":%d",
                 list.n == 0 ? '{' : ',', id, id);
        add_text(&list, item);
    }
    add_text(&list, "}");
    const struct lmq_blob blobs[] = {
        { "x/tokenizer.model", file.bytes, file.n },
        { "x/added_tokens.json", list.bytes, list.n },
    };
    ck_assert_msg(lmq_tokenizer_open(blobs, 2, &t, &err) == LMQ_OK, "%s",
                  err.message);
    lmq_buffer_free(&file);
    lmq_buffer_free(&list);
    ENCODES(t, "abc<cab", 0, "262 264 267 262");
    ENCODES(t, "aadded 3999", 0, "260 3999");
    lmq_tokenizer_close(t);
}
END_TEST

/* Whose index does not grow in place; a sanitizer sees what becomes of the
 * first one. */
START_TEST(tokens_are_added_to_a_large_vocabulary)
{
    static const char list[] = "{\"<x>\":70000}";
    static const unsigned char spec[] = { 0x18, 0, 0x20, 0 };
    struct lmq_buffer file = spm_with(spec, sizeof(spec));
    char text[32];
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };

    for (int id = N_IDS; id < 70000; id++) {
        snprintf(text, sizeof(text), "\x0a\x08\x0a\x06z%05d", id);
        add_text(&file, text);
    }
    const struct lmq_blob blobs[] = {
        { "x/tokenizer.model", file.bytes, file.n },
        { "x/added_tokens.json", (const unsigned char *)list,
          sizeof(list) - 1 },
    };
    ck_assert_msg(lmq_tokenizer_open(blobs, 2, &t, &err) == LMQ_OK, "%s",
                  err.message);
    lmq_buffer_free(&file);
    ENCODES(t, "z00300<x>z69999", 0, "300 70000 69999");
    lmq_tokenizer_close(t);
}
END_TEST

/* ---- GGUF ---- */

#define KEY(name) "tokenizer.ggml." name

static struct lmq_buffer
byte_level_file(const char *merge)
{
    struct lmq_buffer b = gguf_file("gpt2", "gpt-2");

    add_gguf_texts(&b, KEY("merges"), &merge, 1);
    return b;
}

START_TEST(a_gguf_of_bytes_merges_them)
{
    struct lmq_buffer b = byte_level_file("a b");

    add_gguf_u32(&b, KEY("bos_token_id"), 1);
    add_gguf_u32(&b, KEY("eos_token_id"), 2);
    add_gguf_u32(&b, KEY("unknown_token_id"), 0);
    struct lmq_tokenizer *t = open_buffer(b);
    ENCODES(t, "abcab", 0, "262 264 262");
    ENCODES(t, "a</s>b", LMQ_ENCODE_SPECIAL, "260 2 261");
    ENCODES(t, "ab", LMQ_ENCODE_BOS | LMQ_ENCODE_EOS, "1 262 2");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_gguf_of_unigram_brings_its_charsmap)
{
    unsigned char map[N_CHARSMAP];
    struct lmq_buffer b = gguf_file("t5", "default");

    write_charsmap(map);
    add_gguf_bytes(&b, KEY("precompiled_charsmap"), map, sizeof(map));
    struct lmq_tokenizer *t = open_buffer(b);
    ENCODES(t, "Ac", 0, "263 264");
    lmq_tokenizer_close(t);
}
END_TEST

/* As in llama.cpp, which puts a space before each text between them. */
START_TEST(a_gguf_has_the_tokens_of_users_in_the_text_itself)
{
    struct lmq_buffer b = gguf_file("llama", "default");

    lmq_store_u32le(b.bytes + b.n - 4 * 3, LMQ_PIECE_USER);
    struct lmq_tokenizer *t = open_buffer(b);
    ENCODES(t, "cab", 0, "264 263");
    ENCODES(t, "abcab cc", 0, "263 264 263 259 264 264");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(vocabularies_of_gguf_are_refused)
{
    static const char *const one[] = { "a b" };
    struct lmq_buffer b;

    expect_refusal(gguf_file("gpt2", ""), LMQ_ERR_UNSUPPORTED,
                   "nobody knows how text is split");
    expect_refusal(gguf_file("gpt2", "gpt-2"), LMQ_ERR_FORMAT,
                   "there is no " KEY("merges"));
    expect_refusal(byte_level_file("ab"), LMQ_ERR_FORMAT, "not two pieces");
    expect_refusal(byte_level_file("a z"), LMQ_ERR_FORMAT, "needs the token");
    b = gguf_file("t5", "default");
    add_gguf_texts(&b, KEY("precompiled_charsmap"), one, 1);
    expect_refusal(b, LMQ_ERR_FORMAT, "not an array of bytes");
    b = gguf_file("llama", "default");
    add_gguf_u32(&b, KEY("eos_token_id"), N_IDS);
    expect_refusal(b, LMQ_ERR_FORMAT, "there are 267 tokens");
    b = gguf_file("llama", "default");
    add_gguf_u32(&b, KEY("merges"), 1);
    expect_refusal(b, LMQ_ERR_FORMAT, KEY("merges"));
    /* The types are the last column. */
    b = gguf_file("llama", "default");
    lmq_store_u32le(b.bytes + b.n - 4, 9);
    expect_refusal(b, LMQ_ERR_FORMAT, "has the type 9");
    /* One type less, and the end of the last is cut. */
    b = gguf_file("llama", "default");
    lmq_store_u64le(b.bytes + b.n - 4 * N_IDS - 8, N_IDS - 1);
    b.n -= 4;
    expect_refusal(b, LMQ_ERR_FORMAT, "266 items for 267 tokens");
    expect_refusal(gguf_file("gemma4", "default"), LMQ_ERR_FORMAT,
                   "there are no " KEY("merges"));
}
END_TEST

/* A GGUF of a SentencePiece model, and the one remark on it, or none. */
static struct lmq_buffer
gguf_of_spm(struct lmq_buffer file, const char *expected)
{
    const struct lmq_blob blob = {"tokenizer.model", file.bytes, file.n};
    const struct lmq_gguf_vocab vocab = {.name = "x",
                                         .blobs = &blob,
                                         .n_blobs = 1,
                                         .n_tokens = N_IDS,
                                         .bos = -1};
    struct lmq_gguf_builder builder = {0};
    struct lmq_notes notes = {0};
    struct lmq_error err;

    lmq_gguf_build_begin(&builder);
    ck_assert_msg(lmq_gguf_put_vocab(&builder, &vocab, &notes, &err) == LMQ_OK,
                  "%s", err.message);
    lmq_gguf_build_end(&builder, 0);
    ck_assert(!builder.out.has_failed);
    ck_assert_uint_eq(notes.n, expected == NULL ? 0 : 1);
    ck_assert_msg(expected == NULL || strstr(notes.texts[0], expected) != NULL,
                  "%s", notes.texts[0]);
    lmq_notes_free(&notes);
    lmq_buffer_free(&file);
    return builder.out;
}

/* llama.cpp has no such models and keeps the spaces, so that is remarked. */
START_TEST(extra_spaces_go_in_a_gguf_of_the_model_too)
{
    struct lmq_tokenizer *t = open_buffer(gguf_of_spm(
        spm_file(SPM_BPE, sizeof(SPM_BPE) - 1), "drops extra spaces"));

    ENCODES(t, "  ab   ab  ", 0, "263 263");
    lmq_tokenizer_close(t);
}
END_TEST

/* Of a piece of such a file. */
static void
set_type(struct lmq_buffer *file, const char *text, enum lmq_piece_type type)
{
    const size_t n = strlen(text), n_score = 5;

    for (size_t i = 1; i + n + n_score + 1 < file->n; i++)
        if (file->bytes[i - 1] == n &&
            memcmp(file->bytes + i, text, n) == 0) {
            file->bytes[i + n + n_score + 1] = (unsigned char)type;
            return;
        }
    ck_abort_msg("there is no piece '%s'", text);
}

/* A SentencePiece model finds its user's tokens where a text has its space
 * already, a GGUF where each part between them gets one. */
START_TEST(tokens_of_users_are_told_where_a_space_is_added)
{
    static const char no_space[] = SPM_BPE "\x1a\x04\x18\x00\x20\x00";
    struct lmq_buffer with = default_spm_file();
    struct lmq_buffer without = spm_file(no_space, sizeof(no_space) - 1);

    set_type(&with, "\xc3\xa4", LMQ_PIECE_USER);
    with = gguf_of_spm(with, "of 1 added tokens GGUF cannot say");
    lmq_buffer_free(&with);
    set_type(&without, "\xc3\xa4", LMQ_PIECE_USER);
    without = gguf_of_spm(without, NULL);
    lmq_buffer_free(&without);
}
END_TEST

/* There they are looked for in the text itself, which has no marks. */
START_TEST(spaces_of_users_are_found_in_a_gguf)
{
#define NO_SPACE "\x1a\x04\x18\x00\x20\x00"
    static const char bpe[] = SPM_BPE NO_SPACE;
    static const char unigram[] = "\x12\x05\x18\x01\x98\x02\x01" NO_SPACE;

    for (int i = 0; i < 4; i++) {
        struct lmq_buffer file = spm_file(i % 2 == 0 ? bpe : unigram,
                                          sizeof(bpe) - 1);
        set_type(&file, MARK, LMQ_PIECE_USER);
        struct lmq_tokenizer *t =
            open_buffer(i < 2    ? file
                        : i == 2 ? gguf_of_spm(file, NULL)
                                 : gguf_of_spm(file, "the unknown token"));
        ENCODES(t, "ab ab a", 0, "262 259 262 259 260");
        lmq_tokenizer_close(t);
    }
}
END_TEST

/* What llama.cpp makes of such models otherwise. */
START_TEST(what_sentencepiece_has_and_llama_cpp_has_not_is_told)
{
#define UNIGRAM "\x12\x05\x18\x01\x98\x02\x01"
#define DROPS_ONLY "\x1a\x04\x18\x00\x20\x01"
    static const struct {
        const char *fields, *note;
        size_t n;
        bool has_bytes;
    } cases[] = {
#define CASE(fields, has_bytes, note)                                         \
    {fields, note, sizeof(fields) - 1, has_bytes}
        CASE(SPM_BPE SPM_PLAIN, true, NULL),
        CASE(SPM_BPE SPM_PLAIN, false, "breaks off"),
        CASE(UNIGRAM SPM_PLAIN, false, NULL),
        CASE(UNIGRAM SPM_PLAIN, true, "the unknown token"),
        CASE(UNIGRAM DROPS_ONLY, false, "a space before each text"),
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_buffer b = spm_file(cases[i].fields, cases[i].n);
        char name[8];
        for (size_t id = 3; id < FIRST && !cases[i].has_bytes; id++)
            set_type(&b, piece_text(id, name), LMQ_PIECE_CONTROL);
        b = gguf_of_spm(b, cases[i].note);
        lmq_buffer_free(&b);
    }
}
END_TEST

START_TEST(an_undefined_type_is_a_plain_piece)
{
    struct lmq_buffer b = gguf_file("llama", "default");

    lmq_store_u32le(b.bytes + b.n - 4 * (N_PIECES - 4), 0);
    struct lmq_tokenizer *t = open_buffer(b);
    ENCODES(t, "ab", 0, "263");
    lmq_tokenizer_close(t);
}
END_TEST

/* ---- tiktoken ---- */

START_TEST(a_line_that_is_no_rank_is_refused)
{
    static const char *const lines[] = { "YQ== x\n", "Y!== 1\n", "YQ==\n",
                                         "YQ== 1 2\n" };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct lmq_buffer b = { 0 };
        add_text(&b, "IQ== 0\r\nIg== 1\n");
        add_text(&b, lines[i]);
        expect_refusal(b, LMQ_ERR_FORMAT, "the line at offset 15");
    }
}
END_TEST

/* One more file says how its special tokens are called. */
START_TEST(reserved_tokens_have_names_beside)
{
    static const char config[] =
        "{\"added_tokens_decoder\":{\"163584\":{\"content\":\"[BOS]\"},"
        "\"163585\":{\"content\":\"[EOS]\"},\"163586\":{\"content\":"
        "\"<|im_end|>\"},\"7\":{\"content\":\"x\"}},"
        "\"bos_token\":\"[BOS]\",\"eos_token\":\"[EOS]\"}";
    struct lmq_buffer file = tiktoken_file(163584);
    struct lmq_blob blobs[] = {
        { "x/tiktoken.model", file.bytes, file.n },
        { "x/tokenizer_config.json", (const unsigned char *)config,
          sizeof(config) - 1 },
    };
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };

    ck_assert_msg(lmq_tokenizer_open(blobs, 2, &t, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert_uint_eq(lmq_tokenizer_size(t), 163584 + 256);
    ck_assert_int_eq(lmq_tokenizer_bos(t), 163584);
    ck_assert(lmq_tokenizer_is_eos(t, 163585));
    ck_assert_uint_eq(lmq_tokenizer_default_flags(t), 0);
    /* "ab" and "c" are 256 + 0x6162 and 0x63; Han stands alone. */
    ENCODES(t, "abc<|im_end|>", LMQ_ENCODE_SPECIAL, "25186 99 163586");
    ENCODES(t, "<|reserved_token_163700|>", LMQ_ENCODE_SPECIAL, "163700");
    ENCODES(t, "a\xe4\xb8\xad", 0, "97 228 47533");
    ck_assert(round_trips(t, "\xff\0\xc3z", 4));
    lmq_tokenizer_close(t);
    ck_assert_int_eq(lmq_tokenizer_open(blobs, 1, &t, &err), LMQ_OK);
    ENCODES(t, "<|reserved_token_163586|>", LMQ_ENCODE_SPECIAL, "163586");
    lmq_tokenizer_close(t);
    lmq_buffer_free(&file);
}
END_TEST

/* ---- tekken.json ---- */

/* The same ranks as Mistral writes them, between a beginning and an end. */
static struct lmq_buffer
tekken_file(const char *config, unsigned n_ranks, const char *end)
{
    struct lmq_buffer ranks = tiktoken_file(n_ranks), b = { 0 };
    const char *at = (const char *)ranks.bytes;

    add_text(&b, config);
    for (unsigned i = 0; i < n_ranks; i++) {
        char item[96];
        const char *space = strchr(at, ' ');
        snprintf(item, sizeof(item),
                 "%s{\"rank\":%u,\"token_bytes\":\"%.*s\",\"token_str\":"
                 "\"\\u0000\"}", i == 0 ? "" : ",", i, (int)(space - at), at);
        add_text(&b, item);
        at = strchr(at, '\n') + 1;
    }
    add_text(&b, end);
    lmq_buffer_free(&ranks);
    return b;
}

#define TEKKEN(all, special)                                                  \
    "\n{\"config\":{\"pattern\":\"\\\\p{L}+|[^\\\\p{L}]\","                    \
    "\"default_vocab_size\":" all ",\"default_num_special_tokens\":" special \
    "},\"vocab\":["

START_TEST(ranks_of_mistral_stand_behind_special_tokens)
{
    static const char names[] =
        "],\"special_tokens\":[{\"rank\":2,\"token_str\":\"</s>\"},"
        "{\"rank\":4,\"token_str\":\"[INST]\"},"
        "{\"rank\":1,\"token_str\":\"<s>\"}]}";
    struct lmq_tokenizer *t =
        open_buffer(tekken_file(TEKKEN("25196", "6"), 25200, names));

    ck_assert_uint_eq(lmq_tokenizer_size(t), 25196);
    ck_assert_int_eq(lmq_tokenizer_bos(t), 1);
    ck_assert(lmq_tokenizer_is_eos(t, 2));
    ck_assert_uint_eq(lmq_tokenizer_default_flags(t), LMQ_ENCODE_BOS);
    ENCODES(t, "abc", 0, "25192 105");
    ENCODES(t, "[INST]a<SPECIAL_3>", LMQ_ENCODE_SPECIAL, "4 103 3");
    ENCODES(t, "[INST", 0, "97 19028 21594");
    ENCODES(t, "ae", 0, "25195");
    ENCODES(t, "af", 0, "103 108"); /* the last ten are not used */
    ck_assert(round_trips(t, "\xff\0\xc3z", 4));
    lmq_tokenizer_close(t);
    /* A name is all of it. */
    t = open_buffer(tekken_file(TEKKEN("260", "4"), 256,
                                "],\"special_tokens\":[{\"rank\":1,"
                                "\"token_str\":\"a\\u0000b\"}]}"));
    ENCODES(t, "a\0ba", LMQ_ENCODE_SPECIAL, "1 101");
    lmq_tokenizer_close(t);
    /* Older files do not name them. */
    t = open_buffer(tekken_file(TEKKEN("276", "20"), 256, "]}"));
    ENCODES(t, "<s>[/SYSTEM_PROMPT]a", LMQ_ENCODE_SPECIAL, "1 18 117");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(ranks_of_mistral_are_refused)
{
    static const struct {
        const char *config, *end, *says;
    } cases[] = {
        { TEKKEN("277", "20"), "]}", "277 tokens, 20 of them special, cannot "
                                     "be of a list of 256" },
        { TEKKEN("20", "20"), "]}", "20 tokens, 20 of them special" },
        { TEKKEN("70000", "69999"), "]}", "69999 of them special" },
        { TEKKEN("276", "20"), ",7]}", NULL },
        { TEKKEN("277", "20"), ",{\"rank\":9,\"token_bytes\":\"YQ==\"}]}",
          "token number 256 has another rank" },
        { TEKKEN("277", "20"), ",{\"rank\":256,\"token_bytes\":\"?\"}]}",
          "token number 256 has another rank" },
        { TEKKEN("277", "20"), ",{\"rank\":256,\"token_bytes\":\"YQ==\"}]}",
          "" },
        { TEKKEN("276", "20"), "],\"special_tokens\":7}", "is no list" },
        { TEKKEN("276", "20"), "],\"special_tokens\":[{\"rank\":20,"
                               "\"token_str\":\"a\"}]}",
          "special token number 0 has no text" },
        { TEKKEN("276", "20"), "],\"special_tokens\":[{\"rank\":0,"
                               "\"token_str\":\"a\"},{\"rank\":0,"
                               "\"token_str\":\"b\"}]}",
          "special token number 1 has no text" },
        { "{\"config\":{\"default_num_special_tokens\":3},\"vocab\":[", "]}",
          "lacks 'vocab', or 'pattern'" },
        { TEKKEN("275", "20"), "]}", "no token is the byte 255" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_buffer b =
            tekken_file(cases[i].config, 256, cases[i].end);
        if (cases[i].says != NULL)
            expect_refusal(b, LMQ_ERR_FORMAT, cases[i].says);
        else /* beyond what is used anything may stand */
            lmq_tokenizer_close(open_buffer(b));
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_model_of_sentencepiece_brings_its_charsmap,
        spaces_may_stay_what_they_are,
        a_trainer_names_the_control_pieces,
        a_user_piece_is_kept_from_the_charsmap,
        a_user_piece_of_unigram_is_worth_its_bytes,
        models_of_sentencepiece_are_refused,
        tokens_are_added_behind_the_last_one,
        many_tokens_are_added_to_unigram,
        tokens_are_added_to_a_large_vocabulary,
        a_model_without_an_unknown_piece_is_refused,
        a_gguf_of_bytes_merges_them,
        a_gguf_of_unigram_brings_its_charsmap,
        a_gguf_has_the_tokens_of_users_in_the_text_itself,
        vocabularies_of_gguf_are_refused,
        extra_spaces_go_in_a_gguf_of_the_model_too,
        tokens_of_users_are_told_where_a_space_is_added,
        spaces_of_users_are_found_in_a_gguf,
        what_sentencepiece_has_and_llama_cpp_has_not_is_told,
        an_undefined_type_is_a_plain_piece,
        a_line_that_is_no_rank_is_refused,
        reserved_tokens_have_names_beside,
        ranks_of_mistral_stand_behind_special_tokens,
        ranks_of_mistral_are_refused,
    };

    return RUN_SUITE("tokenizer_files", tests);
}
