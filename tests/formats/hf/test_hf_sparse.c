/*
 * test_hf_sparse.c - MiniMax M3, whose sparse attention chooses blocks, and HY
 * V4, which has hyper-connections, by config.json and by the keys of a GGUF.
 */
#include "config.h"

#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

#define SPARSE(blocks, size, value)                                           \
    "'sparse_attention_config':{'sparse_attention_freq':[0,0,0,1,1,1,1,1],"   \
    "'sparse_block_size':" size ",'sparse_disable_index_value':[0,0,0," value \
    ",1,1,1,1],'sparse_topk_blocks':" blocks "}"

START_TEST(minimax_m3)
{
    static const char class[] = "MiniMaxM3VLForCausalLM";
    struct model *m = read_model(
        "{'architectures':['MiniMaxM3SparseForConditionalGeneration'],"
        "'model_type':'minimax_m3_vl','image_token_index':200025,"
        "'text_config':{'model_type':'minimax_m3_vl_text','rope_theta':"
        "5000000,'partial_rotary_factor':0.5,'moe_layer_freq':[0,0,0,1,1,1],"
        "'num_hidden_layers':6,'sparse_attention_config':{"
        "'sparse_attention_freq':[0,0,0,1,1,1],'use_sparse_attention':true}}"
        ",'vision_config':{'hidden_size':1280}}");

    ck_assert_str_eq(m->h.architecture, "minimax-m3");
    assert_sizes(&m->h, 6, 6144, 12288, 64, 4, 128);
    ck_assert_uint_eq(m->h.context, 2048);
    ck_assert_uint_eq(m->h.context_end, 2048);
    ck_assert_uint_eq(m->source.n_chosen, 2048);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    assert_near(m->h.rope_theta, 5e6);
    ck_assert_int_eq(m->h.qk_norm, LMQ_QK_NORM_HEAD);
    ck_assert(m->source.norms_less_one);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    assert_near(m->h.activation_slope, 1.702);
    assert_near(m->h.glu_limit, 7);
    assert_near(m->h.glu_offset, 1);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.n_experts_used, 4);
    ck_assert_uint_eq(m->h.expert_dim, 3072);
    ck_assert_uint_eq(m->h.shared_dim, 3072);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert(m->h.router_renormalises && m->h.router_corrects);
    assert_near(m->h.router_scale, 2);
    assert_layers(&m->h, LMQ_LAYER_DENSE, "xxx...");
    m = read_small(class, "'index_topk_blocks':3,'index_block_size':32,"
                          "'layer_types':['full_attention',"
                          "'minimax_m3_sparse','full_attention',"
                          "'full_attention','full_attention',"
                          "'full_attention','full_attention',"
                          "'full_attention'],'mlp_layer_types':['sparse',"
                          "'dense','sparse','sparse','sparse','sparse',"
                          "'sparse','dense'],'hidden_act':'silu'");
    ck_assert_uint_eq(m->h.context_end, 96);
    ck_assert_uint_eq(m->h.context, 96);
    ck_assert_uint_eq(m->h.rotary_dim, 0);
    assert_layers(&m->h, LMQ_LAYER_DENSE, ".x.....x");
    m = read_small(class, "'index_topk_blocks':0"); /* no layer chooses */
    ck_assert_uint_eq(m->h.context_end, 0);
    ck_assert_uint_eq(m->h.context, 524288);
    ck_assert_uint_eq(m->source.n_chosen, 0);
    m = read_small(class, SPARSE("5", "8", "1") ",'index_topk_blocks':0");
    ck_assert_uint_eq(m->h.context_end, 40);
}
END_TEST

