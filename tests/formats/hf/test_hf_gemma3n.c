/*
 * test_hf_gemma3n.c - config.json of Gemma 3n: several streams, layers that are
 * sparse, what may be said layer by layer.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

#define FIVE(x) x "," x "," x "," x "," x
#define TEN(x) FIVE(x) "," FIVE(x)
#define FIVE_TYPES                                                            \
    "'sliding_attention','sliding_attention','sliding_attention',"            \
    "'sliding_attention','full_attention'"

/* As its makers published it. */
START_TEST(gemma_3n_e2b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma3nForConditionalGeneration'],"
        "'audio_config':{'model_type':'gemma3n_audio'},"
        "'eos_token_id':[1,106],'model_type':'gemma3n','text_config':{"
        "'activation_sparsity_pattern':[" TEN("0.95") "," TEN("0.0") ","
        TEN("0.0") "],'altup_active_idx':0,'altup_coef_clip':120.0,"
        "'altup_correct_scale':true,'altup_lr_multiplier':1.0,"
        "'altup_num_inputs':4,'attention_bias':false,"
        "'final_logit_softcapping':30.0,'head_dim':256,"
        "'hidden_activation':'gelu_pytorch_tanh','hidden_size':2048,"
        "'hidden_size_per_layer_input':256,'intermediate_size':["
        TEN("8192") "," TEN("8192") "," TEN("8192") "],'laurel_rank':64,"
        "'layer_types':[" FIVE_TYPES "," FIVE(FIVE_TYPES) "],"
        "'max_position_embeddings':32768,'model_type':'gemma3n_text',"
        "'num_attention_heads':8,'num_hidden_layers':30,"
        "'num_key_value_heads':2,'num_kv_shared_layers':10,"
        "'query_pre_attn_scalar':256,'rms_norm_eps':1e-06,"
        "'rope_local_base_freq':10000.0,'rope_scaling':null,"
        "'rope_theta':1000000.0,'sliding_window':512,'vocab_size':262400,"
        "'vocab_size_per_layer_input':262144},"
        "'vision_config':{'model_type':'gemma3n_vision'}}");

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_str_eq(m->h.architecture, "gemma3n");
    assert_sizes(&m->h, 30, 2048, 8192, 8, 2, 256);
    assert_source(&m->source, false, false, false, false);
    assert_layers(&m->h, LMQ_LAYER_FULL, "....x....x....x");
    assert_layers(&m->h, LMQ_LAYER_SPARSE,
                  "xxxxxxxxxx....................");
    ck_assert_double_eq_tol(m->h.sparse_cut, 1.6448536269514722, 1e-12);
    ck_assert_uint_eq(m->h.n_streams, 4);
    ck_assert_uint_eq(m->h.residual_rank, 64);
    ck_assert_uint_eq(m->h.layer_input_dim, 256);
    ck_assert_uint_eq(m->h.layer_input_vocab, 262144);
    ck_assert_uint_eq(m->h.n_borrowing, 10);
    ck_assert_uint_eq(lmq_layer_kv_source(&m->h, 28), 18);
    ck_assert_uint_eq(lmq_layer_kv_source(&m->h, 29), 19);
    ck_assert(m->h.has_value_norm);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_double_eq(m->h.rope_theta, 1e6);
    ck_assert_double_eq(m->h.rope_local_theta, 10000);
    ck_assert_double_eq(m->h.attn_scale, 1);
    ck_assert_double_eq(m->h.embedding_scale, sqrt(2048));
    ck_assert_double_eq(m->h.logit_softcap, 30);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
}
END_TEST

/* Of the 4B. */
START_TEST(what_is_not_said_is_as_the_class_has_it)
{
    struct model *m = read_model(
        "{'architectures':['Gemma3nForCausalLM'],"
        "'model_type':'gemma3n_text'}");

    ck_assert_str_eq(m->h.unsupported, "");
    assert_sizes(&m->h, 35, 2048, 16384, 8, 2, 256);
    assert_layers(&m->h, LMQ_LAYER_FULL, "....x....x....x");
    assert_layers(&m->h, LMQ_LAYER_SPARSE,
                  "xxxxxxxxxx.........................");
    ck_assert_uint_eq(m->h.n_borrowing, 15);
    ck_assert_uint_eq(m->h.context, 32768);
    ck_assert_uint_eq(m->h.sliding_window, 512);
    m = read_small("Gemma3nForCausalLM", "'num_kv_shared_layers':0");
    assert_layers(&m->h, LMQ_LAYER_SPARSE, "........");
    ck_assert_double_eq(m->h.sparse_cut, 0);
}
END_TEST

