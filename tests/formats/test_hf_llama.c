/*
 * test_hf_llama.c - the families of config.json, by published configurations
 * (without what no computation depends on): Llama, Qwen, DeepSeek and theirs.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "formats/hf/hf_config.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Llama and its relatives ---- */

START_TEST(llama_3_2_1b)
{
    struct model *m = read_model(
        "{'architectures':['LlamaForCausalLM'],'attention_bias':false,"
        "'bos_token_id':128000,'eos_token_id':128001,'head_dim':64,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':8192,"
        "'max_position_embeddings':131072,'mlp_bias':false,"
        "'model_type':'llama','num_attention_heads':32,"
        "'num_hidden_layers':16,'num_key_value_heads':8,'pretraining_tp':1,"
        "'rms_norm_eps':1e-05,'rope_scaling':{'factor':32.0,"
        "'high_freq_factor':4.0,'low_freq_factor':1.0,"
        "'original_max_position_embeddings':8192,'rope_type':'llama3'},"
        "'rope_theta':500000.0,'tie_word_embeddings':true,'use_cache':true,"
        "'vocab_size':128256}");

    ck_assert_str_eq(m->h.architecture, "llama");
    assert_sizes(&m->h, 16, 2048, 8192, 32, 8, 64);
    assert_llama_like(&m->h);
    assert_source(&m->source, false, false, false, false);
    ck_assert_uint_eq(m->h.context, 131072);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
    ck_assert_double_eq(m->h.rope_theta, 500000);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LLAMA3);
    ck_assert_uint_eq(m->h.rope_context, 8192);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert_int_eq(m->h.bos, 128000);
}
END_TEST

START_TEST(mistral_7b)
{
    struct model *m = read_model(
        "{'architectures':['MistralForCausalLM'],'bos_token_id':1,"
        "'eos_token_id':2,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':14336,'max_position_embeddings':32768,"
        "'model_type':'mistral','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':8,'rms_norm_eps':1e-05,"
        "'rope_theta':10000.0,'sliding_window':4096,"
        "'tie_word_embeddings':false,'vocab_size':32000}");

    ck_assert_str_eq(m->h.architecture, "mistral");
    assert_sizes(&m->h, 32, 4096, 14336, 32, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_NO);
    /* Later ones have none, and say so. */
    m = read_small("MistralForCausalLM", "'sliding_window':null");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    m = read_small("MistralForCausalLM", "");
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    ck_assert_uint_eq(m->h.context, 131072);
}
END_TEST

