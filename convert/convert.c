/*
 * convert.c - plan -> stream -> finish, and the report of it.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text/utf8.h"
#include "convert/calibrate/calibrate.h"
#include "convert/calibrate/calibrator.h"
#include "convert/convert.h"
#include "convert/foresee.h"
#include "convert/lay_out.h"
#include "convert/sets/journal.h"
#include "convert/writing.h"
#include "formats/describe.h"
#include "formats/lmq/lmq_describe.h"
#include "formats/packed/packed.h"

/* ---- Report ---- */

struct totals {
    uint64_t n_parameters, n_quantized, n_taken, n_kept, n_aliases;
    uint64_t quantized_elements, quantized_bytes;
    uint64_t stored_elements, stored_bytes;
    double sum_sq, err_sq;
};

static void
describe_calibrated(json_t **tensor, const struct lmq_calibrated *calibrated)
{
    lmq_put_name(tensor, "method", lmq_method_names, calibrated->method);
    lmq_put(tensor, "calibration_tokens",
            lmq_json_size(calibrated->n_tokens));
    if (calibrated->method == LMQ_METHOD_GPTQ)
        lmq_put(tensor, "product_error_ratio",
                lmq_json_number(calibrated->searched > 0
                                    ? calibrated->cost / calibrated->searched
                                    : 1));
}

static json_t *
describe_tensor(const struct lmq_plan *plan, size_t index, bool has_results,
                struct totals *totals)
{
    const struct lmq_record *record = &plan->records[index];
    const struct lmq_tensor *source = plan->sources[index];
    uint64_t n_bytes = lmq_record_bytes(record);
    uint64_t n = source->n_elements;
    json_t *tensor = json_object();

    lmq_put(&tensor, "name", lmq_json_text(record->name));
    lmq_put(&tensor, "stored_name", lmq_json_text(source->stored_name));
    lmq_put(&tensor, "shape", lmq_describe_dims(record->dims, record->n_dims));
    lmq_put(&tensor, "source_type",
            json_string(source->encoding != NULL
                            ? source->encoding
                            : lmq_dtype_name(source->dtype)));
    lmq_put(&tensor, "stored_type", json_string(lmq_record_type(record)));
    if (record->encoding == LMQ_ENCODING_ALIAS) {
        lmq_put(&tensor, "alias_of",
                lmq_json_text(plan->records[record->alias].name));
        totals->n_aliases++;
        return tensor;
    }
    lmq_put(&tensor, "bits_per_weight",
            lmq_json_number(8 * (double)n_bytes / (double)n));
    if (record->encoding == LMQ_ENCODING_Q8) {
        lmq_put(&tensor, "group_size",
                json_integer(record->quant.group_size));
        lmq_put_name(&tensor, "scales", lmq_scales_names, record->quant.scales);
        lmq_put(&tensor, "rotated",
                json_boolean(record->quant.rotation != LMQ_ROTATION_NONE));
        lmq_put(&tensor, "as_stored", json_boolean(plan->takes[index]));
        if (plan->calibrated != NULL && plan->calibrated[index].is_known)
            describe_calibrated(&tensor, &plan->calibrated[index]);
    }
    totals->n_parameters += n;
    totals->stored_elements += n;
    totals->stored_bytes += n_bytes;
    if (record->encoding == LMQ_ENCODING_Q8) {
        totals->n_quantized++;
        totals->n_taken += plan->takes[index];
        totals->quantized_elements += n;
        totals->quantized_bytes += n_bytes;
        totals->sum_sq += record->sum_sq;
        totals->err_sq += record->err_sq;
    } else {
        totals->n_kept++;
    }
    if (has_results)
        lmq_describe_stats(&tensor, record, n);
    return tensor;
}

