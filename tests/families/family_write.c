/*
 * family_write.c - arranges the weights of a model as its family stores them.
 */
#include "config.h"

#include "tests/families/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/families/more/family_writer.h"

/* ---- Tensors ---- */

void
family_name_tensor(const struct writer *w, char *to, size_t size,
                   const char *pattern, size_t item, const char *end)
{
    const char *prefix = w->model->family->prefix;
    size_t n = 0;

    if (prefix != NULL)
        n = (size_t)snprintf(to, size, "%s", prefix);
    for (; *pattern != '\0' && n < size; pattern++) {
        size_t number = *pattern == '#' ? w->layer : item;
        if (*pattern == '#' || *pattern == '@')
            n += (size_t)snprintf(to + n, size - n, "%zu", number);
        else if (*pattern == '=')
            end = "";
        else
            to[n++] = *pattern;
    }
    if (n >= size || n + strlen(end) >= size)
        abort();
    memcpy(to + n, end, strlen(end) + 1);
}

static struct build_tensor *
add_tensor(struct build_model *to, const char *name, size_t rows, size_t cols)
{
    const uint64_t dims[] = {rows, cols};

    return cols == 0 ? build_add(to, name, dims, 1)
                     : build_add(to, name, dims, 2);
}

static void
add_vector(struct build_model *to, const char *name, const float *x, size_t n)
{
    memcpy(add_tensor(to, name, n, 0)->x, x, n * sizeof(*x));
}

static void
write_linear(const struct writer *w, const char *pattern, size_t item,
             const struct oracle_linear *linear)
{
    bool is_transposed = (w->model->family->bits & COLUMNS_ARE_OUTPUTS) != 0 &&
                         linear != &w->model->oracle.head;
    size_t rows = linear->rows, cols = linear->cols;
    char name[96];

    if (linear->w == NULL)
        return;
    family_name_tensor(w, name, sizeof(name), pattern, item, ".weight");
    float *x = is_transposed ? add_tensor(w->to, name, cols, rows)->x
                             : add_tensor(w->to, name, rows, cols)->x;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            x[is_transposed ? c * rows + r : r * cols + c] =
                linear->w[r * cols + c];
    family_name_tensor(w, name, sizeof(name), pattern, item, ".bias");
    if (linear->b != NULL)
        add_vector(w->to, name, linear->b, rows);
}

static void
write_plain(const struct writer *w, const struct stored *as, const void *parts)
{
    write_linear(w, as->name, 0,
                 (const void *)((const char *)parts + as->at));
}

static void
write_weight(const struct writer *w, const struct stored *as,
             const void *parts)
{
    struct oracle_linear linear =
        *(const struct oracle_linear *)(const void *)((const char *)parts +
                                                      as->at);

    linear.b = NULL;
    write_linear(w, as->name, 0, &linear);
}

static void
write_norm_part(const struct writer *w, const struct stored *as, size_t item,
                const float *weight, const float *bias, size_t n)
{
    const char *pattern = as->name;
    float less = (w->model->family->bits & NORMS_LESS_ONE) != 0 &&
                         as->as != AS_PLAIN_NORM
                     ? 1.0f
                     : 0;
    char name[96];

    family_name_tensor(w, name, sizeof(name), pattern, item, ".weight");
    float *x = add_tensor(w->to, name, n, 0)->x;
    for (size_t i = 0; i < n; i++)
        x[i] = weight[i] - less;
    family_name_tensor(w, name, sizeof(name), pattern, item, ".bias");
    if (bias != NULL)
        add_vector(w->to, name, bias, n);
}

static void
write_norm(const struct writer *w, const struct stored *as, const void *parts)
{
    const struct oracle_norm *norm =
        (const void *)((const char *)parts + as->at);
    size_t n = as->as == AS_NORMS_OF_HEADS ? norm->span : norm->n;

    if (norm->w == NULL)
        return;
    for (size_t at = 0; at < norm->n; at += n)
        write_norm_part(w, as, at / n, norm->w + at,
                        norm->b == NULL ? NULL : norm->b + at, n);
    if (as->as == AS_NORM_OF_HEADS) {
        struct build_tensor *last = &w->to->tensors[w->to->n_tensors - 1];
        last->n_dims = 2;
        last->dims[0] = norm->n / norm->span;
        last->dims[1] = norm->span;
    }
}

