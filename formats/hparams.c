/*
 * hparams.c - checks hyper-parameters; writes and reads them as JSON.
 *
 * One table of the numeric fields serves both directions, so a container says
 * what was read.
 */
#include "config.h"

#include "formats/hparams.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"

#define AT(field) offsetof(struct lmq_hparams, field)

static const struct {
    const char *key;
    size_t offset;
    uint32_t most;
} counts[] = {
    {"n_layers", AT(n_layers), LMQ_MAX_LAYERS},
    {"dim", AT(dim), LMQ_MAX_WIDTH},
    {"hidden_dim", AT(hidden_dim), LMQ_MAX_WIDTH},
    {"n_heads", AT(n_heads), LMQ_MAX_HEADS},
    {"n_kv_heads", AT(n_kv_heads), LMQ_MAX_HEADS},
    {"head_dim", AT(head_dim), LMQ_MAX_WIDTH},
    {"vocab_size", AT(vocab_size), LMQ_MAX_WIDTH},
    {"context", AT(context), LMQ_MAX_CONTEXT},
    {"sliding_window", AT(sliding_window), LMQ_MAX_CONTEXT},
    {"rope_context", AT(rope_context), LMQ_MAX_CONTEXT},
};

static const struct {
    const char *key;
    size_t offset;
} reals[] = {
    {"norm_eps", AT(norm_eps)},
    {"rope_theta", AT(rope_theta)},
    {"rope_factor", AT(rope_factor)},
    {"rope_low_factor", AT(rope_low_factor)},
    {"rope_high_factor", AT(rope_high_factor)},
};

#define N_COUNTS (sizeof(counts) / sizeof(counts[0]))
#define N_REALS (sizeof(reals) / sizeof(reals[0]))

static const char *const scalings[LMQ_ROPE_SCALING_COUNT] = {
    [LMQ_ROPE_PLAIN] = "none",
    [LMQ_ROPE_LINEAR] = "linear",
    [LMQ_ROPE_LLAMA3] = "llama3",
};

void
lmq_hparams_init(struct lmq_hparams *hparams)
{
    *hparams = (struct lmq_hparams){
        .norm_eps = 1e-5, .rope_theta = 10000, .rope_factor = 1, .bos = -1};
}

void
lmq_hparams_refuse(struct lmq_hparams *hparams, const char *format, ...)
{
    va_list args;

    if (hparams->unsupported[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(hparams->unsupported, sizeof(hparams->unsupported), format,
              args);
    va_end(args);
}

static uint32_t
count_at(const struct lmq_hparams *hparams, size_t i)
{
    uint32_t value;

    memcpy(&value, (const char *)hparams + counts[i].offset, sizeof(value));
    return value;
}

static double
real_at(const struct lmq_hparams *hparams, size_t i)
{
    double value;

    memcpy(&value, (const char *)hparams + reals[i].offset, sizeof(value));
    return value;
}

enum lmq_status
lmq_hparams_check(const struct lmq_hparams *hparams, struct lmq_error *err)
{
    for (size_t i = 0; i < N_COUNTS; i++) {
        uint32_t value = count_at(hparams, i);
        bool may_be_zero = counts[i].offset == AT(sliding_window) ||
                           counts[i].offset == AT(rope_context);
        if (value > counts[i].most || (value == 0 && !may_be_zero))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %u, expected %d to %u", counts[i].key,
                            value, may_be_zero ? 0 : 1, counts[i].most);
    }
    for (size_t i = 0; i < N_REALS; i++) {
        double value = real_at(hparams, i);
        if (!isfinite(value) || value < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %g, expected a number from 0", reals[i].key,
                            value);
    }
    if (hparams->rope_theta < 1 || hparams->rope_theta > 1e15 ||
        hparams->rope_factor < 1e-6 || hparams->rope_factor > 1e6)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_theta is %g and rope_factor %g, expected 1 to "
                        "1e15 and 1e-6 to 1e6",
                        hparams->rope_theta, hparams->rope_factor);
    if (hparams->n_heads % hparams->n_kv_heads != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u heads cannot share %u key/value heads evenly",
                        hparams->n_heads, hparams->n_kv_heads);
    if (hparams->head_dim % 2 != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the head size is %u, rotary positions need an even "
                        "number",
                        hparams->head_dim);
    if ((uint64_t)hparams->n_heads * hparams->head_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u heads of %u are too wide", hparams->n_heads,
                        hparams->head_dim);
    return LMQ_OK;
}

