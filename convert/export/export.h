/*
 * export.h - checkpoints in the formats of other tools.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_H
#define LMQ_CONVERT_EXPORT_EXPORT_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"

/*
 * One for each value of options->to, all alike: writes the output, whole or
 * not at all, and adds to `report` what it did:
 *
 *   files         array of {"name", "bytes"}: what was written
 *   type          of the weights, as the format calls it
 *   is_lossless   every weight is bit for bit what the checkpoint gives
 *
 * and what only it knows. Remarks go to `notes`.
 */
enum lmq_status lmq_export_gguf(struct lmq_checkpoint *checkpoint,
                                const char *output,
                                const struct lmq_export_options *options,
                                const struct lmq_progress *progress,
                                json_t **report, struct lmq_notes *notes,
                                struct lmq_error *err);
enum lmq_status lmq_export_llama2c(struct lmq_checkpoint *checkpoint,
                                   const char *output,
                                   const struct lmq_export_options *options,
                                   const struct lmq_progress *progress,
                                   json_t **report, struct lmq_notes *notes,
                                   struct lmq_error *err);
enum lmq_status
lmq_export_safetensors(struct lmq_checkpoint *checkpoint, const char *output,
                       const struct lmq_export_options *options,
                       const struct lmq_progress *progress, json_t **report,
                       struct lmq_notes *notes, struct lmq_error *err);

/* Whether the folder can be written; to be asked before the work. */
enum lmq_status
lmq_export_check_folder(const struct lmq_checkpoint *checkpoint,
                        const char *folder, bool replaces,
                        struct lmq_error *err);

#endif
