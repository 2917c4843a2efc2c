/*
 * test_emulate.c - what other programs would compute: numbers rounded as they
 * store them, and judged beside models.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/blocks.h"
#include "runtime/emulate.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/validate/validate_fable.h"

#define N 32

/* ---- Blocks, as ggml writes them ---- */

/* Five bits of 32 integers: low ones as nibbles, then the highest ones. */
static void
put_nibbles(struct bytes *block, const int *q, bool has_fifth)
{
    unsigned char nibbles[N / 2];
    uint32_t high = 0;

    for (int i = 0; i < N; i++)
        high |= (uint32_t)(q[i] >> 4) << i;
    if (has_fifth)
        put_u32(block, high);
    for (int i = 0; i < N / 2; i++)
        nibbles[i] = (unsigned char)((q[i] & 15) | (q[i + N / 2] & 15) << 4);
    put(block, nibbles, sizeof(nibbles));
}

static void
put_signed(struct bytes *block, const float *x, int bits)
{
    int q[N], zero = 1 << (bits - 1);
    float extreme = 0;

    for (int i = 0; i < N; i++)
        extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
    float d = extreme / (float)-zero, id = d != 0 ? 1 / d : 0;
    for (int i = 0; i < N; i++) {
        q[i] = (int)(x[i] * id + ((float)zero + 0.5f));
        q[i] = q[i] > 2 * zero - 1 ? 2 * zero - 1 : q[i];
    }
    put_u16(block, lmq_f32_to_f16(d));
    put_nibbles(block, q, bits == 5);
}

static void
put_affine(struct bytes *block, const float *x, int bits)
{
    int q[N], steps = (1 << bits) - 1;
    float least = x[0], most = x[0];

    for (int i = 0; i < N; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    float d = (most - least) / (float)steps, id = d != 0 ? 1 / d : 0;
    for (int i = 0; i < N; i++) {
        q[i] = (int)((x[i] - least) * id + 0.5f);
        q[i] = q[i] > steps ? steps : q[i];
    }
    put_u16(block, lmq_f32_to_f16(d));
    put_u16(block, lmq_f32_to_f16(least));
    put_nibbles(block, q, bits == 5);
}

static void
put_q8_0(struct bytes *block, const float *x, int bits)
{
    float most = 0;

    (void)bits;
    for (int i = 0; i < N; i++)
        most = fmaxf(most, fabsf(x[i]));
    float d = most / 127, id = d != 0 ? 1 / d : 0;
    put_u16(block, lmq_f32_to_f16(d));
    for (int i = 0; i < N; i++) {
        int8_t q = (int8_t)roundf(x[i] * id);
        put(block, &q, 1);
    }
}

static const struct {
    enum lmq_emulation emulation;
    uint32_t type; /* of GGUF */
    void (*put)(struct bytes *block, const float *x, int bits);
    int bits;
} kinds[] = {
    {LMQ_EMULATE_Q8_0, 8, put_q8_0, 8},
    {LMQ_EMULATE_Q5_0, 6, put_signed, 5},
    {LMQ_EMULATE_Q5_1, 7, put_affine, 5},
    {LMQ_EMULATE_Q4_0, 2, put_signed, 4},
    {LMQ_EMULATE_Q4_1, 3, put_affine, 4},
};

static struct lmq_rounding
rounding_of(enum lmq_emulation emulation, uint32_t dim, uint64_t n_cols)
{
    const struct lmq_hparams hparams = {.dim = dim};
    char name[] = "w";
    const struct lmq_tensor tensor = {.name = name,
                                      .stored_name = name,
                                      .place = {.role = LMQ_ROLE_ATTN_Q},
                                      .n_dims = 2,
                                      .n_rows = 2,
                                      .n_cols = n_cols};
    struct lmq_rounding rounding;
    struct lmq_error err;

    ck_assert_msg(lmq_emulation_find(emulation, &hparams, &tensor, &rounding,
                                     &err) == LMQ_OK,
                  "%s", err.message);
    return rounding;
}

START_TEST(weights_are_what_blocks_of_ggml_hold)
{
    struct random random = {random_seed()};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const struct lmq_block_type *type = lmq_block_type(kinds[k].type);
        struct lmq_rounding rounding = rounding_of(kinds[k].emulation, N, N);
        ck_assert_uint_eq(rounding.block, type->n);
        ck_assert_uint_eq(rounding.block_bytes, type->size);
        for (int round = 0; round < 2000; round++) {
            struct bytes block = {0};
            float x[N], y[N];
            double size = exp2((double)random_below(&random, 24) - 12);
            for (int i = 0; i < N; i++)
                x[i] = round == 0 ? 0
                                  : (float)(size * random_normal(&random));
            kinds[k].put(&block, x, kinds[k].bits);
            ck_assert_uint_eq(block.n, type->size);
            lmq_blocks_decode(type, block.at, 1, y);
            lmq_round_rows(rounding.weights, rounding.block, x, 1, N);
            for (int i = 0; i < N; i++)
                REQUIRE(x[i] == y[i], "%s: %a, not %a", type->name,
                        (double)x[i], (double)y[i]);
            bytes_free(&block);
        }
    }
}
END_TEST

