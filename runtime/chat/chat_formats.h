/*
 * chat_formats.h - how families of models write down a conversation.
 *
 * A conversation is frames around what somebody said. A row of the table has
 * the frames of a family, and by what its templates are recognised: no template
 * is ever evaluated.
 */
#ifndef LMQ_RUNTIME_CHAT_CHAT_FORMATS_H
#define LMQ_RUNTIME_CHAT_CHAT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/buffer.h"
#include "lmquant.h"

/* Within the texts of a frame: the tokens that begin and end a text, whatever
 * the tokenizer calls them. */
#define LMQ_CHAT_BOS '\1'
#define LMQ_CHAT_EOS '\2'
/* And texts of the template itself: the first of its pages, the second ... */
#define LMQ_CHAT_PAGE '\3'
#define LMQ_CHAT_PAGES 3

/* What stands in a template behind one text and before another: too long for a
 * table, and other words in each model of a family. */
struct lmq_chat_page {
    const char *from, *to;
};

/* What stands before and behind somebody's words; NULL is nothing. */
struct lmq_chat_frame {
    const char *before, *after;
};

enum lmq_chat_place {
    LMQ_SYSTEM_OWN,   /* a turn of its own at the beginning */
    LMQ_SYSTEM_FIRST, /* within the first question, before its words */
    LMQ_SYSTEM_LAST   /* within the last one */
};

enum {
    LMQ_TRIMS_SYSTEM = 1, /* white space around the words is left out */
    LMQ_TRIMS_USER = 2,
    LMQ_TRIMS_ANSWER = 4,
    LMQ_TRIMS_ALL = 7,
    LMQ_TRIMS_LINES = 8, /* line feeds between a thought and an answer are */
    LMQ_TRIMS_JOINT = 16 /* a question with the system is trimmed as a whole */
};

struct lmq_chat_format {
    const char *name;
    const char *models; /* for people */

    /* A template has all of these texts and none of those; without any the
     * format is never recognised, and has to be named. */
    const char *has[3], *lacks[3];

    const char *begin; /* the whole */
    enum lmq_chat_place place;
    struct lmq_chat_frame system, user, answer;
    const char *prompt; /* where the model goes on; NULL: answer.before */
    const char *silent; /* in place of a system turn that is not there */
    bool drops_empty; /* a system without words has no turn */
    struct lmq_chat_page pages[LMQ_CHAT_PAGES]; /* a template has them all */
    const char *standard; /* what the system says if nothing is given */
    const char *standard_at; /* the same: the literal that stands behind this
                                in the template */
    const char *thought; /* of an answer of the past only what is behind the
                            last of these stays */
    const char *ends[2]; /* tokens that end an answer, besides those that end a
                            text */
    unsigned trims;
    bool shows_marks; /* an answer has parts that special tokens part */
};

extern const struct lmq_chat_format lmq_chat_formats[];
extern const size_t lmq_n_chat_formats;

const struct lmq_chat_format *lmq_chat_format_named(const char *name);

/* The first row that the template has the marks of, or NULL. */
const struct lmq_chat_format *
lmq_chat_format_recognise(const char *text, size_t n);

/* What this template says as the system if nobody else does: appended to text,
 * nothing if it does not. False without memory. */
bool lmq_chat_format_standard(const struct lmq_chat_format *format,
                              const char *text, size_t n,
                              struct lmq_buffer *standard);

/* A page of this template: words, and nothing of the template's own language.
 * False if it is not there. */
bool lmq_chat_format_page(const struct lmq_chat_page *page, const char *text,
                          size_t n, const char **words, size_t *n_words);

/* Whether a text is in a template, which may hold any bytes. */
bool lmq_chat_has(const char *text, size_t n, const char *mark);

#endif
