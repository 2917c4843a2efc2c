/*
 * log.c - lines with a checksum each.
 *
 * The first line says what the file is; each other one begins with the CRC-32
 * of its text. What does not match is where somebody was stopped: it is cut
 * off before anything is added.
 */
#include "config.h"

#include "base/files/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/disk_space.h"
#include "base/files/file.h"
#include "base/size.h"

static const char first_line[] = "lmquant journal 1\n";
#define N_FIRST (sizeof(first_line) - 1)
#define N_CRC 9 /* digits and a blank */
#define SIZE_MOST ((size_t)1 << 30)
#define TRIES 100

struct lmq_log {
    int fd;
    char *path;
    char *text; /* of the file when it was opened */
    size_t size, at; /* of it; where the next line begins */
    size_t end; /* behind the last line that is whole */
    bool is_new;
};

/* Where the line at `at` ends, its line feed; 0 if it is not whole. */
static size_t
end_of_line(const struct lmq_log *log, size_t at)
{
    char crc[N_CRC + 1];
    const char *feed = at + N_CRC < log->size
                           ? memchr(log->text + at, '\n', log->size - at)
                           : NULL;

    if (feed == NULL || feed < log->text + at + N_CRC)
        return 0;
    size_t end = (size_t)(feed - log->text);
    if (memchr(log->text + at, '\0', end - at) != NULL)
        return 0;
    snprintf(crc, sizeof(crc), "%08" PRIx32 " ",
             lmq_crc32(0, log->text + at + N_CRC, end - at - N_CRC));
    return memcmp(crc, log->text + at, N_CRC) == 0 ? end : 0;
}

static enum lmq_status
write_all(struct lmq_log *log, const char *text, size_t n,
          struct lmq_error *err)
{
    while (n > 0) {
        ssize_t put = pwrite(log->fd, text, n, (off_t)log->end);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return lmq_fail_errno(err, "cannot write");
        text += put;
        log->end += (size_t)put;
        n -= (size_t)put;
    }
    return LMQ_OK;
}

static enum lmq_status
read_all(struct lmq_log *log, struct lmq_error *err)
{
    struct stat info;

    if (fstat(log->fd, &info) != 0)
        return lmq_fail_errno(err, "cannot read");
    if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > SIZE_MOST)
        return lmq_fail(err, LMQ_ERR_IO, 0,
                        "is no journal: not a file of up to 2^30 bytes");
    log->text = malloc((size_t)info.st_size + 1);
    if (log->text == NULL)
        return lmq_fail_nomem(err);
    while (log->size < (size_t)info.st_size) {
        ssize_t got = pread(log->fd, log->text + log->size,
                            (size_t)info.st_size - log->size,
                            (off_t)log->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lmq_fail_errno(err, "cannot read");
        if (got == 0)
            break;
        log->size += (size_t)got;
    }
    if (memcmp(log->text, first_line, lmq_size_min(log->size, N_FIRST)) == 0)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_IO, 0, "is there, and is no journal of lmquant");
    lmq_hint(err, "remove it, or name another output");
    return LMQ_ERR_IO;
}

/* Opens what is there, or makes it. */
static int
open_file(struct lmq_log *log, bool makes)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;

    log->is_new = false;
    log->fd = open(log->path, flags);
    if (log->fd < 0 && errno == ENOENT && makes) {
        log->fd = open(log->path, flags | O_CREAT | O_EXCL, 0666);
        log->is_new = log->fd >= 0;
    }
    return log->fd;
}

