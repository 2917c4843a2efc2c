/*
 * describe_model.c - what a model is, in words.
 *
 * A list of what differs from a plain Llama, and one of how the source
 * arranges what is kept otherwise here. A line of text each, short enough for
 * a terminal.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "base/text/c_locale.h"
#include "formats/describe.h"

/* A sentence that does not fit is cut; none is as long. */
static void LMQ_PRINTF(2, 3)
say(json_t **words, const char *format, ...)
{
    char text[160];
    va_list args;

    va_start(args, format);
    lmq_c_vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    lmq_append(words, json_string(text));
}

/* Says the text of a kind, unless it is the first, which is Llama's. */
static void
say_kind(json_t **words, int kind, const char *const *texts)
{
    if (kind > 0)
        say(words, "%s", texts[kind]);
}

/* Says a number that differs from its usual value. */
static void
say_number(json_t **words, const char *text, double value, double usual)
{
    if (value < usual || value > usual)
        say(words, "%s %.10g", text, value);
}

/* How many layers are so. */
static uint32_t
count_layers(const struct lmq_hparams *h, enum lmq_layer_kind kind)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        n += lmq_layer_is(h, i, kind);
    return n;
}

/* What surrounds attention and feed-forward: norms, residuals, scales. */
static void
say_blocks(json_t **words, const struct lmq_hparams *h)
{
    static const char *const norms[LMQ_NORM_COUNT] = {
        [LMQ_NORM_LAYER] = "layer norms",
        [LMQ_NORM_LAYER_PLAIN] = "layer norms without weights",
        [LMQ_NORM_RMS_PLAIN] = "RMS norms without weights",
    };
    static const char *const places[LMQ_NORM_PLACE_COUNT] = {
        [LMQ_NORMS_AFTER] = "norms behind attention and feed-forward",
        [LMQ_NORMS_AROUND] = "norms before and behind attention and "
                             "feed-forward",
    };
    static const char *const residuals[LMQ_RESIDUAL_COUNT] = {
        [LMQ_RESIDUAL_PARALLEL] = "attention and feed-forward side by side",
        [LMQ_RESIDUAL_PARALLEL_ONE_NORM] =
            "attention and feed-forward side by side, with one norm",
    };

    uint32_t n_after = count_layers(h, LMQ_LAYER_AFTER);

    say_kind(words, (int)h->norm, norms);
    say_kind(words, (int)h->norm_place, places);
    if (n_after > 0)
        say(words, "%s in %u of %u layers", places[LMQ_NORMS_AFTER], n_after,
            h->n_layers);
    say_kind(words, (int)h->residual, residuals);
    say_number(words, "embeddings times", h->embedding_scale, 1);
    if (h->has_embedding_norm)
        say(words, "a norm of embeddings%s",
            h->has_bare_embedding_norm ? " without weights" : "");
    say_number(words, "epsilon of norms behind blocks:", h->post_norm_eps, 0);
    if (h->has_sub_norms)
        say(words, "norms within attention and feed-forward");
    if (h->has_mixture_norm)
        say(words, "a norm behind the experts");
    if (h->layer_input_dim > 0)
        say(words, "an input of %u for each layer", h->layer_input_dim);
    if (h->layer_input_vocab > 0)
        say(words, "of %u tokens", h->layer_input_vocab);
    if (h->n_streams > 0)
        say(words, "%u residual streams%s", h->n_streams,
            lmq_has_gated_streams(h)   ? " with a gate of each number"
            : lmq_has_hyper_streams(h) ? " with hyper-connections"
                                       : "");
    if (h->stream_rank > 0)
        say(words, "of rank %u", h->stream_rank);
    if (h->stream_rounds > 0)
        say(words, "mixed in %u rounds", h->stream_rounds);
    say_number(words, "written to each times", h->stream_gain, 1);
    if (h->has_stream_mean)
        say(words, "the mean of streams in the end");
    if (h->gram_size > 0)
        say(words, "%u rows of a table for sequences of up to %u tokens in "
                   "%u of %u layers",
            (h->gram_size - 1) * h->gram_heads, h->gram_size,
            count_layers(h, LMQ_LAYER_GRAMS), h->n_layers);
    if (h->norm_gate_rank > 0)
        say(words, "norms with gates of rank %u", h->norm_gate_rank);
    if (h->residual_rank > 0)
        say(words, "a residual of rank %u past attention", h->residual_rank);
    if (h->n_loops > 1)
        say(words, "%u times through all layers%s", h->n_loops,
            h->has_loop_norm ? ", each with the last norm" : "");
    if (h->has_layer_scale)
        say(words, "a scale behind each layer");
    say_number(words, "what layers add, times", h->residual_scale, 1);
    if (h->has_normed_residual)
        say(words, "blocks that add to what they are given, normed");
    say_number(words, "what attention adds to, times", h->attn_keep, 1);
    say_number(words, "what recurrences add to, times", h->delta_keep, 1);
    say_number(words, "what feed-forwards add to, times", h->feed_keep, 1);
    say_number(words, "what attention adds, times", h->attn_add, 1);
    say_number(words, "what recurrences add, times", h->delta_add, 1);
    say_number(words, "what feed-forwards add, times", h->feed_add, 1);
    say_number(words, "logits times", h->logit_scale, 1);
    say_number(words, "logits capped at", h->logit_softcap, 0);
}

