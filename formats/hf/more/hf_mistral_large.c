/*
 * hf_mistral_large.c - what Mistral Large 4 does in config.json beside its row,
 * and the frequencies that it learns.
 */
#include "config.h"

#include "formats/hf/more/hf_mistral_large.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/text/ends.h"
#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"
#include "formats/model/rope_scaling.h"

/* ---- config.json ---- */

/* Latents of DeepSeek V3.2 whose norm has the epsilon of all others. */
void
lmq_hf_begin_mistral_large4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->n_experts =
        lmq_hf_count(config, config->json, "num_experts", h->n_experts);
    lmq_hf_begin_chosen(config, 64);
    h->latent_eps = 0;
}

/* Layers may look at the latents of others, but not here. */
static void
expect_own_latents(struct lmq_hf_config *config)
{
    static const char key[] = "kv_source_layers";
    const json_t *list = lmq_hf_list(config, config->json, key);

    if (list != NULL)
        lmq_hf_expect_layers(config, key, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t n = lmq_hf_number(config, json_array_get(list, i), key);
        if (n != (int64_t)i)
            lmq_hparams_refuse(config->hparams,
                               "layer %zu with the latents of layer %lld", i,
                               (long long)n);
    }
}

/* Layers that do not turn have no part of a head that would. */
static void
mark_still(struct lmq_hf_config *config)
{
    static const char key[] = "no_rope_layers";
    const json_t *turns = lmq_hf_list(config, config->json, key);
    uint32_t period = lmq_hf_period(config, "no_rope_layer_interval", 4);

    if (turns != NULL && json_array_size(turns) < config->hparams->n_layers)
        lmq_hf_expect_layers(config, key, json_array_size(turns));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (turns == NULL
                ? (i + 1) % period == 0
                : lmq_hf_number(config, json_array_get(turns, i), key) == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
}

void
lmq_hf_finish_mistral_large4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    expect_own_latents(config);
    mark_still(config);
    lmq_hf_finish_latent(config, 1, 1);
    lmq_hf_finish_chosen(config);
    h->expert_group_score = LMQ_GROUP_SCORE_BEST_TWO;
    h->router_renormalises = true;
    h->has_head_growth = h->has_whole_still = true;
    config->source->learns_frequencies = true;
    if (!(h->logit_softcap > 0))
        lmq_hparams_refuse(h, "'final_logit_softcapping' %g",
                           h->logit_softcap);
}

/* ---- Frequencies ---- */

/* As the library calls it, and as it is published. */
static const char frequencies[] = "rotary_emb.alpha";
static const char published[] = "lerope.alpha";

static enum lmq_status
read_frequencies(struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor, struct lmq_error *err)
{
    struct lmq_hparams *h = &checkpoint->hparams;
    uint32_t n = lmq_hparams_rotary_dim(h) / 2;
    struct lmq_scratch scratch = {0};
    float logs[LMQ_MAX_ROPE_FACTORS];

    if (tensor->n_elements != n || n > LMQ_MAX_ROPE_FACTORS)
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "tensor '%s' has %" PRIu64 " numbers for %" PRIu32
                        " frequencies, at most %d are possible",
                        tensor->stored_name, tensor->n_elements, n,
                        LMQ_MAX_ROPE_FACTORS);
    enum lmq_status status = lmq_checkpoint_read(checkpoint, tensor, 0, n,
                                                 logs, &scratch, err);
    lmq_scratch_free(&scratch);
    if (status != LMQ_OK)
        return status;
    if (!lmq_hparams_learn_frequencies(h, logs))
        lmq_hparams_refuse(h, "frequencies that are learned beside this "
                              "rotary scaling");
    lmq_hparams_settle(h);
    return LMQ_OK;
}

enum lmq_status
lmq_hf_take_frequencies(struct lmq_checkpoint *checkpoint,
                        struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    size_t kept = 0, taken = 0;

    if (!checkpoint->has_model || !checkpoint->source.learns_frequencies)
        return LMQ_OK;
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        bool is_it = lmq_ends_with(tensor->stored_name, frequencies) ||
                     strcmp(tensor->stored_name, published) == 0;
        if (is_it && status == LMQ_OK && taken++ == 0)
            status = read_frequencies(checkpoint, tensor, err);
        if (is_it)
            lmq_tensor_free(tensor);
        else
            checkpoint->tensors[kept++] = *tensor;
    }
    checkpoint->n_tensors = kept;
    if (status == LMQ_OK && taken == 0)
        lmq_hparams_refuse(&checkpoint->hparams,
                           "a model of this kind without '%s'", frequencies);
    return status;
}
