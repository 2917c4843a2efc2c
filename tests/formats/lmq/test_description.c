/*
 * test_description.c - the keys of a description: the program's table, the
 * table of lmq-model(5) and the schema of the metadata say the same, and what
 * is written is as the schema wants it.
 */
#include "config.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/checkpoint/checkpoint.h"
#include "formats/grams/tables.h"
#include "formats/lmq/lmq.h"
#include "formats/model/hparams_check.h"
#include "formats/model/hparams_fields.h"
#include "formats/model/hparams_json.h"
#include "tests/build/suite.h"
#include "tests/families/more/variants_norms.h"
#include "tests/families/variants.h"

/* ---- The table of the page ---- */

/* A line of it, and what the next one adds. */
struct row {
    char key[32], type[16], range[32], value[16], words[128];
};

/* Keys that have no field in the table. */
static const char *const others[] = {"architecture", "unsupported", "bos",
                                     "eos", "requires"};

static bool
is_other(const char *key)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(key, others[i]) == 0)
            return true;
    return false;
}

/* "key type range default since", the range perhaps of several words. */
static void
parse_row(char *line, struct row *row)
{
    char *words[12];
    size_t n = 0;

    *row = (struct row){.words = " "};
    for (char *w = strtok(line, " "); w != NULL && n < 12;
         w = strtok(NULL, " "))
        words[n++] = w;
    ck_assert_msg(n >= 4 && strcmp(words[n - 1], "1.0") == 0,
                  "a row that begins with %s", words[0]);
    snprintf(row->key, sizeof(row->key), "%s", words[0]);
    snprintf(row->type, sizeof(row->type), "%s", words[1]);
    snprintf(row->value, sizeof(row->value), "%s", words[n - 2]);
    for (size_t i = 2; i + 2 < n; i++) {
        size_t used = strlen(row->range);
        snprintf(row->range + used, sizeof(row->range) - used, "%s%s",
                 i > 2 ? " " : "", words[i]);
    }
}

static size_t
read_page(struct row *rows, size_t most)
{
    size_t size, n = 0;
    char *page =
        (char *)read_file(source_path("../man/lmq-model.5"), &size);
    page[size - 1] = '\0';
    char *table = strstr(page, "\nkey  ");
    ck_assert_ptr_nonnull(table);
    char *line = strchr(table + 1, '\n') + 1, *end;

    for (; line[0] != '.'; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_msg(end != NULL && n < most, "the table has no end");
        *end = '\0';
        if (line[0] != ' ')
            parse_row(line, &rows[n++]);
        else
            snprintf(rows[n - 1].words, sizeof(rows[n - 1].words), "%s ",
                     line + 3);
    }
    free(page);
    return n;
}

static void
check_range(const struct lmq_field *f, const struct row *row)
{
    char text[64];

    if (f->type == LMQ_FIELD_COUNT) {
        snprintf(text, sizeof(text), "%u to %u", f->least, f->most);
        ck_assert_str_eq(row->range, text);
    } else if (f->type == LMQ_FIELD_REAL) {
        ck_assert_msg(strncmp(row->range, "0 to 1e30", 9) == 0, "%s: %s",
                      f->key, row->range);
    }
    for (size_t i = 0, at = 1; f->type == LMQ_FIELD_KIND; i++) {
        if (f->names[i] == NULL) {
            ck_assert_str_eq(row->words + at, "");
            break;
        }
        size_t n = strlen(f->names[i]);
        ck_assert_msg(strncmp(row->words + at, f->names[i], n) == 0 &&
                          row->words[at + n] == ' ',
                      "%s: '%s' is not where it should be", f->key,
                      f->names[i]);
        at += n + 1;
    }
}

