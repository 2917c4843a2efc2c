/*
 * packer.h - what the schemes of packed weights share: finding the parts of a
 * matrix, checking them, putting one tensor in their place.
 */
#ifndef LMQ_FORMATS_PACKED_PACKER_H
#define LMQ_FORMATS_PACKED_PACKER_H

#include <jansson.h>

#include "formats/checkpoint/name_list.h"
#include "formats/packed/grid.h"

/* What is to become of a stored tensor. */
struct lmq_packer_fate {
    bool is_part;  /* of another one */
    bool is_joined;
    char *name;    /* its new one, or NULL */
};

struct lmq_packer_finding {
    char text[96];
    size_t n;
};

struct lmq_packer {
    struct lmq_checkpoint *checkpoint;
    struct lmq_name_list list;
    const json_t *config; /* quantization_config of config.json, or NULL */
    const char *method;   /* its quant_method, or NULL */
    bool may_be_plain; /* by what it says nothing need be packed */
    json_t *plain; /* its names of matrices that are not packed, as keys;
                      owned */
    struct lmq_packer_fate *fates; /* of each tensor */
    char refused[64]; /* what is unsupported, of the first that is: "bits 5" */
    struct lmq_packer_finding findings[8];
    size_t n_findings;
};

/* ---- The configuration ---- */

/* LMQ_ERR_FORMAT if something in it is of the wrong type or no size; of keys
 * that schemes look at. Sets packer->plain. */
enum lmq_status lmq_packer_check_config(struct lmq_packer *packer,
                                        struct lmq_error *err);

/* A whole number of it or of a part of it; `absent` where there is none. */
int64_t lmq_packer_number(const json_t *config, const char *key,
                          int64_t absent);
/* Whether Quark takes such a step with a weight: it says which of all layers,
 * of some, or of a type of them; of several steps in a list. */
bool lmq_packer_has_step(const struct lmq_packer *packer,
                         bool (*is_such)(const json_t *step));
/* "" where there is none. */
const char *lmq_packer_text(const struct lmq_packer *packer, const char *key);

/* Whether layers are named that have other bits or groups than the rest. */
bool lmq_packer_has_layers(const struct lmq_packer *packer);
/* The size of groups that it says of single layers, if one alone makes so many
 * of these columns; else 0. */
uint64_t lmq_packer_own_group(const struct lmq_packer *packer, uint64_t cols,
                              uint64_t n_groups);

/* ---- The parts of a matrix ---- */

/* The tensor that is called like this one with another ending; NULL. */
struct lmq_tensor *lmq_packer_sibling(const struct lmq_packer *packer,
                                      const struct lmq_tensor *tensor,
                                      const char *ending,
                                      const char *other_ending);

/* The same; LMQ_ERR_FORMAT if there is none. */
enum lmq_status lmq_packer_need(const struct lmq_packer *packer,
                                const struct lmq_tensor *tensor,
                                const char *ending, const char *other_ending,
                                struct lmq_tensor **out,
                                struct lmq_error *err);

/* LMQ_ERR_FORMAT unless the shape is `rows` x `cols`, or just `cols` where
 * rows is 0. */
enum lmq_status lmq_packer_check_shape(const struct lmq_tensor *part,
                                       uint64_t rows, uint64_t cols,
                                       struct lmq_error *err);
/* LMQ_ERR_UNSUPPORTED unless it is of 32-bit words; of floats of 16 bits or
 * more. */
enum lmq_status lmq_packer_check_words(const struct lmq_tensor *part,
                                       struct lmq_error *err);
enum lmq_status lmq_packer_check_floats(const struct lmq_tensor *part,
                                        struct lmq_error *err);

enum lmq_status lmq_packer_check_type(const struct lmq_tensor *part,
                                      enum lmq_dtype type,
                                      struct lmq_error *err);

/* All n elements of a small part. */
enum lmq_status lmq_packer_read(const struct lmq_packer *packer,
                                const struct lmq_tensor *part, float *values,
                                size_t n, struct lmq_error *err);

/* Whether `part` gives each column a group that is there, else LMQ_ERR_FORMAT;
 * *is_sorted if groups are just runs of `group` columns (0: they are not), or
 * if it may be unset and has a -1: then nobody ordered the columns. */
enum lmq_status lmq_packer_check_members(const struct lmq_packer *packer,
                                         const struct lmq_tensor *part,
                                         uint64_t n_groups, uint64_t group,
                                         bool may_be_unset, bool *is_sorted,
                                         struct lmq_error *err);

/* A part as it is stored: rows of plain numbers. */
struct lmq_grid lmq_packer_grid(const struct lmq_tensor *part);

/* ---- What comes of it ---- */

/*
 * Takes over `packing`: the tensor has that shape from now on and is called
 * like before, but with `new_ending` for `ending`; the parts, some of which may
 * be NULL, are no tensors of their own.
 */
enum lmq_status lmq_packer_join(struct lmq_packer *packer,
                                struct lmq_tensor *tensor, const char *ending,
                                const char *new_ending,
                                struct lmq_packing *packing,
                                const uint64_t *dims, size_t n_dims,
                                struct lmq_tensor *const *parts,
                                size_t n_parts, struct lmq_error *err);

/* The weights cannot be read, because of this: "bits 5". */
void lmq_packer_refuse(struct lmq_packer *packer, const char *format, ...)
    LMQ_PRINTF(2, 3);

/* Counts one more of these, for the notes: "tensors of GPTQ with 4 bits". */
void lmq_packer_found(struct lmq_packer *packer, const char *format, ...)
    LMQ_PRINTF(2, 3);

#endif
