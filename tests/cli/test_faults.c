/*
 * test_faults.c - every command, while one call after the other fails.
 *
 * fault_shim.c makes the Nth allocation, read, write, ... of a command fail,
 * for N from 1 until there is none. Whatever fails, the command either does
 * all of its work, and then its output is what it always is, or it ends with
 * exit status 1, one message with the system's reason, nothing of a document
 * on standard output, and every file as it was. Interrupted and short reads
 * and writes do not count as failures: the work is done.
 *
 *     test_faults [--long] [COMMAND [CLASS]]
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/cli/fault_files.h"
#include "tests/cli/fault_model.h"

#define SKIPPED 77
#define SECONDS_MAX 60 /* of one run: more is a hang */
#ifndef FAILURES_SHOWN
#define FAILURES_SHOWN 3 /* of a command and class */
#endif

/* A program that counts lines writes hundreds of files at its end: there, of
 * the allocations one in so many fails. */
#ifdef LMQ_COVERAGE
#define MEMORY_STEP 17
#else
#define MEMORY_STEP 1
#endif

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

/* ---- What fails ---- */

static const struct class {
    const char *name, *code_name;
    int code;     /* -1: half of the work is done */
    bool is_soft; /* to be tried again */
    bool is_long;
} classes[] = {
    {"memory", "ENOMEM", ENOMEM, false, false},
    {"mmap", "ENOMEM", ENOMEM, false, false},
    {"open", "EMFILE", EMFILE, false, false},
    {"open", "EACCES", EACCES, false, true},
    {"open", "ENFILE", ENFILE, false, true},
    {"stat", "EIO", EIO, false, false},
    {"readdir", "EIO", EIO, false, false},
    {"read", "EIO", EIO, false, false},
    {"read", "EINTR", EINTR, true, false},
    {"read", "SHORT", -1, true, false},
    {"write", "ENOSPC", ENOSPC, false, false},
    {"write", "EIO", EIO, false, true},
    {"write", "EINTR", EINTR, true, false},
    {"write", "SHORT", -1, true, false},
    {"space", "ENOSPC", ENOSPC, false, false},
    {"space", "EINTR", EINTR, true, false},
    {"fsync", "EIO", EIO, false, false},
    {"rename", "EIO", EIO, false, false},
    {"rename", "ENOSPC", ENOSPC, false, true},
};

#define N_CLASSES (sizeof(classes) / sizeof(classes[0]))

/* ---- What is run ---- */

#if defined(LMQ_HAVE_NETTLE) || defined(LMQ_HAVE_LIBCRYPTO)
static const bool has_digests = true;
#else
static const bool has_digests = false;
#endif

enum kind {
    TEXT,     /* what was said before the failure may stay */
    DOCUMENT, /* all or nothing */
    TIMED     /* figures in it, and in files, differ from run to run */
};