START_TEST(runq_has_groups_that_divide_the_width)
{
    struct lmq_rounding rounding = rounding_of(LMQ_EMULATE_RUNQ, 288, 768);
    float x[64] = {127, 2.5f, 3.5f, -2.5f}, y[64] = {127, 2.5f, -0.5f};

    ck_assert_uint_eq(rounding.block, 32);
    rounding = rounding_of(LMQ_EMULATE_RUNQ, 128, 256);
    ck_assert_uint_eq(rounding.block, 64);
    ck_assert_uint_eq(rounding.block_bytes, 68);
    rounding.weights(x, 64); /* ties to even */
    ck_assert(x[0] == 127 && x[1] == 2 && x[2] == 4 && x[3] == -2);
    rounding.operand(y, 64); /* and away from zero */
    ck_assert(y[0] == 127 && y[1] == 3 && y[2] == -1);
}
END_TEST

START_TEST(activations_are_named_with_their_groups)
{
    const struct {
        enum lmq_emulation emulation;
        uint32_t dim;
        const char *name;
    } cases[] = {
        {LMQ_EMULATE_RUNQ, 128, "q8/64"}, {LMQ_EMULATE_RUNQ, 288, "q8/32"},
        {LMQ_EMULATE_RUNQ, 7, "q8/1"},    {LMQ_EMULATE_Q4_1, 7, "q8/32"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct lmq_hparams hparams = {.dim = cases[i].dim};
        ck_assert_str_eq(
            lmq_emulation_activations(cases[i].emulation, &hparams),
            cases[i].name);
    }
}
END_TEST

/* ---- Judged ---- */

static struct lmq_report *
judge(const char *const *emulations, size_t n, const char *activations,
      const char *model)
{
    const char *text = short_text("held-out-b.txt", 12);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_session_options session = *options.session;
    struct lmq_checkpoint *reference = open_with_tokenizer(fable(""));
    struct lmq_checkpoint *judged =
        model == NULL ? NULL : open_with_tokenizer(model);
    struct lmq_report *report;
    struct lmq_error err;

    session.activations = activations;
    options.session = &session;
    options.emulations = emulations;
    options.n_emulations = n;
    ck_assert_msg(lmq_validate_several(reference, &judged, model != NULL,
                                       &options, NULL, &report, NULL,
                                       &err) == LMQ_OK,
                  "%s", err.message);
    lmq_checkpoint_close(judged);
    lmq_checkpoint_close(reference);
    return report;
}

START_TEST(an_emulation_has_the_same_figures_in_company)
{
    static const char *const one[] = {"q8_0"}, *const two[] = {"q4_0", "q8_0"};
    struct lmq_report *alone = judge(one, 1, NULL, NULL);
    struct lmq_report *several =
        judge(two, 2, NULL, quantize(fable(""), "a.lmq"));
    double kld = lmq_report_number(alone, "kld.mean");

    ck_assert(kld > 1e-6 && kld < 1e-2);
    ck_assert(lmq_report_number(several, "models.2.kld.mean") == kld);
    ck_assert(lmq_report_number(several, "models.1.kld.mean") > 10 * kld);
    ck_assert_str_eq(lmq_report_string(alone, "protocol.model.path"),
                     "q8_0 (emulated)");
    ck_assert_str_eq(lmq_report_string(alone, "protocol.activations"),
                     "q8/32");
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(alone, "notes")), 1);
    ck_assert_ptr_nonnull(strstr(lmq_report_string(alone, "notes.0"),
                                 "tokens are scored"));
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(alone, "tensors")), 0);
    lmq_report_free(alone);
    lmq_report_free(several);
}
END_TEST

START_TEST(activations_are_rounded_unless_they_stay_floats)
{
    static const char *const one[] = {"q8_0"};
    struct lmq_report *both = judge(one, 1, NULL, NULL);
    struct lmq_report *weights = judge(one, 1, "f32", NULL);

    ck_assert(lmq_report_number(both, "kld.mean") !=
              lmq_report_number(weights, "kld.mean"));
    ck_assert_str_eq(lmq_report_string(weights, "protocol.activations"),
                     "f32");
    lmq_report_free(both);
    lmq_report_free(weights);
}
END_TEST

START_TEST(what_cannot_be_emulated_is_refused)
{
    static const struct {
        const char *name;
        enum lmq_status status;
        const char *what;
    } cases[] = {
        {"q9", LMQ_ERR_ARG, ".emulations is 'q9'"},
        {"runq", LMQ_ERR_UNSUPPORTED, "runq computes nonsense"},
    };
    const char *text = short_text("held-out-b.txt", 2);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_checkpoint *reference = open_with_tokenizer(fable(""));
    struct lmq_error err;

    for (size_t i = 0; i < 2; i++) {
        options.emulations = &cases[i].name;
        options.n_emulations = 1;
        ck_assert_int_eq(lmq_validate_several(reference, NULL, 0, &options,
                                              NULL, NULL, NULL, &err),
                         cases[i].status);
        ck_assert_ptr_nonnull(strstr(err.message, cases[i].what));
    }
    options.n_emulations = 0;
    ck_assert_int_eq(lmq_validate_several(reference, NULL, 0, &options, NULL,
                                          NULL, NULL, &err),
                     LMQ_ERR_ARG);
    lmq_checkpoint_close(reference);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        weights_are_what_blocks_of_ggml_hold,
        runq_has_groups_that_divide_the_width,
        activations_are_named_with_their_groups,
        an_emulation_has_the_same_figures_in_company,
        activations_are_rounded_unless_they_stay_floats,
        what_cannot_be_emulated_is_refused,
    };

    return RUN_SUITE("emulate", tests);
}
