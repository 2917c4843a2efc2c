/*
 * tok_model.h - from one piece of normalized text to token ids.
 *
 * Two models: merging neighbours (BPE) and the best path (unigram). Both are
 * immutable once they are built; what a call needs is in lmq_tok_scratch.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_MODEL_TOK_MODEL_H
#define LMQ_RUNTIME_TOKENIZER_MODEL_TOK_MODEL_H

#include "lmquant.h"
#include "runtime/tokenizer/model/vocab.h"
#include "runtime/tokenizer/text/trie.h"

/* Token ids that grow. Zero it to begin. */
struct lmq_ids {
    int32_t *ids;
    size_t n, capacity;
};

int lmq_ids_append(struct lmq_ids *ids, int32_t id);
/* Frees the array. */
void lmq_ids_clear(struct lmq_ids *ids);

enum lmq_tok_model_kind { LMQ_TOK_BPE, LMQ_TOK_UNIGRAM };

struct lmq_merge {
    int32_t left, right; /* left -1: a free slot */
    int32_t merged;
    uint32_t order;
};

struct lmq_tok_model {
    enum lmq_tok_model_kind kind;

    /* BPE: which neighbours may merge, and which first? With a table the
     * pairs in it, in its order; without, those whose text together is a
     * piece, the best score first. */
    bool has_table;
    struct lmq_merge *table; /* open addressing by (left, right) */
    size_t n_table;          /* a power of two */
    size_t n_merges;
    bool keeps_last_rank; /* of equal merges, else the first */

    bool starts_from_bytes; /* else from UTF-8 characters */
    bool prefers_whole;     /* a text that is a piece is not taken apart */
    bool has_unused;        /* unused pieces are built, then taken apart */

    /* Unigram. */
    struct lmq_trie trie;
    double unknown_score;
    bool is_sentencepiece; /* floats, and users' pieces have another score */

    /* What happens to characters that the vocabulary lacks. */
    bool falls_back_to_bytes;
    bool fuses_unknown;
    bool requires_known; /* an error if there is no unknown token either */
    bool drops_unknown;  /* before anything is merged */
};

struct lmq_symbol {
    uint32_t start, size;
    int32_t previous, next, id;
};

struct lmq_candidate {
    uint64_t key; /* order, then position: the smallest is merged next */
    uint32_t right, size;
    int32_t merged;
};

struct lmq_split_note {
    uint32_t start, size, left_size;
};

struct lmq_best_end {
    double score;
    int32_t id;
    uint32_t start;
};

struct lmq_tok_scratch {
    struct lmq_symbol *symbols;
    size_t n_symbols, symbols_capacity;
    struct lmq_candidate *heap;
    size_t n_heap, heap_capacity;
    struct lmq_split_note *notes;
    size_t n_notes, notes_capacity;
    struct lmq_best_end *ends;
    size_t ends_capacity;
};

void lmq_tok_model_free(struct lmq_tok_model *model);
void lmq_tok_scratch_free(struct lmq_tok_scratch *scratch);

/* ---- BPE ---- */

/* Prepares the table for n merges; then each, best first. Both sides and what
 * they make must be pieces. */
enum lmq_status lmq_merges_begin(struct lmq_tok_model *model, size_t n,
                                 struct lmq_error *err);
enum lmq_status lmq_merges_add(struct lmq_tok_model *model,
                               const struct lmq_vocab *vocab,
                               struct lmq_chars left, struct lmq_chars right,
                               struct lmq_error *err);

enum lmq_status lmq_bpe_encode(const struct lmq_tok_model *model,
                               const struct lmq_vocab *vocab,
                               struct lmq_chars text,
                               struct lmq_tok_scratch *scratch,
                               struct lmq_ids *ids, struct lmq_error *err);

/* ---- Unigram ---- */

/* Builds the trie and the score of what is unknown. */
enum lmq_status lmq_unigram_build(struct lmq_tok_model *model,
                                  const struct lmq_vocab *vocab,
                                  struct lmq_error *err);

enum lmq_status lmq_unigram_encode(const struct lmq_tok_model *model,
                                   const struct lmq_vocab *vocab,
                                   struct lmq_chars text,
                                   struct lmq_tok_scratch *scratch,
                                   struct lmq_ids *ids, struct lmq_error *err);

/* ---- Both ---- */

/* Appends what stands for a character without a piece: its bytes, the unknown
 * token (once for a run of them if they are fused: then *was_unknown says
 * whether the token before was one), or nothing. */
enum lmq_status lmq_tok_model_unknown(const struct lmq_tok_model *model,
                                  const struct lmq_vocab *vocab,
                                  struct lmq_chars text, bool *was_unknown,
                                  struct lmq_ids *ids, struct lmq_error *err);

#endif
