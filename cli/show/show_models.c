/*
 * show_models.c - the report on several models as a table: for a terminal, and
 * in Markdown for a comment.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* ---- Names ---- */

static const char *
path_of(const struct lmq_report *models, size_t index)
{
    return lmq_report_string(lmq_report_item(models, index),
                             "protocol.model.path");
}

/* The last n parts of a path. */
static const char *
last_parts(const char *path, size_t n)
{
    const char *at = path + strlen(path);

    while (at > path && at[-1] == '/')
        at--;
    for (; at > path; at--)
        if (at[-1] == '/' && --n == 0)
            break;
    return at;
}

/* Whether so many parts tell them apart, but for one that is there twice. */
static bool
is_telling(const struct lmq_report *models, size_t n_parts)
{
    for (size_t i = 0; i < lmq_report_length(models); i++)
        for (size_t j = 0; j < i; j++) {
            const char *a = path_of(models, i), *b = path_of(models, j);
            if (strcmp(a, b) != 0 &&
                strcmp(last_parts(a, n_parts), last_parts(b, n_parts)) == 0)
                return false;
        }
    return true;
}

#define MOST_PARTS 16

static const char *
name_of(const struct lmq_report *models, size_t index)
{
    size_t n = 1;

    while (n < MOST_PARTS && !is_telling(models, n))
        n++;
    return last_parts(path_of(models, index), n);
}

static size_t
index_at(const struct lmq_report *list, size_t i)
{
    return (size_t)lmq_report_number(lmq_report_item(list, i), "");
}

static bool
is_on_front(const struct lmq_report *r, size_t model)
{
    const struct lmq_report *front = lmq_report_at(r, "front");

    for (size_t i = 0; i < lmq_report_length(front); i++)
        if (index_at(front, i) == model)
            return true;
    return false;
}

/* ---- Figures ---- */

/* In at most 8 columns. */
static const char *
format_ratio(double ratio, char text[TEXT_SIZE])
{
    return format_figure(ratio < 99.5 ? "%.5f" : "%.2e", ratio, text);
}

/* ---- For a terminal ---- */

#define NAME_COLUMNS 15

static void
print_row(const struct lmq_report *r, size_t i)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    const struct lmq_report *m = lmq_report_item(models, i);
    char bytes[TEXT_SIZE], ratio[TEXT_SIZE], error[TEXT_SIZE];

    printf("%c ", is_on_front(r, i) ? '*' : ' ');
    print_name(name_of(models, i), NAME_COLUMNS);
    printf(" %5.2f %7s %8s %8.2e +-%5s %8.2e %6.2f %5.2f\n",
           lmq_report_number(m, "protocol.model.bits_per_weight"),
           format_bytes(lmq_report_number(m, "protocol.model.bytes"), bytes),
           format_ratio(lmq_report_number(m, "ppl_ratio"), ratio),
           lmq_report_number(m, "kld.mean"),
           format_figure("%.0e", larger_error(m, "kld.stderr"), error),
           lmq_report_number(m, "kld.p99"),
           100 * lmq_report_number(m, "top1_agreement"),
           100 * lmq_report_number(m, "flips.rate"));
}

static void
print_table(const struct lmq_report *r)
{
    printf("\n  %-*s  bits   bytes  p.ratio mean KLD   error  99 %% KLD  "
           "top-1 flips\n",
           NAME_COLUMNS, "model");
    for (size_t i = 0; i < lmq_report_length(lmq_report_at(r, "models")); i++)
        print_row(r, i);
    puts("* on the front: no other one is smaller and nearer. p.ratio: of "
         "perplexities;\n  top-1: the same likeliest token, flips: only one "
         "of the two is right, in %");
}

static void
print_pair(const struct lmq_report *r, const struct lmq_report *pair,
           bool is_reversed)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    const struct lmq_report *kld = lmq_report_at(pair, "kld");
    size_t first = (size_t)lmq_report_number(pair, "first");
    size_t second = (size_t)lmq_report_number(pair, "second");
    double sign = is_reversed ? -1 : 1;
    double difference = sign * lmq_report_number(kld, "difference");
    double deviation = larger_error(kld, "stderr");
    char error[TEXT_SIZE];

    fputs("  ", stdout);
    print_name(name_of(models, is_reversed ? first : second), 20);
    fputs(" - ", stdout);
    print_name(name_of(models, is_reversed ? second : first), 20);
    printf(" %+9.2e +- %s%s\n", difference,
           format_figure("%.0e", deviation, error),
           fabs(difference) > 2 * deviation ? "" : "  not told apart");
}

