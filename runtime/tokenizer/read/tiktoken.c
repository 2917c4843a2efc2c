/*
 * tiktoken.c - reads tiktoken's ranks: lines of "base64 rank".
 *
 * The file says neither how text is split nor which special tokens there are;
 * both follow from which vocabulary it is, and that from its size.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

struct special {
    const char *name; /* %d is the number of the token within the row */
    int32_t first, n;
    int start; /* the first number */
};

struct encoding {
    const char *name;
    int32_t n_ranks; /* one more than the largest */
    const char *pattern;
    int32_t bos, eos, also_eos;
    struct special special[8]; /* none: ids behind the ranks are reserved, and
                                  named by another file */
};

/* As many as are reserved where they are. */
#define N_RESERVED 256

static const struct encoding encodings[] = {
    { "Llama 3", 128000, lmq_pattern_llama3, 128000, 128001, 128009,
      { { "<|begin_of_text|>", 128000, 1, 0 },
        { "<|end_of_text|>", 128001, 1, 0 },
        { "<|reserved_special_token_%d|>", 128002, 4, 0 },
        { "<|start_header_id|>", 128006, 1, 0 },
        { "<|end_header_id|>", 128007, 1, 0 },
        { "<|reserved_special_token_%d|>", 128008, 1, 4 },
        { "<|eot_id|>", 128009, 1, 0 },
        { "<|reserved_special_token_%d|>", 128010, 246, 5 } } },
    { "r50k_base", 50256, lmq_pattern_gpt2, -1, 50256, -1,
      { { "<|endoftext|>", 50256, 1, 0 } } },
    { "cl100k_base", 100256, lmq_pattern_llama3, -1, 100257, -1,
      { { "<|endoftext|>", 100257, 1, 0 },
        { "<|fim_prefix|>", 100258, 1, 0 },
        { "<|fim_middle|>", 100259, 1, 0 },
        { "<|fim_suffix|>", 100260, 1, 0 },
        { "<|endofprompt|>", 100276, 1, 0 } } },
    { "o200k_base", 199998, lmq_pattern_gpt4o, -1, 199999, -1,
      { { "<|endoftext|>", 199999, 1, 0 },
        { "<|endofprompt|>", 200018, 1, 0 } } },
    { "Qwen", 151643, lmq_pattern_qwen2, -1, 151643, 151645,
      { { "<|endoftext|>", 151643, 1, 0 },
        { "<|im_start|>", 151644, 1, 0 },
        { "<|im_end|>", 151645, 1, 0 },
        { "<|extra_%d|>", 151646, 205, 0 } } },
    { "Kimi", 163584, lmq_pattern_kimi, -1, 163585, -1, { { 0 } } },
};

/* ---- Lines ---- */

/* One line from *at on, which moves behind it. */
static bool
read_line(struct lmq_chars in, size_t *at, struct lmq_buffer *bytes,
          uint64_t *rank)
{
    size_t i = *at, first;

    while (i < in.n && in.p[i] != ' ' && in.p[i] != '\n')
        i++;
    bytes->n = 0;
    if (i == in.n || in.p[i] != ' ' ||
        lmq_base64_decode(lmq_chars(in.p + *at, i - *at), bytes) != 0 ||
        bytes->n == 0)
        return false;
    first = ++i;
    *rank = 0;
    for (; i < in.n && in.p[i] >= '0' && in.p[i] <= '9' && i - first < 9; i++)
        *rank = *rank * 10 + (uint64_t)(in.p[i] - '0');
    if (i == first)
        return false;
    if (i < in.n && in.p[i] == '\r')
        i++;
    if (i < in.n && in.p[i++] != '\n')
        return false;
    *at = i;
    return true;
}

