/*
 * diff_tokenizers.c - two tokenizers: their vocabularies, their special tokens,
 * and what they make of a text.
 */
#include "config.h"

#include "validate/diff/diff_tokenizers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "runtime/tokenizer/tokenizer.h"

/* How a text is normalized and split shows only in one that has what people
 * disagree about. */
static const char sample[] =
    "The quick brown fox's 3 jumps: 12345 + 6.78e-9!\n\n  \xc3\x9c"
    "n\xc3\xaf"
    "code nai\xcc\x88ve caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x99\x82"
    "\tint main(void) { return x[i++]; }   \r\n Don't WE'LL they'd\xc2\xa0"
    "end \xef\xac\x81 <s> ";

/* Bytes of pieces that become tokens at a time. */
#define TEXT_STEP 4096

bool
lmq_have_same_tokenizer_files(const struct lmq_checkpoint *a,
                              const struct lmq_checkpoint *b)
{
    bool is_same = a->n_blobs == b->n_blobs;

    for (size_t i = 0; i < a->n_blobs && is_same; i++)
        is_same = strcmp(a->blobs[i].name, b->blobs[i].name) == 0 &&
                  a->blobs[i].size == b->blobs[i].size &&
                  memcmp(a->blobs[i].bytes, b->blobs[i].bytes,
                         a->blobs[i].size) == 0;
    return is_same;
}

/* Takes over both values. */
static void
add_difference(json_t **differences, const char *key, json_t *a, json_t *b)
{
    json_t *difference = json_object();

    lmq_put(&difference, "key", json_string(key));
    lmq_put(&difference, "a", a);
    lmq_put(&difference, "b", b);
    lmq_append(differences, difference);
}

static void
add(json_t **differences, const char *key, json_t *a, json_t *b)
{
    if (!json_equal(a, b)) {
        add_difference(differences, key, a, b);
        return;
    }
    json_decref(a);
    json_decref(b);
}

static json_t *
token(const struct lmq_tokenizer *tokenizer, int32_t id)
{
    struct lmq_chars piece = lmq_tokenizer_piece(tokenizer, id);
    char text[256];

    snprintf(text, sizeof(text), "'%.*s'%s", (int)lmq_size_min(piece.n, 60),
             (const char *)piece.p,
             lmq_tokenizer_is_control(tokenizer, id) ? " (control)" : "");
    return lmq_json_text(text);
}

/* The first id that is not the same. */
static void
compare_vocabularies(const struct lmq_tokenizer *a,
                     const struct lmq_tokenizer *b, json_t **differences)
{
    int32_t id;
    char key[32];

    if (lmq_tokenizer_same_ids(a, b, &id))
        return;
    snprintf(key, sizeof(key), "token %" PRId32, id);
    add_difference(differences, key, token(a, id), token(b, id));
}

static int
compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y;
}

static json_t *
ends(const struct lmq_tokenizer *tokenizer)
{
    size_t n;
    const int32_t *ids = lmq_tokenizer_eos(tokenizer, &n);
    json_t *list = json_array();
    int32_t *sorted = calloc(n + 1, sizeof(*sorted));

    if (sorted == NULL) {
        json_decref(list);
        return NULL;
    }
    memcpy(sorted, ids, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_ids);
    for (size_t i = 0; i < n; i++)
        lmq_append(&list, json_integer(sorted[i]));
    free(sorted);
    return list;
}

static json_t *
list_ids(const struct lmq_ids *ids)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ids->n; i++)
        lmq_append(&list, json_integer(ids->ids[i]));
    return list;
}

/* Whether a text is the same tokens for both; the first that is not is a
 * difference. */
static enum lmq_status
compare_text(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
             const char *key, const char *text, size_t n, json_t **differences,
             struct lmq_error *err)
{
    struct lmq_ids x = {0}, y = {0};
    enum lmq_status status = lmq_tokenizer_encode(a, text, n, 0, &x, err);

    if (status == LMQ_OK)
        status = lmq_tokenizer_encode(b, text, n, 0, &y, err);
    if (status == LMQ_OK)
        add(differences, key, list_ids(&x), list_ids(&y));
    free(x.ids);
    free(y.ids);
    return status;
}

