/*
 * version.c - which library this is.
 */
#include "config.h"

#include "base/threads/cpu.h"
#include "lmquant.h"

const char *
lmq_version(void)
{
    return PACKAGE_VERSION;
}

const char *
lmq_instruction_set(void)
{
    return lmq_cpu_name(lmq_cpu());
}
