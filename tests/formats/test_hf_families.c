/*
 * test_hf_families.c - the families of config.json, by published configurations
 * (without what no computation depends on).
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "tests/build/suite.h"

/* ---- Reading ---- */

struct model {
    struct lmq_hparams h;
    struct lmq_source source;
};

/* JSON with ' for ". */
static enum lmq_status
parse(const char *text, struct model *model, bool *is_known,
      struct lmq_error *err)
{
    char json[8192];
    size_t n = strlen(text);

    ck_assert_uint_lt(n, sizeof(json));
    for (size_t i = 0; i < n; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    lmq_hparams_init(&model->h);
    return lmq_config_parse((const unsigned char *)json, n, &model->h,
                            &model->source, is_known, err);
}

/* What was read comes back from a container. */
static void
assert_keeps(const struct lmq_hparams *h)
{
    struct lmq_hparams back;
    struct lmq_error err = {0};
    json_t *json = lmq_hparams_to_json(h, NULL), *again;

    ck_assert_msg(lmq_hparams_from_json(json, &back, &err) == LMQ_OK, "%s",
                  err.message);
    again = lmq_hparams_to_json(&back, NULL);
    ck_assert(json_equal(json, again));
    ck_assert_mem_eq(back.layers, h->layers, h->n_layers);
    json_decref(json);
    json_decref(again);
}

static void
read_whole(const char *text, struct model *model)
{
    struct lmq_error err = {0};
    bool is_known = false;

    ck_assert_msg(parse(text, model, &is_known, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert(is_known);
    ck_assert_msg(lmq_hparams_check(&model->h, &err) == LMQ_OK, "%s",
                  err.message);
    assert_keeps(&model->h);
}

/* One that can run. */
static struct model *
read_model(const char *text)
{
    static struct model model;

    read_whole(text, &model);
    ck_assert_str_eq(model.h.unsupported, "");
    return &model;
}

#define SMALL                                                                 \
    "'hidden_size':64,'intermediate_size':96,'num_hidden_layers':8,"          \
    "'num_attention_heads':4,'num_key_value_heads':4,'vocab_size':100"

/* A small model of the class with these further keys. */
static struct model *
read_small(const char *class_name, const char *more)
{
    static struct model model;
    char text[4096];

    snprintf(text, sizeof(text), "{'architectures':['%s']," SMALL "%s%s}",
             class_name, *more == '\0' ? "" : ",", more);
    read_whole(text, &model);
    return &model;
}

static void
assert_unsupported(const char *class_name, const char *more, const char *why)
{
    ck_assert_str_eq(read_small(class_name, more)->h.unsupported, why);
}

static void
assert_wrong(const char *class_name, const char *more, const char *what)
{
    struct model model;
    struct lmq_error err = {0};
    char text[4096];
    bool is_known;

    snprintf(text, sizeof(text), "{'architectures':['%s']," SMALL ",%s}",
             class_name, more);
    ck_assert_msg(parse(text, &model, &is_known, &err) == LMQ_ERR_FORMAT,
                  "%s is accepted", more);
    ck_assert_msg(strstr(err.message, what) != NULL, "'%s' says nothing of %s",
                  err.message, what);
}

/* ---- Asserting ---- */

static void
assert_sizes(const struct lmq_hparams *h, uint32_t layers, uint32_t dim,
             uint32_t hidden, uint32_t heads, uint32_t kv_heads,
             uint32_t head_dim)
{
    ck_assert_uint_eq(h->n_layers, layers);
    ck_assert_uint_eq(h->dim, dim);
    ck_assert_uint_eq(h->hidden_dim, hidden);
    ck_assert_uint_eq(h->n_heads, heads);
    ck_assert_uint_eq(h->n_kv_heads, kv_heads);
    ck_assert_uint_eq(h->head_dim, head_dim);
}

static void
assert_near(double a, double b)
{
    ck_assert_double_eq_tol(a, b, 1e-12 * fabs(b));
}

/* The layers of the kind, a character each: "x..x". Layers behind the pattern
 * repeat it. */
static void
assert_layers(const struct lmq_hparams *h, enum lmq_layer_kind kind,
              const char *pattern)
{
    size_t n = strlen(pattern);

    for (uint32_t i = 0; i < h->n_layers; i++)
        ck_assert_msg(lmq_layer_is(h, i, kind) == (pattern[i % n] == 'x'),
                      "layer %u", i);
}

/* What the description of every Llama-like model says. */
static void
assert_llama_like(const struct lmq_hparams *h)
{
    ck_assert_int_eq(h->norm, LMQ_NORM_RMS);
    ck_assert_int_eq(h->norm_place, LMQ_NORMS_BEFORE);
    ck_assert_int_eq(h->residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(h->positions, LMQ_POSITIONS_ROTARY);
    ck_assert_int_eq(h->activation, LMQ_ACTIVATION_SILU);
    ck_assert(h->is_gated);
    ck_assert_double_eq(h->attn_scale, 0);
    ck_assert_double_eq(h->logit_scale, 1);
    ck_assert_double_eq(h->embedding_scale, 1);
}

static void
assert_source(const struct lmq_source *s, bool pairs, bool transposed,
              bool less_one, bool by_head)
{
    ck_assert_int_eq(s->has_rotary_pairs, pairs);
    ck_assert_int_eq(s->is_transposed, transposed);
    ck_assert_int_eq(s->norms_less_one, less_one);
    ck_assert_int_eq(s->is_qkv_by_head, by_head);
}

/* ---- Llama and its relatives ---- */

START_TEST(llama_3_2_1b)
{
    struct model *m = read_model(
        "{'architectures':['LlamaForCausalLM'],'attention_bias':false,"
        "'bos_token_id':128000,'eos_token_id':128001,'head_dim':64,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':8192,"
        "'max_position_embeddings':131072,'mlp_bias':false,"
        "'model_type':'llama','num_attention_heads':32,"
        "'num_hidden_layers':16,'num_key_value_heads':8,'pretraining_tp':1,"
        "'rms_norm_eps':1e-05,'rope_scaling':{'factor':32.0,"
        "'high_freq_factor':4.0,'low_freq_factor':1.0,"
        "'original_max_position_embeddings':8192,'rope_type':'llama3'},"
        "'rope_theta':500000.0,'tie_word_embeddings':true,'use_cache':true,"
        "'vocab_size':128256}");

    ck_assert_str_eq(m->h.architecture, "llama");
    assert_sizes(&m->h, 16, 2048, 8192, 32, 8, 64);
    assert_llama_like(&m->h);
    assert_source(&m->source, false, false, false, false);
    ck_assert_uint_eq(m->h.context, 131072);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
    ck_assert_double_eq(m->h.rope_theta, 500000);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LLAMA3);
    ck_assert_uint_eq(m->h.rope_context, 8192);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert_int_eq(m->h.bos, 128000);
}
END_TEST

START_TEST(mistral_7b)
{
    struct model *m = read_model(
        "{'architectures':['MistralForCausalLM'],'bos_token_id':1,"
        "'eos_token_id':2,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':14336,'max_position_embeddings':32768,"
        "'model_type':'mistral','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':8,'rms_norm_eps':1e-05,"
        "'rope_theta':10000.0,'sliding_window':4096,"
        "'tie_word_embeddings':false,'vocab_size':32000}");

    ck_assert_str_eq(m->h.architecture, "mistral");
    assert_sizes(&m->h, 32, 4096, 14336, 32, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_NO);
    /* Later ones have none, and say so. */
    m = read_small("MistralForCausalLM", "'sliding_window':null");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    m = read_small("MistralForCausalLM", "");
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    ck_assert_uint_eq(m->h.context, 131072);
}
END_TEST

START_TEST(mixtral_8x7b)
{
    struct model *m = read_model(
        "{'architectures':['MixtralForCausalLM'],'hidden_act':'silu',"
        "'hidden_size':4096,'intermediate_size':14336,"
        "'max_position_embeddings':32768,'model_type':'mixtral',"
        "'num_attention_heads':32,'num_experts_per_tok':2,"
        "'num_hidden_layers':32,'num_key_value_heads':8,"
        "'num_local_experts':8,'output_router_logits':false,"
        "'rms_norm_eps':1e-05,'rope_theta':1000000.0,"
        "'router_aux_loss_coef':0.02,'sliding_window':null,"
        "'tie_word_embeddings':false,'vocab_size':32000}");

    ck_assert_str_eq(m->h.architecture, "mixtral");
    assert_sizes(&m->h, 32, 4096, 14336, 32, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert_uint_eq(m->h.n_experts, 8);
    ck_assert_uint_eq(m->h.n_experts_used, 2);
    ck_assert_uint_eq(m->h.expert_dim, 14336);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert(m->h.router_renormalises);
}
END_TEST

START_TEST(smollm3_3b)
{
    struct model *m = read_model(
        "{'architectures':['SmolLM3ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':null,'eos_token_id':128012,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':11008,'layer_types':["
        "'full_attention','full_attention','full_attention','full_attention',"
        "'full_attention','full_attention','full_attention','full_attention'],"
        "'max_position_embeddings':65536,'max_window_layers':28,"
        "'mlp_bias':false,'model_type':'smollm3','no_rope_layer_interval':4,"
        "'no_rope_layers':[1,1,1,0,1,1,1,0],'num_attention_heads':16,"
        "'num_hidden_layers':8,'num_key_value_heads':4,'rms_norm_eps':1e-06,"
        "'rope_scaling':null,'rope_theta':5000000.0,'sliding_window':null,"
        "'use_sliding_window':false,'vocab_size':128256}");

    ck_assert_str_eq(m->h.architecture, "smollm3");
    assert_sizes(&m->h, 8, 2048, 11008, 16, 4, 128);
    assert_llama_like(&m->h);
    assert_layers(&m->h, LMQ_LAYER_NOPE, "...x");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".");
    ck_assert_double_eq(m->h.rope_theta, 5000000);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("SmolLM3ForCausalLM",
                   "'no_rope_layer_interval':3,'use_sliding_window':true,"
                   "'sliding_window':16");
    assert_layers(&m->h, LMQ_LAYER_NOPE, "..x");
    assert_layers(&m->h, LMQ_LAYER_FULL, "xx.");
    ck_assert_uint_eq(m->h.sliding_window, 16);
    ck_assert_double_eq(m->h.rope_theta, 2e6);
    assert_wrong("SmolLM3ForCausalLM", "'no_rope_layers':[1,0]",
                 "'no_rope_layers'");
    assert_wrong("SmolLM3ForCausalLM",
                 "'no_rope_layers':[1,1,1,'x',1,1,1,0]", "'no_rope_layers'");
    assert_wrong("SmolLM3ForCausalLM", "'no_rope_layer_interval':0",
                 "'no_rope_layer_interval'");
}
END_TEST

START_TEST(granite_3_0_2b)
{
    struct model *m = read_model(
        "{'architectures':['GraniteForCausalLM'],'attention_bias':false,"
        "'attention_multiplier':0.015625,'bos_token_id':0,"
        "'embedding_multiplier':12.0,'eos_token_id':0,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':8192,'logits_scaling':8.0,"
        "'max_position_embeddings':4096,'mlp_bias':false,"
        "'model_type':'granite','num_attention_heads':32,"
        "'num_hidden_layers':40,'num_key_value_heads':8,"
        "'residual_multiplier':0.22,'rms_norm_eps':1e-05,"
        "'rope_scaling':null,'rope_theta':10000.0,"
        "'tie_word_embeddings':true,'vocab_size':49155}");

    ck_assert_str_eq(m->h.architecture, "granite");
    assert_sizes(&m->h, 40, 2048, 8192, 32, 8, 64);
    ck_assert_double_eq(m->h.embedding_scale, 12);
    ck_assert_double_eq(m->h.residual_scale, 0.22);
    ck_assert_double_eq(m->h.attn_scale, 0.015625);
    ck_assert_double_eq(m->h.logit_scale, 0.125);
    m = read_small("GraniteForCausalLM", "");
    ck_assert_double_eq(m->h.attn_scale, 1);
    ck_assert_double_eq(m->h.norm_eps, 1e-6);
    assert_wrong("GraniteForCausalLM", "'logits_scaling':0",
                 "'logits_scaling'");
    assert_wrong("GraniteForCausalLM", "'attention_multiplier':0",
                 "'attention_multiplier'");
}
END_TEST

/* ---- Qwen ---- */

START_TEST(qwen2_5_0_5b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen2ForCausalLM'],'bos_token_id':151643,"
        "'eos_token_id':151643,'hidden_act':'silu','hidden_size':896,"
        "'intermediate_size':4864,'max_position_embeddings':32768,"
        "'max_window_layers':24,'model_type':'qwen2',"
        "'num_attention_heads':14,'num_hidden_layers':24,"
        "'num_key_value_heads':2,'rms_norm_eps':1e-06,"
        "'rope_theta':1000000.0,'sliding_window':32768,"
        "'tie_word_embeddings':true,'use_mrope':false,"
        "'use_sliding_window':false,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen2");
    assert_sizes(&m->h, 24, 896, 4864, 14, 2, 64);
    assert_llama_like(&m->h);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".");
    m = read_small("Qwen2ForCausalLM",
                   "'use_sliding_window':true,'max_window_layers':3");
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    assert_layers(&m->h, LMQ_LAYER_FULL, "xxx.....");
    m = read_small("Qwen2ForCausalLM", "'use_sliding_window':true,"
                                       "'sliding_window':null,"
                                       "'max_window_layers':3");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    /* As many full layers as there are. */
    m = read_small("Qwen2ForCausalLM", "'use_sliding_window':true");
    ck_assert_uint_eq(m->h.sliding_window, 0);
}
END_TEST

START_TEST(qwen1_5_moe_a2_7b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen2MoeForCausalLM'],'decoder_sparse_step':1,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':5632,"
        "'max_position_embeddings':8192,'max_window_layers':21,"
        "'model_type':'qwen2_moe','moe_intermediate_size':1408,"
        "'norm_topk_prob':false,'num_attention_heads':16,'num_experts':60,"
        "'num_experts_per_tok':4,'num_hidden_layers':24,"
        "'num_key_value_heads':16,'output_router_logits':false,"
        "'rms_norm_eps':1e-06,'rope_theta':1000000.0,"
        "'router_aux_loss_coef':0.001,"
        "'shared_expert_intermediate_size':5632,'sliding_window':32768,"
        "'tie_word_embeddings':false,'use_sliding_window':false,"
        "'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen2moe");
    assert_sizes(&m->h, 24, 2048, 5632, 16, 16, 128);
    ck_assert_uint_eq(m->h.n_experts, 60);
    ck_assert_uint_eq(m->h.n_experts_used, 4);
    ck_assert_uint_eq(m->h.expert_dim, 1408);
    ck_assert_uint_eq(m->h.shared_dim, 5632);
    ck_assert(!m->h.router_renormalises);
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".");
    m = read_small("Qwen2MoeForCausalLM",
                   "'decoder_sparse_step':2,'mlp_only_layers':[3,77]");
    assert_layers(&m->h, LMQ_LAYER_DENSE, "x.xxx.x.");
    assert_unsupported("Qwen2MoeForCausalLM", "'use_sliding_window':true",
                       "'use_sliding_window' in a model of this kind");
    assert_wrong("Qwen2MoeForCausalLM", "'decoder_sparse_step':0",
                 "'decoder_sparse_step'");
    assert_wrong("Qwen2MoeForCausalLM", "'mlp_only_layers':['a']",
                 "'mlp_only_layers'");
}
END_TEST

