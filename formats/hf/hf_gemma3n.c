/*
 * hf_gemma3n.c - Gemma 3n in config.json.
 *
 * What the library can say of each layer by itself, but for windows and which
 * are sparse, must be the same in all.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/elementary.h"
#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- Widths ---- */

static void
read_hidden_dim(struct lmq_hf_config *config)
{
    static const char key[] = "intermediate_size";
    const json_t *json = config->json;
    struct lmq_hparams *h = config->hparams;

    if (!json_is_array(json_object_get(json, key))) {
        h->hidden_dim = lmq_hf_count(config, json, key, 16384);
        return;
    }
    const json_t *list = lmq_hf_list(config, json, key);
    lmq_hf_expect_layers(config, key, json_array_size(list));
    int64_t first = lmq_hf_number(config, json_array_get(list, 0), key);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (lmq_hf_number(config, json_array_get(list, i), key) != first)
            lmq_hparams_refuse(h, "layers of several widths in '%s'", key);
    if (first < 1 || first > LMQ_MAX_WIDTH)
        lmq_hf_fail(config, "'%s' in the configuration is %" PRId64
                            ", expected 1 to %d",
                    key, first, LMQ_MAX_WIDTH);
    else
        h->hidden_dim = (uint32_t)first;
}

/* ---- Sparse feed-forwards ---- */

/* The density of the normal distribution, and the share of it that is below x:
 * 1/2 + density * (x + x^3/3 + x^5/(3 5) + ...), for x from 0 to 8. */
static double
normal_density(double x)
{
    return lmq_exp(-x * x / 2) * 0.39894228040143267794;
}

static double
normal_share(double x)
{
    double term = x, sum = x;

    for (int n = 3; n < 400; n += 2) {
        term *= x * x / n;
        sum += term;
    }
    return 0.5 + normal_density(x) * sum;
}

/* How many deviations above the mean a share of the numbers, from 1/2 on, is
 * below: by Newton's method, which comes from below. */
static double
deviations_of(double share)
{
    double x = 0;

    for (int i = 0; i < 100; i++)
        x += (share - normal_share(x)) / normal_density(x);
    return x;
}

/* The share of the gates of a layer that count as 0. */
static double
share_of(struct lmq_hf_config *config, const json_t *list, uint32_t layer)
{
    const json_t *element = json_array_get(list, layer);

    if (list == NULL)
        return config->hparams->n_layers > 10 && layer < 10 ? 0.95 : 0;
    if (!json_is_number(element))
        lmq_hf_fail(config, "'activation_sparsity_pattern' in the "
                            "configuration is no list of numbers");
    return json_number_value(element);
}

static void
read_sparsity(struct lmq_hf_config *config)
{
    static const char key[] = "activation_sparsity_pattern";
    const json_t *list = lmq_hf_list(config, config->json, key);
    double of_all = 0;

    if (list != NULL)
        lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        double share = share_of(config, list, i);
        if (!(share > 0))
            continue;
        if (!(share >= 0.5 && share <= 0.999999))
            lmq_hparams_refuse(config->hparams, "%g in '%s'", share, key);
        else if (of_all > 0 && (share < of_all || share > of_all))
            lmq_hparams_refuse(config->hparams, "layers that differ in '%s'",
                               key);
        else
            of_all = share;
        lmq_hf_mark(config, i, LMQ_LAYER_SPARSE);
    }
    if (of_all > 0)
        config->hparams->sparse_cut = deviations_of(of_all);
}

/* ---- All of it ---- */

void
lmq_hf_begin_gemma3n(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    read_hidden_dim(config);
    h->attn_scale = 1;
    h->has_value_norm = true;
    if (h->n_streams < 2) {
        lmq_hparams_refuse(h, "'altup_num_inputs' %" PRIu32, h->n_streams);
        h->n_streams = 0;
    }
    if (h->residual_rank == 0)
        lmq_hparams_refuse(h, "'laurel_rank' 0");
    if (h->layer_input_dim == 0)
        lmq_hparams_refuse(h, "'hidden_size_per_layer_input' 0");
}

void
lmq_hf_finish_gemma3n(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->embedding_scale = sqrt((double)h->dim);
    read_sparsity(config);
}
