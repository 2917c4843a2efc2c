/*
 * in_terminal.c - runs a command on a terminal of a given width, types what
 * comes on standard input, and prints what it wrote there, byte for byte.
 *
 *     in_terminal COLUMNS COMMAND...
 */
#define _XOPEN_SOURCE 700
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Until the command has ended: the end of the other side is an error of
 * reading on Linux. */
static void
copy(int master)
{
    struct pollfd ends[2] = {{.fd = master, .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};
    char bytes[4096];

    while (poll(ends, 2, -1) >= 0) {
        ssize_t n = 0;
        if (ends[1].revents != 0) {
            n = read(STDIN_FILENO, bytes, sizeof(bytes));
            if (n <= 0 || write(master, bytes, (size_t)n) != n)
                ends[1].fd = -1;
        }
        if (ends[0].revents == 0)
            continue;
        n = read(master, bytes, sizeof(bytes));
        if (n <= 0)
            return;
        fwrite(bytes, 1, (size_t)n, stdout);
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
