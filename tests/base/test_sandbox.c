/*
 * test_sandbox.c - what is given up fails, in all threads; what reading needs
 * goes on. Each case is a child that never comes back from the sandbox.
 */
#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox/sandbox_calls.h"
#include "base/sandbox/sandbox_files.h"
#include "tests/build/suite.h"

#define EXIT_ALLOWED 1   /* what must fail was done */
#define EXIT_REFUSED 2   /* what must be done failed */
#define EXIT_NOTHING 77  /* the system has none of it */

static char inside[256], beside[256], outside[256], other[256], link_path[256];

static void
put_file(const char *path)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs("bytes", file);
    fclose(file);
}

/* model/weights, model/config, model/link -> other/blob; other/secret. */
static void
make_files(void)
{
    snprintf(other, sizeof(other), "%s", in_folder("model"));
    ck_assert_int_eq(mkdir(other, 0777), 0);
    snprintf(other, sizeof(other), "%s", in_folder("other"));
    ck_assert_int_eq(mkdir(other, 0777), 0);
    snprintf(inside, sizeof(inside), "%s", in_folder("model/weights"));
    snprintf(beside, sizeof(beside), "%s", in_folder("model/config"));
    snprintf(outside, sizeof(outside), "%s", in_folder("other/secret"));
    snprintf(other, sizeof(other), "%s", in_folder("other/blob"));
    snprintf(link_path, sizeof(link_path), "%s", in_folder("model/link"));
    put_file(inside);
    put_file(beside);
    put_file(outside);
    put_file(other);
    ck_assert_int_eq(symlink("../other/blob", link_path), 0);
}

/* Runs `work` in a child behind lmq_sandbox(); false if the system does not do
 * what `needed` says. */
static bool
in_sandbox(unsigned needed, int (*work)(void))
{
    int status;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const char *paths[] = {inside, "/nowhere/at/all"};
        unsigned gained = lmq_sandbox(paths, 2);
        _exit((gained & needed) != needed ? EXIT_NOTHING : work());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == EXIT_NOTHING) {
        puts("skipped: the system, or this build, has no such sandbox");
        return false;
    }
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return true;
}

