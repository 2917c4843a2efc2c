/*
 * fable_eval.c - runs a model of llama2.c's format in double precision.
 *
 *     fable_eval MODEL.BIN TOKENIZER.BIN nll TEXT
 *     fable_eval MODEL.BIN TOKENIZER.BIN greedy PROMPT [N_TOKENS]
 *
 * Plain loops over one token after the other, and nothing in common with the
 * trainer but the tokenizer: the figures it prints are those of the README.
 *
 * nll scores each paragraph on its own: BOS, then the tokens, cut at seq_len;
 * every token behind BOS is scored.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fable_bpe.h"

#define NORM_EPS 1e-5
#define ROPE_BASE 10000.0
#define SIZE_LIMIT 65536

enum { N_HEADER = 7 };

struct model {
    size_t dim, hidden, n_layers, n_heads, n_kv_heads, vocab, seq_len;
    size_t head, kv_dim;
    double *data;
    const double *embed;    /* (vocab, dim) */
    const double *rms_att;  /* (n_layers, dim) */
    const double *wq;       /* (n_layers, dim, dim) */
    const double *wk;       /* (n_layers, kv_dim, dim) */
    const double *wv;       /* (n_layers, kv_dim, dim) */
    const double *wo;       /* (n_layers, dim, dim) */
    const double *rms_ffn;  /* (n_layers, dim) */
    const double *w1;       /* (n_layers, hidden, dim) */
    const double *w2;       /* (n_layers, dim, hidden) */
    const double *w3;       /* (n_layers, hidden, dim) */
    const double *rms_last; /* (dim) */
};

struct state {
    double *x, *norm, *q, *att, *out; /* (dim) */
    double *gate, *up;                /* (hidden) */
    double *score;                    /* (seq_len) */
    double *k, *v;                    /* (n_layers, seq_len, kv_dim) */
    double *logits;                   /* (vocab) */
};

static void
die(const char *where, const char *what)
{
    fprintf(stderr, "fable_eval: %s: %s\n", where, what);
    exit(1);
}

static double *
new_doubles(size_t n)
{
    double *p = calloc(n, sizeof(*p));
    if (p == NULL)
        die("memory", "is not enough");
    return p;
}

/* ---- Model ---- */

static uint32_t
load_u32le(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}

static const double *
take(double **at, size_t n)
{
    const double *p = *at;
    *at += n;
    return p;
}

static void
open_model(struct model *m, const char *path)
{
    size_t *const fields[N_HEADER] = { &m->dim,        &m->hidden,
                                       &m->n_layers,   &m->n_heads,
                                       &m->n_kv_heads, &m->vocab,
                                       &m->seq_len };
    size_t size;
    char *file = fable_read_text(path, &size);

    if (size < 4 * N_HEADER)
        die(path, "is too short");
    for (size_t i = 0; i < N_HEADER; i++) {
        uint32_t v = load_u32le(file + 4 * i);
        /* A negative vocabulary size, a head of its own, falls out here. */
        if (v == 0 || v > SIZE_LIMIT)
            die(path, "has a header that is not understood");
        *fields[i] = v;
    }
    m->head = m->dim / m->n_heads;
    m->kv_dim = m->head * m->n_kv_heads;
    if (m->vocab != FABLE_VOCAB)
        die(path, "has another vocabulary than the tokenizer");
    size_t n_weights =
        m->vocab * m->dim + m->dim +
        m->n_layers * (2 * m->dim + 2 * m->dim * m->dim +
                       2 * m->kv_dim * m->dim + 3 * m->hidden * m->dim);
    if (size != 4 * (N_HEADER + n_weights + m->seq_len * m->head))
        die(path, "has not the size its header asks for");

    m->data = new_doubles(n_weights);
    for (size_t i = 0; i < n_weights; i++) {
        uint32_t bits = load_u32le(file + 4 * (N_HEADER + i));
        float x;
        memcpy(&x, &bits, sizeof(x));
        m->data[i] = (double)x;
    }
    free(file);

    double *at = m->data;
    m->embed = take(&at, m->vocab * m->dim);
    m->rms_att = take(&at, m->n_layers * m->dim);
    m->wq = take(&at, m->n_layers * m->dim * m->dim);
    m->wk = take(&at, m->n_layers * m->kv_dim * m->dim);
    m->wv = take(&at, m->n_layers * m->kv_dim * m->dim);
    m->wo = take(&at, m->n_layers * m->dim * m->dim);
    m->rms_ffn = take(&at, m->n_layers * m->dim);
    m->w1 = take(&at, m->n_layers * m->hidden * m->dim);
    m->w2 = take(&at, m->n_layers * m->dim * m->hidden);
    m->w3 = take(&at, m->n_layers * m->hidden * m->dim);
    m->rms_last = take(&at, m->dim);
}

