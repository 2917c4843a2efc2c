/*
 * export_files.c - the list of files that an export has written.
 */
#include "config.h"

#include "convert/export/export_files.h"

#include <string.h>

#include "base/report.h"

void
lmq_export_add_file(json_t **report, const char *path, uint64_t size)
{
    const char *slash = strrchr(path, '/');
    json_t *files = json_incref(json_object_get(*report, "files"));
    json_t *file = json_object();

    if (files == NULL)
        files = json_array();
    lmq_put(&file, "name", lmq_json_text(slash == NULL ? path : slash + 1));
    lmq_put(&file, "bytes", lmq_json_size(size));
    lmq_append(&files, file);
    lmq_put(report, "files", files);
}
