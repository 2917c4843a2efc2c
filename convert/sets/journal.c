/*
 * journal.c - lines of JSON about a plan.
 */
#include "config.h"

#include "convert/sets/journal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/log.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/members.h"
#include "convert/sets/journal_bits.h"
#include "convert/sets/journal_header.h"

/* What is written between two lines that say that it is on the disk: so much
 * that writing it takes a fraction of a second. */
#define SYNC_BYTES ((uint64_t)64 << 20)

static const char synced_line[] = "{\"synced\":true}";

struct lmq_journal {
    struct lmq_log *log;
    struct lmq_output *const *outputs; /* from lmq_journal_restore() on */
    uint32_t n_outputs, only;
    uint64_t unsynced; /* bytes */
    size_t n_synced;   /* lines up to the last that says so, the header too */
    bool was_touched;  /* the sources were written to since, or are copies */
    struct lmq_journal_stage stage; /* of a former go */
};

/* ---- Opening ---- */

char *
lmq_journal_path(const char *output)
{
    size_t n = strlen(output) + sizeof(LMQ_JOURNAL_ENDING);
    char *path = malloc(n);

    if (path != NULL)
        snprintf(path, n, "%s" LMQ_JOURNAL_ENDING, output);
    return path;
}

static enum lmq_status
append_json(struct lmq_journal *journal, json_t *json, struct lmq_error *err)
{
    char *text = lmq_json_dump(json, JSON_COMPACT);
    enum lmq_status status = text == NULL
                                 ? lmq_fail_nomem(err)
                                 : lmq_log_append(journal->log, text, err);

    free(text);
    json_decref(json);
    return status;
}

static enum lmq_status
read_line(const char *line, json_t **json, struct lmq_error *err)
{
    json_error_t problem;

    *json = NULL;
    enum lmq_status status =
        lmq_json_read(line, strlen(line), 0, json, &problem, err);
    return status == LMQ_ERR_FORMAT
               ? lmq_fail(err, LMQ_ERR_FORMAT, 0, "is damaged: %s",
                          problem.text)
               : status;
}

/* The first line, with what this conversion would say there. */
static enum lmq_status
check_line(struct lmq_journal *journal, const char *line, const json_t *own,
           struct lmq_error *err)
{
    json_t *found;
    enum lmq_status status = read_line(line, &found, err);

    if (status == LMQ_OK)
        status = lmq_journal_compare(own, found, err);
    journal->was_touched = !lmq_journal_has_times(own, found);
    json_decref(found);
    return status;
}

/* The header is on the disk before anything else is there. */
static enum lmq_status
check_header(struct lmq_journal *journal, const char *line,
             const json_t *header, json_t *given, struct lmq_error *err)
{
    journal->stage.stage = line == NULL ? LMQ_PART_NONE : LMQ_PART_WRITING;
    if (line != NULL)
        return check_line(journal, line, header, err);
    json_t *own = json_copy((json_t *)(uintptr_t)header);
    lmq_put(&own, "given", json_incref(given));
    enum lmq_status status = append_json(journal, own, err);
    return status == LMQ_OK ? lmq_log_sync(journal->log, err) : status;
}

/* What the lines behind the header say of all before them. */
static void
skim(struct lmq_journal *journal)
{
    const char *line;

    for (size_t i = 2; (line = lmq_log_next(journal->log)) != NULL; i++) {
        if (strcmp(line, synced_line) == 0)
            journal->n_synced = i;
        lmq_journal_stage_take(&journal->stage, line);
    }
}

enum lmq_status
lmq_journal_open(const char *path, const json_t *header, json_t *given,
                 struct lmq_journal **out, struct lmq_error *err)
{
    *out = NULL;
    struct lmq_journal *journal = calloc(1, sizeof(*journal));
    if (journal == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_log_open(path, true, &journal->log, err);
    if (status != LMQ_OK) {
        free(journal);
        return status;
    }
    status = check_header(journal, lmq_log_next(journal->log), header, given,
                          err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        (lmq_log_is_new(journal->log) ? lmq_journal_remove
                                      : lmq_journal_close)(journal);
        return status;
    }
    skim(journal);
    *out = journal;
    return LMQ_OK;
}

static bool
has_header(struct lmq_journal *journal, const json_t *header)
{
    struct lmq_error ignored;
    const char *line = lmq_log_next(journal->log);

    return line != NULL &&
           check_line(journal, line, header, &ignored) == LMQ_OK;
}

enum lmq_status
lmq_journal_look(const char *output, const json_t *header,
                 struct lmq_journal **out, struct lmq_error *err)
{
    struct lmq_journal *journal = calloc(1, sizeof(*journal));
    char *path = lmq_journal_path(output);
    struct lmq_error ignored;

