/*
 * test_hf_linear.c - lightning attention by config.json and by the keys of a
 * GGUF, recurrences without keys by config.json, and what a description may say
 * of them and of what blocks add to.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "formats/model/hparams_check.h"
#include "formats/model/model_tensors.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Descriptions ---- */

static struct lmq_hparams *
describe(void)
{
    struct lmq_hparams *h = malloc(sizeof(*h));

    ck_assert_ptr_nonnull(h);
    lmq_hparams_init(h);
    h->n_layers = 4;
    h->dim = h->hidden_dim = h->context = h->vocab_size = 64;
    h->n_heads = h->n_kv_heads = 4;
    h->head_dim = 16;
    h->layers[0] = h->layers[2] = LMQ_LAYER_DELTA;
    h->recurrence = LMQ_RECURRENCE_LIGHTNING;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = h->delta_value_dim = 8;
    return h;
}

static void
assert_possible(const struct lmq_hparams *h)
{
    struct lmq_error err = {0};

    ck_assert_msg(lmq_hparams_check(h, &err) == LMQ_OK, "%s", err.message);
}

static void
assert_impossible(const struct lmq_hparams *h, const char *what)
{
    struct lmq_error err = {0};

    ck_assert_int_eq(lmq_hparams_check(h, &err), LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, what) != NULL, "%s", err.message);
}

START_TEST(states_that_decay_by_layer_never_grow)
{
    struct lmq_hparams *h = describe();

    assert_possible(h);
    h->decay_first = 1.5;
    h->decay_step = 0.5;
    assert_possible(h);
    /* 2^(-8 / 4), then half of the way: the last of 4 heads is 2^-8. */
    assert_near(lmq_decay_rate(h, 0, 0), 1.5 * 0.25);
    assert_near(lmq_decay_rate(h, 1, 3), 1.0 / 256);
    ck_assert(!(lmq_decay_rate(h, 3, 0) > 0));
    h->decay_step = 0.51;
    assert_impossible(h, "grow in the last of 4");
    h->recurrence = LMQ_RECURRENCE_DELTA;
    h->conv_width = 3;
    lmq_hparams_settle(h);
    ck_assert(!(h->decay_step > 0) && !(h->decay_first > 1));
    free(h);
}
END_TEST

START_TEST(lightning_has_no_convolution)
{
    struct lmq_hparams *h = describe();
    struct lmq_hparams *other = describe();

    h->conv_width = 3;
    h->has_sigmoid_gates = true;
    lmq_hparams_settle(h);
    ck_assert_uint_eq(h->conv_width, 0);
    ck_assert(h->has_sigmoid_gates);
    other->recurrence = LMQ_RECURRENCE_STATE_SPACE;
    assert_impossible(other, "see 0 tokens");
    other->has_sigmoid_gates = true;
    lmq_hparams_settle(other);
    ck_assert(!other->has_sigmoid_gates);
    free(h);
    free(other);
}
END_TEST

START_TEST(what_blocks_add_to_goes_with_one_plain_stream)
{
    static const char why[] = "has something else beside the stream";
    struct lmq_hparams *h = describe();

    h->has_normed_residual = true;
    assert_possible(h);
    h->norm_place = LMQ_NORMS_AFTER;
    assert_impossible(h, why);
    h->has_normed_residual = false;
    assert_possible(h);
    h->feed_add = 0.5;
    assert_possible(h);
    h->residual = LMQ_RESIDUAL_PARALLEL;
    assert_impossible(h, why);
    h->residual = LMQ_RESIDUAL_SEQUENTIAL;
    h->n_streams = 2;
    assert_impossible(h, why);
    h->n_streams = 0;
    h->norm_place = LMQ_NORMS_BEFORE;
    h->layers[0] |= LMQ_LAYER_BESIDE;
    assert_impossible(h, why);
    free(h);
    /* Of blocks that no layer has nothing is said. */
    h = describe();
    for (size_t i = 0; i < 4; i++)
        h->layers[i] = LMQ_LAYER_BARE;
    h->delta_keep = h->delta_add = h->feed_keep = h->feed_add = 2;
    h->attn_keep = h->attn_add = 3;
    lmq_hparams_settle(h);
    ck_assert(!(h->delta_keep > 1) && !(h->delta_add > 1));
    ck_assert(!(h->feed_keep > 1) && !(h->feed_add > 1));
    ck_assert(h->attn_keep > 2 && h->attn_add > 2);
    free(h);
}
END_TEST

