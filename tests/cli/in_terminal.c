/*
 * in_terminal.c - runs a command on a terminal of a given width, types what
 * comes on standard input, and prints what it wrote there, byte for byte.
 *
 *     in_terminal COLUMNS COMMAND...
 *
 * \001TEXT\001 in what is typed waits until TEXT is on the screen, behind what
 * the wait before has seen.
 */
#define _XOPEN_SOURCE 700
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void
become_command(int master, const char *name, unsigned columns, char **argv)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

    setsid();
    int terminal = open(name, O_RDWR);
    if (terminal < 0 || ioctl(terminal, TIOCSWINSZ, &size) != 0)
        _exit(99);
    close(master);
    dup2(terminal, STDIN_FILENO);
    dup2(terminal, STDOUT_FILENO);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    signal(SIGINT, SIG_DFL); /* a script's background ignores it */
    execvp(argv[0], argv);
    _exit(99);
}

enum { ROOM = 1 << 16, WAIT = 1 };

/* With a NUL behind it. */
struct bytes {
    char at[ROOM + 1];
    size_t n;
};

static bool
append(struct bytes *to, int file)
{
    ssize_t n = read(file, to->at + to->n, ROOM - to->n);

    if (n <= 0)
        return false;
    to->n += (size_t)n;
    to->at[to->n] = '\0';
    return true;
}

static void
drop(struct bytes *from, size_t n)
{
    memmove(from->at, from->at + n, from->n - n + 1);
    from->n -= n;
}

/* Whether the wait that keys begin with is over; if it is, nothing of it
 * remains. */
static bool
has_waited(struct bytes *keys, struct bytes *seen)
{
    char *end = memchr(keys->at + 1, WAIT, keys->n - 1);

    if (end == NULL)
        return false;
    *end = '\0';
    char *text = strstr(seen->at, keys->at + 1);
    *end = WAIT;
    if (text == NULL)
        return false;
    drop(seen, (size_t)(text - seen->at) + (size_t)(end - keys->at) - 1);
    drop(keys, (size_t)(end - keys->at) + 1);
    return true;
}

static bool
type(int master, struct bytes *keys, struct bytes *seen)
{
    while (keys->n > 0) {
        char *wait = memchr(keys->at, WAIT, keys->n);
        size_t n = wait == NULL ? keys->n : (size_t)(wait - keys->at);
        if (n == 0 && !has_waited(keys, seen))
            return true;
        if (n > 0 && write(master, keys->at, n) != (ssize_t)n)
            return false;
        drop(keys, n);
    }
    return true;
}

/* Until the command has ended: the end of the other side is an error of
 * reading on Linux. */
static void
copy(int master)
{
    static struct bytes keys, seen;
    struct pollfd ends[2] = {{.fd = master, .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};

    while (poll(ends, 2, -1) >= 0) {
        if (ends[1].revents != 0 && !append(&keys, STDIN_FILENO))
            ends[1].fd = -1;
        if (ends[0].revents != 0) {
            if (seen.n > ROOM / 2)
                drop(&seen, ROOM / 4);
            size_t n = seen.n;
            if (!append(&seen, master))
                return;
            fwrite(seen.at + n, 1, seen.n - n, stdout);
        }
        if (!type(master, &keys, &seen))
            keys.n = 0;
    }
}

int
main(int argc, char **argv)
{
    int status, master = posix_openpt(O_RDWR | O_NOCTTY);

    if (argc < 3)
        return 2;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return 77;
    pid_t child = fork();
    if (child == 0)
        become_command(master, ptsname(master),
                       (unsigned)strtoul(argv[1], NULL, 10), argv + 2);
    copy(master);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
