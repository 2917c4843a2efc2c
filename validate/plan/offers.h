/*
 * offers.h - what each unit of a checkpoint could become, what that takes, and
 * how much of it is error.
 */
#ifndef LMQ_VALIDATE_OFFERS_H
#define LMQ_VALIDATE_OFFERS_H

#include "validate/plan/units.h"
#include "validate/plan/variant.h"

struct lmq_plan;

/* One of the encodings that are weighed. */
struct lmq_offer {
    const char *name;     /* "q4/64" */
    const char *encoding; /* as a recipe has it */
    unsigned group;       /* 0: none */
    bool rotates;
};

#define LMQ_OFFERS_MOST 24

struct lmq_offers {
    const struct lmq_offer *list[LMQ_OFFERS_MOST]; /* those that there are */
    size_t n;
    size_t probe;   /* the one that others are told from, as a rule */
    size_t *probes; /* (units): those that they are told from */
    struct lmq_encoding_choice *choices; /* (units, n) */
    double *bytes;  /* (units, n): in a container; infinite: not offered */
    double *errors; /* (units, n): squared, in parts of the weights' */
    double least, most; /* bytes of all units */
};

/* Whether a conversion stores the head as the embedding again. */
enum lmq_status lmq_offers_tied(struct lmq_checkpoint *checkpoint,
                                bool *is_tied, struct lmq_error *err);

/* What a conversion makes of a unit; adds the bytes that it takes. */
void lmq_unit_take(const struct lmq_plan *plan, const struct lmq_unit *unit,
                   struct lmq_encoding_choice *choice, double *bytes);

/* With those that are rotated, or without. *offers is released even if this
 * fails. */
enum lmq_status lmq_offers_make(struct lmq_checkpoint *checkpoint,
                                const struct lmq_units *units, bool rotates,
                                const struct lmq_workers *workers,
                                const struct lmq_progress *progress,
                                struct lmq_offers *offers,
                                struct lmq_error *err);
void lmq_offers_free(struct lmq_offers *offers);

/* A recipe that chooses an offer for each unit, behind these remarks. */
char *lmq_offers_recipe(const struct lmq_offers *offers,
                        const struct lmq_units *units, const size_t *chosen,
                        const char *remarks);

/* Bytes of the file that a conversion by the recipe writes. */
enum lmq_status lmq_offers_file_size(struct lmq_checkpoint *checkpoint,
                                     const char *recipe, uint64_t *size,
                                     struct lmq_error *err);

#endif
