/*
 * calibrate.h - quantizes the matrices of layers by what a text makes of them.
 *
 * Layer after layer: the text goes through the layer as the checkpoint has it,
 * behind the layers that are quantized already; what its matrices are
 * multiplied with decides how they are rounded; and then the text goes through
 * what came of it; in the end the head, tied or not. What else is in no layer,
 * and what the text does not reach, is quantized by search.
 */
#ifndef LMQ_CONVERT_CALIBRATE_CALIBRATE_H
#define LMQ_CONVERT_CALIBRATE_CALIBRATE_H

#include "base/progress.h"
#include "convert/piece.h"

/* Quantizes the matrices of a layer, one layer after the other, from 0 on;
 * behind the last one the head, or the embedding if it is that.
 * plan->calibrated has them until they are forgotten. Of a layer that is
 * written already the outputs have them, and nothing is quantized again. */
enum lmq_status lmq_calibrator_layer(const struct lmq_conversion *work,
                                     size_t layer,
                                     const struct lmq_progress *progress,
                                     struct lmq_error *err);
/* What the head becomes, or the embedding if it is that; SIZE_MAX: no text
 * decides it. */
size_t lmq_calibrator_head(const struct lmq_plan *plan);
/* Of a plan that is laid out, before anything is known of it: LMQ_ERR_ARG if a
 * process is not about what the first one is about, LMQ_ERR_NOMEM if what they
 * show each other has no room. */
enum lmq_status lmq_calibrator_meet(struct lmq_plan *plan,
                                    struct lmq_error *err);
/* Whether a process calibrates without others that it could ask; false without
 * a calibrator. */
bool lmq_calibrator_is_alone(const struct lmq_calibrator *calibrator);
/* Layers in front of *end will be calibrated, which all processes must: *end
 * becomes the largest of theirs. */
enum lmq_status lmq_calibrator_agree(struct lmq_plan *plan, size_t *end,
                                     struct lmq_error *err);
void lmq_calibrated_forget(struct lmq_plan *plan);
/* Notes of what was calibrated by too little, however many processes did it. */
void lmq_calibrated_note(struct lmq_plan *plan);

#endif
