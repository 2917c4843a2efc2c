/*
 * test_hf_keys.c - keys of config.json that say nothing, too little or the same
 * thing twice: what the library's classes make of them.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Biases ---- */

/* What is said of the biases of a matrix, or what the class has. */
static void
assert_bias(const struct model *m, enum lmq_role role, const char *key,
            bool says, bool has)
{
    ck_assert_ptr_nonnull(m->source.bias_key[role]);
    ck_assert_str_eq(m->source.bias_key[role], key);
    ck_assert_int_eq(m->source.says_bias[role], says);
    ck_assert_int_eq(m->source.has_bias[role], has);
}

START_TEST(every_class_has_its_key_for_biases)
{
    static const struct {
        const char *class_name, *key;
        enum lmq_role role;
        bool absent;
    } cases[] = {
        {"LlamaForCausalLM", "attention_bias", LMQ_ROLE_ATTN_Q, false},
        {"LlamaForCausalLM", "mlp_bias", LMQ_ROLE_FFN_UP, false},
        {"Qwen2MoeForCausalLM", "qkv_bias", LMQ_ROLE_ATTN_Q, true},
        {"Starcoder2ForCausalLM", "use_bias", LMQ_ROLE_FFN_DOWN, true},
        {"GPTNeoXForCausalLM", "attention_bias", LMQ_ROLE_ATTN_OUT, true},
        {"GlmForCausalLM", "attention_bias", LMQ_ROLE_ATTN_V, true},
        {"Glm4ForCausalLM", "attention_bias", LMQ_ROLE_ATTN_V, true},
        {"Glm4MoeForCausalLM", "attention_bias", LMQ_ROLE_ATTN_K, false},
        {"CohereForCausalLM", "attention_bias", LMQ_ROLE_ATTN_OUT, false},
        {"Cohere2ForCausalLM", "attention_bias", LMQ_ROLE_ATTN_OUT, false},
        {"GptOssForCausalLM", "attention_bias", LMQ_ROLE_ATTN_OUT, true},
        {"GraniteMoeForCausalLM", "attention_bias", LMQ_ROLE_ATTN_Q, false},
        {"HunYuanDenseV1ForCausalLM", "attention_bias", LMQ_ROLE_ATTN_Q,
         false},
        {"Ernie4_5ForCausalLM", "use_bias", LMQ_ROLE_FFN_GATE, false},
        {"Ernie4_5_MoeForCausalLM", "use_bias", LMQ_ROLE_ATTN_Q, false},
        {"DeepseekV3ForCausalLM", "attention_bias", LMQ_ROLE_ATTN_Q_A, false},
        {"DeepseekV3ForCausalLM", "attention_bias", LMQ_ROLE_ATTN_KV_A,
         false},
        {"HeliumForCausalLM", "mlp_bias", LMQ_ROLE_FFN_UP, false},
        {"SeedOssForCausalLM", "attention_bias", LMQ_ROLE_ATTN_Q, true},
        {"SeedOssForCausalLM", "attention_out_bias", LMQ_ROLE_ATTN_OUT,
         false},
    };
    char more[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_bias(read_small(cases[i].class_name, ""), cases[i].role,
                    cases[i].key, false, cases[i].absent);
        snprintf(more, sizeof(more), "'%s':false", cases[i].key);
        assert_bias(read_small(cases[i].class_name, more), cases[i].role,
                    cases[i].key, true, false);
        snprintf(more, sizeof(more), "'%s':true", cases[i].key);
        assert_bias(read_small(cases[i].class_name, more), cases[i].role,
                    cases[i].key, true, true);
    }
}
END_TEST

/* Matrices without a key, and those that always have some. */
START_TEST(biases_of_which_nothing_can_be_said)
{
    struct model *m = read_small("GPTNeoXForCausalLM", "");

    ck_assert_ptr_null(m->source.bias_key[LMQ_ROLE_FFN_UP]);
    m = read_small("HeliumForCausalLM", "");
    ck_assert_ptr_null(m->source.bias_key[LMQ_ROLE_ATTN_OUT]);
    m = read_small("Qwen2ForCausalLM", "'attention_bias':false");
    assert_bias(m, LMQ_ROLE_ATTN_Q, "", false, true);
}
END_TEST

