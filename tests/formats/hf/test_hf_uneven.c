/*
 * test_hf_uneven.c - families whose layers differ in heads and widths, by their
 * config.json, Step 3.5 by the keys of a GGUF, too; and how a description says
 * it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "formats/model/hparams_check.h"
#include "formats/model/hparams_compare.h"
#include "formats/model/hparams_json.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Descriptions ---- */

static struct lmq_hparams *
describe(uint32_t n_layers)
{
    struct lmq_hparams *h = malloc(sizeof(*h));

    ck_assert_ptr_nonnull(h);
    lmq_hparams_init(h);
    h->n_layers = n_layers;
    h->dim = h->hidden_dim = h->context = h->vocab_size = 64;
    h->n_heads = 8;
    h->n_kv_heads = 4;
    h->head_dim = 16;
    return h;
}

static void
assert_impossible(const struct lmq_hparams *h, const char *what)
{
    struct lmq_error err = {0};

    ck_assert_int_eq(lmq_hparams_check(h, &err), LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, what) != NULL, "%s", err.message);
}

START_TEST(what_is_the_same_in_all_layers_is_said_once)
{
    struct lmq_hparams *h = describe(3);

    for (uint32_t i = 0; i < 3; i++) {
        h->layer_heads[i] = 6;
        h->layer_kv_heads[i] = 3;
        h->layer_hidden_dims[i] = 40;
    }
    h->layer_heads[5] = 9; /* of no layer */
    lmq_hparams_settle(h);
    ck_assert_uint_eq(h->n_heads, 6);
    ck_assert_uint_eq(h->n_kv_heads, 3);
    ck_assert_uint_eq(h->hidden_dim, 40);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_uint_eq(h->layer_heads[i] + h->layer_kv_heads[i] +
                              h->layer_hidden_dims[i],
                          0);
    free(h);
}
END_TEST

START_TEST(the_most_is_that_of_all_layers)
{
    struct lmq_hparams *h = describe(3);

    h->layer_heads[1] = 4;
    h->layer_heads[2] = 12;
    h->layers[2] = LMQ_LAYER_FEED; /* and has no heads */
    h->layer_hidden_dims[0] = 32;
    h->n_experts = 2;
    h->layers[1] |= LMQ_LAYER_DENSE;
    lmq_hparams_settle(h);
    ck_assert_uint_eq(h->n_heads, 8);
    ck_assert_uint_eq(h->layer_heads[0], 0);
    ck_assert_uint_eq(h->layer_heads[1], 4);
    ck_assert_uint_eq(h->layer_heads[2], 0);
    ck_assert_uint_eq(h->layer_hidden_dims[0], 0); /* has experts */
    ck_assert_uint_eq(lmq_most_heads(h), 8);
    free(h);
}
END_TEST

START_TEST(numbers_by_kind_are_said_by_kind)
{
    struct lmq_hparams *h = describe(4);

    h->sliding_window = 5;
    h->layers[1] = h->layers[3] = LMQ_LAYER_FULL;
    h->layer_kv_heads[1] = h->layer_kv_heads[3] = 2;
    lmq_hparams_settle(h);
    ck_assert_uint_eq(h->n_kv_heads, 4);
    ck_assert_uint_eq(h->full_kv_heads, 2);
    ck_assert_uint_eq(h->layer_kv_heads[1], 0);
    h->layer_kv_heads[3] = 8;
    lmq_hparams_settle(h);
    ck_assert_uint_eq(h->n_kv_heads, 8);
    ck_assert_uint_eq(h->full_kv_heads, 0);
    ck_assert_uint_eq(lmq_layer_kv_heads(h, 1), 2);
    ck_assert_uint_eq(lmq_layer_kv_heads(h, 2), 4);
    /* There are no such kinds where chunks take the place of windows. */
    h->layer_kv_heads[3] = 2;
    h->sliding_window = 0;
    h->attention_chunk = 5;
    for (int i = 0; i < 2; i++) {
        lmq_hparams_settle(h);
        ck_assert_uint_eq(h->n_kv_heads, 4);
        ck_assert_uint_eq(lmq_layer_kv_heads(h, 1), 2);
        ck_assert_uint_eq(lmq_layer_kv_heads(h, 2), 4);
    }
    free(h);
}
END_TEST

