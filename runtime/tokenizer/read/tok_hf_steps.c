/*
 * tok_hf_steps.c - normalizers and pre-tokenizers of tokenizer.json.
 *
 * Each name of Hugging Face's library stands in a table with the function that
 * describes it in our steps; a name that is missing is refused.
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/read/tok_json.h"

#define MAX_NESTING 8
#define MAX_CONTENT 256

struct reader {
    const char *name;
    enum lmq_status (*read)(struct lmq_tokenizer *t, const json_t *object,
                            struct lmq_error *err);
    bool sees_letters; /* behind ByteLevel it can look at its letters */
};

/* All that was added from the first on. */
static void
show_letters(struct lmq_tokenizer *t, size_t first)
{
    for (size_t i = first; i < t->n_splits; i++)
        t->splits[i].sees_letters = true;
}

/* What the readers are of, and where a Sequence has its list of them. */
struct kind {
    const char *what, *list;
    const struct reader *readers;
};

static enum lmq_status
read_with(const struct kind *kind, struct lmq_tokenizer *t,
          const json_t *object, int depth, struct lmq_error *err)
{
    const char *type = lmq_json_type(object);
    const struct reader *reader = kind->readers;
    bool has_letters = t->is_byte_level;
    size_t first = t->n_splits;
    enum lmq_status status = LMQ_OK;

    if (object == NULL || json_is_null(object))
        return LMQ_OK;
    if (!json_is_object(object) || depth > MAX_NESTING)
        return lmq_json_refuse(kind->what, "nested too deep or no object", err);
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(object, kind->list);
        if (!json_is_array(list))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "a Sequence of %ss has none", kind->what);
        for (size_t i = 0; i < json_array_size(list) && status == LMQ_OK; i++)
            status = read_with(kind, t, json_array_get(list, i), depth + 1,
                               err);
        return status;
    }
    while (reader->name != NULL && strcmp(reader->name, type) != 0)
        reader++;
    if (reader->name == NULL)
        return lmq_json_refuse(kind->what, type, err);
    if (has_letters && !reader->sees_letters)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the %s '%s' after ByteLevel is not supported",
                        kind->what, type);
    status = reader->read(t, object, err);
    if (has_letters)
        show_letters(t, first);
    return status;
}

/* {"String": "x"} or {"Regex": "x"}. */
static enum lmq_status
open_pattern(const json_t *object, struct lmq_regex **regex,
             struct lmq_error *err)
{
    const json_t *pattern = json_object_get(object, "pattern");
    const json_t *literal = json_object_get(pattern, "String");
    const json_t *source = json_object_get(pattern, "Regex");

    if (json_is_string(literal))
        return lmq_regex_open_literal(lmq_json_chars(literal), regex, err);
    if (json_is_string(source))
        return lmq_regex_open(lmq_json_chars(source), regex, err);
    return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                    "a pattern is neither \"String\" nor \"Regex\"");
}

static enum lmq_status
get_content(const json_t *object, const char *key, struct lmq_chars *content,
            struct lmq_error *err)
{
    const json_t *value = json_object_get(object, key);

    *content = lmq_json_chars(value);
    if (!json_is_string(value))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "'%s' is not a string", key);
    if (content->n > MAX_CONTENT)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "'%s' is %zu bytes, the limit is %d", key, content->n,
                        MAX_CONTENT);
    return LMQ_OK;
}

/* ---- Normalizers ---- */

static struct lmq_normal_step *
new_normal(struct lmq_tokenizer *t, enum lmq_normal_kind kind)
{
    struct lmq_normal_step *step = lmq_pipeline_add_normal(t);

    if (step != NULL)
        step->kind = kind;
    return step;
}

static enum lmq_status
read_prepend(struct lmq_tokenizer *t, const json_t *object,
             struct lmq_error *err)
{
    struct lmq_chars content;
    enum lmq_status status = get_content(object, "prepend", &content, err);

    if (status != LMQ_OK)
        return status;
    struct lmq_normal_step *step = new_normal(t, LMQ_NORMAL_PREPEND);
    if (step == NULL)
        return lmq_pipeline_fail(t->n_normals, err);
    return lmq_buffer_append(&step->text, content.p, content.n) == 0
               ? LMQ_OK
               : lmq_fail_nomem(err);
}

