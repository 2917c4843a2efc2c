/*
 * cmd_run.c - lmquant run.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {'n', "tokens", "N", "generate at most so many tokens (256)"},
    {'t', "temp", "X", "temperature; 0 takes the likeliest token (0.8)"},
    {'k', "top-k", "N", "of the N likeliest; 0: of all (40)"},
    {0, "top-p", "X", "of the likeliest that make up this part, 0 to 1\n"
                      "(0.95)"},
    {0, "min-p", "X", "at least this part of the likeliest (0.05)"},
    {0, "typical", "X", "of the most typical that make up this part (1: off)"},
    {0, "repeat-penalty", "X", "divides the logits of recent tokens (1: off)"},
    {0, "frequency-penalty", "X", "subtracted for each occurrence (0: off)"},
    {0, "presence-penalty", "X", "subtracted once (0: off)"},
    {'s', "seed", "N", "the same seed, the same text on every machine (0)"},
    {'c', "ctx", "N", "positions (the model's, at most 4096)"},
    {0, "kv", "TYPE", "keys and values: f32 (default), f16, q8"},
    {0, "activations", "MODE", "for int8 weights: q8, q16, f32 (what the\n"
     "container recommends: q16)"},
    {'i', "ids", NULL, "print token ids instead of text"},
    {0, "ignore-eos", NULL, "go on behind the token that ends a text"},
    {0, "json", NULL, "print tokens, text and timings as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

/* ---- Options ---- */

static bool
parse_sampling(const struct arguments *arguments,
               struct lmq_sampler_options *sampling)
{
    *sampling = (struct lmq_sampler_options){
        .size = sizeof(*sampling),
        .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05};
    return option_real(arguments, "temp", 0, 1000, &sampling->temperature) &&
           option_integer(arguments, "top-k", 0, 1000000, &sampling->top_k) &&
           option_real(arguments, "top-p", 0, 1, &sampling->top_p) &&
           option_real(arguments, "min-p", 0, 1, &sampling->min_p) &&
           option_real(arguments, "typical", 0, 1, &sampling->typical) &&
           option_real(arguments, "repeat-penalty", 0, 1000,
                       &sampling->repeat_penalty) &&
           option_real(arguments, "frequency-penalty", -1000, 1000,
                       &sampling->frequency_penalty) &&
           option_real(arguments, "presence-penalty", -1000, 1000,
                       &sampling->presence_penalty) &&
           option_seed(arguments, "seed", &sampling->seed);
}

/* ---- Generating ---- */

/* Tokens at the beginning that stay when the context is full: attention rests
 * on them whatever they say. */
#define SINKS 4

struct run {
    const struct arguments *arguments;
    struct lmq_checkpoint *checkpoint;
    struct lmq_tokenizer *tokenizer;
    struct lmq_detokenizer *detokenizer;
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_sampler *sampler;
    char *piped;      /* the prompt from standard input; NULL: none */
    const char *text; /* the prompt */
    size_t n_text;
    int32_t *prompt;
    size_t n_prompt;
    int32_t *made; /* what was generated */
    size_t n_made, n_most;
    bool is_ended; /* by the model itself */
    bool is_interrupted;
    double prompt_seconds, seconds;
    struct progress_state state;
    struct lmq_progress progress;
};

static enum lmq_status
show(struct run *run, int32_t id, struct lmq_error *err)
{
    const char *text;
    size_t n;

    if (wants_data(run->arguments))
        return LMQ_OK;
    if (has_option(run->arguments, "ids")) {
        if (id >= 0)
            printf("%s%" PRId32, run->n_made == 0 ? "" : " ", id);
        run->is_interrupted |= !flush_output();
        return LMQ_OK;
    }
    enum lmq_status status =
        lmq_detokenizer_next(run->detokenizer, id, &text, &n, err);
    if (status == LMQ_OK)
        fwrite(text, 1, n, stdout);
    run->is_interrupted |= !flush_output();
    return status;
}

