/*
 * test_gguf.c - GGUF checkpoints: what is read, how it is understood, what is
 * refused.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "formats/lmq/lmq.h"
#include "quantize/blocks.h"
#include "tests/build/build_gguf.h"
#include "tests/build/suite.h"

/* ---- Helpers ---- */

static struct build_model *
small(bool is_tied)
{
    struct build_sizes sizes = build_small;

    sizes.is_tied = is_tied;
    return build_model(&sizes, 7);
}

static bool
has_note(const struct lmq_checkpoint *checkpoint, const char *text)
{
    for (size_t i = 0; i < checkpoint->notes.n; i++)
        if (strstr(checkpoint->notes.texts[i], text) != NULL)
            return true;
    return false;
}

/* ---- Types ---- */

START_TEST(numbers_of_all_types_are_read)
{
    static const struct {
        uint32_t number;
        enum lmq_dtype dtype;
    } types[] = {
        {0, LMQ_DTYPE_F32},  {1, LMQ_DTYPE_F16},  {24, LMQ_DTYPE_I8},
        {25, LMQ_DTYPE_I16}, {26, LMQ_DTYPE_I32}, {27, LMQ_DTYPE_I64},
        {28, LMQ_DTYPE_F64}, {30, LMQ_DTYPE_BF16},
    };
    const uint64_t dims[] = {2, 3, 5};
    struct random random = {random_seed()};
    unsigned char data[8 * 30];
    float wanted[30];

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct gguf gguf = {0};
        size_t size = lmq_dtype_size(types[i].dtype), n;
        for (size_t k = 0; k < sizeof(data); k++)
            data[k] = (unsigned char)(random_u64(&random) & 0x3f);
        gguf_tensor(&gguf, "before", dims, 1, types[i].number, data, 2 * size);
        gguf_tensor(&gguf, "t", dims, 3, types[i].number, data, 30 * size);
        save_gguf(&gguf, in_folder("a.gguf"));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "t");
        ck_assert_uint_eq(tensor->n_dims, 3);
        ck_assert_mem_eq(tensor->dims, dims, sizeof(dims));
        ck_assert_int_eq(tensor->dtype, types[i].dtype);
        ck_assert(!checkpoint->has_model);
        float *x = read_tensor(checkpoint, "t", &n);
        lmq_dtype_to_f32(types[i].dtype, data, wanted, 30);
        ck_assert_uint_eq(n, 30);
        ck_assert_mem_eq(x, wanted, sizeof(wanted));
        free(x);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(blocks_are_read_from_any_element_on)
{
    struct random random = {random_seed()};
    const uint64_t dims[] = {3, 512};
    unsigned char data[3 * 512 / 32 * 34];
    float wanted[3 * 512], x[3 * 512];

    for (uint32_t number = 0; number < 64; number++) {
        const struct lmq_block_type *type = lmq_block_type(number);
        struct lmq_scratch scratch = {0};
        struct gguf gguf = {0};
        if (type == NULL)
            continue;
        size_t size = 3 * 512 / type->n * type->size;
        for (size_t i = 0; i < size; i++)
            data[i] = (unsigned char)(random_u64(&random) & 0x37);
        gguf_tensor(&gguf, "t", dims, 2, number, data, size);
        save_gguf(&gguf, in_folder("a.gguf"));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        const struct lmq_tensor *tensor = &checkpoint->tensors[0];
        lmq_blocks_decode(type, data, 3 * 512 / type->n, wanted);
        for (int round = 0; round < 50; round++) {
            size_t at = random_below(&random, 3 * 512);
            size_t n = random_below(&random, 3 * 512 - at + 1);
            ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, at, n, x,
                                                 &scratch, NULL),
                             LMQ_OK);
            ck_assert_mem_eq(x, wanted + at, n * sizeof(*x));
        }
        ck_assert(fabs(tensor->bits_per_element -
                       8.0 * type->size / type->n) < 1e-9);
        lmq_scratch_free(&scratch);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(types_that_are_not_read_are_refused_by_name)
{
    static const struct {
        uint32_t number;
        const char *name;
    } types[] = {
        {4, "Q4_2"},      {9, "Q8_1"}, {15, "Q8_K"},
        {31, "Q4_0_4_4"}, {43, "43"},  {999, "999"},
    };
    const uint64_t dims[] = {256};
    unsigned char data[512] = {0};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct gguf gguf = {0};
        gguf_tensor(&gguf, "t", dims, 1, types[i].number, data, sizeof(data));
        save_gguf(&gguf, in_folder("a.gguf"));
        assert_refused(in_folder("a.gguf"), LMQ_ERR_UNSUPPORTED,
                       types[i].name);
    }
}
END_TEST

