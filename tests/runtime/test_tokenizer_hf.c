/*
 * test_tokenizer_hf.c - small tokenizers of Hugging Face, step by step.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"

/* ---- Hugging Face ---- */

START_TEST(hf_llama_agrees_with_sentencepiece)
{
    struct lmq_buffer model = { 0 };
    char name[8], item[64];

    add_text(&model, "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":"
                     "true,\"byte_fallback\":true,\"vocab\":{");
    for (size_t id = 0; id < N_IDS; id++) {
        snprintf(item, sizeof(item), "%s\"%s\":%zu", id == 0 ? "" : ",",
                 piece_text(id, name), id);
        add_text(&model, item);
    }
    add_text(&model, "},\"merges\":[\"a b\",\"" MARK " ab\",\"" MARK
                     " c\"]}");
    add_bytes(&model, "", 1);
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

/* A name with an escape is the same name, but not to the quick look at the
 * tables. */
static bool
open_slowly(const struct lmq_buffer *file, struct lmq_tokenizer **t,
            struct lmq_error *err)
{
    static const char name[] = "\"merges\"", other[] = "\"merg\\u0065s\"";
    struct lmq_buffer text = { 0 };
    unsigned char *at = memmem(file->bytes, file->n, name, 8);

    if (at == NULL)
        return false;
    size_t before = (size_t)(at - file->bytes);
    add_bytes(&text, file->bytes, before);
    add_text(&text, other);
    add_bytes(&text, at + 8, file->n - before - 8);
    struct lmq_blob blob = { "tokenizer", text.bytes, text.n };
    lmq_tokenizer_open(&blob, 1, t, err);
    lmq_buffer_free(&text);
    return true;
}

static void
assert_same_either_way(const struct lmq_buffer *file)
{
    struct lmq_tokenizer *quick = NULL, *slow = NULL;
    struct lmq_blob blob = { "tokenizer", file->bytes, file->n };
    struct lmq_error err = { 0 }, slow_err = { 0 };

    lmq_tokenizer_open(&blob, 1, &quick, &err);
    if (open_slowly(file, &slow, &slow_err)) {
        ck_assert_msg((quick == NULL) == (slow == NULL), "%.*s: '%s', '%s'",
                      (int)file->n, (char *)file->bytes, err.message,
                      slow_err.message);
        if (quick != NULL)
            ck_assert_uint_eq(lmq_tokenizer_digest(quick),
                              lmq_tokenizer_digest(slow));
    }
    lmq_tokenizer_close(quick);
    lmq_tokenizer_close(slow);
}

/* Whatever one byte may be; and the same error where it is one. */
START_TEST(tables_are_read_as_trees_are)
{
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"<unk>\":0,\"a\":1,\"b\" :\t2,"
        "\"a\\u0062\":3,\"\\ud83d\\ude00\":4,\"\xc3\xa9\" : 5,\"\\n\":10},"
        "\"merges\" : [\"a b\"]}";
    static const char replaced[] = "\"\\,:[]{}a0- u\x01\xff";
    struct lmq_buffer file =
        hf_file(model, NULL, NULL, NULL,
                "[{\"id\":3,\"content\":\"ab\",\"special\":true}]");

    assert_same_either_way(&file);
    for (size_t i = 0; i < file.n; i++) {
        unsigned char was = file.bytes[i];
        for (size_t j = 0; j < sizeof(replaced); j++) {
            file.bytes[i] = (unsigned char)replaced[j];
            assert_same_either_way(&file);
        }
        file.bytes[i] = was;
    }
    for (; file.n > 0; file.n--)
        assert_same_either_way(&file);
    lmq_buffer_free(&file);
    expect_refusal(hf_file("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1},"
                           "\"merges\":[]}",
                           NULL, NULL, NULL, NULL),
                   LMQ_ERR_FORMAT, "duplicate object key");
}
END_TEST

/* Far more of them than the vocabulary before them is long. */
START_TEST(merges_may_be_full_of_escapes)
{
    enum { N_MERGES = 20000 };
    struct lmq_buffer model = { 0 };

    add_text(&model, "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\\"\":1,"
                     "\"a\\\"\":2},\"merges\":[");
    for (int i = 0; i < N_MERGES; i++)
        add_text(&model, i == 0 ? "[\"a\",\"\\u0022\"]"
                                : ",[\"a\",\"\\u0022\"]");
    add_text(&model, "]}");
    add_bytes(&model, "", 1);
    struct lmq_tokenizer *t = open_buffer(
        hf_file((const char *)model.bytes, NULL, NULL, NULL, NULL));
    ENCODES(t, "a\"\"", 0, "2 1");
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

/* What a step drops before is no beginning, though nothing else is left. */
START_TEST(a_prefix_is_for_what_begins_the_text)
{
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"" MARK "\":0,\"a\":1},"
        "\"merges\":[]}";
#define FIRST_ONLY                                                            \
    "{\"type\":\"Metaspace\",\"replacement\":\"" MARK                          \
    "\",\"prepend_scheme\":\"first\"}"
    struct lmq_tokenizer *t = open_buffer(hf_file(
        model, NULL,
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
        "\"WhitespaceSplit\"}," FIRST_ONLY "]}",
        NULL, "[]"));

    ENCODES(t, "a a", 0, "0 1 1");
    ENCODES(t, " a", 0, "1");
    lmq_tokenizer_close(t);
    expect_refusal(hf_file(model, "{\"type\":\"Strip\"}", FIRST_ONLY, NULL,
                           "[]"),
                   LMQ_ERR_UNSUPPORTED, "first behind a normalizer");
    expect_refusal(hf_file(model,
                           "{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
                           "\"^ +\"},\"content\":\"\"}",
                           FIRST_ONLY, NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "first behind a normalizer");
    expect_refusal(hf_file(model, "{\"type\":\"Nmt\"}", FIRST_ONLY, NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "first behind a normalizer");
    expect_refusal(hf_file(model, "{\"type\":\"StripAccents\"}", FIRST_ONLY,
                           NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "first behind a normalizer");
    t = open_buffer(hf_file(model, "{\"type\":\"Strip\",\"strip_left\":false}",
                            FIRST_ONLY, NULL, "[]"));
    ENCODES(t, "a ", 0, "0 1");
    lmq_tokenizer_close(t);
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

/* U+00E9 is the first byte of U+9805, U+0120 the space. */
START_TEST(an_added_letter_of_byte_level_keeps_its_byte)
{
    struct lmq_tokenizer *t = open_buffer(
        hf_file("{\"type\":\"BPE\",\"vocab\":{\"\u00e9\":0,\"\u0142\":1,"
                "\"\u0127\":2,\"a\":3,\"\u0120\":4},\"merges\":[]}",
                NULL, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
                "{\"type\":\"ByteLevel\"}",
                "[{\"id\":0,\"content\":\"\u00e9\"},"
                "{\"id\":4,\"content\":\"\u0120\",\"special\":true}]"));

    ENCODES(t, "\u9805", 0, "0 1 2");
    ENCODES(t, "a a", 0, "3 4 3");
    ENCODES(t, "a\u00e9\u0120", LMQ_ENCODE_SPECIAL, "3 0 4");
    ck_assert(round_trips(t, "\u9805", 3));
    lmq_tokenizer_close(t);
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

START_TEST(added_tokens_are_what_normalizing_leaves_of_them)
{
    static const char lowercase[] = "{\"type\":\"Lowercase\"}";
    static const char no_a[] =
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
        "\"content\":\"\"}";
    struct lmq_tokenizer *t = open_buffer(hf_file(
        WORDS, lowercase, NULL, NULL,
        "[{\"id\":9,\"content\":\"Bb\",\"normalized\":true},"
        "{\"id\":10,\"content\":\"bB\",\"normalized\":true,\"special\":true},"
        "{\"id\":11,\"content\":\"..\",\"normalized\":true},"
        "{\"id\":12,\"content\":\"A\",\"normalized\":true},"
        "{\"id\":1,\"content\":\"a\",\"normalized\":false}]"));

    ENCODES(t, "BB1a..A", LMQ_ENCODE_SPECIAL, "10 4 1 11 12");
    lmq_tokenizer_close(t);
    expect_refusal(hf_file(WORDS, no_a, NULL, NULL,
                           "[{\"id\":9,\"content\":\"aa\","
                           "\"normalized\":true}]"),
                   LMQ_ERR_UNSUPPORTED, "nothing is left of added token 9");
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

START_TEST(what_white_space_is_taken_from_is_found_all_the_same)
{
    struct lmq_tokenizer *t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\" \":1},\"merges\":[]}", NULL,
        NULL, NULL,
        "[{\"id\":2,\"content\":\"<e>\",\"rstrip\":true},"
        "{\"id\":3,\"content\":\"\\n\"},"
        "{\"id\":4,\"content\":\"\\t\",\"rstrip\":true},"
        "{\"id\":5,\"content\":\"<l>\",\"lstrip\":true}]"));

    ENCODES(t, "<e>\na", 0, "2 3 0");
    ENCODES(t, "<e> \n\t a", 0, "2 3 4 0");
    ENCODES(t, "\t\t a", 0, "4 4 0");
    /* Behind such a token white space is text again. */
    ENCODES(t, "<e>\n a", 0, "2 3 1 0");
    ENCODES(t, "<e> <l> a", 0, "2 5 1 0");
    ENCODES(t, "<e>  ", 0, "2");
    lmq_tokenizer_close(t);
    t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}", NULL, NULL,
        NULL,
        "[{\"id\":1,\"content\":\"<e>\",\"rstrip\":true,\"normalized\":true},"
        "{\"id\":2,\"content\":\"\\n\",\"normalized\":true}]"));
    ENCODES(t, "<e> \na", 0, "1 2 0");
    lmq_tokenizer_close(t);
    /* Of one that takes from both sides nothing is left there. */
    t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}", NULL, NULL,
        NULL,
        "[{\"id\":1,\"content\":\"<e>\",\"rstrip\":true},"
        "{\"id\":2,\"content\":\"\\n\",\"lstrip\":true,\"rstrip\":true}]"));
    ENCODES(t, "a\n\n\na", 0, "0 2 0");
    ENCODES(t, "<e> \n a", 0, "1 0");
    lmq_tokenizer_close(t);
}
END_TEST

