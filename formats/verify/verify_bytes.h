/*
 * verify_bytes.h - whether the bytes of a file are those that were written.
 *
 * Of the file that is looked at; what is wrong is added to the problems.
 */
#ifndef LMQ_FORMATS_VERIFY_BYTES_H
#define LMQ_FORMATS_VERIFY_BYTES_H

#include "formats/verify/verify_check.h"

enum lmq_status lmq_check_sections(struct lmq_check *check,
                                   struct lmq_error *err);
enum lmq_status lmq_check_tensor(struct lmq_check *check,
                                 const struct lmq_record *record,
                                 struct lmq_error *err);

/* Between them there are zeros. */
enum lmq_status lmq_check_padding(struct lmq_check *check,
                                  struct lmq_error *err);

#endif
