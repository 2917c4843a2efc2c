/*
 * form.h - Unicode's normalization forms.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_FORM_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_FORM_H

#include "runtime/tokenizer/text/chars.h"

/* Appends NFC, NFD, NFKC or NFKD of valid UTF-8. 0, or -1 without memory. */
int lmq_form_apply(struct lmq_chars text, bool is_compatible, bool is_composed,
                   struct lmq_buffer *out);

#endif
