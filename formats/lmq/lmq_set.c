/*
 * lmq_set.c - opens the members of a set and joins what is cut over them.
 *
 * Each member is a container by itself, and says of which set it is which
 * member. Here they are found, by their names, and compared; then the pieces
 * of each tensor must be alike and make its rows, each once.
 */
#include "config.h"

#include "formats/lmq/lmq_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "formats/checkpoint/member_name.h"

/* ---- Members ---- */

static enum lmq_status
add_member(struct lmq_checkpoint *checkpoint, struct lmq_set *set,
           const char *path, struct lmq_error *err)
{
    uint32_t index;

    if (lmq_mem_grow(&set->members, &set->members_capacity,
                     set->n_members + 1, sizeof(*set->members)) != 0)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_checkpoint_add_file(checkpoint, path, &index, err);
    if (status == LMQ_OK)
        status = lmq_container_load(checkpoint->files[index],
                                    &set->members[set->n_members], err);
    if (status == LMQ_OK)
        set->n_members++;
    else
        lmq_error_in(err, path);
    return status;
}

/* The name must say what the file says: it leads to the others. */
static enum lmq_status
check_name(const char *path, const struct lmq_superblock *sb,
           struct lmq_member_name *name, struct lmq_error *err)
{
    bool is_member = lmq_member_name_parse(path, name);

    if (is_member && name->member == sb->member &&
        name->n_members == sb->n_members)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 60,
             "is member %" PRIu32 " of a set of %" PRIu32 ", but its name is "
             "%s",
             sb->member, sb->n_members,
             is_member ? "that of another one" : "not that of a member");
    lmq_hint(err, "it was renamed, or copied over another one; its name ends "
                  "in -%05" PRIu32 "-of-%05" PRIu32 ".lmq",
             sb->member, sb->n_members);
    lmq_error_in(err, path);
    return LMQ_ERR_FORMAT;
}

/* The set's name, 16 bytes in each superblock, is made of all that its
 * conversion depends on. So members of two conversions fit together only if
 * both would have made the same files. */
static enum lmq_status
check_membership(const struct lmq_set *set, const char *path,
                 const char *named, struct lmq_error *err)
{
    const struct lmq_superblock *first = &set->members[0].superblock;
    const struct lmq_superblock *sb =
        &set->members[set->n_members - 1].superblock;
    struct lmq_member_name name;

    if (sb->n_members > 0 &&
        memcmp(sb->set_id, first->set_id, LMQ_SET_ID) == 0)
        return check_name(path, sb, &name, err);
    if (sb->n_members == 0)
        lmq_fail(err, LMQ_ERR_FORMAT, 60,
                 "is a whole model, not a member of the set of '%s'",
                 lmq_path_base(named));
    else
        lmq_fail(err, LMQ_ERR_FORMAT, 68,
                 "is a member of another set than '%s'", lmq_path_base(named));
    lmq_hint(err, "members of two conversions are mixed; keep one set in a "
                  "folder");
    lmq_error_in(err, path);
    return LMQ_ERR_FORMAT;
}

/* So many names tell enough; and a small file that claims thousands of others
 * does not make us look for all. */
#define MISSING_SHOWN 4

/* Before any of them is opened: the message should name all that lack, not the
 * first. */
static enum lmq_status
check_presence(const char *named, const struct lmq_member_name *name,
               struct lmq_error *err)
{
    char list[320] = "";
    unsigned n_missing = 0;
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 1; i <= name->n_members && status == LMQ_OK &&
                         n_missing < MISSING_SHOWN;
         i++) {
        char *path = lmq_member_name_make(named, name->n_stem, i,
                                          name->n_members, name->ending);
        if (path == NULL)
            return lmq_fail_nomem(err);
        if (!lmq_file_exists(path, &status, err) && status == LMQ_OK) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s%s",
                     n_missing++ == 0 ? "" : ", ", lmq_path_base(path));
        }
        free(path);
    }
    if (status != LMQ_OK || n_missing == 0)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "the set of %" PRIu32 " files lacks %s%s", name->n_members, list,
             n_missing == MISSING_SHOWN ? ", perhaps more" : "");
    lmq_hint(err, "all members stand in one folder; the copy may be "
                  "incomplete; what .part wrote becomes a set by lmquant "
                  "seal");
    lmq_error_in(err, named);
    return LMQ_ERR_FORMAT;
}

/* The named one came first; they stand in their order. */
static void
put_in_place(struct lmq_checkpoint *checkpoint, struct lmq_set *set, size_t at)
{
    struct lmq_input *file = checkpoint->files[0];
    struct lmq_container member = set->members[0];

    memmove(checkpoint->files, checkpoint->files + 1,
            at * sizeof(struct lmq_input *));
    memmove(set->members, set->members + 1, at * sizeof(member));
    checkpoint->files[at] = file;
    set->members[at] = member;
}

