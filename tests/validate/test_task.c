/*
 * test_task.c - multiple-choice questions: what the models answer is what
 * their logits say, whatever the threads and the memory; bad lines are named.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buffer.h"
#include "tests/build/suite.h"
#include "tests/validate/validate_fable.h"

#define QUESTIONS 60
#define CHOICES 4
#define HARD 1000

static const char *const words[] = {
    " time", " fox", " years", " the", " river", " friends", " and", " home",
    ".", " a secret", " oak", " said", "!\" she cried.", " morning",
};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

static const char *const prompts[] = {
    "Once upon a", "And they stayed friends for many", "By the",
    "Nobody was on the", "\\\"What is your name?\\\" asked", "Can you keep",
};
#define N_PROMPTS (sizeof(prompts) / sizeof(prompts[0]))

struct question {
    const char *prompt, *choices[CHOICES];
    size_t answer;
};

/* The same ones each time: what models answer is no matter of luck. */
static void
make_questions(struct question *questions)
{
    struct random random = {7};

    for (size_t i = 0; i < QUESTIONS; i++) {
        questions[i].prompt = prompts[random_below(&random, N_PROMPTS)];
        questions[i].answer = random_below(&random, CHOICES);
        for (size_t k = 0; k < CHOICES; k++)
            questions[i].choices[k] = words[random_below(&random, N_WORDS)];
    }
}

static const char *
write_questions(const struct question *questions, size_t n)
{
    const char *path = in_folder("task.jsonl");
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "{\"prompt\": \"%s\", \"answer\": %zu, \"choices\": [",
                questions[i].prompt, questions[i].answer);
        for (size_t k = 0; k < CHOICES; k++) {
            fprintf(f, "%s\"", k == 0 ? "" : ", ");
            for (const char *c = questions[i].choices[k]; *c != '\0'; c++)
                fprintf(f, "%s%c", *c == '"' ? "\\" : "", *c);
            putc('"', f);
        }
        fprintf(f, "]}\n%s", i % 7 == 0 ? "\n" : "");
    }
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

/* ---- By hand ---- */

/* How likely a choice is behind its prompt, as a session computes it. */
static double
likelihood(const struct lmq_model *model,
           const struct lmq_tokenizer *tokenizer, const char *prompt,
           const char *choice)
{
    const struct lmq_session_options options = {
        .size = sizeof(options), .context = CONTEXT, .batch = CONTEXT,
        .activations = "f32", .all_logits = 1, .threads = 1};
    size_t vocabulary = lmq_model_vocabulary(model), n, n_prompt;
    char plain[128], whole[256];
    struct lmq_session *session;
    int32_t *ids, *ids_prompt;
    double sum = 0;

    size_t at = 0;
    for (const char *c = prompt; *c != '\0'; c++)
        if (*c != '\\')
            plain[at++] = *c;
    plain[at] = '\0';
    snprintf(whole, sizeof(whole), "%s%s", plain, choice);
    ck_assert_int_eq(lmq_tokenize(tokenizer, plain, strlen(plain), 0,
                                  &ids_prompt, &n_prompt, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_tokenize(tokenizer, whole, strlen(whole), 0, &ids,
                                  &n, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, ids, n, NULL), LMQ_OK);
    for (size_t t = n_prompt; t < n; t++) {
        const float *logits = lmq_session_logits(session, n - t);
        double total = 0;
        for (size_t i = 0; i < vocabulary; i++)
            total += exp((double)logits[i]);
        sum += (double)logits[ids[t]] - log(total);
    }
    lmq_session_free(session);
    lmq_tokens_free(ids);
    lmq_tokens_free(ids_prompt);
    return sum;
}

static size_t
best(const double *x)
{
    size_t found = 0;

    for (size_t k = 1; k < CHOICES; k++)
        found = x[k] > x[found] ? k : found;
    return found;
}

START_TEST(accuracy_is_what_the_logits_say)
{
    struct question questions[QUESTIONS];
    const char *text = short_text("a.txt", 600);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_checkpoint *checkpoint = open_with_tokenizer(fable(""));
    struct lmq_tokenizer *tokenizer;
    struct lmq_model *model;
    size_t right = 0, right_norm = 0;

    make_questions(questions);
    options.task = write_questions(questions, QUESTIONS);
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, NULL), LMQ_OK);
    ck_assert_int_eq(
        lmq_tokenizer_from_checkpoint(checkpoint, &tokenizer, NULL), LMQ_OK);
    for (size_t i = 0; i < QUESTIONS; i++) {
        const struct question *q = &questions[i];
        double x[CHOICES], by_byte[CHOICES];
        for (size_t k = 0; k < CHOICES; k++) {
            const char *choice = q->choices[k];
            x[k] = likelihood(model, tokenizer, q->prompt, choice);
            by_byte[k] = x[k] / (double)strlen(choice + (*choice == ' '));
        }
        right += best(x) == q->answer;
        right_norm += best(by_byte) == q->answer;
    }
    ck_assert(right > 0 && right < QUESTIONS);
    struct lmq_report *r = validate(fable(""), fable(""), &options);
    ck_assert_double_eq(lmq_report_number(r, "task.reference.accuracy"),
                        (double)right / QUESTIONS);
    ck_assert_double_eq(lmq_report_number(r, "task.reference.accuracy_norm"),
                        (double)right_norm / QUESTIONS);
    ck_assert_double_eq(lmq_report_number(r, "task.model.accuracy"),
                        (double)right / QUESTIONS);
    ck_assert_double_eq(lmq_report_number(r, "task.questions"), QUESTIONS);
    ck_assert_double_eq(lmq_report_number(r, "task.choices"),
                        QUESTIONS * CHOICES);
    ck_assert_double_eq(lmq_report_number(r, "task.flips.rate"), 0);
    ck_assert_double_eq(lmq_report_number(r, "task.flips.p"), 1);
    lmq_report_free(r);
    lmq_tokenizer_close(tokenizer);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- Flips ---- */

