/*
 * offers.c - asks a conversion what each encoding would take, and the
 * quantizers what it would lose.
 */
#include "config.h"

#include "validate/plan/offers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/progress.h"
#include "convert/lay_out.h"
#include "convert/writing.h"

/* In the order of what they take, as a rule. */
static const struct lmq_offer known[] = {
    {"q4/128", "q4", 128, false}, {"q4/64", "q4", 64, false},
    {"q4/64 rotated", "q4", 64, true}, {"q4/32", "q4", 32, false},
    {"q4/32 rotated", "q4", 32, true}, {"q5/128", "q5", 128, false},
    {"q5/64", "q5", 64, false}, {"q5/64 rotated", "q5", 64, true},
    {"q5/32", "q5", 32, false}, {"q5/32 rotated", "q5", 32, true},
    {"q6/128", "q6", 128, false}, {"q6/64", "q6", 64, false},
    {"q6/64 rotated", "q6", 64, true}, {"q6/32", "q6", 32, false},
    {"q6/32 rotated", "q6", 32, true}, {"q8/64", "q8", 64, false},
    {"q8/64 rotated", "q8", 64, true}, {"q8/32", "q8", 32, false},
    {"q8/32 rotated", "q8", 32, true}, {"bf16", "bf16", 0, false},
    {"keep", "keep", 0, false},
};

#define N_KNOWN (sizeof(known) / sizeof(known[0]))
_Static_assert(N_KNOWN <= LMQ_OFFERS_MOST, "an offer has no room");

/* Experts, or heads, that errors are told from. */
#define ITEMS_MOST 8
/* Encodings of 4 bits lose within a few times as much as each other. */
#define PROBE_ROOM 16

/* ---- Plans of conversions ---- */

/* What a conversion with these options and, if it is not NULL, this recipe
 * would do. */
static enum lmq_status
plan_conversion(struct lmq_checkpoint *checkpoint,
                const struct lmq_convert_options *options, const char *recipe,
                struct lmq_convert_settings *settings, struct lmq_plan *plan,
                struct lmq_error *err)
{
    enum lmq_status status =
        lmq_convert_settings_parse(options, settings, err);

    if (status == LMQ_OK && recipe != NULL) {
        status = lmq_recipe_parse(&settings->recipe,
                                  (const unsigned char *)recipe,
                                  strlen(recipe), err);
        settings->quant = settings->recipe.basis.quant;
    }
    return status == LMQ_OK ? lmq_plan_make(checkpoint, settings, plan, err)
                            : status;
}

static void
forget(struct lmq_convert_settings *settings, struct lmq_plan *plan)
{
    lmq_plan_free(plan);
    lmq_recipe_free(&settings->recipe);
}

enum lmq_status
lmq_offers_tied(struct lmq_checkpoint *checkpoint, bool *is_tied,
                struct lmq_error *err)
{
    const struct lmq_convert_options options = {.size = sizeof(options)};
    struct lmq_convert_settings settings = {0};
    struct lmq_plan plan = {0};
    enum lmq_status status =
        plan_conversion(checkpoint, &options, NULL, &settings, &plan, err);

    *is_tied = status == LMQ_OK && plan.tie_rule[0] != '\0';
    forget(&settings, &plan);
    return status;
}

enum lmq_status
lmq_offers_file_size(struct lmq_checkpoint *checkpoint, const char *recipe,
                     uint64_t *size, struct lmq_error *err)
{
    const struct lmq_convert_options options = {.size = sizeof(options)};
    struct lmq_convert_settings settings = {0};
    struct lmq_plan plan = {0};
    enum lmq_status status =
        plan_conversion(checkpoint, &options, recipe, &settings, &plan, err);

    if (status == LMQ_OK)
        status = lmq_plan_lay_out(&plan, err);
    if (status == LMQ_OK)
        *size = lmq_writing_size(&plan);
    forget(&settings, &plan);
    return status;
}

/* ---- One offer for all units ---- */

static void
take_record(const struct lmq_plan *plan, size_t index,
            struct lmq_encoding_choice *choice, double *bytes)
{
    const struct lmq_record *record = &plan->records[index];
    uint64_t sizes[LMQ_N_EXTENTS] = {0};

    lmq_record_sizes(record, sizes);
    *bytes += (double)sizes[LMQ_VALUES] + (double)sizes[LMQ_SCALES];
    choice->quant = record->quant;
    choice->is_taken = plan->takes[index];
    choice->stored = record->dtype == LMQ_DTYPE_BF16  ? LMQ_STORED_BF16
                     : record->dtype == LMQ_DTYPE_F16 ? LMQ_STORED_F16
                                                      : LMQ_STORED_F32;
    if (record->encoding == LMQ_ENCODING_Q8)
        choice->stored = lmq_stored_of(record->quant.bits);
}

void
lmq_unit_take(const struct lmq_plan *plan, const struct lmq_unit *unit,
              struct lmq_encoding_choice *choice, double *bytes)
{
    for (size_t i = 0; i < plan->n_records; i++)
        if (plan->records[i].place.part == LMQ_PART_WEIGHT &&
            plan->records[i].encoding != LMQ_ENCODING_ALIAS &&
            lmq_unit_has(unit, &plan->records[i].place))
            take_record(plan, i, choice, bytes);
}

static enum lmq_status
measure_error(struct lmq_checkpoint *checkpoint, const struct lmq_plan *plan,
              const struct lmq_unit *unit,
              const struct lmq_encoding_choice *choice,
              const struct lmq_workers *workers, double *error,
              struct lmq_error *err)
{
    double sum = 0, lost = 0, sum_sq, err_sq;
    enum lmq_status status = LMQ_OK;
    int n = 0;

