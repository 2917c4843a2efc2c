/*
 * make_gguf_files.c - the GGUF files of the corpus, each wrong in one respect.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_gguf.h"

static const uint64_t two_by_four[] = {2, 4}, one_row[] = {1, 32};
static const float numbers[8] = {1, -2, 3, -4, 5, -6, 7, -8};

static void
plain(struct gguf *g)
{
    gguf_tensor(g, "w", two_by_four, 2, GGUF_T_F32, numbers, sizeof(numbers));
}

/* ---- Good ones ---- */

static struct build_model *
tiny_llama(void)
{
    static const struct build_sizes sizes = {
        .dim = 4, .hidden = 6, .layers = 1, .heads = 2, .kv_heads = 1,
        .vocab = 5, .context = 4, .is_tied = true};

    return build_model(&sizes, 1);
}

static void
llama(struct gguf *g)
{
    struct build_model *model = tiny_llama();

    gguf_llama_keys(g, model);
    gguf_llama_tensors(g, model, 0, model->n_tensors);
    build_free(model);
}

static void
old_version(struct gguf *g)
{
    g->version = 2;
    llama(g);
}

static void
blocks(struct gguf *g)
{
    unsigned char q8[34] = {0, 0x3c, 1, 2, 3}, q4[18] = {0, 0x3c, 0x87};

    gguf_text(g, "general.architecture", "nobody");
    gguf_tensor(g, "q8", one_row, 2, GGUF_T_Q8_0, q8, sizeof(q8));
    gguf_tensor(g, "q4", one_row, 2, 2, q4, sizeof(q4));
    gguf_tensor(g, "bf16", two_by_four, 2, GGUF_T_BF16, numbers, 16);
}

/* A row in each of the types that are read. */
static void
all_blocks(struct gguf *g)
{
    static const struct {
        const char *name;
        uint32_t number;
        unsigned size; /* of 256 elements */
    } types[] = {
        {"q4_0", 2, 144},    {"q4_1", 3, 160},   {"q5_0", 6, 176},
        {"q5_1", 7, 192},    {"q8_0", 8, 272},   {"q2_k", 10, 84},
        {"q3_k", 11, 110},   {"q4_k", 12, 144},  {"q5_k", 13, 176},
        {"q6_k", 14, 210},   {"iq2_xxs", 16, 66}, {"iq2_xs", 17, 74},
        {"iq3_xxs", 18, 98}, {"iq1_s", 19, 50},  {"iq4_nl", 20, 144},
        {"iq3_s", 21, 110},  {"iq2_s", 22, 82},  {"iq4_xs", 23, 136},
        {"iq1_m", 29, 56},   {"tq1_0", 34, 54},  {"tq2_0", 35, 66},
        {"mxfp4", 39, 136},  {"nvfp4", 40, 144}, {"q1_0", 41, 36},
        {"q2_0", 42, 72},
    };
    static const uint64_t dims[] = {1, 256};
    unsigned char block[272];

    gguf_text(g, "general.architecture", "nobody");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        /* No byte of a scale makes it infinite. */
        for (unsigned k = 0; k < types[i].size; k++)
            block[k] = (unsigned char)((37 * k + 11 * i) & 0x3b);
        gguf_tensor(g, types[i].name, dims, 2, types[i].number, block,
                    types[i].size);
    }
}

static void
escapes(struct gguf *g)
{
    gguf_text(g, "general.architecture", "\x1b[31mred\a");
    gguf_tensor(g, "\x1b[31mred\a\n", two_by_four, 2, GGUF_T_F32, numbers,
                sizeof(numbers));
}

/* ---- Counts and lengths ---- */

static void
many_tensors(struct gguf *g)
{
    g->claims_tensors = (uint64_t)1 << 60;
    plain(g);
}

static void
tensors_without_infos(struct gguf *g)
{
    g->claims_tensors = 1 << 20;
    plain(g);
}

static void
many_keys(struct gguf *g)
{
    plain(g);
    g->n_keys = (uint64_t)1 << 60;
}

static void
long_name(struct gguf *g)
{
    g->claims_tensors = 1;
    put_u64(&g->infos, (uint64_t)1 << 62);
    put_zeros(&g->infos, 40);
}

static void
long_text(struct gguf *g)
{
    gguf_key(g, "general.name", GGUF_TEXT);
    put_u64(&g->keys, UINT64_MAX - 7);
    plain(g);
}

static void
long_list(struct gguf *g)
{
    gguf_key(g, "tokenizer.ggml.scores", GGUF_LIST);
    put_u32(&g->keys, GGUF_F32);
    put_u64(&g->keys, (uint64_t)1 << 62);
    plain(g);
}

static void
deep_list(struct gguf *g)
{
    gguf_key(g, "general.tags", GGUF_LIST);
    for (int i = 0; i < 20; i++) {
        put_u32(&g->keys, GGUF_LIST);
        put_u64(&g->keys, 1);
    }
    plain(g);
}

