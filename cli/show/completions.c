/*
 * completions.c - what shells need to complete command lines, printed from the
 * tables of commands and options, so that no list is kept beside them.
 *
 * Words of the tables are letters, digits and dashes, and stand unquoted;
 * texts for people are quoted as each shell wants it.
 */
#include "config.h"

#include <string.h>

#include "cli/command.h"

enum value_kind { VALUE_NONE, VALUE_WORDS, VALUE_FILE, VALUE_OTHER };

static enum value_kind
value_kind(const struct command *command, const struct option *option)
{
    if (option->argument == NULL)
        return VALUE_NONE;
    if (find_choices(command, option->name) != NULL)
        return VALUE_WORDS;
    /* FILE, FILE.html, and the texts and folders that are read. */
    if (strncmp(option->argument, "FILE", 4) == 0 ||
        strcmp(option->argument, "FOLDER") == 0 ||
        strcmp(option->name, "text") == 0 ||
        strcmp(option->name, "calibrate") == 0)
        return VALUE_FILE;
    return VALUE_OTHER;
}

static void
print_words(const struct command *command, const struct option *option)
{
    const char *const *words = find_choices(command, option->name);

    for (int i = 0; words[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", words[i]);
}

static void
print_names(const struct command *const *commands)
{
    for (int i = 0; commands[i] != NULL; i++)
        printf("%s ", commands[i]->name);
}

/* Calls something for each option of a command. */
static void
each_option(const struct command *command,
            void (*print)(const struct command *, const struct option *))
{
    const struct option *tables[N_TABLES];

    list_tables(command, tables);
    for (int i = 0; i < N_TABLES; i++)
        for (const struct option *o = tables[i]; o->name != NULL; o++)
            print(command, o);
}

/* A help text on one line inside single quotes; a backslash goes before each
 * of `special`. In fish, but not elsewhere, one protects a quote too. */
static void
print_help_text(const char *text, const char *special, const char *quote)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'')
            fputs(quote, stdout);
        else if (strchr(special, *p) != NULL)
            printf("\\%c", *p);
        else
            putchar(*p == '\n' ? ' ' : *p);
    }
}

/* ---- bash ---- */

static void
print_bash_option(const struct command *command, const struct option *option)
{
    (void)command;
    if (option->letter != 0 &&
        (option->argument == NULL || option_is_optional(option)))
        printf("-%c ", option->letter);
    printf("--%s%s ", option->name, option->argument == NULL ? "" : "=");
    if (option_is_optional(option))
        printf("--%s ", option->name);
}

/* "CONDITION) ACTION;;", for options with a value. */
static void
print_bash_value(const struct command *command, const struct option *option)
{
    enum value_kind kind = value_kind(command, option);

    if (kind == VALUE_NONE)
        return;
    printf("    %s:--%s", command->name, option->name);
    if (option->letter != 0 && !option_is_optional(option))
        printf(" | %s:-%c", command->name, option->letter);
    fputs(") ", stdout);
    if (kind == VALUE_WORDS) {
        fputs("words='", stdout);
        print_words(command, option);
        fputs("' ;;\n", stdout);
    } else
        puts(kind == VALUE_FILE ? "words=FILE ;;" : "words=OTHER ;;");
}

/* With "-o default" an empty list means names of files. bash takes "=" for a
 * word of its own. */
static const char bash_end[] =
    "    *) return 1 ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_lmquant()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} words\n"
    "    local option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "\n"
    "    COMPREPLY=()\n"
    "    if [ \"$current\" = '=' ]; then\n"
    "        current=\n"
    "    elif [ \"$option\" = '=' ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ] ||\n"
    "        { [ \"$COMP_CWORD\" -eq 2 ] && [ \"$option\" = help ]; }; then\n"
    "        words=$_lmquant_commands\n"
    "        [ \"$COMP_CWORD\" -eq 2 ] || words=\"$words help --help "
    "--version\"\n"
    "    elif _lmquant_value \"${COMP_WORDS[1]}\" \"$option\"; then\n"
    "        case $words in\n"
    "        FILE) return ;;\n"
    "        OTHER) compopt +o default 2> /dev/null; return ;;\n"
    "        esac\n"
    "    else\n"
    "        case $current in\n"
    "        -*) words=$(_lmquant_options \"${COMP_WORDS[1]}\") ;;\n"
    "        *) return ;;\n"
    "        esac\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
    "    case ${COMPREPLY[0]} in\n"
    "    *=) compopt -o nospace 2> /dev/null ;;\n"
    "    esac\n"
    "    return 0\n"
    "}\n"
    "complete -o default -F _lmquant lmquant";

static void
print_bash(const struct command *const *commands)
{
    fputs("_lmquant_commands='", stdout);
    print_names(commands);
    puts("'\n\n_lmquant_options()\n{\n    case $1 in");
    for (int i = 0; commands[i] != NULL; i++) {
        printf("    %s) echo '", commands[i]->name);
        each_option(commands[i], print_bash_option);
        puts("' ;;");
    }
    puts("    esac\n}\n\n# What may stand behind an option, to $words; 1 if "
         "nothing does.\n_lmquant_value()\n{\n    case $1:$2 in");
    for (int i = 0; commands[i] != NULL; i++)
        each_option(commands[i], print_bash_value);
    puts(bash_end);
}

