/*
 * export_gguf_plan.c - what a GGUF of a checkpoint consists of.
 *
 * Names and fusions are those that llama.cpp loads. A description that GGUF
 * has no words for is refused: the keys that will be written are read back by
 * our own reader, and must give the same description.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/gguf/gguf_special.h"
#include "formats/model/hparams_compare.h"
#include "formats/model/rope_scaling.h"

/* ---- Targets ---- */

/* Parts of one tensor stand in one layer, so not far from each other. */
static struct lmq_gguf_target *
find_target(const struct lmq_gguf_plan *plan, const char *name)
{
    const size_t most_per_layer = 64;

    for (size_t i = plan->n_targets;
         i > 0 && plan->n_targets - i < most_per_layer; i--)
        if (strcmp(plan->targets[i - 1].name, name) == 0)
            return &plan->targets[i - 1];
    return NULL;
}

static enum lmq_status
add_source(struct lmq_gguf_plan *plan, const struct lmq_tensor *tensor,
           const char *name, struct lmq_error *err)
{
    struct lmq_gguf_target *target = find_target(plan, name);
    bool is_column = tensor->n_dims == 1;

    if (target == NULL)
        target = lmq_gguf_add_target(plan, name);
    if (target == NULL ||
        lmq_mem_grow(&target->sources, &target->capacity,
                     target->n_sources + 1, sizeof(*target->sources)) != 0)
        return lmq_fail_nomem(err);
    target->sources[target->n_sources++] = tensor;
    if (target->n_sources > 1 && target->n_cols != tensor->n_cols && !is_column)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF: the parts of '%s' have rows of different "
                        "lengths",
                        name);
    target->n_cols = is_column ? 1 : tensor->n_cols;
    target->n_rows += is_column ? tensor->n_elements : tensor->n_rows;
    return LMQ_OK;
}

/* llama.cpp keeps numbers of heads as a column, but for those of channels, of
 * most delta rules and where groups of positions are chosen; and a norm for
 * each group of heads in a row of its own. 0: one row, as others do. */
static uint64_t
rows_of_vector(const struct lmq_gguf_plan *plan, enum lmq_role role)
{
    const struct lmq_hparams *h = &plan->written;

    if (h->has_key_decays && role == LMQ_ROLE_DELTA_DECAY)
        return (plan->family->gguf.keys & LMQ_GGUF_GROUPS) != 0
                   ? 0
                   : h->n_delta_value_heads;
    if (!lmq_is_state_space(h))
        return 0;
    return role == LMQ_ROLE_DELTA_DECAY ||
                   (role == LMQ_ROLE_STATE_SKIP && !lmq_is_selective(h))
               ? h->n_delta_value_heads
           : role == LMQ_ROLE_DELTA_NORM ? h->n_delta_key_heads
                                         : 0;
}

/* The shape, once all sources are known. */
static void
shape_target(const struct lmq_gguf_plan *plan, struct lmq_gguf_target *target)
{
    const struct lmq_tensor *first = target->sources[0];
    bool has_items = first->place.item >= 0;
    uint64_t n_rows = rows_of_vector(plan, first->place.role);

    if (first->place.role == LMQ_ROLE_ATTN_OUT_A) {
        target->n_dims = 2; /* one part below the other */
        target->dims[0] = target->n_rows;
        target->dims[1] = target->n_cols;
    } else if (has_items && first->n_dims == 2) {
        target->n_dims = 3;
        target->dims[0] = target->n_sources;
        target->dims[1] = first->n_rows;
        target->dims[2] = first->n_cols;
    } else if (has_items) {
        target->n_dims = 2;
        target->dims[0] = target->n_sources;
        target->dims[1] = first->n_elements;
    } else if (first->place.role != LMQ_ROLE_DELTA_CONV &&
               lmq_role_is_convolution(first->place.role)) {
        target->n_dims = 3; /* of which the second is 1 */
        target->dims[0] = target->n_rows;
        target->dims[1] = 1;
        target->dims[2] = target->n_cols;
    } else if (first->n_dims == 2) {
        target->n_dims = 2;
        target->dims[0] = target->n_rows;
        target->dims[1] = target->n_cols;
    } else if (n_rows > 0) {
        target->n_dims = 2;
        target->dims[0] = n_rows;
        target->dims[1] = target->n_rows / n_rows;
    } else {
        target->n_dims = 1;
        target->dims[0] = target->n_rows;
    }
}

