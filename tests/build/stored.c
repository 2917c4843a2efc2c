/*
 * stored.c - folders with tensors as other tools store them.
 */
#include "config.h"

#include "tests/build/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void
stored_entry(struct stored *stored, const char *name, const char *dtype,
             const char *shape, size_t n)
{
    char text[256];

    snprintf(text, sizeof(text),
             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,"
             "\"data_offsets\":[%zu,%zu]}",
             stored->header.n == 0 ? "{" : ",", name, dtype, shape,
             stored->data.n, stored->data.n + n);
    put_text(&stored->header, text);
}

void
stored_floats(struct stored *stored, const char *name, enum build_type type,
              const char *shape, const float *x, size_t n)
{
    static const char *const names[] = {
        [BUILD_F32] = "F32", [BUILD_F16] = "F16", [BUILD_BF16] = "BF16"};

    stored_entry(stored, name, names[type], shape,
                 n * (type == BUILD_F32 ? 4 : 2));
    for (size_t i = 0; i < n; i++)
        put_element(&stored->data, x[i], type);
}

void
stored_words(struct stored *stored, const char *name, const char *shape,
             const uint32_t *words, size_t n)
{
    stored_entry(stored, name, "I32", shape, 4 * n);
    for (size_t i = 0; i < n; i++)
        put_u32(&stored->data, words[i]);
}

const char *
stored_save(struct stored *stored, const char *config)
{
    struct bytes bytes = {0};

    mkdir(in_folder("model"), 0777);
    put(&stored->header, "}", 2); /* and a 0 */
    put_safetensors_raw(&bytes, (const char *)stored->header.at,
                        stored->data.at, stored->data.n);
    save(&bytes, in_folder("model/model.safetensors"));
    remove(in_folder("model/config.json"));
    if (config != NULL)
        write_file(in_folder("model/config.json"), config, strlen(config));
    bytes_free(&bytes);
    bytes_free(&stored->header);
    bytes_free(&stored->data);
    return in_folder("model");
}

void
assert_elements(struct lmq_checkpoint *checkpoint, const char *name,
                const float *wanted, size_t n, struct random *random)
{
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    size_t found;
    float *x = read_tensor(checkpoint, name, &found);

    ck_assert_uint_eq(found, n);
    ck_assert(!lmq_tensor_is_plain(tensor));
    for (size_t i = 0; i < n; i++)
        REQUIRE(memcmp(&x[i], &wanted[i], sizeof(*x)) == 0,
                "%s: element %zu is %.9g, expected %.9g", name, i,
                (double)x[i], (double)wanted[i]);
    for (int round = 0; round < 100; round++) {
        size_t at = random_below(random, n);
        size_t m = random_below(random, n - at + 1);
        ck_assert_int_eq(lmq_checkpoint_read(checkpoint, tensor, at, m, x,
                                             &scratch, &err),
                         LMQ_OK);
        REQUIRE(memcmp(x, wanted + at, m * sizeof(*x)) == 0,
                "%s: elements %zu to %zu", name, at, at + m);
    }
    lmq_scratch_free(&scratch);
    free(x);
}
