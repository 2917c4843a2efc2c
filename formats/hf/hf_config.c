/*
 * hf_config.c - config.json -> hyper-parameters, and back.
 *
 * Defaults are those that the model classes give to keys that are absent. A
 * key that changes the computation in a way that the description cannot say
 * is noted as unsupported, never ignored. What each family's keys mean is in
 * families.c; how the weights may be packed, in packed.c.
 */
#include "config.h"

#include "formats/hf/hf_config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/text/buffer.h"
#include "formats/families/families.h"
#include "formats/hf/hf_reader.h"
#include "formats/model/hparams_fields.h"
#include "formats/model/hparams_json.h"

/* Duplicate keys are refused: of two values for one key, readers keep the
 * first or the last. */
enum lmq_status
lmq_json_parse(const unsigned char *text, size_t size, json_t **json,
               struct lmq_error *err)
{
    json_error_t problem;

    enum lmq_status status = lmq_json_read(text, size, JSON_REJECT_DUPLICATES,
                                           json, &problem, err);
    if (status == LMQ_ERR_FORMAT && size == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is empty");
    if (status == LMQ_ERR_FORMAT)
        return lmq_fail(err, LMQ_ERR_FORMAT, (uint64_t)problem.position,
                        "is no valid JSON: %s (line %d, column %d)",
                        problem.text, problem.line, problem.column);
    return status;
}

/* The name of a number that is none, where one begins; else 0. */
static size_t
name_of_no_number(const unsigned char *at, size_t n)
{
    static const char *const names[] = {"Infinity", "-Infinity", "NaN"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if (n >= length && memcmp(at, names[i], length) == 0)
            return length;
    }
    return 0;
}

/* Python's writers use these names, which JSON has not: published models with
 * state spaces have a limit of Infinity. Quoted they are texts, which no key of
 * a number takes. False if there are none, or no memory. */
static bool
quote_names(const unsigned char *text, size_t size, struct lmq_buffer *quoted)
{
    bool is_text = false;
    size_t n_quoted = 0, done = 0;

    for (size_t at = 0; at < size; at++) {
        size_t n = is_text ? 0 : name_of_no_number(text + at, size - at);
        if (n > 0) {
            lmq_buffer_append(quoted, text + done, at - done);
            lmq_buffer_print(quoted, "\"%.*s\"", (int)n,
                             (const char *)text + at);
            done = at + n;
            at = done - 1;
            n_quoted++;
        } else if (is_text && text[at] == '\\') {
            at++; /* what is escaped ends no text */
        } else if (text[at] == '"') {
            is_text = !is_text;
        }
    }
    lmq_buffer_append(quoted, text + done, size - done);
    return n_quoted > 0 && !quoted->has_failed;
}

enum lmq_status
lmq_config_json(const unsigned char *text, size_t size, json_t **json,
                struct lmq_error *err)
{
    struct lmq_buffer quoted = {0};
    enum lmq_status status = lmq_json_parse(text, size, json, err);

