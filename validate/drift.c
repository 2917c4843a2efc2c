/*
 * drift.c - statistics of a judged model against its reference.
 *
 * Uncertainty: the standard error of a mean over positions, paired where two
 * models saw the same position; and, with several documents, a bootstrap that
 * draws whole documents, since neighbours are alike.
 */
#include "config.h"

#include "validate/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/report.h"
#include "quantize/group.h"

#define BOOTSTRAP_ROUNDS 1000
#define HISTOGRAM_BINS 48

void
lmq_drift_free(struct lmq_drift *drift)
{
    free(drift->kld);
    free(drift->delta);
    free(drift->top1);
    free(drift->document);
    *drift = (struct lmq_drift){0};
}

/* ---- Gathering ---- */

static void
remember_worst(struct lmq_drift *drift, const struct lmq_window *window,
               size_t position, const struct lmq_position_drift *at)
{
    size_t i = drift->n_worst;

    if (i == LMQ_WORST && !(at->kld > drift->worst[i - 1].kld))
        return;
    if (i < LMQ_WORST)
        drift->n_worst++;
    else
        i--;
    for (; i > 0 && at->kld > drift->worst[i - 1].kld; i--)
        drift->worst[i] = drift->worst[i - 1];
    drift->worst[i] = (struct lmq_worst){
        .kld = at->kld,
        .window_first = window->first,
        .token = window->first + position,
        .top1_reference = at->top1_reference,
        .top1 = at->top1,
        .nll_reference = at->nll_reference,
        .nll = at->nll,
    };
}

static void
add_sums(struct lmq_drift *drift, const struct lmq_position_drift *at)
{
    struct lmq_exact_sum *sums = drift->sums;

    lmq_exact_add(&sums[LMQ_SUM_NLL_REFERENCE], at->nll_reference);
    lmq_exact_add(&sums[LMQ_SUM_NLL], at->nll);
    lmq_exact_add(&sums[LMQ_SUM_KLD], at->kld);
    lmq_exact_add(&sums[LMQ_SUM_TV], at->total_variation);
    lmq_exact_add(&sums[LMQ_SUM_DELTA_P_SQ], at->delta_p * at->delta_p);
    lmq_exact_add(&sums[LMQ_SUM_TOP5], at->top5);
    lmq_exact_add(&sums[LMQ_SUM_ABS], at->sum_abs);
    lmq_exact_add(&sums[LMQ_SUM_SQ], at->sum_sq);
    lmq_exact_add(&sums[LMQ_SUM_DOT], at->dot);
    lmq_exact_add(&sums[LMQ_SUM_NORM_REFERENCE_SQ], at->norm_reference_sq);
    lmq_exact_add(&sums[LMQ_SUM_NORM_SQ], at->norm_sq);
}

int
lmq_drift_reserve(struct lmq_drift *drift, size_t n)
{
    bool has_room = lmq_mem_grow(&drift->kld, &drift->kld_capacity, n,
                                 sizeof(double)) == 0 &&
                    lmq_mem_grow(&drift->delta, &drift->delta_capacity, n,
                                 sizeof(double)) == 0 &&
                    lmq_mem_grow(&drift->top1, &drift->top1_capacity, n,
                                 sizeof(double)) == 0 &&
                    lmq_mem_grow(&drift->document, &drift->document_capacity,
                                 n, sizeof(size_t)) == 0;

    return has_room ? 0 : -1;
}

enum lmq_status
lmq_drift_add(struct lmq_drift *drift, const struct lmq_window *window,
              size_t position, size_t context,
              const struct lmq_position_drift *at, struct lmq_error *err)
{
    size_t bin = position * LMQ_POSITION_BINS / context;

    if (lmq_drift_reserve(drift, drift->n + 1) != 0)
        return lmq_fail_nomem(err);
    drift->kld[drift->n] = at->kld;
    drift->delta[drift->n] = at->nll - at->nll_reference;
    drift->top1[drift->n] = at->is_top1_equal ? 1 : 0;
    drift->document[drift->n] = window->document;
    drift->n++;
    add_sums(drift, at);
    drift->n_top1_equal += at->is_top1_equal;
    drift->n_lost += at->is_lost;
    drift->n_gained += at->is_gained;
    drift->max_abs = fmax(drift->max_abs, at->max_abs);
    lmq_exact_add(&drift->bin_kld[bin], at->kld);
    drift->bin_n[bin]++;
    remember_worst(drift, window, position, at);
    return LMQ_OK;
}

void
lmq_stream_sums_add(struct lmq_stream_sums *sums,
                    const struct lmq_stream_drift *window)
{
    sums->n += window->n;
    lmq_exact_add(&sums->err_sq, window->err_sq);
    lmq_exact_add(&sums->reference_sq, window->reference_sq);
    lmq_exact_add(&sums->model_sq, window->model_sq);
    lmq_exact_add(&sums->dot, window->dot);
}

