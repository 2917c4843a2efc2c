/*
 * test_hf_older.c - the families of config.json, by published configurations
 * (without what no computation depends on): StarCoder 2, GPT-J, GPT-Neo, MPT,
 * BLOOM, OPT, InternLM 2, Baichuan, OLMoE, CodeShell, Jais.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

START_TEST(starcoder2_3b)
{
    struct model *m = read_model(
        "{'architectures':['Starcoder2ForCausalLM'],'bos_token_id':0,"
        "'eos_token_id':0,'hidden_act':'gelu_pytorch_tanh',"
        "'hidden_size':3072,'intermediate_size':12288,"
        "'max_position_embeddings':16384,'mlp_type':'default',"
        "'model_type':'starcoder2','norm_epsilon':1e-05,"
        "'norm_type':'layer_norm','num_attention_heads':24,"
        "'num_hidden_layers':30,'num_key_value_heads':2,"
        "'rope_theta':999999.4420358813,'sliding_window':4096,"
        "'use_bias':true,'vocab_size':49152}");

    assert_sizes(&m->h, 30, 3072, 12288, 24, 2, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("Starcoder2ForCausalLM", "'sliding_window':null");
    ck_assert_uint_eq(m->h.sliding_window, 0);
}
END_TEST

START_TEST(gpt_j_6b)
{
    struct model *m = read_model(
        "{'activation_function':'gelu_new',"
        "'architectures':['GPTJForCausalLM'],'bos_token_id':50256,"
        "'eos_token_id':50256,'layer_norm_epsilon':1e-05,"
        "'model_type':'gptj','n_embd':4096,'n_head':16,'n_inner':null,"
        "'n_layer':28,'n_positions':2048,'rotary':true,'rotary_dim':64,"
        "'scale_attn_weights':true,'tie_word_embeddings':false,"
        "'vocab_size':50400}");

    assert_sizes(&m->h, 28, 4096, 16384, 16, 16, 256);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_NO);
    assert_source(&m->source, true, false, false, false);
    assert_unsupported("GPTJForCausalLM", "'rotary_dim':null",
                       "'rotary_dim' null");
    m = read_small("GPTJForCausalLM", "'rotary_dim':8,'rope_theta':1000");
    assert_near(m->h.rope_theta, 10000);
    m = read_small("GPTJForCausalLM",
                   "'rotary_dim':8,'rope_parameters':{"
                   "'rope_theta':1000.0,'rope_type':'default'}");
    assert_near(m->h.rope_theta, 10000);
    assert_unsupported("GPTJForCausalLM",
                       "'rotary_dim':8,'rope_scaling':{'type':'linear',"
                       "'factor':2}",
                       "rotary scaling in a model of this kind");
}
END_TEST

START_TEST(a_codegen_is_cut_in_four)
{
    struct model *m = read_small("CodeGenForCausalLM", "'rotary_dim':8");
    struct lmq_error err = {0};
    struct model model;
    bool is_known;

    ck_assert_int_eq(m->source.qkv_order, LMQ_QKV_BY_QUARTER);
    ck_assert(m->source.has_rotary_pairs);
    assert_near(m->h.rope_theta, 10000);
    ck_assert_int_eq(
        parse_config("{'architectures':['CodeGenForCausalLM'],'n_embd':66,"
                     "'n_layer':2,'n_head':3,'rotary_dim':8,"
                     "'vocab_size':100}",
                     &model, &is_known, &err),
        LMQ_ERR_FORMAT);
    ck_assert(strstr(err.message, "66 is no multiple of 4") != NULL);
    for (int i = 0; i < 2; i++)
        assert_unsupported("CodeGenForCausalLM",
                           i == 0 ? "'rotary_dim':8,'head_dim':128"
                                  : "'rotary_dim':8,'auto_map':{}",
                           "CodeGen 2, whose queries, keys and values are in "
                           "another order");
}
END_TEST

#define DBRX(more)                                                            \
    "'d_model':64,'n_layers':8,'n_heads':4,'max_seq_len':128,"                \
    "'attn_config':{'clip_qkv':8,'kv_n_heads':2,'rope_theta':500000}" more

START_TEST(dbrx)
{
    struct model *m = read_small(
        "DbrxForCausalLM",
        DBRX(",'ffn_config':{'ffn_hidden_size':96,'moe_num_experts':16,"
             "'moe_top_k':4,'moe_normalize_expert_weights':null}"));

    ck_assert_uint_eq(m->h.n_kv_heads, 2);
    ck_assert_uint_eq(m->h.n_experts, 16);
    ck_assert_uint_eq(m->h.n_experts_used, 4);
    ck_assert_uint_eq(m->h.expert_dim, 96);
    ck_assert(!m->h.router_renormalises);
    assert_near(m->h.qkv_clip, 8);
    assert_near(m->h.rope_theta, 500000);
    ck_assert(read_small("DbrxForCausalLM", DBRX(""))->h.router_renormalises);
    assert_unsupported("DbrxForCausalLM", DBRX(",'rope_theta':10000"),
                       "a 'rope_theta' of 10000 beside one of 500000");
    assert_unsupported("DbrxForCausalLM", "'attn_config':{'clip_qkv':0}",
                       "'clip_qkv' 0");
    assert_unsupported("DbrxForCausalLM",
                       DBRX(",'rope_scaling':{'type':'linear','factor':2}"),
                       "rotary scaling in a model of this kind, which "
                       "versions of the library take differently");
    assert_unsupported("DbrxForCausalLM",
                       DBRX(",'ffn_config':{'moe_normalize_expert_weights':"
                            "2}"),
                       "'moe_normalize_expert_weights' 2");
    assert_unsupported("DbrxForCausalLM",
                       DBRX(",'ffn_config':{'ffn_act_fn':{'name':'gelu'}}"),
                       "'ffn_act_fn' 'gelu'");
}
END_TEST

START_TEST(persimmon_8b)
{
    struct model *m = read_small("PersimmonForCausalLM",
                                 "'hidden_act':'relu2','rope_theta':25000.0");

    ck_assert_int_eq(m->source.qkv_order, LMQ_QKV_BY_HEAD);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_uint_eq(m->h.rotary_dim, 8); /* half of a head */
    assert_near(m->h.rope_theta, 25000);
    m = read_small("PersimmonForCausalLM",
                   "'qk_layernorm':false,'rope_theta':25000.0");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    m = read_small("PersimmonForCausalLM", "'hidden_act':'relu2'");
    ck_assert_ptr_ne(m->source.unsaid_theta, NULL); /* versions differ */
}
END_TEST

