/*
 * journal_stage.h - lines of a journal that say how far the outputs came: that
 * they get their names now, what they are known by then, and that they did not.
 */
#ifndef LMQ_CONVERT_SETS_JOURNAL_STAGE_H
#define LMQ_CONVERT_SETS_JOURNAL_STAGE_H

#include <jansson.h>

#include "base/files/part.h"

struct lmq_journal_stage {
    enum lmq_part_stage stage;
    json_t *files; /* of the last line that said so: member, and its mark */
};

extern const char lmq_journal_undone[];

/* False if the line is about something else. */
bool lmq_journal_stage_take(struct lmq_journal_stage *stage, const char *line);
void lmq_journal_stage_free(struct lmq_journal_stage *stage);

/* [member, mark], to be appended to the line's list. */
json_t *lmq_journal_stage_file(uint32_t member,
                               const struct lmq_part_mark *mark);
json_t *lmq_journal_stage_commit(json_t *files);

/* What a member was known by, from 0; all 0 if it got no name. */
struct lmq_part_mark
lmq_journal_stage_mark(const struct lmq_journal_stage *stage, uint32_t member);

#endif
