/*
 * plan.c - checkpoint and options -> records and embedded files.
 *
 * Matrices of floats become what the recipe says, as a rule groups of int8,
 * unless they are that already; everything else is kept, floats as float32 and
 * whole numbers as they are, or as float32 where the file has them in another
 * order than ours.
 */
#include "config.h"

#include "convert/plan.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files/inflate.h"
#include "base/size.h"
#include "convert/tie.h"
#include "formats/model/hparams_json.h"
#include "quantize/rotate.h"

/* ---- Records ---- */

static bool
is_matrix(const struct lmq_tensor *tensor)
{
    return tensor->n_dims == 2 && lmq_dtype_is_float(tensor->dtype);
}

/* Layers and experts count from the end too. */
static void
count(struct lmq_plan *plan)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_place *place = &checkpoint->tensors[i].place;
        if (place->layer >= plan->n_layers)
            plan->n_layers = place->layer + 1;
        if (lmq_role_is_of_experts(place->role) &&
            place->item >= plan->n_experts)
            plan->n_experts = place->item + 1;
    }
}

static void
choose(struct lmq_plan *plan, const struct lmq_tensor *tensor,
       struct lmq_wish *wish)
{
    lmq_recipe_choose(&plan->settings.recipe, tensor,
                      lmq_role_is_small(tensor->place.role), plan->n_layers,
                      plan->n_experts, wish);
    /* Its numbers name experts: they are not rounded. */
    if (tensor->place.role == LMQ_ROLE_TOKEN_EXPERTS)
        wish->stored = LMQ_STORED_F32;
}

/* What keeps every bit: the type itself, or the next larger one that a matrix
 * is computed with. (The larger ones of 64 bits are read as float32 anyway.) */
static enum lmq_stored
kept_type(const struct lmq_tensor *tensor)
{
    const struct lmq_view *view = &tensor->view;
    bool is_computed = view->times > 0 || view->plus > 0 ||
                       view->has_unit_rows;

    if (is_computed)
        return LMQ_STORED_F32;
    switch (tensor->dtype) {
    case LMQ_DTYPE_F16:
        return LMQ_STORED_F16;
    case LMQ_DTYPE_BF16:
    case LMQ_DTYPE_F8_E4M3:
    case LMQ_DTYPE_F8_E5M2:
        return LMQ_STORED_BF16;
    default:
        return LMQ_STORED_F32;
    }
}

/* Integers are read by whole rows, 16 of them at a time; of longer ones floats
 * are, piece by piece, so that no file decides how much memory it takes. */
#define TAKEN_COLS_MAX ((uint64_t)1 << 20)

/* Whether it is what is asked for, as far as anything is. */
static bool
is_as_asked(const struct lmq_quant *own, const struct lmq_wish *wish)
{
    const struct lmq_quant *quant = &wish->quant;
    unsigned asked = wish->asked;

    return ((asked & LMQ_WISH_ENCODING) == 0 ||
            lmq_stored_types[wish->stored].bits >= own->bits) &&
           ((asked & LMQ_WISH_GROUP) == 0 ||
            quant->group_size == own->group_size) &&
           ((asked & LMQ_WISH_SCALES) == 0 || quant->scales == own->scales) &&
           ((asked & LMQ_WISH_ROTATE) == 0 ||
            quant->rotation == own->rotation);
}

/* Whether the matrix stays the integers that it is. */
static bool
stays_integers(const struct lmq_tensor *tensor, const struct lmq_wish *wish)
{
    return lmq_group_size_is_valid(tensor->quant.group_size) &&
           !lmq_role_is_small(tensor->place.role) &&
           (wish->keeps || (tensor->n_cols <= TAKEN_COLS_MAX &&
                            is_as_asked(&tensor->quant, wish)));
}

/* What the matrix is, where that is wished: groups that a container has, or
 * floats. Rows as such have 8 bits. */
static enum lmq_status
settle_own(const struct lmq_tensor *tensor, enum lmq_layout layout,
           struct lmq_wish *wish, struct lmq_error *err)
{
    bool is_plain = tensor->blocks == NULL && tensor->encoding == NULL &&
                    tensor->packing == NULL;

