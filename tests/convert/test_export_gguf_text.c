/*
 * test_export_gguf_text.c - tokenizers and chat templates in a GGUF.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buffer.h"
#include "formats/gguf/gguf_meta.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"

static const struct lmq_export_options as_gguf = {.to = "gguf"};

static const char *
fable(void)
{
    return source_path("data/fable");
}

static void
assert_same_tokens(const char *original, const char *gguf)
{
    struct lmq_tokenizer *a, *b;
    struct lmq_error err;
    int32_t *x, *y;
    size_t n_text, n_x, n_y;
    unsigned char *text =
        read_file(source_path("data/fable/held-out-b.txt"), &n_text);

    ck_assert_int_eq(lmq_tokenizer_from_path(original, NULL, &a, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_tokenizer_from_path(gguf, NULL, &b, &err), LMQ_OK);
    ck_assert_int_eq(
        lmq_tokenize(a, (char *)text, n_text, 0, &x, &n_x, &err), LMQ_OK);
    ck_assert_int_eq(
        lmq_tokenize(b, (char *)text, n_text, 0, &y, &n_y, &err), LMQ_OK);
    ck_assert_uint_eq(n_x, n_y);
    ck_assert_mem_eq(x, y, n_x * sizeof(*x));
    lmq_tokens_free(x);
    lmq_tokens_free(y);
    lmq_tokenizer_close(a);
    lmq_tokenizer_close(b);
    free(text);
}

START_TEST(tokenizers_are_said_in_other_words)
{
    const char *json = source_path("data/fable/tokenizer.json");
    const char *bin = source_path("data/fable/tokenizer.bin");

    lmq_report_free(export_to(fable(), in_folder("a.gguf"), &as_gguf));
    assert_same_tokens(json, in_folder("a.gguf"));
    lmq_report_free(export_to(source_path("data/fable/fable.bin"),
                                in_folder("b.gguf"), &as_gguf));
    assert_same_tokens(bin, in_folder("b.gguf"));
    /* One that came from a GGUF is copied. */
    lmq_report_free(
        export_to(in_folder("b.gguf"), in_folder("c.gguf"), &as_gguf));
    assert_same_tokens(bin, in_folder("c.gguf"));
}
END_TEST

/* The tokenizer's own first, then the model's; there is room for three. */
START_TEST(tokens_that_end_a_text_are_those_of_the_model_too)
{
    const struct lmq_export_options options = {.to = "gguf"};
    struct lmq_checkpoint *checkpoint = open_checkpoint(fable());
    struct lmq_hparams *h = &checkpoint->hparams;
    struct lmq_report *report;
    struct lmq_error err = {0};

    for (h->n_eos = 0; h->n_eos < 5; h->n_eos++)
        h->eos[h->n_eos] = 10 + (int32_t)h->n_eos;
    struct lmq_tokenizer *tokenizer;
    ck_assert_int_eq(
        lmq_tokenizer_from_checkpoint(checkpoint, &tokenizer, &err), LMQ_OK);
    ck_assert_int_eq(lmq_tokenizer_ends(tokenizer, 2), 1);
    ck_assert_int_eq(lmq_tokenizer_ends(tokenizer, 14), 1);
    ck_assert_int_eq(lmq_tokenizer_ends(tokenizer, 15), 0);
    lmq_tokenizer_close(tokenizer);
    ck_assert_msg(lmq_export(checkpoint, in_folder("a.gguf"), &options, NULL,
                             &report, &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert_ptr_nonnull(strstr(lmq_report_string(report, "notes.0"),
                                 "names 3 tokens that end a text, the other "));
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    checkpoint = open_checkpoint(in_folder("a.gguf"));
    h = &checkpoint->hparams;
    ck_assert_uint_eq(h->n_eos, 3);
    ck_assert_int_eq(h->eos[1], 10);
    ck_assert_int_eq(h->eos[2], 11);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* The file comes along with the folder, and into the GGUF. */
START_TEST(a_chat_template_is_kept)
{
    static const char *const names[] = {"model.safetensors", "config.json",
                                        "tokenizer.json"};
    static const char text[] = "{{ messages }}";
    const struct lmq_gguf_value *value;
    struct lmq_gguf_meta *meta;
    char from[4096], to[64];
    size_t n;

    mkdir(in_folder("model"), 0777);
    for (size_t i = 0; i < 3; i++) {
        snprintf(from, sizeof(from), "%s/%s", fable(), names[i]);
        snprintf(to, sizeof(to), "model/%s", names[i]);
        unsigned char *bytes = read_file(from, &n);
        write_file(in_folder(to), bytes, n);
        free(bytes);
    }
    write_file(in_folder("model/chat_template.jinja"), text, strlen(text));
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), NULL));
    lmq_report_free(
        export_to(in_folder("a.lmq"), in_folder("a.gguf"), &as_gguf));
    unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
    ck_assert_int_eq(lmq_gguf_meta_open(bytes, n, &meta, NULL, NULL), LMQ_OK);
    value = lmq_gguf_find(meta, "tokenizer.chat_template");
    ck_assert_ptr_nonnull(value);
    ck_assert_uint_eq(value->size, strlen(text));
    ck_assert_mem_eq(value->data, text, strlen(text));
    lmq_gguf_meta_close(meta);
    free(bytes);
}
END_TEST

