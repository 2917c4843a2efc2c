/*
 * export_gguf.h - the parts of the GGUF exporter.
 *
 * export_gguf_plan.c decides what is written, export_gguf_made.c which tensors
 * have no source, export_gguf_names.c how they are called, export_gguf_vocab.c
 * makes the tokenizer's keys, export_gguf_data.c writes the tensors,
 * export_gguf.c puts it together.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_GGUF_H
#define LMQ_CONVERT_EXPORT_EXPORT_GGUF_H

#include "base/files/output.h"
#include "formats/checkpoint/joined.h"
#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"

#define LMQ_GGUF_DATA_ALIGN 32
/* Elements of a block, of those types that have them. */
#define LMQ_GGUF_BLOCK 32

enum lmq_gguf_stored {
    LMQ_GGUF_STORED_F32,
    LMQ_GGUF_STORED_F16,
    LMQ_GGUF_STORED_BF16,
    LMQ_GGUF_STORED_Q8_0,
    LMQ_GGUF_STORED_Q4_0, /* of a container's 4 bits; nothing is rounded to */
    LMQ_GGUF_STORED_Q5_0, /* likewise */
    LMQ_GGUF_STORED_MXFP4, /* of what is stored so; likewise */
    LMQ_GGUF_STORED_I32,  /* of tables */
    LMQ_GGUF_STORED_COUNT
};

struct lmq_gguf_stored_type {
    const char *name;
    uint32_t number;    /* of the tensor type */
    uint32_t file_type; /* general.file_type of a file mostly of it */
    uint32_t n, size;   /* elements and bytes of a block */
};
extern const struct lmq_gguf_stored_type
    lmq_gguf_stored_types[LMQ_GGUF_STORED_COUNT];

/* One tensor of the output: one of ours, or several after each other. */
struct lmq_gguf_target {
    char name[64];
    uint32_t n_dims;
    uint64_t dims[3]; /* outermost first */
    uint64_t n_rows, n_cols;
    const struct lmq_tensor **sources;
    size_t n_sources, capacity;
    uint64_t n_filled; /* rows behind them: each is the first one */
    const double *values; /* instead of sources: one row of float32 */
    bool is_even; /* or every element is this */
    float each;
    enum lmq_gguf_stored type;
    uint64_t offset, size; /* within the data */
    double sum_sq, err_sq; /* of what was rounded */
};

struct lmq_gguf_plan {
    struct lmq_checkpoint *checkpoint; /* as GGUF arranges it */
    struct lmq_arranged arranged;
    bool rounds_decays; /* of layers with a state, in the last bit */
    struct lmq_notes *notes; /* the caller's */
    const struct lmq_family *family;
    struct lmq_hparams written; /* the description as the keys hold it */
    double near[LMQ_MAX_ROPE_FACTORS], far[LMQ_MAX_ROPE_FACTORS];
    struct lmq_gguf_target *targets;
    size_t n_targets, capacity;
    enum lmq_gguf_stored mostly;
    uint64_t data_size;
};

/* `type` as --type names it; NULL: as the checkpoint has it. */
enum lmq_status lmq_gguf_plan_make(struct lmq_checkpoint *checkpoint,
                                   const char *type,
                                   struct lmq_gguf_plan *plan,
                                   struct lmq_notes *notes,
                                   struct lmq_error *err);
void lmq_gguf_plan_free(struct lmq_gguf_plan *plan);

/* One more, empty; NULL if there is no memory. */
struct lmq_gguf_target *lmq_gguf_add_target(struct lmq_gguf_plan *plan,
                                            const char *name);

/* Where another computation begins, as far as GGUF can say it; before targets
 * are made. */
void lmq_gguf_fit_end(struct lmq_gguf_plan *plan);
/* The tensors that the description alone makes; what they say is no more in
 * plan->written. */
enum lmq_status lmq_gguf_add_made(struct lmq_gguf_plan *plan,
                                  struct lmq_error *err);

/* Small, and what llama.cpp wants in float32. */
bool lmq_gguf_stays_float(const struct lmq_gguf_target *target);

/* The type that was wanted for all, or else the nearest to its own. */
enum lmq_gguf_stored
lmq_gguf_choose_type(const struct lmq_gguf_target *target,
                     const enum lmq_gguf_stored *wanted);
enum lmq_status lmq_gguf_parse_type(const char *name,
                                    enum lmq_gguf_stored *type,
                                    struct lmq_error *err);

/* Under which name a tensor, or what it is a part of, is written. */
void lmq_gguf_target_name(const struct lmq_gguf_plan *plan,
                          const struct lmq_place *place, char *name,
                          size_t size);

/* Whether GGUF, which knows the family, can hold its models at all. */
enum lmq_status lmq_gguf_may_write(const struct lmq_family *family,
                                   struct lmq_error *err);
/* How much decays differ from layer to layer, as llama.cpp has it. */
void lmq_gguf_fit_decays(struct lmq_gguf_plan *plan);

/* Remarks on what llama.cpp does not load, or computes otherwise. */
void lmq_gguf_note_limits(const struct lmq_gguf_plan *plan);

/* Writes the tensors from `data_at` on. */
enum lmq_status lmq_gguf_write_data(struct lmq_gguf_plan *plan,
                                    struct lmq_output *output,
                                    uint64_t data_at, int threads,
                                    const struct lmq_progress *progress,
                                    struct lmq_error *err);

#endif