/* A container cannot have such a name either; safetensors have another use
 * for the second. */
START_TEST(names_that_others_cannot_have_are_refused)
{
    const struct lmq_export_options options = {.to = "safetensors"};
    const uint64_t dims[] = {32};
    const unsigned char data[128] = {0};
    struct lmq_report *report;
    struct lmq_error err = {0};
    struct gguf gguf = {0};

    gguf_tensor(&gguf, "a\xff\xfe", dims, 1, GGUF_T_F32, data, sizeof(data));
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "is not UTF-8");
    gguf = (struct gguf){0};
    gguf_tensor(&gguf, "__metadata__", dims, 1, GGUF_T_F32, data,
                sizeof(data));
    save_gguf(&gguf, in_folder("b.gguf"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("b.gguf"));
    ck_assert_int_eq(lmq_export(checkpoint, in_folder("out"), &options, NULL,
                                &report, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "'__metadata__'"));
    ck_assert_int_ne(access(in_folder("out"), F_OK), 0);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- A Llama ---- */

static float *
logits_of(const char *path, size_t *n)
{
    static const int32_t tokens[] = {1, 5, 9, 30, 2, 7, 7, 11};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_error err = {0};

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert_int_eq(lmq_session_new(model, NULL, &session, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, tokens, 8, &err), LMQ_OK);
    *n = lmq_model_vocabulary(model);
    float *logits = malloc(*n * sizeof(*logits));
    ck_assert_ptr_nonnull(logits);
    memcpy(logits, lmq_session_logits(session, 0), *n * sizeof(*logits));
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return logits;
}

static const struct build_sizes block_sizes = {
    .dim = 256, .hidden = 256, .layers = 4, .heads = 4, .kv_heads = 4,
    .vocab = 33, .context = 16, .is_tied = true};

static void
add_floats(struct gguf *gguf, const char *name, const uint64_t *dims,
           uint32_t n_dims, const float *x)
{
    size_t n = (size_t)(n_dims == 1 ? dims[0] : dims[0] * dims[1]);
    struct bytes data = {0};

    for (size_t i = 0; i < n; i++)
        put_f32(&data, x[i]);
    gguf_tensor(gguf, name, dims, n_dims, GGUF_T_F32, data.at, data.n);
    bytes_free(&data);
}

/* A matrix of blocks of any bytes but those that make a scale infinite, and
 * the same as floats. */
static void
add_blocks(struct gguf *blocks, struct gguf *floats, const char *name,
           const struct lmq_block_type *type, struct random *random)
{
    static const uint64_t dims[] = {256, 256};
    static float x[256 * 256];
    size_t n = 256 * 256 / type->n;
    unsigned char *data = malloc(n * type->size);

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < n * type->size; i++)
        data[i] = (unsigned char)(random_u64(random) & 0x37);
    gguf_tensor(blocks, name, dims, 2, type->number, data, n * type->size);
    lmq_blocks_decode(type, data, n, x);
    add_floats(floats, name, dims, 2, x);
    free(data);
}

/* All types in turn, or those that are no integers times one scale: these
 * are computed with as such. */
static void
save_block_models(bool has_integers, const char *blocks_path,
                  const char *floats_path)
{
    static const char *const matrices[] = {
        "attn_q", "attn_k", "attn_v", "attn_output",
        "ffn_gate", "ffn_up", "ffn_down"};
    static const uint64_t embedding[] = {33, 256};
    struct build_model model = {.sizes = block_sizes};
    struct random random = {random_seed()};
    struct gguf files[2] = {0};
    const struct lmq_block_type *type;
    float x[33 * 256], ones[256];
    uint32_t number = 0;

    for (size_t i = 0; i < 33 * 256; i++)
        x[i] = (float)random_below(&random, 1000) / 500 - 1;
    for (size_t i = 0; i < 256; i++)
        ones[i] = 1;
    for (int i = 0; i < 2; i++) {
        gguf_llama_keys(&files[i], &model);
        add_floats(&files[i], "token_embd.weight", embedding, 2, x);
        add_floats(&files[i], "output_norm.weight", embedding + 1, 1, ones);
    }
    for (int i = 0; i < 4 * 9; i++) {
        char name[32];
        if (i % 9 >= 7) {
            snprintf(name, sizeof(name), "blk.%d.%s_norm.weight", i / 9,
                     i % 9 == 7 ? "attn" : "ffn");
            for (int k = 0; k < 2; k++)
                add_floats(&files[k], name, embedding + 1, 1, ones);
            continue;
        }
        do
            type = lmq_block_type(number++ % 64);
        while (type == NULL || (type->integers != NULL && !has_integers));
        snprintf(name, sizeof(name), "blk.%d.%s.weight", i / 9,
                 matrices[i % 9]);
        add_blocks(&files[0], &files[1], name, type, &random);
    }
    save_gguf(&files[0], blocks_path);
    save_gguf(&files[1], floats_path);
}

