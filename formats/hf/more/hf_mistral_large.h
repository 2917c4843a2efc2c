/*
 * hf_mistral_large.h - what Mistral Large 4 does beside its row.
 */
#ifndef LMQ_FORMATS_HF_MORE_HF_MISTRAL_LARGE_H
#define LMQ_FORMATS_HF_MORE_HF_MISTRAL_LARGE_H

#include "formats/checkpoint/checkpoint.h"
#include "formats/families/family_row.h"

void lmq_hf_begin_mistral_large4(struct lmq_hf_config *config);
void lmq_hf_finish_mistral_large4(struct lmq_hf_config *config);

/* Makes frequencies of RoPE that a tensor multiplies a part of the description,
 * and takes the tensor off the list. */
enum lmq_status lmq_hf_take_frequencies(struct lmq_checkpoint *checkpoint,
                                        struct lmq_error *err);

#endif
