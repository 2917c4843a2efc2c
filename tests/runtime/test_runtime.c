/*
 * test_runtime.c - the forward pass against the oracle, and against itself.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/families/oracle.h"
#include "tests/families/variants.h"
#include "tests/runtime/run_logits.h"

/* float32 against double: rounding, some hundred times over. */
#define FLOAT_BOUND 1e-4

#define TOKENS 70

static const char *const convert_layouts[] = {"rows", "tiles"};

/* ---- Helpers ---- */

static void
fill_tokens(int32_t *tokens, size_t n, size_t vocabulary, uint64_t seed)
{
    struct random random = {seed};

    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)random_below(&random, vocabulary);
}

static struct lmq_model *
open_model(struct lmq_checkpoint *checkpoint)
{
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    return model;
}

/* fp32 logits of the checkpoint, prefill and token by token, against the
 * oracle. */
static void
assert_agrees(const char *path, size_t n)
{
    const size_t steps[] = {n, 1};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model = open_model(checkpoint);
    size_t vocabulary = lmq_model_vocabulary(model);
    int32_t tokens[256];

    fill_tokens(tokens, n, vocabulary, 7);
    double *truth = oracle_logits(checkpoint, tokens, n);
    for (size_t i = 0; i < 2; i++) {
        struct lmq_session_options options = {.batch = n};
        float *logits = run_logits(model, &options, tokens, n, steps[i]);
        double distance = oracle_distance(truth, logits, n * vocabulary);
        printf("%s, %zu at a time: %.2e\n", path, steps[i], distance);
        ck_assert_msg(distance <= FLOAT_BOUND, "%s: %g", path, distance);
        free(logits);
    }
    free(truth);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}

/* A model with random weights and this instead of its config.json's end. */
static const char *
make_variant(const struct build_sizes *sizes, const char *class_name,
             const char *more, bool has_bias)
{
    static const char *const biased[] = {"q_proj", "k_proj", "v_proj",
                                         "o_proj"};
    struct build_model *model = build_model(sizes, 3);
    const char *folder = in_folder("variant");
    struct random random = {11};
    char text[1024], path[512];

    for (uint32_t l = 0; has_bias && l < sizes->layers; l++)
        for (size_t i = 0; i < 4; i++) {
            uint64_t head = sizes->dim / sizes->heads;
            uint64_t n = i == 1 || i == 2 ? head * sizes->kv_heads
                                          : sizes->dim;
            char name[96];
            snprintf(name, sizeof(name), "model.layers.%u.self_attn.%s.bias",
                     l, biased[i]);
            struct build_tensor *bias = build_add(model, name, &n, 1);
            for (size_t j = 0; j < n; j++)
                bias->x[j] = (float)(0.1 * random_normal(&random));
        }
    save_folder(model, folder, BUILD_F32);
    snprintf(text, sizeof(text),
             "{\"architectures\": [\"%s\"], \"hidden_size\": %u, "
             "\"intermediate_size\": %u, \"num_hidden_layers\": %u, "
             "\"num_attention_heads\": %u, \"num_key_value_heads\": %u, "
             "\"vocab_size\": %u, \"max_position_embeddings\": %u, "
             "\"tie_word_embeddings\": %s%s}",
             class_name, sizes->dim, sizes->hidden, sizes->layers,
             sizes->heads, sizes->kv_heads, sizes->vocab, sizes->context,
             sizes->is_tied ? "true" : "false", more);
    snprintf(path, sizeof(path), "%s/config.json", folder);
    write_file(path, text, strlen(text));
    build_free(model);
    return folder;
}

/* ---- fp32 against the oracle ---- */

START_TEST(bundled_model_agrees_with_the_oracle)
{
    assert_agrees(source_path("data/fable"), TOKENS);
}
END_TEST

START_TEST(bundled_llama2c_file_agrees_with_the_oracle)
{
    assert_agrees(source_path("data/fable/fable.bin"), TOKENS);
}
END_TEST

