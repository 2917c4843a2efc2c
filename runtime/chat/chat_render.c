/*
 * chat_render.c - a conversation as tokens, or as text.
 *
 * What stands between two tokens of the frames is tokenized in one piece, words
 * and frame together, as it would be if the whole were a text; but special
 * tokens count only in the frames: nobody can end a turn by writing its end.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "runtime/chat/chat.h"

struct render {
    const struct lmq_chat *chat;
    bool is_text; /* wanted is text, not ids */
    struct lmq_buffer text; /* if not, that since the last id */
    struct lmq_text_span *spans; /* of the frames within it */
    size_t n_spans, spans_capacity;
    struct lmq_ids ids;
    struct lmq_error *err;
};

/* ---- Pieces ---- */

static enum lmq_status
encode_text(struct render *r)
{
    const struct lmq_marking marking = {
        r->spans, r->n_spans, r->chat->guarded.ids, r->chat->guarded.n,
        r->ids.n > 0};
    enum lmq_status status = LMQ_OK;

    if (r->text.n > 0)
        status = lmq_tokenizer_encode_marked(
            r->chat->tokenizer, (const char *)r->text.bytes, r->text.n,
            &marking, &r->ids, r->err);
    r->text.n = 0;
    r->n_spans = 0;
    return status;
}

static enum lmq_status
add_bytes(struct render *r, const void *bytes, size_t n)
{
    return n == 0 || lmq_buffer_append(&r->text, bytes, n) == 0
               ? LMQ_OK
               : lmq_fail_nomem(r->err);
}

static enum lmq_status
add_id(struct render *r, int32_t id)
{
    if (id < 0)
        return LMQ_OK;
    if (r->is_text) {
        struct lmq_chars piece = lmq_tokenizer_piece(r->chat->tokenizer, id);
        return add_bytes(r, piece.p, piece.n);
    }
    enum lmq_status status = encode_text(r);
    if (status == LMQ_OK && lmq_ids_append(&r->ids, id) != 0)
        status = lmq_fail_nomem(r->err);
    return status;
}

/* What the template says: its marks are tokens. */
static enum lmq_status
add_marked(struct render *r, const char *text, size_t n)
{
    size_t start = r->text.n;

    if (n > 0 && lmq_mem_grow(&r->spans, &r->spans_capacity, r->n_spans + 1,
                              sizeof(*r->spans)) != 0)
        return lmq_fail_nomem(r->err);
    if (n > 0)
        r->spans[r->n_spans++] = (struct lmq_text_span){start, start + n};
    return add_bytes(r, text, n);
}

/* A text of the frames. */
static enum lmq_status
add_frame(struct render *r, const char *text)
{
    const struct lmq_tokenizer *t = r->chat->tokenizer;
    enum lmq_status status = LMQ_OK;
    size_t n_eos;

    while (text != NULL && *text != '\0' && status == LMQ_OK) {
        size_t n = strcspn(text, "\1\2\3\4\5");
        status = add_marked(r, text, n);
        text += n;
        if (status == LMQ_OK && *text == LMQ_CHAT_BOS) {
            if (r->chat->has_begin)
                status = add_id(r, lmq_tokenizer_bos(t));
            text++;
        } else if (status == LMQ_OK && *text == LMQ_CHAT_EOS) {
            const int32_t *eos = lmq_tokenizer_eos(t, &n_eos);
            status = n_eos > 0 ? add_id(r, eos[0]) : LMQ_OK;
            text++;
        } else if (status == LMQ_OK && *text != '\0') {
            const struct lmq_buffer *page =
                &r->chat->pages[*text - LMQ_CHAT_PAGE];
            status = add_marked(r, (const char *)page->bytes, page->n);
            text++;
        }
    }
    return status;
}

