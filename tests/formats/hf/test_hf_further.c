/*
 * test_hf_further.c - families that differ from a Llama in one thing, by their
 * config.json and by the keys of a GGUF: BitNet, A.X K1, openPangu Embedded,
 * Maincoder, Spark, PLM, Nanbeige, the text of Apertus 1.5, the first Qwen,
 * Orion, XVERSE.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "formats/model/hparams_check.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/formats/hf_models.h"

/* ---- BitNet ---- */

START_TEST(bitnet_2b_4t)
{
    struct model *m = read_model(
        "{'architectures':['BitNetForCausalLM'],'auto_map':{},"
        "'bos_token_id':128000,'eos_token_id':128001,'hidden_act':'relu2',"
        "'hidden_size':2560,'initializer_range':0.02,"
        "'intermediate_size':6912,'max_position_embeddings':4096,"
        "'model_type':'bitnet','rms_norm_eps':1e-05,"
        "'num_attention_heads':20,'num_hidden_layers':30,"
        "'num_key_value_heads':5,'rope_theta':500000.0,"
        "'tie_word_embeddings':true,'torch_dtype':'bfloat16',"
        "'use_cache':true,'vocab_size':128256,'quantization_config':{"
        "'quant_method':'bitnet','linear_class':'autobitlinear',"
        "'quantization_mode':'offline'}}");

    ck_assert_str_eq(m->h.architecture, "bitnet");
    assert_sizes(&m->h, 30, 2560, 6912, 20, 5, 128);
    ck_assert_uint_eq(m->h.context, 4096);
    assert_near(m->h.rope_theta, 500000);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU2);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_RMS);
    ck_assert(m->h.has_sub_norms && m->h.is_gated);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("BitNetForCausalLM", "'hidden_act':'silu'");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    assert_near(m->h.rope_theta, 500000);
}
END_TEST

START_TEST(bitnet_b1_58_3b_of_1bitllm)
{
    struct model *m = read_model(
        "{'architectures':['BitnetForCausalLM'],'attention_bias':false,"
        "'bos_token_id':1,'eos_token_id':2,'hidden_act':'silu',"
        "'hidden_size':3200,'input_bits':8,'intermediate_size':8640,"
        "'max_position_embeddings':2048,'model_type':'llama',"
        "'num_attention_heads':32,'num_hidden_layers':26,"
        "'num_key_value_heads':32,'pad_token_id':32000,"
        "'pretraining_tp':1,'rms_norm_eps':1e-05,'rope_scaling':null,"
        "'rope_theta':10000.0,'tie_word_embeddings':true,"
        "'torch_dtype':'float16','vocab_size':32002,'weight_bits':1}");

    ck_assert_str_eq(m->h.architecture, "bitnet");
    assert_sizes(&m->h, 26, 3200, 8640, 32, 32, 100);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert(m->h.has_sub_norms);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
}
END_TEST

struct count {
    const char *key;
    uint32_t value;
};

static void
begin_keys(struct lmq_gguf_builder *builder, const char *name,
           const struct count *counts, size_t n)
{
    lmq_gguf_build_begin(builder);
    builder->prefix = name;
    lmq_gguf_put_text(builder, "general.architecture", name, strlen(name));
    for (size_t i = 0; i < n; i++)
        lmq_gguf_put_u32(builder, counts[i].key, counts[i].value);
    lmq_gguf_put_f32(builder, ".attention.layer_norm_rms_epsilon", 1e-5);
}

static enum lmq_status
end_keys(struct lmq_gguf_builder *builder, struct lmq_checkpoint *checkpoint,
         struct lmq_error *err)
{
    static const struct lmq_gguf_evidence evidence = {.vocab_size = 33};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;

    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_end(builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder->out.bytes, builder->out.n,
                                        &meta, NULL, err),
                     LMQ_OK);
    enum lmq_status status =
        lmq_gguf_read_keys(meta, &evidence, checkpoint, &family, err);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(builder);
    return status;
}

#define COUNTS(feed)                                                          \
    {".block_count", 4}, {".context_length", 4096},                           \
    {".embedding_length", 64}, {".feed_forward_length", feed},                \
    {".attention.head_count", 4}

