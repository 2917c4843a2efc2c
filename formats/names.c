/*
 * names.c - the naming conventions, as tables.
 *
 * Canonical names are those of GGUF. '#' in a pattern stands for the number
 * of a layer.
 */
#include "config.h"

#include "formats/names.h"

#include <stdio.h>
#include <string.h>

#include "formats/hparams.h"

struct role_info {
    const char *name; /* without ".weight" */
    bool is_per_layer;
    int order; /* within its layer, or among those outside the layers */
};

static const struct role_info roles[LMQ_ROLE_COUNT] = {
    [LMQ_ROLE_OTHER] = {"", false, 0},
    [LMQ_ROLE_EMBEDDING] = {"token_embd", false, 0},
    [LMQ_ROLE_ATTN_NORM] = {"attn_norm", true, 0},
    [LMQ_ROLE_ATTN_Q] = {"attn_q", true, 1},
    [LMQ_ROLE_ATTN_K] = {"attn_k", true, 2},
    [LMQ_ROLE_ATTN_V] = {"attn_v", true, 3},
    [LMQ_ROLE_ATTN_OUT] = {"attn_output", true, 4},
    [LMQ_ROLE_FFN_NORM] = {"ffn_norm", true, 5},
    [LMQ_ROLE_FFN_GATE] = {"ffn_gate", true, 6},
    [LMQ_ROLE_FFN_UP] = {"ffn_up", true, 7},
    [LMQ_ROLE_FFN_DOWN] = {"ffn_down", true, 8},
    [LMQ_ROLE_OUTPUT_NORM] = {"output_norm", false, 1},
    [LMQ_ROLE_HEAD] = {"output", false, 2},
};

/* Without prefixes and without ".weight" or ".bias". */
static const struct {
    const char *pattern;
    enum lmq_role role;
} conventions[] = {
    /* Hugging Face, Llama and its relatives */
    {"embed_tokens", LMQ_ROLE_EMBEDDING},
    {"layers.#.input_layernorm", LMQ_ROLE_ATTN_NORM},
    {"layers.#.self_attn.q_proj", LMQ_ROLE_ATTN_Q},
    {"layers.#.self_attn.k_proj", LMQ_ROLE_ATTN_K},
    {"layers.#.self_attn.v_proj", LMQ_ROLE_ATTN_V},
    {"layers.#.self_attn.o_proj", LMQ_ROLE_ATTN_OUT},
    {"layers.#.post_attention_layernorm", LMQ_ROLE_FFN_NORM},
    {"layers.#.mlp.gate_proj", LMQ_ROLE_FFN_GATE},
    {"layers.#.mlp.up_proj", LMQ_ROLE_FFN_UP},
    {"layers.#.mlp.down_proj", LMQ_ROLE_FFN_DOWN},
    {"norm", LMQ_ROLE_OUTPUT_NORM},
    {"lm_head", LMQ_ROLE_HEAD},
    /* Meta, and llama2.c which follows it */
    {"tok_embeddings", LMQ_ROLE_EMBEDDING},
    {"layers.#.attention_norm", LMQ_ROLE_ATTN_NORM},
    {"layers.#.attention.wq", LMQ_ROLE_ATTN_Q},
    {"layers.#.attention.wk", LMQ_ROLE_ATTN_K},
    {"layers.#.attention.wv", LMQ_ROLE_ATTN_V},
    {"layers.#.attention.wo", LMQ_ROLE_ATTN_OUT},
    {"layers.#.ffn_norm", LMQ_ROLE_FFN_NORM},
    {"layers.#.feed_forward.w1", LMQ_ROLE_FFN_GATE},
    {"layers.#.feed_forward.w3", LMQ_ROLE_FFN_UP},
    {"layers.#.feed_forward.w2", LMQ_ROLE_FFN_DOWN},
    {"output", LMQ_ROLE_HEAD},
};

/* In any order, any number of times. */
static const char *const prefixes[] = {
    "module.", "_orig_mod.", "model.", "transformer.", "language_model.",
};

/* Buffers that old checkpoints carry and everybody computes. */
static const char *const ignorable[] = {
    "rotary_emb.inv_freq", "rope.freqs", "attention.mask", "attn.masked_bias",
    "freqs_cos", "freqs_sin",
};

