/*
 * hparams_json.c - descriptions as JSON: lmq-model(5).
 *
 * The same table of fields in both directions. Fields that version 1.0 of the
 * description had are always written; later ones only where they differ from
 * their defaults, and then they are named under "requires": a reader that does
 * not know one of these must not compute.
 */
#include "config.h"

#include "formats/model/hparams_json.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "formats/model/hparams_fields.h"

/* ---- To JSON ---- */

/* The numbers of the layers that are so. */
static json_t *
layers_to_json(const struct lmq_hparams *hparams, enum lmq_layer_kind kind)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (lmq_layer_is(hparams, i, kind))
            lmq_append(&list, json_integer(i));
    return list;
}

/* A number for each layer. */
static json_t *
numbers_to_json(const struct lmq_field *f, const struct lmq_hparams *hparams)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_layers; i++)
        lmq_append(&list, json_integer(f->of_layer(hparams, i)));
    return list;
}

static json_t *
integers_to_json(const struct lmq_field *f, const struct lmq_hparams *hparams)
{
    uint32_t n;
    const uint64_t *integers = lmq_field_integers(f, hparams, &n);
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++) {
        if (f->type == LMQ_FIELD_PAIRS)
            lmq_append(&list, json_integer((json_int_t)(integers[i] >> 32)));
        lmq_append(&list, json_integer(f->type == LMQ_FIELD_PAIRS
                                           ? (json_int_t)(uint32_t)integers[i]
                                           : (json_int_t)integers[i]));
    }
    return list;
}

static json_t *
factors_to_json(const struct lmq_hparams *hparams, const double *factors)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_rope_factors; i++)
        lmq_append(&list, lmq_json_number(factors[i]));
    return list;
}

/* An integer stays one: whoever reads JSON may tell 32 from 32.0. */
json_t *
lmq_field_to_json(const struct lmq_field *f, const struct lmq_hparams *hparams)
{
    switch (f->type) {
    case LMQ_FIELD_COUNT:
        return json_integer((json_int_t)lmq_field_get(f, hparams));
    case LMQ_FIELD_REAL:
        return lmq_json_number(lmq_field_get(f, hparams));
    case LMQ_FIELD_SWITCH:
        return json_boolean(lmq_field_get(f, hparams) > 0);
    case LMQ_FIELD_KIND:
        return json_string(f->names[(int)lmq_field_get(f, hparams)]);
    case LMQ_FIELD_LAYERS:
        return layers_to_json(hparams, f->bit);
    case LMQ_FIELD_NUMBERS:
        return numbers_to_json(f, hparams);
    case LMQ_FIELD_INTEGERS:
    case LMQ_FIELD_PAIRS:
        return integers_to_json(f, hparams);
    default:
        return factors_to_json(hparams, lmq_field_factors(f, hparams));
    }
}

json_t *
lmq_hparams_to_json(const struct lmq_hparams *hparams)
{
    json_t *json = json_object(), *eos = json_array(), *needed = json_array();
    const struct lmq_field *f = lmq_fields;
    struct lmq_hparams usual;

    lmq_hparams_init(&usual);
    lmq_put(&json, "architecture", lmq_json_text(hparams->architecture));
    if (hparams->unsupported[0] != '\0')
        lmq_put(&json, "unsupported", lmq_json_text(hparams->unsupported));
    for (; f->presence == LMQ_ALWAYS; f++)
        lmq_put(&json, f->key, lmq_field_to_json(f, hparams));
    if (hparams->bos >= 0)
        lmq_put(&json, "bos", json_integer(hparams->bos));
    for (uint32_t i = 0; i < hparams->n_eos; i++)
        lmq_append(&eos, json_integer(hparams->eos[i]));
    lmq_put(&json, "eos", eos);
    /* Whoever does not know one of these computes something else. */
    for (; f->key != NULL; f++)
        if (!lmq_field_is_same(f, hparams, &usual, 0)) {
            lmq_put(&json, f->key, lmq_field_to_json(f, hparams));
            lmq_append(&needed, json_string(f->key));
        }
    if (needed == NULL || json_array_size(needed) > 0)
        lmq_put(&json, "requires", needed);
    else
        json_decref(needed);
    return json;
}

/* ---- From JSON ---- */

/* Limits stand in the table of fields: what is beyond them no model has, and
 * products of them fit. */
static enum lmq_status
read_count(const struct lmq_field *f, const json_t *value,
           struct lmq_hparams *hparams, struct lmq_error *err)
{
    json_int_t count = json_integer_value(value);

    if (!json_is_integer(value) || count < 0 || count > f->most)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s is no number up to %u", f->key,
                        f->most);
    if (count < f->least)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s is %u, expected %u to %u", f->key,
                        (unsigned)count, f->least, f->most);
    lmq_field_set(f, hparams, (double)count);
    return LMQ_OK;
}

