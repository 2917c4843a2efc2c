/*
 * fable_save.c - writes the trained model in the two formats of the test data.
 *
 * Both hold the same floats bit for bit. llama2.c rotates neighbours in a
 * head, Hugging Face an element and the one half a head further on; so the
 * rows of wq and wk stand in another order there.
 */
#include "fable_save.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 96
#define N_TENSORS (2 + 9 * NET_LAYERS)

static FILE *
create(const char *folder, const char *name)
{
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "wb") : NULL;
    if (f == NULL) {
        fprintf(stderr, "fable_train: %s/%s: cannot be written\n", folder,
                name);
        exit(1);
    }
    return f;
}

static void
finish(FILE *f, const char *name)
{
    int is_bad = ferror(f);
    if (fclose(f) != 0 || is_bad) {
        fprintf(stderr, "fable_train: %s: cannot be written\n", name);
        exit(1);
    }
}

static void
put_le(FILE *f, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        putc((int)(v >> (8 * i) & 0xff), f);
}

static void
put_floats(FILE *f, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        put_le(f, bits, 4);
    }
}

/* ---- llama2.c ---- */

static void
put_rotations(FILE *f, double (*of)(double))
{
    for (int t = 0; t < NET_SEQ; t++) {
        for (int i = 0; i < NET_HEAD / 2; i++) {
            float x = (float)of(net_rope_angle(t, i));
            put_floats(f, &x, 1);
        }
    }
}

static void
save_llama2c(const struct net_params *p, const char *folder)
{
    /* A positive vocabulary size says that the head is the embedding. */
    static const int header[] = { NET_DIM,      NET_HIDDEN, NET_LAYERS,
                                  NET_HEADS,    NET_KV_HEADS,
                                  NET_VOCAB,    NET_SEQ };
    FILE *f = create(folder, "fable.bin");

    for (size_t i = 0; i < sizeof(header) / sizeof(header[0]); i++)
        put_le(f, (uint32_t)header[i], 4);
    put_floats(f, p->embed, net_n_params()); /* the array is in this order */
    put_rotations(f, cos);
    put_rotations(f, sin);
    finish(f, "fable.bin");
}

/* ---- Hugging Face ---- */

struct tensor {
    char name[NAME_MAX_LEN];
    const float *data;
    size_t n_rows, n_cols; /* n_rows is 0 for a vector */
    int is_rotated;
};

static struct tensor *
add(struct tensor *at, const char *name, const float *data, size_t n_rows,
    size_t n_cols)
{
    snprintf(at->name, sizeof(at->name), "model.%s.weight", name);
    at->data = data;
    at->n_rows = n_rows;
    at->n_cols = n_cols;
    at->is_rotated = 0;
    return at + 1;
}

static struct tensor *
add_in_layer(struct tensor *at, size_t layer, const char *name,
             const float *data, size_t n_rows, size_t n_cols)
{
    char full[NAME_MAX_LEN / 2];
    snprintf(full, sizeof(full), "layers.%zu.%s", layer, name);
    size_t size = (n_rows == 0 ? 1 : n_rows) * n_cols;
    add(at, full, data + layer * size, n_rows, n_cols);
    at->is_rotated = strstr(name, "q_proj") != NULL ||
                     strstr(name, "k_proj") != NULL;
    return at + 1;
}

static void
list_tensors(const struct net_params *p, struct tensor *at)
{
    at = add(at, "embed_tokens", p->embed, NET_VOCAB, NET_DIM);
    for (size_t l = 0; l < NET_LAYERS; l++) {
        at = add_in_layer(at, l, "input_layernorm", p->rms_att, 0, NET_DIM);
        at = add_in_layer(at, l, "mlp.down_proj", p->w2, NET_DIM, NET_HIDDEN);
        at = add_in_layer(at, l, "mlp.gate_proj", p->w1, NET_HIDDEN, NET_DIM);
        at = add_in_layer(at, l, "mlp.up_proj", p->w3, NET_HIDDEN, NET_DIM);
        at = add_in_layer(at, l, "post_attention_layernorm", p->rms_ffn, 0,
                          NET_DIM);
        at = add_in_layer(at, l, "self_attn.k_proj", p->wk, NET_KV_DIM,
                          NET_DIM);
        at = add_in_layer(at, l, "self_attn.o_proj", p->wo, NET_DIM, NET_DIM);
        at = add_in_layer(at, l, "self_attn.q_proj", p->wq, NET_DIM, NET_DIM);
        at = add_in_layer(at, l, "self_attn.v_proj", p->wv, NET_KV_DIM,
                          NET_DIM);
    }
    add(at, "norm", p->rms_last, 0, NET_DIM);
}

