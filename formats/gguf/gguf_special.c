/*
 * gguf_special.c - keys that say more than a number (heads of latent
 * attention, layers with and without a window, experts), and what single
 * families imply without any key.
 */
#include "config.h"

#include "formats/gguf/gguf_special.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "formats/gguf/gguf_reader.h"

/* ---- Layers for more tokens at once ---- */

enum lmq_status
lmq_gguf_read_further_layers(struct lmq_gguf_reader *r)
{
    uint32_t n = 0;
    enum lmq_status status = LMQ_OK;

    if (r->family->gguf.keys & LMQ_GGUF_FURTHER)
        status = lmq_gguf_read_count(r, "nextn_predict_layers", &n);
    if (status == LMQ_OK && n > 0 && n >= r->h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %u of %u layers are for further tokens", n,
                        r->h->n_layers);
    if (status == LMQ_OK)
        r->h->n_layers -= n;
    r->source->n_further_layers = n;
    return status;
}

/* ---- Heads ---- */

/* Files since attention on latents is known count as if it had one key head
 * of the width of latents; what heads really are is under other keys. */
enum lmq_status
lmq_gguf_read_heads(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    enum lmq_status status = LMQ_OK;

    if (h->n_kv_heads == 0)
        h->n_kv_heads = h->n_heads;
    if (h->n_heads == 0 || (h->head_dim == 0 && h->dim % h->n_heads != 0))
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %u dimensions cannot be shared by %u heads",
                        h->dim, h->n_heads);
    if (r->family->gguf.keys & LMQ_GGUF_LATENT) {
        bool has_mla = lmq_gguf_has_key(r, "attention.key_length_mla");
        status =
            lmq_gguf_read_count(r, "attention.key_length_mla", &h->head_dim);
        if (status == LMQ_OK)
            status = lmq_gguf_read_count(r, "attention.value_length_mla",
                                         &h->value_dim);
        if (has_mla)
            h->n_kv_heads = h->n_heads;
        if (!r->evidence->has_query_latents)
            h->q_lora_rank = 0;
    }
    if (h->head_dim == 0)
        h->head_dim = h->dim / h->n_heads;
    return status;
}

void
lmq_gguf_write_heads(struct lmq_gguf_builder *builder,
                     const struct lmq_hparams *h)
{
    lmq_gguf_put_u32(builder, ".attention.key_length_mla", h->head_dim);
    lmq_gguf_put_u32(builder, ".attention.value_length_mla",
                     lmq_hparams_value_dim(h));
}

/* ---- Windows ---- */

/* Only that there are none can be said of them; then all layers turn. */
static enum lmq_status
read_chunk(struct lmq_gguf_reader *r)
{
    uint32_t window = 1;
    enum lmq_status status =
        lmq_gguf_read_count(r, "attention.sliding_window", &window);

    if (window == 0) {
        r->h->attention_chunk = 0;
        r->h->score_growth = 0;
    }
    return status;
}

/* Booleans, which llama.cpp's converter writes as integers now and then. */
enum lmq_status
lmq_gguf_read_marks(struct lmq_gguf_reader *r, const char *name,
                    enum lmq_layer_kind kind, bool marked_by)
{
    const struct lmq_gguf_value *list =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));

    if (list == NULL)
        return LMQ_OK;
    if (list->type != LMQ_GGUF_ARRAY ||
        (list->item_type != LMQ_GGUF_BOOL &&
         list->item_type != LMQ_GGUF_I32 && list->item_type != LMQ_GGUF_U32) ||
        list->count < r->h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no boolean for each of %u layers",
                        r->key, r->h->n_layers);
    for (uint32_t i = 0; i < r->h->n_layers; i++)
        if ((lmq_gguf_item_int(list, i) != 0) == marked_by)
            r->h->layers[i] |= (uint32_t)kind;
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_read_window(struct lmq_gguf_reader *r)
{
    static const char key[] = "attention.sliding_window_pattern";
    struct lmq_hparams *h = r->h;
    uint32_t period = r->family->window_period;
    const struct lmq_gguf_value *pattern =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, key));
    enum lmq_status status = LMQ_OK;

    if (r->family->gguf.keys & LMQ_GGUF_CHUNK)
        return read_chunk(r);
    if (r->family->gguf.has_turns)
        status = lmq_gguf_read_marks(r, "attention.rope_pattern",
                                     LMQ_LAYER_NOPE, false);
    if (h->sliding_window == 0 || status != LMQ_OK)
        return status;
    if (pattern != NULL && pattern->type == LMQ_GGUF_ARRAY)
        return lmq_gguf_read_marks(r, key, LMQ_LAYER_FULL, false);
    status = lmq_gguf_read_count(r, key, &period);
    if (period > 0)
        for (uint64_t i = r->family->gguf.has_full_first ? 0 : period - 1;
             i < h->n_layers; i += period)
            h->layers[i] |= LMQ_LAYER_FULL;
    return status;
}

