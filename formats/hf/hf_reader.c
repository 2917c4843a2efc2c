/*
 * hf_reader.c - the values of single keys of config.json, and their types.
 *
 * Python's readers of config.json take many things for numbers and switches;
 * here a key of another type than its own is an error that names it, since a
 * model that is read differently gives other results. null counts as absent,
 * unless the caller asks; but a switch that is null is off, as it is in Python.
 */
#include "config.h"

#include "formats/hf/hf_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/text/c_locale.h"

/* The first failure stays; after it all reads give defaults, so that callers
 * check once, at the end. */
void
lmq_hf_fail(struct lmq_hf_config *config, const char *format, ...)
{
    char message[200];
    va_list args;

    if (config->status != LMQ_OK)
        return;
    va_start(args, format);
    lmq_c_vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    config->status = lmq_fail(config->err, LMQ_ERR_FORMAT, 0, "%s", message);
}

bool
lmq_hf_has(const json_t *object, const char *key)
{
    const json_t *found = json_object_get(object, key);

    return found != NULL && !json_is_null(found);
}

bool
lmq_hf_is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

/* NULL where the default serves. */
static const json_t *
find(const struct lmq_hf_config *config, const json_t *object, const char *key)
{
    return config->status == LMQ_OK && lmq_hf_has(object, key)
               ? json_object_get(object, key)
               : NULL;
}

/* NULL, and an error, if it is there and of another type. */
static const json_t *
expect(struct lmq_hf_config *config, const json_t *found, bool is_right,
       const char *key, const char *problem)
{
    if (found != NULL && !is_right)
        lmq_hf_fail(config, "'%s' in the configuration is %s", key, problem);
    return is_right ? found : NULL;
}

/* 20.0 is no count. */
uint32_t
lmq_hf_count(struct lmq_hf_config *config, const json_t *object,
             const char *key, uint32_t absent)
{
    const json_t *found = find(config, object, key);
    json_int_t number = json_integer_value(found);

    if (found == NULL)
        return absent;
    if (json_is_integer(found) && number >= 0 && number <= UINT32_MAX)
        return (uint32_t)number;
    lmq_hf_fail(config,
                "'%s' in the configuration is no whole number from 0 to %u",
                key, UINT32_MAX);
    return absent;
}

double
lmq_hf_real(struct lmq_hf_config *config, const json_t *object,
            const char *key, double absent)
{
    const json_t *found = find(config, object, key);

    found = expect(config, found, json_is_number(found), key, "no number");
    return found == NULL ? absent : json_number_value(found);
}

bool
lmq_hf_switch(struct lmq_hf_config *config, const json_t *object,
              const char *key, bool absent)
{
    const json_t *found = find(config, object, key);

    if (lmq_hf_is_null(object, key))
        return false;
    found = expect(config, found, json_is_boolean(found), key,
                   "neither true nor false");
    return found == NULL ? absent : json_is_true(found);
}

const char *
lmq_hf_text(struct lmq_hf_config *config, const json_t *object,
            const char *key, const char *absent)
{
    const json_t *found = find(config, object, key);

    found = expect(config, found, json_is_string(found), key, "no text");
    return found == NULL ? absent : json_string_value(found);
}

const json_t *
lmq_hf_object(struct lmq_hf_config *config, const json_t *object,
              const char *key)
{
    const json_t *found = find(config, object, key);

    return expect(config, found, json_is_object(found), key, "no object");
}

const json_t *
lmq_hf_list(struct lmq_hf_config *config, const json_t *object,
            const char *key)
{
    const json_t *found = find(config, object, key);

    return expect(config, found, json_is_array(found), key, "no list");
}

int64_t
lmq_hf_number(struct lmq_hf_config *config, const json_t *element,
              const char *key)
{
    if (!json_is_integer(element))
        lmq_hf_fail(config,
                    "'%s' in the configuration is no list of whole numbers",
                    key);
    return json_integer_value(element);
}

/* Of products of sizes from a file. */
uint32_t
lmq_hf_width(struct lmq_hf_config *config, uint64_t a, uint64_t b)
{
    if (a <= LMQ_MAX_WIDTH && b <= LMQ_MAX_WIDTH && a * b <= LMQ_MAX_WIDTH)
        return (uint32_t)(a * b);
    lmq_hf_fail(config, "a size in the configuration is %llu * %llu, more "
                        "than %d",
                (unsigned long long)a, (unsigned long long)b, LMQ_MAX_WIDTH);
    return 0;
}

