/*
 * attention.c - softmax(q k^T * scale + mask) v, in blocks of positions, with
 * a running softmax as in FlashAttention:
 *
 *   for each block of keys K and values V:
 *       s = scale * q K^T                     (queries, block)
 *       m' = max(m, max(s)); f = exp(m - m')  (queries)
 *       sum = f * sum + sum of exp(s - m')    (queries)
 *       out = f * out + exp(s - m') V         (queries, value_dim)
 *   out *= c / sum
 *
 * Blocks begin at multiples of their size, whatever the batch, and what a
 * query may not see has weight exactly 0, or is left out where it is a whole
 * block: so a token's result does not depend on which tokens are evaluated with
 * it.
 */
#include "config.h"

#include "runtime/layer/attention.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/size.h"
#include "base/threads/cpu.h"

/* Queries of some tokens of a sequence and of heads that share their keys: the
 * unit that is shared out, so that a block of keys is read once for all of
 * them. */
struct item {
    struct lmq_rows keys, values; /* [key head][position]: of the first head */
    bool is_of_pools;       /* a key stands for so many positions */
    size_t kv_head;
    size_t head, n_heads;   /* of the group */
    size_t token, n_tokens; /* of the batch */
    size_t position;        /* of the first of them */
    size_t n;               /* queries: n_tokens * n_heads */
    float max[LMQ_ATTENTION_QUERIES]; /* m: of the scores so far */
    float sum[LMQ_ATTENTION_QUERIES]; /* of exp(s - m) so far */
};

static size_t
position_of(const struct item *item, size_t query)
{
    return item->position + query / item->n_heads;
}

/* The mask: the positions [first, end) that the query's token sees, or pools,
 * whose last position is no later. */
static void
visible(const struct lmq_heads *heads, const struct item *item, size_t query,
        size_t *first, size_t *end)
{
    size_t window = heads->window, chunk = heads->chunk;
    size_t last = position_of(item, query);

    *end = last + 1;
    if (item->is_of_pools) {
        *first = 0;
        *end /= heads->pool;
        return;
    }
    *first = window > 0 && last >= window ? last - window + 1 : 0;
    if (chunk > 0)
        *first = lmq_size_max(*first, last - last % chunk);
}

static size_t
head_of(const struct lmq_heads *heads, const struct item *item, size_t query)
{
    size_t group = heads->n_heads / heads->n_kv_heads;

    return item->kv_head * group + item->head + query % item->n_heads;
}

/* Row of a query in (n, n_heads, dim). */
static size_t
query_row(const struct lmq_heads *heads, const struct item *item, size_t query)
{
    return (item->token + query / item->n_heads) * heads->n_heads +
           head_of(heads, item, query);
}

/* What the scores of a query at the position are multiplied with: it may grow,
 * step by step, or as its head says, so that among many keys the best still
 * stand out. */
static float
score_scale(const struct lmq_member *member, const struct lmq_heads *heads,
            size_t position, size_t head)
{
    const struct lmq_hparams *h = member->h;
    double scale = (double)heads->scale;

    if (heads->growth > 0) {
        size_t step =
            (position + h->score_growth_shift) / h->score_growth_period;
        scale *= 1 + heads->growth * lmq_log(1 + (double)step);
    }
    if (heads->head_growth != NULL)
        scale *= (double)heads->head_growth[head] *
                     lmq_log(1 + (double)position) +
                 (double)heads->head_scales[head];
    return (float)scale;
}

/* The item's queries side by side, scaled: q * scale (item->n, dim); and the
 * softmax begins. A sink is a score whose value is nothing: it takes part in
 * m and the sum alone. */
static void
gather_queries(const struct lmq_member *member, const struct lmq_heads *heads,
               struct item *item)
{
    size_t dim = item->keys.n_cols;

    for (size_t i = 0; i < item->n; i++) {
        float *query = member->own->queries + i * dim;
        memcpy(query, heads->queries + query_row(heads, item, i) * dim,
               dim * sizeof(*query));
        lmq_member_turn(member, query); /* as keys are */
        member->kernels->scale(
            query, dim,
            score_scale(member, heads, position_of(item, i),
                        head_of(heads, item, i)));
        item->max[i] = -INFINITY;
        item->sum[i] = 0;
        if (heads->sinks != NULL) { /* m = sink, exp(sink - m) = 1 */
            item->max[i] = heads->sinks[head_of(heads, item, i)];
            item->sum[i] = 1;
        }
    }
}

