/*
 * part_set.c - reads the parts of a run, and whether they are all, and of one.
 */
#include "config.h"

#include "validate/parts/part_set.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/output.h"
#include "base/report.h"

#define FILE_MOST ((size_t)1 << (sizeof(size_t) == 8 ? 32 : 30))
#define PARTS_MOST 99999

enum lmq_status
lmq_part_check(unsigned part, unsigned n_parts, struct lmq_error *err)
{
    if (n_parts == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".part is %u, but .n_parts does not say of how many",
                        part);
    if (part < 1 || part > n_parts)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "there is no part %u of %u: expected 1 to %u", part,
                        n_parts, n_parts);
    return LMQ_OK;
}

/* ---- Reading ---- */

static enum lmq_status
parse(const struct lmq_part_kind *kind, struct lmq_run_part *part,
      const void *text, size_t n, size_t *n_parts, struct lmq_error *err)
{
    json_error_t problem = {0};
    enum lmq_status status = lmq_json_read(text, n, LMQ_JSON_STRICT,
                                           &part->json, &problem, err);

    if (status == LMQ_ERR_FORMAT && problem.text[0] != '\0')
        return lmq_fail(err, status, 0, "is no JSON: %s (line %d)",
                        problem.text, problem.line);
    if (status != LMQ_OK)
        return status;
    json_int_t form =
        json_integer_value(json_object_get(part->json, kind->key));
    json_int_t number =
        json_integer_value(json_object_get(part->json, "part"));
    json_int_t total =
        json_integer_value(json_object_get(part->json, "parts"));
    if (form != kind->form || number < 1 || total < number ||
        total > PARTS_MOST) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 form > kind->form ? "is a part of a newer form than is "
                                     "understood here"
                                   : "is no part of %s",
                 kind->what);
        lmq_hint(err, "expected what %s writes", kind->maker);
        return LMQ_ERR_FORMAT;
    }
    part->number = (size_t)number;
    *n_parts = (size_t)total;
    return LMQ_OK;
}

static enum lmq_status
load(const struct lmq_part_kind *kind, struct lmq_run_part *part,
     size_t *n_parts, struct lmq_error *err)
{
    unsigned char *bytes;
    size_t n;
    enum lmq_status status =
        lmq_file_load(part->name, FILE_MOST, &bytes, &n, err);

    if (status != LMQ_OK)
        return status;
    status = parse(kind, part, bytes, n, n_parts, err);
    free(bytes);
    return status;
}

/* ---- Is it as it was written? ---- */

#define CHECKSUM "crc32"

static uint32_t
add_bytes(uint32_t crc, char kind, const void *bytes, size_t n)
{
    return lmq_crc32(lmq_crc32(crc, &kind, 1), bytes, n);
}

/* Of the values, however they are printed: their kinds, then their bits. */
static uint32_t
checksum_of(const json_t *value, uint32_t crc)
{
    unsigned char bits[8];
    const json_t *inner;
    const char *key;
    size_t i;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        json_object_foreach((json_t *)(uintptr_t)value, key, inner)
            crc = checksum_of(inner, add_bytes(crc, 'k', key, strlen(key)));
        return add_bytes(crc, '}', "", 0);
    case JSON_ARRAY:
        json_array_foreach((json_t *)(uintptr_t)value, i, inner)
            crc = checksum_of(inner, crc);
        return add_bytes(crc, ']', "", 0);
    case JSON_STRING:
        return add_bytes(crc, 's', json_string_value(value),
                         json_string_length(value));
    case JSON_INTEGER:
        lmq_store_u64le(bits, (uint64_t)json_integer_value(value));
        return add_bytes(crc, 'i', bits, sizeof(bits));
    case JSON_REAL:
        lmq_store_f64le(bits, json_real_value(value));
        return add_bytes(crc, 'r', bits, sizeof(bits));
    default:
        return add_bytes(crc, json_is_true(value) ? 't' : 'f', "", 0);
    }
}

/* But for the checksum. */
static uint32_t
checksum_of_part(const json_t *part)
{
    const json_t *value;
    const char *key;
    uint32_t crc = 0;

    json_object_foreach((json_t *)(uintptr_t)part, key, value)
        if (strcmp(key, CHECKSUM) != 0)
            crc = checksum_of(value, add_bytes(crc, 'k', key, strlen(key)));
    return crc;
}

