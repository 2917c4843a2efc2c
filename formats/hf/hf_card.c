/*
 * hf_card.c - the YAML at the head of README.md, and the texts in safetensors.
 *
 * Only texts and lists of texts at the top of the mapping are taken, event by
 * event: nothing is built, and no reference is followed. What is no YAML gets
 * a remark; people must not be kept from converting by a README.
 */
#include "config.h"

#include "formats/hf/hf_card.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/size.h"
#include "formats/checkpoint/about.h"

#define CARD_NAME "README.md"
#define CARD_MAX ((size_t)1 << 16) /* of the header: real ones have 1 KB */
#define CARD_DEPTH 32

/* ---- YAML ---- */

struct walk {
    json_t **about;
    int depth; /* 1: in the mapping at the top */
    bool has_key; /* and the next thing is its value */
    const struct lmq_about_key *key; /* that is wanted, or NULL */
    bool is_list; /* depth 2 is a list of it */
};

/* NULL: it is not wanted, and its value is passed over. */
static const struct lmq_about_key *
find_card_key(const yaml_event_t *event)
{
    const char *name = (const char *)event->data.scalar.value;
    const struct lmq_about_key *key = lmq_about_keys;

    while (key->name != NULL &&
           (key->card == NULL || strcmp(key->card, name) != 0))
        key++;
    return key->name == NULL ? NULL : key;
}

/* A text is a key, the value of one, or an item of a list that is the value of
 * one; deeper it is of no interest. */
static enum lmq_status
take_scalar(struct walk *walk, const yaml_event_t *event,
            struct lmq_error *err)
{
    const struct lmq_about_key *key = walk->key;

    if (walk->depth == 1 && !walk->has_key) {
        walk->key = find_card_key(event);
        walk->has_key = true;
        return LMQ_OK;
    }
    if (walk->depth == 1)
        walk->has_key = false;
    else if (walk->depth != 2 || !walk->is_list)
        return LMQ_OK;
    return key == NULL ? LMQ_OK
                       : lmq_about_add(walk->about, key,
                                       event->data.scalar.value,
                                       event->data.scalar.length, err);
}

static void
begin_part(struct walk *walk, bool is_list)
{
    if (walk->depth == 1) {
        walk->is_list = is_list && walk->has_key;
        if (!walk->has_key) /* the part itself is a key */
            walk->key = NULL;
        walk->has_key = !walk->has_key;
    }
    walk->depth++;
}

/* False: it is no YAML that is understood. */
static bool
take_event(struct walk *walk, const yaml_event_t *event,
           enum lmq_status *status, struct lmq_error *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        *status = take_scalar(walk, event, err);
        break;
    case YAML_ALIAS_EVENT:
        if (walk->depth == 1) {
            walk->has_key = !walk->has_key;
            walk->key = NULL;
        }
        break;
    case YAML_MAPPING_START_EVENT:
        begin_part(walk, false);
        break;
    case YAML_SEQUENCE_START_EVENT:
        if (walk->depth == 0)
            return false;
        begin_part(walk, true);
        break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        walk->depth--;
        break;
    default:
        break;
    }
    return walk->depth <= CARD_DEPTH;
}

/* A mapping at the top, and nothing that needs to be kept but the last key. */
static enum lmq_status
read_yaml(const unsigned char *text, size_t n, json_t **about, bool *is_yaml,
          struct lmq_error *err)
{
    struct walk walk = {.about = about};
    enum lmq_status status = LMQ_OK;
    yaml_parser_t parser;
    bool is_over = false;

