/*
 * test_hf_kimi.c - Kimi Linear, Ling 3 and GLM 5 next by config.json and by the
 * keys of a GGUF, and convolutions that stand apart; A.X K2.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/formats/hf_models.h"

/* With 8 layers in place of 27. */
#define KIMI_LISTS                                                            \
    "'full_attn_layers':[4,8],'kda_layers':[1,2,3,5,6,7]"

START_TEST(kimi_linear_48b)
{
    struct model *m = read_model(
        "{'architectures':['KimiLinearForCausalLM'],'bos_token_id':163584,"
        "'eos_token_id':163586,'first_k_dense_replace':1,'head_dim':72,"
        "'hidden_act':'silu','hidden_size':2304,'intermediate_size':9216,"
        "'kv_lora_rank':512,'linear_attn_config':{" KIMI_LISTS ","
        "'head_dim':128,'num_heads':32,'short_conv_kernel_size':4},"
        "'mla_use_nope':true,'model_max_length':1048576,"
        "'model_type':'kimi_linear','moe_intermediate_size':1024,"
        "'moe_layer_freq':1,'moe_renormalize':true,"
        "'moe_router_activation_func':'sigmoid','num_attention_heads':32,"
        "'num_expert_group':1,'num_experts':256,'num_experts_per_token':8,"
        "'num_hidden_layers':8,'num_key_value_heads':32,"
        "'num_nextn_predict_layers':0,'num_shared_experts':1,"
        "'q_lora_rank':null,'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'rms_norm_eps':1e-05,'rope_scaling':null,'rope_theta':10000.0,"
        "'routed_scaling_factor':2.446,'tie_word_embeddings':false,"
        "'topk_group':1,'use_grouped_topk':true,'v_head_dim':128,"
        "'vocab_size':163840}");

    ck_assert_str_eq(m->h.architecture, "kimi_linear");
    assert_sizes(&m->h, 8, 2304, 9216, 32, 32, 192);
    ck_assert_uint_eq(m->h.context, 1048576);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxx.xxx.");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "...x...x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_DELTA);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 32);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 32);
    ck_assert_uint_eq(m->h.delta_key_dim, 128);
    ck_assert_uint_eq(m->h.delta_value_dim, 128);
    ck_assert_uint_eq(m->h.conv_width, 4);
    ck_assert_uint_eq(m->h.step_rank, 128);
    ck_assert_uint_eq(m->h.gate_rank, 128);
    ck_assert(m->h.has_key_decays && m->h.has_sigmoid_gates);
    ck_assert_uint_eq(m->h.kv_lora_rank, 512);
    ck_assert_uint_eq(m->h.q_lora_rank, 0);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_uint_eq(m->h.value_dim, 128);
    assert_near(m->h.latent_eps, 1e-6);
    ck_assert_uint_eq(m->h.n_experts, 256);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.shared_dim, 1024);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_renormalises && m->h.router_corrects);
    assert_near(m->h.router_scale, 2.446);
    ck_assert_str_eq(m->h.unsupported, "");
}
END_TEST

/* As the library saves it, and by the words that other families have. */
START_TEST(a_kimi_linear_says_things_in_several_ways)
{
    static const char class[] = "KimiLinearForCausalLM";
    struct model *m = read_small(
        class, "'layer_types':['full_attention','linear_attention',"
               "'linear_attention','linear_attention','linear_attention',"
               "'linear_attention','linear_attention','full_attention'],"
               "'mlp_layer_types':['sparse','sparse','dense','sparse',"
               "'sparse','sparse','sparse','sparse'],"
               "'linear_num_heads':3,'linear_head_dim':16,"
               "'linear_conv_kernel_dim':5,'max_position_embeddings':77,"
               "'num_local_experts':12,'num_experts_per_tok':2,"
               "'n_shared_experts':3,'n_group':4,'topk_group':2,"
               "'norm_topk_prob':false,'moe_intermediate_size':10,"
               "'linear_attn_config':{'full_attn_layers':[9]}");

    assert_layers(&m->h, LMQ_LAYER_DELTA, ".xxxxxx.");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "..x.....");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 3);
    ck_assert_uint_eq(m->h.gate_rank, 16);
    ck_assert_uint_eq(m->h.conv_width, 5);
    ck_assert_uint_eq(m->h.context, 77);
    ck_assert_uint_eq(m->h.n_experts, 12);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    ck_assert_uint_eq(m->h.n_expert_groups, 4);
    ck_assert_uint_eq(m->h.n_expert_groups_used, 2);
    ck_assert_uint_eq(m->h.shared_dim, 30);
    ck_assert(!m->h.router_renormalises);
    m = read_small(class, "'num_experts':12,'linear_num_heads':5,"
                          "'linear_attn_config':{'num_heads':2}");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxx.xxx");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 2);
    ck_assert_uint_eq(m->h.delta_key_dim, 128);
    ck_assert_uint_eq(m->h.shared_dim, m->h.expert_dim);
    assert_near(m->h.router_scale, 2.446);
    m = read_small(class, "'num_experts':12,'moe_intermediate_size':10,"
                          "'num_shared_experts':2,'n_shared_experts':3,"
                          "'num_nextn_predict_layers':2");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 32);
    ck_assert_uint_eq(m->h.shared_dim, 20);
    ck_assert_uint_eq(m->source.n_further_layers, 2);
}
END_TEST