static const struct command {
    const char *name;
    const char *arguments; /* between spaces; outputs are in w/ */
    const char *input;     /* standard input */
    const char *old;       /* of the files in w/, where the output will be; or
                              a folder with a / behind it, whose files are there
                              and are to be gone on with after a failure */
    enum kind kind;
    bool is_long;
} commands[] = {
    {"convert", "convert -q -f model w/out", NULL, "out", TEXT, false},
    {"convert-new", "convert -qz --json model w/out", NULL, NULL, DOCUMENT,
     false},
    {"convert-set", "convert -q -f --shard-size 10K model w/out.lmq", NULL,
     "out-00002-of-00099.lmq", TEXT, false},
    {"convert-resume", "convert -q --resume model w/out", NULL, NULL, TEXT,
     true},
    {"convert-half", "convert -q --resume model w/out", NULL, "half/", TEXT,
     true},
    {"calibrate-resume", "convert -q --resume -e q4 --rotate --calibrate text "
     "--calibrate-tokens 60 --ctx 8 model w/out", NULL, NULL, TEXT, true},
    {"own-text", "convert -q -f --own-text --calibrate-tokens 24 --ctx 8 model "
     "w/out.lmq", NULL, "out.lmq", TEXT, true},
    {"split", "split -q -f --shard-size 6K m.lmq w", NULL,
     "m-00002-of-00099.lmq", TEXT, false},
    {"join", "join --json set w/out.lmq", NULL, NULL, DOCUMENT, false},
    {"join-digests", "join -q -f dset w/out.lmq", NULL, "out.lmq", TEXT, true},
    {"convert-part", "convert -q --part 2/2 model w/m.lmq", NULL, NULL, TEXT,
     true},
    {"seal", "seal -q w", NULL, "parts/", TEXT, false},
    {"seal-digests", "seal -f --json w", NULL, "dparts/", DOCUMENT, true},
    {"inspect-set", "inspect --json --tensors set", NULL, NULL, DOCUMENT,
     true},
    {"verify-set", "verify --json set", NULL, NULL, DOCUMENT, true},
    {"verify-set-digests", "verify --json dset", NULL, NULL, DOCUMENT, true},
    {"run-set", "run -q -n 2 --temp 0 set the", NULL, NULL, TEXT, true},
    {"convert-recipe", "convert -q -f --recipe r.yaml --set *=bf16 model w/out",
     NULL, "out", TEXT, false},
    {"convert-digests", "convert -q -f --digests model w/out", NULL, "out",
     TEXT, false},
    {"inspect", "inspect --json --tensors model", NULL, NULL, DOCUMENT, false},
    {"inspect-torch", "inspect --json --tensors m.pt", NULL, NULL, DOCUMENT,
     false},
    {"inspect-lmq", "inspect --yaml m.lmq", NULL, NULL, DOCUMENT, false},
    {"verify", "verify m.lmq", NULL, NULL, TEXT, false},
    {"verify-json", "verify --json m.lmq", NULL, NULL, DOCUMENT, false},
    {"verify-digests", "verify --json d.lmq", NULL, NULL, DOCUMENT, false},
    {"diff", "diff --json model m.lmq", NULL, NULL, DOCUMENT, false},
    {"run", "run -q -n 2 --temp 0 m.lmq the", NULL, NULL, TEXT, false},
    {"run-json", "run --json -n 2 --temp 0 model the", NULL, NULL, TIMED,
     false},
    {"validate", "validate -q --ctx 8 --max-tokens 16 --json --attribute "
     "model m.lmq text", NULL, NULL, TIMED, false},
    {"validate-report", "validate -q -f --ctx 8 --max-tokens 16 --json "
     "--report w/out model m.lmq text", NULL, "out", TIMED, true},
    {"validate-several", "validate -q --ctx 8 --split-documents --json "
     "--baseline baseline.json --gate kld.mean<=baseline*2 model m.lmq m.gguf "
     "--text documents", NULL, NULL, TIMED, true},
    {"validate-part", "validate -q -f --ctx 8 --part 1/2 --report w/out model "
     "m.lmq text", NULL, "out", TIMED, true},
    {"merge", "merge --json 2.json 1.json", NULL, NULL, TIMED, false},
    {"merge-report", "merge -q -f --json --report w/out 2.json 1.json", NULL,
     "out", TIMED, true},
    {"jobs", "jobs --nodes 3 convert model w/out.lmq", NULL, NULL, DOCUMENT,
     false},
    {"tokenize", "tokenize --ids model", "the cat and a hen", NULL, TEXT,
     false},
    {"tokenize-json", "tokenize --json m.lmq", "the cat and a hen", NULL,
     DOCUMENT, false},
    {"export-gguf", "export -q -f --to gguf m.lmq w/out", NULL, "out", TEXT,
     false},
    {"export-llama2c", "export -q -f --to llama2c m.lmq w/out", NULL, "out",
     TEXT, false},
    {"export-safetensors", "export --json --to safetensors m.lmq w/out", NULL,
     NULL, DOCUMENT, false},
    {"bench", "bench --json -p 4 -n 2 --rounds 1 m.lmq", NULL, NULL, TIMED,
     true},
    {"inspect-gguf", "inspect --json --tensors m.gguf", NULL, NULL, DOCUMENT,
     true},
    {"convert-gguf", "convert -q -f m.gguf w/out", NULL, "out", TEXT, true},
    {"convert-llama2c", "convert -q -f m.bin w/out", NULL, "out", TEXT, true},
    {"convert-2", "convert -q -f -j2 model w/out", NULL, "out", TEXT, true},
    {"verify-2", "verify -j2 m.lmq", NULL, NULL, TEXT, true},
    {"export-shards", "export --json --shard-size 8K --to safetensors m.lmq "
     "w/out", NULL, NULL, DOCUMENT, true},
    {"inspect-stats", "inspect --json --tensor token_embd.weight --stats "
     "m.lmq", NULL, NULL, DOCUMENT, true},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))
#define MAX_ARGUMENTS 24

static const char *program, *shim;
static int signal_pipe[2];

