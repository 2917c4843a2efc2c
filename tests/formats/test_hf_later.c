/*
 * test_hf_later.c - the families of config.json, by published configurations
 * (without what no computation depends on): those of 2025 and 2026.
 */
#include "config.h"

#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/model/rope_scaling.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

START_TEST(gpt_oss_20b)
{
    struct model *m = read_model(
        "{'architectures':['GptOssForCausalLM'],'attention_bias':true,"
        "'attention_dropout':0.0,'eos_token_id':200002,"
        "'experts_per_token':4,'head_dim':64,'hidden_act':'silu',"
        "'hidden_size':2880,'initial_context_length':4096,"
        "'intermediate_size':2880,'layer_types':["
        "'sliding_attention','full_attention','sliding_attention',"
        "'full_attention','sliding_attention','full_attention'],"
        "'max_position_embeddings':131072,'model_type':'gpt_oss',"
        "'num_attention_heads':64,'num_experts_per_tok':4,"
        "'num_hidden_layers':6,'num_key_value_heads':8,"
        "'num_local_experts':32,'rms_norm_eps':1e-05,'rope_scaling':{"
        "'beta_fast':32.0,'beta_slow':1.0,'factor':32.0,"
        "'original_max_position_embeddings':4096,'rope_type':'yarn',"
        "'truncate':false},'rope_theta':150000,'router_aux_loss_coef':0.9,"
        "'sliding_window':128,'swiglu_limit':7.0,"
        "'tie_word_embeddings':false,'vocab_size':201088}");

    ck_assert_str_eq(m->h.architecture, "gpt-oss");
    assert_sizes(&m->h, 6, 2880, 2880, 64, 8, 64);
    assert_source(&m->source, false, false, false, false);
    ck_assert(m->source.has_turned_experts && m->source.is_gate_up_by_row);
    ck_assert(m->h.has_sinks);
    ck_assert_uint_eq(m->h.sliding_window, 128);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x");
    ck_assert_uint_eq(m->h.n_experts, 32);
    ck_assert_uint_eq(m->h.n_experts_used, 4);
    ck_assert_uint_eq(m->h.expert_dim, 2880);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX_CHOSEN);
    ck_assert_double_eq(m->h.activation_slope, 1.702);
    ck_assert_double_eq(m->h.glu_limit, 7);
    ck_assert_double_eq(m->h.glu_offset, 1);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    ck_assert(m->h.rope_ramp_exact);
    ck_assert_double_eq(m->h.rope_factor, 32);
    assert_near(m->h.rope_attention_factor, 1 + 0.1 * log(32));
    m = read_small("GptOssForCausalLM", "'rope_scaling':{'type':'linear',"
                                        "'factor':2},'swiglu_alpha':1.5");
    ck_assert_uint_eq(m->h.head_dim, 64);
    ck_assert_str_eq(m->h.unsupported, "'swiglu_alpha' 1.5");
    assert_unsupported("GptOssForCausalLM",
                       "'rope_scaling':{'type':'linear','factor':2},"
                       "'swiglu_limit':5",
                       "'swiglu_limit' 5");
}
END_TEST

