/*
 * gguf_kinds.c - layers of two kinds in GGUF: those that see everything and
 * those with a window have heads of their own, and the last ones may have no
 * keys and values. Gemma 4; of MiMo V2 only the number of heads differs. And
 * several streams and sparse layers: Gemma 3n; numbers that differ from layer
 * to layer: Laguna.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "formats/gguf/gguf_reader.h"
#include "formats/gguf/gguf_special.h"
#include "formats/model/hparams_fields.h"

/* ---- Reading ---- */

/* What a key says of layers: one number, or an array with one for each. Those
 * of which `is_first` is true have the first number, the others the second;
 * a kind that is not there keeps what is in it. */
static enum lmq_status
read_by_kind(struct lmq_gguf_reader *r, const char *name,
             bool (*is_first)(const struct lmq_hparams *h, size_t layer),
             uint32_t *first, uint32_t *second)
{
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));
    uint32_t *const numbers[] = {second, first};
    bool is_known[] = {false, false};
    enum lmq_status status = LMQ_OK;

    if (value == NULL)
        return LMQ_OK;
    if (value->type != LMQ_GGUF_ARRAY) {
        status = lmq_gguf_read_count(r, name, first);
        *second = *first;
        return status;
    }
    /* gguf_keys.c has seen that there are so many integers. */
    for (uint32_t i = 0; i < r->h->n_layers; i++) {
        int64_t number = lmq_gguf_item_int(value, i);
        bool kind = is_first(r->h, i);
        if (number < 0 || number > LMQ_MAX_WIDTH)
            return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                            "GGUF: '%s' of layer %" PRIu32 " is %" PRId64,
                            r->key, i, number);
        if (is_known[kind] && *numbers[kind] != (uint32_t)number)
            lmq_hparams_refuse(r->h, "layers of one kind that differ in '%s'",
                               name);
        *numbers[kind] = (uint32_t)number;
        is_known[kind] = true;
    }
    return LMQ_OK;
}

static bool
has_window(const struct lmq_hparams *h, size_t layer)
{
    return !lmq_layer_is(h, layer, LMQ_LAYER_FULL);
}

static bool
has_own_keys(const struct lmq_hparams *h, size_t layer)
{
    return !lmq_layer_borrows(h, layer);
}

/* llama.cpp takes the last layer with keys and values for those that see
 * everything, and the one before it for the others. */
static void
check_sources(struct lmq_hparams *h)
{
    uint32_t end = h->n_layers - h->n_borrowing;

    for (uint32_t i = end; i < h->n_layers; i++) {
        bool is_full = lmq_layer_is(h, i, LMQ_LAYER_FULL);
        if (lmq_layer_kv_source(h, i) + (is_full ? 1 : 2) != end)
            lmq_hparams_refuse(h, "shared keys and values of other layers "
                                  "than the last two that have some");
    }
}

static enum lmq_status
read_kv_heads(struct lmq_gguf_reader *r)
{
    return read_by_kind(r, "attention.head_count_kv", has_window,
                        &r->h->n_kv_heads, &r->h->full_kv_heads);
}

enum lmq_status
lmq_gguf_read_kinds(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    uint32_t full = h->head_dim, n_rotary = full, n_local, value;
    enum lmq_status status = LMQ_OK;

    if (r->family->gguf.keys & LMQ_GGUF_KEY_KINDS)
        return read_kv_heads(r);
    if ((r->family->gguf.keys & LMQ_GGUF_KINDS) == 0)
        return LMQ_OK;
    if (h->n_borrowing >= h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %" PRIu32 " of %" PRIu32 " layers have no keys "
                        "and values",
                        h->n_borrowing, h->n_layers);
    h->full_head_dim = full;
    status = lmq_gguf_read_count(r, "attention.key_length_swa", &h->head_dim);
    value = n_local = h->head_dim;
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, "attention.value_length_swa", &value);
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, "rope.dimension_count", &n_rotary);
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, "rope.dimension_count_swa", &n_local);
    if (status != LMQ_OK)
        return status;
    if ((h->value_dim != 0 && h->value_dim != full) || value != h->head_dim)
        lmq_hparams_refuse(h, "heads whose values have another size");
    if (n_rotary != full || n_local != h->head_dim)
        lmq_hparams_refuse(h, "heads of which only a part turns");
    h->value_dim = h->rotary_dim = 0;
    status = read_kv_heads(r);
    if (status == LMQ_OK)
        status = read_by_kind(r, "feed_forward_length", has_own_keys,
                              &h->hidden_dim, &h->borrowing_hidden_dim);
    check_sources(h);
    return status;
}