START_TEST(small_model_agrees_with_the_oracle)
{
    assert_agrees(make_variant(&build_small, "LlamaForCausalLM",
                               ", \"rms_norm_eps\": 1e-3", false),
                  TOKENS);
}
END_TEST

START_TEST(untied_model_with_one_key_head_agrees)
{
    struct build_sizes sizes = build_small;

    sizes.kv_heads = 1;
    sizes.is_tied = false;
    assert_agrees(make_variant(&sizes, "LlamaForCausalLM", "", false), TOKENS);
}
END_TEST

START_TEST(as_many_key_heads_as_heads_agree)
{
    struct build_sizes sizes = build_small;

    sizes.kv_heads = sizes.heads;
    assert_agrees(make_variant(&sizes, "LlamaForCausalLM", "", false), TOKENS);
}
END_TEST

START_TEST(biases_agree)
{
    assert_agrees(
        make_variant(&build_small, "LlamaForCausalLM", "", true), TOKENS);
}
END_TEST

START_TEST(another_rope_base_agrees)
{
    assert_agrees(make_variant(&build_small, "LlamaForCausalLM",
                               ", \"rope_theta\": 500000.0", false),
                  TOKENS);
}
END_TEST

START_TEST(linear_rope_scaling_agrees)
{
    assert_agrees(
        make_variant(&build_small, "LlamaForCausalLM",
                     ", \"rope_scaling\": {\"type\": \"linear\", "
                     "\"factor\": 4.0}",
                     false),
        TOKENS);
}
END_TEST

START_TEST(llama3_rope_scaling_agrees)
{
    assert_agrees(
        make_variant(&build_small, "LlamaForCausalLM",
                     ", \"rope_scaling\": {\"rope_type\": \"llama3\", "
                     "\"factor\": 8.0, \"low_freq_factor\": 1.0, "
                     "\"high_freq_factor\": 4.0, "
                     "\"original_max_position_embeddings\": 32}",
                     false),
        TOKENS);
}
END_TEST

START_TEST(sliding_window_agrees_past_the_window)
{
    assert_agrees(make_variant(&build_small, "MistralForCausalLM",
                               ", \"sliding_window\": 9", false),
                  TOKENS);
}
END_TEST

START_TEST(a_sequence_of_several_attention_blocks_agrees)
{
    assert_agrees(make_variant(&build_small, "LlamaForCausalLM", "", false),
                  200);
}
END_TEST

/* ---- int8 ---- */

