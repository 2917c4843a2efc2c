/*
 * error.c - fills in struct lmq_error.
 *
 * Messages carry names that come from files, so they are made printable here,
 * once, for whoever shows them on a terminal.
 */
#include "config.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/c_locale.h"
#include "base/text/utf8.h"

/* The raw text may be longer than the message: a tensor's name alone may be.
 * Every byte of it may become four. */
#define RAW_MAX 2048

void
lmq_printable(char *dst, size_t dst_size, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *in = (const unsigned char *)text;
    size_t left = strlen(text);
    size_t used = 0;

    while (left > 0) {
        size_t n = lmq_utf8_length(in, left);
        if (n > 0 && lmq_utf8_is_shown(lmq_utf8_decode(in, n))) {
            if (used + n >= dst_size)
                break;
            memcpy(dst + used, in, n);
            used += n;
        } else {
            n = 1;
            if (used + 4 >= dst_size)
                break;
            dst[used++] = '\\';
            dst[used++] = 'x';
            dst[used++] = hex[in[0] >> 4];
            dst[used++] = hex[in[0] & 15];
        }
        in += n;
        left -= n;
    }
    dst[used] = '\0';
}

/* Cuts a long text in the middle, between characters: what follows a long name
 * is what the message is about. */
static void
shorten(char *dst, size_t dst_size, const char *plain)
{
    size_t n = strlen(plain);
    size_t head = dst_size / 2 - 4, tail = n - head;

    if (n < dst_size) {
        memcpy(dst, plain, n + 1);
        return;
    }
    while (((unsigned char)plain[head] & 0xc0) == 0x80)
        head--;
    while (((unsigned char)plain[tail] & 0xc0) == 0x80)
        tail++;
    snprintf(dst, dst_size, "%.*s...%s", (int)head, plain, plain + tail);
}

/* The first option of a message, ".scales" after a blank or at the beginning.
 * Only what the format has itself counts, or begins with: names from files may
 * look like one. */
static void
find_option(struct lmq_error *err, const char *format, const char *raw)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    const char *at = format[0] == '.' ? raw : format;
    size_t n = 0;

    for (; *at != '\0' && n == 0; at++)
        if (*at == '.' && (at == format || at == raw || at[-1] == ' '))
            n = strspn(at + 1, letters);
    if (n >= sizeof(err->option))
        n = 0;
    memcpy(err->option, at, n);
    err->option[n] = '\0';
}

static void
format_message(struct lmq_error *err, enum lmq_status status, uint64_t offset,
               const char *suffix, const char *format, va_list args)
{
    char raw[RAW_MAX], plain[4 * RAW_MAX];
    int n = lmq_c_vsnprintf(raw, sizeof(raw), format, args);
    size_t used = n < 0 ? 0 : (size_t)n;

    if (suffix != NULL && used < sizeof(raw))
        snprintf(raw + used, sizeof(raw) - used, ": %s", suffix);
    err->status = status;
    err->offset = offset;
    err->path[0] = '\0';
    err->hint[0] = '\0';
    if (status == LMQ_ERR_ARG)
        find_option(err, format, raw);
    else
        err->option[0] = '\0';
    lmq_printable(plain, sizeof(plain), raw);
    shorten(err->message, sizeof(err->message), plain);
}

enum lmq_status
lmq_fail(struct lmq_error *err, enum lmq_status status, uint64_t offset,
         const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        format_message(err, status, offset, NULL, format, args);
        va_end(args);
    }
    return status;
}

enum lmq_status
lmq_fail_errno(struct lmq_error *err, const char *format, ...)
{
    int code = errno;
    enum lmq_status status = code == ENOMEM ? LMQ_ERR_NOMEM : LMQ_ERR_IO;

    if (err != NULL) {
        va_list args;
        va_start(args, format);
        format_message(err, status, 0, strerror(code), format, args);
        va_end(args);
    }
    if (code == EFBIG)
        lmq_hint(err, "a limit (ulimit -f), or the file system, allows no "
                      "file of this size");
    else if (code == EMFILE)
        lmq_hint(err, "a limit (ulimit -Hn) allows no more open files");
    return status;
}

enum lmq_status
lmq_fail_nomem(struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_NOMEM, 0, "out of memory");
}

enum lmq_status
lmq_fail_as(struct lmq_error *err, const struct lmq_error *why)
{
    if (why->status == LMQ_OK)
        return lmq_fail_nomem(err);
    if (err != NULL)
        *err = *why;
    return why->status;
}

void
lmq_hint(struct lmq_error *err, const char *format, ...)
{
    char raw[RAW_MAX];
    va_list args;

    if (err == NULL)
        return;
    va_start(args, format);
    if (lmq_c_vsnprintf(raw, sizeof(raw), format, args) < 0)
        raw[0] = '\0';
    va_end(args);
    lmq_printable(err->hint, sizeof(err->hint), raw);
}

void
lmq_error_in(struct lmq_error *err, const char *path)
{
    char plain[4 * RAW_MAX];

    if (err == NULL || err->path[0] != '\0')
        return;
    lmq_printable(plain, sizeof(plain), path);
    shorten(err->path, sizeof(err->path), plain);
}

void
lmq_error_around(struct lmq_error *err, const char *path)
{
    char part[sizeof(err->path)], whole[2 * sizeof(err->path) + 2];
    const char *slash = strrchr(path, '/');
    struct lmq_error base = {0};

    if (err == NULL || strchr(err->path, '/') != NULL)
        return;
    lmq_error_in(&base, slash == NULL ? path : slash + 1);
    strcpy(part, err->path);
    err->path[0] = '\0';
    lmq_error_in(err, path);
    if (part[0] == '\0' || strcmp(part, base.path) == 0)
        return;
    snprintf(whole, sizeof(whole), "%s: %s", err->path, part);
    shorten(err->path, sizeof(err->path), whole);
}

void
lmq_error_text(const struct lmq_error *err, char text[LMQ_ERROR_TEXT])
{
    snprintf(text, LMQ_ERROR_TEXT, "%s%s%s", err->path,
             err->path[0] == '\0' ? "" : ": ", err->message);
}
