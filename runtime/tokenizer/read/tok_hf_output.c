/*
 * tok_hf_output.c - decoders and post-processors of tokenizer.json.
 *
 * Decoders are described as what a piece is replaced by and what is stripped
 * at the beginning; a chain that is not that is refused.
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/read/tok_json.h"
#include "runtime/tokenizer/tokenizer.h"

#define MAX_NESTING 8

/* ---- Decoders ---- */

/* From Fuse on the pieces are one text; what reads pieces of bytes, and those
 * in GPT-2's letters. */
struct chain {
    bool is_fused, reads_bytes, reads_letters;
};

static enum lmq_status
add_replace(struct lmq_tokenizer *t, const struct chain *chain,
            const json_t *object, struct lmq_error *err)
{
    const json_t *from =
        json_object_get(json_object_get(object, "pattern"), "String");
    const json_t *to = json_object_get(object, "content");
    struct lmq_chars text = lmq_json_chars(from);

    if (!json_is_string(from) || !json_is_string(to))
        return lmq_json_refuse("decoder", "Replace with a Regex", err);
    if (chain->is_fused && lmq_utf8_length(text.p, text.n) != text.n)
        return lmq_json_refuse("decoder", "Replace of a text after Fuse", err);
    return lmq_pipeline_replace(t, text, lmq_json_chars(to), err);
}

static enum lmq_status
add_strip(struct lmq_tokenizer *t, const struct chain *chain,
          const json_t *object, struct lmq_error *err)
{
    json_int_t start = json_integer_value(json_object_get(object, "start"));
    json_int_t stop = json_integer_value(json_object_get(object, "stop"));
    struct lmq_chars content =
        lmq_json_chars(json_object_get(object, "content"));

    if (start == 0 && stop == 0)
        return LMQ_OK;
    if (!chain->is_fused || start != 1 || stop != 0 ||
        t->strip != LMQ_STRIP_NONE ||
        !lmq_chars_equal(content, lmq_chars(" ", 1)))
        return lmq_json_refuse("decoder",
                               "Strip of anything but the first space", err);
    t->strip = LMQ_STRIP_FIRST;
    return LMQ_OK;
}

static enum lmq_status
add_metaspace(struct lmq_tokenizer *t, const struct chain *chain,
              const json_t *object, struct lmq_error *err)
{
    const json_t *scheme = json_object_get(object, "prepend_scheme");
    const char *name = json_string_value(scheme);
    bool prepends = true;
    enum lmq_status status = LMQ_OK;

    if (scheme == NULL)
        status = lmq_json_bool(object, "add_prefix_space", true, &prepends,
                               err);
    else
        prepends = name == NULL || strcmp(name, "never") != 0;
    if (status != LMQ_OK)
        return status;
    if (prepends && chain->is_fused)
        return lmq_json_refuse("decoder", "Metaspace after Fuse", err);
    status = lmq_pipeline_replace(
        t, lmq_json_chars(json_object_get(object, "replacement")),
        lmq_chars(" ", 1), err);
    if (status == LMQ_OK && prepends) {
        t->strip = LMQ_STRIP_MARKS;
        t->replacements[t->n_replacements - 1].drops_first = true;
    }
    return status;
}

static enum lmq_status
add_decoder(struct lmq_tokenizer *t, struct chain *chain,
            const json_t *object, int depth, struct lmq_error *err)
{
    const char *type = lmq_json_type(object);
    enum lmq_status status = LMQ_OK;

    if (depth > MAX_NESTING)
        return lmq_json_refuse("decoder", "nested too deep", err);
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(object, "decoders");
        for (size_t i = 0; i < json_array_size(list) && status == LMQ_OK; i++)
            status = add_decoder(t, chain, json_array_get(list, i), depth + 1,
                                 err);
        return status;
    }
    if (strcmp(type, "Fuse") == 0) {
        chain->is_fused = true;
        return LMQ_OK;
    }
    if (strcmp(type, "Replace") == 0)
        return add_replace(t, chain, object, err);
    if (strcmp(type, "Strip") == 0)
        return add_strip(t, chain, object, err);
    if (strcmp(type, "Metaspace") == 0)
        return add_metaspace(t, chain, object, err);
    /* Byte pieces decode to their byte, letters were unmapped when read. */
    if (strcmp(type, "ByteFallback") == 0 && t->model.falls_back_to_bytes &&
        !chain->is_fused) {
        chain->reads_bytes = true;
        return LMQ_OK;
    }
    if (strcmp(type, "ByteLevel") == 0 && t->is_byte_level) {
        chain->reads_letters = true;
        return LMQ_OK;
    }
    return lmq_json_refuse("decoder", type, err);
}

static bool
has_bytes(const struct lmq_vocab *vocab)
{
    bool has = false;

    for (size_t i = 0; i < 256; i++)
        has |= vocab->byte_ids[i] >= 0;
    return has;
}

