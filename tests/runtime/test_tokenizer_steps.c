/*
 * test_tokenizer_steps.c - each step that a tokenizer.json may have, for
 * itself: what it makes of a text, and what it refuses. What comes out is what
 * Hugging Face's tokenizers make of the same files.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "runtime/tokenizer/model/tok_pipeline.h"
#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"

/* ---- Normalizers, over a vocabulary that shows what is left ---- */

#define FIRST_LETTER ' '
#define LAST_LETTER '~'

/* ASCII's letters by their code, less 32, and three letters behind; anything
 * else is '?', once for each. */
static struct lmq_tokenizer *
open_letters(const char *normalizer)
{
    struct lmq_buffer model = { 0 };
    char item[32];

    add_text(&model, "{\"type\":\"BPE\",\"unk_token\":\"?\",\"merges\":[],"
                     "\"vocab\":{");
    for (int c = FIRST_LETTER; c <= LAST_LETTER; c++) {
        snprintf(item, sizeof(item), "\"%s%c\":%d,",
                 c == '"' || c == '\\' ? "\\" : "", c, c - FIRST_LETTER);
        add_text(&model, item);
    }
    add_text(&model, "\"\u0323\":95,\"\u0301\":96,\"\u1eb9\":97}}");
    add_bytes(&model, "", 1);
    struct lmq_tokenizer *t = open_buffer(
        hf_file((const char *)model.bytes, normalizer, NULL, NULL, "[]"));
    lmq_buffer_free(&model);
    return t;
}

/* The text that is left, the letters behind ASCII as 0, 1 and 2. */
static const char *
normalized(const char *normalizer, const char *text)
{
    static char left[256];
    struct lmq_tokenizer *t = open_letters(normalizer);
    struct lmq_ids ids = { 0 };

    ck_assert_int_eq(lmq_tokenizer_encode(t, text, strlen(text), 0, &ids,
                                          NULL),
                     LMQ_OK);
    ck_assert_uint_lt(ids.n, sizeof(left));
    for (size_t i = 0; i < ids.n; i++)
        left[i] = (char)(ids.ids[i] < 95 ? ids.ids[i] + FIRST_LETTER
                                         : ids.ids[i] - 95 + '0');
    left[ids.n] = '\0';
    lmq_ids_clear(&ids);
    lmq_tokenizer_close(t);
    return left;
}

