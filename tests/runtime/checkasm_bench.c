/*
 * checkasm_bench.c - times the kernels, each beside the probe of its limit.
 *
 * A machine shared with others changes its speed within seconds. So probe and
 * kernel take turns, and the best of each counts.
 */
#include "config.h"

#include "tests/runtime/checkasm_bench.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/threads/cpu.h"

#define MAX_THREADS 16
#define N_TURNS 7

/* What one of the threads of a figure does: part `part` of `n_parts`. */
struct work {
    void (*run)(const struct work *work, size_t part, size_t n_parts);
    const struct lmq_kernels *k;
    double amount; /* operations or bytes per run, all parts together */
    size_t part, n_parts;
    const void *memory;
    size_t n_bytes;
    struct lmq_tiles tiles;
    struct lmq_batch batch;
    struct lmq_rows rows;
    size_t n_rows, n_tokens;
    float *x, *out, *turned;
};

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *
thread_main(void *argument)
{
    const struct work *work = argument;

    work->run(work, work->part, work->n_parts);
    return NULL;
}

/* Amount per second. */
static double
run_once(const struct work *work, size_t n_threads)
{
    struct work works[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    double start = now();

    for (size_t i = 0; i < n_threads; i++) {
        works[i] = *work;
        works[i].part = i;
        works[i].n_parts = n_threads;
        if (i > 0 &&
            pthread_create(&threads[i], NULL, thread_main, &works[i]) != 0)
            return 0;
    }
    thread_main(&works[0]);
    for (size_t i = 1; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return work->amount / (now() - start);
}

static void
figure(const char *name, const struct work *work, const struct work *probe,
       size_t n_threads)
{
    double best = 0, limit = 0;

    for (int i = 0; i < N_TURNS; i++) {
        double a = run_once(probe, n_threads), b = run_once(work, n_threads);
        limit = a > limit ? a : limit;
        best = b > best ? b : best;
    }
    printf("  %-28s %8.1f G/s of %7.1f: %3.0f %%\n", name, best * 1e-9,
           limit * 1e-9, 100 * best / limit);
}

/* ---- Work ---- */

#define PEAK_ROUNDS ((size_t)1000000)

static void
run_peak_int8(const struct work *work, size_t part, size_t n_parts)
{
    (void)part;
    work->k->peak_int8(PEAK_ROUNDS / n_parts);
}

static void
run_peak_f32(const struct work *work, size_t part, size_t n_parts)
{
    (void)part;
    work->k->peak_f32(PEAK_ROUNDS / n_parts);
}

static void
run_read(const struct work *work, size_t part, size_t n_parts)
{
    size_t share = work->n_bytes / n_parts / 4096 * 4096;

    work->k->read_memory((const char *)work->memory + part * share, share,
                         false, false);
}

static void
run_product(const struct work *work, size_t part, size_t n_parts)
{
    size_t n_tiles = lmq_tiles_count(work->tiles.n_rows);
    void *scratch = lmq_mem_aligned(lmq_scratch_bytes(work->tiles.n_cols), 1);

    work->k->product(&work->tiles, n_tiles * part / n_parts,
                     n_tiles * (part + 1) / n_parts, &work->batch, work->out,
                     work->tiles.n_rows, scratch);
    lmq_mem_free(scratch);
}

static void
run_pack(const struct work *work, size_t part, size_t n_parts)
{
    work->k->batch_pack(&work->batch, work->x, work->batch.n_cols, part,
                        n_parts);
}

static void
run_rows(const struct work *work, size_t part, size_t n_parts)
{
    void *scratch = lmq_mem_aligned(lmq_scratch_bytes(work->rows.n_cols), 1);

    work->k->rows_product(&work->rows, work->n_rows * part / n_parts,
                          work->n_rows * (part + 1) / n_parts, work->x,
                          work->rows.n_cols, work->n_tokens, work->out,
                          work->n_rows, scratch);
    lmq_mem_free(scratch);
}

/* Short work, many times over. */
#define SHORT_ROUNDS 1000

static void
run_short_rows(const struct work *work, size_t part, size_t n_parts)
{
    void *scratch = lmq_mem_aligned(lmq_scratch_bytes(work->rows.n_cols), 1);

    (void)part;
    (void)n_parts;
    for (size_t i = 0; i < SHORT_ROUNDS; i++)
        work->k->rows_product(&work->rows, 0, work->n_rows, work->x,
                              work->rows.n_cols, work->n_tokens, work->out,
                              work->n_rows, scratch);
    lmq_mem_free(scratch);
}

static void
run_turn(const struct work *work, size_t part, size_t n_parts)
{
    (void)part;
    (void)n_parts;
    for (size_t i = 0; i < SHORT_ROUNDS; i++)
        work->k->rows_turn(&work->rows, work->n_rows, work->turned);
}

static void
run_turned(const struct work *work, size_t part, size_t n_parts)
{
    (void)part;
    (void)n_parts;
    for (size_t i = 0; i < SHORT_ROUNDS; i++)
        work->k->turned_product(work->turned, work->n_rows, work->rows.n_cols,
                                work->batch.few, work->x, work->rows.n_cols,
                                work->n_tokens, work->out, work->n_rows);
}

static void
run_mix(const struct work *work, size_t part, size_t n_parts)
{
    (void)part;
    (void)n_parts;
    work->k->rows_mix(&work->rows, 0, work->n_rows, work->x, work->n_rows,
                      work->n_tokens, work->out, work->rows.n_cols);
}

/* ---- Figures ---- */

static void
bench_product(struct work *work, const struct work *peak,
           const struct work *reading, size_t n_threads)
{
    static const size_t shapes[][4] = { /* the last: bits of a weight */
        {2048, 2048, 510, 8}, {1024, 8192, 510, 8}, {2048, 2048, 24, 8},
        {2048, 2048, 6, 8}, {32768, 8192, 126, 8}, {131072, 2048, 4, 8},
        {131072, 2048, 1, 8}, {32768, 8192, 1, 8}, {262144, 2048, 1, 4},
        {65536, 8192, 1, 4},
    };
    char name[80];

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int bits = 8; bits <= 16; bits += 8) {
            const size_t n_rows = shapes[i][0], n_cols = shapes[i][1];
            const size_t n_tokens = shapes[i][2], width = shapes[i][3];
            const double n = (double)n_rows * (double)n_cols;
            work->run = run_product;
            work->tiles.n_rows = n_rows;
            work->tiles.n_cols = n_cols;
            work->tiles.bits = (unsigned)width;
            work->tiles.scale = work->tiles.q + n_rows * n_cols / 8 * width;
            work->batch.n_tokens = n_tokens;
            work->batch.n_cols = n_cols;
            work->batch.bits = (enum lmq_bits)bits;
            work->k->batch_pack(&work->batch, work->x, n_cols, 0, 1);
            snprintf(name, sizeof(name), "q%d %zux%zu%s, %zu tokens", bits,
                     n_rows, n_cols, width == 4 ? "/4" : "", n_tokens);
            work->amount = 2 * n * (double)n_tokens;
            if (bits == 16)
                work->amount *= work->k->passes_16;
            if (n_tokens >= 6) {
                figure(name, work, peak, n_threads);
            } else {
                work->amount = n * ((double)width / 8 + 2.0 / 64);
                figure(name, work, reading, n_threads);
            }
        }
    }
}

