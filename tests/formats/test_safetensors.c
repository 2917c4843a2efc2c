/*
 * test_safetensors.c - headers, shards, folders.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

/* A file with this header and n zero bytes of data. */
static const char *
raw(const char *header, size_t n)
{
    const char *path = in_folder("raw.safetensors");
    struct bytes bytes = {0};

    put_safetensors_raw(&bytes, header, NULL, 0);
    put_zeros(&bytes, n);
    save(&bytes, path);
    bytes_free(&bytes);
    return path;
}

static void
assert_same_weights(struct lmq_checkpoint *checkpoint,
                    const struct build_model *model, double tolerance)
{
    for (size_t i = 0; i < model->n_tensors; i++) {
        size_t n;
        float *x = read_tensor(checkpoint, model->tensors[i].name, &n);
        ck_assert_uint_eq(n, model->tensors[i].n_elements);
        for (size_t j = 0; j < n; j++) {
            double wanted = (double)model->tensors[i].x[j];
            /* 2^-25: half an ulp of a subnormal half. */
            double most = tolerance * fmax(fabs(wanted), 0x1p-14);
            REQUIRE(fabs((double)x[j] - wanted) <= most, "%s, element %zu",
                    model->tensors[i].name, j);
        }
        free(x);
    }
}

START_TEST(a_folder_gives_model_and_weights)
{
    struct build_model *model = build_model(&build_small, 1);
    const char *folder = in_folder("model");

    save_folder(model, folder, BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);
    ck_assert(checkpoint->has_model);
    ck_assert_uint_eq(checkpoint->hparams.dim, 24);
    ck_assert_uint_eq(checkpoint->n_tensors, model->n_tensors);
    ck_assert_str_eq(checkpoint->tensors[0].name, "token_embd.weight");
    assert_same_weights(checkpoint, model, 0);
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(every_float_type_is_read)
{
    /* Half an ulp of eleven and of eight bits. */
    static const double tolerances[] = {0, 0x1p-11, 0x1p-8, 0};
    struct build_model *model = build_model(&build_small, 2);

    for (int type = BUILD_F32; type <= BUILD_F64; type++) {
        const char *folder = in_folder("model");
        save_folder(model, folder, (enum build_type)type);
        struct lmq_checkpoint *checkpoint = open_checkpoint(folder);
        assert_same_weights(checkpoint, model, tolerances[type]);
        lmq_checkpoint_close(checkpoint);
    }
    build_free(model);
}
END_TEST

/* Any piece of any tensor, not only the whole. */
START_TEST(pieces_are_parts_of_the_whole)
{
    struct random random = {random_seed()};
    struct build_model *model = build_model(&build_small, 3);
    const char *path = in_folder("model.safetensors");
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    float x[2000];

    save_safetensors(model, path);
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    for (int round = 0; round < 500; round++) {
        const struct build_tensor *wanted =
            &model->tensors[random_below(&random, model->n_tensors)];
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, wanted->name);
        size_t at = random_below(&random, wanted->n_elements);
        size_t n = random_below(&random, wanted->n_elements - at + 1);
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, at, n, x,
                                             &scratch, &err),
                         LMQ_OK);
        ck_assert_mem_eq(x, wanted->x + at, n * sizeof(*x));
    }
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(a_file_alone_has_tensors_and_no_model)
{
    struct build_model *model = build_model(&build_small, 4);
    const char *path = in_folder("alone.safetensors");
    struct lmq_open_options options = {0};
    struct lmq_checkpoint *checkpoint;
    struct bytes config = {0};
    struct lmq_error err;

    save_safetensors(model, path);
    checkpoint = open_checkpoint(path);
    ck_assert(!checkpoint->has_model);
    ck_assert_str_eq(checkpoint->hparams.unsupported,
                     "a model without config.json");
    lmq_checkpoint_close(checkpoint);
    /* --config gives it one. */
    put_config(&config, model);
    options.config = in_folder("other.json");
    options.rope_theta = 77;
    options.norm_eps = 0.5;
    save(&config, options.config);
    ck_assert_int_eq(lmq_checkpoint_open(path, &options, &checkpoint, &err),
                     LMQ_OK);
    ck_assert(checkpoint->has_model);
    ck_assert_double_eq(checkpoint->hparams.rope_theta, 77);
    ck_assert_double_eq(checkpoint->hparams.norm_eps, 0.5);
    lmq_checkpoint_close(checkpoint);
    bytes_free(&config);
    build_free(model);
}
END_TEST