/* Each takes all that follows, which is not looked through again. */
START_TEST(many_tokens_share_a_run_of_white_space)
{
    enum { N = 1 << 18 };
    struct lmq_tokenizer *t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}", NULL, NULL,
        NULL, "[{\"id\":1,\"content\":\"\\n\",\"rstrip\":true}]"));
    char *text = malloc(N);
    struct lmq_ids ids = { 0 };
    struct lmq_error err;

    memset(text, '\n', N);
    ck_assert_int_eq(lmq_tokenizer_encode(t, text, N, 0, &ids, &err), LMQ_OK);
    ck_assert_uint_eq(ids.n, N);
    lmq_ids_clear(&ids);
    free(text);
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_word_that_spells_a_byte_is_looked_up_whole)
{
    struct lmq_tokenizer *t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"byte_fallback\":true,\"ignore_merges\":true,"
        "\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"<0x4A>\":1},\"merges\":[]}",
        NULL, NULL, NULL, "[]"));

    ENCODES(t, "<0x4A>", 0, "1");
    ENCODES(t, "<0x4a>", 0, "0 0 0 0 0 0");
    lmq_tokenizer_close(t);
}
END_TEST

/* To Hugging Face; the first to llama.cpp. */
START_TEST(the_last_of_equal_merges_counts)
{
    struct lmq_tokenizer *t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,"
        "\"bc\":4},\"merges\":[\"a b\",\"b c\",\"a b\"]}",
        NULL, NULL, NULL, "[]"));

    ENCODES(t, "abc", 0, "0 4");
    lmq_tokenizer_close(t);
}
END_TEST

