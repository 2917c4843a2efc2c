/*
 * test_gguf_pools.c - GLM 5 next in GGUF: sparse attention that chooses groups,
 * hyper-connections, limits of all feed-forwards; and what is made of nothing,
 * since llama.cpp asks for it. DeepSeek V4: pools, tables of tokens.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "formats/gguf/more/gguf_pools.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/formats/hf_models.h"

#define N_LAYERS 4

/* As llama.cpp's converter writes the keys, but for what a test says. */
static struct said {
    uint32_t n_streams, rounds, top, group, rotary;
    bool sees_tail, has_floor;
    double limit, other_limit; /* of experts, of all else; below 0: none said */
} said;

static void
say_usual(void)
{
    said = (struct said){.n_streams = 4, .rounds = 20, .top = 96, .group = 12,
                         .sees_tail = true, .has_floor = true, .limit = 7,
                         .other_limit = 7};
}

static void
put_limit(struct lmq_gguf_builder *builder, const char *key, double limit)
{
    if (limit < 0)
        return;
    lmq_gguf_put_array(builder, key, LMQ_GGUF_F32, N_LAYERS);
    for (uint32_t i = 0; i < N_LAYERS; i++)
        lmq_gguf_add_f32(builder, limit);
}

static void
put_keys(struct lmq_gguf_builder *builder)
{
    const struct {
        const char *key;
        uint32_t count;
    } counts[] = {
        {".block_count", N_LAYERS}, {".context_length", 4096},
        {".embedding_length", 64}, {".feed_forward_length", 96},
        {".attention.head_count", 4}, {".attention.key_length", 24},
        {".attention.value_length", 24}, {".attention.key_length_mla", 16},
        {".attention.value_length_mla", 20}, {".attention.q_lora_rank", 16},
        {".attention.kv_lora_rank", 24},
        {".rope.dimension_count", said.rotary}, {".ssm.conv_kernel", 4},
        {".kda.head_dim", 12}, {".expert_count", 8},
        {".expert_used_count", 2}, {".expert_feed_forward_length", 40},
        {".expert_shared_count", 2}, {".leading_dense_block_count", 1},
        {".attention.indexer.head_count", 2},
        {".attention.indexer.key_length", 16},
        {".attention.indexer.top_k", said.top},
        {".attention.indexer.kpool", said.group},
        {".hyper_connection.count", said.n_streams},
        {".hyper_connection.sinkhorn_iterations", said.rounds},
    };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(builder, counts[i].key, counts[i].count);
    lmq_gguf_put_f32(builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    lmq_gguf_put_f32(builder, ".attention.layer_norm_epsilon", 1e-6);
    lmq_gguf_put_f32(builder, ".hyper_connection.epsilon", 0.25);
    lmq_gguf_put_f32(builder, ".expert_weights_scale", 2.5);
    lmq_gguf_put_bool(builder, ".expert_weights_norm", true);
    lmq_gguf_put_bool(builder, ".attention.indexer.kpool_select_tail",
                      said.sees_tail);
    if (said.has_floor)
        lmq_gguf_put_f32(builder, ".kda.gate_lower_bound", -4);
    lmq_gguf_put_array(builder, ".attention.head_count_kv", LMQ_GGUF_I32,
                       N_LAYERS);
    for (uint32_t i = 0; i < N_LAYERS; i++)
        lmq_gguf_add_u32(builder, i == 2);
    put_limit(builder, ".swiglu_clamp_exp", said.limit);
    put_limit(builder, ".swiglu_clamp_shexp", said.other_limit);
}

static enum lmq_status
read_as(const char *name, void (*put_all)(struct lmq_gguf_builder *builder),
        struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_gguf_evidence evidence = {
        .vocab_size = 33, .has_query_latents = true, .has_correction = true};
    struct lmq_gguf_builder builder = {0};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;

    lmq_notes_free(&checkpoint->notes);
    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_begin(&builder);
    builder.prefix = name;
    lmq_gguf_put_text(&builder, "general.architecture", name, strlen(name));
    put_all(&builder);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, err),
                     LMQ_OK);
    enum lmq_status status =
        lmq_gguf_read_keys(meta, &evidence, checkpoint, &family, err);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    return status;
}

static enum lmq_status
read_keys(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    return read_as("glm5-next", put_keys, checkpoint, err);
}

