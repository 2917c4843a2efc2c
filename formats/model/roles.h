/*
 * roles.h - what a tensor may be for.
 */
#ifndef LMQ_FORMATS_MODEL_ROLES_H
#define LMQ_FORMATS_MODEL_ROLES_H

/* The values stand in .lmq files (lmq(5), "Roles and names"): append only. */
enum lmq_role {
    LMQ_ROLE_OTHER = 0,
    LMQ_ROLE_EMBEDDING = 1,
    LMQ_ROLE_HEAD = 2,
    LMQ_ROLE_OUTPUT_NORM = 3,
    LMQ_ROLE_ATTN_NORM = 4,
    LMQ_ROLE_ATTN_Q = 5,
    LMQ_ROLE_ATTN_K = 6,
    LMQ_ROLE_ATTN_V = 7,
    LMQ_ROLE_ATTN_OUT = 8,
    LMQ_ROLE_FFN_NORM = 9,
    LMQ_ROLE_FFN_GATE = 10,
    LMQ_ROLE_FFN_UP = 11,
    LMQ_ROLE_FFN_DOWN = 12,
    /* Since version 1.1 of the container: */
    LMQ_ROLE_POSITIONS = 13,         /* learned ones */
    LMQ_ROLE_ATTN_Q_NORM = 14,
    LMQ_ROLE_ATTN_K_NORM = 15,
    LMQ_ROLE_ATTN_POST_NORM = 16,
    LMQ_ROLE_FFN_POST_NORM = 17,
    LMQ_ROLE_ATTN_SINKS = 18,
    LMQ_ROLE_ROUTER = 19,
    LMQ_ROLE_ROUTER_CORRECTION = 20, /* always a bias */
    LMQ_ROLE_SHARED_GATE = 21,       /* of the shared experts */
    LMQ_ROLE_SHARED_UP = 22,
    LMQ_ROLE_SHARED_DOWN = 23,
    LMQ_ROLE_SHARED_SWITCH = 24,     /* one number per token */
    LMQ_ROLE_ATTN_Q_A = 25,          /* latent attention */
    LMQ_ROLE_ATTN_Q_A_NORM = 26,
    LMQ_ROLE_ATTN_Q_B = 27,
    LMQ_ROLE_ATTN_KV_A = 28,
    LMQ_ROLE_ATTN_KV_A_NORM = 29,
    LMQ_ROLE_ATTN_K_B = 30,          /* one matrix a head */
    LMQ_ROLE_ATTN_V_B = 31,          /* one matrix a head */
    LMQ_ROLE_ATTN_GATE = 32,         /* of what heads give */
    LMQ_ROLE_DELTA_ALPHA = 33,       /* recurrences: time steps, */
    LMQ_ROLE_DELTA_BETA = 34,        /* how much is written, */
    LMQ_ROLE_DELTA_DECAY = 35,       /* log of what decays in a time step */
    LMQ_ROLE_DELTA_CONV = 36,
    LMQ_ROLE_DELTA_NORM = 37,
    LMQ_ROLE_EMBEDDING_NORM = 38,
    LMQ_ROLE_INPUTS = 39,            /* of layers: of each token, for all, */
    LMQ_ROLE_INPUTS_PROJ = 40,       /* from the embedding, */
    LMQ_ROLE_INPUTS_NORM = 41,
    LMQ_ROLE_INPUT_GATE = 42,        /* and what a layer does with its own */
    LMQ_ROLE_INPUT_PROJ = 43,
    LMQ_ROLE_INPUT_NORM = 44,
    LMQ_ROLE_LAYER_SCALE = 45,       /* one number */
    LMQ_ROLE_ROUTER_NORM = 46,
    LMQ_ROLE_EXPERTS_NORM = 47,
    LMQ_ROLE_EXPERTS_POST_NORM = 48,
    LMQ_ROLE_EXPERTS_SCALE = 49,     /* a number for each */
    LMQ_ROLE_SHARED_POST_NORM = 50,
    LMQ_ROLE_ACT_POSITIVE = 51,      /* xIELU: one number each */
    LMQ_ROLE_ACT_NEGATIVE = 52,
    LMQ_ROLE_ACT_SLOPE = 53,
    LMQ_ROLE_ACT_BOUND = 54,
    LMQ_ROLE_STATE_SKIP = 55,        /* state space: how much of its value a
                                        head gives past the state */
    LMQ_ROLE_STATE_Q = 56,           /* of a recurrence beside attention: */
    LMQ_ROLE_STATE_K = 57,           /* alone it has the roles 5 to 8 and 32 */
    LMQ_ROLE_STATE_V = 58,
    LMQ_ROLE_STATE_GATE = 59,
    LMQ_ROLE_STATE_OUT = 60,
    LMQ_ROLE_DELTA_ALPHA_A = 61,     /* the first of two matrices that make
                                        time steps */
    LMQ_ROLE_DELTA_ALPHA_NORM = 62,  /* of what it gives, */
    LMQ_ROLE_DELTA_K_NORM = 63,      /* of keys, of queries of a selective */
    LMQ_ROLE_DELTA_Q_NORM = 64,      /* state space */
    LMQ_ROLE_ATTN_GATE_A = 65,       /* the first of two that make gates */
    LMQ_ROLE_ATTN_SUB_NORM = 66,     /* of what all heads give, */
    LMQ_ROLE_FFN_SUB_NORM = 67,      /* of what ffn_down looks at */
    LMQ_ROLE_STREAMS_IN = 68,        /* several streams: one matrix for each but
                                        the first, from the embedding, */
    LMQ_ROLE_STREAMS_OUT = 69,       /* and to what the head looks at */
    LMQ_ROLE_STREAM_ROUTER = 70,     /* what streams make of each other: by */
    LMQ_ROLE_STREAM_ROUTER_NORM = 71, /* what the first one says, */
    LMQ_ROLE_STREAM_PREDICT = 72,    /* before a layer */
    LMQ_ROLE_STREAM_CORRECT = 73,    /* and behind it */
    LMQ_ROLE_STREAM_SCALE = 74,      /* of what a layer's input meets */
    LMQ_ROLE_BYPASS_A = 75,          /* past attention: two matrices, */
    LMQ_ROLE_BYPASS_B = 76,
    LMQ_ROLE_BYPASS_NORM = 77,       /* and of what they give */
    LMQ_ROLE_ATTN_NORM_A = 78,       /* of what attention is given: two */
    LMQ_ROLE_ATTN_NORM_B = 79,       /* matrices that make its gate; */
    LMQ_ROLE_FFN_NORM_A = 80,        /* likewise of experts */
    LMQ_ROLE_FFN_NORM_B = 81,
    LMQ_ROLE_HYPER_ATTN = 82,        /* hyper-connections: before attention */
    LMQ_ROLE_HYPER_ATTN_BASE = 83,   /* what of streams says how they are */
    LMQ_ROLE_HYPER_ATTN_SCALE = 84,  /* read, written and mixed; */
    LMQ_ROLE_HYPER_FFN = 85,         /* likewise before the feed-forward, */
    LMQ_ROLE_HYPER_FFN_BASE = 86,
    LMQ_ROLE_HYPER_FFN_SCALE = 87,
    LMQ_ROLE_HYPER_OUT = 88,         /* and how the head reads them */
    LMQ_ROLE_HYPER_OUT_BASE = 89,
    LMQ_ROLE_HYPER_OUT_SCALE = 90,
    LMQ_ROLE_ATTN_OUT_A = 91,        /* of a part of what heads give: one for
                                        each, before attn_output */
    LMQ_ROLE_POOL_KV = 92,           /* pools: what is pooled, */
    LMQ_ROLE_POOL_GATE = 93,         /* by which weights, */
    LMQ_ROLE_POOL_BIAS = 94,         /* what these have by their place, */
    LMQ_ROLE_POOL_NORM = 95,         /* of what comes of it */
    LMQ_ROLE_INDEX_Q = 96,           /* what chooses pools: its queries, */
    LMQ_ROLE_INDEX_WEIGHTS = 97,     /* what each of their heads weighs, */
    LMQ_ROLE_INDEX_KV = 98,          /* and its own pools */
    LMQ_ROLE_INDEX_GATE = 99,
    LMQ_ROLE_INDEX_BIAS = 100,
    LMQ_ROLE_INDEX_NORM = 101,
    LMQ_ROLE_TOKEN_EXPERTS = 102,    /* which experts each token goes to */
    LMQ_ROLE_ATTN_GROWTH = 103,      /* of a head's scores by the position */
    LMQ_ROLE_GATED_ATTN_DOWN = 104,  /* gated streams: before attention two */
    LMQ_ROLE_GATED_ATTN_UP = 105,    /* matrices that make gates, and what */
    LMQ_ROLE_GATED_ATTN_WRITE = 106, /* says how much is written to each; */
    LMQ_ROLE_GATED_FFN_DOWN = 107,   /* likewise before the feed-forward, */
    LMQ_ROLE_GATED_FFN_UP = 108,
    LMQ_ROLE_GATED_FFN_WRITE = 109,
    LMQ_ROLE_GATED_OUT_DOWN = 110,   /* and before the head */
    LMQ_ROLE_GATED_OUT_UP = 111,
    LMQ_ROLE_GRAM_TABLE = 112,       /* sequences of tokens: a table, */
    LMQ_ROLE_GRAM_KEY = 113,         /* what its rows are to each stream, */
    LMQ_ROLE_GRAM_VALUE = 114,       /* what they give, */
    LMQ_ROLE_GRAM_KEY_NORM = 115,    /* norms of that, of streams, of what is */
    LMQ_ROLE_GRAM_QUERY_NORM = 116,  /* given to a convolution, */
    LMQ_ROLE_GRAM_CONV_NORM = 117,
    LMQ_ROLE_GRAM_CONV = 118,        /* and that */
    LMQ_ROLE_INDEX_K = 119,          /* what chooses positions: its keys */
    LMQ_ROLE_INDEX_K_NORM = 120,
    LMQ_ROLE_COUNT,
    /* What sources fuse: taken apart before anybody sees it (split.c). */
    LMQ_ROLE_ATTN_QKV = LMQ_ROLE_COUNT,
    LMQ_ROLE_ATTN_KV_B,
    LMQ_ROLE_DELTA_QKVZ,
    LMQ_ROLE_DELTA_BA,
    LMQ_ROLE_DELTA_CONV_Q, /* put together (apart.c): of queries, */
    LMQ_ROLE_DELTA_CONV_K, /* of keys, */
    LMQ_ROLE_DELTA_CONV_V, /* of values */
    LMQ_ROLE_GRAM_SHARD,   /* of a table: so many rows */
    LMQ_ROLE_FFN_GATE_UP,
    LMQ_ROLE_EXPERTS_GATE, /* of all experts, in three dimensions */
    LMQ_ROLE_EXPERTS_UP,
    LMQ_ROLE_EXPERTS_DOWN,
    LMQ_ROLE_EXPERTS_GATE_UP,
    LMQ_ROLE_SHARED_GATE_UP,
    LMQ_ROLE_STORED_COUNT
};

enum lmq_part { LMQ_PART_WEIGHT = 0, LMQ_PART_BIAS = 1, LMQ_PART_COUNT };

#endif
