/*
 * export_safetensors.h - a folder of safetensors that is being made.
 */
#ifndef LMQ_CONVERT_EXPORT_HF_EXPORT_SAFETENSORS_H
#define LMQ_CONVERT_EXPORT_HF_EXPORT_SAFETENSORS_H

#include "convert/export/hf/export_hf.h"
#include "convert/export/hf/export_packed.h"
#include "formats/checkpoint/joined.h"

#define LMQ_HF_SINGLE "model.safetensors"
#define LMQ_HF_INDEX "model.safetensors.index.json"
#define LMQ_HF_CONFIG "config.json"
/* In a header, beside the names of tensors. */
#define LMQ_HF_METADATA "__metadata__"

/* What floats are written as. */
struct lmq_hf_type {
    enum lmq_dtype dtype;
    const char *torch; /* in config.json */
};

/* A tensor of the output. */
struct lmq_hf_entry {
    char *name;
    enum lmq_dtype dtype;
    uint32_t n_dims;
    uint64_t dims[LMQ_MAX_DIMS];
    size_t shard;
    uint64_t offset, size; /* in the data of its shard */
};

/* A tensor of the checkpoint, and which entries it becomes: one, or what it is
 * packed as; or number `part` of n_parts equal parts of these. */
struct lmq_hf_item {
    const struct lmq_tensor *tensor;
    bool is_packed;
    bool is_less_one;
    uint32_t part, n_parts;
    unsigned n_entries; /* 0: it is left out */
    size_t entries[LMQ_MAX_PIECES];
};

/* A file to be. */
struct lmq_hf_part {
    char *name, *path;
    struct lmq_output *output;
    char *text; /* all of it, or the header of a shard; owned */
    uint64_t data_at, size;
};

struct lmq_hf_export {
    struct lmq_checkpoint *checkpoint; /* as the words arrange it */
    struct lmq_arranged arranged;
    struct lmq_notes *notes;
    const struct lmq_export_options *options;
    const struct lmq_hf_type *type;
    const char *folder;
    bool is_new_folder; /* made by us */
    struct lmq_hf_words words;
    const struct lmq_pack_scheme *packing; /* NULL: all are floats */
    struct lmq_packed_model packed;
    struct lmq_hf_item *items; /* one for each tensor */
    struct lmq_hf_entry *entries;
    size_t n_entries;
    struct lmq_hf_part *parts; /* shards first, config.json last */
    size_t n_parts, n_shards;
    uint64_t *shard_sizes; /* bytes of data */
    bool is_exact;
};

/* What becomes of each tensor, and in which shard it stands. */
enum lmq_status lmq_hf_add_entries(struct lmq_hf_export *export,
                                   struct lmq_error *err);
enum lmq_status lmq_hf_place_entries(struct lmq_hf_export *export,
                                     struct lmq_error *err);

/* The files to be, with their texts and their sizes. */
enum lmq_status lmq_hf_add_parts(struct lmq_hf_export *export,
                                 struct lmq_error *err);

#endif
