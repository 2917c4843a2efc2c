/*
 * test_hf_latest.c - the families of config.json that came last: Trinity,
 * Hunyuan 3, Mellum, HyperCLOVA X, MiniCPM, EXAONE 3, the first DeepSeek with
 * experts, V3.2, Command A with experts, Granite with windows, Ling, Phi 3.5,
 * MiMo V2.
 */
#include "config.h"

#include <math.h>

#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

START_TEST(a_trinity_turns_where_it_has_windows)
{
    struct model *m = read_small("AfmoeForCausalLM",
                                 "'num_dense_layers':2,'mup_enabled':true");

    assert_layers(&m->h, LMQ_LAYER_FULL, "...x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "...x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx......");
    assert_near(m->h.embedding_scale, 8);
    ck_assert(m->h.has_attn_gate && m->h.router_corrects);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(m->h.shared_dim, 2 * 1408);
    m = read_small("AfmoeForCausalLM", "'global_attn_every_n_layers':2,"
                                       "'sliding_window':null");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".x");
    assert_near(m->h.embedding_scale, 1);
    assert_unsupported("AfmoeForCausalLM", "'route_norm':false",
                       "'route_norm' false");
    assert_unsupported("AfmoeForCausalLM", "'score_func':'softmax'",
                       "'score_func' 'softmax'");
}
END_TEST

START_TEST(a_hunyuan_3_chooses_by_sigmoid)
{
    struct model *m = read_small("HYV3ForCausalLM",
                                 "'num_nextn_predict_layers':1");

    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    ck_assert(m->h.router_corrects && m->h.router_renormalises);
    ck_assert_uint_eq(m->h.shared_dim, 1536);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    assert_near(m->h.router_scale, 2.826);
    m = read_small("HYV3ForCausalLM",
                   "'num_shared_experts':null,'mlp_layer_types':['sparse',"
                   "'dense','sparse','sparse','sparse','sparse','sparse',"
                   "'dense']");
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".x.....x");
    ck_assert_uint_eq(m->h.shared_dim, 0);
    assert_unsupported("HYV3ForCausalLM", "'qk_norm':false",
                       "'qk_norm' false");
    assert_unsupported("HYV3ForCausalLM", "'moe_router_use_sigmoid':[]",
                       "'moe_router_use_sigmoid'");
}
END_TEST

START_TEST(a_mellum_says_which_layers_have_windows)
{
    struct model *m = read_small("MellumForCausalLM", "'norm_topk_prob':true");

    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert(m->h.router_renormalises);
    m = read_small("MellumForCausalLM",
                   "'layer_types':['full_attention','sliding_attention',"
                   "'sliding_attention','sliding_attention',"
                   "'full_attention','sliding_attention',"
                   "'sliding_attention','sliding_attention']");
    assert_layers(&m->h, LMQ_LAYER_FULL, "x...");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.sliding_window, 1024);
    assert_near(m->h.rope_theta, 500000);
    assert_near(m->h.rope_local_theta, 10000);
    assert_unsupported("MellumForCausalLM", "'rope_theta':20000",
                       "a 'rope_theta' of 20000, which versions of the "
                       "library take differently");
    assert_wrong("MellumForCausalLM",
                 "'sliding_window':null,'layer_types':['full_attention',"
                 "'full_attention','sliding_attention','full_attention',"
                 "'full_attention','full_attention','full_attention',"
                 "'full_attention']",
                 "gives layer 2 a window, and there is none");
    assert_unsupported("MellumForCausalLM",
                       "'rope_parameters':{'full_attention':{'rope_theta':"
                       "500000},'sliding_attention':{'rope_theta':10000,"
                       "'partial_rotary_factor':0.5}}",
                       "rotary scaling of layers with a window");
}
END_TEST

START_TEST(a_flint_sees_everything_in_the_first_layers_and_in_the_last)
{
    struct model *m = read_small("FlintForCausalLM", "'head_dim':8");

    assert_layers(&m->h, LMQ_LAYER_FULL, "xx...x.x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "xx...x.x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx......");
    ck_assert_uint_eq(m->h.sliding_window, 513);
    ck_assert_uint_eq(m->h.shared_dim, 1024);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_renormalises && !m->h.router_corrects);
    ck_assert(m->h.has_sinks);
    m = read_small("FlintForCausalLM",
                   "'head_dim':8,'mlp_only_layers':[],'layer_types':["
                   "'sliding_attention','full_attention','full_attention',"
                   "'full_attention','full_attention','full_attention',"
                   "'full_attention','full_attention']");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".xxxxxxx");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "........");
    m = read_small("FlintForCausalLM",
                   "'head_dim':8,'mlp_only_layers':null");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx......");
}
END_TEST

