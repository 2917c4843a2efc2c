/*
 * test_config.c - config.json, and hyper-parameters as a container keeps them.
 */
#include "config.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/hf/hf_reader.h"
#include "formats/model/hparams_check.h"
#include "formats/model/hparams_json.h"
#include "formats/packed/packer.h"
#include "tests/build/suite.h"

#define LLAMA "\"architectures\":[\"LlamaForCausalLM\"]"
#define SIZES                                                                 \
    "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":2,"    \
    "\"num_attention_heads\":4,\"vocab_size\":100"

static enum lmq_status
parse(const char *text, struct lmq_hparams *h, bool *is_known,
      struct lmq_error *err)
{
    struct lmq_source source;

    lmq_hparams_init(h);
    return lmq_config_parse((const unsigned char *)text, strlen(text), h,
                            &source, is_known, err);
}

/* A Llama with these further keys. */
static struct lmq_hparams
llama(const char *more)
{
    struct lmq_hparams h;
    struct lmq_error err;
    char text[2048];
    bool is_known;

    snprintf(text, sizeof(text), "{" LLAMA "," SIZES "%s}", more);
    ck_assert_msg(parse(text, &h, &is_known, &err) == LMQ_OK, "%s: %s", more,
                  err.message);
    ck_assert(is_known);
    ck_assert_msg(lmq_hparams_check(&h, &err) == LMQ_OK, "%s: %s", more,
                  err.message);
    return h;
}

/* Refused when it is read or when it is checked. */
static void
assert_wrong(const char *text, const char *what)
{
    struct lmq_hparams h;
    struct lmq_error err = {0};
    bool is_known;
    enum lmq_status status = parse(text, &h, &is_known, &err);

    if (status == LMQ_OK && is_known)
        status = lmq_hparams_check(&h, &err);
    ck_assert_msg(status == LMQ_ERR_FORMAT, "%s is accepted", text);
    ck_assert_msg(strstr(err.message, what) != NULL, "'%s' says nothing of %s",
                  err.message, what);
}

static void
assert_wrong_llama(const char *sizes, const char *what)
{
    char text[2048];

    snprintf(text, sizeof(text), "{" LLAMA ",%s}", sizes);
    assert_wrong(text, what);
}

START_TEST(absent_keys_have_the_defaults_of_the_model_class)
{
    struct lmq_hparams h = llama("");

    ck_assert_str_eq(h.architecture, "llama");
    ck_assert_str_eq(h.unsupported, "");
    ck_assert_uint_eq(h.dim, 64);
    ck_assert_uint_eq(h.hidden_dim, 96);
    ck_assert_uint_eq(h.n_layers, 2);
    ck_assert_uint_eq(h.n_heads, 4);
    ck_assert_uint_eq(h.n_kv_heads, 4);
    ck_assert_uint_eq(h.head_dim, 16);
    ck_assert_uint_eq(h.vocab_size, 100);
    ck_assert_uint_eq(h.context, 2048);
    ck_assert_double_eq(h.norm_eps, 1e-6);
    ck_assert_double_eq(h.rope_theta, 10000);
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_PLAIN);
    ck_assert_int_eq(h.tie, LMQ_TIE_UNSET);
    ck_assert_int_eq(h.bos, -1);
    ck_assert_uint_eq(h.n_eos, 0);
}
END_TEST

START_TEST(keys_that_are_there_count)
{
    struct lmq_hparams h =
        llama(",\"num_key_value_heads\":2,\"head_dim\":32,"
              "\"max_position_embeddings\":512,\"rms_norm_eps\":1e-5,"
              "\"rope_theta\":500000,\"tie_word_embeddings\":true,"
              "\"bos_token_id\":1,\"eos_token_id\":[2,7],\"hidden_act\":"
              "\"silu\"");

    ck_assert_uint_eq(h.n_kv_heads, 2);
    ck_assert_uint_eq(h.head_dim, 32);
    ck_assert_uint_eq(h.context, 512);
    ck_assert_double_eq(h.norm_eps, 1e-5);
    ck_assert_double_eq(h.rope_theta, 500000);
    ck_assert_int_eq(h.tie, LMQ_TIE_YES);
    ck_assert_int_eq(h.bos, 1);
    ck_assert_uint_eq(h.n_eos, 2);
    ck_assert_int_eq(h.eos[1], 7);
    h = llama(",\"tie_word_embeddings\":false,\"eos_token_id\":3");
    ck_assert_int_eq(h.tie, LMQ_TIE_NO);
    ck_assert_int_eq(h.eos[0], 3);
}
END_TEST

