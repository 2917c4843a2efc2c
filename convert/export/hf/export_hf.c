/*
 * export_hf.c - whether Hugging Face's formats can express a checkpoint.
 *
 * For the families that share Llama's names. What hf_config.c and names.c make
 * need not be trusted: it is read back and compared.
 */
#include "config.h"

#include "convert/export/hf/export_hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "formats/hf/hf_config.h"
#include "formats/families/families.h"
#include "formats/model/hparams_compare.h"
#include "formats/model/hparams_json.h"

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* ---- Names ---- */

/* What a layer of attention has is called as in a Llama. */
static bool
make_name(const struct lmq_family *family, const struct lmq_hparams *h,
          const struct lmq_place *place, char *name, size_t size)
{
    enum lmq_names names = family->hf.names;

    if (names == LMQ_NAMES_DELTA &&
        (place->layer < 0 ||
         !lmq_layer_is(h, (size_t)place->layer, LMQ_LAYER_DELTA)))
        names = LMQ_NAMES_LLAMA;
    return lmq_name_hf(names, place,
                       h->norm_place != LMQ_NORMS_BEFORE, name, size);
}

void
lmq_hf_words_name(const struct lmq_hf_words *words,
                  const struct lmq_checkpoint *checkpoint,
                  const struct lmq_tensor *tensor, char *name, size_t size)
{
    if (words->family == NULL ||
        !make_name(words->family, &checkpoint->hparams, &tensor->place, name,
                   size))
        snprintf(name, size, "%s", tensor->name);
}

/* Every name must be known to be that of its tensor. Which of two norms the
 * one behind attention is depends on the family. */
static bool
names_are_understood(const struct lmq_family *family,
                     const struct lmq_checkpoint *checkpoint)
{
    char name[128];
    struct lmq_place back;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_place *place = &checkpoint->tensors[i].place;
        if (!make_name(family, &checkpoint->hparams, place, name,
                       sizeof(name)) ||
            !lmq_name_parse(name, &back) || back.part != place->part ||
            back.layer != place->layer || back.item != place->item)
            return false;
        if (back.role != place->role &&
            !(back.role == LMQ_ROLE_FFN_NORM &&
              place->role == LMQ_ROLE_ATTN_POST_NORM))
            return false;
    }
    return true;
}

bool
lmq_hf_words_subtract(const struct lmq_hf_words *words,
                      const struct lmq_tensor *tensor)
{
    static const enum lmq_role roles[] = {
        LMQ_ROLE_OUTPUT_NORM,   LMQ_ROLE_ATTN_NORM,
        LMQ_ROLE_FFN_NORM,      LMQ_ROLE_ATTN_POST_NORM,
        LMQ_ROLE_FFN_POST_NORM, LMQ_ROLE_ATTN_Q_NORM,
        LMQ_ROLE_ATTN_K_NORM,
    };

    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (words->norms_less_one && tensor->place.role == roles[i] &&
            tensor->place.part == LMQ_PART_WEIGHT)
            return true;
    return false;
}

/* ---- config.json ---- */

static size_t
count_biases(const struct lmq_checkpoint *checkpoint, enum lmq_role role)
{
    size_t n = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        n += checkpoint->tensors[i].place.role == role &&
             checkpoint->tensors[i].place.part == LMQ_PART_BIAS;
    return n;
}

/* The keys for biases. False if their class would expect others. */
static bool
set_biases(const struct lmq_family *family,
           const struct lmq_checkpoint *checkpoint, json_t **config)
{
    static const enum lmq_role matrices[] = {
        LMQ_ROLE_ATTN_Q,   LMQ_ROLE_ATTN_K,   LMQ_ROLE_ATTN_V,
        LMQ_ROLE_ATTN_OUT, LMQ_ROLE_FFN_GATE, LMQ_ROLE_FFN_UP,
        LMQ_ROLE_FFN_DOWN, LMQ_ROLE_HEAD,
    };

    for (size_t i = 0; i < COUNT_OF(matrices); i++) {
        const char *key = lmq_family_bias(family, matrices[i])->key;
        size_t n = count_biases(checkpoint, matrices[i]);
        bool has = n > 0;
        bool is_named = key != NULL && *key != '\0';
        if (n != 0 && matrices[i] != LMQ_ROLE_HEAD &&
            n != checkpoint->hparams.n_layers)
            return false;
        if (is_named && json_object_get(*config, key) == NULL)
            lmq_put(config, key, json_boolean(has));
        bool wants = is_named ? json_is_true(json_object_get(*config, key))
                              : key != NULL;
        if (has != wants)
            return false;
    }
    return true;
}

