/*
 * gguf.c - reads GGUF checkpoints: one file, or one of several parts.
 *
 * gguf_front.c reads and checks what stands in front of the data, gguf_keys.c
 * makes a description of the keys; here the two come together with what only
 * the tensors tell. The tokenizer is kept as a GGUF of its own, without
 * tensors.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "formats/formats.h"
#include "formats/gguf/gguf_about.h"
#include "formats/gguf/gguf_front.h"
#include "formats/gguf/gguf_keys.h"
#include "formats/gguf/gguf_scales.h"
#include "formats/gguf/gguf_special.h"
#include "quantize/blocks.h"

#define MAX_PARTS 4096

/* ---- Parts: NAME-00001-of-00003.gguf ---- */

/* "-00001-of-00003.gguf" */
#define PART_SUFFIX 20

struct split {
    uint64_t number, count, n_tensors; /* number counts from 0 */
};

/* llama.cpp's gguf-split writes these three keys into each part. A count of 0
 * or 1 is a file of its own. */
static enum lmq_status
read_split(const struct lmq_gguf_meta *meta, struct split *split,
           struct lmq_error *err)
{
    *split = (struct split){0, 1, UINT64_MAX};
    enum lmq_status status =
        lmq_gguf_get_uint(meta, "split.count", UINT16_MAX, &split->count, err);
    if (status == LMQ_OK)
        status = lmq_gguf_get_uint(meta, "split.no", UINT16_MAX,
                                   &split->number, err);
    if (status == LMQ_OK)
        status = lmq_gguf_get_uint(meta, "split.tensors.count",
                                   LMQ_MAX_TENSORS, &split->n_tensors, err);
    if (status == LMQ_OK && split->count <= 1)
        *split = (struct split){0, 1, UINT64_MAX};
    if (status == LMQ_OK &&
        (split->number >= split->count || split->count > MAX_PARTS))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "says that it is part %" PRIu64 " of %" PRIu64
                        ", at most %d are accepted",
                        split->number + 1, split->count, MAX_PARTS);
    return status;
}

/* The path of a part, from that of another; the caller frees it. *is_named is
 * false if `path` is not named like the part that it says it is. */
static char *
part_path(const char *path, const struct split *split, uint64_t number,
          bool *is_named)
{
    size_t n = strlen(path), size = n + 32;
    char expected[48], *other = malloc(size);

    snprintf(expected, sizeof(expected), "-%05u-of-%05u.gguf",
             (unsigned)split->number + 1, (unsigned)split->count);
    *is_named = n > PART_SUFFIX &&
                strcmp(path + n - PART_SUFFIX, expected) == 0;
    if (other != NULL)
        snprintf(other, size, "%.*s-%05u-of-%05u.gguf",
                 (int)(n > PART_SUFFIX ? n - PART_SUFFIX : n), path,
                 (unsigned)number + 1, (unsigned)split->count);
    return other;
}

/* Parts are found by their names, as llama.cpp does it. The first has the
 * model's keys, so it is the one to be named. */
static enum lmq_status
fail_part(const char *path, const struct split *split, struct lmq_error *err)
{
    bool is_named;
    char *first = part_path(path, split, 0, &is_named);

    lmq_fail(err, is_named ? LMQ_ERR_ARG : LMQ_ERR_FORMAT, 0,
             "is part %" PRIu64 " of %" PRIu64 "%s", split->number + 1,
             split->count,
             is_named ? "" : " by its content, but not by its name");
    if (is_named && first != NULL)
        lmq_hint(err, "name the first: %.180s", first);
    else
        lmq_hint(err, "parts are found by their names, which end in "
                      "-00001-of-%05u.gguf and so on",
                 (unsigned)split->count);
    free(first);
    return is_named ? LMQ_ERR_ARG : LMQ_ERR_FORMAT;
}

/* Its keys are not looked at, but for which part it is: those of the model
 * stand in the first. */
static enum lmq_status
add_part(struct lmq_checkpoint *checkpoint, const char *path,
         const struct split *split, uint64_t number, struct lmq_error *err)
{
    struct lmq_gguf_front front = {0};
    struct split own;
    uint32_t file;

    enum lmq_status status = LMQ_OK;
    if (!lmq_file_exists(path, &status, err)) {
        if (status != LMQ_OK)
            return status;
        lmq_fail(err, LMQ_ERR_FORMAT, 0, "is missing: part %" PRIu64
                 " of %" PRIu64, number + 1, split->count);
        lmq_hint(err, "the download may be incomplete");
        return LMQ_ERR_FORMAT;
    }
    status = lmq_checkpoint_add_file(checkpoint, path, &file, err);
    if (status == LMQ_OK)
        status = lmq_gguf_front_read(checkpoint->files[file], &front, err);
    if (status == LMQ_OK)
        status = read_split(front.meta, &own, err);
    if (status == LMQ_OK &&
        (own.number != number || own.count != split->count))
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "says that it is part %" PRIu64 " of %" PRIu64
                          ", expected %" PRIu64 " of %" PRIu64,
                          own.number + 1, own.count, number + 1, split->count);
    if (status == LMQ_OK)
        status = lmq_gguf_front_add_tensors(&front, checkpoint, file, err);
    lmq_gguf_front_free(&front);
    return status;
}

