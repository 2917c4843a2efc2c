/*
 * small_vocab.h - one small vocabulary in the files of several formats, and
 * what the suites of the tokenizers do with them.
 */
#ifndef LMQ_TESTS_RUNTIME_SMALL_VOCAB_H
#define LMQ_TESTS_RUNTIME_SMALL_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/buffer.h"
#include "runtime/tokenizer/tokenizer.h"

/* Ids 0..2 are <unk>, <s>, </s>, then 256 bytes, then these. */
#define MARK "\xe2\x96\x81"
#define FIRST 259
#define N_PIECES 8
#define N_IDS (FIRST + (size_t)N_PIECES)

/* The text of an id; name holds that of a byte. */
const char *piece_text(size_t id, char name[8]);

void add_bytes(struct lmq_buffer *b, const void *bytes, size_t n);
void add_text(struct lmq_buffer *b, const char *text);

struct lmq_buffer llama2c_file(void);

/* extra: bytes of more fields, such as a normalizer. */
struct lmq_buffer spm_file(const char *extra, size_t n_extra);

/* BPE with byte fallback; the identity, a prefix, extra spaces kept. */
#define SPM_BPE "\x12\x05\x18\x02\x98\x02\x01"
#define SPM_PLAIN "\x1a\x04\x18\x01\x20\x00"

struct lmq_buffer default_spm_file(void);

struct lmq_buffer gguf_file(const char *model, const char *pre);

/* More keys for it. */
void add_gguf_texts(struct lmq_buffer *b, const char *key,
                    const char *const *texts, size_t n);
void add_gguf_u32(struct lmq_buffer *b, const char *key, uint32_t value);
void add_gguf_bytes(struct lmq_buffer *b, const char *key, const void *bytes,
                    size_t n);

/* The same pieces, made by merges of a list: Gemma 4's. */
struct lmq_buffer merged_gguf_file(void);

/* A tokenizer.json around this model and these steps; NULL is null. */
struct lmq_buffer hf_file(const char *model, const char *normalizer,
                          const char *pre_tokenizer, const char *decoder,
                          const char *added);

#define WORDS                                                                 \
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,"       \
    "\"a\":1,\"b\":2,\"ab\":3,\"1\":4,\"2\":5,\"12\":6,\".\":7,\" \":8},"     \
    "\"merges\":[\"a b\",[\"1\",\"2\"]]}"

/* As many ranks as GPT-2 has: the bytes, then pairs of bytes in order, then
 * these with a third one behind. */
#define N_RANKS 50256

struct lmq_buffer tiktoken_file(unsigned n_ranks);

/* A charsmap of one rule, 'A' becomes "ab": unit 0 leads to 0, A's unit to
 * unit 1, which holds where the text stands. */
#define N_UNITS 80
#define N_CHARSMAP (4 + 4 * N_UNITS + 3)

void write_charsmap(unsigned char map[N_CHARSMAP]);

struct lmq_tokenizer *open_buffer(struct lmq_buffer b);

void expect_refusal(struct lmq_buffer b, enum lmq_status expected,
                    const char *words);

/* The ids, separated by spaces. */
const char *encoded(const struct lmq_tokenizer *t, const char *text, size_t n,
                    unsigned flags);

#define ENCODES(t, text, flags, expected)                                     \
    ck_assert_str_eq(encoded(t, text, sizeof(text) - 1, flags), expected)

bool round_trips(const struct lmq_tokenizer *t, const void *text, size_t n);

#endif
