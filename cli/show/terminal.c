/*
 * terminal.c - messages, results, numbers for people.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

/* ---- Remarks ---- */

void
print_note(const struct arguments *arguments, const char *format, ...)
{
    va_list args;

    if (has_option(arguments, "quiet"))
        return;
    fputs("note: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void
print_notes(const struct arguments *arguments, const struct lmq_report *report)
{
    const struct lmq_report *notes = lmq_report_at(report, "notes");

    if (has_option(arguments, "quiet"))
        return;
    for (size_t i = 0; i < lmq_report_length(notes); i++) {
        fputs("note: ", stderr);
        print_flags(stderr, lmq_report_string(lmq_report_item(notes, i), ""));
        fputc('\n', stderr);
    }
}

/* ---- Output ---- */

bool
wants_data(const struct arguments *arguments)
{
    return has_option(arguments, "json") || has_option(arguments, "yaml") ||
           has_option(arguments, "print-recipe");
}

static enum lmq_status
make_text(const struct arguments *arguments, const struct lmq_report *report,
          char **text, struct lmq_error *err)
{
    const struct lmq_report *part =
        has_option(arguments, "print-recipe") ? lmq_report_at(report, "recipe")
                                              : report;

    return lmq_report_text(part,
                           has_option(arguments, "json") ? LMQ_REPORT_JSON
                                                         : LMQ_REPORT_YAML,
                           text, err);
}

bool
make_report_text(const struct arguments *arguments,
                 const struct lmq_report *report, char **text, int *code)
{
    struct lmq_error err;

    *text = NULL;
    if (!wants_data(arguments) ||
        make_text(arguments, report, text, &err) == LMQ_OK)
        return true;
    *code = report_error(&err);
    return false;
}

int
print_report_text(char *text)
{
    if (text == NULL)
        return -1;
    fputs(text, stdout); /* finish_output() tells if it cannot */
    lmq_text_free(text);
    return EXIT_DONE;
}

int
print_report(const struct arguments *arguments,
             const struct lmq_report *report)
{
    char *text;
    int code;

    return make_report_text(arguments, report, &text, &code)
               ? print_report_text(text)
               : code;
}

int
approve_report(void *context, const struct lmq_report *report)
{
    struct progress_state *state = context;

    return wants_data(state->arguments) &&
           make_text(state->arguments, report, &state->text, &state->error) !=
               LMQ_OK;
}

int
finish_report(struct progress_state *state)
{
    return print_report_text(state->text);
}

int
approval_error(struct progress_state *state, const struct lmq_error *err)
{
    lmq_text_free(state->text);
    return report_error(state->error.status != LMQ_OK ? &state->error : err);
}

static const char *
format_scaled(double n, const char *const *units, char text[TEXT_SIZE])
{
    int unit = 0;

    while (n >= 999.5 && units[unit + 1] != NULL) {
        n /= 1000;
        unit++;
    }
    snprintf(text, TEXT_SIZE, unit == 0 ? "%.0f%s" : "%.3g %s", n,
             units[unit]);
    return text;
}

const char *
format_bytes(double n, char text[TEXT_SIZE])
{
    static const char *const units[] = {" bytes", "kB", "MB", "GB", "TB", NULL};

    return format_scaled(n, units, text);
}

const char *
format_count(double n, char text[TEXT_SIZE])
{
    static const char *const units[] = {"", "thousand", "million", "billion",
                                        "trillion", NULL};

    return format_scaled(n, units, text);
}

const char *
format_figure(const char *format, double value, char text[TEXT_SIZE])
{
    if (isnan(value))
        format = "?";
    snprintf(text, TEXT_SIZE, format, value);
    return text;
}

double
percent(const struct lmq_report *report, const char *share)
{
    double percent = 100 * lmq_report_number(report, share);

    return fabs(percent) < 0.05 ? 0 : percent;
}

double
larger_error(const struct lmq_report *report, const char *name)
{
    char by_document[64];

    snprintf(by_document, sizeof(by_document), "%s_by_document", name);
    return fmax(lmq_report_number(report, name),
                lmq_report_number(report, by_document));
}

const char *
plural(double n)
{
    return n == 1 ? "" : "s";
}

bool
flush_output(void)
{
    static bool is_told;

    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    if (errno == EINTR) { /* somebody wants an end, and output can go on */
        clearerr(stdout);
        return false;
    }
    /* Who closes a pipe has read enough, and knows it. A failure of printf()
     * has left no reason. */
    if (!is_told && errno != EPIPE)
        fprintf(stderr, "lmquant: standard output: cannot be written%s%s\n",
                errno == 0 ? "" : ": ", errno == 0 ? "" : strerror(errno));
    is_told = true;
    return false;
}

int
finish_output(int code)
{
    return flush_output() ? code : EXIT_SYSTEM;
}

/* ---- Gates ---- */

#define MAX_GATES MAX_OCCURRENCES

bool
check_gates(const struct arguments *arguments)
{
    const char *gates[MAX_GATES];
    int n = option_texts(arguments, "gate", gates, MAX_GATES);
    struct lmq_error err;

    for (int i = 0; i < n; i++) {
        if (lmq_gate_check(gates[i], &err) != LMQ_OK) {
            report_error(&err);
            return false;
        }
        /* No metric is called so. */
        if (strstr(gates[i], "baseline") != NULL &&
            !has_option(arguments, "baseline")) {
            usage_error(arguments->command,
                        "the gate '%s' goes with --baseline, of validate",
                        gates[i]);
            return false;
        }
    }
    return true;
}

/* As reports have it. */
const char *
format_metric(double value, char *text)
{
    if (isnan(value))
        return "null: there is no such figure of this run";
    snprintf(text, TEXT_SIZE, "%.9g", value);
    return text;
}

/* A baseline whose decibels are infinite is all that gives no number. */
const char *
format_bound(double bound, char *text)
{
    return isnan(bound) ? "infinite" : format_metric(bound, text);
}

static int
print_gates_of(const struct lmq_report *report, const char *name)
{
    const struct lmq_report *gates = lmq_report_at(report, "gates");
    char value[TEXT_SIZE];
    int code = EXIT_DONE;

    for (size_t i = 0; i < lmq_report_length(gates); i++) {
        const struct lmq_report *gate = lmq_report_item(gates, i);
        if (lmq_report_number(gate, "held") != 0)
            continue;
        fprintf(stderr, "gate: %s%s%s does not hold: it is %s", name,
                *name == '\0' ? "" : ": ", lmq_report_string(gate, "gate"),
                format_metric(lmq_report_number(gate, "value"), value));
        if (strstr(lmq_report_string(gate, "gate"), "baseline") != NULL)
            fprintf(stderr, ", the bound %s",
                    format_bound(lmq_report_number(gate, "bound"), value));
        fputc('\n', stderr);
        code = EXIT_GATE;
    }
    return code;
}

int
print_gates(const struct lmq_report *report)
{
    const struct lmq_report *models = lmq_report_at(report, "models");
    int code = print_gates_of(report, "");

    for (size_t i = 0; i < lmq_report_length(models); i++) {
        const struct lmq_report *model = lmq_report_item(models, i);
        const char *name = lmq_report_string(model, "protocol.model.path");
        if (print_gates_of(model, name) != EXIT_DONE)
            code = EXIT_GATE;
    }
    return code;
}

int
apply_gates(const struct arguments *arguments, struct lmq_report *report)
{
    const char *gates[MAX_GATES];
    int n = option_texts(arguments, "gate", gates, MAX_GATES);
    size_t n_broken;
    struct lmq_error err;

    if (lmq_gates_apply(report, gates, (size_t)n, &n_broken, &err) != LMQ_OK)
        return report_error(&err);
    return print_gates(report);
}
