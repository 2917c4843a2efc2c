/*
 * chat.c - opens a chat format for a checkpoint and its tokenizer.
 */
#include "config.h"

#include "runtime/chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint/checkpoint.h"
#include "runtime/chat/chat_template.h"

/* ---- Choosing ---- */

static enum lmq_status
choose(struct lmq_chat *chat, const char *name, const char *text, size_t n,
       struct lmq_error *err)
{
    const struct lmq_chat_format *found = lmq_chat_format_recognise(text, n);

    chat->format = name == NULL ? found : lmq_chat_format_named(name);
    if (chat->format != NULL) {
        /* Whether this model wants the begin token, its own template says. */
        chat->has_begin = chat->format != found ||
                          lmq_chat_has(text, n, "bos_token");
        return LMQ_OK;
    }
    if (name != NULL)
        lmq_fail(err, LMQ_ERR_ARG, 0, "the chat format '%s' is not known",
                 name);
    else if (n == 0)
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "has no chat template: it may not be made for conversations");
    else
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "the chat template is of no family that is known here");
    lmq_hint(err, ".chat_format NAME names one, as chatml, llama3 or gemma; "
                  ".chat_format=list shows them all");
    return err == NULL ? (name != NULL ? LMQ_ERR_ARG : LMQ_ERR_UNSUPPORTED)
                       : err->status;
}

/* One that is only named may have a template without them. */
static enum lmq_status
keep_pages(struct lmq_chat *chat, const char *text, size_t n,
           struct lmq_error *err)
{
    for (size_t i = 0; i < LMQ_CHAT_PAGES; i++) {
        const struct lmq_chat_page *page = &chat->format->pages[i];
        const char *words;
        size_t n_words;
        if (page->from != NULL &&
            lmq_chat_format_page(page, text, n, &words, &n_words) &&
            lmq_buffer_append(&chat->pages[i], words, n_words) != 0)
            return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}

/* ---- Tokens of the frames ---- */

static enum lmq_status
guard(struct lmq_chat *chat, const char *text, struct lmq_error *err)
{
    return text == NULL ? LMQ_OK
                        : lmq_tokenizer_find_added(chat->tokenizer, text,
                                                   strlen(text),
                                                   &chat->guarded, err);
}

static enum lmq_status
guard_all(struct lmq_chat *chat, struct lmq_error *err)
{
    const struct lmq_chat_format *f = chat->format;
    const char *const texts[] = {
        f->begin, f->system.before, f->system.after, f->user.before,
        f->user.after, f->answer.before, f->answer.after, f->prompt,
        f->silent, f->ends[0], f->ends[1]};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (status == LMQ_OK)
            status = guard(chat, texts[i], err);
    return status;
}

/* The tokens that end an answer; where the tokenizer has none of that name,
 * the text does. */
static void
find_ends(struct lmq_chat *chat)
{
    for (size_t i = 0; i < 2 && chat->format->ends[i] != NULL; i++) {
        const char *name = chat->format->ends[i];
        int32_t id = lmq_pipeline_find(chat->tokenizer,
                                       lmq_chars(name, strlen(name)));
        if (id >= 0)
            lmq_marks_add(&chat->ends, id);
        else if (chat->stop == NULL)
            chat->stop = name;
    }
}

enum lmq_status
lmq_chat_open(const struct lmq_checkpoint *checkpoint,
              const struct lmq_tokenizer *tokenizer, const char *format,
              struct lmq_chat **out, struct lmq_error *err)
{
    struct lmq_buffer text = {0};
    struct lmq_chat *chat = calloc(1, sizeof(*chat));

    *out = NULL;
    if (chat == NULL)
        return lmq_fail_nomem(err);
    chat->tokenizer = tokenizer;
    enum lmq_status status = lmq_chat_template_find(
        checkpoint->blobs, checkpoint->n_blobs, &text, err);
    const char *bytes = text.n == 0 ? "" : (const char *)text.bytes;
    if (status == LMQ_OK)
        status = choose(chat, format, bytes, text.n, err);
    if (status == LMQ_OK &&
        !lmq_chat_format_standard(chat->format, bytes, text.n,
                                  &chat->standard))
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = keep_pages(chat, bytes, text.n, err);
    lmq_buffer_free(&text);
    if (status == LMQ_OK)
        status = guard_all(chat, err);
    if (status != LMQ_OK) {
        lmq_error_around(err, lmq_checkpoint_tokenizer_path(checkpoint));
        lmq_chat_close(chat);
        return status;
    }
    find_ends(chat);
    *out = chat;
    return LMQ_OK;
}

void
lmq_chat_close(struct lmq_chat *chat)
{
    if (chat == NULL)
        return;
    lmq_buffer_free(&chat->standard);
    for (size_t i = 0; i < LMQ_CHAT_PAGES; i++)
        lmq_buffer_free(&chat->pages[i]);
    lmq_ids_clear(&chat->guarded);
    free(chat);
}

/* ---- Asking ---- */

const char *
lmq_chat_name(const struct lmq_chat *chat)
{
    return chat->format->name;
}

int
lmq_chat_ends(const struct lmq_chat *chat, int32_t id)
{
    return lmq_marks_have(&chat->ends, id) ||
           lmq_tokenizer_ends(chat->tokenizer, id);
}

const char *
lmq_chat_stop(const struct lmq_chat *chat)
{
    return chat->stop;
}

unsigned
lmq_chat_text_flags(const struct lmq_chat *chat)
{
    return chat->format->shows_marks ? LMQ_TEXT_SPECIAL : 0;
}

const char *
lmq_chat_format_at(size_t index, const char **models)
{
    if (index >= lmq_n_chat_formats)
        return NULL;
    if (models != NULL)
        *models = lmq_chat_formats[index].models;
    return lmq_chat_formats[index].name;
}
