/*
 * baseline.c - an earlier report of validate, so that gates can say "no worse
 * than last time".
 *
 * The file is anybody's: nothing in it is believed but its numbers, and these
 * only where the same was measured in the same way.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/report.h"
#include "validate/gates.h"
#include "validate/job.h"

#define BASELINE_MAX ((size_t)64 << 20)

/* ---- Reading ---- */

static enum lmq_status
fail_format(struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "is no report of validate");
    lmq_hint(err, "expected an earlier report of validate, as JSON");
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
read_json(const char *path, json_t **json, struct lmq_error *err)
{
    json_error_t problem = {0};
    unsigned char *bytes;
    size_t n;
    enum lmq_status status =
        lmq_file_load(path, BASELINE_MAX, &bytes, &n, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_json_read(bytes, n, LMQ_JSON_STRICT, json, &problem, err);
    if (status == LMQ_ERR_FORMAT && *json == NULL && problem.text[0] != '\0')
        lmq_fail(err, status, 0, "is no JSON: %s (line %d)", problem.text,
                 problem.line);
    free(bytes);
    return status;
}

/* The reports on single models in it: itself, or its parts. */
static size_t
count_entries(const json_t *json)
{
    const json_t *models = json_object_get(json, "models");

    return models == NULL ? 1 : json_array_size(models);
}

static const json_t *
entry_at(const json_t *json, size_t index)
{
    const json_t *models = json_object_get(json, "models");

    return models == NULL ? json : json_array_get(models, index);
}

static bool
is_report(const json_t *json)
{
    if (!json_is_object(json) || count_entries(json) == 0)
        return false;
    for (size_t i = 0; i < count_entries(json); i++) {
        const json_t *entry = entry_at(json, i);
        if (!json_is_object(json_object_get(entry, "kld")) ||
            !json_is_object(json_object_get(entry, "protocol")))
            return false;
    }
    return true;
}

/* ---- Whose figures? ---- */

static const struct lmq_report *
as_report(const json_t *json)
{
    return (const struct lmq_report *)json;
}

static const char *
path_in(const json_t *entry)
{
    return lmq_report_string(as_report(entry), "protocol.model.path");
}

static const char *
last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

/* The only entry of this path, or of this name in another folder. */
static const json_t *
find_entry(const json_t *json, const char *path, bool by_name)
{
    const json_t *found = NULL;

    for (size_t i = 0; i < count_entries(json); i++) {
        const char *other = path_in(entry_at(json, i));
        if (strcmp(by_name ? last_part(other) : other,
                   by_name ? last_part(path) : path) != 0)
            continue;
        if (found != NULL && by_name)
            return NULL;
        found = entry_at(json, i);
    }
    return found;
}

static enum lmq_status
find_candidate(const struct lmq_job *job, struct lmq_judged *candidate,
               struct lmq_error *err)
{
    /* As reports have it. */
    json_t *own = lmq_json_text(lmq_judged_name(candidate));
    const char *path = json_string_value(own);

    if (own == NULL)
        return lmq_fail_nomem(err);
    if (job->n_candidates == 1 && count_entries(job->baseline) == 1)
        candidate->baseline = entry_at(job->baseline, 0);
    else
        candidate->baseline = find_entry(job->baseline, path, false);
    if (candidate->baseline == NULL)
        candidate->baseline = find_entry(job->baseline, path, true);
    json_decref(own);
    return LMQ_OK;
}

/* ---- Was the same measured? ---- */

static bool
is_same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return a != NULL && b != NULL && json_equal(a, b);
}

static enum lmq_status
fail_other(const char *key, const json_t *then, const json_t *now,
           struct lmq_error *err)
{
    char *a = lmq_json_dump(then, JSON_ENCODE_ANY);
    char *b = lmq_json_dump(now, JSON_ENCODE_ANY);

    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "was measured in another way: its %s is %.40s, here it is %.40s",
             key, then == NULL ? "not there" : a == NULL ? "" : a,
             b == NULL ? "" : b);
    lmq_hint(err, "figures of another text or other windows cannot be "
                  "compared: measure anew, and keep that as the baseline");
    free(a);
    free(b);
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
check_protocol(const struct lmq_job *job, const struct lmq_judged *candidate,
               struct lmq_error *err)
{
    static const char *const keys[] = {"text_crc32", "text_bytes", "documents",
                                       "stride",     "score",      "bos"};
    const json_t *then = json_object_get(candidate->baseline, "protocol");
    const json_t *now = candidate->protocol;
    json_t *ctx = lmq_json_size(job->protocol.context);
    json_t *scored = lmq_json_size(job->corpus.n_scored);
    enum lmq_status status = ctx == NULL || scored == NULL
                                 ? lmq_fail_nomem(err)
                                 : LMQ_OK;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (status == LMQ_OK && !is_same(json_object_get(then, keys[i]),
                                         json_object_get(now, keys[i])))
            status = fail_other(keys[i], json_object_get(then, keys[i]),
                                json_object_get(now, keys[i]), err);
    then = json_object_get(candidate->baseline, "ctx");
    if (status == LMQ_OK && !is_same(then, ctx))
        status = fail_other("ctx", then, ctx, err);
    then = json_object_get(candidate->baseline, "scored");
    if (status == LMQ_OK && !is_same(then, scored))
        status = fail_other("scored", then, scored, err);
    json_decref(ctx);
    json_decref(scored);
    return status;
}

