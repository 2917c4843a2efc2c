/*
 * family_writer.c - the tensors of a family that no other has: masks,
 * frequencies, gates of heads.
 */
#include "config.h"

#include "tests/families/more/family_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* And the number for what is masked, beside it. */
void
family_write_mask(const struct writer *w, const struct stored *as,
                  const void *parts)
{
    size_t n = w->model->oracle.shape.max_positions;
    char name[96];

    (void)parts;
    family_name_tensor(w, name, sizeof(name) - strlen("masked_"), as->name,
                       0, "");
    float *mask = build_add(w->to, name, (uint64_t[]){1, 1, n, n}, 4)->x;
    for (size_t i = 0; i < n * n; i++)
        mask[i] = i % n <= i / n;
    memcpy(strrchr(name, '.'), ".masked_bias", sizeof(".masked_bias"));
    build_add(w->to, name, NULL, 0)->x[0] = -1e9f;
}

void
family_write_frequencies(const struct writer *w, const struct stored *as,
                         const void *parts)
{
    const struct oracle_shape *s = &w->model->oracle.shape;
    size_t dims = s->rotary_dim == 0 ? s->head_dim : s->rotary_dim;
    float x[ORACLE_MAX_PAIRS];
    char name[96];

    (void)parts;
    if (dims / 2 > ORACLE_MAX_PAIRS)
        abort();
    for (size_t i = 0; i < dims / 2; i++)
        x[i] = (float)pow(s->theta, -2 * (double)i / (double)dims);
    family_name_tensor(w, name, sizeof(name), as->name, 0, "");
    memcpy(build_add(w->to, name, (uint64_t[]){dims / 2}, 1)->x, x,
           dims / 2 * sizeof(*x));
}

void
family_write_blocks(const struct writer *w, const struct stored *as,
                    const void *parts)
{
    const struct oracle_linear *gate =
        (const void *)((const char *)parts + as->at);
    size_t n = gate->cols, heads = gate->rows == 0 ? 0 : gate->rows / n;
    char name[96];

    if (gate->w == NULL)
        return;
    family_name_tensor(w, name, sizeof(name), as->name, 0, "_weight");
    float *x = build_add(w->to, name, (uint64_t[]){heads, n, n}, 3)->x;
    for (size_t i = 0; i < heads * n * n; i++) {
        size_t head = i / (n * n), in = i / n % n, out = i % n;
        x[i] = gate->w[(head * n + out) * n + in];
    }
    family_name_tensor(w, name, sizeof(name), as->name, 0, "_bias");
    memcpy(build_add(w->to, name, (uint64_t[]){heads, n}, 2)->x, gate->b,
           gate->rows * sizeof(*x));
}

void
family_write_deep(const struct writer *w, const struct stored *as,
                  const void *parts)
{
    const struct oracle_linear *linear =
        (const void *)((const char *)parts + as->at);
    char name[96];

    if (linear->w == NULL)
        return;
    family_name_tensor(w, name, sizeof(name), as->name, 0, ".weight");
    memcpy(build_add(w->to, name,
                     (uint64_t[]){linear->rows, 1, linear->cols}, 3)->x,
           linear->w, linear->rows * linear->cols * sizeof(*linear->w));
}

/* Seven, of which the last has what is left. */
void
family_write_shards(const struct writer *w, const struct stored *as,
                    const void *parts)
{
    const struct oracle_linear *linear =
        (const void *)((const char *)parts + as->at);
    size_t most = (linear->rows + 6) / 7, row = 0;
    char name[96];

    for (size_t i = 0; linear->w != NULL && i < 7; i++) {
        size_t n = linear->rows - row < most ? linear->rows - row : most;
        family_name_tensor(w, name, sizeof(name), as->name, i, ".weight");
        memcpy(build_add(w->to, name, (uint64_t[]){n, linear->cols}, 2)->x,
               linear->w + row * linear->cols,
               n * linear->cols * sizeof(*linear->w));
        row += n;
    }
}