START_TEST(llama_4_scout)
{
    struct model *m = read_model(
        "{'architectures':['Llama4ForConditionalGeneration'],"
        "'boi_token_index':200080,'image_token_index':200092,"
        "'model_type':'llama4','text_config':{'attention_bias':false,"
        "'attention_chunk_size':8192,'attn_scale':0.1,"
        "'attn_temperature_tuning':4,'bos_token_id':200000,"
        "'eos_token_id':[200001,200007,200008],'floor_scale':8192,"
        "'for_llm_compressor':false,'head_dim':128,'hidden_act':'silu',"
        "'hidden_size':5120,'interleave_moe_layer_step':1,"
        "'intermediate_size':8192,'intermediate_size_mlp':16384,"
        "'max_position_embeddings':10485760,'model_type':'llama4_text',"
        "'no_rope_layers':[],'num_attention_heads':40,"
        "'num_experts_per_tok':1,'num_hidden_layers':48,"
        "'num_key_value_heads':8,'num_local_experts':16,"
        "'rms_norm_eps':1e-05,'rope_scaling':{'factor':16.0,"
        "'high_freq_factor':1.0,'low_freq_factor':1.0,"
        "'original_max_position_embeddings':8192,'rope_type':'llama3'},"
        "'rope_theta':500000.0,'router_jitter_noise':0.0,"
        "'use_qk_norm':true,'vocab_size':202048},"
        "'tie_word_embeddings':false,'vision_config':{"
        "'model_type':'llama4_vision_model'}}");

    ck_assert_str_eq(m->h.architecture, "llama4");
    assert_sizes(&m->h, 48, 5120, 16384, 40, 8, 128);
    assert_source(&m->source, true, false, false, false);
    ck_assert(m->source.has_turned_experts && !m->source.is_gate_up_by_row);
    ck_assert_uint_eq(m->h.attention_chunk, 8192);
    assert_layers(&m->h, LMQ_LAYER_FULL, "...x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "...x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_BARE);
    ck_assert(m->h.qk_norm_late && m->h.score_growth_still);
    ck_assert_double_eq(m->h.score_growth, 0.1);
    ck_assert_uint_eq(m->h.score_growth_period, 8192);
    ck_assert_uint_eq(m->h.score_growth_shift, 1);
    ck_assert_uint_eq(m->h.expert_dim, 8192);
    ck_assert_uint_eq(m->h.shared_dim, 8192);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_scales_input);
    ck_assert_uint_eq(m->h.n_eos, 3);
    /* Between the high and the low frequencies there is nothing. */
    ck_assert_double_eq(lmq_rope_scale_llama3(&m->h, 1e-3), 1e-3);
    ck_assert_double_eq(lmq_rope_scale_llama3(&m->h, 7e-4), 7e-4 / 16);
    /* Maverick */
    m = read_small("Llama4ForCausalLM",
                   "'interleave_moe_layer_step':2,'use_qk_norm':false,"
                   "'attn_temperature_tuning':false");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_double_eq(m->h.score_growth, 0);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.");
    m = read_small("Llama4ForCausalLM",
                   "'moe_layers':[0,99],'no_rope_layers':"
                   "[0,1,1,1,1,1,1,1]");
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".xxxxxxx");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x.......");
    assert_wrong("Llama4ForCausalLM", "'no_rope_layers':[1,0]",
                 "'no_rope_layers'");
    assert_wrong("Llama4ForCausalLM", "'interleave_moe_layer_step':0",
                 "'interleave_moe_layer_step'");
    assert_wrong("Llama4ForCausalLM", "'moe_layers':['x']", "'moe_layers'");
}
END_TEST

START_TEST(glm_4_5_air)
{
    struct model *m = read_model(
        "{'architectures':['Glm4MoeForCausalLM'],'attention_bias':true,"
        "'attention_dropout':0.0,'eos_token_id':[151329,151336,151338],"
        "'first_k_dense_replace':1,'head_dim':128,'hidden_act':'silu',"
        "'hidden_size':4096,'intermediate_size':10944,"
        "'max_position_embeddings':131072,'model_type':'glm4_moe',"
        "'moe_intermediate_size':1408,'n_group':1,'n_routed_experts':128,"
        "'n_shared_experts':1,'norm_topk_prob':true,"
        "'num_attention_heads':96,'num_experts_per_tok':8,"
        "'num_hidden_layers':46,'num_key_value_heads':8,"
        "'num_nextn_predict_layers':1,'partial_rotary_factor':0.5,"
        "'rms_norm_eps':1e-05,'rope_scaling':null,'rope_theta':1000000,"
        "'routed_scaling_factor':1.0,'tie_word_embeddings':false,"
        "'topk_group':1,'use_qk_norm':false,'vocab_size':151552}");

    ck_assert_str_eq(m->h.architecture, "glm4moe");
    assert_sizes(&m->h, 46, 4096, 10944, 96, 8, 128);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.shared_dim, 1408);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_corrects && m->h.router_renormalises);
    ck_assert_uint_eq(m->h.layers[0], LMQ_LAYER_DENSE);
    ck_assert_uint_eq(m->h.layers[1], 0);
    m = read_small("Glm4MoeForCausalLM",
                   "'use_qk_norm':true,'n_shared_experts':null");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.shared_dim, 0);
    assert_wrong("Glm4MoeForCausalLM", "'num_nextn_predict_layers':5000",
                 "'num_nextn_predict_layers'");
}
END_TEST

