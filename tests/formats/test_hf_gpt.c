/*
 * test_hf_gpt.c - the families of config.json, by published configurations
 * (without what no computation depends on): GPT, Falcon, Phi.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Phi ---- */

START_TEST(phi_2)
{
    struct model *m = read_model(
        "{'architectures':['PhiForCausalLM'],'attention_dropout':0.0,"
        "'bos_token_id':50256,'embd_pdrop':0.0,'eos_token_id':50256,"
        "'hidden_act':'gelu_new','hidden_size':2560,"
        "'intermediate_size':10240,'layer_norm_eps':1e-05,"
        "'max_position_embeddings':2048,'model_type':'phi',"
        "'num_attention_heads':32,'num_hidden_layers':32,"
        "'num_key_value_heads':32,'partial_rotary_factor':0.4,"
        "'qk_layernorm':false,'resid_pdrop':0.1,'rope_scaling':null,"
        "'rope_theta':10000.0,'tie_word_embeddings':false,"
        "'vocab_size':51200}");

    ck_assert_str_eq(m->h.architecture, "phi2");
    assert_sizes(&m->h, 32, 2560, 10240, 32, 32, 80);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 32);
    m = read_small("PhiForCausalLM", "'qk_layernorm':true");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
}
END_TEST

/* A list of n factors from `first` on, in JSON. */
static const char *
factors(char *text, size_t size, unsigned n, double first)
{
    size_t used = 0;

    for (unsigned i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%.2f",
                                 i == 0 ? "[" : ",", first + i);
    snprintf(text + used, size - used, "]");
    return text;
}

#define PHI_3_MINI                                                            \
    "'architectures':['Phi3ForCausalLM'],'attention_bias':false,"             \
    "'bos_token_id':1,'eos_token_id':32000,'hidden_act':'silu',"              \
    "'hidden_size':3072,'intermediate_size':8192,'model_type':'phi3',"        \
    "'num_attention_heads':32,'num_hidden_layers':32,"                        \
    "'num_key_value_heads':32,'rms_norm_eps':1e-05,'rope_theta':10000.0,"     \
    "'tie_word_embeddings':false,'vocab_size':32064"

START_TEST(phi_3_mini_128k)
{
    static const char *const types[] = {"longrope", "su", "yarn"};
    char text[8000], shorts[2000], longs[2000];

    factors(shorts, sizeof(shorts), 48, 1);
    factors(longs, sizeof(longs), 48, 2.5);
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text),
                 "{" PHI_3_MINI ",'max_position_embeddings':131072,"
                 "'original_max_position_embeddings':4096,"
                 "'sliding_window':262144,'rope_scaling':{'long_factor':%s,"
                 "'short_factor':%s,'type':'%s'}}",
                 longs, shorts, types[i]);
        struct model *m = read_model(text);
        ck_assert_str_eq(m->h.architecture, "phi3");
        assert_sizes(&m->h, 32, 3072, 8192, 32, 32, 96);
        assert_llama_like(&m->h);
        assert_source(&m->source, false, false, false, false);
        ck_assert_uint_eq(m->h.sliding_window, 262144);
        ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LONGROPE);
        ck_assert_uint_eq(m->h.n_rope_factors, 48);
        ck_assert_double_eq(m->h.rope_short[47], 48);
        ck_assert_double_eq(m->h.rope_long[0], 2.5);
        ck_assert_uint_eq(m->h.rope_context, 4096);
        /* sqrt(1 + ln 32 / ln 4096), as its makers print it. */
        ck_assert_double_eq_tol(m->h.rope_attention_factor,
                                1.1902380714238083, 1e-15);
    }
}
END_TEST