/* ---- Two names for one thing ---- */

START_TEST(other_names_of_experts_count_more)
{
    static const struct {
        const char *class_name, *keys;
        uint32_t n, n_used;
    } cases[] = {
        {"Ernie4_5_MoeForCausalLM", "'moe_num_experts':8,'moe_k':2", 8, 2},
        {"Ernie4_5_MoeForCausalLM", "'num_experts':8", 8, 6},
        {"Ernie4_5_MoeForCausalLM",
         "'moe_num_experts':16,'num_experts':8,'moe_k':2,"
         "'num_experts_per_tok':3",
         8, 3},
        {"HunYuanMoEV1ForCausalLM", "'num_experts':8,'moe_topk':[2,2]", 8, 2},
        {"HunYuanMoEV1ForCausalLM",
         "'num_experts':16,'num_local_experts':8,'moe_topk':2,"
         "'num_experts_per_tok':3",
         8, 3},
        {"HunYuanMoEV1ForCausalLM",
         "'num_local_experts':8,'num_experts_per_tok':3", 8, 3},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model *m = read_small(cases[i].class_name, cases[i].keys);
        ck_assert_msg(m->h.n_experts == cases[i].n, "%s", cases[i].keys);
        ck_assert_msg(m->h.n_experts_used == cases[i].n_used, "%s",
                      cases[i].keys);
    }
}
END_TEST

/* What its makers' files have is only their name for it. */
START_TEST(gpt_oss_has_two_names_for_the_experts_of_a_token)
{
    ck_assert_uint_eq(
        read_small("GptOssForCausalLM", "'experts_per_token':2")
            ->h.n_experts_used,
        2);
    ck_assert_uint_eq(
        read_small("GptOssForCausalLM",
                   "'experts_per_token':2,'num_experts_per_tok':3")
            ->h.n_experts_used,
        3);
    ck_assert_uint_eq(
        read_small("GptOssForCausalLM", "")->h.n_experts_used, 4);
}
END_TEST

/* ---- Rotary positions ---- */

#define UNSAID "a model of this kind without 'rope_parameters'"

START_TEST(classes_that_scale_unsaid_are_refused)
{
    static const char *const names[] = {
        "ApertusForCausalLM",    "CwmForCausalLM",     "GptOssForCausalLM",
        "Ministral3ForCausalLM", "Mistral4ForCausalLM",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_unsupported(names[i], "'rope_theta':1000", UNSAID);
        assert_unsupported(names[i], "'rope_scaling':null", UNSAID);
        ck_assert_str_ne(
            read_small(names[i], "'rope_scaling':{'type':'default'}")
                ->h.unsupported,
            UNSAID);
        ck_assert_str_ne(
            read_small(names[i], "'rope_parameters':{'rope_theta':1000}")
                ->h.unsupported,
            UNSAID);
    }
    assert_unsupported("Gemma4ForCausalLM", "'rope_theta':1000", UNSAID);
    assert_unsupported("Gemma4ForCausalLM",
                       "'rope_parameters':{'full_attention':{'rope_theta':"
                       "1e6},'sliding_attention':{'rope_theta':1e4}},"
                       "'rope_scaling':{'rope_type':'linear','factor':2}",
                       "'rope_scaling' beside 'rope_parameters'");
    assert_unsupported("MellumForCausalLM",
                       "'rope_scaling':{'rope_type':'linear','factor':2}",
                       "'rope_scaling'");
    assert_unsupported("Lfm3ForCausalLM",
                       "'rope_scaling':{'rope_type':'linear','factor':2}",
                       "'rope_scaling'");
}
END_TEST

