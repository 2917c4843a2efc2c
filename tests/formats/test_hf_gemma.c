/*
 * test_hf_gemma.c - the families of config.json, by published configurations
 * (without what no computation depends on): Gemma, OLMo, Cohere.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Gemma ---- */

START_TEST(gemma_2b)
{
    struct model *m = read_model(
        "{'architectures':['GemmaForCausalLM'],'attention_bias':false,"
        "'bos_token_id':2,'eos_token_id':1,'head_dim':256,"
        "'hidden_act':'gelu','hidden_activation':null,'hidden_size':2048,"
        "'intermediate_size':16384,'max_position_embeddings':8192,"
        "'model_type':'gemma','num_attention_heads':8,"
        "'num_hidden_layers':18,'num_key_value_heads':1,'pad_token_id':0,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':10000.0,"
        "'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "gemma");
    assert_sizes(&m->h, 18, 2048, 16384, 8, 1, 256);
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_BEFORE);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert_double_eq(m->h.embedding_scale, sqrt(2048));
    ck_assert_double_eq(m->h.attn_scale, 0);
    ck_assert_double_eq(m->h.attn_softcap, 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert(m->h.is_gated);
    m = read_small("GemmaForCausalLM", "'hidden_act':'silu'");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert_uint_eq(m->h.head_dim, 256);
    assert_unsupported("GemmaForCausalLM",
                       "'use_bidirectional_attention':true",
                       "'use_bidirectional_attention' true");
}
END_TEST

START_TEST(gemma_2_2b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma2ForCausalLM'],'attention_bias':false,"
        "'attn_logit_softcapping':50.0,'bos_token_id':2,"
        "'cache_implementation':'hybrid','eos_token_id':1,"
        "'final_logit_softcapping':30.0,'head_dim':256,"
        "'hidden_act':'gelu_pytorch_tanh',"
        "'hidden_activation':'gelu_pytorch_tanh','hidden_size':2304,"
        "'intermediate_size':9216,'max_position_embeddings':8192,"
        "'model_type':'gemma2','num_attention_heads':8,"
        "'num_hidden_layers':26,'num_key_value_heads':4,"
        "'query_pre_attn_scalar':256,'rms_norm_eps':1e-06,"
        "'rope_theta':10000.0,'sliding_window':4096,'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "gemma2");
    assert_sizes(&m->h, 26, 2304, 9216, 8, 4, 256);
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_double_eq(m->h.attn_scale, 0.0625);
    ck_assert_double_eq(m->h.attn_softcap, 50);
    ck_assert_double_eq(m->h.logit_softcap, 30);
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x");
    ck_assert_double_eq(m->h.rope_local_theta, 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("Gemma2ForCausalLM", "'query_pre_attn_scalar':144,"
                                        "'final_logit_softcapping':null");
    assert_near(m->h.attn_scale, 1.0 / 12);
    ck_assert_double_eq(m->h.attn_softcap, 50);
    ck_assert_double_eq(m->h.logit_softcap, 0);
    assert_wrong("Gemma2ForCausalLM", "'query_pre_attn_scalar':0",
                 "'query_pre_attn_scalar'");
    assert_wrong("Gemma2ForCausalLM", "'sliding_window':null",
                 "'sliding_window'");
}
END_TEST

START_TEST(gemma_3_1b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma3ForCausalLM'],'attention_bias':false,"
        "'attn_logit_softcapping':null,'bos_token_id':2,"
        "'cache_implementation':'hybrid','eos_token_id':[1,106],"
        "'final_logit_softcapping':null,'head_dim':256,"
        "'hidden_activation':'gelu_pytorch_tanh','hidden_size':1152,"
        "'intermediate_size':6912,'max_position_embeddings':32768,"
        "'model_type':'gemma3_text','num_attention_heads':4,"
        "'num_hidden_layers':26,'num_key_value_heads':1,"
        "'query_pre_attn_scalar':256,'rms_norm_eps':1e-06,"
        "'rope_local_base_freq':10000,'rope_scaling':null,"
        "'rope_theta':1000000,'sliding_window':512,"
        "'sliding_window_pattern':6,'vocab_size':262144}");

    ck_assert_str_eq(m->h.architecture, "gemma3");
    assert_sizes(&m->h, 26, 1152, 6912, 4, 1, 256);
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.sliding_window, 512);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".....x");
    ck_assert_double_eq(m->h.rope_theta, 1e6);
    ck_assert_double_eq(m->h.rope_local_theta, 10000);
    ck_assert_double_eq(m->h.attn_softcap, 0);
    ck_assert_double_eq(m->h.logit_softcap, 0);
    ck_assert_uint_eq(m->h.n_eos, 2);
    ck_assert_int_eq(m->h.eos[1], 106);
    m = read_small("Gemma3ForCausalLM", "'sliding_window_pattern':1");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert_double_eq(m->h.rope_local_theta, 0);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".");
    assert_wrong("Gemma3ForCausalLM", "'sliding_window_pattern':0",
                 "'sliding_window_pattern'");
    assert_wrong("Gemma3ForCausalLM", "'sliding_window':null",
                 "'sliding_window'");
}
END_TEST

