/*
 * export_llama2c.c - llama2.c's version 2, as its runq reads it.
 *
 * runq computes one model: a Llama with full rotary positions of base 10000,
 * an epsilon of 1e-5, no biases. Anything else would load and talk nonsense,
 * so it is refused. It steps through rows by whole groups, so the group must
 * divide them all: 2^n that does so share the scale of a larger group without
 * loss.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/threads/tasks.h"
#include "convert/export/export.h"
#include "convert/export/export_files.h"
#include "convert/export/export_vocab.h"
#include "convert/q8_rows.h"
#include "formats/model/hparams_fields.h"
#include "formats/model/hparams_json.h"
#include "quantize/tiles.h"

#define MAGIC 0x616b3432u
#define FILE_VERSION 2
#define HEADER_SIZE 256
/* Below this a scale takes as much as the values. */
#define GROUP_LEAST 4
#define GROUP_USUAL 64
/* Elements at a time. */
#define CHUNK ((size_t)1 << 17)

/* The sequence of the file. */
static const enum lmq_role norms[] = {LMQ_ROLE_ATTN_NORM, LMQ_ROLE_FFN_NORM,
                                      LMQ_ROLE_OUTPUT_NORM};
static const enum lmq_role matrices[] = {
    LMQ_ROLE_EMBEDDING, LMQ_ROLE_ATTN_Q,   LMQ_ROLE_ATTN_K,
    LMQ_ROLE_ATTN_V,    LMQ_ROLE_ATTN_OUT, LMQ_ROLE_FFN_GATE,
    LMQ_ROLE_FFN_DOWN,  LMQ_ROLE_FFN_UP,   LMQ_ROLE_HEAD,
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

struct item {
    const struct lmq_tensor *tensor;
    uint64_t offset;
};

struct export {
    struct lmq_checkpoint *checkpoint;
    struct lmq_notes *notes;
    struct lmq_output *output;
    struct item *items;
    size_t n_items, capacity;
    unsigned group;
    bool is_tied;
    uint64_t size;       /* of the file */
    size_t n_quantized;  /* matrices that were not int8 already */
};

/* ---- Is it runq's model? ---- */

/* The description that runq computes, of the same sizes. */
static void
describe_plain(const struct lmq_hparams *h, struct lmq_hparams *plain)
{
    lmq_hparams_init(plain);
    plain->n_layers = h->n_layers;
    plain->dim = h->dim;
    plain->hidden_dim = h->hidden_dim;
    plain->n_heads = h->n_heads;
    plain->n_kv_heads = h->n_kv_heads;
    plain->head_dim = h->head_dim;
    plain->vocab_size = h->vocab_size;
    plain->context = h->context;
    /* All that it sees. */
    if (h->sliding_window >= h->context)
        plain->sliding_window = h->sliding_window;
}

static char *
value_text(const struct lmq_field *field, const struct lmq_hparams *h)
{
    json_t *value = lmq_field_to_json(field, h);
    char *text = lmq_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);

    json_decref(value);
    return text;
}

static enum lmq_status
refuse(const struct lmq_field *field, const struct lmq_hparams *h,
       const struct lmq_hparams *plain, struct lmq_error *err)
{
    bool is_known = field->presence == LMQ_ALWAYS;
    char *is = value_text(field, h), *should = value_text(field, plain);
    enum lmq_status status = LMQ_ERR_UNSUPPORTED;

    if (is == NULL || should == NULL)
        status = lmq_fail_nomem(err);
    else
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "llama2.c cannot run this model: '%s' is %.60s%s%.60s",
                 field->key, is,
                 is_known ? ", it computes with " : ", which it does not know",
                 is_known ? should : "");
    if (status == LMQ_ERR_UNSUPPORTED)
        lmq_hint(err, ".to=safetensors can say what this model is, .to=gguf "
                      "if llama.cpp has it");
    free(is);
    free(should);
    return status;
}

