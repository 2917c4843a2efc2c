/*
 * fuzz_gguf_meta.c - any bytes as a GGUF: parse, walk, look up, write.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "formats/gguf/gguf_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every string of an array must lie within the input. */
static void
walk_strings(const struct lmq_gguf_value *v, const uint8_t *end)
{
    struct lmq_gguf_strings strings = lmq_gguf_strings(v);
    const unsigned char *text;
    size_t n;

    while (lmq_gguf_next_string(&strings, &text, &n))
        if (text > end || n > (size_t)(end - text))
            abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lmq_gguf_meta *meta, *again;
    struct lmq_error err;
    unsigned char *vocab;
    size_t n_vocab;

    if (lmq_gguf_meta_open(data, size, &meta, NULL, &err) != LMQ_OK)
        return 0;
    for (size_t i = 0; i < meta->n_values; i++) {
        const struct lmq_gguf_value *v = &meta->values[i];
        if (v->type == LMQ_GGUF_ARRAY && v->item_type == LMQ_GGUF_STRING)
            walk_strings(v, data + size);
        else if (v->type == LMQ_GGUF_ARRAY && v->count > 0 &&
                 v->item_type != LMQ_GGUF_ARRAY) {
            lmq_gguf_item_int(v, v->count - 1);
            lmq_gguf_item_number(v, v->count - 1);
        }
    }
    /* What was written must be read again. */
    if (lmq_gguf_write_vocab(meta, &vocab, &n_vocab, &err) == LMQ_OK) {
        if (lmq_gguf_meta_open(vocab, n_vocab, &again, NULL, &err) != LMQ_OK)
            abort();
        lmq_gguf_meta_close(again);
        free(vocab);
    }
    lmq_gguf_meta_close(meta);
    return 0;
}
