/*
 * test_sets.c - models in several containers: written, read, damaged.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "formats/lmq/lmq_set.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/build/suite.h"

/* Matrices of 40 and 70 rows: cut in several places, with a ragged end. */
static const struct build_sizes sizes = {
    .dim = 24, .hidden = 70, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 71, .context = 64, .is_tied = true,
};

#define N_TOKENS 12

static void
save_model(uint64_t seed)
{
    struct build_model *model = build_model(&sizes, seed);
    static const char tokenizer[] = "no tokenizer";

    save_folder(model, in_folder("model"), BUILD_F32);
    write_file(in_folder("model/tokenizer.json"), tokenizer,
               sizeof(tokenizer));
    build_free(model);
}

/* "set-00002-of-00003.lmq" in the test's folder. */
static const char *
member_path(size_t number, size_t n)
{
    char name[64];

    snprintf(name, sizeof(name), "set-%05zu-of-%05zu.lmq", number, n);
    return in_folder(name);
}

/* How many files there are. */
static size_t
convert_set(const struct lmq_convert_options *given)
{
    struct lmq_convert_options options = *given;

    options.forces_tokenizer = 1;
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("set.lmq"), &options);
    const struct lmq_report *files = lmq_report_at(report, "files");
    size_t n = lmq_report_length(files);
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *file = lmq_report_item(files, i);
        char name[64];
        struct stat info;
        snprintf(name, sizeof(name), "set-%05zu-of-%05zu.lmq", i + 1, n);
        ck_assert_str_eq(lmq_report_string(file, "name"), name);
        double bytes = lmq_report_number(file, "bytes");
        ck_assert(bytes <= (double)options.shard_size);
        total += bytes;
        if (options.is_dry_run)
            continue;
        ck_assert_int_eq(stat(in_folder(name), &info), 0);
        ck_assert((double)info.st_size == bytes);
    }
    ck_assert(lmq_report_number(report, "totals.output_bytes") == total);
    lmq_report_free(report);
    return n;
}

static void
convert_one(const struct lmq_convert_options *given)
{
    struct lmq_convert_options options = *given;

    options.forces_tokenizer = 1;
    options.shard_size = 0;
    lmq_report_free(
        convert(in_folder("model"), in_folder("one.lmq"), &options));
}

/* ---- The same model ---- */

static void
assert_same_elements(const char *path_a, const char *path_b)
{
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);

    ck_assert_uint_eq(a->n_tensors, b->n_tensors);
    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct lmq_tensor *x = &a->tensors[i], *y = &b->tensors[i];
        size_t n_x, n_y;
        ck_assert_str_eq(x->name, y->name);
        ck_assert_str_eq(x->stored_name, y->stored_name);
        ck_assert_int_eq(x->alias_of != NULL, y->alias_of != NULL);
        float *p = read_tensor(a, x->name, &n_x);
        float *q = read_tensor(b, y->name, &n_y);
        ck_assert_uint_eq(n_x, n_y);
        ck_assert_mem_eq(p, q, n_x * sizeof(*p));
        free(p);
        free(q);
    }
    ck_assert_uint_eq(a->n_blobs, b->n_blobs);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
}

/* Of all positions. *n_copied: bytes that were not used where they lie. */
static float *
logits_of(const char *path, const char *activations, int threads)
{
    struct lmq_session_options options = {.context = N_TOKENS,
                                          .all_logits = 1,
                                          .activations = activations,
                                          .threads = threads};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    float *logits = malloc(N_TOKENS * sizes.vocab * sizeof(*logits));
    int32_t tokens[N_TOKENS];
    struct lmq_session *session;
    struct lmq_model *model;
    struct lmq_error err;

    for (int32_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (7 * i * i + 3) % (int32_t)sizes.vocab;
    ck_assert_ptr_nonnull(logits);
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, tokens, N_TOKENS, &err),
                     LMQ_OK);
    for (size_t i = 0; i < N_TOKENS; i++)
        memcpy(logits + i * sizes.vocab,
               lmq_session_logits(session, N_TOKENS - 1 - i),
               sizes.vocab * sizeof(*logits));
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return logits;
}

