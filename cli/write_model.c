/*
 * write_model.c - what convert and export have in common: a checkpoint in, a
 * model out, and what became of it.
 */
#include "config.h"

#include "cli/command.h"

int
write_model(const struct arguments *arguments, const struct writing *writing)
{
    struct lmq_open_options open;
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report = NULL;
    struct lmq_error err;

    if (!open_options(arguments, &open) ||
        !start_progress(arguments, "weights", &state, &progress))
        return EXIT_USAGE;
    progress.approve = approve_report;
    if (lmq_checkpoint_open(arguments->operands[0], &open, &checkpoint,
                            &err) != LMQ_OK)
        return report_error(&err);
    enum lmq_status status =
        writing->write(checkpoint, arguments->operands[1], writing->options,
                       &progress, &report, &err);
    end_progress(&state);
    lmq_checkpoint_close(checkpoint);
    if (status != LMQ_OK)
        return approval_error(&state, &err);
    print_notes(arguments, report);
    int code = finish_report(&state);
    if (code < 0 && !has_option(arguments, "quiet"))
        writing->print_summary(arguments, report,
                               seconds_now() - state.started);
    lmq_report_free(report);
    return code < 0 ? EXIT_DONE : code;
}
