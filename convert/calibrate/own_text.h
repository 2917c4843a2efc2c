/*
 * own_text.h - a text for who has none: what the model writes itself.
 *
 * Windows full of tokens, each drawn as the model says, out of all of them.
 * They begin with the begin token, or with one that ends a text if there is
 * none.
 * The same for any number of threads and on every machine.
 */
#ifndef LMQ_CONVERT_CALIBRATE_OWN_TEXT_H
#define LMQ_CONVERT_CALIBRATE_OWN_TEXT_H

#include "runtime/model.h"
#include "runtime/tokenizer/corpus.h"

struct lmq_own_text {
    struct lmq_model *model; /* opened lazily; its layers are not there */
    const struct lmq_tokenizer *tokenizer;
    size_t n_tokens, context; /* in all, 2 or more, and of a window */
    int threads;
};

/* All windows, of which only the first tokens are what they will be: so much is
 * known before the work. */
enum lmq_status lmq_own_text_lay_out(const struct lmq_own_text *text,
                                     struct lmq_corpus *corpus,
                                     struct lmq_error *err);

/* LMQ_ERR_NOMEM if the model is larger than memory, where each token is
 * multiplied with all of it. */
enum lmq_status lmq_own_text_check(const struct lmq_own_text *text,
                                   const struct lmq_corpus *corpus,
                                   struct lmq_error *err);

/* Fills them. corpus->crc becomes that of the tokens, four bytes each. */
enum lmq_status lmq_own_text_write(const struct lmq_own_text *text,
                                   const struct lmq_progress *progress,
                                   struct lmq_corpus *corpus,
                                   struct lmq_error *err);

#endif