void
lmq_hf_expect_word(struct lmq_hf_config *config, const char *key,
                   const char *word)
{
    const char *value = lmq_hf_text(config, config->json, key, word);

    if (strcmp(value, word) != 0)
        lmq_hparams_refuse(config->hparams, "'%s' '%.60s'", key, value);
}

/* ---- Layers that differ ---- */

uint32_t
lmq_hf_layers(const struct lmq_hf_config *config)
{
    uint32_t n = config->hparams->n_layers;

    return n < LMQ_MAX_LAYERS ? n : LMQ_MAX_LAYERS;
}

void
lmq_hf_mark(struct lmq_hf_config *config, int64_t layer,
            enum lmq_layer_kind kind)
{
    if (layer >= 0 && layer < lmq_hf_layers(config))
        config->hparams->layers[layer] |= (uint32_t)kind;
}

void
lmq_hf_unmark(struct lmq_hf_config *config, int64_t layer,
              enum lmq_layer_kind kind)
{
    if (layer >= 0 && layer < lmq_hf_layers(config))
        config->hparams->layers[layer] &= (uint32_t)~(unsigned)kind;
}

uint32_t
lmq_hf_period(struct lmq_hf_config *config, const char *key, uint32_t absent)
{
    uint32_t period = lmq_hf_count(config, config->json, key, absent);

    if (period == 0)
        lmq_hf_fail(config, "'%s' in the configuration is 0", key);
    return period == 0 ? 1 : period;
}

void
lmq_hf_expect_layers(struct lmq_hf_config *config, const char *key, size_t n)
{
    uint32_t n_layers = config->hparams->n_layers;

    if (n != n_layers &&
        n != (size_t)n_layers + config->source->n_further_layers)
        lmq_hf_fail(config, "'%s' in the configuration names %zu of %u layers",
                    key, n, n_layers);
}

bool
lmq_hf_mark_listed_dense(struct lmq_hf_config *config)
{
    static const char key[] = "mlp_layer_types";
    const json_t *list = lmq_hf_list(config, config->json, key);
    struct lmq_hparams *h = config->hparams;

    if (list == NULL)
        return false;
    lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const char *type = json_string_value(json_array_get(list, i));
        if (type != NULL && strcmp(type, "dense") == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
        else if (type == NULL || strcmp(type, "sparse") != 0)
            lmq_hparams_refuse(h, "'%.60s' in '%s'",
                               type == NULL ? "(none)" : type, key);
    }
    return true;
}

bool
lmq_hf_mark_by_list(struct lmq_hf_config *config, const char *key,
                    enum lmq_layer_kind kind)
{
    const json_t *list = lmq_hf_list(config, config->json, key);

    if (list == NULL)
        return false;
    lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        int64_t number = lmq_hf_number(config, json_array_get(list, i), key);
        if (number == 0)
            lmq_hf_mark(config, i, kind);
        else if (number != 1)
            lmq_hparams_refuse(config->hparams, "a %lld in '%s'",
                               (long long)number, key);
    }
    return true;
}

void
lmq_hf_leave_windows(struct lmq_hf_config *config, uint32_t period)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if ((i + 1) % period == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_FULL);
}

/* ---- Writing ---- */

void
lmq_hf_put_count(json_t **config, const char *key, uint64_t value)
{
    lmq_put(config, key, json_integer((json_int_t)value));
}

/* 1 / (1 / sqrt(144))^2 is to be 144. */
void
lmq_hf_put_real(json_t **config, const char *key, double value)
{
    double whole = round(value);

    lmq_put(config, key,
            lmq_json_number(fabs(value - whole) < 1e-9 * whole ? whole
                                                               : value));
}

void
lmq_hf_put_switch(json_t **config, const char *key, bool value)
{
    lmq_put(config, key, json_boolean(value));
}

void
lmq_hf_put_text(json_t **config, const char *key, const char *value)
{
    lmq_put(config, key, json_string(value));
}

void
lmq_hf_put_null(json_t **config, const char *key)
{
    lmq_put(config, key, json_null());
}
