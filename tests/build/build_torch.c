/*
 * build_torch.c - writes zip archives, pickles and state dicts.
 */
#include "config.h"

#include "tests/build/build_torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void
fail(const char *what)
{
    fprintf(stderr, "build_torch: %s\n", what);
    abort();
}

/* ---- Zip archives ---- */

struct member {
    const char *name;
    uint16_t method;
    uint32_t crc, packed, size;
};

/* What local and central header have in common, from `version` on. */
static void
put_fields(struct bytes *bytes, const struct member *member, size_t n_extra)
{
    put_u16(bytes, 20); /* version needed */
    put_u16(bytes, 0);  /* flags */
    put_u16(bytes, member->method);
    put_u32(bytes, 0); /* time and date */
    put_u32(bytes, member->crc);
    put_u32(bytes, member->packed);
    put_u32(bytes, member->size);
    put_u16(bytes, (uint16_t)strlen(member->name));
    put_u16(bytes, (uint16_t)n_extra);
}

static void
add(struct build_zip *zip, const struct member *member, const void *bytes)
{
    size_t at = zip->file.n, n_extra = 0;

    if (zip->is_aligned) { /* torch's own padding, at least a header */
        size_t begin = at + 30 + strlen(member->name) + 4;
        n_extra = 4 + (64 - begin % 64) % 64;
    }
    put_u32(&zip->file, 0x04034b50);
    put_fields(&zip->file, member, n_extra);
    put_text(&zip->file, member->name);
    if (n_extra > 0) {
        put_text(&zip->file, "FB");
        put_u16(&zip->file, (uint16_t)(n_extra - 4));
        for (size_t i = 4; i < n_extra; i++)
            put_text(&zip->file, "Z");
    }
    put(&zip->file, bytes, member->packed);

    put_u32(&zip->directory, 0x02014b50);
    put_u16(&zip->directory, 0); /* made by */
    put_fields(&zip->directory, member, zip->is_large ? 12 : 0);
    put_zeros(&zip->directory, 10); /* comment, disk, attributes */
    put_u32(&zip->directory, zip->is_large ? 0xffffffffu : (uint32_t)at);
    put_text(&zip->directory, member->name);
    if (zip->is_large) {
        put_u16(&zip->directory, 1);
        put_u16(&zip->directory, 8);
        put_u64(&zip->directory, at);
    }
    zip->n_members++;
}

void
zip_add(struct build_zip *zip, const char *name, const void *bytes, size_t n)
{
    struct member member = {name, 0, (uint32_t)crc32(0, bytes, (uInt)n),
                            (uint32_t)n, (uint32_t)n};

    add(zip, &member, bytes);
}

void
zip_add_deflated(struct build_zip *zip, const char *name, const void *bytes,
                 size_t n)
{
    z_stream stream = {0};
    unsigned char *packed = malloc(n + 1024);

    if (packed == NULL || deflateInit2(&stream, 9, Z_DEFLATED, -15, 9,
                                       Z_DEFAULT_STRATEGY) != Z_OK)
        fail("out of memory");
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in = (uInt)n;
    stream.next_out = packed;
    stream.avail_out = (uInt)n + 1024;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        fail("cannot deflate");
    struct member member = {name, 8, (uint32_t)crc32(0, bytes, (uInt)n),
                            (uint32_t)stream.total_out, (uint32_t)n};
    add(zip, &member, packed);
    deflateEnd(&stream);
    free(packed);
}

void
zip_end(struct build_zip *zip, struct bytes *bytes)
{
    size_t at = zip->file.n, n = zip->directory.n;
    uint16_t n_members = (uint16_t)zip->n_members;

    put(bytes, zip->file.at, at);
    put(bytes, zip->directory.at, n);
    if (zip->is_large) {
        put_u32(bytes, 0x06064b50);
        put_u64(bytes, 44);
        put_u16(bytes, 45);
        put_u16(bytes, 45);
        put_u64(bytes, 0); /* disks */
        put_u64(bytes, zip->n_members);
        put_u64(bytes, zip->n_members);
        put_u64(bytes, n);
        put_u64(bytes, at);
        put_u32(bytes, 0x07064b50);
        put_u32(bytes, 0);
        put_u64(bytes, at + n);
        put_u32(bytes, 1);
    }
    put_u32(bytes, 0x06054b50);
    put_u32(bytes, 0); /* disks */
    put_u16(bytes, zip->is_large ? 0xffff : n_members);
    put_u16(bytes, zip->is_large ? 0xffff : n_members);
    put_u32(bytes, zip->is_large ? 0xffffffffu : (uint32_t)n);
    put_u32(bytes, zip->is_large ? 0xffffffffu : (uint32_t)at);
    put_u16(bytes, 0);
    bytes_free(&zip->file);
    bytes_free(&zip->directory);
    *zip = (struct build_zip){0};
}

/* ---- Pickles ---- */

