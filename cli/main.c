/*
 * main.c - lmquant: finds the command and runs it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/command.h"

static const struct command *const commands[] = {
    &command_convert, &command_validate, &command_plan,   &command_run,
    &command_inspect, &command_verify,   &command_diff,   &command_export,
    &command_split,   &command_join,     &command_seal,   &command_merge,
    &command_jobs,    &command_bench,    &command_tokenize, NULL,
};

static void
print_help(void)
{
    puts("usage: lmquant COMMAND [options] ARGUMENTS\n"
         "\n"
         "Quantizes checkpoints of language models to integers in groups, and "
         "shows\nhow good the result is.\n");
    for (int i = 0; commands[i] != NULL; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    puts("\n"
         "lmquant help COMMAND, or lmquant COMMAND --help, says more; so does\n"
         "the manual: man lmquant. lmquant --version prints the version.");
}

static const struct command *
find_command(const char *name)
{
    for (int i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int
unknown_command(const char *name)
{
    struct suggestion suggestion = {.wanted = name, .prefix = "lmquant "};

    if (name[0] == '-')
        return usage_error(NULL, "'%s' in place of a command: options stand "
                                 "behind it",
                           name);
    for (int i = 0; commands[i] != NULL; i++)
        suggest(&suggestion, commands[i]->name);
    return suggestion_error(NULL, &suggestion, "unknown command '%s'", name);
}

static int
one_too_many(const char *argument)
{
    print_error("unexpected argument '%s'", argument);
    return EXIT_USAGE;
}

static bool
is_flag(const char *word, const char *letter, const char *name)
{
    return strcmp(word, letter) == 0 || strcmp(word, name) == 0;
}

static bool
is_help(const char *word)
{
    return is_flag(word, "-h", "--help") || strcmp(word, "help") == 0;
}

/* The words behind "help", as they were given; NULL where there is none. */
static int
help(const char *const *words)
{
    static const char completion[] = "--completion=";
    const size_t n = strlen(completion);
    const char *name = words[0];
    const struct command *command = name == NULL ? NULL : find_command(name);
    const char *shell = NULL;

    if (name != NULL && strncmp(name, completion, n) == 0)
        shell = name + n;
    else if (name != NULL && strcmp(name, "--completion") == 0)
        shell = *++words == NULL ? "" : *words;
    else if (name != NULL && command == NULL && !is_help(name))
        return unknown_command(name);
    if (words[0] != NULL && words[1] != NULL)
        return one_too_many(words[1]);
    if (shell != NULL)
        return finish_output(print_completions(commands, shell));
    if (command != NULL)
        print_command_help(command);
    else
        print_help();
    return finish_output(EXIT_DONE);
}

static int
print_version(bool is_verbose)
{
    printf("lmquant %s\n", lmq_version());
    if (is_verbose)
        printf("instruction set: %s\n", lmq_instruction_set());
    return finish_output(EXIT_DONE);
}

/* What is asked of the program itself: help, or the version. Its options may
 * stand anywhere, as those of commands may. Returns -1 if it is a command. */
static int
answer(char *const *words)
{
    enum { MOST = 4 }; /* help --completion SHELL, and one too many */
    const char *asked[MOST + 1] = {NULL};
    bool is_quiet = false, is_verbose = false;
    int n = 0;

    for (; *words != NULL; words++)
        if (is_flag(*words, "-q", "--quiet"))
            is_quiet = true;
        else if (is_flag(*words, "-v", "--verbose"))
            is_verbose = true;
        else if (n < MOST && (n == 0 || !is_help(asked[0]) ||
                              !is_flag(*words, "-h", "--help")))
            asked[n++] = *words;
    bool is_version = n > 0 && is_flag(asked[0], "-V", "--version");
    if (n == 0 || (!is_version && !is_help(asked[0])))
        return -1;
    if (is_quiet && is_verbose)
        return usage_error(NULL, "-q and -v exclude each other");
    if (!is_version)
        return help(asked + 1);
    return n > 1 ? one_too_many(asked[1]) : print_version(is_verbose);
}

