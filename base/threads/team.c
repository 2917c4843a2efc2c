/*
 * team.c - starts threads, lets them wait and wakes them.
 *
 * There is one means of waiting, the gate: a number that is changed by who
 * opens it. A member waits at a gate of its own for the next run, and all
 * wait at one for the last to arrive at a barrier.
 */
#include "config.h"

#include "base/threads/team.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "base/mem.h"
#include "base/threads/threads.h"

#if defined(SYS_futex) && !defined(LMQ_WITHOUT_FUTEX)
#define HAS_FUTEX 1
#endif

/* What reading a tensor takes of a stack, many times over. */
#define STACK_SIZE ((size_t)512 << 10)
/* A short look: about what it costs to sleep and to be woken, twice; two per
 * cent of what a busy core lets somebody wait for his turn. */
#define SHORT_LOOK 50000 /* ns */
/* A long one, while nobody else wants the cores: a virtual core that sleeps
 * may be given away, for milliseconds. */
#ifdef RUSAGE_THREAD
#define LONG_LOOK 2000000
#else
#define LONG_LOOK SHORT_LOOK
#endif
/* So long after a member lost its core to somebody else looks are short: he
 * may have this one, or that member may. */
#define CROWDED 200000000
/* Looks between two glances at the clock. */
#define LOOKS 32

/* ---- Gates ---- */

struct gate {
    atomic_uint turn; /* changes when it is opened */
    atomic_uint n_asleep;
#ifndef HAS_FUTEX
    pthread_mutex_t lock;
    pthread_cond_t opened;
#endif
};

static void
gate_init(struct gate *gate)
{
    atomic_init(&gate->turn, 0);
    atomic_init(&gate->n_asleep, 0);
#ifndef HAS_FUTEX
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
#endif
}

static void
gate_free(struct gate *gate)
{
#ifndef HAS_FUTEX
    pthread_mutex_destroy(&gate->lock);
    pthread_cond_destroy(&gate->opened);
#else
    (void)gate;
#endif
}

#ifdef HAS_FUTEX

static void
sleep_at(struct gate *gate, unsigned turn)
{
    /* Returns at once if it is open already, and sometimes for no reason. */
    syscall(SYS_futex, &gate->turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
}

static void
wake_all(struct gate *gate)
{
    syscall(SYS_futex, &gate->turn, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
            0);
}

#else

static void
sleep_at(struct gate *gate, unsigned turn)
{
    pthread_mutex_lock(&gate->lock);
    if (atomic_load(&gate->turn) == turn)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void
wake_all(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

#endif

/* Either the opener sees who is about to sleep, or that one sees that the
 * gate is open: each writes its own before it reads the other's, in an order
 * that all agree on. */
static void
gate_open(struct gate *gate)
{
    atomic_fetch_add(&gate->turn, 1);
    if (atomic_load(&gate->n_asleep) > 0)
        wake_all(gate);
}

static void
gate_sleep(struct gate *gate, unsigned turn)
{
    atomic_fetch_add(&gate->n_asleep, 1);
    while (atomic_load(&gate->turn) == turn)
        sleep_at(gate, turn);
    atomic_fetch_sub(&gate->n_asleep, 1);
}

/* ---- Patience ---- */

static inline void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static int64_t
now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* How often this thread lost its core to somebody else. */
static long
times_preempted(void)
{
#ifdef RUSAGE_THREAD
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        return usage.ru_nivcsw;
#endif
    return 0;
}

/* Whether the gate opens within so many nanoseconds. */
static bool
look(struct gate *gate, unsigned turn, int64_t patience)
{
    int64_t end = 0;

    for (;;) {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&gate->turn, memory_order_acquire) !=
                turn)
                return true;
            relax();
        }
        int64_t time = now();
        if (end == 0)
            end = time + patience;
        if (time >= end)
            return false;
    }
}

/* ---- Teams ---- */

struct member {
    _Alignas(LMQ_MEM_ALIGN) struct gate start;
    struct lmq_team *team;
    size_t number;
    /* Its own thread's alone: ns at the start and at barriers. */
    int64_t start_patience, patience;
    long n_preempted;
    pthread_t thread;
};

struct lmq_team {
    size_t size;
    pid_t process; /* that has the threads */
    bool has_cores; /* one for each member */
    struct member *members;
    /* The run; a NULL part is the end. */
    lmq_team_part *part;
    void *context;
    size_t n;
    _Alignas(LMQ_MEM_ALIGN) atomic_size_t n_arrived;
    _Alignas(LMQ_MEM_ALIGN) struct gate all_arrived;
    atomic_bool is_late;            /* who arrives last, in a waiter's eyes */
    atomic_int_fast64_t crowded_to; /* when looks may be long again */
};

/* A look as long as it was worth the last times, then sleep. */
static void
wait_at(struct gate *gate, unsigned turn, const struct lmq_team *team,
        int64_t *patience, int64_t longest)
{
    if (*patience > longest)
        *patience = longest;
    if (team->has_cores && look(gate, turn, *patience)) {
        *patience += longest / 16;
        return;
    }
    *patience /= 2;
    gate_sleep(gate, turn);
}

