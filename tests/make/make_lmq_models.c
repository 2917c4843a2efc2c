/*
 * make_lmq_models.c - models as small as they can be that together have
 * everything that a description can say, and descriptions that are wrong.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/model/hparams.h"
#include "tests/families/variants.h"
#include "tests/make/make_files.h"
#include "tests/make/make_lmq.h"

/* ---- Descriptions ---- */

static void
describe_base(struct lmq_hparams *h)
{
    lmq_hparams_init(h);
    h->n_layers = 1;
    h->dim = 8;
    h->hidden_dim = 12;
    h->n_heads = 4;
    h->n_kv_heads = 2;
    h->head_dim = 4;
    h->vocab_size = 11;
    h->context = 16;
    h->tie = LMQ_TIE_NO;
}

static void
describe_llama(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->sliding_window = 4;
    h->layers[1] = LMQ_LAYER_FULL;
    h->rope_scaling = LMQ_ROPE_LLAMA3;
    h->rope_factor = 8;
    h->rope_low_factor = 1;
    h->rope_high_factor = 4;
    h->rope_context = 12;
    h->rope_theta = 3;
    h->bos = 1;
    h->n_eos = 2;
    h->eos[0] = 2;
    h->eos[1] = 10;
}

static void
describe_experts(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->layers[0] = LMQ_LAYER_DENSE;
    h->n_experts = 6;
    h->n_experts_used = 2;
    h->expert_dim = 5;
    h->shared_dim = 7;
    h->router = LMQ_ROUTER_SIGMOID;
    h->router_renormalises = true;
    h->router_corrects = true;
    h->router_scale = 2.5;
    h->n_expert_groups = 3;
    h->n_expert_groups_used = 2;
    h->expert_group_score = LMQ_GROUP_SCORE_BEST_TWO;
    h->rope_scaling = LMQ_ROPE_LINEAR;
    h->rope_factor = 3;
}

static void
describe_groups(struct lmq_hparams *h)
{
    h->n_experts = 4;
    h->n_experts_used = 2;
    h->expert_dim = 5;
    h->n_expert_groups = 2;
    h->n_expert_groups_used = 1;
    h->positions = LMQ_POSITIONS_NONE;
}

static void
describe_latents(struct lmq_hparams *h)
{
    h->n_kv_heads = 4;
    h->head_dim = 6;
    h->rotary_dim = 4;
    h->value_dim = 5;
    h->q_lora_rank = 7;
    h->kv_lora_rank = 9;
    h->rope_scaling = LMQ_ROPE_YARN;
    h->rope_factor = 4;
    h->rope_context = 12;
    h->rope_beta_fast = 3;
    h->rope_beta_slow = 0.5;
    h->rope_attention_factor = 1.2;
    h->rope_theta = 20;
}

/* Norms with gates, queries and gates of heads of latents twice. */
static void
describe_gated_norms(struct lmq_hparams *h)
{
    describe_latents(h);
    h->n_layers = 2;
    h->layers[0] = LMQ_LAYER_DENSE;
    h->n_experts = 3;
    h->n_experts_used = 2;
    h->expert_dim = 6;
    h->norm_gate_rank = 3;
    h->has_attn_gate = h->has_raw_latents = true;
}

/* Streams that mix, of which the head reads a sum. */
static void
describe_hyper(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->layers[1] = LMQ_LAYER_BARE;
    h->n_streams = 3;
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_rounds = 3;
    h->stream_eps = 0.01;
    h->stream_gain = 2;
    h->stream_floor = 0.125;
}

/* Streams that do not, of which it reads the mean. */
static void
describe_hyper_mean(struct lmq_hparams *h)
{
    h->norm_place = LMQ_NORMS_AROUND;
    h->norm = LMQ_NORM_LAYER;
    h->n_streams = 2;
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_gain = 1.5;
    h->has_stream_mean = true;
}

