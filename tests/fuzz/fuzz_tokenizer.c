/*
 * fuzz_tokenizer.c - any bytes as a tokenizer and, behind it, a text.
 *
 * The last byte of the input says how many bytes before it are the text.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
encode_and_decode(const struct lmq_tokenizer *t, const char *text, size_t n)
{
    struct lmq_ids ids = { 0 };
    struct lmq_buffer out = { 0 };
    struct lmq_error err;
    size_t n_ids = lmq_tokenizer_size(t);

    if (lmq_tokenizer_encode(t, text, n, 7, &ids, &err) == LMQ_OK) {
        for (size_t i = 0; i < ids.n; i++)
            if (ids.ids[i] < 0 || (size_t)ids.ids[i] >= n_ids)
                abort();
        if (lmq_tokenizer_decode(t, ids.ids, ids.n, 3, &out, &err) != LMQ_OK)
            abort();
    }
    ids.n = 0;
    lmq_tokenizer_encode(t, text, n, 0, &ids, NULL);
    for (size_t id = 0; id < n_ids && id < 1000; id++)
        if (lmq_tokenizer_piece(t, (int32_t)id).p == NULL)
            abort();
    lmq_ids_clear(&ids);
    lmq_buffer_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lmq_tokenizer *t;
    struct lmq_error err;

    if (size < 2)
        return 0;
    size_t n_text = data[size - 1];
    if (n_text > size - 2)
        n_text = size - 2;
    size_t n = size - 1 - n_text;
    struct lmq_blob blobs[2] = {
        { "tokenizer", data, n },
        { "tokenizer_config.json", data + n, n_text },
    };
    /* A text that is an object is a configuration as well. */
    size_t n_blobs = n_text > 0 && data[n] == '{' ? 2 : 1;
    if (lmq_tokenizer_open(blobs, n_blobs, &t, &err) != LMQ_OK)
        return 0;
    encode_and_decode(t, (const char *)data + n, n_text);
    lmq_tokenizer_close(t);
    return 0;
}
