/*
 * test_llama2c.c - the checkpoints of llama2.c, versions 0, 1 and 2.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

static struct bytes
small(int version, bool is_tied)
{
    struct build_sizes sizes = build_small;
    struct bytes bytes = {0};

    sizes.is_tied = is_tied;
    struct build_model *model = build_model(&sizes, 1);
    put_llama2c(&bytes, model, version);
    build_free(model);
    return bytes;
}

START_TEST(both_versions_give_the_weights_in_one_convention)
{
    const char *path = in_folder("model.bin");

    for (int version = 0; version <= 1; version++)
        for (int tied = 0; tied <= 1; tied++) {
            struct build_sizes sizes = build_small;
            sizes.is_tied = tied;
            struct build_model *model = build_model(&sizes, 1);
            struct bytes bytes = small(version, tied);
            save(&bytes, path);
            struct lmq_checkpoint *checkpoint = open_checkpoint(path);
            ck_assert_uint_eq(checkpoint->n_tensors, model->n_tensors);
            ck_assert_int_eq(checkpoint->hparams.tie,
                             tied ? LMQ_TIE_YES : LMQ_TIE_NO);
            for (size_t i = 0; i < model->n_tensors; i++) {
                struct lmq_place place;
                char name[64];
                size_t n;
                lmq_name_parse(model->tensors[i].name, &place);
                lmq_name_canonical(&place, name, sizeof(name));
                float *x = read_tensor(checkpoint, name, &n);
                ck_assert_uint_eq(n, model->tensors[i].n_elements);
                ck_assert_mem_eq(x, model->tensors[i].x, n * sizeof(*x));
                free(x);
            }
            lmq_checkpoint_close(checkpoint);
            bytes_free(&bytes);
            build_free(model);
        }
}
END_TEST

START_TEST(rotary_rows_are_read_in_pieces_too)
{
    struct random random = {random_seed()};
    struct build_model *model = build_model(&build_small, 1);
    struct build_tensor *wanted =
        build_find(model, "layers.1.self_attn.q_proj.weight");
    struct bytes bytes = small(0, true);
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    float x[24 * 24];

    save(&bytes, in_folder("model.bin"));
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("model.bin"));
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, "blk.1.attn_q.weight");
    ck_assert_uint_eq(tensor->n_elements, 24 * 24);
    for (int round = 0; round < 300; round++) {
        size_t at = random_below(&random, 24 * 24);
        size_t n = random_below(&random, 24 * 24 - at + 1);
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, at, n, x,
                                             &scratch, &err),
                         LMQ_OK);
        ck_assert_mem_eq(x, wanted->x + at, n * sizeof(*x));
    }
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

START_TEST(the_header_becomes_the_model)
{
    struct bytes bytes = small(0, false);

    save(&bytes, in_folder("model.bin"));
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("model.bin"));
    const struct lmq_hparams *h = &checkpoint->hparams;
    ck_assert(checkpoint->has_model);
    ck_assert_str_eq(h->architecture, "llama");
    ck_assert_uint_eq(h->dim, 24);
    ck_assert_uint_eq(h->hidden_dim, 40);
    ck_assert_uint_eq(h->n_layers, 2);
    ck_assert_uint_eq(h->n_heads, 4);
    ck_assert_uint_eq(h->n_kv_heads, 2);
    ck_assert_uint_eq(h->head_dim, 6);
    ck_assert_uint_eq(h->vocab_size, 33);
    ck_assert_uint_eq(h->context, 64);
    ck_assert_double_eq(h->norm_eps, 1e-5);
    ck_assert_int_eq(h->bos, 1);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&bytes);
}
END_TEST

START_TEST(the_size_of_the_file_is_exact)
{
    const char *path = in_folder("model.bin");

    for (int version = 0; version <= 1; version++) {
        struct bytes bytes = small(version, true);
        put_zeros(&bytes, 1);
        save(&bytes, path);
        assert_refused(path, LMQ_ERR_FORMAT, "makes");
        bytes.n -= 2;
        save(&bytes, path);
        assert_refused(path, LMQ_ERR_FORMAT, "makes");
        bytes_free(&bytes);
    }
}
END_TEST

/* Each field of the header: 0, negative, huge; never a crash. */
START_TEST(headers_that_make_no_model_are_refused)
{
    static const uint32_t values[] = {0,          (uint32_t)-1, 0x80000000,
                                      0x7fffffff, 0x01000001,   65537};
    const char *path = in_folder("model.bin");

    for (int version = 0; version <= 1; version++)
        for (size_t field = 0; field < 7; field++)
            for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
                struct lmq_checkpoint *checkpoint;
                struct lmq_error err;
                if (field == 6 && values[v] - 1 < LMQ_MAX_CONTEXT &&
                    version > 0)
                    continue; /* any context fits where no table is stored */
                struct bytes bytes = small(version, true);
                lmq_store_u32le(bytes.at + (version > 0 ? 8 : 0) + 4 * field,
                                values[v]);
                save(&bytes, path);
                ck_assert_int_eq(
                    lmq_checkpoint_open(path, NULL, &checkpoint, &err),
                    LMQ_ERR_FORMAT);
                ck_assert_str_ne(err.message, "");
                bytes_free(&bytes);
            }
}
END_TEST