/* Whether the configuration says what the model is, no more and no less;
 * *source is what it says of the arrangement. */
static enum lmq_status
read_back(const struct lmq_hparams *hparams, const json_t *config,
          struct lmq_source *source, bool *is_same, struct lmq_error *err)
{
    struct lmq_hparams back;
    bool is_known = false;
    char *text = lmq_json_dump(config, JSON_REAL_PRECISION(17));

    *source = (struct lmq_source){0};
    *is_same = false;
    lmq_hparams_init(&back);
    if (text == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_config_parse((const unsigned char *)text, strlen(text), &back,
                         source, &is_known, err);
    free(text);
    if (status != LMQ_OK || !is_known)
        return lmq_status_is_of_system(status) ? status : LMQ_OK;
    *is_same = lmq_hparams_are_same(hparams, &back) &&
               !source->has_rotary_pairs && !source->is_transposed;
    return LMQ_OK;
}

/* ---- The words ---- */

/* What computes as a Llama does is one by its name, too: others do not know the
 * class, which is not one of transformers. */
static void
take_known_name(struct lmq_hparams *h)
{
    if (strcmp(h->architecture, "xverse") == 0)
        snprintf(h->architecture, sizeof(h->architecture), "llama");
}

/* What only lmquant understands. */
static json_t *
make_own_config(const struct lmq_checkpoint *checkpoint)
{
    json_t *config = json_object();

    lmq_put(&config, "lmquant",
            lmq_hparams_to_json(&checkpoint->hparams));
    return config;
}

enum lmq_status
lmq_hf_words_find(const struct lmq_checkpoint *checkpoint, const char *type,
                  struct lmq_hf_words *words, struct lmq_notes *notes,
                  struct lmq_error *err)
{
    struct lmq_hparams own = checkpoint->hparams;
    const struct lmq_hparams *h = &own;
    struct lmq_source source = {0};

    take_known_name(&own);
    const struct lmq_family *family = lmq_family_find(h->architecture);
    *words = (struct lmq_hf_words){0};
    if (!checkpoint->has_model) {
        lmq_notes_add(notes, "there is no model, so no config.json "
                                  "is written: tensors only");
        return LMQ_OK;
    }
    if (family != NULL && family->hf.names != LMQ_NAMES_NONE &&
        h->unsupported[0] == '\0' &&
        names_are_understood(family, checkpoint)) {
        json_t *config = lmq_config_make(family, h,
                                         lmq_checkpoint_is_tied(checkpoint));
        bool fits = set_biases(family, checkpoint, &config), is_same = false;
        enum lmq_status status = LMQ_OK;
        if (config == NULL)
            return lmq_fail_nomem(err);
        if (fits)
            status = read_back(h, config, &source, &is_same, err);
        if (status != LMQ_OK) {
            json_decref(config);
            return status;
        }
        if (is_same) {
            words->family = family;
            words->config = config;
            words->norms_less_one = source.norms_less_one;
        } else {
            json_decref(config);
        }
    }
    if (words->config == NULL) {
        words->config = make_own_config(checkpoint);
        lmq_notes_add(notes,
                      "'%s' is not written in Hugging Face's words: "
                      "names and config.json are lmquant's own, which "
                      "other programs do not understand",
                      checkpoint->hparams.architecture);
    }
    lmq_put(&words->config, "torch_dtype", json_string(type));
    return words->config == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

void
lmq_hf_words_free(struct lmq_hf_words *words)
{
    json_decref(words->config);
    *words = (struct lmq_hf_words){0};
}
