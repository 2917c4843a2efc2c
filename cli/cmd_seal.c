/*
 * cmd_seal.c - lmquant seal.
 */
#include "config.h"

#include <stdio.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "source", "FILE", "the checkpoint, if it is no longer where it was"},
    {'f', "force", NULL, "replace an existing set"},
    {0, "json", NULL, "print the report of convert as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

static void
print_sealed(const struct lmq_report *report)
{
    size_t n = lmq_report_length(lmq_report_at(report, "files"));
    double snr = lmq_report_number(report, "totals.snr_db");
    char a[TEXT_SIZE];

    printf("%s: sealed, %zu file%s, %s", lmq_report_string(report, "output"),
           n, plural((double)n),
           format_bytes(lmq_report_number(report, "totals.output_bytes"), a));
    if (snr == snr) /* something is quantized */
        printf(", %.1f dB", snr);
    putchar('\n');
}

int
seal_folder(const struct arguments *arguments, const char *folder)
{
    struct lmq_open_options open;
    struct lmq_seal_options seal = {
        .size = sizeof(seal),
        .source = option_text(arguments, "source"),
        .open = &open,
        .replaces = has_option(arguments, "force"),
    };
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_report *report = NULL;
    struct lmq_error err;

    if (!open_options(arguments, &open) ||
        !thread_option(arguments, &seal.threads) ||
        !start_progress(arguments, "weights", &state, &progress))
        return EXIT_USAGE;
    progress.approve = approve_report;
    enum lmq_status status =
        lmq_seal(folder, &seal, &progress, &report, &err);
    end_progress(&state);
    if (status != LMQ_OK)
        return approval_error(&state, &err);
    print_notes(arguments, report);
    int code = finish_report(&state);
    if (code < 0 && lmq_report_at(report, "files") != NULL &&
        !has_option(arguments, "quiet"))
        print_sealed(report);
    lmq_report_free(report);
    return code < 0 ? EXIT_DONE : code;
}

static int
run(const struct arguments *arguments)
{
    return seal_folder(arguments, arguments->operands[0]);
}

const struct command command_seal = {
    .name = "seal",
    .summary = "complete a set that was written part by part",
    .operands = "FOLDER",
    .about =
        "Checks that FOLDER has all parts that convert --part 1/N to N/N "
        "write, whole\nand of the same source, options and version; says "
        "which are missing or\ndifferent; and gives the files their names: "
        "byte for byte what one run of\nconvert --parts N writes.",
    .least = 1,
    .most = 1,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .run = run,
};
