/*
 * tok_split.c - takes the normalized text apart before the model sees it.
 *
 * Most pre-tokenizers are a pattern and what becomes of its matches. Bytes
 * that are no UTF-8 are parts of their own, between which patterns do not
 * look; or they have letters as all bytes have.
 */
#include "config.h"

#include "runtime/tokenizer/text/tok_split.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/text/bytelevel.h"

void
lmq_split_free(struct lmq_split_step *step)
{
    lmq_regex_close(step->regex);
    lmq_buffer_free(&step->text);
    memset(step, 0, sizeof(*step));
}

void
lmq_parts_free(struct lmq_parts *parts)
{
    lmq_buffer_free(&parts->text);
    free(parts->parts);
    memset(parts, 0, sizeof(*parts));
}

/* Offsets are 32 bits; only steps that write can come near the limit. */
static int
add_part(struct lmq_parts *parts, size_t start, size_t n)
{
    if (n == 0)
        return 0;
    if (start > INT32_MAX || n > INT32_MAX - start)
        return -1;
    if (lmq_mem_grow(&parts->parts, &parts->capacity, parts->n + 1,
                     sizeof(parts->parts[0])) != 0)
        return -1;
    parts->parts[parts->n++] =
        (struct lmq_text_part){ (uint32_t)start, (uint32_t)n };
    return 0;
}

int
lmq_parts_begin(struct lmq_parts *parts, struct lmq_chars text, bool is_first)
{
    parts->text.n = 0;
    parts->n = 0;
    parts->is_first = is_first;
    if (lmq_buffer_append(&parts->text, text.p, text.n) != 0)
        return -1;
    return add_part(parts, 0, text.n);
}

/* ---- By pattern ---- */

/* One run of text being split: stretches of match and of other text come in
 * order, and the behavior decides how they join. */
struct split {
    const struct lmq_split_step *step;
    struct lmq_regex_scratch *scratch;
    struct lmq_parts *out;
    size_t at; /* in the text */
    bool was_match, can_extend;
    struct lmq_buffer letters; /* in place of a run */
};

static int
extend_last(struct split *s, size_t n)
{
    s->out->parts[s->out->n - 1].n += (uint32_t)n;
    return 0;
}

/* Bytes of the text: as many as there are letters. */
static size_t
size_of(const struct split *s, struct lmq_chars stretch)
{
    size_t n = 0;

    if (!s->step->sees_letters)
        return stretch.n;
    for (size_t i = 0; i < stretch.n; i++)
        n += (stretch.p[i] & 0xc0) != 0x80;
    return n;
}

static int
add_stretch(struct split *s, struct lmq_chars stretch, bool is_match)
{
    size_t at = s->at, n = size_of(s, stretch);
    bool was_match = s->was_match, can_extend = s->can_extend;

    if (n == 0)
        return 0;
    s->at += n;
    if (s->step->is_inverted)
        is_match = !is_match;
    s->was_match = is_match;
    s->can_extend = true;
    switch (s->step->behavior) {
    case LMQ_SPLIT_REMOVED:
        return is_match ? 0 : add_part(s->out, at, n);
    case LMQ_SPLIT_MERGED_WITH_PREVIOUS:
        if (is_match && !was_match && can_extend)
            return extend_last(s, n);
        return add_part(s->out, at, n);
    case LMQ_SPLIT_CONTIGUOUS:
        if (is_match == was_match && can_extend)
            return extend_last(s, n);
        return add_part(s->out, at, n);
    case LMQ_SPLIT_MERGED_WITH_NEXT:
        if (!is_match && was_match && can_extend)
            return extend_last(s, n);
        return add_part(s->out, at, n);
    default:
        return add_part(s->out, at, n);
    }
}

static enum lmq_status
split_run(struct split *s, struct lmq_chars run, struct lmq_error *err)
{
    size_t from = 0, at = 0;

    s->was_match = false;
    s->can_extend = false;
    while (at < run.n) {
        bool found;
        size_t start, stop;
        enum lmq_status status =
            lmq_regex_match(s->step->regex, s->scratch, run, at, &found,
                            &start, &stop, err);
        if (status != LMQ_OK)
            return status;
        if (!found)
            break;
        if (add_stretch(s, lmq_chars(run.p + from, start - from), false) !=
                0 ||
            add_stretch(s, lmq_chars(run.p + start, stop - start), true) != 0)
            return lmq_fail_nomem(err);
        if (start == stop && start > from) /* an empty one keeps apart, too */
            s->can_extend = false;
        from = stop;
        at = stop;
        if (start == stop && at < run.n)
            at += lmq_utf8_length(run.p + at, run.n - at);
    }
    return add_stretch(s, lmq_chars(run.p + from, run.n - from), false) == 0
               ? LMQ_OK
               : lmq_fail_nomem(err);
}

static enum lmq_status
split_letters(struct split *s, struct lmq_chars bytes, struct lmq_error *err)
{
    s->letters.n = 0;
    if (lmq_bytelevel_map(bytes, &s->letters) != 0)
        return lmq_fail_nomem(err);
    return split_run(s, lmq_chars(s->letters.bytes, s->letters.n), err);
}

