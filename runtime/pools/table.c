/*
 * table.c - which experts each token goes to, where a table says it.
 */
#include "config.h"

#include "runtime/pools/table.h"

#include <inttypes.h>

#include "base/error.h"

enum lmq_status
lmq_table_check(const struct lmq_hparams *h, const struct lmq_tensor *tensor,
                uint64_t first, const float *table, size_t n,
                struct lmq_error *err)
{
    size_t used = h->n_experts_used;

    for (size_t i = 0; i < n; i++) {
        bool is_known = table[i] >= 0 && table[i] < (float)h->n_experts &&
                        (float)(uint32_t)table[i] == table[i];
        for (size_t j = i - i % used; j < i && is_known; j++)
            is_known = table[j] != table[i];
        if (!is_known)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s': %g at element %" PRIu64
                            ", expected another one of %u experts for token "
                            "%" PRIu64,
                            tensor->stored_name, (double)table[i], first + i,
                            h->n_experts, (first + i) / used);
    }
    return LMQ_OK;
}
