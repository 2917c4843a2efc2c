/*
 * lmq_read.c - containers as a format for the reader interface.
 *
 * A model in a file, or in the members of a set: lmq_set.c has joined the
 * latter, so that a tensor is some pieces of rows, each within one file.
 * Elements are read as float32; integers and scales as they are, from rows or
 * out of tiles; where tiles stand is told to whoever maps them.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/checkpoint/about.h"
#include "formats/formats.h"
#include "formats/lmq/lmq.h"
#include "formats/lmq/lmq_describe.h"
#include "formats/lmq/lmq_set.h"
#include "formats/model/hparams_json.h"
#include "quantize/rotate.h"

/* ---- Opening ---- */

static bool
probe_lmq(const struct lmq_probe *probe)
{
    /* "LMQ" is enough: a mangled magic deserves its own message. */
    return probe->n_head >= sizeof(lmq_magic) &&
           memcmp(probe->head + 1, lmq_magic + 1, 3) == 0;
}

/* The name comes from the record, where it agrees with the role. An alias has
 * no bytes of its own: both names lead to one whole. */
static enum lmq_status
set_texts(struct lmq_tensor *tensor, const struct lmq_whole *whole,
          struct lmq_error *err)
{
    const char *target = whole->target->pieces->record->name;

    tensor->name = strdup(whole->pieces->record->name);
    if (tensor->name == NULL)
        return lmq_fail_nomem(err);
    if (whole->target == whole)
        return LMQ_OK;
    tensor->alias_of = strdup(target);
    return tensor->alias_of == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* Where and how its elements are stored. */
static void
set_storage(struct lmq_tensor *tensor, const struct lmq_whole *target)
{
    const struct lmq_record *record = target->pieces->record;

    tensor->dtype = record->dtype;
    tensor->file = target->pieces->member;
    tensor->offset = record->extents[LMQ_VALUES].offset;
    tensor->is_cut = target->n_pieces > 1;
    for (size_t i = 0; i < target->n_pieces; i++)
        for (size_t j = 0; j < LMQ_N_EXTENTS; j++)
            tensor->size_bytes += target->pieces[i].record->extents[j].size;
    if (record->encoding == LMQ_ENCODING_PLAIN)
        return;
    tensor->dtype = LMQ_DTYPE_F32;
    tensor->encoding = "unknown";
    if (record->encoding == LMQ_ENCODING_Q8) {
        tensor->encoding = lmq_record_type(record);
        tensor->quant = record->quant;
    } else {
        tensor->unknown = record->unknown;
    }
    tensor->bits_per_element =
        8 * (double)tensor->size_bytes / (double)tensor->n_elements;
}

/* stored_names are remarks of the conversion, kept in the metadata: they may
 * lack, or be nonsense, and then the canonical name serves. */
static enum lmq_status
add_whole(struct lmq_checkpoint *checkpoint, size_t index,
          struct lmq_error *err)
{
    const struct lmq_set *set = checkpoint->state;
    const struct lmq_whole *whole = &set->wholes[index];
    const struct lmq_record *record = whole->pieces->record;
    const char *stored_name = lmq_set_stored_name(set, whole->pieces);
    struct lmq_tensor *tensor;

    if (stored_name == NULL || stored_name[0] == '\0' ||
        strlen(stored_name) > LMQ_MAX_TENSOR_NAME)
        stored_name = record->name;
    enum lmq_status status =
        lmq_checkpoint_add_tensor(checkpoint, stored_name, &tensor, err);
    if (status == LMQ_OK)
        status = set_texts(tensor, whole, err);
    if (status != LMQ_OK)
        return status;
    tensor->place = record->place;
    lmq_tensor_set_dims(tensor, record->dims, record->n_dims);
    tensor->number = (uint32_t)index;
    set_storage(tensor, whole->target);
    return LMQ_OK;
}

/* A container without a model is legal: tensors of something that could not be
 * described. What it lacks was said when it was made, and is said again to
 * whoever would run it. */
static enum lmq_status
read_model(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(checkpoint);
    const json_t *model = json_object_get(container->metadata, "model");

    if (!json_is_object(model)) {
        const char *reason = json_string_value(
            json_object_get(container->metadata, "unsupported"));
        const char *architecture = json_string_value(
            json_object_get(container->metadata, "architecture"));
        snprintf(checkpoint->hparams.architecture,
                 sizeof(checkpoint->hparams.architecture), "%s",
                 architecture == NULL ? "" : architecture);
        lmq_hparams_refuse(&checkpoint->hparams, "%.150s",
                           reason == NULL ? "a container without a model"
                                          : reason);
        return LMQ_OK;
    }
    checkpoint->has_model = true;
    enum lmq_status status =
        lmq_hparams_from_json(model, &checkpoint->hparams, err);
    checkpoint->hparams.tie =
        lmq_checkpoint_is_tied(checkpoint) ? LMQ_TIE_YES : LMQ_TIE_NO;
    return status;
}

static bool
has_file(const struct lmq_checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_blobs; i++)
        if (strcmp(checkpoint->blobs[i].name, name) == 0)
            return true;
    return false;
}

