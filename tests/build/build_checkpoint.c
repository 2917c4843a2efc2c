/*
 * build_checkpoint.c - writes safetensors, llama2.c files and configurations.
 */
#include "config.h"

#include "tests/build/build_checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/random.h"

static void
fail(const char *what)
{
    fprintf(stderr, "build_checkpoint: %s\n", what);
    abort();
}

/* ---- Bytes ---- */

void
put(struct bytes *bytes, const void *more, size_t n)
{
    if (bytes->n + n > bytes->capacity) {
        bytes->capacity = 2 * (bytes->n + n) + 64;
        bytes->at = realloc(bytes->at, bytes->capacity);
        if (bytes->at == NULL)
            fail("out of memory");
    }
    if (n > 0)
        memcpy(bytes->at + bytes->n, more, n);
    bytes->n += n;
}

void
put_text(struct bytes *bytes, const char *text)
{
    put(bytes, text, strlen(text));
}

static void
put_number(struct bytes *bytes, uint64_t value, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        put(bytes, &byte, 1);
    }
}

void
put_u16(struct bytes *bytes, uint16_t value)
{
    put_number(bytes, value, 2);
}

void
put_u32(struct bytes *bytes, uint32_t value)
{
    put_number(bytes, value, 4);
}

void
put_u64(struct bytes *bytes, uint64_t value)
{
    put_number(bytes, value, 8);
}

void
put_f32(struct bytes *bytes, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    put_u32(bytes, bits);
}

void
put_zeros(struct bytes *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(bytes, "", 1);
}

void
bytes_free(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}

void
save(const struct bytes *bytes, const char *path)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL ||
        (bytes->n > 0 && fwrite(bytes->at, 1, bytes->n, file) != bytes->n) ||
        fclose(file) != 0)
        fail(path);
}

/* ---- Models ---- */

const struct build_sizes build_small = {
    .dim = 24, .hidden = 40, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 33, .context = 64, .is_tied = true,
};

double
build_normal(uint64_t *state)
{
    uint64_t sum = 0;

    for (int i = 0; i < 12; i++)
        sum += lmq_random_next(state) >> 40;
    return (double)sum * 0x1p-24 - 6;
}

struct build_tensor *
build_add(struct build_model *model, const char *name, const uint64_t *dims,
          uint32_t n_dims)
{
    struct build_tensor *tensors =
        realloc(model->tensors, (model->n_tensors + 1) * sizeof(*tensors));

    if (tensors == NULL)
        fail("out of memory");
    model->tensors = tensors;
    struct build_tensor *tensor = &tensors[model->n_tensors++];
    *tensor = (struct build_tensor){.n_dims = n_dims, .n_elements = 1};
    snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    for (uint32_t i = 0; i < n_dims; i++) {
        tensor->dims[i] = dims[i];
        tensor->n_elements *= (size_t)dims[i];
    }
    tensor->x = calloc(tensor->n_elements + 1, sizeof(*tensor->x));
    if (tensor->x == NULL)
        fail("out of memory");
    return tensor;
}

static void
add_matrix(struct build_model *model, const char *format, uint32_t layer,
           uint64_t rows, uint64_t cols, uint64_t *random)
{
    char name[96];

    snprintf(name, sizeof(name), format, layer);
    struct build_tensor *tensor =
        build_add(model, name, (uint64_t[]){rows, cols}, 2);
    for (size_t i = 0; i < tensor->n_elements; i++)
        tensor->x[i] = 0.02f * (float)build_normal(random);
}

static void
add_norm(struct build_model *model, const char *format, uint32_t layer,
         uint64_t *random)
{
    char name[96];

    snprintf(name, sizeof(name), format, layer);
    struct build_tensor *tensor =
        build_add(model, name, (uint64_t[]){model->sizes.dim}, 1);
    for (size_t i = 0; i < tensor->n_elements; i++)
        tensor->x[i] = 1 + 0.1f * (float)build_normal(random);
}

