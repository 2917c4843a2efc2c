/*
 * export_packed.c - which matrices are packed, and the blocks of rows that
 * threads write; how they are packed is said in pack_schemes.c.
 */
#include "config.h"

#include "convert/export/hf/export_packed.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "convert/q8_rows.h"

#define DEFAULT_GROUP 64

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
    case LMQ_ROLE_ATTN_QKV:
    case LMQ_ROLE_ATTN_GATE:
    case LMQ_ROLE_STATE_Q:
    case LMQ_ROLE_STATE_K:
    case LMQ_ROLE_STATE_V:
    case LMQ_ROLE_STATE_GATE:
    case LMQ_ROLE_STATE_OUT:
    case LMQ_ROLE_DELTA_QKVZ:
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
           (!model->has_integers ||
            lmq_q8_is_stored(tensor, LMQ_GROUP_MIN)) &&
           tensor->n_cols % model->group_size == 0 &&
           tensor->n_cols % packing->unit == 0 &&
           tensor->n_rows % packing->unit == 0;
}

static size_t
count_taken(const struct lmq_packed_model *model)
{
    size_t n = 0;

    for (size_t i = 0; i < model->checkpoint->n_tensors; i++)
        n += lmq_packed_takes(model, &model->checkpoint->tensors[i]);
    return n;
}

/* Half a group has the same scale, and may fill rows that a whole one does
 * not: the largest one that fills the most. */
static void
halve_group(struct lmq_packed_model *model)
{
    struct lmq_packed_model half = *model;
    size_t most = count_taken(model);

    while (half.group_size % 2 == 0 &&
           half.group_size / 2 >= LMQ_GROUP_MIN) {
        half.group_size /= 2;
        size_t n = count_taken(&half);
        if (n > most) {
            most = n;
            model->group_size = half.group_size;
        }
    }
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
        if (is_candidate(model->packing, tensor) &&
            lmq_q8_is_stored(tensor, LMQ_GROUP_MIN) &&
            (least == 0 || group < least))
            least = group;
    }
    model->has_integers = least > 0;
    model->group_size = least == 0 ? DEFAULT_GROUP : least;
    if (model->group_size > model->packing->most_group)
        model->group_size = model->packing->most_group;
    halve_group(model);
}

static enum lmq_status
check_model(const struct lmq_packed_model *model, struct lmq_error *err)
{
    const struct lmq_pack_scheme *packing = model->packing;

    if (model->checkpoint->hparams.n_delta_value_heads > 0 &&
        !packing->has_delta)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "%s has no words for recurrent layers",
                        packing->name);
    for (size_t i = 0; i < model->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &model->checkpoint->tensors[i];
        bool is_taken = lmq_packed_takes(model, tensor);
        if (packing->needs_all && !is_taken && is_candidate(packing, tensor))
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "%s packs all matrices of a layer alike, and "
                            "cannot have '%s' of %" PRIu64 " x %" PRIu64
                            ": it needs integers, sizes in multiples of %u, "
                            "groups of %u that fill its rows",
                            packing->name, tensor->name, tensor->n_rows,
                            tensor->n_cols, packing->unit, model->group_size);
    }
    return count_taken(model) > 0
               ? LMQ_OK
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
        lmq_hint(err, ".to=safetensors has any tensor");
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
    const struct lmq_pack_piece *piece = &model->packing->pieces[i];
    const uint64_t sizes[] = {
        [LMQ_PACK_ROWS] = tensor->n_rows,
        [LMQ_PACK_ROWS_BY_4] = tensor->n_rows / 4,
        [LMQ_PACK_COLS] = tensor->n_cols,
        [LMQ_PACK_COLS_BY_4] = tensor->n_cols / 4,
        [LMQ_PACK_GROUPS] = tensor->n_cols / model->group_size,
        [LMQ_PACK_TWO] = 2,
    };

    return (struct lmq_packed_piece){
        .suffix = piece->suffix,
        .dtype =
            piece->dtype == LMQ_DTYPE_COUNT ? model->scales : piece->dtype,
        .n_dims = piece->dims[1] == LMQ_PACK_NONE ? 1 : 2,
        .dims = {sizes[piece->dims[0]], sizes[piece->dims[1]]},
    };
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
    struct lmq_pack_block block = {.target = target,
                                   .row = rows->at,
                                   .n = rows->n,
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
        .chunk = n_cols >= LMQ_PACK_BLOCK ? 1 : LMQ_PACK_BLOCK / n_cols,
        .context = &writing,
        .piece = write_block,
    };
    enum lmq_status status = lmq_tasks_over(&ranges, workers, err);

    if (writing.is_rounded ||
        !lmq_q8_is_stored(tensor, target->model->group_size))
        *is_exact = false;
    return status;
}
