/*
 * synth.c - makes checkpoints of any size with random weights.
 *
 *     synth [options] OUTPUT
 *
 * Weights are normally distributed, norms are near 1; the same seed gives the
 * same file. OUTPUT is a file (llama2c) or a folder with config.json
 * (safetensors). With --sparse the weights are a hole in the file: a model of
 * 40 GB that takes no space.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"

struct sizes {
    uint64_t dim, hidden, layers, heads, kv_heads, vocab;
};

enum type { F32, BF16, F16 };

struct model {
    struct sizes sizes;
    bool is_tied, is_sparse, is_llama2c;
    enum type type;
    uint64_t n_shards, seed;
    const char *output;
};

static const struct {
    const char *name;
    struct sizes sizes;
} shapes[] = {
    {"tiny", {64, 172, 2, 4, 2, 512}},
    {"small", {512, 1376, 8, 8, 4, 32000}},
    {"llama-1b", {2048, 8192, 16, 32, 8, 32000}},
    {"llama-3b", {3072, 8192, 28, 24, 8, 128256}},
    {"llama-8b", {4096, 14336, 32, 32, 8, 128256}},
};

static const size_t type_sizes[] = {4, 2, 2};
static const char *const type_names[] = {"F32", "BF16", "F16"};

#define CONTEXT 2048

static void
fail(const char *what)
{
    fprintf(stderr, "synth: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- Numbers ---- */

/* Normal numbers by the inverse of the distribution at 2^16 points, chosen by
 * a counter through a mixing function: a table look-up for each. */
#define TABLE_BITS 16
#define TABLE_SIZE ((size_t)1 << TABLE_BITS)

static float normal[TABLE_SIZE];

static void
fill_table(void)
{
    double x = -6;

    /* Newton's method from each quantile to the next. */
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        double p = ((double)i + 0.5) / (double)TABLE_SIZE;
        for (int round = 0; round < 40; round++) {
            double density = exp(-x * x / 2) * 0.3989422804014327;
            double step = (0.5 * erfc(-x * 0.7071067811865476) - p) / density;
            x -= fmax(fmin(step, 0.5), -0.5);
            if (fabs(step) < 1e-9)
                break;
        }
        normal[i] = (float)x;
    }
}

/* Only for numbers of the usual size: no overflow, no subnormals. */
static uint16_t
to_half(uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude < 0x38800000)
        return (uint16_t)(bits >> 16 & 0x8000);
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)((bits >> 16 & 0x8000) |
                      (magnitude - 0x38000000) >> 13);
}

/* Elements [first, first + n), n a multiple of 4 but at the end. */
static void
fill(unsigned char *bytes, enum type type, uint64_t seed, uint64_t first,
     size_t n, float mean, float sigma)
{
    for (size_t i = 0; i < n; i++) {
        static uint64_t four;
        if (i % 4 == 0)
            four = lmq_random_at(seed, first + i);
        float value = mean + sigma * normal[four & (TABLE_SIZE - 1)];
        uint32_t bits;
        four >>= TABLE_BITS;
        memcpy(&bits, &value, sizeof(bits));
        if (type == F32) {
            memcpy(bytes + 4 * i, &bits, 4);
            continue;
        }
        uint16_t half = type == F16 ? to_half(bits)
                                    : (uint16_t)((bits + 0x8000) >> 16);
        memcpy(bytes + 2 * i, &half, 2);
    }
}

/* ---- Tensors ---- */

struct tensor {
    char name[96];
    uint64_t rows, cols; /* a vector has one row */
    bool is_vector;
};

static struct tensor *tensors;
static size_t n_tensors;

static void
add(const char *name, int64_t layer, uint64_t rows, uint64_t cols)
{
    tensors = realloc(tensors, (n_tensors + 1) * sizeof(*tensors));
    if (tensors == NULL)
        fail("memory");
    struct tensor *tensor = &tensors[n_tensors++];
    *tensor = (struct tensor){.rows = rows == 0 ? 1 : rows,
                              .cols = cols,
                              .is_vector = rows == 0};
    if (layer < 0)
        snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    else
        snprintf(tensor->name, sizeof(tensor->name),
                 "model.layers.%" PRId64 ".%s", layer, name);
}

static void
add_layers(const struct sizes *s, const char *name, uint64_t rows,
           uint64_t cols)
{
    for (uint64_t l = 0; l < s->layers; l++)
        add(name, (int64_t)l, rows, cols);
}