static json_t *
describe_totals(const struct lmq_plan *plan, const struct totals *totals,
                bool has_results, uint64_t n_zeroed)
{
    json_t *json = json_object();

    lmq_put(&json, "parameters", lmq_json_size(totals->n_parameters));
    lmq_put(&json, "tensors", lmq_json_size(plan->n_records));
    lmq_put(&json, "quantized", lmq_json_size(totals->n_quantized));
    lmq_put(&json, "as_stored", lmq_json_size(totals->n_taken));
    lmq_put(&json, "kept", lmq_json_size(totals->n_kept));
    lmq_put(&json, "aliases", lmq_json_size(totals->n_aliases));
    lmq_put(&json, "input_bytes",
            lmq_json_size(lmq_checkpoint_sizes(plan->checkpoint).file_bytes));
    lmq_put(&json, "output_bytes", lmq_json_size(lmq_writing_size(plan)));
    lmq_put(
        &json, "bits_per_weight",
        lmq_json_number(8 * (double)totals->stored_bytes /
                        (double)totals->stored_elements));
    lmq_put(
        &json, "quantized_bits_per_weight",
        lmq_json_number(8 * (double)totals->quantized_bytes /
                        (double)totals->quantized_elements));
    if (has_results) {
        lmq_put(
            &json, "rms_error",
            lmq_json_number(sqrt(totals->err_sq /
                                 (double)totals->quantized_elements)));
        lmq_put(
            &json, "snr_db",
            lmq_json_number(lmq_quant_snr_db(totals->sum_sq, totals->err_sq)));
        lmq_put(&json, "zeroed_elements", lmq_json_size(n_zeroed));
    }
    return json;
}

/* A text that the model was to write and has not has no CRC. */
static json_t *
describe_calibration(const struct lmq_plan *plan, bool is_dry)
{
    json_t *json = json_copy(plan->calibration);

    if (is_dry && json_object_get(json, "own_text") != NULL)
        lmq_put(&json, "own_text", json_null());
    return json;
}

/* In integers with scales, or in 8-bit floats. */
static bool
is_quantized(const struct lmq_tensor *tensor)
{
    return tensor->blocks != NULL || tensor->packing != NULL ||
           (tensor->encoding != NULL && tensor->encoding[0] == 'q') ||
           tensor->dtype == LMQ_DTYPE_F8_E4M3 ||
           tensor->dtype == LMQ_DTYPE_F8_E5M2;
}

/* As floats that have all that it has. */
static bool
is_unpacked(const struct lmq_record *record)
{
    return record->encoding == LMQ_ENCODING_PLAIN &&
           record->dtype == LMQ_DTYPE_F32;
}

/* Behind the work, which finds integers that cannot be taken. The tensors of
 * the checkpoint are the first of the plan. */
static void
note_quantized(struct lmq_plan *plan)
{
    size_t n = 0, n_taken = 0, n_matrices = 0;

    for (size_t i = 0; i < plan->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = plan->sources[i];
        if (tensor->n_dims < 2 || !lmq_dtype_is_float(tensor->dtype) ||
            plan->records[i].encoding == LMQ_ENCODING_ALIAS)
            continue;
        n_matrices++;
        if (plan->takes[i])
            n_taken++;
        else
            n += is_quantized(tensor) && !is_unpacked(&plan->records[i]);
    }
    if (n_taken > 0)
        lmq_notes_add(&plan->notes,
                      "%zu of %zu matrices are quantized already: their "
                      "integers and scales stay as they are",
                      n_taken, n_matrices);
    if (n > 0)
        lmq_notes_add(&plan->notes,
                      "%zu of %zu matrices are quantized already: "
                      "converting them again adds error to error",
                      n, n_matrices);
}

/* Behind the work, too. Downloads make room first, and what has not come is
 * zeros then; nothing else of the file may show it. */
static void
note_zeros(struct lmq_plan *plan)
{
    const char *first = NULL;
    size_t n = 0, n_matrices = 0;

    for (size_t i = 0; i < plan->checkpoint->n_tensors; i++) {
        const struct lmq_record *record = &plan->records[i];
        const struct lmq_tensor *tensor = plan->sources[i];
        if (tensor->n_dims < 2 || tensor->n_elements == 0 ||
            !lmq_dtype_is_float(tensor->dtype) ||
            record->encoding == LMQ_ENCODING_ALIAS)
            continue;
        n_matrices++;
        if (record->max_abs == 0 && n++ == 0)
            first = tensor->stored_name;
    }
    if (n > 0)
        lmq_notes_add(&plan->notes,
                      "%zu of %zu matrices %s nothing but zeros, '%s' first: "
                      "is the file whole?",
                      n, n_matrices, n == 1 ? "has" : "have", first);
}

