/*
 * test_hf_lately.c - config.json of families that came last, and what they need
 * of tensors to be described: Mistral Large 4, SmallThinker, dots3.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "formats/hf/hf_config.h"
#include "formats/model/hparams_check.h"
#include "formats/model/rope_scaling.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/formats/hf_models.h"

/* ---- Mistral Large 4 ---- */

#define ROPE                                                                  \
    "'rope_parameters':{'attention_factor':1.0,'beta_fast':32.0,"             \
    "'beta_slow':1.0,'factor':2048.0,"                                        \
    "'original_max_position_embeddings':512,'rope_theta':10000.0,"            \
    "'rope_type':'yarn'}"

/* What the class has where the configuration says nothing. */
START_TEST(mistral_large4_of_its_own_sizes)
{
    struct model *m = read_model(
        "{'architectures':['MistralLarge4ForConditionalGeneration'],"
        "'model_type':'mistral_large4','text_config':{'model_type':"
        "'mistral_large4_text'," ROPE "},'vision_config':{}}");

    ck_assert_str_eq(m->h.architecture, "mistral_large4");
    assert_sizes(&m->h, 72, 6144, 24576, 64, 64, 128);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_uint_eq(m->h.kv_lora_rank, 512);
    ck_assert_uint_eq(m->h.q_lora_rank, 0);
    ck_assert_uint_eq(m->h.context, 2048);
    ck_assert_uint_eq(m->h.context_end, 2048);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.shared_dim, 6144);
    ck_assert(m->h.has_head_growth && m->h.has_whole_still &&
              m->h.router_renormalises);
    ck_assert(m->source.learns_frequencies && m->source.has_rotary_pairs);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    assert_near(m->h.logit_softcap, 30);
    ck_assert(!(m->h.latent_eps > 0)); /* what norm_eps says, too */
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
    for (size_t i = 0; i < 72; i++)
        ck_assert_uint_eq(lmq_layer_rotary_dim(&m->h, i),
                          i % 4 == 3 ? 0 : 64);
}
END_TEST

static void
assert_large(const char *more, const char *unsupported)
{
    char text[1024];
    struct model m;
    struct lmq_error err = {0};
    bool is_known = false;

    snprintf(text, sizeof(text),
             "{'architectures':['MistralLarge4ForConditionalGeneration'],"
             "'text_config':{'num_hidden_layers':4," ROPE "%s}}", more);
    ck_assert_msg(parse_config(text, &m, &is_known, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert(is_known);
    ck_assert_str_eq(m.h.unsupported, unsupported);
}

START_TEST(mistral_large4_in_other_ways_is_refused)
{
    assert_large(",'kv_source_layers':[0,1,2,3]", "");
    assert_large(",'kv_source_layers':[0,1,0,3]",
                 "layer 2 with the latents of layer 0");
    assert_large(",'q_lora_rank':64", "'q_lora_rank' 64");
    assert_large(",'attention_bias':true", "'attention_bias' true");
    assert_large(",'final_logit_softcapping':0",
                 "'final_logit_softcapping' 0");
}
END_TEST

/* The numbers of one pair. */
START_TEST(learned_frequencies_are_scaled_ones)
{
    const float logs[2] = {0.5F, -1};
    struct lmq_hparams h;

    lmq_hparams_init(&h);
    h.n_layers = h.n_heads = h.n_kv_heads = 1;
    h.head_dim = 4;
    h.rope_theta = 100;
    ck_assert(lmq_hparams_learn_frequencies(&h, logs));
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_FACTORS);
    ck_assert_uint_eq(h.n_rope_factors, 2);
    assert_near(h.rope_short[0], exp(-0.5));
    assert_near(h.rope_short[1], exp(1));
    h.rope_scaling = LMQ_ROPE_YARN;
    h.rope_factor = 8;
    h.rope_context = 4; /* so few that both turn less than once */
    ck_assert(lmq_hparams_learn_frequencies(&h, logs));
    assert_near(h.rope_short[1], 8 * exp(1));
    h.rope_scaling = LMQ_ROPE_DYNAMIC;
    ck_assert(!lmq_hparams_learn_frequencies(&h, logs));
}
END_TEST

/* A checkpoint whose tensor has another name, or another size. */
static void
write_large(const char *name, uint64_t n)
{
    struct family_model *model =
        family_make(family_find("mistral_large4"), 1, 0, 1);
    struct stored frame[8], *alpha = frame + 2;
    struct family family = *model->family;

    memcpy(frame, family.frame, sizeof(frame));
    ck_assert_int_eq(alpha->as, AS_VECTOR);
    alpha->name = name;
    model->oracle.turning.n = n;
    family.frame = frame;
    model->family = &family;
    family_write(model, in_folder("family"));
    family_free(model);
}

START_TEST(without_its_frequencies_it_is_not_run)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err = {0};

    write_large("model.rotary_emb.alpha", 4);
    checkpoint = open_checkpoint(in_folder("family"));
    ck_assert_str_eq(checkpoint->hparams.unsupported, "");
    ck_assert_uint_eq(checkpoint->hparams.n_rope_factors, 4);
    lmq_checkpoint_close(checkpoint);
    write_large("model.rotary_emb.inv_freq", 4);
    checkpoint = open_checkpoint(in_folder("family"));
    ck_assert_str_eq(checkpoint->hparams.unsupported,
                     "a model of this kind without 'rotary_emb.alpha'");
    lmq_checkpoint_close(checkpoint);
    write_large("model.rotary_emb.alpha", 3);
    ck_assert_int_eq(lmq_checkpoint_open(in_folder("family"), NULL,
                                         &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "3 numbers for 4 frequencies"));
}
END_TEST

