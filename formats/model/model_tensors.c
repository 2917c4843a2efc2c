/*
 * model_tensors.c - which tensors a model of a description has.
 */
#include "config.h"

#include "formats/model/model_tensors.h"

#include "formats/grams/grams.h"
#include "formats/model/pools.h"

/* What a layer of a model may be. */
enum {
    HAS_NORMS = 1 << 0,
    NORMS_BEFORE = 1 << 1,
    NORMS_AFTER = 1 << 2,
    TWO_NORMS = 1 << 3, /* attention and feed-forward have one each */
    QK_NORMS = 1 << 4,
    LEARNED_POSITIONS = 1 << 5,
    PLAIN_Q = 1 << 6, /* queries by one matrix */
    PLAIN_KV = 1 << 7,
    LATENT_Q = 1 << 8, /* by two, a latent vector between them */
    LATENT_KV = 1 << 9,
    SINKS = 1 << 10,
    GATED = 1 << 11,
    EXPERTS = 1 << 12,
    CORRECTED = 1 << 13,
    SHARED = 1 << 14,
    ATTENTION = 1 << 15,
    RECURRENT = 1 << 16, /* instead */
    OUTPUT_GATE = 1 << 17,
    EMBEDDING_NORM = 1 << 18,
    OWN_KEYS = 1 << 19,
    OWN_VALUES = 1 << 20,
    INPUTS = 1 << 21, /* for each layer */
    LAYER_SCALE = 1 << 22,
    EXPERT_NORMS = 1 << 23,
    XIELU = 1 << 24,
    MIXES = 1 << 25, /* tokens: by attention, or by a recurrence */
    FEEDS = 1 << 26,
    STATES = 1 << 27, /* recurrent, and remembers matrices */
    WRITES = 1 << 28, /* as much as a matrix says */
    STATE_SPACE = 1 << 29,
    BESIDE = 1 << 30 /* attention and a recurrence with states */
#define FEED_POST_NORM (1U << 31)
};

/* What there are several of, each with a number. What is alone, and a head's,
 * has no bias. */
enum items {
    ONE,
    ALONE,
    A_HEAD,
    A_Q_NORM,
    A_K_NORM,
    AN_EXPERT,
    A_STREAM,
    A_PART
};

