/*
 * test_hf_recurrent.c - the families of config.json that remember states, by
 * published configurations (without what no computation depends on, and with
 * fewer layers).
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/model/hparams_check.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

START_TEST(granite_4_h_micro)
{
    struct model *m = read_model(
        "{'architectures':['GraniteMoeHybridForCausalLM'],"
        "'attention_bias':false,'attention_multiplier':0.015625,"
        "'bos_token_id':100257,'embedding_multiplier':12,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':2048,"
        "'intermediate_size':8192,'layer_types':['mamba','mamba','mamba',"
        "'mamba','mamba','attention','mamba','mamba'],'logits_scaling':8,"
        "'mamba_chunk_size':256,'mamba_conv_bias':true,'mamba_d_conv':4,"
        "'mamba_d_head':64,'mamba_d_state':128,'mamba_expand':2,"
        "'mamba_n_groups':1,'mamba_n_heads':64,'mamba_proj_bias':false,"
        "'max_position_embeddings':131072,'model_type':'granitemoehybrid',"
        "'normalization_function':'rmsnorm','num_attention_heads':32,"
        "'num_experts_per_tok':0,'num_hidden_layers':8,"
        "'num_key_value_heads':8,'num_local_experts':0,"
        "'position_embedding_type':'nope','residual_multiplier':0.22,"
        "'rms_norm_eps':1e-05,'rope_scaling':null,'rope_theta':10000,"
        "'shared_intermediate_size':8192,'tie_word_embeddings':true,"
        "'vocab_size':100352}");

    ck_assert_str_eq(m->h.architecture, "granitehybrid");
    assert_sizes(&m->h, 8, 2048, 8192, 32, 8, 64);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxxx.xx");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".....x..");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_STATE_SPACE);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 64);
    ck_assert_uint_eq(m->h.delta_value_dim, 64);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 1);
    ck_assert_uint_eq(m->h.delta_key_dim, 128);
    ck_assert_uint_eq(m->h.conv_width, 4);
    assert_near(m->h.logit_scale, 0.125);
    assert_near(m->h.attn_scale, 0.015625);
}
END_TEST

START_TEST(nemotron_3_nano)
{
    struct model *m = read_model(
        "{'architectures':['NemotronHForCausalLM'],'attention_bias':false,"
        "'bos_token_id':1,'chunk_size':128,'conv_kernel':4,"
        "'eos_token_id':2,'expand':2,'head_dim':128,'hidden_size':2688,"
        "'hybrid_override_pattern':'MEMEM*EMEMEM*E',"
        "'intermediate_size':1856,'layer_norm_epsilon':1e-05,"
        "'mamba_head_dim':64,'mamba_hidden_act':'silu',"
        "'mamba_num_heads':64,'mamba_proj_bias':false,"
        "'max_position_embeddings':262144,'mlp_bias':false,"
        "'mlp_hidden_act':'relu2','model_type':'nemotron_h',"
        "'moe_intermediate_size':1856,"
        "'moe_shared_expert_intermediate_size':3712,'n_group':1,"
        "'n_groups':8,'n_routed_experts':128,'n_shared_experts':1,"
        "'norm_eps':1e-05,'norm_topk_prob':true,'num_attention_heads':32,"
        "'num_experts_per_tok':6,'num_hidden_layers':52,"
        "'num_key_value_heads':2,'partial_rotary_factor':1.0,"
        "'rope_theta':10000,'routed_scaling_factor':2.5,"
        "'sliding_window':null,'ssm_state_size':128,"
        "'time_step_limit':[0.0,Infinity],'time_step_min':0.001,"
        "'topk_group':1,'use_bias':false,'use_conv_bias':true,"
        "'use_mamba_kernels':true,'vocab_size':131072}");

    ck_assert_str_eq(m->h.architecture, "nemotron_h_moe");
    assert_sizes(&m->h, 14, 2688, 1856, 32, 2, 128);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "x.x.x..x.x.x..");
    assert_layers(&m->h, LMQ_LAYER_FEED, ".x.x..x.x.x..x");
    assert_layers(&m->h, LMQ_LAYER_BARE, "x.x.xx.x.x.xx.");
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_NONE);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU2);
    ck_assert(!m->h.is_gated && m->h.router_renormalises);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.shared_dim, 3712);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 8);
    ck_assert_uint_eq(m->h.delta_value_dim, 64);
    assert_near(m->h.router_scale, 2.5);
}
END_TEST

START_TEST(olmo_hybrid_7b)
{
    struct model *m = read_model(
        "{'architectures':['OlmoHybridForCausalLM'],'attention_bias':false,"
        "'attention_dropout':0.0,'bos_token_id':null,'dtype':'bfloat16',"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':3840,"
        "'intermediate_size':11008,'layer_types':['linear_attention',"
        "'linear_attention','linear_attention','full_attention'],"
        "'linear_a_log_max':16.0,'linear_a_log_min':0.0,"
        "'linear_allow_neg_eigval':true,'linear_conv_kernel_dim':4,"
        "'linear_key_head_dim':96,'linear_num_key_heads':30,"
        "'linear_num_value_heads':30,'linear_value_head_dim':192,"
        "'max_position_embeddings':65536,'model_type':'olmo_hybrid',"
        "'num_attention_heads':30,'num_hidden_layers':4,"
        "'num_key_value_heads':30,'pad_token_id':100277,"
        "'rms_norm_eps':1e-06,'rope_parameters':{'rope_theta':null},"
        "'tie_word_embeddings':false,'use_cache':true,'vocab_size':100352}");

    ck_assert_str_eq(m->h.architecture, "olmo_hybrid");
    assert_sizes(&m->h, 4, 3840, 11008, 30, 30, 128);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxx.");
    assert_layers(&m->h, LMQ_LAYER_AFTER, "...x");
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_BEFORE);
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_DELTA);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_NONE);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 30);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 30);
    ck_assert_uint_eq(m->h.delta_key_dim, 96);
    ck_assert_uint_eq(m->h.delta_value_dim, 192);
    ck_assert_uint_eq(m->h.conv_width, 4);
    ck_assert(!m->h.has_attn_gate && !m->h.has_bare_states);
    assert_near(m->h.norm_eps, 1e-6);
    assert_near(m->h.state_eps, 1e-5);
    assert_near(m->h.beta_scale, 2);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_NO);
}
END_TEST

START_TEST(an_olmo_hybrid_says_little)
{
    struct model *m = read_small("OlmoHybridForCausalLM",
                                 "'rope_theta':null,'layer_types':null,"
                                 "'linear_num_key_heads':null");

    ck_assert_str_eq(m->h.unsupported, "");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxx.");
    assert_layers(&m->h, LMQ_LAYER_AFTER, "...x");
    ck_assert_uint_eq(m->h.n_delta_key_heads, 4);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 4);
    ck_assert_uint_eq(m->h.delta_key_dim, 12);
    ck_assert_uint_eq(m->h.delta_value_dim, 24);
    ck_assert_uint_eq(m->h.conv_width, 4);
    assert_near(m->h.norm_eps, 1e-6);
    assert_near(m->h.beta_scale, 2);
    ck_assert_uint_eq(m->h.context, 65536);
    m = read_small("OlmoHybridForCausalLM",
                   "'rope_theta':null,'linear_num_key_heads':5,"
                   "'linear_num_value_heads':10,'rms_norm_eps':1e-5,"
                   "'linear_allow_neg_eigval':false");
    ck_assert_uint_eq(m->h.delta_key_dim, 9); /* of 9.6 */
    ck_assert_uint_eq(m->h.delta_value_dim, 18);
    assert_near(m->h.beta_scale, 1);
    ck_assert(!(m->h.state_eps > 0)); /* what norm_eps says, too */
    m = read_small("OlmoHybridForCausalLM",
                   "'rope_theta':null,'linear_num_key_heads':2");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 4);
    ck_assert_uint_eq(m->h.delta_key_dim, 24);
    m = read_model("{'model_type':'olmo_hybrid','hidden_size':64,"
                   "'intermediate_size':96,'num_hidden_layers':6,"
                   "'num_attention_heads':4,'vocab_size':100,"
                   "'rope_parameters':{'rope_theta':null}}");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxx.xx");
    m = read_model("{'model_type':'olmo_hybrid','hidden_size':64,"
                   "'intermediate_size':96,'num_hidden_layers':3,"
                   "'num_attention_heads':4,'vocab_size':100,"
                   "'rope_parameters':{'rope_theta':null}}");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xx.");
    assert_sizes(&m->h, 3, 64, 96, 4, 4, 16);
    assert_unsupported("OlmoHybridForCausalLM",
                       "'rope_theta':null,'hidden_act':'gelu'",
                       "a convolution with another activation than SiLU");
    assert_wrong("OlmoHybridForCausalLM",
                 "'rope_theta':null,'linear_allow_neg_eigval':2",
                 "'linear_allow_neg_eigval' in the configuration is neither "
                 "true nor false");
    assert_wrong("OlmoHybridForCausalLM",
                 "'rope_theta':null,'linear_key_head_dim':0.5",
                 "'linear_key_head_dim' in the configuration is no whole");
    assert_wrong("OlmoHybridForCausalLM",
                 "'rope_theta':null,'layer_types':['sliding_attention',"
                 "'linear_attention','linear_attention','linear_attention',"
                 "'linear_attention','linear_attention','linear_attention',"
                 "'full_attention']",
                 "gives layer 0 a window, and there is none");
}
END_TEST