static const char *
coarse_model(void)
{
    struct lmq_checkpoint *checkpoint = open_with_tokenizer(fable(""));
    const struct lmq_convert_options options = {
        .size = sizeof(options), .group_size = 256, .replaces = 1};
    const char *path = in_folder("coarse.lmq");

    ck_assert_int_eq(lmq_convert(checkpoint, path, &options, NULL, NULL, NULL),
                     LMQ_OK);
    lmq_checkpoint_close(checkpoint);
    return path;
}

static char *
task_of(const struct lmq_report *report)
{
    char *text;

    ck_assert_int_eq(lmq_report_text(lmq_report_at(report, "task"),
                                     LMQ_REPORT_JSON, &text, NULL), LMQ_OK);
    return text;
}

/* Both tails, term by term. */
static double
naive_p(int lost, int gained)
{
    int n = lost + gained, few = lost < gained ? lost : gained;
    double sum = 0;

    for (int k = 0; k <= few; k++)
        sum += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) -
                   n * log(2));
    return fmin(1, 2 * sum);
}

/* Choices that are nearly alike, so that some of them flip: words that fit
 * nowhere, in another order each time. */
static const char *
write_hard_task(size_t n)
{
    const char *path = in_folder("hard.jsonl");
    struct random random = {3};
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < n; i++) {
        fputs("{\"prompt\": \"", f);
        for (int k = 0; k < 6; k++)
            putc('a' + (int)random_below(&random, 26), f);
        fputs("\", \"choices\": [", f);
        for (int k = 0; k < 8; k++)
            fprintf(f, "%s\" %c%c\"", k == 0 ? "" : ", ",
                    'a' + (int)random_below(&random, 26),
                    'a' + (int)random_below(&random, 26));
        fprintf(f, "], \"answer\": %zu}\n", random_below(&random, 8));
    }
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

START_TEST(flips_are_counted_and_tested)
{
    const char *text = short_text("a.txt", 600);
    const char *const gates[] = {"task.flips.rate<=0", "task.accuracy_drop<=1",
                                 "task.flips_norm.p>=0"};
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_session_options session = *options.session;

    session.activations = "q8";
    options.session = &session;
    options.task = write_hard_task(HARD);
    options.gates = gates;
    options.n_gates = 3;
    struct lmq_report *r = validate(fable(""), coarse_model(), &options);
    double lost = lmq_report_number(r, "task.flips.lost");
    double gained = lmq_report_number(r, "task.flips.gained");
    double drop = lmq_report_number(r, "task.reference.accuracy") -
                  lmq_report_number(r, "task.model.accuracy");
    ck_assert(lost + gained > 0);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(r, "task.flipped")),
                      (size_t)(lost + gained));
    ck_assert_double_eq(lmq_report_number(r, "task.flips.rate"),
                        (lost + gained) / HARD);
    ck_assert_double_eq_tol(drop, (lost - gained) / HARD, 1e-12);
    ck_assert_double_eq_tol(lmq_report_number(r, "task.accuracy_drop"), drop,
                            1e-12);
    ck_assert_double_eq_tol(lmq_report_number(r, "task.flips.p"),
                            naive_p((int)lost, (int)gained), 1e-9);
    ck_assert(lmq_report_number(r, "task.flips.changed") >= lost + gained);
    ck_assert_double_eq(lmq_report_number(r, "gates.0.held"), 0);
    ck_assert_double_eq(lmq_report_number(r, "gates.1.held"), 1);
    ck_assert_double_eq(lmq_report_number(r, "gates.2.held"), 1);
    lmq_report_free(r);
}
END_TEST

