/*
 * test_team.c - counts of threads, teams, barriers, work in pieces.
 */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine/cgroup.h"
#include "base/mem.h"
#include "base/threads/tasks.h"
#include "base/threads/team.h"
#include "base/threads/threads.h"
#include "tests/build/suite.h"

/* ---- How many ---- */

START_TEST(variables_say_how_many)
{
    static const struct {
        const char *threads, *limit;
        int wanted, expected; /* 0: as many as cores */
    } cases[] = {
        {NULL, NULL, 3, 3},    {"5", NULL, 0, 5},    {"5", NULL, 2, 2},
        {"5,2", NULL, 0, 5},   {" 7 ", NULL, 0, 7},  {"5", "3", 0, 3},
        {"5", "3", 6, 6},      {NULL, "1", 0, 1},    {"0", NULL, 0, 0},
        {"-4", NULL, 0, 0},    {"many", NULL, 0, 0}, {"4x", NULL, 0, 0},
        {"", NULL, 0, 0},      {NULL, "x", 0, 0},
        {"99999999999999999999", NULL, 0, 0},
        {"4000000", NULL, 0, 1000},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsetenv("OMP_NUM_THREADS");
        unsetenv("OMP_THREAD_LIMIT");
        if (cases[i].threads != NULL)
            setenv("OMP_NUM_THREADS", cases[i].threads, 1);
        if (cases[i].limit != NULL)
            setenv("OMP_THREAD_LIMIT", cases[i].limit, 1);
        int expected = cases[i].expected != 0 ? cases[i].expected
                                              : lmq_cores();
        ck_assert_msg(lmq_threads(cases[i].wanted, 1000) == expected,
                      "case %zu: %d", i, lmq_threads(cases[i].wanted, 1000));
    }
    ck_assert_int_eq(lmq_threads(100, 64), 64);
    ck_assert_int_eq(lmq_threads(0, 1), 1);
    ck_assert_int_eq(lmq_threads(0, 0), 1);
}
END_TEST

START_TEST(the_tightest_control_group_counts)
{
    static const struct {
        const char *list, *inner, *outer;
        int cores;
    } cases[] = {
        {"0::/a/b\n", "max 100000\n", "max 100000\n", INT_MAX},
        {"0::/a/b\n", "200000 100000\n", "max 100000\n", 2},
        {"0::/a/b\n", "400000 100000\n", "150000 50000\n", 3},
        {"0::/a/b\n", "10000 100000\n", "max 100000\n", 1},
        {"4:cpu:/x\n0::/a/b\n", "240000 100000\n", "max 1\n", 2},
        {"4:cpu:/x\n", "200000 100000\n", "max 100000\n", INT_MAX},
        {"0::/../..\n", "200000 100000\n", "max 100000\n", INT_MAX},
        {"0::/a/b\n", "200000 0\n", "rubbish\n", INT_MAX},
        {"", "200000 100000\n", "", INT_MAX},
    };
    char list[512], root[512];

    snprintf(root, sizeof(root), "%s", in_folder("groups"));
    snprintf(list, sizeof(list), "%s", in_folder("list"));
    ck_assert_int_eq(mkdir(root, 0700), 0);
    ck_assert_int_eq(mkdir(in_folder("groups/a"), 0700), 0);
    ck_assert_int_eq(mkdir(in_folder("groups/a/b"), 0700), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(list, cases[i].list, strlen(cases[i].list));
        write_file(in_folder("groups/a/b/cpu.max"), cases[i].inner,
                   strlen(cases[i].inner));
        write_file(in_folder("groups/a/cpu.max"), cases[i].outer,
                   strlen(cases[i].outer));
        int cores = lmq_cgroup_cores(list, root);
        ck_assert_msg(cores == cases[i].cores, "case %zu: %d", i, cores);
    }
    ck_assert_int_eq(lmq_cgroup_cores(in_folder("none"), root), INT_MAX);
}
END_TEST