/* What an option may say in its place. */
static void
assert_unsaid(const char *class, const char *keys, const char *theta,
              const char *eps)
{
    struct model *m = read_small(class, keys);

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_pstr_eq(m->source.unsaid_theta, theta);
    ck_assert_pstr_eq(m->source.unsaid_eps, eps);
}

/* As a flat file of either version has it, or the text within another. */
START_TEST(a_base_that_versions_differ_in_must_be_said)
{
    static const struct {
        const char *class, *type;
        const char *before, *kinds, *after;
    } cases[] = {
        {"CohereForCausalLM", "", "", "", ""},
        {"ExaoneForCausalLM", "", "'layer_norm_epsilon':1e-5,", "", ""},
        {"FalconH1ForCausalLM", "", "'mamba_n_heads':8,'mamba_d_ssm':64,", "",
         ""},
        {"Olmo3ForCausalLM", "", "", "'full_attention':{",
         "},'sliding_attention':{'rope_theta':5e5}"},
        {"Qwen3VLForConditionalGeneration", "qwen3_vl_text", "", "", ""},
        {"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text", "", "",
         ""},
    };
    static const struct {
        const char *flat, *inner, *unsaid;
    } forms[] = {
        {"'x':0", NULL, "rope_theta"},
        {"'rope_theta':null", NULL, "rope_theta"},
        {"'rope_scaling':{'rope_type':'default'}", NULL, "rope_theta"},
        {"'rope_theta':5e5", NULL, NULL},
        {NULL, "'rope_type':'default'", "rope_theta"},
        {NULL, "'rope_type':'default','rope_theta':5e5", NULL},
    };
    char keys[256], more[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t j = 0; j < sizeof(forms) / sizeof(forms[0]); j++) {
            if (forms[j].flat != NULL)
                snprintf(keys, sizeof(keys), "%s%s", cases[i].before,
                         forms[j].flat);
            else
                snprintf(keys, sizeof(keys), "%s'rope_parameters':{%s%s%s}",
                         cases[i].before, cases[i].kinds, forms[j].inner,
                         cases[i].after);
            if (*cases[i].type == '\0')
                snprintf(more, sizeof(more), "%s", keys);
            else
                snprintf(more, sizeof(more),
                         "'text_config':{'model_type':'%s',%s," SMALL "}",
                         cases[i].type, keys);
            assert_unsaid(cases[i].class, more, forms[j].unsaid, NULL);
        }
}
END_TEST

START_TEST(an_epsilon_that_readers_differ_in_must_be_said)
{
    assert_unsaid("ExaoneForCausalLM", "'rope_theta':1e6", NULL,
                  "layer_norm_epsilon");
    assert_unsaid("ExaoneForCausalLM",
                  "'rope_theta':1e6,'layer_norm_epsilon':1e-5", NULL, NULL);
    assert_unsaid("ExaoneForCausalLM",
                  "'rope_theta':1e6,'rms_norm_eps':1e-5", NULL, NULL);
}
END_TEST

START_TEST(scaling_may_hold_all_that_newer_files_have)
{
    struct model *m = read_small("LlamaForCausalLM",
                                 "'rope_theta':1000,'rope_scaling':{"
                                 "'type':'linear','factor':4,"
                                 "'rope_theta':50}");

    ck_assert_double_eq(m->h.rope_theta, 50);
    m = read_small("LlamaForCausalLM",
                   "'rope_theta':1000,'rope_scaling':{'type':'linear',"
                   "'factor':4},'rope_parameters':{'rope_type':'linear',"
                   "'factor':2,'rope_theta':77}");
    ck_assert_double_eq(m->h.rope_theta, 1000);
    ck_assert_double_eq(m->h.rope_factor, 4);
    m = read_small("LlamaForCausalLM",
                   "'rope_scaling':{},'rope_parameters':{'rope_type':"
                   "'linear','factor':2,'rope_theta':77}");
    ck_assert_double_eq(m->h.rope_theta, 77);
    ck_assert_double_eq(m->h.rope_factor, 2);
    m = read_small("PhiForCausalLM",
                   "'partial_rotary_factor':0.5,'rope_scaling':{'type':"
                   "'linear','factor':4,'partial_rotary_factor':0.25}");
    ck_assert_uint_eq(m->h.rotary_dim, 4);
    assert_unsupported("LlamaForCausalLM",
                       "'rope_scaling':{'full_attention':{'type':'linear',"
                       "'factor':4}}",
                       "rotary positions by kind of layer");
}
END_TEST