START_TEST(mixtral_8x7b)
{
    struct model *m = read_model(
        "{'architectures':['MixtralForCausalLM'],'hidden_act':'silu',"
        "'hidden_size':4096,'intermediate_size':14336,"
        "'max_position_embeddings':32768,'model_type':'mixtral',"
        "'num_attention_heads':32,'num_experts_per_tok':2,"
        "'num_hidden_layers':32,'num_key_value_heads':8,"
        "'num_local_experts':8,'output_router_logits':false,"
        "'rms_norm_eps':1e-05,'rope_theta':1000000.0,"
        "'router_aux_loss_coef':0.02,'sliding_window':null,"
        "'tie_word_embeddings':false,'vocab_size':32000}");

    ck_assert_str_eq(m->h.architecture, "mixtral");
    assert_sizes(&m->h, 32, 4096, 14336, 32, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert_uint_eq(m->h.n_experts, 8);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    ck_assert_uint_eq(m->h.expert_dim, 14336);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert(m->h.router_renormalises);
}
END_TEST

START_TEST(smollm3_3b)
{
    struct model *m = read_model(
        "{'architectures':['SmolLM3ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':null,'eos_token_id':128012,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':11008,'layer_types':["
        "'full_attention','full_attention','full_attention','full_attention',"
        "'full_attention','full_attention','full_attention','full_attention'],"
        "'max_position_embeddings':65536,'max_window_layers':28,"
        "'mlp_bias':false,'model_type':'smollm3','no_rope_layer_interval':4,"
        "'no_rope_layers':[1,1,1,0,1,1,1,0],'num_attention_heads':16,"
        "'num_hidden_layers':8,'num_key_value_heads':4,'rms_norm_eps':1e-06,"
        "'rope_scaling':null,'rope_theta':5000000.0,'sliding_window':null,"
        "'use_sliding_window':false,'vocab_size':128256}");

    ck_assert_str_eq(m->h.architecture, "smollm3");
    assert_sizes(&m->h, 8, 2048, 11008, 16, 4, 128);
    assert_llama_like(&m->h);
    assert_layers(&m->h, LMQ_LAYER_NOPE, "...x");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".");
    ck_assert_double_eq(m->h.rope_theta, 5000000);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("SmolLM3ForCausalLM",
                   "'no_rope_layer_interval':3,'use_sliding_window':true,"
                   "'sliding_window':16");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "..x");
    assert_layers(&m->h, LMQ_LAYER_FULL, "xx.");
    ck_assert_uint_eq(m->h.sliding_window, 16);
    ck_assert_double_eq(m->h.rope_theta, 2e6);
    assert_wrong("SmolLM3ForCausalLM", "'no_rope_layers':[1,0]",
                 "'no_rope_layers'");
    assert_wrong("SmolLM3ForCausalLM",
                 "'no_rope_layers':[1,1,1,'x',1,1,1,0]", "'no_rope_layers'");
    assert_wrong("SmolLM3ForCausalLM", "'no_rope_layer_interval':0",
                 "'no_rope_layer_interval'");
}
END_TEST

START_TEST(granite_3_0_2b)
{
    struct model *m = read_model(
        "{'architectures':['GraniteForCausalLM'],'attention_bias':false,"
        "'attention_multiplier':0.015625,'bos_token_id':0,"
        "'embedding_multiplier':12.0,'eos_token_id':0,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':8192,'logits_scaling':8.0,"
        "'max_position_embeddings':4096,'mlp_bias':false,"
        "'model_type':'granite','num_attention_heads':32,"
        "'num_hidden_layers':40,'num_key_value_heads':8,"
        "'residual_multiplier':0.22,'rms_norm_eps':1e-05,"
        "'rope_scaling':null,'rope_theta':10000.0,"
        "'tie_word_embeddings':true,'vocab_size':49155}");

    ck_assert_str_eq(m->h.architecture, "granite");
    assert_sizes(&m->h, 40, 2048, 8192, 32, 8, 64);
    ck_assert_double_eq(m->h.embedding_scale, 12);
    ck_assert_double_eq(m->h.residual_scale, 0.22);
    ck_assert_double_eq(m->h.attn_scale, 0.015625);
    ck_assert_double_eq(m->h.logit_scale, 0.125);
    m = read_small("GraniteForCausalLM", "");
    ck_assert_double_eq(m->h.attn_scale, 1);
    ck_assert_double_eq(m->h.norm_eps, 1e-6);
    assert_wrong("GraniteForCausalLM", "'logits_scaling':0",
                 "'logits_scaling'");
    assert_wrong("GraniteForCausalLM", "'attention_multiplier':0",
                 "'attention_multiplier'");
}
END_TEST

/* ---- Qwen ---- */