static void
assert_same_logits(const char *path_a, const char *path_b)
{
    static const char *const activations[] = {"q8", "q16", "f32"};

    for (size_t i = 0; i < 3; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            float *a = logits_of(path_a, activations[i], 1);
            float *b = logits_of(path_b, activations[i], threads);
            ck_assert_mem_eq(a, b, N_TOKENS * sizes.vocab * sizeof(*a));
            free(a);
            free(b);
        }
}

START_TEST(a_set_is_the_model_in_one_file)
{
    static const struct lmq_convert_options options[] = {
        {.shard_size = 8000},
        {.shard_size = 7000, .layout = "rows"},
        {.shard_size = 5300, .scales = "f32", .group_size = 32},
        {.shard_size = 5000, .tie = "never"},
        {.shard_size = 20000, .is_compressed = 1},
        {.shard_size = 1000000},
    };
    size_t n_last = 0;

    save_model(1);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct lmq_convert_options again = options[i];
        again.is_dry_run = 1;
        size_t n = convert_set(&options[i]);
        ck_assert_uint_eq(convert_set(&again), n);
        convert_one(&options[i]);
        assert_same_elements(in_folder("one.lmq"), member_path(n, n));
        assert_same_logits(in_folder("one.lmq"), member_path(1, n));
        assert_intact(member_path(1, n));
        unlink(in_folder("one.lmq"));
        for (size_t j = 1; j <= n; j++)
            unlink(member_path(j, n));
        n_last = n;
    }
    ck_assert_uint_eq(n_last, 1); /* all fits into one member */
}
END_TEST

START_TEST(tiles_of_a_set_are_used_where_they_lie)
{
    struct lmq_checkpoint *checkpoint;
    size_t n_runs = 0;

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 5000});
    checkpoint = open_checkpoint(member_path(1, n));
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, "token_embd.weight");
    ck_assert(tensor->is_cut);
    for (uint64_t row = 0; row < tensor->n_rows; n_runs++) {
        struct lmq_tile_run run;
        ck_assert(lmq_checkpoint_find_tiles(checkpoint, tensor, row, &run));
        ck_assert_uint_eq(run.file, n_runs);
        ck_assert_uint_gt(run.n_rows, 0);
        row += run.n_rows;
    }
    ck_assert_uint_gt(n_runs, 1);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* What is not quantized is cut too: floats, and numbers of other types. */
START_TEST(kept_tensors_are_cut)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[64,2,5],\"data_offsets\":[0,2560]},"
        "\"b\":{\"dtype\":\"I16\",\"shape\":[300,3],"
        "\"data_offsets\":[2560,4360]},"
        "\"c\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[4360,4364]}}";
    static unsigned char data[4364];
    struct bytes bytes = {0};
    struct lmq_convert_options options = {.shard_size = 2500};
    struct lmq_export_options to = {.to = "safetensors"};
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(data); i++) /* floats of 0 to 2 */
        data[i] = i % 4 == 3 ? 0x3f : (unsigned char)(i * 37);
    put_safetensors_raw(&bytes, header, data, sizeof(data));
    mkdir(in_folder("model"), 0777);
    save(&bytes, in_folder("model/model.safetensors"));
    size_t n = convert_set(&options);
    ck_assert_uint_gt(n, 2);
    convert_one(&options);
    assert_same_elements(in_folder("one.lmq"), member_path(2, n));
    assert_intact(member_path(1, n));
    struct lmq_checkpoint *checkpoint = open_checkpoint(member_path(1, n));
    ck_assert(lmq_checkpoint_find_name(checkpoint, "a")->is_cut);
    ck_assert(lmq_checkpoint_find_name(checkpoint, "b")->is_cut);
    ck_assert_int_eq(lmq_export(checkpoint, in_folder("out"), &to, NULL, NULL,
                                &err),
                     LMQ_OK);
    lmq_checkpoint_close(checkpoint);
    assert_same_elements(in_folder("one.lmq"), in_folder("out"));
    bytes_free(&bytes);
}
END_TEST

/* Scales that need a common factor: it is that of the whole tensor, wherever
 * the largest stands. */