START_TEST(null_is_as_good_as_absent)
{
    struct lmq_hparams h =
        llama(",\"num_key_value_heads\":null,\"head_dim\":null,"
              "\"rope_theta\":null,\"rope_scaling\":null,"
              "\"sliding_window\":null,\"eos_token_id\":null,"
              "\"tie_word_embeddings\":null,\"hidden_act\":null,"
              "\"layer_types\":null,\"rope_parameters\":null");

    ck_assert_uint_eq(h.n_kv_heads, 4);
    ck_assert_uint_eq(h.head_dim, 16);
    ck_assert_double_eq(h.rope_theta, 10000);
    ck_assert_int_eq(h.tie, LMQ_TIE_UNSET);
    ck_assert_str_eq(h.unsupported, "");
}
END_TEST

START_TEST(rope_scaling_is_read_in_its_variants)
{
    struct lmq_hparams h = llama(",\"rope_scaling\":{\"type\":\"linear\","
                                 "\"factor\":4.0}");

    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_LINEAR);
    ck_assert_double_eq(h.rope_factor, 4);
    h = llama(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":32,"
              "\"low_freq_factor\":1,\"high_freq_factor\":4,"
              "\"original_max_position_embeddings\":8192}");
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_LLAMA3);
    ck_assert_double_eq(h.rope_factor, 32);
    ck_assert_double_eq(h.rope_low_factor, 1);
    ck_assert_double_eq(h.rope_high_factor, 4);
    ck_assert_uint_eq(h.rope_context, 8192);
    h = llama(",\"rope_scaling\":{\"rope_type\":\"default\"}");
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_PLAIN);
    ck_assert_str_eq(h.unsupported, "");
    h = llama(",\"rope_scaling\":{\"type\":\"ntk\",\"factor\":3}");
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_NTK);
    ck_assert_double_eq(h.rope_factor, 3);
    h = llama(",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2},"
              "\"max_position_embeddings\":4096");
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_DYNAMIC);
    ck_assert_uint_eq(h.rope_context, 4096);
    /* Newer files: base and scaling in one place. */
    h = llama(",\"rope_theta\":7,\"rope_parameters\":{\"rope_theta\":1e6,"
              "\"rope_type\":\"linear\",\"factor\":2}");
    ck_assert_double_eq(h.rope_theta, 1e6);
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_LINEAR);
}
END_TEST

START_TEST(yarn_has_its_defaults)
{
    struct lmq_hparams h = llama(
        ",\"max_position_embeddings\":32768,\"rope_scaling\":{\"type\":"
        "\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":8192}");

    ck_assert_str_eq(h.unsupported, "");
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_YARN);
    ck_assert_double_eq(h.rope_factor, 4);
    ck_assert_uint_eq(h.rope_context, 8192);
    ck_assert_double_eq(h.rope_beta_fast, 32);
    ck_assert_double_eq(h.rope_beta_slow, 1);
    ck_assert_double_eq(h.rope_attention_factor, 0.1 * log(4) + 1);
    ck_assert_double_eq(h.attn_scale, 0);
    h = llama(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8,"
              "\"attention_factor\":1.5,\"beta_fast\":64,\"beta_slow\":2,"
              "\"truncate\":true}");
    ck_assert_uint_eq(h.rope_context, 2048);
    ck_assert_double_eq(h.rope_attention_factor, 1.5);
    ck_assert_double_eq(h.rope_beta_fast, 64);
    ck_assert_double_eq(h.rope_beta_slow, 2);
    ck_assert(!h.rope_ramp_exact);
    h = llama(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8,"
              "\"truncate\":false}");
    ck_assert(h.rope_ramp_exact);
    /* The factor follows from the two contexts. */
    h = llama(",\"rope_scaling\":{\"type\":\"yarn\","
              "\"original_max_position_embeddings\":512}");
    ck_assert_double_eq(h.rope_factor, 4);
    h = llama(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
              "\"mscale\":2,\"mscale_all_dim\":1}");
    ck_assert_double_eq(h.rope_attention_factor,
                        (0.2 * log(4) + 1) / (0.1 * log(4) + 1));
    h = llama(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
              "\"mscale\":1.0,\"mscale_all_dim\":0.0}");
    ck_assert_str_eq(h.unsupported, "");
    ck_assert_double_eq(h.rope_attention_factor, 0.1 * log(4) + 1);
}
END_TEST