START_TEST(heads_that_do_not_divide_are_refused)
{
    const char *path = in_folder("model.bin");
    struct bytes bytes = small(0, true);

    lmq_store_u32le(bytes.at + 12, 5);
    lmq_store_u32le(bytes.at + 16, 5);
    save(&bytes, path);
    assert_refused(path, LMQ_ERR_FORMAT, "no multiple of the 5 heads");
    lmq_store_u32le(bytes.at + 12, 8);
    lmq_store_u32le(bytes.at + 16, 8);
    save(&bytes, path);
    assert_refused(path, LMQ_ERR_FORMAT, "rotary positions need an even");
    bytes_free(&bytes);
}
END_TEST

START_TEST(other_versions_are_unsupported)
{
    const char *path = in_folder("model.bin");
    struct bytes bytes = small(1, true);

    lmq_store_u32le(bytes.at + 4, 3);
    save(&bytes, path);
    assert_refused(path, LMQ_ERR_UNSUPPORTED, "version 3");
    lmq_store_u32le(bytes.at + 4, 1);
    bytes.at[36] = 7;
    save(&bytes, path);
    assert_refused(path, LMQ_ERR_FORMAT, "shared classifier is 7");
    bytes_free(&bytes);
}
END_TEST

START_TEST(the_tokenizer_beside_the_file_comes_along)
{
    struct bytes bytes = small(0, true);

    save(&bytes, in_folder("model.bin"));
    write_file(in_folder("tokenizer.bin"), "xyz", 3);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("model.bin"));
    ck_assert_uint_eq(checkpoint->n_blobs, 1);
    ck_assert_str_eq(checkpoint->blobs[0].name, "tokenizer.bin");
    ck_assert_uint_eq(checkpoint->notes.n, 1);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&bytes);
}
END_TEST

/* ---- Version 2 ---- */

static void
quantize(uint32_t group, struct bytes *v2, struct bytes *v1)
{
    struct build_model *model = build_model(&build_small, 1);

    *v1 = *v2 = (struct bytes){0};
    put_llama2c_q8(v2, model, group, v1);
    build_free(model);
}

