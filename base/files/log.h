/*
 * log.h - a file of lines that only grows, and is sound up to where whoever
 * wrote it was stopped.
 */
#ifndef LMQ_BASE_FILES_LOG_H
#define LMQ_BASE_FILES_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

struct lmq_log;

/* Opens it, or makes it if it is not there and `makes`; without a file *out is
 * NULL. Its lines are in memory from then on. Nobody else may have it open: it
 * is locked. What was made and could not be begun is gone. */
enum lmq_status lmq_log_open(const char *path, bool makes,
                             struct lmq_log **out, struct lmq_error *err);
/* What it says now, whoever has it open; nothing can be added. Without a file
 * *out is NULL. */
enum lmq_status lmq_log_look(const char *path, struct lmq_log **out,
                             struct lmq_error *err);
/* Whether it was made by opening it. */
bool lmq_log_is_new(const struct lmq_log *log);
/* The next line that was written whole; NULL behind the last. */
const char *lmq_log_next(struct lmq_log *log);

/* For messages. */
const char *lmq_log_path(const struct lmq_log *log);
/* From the first one on again. */
void lmq_log_rewind(struct lmq_log *log);
/* Adds a line without line feeds behind the last that is whole. */
enum lmq_status lmq_log_append(struct lmq_log *log, const char *text,
                               struct lmq_error *err);
/* All that was added is on the disk. */
enum lmq_status lmq_log_sync(struct lmq_log *log, struct lmq_error *err);
/* NULL is fine. */
void lmq_log_close(struct lmq_log *log);
/* The same, and the file is gone. */
void lmq_log_remove(struct lmq_log *log);

#endif