/* By its makers' words; what is left behind whole groups has attention. */
START_TEST(ling_3_flash)
{
    static const char class[] = "BailingMoeV3ForCausalLM";
    struct model *m = read_model(
        "{'architectures':['BailingMoeV3ForCausalLM'],"
        "'first_k_dense_replace':2,'gated_attention_proj_granularity_type':"
        "'head_wise','head_dim':128,'hidden_act':'silu','hidden_size':2560,"
        "'intermediate_size':6144,'kda_lower_bound':-5.0,"
        "'kda_safe_gate':true,'kv_lora_rank':512,'layer_group_size':6,"
        "'max_position_embeddings':262144,'model_type':'bailing_hybrid',"
        "'moe_intermediate_size':768,'n_group':8,'no_kda_lora':true,"
        "'norm_topk_prob':true,'num_attention_heads':32,'num_experts':512,"
        "'num_experts_per_tok':8,'num_hidden_layers':42,"
        "'num_key_value_heads':32,'num_nextn_predict_layers':1,"
        "'num_shared_experts':1,'partial_rotary_factor':0.5,"
        "'q_lora_rank':null,'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'rms_norm_eps':1e-06,'rope_theta':6000000.0,"
        "'routed_scaling_factor':2.5,'short_conv_kernel_size':4,"
        "'tie_word_embeddings':false,'topk_group':4,'v_head_dim':128,"
        "'vocab_size':157184}");

    ck_assert_str_eq(m->h.architecture, "bailingmoe3");
    assert_sizes(&m->h, 42, 2560, 6144, 32, 32, 192);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxxx.");
    ck_assert(lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE) &&
              !lmq_layer_is(&m->h, 2, LMQ_LAYER_DENSE));
    ck_assert_uint_eq(m->h.n_delta_key_heads, 32);
    ck_assert_uint_eq(m->h.delta_value_dim, 128);
    ck_assert_uint_eq(m->h.conv_width, 4);
    ck_assert_uint_eq(m->h.step_rank + m->h.gate_rank, 0);
    assert_near(m->h.decay_floor, 5);
    ck_assert(m->h.has_key_decays && m->h.has_sigmoid_gates);
    ck_assert(m->h.has_attn_gate && m->h.has_head_gate);
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert_uint_eq(m->h.n_expert_groups_used, 4);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    assert_near(m->h.rope_theta, 6e6);
    /* As the library saves it. */
    m = read_small("BailingHybridForCausalLM",
                   "'head_dim':8,'linear_head_dim':24,'layer_group_size':3,"
                   "'linear_num_heads':2,'linear_conv_kernel_dim':3,"
                   "'kda_safe_gate':false,'num_local_experts':16,"
                   "'model_max_length':99,'num_expert_group':2,"
                   "'topk_group':1,'n_shared_experts':2,"
                   "'moe_intermediate_size':10");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xx.xx...");
    ck_assert_uint_eq(m->h.n_delta_value_heads, 2);
    ck_assert_uint_eq(m->h.delta_key_dim, 24);
    ck_assert_uint_eq(m->h.conv_width, 3);
    ck_assert_uint_eq(m->h.context, 99);
    ck_assert_uint_eq(m->h.shared_dim, 20);
    ck_assert(!(m->h.decay_floor > 0));
    assert_wrong(class, "'kda_lower_bound':0.5",
                 "'kda_lower_bound' in the configuration is 0.5, expected less "
                 "than 0");
    assert_unsupported(class, "'expert_swiglu_limit_list':[null,0,7.0]",
                       "'expert_swiglu_limit_list' that limits layer 2");
    assert_unsupported(class, "'no_kda_lora':false", "'no_kda_lora' false");
}
END_TEST

