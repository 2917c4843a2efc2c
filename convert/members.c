/*
 * members.c - shares out what a plan writes over the members of a set.
 *
 * Everything here follows from the plan alone, so parts of a set can be
 * written by machines that know nothing of each other.
 */
#include "config.h"

#include "convert/members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/size.h"

/* ---- What a record costs ---- */

/* All that a file grows by, but for the elements; no more than this. */
static uint64_t
cost_of_record(const struct lmq_plan *plan, size_t index)
{
    json_t *text = lmq_json_text(plan->sources[index]->stored_name);
    uint64_t n = LMQ_RECORD_SIZE + LMQ_STATISTICS_SIZE +
                 strlen(plan->records[index].name) + 3;

    /* Each character may be escaped; without memory something else fails. */
    n += 2 * json_string_length(text);
    json_decref(text);
    return n;
}

/* The one alias that there may be, or n_records. */
static size_t
find_alias(const struct lmq_plan *plan)
{
    size_t i = 0;

    while (i < plan->n_records &&
           plan->records[i].encoding != LMQ_ENCODING_ALIAS)
        i++;
    return i;
}

/* The extents of so many rows, each up to where the next one begins; false if
 * they wrap. */
static bool
cost_of_rows(const struct lmq_plan *plan, size_t index, uint64_t n_rows,
             uint64_t *cost)
{
    struct lmq_record record = plan->records[index];
    uint64_t sizes[LMQ_N_EXTENTS];

    *cost = 0;
    record.n_rows = n_rows;
    if (!lmq_record_sizes(&record, sizes))
        return false;
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        if (!lmq_u64_align(sizes[i], plan->settings.alignment, &sizes[i]) ||
            !lmq_u64_add(*cost, sizes[i], cost))
            return false;
    return !plan->settings.has_digests ||
           lmq_u64_add(*cost,
                       LMQ_SHA256_SIZE *
                           lmq_count_chunks(&record, LMQ_CHUNK_LOG2),
                       cost);
}

/* Rows in whole tiles that take no more than `room`. */
static uint64_t
rows_that_fit(const struct lmq_plan *plan, size_t index, uint64_t room)
{
    struct lmq_record record = plan->records[index];
    uint64_t sizes[LMQ_N_EXTENTS], tile = 0;
    uint64_t waste = LMQ_N_EXTENTS * plan->settings.alignment;

    record.n_rows = LMQ_TILE_ROWS;
    if (room < waste || !lmq_record_sizes(&record, sizes))
        return 0;
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        tile += sizes[i];
    return (room - waste) / tile * LMQ_TILE_ROWS;
}

/* ---- Parts ---- */

/* Where the sharing out has got to. */
struct filling {
    struct lmq_plan *plan;
    const uint64_t *frames;
    uint64_t limit, used; /* of the last member */
    bool is_empty;        /* it has no tensors yet */
    size_t alias;         /* the one that there may be, or n_records */
    uint64_t total, placed; /* bytes of all tensors, of those up to here */
};

/* With that of the alias, which stands in the same file. */
static uint64_t
fixed_cost(const struct filling *filling, size_t index)
{
    const struct lmq_plan *plan = filling->plan;
    bool has_alias = filling->alias < plan->n_records &&
                     plan->records[filling->alias].alias == index;

    return cost_of_record(plan, index) +
           (has_alias ? cost_of_record(plan, filling->alias) : 0);
}

static enum lmq_status
begin_member(struct filling *filling, struct lmq_error *err)
{
    struct lmq_plan *plan = filling->plan;

    if (plan->n_members == LMQ_MAX_MEMBERS) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 ".shard_size is %" PRIu64 ", which makes more than %d files",
                 filling->limit, LMQ_MAX_MEMBERS);
        return LMQ_ERR_ARG;
    }
    if (lmq_mem_grow(&plan->members, &plan->members_capacity,
                     (size_t)plan->n_members + 1, sizeof(*plan->members)) != 0)
        return lmq_fail_nomem(err);
    filling->used = filling->frames[plan->n_members > 0];
    filling->is_empty = true;
    plan->members[plan->n_members++] = (struct lmq_plan_member){0};
    return LMQ_OK;
}

static enum lmq_status
add_part(struct filling *filling, size_t index, uint64_t first_row,
         uint64_t n_rows, struct lmq_error *err)
{
    struct lmq_plan *plan = filling->plan;

    if (lmq_mem_grow(&plan->parts, &plan->parts_capacity, plan->n_parts + 1,
                     sizeof(*plan->parts)) != 0)
        return lmq_fail_nomem(err);
    plan->parts[plan->n_parts++] =
        (struct lmq_plan_part){.record = index, .member = plan->n_members - 1,
                          .first_row = first_row, .n_rows = n_rows};
    filling->is_empty = false;
    return LMQ_OK;
}

