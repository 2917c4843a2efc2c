/*
 * export_packed.c - a matrix as others pack integers and scales.
 *
 * All three schemes keep unsigned integers of 8 bits, four in a word, the
 * first one lowest; ours are these less 128. What differs is the order, and
 * how the 128 is said:
 *
 *   compressed-tensors  rows of words, rows of scales; symmetric
 *   mlx                 the same; a bias for each group: -128 * scale, exact
 *   gptq                words run down the inputs, an output in each column;
 *                       zero points, one less than they mean; the group that
 *                       each input belongs to
 */
#include "config.h"

#include "convert/export/export_packed.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/q8_rows.h"

#define BITS 8
#define ZERO 128
#define DEFAULT_GROUP 64
/* Elements of a block of rows: several megabytes for a thread, so that
 * columns of long matrices are still written in runs of some size. */
#define BLOCK ((size_t)1 << 22)

/* Some rows of a matrix, and where their bytes are made. */
struct block {
    const struct lmq_packed_target *target;
    unsigned piece;
    uint64_t row;
    size_t n;
    const int8_t *q;
    const float *scales;
    unsigned char *bytes;
    bool *is_exact;
};

struct piece {
    const char *suffix;
    enum lmq_dtype dtype; /* COUNT: that of the scales */
    struct lmq_packed_piece (*shape)(uint64_t rows, uint64_t cols,
                                     uint64_t groups);
    enum lmq_status (*write)(struct block *block, struct lmq_error *err);
};

struct lmq_pack_scheme {
    const char *name;
    bool has_tables;   /* the embedding and the head are packed too */
    bool needs_all;    /* every matrix of a layer must be packed */
    bool has_halves;   /* scales are float16 whatever the rest is */
    unsigned most_group;
    unsigned unit;     /* rows and columns come in multiples of it */
    unsigned n_pieces;
    struct piece pieces[LMQ_MAX_PIECES];
    void (*configure)(const struct lmq_packed_model *model,
                      const json_t *ignored, json_t **config);
};

/* ---- Shapes ---- */

static struct lmq_packed_piece
shape_words(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)groups;
    return (struct lmq_packed_piece){.n_dims = 2, .dims = {rows, cols / 4}};
}

static struct lmq_packed_piece
shape_scales(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)cols;
    return (struct lmq_packed_piece){.n_dims = 2, .dims = {rows, groups}};
}

static struct lmq_packed_piece
shape_shape(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)rows;
    (void)cols;
    (void)groups;
    return (struct lmq_packed_piece){.n_dims = 1, .dims = {2}};
}

static struct lmq_packed_piece
shape_columns(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)groups;
    return (struct lmq_packed_piece){.n_dims = 2, .dims = {cols / 4, rows}};
}

static struct lmq_packed_piece
shape_scale_columns(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)cols;
    return (struct lmq_packed_piece){.n_dims = 2, .dims = {groups, rows}};
}

static struct lmq_packed_piece
shape_zeros(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)cols;
    return (struct lmq_packed_piece){.n_dims = 2, .dims = {groups, rows / 4}};
}

static struct lmq_packed_piece
shape_inputs(uint64_t rows, uint64_t cols, uint64_t groups)
{
    (void)rows;
    (void)groups;
    return (struct lmq_packed_piece){.n_dims = 1, .dims = {cols}};
}

/* ---- Bytes ---- */

static size_t
groups_of(const struct block *block)
{
    return lmq_groups_per_row((size_t)block->target->tensor->n_cols,
                              block->target->model->group_size);
}

/* n bytes, `at` bytes behind the beginning of the piece. */
static enum lmq_status
put(const struct block *block, uint64_t at, const void *bytes, size_t n,
    struct lmq_error *err)
{
    return lmq_output_write(
        block->target->pieces[block->piece].output,
        block->target->pieces[block->piece].offset + at, bytes, n, err);
}

static enum lmq_status
write_words(struct block *block, struct lmq_error *err)
{
    size_t n_cols = (size_t)block->target->tensor->n_cols;

    for (size_t i = 0; i < block->n * n_cols; i++)
        block->bytes[i] = (unsigned char)(block->q[i] + ZERO);
    return put(block, block->row * n_cols, block->bytes, block->n * n_cols,
               err);
}