START_TEST(qwen3_0_6b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen3ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':151643,'eos_token_id':151645,'head_dim':128,"
        "'hidden_act':'silu','hidden_size':1024,'intermediate_size':3072,"
        "'max_position_embeddings':40960,'max_window_layers':28,"
        "'model_type':'qwen3','num_attention_heads':16,"
        "'num_hidden_layers':28,'num_key_value_heads':8,'rms_norm_eps':1e-06,"
        "'rope_scaling':null,'rope_theta':1000000,'sliding_window':null,"
        "'tie_word_embeddings':true,'use_sliding_window':false,"
        "'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen3");
    assert_sizes(&m->h, 28, 1024, 3072, 16, 8, 128);
    assert_llama_like(&m->h);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    m = read_small("Qwen3ForCausalLM", "");
    ck_assert_uint_eq(m->h.head_dim, 128);
    m = read_small("Qwen3ForCausalLM", "'head_dim':null");
    ck_assert_uint_eq(m->h.head_dim, 16);
}
END_TEST

START_TEST(qwen3_30b_a3b)
{
    struct model *m = read_model(
        "{'architectures':['Qwen3MoeForCausalLM'],'attention_bias':false,"
        "'decoder_sparse_step':1,'head_dim':128,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':6144,"
        "'max_position_embeddings':40960,'max_window_layers':48,"
        "'mlp_only_layers':[],'model_type':'qwen3_moe',"
        "'moe_intermediate_size':768,'norm_topk_prob':true,"
        "'num_attention_heads':32,'num_experts':128,'num_experts_per_tok':8,"
        "'num_hidden_layers':48,'num_key_value_heads':4,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':1000000.0,"
        "'sliding_window':null,'tie_word_embeddings':false,"
        "'use_sliding_window':false,'vocab_size':151936}");

    ck_assert_str_eq(m->h.architecture, "qwen3moe");
    assert_sizes(&m->h, 48, 2048, 6144, 32, 4, 128);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.expert_dim, 768);
    ck_assert_uint_eq(m->h.shared_dim, 0);
    ck_assert(m->h.router_renormalises);
    /* Newer versions of the library write the number so. */
    m = read_small("Qwen3MoeForCausalLM", "'num_local_experts':16");
    ck_assert_uint_eq(m->h.n_experts, 16);
    ck_assert_uint_eq(m->h.head_dim, 16);
}
END_TEST

