/*
 * sandbox_calls.h - which system calls are still answered.
 */
#ifndef LMQ_BASE_SANDBOX_CALLS_H
#define LMQ_BASE_SANDBOX_CALLS_H

#include <stdbool.h>

/* From here on no thread of the process can open a file for writing or change
 * one by name, start a program, make a socket or reach other processes. False,
 * and all as it was, where the kernel has no seccomp. Needs "no new
 * privileges". */
bool lmq_sandbox_calls(void);

#endif
