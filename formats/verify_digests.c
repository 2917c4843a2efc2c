/*
 * verify_digests.c - the digests of a container, computed from its bytes.
 *
 * Tensors go through the threads in pieces, as in a conversion; what is
 * compared with what is verify.c's business.
 */
#include "config.h"

#include "formats/verify_digests.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

#define WINDOW 64
#define CHUNK ((size_t)1 << 20)

/* ---- Workers ---- */

/* Padding of tiles at most doubles a piece; an element has up to 8 bytes. */
#define VALUES_MAX (8 * LMQ_PIECE)
#define SCALES_MAX LMQ_PIECE

struct worker {
    struct lmq_sha256 *sha;
    unsigned char *values, *scales;    /* as they are stored */
    unsigned char *rows, *rows_scales; /* of tiles */
    unsigned char *again;              /* what the tiles should be */
};

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_sha256_free(worker->sha);
    lmq_mem_free(worker->values);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->rows);
    lmq_mem_free(worker->rows_scales);
    lmq_mem_free(worker->again);
}

static bool
make_worker(void *state, const void *context)
{
    struct worker *worker = state;

    (void)context;
    worker->sha = lmq_sha256_new();
    worker->values = lmq_mem_aligned(VALUES_MAX, 1);
    worker->scales = lmq_mem_aligned(SCALES_MAX, 1);
    worker->rows = lmq_mem_aligned(LMQ_PIECE, 1);
    worker->rows_scales = lmq_mem_aligned(SCALES_MAX, 1);
    worker->again = lmq_mem_aligned(2 * LMQ_PIECE + SCALES_MAX, 1);
    return worker->sha != NULL && worker->values != NULL &&
           worker->scales != NULL && worker->rows != NULL &&
           worker->rows_scales != NULL && worker->again != NULL;
}

enum lmq_status
lmq_digesting_open(struct lmq_digesting *digesting, struct lmq_input *input,
                   const struct lmq_container *container, int threads,
                   struct lmq_error *err)
{
    const struct lmq_digests *stored = container->digests;

    *digesting =
        (struct lmq_digesting){.input = input, .container = container};
    enum lmq_status status = lmq_sha256_need(err);
    if (status == LMQ_OK)
        status = lmq_digests_make(
            container->records, container->n_records,
            stored == NULL ? LMQ_CHUNK_LOG2 : stored->chunk_log2,
            &digesting->digests, err);
    if (status == LMQ_OK && stored != NULL)
        memcpy(digesting->digests.root, stored->root, LMQ_SHA256_SIZE);
    if (status == LMQ_OK)
        status = lmq_workers_open(
            &digesting->workers, threads,
            (size_t)lmq_u64_min(lmq_input_size(input) / LMQ_PIECE + 1, WINDOW),
            sizeof(struct worker), make_worker, clear_worker, NULL, err);
    return status;
}

void
lmq_digesting_close(struct lmq_digesting *digesting)
{
    lmq_workers_close(&digesting->workers);
    lmq_gather_free(&digesting->gather);
    lmq_digests_free(&digesting->digests);
}

/* ---- Tensors ---- */

struct piece {
    struct lmq_rectangle part;
    bool is_padded;
    unsigned char leaves[LMQ_PIECE_LEAVES * LMQ_SHA256_SIZE];
};

struct reading {
    struct lmq_digesting *digesting;
    const struct lmq_record *record;
    uint64_t n_cols, row, column; /* where the next piece begins */
    bool is_padded;
    struct piece window[WINDOW];
};

static bool
next_piece(void *context, size_t slot)
{
    struct reading *reading = context;

    if (reading->row == reading->record->n_rows)
        return false;
    struct lmq_rectangle *part = &reading->window[slot].part;
    *part = lmq_rectangle_at(reading->record->layout, reading->record->n_rows,
                             reading->n_cols, reading->row, reading->column);
    lmq_rectangle_next(part, reading->n_cols, &reading->row,
                       &reading->column);
    return true;
}

/* A run of an extent. */
static enum lmq_status
read_run(const struct reading *reading, enum lmq_status status, int which,
         uint64_t at, uint64_t n, unsigned char *bytes, struct lmq_error *err)
{
    if (status != LMQ_OK)
        return status;
    return lmq_input_read(reading->digesting->input,
                          reading->record->extents[which].offset + at, bytes,
                          (size_t)n, err);
}

static enum lmq_status
read_plain(const struct reading *reading, const struct lmq_rectangle *part,
           struct worker *worker, struct lmq_rows *rows,
           struct lmq_error *err)
{
    size_t size = lmq_dtype_size(reading->record->dtype);

    *rows = (struct lmq_rows){.values = worker->values, .value_size = size};
    return read_run(reading, LMQ_OK, LMQ_VALUES,
                    (part->row * reading->n_cols + part->column) * size,
                    (uint64_t)part->n_rows * part->n_cols * size,
                    worker->values, err);
}

