/*
 * gguf_keys.c - what GGUF calls the numbers of a description.
 *
 * One table of the plain ones (gguf_key_table.c) serves both directions; what
 * takes more than a number is in gguf_special.c and gguf_rope.c. Absent keys
 * have llama.cpp's defaults.
 */
#include "config.h"

#include "formats/gguf/gguf_keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/families/families.h"
#include "formats/gguf/gguf_reader.h"
#include "formats/gguf/more/gguf_key_table.h"
#include "formats/gguf/more/gguf_pools.h"
#include "formats/model/hparams_fields.h"
#include "formats/model/pools.h"

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* ---- By the tables ---- */

/* Of layers of two kinds gguf_kinds.c writes these, of recurrent ones
 * gguf_recurrent.c; and one epsilon of two is written by what it says. */
static bool
is_written_apart(const struct lmq_family *family, size_t field)
{
    uint64_t forms = family->gguf.keys;

    if ((forms & (LMQ_GGUF_BY_LAYER | LMQ_GGUF_KEY_KINDS)) != 0 &&
        field == LMQ_FIELD(n_kv_heads))
        return true;
    if (family->gguf.norm_by_eps && field == LMQ_FIELD(norm_eps))
        return true;
    if (lmq_gguf_is_by_layer(family, field))
        return true;
    if ((forms & LMQ_GGUF_HALVES) != 0 && field == LMQ_FIELD(hidden_dim))
        return true;
    if ((forms & LMQ_GGUF_KINDS) == 0)
        return false;
    return field == LMQ_FIELD(hidden_dim) || field == LMQ_FIELD(n_kv_heads) ||
           field == LMQ_FIELD(head_dim) || field == LMQ_FIELD(value_dim) ||
           field == LMQ_FIELD(rotary_dim);
}

static bool
belongs(uint64_t families, const struct lmq_family *family)
{
    return families == 0 || (families & family->gguf.keys) != 0;
}

/* ---- Reading ---- */

/* Writers differ: sizes come as u32, i32 or u64, and all are taken. */
static bool
is_integer_type(enum lmq_gguf_type type)
{
    return type <= LMQ_GGUF_I32 || type == LMQ_GGUF_U64 ||
           type == LMQ_GGUF_I64;
}

/* A number for each layer, which must be the same one; but what is written
 * apart for kinds of layers others read once more. */
static enum lmq_status
read_per_layer(struct lmq_gguf_reader *r, const char *name, size_t field,
               uint32_t *count)
{
    bool may_differ = is_written_apart(r->family, field);
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));

    if (value == NULL || value->type != LMQ_GGUF_ARRAY)
        return lmq_gguf_read_count(r, name, count);
    if (!is_integer_type(value->item_type) || value->count == 0 ||
        value->count > LMQ_MAX_LAYERS || value->count < r->h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no number for each of %u layers",
                        r->key, r->h->n_layers);
    int64_t first = lmq_gguf_item_int(value, 0);
    for (uint64_t i = 1; i < r->h->n_layers && !may_differ; i++) {
        r->is_uneven |= lmq_gguf_item_int(value, i) != first;
        if (first == 0) /* a layer that has it says more */
            first = lmq_gguf_item_int(value, i);
    }
    if (first < 0 || first > UINT32_MAX)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' begins with %" PRId64, r->key, first);
    *count = (uint32_t)first;
    if (r->is_uneven)
        lmq_hparams_refuse(r->h, "layers that differ in '%s'", name);
    return LMQ_OK;
}

static enum lmq_status
read_plain(struct lmq_gguf_reader *r, const struct lmq_gguf_key *key)
{
    const struct lmq_field *field = lmq_field_at(key->field);
    double number = lmq_field_get(field, r->h);
    enum lmq_status status;

    if (!lmq_gguf_has_key(r, key->name))
        return (key->flags & LMQ_KEY_REQUIRED) == 0
                   ? LMQ_OK
                   : lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                              "GGUF: there is no '%s.%s'", r->family->gguf.name,
                              key->name);
    if (field->type == LMQ_FIELD_COUNT) {
        uint32_t count = 0;
        status = (key->flags & LMQ_KEY_PER_LAYER) != 0
                     ? read_per_layer(r, key->name, key->field, &count)
                     : lmq_gguf_read_count(r, key->name, &count);
        number = count;
    } else {
        status = lmq_gguf_read_number(r, key->name, &number);
        /* 0 is llama.cpp's way to say that there is no such scale. */
        if ((key->flags & LMQ_KEY_INVERSE) != 0)
            number = number > 0 ? 1 / number : 1;
        if ((key->flags & LMQ_KEY_NEGATIVE) != 0 && status == LMQ_OK &&
            number >= 0)
            return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                            "GGUF: '%s' is %g, expected less than 0", r->key,
                            number);
        if ((key->flags & LMQ_KEY_NEGATIVE) != 0)
            number = -number;
    }
    if (status == LMQ_OK)
        lmq_field_set(field, r->h, number);
    return status;
}

