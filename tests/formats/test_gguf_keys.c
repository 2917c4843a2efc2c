/*
 * test_gguf_keys.c - what keys of single architectures mean, beside what every
 * exported family shows (test_export_gguf): layers for more tokens, steps of
 * experts, patterns of windows, constants of llama.cpp's own.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"

/* ---- Helpers ---- */

static struct lmq_gguf_builder builder;
static const char *prefix;
static uint32_t n_dense; /* layers without a router */

static const char *
key(const char *name)
{
    static char text[128];

    snprintf(text, sizeof(text), "%s.%s", prefix, name);
    return text;
}

static void
put_count(const char *name, uint32_t value)
{
    lmq_gguf_put_u32(&builder, key(name), value);
}

static uint32_t feed_forward = 96; /* 0: it is not said */

static void
begin_layers(const char *architecture, uint32_t n)
{
    prefix = architecture;
    builder = (struct lmq_gguf_builder){0};
    lmq_gguf_build_begin(&builder);
    lmq_gguf_put_text(&builder, "general.architecture", architecture,
                      strlen(architecture));
    put_count("block_count", n);
    put_count("context_length", 4096);
    put_count("embedding_length", 64);
}

static void
begin(const char *architecture)
{
    begin_layers(architecture, 9);
    if (feed_forward > 0)
        put_count("feed_forward_length", feed_forward);
    put_count("attention.head_count", 4);
    put_count("attention.head_count_kv", 2);
    lmq_gguf_put_f32(&builder, key("attention.layer_norm_rms_epsilon"), 1e-5);
}

static enum lmq_status
parse(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    struct lmq_gguf_evidence evidence = {.vocab_size = 33,
                                         .has_qk_norm = true};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;

    evidence.has_router[n_dense] = true;
    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
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

/* What is understood whole: no remark, no refusal. */
static const struct lmq_hparams *
read(struct lmq_checkpoint *checkpoint)
{
    struct lmq_error err = {0};

    ck_assert_msg(parse(checkpoint, &err) == LMQ_OK, "%s", err.message);
    ck_assert_uint_eq(checkpoint->notes.n, 0);
    ck_assert_str_eq(checkpoint->hparams.unsupported, "");
    return &checkpoint->hparams;
}

static void
assert_marked(const struct lmq_hparams *h, enum lmq_layer_kind kind,
              const char *pattern)
{
    ck_assert_uint_eq(h->n_layers, strlen(pattern));
    for (uint32_t i = 0; i < h->n_layers; i++)
        ck_assert_msg(lmq_layer_is(h, i, kind) == (pattern[i] == 'x'),
                      "%s: layer %u", prefix, i);
}

/* ---- Architectures ---- */

START_TEST(layers_for_further_tokens_are_none)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    begin("glm4moe");
    put_count("nextn_predict_layers", 1);
    put_count("expert_count", 4);
    put_count("expert_used_count", 2);
    put_count("expert_feed_forward_length", 48);
    put_count("expert_shared_count", 1);
    put_count("leading_dense_block_count", 2);
    const struct lmq_hparams *h = read(&checkpoint);
    assert_marked(h, LMQ_LAYER_DENSE, "xx......");
    ck_assert_uint_eq(checkpoint.source.n_further_layers, 1);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
    ck_assert(!h->router_renormalises);
    ck_assert_uint_eq(h->shared_dim, 48);
    begin("glm4moe");
    put_count("nextn_predict_layers", 9);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "9 of 9 layers"));
}
END_TEST

