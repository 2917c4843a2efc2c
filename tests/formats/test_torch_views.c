/*
 * test_torch_views.c - what a file of torch.save may hold: views of storages,
 * trees around the state dict, archives; and what is refused.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_torch.h"
#include "tests/build/suite.h"

/* ---- Views ---- */

/* An archive with these views of one storage of `most` numbers, 0, 1, ... */
static const char *
save_views(const struct build_view *views, size_t n, uint32_t most)
{
    const char *path = in_folder("views.pt");
    struct build_zip zip = {0};
    struct bytes pickle = {0}, storage = {0}, bytes = {0};
    char name[32];

    put(&pickle, "\x80\x02}(", 4);
    for (size_t i = 0; i < n; i++) {
        struct build_view view = views[i];
        snprintf(name, sizeof(name), "w%zu", i);
        view.storage = view.storage == NULL ? "FloatStorage" : view.storage;
        view.key = view.key == NULL ? "0" : view.key;
        view.n = view.n == 0 ? most : view.n;
        pickle_text(&pickle, name);
        pickle_tensor(&pickle, &view);
    }
    put_text(&pickle, "u.");
    for (uint32_t i = 0; i < most; i++)
        put_f32(&storage, (float)i);
    zip_add(&zip, "a/data.pkl", pickle.at, pickle.n);
    zip_add(&zip, "a/data/0", storage.at, storage.n);
    zip_end(&zip, &bytes);
    save(&bytes, path);
    bytes_free(&pickle);
    bytes_free(&storage);
    bytes_free(&bytes);
    return path;
}

