/*
 * build_gguf.c - makes GGUF files, right ones and wrong ones.
 */
#include "config.h"

#include "tests/build/build_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 32

void
gguf_string(struct bytes *bytes, const char *text)
{
    put_u64(bytes, strlen(text));
    put_text(bytes, text);
}

void
gguf_key(struct gguf *gguf, const char *key, uint32_t type)
{
    gguf_string(&gguf->keys, key);
    put_u32(&gguf->keys, type);
    gguf->n_keys++;
}

void
gguf_u32(struct gguf *gguf, const char *key, uint32_t value)
{
    gguf_key(gguf, key, GGUF_U32);
    put_u32(&gguf->keys, value);
}

void
gguf_f32(struct gguf *gguf, const char *key, float value)
{
    gguf_key(gguf, key, GGUF_F32);
    put_f32(&gguf->keys, value);
}

void
gguf_text(struct gguf *gguf, const char *key, const char *value)
{
    gguf_key(gguf, key, GGUF_TEXT);
    gguf_string(&gguf->keys, value);
}

void
gguf_info(struct gguf *gguf, const char *name, const uint64_t *dims,
          uint32_t n_dims, uint32_t type, uint64_t offset)
{
    gguf_string(&gguf->infos, name);
    put_u32(&gguf->infos, n_dims);
    for (uint32_t i = n_dims; i > 0; i--)
        put_u64(&gguf->infos, dims[i - 1]);
    put_u32(&gguf->infos, type);
    put_u64(&gguf->infos, offset);
    gguf->n_tensors++;
}

void
gguf_tensor(struct gguf *gguf, const char *name, const uint64_t *dims,
            uint32_t n_dims, uint32_t type, const void *data, size_t n)
{
    gguf_info(gguf, name, dims, n_dims, type, gguf->data.n);
    put(&gguf->data, data, n);
    put_zeros(&gguf->data, (ALIGN - gguf->data.n % ALIGN) % ALIGN);
}

void
gguf_end(struct gguf *gguf, struct bytes *file)
{
    put(file, "GGUF", 4);
    put_u32(file, gguf->version == 0 ? 3 : gguf->version);
    put_u64(file, gguf->claims_tensors == 0 ? gguf->n_tensors
                                            : gguf->claims_tensors);
    put_u64(file, gguf->n_keys);
    put(file, gguf->keys.at, gguf->keys.n);
    put(file, gguf->infos.at, gguf->infos.n);
    put_zeros(file, (ALIGN - file->n % ALIGN) % ALIGN);
    put(file, gguf->data.at, gguf->data.n);
    bytes_free(&gguf->keys);
    bytes_free(&gguf->infos);
    bytes_free(&gguf->data);
    *gguf = (struct gguf){0};
}

/* ---- A Llama ---- */

void
gguf_llama_keys(struct gguf *gguf, const struct build_model *model)
{
    const struct build_sizes *s = &model->sizes;

    gguf_text(gguf, "general.architecture", "llama");
    gguf_u32(gguf, "llama.block_count", s->layers);
    gguf_u32(gguf, "llama.context_length", s->context);
    gguf_u32(gguf, "llama.embedding_length", s->dim);
    gguf_u32(gguf, "llama.feed_forward_length", s->hidden);
    gguf_u32(gguf, "llama.attention.head_count", s->heads);
    gguf_u32(gguf, "llama.attention.head_count_kv", s->kv_heads);
    gguf_f32(gguf, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

static const struct {
    const char *theirs, *ours; /* ours may begin a name */
} names[] = {
    {"embed_tokens", "token_embd"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"norm", "output_norm"},
};

static void
rename_tensor(const char *theirs, char *name, size_t size)
{
    char prefix[32] = "", rest[96];
    int layer, used = 0;

    if (strncmp(theirs, "model.", 6) == 0)
        theirs += 6;
    if (sscanf(theirs, "layers.%d.%n", &layer, &used) == 1) {
        snprintf(prefix, sizeof(prefix), "blk.%d.", layer);
        theirs += used;
    }
    snprintf(rest, sizeof(rest), "%s", theirs);
    char *dot = strstr(rest, ".weight");
    if (dot != NULL)
        *dot = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(rest, names[i].theirs) == 0)
            snprintf(name, size, "%s%s.weight", prefix, names[i].ours);
}

/* Within each head rows 0, n/2, 1, n/2 + 1, ... */
static size_t
row_in_pairs(size_t row, size_t head_dim)
{
    size_t in_head = row % head_dim;

    return row - in_head + in_head / 2 + in_head % 2 * (head_dim / 2);
}

void
gguf_llama_tensors(struct gguf *gguf, const struct build_model *model,
                   size_t first, size_t n)
{
    size_t head_dim = model->sizes.dim / model->sizes.heads;

    for (size_t i = first; i < first + n; i++) {
        const struct build_tensor *tensor = &model->tensors[i];
        struct bytes data = {0};
        char name[96] = "?";
        bool turns = strstr(tensor->name, "q_proj") != NULL ||
                     strstr(tensor->name, "k_proj") != NULL;
        size_t n_cols = (size_t)tensor->dims[tensor->n_dims - 1];
        for (size_t k = 0; k < tensor->n_elements; k++) {
            size_t row = k / n_cols;
            size_t from = turns ? row_in_pairs(row, head_dim) : row;
            put_f32(&data, tensor->x[from * n_cols + k % n_cols]);
        }
        rename_tensor(tensor->name, name, sizeof(name));
        gguf_tensor(gguf, name, tensor->dims, tensor->n_dims, GGUF_T_F32,
                    data.at, data.n);
        bytes_free(&data);
    }
}

void
save_gguf(struct gguf *gguf, const char *path)
{
    struct bytes bytes = {0};

    gguf_end(gguf, &bytes);
    save(&bytes, path);
    bytes_free(&bytes);
}

void
save_llama(const struct build_model *model, uint32_t version, const char *path)
{
    struct gguf gguf = {.version = version};

    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    save_gguf(&gguf, path);
}
