/*
 * fable_tokens.c - trains a byte-pair tokenizer as Llama's SentencePiece one.
 *
 *     fable_tokens TEXT FOLDER
 *
 * Writes FOLDER/tokenizer.bin (llama2.c), tokenizer.json (Hugging Face) and
 * tokenizer_config.json. Ids: <unk>, <s>, </s>, 256 bytes, then the merged
 * pieces in the order of their merges, then the single characters.
 *
 * A space belongs to the word behind it and stands only at the beginning of a
 * piece; a piece is all letters or all punctuation; a newline is in none. All
 * ASCII of the text has a piece of its own, other characters if they are not
 * rarer than one in CHAR_SHARE: the rest is left to the byte tokens.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fable_vocab.h"

#define N_PIECES FABLE_N_PIECES
#define CHAR_SHARE 5000
#define PIECE_MAX FABLE_TEXT_MAX
#define WORD_MAX 48
#define N_WORDS (1 << 16) /* of the hash table */
#define N_CODES 0x110000

struct piece {
    char text[PIECE_MAX];
};

/* A run of characters no merge leaves, and its pieces so far. */
struct word {
    uint16_t ids[WORD_MAX];
    size_t n_ids;
    uint64_t count;
    uint64_t hash;
};

struct trainer {
    struct piece pieces[N_PIECES]; /* characters first while training */
    int n_chars, n_pieces;
    struct word *words; /* (N_WORDS) */
    uint64_t *pairs;    /* (N_PIECES, N_PIECES) */
    int *char_piece;    /* (N_CODES), -1 for none */
};

static void
die(const char *what, const char *where)
{
    fprintf(stderr, "fable_tokens: %s: %s\n", where, what);
    exit(1);
}

static void *
must_calloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL)
        die("out of memory", "calloc");
    return p;
}

/* ---- Text ---- */

static char *
read_text(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        die("cannot be read", path);
    long size = ftell(f);
    if (size <= 0)
        die("is empty", path);
    rewind(f);
    char *text = must_calloc((size_t)size + 1, 1);
    if (fread(text, 1, (size_t)size, f) != (size_t)size)
        die("cannot be read", path);
    fclose(f);
    *len = (size_t)size;
    return text;
}

/* Length in bytes; the text is our own and valid UTF-8. */
static size_t
utf8_length(const char *s)
{
    unsigned char c = (unsigned char)*s;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

static uint32_t
utf8_code(const char *s)
{
    size_t n = utf8_length(s);
    uint32_t code = (unsigned char)*s;
    if (n > 1)
        code &= 0xffu >> (n + 1);
    for (size_t i = 1; i < n; i++)
        code = (code << 6) | ((unsigned char)s[i] & 0x3fu);
    return code;
}

static void
add_piece(struct trainer *tr, const char *a, size_t a_len, const char *b)
{
    if (tr->n_pieces == N_PIECES)
        die("too many characters", "text");
    if (a_len + strlen(b) >= PIECE_MAX)
        die("piece is too long", a);
    char *text = tr->pieces[tr->n_pieces++].text;
    memcpy(text, a, a_len);
    strcpy(text + a_len, b);
}

static void
collect_chars(struct trainer *tr, const char *text, size_t len)
{
    uint64_t *count = must_calloc(N_CODES, sizeof(*count));
    uint64_t n = 0;

    for (size_t i = 0; i < len; i += utf8_length(text + i), n++)
        count[utf8_code(text + i)]++;
    for (size_t i = 0; i < N_CODES; i++)
        tr->char_piece[i] = -1;
    for (size_t i = 0; i < len; i += utf8_length(text + i)) {
        uint32_t code = utf8_code(text + i);
        int is_kept = code >= 0x80 ? count[code] * CHAR_SHARE >= n
                                   : code >= ' ';
        if (!is_kept || tr->char_piece[code] >= 0)
            continue;
        tr->char_piece[code] = tr->n_pieces;
        add_piece(tr, text + i, utf8_length(text + i), "");
    }
    tr->n_chars = tr->n_pieces;
    free(count);
}

static void
count_word(struct trainer *tr, const struct word *w)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < w->n_ids; i++)
        hash = (hash ^ w->ids[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < N_WORDS; i++) {
        struct word *at = &tr->words[(hash + i) % N_WORDS];
        if (at->count == 0) {
            *at = *w;
            at->hash = hash;
        } else if (at->hash != hash || at->n_ids != w->n_ids ||
                   memcmp(at->ids, w->ids, w->n_ids * sizeof(*w->ids)) != 0) {
            continue;
        }
        at->count++;
        return;
    }
    die("too many words", "text");
}

static int
is_letter(uint32_t code)
{
    return code >= 0x80 || (code >= 'a' && code <= 'z') ||
           (code >= 'A' && code <= 'Z');
}

