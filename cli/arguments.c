/*
 * arguments.c - parses a command line after the tables of options, and
 * prints --help from the same tables. What values may be is values.c's
 * business.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

static const struct option work_options[] = {
    {'j', "threads", "N", "threads (OMP_NUM_THREADS, else all cores)"},
    {0, "progress", "STYLE",
     "auto (a bar on a terminal), plain (a line every\n"
     "few seconds), never"},
    {0, NULL, NULL, NULL},
};

static const struct option opening_options[] = {
    {0, "tokenizer", "FILE",
     "a tokenizer, or a checkpoint that has one, in\n"
     "place of the checkpoint's own"},
    {0, "config", "FILE", "in place of the config.json beside the weights"},
    {0, "rope-theta", "X", "the base of the rotary positions"},
    {0, "norm-eps", "X", "the epsilon of the norms"},
    {0, "no-mmap", NULL, "read the weights into memory, do not map them"},
    {0, NULL, NULL, NULL},
};

static const struct option general_options[] = {
    {'q', "quiet", NULL, "only errors, and what was asked for as data"},
    {'v', "verbose", NULL, "say more: version, instruction set, whole lists"},
    {'h', "help", NULL, "this text"},
    {0, NULL, NULL, NULL},
};

void
list_tables(const struct command *command,
            const struct option *tables[N_TABLES])
{
    static const struct option none[] = {{0, NULL, NULL, NULL}};

    tables[0] = command->options;
    tables[1] = command->common & COMMON_WORK ? work_options : none;
    tables[2] = command->common & COMMON_OPEN ? opening_options : none;
    tables[3] = general_options;
    tables[4] = command->also == NULL ? none : command->also;
}

/* ---- Help ---- */

#define HELP_COLUMN 26