/* With this word for its activation, or without one. */
static enum lmq_status
read_keys(const char *name, uint32_t feed, const char *activation,
          struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct count counts[] = {COUNTS(feed),
                                   {".attention.head_count_kv", 2}};
    struct lmq_gguf_builder builder = {0};

    begin_keys(&builder, name, counts, sizeof(counts) / sizeof(counts[0]));
    if (activation != NULL)
        lmq_gguf_put_text(&builder, ".hidden_activation", activation,
                          strlen(activation));
    return end_keys(&builder, checkpoint, err);
}

START_TEST(a_gguf_says_the_activation_of_bitnet)
{
    static const struct {
        const char *word;
        enum lmq_activation activation;
        const char *unsupported;
    } cases[] = {
        {NULL, LMQ_ACTIVATION_SILU, ""},
        {"relu2", LMQ_ACTIVATION_RELU2, ""},
        {"relu", LMQ_ACTIVATION_RELU, ""},
        {"silu", LMQ_ACTIVATION_SILU, ""},
        {"relu20", LMQ_ACTIVATION_SILU, "activation 'relu20'"},
        {"rel", LMQ_ACTIVATION_SILU, "activation 'rel'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static struct lmq_checkpoint checkpoint;
        const struct lmq_hparams *h = &checkpoint.hparams;
        struct lmq_error err = {0};
        ck_assert_int_eq(read_keys("bitnet", 96, cases[i].word, &checkpoint,
                                   &err),
                         LMQ_OK);
        ck_assert_int_eq(h->activation, cases[i].activation);
        ck_assert_str_eq(h->unsupported, cases[i].unsupported);
        ck_assert(h->has_sub_norms);
        ck_assert_int_eq(h->tie, LMQ_TIE_YES);
        ck_assert_uint_eq(checkpoint.notes.n, 0);
    }
}
END_TEST

/* ---- A.X K1 ---- */

START_TEST(a_x_k1)
{
    static const char class[] = "AXK1ForCausalLM";
    struct model *m = read_model(
        "{'architectures':['AXK1ForCausalLM'],'attention_bias':false,"
        "'aux_loss_alpha':0.0001,'bos_token_id':163691,"
        "'eos_token_id':163691,'ep_size':8,'first_k_dense_replace':1,"
        "'hidden_act':'silu','hidden_size':7168,'intermediate_size':18432,"
        "'kv_lora_rank':512,'max_position_embeddings':131072,"
        "'model_type':'AXK1','moe_intermediate_size':2048,"
        "'moe_layer_freq':1,'n_group':8,'n_routed_experts':192,"
        "'n_shared_experts':1,'norm_topk_prob':true,"
        "'num_attention_heads':64,'num_experts_per_tok':8,"
        "'num_hidden_layers':61,'num_key_value_heads':64,"
        "'num_nextn_predict_layers':1,'q_lora_rank':1536,"
        "'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':10000.0,"
        "'routed_scaling_factor':2.5,'scoring_func':'sigmoid',"
        "'tie_word_embeddings':false,'topk_group':4,"
        "'topk_method':'noaux_tc','v_head_dim':128,'vocab_size':163840}");

    ck_assert_str_eq(m->h.architecture, "axk1");
    assert_sizes(&m->h, 61, 7168, 18432, 64, 64, 192);
    ck_assert_uint_eq(m->h.context, 131072);
    ck_assert_uint_eq(m->h.n_experts, 192);
    ck_assert_uint_eq(m->h.shared_dim, 2048);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert(m->h.has_mixture_norm && m->source.may_lack_correction);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_BEFORE);
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    m = read_small(class, "'mlp_layer_types':['sparse','dense','sparse',"
                          "'sparse','sparse','sparse','sparse','dense']");
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".x.....x");
    assert_unsupported(class, "'scoring_func':'softmax'",
                       "'scoring_func' 'softmax'");
}
END_TEST

/* ---- The first Qwen ---- */

#define QWEN                                                                  \
    "'hidden_size':4096,'num_hidden_layers':32,'num_attention_heads':32,"     \
    "'vocab_size':151936,'layer_norm_epsilon':1e-06,'kv_channels':128,"       \
    "'max_position_embeddings':32768,'model_type':'qwen','no_bias':true,"     \
    "'rotary_emb_base':10000,'rotary_pct':1.0,'scale_attn_weights':true,"     \
    "'seq_length':8192,'tie_word_embeddings':false"

