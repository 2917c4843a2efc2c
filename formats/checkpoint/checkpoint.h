/*
 * checkpoint.h - the one reader interface: every format answers the same few
 * questions.
 *
 * What are the hyper-parameters, which tensors are there, give me elements of
 * tensor t as float32, what is the tokenizer? Tensors are presented in one
 * convention whatever the file does: rows are outputs, rotary pairs are in
 * halves, names and order are canonical where the role is known.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_CHECKPOINT_H
#define LMQ_FORMATS_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/files/file.h"
#include "base/files/output.h"
#include "base/notes.h"
#include "formats/checkpoint/blob.h"
#include "formats/checkpoint/fused.h"
#include "formats/checkpoint/rope_rows.h"
#include "formats/model/hparams.h"
#include "formats/model/names.h"
#include "lmquant.h"
#include "quantize/dtype.h"
#include "quantize/group.h"

#define LMQ_MAX_DIMS 8
#define LMQ_MAX_TENSORS (1u << 20)
#define LMQ_MAX_TENSOR_NAME 1024

/* What is made of an element. */
enum lmq_map {
    LMQ_MAP_NONE,
    LMQ_MAP_LOG_OF_MINUS, /* log(-x) */
    LMQ_MAP_MINUS_EXP,    /* the other way round */
    LMQ_MAP_LOG,          /* log(x) */
    LMQ_MAP_EXP
};

/*
 * Where a source keeps the elements of a tensor that it arranges differently.
 * All zero: the tensor's own order, from its offset on.
 *
 * Row r stands in the row r' where units of rows change places and the pairs
 * of its head are put together, and this one in the stored row
 * first + r' / unit * stride + r' % unit. A tensor of one dimension is a
 * column: its elements are rows.
 */
struct lmq_view {
    uint64_t first;
    uint64_t unit;   /* rows that stay together; 0: all of them */
    uint64_t stride; /* stored rows from unit to unit */
    struct lmq_shuffle rows;    /* units that change places */
    struct lmq_shuffle columns; /* likewise; not of turned matrices */
    struct lmq_rope_rows pairs; /* rows that are stored in pairs, or turn the
                                   other way */
    struct lmq_rope_rows column_pairs; /* columns; not of turned matrices */
    uint64_t pitch; /* the matrix is transposed: stored rows, so many elements
                       apart, are our columns; 0: it is not */
    float times;    /* every element is multiplied with it; 0: it is not */
    float plus;     /* added to every element */
    enum lmq_map map;
    bool has_unit_rows; /* each row is divided by its length */
    uint64_t origin; /* elements of the stored tensor before the offset */
};

struct lmq_checkpoint;
struct lmq_tensor;
struct lmq_scratch;

/* A part of a matrix; never empty. */
struct lmq_area {
    uint64_t row, column; /* the first */
    size_t n_rows, n_cols;
};

/*
 * How a matrix that other tools packed is read from the tensors that it was
 * joined of (formats/packed). Rows and columns are those of the matrix that
 * was packed, before anything is taken apart or turned.
 */
struct lmq_packing {
    char name[16]; /* "gptq4" */
    uint64_t n_cols;
    bool is_upright; /* rows are outputs, even where the source keeps matrices
                        with inputs as rows */
    /* Elements of an area, row after row. */
    enum lmq_status (*read)(struct lmq_checkpoint *checkpoint,
                            const struct lmq_tensor *tensor,
                            const struct lmq_area *area, float *values,
                            struct lmq_scratch *scratch,
                            struct lmq_error *err);
    /* As struct lmq_format has it, of tensors with a `quant`. */
    enum lmq_status (*read_integers)(struct lmq_checkpoint *checkpoint,
                                     const struct lmq_tensor *tensor,
                                     uint64_t row, size_t n, int8_t *q,
                                     unsigned char *scales,
                                     struct lmq_scratch *scratch,
                                     struct lmq_error *err);
};

