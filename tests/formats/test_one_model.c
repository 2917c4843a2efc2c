/*
 * test_one_model.c - one model in every format: the same container, but for
 * where it came from, and the same logits.
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/lmq/lmq.h"
#include "tests/build/build_gguf.h"
#include "tests/build/build_torch.h"
#include "tests/build/suite.h"

/* Meta's files do not say the context; this is what is taken then. */
static const struct build_sizes sizes = {
    .dim = 24, .hidden = 40, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 34, .context = 2048,
};

#define N_TOKENS 40

/* ---- Writing it ---- */

static void
keep(struct bytes *bytes, const char *path)
{
    save(bytes, in_folder(path));
    bytes_free(bytes);
}

static void
write_llama2c(const struct build_model *model, int version, const char *path)
{
    struct bytes bytes = {0};

    put_llama2c(&bytes, model, version);
    keep(&bytes, path);
}

static void
write_shards(const struct build_model *model)
{
    struct bytes bytes = {0};
    size_t half = model->n_tensors / 2;
    char text[256];

    mkdir(in_folder("shards"), 0777);
    put_safetensors(&bytes, model, 0, half, BUILD_F32);
    keep(&bytes, "shards/a.safetensors");
    put_safetensors(&bytes, model, half, model->n_tensors - half, BUILD_F32);
    keep(&bytes, "shards/b.safetensors");
    put_config(&bytes, model);
    keep(&bytes, "shards/config.json");
    put_text(&bytes, "{\"weight_map\":{");
    for (size_t i = 0; i < model->n_tensors; i++) {
        snprintf(text, sizeof(text), "%s\"%s\":\"%c.safetensors\"",
                 i == 0 ? "" : ",", model->tensors[i].name,
                 i < half ? 'a' : 'b');
        put_text(&bytes, text);
    }
    put_text(&bytes, "}}");
    keep(&bytes, "shards/model.safetensors.index.json");
}

static void
write_gguf(const struct build_model *model, uint32_t version, const char *path)
{
    struct gguf gguf = {.version = version};
    struct bytes bytes = {0};

    gguf_llama_keys(&gguf, model);
    gguf_u32(&gguf, "tokenizer.ggml.bos_token_id", 1);
    gguf_u32(&gguf, "tokenizer.ggml.eos_token_id", 2);
    gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
    gguf_end(&gguf, &bytes);
    keep(&bytes, path);
}

static void
write_torch(const struct build_model *model)
{
    struct build_model *meta = build_as_meta(model);
    struct bytes bytes = {0};

    mkdir(in_folder("torch"), 0777);
    mkdir(in_folder("meta"), 0777);
    save_torch(model, BUILD_F32, in_folder("torch/pytorch_model.bin"));
    put_config(&bytes, model);
    keep(&bytes, "torch/config.json");
    save_torch(meta, BUILD_F32, in_folder("meta/consolidated.00.pth"));
    put_params(&bytes, model);
    keep(&bytes, "meta/params.json");
    build_free(meta);
}

/* ---- Comparing ---- */

/* What the metadata say, but for where it came from and how it showed that the
 * head is tied: formats say that in different ways. */
static char *
metadata_of(const struct lmq_container *container)
{
    json_t *metadata = json_deep_copy(container->metadata);

    json_object_del(metadata, "provenance");
    json_object_del(metadata, "tie_rule");
    char *text = json_dumps(metadata, JSON_SORT_KEYS);
    json_decref(metadata);
    return text;
}

static void
assert_same_containers(const char *path_a, const char *path_b)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);
    const struct lmq_container *x = lmq_checkpoint_container(a);
    const struct lmq_container *y = lmq_checkpoint_container(b);
    char *says_x = metadata_of(x), *says_y = metadata_of(y);

    ck_assert_str_eq(says_x, says_y);
    assert_same_tensors(path_a, path_b);
    free(says_x);
    free(says_y);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
}

static float *
logits_of(const char *path)
{
    struct lmq_session_options options = {.context = N_TOKENS,
                                          .all_logits = 1};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_session *session;
    struct lmq_model *model;
    struct random random = {3};
    int32_t tokens[N_TOKENS];
    struct lmq_error err;

    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)random_below(&random, sizes.vocab);
    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, tokens, N_TOKENS, &err),
                     LMQ_OK);
    float *logits = malloc(N_TOKENS * sizes.vocab * sizeof(*logits));
    ck_assert_ptr_nonnull(logits);
    for (size_t i = 0; i < N_TOKENS; i++)
        memcpy(logits + i * sizes.vocab,
               lmq_session_logits(session, N_TOKENS - 1 - i),
               sizes.vocab * sizeof(*logits));
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return logits;
}

/* Some writers keep the head of a tied model, and leave out the embedding. */
static void
keep_only_head(struct build_model *model)
{
    struct build_tensor *embedding = build_find(model, "embed_tokens.weight");

    snprintf(embedding->name, sizeof(embedding->name), "lm_head.weight");
}

static void
assert_same_everywhere(bool is_tied, bool has_only_head)
{
    static const char *const paths[] = {
        "hf",     "shards", "0.bin", "1.bin",
        "2.gguf", "3.gguf", "torch", "meta",
    };
    struct build_sizes these = sizes;
    these.is_tied = is_tied;
    struct build_model *model = build_model(&these, 5);
    size_t n = N_TOKENS * sizes.vocab;
    float *wanted = NULL;

    save_folder(model, in_folder("hf"), BUILD_F32);
    write_llama2c(model, 0, "0.bin");
    write_llama2c(model, 1, "1.bin");
    if (has_only_head)
        keep_only_head(model);
    write_shards(model);
    write_gguf(model, 2, "2.gguf");
    write_gguf(model, 3, "3.gguf");
    write_torch(model);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "%zu.lmq", i);
        lmq_report_free(convert(in_folder(paths[i]), in_folder(name), NULL));
        assert_same_containers(in_folder("0.lmq"), in_folder(name));
        float *logits = logits_of(in_folder(paths[i]));
        if (wanted == NULL)
            wanted = logits_of(in_folder(paths[i]));
        REQUIRE(memcmp(logits, wanted, n * sizeof(*logits)) == 0,
                "%s gives other logits", paths[i]);
        free(logits);
    }
    free(wanted);
    build_free(model);
}

START_TEST(a_model_is_the_same_from_every_format)
{
    assert_same_everywhere(false, false);
}
END_TEST

START_TEST(so_is_one_with_a_tied_head)
{
    assert_same_everywhere(true, false);
}
END_TEST

START_TEST(so_is_one_that_has_a_head_and_no_embedding)
{
    assert_same_everywhere(true, true);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_model_is_the_same_from_every_format,
        so_is_one_with_a_tied_head,
        so_is_one_that_has_a_head_and_no_embedding,
    };

    return RUN_SUITE("one model", tests);
}
