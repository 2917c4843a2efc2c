/*
 * meta_params.h - the params.json of Meta's checkpoints, and the model_args of
 * llama2.c's, which have the same keys.
 */
#ifndef LMQ_FORMATS_TORCH_META_PARAMS_H
#define LMQ_FORMATS_TORCH_META_PARAMS_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/checkpoint/checkpoint.h"

/* Whether the object is one of these, and no config.json. */
bool lmq_meta_is_params(const json_t *json);

/* Whether the tensors have Meta's names, by which rotary pairs stand side by
 * side. */
bool lmq_meta_has_names(const struct lmq_checkpoint *checkpoint);

/* The hyper-parameters, from `params` and from the shapes of the tensors,
 * which are whole already. `name` is what messages call the object. */
enum lmq_status lmq_meta_describe(struct lmq_checkpoint *checkpoint,
                                  const json_t *params, const char *name,
                                  struct lmq_error *err);

#endif
