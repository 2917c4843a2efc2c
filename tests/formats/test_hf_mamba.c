/*
 * test_hf_mamba.c - config.json of Mamba 1, Falcon Mamba and Jamba.
 */
#include "config.h"

#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

START_TEST(mamba_130m)
{
    struct model *m = read_model(
        "{'architectures':['MambaForCausalLM'],'bos_token_id':0,"
        "'conv_kernel':4,'d_inner':1536,'d_model':768,'eos_token_id':0,"
        "'expand':2,'fused_add_norm':true,'hidden_act':'silu',"
        "'hidden_size':768,'intermediate_size':1536,"
        "'layer_norm_epsilon':1e-05,'model_type':'mamba','n_layer':4,"
        "'num_hidden_layers':4,'pad_token_id':0,'residual_in_fp32':true,"
        "'rms_norm':true,'ssm_cfg':{},'state_size':16,'time_step_rank':48,"
        "'time_step_scale':1.0,'use_bias':false,'use_conv_bias':true,"
        "'vocab_size':50280}");

    ck_assert_str_eq(m->h.architecture, "mamba");
    assert_sizes(&m->h, 4, 768, 1, 1, 1, 1);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxx");
    assert_layers(&m->h, LMQ_LAYER_BARE, "xxxx");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_SELECTIVE);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 1536);
    ck_assert_uint_eq(m->h.delta_value_dim, 1);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 1);
    ck_assert_uint_eq(m->h.delta_key_dim, 16);
    ck_assert_uint_eq(m->h.step_rank, 48);
    ck_assert(m->h.has_bare_states && !m->h.has_step_norms);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert_str_eq(m->h.unsupported, "");
}
END_TEST

START_TEST(falcon_mamba_7b)
{
    struct model *m = read_model(
        "{'architectures':['FalconMambaForCausalLM'],'bos_token_id':0,"
        "'conv_kernel':4,'eos_token_id':11,'expand':16,'hidden_act':'silu',"
        "'hidden_size':4096,'intermediate_size':8192,"
        "'layer_norm_epsilon':1e-05,'mixer_rms_eps':1e-06,"
        "'model_type':'falcon_mamba','num_hidden_layers':4,"
        "'residual_in_fp32':true,'state_size':16,'tie_word_embeddings':"
        "false,'time_step_rank':256,'use_bias':false,'use_conv_bias':true,"
        "'use_mambapy':false,'vocab_size':65024}");

    ck_assert_str_eq(m->h.architecture, "falcon_mamba");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_SELECTIVE);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 8192);
    ck_assert_uint_eq(m->h.step_rank, 256);
    ck_assert(m->h.has_bare_states && m->h.has_step_norms);
    assert_near(m->h.norm_eps, 1e-5);
    assert_near(m->h.latent_eps, 1e-6);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_NO);
    ck_assert_str_eq(m->h.unsupported, "");
}
END_TEST

START_TEST(a_mamba_is_as_wide_as_it_says_or_expands)
{
    struct model *m = read_model(
        "{'architectures':['MambaForCausalLM'],'hidden_size':100,"
        "'expand':1.5,'num_hidden_layers':2,'time_step_rank':'auto',"
        "'vocab_size':50}");

    ck_assert_uint_eq(m->h.n_delta_value_heads, 150);
    ck_assert_uint_eq(m->h.step_rank, 7);
    ck_assert_uint_eq(m->h.delta_key_dim, 16);
    m = read_model(
        "{'architectures':['FalconMambaForCausalLM'],'hidden_size':100,"
        "'num_hidden_layers':2,'vocab_size':50}");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 200);
    assert_near(m->h.latent_eps, 1e-6);
    m = read_model("{'architectures':['MambaForCausalLM'],'hidden_size':100,"
                   "'expand':1.508,'num_hidden_layers':2,'vocab_size':50}");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 150); /* of 150.8 */
    m = read_small("MambaForCausalLM", "'expand':3");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 96);
    ck_assert_uint_eq(m->h.step_rank, 4);
    assert_wrong("MambaForCausalLM", "'time_step_rank':'some'",
                 "'time_step_rank' in the configuration is no whole number");
    assert_unsupported("FalconMambaForCausalLM", "'hidden_act':'gelu'",
                       "a convolution with another activation than SiLU");
    assert_unsupported("FalconMambaForCausalLM", "'mixer_rms_eps':0",
                       "a 'mixer_rms_eps' of 0");
}
END_TEST

