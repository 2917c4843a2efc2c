/*
 * recipe_json.c - a recipe as it is told: in reports, in a container.
 */
#include "config.h"

#include <stdlib.h>

#include "base/report.h"
#include "convert/recipe/recipe.h"

bool
lmq_recipe_is_plain(const struct lmq_recipe *recipe)
{
    return recipe->n_rules == 0 && !recipe->basis.keeps &&
           recipe->basis.quant.rotation == LMQ_ROTATION_NONE &&
           recipe->basis.stored == LMQ_STORED_Q8;
}

/* The keys that are asked for. */
static void
describe_wish(const struct lmq_wish *wish, unsigned asked, json_t **json)
{
    if (asked & LMQ_WISH_ENCODING)
        lmq_put(json, "encoding", json_string(lmq_wish_encoding(wish)));
    if (asked & LMQ_WISH_GROUP)
        lmq_put(json, "group", json_integer(wish->quant.group_size));
    if (asked & LMQ_WISH_SCALES)
        lmq_put_name(json, "scales", lmq_scales_names, wish->quant.scales);
    if (asked & LMQ_WISH_METHOD)
        lmq_put_name(json, "method", lmq_method_names, wish->quant.method);
    if (asked & LMQ_WISH_ROTATE)
        lmq_put_name(json, "rotate", lmq_rotation_names, wish->quant.rotation);
}

static void
describe_ranges(const struct lmq_recipe_ranges *ranges, const char *key,
                json_t **json)
{
    if (ranges->n == 0)
        return;
    char *text = lmq_recipe_ranges_text(ranges);
    lmq_put(json, key, text == NULL ? NULL : json_string(text));
    free(text);
}

static json_t *
describe_rule(const struct lmq_rule *rule)
{
    json_t *json = json_object(), *patterns = json_array();

    for (size_t i = 0; i < rule->n_patterns; i++)
        lmq_append(&patterns, json_string(rule->patterns[i].text));
    lmq_put(&json, "match", patterns);
    describe_ranges(&rule->layers, "layers", &json);
    describe_ranges(&rule->experts, "experts", &json);
    describe_wish(&rule->wish, rule->wish.asked, &json);
    if (rule->is_optional)
        lmq_put(&json, "optional", json_true());
    return json;
}

json_t *
lmq_recipe_to_json(const struct lmq_recipe *recipe)
{
    /* What nobody asked for is not told: it is as each matrix wants it. */
    const unsigned asked = recipe->basis.asked | LMQ_WISH_METHOD;
    json_t *json = json_object(), *basis = json_object(),
           *rules = json_array();

    describe_wish(&recipe->basis, asked, &basis);
    for (size_t i = 0; i < recipe->n_rules; i++)
        lmq_append(&rules, describe_rule(&recipe->rules[i]));
    lmq_put(&json, "version", json_integer(1));
    lmq_put(&json, "default", basis);
    lmq_put(&json, "rules", rules);
    return json;
}
