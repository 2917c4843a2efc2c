/*
 * test_logits.c - every family and variant: from its files to its logits.
 *
 * Each test runs once for each row of the table (family.h); the last one
 * prints a line for each. `test_logits NAME` runs those of one family.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lmquant.h"
#include "runtime/forward.h"
#include "runtime/layer/norm.h"
#include "tests/build/suite.h"
#include "tests/families/family.h"
#include "tests/runtime/run_logits.h"

/* float32 against double: rounding, some hundred times over, comes to 1e-6. An
 * epsilon of norms that is ten times too large shows with 1e-4. */
#define FLOAT_BOUND 1e-5

/* int8 weights, 16-bit activations: a plain Llama of this size (rows of 60,
 * errors of 0.7 % in each of 21 matrices) has a mean KLD of 2e-3. What a
 * family adds may cost four times as much: a router that chooses otherwise
 * now and then, keys that are compared with a larger scale. A misread weight
 * costs a hundred times more. */
#define LLAMA_KLD 2.2e-3
#define KLD_BOUND (4 * LLAMA_KLD)

/* Keys and values in float16 and in int8, to float32 weights. */
#define F16_KLD_BOUND 1e-5
#define Q8_KLD_BOUND 3e-3

/* ---- Helpers ---- */

struct subject {
    const struct family *family;
    struct family_model *made;
    struct lmq_checkpoint *checkpoint;
    struct lmq_model *model;
    int32_t tokens[FAMILY_TOKENS];
    size_t n;
};

static struct subject
open_subject(int number, bool is_int8)
{
    struct subject s = {.family = family_at((size_t)number)};
    struct random random = {17};
    const char *path = in_folder("family"), *container = in_folder("f.lmq");
    struct lmq_error err;

    s.n = s.family->n_tokens > 0 ? s.family->n_tokens : FAMILY_TOKENS;
    s.made = family_make(s.family, 1, 0, 1);
    family_write(s.made, path);
    for (size_t i = 0; i < s.n; i++)
        s.tokens[i] =
            (int32_t)random_below(&random, s.made->oracle.shape.vocab);
    if (is_int8) {
        struct lmq_convert_options one_thread = {.threads = 1};
        lmq_report_free(convert(path, container, &one_thread));
        path = container;
    }
    s.checkpoint = open_checkpoint(path);
    ck_assert_msg(lmq_model_open(s.checkpoint, &s.model, &err) == LMQ_OK,
                  "%s: %s", s.family->name, err.message);
    ck_assert_uint_eq(lmq_model_vocabulary(s.model),
                      s.made->oracle.shape.vocab);
    return s;
}

static void
close_subject(struct subject *s)
{
    lmq_model_close(s->model);
    lmq_checkpoint_close(s->checkpoint);
    family_free(s->made);
}

/* The logits after each token; `step` tokens are given at a time. */
static float *
logits_of(const struct subject *s, struct lmq_session_options options,
           size_t step)
{
    options.batch = step;
    options.context = s->family->context > 0 ? s->family->context : s->n;
    if (options.threads == 0)
        options.threads = 1; /* there is too little to do for more */
    return run_logits(s->model, &options, s->tokens, s->n, step);
}

/* ---- How far apart ---- */

/* Means over all positions; NaN where a logit is none. */
struct drift {
    double kld, top1;
};

static struct drift
measure(const struct subject *s, const float *reference, const float *judged)
{
    size_t vocabulary = lmq_model_vocabulary(s->model);
    struct drift drift = {0, 0};

    for (size_t t = 0; t < s->n; t++) {
        const float *p = reference + t * vocabulary;
        const float *q = judged + t * vocabulary;
        double p_sum = log_sum_exp(p, vocabulary);
        double q_sum = log_sum_exp(q, vocabulary);
        for (size_t i = 0; i < vocabulary; i++) {
            double log_p = (double)p[i] - p_sum;
            drift.kld += exp(log_p) * (log_p - ((double)q[i] - q_sum)) /
                         (double)s->n;
        }
        if (likeliest(p, vocabulary) == likeliest(q, vocabulary))
            drift.top1 += 1 / (double)s->n;
    }
    return drift;
}

static double
distance_to_oracle(const struct subject *s, const float *logits)
{
    double *truth = oracle_run(&s->made->oracle, s->tokens, s->n);
    double distance = oracle_distance(
        truth, logits, s->n * lmq_model_vocabulary(s->model));

    free(truth);
    return distance;
}

/* ---- The tests ---- */

START_TEST(fp32_logits_agree_with_the_oracle)
{
    struct subject s = open_subject(_i, false);
    const size_t steps[] = {s.n, 1, 7, 3};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        float *logits =
            logits_of(&s, (struct lmq_session_options){0}, steps[i]);
        double distance = distance_to_oracle(&s, logits);
        ck_assert_msg(distance <= FLOAT_BOUND, "%s, %zu at a time: %.2e",
                      s.family->name, steps[i], distance);
        free(logits);
    }
    close_subject(&s);
}
END_TEST

