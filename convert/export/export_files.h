/*
 * export_files.h - what an export has written, for its report.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_FILES_H
#define LMQ_CONVERT_EXPORT_EXPORT_FILES_H

#include <jansson.h>
#include <stdint.h>

/* Adds to report["files"]. */
void lmq_export_add_file(json_t **report, const char *path, uint64_t size);

#endif
