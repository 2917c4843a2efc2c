/*
 * joined.c - puts together what files have in one, for what is written.
 *
 * Nothing is read or moved: a joined tensor knows its parts, and a part its
 * view; whoever writes asks for rows as of any other tensor (elements.c).
 */
#include "config.h"

#include "formats/checkpoint/joined.h"

#include <stdlib.h>

#include "base/error.h"
#include "formats/checkpoint/apart.h"

/* ---- Parts ---- */

/* Pairs of columns, of what looks at heads whose values turn; rows are put in
 * pairs by who writes them. */
static void
turn_columns(const struct lmq_checkpoint *checkpoint,
             const struct lmq_source *as, struct lmq_tensor *tensor)
{
    struct lmq_rope_rows columns =
        lmq_rope_columns(&checkpoint->hparams, &tensor->place);
    struct lmq_rope_rows *pairs = &tensor->view.column_pairs;

    if (!as->has_rotary_pairs || columns.n == 0 || pairs->turns_back)
        return;
    columns.to_pairs = true;
    *pairs = pairs->n > 0 ? (struct lmq_rope_rows){0} : columns;
}

/* A source of the same arrangement has it already, and it is taken away. */
static void
turn(const struct lmq_checkpoint *checkpoint, const struct lmq_source *as,
     struct lmq_tensor *tensor, size_t *n_rounded)
{
    struct lmq_view *view = &tensor->view;
    struct lmq_shuffle rows = {0}, columns = {0};
    bool has_integers = tensor->quant.group_size > 0;

    if (as->has_tiled_values)
        lmq_tiled_values(&checkpoint->hparams, &tensor->place, &rows,
                         &columns);
    if (rows.inner > 0)
        view->rows = view->rows.inner > 0 ? (struct lmq_shuffle){0}
                                          : lmq_shuffle_inverse(&rows);
    if (columns.inner > 0)
        view->columns = view->columns.inner > 0
                            ? (struct lmq_shuffle){0}
                            : lmq_shuffle_inverse(&columns);
    turn_columns(checkpoint, as, tensor);
    lmq_tensor_scale(tensor, as, &checkpoint->hparams);
    if (as->has_decay_itself && tensor->place.role == LMQ_ROLE_DELTA_DECAY)
        view->map = view->map != LMQ_MAP_NONE ? LMQ_MAP_NONE
                    : as->has_decay_above     ? LMQ_MAP_EXP
                                              : LMQ_MAP_MINUS_EXP;
    lmq_tensor_settle_integers(tensor);
    *n_rounded += has_integers && tensor->quant.group_size == 0;
}

/* ---- Joining ---- */

/* In place of its first part; the others are left out. */
static void
join(struct lmq_arranged *arranged, const struct lmq_joined *joined,
     struct lmq_tensor *const *found, enum lmq_role role)
{
    struct lmq_joined *kept = &arranged->joined[arranged->n_joined++];

    *kept = *joined;
    for (size_t i = 0; i < joined->n; i++) {
        struct lmq_tensor *own = &arranged->tensors[
            arranged->checkpoint.n_tensors + LMQ_MOST_FUSED *
            (arranged->n_joined - 1) + i];
        *own = *found[i];
        kept->parts[i] = own;
        found[i]->place.role = LMQ_ROLE_OTHER;
    }
    lmq_tensor_join(found[0], kept, role);
}

/* The parts of one kind in one layer, if they are all there: matrices, or their
 * biases. */
static void
join_layer(struct lmq_arranged *arranged, size_t layer, enum lmq_role role,
           enum lmq_part which)
{
    struct lmq_joined joined = {0};
    struct lmq_tensor *found[LMQ_MOST_FUSED];

    joined.n = lmq_fused_rows(&arranged->checkpoint.hparams, layer, role,
                              LMQ_QKV_ONE_BY_ONE, joined.rows);
    for (size_t i = 0; i < joined.n; i++) {
        const struct lmq_tensor *part = lmq_checkpoint_find(
            &arranged->checkpoint, joined.rows[i].role, which,
            (int32_t)layer);
        if (part == NULL)
            return;
        found[i] = &arranged->tensors[part - arranged->checkpoint.tensors];
    }
    if (joined.n > 0)
        join(arranged, &joined, found, role);
}