/* ---- zsh ---- */

/* A specification for _arguments: both names exclude each other, unless the
 * option may be given again. */
static void
print_zsh_option(const struct command *command, const struct option *option)
{
    enum value_kind kind = value_kind(command, option);
    const char *assign =
        kind == VALUE_NONE ? "" : option_is_optional(option) ? "=-" : "=";
    bool is_repeated = strstr(option->help, "repeat") != NULL;

    fputs("            ", stdout);
    if (is_repeated)
        fputs("'*'", stdout);
    else if (option->letter != 0)
        printf("'(-%c --%s)'", option->letter, option->name);
    if (option->letter != 0)
        printf("{-%c%s,--%s%s}", option->letter,
               kind == VALUE_NONE ? "" : option_is_optional(option) ? "-" : "+",
               option->name, assign);
    else
        printf("--%s%s", option->name, assign);
    fputs("'[", stdout);
    print_help_text(option->help, "\\[]:", "'\\''");
    putchar(']');
    if (kind != VALUE_NONE) {
        fputs(option_is_optional(option) ? "::" : ":", stdout);
        print_help_text(option->argument, "\\:", "'\\''");
        putchar(':');
    }
    if (kind == VALUE_WORDS) {
        putchar('(');
        print_words(command, option);
        putchar(')');
    } else if (kind == VALUE_FILE)
        fputs("_files", stdout);
    puts("' \\");
}

static void
print_zsh(const struct command *const *commands)
{
    puts("_lmquant()\n"
         "{\n"
         "    local curcontext=$curcontext state line\n"
         "    typeset -A opt_args\n"
         "    local -a commands=(");
    for (int i = 0; commands[i] != NULL; i++) {
        printf("        '%s:", commands[i]->name);
        print_help_text(commands[i]->summary, "\\:", "'\\''");
        puts("'");
    }
    puts("    )\n"
         "    _arguments -C '(-)--version[print the version]' \\\n"
         "        '(-)--help[list the commands]' \\\n"
         "        '1:command:->command' '*::argument:->argument'\n"
         "    case $state in\n"
         "    command)\n"
         "        commands+=('help:say more about a command')\n"
         "        _describe command commands\n"
         "        ;;\n"
         "    argument)\n"
         "        case $words[1] in\n"
         "        help) _describe command commands ;;");
    for (int i = 0; commands[i] != NULL; i++) {
        printf("        %s)\n            _arguments -s \\\n",
               commands[i]->name);
        each_option(commands[i], print_zsh_option);
        puts("            '*:file:_files' ;;");
    }
    puts("        esac\n"
         "        ;;\n"
         "    esac\n"
         "}\n"
         "\n"
         "# Whether it is loaded as a function or read as a file.\n"
         "if [ \"$funcstack[1]\" = _lmquant ]; then\n"
         "    _lmquant \"$@\"\n"
         "else\n"
         "    compdef _lmquant lmquant\n"
         "fi");
}

/* ---- fish ---- */

static void
print_fish_option(const struct command *command, const struct option *option)
{
    enum value_kind kind = value_kind(command, option);

    printf("complete -c lmquant -n '__fish_seen_subcommand_from %s'",
           command->name);
    if (option->letter != 0)
        printf(" -s %c", option->letter);
    printf(" -l %s", option->name);
    if (kind == VALUE_WORDS) {
        fputs(option_is_optional(option) ? " -f -a '" : " -x -a '", stdout);
        print_words(command, option);
        putchar('\'');
    } else if (kind != VALUE_NONE)
        fputs(kind == VALUE_FILE ? " -r -F" : " -x", stdout);
    fputs(" -d '", stdout);
    print_help_text(option->help, "\\", "\\'");
    puts("'");
}

static void
print_fish(const struct command *const *commands)
{
    for (int i = 0; commands[i] != NULL; i++) {
        printf("complete -c lmquant -n __fish_use_subcommand -f -a %s -d '",
               commands[i]->name);
        print_help_text(commands[i]->summary, "\\", "\\'");
        puts("'");
    }
    fputs("complete -c lmquant -n __fish_use_subcommand -f -a help "
          "-d 'say more about a command'\n"
          "complete -c lmquant -n __fish_use_subcommand -f -l version "
          "-d 'print the version'\n"
          "complete -c lmquant -n __fish_use_subcommand -f -l help "
          "-d 'list the commands'\n"
          "complete -c lmquant -n '__fish_seen_subcommand_from help' -f -a '",
          stdout);
    print_names(commands);
    puts("'");
    for (int i = 0; commands[i] != NULL; i++)
        each_option(commands[i], print_fish_option);
}

int
print_completions(const struct command *const *commands, const char *shell)
{
    static const struct {
        const char *shell, *header;
        void (*print)(const struct command *const *commands);
    } shells[] = {
        {"bash", "", print_bash},
        {"zsh", "#compdef lmquant\n", print_zsh},
        {"fish", "", print_fish},
    };

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(shells[i].shell, shell) == 0) {
            printf("%s# %s completion of lmquant %s, made by lmquant help "
                   "--completion=%s\n\n",
                   shells[i].header, shell, lmq_version(), shell);
            shells[i].print(commands);
            return EXIT_DONE;
        }
    return usage_error(NULL, "--completion is '%s', expected bash, zsh or fish",
                       shell);
}