/* What describes a model, and nothing of it. */
START_TEST(a_set_of_no_tensors_is_read)
{
    const struct lmq_convert_options options = {.shard_size = 100000};
    struct lmq_checkpoint *checkpoint;

    lmq_report_free(convert(source_path("files/lmq/good-no-tensors.lmq"),
                            in_folder("set.lmq"), &options));
    assert_intact(member_path(1, 1));
    checkpoint = open_checkpoint(member_path(1, 1));
    ck_assert_uint_eq(checkpoint->n_tensors, 0);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(all_rows_of_a_cut_tensor_have_one_multiplier)
{
    struct build_model *model = build_model(&sizes, 1);
    struct lmq_convert_options options = {.shard_size = 5000};

    for (size_t i = 0; i < model->n_tensors; i++) {
        struct build_tensor *tensor = &model->tensors[i];
        for (size_t j = 0; j < tensor->n_elements; j++)
            tensor->x[j] *= j < 20 * 24 ? 0x1p-30f : 0x1p-20f;
    }
    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    size_t n = convert_set(&options);
    convert_one(&options);
    assert_same_elements(in_folder("one.lmq"), member_path(1, n));
    struct lmq_checkpoint *set = open_checkpoint(member_path(1, n));
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(set, "token_embd.weight");
    const struct lmq_whole *whole = lmq_set_whole_of(set, tensor);
    ck_assert_uint_gt(whole->n_pieces, 1);
    for (size_t i = 0; i < whole->n_pieces; i++)
        ck_assert(whole->pieces[i].record->quant.multiplier < 0x1p-20f);
    lmq_checkpoint_close(set);
}
END_TEST

/* ---- What a set is a function of ---- */

static void
read_id(unsigned char id[LMQ_SET_ID], size_t n)
{
    size_t size;
    unsigned char *bytes = read_file(member_path(1, n), &size);

    memcpy(id, bytes + 68, LMQ_SET_ID);
    free(bytes);
}

START_TEST(the_same_set_wherever_and_however_it_is_made)
{
    struct lmq_convert_options options = {.shard_size = 6000, .threads = 1};
    unsigned char *bytes[16];
    size_t sizes_before[16];

    save_model(1);
    size_t n = convert_set(&options);
    ck_assert_uint_le(n, 16);
    for (size_t i = 0; i < n; i++)
        bytes[i] = read_file(member_path(i + 1, n), &sizes_before[i]);
    options.threads = 3;
    options.replaces = 1;
    ck_assert_uint_eq(convert_set(&options), n);
    for (size_t i = 0; i < n; i++) {
        size_t size;
        unsigned char *again = read_file(member_path(i + 1, n), &size);
        ck_assert_uint_eq(size, sizes_before[i]);
        ck_assert_mem_eq(again, bytes[i], size);
        free(again);
        free(bytes[i]);
    }
}
END_TEST

/* The same plan of other weights is another set. */
START_TEST(other_weights_make_another_set)
{
    struct lmq_convert_options options = {.shard_size = 6000, .replaces = 1};
    unsigned char first[LMQ_SET_ID], second[LMQ_SET_ID];

    save_model(1);
    size_t n = convert_set(&options), size;
    read_id(first, n);
    unsigned char *old = read_file(member_path(2, n), &size);
    save_model(2);
    ck_assert_uint_eq(convert_set(&options), n);
    read_id(second, n);
    ck_assert_mem_ne(first, second, LMQ_SET_ID);
    write_file(member_path(2, n), old, size);
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "another set");
    free(old);
}
END_TEST

/* ---- Outputs ---- */

static enum lmq_status
try_convert(const char *from, const char *to, uint64_t shard_size,
            int replaces, struct lmq_error *err)
{
    struct lmq_convert_options options = {.shard_size = shard_size,
                                          .forces_tokenizer = 1,
                                          .replaces = replaces};
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    enum lmq_status status =
        lmq_convert(checkpoint, to, &options, NULL, NULL, err);

    lmq_checkpoint_close(checkpoint);
    return status;
}

START_TEST(sizes_and_names_that_cannot_be_are_refused)
{
    static const struct {
        uint64_t size;
        const char *text;
    } wrong[] = {{1, "what describes the model"},
                 {3500, ".weight needs a file of"}};
    struct lmq_error err = {0};

    save_model(1);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(try_convert(in_folder("model"), in_folder("set.lmq"),
                                     wrong[i].size, 0, &err),
                         LMQ_ERR_ARG);
        ck_assert_str_eq(err.option, "shard_size");
        ck_assert_msg(strstr(err.message, wrong[i].text) != NULL, "%s",
                      err.message);
    }
    ck_assert_int_eq(try_convert(in_folder("model"),
                                 member_path(1, 2), 6000, 0, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.hint, "set.lmq"));
    ck_assert_uint_eq(files_in_folder(), 1); /* the model */
}
END_TEST

