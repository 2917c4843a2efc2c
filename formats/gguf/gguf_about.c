/*
 * gguf_about.c - texts for people, in both directions.
 *
 * A base model has several keys in GGUF, with a number in each: it becomes one
 * text, its address or "organization/name".
 */
#include "config.h"

#include "formats/gguf/gguf_about.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define COUNT_KEY "general.base_model.count"
#define BASES_MAX 64

/* ---- Reading ---- */

static enum lmq_status
read_value(const struct lmq_gguf_value *value,
           const struct lmq_about_key *key, json_t **about,
           struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    const unsigned char *text;
    size_t n;

    if (value == NULL)
        return LMQ_OK;
    if (value->type == LMQ_GGUF_STRING)
        return lmq_about_add(about, key, value->data, value->size, err);
    if (value->type != LMQ_GGUF_ARRAY || value->item_type != LMQ_GGUF_STRING ||
        !key->is_list)
        return LMQ_OK;
    struct lmq_gguf_strings strings = lmq_gguf_strings(value);
    for (int i = 0; i < LMQ_ABOUT_LIST && status == LMQ_OK &&
                    lmq_gguf_next_string(&strings, &text, &n);
         i++)
        status = lmq_about_add(about, key, text, n, err);
    return status;
}

static const struct lmq_gguf_value *
base_part(const struct lmq_gguf_meta *meta, uint64_t i, const char *part)
{
    char key[64];

    snprintf(key, sizeof(key), "general.base_model.%" PRIu64 ".%s", i, part);
    const struct lmq_gguf_value *value = lmq_gguf_find(meta, key);
    return value != NULL && value->type == LMQ_GGUF_STRING &&
                   value->size <= 512
               ? value
               : NULL;
}

static enum lmq_status
read_base(const struct lmq_gguf_meta *meta, uint64_t i, json_t **about,
          struct lmq_error *err)
{
    const struct lmq_about_key *key = lmq_about_find("base_model");
    const struct lmq_gguf_value *name = base_part(meta, i, "name");
    const struct lmq_gguf_value *owner = base_part(meta, i, "organization");
    const struct lmq_gguf_value *address = base_part(meta, i, "repo_url");
    char text[1100];
    size_t n = 0;

    if (address != NULL || name == NULL || owner == NULL)
        return read_value(address != NULL ? address : name, key, about, err);
    memcpy(text, owner->data, owner->size);
    n = owner->size;
    text[n++] = '/';
    memcpy(text + n, name->data, name->size);
    return lmq_about_add(about, key, text, n + name->size, err);
}

enum lmq_status
lmq_gguf_read_about(const struct lmq_gguf_meta *meta, json_t **about,
                    struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    uint64_t n_bases = 0;

    for (const struct lmq_about_key *key = lmq_about_keys;
         key->name != NULL && status == LMQ_OK; key++)
        if (key->gguf != NULL)
            status = read_value(lmq_gguf_find(meta, key->gguf), key, about,
                                err);
    if (lmq_gguf_get_uint(meta, COUNT_KEY, BASES_MAX, &n_bases, NULL) !=
        LMQ_OK)
        n_bases = 0;
    for (uint64_t i = 0; i < n_bases && status == LMQ_OK; i++)
        status = read_base(meta, i, about, err);
    return status;
}

/* ---- Writing ---- */

static void
put_part(struct lmq_gguf_builder *builder, size_t i, const char *part,
         const char *text, size_t n)
{
    char key[64];

    snprintf(key, sizeof(key), "general.base_model.%zu.%s", i, part);
    lmq_gguf_put_text(builder, key, text, n);
}

static void
write_base(struct lmq_gguf_builder *builder, size_t i, const char *text)
{
    const char *slash = strrchr(text, '/');
    const char *name = slash == NULL ? text : slash + 1;

    put_part(builder, i, "name", name, strlen(name));
    if (strstr(text, "://") != NULL)
        put_part(builder, i, "repo_url", text, strlen(text));
    else if (slash != NULL)
        put_part(builder, i, "organization", text, (size_t)(slash - text));
}

static void
write_list(struct lmq_gguf_builder *builder, const char *key,
           const json_t *list)
{
    size_t n = json_array_size(list);

    if (n == 0)
        return;
    lmq_gguf_put_array(builder, key, LMQ_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        lmq_gguf_add_text(builder, text, strlen(text));
    }
}

void
lmq_gguf_write_about(struct lmq_gguf_builder *builder, const json_t *about)
{
    const json_t *bases = json_object_get(about, "base_model");

    for (const struct lmq_about_key *key = lmq_about_keys; key->name != NULL;
         key++) {
        const json_t *value = json_object_get(about, key->name);
        if (key->gguf == NULL || value == NULL ||
            strcmp(key->name, "name") == 0)
            continue;
        if (key->is_list)
            write_list(builder, key->gguf, value);
        else
            lmq_gguf_put_text(builder, key->gguf, json_string_value(value),
                              strlen(json_string_value(value)));
    }
    if (json_array_size(bases) > 0)
        lmq_gguf_put_u32(builder, COUNT_KEY,
                         (uint32_t)json_array_size(bases));
    for (size_t i = 0; i < json_array_size(bases); i++)
        write_base(builder, i, json_string_value(json_array_get(bases, i)));
}