/* ---- Shards ---- */

/* Two shards and their index; `second` is the name of the second one in the
 * index, `extra` is put into the map. */
static const char *
save_shards(const struct build_model *model, const char *second,
            const char *extra)
{
    const char *folder = in_folder("shards");
    size_t half = model->n_tensors / 2;
    struct bytes bytes = {0};
    char text[512];

    mkdir(folder, 0777);
    put_safetensors(&bytes, model, 0, half, BUILD_F32);
    save(&bytes, in_folder("shards/model-1.safetensors"));
    bytes_free(&bytes);
    put_safetensors(&bytes, model, half, model->n_tensors - half, BUILD_F32);
    save(&bytes, in_folder("shards/model-2.safetensors"));
    bytes_free(&bytes);
    put_config(&bytes, model);
    save(&bytes, in_folder("shards/config.json"));
    bytes_free(&bytes);
    put_text(&bytes, "{\"weight_map\":{");
    for (size_t i = 0; i < model->n_tensors; i++) {
        snprintf(text, sizeof(text), "%s\"%s\":\"%s\"", i == 0 ? "" : ",",
                 model->tensors[i].name,
                 i < half ? "model-1.safetensors" : second);
        put_text(&bytes, text);
    }
    put_text(&bytes, extra);
    put_text(&bytes, "}}");
    save(&bytes, in_folder("shards/model.safetensors.index.json"));
    bytes_free(&bytes);
    return folder;
}

START_TEST(shards_are_read_as_one)
{
    struct build_model *model = build_model(&build_small, 5);
    const char *folder = save_shards(model, "model-2.safetensors", "");
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);

    ck_assert_uint_eq(checkpoint->n_files, 2);
    ck_assert_uint_eq(checkpoint->n_tensors, model->n_tensors);
    assert_same_weights(checkpoint, model, 0);
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(a_shard_has_no_way_out_of_its_folder)
{
    static const char *const names[] = {
        "../model-2.safetensors", "/etc/passwd", "sub/model-2.safetensors",
        "..", ".", "", ".hidden", "a\\\\b",
    };
    struct build_model *model = build_model(&build_small, 5);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_refused(save_shards(model, names[i], ""), LMQ_ERR_FORMAT,
                       "is no plain file name");
    build_free(model);
}
END_TEST

START_TEST(index_and_shards_must_agree)
{
    struct build_model *model = build_model(&build_small, 5);

    assert_refused(save_shards(model, "model-3.safetensors", ""),
                   LMQ_ERR_FORMAT, "model-3.safetensors");
    assert_refused(save_shards(model, "model-1.safetensors", ""),
                   LMQ_ERR_FORMAT, "it does not");
    assert_refused(
        save_shards(model, "model-2.safetensors",
                    ",\"more\":\"model-2.safetensors\""),
        LMQ_ERR_FORMAT, "'more'");
    assert_refused(save_shards(model, "model-2.safetensors", ",\"more\":7"),
                   LMQ_ERR_FORMAT, "'more'");
    assert_refused(save_shards(model, "model-2.safetensors",
                               ",\"lm_head.weight\":1,\"lm_head.weight\":1"),
                   LMQ_ERR_FORMAT, "duplicate");
    build_free(model);
}
END_TEST

