/*
 * report.c - reads and writes report trees: jansson keeps and prints them as
 * JSON, libyaml prints them as YAML.
 */
#include "config.h"

#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/text/buffer.h"
#include "base/text/json_cost.h"

/* Enough digits that every float32 comes back. */
#define REAL_DIGITS 9

/* ---- Building ---- */

static void
drop(json_t **tree)
{
    json_decref(*tree);
    *tree = NULL;
}

void
lmq_put(json_t **object, const char *key, json_t *value)
{
    /* Takes over the value also if it fails, or if either is NULL. */
    if (json_object_set_new(*object, key, value) != 0)
        drop(object);
}

void
lmq_append(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) != 0)
        drop(array);
}

void
lmq_put_name(json_t **object, const char *key, const struct lmq_name *names,
             int64_t value)
{
    lmq_put(object, key, json_string(lmq_names_of(names, value)));
}

enum lmq_status
lmq_report_finish(json_t *json, struct lmq_report **report,
                  struct lmq_error *err)
{
    if (report != NULL)
        *report = (struct lmq_report *)json;
    else
        json_decref(json);
    return json == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_report_approved(json_t *json, const struct lmq_progress *progress,
                    struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_report *made;
    enum lmq_status status = lmq_report_finish(json, &made, err);

    if (status == LMQ_OK)
        status = lmq_progress_approve(progress, made, err);
    if (status == LMQ_OK && report != NULL)
        *report = made;
    else
        lmq_report_free(made);
    return status;
}

json_t *
lmq_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

double
lmq_json_reread(double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.*g", REAL_DIGITS, value);
    return strtod(text, NULL);
}

json_t *
lmq_json_size(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value)
                              : json_real((double)value);
}

json_t *
lmq_json_crc(uint32_t crc)
{
    char text[9];

    snprintf(text, sizeof(text), "%08" PRIx32, crc);
    return json_string(text);
}

json_t *
lmq_json_text(const char *text)
{
    size_t n = 4 * strlen(text) + 1;
    char *plain = malloc(n);

    if (plain == NULL)
        return NULL;
    lmq_printable(plain, n, text);
    json_t *value = json_string(plain);
    free(plain);
    return value;
}

/* ---- Reading ---- */

/*
 * jansson's lexer drops a character that it has no memory for, and goes on.
 * Only errno tells, until jansson clears it to convert a number. So it gets
 * the text in pieces that end where digits begin or end, and asks for the
 * next one before it converts.
 */
struct feed {
    const char *at;
    size_t left;
    bool was_short;
};

static int
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t
feed_piece(void *buffer, size_t size, void *context)
{
    struct feed *feed = context;
    size_t n = 0, most = lmq_size_min(feed->left, size);

    feed->was_short |= errno == ENOMEM;
    while (n < most && is_digit(feed->at[n]) == is_digit(feed->at[0]))
        n++;
    memcpy(buffer, feed->at, n);
    feed->at += n;
    feed->left -= n;
    return n;
}

/* In place of a number without a fraction, as none can be told from 3.0 where
 * all were read as reals; NULL for others, or without memory. */
static json_t *
whole_again(const json_t *value, bool *was_short)
{
    const double most = 9007199254740992.0; /* all up to 2^53 are exact */
    const double x = json_real_value(value);

    if (!json_is_real(value) || !(fabs(x) <= most) || x != trunc(x))
        return NULL;
    json_t *whole = json_integer((json_int_t)x);
    *was_short |= whole == NULL;
    return whole;
}

static void
make_whole(json_t *json, bool *was_short)
{
    for (void *at = json_object_iter(json); at != NULL;
         at = json_object_iter_next(json, at)) {
        json_t *whole = whole_again(json_object_iter_value(at), was_short);
        if (whole != NULL)
            json_object_iter_set_new(json, at, whole);
        make_whole(json_object_iter_value(at), was_short);
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        json_t *whole = whole_again(json_array_get(json, i), was_short);
        if (whole != NULL)
            json_array_set_new(json, i, whole);
        make_whole(json_array_get(json, i), was_short);
    }
}

static json_t *
parse(const void *text, size_t size, size_t flags, json_error_t *problem,
      bool *was_short)
{
    struct feed feed = {.at = text, .left = size};

    errno = 0;
    json_t *json = json_load_callback(feed_piece, &feed, flags, problem);
    *was_short = feed.was_short || errno == ENOMEM;
    /* Files of Hugging Face say 10^30 for "no limit". */
    if (json == NULL && !*was_short && (flags & JSON_DECODE_INT_AS_REAL) == 0 &&
        json_error_code(problem) == json_error_numeric_overflow) {
        bool is_cut = false;
        json = parse(text, size, flags | JSON_DECODE_INT_AS_REAL, problem,
                     was_short);
        make_whole(json, &is_cut);
        *was_short |= is_cut;
        if (is_cut) /* else it might be so twice, and alike */
            drop(&json);
    }
    return json;
}

