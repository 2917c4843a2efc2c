/*
 * bnb.c - bitsandbytes: 4 bits with a table of what they mean, and 8 bits.
 *
 *     NAME.weight              (bytes, 1)  two codes each, the upper one first,
 *                                          of all elements row after row
 *     NAME.weight.absmax       of blocks of these, float32; or codes of 8 bits,
 *     NAME.weight.quant_map    (16) what a code means
 *     NAME.weight.nested_absmax, .nested_quant_map (256): then the same again
 *     NAME.weight.quant_state.bitsandbytes__nf4 (or __fp4): JSON
 *
 * An element is map[code] * absmax, rounded to the type that the JSON names,
 * as dequantize_4bit() does it. Blocks run over the ends of rows. (Its kernel
 * for CPUs takes others where a row is no multiple of a block, and is far off
 * what was packed; all others do it like this.)
 *
 *     NAME.weight (out, in)  int8, with NAME.SCB (out), float32
 *
 * is code * SCB / 127, the division by a product with 1/127 as
 * int8_vectorwise_dequant() makes it. Columns whose activations stand out are
 * computed otherwise by the library; their weights are the same.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "formats/packed/schemes.h"

#define N_LEVELS 16
#define N_NESTED 256
#define MAX_STATE 4096 /* bytes of JSON */

/* Elements that are read at a time, and the smallest block. */
#define STEP ((size_t)1 << 16)
#define MIN_BLOCK 32
#define MAX_SCALES (STEP / MIN_BLOCK + 2)

struct bnb {
    struct lmq_packing packing; /* first: what others know of it */
    struct lmq_grid scales;     /* (1, blocks): absmax */
    struct lmq_grid nested;     /* (1, blocks of blocks), if is_nested */
    uint32_t file;
    uint64_t offset; /* of the codes */
    uint64_t block, nested_block;
    float levels[N_LEVELS], nested_levels[N_NESTED];
    float nested_offset;
    enum lmq_dtype rounding;
    bool is_nested;
};

/* ---- Elements ---- */

/* In one piece of memory. */
struct room {
    float scales[MAX_SCALES], nested[MAX_SCALES];
    unsigned char raw[MAX_SCALES * sizeof(float)];
    unsigned char codes[STEP / 2 + 1];
};

/* Scales of blocks [first, first + n). */
static enum lmq_status
read_scales(struct lmq_checkpoint *checkpoint, const struct bnb *bnb,
            uint64_t first, size_t n, struct room *room, struct lmq_error *err)
{
    const struct lmq_area area = {0, first, 1, n};
    enum lmq_status status = lmq_grid_read(checkpoint, &bnb->scales, &area,
                                           room->raw, room->scales, err);

    if (status != LMQ_OK || !bnb->is_nested)
        return status;
    uint64_t outer = first / bnb->nested_block;
    const struct lmq_area outer_area = {
        0, outer, 1,
        (size_t)((first + n - 1) / bnb->nested_block - outer) + 1};
    status = lmq_grid_read(checkpoint, &bnb->nested, &outer_area, room->raw,
                           room->nested, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        size_t at = (size_t)((first + i) / bnb->nested_block - outer);
        room->scales[i] =
            bnb->nested_levels[(unsigned char)room->scales[i]] *
                room->nested[at] +
            bnb->nested_offset;
    }
    return status;
}

/* Elements [first, first + n), n at most STEP, counted over all rows. */
static enum lmq_status
read_run(struct lmq_checkpoint *checkpoint, const struct bnb *bnb,
         uint64_t first, size_t n, float *values, struct room *room,
         struct lmq_error *err)
{
    uint64_t block = first / bnb->block;
    enum lmq_status status = lmq_input_read(
        checkpoint->files[bnb->file], bnb->offset + first / 2, room->codes,
        (size_t)((first + n + 1) / 2 - first / 2), err);

    if (status == LMQ_OK)
        status = read_scales(checkpoint, bnb, block,
                             (size_t)((first + n - 1) / bnb->block - block) +
                                 1,
                             room, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        uint64_t at = first + i;
        unsigned pair = room->codes[at / 2 - first / 2];
        unsigned code = at % 2 == 0 ? pair >> 4 : pair & 15;
        values[i] = lmq_dtype_round(
            bnb->rounding,
            bnb->levels[code] * room->scales[at / bnb->block - block]);
    }
    return status;
}

