/*
 * verify_against.c - digests: stored, computed, asked for.
 *
 * Three kinds of digests meet here: those that a container says of itself,
 * those of its bytes, and one that the caller asks for. Checksums have shown
 * by then whether bytes are damaged; digests also notice what was changed on
 * purpose, if the caller knows the right one from elsewhere.
 */
#include "config.h"

#include "formats/verify/verify_against.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/report.h"
#include "formats/lmq/lmq_set.h"
#include "formats/verify/verify_digests.h"

/* "sha256:" or nothing, and 64 hexadecimal digits. */
enum lmq_status
lmq_check_parse_wanted(const char *text, unsigned char wanted[LMQ_SHA256_SIZE],
                       struct lmq_error *err)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
    bool is_right = strlen(p) == 2 * LMQ_SHA256_SIZE;

    for (size_t i = 0; is_right && i < 2 * LMQ_SHA256_SIZE; i++) {
        int letter = p[i] >= 'A' && p[i] <= 'F' ? p[i] - 'A' + 'a' : p[i];
        const char *digit = strchr(digits, letter);
        is_right = digit != NULL;
        if (is_right)
            wanted[i / 2] =
                (unsigned char)((i % 2 == 0 ? 0 : wanted[i / 2] * 16) +
                                (digit - digits));
    }
    return is_right ? LMQ_OK
                    : lmq_fail(err, LMQ_ERR_ARG, 0,
                               ".against is '%.80s', expected 64 hexadecimal "
                               "digits, with sha256: before them or without",
                               text);
}

/* Of a set that has none its content can be asked for. */
enum lmq_status
lmq_check_begin_digests(struct lmq_check *check, struct lmq_error *err)
{
    const struct lmq_digests *stored = check->container.digests;

    check->has_digesting =
        check->can_digest && (stored != NULL || check->wanted != NULL);
    if (!check->has_digesting)
        return LMQ_OK;
    if (lmq_mem_grow(&check->own, &check->own_capacity, check->n_own + 1,
                     sizeof(*check->own)) != 0)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_digests_make(
        check->container.records, check->container.n_records,
        stored == NULL ? LMQ_CHUNK_LOG2 : stored->chunk_log2,
        &check->own[check->n_own++], err);
    return status == LMQ_OK
               ? lmq_digesting_open(&check->digesting,
                                    lmq_input_size(check->input),
                                    check->threads, err)
               : status;
}

/* What the file says, until it is computed. */
json_t *
lmq_check_describe_digests(const struct lmq_check *check)
{
    const struct lmq_digests *stored = check->container.digests;
    json_t *json = json_object();
    char text[LMQ_DIGEST_TEXT];

    if (!check->has_digesting && stored == NULL) {
        json_decref(json);
        return json_null();
    }
    if (stored != NULL)
        lmq_digest_print(stored->root, text);
    lmq_put(&json, "root", stored == NULL ? json_null() : json_string(text));
    if (stored != NULL)
        lmq_digest_print(stored->content, text);
    lmq_put(&json, "content",
            stored == NULL ? json_null() : json_string(text));
    lmq_put(&json, "checked",
            json_boolean(check->has_digesting &&
                         json_array_size(check->problems) == 0));
    lmq_put(&json, "content_checked", json_false());
    return json;
}

enum lmq_status
lmq_check_chunks(struct lmq_check *check, struct lmq_digests *own, size_t index,
                 struct lmq_error *err)
{
    const struct lmq_record *record = &check->container.records[index];
    const struct lmq_digests *stored = check->container.digests;
    unsigned char *chunks = own->chunks + own->first[index] * LMQ_SHA256_SIZE;
    const struct lmq_digest_part part = {check->input, record, chunks};

    if (record->encoding == LMQ_ENCODING_ALIAS)
        return LMQ_OK;
    if (record->encoding == LMQ_ENCODING_UNKNOWN) {
        check->lacks_content = true;
        return LMQ_OK;
    }
    enum lmq_status status = lmq_digesting_tensor(
        &check->digesting, &part, 1, own->chunk_log2,
        own->tensors + index * LMQ_SHA256_SIZE, err);
    if (status != LMQ_OK)
        return status;
    uint64_t offset = record->extents[LMQ_VALUES].offset;
    uint64_t end = index + 1 < check->container.n_records
                       ? own->first[index + 1]
                       : own->n;
    if (stored != NULL &&
        memcmp(stored->chunks + own->first[index] * LMQ_SHA256_SIZE, chunks,
               (size_t)(end - own->first[index]) * LMQ_SHA256_SIZE) != 0)
        lmq_check_add(check, "digests", record->name, offset,
                      "the SHA-256 of the tensor does not match");
    return LMQ_OK;
}

