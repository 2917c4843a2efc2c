/*
 * hqq.c - HQQ: codes of 1, 2, 3, 4 or 8 bits, as its own library and
 * transformers write them to safetensors.
 *
 *     NAME.W_q          words: bytes, or of 3 bits 32-bit words
 *     NAME.scale, zero  of each group
 *     NAME.nbits, group_size, axis, shape, packing, ...  what they say
 *
 * The matrix, row after row, is cut into groups: runs (axis 1), or what stands
 * group_size rows apart when it is folded to so many rows (axis 0). Either is
 * a table of codes; as many parts of the table as codes fit into a word lie
 * one over the other in the words, the first one highest.
 *
 * The library computes (code - zero) * scale in the type of the scales, where
 * both steps round. The difference is rounded to that type here too, the
 * product is left as it is: rounded to that type, it is the library's.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "formats/packed/schemes.h"

#define ENDING ".W_q"
/* Codes that are taken at a time. */
#define STEP ((uint64_t)1 << 16)

struct hqq {
    struct lmq_packing packing; /* first: what others know of it */
    uint32_t file;
    uint64_t offset;         /* of the words */
    unsigned bits, n_parts;  /* of a code; codes in a word */
    size_t word_size;
    uint64_t n_words;
    uint64_t n_columns;      /* of the table of codes */
    bool is_by_column;       /* columns of it are the groups, not rows */
    struct lmq_grid scales, zeros; /* (1, groups) */
    uint64_t n_groups;
    enum lmq_dtype dtype;    /* in which differences are rounded */
};

/* ---- Elements ---- */

static float
round_to(enum lmq_dtype type, float x)
{
    return type == LMQ_DTYPE_F16    ? lmq_f16_to_f32(lmq_f32_to_f16(x))
           : type == LMQ_DTYPE_BF16 ? lmq_bf16_to_f32(lmq_f32_to_bf16(x))
                                    : x;
}

/* Codes from `first` on that stand in one part of the words, and in groups
 * that follow each other. */
static size_t
run_from(const struct hqq *hqq, uint64_t first, size_t n)
{
    uint64_t left = hqq->n_words - first % hqq->n_words;

    if (hqq->is_by_column)
        left = lmq_u64_min(left, hqq->n_columns - first % hqq->n_columns);
    return (size_t)lmq_u64_min(lmq_u64_min(left, STEP), n);
}

static uint64_t
group_of(const struct hqq *hqq, uint64_t code)
{
    if (hqq->n_groups == 1)
        return 0;
    return hqq->is_by_column ? code % hqq->n_columns : code / hqq->n_columns;
}

static void
decode(const struct hqq *hqq, uint64_t first, size_t n,
       const unsigned char *words, const float *scales, const float *zeros,
       float *values)
{
    unsigned part = (unsigned)(first / hqq->n_words);
    unsigned shift = (hqq->n_parts - 1 - part) * hqq->bits;
    uint32_t mask = (1u << hqq->bits) - 1;
    uint64_t first_group = group_of(hqq, first);

    for (size_t i = 0; i < n; i++) {
        uint32_t word = hqq->word_size == 1 ? words[i]
                                            : lmq_load_u32le(words + 4 * i);
        size_t group = (size_t)(group_of(hqq, first + i) - first_group);
        float code = (float)(word >> shift & mask);
        values[i] =
            round_to(hqq->dtype, code - zeros[group]) * scales[group];
    }
}

/* Codes [first, first + n), which are a run. */
static enum lmq_status
read_run(struct lmq_checkpoint *checkpoint, const struct hqq *hqq,
         uint64_t first, size_t n, float *values, struct lmq_scratch *scratch,
         struct lmq_error *err)
{
    uint64_t group = group_of(hqq, first);
    struct lmq_area area = {
        0, group, 1, (size_t)(group_of(hqq, first + n - 1) - group) + 1};
    size_t n_floats = 2 * area.n_cols * sizeof(float);
    size_t room = n * hqq->word_size;
    enum lmq_status status;

    if (room < 8 * area.n_cols)
        room = 8 * area.n_cols; /* of scales as they are stored */
    status = lmq_scratch_reserve(scratch, n_floats + room, err);
    if (status != LMQ_OK)
        return status;
    float *scales = (float *)(void *)scratch->bytes;
    float *zeros = scales + area.n_cols;
    unsigned char *raw = scratch->bytes + n_floats;
    status = lmq_grid_read(checkpoint, &hqq->scales, &area, raw, scales, err);
    if (status == LMQ_OK)
        status = lmq_grid_read(checkpoint, &hqq->zeros, &area, raw, zeros,
                               err);
    if (status == LMQ_OK)
        status = lmq_input_read(
            checkpoint->files[hqq->file],
            hqq->offset + first % hqq->n_words * hqq->word_size, raw,
            n * hqq->word_size, err);
    if (status == LMQ_OK)
        decode(hqq, first, n, raw, scales, zeros, values);
    return status;
}