static void
wrong_value_type(struct gguf *g)
{
    gguf_key(g, "general.name", 99);
    put_u32(&g->keys, 0);
    plain(g);
}

static void
key_twice(struct gguf *g)
{
    gguf_u32(g, "general.file_type", 0);
    gguf_u32(g, "general.file_type", 1);
    plain(g);
}

/* ---- Alignment ---- */

static void
alignment_zero(struct gguf *g)
{
    gguf_u32(g, "general.alignment", 0);
    plain(g);
}

static void
alignment_odd(struct gguf *g)
{
    gguf_u32(g, "general.alignment", 33);
    plain(g);
}

static void
alignment_huge(struct gguf *g)
{
    gguf_u32(g, "general.alignment", 1u << 31);
    plain(g);
}

/* ---- Tensors ---- */

static void
one_info(struct gguf *g, const uint64_t *dims, uint32_t n_dims, uint32_t type,
         uint64_t offset, size_t n)
{
    gguf_info(g, "w", dims, n_dims, type, offset);
    put_zeros(&g->data, n);
}

static void
dims_wrap(struct gguf *g)
{
    static const uint64_t dims[] = {1ull << 32, 1ull << 32};

    one_info(g, dims, 2, GGUF_T_F32, 0, 0);
}

static void
size_wraps(struct gguf *g)
{
    static const uint64_t dims[] = {1ull << 31, (1ull << 31) + 8};

    one_info(g, dims, 2, GGUF_T_F32, 0, 32);
}

static void
dim_zero(struct gguf *g)
{
    static const uint64_t dims[] = {0, 4};

    one_info(g, dims, 2, GGUF_T_F32, 0, 0);
}

static void
five_dims(struct gguf *g)
{
    static const uint64_t dims[] = {1, 1, 1, 1, 8};

    one_info(g, dims, 5, GGUF_T_F32, 0, 32);
}

static void
no_dims(struct gguf *g)
{
    one_info(g, two_by_four, 0, GGUF_T_F32, 0, 32);
}

static void
ragged_blocks(struct gguf *g)
{
    one_info(g, two_by_four, 2, GGUF_T_Q8_0, 0, 34);
}

static void
ragged_points(struct gguf *g)
{
    one_info(g, one_row, 2, 16, 0, 66);
}

static void
short_points(struct gguf *g)
{
    static const uint64_t dims[] = {2, 256};

    one_info(g, dims, 2, 29, 0, 2 * 56 - 1);
}

static void
unknown_type(struct gguf *g)
{
    one_info(g, one_row, 2, 15, 0, 292);
}

static void
type_out_of_range(struct gguf *g)
{
    one_info(g, one_row, 2, UINT32_MAX, 0, 66);
}

static void
offset_beyond(struct gguf *g)
{
    one_info(g, two_by_four, 2, GGUF_T_F32, UINT64_MAX - 31, 32);
}

static void
unaligned(struct gguf *g)
{
    one_info(g, two_by_four, 2, GGUF_T_F32, 4, 64);
}

static void
gap(struct gguf *g)
{
    one_info(g, two_by_four, 2, GGUF_T_F32, 32, 64);
}

static void
overlap(struct gguf *g)
{
    gguf_info(g, "a", two_by_four, 2, GGUF_T_F32, 0);
    gguf_info(g, "b", two_by_four, 2, GGUF_T_F32, 0);
    put_zeros(&g->data, 32);
}

static void
twice(struct gguf *g)
{
    plain(g);
    plain(g);
}

static void
truncated(struct gguf *g)
{
    one_info(g, two_by_four, 2, GGUF_T_F32, 0, 31);
}

static void
too_much(struct gguf *g)
{
    one_info(g, two_by_four, 2, GGUF_T_F32, 0, 65);
}

/* ---- Models ---- */

/* A key of the Llama says something else. */
static void
change(struct gguf *g, const char *key, uint32_t value)
{
    llama(g);
    size_t n = strlen(key);
    for (size_t i = 0; i + n + 8 <= g->keys.n; i++)
        if (memcmp(g->keys.at + i, key, n) == 0)
            for (int b = 0; b < 4; b++)
                g->keys.at[i + n + 4 + (size_t)b] =
                    (unsigned char)(value >> 8 * b);
}

static void
no_heads(struct gguf *g)
{
    change(g, "llama.attention.head_count", 0);
}

static void
many_layers(struct gguf *g)
{
    change(g, "llama.block_count", UINT32_MAX);
}

static void
nan_epsilon(struct gguf *g)
{
    change(g, "llama.attention.layer_norm_rms_epsilon", 0x7fc00000);
}

static void
wrong_width(struct gguf *g)
{
    change(g, "llama.embedding_length", 8);
}

/* ---- Files ---- */

static void
version_1(struct gguf *g)
{
    g->version = 1;
    plain(g);
}

static void
big_endian(struct gguf *g)
{
    g->version = 3u << 24;
    plain(g);
}