START_TEST(keys_of_gguf_say_a_glm_5_next)
{
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    say_usual();
    ck_assert_msg(read_keys(&checkpoint, &err) == LMQ_OK, "%s", err.message);
    ck_assert_uint_eq(checkpoint.notes.n, 0);
    ck_assert_str_eq(h->unsupported, "");
    assert_layers(h, LMQ_LAYER_DELTA, "xx.x");
    assert_layers(h, LMQ_LAYER_DENSE, "x...");
    ck_assert_int_eq(h->positions, LMQ_POSITIONS_NONE);
    ck_assert_uint_eq(h->context, 96 + 11);
    ck_assert_uint_eq(h->context_end, 96 + 11);
    ck_assert_uint_eq(checkpoint.source.n_chosen, 96 + 11);
    ck_assert_uint_eq(h->n_streams, 4);
    ck_assert_uint_eq(h->stream_rounds, 20);
    ck_assert_int_eq(h->stream_kind, LMQ_STREAMS_HYPER);
    ck_assert_double_eq(h->stream_eps, 0.25);
    ck_assert_double_eq(h->stream_gain, 2);
    ck_assert(h->has_stream_mean && h->has_key_decays);
    ck_assert(h->router_corrects && h->router_renormalises);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(h->shared_dim, 80);
    ck_assert_uint_eq(h->head_dim, 16);
    ck_assert_uint_eq(h->value_dim, 20);
    ck_assert_uint_eq(h->step_rank, 12);
    ck_assert_double_eq(h->decay_floor, 4);
    ck_assert_double_eq(h->glu_limit, 7);
    ck_assert(checkpoint.source.has_decay_itself &&
              !checkpoint.source.has_decay_above);
    /* What need not be said. */
    said.has_floor = false;
    said.rounds = 0;
    said.other_limit = -1;
    ck_assert_int_eq(read_keys(&checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(h->unsupported, "");
    ck_assert(!(h->decay_floor > 0));
    ck_assert_uint_eq(h->stream_rounds, 1);
    ck_assert_double_eq(h->glu_limit, 7);
    said.limit = said.other_limit = 0;
    ck_assert_int_eq(read_keys(&checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(h->unsupported, "");
    ck_assert(!(h->glu_limit > 0));
    lmq_notes_free(&checkpoint.notes);
}
END_TEST

static void
assert_other(const char *why)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    ck_assert_msg(read_keys(&checkpoint, &err) == LMQ_OK, "%s", err.message);
    ck_assert_str_eq(checkpoint.hparams.unsupported, why);
    lmq_notes_free(&checkpoint.notes);
    say_usual();
}

static void
assert_damaged(const char *why)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    ck_assert_int_eq(read_keys(&checkpoint, &err), LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, why) != NULL, "%s", err.message);
    lmq_notes_free(&checkpoint.notes);
    say_usual();
}

START_TEST(what_groups_and_streams_cannot_be_is_refused)
{
    say_usual();
    said.other_limit = 6;
    assert_other("'swiglu_clamp_shexp' 6 beside 'swiglu_clamp_exp' 7");
    said.sees_tail = false;
    assert_other("'attention.indexer.kpool_select_tail' false");
    said.n_streams = 1;
    assert_other("'hyper_connection.count' 1");
    said.rotary = 8;
    assert_other("'rope.dimension_count' 8");
    said.group = 1;
    assert_damaged("'glm5-next.attention.indexer.kpool' is 1, expected more "
                   "than 1 and a part of 'attention.indexer.top_k', 96");
    said.group = 36;
    assert_damaged("kpool' is 36");
    said.top = LMQ_MAX_CONTEXT / 2 * 2;
    said.group = LMQ_MAX_CONTEXT / 2;
    assert_damaged("kpool' is");
    said.top = 0;
    assert_damaged("'glm5-next.attention.indexer.top_k' is missing or 0");
}
END_TEST

/* Whole groups, and what is left behind them. */
START_TEST(an_end_that_groups_have_is_no_less_than_was_asked_for)
{
    ck_assert_uint_eq(lmq_gguf_groups_end(2063), 2063);
    ck_assert_uint_eq(lmq_gguf_groups_end(2064), 2079);
    ck_assert_uint_eq(lmq_gguf_groups_end(1), 31);
    for (uint32_t end = 1; end < 200; end++) {
        ck_assert_uint_ge(lmq_gguf_groups_end(end), end);
        ck_assert_uint_eq((lmq_gguf_groups_end(end) + 1) % LMQ_GGUF_GROUP, 0);
    }
}
END_TEST

/* ---- DeepSeek V4 ---- */

/* As its converter says it, which tells of a layer for further tokens, too. */
static struct {
    uint32_t ratio, n_ratios, n_tables, n_kv_heads, n_groups, rounds, top;
    double factor; /* of attention; 0: none */
} v4;

static void
say_usual_v4(void)
{
    v4.ratio = 128;
    v4.n_ratios = N_LAYERS + 1;
    v4.n_tables = 2;
    v4.n_kv_heads = 1;
    v4.n_groups = 2;
    v4.rounds = 20;
    v4.top = 512;
    v4.factor = 0;
}

static void
put_v4(struct lmq_gguf_builder *builder)
{
    const uint32_t each[N_LAYERS + 1] = {0, 4, v4.ratio, 4, 0};
    const struct {
        const char *key;
        uint32_t count;
    } counts[] = {
        {".block_count", N_LAYERS}, {".context_length", 4096},
        {".embedding_length", 64}, {".attention.head_count", 4},
        {".attention.head_count_kv", v4.n_kv_heads},
        {".attention.key_length", 24}, {".attention.value_length", 24},
        {".rope.dimension_count", 8}, {".attention.q_lora_rank", 16},
        {".attention.sliding_window", 128}, {".expert_count", 8},
        {".expert_used_count", 2}, {".expert_feed_forward_length", 40},
        {".expert_shared_count", 1}, {".expert_gating_func", 4},
        {".attention.indexer.head_count", 6},
        {".attention.indexer.key_length", 16},
        {".attention.indexer.top_k", v4.top},
        {".attention.output_group_count", v4.n_groups},
        {".attention.output_lora_rank", 12},
        {".hyper_connection.count", 4},
        {".hyper_connection.sinkhorn_iterations", v4.rounds},
        {".hash_layer_count", v4.n_tables},
        {".embedding_length_out", 256},
        {".rope.scaling.original_context_length", 1024},
    };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(builder, counts[i].key, counts[i].count);
    lmq_gguf_put_f32(builder, ".attention.layer_norm_rms_epsilon", 1e-6);
    lmq_gguf_put_f32(builder, ".rope.freq_base", 5000);
    lmq_gguf_put_f32(builder, ".attention.compress_rope_freq_base", 160000);
    lmq_gguf_put_text(builder, ".rope.scaling.type", "yarn", 4);
    lmq_gguf_put_f32(builder, ".rope.scaling.factor", 4);
    if (v4.factor > 0)
        lmq_gguf_put_f32(builder, ".rope.scaling.attn_factor", v4.factor);
    lmq_gguf_put_f32(builder, ".hyper_connection.epsilon", 0.25);
    lmq_gguf_put_f32(builder, ".expert_weights_scale", 1.5);
    lmq_gguf_put_bool(builder, ".expert_weights_norm", true);
    put_limit(builder, ".swiglu_clamp_exp", said.limit);
    lmq_gguf_put_array(builder, ".attention.compress_ratios", LMQ_GGUF_I32,
                       v4.n_ratios);
    for (uint32_t i = 0; i < v4.n_ratios; i++)
        lmq_gguf_add_u32(builder, each[i]);
}

START_TEST(keys_of_gguf_say_a_deepseek_v4)
{
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    say_usual();
    say_usual_v4();
    ck_assert_msg(read_as("deepseek4", put_v4, &checkpoint, &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert_uint_eq(checkpoint.notes.n, 0);
    ck_assert_str_eq(h->unsupported, "");
    assert_layers(h, LMQ_LAYER_OVERLAP, ".x.x");
    assert_layers(h, LMQ_LAYER_POOL, "..x.");
    assert_layers(h, LMQ_LAYER_TOKENS, "xx..");
    assert_layers(h, LMQ_LAYER_FULL, "....");
    ck_assert_uint_eq(h->overlap_size, 4);
    ck_assert_uint_eq(h->pool_size, 128);
    ck_assert_uint_eq(h->index_topk, 512);
    ck_assert_uint_eq(h->n_index_heads, 6);
    ck_assert_uint_eq(h->index_dim, 16);
    ck_assert_uint_eq(h->n_out_groups, 2);
    ck_assert_uint_eq(h->out_rank, 12);
    ck_assert_uint_eq(h->q_lora_rank, 16);
    ck_assert_uint_eq(h->rotary_dim, 8);
    ck_assert_double_eq(h->rope_local_theta, 5000);
    ck_assert_double_eq(h->rope_theta, 160000);
    ck_assert_int_eq(h->rope_scaling, LMQ_ROPE_YARN);
    ck_assert_double_eq(h->rope_attention_factor, 1);
    ck_assert_int_eq(h->router, LMQ_ROUTER_ROOT_SOFTPLUS);
    ck_assert_int_eq(h->qk_norm, LMQ_QK_NORM_BARE_QUERIES);
    ck_assert(h->has_turned_values && h->has_sinks && h->router_corrects);
    ck_assert(!h->has_stream_mean);
    ck_assert_double_eq(h->stream_gain, 2);
    ck_assert_uint_eq(h->hidden_dim, 40);
    ck_assert_double_eq(h->glu_limit, 7);
    ck_assert(checkpoint.source.has_rotary_pairs);
    v4.factor = 1.25;
    ck_assert_int_eq(read_as("deepseek4", put_v4, &checkpoint, &err), LMQ_OK);
    ck_assert_double_eq(h->rope_attention_factor, 1.25);
    lmq_notes_free(&checkpoint.notes);
}
END_TEST

static void
assert_other_v4(const char *why)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    ck_assert_msg(read_as("deepseek4", put_v4, &checkpoint, &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert_str_eq(checkpoint.hparams.unsupported, why);
    lmq_notes_free(&checkpoint.notes);
    say_usual();
    say_usual_v4();
}

START_TEST(what_pools_cannot_be_is_refused)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    say_usual();
    say_usual_v4();
    v4.ratio = 16;
    assert_other_v4("a 16 in 'attention.compress_ratios'");
    v4.n_kv_heads = 2;
    assert_other_v4("'attention.head_count_kv' 2");
    v4.n_groups = 3;
    assert_other_v4("'attention.output_group_count' 3 for 4 heads");
    v4.rounds = 0;
    assert_other_v4("'hyper_connection.count' 4 with 'sinkhorn_iterations' 0");
    v4.top = 0;
    assert_other_v4("'attention.indexer.top_k' 0");
    said.limit = 0;
    assert_other_v4("'swiglu_clamp_exp' 0");
    v4.n_ratios = N_LAYERS - 1;
    ck_assert_int_eq(read_as("deepseek4", put_v4, &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "'deepseek4.attention.compress_ratios' is no "
                            "number for each of 4 layers"));
}
END_TEST

static bool
has_text(const char *bytes, size_t n, const char *text)
{
    size_t size = strlen(text);

    for (size_t i = 0; i + size <= n; i++)
        if (memcmp(bytes + i, text, size) == 0)
            return true;
    return false;
}

/* llama.cpp wants it in one layer at least, and lets others share it. */
START_TEST(what_chooses_among_all_is_made_of_zeros)
{
    static const char *const parts[] = {
        "k_norm.weight", "k_norm.bias", "proj.weight", "attn_k.weight",
        "attn_q_b.weight",
    };
    const struct family *family = family_find("glm5-next-even");
    struct family_model *model = family_make(family, 1, 0, 1);
    const struct lmq_export_options options = {.to = "gguf", .type = "f32"};
    char name[64];
    size_t n;

    family_write(model, in_folder("choice"));
    lmq_report_free(export_to(in_folder("choice"), in_folder("choice.gguf"),
                              &options));
    char *bytes = (char *)read_file(in_folder("choice.gguf"), &n);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(name, sizeof(name), "blk.3.indexer.%s", parts[i]);
        ck_assert_msg(has_text(bytes, n, name), "%s", name);
    }
    ck_assert(has_text(bytes, n, "blk.3.indexer_compressor_gate.weight"));
    ck_assert(has_text(bytes, n, "blk.3.indexer_compressor_ape.weight"));
    ck_assert(!has_text(bytes, n, "blk.0.indexer"));
    free(bytes);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("choice.gguf"));
    ck_assert_uint_eq(checkpoint->notes.n, 3);
    ck_assert_str_eq(checkpoint->hparams.unsupported, "");
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        ck_assert_msg(strstr(checkpoint->tensors[i].name, "indexer") == NULL,
                      "%s", checkpoint->tensors[i].name);
    ck_assert_ptr_nonnull(strstr(checkpoint->notes.texts[1],
                                 "it chooses among more tokens"));
    lmq_checkpoint_close(checkpoint);
    family_free(model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        keys_of_gguf_say_a_glm_5_next,
        what_groups_and_streams_cannot_be_is_refused,
        an_end_that_groups_have_is_no_less_than_was_asked_for,
        what_chooses_among_all_is_made_of_zeros,
        keys_of_gguf_say_a_deepseek_v4,
        what_pools_cannot_be_is_refused,
    };

    return RUN_SUITE("gguf_pools", tests);
}
