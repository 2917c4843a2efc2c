/*
 * families.h - the table of families, a row each.
 */
#ifndef LMQ_FORMATS_FAMILIES_FAMILIES_H
#define LMQ_FORMATS_FAMILIES_FAMILIES_H

#include "formats/families/family_row.h"

/* By a class of Hugging Face's library (or NULL), or else a model type;
 * *class is the one of the family that it is. NULL with a *class: a model of
 * several senses, whose text may be of any family. */
const struct lmq_family *
lmq_family_of_class(const char *class_name, const char *model_type,
                    const struct lmq_hf_class **class);

/* Of the text of a model of several senses, by its own model type: the row of
 * the model's class, which may be NULL, if it has that type too, with defaults
 * of its own; else any. */
const struct lmq_family *lmq_family_of_text(const struct lmq_family *family,
                                            const char *type);

/* By general.architecture. */
const struct lmq_family *lmq_family_of_gguf(const char *name, size_t size);

/* By what we call it: the first of that name. These give NULL if there is
 * none. */
const struct lmq_family *lmq_family_find(const char *architecture);

/* What config.json says of the biases of a matrix; the key may be NULL. */
const struct lmq_hf_bias *lmq_family_bias(const struct lmq_family *family,
                                          enum lmq_role role);

#endif