START_TEST(other_heads_make_another_model)
{
    struct lmq_hparams *a = describe(3), *b = describe(3);

    ck_assert_ptr_null(lmq_hparams_difference(a, b));
    b->layer_heads[1] = 4;
    ck_assert_str_eq(lmq_hparams_difference(a, b), "layer_heads");
    b->layer_heads[1] = 0;
    b->layer_hidden_dims[2] = 63;
    ck_assert_str_eq(lmq_hparams_difference(a, b), "layer_hidden_dims");
    free(a);
    free(b);
}
END_TEST

START_TEST(heads_that_do_not_fit_are_refused)
{
    struct lmq_hparams *h = describe(3);

    h->layer_kv_heads[2] = 3;
    assert_impossible(h, "8 heads of layer 2 cannot share 3 key/value heads");
    h->layer_heads[2] = 9;
    struct lmq_error err = {0};
    ck_assert_msg(lmq_hparams_check(h, &err) == LMQ_OK, "%s", err.message);
    h->positions = LMQ_POSITIONS_ALIBI;
    assert_impossible(h, "ALiBi");
    h->positions = LMQ_POSITIONS_ROTARY;
    h->qk_norm = LMQ_QK_NORM_HEADS;
    assert_impossible(h, "norms for each head");
    h->qk_norm = LMQ_QK_NORM_NONE;
    h->n_borrowing = 1;
    assert_impossible(h, "layer 2 borrows keys of 3 heads, but layer 1 has 4");
    free(h);
}
END_TEST

START_TEST(a_part_that_turns_needs_bases)
{
    struct lmq_hparams *h = describe(2);

    h->full_rotary_dim = 8;
    assert_impossible(h, "of heads of 16 in layers that see everything 8");
    h->rope_local_theta = 100;
    struct lmq_error err = {0};
    ck_assert_msg(lmq_hparams_check(h, &err) == LMQ_OK, "%s", err.message);
    h->full_rotary_dim = 18;
    assert_impossible(h, "18 dimensions turn");
    h->full_rotary_dim = 7;
    assert_impossible(h, "7 dimensions turn");
    free(h);
}
END_TEST

/* The text of a description with one key changed. */
static enum lmq_status
read_with(const char *key, const char *value, struct lmq_error *err)
{
    struct lmq_hparams *h = describe(3);
    json_t *json = lmq_hparams_to_json(h);

    json_object_set_new(json, key, json_loads(value, JSON_DECODE_ANY, NULL));
    enum lmq_status status = lmq_hparams_from_json(json, h, err);
    json_decref(json);
    free(h);
    return status;
}

START_TEST(lists_of_counts_have_one_for_each_layer)
{
    static const struct {
        const char *value, *why;
    } bad[] = {
        {"[1,2]", "no list of 3 numbers"}, {"7", "no list of 3 numbers"},
        {"[1,2,3,4]", "no list of 3 numbers"},
        {"[1,0,2]", "for layer 1"},        {"[1,2,65537]", "for layer 2"},
        {"[1,2.5,3]", "for layer 1"},      {"[-1,2,3]", "for layer 0"},
    };
    struct lmq_error err = {0};

    ck_assert_int_eq(read_with("layer_heads", "[4,8,12]", &err), LMQ_OK);
    ck_assert_int_eq(read_with("layer_heads", "[]", &err), LMQ_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(read_with("layer_heads", bad[i].value, &err),
                         LMQ_ERR_FORMAT);
        ck_assert_msg(strstr(err.message, bad[i].why) != NULL, "%s: %s",
                      bad[i].value, err.message);
    }
}
END_TEST

/* ---- Laguna ---- */

