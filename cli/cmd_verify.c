/*
 * cmd_verify.c - lmquant verify.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "alone", NULL, "of a set of files only the one that is named"},
    {0, "against", "DIGEST",
     "the root or the content that it must have:\n"
     "sha256: and 64 hexadecimal digits"},
    {0, "json", NULL, "print the findings as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

static void
print_problems(const struct lmq_report *report)
{
    const struct lmq_report *problems = lmq_report_at(report, "problems");
    double n_files = lmq_report_number(report, "files");

    for (size_t i = 0; i < lmq_report_length(problems); i++) {
        const struct lmq_report *problem = lmq_report_item(problems, i);
        const char *name = lmq_report_string(problem, "name");
        if (strcmp(lmq_report_string(problem, "section"), "set") == 0) {
            printf("%s %s\n", lmq_report_string(problem, "file"),
                   lmq_report_string(problem, "message"));
            continue;
        }
        if (n_files != 1)
            printf("%s: ", lmq_report_string(problem, "file"));
        printf("damaged: %s%s%s at offset %.0f: %s\n",
               lmq_report_string(problem, "section"),
               name[0] == '\0' ? "" : " of ", name,
               lmq_report_number(problem, "offset"),
               lmq_report_string(problem, "message"));
    }
}

static void
print_intact(const struct lmq_report *report)
{
    double n_files = lmq_report_number(report, "files");
    double n_tensors = lmq_report_number(report, "tensors");
    double n_sections = lmq_report_number(report, "sections");
    char text[TEXT_SIZE];

    printf("%s: intact (", lmq_report_string(report, "path"));
    if (n_files > 1)
        printf("%.0f files, ", n_files);
    printf("%s, %.0f tensor%s, %.0f section%s)\n",
           format_bytes(lmq_report_number(report, "bytes"), text), n_tensors,
           plural(n_tensors), n_sections, plural(n_sections));
}

static void
print_digests(const struct lmq_report *report)
{
    const struct lmq_report *digests = lmq_report_at(report, "digests");
    const char *matches = lmq_report_string(digests, "matches");
    static const char *const names[] = {"root", "content"};

    for (size_t i = 0; i < 2; i++) {
        const char *digest = lmq_report_string(digests, names[i]);
        const char *remark = "";
        if (digest[0] == '\0')
            continue;
        if (lmq_report_number(digests, i == 0 ? "checked"
                                              : "content_checked") == 0)
            remark = " (not checked)";
        else if (strcmp(matches, names[i]) == 0)
            remark = " (as asked for)";
        printf("  %-7s %s%s\n", names[i], digest, remark);
    }
}

static int
run(const struct arguments *arguments)
{
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_report *report;
    struct lmq_error err;
    struct lmq_verify_options verify = {
        .size = sizeof(verify), .against = option_text(arguments, "against")};

    if (!thread_option(arguments, &verify.threads) ||
        !start_progress(arguments, "bytes", &state, &progress))
        return EXIT_USAGE;
    enum lmq_status status =
        (has_option(arguments, "alone") ? lmq_verify_file : lmq_verify)(
            arguments->operands[0], &verify, &progress, &report, &err);
    end_progress(&state);
    if (report == NULL)
        return report_error(&err);
    int code = print_report(arguments, report);
    if (code < 0) {
        code = EXIT_DONE;
        print_problems(report);
        if (status == LMQ_OK && !has_option(arguments, "quiet")) {
            print_intact(report);
            print_digests(report);
        }
    }
    lmq_report_free(report);
    return status == LMQ_OK || code > 0 ? code : report_error(&err);
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check every byte of a container",
    .operands = "FILE.lmq",
    .about = "Checks the structure, every checksum, the padding, and that all "
             "values and\nscales are legal, and digests if it has some. "
             "Names each damaged part. Exit\nstatus 0 if the file is intact "
             "and what was asked for, 3 if not. Of a set of\nfiles any "
             "member, or the folder, stands for all.",
    .least = 1,
    .most = 1,
    .common = COMMON_WORK,
    .only_reads = true,
    .options = options,
    .run = run,
};
