/*
 * test_diff.c - two models compared: their weights, descriptions and
 * tokenizers.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

/* ---- Weights ---- */

START_TEST(equal_checkpoints_of_two_formats_are_identical)
{
    struct build_model *model = build_model(&build_small, 1);
    struct bytes bytes = {0};

    save_folder(model, in_folder("a"), BUILD_F32);
    put_llama2c(&bytes, model, 1);
    save(&bytes, in_folder("b.bin"));
    struct lmq_report *report = diff(in_folder("a"), in_folder("b.bin"), 2);
    ck_assert(lmq_report_number(report, "identical") == 1);
    ck_assert(lmq_report_number(report, "missing") == 0);
    ck_assert(lmq_report_number(report, "max_error") == 0);
    ck_assert(lmq_report_number(report, "cosine") > 0.999999999);
    ck_assert(lmq_report_number(report, "compared") ==
              (double)model->n_tensors);
    lmq_report_free(report);
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

START_TEST(one_changed_weight_shows_where_and_how_much)
{
    struct build_model *model = build_model(&build_small, 1);
    struct build_tensor *up = build_find(model, "layers.1.mlp.up_proj.weight");

    double sum = 0; /* of squares */
    size_t n = 0;

    up->x[5] = 0.25f;
    for (size_t i = 0; i < model->n_tensors; i++) {
        const struct build_tensor *tensor = &model->tensors[i];
        n += tensor->n_elements;
        for (size_t k = 0; k < tensor->n_elements; k++)
            sum += (double)tensor->x[k] * (double)tensor->x[k];
    }
    save_folder(model, in_folder("a"), BUILD_F32);
    up->x[5] = 0.5f;
    save_folder(model, in_folder("b"), BUILD_F32);
    struct lmq_report *report = diff(in_folder("a"), in_folder("b"), 3);
    ck_assert(lmq_report_number(report, "identical") == 0);
    ck_assert(lmq_report_number(report, "max_error") == 0.25);
    ck_assert(lmq_report_number(report, "different_elements") == 1);
    ck_assert_double_eq_tol(lmq_report_number(report, "rms_error"),
                            0.25 / sqrt((double)n), 1e-12);
    ck_assert_double_eq_tol(lmq_report_number(report, "cosine"),
                            (sum + 0.0625) / sqrt(sum * (sum + 0.1875)),
                            1e-12);
    ck_assert_double_eq_tol(lmq_report_number(report, "snr_db"),
                            10 * log10(sum / 0.0625), 1e-9);
    lmq_report_free(report);
    build_free(model);
}
END_TEST

START_TEST(a_head_that_is_the_embedding_counts_once)
{
    static const struct build_sizes tied = {
        .dim = 64, .hidden = 96, .layers = 2, .heads = 4, .kv_heads = 2,
        .vocab = 96, .context = 32, .is_tied = true};
    struct build_model *model = build_model(&tied, 1);
    struct build_tensor *embedding = &model->tensors[0];
    struct lmq_report *report;
    size_t n = 0;

    for (size_t i = 0; i < model->n_tensors; i++)
        n += model->tensors[i].n_elements;
    ck_assert_str_eq(embedding->name, "model.embed_tokens.weight");
    save_folder(model, in_folder("a"), BUILD_F32);
    embedding->x[5] += 0.5f;
    save_folder(model, in_folder("b"), BUILD_F32);
    const char *const rules[] = {"*=f32"};
    const struct lmq_convert_options whole = {.rules = rules, .n_rules = 1};
    lmq_report_free(convert(in_folder("b"), in_folder("b.lmq"), &whole));
    /* A container names the head, the folder does not. */
    const char *const pairs[][2] = {{"a", "b"}, {"a", "b.lmq"}, {"b.lmq", "a"}};
    for (size_t i = 0; i < 3; i++) {
        char *first = strdup(in_folder(pairs[i][0]));
        report = diff(first, in_folder(pairs[i][1]), 1);
        ck_assert(lmq_report_number(report, "compared") ==
                  (double)model->n_tensors);
        ck_assert(lmq_report_number(report, "different_elements") == 1);
        ck_assert_double_eq_tol(lmq_report_number(report, "rms_error"),
                                0.5 / sqrt((double)n), 1e-7);
        lmq_report_free(report);
        free(first);
    }
    build_free(model);
}
END_TEST

START_TEST(missing_tensors_and_other_shapes_are_listed)
{
    struct build_model *model = build_model(&build_small, 1);

    build_add(model, "only.a", (uint64_t[]){3}, 1);
    build_add(model, "shape", (uint64_t[]){2, 3}, 2);
    save_safetensors(model, in_folder("a.safetensors"));
    model->n_tensors -= 2;
    free(model->tensors[model->n_tensors].x);
    free(model->tensors[model->n_tensors + 1].x);
    build_add(model, "only.b", (uint64_t[]){3}, 1);
    build_add(model, "shape", (uint64_t[]){3, 2}, 2);
    save_safetensors(model, in_folder("b.safetensors"));
    struct lmq_report *report =
        diff(in_folder("a.safetensors"), in_folder("b.safetensors"), 1);
    ck_assert_str_eq(lmq_report_string(report, "only_in_a.0"), "only.a");
    ck_assert_str_eq(lmq_report_string(report, "only_in_b.0"), "only.b");
    ck_assert_str_eq(lmq_report_string(report, "other_shapes.0.name"),
                     "shape");
    ck_assert(lmq_report_number(report, "missing") == 2);
    ck_assert(lmq_report_number(report, "identical") == 0);
    lmq_report_free(report);
    build_free(model);
}
END_TEST

START_TEST(a_nan_is_never_called_equal)
{
    struct build_model *model = build_model(&build_small, 1);

    build_find(model, "layers.1.mlp.up_proj.weight")->x[7] = NAN;
    save_safetensors(model, in_folder("a.safetensors"));
    struct lmq_report *report =
        diff(in_folder("a.safetensors"), in_folder("a.safetensors"), 2);
    ck_assert(lmq_report_number(report, "identical") == 0);
    ck_assert(isnan(lmq_report_number(report, "max_error")));
    lmq_report_free(report);
    build_free(model);
}
END_TEST

START_TEST(the_worst_tensors_come_first)
{
    struct build_model *model = build_model(&build_small, 5);

    save_folder(model, in_folder("a"), BUILD_F32);
    build_find(model, "layers.0.self_attn.q_proj.weight")->x[3] += 0.01f;
    build_find(model, "layers.1.mlp.up_proj.weight")->x[3] += 2;
    build_find(model, "layers.1.mlp.down_proj.weight")->x[3] = NAN;
    save_folder(model, in_folder("b"), BUILD_F32);
    build_free(model);
    struct lmq_report *report = diff(in_folder("a"), in_folder("b"), 1);
    ck_assert_str_eq(lmq_report_string(report, "tensors.0.name"),
                     "blk.1.ffn_down.weight");
    ck_assert_str_eq(lmq_report_string(report, "tensors.1.name"),
                     "blk.1.ffn_up.weight");
    ck_assert_str_eq(lmq_report_string(report, "tensors.2.name"),
                     "blk.0.attn_q.weight");
    ck_assert_str_eq(lmq_report_string(report, "tensors.3.name"),
                     "token_embd.weight");
    ck_assert_double_eq(
        lmq_report_number(report, "tensors.0.nonfinite_elements"), 1);
    ck_assert(isnan(lmq_report_number(report, "max_error")));
    lmq_report_free(report);
}
END_TEST

START_TEST(of_nothing_there_is_no_error)
{
    static const struct build_sizes other = {
        .dim = 64, .hidden = 96, .layers = 2, .heads = 4, .kv_heads = 2,
        .vocab = 96, .context = 32, .is_tied = true};
    struct build_model *a = build_model(&other, 5);
    struct build_model *b = build_model(&build_small, 5);
    static const char *const gates[] = {"max_error<=1", "snr_db>=0",
                                        "identical>=1", "weights.equal>=1"};
    struct lmq_error err;
    size_t n_broken;

    save_folder(a, in_folder("a"), BUILD_F32);
    save_folder(b, in_folder("b"), BUILD_F32);
    build_free(a);
    build_free(b);
    struct lmq_report *report = diff(in_folder("a"), in_folder("b"), 1);
    ck_assert_double_eq(lmq_report_number(report, "compared"), 0);
    ck_assert_int_eq(lmq_gates_apply(report, gates, 4, &n_broken, &err),
                     LMQ_OK);
    ck_assert_uint_eq(n_broken, 4);
    lmq_report_free(report);
}
END_TEST

START_TEST(threads_do_not_change_a_diff)
{
    struct build_sizes sizes = {.dim = 128, .hidden = 300, .layers = 2,
                                .heads = 4, .kv_heads = 2, .vocab = 4000,
                                .context = 64, .is_tied = true};
    struct build_model *model = build_model(&sizes, 3);
    char *texts[2];

    save_folder(model, in_folder("a"), BUILD_F32);
    save_folder(model, in_folder("b"), BUILD_BF16);
    for (int i = 0; i < 2; i++) {
        struct lmq_report *report =
            diff(in_folder("a"), in_folder("b"), 1 + 3 * i);
        ck_assert_int_eq(
            lmq_report_text(report, LMQ_REPORT_JSON, &texts[i], NULL), LMQ_OK);
        lmq_report_free(report);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    lmq_text_free(texts[0]);
    lmq_text_free(texts[1]);
    build_free(model);
}
END_TEST

/* ---- Descriptions ---- */

static struct lmq_report *
diff_with(const char *path_a, const char *path_b,
          const struct lmq_open_options *open)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a), *b;
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_checkpoint_open(path_b, open, &b, &err), LMQ_OK);
    ck_assert_msg(lmq_diff(a, b, NULL, NULL, &report, &err) == LMQ_OK, "%s",
                  err.message);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return report;
}