START_TEST(normalizers_leave_what_they_should)
{
    static const struct {
        const char *normalizer, *text, *left;
    } cases[] = {
        { "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},"
          "{\"type\":\"StripAccents\"}]}",
          "\u00e9\u0323x\u0903!", "ex!" },
        { "{\"type\":\"StripAccents\"}", "\u00e9x\u0301", "?x" },
        { "{\"type\":\"Nmt\"}",
          "a\x01" "b\tc\u200bd\u2581e\ufefff\x7f\u1680g\xc2\x85h",
          "ab c d e f g?h" },
        { "{\"type\":\"Lowercase\"}", "A\u0130B", "ai?b" },
        { "{\"type\":\"Strip\",\"strip_right\":false}", " \u2003 a b ",
          "a b " },
        { "{\"type\":\"Strip\",\"strip_left\":false}", " a b\u2003\t ",
          " a b" },
        { "{\"type\":\"Prepend\",\"prepend\":\"xy\"}", "ab", "xyab" },
        { "{\"type\":\"Prepend\",\"prepend\":\"xy\"}", "", "" },
        { "{\"type\":\"Replace\",\"pattern\":{\"String\":\"..\"},"
          "\"content\":\"-\"}",
          "a...b.", "a-.b." },
        { "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*\"},"
          "\"content\":\"-\"}",
          "baab", "-b-b-" },
        { "{\"type\":\"NFC\"}", "plain", "plain" },
        /* Two marks of other classes change places, and one joins the e. */
        { "{\"type\":\"NFD\"}", "e\u0301\u0323", "e01" },
        { "{\"type\":\"NFC\"}", "e\u0301\u0323", "21" },
        { "{\"type\":\"NFC\"}", "e\u0323\u0301", "21" },
        { "{\"type\":\"NFKD\"}", "\ufb01\u2460", "fi1" },
        /* Behind a syllable, and before what else composes. */
        { "{\"type\":\"NFC\"}", "\uac00\u11a7\u11a7e\u0323", "???2" },
        { "{\"type\":\"NFKC\"}", "\u1100\u1161\u11a7\u11a8", "???" },
        { "{\"type\":\"Precompiled\",\"precompiled_charsmap\":null}", "a b",
          "a b" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *left = normalized(cases[i].normalizer, cases[i].text);
        ck_assert_msg(strcmp(left, cases[i].left) == 0, "%s: '%s', not '%s'",
                      cases[i].normalizer, left, cases[i].left);
    }
}
END_TEST

START_TEST(a_charsmap_is_looked_up)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                 "qrstuvwxyz0123456789+/";
    unsigned char map[N_CHARSMAP];
    char step[600];

    write_charsmap(map);
    size_t n = (size_t)snprintf(step, sizeof(step),
                         "{\"type\":\"Precompiled\","
                         "\"precompiled_charsmap\":\"");
    _Static_assert(N_CHARSMAP % 3 == 0, "base64 without an end of its own");
    for (size_t i = 0; i < N_CHARSMAP; i += 3) {
        unsigned bits = (unsigned)map[i] << 16 | (unsigned)map[i + 1] << 8 |
                        map[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            step[n++] = digits[bits >> shift & 63];
    }
    snprintf(step + n, sizeof(step) - n, "\"}");
    ck_assert_str_eq(normalized(step, "BAABa"), "BababBa");
}
END_TEST

/* ---- Pre-tokenizers: an "ab" that is cut is no 3 but 1 and 2 ---- */

START_TEST(splits_cut_where_they_should)
{
    static const struct {
        const char *step, *text, *expected;
    } cases[] = {
        { "{\"type\":\"Whitespace\"}", "ab a\tb .ab", "3 1 2 7 3" },
        { "{\"type\":\"WhitespaceSplit\"}", "a b\n.ab", "1 2 7 3" },
        { "{\"type\":\"BertPreTokenizer\"}", "ab.1 2", "3 7 4 5" },
        { "{\"type\":\"Punctuation\"}", "1.2", "4 7 5" },
        { "{\"type\":\"Punctuation\",\"behavior\":\"Removed\"}", "1.2.12",
          "4 5 6" },
        { "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\".\"}", "a.b.ab",
          "1 2 3" },
        { "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":"
          "\"Isolated\",\"invert\":true}",
          "ab12", "1 2 6" },
        /* A word's end is a place, no letter. */
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\b\"},\"behavior\":"
          "\"Isolated\"}",
          "ab.12", "3 7 6" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\"},\"behavior\":"
          "\"Isolated\"}",
          "ab", "1 2" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\W\"},\"behavior\":"
          "\"Removed\"}",
          "a.b", "1 2" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\W\"},\"behavior\":"
          "\"Removed\"}",
          "a\u00b2.\u00bdb\u2460", "1 0 0 2" },
        /* In brackets \\w lacks those numbers; \\pL is the letters pL. */
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[^\\\\w]\"},"
          "\"behavior\":\"Removed\"}",
          "a\u00b2.\u00bdb\u2460", "1 2" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\pL\"},"
          "\"behavior\":\"Removed\"}",
          "apLb", "1 2" },
        /* What is between two words keeps them apart, though it be empty. */
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?<=a)\"},"
          "\"behavior\":\"Contiguous\"}",
          "ab.ab", "1 2 7 1 2" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\A\\\\w|\\\\u0031"
          "2\\\\z\"},\"behavior\":\"Removed\"}",
          "ab12", "2" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\x{61}(?i:B)?\"},"
          "\"behavior\":\"Removed\"}",
          "1ab2", "4 5" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[^\\\\w\\\\v]{1,2}\"},"
          "\"behavior\":\"Removed\"}",
          "1..2", "4 5" },
        /* A class in a class, and a repeat of repeats. */
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\" ?[^(\\\\s|[.,])]+\"},"
          "\"behavior\":\"Removed\",\"invert\":true}",
          "a.b ab", "1 2 8 3" },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[0-9]{1,2}+\"},"
          "\"behavior\":\"Removed\"}",
          "ab1212", "3" },
        { "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
          "\"WhitespaceSplit\"},{\"type\":\"Digits\",\"individual_digits\":"
          "true}]}",
          "12 ab", "4 5 3" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_tokenizer *t =
            open_buffer(hf_file(WORDS, NULL, cases[i].step, NULL, "[]"));
        const char *ids =
            encoded(t, cases[i].text, strlen(cases[i].text), 0);
        ck_assert_msg(strcmp(ids, cases[i].expected) == 0, "%s: %s, not %s",
                      cases[i].step, ids, cases[i].expected);
        lmq_tokenizer_close(t);
    }
}
END_TEST

