/*
 * make_files.c - makes the corpus of small good, bad and unsupported files.
 *
 *     make_files FOLDER
 *
 * writes everything that stands in tests/files, its README included. Bad
 * files are wrong in one respect each; containers have right checksums where
 * something else is the point. Numbers in brackets in the README are the
 * classes of bugs that each file asks for:
 * they are listed in the README's head.
 */
#include "config.h"

#include "tests/build/make_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lmquant.h"
#include "tests/build/build_gguf.h"
#include "tests/build/make_torch.h"

static const char *folder;
static FILE *readme;

/* ---- Places ---- */

void
fail(const char *what, const char *why)
{
    fprintf(stderr, "make_files: %s: %s\n", what, why);
    exit(1);
}

const char *
in(const char *name)
{
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

void
describe(const char *name, const char *sentence)
{
    fprintf(readme, "- `%s`: %s\n", name, sentence);
}

void
emit(const char *name, struct bytes *bytes, const char *sentence)
{
    save(bytes, in(name));
    bytes_free(bytes);
    if (sentence != NULL)
        describe(name, sentence);
}

static void
emit_text(const char *name, const char *text, const char *sentence)
{
    struct bytes bytes = {0};

    put_text(&bytes, text);
    emit(name, &bytes, sentence);
}

static void
make_folder(const char *name, const char *sentence)
{
    if (mkdir(in(name), 0777) != 0 && errno != EEXIST)
        fail(in(name), strerror(errno));
    if (sentence != NULL)
        describe(name, sentence);
}

/* ---- Models ---- */

/* As small as a model with all its parts can be. */
static const struct build_sizes tiny = {
    .dim = 4, .hidden = 6, .layers = 1, .heads = 2, .kv_heads = 1,
    .vocab = 5, .context = 4, .is_tied = true};

static struct build_model *
model(bool is_tied)
{
    struct build_sizes sizes = tiny;

    sizes.is_tied = is_tied;
    return build_model(&sizes, 1);
}

/* ---- Neither one format nor the other ---- */

static void
make_unknown(void)
{
    struct bytes bytes = {0};

    emit("bad-empty.bin", &bytes, "zero bytes.");
    emit("bad-empty.safetensors", &bytes, "zero bytes.");
    put_text(&bytes, "x");
    emit("bad-one-byte.bin", &bytes, "one byte.");
    emit_text("bad-text.txt",
              "Once upon a time there was a file that was no checkpoint.\n",
              "a text file.");
    make_folder("bad-folder-without-model", "a folder without a model.");
    emit_text("bad-folder-without-model/notes.txt", "Nothing here.\n", NULL);
    put_zeros(&bytes, 512);
    emit("bad-zeros.bin", &bytes, "512 zero bytes: heads that are 0 [15].");
    emit_text("unsupported-lfs-pointer.safetensors",
              "version https://git-lfs.github.com/spec/v1\n"
              "oid sha256:0000000000000000000000000000000000000000000000000000"
              "000000000000\nsize 988097824\n",
              "a Git LFS pointer instead of the file.");
    make_folder("unsupported-lfs-clone",
                "a folder cloned without Git LFS: pointers.");
    emit_text("unsupported-lfs-clone/model.safetensors",
              "version https://git-lfs.github.com/spec/v1\n"
              "oid sha256:0000000000000000000000000000000000000000000000000000"
              "000000000000\nsize 988097824\n",
              NULL);
    emit_text("unsupported-web-page.safetensors",
              "<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n",
              "a web page that a download left.");
    emit_text("unsupported-json.bin", "{\"hidden_size\": 64}\n",
              "a config.json given as checkpoint.");
    put(&bytes, "PK\003\004\024\0\0\0", 8);
    put_zeros(&bytes, 100);
    emit("bad-zip-beginning.pth", &bytes, "the beginning of a zip archive.");
    put(&bytes, "\x80\x02}q\0.", 6);
    emit("unsupported-pickle.pt", &bytes,
         "a Python pickle: never executed [22].");
    put(&bytes, "\x1f\x8b\x08\0\0\0\0\0\0\0", 10);
    emit("unsupported-gzip.bin", &bytes, "the beginning of a gzip file.");
}

/* ---- safetensors ---- */

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

static void
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

/* ---- Folders: config.json, index.json ---- */

static void
save_in(const char *where, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", where, name);
    emit_text(path, text, NULL);
}

static void
make_folders(void)
{
    static const struct {
        const char *name, *config, *sentence;
    } configs[] = {
        {"bad-config-empty", "", "an empty config.json."},
        {"bad-config-text", "hidden_size: 4\n", "a config.json in YAML."},
        {"bad-config-array", "[]", "a config.json that is no object [7]."},
        {"bad-config-duplicate", "{\"hidden_size\":4,\"hidden_size\":4}",
         "one key twice [21]."},
        {"bad-config-no-heads",
         "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4,"
         "\"num_attention_heads\":0}",
         "no heads to divide by [15]."},
        {"bad-config-strings",
         "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":\"4\"}",
         "a size that is text [7]."},
        {"bad-config-huge",
         "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4,"
         "\"num_attention_heads\":2,\"num_hidden_layers\":4000000000,"
         "\"intermediate_size\":6,\"vocab_size\":5}",
         "four billion layers [15]."},
        {"bad-config-negative",
         "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":-4}",
         "a negative size [12]."},
        {"bad-config-other-model",
         "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":8,"
         "\"num_attention_heads\":2,\"num_hidden_layers\":1,"
         "\"intermediate_size\":6,\"vocab_size\":5}",
         "the configuration of another model."},
        {"bad-config-deep", "deep", "2500 nested objects [10]."},
    };
    static const struct {
        const char *name, *index, *sentence;
    } indexes[] = {
        {"bad-shard-parent",
         "{\"weight_map\":{\"w\":\"../good-plain.safetensors\"}}",
         "a shard in the parent folder [19]."},
        {"bad-shard-absolute", "{\"weight_map\":{\"w\":\"/etc/passwd\"}}",
         "a shard by its absolute path [19]."},
        {"bad-shard-missing",
         "{\"weight_map\":{\"w\":\"one.safetensors\","
         "\"v\":\"two.safetensors\"}}",
         "a shard that is not there."},
        {"bad-shard-number", "{\"weight_map\":{\"w\":7}}",
         "a shard whose name is a number [7]."},
        {"bad-index-wrong-tensor",
         "{\"weight_map\":{\"v\":\"one.safetensors\"}}",
         "an index that names a tensor its shard does not have."},
        {"bad-index-empty", "{}", "an index without a map."},
        {"bad-index-array", "[]", "an index that is no object [7]."},
        {"bad-index-json", "{\"weight_map\":{", "an index that ends early."},
        {"bad-shard-escapes",
         "{\"weight_map\":{\"w\":\"\\u001b[2J\"}}",
         "terminal escapes in the name of a shard [20]."},
    };
    struct build_model *m = model(true);
    struct bytes bytes = {0};
    char text[8192];

    save_folder(m, in("good-folder"), BUILD_F32);
    save_in("good-folder", "tokenizer.json", "{\"version\":\"1.0\"}\n");
    describe("good-folder", "a whole model with a tokenizer.");
    save_folder(m, in("good-bf16"), BUILD_BF16);
    describe("good-bf16", "a model in bfloat16.");
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        const char *config = configs[i].config;
        save_folder(m, in(configs[i].name), BUILD_F16);
        if (strcmp(config, "deep") == 0) {
            text[0] = '\0';
            for (size_t at = 0; at < 2500; at++)
                strcpy(text + at, "[");
            config = text;
        }
        save_in(configs[i].name, "config.json", config);
        describe(configs[i].name, configs[i].sentence);
    }
    for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        make_folder(indexes[i].name, indexes[i].sentence);
        save_in(indexes[i].name, "model.safetensors.index.json",
                indexes[i].index);
        snprintf(text, sizeof(text), "%s/one.safetensors", indexes[i].name);
        put_safetensors_raw(&bytes, "{" E("w", "F32", "[1]", "[0,4]") "}",
                            "\0\0\x80\x3f", 4);
        emit(text, &bytes, NULL);
    }
    build_free(m);

    m = model(true);
    m->sizes.is_tied = false;
    save_folder(m, in("good-tied-by-absence"), BUILD_F32);
    describe("good-tied-by-absence",
             "the configuration says untied, but there is no head.");
    build_free(m);
    m = model(false);
    m->sizes.is_tied = true;
    save_folder(m, in("bad-tie-contradiction"), BUILD_F32);
    describe("bad-tie-contradiction",
             "the configuration says tied, but the head differs.");
    m->sizes.is_tied = false;
    make_folder("good-shards", "a model in two shards.");
    put_config(&bytes, m);
    emit("good-shards/config.json", &bytes, NULL);
    put_text(&bytes, "{\"weight_map\":{");
    for (size_t i = 0; i < m->n_tensors; i++) {
        snprintf(text, sizeof(text), "%s\"%s\":\"%s.safetensors\"",
                 i == 0 ? "" : ",", m->tensors[i].name, i < 6 ? "a" : "b");
        put_text(&bytes, text);
    }
    put_text(&bytes, "}}\n");
    emit("good-shards/model.safetensors.index.json", &bytes, NULL);
    put_safetensors(&bytes, m, 0, 6, BUILD_F32);
    emit("good-shards/a.safetensors", &bytes, NULL);
    put_safetensors(&bytes, m, 6, m->n_tensors - 6, BUILD_F32);
    emit("good-shards/b.safetensors", &bytes, NULL);

    save_folder(m, in("good-unknown-architecture"), BUILD_F32);
    save_in("good-unknown-architecture", "config.json",
            "{\"architectures\":[\"FooForCausalLM\"],\"hidden_size\":\"x\"}");
    describe("good-unknown-architecture",
             "an architecture that is not known can still be converted.");
    m->n_tensors -= 2;
    save_folder(m, in("bad-missing-tensor"), BUILD_F32);
    describe("bad-missing-tensor", "a model without its last norm.");
    m->n_tensors += 2;
    build_free(m);
}