/* ---- Gemma ---- */

START_TEST(gemma_2b)
{
    struct model *m = read_model(
        "{'architectures':['GemmaForCausalLM'],'attention_bias':false,"
        "'bos_token_id':2,'eos_token_id':1,'head_dim':256,"
        "'hidden_act':'gelu','hidden_activation':null,'hidden_size':2048,"
        "'intermediate_size':16384,'max_position_embeddings':8192,"
        "'model_type':'gemma','num_attention_heads':8,"
        "'num_hidden_layers':18,'num_key_value_heads':1,'pad_token_id':0,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':10000.0,"
        "'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "gemma");
    assert_sizes(&m->h, 18, 2048, 16384, 8, 1, 256);
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_BEFORE);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert_double_eq(m->h.embedding_scale, sqrt(2048));
    ck_assert_double_eq(m->h.attn_scale, 0);
    ck_assert_double_eq(m->h.attn_softcap, 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert(m->h.is_gated);
    m = read_small("GemmaForCausalLM", "'hidden_activation':'gelu'");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert_uint_eq(m->h.head_dim, 256);
    assert_unsupported("GemmaForCausalLM", "'hidden_act':'silu'",
                       "the activation 'silu'");
    assert_unsupported("GemmaForCausalLM",
                       "'use_bidirectional_attention':true",
                       "'use_bidirectional_attention'");
}
END_TEST

START_TEST(gemma_2_2b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma2ForCausalLM'],'attention_bias':false,"
        "'attn_logit_softcapping':50.0,'bos_token_id':2,"
        "'cache_implementation':'hybrid','eos_token_id':1,"
        "'final_logit_softcapping':30.0,'head_dim':256,"
        "'hidden_act':'gelu_pytorch_tanh',"
        "'hidden_activation':'gelu_pytorch_tanh','hidden_size':2304,"
        "'intermediate_size':9216,'max_position_embeddings':8192,"
        "'model_type':'gemma2','num_attention_heads':8,"
        "'num_hidden_layers':26,'num_key_value_heads':4,"
        "'query_pre_attn_scalar':256,'rms_norm_eps':1e-06,"
        "'rope_theta':10000.0,'sliding_window':4096,'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "gemma2");
    assert_sizes(&m->h, 26, 2304, 9216, 8, 4, 256);
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_double_eq(m->h.attn_scale, 0.0625);
    ck_assert_double_eq(m->h.attn_softcap, 50);
    ck_assert_double_eq(m->h.logit_softcap, 30);
    ck_assert_uint_eq(m->h.sliding_window, 4096);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x");
    ck_assert_double_eq(m->h.rope_local_theta, 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("Gemma2ForCausalLM", "'query_pre_attn_scalar':144,"
                                        "'final_logit_softcapping':null");
    assert_near(m->h.attn_scale, 1.0 / 12);
    ck_assert_double_eq(m->h.attn_softcap, 50);
    ck_assert_double_eq(m->h.logit_softcap, 0);
    assert_wrong("Gemma2ForCausalLM", "'query_pre_attn_scalar':0",
                 "'query_pre_attn_scalar'");
}
END_TEST

START_TEST(gemma_3_1b)
{
    struct model *m = read_model(
        "{'architectures':['Gemma3ForCausalLM'],'attention_bias':false,"
        "'attn_logit_softcapping':null,'bos_token_id':2,"
        "'cache_implementation':'hybrid','eos_token_id':[1,106],"
        "'final_logit_softcapping':null,'head_dim':256,"
        "'hidden_activation':'gelu_pytorch_tanh','hidden_size':1152,"
        "'intermediate_size':6912,'max_position_embeddings':32768,"
        "'model_type':'gemma3_text','num_attention_heads':4,"
        "'num_hidden_layers':26,'num_key_value_heads':1,"
        "'query_pre_attn_scalar':256,'rms_norm_eps':1e-06,"
        "'rope_local_base_freq':10000,'rope_scaling':null,"
        "'rope_theta':1000000,'sliding_window':512,"
        "'sliding_window_pattern':6,'vocab_size':262144}");

    ck_assert_str_eq(m->h.architecture, "gemma3");
    assert_sizes(&m->h, 26, 1152, 6912, 4, 1, 256);
    assert_source(&m->source, false, false, true, false);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AROUND);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.sliding_window, 512);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".....x");
    ck_assert_double_eq(m->h.rope_theta, 1e6);
    ck_assert_double_eq(m->h.rope_local_theta, 10000);
    ck_assert_double_eq(m->h.attn_softcap, 0);
    ck_assert_double_eq(m->h.logit_softcap, 0);
    ck_assert_uint_eq(m->h.n_eos, 2);
    ck_assert_int_eq(m->h.eos[1], 106);
    m = read_small("Gemma3ForCausalLM", "'sliding_window_pattern':1");
    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert_double_eq(m->h.rope_local_theta, 0);
    assert_layers(&m->h, LMQ_LAYER_FULL, ".");
    assert_wrong("Gemma3ForCausalLM", "'sliding_window_pattern':0",
                 "'sliding_window_pattern'");
    assert_wrong("Gemma3ForCausalLM", "'sliding_window':null",
                 "'sliding_window'");
}
END_TEST