static json_t *
make_report(const struct lmq_writing *writing, bool has_results)
{
    struct lmq_plan *plan = writing->plan;
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    const struct lmq_convert_settings *settings = &plan->settings;
    struct totals totals = {0};
    json_t *report = json_object();
    json_t *tensors = json_array();
    json_t *tie = json_object();
    bool is_dry = !has_results && writing->part == 0;

    for (size_t i = 0; i < plan->n_records; i++)
        lmq_append(&tensors, describe_tensor(plan, i, has_results, &totals));
    lmq_put(&report, "input", lmq_json_text(checkpoint->path));
    lmq_put(&report, "format", json_string(checkpoint->format->name));
    lmq_put(&report, "output", lmq_json_text(writing->output));
    lmq_put(&report, "dry_run", json_boolean(is_dry));
    if (writing->part > 0)
        lmq_put(&report, "part", json_integer(writing->part));
    lmq_put(&report, "model", lmq_describe_model(checkpoint));
    if (settings->recipe.basis.asked & LMQ_WISH_ENCODING)
        lmq_put(&report, "encoding",
                json_string(lmq_wish_encoding(&settings->recipe.basis)));
    else
        lmq_put_name(&report, "encoding", lmq_stored_names, settings->stored);
    lmq_put(&report, "group_size", json_integer(settings->quant.group_size));
    lmq_put_name(&report, "scales", lmq_scales_names, settings->quant.scales);
    lmq_put_name(&report, "method", lmq_method_names, settings->quant.method);
    lmq_put(&report, "rotate",
            json_boolean(settings->quant.rotation != LMQ_ROTATION_NONE));
    if (plan->calibration != NULL)
        lmq_put(&report, "calibration", describe_calibration(plan, is_dry));
    lmq_put_name(&report, "layout", lmq_layout_names, settings->layout);
    lmq_put(&report, "recipe", lmq_recipe_to_json(&settings->recipe));
    lmq_put(&tie, "tied", json_boolean(plan->tie_rule[0] != '\0'));
    lmq_put(&tie, "rule",
            plan->tie_rule[0] == '\0'
                ? json_null()
                : json_string(plan->tie_rule));
    lmq_put(&report, "tie", tie);
    lmq_put(&report, "totals",
            describe_totals(plan, &totals, has_results, writing->n_zeroed));
    lmq_put(&report, "files", lmq_writing_files(plan, writing->files));
    lmq_put(&report, "tensors", tensors);
    if (writing->part == 0) /* of the others' it is not known yet */
        note_quantized(plan);
    if (has_results)
        note_zeros(plan);
    lmq_put(&report, "notes", lmq_describe_notes(checkpoint, &plan->notes));
    return report;
}

static json_t *
describe_results(const struct lmq_writing *writing)
{
    lmq_calibrated_note(writing->plan);
    /* Of a part there are no results for the whole. */
    return make_report(writing, writing->part == 0);
}

/* ---- Doing it ---- */

/* Fewer bytes of padding than this are nobody's business. */
#define PADDING_MIN 65536

/* Tiles fill up short rows: without a word on it people wonder. The smallest
 * groups do so least, but have the most scales; what has its groups already
 * cannot have them, and rows have 8 bits. */
static void
note_padding(struct lmq_plan *plan)
{
    double stored = 0, needed = 0, all = 0, least = 0;
    bool is_bound = false, is_narrow = false;
    uint64_t sizes[LMQ_N_EXTENTS];

    for (size_t i = 0; i < plan->n_records; i++) {
        struct lmq_record record = plan->records[i];
        if (record.encoding != LMQ_ENCODING_Q8)
            continue;
        lmq_record_sizes(&record, sizes);
        stored += (double)sizes[LMQ_VALUES];
        all += (double)lmq_record_bytes(&record);
        needed += (double)plan->sources[i]->n_elements * record.quant.bits / 8;
        is_bound |= plan->takes[i];
        is_narrow |= record.quant.bits < LMQ_BITS_MAX;
        /* Where a rule says otherwise, the option says nothing. */
        if (record.quant.group_size == plan->settings.quant.group_size)
            record.quant.group_size = LMQ_GROUP_MIN;
        least += (double)lmq_record_bytes(&record);
    }
    bool has_less = least < all && !is_bound;
    if (stored > 1.25 * needed && stored - needed > PADDING_MIN &&
        (has_less || !is_narrow))
        lmq_notes_add(&plan->notes,
                      "groups are filled up (%.0f %% more): %s%s%s is smaller",
                      100 * (stored / needed - 1),
                      has_less ? ".group_size=32" : "",
                      has_less && !is_narrow ? " or " : "",
                      is_narrow ? "" : ".layout=rows");
}

