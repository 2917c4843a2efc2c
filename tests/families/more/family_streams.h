/*
 * family_streams.h - weights of what stands beside the residual stream.
 */
#ifndef LMQ_TESTS_FAMILIES_MORE_FAMILY_STREAMS_H
#define LMQ_TESTS_FAMILIES_MORE_FAMILY_STREAMS_H

#include "tests/families/family.h"

/* Of the model, and of one of its layers. */
void family_streams(struct family_model *model);
void family_layer_streams(struct family_model *model, size_t layer,
                          bool is_sparse);

#endif