static enum lmq_status
add_other_parts(struct lmq_checkpoint *checkpoint, const struct split *split,
                struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint64_t i = 1; i < split->count && status == LMQ_OK; i++) {
        bool is_named;
        char *path = part_path(checkpoint->path, split, i, &is_named);
        if (path == NULL)
            return lmq_fail_nomem(err);
        status = is_named ? add_part(checkpoint, path, split, i, err)
                          : fail_part(checkpoint->path, split, err);
        if (status != LMQ_OK && is_named)
            lmq_error_in(err, path);
        free(path);
    }
    if (status == LMQ_OK && split->n_tensors != UINT64_MAX &&
        split->n_tensors != checkpoint->n_tensors)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the parts hold %zu tensors, but the first says "
                        "%" PRIu64,
                        checkpoint->n_tensors, split->n_tensors);
    return status;
}

/* ---- What the tensors tell ---- */

struct factors {
    double always[LMQ_MAX_ROPE_FACTORS];
    double near[LMQ_MAX_ROPE_FACTORS], far[LMQ_MAX_ROPE_FACTORS];
};

/* llama.cpp keeps what divides the frequencies of RoPE as small tensors rather
 * than under keys. They belong to the description here. */
static enum lmq_status
read_factors(struct lmq_checkpoint *checkpoint,
             const struct lmq_tensor *tensor, double *factors, uint32_t *n,
             struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    float values[LMQ_MAX_ROPE_FACTORS];

    if (tensor->n_elements > LMQ_MAX_ROPE_FACTORS)
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "tensor '%s' has %" PRIu64
                        " rotary factors, at most %d are possible",
                        tensor->stored_name, tensor->n_elements,
                        LMQ_MAX_ROPE_FACTORS);
    enum lmq_status status =
        lmq_checkpoint_read(checkpoint, tensor, 0, (size_t)tensor->n_elements,
                            values, &scratch, err);
    for (uint64_t i = 0; i < tensor->n_elements && status == LMQ_OK; i++)
        factors[i] = (double)values[i];
    *n = (uint32_t)tensor->n_elements;
    lmq_scratch_free(&scratch);
    return status;
}

/* Takes off the list what becomes part of the description. */
static enum lmq_status
take_factors(struct lmq_checkpoint *checkpoint, struct factors *factors,
             struct lmq_gguf_evidence *evidence, struct lmq_error *err)
{
    const struct {
        const char *name;
        double *factors;
        uint32_t *n;
    } kinds[] = {
        {"rope_freqs.weight", factors->always, &evidence->n_always},
        {"rope_factors_short.weight", factors->near, &evidence->n_near},
        {"rope_factors_long.weight", factors->far, &evidence->n_far},
    };
    enum lmq_status status = LMQ_OK;
    size_t kept = 0;

    evidence->always = factors->always;
    evidence->near = factors->near;
    evidence->far = factors->far;
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        bool is_taken = false;
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            if (strcmp(tensor->stored_name, kinds[k].name) == 0) {
                is_taken = true;
                if (status == LMQ_OK)
                    status = read_factors(checkpoint, tensor,
                                          kinds[k].factors, kinds[k].n, err);
            }
        if (is_taken)
            lmq_tensor_free(tensor);
        else
            checkpoint->tensors[kept++] = *tensor;
    }
    checkpoint->n_tensors = kept;
    return status;
}

/* Falcon's attn_norm_2 is that of attention; attn_norm then is the other. */
static bool
is_second_norm(const char *name, struct lmq_place *place)
{
    static const char base[] = ".attn_norm_2.";
    const char *at = strstr(name, base);
    char plain[64];

    if (at == NULL || (size_t)(at - name) > 16)
        return false;
    snprintf(plain, sizeof(plain), "%.*s.attn_norm.%.16s", (int)(at - name),
             name, at + strlen(base));
    return lmq_name_parse(plain, place) &&
           place->role == LMQ_ROLE_ATTN_NORM;
}

static uint32_t
narrow(uint64_t value)
{
    return (uint32_t)lmq_u64_min(value, UINT32_MAX);
}

/* GGUF's keys leave out what its readers see in the tensors: the size of the
 * vocabulary, whether the head is the embedding, which norms there are. Sizes
 * are only candidates here; what contradicts the description is refused where
 * shapes are checked. */