START_TEST(phi_3_windows_and_phi_4)
{
    struct model *m =
        read_model("{" PHI_3_MINI ",'max_position_embeddings':4096,"
                   "'original_max_position_embeddings':4096,"
                   "'rope_scaling':null,'sliding_window':2047}");

    ck_assert_uint_eq(m->h.sliding_window, 2047);
    m = read_model(
        "{'architectures':['Phi3ForCausalLM'],'bos_token_id':100257,"
        "'eos_token_id':100265,'hidden_act':'silu','hidden_size':5120,"
        "'intermediate_size':17920,'max_position_embeddings':16384,"
        "'model_type':'phi3','num_attention_heads':40,"
        "'num_hidden_layers':40,'num_key_value_heads':10,"
        "'original_max_position_embeddings':16384,'rms_norm_eps':1e-05,"
        "'rope_scaling':null,'rope_theta':250000,'sliding_window':null,"
        "'tie_word_embeddings':false,'vocab_size':100352}");
    assert_sizes(&m->h, 40, 5120, 17920, 40, 10, 128);
    ck_assert_double_eq(m->h.rope_theta, 250000);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    /* The mini one turns three quarters. */
    m = read_small("Phi3ForCausalLM",
                   "'partial_rotary_factor':0.75,'rope_scaling':{"
                   "'type':'longrope','short_factor':[1,1,1,1,1,1],"
                   "'long_factor':[1,2,3,4,5,6]}");
    ck_assert_uint_eq(m->h.rotary_dim, 12);
    m = read_small("Phi3ForCausalLM",
                   "'max_position_embeddings':8192,'rope_scaling':{"
                   "'type':'longrope','short_factor':[1,1,1,1,1,1,1,1],"
                   "'long_factor':[1,2,3,4,5,6,7,8]}");
    ck_assert_uint_eq(m->h.rope_context, 4096);
    ck_assert_double_eq(m->h.rope_factor, 2);
    assert_wrong("Phi3ForCausalLM",
                 "'rope_scaling':{'type':'longrope','short_factor':[1,1],"
                 "'long_factor':[1]}",
                 "differ in length");
    assert_wrong("Phi3ForCausalLM",
                 "'rope_scaling':{'type':'longrope','short_factor':[1,'x'],"
                 "'long_factor':[1,1]}",
                 "'short_factor'");
    assert_wrong("Phi3ForCausalLM",
                 "'original_max_position_embeddings':1,'rope_scaling':{"
                 "'type':'longrope','short_factor':[1,1,1,1,1,1,1,1],"
                 "'long_factor':[1,2,3,4,5,6,7,8]}",
                 "'original_max_position_embeddings' in the configuration is "
                 "1");
    assert_wrong("Phi3ForCausalLM", "'rope_scaling':{'type':'longrope'}",
                 "'short_factor'");
    assert_unsupported("Phi3ForCausalLM",
                       "'rope_scaling':{'type':'longrope','short_mscale':1,"
                       "'short_factor':[1,1,1,1,1,1,1,1],"
                       "'long_factor':[1,1,1,1,1,1,1,1]}",
                       "'short_mscale' in rotary scaling");
}
END_TEST

/* ---- GPT-2, GPT-NeoX, StableLM ---- */

START_TEST(gpt2)
{
    struct model *m = read_model(
        "{'activation_function':'gelu_new','architectures':["
        "'GPT2LMHeadModel'],'attn_pdrop':0.1,'bos_token_id':50256,"
        "'embd_pdrop':0.1,'eos_token_id':50256,'layer_norm_epsilon':1e-05,"
        "'model_type':'gpt2','n_ctx':1024,'n_embd':768,'n_head':12,"
        "'n_layer':12,'n_positions':1024,'resid_pdrop':0.1,"
        "'summary_type':'cls_index','vocab_size':50257}");

    ck_assert_str_eq(m->h.architecture, "gpt2");
    assert_sizes(&m->h, 12, 768, 3072, 12, 12, 64);
    assert_source(&m->source, false, true, false, false);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_LEARNED);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.context, 1024);
    ck_assert_uint_eq(lmq_hparams_rotary_dim(&m->h), 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("GPT2LMHeadModel",
                   "'n_inner':70,'scale_attn_weights':false,"
                   "'max_position_embeddings':77");
    assert_sizes(&m->h, 8, 64, 70, 4, 4, 16);
    ck_assert_double_eq(m->h.attn_scale, 1);
    ck_assert_uint_eq(m->h.context, 77);
    assert_unsupported("GPT2LMHeadModel",
                       "'scale_attn_by_inverse_layer_idx':true",
                       "'scale_attn_by_inverse_layer_idx' true");
    assert_unsupported("GPT2LMHeadModel", "'add_cross_attention':true",
                       "'add_cross_attention' true");
}
END_TEST

START_TEST(pythia_160m)
{
    struct model *m = read_model(
        "{'architectures':['GPTNeoXForCausalLM'],'bos_token_id':0,"
        "'eos_token_id':0,'hidden_act':'gelu','hidden_size':768,"
        "'intermediate_size':3072,'layer_norm_eps':1e-05,"
        "'max_position_embeddings':2048,'model_type':'gpt_neox',"
        "'num_attention_heads':12,'num_hidden_layers':12,"
        "'rotary_emb_base':10000,'rotary_pct':0.25,"
        "'tie_word_embeddings':false,'use_parallel_residual':true,"
        "'vocab_size':50304}");

    ck_assert_str_eq(m->h.architecture, "gptneox");
    assert_sizes(&m->h, 12, 768, 3072, 12, 12, 64);
    assert_source(&m->source, false, false, false, true);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 16);
    m = read_small("GPTNeoXForCausalLM",
                   "'use_parallel_residual':false,'rotary_emb_base':50000,"
                   "'rotary_pct':1.0,'rope_theta':3");
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_double_eq(m->h.rope_theta, 50000);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    /* Which the class does not read */
    m = read_small("GPTNeoXForCausalLM",
                   "'rope_theta':50000,'partial_rotary_factor':0.5");
    ck_assert_double_eq(m->h.rope_theta, 10000);
    ck_assert_uint_eq(m->h.rotary_dim, 4);
    m = read_small("GPTNeoXForCausalLM",
                   "'rope_parameters':{'rope_type':'default',"
                   "'rope_theta':7000,'partial_rotary_factor':0.5}");
    ck_assert_double_eq(m->h.rope_theta, 7000);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
}
END_TEST

