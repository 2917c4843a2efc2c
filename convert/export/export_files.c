/*
 * export_files.c - how an export ends: with its report, and then its files.
 */
#include "config.h"

#include "convert/export/export_files.h"

#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/progress.h"
#include "base/report.h"
#include "formats/describe.h"

void
lmq_export_add_file(json_t **report, const char *path, uint64_t size)
{
    json_t *files = json_incref(json_object_get(*report, "files"));
    json_t *file = json_object();

    if (files == NULL)
        files = json_array();
    lmq_put(&file, "name", lmq_json_text(lmq_path_base(path)));
    lmq_put(&file, "bytes", lmq_json_size(size));
    lmq_append(&files, file);
    lmq_put(report, "files", files);
}

/* Elements are read as float32, whatever the exporter makes of them. */
static void
tell_of_doubles(const struct lmq_checkpoint *checkpoint, json_t **report,
                struct lmq_notes *notes)
{
    size_t n = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        n += checkpoint->tensors[i].dtype == LMQ_DTYPE_F64;
    if (n == 0)
        return;
    lmq_notes_add(notes,
                  "tensors of float64 that were rounded to float32: "
                  "%zu",
                  n);
    lmq_put(report, "is_lossless", json_false());
}

static void
add_totals(const struct lmq_checkpoint *checkpoint,
           const struct lmq_notes *notes, json_t **report)
{
    const struct lmq_sizes sizes = lmq_checkpoint_sizes(checkpoint);
    uint64_t output = 0;
    json_t *file;
    size_t i;

    json_array_foreach(json_object_get(*report, "files"), i, file)
        output +=
            (uint64_t)json_integer_value(json_object_get(file, "bytes"));
    lmq_put(report, "parameters", lmq_json_size(sizes.parameters));
    lmq_put(report, "input_bytes", lmq_json_size(sizes.file_bytes));
    lmq_put(report, "output_bytes", lmq_json_size(output));
    lmq_put(report, "notes", lmq_describe_notes(checkpoint, notes));
}

enum lmq_status
lmq_export_commit(const struct lmq_checkpoint *checkpoint,
                  const struct lmq_progress *progress, json_t **report,
                  struct lmq_notes *notes, struct lmq_output *const *outputs,
                  size_t n, struct lmq_error *err)
{
    tell_of_doubles(checkpoint, report, notes);
    add_totals(checkpoint, notes, report);
    enum lmq_status status =
        *report == NULL
            ? lmq_fail_nomem(err)
            : lmq_progress_approve(progress, lmq_report_from(*report), err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&checkpoint->originals, err);
    if (status == LMQ_OK)
        return lmq_output_commit_all(outputs, n, progress, err);
    for (size_t i = 0; i < n; i++)
        lmq_output_abort(outputs[i]);
    return status;
}
