/*
 * packed.c - weights that other tools have packed.
 *
 * They are recognised by the tensors that each tool adds, and by what
 * config.json says. What can be read becomes matrices like all others; the
 * rest is refused by name where elements are needed, and can be looked at.
 */
#include "config.h"

#include "formats/packed/packed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/text/ends.h"
#include "formats/packed/schemes.h"

#define METHOD "quant_method"
/* A bit for each element, set if it is kept. */
#define MASK ".bitmask"
/* What an input of the matrix is multiplied with, or divided by. */
#define INPUT_SCALE ".pre_quant_scale"
#define SCALED_ACTIVATION ".act.scales"

/* ---- Schemes ---- */

/* Asked about what only a matrix has that cannot be read, or not alone. */
static enum lmq_status
refuse_mark(struct lmq_packer *packer, struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    static const struct {
        const char *ending, *words;
    } marks[] = {
        {MASK, "sparse, with bit masks"},
        {INPUT_SCALE, "behind scaled activations"},
        {SCALED_ACTIVATION, "behind scaled activations"},
    };

    (void)err;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (lmq_ends_with(tensor->stored_name, marks[i].ending)) {
            lmq_packer_refuse(packer, "%s", marks[i].words);
            return LMQ_OK;
        }
    lmq_packer_refuse(packer, "'%s' turns activations",
                      strrchr(tensor->stored_name, '.'));
    return LMQ_OK;
}

/* The first that has a tensor's ending and a function that takes it joins it
 * with its parts; of those that cannot, the first gives the name. */
static const struct scheme {
    const char *method; /* quant_method; NULL: any or none */
    const char *name;   /* as it is called */
    const char *ending; /* of a tensor that only it adds; "": of any */
    lmq_scheme_join *join; /* NULL: it cannot be read */
    bool may_be_plain;  /* there need not be anything packed */
    const char *advice; /* NULL: the usual one */
} schemes[] = {
    {"gptq", "GPTQ", ".qweight", lmq_gptq_join, false, NULL},
    {"awq", "AWQ", ".qweight", lmq_awq_join, false, NULL},
    {"auto-round", "AutoRound", ".qweight", lmq_autoround_join, false, NULL},
    {"bitsandbytes", "bitsandbytes", ".SCB", lmq_bnb8_join, false,
     "convert the original float checkpoint; or load this one with "
     "transformers, call dequantize() and save_pretrained()"},
    {"bitsandbytes", "bitsandbytes", ".quant_state.bitsandbytes__nf4",
     lmq_bnb4_join, false, NULL},
    {"bitsandbytes", "bitsandbytes", ".quant_state.bitsandbytes__fp4",
     lmq_bnb4_join, false, NULL},
    {"bitsandbytes", "bitsandbytes", ".absmax", NULL, false, NULL},
    {"bitsandbytes", "bitsandbytes", ".quant_map", NULL, false, NULL},
    {"mlx", "MLX", ".scales", lmq_mlx_join, false,
     "convert the original float checkpoint; or 'mlx_lm.convert "
     "--dequantize' makes one"},
    {"compressed-tensors", "compressed-tensors", ".weight_packed",
     lmq_compressed_join, true, NULL},
    {"compressed-tensors", "compressed-tensors", "", lmq_int8_join, true,
     NULL},
    {NULL, "compressed-tensors", MASK, refuse_mark, true, NULL},
    {"modelopt", "ModelOpt", INPUT_SCALE, refuse_mark, true, NULL},
    {"awq", "AWQ", SCALED_ACTIVATION, refuse_mark, true, NULL},
    {"modelopt", "ModelOpt", "", lmq_int8_join, true, NULL},
    {"quark", "Quark", NULL, NULL, true, NULL},
    {NULL, "AutoRound", ".hadamard_matrix", refuse_mark, true, NULL},
    {NULL, "AutoRound", ".spinquant_r1_size", refuse_mark, true, NULL},
    {NULL, "AutoRound", ".spinquant_r4_size", refuse_mark, true, NULL},
    {NULL, "Quark", ".input_rotation", refuse_mark, true, NULL},
    {NULL, "NVFP4", "weight_scale_2", lmq_nvfp4_join, false, NULL},
    {"eetq", "EETQ", ".weight_scales", NULL, false, NULL},
    {"hqq", "HQQ", ".W_q", lmq_hqq_join, false, NULL},
    {"aqlm", "AQLM", ".codebooks", NULL, false, NULL},
    {"vptq", "VPTQ", ".centroids", NULL, false, NULL},
    {"fouroversix", "FourOverSix", ".quantized_weight_values", NULL, false,
     NULL},
    {"quanto", "Quanto", "._data", NULL, false, NULL},
    {"torchao", "torchao", "_qdata", lmq_torchao_join, false, NULL},
    {"bitnet", "BitNet", "", lmq_bitnet_join, false, NULL},
    {"mxfp4", "MXFP4", "_blocks", lmq_mxfp4_join, false,
     "load it with transformers and Mxfp4Config(dequantize=True), "
     "save_pretrained() it, and convert that"},
    {"fp8", "FP8", NULL, NULL, true, NULL},
    {"fbgemm_fp8", "FP8", NULL, NULL, true, NULL},
    {NULL, "FP4", "", lmq_fp4_join, true, NULL},
    {NULL, "FP8", "", lmq_fp8_join, true, NULL},
};