    if (status != LMQ_ERR_FORMAT)
        return status;
    if (quote_names(text, size, &quoted))
        status = lmq_json_parse(quoted.bytes, quoted.n, json, err);
    else if (quoted.has_failed)
        status = lmq_fail_nomem(err);
    lmq_buffer_free(&quoted);
    return status;
}

/* ---- Keys and fields ---- */

/* A key is there, or absent, or null, and these are three things: for a window
 * null means that there is none, while an absent key has the default of the
 * model's class. key->absent says what an absent one means; negative, that the
 * field stays as it is. */
static void
read_key(struct lmq_hf_config *config, const struct lmq_hf_key *key)
{
    const struct lmq_field *field = lmq_field_at(key->field);
    const json_t *json = config->json;
    double value = key->absent;

    if (key->null_is_none && lmq_hf_is_null(json, key->key))
        value = 0;
    if (value < 0 && !lmq_hf_has(json, key->key))
        return;
    if (value < 0)
        value = 0; /* KEEP or ALIAS, and it is there */
    if (field->type == LMQ_FIELD_COUNT)
        value = lmq_hf_count(config, json, key->key, (uint32_t)value);
    else if (field->type == LMQ_FIELD_REAL)
        value = lmq_hf_real(config, json, key->key, value);
    else
        value = lmq_hf_switch(config, json, key->key, value > 0);
    lmq_field_set(field, config->hparams, value);
}

static void
read_keys(struct lmq_hf_config *config)
{
    const struct lmq_family *family = config->family;

    for (size_t i = 0; i < LMQ_HF_MOST_LISTS; i++)
        for (const struct lmq_hf_key *key = family->hf.keys[i];
             key != NULL && key->key != NULL; key++)
            read_key(config, key);
    config->hparams->norm_eps = family->hf.eps;
    if (family->hf.eps_key != NULL)
        config->hparams->norm_eps =
            lmq_hf_real(config, config->json, family->hf.eps_key,
                        family->hf.eps);
    if (family->hf.qk_norm_key == NULL ||
        lmq_hf_switch(config, config->json, family->hf.qk_norm_key,
                      family->hf.has_qk_norm_unsaid))
        config->hparams->qk_norm = family->qk_norm;
}

/* What the model's class is, whatever its config.json says. */
static void
begin(struct lmq_hf_config *config)
{
    const struct lmq_family *family = config->family;
    struct lmq_hparams *h = config->hparams;

    *config->source = family->hf.source;
    h->norm = family->norm;
    h->norm_place = family->norm_place;
    h->residual = family->residual;
    h->positions = family->positions;
    h->is_gated = !family->is_plain;
    h->context = family->hf.context;
    h->n_kv_heads = family->hf.n_kv_heads;
    h->head_dim = family->hf.head_dim;
}

/* Files leave out what their class derives: as many heads of keys as of
 * queries, heads that share the width. */
static void
derive_sizes(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->n_kv_heads == 0)
        h->n_kv_heads = h->n_heads;
    if (h->head_dim != 0)
        return;
    if (h->n_heads == 0)
        lmq_hf_fail(config, "lacks 'num_attention_heads', or has none");
    else if (h->dim % h->n_heads != 0)
        lmq_hf_fail(config,
                    "'hidden_size' %u is no multiple of "
                    "'num_attention_heads' %u",
                    h->dim, h->n_heads);
    else
        h->head_dim = h->dim / h->n_heads;
}

/* ---- What all families have ---- */

/* By several names; the first of each is written. */
static const struct {
    const char *name;
    enum lmq_activation activation;
} activations[] = {
    {"silu", LMQ_ACTIVATION_SILU},
    {"swish", LMQ_ACTIVATION_SILU},
    {"gelu", LMQ_ACTIVATION_GELU},
    /* By erf(); the names with tanh, new and fast are the approximation, whose
     * results differ from the fourth digit on. */
    {"gelu_python", LMQ_ACTIVATION_GELU},
    {"gelu_pytorch_tanh", LMQ_ACTIVATION_GELU_TANH},
    {"gelu_python_tanh", LMQ_ACTIVATION_GELU_TANH},
    {"gelu_new", LMQ_ACTIVATION_GELU_TANH},
    {"gelu_fast", LMQ_ACTIVATION_GELU_TANH},
    {"gelu_accurate", LMQ_ACTIVATION_GELU_TANH},
    {"relu", LMQ_ACTIVATION_RELU},
    {"sigmoid", LMQ_ACTIVATION_SIGMOID},
    {"relu2", LMQ_ACTIVATION_RELU2},
    {"xielu", LMQ_ACTIVATION_XIELU},
};

#define N_ACTIVATIONS (sizeof(activations) / sizeof(activations[0]))

static const char *
activation_key(const struct lmq_family *family)
{
    return family->hf.activation_key == NULL ? "hidden_act"
                                             : family->hf.activation_key;
}

static void
read_activation(struct lmq_hf_config *config)
{
    const char *name = lmq_hf_text(config, config->json,
                                   activation_key(config->family), NULL);

    if (name == NULL) {
        config->hparams->activation = config->family->activation;
        return;
    }
    for (size_t i = 0; i < N_ACTIVATIONS; i++)
        if (strcmp(name, activations[i].name) == 0) {
            config->hparams->activation = activations[i].activation;
            return;
        }
    lmq_hparams_refuse(config->hparams, "the activation '%.60s'", name);
}

/* The library's words have changed. */
static bool
is_recurrent(const struct lmq_hparams *h, const char *type)
{
    if (h->n_delta_value_heads == 0)
        return false;
    return lmq_is_convolution(h) ? strcmp(type, "conv") == 0
                                 : strcmp(type, "linear_attention") == 0 ||
                                       strcmp(type, "mamba") == 0;
}

