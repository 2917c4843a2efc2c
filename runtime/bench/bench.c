/*
 * bench.c - how fast, and how fast could it be?
 *
 * Each round stands between two measurements of the limit that it is held
 * against, since the speed of a machine drifts; the medians count.
 */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "formats/describe.h"
#include "runtime/bench/limits.h"
#include "runtime/session.h"

#define DEFAULT_PREFILL 512
#define DEFAULT_DECODE 128
#define DEFAULT_ROUNDS 3
#define MAX_ROUNDS 100
#define EVALUATED_LEAST ((size_t)1024) /* in a step */

/* One before the first round, or two for each. */
_Static_assert(2 * MAX_ROUNDS < LMQ_SAMPLES_MAX, "there is room");

/* ---- What a token costs ---- */

struct cost {
    double multiplications; /* of weights with activations */
    double bytes;           /* of weights, read */
};

/* A matrix that so much of the tokens go through. */
static void
add_cost(struct cost *cost, const struct lmq_matrix *matrix, double share)
{
    cost->multiplications +=
        share * (double)matrix->n_rows * (double)matrix->n_cols;
    cost->bytes += share * (double)lmq_matrix_bytes(matrix);
}

/* Of n tokens, how many go through a layer at last: all, or the last. */
static size_t
tokens_through(const struct lmq_hparams *h, size_t layer, size_t n)
{
    return lmq_layer_is_late(h, layer) ? 1 : n;
}

/* What makes keys and values: all tokens go through it. */
static bool
makes_memory(const struct lmq_layer *layer, const struct lmq_matrix *matrix)
{
    const struct lmq_attention_part *part = &layer->attention;

    return matrix == &part->k || matrix == &part->v || matrix == &part->kv_a;
}

/* Of n tokens, of which only the last is asked for logits; without the head. */
static struct cost
cost_of(const struct lmq_model *model, size_t n)
{
    const struct lmq_hparams *h = &model->hparams;
    struct cost cost = {0};
    size_t before = (lmq_loops(h) - 1) * n; /* all, each time but the last */

    for (uint32_t i = 0; i < h->n_layers; i++) {
        const struct lmq_layer *layer = &model->layers[i];
        for (size_t j = 0; j < layer->n_matrices; j++)
            add_cost(&cost, layer->matrices[j],
                     lmq_matrix_share(model, layer->matrices[j]) *
                         (double)(before +
                                  (makes_memory(layer, layer->matrices[j])
                                       ? n
                                       : tokens_through(h, i, n))));
    }
    if (h->layer_input_dim > 0)
        add_cost(&cost, &model->inputs_proj, (double)n);
    for (uint32_t i = 0; i < lmq_guessed_streams(h); i++) {
        add_cost(&cost, &model->streams_in[i], (double)n);
        add_cost(&cost, &model->streams_out[i], 1);
    }
    if (lmq_has_gated_streams(h)) {
        add_cost(&cost, &model->gated.down, 1);
        add_cost(&cost, &model->gated.up, 1);
    }
    return cost;
}

/* How many keys a query at `position` sees. */
static double
seen_from(const struct lmq_hparams *h, size_t layer, size_t position)
{
    size_t window = lmq_layer_window(h, layer);
    size_t chunk = lmq_layer_chunk(h, layer);
    size_t n = position + 1;

    if (window > 0 && n > window)
        n = window;
    if (chunk > 0 && n > position % chunk + 1)
        n = position % chunk + 1;
    return (double)n;
}

/* Of n tokens from `first` on: operations in float32 of queries with keys, and
 * of weights with values. */
static double
attention_flops(const struct lmq_hparams *h, size_t first, size_t n)
{
    double flops = 0;

    for (size_t layer = 0; layer < h->n_layers; layer++) {
        double seen = 0;
        if (!lmq_layer_has_attention(h, layer))
            continue;
        size_t before = n - tokens_through(h, layer, n);
        for (size_t i = 0; i < n; i++)
            seen += (double)(lmq_loops(h) - (i < before ? 1 : 0)) *
                    seen_from(h, layer, first + i);
        flops += 2 * seen * lmq_layer_heads(h, layer) *
                 (double)(lmq_key_width(h, layer) + lmq_value_width(h, layer));
    }
    return flops;
}

/* States that a token reads, and keys and values of the one there, if they
 * count. */