/* Embedded files are small; they are inflated at once, checked, and live as
 * long as the checkpoint. */
static enum lmq_status
read_files(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(checkpoint);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_sections && status == LMQ_OK; i++) {
        const struct lmq_section *section = &container->sections[i];
        unsigned char *bytes;
        size_t size;
        if (section->type != LMQ_SECTION_FILE)
            continue;
        if (has_file(checkpoint, section->name))
            return lmq_fail(err, LMQ_ERR_FORMAT, section->stored.offset,
                            "has two embedded files '%s'", section->name);
        status = lmq_section_read(checkpoint->files[0], section, &bytes, &size,
                                  err);
        if (status == LMQ_OK)
            status = lmq_checkpoint_add_blob(checkpoint, section->name, bytes,
                                             size, err);
    }
    return status;
}

static enum lmq_status
open_lmq(struct lmq_checkpoint *checkpoint,
         const struct lmq_open_options *options, struct lmq_error *err)
{
    struct lmq_set *set = calloc(1, sizeof(*set));

    (void)options;
    if (set == NULL)
        return lmq_fail_nomem(err);
    checkpoint->state = set;
    enum lmq_status status = lmq_set_open(checkpoint, set, err);
    for (size_t i = 0; i < set->n_wholes && status == LMQ_OK; i++)
        status = add_whole(checkpoint, i, err);
    if (status == LMQ_OK)
        status = read_model(checkpoint, err);
    if (status == LMQ_OK)
        status = lmq_about_take(
            &checkpoint->about,
            json_object_get(lmq_checkpoint_container(checkpoint)->metadata,
                            "about"),
            err);
    return status == LMQ_OK ? read_files(checkpoint, err) : status;
}

static void
close_lmq(struct lmq_checkpoint *checkpoint)
{
    struct lmq_set *set = checkpoint->state;

    if (set != NULL)
        lmq_set_free(set);
    free(set);
}

/* ---- Elements ---- */

/* Values and scales of the same rows are two runs of bytes. */
static enum lmq_status
read_rows(struct lmq_input *input, const struct lmq_record *record,
          size_t n_cols, uint64_t row, size_t n, int8_t *q,
          unsigned char *scales, struct lmq_error *err)
{
    size_t row_scales = lmq_row_scales_size(n_cols, &record->quant);
    enum lmq_status status = lmq_input_read(
        input, record->extents[LMQ_VALUES].offset + row * n_cols, q,
        n * n_cols, err);

    if (status == LMQ_OK)
        status = lmq_input_read(
            input, record->extents[LMQ_SCALES].offset + row * row_scales,
            scales, n * row_scales, err);
    return status;
}

/* One tile, as it is stored and as rows. */
struct tile {
    size_t values_size, scales_size, row_scales;
    unsigned char *values, *scales; /* (values_size), (scales_size) */
    unsigned char *rows_scales;     /* (LMQ_TILE_ROWS, row_scales) */
    int8_t *rows;                   /* (LMQ_TILE_ROWS, n_cols) */
};

/* In one piece of scratch memory, which a thread keeps from call to call. */
static enum lmq_status
make_tile(const struct lmq_quant *quant, size_t n_cols, struct tile *tile,
          struct lmq_scratch *scratch, struct lmq_error *err)
{
    unsigned group = quant->group_size;

    *tile = (struct tile){
        .values_size = lmq_tile_values_size(n_cols, group, quant->bits),
        .scales_size = lmq_tile_scales_size(n_cols, group, quant->scales),
        .row_scales = lmq_row_scales_size(n_cols, quant),
    };
    enum lmq_status status = lmq_scratch_reserve(
        scratch,
        tile->values_size + tile->scales_size +
            LMQ_TILE_ROWS * (tile->row_scales + n_cols),
        err);
    if (status != LMQ_OK)
        return status;
    tile->values = scratch->bytes;
    tile->scales = tile->values + tile->values_size;
    tile->rows_scales = tile->scales + tile->scales_size;
    tile->rows = (int8_t *)tile->rows_scales +
                 LMQ_TILE_ROWS * tile->row_scales;
    return LMQ_OK;
}

