/*
 * export_gguf_data.c - writes the tensors of a GGUF.
 *
 * Piece by piece, several at a time; memory does not grow with the model. The
 * integer groups of a container become blocks of Q8_0, Q5_0 and Q4_0 as they
 * are, wherever their scales are exact in half precision; everything else is
 * rounded here, and what that costs is counted.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/threads/tasks.h"
#include "convert/q8_rows.h"
#include "quantize/dtype.h"
#include "quantize/group.h"
#include "runtime/pools/table.h"

/* Elements of a piece. */
#define PIECE ((size_t)1 << 17)
/* Never more than this for all buffers. */
#define BUFFERS_MAX ((size_t)256 << 20)

/* What encoding cost. */
struct cost {
    double sum_sq, err_sq;
};

struct worker {
    struct lmq_q8_reader reader;
    float *x;
    int8_t *q;
    float *scales;
    unsigned char *out;
};

struct writer {
    struct lmq_gguf_plan *plan;
    struct lmq_output *output;
    uint64_t data_at;
    size_t most; /* elements of the largest piece */
    struct lmq_counter counter; /* elements */
    struct lmq_workers workers;
};

/* One source on its way, as ranges of its elements: whole rows. */
struct course {
    const struct writer *writer;
    struct lmq_gguf_target *target;
    const struct lmq_tensor *source;
    uint64_t before; /* elements of the target before the source */
    struct cost costs[LMQ_RANGES];
};

/* The rows that the file has in pairs. */
static struct lmq_rope_rows
paired_rows(const struct lmq_gguf_plan *plan, const struct lmq_tensor *tensor)
{
    const struct lmq_gguf_form *form = &plan->family->gguf;
    bool is_paired = form->has_rotary_pairs &&
                     !(form->has_index_halves &&
                       lmq_role_is_of_index(tensor->place.role));

    return is_paired
               ? lmq_rope_rows(&plan->checkpoint->hparams, &tensor->place)
               : (struct lmq_rope_rows){0};
}

/* ---- Cutting ---- */

/* A tensor of one dimension is a column. */
static uint64_t
source_rows(const struct lmq_tensor *source)
{
    return source->n_dims == 1 ? source->n_elements : source->n_rows;
}

/* Whole heads where rows change places. */
static uint64_t
rows_at_once(const struct lmq_gguf_plan *plan,
             const struct lmq_gguf_target *target,
             const struct lmq_tensor *source)
{
    struct lmq_rope_rows pairs = paired_rows(plan, source);
    uint64_t n = PIECE / target->n_cols;

    n = n == 0 ? 1 : n;
    if (pairs.n == 0)
        return n;
    return n < pairs.head_dim ? pairs.head_dim : n - n % pairs.head_dim;
}

static size_t
largest_piece(const struct lmq_gguf_plan *plan)
{
    uint64_t most = PIECE;

    for (size_t i = 0; i < plan->n_targets; i++) {
        const struct lmq_gguf_target *target = &plan->targets[i];
        for (size_t k = 0; k < target->n_sources; k++) {
            const struct lmq_tensor *source = target->sources[k];
            uint64_t rows = rows_at_once(plan, target, source);
            rows = lmq_u64_min(rows, source_rows(source));
            if (rows * target->n_cols > most)
                most = rows * target->n_cols;
        }
    }
    return (size_t)most;
}

/* ---- Encoding ---- */

static void
count_error(struct cost *cost, float value, float stored)
{
    double error = (double)value - (double)stored;

    cost->sum_sq += (double)value * (double)value;
    cost->err_sq += error * error;
}

/* n values; false if the type cannot hold one of them. */
static bool
encode_floats(struct cost *cost, enum lmq_gguf_stored type, const float *x,
              size_t n, unsigned char *out)
{
    bool is_finite = true;

    for (size_t i = 0; i < n; i++) {
        float stored = x[i];
        if (type == LMQ_GGUF_STORED_F32) {
            lmq_store_f32le(out + 4 * i, x[i]);
        } else if (type == LMQ_GGUF_STORED_I32) {
            if (!(x[i] >= 0 && x[i] < 16777216)) /* no number of an expert */
                return false;
            lmq_store_u32le(out + 4 * i, (uint32_t)x[i]);
        } else if (type == LMQ_GGUF_STORED_F16) {
            uint16_t half = lmq_f32_to_f16(x[i]);
            stored = lmq_f16_to_f32(half);
            lmq_store_u16le(out + 2 * i, half);
        } else {
            uint16_t half = lmq_f32_to_bf16(x[i]);
            stored = lmq_bf16_to_f32(half);
            lmq_store_u16le(out + 2 * i, half);
        }
        is_finite &= isfinite(stored) != 0;
        count_error(cost, x[i], stored);
    }
    return is_finite;
}

