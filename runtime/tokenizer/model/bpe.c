/*
 * bpe.c - merges neighbouring symbols, the best pair first.
 *
 * One algorithm for both orders: by the rank of the pair (Hugging Face, GGUF
 * "gpt2") and by the score of the result (SentencePiece, llama2.c, tiktoken).
 * Symbols are a linked list over the text and candidates a heap, so a text of
 * n symbols takes n log n steps however long its words are.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/model/tok_model.h"

/* ---- The table of merges ---- */

static size_t
find_merge_slot(const struct lmq_tok_model *model, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) *
                    UINT64_C(0x9e3779b97f4a7c15);
    size_t mask = model->n_table - 1;
    size_t at = (size_t)(hash >> 32) & mask;

    while (model->table[at].left >= 0 &&
           (model->table[at].left != left || model->table[at].right != right))
        at = (at + 1) & mask;
    return at;
}

enum lmq_status
lmq_merges_begin(struct lmq_tok_model *model, size_t n, struct lmq_error *err)
{
    size_t n_table = 16;

    if (n > 2 * (size_t)LMQ_VOCAB_MAX_PIECES)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0, "%zu merges are too many",
                        n);
    while (n_table < 2 * n)
        n_table *= 2;
    model->table = malloc(n_table * sizeof(model->table[0]));
    if (model->table == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n_table; i++)
        model->table[i].left = -1;
    model->n_table = n_table;
    model->has_table = true;
    return LMQ_OK;
}

static enum lmq_status
no_such_piece(struct lmq_chars text, size_t merge, struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                    "merge %zu needs the token '%.*s', which is not in the "
                    "vocabulary",
                    merge, (int)lmq_size_min(text.n, 100),
                    (const char *)text.p);
}

enum lmq_status
lmq_merges_add(struct lmq_tok_model *model, const struct lmq_vocab *vocab,
               struct lmq_chars left, struct lmq_chars right,
               struct lmq_error *err)
{
    unsigned char joined[LMQ_VOCAB_MAX_PIECE_SIZE];
    int32_t left_id = lmq_vocab_find(vocab, left.p, left.n);
    int32_t right_id = lmq_vocab_find(vocab, right.p, right.n);

    if (left_id < 0)
        return no_such_piece(left, model->n_merges, err);
    if (right_id < 0)
        return no_such_piece(right, model->n_merges, err);
    int32_t merged = -1;
    if (left.n <= sizeof(joined) && right.n <= sizeof(joined) - left.n) {
        memcpy(joined, left.p, left.n);
        memcpy(joined + left.n, right.p, right.n);
        merged = lmq_vocab_find(vocab, joined, left.n + right.n);
    }
    if (merged < 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "merge %zu makes a token that is not in the "
                        "vocabulary", model->n_merges);
    struct lmq_merge *slot =
        &model->table[find_merge_slot(model, left_id, right_id)];
    if (slot->left < 0 || model->keeps_last_rank)
        *slot = (struct lmq_merge){ left_id, right_id, merged,
                                    (uint32_t)model->n_merges };
    model->n_merges++;
    return LMQ_OK;
}

/* ---- The heap of candidates ---- */

static int
heap_push(struct lmq_tok_scratch *s, struct lmq_candidate candidate)
{
    if (lmq_mem_grow(&s->heap, &s->heap_capacity, s->n_heap + 1,
                     sizeof(s->heap[0])) != 0)
        return -1;
    size_t at = s->n_heap++;
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (s->heap[parent].key <= candidate.key)
            break;
        s->heap[at] = s->heap[parent];
        at = parent;
    }
    s->heap[at] = candidate;
    return 0;
}

static struct lmq_candidate
heap_pop(struct lmq_tok_scratch *s)
{
    struct lmq_candidate top = s->heap[0];
    struct lmq_candidate last = s->heap[--s->n_heap];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap &&
            s->heap[child + 1].key < s->heap[child].key)
            child++;
        if (s->heap[child].key >= last.key)
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* ---- Merging ---- */

