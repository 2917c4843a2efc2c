/*
 * fuzz_recipe.c - any bytes as a recipe, and as a rule of the command line.
 * What is read is said again, and means the same when it is read again.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/report.h"
#include "convert/recipe/recipe.h"
#include "tests/fuzz/fuzz.h"

static char *
say(const struct lmq_recipe *recipe)
{
    json_t *json = lmq_recipe_to_json(recipe);
    char *text = lmq_json_dump(json, JSON_COMPACT);

    json_decref(json);
    return text;
}

static void
check_again(const struct lmq_recipe *recipe)
{
    struct lmq_recipe again = {0};
    struct lmq_error err;
    char *text = say(recipe);

    if (text == NULL ||
        lmq_recipe_parse(&again, (const unsigned char *)text, strlen(text),
                         &err) != LMQ_OK)
        abort();
    char *twice = say(&again);
    if (twice == NULL || strcmp(text, twice) != 0)
        abort();
    lmq_recipe_free(&again);
    free(twice);
    free(text);
}

/* All rules are asked for a tensor that may have any name. */
static void
choose(struct lmq_recipe *recipe, const char *name)
{
    char own[] = "blk.3.ffn_down.weight", stored[LMQ_MAX_TENSOR_NAME + 1];
    struct lmq_tensor tensor = {
        .name = own,
        .stored_name = stored,
        .place = {.role = LMQ_ROLE_FFN_DOWN, .layer = 3, .item = -1}};
    struct lmq_wish wish;

    strncpy(stored, name, LMQ_MAX_TENSOR_NAME);
    stored[LMQ_MAX_TENSOR_NAME] = '\0';
    for (int i = 0; i < 2; i++)
        lmq_recipe_choose(recipe, &tensor, i == 1, 4, 2, &wish);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const struct lmq_wish basis = {
        .quant = {.group_size = 64, .method = LMQ_METHOD_SEARCH}};
    struct lmq_recipe recipe = {.basis = basis}, line = {.basis = basis};
    struct lmq_error err;
    char *text = lmq_mem_text(bytes, n);

    if (text != NULL && lmq_recipe_parse(&recipe, bytes, n, &err) == LMQ_OK) {
        choose(&recipe, text);
        check_again(&recipe);
    }
    if (text != NULL && n < 4096 &&
        lmq_recipe_add_words(&line, text, &err) == LMQ_OK) {
        choose(&line, text);
        check_again(&line);
    }
    lmq_recipe_free(&recipe);
    lmq_recipe_free(&line);
    free(text);
    return 0;
}