enum lmq_status
lmq_part_check_whole(const struct lmq_run_part *part, struct lmq_error *err)
{
    const json_t *stored = json_object_get(part->json, CHECKSUM);
    uint32_t crc = checksum_of_part(part->json);

    if (stored == NULL || json_integer_value(stored) == (json_int_t)crc)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is damaged: the CRC-32 of what it says is %08" PRIx32
             ", expected %08" PRIx32,
             crc, (uint32_t)json_integer_value(stored));
    lmq_hint(err, "make this part again");
    return LMQ_ERR_FORMAT;
}

/* ---- Are they of one run? ---- */

/* Where two values differ first, as a path. */
static const json_t *
find_difference(const json_t *a, const json_t *b, char *path, size_t size,
                const json_t **other)
{
    size_t used = strlen(path), i;
    const json_t *value, *found;
    const char *key;

    if (json_equal(a, b))
        return NULL;
    *other = b;
    json_object_foreach((json_t *)(uintptr_t)a, key, value) {
        snprintf(path + used, size - used, "%s%s", used > 0 ? "." : "", key);
        found = find_difference(value, json_object_get(b, key), path, size,
                                other);
        if (found != NULL)
            return found;
    }
    json_array_foreach((json_t *)(uintptr_t)a, i, value) {
        snprintf(path + used, size - used, ".%zu", i);
        found = find_difference(value, json_array_get(b, i), path, size,
                                other);
        if (found != NULL)
            return found;
    }
    path[used] = '\0';
    *other = b;
    return a;
}

static enum lmq_status
fail_other(const char *what, const json_t *found, const json_t *expected,
           const char *first, struct lmq_error *err)
{
    char *a = lmq_json_dump(found, JSON_ENCODE_ANY | JSON_COMPACT);
    char *b = lmq_json_dump(expected, JSON_ENCODE_ANY | JSON_COMPACT);

    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is of another run: %s is %.40s, in %.200s it is %.40s", what,
             a == NULL ? "absent" : a, first, b == NULL ? "absent" : b);
    lmq_hint(err, "all parts need the same models, text, options and version: "
                  "make this one again");
    free(a);
    free(b);
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_part_check_run(const struct lmq_run_part *part,
                   const json_t *expected_part, const char *name,
                   struct lmq_error *err)
{
    static const char *const keys[] = {"version", "run"};
    char path[256] = "";
    const json_t *other = NULL;

    for (size_t i = 0; i < 2; i++) {
        const json_t *expected = json_object_get(expected_part, keys[i]);
        const json_t *found = find_difference(
            json_object_get(part->json, keys[i]), expected, path,
            sizeof(path), &other);
        if (found == NULL && !json_equal(expected,
                                         json_object_get(part->json, keys[i])))
            return fail_other(keys[i], json_object_get(part->json, keys[i]),
                              expected, name, err);
        if (found != NULL)
            return fail_other(path[0] == '\0' ? keys[i] : path, found, other,
                              name, err);
    }
    return LMQ_OK;
}

static int
compare_parts(const void *a, const void *b)
{
    const struct lmq_run_part *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

/* "3 of 8 parts are missing: 2, 5, 7"; the first ten of them. */
static enum lmq_status
fail_missing(const struct lmq_part_set *set, size_t n_parts,
             struct lmq_error *err)
{
    size_t n = n_parts - set->n, at = 0, used = 0;
    char list[128] = "";

    for (size_t i = 1, named = 0; i <= n_parts && named < 10; i++) {
        if (at < set->n && set->parts[at].number == i) {
            at++;
            continue;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%zu",
                                 named == 0 ? "" : ", ", i);
        named++;
    }
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "%zu of %zu parts %s missing: %s%s", n,
             n_parts, n == 1 ? "is" : "are", list, n > 10 ? ", ..." : "");
    lmq_hint(err, "%s I/%zu, with the same models, text and options, makes one",
             set->kind->maker, n_parts);
    return LMQ_ERR_FORMAT;
}