START_TEST(dots_llm1)
{
    struct model *m = read_small(
        "Dots1ForCausalLM",
        "'first_k_dense_replace':1,'moe_intermediate_size':32,"
        "'n_routed_experts':128,'n_shared_experts':2,"
        "'norm_topk_prob':true,'num_experts_per_tok':6,"
        "'routed_scaling_factor':2.5,'scoring_func':'noaux_tc',"
        "'sliding_window':null,'topk_method':'noaux_tc'");

    ck_assert_str_eq(m->h.architecture, "dots1");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.shared_dim, 64);
    ck_assert_double_eq(m->h.router_scale, 2.5);
    ck_assert_uint_eq(m->h.layers[0], LMQ_LAYER_DENSE);
    assert_unsupported("Dots1ForCausalLM", "'scoring_func':'softmax'",
                       "'scoring_func' 'softmax'");
}
END_TEST

START_TEST(minimax_m2)
{
    struct model *m = read_small(
        "MiniMaxM2ForCausalLM",
        "'head_dim':32,'num_experts_per_tok':8,'num_local_experts':256,"
        "'num_mtp_modules':3,'qk_norm_type':'per_layer','rotary_dim':16,"
        "'scoring_func':'sigmoid','shared_intermediate_size':0,"
        "'use_qk_norm':true,'use_routing_bias':true");

    ck_assert_str_eq(m->h.architecture, "minimax-m2");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert_uint_eq(m->h.rotary_dim, 16);
    ck_assert_double_eq(m->h.rope_theta, 5e6);
    ck_assert_uint_eq(m->h.expert_dim, 96);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_corrects && m->h.router_renormalises);
    assert_unsupported("MiniMaxM2ForCausalLM", "'scoring_func':'softmax'",
                       "'scoring_func' 'softmax'");
    assert_unsupported("MiniMaxM2ForCausalLM",
                       "'shared_intermediate_size':64",
                       "'shared_intermediate_size' 64");
}
END_TEST

#define MINISTRAL_ROPE                                                        \
    "'rope_parameters':{'beta_fast':32.0,'beta_slow':1.0,'factor':16.0,"      \
    "'llama_4_scaling_beta':0.1,'mscale':1.0,'mscale_all_dim':1.0,"           \
    "'original_max_position_embeddings':16384,'rope_theta':1000000.0,"        \
    "'rope_type':'yarn','type':'yarn'}"

START_TEST(ministral_3)
{
    struct model *m =
        read_small("Mistral3ForConditionalGeneration",
                   "'text_config':{'model_type':'ministral3','head_dim':8,"
                   SMALL "," MINISTRAL_ROPE "}");

    ck_assert_str_eq(m->h.architecture, "mistral3");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.head_dim, 8);
    ck_assert_double_eq(m->h.score_growth, 0.1);
    ck_assert_uint_eq(m->h.score_growth_period, 16384);
    ck_assert_uint_eq(m->h.score_growth_shift, 0);
    ck_assert(!m->h.score_growth_still);
    ck_assert_double_eq(m->h.rope_attention_factor, 1);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    m = read_small("Ministral3ForCausalLM",
                   "'sliding_window':7,'rope_parameters':{'rope_type':'yarn',"
                   "'factor':16.0,'max_position_embeddings':16384,"
                   "'original_max_position_embeddings':16384}");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.sliding_window, 7);
    /* Mistral Small has the text part of an older family. */
    m = read_small("Mistral3ForConditionalGeneration",
                   "'text_config':{'model_type':'mistral'," SMALL
                   ",'sliding_window':null}");
    ck_assert_str_eq(m->h.architecture, "mistral");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    assert_unsupported("LlamaForCausalLM", MINISTRAL_ROPE,
                       "'llama_4_scaling_beta' in rotary scaling");
}
END_TEST

