/*
 * export_files.h - how an export ends: with its report, and then its files.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_FILES_H
#define LMQ_CONVERT_EXPORT_EXPORT_FILES_H

#include <jansson.h>
#include <stdint.h>

#include "base/files/output.h"
#include "formats/checkpoint/checkpoint.h"

/* Adds to report["files"]. */
void lmq_export_add_file(json_t **report, const char *path, uint64_t size);

/*
 * Adds to the report what all exports say, and gives the n outputs their
 * names, all of them or none: none if the report could not be made or is not
 * approved, or if the checkpoint has changed. The outputs are closed in any
 * case.
 */
enum lmq_status lmq_export_commit(const struct lmq_checkpoint *checkpoint,
                                  const struct lmq_progress *progress,
                                  json_t **report, struct lmq_notes *notes,
                                  struct lmq_output *const *outputs, size_t n,
                                  struct lmq_error *err);

#endif
