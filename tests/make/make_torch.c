/*
 * make_torch.c - small files of torch.save, and zip archives, good and bad.
 */
#include "config.h"

#include "tests/make/make_torch.h"

#include <stdio.h>
#include <string.h>

#include "tests/build/build_torch.h"

/* ---- Archives ---- */

/* a/data.pkl with this pickle, and a/data/0: 6 numbers. */
static void
put_archive(struct bytes *bytes, const struct bytes *pickle,
            const char *name, const char *content)
{
    struct build_zip zip = {0};
    struct bytes storage = {0};

    for (int i = 0; i < 6; i++)
        put_f32(&storage, (float)i - 2.5f);
    zip_add(&zip, "a/data.pkl", pickle->at, pickle->n);
    zip_add(&zip, "a/data/0", storage.at, storage.n);
    if (name != NULL)
        zip_add(&zip, name, content, strlen(content));
    zip_end(&zip, bytes);
    bytes_free(&storage);
}

/* {"w": view} */
static void
put_view(struct bytes *pickle, const struct build_view *view)
{
    struct build_view whole = *view;

    if (whole.storage == NULL)
        whole.storage = "FloatStorage";
    if (whole.key == NULL)
        whole.key = "0";
    if (whole.n == 0)
        whole.n = 6;
    put(pickle, "\x80\x02}", 3);
    pickle_text(pickle, "w");
    pickle_tensor(pickle, &whole);
    put_text(pickle, "s.");
}

static const struct build_view plain = {.n_dims = 2, .dims = {2, 3},
                                        .strides = {3, 1}};

/* ---- Views ---- */

static const struct {
    const char *name;
    struct build_view view;
    const char *sentence;
} views[] = {
    {"good-torch", {.n_dims = 2, .dims = {2, 3}, .strides = {3, 1}},
     "a matrix as torch.save keeps it."},
    {"good-torch-transposed",
     {.n_dims = 2, .dims = {3, 2}, .strides = {1, 3}},
     "a transposed view of a matrix."},
    {"unsupported-torch-strides",
     {.n_dims = 2, .dims = {2, 2}, .strides = {3, 1}},
     "a view of the first columns."},
    {"unsupported-torch-repeated",
     {.n_dims = 2, .dims = {4096, 6}, .strides = {0, 1}},
     "a view that repeats a row 4096 times [9]."},
    {"bad-torch-beyond", {.offset = 1, .n_dims = 1, .dims = {6},
                          .strides = {1}},
     "a view that ends behind its storage [6]."},
    {"bad-torch-offset-wraps", {.offset = UINT64_MAX >> 1, .n_dims = 1,
                                .dims = {6}, .strides = {1}},
     "a view at the end of 63 bits [3]."},
    {"bad-torch-dims-wrap",
     {.n_dims = 3, .dims = {1u << 31, 1u << 31, 4},
      .strides = {(uint64_t)1 << 33, 4, 1}},
     "a product of dimensions that wraps to 0 [4]."},
    {"bad-torch-storage-small", {.n = 5, .n_dims = 1, .dims = {5},
                                 .strides = {1}},
     "a storage that is larger than it is said to be [5]."},
    {"bad-torch-storage-large", {.n = 7, .n_dims = 1, .dims = {7},
                                 .strides = {1}},
     "a storage that is smaller than it is said to be [5]."},
    {"bad-torch-storage-wraps",
     {.n = ((uint64_t)1 << 62) + 6, .n_dims = 1, .dims = {6},
      .strides = {1}},
     "a number of elements whose bytes wrap [2]."},
    {"bad-torch-storage-path", {.key = "../data.pkl", .n_dims = 1,
                                .dims = {6}, .strides = {1}},
     "a storage whose name is a path [19]."},
    {"bad-torch-storage-type", {.storage = "float32", .n_dims = 1,
                                .dims = {6}, .strides = {1}},
     "a storage that is none [7]."},
    {"unsupported-torch-storage", {.storage = "ComplexFloatStorage",
                                   .n = 3, .n_dims = 1, .dims = {3},
                                   .strides = {1}},
     "complex numbers [7]."},
};

/* ---- Pickles ---- */

