/*
 * file.c - exact reads.
 */
#include "config.h"

#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/size.h"

/* Ranges that are smaller are read again for a digest: to remember all of them
 * would take memory without a bound, and longer. */
#define DIGEST_MIN 1024

struct lmq_input {
    int fd;
    bool keeps_digests, is_copied;
    uint64_t size;
    char *path;
    void *map; /* NULL until somebody asks */
    int mapping; /* its place among the mappings, from 1 on; 0: none */
    pthread_mutex_t turn; /* of who reads what is expected */
    struct lmq_read_ranges read;
};

/* ---- What is mapped ---- */

/*
 * A signal handler looks here, so there is no lock and nothing is freed: a
 * slot is filled in while its size is 0, and empties when that becomes 0
 * again. Without a slot a file is read instead of mapped.
 */
#define MAPPINGS 256

static struct mapping {
    atomic_uintptr_t start;
    atomic_size_t size; /* 0: free, 1: about to be filled in */
    char path[256];
} mappings[MAPPINGS];

/* The slot's number from 1 on; 0 if all are taken. */
static int
remember_mapping(const void *start, size_t size, const char *path)
{
    for (int i = 0; i < MAPPINGS; i++) {
        struct mapping *mapping = &mappings[i];
        size_t none = 0;
        if (!atomic_compare_exchange_strong(&mapping->size, &none, 1))
            continue;
        snprintf(mapping->path, sizeof(mapping->path), "%s", path);
        atomic_store(&mapping->start, (uintptr_t)start);
        atomic_store(&mapping->size, size < 2 ? 2 : size);
        return i + 1;
    }
    return 0;
}

static void
forget_mapping(int number)
{
    if (number > 0)
        atomic_store(&mappings[number - 1].size, 0);
}

const char *
lmq_mapping_at(const void *address)
{
    for (int i = 0; i < MAPPINGS; i++) {
        size_t size = atomic_load(&mappings[i].size);
        uintptr_t start = atomic_load(&mappings[i].start);
        /* The last page is mapped as a whole. */
        if (size > 1 && (uintptr_t)address >= start &&
            (uintptr_t)address - start < size)
            return mappings[i].path;
    }
    return NULL;
}

/* ---- Reading ---- */

enum lmq_status
lmq_input_open(const char *path, struct lmq_input **out, struct lmq_error *err)
{
    struct stat info;

    *out = NULL;
    struct lmq_input *input = calloc(1, sizeof(*input));
    if (input == NULL)
        return lmq_fail_nomem(err);
    lmq_read_ranges_init(&input->read);
    pthread_mutex_init(&input->turn, NULL);
    enum lmq_status status = LMQ_OK;
    /* Not blocking: a FIFO without a writer would wait for ever. */
    input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (input->fd < 0 || fstat(input->fd, &info) != 0)
        status = lmq_fail_errno(err, "cannot open");
    else if (S_ISDIR(info.st_mode))
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "is a folder, not a file");
    else if (!S_ISREG(info.st_mode))
        status = lmq_fail(err, LMQ_ERR_IO, 0, "is not a regular file");
    else if ((input->path = strdup(path)) == NULL)
        status = lmq_fail_nomem(err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_input_close(input);
        return status;
    }
    input->size = (uint64_t)info.st_size;
    *out = input;
    return LMQ_OK;
}

void
lmq_input_close(struct lmq_input *input)
{
    if (input == NULL)
        return;
    forget_mapping(input->mapping);
    if (input->mapping > 0)
        munmap(input->map, (size_t)input->size);
    else
        lmq_mem_free(input->map);
    if (input->fd >= 0)
        close(input->fd);
    pthread_mutex_destroy(&input->turn);
    lmq_read_ranges_free(&input->read);
    free(input->path);
    free(input);
}

uint64_t
lmq_input_size(const struct lmq_input *input)
{
    return input->size;
}

const char *
lmq_input_path(const struct lmq_input *input)
{
    return input->path;
}

struct lmq_read_ranges *
lmq_input_read_ranges(struct lmq_input *input)
{
    return &input->read;
}