/* A layer has a tensor of the role if it is all of `needs`. */
static const struct {
    unsigned needs;
    enum items items;
} rules[LMQ_ROLE_COUNT] = {
    [LMQ_ROLE_EMBEDDING] = {0, ALONE},
    [LMQ_ROLE_OUTPUT_NORM] = {HAS_NORMS, ONE},
    [LMQ_ROLE_EMBEDDING_NORM] = {HAS_NORMS | EMBEDDING_NORM, ONE},
    [LMQ_ROLE_POSITIONS] = {LEARNED_POSITIONS, ALONE},
    [LMQ_ROLE_ATTN_NORM] = {HAS_NORMS | NORMS_BEFORE | MIXES, ONE},
    [LMQ_ROLE_FFN_NORM] = {HAS_NORMS | NORMS_BEFORE | TWO_NORMS | FEEDS, ONE},
    [LMQ_ROLE_ATTN_POST_NORM] = {HAS_NORMS | NORMS_AFTER | MIXES, ONE},
    [LMQ_ROLE_FFN_POST_NORM] = {HAS_NORMS | FEED_POST_NORM | FEEDS, ONE},
    [LMQ_ROLE_ATTN_Q] = {PLAIN_Q, ONE},
    [LMQ_ROLE_ATTN_K] = {PLAIN_KV | OWN_KEYS, ONE},
    [LMQ_ROLE_ATTN_V] = {PLAIN_KV | OWN_VALUES, ONE},
    [LMQ_ROLE_ATTN_OUT] = {MIXES, ONE},
    [LMQ_ROLE_ATTN_OUT_A] = {ATTENTION, A_PART},
    [LMQ_ROLE_POOL_KV] = {ATTENTION, ALONE},
    [LMQ_ROLE_POOL_GATE] = {ATTENTION, ALONE},
    [LMQ_ROLE_POOL_BIAS] = {ATTENTION, ALONE},
    [LMQ_ROLE_POOL_NORM] = {ATTENTION | HAS_NORMS, ALONE},
    [LMQ_ROLE_INDEX_Q] = {ATTENTION, ALONE},
    [LMQ_ROLE_INDEX_WEIGHTS] = {ATTENTION, ALONE},
    [LMQ_ROLE_INDEX_KV] = {ATTENTION, ALONE},
    [LMQ_ROLE_INDEX_GATE] = {ATTENTION, ALONE},
    [LMQ_ROLE_INDEX_BIAS] = {ATTENTION, ALONE},
    [LMQ_ROLE_INDEX_NORM] = {ATTENTION | HAS_NORMS, ALONE},
    [LMQ_ROLE_INDEX_K] = {ATTENTION, ALONE},
    [LMQ_ROLE_INDEX_K_NORM] = {ATTENTION, ONE},
    [LMQ_ROLE_TOKEN_EXPERTS] = {EXPERTS, ALONE},
    [LMQ_ROLE_ATTN_GROWTH] = {ATTENTION, ONE},
    [LMQ_ROLE_ATTN_SUB_NORM] = {HAS_NORMS | ATTENTION, ONE},
    [LMQ_ROLE_FFN_SUB_NORM] = {HAS_NORMS | FEEDS, ONE},
    [LMQ_ROLE_ATTN_Q_NORM] = {HAS_NORMS | QK_NORMS | ATTENTION, A_Q_NORM},
    [LMQ_ROLE_ATTN_K_NORM] = {HAS_NORMS | QK_NORMS | ATTENTION | OWN_KEYS,
                              A_K_NORM},
    [LMQ_ROLE_ATTN_SINKS] = {SINKS | ATTENTION, ALONE},
    [LMQ_ROLE_ATTN_GATE] = {OUTPUT_GATE, ONE},
    [LMQ_ROLE_ATTN_GATE_A] = {STATES, ALONE},
    [LMQ_ROLE_DELTA_ALPHA] = {STATES, ONE},
    [LMQ_ROLE_DELTA_ALPHA_A] = {STATES, ALONE},
    [LMQ_ROLE_DELTA_ALPHA_NORM] = {STATES, ALONE},
    [LMQ_ROLE_DELTA_K_NORM] = {STATES, ALONE},
    [LMQ_ROLE_DELTA_Q_NORM] = {STATES, ALONE},
    [LMQ_ROLE_DELTA_BETA] = {WRITES, ONE},
    [LMQ_ROLE_DELTA_DECAY] = {STATES, ALONE},
    [LMQ_ROLE_DELTA_CONV] = {RECURRENT, ONE},
    [LMQ_ROLE_DELTA_NORM] = {STATES, ALONE},
    [LMQ_ROLE_STATE_SKIP] = {STATE_SPACE, ALONE},
    [LMQ_ROLE_STATE_Q] = {BESIDE, ALONE},
    [LMQ_ROLE_STATE_K] = {BESIDE, ALONE},
    [LMQ_ROLE_STATE_V] = {BESIDE, ALONE},
    [LMQ_ROLE_STATE_GATE] = {BESIDE, ALONE},
    [LMQ_ROLE_STATE_OUT] = {BESIDE, ALONE},
    [LMQ_ROLE_ATTN_Q_A] = {LATENT_Q, ONE},
    [LMQ_ROLE_ATTN_Q_A_NORM] = {LATENT_Q, ALONE},
    [LMQ_ROLE_ATTN_Q_B] = {LATENT_Q, ONE},
    [LMQ_ROLE_ATTN_KV_A] = {LATENT_KV, ONE},
    [LMQ_ROLE_ATTN_KV_A_NORM] = {LATENT_KV, ALONE},
    [LMQ_ROLE_ATTN_K_B] = {LATENT_KV, A_HEAD},
    [LMQ_ROLE_ATTN_V_B] = {LATENT_KV, A_HEAD},
    [LMQ_ROLE_ROUTER] = {EXPERTS, ONE},
    [LMQ_ROLE_ROUTER_CORRECTION] = {EXPERTS | CORRECTED, ONE},
    [LMQ_ROLE_FFN_GATE] = {FEEDS | GATED, AN_EXPERT},
    [LMQ_ROLE_FFN_UP] = {FEEDS, AN_EXPERT},
    [LMQ_ROLE_FFN_DOWN] = {FEEDS, AN_EXPERT},
    [LMQ_ROLE_SHARED_GATE] = {EXPERTS | SHARED | GATED, ONE},
    [LMQ_ROLE_SHARED_UP] = {EXPERTS | SHARED, ONE},
    [LMQ_ROLE_SHARED_DOWN] = {EXPERTS | SHARED, ONE},
    [LMQ_ROLE_SHARED_SWITCH] = {EXPERTS | SHARED, ALONE},
    [LMQ_ROLE_INPUTS] = {INPUTS, ALONE},
    [LMQ_ROLE_INPUTS_PROJ] = {INPUTS, ALONE},
    [LMQ_ROLE_INPUTS_NORM] = {INPUTS | HAS_NORMS, ALONE},
    [LMQ_ROLE_INPUT_GATE] = {INPUTS, ALONE},
    [LMQ_ROLE_INPUT_PROJ] = {INPUTS, ALONE},
    [LMQ_ROLE_INPUT_NORM] = {INPUTS | HAS_NORMS, ALONE},
    [LMQ_ROLE_STREAMS_IN] = {0, A_STREAM},
    [LMQ_ROLE_STREAMS_OUT] = {0, A_STREAM},
    [LMQ_ROLE_STREAM_ROUTER] = {0, ALONE},
    [LMQ_ROLE_STREAM_ROUTER_NORM] = {HAS_NORMS, ALONE},
    [LMQ_ROLE_STREAM_PREDICT] = {0, ALONE},
    [LMQ_ROLE_STREAM_CORRECT] = {0, ALONE},
    [LMQ_ROLE_STREAM_SCALE] = {INPUTS, ALONE},
    [LMQ_ROLE_BYPASS_A] = {MIXES, ALONE},
    [LMQ_ROLE_BYPASS_B] = {MIXES, ALONE},
    [LMQ_ROLE_BYPASS_NORM] = {MIXES | HAS_NORMS, ALONE},
    [LMQ_ROLE_ATTN_NORM_A] = {MIXES, ALONE},
    [LMQ_ROLE_ATTN_NORM_B] = {MIXES, ALONE},
    [LMQ_ROLE_FFN_NORM_A] = {EXPERTS, ALONE},
    [LMQ_ROLE_FFN_NORM_B] = {EXPERTS, ALONE},
    [LMQ_ROLE_HYPER_ATTN] = {MIXES, ALONE},
    [LMQ_ROLE_HYPER_ATTN_BASE] = {MIXES, ALONE},
    [LMQ_ROLE_HYPER_ATTN_SCALE] = {MIXES, ALONE},
    [LMQ_ROLE_HYPER_FFN] = {FEEDS, ALONE},
    [LMQ_ROLE_HYPER_FFN_BASE] = {FEEDS, ALONE},
    [LMQ_ROLE_HYPER_FFN_SCALE] = {FEEDS, ALONE},
    [LMQ_ROLE_HYPER_OUT] = {0, ALONE},
    [LMQ_ROLE_HYPER_OUT_BASE] = {0, ALONE},
    [LMQ_ROLE_HYPER_OUT_SCALE] = {0, ALONE},
    [LMQ_ROLE_GATED_ATTN_DOWN] = {MIXES, ALONE},
    [LMQ_ROLE_GATED_ATTN_UP] = {MIXES, ALONE},
    [LMQ_ROLE_GATED_ATTN_WRITE] = {MIXES, ALONE},
    [LMQ_ROLE_GATED_FFN_DOWN] = {FEEDS, ALONE},
    [LMQ_ROLE_GATED_FFN_UP] = {FEEDS, ALONE},
    [LMQ_ROLE_GATED_FFN_WRITE] = {FEEDS, ALONE},
    [LMQ_ROLE_GATED_OUT_DOWN] = {0, ALONE},
    [LMQ_ROLE_GATED_OUT_UP] = {0, ALONE},
    [LMQ_ROLE_GRAM_TABLE] = {0, ALONE},
    [LMQ_ROLE_GRAM_KEY] = {0, ALONE},
    [LMQ_ROLE_GRAM_VALUE] = {0, ALONE},
    [LMQ_ROLE_GRAM_KEY_NORM] = {HAS_NORMS, ALONE},
    [LMQ_ROLE_GRAM_QUERY_NORM] = {HAS_NORMS, ALONE},
    [LMQ_ROLE_GRAM_CONV_NORM] = {HAS_NORMS, ALONE},
    [LMQ_ROLE_GRAM_CONV] = {0, ALONE},
    [LMQ_ROLE_LAYER_SCALE] = {LAYER_SCALE, ALONE},
    [LMQ_ROLE_ACT_POSITIVE] = {XIELU, ALONE},
    [LMQ_ROLE_ACT_NEGATIVE] = {XIELU, ALONE},
    [LMQ_ROLE_ACT_SLOPE] = {XIELU, ALONE},
    [LMQ_ROLE_ACT_BOUND] = {XIELU, ALONE},
    [LMQ_ROLE_ROUTER_NORM] = {EXPERTS | EXPERT_NORMS | HAS_NORMS, ALONE},
    [LMQ_ROLE_EXPERTS_NORM] = {EXPERTS | EXPERT_NORMS | HAS_NORMS, ALONE},
    [LMQ_ROLE_EXPERTS_POST_NORM] = {EXPERTS | EXPERT_NORMS | HAS_NORMS, ALONE},
    [LMQ_ROLE_EXPERTS_SCALE] = {EXPERTS | EXPERT_NORMS, ALONE},
    [LMQ_ROLE_SHARED_POST_NORM] = {EXPERTS | EXPERT_NORMS | SHARED | HAS_NORMS,
                                   ALONE},
};