/* A single word is not looked for in "ai": but it is as likely as it was. A
 * special token's name stays text, if it is not a letter. */
START_TEST(unigram_finds_what_was_added)
{
    static const char model[] =
        "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",-30],"
        "[\"a\",-4.2],[\"i\",-6.1],[\"ai\",-6.9],[\"ia\",0]]}";
    struct lmq_tokenizer *t = open_buffer(
        hf_file(model, NULL, NULL, NULL,
                "[{\"id\":1,\"content\":\"a\",\"single_word\":true},"
                "{\"id\":4,\"content\":\"ia\",\"special\":true}]"));

    ENCODES(t, "ai", 0, "3");
    ENCODES(t, "ia", 0, "2 1");
    ENCODES(t, "xia", LMQ_ENCODE_SPECIAL, "0 4");
    lmq_tokenizer_close(t);
    t = open_buffer(hf_file(model, NULL, NULL, NULL,
                            "[{\"id\":1,\"content\":\"a\",\"special\":true,"
                            "\"single_word\":true}]"));
    ENCODES(t, "aa", 0, "1 1");
    lmq_tokenizer_close(t);
}
END_TEST

/* Hugging Face counts them and does not ask what number they have. */
START_TEST(added_tokens_have_the_ids_that_hugging_face_gives_them)
{
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\".\":3},"
        "\"merges\":[\"a b\"]}";
    struct lmq_tokenizer *t = open_buffer(
        hf_file(model, NULL, NULL, NULL,
                "[{\"id\":3,\"content\":\".\",\"special\":true},"
                "{\"id\":4,\"content\":\"<x>\"}]"));

    ENCODES(t, "b.a<x>", LMQ_ENCODE_SPECIAL, "1 3 0 4");
    lmq_tokenizer_close(t);
    expect_refusal(hf_file(model, NULL, NULL, NULL,
                           "[{\"id\":4,\"content\":\"ab\"}]"),
                   LMQ_ERR_UNSUPPORTED, "added token 4 is token 2");
    expect_refusal(hf_file(model, NULL, NULL, NULL,
                           "[{\"id\":5,\"content\":\"<x>\"}]"),
                   LMQ_ERR_UNSUPPORTED, "added token 5 is number 4");
    expect_refusal(hf_file("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":2},"
                           "\"merges\":[]}",
                           NULL, NULL, NULL,
                           "[{\"id\":3,\"content\":\"<x>\"}]"),
                   LMQ_ERR_UNSUPPORTED, "added token 3 is number 2");
    expect_refusal(hf_file(model, NULL, NULL, NULL,
                           "[{\"id\":4,\"content\":\"<x>\"},"
                           "{\"id\":5,\"content\":\"<x>\"}]"),
                   LMQ_ERR_UNSUPPORTED, "two added tokens have the text '<x>'");
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