/* What stands in place of attention. */
static void
say_recurrence(json_t **words, const struct lmq_hparams *h)
{
    static const char *const kinds[LMQ_RECURRENCE_COUNT] = {
        [LMQ_RECURRENCE_DELTA] = "the gated delta rule",
        [LMQ_RECURRENCE_STATE_SPACE] = "a state space (Mamba 2)",
        [LMQ_RECURRENCE_CONVOLUTION] = "convolutions",
        [LMQ_RECURRENCE_SELECTIVE] = "a selective state space (Mamba 1)",
        [LMQ_RECURRENCE_LIGHTNING] = "lightning attention",
        [LMQ_RECURRENCE_LRU] = "real-gated linear recurrences",
    };
    uint32_t n = count_layers(h, LMQ_LAYER_DELTA);
    const char *kind = kinds[h->recurrence];

    if (n > 0 && lmq_is_convolution(h))
        say(words, "%s over %u tokens in %u of %u layers", kind,
            h->conv_width, n, h->n_layers);
    else if (n > 0 && lmq_is_lru(h))
        say(words, "%s over %u tokens in %u of %u layers: %u heads of %u",
            kind, h->conv_width, n, h->n_layers, h->n_delta_value_heads,
            h->delta_value_dim);
    else if (n > 0)
        say(words, "%s in %u of %u layers: %u key heads of %u and %u value "
                   "heads of %u dimensions",
            kind, n, h->n_layers, h->n_delta_key_heads, h->delta_key_dim,
            h->n_delta_value_heads, h->delta_value_dim);
    n = count_layers(h, LMQ_LAYER_BESIDE);
    if (n > 0)
        say(words, "beside attention in %u of them", n);
    say_number(words, "what states are written, times", h->beta_scale, 1);
    if (h->has_bare_states)
        say(words, "states without norms");
    if (h->step_rank > 0)
        say(words, "time steps by latents of %u", h->step_rank);
    if (h->gate_rank > 0)
        say(words, "gates by latents of %u", h->gate_rank);
    if (h->has_key_decays)
        say(words, "a time step for each key");
    say_number(words, "decays above exp of -", h->decay_floor, 0);
    say_number(words, "decays of the first layer times", h->decay_first, 1);
    say_number(words, "and less in each further one by", h->decay_step, 0);
    if (h->has_sigmoid_gates)
        say(words, "states gated by sigmoid");
    if (h->has_step_norms)
        say(words, "norms of time steps, keys and queries%s",
            h->has_step_norm_weights ? "" : " without weights");
}

/* Numbers that differ from layer to layer, of those that have such a thing. */
static void
say_range(json_t **words, const struct lmq_hparams *h, const char *what,
          uint32_t (*of)(const struct lmq_hparams *h, size_t layer),
          bool (*counts)(const struct lmq_hparams *h, size_t layer))
{
    uint32_t least = UINT32_MAX, most = 0;

    for (size_t i = 0; i < h->n_layers; i++) {
        if (!counts(h, i))
            continue;
        least = of(h, i) < least ? of(h, i) : least;
        most = of(h, i) > most ? of(h, i) : most;
    }
    if (least < most)
        say(words, "%u to %u %s, by layer", least, most, what);
}

