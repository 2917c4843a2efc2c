/*
 * verify_digests.c - the digests of a container, computed from its bytes.
 *
 * Tensors go through the threads in pieces, as in a conversion; what is
 * compared with what is verify.c's business.
 */
#include "config.h"

#include "formats/verify/verify_digests.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/lmq/lmq_set.h"

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
    return worker->sha != NULL && worker->values != NULL &&
           worker->scales != NULL && worker->rows != NULL &&
           worker->rows_scales != NULL;
}

enum lmq_status
lmq_digesting_open(struct lmq_digesting *digesting, uint64_t n_bytes,
                   int threads, struct lmq_error *err)
{
    *digesting = (struct lmq_digesting){0};
    enum lmq_status status = lmq_sha256_need(err);
    if (status == LMQ_OK)
        status = lmq_workers_open(
            &digesting->workers, threads,
            (size_t)lmq_u64_min(n_bytes / LMQ_PIECE + 1, WINDOW),
            sizeof(struct worker), make_worker, clear_worker, NULL, err);
    return status;
}

void
lmq_digesting_close(struct lmq_digesting *digesting)
{
    lmq_workers_close(&digesting->workers);
    lmq_gather_free(&digesting->gather);
}

/* ---- Tensors ---- */

struct piece {
    struct lmq_rectangle part;
    unsigned char leaves[LMQ_PIECE_LEAVES * LMQ_SHA256_SIZE];
};

struct reading {
    struct lmq_gather *gather;
    struct lmq_input *input;
    const struct lmq_record *record;
    uint64_t n_cols, row, column; /* where the next piece begins */
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
    return lmq_input_read(reading->input,
                          reading->record->extents[which].offset + at, bytes,
                          (size_t)n, err);
}

/* Elements that are kept as they are: rows one after the other. */
static enum lmq_status
read_plain(const struct reading *reading, const struct lmq_rectangle *part,
           struct worker *worker, struct lmq_digest_rows *rows,
           struct lmq_error *err)
{
    size_t size = lmq_dtype_size(reading->record->dtype);

    *rows = (struct lmq_digest_rows){.values = worker->values,
                                     .value_size = size};
    return read_run(reading, LMQ_OK, LMQ_VALUES,
                    (part->row * reading->n_cols + part->column) * size,
                    (uint64_t)part->n_rows * part->n_cols * size,
                    worker->values, err);
}

/* Values and scales of the same rows, each one run. */
static enum lmq_status
read_rows(const struct reading *reading, const struct lmq_rectangle *part,
          struct worker *worker, struct lmq_digest_rows *rows,
          struct lmq_error *err)
{
    const struct lmq_quant *quant = &reading->record->quant;
    size_t size = lmq_scale_size(quant->scales);
    unsigned group = quant->group_size;
    uint64_t per_row = lmq_groups_per_row((size_t)reading->n_cols, group);
    enum lmq_status status = read_run(
        reading, LMQ_OK, LMQ_VALUES,
        part->row * reading->n_cols + part->column,
        (uint64_t)part->n_rows * part->n_cols, worker->values, err);

    *rows = (struct lmq_digest_rows){worker->values, 1, worker->scales, size,
                                     group};
    return read_run(reading, status, LMQ_SCALES,
                    (part->row * per_row + part->column / group) * size,
                    part->n_rows * lmq_groups_per_row(part->n_cols, group) *
                        size,
                    worker->scales, err);
}

/* The tiles of a piece, and their sizes. */
struct tiles {
    size_t n, values, scales;
};

/* Tiles are unpacked into rows first: digests do not know of layouts. A piece
 * begins at a tile, and at a group within it. */
static enum lmq_status
read_tiles(const struct reading *reading, const struct lmq_rectangle *part,
           struct worker *worker, struct lmq_digest_rows *rows,
           struct lmq_error *err)
{
    const struct lmq_quant *quant = &reading->record->quant;
    size_t group = quant->group_size, size = lmq_scale_size(quant->scales);
    size_t n_cols = (size_t)reading->n_cols;
    uint64_t tile = part->row / LMQ_TILE_ROWS;
    unsigned bits = quant->bits;
    const struct tiles tiles = {
        .n = (part->n_rows + LMQ_TILE_ROWS - 1) / LMQ_TILE_ROWS,
        .values = lmq_tile_values_size(part->n_cols, group, bits),
        .scales = lmq_tile_scales_size(part->n_cols, group, quant->scales),
    };
    enum lmq_status status = read_run(
        reading, LMQ_OK, LMQ_VALUES,
        tile * lmq_tile_values_size(n_cols, group, bits) +
            lmq_tile_values_size((size_t)part->column, group, bits),
        tiles.n * tiles.values, worker->values, err);