START_TEST(models_that_compute_otherwise_are_not_identical)
{
    static const struct {
        struct lmq_open_options open;
        const char *key;
    } cases[] = {
        {{.rope_theta = 500000}, "rope_theta"},
        {{.norm_eps = 1e-6}, "norm_eps"},
        {{.rope_theta = 10000}, NULL},
    };
    struct build_model *model = build_model(&build_small, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_same = cases[i].key == NULL;
        struct lmq_report *report = diff_with(
            in_folder("model"), in_folder("model"), &cases[i].open);
        ck_assert_int_eq(lmq_report_number(report, "identical") == 1, is_same);
        ck_assert_int_eq(lmq_report_number(report, "description.equal") == 1,
                         is_same);
        ck_assert_double_eq(lmq_report_number(report, "weights.equal"), 1);
        ck_assert_str_eq(
            lmq_report_string(report, "description.differences.0.key"),
            is_same ? "" : cases[i].key);
        /* Neither has a tokenizer. */
        ck_assert(isnan(lmq_report_number(report, "tokenizer.equal")));
        lmq_report_free(report);
    }
    /* One is described, or none. */
    save_safetensors(model, in_folder("bare.safetensors"));
    char *bare = strdup(in_folder("bare.safetensors"));
    struct lmq_report *report = diff(in_folder("model"), bare, 1);
    ck_assert(lmq_report_number(report, "description.equal") == 0);
    ck_assert(lmq_report_number(report, "identical") == 0);
    lmq_report_free(report);
    report = diff(bare, bare, 1);
    ck_assert(isnan(lmq_report_number(report, "description.equal")));
    ck_assert(lmq_report_number(report, "identical") == 1);
    lmq_report_free(report);
    free(bare);
    build_free(model);
}
END_TEST