START_TEST(gemma_3_4b_speaks_of_its_text_model)
{
    struct model *m = read_model(
        "{'architectures':['Gemma3ForConditionalGeneration'],"
        "'boi_token_index':255999,'eoi_token_index':256000,"
        "'eos_token_id':[1,106],'image_token_index':262144,"
        "'mm_tokens_per_image':256,'model_type':'gemma3','text_config':{"
        "'hidden_size':2560,'intermediate_size':10240,"
        "'model_type':'gemma3_text','num_hidden_layers':34,"
        "'rope_scaling':{'factor':8.0,'rope_type':'linear'},"
        "'sliding_window':1024},'vision_config':{'hidden_size':1152,"
        "'model_type':'siglip_vision_model','num_hidden_layers':27}}");

    ck_assert_str_eq(m->h.architecture, "gemma3");
    assert_sizes(&m->h, 34, 2560, 10240, 8, 4, 256);
    ck_assert_uint_eq(m->h.vocab_size, 262208);
    ck_assert_uint_eq(m->h.sliding_window, 1024);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LINEAR);
    ck_assert_double_eq(m->h.rope_factor, 8);
    ck_assert_double_eq(m->h.rope_local_theta, 10000);
    ck_assert_uint_eq(m->h.n_eos, 2);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("Gemma3ForConditionalGeneration",
                   "'tie_word_embeddings':false,'eos_token_id':7,"
                   "'text_config':{'tie_word_embeddings':true,"
                   "'eos_token_id':[8,9]}");
    ck_assert_int_eq(m->h.tie, LMQ_TIE_UNSET); /* nobody knows */
    ck_assert_uint_eq(m->h.n_eos, 1);
    ck_assert_int_eq(m->h.eos[0], 7);
    assert_wrong("Gemma3ForConditionalGeneration", "'x':1", "'text_config'");
    assert_wrong("Gemma3ForConditionalGeneration", "'text_config':3",
                 "'text_config'");
}
END_TEST

/* ---- Gemma 4 ---- */

#define GEMMA4_ROPE                                                           \
    "'rope_parameters':{'full_attention':{'partial_rotary_factor':0.25,"      \
    "'rope_theta':1000000.0,'rope_type':'proportional'},"                     \
    "'sliding_attention':{'rope_theta':10000.0,'rope_type':'default'}}"