static enum lmq_status
fail_small(const struct filling *filling, const char *what, uint64_t needed,
           struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             ".shard_size is %" PRIu64 ", but %s needs a file of %" PRIu64
             " bytes",
             filling->limit, what, needed);
    lmq_hint(err, "choose a larger one; tensors are cut only between every "
                  "%d rows", LMQ_TILE_ROWS);
    return LMQ_ERR_ARG;
}

/* A tensor that is larger than a file. */
static enum lmq_status
cut_record(struct filling *filling, size_t index, struct lmq_error *err)
{
    const struct lmq_record *record = &filling->plan->records[index];
    uint64_t fixed = fixed_cost(filling, index), cost;
    enum lmq_status status = LMQ_OK;

    for (uint64_t row = 0; row < record->n_rows && status == LMQ_OK;) {
        uint64_t room = filling->limit - filling->used;
        uint64_t n = lmq_u64_min(
            record->n_rows - row,
            room < fixed ? 0
                         : rows_that_fit(filling->plan, index, room - fixed));
        if (n > 0) {
            status = add_part(filling, index, row, n, err);
            cost_of_rows(filling->plan, index, n, &cost);
            filling->used += fixed + cost;
            row += n;
        } else if (filling->is_empty && filling->plan->n_members > 1) {
            cost_of_rows(filling->plan, index,
                         lmq_u64_min(record->n_rows, LMQ_TILE_ROWS), &cost);
            return fail_small(
                filling, record->name,
                filling->used + fixed + cost +
                    LMQ_N_EXTENTS * filling->plan->settings.alignment,
                err);
        }
        if (row < record->n_rows && status == LMQ_OK)
            status = begin_member(filling, err);
    }
    return status;
}

static enum lmq_status
place_record(struct filling *filling, size_t index, struct lmq_error *err)
{
    const struct lmq_record *record = &filling->plan->records[index];
    uint64_t cost;
    enum lmq_status status = LMQ_OK;

    if (!cost_of_rows(filling->plan, index, record->n_rows, &cost) ||
        !lmq_u64_add(cost, fixed_cost(filling, index), &cost) ||
        cost > INT64_MAX - filling->used)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "tensor '%s' is too large",
                        record->name);
    if (filling->limit != 0 && filling->used + cost > filling->limit) {
        if (filling->frames[1] + cost > filling->limit)
            return cut_record(filling, index, err);
        status = begin_member(filling, err);
    }
    if (status == LMQ_OK)
        status = add_part(filling, index, 0, record->n_rows, err);
    filling->used += cost;
    return status;
}

/* ---- So many files, about as large ---- */

/* Where this one ends. */
static uint64_t
end_of_member(const struct filling *filling)
{
    uint64_t n = filling->plan->settings.n_parts;
    uint64_t i = filling->plan->n_members;

    return filling->total / n * i + filling->total % n * i / n;
}

/* What is larger than a file is cut where one ends. */
static enum lmq_status
cut_evenly(struct filling *filling, size_t index, struct lmq_error *err)
{
    struct lmq_plan *plan = filling->plan;
    uint64_t n_rows = plan->records[index].n_rows, cost;
    enum lmq_status status = LMQ_OK;

    for (uint64_t row = 0; row < n_rows && status == LMQ_OK;) {
        uint64_t end = end_of_member(filling), n = n_rows - row;
        if (plan->n_members < plan->settings.n_parts) {
            uint64_t room = end > filling->placed ? end - filling->placed : 0;
            n = lmq_u64_min(n, rows_that_fit(plan, index, room));
        }
        if (n > 0) {
            status = add_part(filling, index, row, n, err);
            cost_of_rows(plan, index, n, &cost);
            filling->placed += cost;
            row += n;
        }
        if (row < n_rows && status == LMQ_OK)
            status = begin_member(filling, err);
    }
    return status;
}

/* All others stand where their middle is. */
static enum lmq_status
place_evenly(struct filling *filling, size_t index, struct lmq_error *err)
{
    struct lmq_plan *plan = filling->plan;
    uint32_t n = plan->settings.n_parts;
    uint64_t cost;
    enum lmq_status status = LMQ_OK;

    cost_of_rows(plan, index, plan->records[index].n_rows, &cost);
    if (cost > filling->total / n)
        return cut_evenly(filling, index, err);
    while (plan->n_members < n && status == LMQ_OK &&
           filling->placed + cost / 2 >= end_of_member(filling))
        status = begin_member(filling, err);
    if (status == LMQ_OK)
        status = add_part(filling, index, 0, plan->records[index].n_rows, err);
    filling->placed += cost;
    return status;
}

