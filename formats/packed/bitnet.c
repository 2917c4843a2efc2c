/*
 * bitnet.c - BitNet b1.58: matrices of -1, 0 and 1 with one scale, packed or
 * as they are trained.
 *
 *     NAME.weight        (out / 4, in) bytes: rows r, r + out / 4, ..., two
 *                        bits each from the lowest up, of a number plus 1
 *     NAME.weight_scale  (1)
 *
 * By config.json the numbers are multiplied by the scale (linear_class
 * autobitlinear), or divided by it (bitlinear, which is meant where nothing is
 * said). With quantization_mode online NAME.weight are floats (out, in), and
 * the model computes with
 *
 *     round(w * s) limited to -1 .. 1, divided by s = 1 / mean of |w|
 *
 * of the whole matrix, rounded to the type of w. The library takes the mean
 * as its own sums round it, here it is a sum of doubles: a w at half of the
 * mean may become another number.
 *
 * What these matrices are multiplied with the library rounds to 8 bits, by the
 * largest number of a token. That belongs to whoever multiplies, not here.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "base/text/ends.h"
#include "formats/packed/schemes.h"
#include "quantize/tiles.h"

#define ENDING ".weight"
#define SCALE ".weight_scale"
#define PER_BYTE 4
/* Groups of integers; each has the one scale. */
#define GROUP 64
/* Weights that a mean is taken of at a time. */
#define STEP ((uint64_t)1 << 16)
/* The library's least mean. */
#define LEAST_MEAN 1e-5f

struct bitnet {
    struct lmq_packing packing; /* first: what others know of it */
    struct lmq_grid words;   /* lines of bytes, or the trained weights */
    uint64_t n_rows;         /* of the matrix */
    bool is_trained;
    enum lmq_dtype type;     /* of trained weights */
    float scale;             /* what 1 stands for, of packed ones */
    _Atomic float mean;      /* of trained ones; 0: not yet known */
};

static struct bitnet *
bitnet_of(const struct lmq_tensor *tensor)
{
    /* Its mean becomes known later; the rest stays. */
    return (struct bitnet *)(uintptr_t)tensor->packing;
}

/* ---- The mean of trained weights ---- */

/* Of all magnitudes, in the order of the file. */
static enum lmq_status
take_mean(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          float *mean, struct lmq_error *err)
{
    const struct bitnet *b = bitnet_of(tensor);
    const uint64_t n = b->n_rows * b->packing.n_cols;
    struct lmq_grid line = b->words;
    float *values = malloc(STEP * sizeof(*values));
    unsigned char *raw = malloc(STEP * 8);
    enum lmq_status status =
        values == NULL || raw == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    double sum = 0;

    line.n_words = n;
    for (uint64_t at = 0; at < n && status == LMQ_OK; at += STEP) {
        struct lmq_area area = {0, at, 1, (size_t)lmq_u64_min(STEP, n - at)};
        status = lmq_grid_read(checkpoint, &line, &area, raw, values, err);
        for (size_t i = 0; i < area.n_cols && status == LMQ_OK; i++)
            sum += fabs((double)values[i]);
    }
    free(values);
    free(raw);
    if (status == LMQ_OK && !isfinite((float)(sum / (double)n)))
        return lmq_fail(err, LMQ_ERR_NONFINITE, tensor->offset,
                        "tensor '%s': the mean of its magnitudes is not "
                        "finite", tensor->stored_name);
    *mean = (float)(sum / (double)n);
    *mean = *mean > LEAST_MEAN ? *mean : LEAST_MEAN;
    return status;
}

/* Threads that ask at once all take it, and it is the same. */
static enum lmq_status
need_mean(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          float *mean, struct lmq_error *err)
{
    struct bitnet *b = bitnet_of(tensor);
    enum lmq_status status = LMQ_OK;

    *mean = atomic_load_explicit(&b->mean, memory_order_relaxed);
    if (!(*mean > 0))
        status = take_mean(checkpoint, tensor, mean, err);
    if (status == LMQ_OK)
        atomic_store_explicit(&b->mean, *mean, memory_order_relaxed);
    return status;
}

