/*
 * added.h - tokens that are looked for in the text itself.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_MODEL_ADDED_H
#define LMQ_RUNTIME_TOKENIZER_MODEL_ADDED_H

#include "lmquant.h"
#include "runtime/tokenizer/text/chars.h"
#include "runtime/tokenizer/text/trie.h"

struct lmq_added_token {
    int32_t id;
    size_t start, n; /* its text within lmq_added.texts */
    bool is_special; /* found only if the caller asks for special tokens */
    bool is_normalized; /* found in the normalized text */
    bool strips_left, strips_right; /* takes the white space beside it */
    bool is_single_word; /* not if a letter stands beside it */
};

struct lmq_added {
    struct lmq_buffer texts;
    struct lmq_added_token *tokens;
    size_t n, capacity;
    struct lmq_trie raw, normalized; /* ids are indices of tokens */
};

/* A token and the white space that it takes. */
struct lmq_added_match {
    size_t start, stop; /* all n at the end of the text */
    size_t next; /* before that space: tokens in it are found all the same */
    int32_t id;  /* -1 at the end */
};

enum lmq_status lmq_added_add(struct lmq_added *added,
                              struct lmq_added_token token,
                              struct lmq_chars text, struct lmq_error *err);
/* After the last one. */
enum lmq_status lmq_added_build(struct lmq_added *added,
                                struct lmq_error *err);
void lmq_added_free(struct lmq_added *added);

struct lmq_text_span {
    size_t start, stop;
};

/* Where a token is found that is special, or guarded; all others are found
 * anywhere. */
struct lmq_added_rule {
    bool is_anywhere;
    const struct lmq_text_span *spans; /* else only within these, in order: */
    size_t n_spans; /* there all tokens are looked for as written */
    const int32_t *guarded;
    size_t n_guarded;
};

/* The next token from `at` on, which takes no white space before `floor`; of
 * one of the tries, the raw or the normalized one. The `next` and `stop` of one
 * are where the search for the one behind it begins. */
struct lmq_added_match lmq_added_next(const struct lmq_added *added,
                                      const struct lmq_trie *trie,
                                      struct lmq_chars text, size_t at,
                                      size_t floor,
                                      const struct lmq_added_rule *rule);

#endif