/* a.gguf names this way to cut words; and it goes. */
static void
take_pre(const char *name)
{
    size_t n, n_pre = 0;
    const unsigned char *pre = NULL;
    unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
    struct lmq_gguf_meta *meta;
    struct lmq_error err = {0};

    ck_assert_int_eq(lmq_gguf_meta_open(bytes, n, &meta, NULL, &err), LMQ_OK);
    ck_assert_int_eq(lmq_gguf_get_text(meta, "tokenizer.ggml.pre", &pre,
                                       &n_pre, &err),
                     LMQ_OK);
    ck_assert_msg(n_pre == strlen(name) && memcmp(pre, name, n_pre) == 0,
                  "%.*s, not %s", (int)n_pre, (const char *)pre, name);
    lmq_gguf_meta_close(meta);
    free(bytes);
    remove(in_folder("a.gguf"));
}

/* Copies of GPT-2's tokenizer for models of its size. */
START_TEST(a_byte_level_tokenizer_finds_its_pre_tokenizer)
{
    const char *path =
        source_path("../../shared/data/tokenizers/gpt2/tokenizer.json");
    const struct lmq_open_options open = {.tokenizer = path};
    const struct lmq_export_options options = {.to = "gguf"};
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report;
    struct lmq_error err = {0};

    if (access(path, R_OK) != 0) {
        printf("skipped: there is no %s\n", path);
        return;
    }
    struct family_model *model =
        family_make(family_find("gpt2"), 1, 50257, 1);
    family_write(model, in_folder("gpt2"));
    ck_assert_int_eq(lmq_checkpoint_open(in_folder("gpt2"), &open,
                                         &checkpoint, &err),
                     LMQ_OK);
    ck_assert_msg(lmq_export(checkpoint, in_folder("a.gguf"), &options, NULL,
                             &report, &err) == LMQ_OK,
                  "%s", err.message);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    assert_same_tokens(path, in_folder("a.gguf"));

    take_pre("gpt-2");
    family_free(model);
}
END_TEST

/* A byte-level vocabulary without any merges, in which every way to cut a
 * text gives the same ids; or with some words and what makes them. */
static void
write_bytes(const char *path, const char *normalizer, const char *steps,
            const char *added, const char *merges, const char *words,
            bool ignores_merges)
{
    FILE *f = fopen(path, "w");
    unsigned n_others = 0;

    ck_assert_ptr_nonnull(f);
    fprintf(f,
            "{\"added_tokens\": [%s], \"normalizer\": %s, "
            "\"pre_tokenizer\": {\"type\": \"Sequence\", "
            "\"pretokenizers\": [%s]}, \"decoder\": {\"type\": "
            "\"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"merges\": [%s], "
            "\"ignore_merges\": %s, \"vocab\": {%s",
            added, normalizer, steps, merges,
            ignores_merges ? "true" : "false", words);
    for (unsigned i = 0; i < 256; i++) {
        bool is_itself = (i > 32 && i < 127) || (i > 160 && i != 173);
        fprintf(f, "%s\"\\u%04x\": %u", i == 0 ? "" : ", ",
                is_itself ? i : 256 + n_others++, i);
    }
    fprintf(f, "}}}\n");
    ck_assert_int_eq(fclose(f), 0);
}

