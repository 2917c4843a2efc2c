/*
 * hf_rope.c - rotary positions in config.json: base, dimensions, scaling.
 *
 * Two forms: older files have "rope_theta" and "rope_scaling", newer ones keep
 * both in "rope_parameters", by kind of layer where layers differ. To the
 * library they are one object, which may have all. A key that nothing here
 * understands makes the model one that cannot run.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/report.h"
#include "formats/hf/hf_reader.h"
#include "formats/model/rope_scaling.h"

/* Of whatever kind; what a kind does not use does not matter. */
static const char *const known_keys[] = {
    "rope_type",
    "type",
    "factor",
    "rope_theta",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "low_freq_factor",
    "high_freq_factor",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "short_factor",
    "long_factor",
    "short_mscale",
    "long_mscale",
    "truncate",
    "alpha",
    "llama_4_scaling_beta",
    "finetuned", /* that the weights were: no number depends on it */
    "max_position_embeddings", /* a copy of the model's, which counts */
};

/* What a frequency is divided by that does not turn within any context; GGUF
 * has this number, too. */
#define NEVER 1e30

/* ---- Where it stands ---- */

static bool
is_by_kind(const json_t *parameters)
{
    return lmq_hf_has(parameters, "full_attention") ||
           lmq_hf_has(parameters, "sliding_attention");
}

/* Of parameters by kind of layer, those of `kind`; else the same for all. */
static const json_t *
of_kind(struct lmq_hf_config *config, const json_t *parameters,
        const char *kind)
{
    return is_by_kind(parameters) ? lmq_hf_object(config, parameters, kind)
                                  : parameters;
}

const json_t *
lmq_hf_rope_object(struct lmq_hf_config *config)
{
    const json_t *parameters =
        lmq_hf_object(config, config->json, "rope_parameters");
    const json_t *scaling =
        lmq_hf_object(config, config->json, "rope_scaling");

    return json_object_size(scaling) > 0 ? scaling : parameters;
}

double
lmq_hf_rotary_part(struct lmq_hf_config *config, double absent)
{
    static const char key[] = "partial_rotary_factor";
    double beside = lmq_hf_real(config, config->json, key, absent);

    return lmq_hf_real(config, lmq_hf_rope_object(config), key, beside);
}

/* "type" is the older name, of which some files still have both. */
static const char *
kind_of_scaling(struct lmq_hf_config *config, const json_t *scaling)
{
    const char *type = lmq_hf_text(config, scaling, "type", "default");

    return lmq_hf_text(config, scaling, "rope_type", type);
}

/* ---- Kinds of scaling ---- */

static const char context_key[] = "original_max_position_embeddings";

/* The context before scaling. Phi 3 has it beside the scaling, or in its class;
 * of two that differ newer versions of the library take that one. */
static uint32_t
original_context(struct lmq_hf_config *config, const json_t *scaling,
                 uint32_t absent)
{
    uint32_t usual = config->family->hf.original_context;
    uint32_t beside = lmq_hf_count(config, config->json, context_key,
                                   usual == 0 ? absent : usual);
    uint32_t inside = lmq_hf_count(config, scaling, context_key, beside);

    if (inside != beside &&
        (usual > 0 || lmq_hf_has(config->json, context_key)))
        lmq_hparams_refuse(config->hparams,
                           "an '%s' of %u in rotary scaling and %u beside it, "
                           "which versions of the library take differently",
                           context_key, inside, beside);
    return inside;
}

/* Who says nothing means the one that the model has. */
static void
read_context(struct lmq_hf_config *config, const json_t *scaling)
{
    struct lmq_hparams *h = config->hparams;

    h->rope_context = original_context(config, scaling, h->context);
    if (h->rope_context == 0)
        lmq_hf_fail(config, "'%s' in the configuration is 0", context_key);
}

/* No kind of scaling has a default for it. */
static void
read_factor(struct lmq_hf_config *config, const json_t *scaling)
{
    if (!lmq_hf_has(scaling, "factor"))
        lmq_hf_fail(config, "the '%s' rotary scaling lacks its 'factor'",
                    kind_of_scaling(config, scaling));
}

/* As Llama 3.1 introduced it: high frequencies stay, low ones are divided,
 * those between are blended; with two equal factors, as Llama 4 Scout has them,
 * there are none. All three numbers are needed. */
