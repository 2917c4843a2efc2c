/*
 * work.c - the memory of the forward pass.
 *
 * One list of buffers with their sizes, for those who allocate, free and
 * estimate.
 */
#include "config.h"

#include "runtime/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/threads/threads.h"
#include "formats/grams/grams.h"
#include "quantize/group.h"
#include "runtime/kv.h"

#define MAX_THREADS 256
/* What a layer must cost for each thread, in multiplications (about 40 us of
 * them), so that the barriers in it do not cost more. */
#define MEMBER_COST (2e6)

/* Of n rows of `width` things of `size` bytes. */
struct buffer {
    void *at; /* where its pointer is */
    size_t n, width, size;
};

#define MAX_BUFFERS 96

struct list {
    struct buffer buffers[MAX_BUFFERS];
    size_t n;
};

/* ---- Sizes of buffers ---- */

static void
add(struct list *list, void *at, size_t n, size_t width, size_t size)
{
    list->buffers[list->n++] = (struct buffer){at, n, width, size};
}

/* Rows of experts at a time: those of one token at least, and enough for
 * every expert that a batch may have. */
static size_t
expert_rows(const struct lmq_hparams *h, size_t batch)
{
    return lmq_size_min(batch * h->n_experts_used, 2 * batch + 64);
}

/* What the heads of a layer give at most. */
static size_t
heads_width(const struct lmq_hparams *h)
{
    size_t value = lmq_size_max(
        lmq_hparams_value_dim(h),
        lmq_size_max(h->full_head_dim, h->full_value_dim));

    return lmq_size_max(lmq_most_heads(h) * value, lmq_delta_value_width(h));
}

/* Heads may differ between layers: what the largest need. */
struct widths {
    size_t key, value;             /* of one head in the cache */
    size_t queries, keys, values;  /* of all heads of a token */
};

static struct widths
widest_heads(const struct lmq_hparams *h)
{
    struct widths most = {0};

    for (size_t i = 0; i < h->n_layers; i++) {
        size_t heads = lmq_cached_heads(h, i);
        most.key = lmq_size_max(most.key, lmq_key_width(h, i));
        most.value = lmq_size_max(most.value, lmq_value_width(h, i));
        most.keys = lmq_size_max(most.keys, heads * lmq_key_width(h, i));
        most.values = lmq_size_max(most.values, heads * lmq_value_width(h, i));
    }
    most.queries = (size_t)lmq_most_heads(h) *
                   lmq_size_max(h->head_dim, h->full_head_dim);
    return most;
}

/* What a feed-forward has inside, and what a layer makes of its input. */
static size_t
widest_hidden(const struct lmq_hparams *h)
{
    return lmq_size_max(
        lmq_most_hidden_dims(h),
        lmq_size_max(h->shared_dim, h->layer_input_dim));
}

/* The widest operand of any product. */
static size_t
widest_operand(const struct lmq_hparams *h)
{
    const size_t widths[] = {
        widest_hidden(h), h->expert_dim, lmq_query_latents(h),
        h->kv_lora_rank,  h->head_dim,   heads_width(h), h->step_rank,
        h->full_kv_lora_rank, h->full_head_dim,
        h->gate_rank,     h->residual_rank, h->norm_gate_rank,
        (size_t)h->n_out_groups * h->out_rank, h->index_dim,
        lmq_has_gated_streams(h) ? (size_t)h->n_streams * h->dim : 0,
        h->stream_rank, lmq_gram_width(h),
    };
    size_t widest = h->dim;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        widest = lmq_size_max(widest, widths[i]);
    return widest;
}