START_TEST(hunyuan_a13b)
{
    struct model *m = read_small(
        "HunYuanMoEV1ForCausalLM",
        "'moe_intermediate_size':[32,32],'moe_layer_num_skipped':0,"
        "'moe_topk':[8,8],'num_experts':64,'num_shared_expert':[1,1],"
        "'rope_scaling':{'alpha':1000.0,'beta_fast':32,'beta_slow':1,"
        "'factor':1.0,'mscale':1.0,'mscale_all_dim':1.0,"
        "'type':'dynamic'},'use_cla':false,'use_mixed_mlp_moe':true");

    ck_assert_str_eq(m->h.architecture, "hunyuan-moe");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.n_experts, 64);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.expert_dim, 32);
    ck_assert_uint_eq(m->h.shared_dim, 96);
    ck_assert(m->h.router_renormalises && m->h.qk_norm_late);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_NTK);
    ck_assert_double_eq(m->h.rope_factor, 1000);
    m = read_small("HunYuanDenseV1ForCausalLM", "'use_qk_norm':false");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert(!m->h.qk_norm_late);
    assert_unsupported("HunYuanMoEV1ForCausalLM",
                       "'num_experts':[2,3],'moe_topk':1",
                       "layers that differ in 'num_experts'");
    assert_unsupported("HunYuanDenseV1ForCausalLM", "'use_cla':true",
                       "'use_cla' true");
    assert_unsupported("HunYuanMoEV1ForCausalLM", "'moe_layer_num_skipped':1",
                       "'moe_layer_num_skipped' 1");
    assert_wrong("HunYuanMoEV1ForCausalLM", "'moe_topk':[-1]", "'moe_topk'");
    assert_unsupported("LlamaForCausalLM",
                       "'rope_scaling':{'alpha':1000.0,'factor':1.0,"
                       "'type':'dynamic'}",
                       "'alpha' in rotary scaling");
}
END_TEST

START_TEST(ernie_4_5)
{
    struct model *m = read_small(
        "Ernie4_5_MoeForCausalLM",
        "'moe_capacity':[64,64,64],'moe_intermediate_size':24,'moe_k':2,"
        "'moe_layer_end_index':5,'moe_layer_interval':1,"
        "'moe_layer_start_index':1,'moe_num_experts':6,"
        "'moe_num_shared_experts':2,'num_nextn_predict_layers':1");

    ck_assert_str_eq(m->h.architecture, "ernie4_5-moe");
    ck_assert_str_eq(m->h.unsupported, "");
    assert_source(&m->source, true, false, false, false);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.....xx");
    ck_assert_uint_eq(m->h.shared_dim, 48);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert(m->h.router_corrects && m->h.router_renormalises);
    assert_unsupported("Ernie4_5_MoeForCausalLM", "'moe_norm_min':1e-12", "");
    assert_unsupported("Ernie4_5_MoeForCausalLM", "'moe_norm_min':0.5",
                       "'moe_norm_min' 0.5");
    m = read_small("Ernie4_5ForCausalLM", "'head_dim':16");
    ck_assert_str_eq(m->h.architecture, "ernie4_5");
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    assert_source(&m->source, true, false, false, false);
}
END_TEST