START_TEST(qwen3_next_80b_a3b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen3NextForCausalLM'],'attention_bias':false,"
        "'bos_token_id':151643,'decoder_sparse_step':1,"
        "'eos_token_id':151645,'full_attention_interval':4,'head_dim':256,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':5120,"
        "'linear_conv_kernel_dim':4,'linear_key_head_dim':128,"
        "'linear_num_key_heads':16,'linear_num_value_heads':32,"
        "'linear_value_head_dim':128,'max_position_embeddings':262144,"
        "'mlp_only_layers':[],'model_type':'qwen3_next',"
        "'moe_intermediate_size':512,'norm_topk_prob':true,"
        "'num_attention_heads':16,'num_experts':512,'num_experts_per_tok':10,"
        "'num_hidden_layers':48,'num_key_value_heads':2,"
        "'partial_rotary_factor':0.25,'rms_norm_eps':1e-06,"
        "'rope_scaling':null,'rope_theta':10000000,"
        "'shared_expert_intermediate_size':512,'tie_word_embeddings':false,"
        "'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen3next");
    ck_assert_str_eq(m->h.unsupported, "");
    assert_sizes(&m->h, 48, 2048, 5120, 16, 2, 256);
    for (size_t i = 0; i < 48; i++)
        ck_assert(lmq_layer_is(&m->h, i, LMQ_LAYER_DELTA) == (i % 4 != 3));
    ck_assert_uint_eq(lmq_delta_channels(&m->h), 8192);
    ck_assert_uint_eq(lmq_hparams_rotary_dim(&m->h), 64);
    ck_assert(m->h.has_attn_gate && m->source.norms_less_one);
    ck_assert_uint_eq(m->h.n_experts_used, 10);
    m = read_small("Qwen3NextForCausalLM",
                   "'layer_types':['full_attention','linear_attention',"
                   "'full_attention','full_attention','linear_attention',"
                   "'linear_attention','full_attention','full_attention']");
    assert_layers(&m->h, LMQ_LAYER_DELTA, ".x..xx..");
    assert_unsupported("Qwen3NextForCausalLM", "'hidden_act':'gelu'",
                       "a convolution with another activation than SiLU");
    assert_wrong("Qwen3NextForCausalLM", "'full_attention_interval':0",
                 "full_attention_interval");
    /* Only these know what it is. */
    assert_unsupported("Qwen3ForCausalLM",
                       "'layer_types':['full_attention','linear_attention',"
                       "'full_attention','full_attention','full_attention',"
                       "'full_attention','full_attention','full_attention']",
                       "'linear_attention' in 'layer_types'");
}
END_TEST

START_TEST(qwen2_5_0_5b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen2ForCausalLM'],'bos_token_id':151643,"
        "'eos_token_id':151643,'hidden_act':'silu','hidden_size':896,"
        "'intermediate_size':4864,'max_position_embeddings':32768,"
        "'max_window_layers':24,'model_type':'qwen2',"
        "'num_attention_heads':14,'num_hidden_layers':24,"
        "'num_key_value_heads':2,'rms_norm_eps':1e-06,"
        "'rope_theta':1000000.0,'sliding_window':32768,"
        "'tie_word_embeddings':true,'use_mrope':false,"
        "'use_sliding_window':false,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen2");
    assert_sizes(&m->h, 24, 896, 4864, 14, 2, 64);
    assert_llama_like(&m->h);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".");
    m = read_small("Qwen2ForCausalLM",
                   "'use_sliding_window':true,'max_window_layers':3");
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    assert_layers(&m->h, LMQ_LAYER_FULL, "xxx.....");
    m = read_small("Qwen2ForCausalLM", "'use_sliding_window':true,"
                                       "'sliding_window':null,"
                                       "'max_window_layers':3");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    /* As many full layers as there are. */
    m = read_small("Qwen2ForCausalLM", "'use_sliding_window':true");
    ck_assert_uint_eq(m->h.sliding_window, 0);
}
END_TEST