static const char *
skip_prefixes(const char *name)
{
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) == 0)
            return skip_prefixes(name + n);
    }
    return name;
}

/* Digits without leading zeros and within the cap. */
static const char *
parse_layer(const char *text, int32_t *layer)
{
    int32_t value = 0;
    const char *p = text;

    while (*p >= '0' && *p <= '9') {
        if ((p > text && value == 0) || value >= LMQ_MAX_LAYERS)
            return NULL;
        value = value * 10 + (*p++ - '0');
    }
    if (p == text || value >= LMQ_MAX_LAYERS)
        return NULL;
    *layer = value;
    return p;
}

/* The part of the name behind the pattern, NULL if it does not match. */
static const char *
match(const char *pattern, const char *name, int32_t *layer)
{
    *layer = -1;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '#') {
            name = parse_layer(name, layer);
            if (name == NULL)
                return NULL;
        } else if (*name++ != *pattern) {
            return NULL;
        }
    }
    return name;
}

static bool
parse_part(const char *suffix, enum lmq_part *part)
{
    *part = strcmp(suffix, ".bias") == 0 ? LMQ_PART_BIAS : LMQ_PART_WEIGHT;
    return *part == LMQ_PART_BIAS || strcmp(suffix, ".weight") == 0;
}

static bool
parse_canonical(const char *stored, struct lmq_place *place)
{
    for (int role = 1; role < LMQ_ROLE_COUNT; role++) {
        const char *rest = stored;
        int32_t layer = -1;
        if (roles[role].is_per_layer)
            rest = match("blk.#.", stored, &layer);
        size_t n = strlen(roles[role].name);
        if (rest != NULL && strncmp(rest, roles[role].name, n) == 0 &&
            parse_part(rest + n, &place->part)) {
            place->role = (enum lmq_role)role;
            place->layer = layer;
            return true;
        }
    }
    return false;
}

bool
lmq_name_parse(const char *stored, struct lmq_place *place)
{
    const char *name = skip_prefixes(stored);

    for (size_t i = 0; i < sizeof(conventions) / sizeof(conventions[0]); i++) {
        const char *rest = match(conventions[i].pattern, name, &place->layer);
        if (rest != NULL && parse_part(rest, &place->part)) {
            place->role = conventions[i].role;
            return true;
        }
    }
    if (parse_canonical(stored, place))
        return true;
    *place = (struct lmq_place){LMQ_ROLE_OTHER, LMQ_PART_WEIGHT, -1};
    return false;
}

bool
lmq_name_is_ignorable(const char *stored)
{
    size_t length = strlen(stored);

    for (size_t i = 0; i < sizeof(ignorable) / sizeof(ignorable[0]); i++) {
        size_t n = strlen(ignorable[i]);
        if (length >= n && strcmp(stored + length - n, ignorable[i]) == 0)
            return true;
    }
    return false;
}

void
lmq_name_canonical(const struct lmq_place *place, char *name, size_t size)
{
    const char *part = place->part == LMQ_PART_BIAS ? "bias" : "weight";

    if (roles[place->role].is_per_layer)
        snprintf(name, size, "blk.%d.%s.%s", (int)place->layer,
                 roles[place->role].name, part);
    else
        snprintf(name, size, "%s.%s", roles[place->role].name, part);
}

bool
lmq_role_is_per_layer(enum lmq_role role)
{
    return roles[role].is_per_layer;
}

/* Embedding, then the layers, then what follows them, then the unknown. */
static int
stage(const struct lmq_place *place)
{
    if (place->role == LMQ_ROLE_OTHER)
        return 3;
    if (place->role == LMQ_ROLE_EMBEDDING)
        return 0;
    return roles[place->role].is_per_layer ? 1 : 2;
}

int
lmq_place_compare(const struct lmq_place *a, const struct lmq_place *b)
{
    int order = stage(a) - stage(b);

    if (order == 0)
        order = (a->layer > b->layer) - (a->layer < b->layer);
    if (order == 0)
        order = roles[a->role].order - roles[b->role].order;
    if (order == 0)
        order = (int)a->part - (int)b->part;
    return order;
}
