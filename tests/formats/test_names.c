/*
 * test_names.c - what the names of tensors mean.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "formats/model/hparams.h"
#include "formats/model/names.h"
#include "formats/checkpoint/rope_rows.h"
#include "tests/build/suite.h"

static void
assert_means(const char *stored, const char *canonical)
{
    struct lmq_place place;
    char name[64];

    ck_assert_msg(lmq_name_parse(stored, &place), "%s is not known", stored);
    lmq_name_canonical(&place, name, sizeof(name));
    ck_assert_str_eq(name, canonical);
}

static void
assert_unknown(const char *stored)
{
    struct lmq_place place;

    ck_assert_msg(!lmq_name_parse(stored, &place), "%s is known", stored);
    ck_assert_int_eq(place.role, LMQ_ROLE_OTHER);
    ck_assert_int_eq(place.layer, -1);
}

START_TEST(every_convention_has_its_place)
{
    static const char *const names[][2] = {
        {"model.embed_tokens.weight", "token_embd.weight"},
        {"model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight"},
        {"model.layers.11.self_attn.q_proj.weight", "blk.11.attn_q.weight"},
        {"model.layers.11.self_attn.q_proj.bias", "blk.11.attn_q.bias"},
        {"model.layers.1.self_attn.k_proj.weight", "blk.1.attn_k.weight"},
        {"model.layers.1.self_attn.v_proj.weight", "blk.1.attn_v.weight"},
        {"model.layers.1.self_attn.o_proj.weight",
         "blk.1.attn_output.weight"},
        {"model.layers.1.post_attention_layernorm.weight",
         "blk.1.ffn_norm.weight"},
        {"model.layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight"},
        {"model.layers.1.mlp.up_proj.weight", "blk.1.ffn_up.weight"},
        {"model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"},
        {"model.norm.weight", "output_norm.weight"},
        {"lm_head.weight", "output.weight"},
        {"tok_embeddings.weight", "token_embd.weight"},
        {"layers.7.attention_norm.weight", "blk.7.attn_norm.weight"},
        {"layers.7.attention.wq.weight", "blk.7.attn_q.weight"},
        {"layers.7.attention.wk.weight", "blk.7.attn_k.weight"},
        {"layers.7.attention.wv.weight", "blk.7.attn_v.weight"},
        {"layers.7.attention.wo.weight", "blk.7.attn_output.weight"},
        {"layers.7.ffn_norm.weight", "blk.7.ffn_norm.weight"},
        {"layers.7.feed_forward.w1.weight", "blk.7.ffn_gate.weight"},
        {"layers.7.feed_forward.w2.weight", "blk.7.ffn_down.weight"},
        {"layers.7.feed_forward.w3.weight", "blk.7.ffn_up.weight"},
        {"norm.weight", "output_norm.weight"},
        {"output.weight", "output.weight"},
        {"module._orig_mod.model.norm.weight", "output_norm.weight"},
        {"model.layers.2.self_attn.q_norm.weight", "blk.2.attn_q_norm.weight"},
        {"model.layers.2.self_attn.k_layernorm.norms.7.weight",
         "blk.2.attn_k_norm.7.weight"},
        {"model.layers.2.post_feedforward_layernorm.weight",
         "blk.2.post_ffw_norm.weight"},
        {"model.layers.2.mlp.experts.31.down_proj.weight",
         "blk.2.ffn_down.31.weight"},
        {"model.layers.2.block_sparse_moe.experts.5.gate_proj.weight",
         "blk.2.ffn_gate.5.weight"},
        {"model.layers.2.block_sparse_moe.experts.5.w3.weight",
         "blk.2.ffn_up.5.weight"},
        {"model.layers.2.block_sparse_moe.switch_mlp.gate_proj.weight",
         "blk.2.ffn_gate_exps.weight"},
        {"model.layers.2.mlp.switch_mlp.down_proj.weight",
         "blk.2.ffn_down_exps.weight"},
        {"model.layers.2.mlp.experts.up_proj.weight",
         "blk.2.ffn_up_exps.weight"},
        {"model.layers.2.feed_forward.switch_mlp.up_proj.weight",
         "blk.2.ffn_up_exps.weight"},
        {"backbone.layers.2.mixer.switch_mlp.fc1.weight",
         "blk.2.ffn_up_exps.weight"},
        {"model.layers.2.experts.switch_glu.down_proj.weight",
         "blk.2.ffn_down_exps.weight"},
        {"model.layers.2.mlp.gate.gate_proj.weight",
         "blk.2.ffn_gate_inp.weight"},
        {"model.layers.2.mlp.experts.gate_up_proj",
         "blk.2.ffn_gate_up_exps.weight"},
        {"model.layers.2.mlp.experts.down_proj", "blk.2.ffn_down_exps.weight"},
        {"model.language_model.layers.2.linear_attn.in_proj_z.weight",
         "blk.2.attn_gate.weight"},
        {"model.layers.2.linear_attn.in_proj_a.weight",
         "blk.2.ssm_alpha.weight"},
        {"model.layers.2.linear_attn.dt_bias", "blk.2.ssm_alpha.bias"},
        {"model.layers.2.linear_attn.A_log", "blk.2.ssm_a.weight"},
        {"model.layers.2.linear_attn.conv1d.weight",
         "blk.2.ssm_conv1d.weight"},
        {"model.layers.2.linear_attn.in_proj_qkvz.weight",
         "blk.2.ssm_in.weight"},
        {"model.layers.2.mlp.gate.weight", "blk.2.ffn_gate_inp.weight"},
        {"model.layers.2.mlp.gate.e_score_correction_bias",
         "blk.2.exp_probs_b.bias"},
        {"model.layers.2.mlp.shared_experts.up_proj.weight",
         "blk.2.ffn_up_shexp.weight"},
        {"model.layers.2.mlp.shared_expert_gate.weight",
         "blk.2.ffn_gate_inp_shexp.weight"},
        {"model.layers.2.self_attn.kv_a_proj_with_mqa.weight",
         "blk.2.attn_kv_a_mqa.weight"},
        {"blk.2.attn_k_b.15.weight", "blk.2.attn_k_b.15.weight"},
        {"transformer.wpe.weight", "position_embd.weight"},
        {"h.3.mlp.c_fc.bias", "blk.3.ffn_up.bias"},
        {"gpt_neox.embed_in.weight", "token_embd.weight"},
        {"gpt_neox.layers.3.attention.dense.bias", "blk.3.attn_output.bias"},
        {"transformer.h.3.ln_mlp.weight", "blk.3.ffn_norm.weight"},
        {"embed_out.weight", "output.weight"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_means(names[i][0], names[i][1]);
}
END_TEST

START_TEST(canonical_names_are_understood_again)
{
    for (int role = 1; role < LMQ_ROLE_COUNT; role++)
        for (int i = 0; i < 2 * LMQ_PART_COUNT; i++) {
            int part = i % LMQ_PART_COUNT;
            struct lmq_place place = {(enum lmq_role)role,
                                      (enum lmq_part)part, -1, -1};
            struct lmq_place back;
            char name[64];
            if (lmq_role_is_per_layer(place.role))
                place.layer = LMQ_MAX_LAYERS - 1;
            if (i >= LMQ_PART_COUNT && lmq_role_has_items(place.role))
                place.item = LMQ_MAX_ITEMS - 1;
            lmq_name_canonical(&place, name, sizeof(name));
            ck_assert(lmq_name_parse(name, &back));
            ck_assert_int_eq(lmq_place_compare(&place, &back), 0);
        }
}
END_TEST

START_TEST(what_only_resembles_a_name_is_unknown)
{
    static const char *const names[] = {
        "",
        "weight",
        "model.",
        "model.embed_tokens",
        "model.embed_tokens.weights",
        "model.embed_tokens.weight.extra",
        "model.layers.2.mlp.experts.gate_up_proj.weight",
        "model.layers.2.mlp.experts.down_proj_",
        "model.layers..self_attn.q_proj.weight",
        "model.layers.01.self_attn.q_proj.weight",
        "model.layers.-1.self_attn.q_proj.weight",
        "model.layers.4096.self_attn.q_proj.weight",
        "model.layers.99999999999999999999.self_attn.q_proj.weight",
        "model.layers.1x.self_attn.q_proj.weight",
        "blk.0.attn_q",
        "blk.attn_q.weight",
        "attn_q.weight",
        "blk.0.output.weight",
        "model.layers.0.block_sparse_moe.gates.weight",
        "model.layers.0.mlp.experts.01.up_proj.weight",
        "model.layers.0.mlp.experts.65536.up_proj.weight",
        "blk.0.attn_q.1.weight",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_unknown(names[i]);
}
END_TEST

START_TEST(tables_that_can_be_computed_are_ignorable)
{
    ck_assert(lmq_name_why_ignored(
        "model.layers.3.self_attn.rotary_emb.inv_freq"));
    ck_assert(lmq_name_why_ignored("freqs_cos"));
    ck_assert(lmq_name_why_ignored("blk.3.exp_probs_b_vl.bias"));
    ck_assert(lmq_name_why_ignored("layers.3.ffn.gate.bias_vl"));
    ck_assert(!lmq_name_why_ignored("blk.3.exp_probs_b.bias"));
    ck_assert(!lmq_name_why_ignored("model.norm.weight"));
    ck_assert(!lmq_name_why_ignored("inv_freq"));
    ck_assert(!lmq_name_why_ignored(""));
}
END_TEST

START_TEST(the_order_is_embedding_layers_output_unknown)
{
    static const char *const names[] = {
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.mlp.down_proj.weight",
        "model.layers.1.input_layernorm.weight",
        "model.layers.10.input_layernorm.weight",
        "model.norm.weight",
        "lm_head.weight",
        "something.else",
    };
    struct lmq_place a, b;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            lmq_name_parse(names[i], &a);
            lmq_name_parse(names[j], &b);
            int order = lmq_place_compare(&a, &b);
            ck_assert_int_eq(i < j ? order < 0 : i > j ? order > 0 : order == 0,
                             1);
        }
}
END_TEST

/* qsort() may turn what is equal around. */
START_TEST(no_two_roles_have_one_place)
{
    for (int i = 1; i < LMQ_ROLE_STORED_COUNT; i++)
        for (int j = 1; j < LMQ_ROLE_STORED_COUNT; j++) {
            struct lmq_place a = {(enum lmq_role)i, LMQ_PART_WEIGHT, 0, -1};
            struct lmq_place b = {(enum lmq_role)j, LMQ_PART_WEIGHT, 0, -1};
            int there = lmq_place_compare(&a, &b);
            int back = lmq_place_compare(&b, &a);
            ck_assert_int_eq(there == 0, i == j);
            ck_assert_int_eq(there < 0, back > 0);
        }
}
END_TEST