/* ---- Writing ---- */

static void
put_by_layer(struct lmq_gguf_builder *builder, const char *key,
             const struct lmq_hparams *h,
             uint32_t (*of_layer)(const struct lmq_hparams *h, size_t layer))
{
    lmq_gguf_put_array(builder, key, LMQ_GGUF_U32, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_u32(builder, of_layer(h, i));
}

static uint32_t
kv_heads_of(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_kv_heads(h, layer);
}

static uint32_t
hidden_of(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_hidden_dim(h, layer);
}

void
lmq_gguf_write_kv_heads(struct lmq_gguf_builder *builder,
                        const struct lmq_hparams *h)
{
    put_by_layer(builder, ".attention.head_count_kv", h, kv_heads_of);
}

void
lmq_gguf_write_kinds(struct lmq_gguf_builder *builder,
                     const struct lmq_hparams *h)
{
    uint32_t full = h->full_head_dim > 0 ? h->full_head_dim : h->head_dim;

    lmq_gguf_write_kv_heads(builder, h);
    put_by_layer(builder, ".feed_forward_length", h, hidden_of);
    lmq_gguf_put_u32(builder, ".attention.key_length", full);
    lmq_gguf_put_u32(builder, ".attention.value_length", full);
    lmq_gguf_put_u32(builder, ".attention.key_length_swa", h->head_dim);
    lmq_gguf_put_u32(builder, ".attention.value_length_swa", h->head_dim);
    lmq_gguf_put_u32(builder, ".rope.dimension_count", full);
    lmq_gguf_put_u32(builder, ".rope.dimension_count_swa", h->head_dim);
    lmq_gguf_put_array(builder, ".attention.sliding_window_pattern",
                       LMQ_GGUF_BOOL, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_bool(builder, has_window(h, i));
}

/* ---- Gemma 3n ---- */

/* What llama.cpp takes without a key. */
void
lmq_gguf_begin_gemma3n(struct lmq_hparams *h)
{
    h->logit_softcap = 30;
    h->n_streams = 4;
    h->rope_local_theta = 10000;
}

/* Of each layer the deviations above the mean where what goes on begins; none
 * is minus infinity. */
static enum lmq_status
read_cuts(struct lmq_gguf_reader *r)
{
    static const char name[] = "activation_sparsity_scale";
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));
    struct lmq_hparams *h = r->h;
    bool has_cut = false;

    if (value == NULL)
        return LMQ_OK;
    if (value->type != LMQ_GGUF_ARRAY || value->item_type != LMQ_GGUF_F32 ||
        value->count < h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no f32 for each of %" PRIu32 " layers",
                        r->key, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        double cut = lmq_gguf_item_number(value, i);
        if (isinf(cut) && cut < 0)
            continue;
        if (!(cut >= 0 && cut <= 1e30))
            lmq_hparams_refuse(h, "%g in '%s'", cut, name);
        else if (has_cut && (cut < h->sparse_cut || cut > h->sparse_cut))
            lmq_hparams_refuse(h, "layers that differ in '%s'", name);
        else
            h->sparse_cut = cut;
        has_cut = true;
        h->layers[i] |= LMQ_LAYER_SPARSE;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_read_streams(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    uint32_t first = 0;

    if ((r->family->gguf.keys & LMQ_GGUF_STREAMS) == 0)
        return LMQ_OK;
    if (h->n_borrowing >= h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %" PRIu32 " of %" PRIu32 " layers have no keys "
                        "and values",
                        h->n_borrowing, h->n_layers);
    enum lmq_status status =
        lmq_gguf_read_count(r, "altup.active_idx", &first);
    if (first != 0)
        lmq_hparams_refuse(h, "'altup.active_idx' %" PRIu32, first);
    if (h->n_streams < 2) {
        lmq_hparams_refuse(h, "'altup.num_inputs' %" PRIu32, h->n_streams);
        h->n_streams = 0;
    }
    return status == LMQ_OK ? read_cuts(r) : status;
}

void
lmq_gguf_write_streams(struct lmq_gguf_builder *builder,
                       const struct lmq_hparams *h)
{
    lmq_gguf_put_u32(builder, ".altup.active_idx", 0);
    lmq_gguf_put_array(builder, ".activation_sparsity_scale", LMQ_GGUF_F32,
                       h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_f32(builder, lmq_layer_is_sparse(h, i)
                                      ? h->sparse_cut
                                      : -(double)INFINITY);
}

void
lmq_gguf_finish_gemma3n(struct lmq_hparams *h,
                        const struct lmq_gguf_evidence *evidence)
{
    h->embedding_scale = sqrt((double)h->dim);
    h->attn_scale = 1;
    h->has_value_norm = true;
    h->residual_rank = evidence->residual_rank;
    h->layer_input_vocab = evidence->layer_input_vocab;
    if (h->residual_rank == 0)
        lmq_hparams_refuse(h, "a model of this kind without 'laurel_l'");
    if (h->layer_input_dim == 0)
        lmq_hparams_refuse(h, "'embedding_length_per_layer_input' 0");
}

/* ---- Gemma 4 ---- */

void
lmq_gguf_finish_gemma4(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    h->embedding_scale = sqrt((double)h->dim);
    h->attn_scale = 1;
    h->has_value_norm = true;
    h->has_layer_scale = evidence->has_layer_scale;
    h->full_keys_are_values = evidence->has_lone_keys;
    if (h->n_experts > 0) {
        h->shared_dim = h->hidden_dim;
        h->has_expert_norms = h->router_renormalises = true;
    }
    if (h->sliding_window == 0)
        lmq_hparams_refuse(h, "a model of this kind without windows");
}

/* ---- MiMo V2 ---- */

/* Its own default of a base that need not be said. */
void
lmq_gguf_begin_mimo2(struct lmq_hparams *h)
{
    lmq_gguf_begin_sigmoid_mixture(h);
    h->rope_local_theta = 10000;
}

/* What has a window has sinks; and a scale of 0 is none. */
void
lmq_gguf_finish_mimo2(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (!(h->value_scale > 0))
        h->value_scale = 1;
    h->has_sinks = h->sliding_window > 0;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_FULL))
            h->layers[i] |= LMQ_LAYER_SINKLESS;
}

/* ---- Numbers of layers ---- */

/* One number for all layers, or an array with one for each. */
static enum lmq_status
read_numbers(struct lmq_gguf_reader *r, const char *name, uint32_t *all,
             uint32_t *each)
{
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));

    /* gguf_keys.c has read what is one number, and has seen that there are so
     * many integers. */
    if (value == NULL || value->type != LMQ_GGUF_ARRAY)
        return LMQ_OK;
    *all = 0;
    for (uint32_t i = 0; i < r->h->n_layers; i++) {
        int64_t number = lmq_gguf_item_int(value, i);
        if (number < (r->family->gguf.has_voids ? 0 : 1) ||
            number > LMQ_MAX_WIDTH)
            return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                            "GGUF: '%s' of layer %" PRIu32 " is %" PRId64,
                            r->key, i, number);
        each[i] = (uint32_t)number;
        *all = each[i] > *all ? each[i] : *all;
    }
    return LMQ_OK;
}

