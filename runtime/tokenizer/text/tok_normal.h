/*
 * tok_normal.h - the steps that change the text before it is taken apart.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_TOK_NORMAL_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_TOK_NORMAL_H

#include "lmquant.h"
#include "runtime/tokenizer/text/regex.h"
#include "runtime/tokenizer/text/chars.h"
#include "runtime/tokenizer/text/trie.h"

enum lmq_normal_kind {
    LMQ_NORMAL_PREPEND,      /* text, unless there is none to prepend it to */
    LMQ_NORMAL_REPLACE,      /* what regex finds by text */
    LMQ_NORMAL_FORM,         /* Unicode's NFC, NFD, NFKC, NFKD */
    LMQ_NORMAL_LOWER,
    LMQ_NORMAL_STRIP,        /* white space at the ends */
    LMQ_NORMAL_STRIP_ACCENTS,/* marks */
    LMQ_NORMAL_NMT,          /* control characters, odd spaces */
    LMQ_NORMAL_CHARSMAP,     /* SentencePiece's table, as Hugging Face does */
    LMQ_NORMAL_SENTENCEPIECE /* SentencePiece's normalizer, spaces and all */
};

/* A precompiled charsmap: a double array over bytes and 0-ended texts. */
struct lmq_charsmap {
    unsigned char *bytes; /* owned */
    size_t n_units;       /* of 4 bytes, from bytes + 4 */
    const unsigned char *texts;
    size_t n_texts; /* bytes; the last one is 0 */
};

struct lmq_normal_step {
    enum lmq_normal_kind kind;
    struct lmq_buffer text;
    struct lmq_regex *regex;
    bool is_compatible, is_composed; /* FORM: the K, the C */
    bool left, right;                /* STRIP */
    struct lmq_charsmap charsmap;
    /* SENTENCEPIECE: text is what stands for a space. */
    bool adds_prefix, removes_extra_spaces;
    struct lmq_trie kept; /* texts of user pieces, which stay as they are */
    bool is_plain[128]; /* no rule, no kept text begins with it, unless a byte
                           above 127 comes next */
};

void lmq_normal_free(struct lmq_normal_step *step);

/* The last step of making a SENTENCEPIECE: finds what is plain. */
void lmq_normal_find_plain(struct lmq_normal_step *step);

/* Appends the changed text to out, which says how much that may be. Bytes that
 * are no UTF-8 stay. */
enum lmq_status lmq_normal_apply(const struct lmq_normal_step *step,
                                 struct lmq_regex_scratch *scratch,
                                 struct lmq_chars text,
                                 struct lmq_buffer *out,
                                 struct lmq_error *err);

/* ---- The table (charsmap.c) ---- */

/* Copies and checks the blob. Empty is fine: then nothing matches. */
enum lmq_status lmq_charsmap_open(struct lmq_charsmap *charsmap,
                                  struct lmq_chars blob,
                                  struct lmq_error *err);

/* Bytes of the longest (or the shortest) rule at the beginning of the text,
 * 0 without; *to is what it becomes. */
size_t lmq_charsmap_find(const struct lmq_charsmap *charsmap,
                         struct lmq_chars text, bool is_longest,
                         struct lmq_chars *to);

/* Whether a rule begins with this text. */
bool lmq_charsmap_begins(const struct lmq_charsmap *charsmap,
                         struct lmq_chars text);

#endif