START_TEST(a_tensor_in_two_shards_is_refused)
{
    struct build_model *model = build_model(&build_small, 5);
    const char *folder = save_shards(model, "model-2.safetensors", "");
    struct bytes bytes = {0};

    put_safetensors(&bytes, model, 0, model->n_tensors, BUILD_F32);
    save(&bytes, in_folder("shards/model-2.safetensors"));
    assert_refused(folder, LMQ_ERR_FORMAT, "stands in two shards");
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

START_TEST(several_files_without_an_index_are_refused)
{
    struct build_model *model = build_model(&build_small, 5);
    const char *folder = save_shards(model, "model-2.safetensors", "");

    unlink(in_folder("shards/model.safetensors.index.json"));
    assert_refused(folder, LMQ_ERR_FORMAT, "2 .safetensors files");
    build_free(model);
}
END_TEST

/* ---- Headers ---- */

#define ENTRY(dtype, shape, range)                                            \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" range "}"

START_TEST(ranges_tile_the_data_exactly)
{
    lmq_checkpoint_close(open_checkpoint(
        raw("{\"b\":" ENTRY("F32", "[2]", "[8,16]") ",\"a\":" ENTRY(
                "F32", "[2]", "[0,8]") "}",
            16)));
    assert_refused(raw("{\"a\":" ENTRY("F32", "[2]", "[0,8]") ",\"b\":" ENTRY(
                           "F32", "[2]", "[4,12]") "}",
                       12),
                   LMQ_ERR_FORMAT, "an overlap");
    assert_refused(raw("{\"a\":" ENTRY("F32", "[2]", "[0,8]") ",\"b\":" ENTRY(
                           "F32", "[2]", "[0,8]") "}",
                       8),
                   LMQ_ERR_FORMAT, "an overlap");
    assert_refused(raw("{\"a\":" ENTRY("F32", "[2]", "[0,8]") ",\"b\":" ENTRY(
                           "F32", "[2]", "[12,20]") "}",
                       20),
                   LMQ_ERR_FORMAT, "a gap");
    assert_refused(raw("{\"a\":" ENTRY("F32", "[2]", "[4,12]") "}", 12),
                   LMQ_ERR_FORMAT, "a gap");
    assert_refused(raw("{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", 9),
                   LMQ_ERR_FORMAT, "has 9 bytes of data, but its tensors "
                                   "cover only 8");
    assert_refused(raw("{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", 7),
                   LMQ_ERR_FORMAT, "'a' ends at byte 8 of the data, which "
                                   "has only 7");
}
END_TEST

START_TEST(sizes_equal_shape_times_type)
{
    static const char *const headers[] = {
        "{\"a\":" ENTRY("F32", "[2]", "[0,4]") "}",
        "{\"a\":" ENTRY("F32", "[1]", "[0,8]") "}",
        "{\"a\":" ENTRY("F16", "[2]", "[0,8]") "}",
        "{\"a\":" ENTRY("F32", "[0]", "[0,8]") "}",
        "{\"a\":" ENTRY("F32", "[2,0]", "[0,8]") "}",
        "{\"a\":" ENTRY("F64", "[]", "[0,4]") "}",
    };

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        assert_refused(raw(headers[i], 8), LMQ_ERR_FORMAT,
                       "its shape and type need");
}
END_TEST

START_TEST(products_that_wrap_are_refused)
{
    static const char *const shapes[] = {
        "[4294967296,4294967296]",
        "[9223372036854775807,2]",
        "[9223372036854775807]",
        "[2305843009213693952,8]",
        "[65536,65536,65536,65536]",
        "[3,6148914691236517206]",
    };
    char header[256];

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        snprintf(header, sizeof(header),
                 "{\"a\":{\"dtype\":\"F32\",\"shape\":%s,"
                 "\"data_offsets\":[0,0]}}",
                 shapes[i]);
        assert_refused(raw(header, 0), LMQ_ERR_FORMAT, "is too large");
    }
    assert_refused(raw("{\"a\":" ENTRY("F32", "[18446744073709551615]",
                                       "[0,0]") "}",
                       0),
                   LMQ_ERR_FORMAT, "is no size");
}
END_TEST

