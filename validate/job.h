/*
 * job.h - one validation at work: what its parts share.
 */
#ifndef LMQ_VALIDATE_JOB_H
#define LMQ_VALIDATE_JOB_H

#include <jansson.h>
#include <stdbool.h>

#include "base/text/name_table.h"
#include "formats/describe.h"
#include "runtime/tokenizer/tokenizer.h"
#include "validate/drift.h"
#include "validate/task.h"

/* One of the models that are judged, and what is found out about it. Where
 * parts are merged there are no files and models, only what was said of them:
 * from `protocol` on. */
struct lmq_judged {
    struct lmq_checkpoint *file;   /* of an emulation the reference's */
    enum lmq_emulation emulation;  /* or none */
    char name[32];                 /* of an emulation: "q8_0 (emulated)" */
    struct lmq_model *model;
    struct lmq_tokenizer *tokenizer; /* its own, if it is another */
    enum lmq_activations activations;
    struct lmq_drift drift;
    /* Known before the work, but for how many windows were done. */
    json_t *protocol, *tensors, *notes;
    json_t *worst;          /* after it */
    const json_t *baseline; /* what lmq_job.baseline has of it, or NULL */
    json_t *report; /* what a validation of it alone gives */
};

struct lmq_job {
    const struct lmq_validate_options *options;
    struct lmq_session_options session; /* theirs */
    const struct lmq_progress *progress;
    struct lmq_checkpoint *reference_file;
    struct lmq_judged *candidates;
    size_t n_candidates;
    bool makes_sides; /* beside the candidates, of integers, on the way */
    struct lmq_model **models; /* the reference's, and the candidates' */
    struct lmq_tokenizer *tokenizer;
    json_t *baseline; /* an earlier report, or NULL */
    struct lmq_protocol protocol;
    struct lmq_corpus corpus;
    struct lmq_task task; /* of no questions: none was given */
    enum lmq_kv_type kv_type;
    size_t memory;
    double started;
    size_t n_layers, vocabulary;
    size_t n_windows, n_tokens; /* done in the last lock-step */
    struct lmq_stream_sums *layers; /* (n_candidates + 1, n_layers + 1), from
                                       the embedding; the reference's unused */
    const struct lmq_owner *owner; /* of the next lock-steps, or NULL */
    bool is_partial;
};

/* ---- gather.c: who is judged ---- */

/* Fills in the candidates: the files, then the emulations that are asked
 * for. */
enum lmq_status lmq_job_name_candidates(struct lmq_job *job,
                                        struct lmq_checkpoint *const *files,
                                        size_t n_files, struct lmq_error *err);

/* What reports call it: its path, as a rule. */
const char *lmq_judged_name(const struct lmq_judged *candidate);

/* Of its file, or of one that an emulation would have: matrices and floats,
 * without what describes them. */
struct lmq_sizes lmq_judged_sizes(const struct lmq_judged *candidate);

/* How its activations enter products: "q16", "f32"; "q8/32" are rounded to
 * int8 in blocks of 32. */
const char *lmq_judged_activations(const struct lmq_judged *candidate);

/* ---- setup.c ---- */

/* Better now than after the work: can the page be written? */
enum lmq_status lmq_job_check_page(const struct lmq_job *job,
                                   struct lmq_error *err);

/* Texts or ids, and what goes with them. */
enum lmq_status lmq_job_check_texts(const struct lmq_validate_options *options,
                                    struct lmq_error *err);

/* Opens the models, reads the text. */
enum lmq_status lmq_job_set_up(struct lmq_job *job, struct lmq_error *err);
void lmq_job_tear_down(struct lmq_job *job);

/* ---- baseline.c ---- */

/* Reads the earlier report, if there is one, and finds the figures of each
 * candidate in it. Refuses what cannot be compared. */
enum lmq_status lmq_baseline_open(struct lmq_job *job, struct lmq_error *err);
json_t *lmq_describe_baseline(const struct lmq_job *job,
                              const struct lmq_judged *candidate);