/* ---- Fused ones ---- */

static size_t
put_rows(struct oracle_linear *to, size_t at, const struct oracle_linear *from,
         size_t first, size_t n)
{
    size_t cols = from->cols;

    memcpy(to->w + at * cols, from->w + first * cols,
           n * cols * sizeof(*to->w));
    if (from->b != NULL)
        memcpy(to->b + at, from->b + first, n * sizeof(*to->b));
    return at + n;
}

static struct oracle_linear
fused(size_t rows, const struct oracle_linear *like)
{
    struct oracle_linear all = {.rows = rows, .cols = like->cols};

    all.w = calloc(rows * like->cols, sizeof(*all.w));
    if (like->b != NULL)
        all.b = calloc(rows, sizeof(*all.b));
    if (all.w == NULL || (like->b != NULL && all.b == NULL))
        abort();
    return all;
}

static void
write_fused(const struct writer *w, const char *pattern,
            struct oracle_linear *all)
{
    write_linear(w, pattern, 0, all);
    free(all->w);
    free(all->b);
}

/* `groups` times a share of each part. */
static void
fuse(const struct writer *w, const struct stored *as,
     const struct oracle_linear *const *parts, size_t n_parts, size_t groups)
{
    size_t rows = 0, at = 0;

    if (parts[0]->w == NULL)
        return;
    for (size_t i = 0; i < n_parts; i++)
        rows += parts[i]->rows;
    struct oracle_linear all = fused(rows, parts[0]);
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < n_parts; i++) {
            size_t n = parts[i]->rows / groups;
            at = put_rows(&all, at, parts[i], g * n, n);
        }
    write_fused(w, as->name, &all);
}

static void
write_qkv(const struct writer *w, const struct stored *as, const void *parts)
{
    const struct oracle_layer *l = parts;
    const struct oracle_linear *qkv[] = {&l->q, &l->k, &l->v};
    const struct oracle_linear *qvk[] = {&l->q, &l->v, &l->k};
    size_t n_kv = oracle_kv_heads(&w->model->oracle.shape, w->layer);

    if (as->as == AS_QKV_BY_QUARTER)
        fuse(w, as, qvk, 3, 4);
    else
        fuse(w, as, qkv, 3, as->as == AS_QKV_BY_HEAD ? n_kv : 1);
}

static void
write_q_gate(const struct writer *w, const struct stored *as,
             const void *parts)
{
    const struct oracle_layer *l = parts;
    const struct oracle_linear *both[] = {l->q.w ? &l->q : &l->q_b, &l->gate};

    fuse(w, as, both, 2, oracle_heads(&w->model->oracle.shape, w->layer));
}

static void
write_delta_fused(const struct writer *w, const struct stored *as,
                  const void *parts)
{
    const struct oracle_delta *d = &((const struct oracle_layer *)parts)->delta;
    struct oracle_linear alpha = d->alpha;
    const struct oracle_linear *qkvz[] = {&d->q, &d->k, &d->v, &d->gate};
    const struct oracle_linear *ba[] = {&d->beta, &alpha};
    const struct oracle_linear *states[] = {&d->gate, &d->v, &d->k, &d->q,
                                            &alpha};
    const struct oracle_linear *kqv[] = {&d->k, &d->q, &d->v};
    const struct oracle_linear *made[] = {&d->alpha_a, &d->k, &d->q};
    const struct oracle_linear *v_gate[] = {&d->v, &d->gate};
    size_t n_keys = w->model->oracle.shape.delta_keys;

    alpha.b = NULL;
    if (as->as == AS_STATES)
        fuse(w, as, states, 5, 1);
    else if (as->as == AS_KQV)
        fuse(w, as, kqv, 3, 1);
    else if (as->as == AS_OF_VALUES)
        fuse(w, as, made, 3, 1);
    else if (as->as == AS_VALUES_GATES)
        fuse(w, as, v_gate, 2, 1);
    else if (as->as == AS_DELTA_QKV || as->as == AS_DELTA_QKV_BY_HEAD)
        fuse(w, as, qkvz, 3, as->as == AS_DELTA_QKV ? 1 : n_keys);
    else if (as->as == AS_DELTA_QKVZ)
        fuse(w, as, qkvz, 4, n_keys);
    else
        fuse(w, as, ba, 2, n_keys);
}

