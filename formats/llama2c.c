/*
 * llama2c.c - reads the checkpoints of llama2.c: version 0 (no magic) and
 * version 1 ("ak42"), float32; version 2, int8.
 *
 * There are no names in these files: the header fixes the sequence of arrays,
 * and so the size of the file, which must be exactly that.
 *
 * In version 2 a matrix is its int8 values and then a float32 scale for each
 * group. Its exporter cuts groups from the flattened matrix, so they cross
 * rows whose length is no multiple of the group; llama2.c's own runq steps
 * from row to row by whole groups and misreads those.
 *
 * The headers, of 32-bit integers:
 *
 *     version 0   7 fields; the sign of the vocabulary's size says whether the
 *                 head is the embedding (positive: it is)
 *     version 1   "ak42", the version, 7 fields; a byte: the head is the
 *                 embedding; zeros up to 256 bytes
 *     version 2   the same; behind that byte the group size
 *
 * The fields are dim, hidden dim, layers, heads, heads of keys and values,
 * size of the vocabulary, context. Version 0 has two arrays of rotary tables
 * behind the last norm, from the days before they were computed; they are
 * skipped.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files/path.h"
#include "base/size.h"
#include "formats/formats.h"
#include "formats/model/hparams_check.h"

#define MAGIC 0x616b3432u /* "ak42" as a little-endian number */
#define HEADER_V0 28
#define HEADER_V1 256
#define N_FIELDS 7
#define VERSION_MAX 2
/* Bytes in the header, behind the fields. */
#define SHARED_AT (8 + 4 * N_FIELDS)
#define GROUP_AT (SHARED_AT + 1)

/* What llama2.c's own programs compute with. */
#define NORM_EPS 1e-5
#define BOS 1
#define EOS 2

struct header {
    uint32_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab, context;
    bool is_tied;
    int version;
    uint32_t group; /* elements that share a scale; 0: floats */
};

/* One array: a role, for all layers one after the other where it has one. */
struct array {
    enum lmq_role role;
    const char *stored_name; /* "#" stands for the layer */
};

#define LAYERED(role, name) {role, "layers.#." name ".weight"}

static const struct array order_v0[] = {
    {LMQ_ROLE_EMBEDDING, "tok_embeddings.weight"},
    LAYERED(LMQ_ROLE_ATTN_NORM, "attention_norm"),
    LAYERED(LMQ_ROLE_ATTN_Q, "attention.wq"),
    LAYERED(LMQ_ROLE_ATTN_K, "attention.wk"),
    LAYERED(LMQ_ROLE_ATTN_V, "attention.wv"),
    LAYERED(LMQ_ROLE_ATTN_OUT, "attention.wo"),
    LAYERED(LMQ_ROLE_FFN_NORM, "ffn_norm"),
    LAYERED(LMQ_ROLE_FFN_GATE, "feed_forward.w1"),
    LAYERED(LMQ_ROLE_FFN_DOWN, "feed_forward.w2"),
    LAYERED(LMQ_ROLE_FFN_UP, "feed_forward.w3"),
    {LMQ_ROLE_OUTPUT_NORM, "norm.weight"},
    {LMQ_ROLE_OTHER, NULL}, /* the rotary tables */
    {LMQ_ROLE_HEAD, "output.weight"},
};

/* Of version 2 too. */
static const struct array order_v1[] = {
    LAYERED(LMQ_ROLE_ATTN_NORM, "attention_norm"),
    LAYERED(LMQ_ROLE_FFN_NORM, "ffn_norm"),
    {LMQ_ROLE_OUTPUT_NORM, "norm.weight"},
    {LMQ_ROLE_EMBEDDING, "tok_embeddings.weight"},
    LAYERED(LMQ_ROLE_ATTN_Q, "attention.wq"),
    LAYERED(LMQ_ROLE_ATTN_K, "attention.wk"),
    LAYERED(LMQ_ROLE_ATTN_V, "attention.wv"),
    LAYERED(LMQ_ROLE_ATTN_OUT, "attention.wo"),
    LAYERED(LMQ_ROLE_FFN_GATE, "feed_forward.w1"),
    LAYERED(LMQ_ROLE_FFN_DOWN, "feed_forward.w2"),
    LAYERED(LMQ_ROLE_FFN_UP, "feed_forward.w3"),
    {LMQ_ROLE_HEAD, "output.weight"},
};

