/*
 * corpus.c - texts -> documents -> windows.
 */
#include "config.h"

#include "runtime/tokenizer/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/inflate.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/text/buffer.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/tokenizer.h"

#define TEXT_MAX ((size_t)1 << 30)
#define TEXT_STEP ((size_t)1 << 16)

const struct lmq_name lmq_score_names[] = {
    {"all", false},
    {"second-half", true},
    {NULL, 0},
};

void
lmq_corpus_free(struct lmq_corpus *corpus)
{
    free(corpus->tokens);
    free(corpus->windows);
    free(corpus->crcs);
    *corpus = (struct lmq_corpus){0};
}

/* ---- Windows ---- */

enum lmq_status
lmq_corpus_add_window(struct lmq_corpus *corpus, int32_t bos,
                      const int32_t *ids, size_t n, size_t n_unscored,
                      struct lmq_error *err)
{
    size_t extra = bos >= 0 ? 1 : 0;

    if (lmq_mem_grow(&corpus->windows, &corpus->windows_capacity,
                     corpus->n_windows + 1, sizeof(struct lmq_window)) != 0 ||
        lmq_mem_grow(&corpus->tokens, &corpus->tokens_capacity,
                     corpus->n_tokens + n + extra, sizeof(int32_t)) != 0)
        return lmq_fail_nomem(err);
    struct lmq_window *window = &corpus->windows[corpus->n_windows++];
    *window = (struct lmq_window){.first = corpus->n_tokens,
                                  .n = n + extra,
                                  .scored = n_unscored + extra,
                                  .document = corpus->n_documents};
    if (window->scored == 0) /* nothing predicts the very first token */
        window->scored = 1;
    if (bos >= 0)
        corpus->tokens[corpus->n_tokens++] = bos;
    memcpy(corpus->tokens + corpus->n_tokens, ids, n * sizeof(*ids));
    corpus->n_tokens += n;
    corpus->n_scored += window->n - window->scored;
    return LMQ_OK;
}

/* Every token is predicted once: windows overlap by ctx - stride tokens, of
 * which only the new ones are counted. */
static enum lmq_status
cut_all(struct lmq_corpus *corpus, int32_t bos, const int32_t *ids, size_t n,
        const struct lmq_protocol *protocol, struct lmq_error *err)
{
    size_t room = protocol->context - (bos >= 0 ? 1 : 0);
    size_t done = 0, at = 0;
    enum lmq_status status = LMQ_OK;

    /* Without a begin token the last token before the window leads it. */
    size_t step = protocol->stride < protocol->context
                      ? protocol->stride
                      : room - (bos >= 0 ? 0 : 1);
    while (done < n && status == LMQ_OK) {
        size_t end = lmq_size_min(at + room, n);
        if (end - at > 1 || bos >= 0)
            status = lmq_corpus_add_window(corpus, bos, ids + at, end - at,
                                           done - at, err);
        done = end;
        at += step;
    }
    return status;
}

/* As llama-perplexity does: begin token and text in whole windows, the first
 * token of each replaced by the begin token, the second half counted. */
static enum lmq_status
cut_second_half(struct lmq_corpus *corpus, int32_t bos, const int32_t *ids,
                size_t n, const struct lmq_protocol *protocol,
                struct lmq_error *err)
{
    size_t context = protocol->context, lead = bos >= 0 ? 1 : 0;
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0; at + context <= n + lead && status == LMQ_OK;
         at += context)
        status = lmq_corpus_add_window(corpus, bos, ids + at, context - lead,
                                       context / 2 + 1 - lead, err);
    return status;
}

static enum lmq_status
add_document(struct lmq_corpus *corpus, int32_t bos, const int32_t *ids,
             size_t n, const struct lmq_protocol *protocol,
             struct lmq_error *err)
{
    size_t before = corpus->n_windows, whole = n;

    if (protocol->max_tokens > 0)
        n = lmq_size_min(n, protocol->max_tokens - corpus->n_read);
    corpus->n_read += n;
    enum lmq_status status =
        protocol->is_second_half
            ? cut_second_half(corpus, bos, ids, n, protocol, err)
            : cut_all(corpus, bos, ids, n, protocol, err);
    if (corpus->n_windows > before)
        corpus->n_documents++;
    else if (protocol->is_second_half && n == whole)
        corpus->n_short++;
    return status;
}

