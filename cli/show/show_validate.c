/*
 * show_validate.c - the report of a validation as text.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static void
print_perplexity(const struct lmq_report *r)
{
    double bits = lmq_report_number(r, "reference.bits_per_byte");
    char error[TEXT_SIZE], reference[TEXT_SIZE], model[TEXT_SIZE];

    printf("\n%-22s %14s %14s\n", "", "reference", "model");
    printf("%-22s %14s %14s\n", "perplexity",
           format_figure("%.5f", lmq_report_number(r, "reference.ppl"),
                         reference),
           format_figure("%.5f", lmq_report_number(r, "model.ppl"), model));
    printf("%-22s %14.6f %14.6f\n", "nats per token",
           lmq_report_number(r, "reference.nll"),
           lmq_report_number(r, "model.nll"));
    if (bits == bits)
        printf("%-22s %14.6f %14.6f\n", "bits per byte", bits,
               lmq_report_number(r, "model.bits_per_byte"));
    printf("%-22s %14s +- %s\n", "perplexity ratio",
           format_figure("%.6f", lmq_report_number(r, "ppl_ratio"), model),
           format_figure("%.6f",
                         lmq_report_number(r, "ppl_ratio") *
                             larger_error(r, "delta_nll_stderr"),
                         error));
}

static void
print_divergence(const struct lmq_report *r)
{
    const struct lmq_report *kld = lmq_report_at(r, "kld");
    char error[TEXT_SIZE], cosine[TEXT_SIZE];

    printf("\n%-22s %14.3e +- %s\n", "KL divergence, mean",
           lmq_report_number(kld, "mean"),
           format_figure("%.1e", larger_error(kld, "stderr"), error));
    printf("%-22s %14.3e, 90%% %.2e, 99%% %.2e, max %.2e\n", "  median",
           lmq_report_number(kld, "median"), lmq_report_number(kld, "p90"),
           lmq_report_number(kld, "p99"), lmq_report_number(kld, "max"));
    if (lmq_report_at(r, "baseline") != NULL)
        printf("%-22s %14.3e   (ratio %.6f, same top token %.2f %%)\n",
               "  of the baseline", lmq_report_number(r, "baseline.kld"),
               lmq_report_number(r, "baseline.ppl_ratio"),
               100 * lmq_report_number(r, "baseline.top1_agreement"));
    printf("%-22s %13.2f %%   (five likeliest: %.2f %%)\n", "same top token",
           100 * lmq_report_number(r, "top1_agreement"),
           100 * lmq_report_number(r, "top5_agreement"));
    printf("%-22s %13.2f %%   (%.2f %% lost, %.2f %% gained)\n", "flips",
           100 * lmq_report_number(r, "flips.rate"),
           100 * lmq_report_number(r, "flips.lost"),
           100 * lmq_report_number(r, "flips.gained"));
    printf("%-22s %13.3f %%   (total variation %.3f %%)\n",
           "probability, rms shift",
           100 * lmq_report_number(r, "rms_delta_p"),
           100 * lmq_report_number(r, "total_variation"));
    printf("%-22s %14.4g   (rms %.3g, cosine %s)\n", "logits, max shift",
           lmq_report_number(r, "logit_drift.max_abs"),
           lmq_report_number(r, "logit_drift.rms"),
           format_figure("%.7f", lmq_report_number(r, "logit_drift.cosine"),
                         cosine));
}

#define BAR_WIDTH 30

static void
print_bar(double part)
{
    int width = (int)(part * BAR_WIDTH + 0.5);

    if (width > 0)
        putchar(' ');
    for (int i = 0; i < width && i < BAR_WIDTH; i++)
        putchar('#');
    putchar('\n');
}

/* Few rows if there are many layers: the ones with the largest steps count. */
static void
print_layers(const struct lmq_report *r, bool is_verbose)
{
    const struct lmq_report *layers = lmq_report_at(r, "layers");
    size_t n = lmq_report_length(layers);
    double most = 1e-30;
    char relative[TEXT_SIZE];

    for (size_t i = 0; i < n; i++) {
        double x = lmq_report_number(lmq_report_item(layers, i),
                                     "relative_rms");
        most = x > most ? x : most;
    }
    printf("\ndrift of the residual stream after each layer\n");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *layer = lmq_report_item(layers, i);
        double x = lmq_report_number(layer, "relative_rms");
        if (!is_verbose && n > 20 && i % ((n + 15) / 16) != 0 && i + 1 != n)
            continue;
        if (i == 0)
            printf("  %-9s", "embedding");
        else
            printf("  %-9.0f", lmq_report_number(layer, "layer"));
        printf(" %9s", format_figure("%.3e", x, relative));
        print_bar(x / most);
    }
}

