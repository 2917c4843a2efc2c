/*
 * cmd_diff.c - lmquant diff.
 */
#include "config.h"

#include <stdio.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "gate", "'METRIC<=X'",
     "exit with 4 unless it holds; METRIC is a dotted\n"
     "key of the JSON, as in 'snr_db>=40'; repeatable"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

static void
print_names(const struct lmq_report *names, const char *text)
{
    for (size_t i = 0; i < lmq_report_length(names); i++)
        printf("%s: %s\n", text,
               lmq_report_string(lmq_report_item(names, i), ""));
}

static void
print_row(const char *name, const struct lmq_report *row)
{
    double snr = lmq_report_number(row, "snr_db");

    print_name(name, 38);
    if (lmq_report_number(row, "different_elements") == 0) {
        puts(" identical");
        return;
    }
    printf(" %10.3g %10.3g ", lmq_report_number(row, "max_error"),
           lmq_report_number(row, "rms_error"));
    if (snr == snr)
        printf("%7.1f", snr);
    else
        printf("%7s", "-");
    printf(" %10.7f\n", lmq_report_number(row, "cosine"));
}

static void
print_summary(const struct lmq_report *report)
{
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");
    const struct lmq_report *shapes = lmq_report_at(report, "other_shapes");

    printf("%-38s %10s %10s %7s %10s\n", "tensor", "max error", "rms error",
           "SNR dB", "cosine");
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *row = lmq_report_item(tensors, i);
        print_row(lmq_report_string(row, "name"), row);
    }
    print_row("all of them", report);
    for (size_t i = 0; i < lmq_report_length(shapes); i++)
        printf("another shape: %s\n",
               lmq_report_string(lmq_report_item(shapes, i), "name"));
    print_names(lmq_report_at(report, "only_in_a"), "only in the first");
    print_names(lmq_report_at(report, "only_in_b"), "only in the second");
    if (lmq_report_number(report, "identical") != 0)
        puts("the checkpoints are identical");
}

static enum lmq_status
compare(const struct arguments *arguments, int threads,
        const struct lmq_open_options *open,
        const struct lmq_progress *progress, struct lmq_report **report,
        struct lmq_error *err)
{
    struct lmq_checkpoint *a = NULL, *b = NULL;
    enum lmq_status status =
        lmq_checkpoint_open(arguments->operands[0], open, &a, err);

    if (status == LMQ_OK)
        status = lmq_checkpoint_open(arguments->operands[1], open, &b, err);
    if (status == LMQ_OK)
        status = lmq_diff(a, b, threads, progress, report, err);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return status;
}

static int
run(const struct arguments *arguments)
{
    struct lmq_open_options open;
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_report *report = NULL;
    struct lmq_error err;
    int threads;

    if (!check_gates(arguments) || !open_options(arguments, &open) ||
        !thread_option(arguments, &threads) ||
        !start_progress(arguments, "weights", &state, &progress))
        return EXIT_USAGE;
    enum lmq_status status =
        compare(arguments, threads, &open, &progress, &report, &err);
    end_progress(&state);
    if (status != LMQ_OK)
        return report_error(&err);
    int code = apply_gates(arguments, report);
    if (!print_report(arguments, report) && !has_option(arguments, "quiet"))
        print_summary(report);
    lmq_report_free(report);
    return code;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare two checkpoints tensor by tensor",
    .operands = "CHECKPOINT CHECKPOINT",
    .about = "Compares the tensors of two checkpoints of any formats: largest "
             "and root mean\nsquare error, signal to noise, cosine; and which "
             "tensors only one of them has.",
    .least = 2,
    .most = 2,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .run = run,
};
