/*
 * fable_net.c - a small Llama: forward and backward over one window.
 *
 * Everything is a matrix product over the tokens of the window, or a short
 * loop the compiler vectorizes. Attention goes by blocks of QUERY_BLOCK rows,
 * so that most of what the causal mask hides is not computed at all; the
 * probabilities are kept for the way back.
 */
#include "fable_net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fable_gemm.h"

#define QUERY_BLOCK 64
#define N_PAIRS (NET_HEAD / 2)

struct layer_work {
    float x[NET_SEQ][NET_DIM]; /* what comes in */
    float n1[NET_SEQ][NET_DIM];
    float q[NET_SEQ][NET_DIM];
    float k[NET_SEQ][NET_KV_DIM];
    float v[NET_SEQ][NET_KV_DIM];
    float prob[NET_HEADS][NET_SEQ][NET_SEQ];
    float att[NET_SEQ][NET_DIM];
    float mid[NET_SEQ][NET_DIM]; /* x and what attention adds */
    float n2[NET_SEQ][NET_DIM];
    float gate[NET_SEQ][NET_HIDDEN];
    float up[NET_SEQ][NET_HIDDEN];
    float act[NET_SEQ][NET_HIDDEN];
    float inv1[NET_SEQ], inv2[NET_SEQ]; /* 1 / root mean square */
};

struct net_work {
    struct layer_work layers[NET_LAYERS];
    float x[NET_SEQ][NET_DIM]; /* what the last layer gives */
    float last[NET_SEQ][NET_DIM];
    float inv[NET_SEQ];
    float prob[NET_SEQ][NET_VOCAB];
    float cos[NET_SEQ][N_PAIRS], sin[NET_SEQ][N_PAIRS];
    /* gradients, by what they are the gradient of */
    float d_x[NET_SEQ][NET_DIM];
    float d_norm[NET_SEQ][NET_DIM];
    float d_q[NET_SEQ][NET_DIM];
    float d_k[NET_SEQ][NET_KV_DIM];
    float d_v[NET_SEQ][NET_KV_DIM];
    float d_att[NET_SEQ][NET_DIM];
    float d_gate[NET_SEQ][NET_HIDDEN];
    float d_up[NET_SEQ][NET_HIDDEN];
    float d_act[NET_SEQ][NET_HIDDEN];
    float d_logits[NET_SEQ][NET_VOCAB];
    float d_score[QUERY_BLOCK][NET_SEQ];
};

/* ---- Parameters ---- */

static float *
take(float **at, size_t n)
{
    float *p = *at;
    *at += n;
    return p;
}

size_t
net_n_params(void)
{
    size_t per_layer = 2 * NET_DIM + 2 * NET_DIM * NET_DIM +
                       2 * NET_KV_DIM * NET_DIM + 3 * NET_HIDDEN * NET_DIM;
    return NET_VOCAB * NET_DIM + NET_LAYERS * per_layer + NET_DIM;
}

struct net_params
net_view(float *base)
{
    struct net_params p;

    p.embed = take(&base, NET_VOCAB * NET_DIM);
    p.rms_att = take(&base, NET_LAYERS * NET_DIM);
    p.wq = take(&base, NET_LAYERS * NET_DIM * NET_DIM);
    p.wk = take(&base, NET_LAYERS * NET_KV_DIM * NET_DIM);
    p.wv = take(&base, NET_LAYERS * NET_KV_DIM * NET_DIM);
    p.wo = take(&base, NET_LAYERS * NET_DIM * NET_DIM);
    p.rms_ffn = take(&base, NET_LAYERS * NET_DIM);
    p.w1 = take(&base, NET_LAYERS * NET_HIDDEN * NET_DIM);
    p.w2 = take(&base, NET_LAYERS * NET_DIM * NET_HIDDEN);
    p.w3 = take(&base, NET_LAYERS * NET_HIDDEN * NET_DIM);
    p.rms_last = take(&base, NET_DIM);
    return p;
}

