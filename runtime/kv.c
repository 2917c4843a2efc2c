/*
 * kv.c - room for keys and values.
 */
#include "config.h"

#include "runtime/kv.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

const struct lmq_name lmq_kv_names[] = {
    {"f32", LMQ_ROW_F32},
    {"f16", LMQ_ROW_F16},
    {"q8", LMQ_ROW_Q8},
    {NULL, 0},
};

enum lmq_status
lmq_kv_parse(const char *text, enum lmq_row_type *type, struct lmq_error *err)
{
    int value = LMQ_ROW_F32;
    enum lmq_status status =
        lmq_names_parse(lmq_kv_names, "kv", text, &value, err);

    *type = (enum lmq_row_type)value;
    return status;
}

static bool
make_rows(unsigned char **rows, const struct lmq_hparams *h,
          enum lmq_row_type type, size_t width, size_t context)
{
    size_t n;

    if (!lmq_size_mul(lmq_row_bytes(type, width), lmq_cached_heads(h), &n))
        return false;
    *rows = lmq_mem_aligned(context, n);
    return *rows != NULL;
}

bool
lmq_kv_init(struct lmq_kv *kv, const struct lmq_model *model,
            enum lmq_row_type type, size_t context)
{
    const struct lmq_hparams *h = &model->hparams;

    *kv = (struct lmq_kv){.type = type};
    if (make_rows(&kv->keys, h, type, lmq_key_width(h), context) &&
        (h->kv_lora_rank > 0 ||
         make_rows(&kv->values, h, type, lmq_value_width(h), context)))
        return true;
    lmq_kv_free(kv);
    return false;
}

void
lmq_kv_free(struct lmq_kv *kv)
{
    lmq_mem_free(kv->keys);
    lmq_mem_free(kv->values);
    *kv = (struct lmq_kv){0};
}

double
lmq_kv_bytes(const struct lmq_model *model, enum lmq_row_type type,
             size_t context)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t row = lmq_row_bytes(type, lmq_key_width(h));

    if (h->kv_lora_rank == 0)
        row += lmq_row_bytes(type, lmq_value_width(h));
    return (double)row * (double)lmq_cached_heads(h) * (double)context;
}