    if (stays_integers(tensor, wish)) {
        bool may_be_narrow = wish->keeps || layout == LMQ_LAYOUT_TILES;
        if (wish->keeps || (wish->asked & LMQ_WISH_ENCODING) == 0)
            wish->stored = lmq_stored_of(may_be_narrow ? tensor->quant.bits
                                                       : LMQ_BITS_MAX);
        wish->quant.group_size = tensor->quant.group_size;
        wish->quant.scales = tensor->quant.scales;
        wish->quant.rotation = tensor->quant.rotation;
        wish->asked |= LMQ_WISH_GROUP;
        return LMQ_OK;
    }
    if (!wish->keeps)
        return LMQ_OK;
    wish->stored = kept_type(tensor);
    if (is_plain || lmq_role_is_small(tensor->place.role))
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "tensor '%s' cannot be kept as it is: a container has no '%s'",
             tensor->stored_name,
             tensor->encoding == NULL ? "packed floats" : tensor->encoding);
    lmq_hint(err, "f16, bf16 and f32 are floats that it can have");
    return LMQ_ERR_UNSUPPORTED;
}

/* Whether the checkpoint holds the matrix as integers with just these groups
 * and scales, and with not more bits, so that they can be taken as they are. */
static bool
is_taken(const struct lmq_tensor *tensor, const struct lmq_quant *quant)
{
    return tensor->quant.group_size == quant->group_size &&
           tensor->quant.scales == quant->scales &&
           tensor->quant.rotation == quant->rotation &&
           tensor->quant.bits <= quant->bits &&
           tensor->n_cols <= TAKEN_COLS_MAX;
}

/* Groups that nobody asked for are the usual ones, or the least if these take
 * fewer bytes, as of rows of 96: whole groups are stored. */
static void
fit_group(const struct lmq_tensor *tensor, struct lmq_record *record)
{
    struct lmq_record usual = *record, least;

    usual.layout = LMQ_LAYOUT_TILES; /* the same in another layout */
    least = usual;
    least.quant.group_size = LMQ_GROUP_MIN;
    if (tensor->quant.group_size != record->quant.group_size &&
        lmq_record_bytes(&least) < lmq_record_bytes(&usual))
        record->quant.group_size = LMQ_GROUP_MIN;
}

/* A matrix as the recipe wants it. */
static enum lmq_status
set_matrix(struct lmq_plan *plan, const struct lmq_tensor *tensor,
           struct lmq_record *record, bool *takes, struct lmq_error *err)
{
    struct lmq_wish wish;

    choose(plan, tensor, &wish);
    enum lmq_status status =
        settle_own(tensor, plan->settings.layout, &wish, err);
    if (status != LMQ_OK)
        return status;
    record->encoding = lmq_stored_types[wish.stored].encoding;
    record->dtype = lmq_stored_types[wish.stored].dtype;
    if (record->encoding == LMQ_ENCODING_PLAIN)
        return LMQ_OK;
    record->quant = wish.quant;
    record->quant.bits = lmq_stored_types[wish.stored].bits;
    record->layout = plan->settings.layout;
    if (record->quant.bits < LMQ_BITS_MAX &&
        record->layout != LMQ_LAYOUT_TILES)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".layout is rows, but tensor '%s' becomes %s, which "
                        "stands in tiles",
                        record->name, lmq_record_type(record));
    if ((wish.asked & LMQ_WISH_GROUP) == 0)
        fit_group(tensor, record);
    *takes = is_taken(tensor, &record->quant);
    if (*takes)
        record->quant.multiplier = tensor->quant.multiplier;
    else if (record->quant.rotation == LMQ_ROTATION_WHOLE)
        record->quant.rotation = LMQ_ROTATION_ALL;
    return LMQ_OK;
}

static enum lmq_status
add_record(struct lmq_plan *plan, const struct lmq_tensor *tensor,
           struct lmq_error *err)
{
    struct lmq_record *record = &plan->records[plan->n_records];
    enum lmq_status status =
        lmq_tensor_require(plan->checkpoint, tensor, err);