#define NEO(more)                                                             \
    "{'activation_function':'gelu_new','architectures':["                     \
    "'GPTNeoForCausalLM'],'attention_dropout':0,'bos_token_id':50256,"        \
    "'eos_token_id':50256,'hidden_size':64,'intermediate_size':null,"         \
    "'layer_norm_epsilon':1e-05,'max_position_embeddings':2048,"              \
    "'model_type':'gpt_neo','num_heads':4,'num_layers':4,"                    \
    "'vocab_size':100,'window_size':256" more "}"

START_TEST(gpt_neo)
{
    struct lmq_error err = {0};
    struct model model, *m = read_model(
        NEO(",'attention_types':[[['global','local'],2]]"));
    bool is_known;

    assert_sizes(&m->h, 4, 64, 256, 4, 4, 16);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_LEARNED);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert_uint_eq(m->h.sliding_window, 256);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    assert_near(m->h.attn_scale, 1);
    assert_source(&m->source, false, false, false, false);
    assert_layers(&m->h, LMQ_LAYER_FULL, "x.");
    assert_layers(&read_model(NEO(""))->h, LMQ_LAYER_FULL, "x.");
    m = read_model(NEO(",'attention_types':[[['local'],1],[['global'],2],"
                       "[['local'],1]]"));
    assert_layers(&m->h, LMQ_LAYER_FULL, ".xx.");
    m = read_model(NEO(",'attention_types':[[['global','local'],2]],"
                       "'attention_layers':['local','local','global',"
                       "'global']"));
    assert_layers(&m->h, LMQ_LAYER_FULL, "..xx");
    ck_assert_int_eq(
        parse_config(NEO(",'attention_types':[[['global','local'],1]]"),
                     &model, &is_known, &err),
        LMQ_ERR_FORMAT);
    ck_assert(strstr(err.message, "names 2 of 4 layers") != NULL);
    ck_assert_int_eq(
        parse_config(NEO(",'attention_types':[[[],9],[['global'],'x']]"),
                     &model, &is_known, &err),
        LMQ_ERR_FORMAT);
    ck_assert_int_eq(
        parse_config(NEO(",'attention_types':[[['odd'],4]]"), &model,
                     &is_known, &err),
        LMQ_OK);
    ck_assert_str_eq(model.h.unsupported, "'odd' in 'attention_types'");
}
END_TEST