static uint64_t
look_at_outputs(const struct command *command)
{
    return fault_walk("w", command->kind == TIMED ? FAULT_HASH_MASKED
                                                  : FAULT_HASH);
}

static bool
has_begun(const struct command *command)
{
    return command->old != NULL && strchr(command->old, '/') != NULL;
}

static void
reset(const struct command *command)
{
    char path[64];

    fault_walk("w", FAULT_REMOVE);
    if (command->old == NULL)
        return;
    if (has_begun(command)) {
        fault_copy(command->old, "w");
        return;
    }
    snprintf(path, sizeof(path), "w/%s", command->old);
    fault_save(path, "old", 3);
}

/* ---- Running ---- */

struct result {
    int code;     /* exit status, or 128 + signal */
    bool is_hit;  /* the fault has happened */
    uint64_t files;
    struct fault_bytes out, err;
};

static void
free_result(struct result *result)
{
    free(result->out.at);
    free(result->err.at);
}

static void
redirect(const char *path, int flags, int fd)
{
    int file = open(path, flags, 0666);

    if (file < 0 || dup2(file, fd) < 0)
        _exit(98);
    close(file);
}

static void
set_number(const char *name, long value)
{
    char text[24];

    snprintf(text, sizeof(text), "%ld", value);
    setenv(name, text, 1);
}

static void
become(const struct command *command, const struct class *class, long at)
{
    char copy[512], *arguments[MAX_ARGUMENTS], *rest = NULL;
    int n = 0;

    snprintf(copy, sizeof(copy), "%s", command->arguments);
    arguments[n++] = (char *)(uintptr_t)program;
    for (char *p = strtok_r(copy, " ", &rest); p != NULL;
         p = strtok_r(NULL, " ", &rest)) {
        arguments[n++] = p;
        if (n == 2 && strstr(copy, "tokenize") == NULL &&
            strstr(copy, "inspect") == NULL &&
            strstr(copy, "merge") == NULL &&
            strstr(command->arguments, "-j2") == NULL)
            arguments[n++] = (char *)(uintptr_t)"-j1";
    }
    arguments[n] = NULL;
    redirect(command->input == NULL ? "/dev/null" : "stdin", O_RDONLY, 0);
    redirect("stdout", O_WRONLY | O_TRUNC | O_CREAT, 1);
    redirect("stderr", O_WRONLY | O_TRUNC | O_CREAT, 2);
    if (class != NULL) {
        setenv("FAULT_CLASS", class->name, 1);
        if (class->code < 0)
            setenv("FAULT_ERRNO", "SHORT", 1);
        else
            set_number("FAULT_ERRNO", class->code);
        set_number("FAULT_AT", at);
        set_number("FAULT_FD", signal_pipe[1]);
        setenv("LD_PRELOAD", shim, 1);
    }
    alarm(SECONDS_MAX);
    execv(program, arguments);
    _exit(97);
}

static struct result
run(const struct command *command, const struct class *class, long at)
{
    struct result result = {0};
    char byte;
    int status;
    pid_t child = fork();

    if (child < 0)
        fault_die("fork");
    if (child == 0)
        become(command, class, at);
    if (waitpid(child, &status, 0) != child)
        fault_die("waitpid");
    result.code = WIFEXITED(status) ? WEXITSTATUS(status)
                                    : 128 + WTERMSIG(status);
    result.is_hit = read(signal_pipe[0], &byte, 1) == 1;
    result.out = fault_load("stdout");
    result.err = fault_load("stderr");
    result.files = look_at_outputs(command);
    return result;
}

/* ---- What is wrong ---- */

static bool
is_equal(const struct result *a, const struct result *b)
{
    return a->files == b->files && a->out.n == b->out.n &&
           memcmp(a->out.at, b->out.at, a->out.n) == 0;
}

/* One "lmquant: ", and besides only hints and notes. */
static bool
is_one_message(const char *text)
{
    int n = 0;

    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        if (end == NULL)
            return false;
        if (strncmp(text, "lmquant: ", 9) == 0)
            n++;
        else if (strncmp(text, "hint: ", 6) != 0 &&
                 strncmp(text, "note: ", 6) != 0)
            return false;
        text = end + 1;
    }
    return n == 1;
}

static bool
names_reason(const char *text, const struct class *class)
{
    static const char *const lies[] = {"damage", "no valid", "holds no",
                                       "checksum", "not a "};

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
        if (strstr(text, lies[i]) != NULL)
            return false;
    return strstr(text, strerror(class->code)) != NULL ||
           (class->code == ENOMEM && strstr(text, "memory") != NULL);
}

