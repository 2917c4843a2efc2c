/*
 * own_text.h - a text for who has none: what the model writes itself.
 *
 * Windows full of tokens, each drawn as the model says, out of all of them.
 * The same for any number of threads and on every machine.
 */
#ifndef LMQ_CONVERT_CALIBRATE_OWN_TEXT_H
#define LMQ_CONVERT_CALIBRATE_OWN_TEXT_H

#include "runtime/model.h"
#include "runtime/tokenizer/corpus.h"

struct lmq_own_text {
    struct lmq_model *model; /* opened lazily; its layers are not there */
    const struct lmq_tokenizer *tokenizer;
    size_t n_tokens, context; /* in all, and of a window */
    int threads;
    bool is_dry; /* only as many: which they would be is not computed */
};

/* LMQ_ERR_NOMEM if the model is larger than memory: each token is multiplied with
 * all of it. corpus->crc is of the tokens, four bytes each. */
enum lmq_status lmq_own_text_write(const struct lmq_own_text *text,
                                   const struct lmq_progress *progress,
                                   struct lmq_corpus *corpus,
                                   struct lmq_error *err);

#endif