/* 24 divides no row of 40: groups cross rows. */
START_TEST(groups_of_version_2_run_over_the_flattened_matrix)
{
    static const uint32_t groups[] = {1, 3, 8, 24};

    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        struct bytes v1, v2;
        quantize(groups[g], &v2, &v1);
        save(&v1, in_folder("v1.bin"));
        save(&v2, in_folder("v2.bin"));
        struct lmq_checkpoint *a = open_checkpoint(in_folder("v1.bin"));
        struct lmq_checkpoint *b = open_checkpoint(in_folder("v2.bin"));
        ck_assert_uint_eq(a->n_tensors, b->n_tensors);
        for (size_t i = 0; i < a->n_tensors; i++) {
            const char *name = a->tensors[i].name;
            size_t n, m;
            float *x = read_tensor(a, name, &n), *y = read_tensor(b, name, &m);
            ck_assert_uint_eq(n, m);
            ck_assert_mem_eq(x, y, n * sizeof(*x));
            ck_assert_str_eq(a->tensors[i].stored_name,
                             b->tensors[i].stored_name);
            ck_assert_int_eq(b->tensors[i].encoding != NULL,
                             a->tensors[i].n_dims == 2);
            free(x);
            free(y);
        }
        ck_assert_ptr_nonnull(strstr(b->variant, "version 2, groups of"));
        ck_assert_uint_eq(b->notes.n, 0);
        lmq_checkpoint_close(a);
        lmq_checkpoint_close(b);
        bytes_free(&v1);
        bytes_free(&v2);
    }
}
END_TEST

START_TEST(version_2_is_read_in_pieces_too)
{
    struct random random = {random_seed()};
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    struct bytes v1, v2;
    float piece[24 * 24];

    quantize(24, &v2, &v1);
    save(&v2, in_folder("v2.bin"));
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("v2.bin"));
    const char *const names[] = {"blk.1.attn_q.weight",
                                 "blk.0.ffn_down.weight"};
    for (int round = 0; round < 300; round++) {
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, names[round % 2]);
        size_t n_all, n = (size_t)tensor->n_elements;
        size_t at = random_below(&random, n);
        n = random_below(&random, (n - at) % (24 * 24) + 1);
        float *all = read_tensor(checkpoint, tensor->name, &n_all);
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, at, n, piece,
                                             &scratch, &err),
                         LMQ_OK);
        ck_assert_mem_eq(piece, all + at, n * sizeof(*piece));
        free(all);
    }
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&v1);
    bytes_free(&v2);
}
END_TEST

START_TEST(group_sizes_that_make_no_file_are_refused)
{
    static const struct {
        uint32_t group;
        const char *text;
    } wrong[] = {
        {0, "group size is 0"},          {(uint32_t)-1, "group size is -1"},
        {0x80000000, "group size is -"}, {0x7fffffff, "does not divide"},
        {7, "does not divide"},          {48, "does not divide"},
        {12, "makes"},
    };
    const char *path = in_folder("model.bin");
    struct bytes v1, v2;

    quantize(24, &v2, &v1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        lmq_store_u32le(v2.at + 37, wrong[i].group);
        save(&v2, path);
        assert_refused(path, LMQ_ERR_FORMAT, wrong[i].text);
    }
    lmq_store_u32le(v2.at + 37, 24);
    v2.n--;
    save(&v2, path);
    assert_refused(path, LMQ_ERR_FORMAT, "makes");
    bytes_free(&v1);
    bytes_free(&v2);
}
END_TEST

/* The model that llama2.c's own exporter quantized; its perplexity is measured
 * by hand. */
START_TEST(a_file_from_outside_is_near_its_float_model)
{
    const char *folder = source_path("../../shared/data/models/stories260K/");
    char path[4096], quantized[4096];

    snprintf(path, sizeof(path), "%sstories260K.bin", folder);
    snprintf(quantized, sizeof(quantized), "%sstories260K_q80.bin", folder);
    if (access(quantized, R_OK) != 0) {
        printf("skipped: there is no %s\n", quantized);
        return;
    }
    struct lmq_report *report = diff(path, quantized, 1);
    ck_assert_double_gt(lmq_report_number(report, "snr_db"), 40);
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        both_versions_give_the_weights_in_one_convention,
        rotary_rows_are_read_in_pieces_too,
        the_header_becomes_the_model,
        the_size_of_the_file_is_exact,
        headers_that_make_no_model_are_refused,
        heads_that_do_not_divide_are_refused,
        other_versions_are_unsupported,
        the_tokenizer_beside_the_file_comes_along,
        groups_of_version_2_run_over_the_flattened_matrix,
        version_2_is_read_in_pieces_too,
        group_sizes_that_make_no_file_are_refused,
        a_file_from_outside_is_near_its_float_model,
    };

    return RUN_SUITE("llama2c", tests);
}