static enum lmq_status
check_not_empty(const struct lmq_corpus *corpus,
                const struct lmq_protocol *protocol, struct lmq_error *err)
{
    if (corpus->n_scored > 0)
        return LMQ_OK;
    if (protocol->is_second_half && protocol->context < 3) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 "the second half of a window of %zu tokens predicts none",
                 protocol->context);
        lmq_hint(err, "a larger .context");
        return LMQ_ERR_ARG;
    }
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             protocol->is_second_half
                 ? "the text is too short: it does not fill one window of %zu "
                   "tokens"
                 : "the text is too short: no token is left to predict in a "
                   "window of %zu",
             protocol->context);
    lmq_hint(err, "a longer text, or a smaller .context");
    return LMQ_ERR_FORMAT;
}

/* ---- Texts ---- */

/* For the next step, and for a 0 behind it. */
static enum lmq_status
make_room(struct lmq_buffer *text, struct lmq_error *err)
{
    if (text->n >= TEXT_MAX)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "is too long (at most %zu MiB are read)",
                        TEXT_MAX >> 20);
    return lmq_buffer_room(text, TEXT_STEP + 1) == NULL ? lmq_fail_nomem(err)
                                                        : LMQ_OK;
}

/* By hand: zlib's reader neither goes on after a signal nor tells what the
 * system said. */
static enum lmq_status
read_all(int fd, const struct lmq_progress *progress,
         struct lmq_buffer *text, struct lmq_error *err)
{
    for (;;) {
        enum lmq_status status = make_room(text, err);
        if (status != LMQ_OK)
            return status;
        ssize_t got = read(fd, text->bytes + text->n, TEXT_STEP);
        if (got < 0 && errno != EINTR)
            return lmq_fail_errno(err, "cannot read at offset %zu", text->n);
        if (got < 0) /* perhaps to end it */
            status = lmq_progress_report(progress, "reading", text->n, 0, err);
        if (status != LMQ_OK)
            return status;
        if (got == 0)
            return LMQ_OK;
        if (got > 0)
            text->n += (size_t)got;
    }
}

static bool
is_gzip(const unsigned char *bytes, size_t n)
{
    return n >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
}

static enum lmq_status
check_growth(size_t n_packed, size_t n, struct lmq_error *err)
{
    if (lmq_inflation_is_fair(n_packed, n))
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "is more than %d times as large unpacked", LMQ_MAX_INFLATION);
    lmq_hint(err, "unpack it with gzip -d");
    return LMQ_ERR_UNSUPPORTED;
}

/* Streams may follow each other; what is none ends the text. */
static enum lmq_status
inflate_all(z_stream *stream, size_t n_packed, struct lmq_buffer *text,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    int code = Z_OK;

    while (status == LMQ_OK &&
           (code != Z_STREAM_END ||
            is_gzip(stream->next_in, stream->avail_in))) {
        status = make_room(text, err);
        if (status != LMQ_OK)
            return status;
        if (code == Z_STREAM_END)
            inflateReset(stream);
        stream->next_out = text->bytes + text->n;
        stream->avail_out = TEXT_STEP;
        code = inflate(stream, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR)
            return lmq_fail_nomem(err);
        if (code != Z_OK && code != Z_STREAM_END)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "cannot be read to its end: damaged or truncated");
        text->n += TEXT_STEP - stream->avail_out;
        status = check_growth(n_packed, text->n, err);
    }
    return status;
}

static enum lmq_status
gunzip(const struct lmq_buffer *packed, struct lmq_buffer *text,
       struct lmq_error *err)
{
    z_stream stream = {.next_in = packed->bytes,
                       .avail_in = (uInt)packed->n};

    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        return lmq_fail_nomem(err);
    enum lmq_status status = inflate_all(&stream, packed->n, text, err);
    inflateEnd(&stream);
    return status;
}