static void
print_option(const struct option *option)
{
    int used = printf("  %c%c%s--%s", option->letter ? '-' : ' ',
                      option->letter ? option->letter : ' ',
                      option->letter ? ", " : "  ", option->name);

    if (option_is_optional(option))
        used += printf("[=%.*s]", (int)strlen(option->argument) - 2,
                       option->argument + 1);
    else if (option->argument != NULL)
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

/* ---- Mistakes ---- */

/* Other tools have an option for it. */
static bool
has_output_operand(const struct command *command)
{
    return strstr(command->operands, "OUTPUT") != NULL;
}

static int
unknown_output(const struct command *command, const char *dashes,
               const char *name)
{
    return usage_error(command, "'%s%s': the output is an argument: %s",
                       dashes, name, command->operands);
}

static int
unknown_long(const struct command *command, const char *name, int n)
{
    const struct option *tables[N_TABLES];
    char wanted[64];
    struct suggestion suggestion = {.wanted = wanted, .prefix = "--"};

    snprintf(wanted, sizeof(wanted), "%.*s", n, name);
    if (has_output_operand(command) && strncmp(wanted, "out", 3) == 0)
        return unknown_output(command, "--", wanted);
    list_tables(command, tables);
    for (int i = 0; i < N_TABLES; i++)
        for (const struct option *o = tables[i]; o->name != NULL; o++)
            suggest(&suggestion, o->name);
    return suggestion_error(command, &suggestion, "unknown option '--%.*s'", n,
                            name);
}

static bool
is_dash(const char *text)
{
    return strcmp(text, "-") == 0;
}

/* A text, which may come from standard input: options of this kind. */
static bool
is_text(const struct option *option)
{
    return strcmp(option->name, "text") == 0 ||
           strcmp(option->name, "calibrate") == 0;
}

bool
have_texts(const struct arguments *arguments)
{
    bool has_dash = false;

    for (int i = 0; i < arguments->n_given; i++)
        has_dash |= is_text(arguments->given[i].option) &&
                    is_dash(arguments->given[i].value);
    for (int i = 0; i < arguments->n_operands; i++)
        has_dash |= is_dash(arguments->operands[i]);
    if (has_dash)
        usage_error(arguments->command,
                    "'-' cannot be standard input of many ranks");
    return !has_dash;
}

/* Its value is the name of a file or of a folder. */
static bool
is_name(const struct option *option)
{
    return is_text(option) ||
           (option->argument != NULL &&
            (strncmp(option->argument, "FILE", 4) == 0 ||
             strcmp(option->argument, "FOLDER") == 0));
}

/* As when a variable of a script is not set. */
static int
check_empty(const struct arguments *arguments)
{
    const struct command *command = arguments->command;

    for (int i = 0; i < arguments->n_given; i++) {
        const struct option *option = arguments->given[i].option;
        if (is_name(option) && arguments->given[i].value[0] == '\0')
            return usage_error(command, "--%s: the name is empty (%s)",
                               option->name, option->argument);
    }
    for (int i = 0; i < arguments->n_operands; i++)
        if (arguments->operands[i][0] == '\0' &&
            (i == 0 || command != &command_run)) /* that is a prompt */
            return usage_error(command, "argument %d is empty; expected: %s",
                               i + 1, command->operands);
    return -1;
}

/* What is read in no order, or more than once, cannot come through a pipe. */
static int
check_dashes(const struct arguments *arguments)
{
    const struct command *command = arguments->command;
    int n_texts = 0;

    for (int i = 0; i < arguments->n_given; i++) {
        const struct option *option = arguments->given[i].option;
        const char *value = arguments->given[i].value;
        if (option->argument == NULL || value == NULL || !is_dash(value))
            continue;
        if (strcmp(option->argument, "FILE") == 0 ||
            strcmp(option->argument, "FOLDER") == 0)
            return usage_error(command,
                               "--%s cannot be standard input; './-' is of "
                               "that name",
                               option->name);
        if (is_text(option) && n_texts++ > 0)
            return usage_error(command, "standard input is there only once");
    }
    for (int i = 0; i < arguments->n_operands; i++) {
        if (!is_dash(arguments->operands[i]))
            continue;
        /* With --text no argument is one. */
        if (command->texts == 0 || i < command->texts ||
            has_option(arguments, "text"))
            return usage_error(command,
                               "'-' in place of %s: that cannot be a pipe; "
                               "'./-' is a file of that name",
                               i == 0 && command != &command_merge
                                   ? "a checkpoint"
                                   : "a file");
        if (n_texts++ > 0)
            return usage_error(command, "standard input is there only once");
    }
    return -1;
}

/* Values that are one of some words, before the operands: a file that stands
 * where a value was forgotten is not missed as an operand. A value that may be
 * left out belongs behind an equals sign: a word of those that it may be, and
 * no file, was meant as one. */
static int
check_values(const struct arguments *arguments)
{
    const struct command *command = arguments->command;

    for (int i = 0; i < arguments->n_given; i++) {
        const struct option *option = arguments->given[i].option;
        const char *const *word = find_choices(command, option->name);
        const char *value;
        if (word != NULL && !option_choice(arguments, option->name, &value))
            return EXIT_USAGE;
        if (!option_is_optional(option) || arguments->given[i].value != NULL)
            continue;
        for (; word != NULL && *word != NULL; word++)
            for (int k = 0; k < arguments->n_operands; k++)
                if (strcmp(arguments->operands[k], *word) == 0 &&
                    access(*word, F_OK) != 0)
                    return usage_error(command,
                                       "'%s' is no file; expected: --%s=%s, "
                                       "with an equals sign",
                                       *word, option->name, *word);
    }
    return -1;
}

/* Also where it has no use. */
static int
check_threads(const struct arguments *arguments)
{
    int n;

    return thread_option(arguments, &n) ? -1 : EXIT_USAGE;
}

static int
check_operands(const struct arguments *arguments)
{
    const struct command *command = arguments->command;

    if (has_option(arguments, "quiet") && has_option(arguments, "verbose"))
        return usage_error(command, "-q and -v exclude each other");
    int code = check_values(arguments);
    if (code != -1)
        return code;
    if (arguments->n_operands < command->least)
        return usage_error(command, "expected: %s", command->operands);
    if (arguments->n_operands > command->most)
        return usage_error(command, "unexpected argument '%s'; expected: %s",
                           arguments->operands[command->most],
                           command->operands);
    code = check_empty(arguments);
    if (code == -1)
        code = check_dashes(arguments);
    return code == -1 ? check_threads(arguments) : code;
}

/* ---- Parsing ---- */

/* Scripts give -j and --progress to whatever they run: a command whose work is
 * short takes them, too, and has no use for them. */
static void
list_taken(const struct command *command,
           const struct option *tables[N_TABLES])
{
    list_tables(command, tables);
    if (command->also == NULL)
        tables[1] = work_options;
}

const struct option *
find_option(const struct command *command, const char *name, size_t n)
{
    const struct option *tables[N_TABLES];

    list_taken(command, tables);
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

    list_taken(command, tables);
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
        return usage_error(arguments->command,
                           "there are more than %d options%s", MAX_OCCURRENCES,
                           strcmp(option->name, "keep") == 0 ||
                                   strcmp(option->name, "set") == 0
                               ? "; a recipe has more rules"
                               : "");
    arguments->given[arguments->n_given].option = option;
    arguments->given[arguments->n_given++].value = value;
    return -1;
}

/* The word behind an option, unless that is an option itself: its value was
 * forgotten then. */
static const char *
next_value(const struct command *command, char **argv, int *i)
{
    const char *value = argv[*i + 1];

    if (value == NULL)
        return NULL;
    if (strncmp(value, "--", 2) == 0 &&
        find_option(command, value + 2, strcspn(value + 2, "=")) != NULL)
        return NULL;
    ++*i;
    return value;
}

/* --name, --name=value, --name value, --name[=value]. */
static int
parse_long(struct arguments *arguments, char **argv, int *i)
{
    const struct command *command = arguments->command;
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    const struct option *option = find_option(command, name, n);
    const char *value = name[n] == '=' ? name + n + 1 : NULL;

    if (option == NULL)
        return unknown_long(command, name, (int)n);
    if (option->argument == NULL && value != NULL)
        return usage_error(command, "--%s takes no value", option->name);
    if (option_is_optional(option))
        return add(arguments, option, value);
    if (option->argument != NULL && value == NULL)
        value = next_value(command, argv, i);
    if (option->argument != NULL && value == NULL)
        return usage_error(command, "--%s needs a value (%s)", option->name,
                           option->argument);
    return add(arguments, option, value);
}

/* -a, -abc, -j4, -j 4; a value that may be left out is. */
static int
parse_short(struct arguments *arguments, char **argv, int *i)
{
    const struct command *command = arguments->command;
    int code = -1;

    for (const char *p = argv[*i] + 1; *p != '\0' && code == -1; p++) {
        const struct option *option = find_letter(command, *p);
        if (option == NULL && *p == 'o' && has_output_operand(command))
            return unknown_output(command, "-", "o");
        if (option == NULL)
            return usage_error(command, "unknown option '-%c'", *p);
        if (option->argument == NULL || option_is_optional(option)) {
            code = add(arguments, option, NULL);
            continue;
        }
        const char *value =
            p[1] != '\0' ? p + 1 : next_value(command, argv, i);
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
        else if (arguments->n_operands == MAX_PARTS)
            code = usage_error(command, "too many arguments");
        else
            arguments->operands[arguments->n_operands++] = argv[i];
    }
    if (code == -1 && has_option(arguments, "help")) {
        print_command_help(command);
        return finish_output(EXIT_DONE);
    }
    return code == -1 ? check_operands(arguments) : code;
}