/* Values that are keys, pools of both kinds, a table of experts. */
static void
describe_pools(struct lmq_hparams *h)
{
    h->n_layers = 3;
    h->n_kv_heads = 1;
    h->rotary_dim = 2;
    h->q_lora_rank = 6;
    h->has_turned_values = true;
    h->qk_norm = LMQ_QK_NORM_BARE_QUERIES;
    h->has_sinks = true;
    h->sliding_window = 3;
    h->rope_local_theta = 100;
    h->n_out_groups = 2;
    h->out_rank = 3;
    h->layers[0] = LMQ_LAYER_POOL | LMQ_LAYER_TOKENS;
    h->layers[1] = LMQ_LAYER_OVERLAP;
    h->layers[2] = LMQ_LAYER_OVERLAP | LMQ_LAYER_FULL | LMQ_LAYER_DENSE;
    h->pool_size = 5;
    h->overlap_size = 2;
    h->index_topk = 2;
    h->n_index_heads = 4;
    h->index_dim = 6;
    h->n_experts = 4;
    h->n_experts_used = 2;
    h->expert_dim = 6;
    h->router = LMQ_ROUTER_ROOT_SOFTPLUS;
    h->router_renormalises = h->router_corrects = true;
}

static void
describe_latent_queries(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->n_kv_heads = 4;
    h->head_dim = 6;
    h->rotary_dim = 2;
    h->value_dim = 4;
    h->kv_lora_rank = 5;
    h->rope_scaling = LMQ_ROPE_NTK;
    h->rope_factor = 4;
    h->layers[1] = LMQ_LAYER_NOPE;
}

static void
describe_alibi(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER;
    h->positions = LMQ_POSITIONS_ALIBI;
    h->n_heads = 6;
    h->residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM;
    h->activation = LMQ_ACTIVATION_GELU;
    h->is_gated = false;
}

static void
describe_scaled_alibi(struct lmq_hparams *h)
{
    h->positions = LMQ_POSITIONS_ALIBI_SCALED;
    h->attn_scale = 0.3;
    h->n_experts = 3;
    h->n_experts_used = 2;
    h->expert_dim = 6;
    h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
    h->activation = LMQ_ACTIVATION_RELU;
}

static void
describe_sinks(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->norm_place = LMQ_NORMS_AROUND;
    h->qk_norm = LMQ_QK_NORM_HEAD;
    h->has_sinks = true;
    h->sliding_window = 3;
    h->layers[1] = LMQ_LAYER_FULL | LMQ_LAYER_SINKLESS;
    h->value_dim = 3;
    h->full_kv_heads = 1;
    h->value_scale = 0.75;
    h->rope_local_theta = 5;
    h->rope_theta = 50;
    h->rope_scaling = LMQ_ROPE_LINEAR;
    h->rope_factor = 8;
    h->rope_attention_factor = 1.1;
    h->attn_softcap = 5;
    h->logit_softcap = 3;
    h->embedding_scale = 2.75;
    h->activation = LMQ_ACTIVATION_GELU_TANH;
}

static void
describe_clipped(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER_PLAIN;
    h->residual = LMQ_RESIDUAL_PARALLEL;
    h->qkv_clip = 0.5;
    h->rotary_dim = 2;
    h->logit_scale = 0.25;
    h->rope_scaling = LMQ_ROPE_DYNAMIC;
    h->rope_factor = 3;
    h->rope_context = 5;
    h->activation = LMQ_ACTIVATION_RELU;
}

static void
describe_turned(struct lmq_hparams *h)
{
    h->head_dim = 6;
    h->rotary_dim = 4;
    h->rope_scaling = LMQ_ROPE_DYNAMIC;
    h->rope_factor = 2;
    h->rope_context = 4;
    h->rope_theta = 30;
}

static void
describe_after(struct lmq_hparams *h)
{
    h->norm_place = LMQ_NORMS_AFTER;
    h->qk_norm = LMQ_QK_NORM_WHOLE;
    h->residual_scale = 0.5;
    h->rope_scaling = LMQ_ROPE_LONGROPE;
    h->rope_context = 6;
    h->rope_attention_factor = 1.25;
    h->n_rope_factors = 2;
    h->rope_short[0] = 1;
    h->rope_short[1] = 1.5;
    h->rope_long[0] = 2;
    h->rope_long[1] = 8;
    h->rope_theta = 4;
}