struct build_model *
build_model(const struct build_sizes *sizes, uint64_t seed)
{
    struct build_model *model = calloc(1, sizeof(*model));
    uint64_t kv = sizes->dim / sizes->heads * sizes->kv_heads;
    uint64_t dim = sizes->dim, hidden = sizes->hidden;

    if (model == NULL)
        fail("out of memory");
    model->sizes = *sizes;
    add_matrix(model, "model.embed_tokens.weight", 0, sizes->vocab, dim,
               &seed);
#define LAYER "model.layers.%u."
    for (uint32_t l = 0; l < sizes->layers; l++) {
        add_norm(model, LAYER "input_layernorm.weight", l, &seed);
        add_matrix(model, LAYER "self_attn.q_proj.weight", l, dim, dim, &seed);
        add_matrix(model, LAYER "self_attn.k_proj.weight", l, kv, dim, &seed);
        add_matrix(model, LAYER "self_attn.v_proj.weight", l, kv, dim, &seed);
        add_matrix(model, LAYER "self_attn.o_proj.weight", l, dim, dim, &seed);
        add_norm(model, LAYER "post_attention_layernorm.weight", l, &seed);
        add_matrix(model, LAYER "mlp.gate_proj.weight", l, hidden, dim, &seed);
        add_matrix(model, LAYER "mlp.up_proj.weight", l, hidden, dim, &seed);
        add_matrix(model, LAYER "mlp.down_proj.weight", l, dim, hidden, &seed);
    }
#undef LAYER
    add_norm(model, "model.norm.weight", 0, &seed);
    if (!sizes->is_tied)
        add_matrix(model, "lm_head.weight", 0, sizes->vocab, dim, &seed);
    return model;
}

void
build_free(struct build_model *model)
{
    for (size_t i = 0; i < model->n_tensors; i++)
        free(model->tensors[i].x);
    free(model->tensors);
    free(model);
}

struct build_tensor *
build_find(struct build_model *model, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < model->n_tensors; i++) {
        const char *full = model->tensors[i].name;
        size_t m = strlen(full);
        if (m >= n && strcmp(full + m - n, name) == 0)
            return &model->tensors[i];
    }
    fail(name);
    return NULL;
}

/* ---- safetensors ---- */

void
put_safetensors_raw(struct bytes *bytes, const char *header, const void *data,
                    size_t n)
{
    put_u64(bytes, strlen(header));
    put_text(bytes, header);
    put(bytes, data, n);
}

/* Rounds to nearest through arithmetic on doubles. */
static uint16_t
to_half(float value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs((double)value);
    int exponent;

    if (magnitude == 0)
        return sign;
    frexp(magnitude, &exponent);
    if (exponent < -13)
        exponent = -13;
    double units = rint(ldexp(magnitude, 11 - exponent));
    int bits = (exponent + 13) * 1024 + (int)units;
    return (uint16_t)(sign | bits);
}

