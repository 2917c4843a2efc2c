/*
 * journal_header.c - which conversion a journal is of.
 */
#include "config.h"

#include "convert/sets/journal_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/part.h"
#include "base/files/path.h"
#include "base/report.h"
#include "convert/set_name.h"
#include "convert/sets/journal_bits.h"

static json_t *
describe_sources(const struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    json_t *sources = json_array();

    for (size_t i = 0; i < checkpoint->n_files; i++) {
        struct lmq_input *input = checkpoint->files[i];
        unsigned char id[LMQ_SET_ID];
        if (lmq_plan_sample(input, id, err) != LMQ_OK) {
            json_decref(sources);
            return NULL;
        }
        json_t *source = json_object();
        lmq_put(&source, "name",
                lmq_json_text(lmq_path_base(lmq_input_path(input))));
        lmq_put(&source, "size", lmq_json_size(lmq_input_size(input)));
        lmq_put(&source, "samples", lmq_hex_of(id, sizeof(id)));
        lmq_append(&sources, source);
    }
    return sources;
}

/* When each was written last, in nanoseconds. Copies of a file may be from
 * another time and are as good, so this is not compared with the rest. */
static json_t *
describe_times(const struct lmq_plan *plan)
{
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    json_t *times = json_array();

    for (size_t i = 0; i < checkpoint->n_files; i++) {
        struct lmq_file_stamp stamp = {0};
        char text[48];
        lmq_file_stamp(lmq_input_path(checkpoint->files[i]), &stamp, NULL);
        snprintf(text, sizeof(text), "%" PRId64 ".%09" PRId64, stamp.seconds,
                 stamp.nanoseconds);
        lmq_append(&times, json_string(text));
    }
    return times;
}

bool
lmq_journal_has_times(const json_t *own, const json_t *found)
{
    return json_equal(json_object_get(own, "times"),
                      json_object_get(found, "times")) != 0;
}

static json_t *
describe_settings(const struct lmq_plan *plan)
{
    const struct lmq_convert_settings *settings = &plan->settings;
    json_t *json = json_object();

    lmq_put(&json, "group_size", json_integer(settings->quant.group_size));
    lmq_put_name(&json, "scales", lmq_scales_names, settings->quant.scales);
    lmq_put_name(&json, "method", lmq_method_names, settings->quant.method);
    lmq_put(&json, "rotate",
            json_boolean(settings->quant.rotation != LMQ_ROTATION_NONE));
    lmq_put_name(&json, "layout", lmq_layout_names, settings->layout);
    lmq_put_name(&json, "encoding", lmq_stored_names, settings->stored);
    lmq_put(&json, "tie", json_string(settings->ties ? "auto" : "never"));
    lmq_put(&json, "on_nonfinite",
            json_string(settings->zeroes ? "zero" : "fail"));
    lmq_put(&json, "is_compressed", json_boolean(settings->is_compressed));
    lmq_put(&json, "has_digests", json_boolean(settings->has_digests));
    lmq_put(&json, "shard_size", lmq_json_size(settings->shard_size));
    return json;
}

/* NULL with an error, or without memory. */
static json_t *
describe(const struct lmq_plan *plan, struct lmq_error *err)
{
    unsigned char id[LMQ_SET_ID];
    json_t *json = json_object();

    lmq_put(&json, "version", json_string(PACKAGE_VERSION));
    lmq_put(&json, "options", describe_settings(plan));
    lmq_put(&json, "sources", describe_sources(plan, err));
    lmq_put(&json, "times", describe_times(plan));
    if (plan->calibration != NULL)
        lmq_put(&json, "calibration", json_incref(plan->calibration));
    if (lmq_plan_identify(plan, id, err) != LMQ_OK) {
        json_decref(json);
        return NULL;
    }
    lmq_put(&json, "plan", lmq_hex_of(id, sizeof(id)));
    return json;
}

json_t *
lmq_journal_describe(const struct lmq_plan *plan, struct lmq_error *err)
{
    struct lmq_error why = {0};
    json_t *json = describe(plan, &why);

    if (json == NULL)
        lmq_fail_as(err, &why);
    return json;
}

/* What was asked for where options have other names, in this order: what else
 * is different follows from it. */
static const struct {
    const char *key, *option;
} asked[] = {
    {"rotate", ".rotates"},          {"ctx", ".context"},
    {"split_documents", ".splits_documents"}, {"texts", ".calibration"},
    {"damping", ".damping"},         {"mend", ".mend"},
    {"tokens", ".calibration_tokens"}, {"own_text", ".writes_text"},
};

static enum lmq_status
fail_other(const char *what, const json_t *expected, const json_t *found,
           struct lmq_error *err)
{
    const size_t flags =
        JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9);
    char *a = lmq_json_dump(found, flags);
    char *b = lmq_json_dump(expected, flags);

    lmq_fail(err, LMQ_ERR_ARG, 0,
             "is of another conversion: %s is %.120s there, %.120s here", what,
             a == NULL ? "absent" : a, b == NULL ? "absent" : b);
    lmq_hint(err, "go on with what was begun, or remove it and the files "
                  "beside it that end in '" LMQ_PART_ENDING "'");
    free(a);
    free(b);
    return LMQ_ERR_ARG;
}

enum lmq_status
lmq_journal_compare(const json_t *own, const json_t *found,
                    struct lmq_error *err)
{
    static const char *const keys[] = {"version", "options", "sources",
                                       "calibration", "plan"};
    const json_t *value;
    const char *key;
    size_t i;

    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        const json_t *a = json_object_get(own, keys[k]);
        const json_t *b = json_object_get(found, keys[k]);
        if (json_equal(a, b) || (a == NULL && b == NULL))
            continue;
        for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
            const json_t *other = json_object_get(b, asked[i].key);
            value = json_object_get(a, asked[i].key);
            if ((value != NULL || other != NULL) && !json_equal(value, other))
                return fail_other(asked[i].option, value, other, err);
        }
        json_object_foreach((json_t *)(uintptr_t)a, key, value)
            if (!json_equal(value, json_object_get(b, key))) {
                char name[64];
                snprintf(name, sizeof(name), ".%s", key);
                return fail_other(name, value, json_object_get(b, key), err);
            }
        json_array_foreach((json_t *)(uintptr_t)a, i, value)
            if (!json_equal(value, json_array_get(b, i)))
                return fail_other("the source", value, json_array_get(b, i),
                                  err);
        fail_other(keys[k], a, b, err);
        if (strcmp(keys[k], "plan") == 0)
            lmq_hint(err, "the recipe, rules, widths, the configuration, the "
                          "tokenizer or what is said of either is another");
        return LMQ_ERR_ARG;
    }
    return LMQ_OK;
}