/* ---- FP8, and weights that others pack ---- */

#define FP8(quantization)                                                     \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"fp8\"" quantization "}}"

#define GPTQ(bits)                                                            \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"gptq\",\"bits\":" bits ",\"group_size\":8}}"
#define GPTQ_HEADER                                                           \
    "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(                       \
        "m.scales", "F16", "[1,8]", "[32,48]") "," E(                         \
        "m.qzeros", "I32", "[1,1]", "[48,52]")

#define AWQ(version)                                                          \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"awq\",\"version\":\"" version "\"}}"
#define AWQ_HEADER                                                            \
    "{" E("m.qweight", "I32", "[4,1]", "[0,16]") "," E(                       \
        "m.scales", "F16", "[1,8]", "[16,32]") "," E(                         \
        "m.qzeros", "I32", "[1,1]", "[32,36]") "," E("m.bias", "F32", "[3]",  \
                                                     "[36,48]")

#define COMPRESSED(format)                                                    \
    "{\"architectures\":[\"X\"],\"quantization_config\":{"                    \
    "\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\"}}"
/* 56 x 56, which "88" says too. */
#define WORDS                                                                 \
    "{" E("m.weight_shape", "U8", "[2]", "[0,2]") "," E(                      \
        "m.weight_packed", "I32", "[56,7]", "[2,1570]")

