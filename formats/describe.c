/*
 * describe.c - checkpoints as report trees, and lmq_inspect().
 *
 * Everything that stands in a report and comes from a file goes through
 * lmq_json_text(), which makes control characters visible. Numbers are
 * measured here, sentences about the model are made in describe_model.c, and
 * what only a format knows it adds itself.
 */
#include "config.h"

#include "formats/describe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/report.h"
#include "base/size.h"
#include "formats/model/hparams_json.h"

/* ---- Parts ---- */

/* Outermost first. */
json_t *
lmq_describe_dims(const uint64_t *dims, uint32_t n_dims)
{
    json_t *shape = json_array();

    for (uint32_t i = 0; i < n_dims; i++)
        lmq_append(&shape, lmq_json_size(dims[i]));
    return shape;
}

/* A note that could not be kept for lack of memory makes the report fail: one
 * that lacks remarks would be taken for one without. */
static void
append_notes(const struct lmq_notes *notes, json_t **array)
{
    for (size_t i = 0; i < notes->n; i++)
        lmq_append(array, lmq_json_text(notes->texts[i]));
    if (notes->has_lost)
        lmq_append(array, NULL);
}

/* Those of opening it, then the operation's own. */
json_t *
lmq_describe_notes(const struct lmq_checkpoint *checkpoint,
                   const struct lmq_notes *own)
{
    json_t *notes = json_array();

    append_notes(&checkpoint->notes, &notes);
    if (own != NULL)
        append_notes(own, &notes);
    return notes;
}

/* Whether it can run or not; one that was not understood at all has a name and
 * a reason. */
json_t *
lmq_describe_model(const struct lmq_checkpoint *checkpoint)
{
    if (checkpoint->has_model)
        return lmq_hparams_to_json(&checkpoint->hparams);
    json_t *model = json_object();
    lmq_put(&model, "architecture",
            lmq_json_text(checkpoint->hparams.architecture));
    lmq_put(&model, "unsupported",
            lmq_json_text(checkpoint->hparams.unsupported));
    return model;
}

/* As it is stored. */
static const char *
tensor_type(const struct lmq_tensor *tensor)
{
    if (tensor->alias_of != NULL)
        return "alias";
    return tensor->encoding != NULL ? tensor->encoding
                                    : lmq_dtype_name(tensor->dtype);
}

/* ---- Statistics of one tensor's elements ---- */

#define BINS 41 /* odd: one in the middle is zero */
#define CHUNK ((size_t)1 << 16)

struct spread {
    uint64_t n, n_nonfinite, n_zero;
    double sum, sum_sq, min, max;
    uint64_t bins[BINS]; /* over -4 rms .. 4 rms, the ends take the rest */
};

/* Of its own elements: what is fused with others has bytes between them. */
static uint64_t
bytes_of(const struct lmq_tensor *tensor)
{
    bool is_part = tensor->view.unit != 0 || tensor->view.pitch != 0;

    return is_part ? (uint64_t)((double)tensor->n_elements *
                                tensor->bits_per_element / 8)
                   : tensor->size_bytes;
}

/* Twice over a tensor rather than once with all of it in memory: bins need the
 * root mean square first. */
static enum lmq_status
scan(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
     void (*visit)(struct spread *spread, double value),
     struct spread *spread, struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    enum lmq_status status = LMQ_OK;

    float *x = malloc(CHUNK * sizeof(*x));
    if (x == NULL)
        return lmq_fail_nomem(err);
    for (uint64_t at = 0; at < tensor->n_elements && status == LMQ_OK;
         at += CHUNK) {
        size_t n = (size_t)lmq_u64_min(CHUNK, tensor->n_elements - at);
        status =
            lmq_checkpoint_read(checkpoint, tensor, at, n, x, &scratch, err);
        for (size_t i = 0; i < n && status == LMQ_OK; i++)
            visit(spread, (double)x[i]);
    }
    lmq_scratch_free(&scratch);
    free(x);
    return status;
}

/* In doubles, for tensors of any size. */
static void
visit_moments(struct spread *spread, double value)
{
    if (!isfinite(value)) {
        spread->n_nonfinite++;
        return;
    }
    spread->n++;
    spread->n_zero += value == 0;
    spread->sum += value;
    spread->sum_sq += value * value;
    spread->min = fmin(spread->min, value);
    spread->max = fmax(spread->max, value);
}

