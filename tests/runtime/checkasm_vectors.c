/*
 * checkasm_vectors.c - kernels of one or two vectors.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/kernels.h"
#include "tests/runtime/checkasm_memory.h"
#include "tests/runtime/checkasm_parts.h"

static const struct lmq_kernels *const plain = &lmq_kernels_c;

static char sizes[160];

/* Each runs one kernel on x (in place) and y; n is even. A sum becomes
 * x[0]. */
static void
run_vector(const struct lmq_kernels *k, size_t which, float *x, const float *y,
           size_t n)
{
    switch (which) {
    case 0: k->rmsnorm(x, y, n, 1e-5f, x); break;
    case 1: k->layernorm(x, y, NULL, n, 1e-5f, x); break;
    case 2: k->layernorm(x, y, y, n, 1e-5f, x); break;
    case 3: k->softmax(x, n); break;
    case 4: x[0] = k->max(x, n); break;
    case 5: x[0] = k->exp_sum(x, n, 0.5f); break;
    case 6: k->scale(x, n, 3.3f); break;
    case 7: x[0] = k->dot(x, y, n); break;
    case 8: k->exp(x, n); break;
    case 9: k->silu(x, n); break;
    case 10: k->gelu_tanh(x, n); break;
    case 11: k->gelu_erf(x, n); break;
    case 12: k->softcap(x, n, 30.0f); break;
    case 13: k->sigmoid(x, n); break;
    case 14: k->softplus(x, n); break;
    case 15: k->relu(x, n); break;
    case 16: k->clamp(x, n, 1.5f); break;
    case 17: k->add(x, y, n); break;
    case 18: k->mul(x, y, n); break;
    case 19: k->axpy(x, y, n, 0.3f); break;
    case 20: k->layernorm(x, NULL, NULL, n, 1e-5f, x); break;
    case 21: k->rmsnorm(x, NULL, n, 1e-5f, x); break;
    default: k->rope(x, y, y + n / 2, n / 2); break;
    }
}

/* Layernorm is there with weights, with a bias too, and with neither; rmsnorm
 * with and without weights. */
const char *const checkasm_vector_names[CHECKASM_N_VECTORS] = {
    "rmsnorm", "layernorm", "layernorm", "softmax", "max",
    "exp_sum", "scale", "dot", "exp", "silu", "gelu_tanh", "gelu_erf",
    "softcap", "sigmoid", "softplus", "relu", "clamp", "add", "mul", "axpy",
    "layernorm", "rmsnorm", "rope",
};

/* Functions of one number among them. */
#define FIRST_FUNCTION 8
#define END_FUNCTION 17

void
checkasm_vectors(const struct lmq_kernels *k)
{
    for (size_t which = 0; which < CHECKASM_N_VECTORS; which++) {
        if (!checkasm_start(checkasm_vector_names[which]))
            continue;
        for (size_t i = 0; i < 400; i++) {
            size_t n = 2 * (1 + (i < 80 ? i : random_below(2000)));
            enum pattern pattern = (enum pattern)(i % PATTERN_COUNT);
            struct buffer x = buffer_floats(n, pattern);
            struct buffer y = buffer_floats(n, pattern);
            for (size_t j = 0; pattern == PLAIN && j < n; j++)
                floats(&x)[j] *= 20.0f;
            struct buffer z = buffer_copy(&x);
            run_vector(plain, which, floats(&x), floats(&y), n);
            run_vector(k, which, floats(&z), floats(&y), n);
            checkasm_report(same_buffers(&x, &z, true),
                            checkasm_vector_names[which], k->name,
                            SIZES("%zu numbers, pattern %d, case %zu", n,
                                  (int)pattern, which));
            buffer_free(&y);
        }
    }
}

/* Rows of scores and what is known of the blocks before, in one array: n_rows x
 * stride scores, the maxima, the sums, the factors. */
struct rows_of_scores {
    size_t n_rows, n, stride;
};

static struct rows_of_scores
some_rows_of_scores(void)
{
    size_t n = 16 * (1 + random_below(12));

    return (struct rows_of_scores){.n_rows = 1 + random_below(40), .n = n,
                                   .stride = n + random_below(20)};
}