START_TEST(a_recurrence_without_keys_has_no_sizes_of_keys)
{
    struct lmq_hparams *h = describe();
    struct lmq_place place = {LMQ_ROLE_ATTN_Q, LMQ_PART_WEIGHT, 0, -1};
    uint64_t dims[2];
    uint32_t n;

    h->recurrence = LMQ_RECURRENCE_LRU;
    h->conv_width = 3;
    h->activation = LMQ_ACTIVATION_GELU;
    h->has_bare_states = h->has_sigmoid_gates = true;
    for (size_t i = 0; i < 4; i++)
        h->layers[i] |= LMQ_LAYER_BARE;
    lmq_hparams_settle(h);
    assert_possible(h);
    ck_assert_uint_eq(h->n_delta_key_heads + h->delta_key_dim, 0);
    ck_assert(!h->has_bare_states && !h->has_sigmoid_gates);
    ck_assert_int_eq(h->activation, LMQ_ACTIVATION_GELU); /* of gates */
    ck_assert_uint_eq(lmq_delta_channels(h), 32);
    ck_assert(!lmq_model_has(h, &place, &n));
    place.role = LMQ_ROLE_DELTA_NORM;
    ck_assert(!lmq_model_has(h, &place, &n));
    place.role = LMQ_ROLE_DELTA_BETA;
    ck_assert(lmq_model_has(h, &place, &n));
    lmq_model_shape(h, &place, dims, &n);
    ck_assert_uint_eq(dims[0], 32);
    ck_assert_uint_eq(dims[1], 8);
    place.part = LMQ_PART_BIAS;
    ck_assert(lmq_model_has(h, &place, &n));
    place.role = LMQ_ROLE_ATTN_V; /* of recurrent layers alone */
    ck_assert(lmq_model_has(h, &place, &n));
    place.layer = 1;
    ck_assert(!lmq_model_has(h, &place, &n));
    h->conv_width = 0;
    assert_impossible(h, "see 0 tokens");
    h->conv_width = 3;
    h->layers[0] = LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE;
    assert_impossible(h, "attention beside a recurrence");
    free(h);
}
END_TEST

/* ---- RecurrentGemma ---- */