enum lmq_status
lmq_check_root(struct lmq_check *check, struct lmq_error *err)
{
    const struct lmq_digests *stored = check->container.digests;
    unsigned char root[LMQ_SHA256_SIZE];

    if (stored == NULL || json_array_size(check->problems) > 0)
        return LMQ_OK;
    enum lmq_status status =
        lmq_verify_root(check->input, &check->container, root, err);
    if (status != LMQ_OK)
        return status;
    if (memcmp(root, stored->root, LMQ_SHA256_SIZE) != 0)
        lmq_check_add(check, "digests", "", 0, "the root does not match");
    else if (check->wanted != NULL &&
             memcmp(root, check->wanted, LMQ_SHA256_SIZE) == 0)
        check->matches = "root";
    return LMQ_OK;
}

/* The one that was named came first, then the others in their order. */
static const struct lmq_digests **
sort_own(const struct lmq_check *check, size_t named)
{
    const struct lmq_digests **members = calloc(check->n_own, sizeof(*members));

    for (size_t i = 0; members != NULL && i < check->n_own; i++)
        members[i == 0 ? named : i <= named ? i - 1 : i] = &check->own[i];
    return members;
}

/* What every file says of it. */
static void
compare_content(struct lmq_check *check,
                const struct lmq_checkpoint *checkpoint,
                const unsigned char content[LMQ_SHA256_SIZE])
{
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    char text[LMQ_DIGEST_TEXT];

    for (size_t i = 0; i < set->n_members; i++) {
        const struct lmq_digests *stored = set->members[i].digests;
        check->file = lmq_path_base(lmq_input_path(checkpoint->files[i]));
        if (stored != NULL &&
            memcmp(content, stored->content, LMQ_SHA256_SIZE) != 0)
            lmq_check_add(check, "digests", "", 0,
                          "the digest of the content does not match");
    }
    if (check->wanted != NULL &&
        memcmp(content, check->wanted, LMQ_SHA256_SIZE) == 0)
        check->matches = "content";
    lmq_digest_print(content, text);
    lmq_put(&check->digests, "content", json_string(text));
    lmq_put(&check->digests, "content_checked",
            json_boolean(json_array_size(check->problems) == 0));
}

/* Of all of it, which is open and without problems. */
enum lmq_status
lmq_check_content(struct lmq_check *check,
                  const struct lmq_checkpoint *checkpoint, size_t named,
                  struct lmq_error *err)
{
    unsigned char content[LMQ_SHA256_SIZE];
    struct lmq_error found = {0};

    if (check->lacks_content || check->n_own != checkpoint->n_files)
        return LMQ_OK;
    const struct lmq_digests **members = sort_own(check, named);
    if (members == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_verify_content(
        checkpoint, members, check->threads, content, &found);
    free(members);
    if (status == LMQ_OK) {
        compare_content(check, checkpoint, content);
        status = check->digests == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    } else if (status == LMQ_ERR_FORMAT) { /* of the embedded files */
        lmq_check_add(check, "contents", "", found.offset, found.message);
        status = LMQ_OK;
    } else {
        lmq_fail_as(err, &found);
    }
    return status;
}

enum lmq_status
lmq_check_fail_mismatch(const struct lmq_check *check, struct lmq_error *err)
{
    const json_t *root = json_object_get(check->digests, "root");
    const json_t *content = json_object_get(check->digests, "content");

    if (!json_is_true(json_object_get(check->digests, "content_checked"))) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "its content has no digest here: it has tensors of kinds "
                 "that this version does not know, or is one of a set");
        lmq_hint(err, ".against can only be its root, if it has one");
        return LMQ_ERR_UNSUPPORTED;
    }
    return json_is_null(root)
               ? lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "is not what was asked for: its content is %s, and "
                          "it has no root",
                          json_string_value(content))
               : lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "is not what was asked for: its root is %s, its "
                          "content %s",
                          json_string_value(root),
                          json_string_value(content));
}