/* What looks at all that an indexer chooses. */
static bool
is_indexed(const char *type)
{
    return strcmp(type, "indexed_attention") == 0 ||
           strcmp(type, "minimax_m3_sparse") == 0;
}

/* "layer_types" says of each layer whether it has a window, or a recurrence in
 * place of attention. Where the model class does not look at it, it must not
 * say anything else than we do. */
static void
read_layer_types(struct lmq_hf_config *config)
{
    const json_t *list = lmq_hf_list(config, config->json, "layer_types");
    struct lmq_hparams *h = config->hparams;

    if (list == NULL || config->family->hf.has_own_layers)
        return;
    lmq_hf_expect_layers(config, "layer_types", json_array_size(list));
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const char *type = json_string_value(json_array_get(list, i));
        bool is_full = type != NULL && (strcmp(type, "full_attention") == 0 ||
                                        (config->source->n_chosen > 0
                                             ? is_indexed(type)
                                             : strcmp(type, "attention") == 0));
        const char *local = h->attention_chunk > 0 ? "chunked_attention"
                                                   : "sliding_attention";
        if (type != NULL && is_recurrent(h, type))
            h->layers[i] |= LMQ_LAYER_DELTA;
        else if (!is_full && (type == NULL || strcmp(type, local) != 0))
            lmq_hparams_refuse(h, "'%.60s' in 'layer_types'",
                               type == NULL ? "(none)" : type);
        else if (config->family->hf.has_layer_types && !is_full &&
                 h->sliding_window == 0 && h->attention_chunk == 0)
            lmq_hf_fail(config, "'layer_types' in the configuration gives "
                                "layer %u a window, and there is none",
                        i);
        else if (config->family->hf.has_layer_types)
            h->layers[i] = (h->layers[i] & ~(uint32_t)LMQ_LAYER_FULL) |
                           (is_full ? LMQ_LAYER_FULL : 0);
        else if (is_full != (lmq_layer_window(h, i) == 0))
            lmq_hparams_refuse(h, "'%s' in 'layer_types' of a model of this "
                                  "kind",
                               type);
    }
}

/* Keys that mean something else than all of ours do, but for one value; a word
 * of images alone does no harm. null is no word, or off. */
static const struct lmq_hf_only only_so[] = {
    {"is_causal", NULL, true},
    {"use_bidirectional_attention", "vision", false},
    {"is_encoder_decoder", NULL, false},
    {"add_cross_attention", NULL, false},
    {"scale_attn_by_inverse_layer_idx", NULL, false},
    {"apply_residual_connection_post_layernorm", NULL, false},
    {NULL, NULL, 0},
};

static bool
is_only(const struct lmq_hf_only *only, const json_t *value)
{
    double number = json_is_boolean(value) ? json_is_true(value)
                                           : json_number_value(value);

    if (json_is_null(value))
        return !(only->number > 0);
    if (json_is_string(value))
        return only->word != NULL &&
               strcmp(json_string_value(value), only->word) == 0;
    return (json_is_boolean(value) || json_is_number(value)) &&
           number >= only->number && number <= only->number;
}

static void
refuse_others(struct lmq_hf_config *config, const struct lmq_hf_only *only)
{
    struct lmq_hparams *h = config->hparams;

    for (; only != NULL && only->key != NULL; only++) {
        const json_t *value = json_object_get(config->json, only->key);
        if (value == NULL || is_only(only, value))
            continue;
        if (json_is_string(value))
            lmq_hparams_refuse(h, "'%s' '%.60s'", only->key,
                               json_string_value(value));
        else if (json_is_number(value))
            lmq_hparams_refuse(h, "'%s' %g", only->key,
                               json_number_value(value));
        else
            lmq_hparams_refuse(h, "'%s'%s", only->key,
                               json_is_true(value)    ? " true"
                               : json_is_false(value) ? " false"
                               : json_is_null(value)  ? " null"
                                                      : "");
    }
}

/* In a window of 0 nothing is seen, of 0 groups nothing is chosen: what has
 * none says null. */