/* Versions of the library take nothing for no positions, or for 10000; null
 * all take for none, where it counts. */
START_TEST(an_olmo_hybrid_says_whether_it_turns)
{
    static const struct {
        const char *keys;
        double theta; /* 0: none */
    } said[] = {
        {"'rope_parameters':{'rope_theta':5e5}", 5e5},
        {"'rope_theta':5e5,'rope_parameters':null", 5e5},
        {"'rope_theta':null,'rope_parameters':{'rope_theta':3e4}", 3e4},
        {"'rope_theta':3e4,'rope_parameters':{'rope_theta':null}", 0},
        {"'rope_theta':null,'rope_parameters':{'rope_type':'default'}", 0},
        {"'rope_theta':null", 0},
    };
    static const char *const unsaid[] = {
        "'rope_parameters':null", "'rope_parameters':{}",
        "'rope_parameters':{'rope_type':'default'}"};
    struct model *m;

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        m = read_small("OlmoHybridForCausalLM", said[i].keys);
        ck_assert_msg(m->source.unsaid_theta == NULL, "%s", said[i].keys);
        ck_assert_msg(m->h.positions == (said[i].theta > 0
                                             ? LMQ_POSITIONS_ROTARY
                                             : LMQ_POSITIONS_NONE),
                      "%s", said[i].keys);
        if (said[i].theta > 0)
            assert_near(m->h.rope_theta, said[i].theta);
    }
    for (size_t i = 0; i < sizeof(unsaid) / sizeof(unsaid[0]); i++) {
        m = read_small("OlmoHybridForCausalLM", unsaid[i]);
        ck_assert_pstr_eq(m->source.unsaid_theta, "rope_theta");
    }
}
END_TEST