/* A tensor of zeros alone is all in the middle. */
static void
visit_bins(struct spread *spread, double value)
{
    double rms = sqrt(spread->sum_sq / (double)spread->n);

    if (!isfinite(value))
        return;
    double place = rms > 0 ? (value / rms + 4) / 8 * BINS : BINS / 2;
    spread->bins[(size_t)fmin(fmax(place, 0), BINS - 1)]++;
}

/* Of finite elements; the others are counted beside them. */
static enum lmq_status
describe_spread(struct lmq_checkpoint *checkpoint,
                const struct lmq_tensor *tensor, json_t **json,
                struct lmq_error *err)
{
    struct spread spread = {.min = (double)INFINITY, .max = -(double)INFINITY};
    enum lmq_status status =
        scan(checkpoint, tensor, visit_moments, &spread, err);

    if (status == LMQ_OK)
        status = scan(checkpoint, tensor, visit_bins, &spread, err);
    if (status != LMQ_OK)
        return status;
    double n = (double)spread.n, mean = spread.sum / n;
    json_t *stats = json_object(), *bins = json_array();
    for (int i = 0; i < BINS; i++)
        lmq_append(&bins, lmq_json_size(spread.bins[i]));
    lmq_put(&stats, "elements", lmq_json_size(tensor->n_elements));
    lmq_put(&stats, "nonfinite", lmq_json_size(spread.n_nonfinite));
    lmq_put(&stats, "zeros", lmq_json_size(spread.n_zero));
    lmq_put(&stats, "min", lmq_json_number(spread.min));
    lmq_put(&stats, "max", lmq_json_number(spread.max));
    lmq_put(&stats, "mean", lmq_json_number(mean));
    lmq_put(&stats, "rms", lmq_json_number(sqrt(spread.sum_sq / n)));
    lmq_put(&stats, "stddev",
            lmq_json_number(sqrt(fmax(spread.sum_sq / n - mean * mean, 0))));
    lmq_put(&stats, "histogram_rms", json_integer(4));
    lmq_put(&stats, "histogram", bins);
    lmq_put(json, "stats", stats);
    return LMQ_OK;
}

/* ---- Inspecting ---- */

/* The same, but every text as lmq_json_text() makes it: it comes from a file
 * and goes to a terminal. */
static json_t *
printable(const json_t *value)
{
    const char *key;
    json_t *item, *copy;
    size_t i;

    if (json_is_string(value))
        return lmq_json_text(json_string_value(value));
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, item)
            lmq_append(&copy, printable(item));
        return copy;
    }
    if (!json_is_object(value))
        return json_copy((json_t *)(uintptr_t)value);
    copy = json_object();
    for (void *at = json_object_iter((json_t *)(uintptr_t)value); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)value, at)) {
        key = json_object_iter_key(at);
        lmq_put(&copy, key, printable(json_object_iter_value(at)));
    }
    return copy;
}

/* Takes over `members`. */
static void
add_members(json_t **report, json_t *members)
{
    const char *key;
    json_t *value;

    if (members == NULL)
        lmq_put(report, "", NULL);
    json_object_foreach(members, key, value)
        lmq_put(report, key, printable(value));
    json_decref(members);
}

/* By its canonical name and by its own, since users know one or the other. */
static json_t *
describe_tensor(const struct lmq_checkpoint *checkpoint,
                const struct lmq_tensor *tensor)
{
    json_t *json = json_object();

    lmq_put(&json, "name", lmq_json_text(tensor->name));
    lmq_put(&json, "stored_name", lmq_json_text(tensor->stored_name));
    lmq_put(&json, "shape", lmq_describe_dims(tensor->dims, tensor->n_dims));
    lmq_put(&json, "type", json_string(tensor_type(tensor)));
    if (tensor->alias_of != NULL) {
        lmq_put(&json, "alias_of", lmq_json_text(tensor->alias_of));
        return json;
    }
    lmq_put(&json, "bits_per_weight",
            lmq_json_number(tensor->bits_per_element));
    lmq_put(&json, "bytes", lmq_json_size(bytes_of(tensor)));
    add_members(&json, lmq_tensor_statements(checkpoint, tensor));
    return json;
}

/* Aliases count once. Files may have more than tensors: a tokenizer, headers,
 * padding. */
struct lmq_sizes
lmq_checkpoint_sizes(const struct lmq_checkpoint *checkpoint)
{
    struct lmq_sizes sizes = {0};

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->alias_of != NULL)
            continue;
        sizes.parameters += tensor->n_elements;
        sizes.tensor_bytes += bytes_of(tensor);
    }
    for (size_t i = 0; i < checkpoint->n_files; i++)
        sizes.file_bytes += lmq_input_size(checkpoint->files[i]);
    sizes.bits_per_weight =
        8 * (double)sizes.tensor_bytes / (double)sizes.parameters;
    return sizes;
}

