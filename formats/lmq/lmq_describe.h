/*
 * lmq_describe.h - what a container says of itself and its tensors, for
 * reports.
 */
#ifndef LMQ_FORMATS_LMQ_LMQ_DESCRIBE_H
#define LMQ_FORMATS_LMQ_LMQ_DESCRIBE_H

#include <jansson.h>

#include "formats/lmq/lmq.h"

/* What a matrix can become: an encoding, of elements of a type. */
enum lmq_stored {
    LMQ_STORED_Q8,
    LMQ_STORED_Q6,
    LMQ_STORED_Q5,
    LMQ_STORED_Q4,
    LMQ_STORED_F32,
    LMQ_STORED_F16,
    LMQ_STORED_BF16
};

struct lmq_stored_type {
    enum lmq_encoding encoding;
    enum lmq_dtype dtype;
    unsigned bits; /* of integers, else 0 */
};

extern const struct lmq_name lmq_stored_names[];
extern const struct lmq_stored_type lmq_stored_types[];

/* Integers of so many bits. */
enum lmq_stored lmq_stored_of(unsigned bits);

/* "q8", "f32", "alias", ... */
const char *lmq_record_type(const struct lmq_record *record);

/* Adds what was measured when the tensor of n elements was quantized. */
void lmq_describe_stats(json_t **tensor, const struct lmq_record *record,
                        uint64_t n);

/* Methods of the format. */
void lmq_container_describe(const struct lmq_checkpoint *checkpoint,
                            json_t **json);
void lmq_container_describe_tensor(const struct lmq_checkpoint *checkpoint,
                                   const struct lmq_tensor *tensor,
                                   json_t **json);

#endif