static double
cache_bytes(const struct lmq_model *model, enum lmq_kv_type type,
            bool has_keys, size_t position)
{
    const struct lmq_hparams *h = &model->hparams;
    double bytes = 0;

    for (size_t layer = 0; layer < h->n_layers; layer++)
        if (lmq_layer_only_recurs(h, layer))
            bytes += lmq_kv_bytes(model, layer, type, 0);
        else if (lmq_layer_has_attention(h, layer))
            bytes += lmq_kv_bytes(model, lmq_layer_kv_source(h, layer), type,
                                  has_keys
                                      ? (size_t)seen_from(h, layer, position)
                                      : 0);
    return bytes * (double)lmq_loops(h);
}

/* ---- Measuring ---- */

struct bench {
    struct lmq_session_options session_options;
    const struct lmq_progress *progress;
    struct lmq_model *model;
    struct lmq_session *session;
    int rounds;
    size_t n_prefill, n_decode;
    size_t depth; /* tokens that stand before those */
    int32_t *tokens;
    struct lmq_notes notes;
    struct lmq_samples prefill, decode; /* seconds */
    struct lmq_limits limits;
};

/* Tokens from `first` on, in steps that somebody may want to end: of whole
 * batches, and more tokens than are usual. */
static enum lmq_status
evaluate(struct bench *bench, const char *stage, size_t first, size_t n,
         struct lmq_error *err)
{
    const size_t batch = bench->session->work.batch;
    const size_t step = batch * lmq_size_max(EVALUATED_LEAST / batch, 1);
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0; at < n && status == LMQ_OK; at += step) {
        status = lmq_session_eval(bench->session, bench->tokens + first + at,
                                  lmq_size_min(n - at, step), err);
        if (status == LMQ_OK)
            status = lmq_progress_report(bench->progress, stage, 0, 0, err);
    }
    return status;
}

/* Evaluates what stands before, or the last of it again: a state that cannot
 * be rewound is made anew there, not in what is measured. */
static enum lmq_status
go_to_depth(struct bench *bench, struct lmq_error *err)
{
    struct lmq_session *session = bench->session;
    size_t n = bench->depth;
    size_t first = n > 0 && session->position >= n ? n - 1 : 0;

    lmq_session_rewind(session, first);
    return evaluate(bench, "depth", first, n - first, err);
}

static enum lmq_status
measure_prefill(struct bench *bench, struct lmq_error *err)
{
    for (int i = -1; i < bench->rounds; i++) { /* the first warms up */
        lmq_limits_compute(&bench->limits);
        enum lmq_status status = go_to_depth(bench, err);
        double start = lmq_clock_seconds();
        if (status == LMQ_OK)
            status = evaluate(bench, "prefill", bench->depth,
                              bench->n_prefill, err);
        if (i >= 0)
            lmq_samples_add(&bench->prefill, lmq_clock_seconds() - start);
        if (status == LMQ_OK)
            status = lmq_progress_report(bench->progress, "prefill",
                                         (uint64_t)(i + 1),
                                         (uint64_t)bench->rounds, err);
        if (status != LMQ_OK)
            return status;
    }
    return LMQ_OK;
}

static enum lmq_status
measure_decode(struct bench *bench, struct lmq_error *err)
{
    struct lmq_counter counter = {
        bench->progress, "decode", 0,
        (uint64_t)bench->rounds * (uint64_t)bench->n_decode};
    enum lmq_status status = LMQ_OK;

    for (int i = 0; i < bench->rounds && status == LMQ_OK; i++) {
        lmq_limits_read(&bench->limits);
        status = go_to_depth(bench, err);
        double start = lmq_clock_seconds();
        for (size_t t = 0; t < bench->n_decode && status == LMQ_OK; t++) {
            status = lmq_session_eval(
                bench->session, bench->tokens + bench->depth + t, 1, err);
            counter.done++;
            if (status == LMQ_OK)
                status = lmq_counter_report(&counter, err);
        }
        lmq_samples_add(&bench->decode, lmq_clock_seconds() - start);
        lmq_limits_read(&bench->limits);
    }
    return status;
}