START_TEST(int8_logits_are_the_same_bits_in_any_batches_and_threads)
{
    struct subject s = open_subject(_i, true);
    const struct {
        int threads;
        size_t step;
    } ways[] = {{1, s.n}, {1, 1}, {1, 7}, {2, s.n}, {2, 9}};
    float *first = NULL;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct lmq_session_options options = {.activations = "q16",
                                              .threads = ways[i].threads};
        float *logits = logits_of(&s, options, ways[i].step);
        if (first == NULL)
            first = logits;
        ck_assert_msg(memcmp(first, logits,
                             s.n * lmq_model_vocabulary(s.model) *
                                 sizeof(*first)) == 0,
                      "%s: %d threads, %zu at a time", s.family->name,
                      ways[i].threads, ways[i].step);
        if (logits != first)
            free(logits);
    }
    free(first);
    close_subject(&s);
}
END_TEST

/* What all tokens go through all layers for, against what only the last one
 * does; several batches remember what it looks at. */
START_TEST(the_last_logits_need_no_others)
{
    struct subject s = open_subject(_i, true);
    size_t vocabulary = lmq_model_vocabulary(s.model);
    float *all = logits_of(&s, (struct lmq_session_options){0}, s.n);

    for (int threads = 1; threads <= 2; threads++) {
        struct lmq_session_options options = {
            .batch = 5,
            .threads = threads,
            .context = s.family->context > 0 ? s.family->context : s.n};
        struct lmq_session *session = NULL;
        struct lmq_error err;
        ck_assert_int_eq(
            lmq_session_new(s.model, &options, &session, &err), LMQ_OK);
        for (size_t n = s.n - 7; n <= s.n; n += 7) {
            size_t at = lmq_session_position(session);
            ck_assert_msg(lmq_session_eval(session, s.tokens + at, n - at,
                                           &err) == LMQ_OK,
                          "%s: %s", s.family->name, err.message);
            ck_assert_msg(memcmp(all + (n - 1) * vocabulary,
                                 lmq_session_logits(session, 0),
                                 vocabulary * sizeof(*all)) == 0,
                          "%s: %d threads, %zu tokens", s.family->name,
                          threads, n);
        }
        lmq_session_free(session);
    }
    free(all);
    close_subject(&s);
}
END_TEST

/* ---- Several sequences in a batch ---- */

#define SEQUENCES 3

/* The logits after each token of `sequence`, evaluated alone. */
static float *
logits_alone(struct subject *s, size_t sequence)
{
    int32_t first = s->tokens[0];
    float *logits;

    /* One begins otherwise than another, and none can take its place. */
    s->tokens[0] = (first + (int32_t)sequence) %
                   (int32_t)lmq_model_vocabulary(s->model);
    logits = logits_of(s, (struct lmq_session_options){0}, s->n);
    s->tokens[0] = first;
    return logits;
}

static void
fill_batch(const struct subject *s, size_t at, size_t step, int32_t *batch)
{
    size_t vocabulary = lmq_model_vocabulary(s->model);

    for (size_t i = 0; i < SEQUENCES; i++)
        for (size_t t = 0; t < step; t++)
            batch[i * step + t] =
                at + t > 0 ? s->tokens[at + t]
                           : (s->tokens[0] + (int32_t)i) % (int32_t)vocabulary;
}

