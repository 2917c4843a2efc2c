/*
 * make_safetensors_files.c - single files of safetensors.
 */
#include "config.h"

#include "tests/make/make_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *header;
    size_t n; /* bytes of data */
    const char *sentence;
} headers[] = {
    {"good-plain", "{" E("w", "F32", "[2,3]", "[0,24]") "}", 24,
     "one matrix of an unknown model."},
    {"good-types",
     "{" E("a", "F16", "[2,2]", "[0,8]") "," E("b", "BF16", "[2,2]", "[8,16]")
     "," E("c", "F64", "[1,2]", "[16,32]") "," E("d", "F8_E4M3", "[1,4]",
     "[32,36]") "," E("e", "F8_E5M2", "[1,4]", "[36,40]") "," E("f", "I64",
     "[1]", "[40,48]") "," E("g", "BOOL", "[2]", "[48,50]") "}",
     50, "many types of numbers."},
    {"good-scalar-and-empty",
     "{" E("a", "F32", "[]", "[0,4]") "," E("b", "F32", "[0,7]", "[4,4]") "}",
     4, "a tensor without dimensions and one without elements."},
    {"good-spaces", "{" E("w", "F32", "[1]", "[0,4]") "}     ", 4,
     "a header padded with spaces."},
    {"good-eight-dimensions",
     "{" E("w", "F32", "[1,1,1,1,1,1,1,2]", "[0,8]") "}", 8,
     "as many dimensions as are allowed."},
    {"good-escapes-in-name",
     "{" E("\\u001b[31mred\\u0007\\n", "F32", "[2]", "[0,8]") "}", 8,
     "terminal escapes in a tensor's name [20]."},
    {"good-unicode-name", "{" E("\\u00e9\\ud83d\\ude00", "F32", "[2]",
     "[0,8]") "}", 8, "a name outside of ASCII."},
    {"good-metadata",
     "{\"__metadata__\":{\"chat_template\":\"{{ system('x') }}\"},"
     E("w", "F32", "[1]", "[0,4]") "}", 4,
     "a template in the metadata, which nobody evaluates [22]."},
    {"bad-overlap", "{" E("a", "F32", "[2]", "[0,8]") "," E("b", "F32",
     "[2]", "[4,12]") "}", 12, "two tensors share bytes [6]."},
    {"bad-same-range", "{" E("a", "F32", "[2]", "[0,8]") "," E("b", "F32",
     "[2]", "[0,8]") "}", 8, "two tensors are the same bytes [6]."},
    {"bad-gap", "{" E("a", "F32", "[1]", "[0,4]") "," E("b", "F32", "[1]",
     "[8,12]") "}", 12, "bytes between two tensors [6]."},
    {"bad-late-start", "{" E("a", "F32", "[1]", "[4,8]") "}", 8,
     "bytes before the first tensor [6]."},
    {"bad-trailing-data", "{" E("a", "F32", "[1]", "[0,4]") "}", 9,
     "bytes behind the last tensor [6]."},
    {"bad-truncated", "{" E("a", "F32", "[4]", "[0,16]") "}", 15,
     "the last byte is missing [6]."},
    {"bad-size-too-small", "{" E("a", "F32", "[2]", "[0,4]") "}", 4,
     "fewer bytes than shape and type need [5]."},
    {"bad-size-too-large", "{" E("a", "F32", "[1]", "[0,8]") "}", 8,
     "more bytes than shape and type need [5]."},
    {"bad-dims-wrap", "{" E("a", "F32", "[4294967296,4294967296]", "[0,0]")
     "}", 0, "a product of dimensions that wraps to 0 [4]."},
    {"bad-dims-wrap-to-small", "{" E("a", "U8",
     "[6148914691236517206,3]", "[0,2]") "}", 2,
     "a product of dimensions that wraps to 2 [4]."},
    {"bad-bytes-wrap", "{" E("a", "F64", "[2305843009213693952]", "[0,0]")
     "}", 0, "elements times their size wraps to 0 [2]."},
    {"bad-negative-dim", "{" E("a", "F32", "[-1]", "[0,4]") "}", 4,
     "a negative dimension [4]."},
    {"bad-nine-dimensions", "{" E("a", "F32", "[1,1,1,1,1,1,1,1,1]",
     "[0,4]") "}", 4, "too many dimensions [4]."},
    {"bad-float-dim", "{" E("a", "F32", "[1.0]", "[0,4]") "}", 4,
     "a dimension that is no whole number [21]."},
    {"bad-huge-number", "{" E("a", "F32", "[99999999999999999999999]",
     "[0,4]") "}", 4, "a number of 23 digits [21]."},
    {"bad-backward-range", "{" E("a", "F32", "[1]", "[4,0]") "}", 4,
     "a range that ends before it begins [6]."},
    {"bad-offset-wraps", "{" E("a", "F32", "[1]",
     "[9223372036854775804,9223372036854775807]") "}", 4,
     "a range at the end of 63 bits [3]."},
    {"bad-no-offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4,
     "a tensor without a place."},
    {"bad-entry", "{\"a\":[]}", 0, "an entry that is no object [7]."},
    {"bad-duplicate", "{" E("a", "F32", "[1]", "[0,4]") "," E("a", "F32",
     "[1]", "[4,8]") "}", 8, "one name twice [21]."},
    {"bad-surrogate", "{" E("\\ud800", "F32", "[1]", "[0,4]") "}", 4,
     "half of a surrogate pair [21]."},
    {"bad-nul-in-name", "{" E("a\\u0000b", "F32", "[1]", "[0,4]") "}", 4,
     "a zero byte in a name [21]."},
    {"bad-empty-name", "{" E("", "F32", "[1]", "[0,4]") "}", 4,
     "a name without characters."},
    {"bad-not-json", "{" E("a", "F32", "[1]", "[0,4]"), 4,
     "a header that ends early [21]."},
    {"bad-json-then-more", "{" E("a", "F32", "[1]", "[0,4]") "} {}", 4,
     "two documents in one header [21]."},
    {"bad-array-header", "[1,2,3]", 0, "a header that is no object [7]."},
    {"bad-no-tensors", "{}", 0, "a header without tensors."},
    {"unsupported-type", "{" E("a", "F4", "[2]", "[0,1]") "}", 1,
     "a type that is not known [7]."},
};

