/*
 * test_tokenizer_real.c - tokenizers that people use, where they are at hand,
 * with known results.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"

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
    const TTest *const tests[] = {
        known_vectors_come_out,
        files_of_one_vocabulary_agree_on_long_texts,
    };

    return RUN_SUITE("tokenizer_real", tests);
}
