/*
 * tokenizer.h - text to token ids and back.
 *
 * A tokenizer is opened from files in memory, recognised by their content:
 *
 *   tekken.json      Mistral's ranks
 *   tokenizer.json   Hugging Face: BPE and Unigram
 *   *.gguf           its tokenizer.* keys, with or without tensors
 *   tokenizer.model  SentencePiece (BPE, unigram) or tiktoken ranks
 *   tokenizer.bin    llama2.c
 *
 * in this order if there are several; tokenizer_config.json,
 * special_tokens_map.json, generation_config.json and config.json beside it
 * add what they say about the beginning and the end of a text, and, to a
 * SentencePiece model, what it and added_tokens.json have been given. What is
 * not understood is refused by name, never approximated. Nothing of the files
 * is needed after opening. An open tokenizer does not change: any number of
 * threads may use it.
 *
 * Where kinds differ: llama2.c knows only the ids 0 (unknown), 1 (begin) and 2
 * (end), looks for no special tokens in the text, and writes a space where
 * SentencePiece writes U+2581, so that only there a U+2581 in the text is not
 * a space.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TOKENIZER_H
#define LMQ_RUNTIME_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/blob.h"
#include "lmquant.h"
#include "runtime/tokenizer/model/added.h"
#include "runtime/tokenizer/model/tok_model.h"
#include "runtime/tokenizer/text/chars.h"
#include "runtime/tokenizer/text/tok_split.h"

/* Longer texts are refused. */
#define LMQ_TOKENIZER_MAX_TEXT ((size_t)1 << 30)

/* struct lmq_tokenizer, lmq_tokenizer_close(), _kind() and _size() are
 * lmquant.h's. The blobs are borrowed for the call. */
enum lmq_status lmq_tokenizer_open(const struct lmq_blob *blobs,
                                   size_t n_blobs, struct lmq_tokenizer **out,
                                   struct lmq_error *err);

/* For a model of so many rows (0: of any): what files beside a SentencePiece
 * model add behind them, as a padding token that nobody trained, is left
 * out. */
enum lmq_status lmq_tokenizer_open_for(const struct lmq_blob *blobs,
                                       size_t n_blobs, size_t n_rows,
                                       struct lmq_tokenizer **out,
                                       struct lmq_error *err);

/* Whether the content is that of a file from which one can be opened. */
bool lmq_tokenizer_recognises(const struct lmq_blob *blob);

/* The beginning and the end: -1 and none if the files do not say. Generation
 * ends at any of *n ids; the first is the one that LMQ_ENCODE_EOS appends. */
int32_t lmq_tokenizer_bos(const struct lmq_tokenizer *tokenizer);
const int32_t *lmq_tokenizer_eos(const struct lmq_tokenizer *tokenizer,
                                 size_t *n);
bool lmq_tokenizer_is_eos(const struct lmq_tokenizer *tokenizer, int32_t id);

/*
 * 64 bits over the vocabulary: for each id what it decodes to, its type and
 * (where it matters) its score, and the merges. How text is normalized and
 * split does not count, so the same SentencePiece vocabulary has one digest as
 * .model, .bin and GGUF, and GPT-2's one as tokenizer.json and GGUF.
 */
uint64_t lmq_tokenizer_digest(const struct lmq_tokenizer *tokenizer);

/* Appends a llama2.c tokenizer.bin with the same vocabulary. *is_made is false
 * if that cannot hold it: it is for SentencePiece's BPE models with the usual
 * special tokens and bytes. */
enum lmq_status
lmq_tokenizer_to_llama2c(const struct lmq_tokenizer *tokenizer,
                         struct lmq_buffer *bytes, bool *is_made,
                         struct lmq_error *err);

/* ---- Encoding ---- */

enum lmq_encode_flags {
    LMQ_ENCODE_BOS = 1,    /* begin with the begin token(s), if there are any */
    LMQ_ENCODE_EOS = 2,    /* end with the end token(s), if there are any */
    LMQ_ENCODE_SPECIAL = 4 /* special tokens in the text count as such */
};

/* Which of BOS and EOS the files ask for. */
unsigned lmq_tokenizer_default_flags(const struct lmq_tokenizer *tokenizer);

