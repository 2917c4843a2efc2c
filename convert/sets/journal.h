/*
 * journal.h - what a conversion has done so far, so that another process can
 * go on with it.
 *
 * A line for each tensor that is written, with its checksums and what was
 * measured; from time to time one that says that all before it is on the disk.
 * A tensor that was written after that is read again before it is believed.
 */
#ifndef LMQ_CONVERT_SETS_JOURNAL_H
#define LMQ_CONVERT_SETS_JOURNAL_H

#include "base/files/part.h"
#include "convert/plan.h"
#include "convert/sets/journal_stage.h"

#define LMQ_JOURNAL_ENDING ".journal"

struct lmq_journal;

/* Beside the output; the caller frees it; NULL without memory. */
char *lmq_journal_path(const char *output);

/* Of this path; made if it is not there, and then it says what was `given`. Its
 * header must be this one (journal_header.h), or LMQ_ERR_ARG says what is
 * different. */
enum lmq_status lmq_journal_open(const char *path, const json_t *header,
                                 json_t *given, struct lmq_journal **out,
                                 struct lmq_error *err);
/* What another process that writes `output` says at this time; nothing can be
 * added. NULL if it says nothing, or what is no use: damaged, or of another
 * conversion. */
enum lmq_status lmq_journal_look(const char *output, const json_t *header,
                                 struct lmq_journal **out,
                                 struct lmq_error *err);
/* What was given to the conversion that is to be at `output`, and how far it
 * came. */
enum lmq_status lmq_journal_given(const char *output, json_t **given,
                                  enum lmq_part_stage *stage,
                                  struct lmq_error *err);
/* Whether something had come to the disk when it was opened: so all of it has
 * its size. */
bool lmq_journal_is_synced(const struct lmq_journal *journal);
/* How far the outputs came, before it was opened. */
const struct lmq_journal_stage *
lmq_journal_stage(const struct lmq_journal *journal);

/* Fills in what is done, in the plan and in what is known of its sources: of
 * all members, or only of one, from 1. `outputs` are those of the members,
 * is_there[i] whether it was begun. */
enum lmq_status lmq_journal_restore(struct lmq_journal *journal,
                                    struct lmq_plan *plan,
                                    struct lmq_output *const *outputs,
                                    uint32_t only, const bool *is_there,
                                    uint64_t *n_zeroed,
                                    struct lmq_error *err);

/* A record is written for good. */
enum lmq_status lmq_journal_add(struct lmq_journal *journal,
                                const struct lmq_plan *plan, size_t index,
                                uint64_t n_zeroed, struct lmq_error *err);

/* All that was written is on the disk. */
enum lmq_status lmq_journal_sync(struct lmq_journal *journal,
                                 struct lmq_error *err);
/* From here on outputs get their names. */
enum lmq_status lmq_journal_commit(struct lmq_journal *journal,
                                   struct lmq_error *err);
/* They did not. If this fails, the outputs are looked for when they are gone on
 * with. */
void lmq_journal_undo(struct lmq_journal *journal);
/* Leaves it there. NULL is fine. */
void lmq_journal_close(struct lmq_journal *journal);
/* All is done. */
void lmq_journal_remove(struct lmq_journal *journal);

#endif