static enum lmq_status
start(struct run *run, struct lmq_error *err)
{
    double began = seconds_now();
    enum lmq_status status =
        lmq_session_eval(run->session, run->prompt, run->n_prompt, err);

    run->prompt_seconds = seconds_now() - began;
    for (size_t i = 0; i < run->n_prompt && status == LMQ_OK; i++) {
        lmq_sampler_accept(run->sampler, run->prompt[i]);
        if (!has_option(run->arguments, "ids"))
            status = show(run, run->prompt[i], err);
    }
    return status;
}

static enum lmq_status
generate(struct run *run, size_t context, struct lmq_error *err)
{
    bool goes_on = has_option(run->arguments, "ignore-eos");
    double began = seconds_now();
    enum lmq_status status = LMQ_OK;

    while (run->n_made < run->n_most && status == LMQ_OK) {
        int32_t id = lmq_sampler_pick(run->sampler,
                                      lmq_session_logits(run->session, 0));
        run->is_ended = !goes_on && lmq_tokenizer_ends(run->tokenizer, id);
        run->is_interrupted |=
            run->progress.report(run->progress.context, "", 0, 0) != 0;
        if (run->is_ended || run->is_interrupted)
            break;
        status = show(run, id, err);
        run->made[run->n_made++] = id;
        lmq_sampler_accept(run->sampler, id);
        if (run->n_made == run->n_most)
            break;
        if (status == LMQ_OK && lmq_session_position(run->session) == context)
            status = lmq_session_slide(run->session, SINKS, err);
        if (status == LMQ_OK)
            status = lmq_session_eval(run->session, &id, 1, err);
    }
    run->seconds = seconds_now() - began;
    return status == LMQ_OK ? show(run, -1, err) : status;
}

/* ---- Setting up ---- */

/* What was assumed about the checkpoint. */
static enum lmq_status
print_assumptions(const struct run *run, struct lmq_error *err)
{
    struct lmq_report *report;
    enum lmq_status status =
        lmq_inspect(run->checkpoint, NULL, &report, err);

    if (status != LMQ_OK)
        return status;
    print_notes(run->arguments, report);
    lmq_report_free(report);
    return LMQ_OK;
}

static enum lmq_status
set_up(struct run *run, const struct lmq_open_options *open,
       const struct lmq_session_options *session,
       const struct lmq_sampler_options *sampling, struct lmq_error *err)
{
    enum lmq_status status = lmq_checkpoint_open(
        run->arguments->operands[0], open, &run->checkpoint, err);

    if (status == LMQ_OK)
        status = print_assumptions(run, err);
    if (status == LMQ_OK)
        status = lmq_tokenizer_from_checkpoint(run->checkpoint,
                                               &run->tokenizer, err);
    if (status == LMQ_OK)
        status = lmq_detokenizer_new(run->tokenizer, 0, &run->detokenizer,
                                     err);
    if (status == LMQ_OK)
        status = lmq_model_open(run->checkpoint, &run->model, err);
    if (status == LMQ_OK)
        status = lmq_session_new(run->model, session, &run->session, err);
    if (status == LMQ_OK)
        status = lmq_sampler_new(sampling, lmq_model_vocabulary(run->model),
                                 &run->sampler, err);
    if (status == LMQ_OK)
        status = lmq_tokenize(run->tokenizer, run->text, run->n_text,
                              LMQ_TEXT_SPECIAL, &run->prompt, &run->n_prompt,
                              err);
    return status;
}

static void
tear_down(struct run *run)
{
    free(run->made);
    free(run->piped);
    lmq_tokens_free(run->prompt);
    lmq_sampler_free(run->sampler);
    lmq_session_free(run->session);
    lmq_model_close(run->model);
    lmq_detokenizer_free(run->detokenizer);
    lmq_tokenizer_close(run->tokenizer);
    lmq_checkpoint_close(run->checkpoint);
}

/* ---- Output ---- */

static double
rate(double n, double seconds)
{
    return seconds > 0 ? n / seconds : 0;
}

