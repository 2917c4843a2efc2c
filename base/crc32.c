/*
 * crc32.c - zlib's sum, and a faster way to it where the processor multiplies
 * polynomials.
 *
 * The sum is a remainder, so bytes may be replaced by shorter ones with the
 * same remainder: sixteen bytes that stand d bits ahead are multiplied by x^d
 * mod P, half by half, and added to what stands there. What is left at last are
 * sixteen bytes, of which zlib makes the sum.
 */
#include "config.h"

#include "base/crc32.h"

#include <string.h>
#include <zlib.h>

#include "base/size.h"
#include "base/threads/cpu.h"

/* zlib counts in unsigned int. */
#define STEP ((size_t)1 << 30)

static uint32_t
sum_plain(uint32_t crc, const unsigned char *p, size_t n)
{
    uLong sum = crc;

    for (size_t step; n > 0; p += step, n -= step) {
        step = lmq_size_min(n, STEP);
        sum = crc32(sum, p, (uInt)step);
    }
    return (uint32_t)sum;
}

#if defined(__x86_64__)

#include <immintrin.h>

#define FOLDING __attribute__((target("pclmul,sse4.1")))

/* Fewer are not worth it. */
#define FOLDED_LEAST 128

/* Four of sixteen bytes side by side hide how long a product takes. */
#define SIDES 4
#define ROUND (16 * SIDES)

static FOLDING __m128i
load(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* x times the factors of its halves. */
static FOLDING __m128i
ahead(__m128i x, __m128i factors)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(x, factors, 0x00),
                         _mm_clmulepi64_si128(x, factors, 0x11));
}

#ifdef LMQ_HAVE_AVX512VNNI

#define WIDE __attribute__((target("avx512f,vpclmulqdq")))

/* Fewer are not worth it, for vectors of four sides each. */
#define WIDE_ROUND (4 * ROUND)
#define WIDE_LEAST (4 * WIDE_ROUND)

static WIDE __m512i
load_wide(const unsigned char *p)
{
    return _mm512_loadu_si512((const void *)p);
}

static WIDE __m512i
ahead_wide(__m512i x, __m512i factors)
{
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(x, factors, 0x00),
                            _mm512_clmulepi64_epi128(x, factors, 0x11));
}

/* What the sides come to behind n bytes, a multiple of WIDE_ROUND, of which
 * they are the first ones. */
static WIDE void
fold_wide(__m128i x[SIDES], const unsigned char *p, size_t n)
{
    const __m512i by_wide_round =
        _mm512_broadcast_i32x4(_mm_set_epi64x(0x1322d1430, 0x11542778a));
    const __m512i by_round =
        _mm512_broadcast_i32x4(_mm_set_epi64x(0x1c6e41596, 0x154442bd4));
    __m512i v[4] = {load_wide((const unsigned char *)x)};

    for (size_t i = 1; i < 4; i++)
        v[i] = load_wide(p + ROUND * i);
    for (size_t at = WIDE_ROUND; at < n; at += WIDE_ROUND)
        for (size_t i = 0; i < 4; i++)
            v[i] = _mm512_xor_si512(ahead_wide(v[i], by_wide_round),
                                    load_wide(p + at + ROUND * i));
    for (size_t i = 1; i < 4; i++)
        v[0] = _mm512_xor_si512(ahead_wide(v[0], by_round), v[i]);
    _mm512_storeu_si512(x, v[0]);
}

/* As far as wide vectors go: so many bytes. */
static size_t
take_wide(__m128i x[SIDES], const unsigned char *p, size_t n)
{
    if (n < WIDE_LEAST || lmq_cpu() < LMQ_CPU_AVX512VNNI ||
        !__builtin_cpu_supports("vpclmulqdq"))
        return ROUND;
    n = n / WIDE_ROUND * WIDE_ROUND;
    fold_wide(x, p, n);
    return n;
}

#else

static size_t
take_wide(__m128i x[SIDES], const unsigned char *p, size_t n)
{
    (void)x;
    (void)p;
    (void)n;
    return ROUND;
}

#endif

/* All but the last n % 16 bytes. Bits are in reverse: x^(d + 32) and x^(d - 32)
 * mod P, d = 512 and 128 (and 2048 above), are one bit to the left for that. */
static FOLDING uint32_t
sum_folded(uint32_t crc, const unsigned char *p, size_t n)
{
    const __m128i by_round = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    unsigned char rest[16];
    __m128i x[SIDES];

    for (size_t i = 0; i < SIDES; i++)
        x[i] = load(p + 16 * i);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)~crc));
    size_t taken = take_wide(x, p, n);
    for (p += taken, n -= taken; n >= ROUND; p += ROUND, n -= ROUND)
        for (size_t i = 0; i < SIDES; i++)
            x[i] = _mm_xor_si128(ahead(x[i], by_round), load(p + 16 * i));
    for (size_t i = 1; i < SIDES; i++)
        x[0] = _mm_xor_si128(ahead(x[0], by_one), x[i]);
    for (; n >= 16; p += 16, n -= 16)
        x[0] = _mm_xor_si128(ahead(x[0], by_one), load(p));
    memcpy(rest, &x[0], sizeof(rest));
    /* zlib begins with all bits set, which were added already. */
    return sum_plain(UINT32_MAX, rest, sizeof(rest));
}

uint32_t
lmq_crc32(uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    if (n >= FOLDED_LEAST && lmq_cpu() != LMQ_CPU_C &&
        __builtin_cpu_supports("pclmul")) {
        crc = sum_folded(crc, p, n);
        p += n / 16 * 16;
        n %= 16;
    }
    return sum_plain(crc, p, n);
}

#else

uint32_t
lmq_crc32(uint32_t crc, const void *bytes, size_t n)
{
    return sum_plain(crc, bytes, n);
}

#endif