static const char *
convert_to(const char *from, const char *name, const char *layout)
{
    struct lmq_convert_options options = {.layout = layout};
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    const char *path = in_folder(name);
    struct lmq_error err;

    ck_assert_msg(lmq_convert(checkpoint, path, &options, NULL, NULL, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    lmq_checkpoint_close(checkpoint);
    return path;
}

/* int8 weights with activations as they are: the oracle on the dequantized
 * weights must give the same. */
START_TEST(int8_weights_agree_with_the_oracle_on_the_container)
{
    const struct {
        const char *activations;
        double bound;
    } modes[] = {{"f32", 1e-4}, {"q16", 1e-3}, {"q8", 0.1}};

    for (size_t l = 0; l < 2; l++) {
        const char *path = convert_to(source_path("data/fable"), "fable.lmq",
                                   convert_layouts[l]);
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        struct lmq_model *model = open_model(checkpoint);
        size_t vocabulary = lmq_model_vocabulary(model);
        int32_t tokens[TOKENS];
        fill_tokens(tokens, TOKENS, vocabulary, 7);
        double *truth = oracle_logits(checkpoint, tokens, TOKENS);
        for (size_t i = 0; i < 3; i++) {
            struct lmq_session_options options = {
                .batch = 16, .activations = modes[i].activations};
            float *logits = run_logits(model, &options, tokens, TOKENS, 16);
            double distance =
                oracle_distance(truth, logits, TOKENS * vocabulary);
            printf("%s, %s: %.2e\n", convert_layouts[l], modes[i].activations,
                   distance);
            ck_assert_double_le(distance, modes[i].bound);
            free(logits);
        }
        free(truth);
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
        remove(path);
    }
}
END_TEST

START_TEST(tiles_are_used_in_place_and_rows_are_copied)
{
    for (size_t l = 0; l < 2; l++) {
        const char *path = convert_to(source_path("data/fable"), "fable.lmq",
                                   convert_layouts[l]);
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        struct lmq_model *model = open_model(checkpoint);
        ck_assert_int_eq(model->n_copied_bytes > 0, l == 0);
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
        remove(path);
    }
}
END_TEST

/* ---- The same bits ---- */

static void
assert_same_bits(const char *path, const char *activations, const char *kv)
{
    const size_t batches[] = {1, 7, 64};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model = open_model(checkpoint);
    size_t vocabulary = lmq_model_vocabulary(model);
    size_t n_bytes = 140 * vocabulary * sizeof(float);
    int32_t tokens[140];
    float *first = NULL;

    fill_tokens(tokens, 140, vocabulary, 5);
    for (int threads = 1; threads <= 3; threads += 2)
        for (size_t i = 0; i < 3; i++) {
            struct lmq_session_options options = {.batch = batches[i],
                                                  .threads = threads,
                                                  .kv = kv,
                                                  .activations = activations};
            float *logits =
                run_logits(model, &options, tokens, 140, batches[i]);
            if (first == NULL)
                first = logits;
            for (size_t j = 0; j < 140 * vocabulary; j++)
                REQUIRE(isfinite(logits[j]), "logit %zu", j);
            ck_assert_msg(memcmp(first, logits, n_bytes) == 0,
                          "%s %s %s: %d threads, batches of %zu", path,
                          activations, kv, threads, batches[i]);
            if (first != logits)
                free(logits);
        }
    free(first);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}

START_TEST(int8_logits_do_not_depend_on_threads_and_batches)
{
    const char *path =
        convert_to(source_path("data/fable"), "fable.lmq", "tiles");

    assert_same_bits(path, "q8", "f32");
    assert_same_bits(path, "q16", "f16");
    assert_same_bits(path, "q16", "q8");
    assert_same_bits(path, "f32", "f32");
}
END_TEST

START_TEST(fp32_logits_do_not_depend_on_threads_and_batches)
{
    assert_same_bits(source_path("data/fable"), "f32", "f32");
}
END_TEST

/* Whatever a description may say. */
START_TEST(logits_of_variants_do_not_depend_on_threads_and_batches)
{
    const char *const kv[] = {"f32", "f16", "f16-q8", "q8"};

    for (size_t i = 0; i < variant_count(); i++) {
        const char *folder = variant_make(i, in_folder("variant"));
        const char *path = convert_to(folder, "variant.lmq", "tiles");
        assert_same_bits(folder, "f32", "f32");
        assert_same_bits(path, "q8", "f32");
        assert_same_bits(path, "q16", kv[i % 4]);
        if (i < 3) /* that have many small matrices */
            assert_same_bits(path, "f32", "f32");
        remove(path);
    }
}
END_TEST

START_TEST(smaller_keys_and_values_stay_near)
{
    const struct {
        const char *kv;
        double bound;
    } types[] = {{"f16", 2e-3}, {"f16-q8", 1e-2}, {"q8", 3e-2}};
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    struct lmq_model *model = open_model(checkpoint);
    size_t vocabulary = lmq_model_vocabulary(model);
    int32_t tokens[TOKENS];

    fill_tokens(tokens, TOKENS, vocabulary, 7);
    double *truth = oracle_logits(checkpoint, tokens, TOKENS);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct lmq_session_options options = {.batch = TOKENS,
                                              .kv = types[i].kv};
        float *logits = run_logits(model, &options, tokens, TOKENS, TOKENS);
        double distance =
            oracle_distance(truth, logits, TOKENS * vocabulary);
        printf("%s: %.2e\n", types[i].kv, distance);
        ck_assert_double_le(distance, types[i].bound);
        ck_assert_double_gt(distance, 1e-6); /* it is in use */
        free(logits);
    }
    free(truth);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- Sessions ---- */

static struct lmq_session *
small_session(struct lmq_checkpoint **checkpoint, struct lmq_model **model,
              size_t context)
{
    struct lmq_session_options options = {.context = context, .batch = 4};
    struct lmq_session *session;

    *checkpoint = open_checkpoint(source_path("data/fable"));
    *model = open_model(*checkpoint);
    ck_assert_int_eq(lmq_session_new(*model, &options, &session, NULL),
                     LMQ_OK);
    return session;
}

START_TEST(tokens_beyond_the_vocabulary_and_the_context_are_refused)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_model *model;
    struct lmq_session *session = small_session(&checkpoint, &model, 8);
    const int32_t wrong[] = {1, 512}, negative[] = {-1};
    int32_t many[9] = {0};

    ck_assert_int_eq(lmq_session_eval(session, wrong, 2, NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_session_eval(session, negative, 1, NULL),
                     LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_session_eval(session, many, 9, NULL), LMQ_ERR_ARG);
    ck_assert_int_eq(lmq_session_eval(session, many, 0, NULL), LMQ_ERR_ARG);
    ck_assert_uint_eq(lmq_session_position(session), 0);
    ck_assert_int_eq(lmq_session_eval(session, many, 8, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, many, 1, NULL), LMQ_ERR_ARG);
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* After sliding, the session is as if it had begun with what is left. */
START_TEST(sliding_keeps_the_beginning_and_the_latest_half)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_model *model;
    struct lmq_session *session = small_session(&checkpoint, &model, 16);
    int32_t tokens[16], kept[8];
    size_t n = 0;

    fill_tokens(tokens, 16, 512, 3);
    memcpy(kept, tokens, 4 * sizeof(*kept));
    memcpy(kept + 4, tokens + 12, 4 * sizeof(*kept));
    ck_assert_int_eq(lmq_session_eval(session, tokens, 16, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_session_slide(session, 4, NULL), LMQ_OK);
    ck_assert_uint_eq(lmq_session_position(session), 8);
    n = lmq_model_vocabulary(model);
    float *slid = malloc(n * sizeof(*slid));
    ck_assert_ptr_nonnull(slid);
    memcpy(slid, lmq_session_logits(session, 0), n * sizeof(*slid));
    lmq_session_rewind(session, 0);
    ck_assert_int_eq(lmq_session_eval(session, kept, 8, NULL), LMQ_OK);
    ck_assert_mem_eq(slid, lmq_session_logits(session, 0), n * sizeof(*slid));
    free(slid);
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(rewinding_forgets)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_model *model;
    struct lmq_session *session = small_session(&checkpoint, &model, 16);
    const int32_t a[] = {1, 300, 301}, b[] = {1, 300, 400, 301};
    size_t n = lmq_model_vocabulary(model);
    float *first = malloc(n * sizeof(*first));

    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(lmq_session_eval(session, a, 3, NULL), LMQ_OK);
    lmq_session_rewind(session, 3); /* nothing is forgotten */
    memcpy(first, lmq_session_logits(session, 0), n * sizeof(*first));
    lmq_session_rewind(session, 0);
    ck_assert_ptr_null(lmq_session_logits(session, 0));
    ck_assert_int_eq(lmq_session_eval(session, b, 4, NULL), LMQ_OK);
    lmq_session_rewind(session, 2);
    ck_assert_int_eq(lmq_session_eval(session, a + 2, 1, NULL), LMQ_OK);
    ck_assert_mem_eq(first, lmq_session_logits(session, 0),
                     n * sizeof(*first));
    free(first);
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* What a layer with the delta rule remembers only goes on: a session that is
 * rewound, or slides, finds it again. */
START_TEST(states_are_those_of_the_tokens_that_stay)
{
    struct lmq_session_options options = {
        .context = 24, .batch = 4, .threads = 1};
    struct lmq_checkpoint *checkpoint = open_checkpoint(
        variant_make(variant_find("delta"), in_folder("delta")));
    struct lmq_model *model = open_model(checkpoint);
    size_t n = lmq_model_vocabulary(model);
    struct lmq_session *session;
    int32_t tokens[20], other = 5;
    float *logits;

    fill_tokens(tokens, 20, n, 3);
    options.all_logits = 0;
    float *truth = run_logits(model, &options, tokens, 20, 4);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, NULL),
                     LMQ_OK);
    for (size_t at = 0; at < 20; at++) {
        ck_assert_int_eq(lmq_session_eval(session, tokens + at, 1, NULL),
                         LMQ_OK);
        lmq_session_rewind(session, at);
        ck_assert_int_eq(lmq_session_eval(session, &other, 1, NULL), LMQ_OK);
        lmq_session_rewind(session, at);
        ck_assert_int_eq(lmq_session_eval(session, tokens + at, 1, NULL),
                         LMQ_OK);
        ck_assert_mem_eq(truth + at * n, lmq_session_logits(session, 0),
                         n * sizeof(*truth));
    }
    ck_assert_int_eq(lmq_session_slide(session, 0, NULL), LMQ_OK);
    logits = run_logits(model, &options, tokens + 10, 10, 3);
    ck_assert_mem_eq(logits + 9 * n, lmq_session_logits(session, 0),
                     n * sizeof(*logits));
    free(logits);
    free(truth);
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* A session of the variant that has longrope, with its 100 positions. */
static struct lmq_session *
long_session(struct lmq_model *model, size_t context)
{
    struct lmq_session_options options = {
        .context = context, .batch = 7, .threads = 1};
    struct lmq_session *session;
    struct lmq_error err;

    ck_assert_msg(lmq_session_new(model, &options, &session, &err) == LMQ_OK,
                  "%s", err.message);
    return session;
}

/* Neither room nor what came before counts, only the tokens. */
START_TEST(longrope_goes_by_the_sequence_alone)
{
    const size_t lengths[] = {40, 100, 101, 130, 100, 99, 140, 20};
    size_t number = variant_find("after"); /* which has it */
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(variant_make(number, in_folder("longrope")));
    struct lmq_model *model = open_model(checkpoint);
    size_t n_bytes = lmq_model_vocabulary(model) * sizeof(float);
    struct lmq_session *roomy = long_session(model, 150);
    int32_t tokens[140];

    ck_assert_int_eq(model->hparams.rope_scaling, LMQ_ROPE_LONGROPE);
    fill_tokens(tokens, 140, lmq_model_vocabulary(model), 5);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t from = lmq_session_position(roomy);
        struct lmq_session *tight = long_session(model, lengths[i]);
        from = from < lengths[i] ? from : lengths[i] / 2;
        lmq_session_rewind(roomy, from);
        ck_assert_int_eq(lmq_session_eval(roomy, tokens + from,
                                          lengths[i] - from, NULL),
                         LMQ_OK);
        ck_assert_int_eq(lmq_session_eval(tight, tokens, lengths[i], NULL),
                         LMQ_OK);
        ck_assert_uint_eq(lmq_session_position(roomy), lengths[i]);
        ck_assert_mem_eq(lmq_session_logits(roomy, 0),
                         lmq_session_logits(tight, 0), n_bytes);
        lmq_session_free(tight);
    }
    lmq_session_free(roomy);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

static void
assert_ends_at(const struct lmq_model *model, size_t end, const char *why)
{
    struct lmq_session_options options = {.context = end};
    struct lmq_session *session;
    struct lmq_error err;

    ck_assert_int_eq(lmq_session_new(model, &options, &session, NULL),
                     LMQ_OK);
    lmq_session_free(session);
    options.context++;
    ck_assert_int_eq(lmq_session_new(model, &options, &session, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, why));
}

START_TEST(positions_may_end)
{
    size_t number = variant_find("learned");
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(variant_make(number, in_folder("learned")));
    struct lmq_model *model = open_model(checkpoint);

    assert_ends_at(model, VARIANT_CONTEXT, "learned 160 positions");
    /* Others end where another computation begins. */
    model->hparams.positions = LMQ_POSITIONS_NONE;
    model->hparams.context_end = VARIANT_CONTEXT + 1;
    assert_ends_at(model, VARIANT_CONTEXT + 1, "right for 161 positions");
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(a_model_that_is_not_understood_is_refused_by_name)
{
    struct build_model *build = build_model(&build_small, 1);
    const char *folder = in_folder("unknown");
    const char *config = "{\"architectures\": [\"RwkvForCausalLM\"]}";
    struct lmq_model *model;
    struct lmq_error err;
    char path[512];

    save_folder(build, folder, BUILD_F32);
    snprintf(path, sizeof(path), "%s/config.json", folder);
    write_file(path, config, strlen(config));
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "RwkvForCausalLM"));
    lmq_checkpoint_close(checkpoint);
    build_free(build);
}
END_TEST

/* A machine on which a token takes so long either way. */
static unsigned
tokens_by_streams(struct lmq_reading *reading, double one, double several,
                  unsigned n)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        count += reading->streams;
        lmq_reading_learn(reading, reading->streams ? several : one);
    }
    return count;
}

