/*
 * gguf_families.c - what each general.architecture of a GGUF file implies.
 *
 * As llama.cpp computes them, but for one thing: where a model's makers use
 * the exact GELU, so do we, though ggml approximates it by tanh.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/gguf_keys.h"

/* ---- Before the keys ---- */

static void
begin_mixture(struct lmq_hparams *h)
{
    h->router_renormalises = true;
}

static void
begin_gemma2(struct lmq_hparams *h)
{
    h->attn_softcap = 50;
    h->logit_softcap = 30;
    h->sliding_window = 4096;
}

static void
begin_gemma3(struct lmq_hparams *h)
{
    h->rope_local_theta = 10000;
}

/* ---- After them ---- */

static void
finish_gemma(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->embedding_scale = sqrt((double)h->dim);
}

/* The largest of a generation scales by the width of its residual stream, and
 * is known by its number of layers. */
static void
finish_large_gemma(struct lmq_hparams *h,
                   const struct lmq_gguf_evidence *evidence, uint32_t n_layers)
{
    finish_gemma(h, evidence);
    if (h->n_layers == n_layers && h->n_heads != 0 && h->dim >= h->n_heads)
        h->attn_scale = 1 / sqrt((double)(h->dim / h->n_heads));
}

static void
finish_gemma2(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    finish_large_gemma(h, evidence, 46);
}

static void
finish_gemma3(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    finish_large_gemma(h, evidence, 62);
}

/* Files from before there was a key for it. */
static void
finish_phi3(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->sliding_window == 0 && h->context == 4096 &&
        (h->n_layers == 32 || h->n_layers == 40))
        h->sliding_window = 2047;
}

static void
finish_falcon(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    h->residual = evidence->has_second_norm ? LMQ_RESIDUAL_PARALLEL
                                            : LMQ_RESIDUAL_PARALLEL_ONE_NORM;
}

static void
finish_stablelm(struct lmq_hparams *h,
                const struct lmq_gguf_evidence *evidence)
{
    h->residual = evidence->has_ffn_norm ? LMQ_RESIDUAL_SEQUENTIAL
                                         : LMQ_RESIDUAL_PARALLEL_ONE_NORM;
}

/* Its third generation has windows, and scales only the layers without. */
static void
finish_olmo2(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->sliding_window != 0 && h->rope_local_theta <= 0)
        h->rope_local_theta = h->rope_theta;
}

static void
finish_smollm3(struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    for (uint32_t i = 3; i < h->n_layers && i < LMQ_MAX_LAYERS; i += 4)
        h->layers[i] |= LMQ_LAYER_STILL;
}

/* ---- The table ---- */

#define LLAMA_KEYS (LMQ_GGUF_RMS | LMQ_GGUF_ROPE)
#define GPT_KEYS (LMQ_GGUF_LAYER | LMQ_GGUF_ROPE)
#define LLAMA_BIASES                                                          \
    (LMQ_GGUF_BIAS_QKV | LMQ_GGUF_BIAS_OUT | LMQ_GGUF_BIAS_FFN)
#define GPT_BIASES (LMQ_GGUF_BIAS_NORM | LLAMA_BIASES)

/* What is not said is zero: an RMS norm before each half, one half after the
 * other, rotary positions in halves, SiLU. The first row of ours serves when
 * a model is written. */