struct bpe {
    const struct lmq_tok_model *model;
    const struct lmq_vocab *vocab;
    const unsigned char *text;
    struct lmq_tok_scratch *s;
};

/* What left and right make together, -1 for nothing. */
static int32_t
find_merge(const struct bpe *bpe, const struct lmq_symbol *left,
           const struct lmq_symbol *right, uint32_t *order)
{
    if (bpe->model->has_table) {
        if (left->id < 0 || right->id < 0)
            return -1;
        const struct lmq_merge *merge =
            &bpe->model
                 ->table[find_merge_slot(bpe->model, left->id, right->id)];
        *order = merge->order;
        return merge->left < 0 ? -1 : merge->merged;
    }
    int32_t id = lmq_vocab_find(bpe->vocab, bpe->text + left->start,
                                (size_t)left->size + right->size);
    if (id >= 0)
        *order = bpe->vocab->orders[id];
    return id;
}

static int
push_pair(struct bpe *bpe, int32_t left, int32_t right)
{
    struct lmq_tok_scratch *s = bpe->s;
    uint32_t order;

    if (left < 0 || right < 0)
        return 0;
    int32_t merged =
        find_merge(bpe, &s->symbols[left], &s->symbols[right], &order);
    if (merged < 0)
        return 0;
    return heap_push(s, (struct lmq_candidate){
                            (uint64_t)order << 32 | (uint32_t)left,
                            (uint32_t)right,
                            s->symbols[left].size + s->symbols[right].size,
                            merged });
}

/* What the vocabulary lacks. */
static bool
is_dropped(const struct bpe *bpe, struct lmq_chars text)
{
    return bpe->model->drops_unknown &&
           !(bpe->model->falls_back_to_bytes &&
             lmq_vocab_has_bytes(bpe->vocab, text));
}

static int
split_into_symbols(struct bpe *bpe, size_t n)
{
    struct lmq_tok_scratch *s = bpe->s;

    s->n_symbols = 0;
    for (size_t at = 0; at < n;) {
        size_t size = 1;
        if (!bpe->model->starts_from_bytes) {
            size = lmq_utf8_length(bpe->text + at, n - at);
            if (size == 0)
                size = 1;
        }
        int32_t id = lmq_vocab_find(bpe->vocab, bpe->text + at, size);
        if (id >= 0 || !is_dropped(bpe, lmq_chars(bpe->text + at, size))) {
            if (lmq_mem_grow(&s->symbols, &s->symbols_capacity,
                             s->n_symbols + 1, sizeof(s->symbols[0])) != 0)
                return -1;
            int32_t i = (int32_t)s->n_symbols++;
            s->symbols[i] = (struct lmq_symbol){
                (uint32_t)at, (uint32_t)size, i - 1, i + 1, id
            };
        }
        at += size;
    }
    if (s->n_symbols > 0)
        s->symbols[s->n_symbols - 1].next = -1;
    return 0;
}

/* An unused piece may be built on the way to a larger one; if it is left in
 * the end it is taken apart again, so what it was made from is noted. */
static int
note_split(struct lmq_tok_scratch *s, const struct lmq_symbol *left,
           const struct lmq_symbol *right)
{
    if (lmq_mem_grow(&s->notes, &s->notes_capacity, s->n_notes + 1,
                     sizeof(s->notes[0])) != 0)
        return -1;
    s->notes[s->n_notes++] = (struct lmq_split_note){
        left->start, left->size + right->size, left->size
    };
    return 0;
}