/* What templates take away around words, as Python does. */
static bool
is_white(uint32_t c)
{
    return lmq_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

/* Bytes of the white character that text begins with; 0 if it is none. */
static size_t
white_at(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t length = lmq_utf8_length(p, n);

    return length > 0 && is_white(lmq_utf8_decode(p, length)) ? length : 0;
}

/* Of that which it ends with. */
static size_t
white_before(const char *text, size_t n)
{
    for (size_t length = 1; length <= 3 && length <= n; length++)
        if (white_at(text + n - length, length) == length)
            return length;
    return 0;
}

static void
trim(const char **text, size_t *n)
{
    for (size_t k; (k = white_before(*text, *n)) > 0;)
        *n -= k;
    for (size_t k; (k = white_at(*text, *n)) > 0; *n -= k)
        *text += k;
}

/* What somebody said. */
static enum lmq_status
add_words(struct render *r, const char *text, size_t n, bool is_trimmed)
{
    if (is_trimmed)
        trim(&text, &n);
    return add_bytes(r, text, n);
}

/* Takes white space away that the text ends with, of the frame too. */
static void
trim_end(struct render *r)
{
    for (size_t k;
         (k = white_before((const char *)r->text.bytes, r->text.n)) > 0;)
        r->text.n -= k;
    if (r->n_spans > 0 && r->spans[r->n_spans - 1].stop > r->text.n)
        r->spans[r->n_spans - 1].stop = r->text.n;
}

/* ---- Answers of the past ---- */

/* What is behind the last place where a thought ends. */
static bool
cut_thought(const struct lmq_chat_format *format, const char **text, size_t *n)
{
    const char *mark = format->thought;
    size_t length = mark == NULL ? *n + 1 : strlen(mark);
    const char *found = NULL;

    for (size_t i = 0; i + length <= *n; i++)
        if (memcmp(*text + i, mark, length) == 0)
            found = *text + i + length;
    if (found == NULL)
        return false;
    *n -= (size_t)(found - *text);
    *text = found;
    for (; format->trims & LMQ_TRIMS_LINES && *n > 0 && **text == '\n';
         ++*text)
        --*n;
    return true;
}

/* The white space that an answer's frame has behind the prompt: an answer that
 * was made behind that begins with its own. */
static const char *
made_white(const struct lmq_chat_format *format)
{
    const char *before = format->answer.before;
    size_t n = format->prompt == NULL ? 0 : strlen(format->prompt);

    return format->prompt != NULL && strncmp(before, format->prompt, n) == 0 &&
                   before[n + strspn(before + n, " \n")] == '\0'
               ? before + n
               : "";
}

/* The very tokens, behind what they were made behind, unless text is to be put
 * behind them or something left out. */
static enum lmq_status
add_tokens(struct render *r, const struct lmq_chat_message *message)
{
    const struct lmq_chat *chat = r->chat;
    const char *white = made_white(chat->format);
    const size_t n_behind = message->text == NULL ? 0 : message->n;
    bool is_words = r->is_text || n_behind > 0 ||
                    chat->format->trims & LMQ_TRIMS_ANSWER;
    struct lmq_buffer text = {0};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < message->n_tokens; i++)
        is_words |= lmq_tokenizer_is_control(chat->tokenizer,
                                             message->tokens[i]);
    if (is_words || chat->format->thought != NULL)
        status = lmq_tokenizer_decode(chat->tokenizer, message->tokens,
                                      message->n_tokens, LMQ_DECODE_SPECIAL,
                                      &text, r->err);
    if (status == LMQ_OK && n_behind > 0 &&
        lmq_buffer_append(&text, message->text, n_behind) != 0)
        status = lmq_fail_nomem(r->err);
    const char *words = text.n == 0 ? "" : (const char *)text.bytes;
    size_t n = text.n;
    is_words |= status == LMQ_OK && cut_thought(chat->format, &words, &n);
    if (status == LMQ_OK)
        status = add_frame(r, is_words || *white == '\0'
                                  ? chat->format->answer.before
                                  : chat->format->prompt);
    if (status == LMQ_OK && is_words) {
        size_t n_white = strlen(white);
        if (n < n_white || memcmp(words, white, n_white) != 0)
            n_white = 0;
        status = add_words(r, words + n_white, n - n_white,
                           chat->format->trims & LMQ_TRIMS_ANSWER);
    } else {
        for (size_t i = 0; i < message->n_tokens && status == LMQ_OK; i++)
            status = add_id(r, message->tokens[i]);
    }
    lmq_buffer_free(&text);
    return status;
}

static enum lmq_status
add_answer(struct render *r, const struct lmq_chat_message *message)
{
    const struct lmq_chat_format *f = r->chat->format;
    const char *text = message->text == NULL ? "" : message->text;
    size_t n = message->text == NULL ? 0 : message->n;
    enum lmq_status status = LMQ_OK;

    cut_thought(f, &text, &n);
    if (message->tokens != NULL)
        status = add_tokens(r, message);
    else if ((status = add_frame(r, f->answer.before)) == LMQ_OK)
        status = add_words(r, text, n, f->trims & LMQ_TRIMS_ANSWER);
    return status == LMQ_OK ? add_frame(r, f->answer.after) : status;
}

/* ---- The whole ---- */

struct talk {
    const struct lmq_chat_message *messages;
    size_t n;
    const char *system; /* NULL: nothing */
    size_t n_system;
    bool is_standard; /* it is the template's own */
    size_t with_system; /* the question that has it within; n: none */
};

static bool
is_by(const struct lmq_chat_message *message, const char *role)
{
    return message->role != NULL && strcmp(message->role, role) == 0;
}

/* Tokens are those that the model itself wrote. */
static enum lmq_status
check_tokens(const struct lmq_chat *chat,
             const struct lmq_chat_message *message, size_t number,
             struct lmq_error *err)
{
    const size_t size = lmq_tokenizer_size(chat->tokenizer);

    if (message->tokens != NULL && !is_by(message, "assistant"))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "message %zu has tokens, which only the assistant has",
                        number);
    for (size_t i = 0; message->tokens != NULL && i < message->n_tokens; i++)
        if (message->tokens[i] < 0 || (size_t)message->tokens[i] >= size)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "token id %d of message %zu is out of range",
                            message->tokens[i], number);
    return LMQ_OK;
}

static enum lmq_status
understand(const struct lmq_chat *chat,
           const struct lmq_chat_message *messages, size_t n,
           struct talk *talk, struct lmq_error *err)
{
    size_t first = n, last = n;