static struct buffer
scores_buffer(const struct rows_of_scores *rows, enum pattern pattern)
{
    const size_t n = rows->n_rows * rows->stride;
    struct buffer x = buffer_floats(n + 3 * rows->n_rows, pattern);

    for (size_t j = 0; j < n; j++)
        if (random_below(9) == 0)
            floats(&x)[j] = -INFINITY; /* masked */
    for (size_t r = 0; r < rows->n_rows; r++)
        if (random_below(3) == 0)
            floats(&x)[n + r] = -INFINITY; /* no block before */
    return x;
}

static void
run_soften(const struct lmq_kernels *k, const struct rows_of_scores *rows,
           float *x)
{
    float *max = x + rows->n_rows * rows->stride;

    k->soften(x, rows->stride, rows->n, rows->n_rows, max, max + rows->n_rows,
              max + 2 * rows->n_rows);
}

void
checkasm_soften(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < 400; i++) {
        struct rows_of_scores rows = some_rows_of_scores();
        enum pattern pattern = (enum pattern)(i % PATTERN_COUNT);
        struct buffer x = scores_buffer(&rows, pattern);
        struct buffer y = buffer_copy(&x);
        run_soften(plain, &rows, floats(&x));
        run_soften(k, &rows, floats(&y));
        checkasm_report(same_buffers(&x, &y, true), "soften", k->name,
                        SIZES("%zu rows of %zu, pattern %d", rows.n_rows,
                              rows.n, (int)pattern));
    }
}

/* Row by row, of the kernels that it is made of. */
void
checkasm_naive_soften(void)
{
    for (size_t i = 0; i < 300; i++) {
        struct rows_of_scores rows = some_rows_of_scores();
        struct buffer x = scores_buffer(&rows, PLAIN);
        struct buffer y = buffer_copy(&x);
        float *max = floats(&y) + rows.n_rows * rows.stride;
        for (size_t r = 0; r < rows.n_rows; r++) {
            float *row = floats(&y) + r * rows.stride;
            float *sum = max + rows.n_rows + r, *factor = sum + rows.n_rows;
            float m = max[r];
            for (size_t j = 0; j < rows.n; j++)
                m = fmaxf(m, row[j]);
            *factor = max[r] - m;
            plain->exp(factor, 1);
            *sum *= *factor;
            *sum += plain->exp_sum(row, rows.n, m);
            max[r] = m;
        }
        run_soften(plain, &rows, floats(&x));
        checkasm_report(same_buffers(&x, &y, true), "soften", "c",
                        SIZES("%zu rows of %zu", rows.n_rows, rows.n));
    }
}

/* ---- States ---- */

/* A state, and what a token has: keys, queries, decays, values; in one
 * array. */
struct state {
    size_t n_rows, n;
    float decay;
    bool differs;         /* each row has a decay of its own */
    bool gives, is_apart; /* there are values; sums are not in their place */
};

static struct state
some_state(size_t i)
{
    return (struct state){.n_rows = 1 + random_below(40),
                          .n = 1 + (i < 160 ? i : random_below(300)),
                          .decay = (float[]){1.0f, 0.7f, 0.0f}[i % 3],
                          .differs = i / 8 % 2 == 1,
                          .gives = i % 4 != 0,
                          .is_apart = i % 8 < 4};
}

static void
run_recur(const struct lmq_kernels *k, const struct state *s, float *x)
{
    float *keys = x + s->n_rows * s->n, *queries = keys + s->n_rows;
    float *decays = queries + s->n_rows, *values = decays + s->n_rows;
    float *out = values + s->n;
    const float *decay = s->differs ? decays : &s->decay;

    if (s->gives)
        k->recur(x, s->n_rows, s->n, decay, s->differs, keys, values, queries,
                 s->is_apart ? out : values);
    else
        k->recur(x, s->n_rows, s->n, decay, s->differs, NULL, NULL, queries,
                 out);
}

static struct buffer
state_buffer(const struct state *s, enum pattern pattern)
{
    return buffer_floats(s->n_rows * s->n + 3 * s->n_rows + 2 * s->n, pattern);
}