static void
write_gate_up(const struct writer *w, const struct stored *as,
              const void *parts)
{
    const struct oracle_mlp *mlp =
        (const void *)((const char *)parts + as->at);
    struct oracle_linear all = fused(2 * mlp->up.rows, &mlp->up);
    size_t at = put_rows(&all, 0, &mlp->gate, 0, mlp->gate.rows);

    put_rows(&all, at, &mlp->up, 0, mlp->up.rows);
    write_fused(w, as->name, &all);
}

/* ---- Vectors; what is in files and not needed ---- */

static void
write_vector(const struct writer *w, const char *pattern, const float *x,
             size_t n)
{
    char name[96];

    family_name_tensor(w, name, sizeof(name), pattern, 0, "");
    if (x != NULL)
        add_vector(w->to, name, x, n);
}

/* A number for each head, for each expert, for each value head, ... */
static void
write_numbers(const struct writer *w, const struct stored *as,
              const void *parts)
{
    const struct oracle_layer *l = parts;
    const struct oracle_shape *s = &w->model->oracle.shape;

    if (as->as == AS_SINKS)
        write_vector(w, as->name, l->sinks, oracle_heads(s, w->layer));
    else if (as->as == AS_CORRECTION)
        write_vector(w, as->name, l->correction, s->n_experts);
    else if (as->as == AS_STEPS)
        write_vector(w, as->name, l->delta.alpha.b, l->delta.alpha.rows);
    else
        write_vector(w, as->name, l->delta.skip, s->delta_values);
}

static void
write_decays(const struct writer *w, const struct stored *as,
             const void *parts)
{
    const struct oracle_delta *d = &((const struct oracle_layer *)parts)->delta;
    const struct oracle_shape *s = &w->model->oracle.shape;
    size_t cols = s->recurrence == ORACLE_SELECTIVE ? s->delta_key_dim : 0;
    size_t heads = s->delta_values *
                   (s->recurrence == ORACLE_LRU ? s->delta_value_dim : 1);
    size_t n = heads * (cols == 0 ? 1 : cols);
    char name[96];

    family_name_tensor(w, name, sizeof(name), as->name, 0, "");
    if (d->decay != NULL && as->as == AS_DECAYS_OF_HEADS)
        memcpy(build_add(w->to, name, (uint64_t[]){1, 1, n, 1}, 4)->x,
               d->decay, n * sizeof(float));
    else if (d->decay != NULL)
        memcpy(add_tensor(w->to, name, heads, cols)->x, d->decay,
               n * sizeof(float));
}

static void
write_conv(const struct writer *w, const struct stored *as, const void *parts)
{
    const struct oracle_delta *d = &((const struct oracle_layer *)parts)->delta;
    size_t channels = oracle_channels(&w->model->oracle.shape), first = 0;
    bool is_part = as->as == AS_CONV_PART ||
                   (as->as == AS_CONV_LAST && as->at < 3);
    size_t width = w->model->oracle.shape.conv_width;
    size_t third = (channels + 2) / 3;
    char name[96];

    if (d->conv == NULL)
        return;
    if (is_part || as->as == AS_CONV_THIRD) {
        first = as->at * (is_part ? d->q.rows : third);
        channels = as->at == 2 ? channels - first
                   : is_part   ? d->q.rows
                               : third;
    }
    bool is_last = as->as == AS_CONV_LAST;
    family_name_tensor(w, name, sizeof(name), as->name, 0, ".weight");
    memcpy(build_add(w->to, name,
                     (uint64_t[]){channels, is_last ? width : 1,
                                  is_last ? 1 : width},
                     3)->x,
           d->conv + first * width, channels * width * sizeof(*d->conv));
    family_name_tensor(w, name, sizeof(name), as->name, 0, ".bias");
    if (d->conv_bias != NULL)
        add_vector(w->to, name, d->conv_bias, channels);
}