/* Of version 2, and of version 1, where each kind is a tree of its own. */
START_TEST(a_group_limits_memory_too)
{
    static const struct {
        const char *list, *file, *text;
        double memory;
        int cores;
    } cases[] = {
        {"0::/a\n", "a/memory.max", "1048576\n", 1048576, INT_MAX},
        {"0::/a/b\n", "a/memory.max", "5000\n", 5000, INT_MAX},
        {"0::/a/b\n", "memory.max", "7000\n", 7000, INT_MAX},
        {"0::/a\n", "a/memory.max", "max\n", HUGE_VAL, INT_MAX},
        {"0::/a\n", "a/b/memory.max", "5000\n", HUGE_VAL, INT_MAX},
        {"3:memory:/a\n", "memory/a/memory.limit_in_bytes", "9000\n", 9000,
         INT_MAX},
        {"3:memory:/no/such\n0::/\n", "memory/memory.limit_in_bytes",
         "9000\n", 9000, INT_MAX},
        {"3:memory:/a\n", "memory/a/memory.limit_in_bytes",
         "9223372036854771712\n", 9223372036854771712.0, INT_MAX},
        {"3:memory:/a\n", "memory/a/memory.limit_in_bytes", "-1\n", HUGE_VAL,
         INT_MAX},
        {"3:memory2:/a\n", "memory/a/memory.limit_in_bytes", "9000\n",
         HUGE_VAL, INT_MAX},
        {"5:cpuacct,cpu:/a\n", "cpu/a/cpu.cfs_quota_us", "300000\n", HUGE_VAL,
         3},
        {"5:cpu,cpuacct:/a\n", "cpu/a/cpu.cfs_quota_us", "-1\n", HUGE_VAL,
         INT_MAX},
        {"5:cpuacct:/a\n", "cpu/a/cpu.cfs_quota_us", "300000\n", HUGE_VAL,
         INT_MAX},
        {"no colons\n:\n", "memory.max", "7000\n", HUGE_VAL, INT_MAX},
    };
    static const char *const folders[] = {
        "tree", "tree/a", "tree/a/b", "tree/memory", "tree/memory/a",
        "tree/cpu", "tree/cpu/a"};
    char list[512], root[512], path[64];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        ck_assert_int_eq(mkdir(in_folder(folders[i]), 0700), 0);
    snprintf(root, sizeof(root), "%s", in_folder("tree"));
    snprintf(list, sizeof(list), "%s", in_folder("list"));
    write_file(in_folder("tree/cpu/a/cpu.cfs_period_us"), "100000\n", 7);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(path, sizeof(path), "tree/%s", cases[i].file);
        write_file(list, cases[i].list, strlen(cases[i].list));
        write_file(in_folder(path), cases[i].text, strlen(cases[i].text));
        double memory = lmq_cgroup_memory(list, root);
        int cores = lmq_cgroup_cores(list, root);
        ck_assert_msg(memory == cases[i].memory && cores == cases[i].cores,
                      "case %zu: %.0f bytes, %d cores", i, memory, cores);
        remove(in_folder(path));
    }
    ck_assert(lmq_mem_available() <= lmq_mem_limit());
    ck_assert(lmq_mem_available() > 0);
}
END_TEST

/* ---- Teams ---- */

#define MOST 16

struct count {
    struct lmq_team *team;
    size_t n_members;
    atomic_size_t calls[MOST];
    size_t before[MOST]; /* not atomic: the barrier orders it */
    size_t rounds;
    bool is_wrong;
};

static void
count_calls(void *context, size_t member, size_t n_members)
{
    struct count *count = context;

    atomic_fetch_add(&count->calls[member], 1);
    if (member == 0)
        count->n_members = n_members;
}

START_TEST(each_member_is_called_once)
{
    for (int size = 1; size <= MOST; size++) {
        struct lmq_team *team = lmq_team_new(size);
        ck_assert_ptr_nonnull(team);
        ck_assert_uint_eq(lmq_team_size(team), (size_t)size);
        for (size_t n = 0; n <= MOST; n++) {
            struct count count = {0};
            size_t expected = n < 1 ? 1 : n < (size_t)size ? n : (size_t)size;
            lmq_team_run(team, n, count_calls, &count);
            ck_assert_uint_eq(count.n_members, expected);
            for (size_t i = 0; i < MOST; i++)
                ck_assert_uint_eq(count.calls[i], i < expected);
        }
        lmq_team_free(team);
    }
    lmq_team_free(NULL);
}
END_TEST

/* Everybody writes, and all see what everybody wrote. */
static void
meet_often(void *context, size_t member, size_t n_members)
{
    struct count *count = context;

    for (size_t round = 1; round <= count->rounds; round++) {
        count->before[member] = round;
        if (round % 64 == member)
            usleep(200); /* late: the others go to sleep */
        lmq_team_barrier(count->team, member);
        for (size_t i = 0; i < n_members; i++)
            if (count->before[i] != round)
                atomic_fetch_add(&count->calls[member], 1);
        lmq_team_barrier(count->team, member);
    }
}

