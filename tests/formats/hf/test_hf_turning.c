/*
 * test_hf_turning.c - families whose config.json says of kinds of layers, or of
 * each layer, how it turns: Cohere Compass, Muse Glimmer,
 * Maple.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Cohere Compass ---- */

#define TYPES                                                                 \
    "'layer_types':['sliding_attention','full_attention',"                    \
    "'sliding_attention','sliding_attention','sliding_attention',"            \
    "'sliding_attention','sliding_attention','full_attention']"
#define KINDS(full, near)                                                     \
    TYPES ",'sliding_window':16,'rope_parameters':{" full near "}"
#define BASE(base) "{'rope_type':'default','rope_theta':" base "}"

START_TEST(kinds_of_layers_turn_or_stand_still)
{
    static const char class[] = "CohereCompassForCausalLM";
    struct model *m = read_small(
        class, KINDS("'full_attention':null,", "'sliding_attention':"
                     "{'rope_theta':5e4,'mrope_section':[24,20,20]}"));

    ck_assert_str_eq(m->h.architecture, "cohere_compass");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x.....x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".x.....x");
    assert_near(m->h.rope_theta, 5e4);
    ck_assert(!(m->h.rope_local_theta > 0));
    assert_near(m->h.logit_scale, 1);
    m = read_small(class, KINDS("'full_attention':" BASE("4e4"),
                                ",'sliding_attention':null"));
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x.xxxxx.");
    assert_near(m->h.rope_theta, 4e4);
    m = read_small(class, KINDS("'full_attention':" BASE("4e4"),
                                ",'sliding_attention':" BASE("3e4")));
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".");
    assert_near(m->h.rope_theta, 4e4);
    assert_near(m->h.rope_local_theta, 3e4);
    m = read_small(class, "'logit_scale':null,'rope_parameters':"
                          "{'full_attention':" BASE("2e4") "}");
    ck_assert_uint_eq(lmq_layer_window(&m->h, 7), 0);
    assert_near(m->h.rope_theta, 2e4);
    assert_near(m->h.logit_scale, 1);
}
END_TEST

START_TEST(kinds_that_nothing_is_said_of_are_refused)
{
    static const char class[] = "CohereCompassForCausalLM";

    assert_unsupported(class, KINDS("'full_attention':" BASE("4e4"), ""),
                       "'rope_parameters' without 'sliding_attention'");
    assert_unsupported(class, KINDS("", "'sliding_attention':" BASE("4e4")),
                       "'rope_parameters' without 'full_attention'");
    assert_unsupported(class, "'sliding_window':16",
                       "a model of this kind without 'rope_parameters'");
    assert_unsupported(class, "'rope_parameters':{'rope_theta':1e4}",
                       "'rope_parameters' without kinds of layers");
    assert_unsupported(class,
                       KINDS("'full_attention':null,", "'sliding_attention':"
                             "{'rope_type':'linear','factor':2.0}"),
                       "rotary scaling of layers with a window");
}
END_TEST

/* ---- Muse Glimmer ---- */

#define FEW                                                                 \
    "'hidden_size':64,'intermediate_size':96,'num_attention_heads':4,"        \
    "'num_hidden_layers':3,'rope_theta':1e4,'vocab_size':60"

START_TEST(muse_glimmer_counts_layers_from_the_last_one)
{
    static const char class[] = "MuseGlimmerForConditionalGeneration";
    struct model *m = read_model(
        "{'architectures':['MuseGlimmerForConditionalGeneration'],"
        "'model_type':'muse_glimmer','text_config':{'hidden_size':6656,"
        "'intermediate_size':19968,'model_type':'muse_glimmer_text',"
        "'num_attention_heads':32,'num_hidden_layers':7,'rope_parameters':"
        "{'rope_theta':500000.0,'rope_type':'default'},"
        "'vocab_size':202048},'vision_config':{}}");

    ck_assert_str_eq(m->h.architecture, "muse-glimmer");
    assert_sizes(&m->h, 7, 6656, 19968, 32, 2, 128);
    assert_layers(&m->h, LMQ_LAYER_FULL, "..x...x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "..x...x");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_BARE_ALL);
    ck_assert(m->h.has_bare_embedding_norm && m->h.has_attn_gate);
    ck_assert(m->source.norms_less_one && m->source.has_whole_last_norm);
    assert_near(m->h.post_norm_eps, 1e-8);
    assert_near(m->h.attn_scale, 3.87 / sqrt(128));
    assert_near(m->h.logit_scale, 0.19611613513818404);
    assert_near(m->h.logit_softcap, 20);
    m = read_model(
        "{'architectures':['MuseGlimmerForConditionalGeneration'],"
        "'text_config':{'hidden_size':64,'intermediate_size':96,"
        "'layer_rope_theta':[0,1e4,0.0],'num_attention_heads':4,"
        "'num_hidden_layers':3,'rope_theta':1e4,'vocab_size':60,"
        "'post_norm_eps':1e-5}}");
    assert_layers(&m->h, LMQ_LAYER_FULL, "..x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x.x");
    ck_assert(!(m->h.post_norm_eps > 0)); /* what norm_eps says, too */
    assert_unsupported(class, "'text_config':{" FEW
                              ",'layer_rope_theta':[0,2e4,2e4]}",
                       "a base of 20000 in 'layer_rope_theta' beside one of "
                       "10000");
    assert_unsupported(class, "'text_config':{" FEW
                              ",'layer_rope_theta':[0,5e3,1e4]}",
                       "a base of 5000 in 'layer_rope_theta' beside one of "
                       "10000");
    assert_wrong(class, "'text_config':{" FEW ",'layer_rope_theta':[0,1e4]}",
                 "names 2 of 3 layers");
    assert_unsupported(class, "'text_config':{" FEW ",'post_norm_eps':0}",
                       "a 'post_norm_eps' of 0");
    assert_unsupported(class, "'text_config':{" FEW ",'qk_scale_factor':0}",
                       "'qk_scale_factor' 0");
    assert_wrong(class, "'text_config':{" FEW
                        ",'layer_rope_theta':[0,null,2e4]}",
                 "'layer_rope_theta' in the configuration is no list");
}
END_TEST

/* ---- GGUF ---- */

/* Four layers with a window of 8, and a list of limits for them, or NULL. */
static const struct lmq_hparams *
read_gguf(const char *name, const double *limits)
{
    static const struct {
        const char *key;
        uint32_t value;
    } counts[] = {
        {".block_count", 4}, {".context_length", 64},
        {".embedding_length", 32}, {".feed_forward_length", 48},
        {".attention.head_count", 2}, {".attention.sliding_window", 8},
    };
    static const struct lmq_gguf_evidence evidence = {
        .vocab_size = 40, .has_ffn_norm = true, .has_qk_norm = true};
    static struct lmq_checkpoint checkpoint;
    struct lmq_gguf_builder builder = {0};
    struct lmq_gguf_meta *meta = NULL;
    const struct lmq_family *family;
    struct lmq_error err = {0};

    lmq_hparams_init(&checkpoint.hparams);
    lmq_gguf_build_begin(&builder);
    builder.prefix = name;
    lmq_gguf_put_text(&builder, "general.architecture", name, strlen(name));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].key, counts[i].value);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    lmq_gguf_put_f32(&builder, ".logit_scale", 0.25);
    if (limits != NULL)
        lmq_gguf_put_array(&builder, ".swiglu_clamp_exp", LMQ_GGUF_F32, 4);
    for (size_t i = 0; limits != NULL && i < 4; i++)
        lmq_gguf_add_f32(&builder, limits[i]);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    ck_assert_int_eq(
        lmq_gguf_read_keys(meta, &evidence, &checkpoint, &family, &err),
        LMQ_OK);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    return &checkpoint.hparams;
}

