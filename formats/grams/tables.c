/*
 * tables.c - tables that sequences of tokens name rows of.
 *
 * Files have such a table in hundreds of parts, one below the other; a tensor
 * that is joined has few, which may be joined themselves. A table may have a
 * few rows more than anything names.
 */
#include "config.h"

#include "formats/grams/tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/checkpoint/apart.h"
#include "formats/grams/grams.h"

/* ---- Numbers ---- */

static const char *const endings[] = {".layer_multipliers",
                                      ".ngram_heads_vocab_sizes",
                                      ".ngram_heads_offsets"};

#define N_ENDINGS (sizeof(endings) / sizeof(endings[0]))

/* Which of them a name ends with; N_ENDINGS: none. */
static size_t
ending_of(const struct lmq_tensor *tensor)
{
    size_t length = strlen(tensor->stored_name), i = 0;

    for (; i < N_ENDINGS; i++) {
        size_t n = strlen(endings[i]);
        if (length > n &&
            strcmp(tensor->stored_name + length - n, endings[i]) == 0)
            break;
    }
    return i;
}

bool
lmq_tensor_is_of_grams(const struct lmq_tensor *tensor)
{
    return ending_of(tensor) < N_ENDINGS;
}

/* What the description says in place of the tensor; n numbers. */
static size_t
expected_numbers(const struct lmq_hparams *h, size_t layer, size_t ending,
                 uint64_t numbers[LMQ_MAX_GRAM_NUMBERS])
{
    const uint64_t *rows = lmq_layer_gram_rows(h, layer);
    size_t n = ending == 0 ? h->gram_size : lmq_gram_places(h);
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        numbers[i] = ending == 0   ? lmq_layer_gram_factors(h, layer)[i]
                     : ending == 1 ? rows[i]
                                   : sum;
        sum += ending == 0 ? 0 : rows[i];
    }
    return n;
}

static enum lmq_status
compare(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
        size_t ending, struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    int32_t layer = lmq_name_layer(tensor->stored_name);
    uint64_t expected[LMQ_MAX_GRAM_NUMBERS];
    float found[LMQ_MAX_GRAM_NUMBERS];
    unsigned char exact[8 * LMQ_MAX_GRAM_NUMBERS];
    bool is_exact = tensor->dtype == LMQ_DTYPE_I64; /* as no float is */
    struct lmq_scratch scratch = {0};

    if (layer < 0 || layer >= (int32_t)h->n_layers ||
        !lmq_layer_has_grams(h, (size_t)layer))
        return LMQ_OK;
    size_t n = expected_numbers(h, (size_t)layer, ending, expected);
    if (tensor->n_elements != n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s' has %" PRIu64 " numbers, but the "
                        "configuration says %zu",
                        tensor->stored_name, tensor->n_elements, n);
    enum lmq_status status =
        lmq_checkpoint_read(checkpoint, tensor, 0, n, found, &scratch, err);
    lmq_scratch_free(&scratch);
    if (status == LMQ_OK && is_exact)
        status = lmq_checkpoint_read_raw(checkpoint, tensor, 0, n, exact, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        uint64_t integer = is_exact ? lmq_load_u64le(exact + 8 * i) : 0;
        float wanted = (float)expected[i];
        if (is_exact ? integer == expected[i]
                     : found[i] >= wanted && found[i] <= wanted)
            continue;
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "number %zu of tensor '%s' is %.17g, but by the "
                        "configuration it is %" PRIu64,
                        i, tensor->stored_name,
                        is_exact ? (double)(int64_t)integer : (double)found[i],
                        expected[i]);
    }
    return status;
}

enum lmq_status
lmq_grams_compare(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    enum lmq_status status = lmq_grams_check(&checkpoint->hparams, err);

    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK &&
                       checkpoint->hparams.n_gram_factors > 0;
         i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        size_t ending = ending_of(tensor);
        if (ending < N_ENDINGS)
            status = compare(checkpoint, tensor, ending, err);
    }
    return status;
}

/* ---- Parts ---- */