START_TEST(activations_go_by_their_many_names)
{
    static const struct {
        const char *name;
        enum lmq_activation activation;
    } names[] = {
        {"silu", LMQ_ACTIVATION_SILU},
        {"swish", LMQ_ACTIVATION_SILU},
        {"gelu", LMQ_ACTIVATION_GELU},
        {"gelu_python", LMQ_ACTIVATION_GELU},
        {"gelu_new", LMQ_ACTIVATION_GELU_TANH},
        {"gelu_fast", LMQ_ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", LMQ_ACTIVATION_GELU_TANH},
        {"relu", LMQ_ACTIVATION_RELU},
        {"sigmoid", LMQ_ACTIVATION_SIGMOID},
    };
    char more[100];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(more, sizeof(more), ",\"hidden_act\":\"%s\"",
                 names[i].name);
        struct lmq_hparams h = llama(more);
        ck_assert_str_eq(h.unsupported, "");
        ck_assert_int_eq(h.activation, names[i].activation);
    }
}
END_TEST

START_TEST(what_changes_the_computation_is_never_ignored)
{
    static const char *const cases[][2] = {
        {"\"hidden_act\":\"quick_gelu\"", "the activation 'quick_gelu'"},
        {"\"hidden_act\":\"laplace\"", "the activation 'laplace'"},
        {"\"rope_scaling\":{\"type\":\"x\",\"factor\":2}",
         "rotary scaling 'x'"},
        {"\"rope_scaling\":{\"factor\":2}",
         "rotary scaling of a kind that is not said"},
        {"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"y\":1}",
         "'y' in rotary scaling"},
        {"\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[1]}",
         "'mrope_section' in rotary scaling"},
        {"\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,"
         "\"mscale\":0.5}",
         "'mscale' or 'mscale_all_dim' without the other"},
        {"\"partial_rotary_factor\":0.5",
         "'partial_rotary_factor' in a model of this kind"},
        {"\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5e5}}",
         "rotary positions by kind of layer"},
        {"\"is_causal\":false", "'is_causal' false"},
        {"\"use_bidirectional_attention\":\"all\"",
         "'use_bidirectional_attention' 'all'"},
        {"\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
         "'sliding_attention' in 'layer_types' of a model of this kind"},
        {"\"layer_types\":[\"full_attention\",\"linear_attention\"]",
         "'linear_attention' in 'layer_types'"},
        {"\"layer_types\":[3,4]", "'(none)' in 'layer_types'"},
    };
    char more[300];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(more, sizeof(more), ",%s", cases[i][0]);
        struct lmq_hparams h = llama(more);
        ck_assert_str_eq(h.unsupported, cases[i][1]);
    }
    struct lmq_hparams h =
        llama(",\"is_causal\":true,\"use_bidirectional_attention\":false,"
              "\"partial_rotary_factor\":1.0,\"attention_dropout\":0.1,"
              "\"layer_types\":[\"full_attention\",\"full_attention\"]");
    ck_assert_str_eq(h.unsupported, "");
}
END_TEST

START_TEST(keys_of_another_type_are_refused)
{
    assert_wrong_llama(SIZES ",\"rope_scaling\":\"yarn\"", "rope_scaling");
    assert_wrong_llama(SIZES ",\"rope_parameters\":7", "rope_parameters");
    assert_wrong_llama(SIZES ",\"tie_word_embeddings\":\"yes\"",
                       "tie_word_embeddings");
    assert_wrong_llama(SIZES ",\"hidden_act\":1", "hidden_act");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":3}", "'type'");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"yarn\","
                             "\"factor\":2,\"truncate\":1}",
                       "'truncate'");
    assert_wrong_llama(SIZES ",\"layer_types\":\"full_attention\"",
                       "'layer_types'");
    assert_wrong_llama(SIZES ",\"layer_types\":[\"full_attention\"]",
                       "1 of 2 layers");
}
END_TEST