/* With 6 layers in place of 26. */
START_TEST(recurrent_gemma_2b)
{
    static const char class[] = "RecurrentGemmaForCausalLM";
    struct model *m = read_model(
        "{'architectures':['RecurrentGemmaForCausalLM'],"
        "'attention_bias':false,'attention_window_size':2048,'block_types':"
        "['recurrent','recurrent','attention'],'bos_token_id':2,"
        "'conv1d_width':4,'eos_token_id':1,'head_dim':256,"
        "'hidden_activation':'gelu_pytorch_tanh','hidden_size':2560,"
        "'intermediate_size':15360,'logits_soft_cap':30.0,'lru_width':2560,"
        "'model_type':'recurrent_gemma','num_attention_heads':10,"
        "'num_hidden_layers':6,'num_key_value_heads':1,"
        "'partial_rotary_factor':0.5,'rms_norm_eps':1e-06,"
        "'rope_theta':10000.0,'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "recurrent_gemma");
    assert_sizes(&m->h, 6, 2560, 7680, 10, 1, 256);
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xx.");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_LRU);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 10);
    ck_assert_uint_eq(m->h.delta_value_dim, 256);
    ck_assert_uint_eq(m->h.conv_width, 4);
    ck_assert_uint_eq(m->h.rotary_dim, 128);
    ck_assert_uint_eq(m->h.sliding_window, 2048);
    assert_near(m->h.embedding_scale, 50.5); /* 50.596 in bfloat16 */
    assert_near(m->h.logit_softcap, 30);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(m->source.norms_less_one);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small(class, "'block_types':['attention','recurrent'],"
                          "'lru_width':80,'hidden_activation':'gelu'");
    assert_layers(&m->h, LMQ_LAYER_DELTA, ".x");
    ck_assert_uint_eq(m->h.delta_value_dim, 20);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
    assert_wrong(class, "'lru_width':81",
                 "'lru_width' in the configuration is 81, which 4 heads "
                 "cannot share");
    assert_wrong(class, "'block_types':[]",
                 "'block_types' in the configuration is empty");
    assert_wrong(class, "'block_types':['recurrent','mlp']", "something else");
    assert_wrong(class, "'block_types':['recurrent',1]", "something else");
    m = read_small(class, "'lru_width':80");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xx.xx.xx");
    assert_unsupported(class, "'attention_bias':true", "'attention_bias' true");
}
END_TEST

/* ---- MiniMax 01 ---- */

/* With 8 layers in place of 80. */
START_TEST(minimax_text_01)
{
    struct model *m = read_model(
        "{'architectures':['MiniMaxText01ForCausalLM'],'attn_type_list':[0,0,"
        "0,0,0,0,0,1],'bos_token_id':null,'eos_token_id':null,'head_dim':128,"
        "'hidden_act':'silu','hidden_size':6144,'intermediate_size':9216,"
        "'layernorm_full_attention_alpha':3.5565588200778455,"
        "'layernorm_full_attention_beta':1.0,"
        "'layernorm_linear_attention_alpha':3.5565588200778455,"
        "'layernorm_linear_attention_beta':1.0,"
        "'layernorm_mlp_alpha':3.5565588200778455,'layernorm_mlp_beta':1.0,"
        "'max_position_embeddings':10240000,'model_type':'minimax_text_01',"
        "'num_attention_heads':64,'num_experts_per_tok':2,"
        "'num_hidden_layers':8,'num_key_value_heads':8,"
        "'num_local_experts':32,'postnorm':true,'rms_norm_eps':1e-05,"
        "'rope_theta':10000000,'rotary_dim':64,'shared_intermediate_size':0,"
        "'shared_moe_mode':'sigmoid','sliding_window':null,"
        "'tie_word_embeddings':false,'vocab_size':200064}");

    ck_assert_str_eq(m->h.architecture, "minimax-01");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "xxxxxxx.");
    ck_assert_int_eq(m->h.recurrence, LMQ_RECURRENCE_LIGHTNING);
    ck_assert_uint_eq(m->h.n_delta_key_heads, 64);
    ck_assert_uint_eq(m->h.n_delta_value_heads, 64);
    ck_assert_uint_eq(m->h.delta_key_dim, 128);
    ck_assert_uint_eq(m->h.delta_value_dim, 128);
    ck_assert_uint_eq(m->h.n_kv_heads, 8);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert(m->h.has_normed_residual && m->h.has_sigmoid_gates);
    assert_near(m->h.attn_keep, 3.5565588200778455);
    assert_near(m->h.delta_keep, 3.5565588200778455);
    assert_near(m->h.feed_keep, 3.5565588200778455);
    ck_assert(!(m->h.feed_add > 1));
    assert_near(m->h.state_eps, 1e-6);
    ck_assert_uint_eq(m->h.n_experts, 32);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    ck_assert_uint_eq(m->h.expert_dim, 9216);
    ck_assert(m->h.router_renormalises);
    /* 0.917 in the first layer, 1e-5 times that in the last. */
    ck_assert_double_eq_tol(lmq_decay_rate(&m->h, 0, 0), 0.9170132, 1e-6);
    ck_assert_double_eq_tol(lmq_decay_rate(&m->h, 7, 0), 9.17e-6, 1e-8);
}
END_TEST

START_TEST(the_library_has_other_words_for_a_minimax)
{
    static const char class[] = "MiniMaxForCausalLM";
    struct lmq_error err = {0};
    bool is_known;
    struct model *m = read_small(
        class, "'model_type':'minimax','full_attn_alpha_factor':1.5,"
               "'full_attn_beta_factor':0.5,'linear_attn_alpha_factor':2,"
               "'linear_attn_beta_factor':3,'mlp_alpha_factor':4,"
               "'mlp_beta_factor':5");

    assert_layers(&m->h, LMQ_LAYER_DELTA, ".x.x.x.x");
    assert_near(m->h.attn_keep, 1.5);
    assert_near(m->h.attn_add, 0.5);
    assert_near(m->h.delta_keep, 2);
    assert_near(m->h.delta_add, 3);
    assert_near(m->h.feed_keep, 4);
    assert_near(m->h.feed_add, 5);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    m = read_small(class, "'layer_types':['linear_attention','full_attention',"
                          "'full_attention','full_attention',"
                          "'full_attention','full_attention',"
                          "'full_attention','linear_attention']");
    assert_layers(&m->h, LMQ_LAYER_DELTA, "x......x");
    assert_unsupported(class, "'model_type':'minimax','rotary_dim':8",
                       "a 'rotary_dim' of 8 of heads of 16: the library's "
                       "class turns all of a head");
    assert_unsupported(class, "'sliding_window':7", "'sliding_window' 7");
    assert_unsupported("MiniMaxM1ForCausalLM",
                       "'model_type':'minimax_m1',"
                       "'shared_intermediate_size':32",
                       "'shared_intermediate_size' 32");
    assert_wrong("MiniMaxM1ForCausalLM",
                 "'model_type':'minimax_m1','attn_type_list':[0,1]",
                 "attn_type_list");
    ck_assert_int_eq(
        parse_config("{'architectures':['MiniMaxM1ForCausalLM'],"
                     "'model_type':'minimax_m1','hidden_size':64,"
                     "'intermediate_size':96,'num_hidden_layers':8,"
                     "'num_attention_heads':6,'head_dim':8,"
                     "'num_key_value_heads':2,'vocab_size':100}",
                     m, &is_known, &err),
        LMQ_OK);
    ck_assert_str_eq(m->h.unsupported, "6 heads of lightning attention, which "
                                       "is no power of two");
}
END_TEST

