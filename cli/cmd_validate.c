/*
 * cmd_validate.c - lmquant validate.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "text", "TEXT",
     "read this; all arguments behind CHECKPOINT are\n"
     "models then; repeatable"},
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
    {0, "kv", "TYPE", "its keys and values: f32 (default), f16,\n"
     "f16-q8, q8"},
    {0, "emulate", "TYPE",
     "judge what another program would compute too:\n"
     "llama.cpp with q8_0, q5_0, q5_1, q4_0, q4_1, or\n"
     "llama2.c's runq; all arguments behind CHECKPOINT\n"
     "are models then; repeatable"},
    {'m', "memory", "SIZE",
     "for the buffers of all models, as in 4G (half of\n"
     "what is free)"},
    {'a', "attribute", "[WHAT]",
     "which share comes from weights, activations, kinds\n"
     "of tensors, each layer (the default), or each\n"
     "tensor too, and what would cure it"},
    {0, "floor", NULL, "measure the reference against itself too"},
    {0, "task", "FILE",
     "answer its multiple-choice questions too; lines\n"
     "{\"prompt\": .., \"choices\": [..], \"answer\": 0}"},
    {0, "no-verify", NULL, "do not compare the checksums of a container"},
    {0, "part", "I/N",
     "only the windows of part I of N: writes what lmquant\n"
     "merge needs of them, to -o or standard output"},
    {'o', "report", "FILE.html",
     "write a page with charts; '-' is standard output"},
    {'f', "force", NULL, "replace an existing report"},
    {0, "gate", "'METRIC<=X'",
     "exit with 4 unless it holds; METRIC is a dotted\n"
     "key of the JSON, as in 'kld.mean<=0.01'; repeatable"},
    {0, "baseline", "FILE",
     "an earlier report (--json): gates may say\n"
     "'kld.mean<=baseline*1.05'"},
    {0, "markdown", NULL, "print a table for a comment"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

#define MAX_GATES MAX_OCCURRENCES

/* ---- Options ---- */

static const char *const scores[] = {"all", "second-half", NULL};
static const char *const emulations[] = {"q8_0", "q5_0", "q5_1", "q4_0",
                                         "q4_1", "runq", NULL};
static const char *const attributions[] = {"layer", "tensor", NULL};
static const struct choice choices[] = {{"score", scores},
                                        {"attribute", attributions},
                                        {"emulate", emulations},
                                        {"kv", kv_types},
                                        {"activations", activation_modes},
                                        {NULL, NULL}};

/* What belongs to the merging, or to a run of its own. */
static bool
check_part(const struct arguments *arguments,
           const struct lmq_validate_options *validate)
{
    static const char *const others[] = {"gate", "baseline", "markdown",
                                         "json", "yaml"};
    static const char *const alone[] = {"attribute", "floor"};

    if (validate->n_parts == 0)
        return true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (has_option(arguments, others[i])) {
            usage_error(arguments->command,
                        "--%s does not go with --part: it belongs to lmquant "
                        "merge",
                        others[i]);
            return false;
        }
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++)
        if (has_option(arguments, alone[i])) {
            usage_error(arguments->command,
                        "--%s does not go with --part: it looks at the first "
                        "windows only, in a run of its own",
                        alone[i]);
            return false;
        }
    return true;
}

/* What the options say. */
struct wishes {
    struct lmq_validate_options validate;
    struct lmq_session_options session;
    struct lmq_open_options open;
    const char *gates[MAX_GATES];
    const char *emulated[MAX_OCCURRENCES];
};

