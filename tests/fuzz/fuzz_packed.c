/*
 * fuzz_packed.c - any bytes as a checkpoint whose weights somebody packed:
 * config.json, a zero, and a safetensors file, which is what fuzz_main.c makes
 * of a folder, too.
 *
 * Twice: as they are, and with a header that is right for its types and
 * shapes. So a fuzzer that changes a digit of a shape, a name or a type has a
 * checkpoint that is whole but for the meaning of its parts.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

/* Of the data that a header may ask for. */
#define DATA_MOST ((size_t)1 << 18)

static void
look_at(const char *config, const unsigned char *bytes, size_t n)
{
    inspect_with(fuzz_file(bytes, n),
                 config == NULL ? NULL : fuzz_text(config));
}

/* ---- A right header ---- */

static size_t
size_of_type(const char *name)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = {
        {"F64", 8}, {"I64", 8},  {"U64", 8}, {"F32", 4},     {"I32", 4},
        {"U32", 4}, {"BF16", 2}, {"F16", 2}, {"I16", 2},     {"U16", 2},
        {"I8", 1},  {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
        {"F8_E8M0", 1},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && name; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].size;
    return 0;
}

/* Gives the tensor the bytes from *at on that its type and shape need; false
 * if that cannot be. */
static bool
set_range(json_t *entry, size_t *at)
{
    size_t size =
        size_of_type(json_string_value(json_object_get(entry, "dtype")));
    json_t *dim, *shape = json_object_get(entry, "shape");
    size_t i;

    json_array_foreach(shape, i, dim)
    {
        json_int_t n = json_integer_value(dim);
        if (n < 0 || (n > 0 && size > DATA_MOST / (size_t)n))
            return false;
        size *= (size_t)n;
    }
    if (!json_is_object(entry) || size > DATA_MOST - *at)
        return false;
    json_object_set_new(entry, "data_offsets",
                        json_pack("[I,I]", (json_int_t)*at,
                                  (json_int_t)(*at + size)));
    *at += size;
    return true;
}

/* The text from its first bracket to the one that closes it; it may be cut. */
static size_t
header_size(const unsigned char *text, size_t n)
{
    int depth = 0;
    bool is_quoted = false;

    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            is_quoted = !is_quoted;
        depth += is_quoted ? 0 : (text[i] == '{') - (text[i] == '}');
        if (depth == 0)
            return i + 1;
    }
    return n;
}

/* The header again, and of the data as much as it needs, over and over. */
static void
look_at_right(const char *config, const unsigned char *bytes, size_t n)
{
    size_t n_header = header_size(bytes, n), n_data = 0;
    json_t *entry, *header =
        json_loadb((const char *)bytes, n_header, 0, NULL);
    struct bytes file = {0};
    bool is_right = json_is_object(header);
    const char *name;

    json_object_foreach(header, name, entry)
        if (is_right && strcmp(name, "__metadata__") != 0)
            is_right = set_range(entry, &n_data);
    char *text = is_right ? json_dumps(header, JSON_COMPACT) : NULL;
    if (text != NULL) {
        put_u64(&file, strlen(text));
        put(&file, text, strlen(text));
        bytes += n_header;
        n -= n_header;
        for (size_t i = 0; i < n_data; i++)
            put(&file, n == 0 ? (const unsigned char *)"" : bytes + i % n, 1);
        look_at(config, file.at, file.n);
    }
    free(text);
    json_decref(header);
    bytes_free(&file);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const uint8_t *end = n == 0 ? NULL : memchr(bytes, '\0', n);
    size_t n_config = end == NULL ? 0 : (size_t)(end - bytes) + 1;
    /* Without a configuration all is the file. */
    const char *config = n_config > 1 ? (const char *)bytes : NULL;

    bytes += n_config;
    n -= n_config;
    look_at(config, bytes, n);
    if (n > 8)
        look_at_right(config, bytes + 8, n - 8);
    return 0;
}
