/*
 * render_chat.c - a conversation in a chat format, as JSON: for comparisons
 * with other implementations by hand.
 *
 *     render_chat FORMAT FILE... <messages.json
 *
 * The files are those of a tokenizer (tokenizer.json or a GGUF, with it
 * tokenizer_config.json, chat_template.jinja); "-" is the format that the
 * template is recognised as. Messages are as transformers takes them.
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "formats/checkpoint/checkpoint.h"
#include "runtime/tokenizer/tokenizer.h"

#define MOST_FILES 8
#define MOST_MESSAGES 256
#define MOST_BYTES ((size_t)1 << 30)

static int
fail(const struct lmq_error *err)
{
    fprintf(stderr, "render_chat: %s: %s\n", err->path, err->message);
    return err->status == LMQ_ERR_UNSUPPORTED ? 3 : 1;
}

static size_t
read_messages(const json_t *json, struct lmq_chat_message *messages)
{
    size_t n = json_array_size(json);

    for (size_t i = 0; i < n && i < MOST_MESSAGES; i++) {
        const json_t *content =
            json_object_get(json_array_get(json, i), "content");
        messages[i] = (struct lmq_chat_message){
            .role = json_string_value(
                json_object_get(json_array_get(json, i), "role")),
            .text = json_string_value(content),
            .n = json_string_length(content),
        };
    }
    return n < MOST_MESSAGES ? n : MOST_MESSAGES;
}

static int
print_result(const struct lmq_chat *chat, const char *text, size_t n_text,
             const int32_t *ids, size_t n_ids)
{
    json_t *json = json_object(), *list = json_array();

    for (size_t i = 0; i < n_ids; i++)
        json_array_append_new(list, json_integer(ids[i]));
    json_object_set_new(json, "format", json_string(lmq_chat_name(chat)));
    json_object_set_new(json, "text", json_stringn(text, n_text));
    json_object_set_new(json, "tokens", list);
    int code = json_dumpf(json, stdout, 0) == 0 ? 0 : 1;
    json_decref(json);
    return code;
}

static int
render(const char *format, const struct lmq_checkpoint *checkpoint,
       const struct lmq_chat_message *messages, size_t n)
{
    struct lmq_tokenizer *tokenizer = NULL;
    struct lmq_chat *chat = NULL;
    struct lmq_error err = {0};
    char *text = NULL;
    int32_t *ids = NULL;
    size_t n_text, n_ids;
    enum lmq_status status = lmq_tokenizer_open(
        checkpoint->blobs, checkpoint->n_blobs, &tokenizer, &err);

    if (status == LMQ_OK)
        status = lmq_chat_open(checkpoint, tokenizer,
                               strcmp(format, "-") == 0 ? NULL : format,
                               &chat, &err);
    if (status == LMQ_OK)
        status = lmq_chat_text(chat, messages, n, &text, &n_text, &err);
    if (status == LMQ_OK)
        status = lmq_chat_tokens(chat, messages, n, &ids, &n_ids, &err);
    int code = status == LMQ_OK ? print_result(chat, text, n_text, ids, n_ids)
                                : fail(&err);
    lmq_tokens_free(ids);
    lmq_text_free(text);
    lmq_chat_close(chat);
    lmq_tokenizer_close(tokenizer);
    return code;
}

int
main(int argc, char **argv)
{
    struct lmq_blob blobs[MOST_FILES];
    struct lmq_chat_message messages[MOST_MESSAGES];
    struct lmq_checkpoint checkpoint = {.path = argv[1], .blobs = blobs};
    struct lmq_error err = {0};

    if (argc < 3 || argc - 2 > MOST_FILES) {
        fprintf(stderr, "usage: %s FORMAT|- FILE... <messages.json\n",
                argv[0]);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        struct lmq_blob *blob = &blobs[checkpoint.n_blobs++];
        unsigned char *bytes;
        if (lmq_file_load(argv[i], MOST_BYTES, &bytes, &blob->size, &err) !=
            LMQ_OK)
            return fail(&err);
        blob->name = argv[i];
        blob->bytes = bytes;
    }
    json_t *json = json_loadf(stdin, JSON_ALLOW_NUL, NULL);
    size_t n = read_messages(json, messages);
    int code = render(argv[1], &checkpoint, messages, n);
    json_decref(json);
    for (size_t i = 0; i < checkpoint.n_blobs; i++)
        free((void *)blobs[i].bytes);
    return code;
}
