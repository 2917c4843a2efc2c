/*
 * lmq_digests.c - leaves, chunks and tensors; the section of digests.
 *
 * From bytes to the digest of a tensor:
 *
 *     leaf    16 rows, or 8192 columns of one where rows are longer: SHA-256 of
 *             its values as rows, then of its scales
 *     chunk   the digests of leaves of some megabytes of values: what a reader
 *             can check without reading the rest
 *     tensor  the digests of all its leaves
 *
 * The layout does not enter: rows and tiles of the same numbers have the same
 * digests, which is why all is computed from rows.
 */
#include "config.h"

#include "formats/lmq/lmq_digests.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"

#define DIGESTS_VERSION 1
#define SIZE LMQ_SHA256_SIZE

/* lmq(5), "Digests": rows of a leaf where they are short, columns where they
 * are long. */
#define LEAF_ROWS LMQ_TILE_ROWS
#define LEAF_COLS 8192

/* ---- Sizes ---- */

static bool
is_wide(uint64_t n_cols)
{
    return n_cols > LEAF_COLS;
}

/* As many whole strips as there is room for, at least one. */
static uint64_t
chunk_rows(uint64_t n_cols, unsigned chunk_log2)
{
    uint64_t rows =
        ((uint64_t)1 << chunk_log2) / n_cols / LEAF_ROWS * LEAF_ROWS;

    return rows == 0 ? LEAF_ROWS : rows;
}

/* Of the rows that stand in this file: chunks of a tensor that is cut begin
 * anew in each piece. */
uint64_t
lmq_count_chunks(const struct lmq_record *record, unsigned chunk_log2)
{
    return lmq_u64_ceil_div(record->n_rows,
                            chunk_rows(lmq_record_columns(record),
                                       chunk_log2));
}

uint64_t
lmq_digests_size(const struct lmq_digests *digests)
{
    return LMQ_DIGESTS_HEADER + digests->n * SIZE;
}

/* ---- The section ---- */

/* Where each tensor's chunks begin follows from the records alone; so a
 * section of digests has no table of its own, and only its length can be
 * wrong. */
enum lmq_status
lmq_digests_make(const struct lmq_record *records, size_t n_records,
                 unsigned chunk_log2, struct lmq_digests *digests,
                 struct lmq_error *err)
{
    *digests = (struct lmq_digests){
        .chunk_log2 = chunk_log2,
        .first = calloc(n_records + 1, sizeof(uint64_t)),
        .n_records = n_records,
    };
    if (digests->first == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n_records; i++) {
        digests->first[i] = digests->n;
        digests->n += lmq_count_chunks(&records[i], chunk_log2);
        if (digests->n > (LMQ_MAX_SECTION_BYTES - LMQ_DIGESTS_HEADER) / SIZE)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the digests of so many tensors do not fit into "
                            "a container");
    }
    digests->chunks = calloc((size_t)digests->n + 1, SIZE);
    digests->tensors = calloc(n_records + 1, SIZE);
    return digests->chunks == NULL || digests->tensors == NULL
               ? lmq_fail_nomem(err)
               : LMQ_OK;
}

void
lmq_digests_free(struct lmq_digests *digests)
{
    free(digests->first);
    free(digests->chunks);
    free(digests->tensors);
    *digests = (struct lmq_digests){0};
}

enum lmq_status
lmq_digests_store(const struct lmq_digests *digests, unsigned char **bytes,
                  struct lmq_error *err)
{
    *bytes = calloc(1, (size_t)lmq_digests_size(digests));
    if (*bytes == NULL)
        return lmq_fail_nomem(err);
    lmq_store_u32le(*bytes, DIGESTS_VERSION);
    lmq_store_u32le(*bytes + 4, digests->chunk_log2);
    lmq_store_u64le(*bytes + 8, digests->n);
    memcpy(*bytes + 16, digests->root, SIZE);
    memcpy(*bytes + 48, digests->content, SIZE);
    memcpy(*bytes + LMQ_DIGESTS_HEADER, digests->chunks,
           (size_t)digests->n * SIZE);
    return LMQ_OK;
}