START_TEST(an_older_set_of_the_same_name_is_in_the_way)
{
    struct lmq_error err = {0};

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    write_file(in_folder("set-00001-of-00002.txt"), "", 0);
    write_file(in_folder("other-00001-of-00002.lmq"), "", 0);
    ck_assert_int_eq(try_convert(in_folder("model"), in_folder("set.lmq"),
                                 12000, 0, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "exists already"));
    assert_intact(member_path(1, n));
    struct lmq_convert_options options = {.shard_size = 12000, .replaces = 1};
    size_t n_new = convert_set(&options);
    ck_assert_uint_lt(n_new, n);
    /* The model, two that are none of ours, and the set. */
    ck_assert_uint_eq(files_in_folder(), 3 + n_new);
    assert_intact(member_path(1, n_new));
}
END_TEST

START_TEST(a_set_is_not_replaced_by_what_is_made_of_it)
{
    struct lmq_error err = {0};

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    for (uint64_t size = 6000; size <= 12000; size += 6000) {
        ck_assert_int_eq(try_convert(member_path(1, n), in_folder("set.lmq"),
                                     size, 1, &err),
                         LMQ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(err.message, "a part of what is read"));
        assert_intact(member_path(1, n));
        ck_assert_uint_eq(files_in_folder(), 1 + n);
    }
    ck_assert_int_eq(try_convert(member_path(1, n), in_folder("other.lmq"),
                                 12000, 0, &err),
                     LMQ_OK);
}
END_TEST

static int
stop(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)context;
    (void)stage;
    return done == total;
}

START_TEST(a_set_that_is_interrupted_leaves_nothing)
{
    const struct lmq_progress progress = {.report = stop};
    struct lmq_convert_options options = {.shard_size = 6000,
                                          .forces_tokenizer = 1};
    struct lmq_error err;

    save_model(1);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("set.lmq"), &options,
                                 &progress, NULL, &err),
                     LMQ_ERR_CANCELLED);
    ck_assert_uint_eq(files_in_folder(), 1);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- Members that are not there, or not the right ones ---- */

static void
copy(const char *from, const char *to)
{
    size_t n;
    unsigned char *bytes = read_file(from, &n);

    write_file(to, bytes, n);
    free(bytes);
}

static void
assert_damaged(const char *path, const char *text)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_verify(path, NULL, NULL, &report, &err), LMQ_ERR_FORMAT);
    ck_assert_ptr_nonnull(report);
    const struct lmq_report *problem =
        lmq_report_item(lmq_report_at(report, "problems"), 0);
    ck_assert_msg(
        strstr(lmq_report_string(problem, "file"), text) != NULL ||
            strstr(lmq_report_string(problem, "message"), text) != NULL,
        "%s: %s, expected %s", lmq_report_string(problem, "file"),
        lmq_report_string(problem, "message"), text);
    lmq_report_free(report);
}