/* As Falcon's: a half is no digit, but of its two letters the second one is. */
START_TEST(splits_behind_byte_level_see_letters)
{
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"\u00d0\":0,\"\u00bc\":1,\"\u00d0\u00bc"
        "\":2,\"1\":3,\"2\":4,\"3\":5,\"12\":6,\"123\":7,\"31\":8,"
        "\"\u0120\":9},"
        "\"merges\":[\"\u00d0 \u00bc\",\"3 1\",\"1 2\",\"12 3\"]}";
    static const char steps[] =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false},{\"type\":\"Digits\"},{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"[0-9][0-9][0-9]\"},"
        "\"behavior\":\"Isolated\"}]}";
    struct lmq_tokenizer *t =
        open_buffer(hf_file(model, NULL, steps, NULL, "[]"));

    ENCODES(t, "\u043c", 0, "0 1");
    ENCODES(t, "123123", 0, "7 7");
    ENCODES(t, "\u043c 1231", 0, "0 1 9 7 3");
    ENCODES(t, "\xd0 12", 0, "0 9 6"); /* no UTF-8, but letters all the same */
    lmq_tokenizer_close(t);
}
END_TEST

/* The patterns that GGUF names, as tokenizer.json has them. */
static void
put_pretype(struct lmq_buffer *step, const char *name)
{
    const struct lmq_pretype *pretype =
        lmq_pretype_find(lmq_chars(name, strlen(name)));

    ck_assert_ptr_nonnull(pretype);
    add_text(step, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    for (size_t i = 0; pretype->patterns[i] != NULL; i++) {
        add_text(step, i == 0 ? "" : ",");
        add_text(step, "{\"type\":\"Split\",\"behavior\":\"Isolated\","
                       "\"pattern\":{\"Regex\":\"");
        for (const char *p = pretype->patterns[i]; *p != '\0'; p++) {
            add_text(step, *p == '\\' || *p == '"' ? "\\" : "");
            add_bytes(step, p, 1);
        }
        add_text(step, "\"}}");
    }
    add_text(step, "]}");
    add_bytes(step, "", 1);
}

START_TEST(named_splits_cut_where_they_should)
{
    static const struct {
        const char *name, *text, *expected;
    } cases[] = {
        { "afmoe", "1212", "4 5 6" },
        { "afmoe", "12121", "6 6 4" },
        { "afmoe", "ab 121212ab", "3 8 6 4 5 6 3" },
        { "afmoe", "\xe4\xb8\xad" "12", "0 6" },
        { "minicpm5", "1212", "6 4 5" },
        { "kimi-k2", "1212ab", "6 4 5 3" },
        { "kimi-k2", "a\xe4\xb8\xad" "b", "1 0 2" },
        { "jais-2", "1212", "6 4 5" },
        { "youtu", "12ab", "4 5 3" },
        { "exaone-moe", "12ab", "4 5 3" },
        { "laguna", "12ab", "4 5 3" },
        { "glm5", "1212", "6 4 5" },
        { "tiny_aya", "1212ab", "6 4 5 3" },
        { "tiny_aya", "1212 ab", "4 5 6 8 3" },
        { "superbpe", "1212ab", "4 5 6 3" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_buffer step = { 0 };
        put_pretype(&step, cases[i].name);
        struct lmq_tokenizer *t = open_buffer(
            hf_file(WORDS, NULL, (const char *)step.bytes, NULL, "[]"));
        const char *ids =
            encoded(t, cases[i].text, strlen(cases[i].text), 0);
        ck_assert_msg(strcmp(ids, cases[i].expected) == 0, "%s, %s: %s, not %s",
                      cases[i].name, cases[i].text, ids, cases[i].expected);
        lmq_tokenizer_close(t);
        lmq_buffer_free(&step);
    }
}
END_TEST

/* ---- Unigram ---- */

#define UNIGRAM                                                               \
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"" MARK    \
    "\",-3],[\"a\",-4],[\"b\",-4.5],[\"ab\",-5],[\"" MARK "a\",-3.5],[\"ba\"" \
    ",-9],[\"bab\",-12]]}"
#define METASPACE                                                             \
    "{\"type\":\"Metaspace\",\"replacement\":\"" MARK                         \
    "\",\"add_prefix_space\":true}"

START_TEST(unigram_takes_the_likeliest_path)
{
    struct lmq_tokenizer *t =
        open_buffer(hf_file(UNIGRAM, NULL, METASPACE, METASPACE,
                            "[{\"id\":8,\"content\":\"<x>\",\"special\":true}"
                            "]"));

    /* "▁a" "b" is -8, "▁" "ab" the same, and the later one wins no tie. */
    ENCODES(t, "ab", 0, "1 4");
    ENCODES(t, "bab", 0, "1 3 4");
    ENCODES(t, "a zza", 0, "5 1 0 2");
    ENCODES(t, "a<x>b", LMQ_ENCODE_SPECIAL, "5 8 1 3");
    ck_assert(round_trips(t, "ab bab", 6));
    lmq_tokenizer_close(t);
    /* As floats the sums of "I" "II" and of "II" "I" are the other way
     * round. */
    t = open_buffer(hf_file(
        "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],"
        "[\"V\",-4.55],[\"I\",-5.3],[\"II\",-0.31]]}", NULL, NULL, NULL, "[]"));
    ENCODES(t, "VIII", 0, "1 2 3");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_file_without_a_type_tells_by_its_merges)
{
    struct lmq_tokenizer *bpe = open_buffer(
        hf_file("{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}",
                NULL, NULL, NULL, "[]"));
    struct lmq_tokenizer *unigram =
        open_buffer(hf_file("{\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],"
                            "[\"b\",-1],[\"ab\",-3]]}",
                            NULL, NULL, NULL, "[]"));

    ENCODES(bpe, "ab", 0, "2");
    ENCODES(unigram, "ab", 0, "1 2");
    lmq_tokenizer_close(bpe);
    lmq_tokenizer_close(unigram);
}
END_TEST

/* Without a token for it: before anything is merged, but behind the splits. */
START_TEST(what_is_unknown_is_dropped)
{
    static const char model[] =
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":"
        "[\"a b\"]}";
    struct lmq_tokenizer *t =
        open_buffer(hf_file(model, NULL, NULL, NULL, "[]"));

    ENCODES(t, "a-b", 0, "2");
    ENCODES(t, "-ab--ab-", 0, "2 2");
    ENCODES(t, "-", 0, "");
    lmq_tokenizer_close(t);
    t = open_buffer(
        hf_file(model, NULL, "{\"type\":\"Whitespace\"}", NULL, "[]"));
    ENCODES(t, "a-b", 0, "0 1");
    /* Joiners are in words, in Rust; superscripts only in Oniguruma. */
    ENCODES(t, "a\u200db", 0, "2");
    ENCODES(t, "a\u00b2b", 0, "0 1");
    lmq_tokenizer_close(t);
    /* Nothing is cut in front of a space, which what is dropped may join. */
    t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\" \":1,\"a \":2},\"merges\":"
        "[[\"a\",\" \"]]}", NULL, NULL, NULL, "[]"));
    ENCODES(t, "aX a", 0, "2 0");
    lmq_tokenizer_close(t);
    /* With bytes, but not this one. */
    t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,"
        "\"ab\":2,\"<0x2E>\":3},\"merges\":[\"a b\"]}",
        NULL, NULL, NULL, "[]"));
    ENCODES(t, "a b", 0, "2");
    ENCODES(t, "a.b", 0, "0 3 1");
    lmq_tokenizer_close(t);
}
END_TEST