/* The same views, each at its part for one layer. */
static struct net_params
layer_view(const struct net_params *all, size_t l)
{
    struct net_params p = *all;

    p.rms_att += l * NET_DIM;
    p.wq += l * NET_DIM * NET_DIM;
    p.wk += l * NET_KV_DIM * NET_DIM;
    p.wv += l * NET_KV_DIM * NET_DIM;
    p.wo += l * NET_DIM * NET_DIM;
    p.rms_ffn += l * NET_DIM;
    p.w1 += l * NET_HIDDEN * NET_DIM;
    p.w2 += l * NET_DIM * NET_HIDDEN;
    p.w3 += l * NET_HIDDEN * NET_DIM;
    return p;
}

double
net_rope_angle(int pos, int pair)
{
    return pos * pow(NET_ROPE_BASE, -2.0 * pair / (int)NET_HEAD);
}

struct net_work *
net_work_new(void)
{
    struct net_work *work = calloc(1, sizeof(*work));
    if (work == NULL)
        return NULL;
    for (int t = 0; t < NET_SEQ; t++) {
        for (int i = 0; i < N_PAIRS; i++) {
            work->cos[t][i] = (float)cos(net_rope_angle(t, i));
            work->sin[t][i] = (float)sin(net_rope_angle(t, i));
        }
    }
    return work;
}

void
net_work_free(struct net_work *work)
{
    free(work);
}

/* ---- Linear maps: w is (n_out, n_in), a row per output ---- */

static void
linear(const float *x, int n_in, const float *w, int n_out, float *y,
       int is_sum)
{
    gemm(NET_SEQ, n_out, n_in, (struct mat){ x, n_in, 1 },
         (struct mat){ w, 1, n_in }, y, n_out, is_sum);
}

static void
linear_back_x(const float *d_y, int n_out, const float *w, int n_in,
              float *d_x, int is_sum)
{
    gemm(NET_SEQ, n_in, n_out, (struct mat){ d_y, n_out, 1 },
         (struct mat){ w, n_in, 1 }, d_x, n_in, is_sum);
}

static void
linear_back_w(const float *d_y, int n_out, const float *x, int n_in,
              float *d_w)
{
    gemm(n_out, n_in, NET_SEQ, (struct mat){ d_y, 1, n_out },
         (struct mat){ x, n_in, 1 }, d_w, n_in, 1);
}

/* ---- RMSNorm ---- */

static void
norm(float x[][NET_DIM], const float *weight, float y[][NET_DIM], float *inv)
{
    for (int t = 0; t < NET_SEQ; t++) {
        float sum = 0;
        for (int i = 0; i < NET_DIM; i++)
            sum += x[t][i] * x[t][i];
        inv[t] = 1 / sqrtf(sum / (int)NET_DIM + NET_NORM_EPS);
        for (int i = 0; i < NET_DIM; i++)
            y[t][i] = x[t][i] * inv[t] * weight[i];
    }
}

/* Adds to d_x and d_weight. */
static void
norm_back(float x[][NET_DIM], const float *weight, const float *inv,
          float d_y[][NET_DIM], float d_x[][NET_DIM], float *d_weight)
{
    for (int t = 0; t < NET_SEQ; t++) {
        float sum = 0;
        for (int i = 0; i < NET_DIM; i++)
            sum += d_y[t][i] * weight[i] * x[t][i];
        float back = sum * inv[t] * inv[t] * inv[t] / (int)NET_DIM;
        for (int i = 0; i < NET_DIM; i++) {
            d_weight[i] += d_y[t][i] * x[t][i] * inv[t];
            d_x[t][i] += d_y[t][i] * weight[i] * inv[t] - back * x[t][i];
        }
    }
}

/* ---- Rotary positions: pairs are neighbours, as in llama2.c ---- */

