/*
 * hf_folder.h - what Hugging Face folders have in common, whatever the format
 * of their weights: config.json, a tokenizer, an index of shards.
 */
#ifndef LMQ_FORMATS_HF_HF_FOLDER_H
#define LMQ_FORMATS_HF_HF_FOLDER_H

#include <stdbool.h>

#include "formats/checkpoint/checkpoint.h"

/* The folder itself, or the one that its file stands in; freed with free(),
 * NULL without memory. */
char *lmq_hf_folder_of(const struct lmq_checkpoint *checkpoint);

/* Once all tensors are there: the model from a config.json. */
enum lmq_status lmq_hf_read_config(struct lmq_checkpoint *checkpoint,
                                   const char *path, struct lmq_error *err);

/* The same from the one that the options give, or from the folder's; without
 * one there are tensors, but no model. */
enum lmq_status lmq_hf_describe(struct lmq_checkpoint *checkpoint,
                                const char *folder,
                                const struct lmq_open_options *options,
                                struct lmq_error *err);

/* The tokenizer's files, if there are any. */
enum lmq_status lmq_hf_add_tokenizer(struct lmq_checkpoint *checkpoint,
                                     const char *folder,
                                     struct lmq_error *err);

/* Model and tokenizer, as far as the options do not give something else. */
enum lmq_status lmq_hf_read_companions(struct lmq_checkpoint *checkpoint,
                                       const char *folder,
                                       const struct lmq_open_options *options,
                                       struct lmq_error *err);

/* Weights that count only with an adapter are not the model: libraries add what
 * lies beside them. Once all tensors are there. */
enum lmq_status lmq_hf_check_adapter(const struct lmq_checkpoint *checkpoint,
                                     const char *folder,
                                     struct lmq_error *err);

/* How a format keeps the shards of a checkpoint. */
struct lmq_hf_shards {
    const char *index;  /* the name of the file that lists them */
    const char *single; /* that of a model in one file */
    /* Adds one and its tensors to the checkpoint. */
    enum lmq_status (*add)(struct lmq_checkpoint *checkpoint, const char *path,
                           uint32_t *index, struct lmq_error *err);
};

/* All shards that the folder's index names. They must agree with it on every
 * tensor. */
enum lmq_status lmq_hf_open_index(struct lmq_checkpoint *checkpoint,
                                  const char *folder,
                                  const struct lmq_hf_shards *shards,
                                  struct lmq_error *err);

#endif
