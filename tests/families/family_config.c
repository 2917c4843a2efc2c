/*
 * family_config.c - the sizes of a family's model, and its config.json, filled
 * in: ' becomes ", $name the size of that name, $short and $long the factors of
 * a long context.
 */
#include "config.h"

#include "tests/families/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"

void
family_grow(struct oracle_shape *s, size_t grow, unsigned bits)
{
    size_t *const widths[] = {
        &s->dim, &s->hidden, &s->head_dim, &s->value_dim, &s->q_rank,
        &s->kv_rank, &s->rotary_dim, &s->expert_dim, &s->shared_dim,
        &s->delta_key_dim, &s->delta_value_dim, &s->full_head_dim,
        &s->borrowing_hidden, &s->input_dim, &s->gate_rank, &s->bypass_rank,
        &s->norm_rank, &s->full_rotary_dim, &s->out_rank, &s->index_dim,
        &s->full_value_dim, &s->full_kv_rank,
        &s->gate_streams, &s->gram_dim,
    };
    size_t dims;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        *widths[i] *= grow;
    s->grown = grow;
    if (s->recurrence == ORACLE_SELECTIVE) { /* of which each is a head */
        s->delta_value_dim /= grow;
        s->delta_values *= grow;
    } else {
        s->step_rank *= grow;
    }
    if ((bits & SCALES_EMBEDDING) != 0)
        s->embedding_scale = sqrt((double)s->dim);
    if (s->scores_by_width)
        s->score_scale = 1 / (double)s->head_dim;
    dims = s->rotary_dim == 0 ? s->head_dim : s->rotary_dim;
    for (size_t i = 0; i < dims / 2 && i < ORACLE_MAX_PAIRS; i++) {
        s->short_factors[i] = 1 + 0.125 * (double)(i % 4);
        s->long_factors[i] = 1.5 + 0.5 * (double)(i % 8);
    }
}

static void
put_factors(struct bytes *bytes, const struct oracle_shape *s,
            const double *factors)
{
    size_t dims = s->rotary_dim == 0 ? s->head_dim : s->rotary_dim;
    char text[32];

    for (size_t i = 0; i < dims / 2; i++) {
        snprintf(text, sizeof(text), "%s%.3f", i == 0 ? "" : ", ", factors[i]);
        put_text(bytes, text);
    }
}

/* As many as there are layers, separated by commas; false if no list is called
 * that. */
static bool
put_numbers(struct bytes *bytes, const struct oracle_shape *s,
            const char *name, size_t n)
{
    const struct {
        const char *name;
        size_t (*of)(const struct oracle_shape *s, size_t layer);
    } lists[] = {
        {"each_heads", oracle_heads},
        {"each_kv_heads", oracle_kv_heads},
        {"each_hidden", oracle_hidden},
    };
    char text[32];

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (strlen(lists[i].name) != n || memcmp(lists[i].name, name, n) != 0)
            continue;
        for (size_t layer = 0; layer < s->layers; layer++) {
            snprintf(text, sizeof(text), "%s%zu", layer == 0 ? "" : ", ",
                     lists[i].of(s, layer));
            put_text(bytes, text);
        }
        return true;
    }
    return false;
}

static void
put_size(struct bytes *bytes, const struct oracle_shape *s, const char *name,
         size_t n)
{
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        {"dim", s->dim},
        {"hidden", s->hidden},
        {"twice_hidden", 2 * s->hidden},
        {"layers", s->layers},
        {"heads", s->heads},
        {"kv_heads", s->kv_heads},
        {"head_dim", s->head_dim},
        {"value_dim", s->value_dim},
        {"rotary_dim", s->rotary_dim},
        {"nope_dim", s->head_dim - s->rotary_dim},
        {"vocab", s->vocab},
        {"all_vocab", s->vocab + s->other_vocab},
        {"positions", s->max_positions},
        {"window", s->window},
        {"chunk", s->chunk},
        {"original", s->original},
        {"q_rank", s->q_rank},
        {"out_groups", s->out_groups},
        {"out_rank", s->out_rank},
        {"index_heads", s->index_heads},
        {"index_dim", s->index_dim},
        {"index_topk", s->index_topk},
        {"pool_size", s->pool_size},
        {"overlap_size", s->overlap_size},
        {"kv_rank", s->kv_rank},
        {"experts", s->n_experts},
        {"used", s->n_used},
        {"expert_dim", s->expert_dim},
        {"shared_dim", s->shared_dim},
        {"groups", s->n_groups},
        {"groups_used", s->n_groups_used},
        {"full_dim", s->full_head_dim},
        {"full_nope_dim", s->full_head_dim - s->rotary_dim},
        {"full_value_dim", s->full_value_dim},
        {"full_kv_rank", s->full_kv_rank},
        {"full_heads", s->full_kv_heads},
        {"borrowing", s->n_borrowing},
        {"input_dim", s->input_dim},
        {"input_vocab", s->input_vocab},
        {"streams", s->streams},
        {"gate_streams", s->gate_streams},
        {"gram_size", s->gram_size},
        {"gram_heads", s->gram_heads},
        {"gram_width", s->gram_size == 0 ? 0 : (s->gram_size - 1) *
                                                   s->gram_heads * s->gram_dim},
        {"gram_conv", s->gram_conv},
        {"gram_stop", s->gram_stop},
        {"gram_seed", s->gram_seed},
        {"gram_base", s->gram_base},
        {"bypass_rank", s->bypass_rank},
        {"norm_rank", s->norm_rank},
        {"delta_keys", s->delta_keys},
        {"delta_values", s->delta_values},
        {"delta_key_dim", s->delta_key_dim},
        {"lru_width", s->delta_values * s->delta_value_dim},
        {"delta_value_dim", s->delta_value_dim},
        {"conv_width", s->conv_width},
        {"step_rank", s->step_rank},
    };
    char text[32];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strlen(sizes[i].name) == n &&
            memcmp(sizes[i].name, name, n) == 0) {
            snprintf(text, sizeof(text), "%zu", sizes[i].value);
            put_text(bytes, text);
            return;
        }
    abort();
}

void
family_config(const struct family_model *model, struct bytes *bytes)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    const struct oracle_shape *s = &model->oracle.shape;

    for (const char *p = model->family->config; *p != '\0';) {
        size_t n = *p == '$' ? strspn(p + 1, letters) : 0;
        if (n == 5 && memcmp(p + 1, "short", n) == 0)
            put_factors(bytes, s, s->short_factors);
        else if (n == 4 && memcmp(p + 1, "long", n) == 0)
            put_factors(bytes, s, s->long_factors);
        else if (n > 0 && !put_numbers(bytes, s, p + 1, n))
            put_size(bytes, s, p + 1, n);
        else if (n == 0)
            put(bytes, *p == '\'' ? "\"" : p, 1);
        p += n + 1;
    }
    put_text(bytes, "\n");
}

void
family_make_unit(struct oracle_linear *linear)
{
    for (size_t r = 0; r < linear->rows; r++) {
        float *row = linear->w + r * linear->cols;
        double squares = 0;
        for (size_t c = 0; c < linear->cols; c++)
            squares += (double)row[c] * (double)row[c];
        for (size_t c = 0; c < linear->cols; c++)
            row[c] = (float)(row[c] / sqrt(squares));
    }
}
