/*
 * error.h - how the library says what went wrong.
 *
 * The place that knows fills in `err` once and returns the status; everybody
 * above passes the status on. `err` may be NULL everywhere.
 *
 * Messages and hints name the members of options as C does, ".scales": the
 * command line makes its own "--scales" of that (cli/flags.c).
 */
#ifndef LMQ_BASE_ERROR_H
#define LMQ_BASE_ERROR_H

#include "lmquant.h"

/* Fills `err` and returns `status`, so that it can stand in a return. */
enum lmq_status lmq_fail(struct lmq_error *err, enum lmq_status status,
                         uint64_t offset, const char *format, ...)
    LMQ_PRINTF(4, 5);

/* The same for a failed system call: appends what errno says, with advice where
 * it is a limit; ENOMEM becomes LMQ_ERR_NOMEM, the rest LMQ_ERR_IO. */
enum lmq_status lmq_fail_errno(struct lmq_error *err, const char *format, ...)
    LMQ_PRINTF(2, 3);

enum lmq_status lmq_fail_nomem(struct lmq_error *err);
/* For the reason that was found; if none was, memory had run out. */
enum lmq_status lmq_fail_as(struct lmq_error *err,
                            const struct lmq_error *why);

/* The machine or its files refused: that says nothing about what is in them,
 * and a caller that tries something else instead must not. */
static inline int
lmq_status_is_of_system(enum lmq_status status)
{
    return status == LMQ_ERR_IO || status == LMQ_ERR_NOMEM;
}

/* Adds the advice that goes with the message. */
void lmq_hint(struct lmq_error *err, const char *format, ...) LMQ_PRINTF(2, 3);

/* Names the file concerned, unless something below has named it already. */
void lmq_error_in(struct lmq_error *err, const char *path);

/* Where something below may have named a part of it alone, as a file of a
 * folder or of a container: that is said, too. */
void lmq_error_around(struct lmq_error *err, const char *path);

/* The file concerned, if there is one, and the message. */
#define LMQ_ERROR_TEXT                                                        \
    (sizeof(((struct lmq_error *)0)->path) + sizeof(": ") +                   \
     sizeof(((struct lmq_error *)0)->message))
void lmq_error_text(const struct lmq_error *err, char text[LMQ_ERROR_TEXT]);

/* Copies text so that a terminal shows it harmlessly: control characters, such
 * as turn text around, and bytes that are no UTF-8 become \xNN. Always
 * terminates dst. */
void lmq_printable(char *dst, size_t dst_size, const char *text);

#endif