START_TEST(gemma_3_4b_speaks_of_its_text_model)
{
    struct model *m = read_model(
        "{'architectures':['Gemma3ForConditionalGeneration'],"
        "'boi_token_index':255999,'eoi_token_index':256000,"
        "'eos_token_id':[1,106],'image_token_index':262144,"
        "'mm_tokens_per_image':256,'model_type':'gemma3','text_config':{"
        "'hidden_size':2560,'intermediate_size':10240,"
        "'model_type':'gemma3_text','num_hidden_layers':34,"
        "'rope_scaling':{'factor':8.0,'rope_type':'linear'},"
        "'sliding_window':1024},'vision_config':{'hidden_size':1152,"
        "'model_type':'siglip_vision_model','num_hidden_layers':27}}");

    ck_assert_str_eq(m->h.architecture, "gemma3");
    assert_sizes(&m->h, 34, 2560, 10240, 8, 4, 256);
    ck_assert_uint_eq(m->h.vocab_size, 262208);
    ck_assert_uint_eq(m->h.sliding_window, 1024);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LINEAR);
    ck_assert_double_eq(m->h.rope_factor, 8);
    ck_assert_double_eq(m->h.rope_local_theta, 10000);
    ck_assert_uint_eq(m->h.n_eos, 2);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("Gemma3ForConditionalGeneration",
                   "'tie_word_embeddings':false,'eos_token_id':7,"
                   "'text_config':{'tie_word_embeddings':true,"
                   "'eos_token_id':[8,9]}");
    ck_assert_int_eq(m->h.tie, LMQ_TIE_NO);
    ck_assert_uint_eq(m->h.n_eos, 1);
    ck_assert_int_eq(m->h.eos[0], 7);
    assert_wrong("Gemma3ForConditionalGeneration", "'x':1", "'text_config'");
    assert_wrong("Gemma3ForConditionalGeneration", "'text_config':3",
                 "'text_config'");
}
END_TEST

START_TEST(newer_files_have_rotary_positions_by_kind_of_layer)
{
    struct model *m = read_small(
        "Gemma3ForCausalLM",
        "'layer_types':['sliding_attention','full_attention',"
        "'sliding_attention','full_attention','sliding_attention',"
        "'full_attention','sliding_attention','sliding_attention'],"
        "'rope_parameters':{'full_attention':{'rope_type':'linear',"
        "'factor':8.0,'rope_theta':2000000.0},'sliding_attention':{"
        "'rope_type':'default','rope_theta':20000.0}}");

    ck_assert_str_eq(m->h.unsupported, "");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x.x.x..");
    ck_assert_double_eq(m->h.rope_theta, 2e6);
    ck_assert_double_eq(m->h.rope_local_theta, 20000);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LINEAR);
    ck_assert_double_eq(m->h.rope_factor, 8);
    assert_unsupported("Gemma3ForCausalLM",
                       "'rope_parameters':{'full_attention':{},"
                       "'sliding_attention':{'rope_type':'linear',"
                       "'factor':2}}",
                       "rotary scaling of layers with a window");
    assert_unsupported("Gemma2ForCausalLM",
                       "'rope_parameters':{'full_attention':{},"
                       "'sliding_attention':{'rope_theta':5000}}",
                       "rotary positions by kind of layer");
}
END_TEST

/* ---- Phi ---- */

START_TEST(phi_2)
{
    struct model *m = read_model(
        "{'architectures':['PhiForCausalLM'],'attention_dropout':0.0,"
        "'bos_token_id':50256,'embd_pdrop':0.0,'eos_token_id':50256,"
        "'hidden_act':'gelu_new','hidden_size':2560,"
        "'intermediate_size':10240,'layer_norm_eps':1e-05,"
        "'max_position_embeddings':2048,'model_type':'phi',"
        "'num_attention_heads':32,'num_hidden_layers':32,"
        "'num_key_value_heads':32,'partial_rotary_factor':0.4,"
        "'qk_layernorm':false,'resid_pdrop':0.1,'rope_scaling':null,"
        "'rope_theta':10000.0,'tie_word_embeddings':false,"
        "'vocab_size':51200}");

    ck_assert_str_eq(m->h.architecture, "phi2");
    assert_sizes(&m->h, 32, 2560, 10240, 32, 32, 80);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 32);
    m = read_small("PhiForCausalLM", "'qk_layernorm':true");
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
}
END_TEST

/* A list of n factors from `first` on, in JSON. */
static const char *
factors(char *text, size_t size, unsigned n, double first)
{
    size_t used = 0;

    for (unsigned i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%.2f",
                                 i == 0 ? "[" : ",", first + i);
    snprintf(text + used, size - used, "]");
    return text;
}

#define PHI_3_MINI                                                            \
    "'architectures':['Phi3ForCausalLM'],'attention_bias':false,"             \
    "'bos_token_id':1,'eos_token_id':32000,'hidden_act':'silu',"              \
    "'hidden_size':3072,'intermediate_size':8192,'model_type':'phi3',"        \
    "'num_attention_heads':32,'num_hidden_layers':32,"                        \
    "'num_key_value_heads':32,'rms_norm_eps':1e-05,'rope_theta':10000.0,"     \
    "'tie_word_embeddings':false,'vocab_size':32064"