    *out = NULL;
    if (journal == NULL || path == NULL) {
        free(path);
        free(journal);
        return lmq_fail_nomem(err);
    }
    if (lmq_log_look(path, &journal->log, &ignored) == LMQ_OK &&
        journal->log != NULL && has_header(journal, header)) {
        *out = journal; /* nothing of it is believed unread */
    } else {
        lmq_journal_close(journal);
    }
    free(path);
    return LMQ_OK;
}

enum lmq_status
lmq_journal_given(const char *output, json_t **given,
                  enum lmq_part_stage *stage, struct lmq_error *err)
{
    char *path = lmq_journal_path(output);
    struct lmq_log *log = NULL;
    json_t *header = NULL;
    struct lmq_journal_stage found = {.stage = LMQ_PART_WRITING};

    *given = NULL;
    *stage = LMQ_PART_WRITING;
    if (path == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_log_open(path, false, &log, err);
    const char *line = log == NULL ? NULL : lmq_log_next(log);
    if (status == LMQ_OK && line != NULL)
        status = read_line(line, &header, err);
    *given = json_incref(json_object_get(header, "given"));
    if (status == LMQ_OK && !json_is_object(*given)) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0, "says nothing: it was not begun");
        lmq_hint(err, "write this part again");
        status = LMQ_ERR_FORMAT;
    }
    while (status == LMQ_OK && (line = lmq_log_next(log)) != NULL)
        lmq_journal_stage_take(&found, line);
    *stage = found.stage;
    lmq_journal_stage_free(&found);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    json_decref(header);
    lmq_log_close(log);
    free(path);
    return status;
}

bool
lmq_journal_is_synced(const struct lmq_journal *journal)
{
    return journal->n_synced > 0;
}

const struct lmq_journal_stage *
lmq_journal_stage(const struct lmq_journal *journal)
{
    return &journal->stage;
}

void
lmq_journal_close(struct lmq_journal *journal)
{
    if (journal == NULL)
        return;
    lmq_log_close(journal->log);
    lmq_journal_stage_free(&journal->stage);
    free(journal);
}

void
lmq_journal_remove(struct lmq_journal *journal)
{
    if (journal == NULL)
        return;
    lmq_log_remove(journal->log);
    journal->log = NULL;
    lmq_journal_close(journal);
}

/* Whether it has anything to say of a member. */
static bool
tells_of(const struct lmq_journal *journal, uint32_t member)
{
    return journal->outputs[member] != NULL &&
           (journal->only == 0 || journal->only == member + 1);
}

/* ---- A record ---- */

/* Where the digests of a part's chunks stand in its member, and how many. */
static unsigned char *
chunks_of(const struct lmq_plan *plan, const struct lmq_plan_part *part,
          size_t *n)
{
    const struct lmq_plan_member *member = &plan->members[part->member];
    const struct lmq_digests *digests = &member->digests;

    *n = (size_t)lmq_count_chunks(&member->records[part->stored],
                                  digests->chunk_log2);
    return digests->chunks + digests->first[part->stored] * LMQ_SHA256_SIZE;
}

static json_t *
describe_part(const struct lmq_plan *plan, const struct lmq_plan_part *part)
{
    const struct lmq_record *stored = lmq_plan_stored(plan, part);
    json_t *json = json_object(), *crcs = json_array();
    size_t n;

    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        lmq_append(&crcs, json_integer(stored->extents[i].crc));
    lmq_put(&json, "part", json_integer((json_int_t)(part - plan->parts)));
    lmq_put(&json, "crcs", crcs);
    if (plan->settings.has_digests) {
        const unsigned char *chunks = chunks_of(plan, part, &n);
        lmq_put(&json, "chunks", lmq_hex_of(chunks, n * LMQ_SHA256_SIZE));
    }
    return json;
}