static enum lmq_status
read_real(const struct lmq_field *f, const json_t *value,
          struct lmq_hparams *hparams, struct lmq_error *err)
{
    if (!json_is_number(value))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the model's %s is no number",
                        f->key);
    if (!(json_number_value(value) >= 0 && json_number_value(value) <= 1e30))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s is %g, expected 0 to 1e30", f->key,
                        json_number_value(value));
    lmq_field_set(f, hparams, json_number_value(value));
    return LMQ_OK;
}

static enum lmq_status
read_switch(const struct lmq_field *f, const json_t *value,
            struct lmq_hparams *hparams, struct lmq_error *err)
{
    if (!json_is_boolean(value))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s is neither true nor false", f->key);
    lmq_field_set(f, hparams, json_is_true(value));
    return LMQ_OK;
}

/* A word that is not known is no damage: a later version may have written it.
 * The model then cannot run, and says for which word. */
static enum lmq_status
read_kind(const struct lmq_field *f, const json_t *value,
          struct lmq_hparams *hparams, struct lmq_error *err)
{
    const char *name = json_string_value(value);
    int kind = 0;

    if (value != NULL && name == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the model's %s is no word",
                        f->key);
    while (f->names[kind] != NULL &&
           (name == NULL || strcmp(name, f->names[kind]) != 0))
        kind++;
    if (f->names[kind] != NULL)
        lmq_field_set(f, hparams, kind);
    else
        lmq_hparams_refuse(hparams, "%s '%.60s'", f->what,
                           name == NULL ? "" : name);
    return LMQ_OK;
}

/* Only layers that there are: n_layers stands before the lists in the table.
 */
static enum lmq_status
read_layers(const struct lmq_field *f, const json_t *list,
            struct lmq_hparams *hparams, struct lmq_error *err)
{
    const json_t *layer;
    size_t i;

    if (!json_is_array(list))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the model's %s are no list",
                        f->key);
    json_array_foreach(list, i, layer) {
        json_int_t number = json_integer_value(layer);
        if (!json_is_integer(layer) || number < 0 ||
            number >= hparams->n_layers)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s name a layer that it does not "
                            "have",
                            f->key);
        hparams->layers[number] |= (uint32_t)f->bit;
    }
    return LMQ_OK;
}

/* As many as there are layers, or none. */
static enum lmq_status
read_numbers(const struct lmq_field *f, const json_t *list,
             struct lmq_hparams *hparams, struct lmq_error *err)
{
    uint32_t *numbers = (void *)((char *)hparams + f->offset);
    const json_t *item;
    size_t i, n = json_array_size(list);

    if (!json_is_array(list) || (n != 0 && n != hparams->n_layers))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s are no list of %u numbers, one for "
                        "each layer",
                        f->key, hparams->n_layers);
    json_array_foreach(list, i, item) {
        json_int_t number = json_integer_value(item);
        if (!json_is_integer(item) || number < f->least || number > f->most)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s have no number from %u to %u for "
                            "layer %zu",
                            f->key, f->least, f->most, i);
        numbers[i] = (uint32_t)number;
    }
    return LMQ_OK;
}

/* However many; each of 32 bits, or two such of one number. */
static enum lmq_status
read_integers(const struct lmq_field *f, const json_t *list,
              struct lmq_hparams *hparams, struct lmq_error *err)
{
    uint64_t *integers = (void *)((char *)hparams + f->offset);
    uint32_t *count = (void *)((char *)hparams + f->n_offset);
    size_t i, n = json_array_size(list);
    size_t each = f->type == LMQ_FIELD_PAIRS ? 2 : 1;
    const json_t *item;

    if (!json_is_array(list) || n % each != 0 ||
        n / each > LMQ_MAX_GRAM_NUMBERS)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s are no list of up to %zu numbers%s",
                        f->key, LMQ_MAX_GRAM_NUMBERS * each,
                        each == 2 ? ", an even number of them" : "");
    *count = (uint32_t)(n / each);
    json_array_foreach(list, i, item) {
        json_int_t number = json_integer_value(item);
        if (!json_is_integer(item) || number < 0 || number > UINT32_MAX)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s hold something else than whole "
                            "numbers of 32 bits",
                            f->key);
        integers[i / each] = i % each == 0
                                 ? (uint64_t)number
                                 : integers[i / each] << 32 | (uint64_t)number;
    }
    return LMQ_OK;
}

/* Both lists have as many factors, one for each frequency of RoPE. */
static enum lmq_status
read_factors(const struct lmq_field *f, const json_t *list,
             struct lmq_hparams *hparams, struct lmq_error *err)
{
    double *factors = (void *)((char *)hparams + f->offset);
    size_t i, n = json_array_size(list);
    bool is_first = f->offset == LMQ_FIELD(rope_short);
    const json_t *factor;

    if (!json_is_array(list) || n > LMQ_MAX_ROPE_FACTORS ||
        (!is_first && n != hparams->n_rope_factors))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s are no list of up to %d numbers, as "
                        "many as of the other kind",
                        f->key, LMQ_MAX_ROPE_FACTORS);
    hparams->n_rope_factors = (uint32_t)n;
    json_array_foreach(list, i, factor) {
        if (!json_is_number(factor))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s hold something else than numbers",
                            f->key);
        factors[i] = json_number_value(factor);
    }
    return LMQ_OK;
}

