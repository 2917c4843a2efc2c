/*
 * hf_qwen4.c - what config.json says of Qwen 4: layers of Qwen 3.5 whose
 * streams have gates, some of which are given something of the last tokens.
 *
 * How sequences of tokens name rows of a table follows from a few numbers: what
 * tokens are multiplied with from a seed, and how many rows there are of each
 * kind from where primes are looked for.
 */
#include "config.h"

#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"
#include "formats/hf/more/hf_further.h"
#include "formats/grams/grams.h"

/* ---- Streams ---- */

void
lmq_hf_begin_qwen4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->stream_kind = LMQ_STREAMS_GATED;
    h->stream_gain = 2;
    if (lmq_hf_has(config->json, "indexer_budget"))
        lmq_hf_choose_groups(config, "indexer_budget", 0,
                             "indexer_compress_ratio", 0);
}

/* ---- Numbers of sequences ---- */

/* The step of the generator, and a prime by which layers differ. */
#define GAMMA 0x9e3779b97f4a7c15
#define LAYER_PRIME 10007

static uint64_t
mixed(uint64_t value)
{
    value += GAMMA;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

static bool
is_prime(uint64_t n)
{
    if (n < 2 || (n % 2 == 0 && n != 2))
        return false;
    for (uint64_t i = 3; i * i <= n; i += 2)
        if (n % i == 0)
            return false;
    return true;
}

/* Odd, so that a product with any token fits into 63 bits. */
static void
make_factors(struct lmq_hparams *h, uint64_t seed, size_t n_layers)
{
    uint64_t half = INT64_MAX / (uint64_t)h->vocab_size / 2;

    for (uint64_t layer = 0; layer < n_layers; layer++)
        for (uint64_t i = 0; i < h->gram_size; i++) {
            uint64_t value = mixed(seed + LAYER_PRIME * layer +
                                   (uint64_t)GAMMA * (i + 1));
            h->gram_factors[h->n_gram_factors++] =
                2 * (value % (half == 0 ? 1 : half)) + 1;
        }
}

/* The primes from `base` on, one after another, all of one layer first. */
static void
make_rows(struct lmq_hparams *h, uint64_t base, size_t n_layers)
{
    uint64_t prime = base;

    while (h->n_gram_rows < n_layers * lmq_gram_places(h)) {
        while (!is_prime(prime))
            prime++;
        h->gram_rows[h->n_gram_rows++] = prime++;
    }
}

/* The first, if there are several. */
static int64_t
read_stop(struct lmq_hf_config *config)
{
    static const char key[] = "eos_token_id";
    const json_t *stop = json_object_get(config->json, key);

    if (json_is_array(stop))
        stop = json_array_get(stop, 0);
    return stop == NULL || json_is_null(stop)
               ? -1
               : lmq_hf_number(config, stop, key);
}

/* Layers count from 1 in this list. */
static size_t
mark_layers(struct lmq_hf_config *config, const json_t *list)
{
    const struct lmq_hparams *h = config->hparams;
    const json_t *element;
    size_t i, n = 0;

    json_array_foreach(list, i, element) {
        int64_t layer = lmq_hf_number(config, element, "ple_layer_ids");
        if (layer < 1 || layer > h->n_layers)
            lmq_hf_fail(config, "'ple_layer_ids' in the configuration names "
                                "a layer that is none of 1 to %u",
                        h->n_layers);
        else
            lmq_hf_mark(config, layer - 1, LMQ_LAYER_GRAMS);
    }
    for (uint32_t layer = 0; layer < lmq_hf_layers(config); layer++)
        n += lmq_layer_has_grams(h, layer);
    return n;
}

static void
read_grams(struct lmq_hf_config *config)
{
    static const char dim_key[] = "ple_embed_dim";
    struct lmq_hparams *h = config->hparams;
    const json_t *json = config->json;
    size_t n_layers =
        mark_layers(config, lmq_hf_list(config, json, "ple_layer_ids"));
    uint32_t width = lmq_hf_count(config, json, dim_key, h->dim);
    uint32_t base = lmq_hf_count(config, json, "ngram_vocab_size_base",
                                 20000000);
    int64_t stop = read_stop(config);

    if (n_layers == 0)
        return;
    h->gram_size = lmq_hf_count(config, json, "ngram_size", 3);
    h->gram_heads = lmq_hf_count(config, json, "heads_per_ngram", 8);
    h->gram_conv_width =
        lmq_hf_count(config, json, "ple_conv_kernel_size", 4);
    size_t places = lmq_gram_places(h);
    if (h->gram_size < 2 || h->gram_size > LMQ_MAX_GRAM || places == 0 ||
        width % places != 0 || h->vocab_size == 0 || base > INT32_MAX / 2 ||
        n_layers * places > LMQ_MAX_GRAM_NUMBERS ||
        n_layers * h->gram_size > LMQ_MAX_GRAM_NUMBERS) {
        lmq_hf_fail(config, "'%s' in the configuration is %u, expected a "
                            "multiple of %zu rows, of %u each of sequences of "
                            "2 to %u tokens, in %zu layers that have few of "
                            "them together",
                    dim_key, width, places, h->gram_heads, h->gram_size,
                    n_layers);
        return;
    }
    if (stop < 0 || stop >= h->vocab_size) {
        lmq_hf_fail(config, "'eos_token_id' in the configuration is no token, "
                            "but sequences of tokens end there");
        return;
    }
    h->gram_dim = width / (uint32_t)places;
    h->gram_stop = (uint32_t)stop;
    make_factors(h, lmq_hf_count(config, json, "seed", 1234), n_layers);
    make_rows(h, base, n_layers);
}

void
lmq_hf_finish_qwen4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const char *gate =
        lmq_hf_text(config, config->json, "output_gate_type", "silu");

    h->has_sigmoid_gates = strcmp(gate, "sigmoid") == 0;
    if (!h->has_sigmoid_gates && strcmp(gate, "silu") != 0)
        lmq_hparams_refuse(h, "'output_gate_type' '%.60s'", gate);
    read_grams(config);
    lmq_hf_finish_qwen3next(config);
}
