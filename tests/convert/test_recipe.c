/*
 * test_recipe.c - recipes: what is read, which rule counts, what becomes of
 * the matrices, and that a container tells the recipe that makes it again.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/report.h"
#include "base/text/glob.h"
#include "convert/recipe/recipe.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/runtime/run_logits.h"

/* Rows that are ragged and rows that are not, a head of its own. */
static const struct build_sizes sizes = {
    .dim = 64, .hidden = 72, .layers = 3, .heads = 4, .kv_heads = 2,
    .vocab = 40, .context = 16};

static void
save_model(enum build_type type)
{
    struct build_model *model = build_model(&sizes, 7);

    save_folder(model, in_folder("model"), type);
    build_free(model);
}

static const char *
save_recipe(const char *text)
{
    write_file(in_folder("r.yaml"), text, strlen(text));
    return in_folder("r.yaml");
}

/* What the container has for a tensor: "q8/32/f16", "bf16". */
static const char *
stored(const char *path, const char *name)
{
    static char text[32];
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);

    ck_assert_msg(tensor != NULL, "there is no %s", name);
    if (tensor->quant.group_size != 0)
        snprintf(text, sizeof(text), "q8/%u/%s", tensor->quant.group_size,
                 lmq_names_of(lmq_scales_names, tensor->quant.scales));
    else
        snprintf(text, sizeof(text), "%s", lmq_dtype_name(tensor->dtype));
    lmq_checkpoint_close(checkpoint);
    return text;
}

static void
assert_convert_refuses(const char *from,
                       const struct lmq_convert_options *options,
                       enum lmq_status status, const char *text)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    struct lmq_report *report;
    struct lmq_error err;
    size_t before = files_in_folder();

    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("refused.lmq"),
                                 options, NULL, &report, &err),
                     (int)status);
    ck_assert_msg(strstr(err.message, text) != NULL,
                  "'%s' does not speak of '%s'", err.message, text);
    ck_assert_uint_eq(files_in_folder(), before);
    lmq_checkpoint_close(checkpoint);
}

#define RULES(...)                                                            \
    .rules = (const char *const[]){__VA_ARGS__},                              \
    .n_rules = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

/* ---- Patterns ---- */

START_TEST(patterns_match_as_a_shell_would)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},           {"*", "", true},
        {"*", "blk.0", true},     {"blk.?", "blk.0", true},
        {"blk.?", "blk.", false}, {"b*0", "blk.10", true},
        {"b*0", "blk.01", false}, {"*a*b*", "xaxbx", true},
        {"*a*b*", "xbxax", false}, {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},  {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false}, {"[]]", "]", true},
        {"[!]]", "]", false},     {"[a-]", "-", true},
        {"[a-]", "b", false},     {"x", "xy", false},
        {"xy", "x", false},       {"**x", "aax", true},
        {"a*", "b", false},       {"[c-a]", "b", false},
    };
    static const char *const wrong[] = {"[", "a[", "[a", "[!", "[]", "[!]"};
    char deep[201], text[201];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert(lmq_glob_is_valid(cases[i].pattern));
        ck_assert_msg(lmq_glob_match(cases[i].pattern, cases[i].text) ==
                          cases[i].matches,
                      "'%s' and '%s'", cases[i].pattern, cases[i].text);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!lmq_glob_is_valid(wrong[i]), "%s", wrong[i]);
    /* Exponential time would show. */
    for (size_t i = 0; i < 200; i++) {
        deep[i] = i % 2 == 0 ? '*' : 'a';
        text[i] = 'a';
    }
    deep[199] = 'b';
    deep[200] = text[200] = '\0';
    ck_assert(!lmq_glob_match(deep, text));
}
END_TEST

/* ---- Reading ---- */