static enum lmq_status
describe_ranges(const struct lmq_plan *plan, json_t **out,
                struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    json_t *json = json_array();

    for (size_t i = 0; i < plan->checkpoint->n_files && status == LMQ_OK;
         i++) {
        size_t n;
        const struct lmq_digest_range *ranges;
        status =
            lmq_input_ranges(plan->checkpoint->files[i], &ranges, &n, err);
        for (size_t j = 0; j < n && status == LMQ_OK; j++) {
            json_t *range = json_array();
            lmq_append(&range, json_integer((json_int_t)i));
            lmq_append(&range, lmq_json_size(ranges[j].offset));
            lmq_append(&range, lmq_json_size(ranges[j].size));
            lmq_append(&range, json_integer(ranges[j].crc));
            lmq_append(&json, range);
        }
    }
    lmq_put(out, "ranges", json);
    return status;
}

static json_t *
describe_calibrated(const struct lmq_calibrated *calibrated)
{
    json_t *json = json_object();

    lmq_put_name(&json, "method", lmq_method_names, calibrated->method);
    lmq_put(&json, "blind", json_boolean(calibrated->is_blind));
    lmq_put(&json, "first", json_boolean(calibrated->is_first));
    lmq_put(&json, "tokens", lmq_json_size(calibrated->n_tokens));
    lmq_put(&json, "cost", lmq_f64_bits(calibrated->cost));
    lmq_put(&json, "searched", lmq_f64_bits(calibrated->searched));
    return json;
}

static json_t *
describe_record(const struct lmq_journal *journal, const struct lmq_plan *plan,
                size_t index, uint64_t n_zeroed)
{
    const struct lmq_record *record = &plan->records[index];
    json_t *json = json_object(), *parts = json_array();

    lmq_put(&json, "record", json_integer((json_int_t)index));
    lmq_put(&json, "takes", json_boolean(plan->takes[index]));
    lmq_put(&json, "zeroed", lmq_json_size(n_zeroed));
    lmq_put(&json, "multiplier", lmq_f32_bits(record->quant.multiplier));
    lmq_put(&json, "sum_sq", lmq_f64_bits(record->sum_sq));
    lmq_put(&json, "err_sq", lmq_f64_bits(record->err_sq));
    lmq_put(&json, "max_abs", lmq_f32_bits(record->max_abs));
    lmq_put(&json, "max_err", lmq_f32_bits(record->max_err));
    lmq_put(&json, "worst_err_sq", lmq_f32_bits(record->worst_err_sq));
    lmq_put(&json, "worst_group", lmq_json_size(record->worst_group));
    if (plan->calibrated != NULL && plan->calibrated[index].is_known)
        lmq_put(&json, "calibrated",
                describe_calibrated(&plan->calibrated[index]));
    if (plan->settings.has_digests)
        lmq_put(&json, "tensor",
                lmq_hex_of(plan->digests.tensors + index * LMQ_SHA256_SIZE,
                       LMQ_SHA256_SIZE));
    for (const struct lmq_plan_part *part = lmq_plan_first_part(plan, index);
         part < plan->parts + plan->n_parts && part->record == index; part++)
        if (tells_of(journal, part->member))
            lmq_append(&parts, describe_part(plan, part));
    lmq_put(&json, "parts", parts);
    return json;
}

enum lmq_status
lmq_journal_sync(struct lmq_journal *journal, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 0; i < journal->n_outputs && status == LMQ_OK; i++)
        if (tells_of(journal, i))
            status = lmq_part_sync(journal->outputs[i], err);
    if (status == LMQ_OK)
        status = lmq_log_append(journal->log, synced_line, err);
    journal->unsynced = 0;
    return status == LMQ_OK ? lmq_log_sync(journal->log, err) : status;
}

