/*
 * gguf_pools.h - sparse attention in GGUF: what chooses among positions, and
 * keys that stand for several of them; hyper-connections, which the same models
 * have.
 */
#ifndef LMQ_FORMATS_GGUF_MORE_GGUF_POOLS_H
#define LMQ_FORMATS_GGUF_MORE_GGUF_POOLS_H

#include "formats/gguf/gguf_reader.h"

/* Where GGUF asks for what chooses among groups of positions, and a model sees
 * all: so many make a group, and what chooses is so wide. */
#define LMQ_GGUF_GROUP 16
#define LMQ_GGUF_INDEX_DIM 128

/* After rotary positions, of which some are scaled by the context. */
enum lmq_status lmq_gguf_read_indexer(struct lmq_gguf_reader *r);

/* Behind how many positions others are left out, if that must be no less than
 * `end`: whole groups are chosen, and what is behind the last is seen. */
uint32_t lmq_gguf_groups_end(uint32_t end);
/* The layer that chooses for all of them; n_layers: none has attention. */
uint32_t lmq_gguf_choosing_layer(const struct lmq_hparams *h);
/* Which layers choose positions. */
void lmq_gguf_write_choosers(struct lmq_gguf_builder *builder,
                             const struct lmq_hparams *h);
enum lmq_status lmq_gguf_read_pools(struct lmq_gguf_reader *r);
void lmq_gguf_write_pools(struct lmq_gguf_builder *builder,
                          const struct lmq_hparams *h);
void lmq_gguf_write_groups(struct lmq_gguf_builder *builder,
                           const struct lmq_hparams *h);

#endif