/* Sorts them, as one run has the text. */
static enum lmq_status
check_complete(struct lmq_part_set *set, size_t n_parts, struct lmq_error *err)
{
    struct lmq_run_part *parts = set->parts;

    qsort(parts, set->n, sizeof(*parts), compare_parts);
    for (size_t i = 1; i < set->n; i++)
        if (parts[i].number == parts[i - 1].number) {
            lmq_fail(err, LMQ_ERR_FORMAT, 0, "is part %zu of %zu, as %.200s is",
                     parts[i].number, n_parts, parts[i - 1].name);
            lmq_error_in(err, parts[i].name);
            return LMQ_ERR_FORMAT;
        }
    return set->n < n_parts ? fail_missing(set, n_parts, err) : LMQ_OK;
}

/* Each against the first that was named. */
static enum lmq_status
check_parts(struct lmq_part_set *set, const size_t *totals,
            struct lmq_error *err)
{
    const struct lmq_run_part *first = &set->parts[0];

    for (size_t i = 1; i < set->n; i++) {
        const struct lmq_run_part *part = &set->parts[i];
        enum lmq_status status =
            totals[i] != totals[0]
                ? lmq_fail(err, LMQ_ERR_FORMAT, 0,
                           "is one of %zu parts, %.200s of %zu", totals[i],
                           first->name, totals[0])
                : lmq_part_check_run(part, first->json, first->name, err);
        if (status != LMQ_OK) {
            lmq_error_in(err, part->name);
            return status;
        }
    }
    return check_complete(set, totals[0], err);
}

/* ---- All of them ---- */

static enum lmq_status
read_all(struct lmq_part_set *set, const char *const *names,
         const char *const *texts, size_t *totals, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < set->n && status == LMQ_OK; i++) {
        struct lmq_run_part *part = &set->parts[i];
        part->name = names[i];
        status = texts == NULL
                     ? load(set->kind, part, &totals[i], err)
                     : parse(set->kind, part, texts[i], strlen(texts[i]),
                             &totals[i], err);
        if (status != LMQ_OK)
            lmq_error_in(err, part->name);
    }
    return status == LMQ_OK ? check_parts(set, totals, err) : status;
}

enum lmq_status
lmq_part_set_open(struct lmq_part_set *set, const struct lmq_part_kind *kind,
                  const char *const *names, const char *const *texts, size_t n,
                  struct lmq_error *err)
{
    size_t *totals = calloc(n, sizeof(*totals));

    *set = (struct lmq_part_set){
        .kind = kind, .parts = calloc(n, sizeof(*set->parts)), .n = n};
    enum lmq_status status = totals == NULL || set->parts == NULL
                                 ? lmq_fail_nomem(err)
                                 : read_all(set, names, texts, totals, err);
    free(totals);
    return status;
}

void
lmq_part_set_close(struct lmq_part_set *set)
{
    for (size_t i = 0; set->parts != NULL && i < set->n; i++)
        json_decref(set->parts[i].json);
    free(set->parts);
    *set = (struct lmq_part_set){0};
}

/* ---- Writing ---- */

json_t *
lmq_part_start(const struct lmq_part_kind *kind, size_t part, size_t n_parts,
               json_t *run)
{
    json_t *json = json_object();

    lmq_put(&json, kind->key, json_integer(kind->form));
    lmq_put(&json, "version", json_string(PACKAGE_VERSION));
    lmq_put(&json, "part", lmq_json_size(part));
    lmq_put(&json, "parts", lmq_json_size(n_parts));
    lmq_put(&json, "run", run);
    return json;
}

enum lmq_status
lmq_part_finish(json_t *part, const struct lmq_error *why, json_t **out,
                struct lmq_error *err)
{
    if (part != NULL)
        lmq_put(&part, CHECKSUM, lmq_json_size(checksum_of_part(part)));
    *out = part;
    return part != NULL ? LMQ_OK : lmq_fail_as(err, why);
}

enum lmq_status
lmq_part_text(const json_t *part, char **text, struct lmq_error *err)
{
    *text = NULL;
    if (json_object_get(part, CHECKSUM) == NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "is no report of a part");
    *text = lmq_json_dump(part, JSON_COMPACT | JSON_REAL_PRECISION(17));
    return *text == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_part_write(const json_t *part, const char *path, bool replaces,
               struct lmq_error *err)
{
    char *text;
    enum lmq_status status = lmq_part_text(part, &text, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_output_put(path, text, strlen(text), replaces, NULL, err);
    free(text);
    return status;
}
