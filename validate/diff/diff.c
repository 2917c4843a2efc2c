/*
 * diff.c - two checkpoints: their tensors one by one, their descriptions and
 * their tokenizers.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/threads/tasks.h"
#include "formats/describe.h"
#include "formats/model/hparams_compare.h"
#include "formats/packed/packed.h"
#include "validate/diff/diff_tokenizers.h"

#define CHUNK ((size_t)1 << 17)
#define MAX_THREADS 16

struct sums {
    double a_sq, b_sq, ab, err_sq;
    double max_err;
    uint64_t n_different, n_nonfinite; /* either of the two is not finite */
};

struct worker {
    struct lmq_scratch a_scratch, b_scratch;
    float *a, *b;
};

struct diff {
    struct lmq_checkpoint *a, *b;
    struct lmq_workers workers;
    struct lmq_counter counter;
};

/* Not fmax(): a NaN must show, and stay. */
static double
larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static void
add_sums(struct sums *total, const struct sums *more)
{
    total->a_sq += more->a_sq;
    total->b_sq += more->b_sq;
    total->ab += more->ab;
    total->err_sq += more->err_sq;
    total->max_err = larger(total->max_err, more->max_err);
    total->n_different += more->n_different;
    total->n_nonfinite += more->n_nonfinite;
}

static void
sum_chunk(const float *a, const float *b, size_t n, struct sums *sums)
{
    *sums = (struct sums){0};
    for (size_t i = 0; i < n; i++) {
        double x = (double)a[i], y = (double)b[i], err = fabs(x - y);
        sums->n_nonfinite += !isfinite(x) || !isfinite(y);
        if (isinf(x) && a[i] == b[i])
            continue; /* equal, and no number to reckon with */
        sums->a_sq += x * x;
        sums->b_sq += y * y;
        sums->ab += x * y;
        sums->err_sq += err * err;
        sums->max_err = larger(sums->max_err, err);
        sums->n_different += a[i] != b[i];
    }
}

/* Two tensors on their way. */
struct comparison {
    const struct diff *diff;
    const struct lmq_tensor *a, *b;
    struct sums sums[LMQ_RANGES];
    struct sums *total; /* of those that were merged */
};

static enum lmq_status
compare_range(void *context, const struct lmq_range *range, void *state,
              struct lmq_error *err)
{
    struct comparison *comparison = context;
    const struct diff *diff = comparison->diff;
    struct worker *worker = state;
    enum lmq_status status =
        lmq_checkpoint_read(diff->a, comparison->a, range->at, range->n,
                            worker->a, &worker->a_scratch, err);

    if (status == LMQ_OK)
        status = lmq_checkpoint_read(diff->b, comparison->b, range->at,
                                     range->n, worker->b, &worker->b_scratch,
                                     err);
    if (status == LMQ_OK)
        sum_chunk(worker->a, worker->b, range->n,
                  &comparison->sums[range->slot]);
    return status;
}

static void
merge_range(void *context, const struct lmq_range *range)
{
    const struct comparison *comparison = context;

    add_sums(comparison->total, &comparison->sums[range->slot]);
}

static enum lmq_status
compare_tensor(struct diff *diff, const struct lmq_tensor *a,
               const struct lmq_tensor *b, struct sums *total,
               struct lmq_error *err)
{
    struct comparison comparison = {
        .diff = diff, .a = a, .b = b, .total = total};
    const struct lmq_ranges ranges = {
        .whole = a->n_elements,
        .chunk = CHUNK,
        .context = &comparison,
        .piece = compare_range,
        .merge = merge_range,
        .counter = &diff->counter,
    };

    *total = (struct sums){0};
    enum lmq_status status = lmq_tensor_verify(diff->a, a, err);
    if (status == LMQ_OK)
        status = lmq_tensor_verify(diff->b, b, err);
    return status == LMQ_OK ? lmq_tasks_over(&ranges, &diff->workers, err)
                            : status;
}

/* ---- Report ---- */

static void
describe_sums(json_t **json, const struct sums *sums, uint64_t n)
{
    lmq_put(json, "max_error", lmq_json_number(sums->max_err));
    lmq_put(json, "rms_error",
                        lmq_json_number(sqrt(sums->err_sq / (double)n)));
    lmq_put(json, "snr_db",
            lmq_json_number(lmq_quant_snr_db(sums->a_sq, sums->err_sq)));
    lmq_put(json, "cosine",
            lmq_json_number(
                lmq_quant_cosine(sums->ab, sums->a_sq, sums->b_sq)));
    lmq_put(json, "different_elements",
                        lmq_json_size(sums->n_different));
    lmq_put(json, "nonfinite_elements",
                        lmq_json_size(sums->n_nonfinite));
}