/* Looks are long if those that were not enough did not end in a core that
 * somebody else had taken. */
static void
wait_for_last(struct gate *gate, unsigned turn, struct member *member)
{
    struct lmq_team *team = member->team;

    if (member->patience > SHORT_LOOK && team->has_cores) {
        if (look(gate, turn, SHORT_LOOK))
            return;
        atomic_store_explicit(&team->is_late, true, memory_order_relaxed);
    }
    bool is_crowded = now() < atomic_load_explicit(&team->crowded_to,
                                                   memory_order_relaxed);
    wait_at(gate, turn, team, &member->patience,
            is_crowded ? SHORT_LOOK : LONG_LOOK);
}

/* The one for whom all others wait. */
static void
be_last(struct member *member)
{
    struct lmq_team *team = member->team;

    if (!atomic_load_explicit(&team->is_late, memory_order_relaxed))
        return;
    atomic_store_explicit(&team->is_late, false, memory_order_relaxed);
    long n = times_preempted();
    if (n != member->n_preempted)
        atomic_store_explicit(&team->crowded_to, now() + CROWDED,
                              memory_order_relaxed);
    member->n_preempted = n;
}

void
lmq_team_barrier(struct lmq_team *team, size_t member)
{
    /* Neither can change before this member has arrived, and both may as soon
     * as it has. */
    size_t n = team->n;
    unsigned turn = atomic_load_explicit(&team->all_arrived.turn,
                                         memory_order_relaxed);
    if (n == 1)
        return;
    size_t before = atomic_fetch_add_explicit(&team->n_arrived, 1,
                                              memory_order_acq_rel);
    if (before + 1 < n) {
        wait_for_last(&team->all_arrived, turn, &team->members[member]);
        return;
    }
    be_last(&team->members[member]);
    atomic_store_explicit(&team->n_arrived, 0, memory_order_relaxed);
    gate_open(&team->all_arrived);
}

static void *
thread_main(void *argument)
{
    struct member *member = argument;
    struct lmq_team *team = member->team;

    for (unsigned turn = 0;; turn++) {
        wait_at(&member->start, turn, team, &member->start_patience,
                SHORT_LOOK);
        if (team->part == NULL)
            return NULL;
        team->part(team->context, member->number, team->n);
        lmq_team_barrier(team, member->number);
    }
}

/* A fault kills where it is blocked, handler or not. */
static void
block_signals(sigset_t *before)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE,
                                 SIGILL, SIGTRAP, SIGABRT};
    sigset_t blocked;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}

/* As many of the members as the system gives threads for. */
static void
start_threads(struct lmq_team *team, size_t n)
{
    pthread_attr_t attributes;
    sigset_t before;

    if (n == 1 || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    block_signals(&before);
    while (team->size < n &&
           pthread_create(&team->members[team->size].thread, &attributes,
                          thread_main, &team->members[team->size]) == 0)
        team->size++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

struct lmq_team *
lmq_team_new(int wanted)
{
    size_t n = wanted < 1 ? 1 : (size_t)wanted;
    struct lmq_team *team = lmq_mem_aligned(1, sizeof(*team));

    if (team == NULL)
        return NULL;
    team->members = lmq_mem_aligned(n, sizeof(*team->members));
    if (team->members == NULL) {
        lmq_mem_free(team);
        return NULL;
    }
    team->size = 1;
    team->process = getpid();
    team->has_cores = n > 1 && wanted <= lmq_cores();
    gate_init(&team->all_arrived);
    atomic_init(&team->is_late, false);
    atomic_init(&team->crowded_to, 0);
    for (size_t i = 0; i < n; i++) {
        team->members[i].team = team;
        team->members[i].number = i;
        team->members[i].start_patience = SHORT_LOOK;
        team->members[i].patience = LONG_LOOK;
        gate_init(&team->members[i].start);
    }
    start_threads(team, n);
    return team;
}

/* Those who hold the threads: not a child of fork(). */
static bool
has_threads(const struct lmq_team *team)
{
    return team->size > 1 && getpid() == team->process;
}

void
lmq_team_free(struct lmq_team *team)
{
    if (team == NULL)
        return;
    team->part = NULL;
    if (has_threads(team)) {
        for (size_t i = 1; i < team->size; i++)
            gate_open(&team->members[i].start);
        for (size_t i = 1; i < team->size; i++)
            pthread_join(team->members[i].thread, NULL);
        for (size_t i = 0; i < team->size; i++)
            gate_free(&team->members[i].start);
        gate_free(&team->all_arrived);
    }
    lmq_mem_free(team->members);
    lmq_mem_free(team);
}

size_t
lmq_team_size(const struct lmq_team *team)
{
    return team->size;
}

void
lmq_team_run(struct lmq_team *team, size_t n, lmq_team_part *part,
             void *context)
{
    team->n = n < 1 || !has_threads(team) ? 1
              : n < team->size            ? n
                                          : team->size;
    team->part = part;
    team->context = context;
    for (size_t i = 1; i < team->n; i++)
        gate_open(&team->members[i].start);
    part(context, 0, team->n);
    lmq_team_barrier(team, 0);
}