static float
coarse_place(float slope, size_t position)
{
    return lmq_alibi_coarse(slope * lmq_alibi_coarse((float)position));
}

/* s = softcap(s) - slope * distance: n scores of positions from `first` on,
 * for a token at position `last`. Where that is coarse, it is the difference of
 * what both positions have. */
static void
adjust_scores(const struct lmq_member *member, const struct lmq_heads *heads,
             size_t head, float *scores, size_t n, size_t first, size_t last)
{
    if (heads->softcap > 0)
        member->kernels->softcap(scores, n, heads->softcap);
    if (heads->slopes == NULL)
        return;
    float slope = heads->slopes[head];
    if (!heads->is_coarse)
        for (size_t i = 0; i < n; i++)
            scores[i] -= slope * (float)(last - first - i);
    else
        for (size_t i = 0; i < n; i++)
            scores[i] -= heads->scale * (coarse_place(slope, last) -
                                         coarse_place(slope, first + i));
}

/* The kernel wants whole vectors of scores. */
#define VECTOR ((size_t)16)
_Static_assert(LMQ_ATTENTION_BLOCK % VECTOR == 0 &&
                   LMQ_ATTENTION_BLOCK % LMQ_TURNED_ROWS == 0,
               "there is room for them");

/* Scores outside of [from, to) are masked, with weight exactly 0. */
static void
mask(float *scores, size_t from, size_t to, size_t end)
{
    for (size_t i = 0; i < from; i++)
        scores[i] = -INFINITY;
    for (size_t i = to; i < end; i++)
        scores[i] = -INFINITY;
}

/* Bits of what was chosen for the query's token, from a block on, which begins
 * with a byte; NULL: all is seen. */
static const unsigned char *
choice_of(const struct lmq_heads *heads, const struct item *item, size_t query,
          size_t block)
{
    size_t token = item->token + query / item->n_heads;

    return heads->chosen == NULL || item->is_of_pools != (heads->pool > 0)
               ? NULL
               : heads->chosen + token * heads->chosen_stride + block / 8;
}

_Static_assert(LMQ_ATTENTION_BLOCK % 8 == 0, "blocks begin with a byte");

/* Perhaps only what was chosen for the token, of which the scores [begin, end)
 * are. */
static void
mask_unchosen(const struct lmq_heads *heads, const struct item *item,
              size_t query, size_t block, size_t begin, size_t end,
              float *scores)
{
    const unsigned char *chosen = choice_of(heads, item, query, block);

    for (size_t i = begin; i < end && chosen != NULL; i++)
        if ((chosen[i / 8] >> i % 8 & 1) == 0)
            scores[i] = -INFINITY;
}

/* The running softmax of queries [from, to) over a block of n positions:
 * scores (to - from, block) become exp(s - m), and what came of earlier blocks
 * is brought to the new m. */
static void
update_softmax(const struct lmq_member *member, const struct lmq_heads *heads,
               struct item *item, size_t block, size_t n, size_t from,
               size_t to)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_thread_work *own = member->own;
    const size_t whole = (n + VECTOR - 1) / VECTOR * VECTOR;
    const size_t dim = item->values.n_cols;
    float factor[LMQ_ATTENTION_STRIP];

    for (size_t i = from; i < to; i++) {
        float *scores = own->scores + (i - from) * LMQ_ATTENTION_BLOCK;
        size_t first, past;
        visible(heads, item, i, &first, &past);
        size_t begin = first > block ? first - block : 0;
        size_t end = lmq_size_min(n, past - block);
        adjust_scores(member, heads, head_of(heads, item, i), scores + begin,
                      end - begin, block + begin, position_of(item, i));
        mask_unchosen(heads, item, i, block, begin, end, scores);
        mask(scores, begin, end, whole);
    }
    kernels->soften(own->scores, LMQ_ATTENTION_BLOCK, whole, to - from,
                    item->max + from, item->sum + from, factor);
    for (size_t i = from; i < to; i++) /* out *= f */
        if (factor[i - from] != 1)
            kernels->scale(own->out + i * dim, dim, factor[i - from]);
}

