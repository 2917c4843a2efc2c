/*
 * unigram.c - the segmentation with the best sum of scores (Viterbi).
 *
 * Walks the text character by character and keeps for each position the best
 * way to reach it, as SentencePiece's optimized encoder does, which keeps
 * floats; Hugging Face's keeps doubles. Where sums tie, that decides.
 */
#include "config.h"

#include <float.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/model/tok_model.h"

/* SentencePiece's kUnkPenalty. */
#define UNKNOWN_PENALTY 10.0

/* SentencePiece's score of a user piece is so much for each byte but one. In
 * 0.2.1 it was -0.1, whatever the length. */
#define USER_BONUS 0.1

static double
rounded(const struct lmq_tok_model *model, double sum)
{
    return model->is_sentencepiece ? (double)(float)sum : sum;
}

enum lmq_status
lmq_unigram_build(struct lmq_tok_model *model, const struct lmq_vocab *vocab,
                  struct lmq_error *err)
{
    double lowest = DBL_MAX;

    for (size_t id = 0; id < vocab->n; id++) {
        const struct lmq_piece *piece = &vocab->pieces[id];
        bool counts = piece->type == LMQ_PIECE_NORMAL ||
                      !model->is_sentencepiece;
        if (counts && piece->score < lowest)
            lowest = piece->score;
        if (piece->is_matched && piece->type != LMQ_PIECE_UNUSED &&
            lmq_trie_add(&model->trie, lmq_vocab_text(vocab, (int32_t)id),
                         (int32_t)id) != 0)
            return lmq_fail_nomem(err);
    }
    model->unknown_score = rounded(
        model, (lowest == DBL_MAX ? 0 : lowest) - UNKNOWN_PENALTY);
    lmq_trie_build(&model->trie);
    return LMQ_OK;
}

static void
offer(const struct lmq_tok_model *model, struct lmq_best_end *end,
      double score, int32_t id, uint32_t start)
{
    score = rounded(model, score);
    if (end->start == UINT32_MAX || score > end->score)
        *end = (struct lmq_best_end){ score, id, start };
}

static double
piece_score(const struct lmq_tok_model *model, const struct lmq_vocab *vocab,
            int32_t id, size_t n)
{
    if (model->is_sentencepiece &&
        lmq_vocab_type(vocab, id) == LMQ_PIECE_USER)
        return (double)(float)(USER_BONUS * (double)(n - 1));
    return vocab->pieces[id].score;
}

static void
find_best_ends(const struct lmq_tok_model *model, const struct lmq_vocab *vocab,
               struct lmq_chars text, struct lmq_best_end *ends)
{
    for (size_t at = 0; at < text.n;) {
        size_t size = lmq_utf8_length(text.p + at, text.n - at);
        double score = ends[at].score;
        bool has_single = false;
        struct lmq_trie_walk walk = lmq_trie_begin(&model->trie);

        if (size == 0)
            size = 1;
        while (walk.depth < text.n - at &&
               lmq_trie_step(&model->trie, &walk, text.p[at + walk.depth])) {
            int32_t id = lmq_trie_id(&model->trie, &walk);
            if (id < 0)
                continue;
            offer(model, &ends[at + walk.depth],
                  score + piece_score(model, vocab, id, walk.depth), id,
                  (uint32_t)at);
            has_single |= walk.depth == size;
        }
        if (!has_single)
            offer(model, &ends[at + size], score + model->unknown_score, -1,
                  (uint32_t)at);
        at += size;
    }
}

/* Turns the links from each end to its start around: afterwards ends[i].start
 * is where the piece that begins at i ends, and ends[i].id is its id. */
static void
reverse_path(struct lmq_best_end *ends, size_t n)
{
    uint32_t stop = (uint32_t)n;
    struct lmq_best_end end = ends[n];

    while (stop > 0) {
        uint32_t start = end.start;
        struct lmq_best_end before = ends[start];
        ends[start].start = stop;
        ends[start].id = end.id;
        stop = start;
        end = before;
    }
}

enum lmq_status
lmq_unigram_encode(const struct lmq_tok_model *model,
                   const struct lmq_vocab *vocab, struct lmq_chars text,
                   struct lmq_tok_scratch *scratch, struct lmq_ids *ids,
                   struct lmq_error *err)
{
    bool was_unknown = false;
    enum lmq_status status = LMQ_OK;

    if (text.n == 0)
        return LMQ_OK;
    if (lmq_mem_grow(&scratch->ends, &scratch->ends_capacity, text.n + 1,
                     sizeof(scratch->ends[0])) != 0)
        return lmq_fail_nomem(err);
    struct lmq_best_end *ends = scratch->ends;
    for (size_t i = 0; i <= text.n; i++)
        ends[i] = (struct lmq_best_end){ 0, -1, UINT32_MAX };
    find_best_ends(model, vocab, text, ends);
    reverse_path(ends, text.n);
    for (size_t at = 0; at < text.n && status == LMQ_OK;) {
        size_t stop = ends[at].start;
        if (ends[at].id < 0) {
            status = lmq_tok_model_unknown(model, vocab,
                                       lmq_chars(text.p + at, stop - at),
                                       &was_unknown, ids, err);
        } else {
            was_unknown = false;
            if (lmq_ids_append(ids, ends[at].id) != 0)
                status = lmq_fail_nomem(err);
        }
        at = stop;
    }
    return status;
}
