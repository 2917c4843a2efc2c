/*
 * task_scores.c - which choices the models take, and how often only one of
 * both is right.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "validate/job.h"

/* ---- Gathering ---- */

struct scores {
    const struct lmq_job *job;
    double *nll; /* (n_sides, n_windows), in nats; the first the reference's */
    size_t n_windows;
    uint64_t total; /* tokens that are read */
};

static enum lmq_status
observe_position(void *context, size_t side, const struct lmq_window *window,
                 size_t token, const struct lmq_position_drift *drift,
                 struct lmq_error *err)
{
    struct scores *scores = context;
    size_t at = (size_t)(window - scores->job->task.corpus.windows);

    (void)token;
    (void)err;
    scores->nll[side * scores->n_windows + at] += drift->nll;
    if (side == 1)
        scores->nll[at] += drift->nll_reference;
    return LMQ_OK;
}

static enum lmq_status
observe_progress(void *context, double done, double total,
                 struct lmq_error *err)
{
    const struct scores *scores = context;
    uint64_t n = scores->total;

    return lmq_progress_report(scores->job->progress, "answering",
                               (uint64_t)(done / total * (double)n), n, err);
}

static enum lmq_status
gather(struct scores *scores, const struct lmq_side *sides, size_t first,
       size_t n_windows, struct lmq_error *err)
{
    const struct lmq_job *job = scores->job;
    const struct lmq_observer observer = {.context = scores,
                                          .position = observe_position,
                                          .progress = observe_progress};
    const struct lmq_lockstep lockstep = {
        .models = job->models,
        .n_models = job->n_candidates + 1,
        .sides = sides,
        .n_sides = job->n_candidates + 1,
        .corpus = &job->task.corpus,
        .first_window = first,
        .n_windows = n_windows,
        .memory = job->memory,
        .threads = job->session.threads,
        .skips_checksums = job->options->skips_checksums != 0,
    };

    for (size_t i = first; i < first + n_windows; i++)
        scores->total += job->task.corpus.windows[i].n;
    return lmq_lockstep_run(&lockstep, &observer, err);
}

/* ---- Choosing ---- */

/* The likeliest choice; of equal ones the first. */
static size_t
choose(const struct lmq_task *task, const struct lmq_question *question,
       const double *nll, bool is_by_byte)
{
    size_t best = 0;
    double least = INFINITY;

    for (size_t i = 0; i < question->n_choices; i++) {
        size_t window = question->first_window + i;
        double x = nll[window];
        if (is_by_byte)
            x /= (double)task->bytes[window];
        if (x < least) {
            least = x;
            best = i;
        }
    }
    return best;
}

struct tally {
    size_t right_reference, right; /* questions */
    size_t n_lost, n_gained;       /* right only for the reference, the model */
    size_t n_changed;              /* another choice, right or not */
};

/* The exact test of flips as coins: how likely are as uneven ones if both
 * sides are? All factors of 2 are kept apart, so that nothing underflows. */
static double
flips_p(size_t lost, size_t gained)
{
    size_t n = lost + gained, few = lost < gained ? lost : gained;
    double term = 1, sum = 1;
    int exponent = 1 - (int)n;

    for (size_t k = 1; k <= few; k++) {
        term = term * (double)(n - k + 1) / (double)k;
        sum += term;
        if (sum > 0x1p500) {
            sum *= 0x1p-500;
            term *= 0x1p-500;
            exponent += 500;
        }
    }
    double p = ldexp(sum, exponent);
    return p < 1 ? p : 1;
}

static json_t *
describe_flips(const struct lmq_task *task, const struct tally *tally)
{
    json_t *json = json_object();
    size_t n = tally->n_lost + tally->n_gained;

    lmq_put(&json, "rate", lmq_json_number((double)n / (double)task->n));
    lmq_put(&json, "lost", lmq_json_size(tally->n_lost));
    lmq_put(&json, "gained", lmq_json_size(tally->n_gained));
    lmq_put(&json, "changed", lmq_json_size(tally->n_changed));
    lmq_put(&json, "p",
            lmq_json_number(flips_p(tally->n_lost, tally->n_gained)));
    return json;
}

/* A question that one of both has right. */
static void
list_flip(json_t **list, const struct lmq_question *question, size_t reference,
          size_t model)
{
    json_t *json = json_object();

    lmq_put(&json, "line", lmq_json_size(question->line));
    lmq_put(&json, "answer", lmq_json_size(question->answer));
    lmq_put(&json, "reference", lmq_json_size(reference));
    lmq_put(&json, "model", lmq_json_size(model));
    lmq_append(list, json);
}