/* Where nothing is said of scaling, the library's versions differ. */
START_TEST(apertus_has_learned_its_activation)
{
    struct model *m = read_small(
        "ApertusForCausalLM",
        "'hidden_act':'xielu','rope_parameters':{'rope_type':'llama3',"
        "'rope_theta':12000000.0,'factor':8.0,'low_freq_factor':1.0,"
        "'high_freq_factor':4.0,'original_max_position_embeddings':8192}");

    ck_assert_str_eq(m->h.architecture, "apertus");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_XIELU);
    ck_assert(!m->h.is_gated);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LLAMA3);
    m = read_small("ApertusForCausalLM", "'rope_theta':12000000.0");
    ck_assert_str_eq(m->h.unsupported,
                     "a model of this kind without 'rope_parameters'");
}
END_TEST

START_TEST(nemotron_and_arcee_square)
{
    struct model *m = read_small("NemotronForCausalLM", "'norm_eps':3e-05");

    ck_assert_str_eq(m->h.architecture, "nemotron");
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_double_eq(m->h.norm_eps, 3e-5);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU2);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
    assert_unsupported("NemotronForCausalLM",
                       "'rope_scaling':{'type':'linear','factor':2}",
                       "rotary scaling in a model of this kind, which "
                       "versions of the library take differently");
    m = read_small("ArceeForCausalLM", "'hidden_act':'relu2'");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU2);
    ck_assert(!m->h.is_gated);
}
END_TEST

START_TEST(a_word_for_each_layer_says_which_are_dense)
{
    struct model *m = read_small("Glm4MoeLiteForCausalLM",
                                 "'mlp_layer_types':['dense','sparse',"
                                 "'dense','sparse','sparse','sparse',"
                                 "'sparse','dense']");

    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.x....x");
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    m = read_small("Glm4MoeLiteForCausalLM", "'n_group':1");
    ck_assert_uint_eq(m->h.head_dim, 192 + 64);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    m = read_small("ExaoneMoeForCausalLM",
                   "'mlp_layer_types':['sparse','sparse','sparse','sparse',"
                   "'sparse','sparse','sparse','dense']");
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".......x");
    m = read_small("ExaoneMoEForCausalLM",
                   "'is_moe_layer':[false,true,true,false,true,true,true,"
                   "true]");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x..x....");
    assert_wrong("ExaoneMoEForCausalLM", "'is_moe_layer':[false]",
                 "names 1 of 8 layers");
    assert_wrong("ExaoneMoEForCausalLM", "'is_moe_layer':[0,1,1,1,1,1,1,1]",
                 "'is_moe_layer' in the configuration is no list of true");
    assert_wrong("Glm4MoeLiteForCausalLM", "'mlp_layer_types':['dense']",
                 "names 1 of 8 layers");
    assert_unsupported("ExaoneMoeForCausalLM",
                       "'mlp_layer_types':['sparse','sparse','sparse',"
                       "'sparse','sparse','sparse','sparse','odd']",
                       "'odd' in 'mlp_layer_types'");
}
END_TEST

START_TEST(a_granite_4_is_a_granite_where_it_has_no_mamba)
{
    static const char attention[] =
        "'layer_types':['attention','attention','attention','attention',"
        "'attention','attention','attention','attention'],"
        "'shared_intermediate_size':48,'position_embedding_type':'rope',";
    char keys[512];
    struct model *m;

    snprintf(keys, sizeof(keys), "%s'num_local_experts':0", attention);
    m = read_small("GraniteMoeHybridForCausalLM", keys);
    ck_assert_str_eq(m->h.architecture, "granite");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.hidden_dim, 48);
    ck_assert_uint_eq(m->h.n_experts, 0);
    assert_layers(&m->h, LMQ_LAYER_NOPE, "........");
    snprintf(keys, sizeof(keys), "%s'num_local_experts':4", attention);
    m = read_small("GraniteMoeHybridForCausalLM", keys);
    ck_assert_str_eq(m->h.architecture, "granitemoe");
    ck_assert_uint_eq(m->h.shared_dim, 48);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX_CHOSEN);
    assert_unsupported("GraniteMoeHybridForCausalLM",
                       "'num_local_experts':0,'mamba_n_heads':4,'layer_types':"
                       "['rwkv','mamba','attention','mamba','mamba','mamba',"
                       "'mamba','mamba']",
                       "'rwkv' in 'layer_types'");
}
END_TEST

