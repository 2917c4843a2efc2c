/*
 * test_validate.c - the figures of validate against an independent
 * computation, and models that were damaged on purpose.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/model/hparams_compare.h"
#include "tests/build/suite.h"
#include "tests/families/family.h"
#include "tests/runtime/run_logits.h"
#include "tests/validate/validate_fable.h"

/* The same numbers by two ways, in doubles. */
#define SAME 1e-6

/* ---- An independent computation of the statistics ---- */

struct truth {
    size_t n;
    double nll_a, nll_b, kld, kld_max, tv, delta_p_sq, max_abs, top1;
    double lost, gained;
};

static void
add_position(struct truth *truth, const float *a, const float *b, size_t n,
             int32_t next)
{
    double za = log_sum_exp(a, n), zb = log_sum_exp(b, n);
    double kld = 0, tv = 0;

    for (size_t i = 0; i < n; i++) {
        double log_p = (double)a[i] - za, log_q = (double)b[i] - zb;
        kld += exp(log_p) * (log_p - log_q);
        tv += fabs(exp(log_p) - exp(log_q)) / 2;
        truth->max_abs =
            fmax(truth->max_abs, fabs((double)a[i] - (double)b[i]));
    }
    double delta_p =
        exp((double)b[next] - zb) - exp((double)a[next] - za);
    truth->n++;
    truth->nll_a += za - (double)a[next];
    truth->nll_b += zb - (double)b[next];
    truth->kld += kld;
    truth->kld_max = fmax(truth->kld_max, kld);
    truth->tv += tv;
    truth->delta_p_sq += delta_p * delta_p;
    truth->top1 += likeliest(a, n) == likeliest(b, n);
    bool is_right_a = likeliest(a, n) == (size_t)next;
    bool is_right_b = likeliest(b, n) == (size_t)next;
    truth->lost += is_right_a && !is_right_b;
    truth->gained += is_right_b && !is_right_a;
}

/* Windows of CONTEXT tokens, each after BOS, through two sessions. */
static struct truth
compute_truth(const char *reference, const char *judged, const char *text_path,
              size_t max_tokens)
{
    const char *paths[] = {reference, judged};
    struct lmq_checkpoint *checkpoints[2];
    struct lmq_model *models[2];
    struct lmq_session *sessions[2];
    struct lmq_session_options options = {.context = CONTEXT,
                                          .batch = CONTEXT};
    struct lmq_tokenizer *tokenizer;
    struct truth truth = {0};
    int32_t *ids;
    size_t size, n_ids;

    for (int i = 0; i < 2; i++) {
        checkpoints[i] = open_with_tokenizer(paths[i]);
        ck_assert_int_eq(lmq_model_open(checkpoints[i], &models[i], NULL),
                         LMQ_OK);
        ck_assert_int_eq(
            lmq_session_new(models[i], &options, &sessions[i], NULL), LMQ_OK);
    }
    ck_assert_int_eq(
        lmq_tokenizer_from_checkpoint(checkpoints[0], &tokenizer, NULL),
        LMQ_OK);
    char *text = (char *)read_file(text_path, &size);
    ck_assert_int_eq(lmq_tokenize(tokenizer, text, size, LMQ_TEXT_PLAIN, &ids,
                                  &n_ids, NULL),
                     LMQ_OK);
    n_ids = n_ids < max_tokens ? n_ids : max_tokens;
    size_t vocabulary = lmq_model_vocabulary(models[0]);
    for (size_t at = 0; at < n_ids; at += CONTEXT - 1) {
        size_t n = n_ids - at < CONTEXT - 1 ? n_ids - at : CONTEXT - 1;
        int32_t last = 1; /* BOS */
        for (int i = 0; i < 2; i++)
            lmq_session_rewind(sessions[i], 0);
        for (size_t j = 0; j < n; j++) {
            for (int i = 0; i < 2; i++)
                ck_assert_int_eq(
                    lmq_session_eval(sessions[i], &last, 1, NULL), LMQ_OK);
            add_position(&truth, lmq_session_logits(sessions[0], 0),
                         lmq_session_logits(sessions[1], 0), vocabulary,
                         ids[at + j]);
            last = ids[at + j];
        }
    }
    free(text);
    lmq_tokens_free(ids);
    lmq_tokenizer_close(tokenizer);
    for (int i = 0; i < 2; i++) {
        lmq_session_free(sessions[i]);
        lmq_model_close(models[i]);
        lmq_checkpoint_close(checkpoints[i]);
    }
    return truth;
}

