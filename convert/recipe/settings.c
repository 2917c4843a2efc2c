/*
 * settings.c - the options of a conversion: which can be right, and what they
 * mean.
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/sha256.h"
#include "base/threads/threads.h"
#include "convert/plan.h"

/* NaN is not. */
static bool
is_zero(double x)
{
    return x >= 0 && x <= 0;
}

/* What goes with a calibration, and what does not. */
static enum lmq_status
check_calibration(const struct lmq_convert_options *options,
                  struct lmq_error *err)
{
    bool is_calibrated = lmq_convert_is_calibrated(options);
    bool is_alone = options->calibration_tokens != 0 ||
                    options->context != 0 || options->splits_documents != 0 ||
                    !is_zero(options->damping) || !is_zero(options->mend);

    if (!is_calibrated && is_alone)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".calibration_tokens, .context, .splits_documents, "
                        ".damping and .mend go with .calibration or "
                        ".writes_text");
    if (!is_calibrated)
        return LMQ_OK;
    if (options->writes_text != 0 &&
        (options->n_calibration > 0 || options->splits_documents != 0))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".writes_text goes without .calibration and "
                        ".splits_documents: the text is the model's own");
    if (!(options->damping >= 0 && options->damping <= 10))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".damping is %g, expected more than 0, at most 10",
                        options->damping);
    if (!(options->mend >= 0 && options->mend <= 1) &&
        !is_zero(options->mend + 1))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".mend is %g, expected more than 0, at most 1; or -1 "
                        "for nothing",
                        options->mend);
    return LMQ_OK;
}

/* Of the file, what the options say themselves, and their rules behind it. */
static enum lmq_status
make_recipe(const struct lmq_convert_options *options,
            struct lmq_convert_settings *settings, struct lmq_error *err)
{
    struct lmq_recipe *recipe = &settings->recipe;
    struct lmq_quant *quant = &recipe->basis.quant;
    const struct lmq_quant own = settings->quant;
    enum lmq_status status = LMQ_OK;

    recipe->basis = (struct lmq_wish){.stored = settings->stored, .quant = own};
    recipe->path = options->recipe;
    if (recipe->text != NULL)
        status = lmq_recipe_parse(recipe, (unsigned char *)recipe->text,
                                  strlen(recipe->text), err);
    else if (options->recipe != NULL)
        status = lmq_recipe_read(recipe, options->recipe, err);
    if (options->encoding != NULL) {
        recipe->basis.stored = settings->stored;
        recipe->basis.keeps = false;
        recipe->basis.asked |= LMQ_WISH_ENCODING;
    }
    if (options->group_size != 0) {
        quant->group_size = own.group_size;
        recipe->basis.asked |= LMQ_WISH_GROUP;
    }
    if (options->scales != NULL) {
        quant->scales = own.scales;
        recipe->basis.asked |= LMQ_WISH_SCALES;
    }
    if (options->method != NULL)
        quant->method = own.method;
    if (options->rotates != 0) {
        quant->rotation = LMQ_ROTATION_ALL;
        recipe->basis.asked |= LMQ_WISH_ROTATE;
    }
    settings->quant = *quant;
    for (size_t i = 0; i < options->n_rules && status == LMQ_OK; i++)
        status = lmq_recipe_add_words(recipe, options->rules[i], err);
    return status;
}

/* Options that are words; without one it is the usual. */
struct words {
    int method, scales, layout, ties, zeroes, stored;
};

static enum lmq_status
parse_words(const struct lmq_convert_options *options, struct words *words,
            struct lmq_error *err)
{
    static const struct lmq_name ties[] = {
        {"never", false}, {"auto", true}, {NULL, 0}};
    static const struct lmq_name nonfinite[] = {
        {"fail", false}, {"zero", true}, {NULL, 0}};
    const struct {
        const char *option, *text;
        const struct lmq_name *names;
        int *value;
    } choices[] = {
        {"method", options->method, lmq_method_names, &words->method},
        {"scales", options->scales, lmq_scales_names, &words->scales},
        {"layout", options->layout, lmq_layout_names, &words->layout},
        {"tie", options->tie, ties, &words->ties},
        {"on_nonfinite", options->on_nonfinite, nonfinite, &words->zeroes},
        {"encoding", options->encoding, lmq_stored_names, &words->stored},
    };
    enum lmq_status status = LMQ_OK;

    *words = (struct words){
        .method = lmq_convert_is_calibrated(options) ? LMQ_METHOD_GPTQ
                                                     : LMQ_METHOD_SEARCH,
        .scales = LMQ_SCALES_F16,
        .layout = LMQ_LAYOUT_TILES,
        .ties = true,
        .stored = LMQ_STORED_Q8,
    };
    for (size_t i = 0;
         i < sizeof(choices) / sizeof(choices[0]) && status == LMQ_OK; i++)
        status = lmq_names_parse(choices[i].names, choices[i].option,
                                 choices[i].text, choices[i].value, err);
    return status;
}

enum lmq_status
lmq_convert_settings_parse(const struct lmq_convert_options *options,
                           struct lmq_convert_settings *settings,
                           struct lmq_error *err)
{
    struct words words;
    char list[64], *recipe_text = settings->recipe.text;
    enum lmq_status status = check_calibration(options, err);

    if (status == LMQ_OK)
        status = lmq_threads_check(options->threads, err);
    if (status == LMQ_OK)
        status = parse_words(options, &words, err);
    if (status != LMQ_OK)
        return status;
    *settings = (struct lmq_convert_settings){
        .stored = (enum lmq_stored)words.stored,
        .quant = {.bits = LMQ_BITS_MAX,
                  .group_size =
                      options->group_size == 0 ? 64 : options->group_size,
                  .method = (enum lmq_method)words.method,
                  .scales = (enum lmq_scales)words.scales,
                  .multiplier = 1,
                  .rotation = options->rotates != 0 ? LMQ_ROTATION_ALL
                                                    : LMQ_ROTATION_NONE},
        .layout = (enum lmq_layout)words.layout,
        .ties = words.ties,
        .zeroes = words.zeroes,
        .alignment = LMQ_ALIGN,
        .is_compressed = options->is_compressed != 0,
        .recipe.text = recipe_text,
        .has_digests = options->has_digests != 0,
        .shard_size = options->shard_size,
        .n_parts = options->n_parts,
    };
    if (options->n_parts > LMQ_MAX_MEMBERS ||
        options->part > options->n_parts ||
        (options->seals != 0 && options->n_parts == 0))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".part is %u of %u, expected 1 of 1 to %d of %d",
                        options->part, options->n_parts, LMQ_MAX_MEMBERS,
                        LMQ_MAX_MEMBERS);
    if (options->n_parts > 0 && options->shard_size > 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".n_parts and .shard_size both say where to cut");
    if (!lmq_group_size_is_valid(settings->quant.group_size))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".group_size is %u, expected %s", options->group_size,
                        lmq_names_list(lmq_group_names, "", list,
                                       sizeof(list)));
    status = make_recipe(options, settings, err);
    if (status == LMQ_OK && settings->has_digests)
        status = lmq_sha256_need(err);
    return status;
}

enum lmq_status
lmq_convert_check(const struct lmq_convert_options *given,
                  struct lmq_error *err)
{
    struct lmq_convert_options options;
    struct lmq_convert_settings settings = {0};
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_convert_options, &options, given, err);

    options.recipe = NULL; /* a file */
    if (status == LMQ_OK)
        status = lmq_convert_settings_parse(&options, &settings, err);
    lmq_recipe_free(&settings.recipe);
    return status;
}
