/*
 * test_threads.c - the library from several threads at once.
 *
 * Models and tokenizers are shared; of everything else each thread has its
 * own. All results are those of one thread alone. Worth most in a build with
 * --enable-tsan.
 */
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/session.h"
#include "tests/build/suite.h"
#include "tests/runtime/run_logits.h"

#define N_TOKENS 24
#define N_HOSTS 2 /* threads of the program that uses the library */

/* Runs it in N_HOSTS threads at once, each with its own of `jobs`. */
static void
run_at_once(void *(*run)(void *job), void *jobs, size_t size)
{
    pthread_t threads[N_HOSTS];

    for (size_t i = 0; i < N_HOSTS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, run, (char *)jobs + i * size),
            0);
    for (size_t i = 0; i < N_HOSTS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Sessions ---- */

struct sequence {
    const struct lmq_model *model;
    const char *activations;
    int threads;
    int32_t first;
    enum lmq_status status;
    int32_t tokens[N_TOKENS];
    float logits[N_TOKENS]; /* of the likeliest */
};

/* A few tokens at once, then one by one what the model says. */
static void *
run_sequence(void *job)
{
    struct sequence *sequence = job;
    const struct lmq_session_options options = {
        .context = 64,
        .activations = sequence->activations,
        .threads = sequence->threads};
    const int32_t prompt[] = {1, sequence->first, sequence->first + 7};
    struct lmq_session *session;

    sequence->status =
        lmq_session_new(sequence->model, &options, &session, NULL);
    if (sequence->status == LMQ_OK)
        sequence->status = lmq_session_eval(session, prompt, 3, NULL);
    for (size_t i = 0; i < N_TOKENS && sequence->status == LMQ_OK; i++) {
        const float *logits = lmq_session_logits(session, 0);
        int32_t token = (int32_t)likeliest(
            logits, lmq_model_vocabulary(sequence->model));
        sequence->tokens[i] = token;
        sequence->logits[i] = logits[token];
        sequence->status = lmq_session_eval(session, &token, 1, NULL);
    }
    lmq_session_free(session);
    return NULL;
}

static void
check_sequences(const char *path, const char *activations)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    struct sequence alone[N_HOSTS], together[N_HOSTS];
    for (int i = 0; i < N_HOSTS; i++) {
        alone[i] = (struct sequence){.model = model,
                                     .activations = activations,
                                     .threads = 1,
                                     .first = 40 + 11 * i};
        together[i] = alone[i];
        together[i].threads = 2 + i;
        run_sequence(&alone[i]);
        ck_assert_int_eq(alone[i].status, LMQ_OK);
    }
    run_at_once(run_sequence, together, sizeof(together[0]));
    for (int i = 0; i < N_HOSTS; i++) {
        ck_assert_int_eq(together[i].status, LMQ_OK);
        ck_assert_mem_eq(together[i].tokens, alone[i].tokens,
                         sizeof(alone[i].tokens));
        ck_assert_mem_eq(together[i].logits, alone[i].logits,
                         sizeof(alone[i].logits));
    }
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}

START_TEST(sessions_of_one_model_run_at_once)
{
    const char *container = in_folder("model.lmq");

    lmq_report_free(convert(source_path("data/fable"), container, NULL));
    check_sequences(container, "q16");
    check_sequences(container, "f32");
    check_sequences(source_path("data/fable"), NULL);
}
END_TEST

/* How many threads take part when n tokens are evaluated. */
static size_t
members_for(const struct lmq_model *model, int threads, size_t n)
{
    const struct lmq_session_options options = {.threads = threads};
    struct lmq_session *session;
    struct lmq_error err;

    ck_assert_msg(lmq_session_new(model, &options, &session, &err) == LMQ_OK,
                  "%s", err.message);
    size_t members = lmq_work_members(&session->work,
                                      session->work.layer_weights, n);
    ck_assert_uint_le(members, lmq_team_size(session->work.team));
    lmq_session_free(session);
    return members;
}