/* ---- Tokenizers ---- */

START_TEST(tokenizers_are_compared_by_what_they_do)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } cases[] = {
        {"data/fable/tokenizer.json", "data/fable/tokenizer.json", true},
        {"data/fable/tokenizer.json", NULL, false},
        {"data/fable/tokenizer.json", "data/fable/config.json", false},
    };
    struct build_model *model = build_model(&build_small, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct lmq_open_options a = {.tokenizer =
                                               source_path(cases[i].a)};
        struct lmq_open_options b = {0};
        struct lmq_checkpoint *x, *y;
        struct lmq_report *report;
        struct lmq_error err;
        ck_assert_int_eq(
            lmq_checkpoint_open(in_folder("model"), &a, &x, &err), LMQ_OK);
        if (cases[i].b != NULL)
            b.tokenizer = source_path(cases[i].b);
        ck_assert_int_eq(
            lmq_checkpoint_open(in_folder("model"), &b, &y, &err), LMQ_OK);
        ck_assert_msg(lmq_diff(x, y, NULL, NULL, &report, &err) == LMQ_OK, "%s",
                      err.message);
        ck_assert_double_eq(lmq_report_number(report, "tokenizer.equal"),
                            cases[i].is_equal);
        ck_assert_double_eq(lmq_report_number(report, "identical"),
                            cases[i].is_equal);
        lmq_report_free(report);
        lmq_checkpoint_close(x);
        lmq_checkpoint_close(y);
    }
}
END_TEST

/* tokenizer.json alone does not say where a text ends: tokenizer_config.json
 * does, and then both files say the same as llama2.c's. */