static void
print_step(const struct lmq_report *r, size_t near, size_t far)
{
    const struct lmq_report *pairs = lmq_report_at(r, "differences");
    double first = (double)(near < far ? near : far);
    double second = (double)(near < far ? far : near);

    for (size_t i = 0; i < lmq_report_length(pairs); i++) {
        const struct lmq_report *pair = lmq_report_item(pairs, i);
        if (lmq_report_number(pair, "first") == first &&
            lmq_report_number(pair, "second") == second)
            print_pair(r, pair, far < near);
    }
}

static void
print_differences(const struct lmq_report *r, bool is_verbose)
{
    const struct lmq_report *pairs = lmq_report_at(r, "differences");
    const struct lmq_report *ranking = lmq_report_at(r, "ranking");

    puts("\nfrom the nearest on: how much farther each is than the one before "
         "(paired)");
    for (size_t i = 1; i < lmq_report_length(ranking); i++)
        print_step(r, index_at(ranking, i - 1), index_at(ranking, i));
    if (!is_verbose)
        return;
    puts("\nall pairs");
    for (size_t i = 0; i < lmq_report_length(pairs); i++)
        print_pair(r, lmq_report_item(pairs, i), false);
}

/* What an earlier run had found. */
static void
print_baseline(const struct lmq_report *models)
{
    bool is_first = true;

    for (size_t i = 0; i < lmq_report_length(models); i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        double then = lmq_report_number(m, "baseline.kld");
        if (lmq_report_at(m, "baseline") == NULL)
            continue;
        if (is_first)
            puts("\nmean divergence in the baseline, and now");
        is_first = false;
        fputs("  ", stdout);
        print_name(name_of(models, i), 20);
        printf(" %.3e %.3e\n", then, lmq_report_number(m, "kld.mean"));
    }
}

/* Where each error comes from, in a line. */
static void
print_shares(const struct lmq_report *models)
{
    if (lmq_report_at(models, "0.attribution") == NULL)
        return;
    bool has_kv = has_short_kv(lmq_report_item(models, 0));
    printf("\nwhere the divergence comes from: weights, activations%s; parts "
           "and layers (-v)\n",
           has_kv ? ", KV" : "");
    for (size_t i = 0; i < lmq_report_length(models); i++) {
        const struct lmq_report *a =
            lmq_report_at(lmq_report_item(models, i), "attribution");
        double weights = percent(a, "weights");
        fputs("  ", stdout);
        print_name(name_of(models, i), 20);
        if (weights != weights) {
            puts(" there is none");
            continue;
        }
        printf(" %6.1f %% %6.1f %%", weights, percent(a, "activations"));
        if (has_kv)
            printf(" %6.1f %%", percent(a, "keys_values"));
        putchar('\n');
    }
}

/* Each with its verdict, and how it was computed. */
static void
print_verdicts(const struct lmq_report *models)
{
    for (size_t i = 0; i < lmq_report_length(models); i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        printf("  %s  %s (%s, activations %s)\n",
               lmq_report_string(m, "verdict.result"),
               lmq_report_string(m, "protocol.model.path"),
               lmq_report_string(m, "protocol.model.format"),
               lmq_report_string(m, "protocol.activations"));
        if (lmq_report_number(m, "verdict.broken") > 0) {
            fputs("        ", stdout);
            print_broken(lmq_report_at(m, "verdict"));
            putchar('\n');
        }
    }
}