#define CUT(regex)                                                            \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex "\"}, "         \
    "\"behavior\": \"Isolated\", \"invert\": false}, "                        \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "                 \
    "\"use_regex\": false}"
#define SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define WORDS "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
#define CASED                                                                 \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}"     \
    "\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+|"                       \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}"     \
    "\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*|"
#define REST                                                                  \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"          \
    "\\\\s+(?!\\\\S)|\\\\s+"
#define ADDED(flags)                                                          \
    "{\"id\": 256, \"content\": \"<x>\", \"special\": true" flags "}"
#define BYTES "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"

/* A name is that of a way to cut, whatever a vocabulary makes of it. */
START_TEST(pre_tokenizers_are_told_apart_without_the_vocabulary)
{
    static const struct {
        const char *normalizer, *steps, *name; /* NULL: there is none */
        const char *added, *note; /* or none */
    } cases[] = {
        {"null", BYTES, "gpt-2", ADDED(""), NULL},
        {"null", BYTES, "gpt-2", ADDED(", \"rstrip\": true"),
         "of 1 added tokens GGUF cannot say"},
        {"null", BYTES, "gpt-2", ADDED(", \"single_word\": true"),
         "count as words of their own"},
        {"null",
         "{\"type\": \"Digits\", \"individual_digits\": true}, " BYTES,
         "smollm", "", NULL},
        {"null", CUT(SHORT WORDS "\\\\p{N}" REST), "qwen2", "", NULL},
        {"{\"type\": \"NFC\"}", CUT(SHORT WORDS "\\\\p{N}" REST), "qwen2", "",
         "(NFC)"},
        {"null", CUT(SHORT WORDS "\\\\p{N}{1,3}" REST), "dbrx", "", NULL},
        {"null", CUT("(?i:'s|'t|'ve|'m|'ll|'d)|" WORDS "\\\\p{N}" REST),
         "qwen2", "", "'qwen2' is near"},
        {"null", CUT(CASED "\\\\p{N}" REST), NULL, "", NULL},
        {"null", CUT("'s|'t|'re|'ve|'m|'ll|'d|" WORDS "\\\\p{N}" REST), NULL,
         "", NULL},
        {"{\"type\": \"NFKC\"}", BYTES, NULL, "", NULL},
    };
    char *path = strdup(in_folder("tokenizer.json"));
    const struct lmq_open_options open = {.tokenizer = path};
    const struct lmq_export_options options = {.to = "gguf"};
    struct family_model *model = family_make(family_find("llama2"), 1, 300, 1);

    family_write(model, in_folder("llama"));
    family_free(model);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_checkpoint *checkpoint;
        struct lmq_report *report;
        struct lmq_error err = {0};
        write_bytes(path, cases[i].normalizer, cases[i].steps, cases[i].added,
                    "", "", false);
        ck_assert_int_eq(lmq_checkpoint_open(in_folder("llama"), &open,
                                             &checkpoint, &err),
                         LMQ_OK);
        enum lmq_status status = lmq_export(checkpoint, in_folder("a.gguf"),
                                            &options, NULL, &report, &err);
        lmq_checkpoint_close(checkpoint);
        if (cases[i].name == NULL) {
            ck_assert_msg(status == LMQ_ERR_UNSUPPORTED &&
                              strstr(err.message, "no words") != NULL,
                          "case %zu: %s", i, err.message);
            continue;
        }
        ck_assert_msg(status == LMQ_OK, "case %zu: %s", i, err.message);
        bool is_told = cases[i].note == NULL;
        for (size_t k = 0; k < 9; k++) {
            char key[16];
            snprintf(key, sizeof(key), "notes.%zu", k);
            const char *note = lmq_report_string(report, key);
            if (note == NULL)
                continue;
            bool is_it = cases[i].note != NULL &&
                         strstr(note, cases[i].note) != NULL;
            is_told |= is_it;
            REQUIRE(is_it || strstr(note, "GGUF") == NULL, "case %zu: %s", i,
                    note);
        }
        REQUIRE(is_told, "case %zu", i);
        lmq_report_free(report);
        take_pre(cases[i].name);
    }
    free(path);
}
END_TEST

