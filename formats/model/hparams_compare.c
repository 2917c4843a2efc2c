/*
 * hparams_compare.c - whether two descriptions are of the same model.
 *
 * A description is settled first: what has no consequence, or can be said in
 * two ways, gets one form. Then the two are compared field by field.
 */
#include "config.h"

#include "formats/model/hparams_compare.h"

#include <math.h>
#include <string.h>

#include "base/report.h"
#include "formats/model/hparams_fields.h"
#include "formats/model/hparams_json.h"
#include "formats/model/rope_scaling.h"

/* A float32 keeps seven digits. */
#define TOLERANCE 2e-7

/* ---- Settling ---- */

static void
settle_scale(struct lmq_hparams *h)
{
    if (!(h->attn_scale > 0))
        h->attn_scale = 1 / sqrt((double)h->head_dim);
}

/* Besides what lmq_hparams_settle() does. */
static void
settle(struct lmq_hparams *h)
{
    bool has_dense = h->n_experts == 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        has_dense |= !lmq_layer_has_experts(h, i);
    if (!has_dense)
        h->hidden_dim = 0;
    if (h->router == LMQ_ROUTER_SOFTMAX_CHOSEN) {
        h->router = LMQ_ROUTER_SOFTMAX;
        h->router_renormalises = true;
    }
    settle_scale(h);
    if (h->sliding_window >= h->context && !(h->rope_local_theta > 0))
        h->sliding_window = 0;
    lmq_hparams_settle_rope(h);
    if (h->rope_scaling == LMQ_ROPE_LONGROPE)
        h->rope_factor = 1; /* what came of it is the attention factor */
    lmq_hparams_settle(h);
}

/* ---- Comparing ---- */

static json_t *
value_of(const struct lmq_field *field, const struct lmq_hparams *h,
         const struct lmq_hparams *usual)
{
    return field->presence == LMQ_SELDOM &&
                   lmq_field_is_same(field, h, usual, 0)
               ? json_null()
               : lmq_field_to_json(field, h);
}

/* What tells a reader most comes first: that a kind is another one, rather
 * than a number that goes with it; what is there, rather than what is not. */
enum { LAST_RANK = 2 };

static int
rank_of(const struct lmq_field *field, const struct lmq_hparams *a,
        const struct lmq_hparams *usual)
{
    if (field->presence == LMQ_SELDOM && lmq_field_is_same(field, a, usual, 0))
        return LAST_RANK;
    return field->type == LMQ_FIELD_KIND ? 0 : 1;
}

json_t *
lmq_hparams_compare(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    struct lmq_hparams one = *a, two = *b, usual;
    json_t *differences = json_array();

    settle(&one);
    settle(&two);
    lmq_hparams_init(&usual);
    for (int rank = 0; rank <= LAST_RANK; rank++)
        for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++) {
            if (rank_of(f, &one, &usual) != rank ||
                lmq_field_is_same(f, &one, &two, TOLERANCE))
                continue;
            json_t *difference = json_object();
            lmq_put(&difference, "key", json_string(f->key));
            lmq_put(&difference, "a", value_of(f, &one, &usual));
            lmq_put(&difference, "b", value_of(f, &two, &usual));
            lmq_append(&differences, difference);
        }
    return differences;
}

/* ---- Yes or no ---- */

/* What a model can differ in and still be put side by side with another: not
 * which tensors a layer has, how large they are, or whose keys it sees. */
static bool
is_free(const struct lmq_field *field, const struct lmq_hparams *h)
{
    bool is_alike = h->full_head_dim == 0 && h->full_kv_heads == 0 &&
                    h->full_value_dim == 0 && h->full_kv_lora_rank == 0 &&
                    !h->full_keys_are_values && h->n_borrowing == 0;

    return field->type == LMQ_FIELD_REAL ||
           field->type == LMQ_FIELD_FACTORS ||
           (field->type == LMQ_FIELD_LAYERS &&
            ((field->bit == LMQ_LAYER_NOPE && !h->has_whole_still) ||
             (field->bit == LMQ_LAYER_FULL && is_alike))) ||
           field->offset == LMQ_FIELD(layer_input_vocab) ||
           field->offset == LMQ_FIELD(context) ||
           field->offset == LMQ_FIELD(context_end) ||
           field->offset == LMQ_FIELD(sliding_window) ||
           field->offset == LMQ_FIELD(rope_context) ||
           field->offset == LMQ_FIELD(rope_scaling);
}

const char *
lmq_hparams_difference(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++)
        if (!is_free(f, a) && !lmq_field_is_same(f, a, b, 0))
            return f->key;
    return NULL;
}

bool
lmq_hparams_are_same(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    struct lmq_hparams one = *a, two = *b;

    /* GGUF does not say the usual one, configurations of Gemma do. */
    settle_scale(&one);
    settle_scale(&two);
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++)
        if (!lmq_field_is_same(f, &one, &two, 0))
            return false;
    return strcmp(a->architecture, b->architecture) == 0 &&
           strcmp(a->unsupported, b->unsupported) == 0 && a->bos == b->bos &&
           a->n_eos == b->n_eos &&
           memcmp(a->eos, b->eos, a->n_eos * sizeof(a->eos[0])) == 0;
}