/* Whatever its name is looked for as. */
START_TEST(a_byte_that_was_added_is_a_byte)
{
    struct lmq_tokenizer *t = open_buffer(hf_file(
        "{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,"
        "\"<0xC3>\":1,\"<0xA9>\":2},\"merges\":[]}", NULL, NULL, NULL,
        "[{\"id\":1,\"content\":\"<0xC3>\",\"special\":true},"
        "{\"id\":2,\"content\":\"<0xA9>\",\"special\":false}]"));

    ENCODES(t, "a\xc3\xa9", 0, "0 1 2");
    ENCODES(t, "a<0xC3>", LMQ_ENCODE_SPECIAL, "0 1");
    lmq_tokenizer_close(t);
}
END_TEST

START_TEST(a_single_word_has_no_letter_beside_it)
{
    struct lmq_tokenizer *t = open_buffer(
        hf_file(WORDS, NULL, NULL, NULL,
                "[{\"id\":9,\"content\":\"21\",\"single_word\":true}]"));

    ENCODES(t, "21", 0, "9");
    ENCODES(t, ".21.", 0, "7 9 7");
    ENCODES(t, "\u200c21", 0, "0 5 4");
    ENCODES(t, "21\u24b6", 0, "5 4 0");
    ENCODES(t, "21\u2460", 0, "9 0");
    lmq_tokenizer_close(t);
}
END_TEST

