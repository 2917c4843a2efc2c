/*
 * hf_models.c - reads the config.json that a suite holds as a string.
 */
#include "config.h"

#include "tests/formats/hf_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/model/hparams_check.h"
#include "formats/model/hparams_json.h"
#include "tests/build/suite.h"

/* ---- Reading ---- */

enum lmq_status
parse_config(const char *text, struct model *model, bool *is_known,
      struct lmq_error *err)
{
    char json[8192];
    size_t n = strlen(text);

    ck_assert_uint_lt(n, sizeof(json));
    for (size_t i = 0; i < n; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    lmq_hparams_init(&model->h);
    return lmq_config_parse((const unsigned char *)json, n, &model->h,
                            &model->source, is_known, err);
}

/* What was read comes back from a container. */
static void
assert_keeps(const struct lmq_hparams *h)
{
    struct lmq_hparams back;
    struct lmq_error err = {0};
    json_t *json = lmq_hparams_to_json(h), *again;

    ck_assert_msg(lmq_hparams_from_json(json, &back, &err) == LMQ_OK, "%s",
                  err.message);
    again = lmq_hparams_to_json(&back);
    ck_assert(json_equal(json, again));
    ck_assert_mem_eq(back.layers, h->layers,
                     h->n_layers * sizeof(h->layers[0]));
    json_decref(json);
    json_decref(again);
}

static void
read_whole(const char *text, struct model *model)
{
    struct lmq_error err = {0};
    bool is_known = false;

    ck_assert_msg(parse_config(text, model, &is_known, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert(is_known);
    ck_assert_msg(lmq_hparams_check(&model->h, &err) == LMQ_OK, "%s",
                  err.message);
    assert_keeps(&model->h);
}

struct model *
read_model(const char *text)
{
    static struct model model;

    read_whole(text, &model);
    ck_assert_str_eq(model.h.unsupported, "");
    return &model;
}

struct model *
read_small(const char *class_name, const char *more)
{
    static struct model model;
    char text[4096];

    snprintf(text, sizeof(text), "{'architectures':['%s']," SMALL "%s%s}",
             class_name, *more == '\0' ? "" : ",", more);
    read_whole(text, &model);
    return &model;
}

void
assert_unsupported(const char *class_name, const char *more, const char *why)
{
    ck_assert_str_eq(read_small(class_name, more)->h.unsupported, why);
}

void
assert_wrong(const char *class_name, const char *more, const char *what)
{
    struct model model;
    struct lmq_error err = {0};
    char text[4096];
    bool is_known;

    snprintf(text, sizeof(text), "{'architectures':['%s']," SMALL ",%s}",
             class_name, more);
    ck_assert_msg(parse_config(text, &model, &is_known, &err) ==
                      LMQ_ERR_FORMAT,
                  "%s is accepted", more);
    ck_assert_msg(strstr(err.message, what) != NULL, "'%s' says nothing of %s",
                  err.message, what);
}

/* ---- Asserting ---- */

void
assert_sizes(const struct lmq_hparams *h, uint32_t layers, uint32_t dim,
             uint32_t hidden, uint32_t heads, uint32_t kv_heads,
             uint32_t head_dim)
{
    ck_assert_uint_eq(h->n_layers, layers);
    ck_assert_uint_eq(h->dim, dim);
    ck_assert_uint_eq(h->hidden_dim, hidden);
    ck_assert_uint_eq(h->n_heads, heads);
    ck_assert_uint_eq(h->n_kv_heads, kv_heads);
    ck_assert_uint_eq(h->head_dim, head_dim);
}

void
assert_near(double a, double b)
{
    ck_assert_double_eq_tol(a, b, 1e-12 * fabs(b));
}

void
assert_layers(const struct lmq_hparams *h, enum lmq_layer_kind kind,
              const char *pattern)
{
    size_t n = strlen(pattern);

    for (uint32_t i = 0; i < h->n_layers; i++)
        ck_assert_msg(lmq_layer_is(h, i, kind) == (pattern[i % n] == 'x'),
                      "layer %u", i);
}

void
assert_llama_like(const struct lmq_hparams *h)
{
    ck_assert_int_eq(h->norm, LMQ_NORM_RMS);
    ck_assert_int_eq(h->norm_place, LMQ_NORMS_BEFORE);
    ck_assert_int_eq(h->residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(h->positions, LMQ_POSITIONS_ROTARY);
    ck_assert_int_eq(h->activation, LMQ_ACTIVATION_SILU);
    ck_assert(h->is_gated);
    ck_assert_double_eq(h->attn_scale, 0);
    ck_assert_double_eq(h->logit_scale, 1);
    ck_assert_double_eq(h->embedding_scale, 1);
}

void
assert_source(const struct lmq_source *s, bool pairs, bool transposed,
              bool less_one, bool by_head)
{
    ck_assert_int_eq(s->has_rotary_pairs, pairs);
    ck_assert_int_eq(s->is_transposed, transposed);
    ck_assert_int_eq(s->norms_less_one, less_one);
    ck_assert_int_eq(s->qkv_order,
                     by_head ? LMQ_QKV_BY_HEAD : LMQ_QKV_ONE_BY_ONE);
}
