/*
 * name_list.h - the tensors of a checkpoint, sorted by stored name.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_NAME_LIST_H
#define LMQ_FORMATS_CHECKPOINT_NAME_LIST_H

#include "formats/checkpoint/checkpoint.h"

struct lmq_name_entry {
    const char *name;
    size_t index;
};
struct lmq_name_list {
    struct lmq_name_entry *entries;
    size_t n;
};

enum lmq_status lmq_name_list_make(const struct lmq_checkpoint *checkpoint,
                                   struct lmq_name_list *list,
                                   struct lmq_error *err);
void lmq_name_list_free(struct lmq_name_list *list);

/* The tensor whose name is the first n bytes of `stem` and then `ending`; NULL
 * if there is none. */
struct lmq_tensor *lmq_name_list_find(struct lmq_checkpoint *checkpoint,
                                      const struct lmq_name_list *list,
                                      const char *stem, size_t n,
                                      const char *ending);

#endif