/* The library fills up "rope_parameters" by kinds of layers, and leaves what
 * else it holds alone. */
START_TEST(kinds_of_layers_have_one_form)
{
    struct model *m = read_small("Gemma3ForCausalLM",
                                 "'rope_local_base_freq':70,'rope_scaling':{"
                                 "'rope_type':'linear','factor':4,"
                                 "'rope_theta':50}");

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_double_eq(m->h.rope_theta, 50);
    ck_assert_double_eq(m->h.rope_local_theta, 70);
    assert_unsupported("Gemma3ForCausalLM",
                       "'rope_parameters':{'rope_type':'linear','factor':4}",
                       "'rope_parameters' without kinds of layers");
    assert_unsupported("Olmo3ForCausalLM",
                       "'rope_parameters':{'rope_type':'linear','factor':4}",
                       "'rope_parameters' without kinds of layers");
    assert_unsupported("Gemma3ForCausalLM",
                       "'rope_parameters':{'full_attention':{'rope_theta':"
                       "50}},'rope_scaling':{'rope_type':'linear',"
                       "'factor':4}",
                       "'rope_scaling' beside 'rope_parameters'");
    assert_unsupported("Olmo3ForCausalLM",
                       "'rope_scaling':{'rope_type':'linear','factor':4,"
                       "'rope_theta':50}",
                       "a 'rope_theta' of 50, which versions of the library "
                       "take differently");
}
END_TEST

/* Where layers differ newer versions of the library do not look at the older
 * name, and older ones stop at it. */
START_TEST(kinds_of_layers_have_one_name_for_scaling)
{
    static const char why[] =
        "'type' in 'rope_scaling' without 'rope_type', which versions of the "
        "library take differently";

    assert_unsupported("Gemma3ForCausalLM",
                       "'rope_scaling':{'type':'linear','factor':8}", why);
    assert_unsupported("Olmo3ForCausalLM",
                       "'rope_theta':5e5,'rope_scaling':{'type':'linear',"
                       "'factor':8}",
                       why);
    assert_unsupported("Gemma3ForCausalLM", "'rope_scaling':{'type':'default'}",
                       "");
    assert_unsupported("Gemma3ForCausalLM",
                       "'rope_scaling':{'type':'linear','rope_type':'linear',"
                       "'factor':8}",
                       "");
    assert_unsupported("Olmo3ForCausalLM",
                       "'rope_theta':5e5,'rope_scaling':{'rope_type':'linear',"
                       "'factor':8}",
                       "");
}
END_TEST

#define YARN "'rope_scaling':{'type':'yarn','factor':4"
#define LLAMA3                                                                \
    "'rope_scaling':{'type':'llama3','factor':8,'low_freq_factor':1,"         \
    "'high_freq_factor':4"
#define CONTEXT "'original_max_position_embeddings':"
#define DIFFERS(inside, beside)                                               \
    "an 'original_max_position_embeddings' of " #inside                       \
    " in rotary scaling and " #beside                                         \
    " beside it, which versions of the library take differently"

