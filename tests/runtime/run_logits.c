/*
 * run_logits.c - logits of a model, and what is computed from them.
 */
#include "config.h"

#include "tests/runtime/run_logits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"

float *
run_logits(struct lmq_model *model, const struct lmq_session_options *options,
           const int32_t *tokens, size_t n, size_t step)
{
    struct lmq_session_options all = *options;
    size_t vocabulary = lmq_model_vocabulary(model);
    struct lmq_session *session;
    struct lmq_error err;

    all.all_logits = 1;
    if (all.context == 0)
        all.context = n;
    ck_assert_msg(lmq_session_new(model, &all, &session, &err) == LMQ_OK,
                  "%s", err.message);
    float *logits = malloc(n * vocabulary * sizeof(*logits));
    ck_assert_ptr_nonnull(logits);
    for (size_t at = 0; at < n; at += step) {
        size_t count = n - at < step ? n - at : step;
        ck_assert_msg(lmq_session_eval(session, tokens + at, count, &err) ==
                          LMQ_OK,
                      "%s", err.message);
        for (size_t i = 0; i < count; i++)
            memcpy(logits + (at + i) * vocabulary,
                   lmq_session_logits(session, count - 1 - i),
                   vocabulary * sizeof(*logits));
    }
    lmq_session_free(session);
    return logits;
}

double
log_sum_exp(const float *logits, size_t n)
{
    double top = (double)logits[0], sum = 0;

    for (size_t i = 1; i < n; i++)
        top = larger(top, (double)logits[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - top);
    return top + log(sum);
}

size_t
likeliest(const float *logits, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}