START_TEST(nobody_passes_a_barrier_before_all_are_there)
{
    static const int sizes[] = {1, 2, 3, 8};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct count count = {.rounds = 300};
        count.team = lmq_team_new(sizes[i]);
        for (size_t n = 1; n <= (size_t)sizes[i]; n++)
            lmq_team_run(count.team, n, meet_often, &count);
        for (size_t j = 0; j < MOST; j++)
            ck_assert_uint_eq(count.calls[j], 0);
        lmq_team_free(count.team);
    }
}
END_TEST

/* Who leaves the barrier at the end of a run late meets the next run. */
START_TEST(runs_of_changing_size_follow_at_once)
{
    struct lmq_team *team = lmq_team_new(4);
    struct count count = {0};
    size_t expected[4] = {0};

    for (size_t i = 0; i < 20000; i++) {
        size_t n = 2 + i % 3;
        lmq_team_run(team, n, count_calls, &count);
        ck_assert_uint_eq(count.n_members, n);
        for (size_t j = 0; j < n; j++)
            expected[j]++;
    }
    for (size_t j = 0; j < 4; j++)
        ck_assert_uint_eq(count.calls[j], expected[j]);
    lmq_team_free(team);
}
END_TEST

static void *
run_own_team(void *argument)
{
    struct count *count = argument;

    for (int i = 0; i < 20; i++) {
        count->team = lmq_team_new(3);
        if (count->team == NULL)
            return argument;
        for (int j = 0; j < 10; j++)
            lmq_team_run(count->team, 3, meet_often, count);
        lmq_team_free(count->team);
    }
    return NULL;
}

START_TEST(teams_do_not_know_each_other)
{
    struct count counts[3] = {{.rounds = 5}, {.rounds = 5}, {.rounds = 5}};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, run_own_team, &counts[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
        for (size_t j = 0; j < MOST; j++)
            ck_assert_uint_eq(counts[i].calls[j], 0);
    }
}
END_TEST