/* Where there are no words for the scales of embedding and logits they go into
 * tensors: that of logits into the norm before the head, which has no integers.
 */
static void
fold_scales(struct lmq_gguf_plan *plan, const struct lmq_checkpoint *checkpoint,
            struct lmq_source *as)
{
    struct lmq_hparams *h = &plan->written;
    const struct lmq_tensor *head = lmq_checkpoint_find(
        checkpoint, LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1);
    bool is_tied = head == NULL || head->alias_of != NULL;
    double last = h->logit_scale / (is_tied ? h->embedding_scale : 1);

    /* As floats, too, they are numbers. */
    if (!plan->family->gguf.folds_scales || !(h->embedding_scale > 1e-30) ||
        !(last > 1e-30 && last < 1e30))
        return;
    if (h->embedding_scale < 1 || h->embedding_scale > 1)
        as->times[LMQ_ROLE_EMBEDDING] = (float)h->embedding_scale;
    if (last < 1 || last > 1)
        as->times[LMQ_ROLE_OUTPUT_NORM] = (float)last;
    h->embedding_scale = h->logit_scale = 1;
}

/* The tensors as llama.cpp has them. */
static enum lmq_status
arrange(struct lmq_gguf_plan *plan, const struct lmq_checkpoint *checkpoint,
        struct lmq_error *err)
{
    const struct lmq_gguf_form *form = &plan->family->gguf;
    struct lmq_source as = {
        .has_rotary_pairs = form->has_rotary_pairs,
        .has_tiled_values = form->has_tiled_values,
        .has_decay_itself = (form->keys & LMQ_GGUF_ANY_STATE) != 0,
        .has_decay_above = (form->keys & LMQ_GGUF_DECAY_FLOOR) != 0,
    };
    fold_scales(plan, checkpoint, &as);
    enum lmq_status status =
        lmq_arrange(checkpoint, form->joins, &as, &plan->arranged, err);
    size_t n = plan->arranged.n_rounded;

    if (n > 0)
        lmq_notes_add(plan->notes,
                      "%zu quantized %s floats: GGUF's '%s' wants columns in "
                      "another order, which would take groups apart, or times "
                      "a number",
                      n, n == 1 ? "matrix becomes" : "matrices become",
                      form->name);
    for (uint32_t i = 0; i < plan->written.n_layers; i++)
        plan->rounds_decays |= as.has_decay_itself &&
                               lmq_layer_is(&plan->written, i, LMQ_LAYER_DELTA);
    if (plan->rounds_decays)
        lmq_notes_add(plan->notes,
                      "GGUF's '%s' has what decays itself, not its logarithm: "
                      "the last bit of these floats may be another",
                      form->name);
    plan->checkpoint = &plan->arranged.checkpoint;
    return status;
}

/* llama.cpp looks there for any token of the vocabulary. */
static void
fill_inputs(struct lmq_gguf_plan *plan, const char *name)
{
    struct lmq_gguf_target *target = find_target(plan, name);
    uint32_t vocab = plan->written.vocab_size;

    if (target == NULL || target->n_rows >= vocab)
        return;
    target->n_filled = vocab - target->n_rows;
    target->n_rows = vocab;
    plan->written.layer_input_vocab = 0;
    lmq_notes_add(plan->notes,
                  "GGUF's '%s' has inputs of layers for all tokens: %llu get "
                  "those of token 0, which count for them",
                  plan->family->gguf.name,
                  (unsigned long long)target->n_filled);
}

/* llama.cpp wants keys and values of layers that borrow them, too, and does not
 * look at them: they are those of the lender. */