void
lmq_input_keep_digests(struct lmq_input *input)
{
    input->keeps_digests = true;
}

#define PAGE ((size_t)4096)
#define DETOUR (8 * PAGE)

/* The kernel copies page by page. Where the target lies a few bytes further in
 * its page than the source in its own, processors take each load for one of
 * what the store before it wrote, and wait: 3 GB/s in place of 15 (Zen 4). Such
 * reads take a detour half a page away from both. */
static ssize_t
read_some(int fd, unsigned char *p, size_t n, uint64_t offset)
{
    unsigned char detour[DETOUR + PAGE];
    size_t ahead = ((uintptr_t)p - (size_t)offset) % PAGE;

    if (ahead == 0 || ahead >= 32 || n < PAGE)
        return pread(fd, p, n, (off_t)offset);
    unsigned char *at =
        detour + ((uintptr_t)p + PAGE / 2 - (uintptr_t)detour) % PAGE;
    ssize_t got = pread(fd, at, n < DETOUR ? n : DETOUR, (off_t)offset);
    if (got > 0)
        memcpy(p, at, (size_t)got);
    return got;
}

static enum lmq_status
read_exactly(struct lmq_input *input, uint64_t offset, void *buffer, size_t n,
             struct lmq_error *err)
{
    unsigned char *p = buffer;