/* The questions of a task: who has how many of them right. */
static void
print_tasks(const struct lmq_report *models)
{
    const struct lmq_report *task =
        lmq_report_at(lmq_report_item(models, 0), "task");

    if (task == NULL)
        return;
    printf("\n  %-*s  right  per byte   lost gained       p\n", NAME_COLUMNS,
           "questions");
    printf("  %-*s %6.2f    %6.2f\n", NAME_COLUMNS, "the reference",
           100 * lmq_report_number(task, "reference.accuracy"),
           100 * lmq_report_number(task, "reference.accuracy_norm"));
    for (size_t i = 0; i < lmq_report_length(models); i++) {
        task = lmq_report_at(lmq_report_item(models, i), "task");
        fputs("  ", stdout);
        print_name(name_of(models, i), NAME_COLUMNS);
        printf(" %6.2f    %6.2f %6.0f %6.0f %7.2g\n",
               100 * lmq_report_number(task, "model.accuracy"),
               100 * lmq_report_number(task, "model.accuracy_norm"),
               lmq_report_number(task, "flips.lost"),
               lmq_report_number(task, "flips.gained"),
               lmq_report_number(task, "flips.p"));
    }
}

void
print_models(const struct arguments *arguments, const struct lmq_report *r)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    const struct lmq_report *first = lmq_report_item(models, 0);
    bool is_verbose = has_option(arguments, "verbose");
    double floor = lmq_report_number(first, "floor.kld");
    char ppl[TEXT_SIZE];

    print_verdict(r);
    print_verdicts(models);
    printf("judged against %s, perplexity %s\n",
           lmq_report_string(first, "protocol.reference.path"),
           format_figure("%.5f", lmq_report_number(first, "reference.ppl"),
                         ppl));
    print_protocol(first);
    printf("keys and values %s\n", lmq_report_string(first, "protocol.kv"));
    print_table(r);
    if (floor == floor)
        printf("noise floor %g\n", floor);
    print_tasks(models);
    print_differences(r, is_verbose);
    print_baseline(models);
    print_shares(models);
    for (size_t i = 0; i < lmq_report_length(models) && is_verbose; i++) {
        putchar('\n');
        print_validation(arguments, lmq_report_item(models, i));
    }
    printf("\n%.1f s, %.0f tokens per second\n",
           lmq_report_number(r, "seconds"),
           lmq_report_number(r, "tokens_per_second"));
}

/* ---- In Markdown ---- */

/* Text from elsewhere as code: nothing in it is markup, nor a cell's end. What
 * a code span cannot hold is written as HTML, by numbers. */
static void
print_code(const char *text)
{
    if (*text != '\0' && strpbrk(text, "`|\\\n") == NULL) {
        printf("`%s`", text);
        return;
    }
    fputs("<code>", stdout);
    for (; *text != '\0'; text++)
        if (strchr("`|\\\n&<>*_[]~@#:", *text) != NULL)
            printf("&#%d;", (unsigned char)*text);
        else
            putchar(*text);
    fputs("</code>", stdout);
}

static bool
has_baseline(const struct lmq_report *r)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    bool has_any = lmq_report_at(r, "baseline") != NULL;

    for (size_t i = 0; i < lmq_report_length(models); i++)
        has_any |=
            lmq_report_at(lmq_report_item(models, i), "baseline") != NULL;
    return has_any;
}

/* A column that is there if any model has a baseline. */
static void
print_markdown_baseline(const struct lmq_report *m, bool is_there)
{
    if (is_there && lmq_report_at(m, "baseline") != NULL)
        printf(" %.3e |", lmq_report_number(m, "baseline.kld"));
    else if (is_there)
        fputs(" |", stdout);
    putchar('\n');
}

static void
print_markdown_row(const struct lmq_report *m, const char *name,
                   bool is_on_the_front)
{
    char bytes[TEXT_SIZE], ratio_error[TEXT_SIZE], error[TEXT_SIZE];
    char ratio[TEXT_SIZE];

    printf("| %s", is_on_the_front ? "&#9679; " : "");
    print_code(name);
    printf(" | %s | %.3f | %s | %s &plusmn; %s | %.3e &plusmn; %s | "
           "%.2e | %.2f %% | %.2f %% |",
           lmq_report_string(m, "verdict.result"),
           lmq_report_number(m, "protocol.model.bits_per_weight"),
           format_bytes(lmq_report_number(m, "protocol.model.bytes"), bytes),
           format_figure("%.5f", lmq_report_number(m, "ppl_ratio"), ratio),
           format_figure("%.5f",
                         lmq_report_number(m, "ppl_ratio") *
                             larger_error(m, "delta_nll_stderr"),
                         ratio_error),
           lmq_report_number(m, "kld.mean"),
           format_figure("%.1e", larger_error(m, "kld.stderr"), error),
           lmq_report_number(m, "kld.p99"),
           100 * lmq_report_number(m, "top1_agreement"),
           100 * lmq_report_number(m, "flips.rate"));
}

