/*
 * folder.h - what stands in a folder that is named as a checkpoint.
 */
#ifndef LMQ_FORMATS_FOLDER_H
#define LMQ_FORMATS_FOLDER_H

#include "base/files/output.h"
#include "lmquant.h"

/* Whatever stands in the folder of a model belongs to it, but for what is made
 * from models: containers, GGUF files, pages. */
enum lmq_status lmq_folder_add_originals(const char *folder,
                                         struct lmq_originals *originals,
                                         struct lmq_error *err);

/* The one file in the folder that is a checkpoint by itself; *path is owned,
 * NULL if there is none. Several are an error that names them. */
enum lmq_status lmq_folder_find_checkpoint(const char *folder, char **path,
                                           struct lmq_error *err);

#endif
