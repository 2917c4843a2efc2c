/*
 * torch_archive.h - one file of torch.save: a zip archive that holds a pickle
 * and the storages that its tensors are views of.
 */
#ifndef LMQ_FORMATS_TORCH_TORCH_ARCHIVE_H
#define LMQ_FORMATS_TORCH_TORCH_ARCHIVE_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"

/*
 * Adds the file and the tensors of its state dict to the checkpoint, under
 * their stored names. *model_args (may be NULL) becomes what a training
 * checkpoint says about its model, an object, or NULL; released with
 * json_decref().
 */
enum lmq_status lmq_torch_add_archive(struct lmq_checkpoint *checkpoint,
                                      const char *path, uint32_t *index,
                                      json_t **model_args,
                                      struct lmq_error *err);

#endif