START_TEST(models_in_blocks_of_all_types_are_models)
{
    const char *blocks = in_folder("b.gguf"), *floats = in_folder("f.gguf");
    size_t n, m;

    /* No block has such scales: nothing is taken as it is. */
    const struct lmq_convert_options options = {.scales = "f32"};

    save_block_models(true, blocks, floats);
    lmq_report_free(convert(blocks, in_folder("b.lmq"), &options));
    lmq_report_free(convert(floats, in_folder("f.lmq"), &options));
    assert_same_tensors(in_folder("b.lmq"), in_folder("f.lmq"));
    free(logits_of(blocks, &n));

    save_block_models(false, blocks, floats);
    float *a = logits_of(blocks, &n), *b = logits_of(floats, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(a, b, n * sizeof(*a));
    for (size_t i = 0; i < n; i++)
        ck_assert(isfinite(a[i]));
    free(a);
    free(b);
}
END_TEST

/* 32 numbers of queries, and 16 of keys and of values. */
START_TEST(blocks_across_parts_of_a_tensor_are_refused)
{
    const struct build_model model = {
        .sizes = {.dim = 32, .hidden = 32, .layers = 1, .heads = 4,
                  .kv_heads = 2, .vocab = 2, .context = 64}};
    const unsigned char blocks[2 * 34] = {0};
    struct gguf gguf = {0};

    gguf_llama_keys(&gguf, &model);
    gguf_tensor(&gguf, "token_embd.weight", (uint64_t[]){2, 32}, 2,
                GGUF_T_Q8_0, blocks, sizeof(blocks));
    gguf_tensor(&gguf, "blk.0.attn_qkv.bias", (uint64_t[]){64}, 1, GGUF_T_Q8_0,
                blocks, sizeof(blocks));
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_UNSUPPORTED,
                   "'blk.0.attn_qkv.bias' cannot be taken apart: blocks of 32");
}
END_TEST