/* Scales, each times `factor`, as the model wants them. */
static enum lmq_status
encode_scale(const struct block *block, size_t i, float factor,
             unsigned char *bytes, struct lmq_error *err)
{
    float x = block->scales[i] * factor, back = x;
    enum lmq_dtype dtype = block->target->model->scales;
    bool is_half = dtype == LMQ_DTYPE_F16;

    if (dtype == LMQ_DTYPE_F32) {
        lmq_store_f32le(bytes, x);
    } else {
        uint16_t bits = is_half ? lmq_f32_to_f16(x) : lmq_f32_to_bf16(x);
        lmq_store_u16le(bytes, bits);
        back = is_half ? lmq_f16_to_f32(bits) : lmq_bf16_to_f32(bits);
    }
    if (!isfinite(back)) {
        lmq_fail(err, LMQ_ERR_NONFINITE, 0,
                 "tensor '%s': the scale %g of row %" PRIu64
                 " is more than %s can hold",
                 block->target->tensor->name, (double)block->scales[i],
                 block->row + i / groups_of(block), lmq_dtype_name(dtype));
        return LMQ_ERR_NONFINITE;
    }
    if (back < x || back > x)
        *block->is_exact = false;
    return LMQ_OK;
}

static enum lmq_status
write_scale_rows(struct block *block, float factor, struct lmq_error *err)
{
    size_t width = lmq_dtype_size(block->target->model->scales);
    size_t n_groups = groups_of(block), n = block->n * n_groups;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        status = encode_scale(block, i, factor, block->bytes + i * width, err);
    return status == LMQ_OK ? put(block, block->row * n_groups * width,
                                  block->bytes, n * width, err)
                            : status;
}

static enum lmq_status
write_scales(struct block *block, struct lmq_error *err)
{
    return write_scale_rows(block, 1, err);
}

static enum lmq_status
write_biases(struct block *block, struct lmq_error *err)
{
    return write_scale_rows(block, -ZERO, err);
}

/* What follows from the shape alone comes with the first rows. */
static enum lmq_status
write_shape(struct block *block, struct lmq_error *err)
{
    unsigned char bytes[16];

    if (block->row > 0)
        return LMQ_OK;
    lmq_store_u64le(bytes, block->target->tensor->n_rows);
    lmq_store_u64le(bytes + 8, block->target->tensor->n_cols);
    return put(block, 0, bytes, sizeof(bytes), err);
}

/* Four inputs of an output are a word; a row of words has all outputs. */
static enum lmq_status
write_columns(struct block *block, struct lmq_error *err)
{
    uint64_t n_rows = block->target->tensor->n_rows;
    size_t n_cols = (size_t)block->target->tensor->n_cols;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_cols / 4 && status == LMQ_OK; i++) {
        for (size_t row = 0; row < block->n; row++)
            for (size_t k = 0; k < 4; k++)
                block->bytes[4 * row + k] =
                    (unsigned char)(block->q[row * n_cols + 4 * i + k] + ZERO);
        status = put(block, (i * n_rows + block->row) * 4, block->bytes,
                     4 * block->n, err);
    }
    return status;
}

static enum lmq_status
write_scale_columns(struct block *block, struct lmq_error *err)
{
    uint64_t n_rows = block->target->tensor->n_rows;
    size_t width = lmq_dtype_size(block->target->model->scales);
    size_t n_groups = groups_of(block);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_groups && status == LMQ_OK; i++) {
        for (size_t row = 0; row < block->n && status == LMQ_OK; row++)
            status = encode_scale(block, row * n_groups + i, 1,
                                  block->bytes + row * width, err);
        if (status == LMQ_OK)
            status = put(block, (i * n_rows + block->row) * width,
                         block->bytes, block->n * width, err);
    }
    return status;
}

/* The zero point is 128, stored less one. */
static enum lmq_status
write_zeros(struct block *block, struct lmq_error *err)
{
    uint64_t left = groups_of(block) * block->target->tensor->n_rows, at = 0;
    enum lmq_status status = LMQ_OK;

    if (block->row > 0)
        return LMQ_OK;
    size_t most = (size_t)lmq_u64_min(left, BLOCK);
    memset(block->bytes, ZERO - 1, most);
    while (left > 0 && status == LMQ_OK) {
        size_t n = (size_t)lmq_u64_min(left, most);
        status = put(block, at, block->bytes, n, err);
        at += n;
        left -= n;
    }
    return status;
}