static void
describe_learned(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER;
    h->qk_norm = LMQ_QK_NORM_HEADS;
    h->positions = LMQ_POSITIONS_LEARNED;
    h->activation = LMQ_ACTIVATION_SIGMOID;
    h->n_experts = 2;
    h->n_experts_used = 1;
    h->expert_dim = 6;
    h->shared_dim = 5;
    h->is_gated = false;
    h->has_mixture_norm = true;
}

static void
describe_factors(struct lmq_hparams *h)
{
    h->rope_scaling = LMQ_ROPE_FACTORS;
    h->residual = LMQ_RESIDUAL_PARALLEL;
    h->norm_place = LMQ_NORMS_AFTER;
    h->n_rope_factors = 2;
    h->rope_short[0] = 1.25;
    h->rope_short[1] = 0.75;
    h->rope_long[0] = h->rope_long[1] = 1;
    h->rope_theta = 2;
    h->has_sub_norms = true;
}

static void
describe_delta(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->layers[0] = LMQ_LAYER_DELTA;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = 3;
    h->delta_value_dim = 5;
    h->conv_width = 3;
    h->has_attn_gate = true;
}

/* A layer of each kind. */
static void
describe_states(struct lmq_hparams *h)
{
    h->n_layers = 4;
    h->layers[0] = LMQ_LAYER_DELTA;
    h->layers[1] = LMQ_LAYER_DELTA | LMQ_LAYER_BARE;
    h->layers[2] = LMQ_LAYER_BARE;
    h->layers[3] = LMQ_LAYER_FEED;
    h->recurrence = LMQ_RECURRENCE_STATE_SPACE;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = 3;
    h->delta_value_dim = 5;
    h->conv_width = 4;
}

static void
describe_convolved(struct lmq_hparams *h)
{
    h->n_layers = 2;
    h->layers[1] = LMQ_LAYER_DELTA;
    h->recurrence = LMQ_RECURRENCE_CONVOLUTION;
    h->n_delta_value_heads = 1;
    h->delta_value_dim = 9;
    h->conv_width = 3;
    h->norm_place = LMQ_NORMS_AROUND;
}

/* Half of the layers have a state, of which each key decays for itself. */
static void
describe_selective(struct lmq_hparams *h)
{
    describe_states(h);
    h->recurrence = LMQ_RECURRENCE_SELECTIVE;
    h->n_delta_value_heads = 20;
    h->delta_value_dim = 1;
    h->step_rank = 3;
    h->has_step_norms = h->has_step_norm_weights = true;
    h->latent_eps = 0.01;
}

/* Norms before the parts of the one layer, behind those of the other. */
static void
describe_mixed(struct lmq_hparams *h)
{
    describe_delta(h);
    h->layers[1] |= LMQ_LAYER_AFTER;
    h->beta_scale = 2;
    h->decay_floor = 3;
    h->state_eps = 0.01;
}

static void
describe_kept(struct lmq_hparams *h)
{
    describe_delta(h);
    h->recurrence = LMQ_RECURRENCE_LIGHTNING;
    h->has_sigmoid_gates = h->has_normed_residual = true;
    h->decay_first = 1.25;
    h->decay_step = 0.5;
    h->attn_keep = h->feed_keep = 1.5;
    h->delta_keep = 2;
    h->attn_add = h->delta_add = 0.75;
    h->feed_add = 0.5;
}

static void
describe_lru(struct lmq_hparams *h)
{
    describe_delta(h);
    h->recurrence = LMQ_RECURRENCE_LRU;
    h->activation = LMQ_ACTIVATION_GELU;
    h->n_layers = 3;
    h->layers[1] = LMQ_LAYER_DELTA | LMQ_LAYER_BARE;
}

/* Latents of gates and of time steps, of which each key has one; no layer has
 * positions, though a part of the keys is shared as if it turned. */