/* ---- Figures ---- */

double
lmq_drift_sum(const struct lmq_drift *drift, enum lmq_drift_sum which)
{
    return lmq_exact_round(&drift->sums[which]);
}

double
lmq_drift_mean_kld(const struct lmq_drift *drift)
{
    return lmq_drift_sum(drift, LMQ_SUM_KLD) / (double)drift->n;
}

double
lmq_drift_perplexity(double nll_sum, size_t n)
{
    return lmq_exp(nll_sum / (double)n);
}

static double
standard_error(const double *x, size_t n, double mean)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return n < 2 ? (double)NAN
                 : sqrt(sum / (double)(n - 1) / (double)n);
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of a sorted list, between neighbours in proportion. */
static double
percentile(const double *sorted, size_t n, double part)
{
    double at = part * (double)(n - 1);
    size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;

    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* ---- Bootstrap by document ---- */

struct sums {
    double x;
    size_t n;
};

size_t
lmq_drift_documents(const struct lmq_drift *drift)
{
    return drift->n == 0 ? 0 : drift->document[drift->n - 1] + 1;
}

/* The spread of the mean of x when documents are drawn with replacement; NAN
 * for a single document. */
static enum lmq_status
bootstrap(const struct lmq_drift *drift, const double *x, double *error,
          struct lmq_error *err)
{
    size_t n_documents = lmq_drift_documents(drift);
    double mean = 0, spread = 0;
    uint64_t state = 1;

    *error = (double)NAN;
    if (n_documents < 2)
        return LMQ_OK;
    struct sums *sums = calloc(n_documents, sizeof(*sums));
    double *means = calloc(BOOTSTRAP_ROUNDS, sizeof(*means));
    if (sums == NULL || means == NULL) {
        free(sums);
        free(means);
        return lmq_fail_nomem(err);
    }
    for (size_t i = 0; i < drift->n; i++) {
        sums[drift->document[i]].x += x[i];
        sums[drift->document[i]].n++;
    }
    for (size_t r = 0; r < BOOTSTRAP_ROUNDS; r++) {
        struct sums all = {0};
        for (size_t i = 0; i < n_documents; i++) {
            const struct sums *one =
                &sums[lmq_random_next(&state) % n_documents];
            all.x += one->x;
            all.n += one->n;
        }
        means[r] = all.n == 0 ? 0 : all.x / (double)all.n;
        mean += means[r] / BOOTSTRAP_ROUNDS;
    }
    for (size_t r = 0; r < BOOTSTRAP_ROUNDS; r++)
        spread += (means[r] - mean) * (means[r] - mean);
    free(sums);
    free(means);
    *error = sqrt(spread / (BOOTSTRAP_ROUNDS - 1));
    return LMQ_OK;
}

enum lmq_status
lmq_drift_spread(const struct lmq_drift *drift, const double *x,
                 struct lmq_spread *spread, struct lmq_error *err)
{
    struct lmq_exact_sum sum = {0};

    for (size_t i = 0; i < drift->n; i++)
        lmq_exact_add(&sum, x[i]);
    spread->mean = lmq_exact_round(&sum) / (double)drift->n;
    spread->by_position = standard_error(x, drift->n, spread->mean);
    return bootstrap(drift, x, &spread->by_document, err);
}

/* ---- The report ---- */

static void
set(json_t **json, const char *key, double value)
{
    lmq_put(json, key, lmq_json_number(value));
}

/* Counts over powers of ten, some three bins each. */
static json_t *
histogram(const double *sorted, size_t n)
{
    const double low = -12, high = 2;
    size_t bins[HISTOGRAM_BINS] = {0};
    json_t *json = json_object(), *counts = json_array();

    for (size_t i = 0; i < n; i++) {
        double place = sorted[i] > 0 ? log10(sorted[i]) : low;
        double bin = (place - low) / (high - low) * HISTOGRAM_BINS;
        bins[(size_t)fmin(fmax(bin, 0), HISTOGRAM_BINS - 1)]++;
    }
    for (size_t i = 0; i < HISTOGRAM_BINS; i++)
        lmq_append(&counts, lmq_json_size(bins[i]));
    set(&json, "log10_from", low);
    set(&json, "log10_to", high);
    lmq_put(&json, "counts", counts);
    return json;
}

static enum lmq_status
describe_kld(const struct lmq_drift *drift, json_t **report,
             struct lmq_error *err)
{
    struct lmq_spread spread;
    enum lmq_status status = lmq_drift_spread(drift, drift->kld, &spread, err);

    if (status != LMQ_OK)
        return status;
    double *sorted = malloc(drift->n * sizeof(*sorted));
    if (sorted == NULL)
        return lmq_fail_nomem(err);
    json_t *json = json_object();
    memcpy(sorted, drift->kld, drift->n * sizeof(*sorted));
    qsort(sorted, drift->n, sizeof(*sorted), compare_doubles);
    set(&json, "mean", spread.mean);
    set(&json, "stderr", spread.by_position);
    set(&json, "stderr_by_document", spread.by_document);
    set(&json, "median", percentile(sorted, drift->n, 0.5));
    set(&json, "p90", percentile(sorted, drift->n, 0.9));
    set(&json, "p95", percentile(sorted, drift->n, 0.95));
    set(&json, "p99", percentile(sorted, drift->n, 0.99));
    set(&json, "p999", percentile(sorted, drift->n, 0.999));
    set(&json, "max", sorted[drift->n - 1]);
    lmq_put(&json, "histogram", histogram(sorted, drift->n));
    lmq_put(report, "kld", json);
    free(sorted);
    return LMQ_OK;
}

static json_t *
describe_model(const struct lmq_drift *drift, double nll_sum)
{
    double nll = nll_sum / (double)drift->n;
    json_t *json = json_object();

    set(&json, "ppl", lmq_drift_perplexity(nll_sum, drift->n));
    set(&json, "nll", nll);
    set(&json, "bits_per_byte",
        drift->n_bytes == 0
            ? (double)NAN
            : nll_sum / 0.69314718055994530942 / (double)drift->n_bytes);
    return json;
}

/* Answers that change: the text says which one is right. */
static json_t *
describe_flips(const struct lmq_drift *drift)
{
    double n = (double)drift->n;
    json_t *json = json_object();

    set(&json, "rate", (double)(drift->n_lost + drift->n_gained) / n);
    set(&json, "lost", (double)drift->n_lost / n);
    set(&json, "gained", (double)drift->n_gained / n);
    return json;
}

static json_t *
describe_logits(const struct lmq_drift *drift, size_t vocabulary)
{
    double n = (double)drift->n * (double)vocabulary;
    json_t *json = json_object();

    set(&json, "max_abs", drift->max_abs);
    set(&json, "rms", sqrt(lmq_drift_sum(drift, LMQ_SUM_SQ) / n));
    set(&json, "mean_abs", lmq_drift_sum(drift, LMQ_SUM_ABS) / n);
    set(&json, "cosine",
        lmq_quant_cosine(lmq_drift_sum(drift, LMQ_SUM_DOT),
                         lmq_drift_sum(drift, LMQ_SUM_NORM_REFERENCE_SQ),
                         lmq_drift_sum(drift, LMQ_SUM_NORM_SQ)));
    return json;
}

static json_t *
describe_positions(const struct lmq_drift *drift)
{
    json_t *bins = json_array();

    for (size_t i = 0; i < LMQ_POSITION_BINS; i++) {
        json_t *bin = json_object();
        set(&bin, "from", (double)i / LMQ_POSITION_BINS);
        lmq_put(&bin, "scored", lmq_json_size(drift->bin_n[i]));
        set(&bin, "kld", lmq_exact_round(&drift->bin_kld[i]) /
                             (double)drift->bin_n[i]);
        lmq_append(&bins, bin);
    }
    return bins;
}

enum lmq_status
lmq_drift_describe(const struct lmq_drift *drift, size_t vocabulary,
                   json_t **report, struct lmq_error *err)
{
    double n = (double)drift->n;
    double nll = lmq_drift_sum(drift, LMQ_SUM_NLL);
    double nll_reference = lmq_drift_sum(drift, LMQ_SUM_NLL_REFERENCE);
    double delta = (nll - nll_reference) / n;
    double stderr_delta = standard_error(drift->delta, drift->n, delta);
    double ratio = lmq_exp(delta), by_document;
    enum lmq_status status =
        bootstrap(drift, drift->delta, &by_document, err);

    if (status != LMQ_OK)
        return status;
    lmq_put(report, "reference", describe_model(drift, nll_reference));
    lmq_put(report, "model", describe_model(drift, nll));
    set(report, "ppl_ratio", ratio);
    set(report, "ppl_ratio_stderr", ratio * stderr_delta);
    set(report, "delta_nll", delta);
    set(report, "delta_nll_stderr", stderr_delta);
    set(report, "delta_nll_stderr_by_document", by_document);
    status = describe_kld(drift, report, err);
    set(report, "top1_agreement", (double)drift->n_top1_equal / n);
    set(report, "top5_agreement", lmq_drift_sum(drift, LMQ_SUM_TOP5) / n);
    lmq_put(report, "flips", describe_flips(drift));
    set(report, "rms_delta_p",
        sqrt(lmq_drift_sum(drift, LMQ_SUM_DELTA_P_SQ) / n));
    set(report, "total_variation", lmq_drift_sum(drift, LMQ_SUM_TV) / n);
    lmq_put(report, "logit_drift", describe_logits(drift, vocabulary));
    lmq_put(report, "positions", describe_positions(drift));
    return status;
}