void
lmq_gguf_write_marks(struct lmq_gguf_builder *builder, const char *key,
                     const struct lmq_hparams *h, enum lmq_layer_kind kind,
                     bool marked_by)
{
    lmq_gguf_put_array(builder, key, LMQ_GGUF_BOOL, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_bool(builder, lmq_layer_is(h, i, kind) == marked_by);
}

/* Only where it is not what the family implies, and then as a period, unless
 * llama.cpp takes lists. */
void
lmq_gguf_write_window(struct lmq_gguf_builder *builder,
                      const struct lmq_family *family,
                      const struct lmq_hparams *h)
{
    uint32_t period = 1;

    if ((family->gguf.keys & LMQ_GGUF_CHUNK) != 0) {
        if (h->attention_chunk == 0)
            lmq_gguf_put_u32(builder, ".attention.sliding_window", 0);
        return;
    }
    if ((family->gguf.keys & LMQ_GGUF_LISTS) != 0) {
        lmq_gguf_write_marks(builder, ".attention.sliding_window_pattern", h,
                             LMQ_LAYER_FULL, false);
        if (family->gguf.has_turns)
            lmq_gguf_write_marks(builder, ".attention.rope_pattern", h,
                                 LMQ_LAYER_NOPE, false);
        return;
    }
    while (period <= h->n_layers &&
           !lmq_layer_is(h, period - 1, LMQ_LAYER_FULL))
        period++;
    if (h->sliding_window == 0 || period > h->n_layers ||
        period == family->window_period)
        return;
    lmq_gguf_put_u32(builder, ".attention.sliding_window_pattern", period);
}

/* ---- ALiBi ---- */

/* The exponent of the least steep head. */
#define ALIBI_BIAS 8

/* Without it there is none: such models have a table, or no positions. */
enum lmq_status
lmq_gguf_read_alibi(struct lmq_gguf_reader *r)
{
    double bias = 0;
    enum lmq_status status = LMQ_OK;

    if ((r->family->gguf.keys & LMQ_GGUF_ALIBI) == 0)
        return LMQ_OK;
    status = lmq_gguf_read_number(r, "attention.max_alibi_bias", &bias);
    if (status == LMQ_OK && (bias < ALIBI_BIAS || bias > ALIBI_BIAS))
        lmq_hparams_refuse(r->h, "attention.max_alibi_bias %g", bias);
    return status;
}

void
lmq_gguf_write_alibi(struct lmq_gguf_builder *builder,
                     const struct lmq_hparams *h)
{
    lmq_gguf_put_f32(builder, ".attention.max_alibi_bias",
                     h->positions == LMQ_POSITIONS_ALIBI ? ALIBI_BIAS : 0);
}

/* ---- Experts ---- */

enum {
    GATING_UNSAID,
    GATING_SOFTMAX,
    GATING_SIGMOID,
    GATING_CHOSEN,
    GATING_ROOT_SOFTPLUS
};

/* How many layers stand before the first with a router; none without one. */
static uint32_t
count_before_routers(const struct lmq_gguf_reader *r)
{
    for (uint32_t i = 0; i < r->h->n_layers; i++)
        if (r->evidence->has_router[i])
            return i;
    return 0;
}

/* The first layers may be dense, as many as have no router if no key says it
 * and no step; and then those that are not in the step. */
static enum lmq_status
read_dense_layers(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    uint64_t keys = r->family->gguf.keys;
    bool is_told = (keys & (LMQ_GGUF_STEP | LMQ_GGUF_HALVES)) != 0;
    uint32_t n_dense = is_told ? 0 : count_before_routers(r), step = 1;
    enum lmq_status status =
        lmq_gguf_read_count(r, "leading_dense_block_count", &n_dense);

    if (status == LMQ_OK && (keys & LMQ_GGUF_STEP) != 0)
        status = lmq_gguf_read_count(r, "interleave_moe_layer_step", &step);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (i < n_dense || step == 0 || (i + 1) % step != 0)
            h->layers[i] |= LMQ_LAYER_DENSE;
    return status;
}

static enum lmq_status
read_router(struct lmq_gguf_reader *r)
{
    static const enum lmq_router kinds[] = {
        [GATING_SOFTMAX] = LMQ_ROUTER_SOFTMAX,
        [GATING_SIGMOID] = LMQ_ROUTER_SIGMOID,
        [GATING_CHOSEN] = LMQ_ROUTER_SOFTMAX_CHOSEN,
        [GATING_ROOT_SOFTPLUS] = LMQ_ROUTER_ROOT_SOFTPLUS,
    };
    struct lmq_hparams *h = r->h;
    uint32_t gating = GATING_UNSAID, n_shared = 0;
    enum lmq_status status =
        lmq_gguf_read_count(r, "expert_gating_func", &gating);

    if (status == LMQ_OK)
        status = lmq_gguf_get_bool(r->meta,
                                   lmq_gguf_key_of(r, "expert_weights_norm"),
                                   &h->router_renormalises, r->err);
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, "expert_shared_count", &n_shared);
    if (status != LMQ_OK)
        return status;
    if (gating > GATING_ROOT_SOFTPLUS)
        lmq_hparams_refuse(h, "expert_gating_func %u", gating);
    else if (gating != GATING_UNSAID) /* or the family's own */
        h->router = kinds[gating];
    if ((uint64_t)n_shared * h->expert_dim > LMQ_MAX_WIDTH)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %u shared experts of %u dimensions", n_shared,
                        h->expert_dim);
    if (h->shared_dim == 0) /* or it is said itself */
        h->shared_dim = n_shared * h->expert_dim;
    h->router_corrects = r->evidence->has_correction;
    h->expert_group_score = LMQ_GROUP_SCORE_BEST_TWO;
    return LMQ_OK;
}