START_TEST(weights_of_experts_sum_to_one_where_that_is_said_or_always_so)
{
    static struct lmq_checkpoint checkpoint;
    static const struct {
        const char *name;
        bool is_said, sums_to_one;
    } cases[] = {{"afmoe", false, false},     {"afmoe", true, true},
                 {"bailingmoe", false, false}, {"dots1", false, false},
                 {"minimax-m2", false, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(cases[i].name);
        put_count("expert_count", 4);
        put_count("expert_used_count", 2);
        put_count("expert_feed_forward_length", 48);
        if (cases[i].is_said)
            lmq_gguf_put_bool(&builder, key("expert_weights_norm"), true);
        ck_assert_msg(read(&checkpoint)->router_renormalises ==
                          cases[i].sums_to_one,
                      "%s", cases[i].name);
    }
}
END_TEST

static void
begin_llama4(uint32_t n_experts)
{
    begin("llama4");
    put_count("expert_count", n_experts);
    put_count("expert_used_count", 1);
    put_count("expert_feed_forward_length", 48);
    put_count("interleave_moe_layer_step", 2);
}

START_TEST(llama_4_has_chunks_unless_it_says_so)
{
    static struct lmq_checkpoint checkpoint;

    begin_llama4(16);
    const struct lmq_hparams *h = read(&checkpoint);
    assert_marked(h, LMQ_LAYER_DENSE, "x.x.x.x.x");
    assert_marked(h, LMQ_LAYER_NOPE, "...x...x.");
    assert_marked(h, LMQ_LAYER_FULL, "...x...x.");
    ck_assert_uint_eq(h->attention_chunk, 8192);
    ck_assert_int_eq(h->qk_norm, LMQ_QK_NORM_BARE);
    ck_assert_uint_eq(h->shared_dim, 48);
    begin_llama4(128);
    h = read(&checkpoint);
    ck_assert_int_eq(h->qk_norm, LMQ_QK_NORM_NONE);
    begin_llama4(16);
    put_count("attention.sliding_window", 0);
    h = read(&checkpoint);
    ck_assert_uint_eq(h->attention_chunk, 0);
    ck_assert(!(h->score_growth > 0));
    assert_marked(h, LMQ_LAYER_NOPE, ".........");
}
END_TEST

START_TEST(sections_are_alike_for_text)
{
    static struct lmq_checkpoint checkpoint;
    static const char *const names[][2] = {
        {"qwen2vl", "qwen2"}, {"qwen3vl", "qwen3"}, {"qwen3vlmoe", "qwen3moe"}};

    for (size_t i = 0; i < 3; i++) {
        begin(names[i][0]);
        put_count("rope.dimension_sections", 3);
        put_count("n_deepstack_layers", 3);
        ck_assert_str_eq(read(&checkpoint)->architecture, names[i][1]);
    }
}
END_TEST

START_TEST(scores_of_ministral_grow)
{
    static struct lmq_checkpoint checkpoint;

    begin("mistral3");
    lmq_gguf_put_f32(&builder, key("attention.temperature_scale"), 0.25);
    lmq_gguf_put_text(&builder, key("rope.scaling.type"), "yarn", 4);
    lmq_gguf_put_f32(&builder, key("rope.scaling.factor"), 16);
    put_count("rope.scaling.original_context_length", 512);
    lmq_gguf_put_f32(&builder, key("rope.scaling.yarn_log_multiplier"), 1);
    const struct lmq_hparams *h = read(&checkpoint);
    ck_assert(fabs(h->score_growth - 0.25) < 1e-9);
    ck_assert_uint_eq(h->score_growth_period, 512);
    ck_assert(fabs(h->rope_attention_factor - 1) < 1e-9);
}
END_TEST

static void
begin_latent(const char *name, const char *scaling)
{
    begin(name);
    put_count("attention.kv_lora_rank", 16);
    lmq_gguf_put_text(&builder, key("rope.scaling.type"), scaling,
                      strlen(scaling));
    lmq_gguf_put_f32(&builder, key("rope.scaling.factor"), 4);
}

/* llama.cpp's scores grow, by what no checkpoint means. */
START_TEST(scaling_beside_latent_attention_is_told_or_refused)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};
    const char *refused = checkpoint.hparams.unsupported;

    begin_latent("deepseek2", "linear");
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_msg(strstr(refused, "linear scaling beside") != NULL, "%s",
                  refused);
    begin_latent("minicpm3", "linear");
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_msg(strstr(refused, "beside latent") == NULL, "%s", refused);
    begin_latent("deepseek2", "yarn");
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_msg(strstr(refused, "YaRN without yarn_log") != NULL, "%s",
                  refused);
    begin_latent("deepseek2", "yarn");
    lmq_gguf_put_f32(&builder, key("rope.scaling.yarn_log_multiplier"), 0.1f);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_msg(strstr(refused, "beside latent") == NULL, "%s", refused);
}
END_TEST

START_TEST(gpt_oss_has_what_it_does_not_say)
{
    static struct lmq_checkpoint checkpoint;

    begin("gpt-oss");
    put_count("expert_count", 4);
    put_count("expert_used_count", 2);
    put_count("expert_feed_forward_length", 48);
    put_count("attention.sliding_window", 16);
    lmq_gguf_put_text(&builder, key("rope.scaling.type"), "yarn", 4);
    lmq_gguf_put_f32(&builder, key("rope.scaling.factor"), 32);
    const struct lmq_hparams *h = read(&checkpoint);
    assert_marked(h, LMQ_LAYER_FULL, ".x.x.x.x.");
    ck_assert(h->has_sinks && h->rope_ramp_exact);
    ck_assert_double_eq(h->glu_limit, 7);
    ck_assert_double_eq(h->glu_offset, 1);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SOFTMAX_CHOSEN);
}
END_TEST

