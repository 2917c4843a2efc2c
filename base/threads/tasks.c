/*
 * tasks.c - windows of pieces.
 */
#include "config.h"

#include "base/threads/tasks.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/size.h"
#include "base/threads/threads.h"

/* ---- Workers ---- */

enum lmq_status
lmq_workers_open(struct lmq_workers *workers, int threads, size_t most,
                 size_t size, bool (*make)(void *state, const void *context),
                 void (*clear)(void *state), const void *context,
                 struct lmq_error *err)
{
    int n = lmq_threads(threads, (int)lmq_size_min(most, 1024));

    *workers = (struct lmq_workers){0};
    if (lmq_threads_check(threads, err) != LMQ_OK)
        return LMQ_ERR_ARG;
    /* No two of them in a cache line. */
    size = (size + LMQ_MEM_ALIGN - 1) / LMQ_MEM_ALIGN * LMQ_MEM_ALIGN;
    *workers = (struct lmq_workers){.size = size, .clear = clear};
    workers->team = lmq_team_new(n);
    if (workers->team == NULL)
        return lmq_fail_nomem(err);
    workers->states = lmq_mem_aligned(lmq_team_size(workers->team), size);
    if (workers->states == NULL)
        return lmq_fail_nomem(err);
    workers->n = lmq_team_size(workers->team);
    for (size_t i = 0; i < workers->n && make != NULL; i++)
        if (!make(lmq_workers_state(workers, i), context))
            return lmq_fail_nomem(err);
    return LMQ_OK;
}

void
lmq_workers_close(struct lmq_workers *workers)
{
    for (size_t i = 0; i < workers->n && workers->clear != NULL; i++)
        workers->clear(lmq_workers_state(workers, i));
    lmq_mem_free(workers->states);
    lmq_team_free(workers->team);
    *workers = (struct lmq_workers){0};
}

/* ---- A window ---- */

struct window {
    const struct lmq_tasks *tasks;
    const struct lmq_workers *workers;
    size_t n;
    atomic_size_t n_taken;
    pthread_mutex_t lock; /* guards what follows */
    size_t failed;        /* the first in order, or n */
    enum lmq_status status;
    struct lmq_error *err;
};

static void
note_failure(struct window *window, size_t slot, enum lmq_status status,
             const struct lmq_error *error)
{
    pthread_mutex_lock(&window->lock);
    if (slot < window->failed) {
        window->failed = slot;
        window->status = status;
        if (window->err != NULL)
            *window->err = *error;
    }
    pthread_mutex_unlock(&window->lock);
    /* Those that nobody has taken come later in order. */
    atomic_store(&window->n_taken, window->n);
}

static void
work(void *context, size_t member, size_t n_members)
{
    struct window *window = context;
    const struct lmq_tasks *tasks = window->tasks;
    void *state = lmq_workers_state(window->workers, member);
    size_t slot;

    (void)n_members;
    while ((slot = atomic_fetch_add(&window->n_taken, 1)) < window->n) {
        struct lmq_error error = {0};
        enum lmq_status status =
            tasks->piece(tasks->context, slot, state, &error);
        if (status != LMQ_OK)
            note_failure(window, slot, status, &error);
    }
}

static enum lmq_status
run_window(const struct lmq_tasks *tasks, const struct lmq_workers *workers,
           size_t n, struct lmq_error *err)
{
    struct window window = {.tasks = tasks, .workers = workers, .n = n,
                            .failed = n, .err = err};
    enum lmq_status status;

    atomic_init(&window.n_taken, 0);
    pthread_mutex_init(&window.lock, NULL);
    lmq_team_run(workers->team, n, work, &window);
    pthread_mutex_destroy(&window.lock);
    status = window.status;
    for (size_t i = 0; i < n && status == LMQ_OK && tasks->merge != NULL; i++)
        status = tasks->merge(tasks->context, i, err);
    if (status == LMQ_OK && tasks->counter != NULL)
        status = lmq_counter_report(tasks->counter, err);
    return status;
}

enum lmq_status
lmq_tasks_run(const struct lmq_tasks *tasks, const struct lmq_workers *workers,
              struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    bool is_more = true;

    while (is_more && status == LMQ_OK) {
        size_t n = 0;
        while (n < tasks->window &&
               (is_more = tasks->next(tasks->context, n)))
            n++;
        if (n > 0)
            status = run_window(tasks, workers, n, err);
    }
    return status;
}

/* ---- Ranges ---- */

/* A window has so many ranges for each worker that waiting for the last of
 * them is little, and so few that reports come often. */
#define RANGES_EACH 16

struct course {
    const struct lmq_ranges *ranges;
    uint64_t next; /* that no window has yet */
    struct lmq_range slots[LMQ_RANGES];
};

static bool
next_range(void *context, size_t slot)
{
    struct course *course = context;
    struct lmq_range *range = &course->slots[slot];
    uint64_t left = course->ranges->whole - course->next;

    if (left == 0)
        return false;
    *range = (struct lmq_range){
        .at = course->next,
        .n = (size_t)lmq_u64_min(course->ranges->chunk, left),
        .slot = slot,
    };
    course->next += range->n;
    return true;
}

static enum lmq_status
work_on_range(void *context, size_t slot, void *state, struct lmq_error *err)
{
    const struct course *course = context;

    return course->ranges->piece(course->ranges->context,
                                 &course->slots[slot], state, err);
}

static enum lmq_status
merge_range(void *context, size_t slot, struct lmq_error *err)
{
    const struct course *course = context;
    const struct lmq_ranges *ranges = course->ranges;

    (void)err;
    if (ranges->merge != NULL)
        ranges->merge(ranges->context, &course->slots[slot]);
    if (ranges->counter != NULL)
        ranges->counter->done += course->slots[slot].n;
    return LMQ_OK;
}

enum lmq_status
lmq_tasks_over(const struct lmq_ranges *ranges,
               const struct lmq_workers *workers, struct lmq_error *err)
{
    struct course course = {.ranges = ranges};
    const struct lmq_tasks tasks = {
        .window = lmq_size_min(RANGES_EACH * workers->n, LMQ_RANGES),
        .context = &course,
        .next = next_range,
        .piece = work_on_range,
        .merge = merge_range,
        .counter = ranges->counter,
    };

    return lmq_tasks_run(&tasks, workers, err);
}
