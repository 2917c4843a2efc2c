/*
 * hf_further.c - what the families of families_further.c do in config.json
 * beside their rows: BitNet, A.X K1, Maincoder, Spark, Nanbeige, Ouro,
 * the text of Apertus 1.5, the first Qwen.
 */
#include "config.h"

#include "formats/hf/more/hf_further.h"

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- BitNet ---- */

void
lmq_hf_begin_bitnet(struct lmq_hf_config *config)
{
    config->hparams->has_sub_norms = true;
}

/* ---- A.X K1 ---- */

void
lmq_hf_finish_axk1(struct lmq_hf_config *config)
{
    lmq_hf_finish_sigmoid(config, 1);
    config->hparams->has_mixture_norm = true;
}

/* ---- Maincoder ---- */

void
lmq_hf_begin_maincoder(struct lmq_hf_config *config)
{
    config->hparams->qk_norm_late = true;
}

/* ---- Spark ---- */

void
lmq_hf_windows_spark(struct lmq_hf_config *config)
{
    lmq_hf_leave_windows(config, config->family->window_period);
}

void
lmq_hf_finish_spark(struct lmq_hf_config *config)
{
    config->hparams->has_attn_gate = config->hparams->has_head_gate = true;
}

/* ---- Nanbeige, Ouro ---- */

void
lmq_hf_finish_nanbeige(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->n_loops < 2)
        h->n_loops = 0;
    h->has_loop_norm =
        h->n_loops > 0 &&
        !lmq_hf_switch(config, config->json, "skip_loop_final_norm", false);
}

/* ---- Apertus 1.5 ---- */

/* Tokens from there on are of images and sounds, and no text has them; the head
 * may lack them. Then they are no part of the vocabulary here. */
void
lmq_hf_finish_apertus_text(struct lmq_hf_config *config)
{
    static const char key[] = "output_vocab_size";
    struct lmq_hparams *h = config->hparams;
    uint32_t n = lmq_hf_count(config, config->json, key, h->vocab_size);

    if (n < 1 || n > h->vocab_size) {
        lmq_hf_fail(config,
                    "'%s' in the configuration is %u, expected 1 to %u", key,
                    n, h->vocab_size);
        return;
    }
    if (n == h->vocab_size)
        return;
    if (lmq_hf_switch(config, config->json, "tie_word_embeddings", false))
        lmq_hparams_refuse(h, "'%s' %u of a head that is the embedding", key,
                           n);
    config->source->n_input_tokens = h->vocab_size;
    h->vocab_size = n;
}

/* ---- The first Qwen ---- */

/* Behind as many tokens as it was trained with its queries grow, and it turns
 * by another base; up to there neither says anything. */
void
lmq_hf_finish_qwen(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    if (h->hidden_dim % 2 != 0)
        lmq_hf_fail(config,
                    "'intermediate_size' in the configuration is %u, expected "
                    "an even number: twice the width of a feed-forward",
                    h->hidden_dim);
    h->hidden_dim /= 2;
    if (lmq_hf_switch(config, config->json, "use_dynamic_ntk", true) ||
        lmq_hf_switch(config, config->json, "use_logn_attn", true))
        h->context_end = h->context;
}