START_TEST(errors_tell_line_and_column)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"version: 3\n", "line 1, column 10: the version is '3'"},
        {"version: 1\nrulez: []\n",
         "line 2, column 1: 'rulez' is no key of a recipe, expected version, "
         "default or rules"},
        {"version: 1\nrules:\n- match: a\n  encoding: q7\n",
         "line 4, column 13: encoding is 'q7', expected 'keep', 'q8', 'q6', "
         "'q5', 'q4', 'f32', 'f16' or 'bf16'"},
        {"version: 1\nrules:\n- {match: a, group: 33}\n",
         "line 3, column 21: group is '33', expected '32', '64', '128' or "
         "'256'"},
        {"version: 1\nrules:\n- match: a\n  scales: f64\n",
         "line 4, column 11: scales is 'f64'"},
        {"version: 1\nrules:\n- match: a\n  method: magic\n",
         "line 4, column 11: method is 'magic'"},
        {"version: 1\nrules:\n- match: a\n  layers: 1-\n  group: 32\n"
         "- match: b\n  layers: [0, 2-1]\n  group: 32\n",
         "line 7, column 15: '2-1' is no list of ranges"},
        {"version: 1\nrules:\n- match: a\n  layers: last 0\n",
         "'last 0' is no list of ranges"},
        {"version: 1\nrules:\n- match: a\n  layers: first-2\n",
         "'first-2' is no list of ranges"},
        {"version: 1\nrules:\n- match: a\n  layers: 1,last-2\n",
         "'1,last-2' is no list of ranges"},
        {"version: 1\nrules:\n- match: a\n  experts: 65536\n",
         "numbers up to 65535"},
        {"version: 1\nrules:\n- match: a\n  layers: ''\n",
         "'' is no list of ranges"},
        {"version: 1\nrules:\n- match: a\n  layers: 1,\n",
         "'1,' is no list of ranges"},
        {"version: 1\ndefault: {layers: 1}\n",
         "line 2, column 11: 'layers' is no key of the default"},
        {"version: 1\nrules: [a]\n", "line 2, column 9: expected a rule"},
        {"version: 1\nrules: *a\n", "line 2, column 8: a recipe has no "
                                    "aliases"},
        {"version: 1\nrules: &a []\n", "line 2, column 8: a recipe has no "
                                       "anchors"},
        {"version: !x 1\n", "a recipe has no tags"},
        {"[version, 1]\n", "line 1, column 1: expected keys"},
        {"? [a]\n: b\n", "expected a key"},
        {"version: 1\nversion: 1\n", "line 2, column 1: the key is there "
                                     "twice"},
        {"version: 1\nrules: []\n...\n---\na: 1\n", "a recipe is one document"},
        {"version: [1]\n", "expected a text or a number"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_recipe recipe = {0};
        struct lmq_error err;
        ck_assert_int_eq(
            lmq_recipe_parse(&recipe, (const unsigned char *)cases[i].text,
                             strlen(cases[i].text), &err),
            LMQ_ERR_FORMAT);
        ck_assert_msg(strstr(err.message, cases[i].what) != NULL,
                      "'%s' does not say '%s'", err.message, cases[i].what);
        lmq_recipe_free(&recipe);
    }
}
END_TEST

START_TEST(too_many_rules_and_patterns_are_refused)
{
    struct bytes bytes = {0};
    struct lmq_recipe recipe = {0};
    struct lmq_error err;

    put_text(&bytes, "version: 1\nrules:\n");
    for (size_t i = 0; i <= LMQ_RECIPE_RULES; i++)
        put_text(&bytes, "- {match: a, group: 32}\n");
    ck_assert_int_eq(lmq_recipe_parse(&recipe, bytes.at, bytes.n, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "line 16387, column 3: there "
                                              "are more than 16384 rules"));
    lmq_recipe_free(&recipe);
    bytes_free(&bytes);
    put_text(&bytes, "version: 1\nrules:\n- match:\n");
    for (size_t i = 0; i <= LMQ_RECIPE_PATTERNS; i++)
        put_text(&bytes, "  - a\n");
    ck_assert_int_eq(lmq_recipe_parse(&recipe, bytes.at, bytes.n, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "more than 65536 patterns"));
    lmq_recipe_free(&recipe);
    bytes_free(&bytes);
}
END_TEST

