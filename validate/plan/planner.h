/*
 * planner.h - one plan at work.
 */
#ifndef LMQ_VALIDATE_PLANNER_H
#define LMQ_VALIDATE_PLANNER_H

#include "validate/job.h"
#include "validate/plan/mixes.h"
#include "validate/plan/offers.h"

/* Points that the front is drawn through. */
#define LMQ_FRONT_POINTS 24

/* Choices that are measured. */
#define LMQ_ROUNDS_MOST 5

/* A choice for all units, and what is known of it. */
struct lmq_choice {
    size_t *chosen;    /* (units): an offer each */
    double bytes;      /* of the units */
    double additive;   /* the sum of what each costs alone */
    double predicted;  /* what the model makes of that */
    uint64_t file;     /* bytes */
    double gap;        /* no other is predicted to be better by more than this
                          part; with a divergence as the target: smaller */
    bool is_uniform;   /* the best of one offer for all, since that is better */
    double measured; /* divergence over the whole text */
    double error;    /* to either side, over another text as long */
    double few;      /* divergence over the few windows */
};

/* Types of keys and values that are weighed beside the one of the plan. */
#define LMQ_KV_OFFERS 3

struct lmq_kv_offer {
    enum lmq_kv_type type;
    double bytes;    /* of a position, in all layers */
    double measured; /* divergence over the whole text, of the choice */
};

struct lmq_planner {
    struct lmq_job job;
    const struct lmq_planning_options *options;
    struct lmq_units units;
    struct lmq_offers offers;
    struct lmq_workers workers;
    size_t n_few;         /* windows that units are measured over, the first */
    size_t n_few_scored, n_many_tokens;
    size_t n_most; /* windows that a choice may be measured over, if those of
                      the corpus leave it too uncertain */
    double *alone;        /* (units): divergence with its probe's encoding */
    double *costs;        /* (units, offers): the same of each, estimated */
    double uniform[LMQ_OFFERS_MOST]; /* measured, all units alike */
    struct lmq_known_point {
        double additive, measured; /* logarithms; both ascending */
    } known[LMQ_OFFERS_MOST];
    size_t n_known;
    struct lmq_choice choice, best; /* best: the smallest that met the target */
    bool has_best;
    size_t *scratch;      /* (units) */
    struct lmq_front_point {
        double bytes, kld;
    } front[LMQ_FRONT_POINTS];
    size_t n_front;
    double n_parameters, other_bytes; /* all weights; of no unit */
    struct lmq_kv_offer kv[1 + LMQ_KV_OFFERS]; /* the plan's own first */
    size_t n_kv, chosen_kv; /* 0: nobody asked */
    double kv_room; /* what they may add to the divergence */
    char *recipe;
};

/* ---- planner_measure.c ---- */

/* Units alone, then all offers for all: all that is due to this part. */
enum lmq_status lmq_planner_measure(struct lmq_planner *planner,
                                    struct lmq_error *err);
/* Mixes over the first windows, with activations of 16 bits. */
enum lmq_status lmq_planner_mix(struct lmq_planner *planner,
                                const struct lmq_mix *mixes, size_t n,
                                size_t n_windows, const char *stage,
                                struct lmq_drift *drifts,
                                struct lmq_error *err);
const struct lmq_encoding_choice *
lmq_planner_offer(const struct lmq_planner *planner, size_t unit,
                  size_t offer);

/* Tokens that the first windows score; and from here on so many are the
 * corpus. */
size_t lmq_planner_scored(const struct lmq_planner *planner, size_t n_windows);
void lmq_planner_take_windows(struct lmq_planner *planner, size_t n);

/* Whether that is due to a part of so many, from 1: units and then offers, in
 * turn, since units of the first layers take longest. */
bool lmq_planner_is_due(size_t number, size_t part, size_t n_parts);

/* When all of it is known: fills in what choices are made of. */
void lmq_planner_learn(struct lmq_planner *planner);

/* The file with one offer for all, which scratch holds then. */
enum lmq_status lmq_planner_uniform_file(struct lmq_planner *planner,
                                         size_t offer, uint64_t *size,
                                         struct lmq_error *err);

/* Bytes of units that a target of so many bits per weight leaves room for. */
double lmq_planner_room(const struct lmq_planner *planner);

/* The choice itself; if one offer for all keeps to the target too and is
 * better, it is that from here on, and has to be weighed again. */
enum lmq_status lmq_planner_check(struct lmq_planner *planner,
                                  struct lmq_error *err);

/* planner_kv.c. With the choice that stays: how much keys and values of fewer
 * bits add, and which are taken. */
enum lmq_status lmq_planner_weigh_kv(struct lmq_planner *planner,
                                     struct lmq_error *err);

/* What is over the few windows as it were over the whole text: in the
 * proportion that the choice has, since what is hard is so for all. */
double lmq_planner_over_the_whole(const struct lmq_planner *planner,
                                  double kld);

/* What a sum of costs comes to. */
double lmq_planner_predict(const struct lmq_planner *planner,
                           double additive);

/* ---- planner_choose.c ---- */

/* Refuses what cannot be had, before anything is measured. */
enum lmq_status lmq_planner_check_target(struct lmq_planner *planner,
                                         struct lmq_error *err);

/* When costs are known: the choice for the target, measured. */
enum lmq_status lmq_planner_choose(struct lmq_planner *planner,
                                   struct lmq_error *err);

/* What other sizes are predicted to come to. */
enum lmq_status lmq_planner_draw_front(struct lmq_planner *planner,
                                       struct lmq_error *err);

/* ---- planner_parts.c ---- */

/* What this part has measured, as JSON. */
enum lmq_status lmq_planner_describe_part(const struct lmq_planner *planner,
                                          json_t **json,
                                          struct lmq_error *err);
/* In place of measuring: what all parts have. */
enum lmq_status lmq_planner_take_parts(struct lmq_planner *planner,
                                       struct lmq_error *err);

/* ---- planner_report.c ---- */

json_t *lmq_planner_notes(const struct lmq_planner *planner);
json_t *lmq_planner_describe(const struct lmq_planner *planner,
                             const char *output);

#endif