    for (size_t i = 0; i < n; i++) {
        if (is_by(&messages[i], "user")) {
            first = first == n ? i : first;
            last = i;
        } else if (!is_by(&messages[i], "assistant") &&
                   !(i == 0 && is_by(&messages[i], "system"))) {
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "message %zu is by '%s', expected user or "
                            "assistant, or the first by system",
                            i,
                            messages[i].role == NULL ? "" : messages[i].role);
        }
        enum lmq_status status = check_tokens(chat, &messages[i], i, err);
        if (status != LMQ_OK)
            return status;
    }
    if (first == n)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "there is no message by user");
    *talk = (struct talk){messages, n, NULL, 0, false, n};
    if (is_by(&messages[0], "system")) {
        talk->system = messages[0].text == NULL ? "" : messages[0].text;
        talk->n_system = messages[0].text == NULL ? 0 : messages[0].n;
        if (chat->format->trims & LMQ_TRIMS_SYSTEM)
            trim(&talk->system, &talk->n_system);
        if (chat->format->drops_empty && talk->n_system == 0)
            talk->system = NULL;
        talk->messages++;
        talk->n--;
        first--;
        last--;
    } else if (chat->standard.n > 0) {
        talk->system = (const char *)chat->standard.bytes;
        talk->n_system = chat->standard.n;
        talk->is_standard = true;
    }
    talk->with_system = talk->system == NULL ? talk->n
                        : chat->format->place == LMQ_SYSTEM_FIRST ? first
                        : chat->format->place == LMQ_SYSTEM_LAST ? last
                                                                : talk->n;
    return LMQ_OK;
}

static enum lmq_status
add_system(struct render *r, const struct talk *talk)
{
    const struct lmq_chat_format *f = r->chat->format;
    enum lmq_status status = add_frame(r, f->system.before);

    if (status == LMQ_OK)
        status = talk->is_standard
                     ? add_marked(r, talk->system, talk->n_system)
                     : add_bytes(r, talk->system, talk->n_system);
    return status == LMQ_OK ? add_frame(r, f->system.after) : status;
}

static enum lmq_status
add_question(struct render *r, const struct talk *talk, size_t i)
{
    const struct lmq_chat_format *f = r->chat->format;
    const struct lmq_chat_message *message = &talk->messages[i];
    bool is_joint = i == talk->with_system && f->trims & LMQ_TRIMS_JOINT;
    enum lmq_status status = add_frame(r, f->user.before);

    if (status == LMQ_OK && i == talk->with_system)
        status = add_system(r, talk);
    if (status == LMQ_OK && message->text != NULL)
        status = add_words(r, message->text, message->n,
                           f->trims & LMQ_TRIMS_USER && !is_joint);
    if (status == LMQ_OK && is_joint)
        trim_end(r);
    return status == LMQ_OK ? add_frame(r, f->user.after) : status;
}

static enum lmq_status
render(struct render *r, const struct lmq_chat_message *messages, size_t n)
{
    const struct lmq_chat_format *f = r->chat->format;
    struct talk talk = {0};
    enum lmq_status status = understand(r->chat, messages, n, &talk, r->err);

    if (status == LMQ_OK)
        status = add_frame(r, f->begin);
    if (status == LMQ_OK && f->place == LMQ_SYSTEM_OWN)
        status = talk.system != NULL ? add_system(r, &talk)
                                     : add_frame(r, f->silent);
    for (size_t i = 0; i < talk.n && status == LMQ_OK; i++)
        status = is_by(&talk.messages[i], "user")
                     ? add_question(r, &talk, i)
                     : add_answer(r, &talk.messages[i]);
    if (status == LMQ_OK && is_by(&messages[n - 1], "user"))
        status = add_frame(r, f->prompt != NULL ? f->prompt
                                                : f->answer.before);
    return status;
}

enum lmq_status
lmq_chat_tokens(const struct lmq_chat *chat,
                const struct lmq_chat_message *messages, size_t n,
                int32_t **ids, size_t *n_ids, struct lmq_error *err)
{
    struct render r = {.chat = chat, .err = err};
    enum lmq_status status = render(&r, messages, n);

    if (status == LMQ_OK)
        status = encode_text(&r);
    *ids = NULL;
    *n_ids = 0;
    if (status == LMQ_OK) {
        *ids = r.ids.ids;
        *n_ids = r.ids.n;
    } else {
        lmq_ids_clear(&r.ids);
    }
    lmq_buffer_free(&r.text);
    free(r.spans);
    return status;
}

enum lmq_status
lmq_chat_text(const struct lmq_chat *chat,
              const struct lmq_chat_message *messages, size_t n, char **text,
              size_t *n_text, struct lmq_error *err)
{
    struct render r = {.chat = chat, .is_text = true, .err = err};
    enum lmq_status status = render(&r, messages, n);

    *text = NULL;
    *n_text = r.text.n;
    if (status == LMQ_OK) {
        *text = lmq_mem_text(r.text.bytes, r.text.n);
        if (*text == NULL)
            status = lmq_fail_nomem(err);
    }
    lmq_buffer_free(&r.text);
    free(r.spans);
    return status;
}
