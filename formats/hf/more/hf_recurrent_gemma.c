/*
 * hf_recurrent_gemma.c - what config.json says of RecurrentGemma: recurrent
 * layers without keys, and attention with a window in every third layer.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"
#include "quantize/dtype.h"

/* Embeddings are multiplied by a number that the class keeps in bfloat16; of
 * the width of a feed-forward the file says twice as much. */
void
lmq_hf_begin_recurrent_gemma(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t heads = h->n_heads == 0 ? 1 : h->n_heads;
    uint32_t width =
        lmq_hf_count(config, config->json, "lru_width", h->dim);

    if (width % heads != 0)
        lmq_hf_fail(config, "'lru_width' in the configuration is %u, which %u "
                            "heads cannot share",
                    width, heads);
    h->recurrence = LMQ_RECURRENCE_LRU;
    h->n_delta_value_heads = h->n_heads;
    h->delta_value_dim = width / heads;
    h->head_dim = h->dim / heads;
    h->hidden_dim /= 2;
    h->embedding_scale = (double)lmq_bf16_to_f32(
        lmq_f32_to_bf16((float)sqrt((double)h->dim)));
}

/* A list of kinds, again and again. */
void
lmq_hf_windows_recurrent_gemma(struct lmq_hf_config *config)
{
    static const char key[] = "block_types";
    const json_t *list = lmq_hf_list(config, config->json, key);
    size_t n = list == NULL ? 3 : json_array_size(list);

    if (n == 0) {
        lmq_hf_fail(config, "'%s' in the configuration is empty", key);
        return;
    }
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const char *kind = json_string_value(json_array_get(list, i % n));
        bool recurs = list == NULL ? i % 3 != 2
                                   : kind != NULL &&
                                         strcmp(kind, "recurrent") == 0;
        if (recurs)
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
        else if (list != NULL &&
                 (kind == NULL || strcmp(kind, "attention") != 0))
            lmq_hf_fail(config, "'%s' in the configuration has something else "
                                "than 'recurrent' and 'attention'",
                        key);
    }
}