struct lmq_tensor {
    char *name;        /* canonical, or the stored one if its role is OTHER */
    char *stored_name; /* as the file calls it */
    struct lmq_place place;
    uint32_t n_dims;
    uint64_t dims[LMQ_MAX_DIMS]; /* outermost first */
    uint64_t n_rows, n_cols;     /* all dimensions but the last, the last */
    uint64_t n_elements;
    enum lmq_dtype dtype;        /* as stored; F32 where `encoding` is set */
    const char *encoding;        /* "q8" where elements are not plain numbers */
    const char *unknown;         /* why it can be listed, but not read: "layout
                                    7"; or NULL */
    const struct lmq_block_type *blocks; /* of GGUF, or NULL */
    struct lmq_quant quant;      /* its rows are groups of integers with
                                    scales, and can be had so; group_size 0:
                                    they cannot. The method is not known */
    double bits_per_element;     /* as stored */
    uint32_t number;             /* the format's own, if it wants one */
    uint32_t file;               /* which of the checkpoint's files */
    uint64_t offset, size_bytes; /* where its bytes are, if they are plain */
    bool is_cut;                 /* rows stand in several files: find_run() */
    struct lmq_view view;
    const struct lmq_packing *packing; /* of `encoding`, or NULL */
    const struct lmq_joined *joined; /* its rows are those of several others
                                        (joined.h), or NULL */
    char *alias_of;              /* name of the tensor whose elements it
                                    shares, or NULL */
};

/* What a tensor with `joined` was put together of, where files have that apart;
 * the name of the first part is the whole's. */
struct lmq_apart {
    struct lmq_joined joined;
    struct lmq_tensor parts[LMQ_MOST_FUSED];
};

/* How a source arranges what we keep apart (split.c puts it in order). */
struct lmq_source {
    bool has_rotary_pairs;  /* the two of a pair stand side by side */
    bool has_index_halves;  /* but not in what chooses positions */
    bool has_last_index;    /* there the last of a head turn, not the first */
    bool turns_back;        /* positions turn the other way */
    bool is_transposed;     /* matrices of layers have inputs as rows */
    bool norms_less_one;    /* norm weights are stored minus 1 */
    bool has_whole_last_norm; /* but those of the last norm */
    bool has_apart_norms;   /* norms behind attention and feed-forward have
                               names of their own: post_attention_layernorm is
                               not the one behind attention */
    enum lmq_qkv_order qkv_order; /* fused */
    bool has_turned_experts; /* fused ones: matrices have inputs as rows */
    bool has_experts_below;  /* fused ones in two dimensions, one below the
                                other: down has inputs as rows */
    bool is_gate_up_by_row;  /* fused: a row of the gate, one of the other, and
                                so on; else all of the gate first */
    bool has_tiled_values;  /* value heads of the delta rule:
                               lmq_tiled_values() */
    bool has_decay_itself;  /* what decays, less than 0; not the log of it */
    bool has_decay_above;   /* that more than 0 */
    bool may_lack_correction; /* a router's, and then it has none */
    bool has_unit_head;     /* the head's rows count with length 1 */
    const char *unsaid_theta; /* the key that should say what versions of the */
    const char *unsaid_eps;   /* library take differently; NULL: all is said */
    float times[LMQ_ROLE_COUNT]; /* weights count so many times; 0: once */
    float full_latent_times; /* likewise those of the norm of latents in layers
                                that see everything, among others; 0: the
                                same */
    const char *bias_key[LMQ_ROLE_COUNT]; /* what says whether matrices have a
                                             bias; "": their kind; NULL:
                                             nothing does */
    bool has_bias[LMQ_ROLE_COUNT];        /* whether they have one by that */
    bool says_bias[LMQ_ROLE_COUNT];       /* and the key is there; else it is
                                             what the class has without it */
    uint32_t n_ends_left;   /* tokens that end a text, behind those that a
                               description has room for */
    uint32_t n_idle_positions; /* rows of the table before position 0 */
    uint32_t n_input_tokens; /* rows of the embedding, of which those past the
                                vocabulary are of other senses; 0: it has as
                                many */
    uint32_t n_further_layers; /* behind the model's own: they predict more
                                  tokens, and are left out */
    bool learns_frequencies; /* of RoPE: a tensor has logarithms of what they
                                are multiplied by */
    uint32_t n_chosen;      /* an indexer chooses so many positions to be seen;
                               unless a description has that and the files have
                               it, it is left out, and the context is as long
                               at most: of that all is seen. 0: there is none */
};

struct lmq_checkpoint {
    const struct lmq_format *format;
    char *path;
    bool is_folder;
    struct lmq_hparams hparams; /* if has_model */
    struct lmq_source source;   /* if has_model */
    bool has_model;             /* a known architecture, checked */
    char variant[48];           /* of the format: "version 3"; "" */
    char packed[128];           /* by whom the weights are packed so that they
                                   cannot be read (packed.h); "" */
    bool is_packed_by_config;   /* only config.json says so */
    struct lmq_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    struct lmq_packing **packings; /* of the tensors; owned */
    size_t n_packings, packings_capacity;
    struct lmq_apart **aparts; /* owned */
    size_t n_aparts, aparts_capacity;
    struct lmq_input **files;
    size_t n_files, files_capacity;
    struct lmq_originals originals; /* every file that is a part of it */
    struct lmq_blob *blobs; /* the tokenizer's files; the names and bytes are
                               owned */
    size_t n_blobs, blobs_capacity;
    char *tokenizer_path; /* of the one that was given, or NULL */
    json_t *about; /* for people (about.h), or NULL */
    struct lmq_notes notes; /* of opening it; never of what is done with it */
    double open_seconds; /* how long it took */
    void *state; /* the format's own */
};