START_TEST(a_helium_turns_slowly)
{
    struct model *m = read_small("HeliumForCausalLM", "'head_dim':16");

    ck_assert_double_eq(m->h.rope_theta, 100000);
}
END_TEST

START_TEST(a_cwm_says_how_it_turns)
{
    struct model *m = read_small("CwmForCausalLM",
                                 "'rope_parameters':{'rope_theta':1e6,"
                                 "'rope_type':'default'}");

    ck_assert_str_eq(m->h.unsupported, "");
    assert_unsupported("CwmForCausalLM", "'rope_scaling':null",
                       "a model of this kind without 'rope_parameters'");
    assert_layers(&m->h, LMQ_LAYER_FULL, "x...x...");
    ck_assert_uint_eq(m->h.sliding_window, 8192);
}
END_TEST

START_TEST(layers_without_a_window_stand_still)
{
    struct model *m = read_small("Cohere2ForCausalLM",
                                 "'sliding_window':4096,"
                                 "'sliding_window_pattern':4,"
                                 "'logit_scale':0.25");

    ck_assert_str_eq(m->h.architecture, "cohere2");
    assert_layers(&m->h, LMQ_LAYER_FULL, "...x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "...x");
    m = read_small("Exaone4ForCausalLM",
                   "'sliding_window':16,'sliding_window_pattern':'LLG'");
    ck_assert_str_eq(m->h.architecture, "exaone4");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "..x..x.x");
    m = read_small("Exaone4ForCausalLM", "'sliding_window':null");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".");
    assert_wrong("Exaone4ForCausalLM", "'sliding_window_pattern':'LX'",
                 "'sliding_window_pattern'");
    assert_wrong("Cohere2ForCausalLM", "'sliding_window_pattern':0",
                 "'sliding_window_pattern'");
}
END_TEST

/* Before anything walks through them. */
START_TEST(layers_beyond_all_are_refused)
{
    struct lmq_error err = {0};
    struct model model;
    bool is_known;

    ck_assert_int_eq(
        parse_config("{'architectures':['Exaone4ForCausalLM'],"
                     "'hidden_size':64,'intermediate_size':96,"
                     "'num_hidden_layers':4294967295,"
                     "'num_attention_heads':4,'num_key_value_heads':4,"
                     "'vocab_size':100,'sliding_window':16,"
                     "'sliding_window_pattern':'LLG'}",
                     &model, &is_known, &err),
        LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "n_layers is 4294967295"));
}
END_TEST

#define STANDS_STILL                                                          \
    "a 'position_embedding_type' that is not 'rope', which versions of the "  \
    "library take differently"

START_TEST(granite_3_1_experts)
{
    struct model *m = read_small(
        "GraniteMoeSharedForCausalLM",
        "'attention_multiplier':0.1,'logits_scaling':6.0,"
        "'num_local_experts':32,'shared_intermediate_size':24");

    ck_assert_str_eq(m->h.architecture, "granitemoe");
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX_CHOSEN);
    ck_assert_uint_eq(m->h.n_experts, 32);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    ck_assert_uint_eq(m->h.expert_dim, 96);
    ck_assert_uint_eq(m->h.shared_dim, 24);
    assert_near(m->h.logit_scale, 1.0 / 6);
    assert_unsupported("GraniteMoeForCausalLM",
                       "'position_embedding_type':'rope'", "");
    assert_unsupported("GraniteMoeForCausalLM",
                       "'position_embedding_type':'nope'", STANDS_STILL);
    assert_unsupported("GraniteMoeSharedForCausalLM",
                       "'position_embedding_type':null", STANDS_STILL);
}
END_TEST