/* ---- Header ---- */

static bool
is_within(int32_t value, int32_t most)
{
    return value >= 1 && value <= most;
}

/* Whether seven numbers can be a model. Anything that is no llama2.c file
 * fails here: text, for one, is far too large a number. */
static bool
parse_fields(const unsigned char *p, struct header *header)
{
    int32_t f[N_FIELDS];

    for (int i = 0; i < N_FIELDS; i++)
        f[i] = lmq_load_i32le(p + 4 * i);
    if (f[5] == INT32_MIN)
        return false;
    *header = (struct header){
        .dim = (uint32_t)f[0],
        .hidden_dim = (uint32_t)f[1],
        .n_layers = (uint32_t)f[2],
        .n_heads = (uint32_t)f[3],
        .n_kv_heads = (uint32_t)f[4],
        .vocab = (uint32_t)(f[5] < 0 ? -f[5] : f[5]),
        .context = (uint32_t)f[6],
        .is_tied = f[5] > 0,
    };
    return is_within(f[0], LMQ_MAX_WIDTH) && is_within(f[1], LMQ_MAX_WIDTH) &&
           is_within(f[2], LMQ_MAX_LAYERS) && is_within(f[3], LMQ_MAX_HEADS) &&
           is_within(f[4], f[3]) && f[5] != 0 &&
           header->vocab <= LMQ_MAX_WIDTH && is_within(f[6], LMQ_MAX_CONTEXT);
}

static bool
has_magic(const struct lmq_probe *probe)
{
    return probe->n_head >= 4 && lmq_load_u32le(probe->head) == MAGIC;
}

/* Version 0 has no magic: any file whose first numbers are possible sizes
 * could be one. Whether it is, its exact length decides when it is opened. */
static bool
probe_llama2c(const struct lmq_probe *probe)
{
    struct header header;

    return !probe->is_folder &&
           (has_magic(probe) || (probe->n_head >= HEADER_V0 &&
                                 parse_fields(probe->head, &header)));
}

static enum lmq_status
read_flags(const unsigned char *bytes, struct header *header,
           struct lmq_error *err)
{
    unsigned char shared = bytes[SHARED_AT];
    int32_t group = lmq_load_i32le(bytes + GROUP_AT);

    if (shared > 1)
        return lmq_fail(err, LMQ_ERR_FORMAT, SHARED_AT,
                        "the flag for a shared classifier is %d, expected 0 "
                        "or 1",
                        shared);
    header->is_tied = shared == 1;
    if (header->version < 2)
        return LMQ_OK;
    if (group < 1)
        return lmq_fail(err, LMQ_ERR_FORMAT, GROUP_AT,
                        "the group size is %d, expected 1 or more",
                        (int)group);
    header->group = (uint32_t)group;
    return LMQ_OK;
}

static enum lmq_status
read_v1_header(struct lmq_input *file, struct header *header,
               struct lmq_error *err)
{
    unsigned char bytes[HEADER_V1];
    enum lmq_status status =
        lmq_input_read(file, 0, bytes, sizeof(bytes), err);

    if (status != LMQ_OK)
        return status;
    int32_t version = lmq_load_i32le(bytes + 4);
    if (version < 1 || version > VERSION_MAX)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 4,
                        "is a llama2.c file of version %d, expected 0 to %d",
                        (int)version, VERSION_MAX);
    if (!parse_fields(bytes + 8, header))
        return lmq_fail(err, LMQ_ERR_FORMAT, 8,
                        "the header's sizes make no model (dim %d, hidden %d, "
                        "layers %d, heads %d, kv heads %d, vocabulary %d, "
                        "context %d)",
                        lmq_load_i32le(bytes + 8), lmq_load_i32le(bytes + 12),
                        lmq_load_i32le(bytes + 16), lmq_load_i32le(bytes + 20),
                        lmq_load_i32le(bytes + 24), lmq_load_i32le(bytes + 28),
                        lmq_load_i32le(bytes + 32));
    header->version = version;
    return read_flags(bytes, header, err);
}