enum lmq_status
lmq_json_read(const void *text, size_t size, size_t flags, json_t **json,
              json_error_t *problem, struct lmq_error *err)
{
    enum lmq_status status = lmq_json_afford(text, size, err);
    bool was_short;

    *json = NULL;
    if (status != LMQ_OK)
        return status;
    *json = parse(text, size, flags, problem, &was_short);
    if (!was_short)
        return *json == NULL ? LMQ_ERR_FORMAT : LMQ_OK;
    /* It was short of memory. What it reads twice alike is right: not every
     * allocation that sets errno has failed in the end. */
    json_t *again = parse(text, size, flags, problem, &was_short);
    bool is_right = *json != NULL && json_equal(*json, again);
    json_decref(again);
    if (is_right)
        return LMQ_OK;
    drop(json);
    return lmq_fail_nomem(err);
}

/* ---- Asking ---- */

static const json_t *
tree(const struct lmq_report *report)
{
    return (const json_t *)report;
}

/* Without a copy of the key, for which there might be no memory. */
static const json_t *
member(const json_t *object, const char *key, size_t n)
{
    json_t *whole = (json_t *)(uintptr_t)object;

    for (void *at = json_object_iter(whole); at != NULL;
         at = json_object_iter_next(whole, at)) {
        const char *name = json_object_iter_key(at);
        if (strncmp(name, key, n) == 0 && name[n] == '\0')
            return json_object_iter_value(at);
    }
    return NULL;
}

void
lmq_report_free(struct lmq_report *report)
{
    json_decref((json_t *)report);
}

const struct lmq_report *
lmq_report_at(const struct lmq_report *report, const char *path)
{
    const json_t *node = tree(report);

    while (node != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        if (json_is_array(node)) {
            char *end;
            unsigned long index = strtoul(path, &end, 10);
            bool is_index = path[0] >= '0' && path[0] <= '9' &&
                            end == path + n && (path[0] != '0' || n == 1);
            node = is_index ? json_array_get(node, index) : NULL;
        } else {
            node = member(node, path, n);
        }
        path += n;
        if (*path == '.' && *++path == '\0')
            node = NULL; /* a step is missing */
    }
    return (const struct lmq_report *)node;
}

size_t
lmq_report_length(const struct lmq_report *node)
{
    return json_is_object(tree(node)) ? json_object_size(tree(node))
                                      : json_array_size(tree(node));
}

const struct lmq_report *
lmq_report_item(const struct lmq_report *array, size_t index)
{
    return (const struct lmq_report *)json_array_get(tree(array), index);
}

enum lmq_kind
lmq_report_kind(const struct lmq_report *node, const char *path)
{
    const json_t *value = tree(lmq_report_at(node, path));

    if (value == NULL)
        return LMQ_KIND_NONE;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return LMQ_KIND_OBJECT;
    case JSON_ARRAY:
        return LMQ_KIND_ARRAY;
    case JSON_STRING:
        return LMQ_KIND_STRING;
    case JSON_INTEGER:
    case JSON_REAL:
        return LMQ_KIND_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE:
        return LMQ_KIND_BOOLEAN;
    case JSON_NULL:
        break;
    }
    return LMQ_KIND_NULL;
}