static void
read_llama3(struct lmq_hf_config *config, const json_t *scaling)
{
    struct lmq_hparams *h = config->hparams;

    read_factor(config, scaling);
    h->rope_low_factor = lmq_hf_real(config, scaling, "low_freq_factor", 0);
    h->rope_high_factor = lmq_hf_real(config, scaling, "high_freq_factor", 0);
    h->rope_context = original_context(config, scaling, 0);
    if (h->rope_context == 0 || !(h->rope_low_factor > 0) ||
        !(h->rope_high_factor >= h->rope_low_factor))
        lmq_hf_fail(config, "the 'llama3' rotary scaling lacks a sensible "
                            "low_freq_factor, high_freq_factor or "
                            "original_max_position_embeddings");
}

/* The library's base grows with what is beyond the model's own context; but
 * Hunyuan's is always the one that a length of alpha times that would have. */
static void
read_dynamic(struct lmq_hf_config *config, const json_t *scaling)
{
    double alpha = lmq_hf_real(config, scaling, "alpha", 0);

    if (config->family->hf.has_rope_alpha && alpha > 0) {
        config->hparams->rope_scaling = LMQ_ROPE_NTK;
        config->hparams->rope_factor = alpha;
        return;
    }
    read_factor(config, scaling);
    config->hparams->rope_context = config->hparams->context;
}

static double
positive_or(double value, double otherwise)
{
    return value > 0 ? value : otherwise;
}

/* Frequencies are blended between two numbers of rotations (beta_fast,
 * beta_slow); the attention factor makes up for what that does to the scores.
 * Where no factor is given it follows from the two lengths of context. */
static void
read_yarn(struct lmq_hf_config *config, const json_t *scaling)
{
    struct lmq_hparams *h = config->hparams;
    double scale = lmq_hf_real(config, scaling, "mscale", 0);
    double scale_all = lmq_hf_real(config, scaling, "mscale_all_dim", 0);

    read_context(config, scaling);
    if (h->rope_context == h->context) /* which says nothing */
        read_factor(config, scaling);
    if (!lmq_hf_has(scaling, "factor") && h->rope_context > 0)
        h->rope_factor = (double)h->context / h->rope_context;
    h->rope_beta_fast =
        positive_or(lmq_hf_real(config, scaling, "beta_fast", 0), 32);
    h->rope_beta_slow =
        positive_or(lmq_hf_real(config, scaling, "beta_slow", 0), 1);
    h->rope_ramp_exact = !lmq_hf_switch(config, scaling, "truncate", true);
    double attention = lmq_rope_yarn_gain(h->rope_factor, 1);
    if (scale > 0 && scale_all > 0)
        attention = lmq_rope_yarn_gain(h->rope_factor, scale) /
                    lmq_rope_yarn_gain(h->rope_factor, scale_all);
    else if (!lmq_hf_has(scaling, "attention_factor") &&
             ((scale > 0 && scale != 1) || scale_all > 0))
        /* The model's own code and the library disagree about one alone,
         * unless that is 1. */
        lmq_hparams_refuse(h, "'mscale' or 'mscale_all_dim' without the other");
    h->rope_attention_factor =
        lmq_hf_real(config, scaling, "attention_factor", attention);
}

/* Returns how many there are. */
static uint32_t
read_factors(struct lmq_hf_config *config, const json_t *scaling,
             const char *key, double *factors)
{
    const json_t *list = lmq_hf_list(config, scaling, key);
    size_t n = json_array_size(list);

    if (n == 0 || n > LMQ_MAX_ROPE_FACTORS) {
        lmq_hf_fail(config, "'%s' in the configuration has %zu factors, "
                            "expected 1 to %d",
                    key, n, LMQ_MAX_ROPE_FACTORS);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *factor = json_array_get(list, i);
        if (!json_is_number(factor))
            lmq_hf_fail(config, "'%s' in the configuration is no list of "
                                "numbers",
                        key);
        factors[i] = json_number_value(factor);
    }
    return (uint32_t)n;
}

/* In place of the attention factor, one for short contexts and one for long
 * ones: here they are one. */
