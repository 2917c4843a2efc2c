/*
 * export_gguf_limits.c - what llama.cpp takes for granted about models of an
 * architecture, and does not look for in the file.
 *
 * Such a GGUF is a good one, and other readers may take it, so these are
 * remarks and no refusals; but for the last ones. Read from its loader, by the
 * numbers of layers and widths that it asks for.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "formats/model/pools.h"
#include "formats/model/rope_scaling.h"

/* All heads together must be as wide as the model. */
static const char *const of_its_width[] = {
    "baichuan", "bailingmoe2", "bitnet", "bloom", "chatglm", "codeshell",
    "cohere2", "command-r", "dbrx", "deepseek", "exaone4", "falcon", "gpt2",
    "gptneox", "jais", "jamba", "lfm2", "lfm2moe", "mpt", "nemotron", "olmo",
    "olmo2", "olmoe", "orion", "phi2", "phi3", "qwen", "qwen2", "qwen2moe",
    "stablelm", "starcoder2", "xverse", NULL,
};

/* Those in which it finds factors of frequencies that always count, and those
 * in which it finds the ones of longrope. */
static const char *const has_factors[] = {
    "apertus", "arcee", "deci", "exaone", "exaone-moe", "exaone4",
    "falcon-h1", "gemma4", "granite", "granite_swa", "granitehybrid",
    "granitemoe", "llama", "llama4", "minicpm", "mistral3", "nanbeige",
    "step35", NULL,
};
static const char *const has_long_factors[] = {
    "apertus", "granite", "granite_swa", "granitemoe", "llama", "minicpm",
    "minicpm3", "mistral3", "phi3", NULL,
};

/* State spaces must be twice as wide as the model. */
static const char *const has_wide_states[] = {
    "granitehybrid", "jamba", "mamba", NULL,
};

/* One layer at least must recur. */
static const char *const is_hybrid[] = {
    "lfm2", "lfm2moe", "qwen35", "qwen35moe", "qwen3next", NULL,
};

/* Layers of the one that has windows. */
#define EXAONE_WINDOWED 64
/* It takes its models with so many layers for those with norms of queries. */
#define COMMAND_R_NORMED 64

static bool
is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* Those of DeepSeek's makers whose queries have no latents, by their sizes. */
static bool
is_lite(const struct lmq_hparams *h)
{
    return h->n_layers == 26 || h->n_layers == 27 ||
           (h->n_layers == 48 && h->vocab_size == 128256);
}

static uint32_t
count_attention(const struct lmq_hparams *h)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        n += lmq_layer_has_attention(h, i);
    return n;
}

/* Those of state spaces it adds without a look. */
static bool
lacks_state_bias(const struct lmq_gguf_plan *plan)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    bool has_states = false;

    for (uint32_t i = 0; i < plan->written.n_layers; i++)
        has_states |= lmq_layer_is(&plan->written, i, LMQ_LAYER_DELTA);
    if (!has_states || !lmq_is_state_space(&plan->written))
        return false;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].place.role == LMQ_ROLE_DELTA_CONV &&
            checkpoint->tensors[i].place.part == LMQ_PART_BIAS)
            return false;
    return true;
}

static void
note_sizes(const struct lmq_gguf_plan *plan, const char *name)
{
    const struct lmq_hparams *h = &plan->written;
    uint64_t width = (uint64_t)h->n_heads * h->head_dim;

    if (count_attention(h) == 0 && strncmp(name, "mamba", 5) != 0)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants attention "
                      "in one layer at least",
                      name);
    else if (is_one_of(name, of_its_width) && width != h->dim)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants heads that "
                      "are as wide as the model together, %u, not %llu",
                      name, h->dim, (unsigned long long)width);
    if (is_one_of(name, has_wide_states) &&
        lmq_delta_value_width(h) != 2 * (size_t)h->dim)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants state "
                      "spaces twice as wide as the model, %u, not %zu",
                      name, 2 * h->dim, lmq_delta_value_width(h));
    if (is_one_of(name, is_hybrid) && count_attention(h) == h->n_layers)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants a "
                      "convolution in one layer at least",
                      name);
    if ((strcmp(name, "granite_swa") == 0 ||
         strcmp(name, "cohere2moe") == 0 || strcmp(name, "mimo2") == 0 ||
         strcmp(name, "step35") == 0) &&
        h->sliding_window == 0)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants windows",
                      name);
    if (strcmp(name, "kimi-linear") == 0 && h->q_lora_rank > 0)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants queries "
                      "without latents",
                      name);
    if (lacks_state_bias(plan))
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants "
                      "convolutions with biases",
                      name);
    if (strcmp(name, "dots1") == 0 && h->n_kv_heads != h->n_heads)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants as many "
                      "heads of keys as of queries, %u, not %u",
                      name, h->n_heads, h->n_kv_heads);
    if (strcmp(name, "command-r") == 0 &&
        (h->qk_norm != LMQ_QK_NORM_NONE) != (h->n_layers >= COMMAND_R_NORMED))
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it has norms of "
                      "queries from %d layers on, and never with fewer",
                      name, COMMAND_R_NORMED);
    if ((strcmp(name, "deepseek2") == 0 || strcmp(name, "mistral4") == 0) &&
        (h->q_lora_rank == 0) != is_lite(h))
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it has queries "
                      "without latents with 26, 27 or 48 layers, and with "
                      "latents else",
                      name);
}