static bool
opens(const char *path, int flags)
{
    int fd = open(path, flags, 0666);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* ---- What fails ---- */

/* The names of what was done although it must not be. */
static int
say_allowed(const char *name, bool is_allowed)
{
    if (is_allowed)
        fprintf(stderr, "%s is allowed\n", name);
    return is_allowed ? EXIT_ALLOWED : 0;
}

static int
change_files(void)
{
    char made[300];

    snprintf(made, sizeof(made), "%s.new", inside);
    return say_allowed("writing", opens(inside, O_WRONLY)) |
           say_allowed("reading and writing", opens(inside, O_RDWR)) |
           say_allowed("cutting", opens(inside, O_RDONLY | O_TRUNC)) |
           say_allowed("making", opens(made, O_RDONLY | O_CREAT)) |
           say_allowed("a temporary file", tmpfile() != NULL) |
           say_allowed("rename", rename(inside, made) == 0) |
           say_allowed("link", link(inside, made) == 0) |
           say_allowed("symlink", symlink("x", made) == 0) |
           say_allowed("unlink", unlink(inside) == 0) |
           say_allowed("mkdir", mkdir(made, 0777) == 0) |
           say_allowed("mkfifo", mkfifo(made, 0666) == 0) |
           say_allowed("chmod", chmod(inside, 0600) == 0) |
           say_allowed("chown", chown(inside, getuid(), getgid()) == 0) |
           say_allowed("truncate", truncate(inside, 1) == 0) |
           say_allowed("times", utimensat(AT_FDCWD, inside, NULL, 0) == 0);
}

static int
reach_out(void)
{
    char *const arguments[] = {(char *)"true", NULL};
    int pair[2];

    /* A program that runs ends with 0 and would look like success. */
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return say_allowed("fork", child >= 0) |
           say_allowed("exec", access("/bin/false", X_OK) == 0 &&
                                   execv("/bin/false", arguments) == 0) |
           say_allowed("system", system("true") == 0) |
           say_allowed("socket", socket(AF_INET, SOCK_STREAM, 0) >= 0) |
           say_allowed("local socket", socket(AF_UNIX, SOCK_DGRAM, 0) >= 0) |
           say_allowed("socket pair",
                       socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) |
           say_allowed("kill", kill(getppid(), 0) == 0) |
           say_allowed("typing", ioctl(0, TIOCSTI, "x") == 0 ||
                                     errno == ENOTTY);
}

static int
do_forbidden(void)
{
    return change_files() | reach_out();
}

static void *
run_in_thread(void *result)
{
    *(int *)result = do_forbidden();
    return NULL;
}

static int
do_forbidden_in_thread(void)
{
    pthread_t thread;
    int result = EXIT_ALLOWED;

    if (pthread_create(&thread, NULL, run_in_thread, &result) != 0)
        return EXIT_REFUSED;
    pthread_join(thread, NULL);
    return result;
}

static int
read_elsewhere(void)
{
    return say_allowed("reading elsewhere", opens(outside, O_RDONLY)) |
           say_allowed("reading /etc", opens("/etc/passwd", O_RDONLY)) |
           say_allowed("listing /", opens("/", O_RDONLY | O_DIRECTORY)) |
           say_allowed("writing", opens(inside, O_WRONLY));
}

START_TEST(what_writes_or_reaches_out_fails)
{
    make_files();
    in_sandbox(LMQ_SANDBOX_CALLS, do_forbidden);
    ck_assert_int_eq(access(inside, F_OK), 0);
}
END_TEST

START_TEST(it_fails_in_threads_too)
{
    make_files();
    in_sandbox(LMQ_SANDBOX_CALLS, do_forbidden_in_thread);
}
END_TEST

START_TEST(files_elsewhere_cannot_be_read)
{
    make_files();
    in_sandbox(LMQ_SANDBOX_FILES, read_elsewhere);
}
END_TEST

/* ---- What goes on ---- */

static int
say_refused(const char *name, bool is_done)
{
    if (!is_done)
        fprintf(stderr, "%s is refused: %s\n", name, strerror(errno));
    return is_done ? 0 : EXIT_REFUSED;
}

static bool
maps(const char *path)
{
    int fd = open(path, O_RDONLY);
    void *bytes = fd < 0 ? MAP_FAILED
                         : mmap(NULL, 5, PROT_READ, MAP_PRIVATE, fd, 0);

    return bytes != MAP_FAILED && memcmp(bytes, "bytes", 5) == 0;
}

static int
do_allowed(void)
{
    struct stat status;

    return say_refused("the input", maps(inside)) |
           say_refused("what lies beside", maps(beside)) |
           say_refused("what a link stands for", maps(link_path)) |
           say_refused("stat elsewhere", stat(outside, &status) == 0) |
           say_refused("output", write(STDERR_FILENO, "", 0) == 0) |
           say_refused("raise", raise(SIGCONT) == 0);
}

static int
find_nothing(void)
{
    return opens("/nowhere/at/all", O_RDONLY) || errno != ENOENT;
}

/* Twice is no failure, and may not open anything again. */
static int
enter_again(void)
{
    const char *paths[] = {outside};

    lmq_sandbox(paths, 1);
    return say_allowed("reading more", opens(outside, O_RDONLY)) |
           say_refused("the input, again", !opens(inside, O_RDONLY));
}

START_TEST(reading_goes_on)
{
    make_files();
    in_sandbox(LMQ_SANDBOX_CALLS, do_allowed);
    in_sandbox(LMQ_SANDBOX_FILES, do_allowed);
    in_sandbox(LMQ_SANDBOX_CALLS, find_nothing);
}
END_TEST

START_TEST(a_second_one_opens_nothing)
{
    make_files();
    in_sandbox(LMQ_SANDBOX_FILES, enter_again);
}
END_TEST

/* ---- What counts lines ---- */

/*
 * A build that counts lines does not enter the sandbox, which would refuse the
 * file of the counts. Here a child does that has its parent's memory, and with
 * it the counters, so that the parent writes down what the child ran.
 */
START_TEST(a_build_that_counts_lines_counts_these)
{
#if defined LMQ_COVERAGE && defined PR_SET_NO_NEW_PRIVS
    int status;

    make_files();
    const char *paths[] = {inside, "/nowhere/at/all"};
    pid_t child = vfork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            !lmq_sandbox_files(paths, 2) || !lmq_sandbox_calls())
            _exit(EXIT_NOTHING);
        _exit(opens(outside, O_RDONLY) || opens(inside, O_WRONLY)
                  ? EXIT_ALLOWED
                  : !opens(inside, O_RDONLY));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) != EXIT_NOTHING)
        ck_assert_int_eq(WEXITSTATUS(status), 0);
#endif
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        what_writes_or_reaches_out_fails, it_fails_in_threads_too,
        files_elsewhere_cannot_be_read,   reading_goes_on,
        a_second_one_opens_nothing,
        a_build_that_counts_lines_counts_these,
    };

    return RUN_SUITE("sandbox", tests);
}