static enum lmq_status
load_tile(struct lmq_input *input, const struct lmq_record *record,
          uint64_t number, const struct tile *tile, struct lmq_error *err)
{
    enum lmq_status status = lmq_input_read(
        input, record->extents[LMQ_VALUES].offset + number * tile->values_size,
        tile->values, tile->values_size, err);

    if (status == LMQ_OK)
        status = lmq_input_read(
            input,
            record->extents[LMQ_SCALES].offset + number * tile->scales_size,
            tile->scales, tile->scales_size, err);
    return status;
}

/* A tile has 16 rows side by side, so that any row of it means all of its
 * bytes. The last tile of a piece may have fewer rows; what fills it up is not
 * unpacked. */
static enum lmq_status
read_tiles(struct lmq_input *input, const struct lmq_record *record,
           size_t n_cols, uint64_t row, size_t n, int8_t *q,
           unsigned char *scales, struct lmq_scratch *scratch,
           struct lmq_error *err)
{
    struct tile tile;
    enum lmq_status status =
        make_tile(&record->quant, n_cols, &tile, scratch, err);

    while (n > 0 && status == LMQ_OK) {
        size_t skip = (size_t)(row % LMQ_TILE_ROWS);
        size_t step = lmq_size_min(n, LMQ_TILE_ROWS - skip);
        status = load_tile(input, record, row / LMQ_TILE_ROWS, &tile, err);
        if (status != LMQ_OK)
            return status;
        lmq_tile_unpack(tile.values, tile.scales, skip + step, n_cols,
                        &record->quant, tile.rows, n_cols, tile.rows_scales);
        memcpy(q, tile.rows + skip * n_cols, step * n_cols);
        memcpy(scales, tile.rows_scales + skip * tile.row_scales,
               step * tile.row_scales);
        q += step * n_cols;
        scales += step * tile.row_scales;
        row += step;
        n -= step;
    }
    return status;
}

/* From piece to piece: rows of a tensor that is cut may lie in several files.
 * Within a piece rows count from its own first one, and tiles begin there. */
static enum lmq_status
read_integers(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, uint64_t row, size_t n,
              int8_t *q, unsigned char *scales, struct lmq_scratch *scratch,
              struct lmq_error *err)
{
    const struct lmq_whole *whole = lmq_set_whole_of(checkpoint, tensor);
    size_t n_cols = (size_t)tensor->n_cols;
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        const struct lmq_slice *piece = lmq_whole_find(whole, row);
        const struct lmq_record *record = piece->record;
        struct lmq_input *input = checkpoint->files[piece->member];
        uint64_t from = row - record->first_row;
        /* The record's: a tensor that is no matrix has no groups to others. */
        size_t row_scales = lmq_row_scales_size(n_cols, &record->quant);
        size_t step = (size_t)lmq_u64_min(n, record->n_rows - from);
        status = record->layout == LMQ_LAYOUT_TILES
                     ? read_tiles(input, record, n_cols, from, step, q, scales,
                                  scratch, err)
                     : read_rows(input, record, n_cols, from, step, q, scales,
                                 err);
        q += step * n_cols;
        scales += step * row_scales;
        row += step;
        n -= step;
    }
    return status;
}

/* Where the tiles from a row on lie, up to the end of their piece. The row is
 * the first of a tile. */
static bool
find_tiles(const struct lmq_checkpoint *checkpoint,
           const struct lmq_tensor *tensor, uint64_t row,
           struct lmq_tile_run *run)
{
    const struct lmq_slice *piece =
        lmq_whole_find(lmq_set_whole_of(checkpoint, tensor), row);
    const struct lmq_record *record = piece->record;
    const struct lmq_quant *quant = &record->quant;
    size_t n_cols = (size_t)tensor->n_cols;
    uint64_t from = row - record->first_row, tile = from / LMQ_TILE_ROWS;

    if (record->layout != LMQ_LAYOUT_TILES)
        return false;
    *run = (struct lmq_tile_run){
        .file = piece->member,
        .n_rows = record->n_rows - from,
        .values_at = record->extents[LMQ_VALUES].offset +
                     tile * lmq_tile_values_size(n_cols, quant->group_size,
                                                 quant->bits),
        .scales_at = record->extents[LMQ_SCALES].offset +
                     tile * lmq_tile_scales_size(n_cols, quant->group_size,
                                                 quant->scales),
    };
    return true;
}

