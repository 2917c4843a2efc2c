/*
 * hf_card.h - what a Hugging Face folder says for people.
 */
#ifndef LMQ_FORMATS_HF_HF_CARD_H
#define LMQ_FORMATS_HF_HF_CARD_H

#include "formats/checkpoint/checkpoint.h"

/* The header of README.md, if there is one. */
enum lmq_status lmq_hf_read_card(struct lmq_checkpoint *checkpoint,
                                 const char *folder, struct lmq_error *err);

/* "__metadata__" of a safetensors header. */
enum lmq_status lmq_hf_read_metadata(struct lmq_checkpoint *checkpoint,
                                     const json_t *metadata,
                                     struct lmq_error *err);

#endif
