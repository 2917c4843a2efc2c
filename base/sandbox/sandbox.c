/*
 * sandbox.c - gives up what reading does not need.
 */
#include "config.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/sandbox/sandbox_calls.h"
#include "base/sandbox/sandbox_files.h"
#include "lmquant.h"

/* Sanitizers look at the process from a second one, coverage is written at the
 * end. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || \
    defined LMQ_COVERAGE
#define IS_WATCHED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_WATCHED 1
#endif
#endif

unsigned
lmq_sandbox(const char *const *paths, size_t n)
{
    unsigned gained = 0;

#if defined PR_SET_NO_NEW_PRIVS && !defined IS_WATCHED
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        if (lmq_sandbox_files(paths, n))
            gained |= LMQ_SANDBOX_FILES;
        if (lmq_sandbox_calls())
            gained |= LMQ_SANDBOX_CALLS;
    }
#else
    (void)paths;
    (void)n;
#endif
    return gained;
}