static void
gather_evidence(struct lmq_checkpoint *checkpoint,
                struct lmq_gguf_evidence *evidence)
{
    size_t n_keys = 0, n_values = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        struct lmq_place *place = &tensor->place;
        if (is_second_norm(tensor->stored_name, place))
            evidence->has_second_norm = true;
        else
            lmq_name_parse(tensor->stored_name, place);
        switch ((int)place->role) {
        case LMQ_ROLE_EMBEDDING:
            evidence->vocab_size = narrow(tensor->n_rows);
            break;
        case LMQ_ROLE_HEAD:
            evidence->has_head |= place->part == LMQ_PART_WEIGHT;
            if (evidence->vocab_size == 0) /* it may be the embedding too */
                evidence->vocab_size = narrow(tensor->n_rows);
            break;
        case LMQ_ROLE_ATTN_Q_NORM:
            evidence->has_qk_norm = true;
            break;
        case LMQ_ROLE_FFN_NORM:
            evidence->has_ffn_norm = true;
            break;
        case LMQ_ROLE_ATTN_Q_A:
            evidence->has_query_latents = true;
            break;
        case LMQ_ROLE_ROUTER_CORRECTION:
            evidence->has_correction = true;
            break;
        case LMQ_ROLE_ATTN_K:
            n_keys += place->part == LMQ_PART_WEIGHT;
            break;
        case LMQ_ROLE_ATTN_V:
            n_values += place->part == LMQ_PART_WEIGHT;
            break;
        case LMQ_ROLE_INPUTS:
            evidence->layer_input_vocab = narrow(tensor->n_rows);
            break;
        case LMQ_ROLE_BYPASS_A:
            evidence->residual_rank = narrow(tensor->n_rows);
            break;
        case LMQ_ROLE_ATTN_GATE:
            if (place->layer == 0 && place->part == LMQ_PART_WEIGHT)
                evidence->gate_rows = tensor->n_rows;
            break;
        case LMQ_ROLE_LAYER_SCALE:
            evidence->has_layer_scale = true;
            break;
        case LMQ_ROLE_DELTA_NORM:
            evidence->has_state_norm = true;
            break;
        case LMQ_ROLE_ROUTER:
            evidence->has_router[place->layer] = true;
            break;
        default:
            break;
        }
    }
    evidence->has_lone_keys = n_keys > n_values;
}

/* Roles that names alone do not give. */
static void
place_tensors(struct lmq_checkpoint *checkpoint,
              const struct lmq_family *family,
              const struct lmq_gguf_evidence *evidence)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (family->gguf.fuses_gate_up &&
            tensor->place.role == LMQ_ROLE_FFN_UP)
            tensor->place.role = LMQ_ROLE_FFN_GATE_UP;
        if (family->gguf.fuses_shared &&
            tensor->place.role == LMQ_ROLE_SHARED_UP)
            tensor->place.role = LMQ_ROLE_SHARED_GATE_UP;
        if ((family->gguf.keys & LMQ_GGUF_DECAY_FLOOR) != 0) {
            /* The one matrix is called as the first of two. */
            if (tensor->place.role == LMQ_ROLE_DELTA_ALPHA_A)
                tensor->place.role = LMQ_ROLE_DELTA_ALPHA;
            if (tensor->place.role == LMQ_ROLE_ATTN_GATE_A)
                tensor->place.role = LMQ_ROLE_ATTN_GATE;
        }
        if ((family->gguf.keys & LMQ_GGUF_POOLS) != 0 &&
            tensor->place.role == LMQ_ROLE_ATTN_KV_A_NORM)
            tensor->place.role = LMQ_ROLE_ATTN_K_NORM; /* one head's */
        if (family->gguf.has_late_norm_name &&
            tensor->place.role == LMQ_ROLE_EMBEDDING_NORM)
            tensor->place.role = LMQ_ROLE_OUTPUT_NORM;
        if (family->gguf.has_post_norm_name &&
            tensor->place.role == LMQ_ROLE_ATTN_POST_NORM)
            tensor->place.role = LMQ_ROLE_FFN_NORM;
        if (evidence->has_second_norm &&
            tensor->place.role == LMQ_ROLE_ATTN_NORM) {
            bool is_second =
                strstr(tensor->stored_name, ".attn_norm_2.") != NULL;
            if ((family->gguf.keys & LMQ_GGUF_LIGHTNING) == 0)
                tensor->place.role = is_second ? LMQ_ROLE_ATTN_NORM
                                               : LMQ_ROLE_FFN_NORM;
            else if (is_second) /* that of what states give */
                tensor->place.role = LMQ_ROLE_DELTA_NORM;
        }
    }
}