static enum lmq_status
check_description(const struct lmq_checkpoint *checkpoint,
                  struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    struct lmq_hparams plain;

    if (!checkpoint->has_model)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "llama2.c needs a model, but lmquant does not "
                        "understand %s",
                        h->unsupported);
    describe_plain(h, &plain);
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++)
        if (!lmq_field_is_same(f, h, &plain, 0))
            return refuse(f, h, &plain, err);
    if ((uint64_t)h->n_heads * h->head_dim != h->dim)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "llama2.c cannot run this model: %u heads of %u are "
                        "not its %u dimensions",
                        h->n_heads, h->head_dim, h->dim);
    return LMQ_OK;
}

/* ---- The group ---- */

/* The largest power of two that divides all rows and the groups that they are
 * quantized in. */
static enum lmq_status
choose_group(struct export *export, struct lmq_error *err)
{
    unsigned group = LMQ_GROUP_MAX;

    for (size_t i = 0; i < export->n_items; i++) {
        const struct lmq_tensor *tensor = export->items[i].tensor;
        unsigned own = GROUP_USUAL;
        if (tensor->n_dims != 2)
            continue;
        if (lmq_q8_is_stored(tensor, LMQ_GROUP_MIN))
            own = tensor->quant.group_size;
        group = own < group ? own : group;
        while (group > 1 && tensor->n_cols % group != 0)
            group /= 2;
    }
    export->group = group;
    if (group >= GROUP_LEAST)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "llama2.c reads groups of elements that divide every row; "
                    "the rows of this model (%u and %u) have no common "
                    "divisor of %d or more",
                    export->checkpoint->hparams.dim,
                    export->checkpoint->hparams.hidden_dim, GROUP_LEAST);
}

/* ---- What goes where ---- */

static enum lmq_status
add_item(struct export *export, enum lmq_role role, int32_t layer,
         struct lmq_error *err)
{
    const struct lmq_tensor *tensor = lmq_checkpoint_find(
        export->checkpoint, role, LMQ_PART_WEIGHT, layer);

    if (role == LMQ_ROLE_HEAD && export->is_tied)
        return LMQ_OK;
    if (tensor == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "lacks a tensor that llama2.c needs");
    if (lmq_mem_grow(&export->items, &export->capacity, export->n_items + 1,
                     sizeof(*export->items)) != 0)
        return lmq_fail_nomem(err);
    export->items[export->n_items++] = (struct item){tensor, 0};
    return LMQ_OK;
}

static enum lmq_status
add_items(struct export *export, const enum lmq_role *roles, size_t n,
          struct lmq_error *err)
{
    uint32_t n_layers = export->checkpoint->hparams.n_layers;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        if (!lmq_role_is_per_layer(roles[i]))
            status = add_item(export, roles[i], -1, err);
        else
            for (uint32_t l = 0; l < n_layers && status == LMQ_OK; l++)
                status = add_item(export, roles[i], (int32_t)l, err);
    return status;
}

/* Sizes are those of a model that is open: they are far from wrapping, but
 * llama2.c itself counts the elements of a tensor in an int. */
static enum lmq_status
place_items(struct export *export, struct lmq_error *err)
{
    uint64_t at = HEADER_SIZE;

    for (size_t i = 0; i < export->n_items; i++) {
        const struct lmq_tensor *tensor = export->items[i].tensor;
        uint64_t n = tensor->n_elements;
        if (n > INT_MAX)
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "'%s' has %" PRIu64 " elements, more than llama2.c "
                            "can count",
                            tensor->name, n);
        export->items[i].offset = at;
        at += tensor->n_dims == 2 ? n + 4 * (n / export->group) : 4 * n;
    }
    export->size = at;
    return LMQ_OK;
}