/* The description as a set of bits, which the rules can be held against. */
static unsigned
what_is(const struct lmq_hparams *h, uint32_t layer, bool has_experts,
        bool is_delta)
{
    bool mixes = lmq_layer_mixes(h, layer);
    bool feeds = lmq_layer_has_feed(h, layer);
    bool is_alone = is_delta && lmq_layer_only_recurs(h, layer);
    bool borrows = lmq_layer_borrows(h, layer) && !is_alone;
    bool has_values = !borrows && (is_alone ||
                                   (!h->has_turned_values &&
                                    !lmq_layer_keys_are_values(h, layer)));
    bool has_keys = !(is_alone && lmq_is_lru(h)); /* and queries */
    bool is_latent = h->kv_lora_rank > 0 && !is_alone;
    bool has_latent_q = lmq_has_query_latents(h) && !is_alone;
    bool has_table = has_experts && lmq_layer_has_table(h, layer);
    bool has_states = is_delta && !lmq_is_convolution(h);
    bool is_state_space = lmq_is_state_space(h);
    enum lmq_norm_place norm_place = lmq_layer_norm_place(h, layer);
    const struct {
        bool is_so;
        unsigned what;
    } list[] = {
        {lmq_norms_weigh(h), HAS_NORMS},
        {norm_place != LMQ_NORMS_AFTER, NORMS_BEFORE},
        {norm_place != LMQ_NORMS_BEFORE, NORMS_AFTER},
        {lmq_layer_has_feed_post_norm(h, layer), FEED_POST_NORM},
        {h->residual != LMQ_RESIDUAL_PARALLEL_ONE_NORM, TWO_NORMS},
        {lmq_weighs_qk_norms(h), QK_NORMS},
        {h->positions == LMQ_POSITIONS_LEARNED, LEARNED_POSITIONS},
        {mixes, MIXES},
        {feeds, FEEDS},
        {mixes && has_keys, has_latent_q ? LATENT_Q : PLAIN_Q},
        {mixes, is_latent ? LATENT_KV : PLAIN_KV},
        {h->has_embedding_norm && !h->has_bare_embedding_norm,
         EMBEDDING_NORM},
        {lmq_layer_has_sinks(h, layer), SINKS},
        {h->is_gated, GATED},
        {has_experts, EXPERTS},
        {h->router_corrects && !has_table, CORRECTED},
        {h->shared_dim > 0, SHARED},
        {mixes && is_delta, RECURRENT},
        {mixes && !is_alone, ATTENTION},
        {mixes && has_states && !is_alone, BESIDE},
        {has_states, STATES},
        {has_states && is_state_space, STATE_SPACE},
        {has_states &&
             (h->recurrence == LMQ_RECURRENCE_DELTA || lmq_is_lru(h)),
         WRITES},
        {mixes && (is_alone ? has_states : h->has_attn_gate), OUTPUT_GATE},
        {!borrows && has_keys, OWN_KEYS},
        {has_values, OWN_VALUES},
        {h->layer_input_dim > 0, INPUTS},
        {h->has_layer_scale, LAYER_SCALE},
        {h->has_expert_norms, EXPERT_NORMS},
        {h->activation == LMQ_ACTIVATION_XIELU, XIELU},
    };
    unsigned what = 0;

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        what |= list[i].is_so ? list[i].what : 0;
    return what;
}

