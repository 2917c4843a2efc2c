/*
 * apart.c - puts together what we have in one but files may have apart:
 * convolutions of queries, of keys, of values; and whatever tables.c has.
 *
 * Nothing is read: a tensor that is joined knows its parts, and whoever reads
 * it gets rows of each (elements.c).
 */
#include "config.h"

#include "formats/checkpoint/apart.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

/* ---- A tensor of several ---- */

static unsigned
gcd(unsigned a, unsigned b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* What holds for all rows: groups that all of them have, bits and a type that
 * say all of their numbers. */
static void
agree(struct lmq_tensor *whole, const struct lmq_tensor *part)
{
    unsigned group = part->quant.group_size;

    whole->quant.group_size =
        whole->quant.group_size == 0 || group == 0
            ? 0
            : gcd(whole->quant.group_size, group);
    if (part->quant.bits > whole->quant.bits)
        whole->quant.bits = part->quant.bits;
    if (part->quant.rotation > whole->quant.rotation)
        whole->quant.rotation = part->quant.rotation;
    if (part->dtype != whole->dtype) {
        whole->dtype = LMQ_DTYPE_F32;
        whole->encoding = NULL;
    }
    if (part->blocks != whole->blocks)
        whole->blocks = NULL;
    whole->size_bytes += part->size_bytes;
}

void
lmq_tensor_join(struct lmq_tensor *whole, const struct lmq_joined *joined,
                enum lmq_role role)
{
    uint64_t dims[2] = {0, whole->n_cols};

    for (size_t i = 0; i < joined->n; i++)
        dims[0] += joined->rows[i].n;
    whole->place = joined->parts[0]->place;
    whole->place.role = role;
    whole->view = (struct lmq_view){0};
    whole->packing = NULL;
    whole->joined = joined;
    lmq_tensor_set_dims(whole, dims, whole->n_dims);
    for (size_t i = 1; i < joined->n; i++)
        agree(whole, joined->parts[i]);
}

const struct lmq_tensor *
lmq_tensor_part(const struct lmq_tensor *tensor, uint64_t *element)
{
    uint64_t n_cols = tensor->n_dims == 1 ? 1 : tensor->n_cols, row, n;

    while (tensor->joined != NULL) {
        tensor = lmq_joined_find(tensor->joined, *element / n_cols, &row, &n);
        *element = row * n_cols + *element % n_cols;
    }
    return tensor;
}

/* ---- Convolutions ---- */

/* `at`: where each part stands among the tensors, counted from 1; 0: it is not
 * there. Together they are all channels, wherever these are cut: the library
 * saves three parts of one size. */
static enum lmq_status
check_parts(const struct lmq_checkpoint *checkpoint, size_t layer,
            struct lmq_joined *joined, const size_t *at, struct lmq_error *err)
{
    uint32_t width = checkpoint->hparams.conv_width;
    uint64_t wanted = lmq_delta_channels(&checkpoint->hparams), n_rows = 0;

    for (size_t i = 0; i < joined->n; i++) {
        const struct lmq_place place = {joined->rows[i].role, LMQ_PART_WEIGHT,
                                        (int32_t)layer, -1};
        char name[64];
        lmq_name_canonical(&place, name, sizeof(name));
        if (at[i] == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "lacks the tensor %s (layers count from 0)", name);
        const struct lmq_tensor *part = &checkpoint->tensors[at[i] - 1];
        joined->rows[i].first = n_rows;
        joined->rows[i].n = part->n_rows;
        if (part->n_dims != 2 || part->n_cols != width ||
            part->n_rows > wanted - n_rows ||
            (i + 1 == joined->n && part->n_rows < wanted - n_rows))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' is %" PRIu64 " x %" PRIu64
                            ", but the configuration says %" PRIu64 " x %u "
                            "of it and those like it",
                            part->stored_name, part->n_rows, part->n_cols,
                            wanted, width);
        n_rows += part->n_rows;
    }
    return LMQ_OK;
}

