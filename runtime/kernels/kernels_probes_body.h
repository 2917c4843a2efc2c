/*
 * kernels_probes_body.h - what the instruction set can do at most; a part of
 * kernels_vector_body.h.
 */

/* Chains of independent sums, as many as hide the latency; they differ, lest
 * the compiler computes one for all. */
static double
peak_f32(size_t rounds)
{
    float start[LMQ_PEAK_REGISTERS * LMQ_WIDTH], total = 0;
    vr sum[LMQ_PEAK_REGISTERS];
    const vr a = vr_set1(1.0f), b = vr_set1(0x1p-20f);

    for (size_t i = 0; i < LMQ_PEAK_REGISTERS * LMQ_WIDTH; i++)
        start[i] = (float)i;
    LMQ_UNROLL for (size_t i = 0; i < LMQ_PEAK_REGISTERS; i++)
        sum[i] = vr_load(start + i * LMQ_WIDTH);
    for (size_t round = 0; round < rounds; round++)
        LMQ_UNROLL for (size_t i = 0; i < LMQ_PEAK_REGISTERS; i++)
            sum[i] = vr_fma(sum[i], a, b);
    for (size_t i = 0; i < LMQ_PEAK_REGISTERS; i++) {
        vr_store(start, sum[i]);
        total += start[0];
    }
    /* Never less than 0, but the compiler does not know. */
    return (double)(rounds * LMQ_PEAK_REGISTERS * LMQ_WIDTH * 2) +
           (total < 0 ? 1 : 0);
}

LMQ_INLINE float
read_streams(const void *memory, size_t n_bytes, bool is_one, size_t ahead)
{
    const size_t quarter = n_bytes / sizeof(float) / 4 / LANES * LANES;
    const size_t apart = is_one ? LANES : quarter;
    const float *p = memory;
    vf m[4];

    LMQ_UNROLL for (size_t j = 0; j < 4; j++)
        m[j] = vf_set1(0.0f);
    for (size_t i = 0; i < quarter; i += LANES)
        LMQ_UNROLL for (size_t j = 0; j < 4; j++) {
            const float *at = p + j * apart + (is_one ? 4 * i : i);
            m[j] = vf_max_bits(m[j], vf_load(at));
            if (ahead > 0)
                lmq_prefetch(at, ahead);
        }
    float lane[LANES], result = 0;
    vf_store(lane, vf_max_bits(vf_max_bits(m[0], m[1]),
                               vf_max_bits(m[2], m[3])));
    for (size_t j = 0; j < LANES; j++)
        result += lane[j];
    return result;
}

/* Machines differ in how many streams their prefetchers serve best, and in
 * whether asking for lines before they do gives more. */
static float
read_memory(const void *memory, size_t n_bytes, bool is_one, bool ahead)
{
    if (is_one)
        return ahead ? read_streams(memory, n_bytes, true, LMQ_AHEAD_BYTES)
                     : read_streams(memory, n_bytes, true, 0);
    return ahead ? read_streams(memory, n_bytes, false, LMQ_AHEAD_BYTES)
                 : read_streams(memory, n_bytes, false, 0);
}