static bool
has_one_feed(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_has_feed(h, layer) && !lmq_layer_has_experts(h, layer);
}

/* Keys that are values, and what there is of these. */
static void
say_shared(json_t **words, const struct lmq_hparams *h)
{
    uint32_t n_pool = count_layers(h, LMQ_LAYER_POOL);
    uint32_t n_overlap = count_layers(h, LMQ_LAYER_OVERLAP);
    uint32_t n_index = count_layers(h, LMQ_LAYER_INDEX);

    if (h->has_turned_values)
        say(words, "values that are the keys, turned back");
    if (n_pool > 0)
        say(words, "pools of %u positions in %u of %u layers", h->pool_size,
            n_pool, h->n_layers);
    if (n_overlap > 0)
        say(words, "pools of %u positions that overlap in %u of %u layers",
            h->overlap_size, n_overlap, h->n_layers);
    if (n_index > 0)
        say(words, "positions that are seen chosen in %u of %u layers",
            n_index, h->n_layers);
    if (h->index_topk > 0)
        say(words, "of which %u are chosen by %u heads of %u dimensions",
            h->index_topk, h->n_index_heads, h->index_dim);
    if (h->n_out_groups > 0)
        say(words, "what heads give by %u matrices of rank %u",
            h->n_out_groups, h->out_rank);
}

static void
say_attention(json_t **words, const struct lmq_hparams *h)
{
    static const char *const qk_norms[LMQ_QK_NORM_COUNT] = {
        [LMQ_QK_NORM_HEAD] = "norms of queries and keys, head by head",
        [LMQ_QK_NORM_HEADS] = "norms of queries and keys, each head its own",
        [LMQ_QK_NORM_WHOLE] = "norms of queries and keys, all heads at once",
        [LMQ_QK_NORM_BARE] = "norms of queries and keys without weights",
        [LMQ_QK_NORM_BARE_ALL] = "norms of all queries and keys without "
                                 "weights",
        [LMQ_QK_NORM_BARE_QUERIES] =
            "norms of keys, and of queries without weights",
        [LMQ_QK_NORM_TURNING] = "norms of what turns of keys",
    };
    uint32_t n_full = count_layers(h, LMQ_LAYER_FULL);
    uint32_t n_sinkless = count_layers(h, LMQ_LAYER_SINKLESS);
    const char *how = h->has_softplus_gate ? ", by softplus" : "";

    if (h->kv_lora_rank > 0)
        say(words, "latent attention: keys and values of rank %u",
            h->kv_lora_rank);
    if (h->full_kv_lora_rank > 0)
        say(words, "of rank %u in layers without a window",
            h->full_kv_lora_rank);
    if (h->q_lora_rank > 0)
        say(words, "queries of rank %u", h->q_lora_rank);
    if (lmq_hparams_value_dim(h) != h->head_dim)
        say(words, "values of %u dimensions", h->value_dim);
    say_kind(words, (int)h->qk_norm, qk_norms);
    if (h->sliding_window > 0 && n_full == 0)
        say(words, "a window of %u positions", h->sliding_window);
    else if (h->sliding_window > 0)
        say(words, "a window of %u positions in %u of %u layers",
            h->sliding_window, h->n_layers - n_full, h->n_layers);
    if (h->kv_lora_rank > 0 && h->full_head_dim > 0)
        say(words, "heads of %u dimensions in the others", h->full_head_dim);
    else if (h->full_head_dim > 0 || h->full_kv_heads > 0)
        say(words, "%u key heads of %u dimensions in the others",
            h->full_kv_heads > 0 ? h->full_kv_heads : h->n_kv_heads,
            h->full_head_dim > 0 ? h->full_head_dim : h->head_dim);
    say_range(words, h, "heads", lmq_layer_heads, lmq_layer_has_attention);
    if (h->full_kv_heads == 0)
        say_range(words, h, "key heads", lmq_layer_kv_heads,
                  lmq_layer_has_attention);
    if (h->full_keys_are_values)
        say(words, "keys that are values too in the others");
    if (h->n_borrowing > 0)
        say(words, "the last %u layers use keys and values of others",
            h->n_borrowing);
    if (h->has_value_norm)
        say(words, "norms of values without weights");
    if (h->attention_chunk > 0)
        say(words, "chunks of %u positions in %u of %u layers",
            h->attention_chunk, h->n_layers - n_full, h->n_layers);
    if (h->qk_norm_late)
        say(words, "these norms after turning");
    if (h->score_growth > 0)
        say(words, "scores that grow by %g for each %u positions%s",
            h->score_growth, h->score_growth_period,
            h->score_growth_still ? ", in layers without positions" : "");
    if (h->has_head_growth)
        say(words, "scores that grow with the position as their head says");
    say_number(words, "scores times", h->attn_scale, 0);
    say_number(words, "scores capped at", h->attn_softcap, 0);
    say_number(words, "queries, keys, values clipped at", h->qkv_clip, 0);
    say_number(words, "values times", h->value_scale, 1);
    if (h->has_sinks && n_sinkless == 0)
        say(words, "attention sinks");
    else if (h->has_sinks)
        say(words, "attention sinks in %u of %u layers",
            h->n_layers - n_sinkless, h->n_layers);
    if (h->has_head_gate)
        say(words, "gates of attention, one for each head%s", how);
    else if (h->has_attn_gate)
        say(words, "a gate behind attention%s", how);
    say_shared(words, h);
    say_recurrence(words, h);
}