/* ---- Which rule counts ---- */

START_TEST(each_key_has_what_the_last_rule_says)
{
    save_model(BUILD_F32);
    const struct lmq_convert_options options = {
        .group_size = 128,
        .recipe = save_recipe(
            "version: 1\n"
            "default: {group: 64, scales: f32}\n"
            "rules:\n"
            "- {match: ffn_*, group: 256}\n"
            "- {match: '*', layers: first 1, encoding: bf16}\n"
            "- {match: blk.?.ffn_down, layers: '0,last 1', encoding: q8}\n"
            "- {match: [attn_k, '*.self_attn.v_proj.weight'],\n"
            "   layers: 1-, scales: f16}\n"),
        RULES("blk.2.ffn_down=q8,group=32,method=absmax", "output=f16")};
    const struct {
        const char *name, *stored;
    } wanted[] = {
        {"token_embd.weight", "q8/128/f32"},
        {"output.weight", "f16"},
        {"blk.0.attn_q.weight", "bf16"},
        {"blk.0.ffn_up.weight", "bf16"},
        {"blk.0.ffn_down.weight", "q8/256/f32"},
        {"blk.0.attn_norm.weight", "f32"},
        {"blk.1.ffn_down.weight", "q8/256/f32"},
        {"blk.1.attn_q.weight", "q8/128/f32"},
        {"blk.1.attn_k.weight", "q8/128/f16"},
        {"blk.2.attn_v.weight", "q8/128/f16"},
        {"blk.2.ffn_down.weight", "q8/32/f32"},
        {"blk.2.ffn_up.weight", "q8/256/f32"},
    };

    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &options));
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        ck_assert_msg(strcmp(stored(in_folder("a.lmq"), wanted[i].name),
                             wanted[i].stored) == 0,
                      "%s is %s, not %s", wanted[i].name,
                      stored(in_folder("a.lmq"), wanted[i].name),
                      wanted[i].stored);
    assert_intact(in_folder("a.lmq"));
}
END_TEST

