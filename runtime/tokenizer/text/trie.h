/*
 * trie.h - which of many texts begin here?
 *
 * A sorted array instead of nodes: one step narrows the range of texts that
 * begin with the bytes seen so far.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_TRIE_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_TRIE_H

#include "runtime/tokenizer/text/chars.h"

struct lmq_trie_entry {
    struct lmq_chars text; /* borrowed */
    int32_t id;
};

struct lmq_trie {
    struct lmq_trie_entry *entries; /* (n), sorted once built */
    size_t n, capacity;
    size_t firsts[257]; /* entries that begin with b: firsts[b]..firsts[b+1] */
};

struct lmq_trie_walk {
    size_t low, high, depth;
};

/* 0, or -1 without memory. Empty texts are not found. */
int lmq_trie_add(struct lmq_trie *trie, struct lmq_chars text, int32_t id);
void lmq_trie_build(struct lmq_trie *trie);
void lmq_trie_free(struct lmq_trie *trie);

static inline struct lmq_trie_walk
lmq_trie_begin(const struct lmq_trie *trie)
{
    return (struct lmq_trie_walk){ 0, trie->n, 0 };
}

/* One byte further; false when no text goes on like that. */
bool lmq_trie_step(const struct lmq_trie *trie, struct lmq_trie_walk *walk,
                   unsigned char byte);

/* The id of the text that ends here, -1 without. */
int32_t lmq_trie_id(const struct lmq_trie *trie,
                    const struct lmq_trie_walk *walk);

/* Bytes of the longest text at p, 0 without. */
size_t lmq_trie_longest(const struct lmq_trie *trie, const unsigned char *p,
                        size_t n, int32_t *id);

#endif
