/*
 * kernels_state_body.h - what a token does to a state: matrices that recurrent
 * layers remember.
 *
 * A body for kernels_vector_body.h.
 */

/* Columns whose sums stay in registers while all rows go by: as many as leave
 * room for the values that they are given. */
#define STATE_VECTORS (REGISTERS < 4 ? 4 / REGISTERS : 1)

/* n columns, STATE_VECTORS * LANES at most, of rows that are `stride` apart. */
LMQ_INLINE void
recur_columns(float *state, size_t n_rows, size_t stride, size_t n,
              const float *decay, bool differs, const float *k,
              const float *v, const float *q, float *o, bool is_whole)
{
    const vf same = vf_set1(decay[0]);
    const size_t n_vectors = is_whole ? STATE_VECTORS : 1;
    vf values[STATE_VECTORS], sums[STATE_VECTORS];

    LMQ_UNROLL for (size_t i = 0; i < n_vectors; i++) {
        values[i] = v == NULL ? vf_set1(0.0f)
                              : load_some(v + i * LANES, n - i * LANES);
        sums[i] = vf_set1(0.0f);
    }
    for (size_t row = 0; row < n_rows; row++) {
        float *s = state + row * stride;
        const vf left = differs ? vf_set1(decay[row]) : same;
        const vf asked = vf_set1(q[row]);
        const vf given = vf_set1(v == NULL ? 0.0f : k[row]);
        LMQ_UNROLL for (size_t i = 0; i < n_vectors; i++) {
            float *at = s + i * LANES;
            vf x = is_whole ? vf_load(at) : load_some(at, n);
            x = vf_mul(x, left);
            if (v != NULL)
                x = vf_fma(given, values[i], x);
            sums[i] = vf_fma(asked, x, sums[i]);
            if (is_whole)
                vf_store(at, x);
            else
                store_some(at, x, n);
        }
    }
    LMQ_UNROLL for (size_t i = 0; i < n_vectors; i++)
        store_some(o + i * LANES, sums[i], n - i * LANES);
}

LMQ_INLINE void
recur_all(float *state, size_t n_rows, size_t n, const float *decay,
          bool differs, const float *k, const float *v, const float *q,
          float *o)
{
    const size_t step = STATE_VECTORS * LANES;
    size_t i = 0;

    for (; i + step <= n; i += step)
        recur_columns(state + i, n_rows, n, step, decay, differs, k,
                      v == NULL ? NULL : v + i, q, o + i, true);
    for (; i < n; i += LANES)
        recur_columns(state + i, n_rows, n, n - i < LANES ? n - i : LANES,
                      decay, differs, k, v == NULL ? NULL : v + i, q, o + i,
                      false);
}

/* Each kind of its own: one decay stays in a register. */
static void
recur(float *state, size_t n_rows, size_t n, const float *decay, bool differs,
      const float *k, const float *v, const float *q, float *o)
{
    if (v == NULL && differs)
        recur_all(state, n_rows, n, decay, true, NULL, NULL, q, o);
    else if (v == NULL)
        recur_all(state, n_rows, n, decay, false, NULL, NULL, q, o);
    else if (differs)
        recur_all(state, n_rows, n, decay, true, k, v, q, o);
    else
        recur_all(state, n_rows, n, decay, false, k, v, q, o);
}

/* ---- Each number with a decay of its own ---- */

/* So little counts as nothing: products with it would be subnormal numbers, for
 * which processors take a hundred times as long. */
#define LEAST_LEFT 0x1p-64f

/* Columns from `at` on, LANES or n of them. */
LMQ_INLINE void
select_columns(float *state, size_t n_rows, size_t stride, size_t at, size_t n,
               const struct lmq_selection *given, float *o)
{
    const vf v = load_some(given->v + at, n);
    const vf steps = load_some(given->steps + at, n);
    const vf written = vf_mul(v, steps);
    vf sum = vf_set1(0.0f);

    for (size_t row = 0; row < n_rows; row++) {
        float *s = state + row * stride + at;
        vf rates = load_some(given->rates + row * stride + at, n);
        vf left = vf_exp(vf_mul(rates, steps));
        left = vf_less(left, vf_set1(LEAST_LEFT), vf_set1(0.0f), left);
        vf x = vf_mul(load_some(s, n), left);
        x = vf_fma(vf_set1(given->k[row]), written, x);
        sum = vf_fma(vf_set1(given->q[row]), x, sum);
        store_some(s, x, n);
    }
    sum = vf_fma(load_some(given->skip + at, n), v, sum);
    store_some(o + at, sum, n);
}

static void
select_all(float *state, size_t n_rows, size_t n,
           const struct lmq_selection *given, float *o)
{
    size_t at = 0;

    for (; at + LANES <= n; at += LANES)
        select_columns(state, n_rows, n, at, LANES, given, o);
    if (at < n)
        select_columns(state, n_rows, n, at, n - at, given, o);
}