static int
compare_parts(const void *a, const void *b)
{
    return lmq_place_compare(&(*(struct lmq_tensor *const *)a)->place,
                             &(*(struct lmq_tensor *const *)b)->place);
}

/* The parts of a layer's table in their order; n of them. */
static size_t
list_parts(const struct lmq_checkpoint *checkpoint, int32_t layer,
           struct lmq_tensor **parts)
{
    size_t n = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->stored_name != NULL && tensor->place.layer == layer &&
            tensor->place.role == LMQ_ROLE_GRAM_SHARD)
            parts[n++] = tensor;
    }
    if (n > 0)
        qsort(parts, n, sizeof(struct lmq_tensor *), compare_parts);
    return n;
}

/* All have the columns of the first, and there is one of each number. */
static enum lmq_status
check_parts(struct lmq_tensor *const *parts, size_t n, struct lmq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (parts[i]->place.item != (int32_t)i || parts[i]->n_dims != 2 ||
            parts[i]->n_cols != parts[0]->n_cols ||
            parts[i]->place.part != LMQ_PART_WEIGHT)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' is no part number %zu of %zu of a "
                            "table, all of %" PRIu64 " columns",
                            parts[i]->stored_name, i, n, parts[0]->n_cols);
    return LMQ_OK;
}

/* The first becomes all, a few at a time; and these then again. */
static enum lmq_status
join_parts(struct lmq_checkpoint *checkpoint, struct lmq_tensor **parts,
           size_t n, struct lmq_error *err)
{
    enum lmq_status status = check_parts(parts, n, err);

    while (n > 1 && status == LMQ_OK) {
        size_t n_left = 0;
        for (size_t at = 0; at < n && status == LMQ_OK; at += LMQ_MOST_FUSED) {
            size_t size = n - at < LMQ_MOST_FUSED ? n - at : LMQ_MOST_FUSED;
            if (size > 1)
                status = lmq_checkpoint_put_together(
                    checkpoint, parts + at, size, LMQ_ROLE_GRAM_SHARD, err);
            parts[n_left++] = parts[at];
        }
        n = n_left;
    }
    if (status == LMQ_OK && n > 0)
        parts[0]->place =
            (struct lmq_place){LMQ_ROLE_GRAM_TABLE, LMQ_PART_WEIGHT,
                               parts[0]->place.layer, -1};
    return status;
}

/* Rows that nothing names are left out, and a convolution of one channel for
 * each number is a matrix. */
static void
arrange_table(const struct lmq_hparams *h, struct lmq_tensor *tensor)
{
    const struct lmq_place *place = &tensor->place;
    uint64_t dims[2] = {tensor->dims[0], tensor->n_cols};

    if (place->layer < 0 || place->layer >= (int32_t)h->n_layers ||
        !lmq_layer_has_grams(h, (size_t)place->layer))
        return;
    if (place->role == LMQ_ROLE_GRAM_CONV && tensor->n_dims == 3 &&
        tensor->dims[1] == 1) {
        dims[1] = tensor->dims[2];
        lmq_tensor_set_dims(tensor, dims, 2);
    }
    if (place->role != LMQ_ROLE_GRAM_TABLE || tensor->n_dims != 2)
        return;
    dims[0] = lmq_layer_gram_table(h, (size_t)place->layer);
    if (dims[0] == 0 || dims[0] >= tensor->dims[0])
        return;
    tensor->size_bytes = tensor->size_bytes / tensor->dims[0] * dims[0];
    lmq_tensor_set_dims(tensor, dims, 2);
}

enum lmq_status
lmq_tables_join(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    struct lmq_tensor **parts =
        calloc(checkpoint->n_tensors + 1, sizeof(struct lmq_tensor *));
    enum lmq_status status = LMQ_OK;

    if (parts == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < h->n_layers && status == LMQ_OK; i++)
        if (lmq_layer_has_grams(h, i))
            status = join_parts(
                checkpoint, parts,
                list_parts(checkpoint, (int32_t)i, parts), err);
    free(parts);
    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        if (checkpoint->tensors[i].stored_name != NULL)
            arrange_table(h, &checkpoint->tensors[i]);
    return status;
}