/* A head's rows of kv_b make its keys, then its values. */
static void
write_latent(const struct writer *w, const struct stored *as,
             const void *parts)
{
    const struct oracle_shape *s = &w->model->oracle.shape;
    const struct oracle_linear *kv_b =
        &((const struct oracle_layer *)parts)->kv_b;
    bool is_key = as->as == AS_LATENT_KEYS;
    size_t key = s->head_dim - s->rotary_dim, n = key + s->value_dim;
    size_t rows = is_key ? s->kv_rank : s->value_dim;
    size_t cols = is_key ? key : s->kv_rank;
    char name[96];

    if (kv_b->w == NULL)
        return;
    family_name_tensor(w, name, sizeof(name), as->name, 0, ".weight");
    float *x =
        build_add(w->to, name, (uint64_t[]){s->heads, rows, cols}, 3)->x;
    for (size_t i = 0; i < s->heads * rows * cols; i++) {
        size_t h = i / (rows * cols), r = i / cols % rows, c = i % cols;
        x[i] = is_key ? kv_b->w[(h * n + c) * s->kv_rank + r]
                      : kv_b->w[(h * n + key + r) * s->kv_rank + c];
    }
}

/* ---- A layer, a model ---- */

static void
write_experts(const struct writer *w, const struct stored *as,
              const void *parts)
{
    const struct oracle_layer *l = parts;

    for (size_t e = 0;
         e < w->model->oracle.shape.n_experts && l->experts != NULL; e++)
        write_linear(w, as->name, e,
                     (const void *)((const char *)&l->experts[e] + as->at));
}

/* Matrix i of the n of one expert that are fused, and its bias, if there is
 * one. */
static void
put_matrix(const struct writer *w, const struct oracle_linear *linear,
           size_t i, size_t n, float *x, float *bias)
{
    unsigned bits = w->model->family->bits;
    size_t rows = linear->rows, cols = linear->cols;

    for (size_t r = 0; r < rows; r++) {
        size_t to = (bits & GATE_UP_BY_ROW) != 0 ? r * n + i : i * rows + r;
        for (size_t c = 0; c < cols; c++)
            x[(bits & EXPERTS_TURNED) != 0 ? c * n * rows + to
                                           : to * cols + c] =
                linear->w[r * cols + c];
        if (bias != NULL)
            bias[to] = linear->b[r];
    }
}

/* The matrices at `at` of all experts, of each `n` that are neighbours. */
static void
fuse_experts(const struct writer *w, const struct stored *as,
             const struct oracle_layer *l, size_t n)
{
    bool is_turned = (w->model->family->bits & EXPERTS_TURNED) != 0;
    size_t n_experts = w->model->oracle.shape.n_experts;
    char name[96];

    if (l->experts == NULL)
        return;
    const struct oracle_linear *first =
        (const void *)((const char *)l->experts + as->at);
    size_t rows = n * first->rows, cols = first->cols;
    family_name_tensor(w, name, sizeof(name), as->name, 0, "");
    float *x = build_add(w->to, name,
                         (uint64_t[]){n_experts, is_turned ? cols : rows,
                                      is_turned ? rows : cols},
                         3)->x;
    family_name_tensor(w, name, sizeof(name), as->name, 0, "_bias");
    float *bias = first->b == NULL
                      ? NULL
                      : add_tensor(w->to, name, n_experts, rows)->x;
    for (size_t e = 0; e < n_experts; e++)
        for (size_t i = 0; i < n; i++)
            put_matrix(w,
                       (const void *)((const char *)&l->experts[e] + as->at +
                                      i * sizeof(*first)),
                       i, n, x + e * rows * cols,
                       bias == NULL ? NULL : bias + e * rows);
}

static void
write_experts_fused(const struct writer *w, const struct stored *as,
                    const void *parts)
{
    fuse_experts(w, as, parts, 1);
}