START_TEST(qwen_7b_ends_where_it_would_go_on_otherwise)
{
    static const struct {
        const char *more;
        uint32_t end;
    } cases[] = {
        {"'use_dynamic_ntk':true,'use_logn_attn':true", 8192},
        {"'use_dynamic_ntk':false,'use_logn_attn':true", 8192},
        {"'use_dynamic_ntk':true,'use_logn_attn':false", 8192},
        {"'use_cache':true", 8192},
        {"'use_dynamic_ntk':false,'use_logn_attn':false", 0},
    };
    char text[1024];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{'architectures':['QWenLMHeadModel'],"
                 "'intermediate_size':22016," QWEN ",%s}",
                 cases[i].more);
        struct model *m = read_model(text);
        ck_assert_str_eq(m->h.architecture, "qwen");
        assert_sizes(&m->h, 32, 4096, 11008, 32, 32, 128);
        ck_assert_uint_eq(m->h.context, 8192);
        ck_assert_uint_eq(m->h.context_end, cases[i].end);
        ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
        assert_near(m->h.norm_eps, 1e-6);
    }
}
END_TEST

START_TEST(a_qwen_that_makes_no_sense_is_refused)
{
    static struct lmq_checkpoint checkpoint;
    static struct model m;
    struct lmq_error err = {0};
    bool is_known;

    ck_assert_int_eq(parse_config("{'architectures':['QWenLMHeadModel'],"
                                  "'intermediate_size':97," QWEN "}",
                                  &m, &is_known, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "'intermediate_size' in the configuration is 97, "
                            "expected an even number"));
    assert_unsupported("QWenLMHeadModel", "'scale_attn_weights':false",
                       "'scale_attn_weights' false");
    ck_assert_int_eq(read_keys("qwen", 96, NULL, &checkpoint, &err), LMQ_OK);
    ck_assert_uint_eq(checkpoint.hparams.hidden_dim, 48);
    ck_assert_uint_eq(checkpoint.hparams.context_end, 0);
    ck_assert_int_eq(read_keys("qwen", 97, NULL, &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message,
                                 "'qwen.feed_forward_length' is 97, expected "
                                 "an even number"));
}
END_TEST

/* ---- openPangu Embedded, Maincoder, Spark, PLM ---- */

START_TEST(openpangu_embedded_7b)
{
    struct model *m = read_model(
        "{'architectures':['PanguEmbeddedForCausalLM'],'auto_map':{},"
        "'bias':true,'attention_dropout':0.0,'bos_token_id':1,"
        "'pad_token_id':0,'eos_token_id':45892,'hidden_act':'silu',"
        "'hidden_size':4096,'intermediate_size':12800,"
        "'max_position_embeddings':32768,'model_type':'PanguEmbedded',"
        "'num_attention_heads':32,'num_hidden_layers':34,"
        "'num_key_value_heads':8,'rms_norm_eps':1e-05,"
        "'rope_theta':16000000.0,'tie_word_embeddings':false,"
        "'torch_dtype':'bfloat16','use_cache':true,'vocab_size':153376}");

    ck_assert_str_eq(m->h.architecture, "pangu-embedded");
    assert_sizes(&m->h, 34, 4096, 12800, 32, 8, 128);
    assert_near(m->h.rope_theta, 16e6);
}
END_TEST