/* ---- SmallThinker ---- */

START_TEST(smallthinker_21b_a3b)
{
    struct model *m = read_model(
        "{'architectures':['SmallThinkerForCausalLM'],"
        "'bos_token_id':151643,'eos_token_id':[151643,151645],"
        "'head_dim':128,'hidden_size':2560,'initializer_range':0.02,"
        "'max_position_embeddings':16384,'moe_ffn_hidden_size':768,"
        "'moe_num_active_primary_experts':6,'moe_num_primary_experts':64,"
        "'moe_primary_router_apply_softmax':false,"
        "'num_attention_heads':28,'num_hidden_layers':4,"
        "'num_key_value_heads':4,'output_router_logits':false,"
        "'rms_norm_eps':1e-06,'rope_layout':[0,1,1,1],'rope_scaling':null,"
        "'rope_theta':1500000.0,'sliding_window_layout':[0,1,1,1],"
        "'sliding_window_size':4096,'tie_word_embeddings':false,"
        "'use_cache':true,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "smallthinker");
    assert_sizes(&m->h, 4, 2560, 768, 28, 4, 128);
    ck_assert_uint_eq(m->h.n_experts, 64);
    ck_assert_uint_eq(m->h.n_experts_used, 6);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_is_early && m->h.router_renormalises &&
              m->h.is_gated && !m->h.router_corrects);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU);
    assert_near(m->h.rope_theta, 1500000);
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    assert_layers(&m->h, LMQ_LAYER_FULL, "x...");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x...");
}
END_TEST

/* Without lists all layers see everything, and turn; the first files spoke of
 * more. */
START_TEST(smallthinker_in_other_words)
{
    static const char class_name[] = "SmallThinkerForCausalLM";
    struct model *m = read_small(class_name,
                                 "'moe_primary_router_apply_softmax':true");

    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".");
    assert_near(m->h.rope_theta, 1e6);
    assert_unsupported(class_name, "'moe_enable_early_router':false",
                       "'moe_enable_early_router' false");
    assert_unsupported(class_name, "'moe_enable_secondary_experts':true",
                       "'moe_enable_secondary_experts' true");
    assert_unsupported(class_name, "'use_qk_norm':true", "'use_qk_norm' true");
    assert_unsupported(class_name,
                       "'rope_layout':[1,1,1,1,1,1,1,2]", "a 2 in "
                       "'rope_layout'");
}
END_TEST

START_TEST(early_routers_do_not_go_with_everything)
{
    struct lmq_hparams h = read_small("SmallThinkerForCausalLM", "'x':0")->h;
    struct lmq_error err = {0};

    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_OK);
    h.has_expert_norms = true;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "enters its layer"));
    h.has_expert_norms = false;
    h.n_streams = 2;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
}
END_TEST

