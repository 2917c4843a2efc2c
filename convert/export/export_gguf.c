/*
 * export_gguf.c - a checkpoint as GGUF version 3, as llama.cpp loads it.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/export/export.h"
#include "convert/export/export_files.h"
#include "convert/export/export_gguf_vocab.h"
#include "formats/checkpoint/member_name.h"
#include "formats/gguf/gguf_about.h"
#include "formats/gguf/gguf_special.h"
#include "quantize/group.h"

/* The version of the block types' layouts. */
#define QUANTIZATION_VERSION 2

/* ---- The front ---- */

/* What the input is called, without folders, suffix and number. */
static void
base_name(const char *path, char *name, size_t size)
{
    char copy[256];

    snprintf(copy, sizeof(copy), "%.*s", (int)sizeof(copy) - 1, path);
    size_t n = strlen(copy);
    while (n > 1 && copy[n - 1] == '/')
        copy[--n] = '\0';
    struct lmq_member_name member;
    bool is_member = lmq_member_name_parse(copy, &member);
    if (is_member)
        copy[member.n_stem] = '\0';
    char *slash = strrchr(copy, '/');
    char *start = slash == NULL ? copy : slash + 1;
    char *dot = strrchr(start, '.');
    if (!is_member && dot != NULL && dot != start)
        *dot = '\0';
    lmq_printable(name, size, start);
}

static const char *
title_of(const struct lmq_gguf_plan *plan, char *name, size_t size)
{
    const char *title = json_string_value(
        json_object_get(plan->checkpoint->about, "name"));

    if (title != NULL)
        return title;
    base_name(plan->checkpoint->path, name, size);
    return name;
}

static void
put_general(struct lmq_gguf_builder *builder, const struct lmq_gguf_plan *plan)
{
    const struct lmq_gguf_stored_type *type =
        &lmq_gguf_stored_types[plan->mostly];
    char name[128];
    const char *title = title_of(plan, name, sizeof(name));

    lmq_gguf_put_text(builder, "general.architecture", plan->family->gguf.name,
                      strlen(plan->family->gguf.name));
    lmq_gguf_put_text(builder, "general.type", "model", 5);
    lmq_gguf_put_text(builder, "general.name", title, strlen(title));
    lmq_gguf_write_about(builder, plan->checkpoint->about);
    lmq_gguf_put_u32(builder, "general.file_type", type->file_type);
    lmq_gguf_put_u32(builder, "general.quantization_version",
                     QUANTIZATION_VERSION);
}

static void
add_infos(struct lmq_gguf_builder *builder, const struct lmq_gguf_plan *plan)
{
    for (size_t i = 0; i < plan->n_targets; i++) {
        const struct lmq_gguf_target *target = &plan->targets[i];
        lmq_gguf_add_text(builder, target->name, strlen(target->name));
        lmq_gguf_add_u32(builder, target->n_dims);
        for (uint32_t d = target->n_dims; d > 0; d--)
            lmq_gguf_add_u64(builder, target->dims[d - 1]);
        lmq_gguf_add_u32(builder, lmq_gguf_stored_types[target->type].number);
        lmq_gguf_add_u64(builder, target->offset);
    }
}

/* The numbers of xIELU, which are no tensors there. */
static enum lmq_status
put_xielu(struct lmq_gguf_builder *builder, const struct lmq_gguf_plan *plan,
          struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint = plan->checkpoint;
    uint32_t n_layers = plan->written.n_layers;
    float *values = calloc(n_layers, sizeof(*values));
    struct lmq_scratch scratch = {0};
    enum lmq_status status = values == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t list = 0; list < LMQ_GGUF_XIELU_LISTS; list++) {
        for (uint32_t i = 0; i < n_layers && status == LMQ_OK; i++)
            status = lmq_checkpoint_read(
                checkpoint,
                lmq_checkpoint_find(checkpoint, lmq_gguf_xielu_role(list),
                                    LMQ_PART_WEIGHT, (int32_t)i),
                0, 1, &values[i], &scratch, err);
        if (status == LMQ_OK)
            lmq_gguf_write_xielu(builder, list, values, n_layers);
    }
    lmq_scratch_free(&scratch);
    free(values);
    return status;
}