/* What a description says of layers, of states, in one way. */
START_TEST(norms_of_layers_and_states_are_said_once)
{
    struct lmq_error err = {0};
    struct model *m = read_small("OlmoHybridForCausalLM", "'rope_theta':null");

    m->h.layers[0] |= LMQ_LAYER_BESIDE;
    ck_assert_int_eq(lmq_hparams_check(&m->h, &err), LMQ_OK);
    m->h.layers[0] |= LMQ_LAYER_AFTER;
    ck_assert_int_eq(lmq_hparams_check(&m->h, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "layer 0 has attention beside"));
    m->h.norm_place = LMQ_NORMS_AFTER;
    lmq_hparams_settle(&m->h);
    assert_layers(&m->h, LMQ_LAYER_AFTER, ".");
    assert_near(m->h.state_eps, 1e-5);
    assert_near(m->h.beta_scale, 2);
    m->h.recurrence = LMQ_RECURRENCE_STATE_SPACE;
    lmq_hparams_settle(&m->h);
    assert_near(m->h.state_eps, 1e-5);
    assert_near(m->h.beta_scale, 1);
    m->h.has_bare_states = true;
    lmq_hparams_settle(&m->h);
    ck_assert(!(m->h.state_eps > 0));
}
END_TEST

/* Of 30 channels: queries and keys are 8 each, values 14. */
static void
assert_parts_refused(const uint64_t rows[3], uint64_t width, const char *why)
{
    static const char *const parts = "qkv";
    struct build_model *model = calloc(1, sizeof(*model));
    struct bytes bytes = {0};
    char name[64];

    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "model.layers.0.linear_attn.%c_conv1d."
                                     "weight", parts[i]);
        if (rows[i] > 0)
            build_add(model, name, (uint64_t[]){rows[i], 1, width}, 3);
    }
    mkdir(in_folder("apart"), 0777);
    put_safetensors(&bytes, model, 0, model->n_tensors, BUILD_F32);
    save(&bytes, in_folder("apart/model.safetensors"));
    bytes_free(&bytes);
    put_text(&bytes, "{\"model_type\":\"olmo_hybrid\",\"hidden_size\":16,"
                     "\"intermediate_size\":24,\"num_hidden_layers\":2,"
                     "\"num_attention_heads\":2,\"vocab_size\":100,"
                     "\"linear_num_key_heads\":2,\"linear_key_head_dim\":4,"
                     "\"linear_num_value_heads\":2,"
                     "\"linear_value_head_dim\":7,\"rope_theta\":null}");
    save(&bytes, in_folder("apart/config.json"));
    assert_refused(in_folder("apart"), LMQ_ERR_FORMAT, why);
    bytes_free(&bytes);
    build_free(model);
}

