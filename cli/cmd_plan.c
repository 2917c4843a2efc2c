/*
 * cmd_plan.c - lmquant plan.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "text", "TEXT", "what it is measured over; repeatable"},
    {0, "tokens", "FILE", "raw little-endian ids instead of text"},
    {0, "target-size", "SIZE", "bytes of the container at most, as in 90M"},
    {0, "target-bits", "X", "bits per weight at most"},
    {0, "target-kld", "X", "mean divergence at most, with the least bytes"},
    {'o', "output", "FILE.yaml",
     "write the recipe, for convert --recipe; of a part:\n"
     "what it has found (FILE.json)"},
    {0, "report", "FILE.html", "write a page with the curve"},
    {'f', "force", NULL, "replace an existing recipe and page"},
    {0, "rotate", NULL,
     "weigh rotated encodings too, which lose less, but are\n"
     "exported as other integers"},
    {0, "kv", "TYPE",
     "keys and values: f32 (default), f16, f16-q8, q8, or\n"
     "auto: the fewest bytes that add little; for run --kv"},
    {0, "part", "I/N",
     "measure only what is due to part I of N: the files of\n"
     "all parts, behind CHECKPOINT, make the plan"},
    {'c', "ctx", "N",
     "tokens of a window (512, or what the model has\n"
     "room for)"},
    {0, "split-documents", NULL,
     "each paragraph (blank lines between) begins anew"},
    {0, "max-tokens", "N",
     "of the text, spread over it (16384; 65536 for the\n"
     "choice where it stays uncertain)"},
    {'m', "memory", "SIZE", "for the buffers, as in 4G (half of what is free)"},
    {0, "no-verify", NULL, "do not compare the checksums of a container"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

static const char *const kv_choices[] = {"f32", "f16", "f16-q8", "q8", "auto",
                                         NULL};
static const struct choice choices[] = {{"kv", kv_choices}, {NULL, NULL}};

#define LEAST_TARGET 1e-12

/* What the options say. */
struct wishes {
    struct lmq_planning_options plan;
    struct lmq_session_options session;
    struct lmq_open_options open;
    const char *texts[MAX_OCCURRENCES];
};

static bool
parse(const struct arguments *arguments, struct wishes *wishes)
{
    const long max_context = 1 << 28; /* LMQ_MAX_CONTEXT */
    struct lmq_planning_options *plan = &wishes->plan;
    struct lmq_session_options *session = &wishes->session;
    long ctx = 0, max_tokens = 0;

    *session = (struct lmq_session_options){.size = sizeof(*session)};
    *plan = (struct lmq_planning_options){
        .size = sizeof(*plan),
        .session = session,
        .texts = wishes->texts,
        .n_texts = (size_t)option_texts(arguments, "text", wishes->texts,
                                        MAX_OCCURRENCES),
        .tokens = option_text(arguments, "tokens"),
        .page = option_text(arguments, "report"),
        .skips_checksums = has_option(arguments, "no-verify"),
        .replaces = has_option(arguments, "force"),
        .rotates = has_option(arguments, "rotate"),
        .splits_documents = has_option(arguments, "split-documents"),
        .measured = arguments->operands + 1,
        .n_measured = (size_t)arguments->n_operands - 1,
    };
    if (!option_part(arguments, "part", MAX_PARTS - 1, &plan->part,
                     &plan->n_parts) ||
        !option_size(arguments, "target-size", 1000, &plan->target_size) ||
        !option_real(arguments, "target-bits", LEAST_TARGET, 64,
                     &plan->target_bits) ||
        !option_real(arguments, "target-kld", LEAST_TARGET, 1000,
                     &plan->target_kld) ||
        !option_integer(arguments, "ctx", 2, max_context, &ctx) ||
        !option_integer(arguments, "max-tokens", 1, 2000000000, &max_tokens) ||
        !option_size(arguments, "memory", 1024, &plan->memory) ||
        !option_choice(arguments, "kv", &session->kv) ||
        !thread_option(arguments, &session->threads) ||
        !open_options(arguments, &wishes->open))
        return false;
    plan->chooses_kv =
        session->kv != NULL && strcmp(session->kv, "auto") == 0;
    if (plan->chooses_kv)
        session->kv = NULL;
    session->context = (size_t)ctx;
    plan->max_tokens = (size_t)max_tokens;
    return true;
}