static void
write_experts_below(const struct writer *w, const struct stored *as,
                    const void *parts)
{
    const struct oracle_layer *l = parts;
    const struct oracle_linear *first =
        (const void *)((const char *)l->experts + as->at);
    size_t n_experts = w->model->oracle.shape.n_experts;
    size_t rows = first->rows, cols = first->cols, size = rows * cols;
    bool is_turned = as->as == AS_EXPERTS_TURNED;
    char name[96];

    family_name_tensor(w, name, sizeof(name), as->name, 0, "");
    float *x = add_tensor(w->to, name, n_experts * (is_turned ? cols : rows),
                          is_turned ? rows : cols)->x;
    for (size_t e = 0; e < n_experts; e++) {
        const struct oracle_linear *linear =
            (const void *)((const char *)&l->experts[e] + as->at);
        for (size_t i = 0; i < size; i++)
            x[e * size + (is_turned ? i % cols * rows + i / cols : i)] =
                linear->w[i];
    }
}

static void
write_experts_gate_up(const struct writer *w, const struct stored *as,
                      const void *parts)
{
    fuse_experts(w, as, parts, 2);
}

static void
write_scale(const struct writer *w, const struct stored *as, const void *parts)
{
    const struct oracle_layer *l = parts;

    write_vector(w, as->name, l->scale, 1);
}

static void
write_xielu(const struct writer *w, const struct stored *as, const void *parts)
{
    const struct oracle_layer *l = parts;

    write_vector(w, as->name, l->mlp.xielu + as->at, 1);
    if (as->at >= 2)
        w->to->tensors[w->to->n_tensors - 1].n_dims = 0;
}

static void
write_scales(const struct writer *w, const struct stored *as,
             const void *parts)
{
    const struct oracle_layer *l = parts;

    write_vector(w, as->name, l->experts_scale,
                 w->model->oracle.shape.n_experts);
}

static void
write_norm_vector(const struct writer *w, const struct stored *as,
                  const void *parts)
{
    const struct oracle_norm *norm =
        (const void *)((const char *)parts + as->at);

    write_vector(w, as->name, norm->w, norm->n);
}

static void
write_inputs(const struct writer *w, const char *pattern)
{
    const struct oracle_model *model = &w->model->oracle;
    size_t width = model->shape.layers * model->shape.input_dim;
    char name[96];

    family_name_tensor(w, name, sizeof(name), pattern, 0, ".weight");
    if (model->inputs != NULL)
        memcpy(add_tensor(w->to, name, model->shape.input_vocab, width)->x,
               model->inputs, model->shape.input_vocab * width * 4);
}

static void (*const writers[])(const struct writer *w,
                               const struct stored *as,
                               const void *parts) = {
    [AS_LINEAR] = write_plain,
    [AS_NORM] = write_norm,
    [AS_NORM_OF_HEADS] = write_norm,
    [AS_NORMS_OF_HEADS] = write_norm,
    [AS_SINKS] = write_numbers,
    [AS_SCALE] = write_scale,
    [AS_XIELU] = write_xielu,
    [AS_SCALES] = write_scales,
    [AS_VECTOR] = write_norm_vector,
    [AS_CORRECTION] = write_numbers,
    [AS_EXPERTS] = write_experts,
    [AS_EXPERTS_FUSED] = write_experts_fused,
    [AS_EXPERTS_BELOW] = write_experts_below,
    [AS_EXPERTS_TURNED] = write_experts_below,
    [AS_EXPERTS_GATE_UP] = write_experts_gate_up,
    [AS_QKV] = write_qkv,
    [AS_QKV_BY_HEAD] = write_qkv,
    [AS_QKV_BY_QUARTER] = write_qkv,
    [AS_Q_GATE] = write_q_gate,
    [AS_WEIGHT] = write_weight,
    [AS_PLAIN_NORM] = write_norm,
    [AS_DELTA_QKV] = write_delta_fused,
    [AS_DELTA_QKV_BY_HEAD] = write_delta_fused,
    [AS_DELTA_QKVZ] = write_delta_fused,
    [AS_DELTA_BA] = write_delta_fused,
    [AS_DECAYS] = write_decays,
    [AS_DECAYS_OF_HEADS] = write_decays,
    [AS_STEPS] = write_numbers,
    [AS_CONV] = write_conv,
    [AS_CONV_LAST] = write_conv,
    [AS_CONV_PART] = write_conv,
    [AS_CONV_THIRD] = write_conv,
    [AS_LATENT_KEYS] = write_latent,
    [AS_LATENT_VALUES] = write_latent,
    [AS_STATES] = write_delta_fused,
    [AS_KQV] = write_delta_fused,
    [AS_OF_VALUES] = write_delta_fused,
    [AS_VALUES_GATES] = write_delta_fused,
    [AS_BLOCKS] = family_write_blocks,
    [AS_DEEP] = family_write_deep,
    [AS_SHARDS] = family_write_shards,
    [AS_SKIP] = write_numbers,
    [AS_GATE_UP] = write_gate_up,
    [AS_MASK] = family_write_mask,
    [AS_FREQUENCIES] = family_write_frequencies,
};