static enum lmq_status
read_replace(struct lmq_tokenizer *t, const json_t *object,
             struct lmq_error *err)
{
    struct lmq_chars content;
    enum lmq_status status = get_content(object, "content", &content, err);

    if (status != LMQ_OK)
        return status;
    struct lmq_normal_step *step = new_normal(t, LMQ_NORMAL_REPLACE);
    if (step == NULL)
        return lmq_pipeline_fail(t->n_normals, err);
    if (lmq_buffer_append(&step->text, content.p, content.n) != 0)
        return lmq_fail_nomem(err);
    return open_pattern(object, &step->regex, err);
}

static enum lmq_status
read_form(struct lmq_tokenizer *t, const json_t *object,
          struct lmq_error *err)
{
    const char *type = lmq_json_type(object); /* NFC, NFD, NFKC, NFKD */
    struct lmq_normal_step *step = new_normal(t, LMQ_NORMAL_FORM);

    if (step == NULL)
        return lmq_pipeline_fail(t->n_normals, err);
    step->is_compatible = type[2] == 'K';
    step->is_composed = type[strlen(type) - 1] == 'C';
    return LMQ_OK;
}

static enum lmq_status
read_strip(struct lmq_tokenizer *t, const json_t *object,
           struct lmq_error *err)
{
    struct lmq_normal_step *step = new_normal(t, LMQ_NORMAL_STRIP);

    if (step == NULL)
        return lmq_pipeline_fail(t->n_normals, err);
    enum lmq_status status =
        lmq_json_bool(object, "strip_left", true, &step->left, err);
    return status != LMQ_OK ? status
                            : lmq_json_bool(object, "strip_right", true,
                                            &step->right, err);
}

static enum lmq_status
read_plain(struct lmq_tokenizer *t, const json_t *object,
           struct lmq_error *err)
{
    const char *type = lmq_json_type(object);
    enum lmq_normal_kind kind = LMQ_NORMAL_LOWER;

    if (strcmp(type, "StripAccents") == 0)
        kind = LMQ_NORMAL_STRIP_ACCENTS;
    else if (strcmp(type, "Nmt") == 0)
        kind = LMQ_NORMAL_NMT;
    return new_normal(t, kind) == NULL ? lmq_pipeline_fail(t->n_normals, err)
                                       : LMQ_OK;
}

static enum lmq_status
read_precompiled(struct lmq_tokenizer *t, const json_t *object,
                 struct lmq_error *err)
{
    const json_t *text = json_object_get(object, "precompiled_charsmap");
    struct lmq_normal_step *step = new_normal(t, LMQ_NORMAL_CHARSMAP);
    struct lmq_buffer bytes = { 0 };
    enum lmq_status status = LMQ_OK;

    if (step == NULL)
        return lmq_pipeline_fail(t->n_normals, err);
    if (!json_is_null(text)) {
        if (!json_is_string(text) ||
            lmq_base64_decode(lmq_json_chars(text), &bytes) != 0)
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "precompiled_charsmap is not base64");
        else
            status = lmq_charsmap_open(&step->charsmap,
                                       lmq_chars(bytes.bytes, bytes.n), err);
    }
    lmq_buffer_free(&bytes);
    return status;
}

static const struct reader normalizers[] = {
    { "Prepend", read_prepend, false },
    { "Replace", read_replace, false },
    { "NFC", read_form, false },
    { "NFD", read_form, false },
    { "NFKC", read_form, false },
    { "NFKD", read_form, false },
    { "Strip", read_strip, false },
    { "Lowercase", read_plain, false },
    { "StripAccents", read_plain, false },
    { "Nmt", read_plain, false },
    { "Precompiled", read_precompiled, false },
    { NULL, NULL, false }
};

enum lmq_status
lmq_hf_add_normalizer(struct lmq_tokenizer *t, const json_t *object,
                      struct lmq_error *err)
{
    static const struct kind kind = {"normalizer", "normalizers", normalizers};

    return read_with(&kind, t, object, 0, err);
}

/* ---- Pre-tokenizers ---- */

