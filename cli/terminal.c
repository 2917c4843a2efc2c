/*
 * terminal.c - messages, progress, numbers for people.
 */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"

/* ---- Messages ---- */

int
report_error(const struct lmq_error *err)
{
    fprintf(stderr, "lmquant: %s%s%s\n", err->path,
            err->path[0] == '\0' ? "" : ": ", err->message);
    if (err->hint[0] != '\0')
        fprintf(stderr, "hint: %s\n", err->hint);
    switch (err->status) {
    case LMQ_ERR_ARG:
        return EXIT_USAGE;
    case LMQ_ERR_FORMAT:
    case LMQ_ERR_UNSUPPORTED:
    case LMQ_ERR_NONFINITE:
        return EXIT_INPUT;
    default:
        return EXIT_SYSTEM;
    }
}

int
usage_error(const struct command *command, const char *format, ...)
{
    va_list args;

    fputs("lmquant: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nhint: lmquant %s%s--help\n",
            command == NULL ? "" : command->name, command == NULL ? "" : " ");
    return EXIT_USAGE;
}

void
print_notes(const struct arguments *arguments, const struct lmq_report *report)
{
    const struct lmq_report *notes = lmq_report_at(report, "notes");

    if (has_option(arguments, "quiet"))
        return;
    for (size_t i = 0; i < lmq_report_length(notes); i++)
        fprintf(stderr, "note: %s\n",
                lmq_report_string(lmq_report_item(notes, i), ""));
}

/* ---- Interruption ---- */

static volatile sig_atomic_t is_interrupted;

static void
interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

