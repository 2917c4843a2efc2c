/*
 * q8_rows.h - rows of a matrix as int8 and scales, for formats that want them
 * so.
 */
#ifndef LMQ_CONVERT_Q8_ROWS_H
#define LMQ_CONVERT_Q8_ROWS_H

#include "formats/checkpoint/checkpoint.h"
#include "quantize/group.h"

/* One thread's; zero to begin with. */
struct lmq_q8_reader {
    struct lmq_scratch scratch;
    unsigned char *bytes;
    size_t size;
};

void lmq_q8_reader_free(struct lmq_q8_reader *reader);

/* Whether the checkpoint holds the matrix so that groups of `group` elements of
 * its rows can have its values as they are: it is quantized, and its own
 * groups are whole multiples. */
bool lmq_q8_is_stored(const struct lmq_tensor *tensor, unsigned group);

/*
 * Rows [row, row + n): q gets n * n_cols values, scales one float for each
 * group. They come as they are stored, or are quantized here by
 * search; then groups below LMQ_GROUP_MIN share the scale of one of that size.
 * `group` must be a power of two.
 */
enum lmq_status lmq_q8_read_rows(struct lmq_checkpoint *checkpoint,
                                 const struct lmq_tensor *tensor,
                                 uint64_t row, size_t n, unsigned group,
                                 struct lmq_q8_reader *reader, int8_t *q,
                                 float *scales, struct lmq_error *err);

#endif