enum lmq_status
lmq_digests_load(const unsigned char *bytes, size_t size,
                 const struct lmq_record *records, size_t n_records,
                 struct lmq_digests *digests, struct lmq_error *err)
{
    *digests = (struct lmq_digests){0};
    if (size < LMQ_DIGESTS_HEADER)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the digests are %zu bytes, their header needs %d",
                        size, LMQ_DIGESTS_HEADER);
    uint32_t version = lmq_load_u32le(bytes);
    uint32_t chunk_log2 = lmq_load_u32le(bytes + 4);
    uint64_t n = lmq_load_u64le(bytes + 8);
    if (version != DIGESTS_VERSION || chunk_log2 < LMQ_CHUNK_LOG2_MIN ||
        chunk_log2 > LMQ_CHUNK_LOG2_MAX)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the digests are of version %u, in chunks of 2^%u: "
                        "expected 1, and 2^20 to 2^26",
                        version, chunk_log2);
    enum lmq_status status = lmq_digests_make(records, n_records, chunk_log2,
                                              digests, err);
    if (status != LMQ_OK)
        return status;
    if (n != digests->n || size != lmq_digests_size(digests))
        return lmq_fail(err, LMQ_ERR_FORMAT, 8,
                        "the digests (%" PRIu64 " in %zu bytes) are not those "
                        "of the tensors, which have %" PRIu64,
                        n, size, digests->n);
    memcpy(digests->root, bytes + 16, SIZE);
    memcpy(digests->content, bytes + 48, SIZE);
    memcpy(digests->chunks, bytes + LMQ_DIGESTS_HEADER, (size_t)n * SIZE);
    return LMQ_OK;
}

/* ---- Pieces ---- */

struct lmq_rectangle
lmq_rectangle_at(enum lmq_layout layout, uint64_t n_rows, uint64_t n_cols,
             uint64_t row, uint64_t column)
{
    struct lmq_rectangle piece = {.row = row, .column = column};
    /* Tiles are 16 rows side by side, and so are short leaves. */
    uint64_t unit =
        layout == LMQ_LAYOUT_TILES || !is_wide(n_cols) ? LMQ_TILE_ROWS : 1;
    uint64_t rows = unit, columns = n_cols;

    if (n_cols <= LMQ_PIECE / unit) /* whole rows */
        rows = lmq_u64_min(LMQ_PIECE / n_cols / unit * unit,
                           (uint64_t)LMQ_PIECE_LEAVES * unit);
    else /* a part of one row, or of one tile of rows */
        columns = LMQ_PIECE / unit;
    piece.n_rows = (size_t)lmq_u64_min(rows, n_rows - row);
    piece.n_cols = (size_t)lmq_u64_min(columns, n_cols - column);
    return piece;
}

/* First to the right, then down: the order in which a pipeline reads, and
 * leaves of a row are numbered. */
void
lmq_rectangle_next(const struct lmq_rectangle *piece, uint64_t n_cols,
               uint64_t *row, uint64_t *column)
{
    *row = piece->row;
    *column = piece->column + piece->n_cols;
    if (*column == n_cols) {
        *row += piece->n_rows;
        *column = 0;
    }
}

/* Pieces begin and end with leaves: lmq_rectangle_at() cuts along them. */
size_t
lmq_count_leaves(const struct lmq_rectangle *piece, uint64_t n_cols)
{
    if (is_wide(n_cols))
        return piece->n_rows * (size_t)lmq_u64_ceil_div(piece->n_cols,
                                                        LEAF_COLS);
    return (size_t)lmq_u64_ceil_div(piece->n_rows, LEAF_ROWS);
}

/* Both parts of the leaf lie in one run: it has whole rows, or one. */
static enum lmq_status
digest_leaf(struct lmq_sha256 *sha, const struct lmq_rectangle *piece,
            const struct lmq_digest_rows *rows,
            const struct lmq_rectangle *leaf,
            unsigned char digest[SIZE], struct lmq_error *err)
{
    size_t at = (size_t)leaf->row * piece->n_cols + (size_t)leaf->column;

    lmq_sha256_update(sha,
                      (const char *)rows->values + at * rows->value_size,
                      leaf->n_rows * leaf->n_cols * rows->value_size);
    if (rows->scales != NULL) {
        size_t group = rows->group_size;
        size_t per_row = lmq_groups_per_row(piece->n_cols, (unsigned)group);
        at = (size_t)leaf->row * per_row + (size_t)leaf->column / group;
        lmq_sha256_update(
            sha, (const char *)rows->scales + at * rows->scale_size,
            leaf->n_rows * lmq_groups_per_row(leaf->n_cols, (unsigned)group) *
                rows->scale_size);
    }
    return lmq_sha256_end(sha, digest, err);
}

/* The leaves of a piece, row after row. They depend on nothing outside of the
 * piece, so threads share pieces out. */