/* *bytes is freed with free() by the caller, also after a failure. */
static enum lmq_status
read_text(const char *path, const struct lmq_progress *progress,
          unsigned char **bytes, size_t *n, struct lmq_error *err)
{
    struct lmq_buffer text = {0}, plain = {0};
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);

    struct stat info;
    if (fd < 0)
        return lmq_fail_errno(err, "cannot open");
    enum lmq_status status =
        fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)
            ? lmq_fail(err, LMQ_ERR_FORMAT, 0, "is a folder, expected a text")
            : read_all(fd, progress, &text, err);
    if (!is_stdin)
        close(fd);
    if (status == LMQ_OK && is_gzip(text.bytes, text.n)) {
        status = gunzip(&text, &plain, err);
        free(text.bytes);
        text = plain;
    }
    if (text.bytes != NULL)
        text.bytes[text.n] = 0;
    *bytes = text.bytes;
    *n = text.n;
    return status;
}

static enum lmq_status
check_text(const unsigned char *text, size_t n, struct lmq_error *err)
{
    const char *kind = lmq_binary_kind((const char *)text, n);
    size_t at = 0, line = 1;

    if (n == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is empty");
    if (kind != NULL) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0, "is %s, expected a text", kind);
        if (strcmp(kind, "UTF-16") == 0)
            lmq_hint(err, "iconv -f UTF-16 -t UTF-8 converts it");
        return LMQ_ERR_FORMAT;
    }
    while (at < n) {
        size_t length = lmq_utf8_length(text + at, n - at);
        if (length == 0) {
            lmq_fail(err, LMQ_ERR_FORMAT, at,
                     "is not UTF-8: byte %#x at offset %zu (line %zu)",
                     text[at], at, line);
            lmq_hint(err, "iconv -t UTF-8 converts texts");
            return LMQ_ERR_FORMAT;
        }
        line += text[at] == '\n';
        at += length;
    }
    return LMQ_OK;
}

static bool
is_blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The end of the paragraph that begins at `at`: where a blank line begins. */
static size_t
paragraph_end(const unsigned char *text, size_t at, size_t n)
{
    for (; at < n; at++) {
        size_t next = at + 1;
        if (text[at] != '\n')
            continue;
        while (next < n && text[next] != '\n' && is_blank(text[next]))
            next++;
        if (next >= n || text[next] == '\n')
            return at;
    }
    return n;
}

static size_t
count_blanks(struct lmq_chars text)
{
    size_t n = 0;

    while (n < text.n && text.p[n] == ' ')
        n++;
    return n;
}

/* Whether the tokenizer has put one before the text. */
static bool
adds_blank(const struct lmq_tokenizer *tokenizer, struct lmq_chars text,
           const struct lmq_ids *ids)
{
    size_t n = 0;

    for (size_t i = 0; i < ids->n; i++) {
        struct lmq_chars piece = lmq_tokenizer_piece(tokenizer, ids->ids[i]);
        size_t n_blanks = count_blanks(piece);
        n += n_blanks;
        if (n_blanks == 0 || n_blanks < piece.n)
            break;
    }
    return n > count_blanks(text);
}

/* Of a text that is much longer than what is asked for only the beginning is
 * encoded: so many bytes for each token, and some more. Its end is where the
 * text goes on, and so must be this far from the last token that counts. */
#define LEAD_PER_TOKEN 64
#define LEAD_MORE ((size_t)1 << 20)
#define LEAD_TOKENS 4096

/* The bytes of it, whole characters; n: all of the text. */
static size_t
lead_of(const unsigned char *text, size_t n, size_t n_tokens)
{
    size_t room = n < LEAD_MORE ? 0 : (n - LEAD_MORE) / LEAD_PER_TOKEN;

    if (n_tokens == 0 || n_tokens >= room)
        return n;
    size_t lead = LEAD_MORE + n_tokens * LEAD_PER_TOKEN;
    while (lead > 0 && (text[lead] & 0xc0) == 0x80)
        lead--;
    return lead;
}

/* The first n_tokens (0: all) of the text, and perhaps more. */
static enum lmq_status
encode_beginning(const struct lmq_tokenizer *tokenizer,
                 const unsigned char *text, size_t n, size_t n_tokens,
                 struct lmq_ids *ids, struct lmq_error *err)
{
    size_t lead = lead_of(text, n, n_tokens);
    enum lmq_status status = lmq_tokenizer_encode(
        tokenizer, (const char *)text, lead, 0, ids, err);

    if (status != LMQ_OK || lead == n || ids->n >= n_tokens + LEAD_TOKENS)
        return status;
    ids->n = 0;
    return lmq_tokenizer_encode(tokenizer, (const char *)text, n, 0, ids, err);
}