static int
print_data(const struct run *run, struct lmq_error *err)
{
    struct lmq_generation generation = {
        .prompt = run->prompt,
        .n_prompt = run->n_prompt,
        .made = run->made,
        .n_made = run->n_made,
        .is_ended = run->is_ended,
        .prompt_seconds = run->prompt_seconds,
        .seconds = run->seconds,
    };
    struct lmq_report *report;

    if (lmq_generation_report(run->tokenizer, &generation, &report, err) !=
        LMQ_OK)
        return report_error(err);
    int code = print_report(run->arguments, report);
    lmq_report_free(report);
    return code;
}

static int
finish(struct run *run, struct lmq_error *err)
{
    if (wants_data(run->arguments))
        return print_data(run, err);
    putchar('\n'); /* the text ends before the line about it begins */
    if (flush_output() && !has_option(run->arguments, "quiet"))
        fprintf(stderr,
                "prompt: %zu token%s, %.1f/s; generated: %zu token%s, %.1f/s"
                "%s\n",
                run->n_prompt, run->n_prompt == 1 ? "" : "s",
                rate((double)run->n_prompt, run->prompt_seconds),
                run->n_made, run->n_made == 1 ? "" : "s",
                rate((double)run->n_made, run->seconds),
                run->is_ended ? " (the text has ended)" : "");
    return run->is_interrupted ? EXIT_SYSTEM : EXIT_DONE;
}

/* The prompt as given, or from standard input for "-", where a line feed at
 * the end is the shell's. */
static bool
read_prompt(struct run *run, int *code)
{
    run->text =
        run->arguments->n_operands > 1 ? run->arguments->operands[1] : "";
    run->n_text = strlen(run->text);
    if (strcmp(run->text, "-") != 0)
        return true;
    run->piped = read_text("-", &run->n_text, code);
    if (run->piped == NULL)
        return false;
    run->text = run->piped;
    if (run->n_text > 0 && run->text[run->n_text - 1] == '\n')
        run->n_text--;
    return true;
}

static int
run_command(const struct arguments *arguments)
{
    struct run run = {.arguments = arguments};
    struct lmq_open_options open;
    struct lmq_sampler_options sampling;
    struct lmq_session_options session = {.size = sizeof(session)};
    struct lmq_error err;
    long n = 256, context = 0;
    int code;

    if (!open_options(arguments, &open) ||
        !parse_sampling(arguments, &sampling) ||
        !option_integer(arguments, "tokens", 0, 100000000, &n) ||
        !option_integer(arguments, "ctx", 2, 1 << 28 /* LMQ_MAX_CONTEXT */,
                        &context) ||
        !option_choice(arguments, "kv", kv_types, &session.kv) ||
        !option_choice(arguments, "activations", activation_modes,
                       &session.activations) ||
        !thread_option(arguments, &session.threads) ||
        !start_progress(arguments, "", &run.state, &run.progress))
        return EXIT_USAGE;
    end_progress(&run.state);
    run.state.style = 0; /* the text itself is the progress */
    session.context = (size_t)context;
    run.n_most = (size_t)n;
    if (!read_prompt(&run, &code))
        return code;
    run.made = calloc(run.n_most + 1, sizeof(*run.made));
    if (run.made == NULL) {
        perror("lmquant");
        tear_down(&run);
        return EXIT_SYSTEM;
    }
    enum lmq_status status = set_up(&run, &open, &session, &sampling, &err);
    if (status == LMQ_OK)
        status = start(&run, &err);
    if (status == LMQ_OK)
        status = generate(&run, lmq_session_context(run.session), &err);
    if (status != LMQ_OK && run.n_made > 0 && !wants_data(arguments)) {
        putchar('\n'); /* what went wrong is no part of the text */
        fflush(stdout);
    }
    code = status == LMQ_OK ? finish(&run, &err) : report_error(&err);
    tear_down(&run);
    return code;
}

const struct command command_run = {
    .name = "run",
    .summary = "generate text",
    .operands = "CHECKPOINT [PROMPT]",
    .about =
        "Continues PROMPT, or standard input if that is '-'. Takes a "
        "checkpoint of any\nformat: int8 weights of a container are "
        "multiplied as they are, floats are\ncomputed in float32. When the "
        "context is full, the first four tokens and the\nlatest stay, half "
        "of the context in all.",
    .least = 1,
    .most = 2,
    .texts = 1,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .run = run_command,
};