START_TEST(missing_members_are_named)
{
    save_model(1);
    mkdir(in_folder("d"), 0777);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    ck_assert_uint_ge(n, 4);
    for (size_t i = 1; i <= n; i++) {
        char name[64];
        snprintf(name, sizeof(name), "d/set-%05zu-of-%05zu.lmq", i, n);
        rename(member_path(i, n), in_folder(name));
    }
    assert_intact(in_folder("d"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("d"));
    ck_assert_uint_eq(checkpoint->n_files, n);
    lmq_checkpoint_close(checkpoint);
    for (size_t i = 1; i <= n; i++) {
        char name[64], *base = name + 2;
        struct lmq_report *report;
        struct lmq_error err;
        snprintf(name, sizeof(name), "d/set-%05zu-of-%05zu.lmq", i, n);
        ck_assert_int_eq(lmq_verify_file(in_folder(name), NULL, NULL, &report,
                                         &err),
                         LMQ_OK);
        lmq_report_free(report);
        rename(in_folder(name), in_folder("away"));
        assert_refused(in_folder("d"), LMQ_ERR_FORMAT, base);
        assert_damaged(in_folder("d"), base);
        rename(in_folder("away"), in_folder(name));
    }
    assert_intact(in_folder("d"));
}
END_TEST

START_TEST(members_in_wrong_places_are_named)
{
    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    copy(member_path(2, n), in_folder("two"));
    copy(member_path(3, n), in_folder("three"));
    copy(in_folder("two"), in_folder("renamed.lmq"));
    assert_refused(in_folder("renamed.lmq"), LMQ_ERR_FORMAT,
                   "is member 2 of a set");
    /* The same twice; swapped; one of another count; a whole model. */
    copy(in_folder("two"), member_path(3, n));
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "is member 2 of a set");
    assert_damaged(member_path(1, n), "is member 2 of a set");
    copy(in_folder("three"), member_path(2, n));
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "is member 3 of a set");
    copy(in_folder("two"), member_path(2, n));
    copy(in_folder("three"), member_path(3, n));
    assert_intact(member_path(1, n));
    copy(member_path(1, n), member_path(1, n + 1));
    assert_refused(member_path(1, n + 1), LMQ_ERR_FORMAT,
                   "its name is that of another one");
    convert_one(&(struct lmq_convert_options){.size = 0});
    copy(in_folder("one.lmq"), member_path(2, n));
    assert_refused(member_path(1, n), LMQ_ERR_FORMAT, "is a whole model");
    assert_damaged(member_path(1, n), "is a whole model");
}
END_TEST

/* ---- Members that contradict each other ---- */

/* The record of a tensor in a member's bytes; NULL if it is not there. */
static unsigned char *
find_record(unsigned char *bytes, size_t n, const char *name)
{
    unsigned char *directory = bytes + find_lmq_section(bytes, n, 2);
    uint32_t count = lmq_load_u32le(directory);
    const unsigned char *names = directory + 16 + 256 * (size_t)count;

    for (uint32_t i = 0; i < count; i++) {
        unsigned char *record = directory + 16 + 256 * (size_t)i;
        if (lmq_load_u32le(record + 4) == strlen(name) &&
            memcmp(names + lmq_load_u32le(record), name, strlen(name)) == 0)
            return record;
    }
    return NULL;
}

/* Puts a number into the record of the embedding in a member. */
static void
patch_record(size_t number, size_t n_members, size_t at, int size,
             uint64_t value)
{
    size_t n;
    unsigned char *bytes = read_file(member_path(number, n_members), &n);
    unsigned char *record = find_record(bytes, n, "token_embd.weight");

    ck_assert_ptr_nonnull(record);
    for (int i = 0; i < size; i++)
        record[at + (size_t)i] = (unsigned char)(value >> 8 * i);
    reseal_lmq(bytes, n);
    write_file(member_path(number, n_members), bytes, n);
    free(bytes);
}

START_TEST(pieces_that_do_not_fit_are_refused)
{
    static const struct {
        size_t at;
        int size;
        uint64_t value;
        const char *text;
    } wrong[] = {
        {176, 8, 0, "stand twice"},       /* over the first */
        {176, 8, 32, "stands in no"},     /* a gap before it */
        {32, 8, 72, "is another one"},    /* more rows */
        {196, 1, 1, "is another one"},    /* another source */
        {28, 4, 0x40000000, "is another one"}, /* a factor of 2 */
    };

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 4500});
    copy(member_path(2, n), in_folder("two"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        patch_record(2, n, wrong[i].at, wrong[i].size, wrong[i].value);
        assert_refused(member_path(2, n), LMQ_ERR_FORMAT, wrong[i].text);
        assert_damaged(member_path(1, n), wrong[i].text);
        ck_assert(!read_all(member_path(1, n)));
        copy(in_folder("two"), member_path(2, n));
    }
    assert_intact(member_path(1, n));
}
END_TEST

