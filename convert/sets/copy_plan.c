/*
 * copy_plan.c - from the records of a container to those of another one.
 *
 * What converting would write is written: records stand in the order of the
 * source, and an alias, of which a set only tells in which member it is, where
 * a conversion puts it.
 */
#include "config.h"

#include "convert/sets/copy_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "formats/formats.h"
#include "formats/lmq/lmq_set.h"

/* ---- What cannot be carried over ---- */

static enum lmq_status
fail_unknown(const struct lmq_checkpoint *checkpoint, size_t member,
             const char *what, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "has %s, which this lmquant does not know and would lose", what);
    lmq_hint(err, "use the lmquant that wrote it, or a newer one");
    lmq_error_in(err, lmq_input_path(checkpoint->files[member]));
    return LMQ_ERR_UNSUPPORTED;
}

/* What is stored of each record is what would be written of it, but for where
 * its name stands. */
static bool
are_known(const unsigned char *stored, size_t size, const unsigned char *own,
          size_t n_records)
{
    if (size < LMQ_DIRECTORY_HEADER + n_records * LMQ_RECORD_SIZE ||
        memcmp(stored, own, LMQ_DIRECTORY_HEADER) != 0)
        return false;
    for (size_t i = 0; i < n_records; i++) {
        size_t at = LMQ_DIRECTORY_HEADER + i * LMQ_RECORD_SIZE + 4;
        if (memcmp(stored + at, own + at, LMQ_RECORD_SIZE - 4) != 0)
            return false;
    }
    return true;
}

static enum lmq_status
check_records(const struct lmq_checkpoint *checkpoint, size_t index,
              const struct lmq_container *member,
              const struct lmq_section *directory, struct lmq_error *err)
{
    unsigned char *stored, *own = NULL;
    size_t size, own_size;
    enum lmq_status status = lmq_section_read(checkpoint->files[index],
                                              directory, &stored, &size, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_directory_store(member->records, member->n_records, &own,
                                 &own_size, err);
    if (status == LMQ_OK && !are_known(stored, size, own, member->n_records))
        status = fail_unknown(checkpoint, index,
                              "records of tensors with parts", err);
    free(stored);
    free(own);
    return status;
}

static enum lmq_status
check_known(const struct lmq_checkpoint *checkpoint, size_t index,
            const struct lmq_container *member, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (member->superblock.minor > LMQ_MINOR ||
        member->superblock.compatible != 0)
        return fail_unknown(checkpoint, index, "parts of a later version",
                            err);
    for (size_t i = 0; i < member->n_sections; i++)
        if (member->sections[i].type >= LMQ_SECTION_KNOWN_END)
            return fail_unknown(checkpoint, index, "a section of another kind",
                                err);
    for (size_t i = 0; i < member->n_records; i++)
        if (member->records[i].encoding == LMQ_ENCODING_UNKNOWN)
            return fail_unknown(checkpoint, index, "a tensor of another kind",
                                err);
    for (size_t i = 0; i < member->n_sections && status == LMQ_OK; i++)
        if (member->sections[i].type == LMQ_SECTION_DIRECTORY)
            status = check_records(checkpoint, index, member,
                                   &member->sections[i], err);
    return status;
}

static enum lmq_status
check_source(const struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (checkpoint->format != &lmq_format_lmq) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "is %s, expected a container (.lmq)",
                 checkpoint->format->name);
        lmq_hint(err, "lmquant convert makes one");
        lmq_error_in(err, checkpoint->path);
        return LMQ_ERR_UNSUPPORTED;
    }
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    for (size_t i = 0; i < set->n_members && status == LMQ_OK; i++)
        status = check_known(checkpoint, i, &set->members[i], err);
    return status;
}

/* ---- Order ---- */

/* Wholes, in the order in which they are written. */
struct order {
    const struct lmq_set *set;
    const struct lmq_whole **wholes; /* (set->n_wholes) */
    size_t n;
};

/* A piece is found by its record. */
static int
compare_to_record(const void *key, const void *member)
{
    const struct lmq_whole *whole = member;

    return strcmp(key, whole->pieces->record->name);
}