/* As transformers 4 does. */
START_TEST(classes_heed_what_is_said_of_the_begin_token)
{
    static const struct {
        const char *class;
        unsigned flags;
    } cases[] = {
        {"\"LlamaTokenizer\"", LMQ_ENCODE_BOS},
        {"\"GPTNeoXTokenizerFast\"", LMQ_ENCODE_BOS},
        {"\"LlamaTokenizerFaster\"", 0},
        {"\"GPT2Tokenizer\"", 0},
        {"\"PreTrainedTokenizerFast\"", 0},
        {"\"Own\",\"auto_map\":{}", LMQ_ENCODE_BOS},
    };
    /* hf_file() has no word of a post-processor. */
    struct lmq_buffer file = hf_file(
        WORDS ",\"post_processor\":{\"type\":\"ByteLevel\"}", NULL, NULL, NULL,
        "[]");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[200];
        snprintf(config, sizeof(config),
                 "{\"bos_token\":\"ab\",\"add_bos_token\":true,"
                 "\"tokenizer_class\":%s}",
                 cases[i].class);
        struct lmq_blob blobs[] = {
            {"x/tokenizer_config.json", (const unsigned char *)config,
             strlen(config)},
            {"x/tokenizer.json", file.bytes, file.n},
        };
        struct lmq_tokenizer *t;
        ck_assert_int_eq(lmq_tokenizer_open(blobs, 2, &t, NULL), LMQ_OK);
        REQUIRE(lmq_tokenizer_default_flags(t) == cases[i].flags, "case %zu",
                i);
        lmq_tokenizer_close(t);
    }
    lmq_buffer_free(&file);
}
END_TEST

/* The Strip is of the whole text. */
START_TEST(a_special_token_that_is_shown_begins_the_text)
{
    static const int32_t ids[] = {0, 1};
    static const char decoder[] =
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
        "\"pattern\":{\"String\":\"\u2581\"},\"content\":\" \"},"
        "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","
        "\"start\":1,\"stop\":0}]}";
    struct lmq_buffer text = {0};
    struct lmq_tokenizer *t = open_buffer(
        hf_file("{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,\"\u2581a\":1},"
                "\"merges\":[]}",
                NULL, NULL, decoder,
                "[{\"id\":0,\"content\":\"<s>\",\"special\":true}]"));

    ck_assert_int_eq(lmq_tokenizer_decode(t, ids, 2, LMQ_DECODE_SPECIAL, &text,
                                          NULL),
                     LMQ_OK);
    ck_assert_uint_eq(text.n, 5);
    ck_assert_mem_eq(text.bytes, "<s> a", 5);
    text.n = 0;
    ck_assert_int_eq(lmq_tokenizer_decode(t, ids, 2, 0, &text, NULL), LMQ_OK);
    ck_assert_uint_eq(text.n, 1);
    lmq_buffer_free(&text);
    lmq_tokenizer_close(t);
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

int
main(void)
{
    const TTest *const tests[] = {
        hf_llama_agrees_with_sentencepiece,
        tables_are_read_as_trees_are,
        merges_may_be_full_of_escapes,
        split_behaviors_are_those_of_hugging_face,
        metaspace_prepends_where_its_scheme_says,
        byte_level_covers_every_byte,
        digits_stand_alone_or_together,
        an_added_letter_of_byte_level_keeps_its_byte,
        a_prefix_is_for_what_begins_the_text,
        what_white_space_is_taken_from_is_found_all_the_same,
        many_tokens_share_a_run_of_white_space,
        a_word_that_spells_a_byte_is_looked_up_whole,
        the_last_of_equal_merges_counts,
        unigram_finds_what_was_added,
        added_tokens_have_the_ids_that_hugging_face_gives_them,
        normalizers_change_the_text_in_order,
        added_tokens_are_what_normalizing_leaves_of_them,
        added_tokens_look_at_what_stands_beside_them,
        configuration_names_begin_and_end,
        classes_heed_what_is_said_of_the_begin_token,
        a_special_token_that_is_shown_begins_the_text,
        what_is_not_understood_is_refused_by_name,
    };

    return RUN_SUITE("tokenizer_hf", tests);
}