/* All of them, `step` tokens of each at a time. */
static void
assert_abreast(const struct subject *s, float *const *alone, size_t step,
               int threads)
{
    const struct lmq_hparams *h = &s->model->hparams;
    size_t context = s->family->context > 0 ? s->family->context : s->n;
    size_t vocabulary = h->vocab_size, n;
    size_t n_steps = lmq_loops(h) * h->n_layers;
    struct lmq_kv *kv = calloc(n_steps * SEQUENCES, sizeof(*kv));
    float *logits = calloc(SEQUENCES * step * vocabulary, sizeof(*logits));
    int32_t batch[SEQUENCES * FAMILY_TOKENS];
    struct lmq_work work;
    struct lmq_error err;

    ck_assert_int_eq(lmq_work_init(&work, s->model, SEQUENCES * step, context,
                                   LMQ_ACTIVATIONS_Q16, threads, &err),
                     LMQ_OK);
    for (size_t i = 0; i < n_steps * SEQUENCES; i++)
        ck_assert(lmq_kv_init(&kv[i], s->model, i / SEQUENCES % h->n_layers,
                              LMQ_KV_F32, context));
    work.n_sequences = SEQUENCES;
    work.length = s->n;
    for (size_t at = 0; at < s->n; at += n) {
        n = s->n - at < step ? s->n - at : step;
        fill_batch(s, at, n, batch);
        lmq_forward_embed(s->model, &work, batch, SEQUENCES * n, at);
        for (size_t i = 0; i < n_steps; i++) {
            size_t layer = i % h->n_layers;
            size_t source = i - layer + lmq_layer_kv_source(h, layer);
            if (i > 0 && layer == 0)
                lmq_norm_again(s->model, work.x, SEQUENCES * n);
            lmq_forward_layer(s->model, layer, kv + source * SEQUENCES, &work,
                              SEQUENCES * n, at);
        }
        lmq_forward_head(s->model, &work, SEQUENCES * n, logits);
        for (size_t i = 0; i < SEQUENCES * n; i++) {
            size_t position = at + i % n;
            /* Alone, its logits are of a sequence that ends here. */
            if (lmq_rope_is_long(h, position + 1) !=
                lmq_rope_is_long(h, s->n))
                continue;
            ck_assert_msg(memcmp(logits + i * vocabulary,
                                 alone[i / n] + position * vocabulary,
                                 vocabulary * sizeof(*logits)) == 0,
                          "%s: sequence %zu at %zu, %zu at a time, %d threads",
                          s->family->name, i / n, position, step, threads);
        }
    }
    for (size_t i = 0; i < n_steps * SEQUENCES; i++)
        lmq_kv_free(&kv[i]);
    free(kv);
    free(logits);
    lmq_work_free(&work);
}

START_TEST(sequences_do_not_see_each_other)
{
    struct subject s = open_subject(_i, true);
    float *alone[SEQUENCES];

    for (size_t i = 0; i < SEQUENCES; i++)
        alone[i] = logits_alone(&s, i);
    ck_assert(memcmp(alone[0], alone[1],
                     lmq_model_vocabulary(s.model) * sizeof(float)) != 0);
    assert_abreast(&s, alone, 1, 1);
    assert_abreast(&s, alone, 1, 2);
    assert_abreast(&s, alone, 5, 2);
    for (size_t i = 0; i < SEQUENCES; i++)
        free(alone[i]);
    close_subject(&s);
}
END_TEST

START_TEST(smaller_keys_and_values_stay_near)
{
    struct subject s = open_subject(_i, false);
    const struct {
        const char *kv;
        double bound;
    } types[] = {{"f16", F16_KLD_BOUND},
                 {"q8", Q8_KLD_BOUND},
                 {"f16-q8", Q8_KLD_BOUND}};
    /* Where a router chooses otherwise, it is another model from there on. */
    size_t n_types = s.made->oracle.shape.n_experts > 0 ? 2 : 3;

    float *logits = logits_of(&s, (struct lmq_session_options){0}, s.n);

    for (size_t i = 0; i < n_types; i++) {
        struct lmq_session_options options = {.kv = types[i].kv};
        float *smaller = logits_of(&s, options, 9);
        double kld = measure(&s, logits, smaller).kld;
        printf("%-24s kv %-6s KLD %.1e\n", s.family->name, types[i].kv, kld);
        ck_assert_msg(kld <= types[i].bound, "%s, %s: KLD %.2e",
                      s.family->name, types[i].kv, kld);
        free(smaller);
    }
    free(logits);
    close_subject(&s);
}
END_TEST

START_TEST(int8_stays_as_near_as_a_llamas)
{
    struct subject s = open_subject(_i, false);
    float *logits = logits_of(&s, (struct lmq_session_options){0}, s.n);
    double distance = distance_to_oracle(&s, logits);

    close_subject(&s);
    s = open_subject(_i, true);
    struct lmq_session_options options = {.activations = "q16"};
    float *judged = logits_of(&s, options, s.n);
    struct drift drift = measure(&s, logits, judged);
    printf("%-24s fp32 to the oracle %.1e   int8 KLD %.1e, top-1 %3.0f %%\n",
           s.family->name, distance, drift.kld, 100 * drift.top1);
    ck_assert_msg(drift.kld <= KLD_BOUND, "%s: KLD %.2e", s.family->name,
                  drift.kld);
    free(logits);
    free(judged);
    close_subject(&s);
}
END_TEST

int
main(int argc, char **argv)
{
    const TTest *const tests[] = {
        fp32_logits_agree_with_the_oracle,
        int8_logits_are_the_same_bits_in_any_batches_and_threads,
        the_last_logits_need_no_others,
        sequences_do_not_see_each_other,
        smaller_keys_and_values_stay_near,
        int8_stays_as_near_as_a_llamas,
    };
    size_t first, end;

    family_range(argc, argv, &first, &end);
    return RUN_SUITE_OVER("logits", tests, first, end);
}