/* In the order of llama2.c version 0; safetensors has no order. */
static void
list_tensors(const struct model *model)
{
    const struct sizes *s = &model->sizes;
    uint64_t kv = s->dim / s->heads * s->kv_heads;

    add("model.embed_tokens.weight", -1, s->vocab, s->dim);
    add_layers(s, "input_layernorm.weight", 0, s->dim);
    add_layers(s, "self_attn.q_proj.weight", s->dim, s->dim);
    add_layers(s, "self_attn.k_proj.weight", kv, s->dim);
    add_layers(s, "self_attn.v_proj.weight", kv, s->dim);
    add_layers(s, "self_attn.o_proj.weight", s->dim, s->dim);
    add_layers(s, "post_attention_layernorm.weight", 0, s->dim);
    add_layers(s, "mlp.gate_proj.weight", s->hidden, s->dim);
    add_layers(s, "mlp.down_proj.weight", s->dim, s->hidden);
    add_layers(s, "mlp.up_proj.weight", s->hidden, s->dim);
    add("model.norm.weight", -1, 0, s->dim);
    if (model->is_llama2c) /* the rotary tables, which nobody reads */
        add("", -1, 0, CONTEXT * (s->dim / s->heads));
    if (!model->is_tied)
        add("lm_head.weight", -1, s->vocab, s->dim);
}

/* ---- Writing ---- */

#define CHUNK ((size_t)1 << 20)

static void
write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0)
            fail("write");
        p += put;
        n -= (size_t)put;
    }
}

static void
write_tensor(int fd, const struct model *model, size_t index)
{
    static unsigned char bytes[CHUNK * 4];
    const struct tensor *tensor = &tensors[index];
    uint64_t n = tensor->rows * tensor->cols;
    size_t size = type_sizes[model->type];
    float mean = tensor->is_vector ? 1.0f : 0.0f;
    float sigma = tensor->is_vector
                      ? 0.1f
                      : 1.0f / sqrtf((float)tensor->cols);

    if (model->is_sparse) {
        off_t end = lseek(fd, (off_t)(n * size), SEEK_CUR);
        if (end < 0 || ftruncate(fd, end) != 0)
            fail("a hole");
        return;
    }
    for (uint64_t at = 0; at < n; at += CHUNK) {
        size_t step = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
        fill(bytes, model->type, lmq_random_at(model->seed + index, 0), at,
             step, mean, sigma);
        write_all(fd, bytes, step * size);
    }
}

static int
create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (fd < 0)
        fail(path);
    return fd;
}

static void
write_llama2c(const struct model *model)
{
    const struct sizes *s = &model->sizes;
    const int64_t fields[] = {
        (int64_t)s->dim,      (int64_t)s->hidden,   (int64_t)s->layers,
        (int64_t)s->heads,    (int64_t)s->kv_heads,
        (int64_t)s->vocab * (model->is_tied ? 1 : -1), CONTEXT};
    int fd = create(model->output);

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        int32_t field = (int32_t)fields[i];
        write_all(fd, &field, sizeof(field));
    }
    for (size_t i = 0; i < n_tensors; i++)
        write_tensor(fd, model, i);
    if (close(fd) != 0)
        fail(model->output);
}

static void
write_shard(const struct model *model, const char *path, size_t first,
            size_t end)
{
    int fd = create(path);
    char *header = NULL;
    size_t size;
    uint64_t at = 0, length;
    FILE *text = open_memstream(&header, &size);

    if (text == NULL)
        fail("memory");
    fputc('{', text);
    for (size_t i = first; i < end; i++) {
        const struct tensor *t = &tensors[i];
        uint64_t n = t->rows * t->cols * type_sizes[model->type];
        fprintf(text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                i == first ? "" : ",", t->name, type_names[model->type]);
        if (!t->is_vector)
            fprintf(text, "%" PRIu64 ",", t->rows);
        fprintf(text, "%" PRIu64 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64
                      "]}",
                t->cols, at, at + n);
        at += n;
    }
    fputc('}', text);
    while (ftell(text) % 8 != 0)
        fputc(' ', text);
    fclose(text);
    length = size;
    write_all(fd, &length, sizeof(length));
    write_all(fd, header, size);
    free(header);
    for (size_t i = first; i < end; i++)
        write_tensor(fd, model, i);
    if (close(fd) != 0)
        fail(path);
}

static FILE *
open_text(const struct model *model, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", model->output, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail(path);
    return file;
}

static void
write_config(const struct model *model)
{
    const struct sizes *s = &model->sizes;
    FILE *file = open_text(model, "config.json");

    fprintf(file,
            "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n"
            "  \"hidden_size\": %" PRIu64 ",\n"
            "  \"intermediate_size\": %" PRIu64 ",\n"
            "  \"num_hidden_layers\": %" PRIu64 ",\n"
            "  \"num_attention_heads\": %" PRIu64 ",\n"
            "  \"num_key_value_heads\": %" PRIu64 ",\n"
            "  \"vocab_size\": %" PRIu64 ",\n"
            "  \"max_position_embeddings\": %d,\n"
            "  \"rms_norm_eps\": 1e-05,\n  \"rope_theta\": 500000.0,\n"
            "  \"hidden_act\": \"silu\",\n"
            "  \"tie_word_embeddings\": %s\n}\n",
            s->dim, s->hidden, s->layers, s->heads, s->kv_heads, s->vocab,
            CONTEXT, model->is_tied ? "true" : "false");
    if (fclose(file) != 0)
        fail("config.json");
}