/* Keys or values of one head from a position on. */
static struct lmq_rows
rows_from(const struct lmq_member *member, const struct lmq_rows *rows,
          size_t kv_head, size_t position)
{
    struct lmq_rows part = *rows;

    part.data = (const unsigned char *)rows->data +
                (kv_head * member->work->context + position) * rows->stride;
    return part;
}

/* So many queries read each number more often than it costs to widen it, or to
 * turn keys. */
#define WIDEN_QUERIES 16
#define TURN_QUERIES 32

/* n rows as floats, the same numbers, if they are read by many queries; `wide`
 * has room for them. */
static struct lmq_rows
rows_for(const struct lmq_member *member, const struct item *item,
         struct lmq_rows rows, size_t n, float *wide)
{
    if (rows.type == LMQ_ROW_F32 || item->n < WIDEN_QUERIES)
        return rows;
    for (size_t i = 0; i < n; i++)
        member->kernels->row_widen((const unsigned char *)rows.data +
                                       i * rows.stride,
                                   rows.type, rows.n_cols,
                                   wide + i * rows.n_cols);
    return (struct lmq_rows){.data = wide,
                             .type = LMQ_ROW_F32,
                             .n_cols = rows.n_cols,
                             .stride = rows.n_cols * sizeof(float)};
}

/* Some positions, as all queries of an item read them. */
struct block {
    size_t first, n;
    struct lmq_rows keys, values;
    const float *turned; /* the keys; or NULL */
};

static struct block
block_at(const struct lmq_member *member, const struct item *item,
         size_t first, size_t n)
{
    const struct lmq_thread_work *own = member->own;
    struct block block = {.first = first, .n = n};

    block.keys = rows_from(member, &item->keys, item->kv_head, first);
    block.values = rows_for(
        member, item, rows_from(member, &item->values, item->kv_head, first),
        n, own->values);
    if (item->n >= TURN_QUERIES && block.keys.n_cols % VECTOR == 0) {
        member->kernels->rows_turn(&block.keys, n, own->keys);
        block.turned = own->keys;
    } else {
        block.keys = rows_for(member, item, block.keys, n, own->keys);
    }
    return block;
}

/* The queries [from, to) that would see some of n positions from `block` on if
 * nothing was chosen: masks move with the token, so they are neighbours. */
static void
queries_of(const struct lmq_heads *heads, const struct item *item,
           size_t block, size_t n, size_t *from, size_t *to)
{
    size_t first, end;

    *from = 0;
    *to = item->n;
    for (; *from < *to; ++*from) {
        visible(heads, item, *from, &first, &end);
        if (end > block)
            break;
    }
    for (; *to > *from; --*to) {
        visible(heads, item, *to - 1, &first, &end);
        if (first < block + n)
            break;
    }
}

/* Whether one of these sees any of it: bits behind what a token sees are 0. */
static bool
sees_any(const struct lmq_heads *heads, const struct item *item, size_t query,
         size_t block, size_t n)
{
    const unsigned char *chosen = choice_of(heads, item, query, block);
    size_t first, end;

    if (chosen == NULL)
        return true;
    visible(heads, item, query, &first, &end);
    n = lmq_size_min(n, end - block);
    for (size_t i = 0; i < (n + 7) / 8; i++)
        if (chosen[i] != 0)
            return true;
    return false;
}

/* The next neighbours [from, end) that see some, at most a strip; false: there
 * are none before `to`. Of a block that a query sees nothing of it does not
 * hear, whatever its neighbours see: there would be no largest score. */
static bool
next_strip(const struct lmq_heads *heads, const struct item *item,
           size_t block, size_t n, size_t to, size_t *from, size_t *end)
{
    while (*from < to && !sees_any(heads, item, *from, block, n))
        ++*from;
    *end = *from;
    while (*end < to && *end - *from < LMQ_ATTENTION_STRIP &&
           sees_any(heads, item, *end, block, n))
        ++*end;
    return *from < *end;
}

