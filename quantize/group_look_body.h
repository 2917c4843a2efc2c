/*
 * group_look_body.h - which of the sixteen steps may be the best of a group of
 * 8 bits, found in integers.
 *
 * Part of group_body.h, where the instruction set has LMQ_ROW_SQUARES(sum, v),
 * to each sum of 32 bits the squares of its two numbers of 16 bits;
 * LMQ_ROW_TURN(v, at), lanes by their numbers; and LMQ_ROW_BITS(v), a bit for
 * each lane below zero.
 *
 * The search takes the step whose error is least, and sums that are known but
 * for a hundredth tell which that is nine times in ten; then nothing else is
 * tried. Else the few that remain are, in best_step()'s very sums. So the bits
 * are the same as if each step had been tried in full.
 */

/*
 * In units of 2^-16 of a step, what a number misses is its lowest 16 bits. They
 * are those of the number at the middle step and of its change from there: as
 * many times its change for a twentieth as STEP(k) is twentieths away.
 *
 * That is off by less than MISS(k) steps: a unit for what is cut off at the
 * middle and half a unit for each twentieth, half of the last of the LOOK_BITS
 * that are squared, and what floats round, here and in best_step(). So the
 * root of a sum of n squares is off by less than sqrt(n) * MISS, and the sum,
 * for 2 * sqrt(a * b) <= a + b, by less than PART(k) of itself, PART(k) of
 * n / 12, which it is about, and the square of PART(k) of that.
 */
#define LOOK_BITS 12
#define MISS(k) (200e-6f + 8e-6f * ((k) < 0 ? -(k) : (k)))
#define PART(k) (3.4642f * MISS(k)) /* by the root of 12 */
#define WIDTH(k) ((LMQ_Q_MAX + OFFSET(0)) / (LMQ_Q_MAX + OFFSET(k)))
#define AREA(k) (WIDTH(k) * WIDTH(k))
#define MOST(k) (AREA(k) * (1 + PART(k)) / (1 << 2 * LOOK_BITS))
#define LEAST(k) (AREA(k) * (1 - PART(k)) / (1 << 2 * LOOK_BITS))
#define USUAL(k) (AREA(k) * PART(k) * (1 + PART(k)) / 12)
#define TWICE(k) (int32_t)(((uint32_t)(k)&0xffff) * 0x10001)

/* Of a sum of squares, in units of the middle step: times this and USUAL added
 * for each number, or taken away, it is no less, or no more, than what
 * best_step() finds. */
static const float sum_most[LANES] = {EACH_STEP(MOST)};
static const float sum_least[LANES] = {EACH_STEP(LEAST)};
static const float sum_usual[LANES] = {EACH_STEP(USUAL)};
static const int32_t twentieths[LANES] = {EACH_STEP(TWICE)};

/* As many as are tried side by side for one group. */
#define FEW_STEPS 4

/* Two numbers at a time, in lanes as wide as the sum of their squares; without
 * a sign where what does not fit is cut off. */
typedef int16_t hvec __attribute__((vector_size(4 * LMQ_ROW_WIDTH)));
typedef uint16_t uhvec __attribute__((vector_size(4 * LMQ_ROW_WIDTH)));
typedef int16_t half_hvec __attribute__((vector_size(2 * LMQ_ROW_WIDTH)));

/* The least lane, in all of them. */
static inline ivec
least_of(ivec v)
{
#if LMQ_ROW_WIDTH == 16
    const ivec number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
    const ivec number = {0, 1, 2, 3, 4, 5, 6, 7};
#endif

    for (int apart = LMQ_ROW_WIDTH / 2; apart > 0; apart /= 2)
        v = smaller(v, (ivec)LMQ_ROW_TURN(v, number ^ apart));
    return v;
}

static inline void
add_misses(ivec sum[PARTS], const ivec number[PARTS], const int16_t *middle,
           const int16_t *change)
{
    int32_t at, by;

    memcpy(&at, middle, sizeof(at));
    memcpy(&by, change, sizeof(by));
    for (size_t p = 0; p < PARTS; p++) {
        uhvec place = (uhvec)((ivec){0} + by) * (uhvec)number[p];
        place += (uhvec)((ivec){0} + at);
        hvec miss = (hvec)place >> (16 - LOOK_BITS);
        sum[p] = (ivec)LMQ_ROW_SQUARES(sum[p], miss);
    }
}