static struct tally
count(const struct lmq_task *task, const double *reference,
      const double *model, bool is_by_byte, json_t **list)
{
    struct tally tally = {0};

    for (size_t i = 0; i < task->n; i++) {
        const struct lmq_question *question = &task->questions[i];
        size_t a = choose(task, question, reference, is_by_byte);
        size_t b = choose(task, question, model, is_by_byte);
        bool is_right_a = a == question->answer;
        bool is_right_b = b == question->answer;
        tally.right_reference += is_right_a;
        tally.right += is_right_b;
        tally.n_lost += is_right_a && !is_right_b;
        tally.n_gained += !is_right_a && is_right_b;
        tally.n_changed += a != b;
        if (is_right_a != is_right_b && list != NULL)
            list_flip(list, question, a, b);
    }
    return tally;
}

static json_t *
describe_accuracies(const struct lmq_task *task, size_t right,
                    size_t right_by_byte)
{
    json_t *json = json_object();

    lmq_put(&json, "accuracy",
            lmq_json_number((double)right / (double)task->n));
    lmq_put(&json, "accuracy_norm",
            lmq_json_number((double)right_by_byte / (double)task->n));
    return json;
}

static double
drop(const struct lmq_task *task, const struct tally *tally)
{
    return ((double)tally->right_reference - (double)tally->right) /
           (double)task->n;
}

static json_t *
describe_task(const struct lmq_job *job, const double *reference,
              const double *model)
{
    const struct lmq_task *task = &job->task;
    json_t *json = json_object(), *list = json_array();
    struct tally plain = count(task, reference, model, false, &list);
    struct tally norm = count(task, reference, model, true, NULL);

    lmq_put(&json, "questions", lmq_json_size(task->n));
    lmq_put(&json, "choices", lmq_json_size(task->corpus.n_windows));
    lmq_put(&json, "crc32", lmq_json_crc(task->corpus.crc));
    lmq_put(&json, "reference",
            describe_accuracies(task, plain.right_reference,
                                norm.right_reference));
    lmq_put(&json, "model",
            describe_accuracies(task, plain.right, norm.right));
    lmq_put(&json, "accuracy_drop", lmq_json_number(drop(task, &plain)));
    lmq_put(&json, "accuracy_norm_drop", lmq_json_number(drop(task, &norm)));
    lmq_put(&json, "flips", describe_flips(task, &plain));
    lmq_put(&json, "flips_norm", describe_flips(task, &norm));
    lmq_put(&json, "flipped", list);
    return json;
}

/* ---- All of it ---- */

enum lmq_status
lmq_ask_task(struct lmq_job *job, size_t first, size_t n, double *nll,
             struct lmq_error *err)
{
    const struct lmq_task *task = &job->task;
    struct scores scores = {
        .job = job, .nll = nll, .n_windows = task->corpus.n_windows};
    struct lmq_side *sides;

    if (n == 0)
        return LMQ_OK;
    const struct lmq_question *last = &task->questions[first + n - 1];
    size_t from = task->questions[first].first_window;
    sides = calloc(job->n_candidates + 1, sizeof(*sides));
    if (sides == NULL)
        return lmq_fail_nomem(err);
    sides[0] = lmq_side_reference();
    for (size_t i = 0; i < job->n_candidates; i++)
        sides[i + 1] = lmq_side_judged(job, i, "model");
    enum lmq_status status =
        gather(&scores, sides, from,
               last->first_window + last->n_choices - from, err);
    free(sides);
    return status;
}

void
lmq_score_task(struct lmq_job *job, const double *nll)
{
    size_t n_windows = job->task.corpus.n_windows;

    for (size_t i = 0; i < job->n_candidates; i++)
        lmq_put(&job->candidates[i].report, "task",
                describe_task(job, nll, nll + (i + 1) * n_windows));
}

enum lmq_status
lmq_answer_task(struct lmq_job *job, struct lmq_error *err)
{
    double *nll = calloc(
        (job->n_candidates + 1) * job->task.corpus.n_windows, sizeof(*nll));
    enum lmq_status status =
        nll == NULL ? lmq_fail_nomem(err)
                    : lmq_ask_task(job, 0, job->task.n, nll, err);

    if (status == LMQ_OK)
        lmq_score_task(job, nll);
    free(nll);
    return status;
}
