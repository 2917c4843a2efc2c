/*
 * test_torch.c - checkpoints of PyTorch: the same model in every layout, and
 * how it is described.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/build/build_torch.h"
#include "tests/build/suite.h"

/* Everything that is divided is even. */
static const struct build_sizes even = {
    .dim = 24, .hidden = 40, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 34, .context = 2048, .is_tied = false,
};

static void
save_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void
save_params(const struct build_model *model, const char *path)
{
    struct bytes bytes = {0};

    put_params(&bytes, model);
    save(&bytes, path);
    bytes_free(&bytes);
}

static const char *
in(const char *folder, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return in_folder(path);
}

/* ---- The same model ---- */

/* The stored bytes of every tensor of two containers are the same. */
static void
assert_same_containers(const char *path_a, const char *path_b)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);

    ck_assert_uint_eq(a->n_tensors, b->n_tensors);
    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct lmq_tensor *x = &a->tensors[i], *y = &b->tensors[i];
        ck_assert_str_eq(x->name, y->name);
        ck_assert_uint_eq(x->size_bytes, y->size_bytes);
        size_t n = (size_t)x->size_bytes;
        unsigned char *bytes = malloc(2 * n + 1);
        ck_assert_ptr_nonnull(bytes);
        ck_assert_int_eq(lmq_input_read(a->files[0], x->offset, bytes, n,
                                        NULL),
                         LMQ_OK);
        ck_assert_int_eq(lmq_input_read(b->files[0], y->offset, bytes + n, n,
                                        NULL),
                         LMQ_OK);
        REQUIRE(memcmp(bytes, bytes + n, n) == 0, "%s differs", x->name);
        free(bytes);
    }
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
}

/* fp32 logits behind a few tokens. */
static void
run(struct lmq_checkpoint *checkpoint, float *logits)
{
    static const int32_t tokens[] = {1, 7, 3, 30, 12, 5};
    struct lmq_session_options options = {.context = 16};
    struct lmq_session *session;
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, tokens, 6, &err), LMQ_OK);
    memcpy(logits, lmq_session_logits(session, 0),
           even.vocab * sizeof(*logits));
    lmq_session_free(session);
    lmq_model_close(model);
}

/* Weights, description, containers and logits are those of the folder of
 * safetensors. */
static void
assert_same_model(const char *path_a, const char *path_b)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);
    float logits_a[64], logits_b[64];

    ck_assert_str_eq(b->format->name, "PyTorch");
    ck_assert(a->has_model && b->has_model);
    ck_assert_uint_eq(a->n_tensors, b->n_tensors);
    ck_assert_uint_eq(a->hparams.hidden_dim, b->hparams.hidden_dim);
    ck_assert_uint_eq(a->hparams.context, b->hparams.context);
    ck_assert_int_eq(a->hparams.bos, b->hparams.bos);
    for (size_t i = 0; i < a->n_tensors; i++) {
        size_t n, m;
        float *x = read_tensor(a, a->tensors[i].name, &n);
        float *y = read_tensor(b, a->tensors[i].name, &m);
        ck_assert_uint_eq(n, m);
        REQUIRE(memcmp(x, y, n * sizeof(*x)) == 0, "%s: %s differs", path_b,
                a->tensors[i].name);
        free(x);
        free(y);
    }
    run(a, logits_a);
    run(b, logits_b);
    ck_assert_mem_eq(logits_a, logits_b, even.vocab * sizeof(float));
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    const struct lmq_convert_options over = {.replaces = 1};
    const char *file_a = in_folder("a.lmq"), *file_b = in_folder("b.lmq");
    lmq_report_free(convert(path_a, file_a, &over));
    lmq_report_free(convert(path_b, file_b, &over));
    assert_same_containers(file_a, file_b);
}

static void
save_hf(const struct build_model *model, const char *folder,
        const struct build_torch *how)
{
    struct bytes bytes = {0};

    mkdir(in_folder(folder), 0777);
    put_torch(&bytes, how, model, 0, model->n_tensors);
    save(&bytes, in(folder, "pytorch_model.bin"));
    bytes_free(&bytes);
    put_config(&bytes, model);
    save(&bytes, in(folder, "config.json"));
    bytes_free(&bytes);
}

