/*
 * vocab.c - the pieces of a vocabulary: id to bytes and bytes to id.
 */
#include "config.h"

#include "runtime/tokenizer/model/vocab.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

/* Ids may have holes, but a small file must not make a large table. */
#define MAX_HOLES 1024

void
lmq_vocab_init(struct lmq_vocab *vocab)
{
    memset(vocab, 0, sizeof(*vocab));
    vocab->unknown = -1;
    for (int i = 0; i < 256; i++)
        vocab->byte_ids[i] = -1;
}

void
lmq_vocab_free(struct lmq_vocab *vocab)
{
    lmq_buffer_free(&vocab->bytes);
    free(vocab->pieces);
    free(vocab->slots);
    free(vocab->orders);
    memset(vocab, 0, sizeof(*vocab));
}

/* ---- Pieces ---- */

static int
hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int
lmq_byte_piece(struct lmq_chars text)
{
    if (text.n != 6 || memcmp(text.p, "<0x", 3) != 0 || text.p[5] != '>')
        return -1;
    int high = hex_digit(text.p[3]), low = hex_digit(text.p[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static enum lmq_status
make_room(struct lmq_vocab *vocab, uint64_t id, struct lmq_error *err)
{
    if (id >= LMQ_VOCAB_MAX_PIECES)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "token id %" PRIu64 " is out of range, the limit is %d",
                        id, LMQ_VOCAB_MAX_PIECES);
    if (id < vocab->n)
        return LMQ_OK;
    size_t n = (size_t)id + 1;
    if (lmq_mem_grow(&vocab->pieces, &vocab->capacity, n,
                     sizeof(vocab->pieces[0])) != 0)
        return lmq_fail_nomem(err);
    memset(vocab->pieces + vocab->n, 0,
           (n - vocab->n) * sizeof(vocab->pieces[0]));
    vocab->n = n;
    return LMQ_OK;
}

static enum lmq_status
note_special_types(struct lmq_vocab *vocab, int32_t id, struct lmq_chars text,
                   enum lmq_piece_type type, struct lmq_error *err)
{
    if (type == LMQ_PIECE_UNKNOWN && vocab->unknown < 0)
        vocab->unknown = id;
    if (type == LMQ_PIECE_BYTE) {
        int byte = lmq_byte_piece(text);
        if (byte < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "token %" PRId32 " is a byte, but its text is not "
                            "like <0x41>", id);
        if (vocab->byte_ids[byte] >= 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tokens %" PRId32 " and %" PRId32
                            " are the same byte",
                            vocab->byte_ids[byte], id);
        vocab->byte_ids[byte] = id;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_vocab_reserve(struct lmq_vocab *vocab, size_t n, size_t n_bytes,
                  struct lmq_error *err)
{
    if (lmq_mem_reserve(&vocab->pieces, &vocab->capacity, n,
                        sizeof(vocab->pieces[0])) != 0 ||
        lmq_mem_reserve(&vocab->bytes.bytes, &vocab->bytes.capacity, n_bytes,
                        1) != 0)
        return lmq_fail_nomem(err);
    return LMQ_OK;
}

static enum lmq_status
check_size(uint64_t id, struct lmq_chars text, struct lmq_error *err)
{
    if (text.n > LMQ_VOCAB_MAX_PIECE_SIZE)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "token %" PRIu64 " is %zu bytes, the limit is %d", id,
                        text.n, LMQ_VOCAB_MAX_PIECE_SIZE);
    return LMQ_OK;
}

static enum lmq_status
put_text(struct lmq_vocab *vocab, struct lmq_piece *piece,
         struct lmq_chars text, struct lmq_error *err)
{
    if (vocab->bytes.n > UINT32_MAX - text.n)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the vocabulary's text is larger than 4 GiB");
    piece->start = (uint32_t)vocab->bytes.n;
    piece->size = (uint32_t)text.n;
    return lmq_buffer_append(&vocab->bytes, text.p, text.n) == 0
               ? LMQ_OK
               : lmq_fail_nomem(err);
}

enum lmq_status
lmq_vocab_set(struct lmq_vocab *vocab, uint64_t id, struct lmq_chars text,
              enum lmq_piece_type type, double score, bool is_matched,
              struct lmq_error *err)
{
    enum lmq_status status = check_size(id, text, err);

    if (status != LMQ_OK)
        return status;
    if (!isfinite((float)score))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the score of token %" PRIu64 " is not finite", id);
    status = make_room(vocab, id, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_piece *piece = &vocab->pieces[id];
    if (piece->type != LMQ_PIECE_NONE)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "token id %" PRIu64 " is given twice", id);
    status = note_special_types(vocab, (int32_t)id, text, type, err);
    if (status != LMQ_OK)
        return status;
    piece->score = score;
    piece->type = (unsigned char)type;
    piece->is_matched = is_matched && text.n > 0;
    return put_text(vocab, piece, text, err);
}

enum lmq_status
lmq_vocab_rename(struct lmq_vocab *vocab, int32_t id, struct lmq_chars text,
                 struct lmq_error *err)
{
    struct lmq_piece *piece = &vocab->pieces[id];
    enum lmq_status status = check_size((uint64_t)id, text, err);

    piece->is_matched = false;
    return status == LMQ_OK ? put_text(vocab, piece, text, err) : status;
}

struct lmq_chars
lmq_vocab_text(const struct lmq_vocab *vocab, int32_t id)
{
    const struct lmq_piece *piece = &vocab->pieces[id];

    return lmq_chars(piece->size == 0 ? (const unsigned char *)""
                                      : vocab->bytes.bytes + piece->start,
                     piece->size);
}

enum lmq_piece_type
lmq_vocab_type(const struct lmq_vocab *vocab, int32_t id)
{
    return (enum lmq_piece_type)vocab->pieces[id].type;
}

/* ---- From bytes to id ---- */

static uint64_t
hash_bytes(const unsigned char *p, size_t n)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ n;

    while (n >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
        p += 8;
        n -= 8;
    }
    uint64_t rest = 0;
    for (size_t i = 0; i < n; i++)
        rest = rest << 8 | p[i];
    hash = (hash ^ rest) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* The slot that holds these bytes, or the free one where they belong. Pieces
 * are looked at only if the hash is the same: they are far away. */
static struct lmq_vocab_slot *
find_slot(const struct lmq_vocab *vocab, uint64_t hash, const unsigned char *p,
          size_t n)
{
    size_t mask = vocab->n_slots - 1;
    uint32_t upper = (uint32_t)(hash >> 32);

    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        struct lmq_vocab_slot *slot = &vocab->slots[at];
        if (slot->id == 0)
            return slot;
        if (slot->hash != upper)
            continue;
        const struct lmq_piece *piece = &vocab->pieces[slot->id - 1];
        if (piece->size == n &&
            memcmp(vocab->bytes.bytes + piece->start, p, n) == 0)
            return slot;
    }
}

/* Larger scores get smaller numbers, equal scores equal ones. */
static uint32_t
score_order(float score)
{
    uint32_t bits = lmq_f32_bits(score + 0.0f); /* -0 is 0 */

    return (bits & 0x80000000u) != 0 ? bits : 0x7fffffffu - bits;
}

/* An added token may repeat the text of a normal one, which then is the one
 * that the model finds. False if two normal pieces are the same. */
static bool
index_piece(struct lmq_vocab *vocab, uint32_t id, uint64_t hash)
{
    struct lmq_piece *piece = &vocab->pieces[id];
    const unsigned char *p = vocab->bytes.bytes + piece->start;
    struct lmq_vocab_slot *slot = find_slot(vocab, hash, p, piece->size);

    if (slot->id != 0) {
        struct lmq_piece *other = &vocab->pieces[slot->id - 1];
        if (piece->type != LMQ_PIECE_NORMAL) {
            piece->is_matched = false;
            return true;
        }
        if (other->type == LMQ_PIECE_NORMAL)
            return false;
        other->is_matched = false;
    }
    *slot = (struct lmq_vocab_slot){(uint32_t)(hash >> 32), id + 1};
    return true;
}

/* Slots lie all over: so many are asked for before the first one is used. */
#define AT_ONCE ((size_t)16)

/* False, and which: see index_piece(). */
static bool
index_some(struct lmq_vocab *vocab, size_t begin, size_t end, size_t *same)
{
    uint64_t hashes[AT_ONCE];

    for (size_t id = begin; id < end; id++) {
        const struct lmq_piece *piece = &vocab->pieces[id];
        if (!piece->is_matched) /* without a byte there may be no memory */
            continue;
        uint64_t hash =
            hash_bytes(vocab->bytes.bytes + piece->start, piece->size);
        __builtin_prefetch(&vocab->slots[hash & (vocab->n_slots - 1)]);
        hashes[id - begin] = hash;
    }
    for (size_t id = begin; id < end; id++) {
        const struct lmq_piece *piece = &vocab->pieces[id];
        vocab->orders[id] = score_order((float)piece->score);
        if (!piece->is_matched)
            continue;
        *same = id;
        if (!index_piece(vocab, (uint32_t)id, hashes[id - begin]))
            return false;
        vocab->longest = lmq_size_max(vocab->longest, piece->size);
    }
    return true;
}

enum lmq_status
lmq_vocab_index(struct lmq_vocab *vocab, struct lmq_error *err)
{
    size_t n_matched = 0, n_set = 0, capacity = 0, same = 0;

    for (size_t id = 0; id < vocab->n; id++) {
        n_matched += vocab->pieces[id].is_matched;
        n_set += vocab->pieces[id].type != LMQ_PIECE_NONE;
    }
    if (vocab->n > 2 * n_set + MAX_HOLES)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%zu tokens have ids up to %zu", n_set, vocab->n - 1);
    vocab->n_slots = 16;
    while (vocab->n_slots < 2 * n_matched)
        vocab->n_slots *= 2;
    free(vocab->slots);
    vocab->slots = NULL;
    free(vocab->orders);
    vocab->orders = calloc(vocab->n + 1, sizeof(vocab->orders[0]));
    if (vocab->orders == NULL ||
        lmq_mem_reserve(&vocab->slots, &capacity, vocab->n_slots,
                        sizeof(vocab->slots[0])) != 0)
        return lmq_fail_nomem(err);
    memset(vocab->slots, 0, vocab->n_slots * sizeof(vocab->slots[0]));
    for (size_t id = 0; id < vocab->n; id += AT_ONCE)
        if (!index_some(vocab, id, lmq_size_min(vocab->n, id + AT_ONCE), &same))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "token %zu has the text of another one", same);
    return LMQ_OK;
}

int32_t
lmq_vocab_find(const struct lmq_vocab *vocab, const unsigned char *p, size_t n)
{
    if (n == 0 || n > vocab->longest)
        return -1;
    return (int32_t)find_slot(vocab, hash_bytes(p, n), p, n)->id - 1;
}

bool
lmq_vocab_has_bytes(const struct lmq_vocab *vocab, struct lmq_chars text)
{
    for (size_t i = 0; i < text.n; i++)
        if (vocab->byte_ids[text.p[i]] < 0)
            return false;
    return true;
}

/* ---- Where words begin ---- */

/* Whether each model makes a token of it: of what is unused not all do. */
static bool
is_used(const struct lmq_vocab *vocab, const unsigned char *p, size_t n)
{
    int32_t id = lmq_vocab_find(vocab, p, n);

    return id >= 0 && lmq_vocab_type(vocab, id) != LMQ_PIECE_UNUSED;
}

/* What stands in the text before a space, but for other spaces. */
static void
add_joints(struct lmq_chars text, struct lmq_chars space, bool is_joint[256])
{
    const unsigned char first = space.p[0];
    bool was_other = false;

    for (size_t at = 0; at < text.n;) {
        if (text.p[at] == first && text.n - at >= space.n &&
            memcmp(text.p + at, space.p, space.n) == 0) {
            if (was_other)
                is_joint[text.p[at - 1]] = true;
            was_other = false;
            at += space.n;
        } else {
            was_other = true;
            at++;
        }
    }
}

bool
lmq_vocab_find_breaks(const struct lmq_vocab *vocab, struct lmq_chars space,
                      bool has_bytes, bool is_joint[256],
                      bool is_alone[128])
{
    const unsigned char first = space.p[0];
    bool is_with_others[256] = {false};

    memset(is_joint, 0, 256 * sizeof(*is_joint));
    if (!is_used(vocab, space.p, space.n))
        return false;
    for (size_t id = 0; id < vocab->n; id++) {
        struct lmq_chars text = lmq_vocab_text(vocab, (int32_t)id);
        size_t n_first = 0;
        if (!vocab->pieces[id].is_matched || text.n == 1)
            continue;
        for (size_t i = 0; i < text.n; i++) {
            is_with_others[text.p[i]] = true;
            n_first += i > 0 && text.p[i] == first;
        }
        if (n_first > 0) /* most begin with their only space */
            add_joints(text, space, is_joint);
    }
    for (unsigned char c = 0; c < 128; c++)
        is_alone[c] =
            !is_with_others[c] && (is_used(vocab, &c, 1) ||
                                   (has_bytes && vocab->byte_ids[c] >= 0));
    return true;
}