/* Any member leads to all: its name says where the others are, its superblock
 * how many there must be. */
static enum lmq_status
open_members(struct lmq_checkpoint *checkpoint, struct lmq_set *set,
             struct lmq_error *err)
{
    const char *named = checkpoint->path;
    const struct lmq_superblock own = set->members[0].superblock;
    struct lmq_member_name name;
    enum lmq_status status = check_name(named, &own, &name, err);

    if (status == LMQ_OK)
        status = check_presence(named, &name, err);
    for (uint32_t i = 1; i <= own.n_members && status == LMQ_OK; i++) {
        if (i == own.member)
            continue;
        char *path = lmq_member_name_make(named, name.n_stem, i,
                                          own.n_members, name.ending);
        status = path == NULL ? lmq_fail_nomem(err)
                              : add_member(checkpoint, set, path, err);
        if (status == LMQ_OK)
            status = check_membership(set, path, named, err);
        free(path);
    }
    if (status == LMQ_OK)
        put_in_place(checkpoint, set, own.member - 1);
    return status;
}

/* ---- Pieces ---- */

/* By names, then from the first row on. */
static int
compare_pieces(const void *a, const void *b)
{
    const struct lmq_slice *x = a, *y = b;
    int order = strcmp(x->record->name, y->record->name);

    if (order != 0)
        return order;
    if (x->record->first_row != y->record->first_row)
        return x->record->first_row < y->record->first_row ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

/* In all but their rows. */
static bool
is_alike(const struct lmq_record *a, const struct lmq_record *b)
{
    return lmq_place_compare(&a->place, &b->place) == 0 &&
           a->encoding == b->encoding && strcmp(a->unknown, b->unknown) == 0 &&
           a->dtype == b->dtype && a->source_dtype == b->source_dtype &&
           a->layout == b->layout && a->quant.bits == b->quant.bits &&
           a->quant.scales == b->quant.scales &&
           a->quant.rotation == b->quant.rotation &&
           a->quant.group_size == b->quant.group_size &&
           !(a->quant.multiplier < b->quant.multiplier) &&
           !(a->quant.multiplier > b->quant.multiplier) &&
           a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
}

/* The pieces of one name: alike, and together each row once. */
static enum lmq_status
check_pieces(const struct lmq_slice *pieces, size_t n, struct lmq_error *err)
{
    const struct lmq_record *first = pieces[0].record;
    uint64_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const struct lmq_record *record = pieces[i].record;
        if (!is_alike(record, first))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' is another one in member %" PRIu32
                            " of the set than in member %" PRIu32
                            " (shape, type or groups)",
                            first->name, pieces[i].member + 1,
                            pieces[0].member + 1);
        /* A tensor without rows is one piece that says so; beside others such
         * a piece has no reason. */
        if (record->first_row < at || (i > 0 && record->n_rows == 0))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "rows of tensor '%s' stand twice in the set, in "
                            "members %" PRIu32 " and %" PRIu32,
                            first->name, pieces[i - 1].member + 1,
                            pieces[i].member + 1);
        if (record->first_row > at)
            break;
        at += record->n_rows;
    }
    if (first->encoding != LMQ_ENCODING_ALIAS && at != lmq_record_rows(first))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "row %" PRIu64 " of tensor '%s' stands in no member "
                        "of the set",
                        at, first->name);
    return LMQ_OK;
}

/* Of a file alone each record is a tensor; equal names are found later. */
static enum lmq_status
join_pieces(struct lmq_set *set, struct lmq_error *err)
{
    bool is_set = set->members[0].superblock.n_members > 0;
    enum lmq_status status = LMQ_OK;

    if (is_set && set->n_pieces > 0)
        qsort(set->pieces, set->n_pieces, sizeof(*set->pieces),
              compare_pieces);
    for (size_t i = 0, n; i < set->n_pieces && status == LMQ_OK; i += n) {
        const struct lmq_slice *first = &set->pieces[i];
        for (n = 1; is_set && i + n < set->n_pieces; n++)
            if (strcmp(first->record->name, first[n].record->name) != 0)
                break;
        if (is_set)
            status = check_pieces(first, n, err);
        struct lmq_whole *whole = &set->wholes[set->n_wholes++];
        *whole = (struct lmq_whole){first, n, whole};
    }
    return status;
}

static int
compare_wholes(const void *a, const void *b)
{
    const struct lmq_whole *x = a, *y = b;

    return strcmp(x->pieces->record->name, y->pieces->record->name);
}

/* An alias names a record of its own member: a piece of what it is. */
static enum lmq_status
find_target(const struct lmq_set *set, struct lmq_whole *whole,
            struct lmq_error *err)
{
    const struct lmq_slice *piece = whole->pieces;
    const struct lmq_container *member = &set->members[piece->member];
    uint32_t alias = piece->record->alias;