START_TEST(two_contexts_before_scaling_agree)
{
    static const char *const scalings[] = {YARN, LLAMA3};
    char more[256];

    for (size_t i = 0; i < sizeof(scalings) / sizeof(scalings[0]); i++) {
        snprintf(more, sizeof(more), "%s," CONTEXT "32}," CONTEXT "16",
                 scalings[i]);
        assert_unsupported("LlamaForCausalLM", more, DIFFERS(32, 16));
        snprintf(more, sizeof(more), "%s," CONTEXT "32}," CONTEXT "32",
                 scalings[i]);
        assert_unsupported("LlamaForCausalLM", more, "");
        snprintf(more, sizeof(more), "%s}," CONTEXT "32", scalings[i]);
        assert_unsupported("LlamaForCausalLM", more, "");
        ck_assert_uint_eq(read_small("LlamaForCausalLM", more)->h.rope_context,
                          32);
    }
    assert_wrong("LlamaForCausalLM", LLAMA3 "}", "low_freq_factor");
    /* Phi 3's class has one, which counts without a key, too. */
    assert_unsupported("Phi3ForCausalLM",
                       "'rope_scaling':{'type':'longrope','short_factor':"
                       "[1,1,1,1,1,1,1,1],'long_factor':[2,2,2,2,2,2,2,2],"
                       CONTEXT "32}",
                       DIFFERS(32, 4096));
}
END_TEST

#define LONGROPE                                                              \
    "'max_position_embeddings':64,'rope_scaling':{'type':'longrope',"         \
    "'short_factor':[1,1,1,1,1,1,1,1],'long_factor':[2,2,2,2,2,2,2,2]"
#define INSIDE                                                                \
    "an 'original_max_position_embeddings' in rotary scaling and none beside" \
    " it, which versions of the library take differently"
#define OTHER_FACTOR                                                          \
    "a 'factor' of 3 and contexts of 16 and 64, which versions of the "       \
    "library take differently"

START_TEST(the_context_of_longrope_stands_beside_it)
{
    static const struct {
        const char *class, *more, *why;
    } cases[] = {
        {"LlamaForCausalLM", LONGROPE "," CONTEXT "16}", INSIDE},
        {"LlamaForCausalLM", LONGROPE "," CONTEXT "64}", ""},
        {"LlamaForCausalLM", LONGROPE "," CONTEXT "16}," CONTEXT "16", ""},
        {"LlamaForCausalLM", LONGROPE "}," CONTEXT "16", ""},
        {"LlamaForCausalLM", LONGROPE ",'factor':4}," CONTEXT "16", ""},
        {"LlamaForCausalLM", LONGROPE ",'factor':3}," CONTEXT "16",
         OTHER_FACTOR},
        {"LlamaForCausalLM",
         LONGROPE ",'factor':3,'attention_factor':1}," CONTEXT "16", ""},
        {"LlamaForCausalLM", LONGROPE ",'factor':3}", ""},
        {"MiniCPMForCausalLM", LONGROPE "," CONTEXT "16}", ""},
        {"MiniCPMForCausalLM", LONGROPE ",'factor':3," CONTEXT "16}",
         OTHER_FACTOR},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_unsupported(cases[i].class, cases[i].more, cases[i].why);
}
END_TEST

START_TEST(a_part_and_a_number_of_dimensions_agree)
{
    struct model *m = read_small("MiniMaxM2ForCausalLM",
                                 "'head_dim':16,'rotary_dim':8,"
                                 "'rope_parameters':{'rope_type':'default',"
                                 "'partial_rotary_factor':0.5}");

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.rotary_dim, 8);
    assert_unsupported("MiniMaxM2ForCausalLM",
                       "'head_dim':16,'rotary_dim':8,'rope_parameters':{"
                       "'rope_type':'default','partial_rotary_factor':0.25}",
                       "a 'rotary_dim' of 8 beside a 'partial_rotary_factor' "
                       "of 0.25");
    assert_unsupported("MiniMaxM2ForCausalLM",
                       "'head_dim':16,'rotary_dim':8,"
                       "'partial_rotary_factor':1",
                       "a 'rotary_dim' of 8 beside a 'partial_rotary_factor' "
                       "of 1");
    m = read_small("MiniMaxM2ForCausalLM",
                   "'head_dim':16,'partial_rotary_factor':0.25");
    ck_assert_uint_eq(m->h.rotary_dim, 4);
}
END_TEST

/* ---- Activations ---- */