START_TEST(patterns_that_match_nothing_are_refused)
{
    save_model(BUILD_F32);
    const struct {
        const char *text, *what;
    } cases[] = {
        {"version: 1\nrules:\n- {match: '*', group: 32}\n"
         "- {match: [output, outptu], group: 32}\n",
         "the rule in line 4: 'outptu' matches no matrix"},
        {"version: 1\nrules:\n- {match: '*', layers: 3-, group: 32}\n",
         "the rule in line 3: '*' matches no matrix"},
        {"version: 1\nrules:\n- {match: ffn_up, experts: 0, group: 32}\n",
         "'ffn_up' matches no matrix"},
        {"version: 1\nrules:\n- {match: output_norm, encoding: f16}\n",
         "'output_norm' matches no matrix"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct lmq_convert_options options = {
            .recipe = save_recipe(cases[i].text)};
        assert_convert_refuses(in_folder("model"), &options, LMQ_ERR_FORMAT,
                               cases[i].what);
    }
    const struct lmq_convert_options options = {RULES("outptu=keep")};
    assert_convert_refuses(in_folder("model"), &options, LMQ_ERR_ARG,
                           ".rules 'outptu=keep' matches no matrix");
    const struct lmq_convert_options optional = {
        .recipe = save_recipe("version: 1\nrules:\n"
                              "- {match: [outptu, output], encoding: bf16,\n"
                              "   optional: true}\n")};
    lmq_report_free(
        convert(in_folder("model"), in_folder("a.lmq"), &optional));
    ck_assert_str_eq(stored(in_folder("a.lmq"), "output.weight"), "bf16");
}
END_TEST

/* ---- What becomes of the matrices ---- */

START_TEST(what_is_kept_has_all_its_bits)
{
    static const enum build_type types[] = {BUILD_F32, BUILD_F16, BUILD_BF16,
                                            BUILD_F64};
    static const char *const names[] = {"f32", "f16", "bf16", "f32"};
    static const char *const tensors[] = {
        "token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight",
        "output.weight", "blk.2.attn_norm.weight"};
    const struct lmq_convert_options options = {.replaces = 1,
                                                RULES("*=keep")};

    for (size_t i = 0; i < 4; i++) {
        save_model(types[i]);
        lmq_report_free(
            convert(in_folder("model"), in_folder("a.lmq"), &options));
        assert_intact(in_folder("a.lmq"));
        struct lmq_checkpoint *a = open_checkpoint(in_folder("model"));
        struct lmq_checkpoint *b = open_checkpoint(in_folder("a.lmq"));
        for (size_t j = 0; j < 5; j++) {
            size_t n, m;
            float *x = read_tensor(a, tensors[j], &n);
            float *y = read_tensor(b, tensors[j], &m);
            ck_assert_uint_eq(n, m);
            ck_assert_mem_eq(x, y, n * sizeof(*x));
            ck_assert_str_eq(stored(in_folder("a.lmq"), tensors[j]),
                             j == 4 ? "f32" : names[i]);
            free(x);
            free(y);
        }
        lmq_checkpoint_close(a);
        lmq_checkpoint_close(b);
    }
}
END_TEST

START_TEST(floats_are_rounded_and_the_error_is_told)
{
    const struct lmq_convert_options options = {
        RULES("ffn_up=f16", "ffn_gate=bf16")};
    static const struct {
        const char *name;
        enum lmq_dtype type;
    } cases[] = {{"blk.1.ffn_up.weight", LMQ_DTYPE_F16},
                 {"blk.1.ffn_gate.weight", LMQ_DTYPE_BF16}};

    save_model(BUILD_F32);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), &options);
    struct lmq_checkpoint *a = open_checkpoint(in_folder("model"));
    struct lmq_checkpoint *b = open_checkpoint(in_folder("a.lmq"));
    for (size_t i = 0; i < 2; i++) {
        size_t n, m;
        double err_sq = 0;
        float *x = read_tensor(a, cases[i].name, &n);
        float *y = read_tensor(b, cases[i].name, &m);
        for (size_t j = 0; j < n; j++) {
            REQUIRE(y[j] == lmq_dtype_round(cases[i].type, x[j]),
                    "element %zu", j);
            err_sq += pow((double)x[j] - (double)y[j], 2);
        }
        const struct lmq_report *tensor = NULL,
                                *all = lmq_report_at(report, "tensors");
        for (size_t j = 0; j < lmq_report_length(all); j++)
            if (strcmp(lmq_report_string(lmq_report_item(all, j), "name"),
                       cases[i].name) == 0)
                tensor = lmq_report_item(all, j);
        double wanted = sqrt(err_sq / (double)n);
        ck_assert(fabs(lmq_report_number(tensor, "rms_error") - wanted) <=
                  1e-6 * wanted);
        ck_assert(lmq_report_number(tensor, "max_error") > 0);
        free(x);
        free(y);
    }
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    lmq_report_free(report);
}
END_TEST

START_TEST(what_f16_has_no_room_for_is_refused)
{
    struct build_model *model = build_model(&sizes, 7);
    const struct lmq_convert_options f16 = {RULES("ffn_down=f16")};
    const struct lmq_convert_options bf16 = {RULES("ffn_down=bf16")};

    build_find(model, "layers.1.mlp.down_proj.weight")->x[70] = -70000;
    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    assert_convert_refuses(in_folder("model"), &f16, LMQ_ERR_UNSUPPORTED,
                           "down_proj.weight': -70000 is too large for f16");
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &bf16));
}
END_TEST