static void
collect_words(struct trainer *tr, const char *text, size_t len)
{
    struct word w = { { 0 }, 0, 0, 0 };
    uint32_t last = '\n';

    for (size_t i = 0; i < len; i += utf8_length(text + i)) {
        uint32_t code = utf8_code(text + i);
        int id = tr->char_piece[code];
        int is_cut = id < 0 || code == ' ' ||
                     (last != ' ' && is_letter(code) != is_letter(last));
        /* The encoder puts a space before a text: so does the trainer. */
        int is_start = i == 0 || (last == '\n' && text[i - 1] == '\n' &&
                                  i > 1 && text[i - 2] == '\n');
        if ((is_cut || w.n_ids == WORD_MAX) && w.n_ids > 0) {
            count_word(tr, &w);
            w.n_ids = 0;
        }
        if (is_start && code != ' ' && tr->char_piece[' '] >= 0)
            w.ids[w.n_ids++] = (uint16_t)tr->char_piece[' '];
        if (id >= 0)
            w.ids[w.n_ids++] = (uint16_t)id;
        last = code;
    }
    if (w.n_ids > 0)
        count_word(tr, &w);
}

/* ---- Merging ---- */

static uint64_t
best_pair(struct trainer *tr, int *left, int *right)
{
    uint64_t best = 0;

    memset(tr->pairs, 0, sizeof(*tr->pairs) * N_PIECES * N_PIECES);
    for (size_t i = 0; i < N_WORDS; i++) {
        const struct word *w = &tr->words[i];
        for (size_t j = 1; j < w->n_ids; j++)
            tr->pairs[w->ids[j - 1] * N_PIECES + w->ids[j]] += w->count;
    }
    for (int l = 0; l < tr->n_pieces; l++) {
        for (int r = 0; r < tr->n_pieces; r++) {
            if (tr->pairs[l * N_PIECES + r] > best) {
                best = tr->pairs[l * N_PIECES + r];
                *left = l;
                *right = r;
            }
        }
    }
    return best;
}

/*
 * Joins neighbours that spell the new piece, whichever way they are cut: the
 * encoder looks at the joined text, too, not at the pair.
 */
static void
apply_merge(struct trainer *tr, int id)
{
    const char *whole = tr->pieces[id].text;

    for (size_t i = 0; i < N_WORDS; i++) {
        struct word *w = &tr->words[i];
        size_t n = 0;
        for (size_t j = 0; j < w->n_ids; j++) {
            w->ids[n] = w->ids[j];
            if (j + 1 < w->n_ids) {
                const char *a = tr->pieces[w->ids[j]].text;
                const char *b = tr->pieces[w->ids[j + 1]].text;
                size_t len = strlen(a);
                if (strncmp(whole, a, len) == 0 &&
                    strcmp(whole + len, b) == 0) {
                    w->ids[n] = (uint16_t)id;
                    j++;
                }
            }
            n++;
        }
        w->n_ids = n;
    }
}

static void
train(struct trainer *tr)
{
    int left = 0, right = 0;

    while (tr->n_pieces < N_PIECES) {
        if (best_pair(tr, &left, &right) == 0)
            die("too little text for this vocabulary", "text");
        const char *a = tr->pieces[left].text;
        add_piece(tr, a, strlen(a), tr->pieces[right].text);
        apply_merge(tr, tr->n_pieces - 1);
    }
}

/* Turns characters and merges round. */
static void
to_vocab(const struct trainer *tr, struct fable_vocab *vocab)
{
    for (int i = 0; i < N_PIECES; i++)
        strcpy(vocab->text[i], tr->pieces[(i + tr->n_chars) % N_PIECES].text);
    vocab->n_merged = N_PIECES - tr->n_chars;
}

int
main(int argc, char **argv)
{
    static struct trainer tr;
    static struct fable_vocab vocab;
    size_t len;

    if (argc != 3) {
        fprintf(stderr, "usage: fable_tokens TEXT FOLDER\n");
        return 2;
    }
    char *text = read_text(argv[1], &len);
    tr.words = must_calloc(N_WORDS, sizeof(*tr.words));
    tr.pairs = must_calloc(N_PIECES * N_PIECES, sizeof(*tr.pairs));
    tr.char_piece = must_calloc(N_CODES, sizeof(*tr.char_piece));
    collect_chars(&tr, text, len);
    collect_words(&tr, text, len);
    train(&tr);
    to_vocab(&tr, &vocab);
    fable_vocab_write(&vocab, argv[2]);
    printf("%d characters, %d merges\n", tr.n_chars, vocab.n_merged);
    free(text);
    free(tr.words);
    free(tr.pairs);
    free(tr.char_piece);
    return 0;
}