/* What may be a mistake, when the candidate's report is there. */
void lmq_baseline_doubts(const struct lmq_job *job,
                         const struct lmq_judged *candidate, json_t **notes);

/* ---- gather.c ---- */

/* Runs the sides over n_windows windows from `first` on. Drifts are per side,
 * the first unused; layers (n_sides, n_layers + 1), from the embedding, or
 * NULL. */
enum lmq_status lmq_job_gather(struct lmq_job *job,
                               const struct lmq_side *sides, size_t n_sides,
                               size_t first, size_t n_windows,
                               const char *stage,
                               struct lmq_drift *drifts,
                               struct lmq_stream_sums *layers,
                               struct lmq_error *err);

/* The reference: all in float32, int8 weights widened. */
struct lmq_side lmq_side_reference(void);
struct lmq_side lmq_side_judged(const struct lmq_job *job, size_t index,
                                const char *name);

/* ---- task_scores.c ---- */

/* How unlikely all sides find each choice, (n_candidates + 1, all windows of
 * the task) of them, of questions from `first` on; the rest stays as it is. */
enum lmq_status lmq_ask_task(struct lmq_job *job, size_t first, size_t n,
                             double *nll, struct lmq_error *err);
/* Adds "task" to the reports of all candidates. */
void lmq_score_task(struct lmq_job *job, const double *nll);
enum lmq_status lmq_answer_task(struct lmq_job *job, struct lmq_error *err);

/* ---- attribute.c ---- */

/* How many models run side by side when parts are restored. */
size_t lmq_attribute_sides(const struct lmq_job *job);

/* Add "attribution" to a candidate's report, "floor" to those of all. */
enum lmq_status lmq_attribute(struct lmq_job *job, size_t index,
                              struct lmq_error *err);
enum lmq_status lmq_measure_floor(struct lmq_job *job, struct lmq_error *err);

/* ---- evidence.c ---- */

/* Fills in what is known of the candidates before the work. */
enum lmq_status lmq_collect_evidence(struct lmq_job *job,
                                     struct lmq_error *err);
json_t *lmq_describe_layers(const struct lmq_job *job,
                            const struct lmq_stream_sums *layers);
/* A remark for the report's notes; what the figures themselves say. */
void lmq_doubt(json_t **notes, const char *format, ...) LMQ_PRINTF(2, 3);
void lmq_doubt_window(const struct lmq_job *job, uint32_t context,
                      const char *whose, json_t **notes);
void lmq_doubt_result(const struct lmq_job *job,
                      const struct lmq_judged *candidate, const json_t *report,
                      json_t **notes);

json_t *lmq_describe_worst(const struct lmq_job *job,
                           const struct lmq_drift *drift);

/* ---- several.c ---- */

/* What only several candidates have: "differences", and numbers of models:
 * "ranking", by divergence, and "front", what is worth its bytes. */
enum lmq_status lmq_compare_candidates(const struct lmq_job *job,
                                       json_t **differences,
                                       struct lmq_error *err);
json_t *lmq_describe_ranking(const struct lmq_job *job);
json_t *lmq_describe_front(const struct lmq_job *job);
/* The remarks on all of them. */
json_t *lmq_collect_notes(const struct lmq_job *job);

/* ---- verdict.c ---- */

/* Applies the gates to the reports of all candidates, and says in each what
 * came out. */
enum lmq_status lmq_apply_gates(struct lmq_job *job, struct lmq_error *err);
/* Of several together. */
json_t *lmq_describe_verdict(const struct lmq_job *job);

/* ---- validate.c ---- */

/* From what was gathered to the reports of the candidates; and, after gates and
 * all that is asked for besides, to the report. */
enum lmq_status lmq_describe_candidates(struct lmq_job *job, double seconds,
                                        struct lmq_error *err);
enum lmq_status lmq_assemble(struct lmq_job *job, struct lmq_report **report,
                             struct lmq_error *err);

#endif
