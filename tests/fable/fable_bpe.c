/*
 * fable_bpe.c - encodes and decodes text with a tokenizer.bin of llama2.c.
 *
 * The merge with the best score wins, the leftmost of equal ones; whatever has
 * no piece becomes bytes. Which two pieces join to which is looked up in a
 * table made once.
 */
#include "fable_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTE 3
#define FIRST_PIECE (FIRST_BYTE + 256)
#define NONE UINT16_MAX

struct fable_bpe {
    char text[FABLE_VOCAB][FABLE_PIECE_MAX];
    uint16_t len[FABLE_VOCAB];
    float score[FABLE_VOCAB];
    uint16_t joined[FABLE_VOCAB][FABLE_VOCAB]; /* NONE: do not merge */
};

/* ---- File ---- */

static uint32_t
get_u32le(FILE *f)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v |= (uint32_t)(getc(f) & 0xff) << (8 * i);
    return v;
}

static uint16_t
find_piece(const struct fable_bpe *bpe, const char *text, size_t len)
{
    for (uint16_t id = FIRST_PIECE; id < FABLE_VOCAB; id++)
        if (bpe->len[id] == len && memcmp(bpe->text[id], text, len) == 0)
            return id;
    return NONE;
}

static void
join_pieces(struct fable_bpe *bpe)
{
    char both[2 * FABLE_PIECE_MAX];

    memset(bpe->joined, 0xff, sizeof(bpe->joined));
    for (size_t l = FIRST_PIECE; l < FABLE_VOCAB; l++) {
        for (size_t r = FIRST_PIECE; r < FABLE_VOCAB; r++) {
            memcpy(both, bpe->text[l], bpe->len[l]);
            memcpy(both + bpe->len[l], bpe->text[r], bpe->len[r]);
            bpe->joined[l][r] = find_piece(
                bpe, both, (size_t)bpe->len[l] + bpe->len[r]);
        }
    }
}

struct fable_bpe *
fable_bpe_open(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    struct fable_bpe *bpe = calloc(1, sizeof(*bpe));
    if (bpe == NULL)
        goto fail;
    get_u32le(f); /* the longest length; we have a bound of our own */
    for (size_t id = 0; id < FABLE_VOCAB; id++) {
        uint32_t bits = get_u32le(f);
        uint32_t len = get_u32le(f);
        if (len >= FABLE_PIECE_MAX)
            goto fail;
        memcpy(&bpe->score[id], &bits, sizeof(bits));
        bpe->len[id] = (uint16_t)len;
        if (fread(bpe->text[id], 1, len, f) != len)
            goto fail;
    }
    fclose(f);
    join_pieces(bpe);
    return bpe;
fail:
    fclose(f);
    fable_bpe_free(bpe);
    return NULL;
}

void
fable_bpe_free(struct fable_bpe *bpe)
{
    free(bpe);
}

/* ---- Encoding ---- */

#define WORD_MAX 512 /* ids; a longer word is cut, for merging is quadratic */

struct output {
    uint16_t *ids;
    size_t n, cap;
};

static size_t
merge(const struct fable_bpe *bpe, uint16_t *ids, size_t n)
{
    for (;;) {
        size_t best = 0;
        uint16_t best_id = NONE;
        for (size_t i = 1; i < n; i++) {
            uint16_t id = bpe->joined[ids[i - 1]][ids[i]];
            if (id != NONE &&
                (best_id == NONE || bpe->score[id] > bpe->score[best_id])) {
                best = i;
                best_id = id;
            }
        }
        if (best_id == NONE)
            return n;
        ids[best - 1] = best_id;
        memmove(&ids[best], &ids[best + 1], (n - best - 1) * sizeof(*ids));
        n--;
    }
}

static size_t
char_length(const char *s, size_t len)
{
    size_t n = 1;
    while (n < len && n < 4 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void
put_word(const struct fable_bpe *bpe, uint16_t *word, size_t n,
         struct output *out)
{
    n = merge(bpe, word, n);
    for (size_t i = 0; i < n; i++, out->n++)
        if (out->n < out->cap)
            out->ids[out->n] = word[i];
}

/* Works word by word: no piece reaches over the beginning of a word. */
size_t
fable_bpe_encode(const struct fable_bpe *bpe, const char *text, size_t len,
                 uint16_t *ids, size_t cap)
{
    struct output out = { ids, 0, cap };
    uint16_t word[WORD_MAX + 4];
    size_t n = 0;

    word[n++] = FABLE_BOS;
    put_word(bpe, word, n, &out);
    n = 0;
    if (len > 0)
        word[n++] = find_piece(bpe, " ", 1);
    for (size_t pos = 0; pos < len;) {
        size_t n_bytes = char_length(text + pos, len - pos);
        uint16_t id = find_piece(bpe, text + pos, n_bytes);
        if (text[pos] == ' ' || n >= WORD_MAX) {
            put_word(bpe, word, n, &out);
            n = 0;
        }
        if (id != NONE)
            word[n++] = id;
        else
            for (size_t i = 0; i < n_bytes; i++)
                word[n++] =
                    (uint16_t)(FIRST_BYTE + (unsigned char)text[pos + i]);
        pos += n_bytes;
    }
    put_word(bpe, word, n, &out);
    return out.n;
}

/* ---- Decoding ---- */

size_t
fable_bpe_decode(const struct fable_bpe *bpe, uint16_t last, uint16_t id,
                 char *out)
{
    if (id < FIRST_BYTE)
        return 0;
    if (id < FIRST_PIECE) {
        out[0] = (char)(id - FIRST_BYTE);
        return 1;
    }
    size_t skip = last == FABLE_BOS && bpe->text[id][0] == ' ';
    memcpy(out, bpe->text[id] + skip, bpe->len[id] - skip);
    return bpe->len[id] - skip;
}

/* ---- Text ---- */

size_t
fable_next_paragraph(const char *text, size_t len, size_t *pos, size_t *start)
{
    size_t at = *pos;

    while (at < len && text[at] == '\n')
        at++;
    *start = at;
    while (at < len && !(text[at] == '\n' &&
                         (at + 1 == len || text[at + 1] == '\n')))
        at++;
    *pos = at;
    return at - *start;
}

char *
fable_read_text(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    char *text = NULL;

    if (f != NULL && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
        rewind(f);
        text = malloc((size_t)size + 1);
    }
    if (text == NULL || fread(text, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "fable: %s: cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    text[size] = '\0';
    *len = (size_t)size;
    return text;
}