double
lmq_report_number(const struct lmq_report *node, const char *path)
{
    const json_t *value = tree(lmq_report_at(node, path));

    if (json_is_boolean(value))
        return json_is_true(value) ? 1.0 : 0.0;
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *
lmq_report_string(const struct lmq_report *node, const char *path)
{
    const char *text = json_string_value(tree(lmq_report_at(node, path)));

    return text == NULL ? "" : text;
}

/* ---- Writing ---- */

static int
append_json(const char *bytes, size_t n, void *text)
{
    return lmq_buffer_append(text, bytes, n);
}

static int
append_yaml(void *text, unsigned char *bytes, size_t n)
{
    return lmq_buffer_append(text, bytes, n) == 0;
}

static int
emit_scalar(yaml_emitter_t *emitter, const char *value, size_t n,
            yaml_scalar_style_t style)
{
    /* Older ones of the library take what they do not change without const. */
    yaml_event_t event;
    int is_plain = style != YAML_DOUBLE_QUOTED_SCALAR_STYLE;

    return yaml_scalar_event_initialize(
               &event, NULL, NULL, (yaml_char_t *)value,
               (int)n, is_plain, 1, style) &&
           yaml_emitter_emit(emitter, &event);
}

static int
emit_plain(yaml_emitter_t *emitter, const char *text)
{
    return emit_scalar(emitter, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
}

/* Quoted, so that a tensor called "no" stays a string. */
static int
emit_string(yaml_emitter_t *emitter, const char *value, size_t n)
{
    return emit_scalar(emitter, value, n, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* Plain words, as keys of ours are; those of files may be anything. */
static int
emit_key(yaml_emitter_t *emitter, const char *key)
{
    static const char *const others[] = {"no",  "on",   "off",
                                         "yes", "true", "false", "null"};
    const size_t n = strlen(key);
    bool is_word = n > 0 && key[0] >= 'a' && key[0] <= 'z' &&
                   strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        is_word = is_word && strcmp(key, others[i]) != 0;
    return is_word ? emit_plain(emitter, key) : emit_string(emitter, key, n);
}

/* 1e-5 is a number in YAML 1.2 and JSON; to who reads YAML 1.1, as many do,
 * only 1.0e-5 is, and of large ones 1.0e+5. */
static int
emit_real(yaml_emitter_t *emitter, const char *text)
{
    const size_t n = strcspn(text, "e");
    char spelt[48];

    if (text[n] == '\0')
        return emit_plain(emitter, text);
    snprintf(spelt, sizeof(spelt), "%.*s%se%s%s", (int)n, text,
             memchr(text, '.', n) == NULL ? ".0" : "",
             text[n + 1] == '-' || text[n + 1] == '+' ? "" : "+",
             text + n + 1);
    return emit_plain(emitter, spelt);
}

static int emit_value(yaml_emitter_t *emitter, const json_t *value);

static int
emit_array(yaml_emitter_t *emitter, const json_t *array)
{
    yaml_sequence_style_t style = json_array_size(array) == 0
                                      ? YAML_FLOW_SEQUENCE_STYLE
                                      : YAML_BLOCK_SEQUENCE_STYLE;
    yaml_event_t event;
    size_t i;
    json_t *item;

    if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style) ||
        !yaml_emitter_emit(emitter, &event))
        return 0;
    json_array_foreach(array, i, item)
        if (!emit_value(emitter, item))
            return 0;
    return yaml_sequence_end_event_initialize(&event) &&
           yaml_emitter_emit(emitter, &event);
}

static int
emit_object(yaml_emitter_t *emitter, const json_t *object)
{
    yaml_event_t event;
    const char *key;
    json_t *item;

    if (!yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                             json_object_size(object) == 0
                                                 ? YAML_FLOW_MAPPING_STYLE
                                                 : YAML_BLOCK_MAPPING_STYLE) ||
        !yaml_emitter_emit(emitter, &event))
        return 0;
    for (void *i = json_object_iter((json_t *)object); i != NULL;
         i = json_object_iter_next((json_t *)object, i)) {
        key = json_object_iter_key(i);
        item = json_object_iter_value(i);
        if (!emit_key(emitter, key) || !emit_value(emitter, item))
            return 0;
    }
    return yaml_mapping_end_event_initialize(&event) &&
           yaml_emitter_emit(emitter, &event);
}

static int
emit_value(yaml_emitter_t *emitter, const json_t *value)
{
    if (json_is_object(value))
        return emit_object(emitter, value);
    if (json_is_array(value))
        return emit_array(emitter, value);
    if (json_is_string(value))
        return emit_string(emitter, json_string_value(value),
                           json_string_length(value));

    char *text = lmq_json_dump(
        value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS));
    int is_done =
        text != NULL && (json_is_real(value) ? emit_real(emitter, text)
                                             : emit_plain(emitter, text));
    free(text);
    return is_done;
}

static int
write_yaml(const json_t *value, struct lmq_buffer *text)
{
    yaml_emitter_t emitter;
    yaml_event_t event;

    if (!yaml_emitter_initialize(&emitter))
        return -1;
    yaml_emitter_set_output(&emitter, append_yaml, text);
    yaml_emitter_set_unicode(&emitter, 1);
    int is_done =
        yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
        yaml_emitter_emit(&emitter, &event) &&
        yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
        yaml_emitter_emit(&emitter, &event) && emit_value(&emitter, value) &&
        yaml_document_end_event_initialize(&event, 1) &&
        yaml_emitter_emit(&emitter, &event) &&
        yaml_stream_end_event_initialize(&event) &&
        yaml_emitter_emit(&emitter, &event);
    yaml_emitter_delete(&emitter);
    return is_done ? 0 : -1;
}

static int
write_json(const json_t *value, size_t flags, struct lmq_buffer *text)
{
    int code = json_dump_callback(value, append_json, text, flags);

    /* jansson may go on after a failure. */
    return code == 0 && !text->has_failed ? 0 : -1;
}

char *
lmq_json_dump(const json_t *json, size_t flags)
{
    struct lmq_buffer text = {0};

    if (write_json(json, flags, &text) == 0)
        return lmq_buffer_text(&text);
    lmq_buffer_free(&text);
    return NULL;
}

enum lmq_status
lmq_report_text(const struct lmq_report *report, enum lmq_report_format format,
                char **text, struct lmq_error *err)
{
    struct lmq_buffer out = {0};
    int code;

    *text = NULL;
    if (report == NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "there is no report");
    if (format != LMQ_REPORT_JSON && format != LMQ_REPORT_YAML)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "format %d is not known",
                        (int)format);
    if (format == LMQ_REPORT_YAML) {
        code = write_yaml(tree(report), &out);
    } else {
        code = write_json(tree(report),
                          JSON_INDENT(2) | JSON_ENCODE_ANY |
                              JSON_REAL_PRECISION(REAL_DIGITS),
                          &out);
        if (code == 0)
            code = lmq_buffer_append(&out, "\n", 1);
    }
    if (code == 0)
        *text = lmq_buffer_text(&out);
    lmq_buffer_free(&out);
    return *text == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

void
lmq_text_free(char *text)
{
    free(text);
}
