/*
 * merge.c - all parts of a validation become the report that one run makes.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/output.h"
#include "base/options.h"
#include "base/report.h"
#include "validate/metrics.h"
#include "validate/parts/parts.h"

#define FILE_MOST ((size_t)4 << 30)
#define PARTS_MOST 99999

struct part {
    const char *name; /* of its file, for messages */
    json_t *json;
    size_t number; /* from 1 */
};

struct merging {
    struct part *parts;
    size_t n;
    struct lmq_validate_options validate; /* what a job needs of them */
    struct lmq_job job;
    double *nll, seconds;
};

/* ---- Reading ---- */

static enum lmq_status
parse(struct part *part, const void *text, size_t n, size_t *n_parts,
      struct lmq_error *err)
{
    json_error_t problem = {0};
    enum lmq_status status = lmq_json_read(text, n, JSON_REJECT_DUPLICATES,
                                           &part->json, &problem, err);

    if (status == LMQ_ERR_FORMAT && problem.text[0] != '\0')
        return lmq_fail(err, status, 0, "is no JSON: %s (line %d)",
                        problem.text, problem.line);
    if (status != LMQ_OK)
        return status;
    json_int_t form =
        json_integer_value(json_object_get(part->json, "lmquant_part"));
    json_int_t number =
        json_integer_value(json_object_get(part->json, "part"));
    json_int_t total =
        json_integer_value(json_object_get(part->json, "parts"));
    if (form != LMQ_PART_FORM || number < 1 || total < number ||
        total > PARTS_MOST) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 form > LMQ_PART_FORM ? "is a part of a newer form than is "
                                        "understood here"
                                      : "is no part of a validation");
        lmq_hint(err, "expected what validate .part writes");
        return LMQ_ERR_FORMAT;
    }
    part->number = (size_t)number;
    *n_parts = (size_t)total;
    return LMQ_OK;
}

static enum lmq_status
load(struct part *part, size_t *n_parts, struct lmq_error *err)
{
    unsigned char *bytes;
    size_t n;
    enum lmq_status status =
        lmq_file_load(part->name, FILE_MOST, &bytes, &n, err);

    if (status != LMQ_OK)
        return status;
    status = parse(part, bytes, n, n_parts, err);
    free(bytes);
    return status;
}

/* ---- Are they of one run? ---- */

/* Where two values differ first, as a path. */
static const json_t *
find_difference(const json_t *a, const json_t *b, char *path, size_t size,
                const json_t **other)
{
    size_t used = strlen(path), i;
    const json_t *value, *found;
    const char *key;

    if (json_equal(a, b))
        return NULL;
    *other = b;
    json_object_foreach((json_t *)(uintptr_t)a, key, value) {
        snprintf(path + used, size - used, "%s%s", used > 0 ? "." : "", key);
        found = find_difference(value, json_object_get(b, key), path, size,
                                other);
        if (found != NULL)
            return found;
    }
    json_array_foreach((json_t *)(uintptr_t)a, i, value) {
        snprintf(path + used, size - used, ".%zu", i);
        found = find_difference(value, json_array_get(b, i), path, size,
                                other);
        if (found != NULL)
            return found;
    }
    path[used] = '\0';
    *other = b;
    return a;
}

static enum lmq_status
fail_other(const char *what, const json_t *found, const json_t *expected,
           const char *first, struct lmq_error *err)
{
    char *a = lmq_json_dump(found, JSON_ENCODE_ANY | JSON_COMPACT);
    char *b = lmq_json_dump(expected, JSON_ENCODE_ANY | JSON_COMPACT);

    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is of another run: %s is %.40s, in %.200s it is %.40s", what,
             a == NULL ? "absent" : a, first, b == NULL ? "absent" : b);
    lmq_hint(err, "all parts need the same models, text, options and version: "
                  "make this one again");
    free(a);
    free(b);
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
check_same_run(const struct part *first, const struct part *part,
               struct lmq_error *err)
{
    static const char *const keys[] = {"version", "run"};
    char path[256] = "";
    const json_t *other = NULL;

    for (size_t i = 0; i < 2; i++) {
        const json_t *expected = json_object_get(first->json, keys[i]);
        const json_t *found = find_difference(
            json_object_get(part->json, keys[i]), expected, path,
            sizeof(path), &other);
        if (found == NULL && !json_equal(expected,
                                         json_object_get(part->json, keys[i])))
            return fail_other(keys[i], json_object_get(part->json, keys[i]),
                              expected, first->name, err);
        if (found != NULL)
            return fail_other(path[0] == '\0' ? keys[i] : path, found, other,
                              first->name, err);
    }
    return LMQ_OK;
}

