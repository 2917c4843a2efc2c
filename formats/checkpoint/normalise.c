/*
 * normalise.c - what a reader found becomes the one form.
 *
 * Names and order are canonical, what nobody needs is left out, and a model
 * has every tensor that its description asks for, in the right shape.
 *
 * In this order: tensors that no computation needs are dropped; places are
 * found from names; where embedding and head are one, the file may have
 * either; what is fused is split into views; all get canonical names and are
 * sorted; then a model is held against its description, tensor by tensor, and
 * for what lacks.
 *
 * A model that has something which nobody here understands is no error but a
 * model that cannot run, and says why. Wrong shapes and missing tensors are
 * errors: there the file contradicts itself.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/grams/tables.h"
#include "formats/model/hparams_check.h"
#include "formats/model/model_tensors.h"
#include "formats/model/pools.h"
#include "quantize/blocks.h"

int
lmq_tensor_compare(const void *a, const void *b)
{
    const struct lmq_tensor *x = a, *y = b;
    int order = lmq_place_compare(&x->place, &y->place);

    return order != 0 ? order : strcmp(x->name, y->name);
}

/* Where a block has norms behind its parts too, what is called the norm after
 * attention really is that; and so is what the library saves instead, which
 * renames it in all layers of OLMo Hybrid. */
static bool
is_post_norm(const struct lmq_checkpoint *checkpoint,
             const struct lmq_tensor *tensor)
{
    return checkpoint->has_model &&
           !checkpoint->source.has_apart_norms &&
           tensor->place.role == LMQ_ROLE_FFN_NORM &&
           lmq_layer_norm_place(&checkpoint->hparams,
                                (size_t)tensor->place.layer) !=
               LMQ_NORMS_BEFORE &&
           (strstr(tensor->stored_name, "post_attention_layernorm") != NULL ||
            strstr(tensor->stored_name, "feedforward_layer_norm") != NULL);
}

/* What experts would share, where there are none. */
static enum lmq_role
feed_forward_role(enum lmq_role role)
{
    switch ((int)role) {
    case LMQ_ROLE_SHARED_GATE:
        return LMQ_ROLE_FFN_GATE;
    case LMQ_ROLE_SHARED_UP:
        return LMQ_ROLE_FFN_UP;
    case LMQ_ROLE_SHARED_DOWN:
        return LMQ_ROLE_FFN_DOWN;
    case LMQ_ROLE_SHARED_GATE_UP:
        return LMQ_ROLE_FFN_GATE_UP;
    default:
        return role;
    }
}

/* What has one place in a layer with experts, beside them, is what all tokens
 * go through; and what is called so where there are no experts is the
 * feed-forward. */
static enum lmq_role
shared_role(const struct lmq_checkpoint *checkpoint,
            const struct lmq_place *place)
{
    if (!checkpoint->has_model || place->item >= 0)
        return place->role;
    if (checkpoint->hparams.n_experts == 0)
        return feed_forward_role(place->role);
    if (!checkpoint->hparams.has_expert_norms || place->layer < 0 ||
        place->layer >= (int32_t)checkpoint->hparams.n_layers ||
        !lmq_layer_has_experts(&checkpoint->hparams, (size_t)place->layer))
        return place->role;
    switch ((int)place->role) {
    case LMQ_ROLE_FFN_GATE:
        return LMQ_ROLE_SHARED_GATE;
    case LMQ_ROLE_FFN_UP:
        return LMQ_ROLE_SHARED_UP;
    case LMQ_ROLE_FFN_DOWN:
        return LMQ_ROLE_SHARED_DOWN;
    default:
        return place->role;
    }
}

/* The only norm of a layer that is a feed-forward alone. */
static bool
is_feed_norm(const struct lmq_checkpoint *checkpoint,
             const struct lmq_place *place)
{
    const struct lmq_hparams *h = &checkpoint->hparams;

    return checkpoint->has_model && place->role == LMQ_ROLE_ATTN_NORM &&
           place->layer >= 0 && place->layer < (int32_t)h->n_layers &&
           !lmq_layer_mixes(h, (size_t)place->layer);
}

