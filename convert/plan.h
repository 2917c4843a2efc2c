/*
 * plan.h - what a conversion will write: every decision before the first
 * byte.
 */
#ifndef LMQ_CONVERT_PLAN_H
#define LMQ_CONVERT_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/checkpoint/checkpoint.h"
#include "convert/recipe/recipe.h"
#include "formats/lmq/lmq_digests.h"

/* The options of lmq_convert(), understood. */
struct lmq_convert_settings {
    enum lmq_stored stored;    /* what the options say */
    struct lmq_quant quant;    /* where no rule says otherwise */
    struct lmq_recipe recipe;  /* copies of the settings share its rules */
    enum lmq_layout layout;
    bool ties;           /* look for a tied head */
    bool zeroes;         /* replace what is not finite by 0 */
    bool is_compressed;
    bool has_digests;
    uint64_t alignment;  /* of tensors in the container */
    uint64_t shard_size; /* of a member of a set at most; 0: one file */
    uint32_t n_parts;    /* members of the set, about as large; 0: as that */
};

/* By a text, be it the model's own. */
static inline bool
lmq_convert_is_calibrated(const struct lmq_convert_options *options)
{
    return options->n_calibration > 0 || options->writes_text != 0;
}

/* What the options ask for, or LMQ_ERR_ARG; recipe/settings.c. To be freed
 * with lmq_recipe_free(&settings->recipe), even if this fails. If
 * settings->recipe.text is known, that is read and not the file. */
enum lmq_status
lmq_convert_settings_parse(const struct lmq_convert_options *options,
                           struct lmq_convert_settings *settings,
                           struct lmq_error *err);

/* Rows of a record of the plan that stand in one file. */
struct lmq_plan_part {
    size_t record;       /* of the plan */
    uint32_t member;     /* of the plan's members: that file */
    size_t stored;       /* the record there */
    uint64_t first_row, n_rows;
    bool is_done; /* by an earlier process */
};

/* A file that is written: the only one, or a member of the set. */
struct lmq_plan_member {
    struct lmq_record *records; /* what stands in it */
    size_t *origins;            /* of each, the record of the plan */
    size_t n_records, capacity;
    struct lmq_content *contents; /* the metadata first */
    size_t n_contents;
    char *metadata;
    struct lmq_digests digests; /* what the layout points to, if wanted */
    struct lmq_layout_plan layout;
};

/* What calibration knows of a record (calibrate/calibrate.h). */
struct lmq_calibrated {
    int8_t *q;      /* (n_rows, n_cols), while its layer is worked on */
    float *scales;  /* (n_rows, groups of a row) */
    bool is_known;  /* the rest is */
    bool is_blind;  /* what it was multiplied with said too little */
    bool is_first;  /* of those that are multiplied with the same */
    enum lmq_method method; /* what came of what was wanted */
    uint64_t n_tokens;      /* that it was multiplied with */
    double cost, searched;  /* what its errors cost in products, squared, and
                               what they would without feedback; of
                               LMQ_METHOD_GPTQ */
};

struct lmq_calibrator;

struct lmq_plan {
    struct lmq_checkpoint *checkpoint;
    struct lmq_notes notes; /* of this conversion */
    struct lmq_originals originals; /* no output replaces what is read: the
                                       checkpoint's, the recipe, the texts */
    struct lmq_convert_settings settings;
    struct lmq_record *records; /* whole tensors; where they stand, their
                                   members say */
    const struct lmq_tensor **sources; /* of each record; NULL for an alias
                                          that the checkpoint does not have */
    json_t *copied; /* the metadata of the container that is copied as it is,
                       tensor by tensor; NULL: a checkpoint is converted */
    bool has_no_statistics; /* nor has that */
    uint32_t *source_crcs; /* of the checkpoint's files, known last */
    bool *takes; /* of each record: integers and scales are the source's own;
                    false from when it turns out that they cannot be */
    size_t n_records;
    int32_t n_layers, n_experts;
    struct lmq_plan_part *parts; /* of the records but aliases, in order */
    size_t n_parts, parts_capacity;
    struct lmq_plan_member *members;
    uint32_t n_members;
    size_t members_capacity;
    struct lmq_content *files; /* the tokenizer's, in the first member */
    size_t n_files;
    unsigned char **owned; /* what `files` points to and we allocated */
    struct lmq_digests digests; /* of whole tensors, for the content */
    struct lmq_calibrator *calibrator; /* or NULL; the conversion's */
    json_t *calibration; /* what is told of it, or NULL */
    struct lmq_calibrated *calibrated; /* of each record, with a calibrator */
    const char *tie_rule; /* "configuration", "absence", "contents", or "" */
};

/* The records and the files; lay_out.h makes members of them. *plan is all
 * zero, but for notes and originals that it may have already. To be freed even
 * if this fails. */
enum lmq_status lmq_plan_make(struct lmq_checkpoint *checkpoint,
                              const struct lmq_convert_settings *settings,
                              struct lmq_plan *plan, struct lmq_error *err);

/* The digest of the content, when those of the tensors are known. */
enum lmq_status lmq_plan_finish_digests(struct lmq_plan *plan,
                                        struct lmq_error *err);
void lmq_plan_free(struct lmq_plan *plan);

/* The record of a file that is written from the part. */
static inline struct lmq_record *
lmq_plan_stored(const struct lmq_plan *plan, const struct lmq_plan_part *part)
{
    return &plan->members[part->member].records[part->stored];
}

#endif