START_TEST(answers_depend_on_nothing_else)
{
    const char *text = short_text("a.txt", 600);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_session_options session = *options.session;
    const char *model = coarse_model();
    char *expected = NULL;

    session.activations = "q8";
    options.session = &session;
    options.task = write_hard_task(60);
    for (int i = 0; i < 3; i++) {
        session.threads = 1 + i;
        options.memory = i == 1 ? 6u << 20 : 0;
        struct lmq_report *r = validate(fable(""), model, &options);
        char *found = task_of(r);
        if (expected != NULL)
            ck_assert_str_eq(found, expected);
        lmq_text_free(expected);
        expected = found;
        lmq_report_free(r);
    }
    lmq_text_free(expected);
}
END_TEST

/* ---- Bad lines ---- */

static const struct {
    const char *lines, *says;
} bad[] = {
    {"\n", "has no question"},
    {"{\"prompt\": \"a\"", "line 1: expected JSON"},
    {"[1]", "line 1: expected an object, found an array"},
    {"7", "line 1: expected an object, found an integer"},
    {"{\"choices\": [\"a\", \"b\"], \"answer\": 0}",
     "'prompt', a string, found nothing"},
    {"{\"prompt\": 1, \"choices\": [\"a\", \"b\"], \"answer\": 0}",
     "'prompt', a string, found an integer"},
    {"{\"prompt\": \"a\", \"prompt\": \"b\", \"choices\": [\"a\", \"b\"], "
     "\"answer\": 0}", "line 1: expected JSON, found duplicate"},
    {"{\"prompt\": \"a\", \"choices\": \"ab\", \"answer\": 0}",
     "'choices', an array of strings, found a string"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", null], \"answer\": 0}",
     "found null"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"\"], \"answer\": 0}",
     "found an empty one"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\"], \"answer\": 0}",
     "2 to 64 choices, found 1"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"b\"], \"answer\": 2}",
     "below the number of choices, found 2"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"b\"], \"answer\": -1}",
     "found -1"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"b\"], "
     "\"answer\": 4294967296}", "found 4294967296"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"b\"], \"answer\": 0.5}",
     "'answer', the index of a choice, found a real number"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"b\"], \"answer\": "
     "99999999999999999999}", "the index of a choice, found a real number"},
    {"{\"prompt\": \"a\", \"choices\": [\"a\", \"b\"], \"answer\": 0}\n\n{}\n",
     "line 3: expected 'prompt'"},
    {"{\"prompt\": \"a\\u0000\", \"choices\": [\"a\", \"b\"], "
     "\"answer\": 0}", "line 1: expected JSON"},
};

static void
assert_bad(const char *lines, size_t n, const char *says)
{
    const char *text = short_text("a.txt", 600), *path = in_folder("bad");
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_error err = {0};

    write_file(path, lines, n);
    options.task = path;
    ck_assert_int_eq(try_validate(fable(""), fable(""), &options, NULL, NULL,
                                  NULL, &err), LMQ_ERR_FORMAT);
    REQUIRE(strstr(err.message, says) != NULL, "'%s' is not '%s'",
            err.message, says);
    ck_assert_str_eq(err.path, path);
}

START_TEST(bad_lines_are_named)
{
    struct lmq_buffer line = {0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_bad(bad[i].lines, strlen(bad[i].lines), bad[i].says);
    lmq_buffer_print(&line, "{\"prompt\": \"");
    for (int i = 0; i < 400; i++)
        lmq_buffer_print(&line, "fox ");
    lmq_buffer_print(&line,
                     "\", \"choices\": [\"a\", \"b\"], \"answer\": 0}");
    assert_bad((const char *)line.bytes, line.n, "the window has room for 96");
    lmq_buffer_free(&line);
}
END_TEST

START_TEST(gates_on_a_task_need_one)
{
    const char *text = short_text("a.txt", 600);
    const char *const gates[] = {"task.flips.rate<=0.1"};
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_error err = {0};

    options.gates = gates;
    options.n_gates = 1;
    ck_assert_int_eq(try_validate(fable(""), fable(""), &options, NULL, NULL,
                                  NULL, &err), LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, ".task"));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        accuracy_is_what_the_logits_say,
        flips_are_counted_and_tested,
        answers_depend_on_nothing_else,
        bad_lines_are_named,
        gates_on_a_task_need_one,
    };

    return RUN_SUITE("task", tests);
}
