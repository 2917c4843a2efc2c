/*
 * export.c - finds the exporter, and begins the report.
 */
#include "config.h"

#include "convert/export/export.h"

#include "base/error.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text/name_table.h"
#include "formats/packed/packed.h"

static enum lmq_status
check_file(const struct lmq_checkpoint *checkpoint, const char *path,
           bool replaces, struct lmq_error *err)
{
    return lmq_output_check(path, replaces, &checkpoint->originals, err);
}

enum { EXPORT_GGUF, EXPORT_LLAMA2C, EXPORT_FOLDER };

static const struct lmq_name names[] = {
    {"gguf", EXPORT_GGUF},
    {"llama2c", EXPORT_LLAMA2C},
    {"safetensors", EXPORT_FOLDER},
    {"compressed-tensors", EXPORT_FOLDER},
    {"mlx", EXPORT_FOLDER},
    {"gptq", EXPORT_FOLDER},
    {NULL, 0},
};

static const struct {
    bool has_shards;
    enum lmq_status (*check)(const struct lmq_checkpoint *checkpoint,
                             const char *output, bool replaces,
                             struct lmq_error *err);
    enum lmq_status (*export)(struct lmq_checkpoint *checkpoint,
                              const char *output,
                              const struct lmq_export_options *options,
                              const struct lmq_progress *progress,
                              json_t **report, struct lmq_notes *notes,
                              struct lmq_error *err);
} exporters[] = {
    [EXPORT_GGUF] = {false, check_file, lmq_export_gguf},
    [EXPORT_LLAMA2C] = {false, check_file, lmq_export_llama2c},
    [EXPORT_FOLDER] = {true, lmq_export_check_folder, lmq_export_safetensors},
};

/* A damaged container must not become a file that looks good. */
static enum lmq_status
check_source(const struct lmq_checkpoint *checkpoint,
             const struct lmq_export_options *options,
             const struct lmq_progress *progress, struct lmq_error *err)
{
    enum lmq_status status = lmq_checkpoint_need_weights(checkpoint, err);

    return status == LMQ_OK ? lmq_checkpoint_verify(
                                  checkpoint, options->threads, progress, err)
                            : status;
}

enum lmq_status
lmq_export(struct lmq_checkpoint *checkpoint, const char *output,
           const struct lmq_export_options *given,
           const struct lmq_progress *progress, struct lmq_report **report,
           struct lmq_error *err)
{
    struct lmq_export_options own;
    const struct lmq_export_options *options = &own;
    struct lmq_notes notes = {0};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_export_options, &own, given, err);
    if (status != LMQ_OK)
        return status;
    if (options->to == NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "no format to export to is named");
    int found = EXPORT_GGUF;
    status = lmq_names_parse(names, "to", options->to, &found, err);
    if (status != LMQ_OK)
        return status;
    if (options->shard_size > 0 && !exporters[found].has_shards)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".shard_size: %s is written as one file",
                        options->to);
    status = exporters[found].check(checkpoint, output,
                                    options->replaces != 0, err);
    if (status != LMQ_OK)
        return status;
    json_t *json = json_object();
    lmq_put(&json, "input", lmq_json_text(checkpoint->path));
    lmq_put(&json, "format", json_string(checkpoint->format->name));
    lmq_put(&json, "output", lmq_json_text(output));
    lmq_put(&json, "to", json_string(options->to));
    status = check_source(checkpoint, options, progress, err);
    if (status == LMQ_OK)
        status = exporters[found].export(checkpoint, output, options, progress,
                                         &json, &notes, err);
    lmq_notes_free(&notes);
    if (status != LMQ_OK && status != LMQ_ERR_ARG) /* about the options */
        lmq_error_in(err, checkpoint->path);
    if (status == LMQ_OK && report != NULL)
        *report = lmq_report_from(json);
    else
        json_decref(json);
    return status;
}
