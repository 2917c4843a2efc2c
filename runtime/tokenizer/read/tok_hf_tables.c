/*
 * tok_hf_tables.c - the vocabulary and the merges of a tokenizer.json, and the
 * vocabulary of a tekken.json.
 */
#include "config.h"

#include "runtime/tokenizer/read/tok_hf_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/json_cost.h"
#include "base/text/utf8.h"

/* What stands in the file for a value. */
struct range {
    size_t at, end;
};

/* ---- Words of JSON ---- */

struct walk {
    const unsigned char *json;
    size_t at, end;
    size_t size; /* of the whole file */
    struct lmq_hf_tables *tables;
};

static void
skip_space(struct walk *w)
{
    w->at = lmq_json_skip_space((const char *)w->json, w->end, w->at);
}

/* White space and this character, if it comes next. */
static bool
take(struct walk *w, char c)
{
    skip_space(w);
    if (w->at == w->end || w->json[w->at] != (unsigned char)c)
        return false;
    w->at++;
    return true;
}

/* Four digits behind "\u". */
static bool
take_unit(struct walk *w, uint32_t *unit)
{
    *unit = 0;
    if (w->end - w->at < 6 || w->json[w->at] != '\\' ||
        w->json[w->at + 1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        unsigned char c = w->json[w->at + i], letter = c | 0x20;
        if (c >= '0' && c <= '9')
            *unit = *unit << 4 | (uint32_t)(c - '0');
        else if (letter >= 'a' && letter <= 'f')
            *unit = *unit << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return false;
    }
    w->at += 6;
    return true;
}

/* An escape, as bytes at `to`: at most as many as it has itself. */
static bool
take_escape(struct walk *w, unsigned char *to, size_t *n)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;

    if (w->end - w->at < 2)
        return false;
    const char *name = w->json[w->at + 1] == 0
                           ? NULL
                           : strchr(names, w->json[w->at + 1]);
    if (name != NULL) {
        to[0] = (unsigned char)values[name - names];
        w->at += 2;
        *n = 1;
        return true;
    }
    if (!take_unit(w, &code) || code == 0 || (code & 0xfc00) == 0xdc00)
        return false;
    if ((code & 0xfc00) == 0xd800) {
        if (!take_unit(w, &low) || (low & 0xfc00) != 0xdc00)
            return false;
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    *n = lmq_utf8_encode(code, to);
    return true;
}

/* The text up to the quote, from `from` on, with escapes. There is room for
 * all that the file has, wherever its tables stand. */
static bool
take_escaped(struct walk *w, size_t from, struct lmq_chars *text)
{
    struct lmq_hf_tables *tables = w->tables;

    if (tables->texts == NULL)
        tables->texts = malloc(w->size);
    if (tables->texts == NULL)
        return false;
    unsigned char *to = tables->texts + tables->n_texts;
    size_t n = w->at - from;
    memcpy(to, w->json + from, n);
    while (w->at < w->end && w->json[w->at] != '"') {
        size_t more = 1;
        if (w->json[w->at] < 0x20)
            return false;
        if (w->json[w->at] != '\\')
            to[n] = w->json[w->at++];
        else if (!take_escape(w, to + n, &more))
            return false;
        n += more;
    }
    *text = lmq_chars(to, n);
    tables->n_texts += n;
    return true;
}

static bool
take_text(struct walk *w, struct lmq_chars *text)
{
    unsigned char all = 0;

    if (!take(w, '"'))
        return false;
    size_t from = w->at;
    while (w->at < w->end && w->json[w->at] >= 0x20 &&
           w->json[w->at] != '"' && w->json[w->at] != '\\')
        all |= w->json[w->at++];
    *text = lmq_chars(w->json + from, w->at - from);
    if (w->at < w->end && w->json[w->at] == '\\') {
        all = 0x80;
        if (!take_escaped(w, from, text))
            return false;
    }
    if (w->at == w->end || w->json[w->at] != '"')
        return false;
    w->at++;
    return all < 0x80 || lmq_is_utf8(text->p, text->n);
}

static bool
take_id(struct walk *w, uint64_t *id)
{
    size_t from;

    skip_space(w);
    *id = 0;
    for (from = w->at; w->at < w->end && w->at - from < 10 &&
                       w->json[w->at] >= '0' && w->json[w->at] <= '9';
         w->at++)
        *id = *id * 10 + (uint64_t)(w->json[w->at] - '0');
    return w->at > from && (w->json[from] != '0' || w->at == from + 1);
}

/* One that nobody wants to know, which may have the character 0. */
static bool
skip_text(struct walk *w)
{
    static const char zero[] = "\\u0000";
    const size_t n = sizeof(zero) - 1;
    unsigned char ignored[4];
    size_t n_ignored;

    if (!take(w, '"'))
        return false;
    size_t from = w->at;
    while (w->at < w->end && w->json[w->at] >= 0x20 &&
           w->json[w->at] != '"') {
        if (w->json[w->at] != '\\')
            w->at++;
        else if (w->end - w->at >= n && memcmp(w->json + w->at, zero, n) == 0)
            w->at += n;
        else if (!take_escape(w, ignored, &n_ignored))
            return false;
    }
    if (w->at == w->end || w->json[w->at] != '"')
        return false;
    return lmq_is_utf8(w->json + from, w->at++ - from);
}

/* ---- Tables ---- */

static bool
take_piece(struct walk *w, struct lmq_hf_entry *entry)
{
    return take_text(w, &entry->text) && take(w, ':') &&
           take_id(w, &entry->id);
}

static bool
take_merge(struct walk *w, struct lmq_hf_entry *entry)
{
    if (!take(w, '['))
        return take_text(w, &entry->text);
    return take_text(w, &entry->text) && take(w, ',') &&
           take_text(w, &entry->right) && take(w, ']');
}

static bool
take_key(struct walk *w, const char *name)
{
    struct lmq_chars text;

    return take_text(w, &text) &&
           lmq_chars_equal(text, lmq_chars(name, strlen(name))) &&
           take(w, ':');
}

static bool
skip_null(struct walk *w)
{
    static const char null[] = "null";
    const size_t n = sizeof(null) - 1;

    skip_space(w);
    if (w->end - w->at < n || memcmp(w->json + w->at, null, n) != 0)
        return false;
    w->at += n;
    return true;
}

static bool
take_rank(struct walk *w, struct lmq_hf_entry *entry)
{
    return take(w, '{') && take_key(w, "rank") && take_id(w, &entry->id) &&
           take(w, ',') && take_key(w, "token_bytes") &&
           take_text(w, &entry->text) && take(w, ',') &&
           take_key(w, "token_str") && (skip_null(w) || skip_text(w)) &&
           take(w, '}');
}

/* All entries between two brackets, and nothing behind these. */
static bool
take_table(struct walk *w, struct lmq_hf_table *table, const char brackets[2],
           bool (*take_entry)(struct walk *w, struct lmq_hf_entry *entry))
{
    if (!take(w, brackets[0]))
        return false;
    do {
        struct lmq_hf_entry entry = {.right = {.p = NULL}};
        if (!take_entry(w, &entry) ||
            lmq_mem_grow(&table->entries, &table->capacity, table->n + 1,
                         sizeof(table->entries[0])) != 0)
            return false;
        table->entries[table->n++] = entry;
    } while (take(w, ','));
    if (!take(w, brackets[1]))
        return false;
    skip_space(w);
    return w->at == w->end;
}

/* A key that comes twice is an error, which is found as others find it. */
static bool
has_twice(const struct lmq_hf_table *table)
{
    size_t n_slots = 16;

    while (n_slots < 2 * table->n)
        n_slots *= 2;
    uint32_t *slots = calloc(n_slots, sizeof(*slots));
    bool is_twice = slots == NULL;
    for (size_t i = 0; i < table->n && !is_twice; i++) {
        struct lmq_chars text = table->entries[i].text;
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (size_t j = 0; j < text.n; j++)
            hash = (hash ^ text.p[j]) * UINT64_C(0x100000001b3);
        size_t at = (size_t)(hash ^ hash >> 32) & (n_slots - 1);
        while (slots[at] != 0 && !is_twice) {
            is_twice =
                lmq_chars_equal(text, table->entries[slots[at] - 1].text);
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = (uint32_t)i + 1;
    }
    free(slots);
    return is_twice;
}

/* ---- Where they stand ---- */

/* The value of the first member `name` of the object that begins in `in`. */
static bool
find_member(const struct lmq_blob *blob, struct range in, const char *name,
            struct range *found)
{
    const char *json = (const char *)blob->bytes;
    size_t n = strlen(name), at = lmq_json_skip_space(json, in.end, in.at);
    size_t end;

    if (at == in.end || json[at] != '{')
        return false;
    for (end = at; end < in.end && (end == at || json[end] == ',');) {
        size_t from = lmq_json_member(json, in.end, end + 1, &end);
        if (end - from < n + 2 || json[from] != '"' ||
            memcmp(json + from + 1, name, n) != 0 || json[from + 1 + n] != '"')
            continue;
        from = lmq_json_skip_space(json, end, from + n + 2);
        if (from == end || json[from] != ':')
            return false;
        *found = (struct range){from + 1, end};
        return true;
    }
    return false;
}

/* The file with null in place of the ranges, which are in order. */
static bool
cut_out(const struct lmq_blob *blob, const struct range *cut, size_t n_cut,
        struct lmq_blob *rest)
{
    unsigned char *bytes = malloc(blob->size + 4 * n_cut);
    size_t n = 0, at = 0;

    if (bytes == NULL)
        return false;
    for (size_t i = 0; i < n_cut; i++) {
        memcpy(bytes + n, blob->bytes + at, cut[i].at - at);
        n += cut[i].at - at;
        memcpy(bytes + n, "null", 4);
        n += 4;
        at = cut[i].end;
    }
    memcpy(bytes + n, blob->bytes + at, blob->size - at);
    *rest = *blob;
    rest->bytes = bytes;
    rest->size = n + blob->size - at;
    return true;
}

bool
lmq_hf_tables_read(const struct lmq_blob *blob, struct lmq_hf_tables *tables)
{
    struct range all = {0, blob->size}, model, pieces, merges;
    struct walk w = {
        .json = blob->bytes, .size = blob->size, .tables = tables};

    memset(tables, 0, sizeof(*tables));
    if (!find_member(blob, all, "model", &model) ||
        !find_member(blob, model, "vocab", &pieces) ||
        !find_member(blob, model, "merges", &merges))
        return false;
    w.at = pieces.at;
    w.end = pieces.end;
    bool is_read = take_table(&w, &tables->pieces, "{}", take_piece) &&
                   !has_twice(&tables->pieces);
    w.at = merges.at;
    w.end = merges.end;
    const struct range in_order[] = {pieces.at < merges.at ? pieces : merges,
                                     pieces.at < merges.at ? merges : pieces};
    if (is_read && take_table(&w, &tables->merges, "[]", take_merge) &&
        cut_out(blob, in_order, 2, &tables->rest))
        return true;
    lmq_hf_tables_free(tables);
    return false;
}

bool
lmq_tekken_table_read(const struct lmq_blob *blob,
                      struct lmq_hf_tables *tables)
{
    struct range all = {0, blob->size}, ranks;
    struct walk w = {
        .json = blob->bytes, .size = blob->size, .tables = tables};

    memset(tables, 0, sizeof(*tables));
    if (!find_member(blob, all, "vocab", &ranks))
        return false;
    w.at = ranks.at;
    w.end = ranks.end;
    if (take_table(&w, &tables->pieces, "[]", take_rank) &&
        cut_out(blob, &ranks, 1, &tables->rest))
        return true;
    lmq_hf_tables_free(tables);
    return false;
}

void
lmq_hf_tables_free(struct lmq_hf_tables *tables)
{
    free(tables->pieces.entries);
    free(tables->merges.entries);
    free(tables->texts);
    free((unsigned char *)(uintptr_t)tables->rest.bytes);
    memset(tables, 0, sizeof(*tables));
}
