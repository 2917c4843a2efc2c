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

#include "tests/make/make_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lmquant.h"
#include "tests/build/build_gguf.h"
#include "tests/make/make_torch.h"

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

void
emit_text(const char *name, const char *text, const char *sentence)
{
    struct bytes bytes = {0};

    put_text(&bytes, text);
    emit(name, &bytes, sentence);
}

void
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

/* ---- Folders: config.json, index.json ---- */

void
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

/* ---- Experts in one tensor ---- */

/* The tiny model, but its feed-forward is two experts: all of a kind in one
 * tensor of this shape, which ends with a 0 if it has no third dimension. */
static struct build_model *
experts_model(const uint64_t gate_up[3])
{
    static const uint64_t router[] = {2, 4}, down[] = {2, 4, 6};
    struct build_model *from = model(true), *m = calloc(1, sizeof(*m));

    if (m == NULL)
        fail("experts", "no memory");
    m->sizes = from->sizes;
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct build_tensor *t = &from->tensors[i];
        if (strstr(t->name, ".mlp.") != NULL)
            continue;
        struct build_tensor *copy =
            build_add(m, t->name, t->dims, t->n_dims);
        memcpy(copy->x, t->x, t->n_elements * sizeof(*t->x));
    }
    build_free(from);
    build_add(m, "model.layers.0.mlp.gate.weight", router, 2);
    build_add(m, "model.layers.0.mlp.experts.gate_up_proj", gate_up,
              gate_up[2] == 0 ? 2 : 3);
    build_add(m, "model.layers.0.mlp.experts.down_proj", down, 3);
    return m;
}

static void
make_experts(void)
{
    static const struct {
        const char *name;
        uint64_t gate_up[3];
        const char *sentence;
    } cases[] = {
        {"good-experts", {2, 12, 4},
         "two experts, each kind of matrix in one."},
        {"bad-experts-count", {3, 12, 4}, "three experts of two [4]."},
        {"bad-experts-fewer", {1, 12, 4}, "one expert of two [4]."},
        {"bad-experts-odd", {2, 11, 4},
         "a row too few for the second of two matrices [4]."},
        {"good-experts-turned", {2, 4, 12},
         "the same with inputs as rows, which the shape tells."},
        {"bad-experts-width", {2, 12, 5}, "experts of wider inputs [4]."},
        {"bad-experts-flat", {24, 4, 0},
         "experts below each other in two dimensions [4]."},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct build_model *m = experts_model(cases[i].gate_up);
        save_folder(m, in(cases[i].name), BUILD_F32);
        save_in(cases[i].name, "config.json",
                "{\"architectures\":[\"MixtralForCausalLM\"],"
                "\"hidden_size\":4,\"intermediate_size\":6,"
                "\"num_hidden_layers\":1,\"num_attention_heads\":2,"
                "\"num_key_value_heads\":1,\"vocab_size\":5,"
                "\"max_position_embeddings\":4,\"num_local_experts\":2,"
                "\"num_experts_per_tok\":1,\"rms_norm_eps\":1e-05,"
                "\"tie_word_embeddings\":true}\n");
        describe(cases[i].name, cases[i].sentence);
        build_free(m);
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
          "Made by tests/make/make_files.c; tests/cli/test_files.sh says what "
          "must happen to them:\ngood files are inspected and converted, bad "
          "and unsupported ones are refused with\nexit status 3 and one "
          "sentence, and nothing is left behind; those from later\nare listed "
          "and verified, but not converted. To make them again:\n"
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
    make_experts();
    make_packed();
    make_llama2c();
    make_lmq();
    make_torch(emit);
    make_gguf();
    make_recipes();
    if (fclose(readme) != 0)
        fail("README.md", strerror(errno));
    return 0;
}
