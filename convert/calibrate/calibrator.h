/*
 * calibrator.h - a calibration at work: what it holds from the first layer to
 * the last.
 */
#ifndef LMQ_CONVERT_CALIBRATE_CALIBRATOR_H
#define LMQ_CONVERT_CALIBRATE_CALIBRATOR_H

#include "base/threads/tasks.h"
#include "base/progress.h"
#include "convert/calibrate/feedback/mend.h"
#include "convert/calibrate/peers.h"
#include "convert/calibrate/walk.h"
#include "convert/plan.h"

/* What Hessians of a layer may take together, unless one alone takes more. */
#define LMQ_CALIBRATION_BYTES 2e9

/* One thread's room to quantize in. */
struct lmq_quantizer {
    struct lmq_scratch scratch;
    float *x; /* (LMQ_FEEDBACK_ROWS, widest) */
    double *offsets; /* of these rows (feedback/mend.h) */
    struct lmq_feedback_room room;
};

struct lmq_calibrator {
    struct lmq_model *model;
    struct lmq_tokenizer *tokenizer;
    struct lmq_corpus corpus;
    struct lmq_walk walk;
    struct lmq_workers workers; /* states: struct lmq_quantizer */
    double bytes;               /* about what it takes in all */
    double **buffers;           /* of the walk's members */
    size_t n_buffers;
    double damping;
    double mend; /* how much of it is made up for; 0: nobody does */
    int threads;
    bool *takes; /* of the plan, before it is known what cannot be taken */
    struct lmq_counter counter; /* tokens through layers, and rows */
    const struct lmq_peers *peers; /* or NULL */
};

/* What the options say. */
struct lmq_calibration {
    const char *const *texts; /* paths; n of them */
    size_t n;
    bool writes_text;         /* none: the model's own */
    bool is_dry;              /* what that would be is not computed */
    size_t n_tokens, context; /* 0: the default */
    double damping;           /* likewise */
    double mend;              /* likewise; less than 0: none */
    bool splits_documents;
    int threads;
    const struct lmq_peers *peers;
};

/* Opens the model and reads the text, and at last writes one, so that what is
 * wrong is found before. Fills in plan->calibrator, plan->calibration and
 * plan->calibrated. */
enum lmq_status lmq_calibrator_open(struct lmq_plan *plan,
                                    const struct lmq_calibration *options,
                                    const struct lmq_progress *progress,
                                    struct lmq_error *err);
/* How much there is to do in the layers in front of `end`. */
void lmq_calibrator_expect(struct lmq_plan *plan, size_t end);
void lmq_calibrator_close(struct lmq_calibrator *calibrator);

#endif
