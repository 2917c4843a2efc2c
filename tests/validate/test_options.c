/*
 * test_options.c - structures of options from older and newer headers, and
 * reports that nobody wants.
 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/options.h"
#include "tests/build/suite.h"

/* A structure after two releases: `late` came with the second. */
struct grown {
    size_t size;
    uint64_t early, late;
};
struct newer {
    struct grown known;
    uint64_t unknown;
};
#define FIRST offsetof(struct grown, late)

static enum lmq_status
take(struct grown *own, const void *given, struct lmq_error *err)
{
    memset(own, 0xee, sizeof(*own));
    return lmq_options_take(own, sizeof(*own), FIRST, given, "struct grown",
                            err);
}

START_TEST(members_behind_the_given_size_are_defaults)
{
    const size_t sizes[] = {0, FIRST, sizeof(struct grown)};
    struct grown own;

    for (int i = 0; i < 3; i++) {
        const struct grown given = {sizes[i], 7, 8};
        ck_assert_int_eq(take(&own, &given, NULL), LMQ_OK);
        ck_assert_uint_eq(own.size, sizeof(own));
        ck_assert_uint_eq(own.early, 7);
        ck_assert_uint_eq(own.late, i == 2 ? 8 : 0);
    }
    ck_assert_int_eq(take(&own, NULL, NULL), LMQ_OK);
    ck_assert_uint_eq(own.early + own.late, 0);
}
END_TEST

START_TEST(what_is_set_and_not_known_is_refused)
{
    struct newer given = {{sizeof(given), 7, 8}, 0};
    struct grown own;
    struct lmq_error err;

    ck_assert_int_eq(take(&own, &given, &err), LMQ_OK);
    ck_assert_uint_eq(own.late, 8);
    given.unknown = (uint64_t)1 << 63;
    ck_assert_int_eq(take(&own, &given, &err), LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "struct grown has "));
}
END_TEST

START_TEST(a_size_that_none_can_have_is_refused)
{
    const size_t sizes[] = {1, sizeof(size_t) - 1, 5000, SIZE_MAX};
    struct grown own;
    struct lmq_error err;

    for (int i = 0; i < 4; i++) {
        const struct grown given = {sizes[i], 7, 8};
        ck_assert_int_eq(take(&own, &given, &err), LMQ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(err.message, "struct grown"));
    }
}
END_TEST