static void
read_mscales(struct lmq_hf_config *config, const json_t *scaling)
{
    double gain = lmq_hf_real(config, scaling, "short_mscale", NAN);
    double later = lmq_hf_real(config, scaling, "long_mscale", NAN);

    if (isnan(gain) || isnan(later))
        lmq_hf_fail(config, "the configuration has no '%s'",
                    isnan(gain) ? "short_mscale" : "long_mscale");
    else if (!(gain > 0))
        lmq_hf_fail(config, "'short_mscale' in the configuration is %g", gain);
    if (gain < later || gain > later)
        lmq_hparams_refuse(config->hparams, "a 'short_mscale' of %g and a "
                                            "'long_mscale' of %g",
                           gain, later);
    config->hparams->rope_attention_factor = gain;
}

/* Some versions of the library look for the original context beside the scaling
 * alone, and then make the factor of it, whatever is said; but a few classes of
 * their own code. */
static void
check_longrope(struct lmq_hf_config *config, const json_t *scaling)
{
    const struct lmq_hf_form *form = &config->family->hf;
    struct lmq_hparams *h = config->hparams;
    bool is_beside = form->original_context > 0 ||
                     lmq_hf_has(config->json, context_key);
    double ratio = (double)h->context / h->rope_context;

    if (form->has_mscales)
        return;
    if (!is_beside && !form->has_inner_context && h->rope_context != h->context)
        lmq_hparams_refuse(h, "an '%s' in rotary scaling and none beside it, "
                              "which versions of the library take differently",
                           context_key);
    else if ((is_beside || form->has_inner_context) &&
             !lmq_hf_has(scaling, "attention_factor") &&
             fabs(h->rope_factor - ratio) > 1e-6 * ratio)
        lmq_hparams_refuse(h, "a 'factor' of %g and contexts of %u and %u, "
                              "which versions of the library take differently",
                           h->rope_factor, h->rope_context, h->context);
}

/* A factor for each frequency, one list for short contexts and one for long
 * ones. The attention factor is sqrt(1 + ln(factor) / ln(original context))
 * unless it is said. */
static void
read_longrope(struct lmq_hf_config *config, const json_t *scaling)
{
    struct lmq_hparams *h = config->hparams;
    double attention = 1;

    read_context(config, scaling);
    h->n_rope_factors =
        read_factors(config, scaling, "short_factor", h->rope_short);
    if (read_factors(config, scaling, "long_factor", h->rope_long) !=
        h->n_rope_factors)
        lmq_hf_fail(config, "'short_factor' and 'long_factor' in the "
                            "configuration differ in length");
    if (!lmq_hf_has(scaling, "factor") && h->rope_context > 0)
        h->rope_factor = (double)h->context / h->rope_context;
    if (h->rope_context == 1) /* whose logarithm divides */
        lmq_hf_fail(config, "'original_max_position_embeddings' in the "
                            "configuration is 1");
    else if (h->rope_factor > 1)
        attention = sqrt(1 + log(h->rope_factor) / log(h->rope_context));
    h->rope_attention_factor =
        lmq_hf_real(config, scaling, "attention_factor", attention);
    check_longrope(config, scaling);
    if (config->family->hf.has_mscales)
        read_mscales(config, scaling);
}

void
lmq_hf_turn_part(struct lmq_hf_config *config, double part, double factor)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t dim = lmq_hparams_far_rotary_dim(h), pairs = dim / 2;
    double n = floor(part * dim / 2);

    if (pairs > LMQ_MAX_ROPE_FACTORS || !(part >= 0 && part <= 1)) {
        lmq_hf_fail(config, "'partial_rotary_factor' in the configuration is "
                            "%g, of heads of %u",
                    part, dim);
        return;
    }
    h->rope_scaling = LMQ_ROPE_FACTORS;
    h->n_rope_factors = pairs;
    for (uint32_t i = 0; i < pairs; i++)
        h->rope_short[i] = i < n ? factor : NEVER;
}

/* Frequencies are those of the whole head. */
static void
read_proportional(struct lmq_hf_config *config, const json_t *scaling)
{
    lmq_hf_turn_part(config,
                     lmq_hf_real(config, scaling, "partial_rotary_factor", 1),
                     config->hparams->rope_factor);
}

static void
write_factor(const struct lmq_hparams *h, json_t **scaling)
{
    lmq_hf_put_real(scaling, "factor", h->rope_factor);
    if (h->rope_context > 0)
        lmq_hf_put_count(scaling, "original_max_position_embeddings",
                         h->rope_context);
}

