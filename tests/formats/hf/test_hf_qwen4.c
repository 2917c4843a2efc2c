/*
 * test_hf_qwen4.c - config.json of Qwen 4, and what its files hold of sequences
 * of tokens.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/model/hparams_check.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

static struct model small;

/* A small one with these further keys. */
static enum lmq_status
parse_small(const char *more, struct lmq_error *err)
{
    char text[2048];
    bool is_known = false;

    snprintf(text, sizeof(text),
             "{'architectures':['Qwen4ExpForCausalLM'],'hidden_size':64,"
             "'num_hidden_layers':4,'num_attention_heads':8,"
             "'model_type':'qwen4_exp_text','vocab_size':1000%s}",
             more);
    enum lmq_status status = parse_config(text, &small, &is_known, err);
    ck_assert(status != LMQ_OK || is_known);
    return status == LMQ_OK ? lmq_hparams_check(&small.h, err) : status;
}

static void
assert_small(const char *more, const char *unsupported)
{
    struct lmq_error err = {0};

    ck_assert_msg(parse_small(more, &err) == LMQ_OK, "%s", err.message);
    ck_assert_str_eq(small.h.unsupported, unsupported);
}

static void
assert_no_small(const char *more, const char *what)
{
    struct lmq_error err = {0};

    ck_assert_int_eq(parse_small(more, &err), LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, what) != NULL, "'%s' says nothing of %s",
                  err.message, what);
}

/* The numbers are those that the library makes. */
START_TEST(numbers_of_sequences_follow_from_a_few)
{
    struct model *m = read_model(
        "{'architectures':['Qwen4ExpForConditionalGeneration'],"
        "'model_type':'qwen4_exp','text_config':{'eos_token_id':248044,"
        "'full_attention_interval':4,'hc_count':4,'hc_lowrank':320,"
        "'head_dim':256,'hidden_act':'silu','hidden_size':2048,"
        "'indexer_budget':2048,'indexer_compress_ratio':16,"
        "'indexer_head_dim':128,'indexer_kv_heads':1,'indexer_n_heads':16,"
        "'max_position_embeddings':262144,'model_type':'qwen4_exp_text',"
        "'num_attention_heads':16,'num_hidden_layers':8,"
        "'num_key_value_heads':2,'ple_layer_ids':[6,2],"
        "'rms_norm_eps':1e-06,'rope_parameters':{'mrope_section':"
        "[11,11,10],'partial_rotary_factor':0.25,'rope_theta':10000000,"
        "'rope_type':'default'},'vocab_size':248320}}");

    ck_assert_str_eq(m->h.architecture, "qwen4exp");
    ck_assert_str_eq(m->h.unsupported, "");
    assert_sizes(&m->h, 8, 2048, 512, 16, 2, 256);
    ck_assert_int_eq(m->h.stream_kind, LMQ_STREAMS_GATED);
    ck_assert_uint_eq(m->h.n_streams, 4);
    ck_assert_uint_eq(m->h.stream_rank, 320);
    assert_near(m->h.stream_gain, 2);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert(m->h.has_attn_gate && m->h.router_renormalises &&
              !m->h.has_sigmoid_gates);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxx.xxx.");
    assert_layers(&m->h, LMQ_LAYER_GRAMS, ".x...x..");
    ck_assert_uint_eq(m->source.n_chosen, 2048 + 15);
    ck_assert_uint_eq(m->h.gram_size, 3);
    ck_assert_uint_eq(m->h.gram_heads, 8);
    ck_assert_uint_eq(m->h.gram_dim, 128);
    ck_assert_uint_eq(m->h.gram_conv_width, 4);
    ck_assert_uint_eq(m->h.gram_stop, 248044);
    ck_assert_uint_eq(m->h.n_gram_factors, 6);
    ck_assert_uint_eq(m->h.n_gram_rows, 32);
    ck_assert_uint_eq(m->h.gram_factors[0], 23703573157769);
    ck_assert_uint_eq(m->h.gram_factors[5], 10742103100073);
    ck_assert_uint_eq(m->h.gram_rows[0], 20000003);
    ck_assert_uint_eq(m->h.gram_rows[31], 20000429);
}
END_TEST