static int
merge_all(struct bpe *bpe)
{
    struct lmq_tok_scratch *s = bpe->s;

    s->n_heap = 0;
    s->n_notes = 0;
    for (int32_t i = 0; i + 1 < (int32_t)s->n_symbols; i++)
        if (push_pair(bpe, i, i + 1) != 0)
            return -1;
    while (s->n_heap > 0) {
        struct lmq_candidate top = heap_pop(s);
        int32_t at = (int32_t)(uint32_t)top.key;
        struct lmq_symbol *left = &s->symbols[at];
        struct lmq_symbol *right = &s->symbols[top.right];
        /* Symbols only grow or vanish: with the same sizes they are the same
         * two that were neighbours when the candidate was pushed. */
        if (left->size == 0 || right->size == 0 ||
            left->size + right->size != top.size)
            continue;
        left->id = top.merged;
        if (bpe->model->has_unused &&
            lmq_vocab_type(bpe->vocab, left->id) == LMQ_PIECE_UNUSED &&
            note_split(s, left, right) != 0)
            return -1;
        left->size += right->size;
        right->size = 0;
        left->next = right->next;
        if (right->next >= 0)
            s->symbols[right->next].previous = at;
        if (push_pair(bpe, left->previous, at) != 0 ||
            push_pair(bpe, at, left->next) != 0)
            return -1;
    }
    return 0;
}

/* ---- Output ---- */

static int
compare_notes(const void *a, const void *b)
{
    const struct lmq_split_note *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* The depth is bounded by the length of a piece. */
static enum lmq_status
emit(struct bpe *bpe, uint32_t start, uint32_t size, int32_t id,
     bool *was_unknown, struct lmq_ids *ids, struct lmq_error *err)
{
    struct lmq_tok_scratch *s = bpe->s;
    struct lmq_split_note wanted = { start, size, 0 };
    const struct lmq_split_note *note = NULL;

    if (id >= 0 && s->n_notes > 0 &&
        lmq_vocab_type(bpe->vocab, id) == LMQ_PIECE_UNUSED)
        note = bsearch(&wanted, s->notes, s->n_notes, sizeof(wanted),
                       compare_notes);
    if (note != NULL) {
        uint32_t left = note->left_size;
        const unsigned char *p = bpe->text + start;
        enum lmq_status status =
            emit(bpe, start, left, lmq_vocab_find(bpe->vocab, p, left),
                 was_unknown, ids, err);
        if (status != LMQ_OK)
            return status;
        return emit(bpe, start + left, size - left,
                    lmq_vocab_find(bpe->vocab, p + left, size - left),
                    was_unknown, ids, err);
    }
    if (id < 0)
        return lmq_tok_model_unknown(bpe->model, bpe->vocab,
                                 lmq_chars(bpe->text + start, size),
                                 was_unknown, ids, err);
    *was_unknown = false;
    return lmq_ids_append(ids, id) == 0 ? LMQ_OK : lmq_fail_nomem(err);
}

enum lmq_status
lmq_bpe_encode(const struct lmq_tok_model *model, const struct lmq_vocab *vocab,
               struct lmq_chars text, struct lmq_tok_scratch *scratch,
               struct lmq_ids *ids, struct lmq_error *err)
{
    struct bpe bpe = { model, vocab, text.p, scratch };
    bool was_unknown = false;
    enum lmq_status status = LMQ_OK;

    if (text.n == 0)
        return LMQ_OK;
    if (model->prefers_whole) {
        int byte = lmq_byte_piece(text);
        int32_t id = byte >= 0 ? vocab->byte_ids[byte] : -1;
        if (id < 0)
            id = lmq_vocab_find(vocab, text.p, text.n);
        if (id >= 0)
            return lmq_ids_append(ids, id) == 0 ? LMQ_OK
                                                : lmq_fail_nomem(err);
    }
    if (split_into_symbols(&bpe, text.n) != 0 || merge_all(&bpe) != 0)
        return lmq_fail_nomem(err);
    if (scratch->n_notes > 0)
        qsort(scratch->notes, scratch->n_notes, sizeof(scratch->notes[0]),
              compare_notes);
    for (int32_t i = scratch->n_symbols > 0 ? 0 : -1;
         i >= 0 && status == LMQ_OK; i = scratch->symbols[i].next)
        status = emit(&bpe, scratch->symbols[i].start,
                      scratch->symbols[i].size, scratch->symbols[i].id,
                      &was_unknown, ids, err);
    return status;
}
