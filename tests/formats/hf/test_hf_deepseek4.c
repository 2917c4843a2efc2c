/*
 * test_hf_deepseek4.c - config.json of DeepSeek V4, by its makers' words and by
 * the library's; what descriptions refuse of pools and tables of experts.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/model/hparams_check.h"
#include "runtime/pools/table.h"
#include "tests/build/suite.h"
#include "tests/families/more/variants_pools.h"
#include "tests/families/variants.h"
#include "tests/formats/hf_models.h"

static struct model small;

/* A small one with these further keys. */
static enum lmq_status
parse_small(const char *more, struct lmq_error *err)
{
    char text[2048];
    bool is_known = false;

    snprintf(text, sizeof(text),
             "{'architectures':['DeepseekV4ForCausalLM'],'hidden_size':64,"
             "'num_hidden_layers':8,'num_attention_heads':8,"
             "'vocab_size':100%s}",
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

static void
assert_deepseek4(const struct lmq_hparams *h)
{
    ck_assert_str_eq(h->architecture, "deepseek4");
    ck_assert(h->has_turned_values && h->has_sinks && h->router_corrects &&
              h->router_renormalises && h->is_gated);
    ck_assert_int_eq(h->qk_norm, LMQ_QK_NORM_BARE_QUERIES);
    ck_assert_int_eq(h->router, LMQ_ROUTER_ROOT_SOFTPLUS);
    ck_assert_int_eq(h->stream_kind, LMQ_STREAMS_HYPER);
    assert_near(h->stream_gain, 2);
    assert_near(h->rope_local_theta, 10000);
    assert_near(h->rope_theta, 160000);
}

/* Numbers for layers, those of layers that predict more tokens, too. */
START_TEST(by_its_makers_words)
{
    struct model *m = read_model(
        "{'architectures':['DeepseekV4ForCausalLM'],'attention_bias':false,"
        "'bos_token_id':0,'eos_token_id':1,'hc_eps':1e-06,'hc_mult':4,"
        "'hc_sinkhorn_iters':20,'head_dim':512,'hidden_act':'silu',"
        "'hidden_size':4096,'index_head_dim':128,'index_n_heads':64,"
        "'index_topk':512,'max_position_embeddings':1048576,"
        "'model_type':'deepseek_v4','moe_intermediate_size':2048,"
        "'n_routed_experts':256,'n_shared_experts':1,'norm_topk_prob':true,"
        "'num_attention_heads':64,'num_experts_per_tok':6,"
        "'num_hidden_layers':6,'num_hash_layers':3,'num_key_value_heads':1,"
        "'num_nextn_predict_layers':1,'o_groups':8,'o_lora_rank':1024,"
        "'q_lora_rank':1024,'qk_rope_head_dim':64,'rms_norm_eps':1e-06,"
        "'rope_scaling':{'beta_fast':32,'beta_slow':1,'factor':16,"
        "'original_max_position_embeddings':65536,'type':'yarn'},"
        "'rope_theta':10000,'routed_scaling_factor':1.5,"
        "'scoring_func':'sqrtsoftplus','sliding_window':128,"
        "'swiglu_limit':10.0,'tie_word_embeddings':false,"
        "'topk_method':'noaux_tc','vocab_size':129280,"
        "'compress_rope_theta':160000,'compress_ratios':[0,0,4,128,4,128,0]}");

    assert_deepseek4(&m->h);
    assert_sizes(&m->h, 6, 4096, 2048, 64, 1, 512);
    ck_assert_uint_eq(m->h.context, 1048576);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_uint_eq(m->h.sliding_window, 128);
    ck_assert_uint_eq(m->h.overlap_size, 4);
    ck_assert_uint_eq(m->h.pool_size, 128);
    ck_assert_uint_eq(m->h.n_out_groups, 8);
    ck_assert_uint_eq(m->h.shared_dim, 2048);
    assert_layers(&m->h, LMQ_LAYER_OVERLAP, "..x.x.");
    assert_layers(&m->h, LMQ_LAYER_POOL, "...x.x");
    assert_layers(&m->h, LMQ_LAYER_TOKENS, "xxx...");
    ck_assert_int_eq(m->h.rope_scaling, LMQ_ROPE_YARN);
    assert_near(m->h.rope_attention_factor, 1);
    assert_near(m->h.glu_limit, 10);
    assert_near(m->h.router_scale, 1.5);
}
END_TEST

START_TEST(by_the_librarys_words)
{
    assert_small(",'mlp_layer_types':['hash_moe','moe','moe','moe','moe',"
                 "'moe','moe','moe'],'layer_types':['sliding_attention',"
                 "'compressed_sparse_attention',"
                 "'heavily_compressed_attention','sliding_attention',"
                 "'sliding_attention','sliding_attention',"
                 "'sliding_attention','sliding_attention'],"
                 "'compress_rates':{'compressed_sparse_attention':6,"
                 "'heavily_compressed_attention':40},'rope_parameters':{"
                 "'main':{'rope_type':'default','rope_theta':10000.0,"
                 "'partial_rotary_factor':0.25},'compress':{'rope_type':"
                 "'default','rope_theta':160000.0,"
                 "'partial_rotary_factor':0.25}}",
                 "");
    assert_deepseek4(&small.h);
    ck_assert_uint_eq(small.h.rotary_dim, 128);
    ck_assert_uint_eq(small.h.overlap_size, 6);
    ck_assert_uint_eq(small.h.pool_size, 40);
    assert_layers(&small.h, LMQ_LAYER_OVERLAP, ".x......");
    assert_layers(&small.h, LMQ_LAYER_POOL, "..x.....");
    assert_layers(&small.h, LMQ_LAYER_TOKENS, "x.......");
    /* As the class has it. */
    assert_small("", "");
    assert_deepseek4(&small.h);
    assert_layers(&small.h, LMQ_LAYER_OVERLAP, "...x.x.x");
    assert_layers(&small.h, LMQ_LAYER_POOL, "xxx.x.x.");
    assert_layers(&small.h, LMQ_LAYER_TOKENS, "xxx.....");
}
END_TEST

START_TEST(in_other_ways_it_is_refused)
{
    assert_no_small(",'num_key_value_heads':2", "one key");
    assert_small(",'index_topk':0", "'index_topk' 0");
    assert_small(",'o_groups':16", "'o_groups' 16 for 8 heads");
    assert_small(",'compress_ratios':[0,0,4,128,4,128,4,5]",
                 "a 5 in 'compress_ratios'");
    assert_small(",'layer_types':['full_attention','sliding_attention',"
                 "'sliding_attention','sliding_attention',"
                 "'sliding_attention','sliding_attention',"
                 "'sliding_attention','sliding_attention']",
                 "'full_attention' in 'layer_types'");
    assert_no_small(",'compress_ratios':[0,0]", "names 2 of 8 layers");
    assert_no_small(",'o_groups':0", "'o_groups'");
    assert_no_small(",'partial_rotary_factor':0", "nothing turns");
    assert_no_small(",'partial_rotary_factor':1.5", "nothing turns");
    assert_no_small(",'q_lora_rank':0", "'q_lora_rank'");
    assert_small(",'num_key_value_heads':2,'compress_ratios':[0,0,0,0,0,0,0,"
                 "0]",
                 "'num_key_value_heads' 2");
    assert_small(",'hc_mult':0", "'hc_mult' 0 with 'hc_sinkhorn_iters' 20");
    assert_small(",'hc_sinkhorn_iters':0",
                 "'hc_mult' 4 with 'hc_sinkhorn_iters' 0");
    assert_small(",'swiglu_limit':0", "'swiglu_limit' 0");
    assert_no_small(",'mlp_layer_types':['moe']", "names 1 of 8 layers");
    assert_small(",'mlp_layer_types':['moe','moe','moe','moe','moe','moe',"
                 "'moe','dense']",
                 "'dense' in 'mlp_layer_types'");
}
END_TEST

START_TEST(kinds_of_layers_turn_alike_but_for_the_base)
{
    assert_small(",'rope_parameters':{'main':{'partial_rotary_factor':0.25},"
                 "'compress':{'partial_rotary_factor':0.125}}",
                 "'partial_rotary_factor' of some layers alone");
    assert_small(",'rope_parameters':{'main':{'partial_rotary_factor':0.125},"
                 "'compress':{'partial_rotary_factor':0.25}}",
                 "'partial_rotary_factor' of some layers alone");
    assert_small(",'rope_parameters':{'main':{'rope_theta':10000.0}}",
                 "rotary positions of some layers alone");
    assert_small(",'rope_parameters':{'compress':{'rope_theta':160000.0}}",
                 "rotary positions of some layers alone");
    assert_small(",'rope_parameters':{'main':{'rope_type':'yarn','factor':2,"
                 "'original_max_position_embeddings':64},'compress':{}}",
                 "rotary scaling of layers without pools");
    assert_small(",'rope_scaling':{'type':'linear','factor':4}",
                 "rotary scaling other than 'yarn'");
    assert_small(",'rope_scaling':{'type':'yarn','factor':4,"
                 "'attention_factor':1.5,"
                 "'original_max_position_embeddings':64}",
                 "");
    assert_near(small.h.rope_attention_factor, 1.5);
}
END_TEST

/* ---- Descriptions ---- */

static void
assert_description(void (*change)(struct lmq_hparams *), const char *what)
{
    static struct lmq_hparams h;
    struct lmq_error err = {0};

    variant_base(&h);
    variant_pools(&h);
    ck_assert_msg(lmq_hparams_check(&h, &err) == LMQ_OK, "%s", err.message);
    change(&h);
    ck_assert_msg(lmq_hparams_check(&h, &err) == LMQ_ERR_FORMAT,
                  "%s is accepted", what);
    ck_assert_msg(strstr(err.message, what) != NULL, "'%s' says nothing of %s",
                  err.message, what);
}

/* The first layer alone. */
static void
recur(struct lmq_hparams *h)
{
    h->layers[0] |= LMQ_LAYER_DELTA;
    h->n_delta_key_heads = h->n_delta_value_heads = 2;
    h->delta_key_dim = h->delta_value_dim = 8;
    h->conv_width = 3;
}

#define CHANGE(name, statement)                                               \
    static void name(struct lmq_hparams *h) { statement; }

CHANGE(values_of_their_own, h->has_turned_values = false;
       h->qk_norm = LMQ_QK_NORM_NONE)
CHANGE(norms_of_their_own, h->has_turned_values = false)
CHANGE(late_norms, h->qk_norm_late = true)
CHANGE(other_values, h->value_dim = 8)
CHANGE(latents, h->kv_lora_rank = 8; h->qk_norm = LMQ_QK_NORM_NONE)
CHANGE(full_heads, h->full_head_dim = 8; h->rotary_dim = 0)
CHANGE(full_turning, h->full_rotary_dim = 4)
CHANGE(full_values, h->full_keys_are_values = true)
CHANGE(borrowed, h->n_borrowing = 1; h->layers[3] = h->layers[2])
CHANGE(normed_values, h->has_value_norm = true)
CHANGE(clipped, h->qkv_clip = 2)
CHANGE(whole_norms, h->qk_norm = LMQ_QK_NORM_WHOLE)
CHANGE(recurrent, recur(h))
CHANGE(recurrent_parts, recur(h); h->has_turned_values = false;
       h->qk_norm = LMQ_QK_NORM_NONE)
CHANGE(wide_parts, h->out_rank = LMQ_MAX_WIDTH / 2)
CHANGE(more_keys, h->n_kv_heads = 2)
CHANGE(no_latents, h->q_lora_rank = 0)
CHANGE(no_index, h->index_dim = 0; h->positions = LMQ_POSITIONS_NONE)
CHANGE(wide_index, h->n_index_heads = 1; h->index_dim = LMQ_MAX_WIDTH)
CHANGE(many_heads, h->n_index_heads = 1 << 15)
CHANGE(chunks, h->attention_chunk = 8; h->sliding_window = 0)
CHANGE(alibi, h->positions = LMQ_POSITIONS_ALIBI)
CHANGE(alibi_scaled, h->positions = LMQ_POSITIONS_ALIBI_SCALED)
CHANGE(wide_head, h->n_heads = 1; h->head_dim = LMQ_MAX_WIDTH;
       h->n_out_groups = 1; h->index_topk = 0)
CHANGE(near_router, h->router = LMQ_ROUTER_NEAR)
CHANGE(normed_experts, h->has_expert_norms = true)
CHANGE(no_positions, h->overlap_size = 0)
CHANGE(two_kinds, h->layers[1] |= LMQ_LAYER_POOL)
CHANGE(several_times, h->n_loops = 2)
CHANGE(other_parts, h->n_out_groups = 5)
CHANGE(no_rank, h->out_rank = 0)
CHANGE(no_heads, h->n_index_heads = 0)
CHANGE(narrow_index, h->index_dim = 6)
CHANGE(groups, h->n_expert_groups = 2; h->n_expert_groups_used = 1)

/* Norms with weights are of each head. Where a layer has no attention, nothing
 * of it is asked. */
START_TEST(descriptions_of_what_is_usual_are_accepted)
{
    static struct lmq_hparams h;
    struct lmq_error err = {0};

    variant_base(&h);
    variant_pools(&h);
    h.qk_norm = LMQ_QK_NORM_HEAD;
    ck_assert_msg(lmq_hparams_check(&h, &err) == LMQ_OK, "%s", err.message);
    h.layers[1] |= LMQ_LAYER_FEED;
    h.layers[1] |= LMQ_LAYER_POOL;
    h.layer_heads[1] = 5; /* which make no parts */
    ck_assert_msg(lmq_hparams_check(&h, &err) == LMQ_OK, "%s", err.message);
}
END_TEST

START_TEST(descriptions_that_say_too_much_are_refused)
{
    assert_description(values_of_their_own, "once turned");
    assert_description(norms_of_their_own, "without weights");
    assert_description(late_norms, "before it turns");
    assert_description(other_values, "heads that differ");
    assert_description(latents, "do not go with latents");
    assert_description(full_heads, "heads that differ");
    assert_description(full_turning, "heads that differ");
    assert_description(full_values, "heads that differ");
    assert_description(borrowed, "borrowed keys");
    assert_description(normed_values, "once turned");
    assert_description(clipped, "limits");
    assert_description(whole_norms, "before it turns");
    assert_description(recurrent, "go with values that are keys");
    assert_description(recurrent_parts, "go with matrices for parts");
    assert_description(wide_parts, "make no attention");
    assert_description(more_keys, "one key");
    assert_description(no_latents, "choose nothing");
    assert_description(no_index, "choose nothing");
    assert_description(wide_index, "choose nothing");
    assert_description(many_heads, "choose nothing");
    assert_description(chunks, "neither with chunks");
    assert_description(alibi, "ALiBi");
    assert_description(alibi_scaled, "ALiBi");
    assert_description(wide_head, "too wide for pools");
    assert_description(near_router, "table of experts");
    assert_description(normed_experts, "table of experts");
    assert_description(no_positions, "no positions");
    assert_description(two_kinds, "two kinds");
    assert_description(several_times, "layers");
    assert_description(other_parts, "parts of one size");
    assert_description(no_rank, "of rank 0");
    assert_description(no_heads, "choose nothing");
    assert_description(narrow_index, "choose nothing");
    assert_description(groups, "table of experts");
}
END_TEST

/* ---- Tables of experts ---- */

/* Rows of 2 of 3 experts, from the second token on. */
START_TEST(tables_name_experts_that_there_are)
{
    static const struct {
        float table[4];
        const char *what; /* NULL: it is one */
    } rows[] = {
        {{0, 2, 2, 0}, NULL},
        {{1, 0, 0, 3}, "3 at element 5, expected another one of 3 experts for "
                       "token 2"},
        {{-1, 0, 0, 1}, "-1 at element 2"},
        {{0, 0.5, 0, 1}, "0.5 at element 3"},
        {{0, 1, 2, 2}, "2 at element 5"},
    };
    static struct lmq_hparams h;
    struct lmq_tensor tensor = {.stored_name = (char[]){"table"}};
    struct lmq_error err = {0};

    h.n_experts = 3;
    h.n_experts_used = 2;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_int_eq(
            lmq_table_check(&h, &tensor, 2, rows[i].table, 4, &err),
            rows[i].what == NULL ? LMQ_OK : LMQ_ERR_FORMAT);
        ck_assert(rows[i].what == NULL ||
                  strstr(err.message, rows[i].what) != NULL);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        by_its_makers_words,
        by_the_librarys_words,
        in_other_ways_it_is_refused,
        kinds_of_layers_turn_alike_but_for_the_base,
        descriptions_of_what_is_usual_are_accepted,
        descriptions_that_say_too_much_are_refused,
        tables_name_experts_that_there_are,
    };

    return RUN_SUITE("hf_deepseek4", tests);
}
