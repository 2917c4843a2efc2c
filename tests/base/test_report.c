/*
 * test_report.c - report trees as JSON and YAML, and gates.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/report.h"
#include "tests/build/suite.h"

static struct lmq_report *
tree(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    ck_assert_ptr_nonnull(json);
    return lmq_report_from(json);
}

static char *
text_of(const struct lmq_report *report, enum lmq_report_format format)
{
    struct lmq_error err;
    char *text;

    ck_assert_int_eq(lmq_report_text(report, format, &text, &err), LMQ_OK);
    return text;
}

START_TEST(paths_lead_to_nodes)
{
    struct lmq_report *report =
        tree("{\"a\":{\"b\":[1,{\"c\":\"x\"}]},\"t\":true,\"n\":null}");

    ck_assert(lmq_report_number(report, "a.b.0") == 1);
    ck_assert_str_eq(lmq_report_string(report, "a.b.1.c"), "x");
    ck_assert(lmq_report_number(report, "t") == 1);
    ck_assert(isnan(lmq_report_number(report, "n")));
    ck_assert(isnan(lmq_report_number(report, "a.b.2")));
    ck_assert(isnan(lmq_report_number(report, "a.b.x")));
    ck_assert(isnan(lmq_report_number(report, "a.b.-1")));
    ck_assert(isnan(lmq_report_number(report, "a..b")));
    ck_assert_str_eq(lmq_report_string(report, "a"), "");
    ck_assert_ptr_eq(lmq_report_at(report, ""), report);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "a.b")), 2);
    ck_assert_uint_eq(lmq_report_length(report), 3);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(report, "t")), 0);
    ck_assert_ptr_null(lmq_report_item(lmq_report_at(report, "a.b"), 2));
    ck_assert_ptr_nonnull(lmq_report_at(report, "a.b.1"));
    static const char *const none[] = {"a.b.",  "a.b..", "a.b.+1", "a.b. 1",
                                       "a.b.01", "a.",   "a..b",   "."};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_msg(lmq_report_at(report, none[i]) == NULL, "%s", none[i]);
    lmq_report_free(report);
    lmq_report_free(NULL);
}
END_TEST

/* Whoever reads it: the text may be no more than a tree can be made of. */
START_TEST(json_that_grows_too_much_is_not_read)
{
    static char text[1 << 20];
    struct lmq_error err = {0};
    json_error_t problem;
    json_t *json = NULL;

    for (size_t i = 0; i < sizeof(text); i += 4)
        memcpy(text + i, i == 0 ? "[{} " : ",{} ", 4);
    text[sizeof(text) - 1] = ']';
    ck_assert_int_eq(
        lmq_json_read(text, sizeof(text), 0, &json, &problem, &err),
        LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_null(json);
    ck_assert_ptr_nonnull(strstr(err.message, "MB of memory"));
}
END_TEST

/* What says "no limit" in tokenizer_config.json. */
START_TEST(whole_numbers_beyond_64_bits_are_reals_and_others_stay)
{
    static const char text[] = "[1000000000000000019884624838656, 3, "
                               "{\"half\": 0.5, \"list\": [-7]}]";
    static const char endless[] = "[1e999]";
    struct lmq_error err = {0};
    json_error_t problem;
    json_t *json = NULL;

    ck_assert_int_eq(lmq_json_read(text, sizeof(text) - 1, 0, &json, &problem,
                                   &err),
                     LMQ_OK);
    ck_assert_double_eq(json_real_value(json_array_get(json, 0)), 1e30);
    ck_assert_int_eq(json_integer_value(json_array_get(json, 1)), 3);
    const json_t *inner = json_array_get(json, 2);
    ck_assert_double_eq(json_real_value(json_object_get(inner, "half")), 0.5);
    ck_assert_int_eq(
        json_integer_value(json_array_get(json_object_get(inner, "list"), 0)),
        -7);
    json_decref(json);
    ck_assert_int_eq(lmq_json_read(endless, sizeof(endless) - 1, 0, &json,
                                   &problem, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_null(json);
}
END_TEST

START_TEST(numbers_of_json_are_finite_or_null)
{
    json_t *json = json_object();

    lmq_put(&json, "nan", lmq_json_number((double)NAN));
    lmq_put(&json, "inf", lmq_json_number((double)INFINITY));
    lmq_put(&json, "half", lmq_json_number(0.5));
    lmq_put(&json, "huge", lmq_json_size(UINT64_MAX));
    lmq_put(&json, "text", lmq_json_text("a\x1b\xff"));
    struct lmq_report *report = lmq_report_from(json);
    char *text = text_of(report, LMQ_REPORT_JSON);
    ck_assert_ptr_nonnull(strstr(text, "\"nan\": null"));
    ck_assert_ptr_nonnull(strstr(text, "\"inf\": null"));
    ck_assert_ptr_nonnull(strstr(text, "\"half\": 0.5"));
    ck_assert_ptr_nonnull(strstr(text, "\"text\": \"a\\\\x1b\\\\xff\""));
    json_t *back = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(back);
    json_decref(back);
    lmq_text_free(text);
    lmq_report_free(report);
}
END_TEST

/* What jansson refuses stands for memory that is not there. */
START_TEST(a_tree_that_lost_something_is_null)
{
    struct lmq_report *report;
    struct lmq_error err;
    json_t *json = json_object(), *list = json_array();

    lmq_append(&list, json_integer(1));
    lmq_put(&json, "list", list);
    lmq_put(&json, "kept", json_true());
    ck_assert_int_eq(lmq_report_finish(json, &report, &err), LMQ_OK);
    ck_assert_uint_eq(lmq_report_length(report), 2);
    lmq_report_free(report);

    json = json_object();
    list = json_array();
    lmq_append(&list, NULL);
    ck_assert_ptr_null(list);
    lmq_append(&list, json_integer(2));
    ck_assert_ptr_null(list);
    lmq_put(&json, "before", json_integer(1));
    lmq_put(&json, "list", list);
    ck_assert_ptr_null(json);
    lmq_put(&json, "after", json_integer(3));
    ck_assert_int_eq(lmq_report_finish(json, &report, &err), LMQ_ERR_NOMEM);
    ck_assert_ptr_null(report);

    json = json_object();
    lmq_put(&json, "no text: \xff", json_true());
    ck_assert_ptr_null(json);
}
END_TEST

START_TEST(floats_keep_their_bits_through_json)
{
    struct random random = {random_seed()};

    for (int i = 0; i < 2000; i++) {
        float value = (float)(random_normal(&random) *
                              exp(20 * random_normal(&random)));
        if (!isfinite(value)) /* which is null there */
            continue;
        json_t *json = json_object();
        lmq_put(&json, "x", lmq_json_number((double)value));
        char *text = text_of(lmq_report_from(json), LMQ_REPORT_JSON);
        json_t *back = json_loads(text, 0, NULL);
        ck_assert((float)json_number_value(json_object_get(back, "x")) ==
                  value);
        json_decref(back);
        json_decref(json);
        lmq_text_free(text);
    }
}
END_TEST

START_TEST(yaml_says_the_same_and_quotes_what_is_text)
{
    struct lmq_report *report =
        tree("{\"a\":[1,2.5,null,true],\"no\":\"no\",\"e\":[],\"o\":{},"
             "\"n\":\"1\",\"r\":[1e-5,-2.5e-7,1e22,1.25e30],\"A b\":0,"
             "\"1e3\":0}");
    char *text = text_of(report, LMQ_REPORT_YAML);

    ck_assert_ptr_nonnull(strstr(text, "- 2.5"));
    ck_assert_ptr_nonnull(strstr(text, "- null"));
    ck_assert_ptr_nonnull(strstr(text, "- true"));
    ck_assert_ptr_nonnull(strstr(text, "\"no\": \"no\""));
    ck_assert_ptr_nonnull(strstr(text, "- 1.0e-5\n- -2.5e-7\n- 1.0e+22\n"
                                       "- 1.25e+30\n"));
    ck_assert_ptr_nonnull(strstr(text, "\"A b\": 0"));
    ck_assert_ptr_nonnull(strstr(text, "\"1e3\": 0"));
    ck_assert_ptr_nonnull(strstr(text, "e: []"));
    ck_assert_ptr_nonnull(strstr(text, "o: {}"));
    ck_assert_ptr_nonnull(strstr(text, "\"1\""));
    lmq_text_free(text);
    lmq_report_free(report);
}
END_TEST

START_TEST(what_is_no_report_has_no_text)
{
    struct lmq_report *report = tree("{}");
    struct lmq_error err;
    char *text;

    ck_assert(lmq_report_text(NULL, LMQ_REPORT_JSON, &text, &err) ==
              LMQ_ERR_ARG);
    ck_assert_ptr_null(text);
    ck_assert(lmq_report_text(report, (enum lmq_report_format)7, &text,
                              &err) == LMQ_ERR_ARG);
    lmq_report_free(report);
}
END_TEST

/* ---- Gates ---- */

static size_t
n_broken(const char *gate)
{
    struct lmq_report *report =
        tree("{\"x\":5,\"y\":{\"z\":-1.5},\"t\":true,\"u\":null,"
             "\"s\":\"5\"}");
    struct lmq_error err;
    size_t broken = 99;

    ck_assert_msg(lmq_gates_apply(report, &gate, 1, &broken, &err) == LMQ_OK,
                  "%s: %s", gate, err.message);
    ck_assert_str_eq(lmq_report_string(report, "gates.0.gate"), gate);
    ck_assert(lmq_report_number(report, "gates.0.held") == (broken == 0));
    lmq_report_free(report);
    return broken;
}

START_TEST(gates_compare_as_they_say)
{
    static const char *const held[] = {
        "x<=5", "x>=5", "x<6", "x>4.999", "y.z<0", "y.z>=-1.5", "t>=1",
        "x<1e9",
    };
    static const char *const broken[] = {
        "x<5", "x>5", "x<=4", "x>=5.0001", "y.z>0", "u<=5", "u>=5", "t<1",
    };

    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
        ck_assert_msg(n_broken(held[i]) == 0, "%s", held[i]);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        ck_assert_msg(n_broken(broken[i]) == 1, "%s", broken[i]);
}
END_TEST

START_TEST(gates_that_are_none_are_refused)
{
    static const char *const wrong[] = {
        "", "x", "<5", "<=5", "x<", "x<=", "x=5", "x==5", "x<=five", "x<=5a",
        "x<=nan", "x<=inf", "x<=5 6", "x<>5", "x=<5", "x<=1e999",
        "x>=0x5", "x<=0x1p3",
    };
    struct lmq_report *report = tree("{\"x\":5,\"s\":\"5\"}");
    static const char *const absent[] = {"y<=5", "s<=5", "x.y<=5"};
    struct lmq_error err;
    size_t broken;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(lmq_gate_check(wrong[i], &err) == LMQ_ERR_ARG, "'%s'",
                      wrong[i]);
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        ck_assert_int_eq(lmq_gate_check(absent[i], &err), LMQ_OK);
        ck_assert_int_eq(
            lmq_gates_apply(report, &absent[i], 1, &broken, &err),
            LMQ_ERR_ARG);
    }
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        paths_lead_to_nodes,
        json_that_grows_too_much_is_not_read,
        whole_numbers_beyond_64_bits_are_reals_and_others_stay,
        numbers_of_json_are_finite_or_null,
        a_tree_that_lost_something_is_null,
        floats_keep_their_bits_through_json,
        yaml_says_the_same_and_quotes_what_is_text,
        what_is_no_report_has_no_text,
        gates_compare_as_they_say,
        gates_that_are_none_are_refused,
    };

    return RUN_SUITE("report", tests);
}