/* Where numbers are at the middle step, and how far they go with a twentieth:
 * the lowest bits of both. */
static inline void
place_numbers(const float *x, size_t n, float per_step, float per_twentieth,
              int16_t *middle, int16_t *change)
{
    const float half_bit = 1 << (15 - LOOK_BITS);

    for (size_t i = 0; i < n; i += LMQ_ROW_WIDTH) {
        vec v;
        memcpy(&v, x + i, sizeof(v));
        ivec at = __builtin_convertvector(v * per_step + half_bit, ivec);
        ivec by = (ivec)(v * per_twentieth + ROUND_MAGIC);
        half_hvec low = __builtin_convertvector(at, half_hvec);
        memcpy(middle + i, &low, sizeof(low));
        low = __builtin_convertvector(by, half_hvec);
        memcpy(change + i, &low, sizeof(low));
    }
}

/* The sums of squares for each step, of groups one behind the other. By itself,
 * or GCC 12 at -O3 unrolls it and shuffles out of registers what a load gives
 * all lanes at once (1.45 in place of 1.18 ns for each number of a row). */
__attribute__((noinline)) static void
sum_misses(const float *x, size_t n, size_t n_groups, const float *per_step,
           const float *per_twentieth, int32_t sums[BATCH][LANES])
{
    int16_t middle[BATCH * LMQ_GROUP_MAX], change[BATCH * LMQ_GROUP_MAX];
    ivec number[PARTS];

    for (size_t g = 0; g < n_groups; g++)
        place_numbers(x + g * n, n, per_step[g], per_twentieth[g],
                      middle + g * n, change + g * n);
    memcpy(number, twentieths, sizeof(number));
    for (size_t g = 0, at = 0; g < n_groups; g++) {
        ivec even[PARTS] = {0}, odd[PARTS] = {0};
        for (size_t end = at + n; at < end; at += 4) {
            /* Two chains hide the latency. */
            add_misses(even, number, middle + at, change + at);
            add_misses(odd, number, middle + at + 2, change + at + 2);
        }
        for (size_t p = 0; p < PARTS; p++)
            even[p] += odd[p];
        memcpy(sums[g], even, sizeof(even));
    }
}

/* A bit for each step that may be the best. */
static inline unsigned
possible_steps(const int32_t sums[LANES], size_t n)
{
    vec sum[PARTS], part, usual;
    ivec bound = (ivec){0} + INT32_MAX;
    unsigned possible = 0;

    for (size_t p = 0, at = 0; p < PARTS; p++, at += LMQ_ROW_WIDTH) {
        ivec whole;
        memcpy(&whole, sums + at, sizeof(whole));
        memcpy(&part, sum_most + at, sizeof(part));
        memcpy(&usual, sum_usual + at, sizeof(usual));
        sum[p] = __builtin_convertvector(whole, vec);
        bound = smaller(bound, (ivec)(sum[p] * part + usual * (float)n));
    }
    bound = least_of(bound);
    for (size_t p = 0, at = 0; p < PARTS; p++, at += LMQ_ROW_WIDTH) {
        memcpy(&part, sum_least + at, sizeof(part));
        memcpy(&usual, sum_usual + at, sizeof(usual));
        vec least = sum[p] * part - usual * (float)n;
        possible |= LMQ_ROW_BITS(least <= (vec)bound) << at;
    }
    return possible;
}

/* The same of groups one behind the other; there are BATCH of `max_abs`. One
 * that is not searched has nothing to choose. */