START_TEST(a_folder_with_a_bin_is_the_folder_of_safetensors)
{
    static const enum build_type types[] = {BUILD_F32, BUILD_F16, BUILD_BF16,
                                            BUILD_F64};
    struct build_model *model = build_model(&even, 1);

    for (size_t i = 0; i < 4; i++) {
        struct build_torch how = {.type = types[i]};
        save_folder(model, in_folder("st"), types[i]);
        save_hf(model, "bin", &how);
        assert_same_model(in_folder("st"), in_folder("bin"));
        how.is_transposed = how.is_large = true;
        save_hf(model, "bin", &how);
        assert_same_model(in_folder("st"), in_folder("bin"));
    }
    assert_same_model(in_folder("st"), in("bin", "pytorch_model.bin"));
    /* Where there are both, safetensors are read. */
    save_safetensors(model, in("bin", "model.safetensors"));
    struct lmq_checkpoint *both = open_checkpoint(in_folder("bin"));
    ck_assert_str_eq(both->format->name, "safetensors");
    lmq_checkpoint_close(both);
    build_free(model);
}
END_TEST

/* Shard i of three has every third tensor. */
static void
save_shards(const struct build_model *model, const char *folder)
{
    struct bytes index = {0}, bytes = {0};
    char name[64], text[256];

    mkdir(in_folder(folder), 0777);
    put_text(&index, "{\"metadata\":{},\"weight_map\":{");
    size_t per_shard = (model->n_tensors + 2) / 3;
    for (size_t i = 0; i < model->n_tensors; i++) {
        snprintf(text, sizeof(text), "%s\"%s\":\"pytorch_model-%zu.bin\"",
                 i == 0 ? "" : ",", model->tensors[i].name, i / per_shard);
        put_text(&index, text);
    }
    put_text(&index, "}}");
    save(&index, in(folder, "pytorch_model.bin.index.json"));
    for (size_t i = 0; i < 3; i++) {
        size_t first = i * per_shard, n = model->n_tensors - first;
        put_torch(&bytes, &(struct build_torch){0}, model, first,
                  n < per_shard ? n : per_shard);
        snprintf(name, sizeof(name), "pytorch_model-%zu.bin", i);
        save(&bytes, in(folder, name));
        bytes_free(&bytes);
    }
    put_config(&bytes, model);
    save(&bytes, in(folder, "config.json"));
    bytes_free(&bytes);
    bytes_free(&index);
}

START_TEST(shards_with_an_index_are_one_model)
{
    struct build_model *model = build_model(&even, 2);

    save_folder(model, in_folder("st"), BUILD_F32);
    save_shards(model, "shards");
    assert_same_model(in_folder("st"), in_folder("shards"));
    save_text(in("shards", "pytorch_model.bin.index.json"),
              "{\"weight_map\":{\"w\":\"../st/model.safetensors\"}}");
    assert_refused(in_folder("shards"), LMQ_ERR_FORMAT, "plain file name");
    save_text(in("shards", "pytorch_model.bin.index.json"),
              "{\"weight_map\":{\"w\":\"pytorch_model-7.bin\"}}");
    assert_refused(in_folder("shards"), LMQ_ERR_FORMAT, "missing");
    build_free(model);
}
END_TEST

/* {"model": ..., "model_args": ..., "iter_num": 3, ...} */
static void
save_training(const struct build_model *meta, const char *path,
              enum build_type type)
{
    const struct build_sizes *s = &meta->sizes;
    const struct {
        const char *key;
        uint64_t value;
    } args[] = {{"dim", s->dim}, {"n_layers", s->layers},
                {"n_heads", s->heads}, {"n_kv_heads", s->kv_heads},
                {"vocab_size", s->vocab}, {"multiple_of", 8},
                {"max_seq_len", s->context}};
    struct build_torch how = {.type = type};
    struct bytes bytes = {0};

    put_text(&how.front, "}(");
    pickle_text(&how.front, "iter_num");
    pickle_int(&how.front, 3);
    pickle_text(&how.front, "model");
    pickle_text(&how.back, "model_args");
    put_text(&how.back, "}(");
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
        pickle_text(&how.back, args[i].key);
        pickle_int(&how.back, args[i].value);
    }
    pickle_text(&how.back, "dropout");
    put(&how.back, "G\0\0\0\0\0\0\0\0u", 10);
    pickle_text(&how.back, "optimizer");
    put_text(&how.back, "]Nau");
    put_torch(&bytes, &how, meta, 0, meta->n_tensors);
    save(&bytes, path);
    bytes_free(&bytes);
    bytes_free(&how.front);
    bytes_free(&how.back);
}