START_TEST(a_kolibri_chooses_by_logits_and_weighs_by_sigmoid)
{
    struct model *m = read_small("Kolibri1ForCausalLM", "'head_dim':8");

    assert_layers(&m->h, LMQ_LAYER_FULL, "....x...");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "....x...");
    ck_assert_uint_eq(m->h.sliding_window, 513);
    ck_assert_uint_eq(m->h.n_experts, 384);
    ck_assert_uint_eq(m->h.n_experts_used, 6);
    ck_assert_uint_eq(m->h.expert_dim, 512);
    ck_assert_uint_eq(m->h.shared_dim, 512);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID_CHOSEN);
    ck_assert(m->h.router_corrects && !m->h.router_renormalises);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert(m->source.has_apart_norms);
    m = read_small("Kolibri1ForCausalLM",
                   "'head_dim':8,'norm_topk_prob':true,'layer_types':["
                   "'full_attention','full_attention','sliding_attention',"
                   "'full_attention','full_attention','full_attention',"
                   "'full_attention','full_attention']");
    ck_assert(m->h.router_renormalises);
    assert_layers(&m->h, LMQ_LAYER_NOPE, "xx.xxxxx");
}
END_TEST

START_TEST(a_hyperclova_may_have_norms_behind)
{
    struct model *m = read_small("HyperCLOVAXForCausalLM",
                                 "'logits_scaling':0.5");

    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert(m->source.has_apart_norms);
    assert_near(m->h.logit_scale, 0.5);
    m = read_small("HyperCLOVAXForCausalLM",
                   "'use_post_norm':false,'attention_multiplier':null");
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_BEFORE);
    ck_assert(!(m->h.attn_scale > 0));
}
END_TEST

START_TEST(a_minicpm_scales_by_its_size)
{
    struct model *m = read_small("MiniCPMForCausalLM",
                                 "'scale_emb':12,'scale_depth':1.4,"
                                 "'dim_model_base':16");

    assert_near(m->h.embedding_scale, 12);
    assert_near(m->h.residual_scale, 1.4 / sqrt(8));
    assert_near(m->h.logit_scale, 0.25);
    assert_unsupported("MiniCPMForCausalLM", "'sparse_config':{}",
                       "sparse attention ('sparse_config')");
    assert_wrong("MiniCPMForCausalLM", "'dim_model_base':0",
                 "'dim_model_base' in the configuration is no width");
    m = read_small("MiniCPM3ForCausalLM",
                   "'scale_depth':null,'dim_model_base':null");
    assert_near(m->h.residual_scale, 1);
    assert_near(m->h.logit_scale, 1);
    ck_assert_uint_eq(m->h.value_dim, 16);
    ck_assert_uint_eq(m->h.head_dim, 64 + 32);
    assert_unsupported("MiniCPM3ForCausalLM",
                       "'rope_scaling':{'rope_type':'yarn','factor':4.0,"
                       "'mscale':1.0,'mscale_all_dim':1.0}",
                       "'mscale_all_dim' with latents of this kind");
}
END_TEST

START_TEST(an_exaone_3_is_a_llama_by_other_names)
{
    struct model *m = read_model(
        "{'activation_function':'silu','architectures':["
        "'ExaoneForCausalLM'],'attention_dropout':0.0,'bos_token_id':1,"
        "'embed_dropout':0.0,'eos_token_id':361,'head_dim':80,"
        "'hidden_size':2560,'initializer_range':0.02,"
        "'intermediate_size':7168,'layer_norm_epsilon':1e-05,"
        "'max_position_embeddings':32768,'model_type':'exaone',"
        "'num_attention_heads':32,'num_key_value_heads':8,'num_layers':30,"
        "'pad_token_id':0,'rope_scaling':{'factor':8.0,"
        "'high_freq_factor':4.0,'low_freq_factor':1.0,"
        "'original_max_position_embeddings':8192,'rope_type':'llama3'},"
        "'rope_theta':1000000.0,'tie_word_embeddings':true,"
        "'torch_dtype':'bfloat16','use_cache':true,'vocab_size':102400}");

    ck_assert_str_eq(m->h.architecture, "exaone");
    assert_sizes(&m->h, 30, 2560, 7168, 32, 8, 80);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LLAMA3);
    assert_near(m->h.norm_eps, 1e-5);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("ExaoneForCausalLM",
                   "'rope_theta':1e6,'rms_norm_eps':3e-05");
    assert_near(m->h.norm_eps, 3e-5);
    assert_unsupported("ExaoneForCausalLM",
                       "'rope_theta':1e6,'rms_norm_eps':3e-05,"
                       "'hidden_act':'gelu'",
                       "'hidden_act' 'gelu'");
}
END_TEST

