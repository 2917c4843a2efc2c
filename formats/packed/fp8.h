/*
 * fp8.h - FP8 matrices and the scales beside them.
 */
#ifndef LMQ_FORMATS_PACKED_FP8_H
#define LMQ_FORMATS_PACKED_FP8_H

#include <jansson.h>

#include "formats/checkpoint/name_list.h"

/* `quantization` is config.json's quantization_config, or NULL. */
enum lmq_status lmq_fp8_attach_scales(struct lmq_checkpoint *checkpoint,
                                      const struct lmq_name_list *list,
                                      const json_t *quantization,
                                      struct lmq_error *err);

#endif
