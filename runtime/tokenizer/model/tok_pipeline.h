/*
 * tok_pipeline.h - what a tokenizer is made of.
 *
 * Every kind is described in the same steps:
 *
 *   text -> raw added tokens -> normalizers -> normalized added tokens
 *        -> splits -> model -> begin and end
 *   ids  -> bytes of the piece -> replacements -> what is stripped
 *
 * A reader (spm.c, tok_hf.c, ...) fills them in; tokenizer.c runs them.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_MODEL_TOK_PIPELINE_H
#define LMQ_RUNTIME_TOKENIZER_MODEL_TOK_PIPELINE_H

#include "formats/checkpoint/blob.h"
#include "lmquant.h"
#include "runtime/tokenizer/model/added.h"
#include "runtime/tokenizer/model/tok_model.h"
#include "runtime/tokenizer/model/vocab.h"
#include "runtime/tokenizer/text/tok_normal.h"
#include "runtime/tokenizer/text/tok_split.h"

#define LMQ_TOKENIZER_MAX_STEPS 64
#define LMQ_TOKENIZER_MAX_MARKS 64

/* U+2581, which SentencePiece writes for a space. */
#define LMQ_SPACE_MARK "\xe2\x96\x81"

enum lmq_strip {
    LMQ_STRIP_NONE,
    LMQ_STRIP_FIRST, /* one space at the beginning of the first piece */
    LMQ_STRIP_EACH,  /* one of each piece, while there is no text yet */
    LMQ_STRIP_MARKS  /* of the first piece what replacements say */
};

struct lmq_replacement {
    struct lmq_buffer from, to;
    bool drops_first; /* LMQ_STRIP_MARKS: nothing stands for it there */
};

/* A few ids, in order. */
struct lmq_marks {
    int32_t ids[LMQ_TOKENIZER_MAX_MARKS];
    size_t n;
};

struct lmq_tokenizer {
    const char *kind;
    struct lmq_vocab vocab;
    struct lmq_added added;
    struct lmq_normal_step *normals;
    size_t n_normals;
    struct lmq_split_step *splits;
    size_t n_splits;
    bool is_byte_level; /* pieces in the file are written in GPT-2's letters */
    struct lmq_tok_model model;

    struct lmq_replacement replacements[LMQ_TOKENIZER_MAX_MARKS];
    size_t n_replacements;
    enum lmq_strip strip;
    bool has_no_decoder; /* pieces are shown as they are, with spaces between */
    struct lmq_buffer unknown_text; /* what the unknown token decodes to */
    struct lmq_buffer texts;        /* what ids decode to */
    uint32_t *text_starts;          /* (n + 1) within texts */

    int32_t bos;
    int32_t first_reserved, n_reserved; /* ids that tokenizer_config.json
                                           names */
    bool takes_added; /* files beside it may have tokens behind the last one */
    size_t n_rows;    /* of the model: none behind them; 0: any number */
    struct lmq_marks prefix, suffix; /* of a template */
    struct lmq_marks eos;
    bool has_template, has_post_processor; /* of tokenizer.json */
    unsigned default_flags;
};

/* ---- Filling it in ---- */

/* A new zeroed step at the end; NULL without memory or beyond the limit. */
struct lmq_normal_step *lmq_pipeline_add_normal(struct lmq_tokenizer *t);
struct lmq_split_step *lmq_pipeline_add_split(struct lmq_tokenizer *t);
/* Why they gave none, though there were n_steps of the kind. */
enum lmq_status lmq_pipeline_fail(size_t n_steps, struct lmq_error *err);

/* A split by a pattern, or by a text that stands for itself. */
enum lmq_status lmq_pipeline_split_at(struct lmq_tokenizer *t,
                                      struct lmq_chars pattern,
                                      bool is_literal,
                                      enum lmq_split_behavior behavior,
                                      bool is_inverted, struct lmq_error *err);

/* Decoding replaces `from` by `to` in each piece. */
enum lmq_status lmq_pipeline_replace(struct lmq_tokenizer *t,
                                     struct lmq_chars from,
                                     struct lmq_chars to,
                                     struct lmq_error *err);

/* Appends the id unless it is there; too many are left out. */
void lmq_marks_add(struct lmq_marks *marks, int32_t id);
bool lmq_marks_have(const struct lmq_marks *marks, int32_t id);