static enum lmq_status
export_with(const char *tokenizer, struct lmq_report **report,
            struct lmq_error *err)
{
    const struct lmq_open_options open = {.tokenizer = tokenizer};
    struct family_model *model = family_make(family_find("llama2"), 1, 300, 1);
    struct lmq_checkpoint *checkpoint;

    family_write(model, in_folder("llama"));
    family_free(model);
    ck_assert_int_eq(lmq_checkpoint_open(in_folder("llama"), &open,
                                         &checkpoint, err),
                     LMQ_OK);
    enum lmq_status status = lmq_export(checkpoint, in_folder("a.gguf"),
                                        &as_gguf, NULL, report, err);
    lmq_checkpoint_close(checkpoint);
    return status;
}

static void
add_escaped(struct lmq_buffer *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            lmq_buffer_append(to, "\\", 1);
        lmq_buffer_append(to, text, 1);
    }
}

static bool
is_told(const struct lmq_report *report, const char *words)
{
    bool is_there = false;

    for (size_t i = 0; i < 9; i++) {
        char key[16];
        snprintf(key, sizeof(key), "notes.%zu", i);
        const char *note = lmq_report_string(report, key);
        is_there |= note != NULL && strstr(note, words) != NULL;
    }
    return is_there;
}

/* So each of them is written for a tokenizer.json that says it. */
START_TEST(every_way_to_split_finds_its_own_name)
{
    char *path = strdup(in_folder("tokenizer.json"));

    for (const struct lmq_pretype *p = lmq_pretype_next(NULL); p != NULL;
         p = lmq_pretype_next(p)) {
        struct lmq_buffer steps = {0};
        struct lmq_report *report;
        struct lmq_error err = {0};
        for (size_t i = 0; p->patterns[i] != NULL; i++) {
            lmq_buffer_print(&steps, "{\"type\": \"Split\", \"behavior\": "
                                     "\"Isolated\", \"pattern\": {\"Regex\": "
                                     "\"");
            add_escaped(&steps, p->patterns[i]);
            lmq_buffer_print(&steps, "\"}}, ");
        }
        lmq_buffer_print(&steps, "{\"type\": \"ByteLevel\", \"use_regex\": "
                                 "false, \"add_prefix_space\": false}");
        char *text = lmq_buffer_text(&steps);
        write_bytes(path, "null", text, "", "", "", p->prefers_whole);
        free(text);
        ck_assert_msg(export_with(path, &report, &err) == LMQ_OK, "%s: %s",
                      p->name, err.message);
        ck_assert_int_eq(is_told(report, "cuts words at combining marks"),
                         strcmp(p->name, "gpt-4o") == 0);
        ck_assert_int_eq(is_told(report, "groups digits"),
                         strcmp(p->name, "tiny_aya") == 0);
        lmq_report_free(report);
        take_pre(p->name);
    }
    free(path);
}
END_TEST

/* U+00FC is the letter of a byte, and alone or in what a merge makes it is
 * that byte. */
START_TEST(names_are_kept_though_their_letters_are_those_of_bytes)
{
    static const struct {
        int32_t id;
        const char *text;
    } expected[] = {{252, "\xfc"}, {256, "\u00fc"}, {257, "f\u00fcr"},
                    {258, "<\u00e9>"}};
    char *path = strdup(in_folder("tokenizer.json"));
    struct lmq_tokenizer *t;
    struct lmq_report *report;
    struct lmq_error err = {0};

    write_bytes(path, "null", BYTES,
                "{\"id\": 252, \"content\": \"\u00fc\"}, "
                "{\"id\": 256, \"content\": \"\u00c3\u00bc\"}, "
                "{\"id\": 257, \"content\": \"f\u00fcr\"}, "
                "{\"id\": 258, \"content\": \"<\u00e9>\", \"special\": true}",
                "\"\u00c3 \u00bc\"", "\"\u00c3\u00bc\": 256, ", false);
    ck_assert_msg(export_with(path, &report, &err) == LMQ_OK, "%s",
                  err.message);
    lmq_report_free(report);
    ck_assert_int_eq(lmq_tokenizer_from_path(in_folder("a.gguf"), NULL, &t,
                                             &err),
                     LMQ_OK);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct lmq_chars piece = lmq_tokenizer_piece(t, expected[i].id);
        ck_assert_msg(lmq_chars_equal(piece,
                                      lmq_chars(expected[i].text,
                                                strlen(expected[i].text))),
                      "%d: %.*s", (int)expected[i].id, (int)piece.n,
                      (const char *)piece.p);
    }
    lmq_tokenizer_close(t);
    free(path);
}
END_TEST