START_TEST(parts_of_a_convolution_are_all_of_it)
{
    const uint64_t good[] = {8, 8, 14}, equal[] = {10, 10, 10};
    const uint64_t few[] = {8, 8, 13}, many[] = {8, 8, 15};
    const uint64_t early[] = {16, 15, 1}, lone[] = {8, 0, 14};

    assert_parts_refused(good, 4, "lacks the tensor token_embd.weight");
    assert_parts_refused(equal, 4, "lacks the tensor token_embd.weight");
    assert_parts_refused(few, 4, "v_conv1d.weight' is 13 x 4, but the "
                                 "configuration says 30 x 4 of it");
    assert_parts_refused(many, 4, "v_conv1d.weight' is 15 x 4, but");
    assert_parts_refused(early, 4, "k_conv1d.weight' is 15 x 4, but");
    assert_parts_refused(good, 3, "q_conv1d.weight' is 8 x 3, but");
    assert_parts_refused(lone, 4, "lacks the tensor "
                                  "blk.0.ssm_conv1d_k.weight (layers count");
}
END_TEST

START_TEST(lfm2_350m)
{
    struct model *m = read_model(
        "{'architectures':['Lfm2ForCausalLM'],"
        "'block_auto_adjust_ff_dim':true,'block_dim':1024,"
        "'block_ff_dim':6656,'block_ffn_dim_multiplier':1.0,"
        "'block_multiple_of':256,'block_norm_eps':1e-05,"
        "'block_use_swiglu':true,'bos_token_id':1,'conv_L_cache':3,"
        "'conv_bias':false,'conv_dim':1024,'conv_dim_out':1024,"
        "'eos_token_id':7,'full_attn_idxs':[2,5,8],'hidden_size':1024,"
        "'max_position_embeddings':128000,'model_type':'lfm2',"
        "'norm_eps':1e-05,'num_attention_heads':16,'num_heads':16,"
        "'num_hidden_layers':10,'num_key_value_heads':8,"
        "'rope_theta':1000000.0,'theta':1000000.0,'tie_embedding':true,"
        "'use_pos_enc':true,'vocab_size':65536}");

    ck_assert_str_eq(m->h.architecture, "lfm2");
    assert_sizes(&m->h, 10, 1024, 4608, 16, 8, 64);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xx.xx.xx.x");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_CONVOLUTION);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    assert_near(m->h.rope_theta, 1e6);
}
END_TEST

START_TEST(a_granite_4_has_mamba_if_nothing_is_said)
{
    struct model *m = read_small(
        "GraniteMoeHybridForCausalLM",
        "'num_local_experts':0,'shared_intermediate_size':48,"
        "'mamba_n_heads':4,'mamba_d_state':16,'mamba_expand':1.5,"
        "'time_step_limit':[0,Infinity]");

    ck_assert_str_eq(m->h.architecture, "granitehybrid");
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_STATE_SPACE);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 4);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 1);
    ck_assert_uint_eq(m->h.delta_key_dim, 16);
    ck_assert_uint_eq(m->h.delta_value_dim * 4, m->h.dim * 3 / 2);
    ck_assert_uint_eq(m->h.conv_width, 4);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxxxxxx");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "........");
    assert_unsupported("GraniteMoeHybridForCausalLM",
                       "'mamba_n_heads':4,'time_step_limit':[0.01,Infinity]",
                       "'time_step_limit' that limits steps");
    assert_unsupported("BambaForCausalLM",
                       "'mamba_n_heads':4,'hidden_act':'gelu'",
                       "a convolution with another activation than SiLU");
}
END_TEST