static void
nameless_part(struct gguf *g)
{
    gguf_u32(g, "split.no", 0);
    gguf_u32(g, "split.count", 3);
    plain(g);
}

static void
part_of_many(struct gguf *g)
{
    gguf_u32(g, "split.count", 60000);
    plain(g);
}

static void
only_keys(struct gguf *g)
{
    gguf_text(g, "tokenizer.ggml.model", "llama");
}

static const struct {
    const char *name;
    void (*make)(struct gguf *gguf);
    const char *sentence;
} files[] = {
    {"good-llama.gguf", llama, "a Llama with all its parts."},
    {"good-version-2.gguf", old_version, "the same in version 2."},
    {"good-blocks.gguf", blocks, "blocks of Q8_0 and Q4_0, and bfloat16."},
    {"good-all-blocks.gguf", all_blocks,
     "a row in each type of blocks that is read."},
    {"good-escapes.gguf", escapes, "terminal escapes in names [20]."},
    {"bad-many-tensors.gguf", many_tensors, "2^60 tensors [9]."},
    {"bad-no-infos.gguf", tensors_without_infos,
     "a million tensors, of which one is there [1]."},
    {"bad-many-keys.gguf", many_keys, "2^60 keys [9]."},
    {"bad-name-length.gguf", long_name, "a name of 2^62 bytes [1]."},
    {"bad-text-length.gguf", long_text,
     "a text whose length wraps with its place [1]."},
    {"bad-list-length.gguf", long_list,
     "a list whose length times size wraps [2]."},
    {"unsupported-deep-list.gguf", deep_list,
     "twenty lists in each other [10]."},
    {"bad-value-type.gguf", wrong_value_type, "a value of type 99 [7]."},
    {"bad-key-twice.gguf", key_twice, "a key stands twice."},
    {"bad-alignment-zero.gguf", alignment_zero, "an alignment of 0 [8]."},
    {"bad-alignment-odd.gguf", alignment_odd, "an alignment of 33 [8]."},
    {"bad-alignment-huge.gguf", alignment_huge, "an alignment of 2^31 [8]."},
    {"bad-dims-wrap.gguf", dims_wrap,
     "a product of dimensions that wraps to 0 [4]."},
    {"bad-size-wraps.gguf", size_wraps,
     "a size in bytes that wraps to 32 [2]."},
    {"bad-dim-zero.gguf", dim_zero, "a dimension of 0 [4]."},
    {"bad-five-dims.gguf", five_dims, "a dimension too many [4]."},
    {"bad-no-dims.gguf", no_dims, "no dimensions [4]."},
    {"bad-ragged-blocks.gguf", ragged_blocks,
     "rows that are no whole blocks [5]."},
    {"bad-ragged-points.gguf", ragged_points,
     "rows of 32 in IQ2_XXS, whose blocks have 256 [5]."},
    {"bad-short-points.gguf", short_points,
     "the last byte of two blocks of IQ1_M is missing [6]."},
    {"unsupported-q8k.gguf", unknown_type, "a tensor in Q8_K."},
    {"unsupported-type.gguf", type_out_of_range,
     "a tensor type at the end of 32 bits [7]."},
    {"bad-offset.gguf", offset_beyond, "a tensor at the end of 64 bits [6]."},
    {"bad-unaligned.gguf", unaligned, "a tensor that is not aligned [8]."},
    {"bad-gap.gguf", gap, "bytes before the first tensor [6]."},
    {"bad-overlap.gguf", overlap, "two tensors share bytes [6]."},
    {"bad-tensor-twice.gguf", twice, "a tensor stands twice."},
    {"bad-truncated.gguf", truncated, "the last byte is missing [6]."},
    {"bad-trailing.gguf", too_much, "bytes behind the last tensor [6]."},
    {"bad-no-heads.gguf", no_heads, "no heads [15]."},
    {"bad-many-layers.gguf", many_layers, "2^32 - 1 layers [15]."},
    {"bad-epsilon-nan.gguf", nan_epsilon, "an epsilon that is NaN [13]."},
    {"bad-width.gguf", wrong_width,
     "a width that the tensors do not have [5]."},
    {"unsupported-version-1.gguf", version_1, "version 1."},
    {"unsupported-big-endian.gguf", big_endian, "in big-endian order."},
    {"bad-part-name.gguf", nameless_part,
     "a part that is not named like one [19]."},
    {"bad-part-count.gguf", part_of_many, "one of 60000 parts [9]."},
    {"unsupported-vocabulary.gguf", only_keys,
     "keys without tensors: a tokenizer, no checkpoint."},
};

bool
gguf_file(size_t i, const char **name, const char **sentence,
          struct bytes *bytes)
{
    struct gguf gguf = {0};

    if (i >= sizeof(files) / sizeof(files[0]))
        return false;
    files[i].make(&gguf);
    gguf_end(&gguf, bytes);
    *name = files[i].name;
    *sentence = files[i].sentence;
    return true;
}