static void
bench_pack(struct work *work, const struct work *reading, size_t n_threads)
{
    work->run = run_pack;
    work->batch.bits = LMQ_BITS_16;
    work->batch.n_tokens = 510;
    work->batch.n_cols = 2048;
    work->amount = 510.0 * 2048 * 4;
    figure("q16 packing, bytes", work, reading, n_threads);
}

static const char *const row_types[] = {"f32", "f16", "bf16", "q8"};

static void
bench_rows(struct work *work, const struct work *peak,
           const struct work *reading, size_t n_threads)
{
    static const size_t shapes[][3] = {
        {2048, 2048, 510}, {1024, 8192, 510}, {4096, 128, 510},
        {2048, 2048, 6}, {32768, 2048, 1}, {8192, 8192, 1}, {65536, 128, 4},
    };
    char name[80];

    for (int type = 0; type < 4; type++) {
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            const size_t n_rows = shapes[i][0], n_cols = shapes[i][1];
            const size_t n_tokens = shapes[i][2];
            work->run = run_rows;
            work->rows.type = (enum lmq_row_type)type;
            work->rows.n_cols = n_cols;
            work->rows.stride = lmq_row_bytes(work->rows.type, n_cols);
            work->n_rows = n_rows;
            work->n_tokens = n_tokens;
            work->amount =
                2 * (double)n_rows * (double)n_cols * (double)n_tokens;
            snprintf(name, sizeof(name), "%s %zux%zu, %zu tokens",
                     row_types[type], n_rows, n_cols, n_tokens);
            if (n_tokens >= 6) {
                figure(name, work, peak, n_threads);
            } else {
                work->amount = (double)(n_rows * work->rows.stride);
                figure(name, work, reading, n_threads);
                if (n_tokens > 1)
                    continue;
                work->rows.parts = true;
                strcat(name, ", parts");
                figure(name, work, reading, n_threads);
                work->rows.parts = false;
            }
        }
    }
}

/* Scores of a block of attention, from the caches. */
static void
bench_turned(struct work *work, const struct work *peak,
             const struct work *reading)
{
    static const size_t cols[] = {64, 128, 256, 576};
    char name[80];

    work->n_rows = 128;
    work->n_tokens = 64;
    work->turned = work->out + work->n_tokens * work->n_rows;
    for (size_t i = 0; i < sizeof(cols) / sizeof(cols[0]); i++) {
        const double n = (double)(SHORT_ROUNDS * work->n_rows * cols[i]);
        work->rows.type = LMQ_ROW_F32;
        work->rows.n_cols = cols[i];
        work->rows.stride = cols[i] * sizeof(float);
        work->run = run_turn;
        work->amount = n * sizeof(float);
        snprintf(name, sizeof(name), "turning %zux%zu, bytes", work->n_rows,
                 cols[i]);
        figure(name, work, reading, 1);
        work->run = run_turned;
        work->amount = 2 * n * (double)work->n_tokens;
        snprintf(name, sizeof(name), "turned, %zu tokens", work->n_tokens);
        figure(name, work, peak, 1);
        work->run = run_short_rows;
        figure("not turned", work, peak, 1);
    }
}

