/*
 * part_set.h - what the parts of one run have written down, all of them: of a
 * validation, or of a plan.
 */
#ifndef LMQ_VALIDATE_PART_SET_H
#define LMQ_VALIDATE_PART_SET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

/* Whose parts they are. */
struct lmq_part_kind {
    const char *key;   /* which says the form, and tells them from others */
    int form;
    const char *what;  /* "a validation" */
    const char *maker; /* "validate .part" */
};

/* What the options .part and .n_parts say, of which one is not 0. */
enum lmq_status lmq_part_check(unsigned part, unsigned n_parts,
                               struct lmq_error *err);

struct lmq_run_part {
    const char *name; /* of its file, for messages */
    json_t *json;
    size_t number; /* from 1 */
};

struct lmq_part_set {
    const struct lmq_part_kind *kind;
    struct lmq_run_part *parts; /* in the order of their numbers */
    size_t n;
};

/*
 * Reads n files, or texts, of which `names` are the names: all parts of a run,
 * in any order. What is missing, there twice or of another run than the first
 * is LMQ_ERR_FORMAT. Released with lmq_part_set_close(), also after a failure.
 */
enum lmq_status lmq_part_set_open(struct lmq_part_set *set,
                                  const struct lmq_part_kind *kind,
                                  const char *const *names,
                                  const char *const *texts, size_t n,
                                  struct lmq_error *err);
void lmq_part_set_close(struct lmq_part_set *set);

/* Whether a part is of the same run as what is expected, of that name: as JSON,
 * with "version" and "run". */
enum lmq_status lmq_part_check_run(const struct lmq_run_part *part,
                                   const json_t *expected, const char *name,
                                   struct lmq_error *err);

/* Whether all that it says is what was written. */
enum lmq_status lmq_part_check_whole(const struct lmq_run_part *part,
                                     struct lmq_error *err);

/* What one part says of itself, before what it has found; and the checksum of
 * all that, at the end, if there is one: else *why says what is wrong, or there
 * was no memory. */
json_t *lmq_part_start(const struct lmq_part_kind *kind, size_t part,
                       size_t n_parts, json_t *run);
enum lmq_status lmq_part_finish(json_t *part, const struct lmq_error *why,
                                json_t **out, struct lmq_error *err);

/* All of it with all digits, which reports are printed without; and in a file,
 * which appears whole or not at all. */
enum lmq_status lmq_part_text(const json_t *part, char **text,
                              struct lmq_error *err);
enum lmq_status lmq_part_write(const json_t *part, const char *path,
                               bool replaces, struct lmq_error *err);

#endif