START_TEST(mistral_has_a_window_and_llama_has_none)
{
    struct lmq_hparams h;
    struct lmq_error err;
    bool is_known;

    ck_assert_int_eq(parse("{\"architectures\":[\"MistralForCausalLM\"],"
                           "\"sliding_window\":32," SIZES "}",
                           &h, &is_known, &err),
                     LMQ_OK);
    ck_assert(is_known);
    ck_assert_str_eq(h.architecture, "mistral");
    ck_assert_uint_eq(h.sliding_window, 32);
    h = llama(",\"sliding_window\":32");
    ck_assert_uint_eq(h.sliding_window, 0);
}
END_TEST

START_TEST(a_description_of_ours_needs_no_family)
{
    struct lmq_hparams h = llama(",\"num_key_value_heads\":2"), back;
    struct lmq_error err = {0};
    bool is_known;

    h.norm = LMQ_NORM_LAYER;
    h.positions = LMQ_POSITIONS_ALIBI;
    h.residual_scale = 0.25;
    snprintf(h.architecture, sizeof(h.architecture), "of my own");
    json_t *outer = json_object();
    json_object_set_new(outer, "lmquant", lmq_hparams_to_json(&h));
    /* Nothing else counts. */
    json_object_set_new(outer, "hidden_size", json_string("x"));
    json_object_set_new(outer, "model_type", json_string("gpt2"));
    char *text = json_dumps(outer, 0);
    ck_assert_int_eq(parse(text, &back, &is_known, &err), LMQ_OK);
    ck_assert(is_known);
    ck_assert_str_eq(back.architecture, "of my own");
    ck_assert_str_eq(back.unsupported, "");
    ck_assert_int_eq(back.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(back.positions, LMQ_POSITIONS_ALIBI);
    ck_assert_double_eq(back.residual_scale, 0.25);
    ck_assert_uint_eq(back.n_kv_heads, 2);
    free(text);
    json_decref(outer);
    assert_wrong("{\"lmquant\":3}", "'lmquant'");
    assert_wrong("{\"lmquant\":{\"n_layers\":2}}", "has no dim");
}
END_TEST

START_TEST(an_unknown_architecture_is_named_and_not_refused)
{
    static const char *const texts[][2] = {
        {"{\"architectures\":[\"FooForBar\"]}",
         "the architecture 'FooForBar'"},
        {"{\"model_type\":\"foo\"}", "the architecture 'foo'"},
        {"{\"architectures\":[]}", "the architecture '(none)'"},
        {"{\"architectures\":[3],\"hidden_size\":\"x\"}",
         "the architecture '(none)'"},
        {"{\"architectures\":7}", "the architecture '(none)'"},
    };
    struct lmq_hparams h;
    struct lmq_error err;
    bool is_known;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_int_eq(parse(texts[i][0], &h, &is_known, &err), LMQ_OK);
        ck_assert(!is_known);
        ck_assert_str_eq(h.unsupported, texts[i][1]);
    }
}
END_TEST

START_TEST(numbers_of_the_wrong_type_or_size_are_refused)
{
    assert_wrong_llama("\"hidden_size\":\"64\"", "'hidden_size'");
    assert_wrong_llama("\"hidden_size\":64.5", "'hidden_size'");
    assert_wrong_llama("\"hidden_size\":-64", "'hidden_size'");
    assert_wrong_llama("\"hidden_size\":4294967296", "'hidden_size'");
    assert_wrong_llama("\"hidden_size\":[64]", "'hidden_size'");
    assert_wrong_llama(SIZES ",\"rope_theta\":\"10000\"", "'rope_theta'");
    assert_wrong_llama(SIZES ",\"rope_theta\":true", "'rope_theta'");
    assert_wrong_llama(SIZES ",\"rope_theta\":0", "rope_theta is 0");
    assert_wrong_llama(SIZES ",\"rope_theta\":-5", "rope_theta is -5");
    assert_wrong_llama(SIZES ",\"rms_norm_eps\":-1", "norm_eps");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"linear\","
                             "\"factor\":0}",
                       "rope_factor");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"llama3\","
                             "\"factor\":8}",
                       "'llama3'");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"dynamic\"}",
                       "lacks its 'factor'");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"yarn\","
                             "\"original_max_position_embeddings\":0}",
                       "'original_max_position_embeddings'");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"longrope\","
                             "\"short_factor\":[1],\"long_factor\":[1]}",
                       "1 rotary factors");
    assert_wrong_llama(SIZES ",\"rope_scaling\":{\"type\":\"yarn\","
                             "\"factor\":-3}",
                       "rope_factor");
    assert_wrong_llama(SIZES ",\"partial_rotary_factor\":0",
                       "nothing turns");
    assert_wrong_llama(SIZES ",\"partial_rotary_factor\":2",
                       "nothing turns");
}
END_TEST