static void
describe_key_decays(struct lmq_hparams *h)
{
    describe_latent_queries(h);
    h->layers[0] |= LMQ_LAYER_DELTA;
    h->layers[1] |= LMQ_LAYER_NOPE;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = 3;
    h->delta_value_dim = 5;
    h->conv_width = 2;
    h->step_rank = 6;
    h->gate_rank = 7;
    h->has_key_decays = h->has_sigmoid_gates = true;
}

static void
describe_uneven(struct lmq_hparams *h)
{
    static const uint32_t heads[] = {4, 6}, keys[] = {2, 3};
    static const uint32_t widths[] = {14, 9};

    h->n_layers = 2;
    for (uint32_t i = 0; i < 2; i++) {
        h->layer_heads[i] = heads[i];
        h->layer_kv_heads[i] = keys[i];
        h->layer_hidden_dims[i] = widths[i];
    }
    h->sliding_window = 3;
    h->layers[1] = LMQ_LAYER_FULL;
    h->rope_local_theta = 5;
    h->full_rotary_dim = 2;
    h->has_attn_gate = h->has_head_gate = h->has_softplus_gate = true;
}

static const struct {
    const char *name;
    void (*describe)(struct lmq_hparams *h);
    bool has_biases;
    const char *layout;
    const char *sentence;
} models[] = {
    {"llama", describe_llama, false, "rows",
     "a window but for one layer, llama3, bos and eos."},
    {"experts", describe_experts, false, "rows",
     "experts by groups and a correction, a shared one, a dense layer."},
    {"groups", describe_groups, false, "rows",
     "experts by the best of a group; no positions."},
    {"latents", describe_latents, true, "rows",
     "latent attention with latent queries, yarn, biases."},
    {"latent-queries", describe_latent_queries, false, "rows",
     "latent attention with plain queries, ntk, a layer that does not turn."},
    {"alibi", describe_alibi, true, "rows",
     "ALiBi of 6 heads, layer norms with biases, parallel with one norm."},
    {"alibi-scaled", describe_scaled_alibi, false, "rows",
     "ALiBi before the scale, experts by a softmax of the chosen."},
    {"sinks", describe_sinks, false, "rows",
     "sinks in one kind of layers, other heads of keys in the other, values of "
     "another size, scaled; norms around and of heads, soft caps, a base for "
     "the window."},
    {"clipped", describe_clipped, false, "rows",
     "norms without weights, parallel, a clip; two dimensions turn."},
    {"turned", describe_turned, true, "tiles",
     "dynamic, four of six dimensions turn."},
    {"after", describe_after, true, "rows",
     "norms after, of whole queries; longrope past position 5."},
    {"learned", describe_learned, true, "rows",
     "learned positions, a norm for each head and one behind experts, no "
     "gates."},
    {"factors", describe_factors, false, "rows",
     "fixed factors, parallel without norms before, norms within blocks."},
    {"delta", describe_delta, false, "rows",
     "a layer with the gated delta rule, one with a gate."},
    {"states", describe_states, true, "rows",
     "state spaces, and layers of one part."},
    {"convolved", describe_convolved, false, "tiles",
     "a short convolution, norms around."},
    {"selective", describe_selective, true, "rows",
     "state spaces of which each key decays for itself, norms of time steps "
     "with weights."},
    {"mixed", describe_mixed, false, "rows",
     "the gated delta rule that writes twice as much and forgets no more than "
     "so much, with an epsilon of its own, and a layer with norms after."},
    {"key-decays", describe_key_decays, false, "rows",
     "a delta rule of which each key decays for itself, latents of gates."},
    {"uneven", describe_uneven, false, "rows",
     "heads, those of keys and widths that differ from layer to layer, part of "
     "a head turns in one kind of layers, gates by softplus."},
    {"gated-norms", describe_gated_norms, true, "rows",
     "gates of norms; latents of queries and of gates normed and as they "
     "were."},
    {"hyper", describe_hyper, false, "rows",
     "streams of which blocks read a sum, and which mix."},
    {"hyper-mean", describe_hyper_mean, true, "rows",
     "streams of which blocks read a sum, and the head the mean."},
    {"kept", describe_kept, false, "rows",
     "lightning attention, and blocks that add to what they are given."},
    {"lru", describe_lru, true, "rows",
     "recurrences without keys, of which values decay by gates."},
    {"pools", describe_pools, false, "rows",
     "keys that are values, pools of them, experts that tokens name."},
};