static void
begin_delta(uint32_t width)
{
    begin("qwen35");
    put_count("ssm.conv_kernel", 4);
    put_count("ssm.group_count", 2);
    put_count("ssm.time_step_rank", 6);
    put_count("ssm.state_size", 16);
    put_count("ssm.inner_size", width);
}

static void
put_layers(const char *pattern, enum lmq_gguf_type type)
{
    lmq_gguf_put_array(&builder, key("attention.recurrent_layers"), type,
                       strlen(pattern));
    for (; *pattern != '\0'; pattern++)
        lmq_gguf_add_bool(&builder, *pattern == 'x');
}

START_TEST(a_list_says_which_layers_have_the_delta_rule)
{
    static struct lmq_checkpoint checkpoint;

    begin_delta(96);
    const struct lmq_hparams *h = read(&checkpoint);
    assert_marked(h, LMQ_LAYER_DELTA, "xxx.xxx.x");
    ck_assert(h->has_attn_gate);
    ck_assert_uint_eq(h->delta_value_dim, 16);
    ck_assert(checkpoint.source.has_tiled_values);
    ck_assert(checkpoint.source.has_decay_itself);
    begin_delta(96);
    put_count("full_attention_interval", 2);
    assert_marked(read(&checkpoint), LMQ_LAYER_DELTA, "x.x.x.x.x");
    /* A longer list counts layers for further tokens. */
    begin_delta(96);
    put_count("full_attention_interval", 2);
    put_count("nextn_predict_layers", 1);
    put_layers("xx...x...", LMQ_GGUF_BOOL);
    assert_marked(read(&checkpoint), LMQ_LAYER_DELTA, "xx...x..");
}
END_TEST

START_TEST(a_delta_rule_that_is_none_is_refused)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    begin_delta(97);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "97 values"));
    begin_delta(96);
    put_count("full_attention_interval", 0);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "interval"));
    for (int i = 0; i < 2; i++) {
        begin_delta(96);
        put_layers(i == 0 ? "xx" : "xxxxxxxxx",
                   i == 0 ? LMQ_GGUF_BOOL : LMQ_GGUF_U8);
        ck_assert_int_eq(parse(&checkpoint, &err), LMQ_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(err.message, "no boolean for each"));
    }
    begin_delta(192);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_ptr_nonnull(strstr(checkpoint.hparams.unsupported,
                                 "32 values a head and 16 keys"));
}
END_TEST

/* ---- State spaces and short convolutions ---- */

static void
put_numbers(const char *name, const uint32_t *numbers, size_t n)
{
    lmq_gguf_put_array(&builder, key(name), LMQ_GGUF_U32, n);
    for (size_t i = 0; i < n; i++)
        lmq_gguf_add_u32(&builder, numbers[i]);
}

static void
begin_states_of(const char *architecture, const uint32_t *heads,
                const uint32_t *kv, const uint32_t *feed)
{
    begin_layers(architecture, 4);
    if (heads != NULL)
        put_numbers("attention.head_count", heads, 4);
    else
        put_count("attention.head_count", 4);
    put_numbers("attention.head_count_kv", kv, 4);
    if (feed != NULL)
        put_numbers("feed_forward_length", feed, 4);
    else
        put_count("feed_forward_length", 96);
    put_count("ssm.conv_kernel", 4);
    put_count("ssm.group_count", 2);
    put_count("ssm.time_step_rank", 8);
    put_count("ssm.state_size", 16);
    put_count("ssm.inner_size", 128);
}

static void
begin_states(const char *architecture, const uint32_t *kv,
             const uint32_t *feed)
{
    begin_states_of(architecture, NULL, kv, feed);
}

static void
put_epsilon(const char *name)
{
    lmq_gguf_put_f32(&builder, key(name), 1e-3);
}