#define LAGUNA_SIZES                                                          \
    "'gating':'per-head','head_dim':128,'hidden_size':2048,"                  \
    "'intermediate_size':8192,'layer_types':['full_attention',"               \
    "'sliding_attention','sliding_attention','full_attention'],"              \
    "'max_position_embeddings':131072,"                                       \
    "'mlp_layer_types':['dense','sparse','sparse','sparse'],"                 \
    "'moe_intermediate_size':512,'moe_routed_scaling_factor':2.5,"            \
    "'num_attention_heads':48,"                                               \
    "'num_attention_heads_per_layer':[48,64,64,48],'num_experts':256,"        \
    "'num_experts_per_tok':8,'num_hidden_layers':4,"                          \
    "'num_key_value_heads':8,'rms_norm_eps':1e-06,"                           \
    "'shared_expert_intermediate_size':512,'sliding_window':512,"             \
    "'vocab_size':100352"

START_TEST(laguna_has_heads_by_layer)
{
    struct model *m = read_model(
        "{'architectures':['LagunaForCausalLM'],'model_type':'laguna',"
        LAGUNA_SIZES ",'rope_parameters':{'full_attention':{"
        "'attention_factor':1.0,'beta_fast':64.0,'beta_slow':1.0,"
        "'factor':32.0,'original_max_position_embeddings':4096,"
        "'partial_rotary_factor':0.5,'rope_theta':500000.0,"
        "'rope_type':'yarn'},'sliding_attention':{"
        "'partial_rotary_factor':1.0,'rope_theta':10000.0,"
        "'rope_type':'default'}}}");

    assert_sizes(&m->h, 4, 2048, 8192, 64, 8, 128);
    assert_layers(&m->h, LMQ_LAYER_FULL, "x..x");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x...");
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 0), 48);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 1), 64);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 3), 48);
    ck_assert_uint_eq(lmq_layer_rotary_dim(&m->h, 0), 64);
    ck_assert_uint_eq(lmq_layer_rotary_dim(&m->h, 1), 128);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    assert_near(m->h.rope_local_theta, 10000);
    ck_assert(m->h.has_attn_gate && m->h.has_head_gate &&
              m->h.has_softplus_gate);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_renormalises && m->h.router_corrects);
    assert_near(m->h.router_scale, 2.5);
    ck_assert_uint_eq(m->h.shared_dim, 512);
}
END_TEST

#define GATING "'gating' that is neither true, 'per-head' nor 'per-element'"
#define TURNS                                                                 \
    ",'rope_parameters':{'full_attention':{'rope_type':'default',"            \
    "'rope_theta':5000.0},'sliding_attention':{'rope_type':'default',"        \
    "'rope_theta':600.0}}"

START_TEST(laguna_that_is_not_understood_is_refused)
{
    static const char name[] = "LagunaForCausalLM";

    assert_unsupported(name, "'head_dim':16",
                       "a model of this kind without 'rope_parameters'");
    assert_unsupported(name, "'gating':false" TURNS, GATING);
    assert_unsupported(name, "'gating':'per-token'" TURNS, GATING);
    assert_unsupported(name, "'moe_apply_router_weight_on_input':true" TURNS,
                       "'moe_apply_router_weight_on_input' true");
    assert_wrong(name, "'num_attention_heads_per_layer':[4,8]" TURNS,
                 "num_attention_heads_per_layer");
    assert_wrong(name,
                 "'num_attention_heads_per_layer':[4,4,4,0,4,4,4,4]" TURNS,
                 "is 0 for layer 3");
}
END_TEST

/* ---- OpenELM ---- */

#define OPENELM                                                               \
    "{'activation_fn_name':'swish','architectures':['OpenELMForCausalLM'],"   \
    "'ffn_dim_divisor':256,'ffn_with_glu':true,'head_dim':64,"                \
    "'max_context_length':2048,'model_dim':1280,'model_type':'openelm',"      \
    "'normalization_layer_name':'rms_norm','normalize_qk_projections':true,"  \
    "'num_gqa_groups':4,'num_transformer_layers':16,"                         \
    "'rope_freq_constant':10000,'share_input_output_layers':true,"            \
    "'vocab_size':32000,"

