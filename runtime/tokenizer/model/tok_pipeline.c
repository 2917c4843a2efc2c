/*
 * tok_pipeline.c - puts the steps of a tokenizer together.
 */
#include "config.h"

#include "runtime/tokenizer/model/tok_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/tokenizer/text/bytelevel.h"

#define MAX_DECODED_REPLACEMENT 16

struct lmq_normal_step *
lmq_pipeline_add_normal(struct lmq_tokenizer *t)
{
    if (t->n_normals >= LMQ_TOKENIZER_MAX_STEPS)
        return NULL;
    struct lmq_normal_step *steps =
        realloc(t->normals, (t->n_normals + 1) * sizeof(steps[0]));
    if (steps == NULL)
        return NULL;
    t->normals = steps;
    memset(&steps[t->n_normals], 0, sizeof(steps[0]));
    return &steps[t->n_normals++];
}

struct lmq_split_step *
lmq_pipeline_add_split(struct lmq_tokenizer *t)
{
    if (t->n_splits >= LMQ_TOKENIZER_MAX_STEPS)
        return NULL;
    struct lmq_split_step *steps =
        realloc(t->splits, (t->n_splits + 1) * sizeof(steps[0]));
    if (steps == NULL)
        return NULL;
    t->splits = steps;
    memset(&steps[t->n_splits], 0, sizeof(steps[0]));
    return &steps[t->n_splits++];
}

enum lmq_status
lmq_pipeline_fail(size_t n_steps, struct lmq_error *err)
{
    if (n_steps < LMQ_TOKENIZER_MAX_STEPS)
        return lmq_fail_nomem(err);
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "the tokenizer has more than %d steps of one kind, which "
                    "is the limit",
                    LMQ_TOKENIZER_MAX_STEPS);
}

enum lmq_status
lmq_pipeline_split_at(struct lmq_tokenizer *t, struct lmq_chars pattern,
                      bool is_literal, enum lmq_split_behavior behavior,
                      bool is_inverted, struct lmq_error *err)
{
    struct lmq_split_step *step = lmq_pipeline_add_split(t);

    if (step == NULL)
        return lmq_pipeline_fail(t->n_splits, err);
    step->kind = LMQ_SPLIT_REGEX;
    step->behavior = behavior;
    step->is_inverted = is_inverted;
    return is_literal ? lmq_regex_open_literal(pattern, &step->regex, err)
                      : lmq_regex_open(pattern, &step->regex, err);
}

enum lmq_status
lmq_pipeline_replace(struct lmq_tokenizer *t, struct lmq_chars from,
                     struct lmq_chars to, struct lmq_error *err)
{
    if (t->n_replacements >= LMQ_TOKENIZER_MAX_MARKS || from.n == 0 ||
        to.n > MAX_DECODED_REPLACEMENT)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "a Replace of the decoder is not supported: '%.*s'",
                        (int)(from.n < 50 ? from.n : 50),
                        (const char *)from.p);
    struct lmq_replacement *rule = &t->replacements[t->n_replacements++];
    if (lmq_buffer_append(&rule->from, from.p, from.n) != 0 ||
        lmq_buffer_append(&rule->to, to.p, to.n) != 0)
        return lmq_fail_nomem(err);
    return LMQ_OK;
}

void
lmq_marks_add(struct lmq_marks *marks, int32_t id)
{
    if (!lmq_marks_have(marks, id) && marks->n < LMQ_TOKENIZER_MAX_MARKS)
        marks->ids[marks->n++] = id;
}

bool
lmq_marks_have(const struct lmq_marks *marks, int32_t id)
{
    for (size_t i = 0; i < marks->n; i++)
        if (marks->ids[i] == id)
            return true;
    return false;
}

enum lmq_status
lmq_pipeline_normalize(const struct lmq_tokenizer *t,
                       struct lmq_regex_scratch *scratch,
                       struct lmq_chars text, struct lmq_buffer *result,
                       struct lmq_buffer *spare, struct lmq_error *err)
{
    result->n = 0;
    result->most = spare->most = lmq_pipeline_most(text.n);
    if (lmq_buffer_append(result, text.p, text.n) != 0)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < t->n_normals; i++) {
        struct lmq_buffer before = *result;
        spare->n = 0;
        enum lmq_status status =
            lmq_normal_apply(&t->normals[i], scratch,
                             lmq_chars(before.bytes, before.n), spare, err);
        if (status != LMQ_OK)
            return status;
        *result = *spare;
        *spare = before;
    }
    return LMQ_OK;
}

int32_t
lmq_pipeline_find(const struct lmq_tokenizer *t, struct lmq_chars name)
{
    for (size_t i = 0; i < t->added.n; i++) {
        const struct lmq_added_token *token = &t->added.tokens[i];
        if (!token->is_normalized &&
            lmq_chars_equal(name, lmq_chars(t->added.texts.bytes +
                                                token->start,
                                            token->n)))
            return token->id;
    }
    for (size_t id = 0; id < t->vocab.n; id++)
        if (lmq_vocab_type(&t->vocab, (int32_t)id) != LMQ_PIECE_NONE &&
            lmq_chars_equal(name, lmq_vocab_text(&t->vocab, (int32_t)id)))
            return (int32_t)id;
    return -1;
}

void
lmq_pipeline_name(const struct lmq_tokenizer *t, int32_t id,
                  struct lmq_buffer *out)
{
    struct lmq_chars text = lmq_vocab_text(&t->vocab, id);

    if (t->is_byte_level && t->vocab.pieces[id].is_matched)
        lmq_bytelevel_map(text, out);
    else
        lmq_buffer_append(out, text.p, text.n);
}