/* As its makers' files say it, and as the library saves it. */
START_TEST(glm_5_next)
{
    static const char class[] = "Glm5NextForConditionalGeneration";
    struct model *m = read_model(
        "{'architectures':['Glm5NextForConditionalGeneration'],"
        "'model_type':'glm5_next','text_config':{'hc_mult':4,"
        "'hidden_act':'silu','hidden_size':4096,'intermediate_size':12288,"
        "'linear_attn_config':{'gate_lower_bound':null,'head_dim':128,"
        "'num_heads':64,'short_conv_kernel_size':4},"
        "'max_position_embeddings':1048576,'model_type':'glm5_next_text',"
        "'num_attention_heads':64,'num_hidden_layers':45,"
        "'num_key_value_heads':64,'num_nextn_predict_layers':1,"
        "'q_lora_rank':1536,'qk_nope_head_dim':256,'qk_rope_head_dim':0,"
        "'rms_norm_eps':1e-05,'vocab_size':154880},'vision_config':{}}");

    ck_assert_str_eq(m->h.architecture, "glm5_next");
    assert_sizes(&m->h, 45, 4096, 12288, 64, 64, 256);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxx.");
    ck_assert(lmq_layer_is(&m->h, 2, LMQ_LAYER_DENSE) &&
              !lmq_layer_is(&m->h, 3, LMQ_LAYER_DENSE));
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_NONE);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 64);
    ck_assert_uint_eq(m->h.step_rank, 128);
    assert_near(m->h.decay_floor, 5);
    ck_assert_uint_eq(m->h.context_end, 2063);
    ck_assert_int_eq(m->h.stream_kind, LMQ_STREAMS_HYPER);
    ck_assert_uint_eq(m->h.stream_rounds, 20);
    assert_near(m->h.stream_gain, 2);
    ck_assert(m->h.has_stream_mean && !(m->h.stream_floor > 0));
    ck_assert(!(m->h.latent_eps > 0) && !m->h.glu_limits_experts);
    assert_near(m->h.glu_limit, 10);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    m = read_small(class,
                   "'linear_lower_bound':null,'hc_sinkhorn_iters':0,"
                   "'index_topk':60,'index_kpool':5,'linear_num_heads':2,"
                   "'linear_head_dim':24,'linear_conv_kernel_dim':3,"
                   "'qk_nope_head_dim':20");
    ck_assert(!(m->h.decay_floor > 0));
    ck_assert_uint_eq(m->h.stream_rounds, 1);
    ck_assert_uint_eq(m->h.context_end, 64);
    ck_assert_uint_eq(m->h.delta_value_dim, 24);
    ck_assert_uint_eq(m->h.head_dim, 20);
    assert_wrong(class, "'index_topk':60,'index_kpool':7",
                 "'index_topk' in the configuration is 60, expected a multiple "
                 "of 'index_kpool', 7");
    assert_wrong(class, "'linear_lower_bound':2",
                 "'linear_lower_bound' in the configuration is 2, expected "
                 "less than 0");
    assert_wrong(class, "'hc_sinkhorn_iters':1025", "'hc_sinkhorn_iters'");
    assert_wrong(class, "'q_lora_rank':0", "'q_lora_rank'");
    assert_wrong(class, "'kv_lora_rank':0", "'kv_lora_rank'");
    assert_wrong(class, "'qk_nope_head_dim':0", "'qk_nope_head_dim'");
    assert_wrong(class, "'v_head_dim':0", "'v_head_dim'");
    assert_wrong(class, "'index_topk':0", "'index_topk'");
    assert_wrong(class, "'index_kpool':0", "'index_kpool', 0");
    assert_wrong(class, "'index_topk':4000000000,'index_kpool':4000000000",
                 "'index_kpool', 4000000000");
    assert_wrong(class, "'index_topk':4000000000,'index_kpool':1",
                 "'index_kpool', 1");
    m = read_small(class, "'layer_types':['full_attention','linear_attention',"
                          "'full_attention','full_attention',"
                          "'full_attention','full_attention',"
                          "'full_attention','full_attention']");
    assert_layers(&m->h, LMQ_LAYER_DELTA, ".x......");
    assert_unsupported(class, "'hc_mult':1", "'hc_mult' 1");
    assert_unsupported(class, "'swiglu_limit':0", "'swiglu_limit' 0");
    assert_unsupported(class, "'qk_rope_head_dim':64",
                       "'qk_rope_head_dim' 64");
    assert_unsupported(class, "'index_kpool_always_select_tail':false",
                       "'index_kpool_always_select_tail' false");
}
END_TEST