START_TEST(other_minimax_m3_are_refused)
{
    static const char class[] = "MiniMaxM3VLForCausalLM";

    assert_unsupported(class, SPARSE("5", "8", "0"),
                       "a 0 in 'sparse_disable_index_value'");
    assert_unsupported(class, "'rotary_dim':64",
                       "a 'rotary_dim' of 64 where 128 of a head turn");
    assert_unsupported(class, "'swiglu_limit':0", "'swiglu_limit' 0");
    assert_unsupported(class, "'qk_norm_type':'per_layer'",
                       "'qk_norm_type' 'per_layer'");
    assert_unsupported(class, "'scoring_func':'softmax'",
                       "'scoring_func' 'softmax'");
    assert_unsupported(class, "'use_gemma_norm':false",
                       "'use_gemma_norm' false");
    assert_unsupported(class, "'moe_layer_freq':[0,2,1,1,1,1,1,1]",
                       "a 2 in 'moe_layer_freq'");
    assert_wrong(class, SPARSE("0", "8", "1"),
                 "sparse attention of 0 blocks of 8 tokens");
    assert_wrong(class, SPARSE("5", "0", "1"),
                 "sparse attention of 5 blocks of 0 tokens");
    assert_wrong(class, SPARSE("16777216", "2", "1"),
                 "a size in the configuration is 16777216 * 2");
    assert_wrong(class, "'sparse_attention_config':{"
                        "'sparse_attention_freq':[1]}",
                 "'sparse_attention_freq' in the configuration names 1 of 8");
    assert_unsupported("DeepseekV3ForCausalLM",
                       "'layer_types':['minimax_m3_sparse',"
                       "'full_attention','full_attention','full_attention',"
                       "'full_attention','full_attention','full_attention',"
                       "'full_attention']",
                       "'minimax_m3_sparse' in 'layer_types'");
}
END_TEST

static enum lmq_status
read_blocks(const char *name, uint32_t blocks, uint32_t size,
            struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct {
        const char *key;
        uint32_t value;
    } counts[] = {
        {".block_count", 4}, {".context_length", 4096},
        {".embedding_length", 64}, {".feed_forward_length", 96},
        {".attention.head_count", 4}, {".attention.head_count_kv", 2},
        {".expert_count", 4}, {".expert_used_count", 2},
        {".expert_feed_forward_length", 24}, {".expert_shared_count", 1},
        {".attention.indexer.block_size", size},
        {".attention.indexer.local_blocks", 1},
        {".attention.indexer.top_k", blocks},
    };
    static const struct lmq_gguf_evidence evidence = {.vocab_size = 33};
    struct lmq_gguf_builder builder = {0};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;

    lmq_gguf_build_begin(&builder);
    builder.prefix = name;
    lmq_gguf_put_text(&builder, "general.architecture", name, strlen(name));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].key, counts[i].value);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-6);
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

START_TEST(a_gguf_of_minimax_m3_chooses_blocks)
{
    static const struct {
        uint32_t blocks, size;
        const char *wrong;
    } cases[] = {
        {16, 128, NULL},
        {64, 128, NULL},
        {16, 0, "'minimax-m3.attention.indexer.top_k' is 16, of 0"},
        {0, 128, "'minimax-m3.attention.indexer.top_k' is missing or 0"},
        {1 << 26, 8, "is 67108864, of 8 each"},
        {1 << 26, 4, NULL},
    };
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t end = cases[i].blocks * cases[i].size;
        enum lmq_status status =
            read_blocks("minimax-m3", cases[i].blocks, cases[i].size,
                        &checkpoint, &err);
        const struct lmq_hparams *h = &checkpoint.hparams;
        if (cases[i].wrong != NULL) {
            ck_assert_int_eq(status, LMQ_ERR_FORMAT);
            ck_assert_ptr_nonnull(strstr(err.message, cases[i].wrong));
            continue;
        }
        ck_assert_int_eq(status, LMQ_OK);
        ck_assert_str_eq(h->unsupported, "");
        ck_assert_uint_eq(h->context_end, end);
        ck_assert_uint_eq(h->context, end < 4096 ? end : 4096);
        ck_assert_uint_eq(checkpoint.source.n_chosen, end);
        ck_assert_uint_eq(h->shared_dim, 24);
        ck_assert_int_eq(h->router, LMQ_ROUTER_SIGMOID);
        ck_assert_double_eq(h->activation_slope, 1.702);
        ck_assert_double_eq(h->glu_limit, 7);
        ck_assert_double_eq(h->glu_offset, 1);
    }
}
END_TEST

/* ---- HY V4 ---- */

