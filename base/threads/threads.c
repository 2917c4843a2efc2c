/*
 * threads.c - counts cores as nproc(1) does.
 */
#include "config.h"

#include "base/threads/threads.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif

#include "base/error.h"
#include "base/machine/cgroup.h"

/* ---- Cores ---- */

static int
count_cores(void)
{
#if defined(__linux__) && defined(CPU_ALLOC)
    for (int n = 1024; n <= 1 << 20; n *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        size_t size = CPU_ALLOC_SIZE((size_t)n);
        int is_known = set != NULL && sched_getaffinity(0, size, set) == 0;
        int is_small = !is_known && errno == EINVAL;
        int count = is_known ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
        if (!is_small)
            break;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > INT_MAX ? INT_MAX : (int)online;
}

int
lmq_cores(void)
{
    int n = count_cores();
    int quota = lmq_cgroup_cores(LMQ_CGROUP_LIST, LMQ_CGROUP_ROOT);

    return n < quota ? n : quota;
}

/* The first number of a list as OpenMP writes it; 0 if there is none. */
static int
read_variable(const char *name)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL)
        return 0;
    errno = 0;
    long n = strtol(text, &end, 10);
    end += strspn(end, " \t");
    if (end == text || errno != 0 || (*end != '\0' && *end != ',') || n < 1)
        return 0;
    return n > INT_MAX ? INT_MAX : (int)n;
}

int
lmq_threads(int wanted, int most)
{
    int n = wanted > 0 ? wanted : read_variable("OMP_NUM_THREADS");

    if (n <= 0)
        n = lmq_cores();
    if (wanted <= 0) {
        int limit = read_variable("OMP_THREAD_LIMIT");
        n = limit > 0 && limit < n ? limit : n;
    }
    n = n < most ? n : most;
    return n < 1 ? 1 : n;
}

enum lmq_status
lmq_threads_check(int wanted, struct lmq_error *err)
{
    return wanted >= 0 ? LMQ_OK
                       : lmq_fail(err, LMQ_ERR_ARG, 0,
                                  ".threads is %d, expected 1 or more, or 0",
                                  wanted);
}