/* Of a file alone the records are the wholes; of a set these are sorted by
 * their names. */
static const struct lmq_whole *
find_whole(const struct lmq_set *set, size_t member, size_t record)
{
    const char *name = set->members[member].records[record].name;

    if (set->members[0].superblock.n_members == 0)
        return &set->wholes[record];
    return bsearch(name, set->wholes, set->n_wholes, sizeof(*set->wholes),
                   compare_to_record);
}

/* Behind all that it stands behind in its member, before the first that comes
 * after it by its place. */
static void
insert_alias(struct order *order, size_t member, size_t record)
{
    const struct lmq_container *container = &order->set->members[member];
    const struct lmq_place *place = &container->records[record].place;
    size_t at = 0;

    for (size_t i = 0; i < order->n; i++) {
        const struct lmq_slice *piece = order->wholes[i]->pieces;
        if (piece->member < member ||
            (piece->member == member &&
             piece->record < container->records + record))
            at = i + 1;
    }
    while (at < order->n &&
           lmq_place_compare(&order->wholes[at]->pieces->record->place,
                             place) < 0)
        at++;
    memmove(order->wholes + at + 1, order->wholes + at,
            (order->n - at) * sizeof(*order->wholes));
    order->wholes[at] = find_whole(order->set, member, record);
    order->n++;
}

/* How many there are; *member and *record are the last. */
static size_t
find_aliases(const struct lmq_set *set, size_t *member, size_t *record)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n_members; i++)
        for (size_t j = 0; j < set->members[i].n_records; j++)
            if (set->members[i].records[j].encoding == LMQ_ENCODING_ALIAS) {
                *member = i;
                *record = j;
                n++;
            }
    return n;
}

/* A conversion writes one alias at most. If there are more in a set they stand
 * where their members have them. */
static enum lmq_status
put_in_order(struct order *order, struct lmq_error *err)
{
    const struct lmq_set *set = order->set;
    size_t member = 0, record = 0;
    bool is_moved = set->members[0].superblock.n_members > 0 &&
                    find_aliases(set, &member, &record) == 1;

    order->wholes = calloc(set->n_wholes + 1, sizeof(*order->wholes));
    if (order->wholes == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < set->n_members; i++)
        for (size_t j = 0; j < set->members[i].n_records; j++)
            if (set->members[i].records[j].first_row == 0 &&
                !(is_moved && i == member && j == record))
                order->wholes[order->n++] = find_whole(set, i, j);
    if (is_moved)
        insert_alias(order, member, record);
    return LMQ_OK;
}

/* ---- Records ---- */

