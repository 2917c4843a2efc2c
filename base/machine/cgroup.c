/*
 * cgroup.c - the least limit of a group and of all that it is in.
 */
#include "config.h"

#include "base/machine/cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What one group may have; HUGE_VAL if it does not say. */
typedef double limit_of(const char *folder);

/* How many of two numbers the file begins with; "max" is none. */
static int
read_numbers(const char *folder, const char *name, double numbers[2])
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = n < 0 || (size_t)n >= sizeof(path) ? NULL : fopen(path, "re");

    if (file == NULL)
        return 0;
    n = fscanf(file, "%lf %lf", &numbers[0], &numbers[1]);
    fclose(file);
    return n;
}

/* Microseconds of work in each period of so many. */
static double
cores_of(const char *folder)
{
    double time[2], period[2];

    if (read_numbers(folder, "cpu.max", time) != 2) {
        if (read_numbers(folder, "cpu.cfs_quota_us", time) < 1 ||
            read_numbers(folder, "cpu.cfs_period_us", period) < 1)
            return HUGE_VAL;
        time[1] = period[0];
    }
    return time[0] > 0 && time[1] > 0 ? time[0] / time[1] : HUGE_VAL;
}

static double
memory_of(const char *folder)
{
    double bytes[2];

    if (read_numbers(folder, "memory.max", bytes) < 1 &&
        read_numbers(folder, "memory.limit_in_bytes", bytes) < 1)
        return HUGE_VAL;
    return bytes[0] >= 0 ? bytes[0] : HUGE_VAL;
}

/* Whether a line's list of kinds, as in "cpu,cpuacct", has this one. */
static bool
has_kind(const char *kinds, const char *kind)
{
    size_t n = strlen(kind);

    for (; kinds != NULL; kinds = strchr(kinds, ',')) {
        kinds += *kinds == ',';
        if (strncmp(kinds, kind, n) == 0 && strchr(",", kinds[n]) != NULL)
            return true;
    }
    return false;
}

/* The group's and those around it. In a container the names lead nowhere, and
 * its own group is what is called the root. */
static double
least_around(const char *root, const char *hierarchy, char *group,
             limit_of *limit)
{
    char folder[PATH_MAX];
    double least = HUGE_VAL;

    for (char *end = group + strlen(group); end != NULL;
         end = strrchr(group, '/')) {
        *end = '\0';
        int n = snprintf(folder, sizeof(folder), "%s%s%s%s", root,
                         *hierarchy == '\0' ? "" : "/", hierarchy, group);
        if (n > 0 && (size_t)n < sizeof(folder))
            least = fmin(least, limit(folder));
    }
    return least;
}

static double
least_of(const char *list, const char *root, const char *kind,
         limit_of *limit)
{
    char line[PATH_MAX]; /* number:kinds:group */
    double least = HUGE_VAL;
    FILE *file = fopen(list, "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *kinds = strchr(line, ':');
        char *group = kinds == NULL ? NULL : strchr(++kinds, ':');
        if (group == NULL)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (*kinds == '\0') /* version 2 */
            least = fmin(least, least_around(root, "", group, limit));
        else if (has_kind(kinds, kind))
            least = fmin(least, least_around(root, kind, group, limit));
    }
    if (file != NULL)
        fclose(file);
    return least;
}

int
lmq_cgroup_cores(const char *list, const char *root)
{
    double cores = least_of(list, root, "cpu", cores_of);

    if (cores > INT_MAX / 2)
        return INT_MAX;
    return cores < 1 ? 1 : (int)(cores + 0.5);
}

double
lmq_cgroup_memory(const char *list, const char *root)
{
    return least_of(list, root, "memory", memory_of);
}