static enum lmq_status
build_front(struct lmq_gguf_plan *plan, struct lmq_gguf_builder *builder,
            struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    char name[128];
    const struct lmq_gguf_vocab vocab = {
        .name = title_of(plan, name, sizeof(name)),
        .blobs = checkpoint->blobs,
        .n_blobs = checkpoint->n_blobs,
        .n_tokens = plan->written.vocab_size,
        .bos = plan->written.bos,
        .eos = plan->written.eos,
        .n_eos = plan->written.n_eos,
        .keeps_merges = (plan->family->gguf.keys & LMQ_GGUF_KINDS) != 0,
    };
    char key[64];

    lmq_gguf_build_begin(builder);
    put_general(builder, plan);
    lmq_gguf_write_keys(builder, plan->family, &plan->written);
    snprintf(key, sizeof(key), "%s.vocab_size", plan->family->gguf.name);
    lmq_gguf_put_u32(builder, key, plan->written.vocab_size);
    enum lmq_status status =
        lmq_gguf_put_vocab(builder, &vocab, plan->notes, err);
    if (status != LMQ_OK)
        lmq_error_around(err, lmq_checkpoint_tokenizer_path(checkpoint));
    if (status == LMQ_OK && plan->written.activation == LMQ_ACTIVATION_XIELU)
        status = put_xielu(builder, plan, err);
    add_infos(builder, plan);
    lmq_gguf_build_end(builder, plan->n_targets);
    if (status == LMQ_OK && builder->out.has_failed)
        return lmq_fail_nomem(err);
    return status;
}

/* ---- The report ---- */

static void
report_tensors(const struct lmq_gguf_plan *plan, json_t **report)
{
    json_t *rounded = json_array();
    double sum_sq = 0, err_sq = 0;

    for (size_t i = 0; i < plan->n_targets; i++) {
        const struct lmq_gguf_target *target = &plan->targets[i];
        double n = (double)target->n_rows * (double)target->n_cols;
        if (!(target->err_sq > 0))
            continue;
        sum_sq += target->sum_sq;
        err_sq += target->err_sq;
        json_t *item = json_object();
        lmq_put(&item, "name", lmq_json_text(target->name));
        lmq_put(&item, "type",
                json_string(lmq_gguf_stored_types[target->type].name));
        lmq_put(&item, "rms_error", lmq_json_number(sqrt(target->err_sq / n)));
        lmq_put(&item, "snr_db",
                lmq_json_number(lmq_quant_snr_db(
                    target->sum_sq, target->err_sq)));
        lmq_append(&rounded, item);
    }
    size_t n_rounded = json_array_size(rounded);
    if (n_rounded > 0)
        lmq_notes_add(plan->notes,
                      "%zu tensor%s rounded: %.1f dB signal to noise",
                      n_rounded, n_rounded == 1 ? " is" : "s are",
                      lmq_quant_snr_db(sum_sq, err_sq));
    lmq_put(report, "type",
            json_string(lmq_gguf_stored_types[plan->mostly].name));
    lmq_put(report, "architecture", json_string(plan->family->gguf.name));
    lmq_put(report, "is_lossless", json_boolean(json_array_size(rounded) == 0 &&
                                                !plan->rounds_decays));
    lmq_put(report, "tensors", lmq_json_size((uint64_t)plan->n_targets));
    lmq_put(report, "rounded", rounded);
}

/* ---- All of it ---- */

static enum lmq_status
write_file(struct lmq_gguf_plan *plan, const struct lmq_gguf_builder *front,
           const char *path, const struct lmq_export_options *options,
           const struct lmq_progress *progress, json_t **report,
           struct lmq_notes *notes, struct lmq_error *err)
{
    struct lmq_output *output;
    uint64_t data_at, size;

    if (!lmq_u64_align(front->out.n, LMQ_GGUF_DATA_ALIGN, &data_at) ||
        !lmq_u64_add(data_at, plan->data_size, &size))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0, "is too large");
    enum lmq_status status = lmq_output_create(
        path, size, options->replaces != 0, &plan->checkpoint->originals,
        &output, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_output_write(output, 0, front->out.bytes, front->out.n, err);
    if (status == LMQ_OK)
        status = lmq_gguf_write_data(plan, output, data_at, options->threads,
                                     progress, err);
    if (status != LMQ_OK) {
        lmq_output_abort(output);
        return status;
    }
    lmq_export_add_file(report, path, size);
    report_tensors(plan, report);
    return lmq_export_commit(plan->checkpoint, progress, report, notes,
                             &output, 1, err);
}

enum lmq_status
lmq_export_gguf(struct lmq_checkpoint *checkpoint, const char *output,
                const struct lmq_export_options *options,
                const struct lmq_progress *progress, json_t **report,
                struct lmq_notes *notes, struct lmq_error *err)
{
    struct lmq_gguf_plan *plan = calloc(1, sizeof(*plan));
    struct lmq_gguf_builder front = {0};

    if (plan == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_gguf_plan_make(checkpoint, options->type, plan, notes, err);
    if (status == LMQ_OK)
        status = build_front(plan, &front, err);
    if (status == LMQ_OK)
        status = write_file(plan, &front, output, options, progress, report,
                            notes, err);
    lmq_gguf_build_free(&front);
    lmq_gguf_plan_free(plan);
    free(plan);
    return status;
}