START_TEST(tokens_are_read_in_the_faster_way)
{
    struct lmq_reading reading = {0};

    ck_assert_uint_eq(tokens_by_streams(&reading, 1.1, 1, 256), 4 + 248);
    /* What was right in one round is tried again in the next. */
    ck_assert_uint_eq(tokens_by_streams(&reading, 1, 1.1, 256), 4);
    /* Twice is enough where it is dear. */
    ck_assert_uint_eq(tokens_by_streams(&reading, 1, 2, 256), 2);
    ck_assert_uint_eq(tokens_by_streams(&reading, 2, 1, 256), 2 + 252);
    /* One fast token in eight is enough: the others were disturbed. */
    for (unsigned i = 0; i < 8; i++)
        lmq_reading_learn(&reading, reading.streams && i > 4 ? 1 : 3);
    ck_assert(reading.streams);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        bundled_model_agrees_with_the_oracle,
        bundled_llama2c_file_agrees_with_the_oracle,
        small_model_agrees_with_the_oracle,
        untied_model_with_one_key_head_agrees,
        as_many_key_heads_as_heads_agree,
        biases_agree,
        another_rope_base_agrees,
        linear_rope_scaling_agrees,
        llama3_rope_scaling_agrees,
        sliding_window_agrees_past_the_window,
        a_sequence_of_several_attention_blocks_agrees,
        int8_weights_agree_with_the_oracle_on_the_container,
        tiles_are_used_in_place_and_rows_are_copied,
        int8_logits_do_not_depend_on_threads_and_batches,
        fp32_logits_do_not_depend_on_threads_and_batches,
        logits_of_variants_do_not_depend_on_threads_and_batches,
        smaller_keys_and_values_stay_near,
        tokens_beyond_the_vocabulary_and_the_context_are_refused,
        sliding_keeps_the_beginning_and_the_latest_half,
        rewinding_forgets,
        states_are_those_of_the_tokens_that_stay,
        longrope_goes_by_the_sequence_alone,
        positions_may_end,
        a_model_that_is_not_understood_is_refused_by_name,
        tokens_are_read_in_the_faster_way,
    };

    return RUN_SUITE("runtime", tests);
}
