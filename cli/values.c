/*
 * values.c - what the values of options may be: numbers in ranges, sizes,
 * one of some words. A wrong one is told before any file is opened.
 */
#include "config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

/* ---- Asking ---- */

bool
has_option(const struct arguments *arguments, const char *name)
{
    for (int i = 0; i < arguments->n_given; i++)
        if (strcmp(arguments->given[i].option->name, name) == 0)
            return true;
    return false;
}

const char *
option_text(const struct arguments *arguments, const char *name)
{
    const char *value = NULL;

    for (int i = 0; i < arguments->n_given; i++)
        if (strcmp(arguments->given[i].option->name, name) == 0)
            value = arguments->given[i].value;
    return value;
}

int
option_texts(const struct arguments *arguments, const char *name,
             const char **texts, int most)
{
    int n = 0;

    for (int i = 0; i < arguments->n_given && n < most; i++)
        if (strcmp(arguments->given[i].option->name, name) == 0)
            texts[n++] = arguments->given[i].value;
    return n;
}

/* ---- Numbers ---- */

/* strtol() and its like skip blanks, and take a sign where none belongs, or
 * hexadecimal digits. */
static bool
begins_number(const char *text)
{
    text += *text == '-';
    text += *text == '.';
    return strpbrk(text, "xX") == NULL && isdigit((unsigned char)*text) != 0;
}

bool
option_integer(const struct arguments *arguments, const char *name, long least,
               long most, long *value)
{
    const char *text = option_text(arguments, name);
    char *end;

    if (text == NULL)
        return true;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (begins_number(text) && *end == '\0' && errno == 0 &&
        number >= least && number <= most) {
        *value = number;
        return true;
    }
    usage_error(arguments->command,
                "--%s is '%s', expected a whole number from %ld to %ld", name,
                text, least, most);
    return false;
}

bool
option_seed(const struct arguments *arguments, const char *name,
            uint64_t *value)
{
    const char *text = option_text(arguments, name);
    char *end;

    if (text == NULL)
        return true;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0) {
        *value = number;
        return true;
    }
    usage_error(arguments->command,
                "--%s is '%s', expected a whole number from 0 to 2^64 - 1",
                name, text);
    return false;
}

bool
option_part(const struct arguments *arguments, const char *name,
            long most, unsigned *part, unsigned *n_parts)
{
    const char *text = option_text(arguments, name);
    char *end = NULL;
    long i = 0, n = 0;

    if (text == NULL)
        return true;
    /* No blanks, no signs. */
    if (text[0] >= '1' && text[0] <= '9')
        i = strtol(text, &end, 10);
    if (end != NULL && end[0] == '/' && end[1] >= '1' && end[1] <= '9')
        n = strtol(end + 1, &end, 10);
    if (n == 0 || *end != '\0' || n > most || i > n) {
        usage_error(arguments->command,
                    "--%s is '%s', expected I/N, as in 2/8, of at most %ld",
                    name, text, most);
        return false;
    }
    *part = (unsigned)i;
    *n_parts = (unsigned)n;
    return true;
}

bool
option_real(const struct arguments *arguments, const char *name, double least,
            double most, double *value)
{
    const char *text = option_text(arguments, name);
    char *end;

    if (text == NULL)
        return true;
    double number = strtod(text, &end);
    if (begins_number(text) && *end == '\0' &&
        number >= least && number <= most) {
        *value = number;
        return true;
    }
    usage_error(arguments->command,
                "--%s is '%s', expected a number from %g to %g", name, text,
                least, most);
    return false;
}

bool
option_size(const struct arguments *arguments, const char *name, unsigned kilo,
            uint64_t *value)
{
    static const char units[] = "KMGT";
    const char *text = option_text(arguments, name);
    char *end;

    if (text == NULL)
        return true;
    double number = strtod(text, &end);
    const char *unit =
        *end == '\0' ? NULL : strchr(units, toupper((unsigned char)*end));
    if (unit != NULL) {
        for (const char *u = units; u <= unit; u++)
            number *= kilo;
        end++;
    }
    end += toupper((unsigned char)*end) == 'B';
    if (begins_number(text) && *end == '\0' && number >= 1 && number < 1e18) {
        *value = (uint64_t)number;
        return true;
    }
    usage_error(arguments->command,
                "--%s is '%s', expected a size as 4G or 500M", name, text);
    return false;
}

const char *const *
find_choices(const struct command *command, const char *name)
{
    static const char *const styles[] = {"auto", "plain", "never", NULL};

    if (strcmp(name, "progress") == 0)
        return styles;
    for (const struct choice *c = command->choices;
         c != NULL && c->option != NULL; c++)
        if (strcmp(c->option, name) == 0)
            return c->words;
    return NULL;
}

static bool
is_choice(const struct arguments *arguments, const char *name,
          const char *text)
{
    const char *const *choices = find_choices(arguments->command, name);
    struct suggestion suggestion = {.wanted = text};
    char list[128] = "";

    assert(choices != NULL);
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], text) == 0)
            return true;
        suggest(&suggestion, choices[i]);
        if (i > 0)
            strcat(list, choices[i + 1] == NULL ? " or " : ", ");
        strcat(list, choices[i]);
    }
    suggestion_error(arguments->command, &suggestion,
                     "--%s is '%s', expected %s", name, text, list);
    return false;
}

bool
option_choice(const struct arguments *arguments, const char *name,
              const char **value)
{
    for (int i = 0; i < arguments->n_given; i++)
        if (strcmp(arguments->given[i].option->name, name) == 0 &&
            arguments->given[i].value != NULL) {
            if (!is_choice(arguments, name, arguments->given[i].value))
                return false;
            *value = arguments->given[i].value;
        }
    return true;
}

/* ---- Options that commands share ---- */

const char *const kv_types[] = {"f32", "f16", "f16-q8", "q8", NULL};
const char *const activation_modes[] = {"q8", "q16", "f32", NULL};
const struct choice computing_choices[] = {
    {"kv", kv_types}, {"activations", activation_modes}, {NULL, NULL}};

bool
open_options(const struct arguments *arguments,
             struct lmq_open_options *options)
{
    *options = (struct lmq_open_options){
        .size = sizeof(*options),
        .tokenizer = option_text(arguments, "tokenizer"),
        .config = option_text(arguments, "config"),
        .is_copied = has_option(arguments, "no-mmap"),
    };
    return option_real(arguments, "rope-theta", 1, 1e15,
                       &options->rope_theta) &&
           option_real(arguments, "norm-eps", 1e-30, 1,
                       &options->norm_eps);
}

bool
thread_option(const struct arguments *arguments, int *threads)
{
    long n = 0;

    if (!option_integer(arguments, "threads", 1, 1024, &n))
        return false;
    *threads = (int)n;
    return true;
}
