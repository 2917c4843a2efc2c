/*
 * progress.c - how far long work is, and the signals that end it.
 */
#include "config.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"

/* ---- Interruption ---- */

static volatile sig_atomic_t interruption; /* the signal; 0: none */

/* Work asks for it between its steps. Who sends SIGTERM or SIGHUP kills what
 * has not ended soon, before a long step is over; and what is to be resumed may
 * be left in any state. */
#define SECONDS_TO_END 1

static bool is_resumable;

static void
interrupt(int number)
{
    interruption = number;
    if (is_resumable && number != SIGINT)
        alarm(SECONDS_TO_END);
}

static void
end_at_once(int alarm_number)
{
    int number = interruption != 0 ? interruption : alarm_number;

    signal(number, SIG_DFL);
    kill(getpid(), number);
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
static bool is_caught[3];

void
catch_signals(void)
{
    const struct sigaction action = {.sa_handler = interrupt};
    const struct sigaction last = {.sa_handler = end_at_once};
    struct sigaction before;

    for (int i = 0; i < 3; i++) /* nohup and the like stay in force */
        if (sigaction(numbers[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN) {
            sigaction(numbers[i], &action, NULL);
            is_caught[i] = true;
        }
    if (is_resumable)
        sigaction(SIGALRM, &last, NULL);
}

void
rest(bool is_resting)
{
    const struct sigaction action = {
        .sa_handler = is_resting ? SIG_DFL : interrupt};

    for (int i = isatty(STDIN_FILENO) ? 1 : 0; i < 3; i++)
        if (is_caught[i])
            sigaction(numbers[i], &action, NULL);
    if (is_resting && interruption != 0 &&
        (interruption != SIGINT || !isatty(STDIN_FILENO)))
        end_by_signal(EXIT_SYSTEM); /* it came before */
}

bool
forget_interrupt(void)
{
    bool was_interrupt = interruption == SIGINT;

    if (was_interrupt)
        interruption = 0;
    return was_interrupt;
}

/* What is done is done, though a signal came behind the last look. */
int
end_by_signal(int code)
{
    if (interruption != 0 && code != EXIT_DONE) {
        signal(interruption, SIG_DFL);
        raise(interruption);
    }
    return code;
}

/* ---- A line ---- */

enum { STYLE_NEVER, STYLE_PLAIN, STYLE_BAR };

#define BAR_SECONDS 0.1
#define PLAIN_SECONDS 3.0
#define LINE_MAX_COLUMNS 160
#define BAR_COLUMNS 30

double
seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The last column stays free: some terminals begin a new line behind it. */
static size_t
free_columns(void)
{
    struct winsize size;

    if (!isatty(STDERR_FILENO))
        return LINE_MAX_COLUMNS;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 79;
    return size.ws_col <= LINE_MAX_COLUMNS ? size.ws_col - 1u
                                           : LINE_MAX_COLUMNS;
}

struct line {
    char text[LINE_MAX_COLUMNS + 1];
    size_t n, room;
};

static void add(struct line *line, const char *format, ...) LMQ_PRINTF(2, 3);

/* Appends a piece if it fits as a whole; the ones that matter most come
 * first. */
static void
add(struct line *line, const char *format, ...)
{
    char piece[LINE_MAX_COLUMNS + 1];
    va_list args;

    va_start(args, format);
    vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    size_t n = strlen(piece);
    if (n > line->room - line->n)
        return;
    memcpy(line->text + line->n, piece, n + 1);
    line->n += n;
}

static void
add_bar(struct line *line, double part)
{
    char bar[BAR_COLUMNS + 1];
    size_t room = line->room - line->n;
    size_t width = room < BAR_COLUMNS + 3 ? room - 3 : BAR_COLUMNS;

    if (room < 8)
        return;
    memset(bar, '.', width);
    memset(bar, '#', (size_t)(part * (double)width));
    bar[width] = '\0';
    add(line, " [%s]", bar);
}

/* What a stage counts, if that is not what the command is about. */
static const char *
unit_of(const struct progress_state *state, const char *stage)
{
    static const struct {
        const char *stage, *unit;
    } others[] = {
        {"calibrating", ""}, /* tokens and rows */
        {"writing a text", "tokens"},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i].stage, stage) == 0)
            return others[i].unit;
    return state->unit;
}

static void
show_line(const struct progress_state *state, const char *stage, double done,
          double total)
{
    struct line line = {.text = "", .room = free_columns()};
    const char *unit = unit_of(state, stage);
    char rate_text[TEXT_SIZE];
    double seconds = seconds_now() - state->stage_started;
    double part = total > 0 ? done / total : 0;
    double rate = seconds > 0 ? (done - state->stage_done) / seconds : 0;

    part = part < 1 ? part : 1;
    if (total > 0)
        add(&line, "%3.0f %%", 100 * part);
    add(&line, "%s%s%s", total > 0 ? " " : "", stage,
        total > 0 ? "" : " ...");
    if (total > 0 && seconds > 1 && rate > 0)
        add(&line, ", %.0f s left", (total - done) / rate);
    if (total > 0 && unit[0] != '\0')
        add(&line, ", %s %s/s", format_count(rate, rate_text), unit);
    if (total > 0 && state->style == STYLE_BAR)
        add_bar(&line, part);
    fputs(line.text, stderr);
}

/* ---- Progress ---- */

/* Whether another stage has begun, or the same again. What stands behind a
 * colon are figures, which change on the way. */
static bool
enter_stage(struct progress_state *state, const char *stage, uint64_t done)
{
    char name[sizeof(state->stage)];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(stage, ":"), stage);
    bool is_new = done < state->done || strcmp(name, state->stage) != 0;
    memcpy(state->stage, name, sizeof(name));
    state->done = done;
    return is_new;
}