/* direction is 1 forward and -1 for the gradient. */
static void
rotate(const struct net_work *work, float *x, int width, float direction)
{
    for (int t = 0; t < NET_SEQ; t++, x += width) {
        for (int i = 0; i < width; i += 2) {
            int pair = i % NET_HEAD / 2;
            float c = work->cos[t][pair], s = direction * work->sin[t][pair];
            float a = x[i], b = x[i + 1];
            x[i] = a * c - b * s;
            x[i + 1] = a * s + b * c;
        }
    }
}

/* ---- Attention ---- */

/* Scores of row t over n columns become probabilities of columns 0..t. */
static void
softmax_row(float *row, int t, int n)
{
    const float scale = 1 / sqrtf(NET_HEAD);
    float max = row[0], sum = 0;

    for (int i = 1; i <= t; i++)
        max = row[i] > max ? row[i] : max;
    for (int i = 0; i <= t; i++) {
        row[i] = expf((row[i] - max) * scale);
        sum += row[i];
    }
    for (int i = 0; i <= t; i++)
        row[i] /= sum;
    for (int i = t + 1; i < n; i++)
        row[i] = 0;
}

static void
attention(struct layer_work *w)
{
    for (int h = 0; h < NET_HEADS; h++) {
        int at = h * NET_HEAD;
        int kv = h / (NET_HEADS / NET_KV_HEADS) * NET_HEAD;
        struct mat k_t = { &w->k[0][kv], 1, NET_KV_DIM };
        struct mat v = { &w->v[0][kv], NET_KV_DIM, 1 };
        for (int t0 = 0; t0 < NET_SEQ; t0 += QUERY_BLOCK) {
            int n = t0 + QUERY_BLOCK;
            float *prob = w->prob[h][t0];
            gemm(QUERY_BLOCK, n, NET_HEAD,
                 (struct mat){ &w->q[t0][at], NET_DIM, 1 }, k_t, prob, NET_SEQ,
                 0);
            for (int t = t0; t < n; t++)
                softmax_row(w->prob[h][t], t, n);
            gemm(QUERY_BLOCK, NET_HEAD, n, (struct mat){ prob, NET_SEQ, 1 }, v,
                 &w->att[t0][at], NET_DIM, 0);
        }
    }
}

/* From d_att to d_q, d_k and d_v. */
static void
attention_back(struct layer_work *w, struct net_work *g)
{
    const float scale = 1 / sqrtf(NET_HEAD);

    memset(g->d_k, 0, sizeof(g->d_k));
    memset(g->d_v, 0, sizeof(g->d_v));
    for (int h = 0; h < NET_HEADS; h++) {
        int at = h * NET_HEAD;
        int kv = h / (NET_HEADS / NET_KV_HEADS) * NET_HEAD;
        for (int t0 = 0; t0 < NET_SEQ; t0 += QUERY_BLOCK) {
            int n = t0 + QUERY_BLOCK;
            const float *prob = w->prob[h][t0];
            struct mat d_out = { &g->d_att[t0][at], NET_DIM, 1 };
            gemm(QUERY_BLOCK, n, NET_HEAD, d_out,
                 (struct mat){ &w->v[0][kv], 1, NET_KV_DIM }, g->d_score[0],
                 NET_SEQ, 0);
            gemm(n, NET_HEAD, QUERY_BLOCK, (struct mat){ prob, 1, NET_SEQ },
                 d_out, &g->d_v[0][kv], NET_KV_DIM, 1);
            for (int t = 0; t < QUERY_BLOCK; t++) {
                const float *p = w->prob[h][t0 + t];
                float *d = g->d_score[t];
                float sum = 0;
                for (int i = 0; i < n; i++)
                    sum += p[i] * d[i];
                for (int i = 0; i < n; i++)
                    d[i] = p[i] * (d[i] - sum) * scale;
            }
            gemm(QUERY_BLOCK, NET_HEAD, n,
                 (struct mat){ g->d_score[0], NET_SEQ, 1 },
                 (struct mat){ &w->k[0][kv], NET_KV_DIM, 1 }, &g->d_q[t0][at],
                 NET_DIM, 0);
            gemm(n, NET_HEAD, QUERY_BLOCK,
                 (struct mat){ g->d_score[0], 1, NET_SEQ },
                 (struct mat){ &w->q[t0][at], NET_DIM, 1 }, &g->d_k[0][kv],
                 NET_KV_DIM, 1);
        }
    }
}

