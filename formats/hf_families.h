/*
 * hf_families.h - the families of Hugging Face's config.json, a row each.
 *
 * Between hf_config.c, which reads any of them, hf_rope.c, and hf_families.c
 * with hf_special.c, which know them.
 */
#ifndef LMQ_FORMATS_HF_FAMILIES_H
#define LMQ_FORMATS_HF_FAMILIES_H

#include <jansson.h>
#include <stddef.h>

#include "formats/checkpoint.h"
#include "formats/hparams.h"

/* ---- Keys ---- */

/* The field stays as it is without the key. */
#define LMQ_HF_KEEP (-1.0)

/* A key and the field that it fills. */
struct lmq_hf_key {
    const char *key;    /* NULL ends a list */
    size_t field;       /* its offset in struct lmq_hparams */
    double absent;      /* the field's value then */
    bool null_is_none;  /* null means 0 and not what absence means */
};

struct lmq_hf_config {
    const json_t *json; /* the object with the model's keys */
    const struct lmq_hf_family *family;
    struct lmq_hparams *hparams;
    struct lmq_source *source;
    struct lmq_error *err;
    enum lmq_status status; /* of the first thing that was wrong */
};

/* ---- Families ---- */

#define LMQ_HF_MOST_LISTS 3

/* What is not said is as in Llama: RMS norms before each half, one half after
 * the other, rotary positions, SiLU. */
struct lmq_hf_family {
    const char *name;       /* hparams.architecture */
    const char *classes[2]; /* in "architectures" */
    const char *types[3];   /* "model_type", when that is absent */
    const char *nested;     /* the keys stand in the object under this one */

    enum lmq_norm norm;
    enum lmq_norm_place norm_place;
    enum lmq_residual residual;
    enum lmq_positions positions;
    enum lmq_qk_norm qk_norm;
    bool is_plain;          /* a feed-forward without gate */
    bool has_tied_head;     /* if the configuration does not say */
    bool has_layer_types;   /* "layer_types" counts; else it must agree */
    struct lmq_source source;

    const char *eps_key;    /* NULL: always `eps` */
    double eps;
    const char *activation_key; /* NULL: "hidden_act" */
    const char *activation;     /* NULL: "silu" */

    /* The values of absent keys. */
    uint32_t context;
    uint32_t original_context; /* before scaling; 0: `context` */
    uint32_t n_kv_heads;    /* 0: as many as heads */
    uint32_t head_dim;      /* 0: width / heads */
    double theta;
    const char *theta_key;  /* an older name, which counts more */
    double partial;         /* of a head, that turns; 0: all, always */
    const char *partial_key; /* likewise */
    double local_theta;     /* of layers with a window; 0: like the others */

    const struct lmq_hf_key *keys[LMQ_HF_MOST_LISTS];
    /* Before sizes are derived and rotary positions are read; windows; when
     * all else is done. NULL where nothing is special. */
    void (*begin)(struct lmq_hf_config *config);
    void (*windows)(struct lmq_hf_config *config);
    void (*finish)(struct lmq_hf_config *config);
};

/* The one of a class (or NULL), or of a model type; NULL if there is none. */
const struct lmq_hf_family *lmq_hf_family(const char *class_name,
                                          const char *model_type);

/* ---- Typed access ---- */

/*
 * Absent and null give `absent`; another type is an error that names the key,
 * and stays in config->status. After an error everything is absent, so that
 * callers may go on. `object` is config->json or one inside it.
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

/* ---- For single families (hf_special.c) ---- */

void lmq_hf_windows_qwen(struct lmq_hf_config *config);
void lmq_hf_windows_qwen_experts(struct lmq_hf_config *config);
void lmq_hf_windows_gemma2(struct lmq_hf_config *config);
void lmq_hf_windows_gemma3(struct lmq_hf_config *config);
void lmq_hf_windows_smollm3(struct lmq_hf_config *config);
void lmq_hf_finish_mixtral(struct lmq_hf_config *config);
void lmq_hf_finish_qwen_experts(struct lmq_hf_config *config);
void lmq_hf_finish_gemma(struct lmq_hf_config *config);
void lmq_hf_finish_later_gemma(struct lmq_hf_config *config);
void lmq_hf_begin_gpt2(struct lmq_hf_config *config);
void lmq_hf_begin_gptneox(struct lmq_hf_config *config);
void lmq_hf_begin_phi2(struct lmq_hf_config *config);
void lmq_hf_begin_stablelm(struct lmq_hf_config *config);
void lmq_hf_begin_falcon(struct lmq_hf_config *config);
void lmq_hf_finish_granite(struct lmq_hf_config *config);
void lmq_hf_begin_cohere(struct lmq_hf_config *config);
void lmq_hf_begin_deepseek(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek2(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek3(struct lmq_hf_config *config);

/* ---- Rotary positions (hf_rope.c) ---- */

/* Base, dimensions and scaling. */
void lmq_hf_read_rope(struct lmq_hf_config *config);

/* What the scores are multiplied by, besides 1 / sqrt(head_dim), where YaRN
 * says "mscale_all_dim"; 1 if it does not. */
double lmq_hf_yarn_score_scale(struct lmq_hf_config *config);

#endif