/* A tensor that the description does not need would be lost: biases. */
static enum lmq_status
check_nothing_is_left(const struct export *export, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = export->checkpoint;
    bool has_alias = export->is_tied &&
                     lmq_checkpoint_find(checkpoint, LMQ_ROLE_HEAD,
                                         LMQ_PART_WEIGHT, -1) != NULL;

    if (checkpoint->n_tensors == export->n_items + has_alias)
        return LMQ_OK;
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        bool is_needed =
            lmq_tensor_is_head(tensor) && export->is_tied;
        for (size_t j = 0; j < export->n_items && !is_needed; j++)
            is_needed = export->items[j].tensor == tensor;
        if (!is_needed)
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "llama2.c has no place for the tensor '%s'",
                            tensor->name);
    }
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "llama2.c has no place for all of its tensors");
}

static enum lmq_status
plan(struct export *export, struct lmq_error *err)
{
    export->is_tied = lmq_checkpoint_is_tied(export->checkpoint);
    enum lmq_status status = check_description(export->checkpoint, err);
    if (status == LMQ_OK)
        status = add_items(export, norms, COUNT_OF(norms), err);
    if (status == LMQ_OK)
        status = add_items(export, matrices, COUNT_OF(matrices), err);
    if (status == LMQ_OK)
        status = check_nothing_is_left(export, err);
    if (status == LMQ_OK)
        status = choose_group(export, err);
    if (status == LMQ_OK)
        status = place_items(export, err);
    for (size_t i = 0; i < export->n_items && status == LMQ_OK; i++)
        export->n_quantized +=
            export->items[i].tensor->n_dims == 2 &&
            !lmq_q8_is_stored(export->items[i].tensor, export->group);
    return status;
}

/* ---- Writing ---- */

static enum lmq_status
write_header(const struct export *export, struct lmq_error *err)
{
    const struct lmq_hparams *h = &export->checkpoint->hparams;
    const uint32_t fields[] = {
        MAGIC,      FILE_VERSION,  h->dim,        h->hidden_dim, h->n_layers,
        h->n_heads, h->n_kv_heads, h->vocab_size, h->context,
    };
    unsigned char bytes[HEADER_SIZE] = {0};

    for (size_t i = 0; i < COUNT_OF(fields); i++)
        lmq_store_u32le(bytes + 4 * i, fields[i]);
    bytes[sizeof(fields)] = export->is_tied;
    lmq_store_u32le(bytes + sizeof(fields) + 1, export->group);
    return lmq_output_write(export->output, 0, bytes, sizeof(bytes), err);
}

static enum lmq_status
write_norm(const struct export *export, const struct item *item,
           struct lmq_error *err)
{
    size_t n = (size_t)item->tensor->n_elements;
    struct lmq_scratch scratch = {0};
    unsigned char *bytes = NULL;
    enum lmq_status status = LMQ_OK;

    float *x = lmq_mem_aligned(n, 2 * sizeof(*x));
    if (x == NULL)
        return lmq_fail_nomem(err);
    bytes = (unsigned char *)(x + n);
    status = lmq_checkpoint_read(export->checkpoint, item->tensor, 0, n, x,
                                 &scratch, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        lmq_store_f32le(bytes + 4 * i, x[i]);
        if (!isfinite(x[i]))
            status = lmq_fail(err, LMQ_ERR_NONFINITE, i,
                              "tensor '%s': NaN or infinity at element %zu",
                              item->tensor->stored_name, i);
    }
    if (status == LMQ_OK)
        status = lmq_output_write(export->output, item->offset, bytes, 4 * n,
                                  err);
    lmq_scratch_free(&scratch);
    lmq_mem_free(x);
    return status;
}

/* One thread's buffers. */
struct worker {
    struct lmq_q8_reader reader;
    int8_t *q, *moved_q;
    float *scales;
    unsigned char *moved_scales; /* as stored */
};

/* A matrix on its way. */
struct writing {
    const struct export *export;
    const struct item *item;
};