START_TEST(a_training_checkpoint_describes_its_model)
{
    struct build_model *model = build_model(&even, 3);
    struct build_model *meta = build_as_meta(model);

    for (size_t i = 0; i < meta->n_tensors; i++) {
        char name[96];
        snprintf(name, sizeof(name), "_orig_mod.%.80s",
                 meta->tensors[i].name);
        memcpy(meta->tensors[i].name, name, sizeof(name));
    }
    save_folder(model, in_folder("st"), BUILD_F32);
    save_training(meta, in_folder("ckpt.pt"), BUILD_F32);
    assert_same_model(in_folder("st"), in_folder("ckpt.pt"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("ckpt.pt"));
    ck_assert_ptr_nonnull(strstr(checkpoint->notes.texts[0], "'iter_num'"));
    lmq_checkpoint_close(checkpoint);
    build_free(meta);
    build_free(model);
}
END_TEST

/* consolidated.*.pth and params.json in the folder "meta". */
static void
save_meta(const struct build_model *meta, uint32_t n, bool divides_vocabulary,
          enum build_type type)
{
    char name[64];

    mkdir(in_folder("meta"), 0777);
    for (uint32_t i = 0; i < n; i++) {
        struct build_model *shard =
            build_shard(meta, i, n, divides_vocabulary);
        uint64_t dims[1] = {3};
        build_add(shard, "rope.freqs", dims, 1);
        snprintf(name, sizeof(name), "consolidated.%02u.pth", i);
        save_torch(shard, type, in("meta", name));
        build_free(shard);
    }
    save_params(meta, in("meta", "params.json"));
}

START_TEST(shards_of_meta_are_joined)
{
    struct build_model *model = build_model(&even, 4);
    struct build_model *meta = build_as_meta(model);

    for (uint32_t n = 1; n <= 2; n++)
        for (int rows = 0; rows < 2; rows++)
            for (int type = BUILD_F32; type <= BUILD_BF16; type++) {
                save_folder(model, in_folder("st"), (enum build_type)type);
                save_meta(meta, n, rows == 1, (enum build_type)type);
                assert_same_model(in_folder("st"), in_folder("meta"));
            }
    build_free(meta);
    build_free(model);
}
END_TEST

START_TEST(pieces_of_joined_tensors_are_parts_of_the_whole)
{
    struct random random = {random_seed()};
    struct build_model *model = build_model(&even, 5);
    struct build_model *meta = build_as_meta(model);
    struct lmq_scratch scratch = {0};
    float x[2000];

    save_meta(meta, 2, false, BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("meta"));
    for (int round = 0; round < 500; round++) {
        const struct lmq_tensor *tensor =
            &checkpoint->tensors[random_below(&random, checkpoint->n_tensors)];
        size_t n_whole, n = (size_t)tensor->n_elements;
        size_t at = random_below(&random, n);
        float *whole = read_tensor(checkpoint, tensor->name, &n_whole);
        n = random_below(&random, n - at + 1);
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, at, n, x,
                                             &scratch, NULL),
                         LMQ_OK);
        ck_assert_mem_eq(x, whole + at, n * sizeof(*x));
        free(whole);
    }
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
    build_free(meta);
    build_free(model);
}
END_TEST

START_TEST(shards_that_do_not_belong_together_are_refused)
{
    struct build_model *model = build_model(&even, 6);
    struct build_model *meta = build_as_meta(model);
    struct bytes bytes = {0};

    save_meta(meta, 2, false, BUILD_F32);
    /* One has another type, then tensors less, then there is a gap. */
    struct build_model *shard = build_shard(meta, 1, 2, false);
    save_torch(shard, BUILD_F16, in("meta", "consolidated.01.pth"));
    assert_refused(in_folder("meta"), LMQ_ERR_FORMAT, "all of the 2 files");
    put_torch(&bytes, &(struct build_torch){0}, shard, 0,
              shard->n_tensors - 1);
    save(&bytes, in("meta", "consolidated.01.pth"));
    assert_refused(in_folder("meta"), LMQ_ERR_FORMAT, "all of the 2 files");
    rename(in("meta", "consolidated.01.pth"),
           in("meta", "consolidated.02.pth"));
    assert_refused(in_folder("meta"), LMQ_ERR_FORMAT,
                   "no consolidated.01.pth");
    unlink(in("meta", "consolidated.02.pth"));
    /* Half a model is none. */
    assert_refused(in_folder("meta"), LMQ_ERR_FORMAT, "configuration says");
    bytes_free(&bytes);
    build_free(shard);
    build_free(meta);
    build_free(model);
}
END_TEST

/* ---- Descriptions ---- */