START_TEST(phi_3_mini_128k)
{
    static const char *const types[] = {"longrope", "su", "yarn"};
    char text[8000], shorts[2000], longs[2000];

    factors(shorts, sizeof(shorts), 48, 1);
    factors(longs, sizeof(longs), 48, 2.5);
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text),
                 "{" PHI_3_MINI ",'max_position_embeddings':131072,"
                 "'original_max_position_embeddings':4096,"
                 "'sliding_window':262144,'rope_scaling':{'long_factor':%s,"
                 "'short_factor':%s,'type':'%s'}}",
                 longs, shorts, types[i]);
        struct model *m = read_model(text);
        ck_assert_str_eq(m->h.architecture, "phi3");
        assert_sizes(&m->h, 32, 3072, 8192, 32, 32, 96);
        assert_llama_like(&m->h);
        assert_source(&m->source, false, false, false, false);
        ck_assert_uint_eq(m->h.sliding_window, 262144);
        ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_LONGROPE);
        ck_assert_uint_eq(m->h.n_rope_factors, 48);
        ck_assert_double_eq(m->h.rope_short[47], 48);
        ck_assert_double_eq(m->h.rope_long[0], 2.5);
        ck_assert_uint_eq(m->h.rope_context, 4096);
        /* sqrt(1 + ln 32 / ln 4096), as its makers print it. */
        ck_assert_double_eq_tol(m->h.rope_attention_factor,
                                1.1902380714238083, 1e-15);
    }
}
END_TEST

START_TEST(phi_3_windows_and_phi_4)
{
    struct model *m =
        read_model("{" PHI_3_MINI ",'max_position_embeddings':4096,"
                   "'original_max_position_embeddings':4096,"
                   "'rope_scaling':null,'sliding_window':2047}");

    ck_assert_uint_eq(m->h.sliding_window, 2047);
    m = read_model(
        "{'architectures':['Phi3ForCausalLM'],'bos_token_id':100257,"
        "'eos_token_id':100265,'hidden_act':'silu','hidden_size':5120,"
        "'intermediate_size':17920,'max_position_embeddings':16384,"
        "'model_type':'phi3','num_attention_heads':40,"
        "'num_hidden_layers':40,'num_key_value_heads':10,"
        "'original_max_position_embeddings':16384,'rms_norm_eps':1e-05,"
        "'rope_scaling':null,'rope_theta':250000,'sliding_window':null,"
        "'tie_word_embeddings':false,'vocab_size':100352}");
    assert_sizes(&m->h, 40, 5120, 17920, 40, 10, 128);
    ck_assert_double_eq(m->h.rope_theta, 250000);
    ck_assert_uint_eq(m->h.sliding_window, 0);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    /* The mini one turns three quarters. */
    m = read_small("Phi3ForCausalLM",
                   "'partial_rotary_factor':0.75,'rope_scaling':{"
                   "'type':'longrope','short_factor':[1,1,1,1,1,1],"
                   "'long_factor':[1,2,3,4,5,6]}");
    ck_assert_uint_eq(m->h.rotary_dim, 12);
    m = read_small("Phi3ForCausalLM",
                   "'max_position_embeddings':8192,'rope_scaling':{"
                   "'type':'longrope','short_factor':[1,1,1,1,1,1,1,1],"
                   "'long_factor':[1,2,3,4,5,6,7,8]}");
    ck_assert_uint_eq(m->h.rope_context, 4096);
    ck_assert_double_eq(m->h.rope_factor, 2);
    assert_wrong("Phi3ForCausalLM",
                 "'rope_scaling':{'type':'longrope','short_factor':[1,1],"
                 "'long_factor':[1]}",
                 "differ in length");
    assert_wrong("Phi3ForCausalLM",
                 "'rope_scaling':{'type':'longrope','short_factor':[1,'x'],"
                 "'long_factor':[1,1]}",
                 "'short_factor'");
    assert_wrong("Phi3ForCausalLM", "'rope_scaling':{'type':'longrope'}",
                 "'short_factor'");
    assert_unsupported("Phi3ForCausalLM",
                       "'rope_scaling':{'type':'longrope','short_mscale':1,"
                       "'short_factor':[1,1,1,1,1,1,1,1],"
                       "'long_factor':[1,1,1,1,1,1,1,1]}",
                       "'short_mscale' in rotary scaling");
}
END_TEST

/* ---- GPT-2, GPT-NeoX, StableLM ---- */

START_TEST(gpt2)
{
    struct model *m = read_model(
        "{'activation_function':'gelu_new','architectures':["
        "'GPT2LMHeadModel'],'attn_pdrop':0.1,'bos_token_id':50256,"
        "'embd_pdrop':0.1,'eos_token_id':50256,'layer_norm_epsilon':1e-05,"
        "'model_type':'gpt2','n_ctx':1024,'n_embd':768,'n_head':12,"
        "'n_layer':12,'n_positions':1024,'resid_pdrop':0.1,"
        "'summary_type':'cls_index','vocab_size':50257}");

    ck_assert_str_eq(m->h.architecture, "gpt2");
    assert_sizes(&m->h, 12, 768, 3072, 12, 12, 64);
    assert_source(&m->source, false, true, false, false);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_LEARNED);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU_TANH);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.context, 1024);
    ck_assert_uint_eq(lmq_hparams_rotary_dim(&m->h), 0);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("GPT2LMHeadModel",
                   "'n_inner':70,'scale_attn_weights':false,"
                   "'max_position_embeddings':77");
    assert_sizes(&m->h, 8, 64, 70, 4, 4, 16);
    ck_assert_double_eq(m->h.attn_scale, 1);
    ck_assert_uint_eq(m->h.context, 77);
    assert_unsupported("GPT2LMHeadModel",
                       "'scale_attn_by_inverse_layer_idx':true",
                       "'scale_attn_by_inverse_layer_idx'");
    assert_unsupported("GPT2LMHeadModel", "'add_cross_attention':true",
                       "'add_cross_attention'");
}
END_TEST

START_TEST(pythia_160m)
{
    struct model *m = read_model(
        "{'architectures':['GPTNeoXForCausalLM'],'bos_token_id':0,"
        "'eos_token_id':0,'hidden_act':'gelu','hidden_size':768,"
        "'intermediate_size':3072,'layer_norm_eps':1e-05,"
        "'max_position_embeddings':2048,'model_type':'gpt_neox',"
        "'num_attention_heads':12,'num_hidden_layers':12,"
        "'rotary_emb_base':10000,'rotary_pct':0.25,"
        "'tie_word_embeddings':false,'use_parallel_residual':true,"
        "'vocab_size':50304}");

    ck_assert_str_eq(m->h.architecture, "gptneox");
    assert_sizes(&m->h, 12, 768, 3072, 12, 12, 64);
    assert_source(&m->source, false, false, false, true);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert(!m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 16);
    m = read_small("GPTNeoXForCausalLM",
                   "'use_parallel_residual':false,'rotary_emb_base':50000,"
                   "'rotary_pct':1.0,'rope_theta':3");
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_double_eq(m->h.rope_theta, 50000);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    m = read_small("GPTNeoXForCausalLM",
                   "'rope_parameters':{'rope_type':'default',"
                   "'rope_theta':7000,'partial_rotary_factor':0.5}");
    ck_assert_double_eq(m->h.rope_theta, 7000);
    ck_assert_uint_eq(m->h.rotary_dim, 8);
}
END_TEST

START_TEST(stablelm_2_1_6b)
{
    struct model *m = read_model(
        "{'architectures':['StableLmForCausalLM'],'bos_token_id':100257,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':2048,"
        "'intermediate_size':5632,'layer_norm_eps':1e-05,"
        "'max_position_embeddings':4096,'model_type':'stablelm',"
        "'num_attention_heads':32,'num_hidden_layers':24,"
        "'num_key_value_heads':32,'partial_rotary_factor':0.25,"
        "'rope_theta':10000,'tie_word_embeddings':false,"
        "'use_qkv_bias':true,'vocab_size':100352}");

    ck_assert_str_eq(m->h.architecture, "stablelm");
    assert_sizes(&m->h, 24, 2048, 5632, 32, 32, 64);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    ck_assert(m->h.is_gated);
    ck_assert_uint_eq(m->h.rotary_dim, 16);
    m = read_small("StableLmForCausalLM", /* as 12B */
                   "'use_parallel_residual':true,'qk_layernorm':true");
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEADS);
    ck_assert_uint_eq(m->h.rotary_dim, 4);
}
END_TEST

