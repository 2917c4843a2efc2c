/*
 * test_choices.c - the command line takes the same names for the values of
 * options as the library does.
 *
 * Both list them when they are given another one.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

#define WRONG "none-such"
#define MOST 8

static int
compare_words(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The words behind "expected", in the order of the alphabet. */
static void
expected_of(const char *text, char words[MOST][32], size_t *n)
{
    const char *at = strstr(text, "expected ");

    ck_assert_msg(at != NULL, "'%s' expects nothing", text);
    at += strlen("expected ");
    *n = 0;
    while (*at != '\0' && *at != '\n') {
        size_t length = strcspn(at, "', \n");
        if (length > 0 && strncmp(at, "or ", 3) != 0) {
            ck_assert(*n < MOST && length < 32);
            snprintf(words[(*n)++], 32, "%.*s", (int)length, at);
        }
        at += length;
        at += strspn(at, "', ");
    }
    qsort(words, *n, sizeof(words[0]), compare_words);
}

static void
assert_same_choices(const struct lmq_error *err, const char *arguments)
{
    char command[4096], line[1024], library[MOST][32], program[MOST][32];
    const char *build = getenv("top_builddir");
    size_t n_library, n_program;

    snprintf(command, sizeof(command), "'%s/lmquant' %s=" WRONG " 2>&1",
             build == NULL ? "." : build, arguments);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), pipe));
    pclose(pipe);
    expected_of(err->message, library, &n_library);
    expected_of(line, program, &n_program);
    ck_assert_msg(n_library > 1 && n_library == n_program, "%s: %s%s",
                  arguments, line, err->message);
    for (size_t i = 0; i < n_library; i++)
        ck_assert_str_eq(library[i], program[i]);
}

static struct lmq_checkpoint *
open_small(void)
{
    struct build_model *model = build_model(&build_small, 1);

    save_folder(model, in_folder("small"), BUILD_F32);
    build_free(model);
    return open_checkpoint(in_folder("small"));
}

START_TEST(convert_takes_what_the_library_takes)
{
    static const struct {
        const char *arguments;
        struct lmq_convert_options options;
    } choices[] = {
        {"convert a b.lmq --scales", {.scales = WRONG}},
        {"convert a b.lmq --method", {.method = WRONG}},
        {"convert a b.lmq --layout", {.layout = WRONG}},
        {"convert a b.lmq --tie", {.tie = WRONG}},
        {"convert a b.lmq --on-nonfinite", {.on_nonfinite = WRONG}},
        {"convert a b.lmq --group-size", {.group_size = 5}},
    };
    struct lmq_checkpoint *checkpoint = open_small();
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        ck_assert_int_eq(lmq_convert(checkpoint, in_folder("x.lmq"),
                                     &choices[i].options, NULL, NULL, &err),
                         LMQ_ERR_ARG);
        assert_same_choices(&err, choices[i].arguments);
    }
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* GGUF takes all types. */
START_TEST(export_takes_what_the_library_takes)
{
    static const struct {
        const char *arguments;
        struct lmq_export_options options;
    } choices[] = {
        {"export a b.gguf --to", {.to = WRONG}},
        {"export a b.gguf --to=gguf --type", {.to = "gguf", .type = WRONG}},
    };
    struct lmq_checkpoint *checkpoint = open_small();
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        ck_assert_int_eq(lmq_export(checkpoint, in_folder("x"),
                                    &choices[i].options, NULL, NULL, &err),
                         LMQ_ERR_ARG);
        assert_same_choices(&err, choices[i].arguments);
    }
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(sessions_and_scores_take_what_the_library_takes)
{
    static const struct lmq_session_options kv = {.kv = WRONG};
    static const struct lmq_session_options activations = {.activations =
                                                               WRONG};
    static const struct lmq_validate_options score = {.score = WRONG};
    struct lmq_checkpoint *checkpoint = open_small();
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_error err;

    ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_new(model, &kv, &session, &err), LMQ_ERR_ARG);
    assert_same_choices(&err, "run a --kv");
    assert_same_choices(&err, "bench a --kv");
    assert_same_choices(&err, "validate a b --kv");
    ck_assert_int_eq(lmq_session_new(model, &activations, &session, &err),
                     LMQ_ERR_ARG);
    assert_same_choices(&err, "run a --activations");
    ck_assert_int_eq(lmq_validate(checkpoint, checkpoint, &score, NULL, NULL,
                                  NULL, &err),
                     LMQ_ERR_ARG);
    assert_same_choices(&err, "validate a b --score");
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        convert_takes_what_the_library_takes,
        export_takes_what_the_library_takes,
        sessions_and_scores_take_what_the_library_takes,
    };

    return RUN_SUITE("choices", tests);
}