/* Some models have positions that end. */
static void
shorten(struct bench *bench, const char *what, size_t *n_tokens)
{
    const struct lmq_hparams *h = &bench->model->hparams;
    size_t most = lmq_hparams_end(h);

    if (bench->depth + *n_tokens <= most)
        return;
    most = most > bench->depth ? most - bench->depth : 0;
    lmq_notes_add(&bench->notes,
                  "%s is measured with %zu tokens in place of %zu: %s %u "
                  "positions",
                  what, most, *n_tokens, lmq_hparams_why_end(h),
                  lmq_hparams_end(h));
    *n_tokens = most;
}

static enum lmq_status
prepare(struct bench *bench, struct lmq_error *err)
{
    shorten(bench, "prefill", &bench->n_prefill);
    shorten(bench, "decode", &bench->n_decode);
    if (bench->n_prefill == 0 || bench->n_decode == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "there is nothing behind a depth of %zu: %s %u "
                        "positions",
                        bench->depth,
                        lmq_hparams_why_end(&bench->model->hparams),
                        lmq_hparams_end(&bench->model->hparams));
    size_t n =
        bench->depth + lmq_size_max(bench->n_prefill, bench->n_decode);
    struct lmq_session_options session = bench->session_options;

    if (session.context == 0)
        session.context = n;
    enum lmq_status status =
        lmq_session_new(bench->model, &session, &bench->session, err);
    if (status != LMQ_OK)
        return status;
    bench->tokens = malloc(n * sizeof(*bench->tokens));
    if (bench->tokens == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n; i++) /* any tokens, but not all the same */
        bench->tokens[i] = (int32_t)((i * 7919 + 1) %
                                     bench->model->hparams.vocab_size);
    return lmq_limits_prepare(&bench->limits, bench->model,
                              bench->session->work.team, err);
}

/* ---- Report ---- */

static json_t *
describe_prefill(struct bench *bench, const struct cost *cost,
                 bool is_int8)
{
    const struct lmq_work *work = &bench->session->work;
    bool is_integer = is_int8 && work->activations != LMQ_ACTIVATIONS_F32;
    double halves = work->activations == LMQ_ACTIVATIONS_Q16
                        ? (double)lmq_kernels()->passes_16
                        : 1;
    double ops = 2 * cost->multiplications * (is_integer ? halves : 1);
    double flops = lmq_samples_median(&bench->limits.f32_flops);
    double limit = is_integer ? lmq_samples_median(&bench->limits.int8_ops)
                              : flops;
    double seconds = lmq_samples_median(&bench->prefill);
    json_t *json = json_object();

    lmq_put(&json, "tokens", lmq_json_size(bench->n_prefill));
    lmq_put(&json, "seconds", lmq_json_number(seconds));
    lmq_put(&json, "tokens_per_s",
            lmq_json_number((double)bench->n_prefill / seconds));
    lmq_put(&json, "ops_per_s", lmq_json_number(ops / seconds));
    lmq_put(&json, "fraction", lmq_json_number(ops / seconds / limit));
    double attention = attention_flops(&bench->model->hparams, bench->depth,
                                       bench->n_prefill);
    lmq_put(&json, "attention_flops", lmq_json_number(attention));
    lmq_put(&json, "fraction_with_attention",
            lmq_json_number((ops / limit + attention / flops) / seconds));
    return json;
}

static json_t *
describe_decode(struct bench *bench, const struct cost *cost)
{
    double seconds = lmq_samples_median(&bench->decode);
    double rate = (double)bench->n_decode / seconds;
    double cache = cache_bytes(bench->model, bench->session->kv[0].type,
                               bench->depth > 0,
                               bench->depth + bench->n_decode / 2);
    double bytes = cost->bytes + cache;
    json_t *json = json_object();

    lmq_put(&json, "tokens", lmq_json_size(bench->n_decode));
    lmq_put(&json, "seconds", lmq_json_number(seconds));
    lmq_put(&json, "tokens_per_s", lmq_json_number(rate));
    lmq_put(&json, "cache_bytes", lmq_json_number(cache));
    lmq_put(&json, "bytes_per_s", lmq_json_number(rate * bytes));
    lmq_put(&json, "fraction",
            lmq_json_number(rate * bytes /
                            lmq_samples_median(&bench->limits.read_bytes)));
    lmq_put(&json, "fraction_of_weights",
            lmq_json_number(rate * bytes /
                            lmq_samples_median(&bench->limits.read_weights)));
    return json;
}