void
put_element(struct bytes *bytes, float value, enum build_type type)
{
    uint32_t bits;
    uint64_t wide;
    double exact = (double)value;

    memcpy(&bits, &value, sizeof(bits));
    memcpy(&wide, &exact, sizeof(wide));
    if (type == BUILD_F32)
        put_u32(bytes, bits);
    else if (type == BUILD_F64)
        put_u64(bytes, wide);
    else if (type == BUILD_F16)
        put_u16(bytes, to_half(value));
    else
        put_u16(bytes, (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

void
put_safetensors(struct bytes *bytes, const struct build_model *model,
                size_t first, size_t n, enum build_type type)
{
    static const char *const names[] = {"F32", "F16", "BF16", "F64"};
    static const size_t sizes[] = {4, 2, 2, 8};
    struct bytes header = {0};
    char text[256];
    size_t at = 0;

    put_text(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = first; i < first + n; i++) {
        const struct build_tensor *tensor = &model->tensors[i];
        size_t end = at + tensor->n_elements * sizes[type];
        snprintf(text, sizeof(text), ",\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                 tensor->name, names[type]);
        put_text(&header, text);
        for (uint32_t j = 0; j < tensor->n_dims; j++) {
            snprintf(text, sizeof(text), "%s%" PRIu64, j == 0 ? "" : ",",
                     tensor->dims[j]);
            put_text(&header, text);
        }
        snprintf(text, sizeof(text), "],\"data_offsets\":[%zu,%zu]}", at, end);
        put_text(&header, text);
        at = end;
    }
    put_text(&header, "}");
    while (header.n % 8 != 0)
        put_text(&header, " ");
    put_u64(bytes, header.n);
    put(bytes, header.at, header.n);
    bytes_free(&header);
    for (size_t i = first; i < first + n; i++)
        for (size_t j = 0; j < model->tensors[i].n_elements; j++)
            put_element(bytes, model->tensors[i].x[j], type);
}

void
put_config(struct bytes *bytes, const struct build_model *model)
{
    const struct build_sizes *s = &model->sizes;
    char text[1024];

    snprintf(text, sizeof(text),
             "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n"
             "  \"hidden_size\": %u,\n  \"intermediate_size\": %u,\n"
             "  \"num_hidden_layers\": %u,\n"
             "  \"num_attention_heads\": %u,\n"
             "  \"num_key_value_heads\": %u,\n  \"vocab_size\": %u,\n"
             "  \"max_position_embeddings\": %u,\n"
             "  \"rms_norm_eps\": 1e-05,\n  \"rope_theta\": 10000.0,\n"
             "  \"hidden_act\": \"silu\",\n  \"bos_token_id\": 1,\n"
             "  \"eos_token_id\": 2,\n  \"tie_word_embeddings\": %s\n}\n",
             s->dim, s->hidden, s->layers, s->heads, s->kv_heads, s->vocab,
             s->context, s->is_tied ? "true" : "false");
    put_text(bytes, text);
}

void
save_safetensors(const struct build_model *model, const char *path)
{
    struct bytes bytes = {0};

    put_safetensors(&bytes, model, 0, model->n_tensors, BUILD_F32);
    save(&bytes, path);
    bytes_free(&bytes);
}

void
save_folder(const struct build_model *model, const char *path,
            enum build_type type)
{
    struct bytes weights = {0}, config = {0};
    char name[4096];

    mkdir(path, 0777);
    put_safetensors(&weights, model, 0, model->n_tensors, type);
    put_config(&config, model);
    snprintf(name, sizeof(name), "%s/model.safetensors", path);
    save(&weights, name);
    snprintf(name, sizeof(name), "%s/config.json", path);
    save(&config, name);
    bytes_free(&weights);
    bytes_free(&config);
}

/* ---- llama2.c ---- */

static void
put_plain(struct bytes *bytes, const struct build_tensor *tensor)
{
    for (size_t i = 0; i < tensor->n_elements; i++)
        put_f32(bytes, tensor->x[i]);
}

/* Rows of a head in halves become interleaved pairs: 0, h, 1, h+1, ... */
static void
put_interleaved(struct bytes *bytes, const struct build_model *model,
                const struct build_tensor *tensor)
{
    size_t head = model->sizes.dim / model->sizes.heads;
    size_t cols = (size_t)tensor->dims[1];

    for (size_t row = 0; row < tensor->dims[0]; row++) {
        size_t in_head = row % head;
        size_t from =
            row - in_head + in_head / 2 + (in_head % 2) * (head / 2);
        for (size_t i = 0; i < cols; i++)
            put_f32(bytes, tensor->x[from * cols + i]);
    }
}

static void
put_layers(struct bytes *bytes, struct build_model *model, const char *suffix)
{
    bool is_rotary =
        strstr(suffix, "q_proj") != NULL || strstr(suffix, "k_proj") != NULL;
    char name[96];

    for (uint32_t l = 0; l < model->sizes.layers; l++) {
        snprintf(name, sizeof(name), "layers.%u.%s.weight", l, suffix);
        const struct build_tensor *tensor = build_find(model, name);
        if (is_rotary)
            put_interleaved(bytes, model, tensor);
        else
            put_plain(bytes, tensor);
    }
}

void
put_llama2c(struct bytes *bytes, const struct build_model *model, int version)
{
    struct build_model *m = (struct build_model *)(uintptr_t)model;
    const struct build_sizes *s = &model->sizes;
    uint32_t vocab =
        version == 0 && !s->is_tied ? (uint32_t)-(int32_t)s->vocab : s->vocab;
    const uint32_t fields[] = {s->dim,      s->hidden, s->layers, s->heads,
                               s->kv_heads, vocab,     s->context};

    if (version > 0) {
        put_u32(bytes, 0x616b3432);
        put_u32(bytes, (uint32_t)version);
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        put_u32(bytes, fields[i]);
    if (version > 0) {
        unsigned char shared = s->is_tied;
        put(bytes, &shared, 1);
        put_zeros(bytes, 256 - bytes->n);
        put_layers(bytes, m, "input_layernorm");
        put_layers(bytes, m, "post_attention_layernorm");
        put_plain(bytes, build_find(m, "model.norm.weight"));
    }
    put_plain(bytes, build_find(m, "embed_tokens.weight"));
    if (version == 0)
        put_layers(bytes, m, "input_layernorm");
    put_layers(bytes, m, "self_attn.q_proj");
    put_layers(bytes, m, "self_attn.k_proj");
    put_layers(bytes, m, "self_attn.v_proj");
    put_layers(bytes, m, "self_attn.o_proj");
    if (version == 0)
        put_layers(bytes, m, "post_attention_layernorm");
    put_layers(bytes, m, "mlp.gate_proj");
    put_layers(bytes, m, "mlp.down_proj");
    put_layers(bytes, m, "mlp.up_proj");
    if (version == 0) { /* the norm, then tables of cosines and sines */
        put_plain(bytes, build_find(m, "model.norm.weight"));
        put_zeros(bytes, 4 * (size_t)s->context * (s->dim / s->heads));
    }
    if (!s->is_tied)
        put_plain(bytes, build_find(m, "lm_head.weight"));
}

/* Elements of the matrices, in the order of versions 1 and 2. */
static size_t
list_matrices(const struct build_model *model, size_t sizes[64])
{
    const struct build_sizes *s = &model->sizes;
    size_t kv = s->dim / s->heads * s->kv_heads, n = 0;
    const size_t layered[] = {
        s->dim * s->dim,    kv * s->dim,        kv * s->dim,
        s->dim * s->dim,    s->hidden * s->dim, s->hidden * s->dim,
        s->hidden * s->dim,
    };

    sizes[n++] = s->vocab * s->dim;
    for (size_t i = 0; i < sizeof(layered) / sizeof(layered[0]); i++)
        for (uint32_t l = 0; l < s->layers && n < 63; l++)
            sizes[n++] = layered[i];
    if (!s->is_tied)
        sizes[n++] = s->vocab * s->dim;
    return n;
}

static uint32_t
load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static void
store_u32(unsigned char *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(value >> 8 * i);
}

static float
load_f32(const unsigned char *p)
{
    uint32_t bits = load_u32(p);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void
store_f32(unsigned char *p, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    store_u32(p, bits);
}

/* Floats become int8 in `values`; they are replaced by what these mean. */
static float
quantize_group(unsigned char *floats, size_t n, struct bytes *values)
{
    float most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(load_f32(floats + 4 * i)));
    float scale = most / 127;
    for (size_t i = 0; i < n; i++) {
        float x = load_f32(floats + 4 * i);
        signed char q = (signed char)(scale > 0 ? lrintf(x / scale) : 0);
        put(values, &q, 1);
        store_f32(floats + 4 * i, (float)q * scale);
    }
    return scale;
}

void
put_llama2c_q8(struct bytes *bytes, const struct build_model *model,
               uint32_t group, struct bytes *same)
{
    const struct build_sizes *s = &model->sizes;
    size_t sizes[64], n = list_matrices(model, sizes);
    size_t at = 256 + 4 * s->dim * (2 * s->layers + 1);
    const unsigned char version = 2;
    struct bytes v1 = {0};

    put_llama2c(&v1, model, 1);
    put(bytes, v1.at, at);
    memcpy(bytes->at + 4, &version, 1);
    for (int i = 0; i < 4; i++)
        bytes->at[37 + i] = (unsigned char)(group >> 8 * i);
    for (size_t i = 0; i < n; i++) {
        struct bytes scales = {0};
        for (size_t j = 0; j < sizes[i]; j += group)
            put_f32(&scales,
                    quantize_group(v1.at + at + 4 * j, group, bytes));
        put(bytes, scales.at, scales.n);
        at += 4 * sizes[i];
        bytes_free(&scales);
    }
    if (same != NULL)
        put(same, v1.at, v1.n);
    bytes_free(&v1);
}

/* ---- Containers ---- */

/* Offsets are those of lmq(5). */
static uint64_t
load_u64(const unsigned char *p)
{
    return load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

static uint32_t
checksum(const unsigned char *bytes, size_t n)
{
    return (uint32_t)crc32(0, bytes, (uInt)n);
}

size_t
find_lmq_entry(const unsigned char *bytes, size_t n, uint32_t type)
{
    uint64_t table = load_u64(bytes + 40);
    uint32_t n_sections = load_u32(bytes + 48);

    for (uint32_t i = 0; i < n_sections; i++) {
        uint64_t at = table + 96 * (uint64_t)i;
        if (at + 96 > n)
            return 0;
        if (load_u32(bytes + at) == type)
            return (size_t)at;
    }
    return 0;
}

size_t
find_lmq_section(const unsigned char *bytes, size_t n, uint32_t type)
{
    size_t entry = find_lmq_entry(bytes, n, type);

    return entry == 0 ? 0 : (size_t)load_u64(bytes + entry + 8);
}

void
reseal_lmq(unsigned char *bytes, size_t n)
{
    uint64_t table = load_u64(bytes + 40);
    uint32_t n_sections = load_u32(bytes + 48);

    if (n_sections <= 1024 && table <= n && 96 * n_sections <= n - table) {
        for (uint32_t i = 0; i < n_sections; i++) {
            unsigned char *entry = bytes + table + 96 * i;
            uint64_t at = load_u64(entry + 8), size = load_u64(entry + 16);
            if (at <= n && size <= n - at)
                store_u32(entry + 32, checksum(bytes + at, (size_t)size));
        }
        store_u32(bytes + 52, checksum(bytes + table, 96 * n_sections));
    }
    store_u32(bytes + 124, checksum(bytes, 124));
    /* file_size, table_offset, n_sections, table_crc */
    memcpy(bytes + n - 40, bytes + 32, 24);
    store_u32(bytes + n - 16, load_u32(bytes + 124));
    store_u32(bytes + n - 4, checksum(bytes + n - 48, 44));
}