static enum lmq_status
write_inputs(struct block *block, struct lmq_error *err)
{
    size_t n_cols = (size_t)block->target->tensor->n_cols;

    if (block->row > 0)
        return LMQ_OK;
    for (size_t i = 0; i < n_cols; i++)
        lmq_store_u32le(block->bytes + 4 * i,
                        (uint32_t)(i / block->target->model->group_size));
    return put(block, 0, block->bytes, 4 * n_cols, err);
}

/* ---- What config.json says ---- */

static void
configure_compressed(const struct lmq_packed_model *model,
                     const json_t *ignored, json_t **config)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:O,"
        " s:{s:{s:[s], s:n, s:n,"
        " s:{s:i, s:s, s:b, s:s, s:i, s:b}}}}",
        "quant_method", "compressed-tensors", "format", "pack-quantized",
        "quantization_status", "compressed", "ignore", ignored,
        "config_groups", "group_0", "targets", "Linear", "input_activations",
        "output_activations", "weights", "num_bits", BITS, "type", "int",
        "symmetric", 1, "strategy", "group", "group_size",
        (int)model->group_size, "dynamic", 0);

    lmq_put(config, "quantization_config", json);
}

static void
configure_mlx(const struct lmq_packed_model *model, const json_t *ignored,
              json_t **config)
{
    (void)ignored; /* whose scales are missing, is not packed */
    for (size_t i = 0; i < 2; i++)
        lmq_put(config, i == 0 ? "quantization" : "quantization_config",
                json_pack("{s:i, s:i, s:s}", "group_size",
                          (int)model->group_size, "bits", BITS, "mode",
                          "affine"));
}

static void
configure_gptq(const struct lmq_packed_model *model, const json_t *ignored,
               json_t **config)
{
    (void)ignored; /* never in a layer: needs_all */
    lmq_put(config, "quantization_config",
            json_pack("{s:s, s:s, s:i, s:i, s:b, s:b, s:b}", "quant_method",
                      "gptq", "checkpoint_format", "gptq", "bits", BITS,
                      "group_size", (int)model->group_size, "sym", 1,
                      "desc_act", 0, "lm_head", 0));
}

/* ---- The schemes ---- */

static const struct lmq_pack_scheme packings[] = {
    {.name = "compressed-tensors",
     .most_group = LMQ_GROUP_MAX,
     .unit = 4,
     .n_pieces = 3,
     .pieces = {{"weight_packed", LMQ_DTYPE_I32, shape_words, write_words},
                {"weight_scale", LMQ_DTYPE_COUNT, shape_scales, write_scales},
                {"weight_shape", LMQ_DTYPE_I64, shape_shape, write_shape}},
     .configure = configure_compressed},
    {.name = "mlx",
     .has_tables = true,
     .most_group = 128,
     .unit = 4,
     .n_pieces = 3,
     .pieces = {{"weight", LMQ_DTYPE_U32, shape_words, write_words},
                {"scales", LMQ_DTYPE_COUNT, shape_scales, write_scales},
                {"biases", LMQ_DTYPE_COUNT, shape_scales, write_biases}},
     .configure = configure_mlx},
    {.name = "gptq",
     .needs_all = true,
     .has_halves = true,
     .most_group = LMQ_GROUP_MAX,
     .unit = 32,
     .n_pieces = 4,
     .pieces = {{"qweight", LMQ_DTYPE_I32, shape_columns, write_columns},
                {"scales", LMQ_DTYPE_COUNT, shape_scale_columns,
                 write_scale_columns},
                {"qzeros", LMQ_DTYPE_I32, shape_zeros, write_zeros},
                {"g_idx", LMQ_DTYPE_I32, shape_inputs, write_inputs}},
     .configure = configure_gptq},
};

const struct lmq_pack_scheme *
lmq_pack_scheme_find(const char *to)
{
    for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
        if (strcmp(packings[i].name, to) == 0)
            return &packings[i];
    return NULL;
}