/* Of a recurrence beside attention, of which both have one. */
static bool
is_state_output(const struct lmq_checkpoint *checkpoint,
                const struct lmq_tensor *tensor)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    const struct lmq_place *place = &tensor->place;

    return checkpoint->has_model && place->role == LMQ_ROLE_ATTN_OUT &&
           place->layer >= 0 && place->layer < (int32_t)h->n_layers &&
           lmq_layer_is(h, (size_t)place->layer, LMQ_LAYER_BESIDE) &&
           (strstr(tensor->stored_name, ".mamba.") != NULL ||
            strstr(tensor->stored_name, ".ssm_out.") != NULL);
}

/* Most names tell all; where a family uses a name in another sense, its reader
 * has set the place already. */
static void
place_tensor(const struct lmq_checkpoint *checkpoint,
             struct lmq_tensor *tensor)
{
    if (tensor->name != NULL) /* the format knows it */
        return;
    if (tensor->place.role == LMQ_ROLE_OTHER)
        lmq_name_parse(tensor->stored_name, &tensor->place);
    if (is_post_norm(checkpoint, tensor))
        tensor->place.role = LMQ_ROLE_ATTN_POST_NORM;
    if (is_state_output(checkpoint, tensor))
        tensor->place.role = LMQ_ROLE_STATE_OUT;
    if (is_feed_norm(checkpoint, &tensor->place))
        tensor->place.role = LMQ_ROLE_FFN_NORM;
    if (checkpoint->has_model && tensor->place.role == LMQ_ROLE_ATTN_Q_NORM &&
        checkpoint->hparams.qk_norm == LMQ_QK_NORM_BARE_QUERIES)
        tensor->place.role = LMQ_ROLE_ATTN_Q_A_NORM; /* the only one */
    tensor->place.role = shared_role(checkpoint, &tensor->place);
    if (tensor->n_dims == 0 && tensor->place.role != LMQ_ROLE_OTHER) {
        tensor->n_dims = 1; /* a number is a vector of one */
        tensor->dims[0] = 1;
    }
}

/* What is of single heads or streams, but was not taken apart for them, has no
 * place. */
static enum lmq_status
name_tensor(struct lmq_tensor *tensor, struct lmq_error *err)
{
    char name[64];

    if (tensor->name != NULL)
        return LMQ_OK;
    if (tensor->place.role == LMQ_ROLE_OTHER ||
        tensor->place.role >= LMQ_ROLE_COUNT ||
        (tensor->place.item < 0 && lmq_role_wants_item(tensor->place.role))) {
        tensor->place = (struct lmq_place){LMQ_ROLE_OTHER, LMQ_PART_WEIGHT,
                                           -1, -1};
        tensor->name = strdup(tensor->stored_name);
    } else {
        lmq_name_canonical(&tensor->place, name, sizeof(name));
        tensor->name = strdup(name);
    }
    return tensor->name == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* Places that several tensors have say nothing: these keep their own names. */
static enum lmq_status
rename_rivals(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    struct lmq_tensor *tensors = checkpoint->tensors;
    enum lmq_status status = LMQ_OK;

    for (size_t first = 0, end; first < checkpoint->n_tensors; first = end) {
        for (end = first + 1; end < checkpoint->n_tensors; end++)
            if (lmq_place_compare(&tensors[first].place,
                                  &tensors[end].place) != 0)
                break;
        if (tensors[first].place.role == LMQ_ROLE_OTHER || end == first + 1)
            continue;
        for (size_t i = first; i < end && status == LMQ_OK; i++) {
            free(tensors[i].name);
            tensors[i].name = NULL;
            tensors[i].place.role = LMQ_ROLE_OTHER;
            status = name_tensor(&tensors[i], err);
        }
    }
    if (checkpoint->n_tensors > 0)
        qsort(tensors, checkpoint->n_tensors, sizeof(*tensors),
              lmq_tensor_compare);
    return status;
}

/* Some files have keys and values even of layers that borrow others'. */
static bool
is_unused(const struct lmq_checkpoint *checkpoint,
          const struct lmq_tensor *tensor)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    struct lmq_place place;

    if (!checkpoint->has_model || h->n_borrowing == 0 ||
        !lmq_name_parse(tensor->stored_name, &place) || place.layer < 0 ||
        place.layer >= (int32_t)h->n_layers ||
        !lmq_layer_borrows(h, (size_t)place.layer))
        return false;
    return place.role == LMQ_ROLE_ATTN_K || place.role == LMQ_ROLE_ATTN_V ||
           place.role == LMQ_ROLE_ATTN_K_NORM;
}