/* The recipe and the calibration text are as the checkpoint is. Who seals does
 * not need them any more. */
static enum lmq_status
list_originals(const struct lmq_checkpoint *checkpoint,
               const struct lmq_convert_options *options,
               struct lmq_originals *originals, struct lmq_error *err)
{
    bool is_read = !options->seals;
    enum lmq_status status =
        lmq_originals_add_all(originals, &checkpoint->originals, err);

    if (status == LMQ_OK && options->recipe != NULL)
        status = lmq_originals_add(originals, options->recipe, is_read, err);
    for (size_t i = 0; i < options->n_calibration && status == LMQ_OK; i++)
        status = lmq_originals_add_text(originals, options->calibration[i],
                                        is_read, err);
    return status;
}

/* An older set stands in the way of who seals, not of a part. */
static enum lmq_status
check_output(const char *output, const struct lmq_convert_options *options,
             const struct lmq_originals *originals, struct lmq_error *err)
{
    return lmq_member_files_check(
        output, options->shard_size > 0 || options->n_parts > 0,
        options->replaces != 0 || options->part > 0, originals, err);
}

/* What can be known before the tensors are looked at. */
static enum lmq_status
prepare(struct lmq_checkpoint *checkpoint, const char *output,
        const struct lmq_convert_options *options, struct lmq_plan *plan,
        struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    bool has_begun = options->resumes != 0 &&
                     lmq_writing_has_begun(output, &status, err);

    if (status == LMQ_OK && !options->is_dry_run)
        status = list_originals(checkpoint, options, &plan->originals, err);
    if (status == LMQ_OK && !options->is_dry_run && !has_begun &&
        !options->seals)
        status = check_output(output, options, &plan->originals, err);
    if (status == LMQ_OK)
        status = lmq_checkpoint_need_weights(checkpoint, err);
    if (status == LMQ_OK)
        status = lmq_convert_foresee(checkpoint,
                                     options->forces_tokenizer != 0,
                                     &plan->notes, err);
    return status;
}

static enum lmq_status
check_peers(const struct lmq_convert_options *options, struct lmq_error *err)
{
    const struct lmq_peers *peers = options->peers;

    if (peers == NULL || (lmq_convert_is_calibrated(options) &&
                          peers->rank < peers->n && peers->share != NULL &&
                          options->n_parts == peers->n &&
                          options->part == peers->rank + 1))
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_ARG, 0,
                    ".peers go with .calibration, and each of them writes a "
                    ".part: .rank + 1 of .n");
}

/* What can learn something from the text, and whether something must. */
static enum lmq_status
check_methods(const struct lmq_plan *plan, bool has_text,
              struct lmq_error *err)
{
    size_t n = 0;
    bool has_taken = false;

    for (size_t i = 0; i < plan->n_records; i++) {
        const struct lmq_record *record = &plan->records[i];
        has_taken |= plan->takes[i];
        if (record->encoding != LMQ_ENCODING_Q8 || plan->takes[i])
            continue;
        if (!has_text && record->quant.method == LMQ_METHOD_GPTQ) {
            lmq_fail(err, LMQ_ERR_ARG, 0,
                     "tensor '%s' is to be quantized by gptq, but there is no "
                     "text to learn from",
                     record->name);
            lmq_hint(err, ".calibration TEXT names one, with .writes_text "
                          "the model writes it");
            return LMQ_ERR_ARG;
        }
        n += record->place.layer >= 0 &&
             record->quant.method != LMQ_METHOD_ABSMAX;
    }
    if (!has_text || n > 0)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "nothing can be learnt from a text: no matrix of a layer is "
             "quantized by gptq or search");
    if (has_taken)
        lmq_hint(err, "what is quantized already stays as it is, unless fewer "
                      "bits or other groups are asked for: take the floats "
                      "that it was made from");
    return LMQ_ERR_ARG;
}

