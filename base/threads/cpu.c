/*
 * cpu.c - asks the processor (CPUID) and the operating system (XCR0).
 *
 * A processor with AVX-512 under a system that does not save its registers
 * has no AVX-512, so both are asked.
 */
#include "config.h"

#include "base/threads/cpu.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif


static const char *const names[LMQ_CPU_COUNT] = {
    [LMQ_CPU_C] = "c",
    [LMQ_CPU_AVX2] = "avx2",
    [LMQ_CPU_AVXVNNI] = "avxvnni",
    [LMQ_CPU_AVX512VNNI] = "avx512vnni",
    [LMQ_CPU_AMX] = "amx",
    [LMQ_CPU_NEON] = "neon",
};

#if defined(__x86_64__)

/* Bits of XCR0: the registers that the system saves. */
#define XCR0_YMM 0x06u
#define XCR0_ZMM 0xe6u
#define XCR0_TILES 0x60000u

static uint64_t
read_xcr0(void)
{
    uint32_t low, high;

    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Bit i of the result: LMQ_CPU_ value i. */
static unsigned
detect(void)
{
    unsigned a, b, c, d, found = 1u << LMQ_CPU_C;
    const unsigned need_1c = bit_FMA | bit_F16C | bit_AVX | bit_OSXSAVE;
    const unsigned need_7b =
        bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    const unsigned vnni_256 = 1u << 4;  /* leaf 7.1, eax */
    const unsigned vnni_512 = 1u << 11; /* leaf 7.0, ecx */
    const unsigned tiles = 3u << 24;    /* leaf 7.0, edx: AMX, its int8 */

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need_1c) != need_1c)
        return found;
    uint64_t saved = read_xcr0();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) ||
        (saved & XCR0_YMM) != XCR0_YMM)
        return found;
    found |= 1u << LMQ_CPU_AVX2;
    if ((saved & XCR0_ZMM) == XCR0_ZMM && (b & need_7b) == need_7b &&
        (c & vnni_512)) {
        found |= 1u << LMQ_CPU_AVX512VNNI;
        if ((d & tiles) == tiles && (saved & XCR0_TILES) == XCR0_TILES)
            found |= 1u << LMQ_CPU_AMX;
    }
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & vnni_256))
        found |= 1u << LMQ_CPU_AVXVNNI;
    return found;
}

/* Zen 3 and 4 are one family, and of it only Zen 4 has AVX-512. */
static bool
detect_halves(void)
{
    unsigned a, b, c, d, most;
    char vendor[12];

    if (!__get_cpuid(0, &most, &b, &c, &d))
        return false;
    memcpy(vendor, &b, 4);
    memcpy(vendor + 4, &d, 4);
    memcpy(vendor + 8, &c, 4);
    if (memcmp(vendor, "AuthenticAMD", 12) != 0 ||
        !__get_cpuid(1, &a, &b, &c, &d))
        return false;
    return (a >> 8 & 0xf) + (a >> 20 & 0xff) == 0x19;
}

#elif defined(__aarch64__) && defined(__linux__)

static unsigned
detect(void)
{
    const unsigned long asimd_dot = 1ul << 20; /* HWCAP_ASIMDDP */

    return 1u << LMQ_CPU_C |
           (getauxval(AT_HWCAP) & asimd_dot ? 1u << LMQ_CPU_NEON : 0);
}

#else

static unsigned
detect(void)
{
    return 1u << LMQ_CPU_C;
}

#endif

#if !defined(__x86_64__)

static bool
detect_halves(void)
{
    return false;
}

#endif

/* Tile registers are 8 KB that Linux keeps only for a process that has asked
 * for them: one that uses them. It refuses where a thread's stack for signals
 * has no room for them. */
static bool
may_use_tiles(void)
{
#if defined(LMQ_HAVE_AMX) && defined(__linux__)
    const long request = 0x1023, tiles = 18; /* ARCH_REQ_XCOMP_PERM */

    return syscall(SYS_arch_prctl, request, tiles) == 0;
#else
    return false;
#endif
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned available;
static enum lmq_cpu chosen;
static bool halves;

static void
choose(void)
{
    const char *wish = getenv("LMQUANT_CPU");

    available = detect();
    halves = detect_halves();
    for (int i = 0; i < LMQ_CPU_COUNT; i++)
        if (available >> i & 1)
            chosen = (enum lmq_cpu)i;
    for (int i = 0; wish != NULL && i < LMQ_CPU_COUNT; i++)
        if ((available >> i & 1) && strcmp(wish, names[i]) == 0)
            chosen = (enum lmq_cpu)i;
    if (!(available >> LMQ_CPU_AMX & 1) ||
        (chosen == LMQ_CPU_AMX && may_use_tiles()))
        return;
    available &= ~(1u << LMQ_CPU_AMX);
    if (chosen == LMQ_CPU_AMX)
        chosen = LMQ_CPU_AVX512VNNI;
}

enum lmq_cpu
lmq_cpu(void)
{
    pthread_once(&once, choose);
    return chosen;
}

int
lmq_cpu_has(enum lmq_cpu cpu)
{
    pthread_once(&once, choose);
    return (int)(available >> cpu & 1);
}

bool
lmq_cpu_halves(void)
{
    pthread_once(&once, choose);
    return halves;
}

const char *
lmq_cpu_name(enum lmq_cpu cpu)
{
    return names[cpu];
}