START_TEST(gemma_4_e2b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma4ForConditionalGeneration'],"
        "'audio_config':{'model_type':'gemma4_audio'},"
        "'eos_token_id':[1,106],'image_token_id':258880,"
        "'model_type':'gemma4','text_config':{'attention_k_eq_v':false,"
        "'enable_moe_block':false,'final_logit_softcapping':30.0,"
        "'global_head_dim':512,'head_dim':256,'hidden_size':1536,"
        "'hidden_activation':'gelu_pytorch_tanh',"
        "'hidden_size_per_layer_input':256,'intermediate_size':6144,"
        "'layer_types':['sliding_attention','sliding_attention',"
        "'sliding_attention','sliding_attention','full_attention',"
        "'sliding_attention','sliding_attention','sliding_attention',"
        "'sliding_attention','full_attention'],"
        "'max_position_embeddings':131072,'model_type':'gemma4_text',"
        "'num_attention_heads':8,'num_experts':null,"
        "'num_global_key_value_heads':null,'num_hidden_layers':10,"
        "'num_key_value_heads':1,'num_kv_shared_layers':5,"
        "'rms_norm_eps':1e-06," GEMMA4_ROPE ",'sliding_window':512,"
        "'use_bidirectional_attention':null,'use_double_wide_mlp':true,"
        "'vocab_size':262144,'vocab_size_per_layer_input':262144},"
        "'tie_word_embeddings':true,"
        "'vision_config':{'model_type':'gemma4_vision'}}");

    ck_assert_str_eq(m->h.architecture, "gemma4");
    assert_sizes(&m->h, 10, 1536, 6144, 8, 1, 256);
    assert_source(&m->source, false, false, false, false);
    assert_layers(&m->h, LMQ_LAYER_FULL, "....x");
    ck_assert_uint_eq(m->h.full_head_dim, 512);
    ck_assert_uint_eq(m->h.full_kv_heads, 0);
    ck_assert(!m->h.full_keys_are_values && m->h.has_value_norm);
    ck_assert(m->h.has_layer_scale);
    ck_assert_uint_eq(m->h.n_borrowing, 5);
    ck_assert_uint_eq(m->h.borrowing_hidden_dim, 12288);
    ck_assert_uint_eq(m->h.layer_input_dim, 256);
    ck_assert_uint_eq(lmq_layer_kv_source(&m->h, 9), 4);
    ck_assert_uint_eq(lmq_layer_kv_source(&m->h, 8), 3);
    ck_assert_uint_eq(lmq_layer_kv_source(&m->h, 2), 2);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_FACTORS);
    ck_assert_uint_eq(m->h.n_rope_factors, 256);
    ck_assert_double_eq(m->h.rope_short[63], 1);
    ck_assert_double_eq(m->h.rope_short[64], 1e30);
    ck_assert_double_eq(m->h.rope_local_theta, 10000);
    ck_assert_double_eq(m->h.attn_scale, 1);
    ck_assert_double_eq(m->h.embedding_scale, sqrt(1536));
    ck_assert_double_eq(m->h.logit_softcap, 30);
}
END_TEST

/* As transformers writes it today, and its 26B with experts. */
START_TEST(gemma_4_31b_and_26b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma4ForCausalLM'],'attention_k_eq_v':true,"
        "'head_dim':256,'hidden_size':5376,'hidden_size_per_layer_input':0,"
        "'intermediate_size':21504,'layer_types':['sliding_attention',"
        "'full_attention','sliding_attention','full_attention'],"
        "'model_type':'gemma4_text','num_attention_heads':32,"
        "'num_hidden_layers':4,'num_key_value_heads':16,"
        "'per_layer_config':{'1':{'head_dim':512,'num_key_value_heads':4},"
        "'3':{'head_dim':512,'num_key_value_heads':4}}," GEMMA4_ROPE
        ",'sliding_window':1024,'use_bidirectional_attention':'vision',"
        "'vocab_size':262144}");

    assert_sizes(&m->h, 4, 5376, 21504, 32, 16, 256);
    ck_assert_uint_eq(m->h.full_head_dim, 512);
    ck_assert_uint_eq(m->h.full_kv_heads, 4);
    ck_assert(m->h.full_keys_are_values);
    ck_assert_uint_eq(m->h.layer_input_dim, 0);
    ck_assert_uint_eq(m->h.n_experts, 0);
    m = read_model(
        "{'architectures':['Gemma4ForCausalLM'],'attention_k_eq_v':true,"
        "'enable_moe_block':true,'global_head_dim':512,'head_dim':256,"
        "'hidden_size':2816,'hidden_size_per_layer_input':null,"
        "'intermediate_size':2112,'model_type':'gemma4_text',"
        "'moe_intermediate_size':704,'num_attention_heads':16,"
        "'num_experts':128,'num_global_key_value_heads':2,"
        "'num_hidden_layers':30,'num_key_value_heads':8," GEMMA4_ROPE
        ",'sliding_window':1024,'top_k_experts':8,'vocab_size':262144}");
    assert_sizes(&m->h, 30, 2816, 2112, 16, 8, 256);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".....x");
    ck_assert_uint_eq(m->h.full_kv_heads, 2);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.expert_dim, 704);
    ck_assert_uint_eq(m->h.shared_dim, 2112);
    ck_assert(m->h.has_expert_norms && m->h.router_renormalises);
}
END_TEST

