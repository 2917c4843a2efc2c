/*
 * tok_model.c - what the two models share.
 */
#include "config.h"

#include "runtime/tokenizer/model/tok_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

int
lmq_ids_append(struct lmq_ids *ids, int32_t id)
{
    if (lmq_mem_grow(&ids->ids, &ids->capacity, ids->n + 1,
                     sizeof(ids->ids[0])) != 0)
        return -1;
    ids->ids[ids->n++] = id;
    return 0;
}

void
lmq_ids_clear(struct lmq_ids *ids)
{
    free(ids->ids);
    memset(ids, 0, sizeof(*ids));
}

void
lmq_tok_model_free(struct lmq_tok_model *model)
{
    free(model->table);
    lmq_trie_free(&model->trie);
    memset(model, 0, sizeof(*model));
}

void
lmq_tok_scratch_free(struct lmq_tok_scratch *scratch)
{
    free(scratch->symbols);
    free(scratch->heap);
    free(scratch->notes);
    free(scratch->ends);
    memset(scratch, 0, sizeof(*scratch));
}

enum lmq_status
lmq_tok_model_unknown(const struct lmq_tok_model *model,
                  const struct lmq_vocab *vocab, struct lmq_chars text,
                  bool *was_unknown, struct lmq_ids *ids,
                  struct lmq_error *err)
{
    if (model->falls_back_to_bytes && lmq_vocab_has_bytes(vocab, text)) {
        *was_unknown = false;
        for (size_t i = 0; i < text.n; i++)
            if (lmq_ids_append(ids, vocab->byte_ids[text.p[i]]) != 0)
                return lmq_fail_nomem(err);
        return LMQ_OK;
    }
    if (vocab->unknown < 0 && model->requires_known)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the vocabulary has neither '%.*s' nor an unknown "
                        "token",
                        (int)text.n, (const char *)text.p);
    if (vocab->unknown < 0 || (*was_unknown && model->fuses_unknown))
        return LMQ_OK;
    *was_unknown = true;
    return lmq_ids_append(ids, vocab->unknown) == 0 ? LMQ_OK
                                                    : lmq_fail_nomem(err);
}