static void
print_shares(const struct lmq_report *shares, const char *title, size_t most)
{
    size_t width = 14;

    printf("  %s, restored to fp32:\n", title);
    for (size_t i = 0; i < lmq_report_length(shares) && i < most; i++) {
        size_t n = strlen(
            lmq_report_string(lmq_report_item(shares, i), "name"));
        width = n > width ? n : width;
    }
    for (size_t i = 0; i < lmq_report_length(shares) && i < most; i++) {
        const struct lmq_report *share = lmq_report_item(shares, i);
        printf("    %-*s %6.1f %%", (int)width,
               lmq_report_string(share, "name"), percent(share, "share"));
        print_bar(lmq_report_number(share, "share"));
    }
}

#define COLUMNS 80

/* A long one in several lines, as a shell takes it. */
static void
print_command(const char *options)
{
    int column = printf("      convert");

    while (*options != '\0') {
        int n = (int)strcspn(options, " ");
        if (column + 1 + n > COLUMNS - 2) { /* and " \\" */
            printf(" \\\n         ");
            column = 9;
        }
        column += printf(" %.*s", n, options);
        options += n;
        options += strspn(options, " ");
    }
    putchar('\n');
}

/* "keep blk.2.ffn_down: removes 64 % of the divergence, costs 0.1 bits". */
static void
print_cure(const struct lmq_report *cure)
{
    size_t n = lmq_report_length(cure);

    if (n == 0)
        return;
    printf("  what would cure it, measured together:\n");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *step = lmq_report_item(cure, i);
        printf("    removes %5.1f %%, costs %.3f bits per weight:\n",
               percent(step, "share"),
               lmq_report_number(step, "bits_added"));
        print_command(lmq_report_string(step, "options"));
    }
}

bool
has_short_kv(const struct lmq_report *model)
{
    return strcmp(lmq_report_string(model, "protocol.kv"), "f32") != 0;
}

static void
print_attribution(const struct lmq_report *r, bool is_verbose)
{
    const struct lmq_report *a = lmq_report_at(r, "attribution");
    const struct lmq_report *kv = lmq_report_at(r, "attribution.kv");

    if (a == NULL)
        return;
    printf("\nwhere the divergence comes from (%.0f token%s)\n",
           lmq_report_number(a, "tokens"),
           plural(lmq_report_number(a, "tokens")));
    if (lmq_report_number(a, "kld") == 0) {
        puts("  there is none");
        return;
    }
    printf("  weights %.1f %%, activations %.1f %%",
           percent(a, "weights"), percent(a, "activations"));
    if (has_short_kv(r))
        printf(", keys and values %.1f %%", percent(a, "keys_values"));
    putchar('\n');
    printf("  keys and values: f32 %.2e",
           lmq_report_number(a, "kv.0.kld"));
    for (size_t i = 1; i < lmq_report_length(kv); i++) {
        const struct lmq_report *type = lmq_report_item(kv, i);
        printf(", %s %+.1e", lmq_report_string(type, "type"),
               lmq_report_number(type, "added"));
    }
    putchar('\n');
    print_shares(lmq_report_at(a, "parts"), "less divergence with this part",
                 8);
    print_shares(lmq_report_at(a, "layers"), "less divergence with this layer",
                 is_verbose ? 10000 : 8);
    if (lmq_report_at(a, "tensors") == NULL)
        return;
    print_shares(lmq_report_at(a, "tensors"),
                 "less divergence with this tensor", is_verbose ? 10000 : 8);
    print_cure(lmq_report_at(a, "cure"));
}

static void
print_answers(const struct lmq_report *task, const char *how,
              const char *accuracy, const char *flips)
{
    const struct lmq_report *f = lmq_report_at(task, flips);
    char reference[TEXT_SIZE], model[TEXT_SIZE];

    snprintf(reference, sizeof(reference), "reference.%s", accuracy);
    snprintf(model, sizeof(model), "model.%s", accuracy);
    printf("  %-20s %8.2f %% %8.2f %%   %4.0f lost, %4.0f gained, "
           "p = %.2g\n",
           how, 100 * lmq_report_number(task, reference),
           100 * lmq_report_number(task, model), lmq_report_number(f, "lost"),
           lmq_report_number(f, "gained"), lmq_report_number(f, "p"));
}

