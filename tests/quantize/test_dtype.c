/*
 * test_dtype.c - conversions between number types, against arithmetic on
 * doubles that shares nothing with dtype.c.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "quantize/dtype.h"
#include "tests/build/suite.h"

/* sign, `e` exponent bits, `m` mantissa bits, IEEE style. */
static double
decode(unsigned bits, int e, int m)
{
    int exponent = (int)(bits >> m) & ((1 << e) - 1);
    int bias = (1 << (e - 1)) - 1;
    double mantissa = (double)(bits & ((1u << m) - 1));
    double sign = bits >> (e + m) & 1 ? -1 : 1;

    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - m);
    return sign * ldexp(mantissa + (1 << m), exponent - bias - m);
}

static bool
is_special(unsigned bits, int e, int m)
{
    return (bits >> m & ((1u << e) - 1)) == (1u << e) - 1;
}

static void
assert_same(float found, double wanted, unsigned bits)
{
    REQUIRE((double)found == wanted && !signbit(found) == !signbit(wanted),
            "%#x: %.9g, expected %.17g", bits, (double)found, wanted);
}

START_TEST(every_half_has_its_value)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = lmq_f16_to_f32((uint16_t)bits);
        if (!is_special(bits, 5, 10))
            assert_same(value, decode(bits, 5, 10), bits);
        else if ((bits & 0x3ff) == 0)
            ck_assert(isinf(value) && (value < 0) == (bits >> 15 != 0));
        else
            ck_assert(isnan(value));
    }
}
END_TEST

START_TEST(every_half_comes_back)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint16_t back = lmq_f32_to_f16(lmq_f16_to_f32((uint16_t)bits));
        if (is_special(bits, 5, 10) && (bits & 0x3ff) != 0)
            ck_assert((back & 0x7c00) == 0x7c00 && (back & 0x3ff) != 0);
        else
            REQUIRE(back == bits, "%#x becomes %#x", bits, back);
    }
}
END_TEST

/* Around every midpoint between two neighbouring halves. */
START_TEST(halves_are_rounded_to_nearest_ties_to_even)
{
    for (unsigned bits = 0; bits < 0x7bff; bits++) {
        float low = lmq_f16_to_f32((uint16_t)bits);
        float high = lmq_f16_to_f32((uint16_t)(bits + 1));
        float middle = (low + high) / 2;
        unsigned even = bits % 2 == 0 ? bits : bits + 1;
        REQUIRE(lmq_f32_to_f16(middle) == even &&
                    lmq_f32_to_f16(nextafterf(middle, 0)) == bits &&
                    lmq_f32_to_f16(nextafterf(middle, 1e9f)) == bits + 1 &&
                    lmq_f32_to_f16(-middle) == (even | 0x8000),
                "between %#x and the next", bits);
    }
}
END_TEST

START_TEST(halves_overflow_to_infinity_and_vanish_to_zero)
{
    ck_assert_uint_eq(lmq_f32_to_f16(65504), 0x7bff);
    ck_assert_uint_eq(lmq_f32_to_f16(65519.996f), 0x7bff);
    ck_assert_uint_eq(lmq_f32_to_f16(65520), 0x7c00);
    ck_assert_uint_eq(lmq_f32_to_f16(1e30f), 0x7c00);
    ck_assert_uint_eq(lmq_f32_to_f16(-INFINITY), 0xfc00);
    ck_assert_uint_eq(lmq_f32_to_f16(0x1p-25f), 0);
    ck_assert_uint_eq(lmq_f32_to_f16(-0x1p-25f), 0x8000);
    ck_assert_uint_eq(lmq_f32_to_f16(0x1.000002p-25f), 1);
    ck_assert_uint_eq(lmq_f32_to_f16(0x1p-140f), 0);
    ck_assert_uint_eq(lmq_f32_to_f16(NAN) & 0x7e00, 0x7e00);
}
END_TEST

START_TEST(every_bfloat_is_the_upper_half_of_a_float)
{
    unsigned char bytes[2];
    float value;

    for (unsigned bits = 0; bits < 65536; bits++) {
        lmq_store_u16le(bytes, (uint16_t)bits);
        lmq_dtype_to_f32(LMQ_DTYPE_BF16, bytes, &value, 1);
        if (!is_special(bits, 8, 7)) {
            assert_same(value, decode(bits, 8, 7), bits);
            assert_same(lmq_bf16_to_f32((uint16_t)bits), value, bits);
            assert_same(lmq_dtype_round(LMQ_DTYPE_BF16, value), value, bits);
            ck_assert_uint_eq(lmq_f32_to_bf16(value), bits);
        } else
            ck_assert(isnan(value) == ((bits & 0x7f) != 0));
    }
}
END_TEST