/* How a layer learns where a token stands. Most models turn queries and keys
 * (RoPE), in all of a head or in a part of it. */
static void
say_positions(json_t **words, const struct lmq_hparams *h)
{
    static const char *const positions[LMQ_POSITIONS_COUNT] = {
        [LMQ_POSITIONS_LEARNED] = "learned positions",
        [LMQ_POSITIONS_ALIBI] = "ALiBi in place of positions",
        [LMQ_POSITIONS_ALIBI_SCALED] = "scaled ALiBi in place of positions",
        [LMQ_POSITIONS_NONE] = "no positions",
    };
    static const char *const scalings[LMQ_ROPE_SCALING_COUNT] = {
        [LMQ_ROPE_LINEAR] = "linear",   [LMQ_ROPE_LLAMA3] = "llama3",
        [LMQ_ROPE_NTK] = "ntk",         [LMQ_ROPE_DYNAMIC] = "dynamic ntk",
        [LMQ_ROPE_YARN] = "yarn",       [LMQ_ROPE_LONGROPE] = "longrope",
        [LMQ_ROPE_FACTORS] = "factors",
    };
    uint32_t rotary = lmq_hparams_rotary_dim(h);
    uint32_t n_nope = count_layers(h, LMQ_LAYER_NOPE);

    say_kind(words, (int)h->positions, positions);
    if (h->positions != LMQ_POSITIONS_ROTARY)
        return;
    if (rotary != h->head_dim)
        say(words, "%u of the %u dimensions of a head turn", rotary,
            h->head_dim);
    if (h->full_rotary_dim > 0)
        say(words, "%u of them in layers without a window",
            h->full_rotary_dim);
    if (n_nope > 0)
        say(words, "%u of %u layers without positions%s", n_nope, h->n_layers,
            h->has_whole_still ? ", of whose heads all is latent" : "");
    if (h->rope_local_theta > 0)
        say(words, "rotary base %.10g in layers with a window",
            h->rope_local_theta);
    if (h->rope_scaling == LMQ_ROPE_PLAIN)
        return;
    if (h->rope_context > 0)
        say(words, "rotary scaling: %s, factor %g, from %u positions on",
            scalings[h->rope_scaling], h->rope_factor, h->rope_context);
    else
        say(words, "rotary scaling: %s, factor %g",
            scalings[h->rope_scaling], h->rope_factor);
}

static void
say_limit(json_t **words, const struct lmq_hparams *h, const char *what,
          double limit, enum lmq_layer_kind kind)
{
    if (limit > 0)
        say(words, "%s limited to %.10g behind its activation in %u of %u "
                   "layers",
            what, limit, count_layers(h, kind), h->n_layers);
}