/* What a text of n bytes may become on its way: Unicode makes 11 bytes of one
 * at most, tables and replacements of a file what they like. */
static inline size_t
lmq_pipeline_most(size_t n)
{
    return n >= INT32_MAX / 32 - 32 ? INT32_MAX : 32 * n + 1024;
}

/* Runs the normalizers; what result and spare held before is lost. */
enum lmq_status lmq_pipeline_normalize(const struct lmq_tokenizer *t,
                                       struct lmq_regex_scratch *scratch,
                                       struct lmq_chars text,
                                       struct lmq_buffer *result,
                                       struct lmq_buffer *spare,
                                       struct lmq_error *err);

/* The pre-tokenizers that a GGUF names (pretypes.c). */
struct lmq_pretype {
    const char *name;
    const char *const *patterns; /* ends with NULL */
    bool prefers_whole, adds_bos;
};
const struct lmq_pretype *lmq_pretype_find(struct lmq_chars name);
/* The first name of each way to split: NULL begins, and is behind the last. */
const struct lmq_pretype *lmq_pretype_next(const struct lmq_pretype *pretype);
/* Adds its splits. */
enum lmq_status lmq_pretype_split(struct lmq_tokenizer *t,
                                  const struct lmq_pretype *pretype,
                                  struct lmq_error *err);
extern const char lmq_pattern_gpt2[];
extern const char lmq_pattern_llama3[];
extern const char lmq_pattern_qwen2[];
extern const char lmq_pattern_gpt4o[];
extern const char lmq_pattern_kimi[];

/* ---- Readers ---- */

/* How SentencePiece and its likes treat spaces. */
struct lmq_spm_spaces {
    const char *mark; /* what stands for one in the pieces */
    bool adds_prefix, removes_extra;
    struct lmq_chars charsmap;
};

/* Everything besides the pieces, which must be complete: the index, the
 * normalizer, the model, special and user pieces, decoding. */
enum lmq_status lmq_spm_describe(struct lmq_tokenizer *t, bool is_unigram,
                                 struct lmq_spm_spaces spaces,
                                 struct lmq_error *err);

bool lmq_hf_recognises(const struct lmq_blob *blob);
enum lmq_status lmq_hf_read(struct lmq_tokenizer *t,
                            const struct lmq_blob *blob,
                            struct lmq_error *err);
bool lmq_gguf_vocab_recognises(const struct lmq_blob *blob);
enum lmq_status lmq_gguf_vocab_read(struct lmq_tokenizer *t,
                                    const struct lmq_blob *blob,
                                    struct lmq_error *err);
bool lmq_spm_recognises(const struct lmq_blob *blob);
enum lmq_status lmq_spm_read(struct lmq_tokenizer *t,
                             const struct lmq_blob *blob,
                             struct lmq_error *err);
bool lmq_tiktoken_recognises(const struct lmq_blob *blob);
enum lmq_status lmq_tiktoken_read(struct lmq_tokenizer *t,
                                  const struct lmq_blob *blob,
                                  struct lmq_error *err);
bool lmq_tekken_recognises(const struct lmq_blob *blob);
enum lmq_status lmq_tekken_read(struct lmq_tokenizer *t,
                                const struct lmq_blob *blob,
                                struct lmq_error *err);
bool lmq_llama2c_vocab_recognises(const struct lmq_blob *blob);
enum lmq_status lmq_llama2c_vocab_read(struct lmq_tokenizer *t,
                                       const struct lmq_blob *blob,
                                       struct lmq_error *err);

/* What tokenizer_config.json and its likes say about begin and end. */
enum lmq_status lmq_config_apply(struct lmq_tokenizer *t,
                                 const struct lmq_blob *blobs, size_t n_blobs,
                                 struct lmq_error *err);

/* The id of a token by its name, -1 without: a control token or a piece. */
int32_t lmq_pipeline_find(const struct lmq_tokenizer *t,
                          struct lmq_chars name);

/* Appends a piece as its file writes it: bytes that a byte-level model finds
 * are letters there. A failure stays in `out`. */
void lmq_pipeline_name(const struct lmq_tokenizer *t, int32_t id,
                       struct lmq_buffer *out);

/* ---- Decoding (decode.c) ---- */

/* Fills in texts. */
enum lmq_status lmq_decode_build(struct lmq_tokenizer *t,
                                 struct lmq_error *err);

#endif
