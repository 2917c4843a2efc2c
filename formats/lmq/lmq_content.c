/*
 * lmq_content.c - the digest of what a container holds, and that of the file.
 *
 * What is hashed is written as numbers and texts with their lengths, so that
 * no two things look the same, and no text of JSON is compared: numbers are
 * doubles, whatever digits they were written with.
 *
 * The content is what two containers of the same model have in common,
 * wherever tensors stand, in how many files, in which layout. The root is of
 * one file, byte for byte: its frame, and through the digests all tensors.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/lmq/lmq_digests.h"

#define SIZE LMQ_SHA256_SIZE

/* Where an entry of the table and the superblock have checksums. */
#define ENTRY_CRC_AT 32
#define TABLE_CRC_AT 52
#define OWN_CRC_AT 124

void
lmq_digest_print(const unsigned char digest[SIZE], char text[LMQ_DIGEST_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    strcpy(text, "sha256:");
    text += strlen(text);
    for (size_t i = 0; i < SIZE; i++) {
        *text++ = digits[digest[i] >> 4];
        *text++ = digits[digest[i] & 15];
    }
    *text = '\0';
}

enum lmq_status
lmq_digest_bytes(const void *bytes, size_t n, unsigned char digest[SIZE],
                 struct lmq_error *err)
{
    struct lmq_sha256 *sha = lmq_sha256_new();

    if (sha == NULL)
        return lmq_fail_nomem(err);
    lmq_sha256_update(sha, bytes, n);
    enum lmq_status status = lmq_sha256_end(sha, digest, err);
    lmq_sha256_free(sha);
    return status;
}

/* ---- Numbers and texts ---- */

static void
add_u32(struct lmq_sha256 *sha, size_t value)
{
    unsigned char bytes[4];

    lmq_store_u32le(bytes, (uint32_t)value);
    lmq_sha256_update(sha, bytes, sizeof(bytes));
}

static void
add_u64(struct lmq_sha256 *sha, uint64_t value)
{
    unsigned char bytes[8];

    lmq_store_u64le(bytes, value);
    lmq_sha256_update(sha, bytes, sizeof(bytes));
}

/* With its length: "ab", "c" is not "a", "bc". */
static void
add_text(struct lmq_sha256 *sha, const char *text, size_t n)
{
    add_u32(sha, n);
    lmq_sha256_update(sha, text, n);
}

static void
add_number(struct lmq_sha256 *sha, const json_t *value)
{
    unsigned char bytes[9] = {'n'};

    lmq_store_f64le(bytes + 1, json_number_value(value));
    lmq_sha256_update(sha, bytes, sizeof(bytes));
}

/* ---- JSON ---- */

static int
compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum lmq_status add_value(struct lmq_sha256 *sha, const json_t *value,
                                 struct lmq_error *err);

/* Sorted by keys: the order of members means nothing in JSON. */
static enum lmq_status
add_object(struct lmq_sha256 *sha, const json_t *object,
           struct lmq_error *err)
{
    json_t *members = (json_t *)(uintptr_t)object;
    size_t n = json_object_size(object), count = 0;
    const char **keys = calloc(n + 1, sizeof(*keys));
    enum lmq_status status = LMQ_OK;

    if (keys == NULL)
        return lmq_fail_nomem(err);
    for (void *at = json_object_iter(members); at != NULL;
         at = json_object_iter_next(members, at))
        keys[count++] = json_object_iter_key(at);
    qsort(keys, count, sizeof(*keys), compare_keys);
    lmq_sha256_update(sha, "{", 1);
    add_u32(sha, count);
    for (size_t i = 0; i < count && status == LMQ_OK; i++) {
        add_text(sha, keys[i], strlen(keys[i]));
        status = add_value(sha, json_object_get(object, keys[i]), err);
    }
    free(keys);
    return status;
}

/* As deep as the metadata may be. */
static enum lmq_status
add_value(struct lmq_sha256 *sha, const json_t *value, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (json_is_object(value))
        return add_object(sha, value, err);
    if (json_is_array(value)) {
        lmq_sha256_update(sha, "[", 1);
        add_u32(sha, json_array_size(value));
        for (size_t i = 0; i < json_array_size(value) && status == LMQ_OK; i++)
            status = add_value(sha, json_array_get(value, i), err);
    } else if (json_is_string(value)) {
        lmq_sha256_update(sha, "s", 1);
        add_text(sha, json_string_value(value), json_string_length(value));
    } else if (json_is_number(value)) {
        add_number(sha, value);
    } else { /* true, false, null; nothing at all is null */
        lmq_sha256_update(sha, json_is_true(value)    ? "t"
                               : json_is_false(value) ? "f"
                                                      : "z",
                          1);
    }
    return status;
}

/* ---- What it holds ---- */

/* By names: neither their order in the file nor the files enter. */
static int
compare_tensors(const void *a, const void *b)
{
    return strcmp(((const struct lmq_tensor_digest *)a)->name,
                  ((const struct lmq_tensor_digest *)b)->name);
}

/* All that says what the bytes mean, except where and how they stand. */
static void
add_tensor(struct lmq_sha256 *sha, const struct lmq_tensor_digest *tensor)
{
    const struct lmq_record *record = tensor->record;
    bool is_q8 = record->encoding == LMQ_ENCODING_Q8;
    unsigned char kind[16] = {
        lmq_record_encoding(record),
        (unsigned char)record->dtype,
        is_q8 ? (unsigned char)record->quant.scales : 0,
        is_q8 ? (unsigned char)record->quant.bits : 0,
        0, /* zero points, then scales of scales */
        0,
        (unsigned char)record->n_dims,
        0,
    };

    lmq_store_u32le(kind + 8, is_q8 ? record->quant.group_size : 0);
    lmq_store_f32le(kind + 12, is_q8 ? record->quant.multiplier : 0);
    add_text(sha, tensor->name, strlen(tensor->name));
    lmq_sha256_update(sha, kind, sizeof(kind));
    for (size_t i = 0; i < record->n_dims; i++)
        add_u64(sha, record->dims[i]);
    lmq_sha256_update(sha, tensor->digest, SIZE);
}

static int
compare_files(const void *a, const void *b)
{
    return strcmp(((const struct lmq_file_digest *)a)->name,
                  ((const struct lmq_file_digest *)b)->name);
}

/* The label keeps digests of different things apart, and of later versions. */
enum lmq_status
lmq_content_digest(struct lmq_tensor_digest *tensors, size_t n_tensors,
                   const json_t *model, struct lmq_file_digest *files,
                   size_t n_files, unsigned char content[SIZE],
                   struct lmq_error *err)
{
    static const char label[] = "lmq content 1\n";
    struct lmq_sha256 *sha = lmq_sha256_new();

    if (sha == NULL)
        return lmq_fail_nomem(err);
    if (n_tensors > 0)
        qsort(tensors, n_tensors, sizeof(*tensors), compare_tensors);
    if (n_files > 0)
        qsort(files, n_files, sizeof(*files), compare_files);
    lmq_sha256_update(sha, label, strlen(label));
    add_u32(sha, n_tensors);
    for (size_t i = 0; i < n_tensors; i++)
        add_tensor(sha, &tensors[i]);
    enum lmq_status status = add_value(sha, model, err);
    add_u32(sha, n_files);
    for (size_t i = 0; i < n_files; i++) {
        add_text(sha, files[i].name, strlen(files[i].name));
        add_u64(sha, files[i].size);
        lmq_sha256_update(sha, files[i].digest, SIZE);
    }
    if (status == LMQ_OK)
        status = lmq_sha256_end(sha, content, err);
    lmq_sha256_free(sha);
    return status;
}

/* ---- The file ---- */

/* The checksum of the section that will hold the root cannot enter the root.
 */
static void
add_entry(struct lmq_sha256 *sha, const unsigned char *entry)
{
    unsigned char copy[LMQ_SECTION_SIZE];

    memcpy(copy, entry, sizeof(copy));
    if (lmq_load_u32le(entry) == LMQ_SECTION_DIGESTS)
        memset(copy + ENTRY_CRC_AT, 0, 4);
    lmq_sha256_update(sha, copy, sizeof(copy));
}

/* Fields that depend on the root are taken as zeros: it is computed before
 * they are known, and again in the same way when it is checked. */
enum lmq_status
lmq_root_digest(const unsigned char superblock[LMQ_SUPERBLOCK_SIZE],
                const unsigned char *table, size_t n_sections,
                const unsigned char *sections, const unsigned char *bytes,
                size_t size, unsigned char root[SIZE], struct lmq_error *err)
{
    static const char label[] = "lmq root 1\n";
    unsigned char head[LMQ_SUPERBLOCK_SIZE], digests[LMQ_DIGESTS_HEADER];
    struct lmq_sha256 *sha = lmq_sha256_new();

    if (sha == NULL)
        return lmq_fail_nomem(err);
    memcpy(head, superblock, sizeof(head));
    memset(head + TABLE_CRC_AT, 0, 4);
    memset(head + OWN_CRC_AT, 0, 4);
    memcpy(digests, bytes, sizeof(digests));
    memset(digests + LMQ_DIGESTS_ROOT, 0, SIZE);
    lmq_sha256_update(sha, label, strlen(label));
    lmq_sha256_update(sha, head, sizeof(head));
    for (size_t i = 0; i < n_sections; i++)
        add_entry(sha, table + i * LMQ_SECTION_SIZE);
    for (size_t i = 0; i < n_sections; i++)
        if (lmq_load_u32le(table + i * LMQ_SECTION_SIZE) !=
            LMQ_SECTION_DIGESTS)
            lmq_sha256_update(sha, sections + i * SIZE, SIZE);
    lmq_sha256_update(sha, digests, sizeof(digests));
    lmq_sha256_update(sha, bytes + sizeof(digests), size - sizeof(digests));
    enum lmq_status status = lmq_sha256_end(sha, root, err);
    lmq_sha256_free(sha);
    return status;
}
