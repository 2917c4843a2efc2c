/*
 * cmd_run.c - lmquant run.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/talk/speak.h"

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
    {0, "kv", "TYPE", "keys and values: f32 (default), f16,\n"
     "f16-q8, q8"},
    {0, "activations", "MODE", "for int8 weights: q8, q16, f32 (what the\n"
     "container recommends: q16)"},
    {'i', "ids", NULL, "print token ids instead of text"},
    {0, "ignore-eos", NULL, "go on behind the token that ends a text"},
    {0, "stop", "TEXT", "end before this text; may be repeated"},
    {'f', "file", "FILE", "read the prompt from a file"},
    {0, "chat", NULL, "a conversation: questions, a line each, and answers"},
    {0, "system", "TEXT", "what the model is told before a conversation"},
    {0, "chat-format", "NAME", "in place of the one that the checkpoint's\n"
     "template is recognised as; list: their names"},
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

/* Shows the prompt, unless nothing is shown: what follows depends on it. */
static enum lmq_status
show_prompt(struct run *run, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    const char *text;
    size_t n;

    for (size_t i = 0; i < run->n_prompt && status == LMQ_OK; i++) {
        lmq_sampler_accept(run->sampler, run->prompt[i]);
        status = lmq_detokenizer_next(run->detokenizer, run->prompt[i], &text,
                                      &n, err);
        if (status == LMQ_OK && !run->stops.is_silent)
            fwrite(text, 1, n, stdout);
    }
    run->is_interrupted |= !flush_output();
    return status;
}