static enum lmq_status
read_area(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          const struct lmq_area *area, float *values,
          struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct bnb *bnb = (const struct bnb *)(const void *)tensor->packing;
    enum lmq_status status =
        lmq_scratch_reserve(scratch, sizeof(struct room), err);
    struct room *room = (struct room *)(void *)scratch->bytes;

    for (size_t r = 0; r < area->n_rows && status == LMQ_OK; r++) {
        uint64_t first = (area->row + r) * bnb->packing.n_cols + area->column;
        for (size_t c = 0, n; c < area->n_cols && status == LMQ_OK; c += n) {
            n = lmq_size_min(area->n_cols - c, STEP);
            status = read_run(checkpoint, bnb, first + c, n,
                              values + r * area->n_cols + c, room, err);
        }
    }
    return status;
}

/* ---- What the JSON says ---- */

struct state {
    uint64_t block, nested_block;
    double nested_offset;
    enum lmq_dtype dtype;
    uint64_t dims[LMQ_MAX_DIMS];
    size_t n_dims;
};

static enum lmq_status
fail_state(const struct lmq_tensor *state, const char *what,
           struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, state->offset, "'%s': %s",
                    state->stored_name, what);
}

static enum lmq_status
load_json(const struct lmq_packer *packer, const struct lmq_tensor *state,
          json_t **json, struct lmq_error *err)
{
    unsigned char text[MAX_STATE];
    json_error_t problem;

    if (state->dtype != LMQ_DTYPE_U8 || state->n_elements > MAX_STATE)
        return fail_state(state, "is no short text", err);
    enum lmq_status status =
        lmq_input_read(packer->checkpoint->files[state->file], state->offset,
                       text, (size_t)state->n_elements, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_json_read(text, (size_t)state->n_elements,
                           JSON_REJECT_DUPLICATES, json, &problem, err);
    if (status == LMQ_ERR_FORMAT)
        return fail_state(state, problem.text, err);
    if (status == LMQ_OK && !json_is_object(*json)) {
        json_decref(*json);
        return fail_state(state, "is no JSON object", err);
    }
    return status;
}

static bool
take_type(const char *name, enum lmq_dtype *dtype)
{
    static const struct {
        const char *name;
        enum lmq_dtype dtype;
    } types[] = {{"float32", LMQ_DTYPE_F32},
                 {"float16", LMQ_DTYPE_F16},
                 {"bfloat16", LMQ_DTYPE_BF16}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && name; i++)
        if (strcmp(types[i].name, name) == 0) {
            *dtype = types[i].dtype;
            return true;
        }
    return false;
}

/* A power of two, as all that it writes. */
static bool
take_block(const json_t *json, const char *key, uint64_t *block)
{
    json_int_t n = json_integer_value(json_object_get(json, key));

    *block = (uint64_t)n;
    return n >= MIN_BLOCK && n <= (1 << 16) && (n & (n - 1)) == 0;
}

static bool
take_shape(const json_t *json, struct state *state)
{
    const json_t *shape = json_object_get(json, "shape");

    state->n_dims = json_array_size(shape);
    if (state->n_dims == 0 || state->n_dims > LMQ_MAX_DIMS)
        return false;
    for (size_t i = 0; i < state->n_dims; i++) {
        json_int_t n = json_integer_value(json_array_get(shape, i));
        if (n <= 0)
            return false;
        state->dims[i] = (uint64_t)n;
    }
    return true;
}

/* What is not known is refused, which is no error here. */
static enum lmq_status
take_state(struct lmq_packer *packer, const struct lmq_tensor *tensor,
           bool is_nested, struct state *state, struct lmq_error *err)
{
    json_t *json;
    enum lmq_status status = load_json(packer, tensor, &json, err);

    if (status != LMQ_OK)
        return status;
    const char *type = json_string_value(json_object_get(json, "dtype"));
    const char *nested =
        json_string_value(json_object_get(json, "nested_dtype"));
    if (!take_type(type, &state->dtype))
        lmq_packer_refuse(packer, "dtype %.24s", type == NULL ? "" : type);
    else if (!take_block(json, "blocksize", &state->block))
        lmq_packer_refuse(packer, "blocksize %" PRId64,
                          (int64_t)state->block);
    else if (is_nested && (nested == NULL || strcmp(nested, "float32") != 0))
        lmq_packer_refuse(packer, "nested_dtype %.24s",
                          nested == NULL ? "" : nested);
    else if (is_nested &&
             !take_block(json, "nested_blocksize", &state->nested_block))
        lmq_packer_refuse(packer, "nested_blocksize %" PRId64,
                          (int64_t)state->nested_block);
    else if (!take_shape(json, state))
        status = fail_state(tensor, "has no shape", err);
    state->nested_offset =
        json_number_value(json_object_get(json, "nested_offset"));
    json_decref(json);
    return status;
}

/* ---- A matrix of 4 bits ---- */

struct parts {
    struct lmq_tensor *codes, *absmax, *map, *state, *nested, *nested_map;
};

/* n of this type, in one dimension. */
static enum lmq_status
check_part(const struct lmq_tensor *part, enum lmq_dtype dtype, uint64_t n,
           struct lmq_error *err)
{
    if (part->dtype != dtype)
        return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                        "'%s' is of type %s, expected %s", part->stored_name,
                        lmq_dtype_name(part->dtype), lmq_dtype_name(dtype));
    return lmq_packer_check_shape(part, 0, n, err);
}