static const struct lmq_gguf_family families[] = {
    {.name = "llama", .architecture = "llama", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS, .has_rotary_pairs = true,
     .begin = begin_mixture,
     .may_biases = LLAMA_BIASES},
    {.name = "qwen2", .architecture = "qwen2", .is_gated = true,
     .keys = LLAMA_KEYS,
     .must_biases = LMQ_GGUF_BIAS_QKV},
    {.name = "qwen2moe", .architecture = "qwen2moe", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM,
     .head = LMQ_GGUF_HEAD_MUST, .must_biases = LMQ_GGUF_BIAS_QKV},
    {.name = "qwen3", .architecture = "qwen3", .is_gated = true,
     .keys = LLAMA_KEYS, .qk_norm = LMQ_QK_NORM_HEAD},
    {.name = "qwen3moe", .architecture = "qwen3moe", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM,
     .qk_norm = LMQ_QK_NORM_HEAD, .begin = begin_mixture},
    {.name = "gemma", .architecture = "gemma", .is_gated = true,
     .keys = LLAMA_KEYS, .activation = LMQ_ACTIVATION_GELU_TANH,
     .finish = finish_gemma,
     .head = LMQ_GGUF_HEAD_NEVER},
    {.name = "gemma2", .architecture = "gemma2", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_CAPS,
     .norm_place = LMQ_NORMS_AROUND, .window_period = 2,
     .activation = LMQ_ACTIVATION_GELU_TANH, .begin = begin_gemma2,
     .finish = finish_gemma2,
     .head = LMQ_GGUF_HEAD_NEVER},
    {.name = "gemma3", .architecture = "gemma3", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_LOCAL | LMQ_GGUF_CAPS,
     .norm_place = LMQ_NORMS_AROUND, .window_period = 6,
     .qk_norm = LMQ_QK_NORM_HEAD, .activation = LMQ_ACTIVATION_GELU_TANH,
     .begin = begin_gemma3, .finish = finish_gemma3},
    {.name = "phi2", .architecture = "phi2", .keys = GPT_KEYS,
     .fuses_qkv = true, .norm = LMQ_NORM_LAYER,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     .activation = LMQ_ACTIVATION_GELU_TANH,
     .head = LMQ_GGUF_HEAD_MUST,
     .must_biases = GPT_BIASES | LMQ_GGUF_BIAS_HEAD},
    {.name = "phi3", .architecture = "phi3", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW, .fuses_qkv = true,
     .fuses_gate_up = true, .finish = finish_phi3,
     .head = LMQ_GGUF_HEAD_MUST},
    {.name = "gpt2", .architecture = "gpt2", .keys = LMQ_GGUF_LAYER,
     .fuses_qkv = true, .norm = LMQ_NORM_LAYER,
     .positions = LMQ_POSITIONS_LEARNED,
     .activation = LMQ_ACTIVATION_GELU_TANH,
     .head = LMQ_GGUF_HEAD_MUST, .must_biases = GPT_BIASES},
    {.name = "gptneox", .architecture = "gptneox",
     .keys = GPT_KEYS | LMQ_GGUF_PARALLEL, .fuses_qkv = true,
     .norm = LMQ_NORM_LAYER, .activation = LMQ_ACTIVATION_GELU,
     .head = LMQ_GGUF_HEAD_MUST, .must_biases = GPT_BIASES},
    {.name = "falcon", .architecture = "falcon", .keys = GPT_KEYS,
     .fuses_qkv = true, .norm = LMQ_NORM_LAYER,
     .activation = LMQ_ACTIVATION_GELU, .finish = finish_falcon,
     .must_biases = LMQ_GGUF_BIAS_NORM},
    {.name = "stablelm", .architecture = "stablelm", .is_gated = true,
     .keys = GPT_KEYS, .norm = LMQ_NORM_LAYER, .qk_norm = LMQ_QK_NORM_HEADS,
     .finish = finish_stablelm,
     .head = LMQ_GGUF_HEAD_MUST,
     .may_biases = LMQ_GGUF_BIAS_QKV, .must_biases = LMQ_GGUF_BIAS_NORM},
    {.name = "olmo", .architecture = "olmo", .is_gated = true,
     .keys = GPT_KEYS | LMQ_GGUF_CLIP, .has_rotary_pairs = true,
     .norm = LMQ_NORM_LAYER_PLAIN},
    {.name = "olmo2", .architecture = "olmo2", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_WINDOW | LMQ_GGUF_LOCAL,
     .norm_place = LMQ_NORMS_AFTER, .qk_norm = LMQ_QK_NORM_WHOLE,
     .window_period = 4, .finish = finish_olmo2,
     .head = LMQ_GGUF_HEAD_MUST},
    {.name = "granite", .architecture = "granite", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_SCALES, .has_rotary_pairs = true,
     .may_biases = LLAMA_BIASES},
    {.name = "command-r", .architecture = "cohere", .is_gated = true,
     .keys = GPT_KEYS | LMQ_GGUF_LOGIT, .has_rotary_pairs = true,
     .norm = LMQ_NORM_LAYER, .qk_norm = LMQ_QK_NORM_HEADS,
     .residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM,
     .head = LMQ_GGUF_HEAD_NEVER},
    {.name = "deepseek2", .architecture = "deepseek2", .is_gated = true,
     .keys = LLAMA_KEYS | LMQ_GGUF_EXPERTS | LMQ_GGUF_EXPERT_DIM |
             LMQ_GGUF_ROUTER | LMQ_GGUF_LATENT,
     .has_rotary_pairs = true,
     .head = LMQ_GGUF_HEAD_MUST},
    {.name = "smollm3", .architecture = "smollm3", .is_gated = true,
     .keys = LLAMA_KEYS, .has_rotary_pairs = true, .finish = finish_smollm3},
};

/* Ours that GGUF calls by another family's name. */
static const struct {
    const char *architecture, *name;
} likenesses[] = {
    {"mistral", "llama"},
    {"mixtral", "llama"},
};

#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

const struct lmq_gguf_family *
lmq_gguf_family(const unsigned char *name, size_t size)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strlen(families[i].name) == size &&
            memcmp(families[i].name, name, size) == 0)
            return &families[i];
    return NULL;
}

const struct lmq_gguf_family *
lmq_gguf_family_for(const char *architecture)
{
    for (size_t i = 0; i < sizeof(likenesses) / sizeof(likenesses[0]); i++)
        if (strcmp(likenesses[i].architecture, architecture) == 0)
            architecture = likenesses[i].name;
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].architecture, architecture) == 0)
            return &families[i];
    return NULL;
}
