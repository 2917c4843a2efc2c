/*
 * part_read.c - what parts of a validation have written down, into one job.
 *
 * The files are anybody's: every number is checked before it is believed, and
 * texts of which a report is made are made harmless again.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/size.h"
#include "validate/parts/parts.h"

/* More than anybody has; so that sizes cannot wrap. */
#define MOST ((size_t)1 << (sizeof(size_t) == 8 ? 40 : 28))
#define MOST_LAYERS ((size_t)1 << 16)

static enum lmq_status fail_key(struct lmq_error *err, const char *format, ...)
    LMQ_PRINTF(2, 3);

static enum lmq_status
fail_key(struct lmq_error *err, const char *format, ...)
{
    char key[64];
    va_list args;

    va_start(args, format);
    vsnprintf(key, sizeof(key), format, args);
    va_end(args);
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is no part of a validation: '%s' is missing or not as it should "
             "be",
             key);
    lmq_hint(err, "expected what validate .part writes; a damaged part can "
                  "be made again");
    return LMQ_ERR_FORMAT;
}

/* ---- Values ---- */

/* A whole number up to `most`; another machine may have counted it, with more
 * bits. */
static bool
read_count(const json_t *json, uint64_t most, uint64_t *value)
{
    json_int_t n = json_integer_value(json);

    *value = (uint64_t)n;
    return json_is_integer(json) && n >= 0 && (uint64_t)n <= most;
}

static bool
read_size(const json_t *json, size_t most, size_t *value)
{
    uint64_t n;
    bool is_good = read_count(json, most, &n);

    if (is_good)
        *value = (size_t)n;
    return is_good;
}

static bool
get_size(const json_t *object, const char *key, size_t most, size_t *value)
{
    return read_size(json_object_get(object, key), most, value);
}

static bool
merge_sum(const json_t *object, const char *key, struct lmq_exact_sum *sum)
{
    const char *text = json_string_value(json_object_get(object, key));
    struct lmq_exact_sum more;

    if (text == NULL || !lmq_exact_parse(text, &more))
        return false;
    lmq_exact_merge(sum, &more);
    return true;
}

/* ---- Parts of reports ---- */

enum kind { TEXT, RAW, SIZE, NUMBER, BOOLEAN };

struct field {
    const char *key;
    enum kind kind;
};

static bool
is_of_kind(const json_t *value, enum kind kind)
{
    uint64_t size;

    switch (kind) {
    case TEXT:
    case RAW:
        return json_is_string(value);
    case SIZE:
        return read_count(value, INT64_MAX, &size);
    case NUMBER:
        return json_is_number(value) || json_is_null(value);
    case BOOLEAN:
        return json_is_boolean(value);
    }
    return false;
}

static bool
has_fields(const json_t *from, const struct field *fields)
{
    for (; fields->key != NULL; fields++)
        if (!is_of_kind(json_object_get(from, fields->key), fields->kind))
            return false;
    return true;
}

static bool
is_list_of(const json_t *list, const struct field *fields, size_t most)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!has_fields(json_array_get(list, i), fields))
            return false;
    return json_is_array(list) && json_array_size(list) <= most;
}

/* Of a value that is of the kind. What stands for a text is shown with
 * escapes where it is shown; all else is made printable. */
static json_t *
copy_value(const json_t *value, enum kind kind)
{
    return kind == TEXT ? lmq_json_text(json_string_value(value))
                        : json_deep_copy(value);
}

/* These fields and no others, in their order. */
static json_t *
copy_fields(const json_t *from, const struct field *fields)
{
    json_t *json = json_object();

    for (; fields->key != NULL; fields++)
        lmq_put(&json, fields->key,
                copy_value(json_object_get(from, fields->key), fields->kind));
    return json;
}

static json_t *
copy_list(const json_t *list, const struct field *fields)
{
    json_t *copy = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        lmq_append(&copy, copy_fields(json_array_get(list, i), fields));
    return copy;
}

static bool
are_notes(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return false;
    return json_is_array(list);
}

static json_t *
copy_notes(const json_t *list)
{
    json_t *copy = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        lmq_append(&copy, copy_value(json_array_get(list, i), TEXT));
    return copy;
}

static const struct field model_fields[] = {{"path", TEXT},
                                            {"format", TEXT},
                                            {"bytes", SIZE},
                                            {"bits_per_weight", NUMBER},
                                            {NULL, TEXT}};
