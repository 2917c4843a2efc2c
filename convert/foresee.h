/*
 * foresee.h - what a conversion can tell of the trouble that waits behind it.
 */
#ifndef LMQ_CONVERT_FORESEE_H
#define LMQ_CONVERT_FORESEE_H

#include <stdbool.h>

#include "formats/checkpoint/checkpoint.h"

/* Notes why the model cannot be run or will have no text. A tokenizer with
 * more tokens than the model has rows, and a file given as one that is none,
 * are refused, or noted if it is kept by force. */
enum lmq_status lmq_convert_foresee(const struct lmq_checkpoint *checkpoint,
                                    bool forces_tokenizer,
                                    struct lmq_notes *notes,
                                    struct lmq_error *err);

#endif