START_TEST(a_first_deepseek_has_a_llamas_attention)
{
    struct model *m = read_small("DeepseekForCausalLM",
                                 "'n_routed_experts':8,"
                                 "'num_experts_per_tok':2,"
                                 "'moe_intermediate_size':24,"
                                 "'n_shared_experts':2,'moe_layer_freq':2,"
                                 "'first_k_dense_replace':1");

    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx.x.x.x");
    ck_assert_uint_eq(m->h.kv_lora_rank, 0);
    ck_assert_uint_eq(m->h.shared_dim, 48);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    assert_unsupported("DeepseekForCausalLM", "'scoring_func':'sigmoid'",
                       "'scoring_func' 'sigmoid'");
}
END_TEST

START_TEST(sparse_attention_ends_where_it_chooses)
{
    struct model *m = read_small("DeepseekV32ForCausalLM",
                                 "'num_nextn_predict_layers':1,"
                                 "'max_position_embeddings':163840");

    ck_assert_str_eq(m->h.architecture, "deepseek2");
    ck_assert_uint_eq(m->h.context, 163840);
    ck_assert_uint_eq(m->h.context_end, 0);
    ck_assert_uint_eq(m->source.n_chosen, 2048);
    ck_assert_uint_eq(m->h.index_topk, 2048);
    ck_assert_uint_eq(m->h.n_index_heads, 64);
    ck_assert_uint_eq(m->h.index_dim, 128);
    ck_assert(m->source.has_index_halves && !m->source.has_last_index);
    assert_layers(&m->h, LMQ_LAYER_INDEX, "xxxxxxxx");
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xxx.....");
    m = read_small("GlmMoeDsaForCausalLM",
                   "'index_topk':4096,'max_position_embeddings':3000,"
                   "'layer_types':['indexed_attention','indexed_attention',"
                   "'indexed_attention','indexed_attention',"
                   "'indexed_attention','indexed_attention',"
                   "'indexed_attention','indexed_attention']");
    ck_assert_uint_eq(m->h.context, 3000);
    ck_assert_uint_eq(m->h.context_end, 0);
    ck_assert_uint_eq(m->h.index_topk, 4096);
    ck_assert_uint_eq(m->h.n_index_heads, 32);
    ck_assert(!m->source.has_index_halves && !m->source.has_last_index);
    assert_layers(&m->h, LMQ_LAYER_INDEX, "xxxxxxxx");
    ck_assert_uint_eq(m->h.head_dim, 192 + 64);
    assert_near(m->h.latent_eps, 1e-6);
    assert_near(m->h.index_eps, 1e-6);
    m = read_small("GlmMoeDsaForCausalLM", "'index_topk_freq':3");
    assert_layers(&m->h, LMQ_LAYER_INDEX, "xx..x..x");
    m = read_small("GlmMoeDsaForCausalLM", "'index_topk_freq':2,"
                                           "'index_skip_topk_offset':3");
    assert_layers(&m->h, LMQ_LAYER_INDEX, "xxx.x.x.");
    m = read_small("GlmMoeDsaForCausalLM",
                   "'index_topk_pattern':'FSSFFSSS','index_topk_freq':4");
    assert_layers(&m->h, LMQ_LAYER_INDEX, "x..xx...");
    m = read_small("GlmMoeDsaForCausalLM",
                   "'indexer_types':['full','shared','full','shared',"
                   "'shared','full','shared','full']");
    assert_layers(&m->h, LMQ_LAYER_INDEX, "x.x..x.x");
    assert_unsupported("GlmMoeDsaForCausalLM",
                       "'index_topk_pattern':'SFFFFFFF'",
                       "layer 0 that shares what an earlier one chooses");
    assert_unsupported("GlmMoeDsaForCausalLM",
                       "'index_topk_pattern':'FXFFFFFF'",
                       "'X' in 'index_topk_pattern'");
    assert_wrong("GlmMoeDsaForCausalLM", "'index_topk_pattern':'FF'",
                 "names 2 of 8 layers");
    assert_wrong("GlmMoeDsaForCausalLM", "'indexer_types':4",
                 "'indexer_types'");
    m = read_small("GlmMoeDsaForCausalLM", "'rms_norm_eps':1e-06");
    ck_assert(!(m->h.latent_eps > 0)); /* what norm_eps says, too */
    ck_assert(!(m->h.index_eps > 0));
    m = read_small("DeepseekV32ForCausalLM", "'rope_interleave':false");
    ck_assert(m->source.has_rotary_pairs);
    assert_wrong("DeepseekV32ForCausalLM", "'index_topk':0",
                 "'index_topk' in the configuration is 0");
    assert_unsupported("DeepseekV3ForCausalLM",
                       "'layer_types':['indexed_attention',"
                       "'indexed_attention','indexed_attention',"
                       "'indexed_attention','indexed_attention',"
                       "'indexed_attention','indexed_attention',"
                       "'indexed_attention']",
                       "'indexed_attention' in 'layer_types'");
}
END_TEST