/* A Nemotron-H whose tensors have other shapes than any description says. */
static void
assert_beyond(const char *more, const char *why)
{
    struct lmq_error err = {0};
    struct model model;
    bool is_known = true;
    char text[4096];

    snprintf(text, sizeof(text),
             "{'architectures':['NemotronHForCausalLM']," SMALL ",%s}", more);
    ck_assert_int_eq(parse_config(text, &model, &is_known, &err), LMQ_OK);
    ck_assert(!is_known);
    ck_assert_str_eq(model.h.unsupported, why);
}

START_TEST(a_layer_of_nemotron_h_has_one_part)
{
    struct model *m = read_small(
        "NemotronHForCausalLM",
        "'hybrid_override_pattern':'M-*E','n_routed_experts':4,"
        "'mamba_num_heads':4,'mamba_head_dim':8,'n_groups':2");

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.n_layers, 4);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_NONE);
    ck_assert(!m->h.is_gated);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "x...");
    assert_layers(&m->h, LMQ_LAYER_BARE, "x.x.");
    assert_layers(&m->h, LMQ_LAYER_FEED, ".x.x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".x..");
    ck_assert_uint_eq(m->h.n_experts, 4);
    m = read_small("NemotronHForCausalLM",
                   "'layers_block_type':['linear_attention','mlp',"
                   "'full_attention']");
    ck_assert_uint_eq(m->h.n_layers, 3);
    ck_assert_uint_eq(m->h.n_experts, 0);
    assert_layers(&m->h, LMQ_LAYER_BARE, "x.x");
    assert_beyond("'hybrid_override_pattern':'M+'",
                  "a layer of the kind '+'");
    assert_beyond("'layers_block_type':['mamba',3]", "a layer of the kind ''");
    assert_beyond("'hybrid_override_pattern':'ME','moe_latent_size':8",
                  "experts of a latent vector ('moe_latent_size')");
}
END_TEST

START_TEST(an_lfm2_says_its_width_in_three_numbers)
{
    struct model *m = read_small("Lfm2ForCausalLM",
                                 "'block_ff_dim':150,'block_multiple_of':64,"
                                 "'full_attn_idxs':[1,6],"
                                 "'hidden_act':'relu2'");

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert_uint_eq(m->h.hidden_dim, 128);
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_CONVOLUTION);
    ck_assert_uint_eq(m->h.conv_width, 3);
    ck_assert_uint_eq(m->h.delta_value_dim, m->h.dim);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 0);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "x.xxxx.x");
    m = read_small("Lfm2MoeForCausalLM", "'hidden_act':'relu2'");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    m = read_small("Lfm2ForCausalLM", "'block_auto_adjust_ff_dim':false");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "........");
    assert_unsupported("Lfm2ForCausalLM",
                       "'layer_types':['conv','mamba','conv','conv','conv',"
                       "'conv','conv','conv']",
                       "'mamba' in 'layer_types'");
}
END_TEST

START_TEST(what_no_layer_has_is_as_it_usually_is)
{
    struct model *m = read_small("Mamba2ForCausalLM",
                                 "'num_heads':8,'head_dim':16,'n_groups':2");

    ck_assert_str_eq(m->h.unsupported, "");
    assert_sizes(&m->h, 8, 64, 1, 1, 1, 1);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "x");
    assert_layers(&m->h, LMQ_LAYER_BARE, "x");
    m = read_small("NemotronHForCausalLM",
                   "'hybrid_override_pattern':'M-M-','mamba_num_heads':4,"
                   "'mamba_head_dim':8,'n_groups':2");
    assert_sizes(&m->h, 4, 64, 96, 1, 1, 1);
    m = read_small("Lfm2ForCausalLM",
                   "'full_attn_idxs':[],'block_auto_adjust_ff_dim':false");
    assert_sizes(&m->h, 8, 64, 96, 1, 1, 1);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_NONE);
}
END_TEST

