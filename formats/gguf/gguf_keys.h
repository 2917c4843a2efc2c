/*
 * gguf_keys.h - what GGUF calls the numbers of a description, read and
 * written from the same tables.
 *
 * Much of a description is not in a GGUF file: its general.architecture
 * implies it. families.c has a row for each that we know.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_KEYS_H
#define LMQ_FORMATS_GGUF_GGUF_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint/checkpoint.h"
#include "formats/families/families.h"
#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_evidence.h"
#include "formats/gguf/gguf_meta.h"
#include "formats/model/hparams.h"

/* The row in which a model of ours is written; NULL if GGUF has no name for
 * it. */
const struct lmq_family *
lmq_gguf_family_for(const struct lmq_hparams *hparams);

/*
 * Fills in *hparams and tells how `source` arranges things. An architecture
 * that is not known is no error: the model is refused then, and *family NULL.
 * Keys of the architecture that are not understood are noted.
 */
enum lmq_status
lmq_gguf_read_keys(const struct lmq_gguf_meta *meta,
                   const struct lmq_gguf_evidence *evidence,
                   struct lmq_checkpoint *checkpoint,
                   const struct lmq_family **family,
                   struct lmq_error *err);

/* The same way back: only the keys of the architecture, and its name. */
void lmq_gguf_write_keys(struct lmq_gguf_builder *builder,
                         const struct lmq_family *family,
                         const struct lmq_hparams *hparams);

#endif
