/*
 * json_cost.c - what a JSON text would take as a tree, told before it is one.
 */
#include "config.h"

#include "base/text/json_cost.h"

#include <inttypes.h>

#include "base/error.h"

/* Bytes of jansson's values on 64 bits, with what malloc adds and the room
 * that tables have to spare. Keys count as texts. */
#define OBJECT_BYTES 256
#define ARRAY_BYTES 160
#define TEXT_BYTES 96
#define ITEM_BYTES 48 /* a number, and its place */

/* The end of a text that begins at `at`, behind its quote. */
static size_t
skip_text(const unsigned char *json, size_t n, size_t at)
{
    while (at < n && json[at] != '"')
        at += json[at] == '\\' ? 2 : 1;
    return at < n ? at + 1 : n;
}

/* About as much as a tree would take, rather more. */
static uint64_t
tree_cost(const unsigned char *json, size_t n)
{
    uint64_t cost = ITEM_BYTES;

    for (size_t at = 0; at < n;) {
        size_t end;
        switch (json[at]) {
        case '"':
            end = skip_text(json, n, at + 1);
            cost += TEXT_BYTES + (uint64_t)(end - at);
            at = end;
            continue;
        case '{':
            cost += OBJECT_BYTES;
            break;
        case '[':
            cost += ARRAY_BYTES;
            break;
        case ',':
            cost += ITEM_BYTES;
            break;
        default:
            break;
        }
        at++;
    }
    return cost;
}

enum lmq_status
lmq_json_afford(const unsigned char *json, size_t n, struct lmq_error *err)
{
    uint64_t cost = tree_cost(json, n);
    uint64_t most = LMQ_JSON_FREE + LMQ_JSON_GROWTH * (uint64_t)n;

    if (most > LMQ_JSON_MOST)
        most = LMQ_JSON_MOST;
    if (cost <= most)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "JSON of %zu bytes would take %" PRIu64 " MB of memory, "
                    "at most %" PRIu64 " MB are given to it",
                    n, cost / 1000000, most / 1000000);
}

/* ---- Members one by one ---- */

size_t
lmq_json_skip_space(const char *json, size_t n, size_t at)
{
    while (at < n && (json[at] == ' ' || json[at] == '\t' ||
                      json[at] == '\n' || json[at] == '\r'))
        at++;
    return at;
}

size_t
lmq_json_member(const char *json, size_t n, size_t at, size_t *end)
{
    size_t depth = 0;

    at = lmq_json_skip_space(json, n, at);
    for (*end = at; *end < n; ++*end) {
        char c = json[*end];
        if (c == '"') {
            *end = skip_text((const unsigned char *)json, n, *end + 1) - 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                break;
            depth--;
        } else if (c == ',' && depth == 0) {
            break;
        }
    }
    return at;
}