static enum lmq_status
add_borrowed(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    static const enum lmq_role roles[] = {LMQ_ROLE_ATTN_K, LMQ_ROLE_ATTN_V,
                                          LMQ_ROLE_ATTN_K_NORM};
    const struct lmq_hparams *h = &plan->written;
    enum lmq_status status = LMQ_OK;
    char name[64];

    for (uint32_t i = h->n_layers - h->n_borrowing; i < h->n_layers; i++)
        for (size_t k = 0; k < 3 && status == LMQ_OK; k++) {
            struct lmq_place place = {roles[k], LMQ_PART_WEIGHT, (int32_t)i,
                                      -1};
            const struct lmq_tensor *lent = lmq_checkpoint_find(
                plan->checkpoint, roles[k], LMQ_PART_WEIGHT,
                (int32_t)lmq_layer_kv_source(h, i));
            lmq_gguf_target_name(plan, &place, name, sizeof(name));
            if (lent != NULL)
                status = add_source(plan, lent, name, err);
        }
    return status;
}

/* GGUF has keys for these. */
static bool
is_key(enum lmq_role role)
{
    for (size_t i = 0; i < LMQ_GGUF_XIELU_LISTS; i++)
        if (role == lmq_gguf_xielu_role(i))
            return true;
    return false;
}

static enum lmq_status
add_targets(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint = plan->checkpoint;
    bool is_tied = lmq_checkpoint_is_tied(checkpoint);
    enum lmq_status status = lmq_gguf_add_made(plan, err);
    char name[64];

    if (!is_tied && plan->family->gguf.head == LMQ_GGUF_HEAD_NEVER)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF: '%s' has no words for a head that is not the "
                        "embedding",
                        plan->family->gguf.name);
    for (size_t i = 0; i < checkpoint->n_tensors && status == LMQ_OK; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if ((is_tied && lmq_tensor_is_head(tensor)) ||
            is_key(tensor->place.role))
            continue;
        lmq_gguf_target_name(plan, &tensor->place, name, sizeof(name));
        status = add_source(plan, tensor, name, err);
        if (status == LMQ_OK && tensor->place.role == LMQ_ROLE_INPUTS)
            fill_inputs(plan, name);
        if (status == LMQ_OK && tensor->place.role == LMQ_ROLE_EMBEDDING &&
            is_tied && plan->family->gguf.head == LMQ_GGUF_HEAD_MUST)
            status = add_source(plan, tensor, "output.weight", err);
    }
    if (status == LMQ_OK && (plan->family->gguf.keys & LMQ_GGUF_STREAMS) != 0)
        status = add_borrowed(plan, err);
    for (size_t i = 0; i < plan->n_targets && status == LMQ_OK; i++)
        if (plan->targets[i].n_sources > 0)
            shape_target(plan, &plan->targets[i]);
    return status;
}

/* ---- Types ---- */

/* Types, sizes and offsets. */
static enum lmq_status
lay_out(struct lmq_gguf_plan *plan, const enum lmq_gguf_stored *wanted,
        struct lmq_error *err)
{
    uint64_t most[LMQ_GGUF_STORED_COUNT] = {0}, at = 0;

    for (size_t i = 0; i < plan->n_targets; i++) {
        struct lmq_gguf_target *target = &plan->targets[i];
        target->type = lmq_gguf_choose_type(target, wanted);
        const struct lmq_gguf_stored_type *type =
            &lmq_gguf_stored_types[target->type];
        uint64_t n = target->n_rows * target->n_cols;
        target->size = n / type->n * type->size;
        target->offset = at;
        if (!lmq_u64_add(at, target->size, &at) ||
            !lmq_u64_align(at, LMQ_GGUF_DATA_ALIGN, &at))
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0, "is too large");
        if (target->type != LMQ_GGUF_STORED_I32 &&
            !lmq_gguf_stays_float(target))
            most[target->type] += n;
    }
    for (int i = 0; i < LMQ_GGUF_STORED_COUNT; i++)
        if (most[i] > most[plan->mostly])
            plan->mostly = (enum lmq_gguf_stored)i;
    plan->data_size = at;
    return LMQ_OK;
}

/* ---- Biases ---- */