#define MLX(group, bits, mode)                                                \
    "{\"quantization\":{\"group_size\":" group ",\"bits\":" bits              \
    ",\"mode\":\"" mode "\"}}"
#define MLX_HEADER                                                            \
    "{" E("m.weight", "U32", "[1,1]", "[0,4]") "," E(                         \
        "m.scales", "F16", "[1,1]", "[4,6]") "," E(                           \
        "m.biases", "F16", "[1,1]", "[6,8]") "}"

static void
make_packed(void)
{
    static const struct {
        const char *name, *header, *config;
        size_t n;
        const char *sentence;
    } packed[] = {
        {"good-fp8-blocks",
         "{" E("w.weight_scale_inv", "F32", "[2,2]", "[0,16]") "," E(
             "w.weight", "F8_E4M3", "[3,5]", "[16,31]") "}",
         FP8(",\"weight_block_size\":[2,3]"), 31,
         "FP8 with scales for blocks that the matrix is no multiple of."},
        {"bad-fp8-no-scale",
         "{" E("w.weight", "F8_E4M3", "[3,5]", "[0,15]") "}", FP8(""), 15,
         "FP8 whose scale is announced and missing."},
        {"bad-fp8-scales",
         "{" E("w.weight_scale_inv", "F32", "[2,3]", "[0,24]") "," E(
             "w.weight", "F8_E4M3", "[3,5]", "[24,39]") "}",
         FP8(",\"weight_block_size\":[2,3]"), 39,
         "FP8 with scales that do not fit its blocks [5]."},
        {"bad-fp8-no-block",
         "{" E("w.weight_scale_inv", "F32", "[2,2]", "[0,16]") "," E(
             "w.weight", "F8_E4M3", "[3,5]", "[16,31]") "}",
         FP8(",\"weight_block_size\":[0,0]"), 31,
         "FP8 in blocks of nothing [15]."},
        {"good-packed-gptq", GPTQ_HEADER "}", GPTQ("4"), 52,
         "GPTQ, 8 x 8 codes of 4 bits."},
        {"bad-packed-gptq-zeros",
         "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(
             "m.scales", "F16", "[1,8]", "[32,48]") "}",
         GPTQ("4"), 48, "GPTQ without zero points."},
        {"bad-packed-gptq-shape",
         "{" E("m.qweight", "I32", "[1,8]", "[0,32]") "," E(
             "m.scales", "F16", "[1,7]", "[32,46]") "," E(
             "m.qzeros", "I32", "[1,1]", "[46,50]") "}",
         GPTQ("4"), 50, "GPTQ with scales for 7 of 8 outputs [5]."},
        {"bad-packed-gptq-bits", GPTQ_HEADER "}", GPTQ("8"), 52,
         "GPTQ with words for 4 bits that says 8 [5]."},
        {"bad-packed-gptq-group",
         GPTQ_HEADER "," E("m.g_idx", "I32", "[8]", "[52,84]") "}",
         GPTQ("4"), 84, "GPTQ with columns of a group that is not there [6]."},
        {"good-packed-awq", AWQ_HEADER "}", AWQ("gemm"), 48,
         "AWQ, 8 x 4 codes."},
        {"bad-packed-awq-shape",
         "{" E("m.qweight", "I32", "[4,1]", "[0,16]") "," E(
             "m.scales", "F16", "[2,8]", "[16,48]") "," E(
             "m.qzeros", "I32", "[1,1]", "[48,52]") "}",
         AWQ("gemm"), 52, "AWQ with zero points for one of two groups [5]."},
        {"unsupported-packed-awq", AWQ_HEADER "}", AWQ("gemv"), 48,
         "weights packed by AWQ in its gemv version."},
        {"good-packed-words",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED("pack-quantized"), 1794,
         "words of compressed-tensors, 56 x 56 codes of 4 bits."},
        {"bad-packed-words-groups",
         WORDS "," E("m.weight_scale", "F16", "[56,3]", "[1570,1906]") "}",
         COMPRESSED("pack-quantized"), 1906,
         "compressed-tensors with scales for 3 groups of 56 columns [5]."},
        {"good-packed-int8",
         "{" E("m.weight", "I8", "[2,4]", "[0,8]") "," E(
             "m.weight_scale", "F16", "[2,1]", "[8,12]") "," E(
             "m.weight_zero_point", "I8", "[2,1]", "[12,14]") "}",
         COMPRESSED("int-quantized"), 14,
         "bytes of compressed-tensors with zero points."},
        {"good-packed-nvfp4",
         "{" E("m.weight_packed", "U8", "[2,8]", "[0,16]") "," E(
             "m.weight_scale", "F8_E4M3", "[2,1]", "[16,18]") "," E(
             "m.weight_global_scale", "F32", "[1]", "[18,22]") "}",
         COMPRESSED("nvfp4-pack-quantized"), 22,
         "NVFP4 of compressed-tensors."},
        {"unsupported-packed-hqq",
         "{" E("m.W_q", "U8", "[4,8]", "[0,32]") "," E(
             "m.scale", "F16", "[4]", "[32,40]") "," E(
             "m.zero", "F16", "[4]", "[40,48]") "," E(
             "m.nbits", "U8", "[]", "[48,49]") "," E(
             "m.axis", "U8", "[]", "[49,50]") "," E(
             "m.packing", "U8", "[7]", "[50,57]") "," E(
             "m.shape", "U8", "[2]", "[57,59]") "}",
         "{}", 59, "HQQ with 56 bits."},
        {"unsupported-packed-sparse",
         WORDS "," E("m.weight_scale", "F16", "[56,2]", "[1570,1794]") "}",
         COMPRESSED("marlin-24"), 1794,
         "compressed-tensors in a format that is not read."},
        {"unsupported-packed-gptq", GPTQ_HEADER "}", GPTQ("5"), 52,
         "weights packed by GPTQ with 5 bits."},
        {"good-packed-bnb",
         "{" E("m.weight", "I8", "[2,4]", "[0,8]") "," E(
             "m.SCB", "F32", "[2]", "[8,16]") "}",
         "{}", 16, "bitsandbytes, 2 x 4 codes of 8 bits."},
        {"bad-packed-bnb-rows",
         "{" E("m.weight", "I8", "[2,4]", "[0,8]") "," E(
             "m.SCB", "F32", "[3]", "[8,20]") "}",
         "{}", 20, "bitsandbytes with scales for three of two rows [5]."},
        {"bad-packed-bnb-state",
         "{" E("m.weight", "U8", "[8,1]", "[0,8]") "," E(
             "m.weight.absmax", "F32", "[1]", "[8,12]") "," E(
             "m.weight.quant_map", "F32", "[16]", "[12,76]") "," E(
             "m.weight.quant_state.bitsandbytes__nf4", "U8", "[4]",
             "[76,80]") "}",
         "{}", 80, "bitsandbytes whose description is a number [21]."},
        {"good-packed-mxfp4",
         "{" E("m_blocks", "U8", "[1,2,1,16]", "[0,32]") "," E(
             "m_scales", "U8", "[1,2,1]", "[32,34]") "}",
         "{}", 34, "MXFP4, two rows of 32."},
        {"bad-packed-mxfp4-scales",
         "{" E("m_blocks", "U8", "[1,2,1,16]", "[0,32]") "," E(
             "m_scales", "U8", "[1,2,2]", "[32,36]") "}",
         "{}", 36, "MXFP4 with twice as many scales as blocks [5]."},
        {"good-packed-mlx", MLX_HEADER, MLX("32", "1", "affine"), 8,
         "MLX, a row of 32 codes of one bit."},
        {"bad-packed-mlx-bits", MLX_HEADER, MLX("32", "4", "affine"), 8,
         "MLX with a word for 32 codes that says 4 bits [5]."},
        {"bad-packed-mlx-group", MLX_HEADER, MLX("0", "1", "affine"), 8,
         "MLX in groups of nothing [15]."},
        {"unsupported-packed-mlx", MLX_HEADER, MLX("32", "1", "int5"), 8,
         "weights packed by MLX in a mode that is not known."},
    };

    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
        struct bytes bytes = {0};
        char path[128];
        make_folder(packed[i].name, packed[i].sentence);
        put_safetensors_raw(&bytes, packed[i].header, NULL, 0);
        for (size_t j = 0; j < packed[i].n; j++)
            put(&bytes, "8", 1); /* 1 in FP8, 0.5 in F16, 8 and 3 in 4 bits */
        snprintf(path, sizeof(path), "%s/model.safetensors", packed[i].name);
        emit(path, &bytes, NULL);
        save_in(packed[i].name, "config.json", packed[i].config);
    }
}