/* A command that only reads gives up the rest before it looks at a file; not a
 * word if the system cannot do it. */
static unsigned
enter_sandbox(const struct arguments *arguments)
{
    const char *paths[MAX_OPERANDS + MAX_OCCURRENCES];
    const char *wish = getenv("LMQUANT_SANDBOX");
    size_t n = 0;

    if (!arguments->command->only_reads ||
        (wish != NULL && strcmp(wish, "no") == 0))
        return 0;
    for (int i = 0; i < arguments->n_operands; i++)
        if (strcmp(arguments->operands[i], "-") != 0)
            paths[n++] = arguments->operands[i];
    for (int i = 0; i < arguments->n_given; i++) {
        const char *kind = arguments->given[i].option->argument;
        if (kind != NULL && strncmp(kind, "FILE", 4) == 0)
            paths[n++] = arguments->given[i].value;
    }
    return lmq_sandbox(paths, n);
}

/* A set has as many files as it likes, and they are open together. */
static void
allow_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* What is closed from the beginning stays so, but no file that is opened gets
 * its number and is taken for standard input or output. */
static void
fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* More than any command was seen to need; and less than any should have. */
#define STACK ((size_t)512 << 10)
#define STACK_LEAST ((size_t)256 << 10)

/* Apart from its caller, below whose frame it has its own. */
__attribute__((noinline)) static void
touch_stack(void)
{
    char room[STACK];

    for (size_t i = STACK; i > 0; i -= 1024)
        ((volatile char *)room)[i - 1] = 0;
}

/* Against a limit of addresses a stack counts when it grows, and where it
 * cannot the program would end without a word: so it grows now, if it may at
 * all. */
static bool
grow_stack(void)
{
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) != 0)
        return true;
    if (stack.rlim_cur < STACK_LEAST) {
        print_error("the stack may have %zu KB, expected %zu or more: "
                    "ulimit -s",
                    (size_t)stack.rlim_cur >> 10, STACK_LEAST >> 10);
        return false;
    }
    if (stack.rlim_cur < 4 * STACK)
        return true;
    void *probe = mmap(NULL, 2 * STACK, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) {
        print_error("out of memory");
        return false;
    }
    munmap(probe, 2 * STACK);
    touch_stack();
    return true;
}

/* Results are the same, and times are not. */
static void
check_instruction_set(const struct arguments *arguments)
{
    const char *wish = getenv("LMQUANT_CPU");

    if (wish != NULL && wish[0] != '\0' &&
        strcmp(wish, lmq_instruction_set()) != 0)
        print_note(arguments,
                   "LMQUANT_CPU=%s is not here: %s is what is used", wish,
                   lmq_instruction_set());
}

int
main(int argc, char **argv)
{
    struct arguments arguments;
    const char *name = argc > 1 ? argv[1] : NULL;

    /* A limit of file sizes is an error of the write, with a message. */
    signal(SIGXFSZ, SIG_IGN);
    fill_descriptors();
    allow_files();
    if (!grow_stack())
        return EXIT_SYSTEM;
    if (name == NULL) {
        fputs("lmquant: no command\nhint: lmquant --help\n", stderr);
        return EXIT_USAGE;
    }
    int code = answer(argv + 1);
    if (code >= 0)
        return code;
    const struct command *command = find_command(name);
    if (command == NULL)
        return unknown_command(name);
    struct command jobs;
    if (command == &command_jobs && take_jobs(argc - 1, argv + 1, &jobs))
        command = &jobs;
    catch_truncation();
    code = parse_arguments(command, argc - 1, argv + 1, &arguments);
    if (code >= 0)
        return code;
    unsigned sandbox = enter_sandbox(&arguments);
    check_instruction_set(&arguments);
    if (has_option(&arguments, "verbose"))
        print_note(&arguments, "lmquant %s, %s%s%s", lmq_version(),
                   lmq_instruction_set(),
                   sandbox & LMQ_SANDBOX_FILES ? ", reads its inputs only" : "",
                   sandbox & LMQ_SANDBOX_CALLS ? ", writes no files" : "");
    return end_by_signal(finish_output(command->run(&arguments)));
}
