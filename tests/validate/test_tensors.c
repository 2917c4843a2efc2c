/*
 * test_tensors.c - what each tensor's quantization costs: one is restored at a
 * time, and a cure does what it says.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/validate/validate_fable.h"

#define RULES_MOST 16

static struct lmq_validate_options
attributing(const char *const *texts)
{
    struct lmq_validate_options options = usual_options(texts);

    options.size = sizeof(options);
    options.max_tokens = 300;
    options.has_attribution = 1;
    options.attribution = "tensor";
    return options;
}

/* A container of 4 bits, but for what rules say. */
static const char *
narrow(const char *name, const char *const *rules, size_t n_rules)
{
    const struct lmq_convert_options options = {.size = sizeof(options),
                                                .encoding = "q4",
                                                .group_size = 64, /* padded */
                                                .rules = rules,
                                                .n_rules = n_rules,
                                                .replaces = 1};
    const char *path = in_folder(name);

    lmq_report_free(convert(fable(""), path, &options));
    return path;
}

/* "--set=A=q8 --keep=B" as rules of a conversion. */
static size_t
rules_of(char *options, const char *rules[RULES_MOST])
{
    static char kept[RULES_MOST][64];
    size_t n = 0;

    for (char *word = strtok(options, " "); word != NULL;
         word = strtok(NULL, " ")) {
        ck_assert_uint_lt(n, RULES_MOST);
        if (strncmp(word, "--keep=", 7) == 0)
            snprintf(kept[n], sizeof(kept[n]), "%.50s=keep", word + 7);
        else
            snprintf(kept[n], sizeof(kept[n]), "%.60s",
                     word + strlen("--set="));
        rules[n] = kept[n];
        n++;
    }
    return n;
}

/* What the last step promises, of a container that is made so. */
static void
assert_cure_keeps_word(const char *source,
                       const struct lmq_convert_options *made)
{
    const char *text = short_text("text", 4000);
    struct lmq_validate_options options = attributing(&text);
    struct lmq_convert_options again = *made;
    const char *rules[2 * RULES_MOST];
    char words[1024];

    lmq_report_free(convert(source, in_folder("sick.lmq"), made));
    struct lmq_report *sick =
        validate(source, in_folder("sick.lmq"), &options);
    const struct lmq_report *cure = lmq_report_at(sick, "attribution.cure");
    size_t n = lmq_report_length(cure);
    ck_assert_uint_ge(n, 1);
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *step = lmq_report_item(cure, i);
        ck_assert_uint_eq(lmq_report_length(lmq_report_at(step, "names")),
                          i + 1);
        ck_assert(lmq_report_number(step, "bits_added") > 0);
    }
    const struct lmq_report *last = lmq_report_item(cure, n - 1);
    snprintf(words, sizeof(words), "%s", lmq_report_string(last, "options"));
    for (size_t i = 0; i < made->n_rules; i++)
        rules[i] = made->rules[i];
    again.n_rules += rules_of(words, rules + made->n_rules);
    again.rules = rules;
    lmq_report_free(convert(source, in_folder("cured.lmq"), &again));
    struct lmq_report *well =
        validate(source, in_folder("cured.lmq"), &options);
    double found = lmq_report_number(well, "attribution.kld");
    double said = lmq_report_number(last, "kld_without");
    ck_assert_msg(found == said, "%.9g with %s, not %.9g", found,
                  lmq_report_string(last, "options"), said);
    double added = lmq_report_number(well, "protocol.model.bits_per_weight") -
                   lmq_report_number(sick, "protocol.model.bits_per_weight");
    said = lmq_report_number(last, "bits_added");
    ck_assert_msg(fabs(added - said) <= 1e-6, "%.9g bits with %s, not %.9g",
                  added, lmq_report_string(last, "options"), said);
    lmq_report_free(well);
    lmq_report_free(sick);
}

START_TEST(a_cure_gives_the_divergence_that_it_promises)
{
    const char *const kept[] = {"token_embd=q8", "output=q8"};
    struct lmq_convert_options made = {.size = sizeof(made),
                                       .encoding = "q4",
                                       .group_size = 64, /* padded */
                                       .replaces = 1};

    assert_cure_keeps_word(fable(""), &made);
    made.rules = kept;
    made.n_rules = 2;
    assert_cure_keeps_word(fable(""), &made);
    made.method = "absmax";
    assert_cure_keeps_word(fable(""), &made);
    made.method = NULL;
    made.group_size = 0;
    made.rotates = 1;
    assert_cure_keeps_word(fable(""), &made);
}
END_TEST