/* ---- What is packed ---- */

/* The matrices of attention and feed-forward; what routes is small, and
 * decides much. */
static bool
is_of_layer(enum lmq_role role)
{
    switch (role) {
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_K:
    case LMQ_ROLE_ATTN_V:
    case LMQ_ROLE_ATTN_OUT:
    case LMQ_ROLE_FFN_GATE:
    case LMQ_ROLE_FFN_UP:
    case LMQ_ROLE_FFN_DOWN:
    case LMQ_ROLE_SHARED_GATE:
    case LMQ_ROLE_SHARED_UP:
    case LMQ_ROLE_SHARED_DOWN:
        return true;
    default:
        return false;
    }
}

/* Whether it is a matrix of a kind that the scheme packs. */
static bool
is_candidate(const struct lmq_pack_scheme *packing,
             const struct lmq_tensor *tensor)
{
    enum lmq_role role = tensor->place.role;
    bool is_table = role == LMQ_ROLE_EMBEDDING || role == LMQ_ROLE_HEAD;

    return tensor->place.part == LMQ_PART_WEIGHT && tensor->n_dims == 2 &&
           lmq_dtype_is_float(tensor->dtype) &&
           (is_of_layer(role) || (packing->has_tables && is_table));
}

bool
lmq_packed_takes(const struct lmq_packed_model *model,
                 const struct lmq_tensor *tensor)
{
    const struct lmq_pack_scheme *packing = model->packing;

    return is_candidate(packing, tensor) &&
           (!model->has_integers || tensor->quant.group_size > 0) &&
           tensor->n_cols % model->group_size == 0 &&
           tensor->n_cols % packing->unit == 0 &&
           tensor->n_rows % packing->unit == 0;
}

/* The smallest group of the stored ones: that of a larger one is whole
 * multiples of it, with the same scale. */
static void
choose_group(struct lmq_packed_model *model)
{
    unsigned least = 0;

    for (size_t i = 0; i < model->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &model->checkpoint->tensors[i];
        unsigned group = tensor->quant.group_size;
        if (is_candidate(model->packing, tensor) && group > 0 &&
            (least == 0 || group < least))
            least = group;
    }
    model->has_integers = least > 0;
    model->group_size = least == 0 ? DEFAULT_GROUP : least;
    if (model->group_size > model->packing->most_group)
        model->group_size = model->packing->most_group;
}

static enum lmq_status
check_model(const struct lmq_packed_model *model, struct lmq_error *err)
{
    const struct lmq_pack_scheme *packing = model->packing;
    size_t n = 0;

    for (size_t i = 0; i < model->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &model->checkpoint->tensors[i];
        bool is_taken = lmq_packed_takes(model, tensor);
        n += is_taken;
        if (packing->needs_all && !is_taken && is_candidate(packing, tensor))
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "%s packs all matrices of a layer alike, and "
                            "cannot have '%s' of %" PRIu64 " x %" PRIu64
                            ": it needs integers, sizes in multiples of %u, "
                            "groups of %u that fill its rows",
                            packing->name, tensor->name, tensor->n_rows,
                            tensor->n_cols, packing->unit, model->group_size);
    }
    return n > 0 ? LMQ_OK
                 : lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "there is no matrix that %s can pack in groups "
                            "of %u",
                            packing->name, model->group_size);
}

enum lmq_status
lmq_packed_model_init(struct lmq_packed_model *model,
                      const struct lmq_pack_scheme *packing,
                      const struct lmq_checkpoint *checkpoint,
                      enum lmq_dtype floats, struct lmq_error *err)
{
    *model = (struct lmq_packed_model){
        .packing = packing,
        .checkpoint = checkpoint,
        .scales = packing->has_halves ? LMQ_DTYPE_F16 : floats,
    };
    choose_group(model);
    enum lmq_status status = check_model(model, err);
    if (status != LMQ_OK)
        lmq_hint(err, "the formats safetensors and gguf have any tensor");
    return status;
}

unsigned
lmq_packed_count(const struct lmq_packed_model *model)
{
    return model->packing->n_pieces;
}