static const struct lmq_tensor *
counterpart(const struct lmq_checkpoint *checkpoint,
            const struct lmq_tensor *tensor)
{
    if (tensor->place.role == LMQ_ROLE_OTHER)
        return lmq_checkpoint_find_name(checkpoint, tensor->name);
    const struct lmq_tensor *found =
        lmq_checkpoint_find_place(checkpoint, &tensor->place);
    /* Where no head is spelt out, the embedding is the head. */
    if (found == NULL && lmq_tensor_is_head(tensor) && checkpoint->has_model)
        found = lmq_checkpoint_find(checkpoint, LMQ_ROLE_EMBEDDING,
                                    LMQ_PART_WEIGHT, -1);
    return found;
}

static bool
have_one_shape(const struct lmq_tensor *a, const struct lmq_tensor *b)
{
    return a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
}

static json_t *
list_missing(const struct lmq_checkpoint *from, const struct lmq_checkpoint *in)
{
    json_t *names = json_array();

    for (size_t i = 0; i < from->n_tensors; i++)
        if (counterpart(in, &from->tensors[i]) == NULL)
            lmq_append(&names, lmq_json_text(from->tensors[i].name));
    return names;
}

/* How bad a pair is: NaN is worse than any error. */
struct row {
    json_t *json;
    double noise; /* relative to A; -1: identical */
    size_t index;
};

/* What all pairs gave. */
struct findings {
    struct row *rows;
    size_t n_rows;
    json_t *shapes;
    struct sums all;
    uint64_t n;
};

static double
noise_of(const struct sums *sums)
{
    double noise = sums->err_sq / sums->a_sq;

    if (sums->n_different == 0)
        return -1;
    return isnan(noise) ? INFINITY : noise;
}

/* The worst first, and else as in A. */
static int
compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->noise < y->noise || x->noise > y->noise)
        return x->noise > y->noise ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static json_t *
list_rows(struct findings *found)
{
    json_t *list = json_array();

    if (found->n_rows > 0)
        qsort(found->rows, found->n_rows, sizeof(*found->rows), compare_rows);
    for (size_t i = 0; i < found->n_rows; i++)
        lmq_append(&list, found->rows[i].json);
    free(found->rows);
    return list;
}

static enum lmq_status
compare_pair(struct diff *diff, const char *name, const struct lmq_tensor *a,
             const struct lmq_tensor *b, struct findings *findings,
             struct lmq_error *err)
{
    json_t *json = json_object();
    struct sums sums;

    lmq_put(&json, "name", lmq_json_text(name));
    lmq_put(&json, "shape", lmq_describe_dims(a->dims, a->n_dims));
    if (!have_one_shape(a, b)) {
        lmq_put(&json, "other_shape", lmq_describe_dims(b->dims, b->n_dims));
        lmq_append(&findings->shapes, json);
        return LMQ_OK;
    }
    enum lmq_status status = compare_tensor(diff, a, b, &sums, err);
    describe_sums(&json, &sums, a->n_elements == 0 ? 1 : a->n_elements);
    findings->rows[findings->n_rows] =
        (struct row){json, noise_of(&sums), findings->n_rows};
    findings->n_rows++;
    add_sums(&findings->all, &sums);
    findings->n += a->n_elements;
    return status;
}

/* "equal" is null where neither has a description. */
static json_t *
compare_descriptions(const struct lmq_checkpoint *a,
                     const struct lmq_checkpoint *b)
{
    json_t *json = json_object();
    json_t *differences = a->has_model && b->has_model
                              ? lmq_hparams_compare(&a->hparams, &b->hparams)
                              : json_array();
    bool is_equal = a->has_model == b->has_model &&
                    json_array_size(differences) == 0;

    lmq_put(&json, "equal",
            a->has_model || b->has_model ? json_boolean(is_equal)
                                         : json_null());
    lmq_put(&json, "in_a", json_boolean(a->has_model));
    lmq_put(&json, "in_b", json_boolean(b->has_model));
    lmq_put(&json, "differences", differences);
    return json;
}

static enum lmq_status
compare_pairs(struct diff *diff, struct findings *found, struct lmq_error *err)
{
    const struct lmq_tensor *head = lmq_checkpoint_find(
        diff->b, LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1);
    bool are_tied = lmq_checkpoint_is_tied(diff->a) &&
                    lmq_checkpoint_is_tied(diff->b);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < diff->a->n_tensors && status == LMQ_OK; i++) {
        const struct lmq_tensor *a = &diff->a->tensors[i];
        const struct lmq_tensor *b = counterpart(diff->b, a);
        if (are_tied && lmq_tensor_is_head(a))
            continue; /* the embeddings are compared */
        if (b != NULL)
            status = compare_pair(diff, a->name, a, b, found, err);
    }
    /* A head that only the second spells out. */
    const struct lmq_tensor *other =
        head == NULL || are_tied ? NULL : counterpart(diff->a, head);
    if (status == LMQ_OK && other != NULL &&
        other->place.role == LMQ_ROLE_EMBEDDING)
        status = compare_pair(diff, head->name, other, head, found, err);
    return status;
}