START_TEST(a_command_a_with_experts_may_begin_dense)
{
    struct model *m = read_small("Cohere2MoeForCausalLM",
                                 "'first_k_dense_replace':2,"
                                 "'prefix_dense_sliding_window_pattern':2,"
                                 "'prefix_dense_intermediate_size':48");

    assert_layers(&m->h, LMQ_LAYER_FULL, ".x...x..");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".x...x..");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx......");
    ck_assert_uint_eq(m->h.hidden_dim, 48);
    ck_assert_uint_eq(m->h.expert_dim, 96);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX_CHOSEN);
    m = read_small("Cohere2MoeForCausalLM",
                   "'first_k_dense_replace':1,'rms_norm_eps':3e-05,"
                   "'expert_selection_fn':'sigmoid'");
    assert_layers(&m->h, LMQ_LAYER_FULL, "x...x...");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "....x...");
    ck_assert_int_eq(m->h.norm, LMQ_NORM_RMS);
    assert_near(m->h.norm_eps, 3e-5);
    ck_assert(m->h.router_renormalises && !m->h.router_corrects);
    m = read_small("Cohere2MoeForCausalLM", "'num_shared_experts':2");
    ck_assert_uint_eq(m->h.shared_dim, 192);
    assert_near(m->h.router_scale, 0.5);
    assert_near(m->h.shared_scale, 0.5);
    m = read_small("Cohere2MoeForCausalLM", "'num_shared_experts':2,"
                   "'shared_expert_combination_strategy':'sum'");
    assert_near(m->h.shared_scale, 1);
    assert_unsupported("Cohere2MoeForCausalLM", "'num_shared_experts':1,"
                       "'shared_expert_combination_strategy':'odd'",
                       "'shared_expert_combination_strategy' 'odd'");
    assert_unsupported("Cohere2MoeForCausalLM",
                       "'rope_scaling':{'type':'linear','factor':2}",
                       "'rope_scaling'");
    assert_unsupported("Cohere2MoeForCausalLM",
                       "'expert_selection_fn':'odd'",
                       "'expert_selection_fn' 'odd'");
}
END_TEST

#define PHI_ROPE                                                              \
    "'head_dim':8,'original_max_position_embeddings':64,"                     \
    "'rope_scaling':{'type':"                                                 \
    "'longrope','short_factor':[1,1,1,1],'long_factor':[2,2,2,2],"

