/*
 * about.h - what a checkpoint says for people: who made it, under which
 * licence, from what.
 *
 * An object of texts and lists of texts (lmq(5), "Metadata"), which formats
 * read and write by one table. Nothing of it matters for computing, so what
 * is no text or too long is left out and never an error, but in a container.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_ABOUT_H
#define LMQ_FORMATS_CHECKPOINT_ABOUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

#define LMQ_ABOUT_TEXT 4096 /* bytes of a text */
#define LMQ_ABOUT_LIST 256  /* texts of a list */

struct lmq_about_key {
    const char *name; /* in a container, and in safetensors */
    bool is_list;
    const char *gguf; /* NULL: in parts, or not at all */
    const char *card; /* in the header of a README.md, or NULL */
};

/* The last name is NULL. */
extern const struct lmq_about_key lmq_about_keys[];
/* NULL if there is none. */
const struct lmq_about_key *lmq_about_find(const char *name);

/* The first text of a key that is no list stays, and lists have nothing twice.
 * White space becomes a space, what cannot be shown is escaped. *about may be
 * NULL, and is made when it is needed. */
enum lmq_status lmq_about_add(json_t **about, const struct lmq_about_key *key,
                              const void *text, size_t n,
                              struct lmq_error *err);
/* The same of a text that has a list in it, between commas. */
enum lmq_status lmq_about_add_all(json_t **about,
                                  const struct lmq_about_key *key,
                                  const char *text, struct lmq_error *err);

/* From the metadata of a container, where wrong types and sizes are errors. */
enum lmq_status lmq_about_take(json_t **about, const json_t *stored,
                               struct lmq_error *err);

#endif