static int
compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

/* "2, 5 and 7 of 8 parts are missing"; the first ten of them. */
static enum lmq_status
fail_missing(const struct merging *merging, size_t n_parts,
             struct lmq_error *err)
{
    size_t n = n_parts - merging->n, at = 0, used = 0;
    char list[128] = "";

    for (size_t i = 1, named = 0; i <= n_parts && named < 10; i++) {
        if (at < merging->n && merging->parts[at].number == i) {
            at++;
            continue;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%zu",
                                 named == 0 ? "" : ", ", i);
        named++;
    }
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "%zu of %zu parts %s missing: %s%s", n,
             n_parts, n == 1 ? "is" : "are", list, n > 10 ? ", ..." : "");
    lmq_hint(err, "validate .part I/%zu, with the same models, text and "
                  "options, makes one",
             n_parts);
    return LMQ_ERR_FORMAT;
}

/* Sorts them, as one run has the text. */
static enum lmq_status
check_complete(struct merging *merging, size_t n_parts, struct lmq_error *err)
{
    struct part *parts = merging->parts;

    qsort(parts, merging->n, sizeof(*parts), compare_parts);
    for (size_t i = 1; i < merging->n; i++)
        if (parts[i].number == parts[i - 1].number) {
            lmq_fail(err, LMQ_ERR_FORMAT, 0, "is part %zu of %zu, as %.200s is",
                     parts[i].number, n_parts, parts[i - 1].name);
            lmq_error_in(err, parts[i].name);
            return LMQ_ERR_FORMAT;
        }
    return merging->n < n_parts ? fail_missing(merging, n_parts, err)
                                : LMQ_OK;
}

/* Each against the first that was named. */
static enum lmq_status
check_parts(struct merging *merging, const size_t *totals,
            struct lmq_error *err)
{
    const struct part *first = &merging->parts[0];

    for (size_t i = 1; i < merging->n; i++) {
        struct part *part = &merging->parts[i];
        enum lmq_status status =
            totals[i] != totals[0]
                ? lmq_fail(err, LMQ_ERR_FORMAT, 0,
                           "is one of %zu parts, %.200s of %zu", totals[i],
                           first->name, totals[0])
                : check_same_run(first, part, err);
        if (status != LMQ_OK) {
            lmq_error_in(err, part->name);
            return status;
        }
    }
    return check_complete(merging, totals[0], err);
}

/* ---- Adding them up ---- */

static size_t
count_choices(const json_t *questions)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(questions); i++)
        n += json_array_size(
            json_object_get(json_array_get(questions, i), "bytes"));
    return n;
}

/* Room for as many questions as there are, if that is what they say. */
static enum lmq_status
make_task(struct merging *merging, struct lmq_error *err)
{
    struct lmq_task *task = &merging->job.task;
    size_t n = 0, n_choices = 0;

    for (size_t i = 0; i < merging->n; i++) {
        const json_t *questions = json_object_get(
            json_object_get(merging->parts[i].json, "task"), "questions");
        n += json_array_size(questions);
        n_choices += count_choices(questions);
    }
    if (n != task->n || n_choices != task->corpus.n_windows)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the parts have %zu questions with %zu choices, but "
                        "say that there are %zu with %zu",
                        n, n_choices, task->n, task->corpus.n_windows);
    task->questions = calloc(n + 1, sizeof(*task->questions));
    task->bytes = calloc(n_choices + 1, sizeof(*task->bytes));
    merging->nll = calloc((merging->job.n_candidates + 1) * n_choices + 1,
                          sizeof(*merging->nll));
    return task->questions == NULL || task->bytes == NULL ||
                   merging->nll == NULL
               ? lmq_fail_nomem(err)
               : LMQ_OK;
}

static enum lmq_status
add_part(struct merging *merging, const struct part *part,
         struct lmq_error *err)
{
    const json_t *seconds = json_object_get(part->json, "seconds");

    merging->validate.part = (unsigned)part->number;
    merging->seconds += json_number_value(seconds);
    return lmq_part_add(&merging->job, part->json, merging->nll, err);
}