static const struct field protocol_fields[] = {
    {"stride", SIZE},     {"score", TEXT},       {"bos", BOOLEAN},
    {"documents", SIZE},  {"windows", SIZE},     {"text_bytes", SIZE},
    {"text_crc32", TEXT}, {"activations", TEXT}, {"kv", TEXT},
    {"tool", TEXT},       {"instruction_set", TEXT},
    {NULL, TEXT}};
static const struct field tensor_fields[] = {{"name", TEXT},
                                             {"sqnr_db", NUMBER},
                                             {"max_abs", NUMBER},
                                             {NULL, TEXT}};
static const struct field worst_fields[] = {
    {"position", SIZE},        {"kld", NUMBER},
    {"context", RAW},          {"token", RAW},
    {"reference_says", RAW},   {"model_says", RAW},
    {"reference_nll", NUMBER}, {"model_nll", NUMBER},
    {NULL, TEXT}};

static bool
is_protocol(const json_t *from)
{
    return has_fields(json_object_get(from, "reference"), model_fields) &&
           has_fields(json_object_get(from, "model"), model_fields) &&
           has_fields(from, protocol_fields);
}

static json_t *
copy_protocol(const json_t *from)
{
    json_t *json = json_object();

    lmq_put(&json, "reference",
            copy_fields(json_object_get(from, "reference"), model_fields));
    lmq_put(&json, "model",
            copy_fields(json_object_get(from, "model"), model_fields));
    json_t *rest = copy_fields(from, protocol_fields);
    if (rest == NULL || json_object_update(json, rest) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(rest);
    return json;
}

/* Of the first part; those of the others differ in nothing that is shown. */
static enum lmq_status
take_evidence(struct lmq_judged *candidate, const json_t *from, size_t index,
              struct lmq_error *err)
{
    const json_t *protocol = json_object_get(from, "protocol");
    const json_t *tensors = json_object_get(from, "tensors");
    const json_t *notes = json_object_get(from, "notes");

    if (!is_protocol(protocol))
        return fail_key(err, "models.%zu.protocol", index);
    if (!is_list_of(tensors, tensor_fields, MOST))
        return fail_key(err, "models.%zu.tensors", index);
    if (!are_notes(notes))
        return fail_key(err, "models.%zu.notes", index);
    candidate->protocol = copy_protocol(protocol);
    candidate->tensors = copy_list(tensors, tensor_fields);
    candidate->notes = copy_notes(notes);
    candidate->worst = json_array();
    return candidate->protocol == NULL || candidate->tensors == NULL ||
                   candidate->notes == NULL || candidate->worst == NULL
               ? lmq_fail_nomem(err)
               : LMQ_OK;
}

/* ---- What all parts say ---- */

static enum lmq_status
read_run(struct lmq_job *job, const json_t *run, struct lmq_error *err)
{
    const struct {
        const char *key;
        size_t most, *value;
    } sizes[] = {
        {"ctx", LMQ_MAX_CONTEXT, &job->protocol.context},
        {"windows", MOST, &job->corpus.n_windows},
        {"documents", MOST, &job->corpus.n_documents},
        {"scored", MOST, &job->corpus.n_scored},
        {"tokens", MOST, &job->corpus.n_tokens},
        {"vocabulary", MOST, &job->vocabulary},
        {"layers", MOST_LAYERS, &job->n_layers},
        {"questions", MOST, &job->task.n},
        {"choices", MOST, &job->task.corpus.n_windows},
    };
    const char *crc = json_string_value(json_object_get(run, "task_crc32"));
    char *end = NULL;

    if (!json_is_object(run))
        return fail_key(err, "run");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (!get_size(run, sizes[i].key, sizes[i].most, sizes[i].value))
            return fail_key(err, "run.%s", sizes[i].key);
    if (job->protocol.context < 2 || job->corpus.n_scored == 0)
        return fail_key(err, "run.scored");
    job->task.corpus.crc =
        crc == NULL ? 0 : (uint32_t)strtoul(crc, &end, 16);
    if (crc == NULL || strlen(crc) != 8 || *end != '\0')
        return fail_key(err, "run.task_crc32");
    job->n_candidates = json_array_size(json_object_get(run, "models"));
    if (job->n_candidates == 0 || job->n_candidates > 1024)
        return fail_key(err, "run.models");
    return LMQ_OK;
}

enum lmq_status
lmq_part_begin(struct lmq_job *job, const json_t *part, struct lmq_error *err)
{
    const json_t *models = json_object_get(part, "models");
    enum lmq_status status = read_run(job, json_object_get(part, "run"), err);

    if (status != LMQ_OK)
        return status;
    /* Nothing is allocated for what a number only says. */
    if (json_array_size(models) != job->n_candidates)
        return fail_key(err, "models");
    for (size_t i = 0; i < job->n_candidates; i++)
        if (json_array_size(json_object_get(json_array_get(models, i),
                                            "layers")) != job->n_layers + 1)
            return fail_key(err, "models.%zu.layers", i);
    job->candidates = calloc(job->n_candidates, sizeof(*job->candidates));
    job->layers = calloc((job->n_candidates + 1) * (job->n_layers + 1),
                         sizeof(*job->layers));
    if (job->candidates == NULL || job->layers == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = take_evidence(&job->candidates[i], json_array_get(models, i),
                               i, err);
    return status;
}

/* ---- Windows ---- */

/* Its windows are those that its number gives it; *scored of all. */
static enum lmq_status
count_windows(struct lmq_job *job, const json_t *part, size_t *scored,
              struct lmq_error *err)
{
    const json_t *list = json_object_get(part, "windows");
    const struct lmq_part_range own =
        lmq_part_of(job->corpus.n_windows, job->options->part,
                    job->options->n_parts);

    *scored = 0;
    if (!json_is_array(list) || json_array_size(list) != own.n)
        return fail_key(err, "windows");
    for (size_t i = 0; i < own.n; i++) {
        const json_t *window = json_array_get(list, i);
        size_t document, tokens, n;
        if (!read_size(json_array_get(window, 0), job->corpus.n_documents,
                       &document) ||
            !read_size(json_array_get(window, 1), job->protocol.context,
                       &tokens) ||
            !read_size(json_array_get(window, 2), tokens, &n))
            return fail_key(err, "windows.%zu", i);
        job->n_tokens += tokens;
        *scored += n;
    }
    job->n_windows += own.n;
    return LMQ_OK;
}

/* In the order of the text documents only rise. */
static bool
read_documents(const json_t *windows, size_t n_documents,
               const struct lmq_drift *drift, size_t *documents)
{
    size_t last = drift->n == 0 ? 0 : drift->document[drift->n - 1], at = 0;

    for (size_t i = 0; i < json_array_size(windows); i++) {
        const json_t *window = json_array_get(windows, i);
        size_t document = (size_t)json_integer_value(json_array_get(window, 0));
        size_t n = (size_t)json_integer_value(json_array_get(window, 2));
        if (document < last || document >= n_documents)
            return false;
        for (size_t j = 0; j < n; j++)
            documents[at++] = document;
        last = document;
    }
    return true;
}

/* ---- A model ---- */

static bool
are_finite(const double *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

static bool
read_top1(const json_t *json, struct lmq_drift *drift, size_t n)
{
    const char *text = json_string_value(json);

    if (text == NULL || json_string_length(json) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '0' && text[i] != '1')
            return false;
        drift->top1[drift->n + i] = text[i] == '1';
        drift->n_top1_equal += text[i] == '1';
    }
    return true;
}

static enum lmq_status
add_positions(struct lmq_drift *drift, const json_t *from, size_t n,
              size_t index, struct lmq_error *err)
{
    if (!lmq_part_read_numbers(json_object_get(from, "kld"),
                               drift->kld + drift->n, n) ||
        !are_finite(drift->kld + drift->n, n))
        return fail_key(err, "models.%zu.kld", index);
    if (!lmq_part_read_numbers(json_object_get(from, "delta_nll"),
                               drift->delta + drift->n, n) ||
        !are_finite(drift->delta + drift->n, n))
        return fail_key(err, "models.%zu.delta_nll", index);
    if (!read_top1(json_object_get(from, "same_top1"), drift, n))
        return fail_key(err, "models.%zu.same_top1", index);
    return LMQ_OK;
}

static enum lmq_status
add_sums(struct lmq_drift *drift, const json_t *from, size_t n, size_t index,
         struct lmq_error *err)
{
    const json_t *sums = json_object_get(from, "sums");
    const json_t *bins = json_object_get(from, "positions");
    const json_t *largest = json_object_get(from, "logits_max_abs");
    size_t bytes, lost, gained, in_bins = 0;

    for (size_t i = 0; i < LMQ_SUMS; i++)
        if (!merge_sum(sums, lmq_part_sum_names[i], &drift->sums[i]))
            return fail_key(err, "models.%zu.sums.%s", index,
                            lmq_part_sum_names[i]);
    for (size_t i = 0; i < LMQ_POSITION_BINS; i++) {
        const json_t *bin = json_array_get(bins, i);
        size_t scored;
        if (!get_size(bin, "scored", n, &scored) ||
            !merge_sum(bin, "kld", &drift->bin_kld[i]))
            return fail_key(err, "models.%zu.positions.%zu", index, i);
        drift->bin_n[i] += scored;
        in_bins += scored;
    }
    if (in_bins != n || json_array_size(bins) != LMQ_POSITION_BINS)
        return fail_key(err, "models.%zu.positions", index);
    if (!get_size(from, "bytes", MOST, &bytes) ||
        !get_size(from, "lost", n, &lost) ||
        !get_size(from, "gained", n - lost, &gained))
        return fail_key(err, "models.%zu.bytes, lost or gained", index);
    if (!json_is_number(largest) || !(json_number_value(largest) >= 0))
        return fail_key(err, "models.%zu.logits_max_abs", index);
    drift->n_bytes += bytes;
    drift->n_lost += lost;
    drift->n_gained += gained;
    drift->max_abs = fmax(drift->max_abs, json_number_value(largest));
    return LMQ_OK;
}

static enum lmq_status
add_layers(struct lmq_stream_sums *layers, size_t n_layers,
           const json_t *from, size_t index, struct lmq_error *err)
{
    const json_t *list = json_object_get(from, "layers");

    if (json_array_size(list) != n_layers)
        return fail_key(err, "models.%zu.layers", index);
    for (size_t i = 0; i < n_layers; i++) {
        const json_t *layer = json_array_get(list, i);
        uint64_t n;
        if (!read_count(json_object_get(layer, "numbers"), UINT64_MAX >> 8,
                        &n) ||
            !merge_sum(layer, "error_sq", &layers[i].err_sq) ||
            !merge_sum(layer, "reference_sq", &layers[i].reference_sq) ||
            !merge_sum(layer, "model_sq", &layers[i].model_sq) ||
            !merge_sum(layer, "dot", &layers[i].dot))
            return fail_key(err, "models.%zu.layers.%zu", index, i);
        layers[i].n += n;
    }
    return LMQ_OK;
}

/* The worst of those before and of these; equal ones in the order of the
 * text, as one run finds them. Both lists fall. */
static json_t *
merge_worst(const json_t *a, const json_t *b)
{
    json_t *merged = json_array();
    size_t i = 0, j = 0;

    while (i + j < LMQ_WORST &&
           (i < json_array_size(a) || j < json_array_size(b))) {
        json_t *x = json_array_get(a, i), *y = json_array_get(b, j);
        double kld_x = json_number_value(json_object_get(x, "kld"));
        double kld_y = json_number_value(json_object_get(y, "kld"));
        bool is_first = y == NULL || (x != NULL && kld_x >= kld_y);
        lmq_append(&merged, json_incref(is_first ? x : y));
        i += is_first;
        j += !is_first;
    }
    return merged;
}

static enum lmq_status
add_worst(struct lmq_judged *candidate, const json_t *from, size_t index,
          struct lmq_error *err)
{
    const json_t *list = json_object_get(from, "worst");

    if (!is_list_of(list, worst_fields, LMQ_WORST))
        return fail_key(err, "models.%zu.worst", index);
    json_t *own = copy_list(list, worst_fields);
    if (own == NULL)
        return lmq_fail_nomem(err);
    json_t *merged = merge_worst(candidate->worst, own);
    json_decref(own);
    json_decref(candidate->worst);
    candidate->worst = merged;
    return merged == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
add_model(struct lmq_job *job, size_t index, const json_t *part, size_t n,
          struct lmq_error *err)
{
    struct lmq_judged *candidate = &job->candidates[index];
    struct lmq_drift *drift = &candidate->drift;
    const json_t *from =
        json_array_get(json_object_get(part, "models"), index);
    size_t n_layers = job->n_layers + 1;

    if (json_string_length(json_object_get(from, "same_top1")) != n)
        return fail_key(err, "models.%zu.same_top1", index);
    enum lmq_status status = lmq_drift_reserve(drift, drift->n + n) == 0
                                 ? LMQ_OK
                                 : lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = add_positions(drift, from, n, index, err);
    if (status == LMQ_OK)
        status = add_sums(drift, from, n, index, err);
    if (status == LMQ_OK)
        status = add_layers(job->layers + (index + 1) * n_layers, n_layers,
                            from, index, err);
    if (status == LMQ_OK)
        status = add_worst(candidate, from, index, err);
    if (status == LMQ_OK &&
        !read_documents(json_object_get(part, "windows"),
                        job->corpus.n_documents, drift,
                        drift->document + drift->n))
        status = fail_key(err, "windows");
    if (status == LMQ_OK)
        drift->n += n;
    return status;
}

/* ---- Questions ---- */

static enum lmq_status
add_question(struct lmq_task *task, const json_t *from, size_t n_done,
             size_t n_windows, size_t *n_choices, struct lmq_error *err)
{
    struct lmq_question *question = &task->questions[n_done];
    const json_t *bytes = json_object_get(from, "bytes");
    size_t n = json_array_size(bytes);

    if (n < 2 || n > LMQ_TASK_MOST_CHOICES ||
        n > task->corpus.n_windows - n_windows - *n_choices ||
        !get_size(from, "line", MOST, &question->line) ||
        !get_size(from, "answer", n - 1, &question->answer))
        return fail_key(err, "task.questions");
    question->first_window = n_windows + *n_choices;
    question->n_choices = n;
    for (size_t i = 0; i < n; i++) {
        size_t *size = &task->bytes[question->first_window + i];
        if (!read_size(json_array_get(bytes, i), MOST, size) || *size == 0)
            return fail_key(err, "task.questions");
    }
    *n_choices += n;
    return LMQ_OK;
}

/* task.capacity and task.bytes_capacity count what is there so far. */
static enum lmq_status
add_task(struct lmq_job *job, const json_t *part, double *nll,
         struct lmq_error *err)
{
    struct lmq_task *task = &job->task;
    const json_t *from = json_object_get(part, "task");
    const json_t *questions = json_object_get(from, "questions");
    const json_t *sides = json_object_get(from, "nll");
    const struct lmq_part_range own = lmq_part_of(
        task->n, job->options->part, job->options->n_parts);
    size_t first = task->bytes_capacity, n = 0;
    enum lmq_status status = LMQ_OK;

    if (task->n == 0)
        return LMQ_OK;
    if (!json_is_array(questions) || json_array_size(questions) != own.n)
        return fail_key(err, "task.questions");
    for (size_t i = 0; i < own.n && status == LMQ_OK; i++)
        status = add_question(task, json_array_get(questions, i),
                              own.first + i, first, &n, err);
    if (status == LMQ_OK && json_array_size(sides) != job->n_candidates + 1)
        status = fail_key(err, "task.nll");
    for (size_t i = 0; i <= job->n_candidates && status == LMQ_OK; i++) {
        double *at = nll + i * task->corpus.n_windows + first;
        if (!lmq_part_read_numbers(json_array_get(sides, i), at, n) ||
            !are_finite(at, n))
            status = fail_key(err, "task.nll.%zu", i);
    }
    task->bytes_capacity += n;
    return status;
}

/* ---- All of it ---- */

enum lmq_status
lmq_part_add(struct lmq_job *job, const json_t *part, double *nll,
             struct lmq_error *err)
{
    size_t n;
    enum lmq_status status = count_windows(job, part, &n, err);

    if (status == LMQ_OK && json_array_size(json_object_get(part, "models")) !=
                                job->n_candidates)
        status = fail_key(err, "models");
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = add_model(job, i, part, n, err);
    return status == LMQ_OK ? add_task(job, part, nll, err) : status;
}

enum lmq_status
lmq_part_end(const struct lmq_job *job, struct lmq_error *err)
{
    if (job->candidates[0].drift.n != job->corpus.n_scored)
        return fail_key(err, "run.scored");
    if (job->n_tokens != job->corpus.n_tokens)
        return fail_key(err, "run.tokens");
    if (job->task.n > 0 &&
        job->task.bytes_capacity != job->task.corpus.n_windows)
        return fail_key(err, "run.choices");
    return LMQ_OK;
}