static enum lmq_status
split_part(struct split *s, struct lmq_chars text, struct lmq_text_part part,
           struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    size_t at = part.start, end = (size_t)part.start + part.n;

    s->at = at;
    if (s->step->sees_letters)
        return split_letters(s, lmq_chars(text.p + at, part.n), err);
    while (at < end && status == LMQ_OK) {
        size_t n = lmq_utf8_valid(text.p + at, end - at);
        size_t n_raw = lmq_utf8_invalid(text.p + at + n, end - at - n);
        s->at = at;
        if (n > 0)
            status = split_run(s, lmq_chars(text.p + at, n), err);
        if (status == LMQ_OK && add_part(s->out, at + n, n_raw) != 0)
            status = lmq_fail_nomem(err);
        at += n + n_raw;
    }
    return status;
}

/* ---- Without a pattern ---- */

static int
add_prefix(const struct lmq_split_step *step, const struct lmq_parts *in,
           struct lmq_parts *out)
{
    const struct lmq_buffer *prefix = &step->text;

    out->text.n = 0;
    for (size_t i = 0; i < in->n; i++) {
        const unsigned char *p = in->text.bytes + in->parts[i].start;
        size_t start = out->text.n, n = in->parts[i].n;
        bool is_wanted = !step->first_only || (in->is_first && i == 0);
        bool has_it = n >= prefix->n &&
                      memcmp(p, prefix->bytes, prefix->n) == 0;
        if (is_wanted && !has_it &&
            lmq_buffer_append(&out->text, prefix->bytes, prefix->n) != 0)
            return -1;
        if (lmq_buffer_append(&out->text, p, n) != 0 ||
            add_part(out, start, out->text.n - start) != 0)
            return -1;
    }
    return 0;
}

static int
mark_spaces(const struct lmq_split_step *step, const struct lmq_parts *in,
            struct lmq_parts *out)
{
    out->text.n = 0;
    for (size_t i = 0; i < in->n; i++) {
        const unsigned char *p = in->text.bytes + in->parts[i].start;
        size_t start = out->text.n, n = in->parts[i].n, from = 0;
        for (size_t at = 0; at < n; at++) {
            if (p[at] != ' ')
                continue;
            if (lmq_buffer_append(&out->text, p + from, at - from) != 0 ||
                lmq_buffer_append(&out->text, step->text.bytes,
                                  step->text.n) != 0)
                return -1;
            from = at + 1;
        }
        if (lmq_buffer_append(&out->text, p + from, n - from) != 0 ||
            add_part(out, start, out->text.n - start) != 0)
            return -1;
    }
    return 0;
}

static int
break_at_spaces(const struct lmq_split_step *step, struct lmq_chars text,
                struct lmq_text_part part, struct lmq_parts *out)
{
    const unsigned char *space = step->text.bytes;
    size_t n_space = step->text.n, end = (size_t)part.start + part.n;
    size_t from = part.start, at = from;
    bool was_other = false;

    while (at < end) {
        bool is_alone = text.p[at] < 128 && step->is_alone[text.p[at]];
        bool is_space = text.p[at] == space[0] && end - at >= n_space &&
                        memcmp(text.p + at, space, n_space) == 0;
        if (is_alone ||
            (is_space && was_other && !step->is_joint[text.p[at - 1]])) {
            if (add_part(out, from, at - from) != 0)
                return -1;
            from = at;
        }
        at += is_space ? n_space : 1;
        was_other = !is_space && !is_alone;
        if (is_alone) {
            if (add_part(out, from, at - from) != 0)
                return -1;
            from = at;
        }
    }
    return add_part(out, from, end - from);
}

/* ---- All of them ---- */

/* The text stays where it is, only the parts change. */
static void
take_text(struct lmq_parts *from, struct lmq_parts *to)
{
    struct lmq_buffer text = from->text;

    from->text = to->text;
    to->text = text;
}

enum lmq_status
lmq_split_apply(const struct lmq_split_step *step,
                struct lmq_regex_scratch *scratch, struct lmq_parts *parts,
                struct lmq_parts *spare, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    struct lmq_chars text = lmq_chars(parts->text.bytes, parts->text.n);
    struct split s = { .step = step, .scratch = scratch, .out = spare };

    spare->n = 0;
    if (step->kind == LMQ_SPLIT_PREFIX) {
        if (add_prefix(step, parts, spare) != 0)
            return lmq_buffer_fail(&spare->text, text.n, err);
    } else if (step->kind == LMQ_SPLIT_MARK) {
        if (mark_spaces(step, parts, spare) != 0)
            return lmq_buffer_fail(&spare->text, text.n, err);
    } else if (step->kind == LMQ_SPLIT_SPACES) {
        for (size_t i = 0; i < parts->n; i++)
            if (break_at_spaces(step, text, parts->parts[i], spare) != 0)
                return lmq_fail_nomem(err);
        take_text(parts, spare);
    } else {
        for (size_t i = 0; i < parts->n && status == LMQ_OK; i++)
            status = split_part(&s, text, parts->parts[i], err);
        lmq_buffer_free(&s.letters);
        take_text(parts, spare);
    }
    /* A step may have dropped what began the text. */
    spare->is_first =
        parts->is_first && spare->n > 0 && spare->parts[0].start == 0;
    struct lmq_parts result = *spare;
    *spare = *parts;
    *parts = result;
    return status;
}