/* Nor do layers without experts have a norm behind them, be it in the file. */
static bool
follows_no_experts(const struct lmq_checkpoint *checkpoint,
                   const struct lmq_tensor *tensor)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    struct lmq_place place;

    return checkpoint->has_model && h->has_mixture_norm &&
           lmq_name_parse(tensor->stored_name, &place) &&
           place.role == LMQ_ROLE_FFN_POST_NORM && place.layer >= 0 &&
           place.layer < (int32_t)h->n_layers &&
           !lmq_layer_has_feed_post_norm(h, (size_t)place.layer);
}

/* Nor does a router choose where a table does. */
static bool
has_no_choice(const struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    struct lmq_place place;

    return checkpoint->has_model &&
           lmq_name_parse(tensor->stored_name, &place) &&
           place.role == LMQ_ROLE_ROUTER_CORRECTION && place.layer >= 0 &&
           place.layer < (int32_t)h->n_layers &&
           lmq_layer_has_table(h, (size_t)place.layer);
}

/* Whether a layer has what chooses positions. */
static bool
is_of_chooser(const struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, bool chooses)
{
    int32_t layer = lmq_name_layer(tensor->stored_name);

    return strstr(tensor->stored_name, ".indexer.") != NULL && layer >= 0 &&
           layer < (int32_t)checkpoint->hparams.n_layers &&
           lmq_layer_chooses(&checkpoint->hparams, (size_t)layer) == chooses;
}

/* Files may lack what chooses: then the context ends where not all is seen. */
static void
adopt_index(struct lmq_checkpoint *checkpoint)
{
    struct lmq_hparams *h = &checkpoint->hparams;
    uint32_t n = checkpoint->source.n_chosen;
    bool has_any = false;

    if (n == 0 || !checkpoint->has_model || !lmq_chooses(h))
        return;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        has_any |= is_of_chooser(checkpoint, &checkpoint->tensors[i], true);
    if (has_any) {
        checkpoint->source.n_chosen = 0;
        return;
    }
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i] &= ~(uint32_t)LMQ_LAYER_INDEX;
    h->context_end = n;
    if (h->context > n)
        h->context = n;
}

/* Rotary tables, causal masks and the like are computed here; heads for
 * several tokens at a time (DeepSeek V3) are layers behind the last one. */
static const char *
excuse(const struct lmq_checkpoint *checkpoint,
       const struct lmq_tensor *tensor)
{
    uint32_t end = checkpoint->hparams.n_layers +
                   checkpoint->source.n_further_layers;

    if (tensor->n_elements == 0)
        return "it is empty";
    if (checkpoint->source.n_further_layers > 0 &&
        lmq_name_layer(tensor->stored_name) >=
            (int32_t)checkpoint->hparams.n_layers &&
        lmq_name_layer(tensor->stored_name) < (int32_t)end)
        return "it serves to predict several tokens at a time";
    if (checkpoint->source.n_chosen > 0 &&
        (strstr(tensor->stored_name, ".indexer.") != NULL ||
         strstr(tensor->stored_name, ".indexer_") != NULL ||
         strstr(tensor->stored_name, ".self_attn.index_") != NULL))
        return "it chooses among more tokens than the context has";
    if (checkpoint->hparams.n_gram_factors > 0 &&
        lmq_tensor_is_of_grams(tensor))
        return "the description says it";
    if (lmq_chooses(&checkpoint->hparams) &&
        is_of_chooser(checkpoint, tensor, false))
        return "its layer sees what an earlier one chooses";
    if (is_unused(checkpoint, tensor))
        return "its layer uses the keys and values of another one";
    if (follows_no_experts(checkpoint, tensor))
        return "its layer has no experts, behind which it would stand";
    if (has_no_choice(checkpoint, tensor))
        return "a table chooses the experts of its layer";
    return lmq_name_why_ignored(tensor->stored_name);
}

