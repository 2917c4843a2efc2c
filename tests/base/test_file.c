/*
 * test_file.c - files that are read: exactly or not at all, and their digests.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include "base/files/file.h"
#include "tests/build/suite.h"

/* ---- Reading ---- */

static struct lmq_input *
open_input(const char *path)
{
    struct lmq_input *input;
    struct lmq_error err;

    ck_assert_msg(lmq_input_open(path, &input, &err) == LMQ_OK, "%s",
                  err.message);
    return input;
}

START_TEST(reads_are_exact_or_refused)
{
    const char *path = in_folder("ten");
    unsigned char buffer[16];
    struct lmq_error err;

    write_file(path, "0123456789", 10);
    struct lmq_input *input = open_input(path);
    ck_assert_uint_eq(lmq_input_size(input), 10);
    ck_assert_str_eq(lmq_input_path(input), path);
    ck_assert_int_eq(lmq_input_read(input, 3, buffer, 7, &err), LMQ_OK);
    ck_assert_mem_eq(buffer, "3456789", 7);
    ck_assert_int_eq(lmq_input_read(input, 10, buffer, 0, &err), LMQ_OK);
    ck_assert_int_eq(lmq_input_read(input, 3, buffer, 8, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_str_eq(err.message, "ends at byte 10, but 8 bytes are expected "
                                  "at offset 3");
    ck_assert_str_eq(err.path, path);
    ck_assert_int_eq(lmq_input_read(input, 11, buffer, 0, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_input_read(input, UINT64_MAX, buffer, 2, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_input_read(input, 1, buffer, SIZE_MAX, &err),
                     LMQ_ERR_FORMAT);
    lmq_input_close(input);
}
END_TEST

/* Long and short reads, the target so many bytes further in its page than the
 * source in its own; nothing is written beside it. */
START_TEST(reads_do_not_depend_on_where_they_go)
{
    const size_t n_file = 100000, sizes[] = {100, 5000, 70001};
    unsigned char *bytes = malloc(n_file), *buffer = malloc(n_file);
    const char *path = in_folder("bytes");

    ck_assert(bytes != NULL && buffer != NULL);
    for (size_t i = 0; i < n_file; i++)
        bytes[i] = (unsigned char)(i * i / 7 + i / 256);
    write_file(path, bytes, n_file);
    struct lmq_input *input = open_input(path);
    for (size_t ahead = 0; ahead < 40; ahead++)
        for (size_t s = 0; s < 3; s++) {
            size_t n = sizes[s], offset = 120 + s;
            size_t at = (offset + ahead - (uintptr_t)buffer) % 4096;
            memset(buffer, 0xa5, n_file);
            ck_assert_int_eq(
                lmq_input_read(input, offset, buffer + at, n, NULL), LMQ_OK);
            ck_assert_mem_eq(buffer + at, bytes + offset, n);
            ck_assert(at == 0 || buffer[at - 1] == 0xa5);
            ck_assert_uint_eq(buffer[at + n], 0xa5);
        }
    lmq_input_close(input);
    free(bytes);
    free(buffer);
}
END_TEST

START_TEST(a_file_that_shrinks_is_an_error_and_no_crash)
{
    const char *path = in_folder("shrinks");
    unsigned char buffer[100];
    struct lmq_error err;

    memset(buffer, 'x', sizeof(buffer));
    write_file(path, buffer, sizeof(buffer));
    struct lmq_input *input = open_input(path);
    ck_assert_int_eq(truncate(path, 50), 0);
    ck_assert_int_eq(lmq_input_read(input, 0, buffer, 50, &err), LMQ_OK);
    ck_assert_int_eq(lmq_input_read(input, 0, buffer, 100, &err), LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "became shorter"));
    lmq_input_close(input);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
    const char *fifo = in_folder("fifo");
    struct lmq_input *input;
    struct lmq_error err;

    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(lmq_input_open(fifo, &input, &err), LMQ_ERR_IO);
    ck_assert_str_eq(err.message, "is not a regular file");
    ck_assert_ptr_null(input);
    ck_assert_int_eq(lmq_input_open("/dev/zero", &input, &err), LMQ_ERR_IO);
    ck_assert_int_eq(lmq_input_open(in_folder("none"), &input, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "No such file"));
    lmq_input_close(NULL);
}
END_TEST

START_TEST(a_small_file_is_loaded_whole_and_a_large_one_refused)
{
    const char *path = in_folder("small");
    unsigned char *bytes;
    size_t n;
    struct lmq_error err;

    write_file(path, "abc", 3);
    ck_assert_int_eq(lmq_file_load(path, 3, &bytes, &n, &err), LMQ_OK);
    ck_assert_uint_eq(n, 3);
    ck_assert_mem_eq(bytes, "abc", 4);
    free(bytes);
    ck_assert_int_eq(lmq_file_load(path, 2, &bytes, &n, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_null(bytes);
    write_file(path, "", 0);
    ck_assert_int_eq(lmq_file_load(path, 2, &bytes, &n, &err), LMQ_OK);
    ck_assert_uint_eq(n, 0);
    free(bytes);
}
END_TEST

/* ---- Digests ---- */

static uint32_t
digest(struct lmq_input *input)
{
    uint32_t crc;
    struct lmq_error err;

    ck_assert_msg(lmq_input_digest(input, &crc, &err) == LMQ_OK, "%s",
                  err.message);
    return crc;
}

START_TEST(the_digest_is_that_of_the_file_whatever_was_read)
{
    enum { SIZE = 3000000 };
    struct random random = {random_seed()};
    const char *path = in_folder("digest");
    unsigned char *bytes = malloc(SIZE), *buffer = malloc(SIZE);
    struct lmq_error err;

    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)random_u64(&random);
    write_file(path, bytes, SIZE);
    uint32_t wanted = (uint32_t)crc32(0, bytes, SIZE);
    struct lmq_input *input = open_input(path);
    ck_assert_uint_eq(digest(input), wanted);
    lmq_input_keep_digests(input);
    ck_assert_uint_eq(digest(input), wanted);
    for (int i = 0; i < 50; i++) { /* gaps, overlaps, repetitions, nothing */
        size_t at = random_below(&random, SIZE);
        size_t n = random_below(&random, SIZE - at) >>
                   random_below(&random, 20);
        ck_assert_int_eq(lmq_input_read(input, at, buffer, n, &err), LMQ_OK);
        ck_assert_uint_eq(digest(input), wanted);
    }
    ck_assert_int_eq(lmq_input_read(input, 0, buffer, SIZE, &err), LMQ_OK);
    ck_assert_uint_eq(digest(input), wanted);
    lmq_input_close(input);
    write_file(path, "", 0);
    input = open_input(path);
    ck_assert_uint_eq(digest(input), 0);
    lmq_input_close(input);
    free(bytes);
    free(buffer);
}
END_TEST

/* Whatever is read, in whatever pieces, is in what is told of it. */
START_TEST(all_that_was_read_is_told)
{
    enum { SIZE = 60000000, APART = 30000000 };
    struct random random = {random_seed()};
    const char *path = in_folder("told");
    unsigned char *bytes = malloc(SIZE), *buffer = malloc(SIZE);
    unsigned char *was_read = calloc(1, SIZE), *is_told = calloc(1, SIZE);
    const struct lmq_digest_range *ranges;
    struct lmq_error err;
    size_t n;

    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    write_file(path, bytes, SIZE);
    struct lmq_input *input = open_input(path);
    ck_assert_int_eq(lmq_input_ranges(input, &ranges, &n, &err), LMQ_OK);
    ck_assert_uint_eq(n, 0); /* nothing yet */
    lmq_input_keep_digests(input);
    for (int round = 0; round < 20; round++) {
        memset(was_read, 0, SIZE);
        memset(is_told, 0, SIZE);
        size_t near = random_below(&random, SIZE - APART);
        for (int i = 0; i < 30; i++) { /* two places, small and large pieces */
            size_t most =
                round % 3 == 0 ? 900 : 1U << random_below(&random, 18);
            size_t at = near + random_below(&random, 200000) +
                        random_below(&random, 2) * (APART - 500000);
            size_t size = random_below(&random, most) + (i > 0);
            ck_assert_int_eq(lmq_input_read(input, at, buffer, size, &err),
                             LMQ_OK);
            memset(was_read + at, 1, size);
        }
        ck_assert_int_eq(lmq_input_ranges(input, &ranges, &n, &err), LMQ_OK);
        for (size_t i = 0; i < n; i++) {
            size_t at = (size_t)ranges[i].offset;
            size_t size = (size_t)ranges[i].size;
            ck_assert_uint_eq(ranges[i].crc,
                              (uint32_t)crc32(0, bytes + at, (uInt)size));
            ck_assert(i == 0 ||
                      at > ranges[i - 1].offset + ranges[i - 1].size);
            memset(is_told + at, 1, size);
        }
        for (size_t i = 0; i < SIZE; i++)
            REQUIRE(is_told[i] >= was_read[i], "byte %zu is not told", i);
    }
    ck_assert_uint_eq(digest(input), (uint32_t)crc32(0, bytes, SIZE));
    lmq_input_close(input);
    free(bytes);
    free(buffer);
    free(was_read);
    free(is_told);
}
END_TEST

/* ---- What will be read ---- */

/* Pages of the file that are in memory. */
static size_t
resident_pages(const unsigned char *map, size_t n_pages)
{
    unsigned char *pages = malloc(n_pages);
    size_t n = 0;

    ck_assert_int_eq(
        mincore((void *)(uintptr_t)map,
                n_pages * (size_t)sysconf(_SC_PAGESIZE), pages),
        0);
    for (size_t i = 0; i < n_pages; i++)
        n += pages[i] & 1;
    free(pages);
    return n;
}

/* A file of so many pages that are not in memory, open and mapped. */
static struct lmq_input *
open_unread(const char *name, size_t n_pages, unsigned char **bytes,
            const unsigned char **map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const char *path = in_folder(name);
    struct lmq_error err;

    *bytes = malloc(n_pages * page);
    for (size_t i = 0; i < n_pages * page; i++)
        (*bytes)[i] = (unsigned char)(i + i / page);
    write_file(path, *bytes, n_pages * page);
    struct lmq_input *input = open_input(path);
    lmq_input_expect(input, 0, n_pages * page); /* nothing is mapped */
    ck_assert_int_eq(lmq_input_map(input, map, &err), LMQ_OK);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return input;
}

START_TEST(what_is_expected_is_read_as_far_as_the_file_goes)
{
    const size_t n_pages = 2000, page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *bytes;
    const unsigned char *map;
    struct lmq_input *input =
        open_unread("expected", n_pages, &bytes, &map);

    /* Not a file in memory. */
    bool has_left = resident_pages(map, n_pages) == 0;
    lmq_input_expect(input, n_pages / 2 * page, UINT64_C(1) << 40);
    lmq_input_expect(input, UINT64_MAX - page, page);
    lmq_input_expect(input, n_pages / 2 * page, 2 * page);
#if defined MADV_POPULATE_READ && defined RWF_NOWAIT
    if (has_left)
        ck_assert_uint_ge(resident_pages(map + n_pages / 2 * page, 2), 2);
    lmq_input_expect(input, 0, n_pages * page);
    lmq_input_expect(input, 5, n_pages * page - 5);
    if (has_left)
        ck_assert_uint_eq(resident_pages(map, n_pages), n_pages);
#endif
    (void)has_left;
    ck_assert_mem_eq(map, bytes, n_pages * page);
    lmq_input_close(input);
    free(bytes);
}
END_TEST

/* In large pages, if there are such: none is read in part. */
START_TEST(much_that_is_expected_is_read_in_whole_blocks)
{
    const size_t block = (size_t)2 << 20, n_blocks = 10;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t n_pages = n_blocks * block / page + 1;
    unsigned char *bytes;
    const unsigned char *map;
    struct lmq_input *input = open_unread("much", n_pages, &bytes, &map);

    bool has_left = resident_pages(map, n_pages) == 0;
    lmq_input_expect(input, block / 2, (n_blocks - 2) * block);
#if defined MADV_POPULATE_READ && defined RWF_NOWAIT
    if (has_left && page == 4096)
        ck_assert_uint_ge(resident_pages(map, n_pages),
                          (n_blocks - 1) * block / page);
#endif
    lmq_input_expect(input, page, (n_pages - 1) * page); /* to the end */
    (void)has_left;
    ck_assert_mem_eq(map, bytes, n_pages * page);
    lmq_input_close(input);
    free(bytes);
}
END_TEST

/* ---- Files of more than 32 bits ---- */

START_TEST(a_file_of_5_gigabytes_is_read_and_perhaps_mapped)
{
    const uint64_t end = UINT64_C(5) << 30;
    const char *path = in_folder("large");
    const unsigned char *map;
    unsigned char last[4];
    struct lmq_error err;

    write_file(path, "", 0);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "last", 4, (off_t)(end - 4)), 4); /* a hole */
    close(fd);
    struct lmq_input *input = open_input(path);
    ck_assert_uint_eq(lmq_input_size(input), end);
    ck_assert_int_eq(lmq_input_read(input, end - 4, last, 4, &err), LMQ_OK);
    ck_assert_mem_eq(last, "last", 4);
    enum lmq_status status = lmq_input_map(input, &map, &err);
    if (sizeof(void *) < 8) {
        ck_assert_int_eq(status, LMQ_ERR_IO);
        ck_assert_ptr_nonnull(
            strstr(err.message, "is 5368709120 bytes, more than a program of "
                                "32 bits can map"));
    } else {
        ck_assert_int_eq(status, LMQ_OK);
        ck_assert_mem_eq(map + (size_t)(end - 4), "last", 4);
    }
    lmq_input_close(input);
    remove(path);
}
END_TEST

START_TEST(a_copy_of_more_than_the_memory_is_refused)
{
    const char *path = in_folder("large");
    const unsigned char *map;
    struct lmq_error err;
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    bool is_large = ftruncate(fd, (off_t)15 << 40) == 0;
    close(fd);
    if (!is_large)
        return; /* the file system has none of 15 TiB */
    struct lmq_input *input = open_input(path);
    lmq_input_copy(input);
    ck_assert_int_eq(lmq_input_map(input, &map, &err), LMQ_ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.message, "is 16492.67 GB to be read into "
                                              "memory, more than the "));
    ck_assert_str_eq(err.path, path);
    lmq_input_close(input);
    remove(path);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        reads_do_not_depend_on_where_they_go,
        reads_are_exact_or_refused,
        a_file_that_shrinks_is_an_error_and_no_crash,
        only_regular_files_are_opened,
        a_small_file_is_loaded_whole_and_a_large_one_refused,
        the_digest_is_that_of_the_file_whatever_was_read,
        all_that_was_read_is_told,
        what_is_expected_is_read_as_far_as_the_file_goes,
        much_that_is_expected_is_read_in_whole_blocks,
        a_file_of_5_gigabytes_is_read_and_perhaps_mapped,
        a_copy_of_more_than_the_memory_is_refused,
    };

    return RUN_SUITE("file", tests);
}
