/*
 * test_output.c - files that are written: whole or not at all, and never over
 * what was read.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/output.h"
#include "base/files/temporary.h"
#include "tests/build/suite.h"

static struct lmq_output *
create(const char *path, uint64_t size, bool replace)
{
    struct lmq_output *output;
    struct lmq_error err;

    ck_assert_msg(lmq_output_create(path, size, replace, NULL, &output, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    return output;
}

static void
assert_contents(const char *path, const char *text)
{
    size_t n;
    unsigned char *bytes = read_file(path, &n);

    ck_assert_uint_eq(n, strlen(text));
    ck_assert_mem_eq(bytes, text, n);
    free(bytes);
}

START_TEST(an_output_appears_at_commit_and_not_before)
{
    const char *path = in_folder("new");
    struct lmq_error err;
    struct lmq_output *output = create(path, 6, false);

    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(lmq_output_write(output, 3, "def", 3, &err), LMQ_OK);
    ck_assert_int_eq(lmq_output_write(output, 0, "abc", 3, &err), LMQ_OK);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    assert_contents(path, "abcdef");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(an_aborted_output_leaves_nothing)
{
    struct lmq_error err;
    struct lmq_output *output = create(in_folder("new"), 0, true);

    ck_assert_int_eq(lmq_output_write(output, 0, "abc", 3, &err), LMQ_OK);
    lmq_output_abort(output);
    ck_assert_uint_eq(files_in_folder(), 0);
    lmq_output_abort(NULL);
}
END_TEST

START_TEST(an_existing_output_is_kept_unless_it_is_to_be_replaced)
{
    const char *path = in_folder("old");
    struct lmq_output *output;
    struct lmq_error err;

    write_file(path, "old", 3);
    ck_assert_int_eq(lmq_output_create(path, 0, false, NULL, &output, &err),
                     LMQ_ERR_IO);
    ck_assert_str_eq(err.message, "exists already");
    ck_assert_str_ne(err.hint, "");
    assert_contents(path, "old");

    output = create(path, 3, true);
    ck_assert_int_eq(lmq_output_write(output, 0, "new", 3, &err), LMQ_OK);
    assert_contents(path, "old");
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    assert_contents(path, "new");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(a_file_that_appears_during_the_work_is_kept)
{
    const char *path = in_folder("race");
    struct lmq_error err;
    struct lmq_output *output = create(path, 3, false);

    ck_assert_int_eq(lmq_output_write(output, 0, "new", 3, &err), LMQ_OK);
    write_file(path, "other", 5);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_ERR_IO);
    assert_contents(path, "other");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(a_symbolic_link_stays_one_and_its_target_is_replaced)
{
    const char *target = in_folder("target"), *link = in_folder("link");
    struct stat info;
    struct lmq_error err;

    write_file(target, "old", 3);
    ck_assert_int_eq(symlink(target, link), 0);
    struct lmq_output *output = create(link, 3, true);
    ck_assert_int_eq(lmq_output_write(output, 0, "new", 3, &err), LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    assert_contents(target, "new");
}
END_TEST

START_TEST(an_output_follows_the_umask)
{
    const char *path = in_folder("mode");
    struct stat info;
    struct lmq_error err;

    umask(027);
    struct lmq_output *output = create(path, 0, false);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
}
END_TEST

START_TEST(what_is_replaced_gives_its_mode)
{
    const char *path = in_folder("mode");
    struct stat info;
    struct lmq_error err;

    write_file(path, "old", 3);
    ck_assert_int_eq(chmod(path, 0604), 0);
    struct lmq_output *output = create(path, 0, true);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0604);
    ck_assert_int_eq(info.st_size, 0);
}
END_TEST

START_TEST(what_is_read_is_never_replaced)
{
    const char *source = in_folder("source"), *link = in_folder("link");
    struct lmq_originals originals = {0}, more = {0};
    struct lmq_output *output;
    struct lmq_error err;

    write_file(source, "old", 3);
    ck_assert_int_eq(symlink("source", link), 0);
    ck_assert_int_eq(lmq_originals_add(&more, link, true, &err), LMQ_OK);
    ck_assert_int_eq(lmq_originals_add(&more, in_folder("no"), false, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_originals_add_all(&originals, &more, &err), LMQ_OK);
    ck_assert_uint_eq(originals.n, 1);
    ck_assert_int_eq(lmq_output_create(source, 0, true, &originals, &output,
                                       &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "destroy its source"));
    ck_assert_int_eq(lmq_output_remove(link, &originals, &output, &err),
                     LMQ_ERR_ARG);
    ck_assert_int_eq(lmq_output_check(in_folder("new"), true, &originals,
                                      &err),
                     LMQ_OK);
    lmq_originals_free(&originals);
    lmq_originals_free(&more);
    ck_assert_uint_eq(files_in_folder(), 2);
}
END_TEST

START_TEST(what_was_read_must_stay_as_it_was)
{
    const char *part = in_folder("part"), *source = in_folder("source");
    struct lmq_originals originals = {0};
    struct lmq_error err;

    write_file(part, "old", 3);
    write_file(source, "old", 3);
    ck_assert_int_eq(lmq_originals_add(&originals, part, false, &err), LMQ_OK);
    ck_assert_int_eq(lmq_originals_add(&originals, source, true, &err), LMQ_OK);
    ck_assert_int_eq(
        lmq_originals_add(&originals, in_folder("no"), true, &err),
        LMQ_ERR_IO);
    write_file(part, "newer", 5);
    ck_assert_int_eq(lmq_originals_unchanged(&originals, &err), LMQ_OK);
    write_file(source, "newer", 5);
    ck_assert_int_eq(lmq_originals_unchanged(&originals, &err), LMQ_ERR_IO);
    ck_assert_str_eq(err.path, source);
    lmq_originals_free(&originals);
    /* Read after all, under whatever name. */
    ck_assert_int_eq(lmq_originals_add(&originals, part, false, &err), LMQ_OK);
    ck_assert_int_eq(lmq_originals_add(&originals, part, true, &err), LMQ_OK);
    ck_assert_uint_eq(originals.n, 1);
    write_file(part, "old", 3);
    ck_assert_int_eq(lmq_originals_unchanged(&originals, &err), LMQ_ERR_IO);
    lmq_originals_free(&originals);
}
END_TEST

