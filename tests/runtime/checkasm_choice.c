/*
 * checkasm_choice.c - the command line of checkasm.
 */
#include "config.h"

#include "tests/runtime/checkasm_choice.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: checkasm [options]\n"
    "  --list             name the functions, and the instruction sets that\n"
    "                     this machine has; do nothing else\n"
    "  --function NAME    only this one, or what a pattern like 'rows_*'\n"
    "                     means; may be repeated\n"
    "  --isa NAME         only this one; may be repeated\n"
    "  --bench            time them too (plain C only with --isa c)\n"
    "  --threads N        that many threads while timing (1)\n"
    "  --seed N           other random numbers (1)\n";

static bool
add_name(struct checkasm_names *names, const char *name)
{
    if (names->n == CHECKASM_MAX_NAMES)
        return false;
    names->names[names->n++] = name;
    return true;
}

static bool
parse_number(const char *text, unsigned long *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoul(text, &end, 0);
    return errno == 0 && *end == '\0';
}

static bool
set_option(struct checkasm_choice *choice, const char *option,
           const char *value)
{
    if (strcmp(option, "--function") == 0)
        return add_name(&choice->functions, value);
    if (strcmp(option, "--isa") == 0)
        return add_name(&choice->isas, value);
    if (strcmp(option, "--seed") == 0)
        return parse_number(value, &choice->seed);
    if (strcmp(option, "--threads") == 0)
        return parse_number(value, &choice->n_threads) &&
               choice->n_threads > 0;
    return false;
}

int
checkasm_parse(int argc, char **argv, struct checkasm_choice *choice)
{
    *choice = (struct checkasm_choice){.seed = 1, .n_threads = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--list") == 0) {
            choice->is_list = true;
        } else if (strcmp(argv[i], "--bench") == 0) {
            choice->is_bench = true;
        } else if (i + 1 < argc && set_option(choice, argv[i], argv[i + 1])) {
            i++;
        } else {
            fprintf(stderr, "checkasm: '%s' is not understood\n%s", argv[i],
                    usage);
            return 2;
        }
    }
    return -1;
}

static bool
is_meant(const struct checkasm_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (fnmatch(names->names[i], name, 0) == 0)
            return true;
    return names->n == 0;
}

bool
checkasm_function(const struct checkasm_choice *choice, const char *function)
{
    return is_meant(&choice->functions, function);
}

bool
checkasm_isa(const struct checkasm_choice *choice, const char *isa)
{
    return is_meant(&choice->isas, isa);
}

bool
checkasm_all_known(const struct checkasm_names *given, const char *what,
                   const char *const *known, size_t n)
{
    for (size_t i = 0; i < given->n; i++) {
        const struct checkasm_names one = {{given->names[i]}, 1};
        bool is_known = false;
        for (size_t j = 0; j < n; j++)
            is_known = is_known || is_meant(&one, known[j]);
        if (is_known)
            continue;
        fprintf(stderr, "checkasm: no %s '%s' here; there is", what,
                given->names[i]);
        for (size_t j = 0; j < n; j++)
            fprintf(stderr, "%s %s", j == 0 ? "" : ",", known[j]);
        fputc('\n', stderr);
        return false;
    }
    return true;
}