/* The gates that did not hold, a line each. */
static void
print_markdown_gates(const struct lmq_report *m, const char *name)
{
    const struct lmq_report *gates = lmq_report_at(m, "gates");
    char value[TEXT_SIZE], bound[TEXT_SIZE];

    for (size_t i = 0; i < lmq_report_length(gates); i++) {
        const struct lmq_report *gate = lmq_report_item(gates, i);
        if (lmq_report_number(gate, "held") != 0)
            continue;
        fputs("* ", stdout);
        print_code(name);
        fputs(": ", stdout);
        print_code(lmq_report_string(gate, "gate"));
        printf(" does not hold: it is %s, the bound %s\n",
               format_metric(lmq_report_number(gate, "value"), value),
               format_bound(lmq_report_number(gate, "bound"), bound));
    }
}

static void
print_markdown_notes(const struct lmq_report *r)
{
    const struct lmq_report *notes = lmq_report_at(r, "notes");

    for (size_t i = 0; i < lmq_report_length(notes); i++) {
        fputs(i == 0 ? "\n* Note: " : "* Note: ", stdout);
        print_code(lmq_report_string(lmq_report_item(notes, i), ""));
        putchar('\n');
    }
}

static void
print_markdown_verdict(const struct lmq_report *r)
{
    const char *result = lmq_report_string(r, "verdict.result");
    double gates = lmq_report_number(r, "verdict.gates");
    double broken = lmq_report_number(r, "verdict.broken");

    printf("**%s**", result);
    if (strcmp(result, "PARTIAL") == 0)
        puts(": interrupted; this is what was done until then\n");
    else if (gates == 0)
        puts(": no gate was set\n");
    else
        printf(": %.0f of %.0f gate%s held\n\n", gates - broken, gates,
               plural(gates));
}

static void
print_markdown_protocol(const struct lmq_report *m)
{
    char ppl[TEXT_SIZE];

    fputs("\nJudged against ", stdout);
    print_code(lmq_report_string(m, "protocol.reference.path"));
    printf(" (perplexity %s) over %.0f token%s of a text with CRC-32 %s, "
           "windows of %.0f, stride %.0f, %s; %s.\n",
           format_figure("%.5f", lmq_report_number(m, "reference.ppl"), ppl),
           lmq_report_number(m, "scored"),
           plural(lmq_report_number(m, "scored")),
           lmq_report_string(m, "protocol.text_crc32"),
           lmq_report_number(m, "ctx"),
           lmq_report_number(m, "protocol.stride"),
           lmq_report_string(m, "protocol.score"),
           lmq_report_string(m, "protocol.tool"));
}

void
print_markdown(const struct lmq_report *r)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    size_t n = models == NULL ? 1 : lmq_report_length(models);
    bool is_compared = has_baseline(r);

    print_markdown_verdict(r);
    printf("| model | verdict | bits | bytes | perplexity ratio | mean KL "
           "divergence | 99 %% | top-1 | flips |%s\n"
           "| --- | --- | --: | --: | --: | --: | --: | --: | --: |%s\n",
           is_compared ? " baseline's mean KL |" : "",
           is_compared ? " --: |" : "");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *m =
            models == NULL ? r : lmq_report_item(models, i);
        const char *name = models == NULL
                               ? lmq_report_string(r, "protocol.model.path")
                               : name_of(models, i);
        print_markdown_row(m, name, is_on_front(r, i));
        print_markdown_baseline(m, is_compared);
    }
    if (lmq_report_number(r, "verdict.broken") > 0)
        putchar('\n');
    for (size_t i = 0; i < n; i++)
        print_markdown_gates(models == NULL ? r : lmq_report_item(models, i),
                             models == NULL
                                 ? lmq_report_string(r, "protocol.model.path")
                                 : name_of(models, i));
    print_markdown_notes(r);
    print_markdown_protocol(models == NULL ? r : lmq_report_item(models, 0));
}