/* Matrices of a recurrence have no biases, but for time steps, which must have
 * one. Where there are no keys the others may; and values and gates of
 * attention have none then. */
static bool
is_delta_bias(const struct lmq_hparams *h, const struct lmq_place *place)
{
    if (place->part != LMQ_PART_BIAS || place->layer < 0)
        return false;
    bool recurs = lmq_layer_only_recurs(h, (size_t)place->layer);
    if (place->role == LMQ_ROLE_DELTA_BETA)
        return !lmq_is_lru(h);
    if (!lmq_is_lru(h))
        return recurs && lmq_role_beside(place->role) != place->role;
    return (place->role == LMQ_ROLE_ATTN_V ||
            place->role == LMQ_ROLE_ATTN_GATE) && !recurs;
}

/* What a layer has that could have it, by its kind: of a state, of norms within
 * blocks, of what stands beside the residual stream. */
static bool
has_of_kind(const struct lmq_hparams *h, enum lmq_role role, uint32_t layer,
            bool has_experts)
{
    switch ((int)role) {
    case LMQ_ROLE_ATTN_Q_NORM:
        return lmq_weighs_query_norms(h);
    case LMQ_ROLE_ATTN_K_NORM:
        return h->qk_norm != LMQ_QK_NORM_TURNING ||
               lmq_layer_rotary_dim(h, layer) > 0;
    case LMQ_ROLE_ATTN_OUT_A:
        return h->n_out_groups > 0;
    case LMQ_ROLE_ATTN_GROWTH:
        return h->has_head_growth;
    case LMQ_ROLE_POOL_KV:
    case LMQ_ROLE_POOL_GATE:
    case LMQ_ROLE_POOL_BIAS:
    case LMQ_ROLE_POOL_NORM:
        return lmq_layer_pool(h, layer) > 0;
    case LMQ_ROLE_INDEX_Q:
    case LMQ_ROLE_INDEX_WEIGHTS:
        return lmq_layer_has_index(h, layer) ||
               lmq_layer_chooses(h, layer);
    case LMQ_ROLE_INDEX_K:
    case LMQ_ROLE_INDEX_K_NORM:
        return lmq_layer_chooses(h, layer);
    case LMQ_ROLE_INDEX_KV:
    case LMQ_ROLE_INDEX_GATE:
    case LMQ_ROLE_INDEX_BIAS:
    case LMQ_ROLE_INDEX_NORM:
        return lmq_layer_has_index(h, layer);
    case LMQ_ROLE_TOKEN_EXPERTS:
        return lmq_layer_has_table(h, layer);
    case LMQ_ROLE_ATTN_SUB_NORM:
        return h->has_sub_norms;
    case LMQ_ROLE_FFN_SUB_NORM:
        return h->has_sub_norms && !has_experts;
    case LMQ_ROLE_STREAMS_IN:
    case LMQ_ROLE_STREAMS_OUT:
    case LMQ_ROLE_STREAM_ROUTER:
    case LMQ_ROLE_STREAM_ROUTER_NORM:
    case LMQ_ROLE_STREAM_PREDICT:
    case LMQ_ROLE_STREAM_CORRECT:
    case LMQ_ROLE_STREAM_SCALE:
        return lmq_guessed_streams(h) > 0;
    case LMQ_ROLE_HYPER_ATTN:
    case LMQ_ROLE_HYPER_ATTN_BASE:
    case LMQ_ROLE_HYPER_ATTN_SCALE:
    case LMQ_ROLE_HYPER_FFN:
    case LMQ_ROLE_HYPER_FFN_BASE:
    case LMQ_ROLE_HYPER_FFN_SCALE:
        return lmq_has_hyper_streams(h) && !lmq_has_gated_streams(h);
    case LMQ_ROLE_HYPER_OUT:
    case LMQ_ROLE_HYPER_OUT_BASE:
    case LMQ_ROLE_HYPER_OUT_SCALE:
        return lmq_has_hyper_streams(h) && !lmq_has_gated_streams(h) &&
               !h->has_stream_mean;
    case LMQ_ROLE_GATED_ATTN_DOWN:
    case LMQ_ROLE_GATED_ATTN_UP:
    case LMQ_ROLE_GATED_ATTN_WRITE:
    case LMQ_ROLE_GATED_FFN_DOWN:
    case LMQ_ROLE_GATED_FFN_UP:
    case LMQ_ROLE_GATED_FFN_WRITE:
    case LMQ_ROLE_GATED_OUT_DOWN:
    case LMQ_ROLE_GATED_OUT_UP:
        return lmq_has_gated_streams(h);
    case LMQ_ROLE_GRAM_TABLE:
    case LMQ_ROLE_GRAM_KEY:
    case LMQ_ROLE_GRAM_VALUE:
    case LMQ_ROLE_GRAM_KEY_NORM:
    case LMQ_ROLE_GRAM_QUERY_NORM:
    case LMQ_ROLE_GRAM_CONV_NORM:
    case LMQ_ROLE_GRAM_CONV:
        return lmq_layer_has_grams(h, layer);
    case LMQ_ROLE_BYPASS_A:
    case LMQ_ROLE_BYPASS_B:
    case LMQ_ROLE_BYPASS_NORM:
        return h->residual_rank > 0;
    case LMQ_ROLE_ATTN_NORM_A:
    case LMQ_ROLE_ATTN_NORM_B:
    case LMQ_ROLE_FFN_NORM_A:
    case LMQ_ROLE_FFN_NORM_B:
        return h->norm_gate_rank > 0;
    case LMQ_ROLE_DELTA_NORM:
        return !h->has_bare_states && !lmq_is_lru(h);
    case LMQ_ROLE_DELTA_ALPHA:
    case LMQ_ROLE_DELTA_DECAY:
    case LMQ_ROLE_DELTA_CONV:
        return !lmq_is_lightning(h);
    case LMQ_ROLE_DELTA_ALPHA_A:
        return h->step_rank > 0;
    case LMQ_ROLE_DELTA_ALPHA_NORM:
    case LMQ_ROLE_DELTA_K_NORM:
    case LMQ_ROLE_DELTA_Q_NORM:
        return h->has_step_norm_weights;
    case LMQ_ROLE_ATTN_GATE_A:
        return h->gate_rank > 0;
    default:
        return true;
    }
}