START_TEST(hy_v4)
{
    static const char class[] = "HYV4ForCausalLM";
    struct model *m = read_model(
        "{'architectures':['HYV4ForCausalLM'],'model_type':'hy_v4',"
        "'attention_bias':false,'hc_eps':1e-06,'hc_magnitude':2.0,"
        "'hc_mult':4,'hidden_act':'silu','hidden_size':2816,"
        "'index_head_dim':128,'index_n_heads':16,'index_topk':2048,"
        "'intermediate_size':6912,'kv_lora_rank':512,"
        "'max_position_embeddings':262144,'moe_intermediate_size':768,"
        "'n_group':1,'n_routed_experts':256,'n_shared_experts':1,"
        "'norm_topk_prob':true,'num_attention_heads':32,"
        "'num_experts_per_tok':8,'num_hidden_layers':34,"
        "'num_key_value_heads':8,'num_nextn_predict_layers':1,"
        "'q_lora_rank':1536,'qk_nope_head_dim':192,'qk_rope_head_dim':64,"
        "'rms_norm_eps':1e-05,'rope_parameters':{'rope_theta':1000000.0,"
        "'rope_type':'default'},'routed_scaling_factor':2.827,"
        "'swiglu_limit':10.0,'tie_word_embeddings':false,'topk_group':1,"
        "'v_head_dim':256,'vocab_size':120832}");

    ck_assert_str_eq(m->h.architecture, "hy_v4");
    assert_sizes(&m->h, 34, 2816, 6912, 32, 32, 256);
    ck_assert_uint_eq(m->h.context_end, 0);
    ck_assert_uint_eq(m->h.index_topk, 2048);
    ck_assert_uint_eq(m->h.n_index_heads, 16);
    ck_assert(m->source.has_last_index && !m->source.has_index_halves);
    ck_assert(!(m->h.index_eps > 0)); /* that of all norms */
    assert_layers(&m->h, LMQ_LAYER_INDEX,
                  "xx...x...x...x...x...x...x...x...x");
    ck_assert_int_eq(m->h.stream_kind, LMQ_STREAMS_HYPER);
    ck_assert_uint_eq(m->h.n_streams, 4);
    ck_assert_uint_eq(m->h.stream_rounds, 0);
    assert_near(m->h.stream_gain, 2);
    assert_near(m->h.stream_eps, 1e-6);
    assert_near(m->h.stream_floor, 1e-6);
    assert_near(m->h.latent_eps, 1e-6);
    assert_near(m->h.glu_limit, 10);
    ck_assert(m->h.glu_limits_experts && !m->h.has_stream_mean);
    ck_assert(m->h.has_sinks && m->h.has_attn_gate && !m->h.has_head_gate);
    ck_assert(!m->source.has_rotary_pairs);
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE) &&
              !lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SIGMOID);
    ck_assert_uint_eq(m->source.n_further_layers, 1);
    m = read_model("{'architectures':['HYV4VLForConditionalGeneration'],"
                   "'model_type':'hy_v4_vl','text_config':{'hidden_size':6144,"
                   "'num_hidden_layers':78,'num_attention_heads':64,"
                   "'intermediate_size':18432,'vocab_size':120832,"
                   "'hc_eps':0.5,'model_type':'hy_v4_vl_text',"
                   "'rope_parameters':{'rope_theta':1e4,'rope_type':'default',"
                   "'mrope_section':[12,10,10]}},'vision_config':{}}");
    ck_assert_str_eq(m->h.architecture, "hy_v4_vl");
    assert_sizes(&m->h, 78, 6144, 18432, 64, 64, 256);
    ck_assert_uint_eq(m->h.q_lora_rank, 2048);
    assert_near(m->h.stream_floor, 0.5);
    ck_assert(m->source.has_rotary_pairs && !(m->h.latent_eps > 0));
    assert_unsupported(class, "'hc_mult':1", "'hc_mult' 1");
    assert_unsupported(class, "'swiglu_limit':0", "'swiglu_limit' 0");
    assert_wrong(class, "'hc_mult':9", "'hc_mult'");
    assert_wrong(class, "'q_lora_rank':0", "'q_lora_rank'");
}
END_TEST

START_TEST(a_gguf_of_hy_v4_turns_otherwise)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_error err = {0};

    ck_assert_int_eq(read_blocks("hy_v4", 16, 128, &checkpoint, &err),
                     LMQ_OK);
    ck_assert_ptr_nonnull(strstr(checkpoint.hparams.unsupported,
                                 "llama.cpp turns rows that stand side by"));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        minimax_m3,
        other_minimax_m3_are_refused,
        a_gguf_of_minimax_m3_chooses_blocks,
        hy_v4,
        a_gguf_of_hy_v4_turns_otherwise,
    };

    return RUN_SUITE("hf_sparse", tests);
}