static unsigned
bias_of(const struct lmq_place *place)
{
    if (place->item >= 0 && lmq_role_is_of_experts(place->role))
        return LMQ_GGUF_BIAS_EXPERTS;
    switch ((int)place->role) {
    case LMQ_ROLE_ROUTER:
        return LMQ_GGUF_BIAS_EXPERTS;
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_K:
    case LMQ_ROLE_ATTN_V:
        return LMQ_GGUF_BIAS_QKV;
    case LMQ_ROLE_ATTN_OUT:
        return LMQ_GGUF_BIAS_OUT;
    case LMQ_ROLE_FFN_GATE:
    case LMQ_ROLE_FFN_UP:
    case LMQ_ROLE_FFN_DOWN:
        return LMQ_GGUF_BIAS_FFN;
    case LMQ_ROLE_ATTN_NORM:
    case LMQ_ROLE_FFN_NORM:
    case LMQ_ROLE_EMBEDDING_NORM:
    case LMQ_ROLE_OUTPUT_NORM:
        return LMQ_GGUF_BIAS_NORM;
    case LMQ_ROLE_HEAD:
        return LMQ_GGUF_BIAS_HEAD;
    case LMQ_ROLE_DELTA_CONV:
        return LMQ_GGUF_BIAS_CONV;
    default:
        return 0;
    }
}

/* llama.cpp loads the tensors of a family, no fewer and no more. */
static enum lmq_status
check_biases(const struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    const struct lmq_family *family = plan->family;
    unsigned may = family->gguf.may_biases | family->gguf.must_biases;

    for (size_t i = 0; i < plan->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &plan->checkpoint->tensors[i];
        const struct lmq_place *place = &tensor->place;
        struct lmq_place bias = *place;
        unsigned kind = bias_of(place);
        bool is_bias = place->part == LMQ_PART_BIAS;
        bias.part = LMQ_PART_BIAS;
        if (place->role == LMQ_ROLE_ROUTER_CORRECTION ||
            place->role == LMQ_ROLE_DELTA_ALPHA ||
            place->role == LMQ_ROLE_INDEX_K_NORM)
            continue;
        if (is_bias && (kind & may) == 0)
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "GGUF: '%s' has no words for the bias '%s'",
                            family->gguf.name, tensor->name);
        if (!is_bias && (kind & family->gguf.must_biases) != 0 &&
            lmq_checkpoint_find_place(plan->checkpoint, &bias) == NULL)
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "GGUF: '%s' needs a bias beside '%s', and there "
                            "is none",
                            family->gguf.name, tensor->name);
    }
    return LMQ_OK;
}

/* ---- The description ---- */

/* A window that a family has no word for changes nothing up to its length. */
static void
fit_window(struct lmq_gguf_plan *plan)
{
    struct lmq_hparams *h = &plan->written;

    if (h->sliding_window == 0 ||
        (plan->family->gguf.keys & LMQ_GGUF_WINDOW) != 0)
        return;
    if (h->sliding_window < h->context) {
        lmq_notes_add(plan->notes,
                      "GGUF's '%s' has no window: the context is cut "
                      "from %u to %u tokens, up to which the window "
                      "changes nothing",
                      plan->family->gguf.name, h->context,
                      h->sliding_window);
        h->context = h->sliding_window;
    }
    h->sliding_window = 0;
}

/* GGUF has one for all norms. */
static void
fit_epsilon(struct lmq_gguf_plan *plan)
{
    struct lmq_hparams *h = &plan->written;

    if (h->latent_eps > 0)
        lmq_notes_add(plan->notes,
                      "GGUF has one epsilon: that of norms of latents becomes "
                      "%g in place of %g",
                      h->norm_eps, h->latent_eps);
    h->latent_eps = 0;
}

