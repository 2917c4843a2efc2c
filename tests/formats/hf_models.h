/*
 * hf_models.h - what the suites of Hugging Face's families share.
 */
#ifndef LMQ_TESTS_FORMATS_HF_MODELS_H
#define LMQ_TESTS_FORMATS_HF_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/hf/hf_config.h"

struct model {
    struct lmq_hparams h;
    struct lmq_source source;
};

#define SMALL                                                                 \
    "'hidden_size':64,'intermediate_size':96,'num_hidden_layers':8,"          \
    "'num_attention_heads':4,'num_key_value_heads':4,'vocab_size':100"

/* JSON with ' for ". */
enum lmq_status parse_config(const char *text, struct model *model,
                             bool *is_known, struct lmq_error *err);

/* One that can run. */
struct model *read_model(const char *text);

/* A small model of the class with these further keys. */
struct model *read_small(const char *class_name, const char *more);

void assert_unsupported(const char *class_name, const char *more,
                        const char *why);

void assert_wrong(const char *class_name, const char *more, const char *what);

void assert_sizes(const struct lmq_hparams *h, uint32_t layers, uint32_t dim,
                  uint32_t hidden, uint32_t heads, uint32_t kv_heads,
                  uint32_t head_dim);

void assert_near(double a, double b);

/* The layers of the kind, a character each: "x..x". Layers behind the pattern
 * repeat it. */
void assert_layers(const struct lmq_hparams *h, enum lmq_layer_kind kind,
                   const char *pattern);

/* What the description of every Llama-like model says. */
void assert_llama_like(const struct lmq_hparams *h);

void assert_source(const struct lmq_source *s, bool pairs, bool transposed,
                   bool less_one, bool by_head);

#endif