START_TEST(sizes_that_would_divide_by_zero_are_refused)
{
    assert_wrong_llama("\"hidden_size\":64,\"num_attention_heads\":0",
                       "num_attention_heads");
    assert_wrong_llama("\"hidden_size\":65,\"num_attention_heads\":4",
                       "no multiple");
    assert_wrong_llama("\"hidden_size\":64,\"intermediate_size\":96,"
                       "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                       "\"vocab_size\":0",
                       "'vocab_size' in the configuration is 0");
    assert_wrong_llama(SIZES ",\"num_key_value_heads\":3", "cannot share");
    assert_wrong_llama(SIZES ",\"head_dim\":15", "even");
    assert_wrong_llama(SIZES ",\"head_dim\":16777216", "too wide");
    assert_wrong_llama("\"hidden_size\":64,\"intermediate_size\":96,"
                       "\"num_hidden_layers\":1000000,"
                       "\"num_attention_heads\":4,\"vocab_size\":9",
                       "n_layers is 1000000");
}
END_TEST

START_TEST(json_that_is_none_is_refused_with_its_line)
{
    assert_wrong("", "is empty");
    assert_wrong("{", "line 1");
    assert_wrong("{}\n{}", "line 2");
    assert_wrong("{\"a\":1,\"a\":2}", "duplicate");
    assert_wrong("{\"a\":1e999}", "no valid JSON");
    assert_wrong("{\"a\":\"\\ud800\"}", "no valid JSON");
    assert_wrong("{\"a\":\"\xff\"}", "no valid JSON");
    assert_wrong("{\"a\":nan}", "no valid JSON");
    assert_wrong("{\"a\":NaN,}", "no valid JSON");
    assert_wrong("{\"a\":\"NaN}", "no valid JSON");
    assert_wrong("[1,2]", "object");
    assert_wrong("7", "");
}
END_TEST

/* Python writes it of models with state spaces. */
START_TEST(infinity_is_no_number_and_no_damage)
{
    struct lmq_hparams h;
    struct lmq_error err;
    bool is_known;

    ck_assert_int_eq(
        parse("{\"architectures\":[\"RwkvForCausalLM\"],\"a\":\"\\\"NaN\","
              "\"time_step_limit\":[0.0, Infinity],\"b\":[-Infinity,NaN]}",
              &h, &is_known, &err),
        LMQ_OK);
    ck_assert(!is_known);
    ck_assert_str_eq(h.unsupported, "the architecture 'RwkvForCausalLM'");
    assert_wrong("{" LLAMA "," SIZES ",\"rope_theta\":Infinity}",
                 "'rope_theta' in the configuration is no number");
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    enum { DEPTH = 10000 }; /* deeper ones cost too much before */
    static char text[2 * DEPTH + 1];
    struct lmq_hparams h;
    struct lmq_error err;
    bool is_known;

    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    ck_assert_int_eq(parse(text, &h, &is_known, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "depth"));
}
END_TEST