/* Elements that are kept as they are: a run ends with its piece. */
static struct lmq_run
find_run(const struct lmq_checkpoint *checkpoint,
         const struct lmq_tensor *tensor, uint64_t first)
{
    const struct lmq_slice *piece =
        lmq_whole_find(lmq_set_whole_of(checkpoint, tensor),
                       first / tensor->n_cols);
    const struct lmq_record *record = piece->record;
    uint64_t from = first - record->first_row * tensor->n_cols;

    return (struct lmq_run){
        .file = piece->member,
        .offset = record->extents[LMQ_VALUES].offset +
                  from * lmq_dtype_size(record->dtype),
        .n = record->n_rows * tensor->n_cols - from,
    };
}

/* Rows as integers, and what becomes of them. */
struct block {
    int8_t *q;
    unsigned char *stored_scales;
    float *scales;
    size_t n_rows; /* capacity */
    struct lmq_scratch scratch;
};

/* Whole tiles, or as many rows as make a read worth while. */
static bool
make_block(const struct lmq_record *record, size_t n_cols, struct block *block)
{
    const size_t worth = (size_t)1 << 18;
    size_t n_groups = lmq_groups_per_row(n_cols, record->quant.group_size);

    *block = (struct block){.n_rows = LMQ_TILE_ROWS};
    if (record->layout == LMQ_LAYOUT_ROWS && n_cols > worth / LMQ_TILE_ROWS)
        block->n_rows = n_cols >= worth ? 1 : worth / n_cols;
    block->q = malloc(block->n_rows * n_cols);
    block->stored_scales = malloc(block->n_rows * n_groups *
                                  lmq_scale_size(record->quant.scales));
    block->scales = malloc(block->n_rows * n_groups * sizeof(float));
    return block->q != NULL && block->stored_scales != NULL &&
           block->scales != NULL;
}

static void
free_block(struct block *block)
{
    free(block->q);
    free(block->stored_scales);
    free(block->scales);
    lmq_scratch_free(&block->scratch);
}

/* n values from `skip` on: whole groups, of which some numbers are wanted. */
static void
give_values(const struct lmq_quant *quant, const struct block *block,
            size_t n_cols, size_t skip, size_t n, float *values)
{
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t end = skip + n;

    for (size_t at = skip, next; at < end; at = next) {
        size_t row = at / n_cols, column = at % n_cols;
        size_t number = column / quant->group_size;
        size_t from = number * quant->group_size;
        size_t whole = lmq_size_min(quant->group_size, n_cols - from);
        const int8_t *q = block->q + row * n_cols + from;
        float scale = block->scales[row * n_groups + number];
        float group[LMQ_GROUP_MAX];
        for (size_t i = 0; i < whole; i++)
            group[i] = (float)q[i] * scale;
        lmq_rotate_group(group, whole, quant->group_size, quant->rotation);
        next = lmq_size_min(at + whole - (column - from), end);
        memcpy(values, group + (column - from), (next - at) * sizeof(*values));
        values += next - at;
    }
}

static enum lmq_status
read_lmq(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
         uint64_t first, size_t n, float *values, struct lmq_error *err)
{
    const struct lmq_record *record =
        lmq_set_whole_of(checkpoint, tensor)->pieces->record;
    const struct lmq_quant *quant = &record->quant;
    size_t n_cols = (size_t)tensor->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    struct block block;
    enum lmq_status status = LMQ_OK;

    if (!make_block(record, n_cols, &block))
        status = lmq_fail_nomem(err);
    while (n > 0 && status == LMQ_OK) {
        uint64_t row = first / n_cols;
        size_t skip = (size_t)(first % n_cols);
        size_t rows = block.n_rows - (size_t)(row % block.n_rows);
        rows = (size_t)lmq_u64_min(rows, tensor->n_rows - row);
        size_t step = lmq_size_min(n, rows * n_cols - skip);
        rows = (skip + step + n_cols - 1) / n_cols;
        status = read_integers(checkpoint, tensor, row, rows, block.q,
                               block.stored_scales, &block.scratch, err);
        if (status == LMQ_OK) {
            lmq_quant_widen(quant, block.q, rows, n_cols,
                            block.stored_scales);
            lmq_scales_load(quant->scales, quant->multiplier,
                            block.stored_scales, rows * n_groups,
                            block.scales);
            give_values(quant, &block, n_cols, skip, step, values);
        }
        values += step;
        first += step;
        n -= step;
    }
    free_block(&block);
    return status;
}

/* ---- The format ---- */

const struct lmq_format lmq_format_lmq = {
    .name = "lmq",
    .is_canonical = true,
    .has_checksums = true,
    .probe = probe_lmq,
    .open = open_lmq,
    .read = read_lmq,
    .close = close_lmq,
    .read_integers = read_integers,
    .find_tiles = find_tiles,
    .find_run = find_run,
    .verify_tensor = lmq_set_verify_tensor,
    .describe = lmq_container_describe,
    .describe_tensor = lmq_container_describe_tensor,
};
