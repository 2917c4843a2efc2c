/*
 * corpus.h - the text that both models read, cut into windows.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_CORPUS_H
#define LMQ_RUNTIME_TOKENIZER_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/name_table.h"
#include "lmquant.h"

/* One run of tokens through the models, from position 0. */
struct lmq_window {
    size_t first;    /* its tokens begin here in lmq_corpus.tokens */
    size_t n;
    size_t scored;   /* tokens [scored, n) are predicted and counted */
    size_t document;
    bool adds_blank; /* the first scored begins with one that is no text */
};

struct lmq_corpus {
    int32_t *tokens; /* of all windows, one after the other */
    size_t n_tokens, tokens_capacity;
    struct lmq_window *windows;
    size_t n_windows, windows_capacity;
    size_t n_documents;
    size_t n_short;  /* more, left out: they do not fill a window */
    size_t n_read;   /* tokens of text, each counted once */
    size_t n_scored;
    uint64_t n_bytes; /* of the texts */
    uint32_t crc;     /* CRC-32 of the texts, or of the token file */
    uint32_t *crcs;   /* of each text alone */
    size_t n_texts;
    bool has_bos;     /* windows begin with the begin token */
};

extern const struct lmq_name lmq_score_names[]; /* of is_second_half */

/* How to cut; understood from lmq_validate_options. */
struct lmq_protocol {
    size_t context, stride;
    bool is_second_half;
    bool splits_documents; /* at blank lines */
    size_t max_tokens;     /* 0: no limit */
};

/* A note on windows of so many tokens, more than who is named was trained
 * for. */
#define LMQ_LONG_WINDOWS                                                      \
    "windows of %zu tokens are longer than the %u that %.400s was trained for"

/* Texts as they were read, once: standard input does not come again. */
struct lmq_texts {
    struct lmq_text {
        const char *path; /* borrowed; for messages */
        unsigned char *bytes;
        size_t n;
    } *texts;
    size_t n;
};

/* Plain or .gz; "-" is standard input. What is no text is refused. A signal
 * makes it ask whether to go on. */
enum lmq_status lmq_texts_read(const char *const *paths, size_t n_paths,
                               const struct lmq_progress *progress,
                               struct lmq_texts *texts, struct lmq_error *err);
void lmq_texts_free(struct lmq_texts *texts);

/* Encodes and cuts them. Each text is a document, or each paragraph with
 * splits_documents. */
enum lmq_status lmq_corpus_from_texts(const struct lmq_tokenizer *tokenizer,
                                      const struct lmq_texts *texts,
                                      const struct lmq_protocol *protocol,
                                      struct lmq_corpus *corpus,
                                      struct lmq_error *err);

/* Raw little-endian ids: 32 bits wide if the vocabulary needs them, else 16; or
 * wider, up to 64, if the upper halves of all are 0. */
enum lmq_status lmq_corpus_from_ids(const char *path, size_t vocabulary,
                                    int32_t bos,
                                    const struct lmq_protocol *protocol,
                                    struct lmq_corpus *corpus,
                                    struct lmq_error *err);

/* One window of these ids behind the begin token, if there is one (-1: none);
 * the first n_unscored of them are not counted. */
enum lmq_status lmq_corpus_add_window(struct lmq_corpus *corpus, int32_t bos,
                                      const int32_t *ids, size_t n,
                                      size_t n_unscored,
                                      struct lmq_error *err);

void lmq_corpus_free(struct lmq_corpus *corpus);

#endif
