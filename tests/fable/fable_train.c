/*
 * fable_train.c - trains the small Llama on the stories of fable_text.
 *
 *     fable_train TEXT HELD_OUT TOKENIZER.BIN N_STEPS FOLDER
 *
 * A story is BOS and its tokens; the stories stand one behind the other, and
 * windows are cut from them in order: every other one begins at a story, the
 * one after it where that one ended. Nothing is drawn at random but the first
 * weights, so the same build gives the same model. The held-out text is only
 * measured, as fable_eval does it: a paragraph at a time, cut at NET_SEQ.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "fable_bpe.h"
#include "fable_net.h"
#include "fable_save.h"

#define BATCH 8 /* windows per step */
#ifndef PEAK_RATE
#define PEAK_RATE 3e-3
#endif
#define LAST_RATE 1e-5
#define N_WARM_UP 400
#define BETA1 0.9
#define BETA2 0.95
#define ADAM_EPS 1e-8
#define WEIGHT_DECAY 0.05
#define MAX_GRAD_NORM 1.0
#define REPORT_EVERY 500
#define SEED UINT64_C(20)

struct window {
    uint16_t ids[NET_SEQ];
    int targets[NET_SEQ];
};

struct corpus {
    uint16_t *ids;
    size_t n_ids;
    size_t pos;       /* of the next window */
    size_t n_windows; /* cut so far */
};

struct trainer {
    float *weights, *grads, *mean, *square; /* (net_n_params()) each */
    struct net_params p, g;
    struct net_work *work;
    double beta1_power, beta2_power;
};

static void *
must_calloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL) {
        fprintf(stderr, "fable_train: out of memory\n");
        exit(1);
    }
    return p;
}

/* ---- Windows ---- */

static struct corpus
read_corpus(const struct fable_bpe *bpe, const char *path)
{
    struct corpus c = { NULL, 0, 0, 0 };
    size_t len, pos = 0, start, n;
    char *text = fable_read_text(path, &len);
    size_t cap = 2 * len + 2;

    c.ids = must_calloc(cap, sizeof(*c.ids));
    while ((n = fable_next_paragraph(text, len, &pos, &start)) > 0)
        c.n_ids += fable_bpe_encode(bpe, text + start, n, c.ids + c.n_ids,
                                    cap - c.n_ids);
    free(text);
    if (c.n_ids <= 2 * NET_SEQ) {
        fprintf(stderr, "fable_train: %s: is too short\n", path);
        exit(1);
    }
    return c;
}

static void
next_window(struct corpus *c, struct window *w)
{
    if (c->n_windows++ % 2 == 0)
        while (c->pos < c->n_ids && c->ids[c->pos] != FABLE_BOS)
            c->pos++;
    if (c->n_ids - c->pos <= NET_SEQ)
        c->pos = 0;
    for (size_t t = 0; t < NET_SEQ; t++) {
        w->ids[t] = c->ids[c->pos + t];
        w->targets[t] = c->ids[c->pos + t + 1];
    }
    c->pos += NET_SEQ;
}

/* One window per paragraph; *n_windows and *n_scored say how many. */
static struct window *
read_held_out(const struct fable_bpe *bpe, const char *path,
              size_t *n_windows, size_t *n_scored)
{
    size_t len, pos = 0, start, n;
    char *text = fable_read_text(path, &len);
    struct window *windows = must_calloc(len / 2 + 1, sizeof(*windows));

    *n_windows = *n_scored = 0;
    while ((n = fable_next_paragraph(text, len, &pos, &start)) > 0) {
        struct window *w = &windows[(*n_windows)++];
        uint16_t ids[NET_SEQ];
        size_t n_ids = fable_bpe_encode(bpe, text + start, n, ids, NET_SEQ);
        if (n_ids > NET_SEQ)
            n_ids = NET_SEQ;
        memcpy(w->ids, ids, n_ids * sizeof(*ids));
        for (size_t t = 0; t < NET_SEQ; t++)
            w->targets[t] = t + 1 < n_ids ? ids[t + 1] : NET_NO_TARGET;
        *n_scored += n_ids - 1;
    }
    free(text);
    return windows;
}

