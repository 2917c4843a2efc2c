/*
 * packed.c - recognises weights that other tools have packed.
 *
 * By the tensors that each of them adds, and by what config.json says. They
 * are refused by name where elements are needed; the rest can be looked at.
 */
#include "config.h"

#include "formats/packed/packed.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/packed/fp8.h"

/* ---- Methods ---- */

/* FP8 is read (fp8.c). Of BY_TENSORS the configuration alone does not tell
 * whether they are packed: these pack in several ways, some of them FP8. */
enum reading { REFUSED, BY_TENSORS, FP8 };

static const struct method {
    const char *key;  /* quant_method */
    const char *name; /* as it is called */
    enum reading reading;
    const char *advice; /* NULL: the usual one */
} methods[] = {
    {"gptq", "GPTQ", REFUSED, NULL},
    {"awq", "AWQ", REFUSED, NULL},
    {"bitsandbytes", "bitsandbytes", REFUSED,
     "convert the original float checkpoint; or load this one with "
     "transformers, call dequantize() and save_pretrained()"},
    {"mlx", "MLX", REFUSED,
     "convert the original float checkpoint; or 'mlx_lm.convert "
     "--dequantize' makes one"},
    {"mxfp4", "MXFP4", REFUSED,
     "load it with transformers and Mxfp4Config(dequantize=True), "
     "save_pretrained() it, and convert that"},
    {"compressed-tensors", "compressed-tensors", BY_TENSORS, NULL},
    {"modelopt", "ModelOpt", BY_TENSORS, NULL},
    {"quark", "Quark", BY_TENSORS, NULL},
    {"fp8", "FP8", FP8, NULL},
    {"fbgemm_fp8", "FP8", FP8, NULL},
    {"eetq", "EETQ", REFUSED, NULL},
    {"hqq", "HQQ", REFUSED, NULL},
    {"aqlm", "AQLM", REFUSED, NULL},
    {"quanto", "Quanto", REFUSED, NULL},
    {"vptq", "VPTQ", REFUSED, NULL},
    {"bitnet", "BitNet", REFUSED, NULL},
    {"nvfp4", "NVFP4", REFUSED, NULL},
};

#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

static const struct method *
find_method(const char *key)
{
    for (size_t i = 0; i < N_METHODS; i++)
        if (strcmp(methods[i].key, key) == 0)
            return &methods[i];
    return NULL;
}

/* ---- Tensors ---- */

/* What only one method adds; the first that is found counts, so what several
 * have stands last. */
static const struct {
    const char *ending;
    const char *name;
} marks[] = {
    {".g_idx", "GPTQ"},
    {".SCB", "bitsandbytes"},
    {".absmax", "bitsandbytes"},
    {".quant_map", "bitsandbytes"},
    {".weight_packed", "compressed-tensors"},
    {".weight_scale_2", "NVFP4"},
    {".weight_scales", "EETQ"},
    {".W_q", "HQQ"},
    {".codebooks", "AQLM"},
    {".centroids", "VPTQ"},
    {".weight._data", "Quanto"},
    {"_blocks", "MXFP4"},
    {".qzeros", "GPTQ or AWQ"},
    {".qweight", "GPTQ or AWQ"},
};

#define N_MARKS (sizeof(marks) / sizeof(marks[0]))

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A matrix of whole numbers beside which their scales stand. Many pack in
 * this way; MLX's matrices are of 32-bit words. */
static const char *
scaled_integers(struct lmq_checkpoint *checkpoint,
                const struct lmq_name_list *list,
                const struct lmq_tensor *tensor)
{
    const char *name = tensor->stored_name;
    size_t stem = strlen(name) - strlen("weight");

    if (tensor->n_dims < 2 || lmq_dtype_is_float(tensor->dtype) ||
        !ends_with(name, ".weight"))
        return NULL;
    if (tensor->dtype == LMQ_DTYPE_U32 &&
        lmq_name_list_find(checkpoint, list, name, stem, "scales") != NULL)
        return "MLX";
    return lmq_name_list_find(checkpoint, list, name, stem, "weight_scale") !=
                   NULL
               ? "int8 or int4 with scales"
               : NULL;
}

