/*
 * recipe_file.c - a recipe as YAML (or JSON, which is YAML too).
 *
 * Event by event from libyaml, so that nothing is built of what is not
 * understood. Anchors and aliases, which can make much of little, tags and
 * second documents are refused; nothing nests deeper than the lists of a rule.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/files/file.h"
#include "convert/recipe/recipe.h"

/* What is read: the event that is next, and where it stands. */
struct reading {
    struct lmq_recipe *recipe;
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    struct lmq_error *err;
};

/* ---- Events ---- */

/* What is wrong at a mark. */
static enum lmq_status
fail_at(const struct reading *reading, const yaml_mark_t *mark,
        const char *what)
{
    return lmq_fail(reading->err, LMQ_ERR_FORMAT, mark->index,
                    "line %zu, column %zu: %s", mark->line + 1,
                    mark->column + 1, what);
}

static enum lmq_status
fail_here(const struct reading *reading, const char *what)
{
    return fail_at(reading, &reading->event.start_mark, what);
}

/* What a function found that does not know where the word stands. */
static enum lmq_status
pass_on(const struct reading *reading, enum lmq_status status,
        const struct lmq_error *why)
{
    if (status == LMQ_ERR_NOMEM)
        return lmq_fail_nomem(reading->err);
    return status == LMQ_OK ? LMQ_OK : fail_here(reading, why->message);
}

static enum lmq_status
fail_parsing(const struct reading *reading)
{
    const yaml_parser_t *parser = &reading->parser;
    char what[256];

    if (parser->error == YAML_MEMORY_ERROR)
        return lmq_fail_nomem(reading->err);
    if (parser->error == YAML_READER_ERROR)
        return lmq_fail(reading->err, LMQ_ERR_FORMAT, parser->problem_offset,
                        "byte %zu: this is no YAML: %s",
                        parser->problem_offset, parser->problem);
    snprintf(what, sizeof(what), "this is no YAML: %s",
             parser->problem == NULL ? "unknown" : parser->problem);
    return fail_at(reading, &parser->problem_mark, what);
}

static const char *
why_refused(const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return "a recipe has no aliases";
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default:
        break;
    }
    return anchor != NULL ? "a recipe has no anchors"
           : tag != NULL  ? "a recipe has no tags"
                          : NULL;
}

static enum lmq_status
next(struct reading *reading)
{
    if (reading->has_event)
        yaml_event_delete(&reading->event);
    reading->has_event = yaml_parser_parse(&reading->parser, &reading->event);
    if (!reading->has_event)
        return fail_parsing(reading);
    const char *what = why_refused(&reading->event);
    return what == NULL ? LMQ_OK : fail_here(reading, what);
}

static bool
is_at(const struct reading *reading, yaml_event_type_t type)
{
    return reading->event.type == type;
}

/* The scalar that is next, NULL if it is none or no text: recipes need no
 * control characters. */
static const char *
scalar_of(const struct reading *reading)
{
    const char *text = (const char *)reading->event.data.scalar.value;

    return is_at(reading, YAML_SCALAR_EVENT) &&
                   !lmq_recipe_has_control(text,
                                           reading->event.data.scalar.length)
               ? text
               : NULL;
}

/* ---- Mappings ---- */



struct mapping {
    const char *const *keys; /* ends with NULL */
    const char *what;        /* "of a rule" */
    unsigned seen;
    char key[32]; /* the one whose value is next */
};

static enum lmq_status
fail_key(const struct reading *reading, const struct mapping *mapping,
         const char *key)
{
    char what[400];
    size_t used = (size_t)snprintf(what, sizeof(what),
                                   "'%.40s' is no key %s, expected ", key,
                                   mapping->what);

    for (size_t i = 0; mapping->keys[i] != NULL; i++)
        used += (size_t)snprintf(what + used, sizeof(what) - used, "%s%s",
                                 i == 0                           ? ""
                                 : mapping->keys[i + 1] == NULL ? " or "
                                                                  : ", ",
                                 mapping->keys[i]);
    return fail_here(reading, what);
}

/* To the value of the next key, or to the end of the mapping: then the key is
 * empty. The event is the last one of what was before. */
static enum lmq_status
next_key(struct reading *reading, struct mapping *mapping)
{
    enum lmq_status status = next(reading);
    size_t i = 0;

    mapping->key[0] = '\0';
    if (status != LMQ_OK || is_at(reading, YAML_MAPPING_END_EVENT))
        return status;
    const char *key = scalar_of(reading);
    if (key == NULL)
        return fail_here(reading, "expected a key");
    while (mapping->keys[i] != NULL && strcmp(mapping->keys[i], key) != 0)
        i++;
    if (mapping->keys[i] == NULL)
        return fail_key(reading, mapping, key);
    if (mapping->seen & 1u << i)
        return fail_here(reading, "the key is there twice");
    mapping->seen |= 1u << i;
    snprintf(mapping->key, sizeof(mapping->key), "%s", key);
    return next(reading);
}

static bool
has_key(const struct mapping *mapping, const char *key)
{
    for (size_t i = 0; mapping->keys[i] != NULL; i++)
        if (strcmp(mapping->keys[i], key) == 0)
            return (mapping->seen & 1u << i) != 0;
    return false;
}

