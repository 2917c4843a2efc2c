/*
 * gguf_scales.h - scales that stand beside matrices.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_SCALES_H
#define LMQ_FORMATS_GGUF_GGUF_SCALES_H

#include "formats/checkpoint/checkpoint.h"

/* Before the tensors are placed: gives matrices their scales, and takes these
 * off the list; of activations they are just left out. */
enum lmq_status lmq_gguf_take_scales(struct lmq_checkpoint *checkpoint,
                                     struct lmq_error *err);

#endif
