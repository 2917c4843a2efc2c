/*
 * report.h - builds the trees behind struct lmq_report.
 *
 * A report is a JSON value in memory: everything that is shown (text, JSON,
 * YAML, gates) reads the same tree, so the views cannot disagree.
 */
#ifndef LMQ_BASE_REPORT_H
#define LMQ_BASE_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "base/text/name_table.h"
#include "lmquant.h"

/*
 * A tree that could not be built whole is NULL. lmq_put() and lmq_append()
 * take over `value`; if it is NULL, or there is no memory to keep it, or the
 * tree is NULL already, they release both and set *object to NULL. So a
 * failure anywhere rises to the root, and what is built needs one check, at
 * the end:
 *
 *   json_t *json = json_object();
 *   lmq_put(&json, "name", lmq_json_text(name));
 *   lmq_put(&json, "shape", describe_shape(tensor));
 *   return lmq_report_finish(json, report, err);
 *
 * A node that is in a tree is not added to: its root would not know.
 */
void lmq_put(json_t **object, const char *key, json_t *value);
void lmq_append(json_t **array, json_t *value);
/* What the value is called. */
void lmq_put_name(json_t **object, const char *key,
                  const struct lmq_name *names, int64_t value);

/* The report owns the value from here on. */
static inline struct lmq_report *
lmq_report_from(json_t *value)
{
    return (struct lmq_report *)value;
}

/* The same with the check at the end; if report is NULL, only that. */
enum lmq_status lmq_report_finish(json_t *json, struct lmq_report **report,
                                  struct lmq_error *err);

/* The same of what has an output, which then may have its name; if report is
 * NULL, it is made all the same to be approved. */
enum lmq_status lmq_report_approved(json_t *json,
                                    const struct lmq_progress *progress,
                                    struct lmq_report **report,
                                    struct lmq_error *err);

/* Whose strings may have a 0, as tokens may: flags to read what was written
 * here. */
#define LMQ_JSON_STRICT (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)

/*
 * jansson's json_loadb() and json_dumps() do not tell all failures to get
 * memory: they may lose a character, and succeed. These two tell. What would
 * become too large a tree (base/text/json_cost.h) is not read. If a whole
 * number needs more than 64 bits, all numbers of the text become reals.
 *
 * LMQ_ERR_FORMAT comes without a message: *problem has it.
 */
enum lmq_status lmq_json_read(const void *text, size_t size, size_t flags,
                              json_t **json, json_error_t *problem,
                              struct lmq_error *err);
/* NULL without memory, and of NULL; released with free(). */
char *lmq_json_dump(const json_t *json, size_t flags);

/* A number; null if it is not finite, as JSON wants it. */
json_t *lmq_json_number(double value);
json_t *lmq_json_size(uint64_t value);
/* A sum of bytes: text of eight hexadecimal digits. */
json_t *lmq_json_crc(uint32_t crc);

/* What is read again of a number that was printed. */
double lmq_json_reread(double value);

/* Text from a file: what is no UTF-8 or no printable character is escaped. */
json_t *lmq_json_text(const char *text);

#endif