static void
refuse_zeros(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    for (size_t i = 0; i < LMQ_HF_MOST_LISTS; i++)
        for (const struct lmq_hf_key *key = config->family->hf.keys[i];
             key != NULL && key->key != NULL; key++) {
            const json_t *value = json_object_get(config->json, key->key);
            if (json_is_integer(value) && json_integer_value(value) == 0 &&
                (key->field == LMQ_FIELD(sliding_window) ||
                 (key->field == LMQ_FIELD(n_expert_groups_used) &&
                  h->n_expert_groups > 0)))
                lmq_hparams_refuse(h, "'%s' 0", key->key);
        }
}

/* Models of several parts keep it outside of the text model's object; the
 * weights have the last word (adopt_head() in normalise.c). */
static void
read_tie(struct lmq_hf_config *config, const json_t *outer)
{
    static const char key[] = "tie_word_embeddings";
    const json_t *object = lmq_hf_has(outer, key) ? outer : config->json;
    enum lmq_tie *tie = &config->hparams->tie;

    if (!lmq_hf_has(object, key)) {
        *tie = config->family->hf.has_tied_head ? LMQ_TIE_YES : LMQ_TIE_UNSET;
        return;
    }
    *tie = lmq_hf_switch(config, object, key, false) ? LMQ_TIE_YES
                                                     : LMQ_TIE_NO;
    /* Outside it may be the library's default: the weights know better. */
    if (lmq_hf_has(config->json, key) &&
        !json_equal(json_object_get(object, key),
                    json_object_get(config->json, key)))
        *tie = LMQ_TIE_UNSET;
}

/* A token, or -1 for none: null, or a negative number. */
static int32_t
read_id(struct lmq_hf_config *config, const json_t *id, const char *key)
{
    const json_int_t number = json_integer_value(id);

    if (id == NULL || json_is_null(id) || (json_is_integer(id) && number < 0))
        return -1;
    if (json_is_integer(id) && number <= INT32_MAX)
        return (int32_t)number;
    lmq_hf_fail(config, "'%s' in the configuration is no token", key);
    return -1;
}

/* One id or a list. What stands outside of a nested object is read last and
 * counts. */
static void
read_ids(struct lmq_hf_config *config, const json_t *json)
{
    static const char ends[] = "eos_token_id";
    const json_t *bos = json_object_get(json, "bos_token_id");
    const json_t *eos = json_object_get(json, ends);
    struct lmq_hparams *h = config->hparams;
    uint32_t *n_left = &config->source->n_ends_left;
    int32_t begin = read_id(config, bos, "bos_token_id");
    int32_t end = json_is_array(eos) ? -1 : read_id(config, eos, ends);

    if (begin >= 0)
        h->bos = begin;
    if (end >= 0 || json_array_size(eos) > 0)
        h->n_eos = *n_left = 0;
    if (end >= 0)
        h->eos[h->n_eos++] = end;
    for (size_t i = 0; i < json_array_size(eos); i++) {
        end = read_id(config, json_array_get(eos, i), ends);
        if (end >= 0 && h->n_eos < LMQ_MAX_EOS)
            h->eos[h->n_eos++] = end;
        else if (end >= 0)
            ++*n_left;
    }
}

/* A count beyond its limits, by the name that it has in the file; what stands
 * in no key, or depends on several, is checked when all is known. */
static void
check_counts(struct lmq_hf_config *config)
{
    for (size_t i = 0; i < LMQ_HF_MOST_LISTS; i++)
        for (const struct lmq_hf_key *key = config->family->hf.keys[i];
             key != NULL && key->key != NULL; key++) {
            const struct lmq_field *field = lmq_field_at(key->field);
            const double value = lmq_field_get(field, config->hparams);
            if (field->type == LMQ_FIELD_COUNT &&
                lmq_hf_has(config->json, key->key) &&
                (value < field->least || value > field->most))
                lmq_hf_fail(config,
                            "'%s' in the configuration is %.0f, expected %u "
                            "to %u",
                            key->key, value, field->least, field->most);
        }
}

/* What is said of biases, or what the class has if nothing is; which there are,
 * is seen by the tensors. */
static void
read_biases(const struct lmq_hf_config *config)
{
    struct lmq_source *source = config->source;

    for (size_t role = 0; role < LMQ_ROLE_COUNT; role++) {
        const struct lmq_hf_bias *bias =
            lmq_family_bias(config->family, (enum lmq_role)role);
        if (bias->key == NULL)
            continue;
        const json_t *says = json_object_get(config->json, bias->key);
        if (lmq_hf_has(config->json, bias->key) && !json_is_boolean(says))
            continue;
        source->bias_key[role] = bias->key;
        source->says_bias[role] = json_is_boolean(says);
        source->has_bias[role] =
            json_is_boolean(says) ? json_is_true(says) : bias->absent;
    }
}

