/*
 * others.c - journals and files of others, as they are at this time.
 */
#include "config.h"

#include "convert/sets/others.h"

#include <stdlib.h>

#include "base/error.h"
#include "convert/sets/journal.h"

/* Its journal has been found. */
static enum lmq_status
take(struct lmq_others *others, struct lmq_plan *plan, const char *path,
     uint32_t member, struct lmq_journal *journal, struct lmq_error *err)
{
    struct lmq_output **output = &others->outputs[member];
    uint64_t n_zeroed = 0; /* theirs to tell */
    bool *is_there = calloc(plan->n_members, sizeof(bool));
    enum lmq_status status =
        is_there == NULL
            ? lmq_fail_nomem(err)
            : lmq_part_look(path, plan->members[member].layout.file_size,
                            output, err);

    if (status == LMQ_OK && *output != NULL) {
        is_there[member] = true;
        status = lmq_journal_restore(journal, plan, others->outputs,
                                     member + 1, is_there, &n_zeroed, err);
    }
    free(is_there);
    return status;
}

/* All of them, before one of them changes what the plan knows. */
static enum lmq_status
look(struct lmq_journal **journals, const struct lmq_plan *plan,
     const struct lmq_member_files *files, uint32_t own, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 0; i < files->n_paths && status == LMQ_OK; i++)
        if (i + 1 != own)
            status = lmq_journal_look(files->paths[i], plan, &journals[i],
                                      err);
    return status;
}

enum lmq_status
lmq_others_find(struct lmq_others *others, struct lmq_plan *plan,
                const struct lmq_member_files *files, uint32_t own,
                struct lmq_error *err)
{
    size_t n = files->n_paths;
    struct lmq_journal **journals = calloc(n, sizeof(*journals));

    others->n = n;
    others->outputs = calloc(n, sizeof(struct lmq_output *));
    enum lmq_status status = journals == NULL || others->outputs == NULL
                                 ? lmq_fail_nomem(err)
                                 : look(journals, plan, files, own, err);
    for (uint32_t i = 0; i < n && status == LMQ_OK; i++)
        if (journals[i] != NULL)
            status =
                take(others, plan, files->paths[i], i, journals[i], err);
    for (uint32_t i = 0; i < n && journals != NULL; i++)
        lmq_journal_close(journals[i]);
    free(journals);
    return status;
}

void
lmq_others_free(struct lmq_others *others)
{
    for (size_t i = 0; i < others->n && others->outputs != NULL; i++)
        lmq_output_abort(others->outputs[i]);
    free(others->outputs);
    *others = (struct lmq_others){0};
}