static enum lmq_status
open_calibrator(struct lmq_plan *plan,
                const struct lmq_convert_options *options,
                const struct lmq_progress *progress, struct lmq_error *err)
{
    const struct lmq_calibration given = {
        .texts = options->calibration,
        .n = options->n_calibration,
        .writes_text = options->writes_text != 0,
        .is_dry = options->is_dry_run != 0,
        .n_tokens = options->calibration_tokens,
        .context = options->context,
        .damping = options->damping,
        .mend = options->mend,
        .splits_documents = options->splits_documents != 0,
        .threads = options->threads,
        .peers = options->peers,
    };

    bool has_text = lmq_convert_is_calibrated(options);
    enum lmq_status status = check_methods(plan, has_text, err);

    return status != LMQ_OK || !has_text
               ? status
               : lmq_calibrator_open(plan, &given, progress, err);
}

/* As it was read then: the file may be elsewhere, or another. */
static enum lmq_status
recall_recipe(struct lmq_convert_settings *settings, const json_t *parts,
              struct lmq_error *err)
{
    const char *text =
        json_string_value(json_object_get(parts, "recipe_text"));

    if (text == NULL)
        return LMQ_OK;
    settings->recipe.text = strdup(text);
    return settings->recipe.text == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* What is sealed has been calibrated, and knows of it what was told. */
static enum lmq_status
recall_calibration(struct lmq_plan *plan, json_t *calibration,
                   struct lmq_error *err)
{
    if (!json_is_object(calibration))
        return LMQ_OK;
    plan->calibration = json_incref(calibration);
    plan->calibrated = calloc(plan->n_records + 1, sizeof(*plan->calibrated));
    return plan->calibrated == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
make_plan(struct lmq_checkpoint *checkpoint,
          const struct lmq_convert_options *options,
          const struct lmq_convert_settings *settings, json_t *calibration,
          const struct lmq_progress *progress, struct lmq_plan *plan,
          struct lmq_error *err)
{
    /* Opening does not read the tensors; a conversion must not give damaged
     * ones a good checksum. */
    enum lmq_status status =
        options->seals ? LMQ_OK
                       : lmq_checkpoint_verify(checkpoint, options->threads,
                                               progress, err);

    if (status == LMQ_OK)
        status = lmq_plan_make(checkpoint, settings, plan, err);
    if (status == LMQ_OK)
        status = options->seals ? recall_calibration(plan, calibration, err)
                                : open_calibrator(plan, options, progress, err);
    if (status == LMQ_OK)
        status = lmq_plan_lay_out(plan, err);
    if (status == LMQ_OK && plan->calibrator != NULL)
        status = lmq_calibrator_meet(plan, err);
    if (status == LMQ_OK)
        note_padding(plan);
    return status;
}

/* Who seals can be told what is not written here: no JSON. */
static void
put_words(json_t **object, const char *key, const char *text)
{
    if (text != NULL &&
        lmq_is_utf8((const unsigned char *)text, strlen(text)))
        lmq_put(object, key, json_string(text));
}

static void
put_path(json_t **object, const char *key, const char *path)
{
    char *whole = path == NULL ? NULL : realpath(path, NULL);

    put_words(object, key, whole == NULL ? path : whole);
    free(whole);
}

/* All that decides what is written, so that who seals the set can go on. */
static json_t *
describe_given(const struct lmq_plan *plan,
               const struct lmq_convert_options *options)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        {"scales", options->scales},
        {"method", lmq_names_of(lmq_method_names,
                                plan->settings.quant.method)},
        {"tie", options->tie},
        {"on_nonfinite", options->on_nonfinite},
        {"layout", options->layout},
        {"recipe_text", plan->settings.recipe.text},
        {"encoding", options->encoding},
    };
    json_t *given = json_object(), *rules = json_array();

    put_path(&given, "source", plan->checkpoint->path);
    put_path(&given, "recipe", options->recipe);
    lmq_put(&given, "group_size", json_integer(options->group_size));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        put_words(&given, texts[i].key, texts[i].text);
    for (size_t i = 0; i < options->n_rules; i++)
        lmq_append(&rules, json_string(options->rules[i]));
    lmq_put(&given, "rules", rules);
    lmq_put(&given, "rotates", json_boolean(options->rotates != 0));
    if (plan->calibration != NULL)
        lmq_put(&given, "calibration", json_incref(plan->calibration));
    lmq_put(&given, "is_compressed",
            json_boolean(options->is_compressed != 0));
    lmq_put(&given, "has_digests", json_boolean(options->has_digests != 0));
    return given;
}

