/*
 * test_damage.c - files with one flipped bit, and files that end early.
 *
 * Every bit of a small container is flipped in turn: lmq_verify() must notice
 * each, and reading such a file must end in numbers or in an error. Every
 * beginning of every kind of file is opened in turn. All in memory (memfd)
 * and on one thread, so that it is quick enough for builds with sanitizers.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/build/suite.h"

/* ---- A file in memory ---- */

static int memory_file = -1;
static char memory_path[64];

static void
open_memory(void)
{
    memory_file = memfd_create("damage", 0);
    ck_assert_int_ge(memory_file, 0);
    snprintf(memory_path, sizeof(memory_path), "/proc/self/fd/%d",
             memory_file);
}

static void
fill_memory(const unsigned char *bytes, size_t n)
{
    REQUIRE(ftruncate(memory_file, (off_t)n) == 0 &&
                pwrite(memory_file, bytes, n, 0) == (ssize_t)n,
            "cannot write a file in memory");
}

/* ---- Flipped bits ---- */

/* Ragged rows, something kept, a tokenizer, an alias; as small as it can
 * be. */
static unsigned char *
small_lmq(const char *layout, int is_compressed, size_t *n)
{
    struct build_model model = {0};
    struct lmq_convert_options options = {.layout = layout,
                                          .group_size = 32,
                                          .is_compressed = is_compressed,
                                          .replaces = 1,
                                          .threads = 1};
    char tokenizer[100];

    build_add(&model, "embed_tokens.weight", (uint64_t[]){3, 2}, 2);
    build_add(&model, "layers.0.mlp.down_proj.weight", (uint64_t[]){2, 33},
              2);
    build_add(&model, "norm.weight", (uint64_t[]){2}, 1);
    build_add(&model, "lm_head.weight", (uint64_t[]){3, 2}, 2);
    for (size_t i = 0; i < model.n_tensors; i++)
        for (size_t j = 0; j < model.tensors[i].n_elements; j++)
            model.tensors[i].x[j] = (float)(j % 7) - 2.7f;
    mkdir(in_folder("model"), 0777);
    save_safetensors(&model, in_folder("model/model.safetensors"));
    memset(tokenizer, 'x', sizeof(tokenizer));
    write_file(in_folder("model/tokenizer.json"), tokenizer,
               sizeof(tokenizer));
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("model.lmq"), &options);
    ck_assert_str_eq(lmq_report_string(report, "tie.rule"), "contents");
    lmq_report_free(report);
    for (size_t i = 0; i < model.n_tensors; i++)
        free(model.tensors[i].x);
    free(model.tensors);
    return read_file(in_folder("model.lmq"), n);
}

static void
flip_every_bit(const char *layout, int is_compressed)
{
    const struct lmq_verify_options alone = {.threads = 1};
    size_t n;
    unsigned char *bytes = small_lmq(layout, is_compressed, &n);

    open_memory();
    fill_memory(bytes, n);
    assert_intact(memory_path);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        unsigned char flipped =
            (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8);
        struct lmq_report *report;
        struct lmq_error err = {0};
        REQUIRE(pwrite(memory_file, &flipped, 1, (off_t)(bit / 8)) == 1,
                "cannot write");
        enum lmq_status status =
            lmq_verify(memory_path, &alone, NULL, &report, &err);
        REQUIRE((status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED) &&
                    err.message[0] != '\0',
                "bit %zu of byte %zu: status %d", bit % 8, bit / 8,
                (int)status);
        lmq_report_free(report);
        read_all(memory_path);
        REQUIRE(pwrite(memory_file, &bytes[bit / 8], 1, (off_t)(bit / 8)) ==
                    1,
                "cannot write");
    }
    free(bytes);
}

START_TEST(every_flipped_bit_of_a_container_in_rows_is_noticed)
{
    flip_every_bit("rows", 0);
}
END_TEST

START_TEST(every_flipped_bit_of_a_container_in_tiles_is_noticed)
{
    flip_every_bit("tiles", 1);
}
END_TEST

/* Somebody writes to the file meanwhile, here what is there. */
static int
write_again(void *context, const char *stage, uint64_t done, uint64_t total)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    (void)context, (void)stage, (void)done, (void)total;
    REQUIRE(futimens(memory_file, times) == 0, "cannot set the time");
    return 0;
}

START_TEST(what_is_written_to_meanwhile_is_not_called_damaged)
{
    const struct lmq_progress progress = {.report = write_again};
    struct lmq_report *report;
    struct lmq_error err = {0};
    size_t n;
    unsigned char *bytes = small_lmq("rows", 0, &n);

    bytes[find_lmq_section(bytes, n, 3)] ^= 1; /* the tokenizer */
    open_memory();
    fill_memory(bytes, n);
    ck_assert_int_eq(lmq_verify(memory_path, NULL, NULL, &report, &err),
                     LMQ_ERR_FORMAT);
    lmq_report_free(report);
    ck_assert_int_eq(lmq_verify(memory_path, NULL, &progress, &report, &err),
                     LMQ_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "changed while it was read"));
    lmq_report_free(report);
    free(bytes);
}
END_TEST

/* The same bits, with all checksums put right: now the checks of the numbers
 * are on their own. */
START_TEST(flipped_bits_under_right_checksums_do_no_harm)
{
    size_t n;
    unsigned char *good = small_lmq("rows", 0, &n), *bytes = malloc(n);
    size_t directory = find_lmq_section(good, n, 2);

    open_memory();
    for (size_t at = 8; at < n; at++) {
        if (at == 128)
            at = directory; /* what is before it has no numbers to check */
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bytes, good, n);
            bytes[at] ^= (unsigned char)(1u << bit);
            reseal_lmq(bytes, n);
            fill_memory(bytes, n);
            read_all(memory_path);
        }
    }
    free(bytes);
    free(good);
}
END_TEST

