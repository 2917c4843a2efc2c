/*
 * threads.c - counts cores as nproc(1) does.
 */
#include "config.h"

#include "base/threads/threads.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif

/* ---- Control groups ---- */

/* "max 100000", or microseconds of work in each period of so many. */
static int
read_quota(const char *root, const char *group)
{
    char path[PATH_MAX];
    double quota, period;
    int n = snprintf(path, sizeof(path), "%s%s/cpu.max", root, group);
    FILE *file = n < 0 || (size_t)n >= sizeof(path) ? NULL : fopen(path, "re");

    if (file == NULL)
        return INT_MAX;
    int n_read = fscanf(file, "%lf %lf", &quota, &period);
    fclose(file);
    if (n_read != 2 || !(quota > 0) || !(period > 0) ||
        quota / period > INT_MAX / 2)
        return INT_MAX;
    int cores = (int)(quota / period + 0.5);
    return cores > 0 ? cores : 1;
}

/* The version 2 group: the line "0::/path". */
static int
read_group(const char *list, char *group, int size)
{
    FILE *file = fopen(list, "re");
    int is_found = 0;

    while (file != NULL && !is_found && fgets(group, size, file) != NULL)
        is_found = strncmp(group, "0::/", 4) == 0;
    if (file != NULL)
        fclose(file);
    if (!is_found)
        return 0;
    memmove(group, group + 3, strlen(group + 3) + 1);
    group[strcspn(group, "\n")] = '\0';
    return 1;
}

int
lmq_cgroup_cores(const char *list, const char *root)
{
    char group[PATH_MAX];
    int least = INT_MAX;

    if (!read_group(list, group, (int)sizeof(group)))
        return INT_MAX;
    for (;;) { /* and all that it is in */
        int n = read_quota(root, group);
        least = n < least ? n : least;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

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
    int quota = lmq_cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");

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