static enum lmq_status
split_at(struct lmq_tokenizer *t, const char *pattern,
         enum lmq_split_behavior behavior, bool is_inverted,
         struct lmq_error *err)
{
    return lmq_pipeline_split_at(t, lmq_chars(pattern, strlen(pattern)), false,
                                 behavior, is_inverted, err);
}

static enum lmq_status
get_behavior(const json_t *object, enum lmq_split_behavior *behavior,
             struct lmq_error *err)
{
    static const char *const names[] = {
        [LMQ_SPLIT_REMOVED] = "Removed",
        [LMQ_SPLIT_ISOLATED] = "Isolated",
        [LMQ_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [LMQ_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [LMQ_SPLIT_CONTIGUOUS] = "Contiguous",
    };
    const json_t *value = json_object_get(object, "behavior");
    const char *name = json_string_value(value);

    *behavior = LMQ_SPLIT_ISOLATED;
    if (value == NULL)
        return LMQ_OK;
    for (size_t i = 0; name != NULL && i < 5; i++)
        if (strcmp(names[i], name) == 0) {
            *behavior = (enum lmq_split_behavior)i;
            return LMQ_OK;
        }
    return lmq_json_refuse("behavior", name == NULL ? "" : name, err);
}

static enum lmq_status
add_prefix(struct lmq_tokenizer *t, struct lmq_chars text, bool first_only,
           struct lmq_error *err)
{
    struct lmq_split_step *step = lmq_pipeline_add_split(t);

    if (step == NULL)
        return lmq_pipeline_fail(t->n_splits, err);
    step->kind = LMQ_SPLIT_PREFIX;
    step->first_only = first_only;
    return lmq_buffer_append(&step->text, text.p, text.n) == 0
               ? LMQ_OK
               : lmq_fail_nomem(err);
}

static enum lmq_status
read_byte_level(struct lmq_tokenizer *t, const json_t *object,
                struct lmq_error *err)
{
    bool adds_space, uses_regex;
    enum lmq_status status =
        lmq_json_bool(object, "add_prefix_space", true, &adds_space, err);

    if (status == LMQ_OK)
        status = lmq_json_bool(object, "use_regex", true, &uses_regex, err);
    if (status == LMQ_OK && adds_space)
        status = add_prefix(t, lmq_chars(" ", 1), false, err);
    if (status == LMQ_OK && uses_regex)
        status = split_at(t, lmq_pattern_gpt2, LMQ_SPLIT_ISOLATED, false, err);
    t->is_byte_level = true;
    return status;
}

static enum lmq_status
read_split(struct lmq_tokenizer *t, const json_t *object,
           struct lmq_error *err)
{
    enum lmq_split_behavior behavior;
    bool is_inverted;
    enum lmq_status status = get_behavior(object, &behavior, err);

    if (status == LMQ_OK)
        status = lmq_json_bool(object, "invert", false, &is_inverted, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_split_step *step = lmq_pipeline_add_split(t);
    if (step == NULL)
        return lmq_pipeline_fail(t->n_splits, err);
    step->kind = LMQ_SPLIT_REGEX;
    step->behavior = behavior;
    step->is_inverted = is_inverted;
    return open_pattern(object, &step->regex, err);
}

static enum lmq_status
read_digits(struct lmq_tokenizer *t, const json_t *object,
            struct lmq_error *err)
{
    bool is_individual;
    enum lmq_status status = lmq_json_bool(object, "individual_digits", false,
                                           &is_individual, err);

    return status != LMQ_OK
               ? status
               : split_at(t, "\\p{N}",
                          is_individual ? LMQ_SPLIT_ISOLATED
                                        : LMQ_SPLIT_CONTIGUOUS,
                          false, err);
}

static enum lmq_status
read_punctuation(struct lmq_tokenizer *t, const json_t *object,
                 struct lmq_error *err)
{
    enum lmq_split_behavior behavior;
    enum lmq_status status = get_behavior(object, &behavior, err);

    return status != LMQ_OK
               ? status
               : split_at(t, "[!-/:-@\\[-`{-~\\p{P}]", behavior, false, err);
}

/* \w of a pattern in Rust, not of Oniguruma. */
#define RUST_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"

static enum lmq_status
read_whitespace(struct lmq_tokenizer *t, const json_t *object,
                struct lmq_error *err)
{
    (void)object;
    return split_at(t, "[" RUST_WORD "]+|[^" RUST_WORD "\\s]+",
                    LMQ_SPLIT_REMOVED, true, err);
}

static enum lmq_status
read_whitespace_split(struct lmq_tokenizer *t, const json_t *object,
                      struct lmq_error *err)
{
    (void)object;
    return split_at(t, "\\s", LMQ_SPLIT_REMOVED, false, err);
}

static enum lmq_status
read_bert(struct lmq_tokenizer *t, const json_t *object,
          struct lmq_error *err)
{
    enum lmq_status status = read_whitespace_split(t, object, err);

    return status != LMQ_OK ? status
                            : split_at(t, "[!-/:-@\\[-`{-~\\p{P}]",
                                       LMQ_SPLIT_ISOLATED, false, err);
}

static enum lmq_status
read_delimiter(struct lmq_tokenizer *t, const json_t *object,
               struct lmq_error *err)
{
    struct lmq_chars text;
    enum lmq_status status = get_content(object, "delimiter", &text, err);

    return status != LMQ_OK ? status
                            : lmq_pipeline_split_at(t, text, true,
                                                    LMQ_SPLIT_REMOVED, false,
                                                    err);
}

/* prepend_scheme, or add_prefix_space in older files. */
static enum lmq_status
get_scheme(const json_t *object, bool *prepends, bool *first_only,
           struct lmq_error *err)
{
    const json_t *value = json_object_get(object, "prepend_scheme");
    const char *scheme = json_string_value(value);

    *first_only = false;
    if (value == NULL)
        return lmq_json_bool(object, "add_prefix_space", true, prepends, err);
    if (scheme == NULL ||
        (strcmp(scheme, "always") != 0 && strcmp(scheme, "never") != 0 &&
         strcmp(scheme, "first") != 0))
        return lmq_json_refuse("prepend_scheme", scheme == NULL ? "" : scheme,
                               err);
    *prepends = strcmp(scheme, "never") != 0;
    *first_only = strcmp(scheme, "first") == 0;
    return LMQ_OK;
}

static enum lmq_status
read_metaspace(struct lmq_tokenizer *t, const json_t *object,
               struct lmq_error *err)
{
    struct lmq_chars mark;
    bool prepends, first_only, splits;
    enum lmq_status status = get_content(object, "replacement", &mark, err);

    if (status == LMQ_OK)
        status = get_scheme(object, &prepends, &first_only, err);
    if (status == LMQ_OK)
        status = lmq_json_bool(object, "split", true, &splits, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_split_step *step = lmq_pipeline_add_split(t);
    if (step == NULL)
        return lmq_pipeline_fail(t->n_splits, err);
    if (mark.n == 0 || lmq_utf8_length(mark.p, mark.n) != mark.n)
        return lmq_json_refuse("replacement", "of more than a character",
                               err);
    step->kind = LMQ_SPLIT_MARK;
    if (lmq_buffer_append(&step->text, mark.p, mark.n) != 0)
        return lmq_fail_nomem(err);
    if (prepends)
        status = add_prefix(t, mark, first_only, err);
    if (status == LMQ_OK && splits)
        status = lmq_pipeline_split_at(t, mark, true,
                                       LMQ_SPLIT_MERGED_WITH_NEXT, false, err);
    return status;
}

static const struct reader pre_tokenizers[] = {
    { "ByteLevel", read_byte_level, false },
    { "Split", read_split, true },
    { "Digits", read_digits, true },
    { "Punctuation", read_punctuation, true },
    { "Whitespace", read_whitespace, true },
    { "WhitespaceSplit", read_whitespace_split, true },
    { "BertPreTokenizer", read_bert, true },
    { "CharDelimiterSplit", read_delimiter, true },
    { "Metaspace", read_metaspace, false },
    { NULL, NULL, false }
};

enum lmq_status
lmq_hf_add_pre_tokenizer(struct lmq_tokenizer *t, const json_t *object,
                         struct lmq_error *err)
{
    static const struct kind kind = {"pre-tokenizer", "pretokenizers",
                                     pre_tokenizers};

    return read_with(&kind, t, object, 0, err);
}
