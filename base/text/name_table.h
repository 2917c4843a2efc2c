/*
 * name_table.h - what the values of an option are called.
 *
 * A table stands beside its enumeration, is named after it and ends with a
 * name that is NULL; parsing, reports and messages all ask it.
 */
#ifndef LMQ_BASE_NAME_TABLE_H
#define LMQ_BASE_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

struct lmq_name {
    const char *name;
    int value;
};

/* The entry called `text`; NULL if there is none, or no text. */
const struct lmq_name *lmq_names_find(const struct lmq_name *names,
                                      const char *text);

/* The value that `text` names; NULL leaves *value, the default, as it is.
 * `option` is the member of the structure of options, for the message. */
enum lmq_status lmq_names_parse(const struct lmq_name *names,
                                const char *option, const char *text,
                                int *value, struct lmq_error *err);

/* What a value of the table is called. */
const char *lmq_names_of(const struct lmq_name *names, int64_t value);

/* "f32, f16 or q8", each between `quotes`, cut to size. */
const char *lmq_names_list(const struct lmq_name *names, const char *quotes,
                           char *list, size_t size);

#endif
