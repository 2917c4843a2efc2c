/*
 * test_about.c - licence, author and the like: read from each format, carried
 * through a container, written to others; what is hostile is left out.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/checkpoint/about.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

static const char *
save_model(const char *card)
{
    struct build_model *model = build_model(&build_small, 7);

    save_folder(model, in_folder("model"), BUILD_F32);
    if (card != NULL)
        write_file(in_folder("model/README.md"), card, strlen(card));
    build_free(model);
    return in_folder("model");
}

/* What opening finds, as JSON with sorted keys; freed with free(). */
static char *
about_of(const char *path)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    char *text = checkpoint->about == NULL
                     ? strdup("{}")
                     : json_dumps(checkpoint->about,
                                  JSON_SORT_KEYS | JSON_COMPACT);

    lmq_checkpoint_close(checkpoint);
    return text;
}

static void
assert_about(const char *path, const char *expected)
{
    char *about = about_of(path);

    ck_assert_str_eq(about, expected);
    free(about);
}

static void
assert_card(const char *card, const char *expected)
{
    assert_about(save_model(card), expected);
}

static void
export_to(const char *from, const char *to, const char *format)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    const struct lmq_export_options options = {.size = sizeof(options),
                                               .to = format};
    struct lmq_error err = {0};

    ck_assert_msg(lmq_export(checkpoint, to, &options, NULL, NULL, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    lmq_checkpoint_close(checkpoint);
}

/* ---- Cards ---- */

START_TEST(the_header_of_a_readme_is_read)
{
    assert_card("---\r\nlicense: mit\r\nlanguage: en\r\ntags:\r\n- a\r\n- b\r\n"
                "- a\r\n---\r\nlicense: other\r\n",
                "{\"languages\":[\"en\"],\"license\":\"mit\","
                "\"tags\":[\"a\",\"b\"]}");
    assert_card("---\nbase_model: [x/y, https://z]\nauthor: |\n  Two\n  lines\n"
                "license: {a: b}\nmodel-index:\n- license: nested\n---\n",
                "{\"author\":\"Two lines\","
                "\"base_model\":[\"x/y\",\"https://z\"]}");
}
END_TEST

START_TEST(what_is_no_header_is_none)
{
    assert_card("# Title\n---\nlicense: mit\n---\n", "{}");
    assert_card("---\nlicense: mit\n", "{}");
    assert_card("---\n---\n", "{}");
    assert_card("---", "{}");
    assert_card("----\nlicense: mit\n---\n", "{}");
    assert_card("", "{}");
    assert_card("---\n- license\n- mit\n---\n", "{}");
    assert_card("---\n[license, mit]: x\n? {a: b}\n: c\nauthor: z\n---\n",
                "{\"author\":\"z\"}");
    assert_card("---\n&a a: &b b\nlicense: *b\nauthor: z\n---\n",
                "{\"author\":\"z\"}");
}
END_TEST

START_TEST(hostile_headers_do_not_keep_a_model_from_opening)
{
    struct bytes card = {0};

    assert_card("---\nlicense: mit\nauthor: \"unclosed\n---\n",
                "{\"license\":\"mit\"}");
    assert_card("---\nlicense: \"a\\0b\"\nauthor: \"\\e[31m\"\n---\n",
                "{\"author\":\"\\\\x1b[31m\"}");
    assert_card("---\nauthor: \xff\xfe\n---\n", "{}");
    put_text(&card, "---\nlicense: mit\ntags: ");
    for (int i = 0; i < 20000; i++)
        put(&card, "[", 1);
    put_text(&card, "\n---\n");
    put(&card, "", 1);
    assert_card((char *)card.at, "{\"license\":\"mit\"}");
    bytes_free(&card);
    /* Longer than texts and lists may be, and than the header may be. */
    put_text(&card, "---\nlicense: mit\nauthor: ");
    for (int i = 0; i <= LMQ_ABOUT_TEXT; i++)
        put(&card, "x", 1);
    put_text(&card, "\ntags:\n");
    for (int i = 0; i < 2 * LMQ_ABOUT_LIST; i++) {
        char item[16];
        snprintf(item, sizeof(item), "- t%d\n", i);
        put_text(&card, item);
    }
    put_text(&card, "---\n");
    put(&card, "", 1);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(save_model((char *)card.at));
    ck_assert_uint_eq(json_array_size(json_object_get(checkpoint->about,
                                                      "tags")),
                      LMQ_ABOUT_LIST);
    ck_assert(json_object_get(checkpoint->about, "author") == NULL);
    lmq_checkpoint_close(checkpoint);
    card.n = 4;
    for (int i = 0; i < 20000; i++)
        put_text(&card, "a: b\n");
    put_text(&card, "---\n");
    put(&card, "", 1);
    assert_card((char *)card.at, "{}");
    bytes_free(&card);
}
END_TEST

/* ---- Through the formats ---- */

static const char full[] =
    "{\"author\":\"A & B\",\"base_model\":[\"x/y\",\"https://z/w\",\"alone\"],"
    "\"description\":\"d\",\"languages\":[\"en\",\"de\"],\"license\":\"mit\","
    "\"license_link\":\"LICENSE\",\"license_name\":\"n\",\"name\":\"N\","
    "\"tags\":[\"a\",\"b c\"],\"url\":\"https://u\"}";

START_TEST(it_goes_through_containers_gguf_and_safetensors)
{
    save_model("---\nauthor: A & B\nbase_model: [x/y, 'https://z/w', alone]\n"
               "model_description: d\nlanguage: [en, de]\nlicense: mit\n"
               "license_link: LICENSE\nlicense_name: n\nmodel_name: N\n"
               "tags: [a, b c]\nurl: https://u\n---\n");
    assert_about(in_folder("model"), full);
    lmq_report_free(convert(in_folder("model"), in_folder("a.lmq"), NULL));
    assert_about(in_folder("a.lmq"), full);
    lmq_report_free(convert(in_folder("a.lmq"), in_folder("b.lmq"), NULL));
    assert_about(in_folder("b.lmq"), full);
    export_to(in_folder("b.lmq"), in_folder("c.gguf"), "gguf");
    assert_about(in_folder("c.gguf"), full);
    lmq_report_free(convert(in_folder("c.gguf"), in_folder("d.lmq"), NULL));
    assert_about(in_folder("d.lmq"), full);
    export_to(in_folder("d.lmq"), in_folder("e"), "safetensors");
    assert_about(in_folder("e"), full);
}
END_TEST

START_TEST(texts_of_safetensors_are_read)
{
    struct bytes bytes = {0};

    put_safetensors_raw(
        &bytes,
        "{\"__metadata__\":{\"format\":\"pt\",\"license\":\"mit\",\"name\":7,"
        "\"modelspec.title\":\"T\",\"modelspec.tags\":\"a, b,,\","
        "\"url\":\"\"},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "\0\0\0\0", 4);
    save(&bytes, in_folder("a.safetensors"));
    bytes_free(&bytes);
    assert_about(in_folder("a.safetensors"),
                 "{\"license\":\"mit\",\"name\":\"T\","
                 "\"tags\":[\"a\",\"b\"]}");
}
END_TEST

/* ---- Containers ---- */

static enum lmq_status
take(const char *text)
{
    json_t *stored = json_loads(text, 0, NULL), *about = NULL;
    struct lmq_error err;

    ck_assert(stored != NULL);
    enum lmq_status status = lmq_about_take(&about, stored, &err);
    json_decref(stored);
    json_decref(about);
    return status;
}

START_TEST(wrong_types_in_a_container_are_errors)
{
    static const char *const right[] = {
        "{}", "{\"license\":\"\"}", "{\"tags\":[]}",
        "{\"tags\":[\"a\"],\"later\":7,\"org.example.x\":{}}"};
    static const char *const wrong[] = {
        "{\"license\":7}", "{\"license\":[\"a\"]}", "{\"license\":null}",
        "{\"tags\":\"a\"}", "{\"tags\":[7]}", "{\"tags\":{\"a\":\"b\"}}"};

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        ck_assert_msg(take(right[i]) == LMQ_OK, "%s", right[i]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(take(wrong[i]) == LMQ_ERR_FORMAT, "%s", wrong[i]);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        the_header_of_a_readme_is_read,
        what_is_no_header_is_none,
        hostile_headers_do_not_keep_a_model_from_opening,
        it_goes_through_containers_gguf_and_safetensors,
        texts_of_safetensors_are_read,
        wrong_types_in_a_container_are_errors,
    };

    return RUN_SUITE("about", tests);
}
