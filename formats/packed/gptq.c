/*
 * gptq.c - GPTQ: codes of 2, 3, 4 or 8 bits, as AutoGPTQ, GPTQModel, AutoRound
 * and optimum write them.
 *
 *     NAME.qweight (in * bits / 32, out)     32-bit words, runs of codes down
 *     NAME.qzeros  (groups, out * bits / 32)  the same along lines
 *     NAME.scales  (groups, out)
 *     NAME.g_idx   (in)                       the group of each input, if any
 *
 * The weight is (code - zero point) * scale. The libraries compute it in the
 * type of the scales, where the difference is exact and the product is rounded
 * once: it is ours, rounded to that type.
 *
 * Version 1 ("gptq") stores zero points less one, version 2 ("gptq_v2") as
 * they are. GPTQModel takes and adds one in all fields of a word at once, so
 * that what one field lacks is borrowed from the next; of 3 bits in each field
 * by itself. Reading must do what writing did. (AutoGPTQ and its kernels did
 * not agree on what a borrowing zero point is: its writer avoids them.)
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/packed/schemes.h"

#define ENDING ".qweight"

struct gptq {
    struct lmq_tensor *codes, *zeros, *scales, *members;
    unsigned bits;
    uint64_t rows, cols, n_groups;
    uint64_t group; /* columns; 0: only g_idx tells */
};

/* ---- What the configuration says ---- */

/* "gptq" where it says nothing. AutoRound calls the formats otherwise. */
static const char *
format_of(const struct lmq_packer *packer)
{
    const char *format = lmq_packer_text(packer, "packing_format");

    if (*format != '\0')
        return strcmp(format, "auto_round:auto_gptq") == 0    ? "gptq"
               : strcmp(format, "auto_round") == 0            ? "gptq_v2"
               : strcmp(format, "auto_round:gptqmodel") == 0 ? "gptq_v2"
                                                              : format;
    format = lmq_packer_text(packer, "checkpoint_format");

    if (*format == '\0')
        format = lmq_packer_text(packer, "format");
    return *format == '\0' ? "gptq" : format;
}

static bool
is_supported(struct lmq_packer *packer)
{
    const char *format = format_of(packer);
    const char *words = lmq_packer_text(packer, "pack_dtype");
    int64_t bits = lmq_packer_number(packer->config, "bits", 4);

    if (strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0)
        lmq_packer_refuse(packer, "format %.32s", format);
    else if (json_is_true(json_object_get(packer->config,
                                          "is_marlin_format")))
        lmq_packer_refuse(packer, "format marlin");
    else if (*words != '\0' && strcmp(words, "int32") != 0)
        lmq_packer_refuse(packer, "pack_dtype %.24s", words);
    else if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
        lmq_packer_refuse(packer, "bits %" PRId64, bits);
    return packer->refused[0] == '\0';
}

/* ---- Shapes ---- */

/* How many bits a code has: said, or what the words of zero points have room
 * for. */
static enum lmq_status
find_bits(const struct lmq_packer *packer, struct gptq *g,
          struct lmq_error *err)
{
    static const unsigned known[] = {2, 3, 4, 8};
    int64_t said = lmq_packer_number(packer->config, "bits", 0);

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (lmq_u64_ceil_div(g->rows * known[i], 32) == g->zeros->n_cols &&
            (said == 0 || lmq_packer_has_layers(packer) || said == known[i]))
            g->bits = known[i];
    if (g->bits != 0)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, g->zeros->offset,
                    "'%s' has %" PRIu64 " words for %" PRIu64 " zero points, "
                    "which is not %" PRId64 " bits for each",
                    g->zeros->stored_name, g->zeros->n_cols, g->rows,
                    said == 0 ? (int64_t)4 : said);
}

/* Inputs: all that the words have room for, unless g_idx knows better. */
static enum lmq_status
find_columns(struct gptq *g, struct lmq_error *err)
{
    uint64_t words = g->codes->dims[0];

    g->cols = words * 32 / g->bits;
    if (g->members != NULL)
        g->cols = g->members->n_elements;
    if (g->cols > 0 && g->cols <= LMQ_MAX_WIDTH &&
        lmq_u64_ceil_div(g->cols * g->bits, 32) == words)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, g->codes->offset,
                    "'%s' has %" PRIu64 " words for %" PRIu64 " codes of %u "
                    "bits",
                    g->codes->stored_name, words, g->cols, g->bits);
}

/* Columns of a group, from the configuration or from how many there are. */
static enum lmq_status
find_group(const struct lmq_packer *packer, struct gptq *g,
           struct lmq_error *err)
{
    int64_t said = lmq_packer_number(packer->config, "group_size", 0);
    bool is_said = said == -1 || said > 0;

    g->group = said > 0 ? (uint64_t)said : g->cols;
    if (is_said && lmq_u64_ceil_div(g->cols, g->group) == g->n_groups)
        return LMQ_OK;
    bool is_other = is_said && lmq_packer_has_layers(packer);
    bool may_divide = !is_said || (is_other && g->members != NULL);
    g->group =
        is_other ? lmq_packer_own_group(packer, g->cols, g->n_groups) : 0;
    if (g->group == 0 && may_divide && g->cols % g->n_groups == 0)
        g->group = g->cols / g->n_groups;
    if ((!is_said || is_other) && (g->group != 0 || g->members != NULL))
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, g->scales->offset,
                    "'%s' has scales for %" PRIu64 " groups, but %" PRIu64
                    " columns in groups of %" PRId64 " are not that many",
                    g->scales->stored_name, g->n_groups, g->cols, said);
}

