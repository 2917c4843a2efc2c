/*
 * sides.c - what memory a walk in lock-step takes.
 */
#include "config.h"

#include "validate/lockstep/sides.h"

#include <math.h>

#include "base/error.h"
#include "base/size.h"
#include "base/threads/threads.h"

size_t
lmq_lockstep_longest(const struct lmq_lockstep *in)
{
    const struct lmq_window *windows =
        in->corpus->windows + in->first_window;
    size_t longest = 1;

    for (size_t i = 0; i < in->n_windows; i++)
        longest = windows[i].n > longest ? windows[i].n : longest;
    return longest;
}

static size_t
work_tokens(size_t longest)
{
    return lmq_size_min(longest, LMQ_WORK_TOKENS);
}

bool
lmq_lockstep_has_kv(const struct lmq_lockstep *in, enum lmq_kv_type type)
{
    for (size_t i = 0; i < in->n_sides && in->sides != NULL; i++)
        if (in->sides[i].kv_type == type)
            return true;
    return in->sides == NULL;
}

static double
kv_bytes(const struct lmq_lockstep *in, size_t context)
{
    double sum = 0;

    for (int type = 0; type < LMQ_KV_TYPES; type++)
        if (lmq_lockstep_has_kv(in, (enum lmq_kv_type)type))
            sum += lmq_kv_bytes(in->models[0], LMQ_ANY_LAYER,
                                (enum lmq_kv_type)type, context);
    return sum;
}

static const struct lmq_hparams *
hparams_of(const struct lmq_lockstep *in)
{
    return &in->models[0]->hparams;
}

/* What each window keeps of each side from layer to layer. */
static double
window_bytes(const struct lmq_lockstep *in, size_t context)
{
    const struct lmq_hparams *h = hparams_of(in);
    double sum = 0;
    double row =
        (double)(h->dim + lmq_streams_width(h) + lmq_inputs_width(h));

    for (size_t side = 0; side < in->n_sides; side++) {
        enum lmq_kv_type type =
            in->sides == NULL ? LMQ_KV_F32 : in->sides[side].kv_type;
        sum += (double)context *
                   (4 * row + (double)lmq_kept_choice(h, context)) +
               lmq_kv_lent_bytes(in->models[0], type, context);
    }
    return sum;
}

struct lmq_model
lmq_lockstep_widest(const struct lmq_lockstep *in)
{
    struct lmq_model widest = *in->models[in->n_models - 1];

    for (size_t i = 0; i < in->n_models; i++)
        widest.is_int8 |= in->models[i]->is_int8;
    widest.is_int8 |= in->has_integers;
    return widest;
}

static double
largest_layer(const struct lmq_model *model)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        uint64_t n = lmq_model_layer_bytes(model, i);
        largest = n > largest ? n : largest;
    }
    return (double)largest;
}

/* What stays of a model from the first layer to the last. */
static double
end_bytes(const struct lmq_model *model)
{
    bool has_copy =
        model->embedding.is_copied && model->head.tensor != NULL;

    double streams = 0;

    for (uint32_t i = 0; i < lmq_guessed_streams(&model->hparams); i++)
        streams += (double)lmq_matrix_bytes(&model->streams_in[i]) +
                   (double)lmq_matrix_bytes(&model->streams_out[i]);
    if (lmq_has_gated_streams(&model->hparams))
        streams += (double)lmq_matrix_bytes(&model->gated.down) +
                   (double)lmq_matrix_bytes(&model->gated.up);
    return (double)lmq_matrix_bytes(&model->head) + streams +
           (double)lmq_matrix_bytes(&model->inputs_proj) +
           (model->inputs.is_copied ? (double)lmq_matrix_bytes(&model->inputs)
                                    : 0) +
           (has_copy ? (double)lmq_matrix_bytes(&model->embedding) : 0);
}

/* Layers come and go: one of the reference, and beside it one of another. */
static double
weight_bytes(const struct lmq_lockstep *in)
{
    double ends = end_bytes(in->models[0]), layer = 0;

    for (size_t i = 1; i < in->n_models; i++) {
        layer = fmax(layer, largest_layer(in->models[i]));
        ends += end_bytes(in->models[i]);
    }
    return largest_layer(in->models[0]) + layer + ends;
}

size_t
lmq_lockstep_batch(const struct lmq_lockstep *in, struct lmq_error *err)
{
    const struct lmq_hparams *h = hparams_of(in);
    struct lmq_model widest = lmq_lockstep_widest(in);
    size_t longest = lmq_lockstep_longest(in);
    double threads = lmq_threads(in->threads, 256);
    double head = (double)h->vocab_size *
                  (2 * (double)LMQ_HEAD_ROWS * 4 + threads * 16);
    double fixed =
        lmq_work_bytes(&widest, work_tokens(longest), longest, in->threads) +
        kv_bytes(in, longest) + head + weight_bytes(in);
    double context = (double)longest;
    double window = window_bytes(in, longest);
    double room = ((double)in->memory - fixed) / window;

    if (room < 1) {
        lmq_fail(err, LMQ_ERR_NOMEM, 0,
                 "a memory of %.3g MB is too small: %.1f MB are needed for "
                 "windows of %.0f tokens through %zu models",
                 1e-6 * (double)in->memory,
                 0.1 * ceil(1e-5 * (fixed + window)), context, in->n_sides);
        lmq_hint(err, "a larger .memory, or a smaller .context");
        return 0;
    }
    size_t batch = room < LMQ_BATCH_MAX ? (size_t)room : LMQ_BATCH_MAX;
    return lmq_size_min(batch, in->n_windows);
}
