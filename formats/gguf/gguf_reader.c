/*
 * gguf_reader.c - the values of single keys, for whoever reads a family's.
 */
#include "config.h"

#include "formats/gguf/gguf_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const char *
lmq_gguf_key_of(struct lmq_gguf_reader *r, const char *name)
{
    snprintf(r->key, sizeof(r->key), "%s.%s", r->family->gguf.name, name);
    return r->key;
}

bool
lmq_gguf_has_key(struct lmq_gguf_reader *r, const char *name)
{
    return lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name)) != NULL;
}

enum lmq_status
lmq_gguf_read_count(struct lmq_gguf_reader *r, const char *name,
                    uint32_t *count)
{
    uint64_t number = *count;
    enum lmq_status status = lmq_gguf_get_uint(
        r->meta, lmq_gguf_key_of(r, name), UINT32_MAX, &number, r->err);

    *count = (uint32_t)number;
    return status;
}

/* The shortest decimal fraction that makes this float: what people wrote,
 * 1e-05, rather than what a float made of it. */
static double
as_written(double value)
{
    char text[32];

    for (int digits = 6; digits < 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        double shorter = strtod(text, NULL);
        float a = (float)shorter, b = (float)value;
        if (memcmp(&a, &b, sizeof(a)) == 0)
            return shorter;
    }
    return value;
}

enum lmq_status
lmq_gguf_read_number(struct lmq_gguf_reader *r, const char *name,
                     double *number)
{
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));
    enum lmq_status status =
        lmq_gguf_get_number(r->meta, r->key, number, r->err);

    if (status != LMQ_OK || value == NULL)
        return status;
    if (!isfinite(*number))
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is %g, no number to compute with", r->key,
                        *number);
    if (value->type == LMQ_GGUF_F32)
        *number = as_written(*number);
    return LMQ_OK;
}
