/*
 * hf_vocab_pair.h - a tokenizer kept in vocab.json and merges.txt.
 */
#ifndef LMQ_FORMATS_HF_HF_VOCAB_PAIR_H
#define LMQ_FORMATS_HF_HF_VOCAB_PAIR_H

#include "formats/checkpoint/checkpoint.h"

/*
 * Adds as tokenizer.json what the two files say, with the pipeline that
 * transformers gives to the class in tokenizer_config.json or, without one, to
 * the architecture that was read. Of another class nothing is added, and a
 * note says so; folders without both files are none of its business.
 */
enum lmq_status lmq_hf_add_vocab_pair(struct lmq_checkpoint *checkpoint,
                                      const char *folder,
                                      struct lmq_error *err);

#endif
