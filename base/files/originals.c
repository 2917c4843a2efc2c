/*
 * originals.c - the files that something is made from.
 */
#include "config.h"

#include "base/files/originals.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

struct lmq_original *
lmq_originals_find(const struct lmq_originals *originals, uint64_t device,
                   uint64_t inode)
{
    for (size_t i = 0; originals != NULL && i < originals->n; i++) {
        struct lmq_original *file = &originals->files[i];
        if (file->stamp.device == device && file->stamp.inode == inode)
            return file;
    }
    return NULL;
}

static enum lmq_status
add_original(struct lmq_originals *originals, const struct lmq_original *file,
             struct lmq_error *err)
{
    struct lmq_original copy = *file;

    copy.path = strdup(file->path);
    if (copy.path == NULL ||
        lmq_mem_grow(&originals->files, &originals->capacity,
                     originals->n + 1, sizeof(copy)) != 0) {
        free(copy.path);
        return lmq_fail_nomem(err);
    }
    originals->files[originals->n++] = copy;
    return LMQ_OK;
}

enum lmq_status
lmq_originals_add(struct lmq_originals *originals, const char *path,
                  bool is_read, struct lmq_error *err)
{
    struct lmq_original file = {.path = (char *)(uintptr_t)path,
                                .is_read = is_read};
    enum lmq_status status =
        lmq_file_stamp(path, &file.stamp, is_read ? err : NULL);

    if (status != LMQ_OK)
        return is_read ? status : LMQ_OK;
    struct lmq_original *known =
        lmq_originals_find(originals, file.stamp.device, file.stamp.inode);
    if (known == NULL)
        return add_original(originals, &file, err);
    known->is_read |= is_read;
    return LMQ_OK;
}

enum lmq_status
lmq_originals_add_text(struct lmq_originals *originals, const char *path,
                       bool is_read, struct lmq_error *err)
{
    return strcmp(path, "-") == 0
               ? lmq_originals_add(originals, "/dev/stdin", false, err)
               : lmq_originals_add(originals, path, is_read, err);
}

enum lmq_status
lmq_originals_add_all(struct lmq_originals *originals,
                      const struct lmq_originals *more, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < more->n && status == LMQ_OK; i++)
        status = add_original(originals, &more->files[i], err);
    return status;
}

enum lmq_status
lmq_originals_unchanged(const struct lmq_originals *originals,
                        struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < originals->n && status == LMQ_OK; i++)
        if (originals->files[i].is_read)
            status = lmq_file_unchanged(originals->files[i].path,
                                        &originals->files[i].stamp, err);
    return status;
}

void
lmq_originals_free(struct lmq_originals *originals)
{
    for (size_t i = 0; i < originals->n; i++)
        free(originals->files[i].path);
    free(originals->files);
    *originals = (struct lmq_originals){0};
}