static enum lmq_status
share_evenly(struct filling *filling, struct lmq_error *err)
{
    struct lmq_plan *plan = filling->plan;
    uint64_t cost;
    enum lmq_status status = begin_member(filling, err);

    for (size_t i = 0; i < plan->n_records && status == LMQ_OK; i++)
        if (plan->records[i].encoding != LMQ_ENCODING_ALIAS &&
            (!cost_of_rows(plan, i, plan->records[i].n_rows, &cost) ||
             !lmq_u64_add(filling->total, cost, &filling->total) ||
             filling->total > INT64_MAX))
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "tensor '%s' is too large",
                              plan->records[i].name);
    for (size_t i = 0; i < plan->n_records && status == LMQ_OK; i++)
        if (plan->records[i].encoding != LMQ_ENCODING_ALIAS)
            status = place_evenly(filling, i, err);
    while (plan->n_members < plan->settings.n_parts && status == LMQ_OK)
        status = begin_member(filling, err);
    return status;
}

/* ---- Records of the members ---- */

static enum lmq_status
add_stored(struct lmq_plan *plan, uint32_t member, size_t origin,
           uint64_t first_row, uint64_t n_rows, struct lmq_error *err)
{
    struct lmq_plan_member *m = &plan->members[member];
    struct lmq_record copy = plan->records[origin];
    size_t capacity = m->capacity;

    if (lmq_mem_grow(&m->records, &capacity, m->n_records + 1,
                     sizeof(*m->records)) != 0 ||
        lmq_mem_grow(&m->origins, &m->capacity, m->n_records + 1,
                     sizeof(*m->origins)) != 0 ||
        (copy.name = strdup(copy.name)) == NULL)
        return lmq_fail_nomem(err);
    copy.first_row = first_row;
    copy.n_rows = n_rows;
    m->origins[m->n_records] = origin;
    m->records[m->n_records++] = copy;
    return LMQ_OK;
}

/* Parts are in the order of their records. */
struct lmq_plan_part *
lmq_plan_first_part(const struct lmq_plan *plan, size_t index)
{
    size_t low = 0, high = plan->n_parts;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->parts[middle].record < index)
            low = middle + 1;
        else
            high = middle;
    }
    return &plan->parts[low];
}

/* Which part lost how much is nobody's question, and so cutting and joining
 * change nothing. */
void
lmq_plan_spread(struct lmq_plan *plan, size_t index)
{
    const struct lmq_record *whole = &plan->records[index];

    for (struct lmq_plan_part *part = lmq_plan_first_part(plan, index);
         part < plan->parts + plan->n_parts && part->record == index;
         part++) {
        struct lmq_record *stored = lmq_plan_stored(plan, part);
        stored->quant = whole->quant;
        stored->max_abs = whole->max_abs;
        stored->max_err = whole->max_err;
        stored->sum_sq = whole->sum_sq;
        stored->err_sq = whole->err_sq;
        stored->worst_err_sq = whole->worst_err_sq;
        stored->worst_group = whole->worst_group;
    }
}

/* An alias stands where what it names begins: a record of the same file. */
static enum lmq_status
add_alias(struct lmq_plan *plan, size_t index, struct lmq_error *err)
{
    const struct lmq_plan_part *target =
        lmq_plan_first_part(plan, plan->records[index].alias);
    struct lmq_plan_member *member = &plan->members[target->member];
    enum lmq_status status =
        add_stored(plan, target->member, index, 0, 0, err);

    if (status == LMQ_OK)
        member->records[member->n_records - 1].alias =
            (uint32_t)target->stored;
    return status;
}

static enum lmq_status
make_records(struct lmq_plan *plan, struct lmq_error *err)
{
    struct lmq_plan_part *part = plan->parts, *end = part + plan->n_parts;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < plan->n_records && status == LMQ_OK; i++) {
        if (plan->records[i].encoding == LMQ_ENCODING_ALIAS)
            status = add_alias(plan, i, err);
        for (; part < end && part->record == i && status == LMQ_OK; part++) {
            part->stored = plan->members[part->member].n_records;
            status = add_stored(plan, part->member, i, part->first_row,
                                part->n_rows, err);
        }
    }
    return status;
}

enum lmq_status
lmq_plan_share_out(struct lmq_plan *plan, const uint64_t frames[2],
                   struct lmq_error *err)
{
    struct filling filling = {.plan = plan, .frames = frames,
                              .limit = plan->settings.shard_size,
                              .alias = find_alias(plan)};

    if (plan->settings.n_parts > 0) {
        enum lmq_status done = share_evenly(&filling, err);
        return done == LMQ_OK ? make_records(plan, err) : done;
    }
    if (filling.limit != 0 && frames[0] > filling.limit)
        return fail_small(&filling, "what describes the model", frames[0],
                          err);
    enum lmq_status status = begin_member(&filling, err);
    for (size_t i = 0; i < plan->n_records && status == LMQ_OK; i++)
        if (plan->records[i].encoding != LMQ_ENCODING_ALIAS)
            status = place_record(&filling, i, err);
    return status == LMQ_OK ? make_records(plan, err) : status;
}