void
checkasm_recur(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < 600; i++) {
        struct state s = some_state(i);
        enum pattern pattern = (enum pattern)(i % PATTERN_COUNT);
        struct buffer x = state_buffer(&s, pattern), y = buffer_copy(&x);
        run_recur(plain, &s, floats(&x));
        run_recur(k, &s, floats(&y));
        checkasm_report(same_buffers(&x, &y, true), "recur", k->name,
                        SIZES("%zu rows of %zu, pattern %d, values %d %d, "
                              "decays %d",
                              s.n_rows, s.n, (int)pattern, s.gives,
                              s.is_apart, s.differs));
    }
}

/* Of the kernels that it is made of. */
void
checkasm_naive_recur(void)
{
    for (size_t i = 0; i < 400; i++) {
        struct state s = some_state(i);
        struct buffer x = state_buffer(&s, PLAIN), y = buffer_copy(&x);
        float *state = floats(&y), *keys = state + s.n_rows * s.n;
        float *queries = keys + s.n_rows, *decays = queries + s.n_rows;
        float *values = decays + s.n_rows;
        float *out = s.gives && !s.is_apart ? values : values + s.n;
        struct buffer sums = buffer_new(s.n * sizeof(float));
        memset(sums.data, 0, s.n * sizeof(float));
        for (size_t row = 0; row < s.n_rows; row++) {
            float *at = state + row * s.n;
            plain->scale(at, s.n, s.differs ? decays[row] : s.decay);
            if (s.gives)
                plain->axpy(at, values, s.n, keys[row]);
            plain->axpy(floats(&sums), at, s.n, queries[row]);
        }
        memcpy(out, sums.data, s.n * sizeof(float));
        run_recur(plain, &s, floats(&x));
        checkasm_report(same_buffers(&x, &y, true), "recur", "c",
                        SIZES("%zu rows of %zu", s.n_rows, s.n));
        buffer_free(&sums);
    }
}

/* ---- States of which each number decays for itself ---- */

/* A state and its rates, keys, queries, values, time steps, what is added of
 * the values, room for sums; in one array. */
static size_t
selection_floats(const struct state *s)
{
    return 2 * s->n_rows * s->n + 2 * s->n_rows + 4 * s->n;
}

static float *
selection_of(const struct state *s, float *x, struct lmq_selection *given)
{
    float *rates = x + s->n_rows * s->n, *keys = rates + s->n_rows * s->n;
    float *values = keys + 2 * s->n_rows;

    *given = (struct lmq_selection){
        .rates = rates,
        .k = keys,
        .q = keys + s->n_rows,
        .v = values,
        .steps = values + s->n,
        .skip = values + 2 * s->n,
    };
    return values + 3 * s->n;
}

static void
run_select(const struct lmq_kernels *k, const struct state *s, float *x)
{
    struct lmq_selection given;
    float *out = selection_of(s, x, &given);

    k->select(x, s->n_rows, s->n, &given, out);
}

void
checkasm_select(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < 600; i++) {
        struct state s = some_state(i);
        enum pattern pattern = (enum pattern)(i % PATTERN_COUNT);
        struct buffer x = buffer_floats(selection_floats(&s), pattern);
        struct buffer y = buffer_copy(&x);
        run_select(plain, &s, floats(&x));
        run_select(k, &s, floats(&y));
        checkasm_report(same_buffers(&x, &y, true), "select", k->name,
                        SIZES("%zu rows of %zu, pattern %d", s.n_rows, s.n,
                              (int)pattern));
    }
}

/* Of the kernels that it is made of, a number at a time. */
void
checkasm_naive_select(void)
{
    for (size_t i = 0; i < 200; i++) {
        struct state s = some_state(i);
        struct buffer x = buffer_floats(selection_floats(&s), PLAIN);
        struct buffer y = buffer_copy(&x);
        struct lmq_selection g;
        float *state = floats(&y), *out = selection_of(&s, state, &g);
        for (size_t j = 0; j < s.n; j++) {
            float sum = 0, written = g.v[j] * g.steps[j];
            for (size_t row = 0; row < s.n_rows; row++) {
                float *at = state + row * s.n + j;
                float left = g.rates[row * s.n + j] * g.steps[j];
                plain->exp(&left, 1);
                *at *= left < 0x1p-64f ? 0 : left;
                plain->axpy(at, &written, 1, g.k[row]);
                plain->axpy(&sum, at, 1, g.q[row]);
            }
            plain->axpy(&sum, &g.v[j], 1, g.skip[j]);
            out[j] = sum;
        }
        run_select(plain, &s, floats(&x));
        checkasm_report(same_buffers(&x, &y, true), "select", "c",
                        SIZES("%zu rows of %zu", s.n_rows, s.n));
    }
}