static int
show_progress(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct progress_state *state = context;
    double now = seconds_now();
    double wait = state->style == STYLE_BAR ? BAR_SECONDS : PLAIN_SECONDS;
    bool is_new = enter_stage(state, stage, done);

    if (is_new) {
        state->stage_started = now;
        state->stage_done = (double)done;
    }
    if (state->style != STYLE_NEVER &&
        (now - state->last_shown >= wait ||
         (is_new && state->is_shown))) {
        if (state->style == STYLE_BAR)
            fputs("\r\033[K", stderr);
        show_line(state, stage, (double)done, (double)total);
        if (state->style == STYLE_PLAIN)
            fputc('\n', stderr);
        fflush(stderr);
        state->is_shown = true;
        state->last_shown = now;
    }
    return interruption != 0;
}

/* A bar is drawn over itself, which a dumb terminal cannot. */
static int
terminal_style(void)
{
    const char *type = getenv("TERM");

    if (!isatty(STDERR_FILENO))
        return STYLE_NEVER;
    return type == NULL || type[0] == '\0' || strcmp(type, "dumb") == 0
               ? STYLE_PLAIN
               : STYLE_BAR;
}

bool
start_progress(const struct arguments *arguments, const char *unit,
               struct progress_state *state, struct lmq_progress *progress)
{
    const char *style = "auto";

    if (!option_choice(arguments, "progress", &style))
        return false;
    *state = (struct progress_state){.unit = unit,
                                      .started = seconds_now(),
                                      .arguments = arguments};
    state->last_shown = state->started;
    state->style = style[0] == 'a'   ? terminal_style()
                   : style[0] == 'p' ? STYLE_PLAIN
                                     : STYLE_NEVER;
    if (has_option(arguments, "quiet"))
        state->style = STYLE_NEVER;
    *progress = (struct lmq_progress){.report = show_progress,
                                      .context = state};
    is_resumable = has_option(arguments, "resume") ||
                   (strcmp(arguments->command->name, "convert") == 0 &&
                    has_option(arguments, "part"));
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
