/*
 * test_gguf_evidence.c - what the tensors of a GGUF say about a model, and no
 * key does: of a Jamba, which layers have experts; and what they are called.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"
#include "tests/families/family.h"

#define N_LAYERS 6

/* The keys as llama.cpp's converter writes them, of so many experts, and the
 * layers with a router: marked by an 'x'. */
static void
read_jamba(struct lmq_checkpoint *checkpoint, uint32_t n_experts,
           uint32_t n_used, const char *routers)
{
    static const uint32_t kv[N_LAYERS] = {0, 2, 0, 0, 0, 2};
    const struct {
        const char *key;
        uint32_t count;
    } counts[] = {
        {".block_count", N_LAYERS},
        {".context_length", 4096},
        {".embedding_length", 64},
        {".feed_forward_length", 96},
        {".attention.head_count", 4},
        {".ssm.conv_kernel", 4},
        {".ssm.inner_size", 128},
        {".ssm.state_size", 16},
        {".ssm.time_step_rank", 5},
        {".expert_count", n_experts},
        {".expert_used_count", n_used},
    };
    struct lmq_gguf_evidence evidence = {.vocab_size = 33, .has_head = true};
    struct lmq_gguf_builder builder = {.prefix = "jamba"};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;
    struct lmq_error err = {0};

    for (size_t i = 0; i < N_LAYERS; i++)
        evidence.has_router[i] = routers[i] == 'x';
    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_begin(&builder);
    lmq_gguf_put_text(&builder, "general.architecture", "jamba", 5);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].key, counts[i].count);
    lmq_gguf_put_array(&builder, ".attention.head_count_kv", LMQ_GGUF_U32,
                       N_LAYERS);
    for (size_t i = 0; i < N_LAYERS; i++)
        lmq_gguf_add_u32(&builder, kv[i]);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-6);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    ck_assert_msg(lmq_gguf_read_keys(meta, &evidence, checkpoint, &family,
                                     &err) == LMQ_OK,
                  "%s", err.message);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    ck_assert_uint_eq(checkpoint->notes.n, 0);
    ck_assert_str_eq(checkpoint->hparams.unsupported, "");
}

static void
assert_marked(const struct lmq_hparams *h, enum lmq_layer_kind kind,
              const char *pattern)
{
    for (uint32_t i = 0; i < N_LAYERS; i++)
        ck_assert_msg(lmq_layer_is(h, i, kind) == (pattern[i] == 'x'),
                      "layer %u", i);
}

START_TEST(a_layer_with_a_router_has_experts)
{
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;

    read_jamba(&checkpoint, 4, 2, ".x.xx.");
    assert_marked(h, LMQ_LAYER_DENSE, "x.x..x");
    assert_marked(h, LMQ_LAYER_DELTA, "x.xxx.");
    ck_assert_uint_eq(h->n_experts, 4);
    ck_assert_uint_eq(h->n_experts_used, 2);
    ck_assert_uint_eq(h->expert_dim, 96);
    ck_assert_uint_eq(h->hidden_dim, 96);
    ck_assert_int_eq(h->router, LMQ_ROUTER_SOFTMAX);
    ck_assert(!h->router_renormalises);
    ck_assert_int_eq(h->positions, LMQ_POSITIONS_NONE);
    ck_assert_int_eq(h->recurrence, LMQ_RECURRENCE_SELECTIVE);
    ck_assert_uint_eq(h->n_delta_value_heads, 128);
    ck_assert_uint_eq(h->delta_key_dim, 16);
    ck_assert_uint_eq(h->step_rank, 5);
    ck_assert(h->has_step_norms && h->has_step_norm_weights);
    ck_assert(h->has_bare_states);
    ck_assert_uint_eq(h->n_kv_heads, 2);
    ck_assert_uint_eq(h->head_dim, 16);
}
END_TEST

/* As llama.cpp's converter has it of a Jamba without experts. */
START_TEST(one_expert_without_a_router_is_none)
{
    static struct lmq_checkpoint checkpoint;

    read_jamba(&checkpoint, 1, 2, "......");
    ck_assert_uint_eq(checkpoint.hparams.n_experts, 0);
    ck_assert_uint_eq(checkpoint.hparams.hidden_dim, 96);
}
END_TEST

/* Our own would be read, too; llama.cpp looks for these. */
START_TEST(a_jamba_has_the_names_that_llama_cpp_looks_for)
{
    static const char *const names[] = {
        "blk.1.ssm_dt_norm.weight", "blk.1.ssm_b_norm.weight",
        "blk.1.ssm_c_norm.weight",  "blk.1.ssm_x.weight",
        "blk.1.ssm_dt.weight",      "blk.3.ffn_gate_exps.weight",
    };
    static const enum lmq_role roles[] = {
        LMQ_ROLE_DELTA_ALPHA_NORM, LMQ_ROLE_DELTA_K_NORM,
        LMQ_ROLE_DELTA_Q_NORM,
    };
    const struct lmq_export_options options = {.to = "gguf", .replaces = 1};
    struct family_model *model = family_make(family_find("jamba"), 1, 0, 1);
    struct lmq_report *report;
    struct lmq_error err = {0};

    family_write(model, in_folder("jamba"));
    family_free(model);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("jamba"));
    ck_assert_msg(lmq_export(checkpoint, in_folder("a.gguf"), &options, NULL,
                             &report, &err) == LMQ_OK,
                  "%s", err.message);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    checkpoint = open_checkpoint(in_folder("a.gguf"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool is_there = false;
        for (size_t j = 0; j < checkpoint->n_tensors; j++)
            is_there |=
                strcmp(checkpoint->tensors[j].stored_name, names[i]) == 0;
        ck_assert_msg(is_there, "%s", names[i]);
    }
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        ck_assert_str_eq(lmq_checkpoint_find(checkpoint, roles[i],
                                             LMQ_PART_WEIGHT, 1)->stored_name,
                         names[i]);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_layer_with_a_router_has_experts,
        one_expert_without_a_router_is_none,
        a_jamba_has_the_names_that_llama_cpp_looks_for,
    };

    return RUN_SUITE("gguf_evidence", tests);
}