#define NONE_SHARED "'num_kv_shared_layers':0,"
#define SPARSE NONE_SHARED "'activation_sparsity_pattern':"

/* Quantiles of the normal distribution, from its tables. */
START_TEST(a_share_becomes_deviations)
{
    static const struct {
        const char *share;
        double deviations;
    } known[] = {
        {"0.5", 0},
        {"0.75", 0.6744897501960817},
        {"0.9", 1.2815515655446004},
        {"0.99", 2.3263478740408408},
        {"0.9999", 3.7190164854556804},
        {"0.999999", 4.753424308822899},
    };
    char keys[128];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        snprintf(keys, sizeof(keys), SPARSE "[0,%s,0,%s,0,0,0,0.0]",
                 known[i].share, known[i].share);
        struct model *m = read_small("Gemma3nForCausalLM", keys);
        assert_layers(&m->h, LMQ_LAYER_SPARSE, ".x.x....");
        ck_assert_double_eq_tol(m->h.sparse_cut, known[i].deviations, 1e-9);
    }
}
END_TEST

/* Of two layers. */
#define OF_WIDTHS(list)                                                       \
    "{'architectures':['Gemma3nForCausalLM'],'num_hidden_layers':2,"          \
    "'num_kv_shared_layers':0,'intermediate_size':[" list "]}"

static void
assert_widths(const char *text, const char *why)
{
    struct lmq_error err = {0};
    struct model model;
    bool is_known;

    ck_assert_int_eq(parse_config(text, &model, &is_known, &err), LMQ_OK);
    ck_assert_str_eq(model.h.unsupported, why);
    ck_assert_uint_eq(model.h.hidden_dim, 96);
}

static void
assert_no_widths(const char *text, const char *what)
{
    struct lmq_error err = {0};
    struct model model;
    bool is_known;

    ck_assert_int_eq(parse_config(text, &model, &is_known, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, what) != NULL, "%s", err.message);
}

START_TEST(gemma_3n_in_other_ways_is_refused)
{
    static const char class[] = "Gemma3nForCausalLM";

    assert_unsupported(class, NONE_SHARED "'altup_active_idx':1",
                       "'altup_active_idx' 1");
    assert_unsupported(class, NONE_SHARED "'altup_correct_scale':false",
                       "'altup_correct_scale' false");
    assert_unsupported(class, NONE_SHARED "'altup_num_inputs':1",
                       "'altup_num_inputs' 1");
    assert_unsupported(class, NONE_SHARED "'laurel_rank':0",
                       "'laurel_rank' 0");
    assert_unsupported(class, NONE_SHARED "'hidden_size_per_layer_input':0",
                       "'hidden_size_per_layer_input' 0");
    assert_widths(OF_WIDTHS("96,96"), "");
    assert_widths(OF_WIDTHS("96,64"),
                  "layers of several widths in 'intermediate_size'");
    assert_unsupported(class, SPARSE "[0.9,0.9,0.95,0,0,0,0,0]",
                       "layers that differ in 'activation_sparsity_pattern'");
    assert_unsupported(class, SPARSE "[0.25,0,0,0,0,0,0,0]",
                       "0.25 in 'activation_sparsity_pattern'");
    assert_unsupported(class, SPARSE "[1.0,0,0,0,0,0,0,0]",
                       "1 in 'activation_sparsity_pattern'");
    assert_wrong(class, SPARSE "[0.9,0.9]", "names 2 of 8 layers");
    assert_wrong(class, SPARSE "[true,0,0,0,0,0,0,0]",
                 "no list of numbers");
    assert_no_widths(OF_WIDTHS("96"), "names 1 of 2 layers");
    assert_no_widths(OF_WIDTHS("0,0"),
                     "'intermediate_size' in the configuration is 0");
    assert_no_widths(OF_WIDTHS("9.5,9.5"), "no list of whole numbers");
    assert_wrong(class, NONE_SHARED "'sliding_window':0", "'sliding_window'");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        gemma_3n_e2b,
        what_is_not_said_is_as_the_class_has_it,
        a_share_becomes_deviations,
        gemma_3n_in_other_ways_is_refused,
    };

    return RUN_SUITE("hf_gemma3n", tests);
}