/* A key that version 1.0 knows must be there, but for the kind of scaling,
 * which then is one that we do not know. */
static enum lmq_status
read_fields(const json_t *json, struct lmq_hparams *hparams,
            struct lmq_error *err)
{
    static enum lmq_status (*const read[])(
        const struct lmq_field *f, const json_t *value,
        struct lmq_hparams *hparams, struct lmq_error *err) = {
        [LMQ_FIELD_COUNT] = read_count,   [LMQ_FIELD_REAL] = read_real,
        [LMQ_FIELD_SWITCH] = read_switch, [LMQ_FIELD_KIND] = read_kind,
        [LMQ_FIELD_LAYERS] = read_layers, [LMQ_FIELD_FACTORS] = read_factors,
        [LMQ_FIELD_NUMBERS] = read_numbers,
        [LMQ_FIELD_INTEGERS] = read_integers,
        [LMQ_FIELD_PAIRS] = read_integers,
    };

    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++) {
        const json_t *value = json_object_get(json, f->key);
        if (value == NULL && f->presence == LMQ_ALWAYS &&
            f->type != LMQ_FIELD_KIND)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the description of the model has no %s", f->key);
        enum lmq_status status =
            value == NULL && f->presence == LMQ_SELDOM
                ? LMQ_OK
                : read[f->type](f, value, hparams, err);
        if (status != LMQ_OK)
            return status;
    }
    if ((json_array_size(json_object_get(json, "rope_short")) == 0) !=
        (json_array_size(json_object_get(json, "rope_long")) == 0))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model has only one of rope_short and rope_long");
    return LMQ_OK;
}

/* What is too long is cut: it is only shown. */
static enum lmq_status
read_text(const json_t *json, const char *key, char *text, size_t size,
          struct lmq_error *err)
{
    const json_t *value = json_object_get(json, key);

    if (value != NULL && !json_is_string(value))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the model's %s is no text",
                        key);
    snprintf(text, size, "%s", value == NULL ? "" : json_string_value(value));
    return LMQ_OK;
}

static enum lmq_status
read_id(const char *key, const json_t *id, int32_t *value,
        struct lmq_error *err)
{
    json_int_t number = json_integer_value(id);

    if (!json_is_integer(id) || number < 0 || number > INT32_MAX)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's %s is no token from 0 to %d", key,
                        INT32_MAX);
    *value = (int32_t)number;
    return LMQ_OK;
}

static enum lmq_status
read_ids(const json_t *json, struct lmq_hparams *hparams,
         struct lmq_error *err)
{
    const json_t *bos = json_object_get(json, "bos"), *id;
    const json_t *eos = json_object_get(json, "eos");
    size_t i;
    enum lmq_status status =
        bos == NULL ? LMQ_OK : read_id("bos", bos, &hparams->bos, err);

    if (status != LMQ_OK || eos == NULL)
        return status;
    if (!json_is_array(eos) || json_array_size(eos) > LMQ_MAX_EOS)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's eos are no list of up to %d tokens",
                        LMQ_MAX_EOS);
    json_array_foreach(eos, i, id) {
        status = read_id("eos", id, &hparams->eos[i], err);
        if (status != LMQ_OK)
            return status;
    }
    hparams->n_eos = (uint32_t)json_array_size(eos);
    return LMQ_OK;
}

/* Those that stand in no table are known, too. */
static bool
is_known_key(const char *name)
{
    static const char *const others[] = {"architecture", "unsupported", "bos",
                                         "eos", "requires"};

    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++)
        if (strcmp(f->key, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i], name) == 0)
            return true;
    return false;
}

/* What is needed for computing and not known here. */
static enum lmq_status
read_requires(const json_t *json, struct lmq_hparams *hparams,
              struct lmq_error *err)
{
    const json_t *needed = json_object_get(json, "requires"), *key;
    size_t i;

    if (needed != NULL && !json_is_array(needed))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the model's requires are no list of keys");
    json_array_foreach(needed, i, key) {
        const char *name = json_string_value(key);
        if (name == NULL || json_object_get(json, name) == NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model requires '%s', which it does not have",
                            name == NULL ? "" : name);
        if (!is_known_key(name))
            lmq_hparams_refuse(hparams, "the key '%.60s' of the model", name);
    }
    return LMQ_OK;
}

enum lmq_status
lmq_hparams_from_json(const json_t *json, struct lmq_hparams *hparams,
                      struct lmq_error *err)
{
    lmq_hparams_init(hparams);
    enum lmq_status status =
        read_text(json, "architecture", hparams->architecture,
                  sizeof(hparams->architecture), err);
    /* The first reason stays: that of whoever wrote it. */
    if (status == LMQ_OK)
        status = read_text(json, "unsupported", hparams->unsupported,
                           sizeof(hparams->unsupported), err);
    if (status == LMQ_OK)
        status = read_ids(json, hparams, err);
    if (status == LMQ_OK)
        status = read_requires(json, hparams, err);
    return status == LMQ_OK ? read_fields(json, hparams, err) : status;
}
