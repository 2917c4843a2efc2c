/*
 * about.c - texts for people, their names in each format, and their bounds.
 *
 * What authors say of a model: name, licence, where it comes from. It is
 * carried from format to format, never computed with; so it is bounded,
 * cleaned, and dropped where it makes no sense, and no error comes of it.
 */
#include "config.h"

#include "formats/checkpoint/about.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/text/utf8.h"

/* Ours, whether it is a list, GGUF's, and that of a model card (the head of
 * README.md). GGUF keeps base models in keys with numbers, which gguf_about.c
 * reads. */
const struct lmq_about_key lmq_about_keys[] = {
    {"name", false, "general.name", "model_name"},
    {"author", false, "general.author", "author"},
    {"organization", false, "general.organization", "organization"},
    {"version", false, "general.version", "version"},
    {"basename", false, "general.basename", NULL},
    {"finetune", false, "general.finetune", NULL},
    {"size_label", false, "general.size_label", NULL},
    {"quantized_by", false, "general.quantized_by", "quantized_by"},
    {"description", false, "general.description", "model_description"},
    {"license", false, "general.license", "license"},
    {"license_name", false, "general.license.name", "license_name"},
    {"license_link", false, "general.license.link", "license_link"},
    {"url", false, "general.url", "url"},
    {"repo_url", false, "general.repo_url", NULL},
    {"doi", false, "general.doi", "doi"},
    {"base_model", true, NULL, "base_model"},
    {"tags", true, "general.tags", "tags"},
    {"languages", true, "general.languages", "language"},
    {"datasets", true, "general.datasets", "datasets"},
    {NULL, false, NULL, NULL},
};

const struct lmq_about_key *
lmq_about_find(const char *name)
{
    const struct lmq_about_key *key = lmq_about_keys;

    while (key->name != NULL && strcmp(key->name, name) != 0)
        key++;
    return key->name == NULL ? NULL : key;
}

/* ---- Adding ---- */

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* In place: one space for each run of white space, none at the ends. */
static void
fold_space(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (!is_space(*from))
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

/* *value is NULL if it is no text that is wanted. */
static enum lmq_status
make_text(const void *text, size_t n, json_t **value, struct lmq_error *err)
{
    *value = NULL;
    if (n == 0 || n > LMQ_ABOUT_TEXT || memchr(text, 0, n) != NULL ||
        !lmq_is_utf8(text, n))
        return LMQ_OK;
    char *copy = lmq_mem_text(text, n);
    if (copy == NULL)
        return lmq_fail_nomem(err);
    fold_space(copy);
    json_t *made = copy[0] == '\0' ? json_null() : lmq_json_text(copy);
    free(copy);
    if (made == NULL)
        return lmq_fail_nomem(err);
    if (json_is_string(made) && json_string_length(made) <= LMQ_ABOUT_TEXT)
        *value = made;
    else
        json_decref(made);
    return LMQ_OK;
}

static bool
has_item(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

/* Takes over `value`. */
static int
add_item(json_t *about, const char *name, json_t *value)
{
    json_t *list = json_object_get(about, name);

    if (list == NULL) {
        list = json_array();
        if (list == NULL || json_object_set_new(about, name, list) != 0) {
            json_decref(value);
            return -1;
        }
    }
    if (json_array_size(list) >= LMQ_ABOUT_LIST || has_item(list, value)) {
        json_decref(value);
        return 0;
    }
    return json_array_append_new(list, value);
}

/* The first one counts: readers ask the better source first. */
enum lmq_status
lmq_about_add(json_t **about, const struct lmq_about_key *key,
              const void *text, size_t n, struct lmq_error *err)
{
    json_t *value;
    enum lmq_status status = make_text(text, n, &value, err);

    if (status != LMQ_OK || value == NULL)
        return status;
    if (*about == NULL)
        *about = json_object();
    int failed = 0;
    if (*about != NULL && key->is_list)
        failed = add_item(*about, key->name, value);
    else if (*about != NULL && json_object_get(*about, key->name) == NULL)
        failed = json_object_set_new(*about, key->name, value);
    else
        json_decref(value);
    return failed || *about == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* Lists that a format keeps as one text. */
enum lmq_status
lmq_about_add_all(json_t **about, const struct lmq_about_key *key,
                  const char *text, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (!key->is_list)
        return lmq_about_add(about, key, text, strlen(text), err);
    while (status == LMQ_OK && *text != '\0') {
        size_t n = strcspn(text, ",");
        status = lmq_about_add(about, key, text, n, err);
        text += n + (text[n] == ',');
    }
    return status;
}

/* ---- Containers ---- */

static bool
is_text(const json_t *value)
{
    return json_is_string(value) &&
           json_string_length(value) <= LMQ_ABOUT_TEXT;
}

static bool
is_of_its_type(const struct lmq_about_key *key, const json_t *value)
{
    if (!key->is_list)
        return is_text(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!is_text(json_array_get(value, i)))
            return false;
    return json_is_array(value) && json_array_size(value) <= LMQ_ABOUT_LIST;
}

static enum lmq_status
take_text(json_t **about, const struct lmq_about_key *key,
          const json_t *value, struct lmq_error *err)
{
    return lmq_about_add(about, key, json_string_value(value),
                         json_string_length(value), err);
}

enum lmq_status
lmq_about_take(json_t **about, const json_t *stored, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (const struct lmq_about_key *key = lmq_about_keys;
         key->name != NULL && status == LMQ_OK; key++) {
        const json_t *value = json_object_get(stored, key->name);
        if (value == NULL)
            continue;
        if (!is_of_its_type(key, value))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "'about.%s' of the metadata is no %s of at most "
                            "%d bytes",
                            key->name, key->is_list ? "list of texts" : "text",
                            LMQ_ABOUT_TEXT);
        if (!key->is_list)
            status = take_text(about, key, value, err);
        for (size_t i = 0; i < json_array_size(value) && status == LMQ_OK; i++)
            status = take_text(about, key, json_array_get(value, i), err);
    }
    return status;
}