START_TEST(views_of_one_storage_are_read)
{
    static const struct build_view views[] = {
        {.n_dims = 2, .dims = {4, 6}, .strides = {6, 1}},
        {.n_dims = 2, .dims = {6, 4}, .strides = {1, 6}},
        {.offset = 6, .n_dims = 2, .dims = {2, 6}, .strides = {6, 1}},
        {.offset = 2, .n_dims = 2, .dims = {3, 4}, .strides = {1, 6}},
        {.offset = 23, .n_dims = 0},
        {.n_dims = 3, .dims = {1, 24, 1}, .strides = {99, 1, 7}},
        {.n_dims = 2, .dims = {4, 6}, .strides = {6, 1}},
    };
    size_t n_views = sizeof(views) / sizeof(views[0]);
    struct random random = {random_seed()};
    struct lmq_scratch scratch = {0};
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(save_views(views, n_views, 24));

    ck_assert_uint_eq(checkpoint->n_tensors, n_views);
    for (size_t i = 0; i < n_views; i++) {
        const struct build_view *v = &views[i];
        char name[32];
        size_t n;
        snprintf(name, sizeof(name), "w%zu", i);
        float *x = read_tensor(checkpoint, name, &n);
        float *wanted = malloc((n + 1) * sizeof(*wanted));
        ck_assert_ptr_nonnull(wanted);
        for (size_t j = 0; j < n; j++) {
            uint64_t at = v->offset, rest = j;
            for (uint32_t d = v->n_dims; d-- > 0; rest /= v->dims[d])
                at += rest % v->dims[d] * v->strides[d];
            wanted[j] = (float)at;
            REQUIRE(x[j] == wanted[j], "%s, element %zu: %g, not %d", name, j,
                    (double)x[j], (int)at);
        }
        /* Also from within a row into the next ones. */
        for (size_t j = 0; j < n; j++) {
            size_t m = 1 + random_below(&random, n - j);
            ck_assert_int_eq(
                lmq_checkpoint_read(checkpoint,
                                    lmq_checkpoint_find_name(checkpoint, name),
                                    j, m, x, &scratch, NULL),
                LMQ_OK);
            REQUIRE(memcmp(x, wanted + j, m * sizeof(*x)) == 0,
                    "%s, elements %zu to %zu", name, j, j + m);
        }
        free(wanted);
        free(x);
    }
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

static const struct {
    struct build_view view;
    enum lmq_status status;
    const char *text;
} wrong_views[] = {
    {{.n_dims = 2, .dims = {4, 3}, .strides = {6, 1}}, LMQ_ERR_UNSUPPORTED,
     "do not follow"},
    {{.n_dims = 2, .dims = {4, 3}, .strides = {0, 1}}, LMQ_ERR_UNSUPPORTED,
     "do not follow"},
    {{.n_dims = 2, .dims = {4, 3}, .strides = {1, 2}}, LMQ_ERR_UNSUPPORTED,
     "do not follow"},
    {{.n_dims = 1, .dims = {3}, .strides = {2}}, LMQ_ERR_UNSUPPORTED,
     "do not follow"},
    {{.n_dims = 3, .dims = {2, 3, 4}, .strides = {1, 2, 6}},
     LMQ_ERR_UNSUPPORTED, "do not follow"},
    {{.n_dims = 2, .dims = {2, 2}, .strides = {1, UINT64_MAX >> 1}},
     LMQ_ERR_FORMAT, "its storage has 24"},
    {{.n_dims = 2, .dims = {2, 3}, .strides = {1, UINT64_MAX >> 1}},
     LMQ_ERR_UNSUPPORTED, "do not follow"},
    {{.n_dims = 1, .dims = {25}, .strides = {1}}, LMQ_ERR_FORMAT,
     "its storage has 24"},
    {{.offset = 1, .n_dims = 1, .dims = {24}, .strides = {1}}, LMQ_ERR_FORMAT,
     "its storage has 24"},
    {{.offset = UINT64_MAX >> 1, .n_dims = 1, .dims = {1}, .strides = {1}},
     LMQ_ERR_FORMAT, "its storage has 24"},
    {{.offset = UINT64_MAX, .n_dims = 1, .dims = {1}, .strides = {1}},
     LMQ_ERR_FORMAT, "no proper storage"},
    {{.n_dims = 2, .dims = {1u << 31, 1u << 31}, .strides = {1u << 31, 1}},
     LMQ_ERR_FORMAT, "too large"},
    {{.n = 23, .n_dims = 1, .dims = {1}, .strides = {1}}, LMQ_ERR_FORMAT,
     "is said to be 92"},
    {{.n = 25, .n_dims = 1, .dims = {1}, .strides = {1}}, LMQ_ERR_FORMAT,
     "is said to be 100"},
    {{.n = ((uint64_t)1 << 62) + 24, .n_dims = 1, .dims = {1},
      .strides = {1}},
     LMQ_ERR_FORMAT, "no proper storage"},
    {{.storage = "HalfStorage", .n_dims = 1, .dims = {1}, .strides = {1}},
     LMQ_ERR_FORMAT, "is said to be 48"},
    {{.storage = "IntStorage", .n_dims = 2, .dims = {6, 4}, .strides = {1, 6}},
     LMQ_ERR_UNSUPPORTED, "do not follow"},
    {{.storage = "ComplexFloatStorage", .n_dims = 1, .dims = {1},
      .strides = {1}},
     LMQ_ERR_UNSUPPORTED, "torch.ComplexFloatStorage"},
    {{.storage = "Size", .n_dims = 1, .dims = {1}, .strides = {1}},
     LMQ_ERR_FORMAT, "no proper type"},
    {{.key = "1", .n_dims = 1, .dims = {1}, .strides = {1}}, LMQ_ERR_FORMAT,
     "not in the archive"},
    {{.key = "../data/0", .n_dims = 1, .dims = {1}, .strides = {1}},
     LMQ_ERR_FORMAT, "not in the archive"},
};

START_TEST(views_that_are_none_are_refused)
{
    for (size_t i = 0; i < sizeof(wrong_views) / sizeof(wrong_views[0]); i++)
        assert_refused(save_views(&wrong_views[i].view, 1, 24),
                       wrong_views[i].status, wrong_views[i].text);
}
END_TEST

/* A small file must not ask for a large conversion. */
START_TEST(sharing_has_a_limit)
{
    static struct build_view views[1000];

    for (size_t i = 0; i < 1000; i++)
        views[i] = (struct build_view){.n_dims = 1, .dims = {10000},
                                       .strides = {1}};
    lmq_checkpoint_close(open_checkpoint(save_views(views, 10, 10000)));
    assert_refused(save_views(views, 1000, 10000), LMQ_ERR_FORMAT,
                   "more than 64-fold");
}
END_TEST

/* ---- What is not a state dict ---- */

/* An archive with this pickle behind its first two bytes. */
static const char *
save_pickle(const struct bytes *pickle)
{
    const char *path = in_folder("some.pt");
    struct build_zip zip = {0};
    struct bytes whole = {0}, bytes = {0};

    put(&whole, "\x80\x02", 2);
    put(&whole, pickle->at, pickle->n);
    zip_add(&zip, "a/data.pkl", whole.at, whole.n);
    zip_add(&zip, "a/data/0", "\0\0\200?", 4);
    zip_end(&zip, &bytes);
    save(&bytes, path);
    bytes_free(&bytes);
    bytes_free(&whole);
    return path;
}

static const struct build_view one = {.storage = "FloatStorage", .key = "0",
                                      .n = 1, .n_dims = 1, .dims = {1},
                                      .strides = {1}};

START_TEST(what_is_no_tensor_is_left_out)
{
    struct bytes p = {0};

    put_text(&p, "}(");
    pickle_text(&p, "_extra_state");
    put_text(&p, "N");
    pickle_text(&p, "w");
    pickle_global(&p, "torch._utils", "_rebuild_parameter");
    pickle_tensor(&p, &one);
    put(&p, "\x89}\x87R", 4);
    pickle_text(&p, "steps");
    put_text(&p, "K\x07u");
    /* As a module's state dict is built. */
    put_text(&p, "}");
    pickle_text(&p, "_metadata");
    put_text(&p, "}sb.");
    struct lmq_checkpoint *checkpoint = open_checkpoint(save_pickle(&p));
    ck_assert_uint_eq(checkpoint->n_tensors, 1);
    ck_assert_str_eq(checkpoint->tensors[0].stored_name, "w");
    ck_assert_ptr_nonnull(
        strstr(checkpoint->notes.texts[0], "'_extra_state' and 1"));
    lmq_checkpoint_close(checkpoint);
    bytes_free(&p);
}
END_TEST

/* front, a tensor, back */
static const struct {
    const char *front, *back;
    enum lmq_status status;
    const char *text;
} wrong_trees[] = {
    {"", ".", LMQ_ERR_FORMAT, "no dictionary of tensors"},
    {"]", "a.", LMQ_ERR_FORMAT, "no dictionary of tensors"},
    {"}K\1", "s.", LMQ_ERR_FORMAT, "no text"},
    {"}X\2\0\0\0a\0", "s.", LMQ_ERR_FORMAT, "no proper name"},
    {"}X\0\0\0\0", "s.", LMQ_ERR_FORMAT, "name is 0 bytes"},
    {"}(X\1\0\0\0a", "h\0u.", LMQ_ERR_FORMAT, "never put"},
    {"}(X\1\0\0\0a", "X\1\0\0\0aNu.", LMQ_OK, ""},
};

START_TEST(what_is_no_state_dict_is_refused)
{
    static const size_t n_fronts[] = {0, 1, 3, 8, 6, 8, 8};
    static const size_t n_backs[] = {1, 2, 2, 2, 2, 4, 9};

    for (size_t i = 0; i < sizeof(wrong_trees) / sizeof(wrong_trees[0]);
         i++) {
        struct bytes p = {0};
        put(&p, wrong_trees[i].front, n_fronts[i]);
        pickle_tensor(&p, &one);
        put(&p, wrong_trees[i].back, n_backs[i]);
        if (wrong_trees[i].status == LMQ_OK)
            lmq_checkpoint_close(open_checkpoint(save_pickle(&p)));
        else
            assert_refused(save_pickle(&p), wrong_trees[i].status,
                           wrong_trees[i].text);
        bytes_free(&p);
    }
}
END_TEST

/* (storage, offset, sizes, strides, gradient, hooks, type) and, perhaps, a
 * class of its own. */
static void
put_v3(struct bytes *p, const char *storage, const char *type, bool has_class)
{
    if (has_class) {
        pickle_global(p, "torch._tensor", "_rebuild_from_type_v2");
        put_text(p, "(");
    }
    pickle_global(p, "torch._utils", "_rebuild_tensor_v3");
    if (has_class)
        pickle_global(p, "torch.nn.parameter", "Parameter");
    put_text(p, "((");
    pickle_text(p, "storage");
    pickle_global(p, "torch.storage", storage);
    pickle_text(p, "0");
    pickle_text(p, "cpu");
    put(p, "K\4tQK\0K\2K\2\x86K\2K\1\x86\x89N", 18);
    pickle_global(p, "torch", type);
    put_text(p, has_class ? "t}tR" : "tR");
}

START_TEST(newer_types_are_read)
{
    for (int has_class = 0; has_class < 2; has_class++) {
        struct bytes p = {0};
        size_t n;
        put_text(&p, "}");
        pickle_text(&p, "w");
        put_v3(&p, "UntypedStorage", "float8_e5m2", has_class == 1);
        put_text(&p, "s.");
        struct lmq_checkpoint *checkpoint = open_checkpoint(save_pickle(&p));
        ck_assert_int_eq(checkpoint->tensors[0].dtype, LMQ_DTYPE_F8_E5M2);
        float *x = read_tensor(checkpoint, "w", &n);
        ck_assert_uint_eq(n, 4);
        ck_assert_float_eq(x[2], 0); /* 0x80, and 0x3f behind it */
        ck_assert_float_eq(x[3], 1.75f);
        free(x);
        lmq_checkpoint_close(checkpoint);
        bytes_free(&p);
    }
    struct bytes p = {0};
    put_text(&p, "}");
    pickle_text(&p, "w");
    put_v3(&p, "UntypedStorage", "float8_e4m3fnuz", false);
    put_text(&p, "s.");
    assert_refused(save_pickle(&p), LMQ_ERR_UNSUPPORTED, "float8_e4m3fnuz");
    bytes_free(&p);
}
END_TEST

START_TEST(parameters_of_parameters_have_an_end)
{
    struct bytes p = {0};

    put_text(&p, "}");
    pickle_text(&p, "w");
    for (int i = 0; i < 9; i++)
        pickle_global(&p, "torch._utils", "_rebuild_parameter");
    pickle_tensor(&p, &one);
    for (int i = 0; i < 9; i++)
        put(&p, "\x85R", 2);
    put_text(&p, "s.");
    assert_refused(save_pickle(&p), LMQ_ERR_FORMAT, "no proper storage");
    bytes_free(&p);
}
END_TEST

/* ---- Archives ---- */

/* One with this member beside data.pkl of a tensor. */
static const char *
save_beside(const char *name, const char *content, const char *pickle_name)
{
    const char *path = in_folder("some.pt");
    struct build_zip zip = {0};
    struct bytes p = {0}, bytes = {0};

    put(&p, "\x80\x02}", 3);
    pickle_text(&p, "w");
    pickle_tensor(&p, &one);
    put_text(&p, "s.");
    zip_add_deflated(&zip, pickle_name, p.at, p.n);
    zip_add(&zip, "a/data/0", "\0\0\200?", 4);
    if (name != NULL)
        zip_add(&zip, name, content, strlen(content));
    zip_end(&zip, &bytes);
    save(&bytes, path);
    bytes_free(&bytes);
    bytes_free(&p);
    return path;
}

START_TEST(archives_of_others_are_named)
{
    lmq_checkpoint_close(
        open_checkpoint(save_beside(NULL, NULL, "a/data.pkl")));
    lmq_checkpoint_close(
        open_checkpoint(save_beside("a/byteorder", "little", "a/data.pkl")));
    assert_refused(save_beside("a/byteorder", "big", "a/data.pkl"),
                   LMQ_ERR_UNSUPPORTED, "byte order 'big'");
    assert_refused(save_beside("a/version", "11\n", "a/data.pkl"),
                   LMQ_ERR_UNSUPPORTED, "version 11");
    assert_refused(save_beside("a/constants.pkl", "", "a/data.pkl"),
                   LMQ_ERR_UNSUPPORTED, "TorchScript");
    assert_refused(save_beside("b/data.pkl", "", "a/data.pkl"),
                   LMQ_ERR_FORMAT, "both 'a/data.pkl' and 'b/data.pkl'");
    assert_refused(save_beside("w.npy", "", "x"), LMQ_ERR_UNSUPPORTED,
                   "NumPy");
    assert_refused(save_beside(NULL, NULL, "x/y/data.pkl"),
                   LMQ_ERR_UNSUPPORTED, "no data.pkl");
    assert_refused(save_beside(NULL, NULL, "data.pkl"), LMQ_ERR_UNSUPPORTED,
                   "no data.pkl");
}
END_TEST

START_TEST(compressed_storages_are_refused)
{
    struct build_zip zip = {0};
    struct bytes p = {0}, bytes = {0};

    put(&p, "\x80\x02}", 3);
    pickle_text(&p, "w");
    pickle_tensor(&p, &one);
    put_text(&p, "s.");
    zip_add(&zip, "a/data.pkl", p.at, p.n);
    zip_add_deflated(&zip, "a/data/0", "\0\0\200?", 4);
    zip_end(&zip, &bytes);
    save(&bytes, in_folder("some.pt"));
    assert_refused(in_folder("some.pt"), LMQ_ERR_UNSUPPORTED, "compressed");
    bytes_free(&bytes);
    bytes_free(&p);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    struct build_sizes sizes = {.dim = 4, .hidden = 6, .layers = 1,
                                .heads = 2, .kv_heads = 1, .vocab = 5,
                                .context = 4};
    struct build_model *model = build_model(&sizes, 9);
    const char *path = in_folder("cut.pth");
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    struct bytes bytes = {0};

    put_torch(&bytes, &(struct build_torch){0}, model, 0, model->n_tensors);
    for (size_t n = 0; n < bytes.n; n += n + 200 < bytes.n ? 7 : 1) {
        write_file(path, bytes.at, n);
        REQUIRE(lmq_checkpoint_open(path, NULL, &checkpoint, &err) != LMQ_OK,
                "cut at %zu of %zu", n, bytes.n);
        ck_assert_str_ne(err.message, "");
    }
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

/* Whatever changes: an error or a checkpoint, and its elements can be read. */
START_TEST(flipped_bytes_do_no_harm)
{
    struct random random = {random_seed()};
    struct build_sizes sizes = {.dim = 4, .hidden = 6, .layers = 1,
                                .heads = 2, .kv_heads = 1, .vocab = 5,
                                .context = 4};
    struct build_model *model = build_model(&sizes, 10);
    const char *path = in_folder("flipped.pth");
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    struct bytes bytes = {0};
    float x[256];

    put_torch(&bytes, &(struct build_torch){.is_large = true}, model, 0,
              model->n_tensors);
    for (int round = 0; round < 2000; round++) {
        struct lmq_scratch scratch = {0};
        size_t at = random_below(&random, bytes.n);
        unsigned char old = bytes.at[at];
        bytes.at[at] ^= (unsigned char)(1 + random_below(&random, 255));
        save(&bytes, path);
        bytes.at[at] = old;
        if (lmq_checkpoint_open(path, NULL, &checkpoint, &err) != LMQ_OK)
            continue;
        for (size_t i = 0; i < checkpoint->n_tensors; i++)
            lmq_checkpoint_read(
                checkpoint, &checkpoint->tensors[i], 0,
                checkpoint->tensors[i].n_elements < 256
                    ? (size_t)checkpoint->tensors[i].n_elements
                    : 256,
                x, &scratch, &err);
        lmq_scratch_free(&scratch);
        lmq_checkpoint_close(checkpoint);
    }
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        views_of_one_storage_are_read,
        views_that_are_none_are_refused,
        sharing_has_a_limit,
        what_is_no_tensor_is_left_out,
        what_is_no_state_dict_is_refused,
        newer_types_are_read,
        parameters_of_parameters_have_an_end,
        archives_of_others_are_named,
        compressed_storages_are_refused,
        every_truncation_is_refused,
        flipped_bytes_do_no_harm,
    };

    return RUN_SUITE("torch_views", tests);
}