START_TEST(a_kimi_linear_that_makes_no_sense_is_refused)
{
    static const char class[] = "KimiLinearForCausalLM";
    static const char *const wrong[][2] = {
        {"'kda_layers':[1,2]", "lacks 'full_attn_layers'"},
        {"'full_attn_layers':[1,2]", "lacks 'kda_layers'"},
        {"'full_attn_layers':[0],'kda_layers':[1,2,3,4,5,6,7,8]",
         "'full_attn_layers' in the configuration names layer 0, expected "
         "each from 1 to 8 once"},
        {"'full_attn_layers':[8,9],'kda_layers':[1,2,3,4,5,6,7]",
         "names layer 9"},
        {"'full_attn_layers':[4,8],'kda_layers':[1,2,3,4,5,6,7]",
         "'kda_layers' in the configuration names layer 4"},
        {"'full_attn_layers':[4,8],'kda_layers':[1,2,3,5,7]",
         "layer 6 is in neither 'full_attn_layers' nor 'kda_layers'"},
        {"'full_attn_layers':[4.5],'kda_layers':[]",
         "'full_attn_layers' in the configuration is no list of whole"},
        {KIMI_LISTS ",'head_dim':'wide'",
         "'head_dim' in the configuration is no whole number"},
    };
    char more[256];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(more, sizeof(more), "'linear_attn_config':{%s}", wrong[i][0]);
        assert_wrong(class, more, wrong[i][1]);
    }
    assert_wrong(class, "'qk_rope_head_dim':0", "'qk_rope_head_dim'");
    assert_unsupported(class, "'mla_use_nope':false", "'mla_use_nope' false");
    assert_unsupported(class, "'moe_layer_freq':2", "'moe_layer_freq' 2");
    assert_unsupported(class, "'moe_router_activation_func':'softmax'",
                       "'moe_router_activation_func' 'softmax'");
    assert_unsupported(class, "'hidden_act':'gelu'",
                       "a convolution with another activation than SiLU");
}
END_TEST

/* A Kimi Linear of one layer, of which there are only convolutions; without
 * keys that of them is missing, without a width it is a row of them. */
static const char *
write_convolutions(const char *name, uint64_t n_keys, uint64_t width,
                   const char *of_values, const char *attention)
{
    struct build_model *model = calloc(1, sizeof(*model));
    struct bytes bytes = {0};
    char path[64];

    build_add(model, "model.layers.0.self_attn.q_conv1d.weight",
              (uint64_t[]){6, 1, 4}, 3);
    build_add(model,
              n_keys > 0 ? "model.layers.0.self_attn.k_conv1d.weight"
                         : "other.weight",
              (uint64_t[]){n_keys > 0 ? n_keys : 1, width},
              width > 0 ? 2 : 1);
    build_add(model, of_values, (uint64_t[]){1, 6, 1, 4}, 4);
    mkdir(in_folder(name), 0777);
    put_safetensors(&bytes, model, 0, 3, BUILD_F32);
    snprintf(path, sizeof(path), "%s/model.safetensors", name);
    save(&bytes, in_folder(path));
    bytes_free(&bytes);
    put_text(&bytes, "{\"architectures\":[\"KimiLinearForCausalLM\"],"
                     "\"hidden_size\":64,\"intermediate_size\":96,"
                     "\"num_hidden_layers\":1,\"num_attention_heads\":4,"
                     "\"linear_num_heads\":2,\"linear_head_dim\":3,"
                     "\"num_experts\":8,\"vocab_size\":100");
    put_text(&bytes, attention);
    put_text(&bytes, "}");
    snprintf(path, sizeof(path), "%s/config.json", name);
    save(&bytes, in_folder(path));
    bytes_free(&bytes);
    build_free(model);
    return in_folder(name);
}

