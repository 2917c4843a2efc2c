/*
 * blob.h - a named file in memory, as the container carries it.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_BLOB_H
#define LMQ_FORMATS_CHECKPOINT_BLOB_H

#include <stddef.h>

/* Borrowed: whoever makes one keeps name and bytes alive. */
struct lmq_blob {
    const char *name;
    const unsigned char *bytes;
    size_t size;
};

#endif