/* ---- Models of several senses ---- */

#define SECTIONS                                                              \
    "'rope_scaling':{'mrope_section':[16,24,24],'type':'mrope'}"

START_TEST(text_parts_are_families)
{
    struct model *m = read_small("Qwen2_5_VLForConditionalGeneration",
                                 SECTIONS);

    /* As files of 2024 have it */
    ck_assert_str_eq(m->h.architecture, "qwen2");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_PLAIN);
    m = read_small("Qwen2VLForConditionalGeneration",
                   "'text_config':{'model_type':'qwen2_vl_text',"
                   "'num_hidden_layers':3,'hidden_size':32,"
                   "'intermediate_size':48,'num_attention_heads':2,"
                   "'num_key_value_heads':1,'vocab_size':50," SECTIONS "}");
    ck_assert_str_eq(m->h.architecture, "qwen2");
    ck_assert_uint_eq(m->h.n_layers, 3);
    m = read_small("Qwen3VLMoeForConditionalGeneration",
                   "'text_config':{'model_type':'qwen3_vl_moe_text'," SMALL
                   ",'head_dim':16,'rope_theta':5e6,'rope_scaling':{"
                   "'mrope_interleaved':true,'mrope_section':[24,20,20],"
                   "'rope_type':'default'}}");
    ck_assert_str_eq(m->h.architecture, "qwen3moe");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert(m->h.router_renormalises && m->source.has_turned_experts);
    m = read_small("LlavaForConditionalGeneration",
                   "'text_config':{'model_type':'gemma2'," SMALL "}");
    ck_assert_str_eq(m->h.architecture, "gemma2");
    m = read_small("VoxtralForConditionalGeneration",
                   "'text_config':{'model_type':'llama'," SMALL "}");
    ck_assert_str_eq(m->h.architecture, "llama");
    ck_assert_str_eq(m->h.unsupported, "");
    assert_wrong("Qwen3VLForConditionalGeneration", "'x':1", "'text_config'");
    assert_unsupported("LlamaForCausalLM", SECTIONS,
                       "'mrope_section' in rotary scaling");
}
END_TEST

/* As older versions of the library write text parts, and LLaVA 1.5 is
 * published: without what equals the default of their class. */
START_TEST(text_parts_have_the_sizes_of_their_class)
{
    static const struct {
        const char *class, *type, *architecture;
        uint32_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size;
    } cases[] = {
        {"LlavaForConditionalGeneration", "llama", "llama", 4096, 11008, 32,
         32, 32, 32000},
        {"LlavaNextForConditionalGeneration", "mistral", "mistral", 4096,
         14336, 32, 32, 8, 32000},
        {"LlavaNextForConditionalGeneration", "granite", "granite", 4096,
         11008, 32, 32, 32, 32000},
        {"LlavaOnevisionForConditionalGeneration", "qwen2", "qwen2", 4096,
         22016, 32, 32, 32, 151936},
        {"InternVLForConditionalGeneration", "qwen3", "qwen3", 4096, 22016,
         32, 32, 32, 151936},
        {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text", "qwen2",
         8192, 29568, 80, 64, 8, 152064},
        {"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text",
         "qwen3moe", 2048, 5632, 24, 16, 16, 151936},
        {"VoxtralForConditionalGeneration", "llama", "llama", 3072, 8192, 30,
         32, 8, 131072},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model model;
        struct lmq_error err = {0};
        char text[256];
        bool is_known;
        snprintf(text, sizeof(text),
                 "{'architectures':['%s'],'text_config':{'model_type':'%s'}}",
                 cases[i].class, cases[i].type);
        ck_assert_int_eq(parse_config(text, &model, &is_known, &err), LMQ_OK);
        ck_assert(is_known);
        ck_assert_str_eq(model.h.architecture, cases[i].architecture);
        ck_assert_uint_eq(model.h.dim, cases[i].dim);
        ck_assert_uint_eq(model.h.hidden_dim, cases[i].hidden_dim);
        ck_assert_uint_eq(model.h.n_layers, cases[i].n_layers);
        ck_assert_uint_eq(model.h.n_heads, cases[i].n_heads);
        ck_assert_uint_eq(model.h.n_kv_heads, cases[i].n_kv_heads);
        ck_assert_uint_eq(model.h.vocab_size, cases[i].vocab_size);
    }
}
END_TEST