/* One block out of 32 floats. */
static bool
round_block(struct cost *cost, const float *x, unsigned char *out)
{
    const struct lmq_quant quant = {.bits = LMQ_BITS_MAX,
                                    .group_size = LMQ_GGUF_BLOCK,
                                    .method = LMQ_METHOD_SEARCH,
                                    .scales = LMQ_SCALES_F16,
                                    .multiplier = 1};
    struct lmq_quant_stats stats = {0};
    int8_t q[LMQ_GGUF_BLOCK];
    float scale;

    lmq_quantize_row(&quant, x, LMQ_GGUF_BLOCK, q, &scale, &stats);
    uint16_t half = lmq_f32_to_f16(scale);
    if (stats.has_nonfinite || !isfinite(lmq_f16_to_f32(half)))
        return false;
    lmq_store_u16le(out, half);
    memcpy(out + 2, q, LMQ_GGUF_BLOCK);
    cost->sum_sq += stats.sum_sq;
    cost->err_sq += stats.err_sq;
    return true;
}

/* The integers of a block of 4 or 5 bits, the first 16 in the lower halves of
 * bytes, with fifth bits by themselves before them. `sign` turns them: 8 (or
 * 16) is there only as the other sign of a scale below 0. */
static void
put_narrow(enum lmq_gguf_stored type, const int8_t *q, int sign,
           unsigned char *out)
{
    const int half = LMQ_GGUF_BLOCK / 2;
    const int zero = type == LMQ_GGUF_STORED_Q5_0 ? 16 : 8;
    unsigned codes[LMQ_GGUF_BLOCK];
    uint32_t fifth = 0;

    for (int i = 0; i < LMQ_GGUF_BLOCK; i++) {
        codes[i] = (unsigned)(sign * q[i] + zero);
        fifth |= (codes[i] >> 4 & 1) << i;
    }
    if (type == LMQ_GGUF_STORED_Q5_0) {
        lmq_store_u32le(out, fifth);
        out += 4;
    }
    for (int i = 0; i < half; i++)
        out[i] = (unsigned char)((codes[i] & 15) | (codes[half + i] & 15) << 4);
}

/* One block that a container has: as it is, if half precision can say its
 * scale, which of types of less than 8 bits is known. */
static bool
take_block(struct cost *cost, enum lmq_gguf_stored type, const int8_t *q,
           float scale, unsigned char *out)
{
    uint16_t half = lmq_f32_to_f16(scale);
    float x[LMQ_GGUF_BLOCK];
    int most = 0;

    for (size_t i = 0; i < LMQ_GGUF_BLOCK; i++) {
        x[i] = (float)q[i] * scale;
        most = q[i] > most ? q[i] : most;
    }
    if (lmq_f16_to_f32(half) < scale || lmq_f16_to_f32(half) > scale)
        return type == LMQ_GGUF_STORED_Q8_0 && round_block(cost, x, out);
    if (type == LMQ_GGUF_STORED_Q8_0) {
        lmq_store_u16le(out, half);
        memcpy(out + 2, q, LMQ_GGUF_BLOCK);
    } else {
        bool turns = most == (type == LMQ_GGUF_STORED_Q5_0 ? 16 : 8);
        lmq_store_u16le(out, turns ? half ^ 0x8000 : half);
        put_narrow(type, q, turns ? -1 : 1, out + 2);
    }
    for (size_t i = 0; i < LMQ_GGUF_BLOCK; i++)
        cost->sum_sq += (double)x[i] * (double)x[i];
    return true;
}

/* One block of floats of four bits, which the source has. Its scale may have
 * been larger: with the largest number at 8 or 12 halves the others are codes,
 * too. */
static bool
take_mxfp4(struct cost *cost, const float *x, unsigned char *out)
{
    static const float codes[] = {0, 1, 2, 3, 4, 6, 8, 12}; /* halves */
    float most = 0;
    int exponent = 0;

    for (size_t i = 0; i < LMQ_GGUF_BLOCK; i++)
        most = fmaxf(most, fabsf(x[i]));
    if (!isfinite(most))
        return false;
    if (most > 0)
        frexpf(most, &exponent);
    exponent = most > 0 ? exponent - 4 + 128 : 0;
    exponent = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
    out[0] = (unsigned char)exponent;
    memset(out + 1, 0, LMQ_GGUF_BLOCK / 2);
    for (size_t i = 0; i < LMQ_GGUF_BLOCK; i++) {
        float halves = ldexpf(fabsf(x[i]), 128 - exponent);
        unsigned code = 0;
        while (code < 7 && codes[code] < halves)
            code++;
        if (codes[code] < halves || codes[code] > halves)
            return false;
        code |= signbit(x[i]) ? 8 : 0;
        out[1 + i % 16] |= (unsigned char)(i < 16 ? code : code << 4);
        cost->sum_sq += (double)x[i] * (double)x[i];
    }
    return true;
}