/* ---- Falcon ---- */

START_TEST(falcon_7b)
{
    struct model *m = read_model(
        "{'alibi':false,'apply_residual_connection_post_layernorm':false,"
        "'architectures':['FalconForCausalLM'],'bias':false,"
        "'bos_token_id':11,'eos_token_id':11,'hidden_dropout':0.0,"
        "'hidden_size':4544,'layer_norm_epsilon':1e-05,"
        "'model_type':'falcon','multi_query':true,"
        "'new_decoder_architecture':false,'num_attention_heads':71,"
        "'num_hidden_layers':32,'num_kv_heads':71,'parallel_attn':true,"
        "'vocab_size':65024}");

    ck_assert_str_eq(m->h.architecture, "falcon");
    assert_sizes(&m->h, 32, 4544, 18176, 71, 1, 64);
    assert_source(&m->source, false, false, false, true);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ROTARY);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_GELU);
    ck_assert(!m->h.is_gated);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
}
END_TEST

START_TEST(falcon_40b_in_both_forms)
{
    struct model *m = read_model(
        "{'alibi':false,'architectures':['FalconForCausalLM'],'bias':false,"
        "'hidden_size':8192,'layer_norm_epsilon':1e-05,"
        "'model_type':'falcon','multi_query':true,"
        "'new_decoder_architecture':true,'num_attention_heads':128,"
        "'num_hidden_layers':60,'num_kv_heads':8,'parallel_attn':true,"
        "'vocab_size':65024}");

    assert_sizes(&m->h, 60, 8192, 32768, 128, 8, 64);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL);
    m = read_model(
        "{'alibi':false,'architectures':['RWForCausalLM'],'bias':false,"
        "'hidden_size':8192,'layer_norm_epsilon':1e-05,"
        "'model_type':'RefinedWeb','multi_query':true,'n_head':128,"
        "'n_head_kv':8,'n_layer':60,'parallel_attn':true,"
        "'vocab_size':65024}");
    assert_sizes(&m->h, 60, 8192, 32768, 128, 8, 64);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL);
    m = read_small("FalconForCausalLM", /* as 11B */
                   "'new_decoder_architecture':true,'num_kv_heads':2,"
                   "'num_ln_in_parallel_attn':1,'ffn_hidden_size':100,"
                   "'rope_theta':500042");
    assert_sizes(&m->h, 8, 64, 100, 4, 2, 16);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_double_eq(m->h.rope_theta, 500042);
    assert_unsupported("FalconForCausalLM",
                       "'new_decoder_architecture':true,"
                       "'parallel_attn':false",
                       "'parallel_attn' with 'new_decoder_architecture'");
    assert_unsupported("FalconForCausalLM", "'num_ln_in_parallel_attn':2",
                       "'num_ln_in_parallel_attn' 2");
}
END_TEST

START_TEST(falcon_rw_1b)
{
    struct model *m = read_model(
        "{'alibi':true,'apply_residual_connection_post_layernorm':false,"
        "'architectures':['FalconForCausalLM'],'bias':true,"
        "'bos_token_id':1,'eos_token_id':2,'hidden_size':2048,"
        "'layer_norm_epsilon':1e-05,'model_type':'falcon',"
        "'multi_query':false,'new_decoder_architecture':false,"
        "'num_attention_heads':32,'num_hidden_layers':24,"
        "'parallel_attn':false,'vocab_size':50304}");

    assert_sizes(&m->h, 24, 2048, 8192, 32, 32, 64);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_SEQUENTIAL);
    ck_assert_int_eq(m->h.positions, LMQ_POSITIONS_ALIBI_SCALED);
    assert_unsupported("RWForCausalLM",
                       "'apply_residual_connection_post_layernorm':true",
                       "'apply_residual_connection_post_layernorm'");
}
END_TEST

/* ---- OLMo, Cohere ---- */

START_TEST(olmo_1b_and_7b)
{
    struct model *m = read_model(
        "{'architectures':['OlmoForCausalLM'],'attention_bias':false,"
        "'clip_qkv':null,'eos_token_id':50279,'hidden_act':'silu',"
        "'hidden_size':2048,'intermediate_size':8192,"
        "'max_position_embeddings':2048,'model_type':'olmo',"
        "'num_attention_heads':16,'num_hidden_layers':16,"
        "'num_key_value_heads':16,'pad_token_id':1,'rope_scaling':null,"
        "'rope_theta':10000.0,'tie_word_embeddings':true,"
        "'vocab_size':50304}");

    ck_assert_str_eq(m->h.architecture, "olmo");
    assert_sizes(&m->h, 16, 2048, 8192, 16, 16, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER_PLAIN);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
    ck_assert_double_eq(m->h.qkv_clip, 0);
    m = read_small("OlmoForCausalLM", "'clip_qkv':8.0,'rms_norm_eps':3");
    ck_assert_double_eq(m->h.qkv_clip, 8);
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
}
END_TEST

START_TEST(olmo_2_7b)
{
    struct model *m = read_model(
        "{'architectures':['Olmo2ForCausalLM'],'attention_bias':false,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':11008,'max_position_embeddings':4096,"
        "'model_type':'olmo2','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':32,"
        "'rms_norm_eps':1e-06,'rope_scaling':null,'rope_theta':500000,"
        "'tie_word_embeddings':false,'vocab_size':100352}");

    ck_assert_str_eq(m->h.architecture, "olmo2");
    assert_sizes(&m->h, 32, 4096, 11008, 32, 32, 128);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_RMS);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AFTER);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert_double_eq(m->h.norm_eps, 1e-6);
    m = read_small("Olmo2ForCausalLM", "");
    ck_assert_double_eq(m->h.norm_eps, 1e-5);
}
END_TEST

START_TEST(olmo_3_7b)
{
    struct model *m = read_model(
        "{'architectures':['Olmo3ForCausalLM'],'attention_bias':false,"
        "'eos_token_id':100257,'hidden_act':'silu','hidden_size':4096,"
        "'intermediate_size':11008,'max_position_embeddings':65536,"
        "'model_type':'olmo3','num_attention_heads':32,"
        "'num_hidden_layers':32,'num_key_value_heads':32,"
        "'rms_norm_eps':1e-06,'rope_scaling':{'attention_factor':"
        "1.2079441541679836,'beta_fast':32.0,'beta_slow':1.0,'factor':8.0,"
        "'original_max_position_embeddings':8192,'rope_type':'yarn'},"
        "'rope_theta':500000,'sliding_window':4096,"
        "'tie_word_embeddings':false,'vocab_size':100278}");

    ck_assert_str_eq(m->h.architecture, "olmo3");
    assert_sizes(&m->h, 32, 4096, 11008, 32, 32, 128);
    ck_assert_int_eq(m->h.norm_place, LMQ_NORMS_AFTER);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_WHOLE);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    ck_assert_double_eq(m->h.rope_local_theta, 500000);
    ck_assert_uint_eq(lmq_layer_window(&m->h, 30), 4096);
    ck_assert_uint_eq(lmq_layer_window(&m->h, 31), 0);
    m = read_small("Olmo3ForCausalLM",
                   "'rope_parameters':{'full_attention':{'rope_theta':7e5,"
                   "'rope_type':'default'},'sliding_attention':"
                   "{'rope_theta':6e5,'rope_type':'default'}}");
    ck_assert_double_eq(m->h.rope_theta, 7e5);
    ck_assert_double_eq(m->h.rope_local_theta, 6e5);
}
END_TEST

