/*
 * export_gguf_names.c - under which role and name llama.cpp has a tensor.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <stdio.h>
#include <string.h>

/* Of keys that are values, and of results that have matrices by parts. */
static const char *
pool_name(const struct lmq_place *place)
{
    switch ((int)place->role) {
    case LMQ_ROLE_ATTN_K:
        return "attn_kv";
    case LMQ_ROLE_ATTN_K_NORM:
        return "attn_kv_a_norm";
    case LMQ_ROLE_ATTN_OUT:
        return "attn_output_b";
    default:
        return NULL;
    }
}

/* What in a recurrent layer has another name than ours. */
static const char *
recurrent_name(const struct lmq_hparams *h, const struct lmq_place *place)
{
    bool is_short = lmq_is_convolution(h);

    switch ((int)place->role) {
    case LMQ_ROLE_DELTA_NORM:
        return lmq_is_lightning(h) ? "attn_norm_2" : NULL;
    case LMQ_ROLE_ATTN_OUT:
        if (h->has_key_decays || lmq_is_lightning(h) ||
            !lmq_layer_only_recurs(h, (size_t)place->layer))
            return NULL;
        return is_short ? "shortconv.out_proj" : "ssm_out";
    case LMQ_ROLE_STATE_OUT:
        return "ssm_out";
    case LMQ_ROLE_DELTA_QKVZ:
        return is_short ? "shortconv.in_proj" : NULL;
    case LMQ_ROLE_DELTA_CONV:
        return is_short ? "shortconv.conv" : NULL;
    case LMQ_ROLE_DELTA_ALPHA:
        return place->part == LMQ_PART_BIAS || lmq_is_selective(h) ? "ssm_dt"
               : !h->has_key_decays ? NULL
               : h->step_rank > 0   ? "ssm_f_b"
                                    : "ssm_f_a";
    case LMQ_ROLE_DELTA_ALPHA_A:
        return "ssm_f_a";
    case LMQ_ROLE_ATTN_GATE:
        return !h->has_key_decays ? NULL
               : h->gate_rank > 0 ? "ssm_g_b"
                                  : "ssm_g_a";
    case LMQ_ROLE_ATTN_GATE_A:
        return "ssm_g_a";
    case LMQ_ROLE_DELTA_BA:
        return lmq_is_selective(h) ? "ssm_x" : NULL;
    case LMQ_ROLE_DELTA_ALPHA_NORM:
        return "ssm_dt_norm";
    case LMQ_ROLE_DELTA_K_NORM:
        return "ssm_b_norm";
    case LMQ_ROLE_DELTA_Q_NORM:
        return "ssm_c_norm";
    default:
        return NULL;
    }
}

void
lmq_gguf_target_name(const struct lmq_gguf_plan *plan,
                     const struct lmq_place *place, char *name, size_t size)
{
    const struct lmq_family *family = plan->family;
    const char *part = place->part == LMQ_PART_BIAS ? "bias" : "weight";
    bool is_apart = plan->written.has_expert_norms; /* from experts */
    struct lmq_place other = *place;
    const char *odd = NULL;

    other.item = -1;
    if (place->layer >= 0 &&
        lmq_layer_is(&plan->written, (size_t)place->layer, LMQ_LAYER_DELTA))
        odd = recurrent_name(&plan->written, place);
    else if ((family->gguf.keys & LMQ_GGUF_POOLS) != 0)
        odd = pool_name(place);
    switch ((int)place->role) {
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_K:
    case LMQ_ROLE_ATTN_V:
        if (family->gguf.fuses_qkv)
            other.role = LMQ_ROLE_ATTN_QKV;
        break;
    case LMQ_ROLE_FFN_GATE:
        if (place->item >= 0)
            other.role = LMQ_ROLE_EXPERTS_GATE;
        else if (family->gguf.fuses_gate_up)
            other.role = LMQ_ROLE_FFN_UP;
        break;
    case LMQ_ROLE_FFN_UP:
        if (place->item >= 0)
            other.role = LMQ_ROLE_EXPERTS_UP;
        break;
    case LMQ_ROLE_FFN_DOWN:
        if (place->item >= 0)
            other.role = LMQ_ROLE_EXPERTS_DOWN;
        break;
    case LMQ_ROLE_SHARED_GATE:
        if (is_apart)
            other.role = LMQ_ROLE_FFN_GATE;
        else if (family->gguf.fuses_shared)
            other.role = LMQ_ROLE_SHARED_UP;
        break;
    case LMQ_ROLE_SHARED_UP:
        if (is_apart)
            other.role = LMQ_ROLE_FFN_UP;
        break;
    case LMQ_ROLE_SHARED_DOWN:
        if (is_apart)
            other.role = LMQ_ROLE_FFN_DOWN;
        break;
    case LMQ_ROLE_ROUTER_NORM:
        odd = "ffn_gate_inp";
        part = "scale";
        break;
    case LMQ_ROLE_EXPERTS_SCALE:
        odd = "ffn_down_exps";
        part = "scale";
        break;
    case LMQ_ROLE_ATTN_NORM: /* Falcon's, the other way round */
        if (strcmp(family->gguf.name, "falcon") == 0 &&
            plan->written.residual == LMQ_RESIDUAL_PARALLEL)
            odd = "attn_norm_2";
        break;
    case LMQ_ROLE_FFN_NORM:
        if (strcmp(family->gguf.name, "falcon") == 0)
            other.role = LMQ_ROLE_ATTN_NORM;
        if (strcmp(family->gguf.name, "dbrx") == 0)
            odd = "attn_output_norm";
        if (family->gguf.has_post_norm_name)
            other.role = LMQ_ROLE_ATTN_POST_NORM;
        if (family->gguf.keys & LMQ_GGUF_HALVES)
            other.role = LMQ_ROLE_ATTN_NORM;
        break;
    case LMQ_ROLE_OUTPUT_NORM:
        if (family->gguf.has_late_norm_name)
            other.role = LMQ_ROLE_EMBEDDING_NORM;
        break;
    default:
        break;
    }
    if (place->role == LMQ_ROLE_DELTA_DECAY ||
        place->role == LMQ_ROLE_STATE_SKIP ||
        (place->role == LMQ_ROLE_FFN_NORM &&
         family->gguf.has_bare_feed_norm) ||
        (place->role == LMQ_ROLE_ROUTER_CORRECTION &&
         family->gguf.has_bare_correction))
        snprintf(name, size, "blk.%d.%s", (int)place->layer,
                 lmq_role_name(place->role));
    else if (odd != NULL)
        snprintf(name, size, "blk.%d.%s.%s", (int)place->layer, odd, part);
    else
        lmq_name_canonical(&other, name, size);
}
