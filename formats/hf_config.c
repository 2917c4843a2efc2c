/*
 * hf_config.c - config.json -> hyper-parameters.
 *
 * Defaults are those that the model classes give to keys that are absent. A
 * key that changes the computation in a way the runtime does not know is
 * noted as unsupported, never ignored.
 */
#include "config.h"

#include "formats/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum lmq_status
lmq_json_parse(const unsigned char *text, size_t size, json_t **json,
               struct lmq_error *err)
{
    json_error_t problem;

    *json = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES,
                       &problem);
    if (*json == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, (uint64_t)problem.position,
                        "is no valid JSON: %s (line %d, column %d)",
                        problem.text, problem.line, problem.column);
    return LMQ_OK;
}

/* ---- Typed access: absent and null mean the default ---- */

static enum lmq_status
get_count(const json_t *config, const char *key, uint32_t *value,
          struct lmq_error *err)
{
    const json_t *found = json_object_get(config, key);
    json_int_t number = json_integer_value(found);

    if (found == NULL || json_is_null(found))
        return LMQ_OK;
    if (!json_is_integer(found) || number < 0 || number > UINT32_MAX)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' in the configuration is no whole number from 0 "
                        "to %u",
                        key, UINT32_MAX);
    *value = (uint32_t)number;
    return LMQ_OK;
}

static enum lmq_status
get_real(const json_t *config, const char *key, double *value,
         struct lmq_error *err)
{
    const json_t *found = json_object_get(config, key);

    if (found == NULL || json_is_null(found))
        return LMQ_OK;
    if (!json_is_number(found))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' in the configuration is no number", key);
    *value = json_number_value(found);
    return LMQ_OK;
}

static const char *
get_text(const json_t *config, const char *key)
{
    const char *text = json_string_value(json_object_get(config, key));

    return text == NULL ? "" : text;
}

/* ---- The parts ---- */

static enum lmq_status
parse_sizes(const json_t *config, struct lmq_hparams *h, struct lmq_error *err)
{
    const struct {
        const char *key;
        uint32_t *value;
    } counts[] = {
        {"hidden_size", &h->dim},
        {"intermediate_size", &h->hidden_dim},
        {"num_hidden_layers", &h->n_layers},
        {"num_attention_heads", &h->n_heads},
        {"num_key_value_heads", &h->n_kv_heads},
        {"head_dim", &h->head_dim},
        {"vocab_size", &h->vocab_size},
        {"max_position_embeddings", &h->context},
        {"sliding_window", &h->sliding_window},
    };
    enum lmq_status status = LMQ_OK;

    h->context = 2048;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (status == LMQ_OK)
            status = get_count(config, counts[i].key, counts[i].value, err);
    if (h->n_kv_heads == 0)
        h->n_kv_heads = h->n_heads;
    if (status == LMQ_OK && h->head_dim == 0) {
        if (h->n_heads == 0 || h->dim % h->n_heads != 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "'hidden_size' %u is no multiple of "
                            "'num_attention_heads' %u",
                            h->dim, h->n_heads);
        h->head_dim = h->dim / h->n_heads;
    }
    h->norm_eps = 1e-6;
    if (status == LMQ_OK)
        status = get_real(config, "rms_norm_eps", &h->norm_eps, err);
    return status;
}

static enum lmq_status
parse_rope_scaling(const json_t *scaling, struct lmq_hparams *h,
                   struct lmq_error *err)
{
    const char *type = get_text(scaling, "rope_type");

    if (*type == '\0')
        type = get_text(scaling, "type");
    if (*type == '\0' || strcmp(type, "default") == 0)
        return LMQ_OK;
    if (strcmp(type, "linear") == 0) {
        h->rope_scaling = LMQ_ROPE_LINEAR;
    } else if (strcmp(type, "llama3") == 0) {
        h->rope_scaling = LMQ_ROPE_LLAMA3;
    } else {
        lmq_hparams_refuse(h, "rotary scaling '%.60s'", type);
        return LMQ_OK;
    }
    enum lmq_status status = get_real(scaling, "factor", &h->rope_factor, err);
    if (status == LMQ_OK)
        status = get_real(scaling, "low_freq_factor", &h->rope_low_factor, err);
    if (status == LMQ_OK)
        status =
            get_real(scaling, "high_freq_factor", &h->rope_high_factor, err);
    if (status == LMQ_OK)
        status = get_count(scaling, "original_max_position_embeddings",
                           &h->rope_context, err);
    if (status == LMQ_OK && h->rope_scaling == LMQ_ROPE_LLAMA3 &&
        (h->rope_context == 0 || h->rope_low_factor <= 0 ||
         h->rope_high_factor <= h->rope_low_factor))
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "the 'llama3' rotary scaling lacks a sensible "
                          "low_freq_factor, high_freq_factor or "
                          "original_max_position_embeddings");
    return status;
}

