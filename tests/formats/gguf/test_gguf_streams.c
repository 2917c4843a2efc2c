/*
 * test_gguf_streams.c - Gemma 3n in GGUF: its keys, what only tensors say, and
 * what llama.cpp wants that a checkpoint need not have.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf/gguf_build.h"
#include "formats/gguf/gguf_keys.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"
#include "tests/formats/hf_models.h"

#define N_LAYERS 5

/* As llama.cpp's converter writes the keys; *cuts, if there are any, of the
 * layers. */
static enum lmq_status
read_keys(const double *cuts, uint32_t n_cuts, uint32_t n_streams,
          uint32_t active, uint32_t rank, struct lmq_checkpoint *checkpoint,
          struct lmq_error *err)
{
    const struct {
        const char *key;
        uint32_t count;
    } counts[] = {
        {".block_count", N_LAYERS}, {".context_length", 4096},
        {".embedding_length", 64}, {".feed_forward_length", 96},
        {".attention.head_count", 4}, {".attention.head_count_kv", 2},
        {".attention.key_length", 24}, {".attention.value_length", 24},
        {".attention.sliding_window", 512},
        {".attention.shared_kv_layers", 2},
        {".embedding_length_per_layer_input", 16},
        {".altup.num_inputs", n_streams}, {".altup.active_idx", active},
    };
    const struct lmq_gguf_evidence evidence = {
        .vocab_size = 33, .has_qk_norm = true, .layer_input_vocab = 31,
        .residual_rank = rank};
    struct lmq_gguf_builder builder = {.prefix = "gemma3n"};
    const struct lmq_family *family;
    struct lmq_gguf_meta *meta = NULL;