    if (status != LMQ_OK)
        return status;
    plan->sources[plan->n_records] = tensor;
    record->name = strdup(tensor->name);
    if (record->name == NULL)
        return lmq_fail_nomem(err);
    bool *takes = &plan->takes[plan->n_records++];
    record->place = tensor->place;
    record->alias = LMQ_NO_ALIAS;
    record->n_dims = tensor->n_dims;
    memcpy(record->dims, tensor->dims, sizeof(record->dims));
    record->n_rows = tensor->n_rows;
    record->source_dtype = tensor->dtype;
    if (is_matrix(tensor))
        return set_matrix(plan, tensor, record, takes, err);
    record->encoding = LMQ_ENCODING_PLAIN;
    record->dtype = lmq_dtype_is_float(tensor->dtype) ||
                            !lmq_tensor_is_as_stored(tensor)
                        ? LMQ_DTYPE_F32
                        : tensor->dtype;
    return LMQ_OK;
}

static enum lmq_status
add_records(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    size_t n = checkpoint->n_tensors + 1; /* perhaps a head */
    enum lmq_status status = LMQ_OK;

    count(plan);
    plan->records = calloc(n, sizeof(*plan->records));
    plan->sources = calloc(n, sizeof(*plan->sources));
    plan->takes = calloc(n, sizeof(*plan->takes));
    if (plan->records == NULL || plan->sources == NULL || plan->takes == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        status = add_record(plan, &checkpoint->tensors[i], err);
    return status;
}

static size_t
find_record(const struct lmq_plan *plan, enum lmq_role role)
{
    size_t i = 0;

    while (i < plan->n_records &&
           (plan->records[i].place.role != role ||
            plan->records[i].place.part != LMQ_PART_WEIGHT))
        i++;
    return i;
}

/* The last record goes to where its place is among the others, so that the
 * order of a plan can be told from its records. */
static size_t
sort_last(struct lmq_plan *plan)
{
    size_t last = plan->n_records - 1, at = last;
    struct lmq_record record = plan->records[last];
    const struct lmq_tensor *source = plan->sources[last];
    bool takes = plan->takes[last];

    for (; at > 0 && lmq_place_compare(&plan->records[at - 1].place,
                                       &record.place) > 0;
         at--) {
        plan->records[at] = plan->records[at - 1];
        plan->sources[at] = plan->sources[at - 1];
        plan->takes[at] = plan->takes[at - 1];
    }
    plan->records[at] = record;
    plan->sources[at] = source;
    plan->takes[at] = takes;
    return at;
}

/* A head that the checkpoint does not have. */
static enum lmq_status
add_missing_head(struct lmq_plan *plan, size_t embedding, size_t *head,
                 struct lmq_error *err)
{
    struct lmq_tensor tensor = *plan->sources[embedding];
    char name[64];

    tensor.place.role = LMQ_ROLE_HEAD;
    lmq_name_canonical(&tensor.place, name, sizeof(name));
    tensor.name = name;
    enum lmq_status status = add_record(plan, &tensor, err);
    if (status != LMQ_OK)
        return status;
    plan->sources[plan->n_records - 1] = plan->sources[embedding];
    *head = sort_last(plan);
    return LMQ_OK;
}

/* One matrix cannot be stored in two ways: what would become of the embedding
 * if it was the head. */
static enum lmq_status
check_head(struct lmq_plan *plan, size_t embedding, size_t head,
           struct lmq_error *err)
{
    const struct lmq_record *a = &plan->records[embedding];
    struct lmq_record b = plan->records[head];
    struct lmq_tensor tensor = *plan->sources[embedding];
    bool takes = false;

    b.quant = (struct lmq_quant){0};
    tensor.place = b.place;
    tensor.name = b.name;
    tensor.stored_name = plan->sources[head]->stored_name;
    enum lmq_status status = set_matrix(plan, &tensor, &b, &takes, err);
    if (status != LMQ_OK)
        return status;
    bool is_same = a->encoding == b.encoding && a->dtype == b.dtype &&
                   a->quant.bits == b.quant.bits &&
                   a->quant.group_size == b.quant.group_size &&
                   a->quant.scales == b.quant.scales &&
                   a->quant.rotation == b.quant.rotation &&
                   a->quant.method == b.quant.method;
    if (is_same)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "the head is the embedding, but the recipe wants %s of one and %s "
             "of the other, or other groups",
             lmq_record_type(&b), lmq_record_type(a));
    lmq_hint(err, "say the same of 'output' and 'token_embd'; .tie never "
                  "stores two");
    return LMQ_ERR_ARG;
}