void
make_safetensors(void)
{
    static const uint64_t lengths[] = {1000, (uint64_t)1 << 62, UINT64_MAX};
    static const char *const length_names[] = {
        "bad-header-too-long.safetensors",
        "bad-header-huge.safetensors", "bad-header-wraps.safetensors"};
    struct bytes bytes = {0};
    char name[128], text[128];

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        put_safetensors_raw(&bytes, headers[i].header, NULL, 0);
        for (size_t j = 0; j < headers[i].n; j++)
            put(&bytes, "", 1);
        snprintf(name, sizeof(name), "%s.safetensors", headers[i].name);
        emit(name, &bytes, headers[i].sentence);
    }
    for (size_t i = 0; i < 3; i++) {
        put_u64(&bytes, lengths[i]);
        put_text(&bytes, "{}");
        emit(length_names[i], &bytes,
             "a header that is longer than the file [1].");
    }
    put(&bytes, "\x02\0\0\0", 4);
    emit("bad-four-bytes.safetensors", &bytes, "half of a length [1].");
    put_u64(&bytes, 6000);
    for (int i = 0; i < 3000; i++)
        put_text(&bytes, "[");
    for (int i = 0; i < 3000; i++)
        put_text(&bytes, "]");
    emit("bad-deep.safetensors", &bytes, "3000 nested brackets [10].");
    put_text(&bytes, "{\"");
    for (int i = 0; i < 1025; i++)
        put_text(&bytes, "n");
    put_text(&bytes, "\":{\"dtype\":\"F32\",\"shape\":[0],"
                     "\"data_offsets\":[0,0]}}");
    struct bytes whole = {0};
    put_u64(&whole, bytes.n);
    put(&whole, bytes.at, bytes.n);
    bytes_free(&bytes);
    emit("bad-long-name.safetensors", &whole, "a name of 1025 bytes [9].");
    /* NaN: in a matrix, and in something that is kept. */
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "{" E("w", "F32", "%s", "[0,24]") "}",
                 i == 0 ? "[2,3]" : "[6]");
        put_safetensors_raw(&bytes, text, NULL, 0);
        for (int j = 0; j < 6; j++)
            put_u32(&bytes, j == 4 ? (i == 0 ? 0x7fc00000 : 0xff800000)
                                   : 0x3f800000);
        emit(i == 0 ? "bad-nan.safetensors" : "bad-infinity.safetensors",
             &bytes,
             i == 0 ? "a NaN among the weights of a matrix [13]."
                    : "an infinity in a vector [13].");
    }
}