static bool
is_dash(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* What one would see only when the work is done, or half of it. */
static bool
check_together(const struct arguments *arguments,
               const struct lmq_planning_options *plan)
{
    const struct command *command = arguments->command;
    const char *output = option_text(arguments, "output");
    int n_targets = has_option(arguments, "target-size") +
                    has_option(arguments, "target-bits") +
                    has_option(arguments, "target-kld");

    if (plan->n_parts > 0 &&
        (n_targets > 0 || plan->page != NULL || plan->n_measured > 0))
        usage_error(command,
                    "--part measures; %s for what makes the plan of all parts",
                    n_targets > 0        ? "a target is"
                    : plan->page != NULL ? "--report is"
                                         : "their files are");
    else if (plan->n_parts > 0 && output != NULL && wants_data(arguments))
        usage_error(command, "--part writes the measurements as JSON: either "
                             "to -o, or to standard output");
    else if (n_targets > 1 || (n_targets == 0 && plan->n_parts == 0))
        usage_error(command, n_targets == 0
                                 ? "name a target: --target-size, "
                                   "--target-bits or --target-kld"
                                 : "--target-size, --target-bits and "
                                   "--target-kld exclude each other");
    else if (is_dash(output) || is_dash(plan->page))
        usage_error(command,
                    "--%s cannot be standard output; './-' is a file of that "
                    "name",
                    is_dash(output) ? "output" : "report");
    else if (is_where_output_goes(plan->page))
        usage_error(command, "--report=%s is where standard output goes",
                    plan->page);
    else if (plan->n_texts == 0 && plan->tokens == NULL)
        usage_error(command, "name a text: --text=FILE");
    else if (plan->n_texts > 0 && plan->tokens != NULL)
        usage_error(command, "--tokens is in place of --text");
    else
        return (output == NULL ||
                check_output_name(output,
                                  plan->n_parts > 0 ? ".json" : ".yaml")) &&
               (plan->page == NULL || check_output_name(plan->page, ".html"));
    return false;
}

static bool
take_wishes(const struct arguments *arguments, struct wishes *wishes)
{
    return parse(arguments, wishes) &&
           check_together(arguments, &wishes->plan);
}

static int
check(const struct arguments *arguments)
{
    struct wishes wishes;

    return take_wishes(arguments, &wishes) ? EXIT_DONE : EXIT_USAGE;
}

/* ---- Output ---- */

static void
print_points(const struct lmq_report *list, bool has_names)
{
    char bytes[TEXT_SIZE];

    for (size_t i = 0; i < lmq_report_length(list); i++) {
        const struct lmq_report *point = lmq_report_item(list, i);
        printf("  %-13s %10s %8.2f %12.3e\n",
               has_names ? lmq_report_string(point, "name") : "plan",
               format_bytes(lmq_report_number(point, "bytes"), bytes),
               lmq_report_number(point, "bits_per_weight"),
               lmq_report_number(point, "kld"));
    }
}

/* What the plan spends bits on, and where it saves them. */
static void
print_tensors(const struct lmq_report *tensors)
{
    printf("\n%-24s %-13s %6s %12s\n", "tensor", "becomes", "bits",
           "divergence");
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        double group = lmq_report_number(tensor, "group");
        char text[TEXT_SIZE];
        snprintf(text, sizeof(text),
                 group == group ? "%.8s/%.0f%s" : "%.8s",
                 lmq_report_string(tensor, "encoding"), group,
                 lmq_report_number(tensor, "rotated") > 0 ? " rotated" : "");
        print_name(lmq_report_string(tensor, "name"), 24);
        printf(" %-13s %6.2f %12.3e\n", text,
               lmq_report_number(tensor, "bits_per_weight"),
               lmq_report_number(tensor, "kld"));
    }
}

static void
print_kv(const struct lmq_report *kv)
{
    const struct lmq_report *types = lmq_report_at(kv, "types");
    char bytes[TEXT_SIZE];

    if (kv == NULL)
        return;
    printf("\n  %-13s %10s %8s %12s\n", "keys, values", "a token", "",
           "divergence");
    for (size_t i = 0; i < lmq_report_length(types); i++) {
        const struct lmq_report *type = lmq_report_item(types, i);
        printf("  %-13s %10s %8s %12.3e\n", lmq_report_string(type, "type"),
               format_bytes(lmq_report_number(type, "bytes_per_token"), bytes),
               "", lmq_report_number(type, "kld"));
    }
    printf("run --kv=%s takes the fewest bytes that add no more than %.2e\n",
           lmq_report_string(kv, "chosen"), lmq_report_number(kv, "may_add"));
}

static void
print_plan(const struct arguments *arguments, const struct lmq_report *r)
{
    const struct lmq_report *p = lmq_report_at(r, "prediction");
    const char *output = option_text(arguments, "output");
    char bytes[TEXT_SIZE];

    printf("divergence %.3e (%.2e to %.2e), %s, %.3f bits per weight\n",
           lmq_report_number(p, "kld"), lmq_report_number(p, "low"),
           lmq_report_number(p, "high"),
           format_bytes(lmq_report_number(p, "bytes"), bytes),
           lmq_report_number(p, "bits_per_weight"));
    printf("measured over %.0f tokens; no choice is estimated to be ",
           lmq_report_number(r, "scored"));
    if (lmq_report_number(p, "gap") >= 0.00005)
        printf("more than %.2f %% ", 100 * lmq_report_number(p, "gap"));
    puts(has_option(arguments, "target-kld") ? "smaller" : "better");
    printf("\n  %-13s %10s %8s %12s\n", "all", "size", "bits", "divergence");
    print_points(lmq_report_at(r, "uniform"), true);
    if (has_option(arguments, "verbose")) {
        printf("\n  %-13s %10s %8s %12s\n", "front", "size", "bits",
               "estimated");
        print_points(lmq_report_at(r, "front"), false);
        print_tensors(lmq_report_at(r, "tensors"));
    }
    print_kv(lmq_report_at(r, "kv"));
    printf("\n%s", lmq_report_string(r, "recipe"));
    if (output != NULL)
        printf("\nconvert --recipe='%s' makes it\n", output);
    printf("\n%.1f s\n", lmq_report_number(r, "seconds"));
}