/* Places come from files; UBSan watches the arithmetic. */
START_TEST(extreme_layers_are_ordered_too)
{
    struct lmq_place low = {LMQ_ROLE_ATTN_Q, LMQ_PART_WEIGHT, INT32_MIN, -1};
    struct lmq_place high = {LMQ_ROLE_ATTN_Q, LMQ_PART_WEIGHT, INT32_MAX, -1};

    ck_assert_int_lt(lmq_place_compare(&low, &high), 0);
    ck_assert_int_gt(lmq_place_compare(&high, &low), 0);
}
END_TEST

START_TEST(rows_in_pairs_and_in_halves_lead_to_each_other)
{
    static const struct {
        struct lmq_rope_rows rows;
        uint64_t halves[8];
    } cases[] = {
        {{8, 0, 8, false, false}, {0, 4, 1, 5, 2, 6, 3, 7}},
        {{8, 0, 4, false, false}, {0, 2, 1, 3, 4, 5, 6, 7}},
        {{8, 4, 4, false, false}, {0, 1, 2, 3, 4, 6, 5, 7}},
        {{8, 0, 0, false, false}, {0, 1, 2, 3, 4, 5, 6, 7}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint64_t row = 0; row < 24; row++) {
            uint64_t head = row - row % 8;
            uint64_t ours = lmq_rope_row_to_halves(&cases[i].rows, row);
            ck_assert_uint_eq(ours, head + cases[i].halves[row % 8]);
            ck_assert_uint_eq(lmq_rope_row_stored(&cases[i].rows, ours),
                              row);
        }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        rows_in_pairs_and_in_halves_lead_to_each_other,
        every_convention_has_its_place,
        canonical_names_are_understood_again,
        what_only_resembles_a_name_is_unknown,
        tables_that_can_be_computed_are_ignorable,
        the_order_is_embedding_layers_output_unknown,
        no_two_roles_have_one_place,
        extreme_layers_are_ordered_too,
    };

    return RUN_SUITE("names", tests);
}
