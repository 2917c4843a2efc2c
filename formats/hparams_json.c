/*
 * hparams_json.c - descriptions as JSON: the object "model" of lmq(5).
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "formats/hparams_fields.h"

static void *
at(struct lmq_hparams *hparams, size_t offset)
{
    return (char *)hparams + offset;
}

/* ---- To JSON ---- */

static json_t *
layers_to_json(const struct lmq_hparams *hparams, enum lmq_layer_kind kind)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (lmq_layer_is(hparams, i, kind))
            lmq_append(&list, json_integer(i));
    return list;
}

static json_t *
factors_to_json(const struct lmq_hparams *hparams, size_t offset)
{
    const double *factors = (const void *)((const char *)hparams + offset);
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_rope_factors; i++)
        lmq_append(&list, lmq_json_number(factors[i]));
    return list;
}

/* What version 1.0 does not know. */
static void
put_extras(const struct lmq_hparams *h, json_t **json)
{
    struct lmq_hparams usual;

    lmq_hparams_init(&usual);
    for (const struct lmq_count_field *f = lmq_hparams_counts; f->key != NULL;
         f++)
        if (f->presence == LMQ_SELDOM &&
            lmq_count_at(h, f->offset) != lmq_count_at(&usual, f->offset))
            lmq_put(json, f->key, json_integer(lmq_count_at(h, f->offset)));
    for (const struct lmq_real_field *f = lmq_hparams_reals; f->key != NULL;
         f++) {
        double value = lmq_real_at(h, f->offset);
        double normal = lmq_real_at(&usual, f->offset);
        if (f->presence == LMQ_SELDOM && (value < normal || value > normal))
            lmq_put(json, f->key, lmq_json_number(value));
    }
    for (const struct lmq_switch_field *f = lmq_hparams_switches;
         f->key != NULL; f++)
        if (lmq_switch_at(h, f->offset) != lmq_switch_at(&usual, f->offset))
            lmq_put(json, f->key, json_boolean(lmq_switch_at(h, f->offset)));
    for (const struct lmq_kind_field *f = lmq_hparams_kinds; f->key != NULL;
         f++)
        if (f->presence == LMQ_SELDOM &&
            lmq_kind_at(h, f->offset) != lmq_kind_at(&usual, f->offset))
            lmq_put(json, f->key,
                    json_string(f->names[lmq_kind_at(h, f->offset)]));
    for (const struct lmq_layer_field *f = lmq_hparams_layers; f->key != NULL;
         f++) {
        json_t *list = layers_to_json(h, f->kind);
        if (list == NULL || json_array_size(list) > 0)
            lmq_put(json, f->key, list);
        else
            json_decref(list);
    }
    for (const struct lmq_factor_field *f = lmq_hparams_factors;
         f->key != NULL && h->n_rope_factors > 0; f++)
        lmq_put(json, f->key, factors_to_json(h, f->offset));
}

json_t *
lmq_hparams_to_json(const struct lmq_hparams *hparams, bool *is_newer)
{
    json_t *json = json_object(), *eos = json_array();

    lmq_put(&json, "architecture", lmq_json_text(hparams->architecture));
    if (hparams->unsupported[0] != '\0')
        lmq_put(&json, "unsupported", lmq_json_text(hparams->unsupported));
    for (const struct lmq_count_field *f = lmq_hparams_counts; f->key != NULL;
         f++)
        if (f->presence == LMQ_ALWAYS)
            lmq_put(&json, f->key,
                    json_integer(lmq_count_at(hparams, f->offset)));
    for (const struct lmq_real_field *f = lmq_hparams_reals; f->key != NULL;
         f++)
        if (f->presence == LMQ_ALWAYS)
            lmq_put(&json, f->key,
                    lmq_json_number(lmq_real_at(hparams, f->offset)));
    for (const struct lmq_kind_field *f = lmq_hparams_kinds; f->key != NULL;
         f++)
        if (f->presence == LMQ_ALWAYS)
            lmq_put(&json, f->key,
                    json_string(f->names[lmq_kind_at(hparams, f->offset)]));
    if (hparams->bos >= 0)
        lmq_put(&json, "bos", json_integer(hparams->bos));
    for (uint32_t i = 0; i < hparams->n_eos; i++)
        lmq_append(&eos, json_integer(hparams->eos[i]));
    lmq_put(&json, "eos", eos);
    size_t n = json_object_size(json);
    put_extras(hparams, &json);
    if (is_newer != NULL)
        *is_newer = json_object_size(json) > n;
    return json;
}

/* ---- From JSON ---- */

static enum lmq_status
read_numbers(const json_t *json, struct lmq_hparams *hparams,
             struct lmq_error *err)
{
    for (const struct lmq_count_field *f = lmq_hparams_counts; f->key != NULL;
         f++) {
        const json_t *value = json_object_get(json, f->key);
        json_int_t count = json_integer_value(value);
        if (value == NULL && f->presence == LMQ_SELDOM)
            continue;
        if (!json_is_integer(value) || count < 0 || count > f->most)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is no number up to %u", f->key,
                            f->most);
        *(uint32_t *)at(hparams, f->offset) = (uint32_t)count;
    }
    for (const struct lmq_real_field *f = lmq_hparams_reals; f->key != NULL;
         f++) {
        const json_t *value = json_object_get(json, f->key);
        if (value == NULL && f->presence == LMQ_SELDOM)
            continue;
        if (!json_is_number(value))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is no number", f->key);
        *(double *)at(hparams, f->offset) = json_number_value(value);
    }
    return LMQ_OK;
}

