/*
 * disk_space.h - is there room on the disk?
 */
#ifndef LMQ_BASE_FILES_DISK_SPACE_H
#define LMQ_BASE_FILES_DISK_SPACE_H

#include <stdint.h>

#include "lmquant.h"

/* Whether so many bytes are free; LMQ_OK too where nobody knows. */
enum lmq_status lmq_space_check(const char *folder, uint64_t size,
                                struct lmq_error *err);

/* Makes the file so long, and its blocks its own where the file system can do
 * that: what is written later finds its room. */
enum lmq_status lmq_space_reserve(int fd, uint64_t size,
                                  struct lmq_error *err);

/* Cuts the file off there, or makes it so long. */
enum lmq_status lmq_space_cut(int fd, uint64_t size, struct lmq_error *err);

#endif