START_TEST(states_that_make_no_sense_are_refused)
{
    static const char *const limits[] = {
        "[0.0]", "[0.0,0.1]", "['0',Infinity]", "[0.0,{'__float__':'NaN'}]",
        "[0.0,Infinity,1]",
    };
    char keys[128];

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        snprintf(keys, sizeof(keys), "'mamba_n_heads':4,'time_step_limit':%s",
                 limits[i]);
        assert_unsupported("BambaForCausalLM", keys,
                           "'time_step_limit' that limits steps");
    }
    assert_wrong("BambaForCausalLM", "'mamba_n_heads':5", "a width of 128");
    assert_wrong("BambaForCausalLM", "'mamba_n_heads':0", "0 heads");
    assert_wrong("BambaForCausalLM", "'mamba_n_heads':4,'mamba_d_head':64",
                 "mamba_d_head");
    assert_wrong("BambaForCausalLM", "'mamba_n_heads':4,'mamba_d_head':32.5",
                 "mamba_d_head");
    assert_wrong("BambaForCausalLM", "'mamba_n_heads':4,'mamba_expand':1e30",
                 "cannot share");
    assert_wrong("NemotronHForCausalLM", "'hybrid_override_pattern':''",
                 "names 0 layers");
    assert_wrong("NemotronHForCausalLM", "'mamba_num_heads':4",
                 "names 0 layers");
    assert_unsupported("NemotronHForCausalLM",
                       "'hybrid_override_pattern':'M-','mamba_hidden_act':"
                       "'gelu'",
                       "'mamba_hidden_act' 'gelu'");
    assert_unsupported("NemotronHForCausalLM",
                       "'hybrid_override_pattern':'-','time_step_min':0.5",
                       "'time_step_min' 0.5");
    assert_unsupported("NemotronHForCausalLM",
                       "'hybrid_override_pattern':'-','mamba_dt_min':0.01",
                       "'mamba_dt_min' 0.01");
    assert_wrong("Lfm2ForCausalLM", "'full_attn_idxs':['a']",
                 "full_attn_idxs");
    assert_wrong("Lfm2ForCausalLM", "'block_multiple_of':0",
                 "block_multiple_of");
    assert_wrong("Lfm2ForCausalLM", "'block_ffn_dim_multiplier':-1",
                 "block_ffn_dim_multiplier");
}
END_TEST

START_TEST(an_lfm_3_gates_whole_heads)
{
    struct model *m = read_small("Lfm3ForCausalLM",
                                 "'head_dim':16,'hidden_act':'gelu'");

    assert_layers(&m->h, LMQ_LAYER_DELTA, "xx.x.x.x");
    assert_layers(&m->h, LMQ_LAYER_FULL, "..x...x.");
    ck_assert(m->h.has_attn_gate && m->h.has_head_gate);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_FACTORS);
    ck_assert_uint_eq(m->h.conv_width, 7);
    ck_assert(m->h.rope_short[3] < 2 && m->h.rope_short[4] > 1e20);
    assert_near(m->h.rope_theta, 1e6);
    assert_near(m->h.rope_local_theta, 10000);
    m = read_small("Lfm3ForCausalLM",
                   "'use_attention_gate':false,'use_sandwich_norm':false");
    ck_assert(!m->h.has_attn_gate && !m->h.has_head_gate);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_BEFORE);
    assert_unsupported("Lfm3ForCausalLM",
                       "'rope_parameters':{'full_attention':{},"
                       "'sliding_attention':{}}",
                       "'sliding_attention' without a 'rope_theta'");
}
END_TEST

