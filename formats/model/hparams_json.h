/*
 * hparams_json.h - descriptions as JSON: the object "model" of
 * lmq-model(5).
 */
#ifndef LMQ_FORMATS_MODEL_HPARAMS_JSON_H
#define LMQ_FORMATS_MODEL_HPARAMS_JSON_H

#include <jansson.h>

#include "formats/model/hparams_fields.h"

/* The form in which a container and a report keep them (lmq-model(5)).
 * Keys that are seldom needed are there only where they say something else
 * than for a Llama; `requires` lists them. One listed there that is not known
 * makes a description that cannot be computed with. */
json_t *lmq_hparams_to_json(const struct lmq_hparams *hparams);
enum lmq_status lmq_hparams_from_json(const json_t *json,
                                      struct lmq_hparams *hparams,
                                      struct lmq_error *err);

/* As a container has it; NULL if there is no memory. */
json_t *lmq_field_to_json(const struct lmq_field *field,
                          const struct lmq_hparams *hparams);

#endif
