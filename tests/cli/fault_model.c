/*
 * fault_model.c - a small Llama with a tokenizer.
 */
#include "config.h"

#include "tests/cli/fault_model.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/build/build_torch.h"
#include "tests/cli/fault_files.h"

#define DIM 32
#define HIDDEN 32
#define VOCAB 32

static const struct {
    const char *name;
    int rows, cols;
} tensors[] = {
    {"model.embed_tokens.weight", VOCAB, DIM},
    {"model.norm.weight", 0, DIM},
    {"model.layers.0.input_layernorm.weight", 0, DIM},
    {"model.layers.0.post_attention_layernorm.weight", 0, DIM},
    {"model.layers.0.self_attn.q_proj.weight", DIM, DIM},
    {"model.layers.0.self_attn.k_proj.weight", DIM, DIM},
    {"model.layers.0.self_attn.v_proj.weight", DIM, DIM},
    {"model.layers.0.self_attn.o_proj.weight", DIM, DIM},
    {"model.layers.0.mlp.gate_proj.weight", HIDDEN, DIM},
    {"model.layers.0.mlp.up_proj.weight", HIDDEN, DIM},
    {"model.layers.0.mlp.down_proj.weight", DIM, HIDDEN},
};

static void
write_weights(const char *path)
{
    static float values[32 * 1024];
    char header[4096] = "        {";
    size_t n = 0, used = strlen(header);
    uint32_t random = 1;

    for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
        char shape[32];
        int rows = tensors[i].rows, cols = tensors[i].cols;
        size_t from = n;
        for (int j = 0; j < (rows > 0 ? rows : 1) * cols; j++) {
            random = random * 1664525 + 1013904223;
            values[n++] = rows == 0
                              ? 1
                              : (float)(int32_t)random / (float)(1 << 30) / 4;
        }
        if (rows > 0)
            snprintf(shape, sizeof(shape), "%d,%d", rows, cols);
        else
            snprintf(shape, sizeof(shape), "%d", cols);
        used += (size_t)snprintf(
            header + used, sizeof(header) - used,
            "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],"
            "\"data_offsets\":[%zu,%zu]}",
            i == 0 ? "" : ",", tensors[i].name, shape, 4 * from, 4 * n);
    }
    header[used++] = '}';
    while (used % 8 != 0)
        header[used++] = ' ';
    for (int i = 0; i < 8; i++)
        header[i] = (char)((used - 8) >> 8 * i & 255);
    char *file = malloc(used + 4 * n);
    if (file == NULL)
        fault_die(path);
    memcpy(file, header, used);
    for (size_t i = 0; i < n; i++) { /* little-endian, wherever this runs */
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        for (int j = 0; j < 4; j++)
            file[used + 4 * i + (size_t)j] = (char)(bits >> 8 * j & 255);
    }
    fault_save(path, file, used + 4 * n);
    free(file);
}

/* A tensor in an archive whose pickle is deflated. */
static void
write_torch(const char *path)
{
    static const struct build_view view = {
        .storage = "FloatStorage", .key = "0", .n = 1, .n_dims = 1,
        .dims = {1}, .strides = {1}};
    struct build_zip zip = {0};
    struct bytes pickle = {0}, file = {0};

    put(&pickle, "\x80\x02}", 3);
    pickle_text(&pickle, "w");
    pickle_tensor(&pickle, &view);
    put_text(&pickle, "s.");
    zip_add_deflated(&zip, "a/data.pkl", pickle.at, pickle.n);
    zip_add(&zip, "a/data/0", "\0\0\200?", 4);
    zip_end(&zip, &file);
    fault_save(path, file.at, file.n);
    bytes_free(&pickle);
    bytes_free(&file);
}

void
fault_write_model(void)
{
    static const char config[] =
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
        "\"hidden_size\":32,\"intermediate_size\":32,\"num_hidden_layers\":1,"
        "\"num_attention_heads\":2,\"num_key_value_heads\":2,"
        "\"vocab_size\":32,\"max_position_embeddings\":32,"
        "\"rms_norm_eps\":1e-5,\"rope_theta\":10000.0,\"hidden_act\":\"silu\","
        "\"tie_word_embeddings\":true,\"bos_token_id\":0,"
        "\"eos_token_id\":1}";
    static const char card[] = "---\nlicense: mit\ntags: [a, b]\n---\n";
    char tokenizer[4096];
    int n = snprintf(
        tokenizer, sizeof(tokenizer),
        "{\"version\":\"1.0\",\"added_tokens\":["
        "{\"id\":0,\"content\":\"<s>\",\"special\":true},"
        "{\"id\":1,\"content\":\"</s>\",\"special\":true}],"
        "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":true},"
        "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},"
        "\"model\":{\"type\":\"BPE\",\"merges\":[\"t h\",\"th e\"],"
        "\"vocab\":{\"<s>\":0,\"</s>\":1,\"\\u0120\":2,\"th\":3,\"the\":4");

    for (int i = 0; i < 26; i++)
        n += snprintf(tokenizer + n, sizeof(tokenizer) - (size_t)n,
                      ",\"%c\":%d", 'a' + i, 5 + i);
    n += snprintf(tokenizer + n, sizeof(tokenizer) - (size_t)n, "}}}");
    if (mkdir("model", 0777) != 0 || mkdir("set", 0777) != 0 ||
        mkdir("dset", 0777) != 0 || mkdir("parts", 0777) != 0 ||
        mkdir("dparts", 0777) != 0 || mkdir("half", 0777) != 0 ||
        mkdir("w", 0777) != 0)
        fault_die("mkdir");
    fault_save("model/config.json", config, sizeof(config) - 1);
    fault_save("model/tokenizer.json", tokenizer, (size_t)n);
    fault_save("model/README.md", card, sizeof(card) - 1);
    write_weights("model/model.safetensors");
    write_torch("m.pt");
    fault_save("text", "the cat and the hen sat by the old barn door all day",
               52);
    fault_save("documents", "the cat and the hen\n\nsat by the old door", 40);
}
