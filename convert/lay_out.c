/*
 * lay_out.c - from the records of a plan to files.
 *
 * All sizes are known before the first byte is written: the metadata are made
 * with checksums of zeros, and made again when these are known.
 */
#include "config.h"

#include "convert/lay_out.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/report.h"
#include "convert/members.h"
#include "convert/set_name.h"
#include "formats/model/hparams_json.h"

/* ---- Metadata ---- */

static json_t *
describe_sources(const struct lmq_plan *plan)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    json_t *sources = json_array();

    for (size_t i = 0; i < checkpoint->n_files; i++) {
        const char *path = lmq_input_path(checkpoint->files[i]);
        json_t *source = json_object();
        lmq_put(&source, "name", lmq_json_text(lmq_path_base(path)));
        lmq_put(&source, "size",
                lmq_json_size(lmq_input_size(checkpoint->files[i])));
        lmq_put(&source, "crc32", lmq_json_crc(plan->source_crcs[i]));
        lmq_append(&sources, source);
    }
    return sources;
}

static json_t *
stored_names(const struct lmq_plan *plan, const struct lmq_plan_member *member)
{
    json_t *names = json_array();

    for (size_t i = 0; i < member->n_records; i++)
        lmq_append(&names, lmq_json_text(
                               plan->sources[member->origins[i]]->stored_name));
    return names;
}

static json_t *
describe_provenance(const struct lmq_plan *plan,
                    const struct lmq_plan_member *member)
{
    json_t *provenance = json_object();

    lmq_put(&provenance, "tool", json_string("lmquant " PACKAGE_VERSION));
    lmq_put(&provenance, "format", json_string(plan->checkpoint->format->name));
    lmq_put(&provenance, "sources", describe_sources(plan));
    lmq_put(&provenance, "stored_names", stored_names(plan, member));
    return provenance;
}

static json_t *
describe(const struct lmq_plan *plan, const struct lmq_plan_member *member)
{
    const struct lmq_convert_settings *settings = &plan->settings;
    const struct lmq_hparams *hparams = &plan->checkpoint->hparams;
    json_t *metadata = json_object();
    json_t *quantization = json_object();
    if (plan->checkpoint->about != NULL)
        lmq_put(&metadata, "about", json_incref(plan->checkpoint->about));

    if (plan->checkpoint->has_model) {
        lmq_put(&metadata, "model", lmq_hparams_to_json(hparams));
    } else {
        lmq_put(&metadata, "architecture",
                lmq_json_text(hparams->architecture));
        lmq_put(&metadata, "unsupported", lmq_json_text(hparams->unsupported));
    }
    lmq_put_name(&quantization, "method", lmq_method_names,
                 settings->quant.method);
    lmq_put(&quantization, "group_size",
            json_integer(settings->quant.group_size));
    lmq_put_name(&quantization, "scales", lmq_scales_names,
                 settings->quant.scales);
    if (settings->quant.rotation != LMQ_ROTATION_NONE)
        lmq_put(&quantization, "rotate", json_true());
    lmq_put_name(&quantization, "layout", lmq_layout_names, settings->layout);
    lmq_put(&quantization, "on_nonfinite",
            json_string(settings->zeroes ? "zero" : "fail"));
    if (plan->calibration != NULL)
        lmq_put(&quantization, "calibration", json_incref(plan->calibration));
    lmq_put(&metadata, "quantization", quantization);
    if (!lmq_recipe_is_plain(&settings->recipe))
        lmq_put(&metadata, "recipe", lmq_recipe_to_json(&settings->recipe));
    /* 16 bits halve the divergence and cost nothing in decoding. */
    lmq_put(&metadata, "recommended", json_pack("{s:s}", "activations", "q16"));
    lmq_put(&metadata, "tie_rule", json_string(plan->tie_rule));
    lmq_put(&metadata, "provenance", describe_provenance(plan, member));
    return metadata;
}

/* What a container says of itself, but for the files that it is. */
static json_t *
describe_copy(const struct lmq_plan *plan, const struct lmq_plan_member *member)
{
    json_t *metadata = json_object(), *provenance = json_object(), *value;
    const char *key;

    json_object_foreach(plan->copied, key, value)
        if (strcmp(key, "set") != 0 && strcmp(key, "provenance") != 0)
            lmq_put(&metadata, key, json_incref(value));
    json_object_foreach(json_object_get(plan->copied, "provenance"), key,
                        value)
        if (strcmp(key, "stored_names") != 0)
            lmq_put(&provenance, key, json_incref(value));
    lmq_put(&provenance, "stored_names", stored_names(plan, member));
    lmq_put(&metadata, "provenance", provenance);
    return metadata;
}

/* The first file says what there is to say of the whole; each member of a set
 * says which one it is, and what its tensors were called. */
static char *
metadata_text(const struct lmq_plan *plan,
              const struct lmq_plan_member *member)
{
    const struct lmq_layout_plan *layout = &member->layout;
    json_t *metadata;

    if (layout->member <= 1) {
        metadata = plan->copied != NULL ? describe_copy(plan, member)
                                        : describe(plan, member);
    } else {
        json_t *provenance = json_object();
        metadata = json_object();
        lmq_put(&provenance, "stored_names", stored_names(plan, member));
        lmq_put(&metadata, "provenance", provenance);
    }
    if (layout->n_members > 0)
        lmq_put(&metadata, "set",
                lmq_metadata_make_set(layout, plan->n_records));
    char *text = lmq_json_dump(metadata, JSON_COMPACT | JSON_SORT_KEYS |
                                          JSON_REAL_PRECISION(17));
    json_decref(metadata);
    return text;
}

