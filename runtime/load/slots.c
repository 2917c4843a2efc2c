/*
 * slots.c - where in the model the tensor of each role goes.
 */
#include "config.h"

#include "runtime/model.h"

#include <stddef.h>

#define MATRIX LMQ_SLOT_MATRIX
#define GAIN LMQ_SLOT_GAIN
#define VECTOR LMQ_SLOT_VECTOR
#define IN_MODEL(field) offsetof(struct lmq_model, field)
#define IN_LAYER(field) offsetof(struct lmq_layer, field)

/* Of the model or of a layer, as the role is. Matrices of heads: where the
 * pointer to the first is; of experts: where the dense one would be. */
static const struct slot {
    enum lmq_slot_kind kind;
    size_t offset;
} slots[LMQ_ROLE_COUNT] = {
    [LMQ_ROLE_EMBEDDING] = {MATRIX, IN_MODEL(embedding)},
    [LMQ_ROLE_POSITIONS] = {MATRIX, IN_MODEL(positions)},
    [LMQ_ROLE_HEAD] = {MATRIX, IN_MODEL(head)},
    [LMQ_ROLE_EMBEDDING_NORM] = {GAIN, IN_MODEL(embedding_norm)},
    [LMQ_ROLE_OUTPUT_NORM] = {GAIN, IN_MODEL(output_norm)},
    [LMQ_ROLE_ATTN_NORM] = {GAIN, IN_LAYER(attention.norm)},
    [LMQ_ROLE_ATTN_POST_NORM] = {GAIN, IN_LAYER(attention.post_norm)},
    [LMQ_ROLE_ATTN_Q] = {MATRIX, IN_LAYER(attention.q)},
    [LMQ_ROLE_ATTN_K] = {MATRIX, IN_LAYER(attention.k)},
    [LMQ_ROLE_ATTN_V] = {MATRIX, IN_LAYER(attention.v)},
    [LMQ_ROLE_ATTN_OUT] = {MATRIX, IN_LAYER(attention.out)},
    [LMQ_ROLE_ATTN_Q_NORM] = {GAIN, IN_LAYER(attention.q_norm)},
    [LMQ_ROLE_ATTN_K_NORM] = {GAIN, IN_LAYER(attention.k_norm)},
    [LMQ_ROLE_ATTN_SUB_NORM] = {GAIN, IN_LAYER(attention.sub_norm)},
    [LMQ_ROLE_ATTN_SINKS] = {VECTOR, IN_LAYER(attention.sinks)},
    [LMQ_ROLE_ATTN_GROWTH] = {GAIN, IN_LAYER(attention.growth)},
    [LMQ_ROLE_ATTN_Q_A] = {MATRIX, IN_LAYER(attention.q_a)},
    [LMQ_ROLE_ATTN_Q_A_NORM] = {GAIN, IN_LAYER(attention.q_a_norm)},
    [LMQ_ROLE_ATTN_Q_B] = {MATRIX, IN_LAYER(attention.q_b)},
    [LMQ_ROLE_ATTN_KV_A] = {MATRIX, IN_LAYER(attention.kv_a)},
    [LMQ_ROLE_ATTN_KV_A_NORM] = {GAIN, IN_LAYER(attention.kv_a_norm)},
    [LMQ_ROLE_ATTN_K_B] = {MATRIX, IN_LAYER(attention.k_b)},
    [LMQ_ROLE_ATTN_V_B] = {MATRIX, IN_LAYER(attention.v_b)},
    [LMQ_ROLE_ATTN_OUT_A] = {MATRIX, IN_LAYER(attention.out_a)},
    [LMQ_ROLE_POOL_KV] = {MATRIX, IN_LAYER(attention.pool.kv)},
    [LMQ_ROLE_POOL_GATE] = {MATRIX, IN_LAYER(attention.pool.gate)},
    [LMQ_ROLE_POOL_BIAS] = {VECTOR, IN_LAYER(attention.pool.bias)},
    [LMQ_ROLE_POOL_NORM] = {GAIN, IN_LAYER(attention.pool.norm)},
    [LMQ_ROLE_INDEX_Q] = {MATRIX, IN_LAYER(attention.index_q)},
    [LMQ_ROLE_INDEX_WEIGHTS] = {MATRIX, IN_LAYER(attention.index_weights)},
    [LMQ_ROLE_INDEX_KV] = {MATRIX, IN_LAYER(attention.index_pool.kv)},
    [LMQ_ROLE_INDEX_GATE] = {MATRIX, IN_LAYER(attention.index_pool.gate)},
    [LMQ_ROLE_INDEX_BIAS] = {VECTOR, IN_LAYER(attention.index_pool.bias)},
    [LMQ_ROLE_INDEX_NORM] = {GAIN, IN_LAYER(attention.index_pool.norm)},
    [LMQ_ROLE_INDEX_K] = {MATRIX, IN_LAYER(attention.index_k)},
    [LMQ_ROLE_INDEX_K_NORM] = {GAIN, IN_LAYER(attention.index_k_norm)},
    [LMQ_ROLE_TOKEN_EXPERTS] = {VECTOR, IN_LAYER(feed.token_experts)},
    [LMQ_ROLE_ATTN_GATE] = {MATRIX, IN_LAYER(attention.gate)},
    [LMQ_ROLE_ATTN_GATE_A] = {MATRIX, IN_LAYER(attention.gate_a)},
    [LMQ_ROLE_DELTA_ALPHA] = {MATRIX, IN_LAYER(attention.delta_alpha)},
    [LMQ_ROLE_DELTA_ALPHA_A] = {MATRIX, IN_LAYER(attention.delta_alpha_a)},
    [LMQ_ROLE_DELTA_ALPHA_NORM] = {GAIN, IN_LAYER(attention.delta_alpha_norm)},
    [LMQ_ROLE_DELTA_K_NORM] = {GAIN, IN_LAYER(attention.delta_k_norm)},
    [LMQ_ROLE_DELTA_Q_NORM] = {GAIN, IN_LAYER(attention.delta_q_norm)},
    [LMQ_ROLE_DELTA_BETA] = {MATRIX, IN_LAYER(attention.delta_beta)},
    [LMQ_ROLE_DELTA_DECAY] = {VECTOR, IN_LAYER(attention.delta_decay)},
    [LMQ_ROLE_DELTA_CONV] = {GAIN, IN_LAYER(attention.delta_conv)},
    [LMQ_ROLE_DELTA_NORM] = {GAIN, IN_LAYER(attention.delta_norm)},
    [LMQ_ROLE_STATE_SKIP] = {VECTOR, IN_LAYER(attention.state_skip)},
    [LMQ_ROLE_STATE_Q] = {MATRIX, IN_LAYER(attention.state_q)},
    [LMQ_ROLE_STATE_K] = {MATRIX, IN_LAYER(attention.state_k)},
    [LMQ_ROLE_STATE_V] = {MATRIX, IN_LAYER(attention.state_v)},
    [LMQ_ROLE_STATE_GATE] = {MATRIX, IN_LAYER(attention.state_gate)},
    [LMQ_ROLE_STATE_OUT] = {MATRIX, IN_LAYER(attention.state_out)},
    [LMQ_ROLE_FFN_NORM] = {GAIN, IN_LAYER(feed.norm)},
    [LMQ_ROLE_FFN_POST_NORM] = {GAIN, IN_LAYER(feed.post_norm)},
    [LMQ_ROLE_FFN_SUB_NORM] = {GAIN, IN_LAYER(feed.sub_norm)},
    [LMQ_ROLE_FFN_GATE] = {MATRIX, IN_LAYER(feed.dense.gate)},
    [LMQ_ROLE_FFN_UP] = {MATRIX, IN_LAYER(feed.dense.up)},
    [LMQ_ROLE_FFN_DOWN] = {MATRIX, IN_LAYER(feed.dense.down)},
    [LMQ_ROLE_ROUTER] = {MATRIX, IN_LAYER(feed.router)},
    [LMQ_ROLE_ROUTER_CORRECTION] = {VECTOR, IN_LAYER(feed.correction)},
    [LMQ_ROLE_SHARED_GATE] = {MATRIX, IN_LAYER(feed.shared.gate)},
    [LMQ_ROLE_SHARED_UP] = {MATRIX, IN_LAYER(feed.shared.up)},
    [LMQ_ROLE_SHARED_DOWN] = {MATRIX, IN_LAYER(feed.shared.down)},
    [LMQ_ROLE_SHARED_SWITCH] = {MATRIX, IN_LAYER(feed.shared_switch)},
    [LMQ_ROLE_INPUTS] = {MATRIX, IN_MODEL(inputs)},
    [LMQ_ROLE_INPUTS_PROJ] = {MATRIX, IN_MODEL(inputs_proj)},
    [LMQ_ROLE_INPUTS_NORM] = {GAIN, IN_MODEL(inputs_norm)},
    [LMQ_ROLE_INPUT_GATE] = {MATRIX, IN_LAYER(feed.input_gate)},
    [LMQ_ROLE_INPUT_PROJ] = {MATRIX, IN_LAYER(feed.input_proj)},
    [LMQ_ROLE_INPUT_NORM] = {GAIN, IN_LAYER(feed.input_norm)},
    [LMQ_ROLE_STREAMS_IN] = {MATRIX, IN_MODEL(streams_in)},
    [LMQ_ROLE_STREAMS_OUT] = {MATRIX, IN_MODEL(streams_out)},
    [LMQ_ROLE_STREAM_ROUTER] = {VECTOR, IN_LAYER(feed.stream_router)},
    [LMQ_ROLE_STREAM_ROUTER_NORM] = {GAIN, IN_LAYER(feed.stream_norm)},
    [LMQ_ROLE_STREAM_PREDICT] = {VECTOR, IN_LAYER(feed.stream_predict)},
    [LMQ_ROLE_STREAM_CORRECT] = {VECTOR, IN_LAYER(feed.stream_correct)},
    [LMQ_ROLE_STREAM_SCALE] = {VECTOR, IN_LAYER(feed.stream_scale)},
    [LMQ_ROLE_BYPASS_A] = {MATRIX, IN_LAYER(attention.bypass_a)},
    [LMQ_ROLE_BYPASS_B] = {MATRIX, IN_LAYER(attention.bypass_b)},
    [LMQ_ROLE_BYPASS_NORM] = {GAIN, IN_LAYER(attention.bypass_norm)},
    [LMQ_ROLE_ATTN_NORM_A] = {MATRIX, IN_LAYER(attention.norm_gate.a)},
    [LMQ_ROLE_ATTN_NORM_B] = {MATRIX, IN_LAYER(attention.norm_gate.b)},
    [LMQ_ROLE_FFN_NORM_A] = {MATRIX, IN_LAYER(feed.norm_gate.a)},
    [LMQ_ROLE_FFN_NORM_B] = {MATRIX, IN_LAYER(feed.norm_gate.b)},
    [LMQ_ROLE_HYPER_ATTN] = {VECTOR, IN_LAYER(attention.hyper.fn)},
    [LMQ_ROLE_HYPER_ATTN_BASE] = {VECTOR, IN_LAYER(attention.hyper.base)},
    [LMQ_ROLE_HYPER_ATTN_SCALE] = {VECTOR, IN_LAYER(attention.hyper.scale)},
    [LMQ_ROLE_HYPER_FFN] = {VECTOR, IN_LAYER(feed.hyper.fn)},
    [LMQ_ROLE_HYPER_FFN_BASE] = {VECTOR, IN_LAYER(feed.hyper.base)},
    [LMQ_ROLE_HYPER_FFN_SCALE] = {VECTOR, IN_LAYER(feed.hyper.scale)},
    [LMQ_ROLE_HYPER_OUT] = {VECTOR, IN_MODEL(hyper.fn)},
    [LMQ_ROLE_HYPER_OUT_BASE] = {VECTOR, IN_MODEL(hyper.base)},
    [LMQ_ROLE_HYPER_OUT_SCALE] = {VECTOR, IN_MODEL(hyper.scale)},
    [LMQ_ROLE_GATED_ATTN_DOWN] = {MATRIX, IN_LAYER(attention.gated.down)},
    [LMQ_ROLE_GATED_ATTN_UP] = {MATRIX, IN_LAYER(attention.gated.up)},
    [LMQ_ROLE_GATED_ATTN_WRITE] = {VECTOR, IN_LAYER(attention.gated.write)},
    [LMQ_ROLE_GATED_FFN_DOWN] = {MATRIX, IN_LAYER(feed.gated.down)},
    [LMQ_ROLE_GATED_FFN_UP] = {MATRIX, IN_LAYER(feed.gated.up)},
    [LMQ_ROLE_GATED_FFN_WRITE] = {VECTOR, IN_LAYER(feed.gated.write)},
    [LMQ_ROLE_GATED_OUT_DOWN] = {MATRIX, IN_MODEL(gated.down)},
    [LMQ_ROLE_GATED_OUT_UP] = {MATRIX, IN_MODEL(gated.up)},
    [LMQ_ROLE_GRAM_TABLE] = {MATRIX, IN_LAYER(attention.grams.table)},
    [LMQ_ROLE_GRAM_KEY] = {MATRIX, IN_LAYER(attention.grams.key)},
    [LMQ_ROLE_GRAM_VALUE] = {MATRIX, IN_LAYER(attention.grams.value)},
    [LMQ_ROLE_GRAM_KEY_NORM] = {GAIN, IN_LAYER(attention.grams.key_norm)},
    [LMQ_ROLE_GRAM_QUERY_NORM] = {GAIN, IN_LAYER(attention.grams.query_norm)},
    [LMQ_ROLE_GRAM_CONV_NORM] = {GAIN, IN_LAYER(attention.grams.conv_norm)},
    [LMQ_ROLE_GRAM_CONV] = {VECTOR, IN_LAYER(attention.grams.conv)},
    [LMQ_ROLE_LAYER_SCALE] = {VECTOR, IN_LAYER(feed.scale)},
    [LMQ_ROLE_ACT_POSITIVE] = {VECTOR, IN_LAYER(feed.act_positive)},
    [LMQ_ROLE_ACT_NEGATIVE] = {VECTOR, IN_LAYER(feed.act_negative)},
    [LMQ_ROLE_ACT_SLOPE] = {VECTOR, IN_LAYER(feed.act_slope)},
    [LMQ_ROLE_ACT_BOUND] = {VECTOR, IN_LAYER(feed.act_bound)},
    [LMQ_ROLE_ROUTER_NORM] = {GAIN, IN_LAYER(feed.router_norm)},
    [LMQ_ROLE_EXPERTS_NORM] = {GAIN, IN_LAYER(feed.experts_norm)},
    [LMQ_ROLE_EXPERTS_POST_NORM] = {GAIN, IN_LAYER(feed.experts_post_norm)},
    [LMQ_ROLE_EXPERTS_SCALE] = {VECTOR, IN_LAYER(feed.experts_scale)},
    [LMQ_ROLE_SHARED_POST_NORM] = {GAIN, IN_LAYER(feed.shared_post_norm)},
};