/* The description that our own reader makes of the keys to be written. */
static enum lmq_status
read_back(const struct lmq_gguf_plan *plan, struct lmq_checkpoint *reread,
          struct lmq_error *err)
{
    const struct lmq_hparams *h = &plan->written;
    const struct lmq_family *family;
    struct lmq_gguf_builder builder = {0};
    struct lmq_gguf_meta *meta = NULL;
    bool has_always = h->rope_scaling == LMQ_ROPE_FACTORS;
    bool is_long = h->rope_scaling == LMQ_ROPE_LONGROPE;
    struct lmq_gguf_evidence evidence = {
        .vocab_size = h->vocab_size,
        .layer_input_vocab = h->layer_input_vocab,
        .residual_rank = h->residual_rank,
        .has_qk_norm = h->qk_norm != LMQ_QK_NORM_NONE,
        .has_ffn_norm = h->residual != LMQ_RESIDUAL_PARALLEL_ONE_NORM,
        .has_second_norm = h->residual == LMQ_RESIDUAL_PARALLEL,
        .has_query_latents = h->q_lora_rank > 0,
        .has_correction = h->router_corrects,
        .has_lone_keys = h->full_keys_are_values,
        .gate_rows = h->has_head_gate ? lmq_layer_heads(h, 0) : 0,
        .has_layer_scale = h->has_layer_scale,
        .has_state_norm = !h->has_bare_states,
        .always = plan->near, .n_always = has_always ? h->n_rope_factors : 0,
        .near = plan->near, .n_near = is_long ? h->n_rope_factors : 0,
        .far = plan->far, .n_far = is_long ? h->n_rope_factors : 0,
    };

    for (uint32_t i = 0; i < h->n_layers; i++)
        evidence.has_router[i] = lmq_layer_has_experts(h, i);
    lmq_hparams_init(&reread->hparams);
    lmq_gguf_build_begin(&builder);
    lmq_gguf_put_text(&builder, "general.architecture", plan->family->gguf.name,
                      strlen(plan->family->gguf.name));
    lmq_gguf_write_keys(&builder, plan->family, h);
    lmq_gguf_build_end(&builder, 0);
    enum lmq_status status =
        builder.out.has_failed
            ? lmq_fail_nomem(err)
            : lmq_gguf_meta_open(builder.out.bytes, builder.out.n, &meta,
                                 NULL, err);
    if (status == LMQ_OK)
        status = lmq_gguf_read_keys(meta, &evidence, reread, &family, err);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    return status;
}

static void
note_gelu(struct lmq_gguf_plan *plan)
{
    enum lmq_activation wanted = plan->family->activation;
    enum lmq_activation is = plan->written.activation;

    if (is != wanted && !plan->family->gguf.says_activation)
        lmq_notes_add(plan->notes,
                      "GGUF's '%s' means the %s GELU, the model has the "
                      "%s one",
                      plan->family->gguf.name,
                      wanted == LMQ_ACTIVATION_GELU ? "exact" : "tanh",
                      is == LMQ_ACTIVATION_GELU ? "exact" : "tanh");
}

static void
show(const json_t *value, char *text, size_t size)
{
    if (json_is_null(value))
        snprintf(text, size, "the usual");
    else if (json_is_number(value))
        snprintf(text, size, "%.9g", json_number_value(value));
    else if (json_is_string(value))
        snprintf(text, size, "%.40s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(text, size, json_is_true(value) ? "true" : "false");
    else
        snprintf(text, size, "another list");
}

/* A layer that only one of them gives experts: widths differ then, too, but
 * that is the cause. */
static void
find_other_layer(const struct lmq_hparams *meant,
                 const struct lmq_hparams *read, char *text, size_t size)
{
    for (uint32_t i = 0; i < meant->n_layers; i++) {
        bool has_experts = lmq_layer_has_experts(meant, i);
        if (has_experts == lmq_layer_has_experts(read, i))
            continue;
        snprintf(text, size, "layer %u has %s, it would be taken for one "
                             "with%s",
                 i, has_experts ? "experts" : "no experts",
                 has_experts ? "out" : "");
        return;
    }
}

/* The first thing that `read`, which is what a reader of our GGUF sees, says
 * otherwise than `meant`, in words; "" if there is none. */
static enum lmq_status
find_difference(const struct lmq_hparams *meant,
                const struct lmq_hparams *read, char *text, size_t size,
                struct lmq_error *err)
{
    struct lmq_hparams a = *meant, b = *read;
    char x[64], y[64];

    /* Two forms of one function; note_gelu() says so. */
    if (a.activation == LMQ_ACTIVATION_GELU)
        a.activation = LMQ_ACTIVATION_GELU_TANH;
    if (b.activation == LMQ_ACTIVATION_GELU)
        b.activation = LMQ_ACTIVATION_GELU_TANH;
    json_t *differences = lmq_hparams_compare(&a, &b);
    text[0] = '\0';
    if (differences == NULL)
        return lmq_fail_nomem(err);
    const json_t *first = json_array_get(differences, 0);
    if (first != NULL) {
        show(json_object_get(first, "a"), x, sizeof(x));
        show(json_object_get(first, "b"), y, sizeof(y));
        snprintf(text, size, "%s is %s, it would be taken for %s",
                 json_string_value(json_object_get(first, "key")), x, y);
        find_other_layer(meant, read, text, size);
    }
    json_decref(differences);
    return LMQ_OK;
}

/* A list of widths says which layers feed; with experts it is of theirs. */
static enum lmq_status
check_halves(const struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    const struct lmq_hparams *h = &plan->written;

    if ((plan->family->gguf.keys & LMQ_GGUF_HALVES) == 0 || h->n_experts == 0)
        return LMQ_OK;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_feed(h, i) && !lmq_layer_has_experts(h, i))
            return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                            "GGUF's '%s' has no words for layer %u, a "
                            "feed-forward without experts beside others",
                            plan->family->gguf.name, i);
    return LMQ_OK;
}

