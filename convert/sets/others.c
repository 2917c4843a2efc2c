/*
 * others.c - journals and files of others, as they are at this time.
 */
#include "config.h"

#include "convert/sets/others.h"

#include <stdlib.h>

#include "base/error.h"
#include "convert/sets/journal.h"

/* Whatever it says is read again before it is believed. */
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
    return status == LMQ_ERR_NOMEM ? status : LMQ_OK;
}

enum lmq_status
lmq_others_find(struct lmq_others *others, struct lmq_plan *plan,
                const json_t *header, const struct lmq_member_files *files,
                uint32_t own, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    others->n = files->n_paths;
    others->outputs = calloc(others->n, sizeof(struct lmq_output *));
    if (others->outputs == NULL)
        return lmq_fail_nomem(err);
    for (uint32_t i = 0; i < others->n && status == LMQ_OK; i++) {
        struct lmq_journal *journal = NULL;
        if (i + 1 == own)
            continue;
        status = lmq_journal_look(files->paths[i], header, &journal, err);
        if (status == LMQ_OK && journal != NULL)
            status = take(others, plan, files->paths[i], i, journal, err);
        lmq_journal_close(journal);
    }
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
