/*
 * gguf_evidence.h - what the tensors of a GGUF file say about the model, which
 * its keys do not.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_EVIDENCE_H
#define LMQ_FORMATS_GGUF_GGUF_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/model/hparams.h"

/* What only the tensors tell. */
struct lmq_gguf_evidence {
    uint32_t vocab_size;      /* rows of the embedding */
    uint32_t layer_input_vocab; /* of per_layer_token_embd */
    uint32_t residual_rank;   /* of laurel_l */
    bool has_head;            /* one of its own */
    bool has_qk_norm;
    bool has_ffn_norm;
    bool has_second_norm;     /* attn_norm_2: Falcon's */
    bool has_query_latents;   /* attn_q_a */
    bool has_correction;      /* exp_probs_b */
    bool has_lone_keys;       /* attn_k without attn_v */
    bool has_layer_scale;     /* layer_output_scale */
    bool has_state_norm;      /* ssm_norm */
    uint64_t gate_rows;       /* of attn_gate, in the first layer */
    bool has_router[LMQ_MAX_LAYERS]; /* the layer */
    const double *always;     /* rope_freqs: factors of the rotary angles */
    const double *near, *far; /* rope_factors_short, _long */
    uint32_t n_always, n_near, n_far;
};

#endif