static void
write_table(const struct writer *w, const char *pattern, const float *x,
            size_t rows)
{
    size_t dim = w->model->oracle.shape.dim;
    char name[96];

    family_name_tensor(w, name, sizeof(name), pattern, 0, ".weight");
    memcpy(add_tensor(w->to, name, rows, dim)->x, x,
           rows * dim * sizeof(*x));
}

static void
write_late_table(const struct writer *w, const char *pattern)
{
    const struct oracle_model *model = &w->model->oracle;
    size_t dim = model->shape.dim, n = model->shape.max_positions;
    char name[96];

    family_name_tensor(w, name, sizeof(name), pattern, 0, ".weight");
    float *x = add_tensor(w->to, name, n + 2, dim)->x;
    for (size_t i = 0; i < 2 * dim; i++)
        x[i] = 7;
    memcpy(x + 2 * dim, model->table, n * dim * sizeof(*x));
}

/* Rows of length 1, stored with other lengths. */
static void
write_head(const struct writer *w, const struct stored *as)
{
    const struct oracle_linear *head = &w->model->oracle.head;

    write_linear(w, as->name, 0, head);
    float *x = w->to->tensors[w->to->n_tensors - 1].x;
    if ((w->model->family->bits & HAS_UNIT_HEAD) != 0)
        for (size_t i = 0; i < head->rows * head->cols; i++)
            x[i] *= 1 + 0.25f * (float)(i / head->cols % 5);
}

static void
write_frame(const struct writer *w)
{
    const struct oracle_model *model = &w->model->oracle;
    unsigned bits = w->model->family->bits;

    for (const struct stored *as = w->model->family->frame;
         as->as != AS_END; as++) {
        if (as->as == AS_EMBEDDING)
            write_table(w, as->name, model->embedding,
                        model->shape.vocab + model->shape.other_vocab);
        else if (as->as == AS_TABLE && model->table != NULL)
            write_table(w, as->name, model->table, model->shape.max_positions);
        else if (as->as == AS_LATE_TABLE)
            write_late_table(w, as->name);
        else if (as->as == AS_INPUTS)
            write_inputs(w, as->name);
        else if (as->as == AS_STRAY)
            add_tensor(w->to, as->name, model->shape.dim, 0);
        else if (as->as == AS_LINEAR &&
                 (bits & (HAS_HEAD | HAS_HEAD_COPY)) != 0)
            write_head(w, as);
        else if (as->as != AS_LINEAR && as->as != AS_TABLE)
            writers[as->as](w, as, model);
    }
}

void
family_write(const struct family_model *model, const char *folder)
{
    struct build_model *to = calloc(1, sizeof(*to));
    struct bytes config = {0};
    char path[4096];

    if (to == NULL)
        abort();
    struct writer w = {model, to, 0};
    write_frame(&w);
    for (; w.layer < model->oracle.shape.layers; w.layer++)
        for (size_t i = 0; i < FAMILY_MOST_LISTS; i++) {
            const struct stored *as = model->family->layers[i];
            for (; as != NULL && as->as != AS_END; as++)
                writers[as->as](&w, as, &model->oracle.layers[w.layer]);
        }
    save_folder(to, folder, BUILD_F32);
    build_free(to);
    family_config(model, &config);
    snprintf(path, sizeof(path), "%s/config.json", folder);
    save(&config, path);
    bytes_free(&config);
}
