/*
 * part_write.c - what one part of a validation found, for merging: sums that
 * lose nothing, and of each position what percentiles and errors need.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/report.h"
#include "validate/parts/part_source.h"
#include "validate/parts/parts.h"

/* Of the form that is described in lmquant-merge(1). */
const struct lmq_part_kind lmq_validation_parts = {
    "lmquant_part", 1, "a validation", "validate .part"};

enum lmq_status
lmq_part_check_options(const struct lmq_validate_options *o,
                       struct lmq_error *err)
{
    if (lmq_part_check(o->part, o->n_parts, err) != LMQ_OK)
        return LMQ_ERR_ARG;
    if (o->has_attribution || o->has_floor) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 ".%s does not go with .part: it looks at the first windows "
                 "only",
                 o->has_attribution ? "has_attribution" : "has_floor");
        lmq_hint(err, "ask for it in a run of its own, with .max_tokens");
        return LMQ_ERR_ARG;
    }
    if (o->n_gates > 0 || o->baseline != NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".%s does not go with .part: it belongs to what merges "
                        "the parts",
                        o->n_gates > 0 ? "gates" : "baseline");
    return LMQ_OK;
}

/* ---- Which validation this is ---- */

static json_t *
describe_judged(const struct lmq_judged *candidate, struct lmq_error *err)
{
    json_t *json = lmq_part_source(candidate->file, err);

    lmq_put(&json, "emulation",
            candidate->emulation == LMQ_EMULATE_NONE
                ? json_null()
                : json_string(lmq_names_of(lmq_emulation_names,
                                           candidate->emulation)));
    lmq_put(&json, "activations",
            json_string(lmq_judged_activations(candidate)));
    return json;
}

/* All parts must have the same here. */
static json_t *
describe_run(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_corpus *corpus = &job->corpus;
    json_t *json = json_object(), *models = json_array();

    lmq_put(&json, "text_crc32", lmq_json_crc(corpus->crc));
    lmq_put(&json, "text_bytes", lmq_json_size(corpus->n_bytes));
    lmq_put(&json, "ctx", lmq_json_size(job->protocol.context));
    lmq_put(&json, "stride", lmq_json_size(job->protocol.stride));
    lmq_put_name(&json, "score", lmq_score_names, job->protocol.is_second_half);
    lmq_put_name(&json, "kv", lmq_kv_names, job->kv_type);
    lmq_put(&json, "documents", lmq_json_size(corpus->n_documents));
    lmq_put(&json, "windows", lmq_json_size(corpus->n_windows));
    lmq_put(&json, "tokens", lmq_json_size(corpus->n_tokens));
    lmq_put(&json, "scored", lmq_json_size(corpus->n_scored));
    lmq_put(&json, "tokens_crc32", lmq_part_tokens(corpus));
    lmq_put(&json, "vocabulary", lmq_json_size(job->vocabulary));
    lmq_put(&json, "layers", lmq_json_size(job->n_layers));
    lmq_put(&json, "questions", lmq_json_size(job->task.n));
    lmq_put(&json, "choices", lmq_json_size(job->task.corpus.n_windows));
    lmq_put(&json, "task_crc32", lmq_json_crc(job->task.corpus.crc));
    lmq_put(&json, "reference", lmq_part_source(job->reference_file, err));
    for (size_t i = 0; i < job->n_candidates; i++)
        lmq_append(&models, describe_judged(&job->candidates[i], err));
    lmq_put(&json, "models", models);
    return json;
}

/* ---- What was found ---- */

static json_t *
describe_windows(const struct lmq_job *job, struct lmq_part_range own)
{
    json_t *list = json_array();

    for (size_t i = own.first; i < own.first + own.n; i++) {
        const struct lmq_window *window = &job->corpus.windows[i];
        json_t *numbers = json_array();
        lmq_append(&numbers, lmq_json_size(window->document));
        lmq_append(&numbers, lmq_json_size(window->n));
        lmq_append(&numbers, lmq_json_size(window->n - window->scored));
        lmq_append(&list, numbers);
    }
    return list;
}

static json_t *
describe_positions(const struct lmq_drift *drift)
{
    json_t *list = json_array();

    for (size_t i = 0; i < LMQ_POSITION_BINS; i++) {
        json_t *json = json_object();
        lmq_put(&json, "scored", lmq_json_size(drift->bin_n[i]));
        lmq_put(&json, "kld", lmq_part_sum(&drift->bin_kld[i]));
        lmq_append(&list, json);
    }
    return list;
}

static json_t *
describe_layers(const struct lmq_stream_sums *layers, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *json = json_object();
        lmq_put(&json, "numbers", lmq_json_size(layers[i].n));
        lmq_put(&json, "error_sq", lmq_part_sum(&layers[i].err_sq));
        lmq_put(&json, "reference_sq", lmq_part_sum(&layers[i].reference_sq));
        lmq_put(&json, "model_sq", lmq_part_sum(&layers[i].model_sq));
        lmq_put(&json, "dot", lmq_part_sum(&layers[i].dot));
        lmq_append(&list, json);
    }
    return list;
}

