/*
 * test_vocab_pair.c - tokenizers kept in vocab.json and merges.txt.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/tokenizer.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

/* As GPT-2 writes pieces: a space is U+0120. */
static const char vocab[] =
    "{\"a\": 0, \"b\": 1, \"1\": 2, \"2\": 3, \"\\u0120\": 4, \"ab\": 5, "
    "\"12\": 6, \"\\u0120a\": 7, \"<|endoftext|>\": 8, \"<pad>\": 9}";
static const char merges[] = "#version: 0.2\na b\n1 2\n\xc4\xa0 a\n";

static void
keep(const char *name, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "model/%s", name);
    write_file(in_folder(path), text, strlen(text));
}

/* A folder with a model and both files; the tests write what tells of them. */
static const char *
make_folder(void)
{
    struct build_model *model = build_model(&build_small, 6);
    const char *folder = in_folder("model");

    save_folder(model, folder, BUILD_F32);
    build_free(model);
    keep("vocab.json", vocab);
    keep("merges.txt", merges);
    return folder;
}

/* The ids as the files ask for them, with special tokens, as "1 2 3". */
static const char *
encoded(const char *folder, const char *text)
{
    static char line[256];
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);
    struct lmq_tokenizer *t;
    struct lmq_ids ids = {0};
    struct lmq_error err = {0};
    size_t n = 0;

    ck_assert_uint_ge(checkpoint->n_blobs, 1);
    ck_assert_str_eq(checkpoint->blobs[0].name, "tokenizer.json");
    enum lmq_status status = lmq_tokenizer_open(
        checkpoint->blobs, checkpoint->n_blobs, &t, &err);
    REQUIRE(status == LMQ_OK, "%s", err.message);
    ck_assert_int_eq(
        lmq_tokenizer_encode(t, text, strlen(text),
                             lmq_tokenizer_default_flags(t) |
                                 LMQ_ENCODE_SPECIAL,
                             &ids, &err),
        LMQ_OK);
    line[0] = '\0';
    for (size_t i = 0; i < ids.n && n < sizeof(line) - 16; i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%d",
                              i == 0 ? "" : " ", (int)ids.ids[i]);
    free(ids.ids);
    lmq_tokenizer_close(t);
    lmq_checkpoint_close(checkpoint);
    return line;
}

static bool
is_noted(const struct lmq_checkpoint *checkpoint, const char *text)
{
    for (size_t i = 0; i < checkpoint->notes.n; i++)
        if (strstr(checkpoint->notes.texts[i], text) != NULL)
            return true;
    return false;
}

START_TEST(a_class_says_how_text_is_cut)
{
    const char *folder = make_folder();

    keep("tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\"}");
    ck_assert_str_eq(encoded(folder, "ab 12 a"), "5 4 6 7");
    keep("tokenizer_config.json",
        "{\"tokenizer_class\": \"GPT2TokenizerFast\","
        " \"add_prefix_space\": true}");
    ck_assert_str_eq(encoded(folder, "a b"), "7 4 1");
    /* One digit at a time. */
    keep("tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}");
    ck_assert_str_eq(encoded(folder, "ab 12 a"), "5 4 2 3 7");
}
END_TEST

/* The architecture does, where no class is named; and it is the class that
 * counts. */
START_TEST(another_class_is_told_and_left)
{
    const char *folder = make_folder();
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);

    ck_assert_uint_eq(checkpoint->n_blobs, 0);
    ck_assert(is_noted(checkpoint, "the architecture 'llama'"));
    lmq_checkpoint_close(checkpoint);
    keep("tokenizer_config.json", "{\"tokenizer_class\": \"Roberta\"}");
    checkpoint = open_checkpoint(folder);
    ck_assert_uint_eq(checkpoint->n_blobs, 0);
    ck_assert(is_noted(checkpoint, "the class 'Roberta'"));
    lmq_checkpoint_close(checkpoint);
    /* Of one file alone nobody would make a tokenizer. */
    ck_assert_int_eq(remove(in_folder("model/merges.txt")), 0);
    checkpoint = open_checkpoint(folder);
    ck_assert(!is_noted(checkpoint, "vocab.json"));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(special_tokens_are_found_in_every_file)
{
    const char *folder = make_folder();

    keep("tokenizer_config.json",
        "{\"tokenizer_class\": \"GPT2Tokenizer\", \"add_bos_token\": true,"
        " \"bos_token\": {\"content\": \"<pad>\", \"normalized\": true}}");
    ck_assert_str_eq(encoded(folder, "a<|endoftext|>b"), "9 0 8 1");
    ck_assert_str_eq(encoded(folder, "a<pad>"), "9 0 9");
    keep("tokenizer_config.json",
        "{\"tokenizer_class\": \"GPT2Tokenizer\", \"added_tokens_decoder\":"
        " {\"10\": {\"content\": \"<x>\", \"rstrip\": true,"
        " \"special\": true}}}");
    keep("special_tokens_map.json",
        "{\"pad_token\": \"<pad>\", \"eos_token\": \"<none>\"}");
    keep("added_tokens.json", "{\"<x>\": 10, \"<y>\": 11}");
    ck_assert_str_eq(encoded(folder, "a<x>  b<y> a<pad>"), "0 10 1 11 7 9");
}
END_TEST

START_TEST(what_stands_beside_a_tokenizer_json_does_not_count)
{
    const char *folder = make_folder();

    keep("tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\"}");
    keep("tokenizer.json", "{}");
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);
    ck_assert_uint_eq(checkpoint->blobs[0].size, 2);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(damage_is_told_with_file_and_place)
{
    static const struct {
        const char *file, *text, *what;
    } cases[] = {
        {"merges.txt", "#version: 0.2\na b\na b c\n", "line 3 is not two"},
        {"merges.txt", "a b\n ab\n", "line 2 is not two"},
        {"merges.txt", "ab\n", "line 1 is not two"},
        {"merges.txt", "a \xff\n", "line 1 is not UTF-8"},
        {"vocab.json", "[]", "is not a JSON object"},
        {"vocab.json", "{\"a\": 0, \"a\": 1}", "duplicate"},
        {"vocab.json", "{\"a\": 0, \"b\": -1}", "the id of 'b'"},
        {"added_tokens.json", "{\"<x>\": -1}", "the id of '<x>'"},
        {"tokenizer_config.json",
         "{\"tokenizer_class\": \"GPT2Tokenizer\", \"added_tokens_decoder\":"
         " {\"x\": {\"content\": \"<x>\"}}}",
         "the added token 'x' has no id"},
        {"tokenizer_config.json",
         "{\"tokenizer_class\": \"GPT2Tokenizer\", \"added_tokens_decoder\":"
         " {\"10\": {\"special\": true}}}",
         "no content"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *folder = make_folder();
        keep("added_tokens.json", "{}");
        keep("tokenizer_config.json",
            "{\"tokenizer_class\": \"GPT2Tokenizer\"}");
        keep(cases[i].file, cases[i].text);
        assert_refused(folder, LMQ_ERR_FORMAT, cases[i].what);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_class_says_how_text_is_cut,
        another_class_is_told_and_left,
        special_tokens_are_found_in_every_file,
        what_stands_beside_a_tokenizer_json_does_not_count,
        damage_is_told_with_file_and_place,
    };

    return RUN_SUITE("vocab.json and merges.txt", tests);
}
