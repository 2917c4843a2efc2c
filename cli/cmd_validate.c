/*
 * cmd_validate.c - lmquant validate.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {'c', "ctx", "N",
     "tokens of a window (512, or what the model has\n"
     "room for)"},
    {0, "stride", "N", "tokens from window to window (as --ctx)"},
    {0, "score", "WHAT",
     "all (default), or second-half: of each window, as\n"
     "llama-perplexity does"},
    {0, "split-documents", NULL,
     "each paragraph (blank lines between) begins anew"},
    {0, "tokens", "FILE", "raw little-endian ids instead of text"},
    {0, "max-tokens", "N", "stop after so many tokens of the text"},
    {0, "activations", "MODE",
     "how MODEL computes: q8, q16, f32 (what the\n"
     "container recommends: q16)"},
    {0, "kv", "TYPE", "its keys and values: f32 (default), f16, q8"},
    {'m', "memory", "SIZE",
     "for the buffers of both models, as in 4G (half of\n"
     "what is free)"},
    {'a', "attribute", NULL,
     "which share comes from weights, activations, kinds\n"
     "of tensors, layers"},
    {0, "floor", NULL, "measure the reference against itself too"},
    {0, "no-verify", NULL, "do not compare the checksums of a container"},
    {'o', "report", "FILE.html",
     "write a page with charts; '-' is standard output"},
    {'f', "force", NULL, "replace an existing report"},
    {0, "gate", "'METRIC<=X'",
     "exit with 4 unless it holds; METRIC is a dotted\n"
     "key of the JSON, as in 'kld.mean<=0.01'; repeatable"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

#define MAX_GATES MAX_OCCURRENCES

/* ---- Options ---- */

static bool
is_page_output(const char *html)
{
    return html != NULL && strcmp(html, "-") == 0;
}

static bool
parse(const struct arguments *arguments,
      struct lmq_validate_options *validate,
      struct lmq_session_options *session, const char **gates)
{
    static const char *const scores[] = {"all", "second-half", NULL};
    long ctx = 0, stride = 0, max_tokens = 0;

    *session = (struct lmq_session_options){.size = sizeof(*session)};
    *validate = (struct lmq_validate_options){
        .size = sizeof(*validate),
        .session = session,
        .texts = arguments->operands + 2,
        .n_texts = arguments->n_operands > 2
                       ? (size_t)arguments->n_operands - 2
                       : 0,
        .tokens = option_text(arguments, "tokens"),
        .splits_documents = has_option(arguments, "split-documents"),
        .has_attribution = has_option(arguments, "attribute"),
        .has_floor = has_option(arguments, "floor"),
        .skips_checksums = has_option(arguments, "no-verify"),
        .replaces = has_option(arguments, "force"),
        .gates = gates,
        .n_gates =
            (size_t)option_texts(arguments, "gate", gates, MAX_GATES),
    };
    if (!is_page_output(option_text(arguments, "report")))
        validate->page = option_text(arguments, "report");
    if ((validate->page != NULL &&
         !check_output_name(validate->page, ".html")) ||
        !option_integer(arguments, "ctx", 2, 1 << 28, &ctx) ||
        !option_integer(arguments, "stride", 1, 1 << 28, &stride) ||
        !option_integer(arguments, "max-tokens", 1, 2000000000, &max_tokens) ||
        !option_choice(arguments, "score", scores, &validate->score) ||
        !option_choice(arguments, "kv", kv_types, &session->kv) ||
        !option_choice(arguments, "activations", activation_modes,
                       &session->activations) ||
        !option_size(arguments, "memory", 1024, &validate->memory) ||
        !thread_option(arguments, &session->threads))
        return false;
    session->context = (size_t)ctx;
    validate->stride = (size_t)stride;
    validate->max_tokens = (size_t)max_tokens;
    return true;
}

/* ---- The page ---- */

/* Two things cannot share standard output. */
static bool
is_page_possible(const struct arguments *arguments, const char *html)
{
    if (!is_page_output(html) || !wants_data(arguments))
        return true;
    usage_error(arguments->command,
                "--report=- wants standard output for itself: not with --json "
                "or --yaml");
    return false;
}

static enum lmq_status
write_page(const struct arguments *arguments, const char *html,
           const struct lmq_report *report, struct lmq_error *err)
{
    char *text;

    if (!is_page_output(html))
        return lmq_validate_write_html(
            report, html, has_option(arguments, "force"), err);
    enum lmq_status status = lmq_validate_html(report, &text, err);
    if (status == LMQ_OK) {
        fputs(text, stdout);
        lmq_text_free(text);
    }
    return status;
}