START_TEST(maincoder_1b_norms_behind_turning)
{
    struct model *m = read_model(
        "{'architectures':['MaincoderForCausalLM'],'attention_bias':false,"
        "'head_dim':96,'hidden_act':'silu','hidden_size':1536,"
        "'intermediate_size':4096,'intermediate_size_mlp':4096,"
        "'max_position_embeddings':2048,'model_type':'maincoder',"
        "'num_attention_heads':16,'num_hidden_layers':32,"
        "'num_key_value_heads':4,'rms_norm_eps':1e-05,'rope_scaling':null,"
        "'rope_theta':1000000.0,'use_qk_norm':true,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "maincoder");
    assert_sizes(&m->h, 32, 1536, 4096, 16, 4, 96);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert(m->h.qk_norm_late && m->source.has_rotary_pairs);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("MaincoderForCausalLM", "'use_qk_norm':false");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
}
END_TEST

#define SPARK_ROPE                                                            \
    "'rope_parameters':{'full_attention':{'partial_rotary_factor':0.25,"      \
    "'rope_theta':5000000,'rope_type':'default'},'sliding_attention':{"       \
    "'partial_rotary_factor':1.0,'rope_theta':10000,'rope_type':'default'}}"

START_TEST(spark_x2_5_1_7b)
{
    struct model *m = read_model(
        "{'architectures':['Spark2_5ForCausalLM'],'attention_bias':false,"
        "'gate_attn_act_mode':'sigmoid','head_dim':256,"
        "'headwise_attn_output_gate':true,'hidden_act':'gelu',"
        "'hidden_size':2048,'intermediate_size':6656,"
        "'max_position_embeddings':1048576,'mlp_bias':false,"
        "'model_type':'spark2_5','num_attention_heads':8,"
        "'num_hidden_layers':28,'num_key_value_heads':2,"
        "'rms_norm_eps':1e-06," SPARK_ROPE ",'sliding_window':512,"
        "'tie_word_embeddings':true,'vocab_size':133120}");

    ck_assert_str_eq(m->h.architecture, "spark2_5");
    assert_sizes(&m->h, 28, 2048, 6656, 8, 2, 256);
    ck_assert_uint_eq(m->h.sliding_window, 512);
    for (size_t i = 0; i < 28; i++)
        ck_assert(lmq_layer_is(&m->h, i, LMQ_LAYER_FULL) == (i % 4 == 3));
    ck_assert_uint_eq(m->h.full_rotary_dim, 64);
    ck_assert_uint_eq(m->h.rotary_dim, 0); /* all */
    assert_near(m->h.rope_theta, 5e6);
    assert_near(m->h.rope_local_theta, 10000);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert(m->h.has_attn_gate && m->h.has_head_gate);
    ck_assert(!m->h.has_softplus_gate);
    ck_assert_str_eq(m->h.unsupported, "");
    assert_unsupported("Spark2_5ForCausalLM",
                       SPARK_ROPE ",'gate_attn_act_mode':'silu'",
                       "'gate_attn_act_mode' 'silu'");
    assert_unsupported("Spark2_5ForCausalLM",
                       SPARK_ROPE ",'headwise_attn_output_gate':false",
                       "'headwise_attn_output_gate' false");
}
END_TEST

START_TEST(plm_1_8b)
{
    struct model *m = read_model(
        "{'architectures':['PLMForCausalLM'],'attention_bias':false,"
        "'bos_token_id':151643,'eos_token_id':151643,'hidden_act':'relu2',"
        "'hidden_size':2048,'intermediate_size':8192,'kv_lora_rank':512,"
        "'max_position_embeddings':4096,'model_type':'plm',"
        "'num_attention_heads':16,'num_hidden_layers':32,"
        "'num_key_value_heads':16,'q_lora_rank':null,"
        "'qk_nope_head_dim':128,'qk_rope_head_dim':64,'rms_norm_eps':1e-06,"
        "'rope_scaling':null,'rope_theta':100000.0,"
        "'tie_word_embeddings':true,'v_head_dim':128,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "plm");
    assert_sizes(&m->h, 32, 2048, 8192, 16, 16, 192);
    ck_assert_uint_eq(m->h.value_dim, 128);
    ck_assert_uint_eq(m->h.kv_lora_rank, 512);
    ck_assert_uint_eq(m->h.q_lora_rank, 0);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU2);
    ck_assert(!m->h.is_gated && m->source.has_rotary_pairs);
    assert_unsupported("PLMForCausalLM", "'q_lora_rank':16",
                       "'q_lora_rank' 16");
}
END_TEST

/* Where latents have no heads of their own. */
START_TEST(a_gguf_of_plm_counts_the_heads_that_there_are)
{
    static const struct count counts[] = {
        COUNTS(96), {".attention.head_count_kv", 4},
        {".attention.kv_lora_rank", 16}, {".attention.key_length", 24},
        {".attention.value_length", 12}, {".rope.dimension_count", 8},
    };
    static struct lmq_checkpoint checkpoint;
    struct lmq_gguf_builder builder = {0};
    struct lmq_error err = {0};

    begin_keys(&builder, "plm", counts, sizeof(counts) / sizeof(counts[0]));
    ck_assert_int_eq(end_keys(&builder, &checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(checkpoint.hparams.architecture, "plm");
    ck_assert_uint_eq(checkpoint.hparams.head_dim, 24);
    ck_assert_uint_eq(checkpoint.hparams.value_dim, 12);
    ck_assert_uint_eq(checkpoint.hparams.rotary_dim, 8);
    ck_assert_uint_eq(checkpoint.hparams.n_kv_heads, 4);
    ck_assert_int_eq(checkpoint.hparams.activation, LMQ_ACTIVATION_RELU2);
    ck_assert(!checkpoint.hparams.is_gated);
}
END_TEST

/* ---- Nanbeige ---- */

START_TEST(nanbeige_4_2_3b_goes_twice_through_its_layers)
{
    struct model *m = read_model(
        "{'architectures':['NanbeigeForCausalLM'],'attention_bias':false,"
        "'bos_token_id':166100,'eos_token_id':166101,'head_dim':128,"
        "'hidden_act':'silu','hidden_size':3072,"
        "'intermediate_size':10752,'max_position_embeddings':262144,"
        "'model_type':'nanbeige','num_attention_heads':48,"
        "'num_hidden_layers':22,'num_key_value_heads':8,'num_loops':2,"
        "'pad_token_id':0,'rms_norm_eps':1e-05,'rope_theta':70000000.0,"
        "'skip_loop_final_norm':false,'tie_word_embeddings':false,"
        "'total_ut_steps':2,'vocab_size':166144}");

    ck_assert_str_eq(m->h.architecture, "nanbeige");
    assert_sizes(&m->h, 22, 3072, 10752, 48, 8, 128);
    ck_assert_uint_eq(m->h.n_loops, 2);
    ck_assert(m->h.has_loop_norm);
    m = read_small("NanbeigeForCausalLM",
                   "'num_loops':3,'skip_loop_final_norm':true");
    ck_assert_uint_eq(m->h.n_loops, 3);
    ck_assert(!m->h.has_loop_norm);
    m = read_small("NanbeigeForCausalLM", "'num_loops':1");
    ck_assert(m->h.n_loops == 0 && !m->h.has_loop_norm);
    m = read_small("OuroForCausalLM", "'early_exit_threshold':1.0");
    ck_assert(m->h.n_loops == 4 && m->h.has_loop_norm);
    assert_unsupported("OuroForCausalLM", "'early_exit_threshold':0.9",
                       "'early_exit_threshold' 0.9");
}
END_TEST

START_TEST(a_gguf_says_how_often_it_goes_through_its_layers)
{
    static const struct {
        uint32_t said, n_loops;
        bool skips, norms;
    } cases[] = {{2, 2, false, true}, {3, 3, true, false},
                 {1, 0, false, false}, {64, 64, false, true}};
    const struct count counts[] = {COUNTS(96),
                                   {".attention.head_count_kv", 2}};
    static struct lmq_checkpoint checkpoint;

    for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_last = i == sizeof(cases) / sizeof(cases[0]);
        struct lmq_gguf_builder builder = {0};
        struct lmq_error err = {0};
        begin_keys(&builder, "nanbeige", counts,
                   sizeof(counts) / sizeof(counts[0]));
        lmq_gguf_put_u32(&builder, ".num_loops",
                         is_last ? 65 : cases[i].said);
        lmq_gguf_put_bool(&builder, ".skip_loop_final_norm",
                          !is_last && cases[i].skips);
        ck_assert_int_eq(end_keys(&builder, &checkpoint, &err),
                         is_last ? LMQ_ERR_FORMAT : LMQ_OK);
        ck_assert(is_last ||
                  (checkpoint.hparams.n_loops == cases[i].n_loops &&
                   checkpoint.hparams.has_loop_norm == cases[i].norms));
    }
}
END_TEST

START_TEST(what_goes_from_layer_to_layer_is_of_one_time)
{
    struct model *m = read_small("NanbeigeForCausalLM", "'num_loops':2");
    struct lmq_hparams h = m->h;
    struct lmq_error err = {0};

    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_OK);
    h.n_streams = 2;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "2 times through layers"));
    h.n_streams = 0, h.n_borrowing = 1;
    ck_assert_int_eq(lmq_hparams_check(&h, &err), LMQ_ERR_FORMAT);
}
END_TEST