/* The first bytes of what was named, for recognition by content. */
struct lmq_probe {
    const char *path;
    enum lmq_status *status; /* what kept a probe from knowing */
    struct lmq_error *err;
    bool is_folder;
    unsigned char head[512];
    size_t n_head;
    uint64_t size;
};

/* A growing buffer for reads; one per thread, zero to begin with. */
struct lmq_scratch {
    unsigned char *bytes;
    size_t size;
    unsigned char *column;
    size_t column_size;
};

/* Rows that stand in a file as kernels take them (quantize/tiles.h): whole
 * tiles, one after the other. */
struct lmq_tile_run {
    uint32_t file;
    uint64_t n_rows; /* from the one that was asked for */
    uint64_t values_at, scales_at;
};

/* Plain elements that stand in a file one after the other. */
struct lmq_run {
    uint32_t file;
    uint64_t offset;
    uint64_t n; /* from the one that was asked for */
};

struct lmq_format {
    const char *name;
    bool takes_config; /* the description may come from a config.json */
    bool has_checksums; /* lmq_verify() compares them */
    bool is_canonical; /* tensors stand in the file in our arrangement, and
                          nothing beside the file belongs to it */
    bool (*probe)(const struct lmq_probe *probe);
    /* Fills in files, tensors (stored_name, dims, dtype, place of the bytes;
     * place only if it knows better than the names), hparams, blobs. */
    enum lmq_status (*open)(struct lmq_checkpoint *checkpoint,
                            const struct lmq_open_options *options,
                            struct lmq_error *err);
    /* Elements, in the order of the file, of tensors with an `encoding` (but no
     * `blocks` nor `packing`); NULL if there are none. Views are elements.c's
     * business. */
    enum lmq_status (*read)(struct lmq_checkpoint *checkpoint,
                            const struct lmq_tensor *tensor, uint64_t first,
                            size_t n, float *values, struct lmq_error *err);
    void (*close)(struct lmq_checkpoint *checkpoint);

    /* What follows is NULL where a format has nothing of the kind. */

    /* Stored rows [row, row + n) of a tensor with a `quant`: integers, and
     * scales as lmq_scales_store() makes them. */
    enum lmq_status (*read_integers)(struct lmq_checkpoint *checkpoint,
                                     const struct lmq_tensor *tensor,
                                     uint64_t row, size_t n, int8_t *q,
                                     unsigned char *scales,
                                     struct lmq_scratch *scratch,
                                     struct lmq_error *err);
    /* Where the rows from `row` on, the first of a tile, stand as tiles; false
     * if they do not. */
    bool (*find_tiles)(const struct lmq_checkpoint *checkpoint,
                       const struct lmq_tensor *tensor, uint64_t row,
                       struct lmq_tile_run *run);
    /* Where the elements from `first` on, in the order of the file, of a plain
     * tensor that is cut stand. */
    struct lmq_run (*find_run)(const struct lmq_checkpoint *checkpoint,
                               const struct lmq_tensor *tensor,
                               uint64_t first);
    /* Compares the checksums of one tensor. */
    enum lmq_status (*verify_tensor)(const struct lmq_checkpoint *checkpoint,
                                     const struct lmq_tensor *tensor,
                                     struct lmq_error *err);
    /* Adds what the file says of itself: "format_version", "quantization",
     * "recommended", "tie_rule", "provenance"; and of a tensor: how it was
     * quantized and what that did to it. */
    void (*describe)(const struct lmq_checkpoint *checkpoint, json_t **json);
    void (*describe_tensor)(const struct lmq_checkpoint *checkpoint,
                            const struct lmq_tensor *tensor, json_t **json);
};

void lmq_scratch_free(struct lmq_scratch *scratch);

/* For readers: room for `size` bytes at scratch->bytes. */
enum lmq_status lmq_scratch_reserve(struct lmq_scratch *scratch, size_t size,
                                    struct lmq_error *err);

