/*
 * lmq_describe.c - what a container says of itself and its tensors.
 */
#include "config.h"

#include "formats/lmq/lmq_describe.h"

#include <math.h>
#include <string.h>

#include "base/report.h"
#include "base/size.h"
#include "formats/lmq/lmq_digests.h"
#include "formats/lmq/lmq_set.h"

const struct lmq_name lmq_stored_names[] = {
    {"q8", LMQ_STORED_Q8},
    {"q6", LMQ_STORED_Q6},
    {"q5", LMQ_STORED_Q5},
    {"q4", LMQ_STORED_Q4},
    {"f32", LMQ_STORED_F32},
    {"f16", LMQ_STORED_F16},
    {"bf16", LMQ_STORED_BF16},
    {NULL, 0},
};

const struct lmq_stored_type lmq_stored_types[] = {
    [LMQ_STORED_Q8] = {LMQ_ENCODING_Q8, LMQ_DTYPE_F32, 8},
    [LMQ_STORED_Q6] = {LMQ_ENCODING_Q8, LMQ_DTYPE_F32, 6},
    [LMQ_STORED_Q5] = {LMQ_ENCODING_Q8, LMQ_DTYPE_F32, 5},
    [LMQ_STORED_Q4] = {LMQ_ENCODING_Q8, LMQ_DTYPE_F32, 4},
    [LMQ_STORED_F32] = {LMQ_ENCODING_PLAIN, LMQ_DTYPE_F32, 0},
    [LMQ_STORED_F16] = {LMQ_ENCODING_PLAIN, LMQ_DTYPE_F16, 0},
    [LMQ_STORED_BF16] = {LMQ_ENCODING_PLAIN, LMQ_DTYPE_BF16, 0},
};

enum lmq_stored
lmq_stored_of(unsigned bits)
{
    enum lmq_stored stored = LMQ_STORED_Q8;

    while (stored < LMQ_STORED_Q4 && lmq_stored_types[stored].bits != bits)
        stored++;
    return stored;
}

/* As reports call it. */
const char *
lmq_record_type(const struct lmq_record *record)
{
    switch (record->encoding) {
    case LMQ_ENCODING_Q8:
        return lmq_names_of(lmq_stored_names,
                            lmq_stored_of(record->quant.bits));
    case LMQ_ENCODING_ALIAS:
        return "alias";
    case LMQ_ENCODING_UNKNOWN:
        return "unknown";
    default:
        return lmq_dtype_name(record->dtype);
    }
}

/* Of what is kept as it was there are only sizes; of what was quantized or
 * rounded also what it cost. */
void
lmq_describe_stats(json_t **tensor, const struct lmq_record *record,
                   uint64_t n)
{
    lmq_put(tensor, "max_abs", lmq_json_number((double)record->max_abs));
    lmq_put(tensor, "rms", lmq_json_number(sqrt(record->sum_sq / (double)n)));
    bool is_rounded = record->encoding == LMQ_ENCODING_PLAIN &&
                      record->err_sq > 0;
    if (record->encoding != LMQ_ENCODING_Q8 && !is_rounded)
        return;
    lmq_put(tensor, "max_error", lmq_json_number((double)record->max_err));
    lmq_put(tensor, "rms_error",
            lmq_json_number(sqrt(record->err_sq / (double)n)));
    lmq_put(tensor, "snr_db",
            lmq_json_number(lmq_quant_snr_db(record->sum_sq, record->err_sq)));
    if (is_rounded)
        return;
    lmq_put(tensor, "worst_group", lmq_json_size(record->worst_group));
    uint64_t n_cols = lmq_record_columns(record);
    uint64_t per_row = lmq_u64_ceil_div(n_cols, record->quant.group_size);
    uint64_t start =
        record->worst_group % per_row * record->quant.group_size;
    lmq_put(
        tensor, "worst_group_rms_error",
        lmq_json_number(sqrt(
            (double)record->worst_err_sq /
            (double)lmq_u64_min(record->quant.group_size, n_cols - start))));
}

/* (Not json_copy(), which does not tell when it has lost something.) */
static json_t *
copy_without(json_t *value, const char *unwanted)
{
    json_t *copy = json_object(), *member;
    const char *key;

    if (!json_is_object(value)) {
        json_decref(copy);
        return json_incref(value);
    }
    json_object_foreach(value, key, member)
        if (strcmp(key, unwanted) != 0)
            lmq_put(&copy, key, json_incref(member));
    return copy;
}

static json_t *
describe_digests(const struct lmq_digests *digests)
{
    char root[LMQ_DIGEST_TEXT], content[LMQ_DIGEST_TEXT];
    json_t *json = json_object();

    lmq_digest_print(digests->root, root);
    lmq_digest_print(digests->content, content);
    lmq_put(&json, "root", json_string(root));
    lmq_put(&json, "content", json_string(content));
    return json;
}

/* The names of the tensors these say themselves; which member of a set one
 * happens to look at is nobody's business. */
void
lmq_container_describe(const struct lmq_checkpoint *checkpoint, json_t **json)
{
    static const struct {
        const char *key, *unwanted;
    } keys[] = {{"quantization", ""},
                {"recipe", ""},
                {"recommended", ""},
                {"tie_rule", ""},
                {"provenance", "stored_names"},
                {"set", "member"}};
    const struct lmq_container *container =
        lmq_checkpoint_container(checkpoint);

    lmq_put(json, "format_version",
            json_sprintf("%u.%u", container->superblock.major,
                         container->superblock.minor));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(container->metadata, keys[i].key);
        if (value != NULL)
            lmq_put(json, keys[i].key, copy_without(value, keys[i].unwanted));
    }
    if (container->digests != NULL)
        lmq_put(json, "digests", describe_digests(container->digests));
}

static json_t *
describe_members(const struct lmq_whole *whole)
{
    json_t *members = json_array();

    for (size_t i = 0; i < whole->n_pieces; i++)
        lmq_append(&members, json_integer(whole->pieces[i].member + 1));
    return members;
}

/* Of a tensor that is cut: all of its pieces, and in which members they stand.
 */
void
lmq_container_describe_tensor(const struct lmq_checkpoint *checkpoint,
                              const struct lmq_tensor *tensor, json_t **json)
{
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    const struct lmq_whole *whole = &set->wholes[tensor->number];
    /* Statistics are those of the whole in each piece. */
    const struct lmq_slice *piece = whole->pieces;
    struct lmq_record record = *piece->record;
    bool has_statistics = set->members[piece->member].has_statistics;

    lmq_put(json, "source_type",
            json_string(record.source_dtype == LMQ_DTYPE_COUNT
                            ? "unknown"
                            : lmq_dtype_name(record.source_dtype)));
    if (set->members[0].superblock.n_members > 0)
        lmq_put(json, "members", describe_members(whole));
    if (record.encoding == LMQ_ENCODING_UNKNOWN) {
        lmq_put(json, "unknown", json_string(record.unknown));
        return;
    }
    if (record.encoding == LMQ_ENCODING_Q8) {
        lmq_put(json, "group_size", json_integer(record.quant.group_size));
        lmq_put(json, "rotated", json_boolean(record.quant.rotation !=
                                             LMQ_ROTATION_NONE));
        lmq_put_name(json, "scales", lmq_scales_names, record.quant.scales);
        lmq_put(json, "multiplier",
                lmq_json_number((double)record.quant.multiplier));
        lmq_put_name(json, "layout", lmq_layout_names, record.layout);
    }
    if (has_statistics)
        lmq_describe_stats(json, &record, tensor->n_elements);
}
