/*
 * several.c - what only several candidates have: how far they are apart, which
 * of them are worth their bytes.
 *
 * All saw the same positions, so differences are paired: what is hard for both
 * cancels, and far smaller differences show than their own errors let expect.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "formats/describe.h"
#include "validate/job.h"

/* ---- Differences ---- */

/* What is compared: the list of a figure at each position. */
static const struct {
    const char *key;
    size_t list; /* where in struct lmq_drift */
} figures[] = {
    {"kld", offsetof(struct lmq_drift, kld)},
    {"delta_nll", offsetof(struct lmq_drift, delta)},
    {"top1_agreement", offsetof(struct lmq_drift, top1)},
};

static const double *
list_of(const struct lmq_drift *drift, size_t list)
{
    const double *at;

    memcpy(&at, (const char *)drift + list, sizeof(at));
    return at;
}

/* The second less the first. */
static json_t *
describe_spread(const struct lmq_spread *spread)
{
    json_t *json = json_object();

    lmq_put(&json, "difference", lmq_json_number(spread->mean));
    lmq_put(&json, "stderr", lmq_json_number(spread->by_position));
    lmq_put(&json, "stderr_by_document",
            lmq_json_number(spread->by_document));
    return json;
}

static enum lmq_status
compare_pair(const struct lmq_job *job, size_t first, size_t second,
             double *scratch, json_t **list, struct lmq_error *err)
{
    const struct lmq_drift *a = &job->candidates[first].drift;
    const struct lmq_drift *b = &job->candidates[second].drift;
    json_t *json = json_object();
    enum lmq_status status = LMQ_OK;

    lmq_put(&json, "first", lmq_json_size(first));
    lmq_put(&json, "second", lmq_json_size(second));
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        const double *x = list_of(a, figures[i].list);
        const double *y = list_of(b, figures[i].list);
        struct lmq_spread spread;
        for (size_t j = 0; j < a->n; j++)
            scratch[j] = y[j] - x[j];
        if (status == LMQ_OK)
            status = lmq_drift_spread(a, scratch, &spread, err);
        if (status == LMQ_OK)
            lmq_put(&json, figures[i].key, describe_spread(&spread));
    }
    lmq_append(list, json);
    return status;
}

enum lmq_status
lmq_compare_candidates(const struct lmq_job *job, json_t **differences,
                       struct lmq_error *err)
{
    size_t n = job->candidates[0].drift.n;
    double *scratch = calloc(n, sizeof(*scratch));
    enum lmq_status status =
        scratch == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    *differences = json_array();
    for (size_t i = 0; i < job->n_candidates; i++)
        for (size_t j = i + 1; j < job->n_candidates && status == LMQ_OK; j++)
            status = compare_pair(job, i, j, scratch, differences, err);
    free(scratch);
    return status;
}

/* ---- Orders ---- */

struct place {
    uint64_t bytes;
    double kld;
    size_t index;
};

/* By divergence; of the same the one that was named first. */
static int
compare_klds(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->kld != y->kld)
        return x->kld < y->kld ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int
compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return compare_klds(a, b);
}

/* NULL without memory. */
static struct place *
list_places(const struct lmq_job *job)
{
    struct place *places = calloc(job->n_candidates, sizeof(*places));

    for (size_t i = 0; i < job->n_candidates && places != NULL; i++) {
        const struct lmq_judged *candidate = &job->candidates[i];
        places[i] = (struct place){
            .bytes = (uint64_t)json_integer_value(json_object_get(
                json_object_get(candidate->protocol, "model"), "bytes")),
            .kld = lmq_drift_sum(&candidate->drift, LMQ_SUM_KLD),
            .index = i,
        };
    }
    return places;
}

json_t *
lmq_describe_ranking(const struct lmq_job *job)
{
    struct place *places = list_places(job);
    json_t *ranking = places == NULL ? NULL : json_array();

    if (places != NULL)
        qsort(places, job->n_candidates, sizeof(*places), compare_klds);
    for (size_t i = 0; i < job->n_candidates && places != NULL; i++)
        lmq_append(&ranking, lmq_json_size(places[i].index));
    free(places);
    return ranking;
}

/* Those that no other one beats: as small and nearer, or as near and smaller.
 * By rising bytes, so the divergence falls. */
json_t *
lmq_describe_front(const struct lmq_job *job)
{
    size_t n = job->n_candidates;
    struct place *places = list_places(job);
    const struct place *last = NULL;
    json_t *front = places == NULL ? NULL : json_array();

    if (places == NULL)
        return NULL;
    qsort(places, n, sizeof(*places), compare_places);
    for (size_t i = 0; i < n; i++) {
        const struct place *place = &places[i];
        bool is_twin = last != NULL && last->bytes == place->bytes &&
                       !(place->kld > last->kld);
        if (last != NULL && !(place->kld < last->kld) && !is_twin)
            continue;
        last = place;
        lmq_append(&front, lmq_json_size(place->index));
    }
    free(places);
    return front;
}

/* ---- Remarks ---- */

static bool
stands_before(const struct lmq_job *job, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(lmq_judged_name(&job->candidates[i]),
                   lmq_judged_name(&job->candidates[index])) == 0)
            return true;
    return false;
}

json_t *
lmq_collect_notes(const struct lmq_job *job)
{
    json_t *notes = json_array(), *note;
    char text[512];
    size_t at;

    for (size_t i = 0; i < job->n_candidates; i++) {
        json_t *own = json_object_get(job->candidates[i].report, "notes");
        json_array_foreach(own, at, note)
            lmq_append(&notes, json_incref(note));
        if (!stands_before(job, i))
            continue;
        snprintf(text, sizeof(text), "%.400s is judged more than once",
                 lmq_judged_name(&job->candidates[i]));
        lmq_append(&notes, lmq_json_text(text));
    }
    return notes;
}