static void
catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = interrupt};
    struct sigaction before;

    for (int i = 0; i < 3; i++) /* nohup and the like stay in force */
        if (sigaction(numbers[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

/* ---- Progress ---- */

enum { STYLE_NEVER, STYLE_PLAIN, STYLE_BAR };

#define BAR_SECONDS 0.1
#define PLAIN_SECONDS 3.0

double
seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int
terminal_width(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
               ? size.ws_col
               : 80;
}

static void
show_line(struct progress_state *state, const char *stage, double done,
          double total)
{
    char rate_text[TEXT_SIZE];
    double seconds = seconds_now() - state->started;
    double part = total > 0 ? done / total : 0;
    double rate = seconds > 0 ? done / seconds : 0;
    double left = rate > 0 ? (total - done) / rate : 0;

    if (total <= 0) {
        fprintf(stderr, "%s ...", stage);
        return;
    }
    fprintf(stderr, "%s %3.0f %%", stage, 100 * part);
    if (state->style == STYLE_BAR) {
        int room = terminal_width() - 60;
        int width = room < 10 ? 10 : room > 30 ? 30 : room;
        int full = (int)(part * width);
        fputs(" [", stderr);
        for (int i = 0; i < width; i++)
            fputc(i < full ? '#' : '.', stderr);
        fputc(']', stderr);
    }
    fprintf(stderr, " %s %s/s", format_count(rate, rate_text), state->unit);
    if (seconds > 1)
        fprintf(stderr, ", %.0f s left", left);
}

static int
show_progress(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct progress_state *state = context;
    double now = seconds_now();
    double wait = state->style == STYLE_BAR ? BAR_SECONDS : PLAIN_SECONDS;

    if (state->style != STYLE_NEVER &&
        (now - state->last_shown >= wait ||
         (stage != state->stage && state->is_shown))) {
        if (state->style == STYLE_BAR)
            fputs("\r\033[K", stderr);
        show_line(state, stage, (double)done, (double)total);
        if (state->style == STYLE_PLAIN)
            fputc('\n', stderr);
        fflush(stderr);
        state->is_shown = true;
        state->last_shown = now;
    }
    state->stage = stage;
    return is_interrupted;
}

bool
start_progress(const struct arguments *arguments, const char *unit,
               struct progress_state *state, struct lmq_progress *progress)
{
    const char *style = option_text(arguments, "progress");

    *state = (struct progress_state){.unit = unit, .started = seconds_now()};
    state->last_shown = state->started;
    if (style == NULL || strcmp(style, "auto") == 0) {
        state->style = isatty(STDERR_FILENO) ? STYLE_BAR : STYLE_NEVER;
    } else if (strcmp(style, "plain") == 0) {
        state->style = STYLE_PLAIN;
    } else if (strcmp(style, "never") == 0) {
        state->style = STYLE_NEVER;
    } else {
        usage_error(arguments->command,
                    "--progress is '%s', expected auto, plain or never",
                    style);
        return false;
    }
    if (has_option(arguments, "quiet"))
        state->style = STYLE_NEVER;
    *progress = (struct lmq_progress){show_progress, state};
    catch_signals();
    return true;
}

void
end_progress(struct progress_state *state)
{
    if (state->style == STYLE_BAR && state->is_shown)
        fputs("\r\033[K", stderr);
    state->is_shown = false;
}

/* ---- Output ---- */

bool
print_report(const struct arguments *arguments,
             const struct lmq_report *report)
{
    bool is_json = has_option(arguments, "json");
    struct lmq_error err;
    char *text;

    if (!is_json && !has_option(arguments, "yaml"))
        return false;
    if (lmq_report_text(report, is_json ? LMQ_REPORT_JSON : LMQ_REPORT_YAML,
                        &text, &err) != LMQ_OK) {
        report_error(&err);
        return true;
    }
    fputs(text, stdout);
    lmq_text_free(text);
    return true;
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

/* Where the last `most` characters of UTF-8 text begin. */
static const char *
text_tail(const char *text, int most)
{
    const char *p = text + strlen(text);

    while (p > text && most > 0) {
        p--;
        most -= ((unsigned char)*p & 0xc0) != 0x80;
    }
    return p;
}

void
print_name(const char *name, int width)
{
    int n = 0, head = (width - 3) / 2;
    const char *end = name;

    for (const char *p = name; *p != '\0'; p++) {
        n += ((unsigned char)*p & 0xc0) != 0x80; /* characters, not bytes */
        if (n <= head)
            end = p + 1;
    }
    if (n <= width)
        printf("%s%*s", name, width - n, "");
    else
        printf("%.*s...%s", (int)(end - name), name,
               text_tail(name, width - 3 - head));
}

char *
escape_text(const char *text, int most)
{
    const char *tail = text_tail(text, most);
    char *escaped = malloc(4 * strlen(tail) + 1), *out = escaped;

    for (; escaped != NULL && *tail != '\0'; tail++) {
        unsigned char c = (unsigned char)*tail;
        if (c == '\n')
            out += sprintf(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            out += sprintf(out, "\\x%02x", c);
        else
            *out++ = (char)c;
    }
    if (escaped != NULL)
        *out = '\0';
    return escaped;
}

int
finish_output(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("lmquant: standard output");
        return EXIT_SYSTEM;
    }
    return code;
}

/* ---- Gates ---- */

#define MAX_GATES MAX_OCCURRENCES

bool
check_gates(const struct arguments *arguments)
{
    const char *gates[MAX_GATES];
    int n = option_texts(arguments, "gate", gates, MAX_GATES);
    struct lmq_error err;

    for (int i = 0; i < n; i++)
        if (lmq_gate_check(gates[i], &err) != LMQ_OK) {
            report_error(&err);
            return false;
        }
    return true;
}

int
print_gates(const struct lmq_report *report)
{
    const struct lmq_report *gates = lmq_report_at(report, "gates");
    int code = EXIT_DONE;

    for (size_t i = 0; i < lmq_report_length(gates); i++) {
        const struct lmq_report *gate = lmq_report_item(gates, i);
        if (lmq_report_number(gate, "held") != 0)
            continue;
        fprintf(stderr, "gate: %s does not hold: it is %g\n",
                lmq_report_string(gate, "gate"),
                lmq_report_number(gate, "value"));
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