static enum lmq_status
settle_head(struct lmq_plan *plan, struct lmq_error *err)
{
    size_t embedding = find_record(plan, LMQ_ROLE_EMBEDDING);
    size_t head = find_record(plan, LMQ_ROLE_HEAD);
    struct lmq_tie_finding finding;

    plan->tie_rule = "";
    enum lmq_status status =
        lmq_tie_find(plan->checkpoint, &finding, &plan->notes, err);
    if (status != LMQ_OK || !finding.is_tied)
        return status;
    if (head == plan->n_records)
        status = add_missing_head(plan, embedding, &head, err);
    if (status == LMQ_OK && plan->settings.ties)
        status = check_head(plan, embedding, head, err);
    if (status != LMQ_OK || !plan->settings.ties)
        return status;
    struct lmq_record *record = &plan->records[head];
    record->encoding = LMQ_ENCODING_ALIAS;
    record->alias = (uint32_t)embedding;
    record->dtype = LMQ_DTYPE_F32;
    record->layout = LMQ_LAYOUT_ROWS;
    record->quant = (struct lmq_quant){0};
    record->n_rows = 0;
    plan->tie_rule = finding.rule;
    return LMQ_OK;
}

/* ---- Sections ---- */

/* The deflated form, if it is smaller and not suspiciously small. */
static enum lmq_status
deflate_content(struct lmq_content *content, unsigned char **owned,
                struct lmq_error *err)
{
    uLongf size = compressBound((uLong)content->size);
    unsigned char *bytes = malloc(size);

    if (bytes == NULL)
        return lmq_fail_nomem(err);
    int code = compress2(bytes, &size, content->bytes, (uLong)content->size,
                         Z_BEST_COMPRESSION);
    if (code != Z_OK || size >= content->size ||
        !lmq_inflation_is_fair(size, content->size)) {
        free(bytes);
        return code == Z_MEM_ERROR ? lmq_fail_nomem(err) : LMQ_OK;
    }
    *owned = bytes;
    content->raw_size = content->size;
    content->bytes = bytes;
    content->size = size;
    content->is_deflated = true;
    return LMQ_OK;
}

/* Tokenizers are recognised by content, so a name that a container cannot
 * hold may change. */
static const char *
file_name(const struct lmq_blob *blob)
{
    return lmq_section_name_is_valid(blob->name) ? blob->name : "tokenizer";
}

static enum lmq_status
add_files(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    size_t n = checkpoint->n_blobs;
    enum lmq_status status = LMQ_OK;

    plan->files = calloc(n + 1, sizeof(*plan->files));
    plan->owned = calloc(n + 1, sizeof(*plan->owned));
    if (plan->files == NULL || plan->owned == NULL)
        return lmq_fail_nomem(err);
    plan->n_files = n;
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        const struct lmq_blob *blob = &checkpoint->blobs[i];
        plan->files[i] = (struct lmq_content){.type = LMQ_SECTION_FILE,
                                              .name = file_name(blob),
                                              .bytes = blob->bytes,
                                              .size = blob->size};
        if (plan->settings.is_compressed)
            status = deflate_content(&plan->files[i], &plan->owned[i], err);
    }
    return status;
}

/* ---- Digests ---- */

static enum lmq_status
digest_files(const struct lmq_checkpoint *checkpoint,
             struct lmq_file_digest *files, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < checkpoint->n_blobs && status == LMQ_OK; i++) {
        const struct lmq_blob *blob = &checkpoint->blobs[i];
        files[i].name = file_name(blob);
        files[i].size = blob->size;
        status =
            lmq_digest_bytes(blob->bytes, blob->size, files[i].digest, err);
    }
    return status;
}

static void
take_tensors(const struct lmq_plan *plan, struct lmq_tensor_digest *tensors)
{
    for (size_t i = 0; i < plan->n_records; i++) {
        uint32_t alias = plan->records[i].alias;
        size_t own = alias == LMQ_NO_ALIAS ? i : alias;
        tensors[i] = (struct lmq_tensor_digest){
            plan->records[i].name, &plan->records[own],
            plan->digests.tensors + own * LMQ_SHA256_SIZE};
    }
}