START_TEST(qwen1_5_moe_a2_7b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen2MoeForCausalLM'],'decoder_sparse_step':1,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':5632,"
        "'max_position_embeddings':8192,'max_window_layers':21,"
        "'model_type':'qwen2_moe','moe_intermediate_size':1408,"
        "'norm_topk_prob':false,'num_attention_heads':16,'num_experts':60,"
        "'num_experts_per_tok':4,'num_hidden_layers':24,"
        "'num_key_value_heads':16,'output_router_logits':false,"
        "'rms_norm_eps':1e-06,'rope_theta':1000000.0,"
        "'router_aux_loss_coef':0.001,"
        "'shared_expert_intermediate_size':5632,'sliding_window':32768,"
        "'tie_word_embeddings':false,'use_sliding_window':false,"
        "'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen2moe");
    assert_sizes(&m->h, 24, 2048, 5632, 16, 16, 128);
    ck_assert_uint_eq(m->h.n_experts, 60);
    ck_assert_uint_eq(m->h.n_experts_used, 4);
    ck_assert_uint_eq(m->h.expert_dim, 1408);
    ck_assert_uint_eq(m->h.shared_dim, 5632);
    ck_assert(!m->h.router_renormalises);
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".");
    m = read_small("Qwen2MoeForCausalLM",
                   "'decoder_sparse_step':2,'mlp_only_layers':[3,77]");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.xxx.x.");
    assert_unsupported("Qwen2MoeForCausalLM", "'use_sliding_window':true",
                       "'use_sliding_window' in a model of this kind");
    assert_wrong("Qwen2MoeForCausalLM", "'decoder_sparse_step':0",
                 "'decoder_sparse_step'");
    assert_wrong("Qwen2MoeForCausalLM", "'mlp_only_layers':['a']",
                 "'mlp_only_layers'");
}
END_TEST

START_TEST(qwen3_0_6b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen3ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':151643,'eos_token_id':151645,'head_dim':128,"
        "'hidden_act':'silu','hidden_size':1024,'intermediate_size':3072,"
        "'max_position_embeddings':40960,'max_window_layers':28,"
        "'model_type':'qwen3','num_attention_heads':16,"
        "'num_hidden_layers':28,'num_key_value_heads':8,'rms_norm_eps':1e-06,"
        "'rope_scaling':null,'rope_theta':1000000,'sliding_window':null,"
        "'tie_word_embeddings':true,'use_sliding_window':false,"
        "'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen3");
    assert_sizes(&m->h, 28, 1024, 3072, 16, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    m = read_small("Qwen3ForCausalLM", "");
    ck_assert_uint_eq(m->h.head_dim, 128);
    m = read_small("Qwen3ForCausalLM", "'head_dim':null");
    ck_assert_uint_eq(m->h.head_dim, 16);
}
END_TEST

START_TEST(qwen3_30b_a3b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen3MoeForCausalLM'],'attention_bias':false,"
        "'decoder_sparse_step':1,'head_dim':128,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':6144,"
        "'max_position_embeddings':40960,'max_window_layers':48,"
        "'mlp_only_layers':[],'model_type':'qwen3_moe',"
        "'moe_intermediate_size':768,'norm_topk_prob':true,"
        "'num_attention_heads':32,'num_experts':128,'num_experts_per_tok':8,"
        "'num_hidden_layers':48,'num_key_value_heads':4,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':1000000.0,"
        "'sliding_window':null,'tie_word_embeddings':false,"
        "'use_sliding_window':false,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen3moe");
    assert_sizes(&m->h, 48, 2048, 6144, 32, 4, 128);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.expert_dim, 768);
    ck_assert_uint_eq(m->h.shared_dim, 0);
    ck_assert(m->h.router_renormalises);
    /* Newer versions of the library write the number so. */
    m = read_small("Qwen3MoeForCausalLM", "'num_local_experts':16");
    ck_assert_uint_eq(m->h.n_experts, 16);
    ck_assert_uint_eq(m->h.head_dim, 16);
}
END_TEST

/* ---- DeepSeek ---- */

