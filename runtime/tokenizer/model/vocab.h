/*
 * vocab.h - the pieces of a vocabulary: id to bytes and bytes to id.
 *
 * A piece is kept as the bytes that the model compares with the normalized
 * text: byte-level vocabularies are unmapped when they are read, SentencePiece
 * pieces keep U+2581 for the space.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_MODEL_VOCAB_H
#define LMQ_RUNTIME_TOKENIZER_MODEL_VOCAB_H

#include "lmquant.h"
#include "runtime/tokenizer/text/chars.h"

/* What is accepted; real vocabularies end at 300 000 pieces of 500 bytes. */
#define LMQ_VOCAB_MAX_PIECES (1 << 22)
#define LMQ_VOCAB_MAX_PIECE_SIZE 1024

/* SentencePiece's and GGUF's numbers. */
enum lmq_piece_type {
    LMQ_PIECE_NONE, /* an id that no piece has */
    LMQ_PIECE_NORMAL,
    LMQ_PIECE_UNKNOWN,
    LMQ_PIECE_CONTROL,
    LMQ_PIECE_USER,
    LMQ_PIECE_UNUSED,
    LMQ_PIECE_BYTE
};

struct lmq_piece {
    uint32_t start, size; /* within lmq_vocab.bytes */
    double score;
    unsigned char type;
    bool is_matched; /* the model may find it in the text */
};

/* Of the hash of matched pieces. */
struct lmq_vocab_slot {
    uint32_t hash; /* its upper half */
    uint32_t id;   /* + 1; 0: it is free */
};

struct lmq_vocab {
    struct lmq_buffer bytes;
    struct lmq_piece *pieces; /* (n) */
    size_t n, capacity;
    size_t longest;        /* bytes of the longest matched piece */
    struct lmq_vocab_slot *slots; /* (n_slots), a power of two */
    size_t n_slots;
    uint32_t *orders;      /* (n) the better the score, the smaller */
    int32_t byte_ids[256]; /* of the byte pieces, -1 without */
    int32_t unknown;       /* id, -1 without */
};

/* Begins an empty one. */
void lmq_vocab_init(struct lmq_vocab *vocab);
void lmq_vocab_free(struct lmq_vocab *vocab);

/* For so many pieces, if they and their bytes are known before the first. */
enum lmq_status lmq_vocab_reserve(struct lmq_vocab *vocab, size_t n,
                                  size_t n_bytes, struct lmq_error *err);

/* Sets a piece that is not set yet; ids may come in any order. Of the type
 * LMQ_PIECE_BYTE the bytes say which: "<0x41>". */
enum lmq_status lmq_vocab_set(struct lmq_vocab *vocab, uint64_t id,
                              struct lmq_chars text, enum lmq_piece_type type,
                              double score, bool is_matched,
                              struct lmq_error *err);

/* Gives a piece that is set another text, by which the model does not find
 * it. */
enum lmq_status lmq_vocab_rename(struct lmq_vocab *vocab, int32_t id,
                                 struct lmq_chars text, struct lmq_error *err);

/* After the last lmq_vocab_set() or _rename(): from here on lmq_vocab_find()
 * works. Two matched normal pieces with the same bytes are refused. */
enum lmq_status lmq_vocab_index(struct lmq_vocab *vocab,
                                struct lmq_error *err);

/* The id of a matched piece, -1 without. */
int32_t lmq_vocab_find(const struct lmq_vocab *vocab, const unsigned char *p,
                       size_t n);

/* Whether there is a byte piece for each of these bytes. */
bool lmq_vocab_has_bytes(const struct lmq_vocab *vocab, struct lmq_chars text);

struct lmq_chars lmq_vocab_text(const struct lmq_vocab *vocab, int32_t id);
enum lmq_piece_type lmq_vocab_type(const struct lmq_vocab *vocab, int32_t id);

/* The byte that "<0x41>" means, -1 for any other text. */
int lmq_byte_piece(struct lmq_chars text);

/* Whether text can be cut before each `space` that follows something else
 * without changing what any order of merging or any best path finds: the space
 * itself must be a piece that is used, and none may span such a place; the
 * bytes behind which one does are its joints. In the same way text can be cut
 * around the ASCII characters that are alone: no matched piece has more than
 * that one character, and it is a piece that is used or, with `has_bytes`, a
 * byte's. */
bool lmq_vocab_find_breaks(const struct lmq_vocab *vocab,
                           struct lmq_chars space, bool has_bytes,
                           bool is_joint[256], bool is_alone[128]);

#endif