/* One block for queries [from, to), which see some of it: out += softmax part
 * of it, relative to the running m. */
static void
attend_strip(const struct lmq_member *member, const struct lmq_heads *heads,
             struct item *item, const struct block *block, size_t from,
             size_t to)
{
    const struct lmq_kernels *kernels = member->kernels;
    struct lmq_thread_work *own = member->own;
    const size_t key_dim = block->keys.n_cols, dim = block->values.n_cols;
    const float *queries = own->queries + from * key_dim;
    size_t first, end;

    visible(heads, item, to - 1, &first, &end);
    const size_t n = lmq_size_min(block->n, end - block->first);

    /* s (queries, n) = q K^T */
    if (block->turned != NULL)
        kernels->turned_product(block->turned, n, key_dim, lmq_cpu_halves(),
                                queries, key_dim, to - from, own->scores,
                                LMQ_ATTENTION_BLOCK);
    else
        kernels->rows_product(&block->keys, 0, n, queries, key_dim, to - from,
                              own->scores, LMQ_ATTENTION_BLOCK, own->scratch);
    update_softmax(member, heads, item, block->first, n, from, to);
    /* out (queries, dim) += s V */
    kernels->rows_mix(&block->values, 0, n, own->scores, LMQ_ATTENTION_BLOCK,
                      to - from, own->out + from * dim, dim);
}

static void
attend_block(const struct lmq_member *member, const struct lmq_heads *heads,
             struct item *item, size_t first, size_t n)
{
    size_t from, end, to;

    queries_of(heads, item, first, n, &from, &to);
    if (!next_strip(heads, item, first, n, to, &from, &end))
        return;
    const struct block block = block_at(member, item, first, n);
    do {
        attend_strip(member, heads, item, &block, from, end);
        from = end;
    } while (next_strip(heads, item, first, n, to, &from, &end));
}

/* Blocks that none of the item's tokens sees are left out: they would add
 * weights of 0. */
static void
attend_blocks(const struct lmq_member *member, const struct lmq_heads *heads,
              struct item *item)
{
    size_t first, end, unused;

    visible(heads, item, 0, &first, &unused);
    visible(heads, item, item->n - 1, &unused, &end);
    first -= first % LMQ_ATTENTION_BLOCK;
    for (size_t block = first; block < end; block += LMQ_ATTENTION_BLOCK)
        attend_block(member, heads, item, block,
                     lmq_size_min(LMQ_ATTENTION_BLOCK, end - block));
}

/* out = softmax(q k^T) v of one item: of the positions, which each token sees
 * some of, and then of pools. */
static void
attend(const struct lmq_member *member, const struct lmq_heads *heads,
       struct item *item)
{
    struct lmq_thread_work *own = member->own;
    size_t dim = item->values.n_cols;

    gather_queries(member, heads, item);
    memset(own->out, 0, item->n * dim * sizeof(*own->out));
    attend_blocks(member, heads, item);
    if (heads->pool > 0) {
        item->keys = item->values = lmq_member_pools(member, item->token);
        item->is_of_pools = true;
        attend_blocks(member, heads, item);
    }
    for (size_t i = 0; i < item->n; i++) {
        /* out *= c / sum */
        member->kernels->scale(own->out + i * dim, dim,
                               heads->value_scale / item->sum[i]);
        memcpy(heads->out + query_row(heads, item, i) * dim,
               own->out + i * dim, dim * sizeof(float));
    }
}

/* Queries of an item at most: of wide heads fewer, so that they stay near. */
static size_t
queries_at_a_time(size_t key_dim)
{
    const size_t near = ((size_t)1 << 15) / key_dim;

    return lmq_size_min(lmq_size_max(near, LMQ_ATTENTION_STRIP),
                        LMQ_ATTENTION_QUERIES);
}

/* Heads of a group that are worked on together: as many as there is room
 * for, but with few tokens and few key heads so few that every thread has
 * work. */
static size_t
heads_at_a_time(const struct lmq_member *member, const struct lmq_heads *heads,
                size_t most)
{
    size_t group = heads->n_heads / heads->n_kv_heads;
    size_t n = lmq_size_min(group, most);

    if (member->n * heads->n_kv_heads >= member->n_members)
        return n;
    size_t share = member->n * heads->n_heads / member->n_members;
    return share == 0 ? 1 : lmq_size_min(n, share);
}