static enum lmq_status
read_area(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          const struct lmq_area *area, float *values,
          struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct hqq *hqq = (const struct hqq *)(const void *)tensor->packing;
    enum lmq_status status = LMQ_OK;

    for (size_t r = 0; r < area->n_rows; r++) {
        uint64_t first =
            (area->row + r) * hqq->packing.n_cols + area->column;
        for (size_t n = area->n_cols, step; n > 0; n -= step) {
            step = run_from(hqq, first, n);
            status = read_run(checkpoint, hqq, first, step, values, scratch,
                              err);
            if (status != LMQ_OK)
                return status;
            first += step;
            values += step;
        }
    }
    return LMQ_OK;
}

/* ---- What stands beside the codes ---- */

/* Each is a tensor of its own; those without a place are of no use here. */
enum { SCALE, ZERO, NBITS, SHAPE, AXIS, GROUP, PACKING, VIEW, QUANT_SCALE,
       QUANT_ZERO };

static const char *const endings[] = {
    [SCALE] = ".scale",
    [ZERO] = ".zero",
    [NBITS] = ".nbits",
    [SHAPE] = ".shape",
    [AXIS] = ".axis",
    [GROUP] = ".group_size",
    [PACKING] = ".packing",
    [VIEW] = ".view_as_float",
    [QUANT_SCALE] = ".quant_scale",
    [QUANT_ZERO] = ".quant_zero",
    ".unpack_view_dtype",
    ".compute_dtype",
    ".offload_meta",
    ".encoded_state_dict",
    ".stores_quant_config",
    ".channel_wise",
    ".optimize",
    ".round_zero",
};

#define N_ENDINGS (sizeof(endings) / sizeof(endings[0]))

struct said {
    struct lmq_tensor *parts[N_ENDINGS];
    float nbits, axis, group, quant_scale, quant_zero;
    float shape[2];
};

/* One number, 0 where there is none. */
static enum lmq_status
read_said(const struct lmq_packer *packer, const struct said *said, size_t i,
          float *value, struct lmq_error *err)
{
    return said->parts[i] == NULL
               ? LMQ_OK
               : lmq_packer_read(packer, said->parts[i], value, 1, err);
}

static enum lmq_status
read_all(const struct lmq_packer *packer, const struct lmq_tensor *tensor,
         struct said *said, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < N_ENDINGS && status == LMQ_OK; i++) {
        if (i <= AXIS)
            status = lmq_packer_need(packer, tensor, ENDING, endings[i],
                                     &said->parts[i], err);
        else
            said->parts[i] =
                lmq_packer_sibling(packer, tensor, ENDING, endings[i]);
    }
    if (status == LMQ_OK)
        status = read_said(packer, said, NBITS, &said->nbits, err);
    if (status == LMQ_OK)
        status = read_said(packer, said, AXIS, &said->axis, err);
    if (status == LMQ_OK)
        status = read_said(packer, said, GROUP, &said->group, err);
    if (status == LMQ_OK)
        status = read_said(packer, said, QUANT_SCALE, &said->quant_scale, err);
    if (status == LMQ_OK)
        status = read_said(packer, said, QUANT_ZERO, &said->quant_zero, err);
    return status == LMQ_OK
               ? lmq_packer_read(packer, said->parts[SHAPE], said->shape, 2,
                                 err)
               : status;
}