/* What the header does not say is the same in all of these models, since it
 * stands in the program. */
static enum lmq_status
fill_hparams(const struct header *header, struct lmq_hparams *hparams,
             struct lmq_error *err)
{
    snprintf(hparams->architecture, sizeof(hparams->architecture), "llama");
    hparams->dim = header->dim;
    hparams->hidden_dim = header->hidden_dim;
    hparams->n_layers = header->n_layers;
    hparams->n_heads = header->n_heads;
    hparams->n_kv_heads = header->n_kv_heads;
    hparams->head_dim = header->dim / header->n_heads;
    hparams->vocab_size = header->vocab;
    hparams->context = header->context;
    hparams->norm_eps = NORM_EPS;
    hparams->tie = header->is_tied ? LMQ_TIE_YES : LMQ_TIE_NO;
    hparams->bos = BOS;
    hparams->eos[hparams->n_eos++] = EOS;
    if (header->dim % header->n_heads != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "dim %u is no multiple of the %u heads", header->dim,
                        header->n_heads);
    return lmq_hparams_check(hparams, err);
}

/* ---- Tensors ---- */

/* Norms are the only vectors. */
static void
shape_of(enum lmq_role role, const struct lmq_hparams *h, uint64_t dims[2],
         size_t *n_dims)
{
    uint64_t kv = (uint64_t)h->n_kv_heads * h->head_dim;

    *n_dims = 2;
    dims[0] = dims[1] = h->dim;
    switch (role) {
    case LMQ_ROLE_EMBEDDING:
    case LMQ_ROLE_HEAD:
        dims[0] = h->vocab_size;
        break;
    case LMQ_ROLE_ATTN_K:
    case LMQ_ROLE_ATTN_V:
        dims[0] = kv;
        break;
    case LMQ_ROLE_FFN_GATE:
    case LMQ_ROLE_FFN_UP:
        dims[0] = h->hidden_dim;
        break;
    case LMQ_ROLE_FFN_DOWN:
        dims[1] = h->hidden_dim;
        break;
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_OUT:
        break;
    default:
        *n_dims = 1;
    }
}

/* int8 values, then the scales of the flattened matrix. */
static enum lmq_status
set_quantized(struct lmq_tensor *tensor, uint32_t group, struct lmq_error *err)
{
    if (tensor->n_elements % group != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, GROUP_AT,
                        "the group size %u does not divide the %" PRIu64
                        " elements of '%s'",
                        group, tensor->n_elements, tensor->stored_name);
    tensor->encoding = "q8";
    tensor->size_bytes =
        tensor->n_elements + 4 * (tensor->n_elements / group);
    tensor->bits_per_element =
        8 * (double)tensor->size_bytes / (double)tensor->n_elements;
    tensor->number = group;
    if (lmq_group_size_is_valid(group) && tensor->n_cols % group == 0)
        tensor->quant = (struct lmq_quant){
            .bits = LMQ_BITS_MAX,
            .group_size = group,
            .scales = LMQ_SCALES_F32,
            .multiplier = 1,
        };
    return LMQ_OK;
}