enum lmq_status
lmq_journal_add(struct lmq_journal *journal, const struct lmq_plan *plan,
                size_t index, uint64_t n_zeroed, struct lmq_error *err)
{
    uint64_t sizes[LMQ_N_EXTENTS];
    json_t *json = describe_record(journal, plan, index, n_zeroed);
    enum lmq_status status = describe_ranges(plan, &json, err);

    if (status == LMQ_OK && json == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = append_json(journal, json, err);
    else
        json_decref(json);
    lmq_record_sizes(&plan->records[index], sizes);
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        journal->unsynced += sizes[i];
    return status == LMQ_OK && journal->unsynced >= SYNC_BYTES
               ? lmq_journal_sync(journal, err)
               : status;
}

enum lmq_status
lmq_journal_commit(struct lmq_journal *journal, struct lmq_error *err)
{
    json_t *files = json_array();
    enum lmq_status status = lmq_journal_sync(journal, err);

    for (uint32_t i = 0; i < journal->n_outputs && status == LMQ_OK; i++) {
        struct lmq_part_mark mark;
        if (!tells_of(journal, i))
            continue;
        status = lmq_part_find_mark(journal->outputs[i], &mark, err);
        if (status == LMQ_OK)
            lmq_append(&files, lmq_journal_stage_file(i, &mark));
    }
    if (status != LMQ_OK) {
        json_decref(files);
        return status;
    }
    status = append_json(journal, lmq_journal_stage_commit(files), err);
    return status == LMQ_OK ? lmq_log_sync(journal->log, err) : status;
}

void
lmq_journal_undo(struct lmq_journal *journal)
{
    struct lmq_error ignored;

    if (lmq_log_append(journal->log, lmq_journal_undone, &ignored) == LMQ_OK)
        lmq_log_sync(journal->log, &ignored);
}

/* ---- And back ---- */

/* What was written and may not have come to the disk. */
static enum lmq_status
check_extent(struct lmq_output *output, const struct lmq_extent *extent,
             uint32_t expected, bool *is_good, struct lmq_error *err)
{
    const size_t step = (size_t)1 << 18;
    unsigned char *bytes = malloc(step);
    uint32_t crc = 0;
    enum lmq_status status = bytes == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (uint64_t at = 0; at < extent->size && status == LMQ_OK; at += step) {
        size_t n = (size_t)lmq_u64_min(step, extent->size - at);
        status = lmq_part_read(output, extent->offset + at, bytes, n, err);
        if (status == LMQ_OK)
            crc = lmq_crc32(crc, bytes, n);
    }
    free(bytes);
    *is_good &= crc == expected;
    return status;
}

/* *is_good becomes false if the part has to be written anew. */
static enum lmq_status
restore_part(const struct lmq_journal *journal, const struct lmq_plan *plan,
             const struct lmq_plan_part *part, const json_t *json,
             bool is_checked, bool *is_good, struct lmq_error *err)
{
    struct lmq_record *stored = lmq_plan_stored(plan, part);
    const json_t *crcs = json_object_get(json, "crcs");
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < LMQ_N_EXTENTS && status == LMQ_OK; i++) {
        struct lmq_extent *extent = &stored->extents[i];
        uint32_t crc =
            (uint32_t)json_integer_value(json_array_get(crcs, i));
        *is_good &= extent->size > 0 || crc == 0;
        if (is_checked)
            status = check_extent(journal->outputs[part->member], extent, crc,
                                  is_good, err);
        if (status == LMQ_OK && *is_good)
            extent->crc = crc;
    }
    if (plan->settings.has_digests) {
        size_t n;
        unsigned char *chunks = chunks_of(plan, part, &n);
        *is_good &= lmq_hex_read(json_object_get(json, "chunks"), chunks,
                             n * LMQ_SHA256_SIZE);
    }
    return status;
}

/* What was read then is what stands there. */
static enum lmq_status
check_source(struct lmq_input *input, const struct lmq_digest_range *range,
             struct lmq_error *err)
{
    uint32_t crc = 0;
    enum lmq_status status =
        lmq_input_crc(input, range->offset, range->size, &crc, err);

