/*
 * path.h - names of files.
 */
#ifndef LMQ_BASE_FILES_PATH_H
#define LMQ_BASE_FILES_PATH_H

/* folder + "/" + name; the caller frees it; NULL without memory. */
char *lmq_path_join(const char *folder, const char *name);

/* What the name stands in, with its slash, or "."; the caller frees it; NULL
 * without memory. */
char *lmq_path_folder(const char *path);

/* The name without its folder. */
const char *lmq_path_base(const char *path);

#endif