/* ---- Feed-forward ---- */

static void
swiglu(struct layer_work *w)
{
    for (int t = 0; t < NET_SEQ; t++)
        for (int i = 0; i < NET_HIDDEN; i++)
            w->act[t][i] =
                w->gate[t][i] / (1 + expf(-w->gate[t][i])) * w->up[t][i];
}

static void
swiglu_back(struct layer_work *w, struct net_work *g)
{
    for (int t = 0; t < NET_SEQ; t++) {
        for (int i = 0; i < NET_HIDDEN; i++) {
            float x = w->gate[t][i], s = 1 / (1 + expf(-x));
            float d = g->d_act[t][i];
            g->d_up[t][i] = d * x * s;
            g->d_gate[t][i] = d * w->up[t][i] * s * (1 + x * (1 - s));
        }
    }
}

/* ---- Layers ---- */

static void
layer_forward(const struct net_params *p, const struct net_work *work,
              struct layer_work *w, float out[][NET_DIM])
{
    norm(w->x, p->rms_att, w->n1, w->inv1);
    linear(w->n1[0], NET_DIM, p->wq, NET_DIM, w->q[0], 0);
    linear(w->n1[0], NET_DIM, p->wk, NET_KV_DIM, w->k[0], 0);
    linear(w->n1[0], NET_DIM, p->wv, NET_KV_DIM, w->v[0], 0);
    rotate(work, w->q[0], NET_DIM, 1);
    rotate(work, w->k[0], NET_KV_DIM, 1);
    attention(w);
    memcpy(w->mid, w->x, sizeof(w->mid));
    linear(w->att[0], NET_DIM, p->wo, NET_DIM, w->mid[0], 1);

    norm(w->mid, p->rms_ffn, w->n2, w->inv2);
    linear(w->n2[0], NET_DIM, p->w1, NET_HIDDEN, w->gate[0], 0);
    linear(w->n2[0], NET_DIM, p->w3, NET_HIDDEN, w->up[0], 0);
    swiglu(w);
    memcpy(out, w->mid, sizeof(w->mid));
    linear(w->act[0], NET_HIDDEN, p->w2, NET_DIM, out[0], 1);
}

/* d_x is the gradient of what comes out, and then of what came in. */
static void
layer_backward(const struct net_params *p, const struct net_params *d,
               struct net_work *g, struct layer_work *w)
{
    linear_back_w(g->d_x[0], NET_DIM, w->act[0], NET_HIDDEN, d->w2);
    linear_back_x(g->d_x[0], NET_DIM, p->w2, NET_HIDDEN, g->d_act[0], 0);
    swiglu_back(w, g);
    linear_back_w(g->d_gate[0], NET_HIDDEN, w->n2[0], NET_DIM, d->w1);
    linear_back_w(g->d_up[0], NET_HIDDEN, w->n2[0], NET_DIM, d->w3);
    linear_back_x(g->d_gate[0], NET_HIDDEN, p->w1, NET_DIM, g->d_norm[0], 0);
    linear_back_x(g->d_up[0], NET_HIDDEN, p->w3, NET_DIM, g->d_norm[0], 1);
    norm_back(w->mid, p->rms_ffn, w->inv2, g->d_norm, g->d_x, d->rms_ffn);