/* ---- Values ---- */

/* Takes the scalar that is next for `context`. */
typedef enum lmq_status take_scalar(struct reading *reading, void *context,
                                    const char *text, struct lmq_error *why);

static enum lmq_status
take_one(struct reading *reading, take_scalar *take, void *context)
{
    const char *text = scalar_of(reading);
    struct lmq_error why = {0};

    if (text == NULL)
        return fail_here(reading, "expected a text or a number");
    return pass_on(reading, take(reading, context, text, &why), &why);
}

/* One, or a list of them. */
static enum lmq_status
take_list(struct reading *reading, take_scalar *take, void *context)
{
    size_t n = 0;

    if (!is_at(reading, YAML_SEQUENCE_START_EVENT))
        return take_one(reading, take, context);
    for (;; n++) {
        enum lmq_status status = next(reading);
        if (status == LMQ_OK && is_at(reading, YAML_SEQUENCE_END_EVENT))
            break;
        if (status == LMQ_OK)
            status = take_one(reading, take, context);
        if (status != LMQ_OK)
            return status;
    }
    return n > 0 ? LMQ_OK : fail_here(reading, "the list is empty");
}

static enum lmq_status
take_pattern(struct reading *reading, void *rule, const char *text,
             struct lmq_error *why)
{
    return lmq_rule_add_pattern(reading->recipe, rule, text, why);
}

static enum lmq_status
take_layers(struct reading *reading, void *rule, const char *text,
            struct lmq_error *why)
{
    struct lmq_rule *own = rule;

    (void)reading;
    return lmq_recipe_ranges_parse(&own->layers, text, LMQ_MAX_LAYERS - 1,
                                   why);
}

static enum lmq_status
take_experts(struct reading *reading, void *rule, const char *text,
             struct lmq_error *why)
{
    struct lmq_rule *own = rule;

    (void)reading;
    return lmq_recipe_ranges_parse(&own->experts, text, LMQ_MAX_ITEMS - 1,
                                   why);
}

static enum lmq_status
take_optional(struct reading *reading, void *rule, const char *text,
              struct lmq_error *why)
{
    struct lmq_rule *own = rule;

    (void)reading;
    own->is_optional = strcmp(text, "true") == 0;
    if (!own->is_optional && strcmp(text, "false") != 0)
        return lmq_fail(why, LMQ_ERR_FORMAT, 0,
                        "optional is '%.40s', expected 'true' or 'false'",
                        text);
    return LMQ_OK;
}

static enum lmq_status
take_version(struct reading *reading, void *context, const char *text,
             struct lmq_error *why)
{
    (void)reading;
    (void)context;
    if (strcmp(text, "1") != 0)
        return lmq_fail(why, LMQ_ERR_FORMAT, 0,
                        "the version is '%.40s', this program knows 1", text);
    return LMQ_OK;
}

/* A key of a wish, by the name that the mapping is at. */
struct wish_key {
    struct lmq_wish *wish;
    const char *key;
};

static enum lmq_status
take_wish(struct reading *reading, void *context, const char *text,
          struct lmq_error *why)
{
    const struct wish_key *key = context;
    bool is_known;

    (void)reading;
    return lmq_wish_parse(key->wish, key->key, text, &is_known, why);
}

static enum lmq_status
read_wish(struct reading *reading, const struct mapping *mapping,
          struct lmq_wish *wish)
{
    struct wish_key key = {wish, mapping->key};

    return take_one(reading, take_wish, &key);
}

/* Of what began there. */
static enum lmq_status
check_wish(const struct reading *reading, const yaml_mark_t *start,
           const struct lmq_wish *wish, bool is_default)
{
    struct lmq_error why = {0};

    return lmq_wish_check(wish, is_default, &why) == LMQ_OK
               ? LMQ_OK
               : fail_at(reading, start, why.message);
}

/* ---- The parts of a recipe ---- */

static enum lmq_status
read_rule_key(struct reading *reading, const struct mapping *mapping,
              struct lmq_rule *rule)
{
    static const struct {
        const char *key;
        take_scalar *take;
        bool is_list;
    } keys[] = {
        {"match", take_pattern, true},
        {"layers", take_layers, true},
        {"experts", take_experts, true},
        {"optional", take_optional, false},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].key, mapping->key) == 0)
            return keys[i].is_list ? take_list(reading, keys[i].take, rule)
                                   : take_one(reading, keys[i].take, rule);
    return read_wish(reading, mapping, &rule->wish);
}

