/*
 * gates.c - "METRIC<=VALUE": what must hold for the exit code 0. VALUE is a
 * number, or made of what an earlier report has there.
 */
#include "config.h"

#include "validate/gates.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/text/c_locale.h"

#define SPACES " \t"

/* What is on the right: the number, or times + plus of the baseline's. */
struct gate {
    const char *text; /* from the metric on */
    size_t n_metric;
    char operator[3];
    bool has_baseline;
    double value, times, plus;
};

static enum lmq_status
fail_syntax(const char *text, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0, "the gate '%s' is not understood", text);
    lmq_hint(err, "expected METRIC<=VALUE, or with <, >=, >");
    return LMQ_ERR_ARG;
}

/* At a number, which may have a sign if it stands alone; NULL if there is none
 * that is finite, else behind it and what is blank. */
static const char *
read_number(const char *text, bool has_sign, double *value)
{
    char *end;

    text += strspn(text, SPACES);
    if (!has_sign && (*text == '-' || *text == '+'))
        return NULL;
    locale_t former = lmq_c_locale_enter();
    *value = strtod(text, &end);
    lmq_c_locale_leave(former);
    if (end == text || !isfinite(*value) ||
        memchr(text, 'x', (size_t)(end - text)) != NULL ||
        memchr(text, 'X', (size_t)(end - text)) != NULL) /* decimal digits */
        return NULL;
    return end + strspn(end, SPACES);
}

#define BASELINE "baseline"

/* "baseline", "baseline*1.05", "baseline+0.001", "baseline-0.001". */
static const char *
read_baseline(const char *text, struct gate *gate)
{
    double number = 0;

    gate->has_baseline = true;
    gate->times = 1;
    text += strspn(text, SPACES);
    char sign = *text;
    if (sign == '\0')
        return text;
    if (strchr("*+-", sign) == NULL)
        return NULL;
    text = read_number(text + 1, false, &number);
    if (sign == '*')
        gate->times = number;
    else
        gate->plus = sign == '+' ? number : -number;
    return text;
}

static enum lmq_status
read_bound(const char *text, const char *value, struct gate *gate,
           struct lmq_error *err)
{
    const size_t n = strlen(BASELINE);

    value += strspn(value, SPACES);
    const char *end = strncmp(value, BASELINE, n) == 0
                          ? read_baseline(value + n, gate)
                          : read_number(value, true, &gate->value);
    if (end != NULL && *end == '\0')
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_ARG, 0, "the gate '%s' compares with no number",
             text);
    if (gate->has_baseline)
        lmq_hint(err, "expected baseline, baseline*1.05, baseline+0.001 or "
                      "baseline-0.001");
    else
        lmq_hint(err, "expected a decimal number, as in 0.01 or 1e-2");
    return LMQ_ERR_ARG;
}

static enum lmq_status
parse(const char *text, struct gate *gate, struct lmq_error *err)
{
    text += strspn(text, SPACES);
    size_t n = strcspn(text, "<>="), n_metric = strcspn(text, "<>=" SPACES);
    size_t length = text[n] == '\0' ? 0 : text[n + 1] == '=' ? 2 : 1;

    *gate = (struct gate){.text = text, .n_metric = n_metric};
    if (n_metric == 0 || n_metric + strspn(text + n_metric, SPACES) < n ||
        length == 0 || text[n] == '=')
        return fail_syntax(text, err);
    memcpy(gate->operator, text + n, length);
    return read_bound(text, text + n + length, gate, err);
}

enum lmq_status
lmq_gate_check(const char *text, struct lmq_error *err)
{
    struct gate gate;

    return parse(text, &gate, err);
}

bool
lmq_gate_has_baseline(const char *text)
{
    const char *value = text + strcspn(text, "<>=");

    value += strspn(value, "<>=" SPACES);
    return strncmp(value, BASELINE, strlen(BASELINE)) == 0;
}

static bool
holds(const struct gate *gate, double value)
{
    double bound = gate->value;

    if (strcmp(gate->operator, "<=") == 0)
        return value <= bound;
    if (strcmp(gate->operator, "<") == 0)
        return value < bound;
    if (strcmp(gate->operator, ">=") == 0)
        return value >= bound;
    return value > bound;
}

/* null stands for what is not finite. Of decibels that is infinity if the
 * error beside them is exactly 0; else NaN, of which nothing holds. */
static bool
is_without_noise(const struct lmq_report *report, const char *metric)
{
    static const char *const errors[] = {"rms_error", "max_abs"};
    const char *dot = strrchr(metric, '.');
    size_t n = dot == NULL ? 0 : (size_t)(dot - metric) + 1;
    size_t length = strlen(metric);
    char path[256];

    if (length < 3 || strcmp(metric + length - 3, "_db") != 0 ||
        n + sizeof("rms_error") > sizeof(path))
        return false;
    memcpy(path, metric, n);
    for (int i = 0; i < 2; i++) {
        strcpy(path + n, errors[i]);
        if (lmq_report_number(report, path) == 0)
            return true;
    }
    return false;
}