struct lmq_packed_piece
lmq_packed_piece(const struct lmq_packed_model *model,
                 const struct lmq_tensor *tensor, unsigned i)
{
    const struct piece *piece = &model->packing->pieces[i];
    struct lmq_packed_piece shape =
        piece->shape(tensor->n_rows, tensor->n_cols,
                     tensor->n_cols / model->group_size);

    shape.suffix = piece->suffix;
    shape.dtype =
        piece->dtype == LMQ_DTYPE_COUNT ? model->scales : piece->dtype;
    return shape;
}

void
lmq_packed_configure(const struct lmq_packed_model *model,
                     const json_t *ignored, json_t **config)
{
    model->packing->configure(model, ignored, config);
}

/* ---- Writing ---- */

/* One thread's buffers, as large as was needed so far. */
struct worker {
    struct lmq_q8_reader reader;
    int8_t *q;
    float *scales;
    unsigned char *bytes;
    size_t n_elements;
    bool is_exact; /* so far, of this block */
};

struct writing {
    const struct lmq_packed_target *target;
    atomic_bool is_rounded;
};

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_q8_reader_free(&worker->reader);
    lmq_mem_free(worker->q);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->bytes);
}

/* Room for n elements: a scale for 32 of them at most, four bytes for each
 * where the numbers of the groups are written. */
static enum lmq_status
reserve(struct worker *worker, size_t n, struct lmq_error *err)
{
    if (worker->n_elements >= n)
        return LMQ_OK;
    lmq_mem_free(worker->q);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->bytes);
    worker->n_elements = 0;
    worker->q = lmq_mem_aligned(n, 1);
    worker->scales = lmq_mem_aligned(n / LMQ_GROUP_MIN, sizeof(float));
    worker->bytes = lmq_mem_aligned(n, 4);
    if (worker->q == NULL || worker->scales == NULL || worker->bytes == NULL)
        return lmq_fail_nomem(err);
    worker->n_elements = n;
    return LMQ_OK;
}

enum lmq_status
lmq_packed_workers_open(struct lmq_workers *workers, int threads,
                        struct lmq_error *err)
{
    return lmq_workers_open(workers, threads, LMQ_RANGES,
                            sizeof(struct worker), NULL, clear_worker, NULL,
                            err);
}

static enum lmq_status
write_block(void *context, const struct lmq_range *rows, void *state,
            struct lmq_error *err)
{
    struct writing *writing = context;
    const struct lmq_packed_target *target = writing->target;
    const struct lmq_pack_scheme *packing = target->model->packing;
    const struct lmq_tensor *tensor = target->tensor;
    struct worker *worker = state;
    struct block block = {.target = target, .row = rows->at, .n = rows->n,
                          .is_exact = &worker->is_exact};
    enum lmq_status status =
        reserve(worker, rows->n * (size_t)tensor->n_cols, err);

    worker->is_exact = true;
    if (status == LMQ_OK)
        status = lmq_q8_read_rows(target->checkpoint, tensor, block.row,
                                  block.n, target->model->group_size,
                                  &worker->reader, worker->q, worker->scales,
                                  err);
    block.q = worker->q;
    block.scales = worker->scales;
    block.bytes = worker->bytes;
    for (unsigned i = 0; i < packing->n_pieces && status == LMQ_OK; i++) {
        block.piece = i;
        status = packing->pieces[i].write(&block, err);
    }
    if (!worker->is_exact)
        atomic_store(&writing->is_rounded, true);
    return status;
}

enum lmq_status
lmq_packed_write(const struct lmq_packed_target *target,
                 const struct lmq_workers *workers, bool *is_exact,
                 struct lmq_error *err)
{
    const struct lmq_tensor *tensor = target->tensor;
    size_t n_cols = (size_t)tensor->n_cols;
    struct writing writing = {.target = target};
    const struct lmq_ranges ranges = {
        .whole = tensor->n_rows,
        .chunk = n_cols >= BLOCK ? 1 : BLOCK / n_cols,
        .context = &writing,
        .piece = write_block,
    };
    enum lmq_status status = lmq_tasks_over(&ranges, workers, err);

    if (writing.is_rounded ||
        !lmq_q8_is_stored(tensor, target->model->group_size))
        *is_exact = false;
    return status;
}