static bool
parse(const struct arguments *arguments, struct wishes *wishes)
{
    const long max_context = 1 << 28; /* LMQ_MAX_CONTEXT */
    struct lmq_validate_options *validate = &wishes->validate;
    struct lmq_session_options *session = &wishes->session;
    long ctx = 0, stride = 0, max_tokens = 0;
    const char *last_emulated;

    *session = (struct lmq_session_options){.size = sizeof(*session)};
    *validate = (struct lmq_validate_options){
        .size = sizeof(*validate),
        .session = session,
        .tokens = option_text(arguments, "tokens"),
        .splits_documents = has_option(arguments, "split-documents"),
        .has_attribution = has_option(arguments, "attribute"),
        .has_floor = has_option(arguments, "floor"),
        .skips_checksums = has_option(arguments, "no-verify"),
        .replaces = has_option(arguments, "force"),
        .baseline = option_text(arguments, "baseline"),
        .task = option_text(arguments, "task"),
        .emulations = wishes->emulated,
        .n_emulations = (size_t)option_texts(
            arguments, "emulate", wishes->emulated, MAX_OCCURRENCES),
        .gates = wishes->gates,
        .n_gates = (size_t)option_texts(arguments, "gate", wishes->gates,
                                        MAX_GATES),
    };
    if (!is_page_output(option_text(arguments, "report")))
        validate->page = option_text(arguments, "report");
    if (!option_part(arguments, "part", MAX_PARTS, &validate->part,
                     &validate->n_parts) ||
        !check_part(arguments, validate) ||
        (validate->page != NULL &&
         !check_output_name(validate->page,
                            validate->n_parts > 0 ? ".json" : ".html")) ||
        !option_integer(arguments, "ctx", 2, max_context, &ctx) ||
        !option_integer(arguments, "stride", 1, max_context, &stride) ||
        !option_integer(arguments, "max-tokens", 1, 2000000000, &max_tokens) ||
        !option_choice(arguments, "score", &validate->score) ||
        !option_choice(arguments, "emulate", &last_emulated) ||
        !option_choice(arguments, "attribute", &validate->attribution) ||
        !option_choice(arguments, "kv", &session->kv) ||
        !option_choice(arguments, "activations", &session->activations) ||
        !option_size(arguments, "memory", 1024, &validate->memory) ||
        !thread_option(arguments, &session->threads) ||
        !open_options(arguments, &wishes->open))
        return false;
    session->context = (size_t)ctx;
    validate->stride = (size_t)stride;
    validate->max_tokens = (size_t)max_tokens;
    return true;
}

/* Whether there is something to judge, and one thing to read. */
static bool
check_operands(const struct arguments *arguments,
               const struct lmq_validate_options *validate)
{
    if (arguments->n_operands == 1 && validate->n_emulations == 0)
        usage_error(arguments->command, "expected: %s",
                    arguments->command->operands);
    else if (validate->tokens != NULL && has_option(arguments, "text"))
        usage_error(arguments->command, "--tokens is in place of --text");
    else
        return true;
    return false;
}

static bool
take_wishes(const struct arguments *arguments, struct wishes *wishes)
{
    struct lmq_error err;

    if (!parse(arguments, wishes) || !check_gates(arguments) ||
        !check_operands(arguments, &wishes->validate) ||
        !has_one_output(arguments))
        return false;
    if (lmq_validate_check(&wishes->validate, &err) != LMQ_OK) {
        report_error(&err);
        return false;
    }
    return true;
}

static int
check(const struct arguments *arguments)
{
    struct wishes wishes;

    return take_wishes(arguments, &wishes) ? EXIT_DONE : EXIT_USAGE;
}

/* ---- Models and texts ---- */

/* What the arguments are. Behind the reference stand models; or, where no
 * option says what is read, one model and texts. */
struct operands {
    size_t n_models;
    bool are_all_models;
    const char *texts[MAX_OCCURRENCES]; /* of --text, or the sample */
    char sample[SAMPLE_PATH_SIZE];
    bool is_sample;
};

/* A file that may be a text, by its beginning. */
static bool
is_text(const char *path)
{
    char head[4096];
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return false;
    size_t n = fread(head, 1, sizeof(head), file);
    bool is_folder = ferror(file) != 0;
    fclose(file);
    return !is_folder && memchr(head, 0, n) == NULL &&
           lmq_binary_kind(head, n) == NULL;
}