/* The head is the embedding for one of them, or for both, and stored twice in
 * the other, or in none. */
START_TEST(a_cure_counts_a_head_where_it_is_stored)
{
    static const char *const rules[][3] = {
        {"*=f32", "token_embd=q8", "output=q8"},
        {"*=f32", "token_embd=q4", "output=q4"},
        {"*=f32", "token_embd=q4", "output=q6"},
        {"*=f32", "output=q4"}};
    struct lmq_convert_options made = {.size = sizeof(made), .tie = "never",
                                       .replaces = 1};
    const struct lmq_convert_options twice = {.size = sizeof(twice),
                                              .tie = "never",
                                              .encoding = "f32"};

    lmq_report_free(convert(fable(""), in_folder("twice.lmq"), &twice));
    for (size_t i = 0; i < 4; i++) {
        made.rules = rules[i];
        made.n_rules = i < 3 ? 3 : 2;
        assert_cure_keeps_word(fable(""), &made);
    }
    assert_cure_keeps_word(in_folder("twice.lmq"), &made);
    made.tie = NULL;
    made.rules = rules[0];
    made.n_rules = 3;
    assert_cure_keeps_word(in_folder("twice.lmq"), &made);
}
END_TEST

/* These are taken as they are. */
START_TEST(a_cure_takes_integers_of_the_source)
{
    const struct lmq_convert_options source = {
        .size = sizeof(source), .encoding = "q5", .group_size = 32};
    const struct lmq_convert_options made = {.size = sizeof(made),
                                             .encoding = "q4",
                                             .group_size = 32};

    lmq_report_free(convert(fable(""), in_folder("q5.lmq"), &source));
    assert_cure_keeps_word(in_folder("q5.lmq"), &made);
}
END_TEST

START_TEST(a_head_of_its_own_is_judged_alone)
{
    const char *const rules[] = {"*=f32", "output=q4"};
    const struct lmq_convert_options made = {.size = sizeof(made),
                                             .tie = "never",
                                             .rules = rules,
                                             .n_rules = 2};
    const char *text = short_text("text", 4000);
    struct lmq_validate_options options = attributing(&text);

    lmq_report_free(convert(fable(""), in_folder("head.lmq"), &made));
    struct lmq_report *report =
        validate(fable(""), in_folder("head.lmq"), &options);
    const struct lmq_report *tensors =
        lmq_report_at(report, "attribution.tensors");
    ck_assert_uint_eq(lmq_report_length(tensors), 30);
    const struct lmq_report *head = lmq_report_item(tensors, 0);
    ck_assert_str_eq(lmq_report_string(head, "name"), "output");
    ck_assert_str_eq(lmq_report_string(head, "type"), "q4");
    ck_assert(lmq_report_number(head, "kld_without") == 0);
    ck_assert_str_eq(lmq_report_string(report, "attribution.cure.0.options"),
                     "--set=output=q8");
    lmq_report_free(report);
}
END_TEST

START_TEST(what_has_8_bits_is_kept_as_the_source_has_it)
{
    const char *rules[RULES_MOST], *text = short_text("text", 4000);
    struct lmq_validate_options options = attributing(&text);
    const struct lmq_convert_options again = {.size = sizeof(again),
                                              .rules = rules};
    struct lmq_convert_options with = again;
    char words[1024];
    struct lmq_report *sick =
        validate(fable(""), quantize(fable(""), "q8.lmq"), &options);
    const struct lmq_report *cure = lmq_report_at(sick, "attribution.cure");
    const struct lmq_report *last =
        lmq_report_item(cure, lmq_report_length(cure) - 1);

    snprintf(words, sizeof(words), "%s", lmq_report_string(last, "options"));
    ck_assert_ptr_eq(strstr(words, "--set"), NULL);
    with.n_rules = rules_of(words, rules);
    lmq_report_free(convert(fable(""), in_folder("cured.lmq"), &with));
    struct lmq_report *well =
        validate(fable(""), in_folder("cured.lmq"), &options);
    ck_assert(lmq_report_number(well, "attribution.kld") ==
              lmq_report_number(last, "kld_without"));
    lmq_report_free(well);
    lmq_report_free(sick);
}
END_TEST

