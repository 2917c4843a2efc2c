/*
 * torch_view.h - what torch_archive.c and torch_view.c share.
 */
#ifndef LMQ_FORMATS_TORCH_TORCH_VIEW_H
#define LMQ_FORMATS_TORCH_TORCH_VIEW_H

#include "formats/checkpoint/checkpoint.h"
#include "formats/torch/pickle.h"
#include "formats/torch/zip.h"

struct lmq_torch_archive {
    uint32_t file; /* of the checkpoint */
    struct lmq_zip *zip;
    size_t n_prefix; /* of the members' names, with its slash */
    const char *prefix;
    unsigned char *bytes; /* the pickle */
    struct lmq_pickle *pickle;
};

/* Beside data.pkl, or in the folder "data/"; NULL if there is none. */
const struct lmq_zip_member *
lmq_torch_find_member(const struct lmq_torch_archive *archive,
                      const char *folder, const char *name, size_t n_name);

/* Whether the value is what makes a tensor. */
bool lmq_torch_is_tensor(const struct lmq_pickle_value *value);

/* Fills in all but the name of a tensor. */
enum lmq_status
lmq_torch_parse_tensor(const struct lmq_torch_archive *archive,
                       const struct lmq_pickle_value *value,
                       struct lmq_tensor *tensor, struct lmq_error *err);

#endif