static void
list_packed(struct list *list, struct lmq_work *work,
            const struct lmq_model *model)
{
    const struct lmq_hparams *h = &model->hparams;
    const struct {
        size_t n, width;
    } operands[] = {
        {work->batch, widest_operand(h)},
        /* Inputs of experts, perhaps in two groups; their insides. */
        {h->n_experts == 0 ? 0 : 2 * work->routing.capacity, h->dim},
        {h->n_experts == 0 ? 0 : work->routing.capacity, h->expert_dim},
        /* What goes through the matrices of heads. */
        {h->kv_lora_rank == 0 ? 0 : work->batch * lmq_most_heads(h),
         lmq_size_max(lmq_size_max(h->kv_lora_rank, h->full_kv_lora_rank),
                      lmq_size_max(h->head_dim, h->full_head_dim))},
        /* And through those of parts of what heads give. */
        {work->batch * h->n_out_groups,
         h->n_out_groups == 0 ? 1 : heads_width(h) / h->n_out_groups + 1},
    };
    size_t most = 1, n;

    for (size_t i = 0; model->is_int8 && i < 5; i++) {
        if (!lmq_size_mul(operands[i].n, lmq_packed_bytes(operands[i].width),
                          &n))
            n = SIZE_MAX; /* fails when it is allocated */
        most = lmq_size_max(most, n);
    }
    add(list, &work->packed, most, 1, 1);
}

static void
list_experts(struct list *list, struct lmq_work *work,
             const struct lmq_hparams *h)
{
    struct lmq_routing *r = &work->routing;
    size_t used = h->n_experts_used;

    add(list, &r->logits, work->batch, h->n_experts, sizeof(float));
    add(list, &r->experts, work->batch, used, sizeof(uint32_t));
    add(list, &r->weights, work->batch, used, sizeof(float));
    add(list, &r->rows, work->batch, used, sizeof(uint32_t));
    add(list, &r->first, (size_t)h->n_experts + 1, 1, sizeof(uint32_t));
    add(list, &r->tokens, work->batch, used, sizeof(uint32_t));
    add(list, &r->input, r->capacity, h->dim, sizeof(float));
    add(list, &r->output, lmq_size_max(r->capacity, work->batch), h->dim,
        sizeof(float));
    add(list, &r->switches, work->batch, 1, sizeof(float));
    if (h->has_expert_norms) {
        add(list, &work->router_xn, work->batch, h->dim, sizeof(float));
        add(list, &work->experts_xn, work->batch, h->dim, sizeof(float));
    }
}

static void
list_inputs(struct list *list, struct lmq_work *work,
            const struct lmq_hparams *h)
{
    size_t n = work->batch, width = lmq_inputs_width(h);

    add(list, &work->inputs, n, width, sizeof(float));
    add(list, &work->input_rows, n, width, sizeof(float));
    add(list, &work->input_products, n, width, sizeof(float));
}

static void
list_streams(struct list *list, struct lmq_work *work,
             const struct lmq_hparams *h)
{
    size_t n = work->batch;

    if (h->n_streams > 0) {
        add(list, &work->streams, n, lmq_streams_width(h), sizeof(float));
        if (lmq_has_hyper_streams(h))
            add(list, &work->hyper, n, lmq_hyper_mixes(h), sizeof(float));
        else
            add(list, &work->predicted, n, h->dim, sizeof(float));
    }
    if (lmq_has_gated_streams(h)) {
        size_t all = (size_t)h->n_streams * h->dim;
        add(list, &work->gated_xn, n, all, sizeof(float));
        add(list, &work->gated_gates, n, all, sizeof(float));
        add(list, &work->gated_latents, n, h->stream_rank, sizeof(float));
    }
    if (lmq_has_grams(h)) {
        size_t all = (size_t)h->n_streams * h->dim;
        add(list, &work->gram_rows, n, lmq_gram_width(h), sizeof(float));
        add(list, &work->gram_values, n, h->dim, sizeof(float));
        add(list, &work->gram_keys, n, all, sizeof(float));
        add(list, &work->gram_conv, n, all, sizeof(float));
    }
    if (h->residual_rank > 0) {
        add(list, &work->bypass, n, h->dim, sizeof(float));
        add(list, &work->bypass_latents, n, h->residual_rank, sizeof(float));
    }
    if (h->norm_gate_rank > 0) {
        add(list, &work->norm_gate, n, h->dim, sizeof(float));
        add(list, &work->norm_latents, n, h->norm_gate_rank, sizeof(float));
    }
    for (size_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_is_sparse(h, i)) {
            add(list, &work->levels, n, 1, sizeof(float));
            return;
        }
}