    for (size_t i = 0; i < plan->n_records && n < ITEMS_MOST &&
                       status == LMQ_OK;
         i++) {
        const struct lmq_record *record = &plan->records[i];
        if (record->place.part != LMQ_PART_WEIGHT ||
            record->encoding == LMQ_ENCODING_ALIAS ||
            !lmq_unit_has(unit, &record->place))
            continue;
        status = lmq_variant_error(checkpoint, plan->sources[i], choice,
                                   workers, &sum_sq, &err_sq, err);
        sum += sum_sq;
        lost += err_sq;
        n++;
    }
    *error = sum > 0 ? lost / sum : 0;
    return status;
}

static enum lmq_status
add_offer(struct lmq_checkpoint *checkpoint, const struct lmq_units *units,
          const struct lmq_offer *offer, const struct lmq_plan *plan,
          const struct lmq_workers *workers, struct lmq_offers *offers,
          struct lmq_error *err)
{
    size_t at = offers->n++;
    enum lmq_status status = LMQ_OK;

    offers->list[at] = offer;
    for (size_t i = 0; i < units->n && status == LMQ_OK; i++) {
        struct lmq_encoding_choice *choice =
            &offers->choices[i * LMQ_OFFERS_MOST + at];
        double *bytes = &offers->bytes[i * LMQ_OFFERS_MOST + at];
        lmq_unit_take(plan, &units->units[i], choice, bytes);
        status = measure_error(checkpoint, plan, &units->units[i], choice,
                               workers,
                               &offers->errors[i * LMQ_OFFERS_MOST + at], err);
    }
    return status;
}

/* What the checkpoint cannot be made into is not offered. */
static enum lmq_status
try_offer(struct lmq_checkpoint *checkpoint, const struct lmq_units *units,
          const struct lmq_offer *offer, const struct lmq_workers *workers,
          struct lmq_offers *offers, struct lmq_error *err)
{
    char text[64] = "*=";
    const char *rules[] = {text};
    const struct lmq_convert_options options = {
        .size = sizeof(options), .rules = rules, .n_rules = 1,
        .group_size = offer->group, .rotates = offer->rotates};
    struct lmq_convert_settings settings = {0};
    struct lmq_plan plan = {0};
    struct lmq_error why;

    strcat(text, offer->encoding);
    enum lmq_status status =
        plan_conversion(checkpoint, &options, NULL, &settings, &plan, &why);
    if (status == LMQ_OK)
        status = add_offer(checkpoint, units, offer, &plan, workers, offers,
                           err);
    else if (status == LMQ_ERR_UNSUPPORTED)
        status = LMQ_OK;
    else
        lmq_fail_as(err, &why);
    forget(&settings, &plan);
    return status;
}

/* Every offer has one more row behind it than there may be units: none. */
static bool
allocate(struct lmq_offers *offers, size_t n_units)
{
    size_t n = n_units * LMQ_OFFERS_MOST + 1;

    offers->choices = calloc(n, sizeof(*offers->choices));
    offers->bytes = calloc(n, sizeof(*offers->bytes));
    offers->errors = calloc(n, sizeof(*offers->errors));
    offers->probes = calloc(n_units + 1, sizeof(*offers->probes));
    return offers->choices != NULL && offers->bytes != NULL &&
           offers->errors != NULL && offers->probes != NULL;
}

/* Rows are as long as there are offers, from here on. */
static void
compact(struct lmq_offers *offers, size_t n_units)
{
    size_t n = offers->n;

    for (size_t i = 0; i < n_units; i++)
        for (size_t j = 0; j < n; j++) {
            size_t from = i * LMQ_OFFERS_MOST + j, to = i * n + j;
            offers->choices[to] = offers->choices[from];
            offers->bytes[to] = offers->bytes[from];
            offers->errors[to] = offers->errors[from];
        }
    for (size_t i = 0; i < n_units; i++) {
        double least = INFINITY, most = 0;
        for (size_t j = 0; j < n; j++) {
            least = fmin(least, offers->bytes[i * n + j]);
            most = fmax(most, offers->bytes[i * n + j]);
        }
        offers->least += least;
        offers->most += most;
    }
}

/* What is stored in the probe's encoding, or in one that it holds, loses next
 * to nothing there, which tells nothing of others: then what loses most. */
static void
find_probes(struct lmq_offers *offers, size_t n_units)
{
    for (size_t i = 0; i < n_units; i++) {
        const double *errors = offers->errors + i * offers->n;
        size_t worst = 0;
        for (size_t j = 1; j < offers->n; j++)
            if (errors[j] > errors[worst])
                worst = j;
        offers->probes[i] =
            errors[offers->probe] * PROBE_ROOM < errors[worst] ? worst
                                                               : offers->probe;
    }
}

enum lmq_status
lmq_offers_make(struct lmq_checkpoint *checkpoint,
                const struct lmq_units *units, bool rotates,
                const struct lmq_workers *workers,
                const struct lmq_progress *progress,
                struct lmq_offers *offers, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    *offers = (struct lmq_offers){.probe = 1}; /* q4/64 */
    if (!allocate(offers, units->n))
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < N_KNOWN && status == LMQ_OK; i++) {
        if (rotates || !known[i].rotates)
            status = try_offer(checkpoint, units, &known[i], workers, offers,
                               err);
        if (status == LMQ_OK)
            status = lmq_progress_report(progress, "weighing encodings", i,
                                         N_KNOWN, err);
    }
    if (status != LMQ_OK)
        return status;
    compact(offers, units->n);
    find_probes(offers, units->n);
    return LMQ_OK;
}

void
lmq_offers_free(struct lmq_offers *offers)
{
    free(offers->choices);
    free(offers->bytes);
    free(offers->errors);
    free(offers->probes);
    *offers = (struct lmq_offers){0};
}