START_TEST(a_child_of_fork_goes_on_alone)
{
    struct count count = {.rounds = 3};

    count.team = lmq_team_new(4);
    lmq_team_run(count.team, 4, meet_often, &count);
    pid_t child = fork();
    if (child == 0) {
        struct count alone = {.team = count.team};
        lmq_team_run(count.team, 4, count_calls, &alone);
        lmq_team_free(count.team);
        _exit(alone.n_members == 1 && alone.calls[0] == 1 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lmq_team_run(count.team, 4, meet_often, &count);
    lmq_team_free(count.team);
}
END_TEST

/* 0: as it should be; 2: there is no way to try. */
static int
run_without_threads(void)
{
    struct rlimit none = {0, 0};

    if (geteuid() == 0 && setuid(65534) != 0) /* root has no such limit */
        return 2;
    if (setrlimit(RLIMIT_NPROC, &none) != 0)
        return 2;
    struct lmq_team *team = lmq_team_new(8);
    struct count count = {.team = team, .rounds = 3};
    if (team == NULL || lmq_team_size(team) != 1)
        return 1;
    lmq_team_run(team, 8, meet_often, &count);
    lmq_team_free(team);
    return count.before[0] != 3;
}

START_TEST(without_threads_a_team_is_smaller)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(run_without_threads());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    if (WEXITSTATUS(status) == 2)
        puts("skipped: the number of processes cannot be limited");
}
END_TEST

static void
look_at_signals(void *context, size_t member, size_t n_members)
{
    struct count *count = context;
    sigset_t blocked;

    (void)n_members;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    bool is_free = sigismember(&blocked, SIGINT) == 0;
    if (is_free != (member == 0) || sigismember(&blocked, SIGBUS) != 0)
        atomic_fetch_add(&count->calls[member], 1);
}

START_TEST(signals_are_the_callers)
{
    struct lmq_team *team = lmq_team_new(3);
    struct count count = {0};

    lmq_team_run(team, 3, look_at_signals, &count);
    for (size_t i = 0; i < MOST; i++)
        ck_assert_uint_eq(count.calls[i], 0);
    lmq_team_free(team);
}
END_TEST

/* ---- Work in pieces ---- */

#define WINDOW 16

struct work {
    size_t n, at;
    size_t numbers[WINDOW];
    double results[WINDOW];
    double sum; /* of floats: its bits tell the order */
    size_t n_merged, n_reports;
    size_t fails[3]; /* pieces that do; 0: none */
    size_t stops;    /* the report that does */
    pthread_t caller;
    bool is_wrong;
};

static bool
next_number(void *context, size_t slot)
{
    struct work *work = context;

    work->is_wrong |= !pthread_equal(work->caller, pthread_self());
    if (work->at == work->n)
        return false;
    work->numbers[slot] = ++work->at;
    return true;
}

static enum lmq_status
work_on(void *context, size_t slot, void *state, struct lmq_error *err)
{
    struct work *work = context;
    size_t number = work->numbers[slot];
    size_t *used = state;

    ++*used;
    if (number % 5 == 0)
        usleep((useconds_t)(100 * (7 - number % 7)));
    for (int i = 0; i < 3; i++)
        if (number == work->fails[i])
            return lmq_fail(err, LMQ_ERR_FORMAT, number, "piece %zu", number);
    work->results[slot] = 1 / (double)number;
    return LMQ_OK;
}

static enum lmq_status
add_result(void *context, size_t slot, struct lmq_error *err)
{
    struct work *work = context;

    (void)err;
    work->is_wrong |= !pthread_equal(work->caller, pthread_self()) ||
                      work->numbers[slot] != work->n_merged + 1;
    work->sum += work->results[slot];
    work->n_merged++;
    return LMQ_OK;
}

static int
report_numbers(void *context, const char *stage, uint64_t done,
               uint64_t total)
{
    struct work *work = context;

    work->is_wrong |= !pthread_equal(work->caller, pthread_self()) ||
                      strcmp(stage, "counting") != 0 || done > total;
    return ++work->n_reports == work->stops;
}

static enum lmq_status
run_work(struct work *work, int threads, struct lmq_error *err)
{
    struct lmq_workers workers;
    const struct lmq_progress progress = {.report = report_numbers,
                                          .context = work};
    const struct lmq_counter counter = {.progress = &progress,
                                        .stage = "counting"};
    const struct lmq_tasks tasks = {
        .window = WINDOW,
        .context = work,
        .next = next_number,
        .piece = work_on,
        .merge = add_result,
        .counter = &counter,
    };

    work->caller = pthread_self();
    ck_assert_int_eq(lmq_workers_open(&workers, threads, 64, sizeof(size_t),
                                      NULL, NULL, NULL, err),
                     LMQ_OK);
    enum lmq_status status = lmq_tasks_run(&tasks, &workers, err);
    lmq_workers_close(&workers);
    ck_assert(!work->is_wrong);
    return status;
}

START_TEST(merges_are_in_order)
{
    static const size_t sizes[] = {0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 100};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct work one = {.n = sizes[i]};
        ck_assert_int_eq(run_work(&one, 1, NULL), LMQ_OK);
        ck_assert_uint_eq(one.n_merged, sizes[i]);
        ck_assert_uint_eq(one.n_reports, (sizes[i] + WINDOW - 1) / WINDOW);
        for (int threads = 2; threads <= 7; threads++) {
            struct work many = {.n = sizes[i]};
            ck_assert_int_eq(run_work(&many, threads, NULL), LMQ_OK);
            ck_assert_mem_eq(&many.sum, &one.sum, sizeof(one.sum));
        }
    }
}
END_TEST

START_TEST(the_first_error_in_order_is_told)
{
    for (int threads = 1; threads <= 7; threads++)
        for (size_t first = 1; first <= 40; first += 3) {
            struct work work = {.n = 40,
                                .fails = {first + 1, first, first + 4}};
            struct lmq_error err;
            ck_assert_int_eq(run_work(&work, threads, &err), LMQ_ERR_FORMAT);
            ck_assert_uint_eq(err.offset, first);
            ck_assert_uint_eq(work.n_merged, (first - 1) / WINDOW * WINDOW);
            struct work again = {.n = 40, .fails = {first}};
            ck_assert_int_eq(run_work(&again, threads, NULL), LMQ_ERR_FORMAT);
        }
}
END_TEST

START_TEST(a_report_can_stop_the_work)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct work work = {.n = 100, .stops = 2};
        struct lmq_error err;
        ck_assert_int_eq(run_work(&work, threads, &err), LMQ_ERR_CANCELLED);
        ck_assert_uint_eq(work.n_merged, 2 * WINDOW);
    }
}
END_TEST

