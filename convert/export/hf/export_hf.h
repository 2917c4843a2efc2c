/*
 * export_hf.h - names and config.json as Hugging Face has them.
 */
#ifndef LMQ_CONVERT_EXPORT_HF_EXPORT_HF_H
#define LMQ_CONVERT_EXPORT_HF_EXPORT_HF_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"
#include "formats/families/families.h"

/* How Hugging Face's formats express a checkpoint. */
struct lmq_hf_words {
    const struct lmq_family *family; /* NULL: names are canonical */
    json_t *config;                     /* owned; NULL: there is no model */
    bool norms_less_one;                /* norms are stored minus 1 */
};

/*
 * Finds the words. A config.json that is made counts only if it reads back as
 * the very same description; else, and for families that are not known here,
 * names stay canonical and config.json has the description itself, which only
 * lmquant understands; a note says so. `type` is the weights' ("float32").
 */
enum lmq_status lmq_hf_words_find(const struct lmq_checkpoint *checkpoint,
                                  const char *type, struct lmq_hf_words *words,
                                  struct lmq_notes *notes,
                                  struct lmq_error *err);
void lmq_hf_words_free(struct lmq_hf_words *words);

/* The name of a tensor. */
void lmq_hf_words_name(const struct lmq_hf_words *words,
                       const struct lmq_checkpoint *checkpoint,
                       const struct lmq_tensor *tensor, char *name,
                       size_t size);

/* Whether its elements are stored minus 1. */
bool lmq_hf_words_subtract(const struct lmq_hf_words *words,
                           const struct lmq_tensor *tensor);

#endif
