/*
 * hf_reader.h - how a config.json is read and written, key by key.
 *
 * For hf_config.c, hf_rope.c and hf_special.c among themselves.
 */
#ifndef LMQ_FORMATS_HF_HF_READER_H
#define LMQ_FORMATS_HF_HF_READER_H

#include "formats/families/family_row.h"

struct lmq_hf_config {
    const json_t *json; /* the object with the model's keys */
    const struct lmq_family *family;
    struct lmq_hparams *hparams;
    struct lmq_source *source;
    bool is_beyond; /* its tensors are others than a description asks for */
    struct lmq_error *err;
    enum lmq_status status; /* of the first thing that was wrong */
};

/* ---- Reading: hf_reader.c ---- */

/*
 * Absent and null give `absent`, but a switch that is null is false; another
 * type is an error that names the key, and stays in config->status. After an
 * error everything is absent, so that callers may go on. `object` is
 * config->json or one inside it.
 */
uint32_t lmq_hf_count(struct lmq_hf_config *config, const json_t *object,
                      const char *key, uint32_t absent);
double lmq_hf_real(struct lmq_hf_config *config, const json_t *object,
                   const char *key, double absent);
bool lmq_hf_switch(struct lmq_hf_config *config, const json_t *object,
                   const char *key, bool absent);
const char *lmq_hf_text(struct lmq_hf_config *config, const json_t *object,
                        const char *key, const char *absent);
const json_t *lmq_hf_object(struct lmq_hf_config *config, const json_t *object,
                            const char *key);
const json_t *lmq_hf_list(struct lmq_hf_config *config, const json_t *object,
                          const char *key);

/* There, and not null. */
bool lmq_hf_has(const json_t *object, const char *key);
bool lmq_hf_is_null(const json_t *object, const char *key);

/* An element of a list: a whole number, or an error that names the list. */
int64_t lmq_hf_number(struct lmq_hf_config *config, const json_t *element,
                      const char *key);

/* The first message stays. */
void lmq_hf_fail(struct lmq_hf_config *config, const char *format, ...)
    LMQ_PRINTF(2, 3);

/* A product of sizes, which must be one that a model can have. */
uint32_t lmq_hf_width(struct lmq_hf_config *config, uint64_t a, uint64_t b);

/* Refuses what is there and not the word. */
void lmq_hf_expect_word(struct lmq_hf_config *config, const char *key,
                        const char *word);

/* ---- Layers that differ: hf_reader.c ---- */

/* Those that there is room for: the check of the hyper-parameters refuses more.
 * What is marked beyond them is left alone. */
uint32_t lmq_hf_layers(const struct lmq_hf_config *config);

void lmq_hf_mark(struct lmq_hf_config *config, int64_t layer,
                 enum lmq_layer_kind kind);
void lmq_hf_unmark(struct lmq_hf_config *config, int64_t layer,
                   enum lmq_layer_kind kind);

/* A period of layers, by which the library divides, or a window: not 0. */
uint32_t lmq_hf_period(struct lmq_hf_config *config, const char *key,
                       uint32_t absent);

/* An error unless a list that has this key names all of them; or also those
 * behind them for more tokens, where it is known of these. */
void lmq_hf_expect_layers(struct lmq_hf_config *config, const char *key,
                          size_t n);

/* Marks as dense those that "mlp_layer_types" calls so; false if that is not
 * there. */
bool lmq_hf_mark_listed_dense(struct lmq_hf_config *config);

/* Marks those that the list has a 0 for, of a 0 or a 1 for each; false if it is
 * not there. */
bool lmq_hf_mark_by_list(struct lmq_hf_config *config, const char *key,
                         enum lmq_layer_kind kind);

/* Every `period`th layer sees everything. */
void lmq_hf_leave_windows(struct lmq_hf_config *config, uint32_t period);

/* ---- Experts: hf_experts.c ---- */

/* The first layers are dense, or those that are not in the period; or a list
 * says which. */
void lmq_hf_mark_dense(struct lmq_hf_config *config, uint32_t n_first,
                       uint32_t period);

/* Only the first: as many as the key says, or `n`. */
void lmq_hf_mark_first_dense(struct lmq_hf_config *config, const char *key,
                             uint32_t n);

/* As many as the key says, or `n`, are one network that is so many times as
 * wide. */
void lmq_hf_share_experts(struct lmq_hf_config *config, const char *key,
                          uint32_t n);

/* As DeepSeek V3 chooses. */
void lmq_hf_route_by_sigmoid(struct lmq_hparams *hparams);

/* Layers behind the model's own, for more tokens at once. */
void lmq_hf_read_further(struct lmq_hf_config *config, const char *key);

/* ---- Writing: hf_reader.c ---- */

void lmq_hf_put_count(json_t **config, const char *key, uint64_t value);
/* As a whole number where it is one but for rounding. */
void lmq_hf_put_real(json_t **config, const char *key, double value);
void lmq_hf_put_switch(json_t **config, const char *key, bool value);
void lmq_hf_put_text(json_t **config, const char *key, const char *value);
void lmq_hf_put_null(json_t **config, const char *key);

/* ---- Rotary positions (hf_rope.c) ---- */

/* "rope_parameters", or "rope_scaling" as older files call it, which counts
 * where both are there; NULL without either. */
const json_t *lmq_hf_rope_object(struct lmq_hf_config *config);

/* "partial_rotary_factor": in that object, or beside it. */
double lmq_hf_rotary_part(struct lmq_hf_config *config, double absent);

/* Base, dimensions and scaling. A kind of scaling that has no name there is
 * left out. */
void lmq_hf_read_rope(struct lmq_hf_config *config);
/* Scaling alone, of such an object. */
void lmq_hf_read_scaling(struct lmq_hf_config *config, const json_t *scaling);
void lmq_hf_write_rope(const struct lmq_family *family,
                       const struct lmq_hparams *hparams, json_t **config);

/* The first `part` of the frequencies of a head of layers that see everything
 * turns, so many times slower; the others do not. */
void lmq_hf_turn_part(struct lmq_hf_config *config, double part,
                      double factor);

/* What the scores are multiplied by, besides 1 / sqrt(head_dim), where YaRN
 * says "mscale_all_dim"; 1 if it does not. */
double lmq_hf_yarn_score_scale(struct lmq_hf_config *config);

#endif
