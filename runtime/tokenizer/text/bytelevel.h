/*
 * bytelevel.h - GPT-2's letters for bytes.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_BYTELEVEL_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_BYTELEVEL_H

#include <stdbool.h>

#include "runtime/tokenizer/text/chars.h"

/* Appends the bytes that the letters stand for; false, with nothing appended,
 * if one of them stands for none. */
bool lmq_bytelevel_unmap(struct lmq_chars letters, struct lmq_buffer *out);

/* Appends a letter for each byte; -1 without memory. */
int lmq_bytelevel_map(struct lmq_chars bytes, struct lmq_buffer *out);

#endif