/* A row of int8 that is there, or of floats. */
static bool
encode_row(struct cost *cost, const struct lmq_gguf_target *target,
           const struct worker *worker, bool is_int8, uint64_t row,
           unsigned char *out)
{
    size_t n_cols = (size_t)target->n_cols;
    size_t size = lmq_gguf_stored_types[target->type].size;
    bool is_fine = true;

    if (lmq_gguf_stored_types[target->type].n != LMQ_GGUF_BLOCK)
        return encode_floats(cost, target->type, worker->x + row * n_cols,
                             n_cols, out);
    for (size_t i = 0; i < n_cols / LMQ_GGUF_BLOCK; i++) {
        size_t at = (size_t)row * n_cols + LMQ_GGUF_BLOCK * i;
        is_fine &= target->type == LMQ_GGUF_STORED_MXFP4
                       ? take_mxfp4(cost, worker->x + at, out + size * i)
                   : is_int8
                       ? take_block(cost, target->type, worker->q + at,
                                    worker->scales[at / LMQ_GGUF_BLOCK],
                                    out + size * i)
                       : round_block(cost, worker->x + at, out + size * i);
    }
    return is_fine;
}

/* ---- One piece ---- */

static enum lmq_status
write_range(void *context, const struct lmq_range *range, void *state,
            struct lmq_error *err)
{
    struct course *course = context;
    struct worker *worker = state;
    const struct writer *w = course->writer;
    struct lmq_checkpoint *checkpoint = w->plan->checkpoint;
    const struct lmq_gguf_target *target = course->target;
    const struct lmq_gguf_stored_type *type =
        &lmq_gguf_stored_types[target->type];
    const struct lmq_tensor *source = course->source;
    struct lmq_rope_rows pairs = paired_rows(w->plan, source);
    size_t n_cols = (size_t)target->n_cols;
    size_t row_size = n_cols / type->n * type->size;
    uint64_t row = range->at / n_cols, n_rows = range->n / n_cols;
    struct cost cost = {0};
    bool is_int8 = type->n == LMQ_GGUF_BLOCK &&
                   target->type != LMQ_GGUF_STORED_MXFP4 &&
                   lmq_q8_is_stored(source, LMQ_GGUF_BLOCK);
    enum lmq_status status =
        is_int8 ? lmq_q8_read_rows(checkpoint, source, row, (size_t)n_rows,
                                   LMQ_GGUF_BLOCK, &worker->reader, worker->q,
                                   worker->scales, err)
                : lmq_checkpoint_read(checkpoint, source, range->at, range->n,
                                      worker->x, &worker->reader.scratch, err);

    if (status == LMQ_OK && target->type == LMQ_GGUF_STORED_I32)
        status = lmq_table_check(&checkpoint->hparams, source, range->at,
                                 worker->x, range->n, err);
    for (uint64_t i = 0; i < n_rows && status == LMQ_OK; i++)
        if (!encode_row(&cost, target, worker, is_int8,
                        lmq_rope_row_to_halves(&pairs, row + i) - row,
                        worker->out + i * row_size)) {
            status = lmq_fail(err, LMQ_ERR_NONFINITE, 0,
                              "tensor '%s': row %" PRIu64
                              " has NaN, infinity or numbers too large for %s",
                              source->name, row + i, type->name);
            lmq_hint(err, ".type f32 or bf16 has room, if they are too large");
        }
    course->costs[range->slot] = cost;
    if (status != LMQ_OK)
        return status;
    uint64_t offset = w->data_at + target->offset +
                      (course->before + range->at) / n_cols * row_size;
    return lmq_output_write(w->output, offset, worker->out,
                            (size_t)n_rows * row_size, err);
}

static void
merge_range(void *context, const struct lmq_range *range)
{
    struct course *course = context;

    course->target->sum_sq += course->costs[range->slot].sum_sq;
    course->target->err_sq += course->costs[range->slot].err_sq;
}

/* ---- One target ---- */

