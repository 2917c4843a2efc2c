/*
 * test_corpus.c - of a long text only the beginning is encoded, where no more
 * is asked for; the tokens are those of the whole.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/tokenizer/corpus.h"
#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"

#define MIB ((size_t)1 << 20)

static struct lmq_tokenizer *
open_fable(void)
{
    struct lmq_tokenizer *tokenizer;

    ck_assert_int_eq(lmq_tokenizer_from_path(source_path("data/fable"), NULL,
                                             &tokenizer, NULL),
                     LMQ_OK);
    return tokenizer;
}

/* n bytes: `text` again and again, with a character of two bytes behind each
 * so that some end of it is no end of a character. */
static unsigned char *
repeat(const char *text, size_t n)
{
    static const char between[] = "\xc3\xa4\n\n";
    unsigned char *bytes = malloc(n + 1);
    size_t size = strlen(text), period = size + strlen(between);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i % period < size
                                       ? text[i % period]
                                       : between[i % period - size]);
    bytes[n] = '\0';
    return bytes;
}

static struct lmq_corpus
make_corpus(const struct lmq_tokenizer *tokenizer, unsigned char *bytes,
            size_t n, const struct lmq_protocol *protocol)
{
    struct lmq_text text = {"a text", bytes, n};
    const struct lmq_texts texts = {&text, 1};
    struct lmq_corpus corpus;
    struct lmq_error err = {0};

    ck_assert_msg(lmq_corpus_from_texts(tokenizer, &texts, protocol, &corpus,
                                        &err) == LMQ_OK,
                  "%s", err.message);
    return corpus;
}

/* `most` tokens are the first of those that the whole text has. */
static void
assert_beginning(const struct lmq_tokenizer *tokenizer, unsigned char *bytes,
                 size_t n, size_t most)
{
    const struct lmq_protocol all = {.context = 64, .stride = 64};
    struct lmq_protocol some = all;

    some.max_tokens = most;
    struct lmq_corpus whole = make_corpus(tokenizer, bytes, n, &all);
    struct lmq_corpus corpus = make_corpus(tokenizer, bytes, n, &some);
    ck_assert_uint_eq(corpus.n_read, most);
    ck_assert_uint_eq(corpus.n_bytes, n);
    ck_assert_uint_eq(corpus.crc, whole.crc);
    ck_assert_uint_le(corpus.n_windows, whole.n_windows);
    for (size_t i = 0; i < corpus.n_windows; i++) {
        const struct lmq_window *window = &corpus.windows[i];
        ck_assert_uint_eq(window->first, whole.windows[i].first);
        ck_assert_mem_eq(corpus.tokens + window->first,
                         whole.tokens + window->first,
                         window->n * sizeof(*corpus.tokens));
    }
    lmq_corpus_free(&corpus);
    lmq_corpus_free(&whole);
}

START_TEST(a_beginning_has_the_tokens_of_the_whole)
{
    struct lmq_tokenizer *tokenizer = open_fable();
    size_t n_story, n = MIB + 300000;
    unsigned char *story =
        read_file(source_path("data/fable/held-out-b.txt"), &n_story);

    story[5000] = '\0';
    unsigned char *bytes = repeat((const char *)story, n);
    for (size_t most = 1; most < 5000; most = most * 3 + 1)
        for (size_t less = 0; less < 3; less++)
            assert_beginning(tokenizer, bytes, n - less, most);
    free(bytes);
    free(story);
    lmq_tokenizer_close(tokenizer);
}
END_TEST

/* All of these spaces are one token. */
START_TEST(a_beginning_with_too_few_tokens_is_not_enough)
{
    static const char one_space[] = SPM_BPE "\x1a\x04\x18\x01\x20\x01";
    struct lmq_tokenizer *tokenizer =
        open_buffer(spm_file(one_space, sizeof(one_space) - 1));
    size_t n = 2 * MIB, n_words = 20000;
    unsigned char *bytes = repeat("ab", n);

    memset(bytes, ' ', n - n_words);
    assert_beginning(tokenizer, bytes, n, 1000);
    free(bytes);
    lmq_tokenizer_close(tokenizer);
}
END_TEST

/* More than can be encoded at all; of what is not touched there is nothing. */
START_TEST(what_is_behind_it_is_not_encoded)
{
    const struct lmq_protocol protocol = {
        .context = 64, .stride = 64, .max_tokens = 1000};
    struct lmq_tokenizer *tokenizer = open_fable();
    size_t n = LMQ_TOKENIZER_MAX_TEXT + 1;
    unsigned char *words = repeat("once upon a time ", 4 * MIB);
    unsigned char *bytes =
        mmap(NULL, n, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (bytes != MAP_FAILED) { /* as with little address space */
        memcpy(bytes, words, 4 * MIB);
        struct lmq_corpus corpus =
            make_corpus(tokenizer, bytes, n, &protocol);
        ck_assert_uint_eq(corpus.n_read, 1000);
        lmq_corpus_free(&corpus);
        munmap(bytes, n);
    }
    free(words);
    lmq_tokenizer_close(tokenizer);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_beginning_has_the_tokens_of_the_whole,
        a_beginning_with_too_few_tokens_is_not_enough,
        what_is_behind_it_is_not_encoded,
    };

    return RUN_SUITE("corpus", tests);
}