/* ---- Numbers ---- */

/* Rows of one of the four parts of the bytes. */
static enum lmq_status
read_packed(struct lmq_checkpoint *checkpoint, const struct bitnet *b,
            const struct lmq_area *area, unsigned char *raw, float *values,
            struct lmq_error *err)
{
    const uint64_t n_lines = b->n_rows / PER_BYTE;
    enum lmq_status status = LMQ_OK;

    for (size_t r = 0, n; r < area->n_rows && status == LMQ_OK; r += n) {
        uint64_t row = area->row + r;
        unsigned shift = 2 * (unsigned)(row / n_lines);
        n = (size_t)lmq_u64_min(n_lines - row % n_lines, area->n_rows - r);
        struct lmq_area lines = {row % n_lines, area->column, n,
                                 area->n_cols};
        float *part = values + r * area->n_cols;
        status = lmq_grid_read(checkpoint, &b->words, &lines, raw, part, err);
        for (size_t i = 0; i < n * area->n_cols && status == LMQ_OK; i++)
            part[i] = (float)((unsigned)part[i] >> shift & 3) - 1;
    }
    return status;
}

/* w becomes what of -1, 0 and 1 it is nearest to, and 0 has no sign; a NaN
 * stays. */
static void
round_weights(float mean, float *values, size_t n)
{
    const float times = 1 / mean;

    for (size_t i = 0; i < n; i++) {
        float whole = rintf(values[i] * times) + 0.0f;
        values[i] = whole > 1 ? 1 : whole < -1 ? -1 : whole;
    }
}

/* The numbers of an area, and what 1 stands for. */
static enum lmq_status
read_numbers(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
             const struct lmq_area *area, float *values, float *scale,
             struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct bitnet *b = bitnet_of(tensor);
    size_t n = area->n_rows * area->n_cols, size;
    float mean = 1;

    if (!lmq_grid_raw_size(&b->words, area, &size))
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_scratch_reserve(scratch, size, err);
    if (status == LMQ_OK && b->is_trained)
        status = need_mean(checkpoint, tensor, &mean, err);
    if (status == LMQ_OK)
        status = b->is_trained
                     ? lmq_grid_read(checkpoint, &b->words, area,
                                     scratch->bytes, values, err)
                     : read_packed(checkpoint, b, area, scratch->bytes, values,
                                   err);
    if (status != LMQ_OK)
        return status;
    if (b->is_trained)
        round_weights(mean, values, n);
    *scale = b->is_trained ? lmq_dtype_round(b->type, 1 / (1 / mean))
                           : b->scale;
    return LMQ_OK;
}

static enum lmq_status
read_area(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          const struct lmq_area *area, float *values,
          struct lmq_scratch *scratch, struct lmq_error *err)
{
    float scale = 1;
    enum lmq_status status = read_numbers(checkpoint, tensor, area, values,
                                          &scale, scratch, err);

    for (size_t i = 0; i < area->n_rows * area->n_cols && status == LMQ_OK;
         i++)
        values[i] *= scale;
    return status;
}

/* ---- Integers ---- */

static bool
is_half(float scale)
{
    float half = lmq_f16_to_f32(lmq_f32_to_f16(scale));

    return !(half < scale || half > scale);
}

/* The mean was a number; but the file may have changed. */
static enum lmq_status
to_integers(const struct lmq_tensor *tensor, uint64_t row, const float *values,
            int8_t *q, bool *has_any, struct lmq_error *err)
{
    size_t n = (size_t)tensor->packing->n_cols;

    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            return lmq_fail(err, LMQ_ERR_NONFINITE, 0,
                            "tensor '%s': NaN in row %" PRIu64,
                            tensor->stored_name, row);
        q[i] = (int8_t)values[i];
        *has_any |= q[i] != 0;
    }
    return LMQ_OK;
}