/* Leaves out what nobody needs, with a note. */
static void
drop_ignorable(struct lmq_checkpoint *checkpoint)
{
    size_t kept = 0, dropped = 0;

    if (checkpoint->source.n_chosen > 0)
        lmq_checkpoint_note(checkpoint,
                            "sparse attention sees all of %u tokens%s",
                            checkpoint->source.n_chosen,
                            checkpoint->hparams.context <
                                    checkpoint->source.n_chosen
                                ? ", more than the context has"
                                : ": the context ends there");
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        const char *reason = excuse(checkpoint, tensor);
        if (reason == NULL) {
            checkpoint->tensors[kept++] = *tensor;
            continue;
        }
        if (dropped++ == 0)
            lmq_checkpoint_note(checkpoint, "tensor '%s' is left out: %s",
                                tensor->stored_name, reason);
        lmq_tensor_free(tensor);
    }
    if (dropped > 1)
        lmq_checkpoint_note(checkpoint,
                            "%zu more like it are left out", dropped - 1);
    checkpoint->n_tensors = kept;
}

/* ---- Is it a model of this description? ---- */

/* "64 x 32", for messages. */
static void
describe_shape(const uint64_t *dims, uint32_t n_dims, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < n_dims && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%" PRIu64,
                         i == 0 ? "" : " x ", dims[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

static enum lmq_status
check_shape(const struct lmq_hparams *hparams, const struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    uint64_t dims[2];
    uint32_t n_dims;
    char found[128], wanted[64];

    lmq_model_shape(hparams, &tensor->place, dims, &n_dims);
    if (tensor->n_dims == n_dims && tensor->dims[0] == dims[0] &&
        (n_dims == 1 || tensor->dims[1] == dims[1]))
        return LMQ_OK;
    describe_shape(tensor->dims, tensor->n_dims, found, sizeof(found));
    describe_shape(dims, n_dims, wanted, sizeof(wanted));
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "tensor '%s' is %s, but the configuration says %s",
             tensor->stored_name, found, wanted);
    return LMQ_ERR_FORMAT;
}

/* By the canonical name: the one in the file is not known, since it is not
 * there. */
static enum lmq_status
fail_missing(const struct lmq_place *place, struct lmq_error *err)
{
    char name[64];

    lmq_name_canonical(place, name, sizeof(name));
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "lacks the tensor %s%s", name,
             place->layer >= 0 ? " (layers count from 0)" : "");
    lmq_hint(err, "the file may be incomplete, or its configuration may "
                  "belong to another model");
    return LMQ_ERR_FORMAT;
}

/* All tensors of one role and part. There are `n_found` of them, all of
 * different places that the model has: so counting is enough to know that
 * none is missing, and only then one is looked for. */
static enum lmq_status
check_role(const struct lmq_checkpoint *checkpoint, enum lmq_role role,
           enum lmq_part part, uint64_t n_found, struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    bool is_per_layer = lmq_role_is_per_layer(role);
    uint32_t n_layers = is_per_layer ? h->n_layers : 1, n_items;
    uint64_t n_wanted = 0;

    for (uint32_t i = 0; i < n_layers; i++) {
        struct lmq_place place = {role, part, is_per_layer ? (int32_t)i : -1,
                                  -1};
        if (lmq_model_has(h, &place, &n_items))
            n_wanted += n_items == 0 ? 1 : n_items;
    }
    if (n_found == n_wanted || (n_found == 0 && lmq_model_may_lack(role, part)))
        return LMQ_OK;
    for (uint32_t i = 0; i < n_layers; i++) {
        struct lmq_place place = {role, part, is_per_layer ? (int32_t)i : -1,
                                  -1};
        if (!lmq_model_has(h, &place, &n_items))
            continue;
        place.item = n_items == 0 ? -1 : 0;
        do {
            if (lmq_checkpoint_find_place(checkpoint, &place) == NULL)
                return fail_missing(&place, err);
        } while (++place.item < (int32_t)n_items);
    }
    return LMQ_OK;
}

