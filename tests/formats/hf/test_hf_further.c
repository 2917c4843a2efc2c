/*
 * test_hf_further.c - families that differ from a Llama in one thing, by their
 * config.json and by the keys of a GGUF: BitNet.
 */
#include "config.h"

#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- BitNet ---- */

START_TEST(bitnet_2b_4t)
{
    struct model *m = read_model(
        "{'architectures':['BitNetForCausalLM'],'auto_map':{},"
        "'bos_token_id':128000,'eos_token_id':128001,'hidden_act':'relu2',"
        "'hidden_size':2560,'initializer_range':0.02,"
        "'intermediate_size':6912,'max_position_embeddings':4096,"
        "'model_type':'bitnet','rms_norm_eps':1e-05,"
        "'num_attention_heads':20,'num_hidden_layers':30,"
        "'num_key_value_heads':5,'rope_theta':500000.0,"
        "'tie_word_embeddings':true,'torch_dtype':'bfloat16',"
        "'use_cache':true,'vocab_size':128256,'quantization_config':{"
        "'quant_method':'bitnet','linear_class':'autobitlinear',"
        "'quantization_mode':'offline'}}");

    ck_assert_str_eq(m->h.architecture, "bitnet");
    assert_sizes(&m->h, 30, 2560, 6912, 20, 5, 128);
    ck_assert_uint_eq(m->h.context, 4096);
    assert_near(m->h.rope_theta, 500000);
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_RELU2);
    ck_assert_int_eq(m->h.norm, LMQ_NORM_RMS);
    ck_assert(m->h.has_sub_norms && m->h.is_gated);
    ck_assert_int_eq(m->h.tie, LMQ_TIE_YES);
    m = read_small("BitNetForCausalLM", "'hidden_act':'silu'");
    ck_assert_int_eq(m->h.activation, LMQ_ACTIVATION_SILU);
    assert_near(m->h.rope_theta, 500000);
}
END_TEST

/* With this word for its activation, or without one. */
static struct lmq_hparams *
read_bitnet_keys(const char *activation, size_t *n_notes)
{
    static struct lmq_checkpoint checkpoint;
    static const struct {
        const char *name;
        uint32_t value;
    } counts[] = {
        {".block_count", 4}, {".context_length", 4096},
        {".embedding_length", 64}, {".feed_forward_length", 96},
        {".attention.head_count", 4}, {".attention.head_count_kv", 2},
    };
    static const struct lmq_gguf_evidence evidence = {.vocab_size = 33};
    struct lmq_gguf_builder builder = {0};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;
    struct lmq_error err = {0};

    lmq_gguf_build_begin(&builder);
    builder.prefix = "bitnet";
    lmq_gguf_put_text(&builder, "general.architecture", "bitnet", 6);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].name, counts[i].value);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-5);
    if (activation != NULL)
        lmq_gguf_put_text(&builder, ".hidden_activation", activation,
                          strlen(activation));
    checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint.hparams);
    lmq_gguf_build_end(&builder, 0);
    ck_assert_int_eq(lmq_gguf_meta_open(builder.out.bytes, builder.out.n,
                                        &meta, NULL, &err),
                     LMQ_OK);
    ck_assert_msg(lmq_gguf_read_keys(meta, &evidence, &checkpoint, &family,
                                     &err) == LMQ_OK,
                  "%s", err.message);
    lmq_gguf_meta_close(meta);
    lmq_gguf_build_free(&builder);
    *n_notes = checkpoint.notes.n;
    return &checkpoint.hparams;
}

START_TEST(a_gguf_says_the_activation_of_bitnet)
{
    static const struct {
        const char *word;
        enum lmq_activation activation;
        const char *unsupported;
    } cases[] = {
        {NULL, LMQ_ACTIVATION_SILU, ""},
        {"relu2", LMQ_ACTIVATION_RELU2, ""},
        {"relu", LMQ_ACTIVATION_RELU, ""},
        {"silu", LMQ_ACTIVATION_SILU, ""},
        {"relu20", LMQ_ACTIVATION_SILU, "activation 'relu20'"},
        {"rel", LMQ_ACTIVATION_SILU, "activation 'rel'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n_notes;
        struct lmq_hparams *h = read_bitnet_keys(cases[i].word, &n_notes);
        ck_assert_int_eq(h->activation, cases[i].activation);
        ck_assert_str_eq(h->unsupported, cases[i].unsupported);
        ck_assert(h->has_sub_norms);
        ck_assert_int_eq(h->tie, LMQ_TIE_YES);
        ck_assert_uint_eq(n_notes, 0);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        bitnet_2b_4t,
        a_gguf_says_the_activation_of_bitnet,
    };

    return RUN_SUITE("hf_further", tests);
}
