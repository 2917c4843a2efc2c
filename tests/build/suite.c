/*
 * suite.c - runs Check suites and makes their folders.
 */
#include "config.h"

#include "tests/build/suite.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "formats/lmq/lmq.h"

/* Slow machines and valgrind need a while; all families in one test, with
 * every product in plain C and looked at by a sanitizer, need more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS_PER_TEST 1800
#else
#define SECONDS_PER_TEST 120
#endif

#define PATHS 16

static char folder[PATH_MAX];

/* ---- Folders ---- */

static void
make_folder(void)
{
    const char *parent = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%s/lmquant-test-XXXXXX",
             parent == NULL ? "/tmp" : parent);
    ck_assert_msg(mkdtemp(folder) != NULL, "cannot make a folder in %s",
                  parent == NULL ? "/tmp" : parent);
}

static int
remove_one(const char *path, const struct stat *info, int type,
           struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void
remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
in_folder(const char *name)
{
    static char paths[PATHS][PATH_MAX];
    static int next;
    char *path = paths[next++ % PATHS];

    ck_assert(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
    return path;
}

size_t
files_in_folder(void)
{
    DIR *dir = opendir(folder);
    size_t n = 0;

    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 &&
             strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

/* ---- Locales ---- */

bool
choose_decimal_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8",
                                        "tr_TR.UTF-8", "fa_IR.UTF-8"};
    char text[8];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setlocale(LC_ALL, names[i]);
        snprintf(text, sizeof(text), "%g", 0.5);
        if (strcmp(text, "0.5") != 0)
            return true;
    }
    setlocale(LC_ALL, "C");
    printf("skipped: no locale with a decimal comma on this machine\n");
    return false;
}

/* ---- Files ---- */

void
write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    ck_assert_msg(file != NULL, "cannot write %s", path);
    ck_assert_uint_eq(n == 0 ? 0 : fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

unsigned char *
read_file(const char *path, size_t *n)
{
    struct stat info;
    FILE *file = fopen(path, "rb");

    ck_assert_msg(file != NULL && fstat(fileno(file), &info) == 0,
                  "cannot read %s", path);
    *n = (size_t)info.st_size;
    unsigned char *bytes = malloc(*n + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *n, file), *n);
    bytes[*n] = 0;
    fclose(file);
    return bytes;
}

void
assert_same_files(const char *a, const char *b)
{
    size_t n_a, n_b;
    unsigned char *x = read_file(a, &n_a), *y = read_file(b, &n_b);

    ck_assert_uint_eq(n_a, n_b);
    ck_assert_mem_eq(x, y, n_a);
    free(x);
    free(y);
}

const char *
source_path(const char *name)
{
    static char paths[PATHS][PATH_MAX];
    static int next;
    const char *srcdir = getenv("srcdir");
    char *path = paths[next++ % PATHS];

    ck_assert(snprintf(path, PATH_MAX, "%s/tests/%s",
                       srcdir == NULL ? "." : srcdir, name) < PATH_MAX);
    return path;
}

/* ---- Checkpoints ---- */

struct lmq_checkpoint *
open_checkpoint(const char *path)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    ck_assert_msg(lmq_checkpoint_open(path, NULL, &checkpoint, &err) ==
                      LMQ_OK,
                  "%s: %s", path, err.message);
    return checkpoint;
}

void
assert_refused(const char *path, enum lmq_status status, const char *text)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    enum lmq_status found =
        lmq_checkpoint_open(path, NULL, &checkpoint, &err);

    lmq_checkpoint_close(checkpoint);
    ck_assert_msg(found == status, "%s: status %d, expected %d (%s)", path,
                  (int)found, (int)status,
                  found == LMQ_OK ? "no error" : err.message);
    ck_assert_ptr_null(checkpoint);
    ck_assert_msg(strstr(err.message, text) != NULL ||
                      strstr(err.path, text) != NULL,
                  "'%s' does not speak of '%s'", err.message, text);
    ck_assert_str_ne(err.path, "");
}