#define MPT_30B(attention)                                                    \
    "{'architectures':['MPTForCausalLM'],'attn_config':{'alibi':true,"        \
    "'alibi_bias_max':8,'attn_impl':'torch','attn_pdrop':0,"                  \
    "'attn_type':'multihead_attention','attn_uses_sequence_id':false,"        \
    "'prefix_lm':false,'qk_ln':false," attention "},'d_model':7168,"          \
    "'expansion_ratio':4,'learned_pos_emb':true,'logit_scale':null,"          \
    "'max_seq_len':8192,'model_type':'mpt','n_heads':64,'n_layers':48,"       \
    "'no_bias':true,'norm_type':'low_precision_layernorm',"                   \
    "'vocab_size':50432}"

START_TEST(mpt_30b)
{
    struct model *m =
        read_model(MPT_30B("'clip_qkv':null,'softmax_scale':null"));

    assert_sizes(&m->h, 48, 7168, 28672, 64, 64, 112);
    ck_assert_uint_eq(m->h.context, 8192);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert_double_eq(m->h.qkv_clip, 0);
    ck_assert_double_eq(m->h.attn_scale, 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_model(MPT_30B("'clip_qkv':6,'softmax_scale':0.25"));
    ck_assert_double_eq(m->h.qkv_clip, 6);
    ck_assert_double_eq(m->h.attn_scale, 0.25);
}
END_TEST

START_TEST(mpt_without_alibi_is_refused)
{
    static const char sizes[] =
        "'d_model':64,'n_layers':2,'n_heads':4,'attn_config':{%s}";
    static const struct {
        const char *attention, *why;
    } odd[] = {
        {"'alibi':false", "'alibi'"},
        {"'alibi_bias_max':16", "another 'alibi_bias_max' than 8"},
        {"'attn_type':'multiquery_attention'",
         "'attn_type' 'multiquery_attention'"},
        {"'prefix_lm':true", "'prefix_lm'"},
        {"'qk_ln':true", "'qk_ln'"},
    };
    char more[200];

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        snprintf(more, sizeof(more), sizes, odd[i].attention);
        assert_unsupported("MptForCausalLM", more, odd[i].why);
    }
    assert_unsupported("MptForCausalLM",
                       "'d_model':64,'n_layers':2,'n_heads':4,"
                       "'logit_scale':'inv_sqrt_d_model'",
                       "'logit_scale' in a model of this kind");
    assert_wrong("MptForCausalLM", "'attn_config':3", "'attn_config'");
}
END_TEST

START_TEST(bloom_560m)
{
    struct model *m = read_model(
        "{'apply_residual_connection_post_layernorm':false,"
        "'architectures':['BloomForCausalLM'],'bos_token_id':1,"
        "'eos_token_id':2,'layer_norm_epsilon':1e-05,"
        "'model_type':'bloom','n_embed':1024,'n_inner':null,'n_layer':24,"
        "'num_attention_heads':16,'offset_alibi':100,'pretraining_tp':1,"
        "'seq_length':2048,'slow_but_exact':false,'vocab_size':250880}");

    assert_sizes(&m->h, 24, 1024, 4096, 16, 16, 64);
    ck_assert(m->h.has_embedding_norm);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    assert_source(&m->source, false, false, false, true);
    assert_unsupported("BloomForCausalLM",
                       "'apply_residual_connection_post_layernorm':true",
                       "'apply_residual_connection_post_layernorm' true");
}
END_TEST

START_TEST(opt_1_3b)
{
    struct model *m = read_model(
        "{'_remove_final_layer_norm':false,'activation_function':'relu',"
        "'architectures':['OPTForCausalLM'],'bos_token_id':2,"
        "'do_layer_norm_before':true,'eos_token_id':2,'ffn_dim':8192,"
        "'hidden_size':2048,'max_position_embeddings':2048,"
        "'model_type':'opt','num_attention_heads':32,"
        "'num_hidden_layers':24,'pad_token_id':1,'vocab_size':50272,"
        "'word_embed_proj_dim':2048}");

    assert_sizes(&m->h, 24, 2048, 8192, 32, 32, 64);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_LEARNED);
    ck_assert_uint_eq(m->source.n_idle_positions, 2);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("OPTForCausalLM",
                   "'ffn_dim':96,'layer_norm_elementwise_affine':false");
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER_PLAIN);
}
END_TEST

