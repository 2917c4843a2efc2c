/*
 * tok_hf_tables.h - the vocabulary and the merges of a tokenizer.json, and the
 * vocabulary of a tekken.json.
 *
 * They are nearly all of a file of megabytes, and as a tree of JSON each entry
 * takes several allocations. Tables as they usually are, {"text": id, ...} and
 * ["a b", ...] or [["a", "b"], ...], or [{"rank": id, "token_bytes": "text",
 * "token_str": anything}, ...], are read here without a tree. Nothing is
 * decided: what looks otherwise in any way is left to who reads all of it.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_READ_TOK_HF_TABLES_H
#define LMQ_RUNTIME_TOKENIZER_READ_TOK_HF_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/blob.h"
#include "runtime/tokenizer/text/chars.h"

/* Texts point into the file, or into `texts` where it has escapes. */
struct lmq_hf_entry {
    struct lmq_chars text; /* of a merge: all of it, or its left side */
    struct lmq_chars right; /* of a merge in brackets; p NULL: there is none */
    uint64_t id;           /* of a piece */
};

struct lmq_hf_table {
    struct lmq_hf_entry *entries;
    size_t n, capacity;
};

struct lmq_hf_tables {
    struct lmq_hf_table pieces, merges;
    unsigned char *texts;
    size_t n_texts;
    struct lmq_blob rest; /* the file with null in place of them; owned */
};

/* False if that cannot be had; then there is nothing to free. Names stand once
 * in what is taken out; the caller parses the rest. */
bool lmq_hf_tables_read(const struct lmq_blob *blob,
                        struct lmq_hf_tables *tables);
/* The same of a tekken.json, which has pieces alone. */
bool lmq_tekken_table_read(const struct lmq_blob *blob,
                           struct lmq_hf_tables *tables);
void lmq_hf_tables_free(struct lmq_hf_tables *tables);

#endif