static enum lmq_status
read_levels(const struct lmq_packer *packer, const struct lmq_tensor *part,
            size_t n, float *levels, struct lmq_error *err)
{
    unsigned char bytes[N_NESTED * 4];
    enum lmq_status status = check_part(part, LMQ_DTYPE_F32, n, err);

    if (status == LMQ_OK)
        status = lmq_input_read(packer->checkpoint->files[part->file],
                                part->offset, bytes, 4 * n, err);
    if (status == LMQ_OK)
        lmq_dtype_to_f32(LMQ_DTYPE_F32, bytes, levels, n);
    return status;
}

/* Two codes in a byte, whatever type the bytes are said to be. */
static enum lmq_status
check_codes(const struct parts *p, const struct state *state,
            uint64_t *n_blocks, struct lmq_error *err)
{
    struct lmq_tensor shape = {0};
    uint64_t size = lmq_dtype_size(p->codes->dtype);

    if (!lmq_tensor_set_dims(&shape, state->dims, state->n_dims) ||
        lmq_u64_ceil_div(lmq_u64_ceil_div(shape.n_elements, 2), size) !=
            p->codes->n_elements)
        return lmq_fail(err, LMQ_ERR_FORMAT, p->codes->offset,
                        "'%s' has %" PRIu64 " bytes, but '%s' speaks of %"
                        PRIu64 " elements",
                        p->codes->stored_name, p->codes->size_bytes,
                        p->state->stored_name, shape.n_elements);
    *n_blocks = lmq_u64_ceil_div(shape.n_elements, state->block);
    return LMQ_OK;
}

static enum lmq_status
describe(struct lmq_packer *packer, const struct parts *p,
         const struct state *state, struct bnb *bnb, struct lmq_error *err)
{
    uint64_t n_blocks = 0;
    enum lmq_status status = check_codes(p, state, &n_blocks, err);

    if (status == LMQ_OK)
        status = check_part(p->absmax,
                            p->nested == NULL ? LMQ_DTYPE_F32 : LMQ_DTYPE_U8,
                            n_blocks, err);
    if (status == LMQ_OK)
        status = read_levels(packer, p->map, N_LEVELS, bnb->levels, err);
    bnb->scales = lmq_packer_grid(p->absmax);
    bnb->file = p->codes->file;
    bnb->offset = p->codes->offset;
    bnb->block = state->block;
    bnb->rounding = state->dtype;
    bnb->is_nested = p->nested != NULL;
    if (status != LMQ_OK || !bnb->is_nested)
        return status;
    bnb->nested = lmq_packer_grid(p->nested);
    bnb->nested_block = state->nested_block;
    bnb->nested_offset = (float)state->nested_offset;
    status = check_part(p->nested, LMQ_DTYPE_F32,
                        lmq_u64_ceil_div(n_blocks, state->nested_block), err);
    return status == LMQ_OK ? read_levels(packer, p->nested_map, N_NESTED,
                                          bnb->nested_levels, err)
                            : status;
}

static enum lmq_status
join(struct lmq_packer *packer, const struct parts *p,
     const struct state *state, const char *kind, struct lmq_error *err)
{
    struct lmq_tensor *const parts[] = {p->absmax, p->map, p->state, p->nested,
                                        p->nested_map};
    struct bnb *bnb = calloc(1, sizeof(*bnb));

    if (bnb == NULL)
        return lmq_fail_nomem(err);
    snprintf(bnb->packing.name, sizeof(bnb->packing.name), "%s", kind);
    bnb->packing.is_upright = true;
    bnb->packing.read = read_area;
    enum lmq_status status = describe(packer, p, state, bnb, err);
    if (status != LMQ_OK) {
        free(bnb);
        return status;
    }
    lmq_packer_found(packer,
                     "matrices of bitsandbytes, %s, blocks of %" PRIu64 "%s",
                     kind, state->block,
                     p->nested != NULL ? ", nested" : "");
    return lmq_packer_join(packer, p->codes, "", "", &bnb->packing,
                           state->dims, state->n_dims, parts, 5, err);
}

