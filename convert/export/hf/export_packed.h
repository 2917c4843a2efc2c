/*
 * export_packed.h - a matrix as others pack integers and scales: several
 * tensors in place of one.
 */
#ifndef LMQ_CONVERT_EXPORT_HF_EXPORT_PACKED_H
#define LMQ_CONVERT_EXPORT_HF_EXPORT_PACKED_H

#include "base/threads/tasks.h"
#include "convert/export/hf/pack_schemes.h"

/* Refuses what the scheme cannot have. `floats` is the type of all that is
 * not packed. */
enum lmq_status lmq_packed_model_init(struct lmq_packed_model *model,
                                      const struct lmq_pack_scheme *packing,
                                      const struct lmq_checkpoint *checkpoint,
                                      enum lmq_dtype floats,
                                      struct lmq_error *err);

/* Whether the tensor is packed. */
bool lmq_packed_takes(const struct lmq_packed_model *model,
                      const struct lmq_tensor *tensor);

/* One tensor of those that stand for a matrix. */
struct lmq_packed_piece {
    const char *suffix; /* in place of "weight" at the end of the name */
    enum lmq_dtype dtype;
    uint32_t n_dims;
    uint64_t dims[2];
};

/* How many there are; fills in number i. */
unsigned lmq_packed_count(const struct lmq_packed_model *model);
struct lmq_packed_piece lmq_packed_piece(const struct lmq_packed_model *model,
                                         const struct lmq_tensor *tensor,
                                         unsigned i);

/* Adds to config.json what its readers need. `ignored` are the modules with
 * matrices that stay floats. */
void lmq_packed_configure(const struct lmq_packed_model *model,
                          const json_t *ignored, json_t **config);

enum lmq_status lmq_packed_workers_open(struct lmq_workers *workers,
                                        int threads, struct lmq_error *err);

/* Writes all pieces; *is_exact is cleared if a weight is not what the
 * checkpoint gives. */
enum lmq_status lmq_packed_write(const struct lmq_packed_target *target,
                                 const struct lmq_workers *workers,
                                 bool *is_exact, struct lmq_error *err);

#endif