static void
bench_mix(struct work *work, const struct work *peak)
{
    char name[80];

    for (int type = 0; type < 4; type++) {
        work->run = run_mix;
        work->rows.type = (enum lmq_row_type)type;
        work->rows.n_cols = 128;
        work->rows.stride = lmq_row_bytes(work->rows.type, 128);
        work->n_rows = 1024;
        work->n_tokens = 96;
        work->amount = 2.0 * 1024 * 128 * 96;
        snprintf(name, sizeof(name), "%s mix 1024x128, 96 tokens",
                 row_types[type]);
        figure(name, work, peak, 1);
    }
}

/* Nanoseconds per 1000 numbers that lie in the first level cache. */
static void
bench_vectors(const struct lmq_kernels *k,
              const struct checkasm_choice *choice, float *x, float *y)
{
    const size_t n = 2048, n_rounds = 2000;
    static const char *const names[] = {
        "rmsnorm", "softmax", "silu", "gelu_erf", "softcap", "rope", "dot",
    };

    for (size_t which = 0; which < sizeof(names) / sizeof(names[0]); which++) {
        double best = 1e9;
        if (!checkasm_function(choice, names[which]))
            continue;
        for (int turn = 0; turn < N_TURNS; turn++) {
            double start = now();
            for (size_t i = 0; i < n_rounds; i++) {
                switch (which) {
                case 0: k->rmsnorm(x, y, n, 1e-5f, x); break;
                case 1: k->softmax(x, n); break;
                case 2: k->silu(x, n); break;
                case 3: k->gelu_erf(x, n); break;
                case 4: k->softcap(x, n, 30.0f); break;
                case 5: k->rope(x, y, y + n / 2, n / 2); break;
                default: x[0] = k->dot(x, y, n); break;
                }
            }
            double time = (now() - start) / (double)n_rounds;
            best = time < best ? time : best;
        }
        printf("  %-28s %8.1f ns per 1000\n", names[which],
               best * 1e12 / (double)n);
        for (size_t i = 0; i < n; i++)
            x[i] = y[i];
    }
}

void
checkasm_bench(const struct lmq_kernels *k,
               const struct checkasm_choice *choice)
{
    const size_t n_arena = (size_t)300 << 20, n_floats = (size_t)1 << 24;
    unsigned char *arena = lmq_mem_aligned(n_arena, 1);
    float *x = lmq_mem_aligned(n_floats, sizeof(float));
    float *out = lmq_mem_aligned(n_floats, sizeof(float));
    unsigned char *data = lmq_mem_aligned(
        lmq_batch_bytes(512, 8192, 64), 1);

    size_t n_threads = choice->n_threads > MAX_THREADS
                           ? MAX_THREADS
                           : (size_t)choice->n_threads;
    if (arena != NULL && x != NULL && out != NULL && data != NULL) {
        lmq_mem_large_pages(arena, n_arena);
        /* As int8, half, bfloat16 and float a number of usual size: Intel takes
         * a hundred times as long with denormal ones. */
        memset(arena, 0x3c, n_arena);
        for (size_t i = 0; i < n_floats; i++)
            x[i] = (float)(i % 1001) * 0.001f - 0.5f;
        struct work work = {
            .k = k, .x = x, .out = out,
            .tiles = {.q = arena, .scale_type = LMQ_SCALES_F16,
                      .multiplier = 1.0f, .group = 64},
            .batch = {.group = 64, .few = lmq_cpu_halves(), .data = data},
            .rows = {.data = arena},
        };
        struct work int8 = {.run = run_peak_int8, .k = k};
        struct work f32 = {.run = run_peak_f32, .k = k};
        const struct work reading = {
            .run = run_read, .k = k, .amount = (double)(256 << 20),
            .memory = arena, .n_bytes = (size_t)256 << 20,
        };
        int8.amount = k->peak_int8(PEAK_ROUNDS);
        f32.amount = k->peak_f32(PEAK_ROUNDS);
        if (checkasm_function(choice, "product"))
            bench_product(&work, &int8, &reading, n_threads);
        if (checkasm_function(choice, "batch_pack"))
            bench_pack(&work, &reading, n_threads);
        if (checkasm_function(choice, "rows_product"))
            bench_rows(&work, &f32, &reading, n_threads);
        if (checkasm_function(choice, "turned_product"))
            bench_turned(&work, &f32, &reading);
        if (checkasm_function(choice, "rows_mix"))
            bench_mix(&work, &f32);
        bench_vectors(k, choice, x, out);
    }
    lmq_mem_free(arena);
    lmq_mem_free(x);
    lmq_mem_free(out);
    lmq_mem_free(data);
}