START_TEST(some_classes_do_not_look_at_the_activation)
{
    static const struct {
        const char *class_name, *keys;
        enum lmq_activation activation;
    } cases[] = {
        {"GptOssForCausalLM", "'hidden_act':'relu'", LMQ_ACTIVATION_SILU},
        {"BloomForCausalLM", "'n_layer':8,'n_head':4,'hidden_act':'relu'",
         LMQ_ACTIVATION_GELU_TANH},
        {"MptForCausalLM",
         "'d_model':64,'n_layers':8,'n_heads':4,'hidden_act':'relu'",
         LMQ_ACTIVATION_GELU},
        {"GemmaForCausalLM", "'hidden_act':'gelu'", LMQ_ACTIVATION_GELU_TANH},
        {"GemmaForCausalLM", "'hidden_act':'relu'", LMQ_ACTIVATION_RELU},
        {"GemmaForCausalLM", "'hidden_activation':'relu'",
         LMQ_ACTIVATION_GELU_TANH},
        {"GemmaForCausalLM",
         "'hidden_act':'gelu_pytorch_tanh','hidden_activation':'gelu'",
         LMQ_ACTIVATION_GELU_TANH},
        {"Gemma2ForCausalLM", "'hidden_activation':'relu'",
         LMQ_ACTIVATION_RELU},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(read_small(cases[i].class_name, cases[i].keys)
                              ->h.activation == cases[i].activation,
                      "%s: %s", cases[i].class_name, cases[i].keys);
}
END_TEST

/* ---- Switches ---- */

/* In Python null is false, whatever an absent key means. */
START_TEST(a_switch_that_is_null_is_off)
{
    const struct lmq_hparams *h =
        &read_small("DeepseekV3ForCausalLM", "'norm_topk_prob':null")->h;

    ck_assert(!h->router_renormalises);
    ck_assert(!read_small("DeepseekV3ForCausalLM", "'rope_interleave':null")
                   ->source.has_rotary_pairs);
    h = &read_small("GPTNeoXForCausalLM", "'use_parallel_residual':null")->h;
    ck_assert_int_eq(h->residual, LMQ_RESIDUAL_SEQUENTIAL);
    h = &read_small("LlamaForCausalLM",
                    "'rope_scaling':{'type':'yarn','factor':4,"
                    "'original_max_position_embeddings':64,"
                    "'truncate':null}")->h;
    ck_assert(h->rope_ramp_exact);
    h = &read_small("Llama4ForCausalLM",
                    "'head_dim':16,'use_qk_norm':null,"
                    "'attn_temperature_tuning':null")->h;
    ck_assert_int_eq(h->qk_norm, LMQ_QK_NORM_NONE);
    ck_assert(!(h->score_growth > 0));
    h = &read_small("Llama4ForCausalLM", "'head_dim':16")->h;
    ck_assert_int_ne(h->qk_norm, LMQ_QK_NORM_NONE);
    ck_assert(h->score_growth > 0);
    assert_unsupported("AfmoeForCausalLM", "'route_norm':null",
                       "'route_norm' null");
    assert_unsupported("AfmoeForCausalLM", "'score_func':null", "");
    assert_unsupported("LlamaForCausalLM", "'is_encoder_decoder':null", "");
}
END_TEST

/* ---- Widths ---- */

START_TEST(where_all_layers_are_experts_there_may_be_no_other_width)
{
    static const struct {
        const char *class;
        uint32_t width;
    } cases[] = {
        {"Qwen2MoeForCausalLM", 5632},
        {"Qwen3MoeForCausalLM", 6144},
        {"MellumForCausalLM", 7168},
    };
    char text[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{'architectures':['%s'],'hidden_size':64,"
                 "'num_hidden_layers':2,'num_attention_heads':4,"
                 "'num_key_value_heads':4,'vocab_size':100}",
                 cases[i].class);
        ck_assert_uint_eq(read_model(text)->h.hidden_dim, cases[i].width);
        ck_assert_uint_eq(read_small(cases[i].class, "")->h.hidden_dim, 96);
    }
}
END_TEST

/* ---- Zeros ---- */

/* In a window of 0 nothing is seen; null is none. */
START_TEST(a_zero_is_not_none)
{
    static const char *const names[] = {
        "MistralForCausalLM", "MixtralForCausalLM", "Phi3ForCausalLM",
        "Starcoder2ForCausalLM", "MinistralForCausalLM",
    };
    static const char *const used[] = {"Qwen2ForCausalLM",
                                       "SmolLM3ForCausalLM"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_unsupported(names[i], "'sliding_window':0",
                           "'sliding_window' 0");
        assert_unsupported(names[i], "'sliding_window':null", "");
    }
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        assert_unsupported(used[i], "'sliding_window':0", "");
        assert_wrong(used[i], "'use_sliding_window':true,'sliding_window':0",
                     "'sliding_window' in the configuration is 0");
        assert_unsupported(
            used[i], "'use_sliding_window':true,'sliding_window':null", "");
    }
    assert_unsupported("LlamaForCausalLM", "'sliding_window':0", "");
    assert_unsupported("DeepseekV3ForCausalLM", "'n_group':1,'topk_group':0",
                       "'topk_group' 0");
    assert_unsupported("DeepseekV2ForCausalLM",
                       "'num_experts_per_tok':2,'n_group':1,'topk_group':0",
                       "");
}
END_TEST

