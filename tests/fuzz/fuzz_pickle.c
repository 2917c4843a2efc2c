/*
 * fuzz_pickle.c - any bytes as a pickle: parse, and walk through all of it.
 */
#include "config.h"

#include <stdlib.h>

#include "formats/torch/pickle.h"
#include "tests/fuzz/fuzz.h"

static void
look_at(const struct lmq_pickle *pickle, const struct lmq_pickle_value *value,
        const uint8_t *bytes, size_t n)
{
    size_t n_items = 0;

    if (lmq_pickle_is(value, LMQ_PICKLE_TEXT) ||
        lmq_pickle_is(value, LMQ_PICKLE_BYTES))
        if (value->is.text.at < bytes || value->is.text.n > n ||
            (size_t)(value->is.text.at - bytes) > n - value->is.text.n)
            abort();
    for (uint32_t cell = lmq_pickle_first(value);
         lmq_pickle_next(pickle, &cell) != NULL;)
        n_items++;
    if (lmq_pickle_first(value) != LMQ_PICKLE_NOTHING &&
        n_items != value->n_items)
        abort();
    if (lmq_pickle_is(value, LMQ_PICKLE_DICT) && value->n_items % 2 != 0)
        abort();
    lmq_pickle_get(pickle, value, "model");
    lmq_pickle_item(pickle, lmq_pickle_arguments(pickle, value), 3);
    lmq_pickle_global(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct lmq_pickle *pickle;
    struct lmq_error err;

    if (lmq_pickle_parse(bytes, n, &pickle, &err) != LMQ_OK) {
        if (err.message[0] == '\0')
            abort();
        return 0;
    }
    if (pickle->n_values > n)
        abort();
    lmq_pickle_root(pickle);
    for (size_t i = 0; i < pickle->n_values; i++)
        look_at(pickle, &pickle->values[i], bytes, n);
    lmq_pickle_free(pickle);
    return 0;
}