#define N_SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

static const struct scheme *
find_method(const char *method)
{
    for (size_t i = 0; i < N_SCHEMES; i++)
        if (schemes[i].method != NULL &&
            strcmp(schemes[i].method, method) == 0)
            return &schemes[i];
    return NULL;
}

/* Of activations, which a running model measures: not of weights. The biases
 * are what ModelOpt takes from keys and values before it rounds them. */
static const char *const ignored[] = {
    ".input_scale", ".output_scale", ".act_scale", ".activation_scale",
    ".k_scale",     ".v_scale",      ".q_scale",   ".kv_scale",
    ".prob_scale",  ".input_scale_ub", "_activation_scale",
    ".input_global_scale", ".output_global_scale", ".k_global_scale",
    ".v_global_scale", ".q_global_scale", ".input_zero_point",
    ".output_zero_point", ".k_zero_point", ".v_zero_point", ".q_zero_point",
    ".input_scale_2", ".output_scale_2", ".k_proj.k_bias", ".v_proj.v_bias",
};

static bool
is_ignored(const char *name)
{
    bool is_one = false;

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        is_one |= strlen(name) > strlen(ignored[i]) &&
                  lmq_ends_with(name, ignored[i]);
    return is_one;
}

/* ---- Tensors ---- */

static bool
fits_method(const struct lmq_packer *packer, const struct scheme *scheme)
{
    return scheme->method == NULL || packer->method == NULL ||
           strcmp(scheme->method, packer->method) == 0;
}

static bool
is_settled(const struct lmq_packer *packer, size_t index)
{
    return packer->fates[index].is_part || packer->fates[index].is_joined;
}

static bool
has_ending(const struct lmq_tensor *tensor, const struct scheme *scheme)
{
    return scheme->ending != NULL &&
           lmq_ends_with(tensor->stored_name, scheme->ending);
}

/* Joins the tensor, if a scheme can that has an ending of its own, or one that
 * has none; *refusing becomes the first scheme that says why it cannot. */
static enum lmq_status
join_tensor(struct lmq_packer *packer, size_t index, bool is_special,
            size_t *refusing, struct lmq_error *err)
{
    struct lmq_tensor *tensor = &packer->checkpoint->tensors[index];
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < N_SCHEMES && status == LMQ_OK; i++) {
        if (schemes[i].join == NULL || is_settled(packer, index) ||
            !has_ending(tensor, &schemes[i]) ||
            (*schemes[i].ending != '\0') != is_special ||
            !fits_method(packer, &schemes[i]))
            continue;
        status = schemes[i].join(packer, tensor, err);
        if (status != LMQ_OK)
            lmq_error_in(err, lmq_input_path(
                                  packer->checkpoint->files[tensor->file]));
        if (packer->refused[0] != '\0' && *refusing == N_SCHEMES)
            *refusing = i;
    }
    return status;
}