/* How many bits the words are made for; codes may have fewer. */
static unsigned
bits_of(float nbits)
{
    static const struct {
        float nbits;
        unsigned bits;
    } known[] = {{1, 1}, {1.58f, 2}, {2, 2}, {3, 3},
                 {4, 4}, {5, 8},     {6, 8}, {8, 8}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (nbits >= known[i].nbits && nbits <= known[i].nbits)
            return known[i].bits;
    return 0;
}

static bool
is_supported(struct lmq_packer *packer, const struct said *said)
{
    if (bits_of(said->nbits) == 0)
        lmq_packer_refuse(packer, "nbits %g", (double)said->nbits);
    else if (said->quant_scale > 0 || said->quant_zero > 0)
        lmq_packer_refuse(packer, "scales or zeros that are packed too");
    else if (said->parts[PACKING] == NULL)
        lmq_packer_refuse(packer, "codes that are not packed");
    return packer->refused[0] == '\0';
}

/* ---- One matrix ---- */

static bool
is_size(float x)
{
    return x >= 1 && x <= LMQ_MAX_WIDTH;
}

/* The table of codes and its words, from what is said. */
static bool
lay_out(const struct said *said, struct hqq *hqq)
{
    uint64_t rows, cols, n, lines, group, step;

    if (!is_size(said->shape[0]) || !is_size(said->shape[1]) ||
        !((said->axis >= 0 && said->axis <= 0) ||
          (said->axis >= 1 && said->axis <= 1)) ||
        (said->parts[GROUP] != NULL && !is_size(said->group)))
        return false;
    rows = (uint64_t)said->shape[0];
    cols = (uint64_t)said->shape[1];
    n = rows * cols;
    hqq->is_by_column = said->axis < 1;
    group = said->parts[GROUP] != NULL ? (uint64_t)said->group
            : hqq->is_by_column        ? rows
                                       : cols;
    hqq->bits = bits_of(said->nbits);
    hqq->n_parts = hqq->bits == 3 ? 10 : 8 / hqq->bits;
    hqq->word_size = hqq->bits == 3 ? 4 : 1;
    hqq->n_columns = hqq->is_by_column ? n / group : group;
    lines = hqq->is_by_column ? group : n / group;
    step = lmq_u64_ceil_div(lines, hqq->n_parts);
    hqq->n_words = step * hqq->n_columns;
    hqq->n_groups = hqq->is_by_column ? hqq->n_columns : lines;
    return n % group == 0 && (hqq->bits == 3 || lines % hqq->n_parts == 0);
}

/* Scales of all, or one for all. */
static enum lmq_status
check_sizes(const struct lmq_tensor *tensor, const struct said *said,
            struct hqq *hqq, struct lmq_error *err)
{
    const struct lmq_tensor *scale = said->parts[SCALE];
    const struct lmq_tensor *zero = said->parts[ZERO];
    enum lmq_status status = lmq_packer_check_floats(scale, err);

    if (status == LMQ_OK)
        status = lmq_packer_check_type(zero, scale->dtype, err);
    if (status != LMQ_OK)
        return status;
    if (scale->n_elements == 1)
        hqq->n_groups = 1;
    if (tensor->size_bytes == hqq->n_words * hqq->word_size &&
        scale->n_elements == hqq->n_groups &&
        zero->n_elements == hqq->n_groups)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                    "'%s' has %" PRIu64 " bytes, %" PRIu64 " scales and "
                    "%" PRIu64 " zero points, expected %" PRIu64
                    ", and %" PRIu64 " of both",
                    tensor->stored_name, tensor->size_bytes,
                    scale->n_elements, zero->n_elements,
                    hqq->n_words * hqq->word_size, hqq->n_groups);
}

static struct lmq_grid
list_of(const struct lmq_tensor *part)
{
    struct lmq_grid grid = lmq_packer_grid(part);

    grid.n_words = part->n_elements;
    return grid;
}

static enum lmq_status
describe(const struct lmq_tensor *tensor, const struct said *said,
         struct hqq *hqq, struct lmq_error *err)
{
    enum lmq_status status;

    if (!lay_out(said, hqq))
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "'%s' is said to be %g x %g in groups of %g along "
                        "axis %g, which cannot be",
                        tensor->stored_name, (double)said->shape[0],
                        (double)said->shape[1], (double)said->group,
                        (double)said->axis);
    status = check_sizes(tensor, said, hqq, err);
    if (status != LMQ_OK)
        return status;
    snprintf(hqq->packing.name, sizeof(hqq->packing.name), "hqq%u",
             hqq->bits);
    hqq->packing.is_upright = true;
    hqq->packing.read = read_area;
    hqq->file = tensor->file;
    hqq->offset = tensor->offset;
    hqq->scales = list_of(said->parts[SCALE]);
    hqq->zeros = list_of(said->parts[ZERO]);
    hqq->dtype = said->parts[SCALE]->dtype;
    return LMQ_OK;
}

static enum lmq_status
join(struct lmq_packer *packer, struct lmq_tensor *tensor,
     const struct said *said, struct lmq_error *err)
{
    struct hqq *hqq = calloc(1, sizeof(*hqq));

    if (hqq == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = describe(tensor, said, hqq, err);
    if (status != LMQ_OK) {
        free(hqq);
        return status;
    }
    const uint64_t dims[2] = {(uint64_t)said->shape[0],
                              (uint64_t)said->shape[1]};
    lmq_packer_found(packer, "matrices of HQQ, %u bits, groups of %.0f along "
                             "axis %.0f",
                     hqq->bits, (double)said->group, (double)said->axis);
    return lmq_packer_join(packer, tensor, ENDING, ".weight", &hqq->packing,
                           dims, 2, said->parts, N_ENDINGS, err);
}

enum lmq_status
lmq_hqq_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    static const char *const packed[] = {".scale_q", ".zero_q", ".zero_scale"};
    struct said said = {0};

    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
        if (lmq_packer_sibling(packer, tensor, ENDING, packed[i]) != NULL)
            lmq_packer_refuse(packer, "scales or zeros that are packed too");
    if (lmq_packer_sibling(packer, tensor, ENDING, ".meta.scale2") != NULL)
        lmq_packer_refuse(packer, "scales along both axes, as SINQ has them");
    if (packer->refused[0] != '\0')
        return LMQ_OK;
    enum lmq_status status = read_all(packer, tensor, &said, err);
    if (status != LMQ_OK || !is_supported(packer, &said))
        return status;
    return join(packer, tensor, &said, err);
}
