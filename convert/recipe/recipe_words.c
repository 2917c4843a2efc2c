/*
 * recipe_words.c - the words of a recipe: what they may be, and what they
 * mean.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/buffer.h"
#include "base/text/glob.h"
#include "base/text/utf8.h"
#include "convert/recipe/recipe.h"
#include "quantize/rotate.h"

static const char keep[] = "keep";

bool
lmq_recipe_has_control(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    for (size_t i = 0, width; i < n; i += width) {
        width = lmq_utf8_length(p + i, n - i);
        uint32_t code = width == 0 ? 0 : lmq_utf8_decode(p + i, width);
        if (!lmq_utf8_is_shown(code) || code == 0xfeff || code == 0xfffe ||
            code == 0xffff)
            return true;
    }
    return false;
}

/* ---- Patterns ---- */

enum lmq_status
lmq_rule_add_pattern(struct lmq_recipe *recipe, struct lmq_rule *rule,
                     const char *text, struct lmq_error *err)
{
    size_t n = strlen(text);

    if (n == 0 || n > LMQ_RECIPE_PATTERN)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a pattern has %zu bytes, expected 1 to %d", n,
                        LMQ_RECIPE_PATTERN);
    if (!lmq_is_utf8((const unsigned char *)text, n))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the pattern '%s' is no UTF-8", text);
    if (lmq_recipe_has_control(text, n)) /* a recipe that holds it has none */
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the pattern '%s' has a control character", text);
    if (!lmq_glob_is_valid(text))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the pattern '%s' has a '[' without its ']'", text);
    if (recipe->n_patterns == LMQ_RECIPE_PATTERNS)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "there are more than %zu patterns",
                        LMQ_RECIPE_PATTERNS);
    if (lmq_mem_grow(&rule->patterns, &rule->capacity, rule->n_patterns + 1,
                     sizeof(*rule->patterns)) != 0)
        return lmq_fail_nomem(err);
    char *own = strdup(text);
    if (own == NULL)
        return lmq_fail_nomem(err);
    rule->patterns[rule->n_patterns++] = (struct lmq_pattern){.text = own};
    recipe->n_patterns++;
    return LMQ_OK;
}

/* ---- Ranges ---- */

static const char *
skip_blanks(const char *text)
{
    return text + strspn(text, " ");
}

/* A number up to `most`; NULL if there is none. */
static const char *
read_number(const char *text, int32_t most, int32_t *number)
{
    int64_t value = 0;

    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = 10 * value + (*text - '0');
        if (value > most)
            return NULL;
    }
    *number = (int32_t)value;
    return text;
}

/* "3", "0-3", "30-", "first 2", "last 2"; NULL if it is none of these. */
static const char *
read_range(const char *text, int32_t most, struct lmq_recipe_range *range)
{
    bool is_first = strncmp(text, "first ", 6) == 0;
    bool is_last = strncmp(text, "last ", 5) == 0;
    int32_t n;

    if (is_first || is_last) {
        text = read_number(skip_blanks(text + (is_first ? 6 : 5)), most, &n);
        if (text == NULL || n == 0)
            return NULL;
        *range = is_first ? (struct lmq_recipe_range){0, n - 1}
                          : (struct lmq_recipe_range){-n, -1};
        return text;
    }
    text = read_number(text, most, &range->first);
    if (text == NULL)
        return NULL;
    range->last = range->first;
    if (*text != '-')
        return text;
    range->last = INT32_MAX;
    if (text[1] < '0' || text[1] > '9')
        return text + 1;
    text = read_number(text + 1, most, &range->last);
    return text == NULL || range->last < range->first ? NULL : text;
}

enum lmq_status
lmq_recipe_ranges_parse(struct lmq_recipe_ranges *ranges, const char *text,
                        int32_t most, struct lmq_error *err)
{
    const char *at = text;

    for (;;) {
        struct lmq_recipe_range range;
        at = read_range(skip_blanks(at), most, &range);
        if (at != NULL)
            at = skip_blanks(at);
        if (at == NULL || (*at != ',' && *at != '\0'))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "'%.60s' is no list of ranges, expected for "
                            "example '0-3,30-' or 'first 2,last 2', numbers "
                            "up to %" PRId32,
                            text, most);
        if (ranges->n == LMQ_RECIPE_RANGES)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "there are more than %d ranges",
                            LMQ_RECIPE_RANGES);
        if (lmq_mem_grow(&ranges->ranges, &ranges->capacity, ranges->n + 1,
                         sizeof(range)) != 0)
            return lmq_fail_nomem(err);
        ranges->ranges[ranges->n++] = range;
        if (*at++ == '\0')
            return LMQ_OK;
    }
}

char *
lmq_recipe_ranges_text(const struct lmq_recipe_ranges *ranges)
{
    struct lmq_buffer text = {0};

    for (size_t i = 0; i < ranges->n; i++) {
        int32_t first = ranges->ranges[i].first, last = ranges->ranges[i].last;
        const char *comma = i == 0 ? "" : ",";
        if (first < 0)
            lmq_buffer_print(&text, "%slast %" PRId32, comma, -first);
        else if (first == last)
            lmq_buffer_print(&text, "%s%" PRId32, comma, first);
        else if (last == INT32_MAX)
            lmq_buffer_print(&text, "%s%" PRId32 "-", comma, first);
        else
            lmq_buffer_print(&text, "%s%" PRId32 "-%" PRId32, comma, first,
                             last);
    }
    return lmq_buffer_text(&text);
}

/* ---- Wishes ---- */