/* What no key says, and the limit that llama.cpp has if none says another. */
START_TEST(a_gguf_of_muse_glimmer)
{
    const struct lmq_hparams *h = read_gguf("muse-glimmer", NULL);

    ck_assert_str_eq(h->unsupported, "");
    assert_layers(h, LMQ_LAYER_FULL, "...x");
    assert_layers(h, LMQ_LAYER_NOPE, "...x");
    ck_assert_int_eq(h->qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert(h->has_bare_embedding_norm && h->has_attn_gate);
    assert_near(h->post_norm_eps, 1e-8);
    assert_near(h->logit_softcap, 30);
    assert_near(h->logit_scale, 0.25);
}
END_TEST

/* ---- Maple ---- */

START_TEST(maple_limits_gates_in_all_layers)
{
    static const char class[] = "MapleForCausalLM";
    static const double alike[] = {0.5, 0.5, 0.5, 0.5};
    static const double others[] = {0.5, 0.5, 0, 0.5}, none[4] = {0};
    struct model *m = read_small(
        class, TYPES ",'nope_on_global_attention':true,'sliding_window':16,"
                     "'num_experts':4,'num_experts_per_tok':2,"
                     "'moe_intermediate_size':8");

    ck_assert_str_eq(m->h.architecture, "maple");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x.....x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".x.....x");
    ck_assert(m->h.router_renormalises);
    assert_near(m->h.glu_limit, 7);
    assert_unsupported(class, TYPES ",'sliding_window':16",
                       "a model of this kind without "
                       "'nope_on_global_attention'");
    assert_unsupported(class, "'nope_on_global_attention':true",
                       "a model of this kind without 'layer_types'");
    const struct lmq_hparams *h = read_gguf("maple", alike);
    ck_assert_str_eq(h->unsupported, "");
    ck_assert(h->router_renormalises);
    assert_near(h->glu_limit, 0.5);
    ck_assert(!(h->expert_act_limit > 0));
    h = read_gguf("maple", none);
    ck_assert_str_eq(h->unsupported, "");
    ck_assert(!(h->glu_limit > 0));
    ck_assert_str_eq(read_gguf("maple", others)->unsupported,
                     "layers that differ in 'swiglu_clamp_exp'");
}
END_TEST

/* llama.cpp asks for the key, also where nothing is limited. */
START_TEST(a_maple_without_a_limit_says_so)
{
    static const struct lmq_hparams maple = {.architecture = "maple"};
    const struct lmq_family *family = lmq_gguf_family_for(&maple);
    struct lmq_gguf_builder builder = {0};
    struct lmq_gguf_meta *meta = NULL;
    struct lmq_error err = {0};
    struct lmq_hparams h;

    lmq_hparams_init(&h);
    h.n_layers = 3;
    lmq_gguf_build_begin(&builder);
    lmq_gguf_write_keys(&builder, family, &h);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    const struct lmq_gguf_value *value =
        lmq_gguf_find(meta, "maple.swiglu_clamp_exp");
    ck_assert_ptr_nonnull(value);
    ck_assert_uint_eq(value->count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_double_eq(lmq_gguf_item_number(value, i), 0);
    ck_assert_ptr_null(lmq_gguf_find(meta, "maple.swiglu_clamp_shexp"));
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        kinds_of_layers_turn_or_stand_still,
        kinds_that_nothing_is_said_of_are_refused,
        muse_glimmer_counts_layers_from_the_last_one,
        a_gguf_of_muse_glimmer,
        maple_limits_gates_in_all_layers,
        a_maple_without_a_limit_says_so,
    };

    return RUN_SUITE("hf_turning", tests);
}