/* Removes "gone", replaces "old", makes "new" and "last". */
static void
make_set(struct lmq_output *set[4])
{
    struct lmq_error err;

    write_file(in_folder("gone"), "gone", 4);
    write_file(in_folder("old"), "old", 3);
    ck_assert_int_eq(lmq_output_remove(in_folder("gone"), NULL, &set[0], &err),
                     LMQ_OK);
    set[1] = create(in_folder("old"), 1, true);
    set[2] = create(in_folder("new"), 1, true);
    set[3] = create(in_folder("last"), 1, false);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(lmq_output_write(set[i], 0, "x", 1, &err), LMQ_OK);
}

START_TEST(a_set_of_outputs_is_there_whole)
{
    struct lmq_output *set[4];
    struct lmq_error err;

    make_set(set);
    ck_assert_uint_eq(files_in_folder(), 2);
    ck_assert_int_eq(lmq_output_commit_all(set, 4, NULL, &err), LMQ_OK);
    assert_contents(in_folder("old"), "x");
    assert_contents(in_folder("new"), "x");
    assert_contents(in_folder("last"), "x");
    ck_assert_uint_eq(files_in_folder(), 3);
}
END_TEST

START_TEST(or_all_is_as_it_was_before)
{
    struct lmq_output *set[4];
    struct lmq_error err;

    /* A link to nothing is no file, but stands in the way of the last. */
    make_set(set);
    ck_assert_int_eq(symlink("nothing", in_folder("last")), 0);
    ck_assert_int_eq(lmq_output_commit_all(set, 4, NULL, &err), LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.path, "last"));
    assert_contents(in_folder("gone"), "gone");
    assert_contents(in_folder("old"), "old");
    ck_assert_uint_eq(files_in_folder(), 3);
}
END_TEST

START_TEST(a_symbolic_link_is_removed_and_its_target_stays)
{
    struct lmq_output *set[2];
    struct lmq_error err;

    write_file(in_folder("target"), "text", 4);
    ck_assert_int_eq(symlink("target", in_folder("link")), 0);
    ck_assert_int_eq(lmq_output_remove(in_folder("link"), NULL, &set[0], &err),
                     LMQ_OK);
    set[1] = create(in_folder("new"), 1, true);
    ck_assert_int_eq(lmq_output_commit_all(set, 2, NULL, &err), LMQ_OK);
    assert_contents(in_folder("target"), "text");
    ck_assert_uint_eq(files_in_folder(), 2);
}
END_TEST

/* Another one, who ends when it has been waited for twice, or never. */
struct naming {
    int fd;
    char *lock;
    int n_reports;
    bool ends;
};

static int
wait_for_other(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct naming *naming = context;

    (void)done;
    (void)total;
    if (strcmp(stage, "waiting for another process") != 0)
        return 0;
    assert_contents(in_folder("old"), "old");
    ck_assert_int_ne(access(in_folder("new"), F_OK), 0);
    if (++naming->n_reports < 2)
        return 0;
    if (!naming->ends)
        return 1;
    ck_assert_int_eq(unlink(naming->lock), 0);
    close(naming->fd);
    return 0;
}

static enum lmq_status
commit_beside_other(struct naming *naming)
{
    const struct lmq_progress progress = {.report = wait_for_other,
                                          .context = naming};
    struct lmq_output *set[4];
    struct lmq_error err;

    make_set(set);
    naming->lock = lmq_temporary_lock(in_folder("."));
    naming->fd = lmq_temporary_open(naming->lock, 0, 0400);
    ck_assert_int_ge(naming->fd, 0);
    enum lmq_status status = lmq_output_commit_all(set, 4, &progress, &err);
    free(naming->lock);
    return status;
}