static void
assert_near(const struct lmq_report *report, const char *key, double truth)
{
    double value = lmq_report_number(report, key);

    ck_assert_msg(fabs(value - truth) <= SAME * fabs(truth),
                  "%s is %.12g, computed independently %.12g", key, value,
                  truth);
}

START_TEST(figures_equal_an_independent_computation)
{
    const char *text = short_text("text.txt", 4000);
    const char *judged = quantize(fable(""), "fable.lmq");
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report = validate(fable(""), judged, &options);
    struct truth truth =
        compute_truth(fable(""), judged, text, options.max_tokens);
    double n = (double)truth.n;

    ck_assert_double_eq(lmq_report_number(report, "scored"), n);
    assert_near(report, "reference.nll", truth.nll_a / n);
    assert_near(report, "model.nll", truth.nll_b / n);
    assert_near(report, "reference.ppl", exp(truth.nll_a / n));
    assert_near(report, "model.ppl", exp(truth.nll_b / n));
    assert_near(report, "ppl_ratio", exp((truth.nll_b - truth.nll_a) / n));
    assert_near(report, "kld.mean", truth.kld / n);
    assert_near(report, "kld.max", truth.kld_max);
    assert_near(report, "total_variation", truth.tv / n);
    assert_near(report, "rms_delta_p", sqrt(truth.delta_p_sq / n));
    assert_near(report, "top1_agreement", truth.top1 / n);
    assert_near(report, "logit_drift.max_abs", truth.max_abs);
    assert_near(report, "flips.lost", truth.lost / n);
    assert_near(report, "flips.gained", truth.gained / n);
    assert_near(report, "flips.rate", (truth.lost + truth.gained) / n);
    ck_assert_double_gt(truth.lost, 0);
    lmq_report_free(report);
}
END_TEST

static void
assert_as_in_a_session(const char *family)
{
    const char *text = short_text("text.txt", 4000);
    struct family_model *model = family_make(family_find(family), 1, 512, 1);
    const char *folder = in_folder(family);

    family_write(model, folder);
    family_free(model);
    const char *judged = quantize(folder, "family.lmq");
    struct lmq_validate_options options = usual_options(&text);
    options.max_tokens = 5 * CONTEXT;
    struct lmq_report *report = validate(folder, judged, &options);
    struct truth truth =
        compute_truth(folder, judged, text, options.max_tokens);
    double n = (double)truth.n;

    assert_near(report, "reference.nll", truth.nll_a / n);
    assert_near(report, "model.nll", truth.nll_b / n);
    assert_near(report, "kld.mean", truth.kld / n);
    assert_near(report, "kld.max", truth.kld_max);
    lmq_report_free(report);
}

/* Several windows are in flight, and each keeps what later layers need: keys
 * and values that they share, inputs of their own. */
START_TEST(layers_that_share_are_evaluated_as_in_a_session)
{
    assert_as_in_a_session("gemma4");
}
END_TEST

START_TEST(layers_that_see_a_choice_are_evaluated_as_in_a_session)
{
    assert_as_in_a_session("hy4");
}
END_TEST

START_TEST(layers_that_come_again_are_evaluated_as_in_a_session)
{
    assert_as_in_a_session("nanbeige");
}
END_TEST

START_TEST(int8_by_default_is_still_the_same_model)
{
    const char *text = fable("held-out-a.txt");
    const char *judged = quantize(fable(""), "fable.lmq");
    const struct lmq_session_options session = {.context = 256};
    struct lmq_validate_options options = usual_options(&text);

    options.session = &session;
    options.splits_documents = 1;
    options.max_tokens = 3000;
    struct lmq_report *report = validate(fable(""), judged, &options);
    double ratio = lmq_report_number(report, "ppl_ratio");
    double kld = lmq_report_number(report, "kld.mean");
    printf("perplexity ratio %.6f, mean divergence %.3e\n", ratio, kld);
    ck_assert_double_le(fabs(ratio - 1), 0.002);
    ck_assert_double_le(kld, 2e-3);
    ck_assert_double_gt(kld, 1e-9);
    lmq_report_free(report);
}
END_TEST