    if (!yaml_parser_initialize(&parser))
        return lmq_fail_nomem(err);
    yaml_parser_set_input_string(&parser, text, n);
    while (*is_yaml && !is_over && status == LMQ_OK) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            if (parser.error == YAML_MEMORY_ERROR)
                status = lmq_fail_nomem(err);
            *is_yaml = false;
            break;
        }
        is_over = event.type == YAML_STREAM_END_EVENT;
        *is_yaml = take_event(&walk, &event, &status, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

/* ---- README.md ---- */

/* The lines between two of "---", of which the first is the file's first;
 * false if there are none. */
static bool
find_header(const unsigned char *text, size_t n, size_t *from, size_t *size)
{
    const char *lines = (const char *)text;
    size_t at = 0;

    *from = 0;
    while (at < n) {
        const char *end = memchr(lines + at, '\n', n - at);
        size_t length = end == NULL ? n - at : (size_t)(end - (lines + at));
        bool is_fence = length >= 3 && memcmp(lines + at, "---", 3) == 0 &&
                        (length == 3 || (length == 4 && lines[at + 3] == '\r'));
        if (at == 0 && !is_fence)
            return false;
        if (at > 0 && is_fence) {
            *size = at - *from;
            return true;
        }
        at += length + 1;
        if (*from == 0)
            *from = at;
    }
    return false;
}

/* The text behind the header may be long, and is not read. */
static enum lmq_status
load_head(const char *path, unsigned char **text, size_t *n,
          struct lmq_error *err)
{
    struct lmq_input *input;
    enum lmq_status status = lmq_input_open(path, &input, err);

    *text = NULL;
    if (status != LMQ_OK)
        return status;
    *n = (size_t)lmq_u64_min(lmq_input_size(input), CARD_MAX);
    *text = malloc(*n + 1);
    status = *text == NULL ? lmq_fail_nomem(err)
                           : lmq_input_read(input, 0, *text, *n, err);
    lmq_input_close(input);
    return status;
}

/* What stands in it is never an error; that it cannot be read from the disk
 * is. */
static enum lmq_status
read_card(struct lmq_checkpoint *checkpoint, const char *path,
          struct lmq_error *err)
{
    unsigned char *text = NULL;
    size_t n = 0, from, size;
    bool is_yaml = true;
    enum lmq_status status =
        lmq_originals_add(&checkpoint->originals, path, true, err);

    if (status == LMQ_OK)
        status = load_head(path, &text, &n, err);
    if (status == LMQ_OK && find_header(text, n, &from, &size))
        status =
            read_yaml(text + from, size, &checkpoint->about, &is_yaml, err);
    if (!is_yaml && status == LMQ_OK)
        lmq_checkpoint_note(checkpoint, CARD_NAME ": its header is no YAML: "
                                        "licence and author may be missing");
    free(text);
    if (status == LMQ_ERR_FORMAT) /* empty, or no regular file */
        status = LMQ_OK;
    return status;
}

enum lmq_status
lmq_hf_read_card(struct lmq_checkpoint *checkpoint, const char *folder,
                 struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    char *path = lmq_path_join(folder, CARD_NAME);

    if (path == NULL)
        return lmq_fail_nomem(err);
    if (lmq_file_exists(path, &status, err))
        status = read_card(checkpoint, path, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    free(path);
    return status;
}

/* ---- safetensors ---- */

/* Names that others have given, besides our own. */
static const struct {
    const char *theirs, *ours;
} names[] = {
    {"modelspec.title", "name"},
    {"modelspec.author", "author"},
    {"modelspec.description", "description"},
    {"modelspec.license", "license"},
    {"modelspec.tags", "tags"},
};

/* Our own names first, then those of ModelSpec, which image tools write. */
enum lmq_status
lmq_hf_read_metadata(struct lmq_checkpoint *checkpoint,
                     const json_t *metadata, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    const size_t n_others = sizeof(names) / sizeof(names[0]);

    for (const struct lmq_about_key *key = lmq_about_keys;
         key->name != NULL && status == LMQ_OK; key++) {
        const char *text =
            json_string_value(json_object_get(metadata, key->name));
        for (size_t i = 0; text == NULL && i < n_others; i++)
            if (strcmp(names[i].ours, key->name) == 0)
                text = json_string_value(
                    json_object_get(metadata, names[i].theirs));
        if (text != NULL)
            status = lmq_about_add_all(&checkpoint->about, key, text, err);
    }
    return status;
}