/* In the vocabulary it stands for the byte 0xE9 behind an f, which no merge
 * makes: no GGUF can say that. */
START_TEST(a_token_that_would_be_another_is_named)
{
    char *path = strdup(in_folder("tokenizer.json"));
    struct lmq_report *report;
    struct lmq_error err = {0};

    write_bytes(path, "null", BYTES,
                "{\"id\": 256, \"content\": \"f\u00e9\"}", "",
                "\"f\u00e9\": 256, ", false);
    ck_assert_int_eq(export_with(path, &report, &err), LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "token 256, "));
    free(path);
}
END_TEST

/* llama.cpp has one of its own then. */
START_TEST(a_gguf_of_bytes_without_an_end_is_told)
{
    char *path = strdup(in_folder("tokenizer.json"));
    const struct lmq_open_options open = {.tokenizer = path};
    struct family_model *model = family_make(family_find("llama2"), 1, 300, 1);

    family_write(model, in_folder("llama"));
    family_free(model);
    write_bytes(path, "null", BYTES, "", "", "", false);
    for (uint32_t n = 0; n < 2; n++) {
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err = {0};
        ck_assert_int_eq(lmq_checkpoint_open(in_folder("llama"), &open,
                                             &checkpoint, &err),
                         LMQ_OK);
        checkpoint->hparams.n_eos = n;
        checkpoint->hparams.eos[0] = 5;
        struct lmq_report *report;
        ck_assert_msg(lmq_export(checkpoint, in_folder("a.gguf"), &as_gguf,
                                 NULL, &report, &err) == LMQ_OK,
                      "%s", err.message);
        ck_assert_int_eq(is_told(report, "llama.cpp takes token 11 "), n == 0);
        lmq_report_free(report);
        lmq_checkpoint_close(checkpoint);
        remove(in_folder("a.gguf"));
    }
    free(path);
}
END_TEST

/* Hugging Face looks for a space and the token, GGUF only for the token. */
START_TEST(a_token_with_a_space_before_it_is_told)
{
    static const char json[] =
        "{\"added_tokens\": [{\"id\": 256, \"content\": \"<x>\", "
        "\"normalized\": %s}], \"normalizer\": {\"type\": \"Sequence\", "
        "\"normalizers\": [{\"type\": \"Prepend\", \"prepend\": "
        "\"\u2581\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": "
        "\" \"}, \"content\": \"\u2581\"}]}, \"decoder\": {\"type\": "
        "\"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
        "{\"String\": \"\u2581\"}, \"content\": \" \"}, {\"type\": "
        "\"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", "
        "\"content\": \" \", \"start\": 1, \"stop\": 0}]}, \"model\": "
        "{\"type\": \"BPE\", \"byte_fallback\": true, \"merges\": [], "
        "\"vocab\": {";
    char *path = strdup(in_folder("tokenizer.json"));

    for (int is_normalized = 0; is_normalized < 2; is_normalized++) {
        struct lmq_report *report;
        struct lmq_error err = {0};
        FILE *f = fopen(path, "w");
        ck_assert_ptr_nonnull(f);
        fprintf(f, json, is_normalized ? "true" : "false");
        for (unsigned i = 0; i < 256; i++)
            fprintf(f, "%s\"<0x%02X>\": %u", i == 0 ? "" : ", ", i, i);
        fprintf(f, "}}}\n");
        ck_assert_int_eq(fclose(f), 0);
        ck_assert_msg(export_with(path, &report, &err) == LMQ_OK, "%s",
                      err.message);
        ck_assert_int_eq(is_told(report, "with a space before"),
                         is_normalized);
        lmq_report_free(report);
        remove(in_folder("a.gguf"));
    }
    free(path);
}
END_TEST

#define MARK "\u2581"
#define TO_MARKS                                                              \
    "\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": "      \
    "\" \"}, \"content\": \"" MARK "\"}"
