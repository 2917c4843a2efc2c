/*
 * name_list.c - tensors by stored name.
 */
#include "config.h"

#include "formats/checkpoint/name_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int
compare_entries(const void *a, const void *b)
{
    const struct lmq_name_entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Indices rather than pointers: the array of tensors may move. */
enum lmq_status
lmq_name_list_make(const struct lmq_checkpoint *checkpoint,
                   struct lmq_name_list *list, struct lmq_error *err)
{
    list->n = checkpoint->n_tensors;
    list->entries = calloc(list->n + 1, sizeof(*list->entries));
    if (list->entries == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < list->n; i++)
        list->entries[i] =
            (struct lmq_name_entry){checkpoint->tensors[i].stored_name, i};
    qsort(list->entries, list->n, sizeof(*list->entries), compare_entries);
    return LMQ_OK;
}

struct lmq_tensor *
lmq_name_list_find(struct lmq_checkpoint *checkpoint,
                   const struct lmq_name_list *list, const char *stem,
                   size_t n, const char *ending)
{
    char name[LMQ_MAX_TENSOR_NAME + 64];
    const struct lmq_name_entry key = {name, 0};

    snprintf(name, sizeof(name), "%.*s%s", (int)n, stem, ending);
    const struct lmq_name_entry *found =
        bsearch(&key, list->entries, list->n, sizeof(key), compare_entries);
    return found == NULL ? NULL : &checkpoint->tensors[found->index];
}

void
lmq_name_list_free(struct lmq_name_list *list)
{
    free(list->entries);
    *list = (struct lmq_name_list){0};
}