void
pickle_text(struct bytes *pickle, const char *text)
{
    put_text(pickle, "X");
    put_u32(pickle, (uint32_t)strlen(text));
    put_text(pickle, text);
}

/* As short as Python does it. */
void
pickle_int(struct bytes *pickle, uint64_t value)
{
    if (value < 256) {
        put_text(pickle, "K");
        put(pickle, &(unsigned char){(unsigned char)value}, 1);
    } else if (value < 65536) {
        put_text(pickle, "M");
        put_u16(pickle, (uint16_t)value);
    } else if (value <= INT32_MAX) {
        put_text(pickle, "J");
        put_u32(pickle, (uint32_t)value);
    } else {
        unsigned char n = 1; /* bytes, the sign bit among them */
        while (n < 8 && value >> (8 * n - 1) != 0)
            n++;
        n = (unsigned char)(n + (value >> 63));
        put(pickle, "\x8a", 1);
        put(pickle, &n, 1);
        for (int i = 0; i < n; i++)
            put(pickle, &(unsigned char){(unsigned char)(
                            i < 8 ? value >> 8 * i : 0)}, 1);
    }
}

void
pickle_global(struct bytes *pickle, const char *module, const char *name)
{
    put_text(pickle, "c");
    put_text(pickle, module);
    put_text(pickle, "\n");
    put_text(pickle, name);
    put_text(pickle, "\n");
}

static void
pickle_numbers(struct bytes *pickle, const uint64_t *numbers, size_t n)
{
    put_text(pickle, "(");
    for (size_t i = 0; i < n; i++)
        pickle_int(pickle, numbers[i]);
    put_text(pickle, "t");
}

void
pickle_tensor(struct bytes *pickle, const struct build_view *view)
{
    pickle_global(pickle, "torch._utils", "_rebuild_tensor_v2");
    put_text(pickle, "((");
    pickle_text(pickle, "storage");
    pickle_global(pickle, "torch", view->storage);
    pickle_text(pickle, view->key);
    pickle_text(pickle, "cpu");
    pickle_int(pickle, view->n);
    put_text(pickle, "tQ");
    pickle_int(pickle, view->offset);
    pickle_numbers(pickle, view->dims, view->n_dims);
    pickle_numbers(pickle, view->strides, view->n_dims);
    put(pickle, "\x89", 1);
    pickle_global(pickle, "collections", "OrderedDict");
    put_text(pickle, ")RtR");
}

/* ---- Models ---- */

/* A storage for each tensor, of which the tensor is all. */
static void
describe(struct bytes *pickle, const struct build_torch *how,
         const struct build_tensor *tensor, size_t index)
{
    static const char *const storages[] = {"FloatStorage", "HalfStorage",
                                           "BFloat16Storage",
                                           "DoubleStorage"};
    char key[24];
    struct build_view view = {.storage = storages[how->type], .key = key,
                              .n = tensor->n_elements,
                              .n_dims = tensor->n_dims};
    uint64_t stride = 1;

    snprintf(key, sizeof(key), "%zu", index);
    for (uint32_t i = tensor->n_dims; i-- > 0; stride *= tensor->dims[i]) {
        view.dims[i] = tensor->dims[i];
        view.strides[i] = stride;
    }
    if (how->is_transposed && tensor->n_dims == 2) {
        view.strides[0] = 1;
        view.strides[1] = tensor->dims[0];
    }
    pickle_text(pickle, tensor->name);
    pickle_tensor(pickle, &view);
}

static void
put_storage(struct bytes *bytes, const struct build_torch *how,
            const struct build_tensor *tensor)
{
    size_t rows = tensor->n_dims == 2 ? (size_t)tensor->dims[0] : 1;
    size_t cols = tensor->n_elements / rows;

    for (size_t i = 0; i < tensor->n_elements; i++) {
        size_t from = how->is_transposed ? i % rows * cols + i / rows : i;
        put_element(bytes, tensor->x[from], how->type);
    }
}

void
put_torch(struct bytes *bytes, const struct build_torch *how,
          const struct build_model *model, size_t first, size_t n)
{
    struct build_zip zip = {.is_large = how->is_large, .is_aligned = true};
    struct bytes pickle = {0};
    char name[64];

    put(&pickle, "\x80\x02", 2);
    put(&pickle, how->front.at, how->front.n);
    pickle_global(&pickle, "collections", "OrderedDict");
    put_text(&pickle, ")Rq");
    put(&pickle, "\0(", 2);
    for (size_t i = 0; i < n; i++)
        describe(&pickle, how, &model->tensors[first + i], i);
    put_text(&pickle, "u");
    put(&pickle, how->back.at, how->back.n);
    put_text(&pickle, ".");
    zip_add(&zip, "archive/data.pkl", pickle.at, pickle.n);
    bytes_free(&pickle);
    zip_add(&zip, "archive/byteorder", "little", 6);
    for (size_t i = 0; i < n; i++) {
        struct bytes storage = {0};
        put_storage(&storage, how, &model->tensors[first + i]);
        snprintf(name, sizeof(name), "archive/data/%zu", i);
        zip_add(&zip, name, storage.at, storage.n);
        bytes_free(&storage);
    }
    zip_add(&zip, "archive/version", "3\n", 2);
    zip_end(&zip, bytes);
}

