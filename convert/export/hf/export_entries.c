/*
 * export_entries.c - the tensors of a folder, and in which file each stands.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "convert/export/hf/export_safetensors.h"

/* All are open at once. */
#define MOST_SHARDS 500

/* ---- Experts ---- */

/* In place of all behind ".experts" in the name of one of them. */
static const char *
stack_name(enum lmq_role role)
{
    switch (role) {
    case LMQ_ROLE_FFN_GATE:
        return ".switch_mlp.gate_proj.";
    case LMQ_ROLE_FFN_UP:
        return ".switch_mlp.up_proj.";
    case LMQ_ROLE_FFN_DOWN:
        return ".switch_mlp.down_proj.";
    default:
        return NULL;
    }
}

static bool
is_stacked(const struct lmq_hf_export *export, const struct lmq_tensor *tensor)
{
    return export->packing != NULL && export->packing->has_stacks &&
           export->words.family != NULL && tensor->place.item >= 0 &&
           stack_name(tensor->place.role) != NULL;
}

static enum lmq_status
name_stack(const struct lmq_hf_export *export, const struct lmq_tensor *tensor,
           char *name, size_t size, struct lmq_error *err)
{
    char *at = strstr(name, ".experts.");
    const char *ending = strrchr(name, '.');
    char part[16];

    if (at == NULL || strlen(ending) >= sizeof(part) ||
        (size_t)(at - name) + 24 + sizeof(part) > size)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "%s keeps all experts of a layer in one tensor, and "
                        "has no name for that of '%s'",
                        export->packing->name, tensor->name);
    strcpy(part, ending + 1);
    strcpy(at, stack_name(tensor->place.role));
    strcat(at, part);
    return LMQ_OK;
}

/* The later ones stand behind the first, in the same entries. */
static enum lmq_status
join_stack(const struct lmq_hf_export *export, struct lmq_hf_item *item,
           unsigned i, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = export->checkpoint;
    struct lmq_place place = item->tensor->place;

    place.item = 0;
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_place(checkpoint, &place);
    const struct lmq_hf_item *first =
        &export->items[tensor - checkpoint->tensors];
    if (first->is_packed != item->is_packed)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "%s keeps all experts of a layer in one tensor: it "
                        "can pack only one of '%s' and '%s'",
                        export->packing->name, tensor->name,
                        item->tensor->name);
    item->entries[i] = first->entries[i];
    return LMQ_OK;
}

/* ---- Items and entries ---- */

static void
init_item(const struct lmq_hf_export *export, const struct lmq_tensor *tensor,
          struct lmq_hf_item *item)
{
    item->tensor = tensor;
    item->is_packed = export->packing != NULL &&
                      lmq_packed_takes(&export->packed, tensor);
    item->is_less_one = lmq_hf_words_subtract(&export->words, tensor);
    item->n_parts = 1;
    if (is_stacked(export, tensor)) {
        item->part = (uint32_t)tensor->place.item;
        item->n_parts = export->checkpoint->hparams.n_experts;
    }
    /* A head that is the embedding is left out: config.json ties it. */
    if (lmq_tensor_is_head(tensor) &&
        lmq_checkpoint_is_tied(export->checkpoint))
        item->n_entries = 0;
    else
        item->n_entries =
            item->is_packed ? lmq_packed_count(&export->packed) : 1;
}

/* What number i of an item is; its suffix is NULL for the tensor itself. */
static struct lmq_packed_piece
piece_of(const struct lmq_hf_export *export, const struct lmq_hf_item *item,
         unsigned i)
{
    const struct lmq_tensor *tensor = item->tensor;
    bool is_kept = !lmq_dtype_is_float(tensor->dtype) &&
                   lmq_tensor_is_as_stored(tensor);

    if (item->is_packed)
        return lmq_packed_piece(&export->packed, tensor, i);
    if (is_kept)
        return (struct lmq_packed_piece){.dtype = tensor->dtype};
    /* Numbers that name experts are not rounded. */
    return (struct lmq_packed_piece){
        .dtype = tensor->place.role == LMQ_ROLE_TOKEN_EXPERTS
                     ? LMQ_DTYPE_F32
                     : export->type->dtype};
}