    if (offset > input->size || n > input->size - offset) {
        lmq_fail(err, LMQ_ERR_FORMAT, offset,
                 "ends at byte %" PRIu64 ", but %zu bytes are expected at "
                 "offset %" PRIu64,
                 input->size, n, offset);
        lmq_error_in(err, input->path);
        return LMQ_ERR_FORMAT;
    }
    while (n > 0) {
        ssize_t got = read_some(input->fd, p, n, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            enum lmq_status status =
                got < 0 ? lmq_fail_errno(err, "cannot read at offset %" PRIu64,
                                         offset)
                        : lmq_fail(err, LMQ_ERR_IO, offset,
                                   "became shorter while it was read (ends "
                                   "before offset %" PRIu64 ")",
                                   offset);
            lmq_error_in(err, input->path);
            return status;
        }
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_input_read(struct lmq_input *input, uint64_t offset, void *buffer,
               size_t n, struct lmq_error *err)
{
    enum lmq_status status = read_exactly(input, offset, buffer, n, err);

    if (status != LMQ_OK || !input->keeps_digests || n == 0)
        return status;
    if (n < DIGEST_MIN)
        return lmq_read_ranges_add_span(&input->read, offset, offset + n, err);
    return lmq_read_ranges_add(
        &input->read, &(struct lmq_digest_range){offset, n,
                                                 lmq_crc32(0, buffer, n)},
        err);
}

enum lmq_status
lmq_input_crc(struct lmq_input *input, uint64_t from, uint64_t size,
              uint32_t *crc, struct lmq_error *err)
{
    const size_t step = (size_t)1 << 20;
    const uint64_t to = from + size;
    enum lmq_status status = LMQ_OK;

    if (size == 0)
        return LMQ_OK;
    void *buffer = malloc(step);
    if (buffer == NULL)
        return lmq_fail_nomem(err);
    while (from < to && status == LMQ_OK) {
        size_t n = (size_t)lmq_u64_min(to - from, step);
        status = read_exactly(input, from, buffer, n, err);
        if (status == LMQ_OK)
            *crc = lmq_crc32(*crc, buffer, n);
        from += n;
    }
    free(buffer);
    return status;
}

void
lmq_input_copy(struct lmq_input *input)
{
    input->is_copied = true;
}

/* All of it in memory of our own: a file that shrinks is an error of reading
 * and nothing else. */
static enum lmq_status
copy_all(struct lmq_input *input, struct lmq_error *err)
{
    double memory = fmin(lmq_mem_limit(), (double)(SIZE_MAX / 2));
    enum lmq_status status = LMQ_OK;
    void *copy = NULL;

    /* Memory that is not there is given all the same, and taken back by
     * killing somebody. */
    if ((double)input->size > memory)
        status = lmq_fail(err, LMQ_ERR_NOMEM, 0,
                          "is %.2f GB to be read into memory, more than the "
                          "%.2f GB that there are",
                          1e-9 * (double)input->size, 1e-9 * memory);
    else if ((copy = lmq_mem_aligned((size_t)input->size, 1)) == NULL)
        status = lmq_fail_nomem(err);
    if (status != LMQ_OK) {
        lmq_error_in(err, input->path);
        return status;
    }
    lmq_mem_large_pages(copy, (size_t)input->size);
    status = read_exactly(input, 0, copy, (size_t)input->size, err);
    if (status == LMQ_OK)
        input->map = copy;
    else
        lmq_mem_free(copy);
    return status;
}

/* The kernel has the upper half or quarter of what 32 bits can address, and
 * libraries lie in between. */
static enum lmq_status
fail_mapping(const struct lmq_input *input, struct lmq_error *err)
{
    enum lmq_status status = LMQ_ERR_IO;

    if (sizeof(void *) < 8 && errno == ENOMEM)
        lmq_fail(err, status, 0,
                 "is %" PRIu64 " bytes, more than a program of %zu bits can "
                 "map; use one of 64 bits",
                 input->size, 8 * sizeof(void *));
    else
        status = lmq_fail_errno(err, "cannot be mapped");
    lmq_error_in(err, input->path);
    return status;
}

static enum lmq_status
map_all(struct lmq_input *input, struct lmq_error *err)
{
    void *map = MAP_FAILED;

    errno = ENOMEM;
    if (input->size <= PTRDIFF_MAX)
        map = mmap(NULL, (size_t)input->size, PROT_READ, MAP_SHARED,
                   input->fd, 0);
    if (map == MAP_FAILED)
        return fail_mapping(input, err);
    input->mapping =
        remember_mapping(map, (size_t)input->size, input->path);
    if (input->mapping == 0) {
        munmap(map, (size_t)input->size);
        return copy_all(input, err);
    }
    input->map = map;
    return LMQ_OK;
}

enum lmq_status
lmq_input_map(struct lmq_input *input, const unsigned char **bytes,
              struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (input->map == NULL && input->size > 0)
        status = input->is_copied ? copy_all(input, err)
                                  : map_all(input, err);
    *bytes = input->map;
    return status;
}

#if defined MADV_POPULATE_READ && defined RWF_NOWAIT

/* Bytes of a file that are in memory, or are not, together: a large page, if it
 * has such. */
#define NEIGHBOURS ((uint64_t)2 << 20)
/* Fewer are not worth reading what lies beside them in large pages. */
#define LARGE_LEAST (8 * NEIGHBOURS)
/* Where pages are larger, large ones are 512 MB. */
#define USUAL_PAGE 4096

static bool
is_in_memory(const struct lmq_input *input, uint64_t offset)
{
    unsigned char byte;
    struct iovec to = {.iov_base = &byte, .iov_len = 1};

    return preadv2(input->fd, &to, 1, (off_t)offset, RWF_NOWAIT) >= 0 ||
           errno != EAGAIN;
}

void
lmq_input_expect(struct lmq_input *input, uint64_t at, uint64_t n)
{
    uint64_t end = at + n;

    if (input->mapping == 0 || end > input->size)
        return;
    bool is_large = n >= LARGE_LEAST && sysconf(_SC_PAGESIZE) == USUAL_PAGE;
    if (is_large)
        end = lmq_u64_min((end + NEIGHBOURS - 1) / NEIGHBOURS * NEIGHBOURS,
                          input->size);
    pthread_mutex_lock(&input->turn); /* the next in turn finds it there */
    at = at / NEIGHBOURS * NEIGHBOURS;
    while (at < end && is_in_memory(input, at))
        at += NEIGHBOURS;
    if (at < end) {
        char *from = (char *)input->map + at;
        if (is_large)
            madvise(from, (size_t)(end - at), MADV_HUGEPAGE);
        madvise(from, (size_t)(end - at), MADV_POPULATE_READ);
    }
    pthread_mutex_unlock(&input->turn);
}

#else

void
lmq_input_expect(struct lmq_input *input, uint64_t at, uint64_t n)
{
    (void)input;
    (void)at;
    (void)n;
}

#endif

void
lmq_input_forget(struct lmq_input *input, uint64_t offset, uint64_t n)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t from = offset / page * page;

    if (input->mapping > 0 && n > 0 && offset + n <= input->size)
        madvise((char *)input->map + from, (size_t)(offset + n - from),
                MADV_DONTNEED);
}

bool
lmq_file_exists(const char *path, enum lmq_status *status,
                struct lmq_error *err)
{
    struct stat link;