/* ---- llama2.c ---- */

static void
patch_u32(struct bytes *bytes, size_t at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        bytes->at[at + i] = (unsigned char)(value >> 8 * i);
}

static void
make_llama2c(void)
{
    static const struct {
        const char *name;
        int version;
        size_t at;
        uint32_t value;
        const char *sentence;
    } patches[] = {
        {"bad-v0-huge-vocabulary", 0, 20, 0x01000000,
         "a vocabulary that the file is too small for [9]."},
        {"bad-v0-vocabulary-min", 0, 20, 0x80000000,
         "a vocabulary that has no positive twin [12]."},
        {"bad-v0-huge-context", 0, 24, 0x10000000,
         "rotary tables far beyond the file [1]."},
        {"bad-v0-many-layers", 0, 8, 4096, "4096 layers in a tiny file [9]."},
        {"bad-v0-heads", 0, 12, 3, "a dim that is no multiple of the heads."},
        {"bad-v0-odd-head", 0, 12, 4, "heads of an odd size."},
        {"bad-v0-kv-heads", 0, 16, 3, "more key/value heads than heads."},
        {"bad-v1-no-heads", 1, 20, 0, "no heads to divide by [15]."},
        {"bad-v1-negative", 1, 8, (uint32_t)-4, "a negative dim [12]."},
        {"bad-v1-flag", 1, 36, 7, "a flag that is neither 0 nor 1 [7]."},
        {"bad-v2-no-group", 2, 37, 0, "int8 in groups of 0 [15]."},
        {"bad-v2-group", 2, 37, 3, "a group that divides no matrix [5]."},
        {"bad-v2-group-huge", 2, 37, 0x7fffffff, "a huge group [12]."},
        {"bad-v2-group-negative", 2, 37, (uint32_t)-4,
         "a negative group [12]."},
        {"bad-v2-other-group", 2, 37, 2,
         "more scales than the file has room for [5]."},
        {"unsupported-v9", 1, 4, 9, "a version of the future."},
    };
    struct bytes bytes = {0};
    char name[128];

    for (int version = 0; version <= 1; version++)
        for (int tied = 0; tied <= 1; tied++) {
            struct build_model *m = model(tied);
            put_llama2c(&bytes, m, version);
            snprintf(name, sizeof(name), "good-v%d-%s.bin", version,
                     tied ? "tied" : "untied");
            emit(name, &bytes,
                 tied ? "a llama2.c checkpoint without a head."
                      : "a llama2.c checkpoint with a head.");
            build_free(m);
        }
    struct build_model *m = model(true);
    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        if (patches[i].version == 2)
            put_llama2c_q8(&bytes, m, 4, NULL);
        else
            put_llama2c(&bytes, m, patches[i].version);
        patch_u32(&bytes, patches[i].at, patches[i].value);
        snprintf(name, sizeof(name), "%s.bin", patches[i].name);
        emit(name, &bytes, patches[i].sentence);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"bad-v0-truncated.bin",
                                            "bad-v0-appended.bin",
                                            "bad-v1-header-only.bin"};
        static const char *const sentences[] = {
            "the last byte is missing.", "one byte too many.",
            "a header and nothing else."};
        put_llama2c(&bytes, m, i / 2);
        if (i == 1)
            put(&bytes, "", 1);
        bytes.n = i == 0 ? bytes.n - 1 : i == 1 ? bytes.n : 256;
        emit(names[i], &bytes, sentences[i]);
    }
    put_llama2c_q8(&bytes, m, 4, NULL);
    emit("good-v2.bin", &bytes,
         "a llama2.c checkpoint in int8, with groups across rows.");
    build_find(m, "q_proj.weight")->x[5] = (float)NAN;
    put_llama2c(&bytes, m, 1);
    emit("bad-v1-nan.bin", &bytes, "a NaN among the weights [13].");
    build_free(m);
}