/* The smallest that was published: what its files say of heads, and what they
 * make of the factors of widths. */
START_TEST(openelm_has_heads_and_widths_by_layer)
{
    static const uint32_t heads[] = {12, 12, 12, 12, 12, 16, 16, 16,
                                     16, 16, 16, 16, 20, 20, 20, 20};
    static const uint32_t widths[] = {768,  1024, 1280, 1536, 1792, 2048,
                                      2560, 2816, 3072, 3328, 3584, 3840,
                                      4352, 4608, 4864, 5120};
    struct model *m = read_model(
        OPENELM "'ffn_multipliers':[0.5,0.73,0.97,1.2,1.43,1.67,1.9,2.13,"
                "2.37,2.6,2.83,3.07,3.3,3.53,3.77,4.0],"
                "'num_kv_heads':[3,3,3,3,3,4,4,4,4,4,4,4,5,5,5,5],"
                "'num_query_heads':[12,12,12,12,12,16,16,16,16,16,16,16,20,"
                "20,20,20],'qkv_multipliers':[0.5,1.0]}");

    assert_sizes(&m->h, 16, 1280, 5120, 20, 5, 64);
    for (size_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(lmq_layer_heads(&m->h, i), heads[i]);
        ck_assert_uint_eq(lmq_layer_kv_heads(&m->h, i), heads[i] / 4);
        ck_assert_uint_eq(lmq_layer_hidden_dim(&m->h, i), widths[i]);
    }
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.context, 2048);
    assert_near(m->h.norm_eps, 1e-6);
    /* Its factors alone say the same. */
    m = read_model(OPENELM "'ffn_multipliers':[0.5,4.0],"
                           "'qkv_multipliers':[0.5,1.0]}");
    for (size_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(lmq_layer_heads(&m->h, i), heads[i]);
        ck_assert_uint_eq(lmq_layer_hidden_dim(&m->h, i), widths[i]);
    }
    m = read_model(OPENELM "'qkv_multipliers':1.0}");
    assert_sizes(&m->h, 16, 1280, 5120, 20, 5, 64);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 3), 20);
}
END_TEST

/* ---- Step 3.5 ---- */

#define FOUR(a, b) "'" a "_attention','" b "_attention','" b "_attention','"  \
                   b "_attention'"
#define STEP_TYPES                                                            \
    "'layer_types':[" FOUR("full", "sliding") "," FOUR("full", "sliding") "," \
    "'sliding_attention']"
#define STEP_KEYS                                                             \
    "'head_dim':128,'num_attention_groups':2,'sliding_window':512,"           \
    "'num_nextn_predict_layers':1,"
#define STEP                                                                  \
    STEP_KEYS STEP_TYPES ",'use_head_wise_attn_gate':true"
#define STEP_SCALING                                                          \
    "'rope_scaling':{'rope_type':'llama3','factor':2.0,"                      \
    "'original_max_position_embeddings':131072,'low_freq_factor':1.0,"        \
    "'high_freq_factor':32.0}"

static const char step[] = "Step3p5ForCausalLM";

