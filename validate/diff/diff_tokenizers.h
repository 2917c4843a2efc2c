/*
 * diff_tokenizers.h - whether two checkpoints make the same tokens of a text.
 */
#ifndef LMQ_VALIDATE_DIFF_TOKENIZERS_H
#define LMQ_VALIDATE_DIFF_TOKENIZERS_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/checkpoint/checkpoint.h"

/* Byte for byte: then nothing needs to be compared. */
bool lmq_have_same_tokenizer_files(const struct lmq_checkpoint *a,
                                   const struct lmq_checkpoint *b);

/* An object: "equal" (null where neither has one), "in_a", "in_b",
 * "differences" (objects "key", "a", "b"). What they do counts, not how their
 * files say it. */
enum lmq_status lmq_diff_tokenizers(const struct lmq_checkpoint *a,
                                    const struct lmq_checkpoint *b,
                                    json_t **json, struct lmq_error *err);

#endif