/* In place of its first part; the others go. */
static enum lmq_status
join_apart(struct lmq_checkpoint *checkpoint, const struct lmq_joined *joined,
           struct lmq_tensor *const *tensors, enum lmq_role role,
           struct lmq_error *err)
{
    struct lmq_apart *apart = calloc(1, sizeof(*apart));

    if (apart == NULL ||
        lmq_mem_grow(&checkpoint->aparts, &checkpoint->aparts_capacity,
                     checkpoint->n_aparts + 1,
                     sizeof(struct lmq_apart *)) != 0) {
        free(apart);
        return lmq_fail_nomem(err);
    }
    checkpoint->aparts[checkpoint->n_aparts++] = apart;
    apart->joined = *joined;
    for (size_t i = 0; i < joined->n; i++) {
        apart->parts[i] = *tensors[i];
        apart->joined.parts[i] = &apart->parts[i];
        if (i > 0)
            *tensors[i] = (struct lmq_tensor){0};
    }
    lmq_tensor_join(tensors[0], &apart->joined, role);
    tensors[0]->quant = (struct lmq_quant){0}; /* floats alone are read so */
    return LMQ_OK;
}

enum lmq_status
lmq_checkpoint_put_together(struct lmq_checkpoint *checkpoint,
                            struct lmq_tensor *const *tensors, size_t n,
                            enum lmq_role role, struct lmq_error *err)
{
    struct lmq_joined joined = {.n = n};
    uint64_t first = 0;

    for (size_t i = 0; i < n; i++) {
        joined.rows[i].role = role;
        joined.rows[i].first = first;
        joined.rows[i].n = tensors[i]->n_rows;
        first += tensors[i]->n_rows;
    }
    return join_apart(checkpoint, &joined, tensors, role, err);
}

/* Where the convolutions of each layer stand, as join_apart() wants it. */
static enum lmq_status
find_parts(const struct lmq_checkpoint *checkpoint, size_t *at,
           struct lmq_error *err)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_place *place = &checkpoint->tensors[i].place;
        if (place->role == LMQ_ROLE_DELTA_CONV ||
            !lmq_role_is_convolution(place->role) ||
            place->part != LMQ_PART_WEIGHT ||
            place->layer >= (int32_t)checkpoint->hparams.n_layers)
            continue;
        size_t *mine = &at[3 * (size_t)place->layer +
                           (place->role - LMQ_ROLE_DELTA_CONV_Q)];
        if (*mine != 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensors '%s' and '%s' are the same",
                            checkpoint->tensors[*mine - 1].stored_name,
                            checkpoint->tensors[i].stored_name);
        *mine = i + 1;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_checkpoint_join(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    size_t *parts = calloc((size_t)h->n_layers * 3 + 1, sizeof(*parts));
    size_t kept = 0;

    if (parts == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = find_parts(checkpoint, parts, err);
    for (size_t i = 0; i < h->n_layers && status == LMQ_OK; i++) {
        const size_t *at = parts + 3 * i;
        struct lmq_joined joined = {0};
        joined.n = lmq_fused_rows(h, i, LMQ_ROLE_DELTA_CONV,
                                  LMQ_QKV_ONE_BY_ONE, joined.rows);
        if (joined.n == 0 || at[0] + at[1] + at[2] == 0)
            continue;
        status = check_parts(checkpoint, i, &joined, at, err);
        struct lmq_tensor *tensors[LMQ_MOST_FUSED];
        for (size_t j = 0; j < joined.n && status == LMQ_OK; j++)
            tensors[j] = &checkpoint->tensors[at[j] - 1];
        if (status == LMQ_OK)
            status = join_apart(checkpoint, &joined, tensors,
                                LMQ_ROLE_DELTA_CONV, err);
    }
    free(parts);
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].stored_name != NULL)
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
    checkpoint->n_tensors = kept;
    return status;
}