/* ---- Reading all of it ---- */

static bool
is_name(const char *expected, const char *name, size_t size)
{
    return strlen(expected) == size && memcmp(expected, name, size) == 0;
}

/* By the tables: what is not in them is noted, so that nobody takes a key for
 * obeyed that was not. */
static bool
is_understood(const char *name, size_t size,
              const struct lmq_family *family)
{
    for (size_t i = 0; lmq_gguf_key_table[i].name != NULL; i++)
        if (is_name(lmq_gguf_key_table[i].name, name, size) &&
            belongs(lmq_gguf_key_table[i].families, family))
            return true;
    for (size_t i = 0; lmq_gguf_other_keys[i].name != NULL; i++)
        if (is_name(lmq_gguf_other_keys[i].name, name, size) &&
            belongs(lmq_gguf_other_keys[i].families, family))
            return true;
    if (family->gguf.has_local_part && is_name(LMQ_GGUF_LOCAL_PART, name, size))
        return true;
    return family->gguf.says_activation &&
           is_name(LMQ_GGUF_ACTIVATION, name, size);
}

/* Of the family's own keys only: general.* and tokenizer.* are not the
 * model's. */
static void
note_strange_keys(const struct lmq_gguf_meta *meta,
                  const struct lmq_family *family,
                  struct lmq_checkpoint *checkpoint)
{
    size_t prefix = strlen(family->gguf.name), used = 0, n_more = 0;
    char list[256] = "", name[80], shown[96];

    for (size_t i = 0; i < meta->n_values; i++) {
        const struct lmq_gguf_value *v = &meta->values[i];
        const char *key = (const char *)v->key;
        if (v->key_size <= prefix + 1 || key[prefix] != '.' ||
            memcmp(key, family->gguf.name, prefix) != 0 ||
            is_understood(key + prefix + 1, v->key_size - prefix - 1, family))
            continue;
        snprintf(name, sizeof(name), "%.*s",
                 (int)lmq_size_min(v->key_size, sizeof(name) - 1), key);
        lmq_printable(shown, sizeof(shown), name);
        if (used + strlen(shown) + 3 >= sizeof(list)) {
            n_more++;
            continue;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 used == 0 ? "" : ", ", shown);
    }
    if (used == 0)
        return;
    if (n_more > 0)
        lmq_checkpoint_note(checkpoint,
                            "keys that are not understood are ignored: %s "
                            "and %zu more",
                            list, n_more);
    else
        lmq_checkpoint_note(checkpoint,
                            "keys that are not understood are ignored: %s",
                            list);
}

/* Before any key is read: what the family is, and what its tensors have shown.
 */
static void
take_family(const struct lmq_family *family,
            const struct lmq_gguf_evidence *evidence, struct lmq_hparams *h)
{
    snprintf(h->architecture, sizeof(h->architecture), "%s",
             family->name);
    h->norm = family->norm;
    h->norm_place = family->norm_place;
    h->residual = family->residual;
    h->qk_norm = evidence->has_qk_norm && !family->gguf.lacks_qk_norm
                     ? family->qk_norm
                     : LMQ_QK_NORM_NONE;
    h->positions = family->positions;
    h->activation = family->activation;
    h->is_gated = !family->is_plain;
    h->vocab_size = evidence->vocab_size;
    h->tie = evidence->has_head ? LMQ_TIE_UNSET : LMQ_TIE_YES;
    if (family->gguf.begin != NULL)
        family->gguf.begin(h);
}

/* One of two names, and so of two kinds. */
static enum lmq_status
read_norm(struct lmq_gguf_reader *r)
{
    static const char rms[] = "attention.layer_norm_rms_epsilon";
    static const char layer[] = "attention.layer_norm_epsilon";
    bool is_rms = lmq_gguf_has_key(r, rms);

    if (!r->family->gguf.norm_by_eps)
        return LMQ_OK;
    if (!is_rms && !lmq_gguf_has_key(r, layer))
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: there is no '%s.%s' and no '%s'",
                        r->family->gguf.name, layer, rms);
    r->h->norm = is_rms ? LMQ_NORM_RMS : LMQ_NORM_LAYER;
    return LMQ_OK;
}