static enum lmq_status
encode_document(struct lmq_corpus *corpus,
                const struct lmq_tokenizer *tokenizer, int32_t bos,
                const unsigned char *text, size_t n,
                const struct lmq_protocol *protocol, struct lmq_error *err)
{
    struct lmq_ids ids = {0};
    size_t most = 0;

    if (protocol->max_tokens > 0) {
        most = protocol->max_tokens - corpus->n_read;
        if (most == 0)
            return LMQ_OK;
    }
    enum lmq_status status =
        encode_beginning(tokenizer, text, n, most, &ids, err);

    size_t before = corpus->n_windows;
    if (status == LMQ_OK)
        status = add_document(corpus, bos, ids.ids, ids.n, protocol, err);
    /* Without a begin token nothing predicts the one that has it. */
    if (corpus->n_windows > before && bos >= 0 &&
        corpus->windows[before].scored == 1)
        corpus->windows[before].adds_blank =
            adds_blank(tokenizer, lmq_chars(text, n), &ids);
    lmq_ids_clear(&ids);
    return status;
}

static enum lmq_status
encode_paragraphs(struct lmq_corpus *corpus,
                  const struct lmq_tokenizer *tokenizer, int32_t bos,
                  const unsigned char *text, size_t n,
                  const struct lmq_protocol *protocol, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0; at < n && status == LMQ_OK;) {
        if (is_blank(text[at])) {
            at++;
            continue;
        }
        size_t end = paragraph_end(text, at, n), last = end;
        while (at > 0 && text[at - 1] != '\n') /* its indentation */
            at--;
        if (text[last - 1] == '\r') /* half of the line's end */
            last--;
        status = encode_document(corpus, tokenizer, bos, text + at, last - at,
                                 protocol, err);
        at = end;
    }
    return status;
}

/* What messages call it. */
static const char *
name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

void
lmq_texts_free(struct lmq_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        free(texts->texts[i].bytes);
    free(texts->texts);
    *texts = (struct lmq_texts){0};
}

enum lmq_status
lmq_texts_read(const char *const *paths, size_t n_paths,
               const struct lmq_progress *progress, struct lmq_texts *texts,
               struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    *texts = (struct lmq_texts){0};
    texts->texts = calloc(n_paths + 1, sizeof(*texts->texts));
    if (texts->texts == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n_paths && status == LMQ_OK; i++) {
        struct lmq_text *text = &texts->texts[texts->n++];
        text->path = paths[i];
        status = read_text(paths[i], progress, &text->bytes, &text->n, err);
        if (status == LMQ_OK)
            status = check_text(text->bytes, text->n, err);
        if (status != LMQ_OK)
            lmq_error_in(err, name_of(paths[i]));
    }
    if (status != LMQ_OK)
        lmq_texts_free(texts);
    return status;
}

static enum lmq_status
add_text(struct lmq_corpus *corpus, const struct lmq_tokenizer *tokenizer,
         int32_t bos, const struct lmq_text *text,
         const struct lmq_protocol *protocol, struct lmq_error *err)
{
    size_t n = text->n;

    corpus->n_bytes += n;
    corpus->crc = lmq_crc32(corpus->crc, text->bytes, n);
    corpus->crcs[corpus->n_texts++] = lmq_crc32(0, text->bytes, n);
    /* llama-perplexity takes one line feed off the end. */
    if (protocol->is_second_half && n > 1 && text->bytes[n - 1] == '\n')
        n--;
    enum lmq_status status =
        (protocol->splits_documents ? encode_paragraphs : encode_document)(
            corpus, tokenizer, bos, text->bytes, n, protocol, err);
    if (status != LMQ_OK)
        lmq_error_in(err, name_of(text->path));
    return status;
}

enum lmq_status
lmq_corpus_from_texts(const struct lmq_tokenizer *tokenizer,
                      const struct lmq_texts *texts,
                      const struct lmq_protocol *protocol,
                      struct lmq_corpus *corpus, struct lmq_error *err)
{
    unsigned flags = lmq_tokenizer_default_flags(tokenizer);
    int32_t bos =
        flags & LMQ_ENCODE_BOS ? lmq_tokenizer_bos(tokenizer) : -1;
    enum lmq_status status = LMQ_OK;