enum lmq_status
lmq_hf_add_decoder(struct lmq_tokenizer *t, const json_t *object,
                   struct lmq_error *err)
{
    struct chain chain = { 0 };

    t->has_no_decoder = object == NULL || json_is_null(object);
    if (t->has_no_decoder)
        return LMQ_OK;
    enum lmq_status status = add_decoder(t, &chain, object, 0, err);
    if (status == LMQ_OK && t->is_byte_level && !chain.reads_letters)
        return lmq_json_refuse("decoder", "chain without ByteLevel", err);
    if (status == LMQ_OK && has_bytes(&t->vocab) && !chain.reads_bytes)
        return lmq_json_refuse("decoder", "chain without ByteFallback", err);
    return status;
}

/* ---- Post-processors ---- */

static enum lmq_status
add_mark(struct lmq_tokenizer *t, struct lmq_marks *marks,
         const json_t *number, struct lmq_error *err)
{
    json_int_t id = json_integer_value(number);

    if (!json_is_integer(number) || id < 0 || (uint64_t)id >= t->vocab.n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the post-processor adds an id that is no token's");
    if (marks->n >= LMQ_TOKENIZER_MAX_MARKS)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the post-processor adds more than %d tokens",
                        LMQ_TOKENIZER_MAX_MARKS);
    marks->ids[marks->n++] = (int32_t)id;
    return LMQ_OK;
}

static enum lmq_status
add_template(struct lmq_tokenizer *t, const json_t *object,
             struct lmq_error *err)
{
    const json_t *single = json_object_get(object, "single");
    const json_t *tokens = json_object_get(object, "special_tokens");
    bool was_text = false;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < json_array_size(single) && status == LMQ_OK; i++) {
        const json_t *item = json_array_get(single, i);
        const json_t *special = json_object_get(item, "SpecialToken");
        const char *name = json_string_value(json_object_get(special, "id"));
        if (json_object_get(item, "Sequence") != NULL) {
            if (was_text)
                return lmq_json_refuse("post-processor",
                                       "template with two texts", err);
            was_text = true;
            continue;
        }
        const json_t *ids = name == NULL
                                ? NULL
                                : json_object_get(
                                      json_object_get(tokens, name), "ids");
        if (!json_is_array(ids))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the template names a token without ids");
        for (size_t k = 0; k < json_array_size(ids) && status == LMQ_OK; k++)
            status = add_mark(t, was_text ? &t->suffix : &t->prefix,
                              json_array_get(ids, k), err);
    }
    if (status == LMQ_OK && !was_text)
        return lmq_json_refuse("post-processor", "template without the text",
                               err);
    return status;
}

/* ["</s>", 2] at both ends, for RoBERTa and BERT. */
static enum lmq_status
add_pair(struct lmq_tokenizer *t, const json_t *object, struct lmq_error *err)
{
    enum lmq_status status =
        add_mark(t, &t->prefix,
                 json_array_get(json_object_get(object, "cls"), 1), err);

    return status != LMQ_OK
               ? status
               : add_mark(t, &t->suffix,
                          json_array_get(json_object_get(object, "sep"), 1),
                          err);
}

static enum lmq_status
add_post_processor(struct lmq_tokenizer *t, const json_t *object, int depth,
                   struct lmq_error *err)
{
    const char *type = lmq_json_type(object);
    enum lmq_status status = LMQ_OK;

    if (depth > MAX_NESTING)
        return lmq_json_refuse("post-processor", "nested too deep", err);
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(object, "processors");
        for (size_t i = 0; i < json_array_size(list) && status == LMQ_OK; i++)
            status = add_post_processor(t, json_array_get(list, i), depth + 1,
                                        err);
        return status;
    }
    /* ByteLevel's only trims offsets. */
    if (strcmp(type, "ByteLevel") == 0)
        return LMQ_OK;
    if (t->has_template)
        return lmq_json_refuse("post-processor", "second template", err);
    t->has_template = true;
    if (strcmp(type, "TemplateProcessing") == 0)
        return add_template(t, object, err);
    if (strcmp(type, "RobertaProcessing") == 0 ||
        strcmp(type, "BertProcessing") == 0)
        return add_pair(t, object, err);
    return lmq_json_refuse("post-processor", type, err);
}

enum lmq_status
lmq_hf_add_post_processor(struct lmq_tokenizer *t, const json_t *object,
                          struct lmq_error *err)
{
    if (object == NULL || json_is_null(object))
        return LMQ_OK;
    t->has_post_processor = true;
    enum lmq_status status = add_post_processor(t, object, 0, err);
    if (status != LMQ_OK)
        return status;
    if (t->prefix.n == 1)
        t->bos = t->prefix.ids[0];
    if (t->suffix.n == 1)
        lmq_marks_add(&t->eos, t->suffix.ids[0]);
    t->default_flags = (t->prefix.n > 0 ? LMQ_ENCODE_BOS : 0u) |
                       (t->suffix.n > 0 ? LMQ_ENCODE_EOS : 0u);
    return LMQ_OK;
}