/* Of eleven layers or more the numbers have zeros before them; and none is
 * named if all heads are alike. */
START_TEST(gemma_4_names_layers_as_the_library_does)
{
    static const char *const names[] = {
        "'05':{'head_dim':32},'11':{'head_dim':32}",
        "'5':{'head_dim':32},'11':{'head_dim':32}", ""};

    for (size_t i = 0; i < 3; i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "{'architectures':['Gemma4ForCausalLM'],'head_dim':16,"
                 "'hidden_size_per_layer_input':0,"
                 "'num_hidden_layers':12,'per_layer_config':{%s},"
                 "'hidden_size':64,'intermediate_size':96,"
                 "'num_attention_heads':4,'num_key_value_heads':2,"
                 "'vocab_size':262144," GEMMA4_ROPE "}", names[i]);
        struct model *m = read_model(text);
        ck_assert_str_eq(m->h.unsupported, "");
        ck_assert_uint_eq(m->h.full_head_dim, i < 2 ? 32 : 0);
    }
}
END_TEST

/* The 12B has a class of its own, without inputs and experts. */
START_TEST(gemma_4_12b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma4UnifiedForConditionalGeneration'],"
        "'model_type':'gemma4_unified','text_config':{"
        "'attention_k_eq_v':true,'global_head_dim':512,'head_dim':256,"
        "'hidden_size':3840,'intermediate_size':15360,"
        "'model_type':'gemma4_unified_text','num_attention_heads':16,"
        "'num_global_key_value_heads':1,'num_hidden_layers':48,"
        "'num_key_value_heads':8," GEMMA4_ROPE ",'vocab_size':262144},"
        "'vision_config':{'model_type':'gemma4_unified_vision'}}");

    ck_assert_str_eq(m->h.architecture, "gemma4");
    assert_sizes(&m->h, 48, 3840, 15360, 16, 8, 256);
    ck_assert_uint_eq(m->h.sliding_window, 1024);
    ck_assert_uint_eq(m->h.context, 262144);
    ck_assert_uint_eq(m->h.full_kv_heads, 1);
    ck_assert_uint_eq(m->h.layer_input_dim, 0);
}
END_TEST

#define NO_INPUTS "'hidden_size_per_layer_input':0,"

START_TEST(gemma_4_in_other_ways_is_refused)
{
    static const char class[] = "Gemma4ForCausalLM";

    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'use_bidirectional_attention':'all'",
                       "'use_bidirectional_attention' 'all'");
    assert_unsupported(class, GEMMA4_ROPE ",'vocab_size_per_layer_input':99",
                       "'vocab_size_per_layer_input' other than "
                       "'vocab_size'");
    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'per_layer_config':{'5':{'head_dim':32,'x':1}}",
                       "'x' in 'per_layer_config'");
    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'per_layer_config':{'4':{'head_dim':32}}",
                       "'per_layer_config' of layer 4");
    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'per_layer_config':{'5x':{'head_dim':32}}",
                       "'5x' in 'per_layer_config'");
    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'per_layer_config':{'99':{'head_dim':32}}",
                       "'99' in 'per_layer_config'");
    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'per_layer_config':{'5':{'head_dim':32},"
                       "'7':{'head_dim':64}}",
                       "layers that differ in 'per_layer_config'");
    assert_unsupported(class, NO_INPUTS GEMMA4_ROPE
                       ",'layer_types':['full_attention','full_attention',"
                       "'full_attention','full_attention','full_attention',"
                       "'full_attention','full_attention','full_attention']",
                       "a model of this kind without windows");
    assert_wrong(class, NO_INPUTS GEMMA4_ROPE ",'sliding_window':0",
                 "'sliding_window'");
    assert_wrong(class, NO_INPUTS
                 "'rope_parameters':{'full_attention':{'rope_type':"
                 "'proportional','partial_rotary_factor':2,"
                 "'rope_theta':1e6},'sliding_attention':{}}",
                 "'partial_rotary_factor'");
}
END_TEST

