/*
 * fp4.c - codes of E2M1 in bytes, with scales in FP8 beside them, as
 * compressed-tensors, ModelOpt and Quark write them.
 *
 *     NAME.weight_packed or NAME.weight (out, in / 2)  two codes in a byte, the
 *                                                      lower one first
 *     NAME.weight_scale (out, in / 16 or in / 32)  E4M3: NVFP4
 *                       (out, in / 32)  powers of two: MXFP4
 *                       (DeepSeek V4: NAME.scale)
 *     NAME.weight_global_scale, of NVFP4: what scales are divided by; or
 *     NAME.weight_scale_2, of NVFP4: what they are multiplied with
 *
 * All compute code * (scale / global) or code * (scale * global) in float32,
 * and round that to the type of the model in the end.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/ends.h"
#include "formats/packed/scale_shape.h"
#include "formats/packed/schemes.h"

#define PLAIN ".weight"
#define SECOND ".weight_scale_2"

static const struct spelling {
    const char *codes, *scales, *global;
    bool is_divisor;
    const char *whose; /* for the notes */
} spellings[] = {
    {".weight_packed", ".weight_scale", ".weight_global_scale", true,
     "compressed-tensors, "},
    {PLAIN, ".weight_scale", SECOND, false, ""},
};

/* DeepSeek's experts, beside matrices in FP8. */
static const struct spelling deepseek = {PLAIN, ".scale", NULL, false, ""};

struct fp4 {
    const struct spelling *spelling;
    struct lmq_tensor *codes, *scales, *global;
    uint64_t rows, cols;
    bool is_nv;
};

/* ---- What the configuration says ---- */

/* Of Quark; AutoRound has it in the name of its format. */
static bool
is_e5m3(const json_t *step)
{
    const char *format =
        json_string_value(json_object_get(step, "scale_format"));
    const char *type = json_string_value(json_object_get(step, "dtype"));

    return (format != NULL && strcmp(format, "e5m3") == 0) ||
           (type != NULL && strcmp(type, "fp8_e5m3") == 0);
}

static bool
has_e5m3(const struct lmq_packer *packer)
{
    return strstr(lmq_packer_text(packer, "packing_format"), "e5m3") != NULL ||
           lmq_packer_has_step(packer, is_e5m3);
}

static bool
begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool
is_fp4(const char *type)
{
    return begins(type, "mx_fp") || begins(type, "nv_fp");
}

/* What AutoRound says of single layers: bytes of such shapes that are others,
 * not integers of other shapes. */
static const char *
other_of_layers(const struct lmq_packer *packer)
{
    json_t *layers = json_object_get(packer->config, "extra_config"), *layer;
    const char *name;

    json_object_foreach(layers, name, layer) {
        const char *type =
            json_string_value(json_object_get(layer, "data_type"));
        if (type != NULL && !is_fp4(type) &&
            (begins(type, "mx") || begins(type, "nv") || begins(type, "fp4")))
            return type;
    }
    return NULL;
}

/* Codes of integers, and scales of E5M3, are bytes of the same shapes. */
static bool
is_supported(struct lmq_packer *packer)
{
    const char *type = lmq_packer_text(packer, "data_type");
    const char *other = other_of_layers(packer);

    if (*type != '\0' && !is_fp4(type))
        lmq_packer_refuse(packer, "data_type %.32s", type);
    else if (other != NULL)
        lmq_packer_refuse(packer, "data_type %.32s of a layer", other);
    else if (has_e5m3(packer))
        lmq_packer_refuse(packer, "scales in E5M3");
    return packer->refused[0] == '\0';
}

/* ---- Shapes ---- */

static bool
is_power(const struct lmq_tensor *scales)
{
    return scales->dtype == LMQ_DTYPE_U8 ||
           scales->dtype == LMQ_DTYPE_F8_E8M0;
}

static enum lmq_status
check_shapes(const struct fp4 *p, struct lmq_error *err)
{
    /* ModelOpt takes 32 where activations are FP8. */
    uint64_t group = p->is_nv && p->scales->n_cols != p->cols / 32 ? 16 : 32;

    if (!p->is_nv && !is_power(p->scales))
        return lmq_packer_check_type(p->scales, LMQ_DTYPE_U8, err);
    if (p->codes->n_dims != 2 || p->cols % group != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, p->codes->offset,
                        "'%s' has %u dimensions and rows of %" PRIu64
                        " codes, expected 2, and a multiple of %" PRIu64,
                        p->codes->stored_name, p->codes->n_dims, p->cols,
                        group);
    return lmq_packer_check_shape(p->scales, p->rows, p->cols / group, err);
}

/* ---- One matrix ---- */

static enum lmq_status
attach_global(const struct lmq_packer *packer, struct lmq_affine *affine,
              struct fp4 *p, struct lmq_error *err)
{
    const struct spelling *spelling = p->spelling;
    enum lmq_status status = lmq_packer_need(
        packer, p->codes, spelling->codes, spelling->global, &p->global, err);
    float global = 0;