START_TEST(deepseek_v2_lite)
{
    struct model *m = read_model(
        "{'architectures':['DeepseekV2ForCausalLM'],'attention_bias':false,"
        "'aux_loss_alpha':0.001,'bos_token_id':100000,"
        "'eos_token_id':100001,'first_k_dense_replace':1,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':10944,"
        "'kv_lora_rank':512,'max_position_embeddings':163840,"
        "'model_type':'deepseek_v2','moe_intermediate_size':1408,"
        "'moe_layer_freq':1,'n_group':1,'n_routed_experts':64,"
        "'n_shared_experts':2,'norm_topk_prob':false,"
        "'num_attention_heads':16,'num_experts_per_tok':6,"
        "'num_hidden_layers':27,'num_key_value_heads':16,"
        "'q_lora_rank':null,'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'rms_norm_eps':1e-06,'rope_scaling':{'beta_fast':32,'beta_slow':1,"
        "'factor':40,'mscale':0.707,'mscale_all_dim':0.707,"
        "'original_max_position_embeddings':4096,'type':'yarn'},"
        "'rope_theta':10000,'routed_scaling_factor':1.0,"
        "'scoring_func':'softmax','seq_aux':true,"
        "'tie_word_embeddings':false,'topk_group':1,'topk_method':'greedy',"
        "'v_head_dim':128,'vocab_size':102400}");
    double scale = 0.1 * 0.707 * log(40) + 1;

    ck_assert_str_eq(m->h.architecture, "deepseek2");
    assert_sizes(&m->h, 27, 2048, 10944, 16, 16, 192);
    assert_source(&m->source, true, false, false, false);
    ck_assert_uint_eq(m->h.q_lora_rank, 0);
    ck_assert_uint_eq(m->h.kv_lora_rank, 512);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_uint_eq(m->h.value_dim, 128);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    ck_assert_double_eq(m->h.rope_factor, 40);
    ck_assert_uint_eq(m->h.rope_context, 4096);
    ck_assert_double_eq(m->h.rope_attention_factor, 1);
    assert_near(m->h.attn_scale, scale * scale / sqrt(192));
    ck_assert_uint_eq(m->h.n_experts, 64);
    ck_assert_uint_eq(m->h.n_experts_used, 6);
    ck_assert_uint_eq(m->h.expert_dim, 1408);
    ck_assert_uint_eq(m->h.shared_dim, 2816);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert(!m->h.router_renormalises && !m->h.router_corrects);
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
}
END_TEST

#define ROUTED ",'num_experts_per_tok':2,'n_routed_experts':16"

START_TEST(deepseek_v2_routes_in_groups)
{
    struct model *m = read_small(
        "DeepseekV2ForCausalLM",
        "'topk_method':'group_limited_greedy','n_group':8,'topk_group':3,"
        "'routed_scaling_factor':16.0,'moe_layer_freq':2,"
        "'first_k_dense_replace':1" ROUTED);

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert_uint_eq(m->h.n_expert_groups_used, 3);
    ck_assert_int_eq(m->h.expert_group_score, LMQ_GROUP_SCORE_BEST);
    ck_assert_double_eq(m->h.router_scale, 16);
    ck_assert_uint_eq(m->h.q_lora_rank, 1536);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx.x.x.x");
    ck_assert_double_eq(m->h.attn_scale, 0);
    assert_wrong("DeepseekV2ForCausalLM",
                 "'rope_scaling':{'type':'yarn'}" ROUTED,
                 "the 'yarn' rotary scaling lacks its 'factor'");
    assert_unsupported("DeepseekV2ForCausalLM", "'topk_method':'x'" ROUTED,
                       "'topk_method' 'x'");
    assert_unsupported("DeepseekV2ForCausalLM", "'norm_topk_prob':true" ROUTED,
                       "'norm_topk_prob' in a model of this kind");
    assert_wrong("DeepseekV2ForCausalLM", "'moe_layer_freq':0" ROUTED,
                 "'moe_layer_freq'");
    assert_wrong("DeepseekV2ForCausalLM", "'qk_rope_head_dim':0" ROUTED,
                 "'qk_rope_head_dim'");
    assert_wrong("DeepseekV2ForCausalLM",
                 "'qk_nope_head_dim':4294967295" ROUTED, "size");
    assert_wrong("DeepseekV2ForCausalLM",
                 "'n_shared_experts':4294967295" ROUTED, "size");
    m = read_small("DeepseekV2ForCausalLM", "'n_routed_experts':null");
    ck_assert_uint_eq(m->h.n_experts, 0);
    ck_assert_uint_eq(m->h.shared_dim, 0);
    m = read_small("DeepseekV2ForCausalLM", "'n_shared_experts':null" ROUTED);
    ck_assert_uint_eq(m->h.shared_dim, 0);
}
END_TEST

