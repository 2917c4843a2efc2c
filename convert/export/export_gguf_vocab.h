/*
 * export_gguf_vocab.h - a tokenizer as the keys of a GGUF.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_GGUF_VOCAB_H
#define LMQ_CONVERT_EXPORT_EXPORT_GGUF_VOCAB_H

#include <stdbool.h>

#include "base/notes.h"
#include "formats/checkpoint/blob.h"
#include "formats/gguf/gguf_build.h"

/* What the model says besides the tokenizer's files. */
struct lmq_gguf_vocab {
    const char *name; /* general.name */
    const struct lmq_blob *blobs;
    size_t n_blobs;
    uint32_t n_tokens; /* that the model has */
    int32_t bos;       /* if the files name none; -1: none */
    const int32_t *eos;
    size_t n_eos;
    bool keeps_merges; /* of SentencePiece's kind: llama.cpp merges by a list in
                          this family, not by scores */
};

/* Puts the keys "tokenizer.*"; what they cannot say is noted. */
enum lmq_status lmq_gguf_put_vocab(struct lmq_gguf_builder *builder,
                                   const struct lmq_gguf_vocab *vocab,
                                   struct lmq_notes *notes,
                                   struct lmq_error *err);

#endif
