/*
 * test_config.c - config.json, and hyper-parameters as a container keeps them.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "formats/hf_config.h"
#include "tests/suite.h"

#define LLAMA "\"architectures\":[\"LlamaForCausalLM\"]"
#define SIZES                                                                 \
    "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":2,"    \
    "\"num_attention_heads\":4,\"vocab_size\":100"

static enum lmq_status
parse(const char *text, struct lmq_hparams *h, bool *is_known,
      struct lmq_error *err)
{
    lmq_hparams_init(h);
    return lmq_config_parse((const unsigned char *)text, strlen(text), h,
                            is_known, err);
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
    ck_assert_int_eq(h.tie, LMQ_TIE_UNSAID);
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
              "\"tie_word_embeddings\":null,\"hidden_act\":null");

    ck_assert_uint_eq(h.n_kv_heads, 4);
    ck_assert_uint_eq(h.head_dim, 16);
    ck_assert_double_eq(h.rope_theta, 10000);
    ck_assert_int_eq(h.tie, LMQ_TIE_UNSAID);
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
    /* Newer files: base and scaling in one place. */
    h = llama(",\"rope_parameters\":{\"rope_theta\":1e6,\"rope_type\":"
              "\"linear\",\"factor\":2}");
    ck_assert_double_eq(h.rope_theta, 1e6);
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_LINEAR);
    h = llama(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}");
    ck_assert_str_eq(h.unsupported, "rotary scaling 'yarn'");
}
END_TEST

START_TEST(what_changes_the_computation_is_never_ignored)
{
    struct lmq_hparams h = llama(",\"hidden_act\":\"gelu\"");

    ck_assert_str_eq(h.unsupported, "the activation 'gelu'");
    h = llama(",\"quantization_config\":{\"quant_method\":\"gptq\"}");
    ck_assert_str_eq(h.unsupported, "weights packed by 'gptq'");
    assert_wrong_llama(SIZES ",\"rope_scaling\":\"yarn\"", "rope_scaling");
    assert_wrong_llama(SIZES ",\"rope_parameters\":7", "rope_parameters");
    assert_wrong_llama(SIZES ",\"tie_word_embeddings\":\"yes\"",
                       "tie_word_embeddings");
    assert_wrong_llama(SIZES ",\"hidden_act\":1", "hidden_act");
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
}
END_TEST

START_TEST(sizes_that_would_divide_by_zero_are_refused)
{
    assert_wrong_llama("\"x\":1", "num_attention_heads");
    assert_wrong_llama("\"hidden_size\":64,\"num_attention_heads\":0",
                       "num_attention_heads");
    assert_wrong_llama("\"hidden_size\":65,\"num_attention_heads\":4",
                       "no multiple");
    assert_wrong_llama("\"hidden_size\":64,\"intermediate_size\":96,"
                       "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                       "\"vocab_size\":0",
                       "vocab_size is 0");
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
    assert_wrong("", "no valid JSON");
    assert_wrong("{", "line 1");
    assert_wrong("{}\n{}", "line 2");
    assert_wrong("{\"a\":1,\"a\":2}", "duplicate");
    assert_wrong("{\"a\":1e999}", "no valid JSON");
    assert_wrong("{\"a\":99999999999999999999}", "no valid JSON");
    assert_wrong("{\"a\":\"\\ud800\"}", "no valid JSON");
    assert_wrong("{\"a\":\"\xff\"}", "no valid JSON");
    assert_wrong("{\"a\":NaN}", "no valid JSON");
    assert_wrong("[1,2]", "object");
    assert_wrong("7", "");
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    enum { DEPTH = 100000 };
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

int
main(void)
{
    const TTest *const tests[] = {
        absent_keys_have_the_defaults_of_the_model_class,
        keys_that_are_there_count,
        null_is_as_good_as_absent,
        rope_scaling_is_read_in_its_variants,
        what_changes_the_computation_is_never_ignored,
        mistral_has_a_window_and_llama_has_none,
        an_unknown_architecture_is_named_and_not_refused,
        numbers_of_the_wrong_type_or_size_are_refused,
        sizes_that_would_divide_by_zero_are_refused,
        json_that_is_none_is_refused_with_its_line,
        deep_nesting_is_refused,
        hyper_parameters_come_back_from_a_container,
    };

    return RUN_SUITE("config", tests);
}