static enum lmq_status
read_switches(const json_t *json, struct lmq_hparams *hparams,
              struct lmq_error *err)
{
    for (const struct lmq_switch_field *f = lmq_hparams_switches;
         f->key != NULL; f++) {
        const json_t *value = json_object_get(json, f->key);
        if (value == NULL)
            continue;
        if (!json_is_boolean(value))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is neither true nor false", f->key);
        *(bool *)at(hparams, f->offset) = json_is_true(value);
    }
    return LMQ_OK;
}

static void
read_kinds(const json_t *json, struct lmq_hparams *hparams)
{
    for (const struct lmq_kind_field *f = lmq_hparams_kinds; f->key != NULL;
         f++) {
        const json_t *value = json_object_get(json, f->key);
        const char *name = json_string_value(value);
        int kind = 0;
        if (value == NULL && f->presence == LMQ_SELDOM)
            continue;
        while (f->names[kind] != NULL &&
               (name == NULL || strcmp(name, f->names[kind]) != 0))
            kind++;
        if (f->names[kind] != NULL)
            memcpy(at(hparams, f->offset), &kind, sizeof(kind));
        else
            lmq_hparams_refuse(hparams, "%s '%.60s'", f->what,
                               name == NULL ? "" : name);
    }
}

static enum lmq_status
read_layers(const json_t *json, struct lmq_hparams *hparams,
            struct lmq_error *err)
{
    for (const struct lmq_layer_field *f = lmq_hparams_layers; f->key != NULL;
         f++) {
        json_t *list = json_object_get(json, f->key), *layer;
        size_t j;
        if (list != NULL && !json_is_array(list))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s are no list", f->key);
        json_array_foreach(list, j, layer) {
            json_int_t number = json_integer_value(layer);
            if (!json_is_integer(layer) || number < 0 ||
                number >= hparams->n_layers)
                return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                                "the model's %s name a layer that it does "
                                "not have",
                                f->key);
            hparams->layers[number] |= (unsigned char)f->kind;
        }
    }
    return LMQ_OK;
}

static enum lmq_status
read_factors(const json_t *json, struct lmq_hparams *hparams,
             struct lmq_error *err)
{
    for (const struct lmq_factor_field *f = lmq_hparams_factors; f->key != NULL;
         f++) {
        json_t *list = json_object_get(json, f->key), *factor;
        double *factors = at(hparams, f->offset);
        size_t j, n = json_array_size(list);
        if (list == NULL)
            continue;
        if (!json_is_array(list) || n > LMQ_MAX_ROPE_FACTORS ||
            (f != lmq_hparams_factors && n != hparams->n_rope_factors))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s are no list of up to %d numbers, "
                            "as many as of the other kind",
                            f->key, LMQ_MAX_ROPE_FACTORS);
        hparams->n_rope_factors = (uint32_t)n;
        json_array_foreach(list, j, factor)
            factors[j] = json_number_value(factor);
    }
    return LMQ_OK;
}

static void
read_text(const json_t *json, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(json, key));

    snprintf(text, size, "%s", value == NULL ? "" : value);
}

static void
read_ids(const json_t *json, struct lmq_hparams *hparams)
{
    const json_t *bos = json_object_get(json, "bos");
    json_t *eos = json_object_get(json, "eos"), *id;
    size_t i;

    if (json_is_integer(bos) && json_integer_value(bos) >= 0 &&
        json_integer_value(bos) <= INT32_MAX)
        hparams->bos = (int32_t)json_integer_value(bos);
    json_array_foreach(eos, i, id)
        if (json_is_integer(id) && json_integer_value(id) >= 0 &&
            json_integer_value(id) <= INT32_MAX && hparams->n_eos < LMQ_MAX_EOS)
            hparams->eos[hparams->n_eos++] = (int32_t)json_integer_value(id);
}

enum lmq_status
lmq_hparams_from_json(const json_t *json, struct lmq_hparams *hparams,
                      struct lmq_error *err)
{
    lmq_hparams_init(hparams);
    enum lmq_status status = read_numbers(json, hparams, err);
    if (status == LMQ_OK)
        status = read_switches(json, hparams, err);
    if (status == LMQ_OK)
        status = read_layers(json, hparams, err);
    if (status == LMQ_OK)
        status = read_factors(json, hparams, err);
    if (status != LMQ_OK)
        return status;
    read_text(json, "architecture", hparams->architecture,
              sizeof(hparams->architecture));
    read_text(json, "unsupported", hparams->unsupported,
              sizeof(hparams->unsupported));
    read_kinds(json, hparams);
    read_ids(json, hparams);
    return LMQ_OK;
}
