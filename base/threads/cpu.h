/*
 * cpu.h - which instruction set the kernels may use.
 *
 * The choice changes how fast a result comes, never a bit of it.
 */
#ifndef LMQ_BASE_CPU_H
#define LMQ_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

/* Of one architecture each has what those before it have. */
enum lmq_cpu {
    LMQ_CPU_C,          /* plain C, whatever the compiler's baseline is */
    LMQ_CPU_AVX2,       /* AVX2, FMA, F16C */
    LMQ_CPU_AVXVNNI,    /* the same and VNNI on 256 bits */
    LMQ_CPU_AVX512VNNI, /* AVX-512 F, BW, DQ, VL, VNNI */
    LMQ_CPU_AMX,        /* the same and tiles of int8 */
    LMQ_CPU_NEON,       /* AArch64 with the dot product instructions */
    LMQ_CPU_COUNT
};

/* The best that this machine has, or what the environment variable
 * LMQUANT_CPU names if the machine has it. Decided once, at the first call. */
enum lmq_cpu lmq_cpu(void);

/* Whether this processor and this operating system have it; AMX, for which a
 * process has to ask, only if it is the one in use. */
int lmq_cpu_has(enum lmq_cpu cpu);

/* Whether it works on registers of 512 bits half by half, as Zen 4 does. */
bool lmq_cpu_halves(void);

/* "c", "avx2", "avxvnni", "avx512vnni", "amx", "neon". */
const char *lmq_cpu_name(enum lmq_cpu cpu);

#endif