/* A kind that is not known hides the tensor, and nothing else. */
START_TEST(an_unknown_kind_may_be_cut)
{
    struct lmq_checkpoint *checkpoint;

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 4500});
    struct lmq_checkpoint *set = open_checkpoint(member_path(1, n));
    const struct lmq_whole *whole = lmq_set_whole_of(
        set, lmq_checkpoint_find_name(set, "token_embd.weight"));
    size_t first = whole->pieces[0].member, n_pieces = whole->n_pieces;
    lmq_checkpoint_close(set);
    ck_assert_uint_gt(n_pieces, 1);
    for (size_t i = 0; i < n_pieces; i++)
        patch_record(first + 1 + i, n, 21, 1, 7);
    checkpoint = open_checkpoint(member_path(1, n));
    ck_assert_str_eq(
        lmq_checkpoint_find_name(checkpoint, "token_embd.weight")->unknown,
        "layout 7");
    lmq_checkpoint_close(checkpoint);
    ck_assert(inspect_all(member_path(1, n)));
    assert_intact(member_path(1, n));
}
END_TEST

/* Replaces a text of the metadata by one of the same length. */
static void
patch_metadata(size_t number, size_t n_members, const char *from,
               const char *to)
{
    size_t n;
    unsigned char *bytes = read_file(member_path(number, n_members), &n);
    unsigned char *at = bytes + find_lmq_section(bytes, n, 1);

    while (memcmp(at, from, strlen(from)) != 0)
        REQUIRE(++at < bytes + n - strlen(from), "no %s", from);
    memcpy(at, to, strlen(to));
    reseal_lmq(bytes, n);
    write_file(member_path(number, n_members), bytes, n);
    free(bytes);
}

START_TEST(what_is_said_of_the_set_must_be_so)
{
    static const struct {
        size_t member;
        const char *from, *to, *text;
    } wrong[] = {
        {2, "\"member\":2", "\"member\":3", "'set' of the metadata"},
        {2, "\"set\":", "\"sat\":", "'set' of the metadata"},
        {1, "\"tensors\":2", "\"tensors\":3", "but its member 1 says"},
        {3, "\"tensors\":2", "\"tensors\":3", "but its member 3 says"},
        {2, "\"provenance\":", "\"model\":     ", "may have"},
    };

    save_model(1);
    size_t n = convert_set(&(struct lmq_convert_options){.shard_size = 6000});
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        copy(member_path(wrong[i].member, n), in_folder("kept"));
        patch_metadata(wrong[i].member, n, wrong[i].from, wrong[i].to);
        assert_refused(member_path(1, n), LMQ_ERR_FORMAT, wrong[i].text);
        ck_assert(!read_all(member_path(n, n)));
        copy(in_folder("kept"), member_path(wrong[i].member, n));
    }
    assert_intact(member_path(n, n));
}
END_TEST

/* A small file that claims to be one of very many: nobody looks for all of
 * them, and nothing is allocated for them. */
