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
    char cosine[TEXT_SIZE];

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
    printf(" %10s\n",
           format_figure("%.7f", lmq_report_number(row, "cosine"), cosine));
}

static void
print_shape(const struct lmq_report *shape)
{
    for (size_t i = 0; i < lmq_report_length(shape); i++)
        printf("%s%.0f", i == 0 ? "" : "x",
               lmq_report_number(lmq_report_item(shape, i), ""));
}

/* Identical ones, which stand last, in one line. */
static void
print_tensors(const struct lmq_report *tensors)
{
    size_t n = lmq_report_length(tensors), n_different = 0;

    while (n_different < n &&
           lmq_report_number(lmq_report_item(tensors, n_different),
                             "different_elements") != 0)
        n_different++;
    if (n_different > 0)
        printf("%-38s %10s %10s %7s %10s\n", "tensor, the worst first",
               "max error", "rms error", "SNR dB", "cosine");
    for (size_t i = 0; i < n_different; i++) {
        const struct lmq_report *row = lmq_report_item(tensors, i);
        print_row(lmq_report_string(row, "name"), row);
    }
    if (n > n_different)
        printf("%zu of %zu tensor%s %s identical\n", n - n_different, n,
               n == 1 ? "" : "s", n - n_different == 1 ? "is" : "are");
}

static void
print_value(const struct lmq_report *difference, const char *key)
{
    const struct lmq_report *value = lmq_report_at(difference, key);
    double number = lmq_report_number(difference, key);

    if (number == number)
        printf("%.9g", number);
    else if (lmq_report_length(value) > 0)
        printf("a list of %zu", lmq_report_length(value));
    else if (lmq_report_string(difference, key)[0] != '\0')
        printf("%s", lmq_report_string(difference, key));
    else
        printf("the usual");
}

/* The description, the tokenizer. */
static void
print_part(const struct lmq_report *report, const char *name)
{
    const struct lmq_report *part = lmq_report_at(report, name);
    const struct lmq_report *list = lmq_report_at(part, "differences");
    bool in_a = lmq_report_number(part, "in_a") != 0;
    bool in_b = lmq_report_number(part, "in_b") != 0;

    if (in_a != in_b)
        printf("%s: only in the %s\n", name, in_a ? "first" : "second");
    else if (lmq_report_length(list) == 0)
        printf("%s: %s\n", name, in_a ? "the same" : "none");
    for (size_t i = 0; i < lmq_report_length(list); i++) {
        const struct lmq_report *row = lmq_report_item(list, i);
        printf("%s: %s is ", name, lmq_report_string(row, "key"));
        print_value(row, "a");
        printf(" in the first, ");
        print_value(row, "b");
        printf(" in the second\n");
    }
}

static void
print_summary(const struct lmq_report *report)
{
    const struct lmq_report *shapes = lmq_report_at(report, "other_shapes");

    print_tensors(lmq_report_at(report, "tensors"));
    if (lmq_report_number(report, "different_elements") > 0)
        print_row("all of them", report);
    for (size_t i = 0; i < lmq_report_length(shapes); i++) {
        const struct lmq_report *row = lmq_report_item(shapes, i);
        printf("another shape: %s: ", lmq_report_string(row, "name"));
        print_shape(lmq_report_at(row, "shape"));
        printf(" in the first, ");
        print_shape(lmq_report_at(row, "other_shape"));
        printf(" in the second\n");
    }
    print_names(lmq_report_at(report, "only_in_a"), "only in the first");
    print_names(lmq_report_at(report, "only_in_b"), "only in the second");
    print_part(report, "description");
    print_part(report, "tokenizer");
    if (lmq_report_number(report, "identical") != 0)
        puts("the checkpoints are identical");
}

/* No difference was found where none was looked for. */
static int
refuse_strangers(const struct arguments *arguments,
                 const struct lmq_report *report)
{
    fprintf(stderr,
            "lmquant: %s: shares no tensor with %s: by role and by name, %zu "
            "are only in the first, %zu only in the second, %zu have another "
            "shape\n",
            lmq_report_string(report, "a"), lmq_report_string(report, "b"),
            lmq_report_length(lmq_report_at(report, "only_in_a")),
            lmq_report_length(lmq_report_at(report, "only_in_b")),
            lmq_report_length(lmq_report_at(report, "other_shapes")));
    fputs("hint: inspect --tensors lists what each of them has\n", stderr);
    return has_option(arguments, "gate") ? EXIT_GATE : EXIT_INPUT;
}

static enum lmq_status
compare(const struct arguments *arguments,
        const struct lmq_diff_options *diff,
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
        status = lmq_diff(a, b, diff, progress, report, err);
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
    struct lmq_diff_options diff = LMQ_OPTIONS(struct lmq_diff_options);

    if (!check_gates(arguments) || !open_options(arguments, &open) ||
        !thread_option(arguments, &diff.threads) ||
        !start_progress(arguments, "weights", &state, &progress))
        return EXIT_USAGE;
    enum lmq_status status =
        compare(arguments, &diff, &open, &progress, &report, &err);
    end_progress(&state);
    if (status != LMQ_OK)
        return report_error(&err);
    int code = apply_gates(arguments, report);
    if (code == EXIT_SYSTEM || code == EXIT_USAGE) {
        lmq_report_free(report);
        return code;
    }
    int shown = print_report(arguments, report);
    if (shown < 0 && !has_option(arguments, "quiet"))
        print_summary(report);
    if (lmq_report_number(report, "compared") == 0)
        code = refuse_strangers(arguments, report);
    lmq_report_free(report);
    return shown > 0 ? shown : code;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare two checkpoints tensor by tensor",
    .operands = "CHECKPOINT CHECKPOINT",
    .about = "Compares the tensors of two checkpoints of any formats: largest "
             "and root mean\nsquare error, signal to noise, cosine; and which "
             "tensors only one of them has.\nAlso compares their descriptions, "
             "and their tokenizers by what they do.",
    .least = 2,
    .most = 2,
    .common = COMMON_WORK | COMMON_OPEN,
    .only_reads = true,
    .options = options,
    .run = run,
};
