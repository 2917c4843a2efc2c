/*
 * test_failure.c - a session that goes on after an evaluation that failed.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/families/family.h"
#include "tests/runtime/run_logits.h"

/* Where the first NaN is, is found out by evaluating again, which moves the
 * states of layers that have some. */
START_TEST(what_failed_is_forgotten)
{
    static const int32_t tokens[] = {5, 6, 7, 8, 9, 10}, bad[] = {11, 12};
    const struct lmq_session_options options = {
        .context = 24, .batch = 4, .threads = 1};
    struct family_model *made =
        family_make(family_find("qwen3next"), 1, 0, 1);
    struct oracle_model *oracle = &made->oracle;
    struct lmq_session *session;
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_ptr_ne(oracle->head.w, oracle->embedding);
    oracle->embedding[12 * (size_t)oracle->shape.dim] = NAN;
    family_write(made, in_folder("sick"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("sick"));
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, NULL), LMQ_OK);
    size_t n = lmq_model_vocabulary(model);
    float *truth = run_logits(model, &options, tokens, 6, 3);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, tokens, 3, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, bad, 2, &err),
                     LMQ_ERR_NONFINITE);
    ck_assert_ptr_nonnull(
        strstr(err.message, "position 4 (token 12), in the embedding"));
    ck_assert_uint_eq(lmq_session_position(session), 3);
    ck_assert_int_eq(lmq_session_eval(session, tokens + 3, 3, NULL), LMQ_OK);
    ck_assert_mem_eq(truth + 5 * n, lmq_session_logits(session, 0),
                     n * sizeof(*truth));
    free(truth);
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    family_free(made);
}
END_TEST

/* Of an expert that no token goes to: what it is compared with is better. */
START_TEST(routers_pass_no_nan_over)
{
    static const char *const names[] = {"gpt-oss", "qwen3moe", "mimo2",
                                        "deepseek3"};
    static const int32_t tokens[] = {5, 6, 7};

    for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
        struct family_model *made =
            family_make(family_find(names[i / 2]), 1, 0, 1);
        const struct oracle_shape *shape = &made->oracle.shape;
        struct oracle_layer *layer = &made->oracle.layers[shape->layers - 1];
        struct lmq_session *session;
        struct lmq_model *model;
        struct lmq_error err;

        if (i % 2 == 0)
            layer->router.w[(shape->n_experts - 1) * shape->dim] = NAN;
        else if (layer->correction != NULL)
            layer->correction[shape->n_experts - 1] = NAN;
        else
            layer->router.w[shape->dim] = NAN;
        family_write(made, in_folder("sick"));
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("sick"));
        ck_assert_int_eq(lmq_model_open(checkpoint, &model, NULL), LMQ_OK);
        ck_assert_int_eq(lmq_session_new(model, NULL, &session, NULL), LMQ_OK);
        ck_assert_int_eq(lmq_session_eval(session, tokens, 3, &err),
                         LMQ_ERR_NONFINITE);
        lmq_session_free(session);
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
        family_free(made);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {what_failed_is_forgotten,
                                  routers_pass_no_nan_over};

    return RUN_SUITE("failure", tests);
}