/* Rows that no source has. */
static enum lmq_status
fill(struct writer *w, struct course *course, struct lmq_error *err)
{
    const struct lmq_gguf_target *target = course->target;
    enum lmq_status status = LMQ_OK;

    course->source = target->sources[0];
    for (uint64_t i = 0; i < target->n_filled && status == LMQ_OK; i++) {
        const struct lmq_ranges ranges = {
            .whole = target->n_cols,
            .chunk = (size_t)target->n_cols,
            .context = course,
            .piece = write_range,
            .merge = merge_range,
            .counter = &w->counter,
        };
        status = lmq_tasks_over(&ranges, &w->workers, err);
        course->before += target->n_cols;
    }
    return status;
}

static enum lmq_status
write_sources(struct writer *w, struct lmq_gguf_target *target,
              struct lmq_error *err)
{
    struct course course = {.writer = w, .target = target};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < target->n_sources && status == LMQ_OK; i++) {
        course.source = target->sources[i];
        uint64_t n_elements = source_rows(course.source) * target->n_cols;
        const struct lmq_ranges ranges = {
            .whole = n_elements,
            .chunk = (size_t)(rows_at_once(w->plan, target, course.source) *
                              target->n_cols),
            .context = &course,
            .piece = write_range,
            .merge = merge_range,
            .counter = &w->counter,
        };
        status = lmq_tasks_over(&ranges, &w->workers, err);
        course.before += n_elements;
    }
    return status == LMQ_OK ? fill(w, &course, err) : status;
}

/* What no tensor has: a row, or the same all over. */
static enum lmq_status
write_made(const struct writer *w, const struct lmq_gguf_target *target,
           struct lmq_error *err)
{
    unsigned char bytes[4 * LMQ_MAX_ROPE_FACTORS];
    const size_t most = sizeof(bytes) / 4;
    uint64_t n = target->n_rows * target->n_cols, done = 0;
    enum lmq_status status = LMQ_OK;

    while (done < n && status == LMQ_OK) {
        size_t n_now = (size_t)lmq_u64_min(n - done, most);
        for (size_t i = 0; i < n_now; i++)
            lmq_store_f32le(bytes + 4 * i,
                            target->is_even
                                ? target->each
                                : (float)target->values[done + i]);
        status = lmq_output_write(
            w->output, w->data_at + target->offset + 4 * done, bytes,
            4 * n_now, err);
        done += n_now;
    }
    return status;
}

/* ---- All of them ---- */

static bool
make_worker(void *state, const void *context)
{
    struct worker *worker = state;
    size_t most = ((const struct writer *)context)->most;

    worker->x = lmq_mem_aligned(most, sizeof(float));
    worker->q = lmq_mem_aligned(most, 1);
    worker->scales = lmq_mem_aligned(most / LMQ_GGUF_BLOCK + 1, sizeof(float));
    worker->out = lmq_mem_aligned(most, 4);
    return worker->x != NULL && worker->q != NULL && worker->scales != NULL &&
           worker->out != NULL;
}

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_q8_reader_free(&worker->reader);
    lmq_mem_free(worker->x);
    lmq_mem_free(worker->q);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->out);
}

static enum lmq_status
make_buffers(struct writer *w, int threads, struct lmq_error *err)
{
    size_t each = w->most * (4 + 1 + 4 + 8) + w->most / 8;

    return lmq_workers_open(&w->workers, threads,
                            lmq_size_min(BUFFERS_MAX / each + 1, LMQ_RANGES),
                            sizeof(struct worker), make_worker, clear_worker,
                            w, err);
}

enum lmq_status
lmq_gguf_write_data(struct lmq_gguf_plan *plan, struct lmq_output *output,
                    uint64_t data_at, int threads,
                    const struct lmq_progress *progress, struct lmq_error *err)
{
    struct writer w = {.plan = plan,
                       .output = output,
                       .data_at = data_at,
                       .counter = {.progress = progress,
                                   .stage = "exporting"},
                       .most = largest_piece(plan)};
    enum lmq_status status = make_buffers(&w, threads, err);

    for (size_t i = 0; i < plan->n_targets; i++) {
        w.counter.total += plan->targets[i].n_filled * plan->targets[i].n_cols;
        for (size_t k = 0; k < plan->targets[i].n_sources; k++)
            w.counter.total += plan->targets[i].sources[k]->n_elements;
    }
    for (size_t i = 0; i < plan->n_targets && status == LMQ_OK; i++)
        status = plan->targets[i].n_sources == 0
                     ? write_made(&w, &plan->targets[i], err)
                     : write_sources(&w, &plan->targets[i], err);
    lmq_workers_close(&w.workers);
    return status;
}
