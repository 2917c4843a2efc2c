/*
 * chat.h - a chat format with a tokenizer.
 */
#ifndef LMQ_RUNTIME_CHAT_CHAT_H
#define LMQ_RUNTIME_CHAT_CHAT_H

#include "runtime/chat/chat_formats.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

struct lmq_chat {
    const struct lmq_tokenizer *tokenizer;
    const struct lmq_chat_format *format;
    bool has_begin;             /* the begin token is a part of the frame */
    struct lmq_buffer standard; /* what the system says by itself */
    struct lmq_buffer pages[LMQ_CHAT_PAGES]; /* of its template; may be empty */
    struct lmq_ids guarded; /* tokens of the frames, which no words make */
    struct lmq_marks ends;
    const char *stop; /* a text that ends an answer, or NULL */
};

#endif