static enum lmq_status
check_description(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    struct lmq_checkpoint reread = {0};
    char difference[160] = "";
    enum lmq_status status = check_halves(plan, err);

    if (status == LMQ_OK)
        status = read_back(plan, &reread, err);
    if (status == LMQ_OK && reread.hparams.unsupported[0] != '\0')
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "GGUF has no words for this model: %s",
                          reread.hparams.unsupported);
    else if (status == LMQ_OK)
        status = find_difference(&plan->written, &reread.hparams, difference,
                                 sizeof(difference), err);
    if (status == LMQ_OK && difference[0] != '\0')
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "GGUF's '%s' has no words for this model: %s",
                          plan->family->gguf.name, difference);
    if (status == LMQ_ERR_UNSUPPORTED)
        lmq_hint(err, ".to=safetensors can say what this model is");
    lmq_notes_free(&reread.notes);
    if (status == LMQ_OK)
        note_gelu(plan);
    return status;
}

/* ---- All of it ---- */

enum lmq_status
lmq_gguf_plan_make(struct lmq_checkpoint *checkpoint, const char *type,
                   struct lmq_gguf_plan *plan, struct lmq_notes *notes,
                   struct lmq_error *err)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    enum lmq_gguf_stored wanted;
    enum lmq_status status = lmq_gguf_parse_type(type, &wanted, err);

    memset(plan, 0, sizeof(*plan));
    plan->checkpoint = checkpoint;
    plan->notes = notes;
    if (status != LMQ_OK)
        return status;
    if (!checkpoint->has_model || h->unsupported[0] != '\0')
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "a GGUF needs a model, but lmquant does not "
                        "understand %s",
                        h->unsupported[0] == '\0' ? "this one"
                                                  : h->unsupported);
    plan->family = lmq_gguf_family_for(h);
    if (plan->family == NULL) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "GGUF has no name for the architecture '%s'",
                 h->architecture);
        lmq_hint(err, ".to=safetensors can say what this model is");
        return LMQ_ERR_UNSUPPORTED;
    }
    status = lmq_gguf_may_write(plan->family, err);
    if (status != LMQ_OK)
        return status;
    plan->written = *h;
    lmq_hparams_settle_rope(&plan->written);
    fit_window(plan);
    lmq_gguf_fit_end(plan);
    fit_epsilon(plan);
    lmq_gguf_fit_decays(plan);
    status = arrange(plan, checkpoint, err);
    if (status == LMQ_OK)
        status = add_targets(plan, err);
    if (status == LMQ_OK)
        status = check_description(plan, err);
    if (status == LMQ_OK)
        status = check_biases(plan, err);
    if (status == LMQ_OK)
        lmq_gguf_note_limits(plan);
    return status == LMQ_OK
               ? lay_out(plan, type == NULL ? NULL : &wanted, err)
               : status;
}

void
lmq_gguf_plan_free(struct lmq_gguf_plan *plan)
{
    for (size_t i = 0; i < plan->n_targets; i++)
        free(plan->targets[i].sources);
    free(plan->targets);
    lmq_arranged_free(&plan->arranged);
    plan->targets = NULL;
    plan->n_targets = 0;
}