static const char heads[] = ".attention.head_count";
static const char key_heads[] = ".attention.head_count_kv";
static const char widths[] = ".feed_forward_length";

/* A key that is one number says it of all layers. */
static bool
is_void(const struct lmq_gguf_reader *r, const struct lmq_gguf_value *value,
        uint32_t layer)
{
    return value != NULL && value->type == LMQ_GGUF_ARRAY &&
           layer < r->h->n_layers && lmq_gguf_item_int(value, layer) == 0;
}

/* What has no heads has no attention, what has no width no feed-forward. */
static enum lmq_status
read_voids(struct lmq_gguf_reader *r)
{
    const char *const names[] = {heads + 1, key_heads + 1, widths + 1};
    const struct lmq_gguf_value *values[3];
    struct lmq_hparams *h = r->h;

    for (size_t i = 0; i < 3; i++)
        values[i] = lmq_gguf_find(r->meta, lmq_gguf_key_of(r, names[i]));
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (is_void(r, values[0], i))
            h->layers[i] |= LMQ_LAYER_FEED;
        else if (is_void(r, values[1], i))
            lmq_hparams_refuse(h, "a matrix in place of attention");
        if (is_void(r, values[2], i))
            h->layers[i] |= LMQ_LAYER_BARE;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_read_counts(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;

    if (!r->family->gguf.counts_by_layer)
        return LMQ_OK;
    enum lmq_status status =
        read_numbers(r, heads + 1, &h->n_heads, h->layer_heads);
    if (status == LMQ_OK)
        status = read_numbers(r, key_heads + 1, &h->n_kv_heads,
                              h->layer_kv_heads);
    if (status == LMQ_OK)
        status = read_numbers(r, widths + 1, &h->hidden_dim,
                              h->layer_hidden_dims);
    if (status == LMQ_OK && r->family->gguf.has_voids)
        status = read_voids(r);
    return status;
}

/* An array only where layers differ. */
static void
put_numbers(struct lmq_gguf_builder *builder, const char *key,
            const struct lmq_hparams *h,
            uint32_t (*of)(const struct lmq_hparams *h, size_t layer))
{
    bool is_even = true;

    for (uint32_t i = 1; i < h->n_layers; i++)
        is_even &= of(h, i) == of(h, 0);
    if (is_even) {
        lmq_gguf_put_u32(builder, key, of(h, 0));
        return;
    }
    lmq_gguf_put_array(builder, key, LMQ_GGUF_U32, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_u32(builder, of(h, i));
}

static uint32_t
heads_or_none(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_mixes(h, layer) ? lmq_layer_heads(h, layer) : 0;
}

static uint32_t
key_heads_or_none(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_mixes(h, layer) ? lmq_layer_kv_heads(h, layer) : 0;
}

static uint32_t
width_or_none(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_has_feed(h, layer) ? lmq_layer_hidden_dim(h, layer) : 0;
}

static void
write_counts(struct lmq_gguf_builder *builder,
             const struct lmq_family *family, const struct lmq_hparams *h)
{
    if (family->gguf.has_voids) {
        put_numbers(builder, heads, h, heads_or_none);
        put_numbers(builder, key_heads, h, key_heads_or_none);
        put_numbers(builder, widths, h, width_or_none);
        return;
    }
    put_numbers(builder, heads, h, lmq_layer_heads);
    put_numbers(builder, key_heads, h, lmq_layer_kv_heads);
    put_numbers(builder, widths, h, lmq_layer_hidden_dim);
}

/* ---- How much turns ---- */

/* The plain key is of layers that see everything; what has a window turns by a
 * base of its own, which need not be said. */
enum lmq_status
lmq_gguf_read_parts(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;

    if (r->family->gguf.halves_part && h->sliding_window == 0)
        h->rotary_dim = lmq_hparams_rotary_dim(h) / 2;
    if (!r->family->gguf.has_local_part || h->sliding_window == 0)
        return LMQ_OK;
    if (!(h->rope_local_theta > 0))
        h->rope_local_theta = h->rope_theta;
    h->full_rotary_dim =
        lmq_hparams_rotary_dim(h) / (r->family->gguf.halves_part ? 2 : 1);
    return lmq_gguf_read_count(r, LMQ_GGUF_LOCAL_PART, &h->rotary_dim);
}

static void
write_parts(struct lmq_gguf_builder *builder,
            const struct lmq_family *family, const struct lmq_hparams *h)
{
    lmq_gguf_put_u32(builder, ".rope.dimension_count",
                     lmq_hparams_far_rotary_dim(h) *
                         (family->gguf.halves_part ? 2 : 1));
    if (h->sliding_window > 0)
        lmq_gguf_put_u32(builder, "." LMQ_GGUF_LOCAL_PART,
                         lmq_hparams_rotary_dim(h));
}

/* Norms of queries and keys have weights; those behind blocks an epsilon that
 * no key says; and what no key limits is limited. */
void
lmq_gguf_begin_muse(struct lmq_hparams *h)
{
    h->qk_norm = LMQ_QK_NORM_HEAD;
    h->has_embedding_norm = h->has_bare_embedding_norm = true;
    h->post_norm_eps = 1e-8;
    h->logit_softcap = 30;
    h->has_attn_gate = true;
}

void
lmq_gguf_write_layers(struct lmq_gguf_builder *builder,
                      const struct lmq_family *family,
                      const struct lmq_hparams *h)
{
    if (family->gguf.counts_by_layer)
        write_counts(builder, family, h);
    if (family->gguf.keys & LMQ_GGUF_LIMITS)
        lmq_gguf_write_limits(builder, family, h);
    if (family->gguf.has_local_part)
        write_parts(builder, family, h);
}

bool
lmq_gguf_is_by_layer(const struct lmq_family *family, size_t field)
{
    if (field == LMQ_FIELD(rotary_dim))
        return family->gguf.has_local_part;
    return family->gguf.counts_by_layer &&
           (field == LMQ_FIELD(n_heads) || field == LMQ_FIELD(n_kv_heads) ||
            field == LMQ_FIELD(hidden_dim));
}

/* ---- MiniMax M3 ---- */

void
lmq_gguf_begin_minimax3(struct lmq_hparams *h)
{
    lmq_gguf_begin_sigmoid(h);
    h->activation_slope = 1.702;
    h->glu_limit = 7;
    h->glu_offset = 1;
}

/* ---- Step 3.5 ---- */

/* It has gates where there are tensors of them. */
void
lmq_gguf_finish_step35(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    h->has_attn_gate = h->has_head_gate = evidence->gate_rows > 0;
}

/* ---- Laguna ---- */

/* Its gates have as many rows as their tensors. */
void
lmq_gguf_finish_laguna(struct lmq_hparams *h,
                       const struct lmq_gguf_evidence *evidence)
{
    h->has_attn_gate = h->has_softplus_gate = true;
    h->has_head_gate = evidence->gate_rows == lmq_layer_heads(h, 0);
}

/* ---- Layers that come again ---- */

/* Once through all layers is as if nothing was said. */
enum lmq_status
lmq_gguf_read_loops(struct lmq_gguf_reader *r)
{
    bool skips_norm = false;
    enum lmq_status status = LMQ_OK;

    if ((r->family->gguf.keys & LMQ_GGUF_LOOPS) == 0)
        return LMQ_OK;
    status = lmq_gguf_get_bool(r->meta,
                               lmq_gguf_key_of(r, "skip_loop_final_norm"),
                               &skips_norm, r->err);
    if (r->h->n_loops > LMQ_MAX_LOOPS)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %u times through all layers, at most %d are "
                        "possible",
                        r->h->n_loops, LMQ_MAX_LOOPS);
    if (r->h->n_loops < 2)
        r->h->n_loops = 0;
    r->h->has_loop_norm = r->h->n_loops > 0 && !skips_norm;
    return status;
}
