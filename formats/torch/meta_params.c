/*
 * meta_params.c - params.json and shapes -> hyper-parameters.
 *
 * Neither the width of the feed-forward nor (often) the vocabulary stands in
 * these files: the tensors tell.
 */
#include "config.h"

#include "formats/torch/meta_params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* What Meta's and llama2.c's model classes take for a key that is absent. */
#define NORM_EPS 1e-5
#define ROPE_THETA 10000.0
#define CONTEXT 2048

/* Llama 3: 128000 tokens of text, then <|begin_of_text|>, <|end_of_text|>,
 * ..., <|eom_id|>, <|eot_id|>. Before: <s>, </s>. */
#define TOKENS_3 128256
static const int32_t ids_3[] = {128000, 128001, 128008, 128009};
static const int32_t ids_2[] = {1, 2};

/* Meta's scaling of rotary frequencies is in the code, not in params.json;
 * the small models of Llama 3.2 have another factor. */
#define SCALED_FACTOR 8.0
#define SCALED_FACTOR_SMALL 32.0
#define SCALED_LOW 1.0
#define SCALED_HIGH 4.0
#define SCALED_OLD_CONTEXT 8192
#define SCALED_CONTEXT 131072
#define CONTEXT_3 8192

/* A config.json has neither of these keys. */
bool
lmq_meta_is_params(const json_t *json)
{
    return json_object_get(json, "dim") != NULL &&
           json_object_get(json, "n_heads") != NULL;
}

bool
lmq_meta_has_names(const struct lmq_checkpoint *checkpoint)
{
    /* Of tied models some files have only output.weight. */
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const char *name = checkpoint->tensors[i].stored_name;
        if (strstr(name, "tok_embeddings.weight") != NULL ||
            strstr(name, ".attention.wq.weight") != NULL)
            return true;
    }
    return false;
}

/* ---- The keys ---- */

static enum lmq_status
get_count(const json_t *params, const char *name, const char *key,
          uint32_t *value, struct lmq_error *err)
{
    const json_t *found = json_object_get(params, key);
    json_int_t number = json_integer_value(found);

    /* -1 stands for a count that is left out. */
    if (found == NULL || json_is_null(found) ||
        (json_is_integer(found) && number == -1))
        return LMQ_OK;
    if (!json_is_integer(found) || number < 0 || number > UINT32_MAX)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' in %s is no whole number from 0 to %u", key,
                        name, UINT32_MAX);
    *value = (uint32_t)number;
    return LMQ_OK;
}

static enum lmq_status
get_real(const json_t *params, const char *name, const char *key,
         double *value, struct lmq_error *err)
{
    const json_t *found = json_object_get(params, key);

    if (found == NULL || json_is_null(found))
        return LMQ_OK;
    if (!json_is_number(found))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "'%s' in %s is no number", key,
                        name);
    *value = json_number_value(found);
    return LMQ_OK;
}

/* What else may be there and changes nothing that is computed. */
static bool
is_harmless(const char *key, const json_t *value)
{
    static const char *const harmless[] = {
        "dim",           "n_layers",           "n_heads",
        "n_kv_heads",    "head_dim",           "hidden_dim",
        "vocab_size",    "norm_eps",           "rope_theta",
        "max_seq_len",   "sliding_window",     "use_scaled_rope",
        "multiple_of",   "ffn_dim_multiplier", "rope_scaling_factor",
        "dropout",       "max_batch_size",     "rope_high_freq_factor",
        "model_type",    "model_parallel_size", "vision_chunk_size",
        "vision_max_num_chunks", "vision_num_cross_attention_layers",
    };
    bool is_vision = strncmp(key, "vision_", 7) == 0;

    if (json_is_null(value) || json_is_false(value))
        return true;
    if (is_vision && json_integer_value(value) > 0)
        return false;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (strcmp(key, harmless[i]) == 0)
            return true;
    return false;
}

static enum lmq_status
parse_counts(const json_t *params, const char *name, struct lmq_hparams *h,
             struct lmq_error *err)
{
    const struct {
        const char *key;
        uint32_t *value;
    } counts[] = {
        {"dim", &h->dim},
        {"n_layers", &h->n_layers},
        {"n_heads", &h->n_heads},
        {"n_kv_heads", &h->n_kv_heads},
        {"head_dim", &h->head_dim},
        {"max_seq_len", &h->context},
        {"sliding_window", &h->sliding_window},
    };
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (status == LMQ_OK)
            status = get_count(params, name, counts[i].key, counts[i].value,
                               err);
    if (status != LMQ_OK)
        return status;
    if (h->n_heads == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "%s says no number of heads",
                        name);
    if (h->n_kv_heads == 0)
        h->n_kv_heads = h->n_heads;
    if (h->head_dim == 0 && h->dim % h->n_heads != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'dim' %u in %s is no multiple of 'n_heads' %u",
                        h->dim, name, h->n_heads);
    if (h->head_dim == 0)
        h->head_dim = h->dim / h->n_heads;
    return LMQ_OK;
}

/* Llama 3.1 and 3.2 say only that frequencies are scaled. By how much is in
 * the programs that came with them. */