enum lmq_status
lmq_piece_digest(struct lmq_sha256 *sha, const struct lmq_rectangle *piece,
                 uint64_t n_cols, const struct lmq_digest_rows *rows,
                 unsigned char *leaves, struct lmq_error *err)
{
    size_t down = is_wide(n_cols) ? 1 : LEAF_ROWS;
    enum lmq_status status = LMQ_OK;

    for (size_t row = 0; row < piece->n_rows; row += down)
        for (size_t column = 0; column < piece->n_cols && status == LMQ_OK;
             column += LEAF_COLS) {
            struct lmq_rectangle leaf = {
                row, column, lmq_size_min(down, piece->n_rows - row),
                lmq_size_min(LEAF_COLS, piece->n_cols - column)};
            status = digest_leaf(sha, piece, rows, &leaf, leaves, err);
            leaves += SIZE;
        }
    return status;
}

/* ---- From leaves to tensors ---- */

void
lmq_gather_free(struct lmq_gather *gather)
{
    lmq_sha256_free(gather->chunk);
    lmq_sha256_free(gather->tensor);
    free(gather->strip);
    *gather = (struct lmq_gather){0};
}

/* Pieces come in the order of the tensor; but in tiles with wide rows a piece
 * is a part of 16 rows, while leaves are numbered along each row. A strip of
 * 16 rows of leaves then waits until its last piece has come. */
enum lmq_status
lmq_gather_begin(struct lmq_gather *gather, const struct lmq_record *record,
                 unsigned chunk_log2, unsigned char *whole,
                 struct lmq_error *err)
{
    uint64_t n_cols = lmq_record_columns(record);
    uint64_t across = lmq_u64_ceil_div(n_cols, LEAF_COLS);

    free(gather->strip);
    *gather = (struct lmq_gather){
        .chunk = gather->chunk,
        .tensor = gather->tensor,
        .n_cols = n_cols,
        .chunk_leaves = chunk_rows(n_cols, chunk_log2) * across /
                        (is_wide(n_cols) ? 1 : LEAF_ROWS),
        .is_across = is_wide(n_cols) && record->layout == LMQ_LAYOUT_TILES,
        .whole = whole,
    };
    if (gather->chunk == NULL)
        gather->chunk = lmq_sha256_new();
    if (gather->tensor == NULL)
        gather->tensor = lmq_sha256_new();
    if (gather->is_across)
        gather->strip = malloc((size_t)across * LMQ_TILE_ROWS * SIZE);
    return gather->chunk == NULL || gather->tensor == NULL ||
                   (gather->is_across && gather->strip == NULL)
               ? lmq_fail_nomem(err)
               : LMQ_OK;
}

void
lmq_gather_begin_part(struct lmq_gather *gather, unsigned char *chunks)
{
    gather->next = chunks;
    gather->n_leaves = 0;
}

static enum lmq_status
end_chunk(struct lmq_gather *gather, struct lmq_error *err)
{
    unsigned char unused[SIZE], *digest = gather->next;

    if (digest == NULL)
        return lmq_sha256_end(gather->chunk, unused, err);
    gather->next += SIZE;
    return lmq_sha256_end(gather->chunk, digest, err);
}

/* Leaves in their order. */
static enum lmq_status
take_leaves(struct lmq_gather *gather, const unsigned char *leaves, size_t n,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    lmq_sha256_update(gather->tensor, leaves, n * SIZE);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        lmq_sha256_update(gather->chunk, leaves + i * SIZE, SIZE);
        if (++gather->n_leaves % gather->chunk_leaves == 0)
            status = end_chunk(gather, err);
    }
    return status;
}

enum lmq_status
lmq_gather_add(struct lmq_gather *gather, const struct lmq_rectangle *piece,
               const unsigned char *leaves, struct lmq_error *err)
{
    size_t n = lmq_count_leaves(piece, gather->n_cols);

    if (!gather->is_across || piece->n_cols == gather->n_cols)
        return take_leaves(gather, leaves, n, err);
    size_t across = (size_t)lmq_u64_ceil_div(gather->n_cols, LEAF_COLS);
    for (size_t i = 0; i < piece->n_rows; i++)
        memcpy(gather->strip +
                   (i * across + (size_t)piece->column / LEAF_COLS) * SIZE,
               leaves + i * SIZE, SIZE);
    if (piece->column + piece->n_cols < gather->n_cols)
        return LMQ_OK;
    return take_leaves(gather, gather->strip, piece->n_rows * across, err);
}

/* A file ends, or the tensor: what is left over is a chunk too. */
enum lmq_status
lmq_gather_end_part(struct lmq_gather *gather, struct lmq_error *err)
{
    return gather->n_leaves % gather->chunk_leaves == 0
               ? LMQ_OK
               : end_chunk(gather, err);
}

enum lmq_status
lmq_gather_end(struct lmq_gather *gather, struct lmq_error *err)
{
    return lmq_sha256_end(gather->tensor, gather->whole, err);
}