/* Encoders come as GGUF too. */
static enum lmq_status
read_switches(struct lmq_gguf_reader *r)
{
    bool is_causal = true, is_parallel = false;
    enum lmq_status status = lmq_gguf_get_bool(
        r->meta, lmq_gguf_key_of(r, "attention.causal"), &is_causal, r->err);

    if (!is_causal)
        lmq_hparams_refuse(r->h, "attention that is not causal");
    if (status != LMQ_OK || !r->family->gguf.says_residual)
        return status;
    status =
        lmq_gguf_get_bool(r->meta, lmq_gguf_key_of(r, "use_parallel_residual"),
                          &is_parallel, r->err);
    r->h->residual =
        is_parallel ? LMQ_RESIDUAL_PARALLEL : LMQ_RESIDUAL_SEQUENTIAL;
    return status;
}

/* As the first Qwen says it, and its config.json. */
static enum lmq_status
read_double_feed(struct lmq_gguf_reader *r)
{
    if (!r->family->gguf.has_double_feed)
        return LMQ_OK;
    if (r->h->hidden_dim % 2 != 0)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s.feed_forward_length' is %u, expected an "
                        "even number",
                        r->family->gguf.name, r->h->hidden_dim);
    r->h->hidden_dim /= 2;
    return LMQ_OK;
}

static enum lmq_status
check_layers(struct lmq_gguf_reader *r)
{
    return r->h->n_layers <= LMQ_MAX_LAYERS
               ? LMQ_OK
               : lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                          "GGUF: %u layers, at most %d are possible",
                          r->h->n_layers, LMQ_MAX_LAYERS);
}

/* After the plain keys, in this order. */
static enum lmq_status (*const steps[])(struct lmq_gguf_reader *r) = {
    check_layers,
    read_norm,
    lmq_gguf_read_counts,
    lmq_gguf_read_further_layers,
    lmq_gguf_read_recurrent,
    lmq_gguf_read_heads,
    lmq_gguf_read_window,
    lmq_gguf_read_kinds,
    lmq_gguf_read_pools,
    lmq_gguf_read_streams,
    lmq_gguf_read_parts,
    lmq_gguf_read_alibi,
    lmq_gguf_read_delta,
    lmq_gguf_read_experts,
    lmq_gguf_read_rope,
    lmq_gguf_read_indexer,
    lmq_gguf_read_limits,
    read_switches,
    lmq_gguf_read_activation,
    read_double_feed,
    lmq_gguf_read_loops,
};

/* A negative one, or all bits set, is none. */
static void
read_id(const struct lmq_gguf_meta *meta, const char *key, int32_t *id)
{
    const struct lmq_gguf_value *value = lmq_gguf_find(meta, key);

    *id = -1;
    if (value == NULL || !is_integer_type(value->type))
        return; /* the tokenizer will say what is wrong */
    int64_t number = lmq_gguf_item_int(value, 0);
    if (number >= 0 && number < INT32_MAX)
        *id = (int32_t)number;
}

/* Chat models end by any of three: the end of the text, of a turn, of a
 * message. */
static void
read_ids(const struct lmq_gguf_meta *meta, struct lmq_hparams *h)
{
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};

    read_id(meta, "tokenizer.ggml.bos_token_id", &h->bos);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        int32_t id;
        bool is_new = true;
        read_id(meta, ends[i], &id);
        for (uint32_t j = 0; j < h->n_eos; j++)
            is_new &= h->eos[j] != id;
        if (id >= 0 && is_new)
            h->eos[h->n_eos++] = id;
    }
}

enum lmq_status
lmq_gguf_read_keys(const struct lmq_gguf_meta *meta,
                   const struct lmq_gguf_evidence *evidence,
                   struct lmq_checkpoint *checkpoint,
                   const struct lmq_family **family,
                   struct lmq_error *err)
{
    struct lmq_hparams *h = &checkpoint->hparams;
    const unsigned char *name = NULL, *type = NULL;
    size_t size = 0, n_type = 0;
    char shown[64];
    enum lmq_status status =
        lmq_gguf_get_text(meta, "general.type", &type, &n_type, err);