static enum lmq_status
add_all(struct merging *merging, struct lmq_error *err)
{
    const struct part *first = &merging->parts[0];
    enum lmq_status status =
        lmq_part_begin(&merging->job, first->json, err);

    if (status == LMQ_OK)
        status = make_task(merging, err);
    if (status != LMQ_OK)
        lmq_error_in(err, first->name);
    for (size_t i = 0; i < merging->n && status == LMQ_OK; i++) {
        struct part *part = &merging->parts[i];
        status = add_part(merging, part, err);
        if (status != LMQ_OK)
            lmq_error_in(err, part->name);
        json_decref(part->json); /* it may be large */
        part->json = NULL;
    }
    if (status == LMQ_OK) {
        status = lmq_part_end(&merging->job, err);
        if (status != LMQ_OK)
            lmq_error_in(err, first->name);
    }
    return status;
}

/* ---- The report ---- */

static enum lmq_status
check_gates(const struct lmq_merge_options *options, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < options->n_gates && status == LMQ_OK; i++)
        status = lmq_metrics_check_gate(options->gates[i], err);
    return status;
}

static enum lmq_status
report_on(struct merging *merging, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_job *job = &merging->job;
    enum lmq_status status = lmq_baseline_open(job, err);

    if (status == LMQ_OK)
        status = lmq_describe_candidates(job, merging->seconds, err);
    if (status == LMQ_OK && job->task.n > 0)
        lmq_score_task(job, merging->nll);
    return status == LMQ_OK ? lmq_assemble(job, report, err) : status;
}

/* The page may replace none of what it is made of. */
static enum lmq_status
check_page(const struct merging *merging,
           const struct lmq_merge_options *options, bool are_files,
           struct lmq_error *err)
{
    struct lmq_originals originals = {0};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < merging->n && are_files && status == LMQ_OK; i++)
        status = lmq_originals_add(&originals, merging->parts[i].name, false,
                                   err);
    if (status == LMQ_OK && options->baseline != NULL)
        status = lmq_originals_add(&originals, options->baseline, false, err);
    if (status == LMQ_OK)
        status = lmq_output_check(options->page, options->replaces != 0,
                                  &originals, err);
    lmq_originals_free(&originals);
    return status;
}

static enum lmq_status
merge(struct merging *merging, const size_t *totals,
      struct lmq_report **report, struct lmq_error *err)
{
    enum lmq_status status = check_parts(merging, totals, err);

    merging->validate.n_parts = (unsigned)totals[0];
    if (status == LMQ_OK)
        status = add_all(merging, err);
    return status == LMQ_OK ? report_on(merging, report, err) : status;
}

/* From files, or from texts of theirs. */
static enum lmq_status
merge_any(const char *const *names, const char *const *texts, size_t n,
          const struct lmq_merge_options *given, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_merge_options options;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_merge_options, &options, given, err);

    if (report != NULL)
        *report = NULL;
    if (status == LMQ_OK)
        status = check_gates(&options, err);
    if (status != LMQ_OK || n == 0)
        return status;
    struct merging merging = {
        .parts = calloc(n, sizeof(struct part)),
        .n = n,
        .validate = {.size = sizeof(merging.validate),
                     .baseline = options.baseline,
                     .gates = options.gates,
                     .n_gates = options.n_gates}};
    size_t *totals = calloc(n, sizeof(*totals));
    merging.job.options = &merging.validate;
    if (merging.parts == NULL || totals == NULL)
        status = lmq_fail_nomem(err);
    for (size_t i = 0; i < n && merging.parts != NULL; i++)
        merging.parts[i].name = names[i];
    if (status == LMQ_OK && options.page != NULL)
        status = check_page(&merging, &options, texts == NULL, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        struct part *part = &merging.parts[i];
        status = texts == NULL ? load(part, &totals[i], err)
                               : parse(part, texts[i], strlen(texts[i]),
                                       &totals[i], err);
        if (status != LMQ_OK)
            lmq_error_in(err, part->name);
    }
    if (status == LMQ_OK)
        status = merge(&merging, totals, report, err);
    for (size_t i = 0; i < n && merging.parts != NULL; i++)
        json_decref(merging.parts[i].json);
    lmq_job_tear_down(&merging.job);
    free(merging.parts);
    free(merging.nll);
    free(totals);
    return status;
}

enum lmq_status
lmq_merge(const char *const *paths, size_t n,
          const struct lmq_merge_options *options, struct lmq_report **report,
          struct lmq_error *err)
{
    return merge_any(paths, NULL, n, options, report, err);
}

enum lmq_status
lmq_merge_texts(const char *const *names, const char *const *texts, size_t n,
                const struct lmq_merge_options *options,
                struct lmq_report **report, struct lmq_error *err)
{
    return merge_any(names, texts, n, options, report, err);
}