static size_t
divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* Pieces that each sequence is cut into, of `most` tokens: more if threads had
 * less than ITEMS_OF_EACH items, but then of a strip, or even less if some
 * thread had none; and so many that all have as many of them. n: items of a
 * piece of each. */
#define ITEMS_OF_EACH 2

static size_t
pieces_of_each(const struct lmq_member *member, size_t n, size_t most,
               size_t strip)
{
    size_t length = lmq_member_length(member), n_members = member->n_members;
    size_t many = divide_up(ITEMS_OF_EACH * n_members, n);
    size_t pieces =
        lmq_size_max(divide_up(length, most),
                     lmq_size_min(many, divide_up(length, strip)));

    pieces = lmq_size_max(pieces, divide_up(n_members, n));
    for (size_t i = 1; i < n_members && pieces * n % n_members != 0; i++)
        pieces++;
    return lmq_size_min(pieces, length);
}

/* Which item is a member's i-th: forth and back, as later tokens see more. */
static size_t
item_of(const struct lmq_member *member, size_t i)
{
    size_t n = member->n_members, number = member->number;

    return i * n + (i % 2 == 0 ? number : n - 1 - number);
}

void
lmq_attention(const struct lmq_member *member, const struct lmq_heads *heads)
{
    const struct lmq_work *work = member->work;
    size_t group = heads->n_heads / heads->n_kv_heads;
    size_t most = queries_at_a_time(lmq_member_keys(member, 0).n_cols);
    size_t n_heads = heads_at_a_time(member, heads, most);
    size_t n_splits = divide_up(group, n_heads);
    size_t length = lmq_member_length(member);
    size_t tokens = divide_up(
        length,
        pieces_of_each(member,
                       heads->n_kv_heads * n_splits * work->n_sequences,
                       most / n_heads,
                       lmq_size_max(LMQ_ATTENTION_STRIP / n_heads, 1)));
    size_t of_each = divide_up(length, tokens);
    size_t n_blocks = work->n_sequences * of_each;
    size_t n_items = heads->n_kv_heads * n_splits * n_blocks;

    for (size_t turn = 0, i; (i = item_of(member, turn)) < n_items; turn++) {
        size_t sequence = i % n_blocks / of_each;
        size_t step = i % of_each * tokens;
        struct item item = {.kv_head = i / n_blocks / n_splits,
                            .head = i / n_blocks % n_splits * n_heads,
                            .token = sequence * length + step,
                            .position = member->position + step};
        item.keys = lmq_member_keys(member, item.token);
        item.values = lmq_member_values(member, item.token);
        item.n_heads = lmq_size_min(n_heads, group - item.head);
        item.n_tokens = lmq_size_min(tokens, length - step);
        item.n = item.n_tokens * item.n_heads;
        attend(member, heads, &item);
    }
}

struct lmq_heads
lmq_heads_of(const struct lmq_member *member)
{
    const struct lmq_hparams *h = member->h;
    bool grows = !h->score_growth_still ||
                 lmq_layer_is(h, member->index, LMQ_LAYER_NOPE);

    return (struct lmq_heads){
        .n_heads = lmq_layer_heads(h, member->index),
        .n_kv_heads = lmq_cached_heads(h, member->index),
        .window = lmq_layer_window(h, member->index),
        .chunk = lmq_layer_chunk(h, member->index),
        .scale = lmq_layer_attn_scale(h, member->index),
        .growth = grows ? h->score_growth : 0,
        .head_growth = member->layer->attention.growth.weight,
        .head_scales = member->layer->attention.growth.bias,
        .softcap = (float)h->attn_softcap,
        .slopes = member->work->slopes,
        .is_coarse = h->positions == LMQ_POSITIONS_ALIBI_SCALED,
        .sinks = lmq_layer_has_sinks(h, member->index)
                     ? member->layer->attention.sinks
                     : NULL,
        .value_scale = (float)h->value_scale,
        .pool = lmq_layer_pool(h, member->index),
    };
}