START_TEST(step_has_heads_bases_and_limits_by_layer)
{
    struct model *m = read_small(
        step, STEP ",'rope_theta':[5000000.0,10000.0,10000.0,10000.0,"
              "5000000.0,10000.0,10000.0,10000.0,10000.0],"
              "'partial_rotary_factors':[0.5,1,1,1,0.5,1,1,1,1],"
              "'attention_other_setting':{'attention_type':"
              "'sliding_attention','num_attention_heads':6,"
              "'num_attention_groups':3,'head_dim':128},"
              "'moe_layers_enum':'3,4,5, 6 ,7','max_seq_len':2000,"
              "'swiglu_limits':[0,0,0,0,0,0,7.0,7.0,0],"
              "'swiglu_limits_shared':[0,null,0,0,0,0,0,16,0],"
              "'max_position_embeddings':262144,"
              "'moe_router_scaling_factor':3.0,'yarn_only_types':"
              "['full_attention']," STEP_SCALING);
    const struct lmq_hparams *h = &m->h;

    ck_assert_str_eq(h->architecture, "step35");
    assert_layers(h, LMQ_LAYER_FULL, "x...x...");
    assert_layers(h, LMQ_LAYER_DENSE, "xxx.....");
    assert_layers(h, LMQ_LAYER_LIMITED_EXPERTS, "......xx");
    assert_layers(h, LMQ_LAYER_LIMITED, ".......x");
    assert_near(h->expert_act_limit, 7);
    assert_near(h->act_limit, 16);
    ck_assert_uint_eq(lmq_layer_heads(h, 0), 4);
    ck_assert_uint_eq(lmq_layer_heads(h, 1), 6);
    ck_assert_uint_eq(lmq_layer_kv_heads(h, 4), 2);
    ck_assert_uint_eq(lmq_layer_kv_heads(h, 7), 3);
    ck_assert_uint_eq(lmq_hparams_rotary_dim(h), 128);
    ck_assert_uint_eq(h->full_rotary_dim, 64);
    assert_near(h->rope_theta, 5e6);
    assert_near(h->rope_local_theta, 10000);
    ck_assert_int_eq(h->rope_scaling, LMQ_ROPE_LLAMA3);
    ck_assert(h->has_attn_gate && h->has_head_gate && !h->has_softplus_gate);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
    ck_assert(h->router_corrects && h->router_renormalises);
    assert_near(h->router_scale, 3);
    ck_assert_uint_eq(h->n_experts, 288);
    ck_assert_uint_eq(h->shared_dim, 1280);
    ck_assert_uint_eq(h->context, 262144);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    ck_assert(m->source.norms_less_one);
    m = read_small(step, STEP_KEYS STEP_TYPES
                   ",'use_head_wise_attn_gate':false,'max_seq_len':2000");
    ck_assert(!m->h.has_attn_gate);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.......");
    assert_near(m->h.rope_theta, 10000);
    ck_assert_uint_eq(m->h.context, 2000);
    ck_assert_uint_eq(lmq_layer_heads(&m->h, 1), 4);
    m = read_small(step, "'head_dim':16,'num_attention_groups':4,"
                         "'sliding_window':512,'layer_types':["
                         FOUR("full", "full") "," FOUR("full", "full") "],"
                         "'partial_rotary_factors':[0.5,0.5,0.5,0.5,0.5,"
                         "0.5,0.5,0.5],'use_head_wise_attn_gate':true");
    ck_assert_uint_eq(m->h.rotary_dim, 8); /* there is no window */
    ck_assert_uint_eq(m->h.full_rotary_dim, 0);
    ck_assert(!(m->h.rope_local_theta > 0));
}
END_TEST

START_TEST(step_that_is_not_understood_is_refused)
{
    assert_unsupported(step, STEP_KEYS STEP_TYPES,
                       "a model of this kind without "
                       "'use_head_wise_attn_gate'");
    assert_unsupported(step, STEP_KEYS "'use_head_wise_attn_gate':true",
                       "a model of this kind without 'layer_types'");
    assert_unsupported(step, STEP ",'sink':true", "'sink' true");
    assert_unsupported(step, STEP ",'moe_router_activation':'softmax'",
                       "'moe_router_activation' 'softmax'");
    assert_unsupported(step, STEP ",'use_rope_layers':[1,1,0,1]",
                       "layers without positions in 'use_rope_layers'");
    assert_unsupported(step, STEP "," STEP_SCALING,
                       "rotary scaling of other layers than "
                       "'full_attention' in 'yarn_only_types'");
    assert_unsupported(step,
                       STEP ",'yarn_only_types':['full_attention',"
                            "'sliding_attention']," STEP_SCALING,
                       "rotary scaling of other layers than "
                       "'full_attention' in 'yarn_only_types'");
    assert_unsupported(step,
                       STEP ",'swiglu_limits':[0,0,0,0,0,5,7.0,7.0,0]",
                       "layers that differ in 'swiglu_limits'");
    assert_unsupported(step, STEP ",'rope_theta':[1e6,1e4,1e4,1e4,2e6,1e4,"
                                  "1e4,1e4,1e4]",
                       "layers of one kind that differ in 'rope_theta'");
    assert_unsupported(step,
                       STEP ",'attention_other_setting':{'head_dim':64}",
                       "an 'attention_other_setting' of other layers or of "
                       "other widths of heads");
    assert_wrong(step, STEP ",'swiglu_limits':[0,0,0,0,0,0,-7.0,0,0]",
                 "'swiglu_limits' in the configuration is no list of limits");
    assert_wrong(step, STEP ",'swiglu_limits_shared':[0,0,0,0,0,0,7.0]",
                 "'swiglu_limits_shared' in the configuration names 7 of 8");
    assert_wrong(step, STEP ",'moe_layers_enum':'3,x'",
                 "'moe_layers_enum' in the configuration is '3,x'");
    assert_wrong(step, STEP ",'partial_rotary_factors':[0,1,1,1,0,1,1,1,1]",
                 "'partial_rotary_factors' in the configuration has a 0");
    assert_wrong(step, STEP ",'attention_other_setting':{"
                            "'num_attention_groups':0}",
                 "4 heads that share 0 keys");
}
END_TEST