START_TEST(a_phi_with_experts_weighs_them_by_what_is_near)
{
    struct model *m = read_small("PhiMoEForCausalLM", "'head_dim':8");

    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_NEAR);
    ck_assert(!m->h.router_renormalises);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    assert_near(m->h.router_reach, 0.02);
    m = read_small("PhimoeForCausalLM", "'router_jitter_noise':0.5," PHI_ROPE
                   "'short_mscale':1.25,'long_mscale':1.25}");
    assert_near(m->h.router_reach, 1);
    assert_near(m->h.rope_attention_factor, 1.25);
    assert_unsupported("PhimoeForCausalLM", "'num_experts_per_tok':3",
                       "'num_experts_per_tok' 3");
    assert_unsupported("PhimoeForCausalLM", PHI_ROPE
                       "'short_mscale':1.25,'long_mscale':1.5}",
                       "a 'short_mscale' of 1.25 and a 'long_mscale' of 1.5");
    assert_wrong("PhimoeForCausalLM", PHI_ROPE "'long_mscale':1.5}",
                 "has no 'short_mscale'");
    assert_wrong("PhimoeForCausalLM", PHI_ROPE "'short_mscale':1.5}",
                 "has no 'long_mscale'");
    assert_wrong("PhimoeForCausalLM", PHI_ROPE
                 "'short_mscale':0,'long_mscale':0}",
                 "'short_mscale' in the configuration is 0");
    assert_unsupported("PhimoeForCausalLM",
                       "'rope_scaling':{'type':'linear','factor':2}",
                       "rotary scaling other than 'longrope'");
    assert_unsupported("Phi3ForCausalLM", PHI_ROPE
                       "'short_mscale':1.25,'long_mscale':1.25}",
                       "'short_mscale' in rotary scaling");
}
END_TEST

START_TEST(a_granite_with_windows_has_bases_by_layers)
{
    struct model *m = read_small("GraniteSWAForCausalLM",
                                 "'rope_theta':50000");

    assert_layers(&m->h, LMQ_LAYER_FULL, "x...");
    ck_assert(m->h.has_sinks);
    assert_near(m->h.rope_theta, 50000);
    m = read_small("GraniteMoeSWAForCausalLM",
                   "'layer_rope_theta':[0,1000,1000,1000,9000,0,1000,1000]");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x....x..");
    assert_near(m->h.rope_theta, 9000);
    assert_near(m->h.rope_local_theta, 1000);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX_CHOSEN);
    m = read_small("GraniteSWAForCausalLM",
                   "'layer_rope_theta':[0,1000,1000,1000,0,1000,1000,1000]");
    assert_near(m->h.rope_theta, 1000);
    ck_assert(!(m->h.rope_local_theta > 0));
    m = read_small("GraniteSWAForCausalLM",
                   "'layer_rope_theta':[0,0,0,0,0,0,0,0]");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x");
    assert_wrong("GraniteSWAForCausalLM", "'layer_rope_theta':[1000]",
                 "names 1 of 8 layers");
    assert_wrong("GraniteSWAForCausalLM",
                 "'layer_rope_theta':[1,1,'x',1,1,1,1,1]",
                 "no list of numbers from 0");
    assert_unsupported("GraniteSWAForCausalLM",
                       "'layer_rope_theta':[5,6,7,6,5,6,6,6]",
                       "layers of one kind that differ in "
                       "'layer_rope_theta'");
    assert_unsupported("GraniteSWAForCausalLM",
                       "'layer_rope_theta':[5,6,6,6,5,6,6,6],"
                       "'rope_scaling':{'rope_type':'linear','factor':2}",
                       "two bases in 'layer_rope_theta' beside a scaling");
}
END_TEST

START_TEST(a_ling_2_chooses_among_groups)
{
    struct model *m = read_small("BailingMoeV2ForCausalLM",
                                 "'num_nextn_predict_layers':1,"
                                 "'use_qk_norm':true");

    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
    ck_assert_uint_eq(m->h.shared_dim, 512);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    m = read_small("BailingMoeV2ForCausalLM", "'use_qk_norm':false");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    assert_unsupported("BailingMoeV2ForCausalLM", "'norm_topk_prob':false",
                       "'norm_topk_prob' false");
    assert_unsupported("BailingMoeV2ForCausalLM", "'use_sliding_window':true",
                       "'use_sliding_window' true");
    assert_unsupported("BailingMoeForCausalLM", "'norm_head':true",
                       "'norm_head' true");
    assert_unsupported("BailingMoeForCausalLM", "'n_group':8", "'n_group' 8");
    assert_unsupported("BailingMoeForCausalLM", "'score_function':'sigmoid'",
                       "'score_function' 'sigmoid'");
}
END_TEST