/* A file of "cohere2moe" with a period of windows, or none. */
START_TEST(the_first_of_a_period_may_see_everything)
{
    static struct lmq_checkpoint checkpoint;

    for (int says = 0; says < 2; says++) {
        begin("cohere2moe");
        put_count("attention.sliding_window", 8);
        put_count("attention.key_length", 16);
        lmq_gguf_put_f32(&builder, key("logit_scale"), 1);
        if (says)
            put_count("attention.sliding_window_pattern", 3);
        assert_marked(read(&checkpoint), LMQ_LAYER_FULL,
                      says ? "x..x..x.." : "x...x...x");
    }
}
END_TEST

/* Which newer versions of llama.cpp have no word for. */
START_TEST(a_granite_with_experts_may_stand_still)
{
    static const uint32_t used[] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    static struct lmq_checkpoint checkpoint;

    begin("granitemoe");
    put_count("expert_count", 4);
    lmq_gguf_put_array(&builder, key("expert_used_count"), LMQ_GGUF_U32, 9);
    for (size_t i = 0; i < 9; i++)
        lmq_gguf_add_u32(&builder, used[i]);
    lmq_gguf_put_bool(&builder, key("rope.scaling.finetuned"), false);
    const struct lmq_hparams *h = read(&checkpoint);
    ck_assert_uint_eq(h->n_experts_used, 2);
    assert_marked(h, LMQ_LAYER_NOPE, "xxxxxxxxx");
}
END_TEST

START_TEST(layers_without_keys_are_recurrent)
{
    static const uint32_t kv[] = {0, 2, 0, 0};
    static struct lmq_checkpoint checkpoint;

    for (int stands = 0; stands < 2; stands++) {
        begin_states("granitehybrid", kv, NULL);
        put_epsilon("attention.layer_norm_rms_epsilon");
        if (stands)
            lmq_gguf_put_bool(&builder, key("rope.scaling.finetuned"), false);
        const struct lmq_hparams *h = read(&checkpoint);
        ck_assert_int_eq(h->recurrence, LMQ_RECURRENCE_STATE_SPACE);
        ck_assert_uint_eq(h->n_kv_heads, 2);
        ck_assert_uint_eq(h->delta_value_dim, 16);
        assert_marked(h, LMQ_LAYER_DELTA, "x.xx");
        ck_assert_int_eq(lmq_layer_is(h, 1, LMQ_LAYER_NOPE), stands);
        ck_assert(checkpoint.source.has_decay_itself);
    }
    begin("lfm2");
    put_count("shortconv.l_cache", 3);
    ck_assert_int_eq(read(&checkpoint)->recurrence,
                     LMQ_RECURRENCE_CONVOLUTION);
    ck_assert_uint_eq(checkpoint.hparams.conv_width, 3);
    ck_assert(!checkpoint.source.has_decay_itself);
}
END_TEST

/* The epsilon has either name. */
START_TEST(layers_of_one_part_say_which)
{
    static const char *const names[] = {"attention.layer_norm_epsilon",
                                        "attention.layer_norm_rms_epsilon"};
    static const uint32_t kv[] = {0, 0, 2, 0}, feed[] = {0, 96, 0, 96};
    static struct lmq_checkpoint checkpoint;

    for (size_t i = 0; i < 2; i++) {
        begin_states("nemotron_h", kv, feed);
        put_epsilon(names[i]);
        const struct lmq_hparams *h = read(&checkpoint);
        ck_assert_double_eq_tol(h->norm_eps, 1e-3, 1e-9);
        assert_marked(h, LMQ_LAYER_DELTA, "x...");
        assert_marked(h, LMQ_LAYER_BARE, "x.x.");
        assert_marked(h, LMQ_LAYER_FEED, ".x.x");
    }
}
END_TEST

/* As llama.cpp's converter says it, which counts no heads. */
START_TEST(a_selective_state_space_has_a_head_for_each_channel)
{
    for (int has_norms = 0; has_norms < 2; has_norms++) {
        static struct lmq_checkpoint checkpoint;
        begin_layers("mamba", 9);
        put_count("feed_forward_length", 0);
        put_count("attention.head_count", 0);
        put_epsilon("attention.layer_norm_rms_epsilon");
        put_count("ssm.conv_kernel", 3);
        put_count("ssm.inner_size", 128);
        put_count("ssm.state_size", 16);
        put_count("ssm.time_step_rank", 4);
        lmq_gguf_put_bool(&builder, key("ssm.dt_b_c_rms"), has_norms == 1);
        const struct lmq_hparams *h = read(&checkpoint);
        ck_assert_int_eq(h->recurrence, LMQ_RECURRENCE_SELECTIVE);
        assert_marked(h, LMQ_LAYER_DELTA, "xxxxxxxxx");
        assert_marked(h, LMQ_LAYER_BARE, "xxxxxxxxx");
        ck_assert_uint_eq(h->n_delta_value_heads, 128);
        ck_assert_uint_eq(h->delta_value_dim, 1);
        ck_assert_uint_eq(h->n_delta_key_heads, 1);
        ck_assert_uint_eq(h->delta_key_dim, 16);
        ck_assert_uint_eq(h->step_rank, 4);
        ck_assert(h->has_bare_states);
        ck_assert(h->has_step_norms == (has_norms == 1));
        ck_assert(checkpoint.source.has_decay_itself);
    }
}
END_TEST