/* The first scheme that has the ending of a tensor which was not joined. */
static size_t
find_worst(const struct lmq_packer *packer)
{
    const struct lmq_checkpoint *checkpoint = packer->checkpoint;
    size_t worst = N_SCHEMES;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        for (size_t j = 0; j < worst && !is_settled(packer, i); j++)
            if (has_ending(&checkpoint->tensors[i], &schemes[j]) &&
                *schemes[j].ending != '\0')
                worst = j;
    return worst;
}

/* By an ending. What else there is need not have all its parts then. */
static bool
is_unreadable(const struct lmq_packer *packer)
{
    size_t worst = find_worst(packer);

    return worst < N_SCHEMES && schemes[worst].join == NULL;
}

/* A matrix of whole numbers beside which their scales stand. Many pack in
 * this way; MLX's matrices are of 32-bit words. */
static const char *
scaled_integers(const struct lmq_packer *packer,
                const struct lmq_tensor *tensor)
{
    static const char ending[] = ".weight";
    static const char *const scales[] = {".weight_scale", ".weight_scale_inv",
                                         ".scale"};

    if (tensor->n_dims < 2 || lmq_dtype_is_float(tensor->dtype) ||
        !lmq_ends_with(tensor->stored_name, ending))
        return NULL;
    if (tensor->dtype == LMQ_DTYPE_U32 &&
        lmq_packer_sibling(packer, tensor, ending, ".scales") != NULL)
        return "MLX";
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++)
        if (lmq_packer_sibling(packer, tensor, ending, scales[i]) != NULL)
            return "integers or FP4 with scales";
    return NULL;
}

/* *seen: by whom something is packed that cannot be read; NULL: nothing is. */
static enum lmq_status
join_all(struct lmq_packer *packer, const char **seen, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = packer->checkpoint;
    size_t refusing = N_SCHEMES;

    *seen = NULL;
    /* What is a part of another one is no matrix of its own. */
    for (size_t i = 0; i < 2 * checkpoint->n_tensors; i++) {
        size_t n = checkpoint->n_tensors;
        if (i == n && (refusing < N_SCHEMES || is_unreadable(packer)))
            break;
        enum lmq_status status =
            join_tensor(packer, i % n, i < n, &refusing, err);
        if (status != LMQ_OK)
            return status;
    }
    size_t worst = find_worst(packer);
    if (refusing < worst)
        worst = refusing;
    for (size_t i = 0; i < checkpoint->n_tensors && *seen == NULL; i++)
        *seen = scaled_integers(packer, &checkpoint->tensors[i]);
    if (worst < N_SCHEMES)
        *seen = schemes[worst].name;
    return LMQ_OK;
}

/* Parts and scales of activations go, joined tensors get their names. */
static void
settle_fates(struct lmq_packer *packer)
{
    struct lmq_checkpoint *checkpoint = packer->checkpoint;
    size_t kept = 0, n_ignored = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        struct lmq_packer_fate *fate = &packer->fates[i];
        bool is_useless = !fate->is_part && packer->n_findings > 0 &&
                          is_ignored(tensor->stored_name);
        n_ignored += is_useless;
        if (fate->name != NULL) {
            free(tensor->stored_name);
            tensor->stored_name = fate->name;
            fate->name = NULL;
        }
        if (fate->is_part || is_useless)
            lmq_tensor_free(tensor);
        else
            checkpoint->tensors[kept++] = *tensor;
    }
    checkpoint->n_tensors = kept;
    for (size_t i = 0; i < packer->n_findings; i++)
        lmq_checkpoint_note(checkpoint, "%s: %zu", packer->findings[i].text,
                            packer->findings[i].n);
    if (n_ignored > 0)
        lmq_checkpoint_note(checkpoint,
                            "scales of activations that are left out: %zu",
                            n_ignored);
}

