/*
 * cgroup.h - what control groups leave to this process.
 *
 * A container or a scheduler's job may have less than the machine has. `list`
 * names the groups (/proc/self/cgroup), `root` is where they are
 * (/sys/fs/cgroup); version 1 or 2, or both.
 */
#ifndef LMQ_BASE_CGROUP_H
#define LMQ_BASE_CGROUP_H

#define LMQ_CGROUP_LIST "/proc/self/cgroup"
#define LMQ_CGROUP_ROOT "/sys/fs/cgroup"

/* How many cores' time, at least 1; INT_MAX without a limit. */
int lmq_cgroup_cores(const char *list, const char *root);

/* How many bytes of memory; HUGE_VAL without a limit. */
double lmq_cgroup_memory(const char *list, const char *root);

#endif