START_TEST(claims_of_many_members_cost_nothing)
{
    static const char metadata[] =
        "{\"set\":{\"id\":\"01000000000000000000000000000000\","
        "\"member\":1,\"members\":99999,\"tensors\":1}}";
    const struct lmq_content content = {
        .type = LMQ_SECTION_METADATA,
        .name = "",
        .bytes = (const unsigned char *)metadata,
        .size = sizeof(metadata) - 1,
    };
    struct lmq_layout_plan plan = {.alignment = 64, .member = 1,
                                   .n_members = 99999, .set_id = {1}};
    const char *path = member_path(1, 99999);
    struct lmq_output *output;
    struct lmq_error err;

    ck_assert_int_eq(lmq_write_plan(NULL, 0, &content, 1, &plan, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_create(path, plan.file_size, false, NULL,
                                       &output, &err),
                     LMQ_OK);
    ck_assert_int_eq(
        lmq_write_frame(output, &plan, NULL, 0, &content, 1, &err), LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    assert_refused(path, LMQ_ERR_FORMAT,
                   "lacks set-00002-of-99999.lmq, set-00003-of-99999.lmq, "
                   "set-00004-of-99999.lmq, set-00005-of-99999.lmq, perhaps "
                   "more");
    assert_damaged(path, "set-00002-of-99999.lmq");
}
END_TEST

/* ---- Damage ---- */

/* Two members, as small as they can be. */
static size_t
tiny_set(void)
{
    struct build_model model = {0};
    struct lmq_convert_options options = {.layout = "rows",
                                          .group_size = 32,
                                          .shard_size = 2300,
                                          .threads = 1};

    build_add(&model, "embed_tokens.weight", (uint64_t[]){33, 2}, 2);
    build_add(&model, "norm.weight", (uint64_t[]){2}, 1);
    build_add(&model, "lm_head.weight", (uint64_t[]){33, 2}, 2);
    for (size_t i = 0; i < model.n_tensors; i++)
        for (size_t j = 0; j < model.tensors[i].n_elements; j++)
            model.tensors[i].x[j] = (float)(j % 7) - 2.7f;
    mkdir(in_folder("model"), 0777);
    save_safetensors(&model, in_folder("model/model.safetensors"));
    for (size_t i = 0; i < model.n_tensors; i++)
        free(model.tensors[i].x);
    free(model.tensors);
    return convert_set(&options);
}

START_TEST(every_flipped_bit_of_a_set_is_noticed)
{
    const struct lmq_verify_options alone = {.threads = 1};
    size_t n_members = tiny_set();

    ck_assert_uint_eq(n_members, 2);
    assert_intact(member_path(1, 2));
    for (size_t i = 1; i <= n_members; i++) {
        size_t n;
        unsigned char *bytes = read_file(member_path(i, n_members), &n);
        FILE *file = fopen(member_path(i, n_members), "r+b");
        ck_assert_ptr_nonnull(file);
        setbuf(file, NULL);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            struct lmq_error err = {0};
            fseek(file, (long)(bit / 8), SEEK_SET);
            fputc(bytes[bit / 8] ^ 1 << bit % 8, file);
            enum lmq_status status =
                lmq_verify(member_path(1, 2), &alone, NULL, NULL, &err);
            REQUIRE(status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED,
                    "member %zu, bit %zu of byte %zu: status %d", i, bit % 8,
                    bit / 8, (int)status);
            if (bit % 5 == 0)
                read_all(member_path(2, 2));
            fseek(file, (long)(bit / 8), SEEK_SET);
            fputc(bytes[bit / 8], file);
        }
        fclose(file);
        free(bytes);
    }
    assert_intact(member_path(1, 2));
}
END_TEST

/* With all checksums put right. */
START_TEST(flipped_bits_of_a_set_under_right_checksums_do_no_harm)
{
    size_t n_members = tiny_set(), n;
    unsigned char *good = read_file(member_path(2, n_members), &n);
    unsigned char *bytes = malloc(n);

    for (size_t at = 8; at < n; at++) {
        if (at == 128)
            at = find_lmq_section(good, n, 4);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bytes, good, n);
            bytes[at] ^= (unsigned char)(1u << bit);
            reseal_lmq(bytes, n);
            write_file(member_path(2, n_members), bytes, n);
            read_all(member_path(1, n_members));
        }
    }
    free(bytes);
    free(good);
}
END_TEST

START_TEST(every_truncation_of_a_member_is_refused)
{
    size_t n_members = tiny_set();

    for (size_t i = 1; i <= n_members; i++) {
        size_t n;
        unsigned char *bytes = read_file(member_path(i, n_members), &n);
        for (size_t size = 0; size < n; size++) {
            write_file(member_path(i, n_members), bytes, size);
            REQUIRE(!read_all(member_path(3 - i, n_members)),
                    "opened with %zu bytes of member %zu", size, i);
        }
        write_file(member_path(i, n_members), bytes, n);
        free(bytes);
    }
    assert_intact(member_path(1, n_members));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_set_is_the_model_in_one_file,
        tiles_of_a_set_are_used_where_they_lie,
        kept_tensors_are_cut,
        a_set_of_no_tensors_is_read,
        all_rows_of_a_cut_tensor_have_one_multiplier,
        the_same_set_wherever_and_however_it_is_made,
        other_weights_make_another_set,
        sizes_and_names_that_cannot_be_are_refused,
        an_older_set_of_the_same_name_is_in_the_way,
        a_set_is_not_replaced_by_what_is_made_of_it,
        a_set_that_is_interrupted_leaves_nothing,
        missing_members_are_named,
        members_in_wrong_places_are_named,
        pieces_that_do_not_fit_are_refused,
        an_unknown_kind_may_be_cut,
        what_is_said_of_the_set_must_be_so,
        claims_of_many_members_cost_nothing,
        every_flipped_bit_of_a_set_is_noticed,
        flipped_bits_of_a_set_under_right_checksums_do_no_harm,
        every_truncation_of_a_member_is_refused,
    };

    return RUN_SUITE("sets", tests);
}