static enum lmq_status
parse_rope(const json_t *config, struct lmq_hparams *h, struct lmq_error *err)
{
    /* Newer files keep base and scaling together. */
    const json_t *both = json_object_get(config, "rope_parameters");
    const json_t *scaling = json_object_get(config, "rope_scaling");
    enum lmq_status status =
        get_real(config, "rope_theta", &h->rope_theta, err);

    if (status == LMQ_OK && json_is_object(both)) {
        status = get_real(both, "rope_theta", &h->rope_theta, err);
        if (!json_is_object(scaling))
            scaling = both;
    }
    if (status == LMQ_OK && json_is_object(scaling))
        status = parse_rope_scaling(scaling, h, err);
    return status;
}

static void
parse_ids(const json_t *config, struct lmq_hparams *h)
{
    const json_t *bos = json_object_get(config, "bos_token_id");
    json_t *eos = json_object_get(config, "eos_token_id");
    json_t *id;
    size_t i;

    if (json_is_integer(bos) && json_integer_value(bos) >= 0 &&
        json_integer_value(bos) <= INT32_MAX)
        h->bos = (int32_t)json_integer_value(bos);
    if (json_is_integer(eos) && json_integer_value(eos) >= 0 &&
        json_integer_value(eos) <= INT32_MAX)
        h->eos[h->n_eos++] = (int32_t)json_integer_value(eos);
    json_array_foreach(eos, i, id)
        if (json_is_integer(id) && json_integer_value(id) >= 0 &&
            json_integer_value(id) <= INT32_MAX && h->n_eos < LMQ_MAX_EOS)
            h->eos[h->n_eos++] = (int32_t)json_integer_value(id);
}

/* ---- Architectures ---- */

/* What would silently mean its default if it had another type. */
static enum lmq_status
check_types(const json_t *config, struct lmq_error *err)
{
    static const struct {
        const char *key;
        json_type type;
        const char *what;
    } wanted[] = {
        {"hidden_act", JSON_STRING, "text"},
        {"rope_scaling", JSON_OBJECT, "object"},
        {"rope_parameters", JSON_OBJECT, "object"},
        {"tie_word_embeddings", JSON_TRUE, "true or false"},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const json_t *found = json_object_get(config, wanted[i].key);
        if (found == NULL || json_is_null(found) ||
            json_typeof(found) == wanted[i].type ||
            (wanted[i].type == JSON_TRUE && json_is_false(found)))
            continue;
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' in the configuration is no %s", wanted[i].key,
                        wanted[i].what);
    }
    return LMQ_OK;
}

static enum lmq_status
parse_llama(const json_t *config, struct lmq_hparams *h, struct lmq_error *err)
{
    const char *activation = get_text(config, "hidden_act");
    const json_t *tie = json_object_get(config, "tie_word_embeddings");
    enum lmq_status status = check_types(config, err);

    if (status == LMQ_OK)
        status = parse_sizes(config, h, err);
    if (status == LMQ_OK)
        status = parse_rope(config, h, err);
    if (status != LMQ_OK)
        return status;
    parse_ids(config, h);
    if (*activation != '\0' && strcmp(activation, "silu") != 0)
        lmq_hparams_refuse(h, "the activation '%.60s'", activation);
    if (json_is_boolean(tie))
        h->tie = json_is_true(tie) ? LMQ_TIE_YES : LMQ_TIE_NO;
    return LMQ_OK;
}

/* Llama's config has no window; a stray key there means nothing. */
static enum lmq_status
parse_llama_only(const json_t *config, struct lmq_hparams *h,
                 struct lmq_error *err)
{
    enum lmq_status status = parse_llama(config, h, err);

    h->sliding_window = 0;
    return status;
}

static const struct {
    const char *class_name; /* in "architectures" */
    const char *name;
    enum lmq_status (*parse)(const json_t *config, struct lmq_hparams *hparams,
                             struct lmq_error *err);
} architectures[] = {
    {"LlamaForCausalLM", "llama", parse_llama_only},
    {"MistralForCausalLM", "mistral", parse_llama},
};

enum lmq_status
lmq_config_parse(const unsigned char *text, size_t size,
                 struct lmq_hparams *hparams, bool *is_known,
                 struct lmq_error *err)
{
    json_t *config;
    enum lmq_status status = lmq_json_parse(text, size, &config, err);

    *is_known = false;
    if (status != LMQ_OK)
        return status;
    if (!json_is_object(config)) {
        json_decref(config);
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is no JSON object");
    }
    const char *class_name = json_string_value(
        json_array_get(json_object_get(config, "architectures"), 0));
    if (class_name == NULL)
        class_name = get_text(config, "model_type");
    snprintf(hparams->architecture, sizeof(hparams->architecture), "%.63s",
             class_name);
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]);
         i++)
        if (strcmp(class_name, architectures[i].class_name) == 0) {
            *is_known = true;
            snprintf(hparams->architecture, sizeof(hparams->architecture),
                     "%s", architectures[i].name);
            status = architectures[i].parse(config, hparams, err);
        }
    if (!*is_known)
        lmq_hparams_refuse(hparams, "the architecture '%.63s'",
                           *class_name == '\0' ? "(none)" : class_name);
    const json_t *packed = json_object_get(config, "quantization_config");
    if (json_is_object(packed))
        lmq_hparams_refuse(hparams, "weights packed by '%.60s'",
                           get_text(packed, "quant_method"));
    json_decref(config);
    return status;
}