static void
check_default(const struct lmq_field *f, const struct row *row)
{
    struct lmq_hparams usual;
    char text[32];

    lmq_hparams_init(&usual);
    if (f->presence == LMQ_ALWAYS)
        snprintf(text, sizeof(text), "always");
    else if (f->type == LMQ_FIELD_KIND)
        snprintf(text, sizeof(text), "%s",
                 f->names[(int)lmq_field_get(f, &usual)]);
    else if (f->type == LMQ_FIELD_SWITCH)
        snprintf(text, sizeof(text), "%s",
                 lmq_field_get(f, &usual) > 0 ? "true" : "false");
    else if (f->type == LMQ_FIELD_COUNT || f->type == LMQ_FIELD_REAL)
        snprintf(text, sizeof(text), "%g", lmq_field_get(f, &usual));
    else
        snprintf(text, sizeof(text), "none");
    ck_assert_msg(strcmp(row->value, text) == 0, "%s: default %s, not %s",
                  f->key, row->value, text);
}

START_TEST(the_page_has_the_keys_that_the_program_knows)
{
    static const char *const types[] = {
        [LMQ_FIELD_COUNT] = "count",   [LMQ_FIELD_REAL] = "number",
        [LMQ_FIELD_SWITCH] = "switch", [LMQ_FIELD_KIND] = "word",
        [LMQ_FIELD_LAYERS] = "layers", [LMQ_FIELD_FACTORS] = "factors",
        [LMQ_FIELD_NUMBERS] = "counts",
        [LMQ_FIELD_INTEGERS] = "integers", [LMQ_FIELD_PAIRS] = "pairs",
    };
    struct row rows[256];
    size_t n = read_page(rows, 256);
    const struct lmq_field *f = lmq_fields;

    for (size_t i = 0; i < n; i++) {
        if (is_other(rows[i].key))
            continue;
        ck_assert_msg(f->key != NULL, "%s is more than there is",
                      rows[i].key);
        ck_assert_str_eq(rows[i].key, f->key);
        ck_assert_str_eq(rows[i].type, types[f->type]);
        check_range(f, &rows[i]);
        check_default(f, &rows[i]);
        f++;
    }
    ck_assert_msg(f->key == NULL, "%s is not in the table", f->key);
}
END_TEST

/* ---- The schema ---- */

static json_t *
load_schema(void)
{
    json_error_t error;
    json_t *schema = json_load_file(
        source_path("../man/lmq-metadata.schema.json"), 0, &error);

    ck_assert_msg(schema != NULL, "%d: %s", error.line, error.text);
    return schema;
}

static bool
has_type(const json_t *value, const char *type)
{
    static const struct {
        const char *name;
        json_type type;
    } types[] = {
        {"object", JSON_OBJECT},   {"array", JSON_ARRAY},
        {"string", JSON_STRING},   {"integer", JSON_INTEGER},
        {"number", JSON_INTEGER},  {"number", JSON_REAL},
        {"boolean", JSON_TRUE},    {"boolean", JSON_FALSE},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, type) == 0 &&
            types[i].type == json_typeof(value))
            return true;
    return false;
}

/* What the schema has of JSON Schema, and no more: a word that stands in it
 * and not here would check nothing. */
static bool
is_word_of_schemas(const char *word)
{
    static const char *const words[] = {
        "$schema",  "$comment", "title",    "description",
        "type",     "default",  "enum",     "minimum",
        "maximum",  "items",    "maxItems", "pattern",
        "required", "properties", "patternProperties",
        "additionalProperties"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static bool conforms(const json_t *value, const json_t *schema,
                     const char **where);

/* Keys with a dot are private, and may be anything. */
static bool
keys_conform(const json_t *value, const json_t *schema, const char **where)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required"), *name;
    const char *key;
    json_t *part;
    size_t i;

    json_array_foreach(required, i, name) {
        *where = json_string_value(name);
        if (json_object_get(value, *where) == NULL)
            return false;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, part) {
        const json_t *its = json_object_get(properties, key);
        if (its == NULL && strchr(key, '.') != NULL)
            continue;
        *where = key;
        if (its == NULL || !conforms(part, its, where))
            return false;
    }
    return true;
}

static bool
is_in_range(const json_t *value, const json_t *schema)
{
    const json_t *least = json_object_get(schema, "minimum");
    const json_t *most = json_object_get(schema, "maximum");
    const json_t *allowed = json_object_get(schema, "enum"), *one;
    bool is_allowed = allowed == NULL;
    size_t i;

    json_array_foreach(allowed, i, one)
        is_allowed = is_allowed || json_equal(one, value);
    return is_allowed &&
           (least == NULL ||
            json_number_value(value) >= json_number_value(least)) &&
           (most == NULL ||
            json_number_value(value) <= json_number_value(most));
}

static bool
conforms(const json_t *value, const json_t *schema, const char **where)
{
    const json_t *type = json_object_get(schema, "type");
    const json_t *most = json_object_get(schema, "maxItems");
    const json_t *items = json_object_get(schema, "items"), *item;
    const char *word;
    json_t *unused;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)schema, word, unused)
        REQUIRE(is_word_of_schemas(word), "the schema has '%s'", word);
    if (!has_type(value, json_string_value(type)) ||
        !is_in_range(value, schema) ||
        (most != NULL &&
         (json_int_t)json_array_size(value) > json_integer_value(most)))
        return false;
    json_array_foreach(value, i, item)
        if (items != NULL && !conforms(item, items, where))
            return false;
    return keys_conform(value, schema, where);
}

