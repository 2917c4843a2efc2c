/*
 * verdict.c - PASS or FAIL: what the gates say of each candidate, and of all.
 */
#include "config.h"

#include "base/report.h"
#include "validate/gates.h"
#include "validate/job.h"

/* Gates are not asked of a part of the text. */
static const char *
result_of(const struct lmq_job *job, size_t n_broken)
{
    return job->is_partial ? "PARTIAL" : n_broken > 0 ? "FAIL" : "PASS";
}

/* The first gate that did not hold, NULL if all did. */
static json_t *
first_broken(json_t *gates)
{
    json_t *gate;
    size_t i;

    json_array_foreach(gates, i, gate)
        if (!json_is_true(json_object_get(gate, "held")))
            return gate;
    return NULL;
}

/* Gates that nobody looked at are not known to hold. */
static json_t *
count_of(const struct lmq_job *job, size_t n_gates, size_t n)
{
    return job->is_partial && n_gates > 0 ? json_null() : lmq_json_size(n);
}

static json_t *
describe_one(const struct lmq_job *job, json_t *gates, size_t n_broken)
{
    json_t *broken = first_broken(gates), *json = json_object();

    lmq_put(&json, "result", json_string(result_of(job, n_broken)));
    lmq_put(&json, "gates", lmq_json_size(job->options->n_gates));
    lmq_put(&json, "broken", count_of(job, job->options->n_gates, n_broken));
    if (broken != NULL) {
        lmq_put(&json, "gate", json_incref(json_object_get(broken, "gate")));
        lmq_put(&json, "value",
                json_incref(json_object_get(broken, "value")));
        lmq_put(&json, "bound",
                json_incref(json_object_get(broken, "bound")));
    }
    return json;
}

enum lmq_status
lmq_apply_gates(struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++) {
        json_t **report = &job->candidates[i].report;
        size_t n_broken;
        status = lmq_gates_compare(
            lmq_report_from(*report),
            (const struct lmq_report *)job->candidates[i].baseline, o->gates,
            job->is_partial ? 0 : o->n_gates, &n_broken, err);
        /* In the place that was kept for it: the first. */
        if (status == LMQ_OK)
            lmq_put(report, "verdict",
                    describe_one(job, json_object_get(*report, "gates"),
                                 n_broken));
    }
    return status;
}

json_t *
lmq_describe_verdict(const struct lmq_job *job)
{
    size_t n_gates = 0, n_broken = 0, n_failed = 0;
    json_t *json = json_object();

    for (size_t i = 0; i < job->n_candidates; i++) {
        json_t *one = json_object_get(job->candidates[i].report, "verdict");
        json_int_t broken =
            json_integer_value(json_object_get(one, "broken"));
        n_gates += (size_t)json_integer_value(json_object_get(one, "gates"));
        n_broken += (size_t)broken;
        n_failed += broken > 0;
    }
    lmq_put(&json, "result", json_string(result_of(job, n_broken)));
    lmq_put(&json, "gates", lmq_json_size(n_gates));
    lmq_put(&json, "broken", count_of(job, n_gates, n_broken));
    lmq_put(&json, "failed", count_of(job, n_gates, n_failed));
    return json;
}