static enum lmq_status
add_record(struct lmq_plan *plan, const struct lmq_whole *whole,
           const struct lmq_tensor *tensor, struct lmq_error *err)
{
    struct lmq_record *record = &plan->records[plan->n_records];

    *record = *whole->pieces->record;
    memset(record->extents, 0, sizeof(record->extents));
    record->name = strdup(whole->pieces->record->name);
    record->first_row = 0;
    if (record->encoding != LMQ_ENCODING_ALIAS)
        record->n_rows = tensor->n_rows;
    plan->sources[plan->n_records++] = tensor;
    return record->name == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* Of each whole, by its index in the set: its tensor, its record. */
struct map {
    const struct lmq_tensor **tensors;
    uint32_t *records;
};

static enum lmq_status
make_map(const struct lmq_checkpoint *checkpoint, const struct order *order,
         struct map *map, struct lmq_error *err)
{
    map->tensors = calloc(order->n + 1, sizeof(*map->tensors));
    map->records = calloc(order->n + 1, sizeof(*map->records));
    if (map->tensors == NULL || map->records == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        map->tensors[checkpoint->tensors[i].number] = &checkpoint->tensors[i];
    for (size_t i = 0; i < order->n; i++)
        map->records[order->wholes[i] - order->set->wholes] = (uint32_t)i;
    return LMQ_OK;
}

static enum lmq_status
add_records(struct lmq_plan *plan, struct lmq_error *err)
{
    struct order order = {.set = lmq_checkpoint_set(plan->checkpoint)};
    struct map map = {0};
    size_t n = order.set->n_wholes + 1;

    plan->records = calloc(n, sizeof(*plan->records));
    plan->sources = calloc(n, sizeof(*plan->sources));
    plan->takes = calloc(n, sizeof(*plan->takes));
    enum lmq_status status = plan->records == NULL || plan->sources == NULL ||
                                     plan->takes == NULL
                                 ? lmq_fail_nomem(err)
                                 : put_in_order(&order, err);
    if (status == LMQ_OK)
        status = make_map(plan->checkpoint, &order, &map, err);
    for (size_t i = 0; i < order.n && status == LMQ_OK; i++) {
        const struct lmq_whole *whole = order.wholes[i];
        status = add_record(plan, whole,
                            map.tensors[whole - order.set->wholes], err);
        if (status == LMQ_OK && whole->target != whole)
            plan->records[i].alias =
                map.records[whole->target - order.set->wholes];
    }
    free((void *)map.tensors);
    free(map.records);
    free((void *)order.wholes);
    return status;
}

/* ---- Files ---- */

/* As they are stored, deflated or not. */
static enum lmq_status
add_files(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(plan->checkpoint);
    struct lmq_input *input = plan->checkpoint->files[0];
    enum lmq_status status = LMQ_OK;

    plan->files = calloc(container->n_sections + 1, sizeof(*plan->files));
    plan->owned = calloc(container->n_sections + 1, sizeof(*plan->owned));
    if (plan->files == NULL || plan->owned == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < container->n_sections && status == LMQ_OK; i++) {
        const struct lmq_section *section = &container->sections[i];
        size_t size = (size_t)section->stored.size;
        if (section->type != LMQ_SECTION_FILE)
            continue;
        unsigned char *bytes = malloc(size + 1);
        if (bytes == NULL)
            return lmq_fail_nomem(err);
        plan->owned[plan->n_files] = bytes;
        plan->files[plan->n_files++] = (struct lmq_content){
            .type = LMQ_SECTION_FILE,
            .name = section->name,
            .bytes = bytes,
            .size = size,
            .is_deflated = (section->flags & LMQ_SECTION_DEFLATED) != 0,
            .raw_size = (size_t)section->size,
        };
        status = lmq_input_read(input, section->stored.offset, bytes, size,
                                err);
        /* Opening it compared the checksum: this is what stood there then. */
        if (status == LMQ_OK &&
            lmq_crc32(0, bytes, size) != section->stored.crc)
            status = lmq_fail(err, LMQ_ERR_IO, section->stored.offset,
                              "changed while it was read");
    }
    return status;
}

/* ---- All of it ---- */

enum lmq_status
lmq_plan_copy(struct lmq_checkpoint *checkpoint, uint64_t shard_size,
              struct lmq_plan *plan, struct lmq_error *err)
{
    enum lmq_status status = check_source(checkpoint, err);

    if (status != LMQ_OK)
        return status;
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    const struct lmq_container *first = &set->members[0];
    plan->checkpoint = checkpoint;
    plan->copied = json_incref(first->metadata);
    plan->tie_rule = "";
    plan->settings = (struct lmq_convert_settings){
        .alignment = first->superblock.alignment,
        .shard_size = shard_size,
        .has_digests = first->digests != NULL,
    };
    for (size_t i = 0; i < set->n_members; i++)
        plan->has_no_statistics |= !set->members[i].has_statistics;
    if (plan->settings.has_digests)
        status = lmq_sha256_need(err);
    if (status == LMQ_OK)
        status = add_records(plan, err);
    return status == LMQ_OK ? add_files(plan, err) : status;
}

enum lmq_status
lmq_copy_check_content(const struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(plan->checkpoint);

    if (container->digests == NULL ||
        memcmp(container->digests->content, plan->digests.content,
               LMQ_SHA256_SIZE) == 0)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is damaged: its digest is not that of its content");
    lmq_hint(err, "lmquant verify names all that is damaged");
    lmq_error_in(err, lmq_input_path(plan->checkpoint->files[0]));
    return LMQ_ERR_FORMAT;
}