static const char *
schema_type(enum lmq_field_type type)
{
    switch (type) {
    case LMQ_FIELD_COUNT:
        return "integer";
    case LMQ_FIELD_REAL:
        return "number";
    case LMQ_FIELD_SWITCH:
        return "boolean";
    case LMQ_FIELD_KIND:
        return "string";
    default:
        return "array";
    }
}

/* The default is that of an empty description, the words are the kinds, the
 * range is that of the table. */
static void
check_property(const struct lmq_field *f, const json_t *property)
{
    struct lmq_hparams usual;
    json_t *words = json_object_get(property, "enum");

    lmq_hparams_init(&usual);
    ck_assert_str_eq(json_string_value(json_object_get(property, "type")),
                     schema_type(f->type));
    if (f->presence == LMQ_SELDOM) {
        json_t *value = lmq_field_to_json(f, &usual);
        json_t *given = json_object_get(property, "default");
        ck_assert_msg(json_equal(value, given) ||
                          (json_is_number(value) && given != NULL &&
                           json_number_value(value) ==
                               json_number_value(given)),
                      "%s: another default", f->key);
        json_decref(value);
    }
    for (size_t i = 0; f->type == LMQ_FIELD_KIND; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        ck_assert_pstr_eq(word, f->names[i]);
        if (f->names[i] == NULL)
            break;
    }
    if (f->type == LMQ_FIELD_COUNT) {
        ck_assert_int_eq(
            json_integer_value(json_object_get(property, "minimum")),
            f->least);
        ck_assert_int_eq(
            json_integer_value(json_object_get(property, "maximum")),
            f->most);
    }
}

START_TEST(the_schema_has_the_keys_that_the_program_knows)
{
    json_t *schema = load_schema();
    json_t *model = json_object_get(json_object_get(schema, "properties"),
                                    "model");
    json_t *properties = json_object_get(model, "properties");
    json_t *required = json_object_get(model, "required");
    size_t n = sizeof(others) / sizeof(others[0]), n_always = 0;

    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++, n++) {
        json_t *property = json_object_get(properties, f->key);
        ck_assert_msg(property != NULL, "the schema has no %s", f->key);
        check_property(f, property);
        n_always += f->presence == LMQ_ALWAYS;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ck_assert_ptr_nonnull(json_object_get(properties, others[i]));
    ck_assert_uint_eq(json_object_size(properties), n);
    /* All that are always there but rope_scaling, which may lack. */
    ck_assert_uint_eq(json_array_size(required), n_always - 1);
    json_decref(schema);
}
END_TEST

/* ---- What is written ---- */

static void
assert_conforms(const char *path, const json_t *schema)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    const char *where = "the metadata";

    ck_assert_msg(conforms(lmq_checkpoint_container(checkpoint)->metadata,
                           schema, &where),
                  "%s: %s is not as the schema wants it", path, where);
    lmq_checkpoint_close(checkpoint);
}