static void
list_latents(struct list *list, struct lmq_work *work,
             const struct lmq_hparams *h)
{
    size_t n = work->batch;

    add(list, &work->q_a, n, h->q_lora_rank, sizeof(float));
    if (h->has_raw_latents)
        add(list, &work->q_pair, n, lmq_query_latents(h), sizeof(float));
    struct widths widths = widest_heads(h);
    add(list, &work->q_latent, n, lmq_most_heads(h) * widths.key,
        sizeof(float));
    add(list, &work->out_latent, n, lmq_most_heads(h) * widths.value,
        sizeof(float));
}

/* What keys that are values, and pools of them, need. */
static void
list_pools(struct list *list, struct lmq_work *work,
           const struct lmq_hparams *h)
{
    size_t n = work->batch, width = 0;

    if (lmq_has_query_latents(h) && h->kv_lora_rank == 0)
        add(list, &work->q_a, n, h->q_lora_rank, sizeof(float));
    if (h->n_out_groups > 0)
        add(list, &work->out_a, n, (size_t)h->n_out_groups * h->out_rank,
            sizeof(float));
    for (size_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_pool(h, i) > 0)
            width = lmq_size_max(width, lmq_pool_width(h, i));
    if (width > 0) {
        add(list, &work->pool_kv, n, width, sizeof(float));
        add(list, &work->pool_gate, n, width, sizeof(float));
    }
    if (h->index_topk == 0)
        return;
    add(list, &work->index_kv, n, lmq_index_width(h), sizeof(float));
    if (width > 0)
        add(list, &work->index_gate, n, lmq_index_width(h), sizeof(float));
    add(list, &work->index_q, n, (size_t)h->n_index_heads * h->index_dim,
        sizeof(float));
    add(list, &work->index_weights, n, h->n_index_heads, sizeof(float));
    add(list, &work->chosen, n, lmq_choice_bytes(h, work->context), 1);
}

static void
list_thread_pools(struct list *list, struct lmq_thread_work *thread,
                  const struct lmq_hparams *h, size_t context)
{
    size_t half = lmq_hparams_rotary_dim(h) / 2;

    if (h->index_topk > 0)
        add(list, &thread->worths, 8, lmq_choice_bytes(h, context),
            sizeof(float));
    if (!lmq_has_pools(h))
        return;
    add(list, &thread->pool_weights, 2,
        lmq_size_max(h->pool_size, h->overlap_size), sizeof(float));
    add(list, &thread->pool, 1, lmq_size_max(h->head_dim, h->index_dim),
        sizeof(float));
    add(list, &thread->pool_cosines, 1, half, sizeof(float));
    add(list, &thread->pool_sines, 1, half, sizeof(float));
}