START_TEST(digits_do_not_depend_on_threads_and_memory)
{
    const char *text = short_text("text.txt", 3000);
    const char *judged = quantize(fable(""), "fable.lmq");
    /* One is more than 32 bits can count. */
    const uint64_t memory[] = {0, (uint64_t)1 << 32, 8u << 20};
    char *first = NULL;

    for (int threads = 1; threads <= 3; threads++) {
        const struct lmq_session_options session = {.context = CONTEXT,
                                                    .threads = threads};
        struct lmq_validate_options options = usual_options(&text);
        options.session = &session;
        options.memory = memory[threads - 1];
        struct lmq_report *report = validate(fable(""), judged, &options);
        char *text_out;
        static const char *const keys[] = {"kld.mean", "kld.p99",
                                           "delta_nll_stderr",
                                           "layers.3.relative_rms"};
        char digits[256];
        size_t used = 0;
        for (size_t i = 0; i < 4; i++)
            used += (size_t)snprintf(digits + used, sizeof(digits) - used,
                                     "%.17g ",
                                     lmq_report_number(report, keys[i]));
        text_out = strdup(digits);
        if (first == NULL)
            first = text_out;
        ck_assert_str_eq(first, text_out);
        if (first != text_out)
            free(text_out);
        lmq_report_free(report);
    }
    free(first);
}
END_TEST

START_TEST(the_reference_against_itself_is_exactly_zero)
{
    const char *text = short_text("text.txt", 2000);
    struct lmq_validate_options options = usual_options(&text);

    options.has_floor = 1;
    struct lmq_report *report = validate(fable(""), fable(""), &options);
    ck_assert_double_eq(lmq_report_number(report, "kld.max"), 0);
    ck_assert_double_eq(lmq_report_number(report, "ppl_ratio"), 1);
    ck_assert_double_eq(lmq_report_number(report, "logit_drift.max_abs"), 0);
    ck_assert_double_eq(lmq_report_number(report, "floor.kld"), 0);
    ck_assert_double_eq(lmq_report_number(report, "layers.4.rms"), 0);
    ck_assert_double_eq(lmq_report_number(report, "layers.4.relative_rms"), 0);
    lmq_report_free(report);
}
END_TEST

START_TEST(a_llama2c_file_and_a_folder_of_the_same_weights_are_equal)
{
    const char *text = short_text("text.txt", 2000);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report =
        validate(fable(""), fable("fable.bin"), &options);

    ck_assert_double_eq(lmq_report_number(report, "kld.max"), 0);
    lmq_report_free(report);
}
END_TEST

/* ---- Damage ---- */

/* Where layer l of an array of fable.bin begins, in floats behind the header:
 * dim 96, hidden 200, 4 layers, 6 heads on 2, vocabulary 512. */
enum { DIM = 96, LAYERS = 4, VOCABULARY = 512, KV = 32 };

static size_t
wq_at(size_t layer)
{
    return VOCABULARY * DIM + LAYERS * DIM + layer * DIM * DIM;
}

static size_t
wv_at(size_t layer)
{
    return VOCABULARY * DIM + LAYERS * DIM + LAYERS * DIM * DIM +
           LAYERS * KV * DIM + layer * KV * DIM;
}

static unsigned char *
load_bin(size_t *n)
{
    return read_file(fable("fable.bin"), n);
}

/* One tensor's weights five percent too large. */
static const char *
make_scaled(size_t layer)
{
    size_t n;
    unsigned char *bytes = load_bin(&n);
    const char *path = in_folder("scaled.bin");

    for (size_t i = 0; i < KV * DIM; i++) {
        unsigned char *p = bytes + 28 + 4 * (wv_at(layer) + i);
        lmq_store_f32le(p, 1.05f * lmq_load_f32le(p));
    }
    write_file(path, bytes, n);
    free(bytes);
    return path;
}

/* One layer's queries in the other rotary layout, as a wrong converter would
 * leave them. */
static const char *
make_swapped(size_t layer)
{
    const size_t head = 16;
    size_t n;
    unsigned char *bytes = load_bin(&n);
    unsigned char *wq = bytes + 28 + 4 * wq_at(layer);
    unsigned char *copy = malloc(4 * DIM * DIM);
    const char *path = in_folder("swapped.bin");

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, wq, 4 * DIM * DIM);
    for (size_t row = 0; row < DIM; row++) {
        size_t in_head = row % head;
        size_t from = row - in_head + in_head / 2 + in_head % 2 * (head / 2);
        memcpy(wq + 4 * DIM * row, copy + 4 * DIM * from, 4 * DIM);
    }
    write_file(path, bytes, n);
    free(copy);
    free(bytes);
    return path;
}