/* Layers in no step make no difference to the number of the first. */
void
lmq_gguf_write_dense_layers(struct lmq_gguf_builder *builder,
                            const struct lmq_family *family,
                            const struct lmq_hparams *h)
{
    uint32_t first = 0, second = 0, step = 1;

    while (first < h->n_layers && !lmq_layer_has_experts(h, first))
        first++;
    for (second = first + 1; second < h->n_layers; second++)
        if (lmq_layer_has_experts(h, second))
            break;
    if ((family->gguf.keys & LMQ_GGUF_STEP) != 0) {
        step = second < h->n_layers ? second - first : first + 1;
        lmq_gguf_put_u32(builder, ".interleave_moe_layer_step", step);
    }
    if (first < step && (family->gguf.keys & LMQ_GGUF_STEP) != 0)
        first = 0;
    lmq_gguf_put_u32(builder, ".leading_dense_block_count", first);
}

void
lmq_gguf_write_router(struct lmq_gguf_builder *builder,
                      const struct lmq_hparams *h)
{
    static const uint32_t gatings[LMQ_ROUTER_COUNT] = {
        [LMQ_ROUTER_SOFTMAX] = GATING_SOFTMAX,
        [LMQ_ROUTER_SOFTMAX_CHOSEN] = GATING_CHOSEN,
        [LMQ_ROUTER_SIGMOID] = GATING_SIGMOID,
        [LMQ_ROUTER_ROOT_SOFTPLUS] = GATING_ROOT_SOFTPLUS,
    };

    lmq_gguf_put_u32(builder, ".expert_shared_count",
                     h->expert_dim == 0 ? 0 : h->shared_dim / h->expert_dim);
    lmq_gguf_put_bool(builder, ".expert_weights_norm", h->router_renormalises);
    lmq_gguf_put_u32(builder, ".expert_gating_func", gatings[h->router]);
}

enum lmq_status
lmq_gguf_read_experts(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    uint32_t used = h->n_experts_used;

    if (h->n_experts == 0) {
        h->expert_dim = 0; /* which may be said nevertheless */
        return LMQ_OK;
    }
    if (!(r->family->gguf.keys & LMQ_GGUF_EXPERT_DIM))
        h->expert_dim = h->hidden_dim;
    else if (h->expert_dim == 0 && used > 0)
        h->expert_dim = h->hidden_dim / used;
    if (h->hidden_dim == 0) /* all layers have experts */
        h->hidden_dim = h->expert_dim;
    if (r->family->gguf.keys & (LMQ_GGUF_ROUTER | LMQ_GGUF_STEP)) {
        enum lmq_status status = read_dense_layers(r);
        if (status != LMQ_OK)
            return status;
    }
    if (r->family->gguf.keys & LMQ_GGUF_ROUTER)
        return read_router(r);
    /* Qwen2's shared expert is as wide as a whole feed-forward by default. */
    if (strcmp(r->family->gguf.name, "qwen2moe") == 0 && h->shared_dim == 0)
        h->shared_dim = h->hidden_dim;
    return LMQ_OK;
}

