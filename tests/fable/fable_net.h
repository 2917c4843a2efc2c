/*
 * fable_net.h - a small Llama: forward and backward over one window.
 *
 * The parameters are one array in llama2.c's order. A window is up to NET_SEQ
 * tokens beginning at position 0; what is scored is a target per token.
 */
#ifndef FABLE_NET_H
#define FABLE_NET_H

#include <stddef.h>
#include <stdint.h>

/* The bundled model's; make_fable.sh has those of a larger one. */
#ifndef FABLE_DIM
#define FABLE_DIM 96
#define FABLE_HIDDEN 200
#define FABLE_LAYERS 4
#define FABLE_HEADS 6
#define FABLE_KV_HEADS 2
#endif

enum {
    NET_DIM = FABLE_DIM,
    NET_HIDDEN = FABLE_HIDDEN,
    NET_LAYERS = FABLE_LAYERS,
    NET_HEADS = FABLE_HEADS,
    NET_KV_HEADS = FABLE_KV_HEADS,
    NET_HEAD = NET_DIM / NET_HEADS,
    NET_KV_DIM = NET_KV_HEADS * NET_HEAD,
    NET_VOCAB = 512,
    NET_SEQ = 256,
    NET_NO_TARGET = -1
};

#define NET_NORM_EPS 1e-5f
#define NET_ROPE_BASE 10000.0

/* Views into one array of net_n_params() floats; (n_layers, ...) each. */
struct net_params {
    float *embed;    /* (vocab, dim), the head too */
    float *rms_att;  /* (dim) */
    float *wq;       /* (dim, dim) */
    float *wk;       /* (kv_dim, dim) */
    float *wv;       /* (kv_dim, dim) */
    float *wo;       /* (dim, dim) */
    float *rms_ffn;  /* (dim) */
    float *w1;       /* (hidden, dim) */
    float *w2;       /* (dim, hidden) */
    float *w3;       /* (hidden, dim) */
    float *rms_last; /* (dim), once */
};

size_t net_n_params(void);
struct net_params net_view(float *base);

/* What a window needs between forward and backward; NULL: out of memory. */
struct net_work;
struct net_work *net_work_new(void);
void net_work_free(struct net_work *work);

/*
 * Sums up -log p of the targets, all of them in [0, vocab) or NET_NO_TARGET
 * where nothing is scored. ids and targets are NET_SEQ long.
 */
double net_forward(const struct net_params *p, struct net_work *work,
                   const uint16_t *ids, const int *targets);

/* Adds the gradient of `scale` times that sum to grad. */
void net_backward(const struct net_params *p, const struct net_params *grad,
                  struct net_work *work, const uint16_t *ids,
                  const int *targets, float scale);

/* Angle of rotary pair `pair` at a position, in radians. */
double net_rope_angle(int pos, int pair);

#endif
