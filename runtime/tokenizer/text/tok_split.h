/*
 * tok_split.h - takes the normalized text apart before the model sees it.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_TOK_SPLIT_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_TOK_SPLIT_H

#include "lmquant.h"
#include "runtime/tokenizer/text/regex.h"
#include "runtime/tokenizer/text/chars.h"

enum lmq_split_kind {
    LMQ_SPLIT_REGEX,  /* at what regex finds */
    LMQ_SPLIT_MARK,   /* writes text for each space, and takes nothing apart */
    LMQ_SPLIT_PREFIX, /* puts text before parts that do not begin with it */
    LMQ_SPLIT_SPACES  /* before each `text` that follows something else */
};

/* What becomes of a match: Hugging Face's names. */
enum lmq_split_behavior {
    LMQ_SPLIT_REMOVED,
    LMQ_SPLIT_ISOLATED,
    LMQ_SPLIT_MERGED_WITH_PREVIOUS,
    LMQ_SPLIT_MERGED_WITH_NEXT,
    LMQ_SPLIT_CONTIGUOUS
};

struct lmq_split_step {
    enum lmq_split_kind kind;
    struct lmq_regex *regex;
    enum lmq_split_behavior behavior;
    bool is_inverted; /* what is between the matches counts as the matches */
    bool sees_letters; /* REGEX: looks at GPT-2's letters for the bytes */
    struct lmq_buffer text;
    bool first_only; /* PREFIX: only at the very beginning of the text */
    bool is_joint[256]; /* SPACES: but not behind these bytes */
    bool is_alone[128]; /* SPACES: cut before and behind these too */
};

void lmq_split_free(struct lmq_split_step *step);

struct lmq_text_part {
    uint32_t start, n;
};

/* A text and the parts it falls into. Zero it to begin. */
struct lmq_parts {
    struct lmq_buffer text;
    struct lmq_text_part *parts;
    size_t n, capacity;
    bool is_first; /* the first one stands at the very beginning */
};

void lmq_parts_free(struct lmq_parts *parts);

/* Makes `parts` the one part `text`. 0, or -1 without memory. */
int lmq_parts_begin(struct lmq_parts *parts, struct lmq_chars text,
                    bool is_first);

/* One step: `parts` becomes what it yields; `spare` is scratch. */
enum lmq_status lmq_split_apply(const struct lmq_split_step *step,
                                struct lmq_regex_scratch *scratch,
                                struct lmq_parts *parts,
                                struct lmq_parts *spare,
                                struct lmq_error *err);

#endif