START_TEST(a_small_model_has_one_thread_unless_it_is_told)
{
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    setenv("OMP_NUM_THREADS", "4", 1);
    ck_assert_uint_eq(members_for(model, 0, 1), 1);
    ck_assert_uint_eq(members_for(model, 0, 128), 4);
    ck_assert_uint_eq(members_for(model, 3, 1), 3);
    ck_assert_uint_eq(members_for(model, 3, 128), 3);
    setenv("OMP_NUM_THREADS", "1", 1);
    ck_assert_uint_eq(members_for(model, 0, 128), 1);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- Conversions, and what is done with what came of them ---- */

struct conversion {
    char container[256], exported[256];
    const char *source;
    int threads;
    enum lmq_status status;
    struct lmq_error err;
};

static enum lmq_status
convert_once(struct conversion *conversion)
{
    const struct lmq_convert_options options = {
        .method = "search", .threads = conversion->threads};
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report = NULL;
    enum lmq_status status = lmq_checkpoint_open(
        conversion->source, NULL, &checkpoint, &conversion->err);

    if (status == LMQ_OK)
        status = lmq_convert(checkpoint, conversion->container, &options,
                             NULL, &report, &conversion->err);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    return status;
}

static enum lmq_status
export_once(struct conversion *conversion)
{
    const struct lmq_export_options options = {
        .to = "gguf", .threads = conversion->threads};
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report = NULL;
    enum lmq_status status = lmq_checkpoint_open(
        conversion->container, NULL, &checkpoint, &conversion->err);

    if (status == LMQ_OK)
        status = lmq_export(checkpoint, conversion->exported, &options, NULL,
                            &report, &conversion->err);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    return status;
}

static enum lmq_status
compare_once(struct conversion *conversion)
{
    struct lmq_checkpoint *a, *b = NULL;
    struct lmq_report *report = NULL;
    const struct lmq_diff_options options = {.threads = conversion->threads};
    enum lmq_status status =
        lmq_checkpoint_open(conversion->source, NULL, &a, &conversion->err);

    if (status == LMQ_OK)
        status = lmq_checkpoint_open(conversion->container, NULL, &b,
                                     &conversion->err);
    if (status == LMQ_OK)
        status = lmq_diff(a, b, &options, NULL, &report,
                          &conversion->err);
    lmq_report_free(report);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return status;
}

static void *
run_conversion(void *job)
{
    struct conversion *conversion = job;
    const struct lmq_verify_options verify = {.threads = conversion->threads};
    struct lmq_report *report = NULL;

    conversion->status = convert_once(conversion);
    if (conversion->status == LMQ_OK)
        conversion->status =
            lmq_verify(conversion->container, &verify, NULL,
                       &report, &conversion->err);
    lmq_report_free(report);
    if (conversion->status == LMQ_OK)
        conversion->status = export_once(conversion);
    if (conversion->status == LMQ_OK)
        conversion->status = compare_once(conversion);
    return NULL;
}

/* In a folder of their own: a GGUF has the name of what it is made from. */
static void
name_outputs(struct conversion *conversion, const char *name)
{
    const char *folder = in_folder(name);

    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(conversion->container, sizeof(conversion->container),
             "%s/model.lmq", folder);
    snprintf(conversion->exported, sizeof(conversion->exported),
             "%s/model.gguf", folder);
}

START_TEST(conversions_run_at_once)
{
    const char *source = source_path("data/fable");
    struct conversion alone = {.source = source, .threads = 1};
    struct conversion together[N_HOSTS];

    name_outputs(&alone, "alone");
    run_conversion(&alone);
    ck_assert_msg(alone.status == LMQ_OK, "%s", alone.err.message);
    for (int i = 0; i < N_HOSTS; i++) {
        together[i] = (struct conversion){.source = source, .threads = 2 + i};
        name_outputs(&together[i], i == 0 ? "first" : "second");
    }
    run_at_once(run_conversion, together, sizeof(together[0]));
    for (int i = 0; i < N_HOSTS; i++) {
        ck_assert_msg(together[i].status == LMQ_OK, "%s",
                      together[i].err.message);
        assert_same_files(together[i].container, alone.container);
        assert_same_files(together[i].exported, alone.exported);
    }
}
END_TEST

/* ---- Tokenizers ---- */

struct reading {
    const struct lmq_tokenizer *tokenizer;
    enum lmq_status status;
    int32_t *ids;
    size_t n;
};

static void *
read_text(void *job)
{
    static const char text[] = "Once upon a time there was a fox, and 12 hens.";
    struct reading *reading = job;

    for (int i = 0; i < 20 && reading->status == LMQ_OK; i++) {
        lmq_tokens_free(reading->ids);
        reading->ids = NULL;
        reading->status =
            lmq_tokenize(reading->tokenizer, text, sizeof(text) - 1, 0,
                         &reading->ids, &reading->n, NULL);
    }
    return NULL;
}

START_TEST(threads_share_a_tokenizer)
{
    struct reading readings[N_HOSTS] = {{0}};
    struct lmq_tokenizer *tokenizer;
    struct lmq_error err;

    ck_assert_msg(lmq_tokenizer_from_path(source_path("data/fable"), NULL,
                                          &tokenizer, &err) == LMQ_OK,
                  "%s", err.message);
    for (int i = 0; i < N_HOSTS; i++)
        readings[i].tokenizer = tokenizer;
    run_at_once(read_text, readings, sizeof(readings[0]));
    for (int i = 0; i < N_HOSTS; i++) {
        ck_assert_int_eq(readings[i].status, LMQ_OK);
        ck_assert_uint_eq(readings[i].n, readings[0].n);
        ck_assert_mem_eq(readings[i].ids, readings[0].ids,
                         readings[0].n * sizeof(int32_t));
    }
    for (int i = 0; i < N_HOSTS; i++)
        lmq_tokens_free(readings[i].ids);
    lmq_tokenizer_close(tokenizer);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        sessions_of_one_model_run_at_once,
        a_small_model_has_one_thread_unless_it_is_told,
        conversions_run_at_once,
        threads_share_a_tokenizer,
    };

    return RUN_SUITE("threads", tests);
}