static enum lmq_status
parse_encoding(struct lmq_wish *wish, const char *value, struct lmq_error *err)
{
    const struct lmq_name *name = lmq_names_find(lmq_stored_names, value);
    char list[96];

    wish->keeps = strcmp(value, keep) == 0;
    if (name == NULL && !wish->keeps)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "encoding is '%.40s', expected 'keep', %s", value,
                        lmq_names_list(lmq_stored_names, "'", list,
                                       sizeof(list)));
    if (name != NULL)
        wish->stored = (enum lmq_stored)name->value;
    return LMQ_OK;
}

enum lmq_status
lmq_wish_parse(struct lmq_wish *wish, const char *key, const char *value,
               bool *is_known, struct lmq_error *err)
{
    static const struct {
        const char *key;
        const struct lmq_name *names; /* NULL: of encodings */
        unsigned bit;
    } keys[] = {
        {"encoding", NULL, LMQ_WISH_ENCODING},
        {"group", lmq_group_names, LMQ_WISH_GROUP},
        {"scales", lmq_scales_names, LMQ_WISH_SCALES},
        {"method", lmq_method_names, LMQ_WISH_METHOD},
        {"rotate", lmq_rotation_names, LMQ_WISH_ROTATE},
    };
    const size_t n = sizeof(keys) / sizeof(keys[0]);
    size_t i = 0;
    char list[96];

    while (i < n && strcmp(keys[i].key, key) != 0)
        i++;
    *is_known = i < n;
    if (!*is_known)
        return LMQ_OK;
    wish->asked |= keys[i].bit;
    if (keys[i].names == NULL)
        return parse_encoding(wish, value, err);
    const struct lmq_name *name = lmq_names_find(keys[i].names, value);
    if (name == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "%s is '%.40s', expected %s",
                        key, value,
                        lmq_names_list(keys[i].names, "'", list,
                                       sizeof(list)));
    if (keys[i].bit == LMQ_WISH_GROUP)
        wish->quant.group_size = (unsigned)name->value;
    else if (keys[i].bit == LMQ_WISH_SCALES)
        wish->quant.scales = (enum lmq_scales)name->value;
    else if (keys[i].bit == LMQ_WISH_ROTATE)
        wish->quant.rotation = (enum lmq_rotation)name->value;
    else
        wish->quant.method = (enum lmq_method)name->value;
    return LMQ_OK;
}

const char *
lmq_wish_encoding(const struct lmq_wish *wish)
{
    return wish->keeps ? keep : lmq_names_of(lmq_stored_names, wish->stored);
}

enum lmq_status
lmq_wish_check(const struct lmq_wish *wish, bool is_default,
               struct lmq_error *err)
{
    bool is_float = wish->keeps || lmq_stored_types[wish->stored].encoding ==
                                       LMQ_ENCODING_PLAIN;

    if (!is_default && (wish->asked & LMQ_WISH_ENCODING) != 0 && is_float &&
        wish->asked != LMQ_WISH_ENCODING)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "group, scales, method and rotate mean nothing beside "
                        "the encoding '%s'",
                        lmq_wish_encoding(wish));
    return LMQ_OK;
}

/* ---- A rule in a line ---- */

/* "group=32" */
static enum lmq_status
add_word(struct lmq_wish *wish, char *word, struct lmq_error *err)
{
    char *equals = strchr(word, '=');
    unsigned before = wish->asked;
    bool is_known = false;

    if (equals == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%.40s' is no KEY=VALUE: expected group=N, "
                        "scales=TYPE, method=NAME or rotate=yes",
                        word);
    *equals = '\0';
    if (strcmp(word, "encoding") != 0) {
        enum lmq_status status =
            lmq_wish_parse(wish, word, equals + 1, &is_known, err);
        if (status != LMQ_OK)
            return status;
    }
    if (!is_known)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%.40s' is no key, expected group, scales, method "
                        "or rotate",
                        word);
    if (wish->asked == before)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "'%.40s' is there twice",
                        word);
    return LMQ_OK;
}

/* Takes `text` apart. */
static enum lmq_status
add_words(struct lmq_recipe *recipe, struct lmq_rule *rule, char *text,
          struct lmq_error *err)
{
    char *type = strchr(text, '='), *more;
    bool is_known;

    if (type == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "expected PATTERN=TYPE[,group=N][,scales=TYPE]"
                        "[,method=NAME][,rotate=yes]");
    *type++ = '\0';
    more = strchr(type, ',');
    if (more != NULL)
        *more++ = '\0';
    enum lmq_status status = lmq_rule_add_pattern(recipe, rule, text, err);
    if (status == LMQ_OK)
        status = lmq_wish_parse(&rule->wish, "encoding", type, &is_known, err);
    while (more != NULL && status == LMQ_OK) {
        char *word = more;
        more = strchr(word, ',');
        if (more != NULL)
            *more++ = '\0';
        status = add_word(&rule->wish, word, err);
    }
    return status == LMQ_OK ? lmq_wish_check(&rule->wish, false, err)
                            : status;
}

enum lmq_status
lmq_recipe_add_words(struct lmq_recipe *recipe, const char *text,
                     struct lmq_error *err)
{
    struct lmq_rule *rule;
    struct lmq_error why = {0};

    if (text == NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0, ".rules holds a NULL");
    char *copy = strdup(text);
    enum lmq_status status =
        copy == NULL ? lmq_fail_nomem(&why)
                     : lmq_recipe_add_rule(recipe, &rule, &why);

    if (status == LMQ_OK) {
        rule->given = text;
        status = add_words(recipe, rule, copy, &why);
    }
    free(copy);
    if (status == LMQ_ERR_FORMAT)
        return lmq_fail(err, LMQ_ERR_ARG, 0, ".rules '%.200s': %s", text,
                        why.message);
    return status == LMQ_OK ? LMQ_OK : lmq_fail_nomem(err);
}
