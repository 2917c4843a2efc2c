/*
 * verify_bytes.c - sections, tensors and the padding between them.
 *
 * Checksums, and that values and scales are legal.
 */
#include "config.h"

#include "formats/verify/verify_bytes.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/size.h"
#include "base/threads/tasks.h"

/* ---- Legal contents ---- */

/* Of 8 bits the byte that stands for -128, which no quantizer writes, is
 * illegal; of fewer bits none is. */
static bool
has_legal_values(const struct lmq_record *record, const void *bytes, size_t n)
{
    int illegal = record->layout == LMQ_LAYOUT_TILES ? 0 : 0x80;

    return record->quant.bits < LMQ_BITS_MAX ||
           memchr(bytes, illegal, n) == NULL;
}

/* Finite, and with 8 bits not negative; -0 is never right. `infinity` and
 * `sign` are those of the type. */
static bool
is_legal_scale(uint32_t scale, uint32_t infinity, uint32_t sign,
               unsigned bits)
{
    return scale < infinity || (bits < LMQ_BITS_MAX && scale > sign &&
                                scale < (sign | infinity));
}

static bool
has_legal_scales(const unsigned char *p, size_t n,
                 const struct lmq_quant *quant)
{
    bool is_legal = true;

    if (quant->scales == LMQ_SCALES_F16)
        for (size_t i = 0; i + 2 <= n; i += 2)
            is_legal &= is_legal_scale(lmq_load_u16le(p + i), 0x7c00, 0x8000,
                                       quant->bits);
    else
        for (size_t i = 0; i + 4 <= n; i += 4)
            is_legal &= is_legal_scale(lmq_load_u32le(p + i), 0x7f800000,
                                       0x80000000, quant->bits);
    return is_legal;
}

/* ---- Extents ---- */

enum content { CONTENT_ANY, CONTENT_VALUES, CONTENT_SCALES };

/* An extent on its way. */
struct reading {
    struct lmq_check *check;
    const struct lmq_extent *extent;
    enum content content;
    const struct lmq_record *record;
    struct {
        uint32_t crc;
        bool is_legal, is_filled;
    } found[LMQ_RANGES];
    uint32_t crc; /* of those that were merged */
    bool is_legal, is_filled;
};

/* Whether the range has nothing but zeros in places of its tiles that belong
 * to no element. */
static bool
is_filled_up(const struct reading *reading, const struct lmq_range *range,
             const unsigned char *bytes)
{
    const struct lmq_record *record = reading->record;

    if (reading->content == CONTENT_ANY || record->layout != LMQ_LAYOUT_TILES)
        return true;
    uint64_t n_cols = lmq_record_columns(record);
    return reading->content == CONTENT_VALUES
               ? lmq_tile_values_are_filled(bytes, range->n, range->at,
                                            record->n_rows, n_cols,
                                            &record->quant)
               : lmq_tile_scales_are_filled(bytes, range->n, range->at,
                                            record->n_rows, n_cols,
                                            record->quant.group_size,
                                            record->quant.scales);
}

/* Reads once: the checksum and the legality of numbers come from the same
 * bytes, which may not change between two looks. */
static enum lmq_status
check_range(void *context, const struct lmq_range *range, void *bytes,
            struct lmq_error *err)
{
    struct reading *reading = context;
    const struct lmq_record *record = reading->record;
    bool is_legal = true;
    enum lmq_status status =
        lmq_input_read(reading->check->input,
                       reading->extent->offset + range->at, bytes, range->n,
                       err);

    if (status != LMQ_OK)
        return status;
    if (reading->content == CONTENT_VALUES)
        is_legal = has_legal_values(record, bytes, range->n);
    if (reading->content == CONTENT_SCALES)
        is_legal = has_legal_scales(bytes, range->n, &record->quant);
    reading->found[range->slot].crc = lmq_crc32(0, bytes, range->n);
    reading->found[range->slot].is_legal = is_legal;
    reading->found[range->slot].is_filled =
        is_filled_up(reading, range, bytes);
    return LMQ_OK;
}

/* CRC-32s of ranges are joined by their lengths; so threads may read in any
 * order. */
static void
merge_range(void *context, const struct lmq_range *range)
{
    struct reading *reading = context;

    reading->crc = (uint32_t)crc32_combine(
        reading->crc, reading->found[range->slot].crc, (off_t)range->n);
    reading->is_legal &= reading->found[range->slot].is_legal;
    reading->is_filled &= reading->found[range->slot].is_filled;
}

/* One problem for each extent: after a wrong checksum, what else is wrong with
 * the bytes says nothing. */