    if (status == LMQ_OK)
        status = lmq_packer_check_type(p->global, LMQ_DTYPE_F32, err);
    if (status == LMQ_OK)
        status = lmq_packer_read(packer, p->global, &global, 1, err);
    if (status == LMQ_OK && !(global > 0 && isfinite(global)))
        return lmq_fail(err, LMQ_ERR_FORMAT, p->global->offset,
                        "'%s' is %g, expected a number above 0",
                        p->global->stored_name, (double)global);
    *(spelling->is_divisor ? &affine->divisor : &affine->multiplier) = global;
    return status;
}

static enum lmq_status
describe(const struct lmq_packer *packer, struct lmq_affine *affine,
         struct fp4 *p, struct lmq_error *err)
{
    const uint64_t dims[2] = {p->rows, p->cols};

    affine->codes = lmq_packer_grid(p->codes);
    affine->codes.dtype = LMQ_DTYPE_U8; /* two in each, whatever it is called */
    affine->codes.bits = 4;
    affine->codes.levels = lmq_e2m1_values;
    enum lmq_status status = lmq_scale_shape_set(
        packer, affine, p->codes->stored_name, dims, 2, p->scales, err);
    return status == LMQ_OK && p->is_nv ? attach_global(packer, affine, p, err)
                                        : status;
}

static enum lmq_status
join(struct lmq_packer *packer, struct fp4 *p, struct lmq_error *err)
{
    const uint64_t dims[2] = {p->rows, p->cols};
    struct lmq_affine *affine = lmq_affine_new(p->is_nv ? "nvfp4" : "mxfp4");
    char text[64];

    if (affine == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = describe(packer, affine, p, err);
    if (status != LMQ_OK) {
        free(affine);
        return status;
    }
    struct lmq_tensor *const parts[] = {p->scales, p->global};
    lmq_packer_found(packer, "matrices of %s%s, %s", p->spelling->whose,
                     affine->packing.name,
                     lmq_scale_shape_text(affine, text, sizeof(text)));
    return lmq_affine_join(packer, p->codes, p->spelling->codes, PLAIN, affine,
                           dims, 2, parts, 2, err);
}

/* Half as many bytes as a row has numbers, sixteen for each scale: integers
 * would have one in each byte. */
static bool
is_deepseeks(const struct lmq_packer *packer, const struct lmq_tensor *tensor)
{
    const struct lmq_tensor *scales;

    if (packer->method == NULL || strcmp(packer->method, "fp8") != 0 ||
        !lmq_ends_with(tensor->stored_name, deepseek.codes) ||
        (tensor->dtype != LMQ_DTYPE_I8 && tensor->dtype != LMQ_DTYPE_U8))
        return false;
    scales =
        lmq_packer_sibling(packer, tensor, deepseek.codes, deepseek.scales);
    return scales != NULL && scales->dtype == LMQ_DTYPE_F8_E8M0 &&
           scales->n_rows == tensor->n_rows &&
           scales->n_cols * 16 == tensor->n_cols;
}

/* NULL: its name ends like none of them, or its numbers are others. */
static const struct spelling *
find_spelling(const struct lmq_packer *packer, const struct lmq_tensor *tensor)
{
    if (is_deepseeks(packer, tensor))
        return &deepseek;
    if (tensor->dtype != LMQ_DTYPE_U8)
        return NULL;
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
        if (lmq_ends_with(tensor->stored_name, spellings[i].codes))
            return &spellings[i];
    return NULL;
}

/* Bytes that are called just "weight" are of several kinds: only scales of
 * eight bits make them these. */
enum lmq_status
lmq_fp4_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    struct fp4 p = {
        .spelling = find_spelling(packer, tensor),
        .codes = tensor,
        .rows = tensor->n_rows,
        .cols = 2 * tensor->n_cols,
    };
    enum lmq_status status;

    if (p.spelling == NULL)
        return LMQ_OK;
    p.scales = lmq_packer_sibling(packer, tensor, p.spelling->codes,
                                  p.spelling->scales);
    bool is_plain = strcmp(p.spelling->codes, PLAIN) == 0;
    if ((is_plain && (p.scales == NULL ||
                      (p.scales->dtype != LMQ_DTYPE_F8_E4M3 &&
                       !is_power(p.scales)))) ||
        !is_supported(packer))
        return LMQ_OK;
    status = lmq_packer_need(packer, tensor, p.spelling->codes,
                             p.spelling->scales, &p.scales, err);
    if (status != LMQ_OK)
        return status;
    p.is_nv = p.scales->dtype == LMQ_DTYPE_F8_E4M3;
    if (!p.is_nv && tensor->n_cols % 24 == 0 &&
        tensor->n_cols / 24 == p.scales->n_cols) {
        lmq_packer_refuse(packer, "MXFP6");
        return LMQ_OK;
    }
    status = check_shapes(&p, err);
    return status == LMQ_OK ? join(packer, &p, err) : status;
}

/* Asked about the second scales. The first ones are FP8, which must not be
 * taken for weights before they are parts of one. */
enum lmq_status
lmq_nvfp4_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
               struct lmq_error *err)
{
    struct lmq_tensor *codes;

    if (!lmq_ends_with(tensor->stored_name, SECOND)) {
        lmq_packer_refuse(packer, "fused experts");
        return LMQ_OK;
    }
    enum lmq_status status =
        lmq_packer_need(packer, tensor, SECOND, PLAIN, &codes, err);
    return status == LMQ_OK ? lmq_fp4_join(packer, codes, err) : status;
}