/* Another arrangement of norms, another width of the embedding. */
START_TEST(opt_350m_is_refused)
{
    assert_unsupported("OPTForCausalLM",
                       "'ffn_dim':96,'do_layer_norm_before':false",
                       "'do_layer_norm_before'");
    assert_unsupported("OPTForCausalLM",
                       "'ffn_dim':96,'word_embed_proj_dim':32",
                       "'word_embed_proj_dim' other than 'hidden_size'");
    assert_unsupported("OPTForCausalLM",
                       "'ffn_dim':96,'_remove_final_layer_norm':true",
                       "'_remove_final_layer_norm'");
}
END_TEST

START_TEST(internlm2_5_7b)
{
    struct model *m = read_model(
        "{'architectures':['InternLM2ForCausalLM'],'bias':false,"
        "'bos_token_id':1,'eos_token_id':2,'hidden_act':'silu',"
        "'hidden_size':4096,'intermediate_size':14336,"
        "'max_position_embeddings':32768,'model_type':'internlm2',"
        "'num_attention_heads':32,'num_hidden_layers':32,"
        "'num_key_value_heads':8,'pretraining_tp':1,'rms_norm_eps':1e-05,"
        "'rope_scaling':{'type':'dynamic','factor':2.0},"
        "'rope_theta':1000000,'tie_word_embeddings':false,"
        "'vocab_size':92544}");

    assert_sizes(&m->h, 32, 4096, 14336, 32, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_DYNAMIC);
    assert_source(&m->source, false, false, false, true);
}
END_TEST

#define BAICHUAN(sizes)                                                       \
    "{'architectures':['BaichuanForCausalLM'],'bos_token_id':1,"              \
    "'eos_token_id':2,'hidden_act':'silu','model_type':'baichuan',"           \
    "'pad_token_id':0,'rms_norm_eps':1e-06,'tie_word_embeddings':false,"      \
    sizes "}"

START_TEST(baichuan_1_and_2)
{
    struct model *m = read_model(
        "{'architectures':['BaiChuanForCausalLM'],'bos_token_id':1,"
        "'eos_token_id':2,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':11008,'max_position_embeddings':4096,"
        "'model_type':'baichuan','num_attention_heads':32,"
        "'num_hidden_layers':32,'rms_norm_eps':1e-06,"
        "'tie_word_embeddings':false,'vocab_size':64000}");

    assert_sizes(&m->h, 32, 4096, 11008, 32, 32, 128);
    assert_llama_like(&m->h);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ROTARY);
    ck_assert(!m->source.has_unit_head);
    m = read_model(BAICHUAN(
        "'hidden_size':5120,'intermediate_size':13696,"
        "'model_max_length':4096,'num_attention_heads':40,"
        "'num_hidden_layers':40,'vocab_size':64000"));
    assert_sizes(&m->h, 40, 5120, 13696, 40, 40, 128);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI);
    ck_assert_uint_eq(m->h.context, 4096);
    ck_assert(!m->source.has_unit_head);
    m = read_model(BAICHUAN(
        "'hidden_size':4096,'intermediate_size':11008,"
        "'max_position_embeddings':4096,'model_max_length':4096,"
        "'num_attention_heads':32,'num_hidden_layers':32,"
        "'vocab_size':125696"));
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ROTARY);
    ck_assert(m->source.has_unit_head);
    m = read_model(BAICHUAN(
        "'hidden_size':5120,'intermediate_size':13696,"
        "'model_max_length':4096,'num_attention_heads':40,"
        "'num_hidden_layers':40,'vocab_size':125696,'z_loss_weight':0"));
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI);
    ck_assert(m->source.has_unit_head);
}
END_TEST