ALWAYS_INLINE void
look_at_steps(const struct lmq_quant *quant, const float *x, size_t n,
              size_t n_groups, const float *max_abs, unsigned steps[BATCH])
{
    float top[BATCH], per_step[BATCH], per_twentieth[BATCH];
    int32_t sums[BATCH][LANES];

    for (size_t i = 0; i < BATCH; i++)
        top[i] = is_searched(quant, max_abs[i]) ? max_abs[i] : INFINITY;
    for (size_t i = 0; i < BATCH; i += LMQ_ROW_WIDTH) {
        vec v, each;
        memcpy(&v, top + i, sizeof(v));
        each = 65536 * (LMQ_Q_MAX + OFFSET(0)) / v;
        memcpy(per_step + i, &each, sizeof(each));
        each = 65536 / 20.0f / v;
        memcpy(per_twentieth + i, &each, sizeof(each));
    }
    sum_misses(x, n, n_groups, per_step, per_twentieth, sums);
    for (size_t i = 0; i < n_groups; i++)
        steps[i] = is_searched(quant, max_abs[i]) ? possible_steps(sums[i], n)
                                                  : 1;
}

static inline float
inverse_step(unsigned number, float max_abs)
{
    return (search_offsets[number] + LMQ_Q_MAX) / max_abs;
}

/* The best of two to FEW_STEPS, as best_step() sums and compares. */
static inline unsigned
best_of_few(const float *x, size_t n, float max_abs, unsigned steps)
{
    unsigned numbers[FEW_STEPS], n_steps = 0;
    quad inverse = {0}, even = {0}, odd = {0};
    int32_t least = INT32_MAX;

    for (; steps != 0; steps &= steps - 1, n_steps++) {
        numbers[n_steps] = (unsigned)__builtin_ctz(steps);
        inverse[n_steps] = inverse_step(numbers[n_steps], max_abs);
    }
    for (size_t i = 0; i < n; i += 2) {
        quad v = x[i] * inverse;
        quad w = x[i + 1] * inverse;
        v -= v + ROUND_MAGIC - ROUND_MAGIC;
        w -= w + ROUND_MAGIC - ROUND_MAGIC;
        even += v * v;
        odd += w * w;
    }
    iquad keys = (iquad)((even + odd) / (inverse * inverse)) & ~(LANES - 1);
    for (unsigned i = 0; i < n_steps; i++) {
        int32_t key = keys[i] | (int32_t)numbers[i];
        least = key < least ? key : least;
    }
    return (unsigned)least & (LANES - 1);
}

static inline unsigned
best_of_possible(const float *x, size_t n, float max_abs, unsigned steps)
{
    if ((steps & (steps - 1)) == 0)
        return (unsigned)__builtin_ctz(steps);
    if (__builtin_popcount(steps) <= FEW_STEPS)
        return best_of_few(x, n, max_abs, steps);
    return best_step(x, n, max_abs, (float)LMQ_Q_MAX, search_offsets,
                     LMQ_BITS_MAX);
}

/* The scales of groups one behind the other. */
ALWAYS_INLINE void
search_scales(const struct lmq_quant *quant, const float *x, size_t n,
              size_t n_groups, const float *max_abs, float *scales)
{
    unsigned steps[BATCH];
    float inverse[BATCH] = {0};
    struct factor_sums sums[BATCH];

    look_at_steps(quant, x, n, n_groups, max_abs, steps);
    for (size_t i = 0; i < n_groups; i++)
        inverse[i] = search_offsets[best_of_possible(x + i * n, n, max_abs[i],
                                                     steps[i])];
    for (size_t i = 0; i < BATCH; i += LMQ_ROW_WIDTH) {
        vec v, w;
        memcpy(&v, inverse + i, sizeof(v));
        memcpy(&w, max_abs + i, sizeof(w));
        v = (v + LMQ_Q_MAX) / w;
        memcpy(inverse + i, &v, sizeof(v));
    }
    for (size_t i = 0; i < n_groups; i++)
        sum_factor(x + i * n, n, inverse[i], LMQ_BITS_MAX, &sums[i]);
    for (size_t i = 0; i < n_groups; i++)
        scales[i] = is_searched(quant, max_abs[i])
                        ? sum_lanes(sums[i].xq) / sum_lanes(sums[i].qq)
                        : max_abs[i] / LMQ_Q_MAX;
}