    if (status != LMQ_OK || crc == range->crc)
        return status;
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "is of what %.200s was before: of its bytes %" PRIu64
             " to %" PRIu64 " some are others now",
             lmq_input_path(input), range->offset,
             range->offset + range->size - 1);
    lmq_hint(err, "remove it and the files beside it that end in '"
                  LMQ_PART_ENDING "', and begin anew");
    return LMQ_ERR_ARG;
}

static enum lmq_status
restore_ranges(const struct lmq_journal *journal, const struct lmq_plan *plan,
               const json_t *ranges, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    enum lmq_status status = LMQ_OK;
    const json_t *range;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)ranges, i, range) {
        uint64_t n[4];
        for (size_t j = 0; j < 4; j++)
            n[j] = (uint64_t)json_integer_value(json_array_get(range, j));
        struct lmq_digest_range known = {n[1], n[2], (uint32_t)n[3]};
        /* Without memory it is read again. */
        if (status != LMQ_OK || n[0] >= checkpoint->n_files ||
            n[1] > lmq_input_size(checkpoint->files[n[0]]) ||
            n[2] > lmq_input_size(checkpoint->files[n[0]]) - n[1])
            continue;
        if (journal->was_touched)
            status = check_source(checkpoint->files[n[0]], &known, err);
        if (status == LMQ_OK)
            lmq_input_know(checkpoint->files[n[0]], &known, NULL);
    }
    return status;
}

static void
restore_calibrated(struct lmq_plan *plan, size_t index, const json_t *json)
{
    struct lmq_calibrated *calibrated = &plan->calibrated[index];
    const struct lmq_name *method = lmq_names_find(
        lmq_method_names, json_string_value(json_object_get(json, "method")));

    calibrated->is_known = method != NULL;
    calibrated->is_blind = json_is_true(json_object_get(json, "blind"));
    calibrated->is_first = !json_is_false(json_object_get(json, "first"));
    if (method != NULL)
        calibrated->method = (enum lmq_method)method->value;
    calibrated->n_tokens =
        (uint64_t)json_integer_value(json_object_get(json, "tokens"));
    calibrated->cost = lmq_f64_of(json_object_get(json, "cost"));
    calibrated->searched = lmq_f64_of(json_object_get(json, "searched"));
}

/* What a line says of its tensor, and nothing else of it. */
static struct lmq_record
measured(const json_t *json)
{
    return (struct lmq_record){
        .sum_sq = lmq_f64_of(json_object_get(json, "sum_sq")),
        .err_sq = lmq_f64_of(json_object_get(json, "err_sq")),
        .max_abs = lmq_f32_of(json_object_get(json, "max_abs")),
        .max_err = lmq_f32_of(json_object_get(json, "max_err")),
        .worst_err_sq = lmq_f32_of(json_object_get(json, "worst_err_sq")),
        .worst_group = (uint64_t)json_integer_value(
            json_object_get(json, "worst_group"))};
}

static void
restore_statistics(struct lmq_plan *plan, size_t index, const json_t *json,
                   const struct lmq_record *said)
{
    const json_t *calibrated = json_object_get(json, "calibrated");
    struct lmq_record *record = &plan->records[index];
    bool takes =
        plan->takes[index] && json_is_true(json_object_get(json, "takes"));

    if (plan->takes[index] && !takes)
        lmq_notes_add(&plan->notes, "tensor '%s' was quantized again",
                      plan->sources[index]->stored_name);
    plan->takes[index] = takes;
    record->quant.multiplier = lmq_f32_of(json_object_get(json, "multiplier"));
    record->sum_sq = said->sum_sq;
    record->err_sq = said->err_sq;
    record->max_abs = said->max_abs;
    record->max_err = said->max_err;
    record->worst_err_sq = said->worst_err_sq;
    record->worst_group = said->worst_group;
    if (calibrated != NULL && plan->calibrated != NULL)
        restore_calibrated(plan, index, calibrated);
}

/* Either all that this journal tells of are done, or none, and then their
 * checksums are those of nothing again. */
static void
settle_parts(const struct lmq_journal *journal, struct lmq_plan *plan,
             size_t index, bool are_done)
{
    for (struct lmq_plan_part *part = lmq_plan_first_part(plan, index);
         part < plan->parts + plan->n_parts && part->record == index;
         part++) {
        struct lmq_record *stored = lmq_plan_stored(plan, part);
        if (!tells_of(journal, part->member))
            continue;
        part->is_done = are_done;
        for (size_t i = 0; i < LMQ_N_EXTENTS && !are_done; i++)
            stored->extents[i].crc = 0;
    }
}

