/*
 * trie.c - which of many texts begin here?
 */
#include "config.h"

#include "runtime/tokenizer/text/trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"

int
lmq_trie_add(struct lmq_trie *trie, struct lmq_chars text, int32_t id)
{
    if (text.n == 0)
        return 0;
    if (lmq_mem_grow(&trie->entries, &trie->capacity, trie->n + 1,
                     sizeof(trie->entries[0])) != 0)
        return -1;
    trie->entries[trie->n++] = (struct lmq_trie_entry){ text, id };
    return 0;
}

/* A prefix sorts before what it is a prefix of; of equal texts the smaller id
 * comes first and is the one that is found. */
static int
compare_entries(const void *a, const void *b)
{
    const struct lmq_trie_entry *x = a, *y = b;
    int order = memcmp(x->text.p, y->text.p,
                       lmq_size_min(x->text.n, y->text.n));

    if (order != 0)
        return order;
    if (x->text.n != y->text.n)
        return x->text.n < y->text.n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void
lmq_trie_build(struct lmq_trie *trie)
{
    size_t at = 0;

    if (trie->n > 0)
        qsort(trie->entries, trie->n, sizeof(trie->entries[0]),
              compare_entries);
    for (size_t byte = 0; byte < 256; byte++) {
        trie->firsts[byte] = at;
        while (at < trie->n && trie->entries[at].text.p[0] == byte)
            at++;
    }
    trie->firsts[256] = at;
}

void
lmq_trie_free(struct lmq_trie *trie)
{
    free(trie->entries);
    memset(trie, 0, sizeof(*trie));
}

/* The first entry in low..high whose byte at `depth` is at least `byte`; all
 * of them are longer than depth. */
static size_t
lower_bound(const struct lmq_trie *trie, size_t low, size_t high, size_t depth,
            unsigned byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trie->entries[middle].text.p[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool
lmq_trie_step(const struct lmq_trie *trie, struct lmq_trie_walk *walk,
              unsigned char byte)
{
    if (walk->depth == 0) {
        walk->low = trie->firsts[byte];
        walk->high = trie->firsts[byte + 1];
    } else {
        while (walk->low < walk->high &&
               trie->entries[walk->low].text.n == walk->depth)
            walk->low++;
        walk->low = lower_bound(trie, walk->low, walk->high, walk->depth,
                                byte);
        walk->high = lower_bound(trie, walk->low, walk->high, walk->depth,
                                 byte + 1u);
    }
    walk->depth++;
    return walk->low < walk->high;
}

int32_t
lmq_trie_id(const struct lmq_trie *trie, const struct lmq_trie_walk *walk)
{
    const struct lmq_trie_entry *entry = &trie->entries[walk->low];

    return entry->text.n == walk->depth ? entry->id : -1;
}

size_t
lmq_trie_longest(const struct lmq_trie *trie, const unsigned char *p, size_t n,
                 int32_t *id)
{
    struct lmq_trie_walk walk = lmq_trie_begin(trie);
    size_t longest = 0;

    while (walk.depth < n && lmq_trie_step(trie, &walk, p[walk.depth])) {
        int32_t found = lmq_trie_id(trie, &walk);
        if (found >= 0) {
            longest = walk.depth;
            *id = found;
        }
    }
    return longest;
}