static void
note_other(const struct lmq_gguf_plan *plan, const char *name,
           const char *what)
{
    lmq_notes_add(plan->notes,
                  "llama.cpp computes something else than this '%s': it %s",
                  name, what);
}

static bool
other_than(double x, double expected)
{
    return fabs(x - expected) > 1e-6 * fabs(expected);
}

/* Of several streams, all that is in its code and no key. */
#define STREAMS 4
#define STREAM_INPUT 256
#define STREAM_RANK 64
#define STREAM_OWN_KEYS 20 /* layers with keys and values */
#define STREAM_SPARSE 10
#define STREAM_CUT 1.6448536

static void
note_streams(const struct lmq_gguf_plan *plan, const char *name)
{
    const struct lmq_hparams *h = &plan->written;
    uint32_t own = h->n_layers < STREAM_OWN_KEYS ? h->n_layers
                                                 : STREAM_OWN_KEYS;
    bool has_other_cuts = other_than(h->sparse_cut, STREAM_CUT);
    bool has_other_lenders = h->n_layers - h->n_borrowing != own;

    if ((plan->family->gguf.keys & LMQ_GGUF_STREAMS) == 0)
        return;
    if (h->n_streams != STREAMS || h->layer_input_dim != STREAM_INPUT ||
        h->residual_rank != STREAM_RANK || h->layer_input_vocab > 0)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants %d "
                      "streams, inputs of layers of %d numbers for each token "
                      "and a residual of rank %d",
                      name, STREAMS, STREAM_INPUT, STREAM_RANK);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        has_other_cuts |= lmq_layer_is_sparse(h, i) != (i < STREAM_SPARSE);
        has_other_lenders |=
            lmq_layer_borrows(h, i) &&
            lmq_layer_kv_source(h, i) +
                    (lmq_layer_is(h, i, LMQ_LAYER_FULL) ? 1 : 2) != own;
    }
    if (has_other_cuts)
        note_other(plan, name, "takes the first 10 layers for sparse, and "
                               "lets a twentieth of their numbers go on");
    if (has_other_lenders)
        note_other(plan, name, "lets the layers from number 20 on look at "
                               "keys and values of the two before");
    if (other_than(h->logit_softcap, 30))
        note_other(plan, name, "caps logits at 30");
}

/* mscale_all_dim, and mscale: by what the scores of latent attention say. */
static double
scale_of_all(const struct lmq_hparams *h)
{
    double gain = sqrt(h->attn_scale * sqrt((double)h->head_dim));

    return h->rope_factor > 1 ? (gain - 1) / (0.1 * log(h->rope_factor)) : 1;
}

/* It turns what chooses by matrices of this size at least. */
#define INDEX_UNIT 64

/* Those of hyper-connections; and what must be there beside them. */
static void
note_hyper(const struct lmq_gguf_plan *plan, const char *name)
{
    const struct lmq_hparams *h = &plan->written;

    if ((plan->family->gguf.keys & LMQ_GGUF_HYPER) == 0)
        return;
    if (h->n_streams != STREAMS)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants %d streams, "
                      "not %u",
                      name, STREAMS, h->n_streams);
    if (h->n_experts > 0 && !h->router_corrects)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it wants routers "
                      "with a correction",
                      name);
}

static void
note_index(const struct lmq_gguf_plan *plan, const char *name)
{
    const struct lmq_hparams *h = &plan->written;

    if (h->index_dim % INDEX_UNIT != 0)
        lmq_notes_add(plan->notes,
                      "llama.cpp does not compute this '%s': it wants what "
                      "chooses %s in multiples of %d dimensions, not %u",
                      name, lmq_has_pools(h) ? "pools" : "positions",
                      INDEX_UNIT, h->index_dim);
}

