/*
 * formats.h - the table of formats: a new one is one line here and one in
 * formats.c.
 */
#ifndef LMQ_FORMATS_FORMATS_H
#define LMQ_FORMATS_FORMATS_H

#include "formats/checkpoint/checkpoint.h"

extern const struct lmq_format lmq_format_lmq;
extern const struct lmq_format lmq_format_gguf;
extern const struct lmq_format lmq_format_safetensors;
extern const struct lmq_format lmq_format_torch;
extern const struct lmq_format lmq_format_llama2c;

/* In the order in which they are tried; NULL ends it. */
extern const struct lmq_format *const lmq_formats[];

#endif