static void
print_task(const struct lmq_report *r)
{
    const struct lmq_report *task = lmq_report_at(r, "task");

    if (task == NULL)
        return;
    printf("\n%-22s %10s %10s   flips\n", "questions answered right",
           "reference", "model");
    print_answers(task, "by likelihood", "accuracy", "flips");
    print_answers(task, "per byte", "accuracy_norm", "flips_norm");
    printf("  %.0f question%s with %.0f choices; another choice at %.0f\n",
           lmq_report_number(task, "questions"),
           plural(lmq_report_number(task, "questions")),
           lmq_report_number(task, "choices"),
           lmq_report_number(task, "flips.changed"));
}

static void
print_worst(const struct lmq_report *r, size_t most)
{
    const struct lmq_report *worst = lmq_report_at(r, "worst");

    printf("\nworst positions\n");
    for (size_t i = 0; i < lmq_report_length(worst) && i < most; i++) {
        const struct lmq_report *w = lmq_report_item(worst, i);
        char *context = escape_text(lmq_report_string(w, "context"), 36);
        char *token = escape_text(lmq_report_string(w, "token"), 12);
        printf("  %8.2e  ...%s[%s]\n", lmq_report_number(w, "kld"),
               context == NULL ? "" : context, token == NULL ? "" : token);
        free(context);
        free(token);
    }
}

/* ---- The verdict ---- */

void
print_broken(const struct lmq_report *verdict)
{
    double broken = lmq_report_number(verdict, "broken");
    char value[TEXT_SIZE];

    printf("%s does not hold: it is %s", lmq_report_string(verdict, "gate"),
           format_metric(lmq_report_number(verdict, "value"), value));
    if (strstr(lmq_report_string(verdict, "gate"), "baseline") != NULL)
        printf(", the bound %s",
               format_bound(lmq_report_number(verdict, "bound"), value));
    if (broken > 1)
        printf(" (and %.0f more)", broken - 1);
}

void
print_verdict(const struct lmq_report *r)
{
    const struct lmq_report *verdict = lmq_report_at(r, "verdict");
    const char *result = lmq_report_string(verdict, "result");
    double gates = lmq_report_number(verdict, "gates");
    double broken = lmq_report_number(verdict, "broken");

    printf("%s: ", result);
    if (strcmp(result, "PARTIAL") == 0)
        fputs("interrupted; this is what was done until then", stdout);
    else if (gates == 0)
        fputs("no gate was set", stdout);
    else if (broken == 0)
        printf("%.0f gate%s held", gates, plural(gates));
    else if (lmq_report_at(verdict, "gate") != NULL)
        print_broken(verdict);
    else
        printf("%.0f of %zu models; %.0f of %.0f gates did not hold",
               lmq_report_number(verdict, "failed"),
               lmq_report_length(lmq_report_at(r, "models")), broken, gates);
    putchar('\n');
}

/* ---- All of it ---- */

/* What all models of a run share. */
void
print_protocol(const struct lmq_report *r)
{
    const struct lmq_report *p = lmq_report_at(r, "protocol");

    printf("%.0f token%s scored in %.0f window%s of %.0f (stride %.0f, %s, "
           "%s), %.0f document%s\n",
           lmq_report_number(r, "scored"),
           plural(lmq_report_number(r, "scored")),
           lmq_report_number(p, "windows"),
           plural(lmq_report_number(p, "windows")),
           lmq_report_number(r, "ctx"), lmq_report_number(p, "stride"),
           lmq_report_string(p, "score"),
           lmq_report_number(p, "bos") != 0 ? "BOS" : "no BOS",
           lmq_report_number(p, "documents"),
           plural(lmq_report_number(p, "documents")));
    printf("text: %.0f byte%s, CRC-32 %s; ",
           lmq_report_number(p, "text_bytes"),
           plural(lmq_report_number(p, "text_bytes")),
           lmq_report_string(p, "text_crc32"));
}

void
print_validation(const struct arguments *arguments, const struct lmq_report *r)
{
    const struct lmq_report *p = lmq_report_at(r, "protocol");
    bool is_verbose = has_option(arguments, "verbose");
    double floor = lmq_report_number(r, "floor.kld");

    print_verdict(r);
    printf("%s, judged against %s\n", lmq_report_string(p, "model.path"),
           lmq_report_string(p, "reference.path"));
    print_protocol(r);
    printf("activations %s, keys and values %s\n",
           lmq_report_string(p, "activations"), lmq_report_string(p, "kv"));
    print_perplexity(r);
    print_divergence(r);
    if (floor == floor)
        printf("%-22s %14g\n", "noise floor", floor);
    print_task(r);
    print_layers(r, is_verbose);
    print_attribution(r, is_verbose);
    print_worst(r, is_verbose ? 20 : 5);
    printf("\n%.1f s, %.0f tokens per second\n",
           lmq_report_number(r, "seconds"),
           lmq_report_number(r, "tokens_per_second"));
}
