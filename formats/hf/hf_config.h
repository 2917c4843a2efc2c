/*
 * hf_config.h - the config.json of Hugging Face checkpoints, read and made.
 */
#ifndef LMQ_FORMATS_HF_HF_CONFIG_H
#define LMQ_FORMATS_HF_HF_CONFIG_H

#include "formats/checkpoint/checkpoint.h"
#include "formats/families/families.h"
#include "formats/model/hparams.h"

/*
 * Fills in the hyper-parameters, and how checkpoints of this family arrange
 * their tensors. *is_known tells whether the architecture is one of ours; of
 * one that is not, only its name and `unsupported` are set.
 *
 * Under the key "lmquant" a configuration may hold a whole description, as
 * lmq_hparams_to_json() writes it; then nothing else counts.
 */
enum lmq_status lmq_config_parse(const unsigned char *text, size_t size,
                                 struct lmq_hparams *hparams,
                                 struct lmq_source *source, bool *is_known,
                                 struct lmq_error *err);

/*
 * The way back, for a family that is written. It need not be trusted: whoever
 * writes it reads it back first. Of a description that the family's keys
 * cannot say, something is lost. NULL if there is no memory.
 */
json_t *lmq_config_make(const struct lmq_family *family,
                        const struct lmq_hparams *hparams, bool is_tied);

/* JSON from somebody else: duplicate keys are refused, and the error says in
 * which line. Release with json_decref(). */
enum lmq_status lmq_json_parse(const unsigned char *text, size_t size,
                               json_t **json, struct lmq_error *err);

/* The same of a config.json, where Infinity and NaN may stand for numbers, as
 * Python writes them: they become texts. */
enum lmq_status lmq_config_json(const unsigned char *text, size_t size,
                                json_t **json, struct lmq_error *err);

#endif