/* Elements [first, first + n) in row-major order of the canonical form. Safe
 * from several threads with a scratch each. */
enum lmq_status lmq_checkpoint_read(struct lmq_checkpoint *checkpoint,
                                    const struct lmq_tensor *tensor,
                                    uint64_t first, size_t n, float *values,
                                    struct lmq_scratch *scratch,
                                    struct lmq_error *err);

/* Of the same shape with the same numbers. */
enum lmq_status lmq_checkpoint_are_equal(struct lmq_checkpoint *checkpoint,
                                         const struct lmq_tensor *a,
                                         const struct lmq_tensor *b,
                                         bool *is_equal,
                                         struct lmq_error *err);

/* Rows [row, row + n) of a tensor with a `quant`, in canonical order: n *
 * n_cols integers, and the scales of their groups as lmq_scales_load() takes
 * them. Files of others may hold -128, and scales that are not finite. */
enum lmq_status
lmq_checkpoint_read_integers(struct lmq_checkpoint *checkpoint,
                             const struct lmq_tensor *tensor, uint64_t row,
                             size_t n, int8_t *q, unsigned char *scales,
                             struct lmq_scratch *scratch,
                             struct lmq_error *err);

/* Where rows of such a tensor stand in a file as tiles; see the method. */
bool lmq_checkpoint_find_tiles(const struct lmq_checkpoint *checkpoint,
                               const struct lmq_tensor *tensor, uint64_t row,
                               struct lmq_tile_run *run);

/* Refuses a tensor that cannot be read. */
enum lmq_status lmq_tensor_require(const struct lmq_checkpoint *checkpoint,
                                   const struct lmq_tensor *tensor,
                                   struct lmq_error *err);

/* Compare checksums, if the format has any: those of a tensor, which is read
 * for it; those of all that there is, before something is made of it.
 * LMQ_ERR_FORMAT if something is damaged. */
enum lmq_status lmq_tensor_verify(const struct lmq_checkpoint *checkpoint,
                                  const struct lmq_tensor *tensor,
                                  struct lmq_error *err);
/* (verify.c) */
enum lmq_status lmq_checkpoint_verify(const struct lmq_checkpoint *checkpoint,
                                      int threads,
                                      const struct lmq_progress *progress,
                                      struct lmq_error *err);

/* What a file says of itself, or of one tensor: an object, perhaps without
 * members; NULL without memory. */
json_t *lmq_checkpoint_statements(const struct lmq_checkpoint *checkpoint);
json_t *lmq_tensor_statements(const struct lmq_checkpoint *checkpoint,
                              const struct lmq_tensor *tensor);

/* The stored bytes of elements [first, first + n), for numbers that are as
 * stored. */
enum lmq_status lmq_checkpoint_read_raw(struct lmq_checkpoint *checkpoint,
                                        const struct lmq_tensor *tensor,
                                        uint64_t first, size_t n, void *bytes,
                                        struct lmq_error *err);

/* Whether its elements follow each other as in the file, and are what it has
 * there, nothing added or multiplied. */
bool lmq_tensor_is_as_stored(const struct lmq_tensor *tensor);

/* And whether their bytes stand there as they are wanted: numbers, all in one
 * place. */
bool lmq_tensor_is_plain(const struct lmq_tensor *tensor);

/* Elements [first, first + n) become the whole of it, in another shape. */
enum lmq_status lmq_tensor_take_elements(struct lmq_tensor *tensor,
                                         uint64_t first, const uint64_t *dims,
                                         size_t n_dims,
                                         struct lmq_error *err);

/* Likewise rows [first, first + n) of a matrix, or elements of its bias. */
enum lmq_status lmq_tensor_take_rows(const struct lmq_checkpoint *checkpoint,
                                     struct lmq_tensor *tensor,
                                     uint64_t first, uint64_t n,
                                     struct lmq_error *err);

/* Whether its inputs are rows in the source. */
bool lmq_tensor_is_transposed(const struct lmq_checkpoint *checkpoint,
                              const struct lmq_tensor *tensor);

/* A tensor that is whole, or a part by now, becomes what the model has. */
enum lmq_status lmq_tensor_arrange(const struct lmq_checkpoint *checkpoint,
                                   struct lmq_tensor *tensor,
                                   struct lmq_error *err);

/* By what the source says of its role, besides what there is. */
void lmq_tensor_scale(struct lmq_tensor *tensor,
                      const struct lmq_source *source,
                      const struct lmq_hparams *hparams);

/* Takes its integers away where rows of whole groups cannot be had: what is
 * turned, scaled, or cut within groups has floats only. */
