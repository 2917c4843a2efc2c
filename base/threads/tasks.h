/*
 * tasks.h - work in pieces over threads, with errors and merges in order.
 *
 * Pieces come one after the other from next(), which fills in the slot that
 * it is given; piece() works on a slot with the state of one worker; merge()
 * adds what came of it to the whole. When a window of slots has been worked
 * on, whoever waits is told how far it is. All but piece() are called from the
 * thread that called lmq_tasks_run(), one at a time.
 *
 * Nothing depends on who did what, or when:
 *
 *   - What piece() gives follows from its slot alone. The state of a worker
 *     is room to work in; what it holds before does not matter. (It may
 *     gather what has no order, such as "some element was rounded".)
 *   - The slots are merged in the order of next(), so sums of floats and
 *     checksums are added up as one thread would.
 *   - Pieces are taken in that order too. So when one fails, all before it
 *     have been taken and are finished; of those that failed, the first in
 *     order is also the first that one thread would have met, and its error
 *     is the one that is told. Nothing of its window is merged.
 *   - Windows end after a number of pieces, not after a time.
 */
#ifndef LMQ_BASE_TASKS_H
#define LMQ_BASE_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/threads/team.h"

/* ---- Who works ---- */

/* A team, and a state of `size` bytes for each member; zero: none yet. */
struct lmq_workers {
    struct lmq_team *team;
    size_t n, size;
    unsigned char *states;
    void (*clear)(void *state);
};

/* `threads` as lmq_threads() has it, at most `most`. make() fills in a state
 * of zeros, or returns false without memory; clear() gives back what a state
 * holds, also one that is half made or all zero. Both may be NULL. */
enum lmq_status lmq_workers_open(struct lmq_workers *workers, int threads,
                                 size_t most, size_t size,
                                 bool (*make)(void *state,
                                              const void *context),
                                 void (*clear)(void *state),
                                 const void *context, struct lmq_error *err);
void lmq_workers_close(struct lmq_workers *workers);

static inline void *
lmq_workers_state(const struct lmq_workers *workers, size_t member)
{
    return workers->states + member * workers->size;
}

/* ---- What they do ---- */

struct lmq_tasks {
    size_t window; /* slots */
    void *context;
    /* Describes the next piece; false behind the last one. */
    bool (*next)(void *context, size_t slot);
    enum lmq_status (*piece)(void *context, size_t slot, void *state,
                             struct lmq_error *err);
    /* May be NULL; other than LMQ_OK ends the work. */
    enum lmq_status (*merge)(void *context, size_t slot,
                             struct lmq_error *err);
    const struct lmq_counter *counter; /* merge() counts; may be NULL */
};

enum lmq_status lmq_tasks_run(const struct lmq_tasks *tasks,
                              const struct lmq_workers *workers,
                              struct lmq_error *err);

/* ---- Ranges ---- */

/* Slots of ranges are below this. */
#define LMQ_RANGES 256

/* What most pieces are: a part of [0, whole), and the slot that it is in, for
 * what comes of it. */
struct lmq_range {
    uint64_t at;
    size_t n, slot;
};

struct lmq_ranges {
    uint64_t whole;
    size_t chunk; /* ranges are as long; the last has the rest */
    void *context;
    enum lmq_status (*piece)(void *context, const struct lmq_range *range,
                             void *state, struct lmq_error *err);
    /* May be NULL. */
    void (*merge)(void *context, const struct lmq_range *range);
    /* May be NULL; each range that is finished is added. */
    struct lmq_counter *counter;
};

/* Works on all ranges of the whole, as lmq_tasks_run() does. */
enum lmq_status lmq_tasks_over(const struct lmq_ranges *ranges,
                               const struct lmq_workers *workers,
                               struct lmq_error *err);

#endif
