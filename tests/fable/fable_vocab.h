/*
 * fable_vocab.h - writes a vocabulary in the formats of the test data.
 */
#ifndef FABLE_VOCAB_H
#define FABLE_VOCAB_H

enum {
    FABLE_N_TOKENS = 512,
    FABLE_N_SPECIAL = 3,
    FABLE_FIRST_PIECE = FABLE_N_SPECIAL + 256,
    FABLE_N_PIECES = FABLE_N_TOKENS - FABLE_FIRST_PIECE,
    FABLE_TEXT_MAX = 32
};

/*
 * The pieces behind <unk>, <s>, </s> and the 256 bytes: first those that were
 * merged, by rank, then the single characters. A space is a plain space here.
 */
struct fable_vocab {
    char text[FABLE_N_PIECES][FABLE_TEXT_MAX];
    int n_merged;
};

/*
 * tokenizer.bin (llama2.c), tokenizer.json and tokenizer_config.json (Hugging
 * Face). Exits if a file cannot be written or a piece cannot be reached.
 */
void fable_vocab_write(const struct fable_vocab *vocab, const char *folder);

#endif