START_TEST(a_set_gets_its_names_behind_another_one)
{
    struct naming naming = {.ends = true};

    ck_assert_int_eq(commit_beside_other(&naming), LMQ_OK);
    ck_assert_int_eq(naming.n_reports, 2);
    assert_contents(in_folder("old"), "x");
    ck_assert_uint_eq(files_in_folder(), 3);
}
END_TEST

START_TEST(or_waits_no_longer_and_changes_nothing)
{
    struct naming naming = {.ends = false};
    struct lmq_output *set[4];
    struct lmq_error err;

    ck_assert_int_eq(commit_beside_other(&naming), LMQ_ERR_CANCELLED);
    assert_contents(in_folder("gone"), "gone");
    assert_contents(in_folder("old"), "old");
    ck_assert_uint_eq(files_in_folder(), 3); /* and the lock */
    /* What a killed one has left is nobody's. */
    close(naming.fd);
    make_set(set);
    ck_assert_int_eq(lmq_output_commit_all(set, 4, NULL, &err), LMQ_OK);
    ck_assert_uint_eq(files_in_folder(), 3);
}
END_TEST

/* Who has the lock gives it back, and another one takes it, just before this
 * one finds the file that it has opened free. */
static struct naming *changing;

int
flock(int fd, int operation)
{
    struct naming *naming = changing;

    changing = NULL;
    if (naming != NULL) {
        unlink(naming->lock);
        close(naming->fd);
        naming->fd = lmq_temporary_open(naming->lock, 0, 0600);
    }
    return (int)syscall(SYS_flock, fd, operation);
}

START_TEST(a_lock_of_another_is_not_cleaned_away)
{
    struct naming naming = {.lock = lmq_temporary_lock(in_folder("."))};

    naming.fd = lmq_temporary_open(naming.lock, 0, 0600);
    changing = &naming;
    lmq_temporary_clean(in_folder("."));
    ck_assert_ptr_null(changing);
    ck_assert_int_ge(naming.fd, 0);
    ck_assert_int_eq(access(naming.lock, F_OK), 0);
    close(naming.fd);
    lmq_temporary_clean(in_folder("."));
    ck_assert_uint_eq(files_in_folder(), 0);
    free(naming.lock);
}
END_TEST

START_TEST(an_output_that_cannot_be_is_refused_at_once)
{
    const char *folder = in_folder("folder");
    struct lmq_output *output;
    struct lmq_error err;

    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(lmq_output_create(folder, 0, true, NULL, &output, &err),
                     LMQ_ERR_IO);
    ck_assert_str_eq(err.message, "is a folder, expected a file");
    ck_assert_int_eq(lmq_output_create(in_folder("no/where"), 0, true, NULL,
                                       &output, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_null(output);
    /* A link to what has no path. */
    int ends[2];
    char link[64];
    ck_assert_int_eq(pipe(ends), 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", ends[1]);
    if (access(link, F_OK) == 0) {
        ck_assert_int_eq(lmq_output_create(link, 0, true, NULL, &output, &err),
                         LMQ_ERR_IO);
        ck_assert_str_eq(err.message, "exists and is not a regular file");
        ck_assert_ptr_null(output);
    }
    close(ends[0]);
    close(ends[1]);
    /* More than any disk has. */
    ck_assert_int_eq(lmq_output_create(in_folder("huge"), (uint64_t)1 << 60,
                                       false, NULL, &output, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_null(output);
    ck_assert_ptr_nonnull(strstr(err.message, "needs 1152921504606846976"));
    ck_assert_str_eq(err.path, in_folder("huge"));
    ck_assert_uint_eq(files_in_folder(), 1);
    err = (struct lmq_error){0};
    ck_assert_int_eq(lmq_output_check_space(in_folder("huge"),
                                            (uint64_t)1 << 60, &err),
                     LMQ_ERR_IO);
    ck_assert_str_eq(err.path, in_folder("huge"));
}
END_TEST

/* As /proc, which has 0 blocks and of them 0 free. */
START_TEST(room_that_is_not_told_is_not_missed)
{
    struct lmq_error err;

    ck_assert_int_eq(lmq_output_check_space("/proc/x", 1, &err), LMQ_OK);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        an_output_appears_at_commit_and_not_before,
        an_aborted_output_leaves_nothing,
        an_existing_output_is_kept_unless_it_is_to_be_replaced,
        a_file_that_appears_during_the_work_is_kept,
        a_symbolic_link_stays_one_and_its_target_is_replaced,
        an_output_follows_the_umask,
        what_is_replaced_gives_its_mode,
        what_is_read_is_never_replaced,
        what_was_read_must_stay_as_it_was,
        a_set_of_outputs_is_there_whole,
        or_all_is_as_it_was_before,
        a_symbolic_link_is_removed_and_its_target_stays,
        a_set_gets_its_names_behind_another_one,
        or_waits_no_longer_and_changes_nothing,
        a_lock_of_another_is_not_cleaned_away,
        an_output_that_cannot_be_is_refused_at_once,
        room_that_is_not_told_is_not_missed,
    };

    return RUN_SUITE("output", tests);
}