    status = read_run(reading, status, LMQ_SCALES,
                      tile * lmq_tile_scales_size(n_cols, group,
                                                  quant->scales) +
                          part->column / group * LMQ_TILE_ROWS * size,
                      tiles.n * tiles.scales, worker->scales, err);
    if (status == LMQ_OK)
        lmq_tiles_unpack(worker->values, worker->scales, part->n_rows,
                         part->n_cols, quant, (int8_t *)worker->rows,
                         worker->rows_scales);
    *rows = (struct lmq_digest_rows){worker->rows, 1, worker->rows_scales,
                                     size,
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
    struct lmq_digest_rows rows;
    enum lmq_status status;

    if (record->encoding != LMQ_ENCODING_Q8)
        status = read_plain(reading, &piece->part, worker, &rows, err);
    else if (record->layout == LMQ_LAYOUT_ROWS)
        status = read_rows(reading, &piece->part, worker, &rows, err);
    else
        status = read_tiles(reading, &piece->part, worker, &rows, err);
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

    return lmq_gather_add(reading->gather, &piece->part,
                          piece->leaves, err);
}

/* In rectangles that begin and end with leaves, and merged by a function that
 * can fail: lmq_tasks_run() rather than lmq_tasks_over(), whose ranges are
 * runs of one dimension. */
static enum lmq_status
digest_part(struct lmq_digesting *digesting,
            const struct lmq_digest_part *part, struct lmq_error *err)
{
    const struct lmq_record *record = part->record;
    struct reading *reading = calloc(1, sizeof(*reading));

    if (reading == NULL)
        return lmq_fail_nomem(err);
    reading->gather = &digesting->gather;
    reading->input = part->input;
    reading->record = record;
    reading->n_cols = lmq_record_columns(record);
    const struct lmq_tasks tasks = {
        .window = WINDOW,
        .context = reading,
        .next = next_piece,
        .piece = digest_piece,
        .merge = merge_piece,
    };
    lmq_gather_begin_part(&digesting->gather, part->chunks);
    enum lmq_status status =
        lmq_tasks_run(&tasks, &digesting->workers, err);
    if (status == LMQ_OK)
        status = lmq_gather_end_part(&digesting->gather, err);
    free(reading);
    return status;
}

enum lmq_status
lmq_digesting_tensor(struct lmq_digesting *digesting,
                     const struct lmq_digest_part *parts, size_t n_parts,
                     unsigned chunk_log2,
                     unsigned char digest[LMQ_SHA256_SIZE],
                     struct lmq_error *err)
{
    enum lmq_status status = lmq_gather_begin(
        &digesting->gather, parts[0].record, chunk_log2, digest, err);