static void
write_llama3(const struct lmq_hparams *h, json_t **scaling)
{
    write_factor(h, scaling);
    lmq_hf_put_real(scaling, "low_freq_factor", h->rope_low_factor);
    lmq_hf_put_real(scaling, "high_freq_factor", h->rope_high_factor);
}

static void
write_yarn(const struct lmq_hparams *h, json_t **scaling)
{
    write_factor(h, scaling);
    lmq_hf_put_real(scaling, "beta_fast", h->rope_beta_fast);
    lmq_hf_put_real(scaling, "beta_slow", h->rope_beta_slow);
    lmq_hf_put_real(scaling, "attention_factor", h->rope_attention_factor);
    if (h->rope_ramp_exact)
        lmq_hf_put_switch(scaling, "truncate", false);
}

static const struct {
    const char *name;
    enum lmq_rope_scaling scaling;
    void (*read)(struct lmq_hf_config *config, const json_t *scaling);
    void (*write)(const struct lmq_hparams *h, json_t **scaling);
} kinds[] = {
    {"linear", LMQ_ROPE_LINEAR, read_factor, write_factor},
    {"llama3", LMQ_ROPE_LLAMA3, read_llama3, write_llama3},
    {"ntk", LMQ_ROPE_NTK, read_factor, NULL},
    {"dynamic", LMQ_ROPE_DYNAMIC, read_dynamic, write_factor},
    {"yarn", LMQ_ROPE_YARN, read_yarn, write_yarn},
    {"deepseek_yarn", LMQ_ROPE_YARN, read_yarn, NULL},
    {"longrope", LMQ_ROPE_LONGROPE, read_longrope, NULL},
    {"su", LMQ_ROPE_LONGROPE, read_longrope, NULL},
    {"proportional", LMQ_ROPE_FACTORS, read_proportional, NULL},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Keys that mean something in some families only. */
static bool
is_foreign(const struct lmq_hf_form *form, const char *key)
{
    const struct {
        const char *key;
        bool is_known;
    } keys[] = {
        {"alpha", form->has_rope_alpha},
        {"short_mscale", form->has_mscales},
        {"long_mscale", form->has_mscales},
        {"llama_4_scaling_beta", form->has_score_growth},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].key, key) == 0)
            return !keys[i].is_known;
    return false;
}

/* A key that is not known may change the frequencies: such a model is refused
 * by the key's name rather than computed without it. */
static void
check_keys(struct lmq_hf_config *config, const json_t *scaling)
{
    const size_t n = sizeof(known_keys) / sizeof(known_keys[0]);
    void *iter = json_object_iter((json_t *)(uintptr_t)scaling);

    for (; iter != NULL;
         iter = json_object_iter_next((json_t *)(uintptr_t)scaling, iter)) {
        const char *key = json_object_iter_key(iter);
        size_t i = 0;
        while (i < n && strcmp(key, known_keys[i]) != 0)
            i++;
        /* Sections are of images: in a text all turn alike. */
        if (config->family->hf.has_sections && strncmp(key, "mrope_", 6) == 0)
            continue;
        if ((i == n || is_foreign(&config->family->hf, key)) &&
            !json_is_null(json_object_iter_value(iter)))
            lmq_hparams_refuse(config->hparams, "'%.60s' in rotary scaling",
                               key);
    }
}

/* "default" is no scaling. A factor without a kind was written by hand, and
 * what it means is a guess. */
void
lmq_hf_read_scaling(struct lmq_hf_config *config, const json_t *scaling)
{
    struct lmq_hparams *h = config->hparams;
    const char *type = kind_of_scaling(config, scaling);

    check_keys(config, scaling);
    /* Sections turn by the place in an image; text has one place for all. */
    if (strcmp(type, "mrope") == 0 && config->family->hf.has_sections)
        type = "default";
    if (strcmp(type, "default") == 0) {
        if (lmq_hf_has(scaling, "factor") &&
            !lmq_hf_has(scaling, "rope_type") && !lmq_hf_has(scaling, "type"))
            lmq_hparams_refuse(h, "rotary scaling of a kind that is not said");
        return;
    }
    /* Phi 3's first files call it so. */
    if (strcmp(type, "yarn") == 0 && lmq_hf_has(scaling, "short_factor"))
        type = "longrope";
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(type, kinds[i].name) == 0) {
            h->rope_scaling = kinds[i].scaling;
            h->rope_factor = lmq_hf_real(config, scaling, "factor", 1);
            kinds[i].read(config, scaling);
            return;
        }
    lmq_hparams_refuse(h, "rotary scaling '%.60s'", type);
}