static void
remove_folder(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/config.json", name);
    unlink(in(path));
    snprintf(path, sizeof(path), "%s/model.safetensors", name);
    unlink(in(path));
    rmdir(in(name));
}

/* The bytes of models[i] as a container. */
static struct bytes
make_model(size_t i)
{
    const struct lmq_convert_options options = {.group_size = 32,
                                                .layout = models[i].layout};
    struct lmq_hparams *h = malloc(sizeof(*h));
    char name[64], path[128];

    if (h == NULL)
        fail(models[i].name, strerror(errno));
    describe_base(h);
    models[i].describe(h);
    snprintf(h->architecture, sizeof(h->architecture), "%s", models[i].name);
    variant_write(h, models[i].has_biases, i + 1, in("model"));
    snprintf(name, sizeof(name), "good-model-%s.lmq", models[i].name);
    snprintf(path, sizeof(path), "lmq/%s", name);
    struct bytes bytes = converted("model", path, &options);
    describe_lmq(name, NULL, models[i].sentence);
    remove_folder("model");
    free(h);
    return bytes;
}

/* ---- Changed descriptions ---- */

/* A text of the metadata becomes another one of the same length. */
static void
change(struct bytes *bytes, const char *from, const char *to, bool twice)
{
    size_t n = strlen(from), at = find_lmq_section(bytes->at, bytes->n, 1);
    size_t n_changed = 0;

    if (strlen(to) != n)
        fail(from, "another length");
    for (; at + n <= bytes->n; at++)
        if (memcmp(bytes->at + at, from, n) == 0 &&
            (n_changed == 0 || twice)) {
            memcpy(bytes->at + at, to, n);
            n_changed++;
        }
    if (n_changed == 0)
        fail(from, "is not there");
    reseal_lmq(bytes->at, bytes->n);
}

static const struct {
    const char *model, *name, *from, *to;
    bool twice;
    const char *rule, *sentence;
} changes[] = {
    {"clipped", "bad-model-key.lmq", "\"norm_eps\"", "\"norm_epz\"", false,
     "M1", "no norm_eps."},
    {"llama", "bad-model-layer.lmq", "\"full_layers\":[1]",
     "\"full_layers\":[2]", false, "M3", "a layer that it does not have."},
    {"sinks", "bad-model-sinkless.lmq", "\"sinkless_layers\":[1]",
     "\"sinkless_layers\":[2]", false, "M3",
     "a layer that it does not have, without sinks."},
    {"sinks", "bad-model-sinks.lmq", "\"sinkless_layers\":[1]",
     "\"sinkless_layers\":[ ]", false, "M7", "sinks that lack in a layer."},
    {"mixed", "bad-model-after.lmq", "\"after_layers\":[1]",
     "\"after_layers\":[2]", false, "M3",
     "a layer that it does not have, with norms after."},
    {"clipped", "bad-model-requires.lmq", "\"requires\":[\"r",
     "\"requires\":[\"R", false, "R44", "it requires what it does not have."},
    {"clipped", "bad-model-shape.lmq", "\"hidden_dim\":12",
     "\"hidden_dim\":13", false, "M6", "matrices of another size."},
    {"clipped", "bad-model-queries.lmq", "\"n_heads\":4", "\"n_heads\":6",
     false, "M6", "queries of other heads."},
    {"clipped", "bad-model-more-layers.lmq", "\"n_layers\":1",
     "\"n_layers\":2", false, "M7", "a layer without tensors."},
    {"llama", "bad-model-less-layers.lmq",
     "[1],\"head_dim\":4,\"hidden_dim\":12,\"n_heads\":4,\"n_kv_heads\":2,"
     "\"n_layers\":2",
     "[0],\"head_dim\":4,\"hidden_dim\":12,\"n_heads\":4,\"n_kv_heads\":2,"
     "\"n_layers\":1",
     false, "M6", "tensors of a layer too many."},
    {"clipped", "good-model-requires-later.lmq", "qkv_clip", "qkv_clix", true,
     "M8", "it requires a key that is not known."},
    {"clipped", "good-model-word-later.lmq", "\"relu\"", "\"relo\"", false,
     "M9", "an activation that is not known."},
    {"clipped", "good-model-scaling-later.lmq", "\"dynamic\"",
     "\"dynamit\"", false, "M9", "a scaling that is not known."},
    {"factors", "good-model-unsupported.lmq",
     "\"architecture\":\"factors\"", "\"unsupported\" :\"factory\"", false,
     "M10", "its writer could not compute it."},
};