static enum lmq_status
check_entry(const struct lmq_job *job, const struct lmq_judged *candidate,
            struct lmq_error *err)
{
    const struct lmq_report *entry = as_report(candidate->baseline);
    const struct lmq_validate_options *o = job->options;
    enum lmq_status status;

    if (lmq_report_number(entry, "partial") == 1) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0, "is of a run that was interrupted");
        lmq_hint(err, "a baseline covers the whole text: measure it anew");
        return LMQ_ERR_FORMAT;
    }
    status = check_protocol(job, candidate, err);
    for (size_t i = 0; i < o->n_gates && status == LMQ_OK; i++)
        status = lmq_gate_resolve(o->gates[i], entry, err);
    return status;
}

/* Without figures of a candidate only gates that need none can be asked. */
static enum lmq_status
check_absence(const struct lmq_job *job, const struct lmq_judged *candidate,
              struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;

    for (size_t i = 0; i < o->n_gates; i++)
        if (lmq_gate_has_baseline(o->gates[i])) {
            lmq_fail(err, LMQ_ERR_FORMAT, 0,
                     "has no figures of %.300s, which the gate '%s' needs",
                     lmq_judged_name(candidate), o->gates[i]);
            lmq_hint(err, "models are found by their path, or else their name");
            return LMQ_ERR_FORMAT;
        }
    return LMQ_OK;
}

static enum lmq_status
match(struct lmq_job *job, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (!is_report(job->baseline))
        return fail_format(err);
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++) {
        struct lmq_judged *candidate = &job->candidates[i];
        status = find_candidate(job, candidate, err);
        if (status == LMQ_OK)
            status = candidate->baseline == NULL
                         ? check_absence(job, candidate, err)
                         : check_entry(job, candidate, err);
    }
    return status;
}

enum lmq_status
lmq_baseline_open(struct lmq_job *job, struct lmq_error *err)
{
    const char *path = job->options->baseline;

    if (path == NULL)
        return LMQ_OK;
    enum lmq_status status = read_json(path, &job->baseline, err);
    if (status == LMQ_OK)
        status = match(job, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    return status;
}

/* ---- In the report ---- */

json_t *
lmq_describe_baseline(const struct lmq_job *job,
                      const struct lmq_judged *candidate)
{
    static const char *const keys[] = {"ppl_ratio", "kld.mean",
                                       "top1_agreement", "flips.rate"};
    static const char *const names[] = {"ppl_ratio", "kld", "top1_agreement",
                                        "flips"};
    const struct lmq_report *entry = as_report(candidate->baseline);
    json_t *json = json_object();

    lmq_put(&json, "path", lmq_json_text(job->options->baseline));
    lmq_put(&json, "model", lmq_json_text(path_in(candidate->baseline)));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        lmq_put(&json, names[i],
                lmq_json_number(lmq_report_number(entry, keys[i])));
    return json;
}

/* Digits in a report: 9. */
#define SAME_DIGITS 1e-8

void
lmq_baseline_doubts(const struct lmq_job *job,
                    const struct lmq_judged *candidate, json_t **notes)
{
    static const char *const keys[] = {"activations", "kv"};
    const struct lmq_report *then = as_report(candidate->baseline);
    const struct lmq_report *now = as_report(candidate->report);
    double ppl = lmq_report_number(then, "reference.ppl");
    double own = lmq_report_number(now, "reference.ppl");
    char path[32];

    if (job->baseline != NULL && then == NULL)
        lmq_doubt(notes, "the baseline has no figures of %.400s",
                  lmq_judged_name(candidate));
    if (then == NULL)
        return;
    if (!(fabs(ppl - own) <= SAME_DIGITS * own))
        lmq_doubt(notes,
                  "the baseline is of another reference: its perplexity was "
                  "%.9g, here it is %.9g",
                  ppl, own);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "protocol.%s", keys[i]);
        const char *old = lmq_report_string(then, path);
        const char *new = lmq_report_string(now, path);
        if (strcmp(old, new) != 0)
            lmq_doubt(notes,
                      "the baseline of %.400s was measured with %s %.20s, "
                      "this with %s",
                      lmq_judged_name(candidate), keys[i], old, new);
    }
    if (strcmp(last_part(path_in(candidate->baseline)),
               last_part(lmq_judged_name(candidate))) != 0)
        lmq_doubt(notes, "the baseline is of %.400s, this is %.400s",
                  path_in(candidate->baseline), lmq_judged_name(candidate));
}