START_TEST(deepseek_v3)
{
    struct model *m = read_model(
        "{'architectures':['DeepseekV3ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':0,'eos_token_id':1,'ep_size':1,"
        "'first_k_dense_replace':3,'hidden_act':'silu',"
        "'hidden_size':7168,'intermediate_size':18432,'kv_lora_rank':512,"
        "'max_position_embeddings':163840,'model_type':'deepseek_v3',"
        "'moe_intermediate_size':2048,'moe_layer_freq':1,'n_group':8,"
        "'n_routed_experts':256,'n_shared_experts':1,"
        "'norm_topk_prob':true,'num_attention_heads':128,"
        "'num_experts_per_tok':8,'num_hidden_layers':61,"
        "'num_key_value_heads':128,'num_nextn_predict_layers':1,"
        "'q_lora_rank':1536,'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'quantization_config':{'activation_scheme':'dynamic',"
        "'fmt':'e4m3','quant_method':'fp8','weight_block_size':[128,128]},"
        "'rms_norm_eps':1e-06,'rope_scaling':{'beta_fast':32,'beta_slow':1,"
        "'factor':40,'mscale':1.0,'mscale_all_dim':1.0,"
        "'original_max_position_embeddings':4096,'type':'yarn'},"
        "'rope_theta':10000,'routed_scaling_factor':2.5,"
        "'scoring_func':'sigmoid','tie_word_embeddings':false,"
        "'topk_group':4,'topk_method':'noaux_tc','v_head_dim':128,"
        "'vocab_size':129280}");
    double scale = 0.1 * log(40) + 1;

    ck_assert_str_eq(m->h.architecture, "deepseek2");
    assert_sizes(&m->h, 61, 7168, 18432, 128, 128, 192);
    assert_source(&m->source, true, false, false, false);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    ck_assert_uint_eq(m->h.q_lora_rank, 1536);
    ck_assert_double_eq(m->h.rope_attention_factor, 1);
    assert_near(m->h.attn_scale, scale * scale / sqrt(192));
    ck_assert_uint_eq(m->h.n_experts, 256);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.shared_dim, 2048);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_renormalises && m->h.router_corrects);
    ck_assert_double_eq(m->h.router_scale, 2.5);
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert_uint_eq(m->h.n_expert_groups_used, 4);
    ck_assert_int_eq(m->h.expert_group_score, LMQ_GROUP_SCORE_BEST_TWO);
    ck_assert(lmq_layer_is(&m->h, 2, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 3, LMQ_LAYER_DENSE));
    m = read_small("DeepseekV3ForCausalLM",
                   "'n_group':1,'topk_group':1,'rope_interleave':false" ROUTED);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    ck_assert(m->h.router_renormalises);
    ck_assert_double_eq(m->h.router_scale, 2.5);
    assert_source(&m->source, false, false, false, false);
    m = read_small("DeepseekV3ForCausalLM", /* all groups are chosen */
                   "'n_group':4,'topk_group':4" ROUTED);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    assert_unsupported("DeepseekV3ForCausalLM",
                       "'scoring_func':'softmax'" ROUTED,
                       "'scoring_func' 'softmax'");
    assert_unsupported("DeepseekV3ForCausalLM",
                       "'topk_method':'greedy'" ROUTED,
                       "'topk_method' 'greedy'");
}
END_TEST

/* ---- Which family ---- */