/* As llama.cpp's converter writes it: no pattern. */
static struct lmq_hparams
smallthinker_of_gguf(uint32_t window, uint32_t gating)
{
    static const struct {
        const char *key;
        uint32_t value;
    } counts[] = {
        {".block_count", 6}, {".context_length", 64},
        {".embedding_length", 64}, {".feed_forward_length", 24},
        {".attention.head_count", 4}, {".attention.head_count_kv", 2},
        {".expert_count", 8}, {".expert_used_count", 2},
        {".expert_feed_forward_length", 24},
    };
    static const struct lmq_gguf_evidence evidence = {.vocab_size = 33};
    static const char name[] = "smallthinker";
    struct lmq_gguf_builder builder = {0};
    struct lmq_checkpoint checkpoint = {0};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;
    struct lmq_error err = {0};

    lmq_hparams_init(&checkpoint.hparams);
    lmq_gguf_build_begin(&builder);
    builder.prefix = name;
    lmq_gguf_put_text(&builder, "general.architecture", name, strlen(name));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].key, counts[i].value);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-6);
    lmq_gguf_put_u32(&builder, ".expert_gating_func", gating);
    if (window > 0)
        lmq_gguf_put_u32(&builder, ".attention.sliding_window", window);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    ck_assert_msg(lmq_gguf_read_keys(meta, &evidence, &checkpoint, &family,
                                     &err) == LMQ_OK,
                  "%s", err.message);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    return checkpoint.hparams;
}

START_TEST(smallthinker_in_gguf)
{
    struct lmq_hparams h = smallthinker_of_gguf(4096, 2);

    ck_assert_str_eq(h.unsupported, "");
    ck_assert_int_eq(h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_int_eq(h.activation, LMQ_ACTIVATION_RELU);
    ck_assert(h.router_is_early && h.router_renormalises);
    assert_layers(&h, LMQ_LAYER_FULL, "x...x.");
    assert_layers(&h, LMQ_LAYER_NOPE, "x...x.");
    h = smallthinker_of_gguf(0, 1);
    ck_assert_int_eq(h.router, LMQ_ROUTER_SOFTMAX);
    assert_layers(&h, LMQ_LAYER_NOPE, ".");
    h = smallthinker_of_gguf(128, 1);
    ck_assert_str_eq(h.unsupported,
                     "a window of 128, in whose place llama.cpp has 4096");
}
END_TEST

/* ---- dots3 ---- */

/* As published: the text's keys stand outside. */
START_TEST(dots3_note_of_its_own_sizes)
{
    struct model *m = read_model(
        "{'architectures':['Dots3NoteForConditionalGeneration'],"
        "'model_type':'dots3_note','apply_mla_qkv_lora_rescale':true,"
        "'num_hidden_layers':6,'vision_config':{},'audio_config':{}}");

    ck_assert_str_eq(m->h.architecture, "dots3note");
    assert_sizes(&m->h, 6, 5120, 13824, 128, 1, 256);
    assert_layers(&m->h, LMQ_LAYER_FULL, "xx...x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.....");
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 0), 128);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 2), 64);
    ck_assert_uint_eq(lmq_layer_head_dim(&m->h, 0), 192);
    ck_assert_uint_eq(lmq_layer_head_dim(&m->h, 2), 256);
    ck_assert_uint_eq(lmq_layer_latents(&m->h, 0), 512);
    ck_assert_uint_eq(lmq_layer_latents(&m->h, 2), 1024);
    ck_assert_uint_eq(lmq_layer_value_dim(&m->h, 0), 128);
    ck_assert_uint_eq(lmq_layer_rotary_dim(&m->h, 0), 64);
    assert_near(m->h.full_attn_scale, 1 / sqrt(192));
    assert_near(m->h.rope_theta, 8e7);
    assert_near(m->h.rope_local_theta, 5e4);
    ck_assert_uint_eq(m->h.sliding_window, 512);
    ck_assert_uint_eq(m->h.context_end, 2048);
    ck_assert_uint_eq(m->h.shared_dim, 1536);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_TURNING);
    ck_assert(m->h.has_head_gate && m->h.router_corrects);
    assert_near((double)m->source.times[LMQ_ROLE_ATTN_Q_A_NORM],
                (double)(float)sqrt(5));
    assert_near((double)m->source.times[LMQ_ROLE_ATTN_KV_A_NORM],
                (double)(float)sqrt(5));
    assert_near((double)m->source.full_latent_times,
                (double)(float)sqrt(10));
}
END_TEST

#define DOTS3                                                                 \
    "'num_attention_heads':8,'num_key_value_heads':8,'kv_lora_rank':24,"      \
    "'qk_nope_head_dim':16,'qk_rope_head_dim':8,'v_head_dim':20,"             \
    "'q_lora_rank':16,'layer_types':['indexed_attention',"                    \
    "'sliding_attention','sliding_attention','sliding_attention',"            \
    "'sliding_attention','sliding_attention','sliding_attention',"            \
    "'sliding_attention']"