START_TEST(stablelm_2_1_6b)
{
    struct model *m = read_model(
        "{'architectures':['StableLmForCausalLM'],'bos_token_id':100257,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':2048,"
        "'intermediate_size':5632,'layer_norm_eps':1e-05,"
        "'max_position_embeddings':4096,'model_type':'stablelm',"
        "'num_attention_heads':32,'num_hidden_layers':24,"
        "'num_key_value_heads':32,'partial_rotary_factor':0.25,"
        "'rope_theta':10000,'tie_word_embeddings':false,"
        "'use_qkv_bias':true,'vocab_size':100352}");

    ck_assert_str_eq(m->h.architecture, "stablelm");
    assert_sizes(&m->h, 24, 2048, 5632, 32, 32, 64);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert(m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 16);
    m = read_small("StableLmForCausalLM", /* as 12B */
                   "'use_parallel_residual':true,'qk_layernorm':true");
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEADS);
    ck_assert_uint_eq(m->h.rotary_dim, 4);
}
END_TEST

/* ---- Falcon ---- */

START_TEST(falcon_7b)
{
    struct model *m = read_model(
        "{'alibi':false,'apply_residual_connection_post_layernorm':false,"
        "'architectures':['FalconForCausalLM'],'bias':false,"
        "'bos_token_id':11,'eos_token_id':11,'hidden_dropout':0.0,"
        "'hidden_size':4544,'layer_norm_epsilon':1e-05,"
        "'model_type':'falcon','multi_query':true,"
        "'new_decoder_architecture':false,'num_attention_heads':71,"
        "'num_hidden_layers':32,'num_kv_heads':71,'parallel_attn':true,"
        "'vocab_size':65024}");

    ck_assert_str_eq(m->h.architecture, "falcon");
    assert_sizes(&m->h, 32, 4544, 18176, 71, 1, 64);
    assert_source(&m->source, false, false, false, true);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ROTARY);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert(!m->h.is_gated);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
}
END_TEST

START_TEST(falcon_40b_in_both_forms)
{
    struct model *m = read_model(
        "{'alibi':false,'architectures':['FalconForCausalLM'],'bias':false,"
        "'hidden_size':8192,'layer_norm_epsilon':1e-05,"
        "'model_type':'falcon','multi_query':true,"
        "'new_decoder_architecture':true,'num_attention_heads':128,"
        "'num_hidden_layers':60,'num_kv_heads':8,'parallel_attn':true,"
        "'vocab_size':65024}");

    assert_sizes(&m->h, 60, 8192, 32768, 128, 8, 64);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL);
    m = read_model(
        "{'alibi':false,'architectures':['RWForCausalLM'],'bias':false,"
        "'hidden_size':8192,'layer_norm_epsilon':1e-05,"
        "'model_type':'RefinedWeb','multi_query':true,'n_head':128,"
        "'n_head_kv':8,'n_layer':60,'parallel_attn':true,"
        "'vocab_size':65024}");
    assert_sizes(&m->h, 60, 8192, 32768, 128, 8, 64);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL);
    m = read_small("FalconForCausalLM", /* as 11B */
                   "'new_decoder_architecture':true,'num_kv_heads':2,"
                   "'num_ln_in_parallel_attn':1,'ffn_hidden_size':100,"
                   "'rope_theta':500042");
    assert_sizes(&m->h, 8, 64, 100, 4, 2, 16);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_double_eq(m->h.rope_theta, 500042);
    assert_unsupported("FalconForCausalLM",
                       "'new_decoder_architecture':true,"
                       "'parallel_attn':false",
                       "'parallel_attn' with 'new_decoder_architecture'");
    assert_unsupported("FalconForCausalLM", "'num_ln_in_parallel_attn':2",
                       "'num_ln_in_parallel_attn' 2");
}
END_TEST

START_TEST(falcon_rw_1b)
{
    struct model *m = read_model(
        "{'alibi':true,'apply_residual_connection_post_layernorm':false,"
        "'architectures':['FalconForCausalLM'],'bias':true,"
        "'bos_token_id':1,'eos_token_id':2,'hidden_size':2048,"
        "'layer_norm_epsilon':1e-05,'model_type':'falcon',"
        "'multi_query':false,'new_decoder_architecture':false,"
        "'num_attention_heads':32,'num_hidden_layers':24,"
        "'parallel_attn':false,'vocab_size':50304}");

    assert_sizes(&m->h, 24, 2048, 8192, 32, 32, 64);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI_SCALED);
    assert_unsupported("RWForCausalLM",
                       "'apply_residual_connection_post_layernorm':true",
                       "'apply_residual_connection_post_layernorm' true");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        phi_2,
        phi_3_mini_128k,
        phi_3_windows_and_phi_4,
        gpt2,
        pythia_160m,
        stablelm_2_1_6b,
        falcon_7b,
        falcon_40b_in_both_forms,
        falcon_rw_1b,
    };

    return RUN_SUITE("hf_gpt", tests);
}