START_TEST(what_is_written_is_as_the_schema_wants_it)
{
    struct lmq_convert_options options = {.replaces = 1, .threads = 1};
    const char *path = in_folder("variant.lmq");
    const char *variant = in_folder("variant");
    json_t *schema = load_schema();

    for (size_t i = 0; i < variant_count(); i++) {
        lmq_report_free(convert(variant_make(i, variant), path, &options));
        assert_conforms(path, schema);
    }
    lmq_report_free(convert(source_path("files/good-unknown-architecture"),
                            path, &options));
    assert_conforms(path, schema);
    json_decref(schema);
}
END_TEST

START_TEST(without_a_model_it_says_why)
{
    const char *source = source_path("files/good-unknown-architecture");
    struct lmq_checkpoint *folder = open_checkpoint(source);

    lmq_report_free(convert(source, in_folder("none.lmq"), NULL));
    struct lmq_checkpoint *file = open_checkpoint(in_folder("none.lmq"));
    ck_assert(!file->has_model);
    ck_assert_str_ne(file->hparams.unsupported, "");
    ck_assert_str_eq(file->hparams.unsupported, folder->hparams.unsupported);
    ck_assert_str_eq(file->hparams.architecture,
                     folder->hparams.architecture);
    lmq_checkpoint_close(file);
    lmq_checkpoint_close(folder);
}
END_TEST

/* The good containers of the corpus, but for those that have what comes later:
 * the schema knows nothing of that. */
START_TEST(the_corpus_is_as_the_schema_wants_it)
{
    DIR *folder = opendir(source_path("files/lmq"));
    json_t *schema = load_schema();
    const struct dirent *entry;
    size_t n = 0;
    char path[512];

    ck_assert_ptr_nonnull(folder);
    while ((entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name, *where = "";
        size_t length = strlen(name);
        if (strncmp(name, "good-", 5) != 0 ||
            strcmp(name + length - 4, ".lmq") != 0)
            continue;
        bool is_later = strncmp(name, "good-model-", 11) == 0
                            ? strstr(name, "-later.lmq") != NULL &&
                                  strstr(name, "role") == NULL
                            : strcmp(name, "good-metadata.lmq") == 0;
        snprintf(path, sizeof(path), "files/lmq/%s", name);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(source_path(path));
        ck_assert_msg(
            conforms(lmq_checkpoint_container(checkpoint)->metadata, schema,
                     &where) != is_later,
            "%s: %s", name, where);
        lmq_checkpoint_close(checkpoint);
        n++;
    }
    ck_assert_uint_gt(n, 30);
    closedir(folder);
    json_decref(schema);
}
END_TEST

START_TEST(the_schema_refuses)
{
    static const char *const bad[] = {
        "[]", "{\"unheard_of\": 1}", "{\"quantization\": 1}",
        "{\"quantization\": {\"group_size\": 33}}",
        "{\"recommended\": {\"activations\": \"q7\"}}",
        "{\"model\": {}}", "{\"provenance\": {\"sources\": [{}]}}"};
    json_t *schema = load_schema();
    const char *where = "";

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *value = json_loads(bad[i], 0, NULL);
        ck_assert_ptr_nonnull(value);
        ck_assert_msg(!conforms(value, schema, &where), "%s", bad[i]);
        json_decref(value);
    }
    json_t *private = json_loads("{\"org.example.thing\": [1]}", 0, NULL);
    ck_assert(conforms(private, schema, &where));
    json_decref(private);
    json_decref(schema);
}
END_TEST