/* A Llama; who says nothing of its kind means the same. */
START_TEST(text_of_voxtral_has_defaults_of_its_own)
{
    static const char *const kinds[] = {"'model_type':'llama',", ""};
    char more[256];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        snprintf(more, sizeof(more), "'text_config':{%s" SMALL "}", kinds[i]);
        struct model *m = read_small("VoxtralForConditionalGeneration", more);
        ck_assert_str_eq(m->h.architecture, "llama");
        ck_assert_str_eq(m->h.unsupported, "");
        ck_assert_double_eq(m->h.rope_theta, 1e8);
        ck_assert_double_eq(m->h.norm_eps, 1e-5);
        ck_assert_uint_eq(m->h.head_dim, 128);
        ck_assert_uint_eq(m->h.context, 131072);
    }
    ck_assert_double_eq(
        read_small("LlamaForCausalLM", "")->h.rope_theta, 10000);
    ck_assert_str_eq(
        read_small("VoxtralForConditionalGeneration",
                   "'text_config':{'model_type':'mistral'," SMALL "}")
            ->h.architecture,
        "mistral");
}
END_TEST

START_TEST(text_parts_of_no_family_are_refused)
{
    struct model model;
    struct lmq_error err = {0};
    bool is_known;

    ck_assert_int_eq(
        parse_config("{'architectures':['LlavaForConditionalGeneration'],"
                     "'text_config':{'model_type':'x'," SMALL "}}",
                     &model, &is_known, &err),
        LMQ_OK);
    ck_assert(!is_known);
    ck_assert_str_eq(model.h.unsupported,
                     "text of the kind 'x' in 'LlavaForConditionalGeneration'");
    ck_assert_int_eq(
        parse_config("{'architectures':['LlavaForConditionalGeneration'],"
                     "'text_config':{'model_type':'llava'," SMALL "}}",
                     &model, &is_known, &err),
        LMQ_OK);
    ck_assert(!is_known);
    ck_assert_int_eq(
        parse_config("{'architectures':['GotOcr2ForConditionalGeneration'],"
                     "'text_config':{" SMALL "}}",
                     &model, &is_known, &err),
        LMQ_OK);
    ck_assert(!is_known);
    ck_assert_str_eq(model.h.unsupported,
                     "text of no kind ('text_config' has no 'model_type') in "
                     "'GotOcr2ForConditionalGeneration'");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        gpt_oss_20b,
        llama_4_scout,
        glm_4_5_air,
        dots_llm1,
        minimax_m2,
        ministral_3,
        hunyuan_a13b,
        ernie_4_5,
        nemotron_and_arcee_square,
        apertus_has_learned_its_activation,
        layers_without_a_window_stand_still,
        layers_beyond_all_are_refused,
        granite_3_1_experts,
        text_parts_are_families,
        text_parts_have_the_sizes_of_their_class,
        text_of_voxtral_has_defaults_of_its_own,
        text_parts_of_no_family_are_refused,
        a_word_for_each_layer_says_which_are_dense,
        a_granite_4_is_a_granite_where_it_has_no_mamba,
        a_helium_turns_slowly,
        a_cwm_says_how_it_turns,
    };

    return RUN_SUITE("hf_later", tests);
}