void lmq_tensor_settle_integers(struct lmq_tensor *tensor);

/* The number that the file itself gives to an element, and the columns that
 * it has there. */
uint64_t lmq_tensor_stored_element(const struct lmq_tensor *tensor,
                                   uint64_t element, uint64_t *n_cols);

/* NULL if there is none. */
const struct lmq_tensor *
lmq_checkpoint_find_place(const struct lmq_checkpoint *checkpoint,
                          const struct lmq_place *place);
const struct lmq_tensor *
lmq_checkpoint_find(const struct lmq_checkpoint *checkpoint, enum lmq_role role,
                    enum lmq_part part, int32_t layer);
const struct lmq_tensor *
lmq_checkpoint_find_name(const struct lmq_checkpoint *checkpoint,
                         const char *name);

/* Whether the head's weight is the embedding: nothing else is there, or both
 * are one in the file. An alias of anything else is a head of its own. */
bool lmq_checkpoint_is_tied(const struct lmq_checkpoint *checkpoint);

/* Whether the tensor is the weight of the head. */
static inline bool
lmq_tensor_is_head(const struct lmq_tensor *tensor)
{
    return tensor->place.role == LMQ_ROLE_HEAD &&
           tensor->place.part == LMQ_PART_WEIGHT;
}

/* ---- For readers ---- */

enum lmq_status lmq_checkpoint_add_file(struct lmq_checkpoint *checkpoint,
                                        const char *path, uint32_t *index,
                                        struct lmq_error *err);

/* lmq_file_load() of a file that is a part of the checkpoint. */
enum lmq_status lmq_checkpoint_load(struct lmq_checkpoint *checkpoint,
                                    const char *path, size_t most,
                                    unsigned char **bytes, size_t *n,
                                    struct lmq_error *err);

/* A tensor with that stored name, everything else zero, to be filled in. */
enum lmq_status lmq_checkpoint_add_tensor(struct lmq_checkpoint *checkpoint,
                                          const char *stored_name,
                                          struct lmq_tensor **tensor,
                                          struct lmq_error *err);

/* Sets the shape; false if there are too many or wrong dimensions or the
 * product wraps. */
bool lmq_tensor_set_dims(struct lmq_tensor *tensor, const uint64_t *dims,
                         size_t n_dims);

/* For qsort(): by place, so that layers stand together in their order, and a
 * container is written as it is read. */
int lmq_tensor_compare(const void *a, const void *b);

/* By where they stand in their file. */
void lmq_tensors_sort(struct lmq_tensor *tensors, size_t n);

void lmq_tensor_free(struct lmq_tensor *tensor);

/* Takes apart what the source fuses and sets the views, by
 * checkpoint->source; part of normalising (split.c). */
enum lmq_status lmq_checkpoint_split(struct lmq_checkpoint *checkpoint,
                                     struct lmq_error *err);

/* Called once, when a reader is done (normalise.c). */
enum lmq_status lmq_checkpoint_normalise(struct lmq_checkpoint *checkpoint,
                                         struct lmq_error *err);

/* Takes over `bytes` (from malloc). */
enum lmq_status lmq_checkpoint_add_blob(struct lmq_checkpoint *checkpoint,
                                        const char *name, unsigned char *bytes,
                                        size_t size, struct lmq_error *err);

/* Adds the file if it is there; a missing one is no error. */
enum lmq_status lmq_checkpoint_add_blob_file(struct lmq_checkpoint *checkpoint,
                                             const char *folder,
                                             const char *name,
                                             struct lmq_error *err);

/* The same of one that has to be there. */
enum lmq_status lmq_checkpoint_add_blob_path(struct lmq_checkpoint *checkpoint,
                                             const char *path,
                                             const char *name,
                                             struct lmq_error *err);

/* What was found is not used: what stands at the path will be added. */
enum lmq_status
lmq_checkpoint_drop_tokenizer(struct lmq_checkpoint *checkpoint,
                              const char *path, struct lmq_error *err);

/* The one's files become those of the other, which are dropped. */
void lmq_checkpoint_move_tokenizer(struct lmq_checkpoint *checkpoint,
                                   struct lmq_checkpoint *from);

/* Where the tokenizer comes from: the path that is given, or the checkpoint. */
const char *
lmq_checkpoint_tokenizer_path(const struct lmq_checkpoint *checkpoint);

void lmq_checkpoint_note(struct lmq_checkpoint *checkpoint, const char *format,
                         ...) LMQ_PRINTF(2, 3);

#endif
