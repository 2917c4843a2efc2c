/*
 * group_look_body.h - which of the sixteen steps may be the best of a group of
 * 8 bits, found in integers.
 *
 * Part of group_body.h, where the instruction set has LMQ_ROW_SQUARES(sum, v):
 * to each sum of 32 bits the squares of its two numbers of 16 bits. The search
 * takes the step whose error is least, and sums that are known but for a
 * hundredth tell which that is nine times in ten; then nothing else is tried.
 * Else the few that remain are, in search_scale()'s very sums. So the bits are
 * the same as if each step had been tried in full.
 */

/*
 * In units of 2^-16 of a step, what a number misses is its lowest 16 bits. They
 * are those of the number at the middle step and of its change from there: as
 * many times its change for a twentieth as STEP(k) is twentieths away.
 *
 * That is off by less than MISS(k) steps: a unit for what is cut off at the
 * middle and half a unit for each twentieth, half of the last of the LOOK_BITS
 * that are squared, and what floats round, here and in search_scale(). So the
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
 * search_scale() finds. */
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

/* The sums of squares for each step. By itself, or GCC 12 at -O3 unrolls it
 * and shuffles out of registers what a load gives all lanes at once (1.45 in
 * place of 1.18 ns for each number of a row). */
__attribute__((noinline)) static void
sum_misses(const float *x, size_t n, float max_abs, int32_t sums[LANES])
{
    const float per_step = 65536 * (LMQ_Q_MAX + OFFSET(0)) / max_abs;
    const float per_twentieth = 65536 / 20.0f / max_abs;
    const float half_bit = 1 << (15 - LOOK_BITS);
    int16_t middle[LMQ_GROUP_MAX], change[LMQ_GROUP_MAX];
    ivec number[PARTS], even[PARTS] = {0}, odd[PARTS] = {0};

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
    memcpy(number, twentieths, sizeof(number));
    for (size_t i = 0; i < n; i += 4) { /* two chains hide the latency */
        add_misses(even, number, middle + i, change + i);
        add_misses(odd, number, middle + i + 2, change + i + 2);
    }
    for (size_t p = 0; p < PARTS; p++)
        even[p] += odd[p];
    memcpy(sums, even, sizeof(even));
}

/* A bit for each step that may be the best, of a group in each lane. */
static inline void
possible_steps(const int32_t sums[LANES][BATCH], size_t n,
               unsigned steps[BATCH])
{
    for (size_t at = 0; at < BATCH; at += LMQ_ROW_WIDTH) {
        ivec sum, bound = (ivec){0} + INT32_MAX, bit = {0}, possible = {0};
        for (size_t i = 0; i < LANES; i++) {
            memcpy(&sum, &sums[i][at], sizeof(sum));
            vec most = __builtin_convertvector(sum, vec) * sum_most[i];
            most += sum_usual[i] * (float)n;
            bound = smaller(bound, (ivec)most);
        }
        bit += 1;
        for (size_t i = 0; i < LANES; i++, bit += bit) {
            memcpy(&sum, &sums[i][at], sizeof(sum));
            vec least = __builtin_convertvector(sum, vec) * sum_least[i];
            least -= sum_usual[i] * (float)n;
            possible |= (least <= (vec)bound) & bit;
        }
        memcpy(&steps[at], &possible, sizeof(possible));
    }
}

/* The same for groups one behind the other. One that is not searched has sums
 * of nothing, with which all are possible. */
static inline void
look_at_steps(const struct lmq_quant *quant, const float *x, size_t n,
              size_t n_groups, const float *max_abs, unsigned steps[BATCH])
{
    int32_t sums[LANES][BATCH] = {{0}}, of_group[LANES];

    for (size_t i = 0; i < n_groups; i++)
        if (is_searched(quant, max_abs[i])) {
            sum_misses(x + i * n, n, max_abs[i], of_group);
            for (size_t k = 0; k < LANES; k++)
                sums[k][i] = of_group[k];
        }
    possible_steps((const int32_t (*)[BATCH])sums, n, steps);
}

static inline float
inverse_step(unsigned number, float max_abs)
{
    return (search_offsets[number] + LMQ_Q_MAX) / max_abs;
}

/* The best of two to FEW_STEPS, as search_scale() sums and compares. */
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

/* The scale of a group of which this is known. */
static inline float
scale_of_possible(const float *x, size_t n, float max_abs, unsigned steps)
{
    unsigned best = (steps & (steps - 1)) == 0
                        ? (unsigned)__builtin_ctz(steps)
                        : best_of_few(x, n, max_abs, steps);

    return best_factor(x, n, inverse_step(best, max_abs), LMQ_BITS_MAX);
}