/* What an earlier run has left and nobody goes on with stays, however large. */
static enum lmq_status
note_journal(struct lmq_plan *plan, const char *output, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    char *path = lmq_journal_path(output);

    if (path == NULL)
        return lmq_fail_nomem(err);
    if (lmq_file_exists(path, &status, err))
        lmq_notes_add(&plan->notes,
                      "%s is of a conversion that was stopped: .resumes goes "
                      "on with it; without, it and its unfinished output stay",
                      path);
    free(path);
    return status;
}

/* What a stop leaves, and what to do then. */
static void
hint_at_rest(const struct lmq_convert_options *options, struct lmq_error *err)
{
    if (options->resumes != 0 || options->part > 0)
        lmq_hint(err, "the same command goes on with what was done");
    else
        lmq_hint(err, "nothing is kept; with .resumes the same command goes on "
                      "after a stop");
}

static enum lmq_status
carry_out(struct lmq_plan *plan, const char *output,
          const struct lmq_convert_options *options,
          const struct lmq_progress *progress, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_member_files files = {0};
    struct lmq_writing writing = {.plan = plan,
                                  .files = &files,
                                  .output = output,
                                  .replaces = options->replaces != 0,
                                  .resumes = options->resumes != 0 ||
                                             options->part > 0 ||
                                             options->seals != 0,
                                  .part = options->is_dry_run
                                              ? 0
                                              : options->part,
                                  .seals = options->seals != 0,
                                  .given = describe_given(plan, options),
                                  .threads = options->threads,
                                  .progress = progress,
                                  .report = report,
                                  .describe = describe_results};
    enum lmq_status status = writing.given == NULL
                                 ? lmq_fail_nomem(err)
                                 : lmq_member_files_name(&files, plan, output,
                                                         err);

    if (status == LMQ_OK && !writing.resumes && !options->is_dry_run)
        status = note_journal(plan, output, err);
    if (status == LMQ_OK && !options->is_dry_run)
        status = lmq_writing_run(&writing, err);
    else if (status == LMQ_OK)
        status = lmq_report_approved(make_report(&writing, false), progress,
                                     report, err);
    if (status != LMQ_OK && report != NULL) {
        lmq_report_free(*report);
        *report = NULL;
    }
    json_decref(writing.given);
    lmq_member_files_free(&files);
    return status;
}

enum lmq_status
lmq_convert_given(struct lmq_checkpoint *checkpoint, const char *output,
                  const struct lmq_convert_options *given, json_t *parts,
                  const struct lmq_progress *progress,
                  struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_convert_options options;
    struct lmq_convert_settings settings = {0};
    struct lmq_plan plan = {0};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_convert_options, &options, given, err);
    if (status == LMQ_OK)
        status = check_peers(&options, err);
    if (status == LMQ_OK)
        status = recall_recipe(&settings, parts, err);
    if (status == LMQ_OK)
        status = lmq_convert_settings_parse(&options, &settings, err);
    if (status == LMQ_OK)
        status = prepare(checkpoint, output, &options, &plan, err);
    if (status == LMQ_OK) {
        status = make_plan(checkpoint, &options, &settings,
                           json_object_get(parts, "calibration"), progress,
                           &plan, err);
        if (status == LMQ_OK)
            status = carry_out(&plan, output, &options, progress, report, err);
        if (status == LMQ_ERR_CANCELLED && !options.is_dry_run &&
            options.seals == 0)
            hint_at_rest(&options, err);
        if (status != LMQ_OK)
            lmq_error_in(err, checkpoint->path);
    }
    lmq_calibrated_forget(&plan);
    lmq_calibrator_close(plan.calibrator);
    lmq_plan_free(&plan);
    lmq_recipe_free(&settings.recipe);
    return status;
}

enum lmq_status
lmq_convert(struct lmq_checkpoint *checkpoint, const char *output,
            const struct lmq_convert_options *options,
            const struct lmq_progress *progress, struct lmq_report **report,
            struct lmq_error *err)
{
    return lmq_convert_given(checkpoint, output, options, NULL, progress,
                             report, err);
}