/* As its makers published it, but for the number of layers. */
#define JAMBA                                                                 \
    "'architectures':['JambaForCausalLM'],'attn_layer_offset':4,"             \
    "'attn_layer_period':8,'bos_token_id':1,'eos_token_id':2,"                \
    "'expert_layer_offset':1,'expert_layer_period':2,'hidden_act':'silu',"    \
    "'mamba_conv_bias':true,'mamba_d_conv':4,'mamba_d_state':16,"             \
    "'mamba_expand':2,'mamba_proj_bias':false,"                               \
    "'max_position_embeddings':262144,'model_type':'jamba',"                  \
    "'num_hidden_layers':10,'rms_norm_eps':1e-06,"                            \
    "'tie_word_embeddings':false,'use_mamba_kernels':true,"

START_TEST(jamba_1_5_mini)
{
    struct model *m = read_model(
        "{" JAMBA "'hidden_size':4096,'intermediate_size':14336,"
        "'mamba_dt_rank':256,'mamba_inner_layernorms':true,"
        "'num_attention_heads':32,'num_experts':16,'num_experts_per_tok':2,"
        "'num_key_value_heads':8,'sliding_window':null,'vocab_size':65536}");

    ck_assert_str_eq(m->h.architecture, "jamba");
    assert_sizes(&m->h, 10, 4096, 14336, 32, 8, 128);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxx.xxxxx");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.x.x.x.x.");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_SELECTIVE);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 8192);
    ck_assert_uint_eq(m->h.delta_key_dim, 16);
    ck_assert_uint_eq(m->h.conv_width, 4);
    ck_assert_uint_eq(m->h.step_rank, 256);
    ck_assert(m->h.has_bare_states);
    ck_assert(m->h.has_step_norms && m->h.has_step_norm_weights);
    assert_near(m->h.norm_eps, 1e-6);
    ck_assert(!(m->h.latent_eps > 0));
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_NONE);
    ck_assert_uint_eq(m->h.n_experts, 16);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    ck_assert_uint_eq(m->h.expert_dim, 14336);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert(!m->h.router_renormalises);
    ck_assert_uint_eq(m->h.context, 262144);
    ck_assert_str_eq(m->h.unsupported, "");
}
END_TEST

/* One expert is a feed-forward without a router. */
START_TEST(jamba_reasoning_3b)
{
    struct model *m = read_model(
        "{" JAMBA "'hidden_size':2560,'intermediate_size':8192,"
        "'mamba_dt_rank':'auto','num_attention_heads':20,"
        "'num_experts':1,'num_experts_per_tok':1,"
        "'num_key_value_heads':null,'vocab_size':65536}");

    assert_sizes(&m->h, 10, 2560, 8192, 20, 20, 128);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "..........");
    ck_assert_uint_eq(m->h.n_experts, 0);
    ck_assert_uint_eq(m->h.step_rank, 160);
    ck_assert_str_eq(m->h.unsupported, "");
}
END_TEST

START_TEST(a_jamba_has_its_layers_by_periods)
{
    static const char class[] = "JambaForCausalLM";
    struct model *m = read_small(
        class, "'attn_layer_period':2,'attn_layer_offset':0,"
               "'expert_layer_period':1,'expert_layer_offset':0,"
               "'num_local_experts':3,'head_dim':12");

    assert_layers(&m->h, LMQ_LAYER_DELTA, ".x.x.x.x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "........");
    ck_assert_uint_eq(m->h.n_experts, 3);
    ck_assert_uint_eq(m->h.head_dim, 12);
    m = read_small(class, "'mamba_expand':3"); /* usual ones */
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxx.xxx");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.x.x.x.");
    ck_assert_uint_eq(m->h.n_experts, 16);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 3 * m->h.dim);
    assert_wrong(class, "'attn_layer_offset':8",
                 "'attn_layer_offset' in the configuration is 8, expected "
                 "less than 'attn_layer_period', which is 8");
    assert_wrong(class, "'expert_layer_period':3,'expert_layer_offset':3",
                 "'expert_layer_offset' in the configuration is 3, expected "
                 "less than 'expert_layer_period', which is 3");
    assert_wrong(class, "'attn_layer_period':0",
                 "'attn_layer_period' in the configuration is 0");
    assert_wrong(class, "'mamba_dt_rank':'some'",
                 "'mamba_dt_rank' in the configuration is no whole number");
    assert_wrong(class, "'mamba_expand':0", "a state space has 0 channels");
    assert_wrong(class, "'mamba_expand':1025",
                 "a state space has 65600 channels, expected 1 to 65536");
    assert_unsupported(class, "'hidden_act':'gelu'",
                       "a convolution with another activation than SiLU");
    assert_unsupported(class, "'sliding_window':8", "'sliding_window' 8");
    assert_unsupported(class, "'mamba_inner_layernorms':false",
                       "'mamba_inner_layernorms' false");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        mamba_130m,
        falcon_mamba_7b,
        a_mamba_is_as_wide_as_it_says_or_expands,
        jamba_1_5_mini,
        jamba_reasoning_3b,
        a_jamba_has_its_layers_by_periods,
    };

    return RUN_SUITE("hf_mamba", tests);
}
