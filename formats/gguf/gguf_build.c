/*
 * gguf_build.c - puts the key/value part of a GGUF file together, in memory.
 *
 * The layout is in gguf_meta.c, which reads it. put_ writes a key and its
 * value, add_ a bare number or text, of an array or a tensor info. Without
 * memory the buffer remembers that it failed, and whoever writes it out asks.
 */
#include "config.h"

#include "formats/gguf/gguf_build.h"

#include <string.h>

#include "base/bytes.h"

void
lmq_gguf_add_u32(struct lmq_gguf_builder *builder, uint32_t value)
{
    lmq_buffer_append_u32le(&builder->out, value);
}

void
lmq_gguf_add_u64(struct lmq_gguf_builder *builder, uint64_t value)
{
    lmq_buffer_append_u64le(&builder->out, value);
}

void
lmq_gguf_add_f32(struct lmq_gguf_builder *builder, double value)
{
    lmq_buffer_append_f32le(&builder->out, (float)value);
}

void
lmq_gguf_add_bool(struct lmq_gguf_builder *builder, bool value)
{
    unsigned char byte = value;

    lmq_buffer_append(&builder->out, &byte, 1);
}

void
lmq_gguf_add_text(struct lmq_gguf_builder *builder, const void *text,
                  size_t size)
{
    lmq_gguf_add_u64(builder, size);
    lmq_buffer_append(&builder->out, text, size);
}

static void
put_key(struct lmq_gguf_builder *builder, const char *key,
        enum lmq_gguf_type type)
{
    const char *prefix = key[0] == '.' ? builder->prefix : "";
    size_t n = strlen(prefix), size = strlen(key);

    lmq_gguf_add_u64(builder, n + size);
    lmq_buffer_append(&builder->out, prefix, n);
    lmq_buffer_append(&builder->out, key, size);
    lmq_gguf_add_u32(builder, type);
    builder->n_values++;
}

void
lmq_gguf_put_u32(struct lmq_gguf_builder *builder, const char *key,
                 uint32_t value)
{
    put_key(builder, key, LMQ_GGUF_U32);
    lmq_gguf_add_u32(builder, value);
}

void
lmq_gguf_put_f32(struct lmq_gguf_builder *builder, const char *key,
                 double value)
{
    put_key(builder, key, LMQ_GGUF_F32);
    lmq_gguf_add_f32(builder, value);
}

void
lmq_gguf_put_bool(struct lmq_gguf_builder *builder, const char *key,
                  bool value)
{
    put_key(builder, key, LMQ_GGUF_BOOL);
    lmq_gguf_add_bool(builder, value);
}

void
lmq_gguf_put_text(struct lmq_gguf_builder *builder, const char *key,
                  const void *text, size_t size)
{
    put_key(builder, key, LMQ_GGUF_STRING);
    lmq_gguf_add_text(builder, text, size);
}

/* A value of another file, byte for byte. */
void
lmq_gguf_put_value(struct lmq_gguf_builder *builder,
                   const struct lmq_gguf_value *value)
{
    lmq_gguf_add_text(builder, value->key, value->key_size);
    lmq_gguf_add_u32(builder, value->type);
    lmq_buffer_append(&builder->out, value->raw, value->raw_size);
    builder->n_values++;
}

void
lmq_gguf_put_array(struct lmq_gguf_builder *builder, const char *key,
                   enum lmq_gguf_type item_type, uint64_t count)
{
    put_key(builder, key, LMQ_GGUF_ARRAY);
    lmq_gguf_add_u32(builder, item_type);
    lmq_gguf_add_u64(builder, count);
}

void
lmq_gguf_build_begin(struct lmq_gguf_builder *builder)
{
    lmq_buffer_append(&builder->out, "GGUF", 4);
    lmq_gguf_add_u32(builder, 3); /* version */
    lmq_gguf_add_u64(builder, 0); /* tensors: known in the end */
    lmq_gguf_add_u64(builder, 0); /* keys: likewise */
}

void
lmq_gguf_build_end(struct lmq_gguf_builder *builder, uint64_t n_tensors)
{
    /* Then there may be no header to fill in. */
    if (builder->out.has_failed)
        return;
    lmq_store_u64le(builder->out.bytes + 8, n_tensors);
    lmq_store_u64le(builder->out.bytes + 16, builder->n_values);
}

void
lmq_gguf_build_free(struct lmq_gguf_builder *builder)
{
    lmq_buffer_free(&builder->out);
    *builder = (struct lmq_gguf_builder){0};
}