/* As llama.cpp's converter says it, with a layer for more tokens. */
static const struct lmq_hparams *
read_mimo2(float scale, uint32_t item_type)
{
    static const uint32_t heads[] = {1, 2, 2, 1, 2}, near[] = {0, 1, 1, 0, 1};
    static struct lmq_checkpoint checkpoint;

    begin_layers("mimo2", 5);
    put_count("nextn_predict_layers", 1);
    put_count("feed_forward_length", 96);
    put_count("attention.head_count", 4);
    put_numbers("attention.head_count_kv", heads, 5);
    put_count("attention.key_length", 24);
    put_count("attention.value_length", 16);
    lmq_gguf_put_f32(&builder, key("attention.value_scale"), scale);
    put_count("attention.sliding_window", 8);
    lmq_gguf_put_array(&builder, key("attention.sliding_window_pattern"),
                       item_type, 5);
    for (size_t i = 0; i < 5; i++)
        lmq_gguf_add_u32(&builder, near[i]);
    put_epsilon("attention.layer_norm_rms_epsilon");
    return read(&checkpoint);
}

START_TEST(layers_with_a_window_have_sinks_and_other_heads)
{
    const struct lmq_hparams *h = read_mimo2(0.5f, LMQ_GGUF_I32);

    assert_marked(h, LMQ_LAYER_FULL, "x..x");
    assert_marked(h, LMQ_LAYER_SINKLESS, "x..x");
    ck_assert(h->has_sinks && h->n_kv_heads == 2 && h->full_kv_heads == 1);
    ck_assert_double_eq(h->value_scale / h->rope_local_theta, 0.5 / 10000);
    h = read_mimo2(0, LMQ_GGUF_U32);
    assert_marked(h, LMQ_LAYER_FULL, "x..x");
    ck_assert_double_eq(h->value_scale, 1);
}
END_TEST

START_TEST(layers_that_contradict_themselves_are_refused)
{
    static const uint32_t kv[] = {0, 0, 2, 0}, other[] = {3, 0, 2, 0};
    static const uint32_t feed[] = {0, 96, 0, 96}, both[] = {0, 96, 96, 0};
    static const uint32_t far[] = {0, 96, 0, UINT32_MAX};
    static const uint32_t heads[] = {0, 0, 4, 0};
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    begin_states("nemotron_h", other, feed);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(checkpoint.hparams.unsupported,
                     "layers of one kind that differ in "
                     "'attention.head_count_kv'");
    /* Nobody writes these; what layers have in common is the largest. */
    begin_states_of("nemotron_h", heads, kv, feed);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(checkpoint.hparams.unsupported,
                     "layers that differ in 'attention.head_count'");
    ck_assert_uint_eq(checkpoint.hparams.n_heads, 4);
    begin_states("nemotron_h", kv, both);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(checkpoint.hparams.unsupported,
                     "layer 2 with attention and a feed-forward");
    begin_states("nemotron_h", kv, far);
    ck_assert_int_eq(parse(&checkpoint, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "of layer 3 is"));
}
END_TEST

START_TEST(sparse_attention_is_described)
{
    static const char *const names[] = {"deepseek32", "glm-dsa"};
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    for (size_t i = 0; i < 2; i++)
        for (uint32_t top = 0; top <= 1024; top += 1024) {
            begin(names[i]);
            put_count("attention.kv_lora_rank", 16);
            put_count("attention.q_lora_rank", 16);
            put_count("attention.key_length_mla", 24);
            put_count("attention.value_length_mla", 16);
            put_count("attention.indexer.head_count", 2);
            put_count("attention.indexer.key_length", 8);
            put_count("attention.indexer.top_k", top);
            if (top == 0) {
                ck_assert_int_eq(parse(&checkpoint, &err), LMQ_ERR_FORMAT);
                ck_assert_ptr_nonnull(strstr(err.message, "indexer.top_k"));
                continue;
            }
            const struct lmq_hparams *h = read(&checkpoint);
            ck_assert(h->context == 4096 && h->index_topk == 1024);
            ck_assert_uint_eq(h->n_index_heads * h->index_dim, 2 * 8);
            ck_assert(lmq_layer_is(h, 0, LMQ_LAYER_INDEX));
            ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
        }
}
END_TEST