/* Each range once, none longer than a chunk, merged from the front. */
struct course {
    uint64_t at[LMQ_RANGES];
    size_t n[LMQ_RANGES], chunk;
    uint64_t end; /* of those that were merged */
    bool is_wrong;
};

static enum lmq_status
note_range(void *context, const struct lmq_range *range, void *state,
           struct lmq_error *err)
{
    struct course *course = context;

    (void)state;
    course->at[range->slot] = range->at;
    course->n[range->slot] = range->n;
    return range->at == 7000 ? lmq_fail(err, LMQ_ERR_FORMAT, range->at, "here")
                             : LMQ_OK;
}

static void
join_range(void *context, const struct lmq_range *range)
{
    struct course *course = context;

    course->is_wrong |= range->at != course->end ||
                        course->at[range->slot] != range->at ||
                        course->n[range->slot] != range->n ||
                        range->n == 0 || range->n > course->chunk;
    course->end += range->n;
}

static enum lmq_status
run_ranges(uint64_t whole, size_t chunk, int threads, uint64_t *end,
           struct lmq_error *err)
{
    struct course course = {.chunk = chunk};
    struct lmq_counter counter = {.total = whole};
    struct lmq_workers workers;
    const struct lmq_ranges ranges = {
        .whole = whole,
        .chunk = chunk,
        .context = &course,
        .piece = note_range,
        .merge = join_range,
        .counter = &counter,
    };

    ck_assert_int_eq(lmq_workers_open(&workers, threads, 64, 1, NULL, NULL,
                                      NULL, err),
                     LMQ_OK);
    enum lmq_status status = lmq_tasks_over(&ranges, &workers, err);
    lmq_workers_close(&workers);
    ck_assert(!course.is_wrong);
    ck_assert_uint_eq(counter.done, course.end);
    *end = course.end;
    return status;
}

START_TEST(ranges_are_a_whole)
{
    static const uint64_t wholes[] = {0, 1, 9, 10, 11, 4321, 6999};
    uint64_t end;

    for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
        for (int threads = 1; threads <= 3; threads++) {
            ck_assert_int_eq(run_ranges(wholes[i], 10, threads, &end, NULL),
                             LMQ_OK);
            ck_assert_uint_eq(end, wholes[i]);
        }
}
END_TEST

START_TEST(a_range_that_fails_ends_the_work)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct lmq_error err;
        uint64_t end;
        ck_assert_int_eq(run_ranges(9000, 10, threads, &end, &err),
                         LMQ_ERR_FORMAT);
        ck_assert_uint_eq(err.offset, 7000);
        ck_assert_uint_le(end, 7000);
    }
}
END_TEST

static bool
make_third(void *state, const void *context)
{
    size_t *n_made = *(size_t *const *)context;

    if (++*n_made == 3)
        return false;
    *(void **)state = malloc(1);
    return true;
}

static void
clear_third(void *state)
{
    free(*(void **)state);
}

START_TEST(a_worker_that_cannot_be_made_is_an_error)
{
    struct lmq_workers workers;
    struct lmq_error err;
    size_t n_made = 0;
    size_t *const counter = &n_made;

    ck_assert_int_eq(lmq_workers_open(&workers, -1, 64, 1, NULL, NULL, NULL,
                                      &err),
                     LMQ_ERR_ARG);
    ck_assert_str_eq(err.option, "threads");
    ck_assert_int_eq(lmq_workers_open(&workers, 5, 64, sizeof(void *),
                                      make_third, clear_third, &counter,
                                      &err),
                     LMQ_ERR_NOMEM);
    lmq_workers_close(&workers);
    ck_assert_uint_eq(n_made, 3);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        variables_say_how_many,
        the_tightest_control_group_counts,
        a_group_limits_memory_too,
        each_member_is_called_once,
        nobody_passes_a_barrier_before_all_are_there,
        runs_of_changing_size_follow_at_once,
        teams_do_not_know_each_other,
        a_child_of_fork_goes_on_alone,
        without_threads_a_team_is_smaller,
        signals_are_the_callers,
        merges_are_in_order,
        the_first_error_in_order_is_told,
        a_report_can_stop_the_work,
        ranges_are_a_whole,
        a_range_that_fails_ends_the_work,
        a_worker_that_cannot_be_made_is_an_error,
    };

    return RUN_SUITE("team", tests);
}