/* As llama.cpp's converter writes it; with these limits of experts. */
static enum lmq_status
read_step(const double *limits, uint32_t n_limits, uint32_t window,
          struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct {
        const char *key;
        uint32_t count;
    } counts[] = {
        {".block_count", 5}, {".context_length", 4096},
        {".embedding_length", 64}, {".feed_forward_length", 96},
        {".attention.head_count_kv", 2}, {".attention.key_length", 24},
        {".attention.value_length", 24}, {".expert_count", 6},
        {".expert_used_count", 2}, {".expert_feed_forward_length", 40},
        {".expert_shared_feed_forward_length", 52},
        {".leading_dense_block_count", 1}, {".moe_every_n_layers", 1},
        {".nextn_predict_layers", 1}, {".attention.sliding_window", window},
    };
    double factors[12];
    const struct lmq_gguf_evidence evidence = {
        .vocab_size = 33, .has_qk_norm = true, .has_correction = true,
        .gate_rows = 4, .always = factors, .n_always = 12};
    struct lmq_gguf_builder builder = {.prefix = "step35"};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;

    for (size_t i = 0; i < 12; i++)
        factors[i] = i < 6 ? 2 : 1;
    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_begin(&builder);
    builder.prefix = "step35";
    lmq_gguf_put_text(&builder, "general.architecture", "step35", 6);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].key, counts[i].count);
    lmq_gguf_put_array(&builder, ".attention.head_count", LMQ_GGUF_U32, 5);
    for (uint32_t i = 0; i < 5; i++)
        lmq_gguf_add_u32(&builder, i % 4 == 0 ? 4 : 6);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    lmq_gguf_put_f32(&builder, ".rope.freq_base", 5e6);
    lmq_gguf_put_f32(&builder, ".rope.freq_base_swa", 10000);
    lmq_gguf_put_f32(&builder, ".swiglu_clamp_shexp", 16);
    lmq_gguf_put_array(&builder, ".attention.sliding_window_pattern",
                       LMQ_GGUF_BOOL, 5);
    for (uint32_t i = 0; i < 5; i++)
        lmq_gguf_add_bool(&builder, i % 4 != 0);
    lmq_gguf_put_array(&builder, ".swiglu_clamp_exp", LMQ_GGUF_F32, n_limits);
    for (uint32_t i = 0; i < n_limits; i++)
        lmq_gguf_add_f32(&builder, limits[i]);
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

