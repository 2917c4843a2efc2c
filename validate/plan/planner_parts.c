/*
 * planner_parts.c - a plan's measurements that are shared out: what one part
 * writes down, and how all are taken up.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/report.h"
#include "runtime/kv.h"
#include "validate/parts/part_fields.h"
#include "validate/parts/part_set.h"
#include "validate/parts/part_source.h"
#include "validate/plan/planner.h"

static const struct lmq_part_kind plan_parts = {"lmquant_plan_part", 1,
                                                "a plan", "plan .part"};

/* All parts, and what makes the plan of them, must have the same here. */
static json_t *
describe_run(const struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_job *job = &planner->job;
    const struct lmq_offers *offers = &planner->offers;
    json_t *json = json_object(), *names = json_array();

    for (size_t i = 0; i < offers->n; i++)
        lmq_append(&names, json_string(offers->list[i]->name));
    lmq_put(&json, "ctx", lmq_json_size(job->protocol.context));
    lmq_put(&json, "windows", lmq_json_size(job->corpus.n_windows));
    lmq_put(&json, "windows_alone", lmq_json_size(planner->n_few));
    lmq_put(&json, "tokens_crc32", lmq_part_tokens(&job->corpus));
    lmq_put(&json, "tensors", lmq_json_size(planner->units.n));
    lmq_put(&json, "probe", json_string(offers->list[offers->probe]->name));
    lmq_put(&json, "encodings", names);
    lmq_put_name(&json, "kv", lmq_kv_names, job->kv_type);
    lmq_put(&json, "checkpoint", lmq_part_source(job->reference_file, err));
    return json;
}

static size_t
count_due(size_t first, size_t n, size_t part, size_t n_parts)
{
    size_t n_due = 0;

    for (size_t i = 0; i < n; i++)
        n_due += lmq_planner_is_due(first + i, part, n_parts);
    return n_due;
}

/* Those of n numbers that are due, closed up. */
static json_t *
describe_due(const struct lmq_planning_options *o, const double *numbers,
             size_t first, size_t n)
{
    double *due = calloc(n + 1, sizeof(*due));
    size_t n_due = 0;

    if (due == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (lmq_planner_is_due(first + i, o->part, o->n_parts))
            due[n_due++] = numbers[i];
    json_t *json = lmq_part_numbers(due, n_due);
    free(due);
    return json;
}

enum lmq_status
lmq_planner_describe_part(const struct lmq_planner *planner, json_t **out,
                          struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    size_t n = planner->units.n;
    struct lmq_error why = {0};
    json_t *json = lmq_part_start(&plan_parts, o->part, o->n_parts,
                                  describe_run(planner, &why));

    lmq_put(&json, "measured",
            lmq_json_size(
                count_due(0, n + planner->offers.n, o->part, o->n_parts)));
    lmq_put(&json, "alone", describe_due(o, planner->alone, 0, n));
    lmq_put(&json, "uniform",
            describe_due(o, planner->uniform, n, planner->offers.n));
    lmq_put(&json, "notes", lmq_planner_notes(planner));
    lmq_put(&json, "seconds",
            lmq_json_number(lmq_json_reread(lmq_clock_seconds() -
                                            planner->job.started)));
    return lmq_part_finish(json, &why, out, err);
}

/* ---- Taking them up ---- */

static enum lmq_status
take_due(const struct lmq_part_set *set, const struct lmq_run_part *part,
         const char *key, size_t first, size_t n, double *numbers,
         struct lmq_error *err)
{
    size_t n_due = count_due(first, n, part->number, set->n), at = 0;
    double *due = calloc(n_due + 1, sizeof(*due));
    bool is_sound = due != NULL &&
                    lmq_part_read_numbers(json_object_get(part->json, key),
                                          due, n_due);

    for (size_t i = 0; i < n_due && is_sound; i++)
        is_sound = isfinite(due[i]);
    for (size_t i = 0; i < n && is_sound; i++)
        if (lmq_planner_is_due(first + i, part->number, set->n))
            numbers[i] = due[at++];
    free(due);
    if (due == NULL)
        return lmq_fail_nomem(err);
    if (is_sound)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "'%s' is missing or not as it should be: expected %zu numbers "
             "that are finite, of 16 digits each",
             key, n_due);
    lmq_hint(err, "a damaged part can be made again");
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
take_all(struct lmq_planner *planner, const struct lmq_part_set *set,
         const json_t *own, struct lmq_error *err)
{
    size_t n = planner->units.n;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < set->n && status == LMQ_OK; i++) {
        const struct lmq_run_part *part = &set->parts[i];
        status = lmq_part_check_run(part, own, "this plan", err);
        if (status == LMQ_OK)
            status = take_due(set, part, "alone", 0, n, planner->alone, err);
        if (status == LMQ_OK)
            status = take_due(set, part, "uniform", n, planner->offers.n,
                              planner->uniform, err);
        if (status == LMQ_OK)
            status = lmq_part_check_whole(part, err);
        if (status != LMQ_OK)
            lmq_error_in(err, part->name);
    }
    return status;
}

/* Texts have no names of their own. */
static enum lmq_status
open_parts(const struct lmq_planning_options *o, struct lmq_part_set *set,
           struct lmq_error *err)
{
    size_t n = o->n_measured;

    *set = (struct lmq_part_set){0};
    if (!o->measured_are_texts)
        return lmq_part_set_open(set, &plan_parts, o->measured, NULL, n, err);
    const char **names = calloc(n, sizeof(*names));
    if (names == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        names[i] = "a part";
    enum lmq_status status =
        lmq_part_set_open(set, &plan_parts, names, o->measured, n, err);
    free((void *)names);
    return status;
}

enum lmq_status
lmq_planner_take_parts(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    struct lmq_part_set set;
    struct lmq_error why = {0};
    json_t *own =
        lmq_part_start(&plan_parts, 1, 1, describe_run(planner, &why));

    if (own == NULL)
        return lmq_fail_as(err, &why);
    enum lmq_status status = open_parts(o, &set, err);
    if (status == LMQ_OK)
        status = take_all(planner, &set, own, err);
    lmq_part_set_close(&set);
    json_decref(own);
    return status;
}