START_TEST(a_share_is_what_goes_away_with_the_tensor_kept)
{
    const char *const kept[] = {"blk.1.attn_output=keep"};
    const char *text = short_text("text", 4000);
    struct lmq_validate_options options = attributing(&text);
    struct lmq_report *all =
        validate(fable(""), narrow("q4.lmq", NULL, 0), &options);
    struct lmq_report *but =
        validate(fable(""), narrow("but.lmq", kept, 1), &options);
    const struct lmq_report *tensors =
        lmq_report_at(all, "attribution.tensors");
    size_t n_found = 0;

    /* 4 layers of 7, and the embedding, which is the head. */
    ck_assert_uint_eq(lmq_report_length(tensors), 29);
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        if (i > 0)
            ck_assert(lmq_report_number(lmq_report_item(tensors, i - 1),
                                        "share") >=
                      lmq_report_number(tensor, "share"));
        if (strcmp(lmq_report_string(tensor, "name"), "blk.1.attn_output"))
            continue;
        n_found++;
        ck_assert(lmq_report_number(tensor, "kld_without") ==
                  lmq_report_number(but, "attribution.kld"));
    }
    ck_assert_uint_eq(n_found, 1);
    lmq_report_free(but);
    lmq_report_free(all);
}
END_TEST

/* Few sides at a time, many threads. */
START_TEST(memory_and_threads_change_no_share)
{
    const char *text = short_text("text", 4000);
    const struct lmq_session_options sessions[] = {
        {.context = CONTEXT, .threads = 1}, {.context = CONTEXT, .threads = 3}};
    struct lmq_validate_options options = attributing(&text);
    const char *judged = narrow("q4.lmq", NULL, 0);
    struct lmq_error err;
    char *texts[2];

    for (size_t i = 0; i < 2; i++) {
        options.session = &sessions[i];
        /* The least that an attribution to layers needs, and all. */
        options.memory = i == 0 ? 3000000 : 0;
        struct lmq_report *report = validate(fable(""), judged, &options);
        ck_assert(lmq_report_text(lmq_report_at(report, "attribution"),
                                  LMQ_REPORT_JSON, &texts[i],
                                  &err) == LMQ_OK);
        lmq_report_free(report);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    for (size_t i = 0; i < 2; i++)
        lmq_text_free(texts[i]);
}
END_TEST

START_TEST(an_emulation_has_shares_but_no_cure)
{
    const char *text = short_text("text", 2000), *emulated = "q4_0";
    struct lmq_validate_options options = attributing(&text);
    struct lmq_checkpoint *reference = open_with_tokenizer(fable(""));
    struct lmq_report *report;
    struct lmq_error err;

    options.emulations = &emulated;
    options.n_emulations = 1;
    ck_assert_int_eq(lmq_validate_several(reference, NULL, 0, &options, NULL,
                                          &report, NULL, &err),
                     LMQ_OK);
    ck_assert_uint_eq(
        lmq_report_length(lmq_report_at(report, "attribution.tensors")), 29);
    ck_assert_ptr_null(lmq_report_at(report, "attribution.cure"));
    lmq_report_free(report);
    options.attribution = "row";
    ck_assert_int_eq(lmq_validate_several(reference, NULL, 0, &options, NULL,
                                          NULL, NULL, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, ".attribution is 'row'"));
    options.attribution = "tensor";
    options.has_attribution = 0;
    ck_assert_int_eq(lmq_validate_several(reference, NULL, 0, &options, NULL,
                                          NULL, NULL, &err),
                     LMQ_ERR_ARG);
    lmq_checkpoint_close(reference);
}
END_TEST

START_TEST(the_page_has_a_map_of_layers_and_roles)
{
    const char *text = short_text("text", 2000);
    struct lmq_validate_options options = attributing(&text);
    struct lmq_report *report =
        validate(fable(""), narrow("q4.lmq", NULL, 0), &options);
    struct lmq_error err;
    char *page;

    ck_assert_int_eq(lmq_validate_html(report, &page, &err), LMQ_OK);
    ck_assert_ptr_nonnull(strstr(page, "<th>attn_output"));
    ck_assert_ptr_nonnull(strstr(page, "color-mix"));
    ck_assert_ptr_nonnull(strstr(page, "--set=blk."));
    lmq_text_free(page);
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_cure_gives_the_divergence_that_it_promises,
        a_cure_counts_a_head_where_it_is_stored,
        a_cure_takes_integers_of_the_source,
        a_head_of_its_own_is_judged_alone,
        what_has_8_bits_is_kept_as_the_source_has_it,
        a_share_is_what_goes_away_with_the_tensor_kept,
        memory_and_threads_change_no_share,
        an_emulation_has_shares_but_no_cure,
        the_page_has_a_map_of_layers_and_roles,
    };

    return RUN_SUITE("tensors", tests);
}
