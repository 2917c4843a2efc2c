/*
 * test_copies.c - one file into several and several into one: what a
 * conversion would have written, byte for byte.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "formats/lmq/lmq_set.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/build/suite.h"
#include "tests/convert/sets.h"

static enum lmq_status
copy(const char *from, const char *to, uint64_t shard_size,
     struct lmq_error *err)
{
    const struct lmq_copy_options options = {.size = sizeof(options),
                                             .shard_size = shard_size,
                                             .replaces = 1,
                                             .threads = 2};
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    enum lmq_status status =
        lmq_copy(checkpoint, to, &options, NULL, NULL, err);

    lmq_checkpoint_close(checkpoint);
    return status;
}

static void
assert_copied(const char *from, const char *to, uint64_t shard_size)
{
    struct lmq_error err = {0};
    enum lmq_status status = copy(from, to, shard_size, &err);

    ck_assert_msg(status == LMQ_OK, "%s: %s", err.path, err.message);
}

static void
assert_same_file(const char *path_a, const char *path_b)
{
    size_t n_a, n_b;
    unsigned char *a = read_file(path_a, &n_a), *b = read_file(path_b, &n_b);

    ck_assert_msg(n_a == n_b && memcmp(a, b, n_a) == 0, "%s and %s differ",
                  path_a, path_b);
    free(a);
    free(b);
}

/* "to/set-00002-of-00003.lmq": of the member in the test's folder. */
static const char *
copied_path(size_t number, size_t n)
{
    char name[64];

    snprintf(name, sizeof(name), "to/set-%05zu-of-%05zu.lmq", number, n);
    return in_folder(name);
}

/* There and back, and from one set into another. The model in "model", in
 * files of at most so many bytes. */
static void
assert_round_trip(const struct lmq_convert_options *options)
{
    size_t n = convert_set(options);

    convert_one(options);
    mkdir(in_folder("to"), 0777);
    assert_copied(member_path(n, n), in_folder("joined.lmq"), 0);
    assert_same_file(in_folder("one.lmq"), in_folder("joined.lmq"));
    rename(in_folder("joined.lmq"), in_folder("set.lmq"));
    assert_copied(in_folder("set.lmq"), in_folder("to"), options->shard_size);
    for (size_t i = 1; i <= n; i++)
        assert_same_file(member_path(i, n), copied_path(i, n));
    assert_intact(copied_path(1, n));
    /* Other cuts, and then the first ones again. */
    assert_copied(member_path(1, n), in_folder("to"),
                  options->shard_size * 2);
    char first[64];
    struct lmq_checkpoint *coarse;
    for (size_t i = 1;; i++) {
        snprintf(first, sizeof(first), "to/set-00001-of-%05zu.lmq", i);
        if (access(in_folder(first), F_OK) == 0)
            break;
        ck_assert_uint_lt(i, n);
    }
    coarse = open_checkpoint(in_folder(first));
    mkdir(in_folder("back"), 0777);
    const struct lmq_copy_options again = {.size = sizeof(again),
                                           .shard_size = options->shard_size};
    struct lmq_error err;
    ck_assert_int_eq(lmq_copy(coarse, in_folder("back"), &again, NULL, NULL,
                              &err),
                     LMQ_OK);
    lmq_checkpoint_close(coarse);
    for (size_t i = 1; i <= n; i++) {
        char name[64];
        snprintf(name, sizeof(name), "back/set-%05zu-of-%05zu.lmq", i, n);
        assert_same_file(member_path(i, n), in_folder(name));
        unlink(in_folder(name));
        unlink(member_path(i, n));
    }
    unlink(in_folder("set.lmq"));
    unlink(in_folder("one.lmq"));
}

START_TEST(what_is_copied_is_what_a_conversion_writes)
{
    static const struct lmq_convert_options options[] = {
        {.shard_size = 8000},
        {.shard_size = 5000}, /* cuts the embedding */
        {.shard_size = 7000, .layout = "rows"},
        {.shard_size = 5300, .scales = "f32", .group_size = 32},
        {.shard_size = 5000, .tie = "never"},
        {.shard_size = 20000, .is_compressed = 1},
        {.shard_size = 1000000},
        {.shard_size = 6000, .has_digests = 1},
        {.shard_size = 6000, .has_digests = 1, .layout = "rows"},
    };
    struct lmq_error err;

    save_model(1);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (!options[i].has_digests || lmq_sha256_need(&err) == LMQ_OK)
            assert_round_trip(&options[i]);
}
END_TEST

/* Sums of what stands in several files are those of one, whatever the size of
 * the weights; and so is a factor that all scales need. */
START_TEST(what_was_measured_does_not_depend_on_the_cuts)
{
    struct build_model *model = build_model(&sizes_of_sets, 3);
    struct random random = {11};

    for (size_t i = 0; i < model->n_tensors; i++)
        for (size_t j = 0; j < model->tensors[i].n_elements; j++)
            model->tensors[i].x[j] *=
                random_below(&random, 3) == 0 ? 0x1p-30f : 0x1p-18f;
    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    assert_round_trip(&(struct lmq_convert_options){.shard_size = 5000});
}
END_TEST