START_TEST(every_function_looks_at_the_size)
{
    const size_t wrong = 3;
    const char *path = source_path("data/fable/model.safetensors");
    struct lmq_checkpoint *checkpoint = open_checkpoint(path), *other;
    struct lmq_session_options session = {.size = wrong};
    struct lmq_model *model;
    struct lmq_session *made;
    struct lmq_sampler *sampler;

    ck_assert_int_eq(lmq_model_open(checkpoint, &model, NULL), LMQ_OK);
    ck_assert_int_eq(
        lmq_checkpoint_open(path, &(struct lmq_open_options){.size = wrong},
                            &other, NULL),
        LMQ_ERR_ARG);
    ck_assert_ptr_null(other);
    ck_assert_int_eq(
        lmq_convert(checkpoint, in_folder("x"),
                    &(struct lmq_convert_options){.size = wrong}, NULL, NULL,
                    NULL),
        LMQ_ERR_ARG);
    ck_assert_int_eq(
        lmq_export(checkpoint, in_folder("x"),
                   &(struct lmq_export_options){.size = wrong, .to = "gguf"},
                   NULL, NULL, NULL),
        LMQ_ERR_ARG);
    ck_assert_int_eq(
        lmq_inspect(checkpoint, &(struct lmq_inspect_options){.size = wrong},
                    NULL, NULL),
        LMQ_ERR_ARG);
    ck_assert_int_eq(
        lmq_diff(checkpoint, checkpoint,
                 &(struct lmq_diff_options){.size = wrong}, NULL, NULL, NULL),
        LMQ_ERR_ARG);
    ck_assert_int_eq(lmq_session_new(model, &session, &made, NULL),
                     LMQ_ERR_ARG);
    ck_assert_int_eq(
        lmq_sampler_new(&(struct lmq_sampler_options){.size = wrong}, 5,
                        &sampler, NULL),
        LMQ_ERR_ARG);
    ck_assert_int_eq(
        lmq_bench(checkpoint, &(struct lmq_bench_options){.session = &session},
                  NULL, NULL, NULL),
        LMQ_ERR_ARG);
    ck_assert_int_eq(
        lmq_validate(checkpoint, checkpoint,
                     &(struct lmq_validate_options){.session = &session}, NULL,
                     NULL, NULL, NULL),
        LMQ_ERR_ARG);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(a_message_names_the_option)
{
    const struct {
        struct lmq_convert_options options;
        const char *option, *message;
    } cases[] = {
        {{.scales = "x"}, "scales",
         ".scales is 'x', expected 'f16' or 'f32'"},
        {{.on_nonfinite = " .tie"}, "on_nonfinite",
         ".on_nonfinite is ' .tie', expected 'fail' or 'zero'"},
        {{.group_size = 5}, "group_size",
         ".group_size is 5, expected 32, 64, 128 or 256"},
    };
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    const struct lmq_inspect_options absent = {.tensor = " .tokenizer"};
    struct lmq_error err;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(lmq_convert(checkpoint, in_folder("x"),
                                     &cases[i].options, NULL, NULL, &err),
                         LMQ_ERR_ARG);
        ck_assert_str_eq(err.message, cases[i].message);
        ck_assert_str_eq(err.option, cases[i].option);
    }
    ck_assert_int_eq(lmq_inspect(checkpoint, &absent, NULL, &err),
                     LMQ_ERR_ARG);
    ck_assert_str_eq(err.option, "");
    ck_assert_str_eq(err.hint, "inspect .has_tensors lists their names");
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(every_report_may_be_null)
{
    static const int32_t tokens[] = {1, 5, 7};
    const struct lmq_session_options session = {.context = 16, .threads = 1};
    const struct lmq_generation generation = {
        .prompt = tokens, .n_prompt = 3, .made = tokens, .n_made = 1};
    const char *text = source_path("data/fable/held-out-b.txt");
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    struct lmq_tokenizer *tokenizer;

    ck_assert_int_eq(
        lmq_tokenizer_from_checkpoint(checkpoint, &tokenizer, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("x.lmq"), NULL, NULL,
                                 NULL, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_export(checkpoint, in_folder("x.gguf"),
                                &(struct lmq_export_options){.to = "gguf"},
                                NULL, NULL, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_inspect(checkpoint, NULL, NULL, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_verify(in_folder("x.lmq"), NULL, NULL, NULL, NULL),
                     LMQ_OK);
    ck_assert_int_eq(lmq_verify(text, NULL, NULL, NULL, NULL), LMQ_ERR_FORMAT);
    ck_assert_int_eq(
        lmq_verify_checkpoint(checkpoint, NULL, NULL, NULL, NULL),
        LMQ_ERR_FORMAT);
    ck_assert_int_eq(lmq_diff(checkpoint, checkpoint, NULL, NULL, NULL, NULL),
                     LMQ_OK);
    ck_assert_int_eq(
        lmq_generation_report(tokenizer, &generation, NULL, NULL), LMQ_OK);
    ck_assert_int_eq(
        lmq_bench(checkpoint,
                  &(struct lmq_bench_options){.session = &session,
                                              .n_prefill = 4,
                                              .n_decode = 2,
                                              .rounds = 1},
                  NULL, NULL, NULL),
        LMQ_OK);
    ck_assert_int_eq(
        lmq_validate(checkpoint, checkpoint,
                     &(struct lmq_validate_options){.session = &session,
                                                    .texts = &text,
                                                    .n_texts = 1,
                                                    .max_tokens = 32},
                     NULL, NULL, NULL, NULL),
        LMQ_OK);
    lmq_tokenizer_close(tokenizer);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(numbers_that_no_model_has_are_refused)
{
    static const struct {
        double rope_theta, norm_eps;
        const char *said;
    } cases[] = {
        {NAN, 0, ".rope_theta"},      {-1, 0, ".rope_theta"},
        {0.5, 0, ".rope_theta"},      {INFINITY, 0, ".rope_theta"},
        {0, NAN, ".norm_eps"},        {0, -1, ".norm_eps"},
        {0, INFINITY, ".norm_eps"},   {10000, 1e-5, NULL},
    };
    const struct lmq_session_options session = {.threads = -1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct lmq_open_options open = {
            .rope_theta = cases[i].rope_theta, .norm_eps = cases[i].norm_eps};
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err = {0};
        enum lmq_status status = lmq_checkpoint_open(
            source_path("data/fable"), &open, &checkpoint, &err);
        ck_assert_int_eq(status,
                         cases[i].said == NULL ? LMQ_OK : LMQ_ERR_ARG);
        if (cases[i].said != NULL) {
            ck_assert_ptr_nonnull(strstr(err.message, cases[i].said));
            ck_assert_ptr_null(checkpoint);
            continue;
        }
        struct lmq_model *model;
        struct lmq_session *made;
        ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err), LMQ_OK);
        ck_assert_int_eq(lmq_session_new(model, &session, &made, &err),
                         LMQ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(err.message, ".threads"));
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(what_no_validation_has_is_refused)
{
    const struct lmq_session_options session = {.threads = -1};
    const struct {
        struct lmq_validate_options options;
        const char *message, *option;
    } cases[] = {
        {{.session = &session}, ".threads is -1, expected 1 or more, or 0",
         "threads"},
        {{.part = 1}, ".part is 1, but .n_parts does not say of how many",
         "part"},
        {{.part = 3, .n_parts = 2}, "there is no part 3 of 2: expected 1 to 2",
         ""},
        {{.n_parts = 2}, "there is no part 0 of 2: expected 1 to 2", ""},
        {{.part = 1, .n_parts = 2, .has_floor = 1},
         ".has_floor does not go with .part: it looks at the first windows "
         "only",
         "has_floor"},
        {{.part = 1, .n_parts = 2, .baseline = "b.json"},
         ".baseline does not go with .part: it belongs to what merges the "
         "parts",
         "baseline"},
    };
    const struct lmq_planning_options plan = {.part = 1};
    const char *text = source_path("data/fable/held-out-b.txt");
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_validate_options options = cases[i].options;
        options.texts = &text;
        options.n_texts = 1;
        options.max_tokens = 32;
        ck_assert_int_eq(lmq_validate_check(&options, &err), LMQ_ERR_ARG);
        ck_assert_str_eq(err.message, cases[i].message);
        ck_assert_str_eq(err.option, cases[i].option);
        ck_assert_int_eq(lmq_validate(checkpoint, checkpoint, &options, NULL,
                                      NULL, NULL, &err),
                         LMQ_ERR_ARG);
        ck_assert_str_eq(err.message, cases[i].message);
    }
    ck_assert_int_eq(
        lmq_plan_recipe(checkpoint, NULL, &plan, NULL, NULL, &err),
        LMQ_ERR_ARG);
    ck_assert_str_eq(err.message, cases[1].message);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(a_page_is_made_of_its_own_report)
{
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    struct lmq_report *report;
    struct lmq_error err;
    char *text;

    ck_assert_int_eq(lmq_inspect(checkpoint, NULL, &report, &err), LMQ_OK);
    ck_assert_int_eq(lmq_validate_html(report, &text, &err), LMQ_ERR_ARG);
    ck_assert_ptr_null(text);
    ck_assert_int_eq(lmq_plan_html(report, &text, &err), LMQ_ERR_ARG);
    ck_assert_ptr_null(text);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(a_missing_number_is_no_null)
{
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(source_path("data/fable"));
    struct lmq_report *report;

    ck_assert_int_eq(lmq_inspect(checkpoint, NULL, &report, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_report_kind(report, ""), LMQ_KIND_OBJECT);
    ck_assert_int_eq(lmq_report_kind(report, "nothing"), LMQ_KIND_NONE);
    ck_assert_int_eq(lmq_report_kind(NULL, "path"), LMQ_KIND_NONE);
    ck_assert_int_eq(lmq_report_kind(report, "path"), LMQ_KIND_STRING);
    ck_assert_int_eq(lmq_report_kind(report, "packed"), LMQ_KIND_NULL);
    ck_assert_int_eq(lmq_report_kind(report, "notes"), LMQ_KIND_ARRAY);
    ck_assert_int_eq(lmq_report_kind(report, "model.n_layers"),
                     LMQ_KIND_NUMBER);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {
        members_behind_the_given_size_are_defaults,
        what_is_set_and_not_known_is_refused,
        a_size_that_none_can_have_is_refused,
        every_function_looks_at_the_size,
        a_message_names_the_option,
        every_report_may_be_null,
        numbers_that_no_model_has_are_refused,
        what_no_validation_has_is_refused,
        a_page_is_made_of_its_own_report,
        a_missing_number_is_no_null,
    };

    return RUN_SUITE("options", tests);
}