START_TEST(one_tokenizer_in_two_formats_is_equal)
{
    static const char *const names[] = {"data/fable/tokenizer.json",
                                        "data/fable"};
    const struct lmq_open_options binary = {
        .tokenizer = source_path("data/fable/tokenizer.bin")};

    for (int is_whole = 0; is_whole < 2; is_whole++) {
        const struct lmq_open_options json = {.tokenizer =
                                                  source_path(names[0])};
        struct lmq_checkpoint *a, *b;
        struct lmq_report *report;
        struct lmq_error err;
        ck_assert_int_eq(lmq_checkpoint_open(source_path(names[1]),
                                             is_whole ? NULL : &json, &a, &err),
                         LMQ_OK);
        ck_assert_int_eq(lmq_checkpoint_open(source_path(names[1]), &binary,
                                             &b, &err),
                         LMQ_OK);
        ck_assert_int_eq(lmq_diff(a, b, NULL, NULL, &report, &err), LMQ_OK);
        ck_assert_double_eq(lmq_report_number(report, "tokenizer.equal"),
                            is_whole);
        ck_assert_uint_eq(lmq_report_length(lmq_report_at(
                              report, "tokenizer.differences")),
                          !is_whole);
        ck_assert_str_eq(
            lmq_report_string(report, "tokenizer.differences.0.key"),
            is_whole ? "" : "eos");
        ck_assert_double_eq(lmq_report_number(report, "identical"), is_whole);
        lmq_report_free(report);
        lmq_checkpoint_close(a);
        lmq_checkpoint_close(b);
    }
}
END_TEST

/* The vocabulary is the same; what it does with a text is not. */
START_TEST(a_tokenizer_that_normalizes_otherwise_is_another)
{
    static const char begin[] = "\"normalizers\": [";
    static const char lower[] = " { \"type\": \"Lowercase\" },";
    static const char *const texts[] = {"once upon a time there was a hen",
                                        "Once Upon a Time There Was a Hen"};
    size_t n;
    unsigned char *bytes =
        read_file(source_path("data/fable/tokenizer.json"), &n);
    char *copy = calloc(1, n + sizeof(lower));

    ck_assert_ptr_nonnull(copy);
    bytes = realloc(bytes, n + 1);
    ck_assert_ptr_nonnull(bytes);
    bytes[n] = 0;
    const char *at = strstr((char *)bytes, begin);
    ck_assert_ptr_nonnull(at);
    size_t before = (size_t)(at - (char *)bytes) + sizeof(begin) - 1;
    memcpy(copy, bytes, before);
    memcpy(copy + before, lower, sizeof(lower) - 1);
    memcpy(copy + before + sizeof(lower) - 1, bytes + before, n - before);
    write_file(in_folder("tokenizer.json"), copy, n + sizeof(lower) - 1);
    free(bytes);
    free(copy);
    const struct lmq_open_options options = {
        .tokenizer = in_folder("tokenizer.json")};
    const struct lmq_open_options plain = {
        .tokenizer = source_path("data/fable/tokenizer.json")};
    for (int is_other = 0; is_other < 2; is_other++) {
        const char *text = in_folder("text");
        const struct lmq_session_options session = {.context = 16,
                                                    .threads = 1};
        const struct lmq_validate_options how = {
            .texts = &text, .n_texts = 1, .session = &session};
        struct lmq_checkpoint *a, *b;
        struct lmq_report *report;
        struct lmq_error err = {0};
        int is_partial;
        write_file(text, texts[is_other], strlen(texts[is_other]));
        ck_assert_int_eq(lmq_checkpoint_open(source_path("data/fable"), &plain,
                                             &a, &err),
                         LMQ_OK);
        ck_assert_int_eq(lmq_checkpoint_open(source_path("data/fable"),
                                             &options, &b, &err),
                         LMQ_OK);
        ck_assert_int_eq(
            lmq_validate(a, b, &how, NULL, &report, &is_partial, &err),
            is_other ? LMQ_ERR_FORMAT : LMQ_OK);
        if (is_other)
            ck_assert_ptr_nonnull(strstr(err.message, "tokenizer differs"));
        lmq_report_free(report);
        lmq_checkpoint_close(a);
        lmq_checkpoint_close(b);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        equal_checkpoints_of_two_formats_are_identical,
        one_changed_weight_shows_where_and_how_much,
        a_head_that_is_the_embedding_counts_once,
        missing_tensors_and_other_shapes_are_listed,
        a_nan_is_never_called_equal,
        the_worst_tensors_come_first,
        of_nothing_there_is_no_error,
        threads_do_not_change_a_diff,
        models_that_compute_otherwise_are_not_identical,
        tokenizers_are_compared_by_what_they_do,
        one_tokenizer_in_two_formats_is_equal,
        a_tokenizer_that_normalizes_otherwise_is_another,
    };

    return RUN_SUITE("diff", tests);
}
