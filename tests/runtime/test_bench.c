/*
 * test_bench.c - what a benchmark counts, and every family at a depth.
 *
 * How fast it is, nobody can say here.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/families/family.h"

static enum lmq_status
try_bench(const char *path, size_t depth, struct lmq_report **report,
          struct lmq_error *err)
{
    const struct lmq_session_options session = {.size = sizeof(session),
                                                .threads = 1};
    const struct lmq_bench_options options = {.size = sizeof(options),
                                              .session = &session,
                                              .n_prefill = 4,
                                              .n_decode = 2,
                                              .rounds = 1,
                                              .depth = depth};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    enum lmq_status status =
        lmq_bench(checkpoint, &options, NULL, report, err);

    lmq_checkpoint_close(checkpoint);
    return status;
}

/* 4 layers with 6 heads of 16 and 2 of keys; behind 3 tokens four see 4 to 7
 * keys, in the last layer only the last, and of two more the second sees 5. */
START_TEST(attention_is_counted_by_what_is_seen)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(try_bench(source_path("data/fable"), 3, &report, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    ck_assert(lmq_report_number(report, "depth") == 3);
    ck_assert(lmq_report_number(report, "prefill.attention_flops") ==
              2. * ((4 + 5 + 6 + 7) * 3 + 7) * 6 * (16 + 16));
    ck_assert(lmq_report_number(report, "decode.cache_bytes") ==
              5. * 4 * 2 * (16 + 16) * 4);
    ck_assert(lmq_report_number(report, "prefill.fraction_with_attention") >
              lmq_report_number(report, "prefill.fraction"));
    ck_assert(lmq_report_number(report, "limits.read_weights_bytes_per_s") >
              0);
    ck_assert(lmq_report_number(report, "decode.fraction_of_weights") > 0);
    lmq_report_free(report);
    ck_assert(try_bench(source_path("data/fable"), 0, &report, &err) ==
              LMQ_OK);
    ck_assert(lmq_report_number(report, "decode.cache_bytes") == 0);
    lmq_report_free(report);
}
END_TEST

/* Of matrices in layers, before and behind them; of tables a token reads a
 * row. */
START_TEST(all_matrices_are_counted)
{
    struct family_model *model =
        family_make(family_find("gemma3n"), 8, 64, 1);
    struct lmq_report *report;
    struct lmq_error err;
    uint64_t bytes = 0;

    family_write(model, in_folder("family"));
    family_free(model);
    lmq_report_free(convert(in_folder("family"), in_folder("a.lmq"), NULL));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("a.lmq"));
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->quant.group_size > 0 && tensor->alias_of == NULL &&
            tensor->place.role != LMQ_ROLE_INPUTS)
            bytes += tensor->size_bytes;
    }
    lmq_checkpoint_close(checkpoint);
    ck_assert_msg(try_bench(in_folder("a.lmq"), 0, &report, &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert(lmq_report_number(report, "weight_bytes") == (double)bytes);
    lmq_report_free(report);
}
END_TEST

START_TEST(a_depth_has_an_end)
{
    struct lmq_report *report = NULL;
    struct lmq_error err;

    for (size_t i = 0; i < 5; i++)
        ck_assert(try_bench(source_path("data/fable"), SIZE_MAX - i, &report,
                            &err) == LMQ_ERR_ARG);
    ck_assert_str_eq(err.option, "depth");
    ck_assert_ptr_null(report);
}
END_TEST

START_TEST(some_positions_end)
{
    static const struct {
        const char *family, *why;
    } cases[] = {{"gpt2", "the model has learned"},
                 {"minimax-m3", "what is computed here is right for 64"},
                 {"qwen", "what is computed here is right for 64"}};
    struct family_model *made =
        family_make(family_find(cases[_i].family), 1, 100, 1);
    struct lmq_report *report = NULL;
    struct lmq_error err;

    family_write(made, in_folder("family"));
    family_free(made);
    ck_assert(try_bench(in_folder("family"), 999999, &report, &err) ==
              LMQ_ERR_ARG);
    ck_assert_msg(strstr(err.message, cases[_i].why) != NULL, "%s",
                  err.message);
    ck_assert_ptr_null(report);
}
END_TEST

/* Windows, chunks, latents, states, borrowed keys: each is counted. */
START_TEST(kinds_of_layers_go_to_a_depth)
{
    static const char *const names[] = {"llama2", "gemma2", "deepseek2",
                                        "qwen3next", "llama4", "gemma4"};
    const struct family *family = family_find(names[_i]);
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(family != NULL, "%s", names[_i]);
    struct family_model *made = family_make(family, 1, 100, 1);
    family_write(made, in_folder("family"));
    family_free(made);
    ck_assert_msg(try_bench(in_folder("family"), 20, &report, &err) == LMQ_OK,
                  "%s: %s", family->name, err.message);
    ck_assert_msg(lmq_report_number(report, "decode.cache_bytes") > 0, "%s",
                  family->name);
    lmq_report_free(report);
}
END_TEST

/* Without a depth, keys and values do not. */
START_TEST(states_always_count)
{
    static const struct {
        const char *family;
        bool has_states;
    } cases[] = {{"mamba", true}, {"falcon-h1", true}, {"llama2", false}};
    struct family_model *made =
        family_make(family_find(cases[_i].family), 1, 100, 1);
    struct lmq_report *report;
    struct lmq_error err;

    family_write(made, in_folder("family"));
    family_free(made);
    ck_assert(try_bench(in_folder("family"), 0, &report, &err) == LMQ_OK);
    double without = lmq_report_number(report, "decode.cache_bytes");
    ck_assert_int_eq(without > 0, cases[_i].has_states);
    lmq_report_free(report);
    ck_assert(try_bench(in_folder("family"), 20, &report, &err) == LMQ_OK);
    double with = lmq_report_number(report, "decode.cache_bytes");
    ck_assert_int_eq(with > without, _i > 0);
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        attention_is_counted_by_what_is_seen,
        all_matrices_are_counted,
        a_depth_has_an_end,
    };
    const TTest *const of_ends[] = {some_positions_end};
    const TTest *const of_kinds[] = {kinds_of_layers_go_to_a_depth};
    const TTest *const of_states[] = {states_always_count};

    return RUN_SUITE("bench", tests) |
           RUN_SUITE_OVER("ends", of_ends, 0, 3) |
           RUN_SUITE_OVER("kinds", of_kinds, 0, 6) |
           RUN_SUITE_OVER("states", of_states, 0, 3);
}