START_TEST(entries_of_the_wrong_form_are_refused)
{
    static const struct {
        const char *header;
        const char *what;
    } cases[] = {
        {"{\"a\":7}", "'a' has no dtype"},
        {"{\"a\":null}", "'a' has no dtype"},
        {"{\"a\":[]}", "'a' has no dtype"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "no dtype"},
        {"{\"a\":{\"dtype\":5,\"shape\":[1],\"data_offsets\":[0,4]}}",
         "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "no shape"},
        {"{\"a\":" ENTRY("F32", "{}", "[0,4]") "}", "no shape"},
        {"{\"a\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}",
         "no shape"},
        {"{\"a\":" ENTRY("F32", "[-1]", "[0,4]") "}", "is no size"},
        {"{\"a\":" ENTRY("F32", "[1.0]", "[0,4]") "}", "is no size"},
        {"{\"a\":" ENTRY("F32", "[\"1\"]", "[0,4]") "}", "is no size"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0]") "}", "no data_offsets"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4,8]") "}", "no data_offsets"},
        {"{\"a\":" ENTRY("F32", "[1]", "[4,0]") "}", "no data_offsets"},
        {"{\"a\":" ENTRY("F32", "[1]", "[-4,0]") "}", "no data_offsets"},
        {"{\"a\":" ENTRY("F32", "[1]", "7") "}", "no data_offsets"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"a\":" ENTRY(
             "F32", "[1]", "[0,4]") "}",
         "duplicate"},
        {"{\"__metadata__\":{},\"a\":" ENTRY("F32", "[1]", "[0,4]") ","
         "\"__metadata__\":{}}",
         "'__metadata__' is a duplicate"},
        {"{\"\":" ENTRY("F32", "[1]", "[0,4]") "}", "name is 0 bytes"},
        {"{} {}", "no valid JSON"},
        {"{\"a\\u0000b\":7}", "no valid JSON"},
        {"{\"\\ud800\":7}", "no valid JSON"},
        {"{", "no valid JSON"},
        {"{}", "holds no"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(raw(cases[i].header, 4), LMQ_ERR_FORMAT,
                       strcmp(cases[i].header, "{}") == 0 ? "4 bytes of data"
                                                          : cases[i].what);
    assert_refused(raw("{}", 0), LMQ_ERR_FORMAT, "holds no tensors");
    assert_refused(raw("{\"__metadata__\":{}}", 0), LMQ_ERR_FORMAT,
                   "holds no tensors");
    assert_refused(raw("[]", 0), LMQ_ERR_FORMAT, "no JSON object");
}
END_TEST

START_TEST(an_unknown_type_is_unsupported_and_named)
{
    assert_refused(raw("{\"a\":" ENTRY("F4", "[2]", "[0,1]") "}", 1),
                   LMQ_ERR_UNSUPPORTED, "'F4'");
    assert_refused(raw("{\"a\":" ENTRY("f32", "[1]", "[0,4]") "}", 4),
                   LMQ_ERR_UNSUPPORTED, "'f32'");
}
END_TEST

START_TEST(the_size_of_the_header_is_checked_before_it_is_read)
{
    static const uint64_t sizes[] = {
        3, 100, 100000001, (uint64_t)1 << 40, (uint64_t)1 << 63, UINT64_MAX,
        UINT64_MAX - 7,
    };
    const char *path = in_folder("length.safetensors");

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bytes bytes = {0};
        put_u64(&bytes, sizes[i]);
        put_text(&bytes, "{}");
        save(&bytes, path);
        bytes_free(&bytes);
        assert_refused(path, LMQ_ERR_FORMAT, "at most 2 are possible");
    }
    for (size_t n = 0; n < 8; n++) {
        write_file(path, "\x02\0\0\0\0\0\0\0", n);
        assert_refused(path, LMQ_ERR_FORMAT, n == 0 ? "is empty" : "ends at");
    }
}
END_TEST

START_TEST(empty_tensors_are_left_out_with_a_note)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(
        raw("{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"none\":" ENTRY(
                "F32", "[7,0]", "[4,4]") "}",
            4));

    ck_assert_uint_eq(checkpoint->n_tensors, 1);
    ck_assert_uint_ge(checkpoint->notes.n, 1);
    ck_assert_ptr_nonnull(
        strstr(checkpoint->notes.texts[checkpoint->notes.n - 1],
               "'none' is left out: it is empty"));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(names_of_tensors_have_a_limit)
{
    char header[2048], name[1027];

    for (size_t n = 1023; n <= 1025; n++) {
        memset(name, 'n', n);
        name[n] = '\0';
        snprintf(header, sizeof(header),
                 "{\"%s\":" ENTRY("F32", "[1]", "[0,4]") "}", name);
        const char *path = raw(header, 4);
        if (n <= 1024)
            lmq_checkpoint_close(open_checkpoint(path));
        else
            assert_refused(path, LMQ_ERR_FORMAT, "expected 1 to 1024");
    }
}
END_TEST

/* ---- Model and tensors ---- */