    *family = NULL;
    if (status == LMQ_OK && n_type == strlen("adapter") &&
        memcmp(type, "adapter", n_type) == 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0, "is an adapter (LoRA), no model");
        lmq_hint(err, "merge it into its model, with llama-export-lora, and "
                      "take that");
        return LMQ_ERR_UNSUPPORTED;
    }
    if (status == LMQ_OK)
        status = lmq_gguf_get_text(meta, "general.architecture", &name, &size,
                                   err);
    if (status != LMQ_OK)
        return status;
    read_ids(meta, h);
    *family = lmq_family_of_gguf((const char *)name, size);
    if (*family == NULL) {
        snprintf(h->architecture, sizeof(h->architecture), "%.*s",
                 (int)lmq_size_min(size, 60), (const char *)name);
        lmq_printable(shown, sizeof(shown), h->architecture);
        lmq_hparams_refuse(h, "the architecture '%s'",
                           size == 0 ? "(none)" : shown);
        return LMQ_OK;
    }
    struct lmq_gguf_reader r = {.meta = meta, .family = *family,
                                .evidence = evidence, .h = h,
                                .source = &checkpoint->source, .err = err};
    take_family(*family, evidence, h);
    if ((*family)->gguf.why_not != NULL)
        lmq_hparams_refuse(h, "a GGUF of this kind (%s)",
                           (*family)->gguf.why_not);
    for (const struct lmq_gguf_key *key = lmq_gguf_key_table;
         key->name != NULL && status == LMQ_OK; key++)
        if (belongs(key->families, *family))
            status = read_plain(&r, key);
    for (size_t i = 0; i < COUNT_OF(steps) && status == LMQ_OK; i++)
        status = steps[i](&r);
    if (status != LMQ_OK)
        return status;
    if ((*family)->gguf.finish != NULL)
        (*family)->gguf.finish(h, evidence);
    note_strange_keys(meta, *family, checkpoint);
    checkpoint->source.has_rotary_pairs = (*family)->gguf.has_rotary_pairs;
    checkpoint->source.has_index_halves = (*family)->gguf.has_index_halves;
    checkpoint->source.has_tiled_values = (*family)->gguf.has_tiled_values;
    checkpoint->source.has_decay_itself =
        ((*family)->gguf.keys & LMQ_GGUF_ANY_STATE) != 0;
    checkpoint->source.has_decay_above =
        ((*family)->gguf.keys & LMQ_GGUF_DECAY_FLOOR) != 0;
    checkpoint->has_model = !r.is_uneven;
    return LMQ_OK;
}

/* ---- Writing all of it ---- */

const struct lmq_family *
lmq_gguf_family_for(const struct lmq_hparams *h)
{
    const struct lmq_family *family = lmq_family_find(h->architecture);
    const char *name = family == NULL ? NULL : family->gguf.name;

    /* One architecture has several names there. */
    if (name != NULL && strcmp(name, "deepseek2") == 0 && lmq_chooses(h))
        name = lmq_shares_choices(h) ? "glm-dsa" : "deepseek32";
    return name == NULL ? NULL : lmq_family_of_gguf(name, strlen(name));
}

/* llama.cpp asks for some of the keys where there are none, too: in the family
 * with latents that has both kinds of models. */
static bool
speaks_of_experts(const struct lmq_family *family,
                  const struct lmq_hparams *h)
{
    return h->n_experts > 0 || (family->gguf.keys & LMQ_GGUF_LATENT) != 0;
}

/* The description as the keys hold it: defaults are spelled out, and some
 * fields stand there in another form. */
static struct lmq_hparams
as_written(const struct lmq_family *family, const struct lmq_hparams *h)
{
    struct lmq_hparams written = *h;

    written.rotary_dim = lmq_hparams_rotary_dim(h);
    written.value_dim = lmq_hparams_value_dim(h);
    if ((family->gguf.keys & LMQ_GGUF_POOLS) != 0 &&
        !(h->rope_local_theta > 0))
        written.rope_local_theta = h->rope_theta;
    if (!(written.attn_scale > 0))
        written.attn_scale = 1 / sqrt((double)h->head_dim);
    if (h->n_experts > 0 && !(family->gguf.keys & LMQ_GGUF_EXPERT_DIM))
        written.hidden_dim = h->expert_dim;
    if (written.hidden_dim == 0)
        written.hidden_dim = h->expert_dim;
    if (h->n_experts == 0 && speaks_of_experts(family, h))
        written.expert_dim = h->hidden_dim;
    if ((family->gguf.keys & LMQ_GGUF_ROUTER) != 0 &&
        (family->gguf.keys & LMQ_GGUF_SHARED_DIM) == 0)
        written.shared_dim = 0; /* a number of experts says it */
    written.router_scale /= h->shared_scale; /* if it is of both */
    if (family->gguf.keys & LMQ_GGUF_OF_HEADS)
        written.delta_value_dim *= h->n_delta_value_heads;
    if (family->gguf.keys & LMQ_GGUF_KINDS)
        written.shared_dim = 0; /* it is what the others have */
    if (family->gguf.has_double_feed)
        written.hidden_dim *= 2;
    if (family->gguf.keys & LMQ_GGUF_LATENT) {
        written.n_kv_heads = 1;
        written.head_dim = h->kv_lora_rank + written.rotary_dim;
        written.value_dim = h->kv_lora_rank;
    }
    return written;
}