#define NEAR_LAYER "{'num_attention_heads':6,'kv_lora_rank':32}"
#define NEAR_LAYERS(first)                                                    \
    "'per_layer_config':{'1':" first ",'2':" NEAR_LAYER ",'3':" NEAR_LAYER    \
    ",'4':" NEAR_LAYER ",'5':" NEAR_LAYER ",'6':" NEAR_LAYER                  \
    ",'7':" NEAR_LAYER "}"

static void
assert_dots3(const char *more, const char *unsupported)
{
    char text[2048];
    struct model m;
    struct lmq_error err = {0};
    bool is_known = false;

    snprintf(text, sizeof(text),
             "{'architectures':['Dots3NoteForCausalLM'],'hidden_size':64,"
             "'num_hidden_layers':8,'vocab_size':100," DOTS3 "%s}",
             more);
    ck_assert_msg(parse_config(text, &m, &is_known, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert_str_eq(m.h.unsupported, unsupported);
}

/* As the library writes it: what is not said of a layer is as in the others. */
START_TEST(dots3_note_by_the_librarys_words)
{
    struct model *m = read_model(
        "{'architectures':['Dots3NoteForConditionalGeneration'],"
        "'text_config':{'num_hidden_layers':8,'hidden_size':64,"
        "'intermediate_size':96,'vocab_size':100,"
        "'rope_parameters':{'indexed_attention':{'rope_theta':1e4},"
        "'sliding_attention':{'rope_theta':500.0,"
        "'partial_rotary_factor':0.25}}," DOTS3 ","
        NEAR_LAYERS(NEAR_LAYER) "}}");

    ck_assert_uint_eq(m->h.kv_lora_rank, 32);
    ck_assert_uint_eq(m->h.full_kv_lora_rank, 24);
    ck_assert_uint_eq(m->h.full_head_dim, 0); /* it is the same */
    ck_assert(!(m->h.full_attn_scale > 0));
    ck_assert_uint_eq(m->h.value_dim, 20);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 0), 8);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 7), 6);
    assert_near(m->h.rope_theta, 1e4);
    assert_near(m->h.rope_local_theta, 500);
}
END_TEST

START_TEST(dots3_note_in_other_ways_is_refused)
{
    assert_dots3("," NEAR_LAYERS(NEAR_LAYER), "");
    assert_dots3("," NEAR_LAYERS("{'kv_lora_rank':32}"),
                 "layers of one kind that differ in 'per_layer_config'");
    assert_dots3(",'swa_qk_rope_head_dim':16",
                 "layers that differ in 'q_lora_rank' or 'qk_rope_head_dim'");
    assert_dots3("," NEAR_LAYERS(NEAR_LAYER) ",'attention_bias':true",
                 "'attention_bias' true");
    assert_dots3("," NEAR_LAYERS(NEAR_LAYER) ",'rope_parameters':{"
                 "'indexed_attention':{'rope_type':'yarn'}}",
                 "rotary scaling 'yarn'");
}
END_TEST

/* Norms of what turns go with latents alone. */
START_TEST(latents_of_two_kinds_have_conditions)
{
    struct lmq_hparams h = read_small("SmallThinkerForCausalLM", "'x':0")->h;
    struct lmq_error err = {0};

    h.qk_norm = LMQ_QK_NORM_TURNING;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "needs latents"));
    h.kv_lora_rank = 4;
    h.rotary_dim = 8;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_OK);
    h.full_head_dim = 8;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "nothing still"));
    h.full_head_dim = 10;
    h.layer_heads[1] = 3;
    h.n_kv_heads = 1;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_OK);
    h.full_kv_lora_rank = LMQ_MAX_WIDTH;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
    h.full_kv_lora_rank = 0;
    h.layer_kv_heads[1] = 1;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        mistral_large4_of_its_own_sizes,
        mistral_large4_in_other_ways_is_refused,
        learned_frequencies_are_scaled_ones,
        without_its_frequencies_it_is_not_run,
        smallthinker_21b_a3b,
        smallthinker_in_other_words,
        early_routers_do_not_go_with_everything,
        smallthinker_in_gguf,
        dots3_note_of_its_own_sizes,
        dots3_note_by_the_librarys_words,
        dots3_note_in_other_ways_is_refused,
        latents_of_two_kinds_have_conditions,
    };

    return RUN_SUITE("hf_lately", tests);
}