START_TEST(hyper_parameters_come_back_from_a_container)
{
    struct lmq_hparams h = llama(
        ",\"num_key_value_heads\":2,\"rope_theta\":1234.5678901234567,"
        "\"rms_norm_eps\":1e-5,\"bos_token_id\":0,\"eos_token_id\":[2,7],"
        "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":32,"
        "\"low_freq_factor\":1,\"high_freq_factor\":4,"
        "\"original_max_position_embeddings\":8192}");
    struct lmq_hparams back;
    struct lmq_error err;
    json_t *json = lmq_hparams_to_json(&h);

    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err), LMQ_OK);
    ck_assert_uint_eq(back.n_kv_heads, 2);
    ck_assert(back.rope_theta == h.rope_theta);
    ck_assert(back.norm_eps == h.norm_eps);
    ck_assert_int_eq(back.rope_scaling, LMQ_ROPE_LLAMA3);
    ck_assert_uint_eq(back.rope_context, 8192);
    ck_assert_int_eq(back.bos, 0);
    ck_assert_uint_eq(back.n_eos, 2);
    ck_assert_int_eq(back.eos[1], 7);
    ck_assert_str_eq(back.architecture, "llama");

    json_object_set_new(json, "rope_scaling", json_string("future"));
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err), LMQ_OK);
    ck_assert_str_eq(back.unsupported, "rotary scaling 'future'");
    json_object_set_new(json, "n_layers", json_integer(-1));
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err),
                     LMQ_ERR_FORMAT);
    json_object_set_new(json, "n_layers", json_integer(1LL << 32));
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err),
                     LMQ_ERR_FORMAT);
    json_object_del(json, "n_layers");
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err),
                     LMQ_ERR_FORMAT);
    json_decref(json);
}
END_TEST

/* `change` is laid over a description that is right. */
static enum lmq_status
read_changed(const char *change, struct lmq_hparams *back,
             struct lmq_error *err)
{
    struct lmq_hparams h = llama(",\"eos_token_id\":[2,7]");
    json_t *json = lmq_hparams_to_json(&h);
    json_t *other = json_loads(change, 0, NULL);

    ck_assert_ptr_nonnull(other);
    json_object_update(json, other);
    enum lmq_status status = lmq_hparams_from_json(json, back, err);
    json_decref(other);
    json_decref(json);
    return status;
}

START_TEST(types_of_a_description_are_no_advice)
{
    static const char *const wrong[] = {
        "{\"bos\":-1}",
        "{\"bos\":\"1\"}",
        "{\"bos\":null}",
        "{\"bos\":2147483648}",
        "{\"bos\":1.0}",
        "{\"eos\":2}",
        "{\"eos\":[2,-1]}",
        "{\"eos\":[2,\"7\"]}",
        "{\"eos\":[1,2,3,4,5,6,7,8,9]}",
        "{\"architecture\":7}",
        "{\"unsupported\":true}",
        "{\"rope_scaling\":3}",
        "{\"activation\":[]}",
        "{\"rope_short\":[1,\"2\"]}",
        "{\"gated\":1}",
        "{\"still_layers\":0}",
        "{\"requires\":\"gated\"}",
        "{\"requires\":[1]}",
        "{\"requires\":[\"hyper_drive\"]}", /* which it does not have */
        "{\"hidden_dim\":0}", /* be there something that has it or not */
        "{\"router_scale\":1e31}",
        "{\"rope_high_factor\":-7}",
        "{\"rope_long\":[1]}",
    };
    struct lmq_hparams back;
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(read_changed(wrong[i], &back, &err) == LMQ_ERR_FORMAT,
                      "%s", wrong[i]);
    ck_assert_int_eq(read_changed("{\"eos\":[1,2,3,4,5,6,7,8]}", &back, &err),
                     LMQ_OK);
    ck_assert_uint_eq(back.n_eos, 8);
    ck_assert_int_eq(read_changed("{\"bos\":2147483647}", &back, &err), LMQ_OK);
    ck_assert_int_eq(back.bos, INT32_MAX);
}
END_TEST