START_TEST(nan_is_refused_or_zeroed_in_floats_too)
{
    struct build_model *model = build_model(&sizes, 7);
    struct lmq_convert_options options = {RULES("ffn_down=bf16")};

    build_find(model, "layers.1.mlp.down_proj.weight")->x[70] = NAN;
    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    assert_convert_refuses(in_folder("model"), &options, LMQ_ERR_NONFINITE,
                           "NaN or infinity at element 70");
    options.on_nonfinite = "zero";
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), &options);
    ck_assert(lmq_report_number(report, "totals.zeroed_elements") == 1);
    lmq_report_free(report);
}
END_TEST

START_TEST(groups_that_are_there_are_kept)
{
    const struct lmq_convert_options first = {
        .group_size = 32, .scales = "f32", .method = "absmax"};
    const struct lmq_convert_options second = {RULES("ffn_down=keep"),
                                               .group_size = 64,
                                               .scales = "f16"};

    save_model(BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &first));
    struct lmq_report *report =
        convert(in_folder("a.lmq"), in_folder("b.lmq"), &second);
    ck_assert(lmq_report_number(report, "totals.as_stored") == 3);
    lmq_report_free(report);
    ck_assert_str_eq(stored(in_folder("b.lmq"), "blk.0.ffn_down.weight"),
                     "q8/32/f32");
    ck_assert_str_eq(stored(in_folder("b.lmq"), "blk.0.ffn_up.weight"),
                     "q8/64/f16");
    struct lmq_checkpoint *a = open_checkpoint(in_folder("a.lmq"));
    struct lmq_checkpoint *b = open_checkpoint(in_folder("b.lmq"));
    size_t n;
    float *x = read_tensor(a, "blk.2.ffn_down.weight", &n);
    float *y = read_tensor(b, "blk.2.ffn_down.weight", &n);
    ck_assert_mem_eq(x, y, n * sizeof(*x));
    free(x);
    free(y);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
}
END_TEST

START_TEST(blocks_that_a_container_has_not_cannot_be_kept)
{
    const struct lmq_convert_options options = {RULES("*=keep")};

    assert_convert_refuses(source_path("files/good-all-blocks.gguf"),
                           &options, LMQ_ERR_UNSUPPORTED,
                           "cannot be kept as it is: a container has no '");
}
END_TEST

START_TEST(a_tied_head_is_as_the_embedding)
{
    struct build_sizes own = sizes;
    const struct lmq_convert_options one = {RULES("output=bf16")};
    const struct lmq_convert_options both = {
        RULES("output=bf16", "token_embd=bf16")};
    const struct lmq_convert_options untied = {.tie = "never",
                                               .replaces = 1,
                                               RULES("output=bf16")};

    own.is_tied = true;
    struct build_model *model = build_model(&own, 7);
    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    assert_convert_refuses(in_folder("model"), &one, LMQ_ERR_ARG,
                           "the head is the embedding");
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &both));
    ck_assert_str_eq(stored(in_folder("a.lmq"), "output.weight"), "bf16");
    ck_assert_str_eq(stored(in_folder("a.lmq"), "token_embd.weight"), "bf16");
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &untied));
    ck_assert_str_eq(stored(in_folder("a.lmq"), "output.weight"), "bf16");
    ck_assert_str_eq(stored(in_folder("a.lmq"), "token_embd.weight"),
                     "q8/64/f16");
}
END_TEST