static json_t *
make_report(struct bench *bench, const struct lmq_checkpoint *checkpoint,
            double model_seconds)
{
    struct cost prefill = cost_of(bench->model, bench->n_prefill);
    struct cost with_head = cost_of(bench->model, 1);
    json_t *json = json_object(), *limits = json_object();

    add_cost(&with_head, &bench->model->head, 1);
    lmq_put(&json, "path", lmq_json_text(checkpoint->path));
    lmq_put(&json, "model", lmq_describe_model(checkpoint));
    lmq_put(&json, "weight_bytes", lmq_json_size((uint64_t)with_head.bytes));
    lmq_put(&json, "copied_bytes", lmq_json_size(bench->model->n_copied_bytes));
    lmq_put(&json, "threads", lmq_json_size(lmq_team_size(bench->limits.team)));
    lmq_put(&json, "instruction_set", json_string(lmq_instruction_set()));
    lmq_put(
        &json, "activations",
        json_string(bench->model->is_int8
                        ? lmq_names_of(lmq_activations_names,
                                       bench->session->work.activations)
                        : "f32"));
    lmq_put(&json, "load_s", lmq_json_number(checkpoint->open_seconds +
                                              model_seconds));
    lmq_put(&json, "depth", lmq_json_size(bench->depth));
    lmq_put(&json, "prefill",
            describe_prefill(bench, &prefill, bench->model->is_int8));
    lmq_put(&json, "decode", describe_decode(bench, &with_head));
    lmq_put(&limits, "read_bytes_per_s",
            lmq_json_number(lmq_samples_median(&bench->limits.read_bytes)));
    lmq_put(&limits, "read_weights_bytes_per_s",
            lmq_json_number(lmq_samples_median(&bench->limits.read_weights)));
    lmq_put(&limits, "int8_ops_per_s",
            lmq_json_number(lmq_samples_median(&bench->limits.int8_ops)));
    lmq_put(&limits, "fp32_flops_per_s",
            lmq_json_number(lmq_samples_median(&bench->limits.f32_flops)));
    lmq_put(&json, "limits", limits);
    lmq_put(&json, "notes", lmq_describe_notes(checkpoint, &bench->notes));
    return json;
}

enum lmq_status
lmq_bench(struct lmq_checkpoint *checkpoint,
          const struct lmq_bench_options *given,
          const struct lmq_progress *progress, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_bench_options options;
    struct bench bench = {.progress = progress};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_bench_options, &options, given, err);
    if (status == LMQ_OK)
        status = LMQ_OPTIONS_TAKE(struct lmq_session_options,
                                  &bench.session_options, options.session,
                                  err);
    if (status != LMQ_OK)
        return status;
    bench.rounds = options.rounds == 0 ? DEFAULT_ROUNDS : options.rounds;
    bench.n_prefill =
        options.n_prefill == 0 ? DEFAULT_PREFILL : options.n_prefill;
    bench.n_decode = options.n_decode == 0 ? DEFAULT_DECODE : options.n_decode;
    bench.depth = options.depth;
    if (bench.rounds < 1 || bench.rounds > MAX_ROUNDS)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".rounds is %d, expected 1 to %d", bench.rounds,
                        MAX_ROUNDS);
    if (lmq_size_max(bench.depth, lmq_size_max(bench.n_prefill,
                                               bench.n_decode)) >
        LMQ_MAX_CONTEXT / 2)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".depth, .n_prefill or .n_decode is more than %d",
                        LMQ_MAX_CONTEXT / 2);
    double start = lmq_clock_seconds();
    status = lmq_model_open(checkpoint, &bench.model, err);
    double model_seconds = lmq_clock_seconds() - start;
    if (status == LMQ_OK)
        status = prepare(&bench, err);
    if (status == LMQ_OK)
        status = measure_prefill(&bench, err);
    if (status == LMQ_OK)
        status = measure_decode(&bench, err);
    if (status == LMQ_OK)
        status = lmq_report_finish(
            make_report(&bench, checkpoint, model_seconds), report, err);
    lmq_limits_free(&bench.limits);
    lmq_notes_free(&bench.notes);
    free(bench.tokens);
    lmq_session_free(bench.session);
    lmq_model_close(bench.model);
    return status;
}