bool
lmq_model_has(const struct lmq_hparams *h, const struct lmq_place *place,
              uint32_t *n_items)
{
    enum lmq_role role = place->role;
    uint32_t layer = place->layer < 0 ? 0 : (uint32_t)place->layer;
    bool is_of_layer = lmq_role_is_per_layer(role);
    bool has_experts = is_of_layer && lmq_layer_has_experts(h, layer);
    bool is_delta = is_of_layer && lmq_layer_is(h, layer, LMQ_LAYER_DELTA);
    bool has_heads_norms = h->qk_norm == LMQ_QK_NORM_HEADS;
    const uint32_t counts[] = {
        [ONE] = 0,
        [ALONE] = 0,
        [A_HEAD] = lmq_layer_heads(h, layer),
        [A_Q_NORM] = has_heads_norms ? h->n_heads : 0,
        [A_K_NORM] = has_heads_norms ? h->n_kv_heads : 0,
        [AN_EXPERT] = has_experts ? h->n_experts : 0,
        [A_STREAM] = lmq_guessed_streams(h),
        [A_PART] = h->n_out_groups,
    };

    *n_items = counts[rules[role].items];
    return (rules[role].needs & ~what_is(h, layer, has_experts, is_delta)) ==
               0 &&
           !is_delta_bias(h, place) &&
           has_of_kind(h, role, layer, has_experts);
}