/* False if the report has no such metric. */
static bool
find_value(const struct lmq_report *report, const char *metric, double *value)
{
    const json_t *node = (const json_t *)lmq_report_at(report, metric);

    *value = lmq_report_number(report, metric);
    if (json_is_null(node) && is_without_noise(report, metric))
        *value = (double)INFINITY;
    return json_is_number(node) || json_is_boolean(node) || json_is_null(node);
}

/* What the baseline has, in place of the number. */
static enum lmq_status
resolve(struct gate *gate, const char *metric, const char *text,
        const struct lmq_report *baseline, struct lmq_error *err)
{
    double then;

    if (!gate->has_baseline)
        return LMQ_OK;
    if (baseline == NULL) {
        lmq_fail(err, LMQ_ERR_ARG, 0, "the gate '%s' has no baseline", text);
        lmq_hint(err, ".baseline names an earlier report of validate");
        return LMQ_ERR_ARG;
    }
    if (!find_value(baseline, metric, &then) || isnan(then))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "has no number at %s, which the gate '%s' needs",
                        metric, text);
    gate->value = gate->times * then + gate->plus;
    return LMQ_OK;
}

/* The gate, and its metric as a text of its own, which the caller frees, also
 * after a failure. */
static enum lmq_status
parse_whole(const char *text, const struct lmq_report *baseline,
            struct gate *gate, char **metric, struct lmq_error *err)
{
    enum lmq_status status = parse(text, gate, err);

    *metric = NULL;
    if (status != LMQ_OK)
        return status;
    *metric = lmq_mem_text(gate->text, gate->n_metric);
    return *metric == NULL ? lmq_fail_nomem(err)
                           : resolve(gate, *metric, text, baseline, err);
}

enum lmq_status
lmq_gate_resolve(const char *text, const struct lmq_report *baseline,
                 struct lmq_error *err)
{
    struct gate gate;
    char *metric;
    enum lmq_status status =
        parse_whole(text, baseline, &gate, &metric, err);

    free(metric);
    return status;
}

static enum lmq_status
fail_metric(const char *text, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "the gate '%s' names no metric of the report", text);
    lmq_hint(err, "metrics are the keys of the report, joined by dots");
    return LMQ_ERR_ARG;
}

static json_t *
describe_result(const struct gate *gate, const char *text, double value,
                bool is_held)
{
    json_t *result = json_object();

    lmq_put(&result, "gate", lmq_json_text(text));
    lmq_put(&result, "value", lmq_json_number(value));
    lmq_put(&result, "bound", lmq_json_number(gate->value));
    lmq_put(&result, "held", json_boolean(is_held));
    return result;
}

/* Lists of a validation that have as many elements as there were tokens, or
 * something to tell. */
static bool
is_of_short_list(const struct lmq_report *report, const char *metric)
{
    static const struct {
        const char *name, *sign; /* it was asked for where that is */
    } lists[] = {
        {"worst", "worst"},
        {"positions", "positions"},
        {"attribution.tensors", "attribution.tensors"},
        {"attribution.cure", "attribution.tensors"},
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        size_t n = strlen(lists[i].name);
        if (strncmp(metric, lists[i].name, n) == 0 && metric[n] == '.')
            return lmq_report_at(report, lists[i].sign) != NULL;
    }
    return false;
}

static enum lmq_status
apply(struct lmq_report *report, const struct lmq_report *baseline,
      const char *text, json_t **results, size_t *n_broken,
      struct lmq_error *err)
{
    struct gate gate;
    char *metric;
    double value;
    enum lmq_status status =
        parse_whole(text, baseline, &gate, &metric, err);

    if (status == LMQ_OK && !find_value(report, metric, &value)) {
        value = NAN;
        if (!is_of_short_list(report, metric))
            status = fail_metric(text, err);
    }
    if (status == LMQ_OK) {
        /* As a report has it: what is read there and given here is the same,
         * and so is a baseline. */
        bool is_held = holds(&gate, lmq_json_reread(value));
        lmq_append(results, describe_result(&gate, text, value, is_held));
        *n_broken += !is_held;
    }
    free(metric);
    return status;
}

enum lmq_status
lmq_gates_compare(struct lmq_report *report, const struct lmq_report *baseline,
                  const char *const *gates, size_t n_gates, size_t *n_broken,
                  struct lmq_error *err)
{
    json_t *results = json_array();
    enum lmq_status status = LMQ_OK;

    *n_broken = 0;
    for (size_t i = 0; i < n_gates && status == LMQ_OK; i++)
        status = apply(report, baseline, gates[i], &results, n_broken, err);
    /* The report is the caller's, so it stays if this fails. */
    if (json_object_set_new((json_t *)report, "gates", results) != 0 &&
        status == LMQ_OK)
        status = lmq_fail_nomem(err);
    return status;
}

enum lmq_status
lmq_gates_apply(struct lmq_report *report, const char *const *gates,
                size_t n_gates, size_t *n_broken, struct lmq_error *err)
{
    return lmq_gates_compare(report, NULL, gates, n_gates, n_broken, err);
}