START_TEST(a_tied_head_does_not_stay_as_it_was_for_one_alone)
{
    const struct lmq_convert_options first = {.group_size = 128};
    const struct lmq_convert_options one = {RULES("output=q8,group=64")};
    const struct lmq_convert_options both = {
        RULES("output=q8,group=64", "token_embd=q8,group=64")};
    const struct lmq_convert_options apart = {.tie = "never",
                                              RULES("output=f32")};

    lmq_report_free(
        convert(source_path("data/fable"), in_folder("a.lmq"), &first));
    assert_convert_refuses(in_folder("a.lmq"), &one, LMQ_ERR_ARG,
                           "the head is the embedding");
    lmq_report_free(convert(in_folder("a.lmq"), in_folder("b.lmq"), &both));
    ck_assert_str_eq(stored(in_folder("b.lmq"), "output.weight"),
                     "q8/64/f16");
    /* The same numbers, which are told from the embedding's integers. */
    lmq_report_free(convert(in_folder("a.lmq"), in_folder("c.lmq"), &apart));
    lmq_report_free(convert(in_folder("c.lmq"), in_folder("d.lmq"), NULL));
    ck_assert_str_eq(stored(in_folder("d.lmq"), "output.weight"),
                     "q8/128/f16");
}
END_TEST

/* ---- The recipe in the container ---- */

START_TEST(the_recipe_of_a_container_makes_it_again)
{
    static const char *const layouts[] = {"tiles", "rows"};

    save_model(BUILD_BF16);
    for (size_t i = 0; i < 4; i++) {
        struct lmq_convert_options options = {
            .group_size = 32,
            .layout = layouts[i / 2],
            .replaces = 1,
            .recipe = save_recipe("version: 1\nrules:\n"
                                  "- {match: [ffn_down, 'x\xc3\xa4*'],\n"
                                  "   layers: 'last 2,0', encoding: bf16,\n"
                                  "   optional: true}\n"),
            RULES("output=keep", "attn_q=q8,scales=f32,group=128")};
        const struct lmq_convert_options again = {
            .layout = layouts[i / 2], .recipe = in_folder("again.json")};
        if (i % 2 == 1)
            options.recipe = NULL;
        lmq_report_free(
            convert(in_folder("model"), in_folder("a.lmq"), &options));
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("a.lmq"));
        json_t *recipe = json_object_get(
            lmq_checkpoint_container(checkpoint)->metadata, "recipe");
        char *text = json_dumps(recipe, 0);
        ck_assert_ptr_nonnull(text);
        write_file(in_folder("again.json"), text, strlen(text));
        free(text);
        lmq_checkpoint_close(checkpoint);
        remove(in_folder("b.lmq"));
        lmq_report_free(
            convert(in_folder("model"), in_folder("b.lmq"), &again));
        assert_identical(in_folder("a.lmq"), in_folder("b.lmq"));
    }
}
END_TEST

START_TEST(the_report_as_yaml_is_the_recipe)
{
    const struct lmq_convert_options options = {
        RULES("output=keep", "blk.[!1].ffn_*=q8,group=32")};
    struct lmq_recipe recipe = {0};
    struct lmq_error err;
    char *text;

    save_model(BUILD_F32);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("a.lmq"), &options);
    ck_assert_int_eq(lmq_report_text(lmq_report_at(report, "recipe"),
                                     LMQ_REPORT_YAML, &text, &err),
                     LMQ_OK);
    ck_assert_msg(lmq_recipe_parse(&recipe, (const unsigned char *)text,
                                   strlen(text), &err) == LMQ_OK,
                  "%s", err.message);
    json_t *json = lmq_recipe_to_json(&recipe);
    ck_assert(json_equal(json, (const json_t *)lmq_report_at(report,
                                                             "recipe")));
    json_decref(json);
    lmq_recipe_free(&recipe);
    lmq_text_free(text);
    lmq_report_free(report);
}
END_TEST

START_TEST(without_rules_there_is_no_recipe_in_it)
{
    const struct lmq_convert_options plain = {.group_size = 32};
    const struct lmq_convert_options from_file = {
        .recipe = save_recipe("version: 1\ndefault: {group: 32}\n")};

    save_model(BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &plain));
    lmq_report_free(
        convert(in_folder("model"), in_folder("b.lmq"), &from_file));
    assert_identical(in_folder("a.lmq"), in_folder("b.lmq"));
}
END_TEST

/* ---- Computing ---- */