/* ---- The whole ---- */

/* Fields first, then what depends on several of them: sizes, activation,
 * positions, windows. The tables say what most families need; a family's own
 * functions stand before and after what they may have to change. */
static enum lmq_status
read_family(struct lmq_hf_config *config, const json_t *outer,
            const struct lmq_hf_class *class)
{
    const struct lmq_family *family = config->family;

    if (class->nested != NULL &&
        !(class->may_be_flat && !lmq_hf_has(outer, class->nested))) {
        config->json = lmq_hf_object(config, outer, class->nested);
        if (config->json == NULL)
            lmq_hf_fail(config, "lacks '%s'", class->nested);
    }
    begin(config);
    read_keys(config);
    if (family->hf.begin != NULL)
        family->hf.begin(config);
    if (config->hparams->n_layers > LMQ_MAX_LAYERS) {
        lmq_hf_fail(config, "n_layers is %u, expected %d at most",
                    config->hparams->n_layers, LMQ_MAX_LAYERS);
        return config->status;
    }
    derive_sizes(config);
    read_activation(config);
    if (config->hparams->positions == LMQ_POSITIONS_ROTARY)
        lmq_hf_read_rope(config);
    if (family->hf.windows != NULL)
        family->hf.windows(config);
    read_layer_types(config);
    if (family->hf.finish != NULL)
        family->hf.finish(config);
    refuse_zeros(config);
    lmq_hparams_settle(config->hparams);
    if (!config->is_beyond)
        check_counts(config);
    refuse_others(config, only_so);
    refuse_others(config, family->hf.only);
    read_tie(config, outer);
    read_biases(config);
    read_ids(config, config->json);
    read_ids(config, outer);
    return config->status;
}

/* The family of a class; of a model of several senses, that of its text, whose
 * kind is *text then. */
static const struct lmq_family *
find_family(const json_t *json, const char *class_name, const char *type,
            const struct lmq_hf_class **class, const char **text)
{
    const struct lmq_family *family =
        lmq_family_of_class(class_name, type, class);

    *text = NULL;
    if (*class == NULL || (*class)->nested == NULL)
        return family;
    *text = json_string_value(json_object_get(
        json_object_get(json, (*class)->nested), "model_type"));
    return *text == NULL ? family : lmq_family_of_text(family, *text);
}

/* The class decides, since several share a model_type; older files have only
 * the latter. An architecture that is not known makes no error here: its
 * tensors can be looked at and converted all the same. */
static enum lmq_status
read_config(const json_t *json, struct lmq_hparams *hparams,
            struct lmq_source *source, bool *is_known, struct lmq_error *err)
{
    const char *class_name = json_string_value(
        json_array_get(json_object_get(json, "architectures"), 0));
    const char *type =
        json_string_value(json_object_get(json, "model_type"));
    const char *name = class_name == NULL ? type : class_name, *text;
    const struct lmq_hf_class *class;
    struct lmq_hf_config config = {
        .json = json,
        .family = find_family(json, class_name, type, &class, &text),
        .hparams = hparams,
        .source = source,
        .err = err,
    };

    *is_known = config.family != NULL;
    snprintf(hparams->architecture, sizeof(hparams->architecture), "%.63s",
             *is_known ? config.family->name : name == NULL ? "" : name);
    if (*is_known) {
        enum lmq_status status = read_family(&config, json, class);
        *is_known = !config.is_beyond;
        return status;
    }
    if (text != NULL)
        lmq_hparams_refuse(hparams, "text of the kind '%.31s' in '%.63s'",
                           text, name == NULL ? "" : name);
    else if (class != NULL)
        lmq_hparams_refuse(hparams, "text of no kind ('%s' has no "
                                    "'model_type') in '%.63s'",
                           class->nested, name);
    else
        lmq_hparams_refuse(hparams, "the architecture '%.63s'",
                           name == NULL || *name == '\0' ? "(none)" : name);
    return LMQ_OK;
}

/* "lmquant" holds a description in words of lmq-model(5), for models that have
 * no family, and as exports write it for those that Hugging Face has no class
 * for. */
