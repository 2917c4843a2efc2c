/*
 * verify_against.h - holds the digests that are stored, and the one that is
 * asked for, against those of the bytes.
 *
 * What is wrong is added to the problems.
 */
#ifndef LMQ_FORMATS_VERIFY_AGAINST_H
#define LMQ_FORMATS_VERIFY_AGAINST_H

#include "formats/verify/verify_check.h"

/* "sha256:" or nothing, and 64 hexadecimal digits. */
enum lmq_status lmq_check_parse_wanted(const char *text,
                                       unsigned char wanted[LMQ_SHA256_SIZE],
                                       struct lmq_error *err);

/* Of a set that has none its content can be asked for. */
enum lmq_status lmq_check_begin_digests(struct lmq_check *check,
                                        struct lmq_error *err);

enum lmq_status lmq_check_chunks(struct lmq_check *check,
                                 struct lmq_digests *own, size_t index,
                                 struct lmq_error *err);

enum lmq_status lmq_check_root(struct lmq_check *check, struct lmq_error *err);

/* What the file says, until it is computed. */
json_t *lmq_check_describe_digests(const struct lmq_check *check);

/* Of all of it, which is open and without problems. */
enum lmq_status lmq_check_content(struct lmq_check *check,
                                  const struct lmq_checkpoint *checkpoint,
                                  size_t named, struct lmq_error *err);

enum lmq_status lmq_check_fail_mismatch(const struct lmq_check *check,
                                        struct lmq_error *err);

#endif
