/*
 * recipe.c - which rules match a matrix, and what follows from them.
 */
#include "config.h"

#include "convert/recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/glob.h"

enum lmq_status
lmq_recipe_add_rule(struct lmq_recipe *recipe, struct lmq_rule **rule,
                    struct lmq_error *err)
{
    if (recipe->n_rules == LMQ_RECIPE_RULES)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "there are more than %zu rules", LMQ_RECIPE_RULES);
    if (lmq_mem_grow(&recipe->rules, &recipe->capacity, recipe->n_rules + 1,
                     sizeof(**rule)) != 0)
        return lmq_fail_nomem(err);
    *rule = &recipe->rules[recipe->n_rules++];
    **rule = (struct lmq_rule){0};
    return LMQ_OK;
}

void
lmq_recipe_free(struct lmq_recipe *recipe)
{
    for (size_t i = 0; i < recipe->n_rules; i++) {
        struct lmq_rule *rule = &recipe->rules[i];
        for (size_t j = 0; j < rule->n_patterns; j++)
            free(rule->patterns[j].text);
        free(rule->patterns);
        free(rule->layers.ranges);
        free(rule->experts.ranges);
    }
    free(recipe->rules);
    free(recipe->text);
    *recipe = (struct lmq_recipe){0};
}

/* ---- Matching ---- */

static bool
is_in_ranges(const struct lmq_recipe_ranges *ranges, int32_t number,
             int32_t n)
{
    for (size_t i = 0; i < ranges->n; i++) {
        int32_t from_end = ranges->ranges[i].first < 0 ? n : 0;
        if (number >= ranges->ranges[i].first + from_end &&
            number <= ranges->ranges[i].last + from_end)
            return true;
    }
    return ranges->n == 0;
}

/* What a matrix may be called in a rule: the name and the name in the source,
 * both also without ".weight", and the role. */
struct called {
    const char *names[5];
    char shorter[2][LMQ_MAX_TENSOR_NAME + 1];
    size_t n;
};

static void
add_names(struct called *called, const char *name, size_t index)
{
    static const char weight[] = ".weight";
    size_t n = strlen(name), n_weight = sizeof(weight) - 1;

    called->names[called->n++] = name;
    if (n <= n_weight || n > LMQ_MAX_TENSOR_NAME ||
        strcmp(name + n - n_weight, weight) != 0)
        return;
    memcpy(called->shorter[index], name, n - n_weight);
    called->shorter[index][n - n_weight] = '\0';
    called->names[called->n++] = called->shorter[index];
}

static void
find_names(const struct lmq_tensor *tensor, struct called *called)
{
    called->n = 0;
    add_names(called, tensor->name, 0);
    add_names(called, tensor->stored_name, 1);
    if (tensor->place.role != LMQ_ROLE_OTHER)
        called->names[called->n++] = lmq_role_name(tensor->place.role);
}

static bool
pattern_matches(const struct lmq_pattern *pattern, const struct called *called)
{
    for (size_t i = 0; i < called->n; i++)
        if (lmq_glob_match(pattern->text, called->names[i]))
            return true;
    return false;
}

/* All of its patterns are tried: each is to be of use. */
static bool
rule_matches(struct lmq_rule *rule, const struct lmq_tensor *tensor,
             const struct called *called, int32_t n_layers,
             int32_t n_experts)
{
    bool matches = false;

    if (!is_in_ranges(&rule->layers, tensor->place.layer, n_layers) ||
        !is_in_ranges(&rule->experts, tensor->place.item, n_experts))
        return false;
    if (rule->layers.n > 0 && tensor->place.layer < 0)
        return false;
    if (rule->experts.n > 0 && (tensor->place.item < 0 ||
                                !lmq_role_is_of_experts(tensor->place.role)))
        return false;
    for (size_t i = 0; i < rule->n_patterns; i++) {
        struct lmq_pattern *pattern = &rule->patterns[i];
        if (pattern_matches(pattern, called))
            pattern->is_used = matches = true;
    }
    return matches;
}

/* ---- Choosing ---- */

static bool
is_float(const struct lmq_wish *wish)
{
    return wish->keeps || lmq_stored_types[wish->stored].encoding ==
                              LMQ_ENCODING_PLAIN;
}

static void
overlay(struct lmq_wish *wish, const struct lmq_wish *with)
{
    if (with->asked & LMQ_WISH_ENCODING) {
        wish->keeps = with->keeps;
        wish->stored = with->stored;
    }
    if (with->asked & LMQ_WISH_GROUP)
        wish->quant.group_size = with->quant.group_size;
    if (with->asked & LMQ_WISH_SCALES)
        wish->quant.scales = with->quant.scales;
    if (with->asked & LMQ_WISH_METHOD)
        wish->quant.method = with->quant.method;
    if (with->asked & LMQ_WISH_ROTATE)
        wish->quant.rotation = with->quant.rotation;
    wish->asked |= with->asked;
}

static bool
is_for_all_tokens(const struct lmq_tensor *tensor)
{
    return tensor->place.role == LMQ_ROLE_EMBEDDING ||
           tensor->place.role == LMQ_ROLE_HEAD;
}

/* Below 8 bits: what the embedding and the head lose cannot be made up for. */
static enum lmq_stored
widen(enum lmq_stored stored)
{
    switch (stored) {
    case LMQ_STORED_Q4:
    case LMQ_STORED_Q5:
        return LMQ_STORED_Q6;
    case LMQ_STORED_Q6:
        return LMQ_STORED_Q8;
    default:
        return stored;
    }
}

void
lmq_recipe_choose(struct lmq_recipe *recipe, const struct lmq_tensor *tensor,
                  bool is_small, int32_t n_layers, int32_t n_experts,
                  struct lmq_wish *wish)
{
    struct called called;

    *wish = recipe->basis;
    if (is_small && !is_float(wish))
        wish->stored = LMQ_STORED_F32;
    else if (!wish->keeps && is_for_all_tokens(tensor))
        wish->stored = widen(wish->stored);
    find_names(tensor, &called);
    for (size_t i = 0; i < recipe->n_rules; i++) {
        struct lmq_rule *rule = &recipe->rules[i];
        bool is_of_float = (rule->wish.asked & LMQ_WISH_ENCODING) != 0 &&
                           is_float(&rule->wish);
        if (is_small && !is_of_float)
            continue;
        if (rule_matches(rule, tensor, &called, n_layers, n_experts))
            overlay(wish, &rule->wish);
    }
}

enum lmq_status
lmq_recipe_check_used(const struct lmq_recipe *recipe, struct lmq_error *err)
{
    for (size_t i = 0; i < recipe->n_rules; i++) {
        const struct lmq_rule *rule = &recipe->rules[i];
        size_t j = 0;
        while (j < rule->n_patterns && rule->patterns[j].is_used)
            j++;
        if (rule->is_optional || j == rule->n_patterns)
            continue;
        if (rule->line == 0) {
            lmq_fail(err, LMQ_ERR_ARG, 0,
                     ".rules '%.200s' matches no matrix of the model that it "
                     "could be for",
                     rule->given);
            lmq_hint(err, "inspect .has_tensors lists the names; norms and "
                          "biases are float32 always, routers never "
                          "integers");
            return LMQ_ERR_ARG;
        }
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the rule in line %zu: '%.200s' matches no matrix of the "
                 "model that it could be for",
                 rule->line, rule->patterns[j].text);
        lmq_hint(err, "'optional: true' lets a rule be for other models");
        lmq_error_in(err, recipe->path == NULL ? "recipe" : recipe->path);
        return LMQ_ERR_FORMAT;
    }
    return LMQ_OK;
}