static enum lmq_status
start(struct run *run, struct lmq_error *err)
{
    double began = seconds_now();
    size_t n_read = 0;
    enum lmq_status status =
        read_tokens(run, run->prompt, run->n_prompt, &n_read, err);

    run->prompt_seconds = seconds_now() - began;
    return status == LMQ_OK && !run->is_interrupted ? show_prompt(run, err)
                                                    : status;
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

/* Of a model that cannot be run either, that is what has to be said: a
 * tokenizer would not help. */
static enum lmq_status
open_tokenizer(struct run *run, struct lmq_error *err)
{
    struct lmq_error why;
    enum lmq_status status = lmq_tokenizer_from_checkpoint(
        run->checkpoint, &run->tokenizer, err);

    if (status == LMQ_ERR_FORMAT &&
        lmq_model_open(run->checkpoint, &run->model, &why) ==
            LMQ_ERR_UNSUPPORTED) {
        *err = why;
        return why.status;
    }
    return status;
}

/* Rows of the model behind the tokenizer's last token only fill it up. */
static size_t
n_tokens(const struct run *run)
{
    size_t n_rows = lmq_model_vocabulary(run->model);
    size_t n = lmq_tokenizer_size(run->tokenizer);

    return n_rows < n ? n_rows : n;
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
        status = open_tokenizer(run, err);
    if (status == LMQ_OK)
        status = lmq_detokenizer_new(run->tokenizer, 0, &run->detokenizer,
                                     err);
    if (status == LMQ_OK && has_option(run->arguments, "chat"))
        status = lmq_chat_open(run->checkpoint, run->tokenizer,
                               option_text(run->arguments, "chat-format"),
                               &run->chat, err);
    if (status == LMQ_OK && !has_option(run->arguments, "chat"))
        status = lmq_tokenize(run->tokenizer, run->text, run->n_text,
                              LMQ_TEXT_SPECIAL, &run->prompt, &run->n_prompt,
                              err);
    if (status == LMQ_OK)
        status = lmq_model_open(run->checkpoint, &run->model, err);
    if (status == LMQ_OK)
        status = lmq_session_new(run->model, session, &run->session, err);
    if (status == LMQ_OK)
        status = lmq_sampler_new(sampling, n_tokens(run), &run->sampler, err);
    return status;
}

static void
tear_down(struct run *run)
{
    free(run->made);
    free(run->read);
    free_stops(&run->stops);
    lmq_tokens_free(run->prompt);
    lmq_sampler_free(run->sampler);
    lmq_session_free(run->session);
    lmq_model_close(run->model);
    lmq_detokenizer_free(run->detokenizer);
    lmq_chat_close(run->chat);
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
        .stop = run->stops.found,
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
    if (wants_data(run->arguments)) {
        int code = print_data(run, err);
        return code == EXIT_DONE && run->is_interrupted ? EXIT_SYSTEM : code;
    }
    if (!has_option(run->arguments, "ids"))
        print_held(&run->stops);
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

/* The prompt as given, or from a file, or from standard input for "-", where a
 * line feed at the end is the shell's. */
static bool
read_prompt(struct run *run, int *code)
{
    const char *file = option_text(run->arguments, "file");

    run->text =
        run->arguments->n_operands > 1 ? run->arguments->operands[1] : "";
    run->n_text = strlen(run->text);
    if (file == NULL && strcmp(run->text, "-") != 0)
        return true;
    run->read = read_text(file == NULL ? "-" : file, &run->n_text, code);
    if (run->read == NULL)
        return false;
    run->text = run->read;
    if (run->n_text > 0 && run->text[run->n_text - 1] == '\n')
        run->n_text--;
    return true;
}

/* ---- The command ---- */

static int
list_formats(void)
{
    const char *name, *models;

    for (size_t i = 0; (name = lmq_chat_format_at(i, &models)) != NULL; i++)
        printf("%-20s %s\n", name, models);
    return finish_output(EXIT_DONE);
}

static bool
check_format(const struct arguments *arguments)
{
    const char *given = option_text(arguments, "chat-format"), *name;
    struct suggestion suggestion = {.wanted = given,
                                    .prefix = "--chat-format="};

    if (given == NULL)
        return true;
    for (size_t i = 0; (name = lmq_chat_format_at(i, NULL)) != NULL; i++) {
        if (strcmp(name, given) == 0)
            return true;
        suggest(&suggestion, name);
    }
    suggestion_error(arguments->command, &suggestion,
                     "--chat-format is '%s', expected one that "
                     "--chat-format=list shows",
                     given);
    return false;
}

/* What belongs together, and what does not. */
static bool
check_options(const struct arguments *arguments)
{
    static const char *const with[] = {"system", "chat-format"};
    static const char *const without[] = {"json", "yaml", "ids"};
    bool is_chat = has_option(arguments, "chat");

    if (arguments->n_operands == 0) {
        usage_error(arguments->command, "expected: %s",
                    arguments->command->operands);
        return false;
    }
    if (has_option(arguments, "file") && arguments->n_operands > 1) {
        usage_error(arguments->command,
                    "there are two prompts: '%s' and --file",
                    arguments->operands[1]);
        return false;
    }
    for (int i = 0; i < 2; i++)
        if (!is_chat && has_option(arguments, with[i])) {
            usage_error(arguments->command, "--%s is for --chat", with[i]);
            return false;
        }
    if (has_option(arguments, "ids") && wants_data(arguments)) {
        usage_error(arguments->command,
                    "--ids goes without --json and --yaml: they have the ids "
                    "too");
        return false;
    }
    for (int i = 0; i < 3; i++)
        if (is_chat && has_option(arguments, without[i])) {
            usage_error(arguments->command,
                        "--chat and --%s exclude each other", without[i]);
            return false;
        }
    return true;
}

static bool
find_stops(struct run *run)
{
    struct stops *stops = &run->stops;

    stops->is_silent =
        wants_data(run->arguments) || has_option(run->arguments, "ids");
    stops->n_texts =
        option_texts(run->arguments, "stop", stops->texts, MAX_STOPS);
    if (stops->n_texts == MAX_STOPS) { /* one is for the end of an answer */
        usage_error(run->arguments->command,
                    "--stop is given more than %d times", MAX_STOPS - 1);
        return false;
    }
    for (int i = 0; i < stops->n_texts; i++)
        if (stops->texts[i][0] == '\0') {
            usage_error(run->arguments->command,
                        "--stop is empty, expected a text");
            return false;
        }
    return true;
}

static bool
allocate(struct run *run)
{
    run->made = calloc(run->n_most + 1, sizeof(*run->made));
    if (run->made == NULL)
        perror("lmquant");
    return run->made != NULL;
}

static enum lmq_status
run_once(struct run *run, int *code, struct lmq_error *err)
{
    *code = EXIT_SYSTEM;
    if (!allocate(run))
        return LMQ_OK;
    enum lmq_status status = start(run, err);

    if (status == LMQ_OK && !run->is_interrupted)
        status = generate(run, err);
    if (status != LMQ_OK && run->n_made > 0 && !wants_data(run->arguments)) {
        putchar('\n'); /* what went wrong is no part of the text */
        fflush(stdout);
    }
    if (status == LMQ_OK)
        *code = finish(run, err);
    return status;
}

/* An answer may take all of the context, if nothing else is said. */
static int
run_chat(struct run *run)
{
    const char *stop = lmq_chat_stop(run->chat);
    size_t n = lmq_session_context(run->session);

    if (!has_option(run->arguments, "tokens") || run->n_most > n)
        run->n_most = n;
    if (stop != NULL)
        run->stops.texts[run->stops.n_texts++] = stop;
    return allocate(run) ? converse(run) : EXIT_SYSTEM;
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

    if (has_option(arguments, "chat-format") &&
        strcmp(option_text(arguments, "chat-format"), "list") == 0)
        return has_option(arguments, "json") || has_option(arguments, "yaml")
                   ? usage_error(arguments->command,
                                 "--chat-format=list is a table, not JSON or "
                                 "YAML")
                   : list_formats();
    if (!check_format(arguments) || !check_options(arguments) ||
        !open_options(arguments, &open) ||
        !parse_sampling(arguments, &sampling) ||
        !option_integer(arguments, "tokens", 0, 100000000, &n) ||
        !option_integer(arguments, "ctx", 2, 1 << 28 /* LMQ_MAX_CONTEXT */,
                        &context) ||
        !option_choice(arguments, "kv", &session.kv) ||
        !option_choice(arguments, "activations", &session.activations) ||
        !thread_option(arguments, &session.threads) || !find_stops(&run) ||
        !start_progress(arguments, "", &run.state, &run.progress))
        return EXIT_USAGE;
    end_progress(&run.state);
    run.state.style = 0; /* the text itself is the progress */
    session.context = (size_t)context;
    run.n_most = (size_t)n;
    if (!read_prompt(&run, &code))
        return code;
    enum lmq_status status = set_up(&run, &open, &session, &sampling, &err);
    if (status == LMQ_OK && run.chat != NULL)
        code = run_chat(&run);
    else if (status == LMQ_OK)
        status = run_once(&run, &code, &err);
    if (status != LMQ_OK)
        code = report_error(&err);
    tear_down(&run);
    return code;
}

const struct command command_run = {
    .name = "run",
    .summary = "generate text",
    .operands = "CHECKPOINT [PROMPT]",
    .about =
        "Continues PROMPT, or standard input if that is '-', or what is in a "
        "file; with\n--chat answers it, and then each line of standard input. "
        "Takes a checkpoint of\nany format: int8 weights of a container are "
        "multiplied as they are, floats are\ncomputed in float32. When the "
        "context is full, the first four tokens and the\nlatest stay, half "
        "of the context in all.",
    .least = 0, /* for a list */
    .most = 2,
    .texts = 1,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .choices = computing_choices,
    .run = run_command,
};