float *
read_tensor(struct lmq_checkpoint *checkpoint, const char *name, size_t *n)
{
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);
    struct lmq_scratch scratch = {0};
    struct lmq_error err;

    ck_assert_msg(tensor != NULL, "no tensor %s", name);
    *n = (size_t)tensor->n_elements;
    float *x = malloc((*n + 1) * sizeof(*x));
    ck_assert_ptr_nonnull(x);
    ck_assert_msg(lmq_checkpoint_read(checkpoint, tensor, 0, *n, x, &scratch,
                                      &err) == LMQ_OK,
                  "%s", err.message);
    lmq_scratch_free(&scratch);
    return x;
}

struct lmq_report *
convert(const char *from, const char *to,
        const struct lmq_convert_options *options)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(lmq_convert(checkpoint, to, options, NULL, &report, &err) ==
                      LMQ_OK,
                  "%s: %s", from, err.message);
    lmq_checkpoint_close(checkpoint);
    return report;
}

struct lmq_report *
diff(const char *path_a, const char *path_b, int threads)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);
    const struct lmq_diff_options options = {.threads = threads};
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(lmq_diff(a, b, &options, NULL, &report, &err) == LMQ_OK,
                  "%s: %s", path_b, err.message);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return report;
}

void
assert_intact(const char *path)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(lmq_verify(path, NULL, NULL, &report, &err) == LMQ_OK,
                  "%s: %s", path, err.message);
    lmq_report_free(report);
}

void
assert_same_tensors(const char *path_a, const char *path_b)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);
    const struct lmq_container *x = lmq_checkpoint_container(a);
    const struct lmq_container *y = lmq_checkpoint_container(b);

    ck_assert_uint_eq(x->n_records, y->n_records);
    for (size_t i = 0; i < x->n_records; i++) {
        ck_assert_str_eq(x->records[i].name, y->records[i].name);
        ck_assert_mem_eq(x->records[i].extents, y->records[i].extents,
                         sizeof(x->records[i].extents));
        ck_assert(x->records[i].err_sq == y->records[i].err_sq);
    }
    size_t n_a, n_b;
    unsigned char *p = read_file(path_a, &n_a), *q = read_file(path_b, &n_b);
    uint64_t end = 128;
    for (size_t i = 0; i < x->n_records; i++) {
        const struct lmq_extent *values = &x->records[i].extents[LMQ_VALUES];
        if (values->size > 0 && values->offset + values->size > end)
            end = values->offset + values->size;
    }
    ck_assert_mem_eq(p + 128, q + 128, (size_t)end - 128);
    free(p);
    free(q);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
}

/* ---- Random numbers ---- */

uint64_t
random_seed(void)
{
    const char *text = getenv("LMQUANT_SEED");
    uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 10);

    printf("LMQUANT_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

uint64_t
random_u64(struct random *random)
{
    return lmq_random_next(&random->state);
}

size_t
random_below(struct random *random, size_t n)
{
    return (size_t)(random_u64(random) % n);
}

double
random_normal(struct random *random)
{
    double u = ((double)(random_u64(random) >> 11) + 0.5) * 0x1p-53;
    double v = (double)(random_u64(random) >> 11) * 0x1p-53;

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* ---- Running ---- */

int
run_suite_over(const char *name, const TTest *const *tests, size_t n,
               size_t first, size_t end)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, SECONDS_PER_TEST);
    tcase_add_checked_fixture(tcase, make_folder, remove_folder);
    for (size_t i = 0; i < n; i++)
        tcase_add_loop_test(tcase, tests[i], (int)first, (int)end);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? 0 : 1;
}

int
run_suite(const char *name, const TTest *const *tests, size_t n)
{
    return run_suite_over(name, tests, n, 0, 1);
}

int
stop_when_due(void *left, const char *stage, uint64_t done, uint64_t total)
{
    int *n = left;

    (void)stage;
    (void)done;
    (void)total;
    return --*n == 0;
}
