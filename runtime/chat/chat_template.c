/*
 * chat_template.c - the chat template among the files of a tokenizer.
 */
#include "config.h"

#include "runtime/chat/chat_template.h"

#include <string.h>

#include "base/error.h"
#include "formats/gguf/gguf_meta.h"
#include "runtime/tokenizer/read/tok_json.h"

static enum lmq_status
append(const char *text, size_t n, struct lmq_buffer *buffer,
       struct lmq_error *err)
{
    if (n > LMQ_CHAT_TEMPLATE_MOST)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the chat template has %zu bytes, expected at most "
                        "%zu",
                        n, LMQ_CHAT_TEMPLATE_MOST);
    for (size_t i = 0; i < n; i++) { /* Jinja ends every line with \n */
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n')
            i++;
        if (lmq_buffer_append(buffer, text[i] == '\r' ? "\n" : &text[i], 1) !=
            0)
            return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}

/* One template, or that which is called "default" among several. */
static const json_t *
default_template(const json_t *config)
{
    const json_t *found = json_object_get(config, "chat_template");

    if (!json_is_array(found))
        return found;
    for (size_t i = 0; i < json_array_size(found); i++) {
        const json_t *item = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name != NULL && strcmp(name, "default") == 0)
            return json_object_get(item, "template");
    }
    return NULL;
}

static enum lmq_status
read_config(const struct lmq_blob *blob, struct lmq_buffer *text,
            struct lmq_error *err)
{
    json_t *config;
    enum lmq_status status = lmq_json_load(blob, &config, err);

    if (status != LMQ_OK)
        return status;
    const json_t *found = default_template(config);
    if (json_is_string(found))
        status = append(json_string_value(found), json_string_length(found),
                        text, err);
    else if (found != NULL && !json_is_null(found))
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "'chat_template' is not a text");
    json_decref(config);
    return status;
}

static enum lmq_status
read_gguf(const struct lmq_blob *blob, struct lmq_buffer *text,
          struct lmq_error *err)
{
    struct lmq_gguf_meta *meta;
    const unsigned char *bytes = NULL;
    size_t n = 0;
    enum lmq_status status =
        lmq_gguf_meta_open(blob->bytes, blob->size, &meta, NULL, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_gguf_get_text(meta, "tokenizer.chat_template", &bytes, &n,
                               err);
    if (status == LMQ_OK && bytes != NULL)
        status = append((const char *)bytes, n, text, err);
    lmq_gguf_meta_close(meta);
    return status;
}

enum lmq_status
lmq_chat_template_find(const struct lmq_blob *blobs, size_t n_blobs,
                       struct lmq_buffer *text, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    const struct lmq_blob *blob = NULL;
    size_t before = text->n;

    for (size_t i = 0; i < n_blobs && text->n == before; i++)
        if (lmq_blob_is(&blobs[i], "chat_template.jinja")) {
            blob = &blobs[i];
            status = append((const char *)blob->bytes, blob->size, text, err);
        }
    for (size_t i = 0; i < n_blobs && text->n == before && status == LMQ_OK;
         i++) {
        blob = &blobs[i];
        if (lmq_blob_is(blob, "tokenizer_config.json") ||
            lmq_blob_is(blob, "chat_template.json")) /* in that order */
            status = read_config(blob, text, err);
        else if (lmq_gguf_is(blob->bytes, blob->size))
            status = read_gguf(blob, text, err);
    }
    if (status != LMQ_OK)
        lmq_error_in(err, blob->name);
    return status;
}