static struct lmq_checkpoint *
open_with_config(const char *path, const char *config)
{
    struct lmq_open_options options = {.config = config};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    ck_assert_msg(lmq_checkpoint_open(path, &options, &checkpoint, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    return checkpoint;
}

START_TEST(a_bare_file_needs_a_description)
{
    struct build_model *model = build_model(&even, 7);
    struct build_model *meta = build_as_meta(model);
    const char *path = in_folder("bare.pth");

    save_torch(meta, BUILD_F32, path);
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    ck_assert(!checkpoint->has_model);
    ck_assert_ptr_nonnull(strstr(checkpoint->notes.texts[0], ".config"));
    lmq_checkpoint_close(checkpoint);
    /* Either kind will do. */
    save_params(meta, in_folder("some.json"));
    checkpoint = open_with_config(path, in_folder("some.json"));
    ck_assert(checkpoint->has_model && checkpoint->source.has_rotary_pairs);
    ck_assert_uint_eq(checkpoint->hparams.hidden_dim, even.hidden);
    lmq_checkpoint_close(checkpoint);
    struct bytes config = {0};
    put_config(&config, model);
    save(&config, in_folder("other.json"));
    bytes_free(&config);
    checkpoint = open_with_config(path, in_folder("other.json"));
    ck_assert(checkpoint->has_model && checkpoint->source.has_rotary_pairs);
    lmq_checkpoint_close(checkpoint);
    build_free(meta);
    build_free(model);
}
END_TEST

#define SIZES "\"dim\":24,\"n_heads\":4,\"n_kv_heads\":2"

static const struct {
    const char *params, *text;
} wrong_params[] = {
    {"{\"dim\":24,\"n_heads\":0}", "no number of heads"},
    {"{\"dim\":24,\"n_heads\":5}", "no multiple"},
    {"{\"dim\":-24,\"n_heads\":4}", "'dim' in params.json"},
    {"{\"dim\":\"24\",\"n_heads\":4}", "'dim' in params.json"},
    {"{" SIZES ",\"norm_eps\":\"x\"}", "'norm_eps' in params.json"},
    {"{" SIZES ",\"vocab_size\":35}", "the embedding has 34"},
    {"{" SIZES ",\"use_scaled_rope\":true,\"rope_high_freq_factor\":0.5}",
     "rope_high_freq_factor"},
    {"{" SIZES "", "JSON"},
};

START_TEST(params_are_checked)
{
    struct build_model *model = build_model(&even, 8);
    struct build_model *meta = build_as_meta(model);
    const char *params = in_folder("meta/params.json");

    save_meta(meta, 1, false, BUILD_F32);
    for (size_t i = 0; i < sizeof(wrong_params) / sizeof(wrong_params[0]);
         i++) {
        save_text(params, wrong_params[i].params);
        assert_refused(in_folder("meta"), LMQ_ERR_FORMAT,
                       wrong_params[i].text);
    }
    save_text(params, "{" SIZES ",\"moe\":{\"num_experts\":8}}");
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("meta"));
    ck_assert_ptr_nonnull(strstr(checkpoint->hparams.unsupported, "'moe'"));
    lmq_checkpoint_close(checkpoint);
    save_text(params, "{" SIZES ",\"n_layers\":2,\"use_scaled_rope\":true,"
                      "\"rope_theta\":500000.0}");
    checkpoint = open_checkpoint(in_folder("meta"));
    ck_assert_int_eq(checkpoint->hparams.rope_scaling, LMQ_ROPE_LLAMA3);
    ck_assert_double_eq(checkpoint->hparams.rope_factor, 8);
    ck_assert_double_eq(checkpoint->hparams.rope_theta, 500000);
    ck_assert_uint_eq(checkpoint->hparams.rope_context, 8192);
    ck_assert_uint_eq(checkpoint->hparams.context, 131072);
    lmq_checkpoint_close(checkpoint);
    build_free(meta);
    build_free(model);
}
END_TEST

/* Real files, where they are at hand. */
START_TEST(a_file_of_pytorch_is_read)
{
    const char *srcdir = getenv("srcdir");
    char path[1024], config[1024];
    size_t n;

    const char *where = "%s/../shared/data/models/meta-demo-random/%s";
    snprintf(path, sizeof(path), where, srcdir == NULL ? "." : srcdir,
             "demo_rand_params.pth");
    snprintf(config, sizeof(config), where, srcdir == NULL ? "." : srcdir,
             "demo_config.json");
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        return;
    }
    struct lmq_checkpoint *checkpoint = open_with_config(path, config);
    ck_assert(checkpoint->has_model);
    ck_assert_uint_eq(checkpoint->hparams.hidden_dim, 172);
    ck_assert_uint_eq(checkpoint->hparams.n_layers, 5);
    ck_assert_uint_eq(checkpoint->n_tensors, 48);
    float *x = read_tensor(checkpoint, "token_embd.weight", &n);
    ck_assert_uint_eq(n, 512 * 64);
    free(x);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_folder_with_a_bin_is_the_folder_of_safetensors,
        shards_with_an_index_are_one_model,
        a_training_checkpoint_describes_its_model,
        shards_of_meta_are_joined,
        pieces_of_joined_tensors_are_parts_of_the_whole,
        shards_that_do_not_belong_together_are_refused,
        a_bare_file_needs_a_description,
        params_are_checked,
        a_file_of_pytorch_is_read,
    };

    return RUN_SUITE("torch", tests);
}