bool
lmq_model_has_part(const struct lmq_hparams *h, const struct lmq_place *place)
{
    switch ((int)place->role) {
    case LMQ_ROLE_ROUTER_CORRECTION:
        return place->part == LMQ_PART_BIAS;
    case LMQ_ROLE_EMBEDDING_NORM:
    case LMQ_ROLE_OUTPUT_NORM:
    case LMQ_ROLE_ATTN_NORM:
    case LMQ_ROLE_ATTN_POST_NORM:
    case LMQ_ROLE_ATTN_Q_NORM:
    case LMQ_ROLE_ATTN_K_NORM:
    case LMQ_ROLE_FFN_NORM:
    case LMQ_ROLE_FFN_POST_NORM:
    case LMQ_ROLE_ATTN_SUB_NORM:
    case LMQ_ROLE_FFN_SUB_NORM:
        return place->part == LMQ_PART_WEIGHT || h->norm == LMQ_NORM_LAYER;
    case LMQ_ROLE_DELTA_CONV:
        return place->part == LMQ_PART_WEIGHT ||
               lmq_is_state_space(h) || lmq_is_lru(h);
    default:
        return place->part == LMQ_PART_WEIGHT ||
               (rules[place->role].items != ALONE &&
                rules[place->role].items != A_HEAD &&
                rules[place->role].items != A_PART &&
                rules[place->role].items != A_STREAM);
    }
}

bool
lmq_model_may_lack(enum lmq_role role, enum lmq_part part)
{
    if (role == LMQ_ROLE_ROUTER_CORRECTION)
        return part == LMQ_PART_WEIGHT;
    if (role == LMQ_ROLE_DELTA_ALPHA || role == LMQ_ROLE_ATTN_GROWTH ||
        role == LMQ_ROLE_INDEX_K_NORM)
        return false;
    return part == LMQ_PART_BIAS || role == LMQ_ROLE_HEAD ||
           role == LMQ_ROLE_SHARED_SWITCH;
}