/* What one line says, instead of any before it. A record of which something
 * lacks is done anew. */
static enum lmq_status
restore_record(const struct lmq_journal *journal, struct lmq_plan *plan,
               const bool *is_there, const json_t *json, bool is_checked,
               uint64_t *zeroed, struct lmq_error *err)
{
    const json_t *parts = json_object_get(json, "parts");
    json_int_t number = json_integer_value(json_object_get(json, "record"));
    size_t index = (size_t)number, i = 0;
    enum lmq_status status = LMQ_OK;
    bool is_good = number >= 0 && index < plan->n_records &&
                   plan->records[index].encoding != LMQ_ENCODING_ALIAS;

    status = restore_ranges(journal, plan, json_object_get(json, "ranges"),
                            err);
    if (status != LMQ_OK || !is_good)
        return status;
    zeroed[index] = 0;
    for (struct lmq_plan_part *part = lmq_plan_first_part(plan, index);
         part < plan->parts + plan->n_parts && part->record == index; part++) {
        const json_t *own = json_array_get(parts, i);
        if (!tells_of(journal, part->member))
            continue;
        i++;
        is_good &= is_there[part->member] &&
                   json_integer_value(json_object_get(own, "part")) ==
                       part - plan->parts;
        if (is_good && status == LMQ_OK)
            status = restore_part(journal, plan, part, own, is_checked,
                                  &is_good, err);
    }
    if (plan->settings.has_digests)
        is_good &=
            lmq_hex_read(json_object_get(json, "tensor"),
                     plan->digests.tensors + index * LMQ_SHA256_SIZE,
                     LMQ_SHA256_SIZE);
    struct lmq_quant quant = plan->records[index].quant;
    struct lmq_record said = measured(json);
    quant.multiplier = lmq_f32_of(json_object_get(json, "multiplier"));
    is_good &= lmq_statistics_are_sound(&said);
    is_good &= plan->records[index].encoding != LMQ_ENCODING_Q8 ||
               lmq_multiplier_is_sound(&quant);
    settle_parts(journal, plan, index, status == LMQ_OK && is_good);
    if (status != LMQ_OK || !is_good)
        return status;
    restore_statistics(plan, index, json, &said);
    lmq_plan_spread(plan, index);
    /* Of a tensor that is cut one journal tells that counts. */
    if (tells_of(journal, lmq_plan_first_part(plan, index)->member))
        zeroed[index] =
            (uint64_t)json_integer_value(json_object_get(json, "zeroed"));
    return LMQ_OK;
}

enum lmq_status
lmq_journal_restore(struct lmq_journal *journal, struct lmq_plan *plan,
                    struct lmq_output *const *outputs, uint32_t only,
                    const bool *is_there, uint64_t *n_zeroed,
                    struct lmq_error *err)
{
    uint64_t *zeroed = calloc(plan->n_records + 1, sizeof(*zeroed));
    enum lmq_status status = zeroed == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    const char *line;

    journal->outputs = outputs;
    journal->only = only;
    journal->n_outputs = plan->n_members;
    lmq_log_rewind(journal->log);
    lmq_log_next(journal->log); /* the header */
    for (size_t i = 2;
         status == LMQ_OK && (line = lmq_log_next(journal->log)) != NULL;
         i++) {
        json_t *json = NULL;
        if (strcmp(line, synced_line) == 0 ||
            lmq_journal_stage_take(&journal->stage, line))
            continue;
        status = read_line(line, &json, err);
        if (status == LMQ_OK)
            status = restore_record(journal, plan, is_there, json,
                                    i > journal->n_synced, zeroed, err);
        json_decref(json);
    }
    for (size_t i = 0; i < plan->n_records && zeroed != NULL; i++)
        *n_zeroed += zeroed[i];
    free(zeroed);
    if (status != LMQ_OK)
        lmq_error_in(err, lmq_log_path(journal->log));
    return status;
}