START_TEST(keys_become_the_description)
{
    struct build_model *model = small(true);
    struct gguf gguf = {0};

    gguf_llama_keys(&gguf, model);
    gguf_f32(&gguf, "llama.rope.freq_base", 500000);
    gguf_text(&gguf, "llama.rope.scaling.type", "linear");
    gguf_f32(&gguf, "llama.rope.scaling.factor", 4);
    gguf_u32(&gguf, "tokenizer.ggml.bos_token_id", 1);
    gguf_u32(&gguf, "tokenizer.ggml.eos_token_id", 2);
    gguf_u32(&gguf, "tokenizer.ggml.eot_token_id", 3);
    gguf_u32(&gguf, "llama.attention.sliding_window", 16);
    gguf_text(&gguf, "general.name", "a name");
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    save_gguf(&gguf, in_folder("a.gguf"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.gguf"));
    const struct lmq_hparams *h = &checkpoint->hparams;
    ck_assert(checkpoint->has_model);
    ck_assert_str_eq(h->architecture, "llama");
    ck_assert_str_eq(h->unsupported, "");
    ck_assert_uint_eq(h->n_layers, 2);
    ck_assert_uint_eq(h->dim, 24);
    ck_assert_uint_eq(h->head_dim, 6);
    ck_assert_uint_eq(h->vocab_size, 33);
    ck_assert(h->norm_eps == 1e-5); /* not 9.99999975e-06 */
    ck_assert(h->rope_theta == 500000 && h->rope_factor == 4);
    ck_assert_int_eq(h->rope_scaling, LMQ_ROPE_LINEAR);
    ck_assert_int_eq(h->tie, LMQ_TIE_YES);
    ck_assert_int_eq(h->bos, 1);
    ck_assert_uint_eq(h->n_eos, 2);
    ck_assert_int_eq(h->eos[1], 3);
    /* A Llama has none: llama.cpp ignores it, and so we say. */
    ck_assert_uint_eq(h->sliding_window, 0);
    ck_assert(has_note(checkpoint, "llama.attention.sliding_window"));
    ck_assert(!has_note(checkpoint, "freq_base"));
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

/* Queries three times as large, as integers with scales and as floats. */
START_TEST(scales_beside_matrices_are_multiplied_with_them)
{
    static const uint64_t one[] = {1};
    const float three = 3, none = 0;
    struct build_model *model = small(true);
    struct gguf gguf = {0};
    size_t n, m;

    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    save_gguf(&gguf, in_folder("plain.gguf"));
    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    add_floats(&gguf, "blk.0.attn_q.scale", one, 1, &three);
    add_floats(&gguf, "blk.0.attn_q.input_scale", one, 1, &three);
    save_gguf(&gguf, in_folder("scaled.gguf"));
    struct lmq_checkpoint *plain = open_checkpoint(in_folder("plain.gguf"));
    struct lmq_checkpoint *scaled = open_checkpoint(in_folder("scaled.gguf"));
    ck_assert_uint_eq(scaled->n_tensors, plain->n_tensors);
    ck_assert_str_eq(scaled->hparams.unsupported, "");
    ck_assert(has_note(scaled, "with a scale beside them: 1"));
    ck_assert(has_note(scaled, "that are left out: 1"));
    for (int layer = 0; layer < 2; layer++) {
        const char *name = layer == 0 ? "blk.0.attn_q.weight"
                                      : "blk.1.attn_q.weight";
        float *x = read_tensor(plain, name, &n);
        float *y = read_tensor(scaled, name, &m);
        ck_assert_uint_eq(n, m);
        for (size_t i = 0; i < n; i++)
            x[i] *= layer == 0 ? 3 : 1;
        ck_assert_mem_eq(x, y, n * sizeof(*x));
        free(x);
        free(y);
    }
    lmq_checkpoint_close(plain);
    lmq_checkpoint_close(scaled);
    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    add_floats(&gguf, "blk.0.attn_q.scale", one, 1, &none);
    save_gguf(&gguf, in_folder("scaled.gguf"));
    assert_refused(in_folder("scaled.gguf"), LMQ_ERR_FORMAT,
                   "'blk.0.attn_q.scale' is 0, expected a number above 0");
    build_free(model);
}
END_TEST

START_TEST(rotary_factors_become_part_of_the_description)
{
    struct build_model *model = small(true);
    const float factors[] = {1, 2.5f, 8};
    const uint64_t dims[] = {3};
    struct gguf gguf = {0};

    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    add_floats(&gguf, "rope_freqs.weight", dims, 1, factors);
    save_gguf(&gguf, in_folder("a.gguf"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.gguf"));
    ck_assert_int_eq(checkpoint->hparams.rope_scaling, LMQ_ROPE_FACTORS);
    ck_assert_uint_eq(checkpoint->hparams.n_rope_factors, 3);
    ck_assert(checkpoint->hparams.rope_short[1] == 2.5);
    ck_assert_uint_eq(checkpoint->n_tensors, model->n_tensors);
    ck_assert_str_eq(checkpoint->hparams.unsupported, "");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(what_is_not_known_makes_no_model)
{
    struct build_model *model = small(true);
    struct lmq_checkpoint *checkpoint;
    const uint64_t dims[] = {24};
    float zeros[24] = {0};
    struct gguf gguf = {0};

    gguf_llama_keys(&gguf, model);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    gguf_tensor(&gguf, "blk.0.attn_temperature.weight", dims, 1, GGUF_T_F32,
                zeros, sizeof(zeros));
    save_gguf(&gguf, in_folder("a.gguf"));
    checkpoint = open_checkpoint(in_folder("a.gguf"));
    ck_assert_ptr_nonnull(
        strstr(checkpoint->hparams.unsupported, "attn_temperature"));
    lmq_checkpoint_close(checkpoint);

    gguf_text(&gguf, "general.architecture", "rwkv7");
    gguf_tensor(&gguf, "blk.0.ssm_a", dims, 1, GGUF_T_F32, zeros,
                sizeof(zeros));
    save_gguf(&gguf, in_folder("b.gguf"));
    checkpoint = open_checkpoint(in_folder("b.gguf"));
    ck_assert(!checkpoint->has_model);
    ck_assert_str_eq(checkpoint->hparams.architecture, "rwkv7");
    ck_assert_ptr_nonnull(strstr(checkpoint->hparams.unsupported, "rwkv7"));
    lmq_checkpoint_close(checkpoint);
    lmq_report_free(convert(in_folder("b.gguf"), in_folder("b.lmq"), NULL));
    build_free(model);
}
END_TEST

START_TEST(layers_of_different_sizes_make_no_model)
{
    for (int is_even = 0; is_even <= 1; is_even++) {
        struct build_model *model = small(true);
        struct gguf gguf = {0};
        gguf_text(&gguf, "general.architecture", "llama");
        gguf_u32(&gguf, "llama.block_count", 2);
        gguf_u32(&gguf, "llama.context_length", model->sizes.context);
        gguf_u32(&gguf, "llama.embedding_length", 24);
        gguf_u32(&gguf, "llama.attention.head_count", 4);
        gguf_u32(&gguf, "llama.attention.head_count_kv", 2);
        gguf_f32(&gguf, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
        gguf_key(&gguf, "llama.feed_forward_length", GGUF_LIST);
        put_u32(&gguf.keys, GGUF_U32);
        put_u64(&gguf.keys, 2);
        put_u32(&gguf.keys, 40);
        put_u32(&gguf.keys, is_even ? 40 : 48);
        gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
        save_gguf(&gguf, in_folder("a.gguf"));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.gguf"));
        ck_assert(checkpoint->has_model == (is_even != 0));
        ck_assert((strstr(checkpoint->hparams.unsupported,
                          "feed_forward_length") != NULL) == (is_even == 0));
        lmq_checkpoint_close(checkpoint);
        build_free(model);
    }
}
END_TEST

START_TEST(the_tokenizer_comes_along)
{
    struct build_model *model = small(true);
    struct lmq_tokenizer *tokenizer;
    struct lmq_error err;
    struct gguf gguf = {0};

    gguf_llama_keys(&gguf, model);
    gguf_text(&gguf, "tokenizer.ggml.model", "llama");
    gguf_key(&gguf, "tokenizer.ggml.tokens", GGUF_LIST);
    put_u32(&gguf.keys, GGUF_TEXT);
    put_u64(&gguf.keys, 5);
    gguf_string(&gguf.keys, "<unk>");
    gguf_string(&gguf.keys, "<s>");
    gguf_string(&gguf.keys, "</s>");
    gguf_string(&gguf.keys, "\xe2\x96\x81");
    gguf_string(&gguf.keys, "a");
    gguf_key(&gguf, "tokenizer.ggml.scores", GGUF_LIST);
    put_u32(&gguf.keys, GGUF_F32);
    put_u64(&gguf.keys, 5);
    for (int i = 0; i < 5; i++)
        put_f32(&gguf.keys, (float)-i);
    gguf_key(&gguf, "tokenizer.ggml.token_type", GGUF_LIST);
    put_u32(&gguf.keys, 5);
    put_u64(&gguf.keys, 5);
    for (uint32_t i = 0; i < 5; i++)
        put_u32(&gguf.keys, i == 0 ? 2 : i < 3 ? 3 : 1);
    struct gguf bare = {0};
    put(&bare.keys, gguf.keys.at, gguf.keys.n);
    bare.n_keys = gguf.n_keys;
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    save_gguf(&gguf, in_folder("a.gguf"));
    save_gguf(&bare, in_folder("vocab.gguf"));

    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.gguf"));
    ck_assert_uint_eq(checkpoint->n_blobs, 1);
    ck_assert_int_eq(
        lmq_tokenizer_from_checkpoint(checkpoint, &tokenizer, &err), LMQ_OK);
    lmq_tokenizer_close(tokenizer);
    lmq_checkpoint_close(checkpoint);

    /* Without tensors it is a tokenizer and no checkpoint. */
    assert_refused(in_folder("vocab.gguf"), LMQ_ERR_UNSUPPORTED,
                   "holds no tensors");
    ck_assert_int_eq(lmq_tokenizer_from_path(in_folder("vocab.gguf"), NULL,
                                             &tokenizer, &err),
                     LMQ_OK);
    lmq_tokenizer_close(tokenizer);
    build_free(model);
}
END_TEST

/* ---- Parts ---- */

static void
put_u16_key(struct gguf *gguf, const char *key, uint16_t value)
{
    gguf_key(gguf, key, 2);
    put_u16(&gguf->keys, value);
}

static void
save_part(const struct build_model *model, uint16_t number, uint16_t says,
          uint16_t count)
{
    size_t each = model->n_tensors / 3 + 1, first = number * each;
    size_t n = model->n_tensors - first < each ? model->n_tensors - first
                                               : each;
    struct gguf gguf = {0};
    char name[64];

    if (number == 0)
        gguf_llama_keys(&gguf, model);
    put_u16_key(&gguf, "split.no", says);
    put_u16_key(&gguf, "split.count", count);
    gguf_key(&gguf, "split.tensors.count", 5);
    put_u32(&gguf.keys, (uint32_t)model->n_tensors);
    gguf_llama_tensors(&gguf, model, first, n);
    snprintf(name, sizeof(name), "m-%05d-of-00003.gguf", number + 1);
    save_gguf(&gguf, in_folder(name));
}

START_TEST(the_parts_of_a_file_are_one_checkpoint)
{
    struct build_model *model = small(false);
    struct lmq_convert_options options = {.replaces = 1};

    for (uint16_t i = 0; i < 3; i++)
        save_part(model, i, i, 3);
    save_llama(model, 3, in_folder("a.gguf"));
    lmq_report_free(convert(in_folder("a.gguf"), in_folder("a.lmq"),
                            &options));
    lmq_report_free(convert(in_folder("m-00001-of-00003.gguf"),
                            in_folder("p.lmq"), &options));
    assert_same_tensors(in_folder("a.lmq"), in_folder("p.lmq"));

    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    ck_assert_int_eq(lmq_checkpoint_open(in_folder("m-00002-of-00003.gguf"),
                                         NULL, &checkpoint, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.hint, "m-00001-of-00003.gguf"));
    build_free(model);
}
END_TEST

START_TEST(parts_that_do_not_belong_together_are_refused)
{
    struct build_model *model = small(false);
    const char *first = in_folder("m-00001-of-00003.gguf");

    for (uint16_t i = 0; i < 3; i++)
        save_part(model, i, i, 3);
    save_part(model, 2, 1, 3);
    assert_refused(first, LMQ_ERR_FORMAT, "part 2 of 3, expected 3 of 3");
    save_part(model, 2, 2, 4);
    assert_refused(first, LMQ_ERR_FORMAT, "part 3 of 4");
    ck_assert_int_eq(unlink(in_folder("m-00003-of-00003.gguf")), 0);
    assert_refused(first, LMQ_ERR_FORMAT, "missing");
    save_part(model, 2, 2, 3);
    ck_assert_int_eq(rename(first, in_folder("other.gguf")), 0);
    assert_refused(in_folder("other.gguf"), LMQ_ERR_FORMAT, "name");
    /* A part that holds too little. */
    save_part(model, 0, 0, 3);
    struct gguf gguf = {0};
    put_u16_key(&gguf, "split.no", 2);
    put_u16_key(&gguf, "split.count", 3);
    save_gguf(&gguf, in_folder("m-00003-of-00003.gguf"));
    assert_refused(first, LMQ_ERR_FORMAT, "the first says");
    build_free(model);
}
END_TEST

/* ---- From outside ---- */

START_TEST(a_file_from_outside_runs)
{
    const char *path =
        source_path("../../shared/data/models/llama-2-tiny-random/"
                    "llama-2-tiny-random.gguf");
    size_t n;

    if (access(path, R_OK) != 0) {
        printf("skipped: there is no %s\n", path);
        return;
    }
    float *logits = logits_of(path, &n);
    ck_assert_uint_eq(n, 32000);
    for (size_t i = 0; i < n; i++)
        REQUIRE(isfinite(logits[i]), "logit %zu", i);
    free(logits);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        numbers_of_all_types_are_read,
        blocks_are_read_from_any_element_on,
        types_that_are_not_read_are_refused_by_name,
        names_that_others_cannot_have_are_refused,
        models_in_blocks_of_all_types_are_models,
        blocks_across_parts_of_a_tensor_are_refused,
        keys_become_the_description,
        scales_beside_matrices_are_multiplied_with_them,
        rotary_factors_become_part_of_the_description,
        what_is_not_known_makes_no_model,
        layers_of_different_sizes_make_no_model,
        the_tokenizer_comes_along,
        the_parts_of_a_file_are_one_checkpoint,
        parts_that_do_not_belong_together_are_refused,
        a_file_from_outside_runs,
    };

    return RUN_SUITE("gguf", tests);
}