bool
lmq_tiktoken_recognises(const struct lmq_blob *blob)
{
    struct lmq_buffer bytes = { 0 };
    uint64_t rank;
    size_t at = 0;
    /* A first line is short, whatever follows. */
    size_t n = blob->size < 4096 ? blob->size : 4096;
    bool is_line = read_line(lmq_chars(blob->bytes, n), &at, &bytes, &rank);

    lmq_buffer_free(&bytes);
    return is_line;
}

static enum lmq_status
read_ranks(struct lmq_tokenizer *t, const struct lmq_blob *blob,
           struct lmq_error *err)
{
    struct lmq_chars in = lmq_chars(blob->bytes, blob->size);
    struct lmq_buffer bytes = { 0 };
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0; at < in.n && status == LMQ_OK;) {
        uint64_t rank;
        size_t begin = at;
        if (!read_line(in, &at, &bytes, &rank))
            status = lmq_fail(err, LMQ_ERR_FORMAT, begin,
                              "tiktoken: the line at offset %zu is not "
                              "\"base64 rank\"", begin);
        else
            status = lmq_vocab_set(&t->vocab, rank,
                                   lmq_chars(bytes.bytes, bytes.n),
                                   LMQ_PIECE_NORMAL, -(double)rank, true, err);
    }
    lmq_buffer_free(&bytes);
    return status;
}

/* ---- What the file does not say ---- */

static enum lmq_status
add_special(struct lmq_tokenizer *t, const struct special *special,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (int i = 0; i < special->n && status == LMQ_OK; i++) {
        char name[64];
        const char *number = strstr(special->name, "%d");
        int n_before =
            (int)(number == NULL ? strlen(special->name)
                                 : (size_t)(number - special->name));
        if (number == NULL)
            snprintf(name, sizeof(name), "%s", special->name);
        else
            snprintf(name, sizeof(name), "%.*s%d%s", n_before, special->name,
                     special->start + i, number + 2);
        struct lmq_chars text = lmq_chars(name, strlen(name));
        struct lmq_added_token token = { .id = special->first + i,
                                         .is_special = true };
        status = lmq_vocab_set(&t->vocab, (uint64_t)token.id, text,
                               LMQ_PIECE_CONTROL, 0, false, err);
        if (status == LMQ_OK)
            status = lmq_added_add(&t->added, token, text, err);
    }
    return status;
}

enum lmq_status
lmq_tiktoken_read(struct lmq_tokenizer *t, const struct lmq_blob *blob,
                  struct lmq_error *err)
{
    const struct encoding *encoding = NULL;
    enum lmq_status status = read_ranks(t, blob, err);

    if (status != LMQ_OK)
        return status;
    for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++)
        if ((size_t)encodings[i].n_ranks == t->vocab.n)
            encoding = &encodings[i];
    if (encoding == NULL) {
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "tiktoken: %zu ranks are no vocabulary that is "
                          "known here", t->vocab.n);
        lmq_hint(err, "use the model's tokenizer.json");
        return status;
    }
    for (size_t i = 0; i < 8 && encoding->special[i].name != NULL &&
                       status == LMQ_OK; i++)
        status = add_special(t, &encoding->special[i], err);
    t->first_reserved = encoding->n_ranks;
    t->n_reserved = encoding->special[0].name == NULL ? N_RESERVED : 0;
    if (status == LMQ_OK && t->n_reserved == 0) /* else: tok_config.c */
        status = lmq_vocab_index(&t->vocab, err);
    if (status == LMQ_OK)
        status = lmq_pipeline_split_at(
            t, lmq_chars(encoding->pattern, strlen(encoding->pattern)), false,
            LMQ_SPLIT_ISOLATED, false, err);
    t->is_byte_level = true;
    t->model.starts_from_bytes = true;
    t->model.prefers_whole = true;
    t->bos = encoding->bos;
    lmq_marks_add(&t->eos, encoding->eos);
    if (encoding->also_eos >= 0)
        lmq_marks_add(&t->eos, encoding->also_eos);
    t->default_flags = t->bos >= 0 ? LMQ_ENCODE_BOS : 0;
    return status;
}