/* ---- What it comes to ---- */

/* What config.json says; *scheme is NULL if it names a method that is not
 * known. "" if it says nothing. */
static const char *
look_at_config(const json_t *config, const struct scheme **scheme)
{
    const json_t *said = json_object_get(config, "quantization_config");
    const char *method =
        json_string_value(json_object_get(said, METHOD));

    *scheme = method == NULL ? NULL : find_method(method);
    if (method != NULL)
        return *scheme == NULL ? method : (*scheme)->name;
    /* MLX names no method. */
    if (!json_is_object(said))
        said = json_object_get(config, "quantization");
    if (json_object_get(said, "group_size") != NULL &&
        json_object_get(said, "bits") != NULL)
        return "MLX";
    return json_is_object(said) && json_object_size(said) > 0
               ? "a method that config.json does not name"
               : "";
}

/* An object without keys says nothing. */
static bool
says(const json_t *config, const char *key)
{
    return json_object_size(json_object_get(config, key)) > 0;
}

const json_t *
lmq_packed_said(const json_t *config)
{
    const json_t *text = json_object_get(config, "text_config");
    const json_t *const places[] = {config, text};

    for (size_t i = 0; i < 2; i++)
        if (says(places[i], "quantization_config") ||
            says(places[i], "quantization"))
            return places[i];
    return NULL;
}

/* Matrices that are no floats, nor masks of attention, of more dimensions. */
static bool
has_codes(const struct lmq_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].n_dims == 2 &&
            !lmq_dtype_is_float(checkpoint->tensors[i].dtype))
            return true;
    return false;
}

/* `detail` may be "". */
static void
refuse(struct lmq_checkpoint *checkpoint, const char *name, const char *detail,
       bool is_seen)
{
    const int most = (int)(sizeof(checkpoint->packed) -
                           sizeof(((struct lmq_packer *)0)->refused) - 4);

    snprintf(checkpoint->packed, sizeof(checkpoint->packed),
             *detail == '\0' ? "%.*s" : "%.*s (%s)", most, name, detail);
    checkpoint->is_packed_by_config = !is_seen && !has_codes(checkpoint);
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

/* The key by which what goes through the model is to be turned while it runs,
 * or NULL; what turns weights has been done to them. */
static const char *
find_rotation(const json_t *config)
{
    json_t *groups = json_object_get(
        json_object_get(config, "transform_config"), "config_groups");
    json_t *group, *at;
    const char *name;
    size_t i;

    if (says(config, "rotation_config"))
        return "rotation_config"; /* AutoRound's */
    json_object_foreach(groups, name, group)
        json_array_foreach(json_object_get(group, "apply"), i, at) {
            const char *location =
                json_string_value(json_object_get(at, "location"));
            if (location != NULL && strncmp(location, "weight_", 7) != 0)
                return "transform_config";
        }
    return NULL;
}

/* When all that can be joined is joined. */
static void
judge(struct lmq_packer *packer, const char *seen, const char *declared,
      const struct scheme *scheme)
{
    /* Of these two the tensors know more. */
    bool is_named = *declared != '\0' && strcmp(declared, "FP8") != 0;

    const char *rotation = find_rotation(packer->config);
    if (rotation != NULL) {
        lmq_packer_refuse(packer, "'%s' turns activations", rotation);
        seen = seen == NULL ? declared : seen;
    }
    if (seen != NULL)
        refuse(packer->checkpoint, is_named ? declared : seen,
               packer->refused, true);
    else if (!packer->may_be_plain && packer->n_findings == 0)
        refuse(packer->checkpoint, declared,
               scheme != NULL && scheme->join != NULL
                   ? "no tensor has a name that it gives"
                   : "",
               false);
}

/* MLX has a key of its own, and the other one for transformers. */
static enum lmq_status
choose_config(const json_t *config, const json_t **chosen,
              struct lmq_error *err)
{
    json_t *usual = json_object_get(config, "quantization_config");
    json_t *mlx = json_object_get(config, "quantization");

    *chosen = json_is_object(usual) ? usual : mlx;
    if (usual != NULL && !json_is_null(usual) && !json_is_object(usual))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'quantization_config' is no object");
    if (!json_is_object(usual) || !json_is_object(mlx) ||
        json_equal(usual, mlx))
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "'quantization_config' and 'quantization' say different things");
    lmq_hint(err, "remove the one that these weights are not of");
    return LMQ_ERR_FORMAT;
}

