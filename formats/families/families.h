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

/* By general.architecture. */
const struct lmq_family *lmq_family_of_gguf(const char *name, size_t size);

/* By what we call it: the first of that name. These give NULL if there is
 * none. */
const struct lmq_family *lmq_family_find(const char *architecture);

/* The key for the biases of a matrix in config.json (family_row.h). */
const char *lmq_family_bias_key(const struct lmq_family *family,
                                enum lmq_role role);

#endif