/* ---- Single families: before the keys ---- */

void
lmq_gguf_begin_mixture(struct lmq_hparams *h)
{
    h->router_renormalises = true;
}

void
lmq_gguf_begin_gemma2(struct lmq_hparams *h)
{
    h->attn_softcap = 50;
    h->logit_softcap = 30;
    h->sliding_window = 4096;
}

void
lmq_gguf_begin_gemma3(struct lmq_hparams *h)
{
    h->rope_local_theta = 10000;
}

void
lmq_gguf_begin_gemma4(struct lmq_hparams *h)
{
    h->logit_softcap = 30;
}

void
lmq_gguf_begin_gptoss(struct lmq_hparams *h)
{
    h->has_sinks = true;
    h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
    h->activation_slope = 1.702;
    h->glu_limit = 7;
    h->glu_offset = 1;
}

/* What has no key stands in llama.cpp's code. */
void
lmq_gguf_begin_llama4(struct lmq_hparams *h)
{
    h->qk_norm = LMQ_QK_NORM_BARE; /* there is no tensor for it */
    h->qk_norm_late = true;
    h->router = LMQ_ROUTER_SIGMOID;
    h->router_scales_input = true;
    h->attention_chunk = 8192;
    h->score_growth = 0.1;
    h->score_growth_period = 8192;
    h->score_growth_shift = 1;
    h->score_growth_still = true;
}

void
lmq_gguf_begin_bitnet(struct lmq_hparams *h)
{
    h->has_sub_norms = true;
    h->activation = LMQ_ACTIVATION_SILU;
}

void
lmq_gguf_begin_sigmoid(struct lmq_hparams *h)
{
    h->router = LMQ_ROUTER_SIGMOID;
}

void
lmq_gguf_begin_sigmoid_mixture(struct lmq_hparams *h)
{
    lmq_gguf_begin_sigmoid(h);
    lmq_gguf_begin_mixture(h);
}

void
lmq_gguf_begin_hunyuan(struct lmq_hparams *h)
{
    h->qk_norm_late = true;
}

void
lmq_gguf_begin_spark(struct lmq_hparams *h)
{
    h->has_attn_gate = h->has_head_gate = true;
}

void
lmq_gguf_begin_hunyuan_experts(struct lmq_hparams *h)
{
    lmq_gguf_begin_hunyuan(h);
    lmq_gguf_begin_mixture(h);
}

void
lmq_gguf_begin_granite_experts(struct lmq_hparams *h)
{
    h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
}

void
lmq_gguf_begin_granite_windows(struct lmq_hparams *h)
{
    lmq_gguf_begin_granite_experts(h);
    h->has_sinks = true;
}

/* For the first files, which do not say it: what all models had then. */
void
lmq_gguf_begin_minicpm(struct lmq_hparams *h)
{
    h->embedding_scale = 12;
    h->residual_scale = h->logit_scale = 0; /* by size: finish_minicpm() */
}

/* ---- Single families: after them ---- */

void
lmq_gguf_finish_minicpm(struct lmq_hparams *h,
                        const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (!(h->residual_scale > 0) && h->n_layers > 0)
        h->residual_scale = 1.4 / sqrt((double)h->n_layers);
    if (!(h->logit_scale > 0) && h->dim > 0)
        h->logit_scale = 256.0 / h->dim;
}

void
lmq_gguf_finish_minicpm3(struct lmq_hparams *h,
                         const struct lmq_gguf_evidence *evidence)
{
    lmq_gguf_begin_minicpm(h);
    lmq_gguf_finish_minicpm(h, evidence);
    if (h->value_dim == 0 && h->n_heads > 0)
        h->value_dim = h->dim / h->n_heads;
}