static const struct {
    const char *name, *text;
    size_t n;
    const char *sentence;
} pickles[] = {
#define P(name, text, sentence) {name, "\x80\x02" text, 1 + sizeof(text), \
                                 sentence}
    P("unsupported-torch-call", "cos\nsystem\nX\2\0\0\0ls\x85R.",
      "a pickle that calls os.system: nothing is executed [22]."),
    P("unsupported-torch-inst", "(X\2\0\0\0lsios\nsystem\n.",
      "the same by the opcode INST [22]."),
    P("unsupported-torch-escapes", "c\x1b[31mred\nx\n.",
      "terminal escapes in the name of a global [20]."),
    P("bad-torch-length", "}X\xff\xff\xff\x7fw.",
      "a text that is longer than the file [1]."),
    P("bad-torch-memo", "}r\xff\xff\xff\xff.",
      "a place in memory of 32 bits [9]."),
    P("bad-torch-list", "]q\0h\0a.", "a list that contains itself [10]."),
};

/* ---- Archives that are damaged ---- */

enum base { LOCAL, CENTRAL, END };

static const struct {
    const char *name;
    enum base base;
    size_t at;
    int size;
    uint32_t value;
    const char *sentence;
} patches[] = {
    {"bad-zip-checksum", LOCAL, 40, 1, 0x7f, "a damaged pickle."},
    {"bad-zip-local", LOCAL, 18, 4, 9,
     "sizes in front of a member and in the directory differ [5]."},
    {"bad-zip-overlap", CENTRAL, 56 + 42, 4, 0,
     "two members at one place [6]."},
    {"bad-zip-offset", CENTRAL, 42, 4, 0xfffffff0,
     "a member behind the end of the file [6]."},
    {"bad-zip-size", CENTRAL, 24, 4, 0xfffffff0,
     "a member that would have to grow 20 million times [9]."},
    {"bad-zip-name", CENTRAL, 28, 2, 0xffff,
     "a name that is longer than the directory [1]."},
    {"unsupported-zip-encrypted", CENTRAL, 8, 2, 1, "an encrypted member."},
    {"bad-zip-count", END, 8, 4, 0xfffefffe,
     "65534 members in a directory of two [9]."},
    {"bad-zip-directory", END, 16, 4, 0xfffffff0,
     "a directory behind the end of the file [6]."},
};

static size_t
find_central(const struct bytes *bytes)
{
    size_t at = 0;

    while (memcmp(bytes->at + at, "PK\1\2", 4) != 0)
        at++;
    return at;
}

void
make_torch(void (*emit)(const char *name, struct bytes *bytes,
                        const char *sentence))
{
    static const char *const beside[][3] = {
        {"a/byteorder", "big", "unsupported-torch-byteorder.pth"},
        {"a/constants.pkl", "", "unsupported-torch-script.pth"},
    };
    static const char *const sentences[] = {
        "the other byte order.", "a program with its weights."};
    struct bytes pickle = {0}, bytes = {0};
    struct build_zip zip = {0};
    char name[128];

    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        put_view(&pickle, &views[i].view);
        put_archive(&bytes, &pickle, NULL, NULL);
        bytes_free(&pickle);
        snprintf(name, sizeof(name), "%s.pth", views[i].name);
        emit(name, &bytes, views[i].sentence);
    }
    for (size_t i = 0; i < sizeof(pickles) / sizeof(pickles[0]); i++) {
        put(&pickle, pickles[i].text, pickles[i].n);
        put_archive(&bytes, &pickle, NULL, NULL);
        bytes_free(&pickle);
        snprintf(name, sizeof(name), "%s.pth", pickles[i].name);
        emit(name, &bytes, pickles[i].sentence);
    }
    put(&pickle, "\x80\x02", 2);
    for (int i = 0; i < 300; i++)
        put_text(&pickle, "(");
    put_archive(&bytes, &pickle, NULL, NULL);
    bytes_free(&pickle);
    emit("unsupported-torch-deep.pth", &bytes, "300 nested tuples [10].");
    put_view(&pickle, &plain);
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        put_archive(&bytes, &pickle, beside[i][0], beside[i][1]);
        emit(beside[i][2], &bytes, sentences[i]);
    }
    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        put_archive(&bytes, &pickle, NULL, NULL);
        const size_t bases[] = {0, find_central(&bytes), bytes.n - 22};
        unsigned char *p = bytes.at + bases[patches[i].base] + patches[i].at;
        for (int j = 0; j < patches[i].size; j++)
            p[j] = (unsigned char)(patches[i].value >> 8 * j);
        snprintf(name, sizeof(name), "%s.pth", patches[i].name);
        emit(name, &bytes, patches[i].sentence);
    }
    bytes_free(&pickle);
    zip_add(&zip, "w.npy", "\x93NUMPY", 6);
    zip_end(&zip, &bytes);
    emit("unsupported-npz.npz", &bytes, "an archive of NumPy.");
}
