/*
 * fable_bpe.h - encodes and decodes text with a tokenizer.bin of llama2.c, as
 * fable_tokens writes it: a space occurs only at the beginning of a piece.
 */
#ifndef FABLE_BPE_H
#define FABLE_BPE_H

#include <stddef.h>
#include <stdint.h>

enum { FABLE_VOCAB = 512, FABLE_BOS = 1, FABLE_EOS = 2 };

struct fable_bpe;

/* NULL if the file cannot be read; free with fable_bpe_free(). */
struct fable_bpe *fable_bpe_open(const char *path);
void fable_bpe_free(struct fable_bpe *bpe);

/*
 * Writes BOS and the ids of the text to ids, at most cap of them, and returns
 * how many there would be. 2 * len + 2 is always enough.
 */
size_t fable_bpe_encode(const struct fable_bpe *bpe, const char *text,
                        size_t len, uint16_t *ids, size_t cap);

/*
 * Writes the bytes of a token behind `last` to out, which holds at least
 * FABLE_PIECE_MAX bytes, and returns how many: the space before the first
 * word, behind BOS, is left out.
 */
enum { FABLE_PIECE_MAX = 64 };
size_t fable_bpe_decode(const struct fable_bpe *bpe, uint16_t last,
                        uint16_t id, char *out);

/*
 * The next paragraph at or behind *pos: it ends before a blank line or at the
 * end of the text. Returns its length, 0 if there is none, and moves *pos
 * behind it; *start is where it begins.
 */
size_t fable_next_paragraph(const char *text, size_t len, size_t *pos,
                            size_t *start);

/* The whole file and a zero byte, to be freed; exits if it cannot be read. */
char *fable_read_text(const char *path, size_t *len);

#endif