static enum lmq_status
read_rows(const struct reading *reading, const struct lmq_rectangle *part,
          struct worker *worker, struct lmq_rows *rows, struct lmq_error *err)
{
    const struct lmq_quant *quant = &reading->record->quant;
    size_t size = lmq_scale_size(quant->scales);
    unsigned group = quant->group_size;
    uint64_t per_row = lmq_groups_per_row((size_t)reading->n_cols, group);
    enum lmq_status status = read_run(
        reading, LMQ_OK, LMQ_VALUES,
        part->row * reading->n_cols + part->column,
        (uint64_t)part->n_rows * part->n_cols, worker->values, err);

    *rows = (struct lmq_rows){worker->values, 1, worker->scales, size, group};
    return read_run(reading, status, LMQ_SCALES,
                    (part->row * per_row + part->column / group) * size,
                    part->n_rows * lmq_groups_per_row(part->n_cols, group) *
                        size,
                    worker->scales, err);
}

/* The tiles of a piece: their sizes, and rows and scales of a row. */
struct tiles {
    size_t n, values, scales, row_scales;
};

static bool
is_packed_so(const struct lmq_quant *quant, const struct lmq_rectangle *part,
             const struct tiles *tiles, struct worker *worker)
{
    size_t values = tiles->n * tiles->values, scales = tiles->n * tiles->scales;

    lmq_tiles_pack((int8_t *)worker->rows, part->n_cols, worker->rows_scales,
                   part->n_rows, part->n_cols, quant->group_size,
                   quant->scales, worker->again, worker->again + values);
    return memcmp(worker->again, worker->values, values) == 0 &&
           memcmp(worker->again + values, worker->scales, scales) == 0;
}

static enum lmq_status
read_tiles(const struct reading *reading, struct piece *piece,
           struct worker *worker, struct lmq_rows *rows,
           struct lmq_error *err)
{
    const struct lmq_quant *quant = &reading->record->quant;
    const struct lmq_rectangle *part = &piece->part;
    size_t group = quant->group_size, size = lmq_scale_size(quant->scales);
    size_t n_cols = (size_t)reading->n_cols;
    uint64_t tile = part->row / LMQ_TILE_ROWS;
    const struct tiles tiles = {
        .n = (part->n_rows + LMQ_TILE_ROWS - 1) / LMQ_TILE_ROWS,
        .values = lmq_tile_values_size(part->n_cols, group),
        .scales = lmq_tile_scales_size(part->n_cols, group, quant->scales),
        .row_scales =
            lmq_groups_per_row(part->n_cols, (unsigned)group) * size,
    };
    enum lmq_status status = read_run(
        reading, LMQ_OK, LMQ_VALUES,
        tile * lmq_tile_values_size(n_cols, group) +
            part->column * LMQ_TILE_ROWS,
        tiles.n * tiles.values, worker->values, err);

    status = read_run(reading, status, LMQ_SCALES,
                      tile * lmq_tile_scales_size(n_cols, group,
                                                  quant->scales) +
                          part->column / group * LMQ_TILE_ROWS * size,
                      tiles.n * tiles.scales, worker->scales, err);
    for (size_t i = 0; i < tiles.n && status == LMQ_OK; i++) {
        size_t row = i * LMQ_TILE_ROWS;
        lmq_tile_unpack(worker->values + i * tiles.values,
                        worker->scales + i * tiles.scales,
                        lmq_size_min(LMQ_TILE_ROWS, part->n_rows - row),
                        part->n_cols, group, quant->scales,
                        (int8_t *)worker->rows + row * part->n_cols,
                        part->n_cols,
                        worker->rows_scales + row * tiles.row_scales);
    }
    /* Without padding packing gives the same bytes again. */
    if (status == LMQ_OK &&
        (part->n_rows % LMQ_TILE_ROWS != 0 || part->n_cols % group != 0))
        piece->is_padded = is_packed_so(quant, part, &tiles, worker);
    *rows = (struct lmq_rows){worker->rows, 1, worker->rows_scales, size,
                              group};
    return status;
}

static enum lmq_status
digest_piece(void *context, size_t slot, void *state, struct lmq_error *err)
{
    struct reading *reading = context;
    struct piece *piece = &reading->window[slot];
    const struct lmq_record *record = reading->record;
    struct worker *worker = state;
    struct lmq_rows rows;
    enum lmq_status status;

    piece->is_padded = true;
    if (record->encoding != LMQ_ENCODING_Q8)
        status = read_plain(reading, &piece->part, worker, &rows, err);
    else if (record->layout == LMQ_LAYOUT_ROWS)
        status = read_rows(reading, &piece->part, worker, &rows, err);
    else
        status = read_tiles(reading, piece, worker, &rows, err);
    if (status != LMQ_OK)
        return status;
    return lmq_piece_digest(worker->sha, &piece->part, reading->n_cols, &rows,
                            piece->leaves, err);
}

static enum lmq_status
merge_piece(void *context, size_t slot, struct lmq_error *err)
{
    struct reading *reading = context;
    const struct piece *piece = &reading->window[slot];

    reading->is_padded &= piece->is_padded;
    return lmq_gather_add(&reading->digesting->gather, &piece->part,
                          piece->leaves, err);
}

