/*
 * test_sets.c - models in several containers, written and read.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "formats/checkpoint/member_name.h"
#include "formats/lmq/lmq_set.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/build/suite.h"
#include "tests/convert/sets.h"

#define N_TOKENS 12

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
    float *logits = malloc(N_TOKENS * sizes_of_sets.vocab * sizeof(*logits));
    int32_t tokens[N_TOKENS];
    struct lmq_session *session;
    struct lmq_model *model;
    struct lmq_error err;

    for (int32_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (7 * i * i + 3) % (int32_t)sizes_of_sets.vocab;
    ck_assert_ptr_nonnull(logits);
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_new(model, &options, &session, &err), LMQ_OK);
    ck_assert_int_eq(lmq_session_eval(session, tokens, N_TOKENS, &err),
                     LMQ_OK);
    for (size_t i = 0; i < N_TOKENS; i++)
        memcpy(logits + i * sizes_of_sets.vocab,
               lmq_session_logits(session, N_TOKENS - 1 - i),
               sizes_of_sets.vocab * sizeof(*logits));
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
            ck_assert_mem_eq(a, b, N_TOKENS * sizes_of_sets.vocab * sizeof(*a));
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
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[64,2,5],"
        "\"data_offsets\":[0,2560]},"
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

/* Though nearly all is in one matrix. */
START_TEST(so_many_files_are_about_as_large)
{
    const struct lmq_convert_options options = {.n_parts = 4};
    struct build_sizes sizes = sizes_of_sets;
    double least = INFINITY, most = 0;

    sizes.vocab = 6000;
    struct build_model *model = build_model(&sizes, 1);
    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("set.lmq"), &options);
    const struct lmq_report *files = lmq_report_at(report, "files");
    ck_assert_uint_eq(lmq_report_length(files), 4);
    for (size_t i = 0; i < 4; i++) {
        double bytes =
            lmq_report_number(lmq_report_item(files, i), "bytes");
        least = fmin(least, bytes);
        most = fmax(most, bytes);
    }
    ck_assert_msg(most < 1.2 * least, "%.0f to %.0f bytes", least, most);
    lmq_report_free(report);
}
END_TEST

START_TEST(a_name_says_which_member_it_is)
{
    static const char *const others[] = {
        "-00002-of-00003.lmq",    "x/-00002-of-00003.lmq",
        "a-0000b-of-00003.lmq",   "a-00002-of-0000-.lmq",
        "a-00002-of-0000:.lmq",   "a_00002-of-00003.lmq",
        "a-00002-on-00003.lmq",   "a-00002-of-000034.lmq",
        "a-00002-of-00003.b.lmq",
    };
    static const char path[] = "x.y/a-b-00012-of-34567.lmq";
    struct lmq_member_name name;

    ck_assert(lmq_member_name_parse(path, &name));
    ck_assert_uint_eq(name.member, 12);
    ck_assert_uint_eq(name.n_members, 34567);
    ck_assert_uint_eq(name.n_stem, strlen("x.y/a-b"));
    ck_assert_str_eq(name.ending, ".lmq");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ck_assert_msg(!lmq_member_name_parse(others[i], &name), "%s",
                      others[i]);
}
END_TEST

START_TEST(all_rows_of_a_cut_tensor_have_one_multiplier)
{
    struct build_model *model = build_model(&sizes_of_sets, 1);
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
                                          .group_size = 64,
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

/* As another process makes it, when all but the names is done. */
static int
make_other(void *context, const char *stage, uint64_t done, uint64_t total)
{
    size_t *n_left = context;

    (void)done;
    (void)total;
    if (strcmp(stage, "writing to the disk") == 0 && (*n_left)-- == 0)
        write_file(member_path(1, 77), "another", 7);
    return 0;
}

static enum lmq_status
convert_beside_other(size_t n, int replaces, struct lmq_error *err)
{
    const struct lmq_progress progress = {.report = make_other, .context = &n};
    struct lmq_convert_options options = {.shard_size = 6000,
                                          .group_size = 64,
                                          .forces_tokenizer = 1,
                                          .replaces = replaces};
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    enum lmq_status status = lmq_convert(checkpoint, in_folder("set.lmq"),
                                         &options, &progress, NULL, err);

    lmq_checkpoint_close(checkpoint);
    return status;
}

START_TEST(another_set_that_is_there_by_the_end_is_in_the_way)
{
    struct lmq_convert_options options = {.shard_size = 6000, .is_dry_run = 1};
    struct lmq_error err;

    save_model(1);
    size_t n = convert_set(&options);
    ck_assert_int_eq(convert_beside_other(n, 0, &err), LMQ_ERR_IO);
    ck_assert_msg(strstr(err.message, "a member of a set of this name") !=
                      NULL, "%s", err.message);
    ck_assert_uint_eq(files_in_folder(), 2); /* the model and that one */
    remove(member_path(1, 77));
    ck_assert_int_eq(convert_beside_other(n, 1, &err), LMQ_OK);
    ck_assert_uint_eq(files_in_folder(), 1 + n);
    assert_intact(member_path(1, n));
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
        so_many_files_are_about_as_large,
        a_name_says_which_member_it_is,
        all_rows_of_a_cut_tensor_have_one_multiplier,
        the_same_set_wherever_and_however_it_is_made,
        other_weights_make_another_set,
        sizes_and_names_that_cannot_be_are_refused,
        an_older_set_of_the_same_name_is_in_the_way,
        a_set_is_not_replaced_by_what_is_made_of_it,
        a_set_that_is_interrupted_leaves_nothing,
        another_set_that_is_there_by_the_end_is_in_the_way,
    };

    return RUN_SUITE("sets", tests);
}