/* ---- Post-processors ---- */

/* They stand behind the added tokens. */
#define AFTER(text) "[],\"post_processor\":" text

START_TEST(post_processors_add_to_both_ends)
{
    static const struct {
        const char *after, *expected;
    } cases[] = {
        { AFTER("{\"type\":\"RobertaProcessing\",\"cls\":[\"1\",4],\"sep\":"
                "[\"2\",5]}"),
          "4 3 5" },
        { AFTER("{\"type\":\"BertProcessing\",\"cls\":[\".\",7],\"sep\":"
                "[\"1\",4]}"),
          "7 3 4" },
        { AFTER("{\"type\":\"Sequence\",\"processors\":[{\"type\":"
                "\"ByteLevel\"},{\"type\":\"TemplateProcessing\",\"single\":"
                "[{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}},"
                "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
                "{\"SpecialToken\":{\"id\":\"y\",\"type_id\":0}}],"
                "\"special_tokens\":{\"x\":{\"ids\":[1,2]},\"y\":{\"ids\":[6]}"
                "}}]}"),
          "1 2 3 6" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_tokenizer *t =
            open_buffer(hf_file(WORDS, NULL, NULL, NULL, cases[i].after));
        ENCODES(t, "ab", LMQ_ENCODE_BOS | LMQ_ENCODE_EOS, cases[i].expected);
        ENCODES(t, "ab", 0, "3");
        lmq_tokenizer_close(t);
    }
}
END_TEST

/* ---- What is refused, by what words ---- */

enum part { NORMALIZER, PRE_TOKENIZER, DECODER, ADDED, MODEL, N_PARTS };

#define UNSUPPORTED LMQ_ERR_UNSUPPORTED
#define FORMAT LMQ_ERR_FORMAT
#define SPLIT(pattern)                                                        \
    "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":" pattern "}"
#define REGEX(source) SPLIT("{\"Regex\":\"" source "\"}")
#define TEMPLATE(single)                                                      \
    AFTER("{\"type\":\"TemplateProcessing\",\"single\":[" single "],"         \
          "\"special_tokens\":{\"x\":{\"ids\":[1]},\"y\":{\"ids\":[99]},"     \
          "\"z\":{}}}")