static enum lmq_status
find_parts(const struct lmq_packer *packer, struct lmq_tensor *tensor,
           const char *ending, struct parts *p, struct lmq_error *err)
{
    const struct {
        const char *ending;
        struct lmq_tensor **part;
    } needed[] = {
        {"", &p->codes},
        {".absmax", &p->absmax},
        {".quant_map", &p->map},
        {".nested_quant_map", &p->nested_map},
    };
    enum lmq_status status = LMQ_OK;

    p->state = tensor;
    p->nested =
        lmq_packer_sibling(packer, tensor, ending, ".nested_absmax");
    for (size_t i = 0; i < (p->nested == NULL ? 3 : 4) && status == LMQ_OK;
         i++)
        status = lmq_packer_need(packer, tensor, ending, needed[i].ending,
                                 needed[i].part, err);
    return status;
}

/* Asked about the JSON. */
enum lmq_status
lmq_bnb4_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
              struct lmq_error *err)
{
    static const char start[] = ".quant_state.bitsandbytes__";
    const char *kind = tensor->stored_name + strlen(tensor->stored_name) - 3;
    struct state state = {0};
    struct parts p = {0};
    char ending[sizeof(start) + 3];

    snprintf(ending, sizeof(ending), "%s%s", start, kind);
    enum lmq_status status = find_parts(packer, tensor, ending, &p, err);
    if (status == LMQ_OK)
        status = take_state(packer, tensor, p.nested != NULL, &state, err);
    if (status != LMQ_OK || packer->refused[0] != '\0')
        return status;
    return join(packer, &p, &state, kind, err);
}

/* ---- A matrix of 8 bits ---- */

/* Rows as they are; others were for some GPUs. */
static enum lmq_status
check_format(struct lmq_packer *packer, const struct lmq_tensor *format,
             struct lmq_error *err)
{
    unsigned char number = 0;
    enum lmq_status status = LMQ_OK;

    if (format != NULL && format->dtype == LMQ_DTYPE_U8)
        status = lmq_input_read(packer->checkpoint->files[format->file],
                                format->offset, &number, 1, err);
    if (number != 0 || (format != NULL && (format->dtype != LMQ_DTYPE_U8 ||
                                           format->n_elements != 1)))
        lmq_packer_refuse(packer, "weight_format %u", (unsigned)number);
    return status;
}

static enum lmq_status
join8(struct lmq_packer *packer, struct lmq_tensor *codes,
      struct lmq_tensor *scales, struct lmq_tensor *format,
      struct lmq_error *err)
{
    struct lmq_tensor *const parts[] = {scales, format};

    if (codes->n_dims != 2 || codes->dtype != LMQ_DTYPE_I8 ||
        scales->dtype != LMQ_DTYPE_F32 ||
        scales->n_elements != codes->dims[0])
        return lmq_fail(err, LMQ_ERR_FORMAT, scales->offset,
                        "'%s' has %" PRIu64 " numbers of %s, expected f32 for "
                        "each row of i8 in '%s'",
                        scales->stored_name, scales->n_elements,
                        lmq_dtype_name(scales->dtype), codes->stored_name);
    struct lmq_affine *affine = lmq_affine_new("bnb8");
    if (affine == NULL)
        return lmq_fail_nomem(err);
    affine->packing.is_upright = true;
    affine->codes = lmq_packer_grid(codes);
    affine->scales = lmq_packer_grid(scales);
    affine->scales.n_words = 1;
    affine->block_rows = 1;
    affine->block_cols = LMQ_BLOCK_ALL;
    affine->n_groups = 1;
    affine->factor = (float)(1.0 / 127);
    lmq_packer_found(packer, "matrices of bitsandbytes, 8 bits");
    return lmq_affine_join(packer, codes, "", "", affine, codes->dims, 2,
                           parts, 2, err);
}

/* Asked about the scales. */
enum lmq_status
lmq_bnb8_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
              struct lmq_error *err)
{
    struct lmq_tensor *codes, *format =
        lmq_packer_sibling(packer, tensor, ".SCB", ".weight_format");
    enum lmq_status status =
        lmq_packer_need(packer, tensor, ".SCB", ".weight", &codes, err);

    if (status == LMQ_OK)
        status = check_format(packer, format, err);
    if (status != LMQ_OK || packer->refused[0] != '\0')
        return status;
    return join8(packer, codes, tensor, format, err);
}