/* Nothing stands beside streams of which blocks read a sum. */
START_TEST(streams_that_are_read_together_go_with_little_else)
{
    static struct lmq_hparams h;
    struct lmq_error err = {0};

    for (int i = 0; i <= 8; i++) {
        variant_base(&h);
        h.n_streams = 3;
        h.stream_kind = LMQ_STREAMS_HYPER;
        h.residual =
            i == 1 ? LMQ_RESIDUAL_PARALLEL : LMQ_RESIDUAL_SEQUENTIAL;
        h.layer_input_dim = i == 2;
        h.residual_rank = i == 3;
        h.has_layer_scale = i == 4;
        h.layers[1] = i == 5 ? LMQ_LAYER_AFTER : 0;
        h.has_expert_norms = i == 6;
        if (i == 7)
            h.n_streams = 1;
        if (i == 8)
            h.norm_place = LMQ_NORMS_AFTER;
        ck_assert_int_eq(lmq_hparams_check(&h, &err),
                         i == 0 ? LMQ_OK : LMQ_ERR_FORMAT);
        ck_assert_ptr_nonnull(
            strstr(i == 0 ? "streams" : err.message, "streams"));
        /* Of the other kind these words say nothing. */
        variant_base(&h);
        h.stream_rounds = 3;
        h.has_stream_mean = true;
        h.stream_gain = 2;
        h.stream_kind = LMQ_STREAMS_HYPER;
        lmq_hparams_settle(&h);
        ck_assert(h.stream_rounds == 0 && !h.has_stream_mean &&
                  h.stream_kind == LMQ_STREAMS_GUESSED);
    }
}
END_TEST

/* What they are given of the last tokens has sizes and numbers that belong
 * together. */
START_TEST(what_streams_are_given_of_tokens_is_checked)
{
    static struct lmq_hparams h;
    struct lmq_error err = {0};
    uint32_t *const sizes[] = {&h.gram_size, &h.gram_heads, &h.gram_dim,
                               &h.gram_conv_width, &h.stream_rank};

    for (int i = 0; i <= 13; i++) {
        variant_base(&h);
        variant_gated(&h);
        if (i >= 1 && i <= 5)
            *sizes[i - 1] = 0;
        h.gram_stop = i == 6 ? h.vocab_size : h.gram_stop;
        h.n_gram_factors -= i == 7;
        h.n_gram_rows += i == 8;
        uint64_t most = (uint64_t)INT64_MAX / h.vocab_size;
        h.gram_factors[7] = i == 9 ? most + 1 : i == 10 ? 0 : most;
        h.gram_rows[11] = i == 11 ? (uint64_t)INT32_MAX + 1 : INT32_MAX;
        if (i == 12)
            h.n_streams = 0;
        h.n_borrowing = i == 13;
        ck_assert_int_eq(lmq_hparams_check(&h, &err),
                         i == 0 ? LMQ_OK : LMQ_ERR_FORMAT);
    }
    variant_base(&h);
    variant_gated(&h);
    h.layers[0] = h.layers[2] = 0;
    lmq_hparams_settle(&h);
    ck_assert(h.gram_size == 0 && h.n_gram_factors == 0 &&
              h.n_gram_rows == 0 && h.stream_rank > 0);
}
END_TEST

/* Before anything is compared with what a file has of them. */
START_TEST(more_rows_than_there_can_be_are_not_compared)
{
    static struct lmq_checkpoint checkpoint;
    struct lmq_hparams *h = &checkpoint.hparams;
    struct lmq_error err = {0};

    variant_base(h);
    variant_gated(h);
    ck_assert_int_eq(lmq_grams_compare(&checkpoint, &err), LMQ_OK);
    h->gram_heads = 512;
    ck_assert_int_eq(lmq_grams_compare(&checkpoint, &err), LMQ_ERR_FORMAT);
}
END_TEST

/* Layers behind it that are given something of all tokens need them. */
START_TEST(a_layer_before_one_that_sees_all_tokens_is_not_late)
{
    static struct lmq_hparams h;

    lmq_hparams_init(&h);
    h.n_layers = 2;
    h.layers[1] = LMQ_LAYER_FEED;
    ck_assert(lmq_layer_is_late(&h, 0));
    h.layers[1] |= LMQ_LAYER_GRAMS;
    ck_assert(!lmq_layer_is_late(&h, 0));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        the_page_has_the_keys_that_the_program_knows,
        the_schema_has_the_keys_that_the_program_knows,
        what_is_written_is_as_the_schema_wants_it,
        without_a_model_it_says_why,
        the_corpus_is_as_the_schema_wants_it,
        the_schema_refuses,
        streams_that_are_read_together_go_with_little_else,
        what_streams_are_given_of_tokens_is_checked,
        more_rows_than_there_can_be_are_not_compared,
        a_layer_before_one_that_sees_all_tokens_is_not_late,
    };

    return RUN_SUITE("description", tests);
}