/* Floats that are kept, numbers of other types, a scalar; no description. */
START_TEST(kept_tensors_are_copied)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[64,2,5],"
        "\"data_offsets\":[0,2560]},"
        "\"b\":{\"dtype\":\"I16\",\"shape\":[300,3],"
        "\"data_offsets\":[2560,4360]},"
        "\"c\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[4360,4364]}}";
    static unsigned char data[4364];
    struct bytes bytes = {0};

    for (size_t i = 0; i < sizeof(data); i++) /* floats of 0 to 2 */
        data[i] = i % 4 == 3 ? 0x3f : (unsigned char)(i * 37);
    put_safetensors_raw(&bytes, header, data, sizeof(data));
    mkdir(in_folder("model"), 0777);
    save(&bytes, in_folder("model/model.safetensors"));
    bytes_free(&bytes);
    assert_round_trip(&(struct lmq_convert_options){.shard_size = 2500});
}
END_TEST

/* Each byte of a tensor, one after the other, is looked at on the way. */
START_TEST(a_damaged_tensor_is_not_copied)
{
    struct lmq_error err = {0};
    size_t n_bytes, n_found = 0;

    save_model(1);
    convert_one(&(struct lmq_convert_options){0});
    mkdir(in_folder("to"), 0777);
    unsigned char *bytes = read_file(in_folder("one.lmq"), &n_bytes);
    for (size_t at = 128; at < 9000; at += 331) {
        bytes[at] ^= 4;
        write_file(in_folder("bad.lmq"), bytes, n_bytes);
        bytes[at] ^= 4;
        for (uint64_t size = 0; size <= 6000; size += 6000) {
            const char *to = in_folder(size == 0 ? "to/x.lmq" : "to");
            enum lmq_status status = copy(in_folder("bad.lmq"), to, size,
                                          &err);
            /* Padding between extents is not copied. */
            if (status == LMQ_OK)
                continue;
            ck_assert_int_eq(status, LMQ_ERR_FORMAT);
            ck_assert_ptr_nonnull(strstr(err.message, "is damaged"));
            ck_assert_ptr_nonnull(strstr(err.path, "bad.lmq"));
            n_found++;
        }
    }
    ck_assert_uint_gt(n_found, 40);
    free(bytes);
}
END_TEST

START_TEST(what_would_be_lost_is_refused)
{
    static const struct {
        const char *path;
        enum lmq_status status;
        const char *text;
    } cases[] = {
        {"files/good-plain.safetensors", LMQ_ERR_UNSUPPORTED,
         "expected a container"},
        {"files/lmq/good-later-minor.lmq", LMQ_ERR_UNSUPPORTED,
         "a later version"},
        {"files/lmq/good-compatible-feature.lmq", LMQ_ERR_UNSUPPORTED,
         "a later version"},
        {"files/lmq/good-later-records.lmq", LMQ_ERR_UNSUPPORTED,
         "records of tensors"},
        {"files/lmq/good-later-role.lmq", LMQ_ERR_UNSUPPORTED,
         "records of tensors"},
        {"files/lmq/good-sections.lmq", LMQ_ERR_UNSUPPORTED,
         "a section of another kind"},
    };
    struct lmq_error err = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(copy(source_path(cases[i].path),
                              in_folder("out.lmq"), 0, &err),
                         cases[i].status);
        ck_assert_msg(strstr(err.message, cases[i].text) != NULL, "%s: %s",
                      cases[i].path, err.message);
    }
    ck_assert_uint_eq(files_in_folder(), 0);
}
END_TEST

/* Containers of other writers: no statistics, no names of the source. */
START_TEST(what_others_wrote_comes_back)
{
    static const char *const names[] = {
        "files/lmq/good-no-tensors.lmq", "files/lmq/good-no-model.lmq",
        "files/lmq/good-alignment.lmq",  "files/lmq/good-groups.lmq",
        "files/lmq/good-digests.lmq",    "files/lmq/good-compressed.lmq",
        "files/lmq/good-types.lmq",      "files/lmq/good-rows.lmq",
        "files/lmq/good-tiles-f16.lmq",  "files/lmq/good-model-experts.lmq",
    };
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strstr(names[i], "digests") != NULL &&
            lmq_sha256_need(&err) != LMQ_OK)
            continue;
        assert_copied(source_path(names[i]), in_folder("out.lmq"), 0);
        assert_intact(in_folder("out.lmq"));
        char folder[16];
        snprintf(folder, sizeof(folder), "to-%zu", i);
        mkdir(in_folder(folder), 0777);
        assert_copied(source_path(names[i]), in_folder(folder), 20000);
        assert_intact(in_folder(folder));
        assert_copied(in_folder(folder), in_folder("again.lmq"), 0);
        assert_same_file(in_folder("out.lmq"), in_folder("again.lmq"));
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        what_is_copied_is_what_a_conversion_writes,
        what_was_measured_does_not_depend_on_the_cuts,
        kept_tensors_are_copied,
        a_damaged_tensor_is_not_copied,
        what_would_be_lost_is_refused,
        what_others_wrote_comes_back,
    };

    return RUN_SUITE("copies", tests);
}