/* At *at, which moves behind it. */
static enum lmq_status
add_tensor(struct lmq_checkpoint *checkpoint, const struct array *array,
           int32_t layer, uint32_t group, uint64_t *at, struct lmq_error *err)
{
    const struct lmq_hparams *hparams = &checkpoint->hparams;
    const char *rest = strchr(array->stored_name, '#');
    char name[64];
    uint64_t dims[2];
    size_t n_dims;
    struct lmq_tensor *tensor;

    if (rest == NULL)
        snprintf(name, sizeof(name), "%s", array->stored_name);
    else
        snprintf(name, sizeof(name), "layers.%d%s", (int)layer, rest + 1);
    enum lmq_status status =
        lmq_checkpoint_add_tensor(checkpoint, name, &tensor, err);
    if (status != LMQ_OK)
        return status;
    tensor->place =
        (struct lmq_place){array->role, LMQ_PART_WEIGHT, layer, -1};
    shape_of(array->role, hparams, dims, &n_dims);
    if (!lmq_tensor_set_dims(tensor, dims, n_dims))
        return lmq_fail(err, LMQ_ERR_FORMAT, *at, "tensor '%s' is too large",
                        name);
    tensor->dtype = LMQ_DTYPE_F32;
    tensor->offset = *at;
    tensor->size_bytes = 4 * tensor->n_elements;
    if (group > 0 && n_dims == 2)
        status = set_quantized(tensor, group, err);
    if (status != LMQ_OK)
        return status;
    if (!lmq_u64_add(*at, tensor->size_bytes, at))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is too large");
    return LMQ_OK;
}

/* For each layer in turn: all layers of one role stand together, not all roles
 * of one layer. */
static enum lmq_status
add_array(struct lmq_checkpoint *checkpoint, const struct array *array,
          uint32_t group, uint64_t *at, struct lmq_error *err)
{
    const struct lmq_hparams *hparams = &checkpoint->hparams;
    enum lmq_status status = LMQ_OK;

    if (array->role == LMQ_ROLE_OTHER) { /* cosines, then sines */
        *at += 4 * (uint64_t)hparams->context * hparams->head_dim;
        return LMQ_OK;
    }
    if (array->role == LMQ_ROLE_HEAD && hparams->tie == LMQ_TIE_YES)
        return LMQ_OK;
    if (!lmq_role_is_per_layer(array->role))
        return add_tensor(checkpoint, array, -1, group, at, err);
    for (uint32_t l = 0; l < hparams->n_layers && status == LMQ_OK; l++)
        status = add_tensor(checkpoint, array, (int32_t)l, group, at, err);
    return status;
}

/* ---- Elements of version 2 ---- */

#define CHUNK ((size_t)1 << 14)

/* Elements [at, at + n) of the flattened matrix; n is at most CHUNK. */
static enum lmq_status
read_groups(struct lmq_input *file, const struct lmq_tensor *tensor,
            uint64_t at, size_t n, unsigned char *bytes, float *values,
            struct lmq_error *err)
{
    uint64_t group = tensor->number, first = at / group;
    size_t n_scales = (size_t)((at + n - 1) / group - first) + 1;
    unsigned char *scales = bytes + CHUNK;
    enum lmq_status status =
        lmq_input_read(file, tensor->offset + at, bytes, n, err);

    if (status == LMQ_OK)
        status = lmq_input_read(
            file, tensor->offset + tensor->n_elements + 4 * first, scales,
            4 * n_scales, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        values[i] = (float)(int8_t)bytes[i] *
                    lmq_load_f32le(scales + 4 * ((at + i) / group - first));
    return status;
}

/* In pieces of fixed size, whatever is asked for. */
static enum lmq_status
read_v2(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
        uint64_t first, size_t n, float *values, struct lmq_error *err)
{
    struct lmq_input *file = checkpoint->files[tensor->file];
    enum lmq_status status = LMQ_OK;

    /* A scale may belong to one element only. */
    unsigned char *bytes = malloc(CHUNK + 4 * CHUNK);
    if (bytes == NULL)
        return lmq_fail_nomem(err);
    while (n > 0 && status == LMQ_OK) {
        size_t step = lmq_size_min(n, CHUNK);
        status = read_groups(file, tensor, first, step, bytes, values, err);
        values += step;
        first += step;
        n -= step;
    }
    free(bytes);
    return status;
}

/* Groups that do not cross rows. */
static enum lmq_status
read_integers(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, uint64_t row, size_t n,
              int8_t *q, unsigned char *scales, struct lmq_scratch *scratch,
              struct lmq_error *err)
{
    struct lmq_input *file = checkpoint->files[tensor->file];
    size_t n_cols = (size_t)tensor->n_cols;
    size_t row_scales = 4 * (n_cols / tensor->number);
    enum lmq_status status =
        lmq_input_read(file, tensor->offset + row * n_cols, q, n * n_cols,
                       err);

