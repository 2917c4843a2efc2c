/*
 * cmd_merge.c - lmquant merge.
 */
#include "config.h"

#include "cli/command.h"

static const struct option options[] = {
    {'o', "report", "FILE.html",
     "write a page with charts; '-' is standard output"},
    {'f', "force", NULL, "replace an existing page"},
    {0, "gate", "'METRIC<=X'",
     "exit with 4 unless it holds, as of validate;\nrepeatable"},
    {0, "baseline", "FILE",
     "an earlier report (--json): gates may say\n"
     "'kld.mean<=baseline*1.05'"},
    {0, "markdown", NULL, "print a table for a comment"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

static int
run(const struct arguments *arguments)
{
    const char *gates[MAX_OCCURRENCES];
    const char *html = option_text(arguments, "report");
    struct lmq_merge_options merge = {
        .size = sizeof(merge),
        .gates = gates,
        .n_gates = (size_t)option_texts(arguments, "gate", gates,
                                        MAX_OCCURRENCES),
        .baseline = option_text(arguments, "baseline"),
        .page = is_page_output(html) ? NULL : html,
        .replaces = has_option(arguments, "force"),
    };
    struct lmq_report *report = NULL;
    struct lmq_error err;

    if ((merge.page != NULL && !check_output_name(merge.page, ".html")) ||
        !check_gates(arguments) || !has_one_output(arguments))
        return EXIT_USAGE;
    if (lmq_merge(arguments->operands, (size_t)arguments->n_operands, &merge,
                  &report, &err) != LMQ_OK)
        return report_error(&err);
    if (merge.page != NULL)
        catch_signals(); /* it appears whole, or not at all */
    int code = show_outcome(arguments, report, false);
    lmq_report_free(report);
    return code;
}

const struct command command_merge = {
    .name = "merge",
    .summary = "make one report of the parts of a validation",
    .operands = "PART.json...",
    .about =
        "Makes of all parts that validate --part 1/N to N/N have written, in "
        "any order,\nthe report, the page and the gates that one run makes: "
        "the same digits. Says\nwhich parts are missing, or of another text, "
        "model, version or options.",
    .least = 1,
    .most = MAX_PARTS,
    .options = options,
    .run = run,
};