static void
put_rotated(FILE *f, const struct tensor *t)
{
    size_t half = NET_HEAD / 2;

    for (size_t row = 0; row < t->n_rows; row++) {
        size_t head = row / NET_HEAD, i = row % NET_HEAD;
        size_t from = head * NET_HEAD + 2 * (i % half) + i / half;
        put_floats(f, t->data + from * t->n_cols, t->n_cols);
    }
}

static void
save_safetensors(const struct net_params *p, const char *folder)
{
    static struct tensor tensors[N_TENSORS];
    static char header[16384];
    size_t len, at = 0;

    list_tensors(p, tensors);
    len = (size_t)snprintf(header, sizeof(header),
                           "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct tensor *t = &tensors[i];
        char shape[64];
        size_t n = t->n_cols * (t->n_rows == 0 ? 1 : t->n_rows);
        if (t->n_rows == 0)
            snprintf(shape, sizeof(shape), "%zu", t->n_cols);
        else
            snprintf(shape, sizeof(shape), "%zu,%zu", t->n_rows, t->n_cols);
        len += (size_t)snprintf(header + len, sizeof(header) - len,
                                ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],"
                                "\"data_offsets\":[%zu,%zu]}",
                                t->name, shape, at, at + 4 * n);
        at += 4 * n;
    }
    header[len++] = '}';
    while (len % 8 != 0)
        header[len++] = ' ';

    FILE *f = create(folder, "model.safetensors");
    put_le(f, len, 8);
    fwrite(header, 1, len, f);
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct tensor *t = &tensors[i];
        if (t->is_rotated)
            put_rotated(f, t);
        else
            put_floats(f, t->data,
                       t->n_cols * (t->n_rows == 0 ? 1 : t->n_rows));
    }
    finish(f, "model.safetensors");
}

static void
save_config(const char *folder)
{
    FILE *f = create(folder, "config.json");

    fprintf(f,
            "{\n"
            "  \"architectures\": [\n"
            "    \"LlamaForCausalLM\"\n"
            "  ],\n"
            "  \"attention_bias\": false,\n"
            "  \"attention_dropout\": 0.0,\n"
            "  \"bos_token_id\": 1,\n"
            "  \"eos_token_id\": 2,\n"
            "  \"head_dim\": %d,\n"
            "  \"hidden_act\": \"silu\",\n"
            "  \"hidden_size\": %d,\n"
            "  \"initializer_range\": 0.02,\n"
            "  \"intermediate_size\": %d,\n"
            "  \"max_position_embeddings\": %d,\n"
            "  \"mlp_bias\": false,\n"
            "  \"model_type\": \"llama\",\n"
            "  \"num_attention_heads\": %d,\n"
            "  \"num_hidden_layers\": %d,\n"
            "  \"num_key_value_heads\": %d,\n"
            "  \"pretraining_tp\": 1,\n"
            "  \"rms_norm_eps\": 1e-05,\n"
            "  \"rope_scaling\": null,\n"
            "  \"rope_theta\": %.1f,\n"
            "  \"tie_word_embeddings\": true,\n"
            "  \"torch_dtype\": \"float32\",\n"
            "  \"use_cache\": true,\n"
            "  \"vocab_size\": %d\n"
            "}\n",
            NET_HEAD, NET_DIM, NET_HIDDEN, NET_SEQ, NET_HEADS, NET_LAYERS,
            NET_KV_HEADS, NET_ROPE_BASE, NET_VOCAB);
    finish(f, "config.json");

    f = create(folder, "generation_config.json");
    fputs("{\n"
          "  \"bos_token_id\": 1,\n"
          "  \"eos_token_id\": 2,\n"
          "  \"do_sample\": false\n"
          "}\n", f);
    finish(f, "generation_config.json");
}

void
fable_save(const struct net_params *p, const char *folder)
{
    save_llama2c(p, folder);
    save_safetensors(p, folder);
    save_config(folder);
}
