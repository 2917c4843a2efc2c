/*
 * gguf_reader.h - how the keys of a family are read, one after the other.
 *
 * For gguf_keys.c, gguf_special.c, gguf_recurrent.c and gguf_rope.c among
 * themselves.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_READER_H
#define LMQ_FORMATS_GGUF_GGUF_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/families/family_row.h"
#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_evidence.h"
#include "formats/gguf/gguf_meta.h"

/* A key with the name of its family; longer than any that we know. */
#define LMQ_GGUF_MAX_NAME 128

struct lmq_gguf_reader {
    const struct lmq_gguf_meta *meta;
    const struct lmq_family *family;
    const struct lmq_gguf_evidence *evidence;
    struct lmq_hparams *h;
    struct lmq_source *source;
    bool is_uneven; /* layers differ in size */
    char key[LMQ_GGUF_MAX_NAME];
    struct lmq_error *err;
};

/* ---- gguf_reader.c ---- */

/* "llama.block_count"; it stands in r->key until the next call. */
const char *lmq_gguf_key_of(struct lmq_gguf_reader *r, const char *name);
bool lmq_gguf_has_key(struct lmq_gguf_reader *r, const char *name);

/* What is absent stays as it is. */
enum lmq_status lmq_gguf_read_count(struct lmq_gguf_reader *r,
                                    const char *name, uint32_t *count);
enum lmq_status lmq_gguf_read_number(struct lmq_gguf_reader *r,
                                     const char *name, double *number);

/* ---- gguf_special.c: after the plain keys, in this order ---- */

enum lmq_status lmq_gguf_read_further_layers(struct lmq_gguf_reader *r);
enum lmq_status lmq_gguf_read_heads(struct lmq_gguf_reader *r);
enum lmq_status lmq_gguf_read_window(struct lmq_gguf_reader *r);
/* Marks the layers of which a list, if there is one, says `marked_by`. */
enum lmq_status lmq_gguf_read_marks(struct lmq_gguf_reader *r,
                                    const char *name,
                                    enum lmq_layer_kind kind, bool marked_by);
enum lmq_status lmq_gguf_read_alibi(struct lmq_gguf_reader *r);
enum lmq_status lmq_gguf_read_experts(struct lmq_gguf_reader *r);

void lmq_gguf_write_heads(struct lmq_gguf_builder *builder,
                          const struct lmq_hparams *h);
void lmq_gguf_write_marks(struct lmq_gguf_builder *builder, const char *key,
                          const struct lmq_hparams *h,
                          enum lmq_layer_kind kind, bool marked_by);
void lmq_gguf_write_window(struct lmq_gguf_builder *builder,
                           const struct lmq_family *family,
                           const struct lmq_hparams *h);
void lmq_gguf_write_dense_layers(struct lmq_gguf_builder *builder,
                                 const struct lmq_family *family,
                                 const struct lmq_hparams *h);
void lmq_gguf_write_alibi(struct lmq_gguf_builder *builder,
                          const struct lmq_hparams *h);
void lmq_gguf_write_router(struct lmq_gguf_builder *builder,
                           const struct lmq_hparams *h);

/* ---- gguf_recurrent.c: likewise ---- */

enum lmq_status lmq_gguf_read_delta(struct lmq_gguf_reader *r);
void lmq_gguf_write_delta(struct lmq_gguf_builder *builder,
                          const struct lmq_hparams *h);
/* Before heads: layers without keys, and what is half a layer. */
enum lmq_status lmq_gguf_read_recurrent(struct lmq_gguf_reader *r);
void lmq_gguf_write_recurrent(struct lmq_gguf_builder *builder,
                              const struct lmq_family *family,
                              const struct lmq_hparams *h);
void lmq_gguf_write_sections(struct lmq_gguf_builder *builder,
                             const struct lmq_hparams *h);
/* ---- gguf_kinds.c: after windows ---- */

enum lmq_status lmq_gguf_read_kinds(struct lmq_gguf_reader *r);
enum lmq_status lmq_gguf_read_streams(struct lmq_gguf_reader *r);
enum lmq_status lmq_gguf_read_loops(struct lmq_gguf_reader *r);
void lmq_gguf_write_streams(struct lmq_gguf_builder *builder,
                            const struct lmq_hparams *hparams);
void lmq_gguf_write_kv_heads(struct lmq_gguf_builder *builder,
                             const struct lmq_hparams *h);
void lmq_gguf_write_kinds(struct lmq_gguf_builder *builder,
                          const struct lmq_hparams *h);

/* (gguf_limits.c) Of what feed-forwards activate. */
enum lmq_status lmq_gguf_read_limits(struct lmq_gguf_reader *r);
void lmq_gguf_write_limits(struct lmq_gguf_builder *builder,
                           const struct lmq_family *family,
                           const struct lmq_hparams *h);

#define LMQ_GGUF_LOCAL_PART "rope.dimension_count_swa"

/* Heads and widths of each layer, before the sizes of heads. */
enum lmq_status lmq_gguf_read_counts(struct lmq_gguf_reader *r);
/* How much of a head turns in both kinds of layers, after windows. */
enum lmq_status lmq_gguf_read_parts(struct lmq_gguf_reader *r);

#define LMQ_GGUF_ACTIVATION "hidden_activation"

/* (gguf_activation.c) Of families that say it by a word. */
enum lmq_status lmq_gguf_read_activation(struct lmq_gguf_reader *r);
void lmq_gguf_write_activation(struct lmq_gguf_builder *builder,
                               const struct lmq_hparams *hparams);
/* Both, of families that have them; and whether these write the field. */
void lmq_gguf_write_layers(struct lmq_gguf_builder *builder,
                           const struct lmq_family *family,
                           const struct lmq_hparams *h);
bool lmq_gguf_is_by_layer(const struct lmq_family *family, size_t field);

/* ---- gguf_rope.c ---- */

enum lmq_status lmq_gguf_read_rope(struct lmq_gguf_reader *r);
void lmq_gguf_write_rope(struct lmq_gguf_builder *builder,
                         const struct lmq_family *family,
                         const struct lmq_hparams *h);

#endif
