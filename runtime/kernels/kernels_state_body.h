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
              const float *decay, size_t step, const float *k, const float *v,
              const float *q, float *o, bool is_whole)
{
    const size_t n_vectors = is_whole ? STATE_VECTORS : 1;
    vf values[STATE_VECTORS], sums[STATE_VECTORS];

    LMQ_UNROLL for (size_t i = 0; i < n_vectors; i++) {
        values[i] = v == NULL ? vf_set1(0.0f)
                              : load_some(v + i * LANES, n - i * LANES);
        sums[i] = vf_set1(0.0f);
    }
    for (size_t row = 0; row < n_rows; row++) {
        float *s = state + row * stride;
        const vf left = vf_set1(decay[row * step]);
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
          size_t step, const float *k, const float *v, const float *q,
          float *o)
{
    const size_t width = STATE_VECTORS * LANES;
    size_t i = 0;

    for (; i + width <= n; i += width)
        recur_columns(state + i, n_rows, n, width, decay, step, k,
                      v == NULL ? NULL : v + i, q, o + i, true);
    for (; i < n; i += LANES)
        recur_columns(state + i, n_rows, n, n - i < LANES ? n - i : LANES,
                      decay, step, k, v == NULL ? NULL : v + i, q, o + i,
                      false);
}

static void
recur(float *state, size_t n_rows, size_t n, const float *decay, size_t step,
      const float *k, const float *v, const float *q, float *o)
{
    if (v == NULL)
        recur_all(state, n_rows, n, decay, step, NULL, NULL, q, o);
    else
        recur_all(state, n_rows, n, decay, step, k, v, q, o);
}