/* NULL: nothing is packed, as far as the tensors show. */
static const char *
look_at_tensors(struct lmq_checkpoint *checkpoint,
                const struct lmq_name_list *list)
{
    size_t best = N_MARKS;
    const char *integers = NULL;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        for (size_t j = 0; j < best; j++)
            if (ends_with(tensor->stored_name, marks[j].ending))
                best = j;
        if (integers == NULL)
            integers = scaled_integers(checkpoint, list, tensor);
    }
    return best < N_MARKS ? marks[best].name : integers;
}

/* ---- What it comes to ---- */

/* What config.json says; *reading is REFUSED if it names a method that is not
 * known. "" if it says nothing. */
static const char *
look_at_config(const json_t *config, enum reading *reading)
{
    const json_t *scheme = json_object_get(config, "quantization_config");
    const char *key =
        json_string_value(json_object_get(scheme, "quant_method"));
    const struct method *method = key == NULL ? NULL : find_method(key);

    *reading = method == NULL ? REFUSED : method->reading;
    if (method != NULL)
        return method->name;
    if (key != NULL)
        return key;
    /* MLX names no method. */
    if (!json_is_object(scheme))
        scheme = json_object_get(config, "quantization");
    if (json_object_get(scheme, "group_size") != NULL &&
        json_object_get(scheme, "bits") != NULL)
        return "MLX";
    return json_is_object(scheme) && json_object_size(scheme) > 0
               ? "a method that config.json does not name"
               : "";
}

static void
refuse(struct lmq_checkpoint *checkpoint, const char *name, bool is_seen)
{
    snprintf(checkpoint->packed, sizeof(checkpoint->packed), "%.*s",
             (int)sizeof(checkpoint->packed) - 1, name);
    checkpoint->is_packed_by_config = !is_seen;
    checkpoint->has_model = false;
    checkpoint->hparams.unsupported[0] = '\0';
    lmq_hparams_refuse(&checkpoint->hparams, "weights packed by %s",
                       checkpoint->packed);
    lmq_checkpoint_note(checkpoint,
                        "%s that the weights are packed by %s: they cannot be "
                        "read here, only looked at",
                        is_seen ? "the tensors show" : "config.json says",
                        checkpoint->packed);
}

enum lmq_status
lmq_packed_understand(struct lmq_checkpoint *checkpoint, const json_t *config,
                      struct lmq_error *err)
{
    struct lmq_name_list list;
    enum reading reading;
    const char *declared = look_at_config(config, &reading);
    enum lmq_status status = lmq_name_list_make(checkpoint, &list, err);

    if (status != LMQ_OK)
        return status;
    const char *seen = look_at_tensors(checkpoint, &list);
    if (seen != NULL)
        refuse(checkpoint,
               *declared == '\0' || reading == FP8 ? seen : declared, true);
    else if (*declared != '\0' && reading == REFUSED)
        refuse(checkpoint, declared, false);
    else
        status = lmq_fp8_attach_scales(
            checkpoint, &list, json_object_get(config, "quantization_config"),
            err);
    lmq_name_list_free(&list);
    return status;
}

enum lmq_status
lmq_checkpoint_need_weights(const struct lmq_checkpoint *checkpoint,
                            struct lmq_error *err)
{
    const char *advice = NULL;

    if (checkpoint->packed[0] == '\0')
        return LMQ_OK;
    for (size_t i = 0; i < N_METHODS && advice == NULL; i++)
        if (strcmp(methods[i].name, checkpoint->packed) == 0)
            advice = methods[i].advice;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "the weights are packed by %s, which is not read",
             checkpoint->packed);
    if (checkpoint->is_packed_by_config)
        lmq_hint(err, "convert the original float checkpoint; or, if these "
                      "are plain floats after all, remove "
                      "quantization_config from config.json");
    else
        lmq_hint(err, "%s",
                 advice != NULL
                     ? advice
                     : "convert the original float checkpoint, or dequantize "
                       "this one with the tool that made it");
    lmq_error_in(err, checkpoint->path);
    return LMQ_ERR_UNSUPPORTED;
}