static enum lmq_status
check_extent(struct lmq_check *check, const struct lmq_extent *extent,
             enum content content, const struct lmq_record *record,
             const char *section, const char *name, struct lmq_error *err)
{
    struct reading reading = {.check = check, .extent = extent,
                              .content = content, .record = record,
                              .is_legal = true, .is_filled = true};
    const struct lmq_ranges ranges = {
        .whole = extent->size,
        .chunk = LMQ_CHECK_CHUNK,
        .context = &reading,
        .piece = check_range,
        .merge = merge_range,
        .counter = &check->counter,
    };
    enum lmq_status status = lmq_tasks_over(&ranges, &check->workers, err);

    if (status != LMQ_OK)
        return status;
    if (reading.crc != extent->crc)
        lmq_check_add(check, section, name, extent->offset,
                      "the CRC-32 does not match");
    else if (!reading.is_legal)
        lmq_check_add(check, section, name, extent->offset,
                      content == CONTENT_VALUES
                          ? "holds the illegal value -128"
                          : "holds a scale that is not finite, or negative");
    else if (!reading.is_filled)
        lmq_check_add(check, section, name, extent->offset,
                      "the padding of its tiles is not zeros");
    return LMQ_OK;
}

/* ---- Padding ---- */

/* Zeros between `from` and `to`. */
static enum lmq_status
check_gap(struct lmq_check *check, uint64_t from, uint64_t to,
          struct lmq_error *err)
{
    unsigned char bytes[4096];
    enum lmq_status status = LMQ_OK;

    for (; from < to && status == LMQ_OK; from += sizeof(bytes)) {
        size_t n = (size_t)lmq_u64_min(sizeof(bytes), to - from), i = 0;
        status = lmq_input_read(check->input, from, bytes, n, err);
        while (status == LMQ_OK && i < n && bytes[i] == 0)
            i++;
        if (status == LMQ_OK && i < n) {
            lmq_check_add(check, "padding", "", from + i,
                          "padding is not zero");
            break;
        }
    }
    return status;
}

enum lmq_status
lmq_check_padding(struct lmq_check *check, struct lmq_error *err)
{
    struct lmq_file_span *spans;
    size_t n = 0;
    enum lmq_status status =
        lmq_container_spans(&check->container, &spans, &n, err);

    for (size_t i = 1; i < n && status == LMQ_OK; i++)
        status = check_gap(
            check, spans[i - 1].extent.offset + spans[i - 1].extent.size,
            spans[i].extent.offset, err);
    free(spans);
    return status;
}

/* Those that are known were inflated when the container was opened, or will
 * be. */
static enum lmq_status
check_inflated(struct lmq_check *check, const struct lmq_section *section,
               struct lmq_error *err)
{
    struct lmq_error found;
    unsigned char *bytes;
    size_t n, n_problems = json_array_size(check->problems);

    enum lmq_status status = check_extent(check, &section->stored, CONTENT_ANY,
                                          NULL, "unknown", section->name, err);
    if (status != LMQ_OK || !(section->flags & LMQ_SECTION_DEFLATED) ||
        json_array_size(check->problems) > n_problems)
        return status;
    status = lmq_section_read(check->input, section, &bytes, &n, &found);
    free(bytes);
    if (status == LMQ_ERR_FORMAT) {
        lmq_check_add(check, "unknown", section->name, section->stored.offset,
                      found.message);
        return LMQ_OK;
    }
    return status == LMQ_OK ? LMQ_OK : lmq_fail_as(err, &found);
}

enum lmq_status
lmq_check_sections(struct lmq_check *check, struct lmq_error *err)
{
    static const char *const names[LMQ_SECTION_KNOWN_END] = {
        "", "metadata", "directory", "file", "statistics", "digests"};
    const struct lmq_container *container = &check->container;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_sections && status == LMQ_OK; i++) {
        const struct lmq_section *section = &container->sections[i];
        status = section->type < LMQ_SECTION_KNOWN_END
                     ? check_extent(check, &section->stored, CONTENT_ANY, NULL,
                                    names[section->type], section->name, err)
                     : check_inflated(check, section, err);
    }
    return status;
}

enum lmq_status
lmq_check_tensor(struct lmq_check *check, const struct lmq_record *record,
                 struct lmq_error *err)
{
    static const struct {
        const char *name;
        enum content content;
    } parts[LMQ_N_EXTENTS] = {
        [LMQ_VALUES] = {"values", CONTENT_VALUES},
        [LMQ_SCALES] = {"scales", CONTENT_SCALES},
        [LMQ_ZEROS] = {"zero points", CONTENT_ANY},
        [LMQ_SUPERS] = {"scales of scales", CONTENT_ANY},
    };
    bool is_q8 = record->encoding == LMQ_ENCODING_Q8;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < LMQ_N_EXTENTS && status == LMQ_OK; i++)
        if (record->extents[i].size > 0)
            status = check_extent(
                check, &record->extents[i],
                is_q8 ? parts[i].content : CONTENT_ANY, record,
                record->encoding == LMQ_ENCODING_PLAIN ? "tensor"
                                                       : parts[i].name,
                record->name, err);
    return status;
}
