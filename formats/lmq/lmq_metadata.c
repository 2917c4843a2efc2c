/*
 * lmq_metadata.c - the metadata of a container: I-JSON (RFC 7493), and of the
 * types that lmq(5) says.
 *
 * What the description of the model means is hparams_json.c's business.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "formats/hf/hf_config.h"
#include "formats/lmq/lmq.h"

/* Beyond it doubles, which JSON's numbers are to many, skip integers. */
#define MAX_INTEGER ((json_int_t)1 << 53)

/* What follows the outer brackets; *what is wrong, or NULL. Recursive, but
 * only as deep as is allowed. */
static void
check_value(json_t *value, int depth, const char **what)
{
    const char *key;
    json_t *part;
    size_t i;

    if (depth > LMQ_MAX_METADATA_DEPTH &&
        (json_is_object(value) || json_is_array(value)))
        *what = "are nested too deeply";
    else if (json_is_integer(value) &&
             (json_integer_value(value) > MAX_INTEGER ||
              json_integer_value(value) < -MAX_INTEGER))
        *what = "hold an integer beyond 2^53";
    if (*what != NULL)
        return;
    json_array_foreach(value, i, part)
        check_value(part, depth + 1, what);
    json_object_foreach(value, key, part)
        check_value(part, depth + 1, what);
}

/* Keys that mean something, and what they are. */
static const struct {
    const char *object; /* within the metadata; NULL: they themselves */
    const char *key;
    json_type type; /* JSON_TRUE: a boolean */
} known[] = {
    {NULL, "about", JSON_OBJECT},
    {NULL, "architecture", JSON_STRING},
    {NULL, "model", JSON_OBJECT},
    {NULL, "provenance", JSON_OBJECT},
    {NULL, "quantization", JSON_OBJECT},
    {NULL, "recipe", JSON_OBJECT},
    {NULL, "recommended", JSON_OBJECT},
    {NULL, "set", JSON_OBJECT},
    {NULL, "tie_rule", JSON_STRING},
    {NULL, "unsupported", JSON_STRING},
    {"provenance", "format", JSON_STRING},
    {"provenance", "sources", JSON_ARRAY},
    {"provenance", "stored_names", JSON_ARRAY},
    {"provenance", "tool", JSON_STRING},
    {"quantization", "calibration", JSON_OBJECT},
    {"quantization", "group_size", JSON_INTEGER},
    {"quantization", "layout", JSON_STRING},
    {"quantization", "method", JSON_STRING},
    {"quantization", "on_nonfinite", JSON_STRING},
    {"quantization", "rotate", JSON_TRUE},
    {"quantization", "scales", JSON_STRING},
    {"recipe", "default", JSON_OBJECT},
    {"recipe", "rules", JSON_ARRAY},
    {"recipe", "version", JSON_INTEGER},
    {"recommended", "activations", JSON_STRING},
    {"set", "id", JSON_STRING},
    {"set", "member", JSON_INTEGER},
    {"set", "members", JSON_INTEGER},
    {"set", "tensors", JSON_INTEGER},
};

static enum lmq_status
fail_type(const char *key, struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                    "'%s' of the metadata has another type than it should",
                    key);
}

/* What stands in the lists: of where the tensors come from, and of rules. */
static enum lmq_status
check_lists(const json_t *metadata, struct lmq_error *err)
{
    static const struct {
        const char *key;
        json_type type;
    } parts[] = {
        {"name", JSON_STRING}, {"size", JSON_INTEGER}, {"crc32", JSON_STRING}};
    const json_t *provenance = json_object_get(metadata, "provenance");
    const json_t *source, *name, *rule;
    size_t i;

    json_array_foreach(json_object_get(provenance, "sources"), i, source)
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            const json_t *part = json_object_get(source, parts[j].key);
            if (!json_is_object(source) ||
                (part != NULL && json_typeof(part) != parts[j].type))
                return fail_type("sources", err);
        }
    json_array_foreach(json_object_get(provenance, "stored_names"), i, name)
        if (!json_is_string(name))
            return fail_type("stored_names", err);
    json_array_foreach(json_object_get(json_object_get(metadata, "recipe"),
                                       "rules"), i, rule)
        if (!json_is_object(rule))
            return fail_type("rules", err);
    return LMQ_OK;
}

/* Once, when the file is opened: whoever asks for a key later gets its type or
 * nothing. */
static enum lmq_status
check_types(const json_t *metadata, struct lmq_error *err)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const json_t *object =
            known[i].object == NULL
                ? metadata
                : json_object_get(metadata, known[i].object);
        const json_t *value = json_object_get(object, known[i].key);
        if (value != NULL && json_typeof(value) != known[i].type &&
            !(known[i].type == JSON_TRUE && json_is_false(value)))
            return fail_type(known[i].key, err);
    }
    return check_lists(metadata, err);
}

/* UTF-8 and duplicate keys are looked after by the parser; the rest of I-JSON
 * here. */
enum lmq_status
lmq_metadata_load(const unsigned char *bytes, size_t size, json_t **metadata,
                  struct lmq_error *err)
{
    const char *what = NULL;

    if (size > LMQ_MAX_METADATA)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the metadata are %zu bytes, at most %zu are allowed",
                        size, LMQ_MAX_METADATA);
    enum lmq_status status = lmq_json_parse(bytes, size, metadata, err);
    if (status != LMQ_OK)
        return status;
    if (json_is_object(*metadata))
        check_value(*metadata, 1, &what);
    else
        what = "are no JSON object";
    if (what != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the metadata %s", what);
    return check_types(*metadata, err);
}

/* ---- Of a set ---- */

/* As hexadecimal digits. */
static void
write_id(const unsigned char id[LMQ_SET_ID], char text[2 * LMQ_SET_ID + 1])
{
    for (size_t i = 0; i < LMQ_SET_ID; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
}

json_t *
lmq_metadata_make_set(const struct lmq_layout_plan *layout, size_t n_tensors)
{
    char id[2 * LMQ_SET_ID + 1];
    json_t *set = json_object();

    write_id(layout->set_id, id);
    lmq_put(&set, "id", json_string(id));
    lmq_put(&set, "member", json_integer(layout->member));
    lmq_put(&set, "members", json_integer(layout->n_members));
    lmq_put(&set, "tensors", lmq_json_size(n_tensors));
    return set;
}

/* The superblock says it for programs, the metadata for people and for the
 * digests: both must say the same. */
enum lmq_status
lmq_metadata_check_set(const json_t *metadata,
                       const struct lmq_superblock *superblock,
                       struct lmq_error *err)
{
    const json_t *set = json_object_get(metadata, "set");
    const char *id = json_string_value(json_object_get(set, "id"));
    char own[2 * LMQ_SET_ID + 1];

    if (superblock->n_members == 0)
        return set == NULL
                   ? LMQ_OK
                   : lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "the metadata are those of a member of a set, "
                              "but the file is of none");
    write_id(superblock->set_id, own);
    if (id == NULL || strcmp(id, own) != 0 ||
        json_integer_value(json_object_get(set, "member")) !=
            superblock->member ||
        json_integer_value(json_object_get(set, "members")) !=
            superblock->n_members ||
        json_object_get(set, "tensors") == NULL ||
        json_integer_value(json_object_get(set, "tensors")) < 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'set' of the metadata is not what the superblock "
                        "says: member %u of %u of set %s",
                        superblock->member, superblock->n_members, own);
    return LMQ_OK;
}