/* Others may make it, or take it away, until it is locked. */
static enum lmq_status
open_locked(struct lmq_log *log, bool makes, struct lmq_error *err)
{
    struct stat info;

    for (int i = 0; i < TRIES; i++) {
        if (open_file(log, makes) < 0) {
            if (errno == EEXIST && makes)
                continue;
            return errno == ENOENT && !makes
                       ? LMQ_OK
                       : lmq_fail_errno(err, "cannot be opened");
        }
        if (flock(log->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            log->is_new = false; /* somebody has it already */
            return lmq_fail(err, LMQ_ERR_IO, 0,
                            "is in use: another process works on this output");
        }
        if (fstat(log->fd, &info) != 0 || info.st_nlink > 0)
            return LMQ_OK;
        close(log->fd);
        log->fd = -1;
    }
    return lmq_fail(err, LMQ_ERR_IO, 0,
                    "is in use: another process works on this output");
}

/* As far as its lines are whole. */
static void
find_end(struct lmq_log *log)
{
    if (log->size < N_FIRST) {
        log->size = 0;
        return;
    }
    log->at = log->end = N_FIRST;
    for (size_t end; (end = end_of_line(log, log->end)) > 0;) {
        log->text[end] = '\0';
        log->end = end + 1;
    }
    log->size = log->end;
}

static enum lmq_status
begin(struct lmq_log *log, struct lmq_error *err)
{
    enum lmq_status status = read_all(log, err);
    if (status != LMQ_OK)
        return status;
    find_end(log);
    if (log->end == 0)
        status = write_all(log, first_line, N_FIRST, err);
    return status == LMQ_OK ? lmq_space_cut(log->fd, log->end, err) : status;
}

static struct lmq_log *
new_log(const char *path, struct lmq_error *err)
{
    struct lmq_log *log = calloc(1, sizeof(*log));

    if (log == NULL || (log->path = strdup(path)) == NULL) {
        free(log);
        lmq_fail_nomem(err);
        return NULL;
    }
    log->fd = -1;
    return log;
}

enum lmq_status
lmq_log_look(const char *path, struct lmq_log **out, struct lmq_error *err)
{
    *out = NULL;
    struct lmq_log *log = new_log(path, err);
    if (log == NULL)
        return LMQ_ERR_NOMEM;
    enum lmq_status status = LMQ_OK;
    log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (log->fd >= 0)
        status = read_all(log, err);
    else if (errno != ENOENT)
        status = lmq_fail_errno(err, "cannot be opened");
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    if (status != LMQ_OK || log->fd < 0) {
        lmq_log_close(log);
        return status;
    }
    close(log->fd); /* it is in memory, and there may be many */
    log->fd = -1;
    find_end(log);
    *out = log;
    return LMQ_OK;
}

enum lmq_status
lmq_log_open(const char *path, bool makes, struct lmq_log **out,
             struct lmq_error *err)
{
    *out = NULL;
    struct lmq_log *log = new_log(path, err);
    if (log == NULL)
        return LMQ_ERR_NOMEM;
    enum lmq_status status = open_locked(log, makes, err);
    if (status == LMQ_OK && log->fd < 0) {
        lmq_log_close(log);
        return LMQ_OK;
    }
    if (status == LMQ_OK)
        status = begin(log, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        (log->is_new ? lmq_log_remove : lmq_log_close)(log);
        return status;
    }
    *out = log;
    return LMQ_OK;
}

bool
lmq_log_is_new(const struct lmq_log *log)
{
    return log->is_new;
}

const char *
lmq_log_path(const struct lmq_log *log)
{
    return log->path;
}

const char *
lmq_log_next(struct lmq_log *log)
{
    size_t at = log->at;

    if (at == 0 || at >= log->size || at >= log->end)
        return NULL;
    const char *line = log->text + at + N_CRC;
    log->at = (size_t)(line - log->text) + strlen(line) + 1;
    return line;
}

void
lmq_log_rewind(struct lmq_log *log)
{
    log->at = log->size > N_FIRST ? N_FIRST : 0;
}

enum lmq_status
lmq_log_append(struct lmq_log *log, const char *text, struct lmq_error *err)
{
    size_t n = strlen(text);
    char *line = malloc(n + N_CRC + 2);
    enum lmq_status status = line == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    if (status == LMQ_OK) {
        snprintf(line, n + N_CRC + 2, "%08" PRIx32 " %s\n",
                 lmq_crc32(0, text, n), text);
        status = write_all(log, line, n + N_CRC + 1, err);
    }
    free(line);
    if (status != LMQ_OK)
        lmq_error_in(err, log->path);
    return status;
}

enum lmq_status
lmq_log_sync(struct lmq_log *log, struct lmq_error *err)
{
    if (fsync(log->fd) == 0)
        return LMQ_OK;
    enum lmq_status status = lmq_fail_errno(err, "cannot write to the disk");
    lmq_error_in(err, log->path);
    return status;
}

void
lmq_log_close(struct lmq_log *log)
{
    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log->text);
    free(log->path);
    free(log);
}

void
lmq_log_remove(struct lmq_log *log)
{
    if (log != NULL)
        unlink(log->path);
    lmq_log_close(log);
}
