/*
 * export_gguf_vocab.h - a tokenizer as the keys of a GGUF.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_GGUF_VOCAB_H
#define LMQ_CONVERT_EXPORT_EXPORT_GGUF_VOCAB_H

#include "convert/export/export_gguf_remarks.h"
#include "formats/gguf/gguf_build.h"

/* Puts the keys "tokenizer.*"; what they cannot say is noted. */
enum lmq_status lmq_gguf_put_vocab(struct lmq_gguf_builder *builder,
                                   const struct lmq_gguf_vocab *vocab,
                                   struct lmq_notes *notes,
                                   struct lmq_error *err);

#endif
