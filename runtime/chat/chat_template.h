/*
 * chat_template.h - the chat template among the files of a tokenizer.
 */
#ifndef LMQ_RUNTIME_CHAT_CHAT_TEMPLATE_H
#define LMQ_RUNTIME_CHAT_CHAT_TEMPLATE_H

#include "base/text/buffer.h"
#include "formats/checkpoint/blob.h"
#include "lmquant.h"

/* Larger ones are refused; real ones stay below 64 KiB. */
#define LMQ_CHAT_TEMPLATE_MOST ((size_t)1 << 20)

/*
 * Appends it to text: chat_template.jinja, else what tokenizer_config.json has
 * (the one called "default" of several), or chat_template.json, as models of
 * several senses have it, else the key of a GGUF. Nothing if there is none.
 * What is there and no text is LMQ_ERR_FORMAT.
 */
enum lmq_status lmq_chat_template_find(const struct lmq_blob *blobs,
                                       size_t n_blobs,
                                       struct lmq_buffer *text,
                                       struct lmq_error *err);

#endif