/* ---- Integers ---- */

/* Where a tensor is a part of a stored one, its offset leads to it. */
static enum lmq_status
read_integers(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, uint64_t row, size_t n,
              int8_t *q, unsigned char *scales, struct lmq_scratch *scratch,
              struct lmq_error *err)
{
    const struct lmq_block_type *type = tensor->blocks;
    size_t row_blocks = (size_t)tensor->n_cols / type->n, n_bytes;

    if (!lmq_size_mul(n, row_blocks * type->size, &n_bytes))
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_scratch_reserve(scratch, n_bytes, err);
    if (status == LMQ_OK)
        status = lmq_input_read(checkpoint->files[tensor->file],
                                tensor->offset +
                                    row * row_blocks * type->size,
                                scratch->bytes, n_bytes, err);
    if (status == LMQ_OK)
        lmq_blocks_split(type, scratch->bytes, n * row_blocks, q, scales);
    return status;
}

/* ---- The format ---- */

/* Keys of the tokenizer alone, byte for byte, as a file of keys: the
 * tokenizer's reader then has one kind of input, and a container carries it as
 * an embedded file. */
static enum lmq_status
keep_tokenizer(struct lmq_checkpoint *checkpoint,
               const struct lmq_gguf_meta *meta, struct lmq_error *err)
{
    unsigned char *bytes;
    size_t size;

    if (lmq_gguf_find(meta, "tokenizer.ggml.tokens") == NULL)
        return LMQ_OK;
    enum lmq_status status = lmq_gguf_write_vocab(meta, &bytes, &size, err);
    return status == LMQ_OK
               ? lmq_checkpoint_add_blob(checkpoint, "tokenizer.gguf", bytes,
                                         size, err)
               : status;
}

/* Factors first, since they leave the list of tensors; then what the rest of
 * the tensors tells; then keys, which need both; and roles at last, which
 * depend on the family. */
static enum lmq_status
understand(struct lmq_checkpoint *checkpoint, const struct lmq_gguf_meta *meta,
           struct lmq_error *err)
{
    struct lmq_gguf_evidence evidence = {0};
    const struct lmq_family *family;
    struct factors factors;
    enum lmq_status status =
        take_factors(checkpoint, &factors, &evidence, err);

    if (status == LMQ_OK)
        status = lmq_gguf_take_scales(checkpoint, err);
    if (status != LMQ_OK)
        return status;
    gather_evidence(checkpoint, &evidence);
    status = lmq_gguf_read_keys(meta, &evidence, checkpoint, &family, err);
    if (status == LMQ_OK)
        status = lmq_gguf_read_about(meta, &checkpoint->about, err);
    if (status == LMQ_OK && family != NULL)
        place_tensors(checkpoint, family, &evidence);
    return status;
}

/* A file of keys alone is a tokenizer, unless other parts have the tensors. */
static bool
probe_gguf(const struct lmq_probe *probe)
{
    bool is_part = strlen(probe->path) > PART_SUFFIX &&
                   strstr(probe->path, "-of-") != NULL;

    if (!lmq_gguf_is(probe->head, probe->n_head))
        return false;
    return probe->n_head < 16 || is_part ||
           lmq_load_u64le(probe->head + 8) != 0;
}

static enum lmq_status
open_gguf(struct lmq_checkpoint *checkpoint,
          const struct lmq_open_options *options, struct lmq_error *err)
{
    struct lmq_gguf_front front = {0};
    struct split split;
    uint32_t file;
    enum lmq_status status =
        lmq_checkpoint_add_file(checkpoint, checkpoint->path, &file, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_gguf_front_read(checkpoint->files[file], &front, err);
    if (status == LMQ_OK)
        snprintf(checkpoint->variant, sizeof(checkpoint->variant),
                 "version %u", (unsigned)front.meta->version);
    if (status == LMQ_OK)
        status = read_split(front.meta, &split, err);
    if (status == LMQ_OK && split.number != 0)
        status = fail_part(checkpoint->path, &split, err);
    if (status == LMQ_OK)
        status = lmq_gguf_front_add_tensors(&front, checkpoint, file, err);
    if (status == LMQ_OK)
        status = add_other_parts(checkpoint, &split, err);
    if (status == LMQ_OK && options->tokenizer == NULL)
        status = keep_tokenizer(checkpoint, front.meta, err);
    if (status == LMQ_OK)
        status = understand(checkpoint, front.meta, err);
    if (status == LMQ_OK)
        status = lmq_gguf_add_xielu(checkpoint, &front, err);
    lmq_gguf_front_free(&front);
    return status;
}

const struct lmq_format lmq_format_gguf = {
    .name = "gguf",
    .probe = probe_gguf,
    .open = open_gguf,
    .read_integers = read_integers,
};