/* Counting first: of a mixture there are thousands of tensors, and all are
 * there but in damaged files. */
static enum lmq_status
check_complete(const struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    uint64_t found[LMQ_ROLE_COUNT][LMQ_PART_COUNT] = {{0}};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        found[checkpoint->tensors[i].place.role]
             [checkpoint->tensors[i].place.part]++;
    for (int role = 1; role < LMQ_ROLE_COUNT; role++)
        for (int part = 0; part < LMQ_PART_COUNT && status == LMQ_OK; part++)
            status = check_role(checkpoint, (enum lmq_role)role,
                                (enum lmq_part)part, found[role][part], err);
    return status;
}

/* A tensor that the description has no use for means that the description
 * does not say all. */
static enum lmq_status
check_tensor(struct lmq_checkpoint *checkpoint,
             const struct lmq_tensor *tensor, struct lmq_error *err)
{
    struct lmq_hparams *h = &checkpoint->hparams;
    const struct lmq_place *place = &tensor->place;
    uint32_t n_items;

    if (place->role == LMQ_ROLE_OTHER) {
        lmq_hparams_refuse(h, "the tensor '%.100s'", tensor->stored_name);
        return LMQ_OK;
    }
    if (place->layer >= (int32_t)h->n_layers)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s' belongs to layer %d, but the "
                        "configuration says %u layers",
                        tensor->stored_name, (int)place->layer, h->n_layers);
    if (!lmq_model_has(h, place, &n_items) || !lmq_model_has_part(h, place) ||
        (n_items == 0 ? place->item >= 0
                      : place->item < 0 || place->item >= (int32_t)n_items)) {
        lmq_hparams_refuse(h, "the tensor '%.100s'", tensor->stored_name);
        return LMQ_OK;
    }
    return check_shape(h, tensor, err);
}

/* What is not understood comes before what lacks: a model of an unknown kind
 * would lack much, and that is not the reason. */
static enum lmq_status
check_model(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++)
        status = check_tensor(checkpoint, &checkpoint->tensors[i], err);
    if (status != LMQ_OK || checkpoint->hparams.unsupported[0] != '\0')
        return status;
    return check_complete(checkpoint, err);
}

/* Where embedding and head are tied, a file may have either. */
static void
adopt_head(struct lmq_checkpoint *checkpoint)
{
    struct lmq_tensor *head = NULL;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->place.part != LMQ_PART_WEIGHT || tensor->name != NULL)
            continue;
        if (tensor->place.role == LMQ_ROLE_EMBEDDING)
            return;
        if (tensor->place.role == LMQ_ROLE_HEAD)
            head = tensor;
    }
    if (head == NULL)
        return;
    head->place.role = LMQ_ROLE_EMBEDDING;
    if (checkpoint->hparams.tie == LMQ_TIE_NO)
        lmq_checkpoint_note(checkpoint,
                            "the configuration says that the head is not "
                            "tied, but there is no embedding: the head "
                            "serves as embedding");
}

/* Some classes begin with a correction of zeros, which files need not have. */
static void
adopt_correction(struct lmq_checkpoint *checkpoint)
{
    bool has_any = false;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        has_any |= checkpoint->tensors[i].place.role ==
                   LMQ_ROLE_ROUTER_CORRECTION;
    if (checkpoint->source.may_lack_correction && !has_any)
        checkpoint->hparams.router_corrects = false;
}

/* Places, then parts of their own for what is fused. */
static enum lmq_status
find_places(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    enum lmq_status compared = lmq_grams_compare(checkpoint, err);

    if (compared != LMQ_OK)
        return compared;
    adopt_index(checkpoint);
    drop_ignorable(checkpoint);
    if (checkpoint->n_tensors == 0 && !checkpoint->format->is_canonical)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "holds no tensors");
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        place_tensor(checkpoint, &checkpoint->tensors[i]);
    if (!checkpoint->has_model)
        return LMQ_OK;
    adopt_head(checkpoint);
    adopt_correction(checkpoint);
    lmq_hparams_settle(&checkpoint->hparams);
    enum lmq_status status = lmq_hparams_check(&checkpoint->hparams, err);
    return status != LMQ_OK || checkpoint->format->is_canonical
               ? status
               : lmq_checkpoint_split(checkpoint, err);
}

