/*
 * export_gguf_pre.h - the name that GGUF has for how a tokenizer cuts text.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_GGUF_PRE_H
#define LMQ_CONVERT_EXPORT_EXPORT_GGUF_PRE_H

#include <stdbool.h>

#include "lmquant.h"

/* Words, spaces, digits, signs and letters that pre-tokenizers treat in
 * different ways. */
extern const char lmq_gguf_traps[];

/* *name: the first that cuts as the tokenizer does, or else the first that only
 * rare neighbours tell from it, and then *is_near; NULL: there is none. */
enum lmq_status lmq_gguf_find_pre(const struct lmq_tokenizer *tokenizer,
                                  const char **name, bool *is_near,
                                  struct lmq_error *err);

#endif
