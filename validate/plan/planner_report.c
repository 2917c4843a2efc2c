/*
 * planner_report.c - a plan as a report.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/report.h"
#include "validate/plan/planner.h"

static json_t *
describe_target(const struct lmq_planning_options *options)
{
    json_t *json = json_object();

    if (options->target_size > 0)
        lmq_put(&json, "size", lmq_json_size(options->target_size));
    if (options->target_bits > 0)
        lmq_put(&json, "bits", lmq_json_number(options->target_bits));
    if (options->target_kld > 0)
        lmq_put(&json, "kld", lmq_json_number(options->target_kld));
    return json;
}

static double
bits_of(const struct lmq_planner *planner, double bytes)
{
    return 8 * (bytes + planner->other_bytes) / planner->n_parameters;
}

static json_t *
describe_point(const struct lmq_planner *planner, double bytes, double kld)
{
    const struct lmq_choice *choice = &planner->choice;
    json_t *json = json_object();

    /* Recipes differ in length, but little. */
    double file = bytes + (double)choice->file - choice->bytes;
    lmq_put(&json, "bytes", lmq_json_size((uint64_t)fmax(file, 0)));
    lmq_put(&json, "bits_per_weight",
            lmq_json_number(bits_of(planner, bytes)));
    lmq_put(&json, "kld",
            lmq_json_number(lmq_planner_over_the_whole(planner, kld)));
    return json;
}

static json_t *
describe_uniform(const struct lmq_planner *planner)
{
    const struct lmq_offers *offers = &planner->offers;
    json_t *list = json_array();

    for (size_t j = 0; j < offers->n; j++) {
        double bytes = 0;
        for (size_t i = 0; i < planner->units.n; i++)
            bytes += offers->bytes[i * offers->n + j];
        json_t *json = describe_point(planner, bytes, planner->uniform[j]);
        lmq_put(&json, "name", json_string(offers->list[j]->name));
        lmq_append(&list, json);
    }
    return list;
}

/* Several targets may lead to the same point. */
static json_t *
describe_front(const struct lmq_planner *planner)
{
    const struct lmq_front_point *last = NULL;
    json_t *list = json_array();

    for (size_t i = 0; i < planner->n_front; i++) {
        const struct lmq_front_point *point = &planner->front[i];
        if (last == NULL || point->bytes != last->bytes)
            lmq_append(&list,
                       describe_point(planner, point->bytes, point->kld));
        last = point;
    }
    return list;
}

/* What the costs alone had said. */
static double
estimate_of(const struct lmq_planner *planner)
{
    return lmq_planner_over_the_whole(planner, planner->choice.predicted);
}

static json_t *
describe_units(const struct lmq_planner *planner)
{
    const struct lmq_offers *offers = &planner->offers;
    const size_t *chosen = planner->choice.chosen;
    json_t *list = json_array();
    double costs = 0;

    for (size_t i = 0; i < planner->units.n; i++)
        costs += planner->costs[i * offers->n + chosen[i]];
    /* Its parts are in the proportion of the costs. */
    double part = costs > 0 ? estimate_of(planner) / costs : 1;
    for (size_t i = 0; i < planner->units.n; i++) {
        const struct lmq_unit *unit = &planner->units.units[i];
        size_t j = chosen[i];
        json_t *json = json_object();
        lmq_put(&json, "name", lmq_json_text(unit->name));
        lmq_put(&json, "layer", unit->layer < 0 ? json_null()
                                                : json_integer(unit->layer));
        lmq_put(&json, "role", json_string(lmq_role_name(unit->role)));
        lmq_put(&json, "parameters", lmq_json_size(unit->n_weights));
        lmq_put(&json, "encoding", json_string(offers->list[j]->encoding));
        lmq_put(&json, "group", offers->list[j]->group == 0
                                    ? json_null()
                                    : json_integer(offers->list[j]->group));
        lmq_put(&json, "rotated", json_boolean(offers->list[j]->rotates));
        lmq_put(&json, "bits_per_weight",
                lmq_json_number(8 * offers->bytes[i * offers->n + j] /
                                (double)unit->n_weights));
        lmq_put(&json, "probe",
                json_string(offers->list[offers->probes[i]]->name));
        lmq_put(&json, "kld_alone", lmq_json_number(planner->alone[i]));
        lmq_put(&json, "kld",
                lmq_json_number(part * planner->costs[i * offers->n + j]));
        lmq_append(&list, json);
    }
    return list;
}

static json_t *
describe_prediction(const struct lmq_planner *planner)
{
    json_t *json = json_object();
    double kld = planner->choice.measured;

    lmq_put(&json, "kld", lmq_json_number(kld));
    lmq_put(&json, "low",
            lmq_json_number(fmax(kld - planner->choice.error, 0)));
    lmq_put(&json, "high", lmq_json_number(kld + planner->choice.error));
    lmq_put(&json, "estimated", lmq_json_number(estimate_of(planner)));
    lmq_put(&json, "gap", lmq_json_number(planner->choice.gap));
    lmq_put(&json, "bytes", lmq_json_size(planner->choice.file));
    lmq_put(&json, "bits_per_weight",
            lmq_json_number(bits_of(planner, planner->choice.bytes)));
    return json;
}

static json_t *
describe_kv(const struct lmq_planner *planner)
{
    json_t *json = json_object(), *list = json_array();

    for (size_t i = 0; i < planner->n_kv; i++) {
        const struct lmq_kv_offer *offer = &planner->kv[i];
        json_t *one = json_object();
        lmq_put_name(&one, "type", lmq_kv_names, offer->type);
        lmq_put(&one, "bytes_per_token", lmq_json_number(offer->bytes));
        lmq_put(&one, "kld", lmq_json_number(offer->measured));
        lmq_append(&list, one);
    }
    lmq_put_name(&json, "chosen", lmq_kv_names,
                 planner->kv[planner->chosen_kv].type);
    lmq_put(&json, "may_add", lmq_json_number(planner->kv_room));
    lmq_put(&json, "types", list);
    return json;
}

json_t *
lmq_planner_notes(const struct lmq_planner *planner)
{
    const struct lmq_checkpoint *file = planner->job.reference_file;
    json_t *notes = lmq_describe_notes(file, NULL);

    lmq_doubt_window(&planner->job, file->hparams.context, "the checkpoint",
                     &notes);
    return notes;
}

json_t *
lmq_planner_describe(const struct lmq_planner *planner, const char *output)
{
    const struct lmq_job *job = &planner->job;
    json_t *json = json_object();

    lmq_put(&json, "input", lmq_json_text(job->reference_file->path));
    lmq_put(&json, "output",
            output == NULL ? json_null() : lmq_json_text(output));
    lmq_put(&json, "target", describe_target(planner->options));
    lmq_put(&json, "prediction", describe_prediction(planner));
    lmq_put(&json, "scored", lmq_json_size(job->corpus.n_scored));
    lmq_put(&json, "scored_alone", lmq_json_size(planner->n_few_scored));
    lmq_put(&json, "probe",
            json_string(planner->offers.list[planner->offers.probe]->name));
    lmq_put(&json, "uniform", describe_uniform(planner));
    lmq_put(&json, "front", describe_front(planner));
    lmq_put(&json, "tensors", describe_units(planner));
    if (planner->n_kv > 0)
        lmq_put(&json, "kv", describe_kv(planner));
    lmq_put(&json, "recipe", json_string(planner->recipe));
    lmq_put(&json, "notes", lmq_planner_notes(planner));
    lmq_put(&json, "seconds",
            lmq_json_number(lmq_clock_seconds() - job->started));
    return json;
}