/* A digit for each position. */
static json_t *
describe_top1(const struct lmq_drift *drift)
{
    char *text = malloc(drift->n + 1);

    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < drift->n; i++)
        text[i] = drift->top1[i] > 0 ? '1' : '0';
    json_t *json = json_stringn(text, drift->n);
    free(text);
    return json;
}

static json_t *
describe_candidate(const struct lmq_job *job, size_t index)
{
    const struct lmq_judged *candidate = &job->candidates[index];
    const struct lmq_drift *drift = &candidate->drift;
    json_t *json = json_object(), *sums = json_object();

    lmq_put(&json, "protocol", json_incref(candidate->protocol));
    lmq_put(&json, "tensors", json_incref(candidate->tensors));
    lmq_put(&json, "notes", json_incref(candidate->notes));
    lmq_put(&json, "worst", json_incref(candidate->worst));
    lmq_put(&json, "bytes", lmq_json_size(drift->n_bytes));
    lmq_put(&json, "lost", lmq_json_size(drift->n_lost));
    lmq_put(&json, "gained", lmq_json_size(drift->n_gained));
    lmq_put(&json, "logits_max_abs", lmq_json_number(drift->max_abs));
    for (size_t i = 0; i < LMQ_SUMS; i++)
        lmq_put(&sums, lmq_part_sum_names[i], lmq_part_sum(&drift->sums[i]));
    lmq_put(&json, "sums", sums);
    lmq_put(&json, "positions", describe_positions(drift));
    lmq_put(&json, "layers",
            describe_layers(job->layers + (index + 1) * (job->n_layers + 1),
                            job->n_layers + 1));
    lmq_put(&json, "kld", lmq_part_numbers(drift->kld, drift->n));
    lmq_put(&json, "delta_nll", lmq_part_numbers(drift->delta, drift->n));
    lmq_put(&json, "same_top1", describe_top1(drift));
    return json;
}

/* ---- Questions ---- */

static json_t *
describe_question(const struct lmq_task *task,
                  const struct lmq_question *question)
{
    json_t *json = json_object(), *bytes = json_array();

    lmq_put(&json, "line", lmq_json_size(question->line));
    lmq_put(&json, "answer", lmq_json_size(question->answer));
    for (size_t i = 0; i < question->n_choices; i++)
        lmq_append(&bytes,
                   lmq_json_size(task->bytes[question->first_window + i]));
    lmq_put(&json, "bytes", bytes);
    return json;
}

static json_t *
describe_task(const struct lmq_job *job, const double *nll)
{
    const struct lmq_task *task = &job->task;
    const struct lmq_part_range own =
        lmq_part_of(task->n, job->options->part, job->options->n_parts);
    size_t first = 0, n = 0, n_windows = task->corpus.n_windows;
    json_t *json = json_object(), *questions = json_array();
    json_t *sides = json_array();

    if (own.n > 0)
        first = task->questions[own.first].first_window;
    for (size_t i = own.first; i < own.first + own.n; i++) {
        n += task->questions[i].n_choices;
        lmq_append(&questions, describe_question(task, &task->questions[i]));
    }
    for (size_t i = 0; i <= job->n_candidates; i++)
        lmq_append(&sides, lmq_part_numbers(nll + i * n_windows + first, n));
    lmq_put(&json, "questions", questions);
    lmq_put(&json, "nll", sides);
    return json;
}

/* ---- All of it ---- */

enum lmq_status
lmq_part_describe(const struct lmq_job *job, const double *nll, double seconds,
                  json_t **out, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    const struct lmq_part_range own =
        lmq_part_of(job->corpus.n_windows, o->part, o->n_parts);
    struct lmq_error why = {0};
    json_t *models = json_array();
    json_t *json = lmq_part_start(&lmq_validation_parts, o->part, o->n_parts,
                                  describe_run(job, &why));

    lmq_put(&json, "seconds", lmq_json_number(seconds));
    lmq_put(&json, "windows", describe_windows(job, own));
    for (size_t i = 0; i < job->n_candidates; i++)
        lmq_append(&models, describe_candidate(job, i));
    lmq_put(&json, "models", models);
    if (job->task.n > 0)
        lmq_put(&json, "task", describe_task(job, nll));
    return lmq_part_finish(json, &why, out, err);
}

enum lmq_status
lmq_validate_part(const struct lmq_report *part, char **text,
                  struct lmq_error *err)
{
    return lmq_part_text((const json_t *)part, text, err);
}

enum lmq_status
lmq_validate_write_part(const struct lmq_report *part, const char *path,
                        int replaces, struct lmq_error *err)
{
    return lmq_part_write((const json_t *)part, path, replaces != 0, err);
}