/* ---- Truncation ---- */

/* Every beginning of a file is refused, or opened without harm. */
static void
truncate_at_every_byte(const unsigned char *bytes, size_t n, bool is_whole)
{
    size_t n_opened = 0;

    open_memory();
    for (size_t size = 0; size < n; size++) {
        fill_memory(bytes, size);
        n_opened += read_all(memory_path);
    }
    if (is_whole) /* such a format knows its size */
        ck_assert_uint_eq(n_opened, 0);
    fill_memory(bytes, n);
    ck_assert(read_all(memory_path));
    close(memory_file);
}

START_TEST(every_truncation_of_a_container_is_refused)
{
    size_t n;
    unsigned char *bytes = small_lmq("tiles", 1, &n);

    truncate_at_every_byte(bytes, n, true);
    free(bytes);
}
END_TEST

static const struct build_sizes tiny = {
    .dim = 4, .hidden = 6, .layers = 1, .heads = 1, .kv_heads = 1,
    .vocab = 5, .context = 4, .is_tied = false};

START_TEST(every_truncation_of_a_llama2c_file_is_refused)
{
    struct build_model *model = build_model(&tiny, 1);

    for (int version = 0; version <= 1; version++) {
        struct bytes bytes = {0};
        put_llama2c(&bytes, model, version);
        truncate_at_every_byte(bytes.at, bytes.n, true);
        bytes_free(&bytes);
    }
    build_free(model);
}
END_TEST

START_TEST(every_truncation_of_a_safetensors_file_is_refused)
{
    struct build_model *model = build_model(&tiny, 1);
    struct bytes bytes = {0};

    put_safetensors(&bytes, model, 0, model->n_tensors, BUILD_BF16);
    truncate_at_every_byte(bytes.at, bytes.n, true);
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

/* Configuration and index stand in folders. */
static void
truncate_in_folder(const char *folder, const char *name)
{
    char path[128];
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unsigned char *bytes = read_file(in_folder(path), &n);
    for (size_t size = 0; size < n - 2; size++) { /* "}\n" at the end */
        write_file(in_folder(path), bytes, size);
        ck_assert(!read_all(in_folder(folder)));
    }
    write_file(in_folder(path), bytes, n);
    ck_assert(read_all(in_folder(folder)));
    free(bytes);
}

START_TEST(every_truncation_of_the_json_beside_is_refused)
{
    struct build_model *model = build_model(&tiny, 1);
    struct bytes bytes = {0};

    save_folder(model, in_folder("model"), BUILD_F32);
    rename(in_folder("model/model.safetensors"),
           in_folder("model/one.safetensors"));
    put_text(&bytes, "{\"metadata\":{},\"weight_map\":{");
    for (size_t i = 0; i < model->n_tensors; i++) {
        put_text(&bytes, i == 0 ? "\"" : ",\"");
        put_text(&bytes, model->tensors[i].name);
        put_text(&bytes, "\":\"one.safetensors\"");
    }
    put_text(&bytes, "}}\n");
    save(&bytes, in_folder("model/model.safetensors.index.json"));
    ck_assert(read_all(in_folder("model")));
    truncate_in_folder("model", "config.json");
    truncate_in_folder("model", "model.safetensors.index.json");
    bytes_free(&bytes);
    build_free(model);
}
END_TEST

/* ---- Other damage ---- */

/* Bytes of the header of every format, changed at random. */
START_TEST(random_damage_to_headers_does_no_harm)
{
    enum { ROUNDS = 2000 };
    struct random random = {random_seed()};
    struct build_model *model = build_model(&tiny, 1);

    open_memory();
    for (int format = 0; format < 4; format++) {
        struct bytes bytes = {0};
        size_t n;
        if (format == 0)
            put_safetensors(&bytes, model, 0, model->n_tensors, BUILD_F16);
        else if (format < 3)
            put_llama2c(&bytes, model, format - 1);
        else
            bytes.at = small_lmq("rows", 0, &bytes.n);
        unsigned char *copy = malloc(bytes.n);
        for (int round = 0; round < ROUNDS; round++) {
            memcpy(copy, bytes.at, bytes.n);
            n = bytes.n;
            for (size_t i = 1 + random_below(&random, 4); i > 0; i--) {
                size_t at = random_below(&random, format == 3 ? n : 300);
                static const unsigned char likely[] =
                    "0123456789[]{}\",:-\xff";
                copy[at] = (unsigned char)random_u64(&random);
                if (random_below(&random, 3) == 0)
                    copy[at] = likely[random_below(&random, 20)];
            }
            if (format == 3)
                reseal_lmq(copy, n);
            fill_memory(copy, n);
            inspect_all(memory_path);
        }
        free(copy);
        bytes_free(&bytes);
    }
    build_free(model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        every_flipped_bit_of_a_container_in_rows_is_noticed,
        every_flipped_bit_of_a_container_in_tiles_is_noticed,
        what_is_written_to_meanwhile_is_not_called_damaged,
        flipped_bits_under_right_checksums_do_no_harm,
        every_truncation_of_a_container_is_refused,
        every_truncation_of_a_llama2c_file_is_refused,
        every_truncation_of_a_safetensors_file_is_refused,
        every_truncation_of_the_json_beside_is_refused,
        random_damage_to_headers_does_no_harm,
    };

    return RUN_SUITE("damage", tests);
}