    *corpus = (struct lmq_corpus){.has_bos = bos >= 0};
    corpus->crcs = calloc(texts->n + 1, sizeof(*corpus->crcs));
    if (corpus->crcs == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < texts->n && status == LMQ_OK; i++)
        status = add_text(corpus, tokenizer, bos, &texts->texts[i], protocol,
                          err);
    if (status == LMQ_OK)
        status = check_not_empty(corpus, protocol, err);
    if (status != LMQ_OK)
        lmq_corpus_free(corpus);
    return status;
}

/* ---- Raw ids ---- */

static uint64_t
load_id(const unsigned char *bytes, size_t width)
{
    return width == 2   ? lmq_load_u16le(bytes)
           : width == 4 ? lmq_load_u32le(bytes)
                        : lmq_load_u64le(bytes);
}

/* Below this few ids of a text are; above it no upper half of an id is. */
#define SMALL 16

/* Whether these are halves of something: each second one is 0, the others are
 * not all. Or most are small, or all ones as of -1, and the others are not: ids
 * of another vocabulary, which the range tells of. */
static bool
are_halves(const unsigned char *bytes, size_t n, size_t width)
{
    uint64_t ones = width == 2 ? UINT16_MAX : UINT32_MAX;
    size_t n_pairs = n / (2 * width), n_zero = 0, n_upper = 0, n_lower = 0;
    bool has_ids = false;

    for (size_t i = 0; i < n_pairs; i++) {
        uint64_t lower = load_id(bytes + 2 * width * i, width);
        uint64_t upper = load_id(bytes + 2 * width * i + width, width);
        n_zero += upper == 0;
        n_upper += upper < SMALL || upper == ones;
        n_lower += lower >= SMALL;
        has_ids |= lower != 0;
    }
    return (n_zero == n_pairs && has_ids) ||
           (n_upper >= n_pairs / 4 * 3 && n_lower >= n_pairs / 8 * 3);
}

/* Others write 32 bits or 64 whatever the vocabulary needs. Of less than so
 * many bytes nothing is concluded. */
#define WIDE_LEAST 64
#define MOST_WIDTH 8

static size_t
width_of_ids(const unsigned char *bytes, size_t n, size_t vocabulary)
{
    size_t width = vocabulary > 65536 ? 4 : 2;

    while (n >= WIDE_LEAST && width < MOST_WIDTH &&
           are_halves(bytes, n, width))
        width *= 2;
    return width;
}

enum lmq_status
lmq_corpus_from_ids(const char *path, size_t vocabulary, int32_t bos,
                    const struct lmq_protocol *protocol,
                    struct lmq_corpus *corpus, struct lmq_error *err)
{
    size_t n_bytes;
    unsigned char *bytes;

    *corpus = (struct lmq_corpus){.has_bos = bos >= 0};
    enum lmq_status status =
        lmq_file_load(path, TEXT_MAX, &bytes, &n_bytes, err);
    if (status != LMQ_OK)
        return status;
    size_t width = width_of_ids(bytes, n_bytes, vocabulary);
    size_t n = n_bytes / width;
    const char *kind = lmq_binary_kind((const char *)bytes, n_bytes);
    int32_t *ids = malloc((n + 1) * sizeof(*ids));
    if (ids == NULL)
        status = lmq_fail_nomem(err);
    else if (n_bytes % width != 0 || n == 0)
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "is %zu bytes, expected ids of %zu bytes each",
                          n_bytes, width);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        uint64_t id = load_id(bytes + width * i, width);
        if (id >= vocabulary)
            status = lmq_fail(err, LMQ_ERR_FORMAT, width * i,
                              "id %" PRIu64 " at offset %zu is not in the "
                              "vocabulary of %zu",
                              id, width * i, vocabulary);
        else
            ids[i] = (int32_t)id;
    }
    if (status == LMQ_OK) {
        corpus->n_bytes = n_bytes;
        corpus->crc = lmq_crc32(0, bytes, n_bytes);
        status = add_document(corpus, bos, ids, n, protocol, err);
    }
    if (status == LMQ_OK)
        status = check_not_empty(corpus, protocol, err);
    if (status == LMQ_ERR_FORMAT && kind != NULL)
        lmq_hint(err, "it looks like %s, which holds no raw ids", kind);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_corpus_free(corpus);
    }
    free(ids);
    free(bytes);
    return status;
}