START_TEST(olmoe_1b_7b)
{
    struct model *m = read_model(
        "{'architectures':['OlmoeForCausalLM'],'attention_bias':false,"
        "'clip_qkv':null,'eos_token_id':50279,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':1024,"
        "'max_position_embeddings':4096,'model_type':'olmoe',"
        "'norm_topk_prob':false,'num_attention_heads':16,"
        "'num_experts':64,'num_experts_per_tok':8,"
        "'num_hidden_layers':16,'num_key_value_heads':16,"
        "'rope_scaling':null,'rope_theta':10000.0,"
        "'tie_word_embeddings':false,'vocab_size':50304}");

    ck_assert_uint_eq(m->h.n_experts, 64);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.expert_dim, 1024);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert(!m->h.router_renormalises);
    assert_unsupported("OlmoeForCausalLM", "'clip_qkv':8.0",
                       "'clip_qkv' in a model of this kind");
}
END_TEST

START_TEST(codeshell_7b)
{
    struct model *m = read_model(
        "{'activation_function':'gelu_pytorch_tanh',"
        "'architectures':['CodeShellForCausalLM'],"
        "'attention_softmax_in_fp32':true,'bos_token_id':70000,"
        "'eos_token_id':70000,'group_query_attention':true,"
        "'layer_norm_epsilon':1e-05,'model_type':'kclgpt','n_embd':4096,"
        "'n_head':32,'n_inner':16384,'n_layer':42,'n_positions':8192,"
        "'num_query_groups':8,'position_embedding_type':'rope',"
        "'rope_scaling':null,'scale_attn_weights':true,'vocab_size':70144}");

    ck_assert_str_eq(m->h.architecture, "codeshell");
    assert_sizes(&m->h, 42, 4096, 16384, 32, 8, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ROTARY);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(!m->h.is_gated && !m->source.is_transposed);
    assert_near(m->h.rope_theta, 10000);
    assert_unsupported("CodeShellForCausalLM",
                       "'position_embedding_type':'learned'",
                       "'position_embedding_type' 'learned'");
    assert_unsupported("CodeShellForCausalLM",
                       "'group_query_attention':false",
                       "'group_query_attention' false");
}
END_TEST

#define JAIS                                                                  \
    "'activation_function':'swiglu','position_embedding_type':'alibi'"

/* The first files call the scales otherwise. */
START_TEST(jais_590m_and_13b)
{
    struct model *m = read_model(
        "{'architectures':['JAISLMHeadModel'],'alibi_scaling':null,"
        "'bos_token_id':0,'eos_token_id':0,'layer_norm_epsilon':1e-05,"
        "'model_type':'jais','mup_embeddings_scale':9.1705785388303,"
        "'mup_output_alpha':1.09518349815769,"
        "'mup_scale_qk_dot_by_d':true,"
        "'mup_width_scale':0.16666666666666666,'n_embd':1536,'n_head':12,"
        "'n_inner':4096,'n_layer':18,'n_positions':2048,"
        "'scale_attn_weights':true,'vocab_size':84992," JAIS "}");

    ck_assert_str_eq(m->h.architecture, "jais");
    assert_sizes(&m->h, 18, 1536, 4096, 12, 12, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert(m->h.is_gated && m->source.is_transposed);
    assert_near(m->h.attn_scale, 1.0 / 128);
    assert_near(m->h.embedding_scale, 9.1705785388303);
    assert_near(m->h.logit_scale, 1.09518349815769 / 6);
    m = read_small("JAISLMHeadModel",
                   JAIS ",'embeddings_scale':14.6,'width_scale':0.22,"
                        "'scale_qk_dot_by_d':false");
    assert_near(m->h.embedding_scale, 14.6);
    assert_near(m->h.logit_scale, 0.22);
    ck_assert(!(m->h.attn_scale > 0));
    assert_unsupported("JAISLMHeadModel", "'activation_function':'swiglu'",
                       "'position_embedding_type' 'learned'");
    assert_unsupported("JAISLMHeadModel", "'position_embedding_type':'alibi'",
                       "'activation_function' 'gelu'");
    assert_unsupported("JAISLMHeadModel",
                       JAIS ",'alibi_scaling':{'type':'linear'}",
                       "'alibi_scaling'");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        gpt_neo,
        starcoder2_3b,
        gpt_j_6b,
        a_codegen_is_cut_in_four,
        persimmon_8b,
        dbrx,
        mpt_30b,
        mpt_without_alibi_is_refused,
        bloom_560m,
        opt_1_3b,
        opt_350m_is_refused,
        internlm2_5_7b,
        baichuan_1_and_2,
        olmoe_1b_7b,
        codeshell_7b,
        jais_590m_and_13b,
    };

    return RUN_SUITE("hf_older", tests);
}