/* Whether layers with a window follow depends on the library's version. */
START_TEST(an_olmo_3_with_another_base_is_not_understood)
{
    struct model model;
    struct lmq_error err = {0};
    bool is_known;

    ck_assert_int_eq(parse("{'architectures':['Olmo3ForCausalLM'],"
                           "'rope_theta':10000," SMALL "}",
                           &model, &is_known, &err),
                     LMQ_OK);
    ck_assert_ptr_nonnull(strstr(model.h.unsupported, "'rope_theta'"));
}
END_TEST

START_TEST(command_r_and_its_larger_one)
{
    struct model *m = read_model(
        "{'architectures':['CohereForCausalLM'],'attention_bias':false,"
        "'bos_token_id':5,'eos_token_id':255001,'hidden_act':'silu',"
        "'hidden_size':8192,'intermediate_size':22528,"
        "'layer_norm_eps':1e-05,'logit_scale':0.0625,"
        "'max_position_embeddings':8192,'model_max_length':131072,"
        "'model_type':'cohere','num_attention_heads':64,"
        "'num_hidden_layers':40,'num_key_value_heads':64,"
        "'rope_theta':8000000.0,'vocab_size':256000}");

    ck_assert_str_eq(m->h.architecture, "cohere");
    assert_sizes(&m->h, 40, 8192, 22528, 64, 64, 128);
    assert_source(&m->source, true, false, false, false);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_LAYER);
    ck_assert_int_eq(m->h.residual, LMQ_RESIDUAL_PARALLEL_ONE_NORM);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_NONE);
    ck_assert_double_eq(m->h.logit_scale, 0.0625);
    ck_assert_double_eq(m->h.rope_theta, 8e6);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    ck_assert(m->h.is_gated);
    m = read_model(
        "{'architectures':['CohereForCausalLM'],'attention_bias':false,"
        "'hidden_act':'silu','hidden_size':12288,"
        "'intermediate_size':33792,'layer_norm_eps':1e-05,"
        "'logit_scale':0.8333333333333334,'max_position_embeddings':8192,"
        "'model_type':'cohere','num_attention_heads':96,"
        "'num_hidden_layers':64,'num_key_value_heads':8,"
        "'rope_theta':75000000.0,'tie_word_embeddings':true,"
        "'use_qk_norm':true,'vocab_size':256000}");
    assert_sizes(&m->h, 64, 12288, 33792, 96, 8, 128);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEADS);
    ck_assert_double_eq(m->h.logit_scale, 0.8333333333333334);
}
END_TEST

/* ---- DeepSeek ---- */

START_TEST(deepseek_v2_lite)
{
    struct model *m = read_model(
        "{'architectures':['DeepseekV2ForCausalLM'],'attention_bias':false,"
        "'aux_loss_alpha':0.001,'bos_token_id':100000,"
        "'eos_token_id':100001,'first_k_dense_replace':1,"
        "'hidden_act':'silu','hidden_size':2048,'intermediate_size':10944,"
        "'kv_lora_rank':512,'max_position_embeddings':163840,"
        "'model_type':'deepseek_v2','moe_intermediate_size':1408,"
        "'moe_layer_freq':1,'n_group':1,'n_routed_experts':64,"
        "'n_shared_experts':2,'norm_topk_prob':false,"
        "'num_attention_heads':16,'num_experts_per_tok':6,"
        "'num_hidden_layers':27,'num_key_value_heads':16,"
        "'q_lora_rank':null,'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'rms_norm_eps':1e-06,'rope_scaling':{'beta_fast':32,'beta_slow':1,"
        "'factor':40,'mscale':0.707,'mscale_all_dim':0.707,"
        "'original_max_position_embeddings':4096,'type':'yarn'},"
        "'rope_theta':10000,'routed_scaling_factor':1.0,"
        "'scoring_func':'softmax','seq_aux':true,"
        "'tie_word_embeddings':false,'topk_group':1,'topk_method':'greedy',"
        "'v_head_dim':128,'vocab_size':102400}");
    double scale = 0.1 * 0.707 * log(40) + 1;

    ck_assert_str_eq(m->h.architecture, "deepseek2");
    assert_sizes(&m->h, 27, 2048, 10944, 16, 16, 192);
    assert_source(&m->source, true, false, false, false);
    ck_assert_uint_eq(m->h.q_lora_rank, 0);
    ck_assert_uint_eq(m->h.kv_lora_rank, 512);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_uint_eq(m->h.value_dim, 128);
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    ck_assert_double_eq(m->h.rope_factor, 40);
    ck_assert_uint_eq(m->h.rope_context, 4096);
    ck_assert_double_eq(m->h.rope_attention_factor, 1);
    assert_near(m->h.attn_scale, scale * scale / sqrt(192));
    ck_assert_uint_eq(m->h.n_experts, 64);
    ck_assert_uint_eq(m->h.n_experts_used, 6);
    ck_assert_uint_eq(m->h.expert_dim, 1408);
    ck_assert_uint_eq(m->h.shared_dim, 2816);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    ck_assert(!m->h.router_renormalises && !m->h.router_corrects);
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
}
END_TEST

#define ROUTED ",'num_experts_per_tok':2,'n_routed_experts':16"

START_TEST(deepseek_v2_routes_in_groups)
{
    struct model *m = read_small(
        "DeepseekV2ForCausalLM",
        "'topk_method':'group_limited_greedy','n_group':8,'topk_group':3,"
        "'routed_scaling_factor':16.0,'moe_layer_freq':2,"
        "'first_k_dense_replace':1" ROUTED);

    ck_assert_str_eq(m->h.unsupported, "");
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert_uint_eq(m->h.n_expert_groups_used, 3);
    ck_assert_int_eq(m->h.expert_group_worth, LMQ_GROUP_WORTH_BEST);
    ck_assert_double_eq(m->h.router_scale, 16);
    ck_assert_uint_eq(m->h.q_lora_rank, 1536);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xx.x.x.x");
    ck_assert_double_eq(m->h.attn_scale, 0);
    assert_unsupported("DeepseekV2ForCausalLM", "'topk_method':'x'" ROUTED,
                       "'topk_method' 'x'");
    assert_unsupported("DeepseekV2ForCausalLM", "'norm_topk_prob':true" ROUTED,
                       "'norm_topk_prob' in a model of this kind");
    assert_wrong("DeepseekV2ForCausalLM", "'moe_layer_freq':0" ROUTED,
                 "'moe_layer_freq'");
    assert_wrong("DeepseekV2ForCausalLM", "'qk_rope_head_dim':0" ROUTED,
                 "'qk_rope_head_dim'");
    assert_wrong("DeepseekV2ForCausalLM",
                 "'qk_nope_head_dim':4294967295" ROUTED, "size");
    assert_wrong("DeepseekV2ForCausalLM",
                 "'n_shared_experts':4294967295" ROUTED, "size");
    m = read_small("DeepseekV2ForCausalLM", "'n_routed_experts':null");
    ck_assert_uint_eq(m->h.n_experts, 0);
    ck_assert_uint_eq(m->h.shared_dim, 0);
    m = read_small("DeepseekV2ForCausalLM", "'n_shared_experts':null" ROUTED);
    ck_assert_uint_eq(m->h.shared_dim, 0);
}
END_TEST