/* As stored: of packed and quantized tensors their readers know it. */
static void
set_bits(struct lmq_tensor *tensor)
{
    const struct lmq_block_type *blocks = tensor->blocks;

    if (blocks != NULL)
        tensor->bits_per_element = 8.0 * blocks->size / blocks->n;
    else if (tensor->encoding == NULL)
        tensor->bits_per_element = 8.0 * (double)lmq_dtype_size(tensor->dtype);
}

/* Biases of all matrices of which this key speaks. */
static size_t
count_biases(const struct lmq_checkpoint *checkpoint, const char *key)
{
    size_t n = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_place *place = &checkpoint->tensors[i].place;
        const char *its = checkpoint->source.bias_key[place->role];
        n += place->part == LMQ_PART_BIAS && its != NULL &&
             strcmp(its, key) == 0;
    }
    return n;
}

/* One key speaks of several roles, which need not be neighbours. */
static bool
speaks_earlier(const struct lmq_source *source, size_t role)
{
    for (size_t i = 0; i < role; i++)
        if (source->bias_key[i] != NULL &&
            strcmp(source->bias_key[i], source->bias_key[role]) == 0)
            return true;
    return false;
}

/* The tensors decide. Who reads the same files by what the configuration says
 * would leave biases out, or make some of zeros. */
static void
compare_biases(struct lmq_checkpoint *checkpoint)
{
    const struct lmq_source *source = &checkpoint->source;

    for (size_t role = 0; role < LMQ_ROLE_COUNT; role++) {
        const char *key = source->bias_key[role];
        if (key == NULL || speaks_earlier(source, role))
            continue;
        const size_t n = count_biases(checkpoint, key);
        if (source->has_bias[role] == (n > 0))
            continue;
        if (n > 0 && !source->says_bias[role])
            lmq_checkpoint_note(checkpoint,
                                "the configuration does not say that there "
                                "are biases (\"%s\"), but there are %zu: "
                                "they take part",
                                key, n);
        else if (n > 0)
            lmq_checkpoint_note(checkpoint,
                                "the configuration says that there are no "
                                "biases (\"%s\": false), but there are %zu: "
                                "they take part",
                                key, n);
        else if (source->says_bias[role])
            lmq_checkpoint_note(checkpoint,
                                "the configuration says that there are biases "
                                "(\"%s\": true), but there are none",
                                key);
        else if (*key != '\0')
            lmq_checkpoint_note(checkpoint,
                                "models of this kind have biases unless "
                                "\"%s\" is false, but there are none",
                                key);
        else
            lmq_checkpoint_note(checkpoint,
                                "models of this kind have biases of queries, "
                                "keys and values, but there are none");
    }
}

enum lmq_status
lmq_checkpoint_normalise(struct lmq_checkpoint *checkpoint,
                         struct lmq_error *err)
{
    enum lmq_status status = find_places(checkpoint, err);

    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++) {
        set_bits(&checkpoint->tensors[i]);
        lmq_tensor_settle_integers(&checkpoint->tensors[i]);
        status = name_tensor(&checkpoint->tensors[i], err);
    }
    if (status != LMQ_OK)
        return status;
    if (checkpoint->n_tensors > 0)
        qsort(checkpoint->tensors, checkpoint->n_tensors,
              sizeof(*checkpoint->tensors), lmq_tensor_compare);
    if (!checkpoint->has_model ||
        checkpoint->hparams.unsupported[0] != '\0') {
        status = rename_rivals(checkpoint, err);
        if (status != LMQ_OK)
            return status;
    }
    for (size_t i = 1; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (strcmp(tensor->name, tensor[-1].name) == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensors '%s' and '%s' are the same (%s)",
                            tensor[-1].stored_name, tensor->stored_name,
                            tensor->name);
    }
    if (checkpoint->has_model)
        compare_biases(checkpoint);
    return checkpoint->has_model ? check_model(checkpoint, err) : LMQ_OK;
}