START_TEST(the_model_type_decides_where_no_class_is_named)
{
    static const char *const types[][2] = {
        {"llama", "llama"},         {"mistral", "mistral"},
        {"mixtral", "mixtral"},     {"qwen2", "qwen2"},
        {"qwen2_moe", "qwen2moe"},  {"qwen3", "qwen3"},
        {"qwen3_moe", "qwen3moe"},  {"gemma", "gemma"},
        {"gemma2", "gemma2"},       {"gemma3_text", "gemma3"},
        {"phi", "phi2"},            {"phi3", "phi3"},
        {"gpt2", "gpt2"},           {"gpt_neox", "gptneox"},
        {"falcon", "falcon"},       {"RefinedWebModel", "falcon"},
        {"stablelm", "stablelm"},   {"olmo", "olmo"},
        {"olmo2", "olmo2"},         {"granite", "granite"},
        {"cohere", "cohere"},       {"deepseek_v2", "deepseek2"},
        {"deepseek_v3", "deepseek2"}, {"smollm3", "smollm3"},
        {"olmo3", "olmo3"},         {"gpt_oss", "gpt-oss"},
        {"llama4_text", "llama4"},  {"glm4_moe", "glm4moe"},
        {"kimi_k2", "deepseek2"},   {"ministral3", "mistral3"},
        {"mistral4", "mistral4"},   {"ministral", "ministral"},
        {"seed_oss", "seed_oss"},   {"internlm3", "internlm3"},
        {"hunyuan_v1_dense", "hunyuan-dense"},
        {"ernie4_5", "ernie4_5"},   {"ernie4_5_moe", "ernie4_5-moe"},
        {"nemotron", "nemotron"},   {"cohere2", "cohere2"},
        {"exaone4", "exaone4"},     {"granitemoe", "granitemoe"},
        {"arcee", "arcee"},         {"minimax_m2", "minimax-m2"},
        {"glm", "chatglm"},         {"glm4", "glm4"},
        {"qwen2_vl_text", "qwen2"}, {"qwen3_vl_text", "qwen3"},
        {"qwen3_next", "qwen3next"}, {"qwen3_5_text", "qwen35"},
        {"qwen3_5_moe_text", "qwen35moe"},
        {"glm4_moe_lite", "deepseek2"}, {"youtu", "youtu"},
        {"exaone_moe", "exaone-moe"}, {"helium", "helium"},
        {"vaultgemma", "vaultgemma"}, {"jais2", "jais2"},
        {"nanochat", "nanochat"}, {"falcon_h1", "falcon_h1"},
        {"phimoe", "phimoe"},
    };
    struct model model;
    struct lmq_error err = {0};
    char text[512];
    bool is_known;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        snprintf(text, sizeof(text),
                 "{'model_type':'%s','rope_theta':5e5,'rope_scaling':{"
                 "'type':'default'}," SMALL "}",
                 types[i][0]);
        ck_assert_msg(parse_config(text, &model, &is_known, &err) == LMQ_OK,
                      "%s: %s", types[i][0], err.message);
        ck_assert(is_known);
        ck_assert_str_eq(model.h.architecture, types[i][1]);
        ck_assert_str_eq(model.h.unsupported, "");
    }
    /* A class that we do not know is not one that we guess. */
    ck_assert_int_eq(parse_config("{'architectures':['LlamaForX'],"
                                  "'model_type':'llama'," SMALL "}",
                                  &model, &is_known, &err),
                     LMQ_OK);
    ck_assert(!is_known);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        llama_3_2_1b,
        mistral_7b,
        mixtral_8x7b,
        smollm3_3b,
        granite_3_0_2b,
        qwen3_next_80b_a3b,
        qwen2_5_0_5b,
        qwen1_5_moe_a2_7b,
        qwen3_0_6b,
        qwen3_30b_a3b,
        deepseek_v2_lite,
        deepseek_v2_routes_in_groups,
        deepseek_v3,
        the_model_type_decides_where_no_class_is_named,
    };

    return RUN_SUITE("hf_llama", tests);
}