static void
note_rope(const struct lmq_gguf_plan *plan, const char *name)
{
    const struct lmq_hparams *h = &plan->written;
    const bool is_yarn = h->rope_scaling == LMQ_ROPE_YARN;
    const bool has_ramp = is_yarn && other_than(h->rope_factor, 1);

    if ((h->rope_scaling == LMQ_ROPE_FACTORS &&
         !is_one_of(name, has_factors)) ||
        (h->rope_scaling == LMQ_ROPE_LONGROPE &&
         !is_one_of(name, has_long_factors)))
        lmq_notes_add(plan->notes,
                      "llama.cpp does not load this '%s': it knows no factors "
                      "of frequencies there",
                      name);
    if (h->rope_scaling == LMQ_ROPE_FACTORS && strcmp(name, "falcon-h1") == 0)
        note_other(plan, name, "leaves out the factors of frequencies");
    if (has_ramp && strcmp(name, "mistral3") != 0 &&
        (other_than(h->rope_beta_fast, 32) || other_than(h->rope_beta_slow, 1)))
        note_other(plan, name,
                   "takes 32 and 1 for where the ramp of YaRN begins and "
                   "ends");
    if (strcmp(name, "kimi-linear") == 0 && h->n_experts > 0 &&
        !h->router_renormalises)
        note_other(plan, name, "lets weights of experts sum to 1");
    if (strcmp(name, "olmo2") == 0 && h->sliding_window > 0 &&
        h->rope_local_theta > 0 &&
        other_than(h->rope_local_theta, h->rope_theta))
        note_other(plan, name, "has one base for windows and all");
    if (is_yarn && (plan->family->gguf.keys & LMQ_GGUF_LATENT) != 0 &&
        strcmp(name, "deepseek2") != 0 && strcmp(name, "deepseek32") != 0 &&
        other_than(scale_of_all(h), 1))
        note_other(plan, name, "takes 1 for mscale");
    if (is_yarn && (plan->family->gguf.keys & LMQ_GGUF_POOLS) != 0 &&
        other_than(h->rope_attention_factor, 1))
        note_other(plan, name, "takes 1 for the attention factor");
    if (is_yarn && strcmp(name, "gemma3") == 0 && h->sliding_window > 0 &&
        other_than(h->rope_attention_factor,
                   lmq_rope_yarn_gain(h->rope_factor, 1)))
        note_other(plan, name,
                   "heeds the attention factor in layers with windows, too");
    if (has_ramp && h->rope_ramp_exact)
        lmq_notes_add(plan->notes,
                      "llama.cpp rounds where the ramp of YaRN begins and "
                      "ends, which this model does not: it computes somewhat "
                      "else");
}

/* GGUF does not say how decays differ from layer to layer: llama.cpp computes
 * it as the makers of MiniMax 01 do, and the library has it by a part in 100000
 * otherwise. */
void
lmq_gguf_fit_decays(struct lmq_gguf_plan *plan)
{
    struct lmq_hparams *h = &plan->written, usual = *h;

    lmq_decays_by_layer(&usual);
    if (lmq_is_lightning(h) && !other_than(h->decay_first, usual.decay_first) &&
        fabs(h->decay_step - usual.decay_step) < 2e-5 * usual.decay_step)
        h->decay_step = usual.decay_step;
}

void
lmq_gguf_note_limits(const struct lmq_gguf_plan *plan)
{
    const struct lmq_hparams *h = &plan->written;
    const char *name = plan->family->gguf.name;

    note_sizes(plan, name);
    if (strcmp(name, "exaone4") == 0 &&
        (h->sliding_window > 0) != (h->n_layers == EXAONE_WINDOWED))
        lmq_notes_add(plan->notes,
                      "llama.cpp computes something else than this '%s': it "
                      "has windows, and layers without positions, with %d "
                      "layers and never with others",
                      name, EXAONE_WINDOWED);
    if (strcmp(name, "phi3") == 0 && h->sliding_window > 0 &&
        h->sliding_window < h->context)
        lmq_notes_add(plan->notes,
                      "llama.cpp leaves out the window of '%s': beyond %u "
                      "tokens it computes something else",
                      name, h->sliding_window);
    if (strcmp(name, "glm4moe") == 0 && h->n_experts > 0 && h->shared_dim == 0)
        note_other(plan, name, "computes shared experts where there are none");
    if (strcmp(name, "mimo2") == 0 &&
        (other_than(h->router_scale, 1) || !h->router_renormalises))
        note_other(plan, name, "has weights of experts that sum to 1");
    if (strcmp(name, "bitnet") == 0 && h->activation != LMQ_ACTIVATION_SILU)
        lmq_notes_add(plan->notes,
                      "llama.cpp before August 2026 computes something else "
                      "than this '%s': it takes SiLU for its activation",
                      name);
    note_streams(plan, name);
    note_hyper(plan, name);
    note_index(plan, name);
    for (uint32_t i = 0; strcmp(name, "deci") == 0 && i < h->n_layers; i++)
        if (lmq_layer_mixes(h, i) && !lmq_layer_has_feed(h, i)) {
            note_other(plan, name,
                       "leaves out the attention of layers without a "
                       "feed-forward");
            break;
        }
    if (strcmp(name, "laguna") == 0 && h->full_rotary_dim > 0 &&
        !lmq_layer_is(h, 0, LMQ_LAYER_FULL))
        note_other(plan, name,
                   "lets as much of a head turn in layers without windows as "
                   "in the first layer");
    note_rope(plan, name);
}

enum lmq_status
lmq_gguf_may_write(const struct lmq_family *family, struct lmq_error *err)
{
    const struct lmq_gguf_form *form = &family->gguf;

    if (form->why_not != NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF's '%s' is neither read nor written: %s",
                        form->name, form->why_not);
    if (form->is_only_read)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF's '%s' has tensors that are left out here: what "
                        "sparse attention chooses by",
                        form->name);
    return LMQ_OK;
}
