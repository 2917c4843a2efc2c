/*
 * outcome.c - what a validation ends with, in one run or merged of its parts:
 * the page, the printed report, the gates.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"

bool
is_page_output(const char *html)
{
    return html != NULL && strcmp(html, "-") == 0;
}

bool
is_where_output_goes(const char *html)
{
    struct stat page, output;

    return html != NULL && stat(html, &page) == 0 &&
           fstat(STDOUT_FILENO, &output) == 0 && !S_ISCHR(page.st_mode) &&
           page.st_dev == output.st_dev && page.st_ino == output.st_ino;
}

bool
has_one_output(const struct arguments *arguments)
{
    const char *html = option_text(arguments, "report");
    bool has_markdown = has_option(arguments, "markdown");

    if (is_page_output(html) && (wants_data(arguments) || has_markdown))
        usage_error(arguments->command,
                    "--report=- wants standard output for itself: not with "
                    "--json, --yaml or --markdown");
    else if (!is_page_output(html) && is_where_output_goes(html))
        usage_error(arguments->command,
                    "--report=%s is where standard output goes: --report=- "
                    "alone writes the page there",
                    html);
    else if (has_markdown && wants_data(arguments))
        usage_error(arguments->command,
                    "--markdown goes without --json and --yaml");
    else
        return true;
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

int
show_outcome(const struct arguments *arguments,
             const struct lmq_report *report, bool is_partial)
{
    const char *html = option_text(arguments, "report");
    struct lmq_error err;
    char *data;
    int code;

    print_notes(arguments, report);
    if (!make_report_text(arguments, report, &data, &code))
        return code;
    if (html != NULL && write_page(arguments, html, report, &err) != LMQ_OK) {
        lmq_text_free(data);
        return report_error(&err);
    }
    int shown = print_report_text(data);
    if (shown > 0)
        return shown;
    if (has_option(arguments, "markdown"))
        print_markdown(report);
    else if (shown < 0 && !is_page_output(html) &&
             !has_option(arguments, "quiet"))
        (lmq_report_at(report, "models") == NULL
             ? print_validation
             : print_models)(arguments, report);
    return is_partial ? EXIT_SYSTEM : print_gates(report);
}
