/*
 * test_gguf_damage.c - GGUF checkpoints that are refused, and how.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "formats/lmq/lmq.h"
#include "quantize/blocks.h"
#include "tests/build/build_gguf.h"
#include "tests/build/suite.h"

static const uint64_t two_by_64[] = {2, 64};

/* One tensor of 2 x 64 float32 and what is wrong with it. */
START_TEST(what_is_wrong_with_a_tensor_is_said)
{
    static const uint64_t zero[] = {2, 0}, wide[] = {1ull << 33, 1ull << 33},
                          five[] = {1, 1, 1, 1, 1}, odd[] = {2, 48};
    static const struct {
        const uint64_t *dims;
        uint32_t n_dims, type;
        uint64_t offset;
        size_t n_data;
        const char *text;
    } cases[] = {
        {zero, 2, 0, 0, 512, "dimension of 0"},
        {wide, 2, 0, 0, 512, "product"},
        {five, 5, 0, 0, 512, "5 dimensions"},
        {five, 0, 0, 0, 512, "0 dimensions"},
        {odd, 2, 8, 0, 512, "no multiple of the 32"},
        {two_by_64, 2, 0, 16, 512, "not aligned"},
        {two_by_64, 2, 0, 32, 544, "a gap"},
        {two_by_64, 2, 0, 1ull << 63, 512, "a gap"},
        {two_by_64, 2, 0, 0, 508, "ends behind"},
        {two_by_64, 2, 0, 0, 0, "ends behind"},
        {two_by_64, 2, 0, 0, 576, "behind its last"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gguf gguf = {0};
        gguf_info(&gguf, "t", cases[i].dims, cases[i].n_dims, cases[i].type,
                  cases[i].offset);
        put_zeros(&gguf.data, cases[i].n_data);
        save_gguf(&gguf, in_folder("a.gguf"));
        assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, cases[i].text);
    }
}
END_TEST

START_TEST(tensors_neither_overlap_nor_stand_twice)
{
    unsigned char data[1024] = {0};
    struct gguf gguf = {0};

    gguf_info(&gguf, "a", two_by_64, 2, 0, 0);
    gguf_info(&gguf, "b", two_by_64, 2, 0, 256);
    put_zeros(&gguf.data, 768);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "an overlap");

    gguf_tensor(&gguf, "a", two_by_64, 2, 0, data, 512);
    gguf_tensor(&gguf, "a", two_by_64, 2, 0, data, 512);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "are the same");

    /* In another order than their infos they are fine. */
    gguf_info(&gguf, "a", two_by_64, 2, 0, 512);
    gguf_info(&gguf, "b", two_by_64, 2, 0, 0);
    put_zeros(&gguf.data, 1024);
    save_gguf(&gguf, in_folder("a.gguf"));
    lmq_checkpoint_close(open_checkpoint(in_folder("a.gguf")));
}
END_TEST

START_TEST(counts_that_lie_are_refused)
{
    struct gguf gguf = {.claims_tensors = 1 << 20};

    gguf_tensor(&gguf, "t", two_by_64, 2, 0, (const float[128]){0}, 512);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "a tensor's name");
    gguf.claims_tensors = UINT64_MAX;
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "at most");
    /* A name that says it is longer than the file, and an empty one. */
    gguf.claims_tensors = 1;
    put_u64(&gguf.infos, (uint64_t)1 << 60);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "name is");
    gguf.claims_tensors = 1;
    put_u64(&gguf.infos, 1000);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_FORMAT, "ends within");
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    struct build_model *model = build_model(&build_small, 7);
    size_t n;

    save_llama(model, 3, in_folder("a.gguf"));
    unsigned char *bytes = read_file(in_folder("a.gguf"), &n);
    for (size_t cut = 0; cut < n; cut += cut < 3000 ? 7 : 997) {
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err;
        write_file(in_folder("cut.gguf"), bytes, cut);
        ck_assert_int_ne(lmq_checkpoint_open(in_folder("cut.gguf"), NULL,
                                             &checkpoint, &err),
                         LMQ_OK);
    }
    free(bytes);
    build_free(model);
}
END_TEST

START_TEST(other_versions_are_refused_by_name)
{
    struct gguf gguf = {.version = 1};

    gguf_tensor(&gguf, "t", two_by_64, 2, 0, (const float[128]){0}, 512);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_UNSUPPORTED, "version 1");
    gguf.version = 3u << 24;
    gguf_tensor(&gguf, "t", two_by_64, 2, 0, (const float[128]){0}, 512);
    save_gguf(&gguf, in_folder("a.gguf"));
    assert_refused(in_folder("a.gguf"), LMQ_ERR_UNSUPPORTED, "big-endian");
}
END_TEST

/* Numbers that a program divides by, or allocates with. */
START_TEST(keys_that_make_no_model_are_refused)
{
    static const struct {
        const char *key;
        uint32_t value;
    } keys[] = {
        {"llama.block_count", 0},
        {"llama.block_count", 1u << 31},
        {"llama.embedding_length", 0},
        {"llama.embedding_length", UINT32_MAX},
        {"llama.attention.head_count", 0},
        {"llama.attention.head_count_kv", 3},
        {"llama.attention.key_length", UINT32_MAX},
        {"llama.rope.dimension_count", 5},
        {"llama.context_length", 0},
        {"llama.expert_count", 4},
        {"llama.feed_forward_length", 0},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct build_model *model = build_model(&build_small, 7);
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err;
        struct gguf gguf = {0}, other = {0};
        gguf_llama_keys(&gguf, model);
        /* In the place of the key, or behind them all. */
        gguf_u32(&other, keys[i].key, keys[i].value);
        unsigned char *at =
            memmem(gguf.keys.at, gguf.keys.n, other.keys.at,
                   other.keys.n - 4);
        if (at != NULL)
            memcpy(at, other.keys.at, other.keys.n);
        else
            gguf_u32(&gguf, keys[i].key, keys[i].value);
        bytes_free(&other.keys);
        gguf_llama_tensors(&gguf, model, 0, model->n_tensors);
        save_gguf(&gguf, in_folder("a.gguf"));
        ck_assert_msg(lmq_checkpoint_open(in_folder("a.gguf"), NULL,
                                          &checkpoint, &err) ==
                          LMQ_ERR_FORMAT,
                      "%s = %u", keys[i].key, keys[i].value);
        build_free(model);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        what_is_wrong_with_a_tensor_is_said,
        tensors_neither_overlap_nor_stand_twice,
        counts_that_lie_are_refused,
        every_truncation_is_refused,
        other_versions_are_refused_by_name,
        keys_that_make_no_model_are_refused,
    };

    return RUN_SUITE("gguf damage", tests);
}