    if (alias == LMQ_NO_ALIAS)
        return LMQ_OK;
    if (member->superblock.n_members == 0) {
        whole->target = &set->wholes[alias];
        return LMQ_OK;
    }
    const struct lmq_slice key_piece = {&member->records[alias], 0};
    const struct lmq_whole key = {.pieces = &key_piece};
    whole->target = bsearch(&key, set->wholes, set->n_wholes, sizeof(key),
                            compare_wholes);
    return whole->target != NULL
               ? LMQ_OK
               : lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "tensor '%s' is an alias of nothing",
                          piece->record->name);
}

/* Every member says how many tensors the whole has. */
static enum lmq_status
check_count(const struct lmq_set *set, struct lmq_error *err)
{
    for (size_t i = 0; i < set->n_members; i++) {
        const json_t *about = json_object_get(set->members[i].metadata, "set");
        json_int_t n = json_integer_value(json_object_get(about, "tensors"));
        if (about != NULL && (json_int_t)set->n_wholes != n)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the set has %zu tensors, but its member %zu says "
                            "%" JSON_INTEGER_FORMAT,
                            set->n_wholes, i + 1, n);
    }
    return LMQ_OK;
}

/* Records of all members in one array, sorted, so that pieces of a tensor are
 * neighbours. The checks cost n log n whatever a hostile set claims. */
static enum lmq_status
join(struct lmq_set *set, struct lmq_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n_members; i++)
        n += set->members[i].n_records;
    set->pieces = calloc(n + 1, sizeof(*set->pieces));
    set->wholes = calloc(n + 1, sizeof(*set->wholes));
    if (set->pieces == NULL || set->wholes == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < set->n_members; i++)
        for (size_t j = 0; j < set->members[i].n_records; j++)
            set->pieces[set->n_pieces++] = (struct lmq_slice){
                &set->members[i].records[j], (uint32_t)i};
    enum lmq_status status = join_pieces(set, err);
    for (size_t i = 0; i < set->n_wholes && status == LMQ_OK; i++)
        status = find_target(set, &set->wholes[i], err);
    return status == LMQ_OK ? check_count(set, err) : status;
}

/* ---- All of it ---- */

enum lmq_status
lmq_set_open(struct lmq_checkpoint *checkpoint, struct lmq_set *set,
             struct lmq_error *err)
{
    enum lmq_status status =
        add_member(checkpoint, set, checkpoint->path, err);

    if (status == LMQ_OK && set->members[0].superblock.n_members > 0)
        status = open_members(checkpoint, set, err);
    return status == LMQ_OK ? join(set, err) : status;
}

void
lmq_set_free(struct lmq_set *set)
{
    for (size_t i = 0; i < set->n_members; i++)
        lmq_container_free(&set->members[i]);
    free(set->members);
    free(set->pieces);
    free(set->wholes);
    *set = (struct lmq_set){0};
}

/* ---- Behind a checkpoint ---- */

const struct lmq_set *
lmq_checkpoint_set(const struct lmq_checkpoint *checkpoint)
{
    return checkpoint->state;
}

const struct lmq_container *
lmq_checkpoint_container(const struct lmq_checkpoint *checkpoint)
{
    return &lmq_checkpoint_set(checkpoint)->members[0];
}

const char *
lmq_set_stored_name(const struct lmq_set *set, const struct lmq_slice *piece)
{
    const struct lmq_container *member = &set->members[piece->member];
    const json_t *names =
        json_object_get(json_object_get(member->metadata, "provenance"),
                        "stored_names");

    return json_string_value(json_array_get(
        names, (size_t)(piece->record - member->records)));
}

const struct lmq_whole *
lmq_set_whole_of(const struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor)
{
    return lmq_checkpoint_set(checkpoint)->wholes[tensor->number].target;
}

/* The piece that has a row, by halves: pieces are sorted and leave nothing
 * out. */
const struct lmq_slice *
lmq_whole_find(const struct lmq_whole *whole, uint64_t row)
{
    size_t low = 0, high = whole->n_pieces;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (whole->pieces[middle].record->first_row <= row)
            low = middle;
        else
            high = middle;
    }
    return &whole->pieces[low];
}

enum lmq_status
lmq_set_verify_tensor(const struct lmq_checkpoint *checkpoint,
                      const struct lmq_tensor *tensor, struct lmq_error *err)
{
    const struct lmq_whole *whole = lmq_set_whole_of(checkpoint, tensor);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < whole->n_pieces && status == LMQ_OK; i++)
        status = lmq_record_verify(checkpoint->files[whole->pieces[i].member],
                                   whole->pieces[i].record, err);
    return status;
}
