/*
 * oracle_llama.c - fills the oracle from a checkpoint of a plain Llama.
 *
 * Of the description only what every Llama has: sizes, the rotary base and
 * its scaling, a window. Families have checkpoints made for them (family.h)
 * and are described there, independently.
 */
#include "config.h"

#include "tests/families/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL if the model has no such tensor. */
static float *
load(struct lmq_checkpoint *checkpoint, const char *name)
{
    struct lmq_scratch scratch = {0};
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);

    if (tensor == NULL)
        return NULL;
    size_t n = (size_t)tensor->n_elements;
    float *w = malloc(n * sizeof(*w));
    if (w == NULL || lmq_checkpoint_read(checkpoint, tensor, 0, n, w, &scratch,
                                         NULL) != LMQ_OK)
        abort();
    lmq_scratch_free(&scratch);
    return w;
}

static struct oracle_linear
load_linear(struct lmq_checkpoint *checkpoint, size_t layer, const char *what,
            size_t rows, size_t cols)
{
    struct oracle_linear linear = {.rows = rows, .cols = cols};
    char name[64];

    snprintf(name, sizeof(name), "blk.%zu.%s.weight", layer, what);
    linear.w = load(checkpoint, name);
    snprintf(name, sizeof(name), "blk.%zu.%s.bias", layer, what);
    linear.b = load(checkpoint, name);
    if (linear.w == NULL)
        abort();
    return linear;
}

static struct oracle_norm
load_norm(struct lmq_checkpoint *checkpoint, const char *name, size_t dim)
{
    struct oracle_norm norm = {load(checkpoint, name), NULL, dim, dim};

    if (norm.w == NULL)
        abort();
    return norm;
}

static void
load_layer(struct lmq_checkpoint *c, const struct oracle_shape *s,
           size_t layer, struct oracle_layer *w)
{
    size_t width = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    char name[64];

    snprintf(name, sizeof(name), "blk.%zu.attn_norm.weight", layer);
    w->attn_norm = load_norm(c, name, s->dim);
    snprintf(name, sizeof(name), "blk.%zu.ffn_norm.weight", layer);
    w->ffn_norm = load_norm(c, name, s->dim);
    w->q = load_linear(c, layer, "attn_q", width, s->dim);
    w->k = load_linear(c, layer, "attn_k", kv, s->dim);
    w->v = load_linear(c, layer, "attn_v", kv, s->dim);
    w->o = load_linear(c, layer, "attn_output", s->dim, width);
    w->mlp.gate = load_linear(c, layer, "ffn_gate", s->hidden, s->dim);
    w->mlp.up = load_linear(c, layer, "ffn_up", s->hidden, s->dim);
    w->mlp.down = load_linear(c, layer, "ffn_down", s->dim, s->hidden);
}

static struct oracle_shape
describe(const struct lmq_hparams *h)
{
    return (struct oracle_shape){
        .dim = h->dim,
        .hidden = h->hidden_dim,
        .layers = h->n_layers,
        .heads = h->n_heads,
        .kv_heads = h->n_kv_heads,
        .head_dim = h->head_dim,
        .vocab = h->vocab_size,
        .eps = h->norm_eps,
        .activation = oracle_silu,
        .window = h->sliding_window,
        .sliding = h->sliding_window > 0 ? "1" : NULL,
        .theta = h->rope_theta,
        .rope = h->rope_scaling == LMQ_ROPE_LINEAR   ? ORACLE_ROPE_LINEAR
                : h->rope_scaling == LMQ_ROPE_LLAMA3 ? ORACLE_ROPE_LLAMA3
                                                     : ORACLE_ROPE_PLAIN,
        .factor = h->rope_factor,
        .low = h->rope_low_factor,
        .high = h->rope_high_factor,
        .original = h->rope_context,
    };
}

static void
free_layer(struct oracle_layer *w)
{
    const struct oracle_linear linears[] = {
        w->q, w->k, w->v, w->o, w->mlp.gate, w->mlp.up, w->mlp.down,
    };

    for (size_t i = 0; i < sizeof(linears) / sizeof(linears[0]); i++) {
        free(linears[i].w);
        free(linears[i].b);
    }
    free(w->attn_norm.w);
    free(w->ffn_norm.w);
}

double *
oracle_logits(struct lmq_checkpoint *checkpoint, const int32_t *tokens,
              size_t n)
{
    struct oracle_model model = {.shape = describe(&checkpoint->hparams)};
    const struct oracle_shape *s = &model.shape;
    float *head = load(checkpoint, "output.weight");

    model.embedding = load(checkpoint, "token_embd.weight");
    model.norm = load_norm(checkpoint, "output_norm.weight", s->dim);
    model.head = (struct oracle_linear){
        .w = head == NULL ? model.embedding : head,
        .rows = s->vocab,
        .cols = s->dim,
    };
    model.layers = calloc(s->layers, sizeof(*model.layers));
    if (model.layers == NULL || model.embedding == NULL)
        abort();
    for (size_t layer = 0; layer < s->layers; layer++)
        load_layer(checkpoint, s, layer, &model.layers[layer]);
    double *logits = oracle_run(&model, tokens, n);
    for (size_t layer = 0; layer < s->layers; layer++)
        free_layer(&model.layers[layer]);
    free(model.layers);
    free(model.embedding);
    free(model.norm.w);
    free(head);
    return logits;
}