/* One for all tokens, or experts of which a router chooses some. */
static void
say_feed_forward(json_t **words, const struct lmq_hparams *h)
{
    static const char *const activations[LMQ_ACTIVATION_COUNT] = {
        [LMQ_ACTIVATION_GELU] = "GELU",
        [LMQ_ACTIVATION_GELU_TANH] = "GELU, by tanh",
        [LMQ_ACTIVATION_RELU] = "ReLU",
        [LMQ_ACTIVATION_SIGMOID] = "sigmoid",
        [LMQ_ACTIVATION_RELU2] = "ReLU squared",
        [LMQ_ACTIVATION_XIELU] = "xIELU",
    };
    static const char *const routers[LMQ_ROUTER_COUNT] = {
        [LMQ_ROUTER_SOFTMAX_CHOSEN] = "router: softmax over the chosen",
        [LMQ_ROUTER_SIGMOID] = "router: sigmoid",
        [LMQ_ROUTER_NEAR] = "router: softmax over those near each chosen",
        [LMQ_ROUTER_SIGMOID_CHOSEN] = "router: sigmoid of the chosen",
        [LMQ_ROUTER_ROOT_SOFTPLUS] = "router: root of softplus",
    };
    uint32_t n_dense = count_layers(h, LMQ_LAYER_DENSE);
    uint32_t n_bare = count_layers(h, LMQ_LAYER_BARE);
    uint32_t n_feed = count_layers(h, LMQ_LAYER_FEED);
    uint32_t n_sparse = count_layers(h, LMQ_LAYER_SPARSE);
    uint32_t n_tokens = count_layers(h, LMQ_LAYER_TOKENS);

    say_kind(words, (int)h->activation, activations);
    if (n_sparse > 0)
        say(words, "gates from %.3g deviations above their mean on in %u of "
                   "%u layers",
            h->sparse_cut, n_sparse, h->n_layers);
    if (n_bare > 0)
        say(words, "%u of %u layers without feed-forward", n_bare,
            h->n_layers);
    if (n_feed > 0)
        say(words, "%u of %u layers that are a feed-forward alone", n_feed,
            h->n_layers);
    say_number(words, "SiLU with a slope of", h->activation_slope, 1);
    say_number(words, "gate and what it multiplies limited to", h->glu_limit,
               0);
    if (h->glu_limits_experts)
        say(words, "that of experts alone");
    say_number(words, "added to what the gate multiplies:", h->glu_offset, 0);
    say_limit(words, h, "a feed-forward", h->act_limit, LMQ_LAYER_LIMITED);
    say_limit(words, h, "an expert", h->expert_act_limit,
              LMQ_LAYER_LIMITED_EXPERTS);
    if (h->borrowing_hidden_dim == 0)
        say_range(words, h, "dimensions inside feed-forwards",
                  lmq_layer_hidden_dim, has_one_feed);
    if (!h->is_gated)
        say(words, "feed-forward without a gate");
    if (h->n_experts == 0)
        return;
    say(words, "%u experts of %u dimensions, %u for each token", h->n_experts,
        h->expert_dim, h->n_experts_used);
    if (h->n_expert_groups > 0)
        say(words, "chosen from %u of %u groups of experts",
            h->n_expert_groups_used, h->n_expert_groups);
    if (h->shared_dim > 0)
        say(words, "shared experts of %u dimensions in all", h->shared_dim);
    if (n_dense > 0)
        say(words, "%u of %u layers without experts", n_dense, h->n_layers);
    if (n_tokens > 0)
        say(words, "%u of %u layers where tokens name the experts", n_tokens,
            h->n_layers);
    say_kind(words, (int)h->router, routers);
    if (h->router_renormalises)
        say(words, "weights of the chosen experts sum to 1");
    if (h->router_corrects)
        say(words, "a correction of the router, for choosing only");
    if (h->router_is_early)
        say(words, "routers that look at what enters the layer");
    if (h->router_scales_input)
        say(words, "weights of experts multiply what they are given");
    say_number(words, "logits of the router capped at", h->router_softcap,
               0);
    say_number(words, "near: within this part of a logit:",
               h->router_reach, 0);
    say_number(words, "weights of experts times", h->router_scale, 1);
    say_number(words, "what experts share times", h->shared_scale, 1);
}

