/*
 * test_hf_lately.c - config.json of families that came last, and what they need
 * of tensors to be described: Mistral Large 4.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/model/rope_scaling.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/formats/hf_models.h"

/* ---- Mistral Large 4 ---- */

#define ROPE                                                                  \
    "'rope_parameters':{'attention_factor':1.0,'beta_fast':32.0,"             \
    "'beta_slow':1.0,'factor':2048.0,"                                        \
    "'original_max_position_embeddings':512,'rope_theta':10000.0,"            \
    "'rope_type':'yarn'}"

/* What the class has where the configuration says nothing. */
START_TEST(mistral_large4_of_its_own_sizes)
{
    struct model *m = read_model(
        "{'architectures':['MistralLarge4ForConditionalGeneration'],"
        "'model_type':'mistral_large4','text_config':{'model_type':"
        "'mistral_large4_text'," ROPE "},'vision_config':{}}");

    ck_assert_str_eq(m->h.architecture, "mistral_large4");
    assert_sizes(&m->h, 72, 6144, 24576, 64, 64, 128);
    ck_assert_uint_eq(m->h.rotary_dim, 64);
    ck_assert_uint_eq(m->h.kv_lora_rank, 512);
    ck_assert_uint_eq(m->h.q_lora_rank, 0);
    ck_assert_uint_eq(m->h.context, 2048);
    ck_assert_uint_eq(m->h.context_end, 2048);
    ck_assert_uint_eq(m->h.n_experts, 128);
    ck_assert_uint_eq(m->h.shared_dim, 6144);
    ck_assert(m->h.has_head_growth && m->h.has_whole_still &&
              m->h.router_renormalises);
    ck_assert(m->source.learns_frequencies && m->source.has_rotary_pairs);
    ck_assert_int_eq(m->h.router, LMQ_ROUTER_SOFTMAX);
    assert_near(m->h.logit_softcap, 30);
    ck_assert(!(m->h.latent_eps > 0)); /* what norm_eps says, too */
    ck_assert(lmq_layer_is(&m->h, 0, LMQ_LAYER_DENSE));
    ck_assert(!lmq_layer_is(&m->h, 1, LMQ_LAYER_DENSE));
    for (size_t i = 0; i < 72; i++)
        ck_assert_uint_eq(lmq_layer_rotary_dim(&m->h, i),
                          i % 4 == 3 ? 0 : 64);
}
END_TEST

static void
assert_large(const char *more, const char *unsupported)
{
    char text[1024];
    struct model m;
    struct lmq_error err = {0};
    bool is_known = false;

    snprintf(text, sizeof(text),
             "{'architectures':['MistralLarge4ForConditionalGeneration'],"
             "'text_config':{'num_hidden_layers':4," ROPE "%s}}", more);
    ck_assert_msg(parse_config(text, &m, &is_known, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert(is_known);
    ck_assert_str_eq(m.h.unsupported, unsupported);
}

START_TEST(mistral_large4_in_other_ways_is_refused)
{
    assert_large(",'kv_source_layers':[0,1,2,3]", "");
    assert_large(",'kv_source_layers':[0,1,0,3]",
                 "layer 2 with the latents of layer 0");
    assert_large(",'q_lora_rank':64", "'q_lora_rank' 64");
    assert_large(",'attention_bias':true", "'attention_bias' true");
    assert_large(",'final_logit_softcapping':0",
                 "'final_logit_softcapping' 0");
}
END_TEST

/* The numbers of one pair. */
START_TEST(learned_frequencies_are_scaled_ones)
{
    const float logs[2] = {0.5F, -1};
    struct lmq_hparams h;

    lmq_hparams_init(&h);
    h.n_layers = h.n_heads = h.n_kv_heads = 1;
    h.head_dim = 4;
    h.rope_theta = 100;
    ck_assert(lmq_hparams_learn_frequencies(&h, logs));
    ck_assert_int_eq(h.rope_scaling, LMQ_ROPE_FACTORS);
    ck_assert_uint_eq(h.n_rope_factors, 2);
    assert_near(h.rope_short[0], exp(-0.5));
    assert_near(h.rope_short[1], exp(1));
    h.rope_scaling = LMQ_ROPE_YARN;
    h.rope_factor = 8;
    h.rope_context = 4; /* so few that both turn less than once */
    ck_assert(lmq_hparams_learn_frequencies(&h, logs));
    assert_near(h.rope_short[1], 8 * exp(1));
    h.rope_scaling = LMQ_ROPE_DYNAMIC;
    ck_assert(!lmq_hparams_learn_frequencies(&h, logs));
}
END_TEST

/* A checkpoint whose tensor has another name, or another size. */
static void
write_large(const char *name, uint64_t n)
{
    struct family_model *model =
        family_make(family_find("mistral_large4"), 1, 0, 1);
    struct stored frame[8], *alpha = frame + 2;
    struct family family = *model->family;

    memcpy(frame, family.frame, sizeof(frame));
    ck_assert_int_eq(alpha->as, AS_VECTOR);
    alpha->name = name;
    model->oracle.turning.n = n;
    family.frame = frame;
    model->family = &family;
    family_write(model, in_folder("family"));
    family_free(model);
}

START_TEST(without_its_frequencies_it_is_not_run)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err = {0};

    write_large("model.rotary_emb.alpha", 4);
    checkpoint = open_checkpoint(in_folder("family"));
    ck_assert_str_eq(checkpoint->hparams.unsupported, "");
    ck_assert_uint_eq(checkpoint->hparams.n_rope_factors, 4);
    lmq_checkpoint_close(checkpoint);
    write_large("model.rotary_emb.inv_freq", 4);
    checkpoint = open_checkpoint(in_folder("family"));
    ck_assert_str_eq(checkpoint->hparams.unsupported,
                     "a model of this kind without 'rotary_emb.alpha'");
    lmq_checkpoint_close(checkpoint);
    write_large("model.rotary_emb.alpha", 3);
    ck_assert_int_eq(lmq_checkpoint_open(in_folder("family"), NULL,
                                         &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "3 numbers for 4 frequencies"));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        mistral_large4_of_its_own_sizes,
        mistral_large4_in_other_ways_is_refused,
        learned_frequencies_are_scaled_ones,
        without_its_frequencies_it_is_not_run,
    };

    return RUN_SUITE("hf_lately", tests);
}
