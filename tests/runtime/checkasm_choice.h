/*
 * checkasm_choice.h - which functions and instruction sets a run is about.
 */
#ifndef LMQ_TESTS_RUNTIME_CHECKASM_CHOICE_H
#define LMQ_TESTS_RUNTIME_CHECKASM_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#define CHECKASM_MAX_NAMES 64

/* Names as they were given; none chooses everything. */
struct checkasm_names {
    const char *names[CHECKASM_MAX_NAMES];
    size_t n;
};

struct checkasm_choice {
    struct checkasm_names functions; /* patterns of the shell */
    struct checkasm_names isas;
    unsigned long seed, n_threads;
    bool is_bench, is_list;
};

/* The exit status if the program is to end at once (--help, a mistake), else
 * -1. Neither names nor patterns are compared with anything yet. */
int checkasm_parse(int argc, char **argv, struct checkasm_choice *choice);

bool checkasm_function(const struct checkasm_choice *choice,
                       const char *function);
bool checkasm_isa(const struct checkasm_choice *choice, const char *isa);

/* False, after a sentence that says what there is, if one of the `given`
 * means none of the `n` that are `known`. `what`: "function". */
bool checkasm_all_known(const struct checkasm_names *given, const char *what,
                        const char *const *known, size_t n);

#endif
