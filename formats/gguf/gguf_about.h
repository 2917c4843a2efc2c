/*
 * gguf_about.h - the keys of GGUF that are for people: "general.".
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_ABOUT_H
#define LMQ_FORMATS_GGUF_GGUF_ABOUT_H

#include "formats/checkpoint/about.h"
#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_meta.h"

/* Keys of other types than they should have are left out. */
enum lmq_status lmq_gguf_read_about(const struct lmq_gguf_meta *meta,
                                    json_t **about, struct lmq_error *err);

/* All but the name. */
void lmq_gguf_write_about(struct lmq_gguf_builder *builder,
                          const json_t *about);

#endif