static bool
take_sample(const struct arguments *arguments, struct operands *operands,
            struct lmq_validate_options *chosen)
{
    operands->texts[0] = find_sample(operands->sample, SAMPLE_PATH_SIZE);
    operands->is_sample = true;
    chosen->texts = operands->texts;
    chosen->n_texts = 1;
    if (operands->texts[0] == NULL)
        usage_error(arguments->command,
                    "name a text file: none is given, and the sample %s is "
                    "not installed",
                    LMQ_SAMPLE_TEXT);
    return operands->texts[0] != NULL;
}

static bool
choose_operands(const struct arguments *arguments, struct operands *operands,
                struct lmq_validate_options *chosen)
{
    const char *const *behind = arguments->operands + 2;
    bool emulates = chosen->n_emulations > 0;
    size_t n_given = (size_t)arguments->n_operands - 1;
    size_t n_behind = n_given > 0 ? n_given - 1 : 0;
    size_t n_texts = (size_t)option_texts(arguments, "text", operands->texts,
                                          MAX_OCCURRENCES);

    operands->is_sample = false;
    operands->are_all_models =
        n_texts > 0 || chosen->tokens != NULL || emulates;
    operands->n_models = operands->are_all_models ? n_given : 1;
    for (size_t i = 0; chosen->tokens != NULL && i < n_behind; i++)
        if (is_text(behind[i])) {
            usage_error(arguments->command,
                        "--tokens is in place of a text: '%s' is one too many",
                        behind[i]);
            return false;
        }
    if (n_texts == 0 && chosen->tokens == NULL &&
        (n_behind == 0 || emulates))
        return take_sample(arguments, operands, chosen);
    chosen->texts = n_texts > 0 ? operands->texts : behind;
    chosen->n_texts = operands->are_all_models ? n_texts : n_behind;
    return true;
}

/* A text in place of a model. */
static void
remark_text(const struct operands *operands, const char *path,
            struct lmq_error *err)
{
    if (!is_text(path))
        return;
    if (operands->are_all_models)
        snprintf(err->hint, sizeof(err->hint),
                 "if this is a text: with --text or --tokens all arguments "
                 "are models, and each text has a --text of its own");
    else
        snprintf(err->hint, sizeof(err->hint),
                 "if this is the text: MODEL stands before it, as in lmquant "
                 "validate CHECKPOINT MODEL TEXT");
}

/* A model in place of a text, which is why the text could not be read. */
static void
remark_model(const struct arguments *arguments,
             const struct operands *operands,
             const struct lmq_validate_options *chosen, struct lmq_error *err)
{
    bool is_named = false;

    for (size_t i = 0; i < chosen->n_texts; i++)
        is_named |= strcmp(err->path, chosen->texts[i]) == 0;
    if (err->status != LMQ_ERR_FORMAT || !is_named || is_text(err->path) ||
        err->hint[0] != '\0')
        return; /* who knows what is wrong has said more */
    if (operands->are_all_models)
        snprintf(err->hint, sizeof(err->hint),
                 "--text names what is read; models are the arguments");
    else if (arguments->n_operands > 2)
        snprintf(err->hint, sizeof(err->hint),
                 "several models are judged at once if --text names the text: "
                 "lmquant validate CHECKPOINT MODEL MODEL --text=TEXT");
}

/* ---- The command ---- */

static enum lmq_status
open_all(const struct arguments *arguments, const struct operands *operands,
         const struct lmq_open_options *open,
         struct lmq_checkpoint *checkpoints[MAX_OPERANDS],
         struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i <= operands->n_models && status == LMQ_OK; i++) {
        const char *path = arguments->operands[i];
        status = lmq_checkpoint_open(path, open, &checkpoints[i], err);
        if (i > 0 &&
            (status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED))
            remark_text(operands, path, err);
    }
    return status;
}

static enum lmq_status
validate(const struct arguments *arguments, const struct operands *operands,
         const struct lmq_open_options *open,
         const struct lmq_validate_options *chosen,
         const struct lmq_progress *progress, struct lmq_report **report,
         int *is_partial, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoints[MAX_OPERANDS] = {NULL};
    enum lmq_status status =
        open_all(arguments, operands, open, checkpoints, err);

    if (status == LMQ_OK) {
        status = lmq_validate_several(checkpoints[0], checkpoints + 1,
                                      operands->n_models, chosen, progress,
                                      report, is_partial, err);
        if (status != LMQ_OK)
            remark_model(arguments, operands, chosen, err);
    }
    for (size_t i = 0; i <= operands->n_models; i++)
        lmq_checkpoint_close(checkpoints[i]);
    return status;
}