static struct lmq_hparams *
read_keys(uint32_t n_layers, uint32_t interval)
{
    struct lmq_gguf_builder builder = {0};
    struct lmq_gguf_evidence evidence = {.vocab_size = 61};
    struct lmq_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    struct lmq_hparams *h = malloc(sizeof(*h));
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta;
    struct lmq_error err;

    ck_assert(checkpoint != NULL && h != NULL);
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_begin(&builder);
    lmq_gguf_put_text(&builder, "general.architecture", "minimax-01", 10);
    builder.prefix = "minimax-01";
    lmq_gguf_put_u32(&builder, ".block_count", n_layers);
    lmq_gguf_put_u32(&builder, ".context_length", 64);
    lmq_gguf_put_u32(&builder, ".embedding_length", 32);
    lmq_gguf_put_u32(&builder, ".feed_forward_length", 24);
    lmq_gguf_put_u32(&builder, ".attention.head_count", 4);
    lmq_gguf_put_u32(&builder, ".attention.head_count_kv", 2);
    lmq_gguf_put_u32(&builder, ".attention.key_length", 16);
    lmq_gguf_put_u32(&builder, ".attention.value_length", 16);
    lmq_gguf_put_u32(&builder, ".rope.dimension_count", 8);
    lmq_gguf_put_u32(&builder, ".expert_count", 4);
    lmq_gguf_put_u32(&builder, ".expert_used_count", 2);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    lmq_gguf_put_f32(&builder, ".residual_scale", 3.5);
    if (interval > 0)
        lmq_gguf_put_u32(&builder, ".full_attention_interval", interval);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    ck_assert_msg(lmq_gguf_read_keys(meta, &evidence, checkpoint, &family,
                                     &err) == LMQ_OK,
                  "%s", err.message);
    *h = checkpoint->hparams;
    ck_assert_str_eq(h->unsupported, "");
    ck_assert_uint_eq(checkpoint->notes.n, 0); /* all keys are understood */
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    lmq_notes_free(&checkpoint->notes);
    free(checkpoint);
    return h;
}

START_TEST(keys_of_gguf_say_a_minimax)
{
    struct lmq_hparams *h = read_keys(16, 0);

    assert_layers(h, LMQ_LAYER_DELTA, "xxxxxxx.");
    ck_assert_int_eq(h->recurrence, LMQ_RECURRENCE_LIGHTNING);
    ck_assert_uint_eq(h->n_delta_value_heads, 4);
    ck_assert_uint_eq(h->delta_value_dim, 16);
    ck_assert(h->has_normed_residual && h->has_sigmoid_gates);
    assert_near(h->attn_keep, 3.5);
    assert_near(h->delta_keep, 3.5);
    assert_near(h->feed_keep, 3.5);
    assert_near(h->residual_scale, 1);
    ck_assert_uint_eq(h->rotary_dim, 8);
    ck_assert_uint_eq(h->expert_dim, 24);
    ck_assert_double_eq_tol(lmq_decay_rate(h, 15, 0), 2.5e-6, 1e-8);
    free(h);
    h = read_keys(6, 3);
    assert_layers(h, LMQ_LAYER_DELTA, "xx.");
    free(h);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        states_that_decay_by_layer_never_grow,
        lightning_has_no_convolution,
        what_blocks_add_to_goes_with_one_plain_stream,
        a_recurrence_without_keys_has_no_sizes_of_keys,
        recurrent_gemma_2b,
        minimax_text_01,
        the_library_has_other_words_for_a_minimax,
        keys_of_gguf_say_a_minimax,
    };

    return RUN_SUITE("hf_linear", tests);
}
