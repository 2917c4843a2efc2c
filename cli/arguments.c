/*
 * arguments.c - parses a command line after the tables of options, and
 * prints --help from the same tables.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option work_options[] = {
    {'j', "threads", "N", "threads (OMP_NUM_THREADS, else all cores)"},
    {0, "progress", "STYLE",
     "auto (a bar on a terminal), plain (a line every\n"
     "few seconds), never"},
    {0, NULL, NULL, NULL},
};

static const struct option opening_options[] = {
    {0, "tokenizer", "FILE", "in place of the checkpoint's own tokenizer"},
    {0, "config", "FILE", "in place of the config.json beside the weights"},
    {0, "rope-theta", "X", "the base of the rotary positions"},
    {0, "norm-eps", "X", "the epsilon of the norms"},
    {0, NULL, NULL, NULL},
};

static const struct option general_options[] = {
    {'q', "quiet", NULL, "no remarks, no progress: only errors"},
    {'v', "verbose", NULL, "say more"},
    {'h', "help", NULL, "this text"},
    {0, NULL, NULL, NULL},
};

#define N_TABLES 4

/* The tables that a command's options stand in; empty ones are left out. */
static void
list_tables(const struct command *command,
            const struct option *tables[N_TABLES])
{
    static const struct option none[] = {{0, NULL, NULL, NULL}};

    tables[0] = command->options;
    tables[1] = command->common & COMMON_WORK ? work_options : none;
    tables[2] = command->common & COMMON_OPEN ? opening_options : none;
    tables[3] = general_options;
}

/* ---- Help ---- */

#define HELP_COLUMN 26

static void
print_option(const struct option *option)
{
    int used = printf("  %c%c%s--%s", option->letter ? '-' : ' ',
                      option->letter ? option->letter : ' ',
                      option->letter ? ", " : "  ", option->name);

    if (option->argument != NULL)
        used += printf("=%s", option->argument);
    if (used + 2 > HELP_COLUMN) {
        putchar('\n');
        used = 0;
    }
    for (const char *line = option->help; line != NULL;) {
        const char *end = strchr(line, '\n');
        int n = end == NULL ? (int)strlen(line) : (int)(end - line);
        printf("%*s%.*s\n", HELP_COLUMN - used, "", n, line);
        used = 0;
        line = end == NULL ? NULL : end + 1;
    }
}

void
print_command_help(const struct command *command)
{
    const struct option *tables[N_TABLES];

    list_tables(command, tables);
    printf("usage: lmquant %s [options] %s\n\n%s\n\noptions:\n", command->name,
           command->operands, command->about);
    for (int i = 0; i < N_TABLES; i++)
        for (const struct option *o = tables[i]; o->name != NULL; o++)
            print_option(o);
    printf("\nThe manual: man lmquant-%s\n", command->name);
}

/* ---- Parsing ---- */

static const struct option *
find_long(const struct command *command, const char *name, size_t n)
{
    const struct option *tables[N_TABLES];

    list_tables(command, tables);
    for (int i = 0; i < N_TABLES; i++)
        for (const struct option *o = tables[i]; o->name != NULL; o++)
            if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
                return o;
    return NULL;
}

static const struct option *
find_letter(const struct command *command, char letter)
{
    const struct option *tables[N_TABLES];

    list_tables(command, tables);
    for (int i = 0; i < N_TABLES; i++)
        for (const struct option *o = tables[i]; o->name != NULL; o++)
            if (o->letter == letter)
                return o;
    return NULL;
}

static int
add(struct arguments *arguments, const struct option *option,
    const char *value)
{
    if (arguments->n_given == MAX_OCCURRENCES)
        return usage_error(arguments->command, "too many options");
    arguments->given[arguments->n_given].option = option;
    arguments->given[arguments->n_given++].value = value;
    return -1;
}