/* What the first class of BitNet, 1bitLLM's, does without a word: it rounds its
 * weights whenever it multiplies, unless they have another number of bits. NULL
 * for others; *status if there is no memory. Freed by the caller. */
static json_t *
unsaid_config(const json_t *config, enum lmq_status *status,
              struct lmq_error *err)
{
    const json_t *bits = json_object_get(config, "weight_bits");
    const char *class = json_string_value(
        json_array_get(json_object_get(config, "architectures"), 0));

    if (class == NULL || strcmp(class, "BitnetForCausalLM") != 0 ||
        lmq_packed_said(config) != NULL ||
        (bits != NULL && json_integer_value(bits) != 1))
        return NULL;
    json_t *outer = json_object(), *said = json_object();
    lmq_put(&said, METHOD, json_string("bitnet"));
    lmq_put(&said, "linear_class", json_string("autobitlinear"));
    lmq_put(&said, "quantization_mode", json_string("online"));
    lmq_put(&outer, "quantization_config", said);
    if (outer == NULL)
        *status = lmq_fail_nomem(err);
    return outer;
}

enum lmq_status
lmq_packed_understand(struct lmq_checkpoint *checkpoint, const json_t *config,
                      struct lmq_error *err)
{
    struct lmq_packer packer = {.checkpoint = checkpoint};
    const struct scheme *scheme;
    const char *declared, *seen;
    enum lmq_status status = LMQ_OK;
    json_t *unsaid = unsaid_config(config, &status, err);

    if (lmq_packed_said(config) != NULL)
        config = lmq_packed_said(config);
    if (unsaid != NULL)
        config = unsaid;
    declared = look_at_config(config, &scheme);
    if (status == LMQ_OK)
        status = choose_config(config, &packer.config, err);

    packer.method = json_string_value(json_object_get(packer.config, METHOD));
    packer.may_be_plain = *declared == '\0' ||
                          (scheme != NULL && scheme->may_be_plain);
    /* Others mean by such keys what they like. */
    if (status == LMQ_OK &&
        (packer.method == NULL || find_method(packer.method) != NULL))
        status = lmq_packer_check_config(&packer, err);
    if (status == LMQ_OK)
        status = lmq_name_list_make(checkpoint, &packer.list, err);
    packer.fates =
        calloc(checkpoint->n_tensors + 1, sizeof(*packer.fates));
    if (status == LMQ_OK && packer.fates == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = join_all(&packer, &seen, err);
    if (status == LMQ_OK) {
        settle_fates(&packer);
        judge(&packer, seen, declared, scheme);
    }
    for (size_t i = 0; packer.fates != NULL && i < packer.list.n; i++)
        free(packer.fates[i].name);
    free(packer.fates);
    json_decref(packer.plain);
    json_decref(unsaid);
    lmq_name_list_free(&packer.list);
    return status;
}

enum lmq_status
lmq_checkpoint_need_weights(const struct lmq_checkpoint *checkpoint,
                            struct lmq_error *err)
{
    const char *advice = NULL;

    if (checkpoint->packed[0] == '\0')
        return LMQ_OK;
    for (size_t i = 0; i < N_SCHEMES && advice == NULL; i++)
        if (strncmp(schemes[i].name, checkpoint->packed,
                    strlen(schemes[i].name)) == 0)
            advice = schemes[i].advice;
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
