/*
 * seen.h - what the matrices of a layer were multiplied with in one window, and
 * what it has drifted by since the checkpoint, kept to be added up and to be
 * shown to other processes.
 *
 * The members of a team write it together: each copies its share of the tokens
 * of each product. Where they stand follows from the products before, so each
 * member knows it by itself.
 */
#ifndef LMQ_CONVERT_CALIBRATE_SEEN_H
#define LMQ_CONVERT_CALIBRATE_SEEN_H

#include "convert/calibrate/items.h"
#include "convert/calibrate/peers.h"
#include "runtime/product.h"

/* Some tokens of one product. */
struct lmq_seen_run {
    uint64_t input, n_tokens;
    uint64_t at; /* of `x`: n_tokens rows of the input's columns, and behind
                    them as many of what drifts */
};

struct lmq_seen_cursor {
    size_t n_runs, used;
};

struct lmq_seen {
    struct lmq_seen_run *runs;
    size_t runs_room;
    float *x;
    size_t x_room;
    struct lmq_seen_cursor *cursors; /* one for each member; all the same */
    size_t n_members;
    float *exact;     /* of each input what would be there without drift */
    size_t *exact_at; /* of each member, of each input: the next one */
    size_t n_inputs, window;
};

/* What a window of so many tokens takes; and room for it, to be freed even if
 * that fails. */
double lmq_seen_bytes(const struct lmq_cal_layer *layer, size_t window);
enum lmq_status lmq_seen_init(struct lmq_seen *seen,
                              const struct lmq_cal_layer *layer,
                              size_t window, size_t n_members,
                              struct lmq_error *err);
void lmq_seen_free(struct lmq_seen *seen);

/* Nothing has been seen of the window yet. */
void lmq_seen_clear(struct lmq_seen *seen);

/* One member's share of a product, called by all: first of all of the window as
 * the checkpoint has it, if something drifts, and then of what is seen. */
void lmq_seen_expect(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
                     const struct lmq_member *member, size_t input,
                     const struct lmq_operand *operand);
void lmq_seen_add(struct lmq_seen *seen, const struct lmq_cal_layer *layer,
                  const struct lmq_member *member, size_t input,
                  const struct lmq_operand *operand);

/* From now on it has what the process `from` has seen. */
enum lmq_status lmq_seen_share(struct lmq_seen *seen,
                               const struct lmq_peers *peers, unsigned from,
                               struct lmq_error *err);

#endif
