/*
 * scale_shape.h - which elements of a matrix a scale is for, by the shapes of
 * both and by what config.json says of blocks.
 */
#ifndef LMQ_FORMATS_PACKED_SCALE_SHAPE_H
#define LMQ_FORMATS_PACKED_SCALE_SHAPE_H

#include "formats/packed/affine.h"

/*
 * Sets the scales and their blocks for a tensor with these dimensions: one
 * number for all; one for each row; one for each block, whose size is said, or
 * 128 x 128, or what divides the matrix evenly. Bytes are exponents.
 * LMQ_ERR_FORMAT if the scales fit nothing. The scales are a part of `name`.
 */
enum lmq_status lmq_scale_shape_set(const struct lmq_packer *packer,
                                    struct lmq_affine *affine,
                                    const char *name, const uint64_t *dims,
                                    size_t n_dims,
                                    const struct lmq_tensor *scale,
                                    struct lmq_error *err);

/* "a scale for each row", for the notes; cut to size. */
const char *lmq_scale_shape_text(const struct lmq_affine *affine, char *text,
                                 size_t size);

#endif