/* Nothing is said of a plain Llama. Biases are counted, since families differ
 * in where they have them. */
json_t *
lmq_describe_differences(const struct lmq_checkpoint *checkpoint)
{
    const struct lmq_hparams *h = &checkpoint->hparams;
    json_t *words = json_array();
    size_t n_biases = 0;

    if (!checkpoint->has_model)
        return words;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        n_biases += checkpoint->tensors[i].place.part == LMQ_PART_BIAS &&
                    checkpoint->tensors[i].place.role !=
                        LMQ_ROLE_ROUTER_CORRECTION;
    say_blocks(&words, h);
    say_attention(&words, h);
    say_positions(&words, h);
    say_feed_forward(&words, h);
    if (n_biases > 0)
        say(&words, "biases: %zu", n_biases);
    return words;
}

/* ---- The source ---- */

/* Whether two tensors of ours come out of one of the file's. */
static bool
has_fused(const struct lmq_checkpoint *checkpoint, enum lmq_role a,
          enum lmq_role b, int32_t item)
{
    const struct lmq_place first = {a, LMQ_PART_WEIGHT, 0, item};

    for (size_t i = 0; i + 1 < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (lmq_place_compare(&tensor->place, &first) != 0)
            continue;
        for (size_t j = i + 1; j < checkpoint->n_tensors; j++)
            if (checkpoint->tensors[j].place.role == b)
                return checkpoint->tensors[j].alias_of == NULL &&
                       strcmp(tensor->stored_name,
                              checkpoint->tensors[j].stored_name) == 0;
    }
    return false;
}

static bool
is_scaled(const struct lmq_source *source)
{
    for (size_t i = 0; i < LMQ_ROLE_COUNT; i++)
        if (source->times[i] > 0)
            return true;
    return false;
}

/* Only where the source differs from the one form that is kept here; a
 * container has that form. */
json_t *
lmq_describe_arrangement(const struct lmq_checkpoint *checkpoint)
{
    static const char *const orders[] = {
        [LMQ_QKV_ONE_BY_ONE] = "",
        [LMQ_QKV_BY_HEAD] = ", head by head",
        [LMQ_QKV_BY_QUARTER] = ", quarter by quarter",
    };
    const struct lmq_source *source = &checkpoint->source;
    json_t *words = json_array();

    if (!checkpoint->has_model || checkpoint->format->is_canonical)
        return words;
    if (source->has_rotary_pairs &&
        checkpoint->hparams.positions == LMQ_POSITIONS_ROTARY)
        say(&words, "rotary pairs side by side");
    if (source->turns_back)
        say(&words, "positions turn the other way");
    if (source->is_transposed)
        say(&words, "matrices transposed");
    if (is_scaled(source))
        say(&words, "weights times what the configuration says");
    if (source->norms_less_one)
        say(&words, "norms less one");
    if (has_fused(checkpoint, LMQ_ROLE_ATTN_V, LMQ_ROLE_DELTA_ALPHA, -1))
        say(&words, "gates, values, keys, queries, time steps in one matrix");
    else if (has_fused(checkpoint, LMQ_ROLE_ATTN_Q, LMQ_ROLE_ATTN_K, -1))
        say(&words, "queries, keys, values in one matrix%s",
            orders[source->qkv_order]);
    if (has_fused(checkpoint, LMQ_ROLE_FFN_GATE, LMQ_ROLE_FFN_UP, -1))
        say(&words, "gate and up in one matrix");
    if (has_fused(checkpoint, LMQ_ROLE_FFN_GATE, LMQ_ROLE_FFN_GATE, 0))
        say(&words, "all experts of a layer in one tensor");
    if (source->n_input_tokens > 0)
        say(&words, "%u tokens of other senses than text: left out",
            source->n_input_tokens - checkpoint->hparams.vocab_size);
    if (source->n_further_layers > 0)
        say(&words, "%u further layers, for more tokens at once: left out",
            source->n_further_layers);
    return words;
}
