/*
 * export_floats.c - streams tensors as float32, float16 or bfloat16.
 */
#include "config.h"

#include "convert/export/export_floats.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

/* Elements at a time, for each thread. */
#define CHUNK ((size_t)1 << 17)

/* n elements as bytes; the number of the first that is not finite then, or n.
 * *is_exact is cleared if one was rounded. */
static size_t
encode(enum lmq_dtype dtype, const float *x, size_t n, unsigned char *bytes,
       bool *is_exact)
{
    for (size_t i = 0; i < n; i++) {
        float back = x[i];
        if (dtype == LMQ_DTYPE_F32) {
            lmq_store_f32le(bytes + 4 * i, x[i]);
        } else {
            bool is_half = dtype == LMQ_DTYPE_F16;
            uint16_t bits =
                is_half ? lmq_f32_to_f16(x[i]) : lmq_f32_to_bf16(x[i]);
            lmq_store_u16le(bytes + 2 * i, bits);
            back = is_half ? lmq_f16_to_f32(bits) : lmq_bf16_to_f32(bits);
        }
        /* Rounding may turn a NaN into a number. */
        if (!isfinite(x[i]) || !isfinite(back))
            return i;
        *is_exact = *is_exact && back <= x[i] && back >= x[i];
    }
    return n;
}

static enum lmq_status
fail_nonfinite(const struct lmq_float_target *target, uint64_t at,
               float value, struct lmq_error *err)
{
    if (!isfinite(value))
        return lmq_fail(err, LMQ_ERR_NONFINITE, at,
                        "tensor '%s': NaN or infinity at element %" PRIu64,
                        target->tensor->name, at);
    lmq_fail(err, LMQ_ERR_NONFINITE, at,
             "tensor '%s': element %" PRIu64 " is %g, which %s cannot hold",
             target->tensor->name, at, (double)value,
             lmq_dtype_name(target->dtype));
    lmq_hint(err, ".type=f32 can");
    return LMQ_ERR_NONFINITE;
}

/* One thread's buffers. */
struct worker {
    struct lmq_scratch scratch;
    float *x;
    unsigned char *bytes;
    bool is_exact; /* so far, of this range */
};

/* What is read as w + 1; adding 1 again mostly gives the same number. */
static void
subtract_one(struct worker *worker, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float less = worker->x[i] - 1, back = less + 1;
        worker->is_exact = worker->is_exact && back <= worker->x[i] &&
                           back >= worker->x[i];
        worker->x[i] = less;
    }
}

/* A tensor on its way. */
struct writing {
    const struct lmq_float_target *target;
    atomic_bool is_rounded;
};

static enum lmq_status
write_range(void *context, const struct lmq_range *range, void *state,
            struct lmq_error *err)
{
    struct writing *writing = context;
    const struct lmq_float_target *target = writing->target;
    struct worker *worker = state;
    uint64_t first = range->at;
    size_t n = range->n;
    size_t width = lmq_dtype_size(target->dtype);
    enum lmq_status status;

    worker->is_exact = true;
    if (!lmq_dtype_is_float(target->dtype)) {
        status = lmq_checkpoint_read_raw(target->checkpoint, target->tensor,
                                         first, n, worker->bytes, err);
    } else {
        status =
            lmq_checkpoint_read(target->checkpoint, target->tensor, first, n,
                                worker->x, &worker->scratch, err);
        if (status == LMQ_OK && target->is_less_one)
            subtract_one(worker, n);
        size_t bad = status != LMQ_OK
                         ? n
                         : encode(target->dtype, worker->x, n, worker->bytes,
                                  &worker->is_exact);
        if (bad < n)
            status = fail_nonfinite(target, first + bad, worker->x[bad], err);
    }
    if (!worker->is_exact)
        atomic_store(&writing->is_rounded, true);
    if (status != LMQ_OK)
        return status;
    return lmq_output_write(target->output, target->offset + first * width,
                            worker->bytes, n * width, err);
}

static bool
make_worker(void *state, const void *context)
{
    struct worker *worker = state;
    size_t most = *(const size_t *)context;

    worker->x = lmq_mem_aligned(most, sizeof(float));
    worker->bytes = lmq_mem_aligned(most, 8);
    return worker->x != NULL && worker->bytes != NULL;
}

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_scratch_free(&worker->scratch);
    lmq_mem_free(worker->x);
    lmq_mem_free(worker->bytes);
}

enum lmq_status
lmq_float_workers_open(struct lmq_workers *workers, int threads,
                       uint64_t n_elements, struct lmq_error *err)
{
    size_t most = (size_t)lmq_u64_min(CHUNK, n_elements);
    uint64_t n_chunks = lmq_u64_ceil_div(n_elements, CHUNK);

    return lmq_workers_open(workers, threads,
                            (size_t)lmq_u64_min(n_chunks, LMQ_RANGES),
                            sizeof(struct worker), make_worker, clear_worker,
                            &most, err);
}

enum lmq_status
lmq_export_write_tensor(const struct lmq_float_target *target,
                        const struct lmq_workers *workers, bool *is_exact,
                        struct lmq_error *err)
{
    struct writing writing = {.target = target};
    const struct lmq_ranges ranges = {
        .whole = target->tensor->n_elements,
        .chunk = CHUNK,
        .context = &writing,
        .piece = write_range,
    };
    enum lmq_status status = lmq_tasks_over(&ranges, workers, err);

    if (writing.is_rounded)
        *is_exact = false;
    return status;
}