static void
assert_points_at(const char *damaged, size_t layer, const char *part,
                 const char *text)
{
    struct lmq_validate_options options = usual_options(&text);
    const char *healthy = quantize(fable(""), "healthy.lmq");
    const char *judged = quantize(damaged, "damaged.lmq");
    char name[16];

    options.has_attribution = 1;
    snprintf(name, sizeof(name), "%zu", layer);
    struct lmq_report *good = validate(fable(""), healthy, &options);
    struct lmq_report *bad = validate(fable(""), judged, &options);
    double good_kld = lmq_report_number(good, "kld.mean");
    double bad_kld = lmq_report_number(bad, "kld.mean");
    printf("healthy %.2e, damaged %.2e; layer %s has %.0f %%, %s %.0f %%\n",
           good_kld, bad_kld,
           lmq_report_string(bad, "attribution.layers.0.name"),
           100 * lmq_report_number(bad, "attribution.layers.0.share"),
           lmq_report_string(bad, "attribution.parts.0.name"),
           100 * lmq_report_number(bad, "attribution.parts.0.share"));
    ck_assert_double_gt(bad_kld, 2 * good_kld);
    ck_assert_str_eq(lmq_report_string(bad, "attribution.layers.0.name"),
                     name);
    ck_assert_str_eq(lmq_report_string(bad, "attribution.parts.0.name"), part);
    ck_assert_double_gt(
        lmq_report_number(bad, "attribution.layers.0.share"), 0.5);
    lmq_report_free(good);
    lmq_report_free(bad);
}

START_TEST(a_scaled_tensor_is_found)
{
    assert_points_at(make_scaled(2), 2, "attention",
                     short_text("text.txt", 4000));
}
END_TEST

START_TEST(a_swapped_rotary_layout_is_found)
{
    assert_points_at(make_swapped(1), 1, "attention",
                     short_text("text.txt", 4000));
}
END_TEST

/* Side by side one has no tensor where the other has it, or another's keys. */
START_TEST(models_whose_layers_have_other_tensors_are_other_models)
{
    static const unsigned bits[] = {
        LMQ_LAYER_DENSE, LMQ_LAYER_DELTA,    LMQ_LAYER_BARE,
        LMQ_LAYER_FEED,  LMQ_LAYER_SINKLESS, LMQ_LAYER_AFTER,
    };
    struct lmq_hparams a, b;

    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        lmq_hparams_init(&a);
        a.n_layers = 2;
        b = a;
        b.layers[1] |= (uint32_t)bits[i];
        ck_assert_ptr_nonnull(lmq_hparams_difference(&a, &b));
    }
    b = a;
    b.layers[1] |= LMQ_LAYER_FULL | LMQ_LAYER_NOPE;
    ck_assert_ptr_null(lmq_hparams_difference(&a, &b));
    a.n_borrowing = b.n_borrowing = 1;
    ck_assert_str_eq(lmq_hparams_difference(&a, &b), "full_layers");
    a.n_borrowing = b.n_borrowing = 0;
    a.full_head_dim = b.full_head_dim = 8;
    ck_assert_str_eq(lmq_hparams_difference(&a, &b), "full_layers");
    a.full_head_dim = b.full_head_dim = 0;
    b.layers[1] = LMQ_LAYER_NOPE;
    a.kv_lora_rank = b.kv_lora_rank = 8;
    ck_assert_ptr_null(lmq_hparams_difference(&a, &b));
    a.has_whole_still = b.has_whole_still = true;
    ck_assert_str_eq(lmq_hparams_difference(&a, &b), "still_layers");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        figures_equal_an_independent_computation,
        layers_that_share_are_evaluated_as_in_a_session,
        layers_that_see_a_choice_are_evaluated_as_in_a_session,
        layers_that_come_again_are_evaluated_as_in_a_session,
        int8_by_default_is_still_the_same_model,
        digits_do_not_depend_on_threads_and_memory,
        the_reference_against_itself_is_exactly_zero,
        a_llama2c_file_and_a_folder_of_the_same_weights_are_equal,
        a_scaled_tensor_is_found,
        a_swapped_rotary_layout_is_found,
        models_whose_layers_have_other_tensors_are_other_models,
    };

    return RUN_SUITE("validate", tests);
}