/* ---- Apertus 1.5 ---- */

#define APERTUS_ROPE                                                          \
    "'rope_parameters':{'factor':8.0,'high_freq_factor':4.0,"                 \
    "'low_freq_factor':1.0,'original_max_position_embeddings':8192,"          \
    "'rope_theta':12000000.0,'rope_type':'llama3'}"

START_TEST(the_text_of_apertus_1_5_has_the_vocabulary_of_its_head)
{
    struct model *m = read_model(
        "{'architectures':['Apertus1p5ForConditionalGeneration'],"
        "'model_type':'apertus1p5','text_config':{'attention_bias':false,"
        "'hidden_act':'xielu','hidden_size':4096,"
        "'intermediate_size':21504,'max_position_embeddings':65536,"
        "'model_type':'apertus1p5_text','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':8,"
        "'output_vocab_size':131272,'rms_norm_eps':1e-05," APERTUS_ROPE
        ",'tie_word_embeddings':false,'vocab_size':266752},"
        "'vision_config':{},'audio_config':{}}");

    ck_assert_str_eq(m->h.architecture, "apertus");
    assert_sizes(&m->h, 32, 4096, 21504, 32, 8, 128);
    ck_assert_uint_eq(m->h.vocab_size, 131272);
    ck_assert_uint_eq(m->source.n_input_tokens, 266752);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_XIELU);
    m = read_small("Apertus1p5TextForCausalLM",
                   APERTUS_ROPE ",'output_vocab_size':null");
    ck_assert_uint_eq(m->h.vocab_size, 100);
    ck_assert_uint_eq(m->source.n_input_tokens, 0);
    assert_wrong("Apertus1p5TextForCausalLM",
                 APERTUS_ROPE ",'output_vocab_size':101",
                 "'output_vocab_size'");
    assert_unsupported("Apertus1p5TextForCausalLM",
                       APERTUS_ROPE ",'output_vocab_size':9,"
                       "'tie_word_embeddings':true",
                       "'output_vocab_size' 9 of a head that is the embedding");
}
END_TEST