#define METASPACE                                                             \
    "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"" MARK    \
    "\", \"prepend_scheme\": \"never\", \"split\": false}"

/* A tokenizer with two spaces as a token of users, before a word, too. */
static void
write_two_spaces(const char *path, const char *spaces, const char *token)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    fprintf(f,
            "{\"added_tokens\": [{\"id\": 257, \"content\": \"" MARK MARK
            "\", %s}], %s, \"decoder\": {\"type\": \"Sequence\", "
            "\"decoders\": [{\"type\": \"Replace\", \"pattern\": "
            "{\"String\": \"" MARK "\"}, \"content\": \" \"}, {\"type\": "
            "\"ByteFallback\"}, {\"type\": \"Fuse\"}]}, \"model\": "
            "{\"type\": \"BPE\", \"byte_fallback\": true, \"merges\": "
            "[\"" MARK " a\", \"" MARK " " MARK "\"], \"vocab\": {\"" MARK
            "\": 256, \"" MARK MARK "\": 257, \"a\": 258, \"" MARK
            "a\": 259",
            token, spaces);
    for (unsigned i = 0; i < 256; i++)
        fprintf(f, ", \"<0x%02X>\": %u", i, i);
    fprintf(f, "}}}\n");
    ck_assert_int_eq(fclose(f), 0);
}

static void
assert_ids(const char *path, const char *text, const int32_t *ids, size_t n)
{
    struct lmq_tokenizer *t;
    struct lmq_error err = {0};
    int32_t *made;
    size_t n_made;

    ck_assert_int_eq(lmq_tokenizer_from_path(path, NULL, &t, &err), LMQ_OK);
    ck_assert_int_eq(
        lmq_tokenize(t, text, strlen(text), 0, &made, &n_made, &err), LMQ_OK);
    ck_assert_uint_eq(n_made, n);
    ck_assert_mem_eq(made, ids, n * sizeof(*ids));
    lmq_tokens_free(made);
    lmq_tokenizer_close(t);
}

/* Marks in a name are spaces of a text only if the token is looked for where a
 * normalizer has made marks of these. */
START_TEST(marks_in_names_of_users_are_what_they_are_looked_for_as)
{
    static const struct {
        const char *spaces, *token;
        const char *text; /* in which it is found; NULL: GGUF has no words */
    } cases[] = {
        {TO_MARKS, "\"normalized\": true", "a  a"},
        {TO_MARKS, "\"normalized\": false", "a" MARK MARK "a"},
        {METASPACE, "\"normalized\": true", "a" MARK MARK "a"},
        {TO_MARKS, "\"normalized\": true, \"single_word\": true", NULL},
    };
    static const int32_t found[] = {258, 257, 258}, merged[] = {258, 256, 259};
    char *path = strdup(in_folder("tokenizer.json"));

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_report *report;
        struct lmq_error err = {0};
        write_two_spaces(path, cases[i].spaces, cases[i].token);
        enum lmq_status status = export_with(path, &report, &err);
        if (cases[i].text == NULL) {
            ck_assert_int_eq(status, LMQ_ERR_UNSUPPORTED);
            continue;
        }
        ck_assert_msg(status == LMQ_OK, "%zu: %s", i, err.message);
        lmq_report_free(report);
        for (int k = 0; k < 2; k++) {
            const char *from = k == 0 ? path : in_folder("a.gguf");
            assert_ids(from, cases[i].text, found, 3);
            if (i > 0)
                assert_ids(from, "a  a", merged, 3);
        }
        remove(in_folder("a.gguf"));
    }
    free(path);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        tokenizers_are_said_in_other_words,
        tokens_that_end_a_text_are_those_of_the_model_too,
        a_chat_template_is_kept,
        a_byte_level_tokenizer_finds_its_pre_tokenizer,
        pre_tokenizers_are_told_apart_without_the_vocabulary,
        every_way_to_split_finds_its_own_name,
        names_are_kept_though_their_letters_are_those_of_bytes,
        a_token_that_would_be_another_is_named,
        a_gguf_of_bytes_without_an_end_is_told,
        a_token_with_a_space_before_it_is_told,
        marks_in_names_of_users_are_what_they_are_looked_for_as,
    };

    return RUN_SUITE("GGUF text", tests);
}
