/*
 * messages.c - what went wrong, in a line or two on standard error.
 */
#include "config.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

/* ---- Harmless text ---- */

/* Where the last `most` characters of UTF-8 text begin. */
static const char *
text_tail(const char *text, int most)
{
    const char *p = text + strlen(text);

    while (p > text && most > 0) {
        p--;
        most -= ((unsigned char)*p & 0xc0) != 0x80;
    }
    return p;
}

void
print_name(const char *name, int width)
{
    int n = 0, head = (width - 3) / 2;
    const char *end = name;

    for (const char *p = name; *p != '\0'; p++) {
        n += ((unsigned char)*p & 0xc0) != 0x80; /* characters, not bytes */
        if (n <= head)
            end = p + 1;
    }
    if (n <= width)
        printf("%s%*s", name, width - n, "");
    else
        printf("%.*s...%s", (int)(end - name), name,
               text_tail(name, width - 3 - head));
}

char *
escape_text(const char *text, int most)
{
    const char *tail = text_tail(text, most);
    char *escaped = malloc(4 * strlen(tail) + 1), *out = escaped;

    for (; escaped != NULL && *tail != '\0'; tail++) {
        unsigned char c = (unsigned char)*tail;
        if (c == '\n')
            out += sprintf(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            out += sprintf(out, "\\x%02x", c);
        else
            *out++ = (char)c;
    }
    if (escaped != NULL)
        *out = '\0';
    return escaped;
}

/* ---- Messages ---- */

void
name_file(struct lmq_error *err, const char *path)
{
    char *shown = escape_text(path, (int)sizeof(err->path) - 1);

    snprintf(err->path, sizeof(err->path), "%s", shown == NULL ? "" : shown);
    free(shown);
}

int
report_error(const struct lmq_error *err)
{
    fprintf(stderr, "lmquant: %s%s", err->path,
            err->path[0] == '\0' ? "" : ": ");
    print_flags(stderr, err->message);
    if (err->hint[0] != '\0') {
        fputs("\nhint: ", stderr);
        print_flags(stderr, err->hint);
    }
    putc('\n', stderr);
    switch (err->status) {
    case LMQ_ERR_ARG:
        return EXIT_USAGE;
    case LMQ_ERR_FORMAT:
    case LMQ_ERR_UNSUPPORTED:
    case LMQ_ERR_NONFINITE:
        return EXIT_INPUT;
    default:
        return EXIT_SYSTEM;
    }
}

/* Names on a command line may come from a folder of somebody else's, so no
 * control character reaches the terminal. */
static void
print_message(const char *format, va_list args)
{
    char text[4096];

    vsnprintf(text, sizeof(text), format, args);
    char *escaped = escape_text(text, (int)sizeof(text));
    fprintf(stderr, "lmquant: %s\n", escaped == NULL ? "" : escaped);
    free(escaped);
}

void
print_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(format, args);
    va_end(args);
}

static int
print_usage_error(const struct command *command,
                  const struct suggestion *suggestion, const char *format,
                  va_list args)
{
    print_message(format, args);
    fputs("hint: ", stderr);
    if (suggestion != NULL && suggestion->best != NULL)
        fprintf(stderr, "did you mean '%s%s'? Else: ",
                suggestion->prefix == NULL ? "" : suggestion->prefix,
                suggestion->best);
    fprintf(stderr, "lmquant %s%s--help\n",
            command == NULL ? "" : command->name, command == NULL ? "" : " ");
    return EXIT_USAGE;
}

int
usage_error(const struct command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int code = print_usage_error(command, NULL, format, args);
    va_end(args);
    return code;
}

int
suggestion_error(const struct command *command,
                 const struct suggestion *suggestion, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int code = print_usage_error(command, suggestion, format, args);
    va_end(args);
    return code;
}

/* ---- Files that are truncated ---- */

static void
write_text(const char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        ssize_t written = write(STDERR_FILENO, text, n);
        if (written <= 0)
            return;
        text += written;
        n -= (size_t)written;
    }
}

/* Only what a handler may call. Outputs have no name yet, so nothing of them
 * stays behind; where they must have one, the next output cleans up. */
static void
say_truncated(int number, siginfo_t *info, void *context)
{
    const char *path = lmq_mapping_at(info->si_addr);

    (void)context;
    if (path == NULL) { /* none of ours: end as if there were no handler */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    write_text("lmquant: ");
    write_text(path);
    write_text(": the file became shorter while it was in use, or cannot be "
               "read any more\n"
               "hint: rename a new file to its name instead of writing into "
               "it, or use --no-mmap\n");
    _exit(EXIT_SYSTEM);
}

void
catch_truncation(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    action.sa_sigaction = say_truncated;
    sigaction(SIGBUS, &action, NULL);
}
