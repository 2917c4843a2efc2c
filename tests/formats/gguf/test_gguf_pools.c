/*
 * test_gguf_pools.c - GLM 5 next in GGUF: sparse attention that chooses groups,
 * hyper-connections, limits of all feed-forwards; and what is made of nothing,
 * since llama.cpp asks for it.
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
read_keys(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    static const char name[] = "glm5-next";
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
    put_keys(&builder);
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
    };

    return RUN_SUITE("gguf_pools", tests);
}