/* ---- The rest ---- */

/* Outside of an object. A class with a name of its own does not read the usual
 * one. */
static const char *
theta_key(const struct lmq_family *family)
{
    return family->hf.theta_key != NULL ? family->hf.theta_key : "rope_theta";
}

static const char *
part_key(const struct lmq_family *family)
{
    return family->hf.partial_key != NULL ? family->hf.partial_key
                                          : "partial_rotary_factor";
}

/* `full` is what is said of layers that see everything. */
static bool
has_theta(const struct lmq_hf_config *config, const json_t *full)
{
    return lmq_hf_has(full, "rope_theta") ||
           lmq_hf_has(config->json, theta_key(config->family));
}

static const char inner_part_key[] = "partial_rotary_factor";

/* Of a head, that turns. */
static double
part_of(struct lmq_hf_config *config, const json_t *parameters)
{
    const struct lmq_family *family = config->family;
    double usual = family->hf.partial > 0 ? family->hf.partial : 1;
    double beside =
        lmq_hf_real(config, config->json, part_key(family), usual);

    return lmq_hf_real(config, parameters, inner_part_key, beside);
}

/* How much of a head turns. */
static void
read_dimensions(struct lmq_hf_config *config, const json_t *parameters)
{
    const struct lmq_family *family = config->family;
    struct lmq_hparams *h = config->hparams;
    double part = part_of(config, parameters);

    if (strcmp(kind_of_scaling(config, parameters), "proportional") == 0)
        return; /* there it says something else */
    if (h->rotary_dim != 0 || (part >= 1 && part <= 1))
        return;
    if (family->hf.partial <= 0)
        lmq_hparams_refuse(h, "'%s' in a model of this kind",
                           inner_part_key);
    if (part > 0 && part < 1)
        h->rotary_dim = (uint32_t)(h->head_dim * part);
    if (h->rotary_dim == 0)
        lmq_hf_fail(config, "'%s' in the configuration is %g: nothing turns",
                    inner_part_key, part);
}

/* What has been read is of layers that see everything. */
static void
read_parts(struct lmq_hf_config *config, double part)
{
    struct lmq_hparams *h = config->hparams;

    h->full_rotary_dim = lmq_hparams_rotary_dim(h);
    h->rotary_dim = part > 0 && part <= 1 ? (uint32_t)(h->head_dim * part) : 0;
    if (h->rotary_dim == 0)
        lmq_hf_fail(config, "'%s' in the configuration is %g: nothing turns",
                    inner_part_key, part);
}

/* Layers with a window turn by a base of their own and without scaling, as much
 * of a head as in the others, but where these may differ. With nothing said
 * about bases theirs is the class's. */
static void
read_local(struct lmq_hf_config *config, const json_t *rope)
{
    bool is_nested = is_by_kind(rope);
    const json_t *local =
        is_nested ? of_kind(config, rope, "sliding_attention") : NULL;
    const struct lmq_hf_form *form = &config->family->hf;
    struct lmq_hparams *h = config->hparams;
    double theta = form->local_theta, part, whole = 1;
    bool is_said = is_nested || has_theta(config, rope);

    if ((form->has_parts || form->has_still_kinds) && is_nested &&
        local == NULL) { /* no windows, or they do not turn */
        h->rope_local_theta = h->rope_theta;
        h->full_rotary_dim = lmq_hparams_rotary_dim(h);
        return;
    }
    if (form->local_key != NULL)
        theta = lmq_hf_real(config, config->json, form->local_key, theta);
    if (form->local_key == NULL && local == NULL && is_said &&
        (theta < h->rope_theta || theta > h->rope_theta))
        lmq_hparams_refuse(h, "a 'rope_theta' of %g, which versions of the "
                              "library take differently",
                           h->rope_theta);
    if (form->partial > 0)
        whole = part_of(config, of_kind(config, rope, "full_attention"));
    part = part_of(config, local);
    if (form->has_parts) {
        read_parts(config, part);
        part = whole;
    }
    if (strcmp(kind_of_scaling(config, local), "default") != 0 ||
        part < whole || part > whole)
        lmq_hparams_refuse(h, "rotary scaling of layers with a window");
    check_keys(config, local);
    if (local != NULL && !lmq_hf_has(local, "rope_theta") &&
        form->local_key == NULL &&
        (form->theta < form->local_theta || form->theta > form->local_theta))
        lmq_hparams_refuse(h, "'sliding_attention' without a 'rope_theta'");
    h->rope_local_theta = lmq_hf_real(config, local, "rope_theta", theta);
}

