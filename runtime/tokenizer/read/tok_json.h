/*
 * tok_json.h - the JSON of Hugging Face's tokenizer files.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_READ_TOK_JSON_H
#define LMQ_RUNTIME_TOKENIZER_READ_TOK_JSON_H

#include <jansson.h>

#include "runtime/tokenizer/model/tok_pipeline.h"

/* What is accepted; jansson itself limits the nesting to 2048. */
#define LMQ_JSON_MAX_SIZE ((size_t)256 << 20)

/* The caller drops *out with json_decref(). Duplicate keys are refused. */
enum lmq_status lmq_json_load(const struct lmq_blob *blob, json_t **out,
                              struct lmq_error *err);

/* Whether the file is called so, wherever it lies. */
bool lmq_blob_is(const struct lmq_blob *blob, const char *name);

/* The text of a string; empty for anything else. */
struct lmq_chars lmq_json_chars(const json_t *value);

/* A member of an object as a boolean: `otherwise` if absent or null, an error
 * if it is anything else. */
enum lmq_status lmq_json_bool(const json_t *object, const char *key,
                              bool otherwise, bool *value,
                              struct lmq_error *err);

/* The flags of an added token: special, normalized, lstrip and so on. */
enum lmq_status lmq_json_added(const json_t *object,
                               struct lmq_added_token *token,
                               struct lmq_error *err);

/* The "type" of an object, "" without one. */
const char *lmq_json_type(const json_t *object);

/* LMQ_ERR_UNSUPPORTED: what, by name. */
enum lmq_status lmq_json_refuse(const char *what, const char *name,
                                struct lmq_error *err);

/* ---- The parts of tokenizer.json (tok_hf_steps.c) ---- */

enum lmq_status lmq_hf_add_normalizer(struct lmq_tokenizer *t,
                                      const json_t *object,
                                      struct lmq_error *err);
enum lmq_status lmq_hf_add_pre_tokenizer(struct lmq_tokenizer *t,
                                         const json_t *object,
                                         struct lmq_error *err);
/* tok_hf_output.c */
enum lmq_status lmq_hf_add_decoder(struct lmq_tokenizer *t,
                                   const json_t *object,
                                   struct lmq_error *err);
enum lmq_status lmq_hf_add_post_processor(struct lmq_tokenizer *t,
                                          const json_t *object,
                                          struct lmq_error *err);

#endif