static enum lmq_status
write_rows(void *context, const struct lmq_range *rows, void *state,
           struct lmq_error *err)
{
    const struct writing *writing = context;
    const struct export *export = writing->export;
    const struct item *item = writing->item;
    const struct lmq_tensor *tensor = item->tensor;
    struct worker *worker = state;
    uint64_t row = rows->at;
    size_t n = rows->n;
    struct lmq_rope_rows pairs =
        lmq_rope_rows(&export->checkpoint->hparams, &tensor->place);
    size_t n_cols = (size_t)tensor->n_cols, n_groups = n_cols / export->group;
    enum lmq_status status = lmq_q8_read_rows(
        export->checkpoint, tensor, row, n, export->group, &worker->reader,
        worker->q, worker->scales, err);

    if (status != LMQ_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        size_t from = (size_t)lmq_rope_row_to_halves(&pairs, i);
        memcpy(worker->moved_q + i * n_cols, worker->q + from * n_cols,
               n_cols);
        for (size_t j = 0; j < n_groups; j++)
            lmq_store_f32le(worker->moved_scales + 4 * (i * n_groups + j),
                            worker->scales[from * n_groups + j]);
    }
    status = lmq_output_write(export->output, item->offset + row * n_cols,
                              worker->moved_q, n * n_cols, err);
    if (status == LMQ_OK)
        status = lmq_output_write(
            export->output,
            item->offset + tensor->n_elements + 4 * row * n_groups,
            worker->moved_scales, 4 * n * n_groups, err);
    return status;
}

/* Whole heads or tiles, and about CHUNK elements. */
static size_t
rows_at_a_time(const struct export *export, const struct lmq_tensor *tensor)
{
    struct lmq_rope_rows pairs =
        lmq_rope_rows(&export->checkpoint->hparams, &tensor->place);
    size_t unit = pairs.n > 0 ? pairs.head_dim : LMQ_TILE_ROWS;
    size_t n_units = CHUNK / (size_t)tensor->n_cols / unit;

    return unit * (n_units == 0 ? 1 : n_units);
}

static size_t
largest_piece(const struct export *export)
{
    size_t most = 1;

    for (size_t i = 0; i < export->n_items; i++) {
        const struct lmq_tensor *tensor = export->items[i].tensor;
        if (tensor->n_dims != 2)
            continue;
        size_t n = rows_at_a_time(export, tensor) * (size_t)tensor->n_cols;
        most = n > most ? n : most;
    }
    return most;
}

static bool
make_worker(void *state, const void *context)
{
    const struct export *export = context;
    struct worker *worker = state;
    size_t n = largest_piece(export), n_groups = n / export->group;

    worker->q = lmq_mem_aligned(n, 1);
    worker->moved_q = lmq_mem_aligned(n, 1);
    worker->scales = lmq_mem_aligned(n_groups, sizeof(float));
    worker->moved_scales = lmq_mem_aligned(n_groups, 4);
    return worker->q != NULL && worker->moved_q != NULL &&
           worker->scales != NULL && worker->moved_scales != NULL;
}

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_q8_reader_free(&worker->reader);
    lmq_mem_free(worker->q);
    lmq_mem_free(worker->moved_q);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->moved_scales);
}

static enum lmq_status
write_matrix(const struct export *export, const struct item *item,
             const struct lmq_workers *workers, struct lmq_error *err)
{
    struct writing writing = {.export = export, .item = item};
    const struct lmq_ranges ranges = {
        .whole = item->tensor->n_rows,
        .chunk = rows_at_a_time(export, item->tensor),
        .context = &writing,
        .piece = write_rows,
    };

    return lmq_tasks_over(&ranges, workers, err);
}