/* As the 0.5B has it. */
START_TEST(a_falcon_h1_has_both_in_each_layer)
{
    struct model *m = read_small(
        "FalconH1ForCausalLM",
        "'rope_theta':1e11,'mamba_d_ssm':1536,'mamba_n_heads':24,"
        "'mamba_d_state':128,'mamba_d_head':64,'key_multiplier':0.390625,"
        "'attention_in_multiplier':2.0,'attention_out_multiplier':0.9375,"
        "'ssm_multipliers':[0.35,0.25,0.125,0.5,0.3],'ssm_in_multiplier':"
        "1.25,'ssm_out_multiplier':0.23,'mlp_multipliers':[0.88,0.58],"
        "'embedding_multiplier':5.6,'lm_head_multiplier':0.039");

    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxxxxxx");
    assert_layers(&m->h, LMQ_LAYER_BESIDE, "xxxxxxxx");
    ck_assert(m->h.has_bare_states);
    ck_assert_uint_eq(m->h.delta_value_dim, 64);
    ck_assert_str_eq(m->h.unsupported, "");
    assert_near(m->h.embedding_scale, 5.6);
    assert_near(m->h.logit_scale, 0.039);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_ATTN_Q], 2);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_ATTN_K], 0.78125F);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_ATTN_OUT], 0.9375F);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_STATE_K], 0.15625F);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_STATE_Q], 0.625F);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_FFN_DOWN], 0.58F);
    m = read_small("FalconH1ForCausalLM",
                   "'mamba_d_ssm':null,'mamba_n_heads':8,'mamba_rms_norm':"
                   "true,'mamba_norm_before_gate':false");
    ck_assert(!m->h.has_bare_states);
    ck_assert_uint_eq(m->h.delta_value_dim, 16);
    ck_assert_float_eq(m->source.times[LMQ_ROLE_ATTN_Q], 0);
    assert_unsupported("FalconH1ForCausalLM", "'mamba_rms_norm':true",
                       "'mamba_norm_before_gate' true");
    assert_unsupported("FalconH1ForCausalLM",
                       "'rope_theta':1e11,'projectors_bias':true",
                       "'projectors_bias' true");
    assert_wrong("FalconH1ForCausalLM", "'mlp_multipliers':[1.0]",
                 "'mlp_multipliers' in the configuration has 1 numbers");
    assert_wrong("FalconH1ForCausalLM", "'mlp_multipliers':[1.0,null]",
                 "'mlp_multipliers' in the configuration holds something");
    assert_wrong("FalconH1ForCausalLM", "'ssm_multipliers':[1,1,1,1,1,1]",
                 "'ssm_multipliers' in the configuration has 6 numbers");
    assert_wrong("FalconH1ForCausalLM", "'key_multiplier':1e30",
                 "'key_multiplier' in the configuration holds 1e+30");
    assert_wrong("FalconH1ForCausalLM", "'mamba_n_heads':7",
                 "7 heads of a state space cannot share a width of 1024");
}
END_TEST

/* It multiplies some weights with what the configuration says. */
START_TEST(a_falcon_h1_of_mlx_is_refused)
{
    struct build_model *model = calloc(1, sizeof(*model));
    struct bytes bytes = {0};

    build_add(model, "model.layers.0.mamba.conv1d.weight",
              (uint64_t[]){12, 4, 1}, 3);
    mkdir(in_folder("mlx"), 0777);
    put_safetensors(&bytes, model, 0, 1, BUILD_F32);
    save(&bytes, in_folder("mlx/model.safetensors"));
    bytes_free(&bytes);
    put_text(&bytes, "{\"architectures\":[\"FalconH1ForCausalLM\"],"
                     "\"hidden_size\":64,\"intermediate_size\":96,"
                     "\"num_hidden_layers\":1,\"num_attention_heads\":4,"
                     "\"num_key_value_heads\":4,\"mamba_d_ssm\":64,"
                     "\"mamba_n_heads\":4,\"vocab_size\":100,"
                     "\"embedding_multiplier\":0.5}");
    save(&bytes, in_folder("mlx/config.json"));
    assert_refused(in_folder("mlx"), LMQ_ERR_UNSUPPORTED,
                   "stands as mlx-lm writes it, which also multiplies");
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        granite_4_h_micro,
        nemotron_3_nano,
        olmo_hybrid_7b,
        an_olmo_hybrid_says_little,
        an_olmo_hybrid_says_whether_it_turns,
        norms_of_layers_and_states_are_said_once,
        parts_of_a_convolution_are_all_of_it,
        lfm2_350m,
        a_granite_4_has_mamba_if_nothing_is_said,
        a_layer_of_nemotron_h_has_one_part,
        an_lfm2_says_its_width_in_three_numbers,
        what_no_layer_has_is_as_it_usually_is,
        states_that_make_no_sense_are_refused,
        an_lfm_3_gates_whole_heads,
        a_falcon_h1_has_both_in_each_layer,
        a_falcon_h1_of_mlx_is_refused,
    };

    return RUN_SUITE("hf_recurrent", tests);
}