enum lmq_status
lmq_digesting_tensor(struct lmq_digesting *digesting, size_t index,
                     bool *is_padded, struct lmq_error *err)
{
    const struct lmq_record *records = digesting->container->records;
    const struct lmq_record *record = &records[index];
    struct reading *reading = calloc(1, sizeof(*reading));

    if (reading == NULL)
        return lmq_fail_nomem(err);
    reading->digesting = digesting;
    reading->record = record;
    reading->n_cols = record->n_dims == 0 ? 1
                                          : record->dims[record->n_dims - 1];
    reading->is_padded = true;
    const struct lmq_tasks tasks = {
        .window = WINDOW,
        .context = reading,
        .next = next_piece,
        .piece = digest_piece,
        .merge = merge_piece,
    };
    struct lmq_digests *own = &digesting->digests;
    enum lmq_status status =
        lmq_gather_begin(&digesting->gather, record, own->chunk_log2,
                         own->tensors + index * LMQ_SHA256_SIZE, err);
    lmq_gather_begin_part(&digesting->gather,
                          own->chunks + own->first[index] * LMQ_SHA256_SIZE);
    if (status == LMQ_OK)
        status = lmq_tasks_run(&tasks, &digesting->workers, err);
    if (status == LMQ_OK)
        status = lmq_gather_end_part(&digesting->gather, err);
    if (status == LMQ_OK)
        status = lmq_gather_end(&digesting->gather, err);
    *is_padded = reading->is_padded;
    free(reading);
    return status;
}

/* ---- The content ---- */

static enum lmq_status
digest_file(struct lmq_input *input, const struct lmq_section *section,
            struct lmq_file_digest *file, struct lmq_error *err)
{
    unsigned char *bytes;
    size_t size;
    enum lmq_status status =
        lmq_section_read(input, section, &bytes, &size, err);

    if (status != LMQ_OK)
        return status;
    file->name = section->name;
    file->size = size;
    status = lmq_digest_bytes(bytes, size, file->digest, err);
    free(bytes);
    return status;
}

enum lmq_status
lmq_digesting_content(struct lmq_digesting *digesting, struct lmq_error *err)
{
    const struct lmq_container *container = digesting->container;
    struct lmq_file_digest *files =
        calloc(container->n_sections + 1, sizeof(*files));
    enum lmq_status status = files == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    size_t n = 0;

    for (size_t i = 0; i < container->n_sections && status == LMQ_OK; i++)
        if (container->sections[i].type == LMQ_SECTION_FILE)
            status = digest_file(digesting->input, &container->sections[i],
                                 &files[n++], err);
    if (status == LMQ_OK)
        status = lmq_content_digest(
            container->records, container->n_records,
            json_object_get(container->metadata, "model"), files, n,
            &digesting->digests, err);
    free(files);
    return status;
}

/* ---- The root ---- */

static enum lmq_status
digest_extent(struct lmq_input *input, const struct lmq_extent *extent,
              unsigned char *digest, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    unsigned char *bytes = malloc(CHUNK);
    struct lmq_sha256 *sha = lmq_sha256_new();

    if (bytes == NULL || sha == NULL)
        status = lmq_fail_nomem(err);
    for (uint64_t at = 0; at < extent->size && status == LMQ_OK;) {
        size_t n = (size_t)lmq_u64_min(CHUNK, extent->size - at);
        status = lmq_input_read(input, extent->offset + at, bytes, n, err);
        if (status == LMQ_OK)
            lmq_sha256_update(sha, bytes, n);
        at += n;
    }
    if (status == LMQ_OK)
        status = lmq_sha256_end(sha, digest, err);
    lmq_sha256_free(sha);
    free(bytes);
    return status;
}

enum lmq_status
lmq_digesting_root(struct lmq_digesting *digesting, struct lmq_error *err)
{
    const struct lmq_container *container = digesting->container;
    struct lmq_input *input = digesting->input;
    size_t n = container->n_sections;
    unsigned char head[LMQ_SUPERBLOCK_SIZE], *bytes = NULL;
    unsigned char *table = malloc(n * LMQ_SECTION_SIZE);
    unsigned char *each = calloc(n, LMQ_SHA256_SIZE);
    enum lmq_status status =
        table == NULL || each == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    size_t size = 0;

    if (status == LMQ_OK)
        status = lmq_input_read(input, 0, head, sizeof(head), err);
    if (status == LMQ_OK)
        status = lmq_input_read(input, container->superblock.table_offset,
                                table, n * LMQ_SECTION_SIZE, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        const struct lmq_section *section = &container->sections[i];
        status = section->type == LMQ_SECTION_DIGESTS
                     ? lmq_section_read(input, section, &bytes, &size, err)
                     : digest_extent(input, &section->stored,
                                     each + i * LMQ_SHA256_SIZE, err);
    }
    if (status == LMQ_OK)
        status = lmq_root_digest(head, table, n, each, bytes, size,
                                 digesting->digests.root, err);
    free(bytes);
    free(each);
    free(table);
    return status;
}