/* exp and the rest of the table over numbers that cover all exponents. */
void
checkasm_exp_everywhere(const struct lmq_kernels *k)
{
    const size_t n = 1 << 15;
    struct buffer x = buffer_new(n * sizeof(float));

    for (size_t which = FIRST_FUNCTION; which < END_FUNCTION; which++) {
        if (!checkasm_start(checkasm_vector_names[which]))
            continue;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)i << 17 | (random_u32() & 0x1ffff);
            memcpy(x.data + 4 * i, &bits, 4);
        }
        struct buffer y = buffer_copy(&x), z = buffer_copy(&x);
        run_vector(plain, which, floats(&y), floats(&x), n);
        run_vector(k, which, floats(&z), floats(&x), n);
        checkasm_report(same_buffers(&y, &z, true),
                        checkasm_vector_names[which], k->name,
                        "all exponents");
    }
    buffer_free(&x);
}

/* ---- The plain C against a naive reading of the contract ---- */

static float
naive_dot(const float *x, const float *y, size_t n)
{
    float s[16] = {0};

    for (size_t i = 0; i < n; i++)
        s[i % 16] = fmaf(x[i], y[i], s[i % 16]);
    for (size_t step = 8; step > 0; step /= 2)
        for (size_t j = 0; j < step; j++)
            s[j] += s[j + step];
    return s[0];
}

void
checkasm_naive_dot(void)
{
    for (size_t i = 0; i < 500; i++) {
        size_t n = 1 + random_below(700);
        struct buffer x = buffer_floats(n, PLAIN), y = buffer_floats(n, PLAIN);
        checkasm_report(same_float(plain->dot(floats(&x), floats(&y), n),
                                   naive_dot(floats(&x), floats(&y), n)),
                        "dot", "c", SIZES("%zu numbers", n));
        buffer_free(&x);
        buffer_free(&y);
    }
}

/* ---- And libm ---- */

static double
true_value(size_t which, double x)
{
    const double pi = 3.14159265358979323846;

    switch (which) {
    case 8: return exp(x);
    case 9: return x / (1 + exp(-x));
    case 10:
        return x / 2 *
               (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case 11: return x / 2 * erfc(-x / sqrt(2));
    case 12: return 30 * tanh(x / 30);
    case 13: return 1 / (1 + exp(-x));
    case 14: return fmax(x, 0) + log1p(exp(-fabs(x)));
    case 15: return fmax(x, 0);
    default: return fmin(fmax(x, -1.5), 1.5);
    }
}

/* The largest errors of exp (in units of the last place) and of the others
 * (against 1 + |x|) must be what kernels.h promises. */
void
checkasm_accuracy(void)
{
    for (size_t which = FIRST_FUNCTION; which < END_FUNCTION; which++) {
        if (!checkasm_start(checkasm_vector_names[which]))
            continue;
        double worst = 0;
        for (size_t i = 0; i < 400000; i++) {
            float range = i % 3 == 0 ? 103.0f : i % 3 == 1 ? 8.0f : 0.1f;
            float x = random_float() * range, y = x;
            run_vector(plain, which, &y, &y, 1);
            double truth = true_value(which, (double)x);
            double unit = 1 + fabs((double)x);
            if (which == 8) {
                if (truth > 3.4028e38)
                    continue;
                unit = ldexp(1.0, (int)fmax(ilogb(truth), -126) - 23);
            }
            worst = fmax(worst, fabs((double)y - truth) / unit);
        }
        checkasm_report(worst < (which == 8 ? 1.5 : 1e-6),
                        checkasm_vector_names[which], "c",
                        SIZES("the worst error, %.3g", worst));
    }
}