    linear_back_w(g->d_x[0], NET_DIM, w->att[0], NET_DIM, d->wo);
    linear_back_x(g->d_x[0], NET_DIM, p->wo, NET_DIM, g->d_att[0], 0);
    attention_back(w, g);
    rotate(g, g->d_q[0], NET_DIM, -1);
    rotate(g, g->d_k[0], NET_KV_DIM, -1);
    linear_back_w(g->d_q[0], NET_DIM, w->n1[0], NET_DIM, d->wq);
    linear_back_w(g->d_k[0], NET_KV_DIM, w->n1[0], NET_DIM, d->wk);
    linear_back_w(g->d_v[0], NET_KV_DIM, w->n1[0], NET_DIM, d->wv);
    linear_back_x(g->d_q[0], NET_DIM, p->wq, NET_DIM, g->d_norm[0], 0);
    linear_back_x(g->d_k[0], NET_KV_DIM, p->wk, NET_DIM, g->d_norm[0], 1);
    linear_back_x(g->d_v[0], NET_KV_DIM, p->wv, NET_DIM, g->d_norm[0], 1);
    norm_back(w->x, p->rms_att, w->inv1, g->d_norm, g->d_x, d->rms_att);
}

/* ---- The whole ---- */

/* Logits become probabilities; the loss is that of the target, if any. */
static double
score_row(float *row, int target)
{
    float max = row[0], sum = 0;

    for (int i = 1; i < NET_VOCAB; i++)
        max = row[i] > max ? row[i] : max;
    float of_target = target < 0 ? 0 : row[target] - max;
    for (int i = 0; i < NET_VOCAB; i++) {
        row[i] = expf(row[i] - max);
        sum += row[i];
    }
    for (int i = 0; i < NET_VOCAB; i++)
        row[i] /= sum;
    return target < 0 ? 0 : log((double)sum) - (double)of_target;
}

double
net_forward(const struct net_params *p, struct net_work *work,
            const uint16_t *ids, const int *targets)
{
    double loss = 0;

    for (int t = 0; t < NET_SEQ; t++)
        memcpy(work->layers[0].x[t], p->embed + ids[t] * NET_DIM,
               sizeof(work->layers[0].x[t]));
    for (size_t l = 0; l < NET_LAYERS; l++) {
        struct net_params at = layer_view(p, l);
        layer_forward(&at, work, &work->layers[l],
                      l + 1 < NET_LAYERS ? work->layers[l + 1].x : work->x);
    }
    norm(work->x, p->rms_last, work->last, work->inv);
    linear(work->last[0], NET_DIM, p->embed, NET_VOCAB, work->prob[0], 0);
    for (int t = 0; t < NET_SEQ; t++)
        loss += score_row(work->prob[t], targets[t]);
    return loss;
}

void
net_backward(const struct net_params *p, const struct net_params *grad,
             struct net_work *work, const uint16_t *ids, const int *targets,
             float scale)
{
    for (int t = 0; t < NET_SEQ; t++) {
        float s = targets[t] < 0 ? 0 : scale;
        for (int i = 0; i < NET_VOCAB; i++)
            work->d_logits[t][i] = s * work->prob[t][i];
        if (targets[t] >= 0)
            work->d_logits[t][targets[t]] -= s;
    }
    linear_back_w(work->d_logits[0], NET_VOCAB, work->last[0], NET_DIM,
                  grad->embed);
    linear_back_x(work->d_logits[0], NET_VOCAB, p->embed, NET_DIM,
                  work->d_norm[0], 0);
    memset(work->d_x, 0, sizeof(work->d_x));
    norm_back(work->x, p->rms_last, work->inv, work->d_norm, work->d_x,
              grad->rms_last);
    for (size_t l = NET_LAYERS; l > 0; l--) {
        struct net_params at = layer_view(p, l - 1);
        struct net_params d = layer_view(grad, l - 1);
        layer_backward(&at, &d, work, &work->layers[l - 1]);
    }
    for (int t = 0; t < NET_SEQ; t++)
        for (int i = 0; i < NET_DIM; i++)
            grad->embed[ids[t] * NET_DIM + i] += work->d_x[t][i];
}