/* ---- Orion, XVERSE ---- */

START_TEST(orion_14b_and_xverse_13b)
{
    struct model *m = read_model(
        "{'architectures':['OrionForCausalLM'],'attention_bias':false,"
        "'bos_token_id':1,'eos_token_id':2,'hidden_act':'silu',"
        "'hidden_size':5120,'intermediate_size':15360,"
        "'max_position_embeddings':4096,'max_sequence_length':4096,"
        "'model_type':'orion','num_attention_heads':40,"
        "'num_hidden_layers':40,'num_key_value_heads':40,'pad_token_id':0,"
        "'rms_norm_eps':1e-05,'rope_scaling':null,'rope_theta':10000.0,"
        "'tie_word_embeddings':false,'vocab_size':84608}");

    ck_assert_str_eq(m->h.architecture, "orion");
    assert_sizes(&m->h, 40, 5120, 15360, 40, 40, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    assert_near(m->h.norm_eps, 1e-5);
    m = read_small("OrionForCausalLM", "'max_sequence_length':320000");
    ck_assert_uint_eq(m->h.context, 320000);
    m = read_model(
        "{'architectures':['XverseForCausalLM'],'bos_token_id':2,"
        "'eos_token_id':3,'hidden_act':'silu','hidden_size':5120,"
        "'intermediate_size':13824,'max_position_embeddings':8192,"
        "'max_tokenizer_truncation':6144,'model_type':'xverse',"
        "'num_attention_heads':40,'num_hidden_layers':40,'pad_token_id':1,"
        "'rms_norm_eps':1e-06,'tie_word_embeddings':false,"
        "'vocab_size':100534}");
    ck_assert_str_eq(m->h.architecture, "xverse");
    assert_sizes(&m->h, 40, 5120, 13824, 40, 40, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_RMS);
}
END_TEST

/* ---- Folders ---- */

/* Ranks of tiktoken under its own name. */
START_TEST(the_first_qwen_has_a_tokenizer_of_its_own_name)
{
    static const char line[] = "IQ== 0\nIg== 1\n";
    struct family_model *model = family_make(family_find("qwen"), 1, 0, 1);

    family_write(model, in_folder("qwen"));
    family_free(model);
    write_file(in_folder("qwen/qwen.tiktoken"), line, strlen(line));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("qwen"));
    ck_assert_uint_eq(checkpoint->n_blobs, 1);
    ck_assert_str_eq(checkpoint->blobs[0].name, "qwen.tiktoken");
    ck_assert_uint_eq(checkpoint->hparams.context_end, 64);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* A key says the activation, which llama.cpp knows since a while. */
START_TEST(what_llama_cpp_takes_for_granted_of_a_bitnet_is_told)
{
    static const struct {
        const char *activation, *words;
    } cases[] = {
        {"'relu2'", "llama.cpp before August 2026 computes something else"},
        {"'silu' ", NULL},
    };
    const struct lmq_export_options options = {.to = "gguf", .replaces = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct family family = *family_find("bitnet");
        char config[1024], key[32];
        bool is_told = false;
        snprintf(config, sizeof(config), "%s", family.config);
        memcpy(strstr(config, "'relu2'"), cases[i].activation, 7);
        family.config = config;
        struct family_model *model = family_make(&family, 1, 0, 1);
        family_write(model, in_folder("source"));
        family_free(model);
        struct lmq_report *report = export_to(
            in_folder("source"), in_folder("a.gguf"), &options);
        for (int j = 0; j < 20; j++) {
            snprintf(key, sizeof(key), "notes.%d", j);
            const char *note = lmq_report_string(report, key);
            is_told |= note != NULL && cases[i].words != NULL &&
                       strstr(note, cases[i].words) != NULL;
            ck_assert(note == NULL || strstr(note, "GELU") == NULL);
        }
        ck_assert(is_told == (cases[i].words != NULL));
        lmq_report_free(report);
    }
}
END_TEST

/* 1bitLLM's class has no word for what it does with its weights, of which there
 * may be others. */
START_TEST(the_first_class_of_bitnet_rounds_without_a_word)
{
    static const struct {
        const char *class, *bits;
        const char *encoding;
    } cases[] = {
        {"BitnetForCausalLM", "'weight_bits': 1,", "bitnet"},
        {"BitnetForCausalLM", "", "bitnet"},
        {"BitnetForCausalLM", "'weight_bits': 32,", NULL},
        {"BitNetForCausalLM", "'weight_bits': 1,", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct family family = *family_find("bitnet");
        char config[1024];
        snprintf(config, sizeof(config), "{'architectures': ['%s'], %s%s",
                 cases[i].class, cases[i].bits,
                 strstr(family.config, "'attention_bias'"));
        family.config = config;
        struct family_model *model = family_make(&family, 1, 0, 1);
        family_write(model, in_folder("bitnet"));
        family_free(model);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("bitnet"));
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "blk.1.ffn_up.weight");
        if (cases[i].encoding != NULL)
            ck_assert_str_eq(tensor->encoding, cases[i].encoding);
        else
            ck_assert_ptr_null(tensor->encoding);
        ck_assert_ptr_null(
            lmq_checkpoint_find_name(checkpoint, "token_embd.weight")
                ->encoding);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* Nor is the norm behind the experts there where there are none. */
START_TEST(an_a_x_k1_needs_no_correction)
{
    static const struct {
        const char *family;
        bool corrects;
    } cases[] = {{"axk1", false}, {"axk1-library", true}};

    for (size_t i = 0; i < 2; i++) {
        struct family_model *model =
            family_make(family_find(cases[i].family), 1, 0, 1);
        family_write(model, in_folder("axk1"));
        family_free(model);
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("axk1"));
        const struct lmq_hparams *h = &checkpoint->hparams;
        ck_assert(h->router_corrects == cases[i].corrects);
        for (int32_t layer = 0; layer < 4; layer++)
            ck_assert((lmq_checkpoint_find(checkpoint, LMQ_ROLE_FFN_POST_NORM,
                                           LMQ_PART_WEIGHT, layer) != NULL) ==
                      lmq_layer_has_experts(h, (size_t)layer));
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        bitnet_2b_4t,
        bitnet_b1_58_3b_of_1bitllm,
        a_gguf_says_the_activation_of_bitnet,
        a_x_k1,
        qwen_7b_ends_where_it_would_go_on_otherwise,
        a_qwen_that_makes_no_sense_is_refused,
        openpangu_embedded_7b,
        maincoder_1b_norms_behind_turning,
        spark_x2_5_1_7b,
        plm_1_8b,
        a_gguf_of_plm_counts_the_heads_that_there_are,
        nanbeige_4_2_3b_goes_twice_through_its_layers,
        a_gguf_says_how_often_it_goes_through_its_layers,
        what_goes_from_layer_to_layer_is_of_one_time,
        the_text_of_apertus_1_5_has_the_vocabulary_of_its_head,
        orion_14b_and_xverse_13b,
        the_first_qwen_has_a_tokenizer_of_its_own_name,
        what_llama_cpp_takes_for_granted_of_a_bitnet_is_told,
        the_first_class_of_bitnet_rounds_without_a_word,
        an_a_x_k1_needs_no_correction,
    };

    return RUN_SUITE("hf_further", tests);
}
