/*
 * checkasm.c - are the kernels of every instruction set equal to plain C, bit
 * for bit, and do they stay inside their arrays? With --bench, how fast?
 *
 *   checkasm [--list] [--function NAME] [--isa NAME] [--bench] [--seed N] ...
 *
 * Each function starts from the seed again, so that a failure comes back when
 * that function is checked alone.
 * Arrays end where an unreadable page begins, and outputs have a pattern in
 * front and between their rows. NaNs compare equal, whatever their bits.
 * The plain C itself is compared with a second, naive reading of the contract
 * and with libm.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/kernels.h"
#include "tests/runtime/checkasm_bench.h"
#include "tests/runtime/checkasm_choice.h"
#include "tests/runtime/checkasm_memory.h"
#include "tests/runtime/checkasm_parts.h"

static const struct lmq_kernels *const plain = &lmq_kernels_c;

static struct checkasm_choice choice;
static unsigned long n_passed, n_failed;

bool
checkasm_start(const char *function)
{
    checkasm_state = choice.seed;
    return checkasm_function(&choice, function);
}

void
checkasm_report(bool is_equal, const char *kernel, const char *isa,
                const char *sizes)
{
    if (is_equal) {
        n_passed++;
        return;
    }
    if (n_failed++ < 20)
        printf("%s: %s differs from the contract for %s\n", isa, kernel,
               sizes);
}

/* ---- What there is ---- */

/* Functions that only have meaning together share a check. */
static const struct {
    const char *functions[2];
    void (*check)(const struct lmq_kernels *k);
    void (*check_c)(void);
} checks[] = {
    {{"product", "batch_pack"}, checkasm_product, checkasm_naive_product},
    {{"quantize"}, checkasm_quantize, checkasm_naive_quantize},
    {{"rows_product", "rows_mix"}, checkasm_rows, NULL},
    {{"turned_product", "rows_turn"}, checkasm_turned, NULL},
    {{"row_widen", "row_narrow"}, checkasm_row_types, checkasm_naive_halves},
    {{"dot"}, NULL, checkasm_naive_dot},
    {{"soften"}, checkasm_soften, checkasm_naive_soften},
    {{"recur"}, checkasm_recur, checkasm_naive_recur},
    {{"select"}, checkasm_select, checkasm_naive_select},
};

#define MAX_FUNCTIONS (2 * COUNT(checks) + CHECKASM_N_VECTORS)

static size_t
add_once(const char *name, const char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return n;
    names[n] = name;
    return n + 1;
}

static size_t
list_functions(const char **names)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(checks); i++)
        for (size_t j = 0; j < 2 && checks[i].functions[j] != NULL; j++)
            n = add_once(checks[i].functions[j], names, n);
    for (size_t i = 0; i < CHECKASM_N_VECTORS; i++)
        n = add_once(checkasm_vector_names[i], names, n);
    return n;
}

/* The tables that this build has and this machine can run; plain C first. */
static size_t
list_isas(const struct lmq_kernels **kernels, const char **names)
{
    size_t n = 0;

    for (int cpu = LMQ_CPU_C; cpu < LMQ_CPU_COUNT; cpu++) {
        const struct lmq_kernels *k = lmq_kernels_get((enum lmq_cpu)cpu);
        if (k == NULL || !lmq_cpu_has((enum lmq_cpu)cpu))
            continue;
        kernels[n] = k;
        names[n++] = k->name;
    }
    return n;
}

static void
check_isa(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < COUNT(checks); i++) {
        const char *const *functions = checks[i].functions;
        if (!checkasm_start(functions[0]) &&
            (functions[1] == NULL || !checkasm_start(functions[1])))
            continue;
        if (k == plain && checks[i].check_c != NULL)
            checks[i].check_c();
        if (k != plain && checks[i].check != NULL)
            checks[i].check(k);
    }
    if (k == plain) {
        checkasm_accuracy();
        return;
    }
    checkasm_vectors(k);
    checkasm_exp_everywhere(k);
}

int
main(int argc, char **argv)
{
    const struct lmq_kernels *kernels[LMQ_CPU_COUNT];
    const char *functions[MAX_FUNCTIONS], *isas[LMQ_CPU_COUNT];
    size_t n_functions = list_functions(functions);
    size_t n_isas = list_isas(kernels, isas);
    int status = checkasm_parse(argc, argv, &choice);

    if (status >= 0)
        return status;
    if (!checkasm_all_known(&choice.functions, "function", functions,
                            n_functions) ||
        !checkasm_all_known(&choice.isas, "instruction set", isas, n_isas))
        return 2;
    if (choice.is_list) {
        for (size_t i = 0; i < n_functions; i++)
            printf("function %s\n", functions[i]);
        for (size_t i = 0; i < n_isas; i++)
            printf("isa %s\n", isas[i]);
        return 0;
    }
    printf("seed %lu\n", choice.seed);
    for (size_t i = 0; i < n_isas; i++) {
        if (!checkasm_isa(&choice, isas[i]))
            continue;
        printf("%s\n", isas[i]);
        check_isa(kernels[i]);
        if (choice.is_bench && (kernels[i] != plain || choice.isas.n > 0))
            checkasm_bench(kernels[i], &choice);
    }
    printf("%lu passed, %lu failed\n", n_passed, n_failed);
    return n_failed != 0;
}