static enum lmq_status
check_shapes(const struct lmq_packer *packer, struct gptq *g,
             struct lmq_error *err)
{
    struct lmq_tensor *parts[] = {g->codes, g->zeros, g->members};
    enum lmq_status status = lmq_packer_check_floats(g->scales, err);

    for (size_t i = 0; i < 3 && status == LMQ_OK; i++)
        if (parts[i] != NULL)
            status = lmq_packer_check_words(parts[i], err);
    if (status != LMQ_OK)
        return status;
    g->rows = g->scales->n_cols;
    g->n_groups = g->scales->n_rows;
    if (g->rows == 0 || g->rows > LMQ_MAX_WIDTH || g->n_groups == 0 ||
        g->codes->n_dims != 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, g->scales->offset,
                        "'%s' and '%s' are no matrices of codes and scales",
                        g->codes->stored_name, g->scales->stored_name);
    status = find_bits(packer, g, err);
    if (status == LMQ_OK)
        status = find_columns(g, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(g->codes, g->codes->dims[0], g->rows,
                                        err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(g->zeros, g->n_groups,
                                        g->zeros->n_cols, err);
    if (status == LMQ_OK)
        status = lmq_packer_check_shape(g->scales, g->n_groups, g->rows, err);
    if (status == LMQ_OK && g->members != NULL)
        status = lmq_packer_check_shape(g->members, 0, g->cols, err);
    return status == LMQ_OK ? find_group(packer, g, err) : status;
}

/* ---- One matrix ---- */

/* One in each field of a word. */
static uint32_t
ones(unsigned bits)
{
    uint32_t word = 0;

    for (unsigned i = 0; i < 32; i += bits)
        word |= 1u << i;
    return word;
}

static enum lmq_status
describe(const struct lmq_packer *packer, const struct gptq *g,
         struct lmq_affine *affine, struct lmq_error *err)
{
    bool is_first = strcmp(format_of(packer), "gptq") == 0, is_sorted = true;
    enum lmq_status status = LMQ_OK;

    affine->packing.is_upright = true;
    affine->codes = lmq_packer_grid(g->codes);
    affine->codes.bits = g->bits;
    affine->codes.is_stacked = affine->codes.is_turned = true;
    affine->scales = lmq_packer_grid(g->scales);
    affine->scales.is_turned = true;
    affine->zeros = lmq_packer_grid(g->zeros);
    affine->zeros.bits = g->bits;
    affine->zeros.is_turned = true;
    affine->has_zeros = true;
    if (is_first && g->bits == 3)
        affine->zeros.number_plus = 1;
    else if (is_first)
        affine->zeros.word_plus = ones(g->bits);
    affine->block_rows = 1;
    affine->block_cols = g->group;
    affine->n_groups = g->n_groups;
    if (g->members != NULL)
        status = lmq_packer_check_members(packer, g->members, g->n_groups,
                                          g->group, false, &is_sorted, err);
    if (!is_sorted) {
        affine->members = lmq_packer_grid(g->members);
        affine->has_members = true;
    }
    return status == LMQ_OK && !affine->has_members
               ? lmq_affine_centre(packer, affine, g->rows, g->n_groups, err)
               : status;
}

static enum lmq_status
find_parts(const struct lmq_packer *packer, struct lmq_tensor *tensor,
           struct gptq *g, struct lmq_error *err)
{
    enum lmq_status status =
        lmq_packer_need(packer, tensor, ENDING, ".scales", &g->scales, err);

    g->codes = tensor;
    g->members = lmq_packer_sibling(packer, tensor, ENDING, ".g_idx");
    return status == LMQ_OK ? lmq_packer_need(packer, tensor, ENDING,
                                              ".qzeros", &g->zeros, err)
                            : status;
}

static enum lmq_status
join(struct lmq_packer *packer, const struct gptq *g, struct lmq_error *err)
{
    struct lmq_tensor *const parts[] = {g->scales, g->zeros, g->members};
    const uint64_t dims[2] = {g->rows, g->cols};
    char name[16];

    snprintf(name, sizeof(name), "gptq%u", g->bits);
    struct lmq_affine *affine = lmq_affine_new(name);
    if (affine == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = describe(packer, g, affine, err);
    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    if (affine->has_members)
        lmq_packer_found(packer,
                         "matrices of GPTQ, %u bits, groups of columns that "
                         "do not stand together",
                         g->bits);
    else
        lmq_packer_found(packer,
                         "matrices of GPTQ, %u bits, groups of %" PRIu64,
                         g->bits, g->group);
    return lmq_affine_join(packer, g->codes, ENDING, ".weight", affine, dims,
                           2, parts, 3, err);
}

/* Of AWQ the lines are longer: they hold all codes of an input. */
static bool
is_awq(const struct gptq *g)
{
    return g->scales->n_cols / 8 == g->codes->n_cols &&
           g->scales->n_cols != g->codes->n_cols;
}

enum lmq_status
lmq_gptq_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
              struct lmq_error *err)
{
    struct gptq g = {0};
    enum lmq_status status;

    if (!is_supported(packer))
        return LMQ_OK;
    status = find_parts(packer, tensor, &g, err);
    if (status != LMQ_OK || (packer->method == NULL && is_awq(&g)))
        return status;
    status = check_shapes(packer, &g, err);
    return status == LMQ_OK ? join(packer, &g, err) : status;
}

enum lmq_status
lmq_autoround_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                   struct lmq_error *err)
{
    bool is_awq = strcmp(lmq_packer_text(packer, "packing_format"),
                         "auto_round:auto_awq") == 0;

    return is_awq ? lmq_awq_join(packer, tensor, err)
                  : lmq_gptq_join(packer, tensor, err);
}