static void
make_changes(const char *model, const struct bytes *good)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct bytes bytes = {0};
        if (strcmp(changes[i].model, model) != 0)
            continue;
        put(&bytes, good->at, good->n);
        change(&bytes, changes[i].from, changes[i].to, changes[i].twice);
        emit_lmq(changes[i].name, &bytes, changes[i].rule,
                 changes[i].sentence);
    }
}

/* The record of a role. */
static unsigned char *
find_role(const struct bytes *bytes, unsigned role)
{
    unsigned char *record =
        bytes->at + find_lmq_section(bytes->at, bytes->n, 2) + 16;

    while (record[8] != role || record[9] != 0)
        record += 256;
    return record;
}

/* [1, n] where the table says n: the bytes are the same. */
static void
make_switch(const struct bytes *experts)
{
    struct bytes bytes = {0};

    put(&bytes, experts->at, experts->n);
    unsigned char *record = find_role(&bytes, 24);
    record[23] = 2;
    memcpy(record + 40, record + 32, 8);
    memset(record + 32, 0, 8);
    record[32] = 1;
    reseal_lmq(bytes.at, bytes.n);
    emit_lmq("bad-model-switch.lmq", &bytes, "M6",
             "a switch of 1 by 8, not of 8.");
}

/* A bias of a role that is not known. */
static void
make_role(const struct bytes *latents)
{
    struct bytes bytes = {0};

    put(&bytes, latents->at, latents->n);
    unsigned char *record = find_role(&bytes, 8) + 256;
    record[8] = 199;
    record[16] = 5;
    memset(record + 17, 0, 3);
    reseal_lmq(bytes.at, bytes.n);
    emit_lmq("good-model-role-later.lmq", &bytes, "M11",
             "a tensor of a role that is not known, with an item.");
}

/* A tied head with a bias of its own. */
static void
make_head_bias(void)
{
    const struct lmq_convert_options options = {.layout = "rows"};
    const struct build_sizes sizes = {
        .dim = 4, .hidden = 6, .layers = 1, .heads = 2, .kv_heads = 1,
        .vocab = 5, .context = 10, .is_tied = true};
    const uint64_t n = 5;
    struct build_model *model = build_model(&sizes, 3);
    struct build_tensor *bias = build_add(model, "lm_head.bias", &n, 1);

    for (int i = 0; i < 5; i++)
        bias->x[i] = (float)(2 * i - 5) / 4;
    save_folder(model, in("model"), BUILD_F32);
    build_free(model);
    struct bytes bytes =
        converted("model", "lmq/good-model-head-bias.lmq", &options);
    describe_lmq("good-model-head-bias.lmq", NULL,
                 "the head is the embedding, with a bias.");
    bytes_free(&bytes);
    remove_folder("model");
}

void
make_lmq_models(void)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct bytes bytes = make_model(i);
        make_changes(models[i].name, &bytes);
        if (strcmp(models[i].name, "experts") == 0)
            make_switch(&bytes);
        if (strcmp(models[i].name, "latents") == 0)
            make_role(&bytes);
        bytes_free(&bytes);
    }
    make_head_bias();
}