#define TEXT "{\"Sequence\":{\"id\":\"A\"}}"
#define SPECIAL(name) "{\"SpecialToken\":{\"id\":\"" name "\"}}"
#define NEST(list, inner) "{\"type\":\"Sequence\",\"" list "\":[" inner "]}"
#define NEST4(list, inner)                                                    \
    NEST(list, NEST(list, NEST(list, NEST(list, inner))))
#define NEST16(list, inner)                                                   \
    NEST4(list, NEST4(list, NEST4(list, NEST4(list, inner))))

static const struct refusal {
    enum part part;
    const char *text;
    enum lmq_status status;
    const char *words;
} refusals[] = {
    { NORMALIZER, "[]", UNSUPPORTED, "nested too deep or no object" },
    { NORMALIZER, NEST16("normalizers", "{\"type\":\"NFC\"}"), UNSUPPORTED,
      "nested too deep" },
    { NORMALIZER, "{\"type\":\"Sequence\"}", FORMAT, "has none" },
    { NORMALIZER, "{\"type\":\"Prepend\"}", FORMAT, "'prepend'" },
    { NORMALIZER, "{\"type\":\"Replace\",\"content\":1}", FORMAT,
      "'content' is not a string" },
    { NORMALIZER, "{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{}}",
      FORMAT, "neither" },
    { NORMALIZER, "{\"type\":\"Strip\",\"strip_left\":1}", FORMAT,
      "'strip_left' is not a boolean" },
    { NORMALIZER,
      "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!!\"}", FORMAT,
      "not base64" },
    { NORMALIZER,
      "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}", FORMAT,
      "damaged" },
    { PRE_TOKENIZER,
      "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
      "{\"type\":\"Metaspace\",\"replacement\":\"_\"}]}",
      UNSUPPORTED, "'Metaspace' after ByteLevel" },
    { PRE_TOKENIZER,
      "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":1}",
      UNSUPPORTED, "behavior" },
    { PRE_TOKENIZER, SPLIT("{}"), FORMAT, "neither" },
    { PRE_TOKENIZER, SPLIT("{\"String\":\"\"}"), UNSUPPORTED,
      "a text to look for is 0 bytes" },
    { PRE_TOKENIZER, REGEX("(?<name>a)"), UNSUPPORTED, "a group" },
    { PRE_TOKENIZER, REGEX("(*ACCEPT)"), UNSUPPORTED, "a verb" },
    { PRE_TOKENIZER, REGEX("a{,3}"), UNSUPPORTED, "a repeat" },
    { PRE_TOKENIZER, REGEX("a{2,3}+"), UNSUPPORTED, "a repeat" },
    { PRE_TOKENIZER, REGEX("\\\\u12"), UNSUPPORTED, "a code point" },
    { PRE_TOKENIZER, REGEX("\\\\x{110000"), UNSUPPORTED, "a code point" },
    { PRE_TOKENIZER, REGEX("\\\\p{Lu1}"), UNSUPPORTED, "a property" },
    { PRE_TOKENIZER, REGEX("[\\\\b]"), UNSUPPORTED, "an escape in a class" },
    { PRE_TOKENIZER, REGEX("[\\\\z]"), UNSUPPORTED, "an escape in a class" },
    { PRE_TOKENIZER, REGEX("\\\\k"), UNSUPPORTED, "an escape" },
    { PRE_TOKENIZER, REGEX("[]a]"), UNSUPPORTED, "begins with ]" },
    { PRE_TOKENIZER, REGEX("[a[^b]]"), UNSUPPORTED, "a class in a class" },
    { PRE_TOKENIZER, REGEX("[a[b-]c]"), UNSUPPORTED, "a class in a class" },
    { PRE_TOKENIZER, REGEX("[a-[b]]"), UNSUPPORTED, "a class in a class" },
    { PRE_TOKENIZER, REGEX("[a[b]-c]"), UNSUPPORTED, "a class in a class" },
    { PRE_TOKENIZER, REGEX("[a[-b]]"), UNSUPPORTED, "a class in a class" },
    { PRE_TOKENIZER, REGEX("[[:alpha:]]"), UNSUPPORTED, "a class in a class" },
    { PRE_TOKENIZER, REGEX("[a[b"), UNSUPPORTED, "missing terminating ]" },
    { PRE_TOKENIZER, REGEX("(a"), UNSUPPORTED, "parenthesis" },
    { PRE_TOKENIZER,
      "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
      "\"sometimes\"}",
      UNSUPPORTED, "sometimes" },
    { PRE_TOKENIZER, "{\"type\":\"Metaspace\",\"replacement\":\"__\"}",
      UNSUPPORTED, "of more than a character" },
    { PRE_TOKENIZER, "{\"type\":\"Metaspace\"}", FORMAT, "'replacement'" },
    { DECODER,
      "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"\"}",
      UNSUPPORTED, "Replace with a Regex" },
    { DECODER,
      "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":"
      "\"Replace\",\"pattern\":{\"String\":\"ab\"},\"content\":\"\"}]}",
      UNSUPPORTED, "after Fuse" },
    { DECODER,
      "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}",
      UNSUPPORTED, "anything but the first space" },
    { DECODER, NEST16("decoders", "{\"type\":\"Fuse\"}"), UNSUPPORTED,
      "nested too deep" },
    { DECODER, "{\"type\":\"ByteLevel\"}", UNSUPPORTED, "ByteLevel" },
    { ADDED, TEMPLATE(TEXT "," TEXT), UNSUPPORTED, "two texts" },
    { ADDED, TEMPLATE(SPECIAL("x")), UNSUPPORTED, "without the text" },
    { ADDED, TEMPLATE(SPECIAL("y") "," TEXT), FORMAT, "no token's" },
    { ADDED, TEMPLATE(SPECIAL("z") "," TEXT), FORMAT, "without ids" },
    { ADDED, TEMPLATE(SPECIAL("none") "," TEXT), FORMAT, "without ids" },
    { ADDED, AFTER("{\"type\":\"Odd\"}"), UNSUPPORTED, "Odd" },
    { ADDED, AFTER(NEST16("processors", "{\"type\":\"ByteLevel\"}")),
      UNSUPPORTED, "nested too deep" },
    { ADDED,
      AFTER("{\"type\":\"Sequence\",\"processors\":[{\"type\":"
            "\"BertProcessing\",\"cls\":[\"a\",1],\"sep\":[\"b\",2]},"
            "{\"type\":\"BertProcessing\"}]}"),
      UNSUPPORTED, "second template" },
    { ADDED, "[{\"id\":20}]", FORMAT, "no id or no content" },
    { ADDED, "[{\"id\":9,\"content\":\"x\"},{\"id\":9,\"content\":\"y\"}]",
      FORMAT, "two added tokens have the id 9" },
    { ADDED, "[{\"id\":1,\"content\":\"other\"}]", FORMAT,
      "in the vocabulary" },
    { MODEL, "null", UNSUPPORTED, "is no tokenizer that is known" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":[],\"merges\":[]}", FORMAT,
      "not an object" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":{}}", FORMAT,
      "no array" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}",
      FORMAT, "not two pieces" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}",
      FORMAT, "needs the token 'b'" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"b a\"]}",
      FORMAT, "needs the token 'b'" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}",
      FORMAT, "makes a token" },
    { PRE_TOKENIZER, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{2}?b\"},"
                     "\"behavior\":\"Isolated\"}",
      UNSUPPORTED, "a repeat" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}",
      FORMAT, "given twice" },
    { MODEL, "{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}", FORMAT,
      "empty" },
    { MODEL, "{\"type\":\"Unigram\",\"vocab\":{}}", FORMAT, "not an array" },
    { MODEL, "{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}", FORMAT,
      "not [text, score]" },
    { MODEL, "{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1e300]]}", FORMAT,
      "not finite" },
    { MODEL, "{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1],[\"a\",-2]]}",
      FORMAT, "the text of another" },
};