START_TEST(some_are_llamas_by_other_names)
{
    struct model *m = read_small("AquilaForCausalLM", "'rms_norm_eps':1e-05");

    assert_llama_like(&m->h);
    m = read_small("MiMoForCausalLM", "'rms_norm_eps':1e-05");
    ck_assert_str_eq(m->h.architecture, "qwen2");
    m = read_small("IQuestCoderForCausalLM", "'rms_norm_eps':1e-05,"
                                             "'head_dim':16,'clip_qkv':null,"
                                             "'use_sliding_window':false");
    assert_llama_like(&m->h);
    assert_unsupported("IQuestCoderForCausalLM", "'clip_qkv':8",
                       "'clip_qkv' 8");
    assert_unsupported("IQuestCoderForCausalLM", "'use_sliding_window':true",
                       "'use_sliding_window' true");
}
END_TEST

/* The makers' files and those of the library have other words for some. */
START_TEST(a_sarvam_is_said_in_two_ways)
{
    static const char *const said[] = {
        "'num_experts':8,'num_shared_experts':2,'use_qkv_bias':false",
        "'n_routed_experts':8,'n_shared_experts':2,'attention_bias':false",
    };

    for (int i = 0; i < 2; i++) {
        struct model *m = read_small("SarvamMoEForCausalLM", said[i]);
        ck_assert_str_eq(m->h.architecture, "glm4moe");
        ck_assert_uint_eq(m->h.n_experts, 8);
        ck_assert_uint_eq(m->h.shared_dim, 2 * 1024);
        ck_assert_uint_eq(lmq_hparams_rotary_dim(&m->h), 64);
        ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
        assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
        m = read_small("SarvamMLAForCausalLM", said[i]);
        ck_assert_str_eq(m->h.architecture, "deepseek2");
        ck_assert_uint_eq(m->h.n_experts, 8);
        ck_assert_uint_eq(m->h.shared_dim, 2 * 2048);
        ck_assert_uint_eq(m->h.q_lora_rank, 0);
        assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    }
    assert_unsupported("SarvamMoEForCausalLM", "'score_function':'softmax'",
                       "'score_function' 'softmax'");
}
END_TEST

#define SCALED "'attention_value_scale':0.5,'swa_num_key_value_heads':2,"

/* As its makers' file says it, and what that leaves to the class. */
START_TEST(mimo_v2_flash)
{
    const struct model *m = read_model(
        "{'architectures':['MiMoV2FlashForCausalLM'],'attention_bias':false,"
        "'add_full_attention_sink_bias':false,'attention_chunk_size':128,"
        "'add_swa_attention_sink_bias':true,'attention_value_scale':0.707,"
        "'attention_dropout':0.0,'auto_map':{'AutoConfig':'x.X'},"
        "'head_dim':192,'hidden_act':'silu','hidden_size':4096,"
        "'hybrid_block_size':null,'hybrid_layer_pattern':[0,1,1,1,1,0,1,1],"
        "'intermediate_size':16384,'layernorm_epsilon':1e-06,"
        "'max_position_embeddings':262144,'model_type':'mimo_v2_flash',"
        "'moe_intermediate_size':2048,'moe_layer_freq':[0,1,1,1,0,1,1,1],"
        "'n_group':1,'n_routed_experts':256,'n_shared_experts':null,"
        "'norm_topk_prob':true,'num_attention_heads':64,"
        "'num_experts_per_tok':8,'num_hidden_layers':8,"
        "'num_key_value_heads':4,'partial_rotary_factor':0.334,"
        "'rope_theta':5000000,'routed_scaling_factor':null,"
        "'scoring_func':'sigmoid','sliding_window':128,"
        "'sliding_window_size':128,'swa_head_dim':192,"
        "'swa_num_attention_heads':64,'swa_num_key_value_heads':16,"
        "'swa_rope_theta':20000,'swa_v_head_dim':128,"
        "'tie_word_embeddings':false,'topk_group':1,"
        "'topk_method':'noaux_tc','v_head_dim':128,'vocab_size':152576}");

    ck_assert_str_eq(m->h.architecture, "mimo2");
    assert_sizes(&m->h, 8, 4096, 16384, 64, 16, 192);
    ck_assert_uint_eq(m->h.full_kv_heads, 4);
    ck_assert_uint_eq(m->h.value_dim, 128);
    assert_near(m->h.value_scale, 0.707);
    assert_near(m->h.norm_eps, 1e-6);
    ck_assert_uint_eq(m->h.sliding_window, 129);
    assert_layers(&m->h, LMQ_LAYER_FULL, "x....x..");
    assert_layers(&m->h, LMQ_LAYER_SINKLESS, "x....x..");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x...x...");
    ck_assert(m->h.has_sinks && m->h.router_corrects);
    ck_assert(m->h.router_renormalises);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(lmq_hparams_rotary_dim(&m->h), 64);
    assert_near(m->h.rope_theta, 5e6);
    assert_near(m->h.rope_local_theta, 20000);
}
END_TEST