START_TEST(convolutions_that_do_not_fit_are_refused)
{
    static const char values[] = "model.layers.0.self_attn.v_conv1d.weight";
    static const struct {
        const char *name;
        uint64_t n_keys, width;
        const char *of_values, *what;
    } cases[] = {
        {"right", 6, 4, values, "lacks the tensor token_embd.weight"},
        {"few", 5, 4, values, "v_conv1d.weight' is 6 x 4, but the "
                              "configuration says 18 x 4 of it"},
        {"many", 7, 4, values, "v_conv1d.weight' is 6 x 4"},
        {"wide", 6, 5, values, "k_conv1d.weight' is 6 x 5"},
        {"flat", 4, 0, values, "k_conv1d.weight' is 1 x 4"},
        {"no-keys", 0, 4, values,
         "lacks the tensor blk.0.ssm_conv1d_k.weight (layers"},
        {"none", 6, 4, "some.weight",
         "lacks the tensor blk.0.ssm_conv1d_v.weight (layers"},
        {"bias", 6, 4, "model.layers.0.self_attn.k_conv1d.bias",
         "lacks the tensor blk.0.ssm_conv1d_v.weight"},
        {"beyond", 6, 4, "model.layers.1.self_attn.v_conv1d.weight",
         "lacks the tensor blk.0.ssm_conv1d_v.weight"},
        {"twice", 6, 4, "blk.0.ssm_conv1d_k.weight",
         "tensors 'model.layers.0.self_attn.k_conv1d.weight' and "
         "'blk.0.ssm_conv1d_k.weight' are the same"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(write_convolutions(cases[i].name, cases[i].n_keys,
                                          cases[i].width, cases[i].of_values,
                                          ""),
                       LMQ_ERR_FORMAT, cases[i].what);
}
END_TEST

/* Nobody puts them together, and nobody understands them. */
START_TEST(attention_has_no_convolutions)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(write_convolutions(
        "attention", 6, 4, "model.layers.0.self_attn.v_conv1d.weight",
        ",\"linear_attn_config\":{\"full_attn_layers\":[1],"
        "\"kda_layers\":[]}"));

    ck_assert_ptr_nonnull(
        strstr(checkpoint->hparams.unsupported, "k_conv1d.weight"));
    ck_assert_uint_eq(checkpoint->n_tensors, 3);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- GGUF ---- */

/* As llama.cpp's converter says it; perhaps without the width of heads. Ling 3
 * says a bound of decays, too. */
static enum lmq_status
read_keys_of(const char *architecture, bool has_width, double bound,
             struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    static const struct {
        const char *name;
        uint32_t value;
    } counts[] = {
        {"block_count", 4}, {"context_length", 4096},
        {"embedding_length", 64}, {"feed_forward_length", 96},
        {"attention.head_count", 5}, {"ssm.conv_kernel", 3},
        {"attention.kv_lora_rank", 24}, {"attention.key_length", 32},
        {"attention.value_length", 24}, {"attention.key_length_mla", 26},
        {"attention.value_length_mla", 20}, {"rope.dimension_count", 8},
        {"expert_count", 8}, {"expert_used_count", 2},
        {"expert_feed_forward_length", 48}, {"expert_shared_count", 1},
        {"expert_gating_func", 2}, {"leading_dense_block_count", 1},
    };
    static const struct lmq_gguf_evidence evidence = {
        .vocab_size = 33, .has_router = {false, true, true, true}};
    struct lmq_gguf_builder builder = {.prefix = architecture};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;
    char name[64];

    lmq_gguf_build_begin(&builder);
    builder.prefix = architecture;
    lmq_gguf_put_text(&builder, "general.architecture", architecture,
                      strlen(architecture));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        snprintf(name, sizeof(name), ".%s", counts[i].name);
        lmq_gguf_put_u32(&builder, name, counts[i].value);
    }
    if (has_width)
        lmq_gguf_put_u32(&builder, ".kda.head_dim", 12);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    lmq_gguf_put_f32(&builder, ".rope.freq_base", 10000);
    if (bound < 0 || bound > 0)
        lmq_gguf_put_f32(&builder, ".kda.gate_lower_bound", bound);
    if (bound < -10) /* which does not count then */
        lmq_gguf_put_bool(&builder, ".kda.safe_gate", false);
    lmq_gguf_put_f32(&builder, ".expert_weights_scale", 2.446);
    lmq_gguf_put_array(&builder, ".attention.head_count_kv", LMQ_GGUF_U32, 4);
    for (uint32_t i = 0; i < 4; i++)
        lmq_gguf_add_u32(&builder, i == 2);
    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, err),
                     LMQ_OK);
    enum lmq_status status =
        lmq_gguf_read_keys(meta, &evidence, checkpoint, &family, err);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    return status;
}