START_TEST(keys_of_gguf_say_a_step)
{
    static const double limits[] = {0, 0, 7, 7, 0};
    static const double differ[] = {0, 0, 7, 6, 0}, below[] = {0, -1, 0, 0, 0};
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    ck_assert_int_eq(read_step(limits, 5, 512, &checkpoint, &err), LMQ_OK);
    ck_assert_str_eq(h->unsupported, "");
    ck_assert_uint_eq(checkpoint.notes.n, 0);
    ck_assert_uint_eq(h->n_layers, 4);
    assert_layers(h, LMQ_LAYER_FULL, "x...");
    assert_layers(h, LMQ_LAYER_LIMITED_EXPERTS, "..xx");
    assert_layers(h, LMQ_LAYER_LIMITED, "xxxx");
    assert_near(h->expert_act_limit, 7);
    assert_near(h->act_limit, 16);
    ck_assert_uint_eq(lmq_layer_heads(h, 0), 4);
    ck_assert_uint_eq(lmq_layer_heads(h, 1), 6);
    ck_assert_uint_eq(lmq_hparams_rotary_dim(h), 24);
    ck_assert_uint_eq(h->full_rotary_dim, 12);
    ck_assert_uint_eq(h->n_rope_factors, 6);
    ck_assert_int_eq(h->rope_scaling, LMQ_ROPE_FACTORS);
    ck_assert_uint_eq(h->shared_dim, 52);
    ck_assert(h->has_attn_gate && h->has_head_gate);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(checkpoint.source.n_further_layers, 1);
    /* Without a window all turn by half as much as is said. */
    ck_assert_int_eq(read_step(limits, 5, 0, &checkpoint, &err), LMQ_OK);
    ck_assert_uint_eq(h->rotary_dim, 12);
    ck_assert_uint_eq(h->full_rotary_dim, 0);
    read_step(differ, 5, 512, &checkpoint, &err);
    ck_assert_str_eq(h->unsupported, "layers that differ in "
                                     "'swiglu_clamp_exp'");
    read_step(below, 5, 512, &checkpoint, &err);
    ck_assert_str_eq(h->unsupported, "-1 in 'swiglu_clamp_exp'");
    ck_assert_int_eq(read_step(limits, 3, 512, &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "'step35.swiglu_clamp_exp' is "
                                              "no f32 for each of 4 layers"));
}
END_TEST

static void
assert_other_openelm(const char *more, const char *why)
{
    struct model *m = malloc(sizeof(*m));
    struct lmq_error err = {0};
    char text[2048];
    bool is_known;

    ck_assert_ptr_nonnull(m);
    snprintf(text, sizeof(text),
             "{'architectures':['OpenELMForCausalLM'],'head_dim':64,"
             "'model_dim':1280,'model_type':'openelm',"
             "'num_transformer_layers':16,%s}",
             more);
    const char *said =
        parse_config(text, m, &is_known, &err) == LMQ_OK ? m->h.unsupported
                                                         : err.message;
    ck_assert_msg(strstr(said, why) != NULL, "%s: '%s'", more, said);
    free(m);
}

START_TEST(openelm_that_makes_no_sense_is_refused)
{
    assert_other_openelm("'qkv_multipliers':[0.5,0.7,1.0]", "3 numbers");
    assert_other_openelm("'qkv_multipliers':[0.5,'a']", "no list of numbers");
    assert_other_openelm("'ffn_multipliers':[1,2,3]", "3 numbers");
    assert_other_openelm("'ffn_multipliers':-1.0", "a width of -1280");
    assert_other_openelm("'ffn_multipliers':1e30", "a width of 1.28e+33");
    assert_other_openelm("'num_query_heads':[1,2]", "num_query_heads");
    assert_other_openelm("'num_kv_heads':[3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3]",
                         "do not follow from 'qkv_multipliers'");
    assert_other_openelm("'num_gqa_groups':0", "0 heads of 64");
    assert_other_openelm("'ffn_dim_divisor':0", "in steps of 0");
    assert_other_openelm("'ffn_with_glu':false", "ffn_with_glu");
    assert_other_openelm("'share_input_output_layers':false",
                         "share_input_output_layers");
}
END_TEST

/* ---- DeciLM ---- */