/* NULL, or what is wrong. */
static const char *
what_is_wrong(const struct command *command, const struct class *class,
              const struct result *is, const struct result *good,
              uint64_t before)
{
    if (is->code == good->code && is_equal(is, good))
        return NULL;
    if (is->code == 0)
        return "exit status 0, but another output";
    if (class->is_soft)
        return "is not tried again";
    if (is->code != 1)
        return is->code > 128 ? "crash" : "not exit status 1";
    if (is->files != before)
        return "the files are no longer the old ones";
    if (command->kind != TEXT && is->out.n != 0 && is->out.n != good->out.n)
        return "part of a document";
    if (is->out.n > good->out.n ||
        memcmp(is->out.at, good->out.at, is->out.n) != 0)
        return "another text";
    if (!is_one_message(is->err.at))
        return "not one message";
    return names_reason(is->err.at, class) ? NULL : "not the system's reason";
}

/* After a failure, without one: what was begun is not lost. */
static const char *
go_on(const struct command *command, const struct result *good)
{
    struct result again = run(command, NULL, 0);
    bool is_good = again.code == 0 && is_equal(&again, good);

    if (!is_good)
        fputs(again.err.at, stdout);
    free_result(&again);
    return is_good ? NULL : "cannot be gone on with";
}

struct tally {
    long n, n_wrong, n_survived;
};

static void
sweep(const struct command *command, const struct class *class,
      const struct result *good, uint64_t before, bool is_long,
      struct tally *tally)
{
    long step = strcmp(class->name, "memory") == 0 ? MEMORY_STEP : 1;

    for (long at = 1;; at += step) {
        struct result is = run(command, class, at);
        if (command->kind == TIMED)
            fault_mask(&is.out);
        const char *wrong = what_is_wrong(command, class, &is, good, before);
        if (!is.is_hit && wrong == NULL) {
            if (is.files != before || has_begun(command))
                reset(command);
            free_result(&is);
            return;
        }
        if (has_begun(command) && wrong == NULL && is.code != 0 &&
            (is_long || class->code != ENOMEM)) /* of those thousands */
            wrong = go_on(command, good);
        tally->n++;
        tally->n_survived += is.code == good->code;
        if (wrong != NULL && tally->n_wrong++ < FAILURES_SHOWN)
            printf("FAIL: %s, %s %ld (%s): %s, exit status %d\n    %s\n",
                   command->name, class->name, at, class->code_name, wrong,
                   is.code, is.err.at);
        if (is.files != before || has_begun(command) ||
            strstr(command->name, "resume") != NULL)
            reset(command);
        bool is_done = !is.is_hit;
        free_result(&is);
        if (is_done)
            return;
    }
}