/* ---- GGUF ---- */

static void
make_gguf(void)
{
    const char *name, *sentence;
    struct bytes bytes = {0};

    for (size_t i = 0; gguf_file(i, &name, &sentence, &bytes); i++)
        emit(name, &bytes, sentence);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: make_files FOLDER\n", stderr);
        return 2;
    }
    folder = argv[1];
    readme = fopen(in("README.md"), "w");
    if (readme == NULL)
        fail(in("README.md"), strerror(errno));
    fputs("# Small files, good and bad\n\n"
          "Made by tests/build/make_files.c; tests/cli/test_files.sh says what must "
          "happen to them:\ngood files are inspected and converted, bad and "
          "unsupported ones are refused with\nexit status 3 and one sentence, "
          "and nothing is left behind; those from later\nare listed and "
          "verified, but not converted. To make them again:\n"
          "`make make_files && ./make_files tests/files`.\n\n"
          "Numbers in brackets: 1 length beyond the file, 2 count times size "
          "wraps, 3 sum\nwraps, 4 dimensions, 5 size differs from shape, 6 "
          "offsets, 7 types, 8 alignment,\n9 huge allocation, 10 nesting, 12 "
          "narrowing, 13 not finite, 15 divisors and\narray sizes, 19 paths, "
          "20 terminal escapes, 21 JSON, 22 nothing is executed.\n\n",
          readme);
    make_unknown();
    make_safetensors();
    make_folders();
    make_packed();
    make_llama2c();
    make_lmq();
    make_torch(emit);
    make_gguf();
    if (fclose(readme) != 0)
        fail("README.md", strerror(errno));
    return 0;
}
