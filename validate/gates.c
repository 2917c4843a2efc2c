/*
 * gates.c - "METRIC<=VALUE": what must hold for the exit code 0.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"

#define SPACES " \t"

struct gate {
    char *metric;
    char operator[3];
    double value;
};

static enum lmq_status
parse(const char *text, struct gate *gate, struct lmq_error *err)
{
    text += strspn(text, SPACES);
    size_t n = strcspn(text, "<>="), n_metric = strcspn(text, "<>=" SPACES);
    size_t length = text[n] == '\0' ? 0 : text[n + 1] == '=' ? 2 : 1;
    char *end;

    *gate = (struct gate){0};
    if (n_metric == 0 || n_metric + strspn(text + n_metric, SPACES) < n ||
        length == 0 || text[n] == '=') {
        lmq_fail(err, LMQ_ERR_ARG, 0, "the gate '%s' is not understood", text);
        lmq_hint(err, "expected METRIC<=VALUE, or with <, >=, >");
        return LMQ_ERR_ARG;
    }
    memcpy(gate->operator, text + n, length);
    gate->value = strtod(text + n + length, &end);
    bool has_number = end > text + n + length;
    end += strspn(end, SPACES);
    if (!has_number || *end != '\0' || !isfinite(gate->value))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "the gate '%s' compares with no number", text);
    gate->metric = lmq_mem_text(text, n_metric);
    return gate->metric == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_gate_check(const char *text, struct lmq_error *err)
{
    struct gate gate;
    enum lmq_status status = parse(text, &gate, err);

    free(gate.metric);
    return status;
}

static bool
holds(const struct gate *gate, double value)
{
    if (strcmp(gate->operator, "<=") == 0)
        return value <= gate->value;
    if (strcmp(gate->operator, "<") == 0)
        return value < gate->value;
    if (strcmp(gate->operator, ">=") == 0)
        return value >= gate->value;
    return value > gate->value;
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

static enum lmq_status
apply(struct lmq_report *report, const char *text, json_t **results,
      size_t *n_broken, struct lmq_error *err)
{
    struct gate gate;
    enum lmq_status status = parse(text, &gate, err);

    if (status != LMQ_OK)
        return status;
    double value = lmq_report_number(report, gate.metric);
    const json_t *node = (const json_t *)lmq_report_at(report, gate.metric);
    if (json_is_null(node) && is_without_noise(report, gate.metric))
        value = (double)INFINITY;
    if (!json_is_number(node) && !json_is_boolean(node) &&
        !json_is_null(node)) {
        status = lmq_fail(err, LMQ_ERR_ARG, 0,
                          "the gate '%s' names no metric of the report", text);
        lmq_hint(err, "metrics are the keys of the report, joined by dots");
    } else {
        bool is_held = holds(&gate, value);
        json_t *result = json_object();
        lmq_put(&result, "gate", lmq_json_text(text));
        lmq_put(&result, "value", lmq_json_number(value));
        lmq_put(&result, "held", json_boolean(is_held));
        lmq_append(results, result);
        *n_broken += !is_held;
    }
    free(gate.metric);
    return status;
}

enum lmq_status
lmq_gates_apply(struct lmq_report *report, const char *const *gates,
                size_t n_gates, size_t *n_broken, struct lmq_error *err)
{
    json_t *results = json_array();
    enum lmq_status status = LMQ_OK;

    *n_broken = 0;
    for (size_t i = 0; i < n_gates && status == LMQ_OK; i++)
        status = apply(report, gates[i], &results, n_broken, err);
    /* The report is the caller's, so it stays if this fails. */
    if (json_object_set_new((json_t *)report, "gates", results) != 0 &&
        status == LMQ_OK)
        status = lmq_fail_nomem(err);
    return status;
}