static float *
logits_of(const char *path, const char *activations, size_t *n)
{
    static const int32_t tokens[] = {1, 5, 33, 7, 2, 2, 39, 11};
    const struct lmq_session_options options = {.activations = activations,
                                                .threads = 2};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model;
    struct lmq_error err;

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    float *logits = run_logits(model, &options, tokens, 8, 3);
    *n = 8 * lmq_model_vocabulary(model);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return logits;
}

static void
assert_same_logits(const char *a, const char *b, const char *activations)
{
    size_t n, m;
    float *x = logits_of(a, activations, &n);
    float *y = logits_of(b, activations, &m);

    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(x, y, n * sizeof(*x));
    free(x);
    free(y);
}

START_TEST(kept_models_compute_as_their_source)
{
    static const enum build_type types[] = {BUILD_F32, BUILD_F16, BUILD_BF16};
    const struct lmq_convert_options one = {.replaces = 1, RULES("*=keep")};
    const struct lmq_convert_options set = {
        .replaces = 1, .shard_size = 24000, RULES("*=keep")};

    ck_assert_int_eq(mkdir(in_folder("set"), 0777), 0);
    for (size_t i = 0; i < 3; i++) {
        save_model(types[i]);
        lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &one));
        assert_same_logits(in_folder("model"), in_folder("a.lmq"), NULL);
        lmq_report_free(
            convert(in_folder("model"), in_folder("set/a.lmq"), &set));
        assert_same_logits(in_folder("model"), in_folder("set"), NULL);
    }
}
END_TEST

/* Larger ones are computed with where they lie in the file. */
START_TEST(large_matrices_of_floats_compute_as_their_source)
{
    struct build_sizes large = {.dim = 264, .hidden = 260, .layers = 1,
                                .heads = 4, .kv_heads = 2, .vocab = 300,
                                .context = 16};
    const struct lmq_convert_options options = {.replaces = 1,
                                                RULES("*=keep")};
    struct build_model *model = build_model(&large, 3);

    for (size_t i = 0; i < 2; i++) {
        save_folder(model, in_folder("model"), i == 0 ? BUILD_F16 : BUILD_F32);
        lmq_report_free(
            convert(in_folder("model"), in_folder("a.lmq"), &options));
        assert_same_logits(in_folder("model"), in_folder("a.lmq"), NULL);
    }
    build_free(model);
}
END_TEST

START_TEST(mixed_models_compute_as_what_their_numbers_are)
{
    const struct lmq_convert_options options = {
        RULES("*=q8,group=32", "blk.0.*=q8,group=128,scales=f32",
              "attn_k=bf16", "ffn_gate=f16", "blk.2.attn_v=keep")};
    const struct lmq_export_options floats = {.to = "safetensors"};

    save_model(BUILD_F32);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), &options));
    lmq_report_free(
        export_to(in_folder("a.lmq"), in_folder("floats"), &floats));
    assert_same_logits(in_folder("floats"), in_folder("a.lmq"), "f32");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        patterns_match_as_a_shell_would,
        errors_tell_line_and_column,
        too_many_rules_and_patterns_are_refused,
        each_key_has_what_the_last_rule_says,
        patterns_that_match_nothing_are_refused,
        what_is_kept_has_all_its_bits,
        floats_are_rounded_and_the_error_is_told,
        what_f16_has_no_room_for_is_refused,
        nan_is_refused_or_zeroed_in_floats_too,
        groups_that_are_there_are_kept,
        blocks_that_a_container_has_not_cannot_be_kept,
        a_tied_head_is_as_the_embedding,
        a_tied_head_does_not_stay_as_it_was_for_one_alone,
        the_recipe_of_a_container_makes_it_again,
        the_report_as_yaml_is_the_recipe,
        without_rules_there_is_no_recipe_in_it,
        kept_models_compute_as_their_source,
        large_matrices_of_floats_compute_as_their_source,
        mixed_models_compute_as_what_their_numbers_are,
    };

    return RUN_SUITE("recipe", tests);
}
