/*
 * hparams_kinds.h - what kinds of norms, positions, routers, layers and so on
 * the description of a model tells apart.
 */
#ifndef LMQ_FORMATS_MODEL_HPARAMS_KINDS_H
#define LMQ_FORMATS_MODEL_HPARAMS_KINDS_H

enum lmq_norm {
    LMQ_NORM_RMS,         /* x / rms(x) * weight */
    LMQ_NORM_LAYER,       /* (x - mean) / sd * weight, + bias if there is one */
    LMQ_NORM_LAYER_PLAIN, /* the same without weight and bias */
    LMQ_NORM_RMS_PLAIN,   /* the first without weight */
    LMQ_NORM_COUNT
};

/* Where a block's norms stand: before attention and feed-forward, or behind
 * them and before their result is added, or both. */
enum lmq_norm_place {
    LMQ_NORMS_BEFORE,
    LMQ_NORMS_AFTER,
    LMQ_NORMS_AROUND,
    LMQ_NORM_PLACE_COUNT
};

/* Attention and feed-forward one after the other, or both from the same
 * residual stream: each with its norm, or with one for both. */
enum lmq_residual {
    LMQ_RESIDUAL_SEQUENTIAL,
    LMQ_RESIDUAL_PARALLEL,
    LMQ_RESIDUAL_PARALLEL_ONE_NORM,
    LMQ_RESIDUAL_COUNT
};

/* How several streams become what a block is given, and change by what it
 * gives. */
enum lmq_stream_kind {
    LMQ_STREAMS_GUESSED, /* AltUp: the first goes through, the others guess */
    LMQ_STREAMS_HYPER,   /* hyper-connections: blocks read a sum of all */
    LMQ_STREAMS_GATED,   /* likewise, of all normed, each number with a gate */
    LMQ_STREAMS_COUNT
};

/* Norms (of the model's kind) of queries and keys. */
enum lmq_qk_norm {
    LMQ_QK_NORM_NONE,
    LMQ_QK_NORM_HEAD,  /* each head; one weight of head_dim for all */
    LMQ_QK_NORM_HEADS, /* each head; weights of its own */
    LMQ_QK_NORM_WHOLE, /* all heads together */
    LMQ_QK_NORM_BARE,  /* each head, without weights; not in NoPE layers */
    LMQ_QK_NORM_BARE_ALL, /* the same, in those, too */
    LMQ_QK_NORM_BARE_QUERIES, /* each head; only keys' has weights */
    LMQ_QK_NORM_TURNING, /* of latent keys what turns, before it does */
    LMQ_QK_NORM_COUNT
};

enum lmq_positions {
    LMQ_POSITIONS_ROTARY,
    LMQ_POSITIONS_LEARNED, /* a table, added to the embedding */
    LMQ_POSITIONS_ALIBI,   /* scores minus slope times distance */
    LMQ_POSITIONS_ALIBI_SCALED, /* Falcon's: in bfloat16, before attn_scale */
    LMQ_POSITIONS_NONE,
    LMQ_POSITIONS_COUNT
};

enum lmq_rope_scaling {
    LMQ_ROPE_PLAIN,
    LMQ_ROPE_LINEAR,
    LMQ_ROPE_LLAMA3,
    LMQ_ROPE_NTK,      /* another base, by rope_factor */
    LMQ_ROPE_DYNAMIC,  /* the same, growing with the position */
    LMQ_ROPE_YARN,
    LMQ_ROPE_LONGROPE, /* rope_short; rope_long at all positions of what is
                          longer than rope_context */
    LMQ_ROPE_FACTORS,  /* rope_short, always */
    LMQ_ROPE_SCALING_COUNT
};

enum lmq_activation {
    LMQ_ACTIVATION_SILU,
    LMQ_ACTIVATION_GELU,      /* by erf */
    LMQ_ACTIVATION_GELU_TANH, /* by tanh */
    LMQ_ACTIVATION_RELU,
    LMQ_ACTIVATION_SIGMOID,
    LMQ_ACTIVATION_RELU2,     /* the square of ReLU */
    LMQ_ACTIVATION_XIELU,     /* its numbers are tensors of the layers */
    LMQ_ACTIVATION_COUNT
};

/* How a router's logits become the weights of the chosen experts. */
enum lmq_router {
    LMQ_ROUTER_SOFTMAX,        /* over all experts, then choose */
    LMQ_ROUTER_SOFTMAX_CHOSEN, /* choose, then over the chosen */
    LMQ_ROUTER_SIGMOID,
    LMQ_ROUTER_NEAR, /* one after another, by softmax over those near each */
    LMQ_ROUTER_SIGMOID_CHOSEN, /* choose, then of each chosen */
    LMQ_ROUTER_ROOT_SOFTPLUS, /* sqrt(log(1 + exp(x))) */
    LMQ_ROUTER_COUNT
};

/* The score of a group of experts, where groups are chosen first. */
enum lmq_group_score {
    LMQ_GROUP_SCORE_BEST,     /* its best expert */
    LMQ_GROUP_SCORE_BEST_TWO  /* the sum of its two best */
};

/* What stands in place of attention in some layers: each token changes what the
 * layer remembers. */
enum lmq_recurrence {
    LMQ_RECURRENCE_DELTA,       /* the gated delta rule */
    LMQ_RECURRENCE_STATE_SPACE, /* Mamba 2: a matrix that decays and is added
                                   to */
    LMQ_RECURRENCE_CONVOLUTION, /* no matrix: the last few tokens */
    LMQ_RECURRENCE_SELECTIVE,   /* Mamba 1: a state space of which each key
                                   decays for itself; all but values and gates
                                   is made of values */
    LMQ_RECURRENCE_LIGHTNING,   /* a matrix whose decay is its head's and its
                                   layer's, whatever the tokens are */
    LMQ_RECURRENCE_LRU, /* no keys: each value decays for itself, by a gate */
    LMQ_RECURRENCE_COUNT
};

/* What is different in a layer; 0: what the description says of all. */
enum lmq_layer_kind {
    LMQ_LAYER_FULL = 1,    /* no sliding window, though the others have one */
    LMQ_LAYER_NOPE = 2,    /* queries and keys are not rotated */
    LMQ_LAYER_DENSE = 4,   /* one feed-forward, the others have experts */
    LMQ_LAYER_DELTA = 8,   /* a recurrence in place of attention */
    LMQ_LAYER_BARE = 16,   /* no feed-forward */
    LMQ_LAYER_FEED = 32,   /* nothing but a feed-forward */
    LMQ_LAYER_BESIDE = 64, /* attention beside the recurrence, of the same
                              input; both are added */
    LMQ_LAYER_SINKLESS = 128, /* no sinks, though the others have some */
    LMQ_LAYER_AFTER = 256, /* norms behind its blocks, wherever the others have
                              theirs */
    LMQ_LAYER_SPARSE = 512, /* the feed-forward goes on with what stands out */
    LMQ_LAYER_LIMITED = 1024, /* act(gate x) is limited, and up x: what is no
                                 expert, or an expert */
    LMQ_LAYER_LIMITED_EXPERTS = 2048,
    LMQ_LAYER_POOL = 4096, /* attention sees what is far in pools: pools.h */
    LMQ_LAYER_OVERLAP = 8192, /* likewise, and each begins in the one before */
    LMQ_LAYER_TOKENS = 16384, /* a table says which experts a token goes to */
    LMQ_LAYER_GRAMS = 32768, /* streams are given something of the last tokens:
                               grams.h */
    LMQ_LAYER_INDEX = 65536 /* latent attention sees what the layer chooses,
                               and so does that behind it: pools.h */
};

#endif