void
lmq_gguf_write_keys(struct lmq_gguf_builder *builder,
                    const struct lmq_family *family,
                    const struct lmq_hparams *hparams)
{
    const struct lmq_hparams written = as_written(family, hparams);
    char name[LMQ_GGUF_MAX_NAME];

    builder->prefix = family->gguf.name;
    for (const struct lmq_gguf_key *key = lmq_gguf_key_table;
         key->name != NULL; key++) {
        const struct lmq_field *field = lmq_field_at(key->field);
        double number = lmq_field_get(field, &written);
        bool is_needed =
            (key->flags & (LMQ_KEY_REQUIRED | LMQ_KEY_EVEN_ZERO)) != 0;
        if (!belongs(key->families, family) ||
            is_written_apart(family, key->field))
            continue;
        snprintf(name, sizeof(name), ".%s", key->name);
        if ((key->flags & LMQ_KEY_INVERSE) != 0 && number > 0)
            number = 1 / number;
        if (!(number > 0) && !is_needed)
            continue;
        if ((key->flags & LMQ_KEY_NEGATIVE) != 0)
            number = number > 0 ? -number : 0;
        if (field->type == LMQ_FIELD_COUNT)
            lmq_gguf_put_u32(builder, name, (uint32_t)number);
        else
            lmq_gguf_put_f32(builder, name, number);
    }
    if (family->gguf.keys & LMQ_GGUF_LATENT)
        lmq_gguf_write_heads(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_KEY_KINDS)
        lmq_gguf_write_kv_heads(builder, hparams);
    lmq_gguf_write_layers(builder, family, hparams);
    if (family->gguf.keys & LMQ_GGUF_KINDS)
        lmq_gguf_write_kinds(builder, hparams);
    else if (family->gguf.keys &
             (LMQ_GGUF_LOCAL | LMQ_GGUF_CHUNK | LMQ_GGUF_LISTS))
        lmq_gguf_write_window(builder, family, hparams);
    if (family->gguf.keys & LMQ_GGUF_STREAMS)
        lmq_gguf_write_streams(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_GROUPS)
        lmq_gguf_write_groups(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_CHOOSERS)
        lmq_gguf_write_choosers(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_LOOPS)
        lmq_gguf_put_bool(builder, ".skip_loop_final_norm",
                          !hparams->has_loop_norm);
    if (family->gguf.norm_by_eps)
        lmq_gguf_put_f32(builder,
                         hparams->norm == LMQ_NORM_RMS
                             ? ".attention.layer_norm_rms_epsilon"
                             : ".attention.layer_norm_epsilon",
                         hparams->norm_eps);
    if ((family->gguf.keys & (LMQ_GGUF_ROUTER | LMQ_GGUF_STEP)) != 0 &&
        speaks_of_experts(family, hparams))
        lmq_gguf_write_dense_layers(builder, family, hparams);
    if ((family->gguf.keys & LMQ_GGUF_ROUTER) != 0 &&
        speaks_of_experts(family, hparams))
        lmq_gguf_write_router(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_POOLS)
        lmq_gguf_write_pools(builder, hparams);
    if (family->gguf.keys & (LMQ_GGUF_ROPE | LMQ_GGUF_POOLS))
        lmq_gguf_write_rope(builder, family, hparams);
    if (family->gguf.keys & (LMQ_GGUF_DELTA | LMQ_GGUF_LIGHTNING))
        lmq_gguf_write_delta(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_BY_LAYER)
        lmq_gguf_write_recurrent(builder, family, hparams);
    if (family->gguf.keys & LMQ_GGUF_SELECTIVE)
        lmq_gguf_put_bool(builder, ".ssm.dt_b_c_rms", hparams->has_step_norms);
    if (family->gguf.keys & LMQ_GGUF_SECTIONS)
        lmq_gguf_write_sections(builder, hparams);
    if (family->gguf.keys & LMQ_GGUF_ALIBI)
        lmq_gguf_write_alibi(builder, hparams);
    if (family->gguf.says_activation)
        lmq_gguf_write_activation(builder, hparams);
    if (family->gguf.says_residual)
        lmq_gguf_put_bool(builder, ".use_parallel_residual",
                          hparams->residual != LMQ_RESIDUAL_SEQUENTIAL);
}