void
lmq_model_shape(const struct lmq_hparams *h, const struct lmq_place *place,
                uint64_t dims[2], uint32_t *n_dims)
{
    size_t layer = place->layer < 0 ? 0 : (size_t)place->layer;
    uint64_t head = lmq_layer_head_dim(h, layer);
    uint64_t n_kv = lmq_layer_kv_heads(h, layer);
    uint64_t n_heads = lmq_layer_heads(h, layer);
    uint64_t q = n_heads * head, k = n_kv * head;
    uint64_t value = lmq_layer_value_dim(h, layer);
    uint64_t rotary = lmq_layer_rotary_dim(h, layer);
    bool is_whole = h->qk_norm == LMQ_QK_NORM_WHOLE;
    bool is_turning = h->qk_norm == LMQ_QK_NORM_TURNING;
    uint64_t rank = lmq_layer_latents(h, layer);
    bool has_wide_norm = lmq_is_state_space(h) || lmq_is_lightning(h);
    uint64_t hidden = place->item >= 0 ? h->expert_dim
                                       : lmq_layer_hidden_dim(h, layer);
    uint64_t v = n_kv * value, out = n_heads * value;
    uint64_t gate = h->has_head_gate ? n_heads : out;
    uint64_t inputs = (uint64_t)h->n_layers * h->layer_input_dim;
    uint64_t keys = lmq_delta_key_width(h), values = lmq_delta_value_width(h);
    uint64_t q_latents = lmq_query_latents(h);
    uint64_t seen = h->dim; /* by queries and keys */
    uint64_t seen_by_gate = h->has_raw_latents ? q_latents : h->dim;
    uint64_t latents = h->gate_rank > 0 ? h->gate_rank : h->dim;
    bool is_selective = lmq_is_selective(h), is_lru = lmq_is_lru(h);
    uint64_t streams = h->n_streams, all = streams * h->dim;
    uint64_t mixes = lmq_hyper_mixes(h), kinds = h->stream_rounds > 0 ? 3 : 2;
    uint64_t groups = h->n_out_groups > 0 ? h->n_out_groups : 1;
    uint64_t part = out / groups;
    uint64_t pool = lmq_layer_pool(h, layer);
    uint64_t pooled = lmq_pool_width(h, layer), indexed = lmq_index_width(h);
    uint64_t index_heads = h->n_index_heads;
    uint64_t mixed = lmq_layer_out_width(h, layer);
    bool has_gates = lmq_has_gated_streams(h), has_grams;
    uint64_t read = has_gates ? all : h->dim; /* by a block, before its norm */
    uint64_t grams = lmq_gram_width(h), table;

    has_grams = place->layer >= 0 && lmq_layer_has_grams(h, layer);
    table = has_grams ? lmq_layer_gram_table(h, layer) : 0;

    if (place->layer >= 0 && lmq_layer_only_recurs(h, (size_t)place->layer)) {
        q = k = keys;
        v = out = mixed = gate = values;
        seen = is_selective ? values : h->dim;
        seen_by_gate = latents;
    }
    const uint64_t shapes[LMQ_ROLE_COUNT][2] = {
        [LMQ_ROLE_EMBEDDING] = {h->vocab_size, h->dim},
        [LMQ_ROLE_POSITIONS] = {h->context, h->dim},
        [LMQ_ROLE_HEAD] = {h->vocab_size, h->dim},
        [LMQ_ROLE_EMBEDDING_NORM] = {h->dim, 0},
        [LMQ_ROLE_OUTPUT_NORM] = {read, 0},
        [LMQ_ROLE_ATTN_NORM] = {read, 0},
        [LMQ_ROLE_ATTN_Q] = {q, seen},
        [LMQ_ROLE_ATTN_K] = {k, seen},
        [LMQ_ROLE_ATTN_V] = {v, h->dim},
        [LMQ_ROLE_ATTN_OUT] = {h->dim, mixed},
        [LMQ_ROLE_ATTN_OUT_A] = {h->out_rank, part},
        [LMQ_ROLE_POOL_KV] = {pooled, h->dim},
        [LMQ_ROLE_POOL_GATE] = {pooled, h->dim},
        [LMQ_ROLE_POOL_BIAS] = {pool, pooled},
        [LMQ_ROLE_POOL_NORM] = {h->head_dim, 0},
        [LMQ_ROLE_INDEX_Q] = {index_heads * h->index_dim, h->q_lora_rank},
        [LMQ_ROLE_INDEX_WEIGHTS] = {index_heads, h->dim},
        [LMQ_ROLE_INDEX_KV] = {indexed, h->dim},
        [LMQ_ROLE_INDEX_GATE] = {indexed, h->dim},
        [LMQ_ROLE_INDEX_BIAS] = {pool, indexed},
        [LMQ_ROLE_INDEX_NORM] = {h->index_dim, 0},
        [LMQ_ROLE_INDEX_K] = {h->index_dim, h->dim},
        [LMQ_ROLE_INDEX_K_NORM] = {h->index_dim, 0},
        [LMQ_ROLE_TOKEN_EXPERTS] = {h->vocab_size, h->n_experts_used},
        [LMQ_ROLE_ATTN_SUB_NORM] = {out, 0},
        [LMQ_ROLE_FFN_SUB_NORM] = {hidden, 0},
        [LMQ_ROLE_ATTN_GATE] = {gate, seen_by_gate},
        [LMQ_ROLE_ATTN_GATE_A] = {h->gate_rank, h->dim},
        [LMQ_ROLE_DELTA_ALPHA] = {lmq_delta_steps(h),
                                  is_lru              ? h->delta_value_dim
                                  : h->step_rank > 0 ? h->step_rank
                                                      : h->dim},
        [LMQ_ROLE_DELTA_ALPHA_A] = {h->step_rank, seen},
        [LMQ_ROLE_DELTA_ALPHA_NORM] = {h->step_rank, 0},
        [LMQ_ROLE_DELTA_K_NORM] = {h->delta_key_dim, 0},
        [LMQ_ROLE_DELTA_Q_NORM] = {h->delta_key_dim, 0},
        [LMQ_ROLE_DELTA_BETA] = {is_lru ? values : h->n_delta_value_heads,
                                 is_lru ? h->delta_value_dim : h->dim},
        [LMQ_ROLE_DELTA_DECAY] = {lmq_delta_decays(h), 0},
        [LMQ_ROLE_DELTA_CONV] = {lmq_delta_channels(h), h->conv_width},
        [LMQ_ROLE_DELTA_NORM] = {has_wide_norm ? values : h->delta_value_dim,
                                 0},
        [LMQ_ROLE_STATE_SKIP] = {h->n_delta_value_heads, 0},
        [LMQ_ROLE_STATE_Q] = {keys, h->dim},
        [LMQ_ROLE_STATE_K] = {keys, h->dim},
        [LMQ_ROLE_STATE_V] = {values, h->dim},
        [LMQ_ROLE_STATE_GATE] = {values, latents},
        [LMQ_ROLE_STATE_OUT] = {h->dim, values},
        [LMQ_ROLE_ATTN_Q_NORM] = {is_whole ? q : head, 0},
        [LMQ_ROLE_ATTN_K_NORM] = {is_whole     ? k
                                  : is_turning ? rotary
                                               : head,
                                  0},
        [LMQ_ROLE_ATTN_SINKS] = {n_heads, 0},
        [LMQ_ROLE_ATTN_GROWTH] = {n_heads, 0},
        [LMQ_ROLE_ATTN_POST_NORM] = {h->dim, 0},
        [LMQ_ROLE_ATTN_Q_A] = {h->q_lora_rank, h->dim},
        [LMQ_ROLE_ATTN_Q_A_NORM] = {h->q_lora_rank, 0},
        [LMQ_ROLE_ATTN_Q_B] = {q, q_latents},
        [LMQ_ROLE_ATTN_KV_A] = {rank + rotary, h->dim},
        [LMQ_ROLE_ATTN_KV_A_NORM] = {rank, 0},
        [LMQ_ROLE_ATTN_K_B] = {rank, head - rotary},
        [LMQ_ROLE_ATTN_V_B] = {value, rank},
        [LMQ_ROLE_FFN_NORM] = {read, 0},
        [LMQ_ROLE_FFN_GATE] = {hidden, h->dim},
        [LMQ_ROLE_FFN_UP] = {hidden, h->dim},
        [LMQ_ROLE_FFN_DOWN] = {h->dim, hidden},
        [LMQ_ROLE_FFN_POST_NORM] = {h->dim, 0},
        [LMQ_ROLE_ROUTER] = {h->n_experts, h->dim},
        [LMQ_ROLE_ROUTER_CORRECTION] = {h->n_experts, 0},
        [LMQ_ROLE_SHARED_GATE] = {h->shared_dim, h->dim},
        [LMQ_ROLE_SHARED_UP] = {h->shared_dim, h->dim},
        [LMQ_ROLE_SHARED_DOWN] = {h->dim, h->shared_dim},
        [LMQ_ROLE_SHARED_SWITCH] = {h->dim, 0},
        [LMQ_ROLE_INPUTS] = {lmq_layer_input_rows(h), inputs},
        [LMQ_ROLE_INPUTS_PROJ] = {inputs, h->dim},
        [LMQ_ROLE_INPUTS_NORM] = {h->layer_input_dim, 0},
        [LMQ_ROLE_INPUT_GATE] = {h->layer_input_dim, h->dim},
        [LMQ_ROLE_INPUT_PROJ] = {h->dim, h->layer_input_dim},
        [LMQ_ROLE_INPUT_NORM] = {h->dim, 0},
        [LMQ_ROLE_STREAMS_IN] = {h->dim, h->dim},
        [LMQ_ROLE_STREAMS_OUT] = {h->dim, h->dim},
        [LMQ_ROLE_STREAM_ROUTER] = {streams, h->dim},
        [LMQ_ROLE_STREAM_ROUTER_NORM] = {h->dim, 0},
        [LMQ_ROLE_STREAM_PREDICT] = {streams * streams, streams},
        [LMQ_ROLE_STREAM_CORRECT] = {streams, streams},
        [LMQ_ROLE_STREAM_SCALE] = {h->dim, 0},
        [LMQ_ROLE_BYPASS_A] = {h->residual_rank, h->dim},
        [LMQ_ROLE_BYPASS_B] = {h->dim, h->residual_rank},
        [LMQ_ROLE_BYPASS_NORM] = {h->dim, 0},
        [LMQ_ROLE_ATTN_NORM_A] = {h->norm_gate_rank, h->dim},
        [LMQ_ROLE_ATTN_NORM_B] = {h->dim, h->norm_gate_rank},
        [LMQ_ROLE_FFN_NORM_A] = {h->norm_gate_rank, h->dim},
        [LMQ_ROLE_FFN_NORM_B] = {h->dim, h->norm_gate_rank},
        [LMQ_ROLE_HYPER_ATTN] = {mixes, all},
        [LMQ_ROLE_HYPER_ATTN_BASE] = {mixes, 0},
        [LMQ_ROLE_HYPER_ATTN_SCALE] = {kinds, 0},
        [LMQ_ROLE_HYPER_FFN] = {mixes, all},
        [LMQ_ROLE_HYPER_FFN_BASE] = {mixes, 0},
        [LMQ_ROLE_HYPER_FFN_SCALE] = {kinds, 0},
        [LMQ_ROLE_HYPER_OUT] = {streams, all},
        [LMQ_ROLE_HYPER_OUT_BASE] = {streams, 0},
        [LMQ_ROLE_HYPER_OUT_SCALE] = {1, 0},
        [LMQ_ROLE_GATED_ATTN_DOWN] = {h->stream_rank, all},
        [LMQ_ROLE_GATED_ATTN_UP] = {all, h->stream_rank},
        [LMQ_ROLE_GATED_ATTN_WRITE] = {streams, all},
        [LMQ_ROLE_GATED_FFN_DOWN] = {h->stream_rank, all},
        [LMQ_ROLE_GATED_FFN_UP] = {all, h->stream_rank},
        [LMQ_ROLE_GATED_FFN_WRITE] = {streams, all},
        [LMQ_ROLE_GATED_OUT_DOWN] = {h->stream_rank, all},
        [LMQ_ROLE_GATED_OUT_UP] = {all, h->stream_rank},
        [LMQ_ROLE_GRAM_TABLE] = {table, h->gram_dim},
        [LMQ_ROLE_GRAM_KEY] = {all, grams},
        [LMQ_ROLE_GRAM_VALUE] = {h->dim, grams},
        [LMQ_ROLE_GRAM_KEY_NORM] = {all, 0},
        [LMQ_ROLE_GRAM_QUERY_NORM] = {all, 0},
        [LMQ_ROLE_GRAM_CONV_NORM] = {all, 0},
        [LMQ_ROLE_GRAM_CONV] = {all, h->gram_conv_width},
        [LMQ_ROLE_LAYER_SCALE] = {1, 0},
        [LMQ_ROLE_ACT_POSITIVE] = {1, 0},
        [LMQ_ROLE_ACT_NEGATIVE] = {1, 0},
        [LMQ_ROLE_ACT_SLOPE] = {1, 0},
        [LMQ_ROLE_ACT_BOUND] = {1, 0},
        [LMQ_ROLE_ROUTER_NORM] = {h->dim, 0},
        [LMQ_ROLE_EXPERTS_NORM] = {h->dim, 0},
        [LMQ_ROLE_EXPERTS_POST_NORM] = {h->dim, 0},
        [LMQ_ROLE_EXPERTS_SCALE] = {h->n_experts, 0},
        [LMQ_ROLE_SHARED_POST_NORM] = {h->dim, 0},
    };

    dims[0] = shapes[place->role][0];
    dims[1] = shapes[place->role][1];
    *n_dims = place->part == LMQ_PART_BIAS || dims[1] == 0 ? 1 : 2;
}