static void
join_all(struct lmq_arranged *arranged, unsigned joins)
{
    static const struct {
        unsigned bit;
        enum lmq_role role;
        bool is_delta;
    } kinds[] = {
        {LMQ_JOINS_QKV, LMQ_ROLE_ATTN_QKV, true},
        {LMQ_JOINS_QKVZ, LMQ_ROLE_DELTA_QKVZ, true},
        {LMQ_JOINS_BA, LMQ_ROLE_DELTA_BA, true},
        {LMQ_JOINS_Q_GATE, LMQ_ROLE_ATTN_Q, false},
    };
    const struct lmq_hparams *h = &arranged->checkpoint.hparams;

    for (size_t layer = 0; layer < h->n_layers; layer++)
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
            if ((joins & kinds[i].bit) != 0 &&
                lmq_layer_is(h, layer, LMQ_LAYER_DELTA) == kinds[i].is_delta)
                for (int part = 0; part < LMQ_PART_COUNT; part++)
                    join_layer(arranged, layer, kinds[i].role,
                               (enum lmq_part)part);
}

/* ---- Taking apart ---- */

/* The convolutions of delta rules, in place of the first part and behind all
 * others. */
static size_t
take_apart(struct lmq_arranged *arranged, size_t n)
{
    const struct lmq_hparams *h = &arranged->checkpoint.hparams;
    struct lmq_fused_rows rows[LMQ_MOST_FUSED];
    size_t n_all = n;

    for (size_t i = 0; i < n; i++) {
        const struct lmq_tensor whole = arranged->tensors[i];
        size_t n_rows = whole.place.role == LMQ_ROLE_DELTA_CONV &&
                                whole.place.part == LMQ_PART_WEIGHT
                            ? lmq_fused_rows(h, (size_t)whole.place.layer,
                                             LMQ_ROLE_DELTA_CONV,
                                             LMQ_QKV_ONE_BY_ONE, rows)
                            : 0;
        for (size_t j = 0; j < n_rows; j++) {
            struct lmq_tensor *part =
                &arranged->tensors[j == 0 ? i : n_all++];
            uint64_t dims[2] = {rows[j].n, whole.n_cols};
            *part = whole;
            part->place.role = rows[j].role;
            part->view.first += rows[j].first;
            lmq_tensor_set_dims(part, dims, 2);
        }
    }
    return n_all;
}

/* ---- All of it ---- */

/* Without a joined tensor there is nothing to sort: all keep their places. */
enum lmq_status
lmq_arrange(const struct lmq_checkpoint *checkpoint, unsigned joins,
            const struct lmq_source *as, struct lmq_arranged *arranged,
            struct lmq_error *err)
{
    size_t n = checkpoint->n_tensors, kept = 0;
    size_t two = 2 * (size_t)checkpoint->hparams.n_layers;
    size_t most = joins == 0 || joins == LMQ_JOINS_NO_CONV ? 0 : two;

    *arranged = (struct lmq_arranged){.checkpoint = *checkpoint};
    arranged->joined = calloc(most + 1, sizeof(*arranged->joined));
    arranged->tensors = calloc(n + LMQ_MOST_FUSED * most + two + 1,
                               sizeof(*arranged->tensors));
    if (arranged->joined == NULL || arranged->tensors == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        arranged->tensors[i] = checkpoint->tensors[i];
        turn(checkpoint, as, &arranged->tensors[i], &arranged->n_rounded);
    }
    if (joins == LMQ_JOINS_NO_CONV)
        n = take_apart(arranged, n);
    else if (joins != 0)
        join_all(arranged, joins);
    arranged->checkpoint.tensors = arranged->tensors;
    for (size_t i = 0; i < n; i++)
        if (arranged->n_joined == 0 || arranged->tensors[i].joined != NULL ||
            checkpoint->tensors[i].place.role == LMQ_ROLE_OTHER ||
            arranged->tensors[i].place.role != LMQ_ROLE_OTHER)
            arranged->tensors[kept++] = arranged->tensors[i];
    arranged->checkpoint.n_tensors = kept;
    if (kept != checkpoint->n_tensors)
        qsort(arranged->tensors, kept, sizeof(*arranged->tensors),
              lmq_tensor_compare);
    return LMQ_OK;
}

void
lmq_arranged_free(struct lmq_arranged *arranged)
{
    free(arranged->tensors);
    free(arranged->joined);
    *arranged = (struct lmq_arranged){0};
}