static void
describe_tensors(const struct diff *diff, struct findings *found,
                 json_t **report)
{
    json_t *only_a = list_missing(diff->a, diff->b);
    json_t *only_b = list_missing(diff->b, diff->a);
    size_t n_missing = json_array_size(only_a) + json_array_size(only_b);
    bool is_equal = found->all.n_different == 0 && n_missing == 0 &&
                    json_array_size(found->shapes) == 0 && found->n > 0;
    json_t *weights = json_object();

    /* Of nothing there is no error, not even 0. */
    if (found->n == 0)
        found->all.a_sq = found->all.b_sq = found->all.ab =
            found->all.err_sq = found->all.max_err = (double)NAN;
    lmq_put(report, "compared",
                        lmq_json_size(found->n == 0 ? 0 : found->n_rows));
    describe_sums(report, &found->all, found->n == 0 ? 1 : found->n);
    lmq_put(&weights, "equal", json_boolean(is_equal));
    lmq_put(report, "weights", weights);
    lmq_put(report, "missing", lmq_json_size(n_missing));
    lmq_put(report, "only_in_a", only_a);
    lmq_put(report, "only_in_b", only_b);
    lmq_put(report, "other_shapes", found->shapes);
    lmq_put(report, "tensors", list_rows(found));
}

static bool
is_unequal(const json_t *report, const char *key)
{
    return json_is_false(
        json_object_get(json_object_get(report, key), "equal"));
}

static enum lmq_status
compare_all(struct diff *diff, json_t **report, struct lmq_error *err)
{
    struct findings found = {
        .rows = calloc(diff->a->n_tensors + 1, sizeof(*found.rows)),
        .shapes = json_array()};
    json_t *tokenizer = NULL;

    enum lmq_status status = found.rows == NULL
                                 ? lmq_fail_nomem(err)
                                 : compare_pairs(diff, &found, err);
    describe_tensors(diff, &found, report);
    lmq_put(report, "description",
                        compare_descriptions(diff->a, diff->b));
    if (status == LMQ_OK)
        status = lmq_diff_tokenizers(diff->a, diff->b, &tokenizer, err);
    lmq_put(report, "tokenizer", tokenizer);
    lmq_put(report, "identical",
                        json_boolean(!is_unequal(*report, "weights") &&
                                     !is_unequal(*report, "description") &&
                                     !is_unequal(*report, "tokenizer")));
    return status;
}

static bool
make_worker(void *state, const void *context)
{
    struct worker *worker = state;

    (void)context;
    worker->a = malloc(CHUNK * sizeof(float));
    worker->b = malloc(CHUNK * sizeof(float));
    return worker->a != NULL && worker->b != NULL;
}

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_scratch_free(&worker->a_scratch);
    lmq_scratch_free(&worker->b_scratch);
    free(worker->a);
    free(worker->b);
}

enum lmq_status
lmq_diff(struct lmq_checkpoint *a, struct lmq_checkpoint *b,
         const struct lmq_diff_options *given,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err)
{
    struct lmq_diff_options options;
    struct diff diff = {
        .a = a,
        .b = b,
        .counter = {.progress = progress, .stage = "comparing"},
    };
    json_t *json = json_object();

    if (report != NULL)
        *report = NULL;
    for (size_t i = 0; i < a->n_tensors; i++)
        diff.counter.total += a->tensors[i].n_elements;
    lmq_put(&json, "a", lmq_json_text(a->path));
    lmq_put(&json, "b", lmq_json_text(b->path));
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_diff_options, &options, given, err);
    if (status == LMQ_OK)
        status = lmq_checkpoint_need_weights(a, err);
    if (status == LMQ_OK)
        status = lmq_checkpoint_need_weights(b, err);
    if (status == LMQ_OK)
        status = lmq_workers_open(
            &diff.workers, options.threads,
            (size_t)lmq_u64_min(diff.counter.total / CHUNK, MAX_THREADS),
            sizeof(struct worker), make_worker, clear_worker, NULL, err);
    if (status == LMQ_OK)
        status = compare_all(&diff, &json, err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&a->originals, err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&b->originals, err);
    lmq_workers_close(&diff.workers);
    if (status != LMQ_OK)
        json_decref(json);
    else
        status = lmq_report_finish(json, report, err);
    return status;
}