START_TEST(heads_of_a_latent_vector_have_one_part_that_turns)
{
    assert_unsupported("DeepseekV3ForCausalLM", "'partial_rotary_factor':0.5",
                       "'partial_rotary_factor' 0.5");
    assert_unsupported("DeepseekV3ForCausalLM", "'partial_rotary_factor':1.0",
                       "");
    assert_unsupported("Mistral4ForCausalLM",
                       "'rope_parameters':{'rope_type':'default',"
                       "'partial_rotary_factor':0.5}",
                       "");
    assert_unsupported("Mistral4ForCausalLM",
                       "'rope_parameters':{'rope_type':'default',"
                       "'partial_rotary_factor':0.25}",
                       "'partial_rotary_factor' 0.25");
}
END_TEST

/* ---- Tokens ---- */

START_TEST(tokens_are_whole_numbers)
{
    static const char *const ends[] = {"2.0", "true", "'2'", "[2,3.5]",
                                       "4294967296"};
    struct model *m = read_small("LlamaForCausalLM",
                                 "'bos_token_id':-1,'eos_token_id':[-1]");
    char more[64];

    ck_assert_int_eq(m->h.bos, -1);
    ck_assert_uint_eq(m->h.n_eos, 0);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(more, sizeof(more), "'eos_token_id':%s", ends[i]);
        assert_wrong("LlamaForCausalLM", more, "'eos_token_id'");
    }
    assert_wrong("LlamaForCausalLM", "'bos_token_id':false",
                 "'bos_token_id'");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        every_class_has_its_key_for_biases,
        biases_of_which_nothing_can_be_said,
        other_names_of_experts_count_more,
        gpt_oss_has_two_names_for_the_experts_of_a_token,
        classes_that_scale_unsaid_are_refused,
        a_base_that_versions_differ_in_must_be_said,
        an_epsilon_that_readers_differ_in_must_be_said,
        scaling_may_hold_all_that_newer_files_have,
        kinds_of_layers_have_one_form,
        kinds_of_layers_have_one_name_for_scaling,
        two_contexts_before_scaling_agree,
        the_context_of_longrope_stands_beside_it,
        a_part_and_a_number_of_dimensions_agree,
        some_classes_do_not_look_at_the_activation,
        a_switch_that_is_null_is_off,
        where_all_layers_are_experts_there_may_be_no_other_width,
        a_zero_is_not_none,
        heads_of_a_latent_vector_have_one_part_that_turns,
        tokens_are_whole_numbers,
    };

    return RUN_SUITE("hf_keys", tests);
}
