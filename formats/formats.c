/*
 * formats.c - the table of formats, the most certain to recognise first.
 */
#include "config.h"

#include "formats/formats.h"

const struct lmq_format *const lmq_formats[] = {
    &lmq_format_lmq,
    &lmq_format_gguf,
    &lmq_format_safetensors,
    &lmq_format_torch,
    &lmq_format_llama2c,
    NULL,
};
