/*
 * packed.h - weights that are no plain numbers: FP8 with scales, which are
 * read, and what other tools pack, which is not.
 */
#ifndef LMQ_FORMATS_PACKED_H
#define LMQ_FORMATS_PACKED_H

#include <jansson.h>

#include "formats/checkpoint.h"

/*
 * For readers of Hugging Face checkpoints, when all tensors are there: finds
 * out how the weights are stored, from config.json (NULL: there is none) and
 * from the tensors. Gives FP8 matrices their scales and takes these off the
 * list; of a checkpoint that cannot be read sets `packed`, and no model.
 */
enum lmq_status lmq_packed_understand(struct lmq_checkpoint *checkpoint,
                                      const json_t *config,
                                      struct lmq_error *err);

/* LMQ_ERR_UNSUPPORTED, with advice, if the weights cannot be read: whoever
 * needs elements asks first. */
enum lmq_status
lmq_checkpoint_need_weights(const struct lmq_checkpoint *checkpoint,
                            struct lmq_error *err);

/* ---- Between packed.c and fp8.c ---- */

/* The tensors by stored name, sorted. */
struct lmq_name_entry {
    const char *name;
    size_t index;
};
struct lmq_name_list {
    struct lmq_name_entry *entries;
    size_t n;
};

/* The tensor whose name is the first n bytes of `stem` and then `ending`; NULL
 * if there is none. */
struct lmq_tensor *lmq_name_list_find(struct lmq_checkpoint *checkpoint,
                                      const struct lmq_name_list *list,
                                      const char *stem, size_t n,
                                      const char *ending);

/* `quantization` is config.json's quantization_config, or NULL. */
enum lmq_status lmq_fp8_attach_scales(struct lmq_checkpoint *checkpoint,
                                      const struct lmq_name_list *list,
                                      const json_t *quantization,
                                      struct lmq_error *err);

#endif