START_TEST(newer_files_have_rotary_positions_by_kind_of_layer)
{
    struct model *m = read_small(
        "Gemma3ForCausalLM",
        "'layer_types':['sliding_attention','full_attention',"
        "'sliding_attention','full_attention','sliding_attention',"
        "'full_attention','sliding_attention','sliding_attention'],"
        "'rope_parameters':{'full_attention':{'rope_type':'linear',"
        "'factor':8.0,'rope_theta':2000000.0},'sliding_attention':{"
        "'rope_type':'default','rope_theta':20000.0}}");

    ck_assert_str_eq(m->h.unsupported, "");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x.x.x..");
    ck_assert_double_eq(m->h.rope_theta, 2e6);
    ck_assert_double_eq(m->h.rope_local_theta, 20000);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LINEAR);
    ck_assert_double_eq(m->h.rope_factor, 8);
    assert_unsupported("Gemma3ForCausalLM",
                       "'rope_parameters':{'full_attention':{},"
                       "'sliding_attention':{'rope_type':'linear',"
                       "'factor':2}}",
                       "rotary scaling of layers with a window");
    assert_unsupported("Gemma2ForCausalLM",
                       "'rope_parameters':{'full_attention':{},"
                       "'sliding_attention':{'rope_theta':5000}}",
                       "rotary positions by kind of layer");
}
END_TEST

/* ---- OLMo, Cohere ---- */

START_TEST(olmo_1b_and_7b)
{
    struct model *m = read_model(
        "{'architectures':['OlmoForCausalLM'],'attention_bias':false,"
        "'clip_qkv':null,'eos_token_id':50279,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':8192,"
        "'max_position_embeddings':2048,'model_type':'olmo',"
        "'num_attention_heads':16,'num_hidden_layers':16,"
        "'num_key_value_heads':16,'pad_token_id':1,'rope_scaling':null,"
        "'rope_theta':10000.0,'tie_word_embeddings':true,"
        "'vocab_size':50304}");

    ck_assert_str_eq(m->h.architecture, "olmo");
    assert_sizes(&m->h, 16, 2048, 8192, 16, 16, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER_PLAIN);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
    ck_assert_double_eq(m->h.qkv_clip, 0);
    m = read_small("OlmoForCausalLM", "'clip_qkv':8.0,'rms_norm_eps':3");
    ck_assert_double_eq(m->h.qkv_clip, 8);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
}
END_TEST

START_TEST(olmo_2_7b)
{
    struct model *m = read_model(
        "{'architectures':['Olmo2ForCausalLM'],'attention_bias':false,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':11008,'max_position_embeddings':4096,"
        "'model_type':'olmo2','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':32,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':500000,"
        "'tie_word_embeddings':false,'vocab_size':100352}");

    ck_assert_str_eq(m->h.architecture, "olmo2");
    assert_sizes(&m->h, 32, 4096, 11008, 32, 32, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_RMS);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AFTER);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert_double_eq(m->h.norm_eps, 1e-6);
    m = read_small("Olmo2ForCausalLM", "");
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
}
END_TEST