START_TEST(deepseek_v3)
{
    struct model *m = read_model(
        "{'architectures':['DeepseekV3ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':0,'eos_token_id':1,'ep_size':1,"
        "'first_k_dense_replace':3,'hidden_act':'silu',"
        "'hidden_size':7168,'intermediate_size':18432,'kv_lora_rank':512,"
        "'max_position_embeddings':163840,'model_type':'deepseek_v3',"
        "'moe_intermediate_size':2048,'moe_layer_freq':1,'n_group':8,"
        "'n_routed_experts':256,'n_shared_experts':1,"
        "'norm_topk_prob':true,'num_attention_heads':128,"
        "'num_experts_per_tok':8,'num_hidden_layers':61,"
        "'num_key_value_heads':128,'num_nextn_predict_layers':1,"
        "'q_lora_rank':1536,'qk_nope_head_dim':128,'qk_rope_head_dim':64,"
        "'quantization_config':{'activation_scheme':'dynamic',"
        "'fmt':'e4m3','quant_method':'fp8','weight_block_size':[128,128]},"
        "'rms_norm_eps':1e-06,'rope_scaling':{'beta_fast':32,'beta_slow':1,"
        "'factor':40,'mscale':1.0,'mscale_all_dim':1.0,"
        "'original_max_position_embeddings':4096,'type':'yarn'},"
        "'rope_theta':10000,'routed_scaling_factor':2.5,"
        "'scoring_func':'sigmoid','tie_word_embeddings':false,"
        "'topk_group':4,'topk_method':'noaux_tc','v_head_dim':128,"
        "'vocab_size':129280}");
    double scale = 0.1 * log(40) + 1;

    ck_assert_str_eq(m->h.architecture, "deepseek2");
    assert_sizes(&m->h, 61, 7168, 18432, 128, 128, 192);
    assert_source(&m->source, true, false, false, false);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    ck_assert_uint_eq(m->h.q_lora_rank, 1536);
    ck_assert_double_eq(m->h.rope_attention_factor, 1);
    assert_near(m->h.attn_scale, scale * scale / sqrt(192));
    ck_assert_uint_eq(m->h.n_experts, 256);
    ck_assert_uint_eq(m->h.n_experts_used, 8);
    ck_assert_uint_eq(m->h.shared_dim, 2048);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_renormalises && m->h.router_corrects);
    ck_assert_double_eq(m->h.router_scale, 2.5);
    ck_assert_uint_eq(m->h.n_expert_groups, 8);
    ck_assert_uint_eq(m->h.n_expert_groups_used, 4);
    ck_assert_int_eq(m->h.expert_group_worth, LMQ_GROUP_WORTH_BEST_TWO);
    ck_assert(lmq_layer_is(&m->h, 2, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 3, LMQ_LAYER_DENSE));
    m = read_small("DeepseekV3ForCausalLM",
                   "'n_group':1,'topk_group':1,'rope_interleave':false" ROUTED);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    ck_assert(m->h.router_renormalises);
    ck_assert_double_eq(m->h.router_scale, 2.5);
    assert_source(&m->source, false, false, false, false);
    m = read_small("DeepseekV3ForCausalLM", /* all groups are chosen */
                   "'n_group':4,'topk_group':4" ROUTED);
    ck_assert_uint_eq(m->h.n_expert_groups, 0);
    assert_unsupported("DeepseekV3ForCausalLM",
                       "'scoring_func':'softmax'" ROUTED,
                       "'scoring_func' 'softmax'");
    assert_unsupported("DeepseekV3ForCausalLM",
                       "'topk_method':'greedy'" ROUTED,
                       "'topk_method' 'greedy'");
}
END_TEST

/* ---- Which family ---- */

START_TEST(the_model_type_decides_where_no_class_is_named)
{
    static const char *const types[][2] = {
        {"llama", "llama"},         {"mistral", "mistral"},
        {"mixtral", "mixtral"},     {"qwen2", "qwen2"},
        {"qwen2_moe", "qwen2moe"},  {"qwen3", "qwen3"},
        {"qwen3_moe", "qwen3moe"},  {"gemma", "gemma"},
        {"gemma2", "gemma2"},       {"gemma3_text", "gemma3"},
        {"phi", "phi2"},            {"phi3", "phi3"},
        {"gpt2", "gpt2"},           {"gpt_neox", "gptneox"},
        {"falcon", "falcon"},       {"RefinedWebModel", "falcon"},
        {"stablelm", "stablelm"},   {"olmo", "olmo"},
        {"olmo2", "olmo2"},         {"granite", "granite"},
        {"cohere", "cohere"},       {"deepseek_v2", "deepseek2"},
        {"deepseek_v3", "deepseek2"}, {"smollm3", "smollm3"},
        {"olmo3", "olmo3"},
    };
    struct model model;
    struct lmq_error err = {0};
    char text[512];
    bool is_known;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        snprintf(text, sizeof(text), "{'model_type':'%s'," SMALL "}",
                 types[i][0]);
        ck_assert_msg(parse(text, &model, &is_known, &err) == LMQ_OK, "%s: %s",
                      types[i][0], err.message);
        ck_assert(is_known);
        ck_assert_str_eq(model.h.architecture, types[i][1]);
        ck_assert_str_eq(model.h.unsupported, "");
    }
    /* A class that we do not know is not one that we guess. */
    ck_assert_int_eq(parse("{'architectures':['LlamaForX'],"
                           "'model_type':'llama'," SMALL "}",
                           &model, &is_known, &err),
                     LMQ_OK);
    ck_assert(!is_known);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        llama_3_2_1b,
        mistral_7b,
        mixtral_8x7b,
        smollm3_3b,
        granite_3_0_2b,
        qwen2_5_0_5b,
        qwen1_5_moe_a2_7b,
        qwen3_0_6b,
        qwen3_30b_a3b,
        gemma_2b,
        gemma_2_2b,
        gemma_3_1b,
        gemma_3_4b_speaks_of_its_text_model,
        newer_files_have_rotary_positions_by_kind_of_layer,
        phi_2,
        phi_3_mini_128k,
        phi_3_windows_and_phi_4,
        gpt2,
        pythia_160m,
        stablelm_2_1_6b,
        falcon_7b,
        falcon_40b_in_both_forms,
        falcon_rw_1b,
        olmo_1b_and_7b,
        olmo_2_7b,
        olmo_3_7b,
        an_olmo_3_with_another_base_is_not_understood,
        command_r_and_its_larger_one,
        deepseek_v2_lite,
        deepseek_v2_routes_in_groups,
        deepseek_v3,
        the_model_type_decides_where_no_class_is_named,
    };

    return RUN_SUITE("hf_families", tests);
}
