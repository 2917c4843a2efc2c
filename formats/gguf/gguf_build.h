/*
 * gguf_build.h - puts the key/value part of a GGUF file together, in memory.
 *
 * Nothing here returns an error: a caller asks the buffer once, at the end.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_BUILD_H
#define LMQ_FORMATS_GGUF_GGUF_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/buffer.h"
#include "formats/gguf/gguf_values.h"

/* Zero it to begin. */
struct lmq_gguf_builder {
    struct lmq_buffer out;
    const char *prefix; /* stands before keys that begin with a point */
    uint64_t n_values;
};

/* The header; its counts are filled in by lmq_gguf_build_end(). */
void lmq_gguf_build_begin(struct lmq_gguf_builder *builder);
void lmq_gguf_build_end(struct lmq_gguf_builder *builder, uint64_t n_tensors);
void lmq_gguf_build_free(struct lmq_gguf_builder *builder);

/* One key and its value. */
void lmq_gguf_put_u32(struct lmq_gguf_builder *builder, const char *key,
                      uint32_t value);
void lmq_gguf_put_f32(struct lmq_gguf_builder *builder, const char *key,
                      double value);
void lmq_gguf_put_bool(struct lmq_gguf_builder *builder, const char *key,
                       bool value);
void lmq_gguf_put_text(struct lmq_gguf_builder *builder, const char *key,
                       const void *text, size_t size);
/* As another file has it. */
void lmq_gguf_put_value(struct lmq_gguf_builder *builder,
                        const struct lmq_gguf_value *value);

/* A key and the head of an array, which `count` items must follow. */
void lmq_gguf_put_array(struct lmq_gguf_builder *builder, const char *key,
                        enum lmq_gguf_type item_type, uint64_t count);

/* Without a key: items, and what stands behind the values. */
void lmq_gguf_add_u32(struct lmq_gguf_builder *builder, uint32_t value);
void lmq_gguf_add_u64(struct lmq_gguf_builder *builder, uint64_t value);
void lmq_gguf_add_bool(struct lmq_gguf_builder *builder, bool value);
void lmq_gguf_add_f32(struct lmq_gguf_builder *builder, double value);
void lmq_gguf_add_bool(struct lmq_gguf_builder *builder, bool value);
void lmq_gguf_add_text(struct lmq_gguf_builder *builder, const void *text,
                       size_t size);

#endif
