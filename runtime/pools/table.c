/*
 * table.c - which experts each token goes to, where a table says it.
 */
#include "config.h"

#include "runtime/pools/table.h"

#include "base/error.h"

enum lmq_status
lmq_table_check(const struct lmq_hparams *h, const struct lmq_tensor *tensor,
                const float *table, struct lmq_error *err)
{
    size_t used = h->n_experts_used, n = (size_t)tensor->n_elements;

    for (size_t i = 0; i < n; i++) {
        bool is_known = table[i] >= 0 && table[i] < (float)h->n_experts &&
                        (float)(uint32_t)table[i] == table[i];
        for (size_t j = i - i % used; j < i && is_known; j++)
            is_known = table[j] != table[i];
        if (!is_known)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s': %g at element %zu, expected another "
                            "one of %u experts for token %zu",
                            tensor->stored_name, (double)table[i], i,
                            h->n_experts, i / used);
    }
    return LMQ_OK;
}