static enum lmq_status
read_integers(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, uint64_t row, size_t n,
              int8_t *q, unsigned char *scales, struct lmq_scratch *scratch,
              struct lmq_error *err)
{
    const struct lmq_quant *quant = &tensor->quant;
    size_t n_cols = (size_t)tensor->packing->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    float *values = malloc(n_cols * sizeof(*values));
    enum lmq_status status = values == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t r = 0; r < n && status == LMQ_OK; r++) {
        struct lmq_area area = {row + r, 0, 1, n_cols};
        bool has_any = false;
        float scale = 0;
        status = read_numbers(checkpoint, tensor, &area, values, &scale,
                              scratch, err);
        if (status == LMQ_OK)
            status = to_integers(tensor, row + r, values, q + r * n_cols,
                                 &has_any, err);
        if (status == LMQ_OK && has_any && quant->scales == LMQ_SCALES_F16 &&
            !is_half(scale)) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, tensor->offset,
                     "tensor '%s': half precision has no %.9g, which its "
                     "numbers are times", tensor->stored_name, (double)scale);
            lmq_hint(err, "convert it with scales of f32");
            status = LMQ_ERR_UNSUPPORTED;
        }
        for (size_t i = 0; i < n_groups && status == LMQ_OK; i++)
            lmq_scales_store(quant->scales, 1, &scale, 1,
                             scales + (r * n_groups + i) *
                                          lmq_scale_size(quant->scales));
    }
    free(values);
    return status;
}

/* ---- One matrix ---- */

static bool
is_online(const struct lmq_packer *packer)
{
    return strcmp(lmq_packer_text(packer, "linear_class"), "autobitlinear") ==
               0 &&
           strcmp(lmq_packer_text(packer, "quantization_mode"), "online") == 0;
}

/* Without a word of it the head alone is left; a list of names counts instead,
 * and we know no other. */
static bool
leaves_the_head(const struct lmq_packer *packer)
{
    const json_t *list =
        json_object_get(packer->config, "modules_to_not_convert");
    const char *name = json_string_value(json_array_get(list, 0));

    return !json_is_array(list) ||
           (json_array_size(list) == 1 && name != NULL &&
            strcmp(name, "lm_head") == 0);
}

static bool
is_supported(struct lmq_packer *packer)
{
    static const struct {
        const char *key, *words[3];
    } known[] = {
        {"linear_class", {"", "bitlinear", "autobitlinear"}},
        {"quantization_mode", {"", "offline", "online"}},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *word = lmq_packer_text(packer, known[i].key);
        bool is_known = false;
        for (size_t j = 0; j < 3; j++)
            is_known |= strcmp(word, known[i].words[j]) == 0;
        if (!is_known)
            lmq_packer_refuse(packer, "%s %.20s", known[i].key, word);
    }
    if (json_is_true(json_object_get(packer->config, "use_rms_norm")))
        lmq_packer_refuse(packer, "use_rms_norm");
    if (is_online(packer) && !leaves_the_head(packer))
        lmq_packer_refuse(packer, "modules_to_not_convert");
    return packer->refused[0] == '\0';
}

/* Takes over the result of what was set. */
static enum lmq_status
finish(struct lmq_packer *packer, struct lmq_tensor *tensor, struct bitnet *b,
       struct lmq_tensor *scale, enum lmq_scales scales, struct lmq_error *err)
{
    const uint64_t dims[2] = {b->n_rows, tensor->n_cols};
    struct lmq_tensor *const parts[] = {scale};

    snprintf(b->packing.name, sizeof(b->packing.name), "bitnet");
    b->packing.read = read_area;
    b->packing.read_integers = read_integers;
    if (packer->n_findings == 0)
        lmq_checkpoint_note(packer->checkpoint,
                            "BitNet was trained with activations of 8 bits, "
                            "a scale for each token: the library rounds to "
                            "them, here nothing is");
    lmq_packer_found(packer, "matrices of BitNet, -1, 0 and 1 with one "
                             "scale%s",
                     b->is_trained ? ", made of trained weights" : "");
    enum lmq_status status =
        lmq_packer_join(packer, tensor, ENDING, ENDING, &b->packing, dims, 2,
                        parts, 1, err);
    if (status == LMQ_OK)
        tensor->quant = (struct lmq_quant){.bits = LMQ_BITS_MIN,
                                           .group_size = GROUP,
                                           .method = LMQ_METHOD_ABSMAX,
                                           .scales = scales,
                                           .multiplier = 1};
    return status;
}