static void
describe_sizes(const struct lmq_checkpoint *checkpoint, json_t **report)
{
    const struct lmq_sizes sizes = lmq_checkpoint_sizes(checkpoint);
    json_t *types = json_object();

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const char *type = tensor_type(&checkpoint->tensors[i]);
        json_int_t count =
            json_integer_value(json_object_get(types, type)) + 1;
        lmq_put(&types, type, json_integer(count));
    }
    lmq_put(report, "files", lmq_json_size(checkpoint->n_files));
    lmq_put(report, "bytes", lmq_json_size(sizes.file_bytes));
    lmq_put(report, "parameters", lmq_json_size(sizes.parameters));
    lmq_put(report, "bits_per_weight", lmq_json_number(sizes.bits_per_weight));
    lmq_put(report, "tensor_count", lmq_json_size(checkpoint->n_tensors));
    lmq_put(report, "tensor_types", types);
}

/* Whether it is the embedding again. */
static const char *
describe_head(const struct lmq_checkpoint *checkpoint)
{
    if (!checkpoint->has_model)
        return "";
    return lmq_checkpoint_is_tied(checkpoint) ? "tied" : "own";
}

static void
describe_tokenizer(const struct lmq_checkpoint *checkpoint, json_t **report)
{
    json_t *files = json_array();

    for (size_t i = 0; i < checkpoint->n_blobs; i++) {
        json_t *file = json_object();
        lmq_put(&file, "name", lmq_json_text(checkpoint->blobs[i].name));
        lmq_put(&file, "bytes", lmq_json_size(checkpoint->blobs[i].size));
        lmq_append(&files, file);
    }
    lmq_put(report, "tokenizer_files", files);
}

enum lmq_status
lmq_inspect(struct lmq_checkpoint *checkpoint,
            const struct lmq_inspect_options *given,
            struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_inspect_options own;
    const struct lmq_inspect_options *options = &own;
    const struct lmq_tensor *one = NULL;

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_inspect_options, &own, given, err);
    if (status != LMQ_OK)
        return status;
    if (options->tensor != NULL) {
        one = lmq_checkpoint_find_name(checkpoint, options->tensor);
        if (one == NULL) {
            lmq_fail(err, LMQ_ERR_ARG, 0, "has no tensor '%s'",
                     options->tensor);
            lmq_hint(err, "inspect .has_tensors lists their names");
            lmq_error_in(err, checkpoint->path);
            return LMQ_ERR_ARG;
        }
    }
    json_t *json = json_object();
    lmq_put(&json, "path", lmq_json_text(checkpoint->path));
    lmq_put(&json, "format", json_string(checkpoint->format->name));
    lmq_put(&json, "variant", lmq_json_text(checkpoint->variant));
    lmq_put(&json, "packed",
            checkpoint->packed[0] == '\0' ? json_null()
                                          : lmq_json_text(checkpoint->packed));
    lmq_put(&json, "model", lmq_describe_model(checkpoint));
    lmq_put(&json, "differences", lmq_describe_differences(checkpoint));
    lmq_put(&json, "arrangement", lmq_describe_arrangement(checkpoint));
    lmq_put(&json, "head", json_string(describe_head(checkpoint)));
    describe_sizes(checkpoint, &json);
    describe_tokenizer(checkpoint, &json);
    lmq_put(&json, "about",
            checkpoint->about == NULL ? json_object()
                                      : printable(checkpoint->about));
    add_members(&json, lmq_checkpoint_statements(checkpoint));
    if (options->has_tensors || one != NULL) {
        json_t *tensors = json_array();
        for (size_t i = 0; i < checkpoint->n_tensors; i++) {
            const struct lmq_tensor *tensor = &checkpoint->tensors[i];
            if (one != NULL && one != tensor)
                continue;
            json_t *item = describe_tensor(checkpoint, tensor);
            if (one != NULL && options->has_stats)
                status = describe_spread(checkpoint, one, &item, err);
            lmq_append(&tensors, item);
        }
        lmq_put(&json, "tensors", tensors);
    }
    lmq_put(&json, "notes", lmq_describe_notes(checkpoint, NULL));
    if (status != LMQ_OK) {
        json_decref(json);
        lmq_error_in(err, checkpoint->path);
        return status;
    }
    return lmq_report_finish(json, report, err);
}