/* --name, --name=value, --name value. */
static int
parse_long(struct arguments *arguments, char **argv, int *i)
{
    const struct command *command = arguments->command;
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    const struct option *option = find_long(command, name, n);
    const char *value = name[n] == '=' ? name + n + 1 : NULL;

    if (option == NULL)
        return usage_error(command, "unknown option '--%.*s'", (int)n, name);
    if (option->argument == NULL && value != NULL)
        return usage_error(command, "--%s takes no value", option->name);
    if (option->argument != NULL && value == NULL)
        value = argv[++*i];
    if (option->argument != NULL && value == NULL)
        return usage_error(command, "--%s needs a value (%s)", option->name,
                           option->argument);
    return add(arguments, option, value);
}

/* -a, -abc, -j4, -j 4. */
static int
parse_short(struct arguments *arguments, char **argv, int *i)
{
    const struct command *command = arguments->command;
    int code = -1;

    for (const char *p = argv[*i] + 1; *p != '\0' && code == -1; p++) {
        const struct option *option = find_letter(command, *p);
        if (option == NULL)
            return usage_error(command, "unknown option '-%c'", *p);
        if (option->argument == NULL) {
            code = add(arguments, option, NULL);
            continue;
        }
        const char *value = p[1] != '\0' ? p + 1 : argv[++*i];
        if (value == NULL)
            return usage_error(command, "-%c needs a value (%s)", *p,
                               option->argument);
        return add(arguments, option, value);
    }
    return code;
}

int
parse_arguments(const struct command *command, int argc, char **argv,
                struct arguments *arguments)
{
    bool is_operand = false;
    int code = -1;

    *arguments = (struct arguments){.command = command};
    for (int i = 1; i < argc && code == -1; i++) {
        if (!is_operand && strcmp(argv[i], "--") == 0)
            is_operand = true;
        else if (!is_operand && strncmp(argv[i], "--", 2) == 0)
            code = parse_long(arguments, argv, &i);
        else if (!is_operand && argv[i][0] == '-' && argv[i][1] != '\0')
            code = parse_short(arguments, argv, &i);
        else if (arguments->n_operands == MAX_OPERANDS)
            code = usage_error(command, "too many arguments");
        else
            arguments->operands[arguments->n_operands++] = argv[i];
    }
    if (code == -1 && has_option(arguments, "help")) {
        print_command_help(command);
        return finish_output(EXIT_DONE);
    }
    if (code == -1 && arguments->n_operands < command->least)
        code = usage_error(command, "expected: %s", command->operands);
    if (code == -1 && arguments->n_operands > command->most)
        code = usage_error(command, "unexpected argument '%s'",
                           arguments->operands[command->most]);
    return code;
}

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

bool
option_integer(const struct arguments *arguments, const char *name, long least,
               long most, long *value)
{
    const char *text = option_text(arguments, name);
    char *end;

    if (text == NULL)
        return true;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && *value >= least &&
        *value <= most)
        return true;
    usage_error(arguments->command,
                "--%s is '%s', expected a number from %ld to %ld", name, text,
                least, most);
    return false;
}

bool
option_real(const struct arguments *arguments, const char *name, double *value)
{
    const char *text = option_text(arguments, name);
    char *end;

    if (text == NULL)
        return true;
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(*value) && *value > 0)
        return true;
    usage_error(arguments->command,
                "--%s is '%s', expected a number above 0", name, text);
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
        *end == '\0' ? NULL : strchr(units, *end == 'k' ? 'K' : *end);
    if (unit != NULL) {
        for (const char *u = units; u <= unit; u++)
            number *= kilo;
        end++;
    }
    end += *end == 'B';
    if (end != text && *end == '\0' && number >= 1 && number < 1e18) {
        *value = (uint64_t)number;
        return true;
    }
    usage_error(arguments->command,
                "--%s is '%s', expected a size as 4G or 500M", name, text);
    return false;
}

bool
open_options(const struct arguments *arguments,
             struct lmq_open_options *options)
{
    *options = (struct lmq_open_options){
        .tokenizer = option_text(arguments, "tokenizer"),
        .config = option_text(arguments, "config"),
    };
    return option_real(arguments, "rope-theta", &options->rope_theta) &&
           option_real(arguments, "norm-eps", &options->norm_eps);
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