static enum lmq_status
parse_rope(const json_t *params, const char *name, struct lmq_hparams *h,
           struct lmq_error *err)
{
    bool is_small = h->dim == 2048 || h->dim == 3072;

    h->rope_theta = ROPE_THETA;
    h->norm_eps = NORM_EPS;
    enum lmq_status status =
        get_real(params, name, "norm_eps", &h->norm_eps, err);
    if (status == LMQ_OK)
        status = get_real(params, name, "rope_theta", &h->rope_theta, err);
    if (status != LMQ_OK ||
        !json_is_true(json_object_get(params, "use_scaled_rope")))
        return status;
    h->rope_scaling = LMQ_ROPE_LLAMA3;
    h->rope_factor = is_small ? SCALED_FACTOR_SMALL : SCALED_FACTOR;
    h->rope_low_factor = SCALED_LOW;
    h->rope_high_factor = SCALED_HIGH;
    h->rope_context = SCALED_OLD_CONTEXT;
    status = get_real(params, name, "rope_scaling_factor", &h->rope_factor,
                      err);
    if (status == LMQ_OK)
        status = get_real(params, name, "rope_high_freq_factor",
                          &h->rope_high_factor, err);
    if (status == LMQ_OK && !(h->rope_high_factor >= h->rope_low_factor))
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "'rope_high_freq_factor' in %s is below 1",
                          name);
    return status;
}

/* ---- What the tensors tell ---- */

static uint32_t
narrow(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Vocabulary, widths and the number of layers, where params.json leaves them
 * out. */
static void
look_at_tensors(const struct lmq_checkpoint *checkpoint, struct lmq_hparams *h)
{
    uint32_t n_layers = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        struct lmq_place place;
        if (!lmq_name_parse(tensor->stored_name, &place) ||
            place.part != LMQ_PART_WEIGHT)
            continue;
        if (place.layer >= 0 && (uint32_t)place.layer >= n_layers)
            n_layers = (uint32_t)place.layer + 1;
        if ((place.role == LMQ_ROLE_EMBEDDING ||
             place.role == LMQ_ROLE_HEAD) && tensor->n_dims == 2)
            h->vocab_size = narrow(tensor->dims[0]);
        if (place.role == LMQ_ROLE_FFN_GATE && tensor->n_dims == 2)
            h->hidden_dim = narrow(tensor->dims[0]);
    }
    if (h->n_layers == 0)
        h->n_layers = n_layers;
}

/* The tokenizer is a file of its own and may be missing; these ids have never
 * changed within a generation. */
static void
set_tokens(struct lmq_hparams *h)
{
    bool is_3 = h->vocab_size >= TOKENS_3;
    const int32_t *ids = is_3 ? ids_3 : ids_2;
    size_t n = is_3 ? sizeof(ids_3) / sizeof(ids_3[0])
                    : sizeof(ids_2) / sizeof(ids_2[0]);

    h->bos = ids[0];
    for (size_t i = 1; i < n; i++)
        h->eos[h->n_eos++] = ids[i];
}

/* The frequencies do not depend on it, only how far one may go: a guess with a
 * remark is better than none. */
static void
guess_context(struct lmq_checkpoint *checkpoint, const char *name)
{
    struct lmq_hparams *h = &checkpoint->hparams;

    if (h->context != 0)
        return;
    h->context = h->rope_scaling == LMQ_ROPE_LLAMA3 ? SCALED_CONTEXT
                 : h->vocab_size >= TOKENS_3        ? CONTEXT_3
                                                    : CONTEXT;
    lmq_checkpoint_note(checkpoint,
                        "%s does not say for how many positions the model was "
                        "trained: %u are assumed",
                        name, h->context);
}

/* Keys that are not known may change the model: then it does not run, and the
 * key is named. */
enum lmq_status
lmq_meta_describe(struct lmq_checkpoint *checkpoint, const json_t *params,
                  const char *name, struct lmq_error *err)
{
    struct lmq_hparams *h = &checkpoint->hparams;
    uint32_t declared_vocabulary = 0;
    const char *key;
    json_t *value;

    snprintf(h->architecture, sizeof(h->architecture), "llama");
    h->context = 0;
    enum lmq_status status = parse_counts(params, name, h, err);
    if (status == LMQ_OK)
        status = parse_rope(params, name, h, err);
    if (status == LMQ_OK)
        status = get_count(params, name, "vocab_size", &declared_vocabulary,
                           err);
    if (status != LMQ_OK)
        return status;
    look_at_tensors(checkpoint, h);
    if (declared_vocabulary != 0 && declared_vocabulary != h->vocab_size)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'vocab_size' in %s is %u, but the embedding has %u "
                        "rows",
                        name, declared_vocabulary, h->vocab_size);
    set_tokens(h);
    guess_context(checkpoint, name);
    json_object_foreach((json_t *)(uintptr_t)params, key, value)
        if (!is_harmless(key, value))
            lmq_hparams_refuse(h, "'%.60s' in %.40s", key, name);
    checkpoint->has_model = true;
    checkpoint->source.has_rotary_pairs = lmq_meta_has_names(checkpoint);
    return LMQ_OK;
}