START_TEST(every_eight_bit_float_has_its_value)
{
    unsigned char byte;
    float value;

    for (unsigned bits = 0; bits < 256; bits++) {
        byte = (unsigned char)bits;
        lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, &byte, &value, 1);
        if ((bits & 0x7f) == 0x7f)
            ck_assert(isnan(value));
        else
            assert_same(value, decode(bits, 4, 3), bits);
        lmq_dtype_to_f32(LMQ_DTYPE_F8_E5M2, &byte, &value, 1);
        if (!is_special(bits, 5, 2))
            assert_same(value, decode(bits, 5, 2), bits);
        else
            ck_assert(isnan(value) == ((bits & 3) != 0));
        lmq_dtype_to_f32(LMQ_DTYPE_F8_E8M0, &byte, &value, 1);
        if (bits == 255)
            ck_assert(isnan(value));
        else
            assert_same(value, ldexp(1, (int)bits - 127), bits);
    }
}
END_TEST

START_TEST(whole_numbers_keep_their_sign_and_size)
{
    static const struct {
        enum lmq_dtype type;
        uint64_t bits;
        float value;
    } cases[] = {
        {LMQ_DTYPE_I8, 0x80, -128},
        {LMQ_DTYPE_U8, 0x80, 128},
        {LMQ_DTYPE_I16, 0x8000, -32768},
        {LMQ_DTYPE_U16, 0x8000, 32768},
        {LMQ_DTYPE_I32, 0x80000000, -2147483648.0f},
        {LMQ_DTYPE_U32, 0x80000000, 2147483648.0f},
        {LMQ_DTYPE_I64, UINT64_MAX, -1},
        {LMQ_DTYPE_U64, UINT64_MAX, 0x1p64f},
        {LMQ_DTYPE_I32, 16777217, 16777216}, /* rounds to even */
        {LMQ_DTYPE_BOOL, 1, 1},
    };
    unsigned char bytes[8];
    float value;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lmq_store_u64le(bytes, cases[i].bits);
        lmq_dtype_to_f32(cases[i].type, bytes, &value, 1);
        ck_assert_msg(value == cases[i].value, "%s",
                      lmq_dtype_name(cases[i].type));
    }
}
END_TEST

START_TEST(doubles_are_rounded_to_nearest)
{
    static const struct {
        double wide;
        float value;
    } cases[] = {
        {1.5, 1.5f},
        {1 + 0x1p-24, 1},                 /* a tie */
        {1 + 0x1p-24 + 0x1p-40, 1 + 0x1p-23f},
        {1e300, INFINITY},
        {-1e-300, -0.0f},
    };
    unsigned char bytes[8];
    uint64_t bits;
    float value;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memcpy(&bits, &cases[i].wide, sizeof(bits));
        lmq_store_u64le(bytes, bits);
        lmq_dtype_to_f32(LMQ_DTYPE_F64, bytes, &value, 1);
        ck_assert_mem_eq(&value, &cases[i].value, sizeof(value));
    }
}
END_TEST

/* The vectorized loops and their ends do the same. */
START_TEST(many_elements_are_converted_as_one_is)
{
    unsigned char bytes[8 * 67 + 1];
    struct random random = {random_seed()};
    float together[67], alone;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)random_u64(&random);
    for (int type = 0; type < LMQ_DTYPE_COUNT; type++) {
        size_t size = lmq_dtype_size((enum lmq_dtype)type);
        /* at an odd address */
        lmq_dtype_to_f32((enum lmq_dtype)type, bytes + 1, together, 67);
        for (size_t i = 0; i < 67; i++) {
            lmq_dtype_to_f32((enum lmq_dtype)type, bytes + 1 + i * size,
                             &alone, 1);
            ck_assert_msg(memcmp(&alone, &together[i], 4) == 0 ||
                              (isnan(alone) && isnan(together[i])),
                          "%s", lmq_dtype_name((enum lmq_dtype)type));
        }
    }
}
END_TEST

START_TEST(types_know_their_size_and_kind)
{
    ck_assert_str_eq(lmq_dtype_name(LMQ_DTYPE_BF16), "bf16");
    for (int i = 0; i < LMQ_DTYPE_COUNT; i++) {
        enum lmq_dtype type = (enum lmq_dtype)i;
        ck_assert_ptr_nonnull(lmq_dtype_name(type));
        size_t size = lmq_dtype_size(type);
        ck_assert(size == 1 || size == 2 || size == 4 || size == 8);
        ck_assert_int_eq(lmq_dtype_is_float(type),
                         type <= LMQ_DTYPE_F8_E5M2 ||
                             type == LMQ_DTYPE_F8_E8M0);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        every_half_has_its_value,
        every_half_comes_back,
        halves_are_rounded_to_nearest_ties_to_even,
        halves_overflow_to_infinity_and_vanish_to_zero,
        every_bfloat_is_the_upper_half_of_a_float,
        every_eight_bit_float_has_its_value,
        whole_numbers_keep_their_sign_and_size,
        doubles_are_rounded_to_nearest,
        many_elements_are_converted_as_one_is,
        types_know_their_size_and_kind,
    };

    return RUN_SUITE("dtype", tests);
}