START_TEST(in_other_ways_it_is_refused)
{
    static const char grams[] =
        ",'eos_token_id':[7,2],'ple_layer_ids':[1],'ngram_vocab_size_base':9";
    char text[512];

    assert_small(grams, "");
    ck_assert_uint_eq(small.h.gram_stop, 7);
    assert_small(",'output_gate_type':'sigmoid'", "");
    ck_assert(small.h.has_sigmoid_gates);
    assert_small(",'output_gate_type':'relu'", "'output_gate_type' 'relu'");
    assert_no_small(",'ple_layer_ids':[1]", "'eos_token_id'");
    assert_no_small(",'eos_token_id':1000,'ple_layer_ids':[1]",
                    "'eos_token_id'");
    assert_no_small(",'eos_token_id':2,'ple_layer_ids':[5]", "1 to 4");
    assert_no_small(",'eos_token_id':2,'ple_layer_ids':[0]", "1 to 4");
    assert_no_small(",'hc_lowrank':0", "stream_rank");
    assert_no_small(",'hc_count':1", "n_streams");
    assert_no_small(",'indexer_budget':100,'indexer_compress_ratio':16",
                    "'indexer_budget'");
    snprintf(text, sizeof(text), "%s,'ngram_size':1", grams);
    assert_no_small(text, "'ple_embed_dim'");
    snprintf(text, sizeof(text), "%s,'ngram_size':9", grams);
    assert_no_small(text, "'ple_embed_dim'");
    snprintf(text, sizeof(text), "%s,'ple_embed_dim':60", grams);
    assert_no_small(text, "'ple_embed_dim'");
    snprintf(text, sizeof(text), "%s,'heads_per_ngram':600", grams);
    assert_no_small(text, "'ple_embed_dim'");
}
END_TEST

/* ---- Tensors ---- */

static const char ple[] = "model.layers.0.ple.ple_embedding.";

/* A configuration, some numbers of these sequences, and parts of a table. */
static void
assert_file(const char *name, const uint64_t *dims, uint32_t n_dims,
            float first, const char *what)
{
    const char *folder = in_folder("qwen4");
    struct build_model *model = calloc(1, sizeof(*model));
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err = {0};
    static const char config[] =
        "{\"architectures\":[\"Qwen4ExpForCausalLM\"],\"hidden_size\":64,"
        "\"num_hidden_layers\":2,\"num_attention_heads\":8,"
        "\"eos_token_id\":7,\"ple_layer_ids\":[1],"
        "\"ngram_vocab_size_base\":9,\"model_type\":\"qwen4_exp_text\","
        "\"vocab_size\":1000}";
    char text[512];

    ck_assert_ptr_nonnull(model);
    snprintf(text, sizeof(text), "%s%s", ple, name);
    build_add(model, text, dims, n_dims)->x[0] = first;
    save_folder(model, folder, BUILD_F32);
    build_free(model);
    snprintf(text, sizeof(text), "%s/config.json", folder);
    write_file(text, config, strlen(config));
    ck_assert_int_ne(lmq_checkpoint_open(folder, NULL, &checkpoint, &err),
                     LMQ_OK);
    ck_assert_msg(strstr(err.message, what) != NULL, "'%s' says nothing of %s",
                  err.message, what);
}

START_TEST(files_say_what_the_configuration_does)
{
    const uint64_t three[] = {3}, two[] = {2}, part[] = {40, 4};

    assert_file("layer_multipliers", three, 1, 5,
                "by the configuration it is");
    assert_file("layer_multipliers", three, 1, NAN, "number 0 of");
    assert_file("layer_multipliers", two, 1, 5, "has 2 numbers");
    assert_file("ngram_embedding.shard_1.weight", part, 2, 1,
                "no part number 0 of 1");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        numbers_of_sequences_follow_from_a_few,
        in_other_ways_it_is_refused,
        files_say_what_the_configuration_does,
    };

    return RUN_SUITE("hf_qwen4", tests);
}