START_TEST(what_cannot_be_done_is_refused)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *r = &refusals[i];
        const char *parts[N_PARTS] = { NULL, NULL, NULL, "[]", WORDS };
        parts[r->part] = r->text;
        struct lmq_buffer file =
            hf_file(parts[MODEL], parts[NORMALIZER], parts[PRE_TOKENIZER],
                    parts[DECODER], parts[ADDED]);
        struct lmq_blob blob = { "tokenizer.json", file.bytes, file.n };
        struct lmq_tokenizer *t;
        struct lmq_error err = { 0 };
        enum lmq_status status = lmq_tokenizer_open(&blob, 1, &t, &err);
        ck_assert_msg(status == r->status, "%s: status %d: %s", r->text,
                      (int)status, err.message);
        ck_assert_msg(strstr(err.message, r->words) != NULL,
                      "%s: says '%s', not '%s'", r->text, err.message,
                      r->words);
        ck_assert_ptr_null(t);
        lmq_buffer_free(&file);
    }
}
END_TEST

START_TEST(unigram_after_byte_level_is_refused)
{
    expect_refusal(hf_file("{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1]]}",
                           NULL, "{\"type\":\"ByteLevel\"}", NULL, "[]"),
                   LMQ_ERR_UNSUPPORTED, "Unigram after ByteLevel");
}
END_TEST