/* Where kinds of layers differ the library has "rope_parameters" by kind, and
 * older files "rope_scaling" for one of them; another form would mean something
 * else to it, or nothing. */
static void
check_form(struct lmq_hf_config *config, const json_t *rope)
{
    const struct lmq_hf_form *form = &config->family->hf;
    const json_t *parameters = json_object_get(config->json, "rope_parameters");
    const json_t *scaling = json_object_get(config->json, "rope_scaling");
    struct lmq_hparams *h = config->hparams;

    if (form->turns_unsaid && rope == NULL)
        lmq_hparams_refuse(h, "a model of this kind without "
                              "'rope_parameters'");
    if (is_by_kind(scaling) ||
        (form->local_theta <= 0 && is_by_kind(parameters)))
        lmq_hparams_refuse(h, "rotary positions by kind of layer");
    if (form->local_theta > 0 && !lmq_hf_has(scaling, "rope_type") &&
        strcmp(kind_of_scaling(config, scaling), "default") != 0)
        lmq_hparams_refuse(h, "'type' in 'rope_scaling' without 'rope_type', "
                              "which versions of the library take "
                              "differently");
    if (form->local_theta <= 0 || json_object_size(parameters) == 0)
        return;
    if (json_object_size(scaling) > 0)
        lmq_hparams_refuse(h, "'rope_scaling' beside 'rope_parameters'");
    else if (!is_by_kind(parameters))
        lmq_hparams_refuse(h, "'rope_parameters' without kinds of layers");
}

/* Base, part of the head and scaling, for layers that see everything; then
 * what differs in layers with a window. */
void
lmq_hf_read_rope(struct lmq_hf_config *config)
{
    const struct lmq_family *family = config->family;
    struct lmq_hparams *h = config->hparams;

    if (family->hf.has_own_layers)
        return;
    const json_t *rope = lmq_hf_rope_object(config);
    const json_t *full = of_kind(config, rope, "full_attention");
    check_form(config, rope);
    if (family->hf.theta_differs && !has_theta(config, full))
        config->source->unsaid_theta = theta_key(family);
    h->rope_theta = lmq_hf_real(config, config->json, theta_key(family),
                                family->hf.theta);
    h->rope_theta = lmq_hf_real(config, full, "rope_theta", h->rope_theta);
    read_dimensions(config, full);
    lmq_hf_read_scaling(config, full);
    if (family->hf.local_theta > 0)
        read_local(config, rope);
}

/* In the older form, which newer versions of the library read too. */
void
lmq_hf_write_rope(const struct lmq_family *family, const struct lmq_hparams *h,
                  json_t **config)
{
    json_t *scaling = json_null();

    lmq_hf_put_real(config, theta_key(family), h->rope_theta);
    if (family->hf.local_key != NULL && h->rope_local_theta > 0)
        lmq_hf_put_real(config, family->hf.local_key, h->rope_local_theta);
    if (family->hf.partial > 0)
        lmq_hf_put_real(config, part_key(family),
                        (double)lmq_hparams_rotary_dim(h) / h->head_dim);
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].scaling == h->rope_scaling && kinds[i].write != NULL) {
            scaling = json_object();
            lmq_hf_put_text(&scaling, "rope_type", kinds[i].name);
            kinds[i].write(h, &scaling);
        }
    lmq_put(config, "rope_scaling", scaling);
}

/* DeepSeek multiplies the scores by the square of the gain, beside what the
 * frequencies have. */
double
lmq_hf_yarn_score_scale(struct lmq_hf_config *config)
{
    const json_t *scaling =
        of_kind(config, lmq_hf_rope_object(config), "full_attention");
    double scale = lmq_hf_real(config, scaling, "mscale_all_dim", 0);

    if (!(scale > 0) ||
        strcmp(kind_of_scaling(config, scaling), "default") == 0)
        return 1;
    scale = lmq_rope_yarn_gain(config->hparams->rope_factor, scale);
    return scale * scale;
}