#define DECI                                                                  \
    "{'architectures':['DeciLMForCausalLM'],'hidden_act':'silu',"             \
    "'hidden_size':8192,'intermediate_size':null,"                            \
    "'max_position_embeddings':131072,'model_type':'nemotron-nas',"           \
    "'num_attention_heads':64,'num_hidden_layers':3,"                         \
    "'num_key_value_heads':null,'rms_norm_eps':1e-05,'rope_theta':500000.0,"  \
    "'tie_word_embeddings':false,'vocab_size':128256,'block_configs':["
#define WHOLE                                                                 \
    "{'attention':{'n_heads_in_group':8,'no_op':false,"                       \
    "'replace_with_linear':false,'window_length':null},'ffn':{'ffn_mult':"    \
    "5.25,'no_op':false,'replace_with_linear':false,'sparsify':null}}"
#define FEED                                                                  \
    "{'attention':{'n_heads_in_group':null,'no_op':true,"                     \
    "'replace_with_linear':false},'ffn':{'ffn_mult':1.3125,'no_op':false}}"

START_TEST(deci_has_what_its_blocks_say)
{
    struct model *m = read_model(
        DECI WHOLE "," FEED ",{'attention':{'n_heads_in_group':16},'ffn':"
                   "{'ffn_mult':null,'no_op':true}}]}");

    assert_sizes(&m->h, 3, 8192, 28672, 64, 8, 128);
    assert_layers(&m->h, LMQ_LAYER_FEED, ".x.");
    assert_layers(&m->h, LMQ_LAYER_BARE, "..x");
    ck_assert_uint_eq(lmq_layer_kv_heads(&m->h, 2), 4);
    ck_assert_uint_eq(lmq_layer_hidden_dim(&m->h, 1), 7168);
    assert_near(m->h.rope_theta, 500000);
}
END_TEST

START_TEST(deci_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *blocks, *why;
    } cases[] = {
        {WHOLE "," FEED, "block_configs"},
        {WHOLE "," FEED ",7", "does not say what layer 2 is"},
        {WHOLE "," FEED ",{'attention':{'no_op':true}}",
         "does not say what layer 2 is"},
        {WHOLE "," FEED ",{'attention':{'n_heads_in_group':7},"
         "'ffn':{'ffn_mult':1}}",
         "'n_heads_in_group' in the configuration is 7 for layer 2"},
        {WHOLE "," FEED ",{'attention':{'no_op':true},'ffn':{'ffn_mult':-1}}",
         "a feed-forward of"},
        {WHOLE "," FEED ",{'attention':{'n_heads_in_group':null,"
         "'replace_with_linear':true},'ffn':{'ffn_mult':1}}",
         "'replace_with_linear' in 'block_configs'"},
        {WHOLE "," FEED ",{'attention':{'n_heads_in_group':8,"
         "'window_length':64},'ffn':{'ffn_mult':1}}",
         "'window_length' in 'block_configs'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model *m = malloc(sizeof(*m));
        struct lmq_error err = {0};
        char text[2048];
        bool is_known;
        ck_assert_ptr_nonnull(m);
        snprintf(text, sizeof(text), "%s%s]}", DECI, cases[i].blocks);
        const char *said =
            parse_config(text, m, &is_known, &err) == LMQ_OK
                ? m->h.unsupported
                : err.message;
        ck_assert_msg(strstr(said, cases[i].why) != NULL, "%zu: '%s'", i,
                      said);
        free(m);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        what_is_the_same_in_all_layers_is_said_once,
        the_most_is_that_of_all_layers,
        numbers_by_kind_are_said_by_kind,
        other_heads_make_another_model,
        heads_that_do_not_fit_are_refused,
        a_part_that_turns_needs_bases,
        lists_of_counts_have_one_for_each_layer,
        laguna_has_heads_by_layer,
        laguna_that_is_not_understood_is_refused,
        step_has_heads_bases_and_limits_by_layer,
        step_that_is_not_understood_is_refused,
        keys_of_gguf_say_a_step,
        openelm_has_heads_and_widths_by_layer,
        openelm_that_makes_no_sense_is_refused,
        deci_has_what_its_blocks_say,
        deci_that_makes_no_sense_is_refused,
    };

    return RUN_SUITE("hf_uneven", tests);
}