START_TEST(the_configuration_and_the_tensors_must_agree)
{
    struct build_model *model = build_model(&build_small, 6);
    const char *folder = in_folder("model");

    model->sizes.hidden = 48;
    save_folder(model, folder, BUILD_F32);
    assert_refused(folder, LMQ_ERR_FORMAT,
                   "tensor 'model.layers.0.mlp.gate_proj.weight' is 40 x 24, "
                   "but the configuration says 48 x 24");
    model->sizes = build_small;
    model->sizes.layers = 3;
    save_folder(model, folder, BUILD_F32);
    assert_refused(folder, LMQ_ERR_FORMAT, "lacks the tensor blk.2.");
    model->sizes.layers = 1;
    save_folder(model, folder, BUILD_F32);
    assert_refused(folder, LMQ_ERR_FORMAT, "belongs to layer 1");
    model->sizes = build_small;
    model->n_tensors--; /* the last norm */
    save_folder(model, folder, BUILD_F32);
    assert_refused(folder, LMQ_ERR_FORMAT,
                   "lacks the tensor output_norm.weight");
    model->n_tensors++;
    build_add(model, "norm.weight", (uint64_t[]){24}, 1);
    save_folder(model, folder, BUILD_F32);
    assert_refused(folder, LMQ_ERR_FORMAT, "are the same");
    build_free(model);
}
END_TEST

/* Of Mamba 1: channels by keys. In another order they are other numbers. */
START_TEST(decays_of_keys_have_a_row_for_each_channel)
{
    static const char config[] =
        "{\"architectures\": [\"MambaForCausalLM\"], \"hidden_size\": 2, "
        "\"num_hidden_layers\": 1, \"state_size\": 2, \"vocab_size\": 3}";

    mkdir(in_folder("mamba"), 0777);
    write_file(in_folder("mamba/config.json"), config, sizeof(config) - 1);
    rename(raw("{\"backbone.layers.0.mixer.A_log\": {\"dtype\": \"F32\", "
               "\"shape\": [2, 4], \"data_offsets\": [0, 32]}}", 32),
           in_folder("mamba/model.safetensors"));
    assert_refused(in_folder("mamba"), LMQ_ERR_FORMAT,
                   "A_log' is 2 x 4, but the configuration says 8");
}
END_TEST

