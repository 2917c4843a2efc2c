/*
 * remedies.c - what had fewer than 8 bits gets 8, what had 8 is kept as the
 * source has it.
 *
 * What that is, and what it takes, a conversion says: the one that a container
 * tells of, with a rule more for each unit.
 */
#include "config.h"

#include "validate/plan/remedies.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "convert/plan.h"
#include "formats/describe.h"
#include "validate/plan/offers.h"

/* ---- What there is ---- */

static bool
is_counted(const struct lmq_checkpoint *checkpoint,
           const struct lmq_tensor *tensor)
{
    return tensor->alias_of == NULL && !(lmq_tensor_is_head(tensor) &&
                                         lmq_checkpoint_is_tied(checkpoint));
}

/* Whether a container can have just what the reference has there. */
static bool
can_be_kept(const struct lmq_job *job, const struct lmq_place *place)
{
    const struct lmq_matrix *matrix = lmq_matrix_at(job->models[0], place);
    const struct lmq_tensor *source = matrix == NULL ? NULL : matrix->tensor;

    return source != NULL && source->quant.group_size == 0 &&
           source->packing == NULL && source->blocks == NULL &&
           source->encoding == NULL;
}

/* Of experts one may have other bits than the next: what has fewest is what the
 * remedy is for. */
static void
look_at(const struct lmq_job *job, const struct lmq_checkpoint *judged,
        const struct lmq_unit *unit, struct lmq_remedy *remedy)
{
    const struct lmq_tensor *least = NULL;
    bool is_kept = true;

    for (size_t i = 0; i < judged->n_tensors; i++) {
        const struct lmq_tensor *tensor = &judged->tensors[i];
        if (tensor->place.part != LMQ_PART_WEIGHT ||
            !lmq_unit_has(unit, &tensor->place) || !is_counted(judged, tensor))
            continue;
        remedy->bits += tensor->bits_per_element * (double)tensor->n_elements;
        is_kept &= can_be_kept(job, &tensor->place);
        if (least == NULL ||
            tensor->bits_per_element < least->bits_per_element)
            least = tensor;
    }
    if (least == NULL)
        return;
    remedy->type = least->encoding != NULL ? least->encoding
                                           : lmq_dtype_name(least->dtype);
    if (least->quant.group_size != 0 && least->quant.bits < LMQ_BITS_MAX)
        remedy->encoding = "q8";
    else if (is_kept)
        remedy->encoding = "keep";
}

/* ---- What there would be ---- */

/* As the options that are named for the cure, behind all others. */
static enum lmq_status
add_rule(struct lmq_recipe *recipe, const struct lmq_unit *unit,
         const struct lmq_remedy *remedy, struct lmq_error *err)
{
    struct lmq_rule *rule;
    bool is_known;
    enum lmq_status status = lmq_recipe_add_rule(recipe, &rule, err);

    if (status == LMQ_OK)
        status = lmq_rule_add_pattern(recipe, rule, unit->name, err);
    if (status == LMQ_OK && unit->is_tied)
        status = lmq_rule_add_pattern(recipe, rule,
                                      lmq_role_name(LMQ_ROLE_HEAD), err);
    return status == LMQ_OK
               ? lmq_wish_parse(&rule->wish, "encoding", remedy->encoding,
                                &is_known, err)
               : status;
}

/* The recipe that a container tells of, if it is more than the usual one. What
 * is a rule for other names than the reference has does nothing here. */
static enum lmq_status
recall_settings(const struct lmq_checkpoint *judged,
                struct lmq_convert_settings *settings, struct lmq_error *err)
{
    const struct lmq_convert_options options = {
        .size = sizeof(options),
        .tie = lmq_checkpoint_is_tied(judged) ? "auto" : "never"};
    json_t *said = lmq_checkpoint_statements(judged);
    const json_t *recipe = json_object_get(said, "recipe");
    bool has_recipe = recipe != NULL;

    settings->recipe.text = lmq_json_dump(recipe, 0);
    json_decref(said);
    if (said == NULL || (has_recipe && settings->recipe.text == NULL))
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_convert_settings_parse(&options, settings, err);
    for (size_t i = 0; i < settings->recipe.n_rules; i++)
        settings->recipe.rules[i].is_optional = true;
    return status;
}

static enum lmq_status
plan_again(const struct lmq_job *job, const struct lmq_checkpoint *judged,
           const struct lmq_units *units, const struct lmq_remedy *remedies,
           struct lmq_convert_settings *settings, struct lmq_plan *plan,
           struct lmq_error *err)
{
    enum lmq_status status = recall_settings(judged, settings, err);

    for (size_t i = 0; i < units->n && status == LMQ_OK; i++)
        if (remedies[i].encoding != NULL)
            status = add_rule(&settings->recipe, &units->units[i],
                              &remedies[i], err);
    return status == LMQ_OK
               ? lmq_plan_make(job->reference_file, settings, plan, err)
               : status;
}

/* What is learnt from a text needs all of it: here it is searched for. */
static void
take(const struct lmq_plan *plan, const struct lmq_unit *unit,
     struct lmq_remedy *remedy)
{
    double bytes = 0;

    lmq_unit_take(plan, unit, &remedy->choice, &bytes);
    remedy->bits_then = 8 * bytes;
    if (remedy->choice.quant.method == LMQ_METHOD_GPTQ)
        remedy->choice.quant.method = LMQ_METHOD_SEARCH;
    if (remedy->bits_then <= remedy->bits)
        remedy->encoding = NULL;
}

enum lmq_status
lmq_remedies_find(const struct lmq_job *job,
                  const struct lmq_checkpoint *judged,
                  const struct lmq_units *units, struct lmq_remedy *remedies,
                  struct lmq_error *err)
{
    struct lmq_convert_settings settings = {0};
    struct lmq_plan plan = {0};
    struct lmq_error why;

    for (size_t i = 0; i < units->n; i++)
        look_at(job, judged, &units->units[i], &remedies[i]);
    enum lmq_status status =
        plan_again(job, judged, units, remedies, &settings, &plan, &why);
    bool is_made = status == LMQ_OK;
    for (size_t i = 0; i < units->n; i++)
        if (is_made && remedies[i].encoding != NULL)
            take(&plan, &units->units[i], &remedies[i]);
        else
            remedies[i].encoding = NULL;
    lmq_plan_free(&plan);
    lmq_recipe_free(&settings.recipe);
    /* Nothing can be said of what is not made from this reference. */
    if (status == LMQ_ERR_ARG || status == LMQ_ERR_FORMAT ||
        status == LMQ_ERR_UNSUPPORTED)
        return LMQ_OK;
    return is_made ? LMQ_OK : lmq_fail_as(err, &why);
}