void
save_torch(const struct build_model *model, enum build_type type,
           const char *path)
{
    struct bytes bytes = {0};

    put_torch(&bytes, &(struct build_torch){.type = type}, model, 0,
              model->n_tensors);
    save(&bytes, path);
    bytes_free(&bytes);
}

/* ---- Meta's arrangement ---- */

static const struct {
    const char *from, *to;
    bool has_pairs;
} names[] = {
    {"embed_tokens", "tok_embeddings", false},
    {"input_layernorm", "attention_norm", false},
    {"self_attn.q_proj", "attention.wq", true},
    {"self_attn.k_proj", "attention.wk", true},
    {"self_attn.v_proj", "attention.wv", false},
    {"self_attn.o_proj", "attention.wo", false},
    {"post_attention_layernorm", "ffn_norm", false},
    {"mlp.gate_proj", "feed_forward.w1", false},
    {"mlp.down_proj", "feed_forward.w2", false},
    {"mlp.up_proj", "feed_forward.w3", false},
    {"norm", "norm", false},
    {"lm_head", "output", false},
};

/* Rows of a head in halves become interleaved pairs: 0, h, 1, h+1, ... */
static void
copy_rows(struct build_tensor *to, const struct build_tensor *from,
          size_t head)
{
    size_t cols = from->n_elements / (size_t)from->dims[0];

    for (size_t row = 0; row < from->dims[0]; row++) {
        size_t in_head = head == 0 ? 0 : row % head;
        size_t source =
            row - in_head + in_head / 2 + (in_head % 2) * (head / 2);
        memcpy(to->x + row * cols, from->x + source * cols,
               cols * sizeof(*to->x));
    }
}

struct build_model *
build_as_meta(const struct build_model *model)
{
    struct build_model *meta = calloc(1, sizeof(*meta));
    size_t head = model->sizes.dim / model->sizes.heads;

    if (meta == NULL)
        fail("out of memory");
    meta->sizes = model->sizes;
    for (size_t i = 0; i < model->n_tensors; i++) {
        const struct build_tensor *from = &model->tensors[i];
        const char *name = strncmp(from->name, "model.", 6) == 0
                               ? from->name + 6
                               : from->name;
        char full[128];
        size_t j = 0;
        const char *found;
        while ((found = strstr(name, names[j].from)) == NULL)
            j++;
        snprintf(full, sizeof(full), "%.*s%s.weight", (int)(found - name),
                 name, names[j].to);
        copy_rows(build_add(meta, full, from->dims, from->n_dims), from,
                  names[j].has_pairs ? head : 0);
    }
    return meta;
}

struct build_model *
build_shard(const struct build_model *meta, uint32_t part, uint32_t n,
            bool divides_vocabulary)
{
    struct build_model *shard = calloc(1, sizeof(*shard));

    if (shard == NULL)
        fail("out of memory");
    shard->sizes = meta->sizes;
    for (size_t i = 0; i < meta->n_tensors; i++) {
        const struct build_tensor *from = &meta->tensors[i];
        bool by_columns =
            strstr(from->name, ".wo.") != NULL ||
            strstr(from->name, ".w2.") != NULL ||
            (strstr(from->name, "tok_emb") != NULL && !divides_vocabulary);
        uint64_t dims[2] = {from->dims[0], from->dims[1]};
        size_t row = 0, column = 0;
        if (from->n_dims == 2) {
            dims[by_columns] /= n;
            row = by_columns ? 0 : (size_t)dims[0] * part;
            column = by_columns ? (size_t)dims[1] * part : 0;
        } else {
            dims[1] = dims[0];
            dims[0] = 1;
        }
        struct build_tensor *to =
            build_add(shard, from->name, from->n_dims == 2 ? dims : dims + 1,
                      from->n_dims);
        size_t cols = from->n_dims == 2 ? (size_t)from->dims[1] : 0;
        for (size_t r = 0; r < dims[0]; r++)
            memcpy(to->x + r * dims[1],
                   from->x + (row + r) * cols + column,
                   (size_t)dims[1] * sizeof(*to->x));
    }
    return shard;
}

void
put_params(struct bytes *bytes, const struct build_model *model)
{
    const struct build_sizes *s = &model->sizes;
    char text[256];

    snprintf(text, sizeof(text),
             "{\"dim\": %u, \"n_layers\": %u, \"n_heads\": %u, "
             "\"n_kv_heads\": %u, \"norm_eps\": 1e-05, \"vocab_size\": -1, "
             "\"multiple_of\": 8}\n",
             s->dim, s->layers, s->heads, s->kv_heads);
    put_text(bytes, text);
}