json_t *
lmq_hparams_to_json(const struct lmq_hparams *hparams)
{
    json_t *json = json_object();
    json_t *eos = json_array();

    json_object_set_new(json, "architecture",
                        lmq_json_text(hparams->architecture));
    if (hparams->unsupported[0] != '\0')
        json_object_set_new(json, "unsupported",
                            lmq_json_text(hparams->unsupported));
    for (size_t i = 0; i < N_COUNTS; i++)
        json_object_set_new(json, counts[i].key,
                            json_integer(count_at(hparams, i)));
    for (size_t i = 0; i < N_REALS; i++)
        json_object_set_new(json, reals[i].key,
                            lmq_json_number(real_at(hparams, i)));
    json_object_set_new(json, "rope_scaling",
                        json_string(scalings[hparams->rope_scaling]));
    if (hparams->bos >= 0)
        json_object_set_new(json, "bos", json_integer(hparams->bos));
    for (uint32_t i = 0; i < hparams->n_eos; i++)
        json_array_append_new(eos, json_integer(hparams->eos[i]));
    json_object_set_new(json, "eos", eos);
    return json;
}

static enum lmq_status
read_numbers(const json_t *json, struct lmq_hparams *hparams,
             struct lmq_error *err)
{
    for (size_t i = 0; i < N_COUNTS; i++) {
        const json_t *value = json_object_get(json, counts[i].key);
        json_int_t count = json_integer_value(value);
        if (!json_is_integer(value) || count < 0 || count > counts[i].most)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is no number up to %u",
                            counts[i].key, counts[i].most);
        uint32_t narrow = (uint32_t)count;
        memcpy((char *)hparams + counts[i].offset, &narrow, sizeof(narrow));
    }
    for (size_t i = 0; i < N_REALS; i++) {
        const json_t *value = json_object_get(json, reals[i].key);
        double real = json_number_value(value);
        if (!json_is_number(value))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is no number", reals[i].key);
        memcpy((char *)hparams + reals[i].offset, &real, sizeof(real));
    }
    return LMQ_OK;
}

static void
read_text(const json_t *json, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(json, key));

    snprintf(text, size, "%s", value == NULL ? "" : value);
}

enum lmq_status
lmq_hparams_from_json(const json_t *json, struct lmq_hparams *hparams,
                      struct lmq_error *err)
{
    lmq_hparams_init(hparams);
    enum lmq_status status = read_numbers(json, hparams, err);
    if (status != LMQ_OK)
        return status;
    read_text(json, "architecture", hparams->architecture,
              sizeof(hparams->architecture));
    read_text(json, "unsupported", hparams->unsupported,
              sizeof(hparams->unsupported));

    const char *scaling =
        json_string_value(json_object_get(json, "rope_scaling"));
    int kind = 0;
    while (kind < LMQ_ROPE_SCALING_COUNT &&
           (scaling == NULL || strcmp(scaling, scalings[kind]) != 0))
        kind++;
    if (kind < LMQ_ROPE_SCALING_COUNT)
        hparams->rope_scaling = (enum lmq_rope_scaling)kind;
    else
        lmq_hparams_refuse(hparams, "rotary scaling '%s'",
                           scaling == NULL ? "" : scaling);

    const json_t *bos = json_object_get(json, "bos");
    if (json_is_integer(bos) && json_integer_value(bos) >= 0 &&
        json_integer_value(bos) <= INT32_MAX)
        hparams->bos = (int32_t)json_integer_value(bos);
    size_t i;
    json_t *id;
    json_t *eos = json_object_get(json, "eos");
    json_array_foreach(eos, i, id)
        if (json_is_integer(id) && json_integer_value(id) >= 0 &&
            json_integer_value(id) <= INT32_MAX && hparams->n_eos < LMQ_MAX_EOS)
            hparams->eos[hparams->n_eos++] = (int32_t)json_integer_value(id);
    return LMQ_OK;
}
