/*
 * test_hf_turning.c - families whose config.json says of kinds of layers, or of
 * each layer, how it turns: Cohere Compass, Muse Glimmer.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Cohere Compass ---- */

#define KINDS(full, near)                                                     \
    "'layer_types':['sliding_attention','full_attention',"                    \
    "'sliding_attention','sliding_attention','sliding_attention',"            \
    "'sliding_attention','sliding_attention','full_attention'],"              \
    "'sliding_window':16,'rope_parameters':{" full near "}"
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
    assert_unsupported(class, "'text_config':{" FEW ",'post_norm_eps':0}",
                       "a 'post_norm_eps' of 0");
    assert_unsupported(class, "'text_config':{" FEW ",'qk_scale_factor':0}",
                       "'qk_scale_factor' 0");
    assert_wrong(class, "'text_config':{" FEW
                        ",'layer_rope_theta':[0,null,2e4]}",
                 "'layer_rope_theta' in the configuration is no list");
}
END_TEST

/* What no key says, and the limit that llama.cpp has if none says another. */
START_TEST(a_gguf_of_muse_glimmer)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_gguf_builder builder = {0};
    struct lmq_gguf_evidence evidence = {.vocab_size = 40,
                                         .has_ffn_norm = true,
                                         .has_qk_norm = true};
    struct lmq_gguf_meta *meta;
    const struct lmq_family *family;
    struct lmq_error err = {0};
    const struct lmq_hparams *h = &checkpoint.hparams;

    lmq_hparams_init(&checkpoint.hparams);
    lmq_gguf_build_begin(&builder);
    builder.prefix = "muse-glimmer";
    lmq_gguf_put_text(&builder, "general.architecture", "muse-glimmer", 12);
    lmq_gguf_put_u32(&builder, ".block_count", 4);
    lmq_gguf_put_u32(&builder, ".context_length", 64);
    lmq_gguf_put_u32(&builder, ".embedding_length", 32);
    lmq_gguf_put_u32(&builder, ".feed_forward_length", 48);
    lmq_gguf_put_u32(&builder, ".attention.head_count", 2);
    lmq_gguf_put_u32(&builder, ".attention.sliding_window", 8);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    lmq_gguf_put_f32(&builder, ".logit_scale", 0.25);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    ck_assert_int_eq(
        lmq_gguf_read_keys(meta, &evidence, &checkpoint, &family, &err),
        LMQ_OK);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
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

int
main(void)
{
    const TTest *const tests[] = {
        kinds_of_layers_turn_or_stand_still,
        kinds_that_nothing_is_said_of_are_refused,
        muse_glimmer_counts_layers_from_the_last_one,
        a_gguf_of_muse_glimmer,
    };

    return RUN_SUITE("hf_turning", tests);
}