START_TEST(olmo_3_7b)
{
    struct model *m = read_model(
        "{'architectures':['Olmo3ForCausalLM'],'attention_bias':false,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':11008,'max_position_embeddings':65536,"
        "'model_type':'olmo3','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':32,"
        "'rms_norm_eps':1e-06,'rope_scaling':{'attention_factor':"
        "1.2079441541679836,'beta_fast':32.0,'beta_slow':1.0,'factor':8.0,"
        "'original_max_position_embeddings':8192,'rope_type':'yarn'},"
        "'rope_theta':500000,'sliding_window':4096,"
        "'tie_word_embeddings':false,'vocab_size':100278}");

    ck_assert_str_eq(m->h.architecture, "olmo3");
    assert_sizes(&m->h, 32, 4096, 11008, 32, 32, 128);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AFTER);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    ck_assert_double_eq(m->h.rope_local_theta, 500000);
    ck_assert_uint_eq(lmq_layer_window(&m->h, 30), 4096);
    ck_assert_uint_eq(lmq_layer_window(&m->h, 31), 0);
    m = read_small("Olmo3ForCausalLM",
                   "'rope_parameters':{'full_attention':{'rope_theta':7e5,"
                   "'rope_type':'default'},'sliding_attention':"
                   "{'rope_theta':6e5,'rope_type':'default'}}");
    ck_assert_double_eq(m->h.rope_theta, 7e5);
    ck_assert_double_eq(m->h.rope_local_theta, 6e5);
}
END_TEST

/* Whether layers with a window follow depends on the library's version. */
START_TEST(an_olmo_3_with_another_base_is_not_understood)
{
    struct model model;
    struct lmq_error err = {0};
    bool is_known;

    ck_assert_int_eq(parse_config("{'architectures':['Olmo3ForCausalLM'],"
                                  "'rope_theta':10000," SMALL "}",
                                  &model, &is_known, &err),
                     LMQ_OK);
    ck_assert_ptr_nonnull(strstr(model.h.unsupported, "'rope_theta'"));
}
END_TEST

START_TEST(command_r_and_its_larger_one)
{
    struct model *m = read_model(
        "{'architectures':['CohereForCausalLM'],'attention_bias':false,"
        "'bos_token_id':5,'eos_token_id':255001,'hidden_act':'silu',"
        "'hidden_size':8192,'intermediate_size':22528,"
        "'layer_norm_eps':1e-05,'logit_scale':0.0625,"
        "'max_position_embeddings':8192,'model_max_length':131072,"
        "'model_type':'cohere','num_attention_heads':64,"
        "'num_hidden_layers':40,'num_key_value_heads':64,"
        "'rope_theta':8000000.0,'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "cohere");
    assert_sizes(&m->h, 40, 8192, 22528, 64, 64, 128);
    assert_source(&m->source, true, false, false, false);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_double_eq(m->h.logit_scale, 0.0625);
    ck_assert_double_eq(m->h.rope_theta, 8e6);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert(m->h.is_gated);
    m = read_model(
        "{'architectures':['CohereForCausalLM'],'attention_bias':false,"
        "'hidden_act':'silu','hidden_size':12288,"
        "'intermediate_size':33792,'layer_norm_eps':1e-05,"
        "'logit_scale':0.8333333333333334,'max_position_embeddings':8192,"
        "'model_type':'cohere','num_attention_heads':96,"
        "'num_hidden_layers':64,'num_key_value_heads':8,"
        "'rope_theta':75000000.0,'tie_word_embeddings':true,"
        "'use_qk_norm':true,'vocab_size':256000}");
    assert_sizes(&m->h, 64, 12288, 33792, 96, 8, 128);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEADS);
    ck_assert_double_eq(m->h.logit_scale, 0.8333333333333334);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        gemma_2b,
        gemma_2_2b,
        gemma_3_1b,
        gemma_3_4b_speaks_of_its_text_model,
        gemma_4_e2b,
        gemma_4_31b_and_26b,
        gemma_4_names_layers_as_the_library_does,
        gemma_4_12b,
        gemma_4_in_other_ways_is_refused,
        newer_files_have_rotary_positions_by_kind_of_layer,
        olmo_1b_and_7b,
        olmo_2_7b,
        olmo_3_7b,
        an_olmo_3_with_another_base_is_not_understood,
        command_r_and_its_larger_one,
    };

    return RUN_SUITE("hf_gemma", tests);
}