/* The one with 128 experts has no norms of queries and keys. */
void
lmq_gguf_finish_llama4(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->n_experts == 128)
        h->qk_norm = LMQ_QK_NORM_NONE;
    h->shared_dim = h->expert_dim;
    for (uint32_t i = 3; i < h->n_layers; i += 4)
        if (h->attention_chunk > 0)
            h->layers[i] |= LMQ_LAYER_NOPE | LMQ_LAYER_FULL;
}

void
lmq_gguf_finish_ernie_experts(struct lmq_hparams *h,
                              const struct lmq_gguf_evidence *evidence)
{
    h->router_corrects = evidence->has_correction;
}

/* Layers without a window do not turn, where others have one. */
void
lmq_gguf_finish_still_full(struct lmq_hparams *h,
                           const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->sliding_window > 0 && lmq_layer_is(h, i, LMQ_LAYER_FULL))
            h->layers[i] |= LMQ_LAYER_NOPE;
}

/* Dense layers turn all the same; and of what experts and shared ones add it is
 * the mean. */
void
lmq_gguf_finish_cohere2_experts(struct lmq_hparams *h,
                                const struct lmq_gguf_evidence *evidence)
{
    lmq_gguf_finish_still_full(h, evidence);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_DENSE))
            h->layers[i] &= (uint32_t)~LMQ_LAYER_NOPE;
    if (h->shared_dim == 0)
        return;
    h->router_scale *= 0.5;
    h->shared_scale = 0.5;
}

/* Every fourth layer does not turn, whatever has a window. */
void
lmq_gguf_finish_afmoe(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
{
    lmq_gguf_finish_gemma(h, evidence);
    lmq_gguf_finish_smollm3(h, evidence);
    h->has_attn_gate = true;
}

/* llama.cpp does not look at what it says of it. */
void
lmq_gguf_finish_deepseek(struct lmq_hparams *h,
                         const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->router_renormalises = false;
}

void
lmq_gguf_finish_gptoss(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->rope_ramp_exact = h->rope_scaling == LMQ_ROPE_YARN;
}

void
lmq_gguf_finish_gemma(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
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
    lmq_gguf_finish_gemma(h, evidence);
    if (h->n_layers == n_layers && h->n_heads != 0 && h->dim >= h->n_heads)
        h->attn_scale = 1 / sqrt((double)(h->dim / h->n_heads));
}

void
lmq_gguf_finish_gemma2(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    finish_large_gemma(h, evidence, 46);
}

void
lmq_gguf_finish_gemma3(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    finish_large_gemma(h, evidence, 62);
}

/* Files from before there was a key for it. */
void
lmq_gguf_finish_phi3(struct lmq_hparams *h,
                     const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->sliding_window == 0 && h->context == 4096 &&
        (h->n_layers == 32 || h->n_layers == 40))
        h->sliding_window = 2047;
}

void
lmq_gguf_finish_falcon(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    h->residual = evidence->has_second_norm ? LMQ_RESIDUAL_PARALLEL
                                            : LMQ_RESIDUAL_PARALLEL_ONE_NORM;
}

void
lmq_gguf_finish_stablelm(struct lmq_hparams *h,
                const struct lmq_gguf_evidence *evidence)
{
    h->residual = evidence->has_ffn_norm ? LMQ_RESIDUAL_SEQUENTIAL
                                         : LMQ_RESIDUAL_PARALLEL_ONE_NORM;
}

/* Its third generation has windows, and scales only the layers without. */
void
lmq_gguf_finish_olmo2(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->sliding_window != 0 && h->rope_local_theta <= 0)
        h->rope_local_theta = h->rope_theta;
}

void
lmq_gguf_finish_smollm3(struct lmq_hparams *h,
                        const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    for (uint32_t i = 3; i < h->n_layers; i += 4)
        h->layers[i] |= LMQ_LAYER_NOPE;
}

/* Scores are divided by the width of a head, not by its root. */
void
lmq_gguf_finish_jais(struct lmq_hparams *h,
                     const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->head_dim > 0)
        h->attn_scale = 1.0 / h->head_dim;
}

void
lmq_gguf_finish_bloom(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->has_embedding_norm = true;
}

/* llama.cpp knows them by their layers: 32 turn, 40 have ALiBi, and others
 * have no positions at all. */
void
lmq_gguf_finish_baichuan(struct lmq_hparams *h,
                         const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->n_layers != 32)
        h->positions = h->n_layers == 40 ? LMQ_POSITIONS_ALIBI
                                         : LMQ_POSITIONS_NONE;
}