/* The buffers of a work whose sizes are filled in. */
static void
list_buffers(struct list *list, struct lmq_work *work,
             const struct lmq_model *model)
{
    const struct lmq_hparams *h = &model->hparams;
    struct widths widths = widest_heads(h);
    size_t n = work->batch, hidden = widest_hidden(h);

    if (h->n_experts > 0 && hidden < h->expert_dim)
        hidden = h->expert_dim;
    add(list, &work->x, n, h->dim, sizeof(float));
    add(list, &work->xn, n, h->dim, sizeof(float));
    if (h->residual != LMQ_RESIDUAL_SEQUENTIAL)
        add(list, &work->feed_xn, n, h->dim, sizeof(float));
    size_t keys = lmq_delta_key_width(h), values = lmq_delta_value_width(h);
    add(list, &work->q, n, lmq_size_max(widths.queries, keys), sizeof(float));
    add(list, &work->k, n, lmq_size_max(widths.keys, keys), sizeof(float));
    if (!lmq_values_are_keys(h) || values > 0)
        add(list, &work->v, n, lmq_size_max(widths.values, values),
            sizeof(float));
    add(list, &work->attention, n, heads_width(h), sizeof(float));
    if (h->has_attn_gate || values > 0)
        add(list, &work->attn_gate, n, heads_width(h), sizeof(float));
    if (values > 0) {
        add(list, &work->delta_alpha, n, lmq_delta_steps(h), sizeof(float));
        add(list, &work->delta_beta, n,
            lmq_is_lru(h) ? values : h->n_delta_value_heads, sizeof(float));
        add(list, &work->step_latents, n, h->step_rank, sizeof(float));
        add(list, &work->gate_latents, n, h->gate_rank, sizeof(float));
    }
    add(list, &work->out, n, h->dim, sizeof(float));
    if (h->layer_input_dim > 0)
        list_inputs(list, work, h);
    list_streams(list, work, h);
    /* Experts have more rows than a batch. */
    size_t rows =
        h->n_experts == 0 ? n : lmq_size_max(n, work->routing.capacity);
    add(list, &work->gate, rows, hidden, sizeof(float));
    add(list, &work->up, rows, hidden, sizeof(float));
    if (h->kv_lora_rank > 0)
        list_latents(list, work, h);
    list_pools(list, work, h);
    if (h->positions == LMQ_POSITIONS_ALIBI ||
        h->positions == LMQ_POSITIONS_ALIBI_SCALED)
        add(list, &work->slopes, h->n_heads, 1, sizeof(float));
    for (int i = 0; i < LMQ_ROPE_KINDS; i++) {
        size_t pairs = lmq_rope_dim(h, (enum lmq_rope_kind)i) / 2;
        add(list, &work->angles[i].frequencies, pairs, 1, sizeof(double));
        add(list, &work->angles[i].cosines, n, pairs, sizeof(float));
        add(list, &work->angles[i].sines, n, pairs, sizeof(float));
    }
    if (h->n_experts > 0)
        list_experts(list, work, h);
    list_packed(list, work, model);
}

static void
list_thread(struct list *list, struct lmq_thread_work *thread,
            const struct lmq_model *model, size_t context)
{
    const struct lmq_hparams *h = &model->hparams;

    struct widths widths = widest_heads(h);
    add(list, &thread->queries, LMQ_ATTENTION_QUERIES, widths.key,
        sizeof(float));
    add(list, &thread->out, LMQ_ATTENTION_QUERIES, widths.value,
        sizeof(float));
    add(list, &thread->scores, LMQ_ATTENTION_STRIP, LMQ_ATTENTION_BLOCK,
        sizeof(float));
    add(list, &thread->keys, LMQ_ATTENTION_BLOCK, widths.key, sizeof(float));
    add(list, &thread->values, LMQ_ATTENTION_BLOCK, widths.value,
        sizeof(float));
    add(list, &thread->scratch,
        lmq_scratch_bytes(lmq_size_max(widest_operand(h), widths.key)), 1, 1);
    add(list, &thread->selection, h->n_experts, 2, sizeof(float));
    add(list, &thread->states, h->n_experts, 2, 1);
    list_thread_pools(list, thread, h, context);
    if (model->is_int8)
        add(list, &thread->widened, LMQ_TILE_ROWS,
            widest_operand(h) + LMQ_GROUP_MAX, sizeof(float));
}

/* ---- Memory ---- */

static bool
allocate(struct lmq_work *work, const struct list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct buffer *buffer = &list->buffers[i];
        size_t n;
        if (!lmq_size_mul(buffer->n, buffer->width, &n) ||
            lmq_mem_grow(&work->owned, &work->owned_capacity,
                         work->n_owned + 1, sizeof(*work->owned)) != 0)
            return false;
        void *memory = lmq_mem_aligned(n == 0 ? 1 : n, buffer->size);
        if (memory == NULL)
            return false;
        work->owned[work->n_owned++] = memory;
        memcpy(buffer->at, &memory, sizeof(memory));
    }
    return true;
}

