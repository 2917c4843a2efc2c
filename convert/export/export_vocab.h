/*
 * export_vocab.h - the tokenizer.bin that llama2.c's programs want beside
 * them.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_VOCAB_H
#define LMQ_CONVERT_EXPORT_EXPORT_VOCAB_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"
#include "runtime/tokenizer/text/chars.h"

struct lmq_vocab_file {
    char *path; /* NULL: nothing is to be written */
    struct lmq_buffer bytes;
};

/*
 * Makes one for the folder of `output` from a llama2.c or SentencePiece
 * tokenizer that the checkpoint carries. Where there is none, or another file
 * stands there already, nothing will be written and a note says so.
 */
enum lmq_status lmq_vocab_file_prepare(const struct lmq_checkpoint *checkpoint,
                                       const char *output,
                                       struct lmq_vocab_file *file,
                                       struct lmq_notes *notes,
                                       struct lmq_error *err);

/* Written, but not committed; *output is NULL if nothing is to be written. */
enum lmq_status lmq_vocab_file_write(const struct lmq_vocab_file *file,
                                     struct lmq_output **output,
                                     struct lmq_error *err);
void lmq_vocab_file_free(struct lmq_vocab_file *file);

#endif