static bool
test(const struct command *command, const char *only, bool is_long)
{
    struct timespec start, end;
    long n = 0, n_wrong = 0;

    if (command->input != NULL)
        fault_save("stdin", command->input, strlen(command->input));
    reset(command);
    uint64_t before = look_at_outputs(command);
    struct result good = run(command, NULL, 0);
    reset(command);
    if (good.code != 0) {
        printf("FAIL: %s: exit status %d\n    %s\n", command->name, good.code,
               good.err.at);
        return false;
    }
    if (command->kind == TIMED)
        fault_mask(&good.out);
    clock_gettime(CLOCK_MONOTONIC, &start);
    printf("%-18s", command->name);
    for (size_t i = 0; i < N_CLASSES; i++) {
        struct tally tally = {0};
        if ((classes[i].is_long && !is_long) ||
            (only != NULL && strcmp(only, classes[i].name) != 0))
            continue;
        sweep(command, &classes[i], &good, before, is_long, &tally);
        if (tally.n > 0)
            printf(" %s/%s:%ld", classes[i].name, classes[i].code_name,
                   tally.n);
        if (tally.n_survived > 0 && !classes[i].is_soft)
            printf("(%ld survived)", tally.n_survived);
        if (tally.n_wrong > 0)
            printf("(%ld WRONG)", tally.n_wrong);
        fflush(stdout);
        n += tally.n;
        n_wrong += tally.n_wrong;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf(" = %ld, %ld wrong, %.1f s\n", n, n_wrong,
           (double)(end.tv_sec - start.tv_sec) +
               1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    free_result(&good);
    return n_wrong == 0;
}

/* ---- All of it ---- */

/* What it prints is saved; NULL: it is not wanted. */
static void
prepare(const char *arguments, const char *output)
{
    const struct command command = {.arguments = arguments};
    struct result result = run(&command, NULL, 0);

    if (result.code != 0) {
        printf("FAIL: %s: %s\n", arguments, result.err.at);
        exit(1);
    }
    if (output != NULL)
        fault_save(output, result.out.at, result.out.n);
    free_result(&result);
}

/* A conversion that failed when all was to be on the disk: its journal tells of
 * each tensor. */
static void
prepare_half(void)
{
    const struct command command = {
        .arguments = "convert -q --resume model half/out"};
    const struct class fsync = {"fsync", "EIO", EIO, false, false};
    struct result result = run(&command, &fsync, 2);

    if (!result.is_hit || result.code != 1)
        fault_die("half");
    free_result(&result);
}

static const char *
find(const char *build, const char *name)
{
    char path[PATH_MAX], *real;

    snprintf(path, sizeof(path), "%s/%s", build, name);
    real = realpath(path, NULL);
    return real;
}

static bool
shim_works(void)
{
    const struct command command = {.arguments = "inspect m.lmq"};
    struct result result = run(&command, &classes[0], 1);
    bool works = result.is_hit;

    free_result(&result);
    return works;
}

int
main(int argc, char **argv)
{
    const char *build = getenv("top_builddir"), *base = getenv("TMPDIR");
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    char folder[PATH_MAX];
    int n_failed = 0;

#ifdef HAS_ASAN
    puts("skipped: AddressSanitizer has the allocator to itself");
    return SKIPPED;
#endif
    argc -= is_long;
    argv += is_long;
    static const char recipe[] = "version: 1\nrules:\n"
                                 "- {match: [ffn_*], layers: '0-1,last 1',"
                                 " group: 32, optional: true}\n";

    setenv("LC_ALL", "C", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("MALLOC_PERTURB_", "85", 1); /* what is used after free() shows */
    program = find(build == NULL ? "." : build, "lmquant");
    shim = find(build == NULL ? "." : build, "tests/cli/fault_shim.so");
    snprintf(folder, sizeof(folder), "%s/lmquant-faults-XXXXXX",
             base == NULL ? "/tmp" : base);
    if (program == NULL || mkdtemp(folder) == NULL || chdir(folder) != 0)
        fault_die("lmquant");
    if (pipe(signal_pipe) != 0 ||
        fcntl(signal_pipe[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(signal_pipe[0], F_SETFD, FD_CLOEXEC) != 0)
        fault_die("pipe");
    fault_write_model();
    fault_save("r.yaml", recipe, sizeof(recipe) - 1);
    prepare("convert -q model m.lmq", NULL);
    if (has_digests) {
        prepare("convert -q --digests model d.lmq", NULL);
        prepare("convert -q --digests --shard-size 7K model dset/m.lmq", NULL);
    }
    prepare("convert -q --shard-size 6K model set/m.lmq", NULL);
    prepare("convert -q --part 1/2 model parts/m.lmq", NULL);
    prepare("convert -q --part 2/2 model parts/m.lmq", NULL);
    if (has_digests) {
        prepare("convert -q --digests --part 1/2 model dparts/m.lmq", NULL);
        prepare("convert -q --digests --part 2/2 model dparts/m.lmq", NULL);
    }
    prepare("export -q --to gguf m.lmq m.gguf", NULL);
    prepare("export -q --to llama2c m.lmq m.bin", NULL);
    prepare("validate -q --ctx 8 --split-documents --json model m.lmq m.gguf "
            "--text documents",
            "baseline.json");
    prepare("validate -q --ctx 8 --part 1/2 --report 1.json model m.lmq text",
            NULL);
    prepare("validate -q --ctx 8 --part 2/2 --report 2.json model m.lmq text",
            NULL);
    bool works = shim != NULL && shim_works();
    if (works)
        prepare_half();
    for (size_t i = 0; works && i < N_COMMANDS; i++)
        if (!has_digests && strstr(commands[i].name, "digests") != NULL)
            continue;
        else if (argc > 1 ? strcmp(argv[1], commands[i].name) == 0
                     : is_long || !commands[i].is_long)
            n_failed += !test(&commands[i], argc > 2 ? argv[2] : NULL, is_long);
    fault_walk(folder, FAULT_REMOVE);
    rmdir(folder);
    if (works)
        return n_failed > 0;
    puts("skipped: nothing can be preloaded here");
    return SKIPPED;
}
