/*
 * tok_json.c - the JSON of Hugging Face's tokenizer files.
 */
#include "config.h"

#include "runtime/tokenizer/read/tok_json.h"

#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/report.h"

enum lmq_status
lmq_json_load(const struct lmq_blob *blob, json_t **out,
              struct lmq_error *err)
{
    json_error_t problem;

    *out = NULL;
    if (blob->size > LMQ_JSON_MAX_SIZE)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "JSON of %zu bytes, the limit is %zu", blob->size,
                        LMQ_JSON_MAX_SIZE);
    size_t flags = LMQ_JSON_STRICT;
    enum lmq_status status = lmq_json_read(blob->bytes, blob->size, flags, out,
                                           &problem, err);
    /* transformers writes 10^30 (as a double, digit by digit) for a length
     * without a limit; a file with such a number has no ids to lose. */
    if (status == LMQ_ERR_FORMAT &&
        json_error_code(&problem) == json_error_numeric_overflow)
        status = lmq_json_read(blob->bytes, blob->size,
                               flags | JSON_DECODE_INT_AS_REAL, out, &problem,
                               err);
    if (status == LMQ_ERR_FORMAT)
        return lmq_fail(err, LMQ_ERR_FORMAT,
                        problem.position > 0 ? (uint64_t)problem.position : 0,
                        "JSON, line %d: %s", problem.line, problem.text);
    return status;
}

bool
lmq_blob_is(const struct lmq_blob *blob, const char *name)
{
    return strcmp(lmq_path_base(blob->name), name) == 0;
}

struct lmq_chars
lmq_json_chars(const json_t *value)
{
    if (!json_is_string(value))
        return lmq_chars("", 0);
    return lmq_chars(json_string_value(value), json_string_length(value));
}

enum lmq_status
lmq_json_bool(const json_t *object, const char *key, bool otherwise,
              bool *value, struct lmq_error *err)
{
    const json_t *member = json_object_get(object, key);

    *value = otherwise;
    if (member == NULL || json_is_null(member))
        return LMQ_OK;
    if (!json_is_boolean(member))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "'%s' is not a boolean", key);
    *value = json_is_true(member);
    return LMQ_OK;
}

const char *
lmq_json_type(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));

    return type == NULL ? "" : type;
}

enum lmq_status
lmq_json_refuse(const char *what, const char *name, struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "the %s '%.100s' is not supported", what, name);
}

enum lmq_status
lmq_json_added(const json_t *object, struct lmq_added_token *token,
               struct lmq_error *err)
{
    enum lmq_status status =
        lmq_json_bool(object, "special", false, &token->is_special, err);

    if (status == LMQ_OK)
        status = lmq_json_bool(object, "normalized", !token->is_special,
                               &token->is_normalized, err);
    if (status == LMQ_OK)
        status = lmq_json_bool(object, "lstrip", false, &token->strips_left,
                               err);
    if (status == LMQ_OK)
        status = lmq_json_bool(object, "rstrip", false, &token->strips_right,
                               err);
    if (status == LMQ_OK)
        status = lmq_json_bool(object, "single_word", false,
                               &token->is_single_word, err);
    return status;
}