enum lmq_slot_kind
lmq_slot_kind(enum lmq_role role)
{
    return role < LMQ_ROLE_COUNT ? slots[role].kind : LMQ_SLOT_NONE;
}

bool
lmq_is_gate_of_values(const struct lmq_hparams *h, enum lmq_role r)
{
    return lmq_is_lru(h) && (r == LMQ_ROLE_DELTA_ALPHA ||
                             r == LMQ_ROLE_DELTA_BETA);
}

void *
lmq_slot_find(struct lmq_model *model, const struct lmq_place *place)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t offset = slots[place->role].offset;

    if (lmq_role_is_of_streams(place->role))
        return place->item < 0 ||
                       (uint32_t)place->item >= lmq_guessed_streams(h)
                   ? NULL
                   : (char *)model + offset +
                         (size_t)place->item * sizeof(struct lmq_matrix);
    if (place->layer < 0)
        return (char *)model + offset;
    if ((uint32_t)place->layer >= h->n_layers)
        return NULL;
    struct lmq_layer *layer = &model->layers[place->layer];
    if (lmq_is_gate_of_values(h, place->role))
        return place->role == LMQ_ROLE_DELTA_ALPHA
                   ? &layer->attention.keep_gate
                   : &layer->attention.write_gate;
    bool is_of_heads = lmq_role_is_of_heads(place->role);
    if (is_of_heads || lmq_role_is_of_parts(place->role)) {
        struct lmq_matrix *parts =
            *(struct lmq_matrix **)(void *)((char *)layer + offset);
        uint32_t n = is_of_heads
                         ? lmq_layer_heads(h, (size_t)place->layer)
                         : h->n_out_groups;
        return parts == NULL || (uint32_t)place->item >= n
                   ? NULL
                   : parts + place->item;
    }
    if (place->item < 0 || slots[place->role].kind == GAIN)
        return (char *)layer + offset;
    if (layer->feed.experts == NULL ||
        (uint32_t)place->item >= h->n_experts ||
        !lmq_role_is_of_experts(place->role))
        return NULL;
    return (char *)&layer->feed.experts[place->item] +
           (offset - IN_LAYER(feed.dense));
}