static void
write_safetensors(const struct model *model)
{
    char name[64], path[4096];
    FILE *index = NULL;

    if (mkdir(model->output, 0777) != 0 && errno != EEXIST)
        fail(model->output);
    write_config(model);
    if (model->n_shards > 1) {
        index = open_text(model, "model.safetensors.index.json");
        fputs("{\"weight_map\":{", index);
    }
    for (uint64_t i = 0; i < model->n_shards; i++) {
        size_t first = (size_t)(n_tensors * i / model->n_shards);
        size_t end = (size_t)(n_tensors * (i + 1) / model->n_shards);
        snprintf(name, sizeof(name), "model.safetensors");
        if (index != NULL)
            snprintf(name, sizeof(name),
                     "model-%05" PRIu64 "-of-%05" PRIu64 ".safetensors",
                     i + 1, model->n_shards);
        snprintf(path, sizeof(path), "%s/%s", model->output, name);
        write_shard(model, path, first, end);
        for (size_t j = first; index != NULL && j < end; j++)
            fprintf(index, "%s\"%s\":\"%s\"", j == 0 ? "" : ",",
                    tensors[j].name, name);
    }
    if (index != NULL) {
        fputs("}}\n", index);
        if (fclose(index) != 0)
            fail("the index");
    }
}

/* ---- The command line ---- */

static void
usage(void)
{
    fputs("usage: synth [options] OUTPUT\n"
          "  --shape NAME     ", stderr);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : ", ", shapes[i].name);
    fputs("\n  --dim --hidden --layers --heads --kv-heads --vocab N\n"
          "  --untied         a head of its own\n"
          "  --dtype TYPE     f32, bf16, f16\n"
          "  --format NAME    safetensors (a folder) or llama2c (a file)\n"
          "  --shards N       safetensors with an index\n"
          "  --sparse         a hole instead of weights\n"
          "  --seed N\n",
          stderr);
    exit(2);
}

static void
choose_shape(const char *name, struct sizes *sizes)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (strcmp(shapes[i].name, name) == 0) {
            *sizes = shapes[i].sizes;
            return;
        }
    usage();
}

static uint64_t
number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text == '\0' || *end != '\0')
        usage();
    return value;
}

static enum type
choose_type(const char *name)
{
    static const char *const names[] = {"f32", "bf16", "f16"};

    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return (enum type)i;
    usage();
    return F32;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        {"shape", required_argument, NULL, 's'},
        {"dim", required_argument, NULL, 'd'},
        {"hidden", required_argument, NULL, 'h'},
        {"layers", required_argument, NULL, 'l'},
        {"heads", required_argument, NULL, 'a'},
        {"kv-heads", required_argument, NULL, 'k'},
        {"vocab", required_argument, NULL, 'v'},
        {"untied", no_argument, NULL, 'u'},
        {"dtype", required_argument, NULL, 't'},
        {"format", required_argument, NULL, 'f'},
        {"shards", required_argument, NULL, 'n'},
        {"sparse", no_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    struct model model = {
        .sizes = shapes[0].sizes, .is_tied = true, .n_shards = 1, .seed = 1};
    struct sizes *s = &model.sizes;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 's': choose_shape(optarg, s); break;
        case 'd': s->dim = number(optarg); break;
        case 'h': s->hidden = number(optarg); break;
        case 'l': s->layers = number(optarg); break;
        case 'a': s->heads = number(optarg); break;
        case 'k': s->kv_heads = number(optarg); break;
        case 'v': s->vocab = number(optarg); break;
        case 'u': model.is_tied = false; break;
        case 't': model.type = choose_type(optarg); break;
        case 'f': model.is_llama2c = strcmp(optarg, "llama2c") == 0; break;
        case 'n': model.n_shards = number(optarg); break;
        case 'p': model.is_sparse = true; break;
        case 'r': model.seed = number(optarg); break;
        default: usage();
        }
    if (optind + 1 != argc || s->heads == 0 || s->dim % s->heads != 0 ||
        model.n_shards == 0 || (model.is_llama2c && model.type != F32))
        usage();
    model.output = argv[optind];
    fill_table();
    list_tensors(&model);
    if (model.is_llama2c)
        write_llama2c(&model);
    else
        write_safetensors(&model);
    free(tensors);
    return 0;
}