/* llama.cpp caps Gemma 4's logits by 30 unless the file says otherwise. */
START_TEST(a_cap_that_is_not_said_is_the_usual_one)
{
    static struct lmq_checkpoint checkpoint;

    for (int is_said = 0; is_said < 3; is_said++) {
        begin("gemma4");
        if (is_said > 0)
            lmq_gguf_put_f32(&builder, key("final_logit_softcapping"),
                             is_said - 1);
        ck_assert_int_eq(parse(&checkpoint, NULL), LMQ_OK);
        ck_assert_double_eq(checkpoint.hparams.logit_softcap,
                            is_said == 0 ? 30 : is_said - 1);
    }
}
END_TEST

/* Models of experts alone may leave the other width out. */
START_TEST(experts_alone_have_their_width)
{
    static struct lmq_checkpoint checkpoint;

    feed_forward = 0;
    begin("qwen3moe");
    put_count("expert_count", 4);
    put_count("expert_used_count", 2);
    put_count("expert_feed_forward_length", 24);
    ck_assert_uint_eq(read(&checkpoint)->hidden_dim, 24);
}
END_TEST

/* Of the first layers, without a key for it. */
START_TEST(tensors_say_which_layers_are_dense)
{
    static struct lmq_checkpoint checkpoint;

    n_dense = 2;
    begin("hy_v3");
    put_count("expert_count", 4);
    put_count("expert_used_count", 2);
    put_count("expert_feed_forward_length", 24);
    put_count("expert_shared_feed_forward_length", 48);
    const struct lmq_hparams *h = read(&checkpoint);
    assert_marked(h, LMQ_LAYER_DENSE, "xx.......");
    ck_assert_uint_eq(h->shared_dim, 48);
    n_dense = 0;
}
END_TEST

/* The first files do not say it, later ones as a divisor. */
START_TEST(a_minicpm_is_scaled)
{
    static struct lmq_checkpoint checkpoint;

    begin("minicpm");
    const struct lmq_hparams *h = read(&checkpoint);
    ck_assert_double_eq_tol(h->embedding_scale, 12, 1e-9);
    ck_assert_double_eq_tol(h->residual_scale, 1.4 / 3, 1e-9);
    ck_assert_double_eq_tol(h->logit_scale, 4, 1e-9);
    begin("minicpm");
    lmq_gguf_put_f32(&builder, key("embedding_scale"), 6);
    lmq_gguf_put_f32(&builder, key("residual_scale"), 0.5);
    lmq_gguf_put_f32(&builder, key("logit_scale"), 8);
    h = read(&checkpoint);
    ck_assert_double_eq_tol(h->embedding_scale, 6, 1e-9);
    ck_assert_double_eq_tol(h->residual_scale, 0.5, 1e-9);
    ck_assert_double_eq_tol(h->logit_scale, 0.125, 1e-9);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        layers_for_further_tokens_are_none,
        weights_of_experts_sum_to_one_where_that_is_said_or_always_so,
        llama_4_has_chunks_unless_it_says_so,
        sections_are_alike_for_text,
        scores_of_ministral_grow,
        scaling_beside_latent_attention_is_told_or_refused,
        gpt_oss_has_what_it_does_not_say,
        a_list_says_which_layers_have_the_delta_rule,
        a_delta_rule_that_is_none_is_refused,
        the_first_of_a_period_may_see_everything,
        a_granite_with_experts_may_stand_still,
        layers_without_keys_are_recurrent,
        layers_of_one_part_say_which,
        a_selective_state_space_has_a_head_for_each_channel,
        layers_with_a_window_have_sinks_and_other_heads,
        layers_that_contradict_themselves_are_refused,
        sparse_attention_is_described,
        a_cap_that_is_not_said_is_the_usual_one,
        experts_alone_have_their_width,
        tensors_say_which_layers_are_dense,
        a_minicpm_is_scaled,
    };

    return RUN_SUITE("gguf_keys", tests);
}