/* Appends to ids. The text may be any bytes; what is no UTF-8 becomes byte
 * tokens where the vocabulary has them. A byte that a byte-level vocabulary
 * lacks is left out, as Hugging Face and llama.cpp do; StarCoder's lacks those
 * that UTF-8 never has. On an error ids->n is as before. */
enum lmq_status lmq_tokenizer_encode(const struct lmq_tokenizer *tokenizer,
                                     const char *text, size_t n,
                                     unsigned flags, struct lmq_ids *ids,
                                     struct lmq_error *err);

/* The parts of a text that no piece spans, without a look at special tokens.
 * Freed with lmq_parts_free(), on an error too. */
enum lmq_status lmq_tokenizer_cut(const struct lmq_tokenizer *tokenizer,
                                  const char *text, size_t n,
                                  struct lmq_parts *parts,
                                  struct lmq_error *err);

/* A text of which only some parts speak in tokens: the frame of a
 * conversation, and what somebody said within it. Special tokens count within
 * the spans and nowhere else; so do the guarded ones. With `is_inner` other
 * tokens stand before the text. */
struct lmq_marking {
    const struct lmq_text_span *spans;
    size_t n_spans;
    const int32_t *guarded;
    size_t n_guarded;
    bool is_inner;
};

enum lmq_status
lmq_tokenizer_encode_marked(const struct lmq_tokenizer *tokenizer,
                            const char *text, size_t n,
                            const struct lmq_marking *marking,
                            struct lmq_ids *ids, struct lmq_error *err);

/* Appends the ids of the tokens, special or not, that are looked for in a text
 * itself and are found in this one. */
enum lmq_status
lmq_tokenizer_find_added(const struct lmq_tokenizer *tokenizer,
                         const char *text, size_t n, struct lmq_ids *ids,
                         struct lmq_error *err);

/* ---- Decoding ---- */

enum lmq_decode_flags {
    LMQ_DECODE_SPECIAL = 1, /* special tokens appear by name */
    LMQ_DECODE_UTF8 = 2     /* only whole characters; what cannot become one
                             * appears as U+FFFD */
};

/* One stream of ids becoming text. */
struct lmq_decoder {
    const struct lmq_tokenizer *tokenizer;
    unsigned flags;
    bool is_started; /* a piece that is shown has been seen */
    bool has_text;   /* and gave some */
    unsigned char held[4]; /* the beginning of a character */
    size_t n_held;
};

void lmq_decoder_begin(struct lmq_decoder *decoder,
                       const struct lmq_tokenizer *tokenizer, unsigned flags);
/* Appends to text what the id adds. An id out of range is LMQ_ERR_ARG. */
enum lmq_status lmq_decoder_next(struct lmq_decoder *decoder, int32_t id,
                                 struct lmq_buffer *text,
                                 struct lmq_error *err);
/* Appends what is held back. */
enum lmq_status lmq_decoder_end(struct lmq_decoder *decoder,
                                struct lmq_buffer *text,
                                struct lmq_error *err);

/* All of them at once; without LMQ_DECODE_UTF8 the very bytes. */
enum lmq_status lmq_tokenizer_decode(const struct lmq_tokenizer *tokenizer,
                                     const int32_t *ids, size_t n,
                                     unsigned flags, struct lmq_buffer *text,
                                     struct lmq_error *err);

/* What the id stands for anywhere but at the beginning, special tokens by
 * name; empty for an id without a piece or out of range. Any bytes. */
struct lmq_chars lmq_tokenizer_piece(const struct lmq_tokenizer *tokenizer,
                                     int32_t id);

/* Without the unused tokens at the end, which only fill a vocabulary up. */
size_t lmq_tokenizer_used(const struct lmq_tokenizer *tokenizer);

/* Whether an id stands for the same in both, as far as both have some; else
 * *id is the first that does not. Control tokens are no text, and files call
 * them as they like. */
bool lmq_tokenizer_same_ids(const struct lmq_tokenizer *a,
                            const struct lmq_tokenizer *b, int32_t *id);

/* Whether the id is no text: unknown, begin, end and other control tokens. */
bool lmq_tokenizer_is_control(const struct lmq_tokenizer *tokenizer,
                              int32_t id);

#endif
