/*
 * team.h - threads that do one thing together and wait politely.
 *
 * A team belongs to one session or operation: it is made with it, sleeps
 * between its runs and ends with it; there is nothing global. One thread at a
 * time may have it run. The calling thread is member 0.
 *
 * Who waits looks for some microseconds whether the others are there, and
 * then sleeps, so that somebody else can have the core: on a busy machine
 * perhaps the very member that is waited for. Who was kept waiting looks for
 * a shorter time next, and who was not for a longer one; where there are more
 * members than cores nobody looks at all.
 *
 * A child of fork() has none of the threads; there a team is its caller
 * alone. What is computed may not depend on the number of members, so all of
 * that changes no result.
 */
#ifndef LMQ_BASE_TEAM_H
#define LMQ_BASE_TEAM_H

#include <stddef.h>

struct lmq_team;

/* What each member does: its number, from 0, among so many. */
typedef void lmq_team_part(void *context, size_t member, size_t n_members);

/* A team of up to `n` members; fewer if the system gives no more threads.
 * NULL without memory. Their signals are blocked, but for those of faults. */
struct lmq_team *lmq_team_new(int n);
void lmq_team_free(struct lmq_team *team);

/* How many there are, at least 1. */
size_t lmq_team_size(const struct lmq_team *team);

/* Has the first n members, or as many as there are, call `part`, and returns
 * when all of them have. Allocates nothing. */
void lmq_team_run(struct lmq_team *team, size_t n, lmq_team_part *part,
                  void *context);

/* Within a run, called by all of its members: none goes on before all are
 * there. */
void lmq_team_barrier(struct lmq_team *team, size_t member);

#endif