START_TEST(a_stray_tensor_stops_running_and_nothing_else)
{
    struct build_model *model = build_model(&build_small, 6);
    const char *folder = in_folder("model");

    build_add(model, "model.layers.0.self_attn.q_norm.weight",
              (uint64_t[]){6}, 1);
    build_add(model, "model.layers.0.self_attn.rotary_emb.inv_freq",
              (uint64_t[]){3}, 1);
    save_folder(model, folder, BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(folder);
    ck_assert_str_eq(checkpoint->hparams.unsupported,
                     "the tensor 'model.layers.0.self_attn.q_norm.weight'");
    ck_assert_uint_eq(checkpoint->n_tensors, model->n_tensors - 1);
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(the_tokenizer_comes_along)
{
    struct build_model *model = build_model(&build_small, 6);
    const char *folder = in_folder("model");
    struct lmq_open_options options = {.tokenizer = in_folder("mine.json")};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    save_folder(model, folder, BUILD_F32);
    write_file(in_folder("model/tokenizer.json"), "{}", 2);
    write_file(in_folder("model/tokenizer_config.json"), "{ }", 3);
    checkpoint = open_checkpoint(folder);
    ck_assert_uint_eq(checkpoint->n_blobs, 2);
    ck_assert_str_eq(checkpoint->blobs[0].name, "tokenizer.json");
    ck_assert_uint_eq(checkpoint->blobs[1].size, 3);
    lmq_checkpoint_close(checkpoint);
    write_file(options.tokenizer, "[]", 2);
    ck_assert_int_eq(lmq_checkpoint_open(folder, &options, &checkpoint, &err),
                     LMQ_OK);
    ck_assert_uint_eq(checkpoint->n_blobs, 1);
    ck_assert_str_eq(checkpoint->blobs[0].name, "mine.json");
    lmq_checkpoint_close(checkpoint);
    options.tokenizer = in_folder("none.json");
    ck_assert_int_eq(lmq_checkpoint_open(folder, &options, &checkpoint, &err),
                     LMQ_ERR_IO);
    build_free(model);
}
END_TEST

START_TEST(what_is_often_given_by_mistake_is_recognised)
{
    static const struct {
        const char *name, *start, *what;
        enum lmq_status status;
    } cases[] = {
        {"a", "version https://git-lfs.github.com/spec/v1\n", "Git LFS",
         LMQ_ERR_UNSUPPORTED},
        {"a.safetensors", "version https://git-lfs.github.com/spec/v1\n",
         "Git LFS", LMQ_ERR_UNSUPPORTED},
        {"a", "<!DOCTYPE html><html></html>", "web page",
         LMQ_ERR_UNSUPPORTED},
        {"a.safetensors", "<html></html>", "web page", LMQ_ERR_UNSUPPORTED},
        {"a", "{\"hidden_size\": 3}", "is JSON", LMQ_ERR_UNSUPPORTED},
        {"a", "\x1f\x8b\x08", "gzip", LMQ_ERR_UNSUPPORTED},
        {"a", "Once upon a time there was a file", "any known format",
         LMQ_ERR_FORMAT},
        {"a", "", "is empty", LMQ_ERR_FORMAT},
        {"a", "x", "any known format", LMQ_ERR_FORMAT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = in_folder(cases[i].name);
        write_file(path, cases[i].start, strlen(cases[i].start));
        assert_refused(path, cases[i].status, cases[i].what);
    }
    mkdir(in_folder("empty"), 0777);
    assert_refused(in_folder("empty"), LMQ_ERR_FORMAT,
                   "the folder holds no model");
    write_file(in_folder("empty/__0_0.distcp"), "PK", 2);
    assert_refused(in_folder("empty"), LMQ_ERR_UNSUPPORTED,
                   "shards of torch.distributed.checkpoint");
    assert_refused(in_folder("nothing"), LMQ_ERR_IO, "No such file");
    /* In a folder the name alone makes a file one of safetensors: a clone
     * without git-lfs, or what a download has left. */
    static const struct {
        const char *start, *what;
        enum lmq_status status;
    } named[] = {
        {"version https://git-lfs.github.com/spec/v1\n", "Git LFS",
         LMQ_ERR_UNSUPPORTED},
        {"<!DOCTYPE html><html></html>", "web page", LMQ_ERR_UNSUPPORTED},
        {"{\"error\": \"not found\"}", "is JSON", LMQ_ERR_UNSUPPORTED},
        {"GGUF\3\1\1\1\1", "GGUF file under another name",
         LMQ_ERR_UNSUPPORTED},
        {"Entry not found", "the header is said to be", LMQ_ERR_FORMAT},
    };
    mkdir(in_folder("clone"), 0777);
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        write_file(in_folder("clone/model.safetensors"), named[i].start,
                   strlen(named[i].start));
        assert_refused(in_folder("clone"), named[i].status, named[i].what);
    }
    /* There a name alone makes a file of PyTorch's. */
    static const char *const others[][2] = {
        {"GGUF\3", "GGUF file under another name"},
        {"\x80\x04\x95", "Python pickle"},
        {"<!doctype html>", "web page"},
        {"garbage", "is no zip archive"},
    };
    mkdir(in_folder("old"), 0777);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        write_file(in_folder("old/pytorch_model.bin"), others[i][0],
                   strlen(others[i][0]));
        assert_refused(in_folder("old"), LMQ_ERR_UNSUPPORTED, others[i][1]);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_folder_gives_model_and_weights,
        every_float_type_is_read,
        pieces_are_parts_of_the_whole,
        a_file_alone_has_tensors_and_no_model,
        shards_are_read_as_one,
        a_shard_has_no_way_out_of_its_folder,
        index_and_shards_must_agree,
        a_tensor_in_two_shards_is_refused,
        several_files_without_an_index_are_refused,
        ranges_tile_the_data_exactly,
        sizes_equal_shape_times_type,
        products_that_wrap_are_refused,
        entries_of_the_wrong_form_are_refused,
        an_unknown_type_is_unsupported_and_named,
        the_size_of_the_header_is_checked_before_it_is_read,
        empty_tensors_are_left_out_with_a_note,
        names_of_tensors_have_a_limit,
        the_configuration_and_the_tensors_must_agree,
        decays_of_keys_have_a_row_for_each_channel,
        a_stray_tensor_stops_running_and_nothing_else,
        the_tokenizer_comes_along,
        what_is_often_given_by_mistake_is_recognised,
    };

    return RUN_SUITE("safetensors", tests);
}