/* ---- First weights ---- */

static double
random_normal(uint64_t *state) /* Box and Muller */
{
    double u =
        ((double)(lmq_random_next(state) >> 11) + 1) / 9007199254740993.0;
    double v = (double)(lmq_random_next(state) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void
fill_normal(float *x, size_t n, double deviation, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(deviation * random_normal(state));
}

static void
fill_ones(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 1;
}

static void
first_weights(const struct net_params *p)
{
    uint64_t rng = SEED;
    double of_dim = 0.7 / sqrt(NET_DIM), of_hidden = 0.7 / sqrt(NET_HIDDEN);
    double residual = 1 / sqrt(2.0 * (int)NET_LAYERS);
    size_t n_square = NET_LAYERS * NET_DIM * NET_DIM;
    size_t n_kv = NET_LAYERS * NET_KV_DIM * NET_DIM;
    size_t n_ffn = NET_LAYERS * NET_HIDDEN * NET_DIM;

    fill_normal(p->embed, NET_VOCAB * NET_DIM, 0.04, &rng);
    fill_normal(p->wq, n_square, of_dim, &rng);
    fill_normal(p->wk, n_kv, of_dim, &rng);
    fill_normal(p->wv, n_kv, of_dim, &rng);
    fill_normal(p->wo, n_square, of_dim * residual, &rng);
    fill_normal(p->w1, n_ffn, of_dim, &rng);
    fill_normal(p->w2, n_ffn, of_hidden * residual, &rng);
    fill_normal(p->w3, n_ffn, of_dim, &rng);
    fill_ones(p->rms_att, NET_LAYERS * NET_DIM);
    fill_ones(p->rms_ffn, NET_LAYERS * NET_DIM);
    fill_ones(p->rms_last, NET_DIM);
}

/* ---- Steps ---- */

static double
rate_at(size_t step, size_t n_steps)
{
    if (step < N_WARM_UP)
        return PEAK_RATE * (double)(step + 1) / N_WARM_UP;
    double done = (double)(step - N_WARM_UP) / (double)(n_steps - N_WARM_UP);
    return LAST_RATE +
           0.5 * (PEAK_RATE - LAST_RATE) * (1 + cos(3.141592653589793 * done));
}

static double
grad_norm(const struct trainer *tr)
{
    double sum = 0;
    for (size_t i = 0; i < net_n_params(); i++)
        sum += (double)tr->grads[i] * (double)tr->grads[i];
    return sqrt(sum);
}

/* AdamW (Loshchilov and Hutter) for n weights from `at` on. */
static void
adam(struct trainer *tr, const float *at, size_t n, double rate, double decay,
     float grad_scale)
{
    size_t from = (size_t)(at - tr->weights);
    float *w = tr->weights + from, *m = tr->mean + from;
    float *s = tr->square + from;
    const float *g = tr->grads + from;
    const float b1 = (float)BETA1, b2 = (float)BETA2;
    const float step = (float)(rate / (1 - tr->beta1_power));
    const float fix = (float)(1 / sqrt(1 - tr->beta2_power));
    const float keep = (float)(1 - rate * decay);

    for (size_t i = 0; i < n; i++) {
        float x = g[i] * grad_scale;
        m[i] = b1 * m[i] + (1 - b1) * x;
        s[i] = b2 * s[i] + (1 - b2) * x * x;
        w[i] = w[i] * keep - step * m[i] / (sqrtf(s[i]) * fix +
                                            (float)ADAM_EPS);
    }
}

static void
update(struct trainer *tr, double rate)
{
    const struct net_params *p = &tr->p;
    double norm = grad_norm(tr);
    float scale = norm > MAX_GRAD_NORM ? (float)(MAX_GRAD_NORM / norm) : 1;
    size_t n_norms = NET_LAYERS * NET_DIM;

    tr->beta1_power *= BETA1;
    tr->beta2_power *= BETA2;
    /* The norms are not decayed; the matrices lie between them. */
    adam(tr, p->embed, (size_t)(p->rms_att - p->embed), rate, WEIGHT_DECAY,
         scale);
    adam(tr, p->rms_att, n_norms, rate, 0, scale);
    adam(tr, p->wq, (size_t)(p->rms_ffn - p->wq), rate, WEIGHT_DECAY, scale);
    adam(tr, p->rms_ffn, n_norms, rate, 0, scale);
    adam(tr, p->w1, (size_t)(p->rms_last - p->w1), rate, WEIGHT_DECAY, scale);
    adam(tr, p->rms_last, NET_DIM, rate, 0, scale);
}

static double
train_step(struct trainer *tr, struct corpus *c, double rate)
{
    const float scale = 1.0f / (BATCH * NET_SEQ);
    struct window w;
    double loss = 0;

    memset(tr->grads, 0, net_n_params() * sizeof(*tr->grads));
    for (int i = 0; i < BATCH; i++) {
        next_window(c, &w);
        loss += net_forward(&tr->p, tr->work, w.ids, w.targets);
        net_backward(&tr->p, &tr->g, tr->work, w.ids, w.targets, scale);
    }
    update(tr, rate);
    return loss / (BATCH * NET_SEQ);
}

static void
train(struct trainer *tr, struct corpus *c, const struct window *held_out,
      size_t n_held_out, size_t n_scored, size_t n_steps, const char *folder)
{
    time_t start = time(NULL);
    double sum = 0;
    size_t n_sum = 0;

    printf("   step    tokens      rate   train  held-out  seconds\n");
    for (size_t step = 1; step <= n_steps; step++) {
        double rate = rate_at(step - 1, n_steps);
        sum += train_step(tr, c, rate);
        n_sum++;
        if (step % REPORT_EVERY != 0 && step != n_steps && step != 1)
            continue;
        double held = 0;
        for (size_t i = 0; i < n_held_out; i++)
            held += net_forward(&tr->p, tr->work, held_out[i].ids,
                                held_out[i].targets);
        printf("%7zu %9zu  %8.6f  %6.4f    %6.4f  %7.0f\n", step,
               step * BATCH * NET_SEQ, rate, sum / (double)n_sum,
               held / (double)n_scored, difftime(time(NULL), start));
        fflush(stdout);
        fable_save(&tr->p, folder); /* what an interrupted run leaves */
        sum = 0;
        n_sum = 0;
    }
}

int
main(int argc, char **argv)
{
    struct trainer tr;
    size_t n_held_out, n_scored, n = net_n_params();

    if (argc != 6) {
        fprintf(stderr, "usage: fable_train TEXT HELD_OUT TOKENIZER.BIN "
                        "N_STEPS FOLDER\n");
        return 2;
    }
    struct fable_bpe *bpe = fable_bpe_open(argv[3]);
    if (bpe == NULL) {
        fprintf(stderr, "fable_train: %s: cannot be read\n", argv[3]);
        return 1;
    }
    size_t n_steps = strtoul(argv[4], NULL, 10);
    struct corpus c = read_corpus(bpe, argv[1]);
    struct window *held_out =
        read_held_out(bpe, argv[2], &n_held_out, &n_scored);
    printf("%zu parameters, %zu tokens to train on, %zu held-out\n", n,
           c.n_ids, n_scored);

    tr.weights = must_calloc(n, sizeof(float));
    tr.grads = must_calloc(n, sizeof(float));
    tr.mean = must_calloc(n, sizeof(float));
    tr.square = must_calloc(n, sizeof(float));
    tr.p = net_view(tr.weights);
    tr.g = net_view(tr.grads);
    tr.beta1_power = tr.beta2_power = 1;
    tr.work = net_work_new();
    if (tr.work == NULL) {
        fprintf(stderr, "fable_train: out of memory\n");
        return 1;
    }
    first_weights(&tr.p);
    train(&tr, &c, held_out, n_held_out, n_scored, n_steps, argv[5]);

    net_work_free(tr.work);
    free(tr.square);
    free(tr.mean);
    free(tr.grads);
    free(tr.weights);
    free(held_out);
    free(c.ids);
    fable_bpe_free(bpe);
    return 0;
}