static enum lmq_status
new_bitnet(const struct lmq_tensor *tensor, struct bitnet **out,
           struct lmq_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return lmq_fail_nomem(err);
    (*out)->words = lmq_packer_grid(tensor);
    return LMQ_OK;
}

static enum lmq_status
join_packed(struct lmq_packer *packer, struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    struct lmq_tensor *part;
    struct bitnet *b;
    float scale;
    enum lmq_status status =
        lmq_packer_need(packer, tensor, ENDING, SCALE, &part, err);

    if (status == LMQ_OK)
        status = lmq_packer_check_floats(part, err);
    if (status == LMQ_OK)
        status = lmq_packer_read(packer, part, &scale, 1, err);
    if (status != LMQ_OK)
        return status;
    if (!(scale > 0 && isfinite(scale) && isfinite(1 / scale)))
        return lmq_fail(err, LMQ_ERR_NONFINITE, part->offset,
                        "'%s' is %g, expected a number above 0",
                        part->stored_name, (double)scale);
    if (tensor->n_rows > LMQ_MAX_WIDTH / PER_BYTE)
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "'%s' has %" PRIu64 " rows of bytes, too many",
                        tensor->stored_name, tensor->n_rows);
    status = new_bitnet(tensor, &b, err);
    if (status != LMQ_OK)
        return status;
    b->n_rows = PER_BYTE * tensor->n_rows;
    b->scale = strcmp(lmq_packer_text(packer, "linear_class"),
                      "autobitlinear") == 0
                   ? scale
                   : 1 / scale;
    return finish(packer, tensor, b, part,
                  is_half(b->scale) ? LMQ_SCALES_F16 : LMQ_SCALES_F32, err);
}

/* The library's linear layers, but for the head. */
static bool
is_linear(const struct lmq_place *place)
{
    return place->item < 0 &&
           ((place->role >= LMQ_ROLE_ATTN_Q &&
             place->role <= LMQ_ROLE_ATTN_OUT) ||
            (place->role >= LMQ_ROLE_FFN_GATE &&
             place->role <= LMQ_ROLE_FFN_DOWN));
}

static enum lmq_status
join_trained(struct lmq_packer *packer, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    bool has_half = lmq_dtype_size(tensor->dtype) == 2;
    struct lmq_place place;
    struct bitnet *b;

    if (!lmq_name_parse(tensor->stored_name, &place))
        lmq_packer_refuse(packer, "online, a matrix of no known name");
    if (place.role == LMQ_ROLE_EMBEDDING || place.role == LMQ_ROLE_HEAD)
        return LMQ_OK;
    if (!is_linear(&place))
        lmq_packer_refuse(packer, "online, with %s",
                          lmq_role_name(place.role));
    if (packer->refused[0] != '\0')
        return LMQ_OK;
    enum lmq_status status = new_bitnet(tensor, &b, err);
    if (status != LMQ_OK)
        return status;
    b->n_rows = tensor->n_rows;
    b->is_trained = true;
    b->type = has_half ? tensor->dtype : LMQ_DTYPE_F32;
    return finish(packer, tensor, b, NULL,
                  has_half ? LMQ_SCALES_F16 : LMQ_SCALES_F32, err);
}

enum lmq_status
lmq_bitnet_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                struct lmq_error *err)
{
    struct lmq_place place;
    bool is_float = lmq_dtype_is_float(tensor->dtype) &&
                    lmq_dtype_size(tensor->dtype) > 1;

    if (packer->method == NULL || tensor->n_dims != 2 ||
        !lmq_ends_with(tensor->stored_name, ENDING) || !is_supported(packer))
        return LMQ_OK;
    if (tensor->dtype == LMQ_DTYPE_U8 && !is_online(packer))
        return join_packed(packer, tensor, err);
    if (is_float && is_online(packer))
        return join_trained(packer, tensor, err);
    if (is_float && lmq_name_parse(tensor->stored_name, &place) &&
        is_linear(&place))
        lmq_packer_refuse(packer, "offline, but of floats");
    return LMQ_OK;
}