    *checkpoint = (struct lmq_checkpoint){0};
    lmq_hparams_init(&checkpoint->hparams);
    lmq_gguf_build_begin(&builder);
    builder.prefix = "gemma3n";
    lmq_gguf_put_text(&builder, "general.architecture", "gemma3n", 7);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        lmq_gguf_put_u32(&builder, counts[i].key, counts[i].count);
    lmq_gguf_put_f32(&builder, ".attention.layer_norm_rms_epsilon", 1e-6);
    lmq_gguf_put_f32(&builder, ".rope.freq_base", 1e6);
    lmq_gguf_put_array(&builder, ".attention.sliding_window_pattern",
                       LMQ_GGUF_BOOL, N_LAYERS);
    for (uint32_t i = 0; i < N_LAYERS; i++)
        lmq_gguf_add_bool(&builder, i != 2 && i != 4);
    if (cuts != NULL) {
        lmq_gguf_put_array(&builder, ".activation_sparsity_scale",
                           LMQ_GGUF_F32, n_cuts);
        for (uint32_t i = 0; i < n_cuts; i++)
            lmq_gguf_add_f32(&builder, cuts[i]);
    }
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

#define NO_CUT (-(double)INFINITY)

START_TEST(keys_of_gguf_say_a_gemma_3n)
{
    static const double cuts[] = {1.25, 1.25, NO_CUT, NO_CUT, NO_CUT};
    static struct lmq_checkpoint checkpoint;
    const struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    ck_assert_int_eq(read_keys(cuts, N_LAYERS, 3, 0, 12, &checkpoint, &err),
                     LMQ_OK);
    ck_assert_uint_eq(checkpoint.notes.n, 0);
    ck_assert_str_eq(h->unsupported, "");
    assert_layers(h, LMQ_LAYER_SPARSE, "xx...");
    assert_layers(h, LMQ_LAYER_FULL, "..x.x");
    ck_assert_double_eq(h->sparse_cut, 1.25);
    ck_assert_uint_eq(h->n_streams, 3);
    ck_assert_uint_eq(h->residual_rank, 12);
    ck_assert_uint_eq(h->layer_input_dim, 16);
    ck_assert_uint_eq(h->layer_input_vocab, 31);
    ck_assert_uint_eq(h->n_borrowing, 2);
    ck_assert_double_eq(h->logit_softcap, 30);
    ck_assert_double_eq(h->attn_scale, 1);
    ck_assert_double_eq(h->embedding_scale, 8);
    ck_assert_double_eq(h->rope_local_theta, 10000);
    ck_assert(h->has_value_norm);
    ck_assert_int_eq(read_keys(NULL, 0, 3, 0, 12, &checkpoint, &err), LMQ_OK);
    assert_layers(h, LMQ_LAYER_SPARSE, ".....");
}
END_TEST

START_TEST(what_streams_cannot_be_is_refused)
{
    static const double differ[] = {1.25, 1.5, NO_CUT, NO_CUT, NO_CUT};
    static const double below[] = {-0.5, NO_CUT, NO_CUT, NO_CUT, NO_CUT};
    static struct lmq_checkpoint checkpoint;
    const char *why = checkpoint.hparams.unsupported;
    struct lmq_error err = {0};

    read_keys(differ, N_LAYERS, 4, 0, 12, &checkpoint, &err);
    ck_assert_str_eq(why, "layers that differ in 'activation_sparsity_scale'");
    read_keys(below, N_LAYERS, 4, 0, 12, &checkpoint, &err);
    ck_assert_str_eq(why, "-0.5 in 'activation_sparsity_scale'");
    read_keys(NULL, 0, 1, 0, 12, &checkpoint, &err);
    ck_assert_str_eq(why, "'altup.num_inputs' 1");
    read_keys(NULL, 0, 4, 2, 12, &checkpoint, &err);
    ck_assert_str_eq(why, "'altup.active_idx' 2");
    read_keys(NULL, 0, 4, 0, 0, &checkpoint, &err);
    ck_assert_str_eq(why, "a model of this kind without 'laurel_l'");
    ck_assert_int_eq(read_keys(below, 3, 4, 0, 12, &checkpoint, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(
        strstr(err.message, "is no f32 for each of 5 layers"));
}
END_TEST

/* Rows of a tensor of the GGUF that has them from another one of the source. */
static void
assert_row_is(struct lmq_checkpoint *gguf, const char *name, uint64_t row,
              const float *row_of_source, size_t n)
{
    const struct lmq_tensor *tensor = NULL;
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    float *x = malloc(n * sizeof(*x));

    for (size_t i = 0; i < gguf->n_tensors; i++)
        if (strcmp(gguf->tensors[i].name, name) == 0)
            tensor = &gguf->tensors[i];
    ck_assert_msg(tensor != NULL && tensor->n_cols == n, "%s", name);
    ck_assert_int_eq(lmq_checkpoint_read(gguf, tensor, row * n, n, x, &scratch,
                                         &err),
                     LMQ_OK);
    ck_assert_mem_eq(x, row_of_source, n * sizeof(*x));
    lmq_scratch_free(&scratch);
    free(x);
}

/* Inputs of layers for all tokens, matrices of streams in one, and keys and
 * values where they are not looked at. */
START_TEST(a_gguf_has_what_llama_cpp_looks_for)
{
    const struct lmq_export_options options = {.to = "gguf", .replaces = 1};
    struct family_model *model = family_make(family_find("gemma3n"), 1, 0, 1);
    const struct oracle_model *made = &model->oracle;
    const struct oracle_shape *s = &made->shape;
    struct lmq_checkpoint *gguf;
    struct lmq_error err;
    unsigned char *bytes;
    const char *note;
    bool is_told = false;
    char key[32];
    size_t n;

    family_write(model, in_folder("source"));
    struct lmq_report *report =
        export_to(in_folder("source"), in_folder("a.gguf"), &options);
    for (int i = 0; i < 20 && !is_told; i++) {
        snprintf(key, sizeof(key), "notes.%d", i);
        note = lmq_report_string(report, key);
        is_told = note != NULL &&
                  strcmp(note, "GGUF's 'gemma3n' has inputs of layers for all "
                               "tokens: 8 get those of token 0, which count "
                               "for them") == 0;
    }
    ck_assert(is_told);
    lmq_report_free(report);
    ck_assert_int_eq(lmq_checkpoint_open(in_folder("a.gguf"), NULL, &gguf,
                                         &err),
                     LMQ_OK);
    ck_assert_str_eq(gguf->hparams.unsupported, "");
    ck_assert_uint_eq(gguf->hparams.layer_input_vocab, 0);
    size_t width = s->layers * s->input_dim;
    assert_row_is(gguf, "per_layer_token_embd.weight", s->input_vocab - 1,
                  made->inputs + (s->input_vocab - 1) * width, width);
    for (uint64_t row = s->input_vocab; row < s->vocab; row++)
        assert_row_is(gguf, "per_layer_token_embd.weight", row, made->inputs,
                      width);
    assert_row_is(gguf, "altup_proj.2.weight", 7,
                  made->streams_in[2].w + 7 * s->dim, s->dim);
    assert_row_is(gguf, "altup_unembd_proj.0.weight", 0,
                  made->streams_out[0].w, s->dim);
    lmq_checkpoint_close(gguf);
    family_free(model);
    bytes = read_file(in_folder("a.gguf"), &n);
    ck_assert_ptr_nonnull(memmem(bytes, n, "blk.5.attn_k.weight", 19));
    ck_assert_ptr_nonnull(memmem(bytes, n, "blk.5.attn_k_norm.weight", 24));
    ck_assert_ptr_nonnull(memmem(bytes, n, "blk.4.attn_v.weight", 19));
    free(bytes);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        keys_of_gguf_say_a_gemma_3n,
        what_streams_cannot_be_is_refused,
        a_gguf_has_what_llama_cpp_looks_for,
    };

    return RUN_SUITE("gguf_streams", tests);
}