/* All dimensions of an entry, of which the tensor is all or a part. */
static void
set_dims(const struct lmq_hf_item *item, const struct lmq_packed_piece *piece,
         bool has_words, struct lmq_hf_entry *entry)
{
    const struct lmq_tensor *tensor = item->tensor;
    uint32_t n = piece->suffix != NULL ? piece->n_dims : tensor->n_dims;
    uint64_t n_elements = 1;

    if (item->n_parts > 1)
        entry->dims[entry->n_dims++] = item->n_parts;
    /* One row, which is a vector here. */
    else if (has_words && tensor->place.role == LMQ_ROLE_SHARED_SWITCH &&
             tensor->place.part == LMQ_PART_WEIGHT && n == 1)
        entry->dims[entry->n_dims++] = 1;
    memcpy(entry->dims + entry->n_dims,
           piece->suffix != NULL ? piece->dims : tensor->dims,
           n * sizeof(entry->dims[0]));
    entry->n_dims += n;
    /* Each channel has one of its own, which counts there. */
    if (has_words && tensor->place.role == LMQ_ROLE_DELTA_CONV) {
        entry->dims[2] = entry->dims[1];
        entry->dims[1] = 1;
        entry->n_dims = 3;
    }
    /* Numbers, not vectors of one. */
    if (has_words && (tensor->place.role == LMQ_ROLE_ACT_SLOPE ||
                      tensor->place.role == LMQ_ROLE_ACT_BOUND))
        entry->n_dims = 0;
    for (uint32_t k = 0; k < entry->n_dims; k++)
        n_elements *= entry->dims[k];
    entry->size = n_elements * lmq_dtype_size(entry->dtype);
}

static enum lmq_status
add_entry(struct lmq_hf_export *export, struct lmq_hf_item *item, unsigned i,
          struct lmq_error *err)
{
    static const char weight[] = "weight";
    const struct lmq_tensor *tensor = item->tensor;
    const struct lmq_packed_piece piece = piece_of(export, item, i);
    struct lmq_hf_entry *entry = &export->entries[export->n_entries];
    char name[LMQ_MAX_TENSOR_NAME + 1 + 16];
    enum lmq_status status = LMQ_OK;

    if (item->part > 0)
        return join_stack(export, item, i, err);
    lmq_hf_words_name(&export->words, export->checkpoint, tensor, name,
                      LMQ_MAX_TENSOR_NAME + 1);
    if (item->n_parts > 1)
        status = name_stack(export, tensor, name, LMQ_MAX_TENSOR_NAME, err);
    if (status != LMQ_OK)
        return status;
    if (piece.suffix != NULL)
        strcpy(name + strlen(name) - strlen(weight), piece.suffix);
    if (strcmp(name, LMQ_HF_METADATA) == 0)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "safetensors cannot have a tensor '%s': it is the "
                        "name of something else there",
                        name);
    entry->name = strdup(name);
    if (entry->name == NULL)
        return lmq_fail_nomem(err);
    entry->dtype = piece.dtype;
    set_dims(item, &piece, export->words.family != NULL, entry);
    item->entries[i] = export->n_entries++;
    return LMQ_OK;
}

/* The wider types first, so that all are aligned. */
enum lmq_status
lmq_hf_add_entries(struct lmq_hf_export *export, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = export->checkpoint;
    enum lmq_status status = LMQ_OK;
    size_t n = 0;

    export->items = calloc(checkpoint->n_tensors + 1, sizeof(*export->items));
    if (export->items == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        init_item(export, &checkpoint->tensors[i], &export->items[i]);
        n += export->items[i].n_entries;
    }
    export->entries = calloc(n + 1, sizeof(struct lmq_hf_entry));
    if (export->entries == NULL)
        return lmq_fail_nomem(err);
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t i = 0; i < checkpoint->n_tensors; i++) {
            struct lmq_hf_item *item = &export->items[i];
            for (unsigned k = 0; k < item->n_entries; k++)
                if (status == LMQ_OK &&
                    lmq_dtype_size(piece_of(export, item, k).dtype) == width)
                    status = add_entry(export, item, k, err);
        }
    return status;
}

/* One after the other; a new shard where one would become too large. */
enum lmq_status
lmq_hf_place_entries(struct lmq_hf_export *export, struct lmq_error *err)
{
    uint64_t most = export->options->shard_size;

    export->n_shards = 1;
    export->shard_sizes =
        calloc(MOST_SHARDS + 1, sizeof(*export->shard_sizes));
    if (export->shard_sizes == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < export->n_entries; i++) {
        struct lmq_hf_entry *entry = &export->entries[i];
        uint64_t *size = &export->shard_sizes[export->n_shards - 1];
        if (most > 0 && *size > 0 &&
            (entry->size > most || *size > most - entry->size)) {
            if (export->n_shards++ == MOST_SHARDS)
                return lmq_fail(err, LMQ_ERR_ARG, 0,
                                "files of %" PRIu64 " bytes would be more "
                                "than %d",
                                most, MOST_SHARDS);
            size++;
        }
        entry->shard = export->n_shards - 1;
        entry->offset = *size;
        *size += entry->size;
    }
    return LMQ_OK;
}