static int
show(const struct arguments *arguments, struct progress_state *state,
     const struct lmq_report *report)
{
    print_notes(arguments, report);
    int shown = finish_report(state);
    if (shown >= 0)
        return shown;
    if (!has_option(arguments, "quiet"))
        print_plan(arguments, report);
    return EXIT_DONE;
}

static int
make_plan(const struct planning *planning,
          const struct lmq_planning_options *plan)
{
    struct lmq_report *report = NULL;
    struct lmq_error err;
    enum lmq_status status = lmq_plan_recipe(
        planning->checkpoint, option_text(planning->arguments, "output"),
        plan, planning->progress, &report, &err);

    end_progress(planning->state);
    if (status != LMQ_OK)
        return approval_error(planning->state, &err);
    int code = show(planning->arguments, planning->state, report);
    lmq_report_free(report);
    return code;
}

/* ---- Parts ---- */

static int
keep_part(const struct arguments *arguments, const struct lmq_report *part)
{
    const char *path = option_text(arguments, "output");
    struct lmq_error err;
    char *text;

    print_notes(arguments, part);
    if (path != NULL &&
        lmq_plan_write_part(part, path, has_option(arguments, "force"),
                            &err) != LMQ_OK)
        return report_error(&err);
    if (path != NULL) {
        if (!has_option(arguments, "quiet"))
            printf("part %.0f of %.0f: %.0f measurements, %.1f s\n",
                   lmq_report_number(part, "part"),
                   lmq_report_number(part, "parts"),
                   lmq_report_number(part, "measured"),
                   lmq_report_number(part, "seconds"));
        return EXIT_DONE;
    }
    if (lmq_report_text(part, LMQ_REPORT_JSON, &text, &err) != LMQ_OK)
        return report_error(&err);
    fputs(text, stdout);
    lmq_text_free(text);
    return EXIT_DONE;
}

/* One of a cluster, or of the ranks, whose first goes on. What a part writes
 * is looked at before the work as a page is. */
static int
measure_part(const struct planning *planning, const struct ranks *ranks)
{
    struct lmq_planning_options plan = *planning->options;
    const char *output = option_text(planning->arguments, "output");
    struct lmq_report *part = NULL;
    struct lmq_error err;

    if (ranks->n > 1) {
        plan.part = ranks->rank + 1;
        plan.n_parts = ranks->n;
    } else {
        plan.page = output;
        output = NULL;
    }
    enum lmq_status status =
        lmq_plan_recipe(planning->checkpoint, output, &plan,
                        planning->progress, &part, &err);
    end_progress(planning->state);
    int code = status != LMQ_OK ? report_error(&err)
               : ranks->n > 1 ? plan_by_ranks(planning, ranks, part)
                              : keep_part(planning->arguments, part);
    lmq_report_free(part);
    return code;
}

static int
run(const struct arguments *arguments)
{
    struct wishes wishes;
    const struct lmq_planning_options *plan = &wishes.plan;
    struct lmq_checkpoint *checkpoint = NULL;
    struct progress_state state;
    struct lmq_progress progress;
    struct ranks ranks = {.n = 1};
    struct lmq_error err;

    if (!take_wishes(arguments, &wishes) ||
        !start_progress(arguments, "", &state, &progress))
        return EXIT_USAGE;
    progress.approve = approve_report;
    if (plan->n_parts == 0 && plan->n_measured == 0 &&
        !start_ranks(arguments, &ranks))
        return EXIT_USAGE;
    if (ranks.n > 1 && !have_texts(arguments))
        return end_ranks(&ranks, EXIT_USAGE);
    int code;
    if (lmq_checkpoint_open(arguments->operands[0], &wishes.open,
                            &checkpoint, &err) != LMQ_OK) {
        code = report_error(&err);
    } else {
        const struct planning planning = {arguments, checkpoint, plan,
                                          &progress,  &state,     make_plan};
        code = ranks.n > 1 || plan->n_parts > 0
                   ? measure_part(&planning, &ranks)
                   : make_plan(&planning, plan);
    }
    lmq_checkpoint_close(checkpoint);
    return end_ranks(&ranks, code);
}

const struct command command_plan = {
    .name = "plan",
    .summary = "find the best recipe under a budget",
    .operands = "CHECKPOINT [PART.json...]",
    .about =
        "Measures over a text what each matrix of CHECKPOINT loses in fewer "
        "bits,\nchooses an encoding for each so that the whole keeps to a "
        "target, and measures\nwhat that gives. The recipe is for 'convert "
        "--recipe'.\nWith --part many machines share the measuring out; PARTs "
        "are what they found.",
    .least = 1,
    .most = MAX_PARTS,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .choices = choices,
    .check = check,
    .run = run,
};