/* ---- The command ---- */

/* A text in place of MODEL: that was left out. */
static void
remark_text(const char *path, struct lmq_error *err)
{
    char head[4096];
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return;
    size_t n = fread(head, 1, sizeof(head), file);
    fclose(file);
    if (n > 0 && memchr(head, 0, n) == NULL)
        snprintf(err->hint, sizeof(err->hint),
                 "if this is the text: MODEL stands before it, as in lmquant "
                 "validate CHECKPOINT MODEL TEXT");
}

static enum lmq_status
validate(const struct arguments *arguments,
         const struct lmq_open_options *open,
         const struct lmq_validate_options *validate_options,
         const struct lmq_progress *progress, struct lmq_report **report,
         int *is_partial, struct lmq_error *err)
{
    const char *const *paths = arguments->operands;
    struct lmq_checkpoint *reference = NULL, *judged = NULL;
    enum lmq_status status =
        lmq_checkpoint_open(paths[0], open, &reference, err);

    if (status == LMQ_OK) {
        status = lmq_checkpoint_open(paths[1], open, &judged, err);
        if (status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED)
            remark_text(paths[1], err);
    }
    if (status == LMQ_OK)
        status = lmq_validate(reference, judged, validate_options, progress,
                              report, is_partial, err);
    lmq_checkpoint_close(judged);
    lmq_checkpoint_close(reference);
    return status;
}

/* The sample, if no text is named. */
static bool
choose_text(const struct arguments *arguments, const char **sample, char *path,
            struct lmq_validate_options *chosen)
{
    if (chosen->n_texts > 0 && chosen->tokens != NULL) {
        usage_error(arguments->command,
                    "--tokens is in place of a text: '%s' is one too many",
                    chosen->texts[0]);
        return false;
    }
    if (chosen->n_texts > 0 || chosen->tokens != NULL)
        return true;
    *sample = find_sample(path, SAMPLE_PATH_SIZE);
    chosen->texts = sample;
    chosen->n_texts = 1;
    if (*sample == NULL)
        usage_error(arguments->command,
                    "name a text file: none is given, and the sample %s is "
                    "not installed",
                    LMQ_SAMPLE_TEXT);
    return *sample != NULL;
}

static int
show(const struct arguments *arguments, const struct lmq_report *report,
     const char *html, bool is_partial)
{
    struct lmq_error err;

    print_notes(arguments, report);
    if (html != NULL && write_page(arguments, html, report, &err) != LMQ_OK)
        return report_error(&err);
    int shown = print_report(arguments, report);
    if (shown > 0)
        return shown;
    if (shown < 0 && !is_page_output(html) && !has_option(arguments, "quiet"))
        print_validation(arguments, report);
    return is_partial ? EXIT_SYSTEM : print_gates(report);
}

static int
run(const struct arguments *arguments)
{
    const char *gates[MAX_GATES], *html = option_text(arguments, "report");
    const char *sample;
    char sample_path[SAMPLE_PATH_SIZE];
    struct lmq_validate_options validate_options;
    struct lmq_session_options session;
    struct lmq_open_options open;
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_report *report = NULL;
    struct lmq_error err;
    int is_partial = 0;

    if (!parse(arguments, &validate_options, &session, gates) ||
        !check_gates(arguments) || !open_options(arguments, &open) ||
        !choose_text(arguments, &sample, sample_path, &validate_options) ||
        !is_page_possible(arguments, html) ||
        !start_progress(arguments, "tokens", &state, &progress))
        return EXIT_USAGE;
    enum lmq_status status = validate(arguments, &open, &validate_options,
                                      &progress, &report, &is_partial, &err);
    end_progress(&state);
    if (status != LMQ_OK)
        return report_error(&err);
    int code = show(arguments, report, html, is_partial != 0);
    lmq_report_free(report);
    return code;
}

const struct command command_validate = {
    .name = "validate",
    .summary = "measure how far a model is from its reference",
    .operands = "CHECKPOINT MODEL [TEXT...]",
    .about =
        "Runs both models over the same text, layer by layer: CHECKPOINT in "
        "float32 as\nthe reference, MODEL as 'run' computes it. Shows "
        "perplexity, divergence, where\nthe error comes from. Without TEXT, "
        "the sample that is installed with lmquant is\nread.",
    .least = 2,
    .most = MAX_OPERANDS,
    .texts = 2,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .run = run,
};