/* What is in the vocabulary, as text: so all merges and scores are used. */
static enum lmq_status
compare_pieces(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
               json_t **differences, struct lmq_error *err)
{
    size_t n = lmq_tokenizer_used(a), before = json_array_size(*differences);
    struct lmq_buffer text = {0};
    enum lmq_status status = LMQ_OK;

    for (size_t id = 0; id < n && status == LMQ_OK; id++) {
        struct lmq_chars piece = lmq_tokenizer_piece(a, (int32_t)id);
        if (!lmq_tokenizer_is_control(a, (int32_t)id) &&
            lmq_buffer_append(&text, piece.p, piece.n) != 0)
            status = lmq_fail_nomem(err);
        if (status != LMQ_OK || (text.n < TEXT_STEP && id + 1 < n))
            continue;
        if (text.n > 0)
            status = compare_text(a, b, "pieces", (const char *)text.bytes,
                                  text.n, differences, err);
        text.n = 0;
        if (json_array_size(*differences) > before)
            break;
    }
    lmq_buffer_free(&text);
    return status;
}

static enum lmq_status
compare(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
        json_t **differences, struct lmq_error *err)
{
    unsigned flags_a = lmq_tokenizer_default_flags(a);
    unsigned flags_b = lmq_tokenizer_default_flags(b);

    add(differences, "size", lmq_json_size(lmq_tokenizer_used(a)),
        lmq_json_size(lmq_tokenizer_used(b)));
    compare_vocabularies(a, b, differences);
    add(differences, "bos", json_integer(lmq_tokenizer_bos(a)),
        json_integer(lmq_tokenizer_bos(b)));
    add(differences, "eos", ends(a), ends(b));
    add(differences, "adds_bos", json_boolean(flags_a & LMQ_ENCODE_BOS),
        json_boolean(flags_b & LMQ_ENCODE_BOS));
    add(differences, "adds_eos", json_boolean(flags_a & LMQ_ENCODE_EOS),
        json_boolean(flags_b & LMQ_ENCODE_EOS));
    enum lmq_status status = compare_text(
        a, b, "sample", sample, sizeof(sample) - 1, differences, err);
    return status == LMQ_OK ? compare_pieces(a, b, differences, err) : status;
}

static bool
is_about_the_file(enum lmq_status status)
{
    return status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED;
}

/* One that cannot be opened cannot be compared, and so is not the same. */
static enum lmq_status
open_and_compare(const struct lmq_checkpoint *a,
                 const struct lmq_checkpoint *b, json_t **differences,
                 struct lmq_error *err)
{
    struct lmq_error errors[2] = {{0}, {0}};
    char texts[2][LMQ_ERROR_TEXT];
    struct lmq_tokenizer *first = NULL, *second = NULL;
    enum lmq_status x =
        lmq_tokenizer_open(a->blobs, a->n_blobs, &first, &errors[0]);
    enum lmq_status y =
        lmq_tokenizer_open(b->blobs, b->n_blobs, &second, &errors[1]);
    enum lmq_status status = LMQ_OK;

    if (x == LMQ_OK && y == LMQ_OK) {
        status = compare(first, second, differences, err);
    } else if ((x != LMQ_OK && !is_about_the_file(x)) ||
               (y != LMQ_OK && !is_about_the_file(y))) {
        bool is_first = x != LMQ_OK && !is_about_the_file(x);
        status = is_first ? x : y;
        lmq_fail_as(err, &errors[is_first ? 0 : 1]);
    } else {
        lmq_error_text(&errors[0], texts[0]);
        lmq_error_text(&errors[1], texts[1]);
        add_difference(differences, "unreadable", lmq_json_text(texts[0]),
                       lmq_json_text(texts[1]));
    }
    lmq_tokenizer_close(first);
    lmq_tokenizer_close(second);
    return status;
}

enum lmq_status
lmq_diff_tokenizers(const struct lmq_checkpoint *a,
                    const struct lmq_checkpoint *b, json_t **out,
                    struct lmq_error *err)
{
    bool in_a = a->n_blobs > 0, in_b = b->n_blobs > 0;
    json_t *json = json_object(), *differences = json_array();
    enum lmq_status status = LMQ_OK;

    if (in_a && in_b && !lmq_have_same_tokenizer_files(a, b))
        status = open_and_compare(a, b, &differences, err);
    bool is_equal = in_a == in_b && json_array_size(differences) == 0;
    lmq_put(&json, "equal",
            in_a || in_b ? json_boolean(is_equal) : json_null());
    lmq_put(&json, "in_a", json_boolean(in_a));
    lmq_put(&json, "in_b", json_boolean(in_b));
    lmq_put(&json, "differences", differences);
    *out = json;
    return status == LMQ_OK && json == NULL ? lmq_fail_nomem(err) : status;
}