/* As the metadata have it. */
static json_t *
describe_model(const struct lmq_plan *plan)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;

    if (!checkpoint->has_model)
        return json_null();
    return plan->copied != NULL
               ? json_incref(json_object_get(plan->copied, "model"))
               : lmq_hparams_to_json(&checkpoint->hparams);
}

enum lmq_status
lmq_plan_finish_digests(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;

    if (!plan->settings.has_digests)
        return LMQ_OK;
    struct lmq_file_digest *files =
        calloc(checkpoint->n_blobs + 1, sizeof(*files));
    struct lmq_tensor_digest *tensors =
        calloc(plan->n_records + 1, sizeof(*tensors));
    json_t *model = describe_model(plan);
    enum lmq_status status =
        files == NULL || tensors == NULL || model == NULL
            ? lmq_fail_nomem(err)
            : digest_files(checkpoint, files, err);
    if (status == LMQ_OK) {
        take_tensors(plan, tensors);
        status = lmq_content_digest(tensors, plan->n_records, model, files,
                                    checkpoint->n_blobs,
                                    plan->digests.content, err);
    }
    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++)
        memcpy(plan->members[i].digests.content, plan->digests.content,
               LMQ_SHA256_SIZE);
    json_decref(model);
    free(tensors);
    free(files);
    return status;
}

/* ---- The plan ---- */

/* What is told of all where nobody asked for it: what all matrices have, if
 * they agree. */
static void
settle_usual(struct lmq_plan *plan)
{
    const unsigned asked = plan->settings.recipe.basis.asked;
    const struct lmq_quant *first = NULL;
    unsigned differing = 0;

    for (size_t i = 0; i < plan->n_records; i++) {
        const struct lmq_quant *quant = &plan->records[i].quant;
        if (plan->records[i].encoding != LMQ_ENCODING_Q8)
            continue;
        if (first == NULL)
            first = quant;
        if (quant->bits != first->bits)
            differing |= LMQ_WISH_ENCODING;
        if (quant->group_size != first->group_size)
            differing |= LMQ_WISH_GROUP;
        if (quant->scales != first->scales)
            differing |= LMQ_WISH_SCALES;
        if (quant->rotation != first->rotation)
            differing |= LMQ_WISH_ROTATE;
    }
    const unsigned told = first == NULL ? 0 : ~(asked | differing);
    if (told & LMQ_WISH_ENCODING)
        plan->settings.stored = lmq_stored_of(first->bits);
    if (told & LMQ_WISH_GROUP)
        plan->settings.quant.group_size = first->group_size;
    if (told & LMQ_WISH_SCALES)
        plan->settings.quant.scales = first->scales;
    if (told & LMQ_WISH_ROTATE)
        plan->settings.quant.rotation = first->rotation;
}

enum lmq_status
lmq_plan_make(struct lmq_checkpoint *checkpoint,
              const struct lmq_convert_settings *settings,
              struct lmq_plan *plan, struct lmq_error *err)
{
    plan->checkpoint = checkpoint;
    plan->settings = *settings;
    enum lmq_status status = add_records(plan, err);
    if (status == LMQ_OK)
        status = settle_head(plan, err);
    if (status == LMQ_OK)
        status = lmq_recipe_check_used(&plan->settings.recipe, err);
    settle_usual(plan);
    return status == LMQ_OK ? add_files(plan, err) : status;
}

void
lmq_plan_free(struct lmq_plan *plan)
{
    lmq_records_free(plan->records, plan->n_records);
    lmq_digests_free(&plan->digests);
    lmq_originals_free(&plan->originals);
    for (uint32_t i = 0; i < plan->n_members; i++) {
        struct lmq_plan_member *member = &plan->members[i];
        lmq_records_free(member->records, member->n_records);
        lmq_digests_free(&member->digests);
        free(member->origins);
        free(member->contents);
        free(member->metadata);
    }
    for (size_t i = 0; i < plan->n_files; i++)
        free(plan->owned[i]);
    free(plan->members);
    free(plan->parts);
    free(plan->owned);
    free(plan->files);
    free((void *)plan->sources);
    free(plan->takes);
    free(plan->source_crcs);
    json_decref(plan->copied);
    json_decref(plan->calibration);
    free(plan->calibrated);
    lmq_notes_free(&plan->notes);
    *plan = (struct lmq_plan){0};
}
