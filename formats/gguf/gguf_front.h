/*
 * gguf_front.h - the front of a GGUF file: keys, values and tensor infos.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_FRONT_H
#define LMQ_FORMATS_GGUF_GGUF_FRONT_H

#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/checkpoint.h"
#include "formats/gguf/gguf_meta.h"

/* Zero it to begin. `meta` points into `bytes`. */
struct lmq_gguf_front {
    unsigned char *bytes;
    size_t size;
    struct lmq_gguf_meta *meta;
    uint64_t data_at; /* in the file */
};

/* Reads as much of the file as keys and tensor infos take. */
enum lmq_status lmq_gguf_front_read(struct lmq_input *input,
                                    struct lmq_gguf_front *front,
                                    struct lmq_error *err);
void lmq_gguf_front_free(struct lmq_gguf_front *front);

/* Adds the tensors, which must fill the rest of the file without gap or
 * overlap. */
enum lmq_status lmq_gguf_front_add_tensors(const struct lmq_gguf_front *front,
                                           struct lmq_checkpoint *checkpoint,
                                           uint32_t file,
                                           struct lmq_error *err);

#endif