    if (*status != LMQ_OK)
        return false;
    if (access(path, F_OK) == 0)
        return true;
    if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
        *status = lmq_fail_errno(err, "cannot look for it");
    else if (lstat(path, &link) == 0)
        *status = lmq_fail(err, LMQ_ERR_IO, 0,
                           "is a link to what is not there");
    if (*status != LMQ_OK)
        lmq_error_in(err, path);
    return false;
}

bool
lmq_file_exists_in(const char *folder, const char *name,
                   enum lmq_status *status, struct lmq_error *err)
{
    char *path = lmq_path_join(folder, name);

    if (path == NULL && *status == LMQ_OK)
        *status = lmq_fail_nomem(err);
    bool exists = path != NULL && lmq_file_exists(path, status, err);
    free(path);
    return exists;
}

enum lmq_status
lmq_file_load(const char *path, size_t most, unsigned char **out, size_t *n,
              struct lmq_error *err)
{
    struct lmq_input *input;

    *out = NULL;
    enum lmq_status status = lmq_input_open(path, &input, err);
    if (status != LMQ_OK)
        return status;
    if (input->size > most) {
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "is %" PRIu64 " bytes, at most %zu are accepted here",
                          input->size, most);
        lmq_error_in(err, path);
        goto done;
    }
    size_t size = (size_t)input->size;
    unsigned char *bytes = malloc(size + 1);
    if (bytes == NULL) {
        status = lmq_fail_nomem(err);
        goto done;
    }
    status = lmq_input_read(input, 0, bytes, size, err);
    if (status != LMQ_OK) {
        free(bytes);
        goto done;
    }
    bytes[size] = 0;
    *out = bytes;
    *n = size;
done:
    lmq_input_close(input);
    return status;
}

/* ---- Changes ---- */

enum lmq_status
lmq_file_stamp(const char *path, struct lmq_file_stamp *stamp,
               struct lmq_error *err)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        enum lmq_status status = lmq_fail_errno(err, "cannot open");
        lmq_error_in(err, path);
        return status;
    }
    *stamp = (struct lmq_file_stamp){
        .device = (uint64_t)info.st_dev,
        .inode = (uint64_t)info.st_ino,
        .size = (uint64_t)info.st_size,
        .seconds = info.st_mtim.tv_sec,
        .nanoseconds = info.st_mtim.tv_nsec,
    };
    return LMQ_OK;
}

enum lmq_status
lmq_file_unchanged(const char *path, const struct lmq_file_stamp *stamp,
                   struct lmq_error *err)
{
    struct lmq_file_stamp now = {0};
    const char *what = NULL;
    enum lmq_status status = lmq_file_stamp(path, &now, err);

    if (status != LMQ_OK)
        return status;
    if (now.device != stamp->device || now.inode != stamp->inode)
        what = "another file stands in its place";
    else if (now.size != stamp->size)
        what = "its size is another";
    else if (now.seconds != stamp->seconds ||
             now.nanoseconds != stamp->nanoseconds)
        what = "it was written to";
    if (what == NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_IO, 0, "changed while it was read: %s", what);
    lmq_hint(err, "try again when nobody writes to it any more");
    lmq_error_in(err, path);
    return LMQ_ERR_IO;
}