/* The part in place of a report: a file, or standard output. */
static int
keep_part(const struct arguments *arguments, const struct lmq_report *part)
{
    const char *path = option_text(arguments, "report");
    struct lmq_error err;
    char *text;

    if (path != NULL && strcmp(path, "-") != 0)
        return lmq_validate_write_part(part, path,
                                       has_option(arguments, "force"),
                                       &err) == LMQ_OK
                   ? EXIT_DONE
                   : report_error(&err);
    if (lmq_validate_part(part, &text, &err) != LMQ_OK)
        return report_error(&err);
    puts(text);
    lmq_text_free(text);
    return EXIT_DONE;
}

/* Each rank has a part, and what belongs to merging is the first one's. */
static bool
share_out(struct lmq_validate_options *validate,
          struct lmq_merge_options *merge, const struct ranks *ranks)
{
    struct lmq_error err;

    *merge = (struct lmq_merge_options){
        .size = sizeof(*merge),
        .gates = validate->gates,
        .n_gates = validate->n_gates,
        .baseline = validate->baseline,
    };
    /* What is wrong with them should be said before the work. */
    if (lmq_merge(NULL, 0, merge, NULL, &err) != LMQ_OK) {
        report_error(&err);
        return false;
    }
    validate->part = ranks->rank + 1;
    validate->n_parts = ranks->n;
    validate->n_gates = 0;
    validate->baseline = NULL;
    return true;
}

static int
run(const struct arguments *arguments)
{
    struct wishes wishes;
    struct lmq_validate_options *wanted = &wishes.validate;
    struct operands operands;
    struct lmq_merge_options merge;
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_report *report = NULL;
    struct lmq_error err;
    struct ranks ranks = {.n = 1};
    int is_partial = 0, code;

    if (!take_wishes(arguments, &wishes) ||
        !choose_operands(arguments, &operands, wanted) ||
        !start_progress(arguments, "tokens", &state, &progress))
        return EXIT_USAGE;
    if (wanted->n_parts == 0 && !start_ranks(arguments, &ranks))
        return EXIT_USAGE;
    if (ranks.n > 1 &&
        (!have_texts(arguments) ||
         !share_out(wanted, &merge, &ranks)))
        return end_ranks(&ranks, EXIT_USAGE);
    enum lmq_status status =
        validate(arguments, &operands, &wishes.open, wanted, &progress,
                 &report, &is_partial, &err);
    end_progress(&state);
    if (status == LMQ_OK && operands.is_sample && ranks.rank == 0)
        print_note(arguments, "no text was named: the sample that comes with "
                              "lmquant was read, for a first look");
    if (status != LMQ_OK)
        code = report_error(&err);
    else if (ranks.n > 1)
        code = merge_ranks(arguments, &ranks, &merge, report);
    else if (wanted->n_parts > 0)
        code = keep_part(arguments, report);
    else
        code = show_outcome(arguments, report, is_partial != 0);
    lmq_report_free(report);
    return end_ranks(&ranks, code);
}

const struct command command_validate = {
    .name = "validate",
    .summary = "measure how far a model is from its reference",
    .operands = "CHECKPOINT MODEL [TEXT...]",
    .about =
        "Runs both models over the same text, layer by layer: CHECKPOINT in "
        "float32 as\nthe reference, MODEL as 'run' computes it. Shows "
        "perplexity, divergence, where\nthe error comes from. Without TEXT, "
        "the sample that is installed with lmquant is\nread. With --text all "
        "arguments behind CHECKPOINT are models: one run of the\nreference, "
        "one table, and how far they are from each other.",
    .least = 1,
    .most = MAX_OPERANDS,
    .texts = 2,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .choices = choices,
    .check = check,
    .run = run,
};