static enum lmq_status
read_rule(struct reading *reading)
{
    static const char *const keys[] = {"match",    "layers", "experts",
                                       "encoding", "group",  "scales",
                                       "method",   "rotate",   "optional",
                                       NULL};
    struct mapping mapping = {.keys = keys, .what = "of a rule"};
    struct lmq_error why = {0};
    struct lmq_rule *rule;

    if (!is_at(reading, YAML_MAPPING_START_EVENT))
        return fail_here(reading, "expected a rule, as in '- match: ffn_down'");
    yaml_mark_t start = reading->event.start_mark;
    enum lmq_status status = pass_on(
        reading, lmq_recipe_add_rule(reading->recipe, &rule, &why), &why);
    if (status != LMQ_OK)
        return status;
    rule->line = start.line + 1;
    do {
        status = next_key(reading, &mapping);
        if (status == LMQ_OK && mapping.key[0] != '\0')
            status = read_rule_key(reading, &mapping, rule);
    } while (status == LMQ_OK && mapping.key[0] != '\0');
    if (status != LMQ_OK)
        return status;
    if (!has_key(&mapping, "match"))
        return fail_at(reading, &start, "the rule has no key 'match'");
    if (rule->wish.asked == 0)
        return fail_at(reading, &start,
                       "the rule says nothing: it has no encoding, group, "
                       "scales, method or rotate");
    return check_wish(reading, &start, &rule->wish, false);
}

static enum lmq_status
read_rules(struct reading *reading)
{
    if (!is_at(reading, YAML_SEQUENCE_START_EVENT))
        return fail_here(reading, "expected a list of rules");
    for (;;) {
        enum lmq_status status = next(reading);
        if (status == LMQ_OK && is_at(reading, YAML_SEQUENCE_END_EVENT))
            return LMQ_OK;
        if (status == LMQ_OK)
            status = read_rule(reading);
        if (status != LMQ_OK)
            return status;
    }
}

static enum lmq_status
read_default(struct reading *reading)
{
    static const char *const keys[] = {"encoding", "group", "scales",
                                       "method",   "rotate", NULL};
    struct mapping mapping = {.keys = keys, .what = "of the default"};
    enum lmq_status status;

    if (!is_at(reading, YAML_MAPPING_START_EVENT))
        return fail_here(reading,
                         "expected keys, as in 'default: {group: 32}'");
    yaml_mark_t start = reading->event.start_mark;
    do {
        status = next_key(reading, &mapping);
        if (status == LMQ_OK && mapping.key[0] != '\0')
            status = read_wish(reading, &mapping, &reading->recipe->basis);
    } while (status == LMQ_OK && mapping.key[0] != '\0');
    return status == LMQ_OK
               ? check_wish(reading, &start, &reading->recipe->basis, true)
               : status;
}

static enum lmq_status
read_recipe(struct reading *reading)
{
    static const char *const keys[] = {"version", "default", "rules", NULL};
    struct mapping mapping = {.keys = keys, .what = "of a recipe"};
    enum lmq_status status;

    if (!is_at(reading, YAML_MAPPING_START_EVENT))
        return fail_here(reading, "expected keys, as in 'version: 1'");
    yaml_mark_t start = reading->event.start_mark;
    do {
        status = next_key(reading, &mapping);
        if (status != LMQ_OK || mapping.key[0] == '\0')
            break;
        if (strcmp(mapping.key, "version") == 0)
            status = take_one(reading, take_version, NULL);
        else
            status = strcmp(mapping.key, "rules") == 0 ? read_rules(reading)
                                                       : read_default(reading);
    } while (status == LMQ_OK);
    if (status == LMQ_OK && !has_key(&mapping, "version"))
        return fail_at(reading, &start,
                       "there is no 'version: 1': this is no recipe");
    return status;
}

/* The stream, its only document, and in this the recipe. */
static enum lmq_status
read_stream(struct reading *reading)
{
    enum lmq_status status = next(reading); /* the stream's beginning */

    if (status == LMQ_OK)
        status = next(reading);
    if (status == LMQ_OK && is_at(reading, YAML_STREAM_END_EVENT))
        return fail_here(reading, "it is empty: expected 'version: 1'");
    if (status == LMQ_OK)
        status = next(reading);
    if (status == LMQ_OK)
        status = read_recipe(reading);
    if (status == LMQ_OK)
        status = next(reading); /* the document's end */
    if (status == LMQ_OK)
        status = next(reading);
    if (status == LMQ_OK && !is_at(reading, YAML_STREAM_END_EVENT))
        return fail_here(reading, "a recipe is one document");
    return status;
}

enum lmq_status
lmq_recipe_parse(struct lmq_recipe *recipe, const unsigned char *bytes,
                 size_t n, struct lmq_error *err)
{
    struct reading reading = {.recipe = recipe, .err = err};

    if (!yaml_parser_initialize(&reading.parser))
        return lmq_fail_nomem(err);
    yaml_parser_set_input_string(&reading.parser, bytes, n);
    enum lmq_status status = read_stream(&reading);
    if (reading.has_event)
        yaml_event_delete(&reading.event);
    yaml_parser_delete(&reading.parser);
    return status;
}

enum lmq_status
lmq_recipe_read(struct lmq_recipe *recipe, const char *path,
                struct lmq_error *err)
{
    unsigned char *bytes;
    size_t n;
    enum lmq_status status =
        lmq_file_load(path, LMQ_RECIPE_BYTES, &bytes, &n, err);

    if (status == LMQ_OK) {
        status = lmq_recipe_parse(recipe, bytes, n, err);
        recipe->text = (char *)bytes;
    }
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    return status;
}