/* The formulas of lmq(5) have a blend between the two, and logarithms. */
START_TEST(rotary_scalings_have_an_order)
{
    static const struct {
        const char *change;
        enum lmq_status status;
    } cases[] = {
        {"{\"rope_scaling\":\"llama3\",\"rope_low_factor\":1,"
         "\"rope_high_factor\":4}",
         LMQ_OK},
        {"{\"rope_scaling\":\"llama3\",\"rope_low_factor\":4,"
         "\"rope_high_factor\":1}",
         LMQ_ERR_FORMAT},
        {"{\"rope_scaling\":\"llama3\",\"rope_low_factor\":2,"
         "\"rope_high_factor\":2}",
         LMQ_OK},
        {"{\"rope_scaling\":\"yarn\"}", LMQ_OK},
        {"{\"rope_scaling\":\"yarn\",\"rope_beta_fast\":1}", LMQ_OK},
        {"{\"rope_scaling\":\"yarn\",\"rope_beta_fast\":0.5}",
         LMQ_ERR_FORMAT},
        {"{\"rope_scaling\":\"yarn\",\"rope_beta_slow\":0}",
         LMQ_ERR_FORMAT},
    };
    struct lmq_hparams back;
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(read_changed(cases[i].change, &back, &err), LMQ_OK);
        ck_assert_msg(lmq_hparams_check(&back, &err) == cases[i].status,
                      "%s", cases[i].change);
    }
}
END_TEST

START_TEST(a_key_that_is_required_must_be_known)
{
    struct lmq_hparams h = llama(""), back;
    struct lmq_error err;
    json_t *json = lmq_hparams_to_json(&h), *needed;

    ck_assert_ptr_null(json_object_get(json, "requires"));
    json_decref(json);
    h.is_gated = false;
    h.logit_scale = 0.5;
    json = lmq_hparams_to_json(&h);
    needed = json_object_get(json, "requires");
    ck_assert_uint_eq(json_array_size(needed), 2);
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err), LMQ_OK);
    ck_assert_str_eq(back.unsupported, "");
    ck_assert(!back.is_gated && back.logit_scale == 0.5);
    json_object_set_new(json, "hyper_drive", json_integer(3));
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err), LMQ_OK);
    ck_assert_str_eq(back.unsupported, "");
    json_array_append_new(needed, json_string("hyper_drive"));
    ck_assert_int_eq(lmq_hparams_from_json(json, &back, &err), LMQ_OK);
    ck_assert_ptr_nonnull(strstr(back.unsupported, "'hyper_drive'"));
    json_decref(json);
    ck_assert_int_eq(read_changed("{\"requires\":[\"eos\",\"architecture\"],"
                                  "\"rope_long\":[]}",
                                  &back, &err),
                     LMQ_OK);
    ck_assert_str_eq(back.unsupported, "");
}
END_TEST

START_TEST(what_a_container_keeps_is_of_no_locale)
{
    struct lmq_error err;
    struct lmq_hparams h = {0};
    struct lmq_packer packer = {0};
    struct lmq_hf_config config = {.err = &err};

    if (!choose_decimal_comma())
        return;
    lmq_hparams_refuse(&h, "a 'rope_theta' of %g", 0.5);
    lmq_packer_refuse(&packer, "nbits %g", 2.5);
    lmq_packer_found(&packer, "matrices of %g bits", 1.5);
    lmq_hf_fail(&config, "'x' is %g", 0.25);
    setlocale(LC_ALL, "C");
    ck_assert_str_eq(h.unsupported, "a 'rope_theta' of 0.5");
    ck_assert_str_eq(packer.refused, "nbits 2.5");
    ck_assert_str_eq(packer.findings[0].text, "matrices of 1.5 bits");
    ck_assert_str_eq(err.message, "'x' is 0.25");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        absent_keys_have_the_defaults_of_the_model_class,
        keys_that_are_there_count,
        null_is_as_good_as_absent,
        rope_scaling_is_read_in_its_variants,
        yarn_has_its_defaults,
        activations_go_by_their_many_names,
        what_changes_the_computation_is_never_ignored,
        keys_of_another_type_are_refused,
        mistral_has_a_window_and_llama_has_none,
        a_description_of_ours_needs_no_family,
        an_unknown_architecture_is_named_and_not_refused,
        numbers_of_the_wrong_type_or_size_are_refused,
        sizes_that_would_divide_by_zero_are_refused,
        json_that_is_none_is_refused_with_its_line,
        infinity_is_no_number_and_no_damage,
        deep_nesting_is_refused,
        hyper_parameters_come_back_from_a_container,
        types_of_a_description_are_no_advice,
        rotary_scalings_have_an_order,
        a_key_that_is_required_must_be_known,
        what_a_container_keeps_is_of_no_locale,
    };

    return RUN_SUITE("config", tests);
}