static double
count_bytes(const struct list *list)
{
    double sum = 0;

    for (size_t i = 0; i < list->n; i++)
        sum += (double)list->buffers[i].n * (double)list->buffers[i].width *
               (double)list->buffers[i].size;
    return sum;
}

/* ---- Members of the team ---- */

/* Weights that a token is multiplied with in a layer, on average: of experts
 * only those that it goes to. */
static double
weights_per_layer(const struct lmq_model *model)
{
    double sum = 0;

    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        const struct lmq_layer *layer = &model->layers[i];
        for (size_t j = 0; j < layer->n_matrices; j++) {
            const struct lmq_matrix *matrix = layer->matrices[j];
            sum += lmq_matrix_share(model, matrix) * (double)matrix->n_rows *
                   (double)matrix->n_cols;
        }
    }
    return sum / model->hparams.n_layers;
}

size_t
lmq_work_members(const struct lmq_work *work, double weights, size_t n)
{
    size_t most = (size_t)work->n_threads;
    double members = weights * (double)lmq_weight_cost(n) / MEMBER_COST;

    if (work->takes_all || members >= (double)most)
        return most;
    return members < 1 ? 1 : (size_t)members;
}

static struct lmq_work
plan(const struct lmq_model *model, size_t batch, size_t context, int threads)
{
    struct lmq_work work = {
        .batch = batch,
        .n_threads = lmq_threads(threads, MAX_THREADS),
        .takes_all = threads > 0,
        .layer_weights = weights_per_layer(model),
        .context = context,
        .routing = {.capacity = expert_rows(&model->hparams, batch)},
    };
    double head = (double)model->head.n_rows * (double)model->head.n_cols;
    size_t for_layer = lmq_work_members(&work, work.layer_weights, batch);
    size_t for_head = lmq_work_members(&work, head, 1);

    work.n_threads = (int)lmq_size_max(for_layer, for_head);
    return work;
}

/* ---- Making and freeing ---- */

/* Rows of experts are counted in 32 bits. */
enum lmq_status
lmq_work_check(const struct lmq_model *model, size_t batch, size_t context,
               struct lmq_error *err)
{
    const struct lmq_hparams *h = &model->hparams;
    uint32_t end = lmq_hparams_end(h);

    if (h->n_experts > 0 && batch > UINT32_MAX / h->n_experts_used)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "a batch of %zu tokens is too large", batch);
    if (context <= end)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "a context of %zu positions is too large: %s %u positions",
             context, lmq_hparams_why_end(h), end);
    lmq_hint(err, "a smaller context (.context) works");
    return LMQ_ERR_ARG;
}

/* What positions mean, as far as it does not depend on the tokens. */
static void
prepare_positions(struct lmq_work *work, const struct lmq_hparams *h)
{
    const bool is_coarse = h->positions == LMQ_POSITIONS_ALIBI_SCALED;

    if (work->slopes != NULL) {
        lmq_alibi_slopes(h->n_heads, work->slopes);
        for (size_t i = 0; i < h->n_heads && is_coarse; i++)
            work->slopes[i] = lmq_alibi_coarse(work->slopes[i]);
    }
    memcpy(&work->positions_of, h, sizeof(*h));
    if (h->positions != LMQ_POSITIONS_ROTARY)
        return;
    work->is_long = lmq_rope_is_long(h, work->length);
    lmq_rope_frequencies(h, LMQ_ROPE_GLOBAL, work->is_long,
                         work->angles[LMQ_ROPE_GLOBAL].frequencies);
    if (h->rope_local_theta != 0)
        lmq_rope_frequencies(h, LMQ_ROPE_LOCAL, work->is_long,
                             work->angles[LMQ_ROPE_LOCAL].frequencies);
}