    (void)scratch;
    if (status == LMQ_OK)
        status = lmq_input_read(
            file, tensor->offset + tensor->n_elements + row * row_scales,
            scales, n * row_scales, err);
    return status;
}

/* ---- The format ---- */

static enum lmq_status
add_tokenizer_beside(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const char *name = "tokenizer.bin";
    char *folder = lmq_path_folder(checkpoint->path);

    if (folder == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_checkpoint_add_blob_file(checkpoint, folder, name, err);
    free(folder);
    if (status == LMQ_OK && checkpoint->n_blobs > 0)
        lmq_checkpoint_note(checkpoint,
                            "the tokenizer is %s, found beside the file",
                            name);
    return status;
}

/* It was recognised a moment ago, so that other numbers mean another file. */
static enum lmq_status
read_header(struct lmq_input *file, struct header *header,
            struct lmq_error *err)
{
    unsigned char bytes[HEADER_V0];
    enum lmq_status status =
        lmq_input_read(file, 0, bytes, sizeof(bytes), err);

    if (status != LMQ_OK)
        return status;
    if (lmq_load_u32le(bytes) == MAGIC)
        return read_v1_header(file, header, err);
    if (!parse_fields(bytes, header))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "changed while it was read");
    return LMQ_OK;
}

static enum lmq_status
add_arrays(struct lmq_checkpoint *checkpoint, const struct header *header,
           struct lmq_error *err)
{
    bool is_v0 = header->version == 0;
    const struct array *order = is_v0 ? order_v0 : order_v1;
    size_t n_arrays = is_v0 ? sizeof(order_v0) / sizeof(order_v0[0])
                            : sizeof(order_v1) / sizeof(order_v1[0]);
    uint64_t size = lmq_input_size(checkpoint->files[0]);
    uint64_t at = is_v0 ? HEADER_V0 : HEADER_V1;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_arrays && status == LMQ_OK; i++)
        status = add_array(checkpoint, &order[i], header->group, &at, err);
    if (status != LMQ_OK || size == at)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, size,
             "is %" PRIu64 " bytes, but its llama2.c header (version %d, dim "
             "%u, %u layers, vocabulary %u, %s) makes %" PRIu64,
             size, header->version, header->dim, header->n_layers,
             header->vocab, header->is_tied ? "tied" : "untied", at);
    lmq_hint(err, size < at ? "the file is truncated; fetch it again"
                            : "the file is damaged, or no llama2.c checkpoint");
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
open_llama2c(struct lmq_checkpoint *checkpoint,
             const struct lmq_open_options *options, struct lmq_error *err)
{
    struct header header;
    uint32_t index;
    enum lmq_status status =
        lmq_checkpoint_add_file(checkpoint, checkpoint->path, &index, err);

    if (status == LMQ_OK)
        status = read_header(checkpoint->files[index], &header, err);
    if (status == LMQ_OK)
        status = fill_hparams(&header, &checkpoint->hparams, err);
    if (status != LMQ_OK)
        return status;
    checkpoint->has_model = true;
    checkpoint->source.has_rotary_pairs = true;
    if (header.group > 0)
        snprintf(checkpoint->variant, sizeof(checkpoint->variant),
                 "version 2, groups of %u", header.group);
    else
        snprintf(checkpoint->variant, sizeof(checkpoint->variant),
                 "version %d", header.version);
    status = add_arrays(checkpoint, &header, err);
    if (status != LMQ_OK)
        return status;
    return options->tokenizer == NULL
               ? add_tokenizer_beside(checkpoint, err)
               : LMQ_OK;
}

const struct lmq_format lmq_format_llama2c = {
    .name = "llama2.c",
    .probe = probe_llama2c,
    .open = open_llama2c,
    .read = read_v2,
    .read_integers = read_integers,
};