enum lmq_status
lmq_config_parse(const unsigned char *text, size_t size,
                 struct lmq_hparams *hparams, struct lmq_source *source,
                 bool *is_known, struct lmq_error *err)
{
    json_t *json;
    enum lmq_status status = lmq_config_json(text, size, &json, err);

    *source = (struct lmq_source){0};
    *is_known = false;
    if (status != LMQ_OK)
        return status;
    const json_t *ours = json_object_get(json, "lmquant");
    if (!json_is_object(json)) {
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "is no JSON object");
    } else if (ours == NULL) {
        status = read_config(json, hparams, source, is_known, err);
    } else if (!json_is_object(ours)) {
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "'lmquant' in the configuration is no object");
    } else {
        status = lmq_hparams_from_json(ours, hparams, err);
        *is_known = status == LMQ_OK;
    }
    json_decref(json);
    return status;
}

/* ---- The way back ---- */

/* An alias is read only; null stands for a 0 that means that there is none. */
static void
write_keys(const struct lmq_hf_key *keys, const struct lmq_hparams *h,
           json_t **config)
{
    for (const struct lmq_hf_key *key = keys; key != NULL && key->key != NULL;
         key++) {
        const struct lmq_field *field = lmq_field_at(key->field);
        double value = lmq_field_get(field, h);
        if (key->absent <= LMQ_HF_ALIAS)
            continue;
        if (key->null_is_none && !(value > 0))
            lmq_hf_put_null(config, key->key);
        else if (field->type == LMQ_FIELD_COUNT)
            lmq_hf_put_count(config, key->key, (uint64_t)value);
        else if (field->type == LMQ_FIELD_REAL)
            lmq_hf_put_real(config, key->key, value);
        else
            lmq_hf_put_switch(config, key->key, value > 0);
    }
}

/* As transformers 5 wants it: a word for each layer. */
static void
write_layer_types(const struct lmq_hparams *h, json_t **config)
{
    json_t *types = json_array();

    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_append(&types,
                   json_string(lmq_layer_is(h, i, LMQ_LAYER_DELTA)
                                   ? "linear_attention"
                               : lmq_layer_window(h, i) > 0
                                   ? "sliding_attention"
                                   : "full_attention"));
    lmq_put(config, "layer_types", types);
}

/* One end is a number, several are a list. */
static void
write_ids(const struct lmq_hparams *h, json_t **config)
{
    json_t *eos = h->n_eos == 0   ? json_null()
                  : h->n_eos == 1 ? json_integer(h->eos[0])
                                  : json_array();

    lmq_put(config, "bos_token_id",
            h->bos >= 0 ? json_integer(h->bos) : json_null());
    for (uint32_t i = 0; h->n_eos > 1 && i < h->n_eos; i++)
        lmq_append(&eos, json_integer(h->eos[i]));
    lmq_put(config, "eos_token_id", eos);
}

/* Whether it says all is not known here: who exports reads it back and
 * compares the descriptions. */
json_t *
lmq_config_make(const struct lmq_family *family, const struct lmq_hparams *h,
                bool is_tied)
{
    const struct lmq_hf_form *hf = &family->hf;
    json_t *config = json_object();
    size_t i = 0;

    lmq_put(&config, "architectures", json_pack("[s]", hf->classes[0].name));
    lmq_hf_put_text(&config, "model_type", hf->classes[0].type);
    lmq_hf_put_count(&config, "head_dim", h->head_dim);
    for (size_t j = 0; j < LMQ_HF_MOST_LISTS; j++)
        write_keys(hf->keys[j], h, &config);
    if (hf->eps_key != NULL)
        lmq_hf_put_real(&config, hf->eps_key, h->norm_eps);
    while (i + 1 < N_ACTIVATIONS && activations[i].activation != h->activation)
        i++;
    lmq_hf_put_text(&config, activation_key(family), activations[i].name);
    if (hf->qk_norm_key != NULL)
        lmq_hf_put_switch(&config, hf->qk_norm_key,
                          h->qk_norm != LMQ_QK_NORM_NONE);
    lmq_hf_put_switch(&config, "tie_word_embeddings", is_tied);
    write_ids(h, &config);
    lmq_hf_write_rope(family, h, &config);
    if (hf->has_layer_types)
        write_layer_types(h, &config);
    if (hf->write != NULL)
        hf->write(h, &config);
    return config;
}
