/*
 * export_gguf_remarks.h - a tokenizer in GGUF's words, and what becomes of it
 * there.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_GGUF_REMARKS_H
#define LMQ_CONVERT_EXPORT_EXPORT_GGUF_REMARKS_H

#include "base/notes.h"
#include "formats/checkpoint/blob.h"
#include "runtime/tokenizer/model/tok_pipeline.h"

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

/* Tokens that end a text for which GGUF has keys. */
#define LMQ_GGUF_N_ENDS 3

struct lmq_gguf_words {
    const struct lmq_tokenizer *t;
    const char *model, *pre; /* of tokenizer.ggml; pre may be NULL */
    uint32_t n;              /* tokens that the model has */
    const struct lmq_gguf_vocab *given;
    struct lmq_marks ends; /* the tokenizer's, and then the model's */
    bool is_near;  /* pre cuts rare neighbours otherwise than the tokenizer */
    bool composes; /* letters and their marks, where they stand apart */
    bool adds_space, drops_spaces; /* before a text; those behind another one */
    bool marks_spaces;             /* they become LMQ_SPACE_MARK */
    int32_t odd;   /* id that stands for another text when read again, or -1 */
    size_t n_lost; /* added tokens that are not found so when read again */
    size_t n_particular; /* that take white space then, and the like */
};

/* What the words cannot say, and what llama.cpp makes of them. */
void lmq_gguf_remark(const struct lmq_gguf_words *words,
                     struct lmq_notes *notes);

#endif