/* ---- The files beside it ---- */

static enum lmq_status
open_with(const char *name, const char *text, struct lmq_tokenizer **t,
          struct lmq_error *err)
{
    struct lmq_buffer file = hf_file(WORDS, NULL, NULL, NULL, "[]");
    struct lmq_blob blobs[] = {
        { name, (const unsigned char *)text, strlen(text) },
        { "tokenizer.json", file.bytes, file.n },
    };
    enum lmq_status status = lmq_tokenizer_open(blobs, 2, t, err);

    lmq_buffer_free(&file);
    return status;
}

START_TEST(other_files_name_the_ends)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        { "{\"bos_token\":\"none\"}", "is no token" },
        { "{\"eos_token_id\":\"2\"}", "not the id of a token" },
        { "{\"bos_token_id\":-1}", "not the id of a token" },
        { "[]", "not a JSON object" },
    };
    struct lmq_tokenizer *t;
    struct lmq_error err = { 0 };

    ck_assert_int_eq(open_with("generation_config.json",
                               "{\"bos_token_id\":4,\"eos_token_id\":5}", &t,
                               &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_tokenizer_bos(t), 4);
    ck_assert(lmq_tokenizer_is_eos(t, 5));
    lmq_tokenizer_close(t);
    ck_assert_int_eq(open_with("tokenizer_config.json",
                               "{\"bos_token\":\"\",\"eos_token\":null}", &t,
                               &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_tokenizer_bos(t), -1);
    lmq_tokenizer_close(t);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        enum lmq_status status = open_with("generation_config.json",
                                           wrong[i].text, &t, &err);
        if (status == LMQ_OK) {
            lmq_tokenizer_close(t);
            status = open_with("tokenizer_config.json", wrong[i].text, &t,
                               &err);
        }
        ck_assert_int_eq(status, LMQ_ERR_FORMAT);
        ck_assert_msg(strstr(err.message, wrong[i].words) != NULL, "%s: %s",
                      wrong[i].text, err.message);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        normalizers_leave_what_they_should,
        a_charsmap_is_looked_up,
        splits_cut_where_they_should, splits_behind_byte_level_see_letters,
        named_splits_cut_where_they_should,
        unigram_takes_the_likeliest_path,
        a_file_without_a_type_tells_by_its_merges,
        what_is_unknown_is_dropped, a_byte_that_was_added_is_a_byte,
        a_single_word_has_no_letter_beside_it,
        post_processors_add_to_both_ends,
        what_cannot_be_done_is_refused,
        unigram_after_byte_level_is_refused,
        other_files_name_the_ends,
    };

    return RUN_SUITE("tokenizer_steps", tests);
}