static enum lmq_status
write_all(const struct export *export, const struct lmq_export_options *options,
          const struct lmq_progress *progress, struct lmq_error *err)
{
    uint64_t n_total = 0, n_done = 0;
    struct lmq_workers workers;
    enum lmq_status status =
        lmq_workers_open(&workers, options->threads, LMQ_RANGES,
                         sizeof(struct worker), make_worker, clear_worker,
                         export, err);

    if (status == LMQ_OK)
        status = write_header(export, err);
    for (size_t i = 0; i < export->n_items; i++)
        n_total += export->items[i].tensor->n_elements;
    for (size_t i = 0; i < export->n_items && status == LMQ_OK; i++) {
        const struct item *item = &export->items[i];
        status = item->tensor->n_dims == 2
                     ? write_matrix(export, item, &workers, err)
                     : write_norm(export, item, err);
        n_done += item->tensor->n_elements;
        if (status == LMQ_OK)
            status = lmq_progress_report(progress, "exporting", n_done,
                                         n_total, err);
    }
    lmq_workers_close(&workers);
    return status;
}

/* ---- All of it ---- */

static void
add_notes(const struct export *export)
{
    const struct lmq_checkpoint *checkpoint = export->checkpoint;

    if (export->n_quantized > 0)
        lmq_notes_add(export->notes,
                      "%zu matrices were quantized for this, by search",
                      export->n_quantized);
    if (export->group < LMQ_GROUP_MIN)
        lmq_notes_add(export->notes,
                      "the rows of this model allow only groups of %u: "
                      "%.2g bits a weight",
                      export->group, 8 + 32 / (double)export->group);
    if (checkpoint->hparams.bos != 1)
        lmq_notes_add(export->notes,
                      "llama2.c begins every text with token 1, this "
                      "model with another or none");
}

static void
make_report(const struct export *export, const char *output,
            const struct lmq_vocab_file *vocab, json_t **report)
{
    lmq_export_add_file(report, output, export->size);
    if (vocab->path != NULL)
        lmq_export_add_file(report, vocab->path, vocab->bytes.n);
    add_notes(export);
    lmq_put(report, "type", json_string("q8"));
    lmq_put(report, "group_size", json_integer(export->group));
    lmq_put(report, "is_lossless", json_boolean(export->n_quantized == 0));
}

/* Both files or none; the model comes last: then all is there. */
static enum lmq_status
commit(struct export *export, const struct lmq_vocab_file *vocab,
       const struct lmq_progress *progress, json_t **report,
       struct lmq_error *err)
{
    struct lmq_output *outputs[2] = {NULL, export->output};
    enum lmq_status status = lmq_vocab_file_write(vocab, &outputs[0], err);

    if (status != LMQ_OK) {
        lmq_output_abort(export->output);
        return status;
    }
    size_t first = outputs[0] == NULL;
    return lmq_export_commit(export->checkpoint, progress, report,
                             export->notes, outputs + first, 2 - first, err);
}

enum lmq_status
lmq_export_llama2c(struct lmq_checkpoint *checkpoint, const char *output,
                   const struct lmq_export_options *options,
                   const struct lmq_progress *progress, json_t **report,
                   struct lmq_notes *notes, struct lmq_error *err)
{
    struct export export = {.checkpoint = checkpoint, .notes = notes};
    struct lmq_vocab_file vocab = {0};

    if (options->type != NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".type: llama2c is int8, there is no type to choose");
    enum lmq_status status = plan(&export, err);
    if (status == LMQ_OK)
        status = lmq_vocab_file_prepare(checkpoint, output, &vocab, notes,
                                        err);
    if (status == LMQ_OK)
        status = lmq_output_create(output, export.size, options->replaces != 0,
                                   &checkpoint->originals, &export.output,
                                   err);
    if (status == LMQ_OK)
        status = write_all(&export, options, progress, err);
    if (status == LMQ_OK) {
        make_report(&export, output, &vocab, report);
        status = commit(&export, &vocab, progress, report, err);
    } else {
        lmq_output_abort(export.output);
    }
    lmq_vocab_file_free(&vocab);
    free(export.items);
    return status;
}