static enum lmq_status
read_keys(bool has_width, struct lmq_checkpoint *checkpoint,
          struct lmq_error *err)
{
    return read_keys_of("kimi-linear", has_width, 0, checkpoint, err);
}

START_TEST(keys_of_gguf_say_a_ling_3)
{
    static const char name[] = "bailingmoe3";
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    ck_assert_msg(read_keys_of(name, true, -4, &checkpoint, &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert_uint_eq(checkpoint.notes.n, 0);
    assert_layers(h, LMQ_LAYER_DELTA, "xx.x");
    assert_layers(h, LMQ_LAYER_NOPE, "....");
    assert_near(h->decay_floor, 4);
    ck_assert_uint_eq(h->n_delta_value_heads, 5);
    ck_assert_uint_eq(h->delta_value_dim, 12);
    ck_assert_uint_eq(h->step_rank + h->gate_rank, 0);
    ck_assert(h->has_key_decays && h->has_sigmoid_gates);
    ck_assert(h->has_attn_gate && h->has_head_gate);
    ck_assert_uint_eq(h->shared_dim, 48);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
    ck_assert(checkpoint.source.has_decay_itself &&
              checkpoint.source.has_decay_above &&
              checkpoint.source.has_rotary_pairs);
    ck_assert_int_eq(read_keys_of(name, true, -11, &checkpoint, &err), LMQ_OK);
    ck_assert(!(h->decay_floor > 0));
    ck_assert_int_eq(read_keys_of(name, true, 0.5, &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "GGUF: 'bailingmoe3.kda.gate_lower_bound' is 0.5, "
                            "expected less than 0"));
    ck_assert_int_eq(read_keys_of(name, true, 0, &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "there is no 'bailingmoe3.kda.gate_lower_bound'"));
}
END_TEST

START_TEST(keys_of_gguf_say_a_kimi_linear)
{
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    ck_assert_msg(read_keys(true, &checkpoint, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert_uint_eq(checkpoint.notes.n, 0);
    ck_assert_str_eq(h->unsupported, "");
    assert_layers(h, LMQ_LAYER_DELTA, "xx.x");
    assert_layers(h, LMQ_LAYER_NOPE, "..x.");
    assert_layers(h, LMQ_LAYER_DENSE, "x...");
    ck_assert_int_eq(h->recurrence, LMQ_RECURRENCE_DELTA);
    ck_assert_uint_eq(h->n_delta_key_heads, 5);
    ck_assert_uint_eq(h->n_delta_value_heads, 5);
    ck_assert_uint_eq(h->delta_key_dim, 12);
    ck_assert_uint_eq(h->delta_value_dim, 12);
    ck_assert_uint_eq(h->step_rank, 12);
    ck_assert_uint_eq(h->gate_rank, 12);
    ck_assert(h->has_key_decays && h->has_sigmoid_gates);
    ck_assert_uint_eq(h->head_dim, 26);
    ck_assert_uint_eq(h->value_dim, 20);
    ck_assert_uint_eq(h->rotary_dim, 8);
    ck_assert_uint_eq(h->shared_dim, 48);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
    ck_assert(h->router_renormalises);
    assert_near(h->router_scale, 2.446);
    ck_assert(checkpoint.source.has_decay_itself);
    ck_assert_int_eq(read_keys(false, &checkpoint, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "there is no 'kimi-linear.kda.head_dim'"));
}
END_TEST

/* What config.json says otherwise, and what is said of the GGUF then. */
START_TEST(what_llama_cpp_takes_for_granted_of_a_kimi_linear_is_told)
{
    static const struct {
        size_t q_rank;
        bool renormalises;
        const char *words;
    } cases[] = {
        {0, true, NULL},
        {20, true, "it wants queries without latents"},
        {0, false, "it lets weights of experts sum to 1"},
    };
    const struct lmq_export_options options = {.to = "gguf", .replaces = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct family family = *family_find("kimi-linear");
        char config[4096], key[32];
        const char *note, *found = NULL;
        snprintf(config, sizeof(config), "%s", family.config);
        char *rank = strstr(config, "'q_lora_rank': null");
        char *sum = strstr(config, "'moe_renormalize': true");
        if (cases[i].q_rank > 0)
            memcpy(rank, "'q_lora_rank':   20", 19);
        if (!cases[i].renormalises)
            memcpy(sum, "'moe_renormalize':false", 23);
        family.config = config;
        family.shape.q_rank = cases[i].q_rank;
        struct family_model *model = family_make(&family, 1, 0, 1);
        family_write(model, in_folder("source"));
        family_free(model);
        struct lmq_report *report = export_to(
            in_folder("source"), in_folder("a.gguf"), &options);
        for (int j = 0; j < 20 && found == NULL; j++) {
            snprintf(key, sizeof(key), "notes.%d", j);
            note = lmq_report_string(report, key);
            if (note != NULL && strncmp(note, "llama.cpp ", 10) == 0)
                found = note;
        }
        if (cases[i].words == NULL)
            ck_assert_msg(found == NULL, "%s", found);
        else
            ck_assert_msg(found != NULL &&
                              strstr(found, cases[i].words) != NULL,
                          "%s", found == NULL ? "nothing" : found);
        lmq_report_free(report);
    }
}
END_TEST

/* ---- A.X K2 ---- */

/* As the class has it if nothing is said, which is the light one. */
START_TEST(a_x_k2)
{
    static const char class[] = "AXK2ForCausalLM";
    struct model *m = read_model(
        "{'architectures':['AXK2ForCausalLM'],'first_k_dense_replace':1,"
        "'gated_norm_rank':16,'hidden_act':'silu','hidden_size':2048,"
        "'index_head_dim':128,'index_n_heads':16,'index_topk':2048,"
        "'intermediate_size':5120,'kv_lora_rank':128,"
        "'max_position_embeddings':131072,'model_type':'axk2',"
        "'moe_intermediate_size':512,'n_group':null,'n_routed_experts':128,"
        "'n_shared_experts':1,'norm_topk_prob':true,"
        "'num_attention_heads':32,'num_experts_per_tok':8,"
        "'num_hidden_layers':48,'num_key_value_heads':32,'q_lora_rank':384,"
        "'qk_nope_head_dim':64,'qk_rope_head_dim':32,'rms_norm_eps':1e-06,"
        "'rope_parameters':{'rope_theta':10000.0,'rope_type':'default'},"
        "'routed_scaling_factor':2.5,'tie_word_embeddings':false,"
        "'topk_group':null,'v_head_dim':64,'vocab_size':163840}");

    ck_assert_str_eq(m->h.architecture, "axk2");
    assert_sizes(&m->h, 48, 2048, 5120, 32, 32, 96);
    ck_assert_uint_eq(m->h.context, 131072);
    ck_assert_uint_eq(m->h.context_end, 0);
    ck_assert_uint_eq(m->h.index_topk, 2048);
    ck_assert(lmq_layer_is(&m->h, 47, LMQ_LAYER_INDEX));
    ck_assert_uint_eq(m->h.norm_gate_rank, 16);
    ck_assert(m->h.has_raw_latents && m->h.has_attn_gate);
    ck_assert(!m->h.has_head_gate);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
    ck_assert(m->source.has_rotary_pairs && m->source.may_lack_correction);
    m = read_small(class, "'n_group':4,'topk_group':2,'n_routed_experts':16");
    ck_assert_uint_eq(m->h.n_expert_groups, 4);
    ck_assert_uint_eq(m->h.q_lora_rank, 384);
    ck_assert_uint_eq(m->h.norm_gate_rank, 16);
    assert_wrong(class, "'gated_norm_rank':0", "'gated_norm_rank'");
    assert_wrong(class, "'q_lora_rank':0", "'q_lora_rank'");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        kimi_linear_48b,
        a_kimi_linear_says_things_in_several_ways,
        ling_3_flash,
        glm_5_next,
        a_x_k2,
        a_kimi_linear_that_makes_no_sense_is_refused,
        convolutions_that_do_not_fit_are_refused,
        attention_has_no_convolutions,
        keys_of_gguf_say_a_kimi_linear,
        keys_of_gguf_say_a_ling_3,
        what_llama_cpp_takes_for_granted_of_a_kimi_linear_is_told,
    };

    return RUN_SUITE("kimi", tests);
}