    for (size_t i = 0; i < n_parts && status == LMQ_OK; i++)
        status = digest_part(digesting, &parts[i], err);
    return status == LMQ_OK ? lmq_gather_end(&digesting->gather, err)
                            : status;
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

/* Those of the first member, which has them all. */
static enum lmq_status
digest_files(struct lmq_input *input, const struct lmq_container *container,
             struct lmq_file_digest *files, size_t *n, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_sections && status == LMQ_OK; i++)
        if (container->sections[i].type == LMQ_SECTION_FILE)
            status = digest_file(input, &container->sections[i],
                                 &files[(*n)++], err);
    return status;
}

/* Of a tensor that stands in several members. */
static enum lmq_status
digest_cut(const struct lmq_checkpoint *checkpoint,
           const struct lmq_whole *whole, struct lmq_digesting *digesting,
           unsigned char *digest, struct lmq_error *err)
{
    struct lmq_digest_part *parts = calloc(whole->n_pieces, sizeof(*parts));

    if (parts == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < whole->n_pieces; i++)
        parts[i] = (struct lmq_digest_part){
            .input = checkpoint->files[whole->pieces[i].member],
            .record = whole->pieces[i].record};
    enum lmq_status status =
        lmq_digesting_tensor(digesting, parts, whole->n_pieces,
                             LMQ_CHUNK_LOG2, digest, err);
    free(parts);
    return status;
}

/* `cut` has room for the digest of each tensor. */
static enum lmq_status
digest_wholes(const struct lmq_checkpoint *checkpoint,
              const struct lmq_digests *const *members,
              struct lmq_digesting *digesting, unsigned char *cut,
              struct lmq_tensor_digest *tensors, struct lmq_error *err)
{
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < set->n_wholes; i++) {
        const struct lmq_whole *own = set->wholes[i].target;
        const struct lmq_slice *piece = own->pieces;
        size_t index = (size_t)(piece->record -
                                set->members[piece->member].records);
        unsigned char *digest =
            cut + (size_t)(own - set->wholes) * LMQ_SHA256_SIZE;
        tensors[i] = (struct lmq_tensor_digest){
            set->wholes[i].pieces->record->name, piece->record,
            own->n_pieces > 1 ? digest
                              : members[piece->member]->tensors +
                                    index * LMQ_SHA256_SIZE};
        if (own->n_pieces > 1 && own == &set->wholes[i] && status == LMQ_OK)
            status = digest_cut(checkpoint, own, digesting, digest, err);
    }
    return status;
}

/* They were looked at one by one before. */
static enum lmq_status
check_unchanged(const struct lmq_checkpoint *checkpoint,
                const struct lmq_digests *const *members,
                struct lmq_error *err)
{
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);

    for (size_t i = 0; i < set->n_members; i++)
        if (set->members[i].n_records != members[i]->n_records) {
            lmq_fail(err, LMQ_ERR_IO, 0,
                     "was replaced while it was being verified");
            lmq_error_in(err, lmq_input_path(checkpoint->files[i]));
            return LMQ_ERR_IO;
        }
    return LMQ_OK;
}

/* Tensors that are whole in one member have their digests already; only those
 * that are cut are read again. */
enum lmq_status
lmq_verify_content(const struct lmq_checkpoint *checkpoint,
                   const struct lmq_digests *const *members, int threads,
                   unsigned char content[LMQ_SHA256_SIZE],
                   struct lmq_error *err)
{
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    const struct lmq_container *first = &set->members[0];
    struct lmq_digesting digesting = {0};
    struct lmq_file_digest *files =
        calloc(first->n_sections + 1, sizeof(*files));
    struct lmq_tensor_digest *tensors =
        calloc(set->n_wholes + 1, sizeof(*tensors));
    unsigned char *cut = calloc(set->n_wholes + 1, LMQ_SHA256_SIZE);
    size_t n_files = 0;
    enum lmq_status status =
        files == NULL || tensors == NULL || cut == NULL
            ? lmq_fail_nomem(err)
            : check_unchanged(checkpoint, members, err);

    if (status == LMQ_OK && set->n_pieces > set->n_wholes)
        status = lmq_digesting_open(&digesting, UINT64_MAX, threads, err);
    if (status == LMQ_OK)
        status = digest_files(checkpoint->files[0], first, files, &n_files,
                              err);
    if (status == LMQ_OK)
        status = digest_wholes(checkpoint, members, &digesting, cut, tensors,
                               err);
    if (status == LMQ_OK)
        status = lmq_content_digest(tensors, set->n_wholes,
                                    json_object_get(first->metadata, "model"),
                                    files, n_files, content, err);
    lmq_digesting_close(&digesting);
    free(cut);
    free(tensors);
    free(files);
    return status;
}

/* ---- The root ---- */

/* Without a thread: sections are small beside tensors. */
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

/* From the bytes in the file, not from what was loaded: a field that is not
 * understood counts too. */
enum lmq_status
lmq_verify_root(struct lmq_input *input,
                const struct lmq_container *container,
                unsigned char root[LMQ_SHA256_SIZE], struct lmq_error *err)
{
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
        status = lmq_root_digest(head, table, n, each, bytes, size, root,
                                 err);
    free(bytes);
    free(each);
    free(table);
    return status;
}