static enum lmq_status
write_metadata(const struct lmq_plan *plan, struct lmq_plan_member *member,
               struct lmq_error *err)
{
    char *text = metadata_text(plan, member);

    if (text == NULL)
        return lmq_fail_nomem(err);
    free(member->metadata);
    member->metadata = text;
    member->contents[0] = (struct lmq_content){
        .type = LMQ_SECTION_METADATA,
        .name = "",
        .bytes = (const unsigned char *)text,
        .size = strlen(text),
    };
    return LMQ_OK;
}

/* The name of a set is made of all the rest, so it comes last. */
enum lmq_status
lmq_plan_finish_metadata(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    bool is_set = plan->members[0].layout.n_members > 0;
    enum lmq_status status = LMQ_OK;

    if (plan->copied == NULL)
        for (size_t i = 0; i < checkpoint->n_files && status == LMQ_OK; i++)
            status = lmq_input_digest(checkpoint->files[i],
                                      &plan->source_crcs[i], err);
    if (status == LMQ_OK)
        status = write_metadata(plan, &plan->members[0], err);
    if (status == LMQ_OK && is_set)
        status = lmq_plan_name_set(plan, err);
    for (uint32_t i = 0; is_set && i < plan->n_members && status == LMQ_OK; i++)
        status = write_metadata(plan, &plan->members[i], err);
    return status;
}

/* ---- Files ---- */

/* What a file needs at most besides its tensors, before these are known:
 * everything may begin up to LMQ_ALIGN bytes later. */
static enum lmq_status
find_frame(const struct lmq_plan *plan, uint32_t member, uint64_t *frame,
           struct lmq_error *err)
{
    const struct lmq_plan_member none = {
        .layout = {.member = member, .n_members = LMQ_MAX_MEMBERS}};
    size_t n_files = member == 1 ? plan->n_files : 0;
    char *text = metadata_text(plan, &none);

    if (text == NULL)
        return lmq_fail_nomem(err);
    /* The superblock; metadata, statistics, directory, table; trailer. */
    *frame = plan->settings.alignment + LMQ_SUPERBLOCK_SIZE + strlen(text) +
             LMQ_STATISTICS_HEADER + LMQ_DIRECTORY_HEADER +
             3 * LMQ_SECTION_SIZE + 4 * LMQ_ALIGN + LMQ_TRAILER_SIZE;
    if (plan->settings.has_digests)
        *frame += LMQ_DIGESTS_HEADER + LMQ_SECTION_SIZE + LMQ_ALIGN;
    free(text);
    for (size_t i = 0; i < n_files; i++)
        *frame += plan->files[i].size + LMQ_SECTION_SIZE + LMQ_ALIGN;
    return LMQ_OK;
}

static enum lmq_status
make_contents(const struct lmq_plan *plan, struct lmq_plan_member *member,
              struct lmq_error *err)
{
    size_t n_files = member->layout.member <= 1 ? plan->n_files : 0;

    if (member->contents == NULL)
        member->contents = calloc(n_files + 1, sizeof(*member->contents));
    if (member->contents == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n_files; i++)
        member->contents[i + 1] = plan->files[i];
    member->n_contents = n_files + 1;
    return write_metadata(plan, member, err);
}

static enum lmq_status
make_all_contents(struct lmq_plan *plan, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++)
        status = make_contents(plan, &plan->members[i], err);
    return status;
}

/* Chunks are of what stands in a file. */
static enum lmq_status
make_digests(struct lmq_plan *plan, struct lmq_error *err)
{
    enum lmq_status status =
        lmq_digests_make(plan->records, plan->n_records, LMQ_CHUNK_LOG2,
                         &plan->digests, err);

    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++) {
        struct lmq_plan_member *member = &plan->members[i];
        member->layout.digests = &member->digests;
        status = lmq_digests_make(member->records, member->n_records,
                                  LMQ_CHUNK_LOG2, &member->digests, err);
    }
    return status;
}

static enum lmq_status
lay_out_members(struct lmq_plan *plan, struct lmq_error *err)
{
    bool is_set = plan->settings.shard_size > 0 || plan->settings.n_parts > 0;
    enum lmq_status status;

    for (uint32_t i = 0; i < plan->n_members; i++)
        plan->members[i].layout = (struct lmq_layout_plan){
            .alignment = plan->settings.alignment,
            .member = is_set ? i + 1 : 0,
            .n_members = is_set ? plan->n_members : 0,
            .has_no_statistics = plan->has_no_statistics,
        };
    status = make_all_contents(plan, err);
    if (status == LMQ_OK && plan->settings.has_digests)
        status = make_digests(plan, err);
    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++) {
        struct lmq_plan_member *member = &plan->members[i];
        status = lmq_write_plan(member->records, member->n_records,
                                member->contents, member->n_contents,
                                &member->layout, err);
    }
    return status;
}

enum lmq_status
lmq_plan_lay_out(struct lmq_plan *plan, struct lmq_error *err)
{
    uint64_t frames[2];
    enum lmq_status status = LMQ_OK;

    plan->source_crcs = calloc(plan->checkpoint->n_files + 1,
                               sizeof(*plan->source_crcs));
    if (plan->source_crcs == NULL)
        return lmq_fail_nomem(err);
    status = find_frame(plan, 1, &frames[0], err);
    if (status == LMQ_OK)
        status = find_frame(plan, LMQ_MAX_MEMBERS, &frames[1], err);
    if (status == LMQ_OK)
        status = lmq_plan_share_out(plan, frames, err);
    return status == LMQ_OK ? lay_out_members(plan, err) : status;
}