START_TEST(a_mimo_v2_leaves_much_to_its_class)
{
    struct model *m = read_small("MiMoV2FlashForCausalLM",
                                 "'attention_value_scale':null,"
                                 "'swa_num_key_value_heads':2");

    assert_near(m->h.value_scale, 1);
    assert_layers(&m->h, LMQ_LAYER_FULL, "x....x..");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    ck_assert_uint_eq(m->h.sliding_window, 129);
    ck_assert_uint_eq(m->h.full_kv_heads, 4);
    assert_near(m->h.rope_local_theta, 10000);
    /* Without windows there are no other heads, and no sinks. */
    m = read_small("MiMoV2FlashForCausalLM",
                   SCALED "'hybrid_layer_pattern':[0,0,0,0,0,0,0,0]");
    ck_assert_uint_eq(m->h.n_kv_heads, 4);
    ck_assert_uint_eq(m->h.full_kv_heads, 0);
    ck_assert(!m->h.has_sinks);
    assert_layers(&m->h, LMQ_LAYER_SINKLESS, ".");
}
END_TEST

START_TEST(a_mimo_v2_may_say_what_is_not_computed)
{
    static const char *const said[][2] = {
        {"'swa_num_key_value_heads':2",
         "a model of this kind without 'attention_value_scale'"},
        {SCALED "'swa_head_dim':128", "'swa_head_dim' other than 192"},
        {SCALED "'swa_v_head_dim':64", "'swa_v_head_dim' other than 128"},
        {SCALED "'swa_num_attention_heads':1",
         "'swa_num_attention_heads' other than 4"},
        {SCALED "'n_shared_experts':1", "'n_shared_experts' 1"},
        {SCALED "'add_full_attention_sink_bias':true",
         "'add_full_attention_sink_bias' true"},
        {SCALED "'add_swa_attention_sink_bias':false",
         "'add_swa_attention_sink_bias' false"},
        {SCALED "'attention_projection_layout':'fused_qkv'",
         "'attention_projection_layout' 'fused_qkv'"},
        {SCALED "'moe_layer_freq':[0,1,1,1,1,1,1,2]",
         "a 2 in 'moe_layer_freq'"},
        {SCALED "'rope_parameters':{'full_attention':{'rope_theta':1e6},"
                "'sliding_attention':{'partial_rotary_factor':0.5}}",
         "rotary scaling of layers with a window"},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        assert_unsupported("MiMoV2FlashForCausalLM", said[i][0], said[i][1]);
    assert_wrong("MiMoV2FlashForCausalLM",
                 SCALED "'hybrid_layer_pattern':[0,1]", "2 of 8");
    assert_wrong("MiMoV2FlashForCausalLM",
                 SCALED "'sliding_window_size':4294967295", "4294967296");
    assert_wrong("MiMoV2FlashForCausalLM",
                 SCALED "'moe_layer_freq':['x',1,1,1,1,1,1,1]",
                 "moe_layer_freq");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_trinity_turns_where_it_has_windows,
        a_hunyuan_3_chooses_by_sigmoid,
        a_mellum_says_which_layers_have_windows,
        a_flint_sees_everything_in_the_first_layers_and_in_the_last,
        a_kolibri_chooses_by_logits_and_weighs_by_sigmoid,
        a_hyperclova_may_have_norms_behind,
        a_minicpm_scales_by_its_size,
        an_exaone_3_is_a_llama_by_other_names,
        a_first_deepseek_has_a_llamas_attention,
        sparse_attention_ends_where_it_chooses,
        a_command_a_with_experts_may_begin_dense,
        a_phi_with_experts_weighs_them_by_what_is_near,
        a_granite_with_windows_has_bases_by_layers,
        a_ling_2_chooses_among_groups,
        some_are_llamas_by_other_names,
        a_sarvam_is_said_in_two_ways,
        mimo_v2_flash,
        a_mimo_v2_leaves_much_to_its_class,
        a_mimo_v2_may_say_what_is_not_computed,
    };

    return RUN_SUITE("hf_latest", tests);
}