static struct state
new_state(const struct model *m)
{
    size_t n_cache = m->n_layers * m->seq_len * m->kv_dim;
    struct state s;

    s.x = new_doubles(m->dim);
    s.norm = new_doubles(m->dim);
    s.q = new_doubles(m->dim);
    s.att = new_doubles(m->dim);
    s.out = new_doubles(m->dim);
    s.gate = new_doubles(m->hidden);
    s.up = new_doubles(m->hidden);
    s.score = new_doubles(m->seq_len);
    s.k = new_doubles(n_cache);
    s.v = new_doubles(n_cache);
    s.logits = new_doubles(m->vocab);
    return s;
}

static void
free_state(struct state *s)
{
    double *const all[] = { s->x,  s->norm,  s->q, s->att, s->out,   s->gate,
                            s->up, s->score, s->k, s->v,   s->logits };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

/* ---- Forward ---- */

static void
norm(double *y, const double *x, const double *weight, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    double inv = 1 / sqrt(sum / (double)n + NORM_EPS);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * inv * weight[i];
}

/* y (n_out) = w (n_out, n_in) * x (n_in) */
static void
multiply(double *y, const double *w, const double *x, size_t n_out,
         size_t n_in)
{
    for (size_t i = 0; i < n_out; i++) {
        double sum = 0;
        for (size_t j = 0; j < n_in; j++)
            sum += w[i * n_in + j] * x[j];
        y[i] = sum;
    }
}

static void
rotate(double *x, size_t n, size_t head, size_t pos)
{
    for (size_t i = 0; i < n; i += 2) {
        double angle = (double)pos *
                       pow(ROPE_BASE, -(double)(i % head) / (double)head);
        double a = x[i], b = x[i + 1];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

static void
softmax(double *x, size_t n)
{
    double max = x[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        max = fmax(max, x[i]);
    for (size_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (size_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* keys and values: (seq_len, kv_dim) of this layer, filled up to pos */
static void
attend(const struct model *m, struct state *s, const double *keys,
       const double *values, size_t pos)
{
    memset(s->att, 0, m->dim * sizeof(*s->att));
    for (size_t h = 0; h < m->n_heads; h++) {
        size_t kv = h / (m->n_heads / m->n_kv_heads) * m->head;
        const double *q = s->q + h * m->head;
        double *att = s->att + h * m->head;
        for (size_t t = 0; t <= pos; t++) {
            double sum = 0;
            for (size_t i = 0; i < m->head; i++)
                sum += q[i] * keys[t * m->kv_dim + kv + i];
            s->score[t] = sum / sqrt((double)m->head);
        }
        softmax(s->score, pos + 1);
        for (size_t t = 0; t <= pos; t++)
            for (size_t i = 0; i < m->head; i++)
                att[i] += s->score[t] * values[t * m->kv_dim + kv + i];
    }
}

/* Logits of what follows the token at pos. */
static void
forward(const struct model *m, struct state *s, uint16_t id, size_t pos)
{
    size_t dim = m->dim, hidden = m->hidden, kv_dim = m->kv_dim;

    memcpy(s->x, m->embed + id * dim, dim * sizeof(*s->x));
    for (size_t l = 0; l < m->n_layers; l++) {
        double *keys = s->k + l * m->seq_len * kv_dim;
        double *values = s->v + l * m->seq_len * kv_dim;
        double *k = keys + pos * kv_dim;

        norm(s->norm, s->x, m->rms_att + l * dim, dim);
        multiply(s->q, m->wq + l * dim * dim, s->norm, dim, dim);
        multiply(k, m->wk + l * kv_dim * dim, s->norm, kv_dim, dim);
        multiply(values + pos * kv_dim, m->wv + l * kv_dim * dim, s->norm,
                 kv_dim, dim);
        rotate(s->q, dim, m->head, pos);
        rotate(k, kv_dim, m->head, pos);
        attend(m, s, keys, values, pos);
        multiply(s->out, m->wo + l * dim * dim, s->att, dim, dim);
        for (size_t i = 0; i < dim; i++)
            s->x[i] += s->out[i];

        norm(s->norm, s->x, m->rms_ffn + l * dim, dim);
        multiply(s->gate, m->w1 + l * hidden * dim, s->norm, hidden, dim);
        multiply(s->up, m->w3 + l * hidden * dim, s->norm, hidden, dim);
        for (size_t i = 0; i < hidden; i++)
            s->gate[i] = s->gate[i] / (1 + exp(-s->gate[i])) * s->up[i];
        multiply(s->out, m->w2 + l * dim * hidden, s->gate, dim, hidden);
        for (size_t i = 0; i < dim; i++)
            s->x[i] += s->out[i];
    }
    norm(s->norm, s->x, m->rms_last, dim);
    multiply(s->logits, m->embed, s->norm, m->vocab, dim);
}

/* ---- What is asked ---- */

static void
print_nll(const struct model *m, struct state *s, const struct fable_bpe *bpe,
          const char *path)
{
    size_t len, pos = 0, start, n, n_paragraphs = 0, n_scored = 0;
    char *text = fable_read_text(path, &len);
    uint16_t *ids = calloc(m->seq_len, sizeof(*ids));
    double nll = 0;

    if (ids == NULL)
        die("memory", "is not enough");
    while ((n = fable_next_paragraph(text, len, &pos, &start)) > 0) {
        size_t n_ids =
            fable_bpe_encode(bpe, text + start, n, ids, m->seq_len);
        if (n_ids > m->seq_len)
            n_ids = m->seq_len;
        n_paragraphs++;
        for (size_t t = 0; t + 1 < n_ids; t++) {
            forward(m, s, ids[t], t);
            softmax(s->logits, m->vocab);
            nll -= log(s->logits[ids[t + 1]]);
            n_scored++;
        }
    }
    printf("%s: %zu paragraphs, %zu tokens scored, "
           "%.6f nats per token, perplexity %.6f\n",
           path, n_paragraphs, n_scored, nll / (double)n_scored,
           exp(nll / (double)n_scored));
    free(ids);
    free(text);
}

static uint16_t
best_token(const struct model *m, const struct state *s)
{
    uint16_t best = 0;
    for (uint16_t i = 1; i < m->vocab; i++)
        if (s->logits[i] > s->logits[best])
            best = i;
    return best;
}

static void
print_greedy(const struct model *m, struct state *s,
             const struct fable_bpe *bpe, const char *prompt, size_t n_tokens)
{
    uint16_t *ids = calloc(m->seq_len + 1, sizeof(*ids));
    char piece[FABLE_PIECE_MAX];

    if (ids == NULL)
        die("memory", "is not enough");
    size_t n = fable_bpe_encode(bpe, prompt, strlen(prompt), ids, m->seq_len);
    if (n > m->seq_len)
        die("prompt", "is too long");
    size_t end = n_tokens < m->seq_len - n ? n + n_tokens : m->seq_len;
    for (size_t t = 0; t < end; t++) {
        if (t > 0) {
            size_t len = fable_bpe_decode(bpe, ids[t - 1], ids[t], piece);
            fwrite(piece, 1, len, stdout);
        }
        forward(m, s, ids[t], t);
        if (t + 1 < n)
            continue;
        ids[t + 1] = best_token(m, s);
        if (ids[t + 1] == FABLE_BOS || ids[t + 1] == FABLE_EOS)
            break;
    }
    putchar('\n');
    free(ids);
}

int
main(int argc, char **argv)
{
    struct model model;

    int is_nll = argc == 5 && strcmp(argv[3], "nll") == 0;
    int is_greedy = (argc == 5 || argc == 6) && strcmp(argv[3], "greedy") == 0;
    if (!is_nll && !is_greedy) {
        fprintf(stderr,
                "usage: fable_eval MODEL.BIN TOKENIZER.BIN nll TEXT\n"
                "       fable_eval MODEL.BIN TOKENIZER.BIN greedy PROMPT "
                "[N_TOKENS]\n");
        return 2;
    }
    open_model(&model, argv[1]);
    struct fable_bpe *bpe = fable_bpe_open(argv[2]);
    if (bpe == NULL)
        die(argv[2], "cannot be read");
    struct state state = new_state(&model);
    if (is_nll)
        print_nll(&model, &state, bpe, argv[4]);
    else
        print_greedy(&model, &state, bpe, argv[4],
                     argc == 6 ? strtoul(argv[5], NULL, 10) : SIZE_MAX);
    free_state(&state);
    fable_bpe_free(bpe);
    free(model.data);
    return 0;
}