enum lmq_status
lmq_work_init(struct lmq_work *work, const struct lmq_model *model,
              size_t batch, size_t context, enum lmq_activations activations,
              int threads, struct lmq_error *err)
{
    const struct lmq_hparams *h = &model->hparams;
    enum lmq_status status = lmq_work_check(model, batch, context, err);
    struct list list = {0};

    *work = (struct lmq_work){0};
    if (status != LMQ_OK)
        return status;
    *work = plan(model, batch, context, threads);
    work->activations = activations;
    work->n_sequences = 1;
    work->n_disk_waits = -1;
    list_buffers(&list, work, model);
    work->threads = calloc((size_t)work->n_threads, sizeof(*work->threads));
    work->team = lmq_team_new(work->n_threads);
    bool is_complete = work->threads != NULL && work->team != NULL &&
                       allocate(work, &list);
    for (int i = 0; i < work->n_threads && is_complete; i++) {
        list.n = 0;
        list_thread(&list, &work->threads[i], model, context);
        is_complete = allocate(work, &list);
    }
    if (!is_complete) {
        lmq_work_free(work);
        return lmq_fail_nomem(err);
    }
    prepare_positions(work, h);
    return LMQ_OK;
}

/* What prepare_positions() looks at. Padding may make equal ones look
 * different; that costs time and nothing else. */
static bool
have_same_positions(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    const size_t from = offsetof(struct lmq_hparams, positions);
    const size_t to = offsetof(struct lmq_hparams, rope_short);
    const size_t factors = a->n_rope_factors * sizeof(a->rope_short[0]);

    return lmq_hparams_attn_scale(a) == lmq_hparams_attn_scale(b) &&
           a->full_attn_scale == b->full_attn_scale &&
           lmq_hparams_far_rotary_dim(a) == lmq_hparams_far_rotary_dim(b) &&
           memcmp((const char *)a + from, (const char *)b + from,
                  to - from) == 0 &&
           memcmp(a->rope_short, b->rope_short, factors) == 0 &&
           memcmp(a->rope_long, b->rope_long, factors) == 0;
}

void
lmq_work_free(struct lmq_work *work)
{
    lmq_team_free(work->team);
    for (size_t i = 0; i < work->n_owned; i++)
        lmq_mem_free(work->owned[i]);
    free((void *)work->owned);
    free(work->threads);
    *work = (struct lmq_work){0};
}

void
lmq_work_set_positions(struct lmq_work *work,
                       const struct lmq_hparams *hparams, size_t n,
                       size_t position)
{
    /* Models that are compared may differ just in that. */
    if (!have_same_positions(hparams, &work->positions_of) ||
        lmq_rope_is_long(hparams, work->length) != work->is_long) {
        prepare_positions(work, hparams);
        work->n_angles = 0;
    }
    if (lmq_hparams_rotary_dim(hparams) == 0 ||
        (work->angles_at == position && n <= work->n_angles))
        return;
    for (int i = 0; i < LMQ_ROPE_KINDS; i++) {
        const struct lmq_angles *angles = &work->angles[i];
        size_t half = lmq_rope_dim(hparams, (enum lmq_rope_kind)i) / 2;
        if (i != LMQ_ROPE_GLOBAL && hparams->rope_local_theta == 0)
            continue;
        for (size_t t = 0; t < n; t++)
            lmq_rope_angles(hparams, (enum lmq_rope_kind)i,
                            angles->frequencies, (uint32_t)(position + t),
                            angles->cosines + t * half,
                            angles->sines + t * half);
    }
    work->angles_at = position;
    work->n_angles = n;
}

double
lmq_work_bytes(const struct lmq_model *model, size_t batch, size_t context,
               int threads)
{
    struct lmq_work work = plan(model, batch, context, threads);
    struct lmq_thread_work thread;
    struct list list = {0}, each = {0};

    list_buffers(&list, &work, model);
    list_thread(&each, &thread, model, context);
    return count_bytes(&list) + work.n_threads * count_bytes(&each);
}
